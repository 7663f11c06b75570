//! Trying a service out in memory: no process, no clock, input cut wherever it hurts.
//!
//! ```
//! use mcp_sansio::service::{Call, Outcome, Service, Tool};
//! use mcp_sansio::testing::{Conversation, Cut};
//!
//! fn hello(_: &mut (), call: &mut Call<'_>) -> Outcome {
//!     call.text("hello")
//! }
//! static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello)];
//!
//! let service = Service::new("greeter", "1.0").tools(&TOOLS);
//! for cut in [Cut::Whole, Cut::Bytes, Cut::Random(7)] {
//!     let mut conversation = Conversation::new(&service, ()).cut(cut);
//!     conversation.initialize("2025-06-18");
//!     let replies = conversation.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}"#);
//!     assert!(replies[0].contains(r#""text":"hello""#));
//!     assert!(conversation.finish().is_empty());
//! }
//! ```

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::client;
use crate::server::{Change, Limits, Millis, Progress, SendError, Token, Told};
use crate::service::{Call, Complete, Get, Other, Outcome, Read, Service};
use crate::session::{Next, Session};
use crate::sink::Lines;

/// How the input reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// Whole lines.
    Whole,
    /// Byte by byte.
    Bytes,
    /// In pieces of so many bytes.
    Pieces(usize),
    /// In pieces of any size, the same ones for the same seed.
    Random(u64),
}

/// A client and a service in one place: say a line, get the lines that come back.
#[derive(Debug)]
pub struct Conversation<'s, S: 'static> {
    service: &'s Service<'s, S>,
    state: S,
    session: Session<'static, Lines<Vec<u8>>, 16>,
    rhythm: Rhythm,
    now: Millis,
    received: Vec<u8>,
}

/// Turns of the loop after which a session that asks for room again and again counts as spinning.
const TURNS: usize = 100_000;

impl<'s, S> Conversation<'s, S> {
    /// Nothing has been said.
    #[must_use]
    pub fn new(service: &'s Service<'s, S>, state: S) -> Self {
        let session = Session::growing(Limits::default(), Lines::new(Vec::new()));
        Conversation { service, state, session, rhythm: Rhythm::new(Cut::Whole), now: 0, received: Vec::new() }
    }

    /// Cuts the input.
    #[must_use]
    pub fn cut(mut self, cut: Cut) -> Self {
        self.rhythm = Rhythm::new(cut);
        self
    }

    /// Opens it as a client of a legacy revision that can be asked everything; the answer to `initialize`, id 1.
    pub fn initialize(&mut self, revision: &str) -> String {
        let answer = self.say(&format!(
            concat!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{}","#,
                r#""capabilities":{{"sampling":{{}},"elicitation":{{"form":{{}},"url":{{}}}},"roots":{{}}}},"#,
                r#""clientInfo":{{"name":"test","version":"1"}}}}}}"#
            ),
            revision
        ));
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer.into_iter().next().unwrap_or_default()
    }

    /// Says one line, without its newline; the lines that come back.
    pub fn say(&mut self, line: &str) -> Vec<String> {
        let bytes = [line.as_bytes(), b"\n"].concat();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            self.work();
            let wanted = self.rhythm.piece(rest.len());
            let space = self.session.space();
            let n = space.len().min(wanted).min(rest.len());
            let (now, later) = rest.split_at_checked(n).unwrap_or((rest, &[]));
            crate::sink::copy(space, now);
            self.session.filled(n);
            rest = later;
        }
        self.work();
        self.take()
    }

    /// Lets time pass; the lines that come because of it.
    pub fn wait(&mut self, millis: Millis) -> Vec<String> {
        self.now += millis;
        self.session.expire(self.now);
        self.work();
        self.take()
    }

    /// Tells that something has changed; the lines that come because of it.
    pub fn publish(&mut self, change: Change<'_>) -> Vec<String> {
        self.session.publish(change);
        self.work();
        self.take()
    }

    /// Answers a call that was put off; the lines that come because of it.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer(
        &mut self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> Outcome,
    ) -> Result<Vec<String>, SendError> {
        self.session.answer(self.service, &mut self.state, token, answer)?;
        self.work();
        Ok(self.take())
    }

    /// Answers a read of a resource that was put off; the lines that come because of it.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_read(
        &mut self,
        token: Token,
        uri: &str,
        answer: impl FnOnce(&mut S, &mut Read<'_>) -> Outcome,
    ) -> Result<Vec<String>, SendError> {
        self.session.answer_read(self.service, &mut self.state, token, uri, answer)?;
        self.work();
        Ok(self.take())
    }

    /// Answers a prompt that was put off; the lines that come because of it.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_prompt(
        &mut self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Get<'_>) -> Outcome,
    ) -> Result<Vec<String>, SendError> {
        self.session.answer_prompt(self.service, &mut self.state, token, answer)?;
        self.work();
        Ok(self.take())
    }

    /// Answers a completion that was put off; the lines that come because of it.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_complete(
        &mut self,
        token: Token,
        value: &str,
        answer: impl FnOnce(&mut S, &mut Complete<'_>) -> Outcome,
    ) -> Result<Vec<String>, SendError> {
        self.session.answer_complete(self.service, &mut self.state, token, value, answer)?;
        self.work();
        Ok(self.take())
    }

    /// Answers a request that the protocol does not know and that was put off; the lines that come because of it.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_other(
        &mut self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Other<'_>) -> Outcome,
    ) -> Result<Vec<String>, SendError> {
        self.session.answer_other(self.service, &mut self.state, token, answer)?;
        self.work();
        Ok(self.take())
    }

    /// Resumes a request that its handler has suspended; the lines that come because of it.
    ///
    /// # Errors
    /// As [`Session::resume`].
    pub fn resume(&mut self, token: Token) -> Result<Vec<String>, SendError> {
        self.session.resume(token)?;
        self.work();
        Ok(self.take())
    }

    /// Tells how far a call is that was put off.
    pub fn progress(&mut self, token: Token, progress: Progress<'_>) -> Told {
        self.session.progress(token, progress)
    }

    /// The client goes, at whatever byte, and another one comes over the same wire: [`Session::new_peer`].
    pub fn new_peer(&mut self) {
        self.session.new_peer();
        self.received.clear();
    }

    /// Ends the input; the last lines. What is still put off is answered with an error.
    pub fn finish(&mut self) -> Vec<String> {
        self.session.end_of_input();
        self.work();
        let _ = self.session.abandon();
        self.work();
        self.take()
    }

    /// The state of the handlers.
    pub fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// # Panics
    /// If the session does not come to rest.
    fn work(&mut self) {
        for _ in 0..TURNS {
            let next = self.session.run(self.service, &mut self.state);
            self.received.extend_from_slice(self.session.pending());
            let sent = self.session.pending().len();
            self.session.sent(sent);
            if next == Next::Read {
                return;
            }
        }
        panic!("the session does not come to rest");
    }

    fn take(&mut self) -> Vec<String> {
        let received = core::mem::take(&mut self.received);
        let lines = received.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }
}

/// The sizes of pieces, one after the other.
#[derive(Debug)]
struct Rhythm {
    cut: Cut,
    seed: u64,
}

impl Rhythm {
    const fn new(cut: Cut) -> Self {
        let seed = if let Cut::Random(seed) = cut { seed | 1 } else { 1 };
        Rhythm { cut, seed }
    }

    /// The size of the next piece of `left` bytes.
    fn piece(&mut self, left: usize) -> usize {
        match self.cut {
            Cut::Whole => left,
            Cut::Bytes => 1,
            Cut::Pieces(size) => size.max(1),
            Cut::Random(_) => 1 + (self.random() % 64) as usize,
        }
    }

    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }
}

/// A client and a service joined in memory: bytes go back and forth in pieces, and time passes on demand.
///
/// ```
/// use mcp_sansio::client::{Event, Link, Profile, Request};
/// use mcp_sansio::service::{Call, Outcome, Service, Tool};
/// use mcp_sansio::testing::{Cut, Pair};
///
/// fn hello(_: &mut (), call: &mut Call<'_>) -> Outcome {
///     call.text("hello")
/// }
/// static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello)];
///
/// let service = Service::new("greeter", "1.0").tools(&TOOLS);
/// let profile = Profile::new("editor", "1.0");
/// let mut pair = Pair::new(&profile, &service, ()).cut(Cut::Random(7));
/// let mut heard = Vec::new();
/// pair.client().connect();
/// pair.run(&mut |event: Event<'_>, link: &mut Link<'_, '_>| match event {
///     Event::Connected(_) => drop(link.send(&Request::call("hello"))),
///     Event::Done { outcome: Ok(result), .. } => heard.push(result.to_string()),
///     other => panic!("{other:?}"),
/// });
/// assert!(heard[0].contains(r#""text":"hello""#));
/// ```
#[derive(Debug)]
pub struct Pair<'p, S: 'static> {
    service: &'p Service<'p, S>,
    state: S,
    server: Session<'static, Lines<Vec<u8>>, 16>,
    client: client::Session<'p, Lines<Vec<u8>>, 16>,
    rhythm: Rhythm,
    now: Millis,
    moved: usize,
    /// The connection breaks when so many bytes have moved.
    breaks_at: usize,
    broken: bool,
}

/// The longest message that either side of a [`Pair`] takes.
const MESSAGE: usize = 16 << 20;

impl<'p, S> Pair<'p, S> {
    /// Both ends of a connection that nothing has come over yet. Say how it opens: `pair.client().connect()`.
    #[must_use]
    pub fn new(profile: &'p client::Profile<'p>, service: &'p Service<'p, S>, state: S) -> Self {
        Pair {
            service,
            state,
            server: Session::growing(Limits::default(), Lines::new(Vec::new())),
            client: client::Session::growing(profile, MESSAGE, Lines::new(Vec::new())),
            rhythm: Rhythm::new(Cut::Whole),
            now: 0,
            moved: 0,
            breaks_at: usize::MAX,
            broken: false,
        }
    }

    /// Cuts what goes both ways. At random, the direction of each piece is random too.
    #[must_use]
    pub fn cut(mut self, cut: Cut) -> Self {
        self.rhythm = Rhythm::new(cut);
        self
    }

    /// The connection breaks when so many bytes have moved, both ways counted together.
    #[must_use]
    pub const fn breaks_at(mut self, bytes: usize) -> Self {
        self.breaks_at = bytes;
        self
    }

    /// How many bytes have moved.
    #[must_use]
    pub const fn moved(&self) -> usize {
        self.moved
    }

    /// Whether the connection is broken.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.broken
    }

    /// The client.
    pub fn client(&mut self) -> &mut client::Engine<'p> {
        self.client.client()
    }

    /// The client with the way to the server, to send and to answer.
    pub fn link(&mut self) -> client::Link<'_, 'p> {
        self.client.link()
    }

    /// The state of the handlers.
    pub fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// Moves one piece; `false` if both ends are at rest.
    pub fn step(&mut self, handler: &mut dyn client::Handler) -> bool {
        self.work(handler);
        let (up, down) = (!self.client.pending().is_empty(), !self.server.pending().is_empty());
        let random = matches!(self.rhythm.cut, Cut::Random(_)) && self.rhythm.random() & 64 != 0;
        let moved = if up && !(down && random) { self.upwards() } else { self.downwards() };
        self.moved += moved;
        if self.moved >= self.breaks_at && !self.broken {
            self.break_off();
        }
        self.work(handler);
        moved > 0
    }

    /// Moves pieces until both ends are at rest.
    ///
    /// # Panics
    /// If they never are.
    pub fn run(&mut self, handler: &mut dyn client::Handler) {
        for _ in 0..TURNS {
            if !self.step(handler) {
                return;
            }
        }
        panic!("client and server do not come to rest");
    }

    /// Lets time pass, and whatever comes of it.
    pub fn wait(&mut self, millis: Millis, handler: &mut dyn client::Handler) {
        self.now += millis;
        self.run(handler);
    }

    /// Tells the server that something has changed.
    pub fn publish(&mut self, change: Change<'_>) {
        self.server.publish(change);
    }

    /// Tells how far a call is that was put off.
    pub fn progress(&mut self, token: Token, progress: Progress<'_>) -> Told {
        self.server.progress(token, progress)
    }

    /// Answers a call that was put off.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer(
        &mut self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.server.answer(self.service, &mut self.state, token, answer)
    }

    /// Answers a read of a resource that was put off.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_read(
        &mut self,
        token: Token,
        uri: &str,
        answer: impl FnOnce(&mut S, &mut Read<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.server.answer_read(self.service, &mut self.state, token, uri, answer)
    }

    /// Answers a prompt that was put off.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_prompt(
        &mut self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Get<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.server.answer_prompt(self.service, &mut self.state, token, answer)
    }

    /// Answers a completion that was put off.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_complete(
        &mut self,
        token: Token,
        value: &str,
        answer: impl FnOnce(&mut S, &mut Complete<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.server.answer_complete(self.service, &mut self.state, token, value, answer)
    }

    /// Answers a request that the protocol does not know and that was put off.
    ///
    /// # Errors
    /// As [`Service::answer`].
    pub fn answer_other(
        &mut self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Other<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        self.server.answer_other(self.service, &mut self.state, token, answer)
    }

    /// Resumes a request that its handler has suspended.
    ///
    /// # Errors
    /// As [`Session::resume`].
    pub fn resume(&mut self, token: Token) -> Result<(), SendError> {
        self.server.resume(token)
    }

    /// Breaks the connection: what is under way is lost, and both ends see the end of their input.
    pub fn break_off(&mut self) {
        self.broken = true;
        self.drop_pending();
        self.client.end_of_input();
        self.server.end_of_input();
    }

    /// Breaks the connection and opens another one, to a server that has just been started; listens live on.
    pub fn reconnect(&mut self) {
        self.drop_pending();
        (self.broken, self.breaks_at) = (false, usize::MAX);
        self.server = Session::growing(Limits::default(), Lines::new(Vec::new()));
        self.client.reconnect(client::Lost::Closed);
    }

    fn drop_pending(&mut self) {
        let (up, down) = (self.client.pending().len(), self.server.pending().len());
        self.client.sent(up);
        self.server.sent(down);
    }

    fn work(&mut self, handler: &mut dyn client::Handler) {
        // Their sinks are never full, so they go on until they need input.
        let _ = self.client.run(self.now, handler);
        self.server.expire(self.now);
        let _ = self.server.run(self.service, &mut self.state);
        if self.broken {
            self.drop_pending();
        }
    }

    /// A piece of what the client says.
    fn upwards(&mut self) -> usize {
        let (pending, space) = (self.client.pending(), self.server.space());
        let most = pending.len().min(space.len()).min(self.breaks_at - self.moved);
        let n = self.rhythm.piece(most).min(most);
        crate::sink::copy(space, pending.get(..n).unwrap_or(&[]));
        self.server.filled(n);
        self.client.sent(n);
        n
    }

    /// A piece of what the server says.
    fn downwards(&mut self) -> usize {
        let (pending, space) = (self.server.pending(), self.client.space());
        let most = pending.len().min(space.len()).min(self.breaks_at - self.moved);
        let n = self.rhythm.piece(most).min(most);
        crate::sink::copy(space, pending.get(..n).unwrap_or(&[]));
        self.client.filled(n);
        self.server.sent(n);
        n
    }
}
