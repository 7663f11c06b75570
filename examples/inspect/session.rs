//! A connection, with a person beside it: requests that Ctrl-C ends, questions that are asked in between.

use std::cell::RefCell;
use std::io;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mcp_sansio::client::reply::{Refusal, Reply, Sampled};
use mcp_sansio::client::{Engine, Handler, Link, Lost, Profile, QuestionId, QuestionKind, Request, Token};
use mcp_sansio::json::Raw;
use mcp_sansio::server::Millis;
use mcp_sansio::service::Content;
use mcp_sansio_blocking::client::{
    Answer, Child, ChildOptions, Client, Error, Http, HttpOptions, Options as Limits, PageLimits, Stderr, Trace,
    Transport,
};

use crate::args::{Options, Target};
use crate::ask::{Asker, Console, Said};
use crate::host::{Host, Waiting};
use crate::live::Live;
use crate::page::{Look, Style};
use crate::terminal::{Keyboard, Stop, is_unread};

/// How long to wait at most before Ctrl-C is looked for.
const SLICE: Duration = Duration::from_millis(200);

/// How often the server is looked after while the user types.
const GLANCE: Duration = Duration::from_millis(20);

/// How long the server is waited for then: only what is waited for is seen.
const BLINK: Duration = Duration::from_millis(1);

/// How long the first question may take, after which the server is taken for an older one.
const PROBE: Duration = Duration::from_secs(5);

/// How long an answer may take, unless `--timeout` says otherwise.
const TIME: Duration = Duration::from_secs(60);

/// How much longer than one request all pages of a list may take.
const LIST_TIMES: u32 = 4;

/// How long a server may take to end before a word is said of it: interpreters take seconds to clean up.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A transport that ends with an error at Ctrl-C.
pub(crate) struct Stoppable<'m> {
    inner: Box<dyn Transport<'m> + 'm>,
    stop: Stop,
}

impl<'m> Transport<'m> for Stoppable<'m> {
    fn link(&mut self) -> Link<'_, 'm> {
        self.inner.link()
    }
    fn engine(&self) -> &Engine<'m> {
        self.inner.engine()
    }
    fn run(&mut self, now: Millis, handler: &mut dyn Handler) -> io::Result<bool> {
        self.inner.run(now, handler)
    }
    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.stop.check()?;
        self.inner.wait(at_most.min(SLICE))?;
        self.stop.check()
    }
    fn next_deadline(&self) -> Option<Millis> {
        self.inner.next_deadline()
    }
    fn explain(&mut self, why: Lost) -> String {
        self.inner.explain(why)
    }
    fn is_settling(&self) -> bool {
        self.inner.is_settling()
    }
    fn trace(&mut self, trace: Trace) {
        self.inner.trace(trace);
    }
    fn close(&mut self) {
        self.inner.close();
    }
}

/// What a connection is made of besides the options.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    pub(crate) live: Rc<RefCell<Live>>,
    pub(crate) stop: Stop,
    pub(crate) look: Look,
}

pub(crate) struct Session<'m> {
    client: Client<'m, Stoppable<'m>, Host>,
    keyboard: Keyboard,
    around: Around,
    /// How long a request may take.
    time: Duration,
    /// The method of the latest request that the server refused.
    refused: String,
}

impl<'m> Session<'m> {
    /// Starts the server or finds it, without saying anything yet.
    pub(crate) fn new(
        target: &Target,
        options: &Options,
        profile: &'m Profile<'m>,
        host: Host,
        around: Around,
    ) -> Result<Self, Error> {
        let mut limits = Limits::new();
        if let Some(time) = options.timeout {
            // Whoever gives it minutes knows that it is slow to start: it may be compiled first.
            limits = limits.timeout(time).probe_timeout(time.min(PROBE).max(time / 10));
        }
        let inner: Box<dyn Transport<'m> + 'm> = match target {
            Target::Program(words) => Box::new(spawn(words, options, limits, profile, &around)?),
            Target::Url(url) => Box::new(reach(url, options, limits, profile)?),
        };
        let client = Client::new(Stoppable { inner, stop: around.stop.clone() }, host);
        Ok(Session {
            client,
            keyboard: Keyboard::default(),
            around,
            time: options.timeout.unwrap_or(TIME),
            refused: String::new(),
        })
    }

    pub(crate) fn client(&mut self) -> &mut Client<'m, Stoppable<'m>, Host> {
        &mut self.client
    }

    /// Sends a request and waits for its answer; meanwhile asks what the server wants to know.
    pub(crate) fn request(&mut self, request: &Request<'_>) -> Result<Answer, Error> {
        let token = self.client.send(request)?;
        let outcome = self.outcome(token);
        if self.around.stop.is_set() {
            // The server need not go on with it. If that cannot be said, it will notice.
            let _ = self.client.cancel(token, Some("The user pressed Ctrl-C"));
        }
        self.around.live.borrow_mut().clear();
        if matches!(outcome, Err(Error::Server(_))) {
            self.refused = request.method_name().to_owned();
        }
        outcome
    }

    /// The method of the latest request that the server refused.
    pub(crate) fn refused(&self) -> &str {
        &self.refused
    }

    fn outcome(&mut self, token: Token) -> Result<Answer, Error> {
        loop {
            if let Some(outcome) = self.client.poll(token) {
                return outcome;
            }
            self.ask_waiting()?;
            // A server that never stops leaves no time to wait, where this is looked at too.
            self.around.stop.check()?;
            self.client.turn(SLICE)?;
        }
    }

    /// All pages of a list, within [`PageLimits`] and [`LIST_TIMES`] the time of a request.
    pub(crate) fn list(&mut self, list: Request<'_>) -> Result<Vec<Answer>, Error> {
        let mut pages: Vec<Answer> = Vec::new();
        let mut limits = PageLimits::new().time(self.time * LIST_TIMES);
        loop {
            limits.ask()?;
            let page = match pages.last().and_then(Answer::next_cursor) {
                Some(cursor) => self.request(&list.after(cursor))?,
                None => self.request(&list)?,
            };
            limits.took(&page);
            let last = page.next_cursor().is_none();
            pages.push(page);
            if last {
                return Ok(pages);
            }
        }
    }

    /// Tells what happens until there is no more, nobody reads it, or Ctrl-C.
    pub(crate) fn watch(&mut self) -> Result<(), Error> {
        while self.client.handler().over.is_none() && !self.around.stop.is_set() && !is_unread() {
            match self.client.turn(SLICE) {
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
                done => done?,
            };
            self.ask_waiting()?;
        }
        Ok(())
    }

    fn ask_waiting(&mut self) -> Result<(), Error> {
        while !self.client.handler().waiting.is_empty() {
            let waiting = self.client.handler().waiting.remove(0);
            let Some(said) = self.ask(&waiting)? else { continue };
            if let (QuestionKind::Visit, Said::Yes(_)) = (waiting.kind, &said) {
                let id =
                    Raw::parse(waiting.params.as_bytes()).ok().and_then(|params| params.get("elicitationId")?.text());
                self.client.handler().visits.extend(id.map(|id| id.to_string()));
            }
            let _ = answer(&mut self.client.link(), &waiting, &said);
            self.client.run()?;
        }
        Ok(())
    }

    /// Asks the user; `None` if the question is not of interest any more.
    fn ask(&mut self, waiting: &Waiting) -> Result<Option<Said>, Error> {
        self.around.live.borrow_mut().clear();
        let server = self.client.server().and_then(|hello| hello.server()).and_then(|info| info.get("name")?.text());
        let server = server.map_or_else(|| "the server".to_owned(), |name| name.to_string());
        let params = Raw::parse(waiting.params.as_bytes()).unwrap_or(Raw::constant("{}"));
        let look = self.around.look;
        let mut console = Terminal { session: self, question: waiting.id, over: false, broken: None };
        let mut asker = Asker { console: &mut console, look };
        let said = match waiting.kind {
            QuestionKind::Form => asker.form(&server, params),
            QuestionKind::Visit => asker.visit(&server, params),
            _ => asker.sampling(&server, params),
        };
        match console.broken {
            Some(error) => Err(error),
            None => Ok(Some(said).filter(|_| !console.over)),
        }
    }

    /// Ends the connection, and the program that was started for it.
    pub(crate) fn close(self) {
        let begun = Instant::now();
        let live = Rc::clone(&self.around.live);
        drop(self.client.close());
        if begun.elapsed() > ENDS_WITHIN {
            live.borrow_mut().note(Style::Dim, "The server did not end when its stdin was closed.");
        }
    }
}

fn spawn<'m>(
    words: &[std::ffi::OsString],
    options: &Options,
    limits: Limits,
    profile: &'m Profile<'m>,
    around: &Around,
) -> Result<Child<'m>, Error> {
    let (program, arguments) = words.split_first().ok_or_else(|| Error::Url("which program?".into()))?;
    let mut command = Command::new(program);
    command.args(arguments).envs(options.env.iter().map(|(name, value)| (name, value)));
    // Ctrl-C is for this program, which then ends the server in order.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let name = std::path::Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let live = Rc::clone(&around.live);
    let stderr = match options.quiet {
        true => Stderr::Keep,
        false => Stderr::Lines(Box::new(move |line| live.borrow_mut().said(&name, line))),
    };
    Child::spawn_with(command, profile, ChildOptions::new().options(limits).stderr(stderr))
}

fn reach<'m>(url: &str, options: &Options, limits: Limits, profile: &'m Profile<'m>) -> Result<Http<'m>, Error> {
    let mut http = HttpOptions::new().options(limits);
    for (name, value) in &options.headers {
        http = http.header(name, value);
    }
    Http::with(url, profile, http)
}

/// Tells the server what the user said.
fn answer(link: &mut Link<'_, '_>, waiting: &Waiting, said: &Said) -> Result<(), mcp_sansio::client::SendError> {
    match (waiting.kind, said) {
        (QuestionKind::Form, Said::Yes(content)) => {
            let content = Raw::parse(content.as_bytes()).unwrap_or(Raw::constant("{}"));
            link.reply(waiting.id, &Reply::accept(content))
        }
        (QuestionKind::Visit, Said::Yes(_)) => link.reply(waiting.id, &Reply::consent()),
        (QuestionKind::Form | QuestionKind::Visit, Said::No) => link.reply(waiting.id, &Reply::decline()),
        (QuestionKind::Form | QuestionKind::Visit, Said::Cancel) => link.reply(waiting.id, &Reply::cancel()),
        (_, Said::Yes(text)) => {
            link.reply(waiting.id, &Reply::sampled(Sampled::new("a person at a terminal", Content::text(text))))
        }
        (_, _) => link.refuse(waiting.id, &Refusal::refused()),
    }
}

/// The terminal, while the connection goes on.
struct Terminal<'s, 'm> {
    session: &'s mut Session<'m>,
    question: QuestionId,
    /// Nobody wants an answer any more.
    over: bool,
    broken: Option<Error>,
}

impl Console for Terminal<'_, '_> {
    fn say(&mut self, text: &str) {
        self.session.around.live.borrow_mut().print(text);
    }

    fn line(&mut self, prompt: &str) -> Option<String> {
        if self.broken.is_some() || self.over {
            return None;
        }
        self.say(prompt);
        loop {
            let typed = self.session.keyboard.line(GLANCE).map_err(Error::from);
            let stopped = self.session.around.stop.check().map_err(Error::from);
            match stopped.and(typed) {
                Ok(Some(line)) => {
                    if line.is_none() {
                        self.say("\n");
                    }
                    return line;
                }
                Ok(None) => {}
                Err(error) => {
                    self.say("\n");
                    self.broken = Some(error);
                    return None;
                }
            }
            if let Err(error) = self.session.client.turn(BLINK) {
                self.broken = Some(error);
                return None;
            }
            let withdrawn = self.session.client.handler().withdrawn.contains(&self.question);
            if withdrawn || !self.session.client.engine().is_connected() {
                self.over = true;
                return None;
            }
        }
    }
}
