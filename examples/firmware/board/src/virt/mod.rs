//! The parts of QEMU's machine `virt` that a small device has too: one RV32IMC, 256 KiB used as flash, 80 KiB of
//! RAM, a 16550, a clock, a network. The machine exists in QEMU only.
//!
//! Missing parts are simulated: the LED is a variable, the button is never pressed, the watchdog does nothing, the temperature is
//! a constant with noise.

#[cfg(feature = "adc")]
mod adc;
mod button;
mod copy;
mod end;
#[cfg(feature = "ethernet")]
mod ethernet;
mod led;
mod start;
mod tick;
mod trap;
pub(crate) mod uart;
mod watchdog;

#[cfg(feature = "adc")]
pub use adc::Adc;
pub use button::Button;
pub(crate) use end::give_up;
pub use end::{exit, log};
#[cfg(feature = "ethernet")]
pub use ethernet::{Ethernet, EthernetPort};
pub use led::Led;
#[cfg(feature = "stack")]
pub(crate) use start::STACK_PAINT_VALUE;
pub use tick::cycles;
pub(crate) use tick::cycles_since;
pub(crate) use trap::{alone, sleep};
pub use watchdog::Watchdog;

/// Starts the millisecond tick.
pub(crate) fn start() {
    tick::start();
    trap::start();
}
