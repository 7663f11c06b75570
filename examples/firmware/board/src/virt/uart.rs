//! The UART: a 16550, without its FIFOs. Turning them on would drop the bytes that QEMU has received before.

use crate::mmio::Reg;
use crate::uart;

// SAFETY: registers of the UART, of eight bits; the UART never accesses memory.
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

/// Starts the UART with 8N1. The rate stays unset: QEMU ignores it.
pub(crate) fn start() {
    LCR.write(LCR_8_BITS);
    IER.write(IER_RX);
}

/// Asks for an interrupt when bytes arrive. Call it with interrupts off.
pub(crate) fn listen() {
    IER.modify(|mask| mask | IER_RX);
}

/// Asks for an interrupt when the transmitter has room. Call it with interrupts off.
pub(crate) fn listen_for_room() {
    IER.modify(|mask| mask | IER_TX);
}

/// Returns `true` if the transmitter takes a byte.
pub(crate) fn has_room() -> bool {
    LSR.read() & LSR_TX_EMPTY != 0
}

/// Writes a byte to the transmitter, which must have room.
pub(crate) fn put(byte: u8) {
    DATA.write(byte);
}

/// Returns `true` if everything written has left the machine.
pub(crate) fn is_flushed() -> bool {
    LSR.read() & LSR_TX_IDLE != 0
}

/// Handles the UART's interrupt. The handler masks the conditions that it cannot serve, as on the other board.
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
    // This read acknowledges the interrupt for room.
    let _ = IIR.read();
}
