//! One connection with what goes over it: the bytes, and what is done with them next.

use core::fmt;
use core::ops::Range;

use mcp_sansio::Full;
use mcp_sansio::frame::sse::Decoder;
use mcp_sansio::json::Raw;
use mcp_sansio::rpc::{Envelope, Shape};
use mcp_sansio::server::Millis;
use mcp_sansio::sink::{Sink, Slice, Storage};
use mcp_sansio::store::Store;

use super::config::Config;
use super::event::{Action, Why};
use super::head::{self, Verb};
use super::input::Input;
use super::params::BadAnnotation;
use super::site::Site;

/// Storage for one connection and its exchange.
pub struct Slot<'m> {
    pub(crate) input: Input<'m>,
    /// Events; or a body, or a text of the head.
    pub(crate) message: Decoder<'m>,
    /// How much of a body or text is in the store of `message`.
    pub(crate) kept: usize,
    output: Store<'m>,
    body: usize,
    head: usize,
    /// What of both is to be sent, and how much of that was.
    total: usize,
    sent: usize,
    pub(crate) link: Link,
    /// The connection is to be closed.
    close: bool,
    /// The connection has carried an exchange before this one.
    pub(crate) used: bool,
    /// The server answered something in this exchange.
    pub(crate) heard: bool,
    pub(crate) gone: Option<Gone>,
    pub(crate) phase: Phase,
    pub(crate) ready: Option<Ready>,
    pub(crate) after: After,
    pub(crate) task: Task,
    pub(crate) reply: Answer,
    pub(crate) deadline: Option<Millis>,
    /// Its request was begun since the time was told last.
    pub(crate) fresh: bool,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Down,
    /// The driver will be told to connect.
    Wanted,
    Dialing,
    Up,
}

/// How a connection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// There never was one.
    Refused,
    /// The server closed it.
    Clean,
    Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Free,
    /// A message is being written.
    Writing,
    /// Nothing goes over the connection for now.
    Wait(Wait),
    /// The request goes out, the head of the answer is awaited.
    Head,
    Body(Part),
    /// The exchange is over but for the rest of the body.
    Drain,
    /// It is over as soon as its event was told.
    Over,
}

/// What an exchange waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// To know where to post to.
    Endpoint,
    /// The same; if it does not turn up, this status was the answer.
    Fallback,
    /// The answer to `notifications/initialized`: a server may refuse requests that overtake it.
    Greeting,
    /// The deadline; then the stream is resumed.
    Later,
    /// The caller.
    Caller,
    /// The answer on the stream of the old transport.
    Answer,
}

/// What is done with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Json,
    Stream,
    Error,
    Skip,
}

/// An event to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// The message at hand in the stream.
    Item {
        request: Option<u64>,
        /// It is the response of this one.
        answers: Option<u64>,
    },
    /// A body.
    Body,
    Failed(Why),
    Challenge(u16),
    Skipped(Why),
    Ended,
}

/// What follows when an event was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Continue,
    /// The exchange is over, though not its body.
    Drain,
    Release,
    /// The caller decides.
    Hold,
    Fail(Why),
}

/// What a slot is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Request,
    /// A notification or a response.
    Tell,
    /// The stream of a legacy session.
    Listen,
    /// The stream of the old transport.
    OldStream,
    /// The end of a session.
    Delete,
}

/// Methods that concern the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Initialize,
    Initialized,
    /// A list of tools; whether it is the first page.
    Tools(bool),
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) what: What,
    pub(crate) request: Option<u64>,
    pub(crate) topic: Topic,
    pub(crate) modern: bool,
    /// Doing it twice is as good as once.
    pub(crate) idempotent: bool,
    /// It is posted to the endpoint of the old transport.
    pub(crate) old: bool,
    /// Its stream is taken up again by GET.
    pub(crate) resume: bool,
    pub(crate) retried: bool,
    pub(crate) redirects: u8,
    pub(crate) tries: u8,
    /// How often the server wanted authorization, since it last wanted none.
    pub(crate) challenges: u8,
    /// There was a stream.
    pub(crate) was_open: bool,
    /// Since when there is one.
    pub(crate) opened: Option<Millis>,
}

impl Task {
    pub(crate) const NONE: Task = Task {
        what: What::Tell,
        request: None,
        topic: Topic::Other,
        modern: false,
        idempotent: false,
        old: false,
        resume: false,
        retried: false,
        redirects: 0,
        tries: 0,
        challenges: 0,
        was_open: false,
        opened: None,
    };

    /// Whether it is sent by POST.
    pub(crate) const fn posts(&self) -> bool {
        matches!(self.what, What::Request | What::Tell) && !self.resume
    }

    /// Whether it belongs to the legacy session.
    pub(crate) fn in_session(&self) -> bool {
        !self.modern && self.topic != Topic::Initialize && self.what != What::OldStream
    }
}

/// What of a response's head is needed later.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) keep: bool,
    pub(crate) retry_after: Option<u32>,
}

/// Room that is left for the head.
const HEAD: usize = 1024;

/// The default limit on messages.
#[cfg(feature = "alloc")]
pub(crate) const MOST: usize = 16 << 20;

/// Without the bytes that go over it: headers may be secret.
impl fmt::Debug for Slot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("link", &self.link).field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl<'m> Slot<'m> {
    /// Over lent storage: `input` takes at least a response's head, `message` the largest message that comes in, and
    /// `output` the largest that goes out together with its head (1 KiB, more if long headers are set).
    pub fn new(input: impl Into<Store<'m>>, message: impl Into<Store<'m>>, output: impl Into<Store<'m>>) -> Self {
        Slot {
            input: Input::new(input.into()),
            message: Decoder::new(message),
            kept: 0,
            output: output.into(),
            body: 0,
            head: 0,
            total: 0,
            sent: 0,
            link: Link::Down,
            close: false,
            used: false,
            heard: false,
            gone: None,
            phase: Phase::Free,
            ready: None,
            after: After::Continue,
            task: Task::NONE,
            reply: Answer { status: 0, keep: false, retry_after: None },
            deadline: None,
            fresh: false,
        }
    }

    /// With memory from the allocator, for messages of at most `limit` bytes.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn growing(limit: usize) -> Self {
        let room = limit.saturating_add(1 << 16);
        Self::new(Store::growing(1 << 16), Store::growing(limit), Store::growing(room))
    }

    // The message that goes out.

    pub(crate) fn begin(&mut self) {
        self.phase = Phase::Writing;
        (self.body, self.head, self.total, self.sent) = (0, 0, 0, 0);
        self.task = Task::NONE;
    }

    pub(crate) fn unbegin(&mut self, site: &Site<'_>) {
        self.phase = Phase::Free;
        self.body = 0;
        if self.link == Link::Up {
            self.deadline = Some(site.now.saturating_add(site.config.idle_time));
        }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if self.room() < bytes.len() || !self.output.reach(self.body.saturating_add(bytes.len())) {
            return Err(Full::Now);
        }
        let place = self.output.bytes_mut().get_mut(self.body..).unwrap_or(&mut []);
        for (to, from) in place.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.body += bytes.len();
        Ok(())
    }

    pub(crate) fn room(&self) -> usize {
        self.capacity().saturating_sub(self.body)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.output.limit().saturating_sub(HEAD)
    }

    pub(crate) const fn written(&self) -> usize {
        self.body
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.body = self.body.min(len);
    }

    /// Finds out what the message is that was written.
    pub(crate) fn classify(&mut self) {
        let body = self.output.bytes().get(..self.body).unwrap_or(&[]);
        let mut task = Task::NONE;
        if let Ok(envelope) = Envelope::parse(body) {
            task.modern = envelope.meta.version.is_some();
            match envelope.shape() {
                Shape::Request { id, method } => {
                    task.what = What::Request;
                    task.request = id.u64();
                    if method.is("initialize") {
                        task.topic = Topic::Initialize;
                    } else if method.is("tools/list") {
                        task.topic = Topic::Tools(envelope.members.cursor.is_none());
                    }
                    let safe = ["ping", "server/discover", "resources/read", "prompts/get", "completion/complete"];
                    let list = method.raw().ends_with(b"/list");
                    task.idempotent = list || safe.iter().any(|name| method.is(name));
                }
                Shape::Notification { method } if method.is("notifications/initialized") => {
                    task.topic = Topic::Initialized;
                }
                _ => {}
            }
        }
        // Twice told is once told, and of two responses to one request the second is ignored.
        task.idempotent |= task.what == What::Tell;
        self.task = task;
    }

    /// Why the tool must not be called that the message calls.
    pub(crate) fn excluded(&self, site: &Site<'_>) -> Option<BadAnnotation> {
        let body = self.output.bytes().get(..self.body).filter(|_| self.task.modern && site.tools.excludes_any())?;
        let envelope = Envelope::parse(body).ok()?;
        envelope.method?.text().filter(|method| method.is("tools/call"))?;
        site.tools.excludes(envelope.members.name?.text()?)
    }

    /// Writes the request and sends it, over the connection there is or a new one.
    pub(crate) fn start(&mut self, at: usize, site: &Site<'_>) -> Result<(), Full> {
        self.write_head(at, site)?;
        (self.sent, self.heard, self.fresh) = (0, false, true);
        (self.ready, self.phase) = (None, Phase::Head);
        self.used = self.link == Link::Up && !self.close;
        if self.used {
            self.deadline = Some(site.now.saturating_add(site.config.write_time));
        } else {
            if self.link != Link::Down {
                self.hang_up();
            }
            self.input.clear();
            (self.link, self.gone) = (Link::Wanted, None);
            self.deadline = Some(site.now.saturating_add(site.config.connect_time));
        }
        Ok(())
    }

    fn write_head(&mut self, at: usize, site: &Site<'_>) -> Result<(), Full> {
        // The message goes to the front, then the head is written behind it, then they change places.
        let (head, body) = (self.head, self.body);
        if head > 0 && head + body <= self.output.bytes().len() {
            self.output.bytes_mut().copy_within(head..head + body, 0);
        }
        self.head = 0;
        let mut room = HEAD / 2;
        self.head = loop {
            let size = body.saturating_add(room);
            let last = !self.output.reach(size);
            if last {
                self.output.reach(self.output.limit());
            }
            let bytes = self.output.bytes_mut();
            let (message, free) = bytes.split_at_mut_checked(body).ok_or(Full::Never)?;
            let mut out = Bare(Slice::new(free));
            let envelope = if self.task.modern { Envelope::parse(message).ok() } else { None };
            let session = self.task.in_session();
            let posts = self.task.posts();
            let target =
                if posts || self.task.what == What::Delete { site.post_target(at) } else { site.stream_target(at) };
            let verb = match self.task.what {
                What::Delete => Verb::Delete,
                _ if posts => Verb::Post(body),
                _ => Verb::Get(self.message.last_id()),
            };
            match head::write(verb, target, session, envelope.as_ref(), site, &mut out) {
                Ok(()) => break out.0.bytes().len(),
                Err(full) if last => return Err(full),
                Err(_) => room = room.saturating_mul(2),
            }
        };
        let end = body + self.head;
        if let Some(all) = self.output.bytes_mut().get_mut(..end)
            && body <= all.len()
        {
            all.rotate_left(body);
        }
        self.total = if self.task.posts() { end } else { self.head };
        Ok(())
    }

    // The driver's side.

    pub(crate) fn action(&mut self, at: usize) -> Option<Action> {
        if core::mem::take(&mut self.close) {
            return Some(Action::Close(at));
        }
        if self.link == Link::Wanted {
            self.link = Link::Dialing;
            return Some(Action::Connect(at));
        }
        None
    }

    pub(crate) fn connected(&mut self, now: Millis, config: &Config) {
        if self.link == Link::Dialing {
            self.link = Link::Up;
            self.deadline = Some(now.saturating_add(config.write_time));
        }
    }

    pub(crate) fn gone(&mut self, clean: bool) {
        let gone = match self.link {
            Link::Up if clean => Gone::Clean,
            Link::Up => Gone::Cut,
            Link::Dialing => Gone::Refused,
            Link::Down | Link::Wanted => return,
        };
        self.link = Link::Down;
        if self.is_on_the_wire() {
            self.gone = Some(gone);
        } else {
            self.input.clear();
            if self.phase == Phase::Free || matches!(self.phase, Phase::Wait(Wait::Answer | Wait::Caller)) {
                self.deadline = None;
            }
        }
    }

    const fn is_on_the_wire(&self) -> bool {
        matches!(self.phase, Phase::Head | Phase::Body(_) | Phase::Drain)
    }

    pub(crate) fn pending(&self) -> &[u8] {
        if self.link != Link::Up || self.close || !self.is_on_the_wire() {
            return &[];
        }
        self.output.bytes().get(self.sent..self.total).unwrap_or(&[])
    }

    pub(crate) fn sent(&mut self, n: usize, now: Millis, config: &Config) {
        let left = self.pending().len();
        let n = n.min(left);
        self.sent += n;
        if n > 0 && self.phase == Phase::Head {
            self.deadline = if n < left {
                Some(now.saturating_add(config.write_time))
            } else if self.task.what == What::Request && !self.task.resume {
                None
            } else {
                Some(now.saturating_add(config.reply_time))
            };
        }
    }

    /// Otherwise the server cannot have handled it.
    pub(crate) const fn is_all_sent(&self) -> bool {
        self.sent >= self.total
    }

    pub(crate) fn space(&mut self) -> &mut [u8] {
        let waits = self.ready.is_some() || (matches!(self.phase, Phase::Body(_)) && !self.input.is_empty());
        if self.link != Link::Up || self.close || waits { &mut [] } else { self.input.space() }
    }

    pub(crate) fn filled(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        self.input.filled(n);
        let unasked = self.used && self.sent == 0 && self.phase == Phase::Head;
        if unasked || !self.is_on_the_wire() {
            // Nothing was asked: whatever it is, it is no answer.
            self.hang_up();
            self.gone = unasked.then_some(Gone::Cut);
        }
    }

    /// Has the connection closed.
    pub(crate) fn hang_up(&mut self) {
        self.close |= matches!(self.link, Link::Dialing | Link::Up);
        (self.link, self.gone) = (Link::Down, None);
        self.input.clear();
    }

    // Its state.

    pub(crate) fn is_free(&self) -> bool {
        self.phase == Phase::Free
    }

    pub(crate) fn is_up(&self) -> bool {
        self.link == Link::Up && !self.close
    }

    pub(crate) fn is(&self, what: What) -> bool {
        self.task.what == what && !matches!(self.phase, Phase::Free | Phase::Writing | Phase::Drain)
    }

    /// Whether it carries `notifications/initialized`, and the server has not answered it.
    pub(crate) fn is_greeting(&self) -> bool {
        let unanswered = match self.phase {
            Phase::Head | Phase::Wait(_) => true,
            // A challenge: it is sent again.
            Phase::Over => self.after == After::Hold,
            _ => false,
        };
        unanswered && self.task.topic == Topic::Initialized
    }

    pub(crate) fn is_listen(&self) -> bool {
        self.is(What::Listen) || self.is(What::OldStream)
    }

    /// The request that has no end yet.
    pub(crate) fn request(&self) -> Option<u64> {
        let ended = matches!(self.phase, Phase::Free | Phase::Writing | Phase::Drain);
        self.task.request.filter(|_| !ended)
    }

    pub(crate) const fn deadline(&self) -> Option<Millis> {
        self.deadline
    }

    /// The bytes that were kept.
    pub(crate) fn kept(&mut self) -> &mut [u8] {
        let kept = self.kept;
        self.message.store().bytes_mut().get_mut(..kept).unwrap_or(&mut [])
    }

    /// Keeps a part of the head as what is told later.
    pub(crate) fn keep_text(&mut self, range: Range<usize>) {
        let text = self.input.text(range).as_bytes();
        let store = self.message.store();
        store.reach(text.len().min(store.limit()));
        let place = store.bytes_mut();
        let len = text.len().min(place.len());
        for (to, from) in place.iter_mut().zip(text) {
            *to = *from;
        }
        self.kept = len;
    }

    /// The outgoing message is at an end.
    pub(crate) const fn clear_output(&mut self) {
        (self.body, self.head, self.total, self.sent) = (0, 0, 0, 0);
    }

    /// Fails without closing the connection.
    pub(crate) fn fail_kept(&mut self, why: Why) {
        (self.ready, self.after, self.phase) = (Some(Ready::Failed(why)), After::Release, Phase::Over);
        self.deadline = None;
    }
}

/// Bytes as they are.
struct Bare<'b>(Slice<'b>);

impl Sink for Bare<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if self.0.append(bytes) { Ok(()) } else { Err(Full::Now) }
    }

    fn room(&self) -> usize {
        self.0.limit().saturating_sub(self.0.bytes().len())
    }
}

/// What a message that came in is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    NotJson,
    /// A response: with the id of one of the client's requests, or without any; whether it is an error.
    Response(Option<u64>, bool),
    /// Anything else; of an array, there may be the response that is looked for among it.
    Other,
}

/// Finds out what a message is, for a stream on which `request` is to be answered, in an array where there are `batches`.
pub(crate) fn class(bytes: &[u8], request: Option<u64>, batches: bool) -> Class {
    let Ok(envelope) = Envelope::parse(bytes) else {
        let items = Raw::parse(bytes).ok().filter(|raw| raw.as_bytes().starts_with(b"["));
        let Some(items) = items else { return Class::NotJson };
        let answers = |item: Raw<'_>| {
            let class = class(item.as_bytes(), None, false);
            batches && (class == Class::Response(request, false) || class == Class::Response(request, true))
        };
        // A batch within a batch is none.
        let found = items.items().any(|item| item.as_bytes().starts_with(b"{") && answers(item));
        return if found && request.is_some() { Class::Response(request, false) } else { Class::Other };
    };
    match envelope.shape() {
        Shape::Response { id } => Class::Response(id.and_then(|id| id.u64()), envelope.error.is_some()),
        _ => Class::Other,
    }
}
