//! Tests of `serve` and `serve_ticking` over wires in memory: cut at every byte, broken at every byte.

mod common;

use common::{Broken, Memory, Rx, SERVICE, State, Tx, call, conversation, ids, messages, opening, tick};
use mcp_sansio_embedded::{IoError, serve, serve_ticking};

fn served(rx: &mut Rx<'_>, tx: &mut Tx) -> Result<(), IoError<Broken>> {
    serve(rx, tx, &SERVICE, &mut State::default(), &mut Memory::new().session())
}

/// Returns the output without cuts and errors.
fn expected(input: &[u8]) -> Vec<u8> {
    let mut tx = Tx::new(usize::MAX);
    served(&mut Rx::new(input, usize::MAX), &mut tx).unwrap();
    assert_eq!(tx.flushed, tx.bytes.len());
    tx.bytes
}

// spec: T002 T063 T065 T072
#[test]
fn pieces_of_any_size_give_the_same_answers() {
    let input = conversation();
    let whole = expected(&input);
    assert_eq!(ids(&whole), [0, 1, 2, 3, 4]);
    assert_eq!(messages(&whole).len(), 8, "and three refusals");
    for piece in 1..100 {
        let mut tx = Tx::new(1 + piece * 7 % 50);
        served(&mut Rx::new(&input, piece), &mut tx).unwrap();
        assert_eq!(tx.bytes, whole, "pieces of {piece}");
    }
}

#[test]
fn an_error_at_any_byte_that_is_read_loses_nothing() {
    let input = conversation();
    let whole = expected(&input);
    for at in 0..=input.len() {
        let (mut rx, mut tx) = (Rx::new(&input, 5), Tx::new(usize::MAX));
        rx.fails_at = Some(at);
        let (mut memory, mut state) = (Memory::new(), State::default());
        let mut session = memory.session();
        assert_eq!(serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session), Err(IoError::Read(Broken)), "at {at}");
        serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session).unwrap();
        assert_eq!(tx.bytes, whole, "at {at}");
    }
}

#[test]
fn an_error_at_any_byte_that_is_written_loses_nothing() {
    let input = conversation();
    let whole = expected(&input);
    for at in (0..whole.len()).step_by(11) {
        let (mut rx, mut tx) = (Rx::new(&input, 100), Tx::new(3));
        tx.fails_at = Some(at);
        let (mut memory, mut state) = (Memory::new(), State::default());
        let mut session = memory.session();
        assert_eq!(serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session), Err(IoError::Write(Broken)), "at {at}");
        serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session).unwrap();
        assert_eq!(tx.bytes, whole, "at {at}");
    }
}

#[test]
fn a_byte_lost_anywhere_loses_one_message_only() {
    let (before, hurt, behind) = (call(1, "hello"), call(2, "hello"), call(3, "hello"));
    // The newline is excluded: without it two messages would become one line.
    for at in 0..hurt.len() - 1 {
        let mut hurt = hurt.clone();
        hurt.remove(at);
        let input = opening() + &before + &hurt + &behind;
        let found = ids(&expected(input.as_bytes()));
        assert!(found.contains(&1) && found.contains(&3), "{at}: {found:?}");
    }
}

#[test]
fn a_flush_that_failed_is_made_up_for() {
    let input = call(1, "hello");
    let (mut rx, mut tx) = (Rx::new(input.as_bytes(), 1000), Tx::new(1000));
    let (mut memory, mut state) = (Memory::new(), State::default());
    let mut session = memory.session();
    tx.flush_fails = true;
    assert_eq!(serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session), Err(IoError::Write(Broken)));
    serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session).unwrap();
    assert_eq!(tx.flushed, tx.bytes.len());
    // The same with ticks, and before anything is read.
    let (mut rx, mut tx) = (Rx::new(input.as_bytes(), 1000), Tx::new(1000));
    (tx.flush_fails, rx.fails_at) = (true, Some(0));
    let mut serve_once = || serve_ticking(&mut rx, &mut tx, &SERVICE, &mut state, &mut session, tick);
    assert_eq!(serve_once(), Err(IoError::Write(Broken)));
    assert_eq!(serve_once(), Err(IoError::Read(Broken)));
    serve_once().unwrap();
}

#[test]
fn a_writer_that_takes_nothing_does_not_spin() {
    let input = conversation();
    assert_eq!(served(&mut Rx::new(&input, 100), &mut Tx::new(0)), Err(IoError::Zero));
}

#[test]
fn buffers_that_are_too_small_are_told() {
    use mcp_sansio::{
        frame::LineBuffer,
        line_server::LineServer,
        server::{RequestSlot, Server},
        sink::LineSink,
        sink::SliceStorage,
    };
    let input = conversation();
    // With room for all the input, only the answers do not fit.
    let all = input.len();
    for (read, write, good) in
        [(0, 512, false), (512, 0, false), (512, 1, false), (all, 0, false), (512, 256, true), (1, 256, true)]
    {
        let (mut read_to, mut write_to, mut slots) = (vec![0; read], vec![0; write], [RequestSlot::FREE; 2]);
        let mut session = LineServer::new(
            LineBuffer::new(&mut read_to[..]),
            Server::new(&mut slots),
            LineSink::new(SliceStorage::new(&mut write_to)),
        );
        let (rx, tx) = (Rx::new(&input, 7), Tx::new(100));
        let done = serve(rx, tx, &SERVICE, &mut State::default(), &mut session);
        assert_eq!(done, if good { Ok(()) } else { Err(IoError::TooSmall) }, "{read} {write}");
    }
}

#[test]
fn what_is_late_is_answered_with_its_progress() {
    let input = opening() + &call(1, "wait") + &call(2, "hello");
    for (piece, waits) in [(1, false), (3, true), (1000, true)] {
        let (mut rx, mut tx) = (Rx::new(input.as_bytes(), piece), Tx::new(10));
        rx.waits = waits;
        let mut memory = Memory::new();
        serve_ticking(rx, &mut tx, &SERVICE, &mut State::default(), &mut memory.session(), tick).unwrap();
        let found = messages(&tx.bytes);
        let mut done = ids(&tx.bytes);
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2], "{piece}");
        assert!(found.iter().filter(|m| m["method"] == "notifications/progress").count() >= 2, "{found:?}");
        assert_eq!((tx.flushed, tx.idle), (tx.bytes.len(), 1), "but for the one in the beginning");
    }
}

#[test]
fn changes_are_told() {
    let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://status"}}"#;
    let input = opening() + subscribe + "\n" + &call(2, "touch") + &call(3, "hello");
    let mut tx = Tx::new(10);
    let rx = Rx::new(input.as_bytes(), 10);
    serve_ticking(rx, &mut tx, &SERVICE, &mut State::default(), &mut Memory::new().session(), tick).unwrap();
    assert!(messages(&tx.bytes).iter().any(|m| m["method"] == "notifications/resources/updated"));
}

#[test]
fn without_ticks_what_was_put_off_is_an_error_at_the_end() {
    let found = messages(&expected((opening() + &call(1, "wait")).as_bytes()));
    assert!(found[1]["error"].is_object(), "{found:?}");
}

/// Lent `'static` buffers cannot be lent again: a session whose input has ended is used for the next client.
#[test]
fn a_session_that_has_ended_begins_anew() {
    let (mut memory, mut state) = (Memory::new(), State::default());
    let mut session = memory.session();
    let input = conversation();
    for _ in 0..3 {
        let mut tx = Tx::new(10);
        serve(Rx::new(&input, 5), &mut tx, &SERVICE, &mut state, &mut session).unwrap();
        assert_eq!(tx.bytes, expected(&input));
        let mut tx = Tx::new(10);
        serve_ticking(Rx::new(&input, 5), &mut tx, &SERVICE, &mut state, &mut session, tick).unwrap();
        assert_eq!(tx.bytes, expected(&input));
    }
}

#[test]
fn errors_say_what_failed_and_of_what_kind() {
    use embedded_io::{Error as _, ErrorKind};
    let rows: [(IoError<Broken>, &str, ErrorKind); 4] = [
        (IoError::Read(Broken), "reading failed: broken", ErrorKind::Other),
        (IoError::Write(Broken), "writing failed: broken", ErrorKind::Other),
        (IoError::Zero, "the writer took nothing", ErrorKind::WriteZero),
        (IoError::TooSmall, "a buffer of the session is too small", ErrorKind::OutOfMemory),
    ];
    for (error, words, kind) in rows {
        assert_eq!((error.to_string().as_str(), error.kind()), (words, kind));
    }
}
