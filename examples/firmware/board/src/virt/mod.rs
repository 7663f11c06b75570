//! QEMU's `virt` as far as a small device has the like: one RV32IMC, 256 KiB that stand for flash, 80 KiB of RAM, a
//! 16550, a clock, a network. It is a machine of no particular make, and exists nowhere else.
//!
//! What it does not have is made up: the LED is a variable, the watchdog does nothing, the temperature is a constant and
//! noise.

#[cfg(feature = "adc")]
mod adc;
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

/// Starts that which ticks.
pub(crate) fn start() {
    tick::start();
    trap::start();
}
