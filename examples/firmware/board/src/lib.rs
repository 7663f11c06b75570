//! The TI/Luminary LM3S6965 evaluation board: a Cortex-M3 with 256 KiB of flash and 64 KiB of RAM. QEMU has it as
//! `lm3s6965evb`. Built for RISC-V, the crate drives a similar machine that exists in QEMU only: `virt`.
//!
//! This crate has all `unsafe` of the firmware. It does not allocate, format or panic.
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
pub use chip::{Button, Led, Watchdog, cycles, exit, log};
#[cfg(feature = "ethernet")]
pub use chip::{Ethernet, EthernetPort};
#[cfg(target_arch = "arm")]
pub use chip::{Mutex, free};
pub use clock::{Clock, timed};
pub use memory::Static;
pub use uart::{END_OF_INPUT, Input, Uart};
#[cfg(feature = "embedded-io")]
pub use uart_io::{Damaged, UartRx, UartTx, idle};

/// Names the function that the program starts with, of type `fn() -> !`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        // SAFETY: no other function has this name; the start-up code calls it.
        #[unsafe(export_name = "main")]
        extern "C" fn board_main() -> ! {
            let main: fn() -> ! = $main;
            main()
        }
    };
}

/// The parts of the board, ready for use.
pub struct Board {
    /// UART0, at 115200 baud.
    pub uart: Uart,
    /// The status LED, off.
    pub led: Led,
    /// The select button, not running yet.
    pub button: Button,
    /// Milliseconds since the start.
    pub clock: Clock,
    /// The watchdog, not running yet.
    pub watchdog: Watchdog,
    /// Timer 1, not running yet.
    #[cfg(feature = "timer")]
    pub timer: Timer,
    /// The temperature sensor, measuring.
    #[cfg(feature = "adc")]
    pub adc: Adc,
    /// The Ethernet controller, not running yet.
    #[cfg(feature = "ethernet")]
    pub ethernet: EthernetPort,
}

static STARTED: Static<()> = Static::new(());

/// Starts the clocks and UART0. Call it once: a second call resets the device.
pub fn start() -> Board {
    if STARTED.take().is_none() {
        end::fail(b"board: started twice\n");
    }
    chip::start();
    Board {
        uart: Uart::start(),
        led: Led::start(),
        button: Button::new(),
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
