//! A connection served by an endpoint: the loop that every driver has, without the I/O.

use mcp_sansio::server::Millis;
use mcp_sansio::sink::{Kind, Mark, Out, Sink, Storage};
use mcp_sansio::{Full, store::Store};

use crate::endpoint::{Admission, App, Content, Endpoint, Head, Pull, Response, StreamId};
use crate::wire::{Answer, Connection, Limits, Status, Step};

/// One connection of an HTTP server, with requests of at most `H` headers.
///
/// Read into [`space`](Wired::space), say with [`filled`](Wired::filled) how much came, call [`serve`](Wired::serve), write
/// what is [`pending`](Wired::pending). When the connection is gone, call [`leave`](Wired::leave).
#[derive(Debug)]
pub struct Wired<'m, const H: usize = 32> {
    connection: Connection<'m, H>,
    stream: Option<StreamId>,
    /// The head at hand may have its body read.
    admission: Option<Admission>,
    /// Bytes of the input that are counted in a [`Budget`].
    counted: usize,
}

/// What the inputs of all connections may take together; see [`Wired::space_in`].
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: usize,
}

impl Budget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Budget { limit, used: 0 }
    }

    /// Bytes that inputs take now.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    const fn recount(&mut self, before: usize, now: usize) {
        self.used = self.used.saturating_sub(before).saturating_add(now);
    }
}

/// What a [`Wired`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum Wait {
    /// More input; there may be something to send as well.
    Read,
    /// Room: send what is pending, then serve again.
    Write,
    /// Send what is pending, shut down the sending side, then read on until [`Wait::Close`].
    Shut,
    /// Send what is pending, then close.
    Close,
}

/// Where an endpoint writes JSON bodies. One serves all connections: a body is copied into its answer at once.
#[derive(Debug)]
pub struct Body<S> {
    storage: S,
}

impl<S: Storage> Body<S> {
    /// A body in `storage`, whose size is the limit of a JSON answer.
    pub const fn new(storage: S) -> Self {
        Body { storage }
    }

    /// The storage with what has been written.
    pub fn into_inner(self) -> S {
        self.storage
    }
}

impl<S: Storage> Sink for Body<S> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if self.storage.append(bytes) { Ok(()) } else { Err(Full::Now) }
    }

    fn room(&self) -> usize {
        match self.storage.limit() {
            usize::MAX => usize::MAX,
            limit => limit.saturating_sub(self.storage.bytes().len()),
        }
    }
}

impl<S: Storage> Out for Body<S> {
    fn begin(&mut self, _: Kind) -> Result<(), Full> {
        Ok(())
    }
    fn end(&mut self) {}
    fn mark(&self) -> Mark {
        Mark::new(self.storage.bytes().len())
    }
    fn roll_back(&mut self, mark: Mark) {
        self.storage.truncate(mark.at());
    }
    fn hold(&mut self, _: bool) {}
    fn held(&self) -> bool {
        false
    }
    fn capacity(&self) -> usize {
        self.storage.limit()
    }
}

/// What serving needs beside the connection.
#[derive(Debug)]
pub struct Host<'h, 'm, 'a, S: 'static, B, const N: usize> {
    /// The endpoint.
    pub endpoint: &'h mut Endpoint<'m, N>,
    /// The application.
    pub app: &'h mut App<'a, S>,
    /// For JSON bodies; empty.
    pub body: &'h mut Body<B>,
    /// The time.
    pub now: Millis,
}

impl<'m, const H: usize> Wired<'m, H> {
    /// A connection over lent storage.
    #[must_use]
    pub fn new(input: impl Into<Store<'m>>, output: impl Into<Store<'m>>, limits: Limits) -> Self {
        Wired { connection: Connection::new(input, output, limits), stream: None, admission: None, counted: 0 }
    }

    /// Forgets the connection: the next one uses the same storage. Call [`leave`](Wired::leave) before.
    pub fn reset(&mut self) {
        self.connection.reset();
        (self.stream, self.admission) = (None, None);
    }

    /// Where to read to. While an event stream is open, no more than a head may have ([`Limits::head`]) is held: empty
    /// when so much has come, until the stream ends.
    pub fn space(&mut self) -> &mut [u8] {
        let most = if self.stream.is_some() { self.connection.limits().head } else { usize::MAX };
        self.connection.space_within(most)
    }

    /// The same where inputs grow, and share a budget. What is up to [`Limits::head`] is always there. Where the budget
    /// has no more room, a request that needs it is answered with 503, by the next [`serve`](Wired::serve), and the space
    /// is empty. Before the connection is dropped, call [`pay_back`](Wired::pay_back).
    pub fn space_in(&mut self, budget: &mut Budget) -> &mut [u8] {
        let head = self.connection.limits().head;
        let left = budget.limit.saturating_sub(budget.used);
        let most = if self.stream.is_some() { head } else { head.max(self.counted.saturating_add(left)) };
        if self.connection.space_within(most).is_empty() && self.stream.is_none() {
            self.connection.refuse(Status::UNAVAILABLE);
        }
        self.count(budget);
        self.connection.space_within(most)
    }

    /// Gives back memory that grew, as far as it is not in use: for connections that are idle, or carry a stream.
    pub fn release(&mut self, budget: &mut Budget) {
        self.connection.release();
        self.count(budget);
    }

    /// Gives back memory that one large request took, as soon as it is handled. Call it after [`serve`](Wired::serve).
    pub fn trim(&mut self, budget: &mut Budget) {
        if self.counted > KEPT {
            self.release(budget);
        }
    }

    /// Takes the connection out of its budget: it is dropped next.
    pub const fn pay_back(&mut self, budget: &mut Budget) {
        budget.recount(self.counted, 0);
        self.counted = 0;
    }

    fn count(&mut self, budget: &mut Budget) {
        let now = self.connection.input_size();
        budget.recount(self.counted, now);
        self.counted = now;
    }

    /// Says that `n` bytes were read.
    pub fn filled(&mut self, n: usize) {
        self.connection.filled(n);
    }

    /// Says that the peer sends nothing more.
    pub fn end_of_input(&mut self) {
        self.connection.end_of_input();
    }

    /// The bytes to send.
    pub fn pending(&mut self) -> &[u8] {
        self.connection.pending()
    }

    /// Says that the first `n` pending bytes were sent.
    pub fn sent(&mut self, n: usize) {
        self.connection.sent(n);
    }

    /// Whether there is anything to send.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.connection.has_pending()
    }

    /// When time makes something of the connection.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        self.connection.next_deadline()
    }

    /// The event stream that is open on it.
    #[must_use]
    pub const fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    /// The connection itself.
    pub const fn connection(&mut self) -> &mut Connection<'m, H> {
        &mut self.connection
    }

    /// Handles what has been read, and writes what an open stream has to say. `random` fills bytes that nobody can guess.
    pub fn serve<S, B: Storage, const N: usize>(
        &mut self,
        host: &mut Host<'_, '_, '_, S, B, N>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Wait {
        let mut requests = 0;
        loop {
            let step = self.connection.step(host.now);
            // The body of a request that its head has refused is not taken in.
            if matches!(step, Step::Read | Step::Expect) && self.refuses(host) {
                continue;
            }
            match step {
                // Whoever sends many requests ahead reads the answers first, and lets others have a turn.
                Step::Request if requests == AT_ONCE || self.connection.pending().len() >= AHEAD => return Wait::Write,
                Step::Read => return Wait::Read,
                Step::Write => return Wait::Write,
                Step::Shut => return Wait::Shut,
                Step::Close => return Wait::Close,
                Step::Expect => {}
                Step::Request => {
                    requests += 1;
                    self.request(host, random);
                }
                _ => match self.pull(host) {
                    Some(wait) => return wait,
                    None => continue,
                },
            }
        }
    }

    /// The connection is gone: what becomes of its stream is the endpoint's to know.
    pub fn leave<S, B, const N: usize>(&mut self, host: &mut Host<'_, '_, '_, S, B, N>) {
        if let Some(stream) = self.stream.take() {
            host.endpoint.detach(stream, host.app, host.now);
        }
    }

    /// Judges the head at hand once; whether it was refused, which is the last answer.
    fn refuses<S, B: Storage, const N: usize>(&mut self, host: &mut Host<'_, '_, '_, S, B, N>) -> bool {
        if self.admission.is_some() {
            return false;
        }
        let Some((head, answer)) = self.connection.head_exchange() else { return false };
        let head = Head::new(head.method(), head.path(), head.query(), &head);
        let response = match host.endpoint.admit(host.app, &head, host.body) {
            Ok(admission) => {
                self.admission = Some(admission);
                return false;
            }
            Err(response) => response,
        };
        let status = Status(response.status);
        let written = write_response(&response, answer, host.body.storage.bytes());
        host.body.storage.truncate(0);
        if written.is_err() {
            // Behind answers that have not been sent, or larger than the output: the status alone must do.
            self.connection.refuse(status);
        }
        true
    }

    fn request<S, B: Storage, const N: usize>(
        &mut self,
        host: &mut Host<'_, '_, '_, S, B, N>,
        random: &mut dyn FnMut(&mut [u8]),
    ) {
        let Some((request, answer)) = self.connection.exchange() else { return };
        let mut head = Head::new(request.head.method(), request.head.path(), request.head.query(), &request.head);
        let admission = self.admission.take();
        if let Some(admission) = &admission {
            head = head.admitted(admission);
        }
        let response = host.endpoint.request(host.app, &head, request.body, host.now, random, host.body);
        let written = write_response(&response, answer, host.body.storage.bytes());
        host.body.storage.truncate(0);
        match (written, response.content) {
            (Ok(()), Content::Stream(stream)) => self.stream = Some(stream),
            (Ok(()), _) => {}
            (Err(_), content) => {
                // Larger than the connection's output: there is always room for this much.
                let _ = answer.full(Status(500), &[], b"");
                if let Content::Stream(stream) = content {
                    host.endpoint.detach(stream, host.app, host.now);
                }
            }
        }
        self.connection.consume();
    }

    /// Writes what the open stream has to say; `None` if the connection goes on to its next step.
    fn pull<S, B, const N: usize>(&mut self, host: &mut Host<'_, '_, '_, S, B, N>) -> Option<Wait> {
        let Some(stream) = self.stream else { return Some(Wait::Write) };
        if self.connection.input_ended() {
            self.leave(host);
            return Some(Wait::Close);
        }
        if self.connection.pending().len() >= AHEAD {
            // What waits for a slow reader stays in the log, where it is counted.
            return Some(Wait::Write);
        }
        let answer = self.connection.answer();
        match host.endpoint.pull(stream, host.app, host.now, answer) {
            Pull::Idle => Some(Wait::Read),
            Pull::More => Some(Wait::Write),
            _ => {
                answer.end_stream();
                self.stream = None;
                None
            }
        }
    }
}

/// Bytes of input that a connection keeps between requests, until it is [released](Wired::release).
const KEPT: usize = 64 * 1024;
/// Requests that are served before something is written.
const AT_ONCE: usize = 16;
/// Bytes of answers that wait to be written before another request is served, or more of a stream is taken.
const AHEAD: usize = 16 * 1024;

/// The most headers that a response has.
const FIELDS: usize = 12;

fn write_response(response: &Response<'_>, answer: &mut Answer<'_>, body: &[u8]) -> Result<(), Full> {
    let mut fields = [("", ""); FIELDS];
    let mut count = 0;
    response.headers(&mut |name, value| {
        if let Some(place) = fields.get_mut(count) {
            *place = (name, value);
            count += 1;
        }
    });
    let fields = fields.get(..count).unwrap_or(&[]);
    match response.content {
        Content::Stream(_) => answer.stream(fields),
        Content::Json => answer.full(Status(response.status), fields, body),
        Content::None => answer.full(Status(response.status), fields, b""),
    }
}
