//! What the fuzz target and the tests run: any bytes, however they are cut, have the same outcome.

use mcp_sansio::sink::{Kind, Out, Sink};

use super::{BodyOut, Connection, Limits, Status, Step};

/// Feeds `input` in pieces as long as `cuts` says, over and over, through a connection with stores of these sizes (at
/// most 4096 each), and tells everything that happened to `note`. Requests are answered as their path asks.
pub fn run(input: &[u8], cuts: &[u8], sizes: (usize, usize), limits: Limits, note: &mut dyn FnMut(&[u8])) {
    let (mut first, mut second) = ([0; 4096], [0; 4096]);
    let (Some(first), Some(second)) = (first.get_mut(..sizes.0), second.get_mut(..sizes.1)) else { return };
    let mut connection = Connection::<8>::new(first, second, limits);
    let mut rest = input;
    let mut cuts = cuts.iter().cycle();
    loop {
        match connection.step(0) {
            Step::Request => answer(&mut connection, note),
            Step::Expect => note(b"\nexpect "),
            Step::Close => break,
            Step::Read | Step::Answering | Step::Write | Step::Shut => {
                send(&mut connection, note);
                if rest.is_empty() && connection.input_ended() {
                    break;
                }
                read(&mut connection, &mut rest, cuts.next().copied().unwrap_or(0));
            }
        }
    }
    send(&mut connection, note);
    note(if connection.step(0) == Step::Close { b"\nclosed" } else { b"\nopen" });
}

/// The same in 64 bits, for comparing.
#[must_use]
pub fn digest(input: &[u8], cuts: &[u8], sizes: (usize, usize), limits: Limits) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    run(input, cuts, sizes, limits, &mut |bytes| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    });
    hash
}

/// The body of the fuzz target: the first bytes are sizes and cuts.
///
/// # Panics
/// If it makes a difference how the input is cut.
pub fn fuzz(data: &[u8]) {
    let Some((setup, input)) = data.split_first_chunk::<8>() else { return };
    let [input_size, output_size, head, body, cuts @ ..] = setup;
    let sizes = (usize::from(*input_size) * 8, usize::from(*output_size) * 8);
    let limits =
        Limits::DEFAULT.head(usize::from(*head) * 4).line(usize::from(*head)).body(usize::from(*body) * 4).drain(64);
    let whole = digest(input, &[], sizes, limits);
    assert_eq!(whole, digest(input, cuts, sizes, limits), "cut at random");
    assert_eq!(whole, digest(input, &[1], sizes, limits), "byte by byte");
}

/// `cut` 0 is as much as there is room for.
fn read(connection: &mut Connection<'_, 8>, rest: &mut &[u8], cut: u8) {
    if rest.is_empty() {
        connection.end_of_input();
        return;
    }
    let space = connection.space();
    let wanted = if cut == 0 { rest.len() } else { usize::from(cut) };
    let n = space.len().min(wanted).min(rest.len());
    if space.is_empty() {
        *rest = &[]; // nothing will ever take it
    }
    let Some((now, later)) = rest.split_at_checked(n) else { return };
    for (to, from) in space.iter_mut().zip(now) {
        *to = *from;
    }
    *rest = later;
    connection.filled(n);
}

fn send(connection: &mut Connection<'_, 8>, note: &mut dyn FnMut(&[u8])) {
    let pending = connection.pending();
    note(pending);
    let n = pending.len();
    connection.sent(n);
}

fn answer(connection: &mut Connection<'_, 8>, note: &mut dyn FnMut(&[u8])) {
    // What was answered before goes first, so that room does not depend on the cuts.
    send(connection, note);
    let Some((request, answer)) = connection.exchange() else { return };
    for part in ["\n", request.head.method(), " ", request.head.path(), " ", request.head.query().unwrap_or("-"), " "] {
        note(part.as_bytes());
    }
    note(request.head.host().unwrap_or("-").as_bytes());
    for (name, value) in request.head.iter() {
        for part in [b" ", name.as_bytes(), b"=", value] {
            note(part);
        }
    }
    note(b" <");
    note(request.body);
    note(b">\n");
    let done = match request.head.path() {
        "/stream" => answer.stream(&[("X-Id", "7")]).and_then(|()| {
            let put = answer.put(b"data: 1\n\n");
            answer.end_stream();
            put
        }),
        "/json" | "/windows" => {
            let kind = if request.head.path() == "/json" { Kind::Result } else { Kind::Streamed };
            let mut out = BodyOut::new(answer, &|_| Status::OK, &[]);
            let begun = out.begin(kind);
            if begun.is_ok() {
                let _ = out.put(b"{\"a\":").and_then(|()| out.put(b"1}"));
                out.end();
            }
            begun
        }
        _ => answer.full(Status::ACCEPTED, &[], b""),
    };
    if done.is_err() && answer.is_owed() {
        connection.close();
        let _ = connection.answer().full(Status::INTERNAL_SERVER_ERROR, &[], b"");
        note(b"full");
        // A store without room for even that: nothing more can be said.
        connection.end_of_input();
        connection.consume();
    }
}
