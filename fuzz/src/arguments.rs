//! Calls whose arguments are repeated in headers, at a server over HTTP. The model compares the two in another way.

use arbitrary::{Result, Unstructured};
use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::{Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_http::endpoint::{App, Endpoint, EndpointConfig, EndpointLimits, RequestHead};
use serde_json::{Value, json};

const SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Text"},"number":{"type":"integer","x-mcp-header":"Number"},"flag":{"x-mcp-header":"Flag","type":"boolean"},"in":{"type":"object","properties":{"text":{"type":"string","x\u002dmcp-header":"In-Text"}}},"free":{"type":"string"}}}"#;
static TOOLS: [Tool<()>; 1] = [Tool::new("call", "Is called", |(), call| call.text("called")).input(SCHEMA)];

/// The largest integer that a header may repeat.
const SAFE: i64 = (1 << 53) - 1;

/// An argument: its JSON, or `None` without it; its headers; and whether they agree, `None` if the model does not know.
struct Argument {
    json: Option<String>,
    headers: Vec<String>,
    agrees: Option<bool>,
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().chain(&[0, 0]).take(3).fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        for (digit, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            out.push(if digit <= group.len() { DIGITS[bits >> shift & 63].into() } else { '=' });
        }
    }
    out
}

fn encoded(text: &str) -> String {
    format!("=?base64?{}?=", base64(text.as_bytes()))
}

/// Returns the text in base64 of a header, if the header has the form of one.
fn inner(header: &str) -> Option<&str> {
    header.strip_prefix("=?base64?").and_then(|header| header.strip_suffix("?="))
}

/// Returns whether a header has this text. A header in base64 that this encoder would not write is not judged.
fn has_text(header: &str, text: &str) -> Option<bool> {
    let header = header.trim();
    match inner(header) {
        None => Some(header == text),
        Some(_) => (header == encoded(text)).then_some(true).or_else(|| is_canonical(header).then_some(false)),
    }
}

/// Returns whether a header is what the encoder writes for some bytes.
fn is_canonical(header: &str) -> bool {
    let digits = inner(header).unwrap_or_default();
    let full = digits.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    // A group of one digit, and bits behind the last byte, are read in different ways.
    digits.len().is_multiple_of(4) && digits.len() == full.len() && full.bytes().all(is_digit)
}

/// A decimal number as its sign, its digits without zeros at either end, and the power of ten of the last one.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let all_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let power_digits = power.strip_prefix(['-', '+']).unwrap_or(power);
    if !all_digits(whole) || !all_digits(fraction) || !all_digits(power_digits) {
        return None;
    }
    let power: i64 = power.parse().ok()?;
    let digits = format!("{whole}{fraction}");
    let ended = digits.trim_end_matches('0');
    let power = power - fraction.len() as i64 + (digits.len() - ended.len()) as i64;
    let digits = ended.trim_start_matches('0').to_owned();
    Some(if digits.is_empty() { (false, digits, 0) } else { (is_negative, digits, power) })
}

/// Returns whether a header has this integer.
fn has_number(header: &str, value: i64) -> Option<bool> {
    let header = header.trim();
    if inner(header).is_some() {
        return (header == encoded(&value.to_string())).then_some(true);
    }
    let found = decimal(header);
    // Beyond 64 bits, or with a large exponent, it is not read as a number.
    let is_short = header.len() < 18;
    if found.is_some() && !is_short {
        return None;
    }
    Some(found == decimal(&value.to_string()))
}

/// Makes the headers of an argument: the right one, something near it, anything, none or two.
fn headers(u: &mut Unstructured<'_>, plain: Option<&str>) -> Result<Vec<String>> {
    let any = |u: &mut Unstructured<'_>| -> Result<String> {
        let len = u.int_in_range(0..=12)?;
        (0..len).map(|_| Ok(char::from(u.int_in_range(b' '..=b'~')?))).collect()
    };
    let right = plain.unwrap_or("7").to_owned();
    Ok(match u.int_in_range(0..=9)? {
        0 => Vec::new(),
        1 => vec![right.clone(), right],
        2 => vec![any(u)?],
        3 => vec![format!("=?base64?{}?=", any(u)?)],
        4 => vec![encoded(&any(u)?)],
        5 | 6 => vec![encoded(&right)],
        7 => {
            let (at, with) = (u.int_in_range(0..=right.len())?, any(u)?);
            let (front, back) = right.split_at_checked(at).unwrap_or((&right, ""));
            vec![format!("{front}{with}{back}")]
        }
        _ if plain.is_none() => Vec::new(),
        _ => vec![right],
    })
}

/// What both sides having a value, or not, says already.
fn both(json: Option<&String>, headers: &[String]) -> Option<bool> {
    let is_there = json.is_some_and(|json| json != "null");
    match headers {
        [] => Some(!is_there),
        // The same value twice is one value.
        [first, others @ ..] if is_there && others.iter().all(|other| other.trim() == first.trim()) => None,
        _ => Some(false),
    }
}

/// Returns whether a text can be a header as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn text(u: &mut Unstructured<'_>) -> Result<Argument> {
    let value: Option<String> = match u.int_in_range(0..=3)? {
        0 => None,
        1 => Some(encoded("x")),
        _ => Some(u.arbitrary::<&str>()?.chars().take(20).collect()),
    };
    let json = match &value {
        None if u.arbitrary()? => Some("null".to_owned()),
        value => value.as_ref().map(|value| Value::from(value.as_str()).to_string()),
    };
    let headers = headers(u, value.as_deref().filter(|value| is_plain(value)))?;
    let agrees = both(json.as_ref(), &headers).or_else(|| has_text(&headers[0], value.as_deref()?));
    Ok(Argument { json, headers, agrees })
}

fn number(u: &mut Unstructured<'_>) -> Result<Argument> {
    let value: i64 = match u.int_in_range(0..=3)? {
        0 => u.arbitrary()?,
        1 => SAFE - u.int_in_range(0..=2)? + 1,
        _ => u.int_in_range(-100..=100)?,
    };
    let json = match u.int_in_range(0..=5)? {
        0 => None,
        1 => Some("null".to_owned()),
        2 => Some(format!("{value}.0")),
        3 if value != 0 && value.unsigned_abs() < 1000 => Some(format!("{value}0e-1")),
        _ => Some(value.to_string()),
    };
    let is_unsafe = json.as_ref().is_some_and(|json| json != "null") && value.unsigned_abs() > SAFE.unsigned_abs();
    let plain = value.to_string();
    let headers = headers(u, Some(&plain).filter(|_| json.is_some()).map(String::as_str))?;
    let agrees =
        if is_unsafe { Some(false) } else { both(json.as_ref(), &headers).or_else(|| has_number(&headers[0], value)) };
    Ok(Argument { json, headers, agrees })
}

fn flag(u: &mut Unstructured<'_>) -> Result<Argument> {
    let json = u.choose(&[None, Some("null"), Some("true"), Some("false")])?.map(str::to_owned);
    let plain = json.as_deref().filter(|json| *json != "null");
    let headers = headers(u, plain)?;
    let agrees = both(json.as_ref(), &headers).or_else(|| has_text(&headers[0], plain?));
    Ok(Argument { json, headers, agrees })
}

/// Calls the tool once.
pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let arguments = [("Text", text(u)?), ("Number", number(u)?), ("Flag", flag(u)?), ("In-Text", text(u)?)];
    let names = ["text", "number", "flag"];
    let has_inner: bool = u.arbitrary()?;
    let mut members: Vec<String> = Vec::new();
    for (name, (_, argument)) in names.iter().zip(&arguments) {
        members.extend(argument.json.as_ref().map(|json| format!("{:?}:{json}", name)));
    }
    let inside = arguments[3].1.json.as_ref().map(|json| format!(r#""text":{json}"#));
    if has_inner || inside.is_some() {
        members.push(format!(r#""in":{{{}}}"#, inside.unwrap_or_default()));
    }
    members.push(r#""free":"-""#.into());
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let arguments_json = members.join(",");
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"call","arguments":{{{arguments_json}}},"_meta":{meta}}}}}"#
    );
    let mut headers: Vec<(String, String)> = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "call"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    for (name, argument) in &arguments {
        headers.extend(argument.headers.iter().map(|value| (format!("mcp-param-{name}"), value.clone())));
    }
    let fields: Vec<(&str, &[u8])> = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let service = Service::new("fuzz", "1").tools(&TOOLS);
    let mut site = Endpoint::growing(
        EndpointConfig::DEFAULT,
        Server::growing(MessageLimits::default()),
        EndpointLimits::default(),
    );
    let mut out = LineSink::new(Vec::new());
    let fields = &fields[..];
    let head = RequestHead::new("POST", "/mcp", None, &fields);
    let mut random = |bytes: &mut [u8]| bytes.fill(1);
    let mut state = ();
    let mut app = App::new(&service, &mut state);
    let response = site.request(&mut app, &head, body.as_bytes(), 0, &mut random, &mut out);
    let answer: Value = serde_json::from_slice(out.pending()).expect("the answer is JSON");
    let accepted = response.status == 200;
    match accepted {
        true => assert_eq!(answer["result"]["content"][0]["text"], "called", "{answer}"),
        false => assert_eq!((response.status, &answer["error"]["code"]), (400, &json!(-32020)), "{answer} to {body}"),
    }
    let verdicts = arguments.iter().map(|(_, argument)| argument.agrees);
    if verdicts.clone().any(|agrees| agrees == Some(false)) {
        assert!(!accepted, "{headers:?} are accepted for {body}");
    } else if verdicts.clone().all(|agrees| agrees == Some(true)) {
        assert!(accepted, "{headers:?} are refused for {body}: {answer}");
    }
    Ok(())
}
