//! The chip of the TI/Luminary LM3S6965 evaluation board, which QEMU has as `lm3s6965evb`.

#[cfg(feature = "adc")]
mod adc;
mod button;
mod copy;
#[cfg(feature = "embassy")]
mod embassy;
mod end;
#[cfg(feature = "ethernet")]
mod ethernet;
mod led;
mod system;
mod tick;
#[cfg(feature = "timer")]
mod timer;
pub(crate) mod uart;
mod vectors;
mod watchdog;

#[cfg(feature = "adc")]
pub use adc::Adc;
pub use button::Button;
pub use cortex_m::interrupt::{Mutex, free};
#[cfg(feature = "stack")]
pub(crate) use cortex_m_rt::STACK_PAINT_VALUE;
#[cfg(feature = "embassy")]
pub use embassy::run;
pub(crate) use end::give_up;
pub use end::{exit, log};
#[cfg(feature = "ethernet")]
pub use ethernet::{Ethernet, EthernetPort};
pub use led::Led;
pub use tick::cycles;
pub(crate) use tick::cycles_since;
#[cfg(feature = "timer")]
pub use timer::Timer;
pub use watchdog::Watchdog;

/// Starts the chip's clocks and the millisecond tick.
pub(crate) fn start() {
    system::start();
    tick::start();
}

/// Does some work with interrupts off.
pub(crate) fn alone<R>(work: impl FnOnce() -> R) -> R {
    cortex_m::interrupt::free(|_| work())
}

/// Sleeps until an interrupt. With interrupts off, a pending interrupt ends the sleep too.
pub(crate) fn sleep() {
    cortex_m::asm::wfi();
}
