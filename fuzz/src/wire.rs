//! HTTP/1.1 as servers read it: requests from a grammar, some with the head of the one before, damaged or not, compared with a
//! model.

use arbitrary::{Result, Unstructured};
use mcp_sansio_http::http1::{Connection, ConnectionLimits, ConnectionStep, Status};

/// A request as it was meant or read: method, path, query, body.
type Request = (String, String, Option<String>, Vec<u8>);

const LIMITS: ConnectionLimits = ConnectionLimits::DEFAULT.line(512).head(1024).body(1024).drain(64);

/// Sends valid requests, sometimes damaged.
pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let (mut input, mut meant, mut expects) = (Vec::new(), Vec::new(), 0);
    let mut open = true;
    let mut last = None;
    for _ in 0..u.int_in_range(1..=5)? {
        let from = input.len();
        let again = last.take().filter(|_| u.ratio(1, 3).unwrap_or(false));
        let (request, closes, expected) = match again {
            Some((bytes, facts)) => repeat(u, &mut input, bytes, facts)?,
            None => write_request(u, &mut input)?,
        };
        last = Some((input[from..].to_vec(), (request.clone(), closes, expected)));
        if open {
            meant.push(request);
            expects += usize::from(expected);
        }
        open &= !closes;
    }
    assert_eq!(model(&input), meant, "the model reads what was meant: {}", input.escape_ascii());
    let damaged = u.ratio(1, 2)?;
    if damaged {
        for _ in 0..u.int_in_range(1..=3)? {
            damage(u, &mut input)?;
        }
    }
    let cuts: [u8; 4] = u.arbitrary()?;
    let (seen, output) = serve(&input, &cuts, usize::MAX);
    for other in [&[0][..], &[1]] {
        let (other_seen, other_output) = serve(&input, other, usize::MAX);
        assert_eq!((&seen, &output), (&other_seen, &other_output), "cut in another way: {}", input.escape_ascii());
    }
    let output = String::from_utf8_lossy(&output);
    if damaged {
        // The connection may refuse requests that the model takes. It must not take one that the model refuses
        // or reads in another way.
        let right = model(&input);
        assert!(right.starts_with(&seen), "{}: {seen:?}, not {right:?}", input.escape_ascii());
    } else {
        assert_eq!(seen, meant, "{}", input.escape_ascii());
        assert_eq!(output.matches("HTTP/1.1 100 Continue").count(), expects, "{output}");
    }
    assert_eq!(output.matches("HTTP/1.1 202 Accepted").count(), seen.len(), "each has one answer: {output}");
    // A request that is refused by its head is the last one, with any body.
    let refused = u.int_in_range(0..=4)?;
    let (before, output) = serve(&input, &cuts, refused);
    assert_eq!(before, seen[..seen.len().min(refused)], "{}", input.escape_ascii());
    let output = String::from_utf8_lossy(&output);
    assert!(output.matches("HTTP/1.1 403").count() <= 1, "{output}");
    if let Some((_, rest)) = output.split_once("HTTP/1.1 403") {
        assert!(rest.contains("Connection: close") && !rest.contains("HTTP/1.1"), "{rest}");
    }
    Ok(())
}

/// Appends the last request again, if it has a length with another one that has as many digits.
fn repeat(
    u: &mut Unstructured<'_>,
    input: &mut Vec<u8>,
    mut bytes: Vec<u8>,
    ((method, path, query, body), closes, expects): (Request, bool, bool),
) -> Result<(Request, bool, bool)> {
    let digits = body.len().to_string();
    let head = &bytes[..bytes.len() - body.len()];
    let lower = head.to_ascii_lowercase();
    let field = |name: &[u8]| lower.windows(name.len()).position(|part| part == name);
    let digits_at = field(b"\r\ncontent-length: ").map(|at| at + 18).filter(|_| field(b"expect:").is_none());
    let mut body = body;
    if let Some(at) = digits_at.map(|at| at + lower[at..].iter().take_while(|digit| **digit == b'0').count())
        && head[at..].starts_with(digits.as_bytes())
        && body.len() > 1
    {
        let least = 10usize.pow(digits.len() as u32 - 1).max(1);
        let length = u.int_in_range(least..=body.len())?;
        bytes.truncate(head.len());
        bytes[at..at + digits.len()].copy_from_slice(length.to_string().as_bytes());
        body.truncate(length);
        bytes.extend_from_slice(&body);
    }
    input.extend_from_slice(&bytes);
    Ok(((method, path, query, body), closes, expects))
}

/// Appends a request. Returns its meaning, whether it is the last, and whether its sender waits for `100
/// Continue`.
fn write_request(u: &mut Unstructured<'_>, input: &mut Vec<u8>) -> Result<(Request, bool, bool)> {
    let method = *u.choose(&["POST", "GET", "DELETE", "OPTIONS", "HEAD", "PUT", "M-SEARCH"])?;
    let (target, path, query) = *u.choose(&[
        ("/mcp", "/mcp", None),
        ("/", "/", None),
        ("/messages?session=0a&x", "/messages", Some("session=0a&x")),
        ("/a%20b?", "/a%20b", Some("")),
        ("http://localhost:80/mcp?x=1", "/mcp", Some("x=1")),
        ("HTTPS://a.b?q", "/", Some("q")),
        ("http://[::1]", "/", None),
        ("//x/y", "//x/y", None),
    ])?;
    let http10 = u.ratio(1, 8)?;
    let length = usize::from(u.arbitrary::<u8>()? % 80);
    let body = u.bytes(u.len().min(length))?.to_vec();
    let framing = if http10 { u.int_in_range(0..=1)? } else { u.int_in_range(0..=2)? };
    let mut fields = vec![format!("{}: localhost", u.choose(&["Host", "host", "HOST"])?)];
    match framing {
        0 => {}
        1 => fields.push(format!(
            "{}: {}{}",
            u.choose(&["Content-Length", "content-LENGTH"])?,
            u.choose(&["", "00"])?,
            body.len()
        )),
        _ => fields
            .push(format!("Transfer-Encoding:{}", u.choose(&[" chunked", "Chunked", "\t chunked ", " , chunked"])?)),
    }
    let option = *u.choose(&["", "keep-alive", "close", "x, Close", "upgrade"])?;
    if !option.is_empty() {
        fields.push(format!("Connection: {option}"));
    }
    let expects = u.ratio(1, 6)?;
    if expects {
        fields.push("Expect: 100-continue".to_owned());
    }
    for name in ["X-Content-Length: 7", "Accept: text/event-stream", "Content-Length-X:", "Sec: a:b\tc"] {
        if u.ratio(1, 4)? {
            fields.push(name.to_owned());
        }
    }
    let from = u.choose_index(fields.len())?;
    fields.rotate_left(from);
    if u.ratio(1, 6)? {
        input.extend_from_slice(b"\r\n");
    }
    let version = if http10 { "1.0" } else { "1.1" };
    input.extend_from_slice(format!("{method} {target} HTTP/{version}\r\n{}\r\n\r\n", fields.join("\r\n")).as_bytes());
    match framing {
        0 => {}
        1 => input.extend_from_slice(&body),
        _ => write_chunks(u, input, &body)?,
    }
    let body = if framing == 0 { Vec::new() } else { body };
    // A sender waits for `100 Continue` only if it has a body; a body in chunks may always exist.
    let waits = expects && !http10 && (framing == 2 || !body.is_empty());
    let closes = option.to_lowercase().contains("close") || (http10 && option != "keep-alive");
    Ok(((method.to_owned(), path.to_owned(), query.map(str::to_owned), body), closes, waits))
}

fn write_chunks(u: &mut Unstructured<'_>, input: &mut Vec<u8>, mut body: &[u8]) -> Result<()> {
    while !body.is_empty() {
        let (chunk, rest) = body.split_at(u.int_in_range(1..=body.len())?);
        let size = match u.int_in_range(0..=2)? {
            0 => format!("{:x}", chunk.len()),
            1 => format!("{:X}", chunk.len()),
            _ => format!("00{:x}", chunk.len()),
        };
        input.extend_from_slice(format!("{size}{}\r\n", u.choose(&["", ";a=b", ";c=\"d e\""])?).as_bytes());
        input.extend_from_slice(chunk);
        input.extend_from_slice(b"\r\n");
        body = rest;
    }
    input.extend_from_slice(
        u.choose(&["0\r\n\r\n", "000;x\r\n\r\n", "0\r\nTrailer: Content-Length: 3\r\n\r\n"])?.as_bytes(),
    );
    Ok(())
}

fn damage(u: &mut Unstructured<'_>, input: &mut Vec<u8>) -> Result<()> {
    if input.is_empty() {
        return Ok(());
    }
    let at = u.choose_index(input.len())?;
    let piece: &[u8] = u.choose(&[
        &b"\r"[..],
        b"\n",
        b"\r\n",
        b" ",
        b"\t",
        b"\0",
        b":",
        b",",
        b"0",
        b"\x80",
        b"\r\n ",
        b"Content-Length: 1\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Host: a\r\n",
        b"0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ])?;
    match u.int_in_range(0..=4)? {
        0 => drop(input.remove(at)),
        1 => input[at] = u.arbitrary()?,
        2 => input.truncate(at),
        // Between two lines, where most pieces have a meaning.
        3 => {
            let line = input[at..].windows(2).position(|pair| pair == b"\r\n").map_or(at, |end| at + end + 2);
            drop(input.splice(line..line, piece.iter().copied()));
        }
        _ => drop(input.splice(at..at, piece.iter().copied())),
    }
    Ok(())
}

/// Returns the requests in `input`, up to the first that is invalid or closes the connection.
fn model(mut input: &[u8]) -> Vec<Request> {
    let mut requests = Vec::new();
    while let Some((request, len, closes)) = read_request(input) {
        requests.push(request);
        input = &input[len..];
        if closes {
            break;
        }
    }
    requests
}

/// Reads a request with httparse and the rules on lengths: the model to compare with.
fn read_request(input: &[u8]) -> Option<(Request, usize, bool)> {
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Request::new(&mut fields);
    let at = head.parse(input).ok().filter(httparse::Status::is_complete)?.unwrap();
    let all = |name: &str| -> Vec<String> {
        let named = head.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| String::from_utf8_lossy(field.value).trim_matches([' ', '\t']).to_lowercase()).collect()
    };
    let (lengths, codings, hosts) = (all("content-length"), all("transfer-encoding"), all("host"));
    let http10 = head.version == Some(0);
    let (body, len) = match (&lengths[..], &codings[..]) {
        ([], []) => (Vec::new(), at),
        ([length], []) if !length.is_empty() && length.bytes().all(|digit| digit.is_ascii_digit()) => {
            let end = at.checked_add(length.parse().ok()?)?;
            (input.get(at..end)?.to_vec(), end)
        }
        ([], [coding]) if !http10 && coding.trim_matches([' ', '\t', ',']) == "chunked" => read_chunks(input, at)?,
        _ => return None,
    };
    if hosts.len() > 1 || (!http10 && hosts.is_empty()) {
        return None;
    }
    let target = head.path?;
    let rest = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find(['/', '?']).map_or("", |end| &rest[end..]),
        _ => target,
    };
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query.to_owned())));
    let path = if path.is_empty() { "/" } else { path };
    let options = all("connection").join(",");
    let has = |wanted| options.split(',').any(|option| option.trim() == wanted);
    let closes = has("close") || (http10 && !has("keep-alive"));
    Some(((head.method?.to_owned(), path.to_owned(), query, body), len, closes))
}

fn read_chunks(input: &[u8], mut at: usize) -> Option<(Vec<u8>, usize)> {
    let line =
        |at: usize| input.get(at..)?.windows(2).position(|pair| pair == b"\r\n").map(|end| (at + end, at + end + 2));
    let mut body = Vec::new();
    loop {
        let (end, next) = line(at)?;
        let size = input[at..end].split(|&byte| byte == b';').next()?;
        let size = std::str::from_utf8(size).ok().filter(|size| size.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        let size = usize::from_str_radix(size, 16).ok()?;
        at = next;
        if size == 0 {
            break;
        }
        body.extend_from_slice(input.get(at..at.checked_add(size)?)?);
        at += size;
        if input.get(at..at + 2)? != b"\r\n" {
            return None;
        }
        at += 2;
    }
    loop {
        let (end, next) = line(at)?;
        let empty = end == at;
        at = next;
        if empty {
            return Some((body, at));
        }
    }
}

/// Runs a connection over `input`, cut into pieces of the sizes `cuts` (0 means uncut). It refuses the head of
/// request number `refused`. Returns the requests that it takes and the bytes that it writes.
fn serve(mut input: &[u8], cuts: &[u8], refused: usize) -> (Vec<Request>, Vec<u8>) {
    let (mut store, mut out) = (vec![0; 4096], vec![0; 2048]);
    let mut connection = Connection::<16>::new(&mut store[..], &mut out[..], LIMITS);
    let (mut seen, mut output) = (Vec::new(), Vec::new());
    let mut cuts = cuts.iter().cycle();
    for _ in 0..100_000 {
        let step = connection.step(0);
        if step == ConnectionStep::Close {
            output.extend_from_slice(connection.pending());
            return (seen, output);
        }
        if seen.len() == refused
            && let Some((_, answer)) = connection.exchange()
            && answer.is_owed()
        {
            answer.close();
            answer.full(Status::FORBIDDEN, &[], b"").expect("room");
            continue;
        }
        if step == ConnectionStep::Request {
            let (request, answer) = connection.exchange().expect("a request");
            let (head, body) = (request.head, request.body.expect("a whole request").to_vec());
            seen.push((head.method().to_owned(), head.path().to_owned(), head.query().map(str::to_owned), body));
            answer.full(Status::ACCEPTED, &[], b"").expect("room");
        }
        let pending = connection.pending();
        output.extend_from_slice(pending);
        let n = pending.len();
        connection.sent(n);
        if matches!(step, ConnectionStep::Read | ConnectionStep::Shut) {
            if input.is_empty() {
                connection.ended = true;
                continue;
            }
            let space = connection.space();
            let cut = *cuts.next().expect("it cycles");
            let n = space.len().min(input.len()).min(if cut == 0 { usize::MAX } else { usize::from(cut) });
            assert!(n > 0, "nothing can be read");
            space[..n].copy_from_slice(&input[..n]);
            connection.filled(n);
            input = &input[n..];
        }
    }
    panic!("it spins")
}
