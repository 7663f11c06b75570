//! The bodies of the fuzz targets: each a function that must not panic, whatever it is given. `cargo test` runs them
//! over the committed corpus; `.ci/fuzz.sh` goes on from there: the same way each time, or for so many seconds at random.
//! A body does the same for the same bytes: no clock, no map without order.

mod client;
mod endpoint;
mod engine;
mod service;
mod wire;

use arbitrary::Unstructured;
use mcp_sansio::frame::sse::{Decoder, Item};
use mcp_sansio::frame::{Line, LineBuffer};
use mcp_sansio::json::{DEPTH, Fault, Raw};
use mcp_sansio::rpc::Envelope;

/// However a stream is cut, the same lines come out of it, and no line is lost or made up.
pub fn line(data: &[u8]) {
    let Some((&size, rest)) = data.split_first() else { return };
    let Some((&step, stream)) = rest.split_first() else { return };
    let size = usize::from(size) + 2;
    let whole = lines(stream, size, stream.len().max(1));
    let cut = lines(stream, size, usize::from(step) + 1);
    assert_eq!(whole, cut, "cut into steps of {}", usize::from(step) + 1);
    let expected: Vec<_> =
        stream.split_inclusive(|&byte| byte == b'\n').filter_map(|line| expect(line, size)).collect();
    assert_eq!(whole, expected);
}

/// What a line of the stream must come out as; `None` for the kept length of one that is too long.
type Seen = Option<Vec<u8>>;

fn expect(line: &[u8], size: usize) -> Option<Seen> {
    let Some(message) = line.strip_suffix(b"\n") else {
        // The rest of the stream shows only if it is too long already.
        return (line.len() >= size).then_some(None);
    };
    if message.len() >= size {
        return Some(None);
    }
    let message = message.strip_suffix(b"\r").unwrap_or(message);
    (!message.iter().all(u8::is_ascii_whitespace)).then(|| Some(message.to_vec()))
}

fn lines(mut stream: &[u8], size: usize, step: usize) -> Vec<Seen> {
    let mut storage = vec![0; size];
    let mut buffer = LineBuffer::new(&mut storage[..]);
    let mut seen = Vec::new();
    while !stream.is_empty() {
        let space = buffer.space();
        let n = space.len().min(step).min(stream.len());
        assert!(n > 0, "there is no space although every line was consumed");
        let (now, rest) = stream.split_at(n);
        space[..n].copy_from_slice(now);
        stream = rest;
        buffer.filled(n);
        while let Some(line) = buffer.peek() {
            seen.push(match line {
                Line::Message(message) => Some(message.to_vec()),
                _ => None,
            });
            buffer.consume();
        }
    }
    seen
}

/// However an event stream is cut, the same events come out of it, and none has more data than fits.
pub fn sse(data: &[u8]) {
    let Some((&[size, step], stream)) = data.split_first_chunk::<2>() else { return };
    let (size, step) = (usize::from(size), usize::from(step) + 1);
    let whole = events(stream, size, stream.len().max(1));
    assert_eq!(whole, events(stream, size, step), "cut into steps of {step}");
    assert_eq!(whole, events(stream, size, 1), "byte by byte");
    let is_whole = whole.0.iter().all(|(name, ..)| name != "too large");
    if let (true, Ok(text)) = (is_whole, std::str::from_utf8(stream)) {
        assert_eq!(whole, model(text), "by the standard's algorithm");
    }
    written(stream, size);
}

/// What the HTML standard says of a stream (section 9.2.6), for text; names up to 32 bytes and ids up to 16 count.
fn model(stream: &str) -> Events {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let (mut seen, mut last_id, mut retry) = (Vec::new(), String::new(), None);
    let (mut name, mut id, mut data) = (String::new(), String::new(), None::<String>);
    // What comes behind the last newline is no line yet.
    let lines: Vec<&str> = stream.split('\n').collect();
    for line in lines.split_last().map_or(&[][..], |(_, lines)| lines) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            _ if line.is_empty() => {
                last_id.clone_from(&id);
                let name = std::mem::take(&mut name);
                if let Some(data) = data.take() {
                    seen.push((name, last_id.clone(), data.into_bytes()));
                }
            }
            "event" => name = value.to_owned(),
            "data" => match &mut data {
                Some(data) => *data = format!("{data}\n{value}"),
                None => data = Some(value.to_owned()),
            },
            // One that is too long to be sent back counts as none.
            "id" if !value.contains('\0') => id = if value.len() <= 16 { value.to_owned() } else { String::new() },
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                let digit = |n: u32, byte: u8| n.saturating_mul(10).saturating_add(u32::from(byte - b'0'));
                retry = Some(value.bytes().fold(0, digit));
            }
            _ => {}
        }
    }
    for (name, ..) in &mut seen {
        let end = (0..=name.len().min(32)).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
        name.truncate(end);
    }
    (seen, last_id, retry)
}

/// An event that is written is read as it was.
fn written(bytes: &[u8], size: usize) {
    use mcp_sansio::frame::{Event, sse};
    use mcp_sansio::sink::Lines;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (name, data) = text.split_at(text.floor_char_boundary(size % 33));
    let mut out = Lines::new(Vec::new());
    let event = Event::new().name(name).id("i-1").retry(size as u32).data(data);
    event.put(&mut out).expect("a vector has room");
    assert_eq!(out.pending().len(), event.len(), "a length is told before it is written");
    sse::comment(text, &mut out).expect("a vector has room");
    let (seen, last_id, retry) = events(out.pending(), data.len() + 2, 3);
    let one_line = name.split(['\r', '\n', '\0']).next().unwrap_or_default();
    let lines = data.replace("\r\n", "\n").replace('\r', "\n");
    assert_eq!(seen, [(one_line.to_owned(), "i-1".to_owned(), lines.into_bytes())]);
    assert_eq!((last_id.as_str(), retry), ("i-1", Some(size as u32)));
}

/// Name, id and data, or what was kept of an event that is too large; and where the stream stands in the end.
type Events = (Vec<(String, String, Vec<u8>)>, String, Option<u32>);

fn events(stream: &[u8], size: usize, step: usize) -> Events {
    let mut storage = vec![0; size];
    let mut decoder = Decoder::<16>::new(&mut storage[..]);
    let mut seen = Vec::new();
    for mut part in stream.chunks(step) {
        loop {
            part = &part[decoder.read(part)..];
            match decoder.item() {
                Some(Item::Event(event)) => {
                    assert!(event.data.len() < size && !event.data.contains(&b'\r'));
                    seen.push((event.name.to_owned(), event.id.to_owned(), event.data.to_vec()));
                }
                Some(Item::TooLarge { start }) => seen.push(("too large".to_owned(), String::new(), start.to_vec())),
                _ => break,
            }
            decoder.consume();
        }
        assert!(part.is_empty(), "something was not read");
    }
    (seen, decoder.last_id().to_owned(), decoder.retry())
}

/// Whatever servers and networks do to a client over HTTP: each request comes to exactly one end, messages are JSON,
/// nothing spins, and in the end nothing is left.
pub fn http_client(data: &[u8]) {
    let _ = client::run(&mut Unstructured::new(data));
}

/// The scanner takes what `serde_json` takes, and nothing else.
pub fn scan(data: &[u8]) {
    let ours = Raw::parse(data);
    let theirs = serde_json::from_slice::<&serde_json::value::RawValue>(data);
    if let Some(text) = nested(data) {
        // As deep as it may be, and deeper by one: serde_json has another limit, and is not asked.
        assert_eq!(matches!(ours, Err(Fault::Depth)), text > usize::from(DEPTH), "{text} deep: {ours:?}");
        return;
    }
    if matches!(ours, Err(Fault::Depth)) || theirs.as_ref().is_err_and(|error| error.to_string().contains("recursion"))
    {
        return;
    }
    assert_eq!(ours.is_ok(), theirs.is_ok(), "{ours:?} {theirs:?}");
    if let Ok(raw) = ours {
        let value: serde_json::Value = match serde_json::from_slice(data) {
            Ok(value) => value,
            // Lone surrogates and numbers out of range are JSON, but no values.
            Err(_) => return,
        };
        if let Some(object) = value.as_object() {
            for (key, member) in object {
                let found = raw.get(key).expect("a member is found by its decoded key");
                let found: serde_json::Value = serde_json::from_slice(found.as_bytes()).expect("a member is JSON");
                assert_eq!(&found, member, "{key}");
            }
        }
    }
}

/// How deep brackets are that consist of nothing else: `[[[]]]` is 3.
fn nested(data: &[u8]) -> Option<usize> {
    let depth = data.iter().take_while(|&&byte| byte == b'[').count();
    let closed = data.get(depth..)?.iter().all(|&byte| byte == b']');
    (depth > 0 && closed && data.len() == 2 * depth).then_some(depth)
}

/// An envelope is read if and only if the message is an object; its spans are what `serde_json` finds.
pub fn envelope(data: &[u8]) {
    let Ok(envelope) = Envelope::parse(data) else {
        assert!(!matches!(Raw::parse(data), Ok(raw) if raw.as_bytes().starts_with(b"{")), "an object is an envelope");
        return;
    };
    let _ = envelope.shape();
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    // Where a member comes twice, both readers take the last one, but an earlier one's inside is ours.
    let twice = |raw: Option<Raw<'_>>, value: Option<&serde_json::Value>| match (raw, value) {
        (Some(raw), Some(value)) => value.as_object().is_some_and(|object| raw.members().count() != object.len()),
        _ => false,
    };
    if envelope.duplicate
        || twice(Raw::parse(data).ok(), Some(&value))
        || twice(envelope.params, value.get("params"))
        || twice(envelope.members.meta, value.pointer("/params/_meta"))
    {
        return;
    }
    let pairs = [
        (envelope.id, value.get("id")),
        (envelope.method, value.get("method")),
        (envelope.params, value.get("params")),
        (envelope.members.name, value.pointer("/params/name")),
        (envelope.members.meta, value.pointer("/params/_meta")),
        (envelope.meta.progress_token, value.pointer("/params/_meta/progressToken")),
    ];
    for (ours, theirs) in pairs {
        let ours = ours.map(|raw| serde_json::from_slice::<serde_json::Value>(raw.as_bytes()).expect("a span is JSON"));
        assert_eq!(ours.as_ref(), theirs);
    }
}

/// Whatever happens to a server, in whatever order: every line is JSON, no request is answered twice, nothing that can
/// be answered is left open at the end, and nothing spins.
pub fn server_ops(data: &[u8]) {
    let _ = service::run(&mut Unstructured::new(data));
}

/// Whatever a server says and an application does, in whatever order: every line of the client's is JSON, each request
/// has one outcome at the end, none is left open, and nothing spins.
pub fn client(data: &[u8]) {
    let _ = engine::run(&mut Unstructured::new(data));
}

/// However bytes of HTTP are cut, the same comes out; and whatever happens to an endpoint, in whatever order: what comes
/// out is JSON in whole events, nothing spins, and in the end no request, session or stream is left.
pub fn http(data: &[u8]) {
    match data.split_first() {
        Some((choice, rest)) if choice & 1 == 0 => mcp_sansio_http::wire::exercise::fuzz(rest),
        Some((_, rest)) => drop(endpoint::run(&mut Unstructured::new(rest))),
        None => {}
    }
}

/// Requests of HTTP/1.1 from a grammar, then damaged: what is whole is taken as it was meant, and of what is damaged nothing
/// is taken that a model refuses or reads in another way.
pub fn http_wire(data: &[u8]) {
    let _ = wire::run(&mut Unstructured::new(data));
}

#[cfg(test)]
mod tests {
    fn over_corpus(name: &str, body: fn(&[u8])) {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let files = std::fs::read_dir(&folder).expect("there is a corpus");
        let mut count = 0;
        for file in files {
            body(&std::fs::read(file.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "{} is empty", folder.display());
    }

    /// A few inputs of no particular shape, so that the bodies run even where nothing was found yet.
    fn over_noise(body: fn(&[u8])) {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for length in 0..600 {
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state as u8
                })
                .collect();
            body(&bytes);
        }
    }

    fn over_long_noise(body: fn(&[u8])) {
        for seed in 1..400u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bytes: Vec<u8> = (0..3000)
                .map(|at| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    if at == 0 { 1 } else { state as u8 }
                })
                .collect();
            body(&bytes);
        }
    }

    #[test]
    fn line() {
        over_corpus("line", crate::line);
        over_noise(crate::line);
    }

    #[test]
    fn scan() {
        for depth in [1, 126, 127, 128, 129, 130, 1000] {
            crate::scan(&[vec![b'['; depth], vec![b']'; depth]].concat());
        }
        over_corpus("scan", crate::scan);
        over_noise(crate::scan);
    }

    #[test]
    fn envelope() {
        over_corpus("envelope", crate::envelope);
        over_noise(crate::envelope);
    }

    #[test]
    fn server_ops() {
        over_corpus("server_ops", crate::server_ops);
        over_noise(crate::server_ops);
    }

    #[test]
    fn sse() {
        over_corpus("sse", crate::sse);
        over_noise(crate::sse);
    }

    #[test]
    fn http_client() {
        over_corpus("http_client", crate::http_client);
        for seed in 1..700u64 {
            crate::http_client(&noise(seed, 3000));
        }
    }

    /// As much as an input needs that goes on for a while.
    fn noise(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let byte = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..len).map(byte).collect()
    }

    #[test]
    fn client() {
        over_corpus("client", crate::client);
        over_noise(crate::client);
        over_long_noise(crate::client);
    }

    #[test]
    fn http_wire() {
        over_corpus("http_wire", crate::http_wire);
        for seed in 1..4000u64 {
            crate::http_wire(&noise(seed, 700));
        }
    }

    #[test]
    fn http() {
        over_corpus("http", crate::http);
        over_noise(crate::http);
        over_long_noise(crate::http);
    }
}
