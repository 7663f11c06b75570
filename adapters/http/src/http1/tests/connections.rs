//! The life of a connection: its deadlines, its end, and its cost.

use super::*;

#[test]
fn reset() {
    let request = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    let (mut input, mut output) = ([0; 128], [0; 256]);
    let mut connection = Connection::<8>::new(&mut input, &mut output, LIMITS);
    for unfinished in [request, "GE", "T / HTTP/1.1\r\n\r\n", ""] {
        feed(&mut connection, unfinished);
        let _ = connection.step(0);
        connection.ended = true;
        connection.close();
        let _ = connection.step(1);
        connection.reset();
        assert_eq!(
            (connection.has_pending(), connection.exchange().is_none(), connection.refused),
            (false, true, None)
        );
        assert_eq!((connection.step(2), connection.ended), (ConnectionStep::Read, false));
        assert_eq!(connection.space().len(), 128);
        assert_eq!(connection.next_deadline(), Some(2 + LIMITS.idle_time));
    }
    let whole = [request, "abc"].concat();
    feed(&mut connection, &whole);
    assert_eq!(connection.step(3), ConnectionStep::Request);
}

#[test]
fn what_follows_a_refusal_is_dropped_up_to_a_bound() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n";
    let mut connection = connected((&mut input, &mut output), head);
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    assert_eq!(connection.refused, Some(Status::CONTENT_TOO_LARGE));
    for _ in 0..2 {
        feed(&mut connection, "x");
        assert_eq!(connection.step(0), ConnectionStep::Shut);
    }
    feed(&mut connection, &"x".repeat(64));
    assert_eq!(connection.step(0), ConnectionStep::Close);
    assert!(sent(&mut connection).starts_with("HTTP/1.1 413 Content Too Large\r\n"));
}

#[test]
fn deadlines() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), "");
    assert_eq!(connection.next_deadline(), None);
    // Idle: closed without an answer.
    assert_eq!(connection.step(1), ConnectionStep::Read);
    assert_eq!(connection.next_deadline(), Some(60_001));
    assert_eq!(connection.expire(60_000), ExpireStatus::Nothing);
    // A head: from its first byte, not from its last.
    feed(&mut connection, "POST / HTTP/1.1\r\n");
    assert_eq!(connection.step(50_000), ConnectionStep::Read);
    feed(&mut connection, "Host: a\r\n");
    assert_eq!(connection.step(55_000), ConnectionStep::Read);
    assert_eq!(connection.next_deadline(), Some(60_000));
    feed(&mut connection, "Content-Length: 2\r\n\r\n");
    assert_eq!(connection.step(56_000), ConnectionStep::Read);
    assert_eq!(connection.next_deadline(), Some(116_000));
    feed(&mut connection, "a");
    assert_eq!(connection.step(57_000), ConnectionStep::Read);
    assert_eq!(connection.next_deadline(), Some(116_000));
    feed(&mut connection, "b");
    // While the handler works, no deadline runs.
    assert_eq!(connection.step(58_000), ConnectionStep::Request);
    assert_eq!(connection.next_deadline(), None);
    connection.answer.full(Status::OK, &[], b"x").unwrap();
    // The peer must take some bytes from time to time.
    assert_eq!(connection.step(70_000), ConnectionStep::Read);
    assert_eq!(connection.next_deadline(), Some(100_000));
    connection.sent(1);
    assert_eq!(connection.step(80_000), ConnectionStep::Read);
    // It took some and would have until 110,000 for more, but all bytes together have a deadline too.
    assert_eq!(connection.next_deadline(), Some(100_009));
    sent(&mut connection);
    assert_eq!(connection.step(81_000), ConnectionStep::Read);
    assert_eq!(connection.next_deadline(), Some(141_000));
    // Too slow.
    feed(&mut connection, "G");
    assert_eq!(connection.step(90_000), ConnectionStep::Read);
    assert_eq!(connection.expire(100_000), ExpireStatus::Refused);
    assert_eq!(connection.step(100_000), ConnectionStep::Shut);
    assert_eq!(sent(&mut connection), "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert_eq!(connection.step(100_000), ConnectionStep::Shut);
    assert_eq!(connection.next_deadline(), Some(102_000));
    assert_eq!(connection.expire(102_000), ExpireStatus::Close);
    assert_eq!(connection.step(102_000), ConnectionStep::Close);
    assert_eq!(connection.next_deadline(), None);
}

/// Drivers write after a step, and take the next step when bytes arrive: the deadlines between them must be right
/// too.
#[test]
fn deadlines_when_all_was_sent_after_the_last_step() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.full(Status::OK, &[], b"x").unwrap();
    assert_eq!(connection.step(1_000), ConnectionStep::Read);
    assert_eq!(connection.next_deadline(), Some(31_000));
    sent(&mut connection);
    assert_eq!(connection.next_deadline(), Some(61_000));
    assert_eq!((connection.expire(60_999), connection.expire(61_000)), (ExpireStatus::Nothing, ExpireStatus::Close));
    // A stream whose events were all sent has no deadline.
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.stream(&[]).unwrap();
    connection.consume();
    assert_eq!(connection.step(0), ConnectionStep::Answering);
    assert_eq!(connection.next_deadline(), Some(30_000));
    sent(&mut connection);
    assert_eq!((connection.next_deadline(), connection.expire(1_000_000)), (None, ExpireStatus::Nothing));
}

/// Each head has its own time from its first byte, also one that arrives in pieces after another request.
#[test]
fn deadlines_of_requests_one_after_the_other() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), &[GET, "GET / HT"].concat());
    assert_eq!((connection.step(0), connection.next_deadline()), (ConnectionStep::Request, None));
    connection.answer.full(Status::OK, &[], b"x").unwrap();
    assert_eq!(connection.step(5_000), ConnectionStep::Read);
    sent(&mut connection);
    // It follows at once, but was not searched for before.
    assert_eq!(connection.next_deadline(), Some(15_000));
    feed(&mut connection, "TP/1.1\r\nHost: a");
    assert_eq!((connection.step(9_000), connection.next_deadline()), (ConnectionStep::Read, Some(15_000)));
    feed(&mut connection, "\r\n\r\n");
    assert_eq!((connection.step(14_000), connection.next_deadline()), (ConnectionStep::Request, None));
    connection.answer.full(Status::OK, &[], b"x").unwrap();
    sent(&mut connection);
    assert_eq!((connection.step(20_000), connection.next_deadline()), (ConnectionStep::Read, Some(80_000)));
    feed(&mut connection, "G");
    assert_eq!((connection.step(70_000), connection.next_deadline()), (ConnectionStep::Read, Some(80_000)));
    assert_eq!(connection.expire(79_999), ExpireStatus::Nothing);
    assert_eq!(connection.expire(80_000), ExpireStatus::Refused);
}

#[test]
fn a_peer_that_reads_nothing_is_let_go() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.stream(&[]).unwrap();
    connection.consume();
    assert_eq!(connection.step(0), ConnectionStep::Answering);
    connection.answer.put(b": \n\n").unwrap();
    assert_eq!(connection.step(10_000), ConnectionStep::Answering);
    assert_eq!(connection.next_deadline(), Some(30_000));
    assert_eq!(connection.expire(30_000), ExpireStatus::Close);
    assert_eq!(connection.step(30_000), ConnectionStep::Close);
    assert_eq!(connection.pending(), b"");
}

#[test]
fn closing_when_asked() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), &[GET, GET].concat());
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.close();
    connection.answer.full(Status::ACCEPTED, &[], b"").unwrap();
    // The second request is dropped. The client sees that this was the last answer.
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    assert!(sent(&mut connection).contains("Connection: close"));
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), "");
    assert_eq!(connection.step(0), ConnectionStep::Read);
    connection.close();
    assert_eq!(connection.step(0), ConnectionStep::Close);
}

#[test]
fn half_closed_sockets_get_their_answer() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    connection.ended = true;
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.consume();
    assert_eq!(connection.step(0), ConnectionStep::Answering);
    connection.answer.full(Status::OK, &[], b"late").unwrap();
    assert_eq!(connection.step(0), ConnectionStep::Close);
    assert!(sent(&mut connection).ends_with("late"));
}

#[test]
fn work_is_linear() {
    // 4 KiB of head and a large chunked body of tiny chunks, byte by byte, through a store that must close its gaps.
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nX: {}\r\nTransfer-Encoding: chunked\r\n\r\n", "x".repeat(4000));
    let body = "1\r\nx\r\n".repeat(100_000) + "0\r\n\r\n";
    let (mut input, mut output) = (vec![0; 128 * 1024], [0; 256]);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], ConnectionLimits::default());
    super::work::take();
    for byte in head.bytes().chain(body.bytes()) {
        connection.space()[0] = byte;
        connection.filled(1);
        if connection.step(0) == ConnectionStep::Request {
            assert_eq!(connection.exchange().unwrap().0.body.unwrap().len(), 100_000);
            // The ends of lines are not counted. Each byte of a whole head is also parsed once.
            let (work, bytes) = (super::work::take(), head.len() + body.len());
            assert!(work > bytes / 10 * 9 && work < 2 * bytes, "{work} bytes were looked at or moved for {bytes}");
            return;
        }
    }
    panic!("no request");
}

#[cfg(feature = "alloc")]
#[test]
fn stores_that_grow_and_shrink() {
    let mut connection =
        Connection::<8>::new(Store::growing(1 << 20), Store::growing(1 << 20), ConnectionLimits::default());
    for length in [0, 1, 5000, 1_000_000] {
        let input = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{}", "y".repeat(length));
        let mut rest = input.as_bytes();
        while connection.step(0) == ConnectionStep::Read {
            let space = connection.space();
            let n = space.len().min(rest.len());
            assert!(n > 0);
            space[..n].copy_from_slice(&rest[..n]);
            connection.filled(n);
            rest = &rest[n..];
        }
        assert_eq!(rest, b"");
        let (request, answer) = connection.exchange().unwrap();
        let body = request.body.unwrap();
        assert_eq!(body.len(), length);
        answer.full(Status::OK, &[], body).unwrap();
        assert!(sent(&mut connection).ends_with(&input[input.len() - length..]));
        assert_eq!(connection.step(0), ConnectionStep::Read);
        connection.release();
    }
    assert_eq!(Store::growing(7).limit(), 7);
}

/// Memory that a large request has left is given back while the next one is half there, and nothing of that is lost.
#[cfg(feature = "alloc")]
#[test]
fn memory_is_given_back_in_the_middle_of_a_request() {
    let sized = "POST /sized HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789";
    let chunked =
        "POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n";
    let large = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{}", "y".repeat(100_000));
    // Of a chunk, only its data is kept.
    let head = "POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let small = format!("{head}{}0\r\n\r\n", "1\r\nx\r\n".repeat(1_500));
    let before_end = small.len() - 5..small.len() - 4;
    let xs = "x".repeat(1_500);
    for (next, cuts, path, body) in [
        (sized, 0..sized.len(), "/sized", "0123456789"),
        (chunked, 0..chunked.len(), "/chunked", "0123456789"),
        (&small, before_end, "/chunked", &xs),
    ] {
        for cut in cuts {
            let mut connection =
                Connection::<8>::new(Store::growing(1 << 20), Store::growing(1 << 20), ConnectionLimits::default());
            let mut rest = large.as_bytes();
            while connection.step(0) == ConnectionStep::Read {
                let space = connection.space();
                let n = space.len().min(rest.len());
                space[..n].copy_from_slice(&rest[..n]);
                connection.filled(n);
                rest = &rest[n..];
            }
            connection.answer.full(Status::OK, &[], b"").unwrap();
            sent(&mut connection);
            assert_eq!(connection.step(0), ConnectionStep::Read);
            feed(&mut connection, &next[..cut]);
            assert_eq!(connection.step(0), ConnectionStep::Read);
            assert!(connection.input_size() > 100_000);
            connection.release();
            assert!(connection.input_size() <= 4096, "{} bytes for {cut}", connection.input_size());
            let again = connection.input_size();
            connection.release();
            assert_eq!(connection.input_size(), again);
            feed(&mut connection, &next[cut..]);
            assert_eq!(connection.step(0), ConnectionStep::Request, "cut at {cut}");
            let (request, _) = connection.exchange().unwrap();
            assert_eq!((request.head.request_head().path, request.body), (path, Some(body.as_bytes())), "cut at {cut}");
        }
    }
}

/// Memory that was lent stays.
#[test]
fn lent_memory_is_not_given_back() {
    let (mut input, mut output) = (vec![0; 20_000], vec![0; 512]);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], LIMITS);
    feed(&mut connection, &GET[..10]);
    connection.release();
    assert_eq!(connection.input_size(), 20_000);
    feed(&mut connection, &GET[10..]);
    assert_eq!(connection.step(0), ConnectionStep::Request);
}

#[test]
fn sizes() {
    let connection = size_of::<Connection<'static, 16>>();
    // 8 bytes more where heads are kept.
    let most = if cfg!(feature = "alloc") { 576 } else { 560 };
    assert!(connection <= most, "a connection with 16 headers has {connection} bytes");
}

/// A peer that takes some bytes, but fewer than `write_rate`, cannot keep its answer for ever.
#[test]
fn an_answer_that_is_read_slowly() {
    let limits = ConnectionLimits::DEFAULT.write_time(10_000).write_rate(1_000);
    for (gulp, closes_at) in [(500, Some(110_000)), (6_000, None), (1, Some(110_000))] {
        let (mut input, mut output) = (vec![0; 256], vec![0; 120_000]);
        let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], limits);
        feed(&mut connection, GET);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 99958\r\n\r\n".len();
        connection.answer.full(Status::OK, &[], &[b'x'; 99_958]).unwrap();
        assert_eq!(connection.pending().len(), 99_958 + head);
        let mut now = 0;
        let closed = loop {
            let _ = connection.step(now);
            let Some(deadline) = connection.next_deadline().filter(|_| connection.has_pending()) else { break None };
            if deadline <= now + 5_000 {
                assert_eq!(connection.expire(deadline - 1), ExpireStatus::Nothing);
                assert_eq!(connection.expire(deadline), ExpireStatus::Close);
                break Some(deadline / 1_000 * 1_000);
            }
            now += 5_000;
            let n = connection.pending().len().min(gulp);
            connection.sent(n);
        };
        assert_eq!(closed, closes_at, "{gulp} bytes each 5 seconds");
    }
}

/// A body has its own time, and the client hears that it was too slow.
#[test]
fn a_body_that_comes_too_slowly() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection =
        connected((&mut input, &mut output), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
    assert_eq!(connection.step(1_000), ConnectionStep::Read);
    assert_eq!((connection.next_deadline(), connection.expire(60_999)), (Some(61_000), ExpireStatus::Nothing));
    assert_eq!(connection.expire(61_000), ExpireStatus::Refused);
    assert_eq!(connection.next_deadline(), None);
    assert_eq!(connection.step(61_000), ConnectionStep::Shut);
    assert_eq!(connection.refused, Some(Status::REQUEST_TIMEOUT));
    assert!(sent(&mut connection).starts_with("HTTP/1.1 408 "));
}

/// Of the times for a request that arrives and for an answer that is not taken, the earlier one counts.
#[test]
fn two_deadlines_at_once() {
    for (write_time, expected) in [(30_000, ExpireStatus::Refused), (4_000, ExpireStatus::Close)] {
        let (mut input, mut output) = ([0; 256], [0; 256]);
        let limits = LIMITS.write_time(write_time);
        let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], limits);
        feed(&mut connection, &[GET, "GE"].concat());
        assert_eq!(connection.step(0), ConnectionStep::Request);
        connection.answer.full(Status::OK, &[], b"x").unwrap();
        assert_eq!(connection.step(1_000), ConnectionStep::Read);
        let deadline = 1_000 + write_time.min(10_000);
        assert_eq!(connection.next_deadline(), Some(deadline));
        assert_eq!(connection.expire(deadline - 1), ExpireStatus::Nothing);
        assert_eq!(connection.expire(deadline), expected);
    }
}

/// A request that has begun when its connection is to close is answered, as the last one.
#[test]
fn closing_in_the_middle_of_a_request() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), "GET / HT");
    assert_eq!(connection.step(0), ConnectionStep::Read);
    connection.close();
    assert_eq!(connection.step(0), ConnectionStep::Read);
    feed(&mut connection, "TP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.full(Status::OK, &[], b"x").unwrap();
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx");
    assert_eq!(connection.step(0), ConnectionStep::Close);
}

/// Only what has not come whole can be refused, and only a whole request is consumed.
#[test]
fn a_whole_request_is_not_refused() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), &GET[..9]);
    connection.consume();
    assert_eq!(connection.step(0), ConnectionStep::Read);
    feed(&mut connection, &GET[9..]);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.refuse(Status::UNAVAILABLE);
    assert_eq!((connection.step(0), connection.refused), (ConnectionStep::Request, None));
    connection.answer.full(Status::OK, &[], b"x").unwrap();
    assert_eq!(connection.step(0), ConnectionStep::Read);
    connection.refuse(Status::UNAVAILABLE);
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    assert_eq!(connection.refused, Some(Status::UNAVAILABLE));
    let text = sent(&mut connection);
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("xHTTP/1.1 503 "), "{text}");
}

/// A refusal waits for room behind an answer that was not sent. Where none ever fits, the connection ends without.
#[test]
fn a_refusal_without_room() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (mut input, mut output) = ([0; 256], [0; 80]);
    let mut connection = connected((&mut input, &mut output), &[GET, "BAD\r\n\r\n"].concat());
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.full(Status::OK, &[], b"").unwrap();
    for _ in 0..2 {
        assert_eq!(connection.step(0), ConnectionStep::Write);
    }
    assert_eq!(sent(&mut connection), answer);
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    let refusal = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(sent(&mut connection), refusal);
    let (mut input, mut output) = ([0; 256], [0; 40]);
    let mut connection = connected((&mut input, &mut output), "BAD\r\n\r\n");
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    assert_eq!((connection.has_pending(), connection.refused), (false, Some(Status::BAD_REQUEST)));
    connection.ended = true;
    assert_eq!(connection.step(0), ConnectionStep::Close);
}

#[test]
fn each_limit_is_set_by_its_own_function() {
    let limits = ConnectionLimits::DEFAULT.line(1).head(2).body(3).drain(4).head_time(5).body_time(6).idle_time(7);
    let limits = limits.write_time(8).write_rate(9).linger_time(10);
    let ConnectionLimits {
        line,
        head,
        body,
        drain,
        head_time,
        body_time,
        idle_time,
        write_time,
        write_rate,
        linger_time,
    } = limits;
    assert_eq!((line, head, body, drain), (1, 2, 3, 4));
    assert_eq!((head_time, body_time, idle_time), (5, 6, 7));
    assert_eq!((write_time, write_rate, linger_time), (8, 9, 10));
    assert_eq!(ConnectionLimits::default(), ConnectionLimits::DEFAULT);
}

/// A store that grows doubles from a small size, by no more than a bound, and no further than what may be read.
#[cfg(feature = "alloc")]
#[test]
fn an_input_grows_with_what_arrives() {
    let fill = |limit: usize, most: usize| {
        let mut connection =
            Connection::<8>::new(Store::growing(limit), Store::growing(1_000), ConnectionLimits::DEFAULT);
        let mut sizes = Vec::new();
        loop {
            let n = connection.space_within(most).len();
            if n == 0 {
                return sizes;
            }
            sizes.push(connection.input_size());
            connection.filled(n);
            assert!(connection.space_within(0).is_empty());
        }
    };
    let kib = |sizes: &[usize]| sizes.iter().map(|size| size * 1024).collect::<Vec<_>>();
    assert_eq!(fill(1_000 << 10, usize::MAX), kib(&[4, 8, 16, 32, 64, 128, 256, 512, 768, 1_000]));
    assert_eq!(fill(1_000 << 10, 20 << 10), kib(&[4, 8, 16, 20]));
    assert_eq!(fill(100, usize::MAX), [100]);
}

/// 100 (Continue) leaves room for the end of an answer.
#[test]
fn leave_has_its_room() {
    for (size, expected) in [(31, ""), (32, "HTTP/1.1 100 Continue\r\n\r\n")] {
        let (mut input, mut output) = ([0; 256], [0; 32]);
        let expects = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
        let mut connection = connected((&mut input, &mut output[..size]), expects);
        assert_eq!(connection.step(0), ConnectionStep::Expect);
        assert_eq!(connection.step(0), ConnectionStep::Read);
        assert_eq!(sent(&mut connection), expected);
    }
}

/// The store is a limit of a head and of a body in chunks, too, where the limits allow more.
#[test]
fn a_request_that_its_store_cannot_take() {
    let (mut input, mut output) = ([b'x'; 64], [0; 256]);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], ConnectionLimits::default());
    feed(&mut connection, &format!("GET / HTTP/1.1\r\nHost: {}", "a".repeat(42)));
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    assert!(sent(&mut connection).starts_with("HTTP/1.1 431 "));
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (more, step) in [(0, ConnectionStep::Read), (1, ConnectionStep::Shut)] {
        let (mut input, mut output) = ([0; 128], [0; 256]);
        let chunk = input.len() - head.len() - 16 + more;
        let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], ConnectionLimits::default());
        feed(&mut connection, &format!("{head}{chunk:x}\r\n"));
        assert_eq!(connection.step(0), step);
        assert_eq!(sent(&mut connection).starts_with("HTTP/1.1 413 "), more > 0);
    }
}

/// Only the answer to a bad request names control characters.
#[test]
fn a_large_head_with_control_characters() {
    let (mut input, mut output) = ([0; 64], [0; 256]);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], ConnectionLimits::default());
    feed(&mut connection, &format!("POST / HTTP/1.1\r\nA: \u{1}\r\nB: {}", "b".repeat(38)));
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    let text = sent(&mut connection);
    assert!(text.starts_with("HTTP/1.1 431 ") && text.contains("Content-Length: 0\r\n"), "{text}");
}

#[test]
fn a_refused_peer_may_send_as_much_as_is_dropped() {
    let (mut input, mut output) = ([0; 64], [0; 256]);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], LIMITS.drain(5));
    feed(&mut connection, "(");
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    sent(&mut connection);
    for (bytes, step) in [("abc", ConnectionStep::Shut), ("de", ConnectionStep::Shut), ("f", ConnectionStep::Close)] {
        feed(&mut connection, bytes);
        assert_eq!(connection.step(0), step);
    }
}

/// A connection is idle only after all bytes were sent, and has no deadline after its end.
#[test]
fn a_connection_with_pending_bytes_is_not_idle() {
    let (mut input, mut output) = ([0; 64], [0; 256]);
    let limits = LIMITS.idle_time(10).write_time(1_000).write_rate(0);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], limits);
    feed(&mut connection, GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.full(Status::OK, &[], b"").unwrap();
    assert_eq!(connection.step(0), ConnectionStep::Read);
    assert_eq!((connection.next_deadline(), connection.expire(999)), (Some(1_000), ExpireStatus::Nothing));
    sent(&mut connection);
    assert_eq!(connection.step(999), ConnectionStep::Read);
    assert_eq!(connection.next_deadline(), Some(1_009));
    assert_eq!(connection.expire(1_009), ExpireStatus::Close);
    assert_eq!(connection.next_deadline(), None);
}

/// The time to close begins when the last answer was sent: a peer that takes it slowly gets it whole.
#[test]
fn a_last_answer_is_sent_before_the_connection_lingers() {
    let (mut input, mut output) = ([0; 64], [0; 256]);
    let limits = LIMITS.linger_time(10).write_time(1_000).write_rate(0);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], limits);
    feed(&mut connection, "BAD\r\n\r\n");
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    assert_eq!((connection.next_deadline(), connection.expire(999)), (Some(1_000), ExpireStatus::Nothing));
    connection.sent(1);
    assert_eq!(connection.step(900), ConnectionStep::Shut);
    assert_eq!(connection.next_deadline(), Some(1_900));
    sent(&mut connection);
    assert_eq!(connection.step(1_000), ConnectionStep::Shut);
    assert_eq!((connection.next_deadline(), connection.expire(1_009)), (Some(1_010), ExpireStatus::Nothing));
    assert_eq!(connection.expire(1_010), ExpireStatus::Close);
}

/// A promise of a head takes no memory; the bytes that are there are read at once.
#[cfg(feature = "alloc")]
#[test]
fn a_long_body_is_read_in_few_reads() {
    let body = 64 * 1024;
    let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {body}\r\n\r\n");
    let limits = ConnectionLimits::DEFAULT.body(16 << 20);
    let mut connection: Connection<'_, 8> = Connection::new(Store::growing(17 << 20), Store::growing(4096), limits);
    let mut sent = head.clone().into_bytes();
    sent.resize(head.len() + body, b'x');
    let (mut rest, mut reads) = (&sent[..], 0);
    let step = loop {
        connection.expect(|| rest.len());
        let n = connection.space().len().min(rest.len());
        connection.space()[..n].copy_from_slice(&rest[..n]);
        connection.filled(n);
        (rest, reads) = (&rest[n..], reads + 1);
        match connection.step(0) {
            ConnectionStep::Read => {}
            step => break step,
        }
    };
    assert_eq!((step, reads, rest.len()), (ConnectionStep::Request, 2, 0));
    // Sixteen promised megabytes, of which none has come.
    let mut connection: Connection<'_, 8> = Connection::new(Store::growing(17 << 20), Store::growing(4096), limits);
    let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", 16 << 20);
    connection.space()[..head.len()].copy_from_slice(head.as_bytes());
    connection.filled(head.len());
    assert_eq!(connection.step(0), ConnectionStep::Read);
    for waiting in [0, 1, 1000] {
        connection.expect(|| waiting);
        let room = connection.space().len();
        assert!(room <= 8192 && connection.input_size() <= 8192, "{room}");
    }
    // Before its head is whole, nothing is a body.
    let mut connection: Connection<'_, 8> = Connection::new(Store::growing(17 << 20), Store::growing(4096), limits);
    connection.expect(|| 1 << 20);
    assert_eq!(connection.space().len(), 4096);
}
