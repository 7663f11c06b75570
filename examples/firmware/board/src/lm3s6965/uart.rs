//! UART0: a PL011 with 16-byte FIFOs.

use super::system;
use super::vectors::Interrupt;
use crate::mmio::Reg;
use crate::uart;

// SAFETY: registers of UART0, data sheet chapter 12; the UART never accesses memory.
const DR: Reg = unsafe { Reg::at(0x4000_C000) };
// SAFETY: see above.
const FR: Reg = unsafe { Reg::at(0x4000_C018) };
// SAFETY: see above.
const IBRD: Reg = unsafe { Reg::at(0x4000_C024) };
// SAFETY: see above.
const FBRD: Reg = unsafe { Reg::at(0x4000_C028) };
// SAFETY: see above.
const LCRH: Reg = unsafe { Reg::at(0x4000_C02C) };
// SAFETY: see above.
const CTL: Reg = unsafe { Reg::at(0x4000_C030) };
// SAFETY: see above.
const IFLS: Reg = unsafe { Reg::at(0x4000_C034) };
// SAFETY: see above.
const IM: Reg = unsafe { Reg::at(0x4000_C038) };

const DR_ERROR: u32 = 0xF00;
const DR_BREAK: u32 = 1 << 10;

const FR_BUSY: u32 = 1 << 3;
const FR_RX_EMPTY: u32 = 1 << 4;
const FR_TX_FULL: u32 = 1 << 5;

const INT_RX: u32 = 1 << 4;
const INT_TX: u32 = 1 << 5;
/// The line is quiet, and the FIFO holds bytes, but too few for `INT_RX`.
const INT_RX_TIMEOUT: u32 = 1 << 6;

const LISTEN: u32 = INT_RX | INT_RX_TIMEOUT;

const LCRH_FIFO: u32 = 1 << 4;
const LCRH_8_BITS: u32 = 0b11 << 5;

/// Turns on the FIFO, but not in QEMU. There the UART receives from the start, and turning on the FIFO drops the
/// bytes received before: the first byte of the input was lost. QEMU holds bytes back without the FIFO too.
const FIFO: bool = !cfg!(feature = "qemu");

/// Starts the UART with 115200 baud, 8N1.
pub(crate) fn start() {
    // The divisor in 64ths: clock / (16 * baud), rounded.
    let divisor = (system::CLOCK * 4 + 115_200 / 2) / 115_200;
    CTL.write(0);
    IBRD.write(divisor >> 6);
    FBRD.write(divisor & 63);
    LCRH.write(LCRH_8_BITS | if FIFO { LCRH_FIFO } else { 0 });
    // Interrupt when the receive FIFO or the transmit FIFO passes one eighth.
    IFLS.write(0);
    IM.write(LISTEN);
    CTL.write(1 << 9 | 1 << 8 | 1);
    // SAFETY: the handler is in place, and shares only atomics with the main program.
    unsafe { cortex_m::peripheral::NVIC::unmask(Interrupt::Uart0) };
}

/// Asks for an interrupt when bytes arrive. Call it with interrupts off.
pub(crate) fn listen() {
    IM.modify(|mask| mask | LISTEN);
}

/// Asks for an interrupt when the transmitter has room. Call it with interrupts off.
pub(crate) fn listen_for_room() {
    IM.modify(|mask| mask | INT_TX);
}

/// Returns `true` if the transmitter takes a byte.
pub(crate) fn has_room() -> bool {
    FR.read() & FR_TX_FULL == 0
}

/// Writes a byte to the transmitter, which must have room.
pub(crate) fn put(byte: u8) {
    DR.write(u32::from(byte));
}

/// Returns `true` if everything written has left the chip.
pub(crate) fn is_flushed() -> bool {
    FR.read() & FR_BUSY == 0
}

/// Handles UART0's interrupt.
///
/// The handler masks the conditions that it cannot serve: otherwise the interrupt would repeat for ever. If the
/// ring is full, bytes wait in the FIFO. Room in the transmitter only wakes the main program.
pub(super) unsafe extern "C" fn on_interrupt() {
    let mut listen = LISTEN;
    while FR.read() & FR_RX_EMPTY == 0 {
        if uart::is_full() {
            listen = 0;
            break;
        }
        let data = DR.read();
        let byte = (data & DR_BREAK == 0).then_some(data as u8);
        uart::received(byte, data & DR_ERROR != 0);
    }
    IM.write(listen);
    #[cfg(feature = "embassy")]
    crate::uart_io::wake();
}
