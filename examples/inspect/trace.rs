//! The trace: shows every message in both directions, with its time.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use mcp_sansio::json::Raw;
use mcp_sansio_blocking::client::Direction;

use crate::json::{Members, compact, pretty, quote};
use crate::live::Live;
use crate::page::{Look, Style};
use crate::text::one_line;

/// The place and format of the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// On stdout, as the result.
    Lines(Look),
    /// On stdout, as lines of JSON.
    Json,
    /// On stderr, beside the result.
    Aside(Look),
}

pub(crate) struct Tracer {
    form: Form,
    live: Rc<RefCell<Live>>,
    begun: Instant,
    /// The requests under way: direction, id, method, time.
    open: Vec<(Direction, String, String, Instant)>,
}

/// The most requests to remember.
const OPEN: usize = 256;

impl Tracer {
    pub(crate) fn new(form: Form, live: Rc<RefCell<Live>>, begun: Instant) -> Self {
        Tracer { form, live, begun, open: Vec::new() }
    }

    pub(crate) fn show(&mut self, way: Direction, message: &[u8]) {
        let now = Instant::now();
        let parsed = Raw::parse(message).ok();
        let (name, took) = parsed.map_or((None, None), |raw| self.name(way, raw, now));
        let millis = (now - self.begun).as_secs_f64() * 1e3;
        let text = match self.form {
            Form::Json => json(millis, way, message, parsed, took),
            Form::Lines(look) | Form::Aside(look) => lines(look, millis, way, message, parsed, name.as_deref(), took),
        };
        match self.form {
            Form::Aside(_) => self.live.borrow_mut().print(&text),
            _ => {
                self.live.borrow_mut().clear();
                if let Err(error) = crate::terminal::print(text.as_bytes()) {
                    self.live.borrow_mut().lost.get_or_insert(error);
                }
            }
        }
    }

    /// Returns the name of a message, and the wait for a response in milliseconds.
    fn name(&mut self, way: Direction, message: Raw<'_>, now: Instant) -> (Option<String>, Option<f64>) {
        let method = message.get("method").and_then(|method| method.text()).map(one_line);
        let id = message.get("id").map(|id| one_line(compact(id)));
        match (method, id) {
            (Some(method), Some(id)) => {
                let name = format!("{method} #{id}");
                if self.open.len() >= OPEN {
                    self.open.remove(0);
                }
                self.open.push((way, id, method, now));
                (Some(name), None)
            }
            (Some(method), None) => (Some(method), None),
            (None, Some(id)) => {
                let at = self.open.iter().position(|(asked, open, ..)| *asked != way && *open == id);
                let Some((.., method, sent)) = at.map(|at| self.open.remove(at)) else {
                    return (Some(format!("answer #{id}")), None);
                };
                let word = if message.get("error").is_some() { "error" } else { "result" };
                (Some(format!("{method} #{id} {word}")), Some((now - sent).as_secs_f64() * 1e3))
            }
            (None, None) => (None, None),
        }
    }
}

fn json(millis: f64, way: Direction, message: &[u8], parsed: Option<Raw<'_>>, took: Option<f64>) -> String {
    let mut json = Members::default();
    json.add("milliseconds", &format!("{millis:.3}"));
    json.add("way", if way == Direction::Sent { "\"sent\"" } else { "\"received\"" });
    took.into_iter().for_each(|took| json.add("took", &format!("{took:.3}")));
    match parsed {
        Some(message) => json.add("message", &compact(message)),
        None => json.add("text", &quote(&String::from_utf8_lossy(message))),
    }
    format!("{}\n", json.finish())
}

fn lines(
    look: Look,
    millis: f64,
    way: Direction,
    message: &[u8],
    parsed: Option<Raw<'_>>,
    name: Option<&str>,
    took: Option<f64>,
) -> String {
    let (arrow, style) = match way {
        Direction::Sent => ("→", Style::Good),
        Direction::Received => ("←", Style::Name),
    };
    let time = look.paint(Style::Dim, &format!("{millis:9.1} ms"));
    let arrow = look.paint(style, arrow);
    let name = look.paint(Style::Head, name.unwrap_or(if parsed.is_some() { "messages" } else { "no JSON" }));
    let took = took.map_or_else(String::new, |took| look.paint(Style::Dim, &format!(" after {took:.1} ms")));
    let mut text = format!("{time} {arrow} {name}{took}\n");
    let body = match parsed {
        Some(message) => pretty(message, look.width.saturating_sub(4)),
        None => String::from_utf8_lossy(message).into_owned(),
    };
    for line in look.paint(Style::Plain, &body).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_names_and_times() {
        let look = Look { color: false, width: 60 };
        let live = Rc::new(RefCell::new(Live::new(look, false, false)));
        let now = Instant::now();
        let mut tracer = Tracer::new(Form::Lines(look), live, now);
        let mut name = |way, json: &str| tracer.name(way, Raw::parse(json.as_bytes()).unwrap(), now);
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(name(Direction::Sent, r#"{"id":1,"method":"ping"}"#), (named("ping #1"), None));
        assert_eq!(name(Direction::Received, r#"{"id":1,"method":"roots/list"}"#), (named("roots/list #1"), None));
        assert_eq!(name(Direction::Received, r#"{"id":1,"result":{}}"#), (named("ping #1 result"), Some(0.0)));
        assert_eq!(name(Direction::Received, r#"{"id":1,"result":{}}"#), (named("answer #1"), None));
        assert_eq!(name(Direction::Sent, r#"{"id":1,"error":{}}"#), (named("roots/list #1 error"), Some(0.0)));
        assert_eq!(name(Direction::Received, r#"{"method":"notifications/x"}"#), (named("notifications/x"), None));

        let message = br#"{"id":1,"result":{}}"#;
        let parsed = Raw::parse(message).ok();
        let shown = lines(look, 1.25, Direction::Received, message, parsed, Some("ping #1 result"), Some(1.0));
        assert_eq!(shown, "      1.2 ms ← ping #1 result after 1.0 ms\n    {\"id\": 1, \"result\": {}}\n");
        let shown = lines(look, 1.25, Direction::Received, b"hello\x1b[2J", None, None, None);
        assert_eq!(shown, "      1.2 ms ← no JSON\n    hello␛[2J\n");
        let shown = json(1.25, Direction::Sent, message, parsed, None);
        assert_eq!(shown, "{\"milliseconds\":1.250,\"way\":\"sent\",\"message\":{\"id\":1,\"result\":{}}}\n");
    }
}
