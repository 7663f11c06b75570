//! Media types: `Content-Type` and `Accept`.

use memchr::memchr;

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENTS: &str = "text/event-stream";

/// The media types of `Accept`. Without the header all are accepted (RFC 9110, section 12.5.1). Several lines are
/// one list.
#[derive(Clone, Copy, Default)]
pub(crate) struct Accept {
    given: bool,
    ranges: u16,
    json: MediaRule,
    stream: MediaRule,
}

/// The rule for one media type.
#[derive(Clone, Copy, Default)]
struct MediaRule {
    taken: bool,
    /// It is accepted, and not by `*/*` alone.
    meant: bool,
    /// If it is named itself: its weight, and its place in the list.
    named: Option<(u16, u16)>,
}

impl Accept {
    /// Adds the value of one line of the header.
    pub(crate) fn take(&mut self, value: &[u8]) {
        if !self.given
            && let Some(usual) = Accept::usual(value)
        {
            *self = usual;
            return;
        }
        self.given = true;
        let mut rest = Some(value);
        while let Some(list) = rest {
            let (range, others) = cut(list, b',');
            self.note(range);
            rest = others;
        }
    }

    /// Returns the result for the value that nearly all clients send, the SDKs included, without parsing it.
    fn usual(value: &[u8]) -> Option<Self> {
        let (json, stream) = match value {
            b"application/json, text/event-stream" => (0, 1),
            b"text/event-stream, application/json" => (1, 0),
            _ => return None,
        };
        let named = |place| MediaRule { taken: true, meant: true, named: Some((1000, place)) };
        Some(Accept { given: true, ranges: 2, json: named(json), stream: named(stream) })
    }

    fn note(&mut self, range: &[u8]) {
        let (essence, parameters) = cut(range, b';');
        let (essence, weight) = (essence.trim_ascii(), weight(parameters));
        for (said, mime) in [(&mut self.json, JSON), (&mut self.stream, EVENTS)] {
            if essence.eq_ignore_ascii_case(mime.as_bytes()) {
                said.named = said.named.or(Some((weight, self.ranges)));
                said.taken |= weight > 0;
                said.meant |= weight > 0;
            } else if weight > 0 && is_range_over(essence, mime) {
                said.taken = true;
                said.meant |= essence != b"*/*";
            }
        }
        self.ranges = self.ranges.saturating_add(1);
    }

    /// Returns `true` if the client accepts JSON.
    pub(crate) const fn json(&self) -> bool {
        self.json.taken || !self.given
    }

    /// Returns `true` if the client accepts an event stream.
    pub(crate) const fn stream(&self) -> bool {
        self.stream.taken || !self.given
    }

    /// Returns `true` if the client accepts an event stream by name, not only by `*/*`.
    pub(crate) const fn names_stream(&self) -> bool {
        self.stream.meant
    }

    /// Returns `true` if the client prefers an event stream to JSON: by weight, else by naming it first.
    pub(crate) fn prefers_stream(&self) -> bool {
        match (self.stream.named, self.json.named) {
            (Some((stream, first)), Some((json, second))) => stream > json || stream == json && first < second,
            (stream, _) => stream.is_some(),
        }
    }
}

/// Returns `true` if a `Content-Type` is JSON.
pub(super) fn is_json(content_type: Option<&[u8]>) -> bool {
    content_type.is_some_and(|kind| {
        kind == JSON.as_bytes() || cut(kind, b';').0.trim_ascii().eq_ignore_ascii_case(JSON.as_bytes())
    })
}

/// Returns `true` for `*/*` and `application/*`.
fn is_range_over(range: &[u8], mime: &str) -> bool {
    let Some(kind) = range.strip_suffix(b"*") else { return false };
    range == b"*/*"
        || mime.as_bytes().get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind))
            && kind.ends_with(b"/")
}

/// Returns the weight among the parameters of a media range, in thousandths.
fn weight(parameters: Option<&[u8]>) -> u16 {
    let mut rest = parameters;
    while let Some(list) = rest {
        let (parameter, others) = cut(list, b';');
        if let [b'q' | b'Q', b'=', quality @ ..] = parameter.trim_ascii() {
            return thousandths(quality);
        }
        rest = others;
    }
    1000
}

fn thousandths(quality: &[u8]) -> u16 {
    let (whole, part) = cut(quality, b'.');
    let digits = part.unwrap_or(&[]).iter().chain(b"000").take(3).map(|digit| digit.wrapping_sub(b'0').min(9));
    if whole == b"0" { digits.fold(0, |sum, digit| sum * 10 + u16::from(digit)) } else { 1000 }
}

/// Returns the text before the first mark, and the text after it.
fn cut(text: &[u8], mark: u8) -> (&[u8], Option<&[u8]>) {
    match memchr(mark, text).and_then(|at| text.split_at_checked(at)) {
        Some((before, behind)) => (before, behind.get(1..)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept() {
        // Accepted: JSON, a stream; and whether the stream is preferred.
        for (accept, json, stream, prefers) in [
            ("application/json, text/event-stream", true, true, false),
            ("text/event-stream, application/json", true, true, true),
            ("text/event-stream;q=0.5, application/json", true, true, false),
            ("application/json; q=0.25, Text/Event-Stream; q=0.3", true, true, true),
            ("application/json, text/event-stream;q=0", true, false, false),
            ("application/json;q=0, text/event-stream;q=0", false, false, false),
            ("application/json;q=0.001, text/event-stream;q=0.000", true, false, false),
            ("*/*;q=0", false, false, false),
            ("application/json", true, false, false),
            ("text/event-stream", false, true, true),
            ("*/*", true, true, false),
            ("application/*, text/*;q=0.001", true, true, false),
            ("application*, text/event*", false, false, false),
            ("application/json;charset=utf-8;Q=0.000, ,", false, false, false),
            ("text/html", false, false, false),
            ("", false, false, false),
        ] {
            let mut accepted = Accept::default();
            accepted.take(accept.as_bytes());
            assert_eq!(accepted.json(), json, "{accept}");
            assert_eq!(accepted.stream(), stream, "{accept}");
            assert_eq!(accepted.prefers_stream(), prefers, "{accept}");
        }
    }

    #[test]
    fn no_header_and_several() {
        let mut accepted = Accept::default();
        assert!(accepted.json() && accepted.stream() && !accepted.prefers_stream());
        accepted.take(b"text/event-stream");
        accepted.take(b"application/json");
        assert!(accepted.json() && accepted.stream() && accepted.prefers_stream());
        // The usual value in a further line is not all of the list.
        let mut accepted = Accept::default();
        accepted.take(b"application/json;q=0.5");
        accepted.take(b"application/json, text/event-stream");
        assert!(accepted.json() && accepted.stream() && accepted.prefers_stream());
    }

    #[test]
    fn content_type() {
        for (kind, json) in
            [("application/json", true), ("Application/JSON ; charset=utf-8", true), ("text/json", false)]
        {
            assert_eq!(is_json(Some(kind.as_bytes())), json, "{kind}");
        }
        assert!(!is_json(None));
    }
}
