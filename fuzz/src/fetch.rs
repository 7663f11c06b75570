//! One exchange with a URL, with a server that sends anything, in any pieces.

use arbitrary::{Result, Unstructured};
use mcp_sansio_http::client::{FailureReason, Fetch, FetchLimits, FetchRequest};

/// The time of an exchange, in milliseconds.
const TIME: u64 = 1_000;

/// What a server sends on a connection.
struct Sent {
    bytes: Vec<u8>,
    /// How the connection ends.
    end: End,
    /// What these bytes mean; `None` if they are damaged.
    meant: Option<Meant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Failed,
    /// It stays open, and nothing comes.
    Silent,
}

/// An undamaged response.
struct Meant {
    status: u16,
    location: &'static str,
    body: Vec<u8>,
    /// The body ends with the connection.
    is_open: bool,
}

/// Where a redirect leads; `None` if it is not followed.
const LOCATIONS: [(&str, Option<&str>); 8] = [
    ("", None),
    ("/x", Some("/x")),
    ("y?z", Some("/a/y?z")),
    ("../y", Some("/y")),
    ("http://h:80/w#f", Some("/w")),
    ("//h/v", Some("/v")),
    ("http://other/x", None),
    ("https://h/x", None),
];

#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// The targets of the requests.
    targets: Vec<String>,
    result: std::result::Result<(u16, Vec<u8>), FailureReason>,
}

/// Makes the bytes of a connection: a response, in one of four cases damaged.
fn sent(u: &mut Unstructured<'_>) -> Result<Sent> {
    let status = *u.choose(&[200, 200, 200, 201, 204, 301, 302, 303, 304, 307, 308, 300, 401, 404, 500])?;
    let (location, _) = *u.choose(&LOCATIONS)?;
    let len = u.int_in_range(0..=400)?;
    let mut body = u.bytes(u.len().min(len))?.to_vec();
    if matches!(status, 204 | 304) {
        body.clear();
    }
    let mut bytes = Vec::new();
    for _ in 0..u.int_in_range(0..=2)? {
        bytes.extend(*u.choose(&[&b"HTTP/1.1 100 Continue\r\n\r\n"[..], b"HTTP/1.1 103 X\r\nLink: </a>\r\n\r\n"])?);
    }
    bytes.extend(format!("HTTP/1.1 {status} X\r\nContent-Type: text/plain\r\n").into_bytes());
    if !location.is_empty() {
        bytes.extend(format!("Location: {location}\r\n").into_bytes());
    }
    let framing = if matches!(status, 204 | 304) { 0 } else { u.int_in_range(0..=2)? };
    match framing {
        0 => {
            bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
            bytes.extend(&body);
        }
        1 => {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            let size = u.int_in_range(1..=200)?;
            for chunk in body.chunks(size) {
                bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
        }
        _ => {
            bytes.extend(b"\r\n");
            bytes.extend(&body);
        }
    }
    let mut meant = Some(Meant { status, location, body, is_open: framing == 2 });
    if u.ratio(1, 4)? {
        meant = None;
        let at = u.choose_index(bytes.len())?;
        match u.int_in_range(0..=3)? {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= u.arbitrary::<u8>()?,
            2 => bytes.insert(at, u.arbitrary()?),
            _ => bytes = u.bytes(u.len().min(60))?.to_vec(),
        }
    }
    Ok(Sent { bytes, end: *u.choose(&[End::Closed, End::Closed, End::Failed, End::Silent])?, meant })
}

/// Runs an exchange whose bytes are sent and received in pieces of these lengths, again and again from the first.
fn exchange(request: &FetchRequest<'_>, limits: FetchLimits, connections: &[Sent], cuts: &[usize]) -> Outcome {
    let mut fetch = Fetch::growing(request, limits, 0).expect("it can be sent");
    let (mut targets, mut cuts) = (Vec::new(), cuts.iter().cycle());
    for connection in connections {
        if !fetch.connects() {
            break;
        }
        assert!(!fetch.connects() && fetch.url().authority() == "h", "it goes to {}", fetch.url().authority());
        fetch.connected();
        let mut asked = Vec::new();
        while !fetch.pending().is_empty() {
            let n = cuts.next().map_or(1, |cut| *cut).min(fetch.pending().len());
            asked.extend(&fetch.pending()[..n]);
            fetch.sent(n);
        }
        let asked = String::from_utf8(asked).expect("UTF-8");
        assert!(asked.contains("\r\nHost: h\r\n") && asked.contains("\r\n\r\n"), "{asked}");
        targets.extend(asked.split(' ').nth(1).map(str::to_owned));
        let mut bytes = &connection.bytes[..];
        while !bytes.is_empty() && !fetch.space().is_empty() {
            let n = cuts.next().map_or(1, |cut| *cut).min(bytes.len()).min(fetch.space().len());
            fetch.space()[..n].copy_from_slice(&bytes[..n]);
            fetch.filled(n);
            bytes = &bytes[n..];
        }
        let is_open = !fetch.is_over() && !fetch.space().is_empty();
        match connection.end {
            End::Closed if is_open => fetch.closed(),
            End::Failed if is_open => fetch.failed(),
            _ => {}
        }
        fetch.expire(TIME - 1);
    }
    if fetch.connects() {
        fetch.failed();
    }
    fetch.expire(TIME);
    assert!(fetch.is_over() && !fetch.connects() && fetch.pending().is_empty());
    let result = fetch.response().expect("it is over");
    Outcome { targets, result: result.map(|response| (response.status, response.body.to_vec())) }
}

/// Returns what must come of undamaged responses; `None` if one that counts is damaged.
fn model(posts: bool, redirects: u8, most: usize, connections: &[Sent]) -> Option<Outcome> {
    let mut targets = vec!["/a/b".to_owned()];
    for (sent, followed) in connections.iter().zip(0..) {
        let Meant { status, location, body, is_open } = sent.meant.as_ref()?;
        let whole = if !is_open || sent.end == End::Closed {
            Ok((*status, body.clone()))
        } else if sent.end == End::Failed {
            Err(FailureReason::Broken)
        } else {
            Err(FailureReason::TimedOut)
        };
        let result = match status {
            300..=399 if redirects > 0 => {
                let target = LOCATIONS.iter().find(|(known, _)| known == location)?.1;
                let follows = !posts && matches!(status, 301 | 302 | 303 | 307 | 308) && followed < redirects;
                if let Some(target) = target.filter(|_| follows) {
                    if followed > 0 && location.starts_with(['y', '.']) {
                        // After another redirect it leads elsewhere.
                        return None;
                    }
                    targets.push(target.to_owned());
                    continue;
                }
                Err(FailureReason::Redirect(*status))
            }
            _ if body.len() > most => Err(FailureReason::TooLarge),
            _ => whole,
        };
        return Some(Outcome { targets, result });
    }
    targets.pop();
    Some(Outcome { targets, result: Err(FailureReason::Refused) })
}

pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let (posts, redirects) = (u.ratio(1, 4)?, u.int_in_range(0..=3)?);
    let (head, body) = (u.int_in_range(40..=600)?, u.int_in_range(0..=400)?);
    let limits = FetchLimits::DEFAULT.time(TIME).head(head).body(body).redirects(redirects);
    let request = if posts { FetchRequest::post("http://h/a/b", b"x=y") } else { FetchRequest::get("http://h/a/b") };
    let request = request.headers(&[("Accept", "*/*")]);
    let mut cuts = vec![u.int_in_range(1..=300)?];
    for _ in 0..u.int_in_range(0..=6)? {
        cuts.push(u.int_in_range(1..=40)?);
    }
    let mut connections = vec![sent(u)?];
    while connections.len() < 5 && !u.is_empty() {
        connections.push(sent(u)?);
    }
    let is_damaged = connections.iter().any(|sent| sent.meant.is_none());
    let whole = exchange(&request, limits, &connections, &[usize::MAX]);
    for cuts in [&cuts[..], &[1]] {
        let cut = exchange(&request, limits, &connections, cuts);
        // A damaged head fails either way, with another error if less of it has arrived when it is parsed.
        if is_damaged && cut.result.is_err() && whole.result.is_err() {
            assert_eq!(cut.targets, whole.targets);
        } else {
            assert_eq!(cut, whole, "it depends on the pieces");
        }
    }
    assert!(whole.targets.len() <= usize::from(redirects) + 1, "{} requests", whole.targets.len());
    if let Some(model) = model(posts, redirects, body, &connections).filter(|_| head > 200) {
        assert_eq!(whole, model);
    }
    Ok(())
}
