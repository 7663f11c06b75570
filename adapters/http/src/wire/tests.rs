use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use super::exercise::run;
use super::*;
use mcp_sansio::Full;
use mcp_sansio::frame::{Event, sse};
use mcp_sansio::sink::{Kind, Out, Sink, whole};
#[cfg(feature = "alloc")]
use mcp_sansio::store::Store;

const LIMITS: Limits = Limits::DEFAULT.line(64).head(256).body(32).drain(64);

fn outcome_in(sizes: (usize, usize), input: &[u8], cuts: &[u8]) -> String {
    let mut seen = Vec::new();
    run(input, cuts, sizes, LIMITS, &mut |bytes| seen.extend_from_slice(bytes));
    String::from_utf8_lossy(&seen).replace('\r', "")
}

/// What comes of `input`, which is the same however it is cut.
fn outcome(input: &str) -> String {
    let input = input.as_bytes();
    let whole = outcome_in((1024, 1024), input, &[]);
    assert_eq!(outcome_in((1024, 1024), input, &[1]), whole, "byte by byte: {}", input.escape_ascii());
    for cut in 1..input.len().min(256) {
        let cut = cut as u8;
        assert_eq!(outcome_in((1024, 1024), input, &[cut, 0]), whole, "cut at {cut}: {}", input.escape_ascii());
        assert_eq!(outcome_in((1024, 1024), input, &[cut]), whole, "by {cut}: {}", input.escape_ascii());
    }
    whole
}

/// The status of the one answer that ends the connection.
fn refusal(input: &str) -> u16 {
    let outcome = outcome(input);
    let status = outcome.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
    let Some(status) = status else { panic!("not refused: {} gives {outcome}", input.escape_default()) };
    let expected =
        format!("HTTP/1.1 {status} {}\nContent-Length: 0\nConnection: close\n\n\nclosed", Status(status).reason());
    assert_eq!(outcome, expected, "{}", input.escape_default());
    status
}

/// What is accepted: what the application sees of the only request.
fn accepted(input: &str) -> String {
    let outcome = outcome(input);
    let request = outcome.strip_prefix('\n').and_then(|rest| rest.split_once(">\nHTTP/1.1 202 Accepted\n"));
    let Some((request, _)) = request else { panic!("refused: {} gives {outcome}", input.escape_default()) };
    format!("{request}>")
}

#[test]
fn reset() {
    let request = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    let (mut input, mut output) = ([0; 128], [0; 256]);
    let mut connection = Connection::<8>::new(&mut input, &mut output, LIMITS);
    for unfinished in [request, "GE", "T / HTTP/1.1\r\n\r\n", ""] {
        connection.space()[..unfinished.len()].copy_from_slice(unfinished.as_bytes());
        connection.filled(unfinished.len());
        let _ = connection.step(0);
        connection.end_of_input();
        connection.close();
        let _ = connection.step(1);
        connection.reset();
        assert_eq!((connection.has_pending(), connection.head().is_none(), connection.refused()), (false, true, None));
        assert_eq!((connection.step(2), connection.input_ended()), (Step::Read, false));
        assert_eq!(connection.space().len(), 128);
        assert_eq!(connection.next_deadline(), Some(2 + LIMITS.idle_time));
    }
    let whole = [request, "abc"].concat();
    connection.space()[..whole.len()].copy_from_slice(whole.as_bytes());
    connection.filled(whole.len());
    assert_eq!(connection.step(3), Step::Request);
}

#[test]
fn heads() {
    for (input, expected) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / - a Host=a <>"),
        ("GET /a?b=c?d HTTP/1.1\r\nHOST:a:80\r\nX:\r\n\r\n", "GET /a b=c?d a:80 HOST=a:80 X= <>"),
        ("GET http://b:1/c?d HTTP/1.1\r\nHost: a\r\n\r\n", "GET /c d b:1 Host=a <>"),
        ("GET HTTP://b HTTP/1.1\r\nHost: a\r\n\r\n", "GET / - b Host=a <>"),
        ("GET http://b?x HTTP/1.1\r\nHost: a\r\n\r\n", "GET / x b Host=a <>"),
        ("OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", "OPTIONS * -  Host= <>"),
        ("GET / HTTP/1.1\r\nHost: a\r\nB: \t c d \t\r\n\r\n", "GET / - a Host=a B=c d <>"),
        ("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\na: 2\r\n\r\n", "GET / - a Host=a A=1 a=2 <>"),
        ("GET / HTTP/1.0\r\n\r\n", "GET / - - <>"),
        ("\r\n\r\nGET / HTTP/1.0\r\n\r\n", "GET / - - <>"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "POST / - a Host=a Content-Length=3 <abc>"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 003\r\n\r\nabc", "POST / - a Host=a Content-Length=003 <abc>"),
        ("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET / - [::1]:80 Host=[::1]:80 <>"),
        ("x-Y~ / HTTP/1.1\r\nHost: a\r\n\r\n", "x-Y~ / - a Host=a <>"),
    ] {
        assert_eq!(accepted(input), expected);
    }
}

#[test]
fn malformed_heads_are_refused() {
    for (expected, input) in [
        // Bare newlines, folded lines, white space and bytes where none belong.
        (400, "GET / HTTP/1.1\nHost: a\n\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\n\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n d\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost\t: a\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nB: c\rd\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nB: \0\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nB(: c\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\n: c\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nÄ: c\r\n\r\n"),
        (400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET /  HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
        (400, " GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "\r GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "\x16\x03\x01\x02\0\x01\0"),
        // Targets.
        (400, "GET /ä HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
        // Versions.
        (400, "GET /\r\nHost: a\r\n\r\n"),
        (400, "GET / http/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET / HTTP/1.1x\r\nHost: a\r\n\r\n"),
        (505, "GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
        (505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
        (505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (505, "GET / HTTP/0.9\r\n\r\n"),
        // Hosts.
        (400, "GET / HTTP/1.1\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        (400, "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
        (417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n"),
    ] {
        assert_eq!(refusal(input), expected, "{}", input.escape_default());
    }
}

#[test]
fn shapes_that_smuggle_are_refused() {
    for (expected, headers) in [
        (400, "Content-Length: 1\r\nContent-Length: 2"),
        (400, "Content-Length: 1\r\nContent-Length: 1"),
        (400, "Content-Length: 1, 2"),
        (400, "Content-Length: 1 2"),
        (400, "Content-Length: +1"),
        (400, "Content-Length: -1"),
        (400, "Content-Length: 0x1"),
        (400, "Content-Length:"),
        (400, "Content-Length: 1\r\nTransfer-Encoding: chunked"),
        (400, "Transfer-Encoding: chunked\r\nContent-Length: 1"),
        (400, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        (400, "Transfer-Encoding: chunked, chunked"),
        (400, "Transfer-Encoding:"),
        (400, "Transfer-Encoding: ,"),
        (400, "Transfer-Encoding : chunked"),
        (501, "Transfer-Encoding: gzip, chunked"),
        (501, "Transfer-Encoding: chunked, identity"),
        (501, "Transfer-Encoding: xchunked"),
        (501, "Transfer-Encoding: chunked;q=1"),
        (501, "Transfer-Encoding: \"chunked\""),
        (400, "Transfer-Encoding: \x0bchunked"),
        (413, "Content-Length: 33"),
        (413, "Content-Length: 18446744073709551617"),
        (413, "Content-Length: 99999999999999999999999999999999999"),
    ] {
        assert_eq!(
            refusal(&format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n0\r\n\r\n")),
            expected,
            "{headers}"
        );
    }
    assert_eq!(refusal("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
}

#[test]
fn limits() {
    let line = |n: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(n));
    let fits = 64 - "GET / HTTP/1.1\r".len();
    accepted(&line(fits));
    assert_eq!(refusal(&line(fits + 1)), 414);
    assert_eq!(refusal(&line(1000)), 414);
    assert_eq!(refusal(&"x".repeat(1000)), 414);
    assert_eq!(refusal(&"\r\n".repeat(500)), 414);
    let head = |n: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(n));
    let fits = 256 - head(0).len();
    accepted(&head(fits));
    assert_eq!(refusal(&head(fits + 1)), 431);
    assert_eq!(refusal(&head(1000)), 431);
    let many = |n: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(n));
    accepted(&many(7));
    assert_eq!(refusal(&many(8)), 431);
    let body = |n: usize| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {n}\r\n\r\n{}", "x".repeat(n));
    accepted(&body(32));
    assert_eq!(refusal(&body(33)), 413);
}

const CHUNKED: &str = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n";

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
    // Nothing to wait for, or nobody who understands it.
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

/// A second reader of heads, written differently: whole lines, no state. It has to agree on what is accepted.
fn plain(input: &str) -> bool {
    let token = |text: &str| !text.is_empty() && text.bytes().all(chunked::is_token);
    let Some((head, rest)) = input.split_once("\r\n\r\n") else { return false };
    let mut lines = head.split("\r\n");
    let parts: Vec<_> = lines.next().unwrap_or("").split(' ').collect();
    let [method, target, version] = parts[..] else { return false };
    if !token(method)
        || !target.starts_with('/')
        || target.contains('#')
        || !target.bytes().all(|b| b.is_ascii_graphic())
    {
        return false;
    }
    let mut named: Vec<(String, &str)> = Vec::new();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { return false };
        if !token(name) || value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return false;
        }
        named.push((name.to_lowercase(), value.trim_matches([' ', '\t'])));
    }
    let all = |name: &str| named.iter().filter(|(other, _)| other == name).map(|(_, value)| *value).collect::<Vec<_>>();
    let (lengths, codings, hosts) = (all("content-length"), all("transfer-encoding"), all("host"));
    let length = match (&lengths[..], &codings[..]) {
        ([], []) => Some(0),
        ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => length.parse().ok(),
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => {
            return rest == "0\r\n\r\n" && version == "HTTP/1.1" && hosts.len() == 1;
        }
        _ => None,
    };
    let hosts = version == "HTTP/1.0" && hosts.len() < 2 || version == "HTTP/1.1" && hosts.len() == 1;
    hosts && length == Some(rest.len())
}

#[test]
fn two_readers_agree_on_what_is_a_request() {
    let lines = [
        "GET / HTTP/1.1",
        "POST /x HTTP/1.0",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1\n",
        "Host: a",
        "host:\tb ",
        "Content-Length: 2",
        "Content-Length: 02",
        "content-length:2",
        "Content-Length : 2",
        "Transfer-Encoding: chunked",
        "transfer-encoding: CHUNKED",
        "X: y",
        " X: y",
        "X: y\r",
        "X",
        "X:",
        "X: \x01",
        ": y",
        "X: é",
        "",
        "Content-Length: ",
    ];
    let ends = ["", "ab", "0\r\n\r\n", "a"];
    let mut count = 0;
    for number in 0..lines.len().pow(3) * ends.len() {
        let (end, number) = (ends[number % ends.len()], number / ends.len());
        let pick = |place: u32| lines[number / lines.len().pow(place) % lines.len()];
        let first = if number % 5 == 0 { pick(0) } else { "POST / HTTP/1.1" };
        let input = format!("{first}\r\n{}\r\n{}\r\n\r\n{end}", pick(1), pick(2));
        let seen = outcome_in((1024, 1024), input.as_bytes(), &[]);
        // One request, and nothing after it but the end.
        let requests = seen.matches(">\nHTTP/1.1 202").count();
        let agreed = requests == 1 && seen.matches("HTTP/1.1 ").count() == 1 && seen.ends_with("\nclosed");
        if input.starts_with("\r\n")
            || input.contains("\r\n\r\n\r\n")
            || end.is_empty() && !plain(&input) && requests == 1
        {
            continue; // blank lines before a request are skipped; something after its end is another request
        }
        let rest_is_junk = requests == 1 && !plain(&input);
        if rest_is_junk {
            // Only what came after a complete request may be wrong with it.
            assert!(
                (0..input.len()).any(|end| input.is_char_boundary(end) && plain(&input[..end])),
                "{}",
                input.escape_debug()
            );
        } else {
            assert_eq!(agreed, plain(&input), "{} gives {seen}", input.escape_debug());
        }
        count += usize::from(agreed);
    }
    assert!(count > 100, "{count} accepted");
}

#[test]
fn the_endpoint_sees_the_host_that_is_meant() {
    use crate::endpoint::Headers;
    for (line, target, host) in [
        ("GET /a?b=c", "/a?b=c", "a"),
        ("GET /a", "/a", "a"),
        ("GET http://b:1/a?b", "/a?b", "b:1"),
        ("GET http://b", "/", "b"),
    ] {
        let (mut input, mut output) = ([0; 128], [0; 128]);
        let mut connection = connected((&mut input, &mut output), &format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(connection.step(0), Step::Request);
        let head = connection.head().unwrap();
        assert_eq!((head.target(), Headers::get(&head, "HOST")), (target, Some(host.as_bytes())));
    }
}

// Answers.

/// A connection that has got `input`.
fn connected<'m>(stores: (&'m mut [u8], &'m mut [u8]), input: &str) -> Connection<'m, 8> {
    let mut connection = Connection::<8>::new(stores.0, stores.1, LIMITS);
    feed(&mut connection, input);
    connection
}

fn feed(connection: &mut Connection<'_, 8>, input: &str) {
    connection.space()[..input.len()].copy_from_slice(input.as_bytes());
    connection.filled(input.len());
}

fn sent(connection: &mut Connection<'_, 8>) -> String {
    let text = String::from_utf8(connection.pending().to_vec()).unwrap();
    connection.sent(text.len());
    text
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OLD: &str = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";

fn result(out: &mut dyn Out, text: &str) -> Result<(), Full> {
    whole(out, Kind::Result, |out| text.as_bytes().chunks(3).try_for_each(|part| out.put(part)))
}

#[test]
fn a_body_is_whole_or_was_never_there() {
    let body = "0123456789";
    for size in 0..200 {
        let (mut input, mut output) = ([0; 128], [0; 200]);
        let mut connection = connected((&mut input, &mut output[..size]), GET);
        assert_eq!(connection.step(0), Step::Request);
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
                assert_eq!(full, Full::Never);
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
        assert_eq!(connection.step(0), Step::Request);
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
    assert_eq!(connection.step(0), Step::Read);
}

#[test]
fn a_head_that_comes_after_its_body() {
    let long = "v".repeat(300);
    for size in (0..700).step_by(7) {
        for (request, before) in [(GET, false), (GET, true), ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", false)] {
            for fields in [&[][..], &[("A", "b")], &[("Long", &long)]] {
                let (mut input, mut output) = ([0; 128], [0; 700]);
                let mut connection = connected((&mut input, &mut output[..size]), &[GET, request].concat());
                assert_eq!(connection.step(0), Step::Request);
                if connection.answer().full(Status::OK, &[], b"").is_err() {
                    continue;
                }
                let mut expected = String::from("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                if !before {
                    sent(&mut connection);
                    expected.clear();
                }
                assert_eq!(connection.step(0), Step::Request);
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
                assert_eq!(connection.step(0), Step::Read);
            }
        }
    }
}

#[test]
fn an_inner_mark_takes_back_only_what_follows_it() {
    let (mut input, mut output) = ([0; 128], [0; 400]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), Step::Request);
    let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
    out.begin(Kind::Result).unwrap();
    out.put(b"{").unwrap();
    let mark = out.mark();
    out.put(b"wrong").unwrap();
    out.roll_back(mark);
    assert_eq!(out.put(b"}"), Ok(()));
    assert_eq!(out.begin(Kind::Notification), Err(Full::Never));
    // Half a body is not for sending.
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
        assert_eq!(connection.step(0), Step::Request);
        let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
        out.begin(Kind::Streamed).unwrap();
        out.hold(true);
        out.put(b"01234").unwrap();
        out.put(b"56789").unwrap();
        connection.consume();
        assert_eq!(connection.step(0), Step::Answering);
        let close = if request == OLD { "Connection: close\r\n" } else { "" };
        assert_eq!(sent(&mut connection), format!("{head}Content-Type: application/json\r\n{close}\r\n{}", windows[0]));
        let mut out = BodyOut::new(connection.answer(), &|_| Status::OK, &[]);
        assert!(out.held());
        assert_eq!(out.begin(Kind::Result), Err(Full::Now));
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
        assert_eq!(connection.step(0), if request == OLD { Step::Close } else { Step::Read });
    }
}

#[test]
fn events_are_the_same_however_they_are_put_and_sent() {
    let written = |step: usize, sends: usize| {
        let (mut input, mut output) = ([0; 128], [0; 512]);
        let mut connection = connected((&mut input, &mut output), GET);
        assert_eq!(connection.step(0), Step::Request);
        connection.answer().stream(&[]).unwrap();
        connection.consume();
        let mut all = String::new();
        for (number, text) in ["{\"a\":1}", "{}", "[1,2,3]"].iter().enumerate() {
            let id = number.to_string();
            let mut out = EventOut::new(connection.answer(), Event::new().id(&id));
            whole(&mut out, Kind::Notification, |out| text.as_bytes().chunks(step).try_for_each(|part| out.put(part)))
                .unwrap();
            let mark = out.mark();
            whole(&mut out, Kind::Notification, |out| out.put(b"taken back")).unwrap();
            whole(&mut out, Kind::Notification, |out| out.put(b"and this")).unwrap();
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
        assert_eq!(connection.step(0), Step::Request);
        if connection.answer().stream(&[]).is_err() {
            assert!(connection.answer().is_owed() && connection.pending().is_empty());
            continue;
        }
        let mut out = EventOut::new(connection.answer(), Event::new());
        let mut written = 0;
        loop {
            let (room, mark) = (out.room(), out.mark());
            let done = whole(&mut out, Kind::Notification, |out| out.put(b"0123456789"));
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
fn the_first_message_can_still_take_a_stream_back() {
    let (mut input, mut output) = ([0; 128], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), Step::Request);
    let mark = BodyOut::new(connection.answer(), &|_| Status::OK, &[]).mark();
    connection.answer().stream(&[]).unwrap();
    let mut out = EventOut::new(connection.answer(), Event::new());
    out.begin(Kind::Notification).unwrap();
    out.roll_back(mark);
    assert!(connection.answer().is_owed());
    connection.answer().full(Status::NO_CONTENT, &[], b"").unwrap();
    assert_eq!(sent(&mut connection), "HTTP/1.1 204 No Content\r\n\r\n");
}

#[test]
fn headers_cannot_be_forged() {
    let (mut input, mut output) = ([0; 128], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), Step::Request);
    let fields = [("A", "b\r\nSet-Cookie: c"), ("X\r\nY", "z"), ("", "z"), ("Tab", "\tok\0")];
    connection.answer().full(Status(299), &fields, b"!").unwrap();
    let expected = "HTTP/1.1 299 \r\nContent-Length: 1\r\nA: bSet-Cookie: c\r\nTab: \tok\r\n\r\n!";
    assert_eq!(sent(&mut connection), expected);
}

#[test]
fn answered_by_its_head_alone() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    let mut connection = connected((&mut input, &mut output), head);
    assert_eq!(connection.step(0), Step::Expect);
    assert_eq!(connection.head().unwrap().get("EXPECT"), Some(&b"100-continue"[..]));
    assert!(connection.exchange().is_none());
    connection.answer().full(Status::UNAUTHORIZED, &[("WWW-Authenticate", "Bearer")], b"").unwrap();
    assert_eq!(connection.step(0), Step::Shut);
    let expected =
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer\r\nConnection: close\r\n\r\n";
    assert_eq!(sent(&mut connection), expected);
    feed(&mut connection, "abcdeGET / HTTP/1.1\r\n\r\n");
    assert_eq!(connection.step(0), Step::Shut);
    connection.end_of_input();
    assert_eq!(connection.step(0), Step::Close);
}

#[test]
fn what_follows_a_refusal_is_dropped_up_to_a_bound() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n";
    let mut connection = connected((&mut input, &mut output), head);
    assert_eq!(connection.step(0), Step::Shut);
    assert_eq!(connection.refused(), Some(Status::CONTENT_TOO_LARGE));
    for _ in 0..2 {
        feed(&mut connection, "x");
        assert_eq!(connection.step(0), Step::Shut);
    }
    feed(&mut connection, &"x".repeat(64));
    assert_eq!(connection.step(0), Step::Close);
    assert!(sent(&mut connection).starts_with("HTTP/1.1 413 Content Too Large\r\n"));
}

#[test]
fn deadlines() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), "");
    assert_eq!(connection.next_deadline(), None);
    // Idle: closed without a word.
    assert_eq!(connection.step(1), Step::Read);
    assert_eq!(connection.next_deadline(), Some(60_001));
    assert_eq!(connection.expire(60_000), Expired::Nothing);
    // A head: from its first byte, not from its last.
    feed(&mut connection, "POST / HTTP/1.1\r\n");
    assert_eq!(connection.step(50_000), Step::Read);
    feed(&mut connection, "Host: a\r\n");
    assert_eq!(connection.step(55_000), Step::Read);
    assert_eq!(connection.next_deadline(), Some(60_000));
    feed(&mut connection, "Content-Length: 2\r\n\r\n");
    assert_eq!(connection.step(56_000), Step::Read);
    assert_eq!(connection.next_deadline(), Some(116_000));
    feed(&mut connection, "a");
    assert_eq!(connection.step(57_000), Step::Read);
    assert_eq!(connection.next_deadline(), Some(116_000));
    feed(&mut connection, "b");
    // While the answer is made, nobody is waited for.
    assert_eq!(connection.step(58_000), Step::Request);
    assert_eq!(connection.next_deadline(), None);
    connection.answer().full(Status::OK, &[], b"x").unwrap();
    // The peer must take something from time to time.
    assert_eq!(connection.step(70_000), Step::Read);
    assert_eq!(connection.next_deadline(), Some(100_000));
    connection.sent(1);
    assert_eq!(connection.step(80_000), Step::Read);
    assert_eq!(connection.next_deadline(), Some(110_000));
    sent(&mut connection);
    assert_eq!(connection.step(81_000), Step::Read);
    assert_eq!(connection.next_deadline(), Some(141_000));
    // Too slow.
    feed(&mut connection, "G");
    assert_eq!(connection.step(90_000), Step::Read);
    assert_eq!(connection.expire(100_000), Expired::Refused);
    assert_eq!(connection.step(100_000), Step::Shut);
    assert_eq!(sent(&mut connection), "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert_eq!(connection.step(100_000), Step::Shut);
    assert_eq!(connection.next_deadline(), Some(102_000));
    assert_eq!(connection.expire(102_000), Expired::Close);
    assert_eq!(connection.step(102_000), Step::Close);
    assert_eq!(connection.next_deadline(), None);
}

#[test]
fn a_peer_that_reads_nothing_is_let_go() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    assert_eq!(connection.step(0), Step::Request);
    connection.answer().stream(&[]).unwrap();
    connection.consume();
    assert_eq!(connection.step(0), Step::Answering);
    sse::comment("", connection.answer()).unwrap();
    assert_eq!(connection.step(10_000), Step::Answering);
    assert_eq!(connection.next_deadline(), Some(30_000));
    assert_eq!(connection.expire(30_000), Expired::Close);
    assert_eq!(connection.step(30_000), Step::Close);
    assert_eq!(connection.pending(), b"");
}

#[test]
fn closing_when_asked() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), &[GET, GET].concat());
    assert_eq!(connection.step(0), Step::Request);
    connection.close();
    connection.answer().full(Status::ACCEPTED, &[], b"").unwrap();
    // The second request is dropped; its sender sees that this was the last answer.
    assert_eq!(connection.step(0), Step::Shut);
    assert!(sent(&mut connection).contains("Connection: close"));
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), "");
    assert_eq!(connection.step(0), Step::Read);
    connection.close();
    assert_eq!(connection.step(0), Step::Close);
}

#[test]
fn half_closed_sockets_get_their_answer() {
    let (mut input, mut output) = ([0; 256], [0; 256]);
    let mut connection = connected((&mut input, &mut output), GET);
    connection.end_of_input();
    assert_eq!(connection.step(0), Step::Request);
    connection.consume();
    assert_eq!(connection.step(0), Step::Answering);
    connection.answer().full(Status::OK, &[], b"late").unwrap();
    assert_eq!(connection.step(0), Step::Close);
    assert!(sent(&mut connection).ends_with("late"));
}

#[test]
fn work_is_linear() {
    // 4 KiB of head and a large chunked body of tiny chunks, byte by byte: quadratic work would take minutes.
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nX: {}\r\nTransfer-Encoding: chunked\r\n\r\n", "x".repeat(4000));
    let body = "1\r\nx\r\n".repeat(100_000) + "0\r\n\r\n";
    let (mut input, mut output) = (vec![0; 128 * 1024], [0; 256]);
    let mut connection = Connection::<8>::new(&mut input[..], &mut output[..], Limits::default());
    for byte in head.bytes().chain(body.bytes()) {
        connection.space()[0] = byte;
        connection.filled(1);
        if connection.step(0) == Step::Request {
            assert_eq!(connection.exchange().unwrap().0.body.len(), 100_000);
            return;
        }
    }
    panic!("no request");
}

#[cfg(feature = "alloc")]
#[test]
fn stores_that_grow_and_shrink() {
    let mut connection = Connection::<8>::new(Store::growing(1 << 20), Store::growing(1 << 20), Limits::default());
    for length in [0, 1, 5000, 1_000_000] {
        let input = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{}", "y".repeat(length));
        let mut rest = input.as_bytes();
        while connection.step(0) == Step::Read {
            let space = connection.space();
            let n = space.len().min(rest.len());
            assert!(n > 0);
            space[..n].copy_from_slice(&rest[..n]);
            connection.filled(n);
            rest = &rest[n..];
        }
        assert_eq!(rest, b"");
        let (request, answer) = connection.exchange().unwrap();
        assert_eq!(request.body.len(), length);
        answer.full(Status::OK, &[], request.body).unwrap();
        assert!(sent(&mut connection).ends_with(&input[input.len() - length..]));
        assert_eq!(connection.step(0), Step::Read);
        connection.release();
    }
    assert_eq!(Store::growing(7).limit(), 7);
}

#[test]
fn sizes() {
    let connection = size_of::<Connection<'static, 16>>();
    assert!(connection <= 560, "a connection with 16 headers has {connection} bytes");
}
