//! Answers: bodies and event streams.

use super::*;

const OLD: &str = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";

fn result(out: &mut dyn Out, text: &str) -> Result<(), FullError> {
    whole(out, MessageHead::Result, |out| text.as_bytes().chunks(3).for_each(|part| out.put(part)))
}

#[test]
fn a_body_is_whole_or_was_never_there() {
    let body = "0123456789";
    for size in 0..200 {
        let (mut input, mut output) = ([0; 128], [0; 200]);
        let mut connection = connected((&mut input, &mut output[..size]), GET);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[("A", "b")]);
        let (room, capacity) = (out.room(), out.capacity());
        assert_eq!(room, capacity);
        let done = result(&mut out, body);
        if room >= body.len() {
            assert_eq!(done, Ok(()), "{size}");
        }
        match done {
            Ok(()) => assert_eq!(
                sent(&mut connection),
                "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Type: application/json\r\nA: b\r\n\r\n0123456789"
            ),
            Err(full) => {
                assert_eq!(full, FullError::Never);
                assert_eq!((connection.pending().len(), connection.answer().is_owed()), (0, true), "{size}");
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
        let mut out = BodyOut::new(connection.answer(), &|_| Status::NOT_FOUND, &[]);
        let mark = out.mark();
        result(&mut out, "taken back").unwrap();
        out.roll_back(mark);
        assert!(connection.answer().is_owed());
        result(&mut BodyOut::new(connection.answer(), &|_| Status::OK, &[]), body).unwrap();
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
fn a_head_that_comes_after_its_body() {
    let long = "v".repeat(300);
    for size in (0..700).step_by(7) {
        for (request, before) in [(GET, false), (GET, true), ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", false)] {
            for fields in [&[][..], &[("A", "b")], &[("Long", &long)]] {
                let (mut input, mut output) = ([0; 128], [0; 700]);
                let mut connection = connected((&mut input, &mut output[..size]), &[GET, request].concat());
                assert_eq!(connection.step(0), ConnectionStep::Request);
                if connection.answer().full(Status::OK, &[], b"").is_err() {
                    continue;
                }
                let mut expected = String::from("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                if !before {
                    sent(&mut connection);
                    expected.clear();
                }
                assert_eq!(connection.step(0), ConnectionStep::Request);
                let mut out = DraftOut::new(connection.answer());
                let room = out.room();
                assert!(before || room == out.capacity());
                let done = result(&mut out, "0123456789");
                assert_eq!(done.is_ok(), room >= 10, "{size} {room}");
                assert_eq!(connection.pending(), expected.as_bytes());
                if done.is_err() {
                    assert!(connection.answer().is_owed());
                    continue;
                }
                if connection.answer().finish(Status(400), fields).is_err() {
                    assert!(fields.len() == 1 && size < 560);
                    continue;
                }
                expected += "HTTP/1.1 400 Bad Request\r\nContent-Length: 10\r\n";
                expected.extend(fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
                expected += if request == GET { "\r\n0123456789" } else { "\r\n" };
                assert_eq!(sent(&mut connection), expected);
                assert_eq!(connection.step(0), ConnectionStep::Read);
            }
        }
    }
}

/// The head of an empty body has its room before the body too, and all of the store is used.
#[test]
fn a_late_head_without_a_body() {
    let long = "v".repeat(300);
    let fields = [("Long", long.as_str())];
    let expected = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nLong: {long}\r\n\r\n");
    let finished: Vec<bool> = (0..500)
        .map(|size| {
            let (mut input, mut output) = ([0; 128], [0; 500]);
            let mut connection = connected((&mut input, &mut output[..size]), GET);
            assert_eq!(connection.step(0), ConnectionStep::Request);
            let mut out = DraftOut::new(connection.answer());
            if result(&mut out, "").is_err() || connection.answer().finish(Status::OK, &fields).is_err() {
                return false;
            }
            assert_eq!(sent(&mut connection), expected);
            true
        })
        .collect();
    assert_eq!(finished.iter().position(|is_finished| *is_finished), Some(expected.len()));
    assert!(finished[expected.len()..].iter().all(|is_finished| *is_finished));
}

#[test]
fn no_draft_begins_while_it_is_held() {
    let (mut input, mut output) = ([0; 128], [0; 400]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    let mut out = DraftOut::new(connection.answer());
    for kind in [MessageHead::Request(&RequestInfo::new(0, "ping")), MessageHead::Notification, MessageHead::Streamed] {
        assert_eq!(out.begin(kind), Err(FullError::Never));
    }
    out.hold(true);
    assert_eq!((out.held(), out.begin(MessageHead::Result)), (true, Err(FullError::Now)));
    out.hold(false);
    assert!(!out.held());
    out.begin(MessageHead::Result).unwrap();
    out.put(b"wrong").unwrap();
    out.roll_back(Mark::new(0));
    result(&mut out, "right").unwrap();
    connection.answer().finish(Status::OK, &[]).unwrap();
    assert_eq!(sent(&mut connection), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright");
}

#[test]
fn an_inner_mark_takes_back_only_what_follows_it() {
    let (mut input, mut output) = ([0; 128], [0; 400]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
    out.begin(MessageHead::Result).unwrap();
    out.put(b"{").unwrap();
    let mark = out.mark();
    out.put(b"wrong").unwrap();
    out.roll_back(mark);
    assert_eq!(out.put(b"}"), Ok(()));
    assert_eq!(out.begin(MessageHead::Notification), Err(FullError::Never));
    // An unfinished body is not sent.
    assert_eq!(connection.pending(), b"");
    BodyOut::new(connection.answer(), &|_| Status::OK, &[]).end();
    assert!(sent(&mut connection).ends_with("Content-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"));
}

#[test]
fn a_body_in_windows() {
    for (request, head, windows) in [
        (
            GET,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n",
            ["000a\r\n0123456789\r\n", "0002\r\nab\r\n0\r\n\r\n"],
        ),
        (OLD, "HTTP/1.1 200 OK\r\n", ["0123456789", "ab"]),
    ] {
        let (mut input, mut output) = ([0; 128], [0; 128]);
        let mut connection = connected((&mut input, &mut output), request);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
        out.begin(MessageHead::Streamed).unwrap();
        out.hold(true);
        out.put(b"01234").unwrap();
        out.put(b"56789").unwrap();
        connection.consume();
        assert_eq!(connection.step(0), ConnectionStep::Answering);
        let close = if request == OLD { "Connection: close\r\n" } else { "" };
        assert_eq!(sent(&mut connection), format!("{head}Content-Type: application/json\r\n{close}\r\n{}", windows[0]));
        let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
        assert!(out.held());
        assert_eq!(out.begin(MessageHead::Result), Err(FullError::Now));
        while out.put(b"x").is_ok() {}
        let room = out.room();
        assert_eq!(room, 0);
        let n = connection.pending().len();
        connection.sent(n);
        let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
        out.put(b"ab").unwrap();
        out.hold(false);
        out.end();
        assert_eq!(sent(&mut connection), windows[1]);
        assert_eq!(connection.step(0), if request == OLD { ConnectionStep::Close } else { ConnectionStep::Read });
    }
}

#[test]
fn events_are_the_same_however_they_are_put_and_sent() {
    let written = |step: usize, sends: usize| {
        let (mut input, mut output) = ([0; 128], [0; 512]);
        let mut connection = connected((&mut input, &mut output), GET);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        connection.answer().stream(&[]).unwrap();
        connection.consume();
        let mut all = String::new();
        for (number, text) in ["{\"a\":1}", "{}", "[1,2,3]"].iter().enumerate() {
            let id = number.to_string();
            let mut out = EventOut::new(connection.answer(), SseEvent::new().id(&id));
            whole(&mut out, MessageHead::Notification, |out| {
                text.as_bytes().chunks(step).for_each(|part| out.put(part))
            })
            .unwrap();
            let mark = out.mark();
            whole(&mut out, MessageHead::Notification, |out| out.put(b"taken back")).unwrap();
            whole(&mut out, MessageHead::Notification, |out| out.put(b"and this")).unwrap();
            out.roll_back(mark);
            if number % sends == 0 {
                all += &sent(&mut connection);
            }
        }
        connection.answer().end_stream();
        assert!(connection.answer().is_done());
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
        if connection.answer().stream(&[]).is_err() {
            assert!(connection.answer().is_owed() && connection.pending().is_empty());
            continue;
        }
        let mut out = EventOut::new(connection.answer(), SseEvent::new());
        let mut written = 0;
        loop {
            let (room, mark) = (out.room(), out.mark());
            // A message begins only where a byte of it has room.
            assert_eq!(out.begin(MessageHead::Notification).is_ok(), room > 0);
            out.roll_back(mark);
            let done = whole(&mut out, MessageHead::Notification, |out| out.put(b"0123456789"));
            if done.is_err() {
                assert!(room < 10);
                assert_eq!(out.mark(), mark);
                break;
            }
            assert!(room >= 10);
            written += 1;
        }
        connection.answer().end_stream();
        let text = sent(&mut connection);
        assert!(text.ends_with("0\r\n\r\n") && text.matches("data: 0123456789\n\n").count() == written, "{text}");
        assert!(size >= text.len());
    }
}

#[test]
fn no_event_begins_in_a_message_in_windows() {
    let (mut input, mut output) = ([0; 128], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer().stream(&[]).unwrap();
    let mut out = EventOut::new(connection.answer(), SseEvent::new());
    assert!(!out.held() && out.capacity() > 100);
    out.hold(true);
    assert!(out.held());
    assert_eq!(out.begin(MessageHead::Notification), Err(FullError::Now));
    out.hold(false);
    whole(&mut out, MessageHead::Notification, |out| out.put(b"{}")).unwrap();
}

#[test]
fn the_first_message_can_still_take_a_stream_back() {
    let (mut input, mut output) = ([0; 128], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    let mark = BodyOut::new(connection.answer(), &|_| Status::OK, &[]).mark();
    connection.answer().stream(&[]).unwrap();
    let mut out = EventOut::new(connection.answer(), SseEvent::new());
    out.begin(MessageHead::Notification).unwrap();
    out.roll_back(mark);
    assert!(connection.answer().is_owed());
    connection.answer().full(Status::NO_CONTENT, &[], b"").unwrap();
    assert_eq!(sent(&mut connection), "HTTP/1.1 204 No Content\r\n\r\n");
}

#[test]
fn headers_cannot_be_forged() {
    let (mut input, mut output) = ([0; 128], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    let fields = [("A", "b\r\nSet-Cookie: c"), ("X\r\nY", "z"), ("", "z"), ("Tab", "\tok\0")];
    connection.answer().full(Status(299), &fields, b"!").unwrap();
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
    connection.answer().full(Status::OK, &[], b"").unwrap();
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
    connection.answer().full(Status::OK, &[], &[b'x'; 100]).unwrap();
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
    assert_eq!(connection.head().unwrap().get("EXPECT"), Some(&b"100-continue"[..]));
    assert!(connection.exchange().is_none());
    connection.answer().full(Status::UNAUTHORIZED, &[("WWW-Authenticate", "Bearer")], b"").unwrap();
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    let expected =
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer\r\nConnection: close\r\n\r\n";
    assert_eq!(sent(&mut connection), expected);
    feed(&mut connection, "abcdeGET / HTTP/1.1\r\n\r\n");
    assert_eq!(connection.step(0), ConnectionStep::Shut);
    connection.end_of_input();
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
        write(connection.answer());
        assert!(connection.answer().is_done() && !connection.answer().is_owed());
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
    let json = "Content-Type: application/json\r\n";
    for kind in [MessageHead::Result, MessageHead::Streamed] {
        let written = answered(&|answer| {
            let mut out = BodyOut::new(answer, &|_| Status::OK, &[]);
            out.begin(kind).unwrap();
            out.put(b"{}").unwrap();
            out.end();
        });
        assert_eq!(written, format!("{ok}{json}\r\n"), "{kind:?}");
    }
    let events = answered(&|answer| {
        answer.stream(&[]).unwrap();
        assert_eq!(answer.put(b"x"), Err(FullError::Never));
        answer.end_stream();
    });
    assert!(events.starts_with(ok) && events.ends_with("X-Accel-Buffering: no\r\n\r\n"), "{events}");
    assert!(!events.contains("chunked"), "{events}");
    let other = answered(&|answer| answer.stream_with(Status(207), &[("A", "b")]).unwrap());
    assert_eq!(other, "HTTP/1.1 207 \r\nA: b\r\n\r\n");
}

/// An answer that has no body by its status has no length either.
#[test]
fn statuses_without_a_body() {
    for status in [100, 199, 200, 203, 204, 205, 303, 304, 305, 999, 1000, u16::MAX] {
        let (mut input, mut output) = ([0; 128], [0; 512]);
        let mut connection = connected((&mut input, &mut output), GET);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        connection.answer().full(Status(status), &[], b"xy").unwrap();
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
        connection.answer().stream(&[]).unwrap();
        sent(&mut connection);
        let mut out = EventOut::new(connection.answer(), SseEvent::new().id("1"));
        // Nothing waits, so all that there ever is of room is there now, and all of it may be used.
        let room = out.room();
        let around = "id: 1\ndata: \n\n".len() + digits + "\r\n\r\n0\r\n\r\n".len();
        assert_eq!((room, out.capacity()), (limit - around, room));
        out.begin(MessageHead::Notification).unwrap();
        assert_eq!(out.room(), room);
        assert_eq!(out.put(&vec![b'x'; room + 1]), Err(FullError::Now));
        out.put(&vec![b'x'; room]).unwrap();
        out.end();
        connection.answer().end_stream();
        let text = sent(&mut connection);
        assert_eq!(text.len(), limit);
        let data = room + "id: 1\ndata: \n\n".len();
        assert_eq!(text.split_once("\r\n").unwrap().0, format!("{data:0digits$x}"));
    }
}

/// More than is pending, and nothing, are no bytes of the next answer.
#[test]
fn no_more_is_sent_than_is_pending() {
    let (mut input, mut output) = ([0; 128], [0; 512]);
    let mut connection = connected((&mut input, &mut output), &[GET, GET].concat());
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer().full(Status::OK, &[], b"1").unwrap();
    connection.sent(usize::MAX);
    assert!(!connection.has_pending() && connection.pending().is_empty());
    assert_eq!(connection.step(0), ConnectionStep::Request);
    let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
    out.begin(MessageHead::Result).unwrap();
    out.put(b"{").unwrap();
    // A body without its end is not pending.
    connection.sent(usize::MAX);
    let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
    out.put(b"}").unwrap();
    out.end();
    assert!(sent(&mut connection).ends_with("Content-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"));
}

/// The rest of what was begun in windows goes out, also when the last of it is not held.
#[test]
fn windows_that_were_sent_in_part() {
    let (mut input, mut output) = ([0; 128], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
    out.begin(MessageHead::Streamed).unwrap();
    out.hold(true);
    out.put(b"01234").unwrap();
    let whole = String::from_utf8(connection.pending().to_vec()).unwrap();
    connection.sent(20);
    BodyOut::new(connection.answer(), &|_| Status::OK, &[]).hold(false);
    connection.sent(0);
    assert_eq!(String::from_utf8_lossy(connection.pending()), whole[20..]);
    BodyOut::new(connection.answer(), &|_| Status::OK, &[]).end();
    assert_eq!(sent(&mut connection), format!("{}0\r\n\r\n", &whole[20..]));
}

type Write<'f> = &'f dyn Fn(&mut ResponseBuffer<'_>) -> Result<(), FullError>;

const FIRST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

/// Answers twice, and reports `sent_meanwhile` bytes as sent in the middle of the second answer. Returns the rest, if there
/// is room for all.
fn written_behind(parts: (Write<'_>, Write<'_>), sent_meanwhile: usize, size: usize) -> Option<String> {
    let (mut input, mut output) = ([0; 128], [0; 500]);
    let mut connection = connected((&mut input, &mut output[..size]), &[GET, GET].concat());
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer().full(Status::OK, &[], b"{}").ok()?;
    assert_eq!(connection.step(0), ConnectionStep::Request);
    parts.0(connection.answer()).ok()?;
    connection.sent(sent_meanwhile);
    parts.1(connection.answer()).ok()?;
    Some(sent(&mut connection))
}

/// Bytes that were sent make room for an answer, also while it is written.
#[test]
fn an_answer_moves_to_the_front_while_it_is_written() {
    let (long, more) = ("v".repeat(200), "y".repeat(40));
    let body: (Write<'_>, Write<'_>) = (
        &|answer| {
            let mut out = BodyOut::new(answer, &|_| Status::OK, &[]);
            out.begin(MessageHead::Result).and_then(|()| out.put(b"01234"))
        },
        &|answer| {
            let mut out = BodyOut::new(answer, &|_| Status::OK, &[]);
            out.put(more.as_bytes()).map(|()| out.end())
        },
    );
    let begin_draft: Write<'_> = &|answer| {
        let mut out = DraftOut::new(answer);
        out.begin(MessageHead::Result).and_then(|()| out.put(b"01234"))
    };
    let end_draft = |answer: &mut ResponseBuffer<'_>, fields: &[(&str, &str)]| {
        let mut out = DraftOut::new(answer);
        out.put(more.as_bytes()).map(|()| out.end())?;
        answer.finish(Status::OK, fields)
    };
    let stream: (Write<'_>, Write<'_>) =
        (&|answer| answer.stream_with(Status::OK, &[]).and_then(|()| answer.put(b"01234")), &|answer| {
            answer.put(more.as_bytes()).map(|()| answer.end_stream())
        });
    let head = "HTTP/1.1 200 OK\r\n";
    for (parts, second) in [
        (body, format!("{head}Content-Length: 45\r\nContent-Type: application/json\r\n\r\n01234{more}")),
        ((begin_draft, &|answer| end_draft(answer, &[])), format!("{head}Content-Length: 45\r\n\r\n01234{more}")),
        (
            (begin_draft, &|answer| end_draft(answer, &[("Long", &long)])),
            format!("{head}Content-Length: 45\r\nLong: {long}\r\n\r\n01234{more}"),
        ),
        (stream, format!("{head}Transfer-Encoding: chunked\r\n\r\n002d\r\n01234{more}\r\n0\r\n\r\n")),
    ] {
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
}
