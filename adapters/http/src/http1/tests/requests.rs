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
        HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET /windows HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/3.0\r\n\r\nGET";
    let expected = "\nPOST /1 - a Host=a Content-Length=1 <x>\nHTTP/1.1 202 Accepted\nContent-Length: 0\n\n\
        \nPOST /json - a Host=a Transfer-Encoding=chunked <y>\n\
        HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: application/json\n\n{\"a\":1}\
        \nGET /stream - a Host=a <>\n\
        HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Type: text/event-stream\nCache-Control: no-cache\n\
        X-Accel-Buffering: no\nX-Id: 7\n\n0009\ndata: 1\n\n\n0\n\n\
        \nHEAD / - a Host=a <>\nHTTP/1.1 202 Accepted\nContent-Length: 0\n\n\
        \nGET /windows - a Host=a <>\n\
        HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Type: application/json\n\n0007\n{\"a\":1}\n0\n\n\
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
