//! UART0.
//!
//! The interrupt handler moves received bytes into a ring. So the main program may be busy until the ring is full:
//! 512 bytes take 44 ms at 115200 baud. When the ring is full, the handler leaves the bytes in the UART and stops
//! listening until some bytes are read. In QEMU the sender then waits and nothing is lost. On a wire without flow
//! control the FIFO overruns; [`Uart::errors`] counts that.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::chip;
use crate::ring::Ring;

static RECEIVED: Ring<512> = Ring::new();
static ERRORS: AtomicU32 = AtomicU32::new(0);

/// End of transmission. [`END_OF_INPUT`] of them in a row end the input.
const EOT: u8 = 0x04;

/// The number of EOT bytes in a row that end the input (feature `qemu`).
///
/// QEMU does not report to a machine that its standard input is closed, so `run.sh` sends these bytes. A single EOT
/// is only a wrong byte of a message.
pub const END_OF_INPUT: usize = 4;

/// The result of [`Uart::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// This many bytes were put into the buffer, at least one.
    Bytes(usize),
    /// There are no bytes yet.
    Empty,
    /// The input has ended.
    End,
}

/// The one UART, from [`crate::start`].
pub struct Uart {
    /// The EOT bytes in the ring that may or may not be the end of the input.
    undecided: usize,
}

impl Uart {
    /// Starts the UART with 115200 baud, 8N1.
    pub(crate) fn start() -> Self {
        chip::uart::start();
        Self { undecided: 0 }
    }

    /// Moves received bytes to `buffer`, as many as fit. Never waits.
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
                    // More EOT bytes may follow.
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
        // The handler may have stopped listening because the ring was full. If it has not, or if the ring is full
        // again, this does no harm. A wait for room in the transmitter goes on.
        chip::alone(chip::uart::listen);
        Input::Bytes(count)
    }

    /// Gives bytes to the transmitter, as many as it takes now, and returns their number. Never waits.
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

    /// Returns the same UART twice, for reading and for writing. The two share only the mask of interrupts, which is
    /// changed with interrupts off.
    #[cfg(feature = "embedded-io")]
    pub(crate) fn halves(self) -> (Self, Self) {
        (Self { undecided: 0 }, self)
    }

    /// Returns `true` if everything written has left the chip.
    pub fn is_flushed(&self) -> bool {
        chip::uart::is_flushed()
    }

    /// Returns the number of received bytes so far that are damaged, or followed by a gap.
    pub fn errors(&self) -> u32 {
        ERRORS.load(Ordering::Relaxed)
    }

    /// Sleeps until a byte arrives, the clock ticks, or (with `to_write`) the transmitter has room. Returns at once
    /// if there is something to read, or room to write.
    pub fn wait(&mut self, to_write: bool) {
        // Interrupts are off, so no interrupt is missed between the check and the sleep. A pending one still ends
        // the sleep.
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

/// Returns `true` if a read would find something.
#[cfg(feature = "embedded-io")]
pub(crate) fn is_ready() -> bool {
    let there = RECEIVED.len();
    let run = if cfg!(feature = "qemu") { run_of_eot(0, there) } else { 0 };
    run < there || run == END_OF_INPUT
}

/// Counts the EOT bytes in a row from `start` on, at most [`END_OF_INPUT`], among the `there` bytes of the ring.
fn run_of_eot(start: usize, there: usize) -> usize {
    (start..there).take(END_OF_INPUT).take_while(|&place| RECEIVED.at(place) == EOT).count()
}

/// For the interrupt handler: returns `true` if there is no room for another byte.
pub(crate) fn is_full() -> bool {
    RECEIVED.is_full()
}

/// For the interrupt handler: adds a byte, for which there must be room, or counts a missing one.
pub(crate) fn received(byte: Option<u8>, damaged: bool) {
    if damaged {
        ERRORS.store(ERRORS.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
    if let Some(byte) = byte {
        RECEIVED.push(byte);
    }
}
