//! The core's client and a [`Remote`] in one value: what drivers over HTTP share.

use mcp_sansio::Full;
use mcp_sansio::client::views::Tool;
use mcp_sansio::client::{Client, Engine, Event as Told, Handler, Link, Lost, Oddity};
use mcp_sansio::protocol::Method;
use mcp_sansio::records::Records;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::{Kind, Mark, Out, Sink};
use mcp_sansio::store::Store;

use super::params::{self, BadAnnotation};
use super::{BadHeader, Event, Listening, Remote, Why};

/// What else a driver is asked and shown.
pub trait Hooks {
    /// The server wants authorization: set headers and try again, or give up. This is where OAuth flows plug in.
    fn challenged(&mut self, challenge: &Challenge<'_>, headers: &mut Headers<'_>) -> Verdict {
        let _ = (challenge, headers);
        Verdict::GiveUp
    }

    /// A message was sent. Only if [`Web::trace`] was called.
    fn sent(&mut self, message: &[u8]) {
        let _ = message;
    }

    /// A message was received.
    fn received(&mut self, message: &[u8]) {
        let _ = message;
    }
}

/// No authorization, nothing shown.
impl Hooks for () {}

/// A server wants authorization.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Challenge<'c> {
    /// Which exchange waits, for [`Verdict::Later`].
    pub slot: usize,
    /// 401 or 403.
    pub status: u16,
    /// The value of `WWW-Authenticate`; empty if there was none.
    pub www_authenticate: &'c str,
    /// The server's URL.
    pub url: &'c str,
    /// How often this message was challenged before. After [`CHALLENGES`] times it is given up.
    pub tries: u8,
}

/// How often one message may be challenged.
pub const CHALLENGES: u8 = 3;

/// What to do about a [`Challenge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "now, later or never")]
pub enum Verdict {
    /// Send the message again, with the headers as they are now.
    Retry,
    /// There is no authorization to be had.
    GiveUp,
    /// It takes time: [`Web::retry`] or [`Web::give_up`] follows. The request's own time stands still meanwhile.
    Later,
}

/// The headers that go with every request.
pub struct Headers<'h>(&'h mut SetHeader<'h>);

/// Sets a header, or removes it.
type SetHeader<'h> = dyn FnMut(&str, Option<&str>) -> Result<(), BadHeader> + 'h;

impl Headers<'_> {
    /// Sets one.
    ///
    /// # Errors
    /// As [`Remote::set_header`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), BadHeader> {
        (self.0)(name, Some(value))
    }

    /// Removes one.
    pub fn remove(&mut self, name: &str) {
        let _ = (self.0)(name, None);
    }
}

impl core::fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Headers").finish_non_exhaustive()
    }
}

/// What went wrong last, for messages to people.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Fault<'f> {
    /// The request on the wire that it ended, if it was one.
    pub request: Option<u64>,
    /// What it was.
    pub why: Why,
    /// What the server said to it: where a redirect leads to, the start of an error's body, what authorization it
    /// wants.
    pub detail: &'f str,
}

/// How much of what a server says to a fault is kept.
const DETAIL: usize = 256;

/// Sessions that are lost in a row without an answer in between, before it is given up.
const SESSIONS: u8 = 3;

/// A client over HTTP: the core's client with at most `N` requests in flight over at most `S` connections. It does no
/// I/O: move bytes between sockets and slots of [`remote`](Web::remote), call [`run`](Web::run), wait for a socket or
/// [`next_deadline`](Web::next_deadline).
///
/// ```
/// use mcp_sansio::client::{Client, Event, Link, Profile};
/// use mcp_sansio_http::client::{Action, Config, Remote, Web};
///
/// # #[cfg(feature = "alloc")] {
/// let profile = Profile::new("demo", "1.0");
/// let remote = Remote::<2>::growing("http://localhost:8931/mcp", Config::DEFAULT)?;
/// let (mut held, mut inbox, mut outbox) = ([0; 512], [0; 2048], [0; 512]);
/// let client = Client::<4>::new(&profile).held(&mut held).timeout(10_000);
/// let mut web = Web::new(client, remote, &mut inbox, &mut outbox);
/// let mut revision = None;
/// let mut handler = |event: Event<'_>, _: &mut Link<'_, '_>| {
///     if let Event::Connected(connected) = event {
///         revision = Some(connected.revision.date());
///     }
/// };
///
/// web.client().connect();
/// while web.run(0, &mut handler, &mut ()) {} // writes the probe into a slot
/// let Some(Action::Connect(slot)) = web.remote().next_action() else { panic!() };
/// web.remote().connected(slot);
/// let request = web.remote().pending(slot); // write it to the socket
/// assert!(request.starts_with(b"POST /mcp HTTP/1.1\r\n"));
/// let n = request.len();
/// web.remote().sent(slot, n);
///
/// let body = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}"#;
/// let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
/// let answer = format!("{head}{}\r\n\r\n{body}", body.len()); // read from the socket
/// web.remote().space(slot)[..answer.len()].copy_from_slice(answer.as_bytes());
/// web.remote().filled(slot, answer.len());
/// while web.run(5, &mut handler, &mut ()) {}
/// assert_eq!(revision, Some("2026-07-28"));
/// # }
/// # Ok::<(), mcp_sansio_http::client::UrlError>(())
/// ```
pub struct Web<'m, const N: usize, const S: usize> {
    client: Client<'m, N>,
    port: Port<'m, S>,
    /// The message at hand: the engine reads it while it writes to the slots.
    inbox: Store<'m>,
    blocked: bool,
    ended: bool,
    sessions_lost: u8,
    /// When the last one was.
    session_lost: Millis,
    /// The slots whose challenged exchanges go on, once it is known what time it is: to be asked may have taken long.
    resumed: [bool; S],
    fault: Option<(Option<u64>, Why)>,
    detail: Text<DETAIL>,
}

/// Without the messages that go back and forth.
impl<const N: usize, const S: usize> core::fmt::Debug for Web<'_, N, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Web").field("client", &self.client).field("remote", &self.port.remote).finish_non_exhaustive()
    }
}

impl<'m, const N: usize, const S: usize> Web<'m, N, S> {
    /// A client and the server's place, over lent storage: `inbox` for the longest message that comes, `outbox` for
    /// answers and notifications while all connections are taken.
    pub fn new(
        client: Client<'m, N>,
        remote: Remote<'m, S>,
        inbox: impl Into<Store<'m>>,
        outbox: impl Into<Store<'m>>,
    ) -> Self {
        let port = Port {
            remote,
            outbox: Records::new(outbox.into()),
            shown: Records::new(Store::none()),
            mode: Mode::Idle,
            modern: false,
        };
        Web {
            client,
            port,
            inbox: inbox.into(),
            blocked: false,
            ended: false,
            sessions_lost: 0,
            session_lost: 0,
            resumed: [false; S],
            fault: None,
            detail: Text::NEW,
        }
    }

    /// The same with memory from the allocator.
    #[cfg(feature = "alloc")]
    pub fn growing(client: Client<'m, N>, remote: Remote<'m, S>) -> Self {
        Web::new(client, remote, Store::growing(usize::MAX), Store::growing(1 << 20))
    }

    /// Shows messages that are sent to [`Hooks::sent`]; `store` keeps them between two runs.
    pub fn trace(&mut self, store: impl Into<Store<'m>>) {
        self.port.shown = Records::new(store.into());
    }

    /// The client.
    pub fn client(&mut self) -> &mut Engine<'m> {
        &mut self.client
    }

    /// The client, to look at.
    pub fn engine(&self) -> &Engine<'m> {
        &self.client
    }

    /// The server's place: slots, headers.
    pub fn remote(&mut self) -> &mut Remote<'m, S> {
        &mut self.port.remote
    }

    /// The client together with its sink. [Tell](Engine::set_now) it the time before something is sent.
    pub fn link(&mut self) -> Link<'_, 'm> {
        self.port.modern = self.client.is_modern();
        Link { client: &mut self.client, out: &mut self.port }
    }

    /// Tells the time, takes at most one thing that has come, and writes what there is to say into slots. `true`: call it
    /// again, there may be more.
    pub fn run(&mut self, now: Millis, handler: &mut dyn Handler, hooks: &mut dyn Hooks) -> bool {
        self.port.remote.rebase(now);
        self.port.remote.expire(now);
        self.port.flush();
        self.client.set_now(now);
        for (slot, _) in self.resumed.iter_mut().map(core::mem::take).enumerate().filter(|(_, resumed)| *resumed) {
            if let Some(request) = self.port.remote.request(slot) {
                self.client.resume(request);
            }
            self.port.remote.retry(slot);
        }
        self.blocked = self.link().advance(now, handler).is_err();
        self.sweep();
        let taken = self.take(handler, hooks);
        self.port.remote.settled();
        self.port.show(hooks);
        taken
    }

    /// Closes exchanges that nobody waits for: what was cancelled or took too long, and the probe of a server that turned
    /// out to be an older one.
    fn sweep(&mut self) {
        let client = &self.client;
        self.port.remote.abandon_unless(|request| client.awaits(request));
    }

    fn take(&mut self, handler: &mut dyn Handler, hooks: &mut dyn Hooks) -> bool {
        let Some(event) = self.port.remote.next_event() else { return false };
        match event {
            Event::Message { request, bytes } => {
                let len = keep(&mut self.inbox, bytes);
                self.receive(request, len, handler, hooks);
            }
            Event::Failed { request, why, detail } => {
                if why != Why::GivenUp || !detail.is_empty() {
                    self.detail.set(detail);
                }
                self.fault = Some((request, why));
                self.failed(request, why);
            }
            Event::Challenge { slot, request, status, www_authenticate } => {
                // Whoever gives credentials has all the time there is.
                if let Some(request) = request {
                    self.client.pause(request);
                }
                self.detail.set(www_authenticate);
                let len = keep(&mut self.inbox, www_authenticate.as_bytes());
                self.challenge(slot, status, len.unwrap_or(0), hooks);
            }
            Event::Skipped { request, why, start } => {
                self.detail.set(core::str::from_utf8(start).unwrap_or(""));
                self.fault = Some((request, why));
                let oddity = if why == Why::TooLarge { Oddity::TooLong } else { Oddity::NoMessage };
                handler.event(Told::Ignored(oddity), &mut self.link());
            }
            Event::Ended => self.ended = true,
        }
        true
    }

    fn receive(&mut self, request: Option<u64>, len: Option<usize>, handler: &mut dyn Handler, hooks: &mut dyn Hooks) {
        self.port.modern = self.client.is_modern();
        if self.client.is_connected() && request.is_some() {
            self.sessions_lost = 0;
        }
        let message = len.and_then(|len| self.inbox.bytes_mut().get_mut(..len));
        let mut link = Link { client: &mut self.client, out: &mut self.port };
        let Some(message) = message else {
            if let Some(request) = request {
                link.client.lost(request, Lost::TooLarge);
            }
            return handler.event(Told::Ignored(Oddity::TooLong), &mut link);
        };
        hooks.received(message);
        let lists = request.and_then(|request| link.client.method_of(request)) == Some(Method::ToolsList);
        if lists && link.client.is_modern() {
            params::leave_out(message);
        }
        let mut done = 0;
        if link.receive(request, message, &mut done, handler).is_err() {
            // The server takes nothing from us, and so much waits for it that this answer finds no place.
            if let Some(request) = request {
                link.client.lost(request, Lost::NoRoom);
            }
            handler.event(Told::Ignored(Oddity::NoRoom), &mut link);
        }
    }

    fn failed(&mut self, request: Option<u64>, why: Why) {
        let lost = lost(why);
        // Several exchanges may tell it; a session that was given since is another one.
        let news = self.client.is_connected() && self.port.remote.session().is_none();
        if lost == Lost::SessionLost && news {
            // One that was there for a while was good for something.
            let site = &self.port.remote.site;
            let short = site.now.saturating_sub(self.session_lost) < site.config.retry_most;
            self.sessions_lost = if short { self.sessions_lost.saturating_add(1) } else { 1 };
            self.session_lost = site.now;
            if self.sessions_lost > SESSIONS {
                self.client.end_of_input();
            } else {
                self.client.reconnect(Lost::SessionLost);
            }
            return;
        }
        if let Some(request) = request {
            self.client.lost(request, lost);
        }
    }

    fn challenge(&mut self, slot: usize, status: u16, len: usize, hooks: &mut dyn Hooks) {
        let tries = self.port.remote.challenges(slot).saturating_sub(1);
        let text = self.inbox.bytes().get(..len).and_then(|bytes| core::str::from_utf8(bytes).ok());
        let mut url = Text::<1024>::NEW;
        let place = self.port.remote.url();
        for part in [if place.is_secure() { "https://" } else { "http://" }, place.authority(), place.target()] {
            url.add(part);
        }
        let challenge = Challenge { slot, status, www_authenticate: text.unwrap_or(""), url: url.as_str(), tries };
        let remote = &mut self.port.remote;
        let verdict = if tries >= CHALLENGES {
            Verdict::GiveUp
        } else {
            hooks.challenged(
                &challenge,
                &mut Headers(&mut |name, value| match value {
                    Some(value) => remote.set_header(name, value),
                    None => {
                        remote.remove_header(name);
                        Ok(())
                    }
                }),
            )
        };
        match verdict {
            Verdict::Retry => self.retry(slot),
            Verdict::GiveUp => self.give_up(slot),
            Verdict::Later => {}
        }
    }

    /// Has the next [`run`](Web::run) send the message of a challenged exchange again; see [`Verdict::Later`].
    pub fn retry(&mut self, slot: usize) {
        if let Some(resumed) = self.resumed.get_mut(slot) {
            *resumed = true;
        }
    }

    /// Gives a challenged exchange up.
    pub fn give_up(&mut self, slot: usize) {
        self.port.remote.give_up(slot);
    }

    /// What went wrong last.
    #[must_use]
    pub fn fault(&self) -> Option<Fault<'_>> {
        let (request, why) = self.fault?;
        Some(Fault { request, why, detail: self.detail.as_str() })
    }

    /// What is known about a loss that [`run`](Web::run) told last, besides the loss itself. `trouble` is what the driver
    /// knows of its connections.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn explain(&self, why: Lost, trouble: &str) -> alloc::string::String {
        use alloc::string::{String, ToString};
        let Some(fault) = self.fault().filter(|fault| lost(fault.why) == why) else { return String::new() };
        let what = match why {
            // Said already.
            Lost::Status(_) | Lost::SessionLost | Lost::Unauthorized => String::new(),
            _ => fault.why.to_string(),
        };
        let trouble = if matches!(why, Lost::Unreachable | Lost::Broken) { trouble } else { "" };
        let mut parts = alloc::vec::Vec::from([what.as_str(), fault.detail.trim(), trouble]);
        parts.retain(|part| !part.is_empty());
        parts.join(": ")
    }

    /// Whether the stream of a new legacy session for the server's own messages is still being opened. What a server asks
    /// it may ask there, so wait with the first request, but not for ever.
    #[must_use]
    pub fn is_settling(&self) -> bool {
        let legacy = self.client.revision().is_some_and(|revision| !revision.is_modern());
        // It is opened when the server has taken `notifications/initialized`.
        legacy && (self.port.remote.listening() == Listening::Opening || !self.port.remote.is_idle())
    }

    /// The tools that were left out of the lists that the server gave, and why: see [`excludes`](Web::excludes). As long as
    /// they are remembered, which [`Config::tools`](super::Config::tools) limits, calls of them fail as [`Lost::Excluded`].
    pub fn excluded(&self) -> impl Iterator<Item = (mcp_sansio::json::Text<'_>, BadAnnotation)> {
        self.port.remote.excluded()
    }

    /// Why a tool must be left out of what the server offers: under 2026-07-28, one with annotations that cannot be
    /// followed. The results of [`Request::list_tools`](mcp_sansio::client::Request::list_tools) come without such tools;
    /// those of raw requests come as they are.
    #[must_use]
    pub fn excludes(&self, tool: &Tool<'_>) -> Option<BadAnnotation> {
        let modern = self.client.revision().is_some_and(Revision::is_modern);
        params::check(tool.input_schema()).err().filter(|_| modern)
    }

    /// Ends the session. `true`: go on until [`is_over`](Web::is_over), but not for ever.
    pub fn end(&mut self) -> bool {
        self.ended = !self.port.remote.end_session();
        !self.ended
    }

    /// Whether the session has [ended](Web::end).
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended
    }

    /// When to [`run`](Web::run) again at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        // What is due and waits for a free slot is not helped by the time.
        let now = self.port.remote.site.now;
        let client = self.client.next_deadline().filter(|&due| !self.blocked || due > now);
        client.into_iter().chain(self.port.remote.next_deadline()).min()
    }
}

/// Copies into a store; how much, or `None` if it does not fit.
fn keep(store: &mut Store<'_>, bytes: &[u8]) -> Option<usize> {
    if !store.reach(bytes.len()) {
        return None;
    }
    for (to, from) in store.bytes_mut().iter_mut().zip(bytes) {
        *to = *from;
    }
    Some(bytes.len())
}

/// What a failed exchange means to the client.
#[must_use]
pub const fn lost(why: Why) -> Lost {
    match why {
        Why::Refused | Why::TimedOut => Lost::Unreachable,
        Why::Reset | Why::Broken => Lost::Broken,
        Why::Status { code, .. } | Why::Redirect(code) => Lost::Status(code),
        Why::SessionLost => Lost::SessionLost,
        Why::TooLarge | Why::NoRoom => Lost::TooLarge,
        Why::GivenUp => Lost::Unauthorized,
        Why::Excluded(_) => Lost::Excluded,
        Why::NotHttp | Why::Garbage | Why::ContentType | Why::Unanswered | Why::Endpoint => Lost::Invalid,
    }
}

/// The beginning of a text.
#[derive(Clone, Copy, Debug)]
struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    const NEW: Self = Text { bytes: [0; N], len: 0 };

    fn set(&mut self, text: &str) {
        self.len = 0;
        self.add(text);
    }

    fn add(&mut self, text: &str) {
        let place = self.bytes.get_mut(self.len..).unwrap_or(&mut []);
        for (to, from) in place.iter_mut().zip(text.as_bytes()) {
            *to = *from;
        }
        self.len = self.len.saturating_add(text.len()).min(N);
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or(&[]);
        // A character may be cut in two.
        bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }
}

/// Where the client's messages go: into slots, and if all are taken, answers and notifications into the outbox.
struct Port<'m, const S: usize> {
    remote: Remote<'m, S>,
    outbox: Records<'m>,
    /// Messages that were sent, to be shown.
    shown: Records<'m>,
    mode: Mode,
    modern: bool,
}

/// Where the message at hand goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Idle,
    Slot,
    /// To the outbox: at, and how much was written.
    Queue(usize, usize),
    /// Nowhere: there are no notifications over HTTP from 2026-07-28 on, closing the exchange cancels.
    Nowhere,
}

/// A mark before a message, while others wait in the outbox: there will be more room.
const BEFORE: usize = usize::MAX;

impl<const S: usize> Port<'_, S> {
    /// Sends what waited for a slot.
    fn flush(&mut self) {
        loop {
            let Some(first) = self.outbox.iter().next() else { return };
            if self.remote.begin(Kind::Notification).is_err() {
                return;
            }
            let at = first.at();
            match self.remote.put(first.data) {
                Ok(()) => self.remote.end(),
                Err(_) => self.remote.roll_back(Mark::new(0)),
            }
            self.outbox.remove(|record| record.at() == at);
        }
    }

    fn queue(&mut self) -> Result<(), Full> {
        let at = self.outbox.begin(0, 0, 0).map_err(|_| Full::Now)?;
        self.mode = Mode::Queue(at, 0);
        Ok(())
    }

    fn show(&mut self, hooks: &mut dyn Hooks) {
        if self.shown.used() == 0 || self.mode != Mode::Idle {
            return;
        }
        for message in self.shown.iter() {
            hooks.sent(message.data);
        }
        self.shown.remove(|_| true);
    }

    fn note(&mut self, bytes: &[u8]) {
        if self.shown.limit() > 0 {
            let last = self.shown.iter().last().map(|record| record.at());
            if let Some(at) = last {
                let _ = self.shown.extend(at, bytes);
            }
        }
    }
}

impl<const S: usize> Sink for Port<'_, S> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        match &mut self.mode {
            Mode::Idle => return Err(Full::Now),
            Mode::Slot => self.remote.put(bytes)?,
            Mode::Queue(at, len) => {
                self.outbox.extend(*at, bytes).map_err(|_| Full::Now)?;
                *len += bytes.len();
            }
            Mode::Nowhere => return Ok(()),
        }
        self.note(bytes);
        Ok(())
    }

    fn room(&self) -> usize {
        match self.mode {
            Mode::Idle | Mode::Slot => self.remote.room(),
            Mode::Queue(..) => self.outbox.limit().saturating_sub(self.outbox.used()),
            Mode::Nowhere => usize::MAX,
        }
    }
}

impl<const S: usize> Out for Port<'_, S> {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        match kind {
            Kind::Notification if self.modern => {
                self.mode = Mode::Nowhere;
                return Ok(());
            }
            Kind::Request => {
                self.remote.begin(kind)?;
                self.mode = Mode::Slot;
            }
            // Those that wait go first.
            _ if self.outbox.used() > 0 || self.remote.begin(kind).is_err() => self.queue()?,
            _ => self.mode = Mode::Slot,
        }
        if self.shown.limit() > 0 {
            let _ = self.shown.push(0, 0, 0, &[]);
        }
        Ok(())
    }

    fn end(&mut self) {
        if self.mode == Mode::Slot {
            self.remote.end();
        }
        self.mode = Mode::Idle;
    }

    fn mark(&self) -> Mark {
        match self.mode {
            Mode::Idle if self.outbox.used() > 0 => Mark::new(BEFORE),
            Mode::Idle | Mode::Nowhere => Mark::new(0),
            Mode::Slot => self.remote.mark(),
            Mode::Queue(_, len) => Mark::new(1 + len),
        }
    }

    fn roll_back(&mut self, mark: Mark) {
        let whole = matches!(mark.at(), 0 | BEFORE);
        match &mut self.mode {
            Mode::Slot => self.remote.roll_back(if whole { Mark::new(0) } else { mark }),
            Mode::Queue(at, _) if whole => self.outbox.drop_last(*at),
            Mode::Queue(at, len) => {
                *len = mark.at() - 1;
                self.outbox.shorten(*at, *len);
            }
            Mode::Idle | Mode::Nowhere => {}
        }
        if whole {
            self.mode = Mode::Idle;
        }
        if let Some(at) = self.shown.iter().last().map(|record| record.at()).filter(|_| whole) {
            self.shown.drop_last(at);
        }
    }

    fn hold(&mut self, on: bool) {
        self.remote.hold(on);
    }

    fn held(&self) -> bool {
        self.remote.held()
    }

    fn capacity(&self) -> usize {
        self.remote.capacity()
    }
}
