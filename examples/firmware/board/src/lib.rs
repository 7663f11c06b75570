//! The TI/Luminary LM3S6965 evaluation board: a Cortex-M3 with 256 KiB of flash
//! and 64 KiB of RAM, which QEMU has as `lm3s6965evb`. And built for RISC-V as
//! much of a machine that there is in QEMU only, `virt`.
//!
//! All `unsafe` of the firmware is here. Nothing here allocates, formats or
//! panics.
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//!
//! board::entry!(main);
//!
//! fn main() -> ! {
//!     let mut board = board::start();
//!     // ...
//! }
//! ```

#![no_std]

#[cfg(feature = "adc")]
mod adc;
#[cfg_attr(target_arch = "arm", path = "lm3s6965/mod.rs")]
#[cfg_attr(target_arch = "riscv32", path = "virt/mod.rs")]
mod chip;
mod clock;
mod end;
mod memory;
mod mmio;
mod ring;
#[cfg(feature = "stack")]
pub mod stack;
mod uart;
#[cfg(feature = "embedded-io")]
mod uart_io;

#[cfg(feature = "adc")]
pub use chip::Adc;
#[cfg(feature = "timer")]
pub use chip::Timer;
#[cfg(feature = "embassy")]
pub use chip::run;
#[cfg(feature = "ethernet")]
pub use chip::{Ethernet, EthernetPort};
pub use chip::{Led, Watchdog, cycles, exit, log};
#[cfg(target_arch = "arm")]
pub use chip::{Mutex, free};
pub use clock::{Clock, timed};
pub use memory::Static;
pub use uart::{END_OF_INPUT, Input, Uart};
#[cfg(feature = "embedded-io")]
pub use uart_io::{Damaged, UartRx, UartTx, idle};

/// Names the function that the program begins with, of type `fn() -> !`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        // SAFETY: no other function is called so; the start-up code expects this one.
        #[unsafe(export_name = "main")]
        extern "C" fn board_main() -> ! {
            let main: fn() -> ! = $main;
            main()
        }
    };
}

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

static STARTED: Static<()> = Static::new(());

/// Starts the clocks and UART0. Once: a second call resets the device.
pub fn start() -> Board {
    if STARTED.take().is_none() {
        end::fail(b"board: started twice\n");
    }
    chip::start();
    Board {
        uart: Uart::start(),
        led: Led::start(),
        clock: Clock::default(),
        watchdog: Watchdog::new(),
        #[cfg(feature = "timer")]
        timer: Timer::new(),
        #[cfg(feature = "adc")]
        adc: Adc::start(),
        #[cfg(feature = "ethernet")]
        ethernet: EthernetPort::new(),
    }
}
