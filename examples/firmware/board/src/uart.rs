//! UART0.
//!
//! The interrupt handler moves received bytes into a ring, so that the main
//! program may be busy for as long as it takes the wire to fill that ring
//! (512 bytes are 44 ms at 115200 baud). When the ring is full the handler
//! leaves the bytes in the UART and stops listening until some are read: under
//! QEMU the sender then waits and nothing is lost; on a wire without flow
//! control the FIFO overruns, which [`Uart::errors`] counts.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::chip;
use crate::ring::Ring;

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

/// The one UART, from [`crate::start`].
pub struct Uart {
    /// Bytes in the ring that `read` could make nothing of yet.
    undecided: usize,
}

impl Uart {
    /// 115200 baud, 8N1.
    pub(crate) fn start() -> Self {
        chip::uart::start();
        Self { undecided: 0 }
    }

    /// Takes received bytes, as many as are there and `buffer` holds. Never waits.
    pub fn read(&mut self, buffer: &mut [u8]) -> Input {
        let there = RECEIVED.len();
        let mut count = 0;
        self.undecided = 0;
        for place in buffer.iter_mut().take(there) {
            let byte = RECEIVED.at(count);
            if cfg!(feature = "qemu") && byte == EOT {
                let run = run_of_eot(count, there);
                if run == END_OF_INPUT {
                    if count == 0 {
                        return Input::End;
                    }
                    break;
                }
                if count + run == there {
                    // The others may come yet.
                    self.undecided = run;
                    break;
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
        chip::alone(chip::uart::listen);
        Input::Bytes(count)
    }

    /// Gives bytes to the transmitter, as many as it takes now. Never waits.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let mut count = 0;
        for &byte in bytes {
            if !chip::uart::has_room() {
                break;
            }
            chip::uart::put(byte);
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

    /// Whether all that was written has left the chip.
    pub fn is_flushed(&self) -> bool {
        chip::uart::is_flushed()
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
        chip::alone(|| {
            let ready = if to_write {
                chip::uart::listen_for_room();
                chip::uart::has_room()
            } else {
                RECEIVED.len() > self.undecided
            };
            if !ready {
                chip::sleep();
            }
        });
    }
}

/// Whether a read would find something.
#[cfg(feature = "embedded-io")]
pub(crate) fn is_ready() -> bool {
    let there = RECEIVED.len();
    let run = if cfg!(feature = "qemu") { run_of_eot(0, there) } else { 0 };
    run < there || run == END_OF_INPUT
}

/// How many EOTs stand in the ring from some place on, of the bytes that are there: [`END_OF_INPUT`] at most.
fn run_of_eot(start: usize, there: usize) -> usize {
    (start..there).take(END_OF_INPUT).take_while(|&place| RECEIVED.at(place) == EOT).count()
}

/// For the interrupt: there is no room for another byte.
pub(crate) fn is_full() -> bool {
    RECEIVED.is_full()
}

/// For the interrupt: a byte has come, for which there is room, or is missing.
pub(crate) fn received(byte: Option<u8>, damaged: bool) {
    if damaged {
        ERRORS.store(ERRORS.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
    if let Some(byte) = byte {
        RECEIVED.push(byte);
    }
}
