//! What adapters of hosts give to their applications: what a server answered, kept; why there is no answer; times and
//! limits; how its process is started and ended, and what it said on stderr; the messages as they pass by.

mod pages;
mod process;
mod stderr;
mod trace;

pub use pages::PageLimits;
pub use process::{ChildOptions, Ended, Gone, How, Patience};
pub use stderr::{Stderr, StderrLog};
pub use trace::{LineTrace, Way};

use std::borrow::ToOwned;
use std::boxed::Box;
use std::fmt;
use std::io;
use std::string::{String, ToString};
use std::time::Duration;
use std::vec;

use super::views::{Flaw, View};
use super::words::write_clean;
use super::{Client, Connected, Failure, Lost, Profile, RpcError, SendError, Unconnected};
use crate::json::{Raw, Refused, Text};
use crate::protocol::{Features, Method, meta};
use crate::revision::Revision;
use crate::server::Millis;
use crate::store::Store;

/// A result. It owns its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    method: Method,
    bytes: Box<[u8]>,
    retried: bool,
}

impl Answer {
    /// Keeps a result.
    #[must_use]
    pub fn new(method: Method, raw: Raw<'_>) -> Self {
        Answer { method, bytes: raw.as_bytes().into(), retried: false }
    }

    /// Of a request that was sent again on the way, or not: `retried` of [`Event::Done`](super::Event::Done).
    #[must_use]
    pub fn retried(self, retried: bool) -> Self {
        Answer { retried, ..self }
    }

    /// Whether the request was sent again on the way, with answers to the server's questions or with the state that the
    /// server gave. Such a result is not to be [cached](super::cache).
    #[must_use]
    pub const fn is_retried(&self) -> bool {
        self.retried
    }

    /// What was asked.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The result as it stands, a JSON object.
    #[must_use]
    pub fn raw(&self) -> Raw<'_> {
        reread(&self.bytes)
    }

    /// The result as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// A typed view of it, one of [`views`](crate::client::views).
    ///
    /// # Errors
    /// If the server left out something that the protocol requires.
    pub fn view<'a, V: View<'a>>(&'a self) -> Result<V, Flaw> {
        V::of(self.raw())
    }

    /// The result, read into a type. Members that the type does not know are skipped.
    ///
    /// # Errors
    /// If the result is not of that type.
    pub fn to<T: serde::de::DeserializeOwned>(&self) -> Result<T, Refused> {
        read_owned(self.raw())
    }

    /// A member of the result, read into a type; one that is missing reads as `null`.
    ///
    /// # Errors
    /// If it is not of that type.
    pub fn member<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, Refused> {
        read_owned(self.raw().get(name).unwrap_or(Raw::constant("null")))
    }

    /// Where the next page of a list begins.
    #[must_use]
    pub fn next_cursor(&self) -> Option<Text<'_>> {
        self.raw().get("nextCursor")?.text()
    }
}

fn read_owned<T: serde::de::DeserializeOwned>(raw: Raw<'_>) -> Result<T, Refused> {
    raw.to(&mut vec![0; raw.as_bytes().len()])
}

/// Bytes that were a value before.
fn reread(bytes: &[u8]) -> Raw<'_> {
    Raw::parse(bytes).unwrap_or(Raw::constant("null"))
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({})", self.as_str())
    }
}

/// Who the server is, and what it offers: the result of `server/discover` or `initialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Hello {
    revision: Revision,
    result: Box<[u8]>,
}

impl Hello {
    /// Keeps what was told when the connection was opened.
    #[must_use]
    pub fn new(connected: &Connected<'_>) -> Self {
        Hello { revision: connected.revision, result: connected.result.as_bytes().into() }
    }

    /// Of a server that was not asked.
    #[must_use]
    pub fn unasked(revision: Revision) -> Self {
        Hello { revision, result: (*b"null").into() }
    }

    /// The revision that is spoken.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// The whole result; `null` if nothing was asked.
    #[must_use]
    pub fn raw(&self) -> Raw<'_> {
        reread(&self.result)
    }

    /// Who the server says it is, for people only: `serverInfo`.
    #[must_use]
    pub fn server(&self) -> Option<Raw<'_>> {
        let result = self.raw();
        match self.revision.is_modern() {
            true => result.get("_meta")?.get(meta::SERVER_INFO),
            false => result.get("serverInfo"),
        }
    }

    /// The `capabilities` object.
    #[must_use]
    pub fn capabilities(&self) -> Option<Raw<'_>> {
        self.raw().get("capabilities")
    }

    /// What the server offers.
    #[must_use]
    pub fn features(&self) -> Features {
        self.capabilities().map_or(Features::NONE, Features::read)
    }

    /// What a model should know of the server.
    #[must_use]
    pub fn instructions(&self) -> Option<Text<'_>> {
        self.raw().get("instructions")?.text()
    }
}

impl fmt::Debug for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hello").field("revision", &self.revision).field("result", &self.raw().as_str()).finish()
    }
}

/// An error that the server answered with. It owns its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerError {
    /// Its code, see [`code`](crate::protocol::code).
    pub code: i32,
    /// What it says to people.
    pub message: String,
    /// What else it says, as JSON.
    pub data: Option<String>,
}

impl ServerError {
    fn new(error: &RpcError<'_>) -> Self {
        let data = error.data.map(|data| data.as_str().to_owned());
        ServerError { code: error.code, message: error.message.to_string(), data }
    }
}

/// Without control characters, on one line. [`message`](ServerError::message) is as the server wrote it.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server answered with error {}: ", self.code)?;
        write_clean(f, &self.message, false)
    }
}

impl std::error::Error for ServerError {}

/// A tool that a client over HTTP has left out of the server's list, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excluded {
    /// Its name.
    pub tool: String,
    /// What is wrong with it.
    pub why: String,
}

impl Excluded {
    /// That tool, for that reason.
    pub fn new(tool: impl Into<String>, why: impl Into<String>) -> Self {
        Excluded { tool: tool.into(), why: why.into() }
    }
}

/// Without control characters.
impl fmt::Display for Excluded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tool ")?;
        write_clean(f, &self.tool, false)?;
        write!(f, " is left out: {}", self.why)
    }
}

/// Why something did not work, and what can be done about it: that is what its text says.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with an error.
    Server(ServerError),
    /// There was no answer that counts.
    Lost {
        /// Why.
        why: Lost,
        /// What is known about it: how the server's process ended and what it said last, the HTTP status and the
        /// beginning of its body. Empty if nothing is.
        detail: String,
    },
    /// It was not sent.
    NotSent(SendError),
    /// There is no revision that both sides speak.
    NoCommonRevision,
    /// The server's program could not be started.
    Start {
        /// Which one.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The URL is none that a server can be at.
    Url(String),
    /// The operating system refused something that a client needs.
    Io(io::Error),
    /// A list went on for more pages than [`PageLimits::pages`] allows.
    TooManyPages,
    /// The pages of a list had more bytes than [`PageLimits::bytes`] allows.
    ListTooLarge,
    /// The pages of a list took more time than [`PageLimits::time`] allows.
    ListTooSlow,
}

impl Error {
    /// Of a request that was answered with an error, that error.
    #[must_use]
    pub const fn server(&self) -> Option<&ServerError> {
        match self {
            Error::Server(error) => Some(error),
            _ => None,
        }
    }

    /// Of a request without an answer, why.
    #[must_use]
    pub const fn lost(&self) -> Option<Lost> {
        match self {
            Error::Lost { why, .. } => Some(*why),
            _ => None,
        }
    }

    /// Keeps why a request has no result.
    #[must_use]
    pub fn failed(failure: &Failure<'_>) -> Self {
        match failure {
            Failure::Error(error) => Error::Server(ServerError::new(error)),
            Failure::Lost(why) => Error::lost_by(*why),
        }
    }

    /// Keeps why there is no connection.
    #[must_use]
    pub fn unconnected(unconnected: &Unconnected<'_>) -> Self {
        match unconnected {
            Unconnected::Error(error) => Error::Server(ServerError::new(error)),
            Unconnected::Lost(why) => Error::lost_by(*why),
            _ => Error::NoCommonRevision,
        }
    }

    /// There is no answer, and nothing more is known.
    #[must_use]
    pub const fn lost_by(why: Lost) -> Self {
        Error::Lost { why, detail: String::new() }
    }

    /// Adds what the transport knows, if nothing is known yet.
    pub fn explain(&mut self, with: impl FnOnce(Lost) -> String) {
        if let Error::Lost { why, detail } = self
            && detail.is_empty()
        {
            *detail = with(*why);
        }
    }
}

/// What can be done about it.
const fn advice(why: Lost) -> &'static str {
    match why {
        Lost::TimedOut => "give it more time, or see whether the server hangs",
        Lost::Unreachable => "is it running, and are host and port right?",
        Lost::Unauthorized => "give credentials that the server accepts",
        Lost::TooLarge => "raise the limit on messages, or ask for less",
        Lost::Undeclared => "declare the capability in the profile, and answer the question",
        Lost::NoRoom => "raise the limit on what is held",
        _ => "",
    }
}

/// Without control characters; what a process wrote to stderr may have several lines.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Server(error) => error.fmt(f),
            Error::Lost { why, detail } => {
                why.fmt(f)?;
                for more in [detail.as_str(), advice(*why)] {
                    if !more.is_empty() {
                        f.write_str("; ")?;
                        write_clean(f, more, true)?;
                    }
                }
                Ok(())
            }
            Error::NotSent(error) => write!(f, "not sent: {error}"),
            Error::NoCommonRevision => {
                f.write_str("the server speaks none of the revisions that this client may speak")
            }
            Error::Start { program, error } => {
                let advice = match error.kind() {
                    std::io::ErrorKind::PermissionDenied => "is it a program, and may it be executed?",
                    _ => "is it installed, and in PATH?",
                };
                write!(f, "cannot start {program:?}: {error}; {advice}")
            }
            Error::Url(why) => write_clean(f, why, false),
            Error::Io(error) => error.fmt(f),
            Error::TooManyPages => f.write_str("the list does not end: the server gives cursor after cursor"),
            Error::ListTooLarge => f.write_str("the list is larger than the limit; raise it, or take fewer pages"),
            Error::ListTooSlow => f.write_str("the list took too long; give it more time, or take fewer pages"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Server(error) => Some(error),
            Error::Lost { why, .. } => Some(why),
            Error::NotSent(error) => Some(error),
            Error::Start { error, .. } | Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        Error::NotSent(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

/// Times and limits of a client, whatever its transport.
///
/// ```
/// use std::time::Duration;
/// use mcp_sansio::client::owned::Options;
/// let options = Options::new().timeout(Duration::from_secs(10)).message(1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Options {
    timeout: Option<Duration>,
    longest: Duration,
    probe: Duration,
    rounds: u8,
    message: usize,
    held: usize,
}

impl Options {
    /// The defaults.
    pub const fn new() -> Self {
        let (timeout, probe) = (Some(Duration::from_secs(60)), Duration::from_secs(5));
        Options { timeout, longest: Duration::from_secs(3600), probe, rounds: 16, message: 16 << 20, held: 16 << 20 }
    }

    /// How long a request may take that does not say otherwise; a minute.
    pub const fn timeout(self, time: Duration) -> Self {
        Options { timeout: Some(time), ..self }
    }

    /// How long a request may take in all whose time each progress report begins again, if it does not say otherwise; an
    /// hour.
    pub const fn at_most(self, time: Duration) -> Self {
        Options { longest: time, ..self }
    }

    /// Requests may take for ever.
    pub const fn patient(self) -> Self {
        Options { timeout: None, ..self }
    }

    /// How long to wait for an answer to the first message before the server counts as one of the older revisions; 5
    /// seconds.
    pub const fn probe_timeout(self, time: Duration) -> Self {
        Options { probe: time, ..self }
    }

    /// How many times a server may ask back for one request; 16. See [`Client::rounds`].
    pub const fn rounds(self, most: u8) -> Self {
        Options { rounds: most, ..self }
    }

    /// Bytes of the longest message that is taken; 16 MiB.
    pub const fn message(self, bytes: usize) -> Self {
        Options { message: bytes, ..self }
    }

    /// Bytes of what is held to be sent again: params of calls that may be asked back for, answers; 16 MiB.
    pub const fn held(self, bytes: usize) -> Self {
        Options { held: bytes, ..self }
    }

    /// Bytes of the longest message that is taken.
    #[must_use]
    pub const fn message_limit(&self) -> usize {
        self.message
    }

    /// A client with these times and limits.
    #[must_use]
    pub fn engine<'m, const N: usize>(&self, profile: &'m Profile<'m>) -> Client<'m, N> {
        let millis = |time: Duration| Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX / 4);
        let client = Client::new(profile)
            .held(Store::growing(self.held))
            .probe_timeout(Some(millis(self.probe)))
            .at_most(millis(self.longest))
            .rounds(self.rounds);
        match self.timeout {
            Some(time) => client.timeout(millis(time)),
            None => client,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}
