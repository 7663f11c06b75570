//! Bodies of requests, and requests one after the other.

use super::*;

#[test]
fn chunked_bodies() {
    let seen = |body: &str| {
        let seen = accepted(&format!("{CHUNKED}{body}"));
        seen.strip_prefix("POST /c - a Host=a Transfer-Encoding=Chunked ").unwrap().to_string()
    };
    assert_eq!(seen("0\r\n\r\n"), "<>");
    assert_eq!(seen("3\r\nabc\r\n0\r\n\r\n"), "<abc>");
    assert_eq!(seen("3\r\nabc\r\n00A\r\n0123456789\r\n1\r\n\n\r\n000\r\n\r\n"), "<abc0123456789\n>");
    assert_eq!(seen("20\r\n0123456789abcdef0123456789abcdef\r\n0\r\n\r\n"), "<0123456789abcdef0123456789abcdef>");
    assert_eq!(seen("1;a=b;c=\"d e\"\r\nx\r\n0;e\r\n\r\n"), "<x>");
    assert_eq!(seen("1\r\nx\r\n0\r\nTrailer: dropped\r\nX:\r\n\r\n"), "<x>");
    // As many digits, and as many bytes of extensions and trailers, as there may be.
    assert_eq!(seen("0000000000000001\r\nx\r\n0000000000000000\r\n\r\n"), "<x>");
    assert_eq!(seen(&format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(256))), "<x>");
    assert_eq!(seen(&format!("1\r\nx\r\n0\r\nA:{}\r\n\r\n", "e".repeat(255))), "<x>");
}

/// A store that grows has room for what came, and grows no further while that is consumed.
#[cfg(feature = "alloc")]
#[test]
fn a_store_grows_only_when_it_is_full() {
    let mut connection =
        Connection::<8>::new(Store::growing(1 << 20), Store::growing(1 << 20), ConnectionLimits::DEFAULT);
    // Each piece ends a request, and begins another.
    let mut sizes = Vec::new();
    for at in 0..9 {
        let piece = if at == 0 { "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET" } else { " / HTTP/1.1\r\nHost: a\r\n\r\nGET" };
        connection.space()[..piece.len()].copy_from_slice(piece.as_bytes());
        connection.filled(piece.len());
        assert_eq!(connection.step(0), ConnectionStep::Request);
        connection.answer.full(Status::OK, &[], b"").unwrap();
        sent(&mut connection);
        assert_eq!(connection.step(0), ConnectionStep::Read);
        connection.space();
        sizes.push(connection.input_size());
    }
    assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
}

/// If the store is full in the middle of the framing between two chunks, the read bytes are moved together, and
/// reading continues.
#[test]
fn a_store_that_is_full_between_chunks() {
    let extended = format!("5;{}\r\nabcde\r\n", "e".repeat(40));
    let body = format!("{extended}{extended}1\r\nx\r\n0\r\nT: {}\r\n\r\n", "t".repeat(60));
    let input = format!("{CHUNKED}{body}GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut right = 0;
    for size in CHUNKED.len() + 16..CHUNKED.len() + 200 {
        for cuts in [&[][..], &[1], &[7], &[64, 1]] {
            let seen = outcome_in((size, 1024), input.as_bytes(), cuts);
            // With little room the body is too large, never a different body.
            assert!(seen.contains("<abcdeabcdex>") || seen.starts_with("HTTP/1.1 413"), "{size}: {seen}");
            assert_eq!(seen.contains("<abcdeabcdex>"), seen.contains("GET /next"), "{size}: {seen}");
            right += usize::from(seen.contains("<abcdeabcdex>"));
        }
    }
    assert!(right > 600, "{right}");
}

#[test]
fn malformed_chunks_are_refused() {
    for (expected, body) in [
        (400, "\r\n"),
        (400, ";a\r\n"),
        (400, "x\r\n"),
        (400, "-1\r\n"),
        (400, "0x1\r\n"),
        (400, " 1\r\n"),
        (400, "1 \r\nx\r\n"),
        (400, "1\nx\n0\n\n"),
        (400, "1\r\nx\n0\r\n\r\n"),
        (400, "1\r\nxy\r\n0\r\n\r\n"),
        (400, "1;a\nx\r\n"),
        (400, "1;a\rb\r\nx"),
        (400, "1;\x01\r\nx"),
        (400, "00000000000000001\r\nx"),
        (413, "21\r\n"),
        (413, "10\r\n0123456789abcdef\r\n11\r\n"),
        (413, "ffffffffffffffff\r\nx"),
        (413, "10000000000000000\r\nx"),
        (400, "0\r\nno colon\r\n\r\n"),
        (400, "0\r\nA: b\r\n c\r\n\r\n"),
        (400, "0\r\nA : b\r\n\r\n"),
        (400, "0\r\nA: b\n\n"),
        (400, "0\r\n:\r\n\r\n"),
        (400, "0\r\n\rx"),
    ] {
        let status = refusal(&format!("{CHUNKED}{body}"));
        assert_eq!(status, expected, "{}", body.escape_default());
    }
    assert_eq!(refusal(&format!("{CHUNKED}1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(257))), 400);
    assert_eq!(refusal(&format!("{CHUNKED}{}0\r\n\r\n", "1;extension!\r\nx\r\n".repeat(30))), 400);
    assert_eq!(refusal(&format!("{CHUNKED}0\r\nA: {}\r\n\r\n", "e".repeat(257))), 431);
    assert_eq!(refusal(&format!("{CHUNKED}0\r\nA:{}\r\n\r\n", "e".repeat(256))), 431);
}

#[test]
fn keeping_the_connection() {
    let kept = "HTTP/1.1 202 Accepted\nContent-Length: 0\n\n";
    let closed = "HTTP/1.1 202 Accepted\nContent-Length: 0\nConnection: close\n\n";
    let kept_old = "HTTP/1.1 202 Accepted\nContent-Length: 0\nConnection: keep-alive\n\n";
    for (head, expected) in [
        ("GET / HTTP/1.1\r\nHost: a", kept),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive", kept),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, CLOSE", closed),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo\r\nConnection: close", closed),
        ("GET / HTTP/1.0", closed),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive", kept_old),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive, close", closed),
    ] {
        let one = outcome(&format!("{head}\r\n\r\n"));
        assert!(one.ends_with(&format!(">\n{expected}\nclosed")), "{one}");
        let two = outcome(&format!("{head}\r\n\r\nGET /2 HTTP/1.0\r\n\r\n"));
        assert_eq!(two.contains("GET /2"), expected != closed, "{two}");
    }
}

#[test]
fn requests_sent_ahead_wait_for_their_turn() {
    let input = "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx\
        POST /json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ny\r\n0\r\nT: 1\r\n\r\n\
        \r\nGET /stream HTTP/1.1\r\nHost: a\r\n\r\n\
        HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET /json HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/3.0\r\n\r\nGET";
    let expected = "\nPOST /1 - a Host=a Content-Length=1 <x>\nHTTP/1.1 202 Accepted\nContent-Length: 0\n\n\
        \nPOST /json - a Host=a Transfer-Encoding=chunked <y>\n\
        HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: application/json\n\n{\"a\":1}\
        \nGET /stream - a Host=a <>\n\
        HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Type: text/event-stream\nCache-Control: no-cache\n\
        X-Accel-Buffering: no\nX-Id: 7\n\n0009\ndata: 1\n\n\n0\n\n\
        \nHEAD / - a Host=a <>\nHTTP/1.1 202 Accepted\nContent-Length: 0\n\n\
        \nGET /json - a Host=a <>\n\
        HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: application/json\n\n{\"a\":1}\
        HTTP/1.1 505 HTTP Version Not Supported\nContent-Length: 0\nConnection: close\n\n\nclosed";
    assert_eq!(outcome(input), expected);
}

#[test]
fn leave_to_send_a_body() {
    let input = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nab";
    let expected = "\nexpect HTTP/1.1 100 Continue\n\n\nPOST / - a Host=a Expect=100-Continue Content-Length=2 <ab>\n\
        HTTP/1.1 202 Accepted\nContent-Length: 0\n\n\nclosed";
    assert_eq!(outcome(input), expected);
    // Without a body or with HTTP/1.0, there is no 100 (Continue).
    accepted("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n");
    accepted("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na");
    assert_eq!(refusal("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 99\r\n\r\n"), 413);
}

#[test]
fn what_breaks_off_is_no_request() {
    for input in ["", "\r\n", "GET / HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\na"] {
        assert_eq!(outcome(input), "\nclosed");
    }
    assert_eq!(outcome(&format!("{CHUNKED}5\r\nabc")), "\nclosed");
}

#[test]
fn stores_of_any_size() {
    let input = "POST /json HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
        POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for size in 0..200 {
        for sizes in [(size, 1024), (1024, size), (size, size)] {
            let whole = outcome_in(sizes, input.as_bytes(), &[]);
            assert_eq!(outcome_in(sizes, input.as_bytes(), &[1]), whole, "{sizes:?}");
            assert_eq!(outcome_in(sizes, input.as_bytes(), &[7, 3]), whole, "{sizes:?}");
        }
    }
}

#[test]
fn any_bytes_however_cut() {
    // A small generator; the fuzz target goes further.
    let words = [
        "GET ",
        "POST ",
        "/",
        "/json",
        "/stream",
        "/windows",
        " HTTP/1.1",
        " HTTP/1.0",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "Host: a\r\n",
        "Content-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\n",
        "3\r\nabc\r\n",
        "0\r\n\r\n",
        "abc",
        " ",
        ":",
        "Expect: 100-continue\r\n",
        "Connection: close\r\n",
        "\0",
        "é",
    ];
    let mut random = 1u64;
    let mut next = |n: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % n
    };
    for _ in 0..20000 {
        let mut data: Vec<u8> = (0..8).map(|_| next(256) as u8).collect();
        if next(2) == 0 {
            data.extend_from_slice(b"POST / HTTP/1.1\r\nHost: a\r\n");
        }
        for _ in 0..next(20) {
            data.extend_from_slice(words[next(words.len())].as_bytes());
        }
        exercise::fuzz(&data);
    }
}

/// A connection with stores of 4 KiB that has answered a request.
#[cfg(feature = "alloc")]
fn after(first: &str, limits: ConnectionLimits, then: &mut dyn FnMut(&mut Connection<'_, 8>)) {
    let (mut input, mut output) = ([0; 4096], [0; 1024]);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], limits);
    feed(&mut connection, first);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    connection.answer.full(Status::OK, &[], b"").unwrap();
    assert_eq!(connection.step(0), ConnectionStep::Read);
    sent(&mut connection);
    work::take();
    then(&mut connection);
}

/// Returns a request with this path, length and body.
#[cfg(feature = "alloc")]
fn post(path: &str, length: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\nX-B: c\r\n\r\n{body}")
}

/// The head is compared with the one before it, not parsed.
#[cfg(feature = "alloc")]
#[test]
fn the_same_head_again() {
    let head = post("/a?b", "7", "").len();
    after(&post("/a?b", "7", "0123456"), LIMITS, &mut |connection| {
        for (body, ahead) in [("0123456", ""), ("9876543", GET), ("01", ""), ("", "")] {
            let length = body.len().to_string();
            feed(connection, &(post("/a?b", &length, body) + ahead));
            assert_eq!(connection.step(0), ConnectionStep::Request);
            assert_eq!(work::take(), head, "only the head was looked at");
            let (request, answer) = connection.exchange().unwrap();
            let head = request.head;
            let line = (head.method(), head.path(), head.query(), head.host(), request.body);
            assert_eq!(line, ("POST", "/a", Some("b"), Some("a"), Some(body.as_bytes())));
            let mut fields = Vec::new();
            head.all(&mut |name, value| fields.push((name, value)));
            let expected: [(&[u8], &[u8]); 3] =
                [(b"Host", b"a"), (b"Content-Length", length.as_bytes()), (b"X-B", b"c")];
            assert_eq!(fields, expected);
            answer.full(Status::OK, &[], b"").unwrap();
            if !ahead.is_empty() {
                // Another head, which has no length, and then the first one again.
                assert_eq!(connection.step(0), ConnectionStep::Request);
                assert_eq!(connection.exchange().unwrap().0.head.method(), "GET");
                connection.answer.full(Status::OK, &[], b"").unwrap();
                assert_eq!(connection.step(0), ConnectionStep::Read);
                feed(connection, &post("/a?b", "0", ""));
                assert_eq!(connection.step(0), ConnectionStep::Request);
                connection.answer.full(Status::OK, &[], b"").unwrap();
            }
            assert_eq!(connection.step(0), ConnectionStep::Read);
            sent(connection);
            work::take();
        }
        // More digits: it is parsed, and then it is the one to compare with.
        feed(connection, &post("/a?b", "10", "0123456789"));
        assert_eq!(connection.step(0), ConnectionStep::Request);
        assert_eq!(work::take(), head + 11);
    });
    // A release takes the memory, and the head with it.
    after(&post("/", "0", ""), LIMITS, &mut |connection| {
        connection.release();
        feed(connection, &post("/", "1", "x"));
        assert_eq!(connection.step(0), ConnectionStep::Request);
        assert_eq!(work::take(), post("/", "1", "x").len());
    });
}

/// A head that is nearly the same has the outcome that it has alone: each byte changed in each way.
#[cfg(feature = "alloc")]
#[test]
fn nearly_the_same_head() {
    let request = post("/json", "12", "0123456789ab");
    let (whole, empty) = (request.as_bytes(), "\nclosed");
    let before = outcome_in((4096, 4096), whole, &[]);
    let before = before.strip_suffix(empty).unwrap();
    for place in 0..whole.len() {
        for byte in 0..=255 {
            let mut second = whole.to_vec();
            second[place] = byte;
            let alone = outcome_in((4096, 4096), &second, &[]);
            let behind = outcome_in((4096, 4096), &[whole, &second].concat(), &[]);
            assert_eq!(behind.strip_prefix(before), Some(&*alone), "{}", second.escape_ascii());
        }
    }
    // The limits of the connection, and of its stores, hold for the length.
    for (length, status) in [("33", 413), ("99", 413), ("+1", 400), ("1 ", 202)] {
        let second = post("/", length, "xxxxxxxxxx");
        let both = outcome_in((4096, 4096), (post("/", "10", "0123456789") + &second).as_bytes(), &[]);
        assert!(both.matches("HTTP/1.1 202").count() + usize::from(status != 202) == 2, "{length}: {both}");
        assert!(both.contains(&format!("HTTP/1.1 {status} ")), "{length}: {both}");
    }
    // A client that does not wait for leave with an empty body waits with another one.
    let expects = |length, body| post("/", length, body).replace("X-B: c", "Expect: 100-continue");
    let both = outcome_in((4096, 4096), (expects("0", "") + &expects("1", "x")).as_bytes(), &[]);
    assert_eq!(both.matches("100 Continue").count(), 1, "{both}");
}

/// A head that is kept leaves room for a request that fills the store.
#[cfg(feature = "alloc")]
#[test]
fn a_kept_head_takes_no_room_that_is_needed() {
    let limits = LIMITS.body(4096);
    for length in [3000, 4000, 4096 - post("/", "4000", "").len()] {
        let request = post("/", &length.to_string(), &"x".repeat(length));
        after(&post("/", "1000", &"y".repeat(1000)), limits, &mut |connection| {
            let mut rest = request.as_bytes();
            while connection.step(0) == ConnectionStep::Read {
                let space = connection.space();
                let n = space.len().min(rest.len());
                assert!(n > 0, "no room at {} of {length}", request.len() - rest.len());
                space[..n].copy_from_slice(&rest[..n]);
                connection.filled(n);
                rest = &rest[n..];
            }
            assert_eq!(connection.exchange().unwrap().0.body.unwrap().len(), length);
            assert_eq!(rest, b"");
        });
    }
}

/// The digest that fuzzing compares depends on what happens, and what does not fit shows.
#[test]
fn what_fuzzing_compares() {
    let digest = |input: &str, size| exercise::digest(input.as_bytes(), &[], (1024, size), LIMITS);
    assert_eq!(digest(GET, 1024), digest(GET, 1024));
    assert_ne!(digest(GET, 1024), digest("GET /x HTTP/1.1\r\nHost: a\r\n\r\n", 1024));
    assert_ne!(digest(GET, 1024), digest(GET, 30));
    let [whole, full] = [1024, 30].map(|size| outcome_in((1024, size), GET.as_bytes(), &[]));
    assert!(full.contains("full") && !full.contains("HTTP/1.1 2") && !whole.contains("full"), "{full}");
}
