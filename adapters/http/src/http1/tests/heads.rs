//! Heads of requests: accepted and refused ones.

use super::*;

#[test]
fn heads() {
    for (input, expected) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / - a Host=a <>"),
        ("GET /a?b=c?d HTTP/1.1\r\nHOST:a:80\r\nX:\r\n\r\n", "GET /a b=c?d a:80 HOST=a:80 X= <>"),
        ("GET http://b:1/c?d HTTP/1.1\r\nHost: a\r\n\r\n", "GET /c d b:1 host=b:1 <>"),
        ("GET HTTP://b HTTP/1.1\r\nHost: a\r\n\r\n", "GET / - b host=b <>"),
        ("GET http://b?x HTTP/1.1\r\nHost: a\r\n\r\n", "GET / x b host=b <>"),
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
        // Bare newlines, folded lines, white space and bytes at wrong places.
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

// spec: T153
#[test]
fn messages_with_control_characters_get_an_error() {
    let body = r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"A header has control characters"}}"#;
    let length = body.len();
    let expected = format!(
        "HTTP/1.1 400 Bad Request\nContent-Length: {length}\nContent-Type: application/json\nConnection: close\n\n\
         {body}\nclosed"
    );
    let post = |header: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{header}\r\nC: d\r\n\r\n");
    for header in
        ["B: \0", "B: c\rd", "B: c\x1f", "B: \x7fc", "\x01B: c", "B: c\x08\r\nD: \t", "Transfer-Encoding: \x0bchunked"]
    {
        assert_eq!(outcome(&post(header)), expected, "{}", header.escape_default());
        assert_eq!(outcome(&format!("\r\n\r\n{}", post(header))), expected, "{}", header.escape_default());
    }
    // Other mistakes, and what has no message.
    for input in [post("B(: c"), post("B: c\td\r\n e"), post("B : c"), post("B: \0").replace("POST", "GET")] {
        assert_eq!(refusal(&input), 400, "{}", input.escape_default());
    }
    assert_eq!(refusal("POST / \x01HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    // A store without room for the error has room for the status.
    let small = outcome_in((1024, 128), post("B: \0").as_bytes(), &[]);
    assert_eq!(small, "HTTP/1.1 400 Bad Request\nContent-Length: 0\nConnection: close\n\n\nclosed");
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
        (400, "Content-Length: 1:"),
        (400, "Content-Length: 1/"),
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

/// A second parser of heads, written differently: whole lines, no state. It must agree on which are accepted.
fn plain(input: &str) -> bool {
    let token = |text: &str| !text.is_empty() && text.bytes().all(is_token);
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
        // One request, and only the end after it.
        let requests = seen.matches(">\nHTTP/1.1 202").count();
        let agreed = requests == 1 && seen.matches("HTTP/1.1 ").count() == 1 && seen.ends_with("\nclosed");
        if input.starts_with("\r\n")
            || input.contains("\r\n\r\n\r\n")
            || end.is_empty() && !plain(&input) && requests == 1
        {
            continue; // blank lines before a request are skipped; bytes after its end are another request
        }
        let rest_is_junk = requests == 1 && !plain(&input);
        if rest_is_junk {
            // Only the bytes after a complete request may be wrong.
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
    for (line, target, host) in [
        ("GET /a?b=c", "/a?b=c", "a"),
        ("GET /a", "/a", "a"),
        ("GET http://b:1/a?b", "/a?b", "b:1"),
        ("GET http://b", "/", "b"),
        // There is no slash to return before the query.
        ("GET http://b?c", "/", "b"),
    ] {
        let (mut input, mut output) = ([0; 128], [0; 128]);
        let mut connection = connected((&mut input, &mut output), &format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(connection.step(0), ConnectionStep::Request);
        let head = connection.exchange().unwrap().0.head;
        assert_eq!((head.target(), head.get("HOST")), (target, Some(host.as_bytes())));
    }
}

/// Another parser agrees about a head with each byte at each place: on its parts, and behind the request line on whether
/// it is one.
#[test]
fn another_parser_agrees_on_each_byte() {
    use crate::http1::head::{Field, parse};
    let whole =
        b"\r\nPOST /mcp?a HTTP/1.0\r\nX-Ab: b c\r\nMcp-Session-Id:  0123456789abcdef\t\r\nAccept:\r\n\r\n{}{}{}{}";
    let line = whole.iter().rposition(|byte| *byte == b'?').unwrap() + b"?a HTTP/1.0\r\n".len();
    let mut accepted = 0;
    for at in 0..whole.len() {
        for byte in 0..=255 {
            let mut head = *whole;
            head[at] = byte;
            let mut fields = [Field::default(); 8];
            let ours = parse(&head, &LIMITS, &mut fields);
            let mut headers = [httparse::EMPTY_HEADER; 8];
            let mut other = httparse::Request::new(&mut headers);
            // It also takes lines that end with a bare LF.
            let len = other.parse(&head).ok().filter(httparse::Status::is_complete).map(httparse::Status::unwrap);
            let len =
                len.filter(|len| (0..*len).all(|place| head[place] != b'\n' || place > 0 && head[place - 1] == b'\r'));
            let shown = head.escape_ascii();
            let Some(len) = len else {
                assert!(ours.is_err(), "{shown}");
                continue;
            };
            let Ok(ours) = ours else {
                assert!(at < line, "{shown}");
                continue;
            };
            accepted += 1;
            assert_eq!(ours.len, len, "{shown}");
            let fields = &fields[..usize::from(ours.known.count)];
            let head = HttpHead::new(&head, ours.line, fields, &ours.known);
            assert_eq!((Some(head.method()), Some(head.target())), (other.method, other.path), "{shown}");
            let mut others = other.headers.iter().map(|header| (header.name.as_bytes(), header.value));
            head.all(&mut |name, value| assert_eq!(Some((name, value)), others.next(), "{shown}"));
            assert_eq!(others.next(), None, "{shown}");
            // What the endpoint sees is what a walk through the headers finds.
            let session = head.request_head().fields.get(crate::names::Known::Session).value;
            assert_eq!(session, head.get("mcp-session-id").map(<[u8]>::trim_ascii), "{shown}");
        }
    }
    assert!(accepted > 5_000, "{accepted} accepted");
}

/// The bytes of a host are those of RFC 3986, by which no path, user or second host can follow.
#[test]
fn the_bytes_of_a_host() {
    let marks = b"-._~!$&'()*+,;=:[]%";
    for byte in (b'!'..=b'~').chain(128..=255) {
        let is_allowed = byte.is_ascii_alphanumeric() || marks.contains(&byte);
        for line in [&b"GET / HTTP/1.1\r\nHost: a"[..], b"GET http://a", b"GET hTTps://a"] {
            let mut input = [line, &[byte], b"b"].concat();
            let ends_host = line.ends_with(b"//a");
            input.extend_from_slice(if ends_host { b"/ HTTP/1.1\r\nHost: a\r\n\r\n" } else { b"\r\n\r\n" });
            let seen = outcome_in((1024, 1024), &input, &[]);
            let is_accepted = seen.contains("HTTP/1.1 202");
            let expected = is_allowed || ends_host && matches!(byte, b'/' | b'?');
            assert_eq!(is_accepted, expected, "{}", input.escape_ascii());
        }
    }
}

/// The parts of a head, as an application asks for them.
#[test]
fn the_parts_of_a_head() {
    let (mut input, mut output) = ([0; 256], [0; 128]);
    let old = "POST /a?b HTTP/1.0\r\nX: 1\r\nx: 2\r\nY: \u{e9}\r\nXX: 3\r\n\r\n";
    let mut connection = connected((&mut input, &mut output), old);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    let head = connection.exchange().unwrap().0.head;
    assert_eq!((head.version(), head.host(), head.query()), (HttpVersion::Http10, None, Some("b")));
    let (mut values, mut lines) = (Vec::new(), 0);
    head.each("X", &mut |value| values.push(value));
    head.all(&mut |_, _| lines += 1);
    assert_eq!((values, lines), (Vec::from([&b"1"[..], b"2"]), 4));
    assert_eq!((head.get("Xx"), head.get("xxx")), (Some(&b"3"[..]), None));
    let texts = head.request_head();
    assert_eq!((texts.text("x"), texts.text("y"), texts.text("z")), (Some("1"), Some("\u{e9}"), None));
    let (mut input, mut output) = ([0; 256], [0; 128]);
    let new = "OPTIONS * HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n";
    let mut connection = connected((&mut input, &mut output), new);
    assert_eq!(connection.step(0), ConnectionStep::Request);
    let head = connection.exchange().unwrap().0.head;
    assert_eq!((head.version(), head.host(), head.query()), (HttpVersion::Http11, Some("a"), None));
    assert_eq!((head.method(), head.path(), head.target()), ("OPTIONS", "*", "*"));
    assert_eq!(head.get("x"), Some(&b""[..]));
}

/// A header that comes twice counts once if both are the same. Of `Accept`, all lines count.
#[test]
fn headers_that_come_twice() {
    use crate::names::Known;
    for (lines, session, streams) in [
        ("Mcp-Session-Id: a\r\nMcp-Session-Id: a\r\nAccept: text/event-stream", true, true),
        ("Mcp-Session-Id: a\r\nmcp-session-id: b\r\nAccept: application/json", false, false),
        ("Accept: application/json\r\nMcp-Session-Id: a\r\nAccept: text/event-stream", true, true),
        ("Accept: text/event-stream\r\nAccept: application/json\r\nMcp-Session-Id: a", true, true),
        ("Accept: application/json\r\nAccept: text/plain\r\nMcp-Session-Id: a", true, false),
    ] {
        let (mut input, mut output) = ([0; 256], [0; 128]);
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n");
        let mut connection = connected((&mut input, &mut output), &request);
        assert_eq!(connection.step(0), ConnectionStep::Request);
        let head = connection.exchange().unwrap().0.head;
        let head = head.request_head();
        assert_eq!(head.fields.get(Known::Session).only().is_ok(), session, "{lines}");
        assert_eq!(head.fields.accept.stream(), streams, "{lines}");
    }
}

/// Places in a head have 16 bits, and the number of its headers 8, whatever the limits are.
#[test]
fn heads_of_the_largest_size() {
    const LARGEST: usize = 0xffff;
    let limits = ConnectionLimits::DEFAULT.head(1 << 20).line(1 << 20);
    let status = |head: &str, cut: usize| {
        let (mut input, mut output) = (vec![0; 1 << 17], [0; 256]);
        let mut connection = Connection::<255>::new(&mut input[..], &mut output[..], limits);
        for part in head.as_bytes().chunks(cut) {
            connection.space()[..part.len()].copy_from_slice(part);
            connection.filled(part.len());
            match connection.step(0) {
                ConnectionStep::Read => {}
                ConnectionStep::Request => return 200,
                _ => return connection.refused.map_or(0, |status| status.0),
            }
        }
        0
    };
    let with_value = |len: usize| {
        let head = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n";
        head.replace("X: ", &format!("X: {}", "x".repeat(len - head.len())))
    };
    let with_headers = |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(count - 1));
    for cut in [usize::MAX, 60_000] {
        for (head, expected) in [
            (with_value(LARGEST), 200),
            (with_value(LARGEST + 1), 431),
            (with_value(LARGEST + 5_000), 431),
            (with_headers(254), 200),
            (with_headers(255), 431),
        ] {
            assert_eq!(status(&head, cut), expected, "{} bytes, {cut}", head.len());
        }
    }
}
