//! A line-oriented service on UART0: for now an echo of whole lines.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use board::{Input, Uart};

/// The longest line, with its newline; what is longer comes back in pieces.
const LINE: usize = 4096;

#[board::entry]
fn main() -> ! {
    let mut board = board::start();
    let mut line = Line { bytes: [0; LINE], length: 0 };
    let mut chunk = [0; 64];
    loop {
        match board.uart.read(&mut chunk) {
            Input::Bytes(count) => {
                for &byte in chunk.iter().take(count) {
                    if line.push(byte) {
                        write(&mut board.uart, line.take());
                    }
                }
            }
            Input::Empty => board.uart.wait(false),
            Input::End => break,
        }
    }
    while !board.uart.is_flushed() {}
    #[cfg(feature = "report")]
    report(&mut board.clock);
    board::exit()
}

struct Line {
    bytes: [u8; LINE],
    length: usize,
}

impl Line {
    /// True when the line is to go out.
    fn push(&mut self, byte: u8) -> bool {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
        byte == b'\n' || self.length >= LINE
    }

    fn take(&mut self) -> &[u8] {
        let length = core::mem::take(&mut self.length);
        self.bytes.get(..length).unwrap_or_default()
    }
}

fn write(uart: &mut Uart, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let count = uart.write(bytes);
        bytes = bytes.get(count..).unwrap_or_default();
        if count == 0 {
            uart.wait(true);
        }
    }
}

/// Says on standard error how long it took, and how much of the stack.
#[cfg(feature = "report")]
fn report(clock: &mut board::Clock) {
    board::log(b"time: ");
    log_number(clock.now() as usize);
    board::log(b" ms\n");
    board::log(b"stack: ");
    log_number(board::stack::used());
    board::log(b" of ");
    log_number(board::stack::size());
    board::log(b" bytes\n");
}

#[cfg(feature = "report")]
fn log_number(mut number: usize) {
    let mut digits = [0; 10];
    let mut length = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        length += 1;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    board::log(digits.get(digits.len() - length..).unwrap_or_default());
}
