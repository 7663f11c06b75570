//! Handles events: keeps questions until the user can answer, and reports news.

use std::cell::RefCell;
use std::rc::Rc;

use mcp_sansio::client::result::{ClientResult, Root};
use mcp_sansio::client::{
    ChangeNotification, ClientEvent, ClientHandle, ClientHandler, ProtocolViolation, RequestError, ServerRequestId,
    ServerRequestKind, Subscriptions,
};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::protocol::{LoggingLevel, Method};

use crate::json::{Members, compact, quote};
use crate::live::{Live, log_line};
use crate::page::{Look, Style};
use crate::terminal::print;
use crate::text::one_line;

/// A question that waits for the user.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: ServerRequestId,
    pub(crate) kind: ServerRequestKind,
    pub(crate) params: String,
}

/// The format of events on stdout.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News {
    /// Events are not printed.
    No,
    Lines(Look),
    Json,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) live: Rc<RefCell<Live>>,
    /// The roots: URIs and names.
    pub(crate) roots: Vec<(String, String)>,
    /// A user can answer questions.
    pub(crate) interactive: bool,
    pub(crate) news: News,
    pub(crate) waiting: Vec<Waiting>,
    /// Questions that the server has withdrawn.
    pub(crate) withdrawn: Vec<ServerRequestId>,
    /// The reason why no more news will arrive.
    pub(crate) over: Option<String>,
    /// The mistakes of the server that were already reported.
    pub(crate) odd: Vec<&'static str>,
}

impl ClientHandler for Host {
    fn event(&mut self, event: ClientEvent<'_>, link: &mut ClientHandle<'_, '_>) {
        match event {
            ClientEvent::Asked(asked) => {
                for question in asked.questions() {
                    self.asked(question.id, question.kind, question.params, link);
                }
            }
            ClientEvent::Withdrawn { question, reason } => self.withdrawn(question, reason),
            ClientEvent::Progress { done, total, message, .. } => {
                let message = message.map(|message| message.to_string());
                let total = total.map(|total| total.as_str());
                self.live.borrow_mut().progress(done.as_str(), total, message.as_deref());
            }
            ClientEvent::Log { level, logger, data, .. } => self.log(level, logger, data),
            ClientEvent::Listening(listening) => self.listening(&listening),
            ClientEvent::Changed { what, .. } => self.changed(what),
            ClientEvent::ElicitationComplete { id } => {
                let id = one_line(id);
                self.live.borrow_mut().note(Style::Dim, &format!("The visit {id} is over, says the server."));
            }
            ClientEvent::Notification { method, params } => {
                let params = params.map_or_else(String::new, |params| format!(" {}", compact(params)));
                self.tell("notification", &format!("{method}{params}"), |json| {
                    json.add("method", &quote(&method.to_string()))
                });
            }
            ClientEvent::Done { method: Method::Listen, outcome, .. } => {
                self.over = Some(match outcome {
                    Ok(_) => "the server has ended the listening".into(),
                    Err(RequestError::Error(error)) => format!("the server refuses to listen: {error}"),
                    Err(why) => why.to_string(),
                });
            }
            ClientEvent::Unconnected(why) => self.over = Some(why.to_string()),
            ClientEvent::Ignored(oddity) => self.complain(odd(oddity)),
            _ => {}
        }
    }
}

impl Host {
    fn asked(
        &mut self,
        id: ServerRequestId,
        kind: ServerRequestKind,
        params: Raw<'_>,
        link: &mut ClientHandle<'_, '_>,
    ) {
        // Answering fails only if the question is already closed.
        let _ = match kind {
            ServerRequestKind::Roots => link.reply(id, &ClientResult::roots(&self.valid_roots())),
            _ if self.interactive => {
                self.waiting.push(Waiting { id, kind, params: params.as_str().into() });
                Ok(())
            }
            ServerRequestKind::Form | ServerRequestKind::UrlElicitation => {
                self.declined(params);
                link.reply(id, &ClientResult::decline())
            }
            _ => {
                self.live
                    .borrow_mut()
                    .note(Style::Warn, "The server wants a model's answer. Without a terminal that is refused.");
                link.refuse(id, &RpcError::refused())
            }
        };
    }

    pub(crate) fn valid_roots(&self) -> Vec<Root<'_>> {
        self.roots.iter().filter_map(|(uri, name)| Some(Root::new(uri)?.name(name))).collect()
    }

    fn withdrawn(&mut self, id: ServerRequestId, reason: Option<Text<'_>>) {
        self.waiting.retain(|waiting| waiting.id != id);
        self.withdrawn.push(id);
        let reason = reason.map_or_else(|| ".".into(), |reason| format!(": {}", one_line(reason)));
        let words = format!("\nThe server does not want an answer any more{reason}");
        self.live.borrow_mut().note(Style::Dim, &words);
    }

    fn declined(&self, params: Raw<'_>) {
        let message = params.get("message").and_then(|message| message.text()).map(one_line).unwrap_or_default();
        let note = format!("The server asks: {message:?}. Without a terminal that is declined.");
        self.live.borrow_mut().note(Style::Warn, &note);
    }

    fn log(&mut self, level: Option<LoggingLevel>, logger: Option<Text<'_>>, data: Raw<'_>) {
        let text = data.text().map_or_else(|| compact(data), |text| text.to_string());
        let logger = logger.map(|logger| logger.to_string());
        match self.news {
            News::No => self.live.borrow_mut().log(level, logger.as_deref(), &text),
            News::Lines(look) => self.line(look, &log_line(look, level, logger.as_deref(), &text)),
            News::Json => self.tell("log", "", |json| {
                level.into_iter().for_each(|level| json.add("level", &quote(level.name())));
                logger.iter().for_each(|logger| json.add("logger", &quote(logger)));
                json.add("data", &compact(data));
            }),
        }
    }

    fn listening(&self, listening: &Subscriptions) {
        let lists = [(listening.tools, "tools"), (listening.prompts, "prompts"), (listening.resources, "resources")];
        let mut words: Vec<String> =
            lists.iter().filter(|(told, _)| *told).map(|(_, name)| format!("the list of {name}")).collect();
        match listening.uris {
            0 => {}
            1 => words.push("one resource".into()),
            n => words.push(format!("{n} resources")),
        }
        let words = if words.is_empty() { "nothing: the server reports no changes".into() } else { words.join(", ") };
        self.live.borrow_mut().note(Style::Dim, &format!("Listening to {words}. Ctrl-C ends."));
    }

    fn changed(&mut self, what: ChangeNotification<'_>) {
        match what {
            ChangeNotification::Tools => {
                self.tell("changed", "the list of tools has changed", |json| json.add("list", "\"tools\""))
            }
            ChangeNotification::Prompts => {
                self.tell("changed", "the list of prompts has changed", |json| json.add("list", "\"prompts\""));
            }
            ChangeNotification::Resources => {
                self.tell("changed", "the list of resources has changed", |json| json.add("list", "\"resources\""));
            }
            ChangeNotification::Resource(uri) => {
                let uri = uri.to_string();
                self.tell("changed", &format!("{uri} has changed"), |json| json.add("uri", &quote(&uri)));
            }
            _ => {}
        }
    }

    /// Reports a mistake once: some servers make it with each line.
    fn complain(&mut self, words: &'static str) {
        if !self.odd.contains(&words) {
            self.odd.push(words);
            self.live.borrow_mut().note(Style::Warn, words);
        }
    }

    /// Prints an event, as a line or as JSON.
    fn tell(&mut self, kind: &str, words: &str, add: impl FnOnce(&mut Members)) {
        match self.news {
            News::No => {}
            News::Lines(look) => self.line(look, &look.paint(Style::Plain, &one_line(words))),
            News::Json => {
                let mut json = Members::default();
                json.add("seconds", &format!("{:.3}", self.live.borrow().seconds()));
                json.add("event", &quote(kind));
                add(&mut json);
                let _ = print(format!("{}\n", json.finish()).as_bytes());
            }
        }
    }

    fn line(&self, look: Look, words: &str) {
        let mut live = self.live.borrow_mut();
        live.clear();
        let time = look.paint(Style::Dim, &format!("{:8.3} s", live.seconds()));
        let _ = print(format!("{time}  {words}\n").as_bytes());
    }
}

/// Describes a mistake of the server.
fn odd(oddity: ProtocolViolation) -> &'static str {
    match oddity {
        ProtocolViolation::NoMessage => {
            "The server sent something that is not a message. (Does it print to stdout? --trace shows it.)"
        }
        ProtocolViolation::UnknownResponse => "The server answered a request that is unknown or already over.",
        ProtocolViolation::Unread { .. } => "The server could not read a message. (Was it too long for it?)",
        ProtocolViolation::UnknownProgress => "The server reported progress that no open request asked for.",
        ProtocolViolation::UnknownListen => "The server reported a change without a subscription.",
        ProtocolViolation::Undeclared => {
            "The server asked for something that this program did not declare; it was refused."
        }
        ProtocolViolation::TooLong => "The server sent a message that is too long.",
        ProtocolViolation::NoRoom => "The server asked too many questions at a time; one was refused.",
        _ => "The server sent something that no server may send.",
    }
}
