//! Tests of `client::drive` against a server on the other end of a wire in memory.

mod common;

use std::cell::RefCell;
use std::convert::Infallible;

use common::{Connection, Memory, SERVICE, State, tick};
use mcp_sansio::client::{Client, ClientEvent, ClientHandle, ClientInfo, LineClient, PendingRequest, Request};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_embedded::IoError;
use mcp_sansio_embedded::client::drive;

/// The server's end; both halves of the client's wire are references to it.
struct Peer<'m> {
    session: Connection<'m>,
    state: State,
    piece: usize,
}

struct Half<'p, 'm>(&'p RefCell<Peer<'m>>);

impl embedded_io::ErrorType for Half<'_, '_> {
    type Error = Infallible;
}

impl embedded_io::Write for Half<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        let peer = &mut *self.0.borrow_mut();
        let space = peer.session.space();
        let n = bytes.len().min(peer.piece).min(space.len());
        space[..n].copy_from_slice(&bytes[..n]);
        peer.session.filled(n);
        Ok(n)
    }
    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl embedded_io::ReadReady for Half<'_, '_> {
    fn read_ready(&mut self) -> Result<bool, Infallible> {
        let peer = &mut *self.0.borrow_mut();
        tick(&mut peer.state, &mut peer.session);
        let _ = peer.session.run(&SERVICE, &mut peer.state);
        Ok(!peer.session.out.pending().is_empty())
    }
}

impl embedded_io::Read for Half<'_, '_> {
    fn read(&mut self, place: &mut [u8]) -> Result<usize, Infallible> {
        let peer = &mut *self.0.borrow_mut();
        let n = place.len().min(peer.piece).min(peer.session.out.pending().len());
        place[..n].copy_from_slice(&peer.session.out.pending()[..n]);
        peer.session.out.sent(n);
        Ok(n)
    }
}

/// The wire ends: what waits for an answer ends too.
#[test]
fn the_end_of_the_wire_ends_requests() {
    use mcp_sansio::client::{RequestError, TransportError};
    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\
                 \"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}}\n";
    let (mut input, mut output, mut held) = ([0; 1024], [0; 1024], [0; 256]);
    let mut slots = [PendingRequest::FREE; 2];
    let client = Client::new(&PROFILE, &mut slots).held(&mut held).timeout(10_000);
    let mut session =
        LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
    session.client.connect();
    let mut closed = false;
    let mut handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| match event {
        ClientEvent::Connected(_) => drop(handle.send(&Request::call("wait")).unwrap()),
        ClientEvent::Done { outcome, .. } => {
            closed = matches!(outcome, Err(RequestError::Lost(TransportError::Closed)));
        }
        _ => {}
    };
    let mut turns = 0;
    drive(common::Rx::new(hello.as_bytes(), 50), common::Tx::new(50), &mut session, &mut handler, |_| {
        turns += 1;
        (turns < 1_000).then_some(turns)
    })
    .unwrap();
    assert!(closed && turns < 1_000);
}

/// The bytes that an earlier call wrote are flushed first.
#[test]
fn a_flush_that_failed_is_made_up_for() {
    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
    let (mut input, mut output, mut slots) = ([0; 256], [0; 256], [PendingRequest::FREE; 1]);
    let client = Client::new(&PROFILE, &mut slots);
    let mut session =
        LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
    let mut tx = common::Tx::new(50);
    (tx.bytes, tx.flush_fails) = (b"written".to_vec(), true);
    let mut handler = |_: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {};
    let mut drive_once = || drive(common::Rx::new(b"", 50), &mut tx, &mut session, &mut handler, |_| None);
    assert_eq!(drive_once(), Err(IoError::Write(common::Broken)));
    assert_eq!(drive_once(), Ok(()));
    assert_eq!(tx.flushed, tx.bytes.len());
}

#[test]
fn connects_and_calls_whatever_the_pieces() {
    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");
    for piece in 1..40 {
        let mut memory = Memory::new();
        let peer = RefCell::new(Peer { session: memory.session(), state: State::default(), piece });
        let (mut input, mut output, mut held) = ([0; 1024], [0; 1024], [0; 256]);
        let mut slots = [PendingRequest::FREE; 2];
        let client = Client::new(&PROFILE, &mut slots).held(&mut held).timeout(10_000);
        let mut session =
            LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
        session.client.connect();
        let answer = RefCell::new(None);
        let mut handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| match event {
            ClientEvent::Connected(_) => drop(handle.send(&Request::call("wait")).unwrap()),
            ClientEvent::Done { outcome, .. } => *answer.borrow_mut() = Some(format!("{outcome:?}")),
            _ => {}
        };
        let mut now = 0;
        drive(Half(&peer), Half(&peer), &mut session, &mut handler, |_| {
            now += 1;
            (answer.borrow().is_none() && now < 10_000).then_some(now)
        })
        .unwrap();
        let answer = answer.into_inner().expect("an answer");
        assert!(answer.contains("waited"), "{answer}");
    }
}
