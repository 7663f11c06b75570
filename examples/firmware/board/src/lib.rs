//! The TI/Luminary LM3S6965 evaluation board: a Cortex-M3 with 256 KiB of flash
//! and 64 KiB of RAM, which QEMU has as `lm3s6965evb`.
//!
//! All `unsafe` of the firmware is here. Nothing here allocates, formats or
//! panics.
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//!
//! #[board::entry]
//! fn main() -> ! {
//!     let mut board = board::start();
//!     // ...
//! }
//! ```

#![no_std]

#[cfg(feature = "adc")]
mod adc;
mod clock;
mod copy;
#[cfg(feature = "embassy")]
mod embassy;
mod end;
#[cfg(feature = "ethernet")]
mod ethernet;
mod led;
mod memory;
mod mmio;
mod ring;
pub mod stack;
mod system;
#[cfg(feature = "timer")]
mod timer;
mod uart;
#[cfg(feature = "embedded-io")]
mod uart_io;
mod vectors;
mod watchdog;

#[cfg(feature = "adc")]
pub use adc::Adc;
pub use clock::{Clock, cycles, timed};
pub use cortex_m::interrupt::{Mutex, free};
pub use cortex_m_rt::entry;
#[cfg(feature = "embassy")]
pub use embassy::run;
pub use end::{exit, log};
#[cfg(feature = "ethernet")]
pub use ethernet::{Ethernet, EthernetPort};
pub use led::Led;
pub use memory::Static;
#[cfg(feature = "timer")]
pub use timer::Timer;
pub use uart::{END_OF_INPUT, Input, Uart};
#[cfg(feature = "embedded-io")]
pub use uart_io::{Damaged, UartRx, UartTx, idle};
pub use watchdog::Watchdog;

/// What the board has, started and ready.
pub struct Board {
    /// UART0, at 115200 baud.
    pub uart: Uart,
    /// The status LED, off.
    pub led: Led,
    /// Milliseconds since the start.
    pub clock: Clock,
    /// Not running yet.
    pub watchdog: Watchdog,
    /// Not running yet.
    #[cfg(feature = "timer")]
    pub timer: Timer,
    /// The temperature sensor, measuring.
    #[cfg(feature = "adc")]
    pub adc: Adc,
    /// Not running yet.
    #[cfg(feature = "ethernet")]
    pub ethernet: EthernetPort,
}

/// Starts the clocks and UART0. Once: a second call resets the device.
pub fn start() -> Board {
    let Some(core) = cortex_m::Peripherals::take() else { end::fail(b"board: started twice\n") };
    system::start();
    Board {
        uart: Uart::start(),
        led: Led::start(),
        clock: Clock::start(core.SYST),
        watchdog: Watchdog::new(),
        #[cfg(feature = "timer")]
        timer: Timer::new(),
        #[cfg(feature = "adc")]
        adc: Adc::start(),
        #[cfg(feature = "ethernet")]
        ethernet: EthernetPort::new(),
    }
}
