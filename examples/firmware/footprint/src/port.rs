//! The port: reads and writes the board's UART.

use board::{Board, Input};

/// UART0.
pub struct Port {
    board: Board,
    #[cfg(feature = "report")]
    ticks: u32,
}

impl Port {
    /// Opens UART0.
    pub fn open() -> Self {
        Port {
            board: board::start(),
            #[cfg(feature = "report")]
            ticks: 0,
        }
    }

    /// Reads the bytes that are there. `None` means the end of the input.
    #[cfg(not(feature = "report"))]
    pub fn read(&mut self, bytes: &mut [u8]) -> Option<usize> {
        match self.board.uart.read(bytes) {
            Input::Bytes(count) => Some(count),
            Input::Empty => Some(0),
            Input::End => None,
        }
    }

    /// Reads one message at a time, so that the measured work does not depend on the arrival of bytes. Lines of an
    /// HTTP head end with CR LF, messages with LF.
    #[cfg(feature = "report")]
    pub fn read(&mut self, bytes: &mut [u8]) -> Option<usize> {
        let mut before = 0;
        for (at, place) in bytes.iter_mut().enumerate() {
            let byte = core::slice::from_mut(place);
            loop {
                match self.board.uart.read(byte) {
                    Input::Bytes(_) => break,
                    Input::Empty => {}
                    Input::End => return (at > 0).then_some(at),
                }
            }
            if *place == b'\n' && before != b'\r' {
                return Some(at + 1);
            }
            before = *place;
        }
        Some(bytes.len())
    }

    /// Writes bytes, and returns how many were taken.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.board.uart.write(bytes)
    }

    /// Does the work on the bytes that were read, and measures it.
    #[inline]
    pub fn timed(&mut self, work: impl FnOnce()) {
        #[cfg(all(feature = "report", not(feature = "es256")))]
        {
            let ((), ticks) = board::timed(work);
            self.ticks += ticks;
        }
        // A signature takes many milliseconds, so whole milliseconds are counted.
        #[cfg(all(feature = "report", feature = "es256"))]
        {
            let before = self.board.clock.now();
            work();
            self.ticks += (self.board.clock.now() - before) as u32 * 50_000;
        }
        #[cfg(not(feature = "report"))]
        work();
    }

    /// Ends the program.
    pub fn close(self) -> ! {
        while !self.board.uart.is_flushed() {}
        #[cfg(feature = "report")]
        {
            log_number(b"stack: ", board::stack::used() as u32);
            log_number(b"ticks: ", self.ticks);
        }
        board::exit()
    }
}

#[cfg(feature = "report")]
fn log_number(name: &[u8], mut number: u32) {
    let mut digits = *b"          \n";
    for place in digits.iter_mut().rev().skip(1) {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    board::log(name);
    board::log(&digits);
}

/// Defines the entry point of a program.
#[doc(hidden)]
#[macro_export]
macro_rules! main {
    ($body:expr) => {
        $crate::board::entry!(run);

        fn run() -> ! {
            $body;
            #[allow(unreachable_code, reason = "some bodies end, others do not")]
            $crate::board::exit()
        }
    };
}
