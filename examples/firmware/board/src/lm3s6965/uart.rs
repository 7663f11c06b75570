//! UART0: a PL011 with 16-byte FIFOs.

use super::system;
use super::vectors::Interrupt;
use crate::mmio::Reg;
use crate::uart;

// SAFETY: registers of UART0, data sheet chapter 12; none of them makes the UART
// touch memory.
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
/// Bytes lie in the FIFO, too few for `INT_RX`, and the line is quiet.
const INT_RX_TIMEOUT: u32 = 1 << 6;

const LISTEN: u32 = INT_RX | INT_RX_TIMEOUT;

const LCRH_FIFO: u32 = 1 << 4;
const LCRH_8_BITS: u32 = 0b11 << 5;

/// Not under QEMU, which receives from the moment it starts, and to which
/// turning on the FIFO means to forget what came before: the first byte of the
/// input was lost. Without a FIFO it holds the bytes back just the same.
const FIFO: bool = !cfg!(feature = "qemu");

/// 115200 baud, 8N1.
pub(crate) fn start() {
    // The divisor is in 64ths: clock / (16 * baud), rounded.
    let divisor = (system::CLOCK * 4 + 115_200 / 2) / 115_200;
    CTL.write(0);
    IBRD.write(divisor >> 6);
    FBRD.write(divisor & 63);
    LCRH.write(LCRH_8_BITS | if FIFO { LCRH_FIFO } else { 0 });
    // Interrupts at one eighth of the receive FIFO and of the transmit FIFO.
    IFLS.write(0);
    IM.write(LISTEN);
    CTL.write(1 << 9 | 1 << 8 | 1);
    // SAFETY: the handler is in place, and shares nothing with the main
    // program but atomics.
    unsafe { cortex_m::peripheral::NVIC::unmask(Interrupt::Uart0) };
}

/// Asks for an interrupt when there are bytes. Interrupts are off.
pub(crate) fn listen() {
    IM.modify(|mask| mask | LISTEN);
}

/// Asks for an interrupt when the transmitter has room. Interrupts are off.
pub(crate) fn listen_for_room() {
    IM.modify(|mask| mask | INT_TX);
}

/// Whether the transmitter takes a byte.
pub(crate) fn has_room() -> bool {
    FR.read() & FR_TX_FULL == 0
}

/// Gives the transmitter a byte, for which it has room.
pub(crate) fn put(byte: u8) {
    DR.write(u32::from(byte));
}

/// Whether all that was written has left the chip.
pub(crate) fn is_flushed() -> bool {
    FR.read() & FR_BUSY == 0
}

/// UART0's interrupt.
///
/// It masks what it cannot serve, so that no condition keeps it busy: what the
/// ring has no room for waits in the FIFO, and room in the transmitter is only
/// ever a reason to wake up.
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
