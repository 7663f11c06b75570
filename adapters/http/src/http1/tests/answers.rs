//! Answers: bodies and event streams.

use super::*;

#[test]
fn a_body_is_whole_or_was_never_there() {
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Type: application/json\r\nA: b\r\n\r\n0123456789";
    for size in 0..200 {
        let (mut input, mut output) = ([0; 128], [0; 200]);
        let mut connection = connected((&mut input, &mut output[..size]), GET);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        match connection.answer.json(Status::OK, &|give| give("A", "b"), b"0123456789") {
            Ok(()) => assert_eq!(sent(&mut connection), whole),
            Err(full) => {
                assert!(size < whole.len() + 8, "{size}");
                assert_eq!(full, FullError::Never);
                assert_eq!((connection.pending().len(), connection.answer.is_owed()), (0, true), "{size}");
            }
        }
    }
}

#[test]
fn a_body_behind_something_pending() {
    let (mut input, mut output) = ([0; 128], [0; 400]);
    let mut connection = connected((&mut input, &mut output), &[GET, GET].concat());
    let mut expected = String::new();
    for body in ["{}", "0123456789ab"] {
        assert_eq!(connection.step(0), ConnectionStep::Request);
        connection.answer.json(Status::OK, &|_| {}, body.as_bytes()).unwrap();
        expected += &format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nContent-Type: application/json\r\n\r\n{body}",
            body.len()
        );
    }
    connection.sent(5);
    assert_eq!(sent(&mut connection), expected[5..]);
    assert_eq!(connection.step(0), ConnectionStep::Read);
}

#[test]
fn events_are_the_same_however_they_are_put_and_sent() {
    let written = |step: usize, sends: usize| {
        let (mut input, mut output) = ([0; 128], [0; 512]);
        let mut connection = connected((&mut input, &mut output), GET);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        connection.answer.stream(&[]).unwrap();
        connection.consume();
        let mut all = String::new();
        for (number, text) in ["{\"a\":1}", "{}", "[1,2,3]"].iter().enumerate() {
            let id = number.to_string();
            let event = format!("id: {id}\ndata: {text}\n\n");
            event.as_bytes().chunks(step).for_each(|part| connection.answer.put(part).unwrap());
            if number % sends == 0 {
                all += &sent(&mut connection);
            }
        }
        connection.answer.end_stream();
        assert!(connection.answer.is_done());
        all + &sent(&mut connection)
    };
    let data = |raw: &str| {
        let (_, mut rest) = raw.split_once("\r\n\r\n").unwrap();
        let mut data = String::new();
        while let Some((size, after)) = rest.split_once("\r\n") {
            let (chunk, after) = after.split_at(usize::from_str_radix(size, 16).unwrap());
            data += chunk;
            rest = after.strip_prefix("\r\n").unwrap();
        }
        assert_eq!(rest, "");
        data
    };
    for step in 1..8 {
        for sends in 1..4 {
            let events = "id: 0\ndata: {\"a\":1}\n\nid: 1\ndata: {}\n\nid: 2\ndata: [1,2,3]\n\n";
            assert_eq!(data(&written(step, sends)), events, "{step} {sends}");
        }
    }
}

#[test]
fn a_stream_in_stores_of_any_size() {
    for size in 0..260 {
        let (mut input, mut output) = ([0; 128], [0; 260]);
        let mut connection = connected((&mut input, &mut output[..size]), GET);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        if connection.answer.stream(&[]).is_err() {
            assert!(connection.answer.is_owed() && connection.pending().is_empty());
            continue;
        }
        let mut written = 0;
        loop {
            let room = connection.answer.room();
            match connection.answer.put(b"data: 0123456789\n\n") {
                Ok(()) => assert!(room >= 18),
                Err(full) => {
                    assert!(full == FullError::Now && room < 18);
                    break;
                }
            }
            written += 1;
        }
        connection.answer.end_stream();
        let text = sent(&mut connection);
        assert!(text.ends_with("0\r\n\r\n") && text.matches("data: 0123456789\n\n").count() == written, "{text}");
        assert!(size >= text.len());
    }
}

#[test]
fn headers_cannot_be_forged() {
    let (mut input, mut output) = ([0; 128], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    let fields = [("A", "b\r\nSet-Cookie: c"), ("X\r\nY", "z"), ("", "z"), ("Tab", "\tok\0")];
    connection.answer.full(Status(299), &fields, b"!").unwrap();
    let expected = "HTTP/1.1 299 \r\nContent-Length: 1\r\nA: bSet-Cookie: c\r\nTab: \tok\r\n\r\n!";
    assert_eq!(sent(&mut connection), expected);
}

/// 100 (Continue) waits for room behind an answer that was not sent.
#[test]
fn leave_without_room() {
    let (mut input, mut output) = ([0; 256], [0; 64]);
    let expects = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    let both = format!("GET / HTTP/1.1\r\nHost: a\r\n\r\n{expects}");
    let mut connection = connected((&mut input, &mut output), &both);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.full(Status::OK, &[], b"").unwrap();
    assert_eq!(connection.step(0), ConnectionStep::Expect);
    assert_eq!(connection.step(0), ConnectionStep::Write);
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(connection.step(0), ConnectionStep::Read);
    assert_eq!(sent(&mut connection), "HTTP/1.1 100 Continue\r\n\r\n");
}

/// Without a rate only a peer that takes nothing at all is let go.
#[test]
fn a_write_rate_of_zero_sets_no_rate() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let limits = LIMITS.write_time(10_000).write_rate(0);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], limits);
    feed(&mut connection, GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.full(Status::OK, &[], &[b'x'; 100]).unwrap();
    assert!(connection.pending().len() > 100);
    for now in (0..100).map(|taken| taken * 9_999) {
        let _ = connection.step(now);
        assert_eq!(connection.next_deadline(), Some(now + 10_000));
        assert_eq!(connection.expire(now + 9_999), ExpireStatus::Nothing);
        connection.sent(1);
    }
    let now = 100 * 9_999;
    let _ = connection.step(now);
    assert_eq!(connection.expire(now + 10_000), ExpireStatus::Close);
}

#[test]
fn answered_by_its_head_alone() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    let mut connection = connected((&mut input, &mut output), head);
    assert_eq!(connection.step(0), ConnectionStep::Expect);
    assert_eq!(connection.exchange().unwrap().0.head.get("EXPECT"), Some(&b"100-continue"[..]));
    assert!(connection.exchange().unwrap().0.body.is_none());
    connection.answer.full(Status::UNAUTHORIZED, &[("WWW-Authenticate", "Bearer")], b"").unwrap();
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    let expected =
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer\r\nConnection: close\r\n\r\n";
    assert_eq!(sent(&mut connection), expected);
    feed(&mut connection, "abcdeGET / HTTP/1.1\r\n\r\n");
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    connection.ended = true;
    assert_eq!(connection.step(0), ConnectionStep::Close);
}

/// A HEAD request gets the head that a GET would get, so far as it is known, and no body however it is written.
#[test]
fn a_head_without_its_body() {
    let head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    let answered = |write: &dyn Fn(&mut ResponseBuffer<'_>)| {
        let (mut input, mut output) = ([0; 128], [0; 512]);
        let mut connection = connected((&mut input, &mut output), head);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        write(&mut connection.answer);
        assert!(connection.answer.is_done() && !connection.answer.is_owed());
        let text = sent(&mut connection);
        // It waits for the next request.
        assert_eq!(connection.step(0), ConnectionStep::Read);
        text
    };
    let ok = "HTTP/1.1 200 OK\r\n";
    assert_eq!(
        answered(&|answer| answer.full(Status::OK, &[], b"body").unwrap()),
        format!("{ok}Content-Length: 4\r\n\r\n")
    );
    assert_eq!(
        answered(&|answer| answer.json(Status::OK, &|_| {}, b"{}").unwrap()),
        format!("{ok}Content-Length: 2\r\nContent-Type: application/json\r\n\r\n")
    );
    let events = answered(&|answer| {
        answer.stream(&[]).unwrap();
        assert_eq!(answer.put(b"x"), Err(FullError::Never));
        answer.end_stream();
    });
    assert!(events.starts_with(ok) && events.ends_with("X-Accel-Buffering: no\r\n\r\n"), "{events}");
    assert!(!events.contains("chunked"), "{events}");
}

/// An answer that has no body by its status has no length either.
#[test]
fn statuses_without_a_body() {
    for status in [100, 199, 200, 203, 204, 205, 303, 304, 305, 999, 1000, u16::MAX] {
        let (mut input, mut output) = ([0; 128], [0; 512]);
        let mut connection = connected((&mut input, &mut output), GET);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        connection.answer.full(Status(status), &[], b"xy").unwrap();
        let (code, reason) = (if status < 1000 { status } else { 500 }, Status(status).reason());
        let is_bodiless = matches!(status, ..200 | 204 | 304);
        assert_eq!(Status(status).is_bodiless(), is_bodiless, "{status}");
        let rest = if is_bodiless { "\r\n" } else { "Content-Length: 2\r\n\r\nxy" };
        assert_eq!(sent(&mut connection), format!("HTTP/1.1 {code} {reason}\r\n{rest}"));
        assert_eq!(connection.step(0), ConnectionStep::Read);
    }
}

/// The size of a chunk has as many digits as a store of its size needs.
#[test]
fn chunks_of_small_and_large_stores() {
    for (limit, digits) in [(1_000, 4), (0xffff, 4), (0x10000, 8), (1 << 20, 8)] {
        let (mut input, mut output) = ([0; 128], vec![0; limit]);
        let mut connection = connected((&mut input, &mut output), GET);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        connection.answer.stream(&[]).unwrap();
        sent(&mut connection);
        // Nothing waits, so all that there ever is of room is there now, and all of it may be used.
        let room = connection.answer.room();
        assert_eq!(room, limit - digits - "\r\n\r\n0\r\n\r\n".len());
        assert_eq!(connection.answer.put(&vec![b'x'; room + 1]), Err(FullError::Now));
        connection.answer.put(&vec![b'x'; room]).unwrap();
        connection.answer.end_stream();
        let text = sent(&mut connection);
        assert_eq!(text.len(), limit);
        assert_eq!(text.split_once("\r\n").unwrap().0, format!("{room:0digits$x}"));
    }
}

/// More than is pending, and nothing, are no bytes of the next answer.
#[test]
fn no_more_is_sent_than_is_pending() {
    let (mut input, mut output) = ([0; 128], [0; 512]);
    let mut connection = connected((&mut input, &mut output), &[GET, GET].concat());
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.full(Status::OK, &[], b"1").unwrap();
    connection.sent(usize::MAX);
    assert!(!connection.has_pending() && connection.pending().is_empty());
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.json(Status::OK, &|_| {}, b"{}").unwrap();
    connection.sent(0);
    assert!(sent(&mut connection).ends_with("Content-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"));
}

type Write<'f> = &'f dyn Fn(&mut ResponseBuffer<'_>) -> Result<(), FullError>;

const FIRST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

/// Answers twice, and reports `sent_meanwhile` bytes as sent in the middle of the second answer. Returns the rest, if there
/// is room for all.
fn written_behind(parts: (Write<'_>, Write<'_>), sent_meanwhile: usize, size: usize) -> Option<String> {
    let (mut input, mut output) = ([0; 128], [0; 500]);
    let mut connection = connected((&mut input, &mut output[..size]), &[GET, GET].concat());
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.full(Status::OK, &[], b"{}").ok()?;
    assert_eq!(connection.step(0), ConnectionStep::Request);
    parts.0(&mut connection.answer).ok()?;
    connection.sent(sent_meanwhile);
    parts.1(&mut connection.answer).ok()?;
    Some(sent(&mut connection))
}

/// Bytes that were sent make room for an answer, also while it is written.
#[test]
fn an_answer_moves_to_the_front_while_it_is_written() {
    let more = "y".repeat(40);
    let parts: (Write<'_>, Write<'_>) = (&|answer| answer.stream(&[]).and_then(|()| answer.put(b"01234")), &|answer| {
        answer.put(more.as_bytes()).map(|()| answer.end_stream())
    });
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\
                Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n\r\n";
    let second = format!("{head}002d\r\n01234{more}\r\n0\r\n\r\n");
    let smallest = [0, 20, FIRST.len()].map(|sent_meanwhile| {
        let fits = |size: &usize| {
            let text = written_behind(parts, sent_meanwhile, *size);
            assert!(text.as_ref().is_none_or(|text| text[..] == [FIRST, &second].concat()[sent_meanwhile..]));
            text.is_some()
        };
        let sizes: Vec<usize> = (0..500).filter(fits).collect();
        assert_eq!(sizes.last(), Some(&499));
        sizes[0]
    });
    assert!(smallest[0] == smallest[1] + 20 && smallest[1] > smallest[2], "{smallest:?}");
}
