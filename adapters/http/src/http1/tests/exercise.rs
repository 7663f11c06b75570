//! Runs a connection for the fuzz target and the tests: any input, cut at any places, has the same outcome.

use mcp_sansio::sink::Sink;

use super::{Connection, ConnectionLimits, ConnectionStep, RequestHeaders, Status};

/// Feeds `input` through a connection with stores of these sizes (at most 4096 each), in pieces as long as `cuts`
/// says, repeated. Reports each event to `note`. The path of a request says how to answer it.
pub(crate) fn run(
    input: &[u8],
    cuts: &[u8],
    sizes: (usize, usize),
    limits: ConnectionLimits,
    note: &mut dyn FnMut(&[u8]),
) {
    let (mut first, mut second) = ([0; 4096], [0; 4096]);
    let (Some(first), Some(second)) = (first.get_mut(..sizes.0), second.get_mut(..sizes.1)) else { return };
    let mut connection = Connection::<8>::new(first, second, limits);
    let mut rest = input;
    let mut cuts = cuts.iter().cycle();
    loop {
        match connection.step(0) {
            ConnectionStep::Request => answer(&mut connection, note),
            ConnectionStep::Expect => note(b"\nexpect "),
            ConnectionStep::Close => break,
            _ => {
                send(&mut connection, note);
                if rest.is_empty() && connection.ended {
                    break;
                }
                read(&mut connection, &mut rest, cuts.next().copied().unwrap_or(0));
            }
        }
    }
    send(&mut connection, note);
    note(if connection.step(0) == ConnectionStep::Close { b"\nclosed" } else { b"\nopen" });
}

/// Returns a 64-bit hash of the events, for comparing.
#[must_use]
pub(crate) fn digest(input: &[u8], cuts: &[u8], sizes: (usize, usize), limits: ConnectionLimits) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    run(input, cuts, sizes, limits, &mut |bytes| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    });
    hash
}

/// Runs the fuzz target: the first bytes are sizes and cuts.
///
/// # Panics
/// If the outcome depends on the cuts.
pub(crate) fn fuzz(data: &[u8]) {
    let Some((setup, input)) = data.split_first_chunk::<8>() else { return };
    let [input_size, output_size, head, body, cuts @ ..] = setup;
    let sizes = (usize::from(*input_size) * 8, usize::from(*output_size) * 8);
    let limits = ConnectionLimits::DEFAULT
        .head(usize::from(*head) * 4)
        .line(usize::from(*head))
        .body(usize::from(*body) * 4)
        .drain(64);
    let whole = digest(input, &[], sizes, limits);
    assert_eq!(whole, digest(input, cuts, sizes, limits), "cut at random");
    assert_eq!(whole, digest(input, &[1], sizes, limits), "byte by byte");
}

/// Reads the next piece; `cut` 0 reads as much as there is room for.
fn read(connection: &mut Connection<'_, 8>, rest: &mut &[u8], cut: u8) {
    if rest.is_empty() {
        connection.ended = true;
        return;
    }
    let space = connection.space();
    let wanted = if cut == 0 { rest.len() } else { usize::from(cut) };
    let n = space.len().min(wanted).min(rest.len());
    if space.is_empty() {
        *rest = &[]; // the connection takes no more bytes
    }
    let Some((now, later)) = rest.split_at_checked(n) else { return };
    mcp_sansio::sink::copy(space, now);
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
    // Earlier answers go first, so that the room does not depend on the cuts.
    send(connection, note);
    let Some((request, answer)) = connection.exchange() else { return };
    for part in ["\n", request.head.method(), " ", request.head.path(), " ", request.head.query().unwrap_or("-"), " "] {
        note(part.as_bytes());
    }
    note(request.head.host().unwrap_or("-").as_bytes());
    request.head.all(&mut |name, value| [&b" "[..], name, b"=", value].into_iter().for_each(&mut *note));
    note(b" <");
    note(request.body.unwrap());
    note(b">\n");
    let done = match request.head.path() {
        "/stream" => answer.stream(&[("X-Id", "7")]).and_then(|()| {
            let put = answer.put(b"data: 1\n\n");
            answer.end_stream();
            put
        }),
        "/json" => answer.full(Status::OK, &[("Content-Type", "application/json")], b"{\"a\":1}"),
        _ => answer.full(Status::ACCEPTED, &[], b""),
    };
    if done.is_err() && answer.is_owed() {
        connection.close();
        let _ = connection.answer.full(Status::INTERNAL_SERVER_ERROR, &[], b"");
        note(b"full");
        // The store has no room even for that: the connection ends.
        connection.ended = true;
        connection.consume();
    }
}
