//! The bodies of the fuzz targets: functions that must not panic for any bytes. `cargo test` runs them over the
//! committed corpus; `fuzz/run.sh` runs them for longer, with fixed or random inputs. A body does the same for
//! the same bytes: it uses no clock, and no map without order.

mod arguments;
mod auth;
mod c_border;
mod cache;
mod client;
mod endpoint;
mod engine;
mod events;
#[path = "../../adapters/http/src/http1/tests/exercise.rs"]
mod exercise;
mod fetch;
mod follow;
mod form;
mod old_tasks;
mod params;
mod receiver;
mod schema;
mod service;
mod skills;
mod tasks;
mod tokens;
mod webhooks;
mod wire;

use arbitrary::Unstructured;
use mcp_sansio::frame::{LineBuffer, LineStatus};
use mcp_sansio::json::{DEPTH, ParseError, Raw};
use mcp_sansio::rpc::Envelope;
use mcp_sansio_http::endpoint::RequestHeaders;
use mcp_sansio_http::http1::{Connection, ConnectionLimits, ConnectionStep, Status};
use mcp_sansio_http::sse::{SseDecoder, SseItem};

/// Measures the memory of a run.
#[global_allocator]
static ALLOCATOR: mcp_sansio_test_allocator::Counting = mcp_sansio_test_allocator::Counting;

/// The body of a target.
pub type Body = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: [(&str, Body); 25] = [
    ("line", line),
    ("scan", scan),
    ("envelope", envelope),
    ("server_ops", server_ops),
    ("http", http),
    ("http_wire", http_wire),
    ("sse", sse),
    ("http_client", http_client),
    ("client", client),
    ("auth", auth),
    ("challenge", challenge),
    ("tokens", tokens),
    ("follow", follow),
    ("receiver", receiver),
    ("tasks", tasks),
    ("skills", skills),
    ("event_polls", event_polls),
    ("webhooks", webhooks),
    ("form", form),
    ("cache", cache),
    ("params", params),
    ("arguments", arguments),
    ("old_tasks", old_tasks),
    ("schema", schema),
    ("c_border", c_border),
];

/// Checks that a stream gives the same lines for all cuts, and that no line is lost or invented.
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

/// The expected or found line; `None` for a line that is too long.
type Seen = Option<Vec<u8>>;

fn expect(line: &[u8], size: usize) -> Option<Seen> {
    let Some(message) = line.strip_suffix(b"\n") else {
        // An unfinished line is seen only if it is too long already.
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
                LineStatus::Message(message) => Some(message.to_vec()),
                _ => None,
            });
            buffer.consume();
        }
    }
    seen
}

/// Checks that an event stream gives the same events for all cuts, and that none has more data than fits.
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
}

/// Reads a stream of text as the HTML standard says (section 9.2.6). Names count up to 32 bytes, ids up to 16.
fn model(stream: &str) -> Events {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let (mut seen, mut last_id, mut retry) = (Vec::new(), String::new(), None);
    let (mut name, mut id, mut data) = (String::new(), String::new(), None::<String>);
    // The bytes after the last newline are not a line yet.
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
            // An id that is too long to be sent back counts as no id.
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

/// The name, id and data of each event, or the kept data of one that is too large; then the state at the end of
/// the stream.
type Events = (Vec<(String, String, Vec<u8>)>, String, Option<u32>);

fn events(stream: &[u8], size: usize, step: usize) -> Events {
    let mut storage = vec![0; size];
    let mut decoder = SseDecoder::<16>::new(&mut storage[..]);
    let mut seen = Vec::new();
    for mut part in stream.chunks(step) {
        loop {
            part = &part[decoder.read(part)..];
            match decoder.item() {
                Some(SseItem::Event(event)) => {
                    assert!(event.data.len() < size && !event.data.contains(&b'\r'));
                    seen.push((event.name.to_owned(), event.id.to_owned(), event.data.to_vec()));
                }
                Some(SseItem::TooLarge { start }) => seen.push(("too large".to_owned(), String::new(), start.to_vec())),
                _ => break,
            }
            decoder.consume();
        }
        assert!(part.is_empty(), "something was not read");
    }
    (seen, decoder.last_id().to_owned(), decoder.retry)
}

/// Returns the id, the name and the data of an event that a server has written; panics on a field that servers do not write.
fn event_fields(event: &str) -> (Option<&str>, &str, String) {
    let (mut id, mut kind, mut data) = (None, "", Vec::new());
    for line in event.lines().filter(|line| !line.is_empty()) {
        let (field, value) = line.split_once(':').expect("a field");
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => id = Some(value),
            "event" => kind = value,
            "data" => data.push(value),
            "retry" | "" => {}
            _ => panic!("what is {line:?}"),
        }
    }
    (id, kind, data.join("\n"))
}

/// Checks a client over HTTP against any server and network: each request has exactly one outcome, messages are
/// JSON, nothing runs without end, and nothing is left at the end. Checks single exchanges against any server and a model: they do not
/// depend on the pieces, and go to no other origin.
pub fn http_client(data: &[u8]) {
    // The last byte chooses.
    match data.split_last() {
        Some((choice, rest)) if choice & 7 == 7 => drop(fetch::run(&mut Unstructured::new(rest))),
        _ => drop(client::run(&mut Unstructured::new(data))),
    }
}

/// Checks that the scanner accepts the same texts as `serde_json`.
pub fn scan(data: &[u8]) {
    let ours = Raw::parse(data);
    let theirs = serde_json::from_slice::<&serde_json::value::RawValue>(data);
    if let Some(text) = nested(data) {
        // As deep as allowed, and one level deeper. `serde_json` has another limit and is not compared.
        assert_eq!(matches!(ours, Err(ParseError::Depth)), text > usize::from(DEPTH), "{text} deep: {ours:?}");
        return;
    }
    if matches!(ours, Err(ParseError::Depth))
        || theirs.as_ref().is_err_and(|error| error.to_string().contains("recursion"))
    {
        return;
    }
    assert_eq!(ours.is_ok(), theirs.is_ok(), "{ours:?} {theirs:?}");
    if let Ok(raw) = ours {
        let value: serde_json::Value = match serde_json::from_slice(data) {
            Ok(value) => value,
            // Lone surrogates and numbers out of range are valid JSON, but `serde_json` has no values for them.
            Err(_) => return,
        };
        if let Some(object) = value.as_object() {
            for (key, member) in object {
                let found = raw.get(key).expect("a member is found by its decoded key");
                let found: serde_json::Value = serde_json::from_slice(found.as_bytes()).expect("a member is JSON");
                assert_eq!(&found, member, "{key}");
            }
        }
        same_value(raw, &value);
    }
}

/// Checks that the functions of a value return what `serde_json` has read.
fn same_value(ours: Raw<'_>, theirs: &serde_json::Value) {
    use serde_json::Value;
    assert_eq!(ours.bool(), theirs.as_bool());
    assert_eq!(ours.items().count(), theirs.as_array().map_or(0, Vec::len));
    let text = ours.text();
    assert_eq!(text.is_some(), theirs.is_string());
    match theirs {
        Value::Number(_) => number(ours),
        Value::String(theirs) => {
            let text = text.expect("it is a string");
            let mut scratch = vec![0; text.raw().len()];
            assert_eq!(text.decode(&mut scratch), Ok(theirs.as_str()));
            assert_eq!(text.decoded_len(), Some(theirs.len()));
            assert!(text.eq_str(theirs) && !text.eq_str(&format!("{theirs}x")) && text.same(&text));
            assert!(text.chars().map_while(Result::ok).eq(theirs.chars()));
            assert!(text.plain().is_none_or(|plain| plain == theirs));
        }
        Value::Array(theirs) => ours.items().zip(theirs).for_each(|(ours, theirs)| same_value(ours, theirs)),
        Value::Object(theirs) => {
            for (key, member) in theirs {
                same_value(ours.get(key).expect("it is a member"), member);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Checks a number against decimal digits and a power of ten.
fn number(ours: Raw<'_>) {
    let written = ours.as_str();
    let (negative, positive) = written.strip_prefix('-').map_or((false, written), |rest| (true, rest));
    let (mantissa, power) = positive.split_once(['e', 'E']).unwrap_or((positive, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{before}{after}");
    let bare = digits.trim_start_matches('0').trim_end_matches('0');
    // Nobody writes so many digits that a larger power would matter.
    let far = if power.starts_with('-') { -1_000_000 } else { 1_000_000 };
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let power = power.parse::<i64>().unwrap_or(far).clamp(-1_000_000, 1_000_000) - after.len() as i64 + zeros as i64;
    let whole = bare.is_empty() || power >= 0;
    let value = match bare {
        "" => Some(0),
        _ if power < 0 || bare.len() as i64 + power > 20 => None,
        _ => bare.parse::<i128>().ok().map(|bare| bare * 10_i128.pow(power as u32)),
    };
    let value = value.map(|value| if negative { -value } else { value });
    assert_eq!(ours.is_whole(), whole, "{written}");
    assert_eq!(ours.is_integer(), positive.bytes().all(|byte| byte.is_ascii_digit()), "{written}");
    assert_eq!(ours.u64(), value.and_then(|value| value.try_into().ok()), "{written}");
    assert_eq!(ours.i64(), value.and_then(|value| value.try_into().ok()), "{written}");
}

/// Returns the depth of a text of brackets only: `[[[]]]` is 3.
fn nested(data: &[u8]) -> Option<usize> {
    let depth = data.iter().take_while(|&&byte| byte == b'[').count();
    let closed = data.get(depth..)?.iter().all(|&byte| byte == b']');
    (depth > 0 && closed && data.len() == 2 * depth).then_some(depth)
}

/// Checks that an envelope is read if and only if the message is an object, and that its spans are those of
/// `serde_json`.
pub fn envelope(data: &[u8]) {
    let Ok(envelope) = Envelope::parse(data) else {
        assert!(!matches!(Raw::parse(data), Ok(raw) if raw.as_bytes().starts_with(b"{")), "an object is an envelope");
        return;
    };
    let _ = envelope.shape();
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    // If a member exists twice, both readers take the last one, but the members inside an earlier one stay in
    // ours.
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

/// Checks a server against any order of operations: each line is JSON, no request is answered twice, each
/// request that can be answered has its answer at the end, and nothing runs without end.
pub fn server_ops(data: &[u8]) {
    let _ = service::run(&mut Unstructured::new(data));
}

/// Checks a client against any server and application: each line is JSON, each request has one outcome at the
/// end, and nothing runs without end.
pub fn client(data: &[u8]) {
    let _ = engine::run(&mut Unstructured::new(data));
}

/// Checks HTTP: all cuts of the bytes give the same result. For any order of operations the output of an
/// endpoint is JSON in whole events, no request is answered twice, each of 2026-07-28 is answered before its stream ends and, in half
/// of the inputs, at an end in order, no client gets a message for another one or uses its session, a request whose headers name another
/// tool changes nothing, nothing runs without end, and no request, session or stream is left at the end.
pub fn http(data: &[u8]) {
    match data.split_first() {
        Some((choice, rest)) if choice & 1 == 0 => exercise::fuzz(rest),
        Some((_, rest)) => drop(endpoint::run(&mut Unstructured::new(rest))),
        None => {}
    }
}

/// Checks requests of HTTP/1.1 from a grammar, some of them damaged. Undamaged requests are read as meant. Of
/// damaged ones, no request is taken that a model refuses or reads in another way.
pub fn http_wire(data: &[u8]) {
    let _ = wire::run(&mut Unstructured::new(data));
}

/// Checks the way of a client to a token against any answers in any order: it ends, no token, secret or code goes to a place
/// to which it does not belong, and none is shown.
pub fn auth(data: &[u8]) {
    let _ = auth::run(&mut Unstructured::new(data));
}

/// Checks the checks of a resource server: signed tokens, key sets and proofs of possession. Nothing panics, and a token is
/// accepted if and only if a model says so; a proof is good once.
pub fn tokens(data: &[u8]) {
    let _ = tokens::run(&mut Unstructured::new(data));
}

/// Checks a form: for any schema, an answer is accepted if and only if a model over another JSON reader accepts it.
pub fn form(data: &[u8]) {
    let _ = form::run(data);
}

/// Checks what a client over HTTP does with tools whose annotations are wrong: these are left out, and nothing else changes.
pub fn params(data: &[u8]) {
    let _ = params::run(data);
}

/// Checks what a server over HTTP does with headers that repeat arguments: a call runs if and only if a model says that they agree.
pub fn arguments(data: &[u8]) {
    let _ = arguments::run(&mut Unstructured::new(data));
}

/// Checks the comparison of a value with a JSON Schema: what it says to its end is what a model over another JSON reader says, and
/// what it says before that is true.
pub fn schema(data: &[u8]) {
    let _ = schema::run(data);
}

/// Checks that a server in C gives the same bytes for all cuts of its input, that its handlers read what is there, and that no request
/// over HTTP breaks it.
pub fn c_border(data: &[u8]) {
    c_border::run(data);
}

/// Checks tasks of 2025-11-25 against a model: each request sees its own tasks as they are, and each `tasks/result` is answered once.
pub fn old_tasks(data: &[u8]) {
    let _ = old_tasks::run(&mut Unstructured::new(data));
}

/// Checks the cache of a client: a result that it gives was kept last for that key, is fresh, and is not private to another
/// principal.
pub fn cache(data: &[u8]) {
    let _ = cache::run(&mut Unstructured::new(data));
}

/// Checks skills: a skill is loaded only with the bytes and the front matter of its entry, and its files are within its
/// directory.
pub fn skills(data: &[u8]) {
    let _ = skills::run(data);
}

/// Checks events: polls with any params come to an end with the cursors of their answers and get each occurrence once, and a client
/// that gets any answer gives no occurrence twice and asks again no sooner than it may.
pub fn event_polls(data: &[u8]) {
    let _ = events::server(data);
    let _ = events::client(data);
}

/// Checks a client that follows a task: for all answers of a server, also after losses and restarts, it asks each
/// question once, never again after its answer was taken, sends nothing else than it may, and ends in its time, once.
pub fn follow(data: &[u8]) {
    let _ = follow::run(&mut Unstructured::new(data));
}

/// Checks the tasks of a client: for any order of requests of the server and of work of the program, each request has one
/// answer, that of the model, and none is left when all tasks have ended.
pub fn receiver(data: &[u8]) {
    let _ = receiver::run(&mut Unstructured::new(data));
}

/// Checks tasks: any order of requests of clients and of work of the program finds what a model says, for its own user only,
/// and each listen hears each change.
pub fn tasks(data: &[u8]) {
    let _ = tasks::run(&mut Unstructured::new(data));
}

/// Checks webhooks: what is signed verifies in its time and nothing that was changed does, and a body that is signed is read as
/// serde_json reads it.
pub fn webhooks(data: &[u8]) {
    let _ = webhooks::run(data);
}

/// Checks that the challenges of a header are read the same when they are written again.
pub fn challenge(data: &[u8]) {
    use mcp_sansio_auth::challenge::{Challenge, PARAMETERS, challenges};
    type Read = Vec<(String, String, Vec<(String, String)>)>;
    let read = |header: &str| -> (Read, bool) {
        let found: Vec<_> = challenges(header).collect();
        assert!(found.len() <= header.len());
        let pairs = |challenge: &Challenge<'_>| -> Vec<_> {
            challenge.parameters().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
        };
        let good = found.iter().filter_map(|found| found.as_ref().ok());
        let read = good.map(|one| (one.scheme.to_owned(), one.token68.to_owned(), pairs(one))).collect();
        (read, found.iter().any(|found| found.is_err()))
    };
    let Ok(header) = std::str::from_utf8(data) else { return };
    let (found, _) = read(header);
    let mut written = String::new();
    for (scheme, token68, parameters) in &found {
        assert!(parameters.len() <= PARAMETERS && (token68.is_empty() || parameters.is_empty()));
        written += &format!(", {scheme}{}{token68}", if token68.is_empty() { "" } else { " " });
        for (number, (name, value)) in parameters.iter().enumerate() {
            let earlier = &parameters[..number];
            assert!(!earlier.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)), "{name} is there twice");
            assert!(!value.bytes().any(|byte| byte < b' ' && byte != b'\t'), "a control character in {value:?}");
            written += if number == 0 { " " } else { "," };
            written += &format!("{name}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
        }
    }
    assert_eq!(read(&written), (found, false), "{header:?} as {written:?}");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use crate::{Body, TARGETS};

    /// The inputs of the corpus of a target.
    fn corpus(target: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
    }

    /// Bytes without structure.
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
    fn each_target_has_a_corpus() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let mut found: Vec<_> =
            fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        let mut names: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        found.sort();
        names.sort();
        assert_eq!(found, names);
        assert!(names.iter().all(|name| !corpus(name).is_empty()));
    }

    /// The corpus, and some noise: short, and long enough for an input with many operations. Two threads share the targets.
    #[test]
    fn targets_take_any_bytes() {
        let over = |targets: &[(&str, Body)]| {
            for (name, body) in targets {
                corpus(name).iter().for_each(|input| body(input));
                (1..600).for_each(|seed| body(&noise(seed, seed as usize)));
                (1..150).for_each(|seed| body(&noise(seed, 3000)));
            }
        };
        std::thread::scope(|scope| {
            TARGETS.chunks(TARGETS.len() / 2).for_each(|half| drop(scope.spawn(move || over(half))))
        });
    }

    /// Each byte of each input, changed, for the readers of texts.
    #[test]
    fn changed_inputs_are_taken() {
        for (name, body) in
            TARGETS.iter().filter(|(name, _)| ["event_polls", "form", "params", "skills", "webhooks"].contains(name))
        {
            for mut input in corpus(name) {
                for at in 0..input.len() {
                    for bit in [1, 4, 32] {
                        input[at] ^= bit;
                        body(&input);
                        input[at] ^= bit;
                    }
                }
            }
        }
    }

    #[test]
    fn values_are_scanned_to_any_depth() {
        for depth in [1, 126, 127, 128, 129, 130, 1000] {
            crate::scan(&[vec![b'['; depth], vec![b']'; depth]].concat());
        }
    }

    /// Words of the grammar in any order.
    #[test]
    fn challenges_are_read_in_any_order() {
        let words = ["Bearer", "DPoP", " ", ",", "=", "\"", "\\", "a", "scope", "abc==", "\u{e9}", "\t", "x=y"];
        for seed in 1..4000u64 {
            let text: String = noise(seed, 24).iter().map(|byte| words[usize::from(*byte) % words.len()]).collect();
            crate::challenge(text.as_bytes());
        }
    }
}
