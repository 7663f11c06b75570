//! The two halves of UART0, with the traits of embedded-io, and with the feature `embassy` those of
//! embedded-io-async.

use core::convert::Infallible;
#[cfg(feature = "embassy")]
use core::{future::poll_fn, task::Poll};

#[cfg(feature = "embassy")]
use embassy_sync::waitqueue::AtomicWaker;
use embedded_io::{ErrorKind, ErrorType, Read, ReadReady, Write};

use crate::chip;
use crate::uart::{self, Input, Uart};

/// The task that waits for a byte, and the task that waits for room.
#[cfg(feature = "embassy")]
static READER: AtomicWaker = AtomicWaker::new();
#[cfg(feature = "embassy")]
static WRITER: AtomicWaker = AtomicWaker::new();

/// A byte is damaged or missing: noise on the line, or bytes were not read in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl core::fmt::Display for Damaged {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a byte was damaged or lost")
    }
}

impl core::error::Error for Damaged {}

impl embedded_io::Error for Damaged {
    fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidData
    }
}

/// The receiver.
pub struct UartRx {
    uart: Uart,
    /// The errors that are already reported.
    told: u32,
}

/// The transmitter.
pub struct UartTx {
    uart: Uart,
}

impl Uart {
    /// Splits the UART into two halves, which may be used at the same time.
    pub fn split(self) -> (UartRx, UartTx) {
        let (rx, tx) = self.halves();
        (UartRx { uart: rx, told: 0 }, UartTx { uart: tx })
    }
}

impl UartRx {
    /// Reads the bytes that are there. `None` means no bytes yet.
    fn take(&mut self, bytes: &mut [u8]) -> Option<Result<usize, Damaged>> {
        let errors = self.uart.errors();
        if core::mem::replace(&mut self.told, errors) != errors {
            return Some(Err(Damaged));
        }
        match self.uart.read(bytes) {
            Input::Bytes(count) => Some(Ok(count)),
            Input::End => Some(Ok(0)),
            Input::Empty => None,
        }
    }
}

impl UartTx {
    /// Waits until everything has left the chip.
    pub fn drain(&mut self) {
        while !self.uart.is_flushed() {}
    }
}

/// Sleeps until a byte arrives, the clock ticks or a timer fires. Returns at once if there is something to read.
pub fn idle() {
    // Interrupts are off, so no interrupt is missed between the check and the sleep. A pending one still ends the
    // sleep.
    chip::alone(|| {
        if !uart::is_ready() {
            chip::sleep();
        }
    });
}

impl ErrorType for UartRx {
    type Error = Damaged;
}

impl ErrorType for UartTx {
    type Error = Infallible;
}

impl ReadReady for UartRx {
    fn read_ready(&mut self) -> Result<bool, Damaged> {
        Ok(uart::is_ready() || self.told != self.uart.errors())
    }
}

impl Read for UartRx {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Damaged> {
        if bytes.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(found) = self.take(bytes) {
                return found;
            }
            idle();
        }
    }
}

impl Write for UartTx {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        loop {
            match self.uart.write(bytes) {
                0 if !bytes.is_empty() => self.uart.wait(true),
                count => return Ok(count),
            }
        }
    }

    /// Does nothing: the chip sends without being asked.
    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Reads from a ring that an interrupt fills: dropping the future loses no bytes.
#[cfg(feature = "embassy")]
impl embedded_io_async::Read for UartRx {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Damaged> {
        if bytes.is_empty() {
            return Ok(0);
        }
        poll_fn(|cx| {
            // Register first, then check: a byte that arrives in between wakes the task.
            READER.register(cx.waker());
            self.take(bytes).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

#[cfg(feature = "embassy")]
impl embedded_io_async::Write for UartTx {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        poll_fn(|cx| {
            WRITER.register(cx.waker());
            if !bytes.is_empty() && !chip::uart::has_room() {
                chip::alone(chip::uart::listen_for_room);
            }
            match self.uart.write(bytes) {
                0 if !bytes.is_empty() => Poll::Pending,
                count => Poll::Ready(Ok(count)),
            }
        })
        .await
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// For the interrupt handler: wakes the tasks that wait for bytes or for room.
#[cfg(feature = "embassy")]
pub(crate) fn wake() {
    READER.wake();
    WRITER.wake();
}
