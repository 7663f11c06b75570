//! The UART: a 16550, without its FIFOs, which QEMU would empty of what came before they were turned on.

use crate::mmio::Reg;
use crate::uart;

// SAFETY: registers of the UART, of eight bits; none of them makes it touch memory.
const DATA: Reg<u8> = unsafe { Reg::at(0x1000_0000) };
// SAFETY: see above.
const IER: Reg<u8> = unsafe { Reg::at(0x1000_0001) };
// SAFETY: see above.
const IIR: Reg<u8> = unsafe { Reg::at(0x1000_0002) };
// SAFETY: see above.
const LCR: Reg<u8> = unsafe { Reg::at(0x1000_0003) };
// SAFETY: see above.
const LSR: Reg<u8> = unsafe { Reg::at(0x1000_0005) };

const IER_RX: u8 = 1;
const IER_TX: u8 = 1 << 1;

const LCR_8_BITS: u8 = 0b11;

const LSR_RX: u8 = 1;
/// Overrun, parity, framing, break.
const LSR_ERROR: u8 = 0b11110;
const LSR_BREAK: u8 = 1 << 4;
const LSR_TX_EMPTY: u8 = 1 << 5;
const LSR_TX_IDLE: u8 = 1 << 6;

/// 8N1. No rate: to QEMU all are alike.
pub(crate) fn start() {
    LCR.write(LCR_8_BITS);
    IER.write(IER_RX);
}

/// Asks for an interrupt when there are bytes. Interrupts are off.
pub(crate) fn listen() {
    IER.modify(|mask| mask | IER_RX);
}

/// Asks for an interrupt when the transmitter has room. Interrupts are off.
pub(crate) fn listen_for_room() {
    IER.modify(|mask| mask | IER_TX);
}

/// Whether the transmitter takes a byte.
pub(crate) fn has_room() -> bool {
    LSR.read() & LSR_TX_EMPTY != 0
}

/// Gives the transmitter a byte, for which it has room.
pub(crate) fn put(byte: u8) {
    DATA.write(byte);
}

/// Whether all that was written has left the machine.
pub(crate) fn is_flushed() -> bool {
    LSR.read() & LSR_TX_IDLE != 0
}

/// The UART's interrupt. It masks what it cannot serve, as the other board's does.
pub(super) fn on_interrupt() {
    let mut listen = IER_RX;
    loop {
        let status = LSR.read();
        if status & LSR_RX == 0 {
            break;
        }
        if uart::is_full() {
            listen = 0;
            break;
        }
        let byte = DATA.read();
        uart::received((status & LSR_BREAK == 0).then_some(byte), status & LSR_ERROR != 0);
    }
    IER.write(listen);
    // That there is room was told with this.
    let _ = IIR.read();
}
