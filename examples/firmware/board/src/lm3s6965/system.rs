//! The system clock, and the clocks and pins of the devices that this crate uses.

use crate::mmio::Reg;

/// The cycles per second, after [`start`].
pub(crate) const CLOCK: u32 = 50_000_000;

// SAFETY: registers of system control, data sheet chapter 5; they gate and divide clocks, and never cause an access
// to memory.
const RIS: Reg = unsafe { Reg::at(0x400F_E050) };
// SAFETY: see above.
const RCC: Reg = unsafe { Reg::at(0x400F_E060) };
// SAFETY: see above.
const RCGC0: Reg = unsafe { Reg::at(0x400F_E100) };
// SAFETY: see above.
const RCGC1: Reg = unsafe { Reg::at(0x400F_E104) };
// SAFETY: see above.
const RCGC2: Reg = unsafe { Reg::at(0x400F_E108) };
// SAFETY: registers of GPIO port A, data sheet chapter 8; they only control pins.
const GPIOA_AFSEL: Reg = unsafe { Reg::at(0x4000_4420) };
// SAFETY: see above.
const GPIOA_DEN: Reg = unsafe { Reg::at(0x4000_451C) };

const RIS_PLL_LOCKED: u32 = 1 << 6;

const RCC_MAIN_OSCILLATOR_OFF: u32 = 1;
const RCC_OSCILLATOR: u32 = 0b11 << 4;
const RCC_CRYSTAL: u32 = 0b1111 << 6;
const RCC_CRYSTAL_8_MHZ: u32 = 0xE << 6;
const RCC_BYPASS: u32 = 1 << 11;
const RCC_PLL_OUTPUT_OFF: u32 = 1 << 12;
const RCC_PLL_OFF: u32 = 1 << 13;
const RCC_USE_DIVISOR: u32 = 1 << 22;
const RCC_DIVISOR: u32 = 0b1111 << 23;
/// The 200 MHz of the PLL, divided by four.
const RCC_DIVISOR_4: u32 = 3 << 23;

const RCGC0_WATCHDOG: u32 = 1 << 3;
const RCGC1_UART0: u32 = 1;
const RCGC2_GPIOA: u32 = 1;
const RCGC2_GPIOF: u32 = 1 << 5;

/// Turns on the clocks of the converter and its timer.
#[cfg(feature = "adc")]
pub(crate) fn start_adc() {
    RCGC0.modify(|gates| gates | 1 << 16);
    RCGC1.modify(|gates| gates | 1 << 16);
    let _ = RCGC1.read();
}

/// Turns on the clock of timer 1.
#[cfg(feature = "timer")]
pub(crate) fn start_timer() {
    RCGC1.modify(|gates| gates | 1 << 17);
    let _ = RCGC1.read();
}

#[cfg(feature = "ethernet")]
const RCGC2_ETHERNET: u32 = 1 << 28 | 1 << 30;

/// Turns on the clocks of the Ethernet controller and its transceiver.
#[cfg(feature = "ethernet")]
pub(crate) fn start_ethernet() {
    RCGC2.modify(|gates| gates | RCGC2_ETHERNET);
    let _ = RCGC2.read();
}

/// Runs the chip at [`CLOCK`] from its 8 MHz crystal, and turns on clocks and pins of the UART, the watchdog and
/// the LED. The data sheet prescribes the order (5.3).
pub(crate) fn start() {
    RCC.modify(|rcc| (rcc | RCC_BYPASS) & !RCC_USE_DIVISOR & !RCC_MAIN_OSCILLATOR_OFF);
    RCC.modify(|rcc| (rcc & !(RCC_CRYSTAL | RCC_OSCILLATOR | RCC_PLL_OFF | RCC_PLL_OUTPUT_OFF)) | RCC_CRYSTAL_8_MHZ);
    RCC.modify(|rcc| (rcc & !RCC_DIVISOR) | RCC_DIVISOR_4 | RCC_USE_DIVISOR);
    while RIS.read() & RIS_PLL_LOCKED == 0 {}
    RCC.modify(|rcc| rcc & !RCC_BYPASS);

    RCGC0.modify(|gates| gates | RCGC0_WATCHDOG);
    // After a reset, all gates in these two registers are closed.
    RCGC1.write(RCGC1_UART0);
    RCGC2.write(RCGC2_GPIOA | RCGC2_GPIOF);
    // A gate takes three cycles to open; reading it back takes longer.
    let _ = RCGC2.read();

    // U0RX and U0TX are the alternate functions of PA0 and PA1. No other pin of this port is in use yet.
    GPIOA_AFSEL.write(0b11);
    GPIOA_DEN.write(0b11);
}
