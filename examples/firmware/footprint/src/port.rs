//! Where bytes come from and go to: the board's UART where there is a board, else two registers.

#[cfg(target_arch = "arm")]
pub use self::arm::Port;
#[cfg(not(target_arch = "arm"))]
pub use self::link_only::{Port, Static};
#[cfg(target_arch = "arm")]
pub use board::{Static, entry};

#[cfg(target_arch = "arm")]
mod arm {
    use board::{Board, Input};

    /// UART0.
    pub struct Port {
        board: Board,
        #[cfg(feature = "report")]
        ticks: u32,
    }

    impl Port {
        /// The one there is.
        pub fn open() -> Self {
            Port {
                board: board::start(),
                #[cfg(feature = "report")]
                ticks: 0,
            }
        }

        /// Bytes that have come; `None` when there will be no more.
        #[cfg(not(feature = "report"))]
        pub fn read(&mut self, bytes: &mut [u8]) -> Option<usize> {
            match self.board.uart.read(bytes) {
                Input::Bytes(count) => Some(count),
                Input::Empty => Some(0),
                Input::End => None,
            }
        }

        /// The same message by message, so that the work does not depend on when bytes come. Lines of an HTTP head end
        /// with CR LF, messages with LF.
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

        /// How many of the bytes were taken.
        pub fn write(&mut self, bytes: &[u8]) -> usize {
            self.board.uart.write(bytes)
        }

        /// Does the work on what was read.
        #[inline]
        pub fn timed(&mut self, work: impl FnOnce()) {
            #[cfg(feature = "report")]
            {
                let ((), ticks) = board::timed(work);
                self.ticks += ticks;
            }
            #[cfg(not(feature = "report"))]
            work();
        }

        /// The end of the program.
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
}

#[cfg(not(target_arch = "arm"))]
mod link_only {
    use core::cell::UnsafeCell;

    /// Two registers of a machine that does not exist.
    pub struct Port {
        register: *mut u8,
    }

    impl Port {
        /// The one there is.
        pub fn open() -> Self {
            Port { register: 0x1000_0000 as *mut u8 }
        }

        /// Bytes that have come; `None` when there will be no more.
        pub fn read(&mut self, bytes: &mut [u8]) -> Option<usize> {
            let place = bytes.first_mut()?;
            // SAFETY: this program is linked to be looked at; it is never run.
            *place = unsafe { self.register.read_volatile() };
            Some(1)
        }

        /// How many of the bytes were taken.
        pub fn write(&mut self, bytes: &[u8]) -> usize {
            for byte in bytes {
                // SAFETY: see above.
                unsafe { self.register.write_volatile(*byte) };
            }
            bytes.len()
        }

        /// Does the work on what was read.
        #[inline]
        pub fn timed(&mut self, work: impl FnOnce()) {
            work();
        }

        /// The end of the program.
        pub fn close(self) -> ! {
            loop {}
        }
    }

    /// A value in static memory.
    pub struct Static<T>(UnsafeCell<T>);

    // SAFETY: see above.
    unsafe impl<T: Send> Sync for Static<T> {}

    impl<T> Static<T> {
        /// A value that nobody has taken.
        pub const fn new(value: T) -> Self {
            Static(UnsafeCell::new(value))
        }

        /// The value.
        pub fn take(&'static self) -> Option<&'static mut T> {
            // SAFETY: see above.
            Some(unsafe { &mut *self.0.get() })
        }
    }

    core::arch::global_asm!(
        ".section .start, \"ax\"",
        ".globl _start",
        "_start:",
        "la sp, _stack_start",
        "call footprint_main",
        "1: j 1b",
        ".text",
    );

    #[panic_handler]
    #[inline(never)]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        loop {}
    }
}

/// The entry point of a program that is linked and not run.
#[doc(hidden)]
#[macro_export]
macro_rules! main {
    ($body:expr) => {
        #[cfg(target_arch = "arm")]
        #[$crate::entry]
        fn main() -> ! {
            $body;
            #[allow(unreachable_code, reason = "some bodies end, others do not")]
            loop {}
        }
        #[cfg(not(target_arch = "arm"))]
        #[unsafe(no_mangle)]
        extern "C" fn footprint_main() {
            $body;
        }
    };
}
