//! Tests of the loops over embedded-io-async: the same answers as the blocking loops, and no dropped read.

mod common;

use std::collections::VecDeque;

use common::{Broken, Memory, Rx, SERVICE, State, Tx, call, conversation, ids, messages, opening, tick};
use futures_lite::future::{block_on, yield_now};
use mcp_sansio_embedded::IoError;
use mcp_sansio_embedded::asynch::{DeadlineTicks, drive, serve, serve_ticking};

/// A reader whose reads wait. It fails the test if a read is dropped half way.
struct Slow<'b>(Rx<'b>);

struct Whole(bool);

impl Drop for Whole {
    fn drop(&mut self) {
        assert!(self.0 || std::thread::panicking(), "a read was dropped");
    }
}

impl embedded_io::ErrorType for Slow<'_> {
    type Error = Broken;
}

impl embedded_io_async::Read for Slow<'_> {
    async fn read(&mut self, place: &mut [u8]) -> Result<usize, Broken> {
        let mut whole = Whole(false);
        for _ in 0..3 {
            yield_now().await;
        }
        whole.0 = true;
        self.0.next(place)
    }
}

struct SlowTx(Tx);

impl embedded_io::ErrorType for SlowTx {
    type Error = Broken;
}

impl embedded_io_async::Write for SlowTx {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        yield_now().await;
        self.0.take(bytes)
    }
    async fn flush(&mut self) -> Result<(), Broken> {
        self.0.flush_now()
    }
}

fn expected(input: &[u8]) -> Vec<u8> {
    let mut tx = Tx::new(usize::MAX);
    let rx = Rx::new(input, usize::MAX);
    mcp_sansio_embedded::serve(rx, &mut tx, &SERVICE, &mut State::default(), &mut Memory::new().session()).unwrap();
    tx.bytes
}

#[test]
fn pieces_of_any_size_give_the_same_answers() {
    let input = conversation();
    let whole = expected(&input);
    for piece in (1..60).step_by(3) {
        let mut tx = SlowTx(Tx::new(1 + piece * 7 % 50));
        let (mut memory, mut state) = (Memory::new(), State::default());
        let mut session = memory.session();
        let rx = Slow(Rx::new(&input, piece));
        block_on(serve(rx, &mut tx, &SERVICE, &mut state, &mut session)).unwrap();
        assert_eq!(tx.0.bytes, whole, "pieces of {piece}");

        let mut tx = SlowTx(Tx::new(1 + piece * 7 % 50));
        let (mut memory, mut chunk) = (Memory::new(), vec![0; 1 + piece % 13]);
        let mut ticks = DeadlineTicks::new(
            &mut chunk,
            async || yield_now().await,
            |(), state: &mut _, session: &mut _| {
                tick(state, session);
            },
        );
        let rx = Slow(Rx::new(&input, piece));
        block_on(serve_ticking(rx, &mut tx, &SERVICE, &mut state, &mut memory.session(), &mut ticks)).unwrap();
        assert_eq!(tx.0.bytes, whole, "pieces of {piece}, ticking");
        assert_eq!(tx.0.flushed, whole.len());
    }
}

#[test]
fn a_session_that_has_ended_begins_anew() {
    let (mut memory, mut state, mut chunk) = (Memory::new(), State::default(), [0; 8]);
    let mut session = memory.session();
    let input = conversation();
    let mut ticks = DeadlineTicks::new(
        &mut chunk,
        async || yield_now().await,
        |(), state: &mut _, session: &mut _| {
            tick(state, session);
        },
    );
    for _ in 0..3 {
        let mut tx = SlowTx(Tx::new(10));
        block_on(serve(Slow(Rx::new(&input, 5)), &mut tx, &SERVICE, &mut state, &mut session)).unwrap();
        assert_eq!(tx.0.bytes, expected(&input));
        let (rx, mut tx) = (Slow(Rx::new(&input, 5)), SlowTx(Tx::new(10)));
        block_on(serve_ticking(rx, &mut tx, &SERVICE, &mut state, &mut session, &mut ticks)).unwrap();
        assert_eq!(tx.0.bytes, expected(&input));
    }
}

/// Bytes that are left after an error are dropped with their client.
#[test]
fn bytes_that_were_read_go_with_their_client() {
    let input = opening() + &call(1, "hello") + "{\"half a line";
    let next = opening() + &call(2, "hello");
    let (mut memory, mut state, mut chunk) = (Memory::new(), State::default(), [0; 4096]);
    let mut session = memory.session();
    let mut ticks = DeadlineTicks::new(&mut chunk, core::future::pending, |(), _: &mut _, _: &mut _| {});
    // The first answer fails while a line and a half wait behind it.
    let mut tx = SlowTx(Tx::new(9));
    tx.0.fails_at = Some(40);
    let rx = Forever(Rx::new(input.as_bytes(), 4096));
    let failed = block_on(serve_ticking(rx, &mut tx, &SERVICE, &mut state, &mut session, &mut ticks));
    assert_eq!(failed, Err(IoError::Write(Broken)));
    session.new_peer();
    ticks.new_peer();
    let mut tx = SlowTx(Tx::new(9));
    let rx = Slow(Rx::new(next.as_bytes(), 100));
    block_on(serve_ticking(rx, &mut tx, &SERVICE, &mut state, &mut session, &mut ticks)).unwrap();
    assert_eq!(tx.0.bytes, expected(next.as_bytes()));
}

#[test]
fn an_error_at_any_byte_loses_nothing() {
    let input = conversation();
    let whole = expected(&input);
    for at in (0..whole.len()).step_by(41) {
        let (mut rx, mut tx) = (Slow(Rx::new(&input, 100)), SlowTx(Tx::new(3)));
        (rx.0.fails_at, tx.0.fails_at) = (Some(at.min(input.len())), Some(at));
        let (mut memory, mut state, mut chunk) = (Memory::new(), State::default(), [0; 300]);
        let mut session = memory.session();
        let mut ticks = DeadlineTicks::new(&mut chunk, core::future::pending, |(), _: &mut _, _: &mut _| {});
        let mut failures = VecDeque::new();
        while let Err(error) = block_on(serve_ticking(&mut rx, &mut tx, &SERVICE, &mut state, &mut session, &mut ticks))
        {
            failures.push_back(error);
            assert!(failures.len() <= 2, "{failures:?}");
        }
        assert!(failures.contains(&IoError::Write(Broken)) && failures.contains(&IoError::Read(Broken)), "at {at}");
        assert_eq!(tx.0.bytes, whole, "at {at}");
    }
}

#[test]
fn a_flush_that_failed_is_made_up_for() {
    let input = opening() + &call(1, "hello");
    let (mut rx, mut tx) = (Slow(Rx::new(input.as_bytes(), 1000)), SlowTx(Tx::new(1000)));
    let (mut memory, mut state) = (Memory::new(), State::default());
    let mut session = memory.session();
    tx.0.flush_fails = true;
    let mut serve_once = |tx: &mut SlowTx| block_on(serve(&mut rx, tx, &SERVICE, &mut state, &mut session));
    assert_eq!(serve_once(&mut tx), Err(IoError::Write(Broken)));
    // Before anything is read.
    assert_eq!(tx.0.bytes, b"");
    serve_once(&mut tx).unwrap();
    assert_eq!(tx.0.flushed, tx.0.bytes.len());
    assert_eq!(ids(&tx.0.bytes), [0, 1]);
    // The same with ticks.
    let (mut rx, mut chunk) = (Slow(Rx::new(input.as_bytes(), 1000)), [0; 8]);
    (tx.0.flush_fails, rx.0.fails_at) = (true, Some(0));
    let mut ticks = DeadlineTicks::new(&mut chunk, core::future::pending, |(), _: &mut _, _: &mut _| {});
    let mut serve_once = || block_on(serve_ticking(&mut rx, &mut tx, &SERVICE, &mut state, &mut session, &mut ticks));
    assert_eq!(serve_once(), Err(IoError::Write(Broken)));
    assert_eq!(serve_once(), Err(IoError::Read(Broken)));
    serve_once().unwrap();
}

#[test]
fn what_is_late_is_answered_with_its_progress() {
    let input = opening() + &call(1, "wait") + &call(2, "hello");
    let mut tx = SlowTx(Tx::new(10));
    let (mut memory, mut state, mut chunk) = (Memory::new(), State::default(), [0; 8]);
    let mut ticks = DeadlineTicks::new(
        &mut chunk,
        async || yield_now().await,
        |(), state: &mut _, session: &mut _| {
            tick(state, session);
        },
    );
    let rx = Slow(Rx::new(input.as_bytes(), 4));
    block_on(serve_ticking(rx, &mut tx, &SERVICE, &mut state, &mut memory.session(), &mut ticks)).unwrap();
    assert_eq!(ids(&tx.0.bytes), [0, 1, 2]);
    assert!(messages(&tx.0.bytes).iter().filter(|m| m["method"] == "notifications/progress").count() >= 2);
}

#[test]
fn chunks_and_buffers_that_are_too_small_are_told() {
    let input = conversation();
    let (mut memory, mut state) = (Memory::new(), State::default());
    let mut ticks = DeadlineTicks::new(&mut [], core::future::pending, |(), _: &mut _, _: &mut _| {});
    let (rx, tx) = (Slow(Rx::new(&input, 100)), SlowTx(Tx::new(3)));
    let done = block_on(serve_ticking(rx, tx, &SERVICE, &mut state, &mut memory.session(), &mut ticks));
    assert_eq!(done, Err(IoError::TooSmall));
}

#[test]
fn a_session_without_room_for_its_answers_is_told() {
    use mcp_sansio::{
        frame::LineBuffer,
        line_server::LineServer,
        server::{RequestSlot, Server},
        sink::{LineSink, SliceStorage},
    };
    let input = conversation();
    for (read, write, good) in [(512, 0, false), (input.len(), 0, false), (512, 1, false), (512, 256, true)] {
        let (mut read_to, mut write_to, mut slots) = (vec![0; read], vec![0; write], [RequestSlot::FREE; 2]);
        let mut session = LineServer::new(
            LineBuffer::new(&mut read_to[..]),
            Server::new(&mut slots),
            LineSink::new(SliceStorage::new(&mut write_to)),
        );
        let (rx, tx) = (Slow(Rx::new(&input, 7)), SlowTx(Tx::new(100)));
        let done = block_on(serve(rx, tx, &SERVICE, &mut State::default(), &mut session));
        assert_eq!(done, if good { Ok(()) } else { Err(IoError::TooSmall) }, "{read} {write}");
    }
}

#[test]
fn a_session_without_room_for_its_input_is_told() {
    use mcp_sansio::{
        frame::LineBuffer,
        line_server::LineServer,
        server::{RequestSlot, Server},
        sink::{LineSink, SliceStorage},
    };
    let input = conversation();
    let (mut write_to, mut slots, mut chunk) = (vec![0; 512], [RequestSlot::FREE; 2], [0; 8]);
    let mut session = LineServer::new(
        LineBuffer::new(&mut [][..]),
        Server::new(&mut slots),
        LineSink::new(SliceStorage::new(&mut write_to)),
    );
    let mut ticks = DeadlineTicks::new(&mut chunk, core::future::pending, |(), _: &mut _, _: &mut _| {});
    let (rx, tx, mut state) = (Slow(Rx::new(&input, 100)), SlowTx(Tx::new(3)), State::default());
    let done = block_on(serve_ticking(rx, tx, &SERVICE, &mut state, &mut session, &mut ticks));
    assert_eq!(done, Err(IoError::TooSmall));
}

#[test]
fn a_client_connects_calls_and_gives_up_in_time() {
    use mcp_sansio::client::{
        Client, ClientEvent, ClientHandle, ClientInfo, LineClient, PendingRequest, Request, RequestError,
        TransportError,
    };
    use mcp_sansio::{frame::LineBuffer, sink::LineSink, sink::SliceStorage};

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
    let (mut input, mut output, mut held) = ([0; 1024], [0; 1024], [0; 256]);
    let mut slots = [PendingRequest::FREE; 2];
    let client = Client::new(&PROFILE, &mut slots).held(&mut held).timeout(3_000);
    let mut session =
        LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
    session.client.connect();
    // The server only sends its first answer: the call gets none.
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\
                 \"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}}\n";
    let (mut connected, mut lost, mut deadlines, mut now) = (false, false, 0, 0);
    let done = std::cell::Cell::new(false);
    let mut handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| match event {
        ClientEvent::Connected(_) => {
            connected = true;
            handle.send(&Request::call("sleep")).unwrap();
        }
        ClientEvent::Done { outcome: Err(RequestError::Lost(TransportError::TimedOut)), .. } => {
            lost = true;
            done.set(true);
        }
        _ => {}
    };
    let mut chunk = [0; 16];
    let mut ticks = DeadlineTicks::new(
        &mut chunk,
        async |deadline: Option<u64>| {
            yield_now().await;
            deadline
        },
        |deadline: Option<Option<u64>>, _: &mut LineClient<'_, _>| {
            now += 50;
            deadlines += u32::from(deadline.flatten().is_some());
            (!done.get()).then_some(now)
        },
    );
    let (rx, mut tx) = (Forever(Rx::new(hello.as_bytes(), 7)), SlowTx(Tx::new(9)));
    // A flush that failed is made up for in the beginning.
    tx.0.flush_fails = true;
    let failed = block_on(drive(Slow(Rx::new(b"", 1)), &mut tx, &mut session, &mut handler, &mut ticks));
    assert_eq!((failed, tx.0.bytes.len()), (Err(IoError::Write(Broken)), 0));
    block_on(drive(rx, &mut tx, &mut session, &mut handler, &mut ticks)).unwrap();
    assert!(connected && lost && deadlines > 0 && now < 10_000, "{now}");
}

/// The wire ends: what waits for an answer ends too.
#[test]
fn the_end_of_the_wire_ends_requests() {
    use mcp_sansio::client::{
        Client, ClientEvent, ClientHandle, ClientInfo, LineClient, PendingRequest, Request, RequestError,
        TransportError,
    };
    use mcp_sansio::{frame::LineBuffer, sink::LineSink, sink::SliceStorage};

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
    let (mut input, mut output, mut held) = ([0; 1024], [0; 1024], [0; 256]);
    let mut slots = [PendingRequest::FREE; 2];
    let client = Client::new(&PROFILE, &mut slots).held(&mut held).timeout(1_000_000);
    let mut session =
        LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
    session.client.connect();
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\
                 \"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}}\n";
    let mut closed = false;
    let mut handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| match event {
        ClientEvent::Connected(_) => drop(handle.send(&Request::call("sleep")).unwrap()),
        ClientEvent::Done { outcome, .. } => {
            closed = matches!(outcome, Err(RequestError::Lost(TransportError::Closed)));
        }
        _ => {}
    };
    let (mut chunk, mut now) = ([0; 16], 0);
    let mut ticks = DeadlineTicks::new(
        &mut chunk,
        async |_: Option<u64>| yield_now().await,
        |_: Option<()>, _: &mut LineClient<'_, _>| {
            now += 1;
            (now < 1_000).then_some(now)
        },
    );
    let (rx, tx) = (Slow(Rx::new(hello.as_bytes(), 7)), SlowTx(Tx::new(9)));
    block_on(drive(rx, tx, &mut session, &mut handler, &mut ticks)).unwrap();
    assert!(closed && now < 1_000);
}

/// A reader that never reports the end of the input.
struct Forever<'b>(Rx<'b>);

impl embedded_io::ErrorType for Forever<'_> {
    type Error = Broken;
}

impl embedded_io_async::Read for Forever<'_> {
    async fn read(&mut self, place: &mut [u8]) -> Result<usize, Broken> {
        match self.0.next(place)? {
            0 => core::future::pending().await,
            n => Ok(n),
        }
    }
}
