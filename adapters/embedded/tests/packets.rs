//! Tests of packets in place of bytes: empty packets from the host, answers that fill their last packet, clients
//! that leave inside a line.

mod common;

use std::cell::RefCell;
use std::collections::VecDeque;

use common::{Broken, Memory, SERVICE, State, call, conversation, opening};
use embedded_io::{Read, ReadReady, Write};
use mcp_sansio_embedded::packet::{PacketReader, PacketWriter};
use mcp_sansio_embedded::{IoError, serve, serve_ticking};

const PACKET: usize = 64;

/// The host's side of two bulk endpoints. It passes a transfer on only when the transfer is complete: after a short
/// packet, or after a fixed number of bytes.
struct Host {
    transfer: usize,
    coming: Vec<u8>,
    heard: Vec<u8>,
    says: VecDeque<Vec<u8>>,
}

impl Host {
    /// Creates a host. With `ends`, it also sends empty packets, which may follow a full packet.
    fn new(transfer: usize, said: &[u8], ends: bool) -> RefCell<Self> {
        let mut says: VecDeque<_> = said.chunks(PACKET).map(<[u8]>::to_vec).collect();
        if ends {
            // Empty packets at the beginning and after each packet.
            says = says.into_iter().flat_map(|packet| [Vec::new(), packet]).chain([Vec::new()]).collect();
        }
        RefCell::new(Host { transfer, coming: Vec::new(), heard: Vec::new(), says })
    }

    fn take(&mut self, packet: &[u8]) -> Result<(), Broken> {
        assert!(packet.len() <= PACKET);
        self.coming.extend_from_slice(packet);
        if packet.len() < PACKET || self.coming.len() >= self.transfer {
            self.heard.append(&mut self.coming);
        }
        Ok(())
    }

    /// Sends the next packet. If no packet is left, the host must have passed on all output of the device.
    fn say(&mut self, place: &mut [u8]) -> Result<usize, Broken> {
        let Some(packet) = self.says.pop_front() else {
            assert!(self.coming.is_empty(), "{} bytes stay with the host", self.coming.len());
            return Err(Broken);
        };
        place[..packet.len()].copy_from_slice(&packet);
        Ok(packet.len())
    }
}

/// Returns the output over a wire of bytes.
fn expected(input: &[u8]) -> Vec<u8> {
    let mut tx = common::Tx::new(usize::MAX);
    let mut input = input.to_vec();
    input.push(b'\n');
    serve(&input[..], &mut tx.bytes, &SERVICE, &mut State::default(), &mut Memory::new().session()).unwrap();
    tx.bytes
}

/// Returns a request whose answer has `answer` bytes.
fn ping(answer: usize) -> String {
    let id = "i".repeat(answer - "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"result\":{}}\n".len());
    format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n")
}

/// Returns the whole conversation, and requests whose answers fill one packet and two packets of a transfer, or
/// nearly do.
fn inputs() -> Vec<Vec<u8>> {
    let mut inputs: Vec<_> = (60..=100).map(|n| ping(n).into_bytes()).collect();
    inputs.extend([63, 64, 65].map(|n| (ping(n) + &ping(64)).into_bytes()));
    inputs.push([conversation(), b"\n".to_vec()].concat());
    inputs
}

#[test]
fn every_answer_arrives_before_the_next_read() {
    for input in inputs() {
        for (transfer, ends) in [(PACKET, false), (128, false), (128, true), (4096, true)] {
            let host = Host::new(transfer, &input, ends);
            let (mut packet, mut state, mut memory) = ([0; PACKET], State::default(), Memory::new());
            let rx = PacketReader::new(&mut packet, |place: &mut [u8]| host.borrow_mut().say(place).map(Some));
            let tx = PacketWriter::new(PACKET, |packet: &[u8]| host.borrow_mut().take(packet));
            let done = serve(rx, tx, &SERVICE, &mut state, &mut memory.session());
            assert_eq!(done, Err(IoError::Read(Broken)));
            assert_eq!(host.borrow().heard, expected(&input), "transfers of {transfer}");
        }
    }
}

#[test]
fn ready_is_said_once_a_packet_has_bytes() {
    let mut packets = VecDeque::from([None, Some(b"".to_vec()), None, Some(b"abc".to_vec()), None]);
    let mut packet = [0; PACKET];
    let mut rx = PacketReader::new(&mut packet, |place: &mut [u8]| {
        let Some(next) = packets.pop_front() else { return Err(Broken) };
        Ok(next.map(|packet| {
            place[..packet.len()].copy_from_slice(&packet);
            packet.len()
        }))
    });
    let mut place = [0; 2];
    assert_eq!(rx.read(&mut []), Ok(0), "and nothing is asked for");
    assert_eq!([(); 3].map(|()| rx.read_ready()), [Ok(false); 3]);
    assert_eq!([(); 2].map(|()| rx.read_ready()), [Ok(true); 2]);
    assert_eq!((rx.read(&mut place), place), (Ok(2), *b"ab"));
    assert_eq!((rx.read_ready(), rx.read(&mut place), place[0]), (Ok(true), Ok(1), b'c'));
    assert_eq!(rx.read_ready(), Ok(false));
    assert_eq!(rx.read(&mut place), Err(Broken));
}

#[test]
fn a_loop_that_does_not_wait_serves_packets() {
    let input = opening() + &call(1, "hello");
    let host = Host::new(128, input.as_bytes(), true);
    let (mut packet, mut looks, mut memory) = ([0; PACKET], 0, Memory::new());
    let rx = PacketReader::new(&mut packet, |place: &mut [u8]| {
        looks += 1;
        if looks % 3 == 0 { host.borrow_mut().say(place).map(Some) } else { Ok(None) }
    });
    let tx = PacketWriter::new(PACKET, |packet: &[u8]| host.borrow_mut().take(packet));
    let done = serve_ticking(rx, tx, &SERVICE, &mut State::default(), &mut memory.session(), |_, _| {});
    assert_eq!(done, Err(IoError::Read(Broken)));
    assert_eq!(host.borrow().heard, expected(input.as_bytes()));
}

#[test]
fn the_rest_of_a_line_is_not_joined_to_the_next_answer() {
    let sent = RefCell::new(Vec::new());
    let mut tx = PacketWriter::new(4, |packet: &[u8]| {
        if packet == b"FAIL" {
            return Err(Broken);
        }
        sent.borrow_mut().push(packet.to_vec());
        Ok(())
    });
    let packets = |tx: &mut PacketWriter<_, Broken>, bytes: &[u8]| {
        tx.write_all(bytes).unwrap();
        tx.flush().unwrap();
        std::mem::take(&mut *sent.borrow_mut())
    };
    tx.new_peer();
    assert_eq!(packets(&mut tx, b"abc\n"), [&b"abc\n"[..], b""], "nothing was begun");
    assert_eq!(packets(&mut tx, b""), [b""; 0], "a transfer ends once");
    tx.new_peer();
    assert_eq!(packets(&mut tx, b"abcdef"), [b"abcd".to_vec(), b"ef".to_vec()], "whole lines are not ended again");
    tx.new_peer();
    assert_eq!(packets(&mut tx, b"next\n"), [b"\n".to_vec(), b"next".to_vec(), b"\n".to_vec()]);
    // A packet may be sent although it failed.
    assert_eq!(tx.write(b"FAIL"), Err(Broken));
    tx.new_peer();
    assert_eq!(packets(&mut tx, b"new\n"), [b"\n".to_vec(), b"new\n".to_vec(), b"".to_vec()]);
    assert_eq!(tx.write(b""), Ok(0));
    assert_eq!(PacketWriter::new(0, |_: &[u8]| Err(Broken)).write(b"a"), Ok(0), "no packets, no bytes");
}

#[test]
fn what_was_received_of_the_client_before_is_dropped() {
    let host = Host::new(PACKET, b"half a line", false);
    let mut packet = [0; PACKET];
    let mut rx = PacketReader::new(&mut packet, |place: &mut [u8]| host.borrow_mut().say(place).map(Some));
    assert_eq!(rx.read(&mut [0; 4]), Ok(4));
    rx.new_peer();
    host.borrow_mut().says.push_back(b"new".to_vec());
    let mut place = [0; 8];
    assert_eq!((rx.read(&mut place), &place[..3]), (Ok(3), &b"new"[..]));
}

mod asynch {
    use super::*;
    use futures_lite::future::{block_on, or, poll_once, yield_now};
    use mcp_sansio_embedded::asynch::serve;
    use std::cell::Cell;

    #[test]
    fn every_answer_arrives_before_the_next_read() {
        for input in inputs() {
            for (transfer, ends) in [(PACKET, false), (128, false), (128, true), (4096, true)] {
                let host = Host::new(transfer, &input, ends);
                let (mut packet, mut state, mut memory) = ([0; PACKET], State::default(), Memory::new());
                let rx = PacketReader::new_async(&mut packet, async |place: &mut [u8]| {
                    yield_now().await;
                    host.borrow_mut().say(place)
                });
                let tx = PacketWriter::new_async(PACKET, async |packet: &[u8]| {
                    yield_now().await;
                    host.borrow_mut().take(packet)
                });
                let done = block_on(serve(rx, tx, &SERVICE, &mut state, &mut memory.session()));
                assert_eq!(done, Err(IoError::Read(Broken)));
                assert_eq!(host.borrow().heard, expected(&input), "transfers of {transfer}");
            }
        }
    }

    #[test]
    fn no_packets_no_bytes() {
        use embedded_io_async::Write;
        let mut tx = PacketWriter::new_async(0, async |_: &[u8]| Err(Broken));
        assert_eq!(block_on(tx.write(b"a")), Ok(0));
    }

    #[test]
    fn draining_drops_what_was_received() {
        use embedded_io_async::Read;
        let host = Host::new(PACKET, b"half a line", false);
        let mut packet = [0; PACKET];
        let mut rx = PacketReader::new_async(&mut packet, async |place: &mut [u8]| {
            if host.borrow().says.is_empty() {
                core::future::pending::<()>().await;
            }
            host.borrow_mut().say(place)
        });
        assert_eq!(block_on(rx.read(&mut [0; 4])), Ok(4));
        assert_eq!(block_on(poll_once(rx.drain())), None);
        host.borrow_mut().says.push_back(b"new".to_vec());
        let mut place = [0; 8];
        assert_eq!((block_on(rx.read(&mut place)), &place[..3]), (Ok(3), &b"new"[..]));
    }

    /// The client goes after any number of the answer's packets, and does not read the next one: the loop is
    /// dropped inside its write.
    #[test]
    fn a_client_that_goes_while_it_is_written_to() {
        let said = (opening() + &call(1, "large") + &call(2, "hello") + "{\"half a").into_bytes();
        let next = (opening() + &call(1, "hello")).into_bytes();
        let whole = expected(&said[..said.len() - 8]);
        for packets in 0..whole.len() / PACKET {
            let host = Host::new(PACKET, &said, true);
            let left = Cell::new(Some(packets));
            let (mut packet, mut memory) = ([0; PACKET], Memory::new());
            let mut session = memory.session();
            let mut rx = PacketReader::new_async(&mut packet, async |place: &mut [u8]| {
                if host.borrow().says.is_empty() {
                    core::future::pending::<()>().await;
                }
                host.borrow_mut().say(place)
            });
            let mut tx = PacketWriter::new_async(PACKET, async |packet: &[u8]| {
                if left.get() == Some(0) {
                    core::future::pending::<()>().await;
                }
                left.set(left.get().map(|left| left - 1));
                host.borrow_mut().take(packet)
            });
            let mut state = State::default();
            let serving = serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session);
            assert_eq!(block_on(poll_once(serving)), None, "it waits for its client to read");
            // The rest of the client's output is dropped, then another client connects.
            assert_eq!(block_on(or(rx.drain(), async { Err(Broken) })).err(), Some(Broken));
            session.new_peer();
            rx.new_peer();
            tx.new_peer();
            left.set(None);
            let before = host.borrow_mut().heard.len();
            host.borrow_mut().says = next.chunks(PACKET).map(<[u8]>::to_vec).collect();
            let serving = serve(&mut rx, &mut tx, &SERVICE, &mut state, &mut session);
            assert_eq!(block_on(poll_once(serving)), None);
            let host = host.borrow();
            let heard = &host.heard[before..];
            let heard = heard.strip_prefix(b"\n").unwrap_or(heard);
            assert_eq!(String::from_utf8_lossy(heard), String::from_utf8_lossy(&expected(&next)), "after {packets}");
        }
    }
}
