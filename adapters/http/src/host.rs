//! A connection served by an endpoint: the loop that drivers share, without I/O.

#[cfg(feature = "alloc")]
mod connections;

use mcp_sansio::FullError;
use mcp_sansio::memory::Store;
use mcp_sansio::server::Millis;
use mcp_sansio::sink::Storage;

use crate::endpoint::{App, Endpoint, EndpointResponse, Grant, ResponseBody, StreamId, StreamStatus};
use crate::http1::{Connection, ConnectionLimits, ConnectionStep, ResponseBuffer, Status};

#[cfg(feature = "alloc")]
pub use connections::{Broken, HostLimits, HttpHost, HttpSocket, Interest};
pub use mcp_sansio::sink::BodyBuffer;

/// One connection of an HTTP server, for requests of at most `H` headers. The [crate] has an example.
///
/// 1. Read into [`space`](HttpConnection::space), then call [`filled`](Connection::filled) of its
///    [`connection`](HttpConnection::connection).
/// 2. Call [`serve`](HttpConnection::serve), and follow its [`WaitFor`]. Call it again by the time of
///    [`next_deadline`](Connection::next_deadline).
/// 3. Write [`pending`](Connection::pending), then call [`sent`](Connection::sent).
///
/// When the connection is gone, call [`leave`](HttpConnection::leave).
#[derive(Debug)]
pub struct HttpConnection<'m, const H: usize = 32> {
    /// The connection itself, which takes the bytes that were read, and has those to send.
    pub connection: Connection<'m, H>,
    stream: Option<StreamId>,
    /// The endpoint allows the body of the current head.
    grant: Option<Grant>,
    /// Bytes of the input, and of the output, that are counted in a [`Budget`].
    counted: usize,
    output: usize,
    /// A request may wait for the stream of its session.
    #[cfg(feature = "alloc")]
    waits_for_streams: bool,
}

/// A limit of memory for all connections together: bytes of received requests (see [`HttpConnection::space_in`]) and of
/// answers that were not sent (see [`HttpConnection::trim`]).
#[derive(Debug)]
pub struct Budget {
    input: Total,
    output: Total,
}

#[derive(Debug)]
struct Total {
    limit: usize,
    used: usize,
}

impl Total {
    const fn recount(&mut self, before: usize, now: usize) {
        self.used = self.used.saturating_sub(before).saturating_add(now);
    }

    /// Returns how many bytes a connection may keep between its requests.
    const fn keeps(&self) -> usize {
        let share = self.limit / 64;
        if share > KEPT && self.used <= self.limit / 2 { share } else { KEPT }
    }
}

impl Budget {
    /// Makes a budget of `input` bytes for requests, and none for answers.
    #[must_use]
    pub const fn new(input: usize) -> Self {
        Budget { input: Total { limit: input, used: 0 }, output: Total { limit: usize::MAX, used: 0 } }
    }

    /// Sets the bytes for answers that were not sent.
    #[must_use]
    pub const fn output(mut self, bytes: usize) -> Self {
        self.output.limit = bytes;
        self
    }

    /// Returns the bytes that inputs take now.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.input.used
    }

    /// Returns the bytes that answers take now.
    #[must_use]
    pub const fn output_used(&self) -> usize {
        self.output.used
    }

    /// Returns `true` if answers take more than the budget: close the connection with the largest
    /// [`output_held`](HttpConnection::output_held).
    #[must_use]
    pub const fn is_exceeded(&self) -> bool {
        self.output.used > self.output.limit
    }
}

/// The event for which a [`HttpConnection`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum WaitFor {
    /// Read more bytes. There may be bytes to send too.
    Read,
    /// There is no room: send the pending bytes, then serve again.
    Write,
    /// Send the pending bytes, shut down the sending side, then read until [`WaitFor::Close`].
    Shut,
    /// Send the pending bytes, then close.
    Close,
    /// The request waits until the stream of its session was read: read nothing, send the pending bytes, and serve again when
    /// streams were written. See [`HttpConnection::set_waits_for_streams`].
    #[cfg(feature = "alloc")]
    Stream,
    /// The application has not decided about the request (`Access::Later`, of the feature `resource-server`): read nothing, and
    /// serve again when it may have.
    Decision,
}

/// The result of a check of the current head.
enum HeadCheck {
    /// The endpoint has allowed it, or there is no head yet.
    Passed,
    /// It was refused.
    Refused,
    Undecided,
}

/// The parts that serve a connection.
#[derive(Debug)]
pub struct ServeContext<'h, 'm, 'a, S: 'static, B> {
    /// The endpoint.
    pub endpoint: &'h mut Endpoint<'m>,
    /// The application.
    pub app: &'h mut App<'a, S>,
    /// The buffer for JSON bodies; empty.
    pub body: &'h mut BodyBuffer<B>,
    /// The time in milliseconds.
    pub now: Millis,
}

impl<'m, const H: usize> HttpConnection<'m, H> {
    /// Makes a connection over lent storage.
    #[must_use]
    pub fn new(input: impl Into<Store<'m>>, output: impl Into<Store<'m>>, limits: ConnectionLimits) -> Self {
        HttpConnection {
            connection: Connection::new(input, output, limits),
            stream: None,
            grant: None,
            counted: 0,
            output: 0,
            #[cfg(feature = "alloc")]
            waits_for_streams: false,
        }
    }

    /// Sets whether a request of HTTP with SSE waits while the stream of its session [must be
    /// read](Endpoint::must_wait_for): [`serve`](HttpConnection::serve) then returns [`WaitFor::Stream`]. Default: `false`, such a
    /// request may get 503.
    #[cfg(feature = "alloc")]
    pub const fn set_waits_for_streams(&mut self, waits: bool) {
        self.waits_for_streams = waits;
    }

    /// Returns `true` if the whole request has to wait until the stream of its session was read.
    #[cfg(feature = "alloc")]
    fn must_wait<S, B>(&mut self, host: &ServeContext<'_, '_, '_, S, B>) -> bool {
        if !self.waits_for_streams {
            return false;
        }
        let Some((request, _)) = self.connection.exchange() else { return false };
        // Its session is named in the query.
        request.head.query().is_some() && host.endpoint.must_wait_for(&request.head.request_head()).is_some()
    }

    /// Forgets the connection: the next one uses the same storage. Call [`leave`](HttpConnection::leave) first.
    pub fn reset(&mut self) {
        self.connection.reset();
        (self.stream, self.grant) = (None, None);
    }

    /// Returns the place to read into. While an event stream is open, it takes at most [`ConnectionLimits::head`] bytes: it
    /// is empty after that, until the stream ends.
    pub fn space(&mut self) -> &mut [u8] {
        let most = if self.stream.is_some() { self.connection.limits.head } else { usize::MAX };
        self.connection.space_within(most)
    }

    /// Returns the place to read into, for inputs that grow and share a budget. [`ConnectionLimits::head`] bytes are always
    /// there. If the budget has no room, the place is empty, and the next [`serve`](HttpConnection::serve) answers 503 to
    /// the request. Call [`pay_back`](HttpConnection::pay_back) before you drop the connection.
    pub fn space_in(&mut self, budget: &mut Budget) -> &mut [u8] {
        let head = self.connection.limits.head;
        let left = budget.input.limit.saturating_sub(budget.input.used);
        let most = if self.stream.is_some() { head } else { head.max(self.counted.saturating_add(left)) };
        // The second call finds the room that the first one has made.
        if self.connection.space_within(most).is_empty() && self.stream.is_none() {
            self.connection.refuse(Status::UNAVAILABLE);
        }
        self.count(budget);
        self.connection.space_within(most)
    }

    /// Gives unused memory back. Call it for connections that are idle or carry a stream.
    pub fn release(&mut self, budget: &mut Budget) {
        self.connection.release();
        self.count(budget);
    }

    /// Counts the memory of the connection in the budget, and gives back the memory of a large request or answer
    /// that was handled or sent. Call it after [`serve`](HttpConnection::serve) and writing, then check whether the budget
    /// [is exceeded](Budget::is_exceeded).
    ///
    /// While at most half of a total is used, a connection keeps up to a 64th of it for its next request, or answer; beyond that
    /// 80 KiB. [`release`](HttpConnection::release) takes it back.
    pub fn trim(&mut self, budget: &mut Budget) {
        if self.counted > budget.input.keeps() || self.connection.output_size() > budget.output.keeps() {
            self.connection.release();
        }
        self.count(budget);
    }

    /// Returns the bytes of memory that its answers took when counted last.
    #[must_use]
    pub const fn output_held(&self) -> usize {
        self.output
    }

    /// Removes the connection from its budget. Call it before you drop the connection.
    pub const fn pay_back(&mut self, budget: &mut Budget) {
        budget.input.recount(self.counted, 0);
        budget.output.recount(self.output, 0);
        (self.counted, self.output) = (0, 0);
    }

    fn count(&mut self, budget: &mut Budget) {
        let (input, output) = (self.connection.input_size(), self.connection.output_size());
        budget.input.recount(self.counted, input);
        budget.output.recount(self.output, output);
        (self.counted, self.output) = (input, output);
    }

    /// Returns the event stream that is open on the connection.
    #[must_use]
    pub const fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    /// Handles received requests, and writes messages of an open stream. `random` fills the session's id with
    /// secure random bytes.
    pub fn serve<S, B: Storage>(
        &mut self,
        host: &mut ServeContext<'_, '_, '_, S, B>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> WaitFor {
        let mut requests = 0;
        loop {
            let step = self.connection.step(host.now);
            // A client that sends many requests ahead must read the answers first, and other connections get a turn.
            let is_request = step == ConnectionStep::Request;
            if is_request && (requests == AT_ONCE || self.connection.pending().len() >= AHEAD) {
                return WaitFor::Write;
            }
            // The body of a refused head is not read.
            if matches!(step, ConnectionStep::Read | ConnectionStep::Expect) {
                match self.check_head(host) {
                    HeadCheck::Passed => {}
                    HeadCheck::Refused => continue,
                    HeadCheck::Undecided => return WaitFor::Decision,
                }
            }
            match step {
                ConnectionStep::Read => return WaitFor::Read,
                ConnectionStep::Write => return WaitFor::Write,
                ConnectionStep::Shut => return WaitFor::Shut,
                ConnectionStep::Close => return WaitFor::Close,
                ConnectionStep::Expect => {}
                #[cfg(feature = "alloc")]
                ConnectionStep::Request if self.must_wait(host) => return WaitFor::Stream,
                ConnectionStep::Request => {
                    requests += 1;
                    if let Some(wait) = self.request(host, random) {
                        return wait;
                    }
                }
                _ => match self.pull(host) {
                    Some(wait) => return wait,
                    None => continue,
                },
            }
        }
    }

    /// Reports to the endpoint that the connection is gone. The endpoint decides about its stream.
    pub fn leave<S, B>(&mut self, host: &mut ServeContext<'_, '_, '_, S, B>) {
        if let Some(stream) = self.stream.take() {
            host.endpoint.detach(stream, host.app, host.now);
        }
    }

    /// Checks the current head once. A refusal before the whole request is there is the last answer.
    // Responses are large with this feature. Those of a check and of a request must not be in one frame.
    #[cfg_attr(feature = "resource-server", inline(never))]
    fn check_head<S, B: Storage>(&mut self, host: &mut ServeContext<'_, '_, '_, S, B>) -> HeadCheck {
        if self.grant.is_some() {
            return HeadCheck::Passed;
        }
        let Some((request, answer)) = self.connection.exchange() else { return HeadCheck::Passed };
        let head = request.head.request_head();
        let response = match host.endpoint.admit(host.app, &head, host.body) {
            Ok(Some(grant)) => {
                self.grant = Some(grant);
                return HeadCheck::Passed;
            }
            Ok(None) => return HeadCheck::Undecided,
            Err(response) => response,
        };
        let status = Status(response.status);
        let written = write_response(&response, answer, host.body.storage.bytes());
        host.body.storage.truncate(0);
        if written.is_err() {
            // There is no room: answers before it were not sent, or it is larger than the output. The status
            // alone must do.
            self.connection.refuse(status);
        }
        HeadCheck::Refused
    }

    /// Handles a whole request. Returns what to wait for, if the application has not decided about it.
    #[cfg_attr(feature = "resource-server", inline(never))]
    fn request<S, B: Storage>(
        &mut self,
        host: &mut ServeContext<'_, '_, '_, S, B>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Option<WaitFor> {
        let (request, answer) = self.connection.exchange()?;
        let mut head = request.head.request_head();
        let grant = self.grant.take();
        if let Some(grant) = &grant {
            head = head.admitted(grant);
        }
        let response = host.endpoint.request(host.app, &head, request.body?, host.now, random, host.body);
        if response.undecided {
            host.body.storage.truncate(0);
            return Some(WaitFor::Decision);
        }
        let written = match response.content {
            ResponseBody::Stream(stream) if host.endpoint.may_refuse(stream) && response.is_plain() => {
                answer.defer_stream()
            }
            _ => write_response(&response, answer, host.body.storage.bytes()),
        };
        host.body.storage.truncate(0);
        match (written, response.content) {
            (Ok(()), ResponseBody::Stream(stream)) => self.stream = Some(stream),
            (Ok(()), _) => {}
            (Err(_), content) => {
                // The answer is larger than the output. There is always room for this one.
                let _ = answer.full(Status(500), &[], b"");
                if let ResponseBody::Stream(stream) = content {
                    host.endpoint.detach(stream, host.app, host.now);
                }
            }
        }
        None
    }

    /// Writes the messages of the open stream. Returns `None` if the connection goes on to its next step.
    fn pull<S, B: Storage>(&mut self, host: &mut ServeContext<'_, '_, '_, S, B>) -> Option<WaitFor> {
        let Some(stream) = self.stream else { return Some(WaitFor::Write) };
        if self.connection.ended {
            self.leave(host);
            return Some(WaitFor::Close);
        }
        if self.connection.pending().len() >= AHEAD {
            // Messages for a slow reader stay in the log, where they are counted.
            return Some(WaitFor::Write);
        }
        let answer = &mut self.connection.answer;
        if answer.is_deferred() {
            if answer.has_pending() {
                return Some(WaitFor::Write);
            }
            let refusal = host.endpoint.take_refusal(stream, host.body);
            let written = refusal.map(|status| answer.refuse_deferred(Status(status), host.body.storage.bytes()));
            host.body.storage.truncate(0);
            if let Some(written) = written {
                if written.is_err() {
                    // As in `request`.
                    let _ = answer.full(Status(500), &[], b"");
                }
                self.stream = None;
                return None;
            }
        }
        match host.endpoint.pull(stream, host.app, host.now, answer) {
            StreamStatus::Idle => Some(WaitFor::Read),
            StreamStatus::More => Some(WaitFor::Write),
            _ => {
                answer.end_stream();
                self.stream = None;
                None
            }
        }
    }
}

/// Number of bytes that a connection keeps between requests while memory is scarce, until it is
/// [released](HttpConnection::release). A body of 64 KiB with its head stays, so a client that sends one after the other
/// costs no allocation.
const KEPT: usize = 80 * 1024;
/// Number of requests served before bytes are written.
const AT_ONCE: usize = 16;
/// Number of pending bytes from which no further request is served and no more of a stream is taken.
const AHEAD: usize = 16 * 1024;

fn write_response(
    response: &EndpointResponse<'_>,
    answer: &mut ResponseBuffer<'_>,
    body: &[u8],
) -> Result<(), FullError> {
    // The buffer writes `Content-Type` itself.
    let fields = |give: &mut dyn FnMut(&str, &str)| response.more_headers(give);
    match response.content {
        ResponseBody::Stream(_) => answer.stream_of(&fields),
        ResponseBody::Json => answer.json(Status(response.status), &fields, body),
        ResponseBody::None => answer.full_with(Status(response.status), &fields, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also while bytes for the client wait: a driver that sends them first calls `leave` late.
    #[test]
    fn a_client_that_is_gone_has_left_at_once() {
        use crate::endpoint::{EndpointConfig, Session, Stream};
        use mcp_sansio::{server, service::Service, sink::SliceStorage};
        let (service, mut state) = (Service::<()>::new("test", "1"), ());
        let mut app = App::new(&service, &mut state);
        let (mut sessions, mut streams, mut log) = ([Session::FREE; 1], [Stream::FREE; 1], [0; 1024]);
        let (mut slots, mut subscriptions) = ([server::RequestSlot::FREE; 2], [0; 256]);
        let server = server::Server::new(&mut slots).subscriptions(&mut subscriptions);
        let mut endpoint = Endpoint::new(EndpointConfig::DEFAULT, server, &mut sessions, &mut streams, &mut log[..]);
        let (mut input, mut output, mut json) = ([0; 2048], [0; 1024], [0; 512]);
        let mut connection: HttpConnection<'_> =
            HttpConnection::new(&mut input[..], &mut output[..], ConnectionLimits::DEFAULT);
        let mut body = BodyBuffer::new(SliceStorage::new(&mut json));
        let message =
            br#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},"_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let head = std::format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: subscriptions/listen\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n\r\n",
            message.len()
        );
        for part in [head.as_bytes(), message] {
            connection.space()[..part.len()].copy_from_slice(part);
            connection.connection.filled(part.len());
        }
        let mut host = ServeContext { endpoint: &mut endpoint, app: &mut app, body: &mut body, now: 0 };
        assert_eq!(connection.serve(&mut host, &mut |bytes| bytes.fill(7)), WaitFor::Read);
        assert!(connection.stream().is_some() && connection.connection.has_pending());
        assert_eq!(host.endpoint.load(), (0, 0, 1));
        connection.connection.ended = true;
        assert_eq!(connection.serve(&mut host, &mut |bytes| bytes.fill(7)), WaitFor::Close);
        assert!(connection.stream().is_none() && connection.connection.has_pending());
        assert_eq!(host.endpoint.load(), (0, 0, 0));
    }

    /// Inputs that wait for the rest of their requests share the budget from the moment at which they take memory.
    #[cfg(feature = "alloc")]
    #[test]
    fn inputs_are_counted_at_once() {
        use mcp_sansio::memory::Store;
        let mut budget = Budget::new(100_000);
        let connection =
            || HttpConnection::new(Store::growing(80_000), Store::growing(1_000), ConnectionLimits::DEFAULT);
        let [mut one, mut other] = [(); 2].map(|()| connection());
        let take = |connection: &mut HttpConnection<'static>, budget: &mut Budget| {
            for _ in 0..100 {
                let n = connection.space_in(budget).len();
                connection.connection.filled(n);
            }
            connection.connection.input_size()
        };
        assert_eq!(take(&mut one, &mut budget), 80_000);
        let size = take(&mut other, &mut budget);
        assert!(size <= 40_000 && budget.used() == 80_000 + size, "{size} {}", budget.used());
        one.pay_back(&mut budget);
        other.pay_back(&mut budget);
        assert_eq!(budget.used(), 0);
    }

    /// A large body costs no allocation when it comes again. Where memory is scarce, little is kept, and nothing while idle.
    #[cfg(feature = "alloc")]
    #[test]
    fn a_connection_keeps_a_share_for_its_next_request() {
        use mcp_sansio::memory::Store;
        let total = 64 * 4 * KEPT;
        for (elsewhere, size, is_kept) in [
            (0, 2 * KEPT, true),
            (0, 4 * KEPT, true),
            (0, 4 * KEPT + 1, false),
            (total / 2 - 2 * KEPT, 2 * KEPT, true),
            (total / 2 - 2 * KEPT + 1, 2 * KEPT, false),
            (total - KEPT, KEPT, true),
        ] {
            let mut budget = Budget::new(total);
            budget.input.recount(0, elsewhere);
            let mut connection: HttpConnection<'_> =
                HttpConnection::new(Store::growing(size), Store::growing(1_000), ConnectionLimits::DEFAULT);
            while connection.connection.input_size() < size {
                let n = connection.space_in(&mut budget).len();
                connection.connection.filled(n);
            }
            connection.connection.refuse(Status::BAD_REQUEST);
            let _ = connection.connection.step(0);
            connection.trim(&mut budget);
            let kept = if is_kept { size } else { 0 };
            assert_eq!(budget.used(), elsewhere + kept, "{elsewhere} {size}");
            connection.release(&mut budget);
            assert_eq!(budget.used(), elsewhere);
        }
    }

    #[test]
    fn a_budget_is_exceeded_beyond_its_limit() {
        let mut budget = Budget::new(5).output(10);
        budget.output.recount(0, 4);
        budget.output.recount(0, 6);
        assert_eq!((budget.output_used(), budget.is_exceeded()), (10, false));
        budget.output.recount(4, 5);
        assert_eq!((budget.output_used(), budget.is_exceeded()), (11, true));
        budget.output.recount(6, 0);
        assert_eq!((budget.output_used(), budget.is_exceeded(), budget.used()), (5, false, 0));
        // Nothing exceeds a budget that has no limit.
        let mut budget = Budget::new(5);
        budget.output.recount(0, usize::MAX);
        assert!(!budget.is_exceeded());
    }
}
