//! UART0: a PL011 with 16-byte FIFOs.
//!
//! The interrupt handler moves received bytes into a ring, so that the main
//! program may be busy for as long as it takes the wire to fill that ring
//! (512 bytes are 44 ms at 115200 baud). When the ring is full the handler
//! leaves the bytes in the UART and stops listening until some are read: under
//! QEMU the sender then waits and nothing is lost; on a wire without flow
//! control the FIFO overruns, which [`Uart::errors`] counts.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::mmio::Reg;
use crate::ring::Ring;
use crate::system;
use crate::vectors::Interrupt;

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

static RECEIVED: Ring<512> = Ring::new();
static ERRORS: AtomicU32 = AtomicU32::new(0);

/// End of transmission. [`END_OF_INPUT`] of them in a row end the input.
const EOT: u8 = 0x04;

/// How many bytes EOT in a row stand for the end of the input (feature `qemu`).
///
/// QEMU does not tell a machine that its standard input is closed, so `run.sh`
/// says it in the stream. One EOT is no more than a wrong byte of a message.
pub const END_OF_INPUT: usize = 4;

/// What [`Uart::read`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// So many bytes were put into the buffer, at least one.
    Bytes(usize),
    /// Nothing yet.
    Empty,
    /// There will be no more input.
    End,
}

/// The one UART, from [`crate::Board::take`].
pub struct Uart {
    /// Bytes in the ring that `read` could make nothing of yet.
    undecided: usize,
}

impl Uart {
    /// 115200 baud, 8N1.
    pub(crate) fn start() -> Self {
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
        Self { undecided: 0 }
    }

    /// Takes received bytes, as many as are there and `buffer` holds. Never waits.
    pub fn read(&mut self, buffer: &mut [u8]) -> Input {
        let mut count = 0;
        self.undecided = 0;
        for place in buffer.iter_mut() {
            let Some(byte) = RECEIVED.peek(count) else { break };
            if cfg!(feature = "qemu") && byte == EOT {
                match run_of_eot(count) {
                    Run::Whole if count == 0 => return Input::End,
                    Run::Whole => break,
                    Run::Open(length) => {
                        self.undecided = length;
                        break;
                    }
                    Run::Short => {}
                }
            }
            *place = byte;
            count += 1;
        }
        if count == 0 {
            return Input::Empty;
        }
        RECEIVED.skip(count);
        // The handler may have stopped listening because the ring was full. If
        // it has not, or finds the ring full again, this does no harm. Who waits
        // for room in the transmitter goes on doing so.
        cortex_m::interrupt::free(|_| IM.modify(|mask| mask | LISTEN));
        Input::Bytes(count)
    }

    /// Gives bytes to the transmitter, as many as it takes now. Never waits.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let mut count = 0;
        for &byte in bytes {
            if FR.read() & FR_TX_FULL != 0 {
                break;
            }
            DR.write(u32::from(byte));
            count += 1;
        }
        count
    }

    /// The same UART twice: reading and writing share nothing but the mask of interrupts, which is changed with
    /// interrupts off.
    #[cfg(feature = "embedded-io")]
    pub(crate) fn halves(self) -> (Self, Self) {
        (Self { undecided: 0 }, self)
    }

    /// Whether the transmitter has no room.
    #[cfg(feature = "embassy")]
    pub(crate) fn is_full(&self) -> bool {
        FR.read() & FR_TX_FULL != 0
    }

    /// Whether all that was written has left the chip.
    pub fn is_flushed(&self) -> bool {
        FR.read() & FR_BUSY == 0
    }

    /// Received bytes that are damaged, or followed by a gap, so far.
    pub fn errors(&self) -> u32 {
        ERRORS.load(Ordering::Relaxed)
    }

    /// Sleeps until something happens: a byte, a tick of the clock, or, if
    /// `to_write`, room in the transmitter. Returns at once if there is already
    /// something to read, or room to write.
    pub fn wait(&mut self, to_write: bool) {
        // With interrupts off nothing can slip in between the look and the
        // sleep, and a pending interrupt still ends the sleep.
        cortex_m::interrupt::free(|_| {
            let ready = if to_write {
                IM.write(LISTEN | INT_TX);
                FR.read() & FR_TX_FULL == 0
            } else {
                RECEIVED.len() > self.undecided
            };
            if !ready {
                cortex_m::asm::wfi();
            }
        });
    }
}

/// Whether a read would find something.
#[cfg(feature = "embedded-io")]
pub(crate) fn is_ready() -> bool {
    match RECEIVED.peek(0) {
        Some(EOT) if cfg!(feature = "qemu") => !matches!(run_of_eot(0), Run::Open(_)),
        found => found.is_some(),
    }
}

/// Asks for an interrupt when the transmitter has room.
#[cfg(feature = "embassy")]
pub(crate) fn listen_for_room() {
    cortex_m::interrupt::free(|_| IM.modify(|mask| mask | INT_TX));
}

/// The EOTs in the ring from some place on.
enum Run {
    /// Fewer than [`END_OF_INPUT`], and then another byte.
    Short,
    /// So many, fewer than [`END_OF_INPUT`], and nothing behind them yet.
    Open(usize),
    /// [`END_OF_INPUT`] of them.
    Whole,
}

fn run_of_eot(start: usize) -> Run {
    for length in 0..END_OF_INPUT {
        match RECEIVED.peek(start + length) {
            Some(EOT) => {}
            Some(_) => return Run::Short,
            None => return Run::Open(length),
        }
    }
    Run::Whole
}

/// UART0's interrupt.
///
/// It masks what it cannot serve, so that no condition keeps it busy: what the
/// ring has no room for waits in the FIFO, and room in the transmitter is only
/// ever a reason to wake up.
pub(crate) unsafe extern "C" fn on_interrupt() {
    let mut listen = LISTEN;
    while FR.read() & FR_RX_EMPTY == 0 {
        if RECEIVED.is_full() {
            listen = 0;
            break;
        }
        let data = DR.read();
        if data & DR_ERROR != 0 {
            ERRORS.store(ERRORS.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
        if data & DR_BREAK == 0 {
            RECEIVED.push(data as u8);
        }
    }
    IM.write(listen);
    #[cfg(feature = "embassy")]
    crate::uart_io::wake();
}
