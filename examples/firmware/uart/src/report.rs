//! Reports on standard error at the end: the time taken, and the use of the stack.

use board::Clock;

pub(crate) fn report(clock: &mut Clock) {
    board::log(b"time: ");
    log_number(clock.now() as usize);
    board::log(b" ms\n");
    board::log(b"stack: ");
    log_number(board::stack::used());
    board::log(b" of ");
    log_number(board::stack::size());
    board::log(b" bytes\n");
}

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
