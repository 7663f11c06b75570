//! What happens besides answers: questions are kept until there is time for them, news is told.

use std::cell::RefCell;
use std::rc::Rc;

use mcp_sansio::client::reply::{Refusal, Reply, Root};
use mcp_sansio::client::{Changed, Event, Failure, Handler, Link, Listening, Log, Oddity, QuestionId, QuestionKind};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::Method;

use crate::json::{Members, compact, quote};
use crate::live::{Live, log_line};
use crate::page::{Look, Style};
use crate::terminal::print;
use crate::text::one_line;

/// A question that waits for the user.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: QuestionId,
    pub(crate) kind: QuestionKind,
    pub(crate) params: String,
}

/// How events are printed on stdout, when they are what was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News {
    /// Not at all.
    No,
    Lines(Look),
    Json,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) live: Rc<RefCell<Live>>,
    /// URIs and names.
    pub(crate) roots: Vec<(String, String)>,
    /// Whether there is somebody to ask.
    pub(crate) interactive: bool,
    pub(crate) news: News,
    pub(crate) waiting: Vec<Waiting>,
    /// Questions that need no answer any more.
    pub(crate) withdrawn: Vec<QuestionId>,
    /// Why there will be no more news.
    pub(crate) over: Option<String>,
    /// `elicitationId` of the visits that the user has agreed to and that are not over.
    pub(crate) visits: Vec<String>,
    /// What is wrong with the server, as far as it was told.
    pub(crate) odd: Vec<&'static str>,
}

impl Handler for Host {
    fn event(&mut self, event: Event<'_>, link: &mut Link<'_, '_>) {
        match event {
            Event::Asked(asked) => {
                for question in asked.questions() {
                    self.asked(question.id, question.kind, question.params, link);
                }
            }
            Event::Withdrawn(id) => self.withdrawn(id),
            Event::Progress(report) => {
                let message = report.message.map(|message| message.to_string());
                let total = report.total.map(|total| total.as_str());
                self.live.borrow_mut().progress(report.done.as_str(), total, message.as_deref());
            }
            Event::Log(log) => self.log(&log),
            Event::Listening(listening) => self.listening(&listening),
            Event::Changed { what, .. } => self.changed(what),
            Event::Visited { id } => {
                // Unknown ones, and those that are over already, are ignored (2025-11-25, client/elicitation).
                if let Some(at) = self.visits.iter().position(|visit| id.is(visit)) {
                    let id = one_line(self.visits.swap_remove(at));
                    self.live.borrow_mut().note(Style::Dim, &format!("The visit {id} is over, says the server."));
                }
            }
            Event::Notification { method, params } => {
                let params = params.map_or_else(String::new, |params| format!(" {}", compact(params)));
                self.tell("notification", &format!("{method}{params}"), |json| {
                    json.add("method", &quote(&method.to_string()))
                });
            }
            Event::Done { method: Method::Listen, outcome, .. } => {
                self.over = Some(match outcome {
                    Ok(_) => "the server has ended the listening".into(),
                    Err(Failure::Error(error)) => format!("the server refuses to listen: {error}"),
                    Err(why) => why.to_string(),
                });
            }
            Event::Unconnected(why) => self.over = Some(why.to_string()),
            Event::Ignored(oddity) => self.complain(odd(oddity)),
            _ => {}
        }
    }
}

impl Host {
    fn asked(&mut self, id: QuestionId, kind: QuestionKind, params: Raw<'_>, link: &mut Link<'_, '_>) {
        // Only one that is over cannot be answered.
        let _ = match kind {
            QuestionKind::Roots => {
                let roots: Vec<Root<'_>> =
                    self.roots.iter().filter_map(|(uri, name)| Some(Root::new(uri)?.name(name))).collect();
                link.reply(id, &Reply::roots(&roots))
            }
            _ if self.interactive => {
                self.waiting.push(Waiting { id, kind, params: params.as_str().into() });
                Ok(())
            }
            QuestionKind::Form | QuestionKind::Visit => {
                self.declined(params);
                link.reply(id, &Reply::decline())
            }
            _ => {
                self.live
                    .borrow_mut()
                    .note(Style::Warn, "The server wants a model's answer. Without a terminal that is refused.");
                link.refuse(id, &Refusal::refused())
            }
        };
    }

    fn withdrawn(&mut self, id: QuestionId) {
        self.waiting.retain(|waiting| waiting.id != id);
        self.withdrawn.push(id);
        self.live.borrow_mut().note(Style::Dim, "\nThe server does not want an answer any more.");
    }

    fn declined(&self, params: Raw<'_>) {
        let message = params.get("message").and_then(|message| message.text()).map(one_line).unwrap_or_default();
        let note = format!("The server asks: {message:?}. Without a terminal that is declined.");
        self.live.borrow_mut().note(Style::Warn, &note);
    }

    fn log(&mut self, log: &Log<'_>) {
        let text = log.data.text().map_or_else(|| compact(log.data), |text| text.to_string());
        let logger = log.logger.map(|logger| logger.to_string());
        match self.news {
            News::No => self.live.borrow_mut().log(log.level, logger.as_deref(), &text),
            News::Lines(look) => self.line(look, &log_line(look, log.level, logger.as_deref(), &text)),
            News::Json => self.tell("log", "", |json| {
                log.level.into_iter().for_each(|level| json.add("level", &quote(level.name())));
                logger.iter().for_each(|logger| json.add("logger", &quote(logger)));
                json.add("data", &compact(log.data));
            }),
        }
    }

    fn listening(&self, listening: &Listening) {
        let lists = [(listening.tools, "tools"), (listening.prompts, "prompts"), (listening.resources, "resources")];
        let mut words: Vec<String> =
            lists.iter().filter(|(told, _)| *told).map(|(_, name)| format!("the list of {name}")).collect();
        match listening.uris {
            0 => {}
            1 => words.push("one resource".into()),
            n => words.push(format!("{n} resources")),
        }
        let words = if words.is_empty() { "nothing: the server tells no changes".into() } else { words.join(", ") };
        self.live.borrow_mut().note(Style::Dim, &format!("Listening to {words}. Ctrl-C ends."));
    }

    fn changed(&mut self, what: Changed<'_>) {
        match what {
            Changed::Tools => {
                self.tell("changed", "the list of tools has changed", |json| json.add("list", "\"tools\""))
            }
            Changed::Prompts => {
                self.tell("changed", "the list of prompts has changed", |json| json.add("list", "\"prompts\""));
            }
            Changed::Resources => {
                self.tell("changed", "the list of resources has changed", |json| json.add("list", "\"resources\""));
            }
            Changed::Resource(uri) => {
                let uri = uri.to_string();
                self.tell("changed", &format!("{uri} has changed"), |json| json.add("uri", &quote(&uri)));
            }
            _ => {}
        }
    }

    /// Once: some servers do it with each line.
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

/// What a right server does not do.
fn odd(oddity: Oddity) -> &'static str {
    match oddity {
        Oddity::NoMessage => {
            "The server sent something that is no message. (Does it print to stdout? --trace shows it.)"
        }
        Oddity::UnknownResponse => "The server answered a request that is not under way, or no longer.",
        Oddity::Unread { .. } => "The server could not read a message. (Was it too long for it?)",
        Oddity::UnknownProgress => "The server tells progress that nobody asked for.",
        Oddity::UnknownListen => "The server tells a change that nobody listens to.",
        Oddity::Undeclared => "The server asked for something that this program did not declare; it was refused.",
        Oddity::TooLong => "The server sent a message that is too long.",
        Oddity::NoRoom => "The server asks more than there is room for; it was refused.",
        _ => "The server sent something that no server may send.",
    }
}
