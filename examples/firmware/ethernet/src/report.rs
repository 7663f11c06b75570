//! Reports the use of resources on standard error every second.

use mcp_sansio::server::Millis;

use crate::Endpoint;

const EVERY_MILLIS: Millis = 1_000;

/// Prints the report when it is due.
pub(crate) struct Report {
    due: Millis,
}

impl Report {
    pub(crate) const fn new() -> Self {
        Report { due: 0 }
    }

    pub(crate) fn tell(&mut self, now: Millis, endpoint: &Endpoint, free_sockets: usize) {
        if now < self.due {
            return;
        }
        self.due = now + EVERY_MILLIS;
        let (in_flight, sessions, streams) = endpoint.load();
        for (name, number) in [
            ("requests: ", in_flight),
            (", sessions: ", sessions),
            (", streams: ", streams),
            (", free sockets: ", free_sockets),
            (", stack: ", board::stack::used()),
        ] {
            board::log(name.as_bytes());
            log_number(number);
        }
        board::log(b"\n");
    }
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
