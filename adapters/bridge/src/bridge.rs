//! The bridge on the side of the host: its lines, and the answers.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::FullError;
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{
    ClientHandle, ErrorObject, PendingId, Request, SendError, ServerRequestId, SubscriptionFilter,
};
use mcp_sansio::error::{RpcError, write_error};
use mcp_sansio::json::{JsonKind, OwnedRaw, Raw, Text};
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::protocol::{LoggingLevel, Method, ServerCapability as Cap, code};
use mcp_sansio::revision::Revision;
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::server::{
    IncomingRequest, Millis, OwnedServerChange, PullStatus, RequestToken, RespondError, Scope, Server, ServerChange,
    ServerEvent, ServerOptions,
};
use mcp_sansio::sink::{GrowingStorage, LineSink, Out};

use crate::behind::Behind;
use crate::hello::Hello;
use crate::requests::{HostRequest, RequestState, Setting};
use crate::tools::Tools;
use crate::write::written;
use crate::{BridgeLimits, Host, ToolFilter};

/// The client behind, if its connection is open.
pub(crate) type Link<'l, 'c, 'm> = Option<&'l mut ClientHandle<'c, 'm>>;

/// An object without members, such as the result of a request that sets something.
pub(crate) const EMPTY: Raw<'static> = Raw::constant("{}");

/// The beginning of the `requestState` of the bridge's own rounds.
const ROUND: &str = "mcp-bridge:";

/// The longest `elicitationId` whose host is remembered, in bytes.
const VISIT: usize = 256;

/// A request of the host that has ended, for a journal.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallRecord<'r> {
    /// The `clientInfo.name` of the host; empty if the bridge has not seen it.
    pub host: &'r str,
    /// The method.
    pub method: &'r str,
    /// The tool, prompt or resource; else empty.
    pub target: &'r str,
    /// The time that it took, in milliseconds.
    pub millis: Millis,
    /// `result`, `tool error`, `cancelled`, `lost`, or `error` with its code.
    pub outcome: &'r str,
    /// `params.arguments`, if the request has them, and was [kept](BridgeLimits::kept).
    pub arguments: Option<Raw<'r>>,
}

/// A function that gets the record of each request.
type Journal = Box<dyn FnMut(&CallRecord<'_>) + Send>;

/// Writes to a host.
pub(crate) type Act = Box<dyn FnOnce(&mut Server<'_>, &mut dyn Out) + Send>;

/// The outcome of a request at one of several servers: its result, or the code of its error and what writes it.
pub(crate) type PartOutcome = Result<OwnedRaw, (i32, Act)>;

/// A request of a host that more than one server gets.
pub(crate) struct Part {
    pub(crate) token: RequestToken,
    /// The member of the result of a list, for which hosts do not wait longer than [`BridgeLimits::wait`].
    pub(crate) list: Option<&'static str>,
    /// The host has the list of the others.
    is_late: bool,
}

impl Part {
    pub(crate) const fn new(token: RequestToken, list: Option<&'static str>) -> Self {
        Part { token, list, is_late: false }
    }
}

/// A message for a host, of a bridge [for several](Bridge::for_hosts).
#[non_exhaustive]
pub enum Output {
    /// About this request: call the function with the server that has admitted it, and the sink of its answer. Drop it if the
    /// client is gone. `None` is about no request: it is for the only host, if there is but one.
    About(Option<RequestToken>, Act),
    /// Publish it to all hosts.
    Changed(OwnedServerChange),
    /// Log it to the host of this request, or to all.
    Log {
        /// The request.
        request: Option<RequestToken>,
        /// `level`
        level: LoggingLevel,
        /// `logger`
        logger: Option<String>,
        /// `data`
        data: OwnedRaw,
    },
    /// Ask the host of this request with [`Server::send_request`], and report the outcome to [`Bridge::asked`].
    Ask {
        /// The request; `None` asks the only host, if there is but one.
        request: Option<RequestToken>,
        /// The question.
        question: ServerRequestId,
        /// Its `method`.
        method: &'static str,
        /// Its `params`.
        params: OwnedRaw,
    },
}

mcp_sansio::debug_fields!(impl for Output {});

/// A question to a host up to 2025-11-25.
pub(crate) struct Asked {
    /// Its id there.
    pub(crate) id: u64,
    /// The connection of the host.
    scope: Scope,
    /// Its id behind.
    pub(crate) question: ServerRequestId,
    /// The request that it belongs to.
    pub(crate) front: Option<RequestToken>,
    /// The end of the time for its answer.
    until: Millis,
}

/// A bridge for one host over lines, or for [several](Bridge::for_hosts). The [crate](crate) says how it is used. Times are in milliseconds of any clock.
pub struct Bridge {
    pub(crate) limits: BridgeLimits,
    pub(crate) server: Server<'static>,
    pub(crate) out: LineSink<GrowingStorage>,
    pub(crate) hello: Hello,
    pub(crate) host: Option<Host>,
    pub(crate) behind: Behind,
    pub(crate) tools: Tools,
    /// The host's requests, the oldest first.
    pub(crate) requests: Vec<HostRequest>,
    /// The requests that wait for the first server, each until its time: what it offers decides about them.
    held: Vec<(Millis, Vec<u8>)>,
    /// The messages for several hosts; `None` for one over lines.
    pub(crate) outputs: Option<VecDeque<Output>>,
    /// The open questions to hosts up to 2025-11-25.
    pub(crate) asked: Vec<Asked>,
    /// The newest elicitations in URL mode, by `elicitationId`, and the requests that they belong to: their ends name none.
    pub(crate) visits: VecDeque<(String, RequestToken)>,
    pub(crate) listen: Option<PendingId>,
    /// The server has agreed to the listen.
    pub(crate) listening: bool,
    /// The request that checks a silent connection.
    pub(crate) check: Option<PendingId>,
    /// The server has sent what is no message: it may have begun anew.
    pub(crate) noise: bool,
    /// The URIs that the server behind sends updates for.
    pub(crate) uris: Vec<String>,
    /// The URIs that several hosts want.
    pub(crate) wanted: Vec<String>,
    /// The level that the host has set.
    pub(crate) level: Option<LoggingLevel>,
    /// The number of the last round.
    rounds: u64,
    /// Makes of the number of a round what its `requestState` says.
    mark: Box<dyn Fn(u64) -> u64 + Send>,
    journal: Option<Journal>,
    /// The name of the host whose request comes, of several.
    pub(crate) asking: String,
    /// The requests whose outcomes are for the hub.
    pub(crate) parts: Vec<Part>,
    /// `None`: the server has not answered in time.
    pub(crate) done_parts: Vec<(RequestToken, Option<PartOutcome>)>,
}

/// The end of a request.
pub(crate) enum End<'e> {
    Result(Raw<'e>),
    Error(ErrorObject<'e>),
    /// Not by the server.
    Failed(RpcError<'e>),
    Cancelled,
}

impl Bridge {
    /// Makes a bridge without a host and a server.
    #[must_use]
    pub fn new(limits: BridgeLimits) -> Self {
        let server = Server::new(Slots::growing(limits.in_flight))
            .subscriptions(Store::growing(limits.subscriptions))
            .scratch(Store::growing(limits.subscriptions))
            .reinitializing();
        Bridge {
            server,
            out: LineSink::new(GrowingStorage::new(limits.backlog)),
            hello: Hello::default(),
            host: None,
            behind: Behind::new(&limits),
            tools: Tools::default(),
            requests: Vec::new(),
            held: Vec::new(),
            outputs: None,
            asked: Vec::new(),
            visits: VecDeque::new(),
            listen: None,
            listening: false,
            check: None,
            noise: false,
            uris: Vec::new(),
            wanted: Vec::new(),
            level: None,
            rounds: 0,
            mark: Box::new(|round| round),
            journal: None,
            asking: String::new(),
            parts: Vec::new(),
            done_parts: Vec::new(),
            limits,
        }
    }

    /// Makes a bridge for several hosts. Their server is the program's, such as an HTTP endpoint: it gives each admitted request to
    /// [`request`](Bridge::request), and takes the messages for hosts from [`next_output`](Bridge::next_output). The
    /// connection behind waits for [`open`](Bridge::open).
    ///
    /// `mark` makes of each number another one that no host can guess, such as a keyed hash of it: what a host sends back with its
    /// answers to the questions of a round. A host that guessed it could answer for another one.
    #[must_use]
    pub fn for_hosts(limits: BridgeLimits, mark: impl Fn(u64) -> u64 + Send + 'static) -> Self {
        Bridge { outputs: Some(VecDeque::new()), mark: Box::new(mark), ..Bridge::new(limits) }
    }

    /// Opens the connection behind, as the client `host` or one of its own.
    pub fn open(&mut self, host: Option<Host>) {
        self.host = self.host.take().or(host);
        self.behind.need();
    }

    mcp_sansio::setters! {
        /// Lets a part of the tools through. Default: all.
        #[must_use]
        tools(filter: ToolFilter) => tools = Tools::new(filter);
        /// Calls `journal` with each request that ends.
        #[must_use]
        journal(journal: impl FnMut(&CallRecord<'_>) + Send + 'static) => journal = Some(Box::new(journal));
    }

    /// Lets the bridge answer the opening of a host by what the server has [said](Bridge::server) in another run, also while it is
    /// not there. What is no description of a server is left out. Default: the opening waits for the server.
    #[must_use]
    pub fn known_server(self, result: Raw<'_>) -> Self {
        let is_description = result.get("capabilities").is_some_and(|all| all.kind() == JsonKind::Object);
        Bridge { hello: if is_description { Hello::of(result) } else { self.hello }, ..self }
    }

    /// Returns what the server has said about itself: its `InitializeResult` or `DiscoverResult`.
    #[must_use]
    pub fn server(&self) -> Option<Raw<'_>> {
        self.hello.result.as_ref().map(OwnedRaw::raw)
    }

    /// Returns the description of the server for hosts. Before a server has come, it is that of one with all capabilities.
    #[must_use]
    pub fn hello(&self) -> Hello {
        if self.hello.is_known { self.hello.clone() } else { Hello::unknown() }
    }

    /// Returns `true` if the server has described itself, in this run or in [another](Bridge::known_server).
    pub(crate) const fn knows_server(&self) -> bool {
        self.hello.is_known
    }

    /// Returns the host, from its first request on. The client behind is made from it.
    #[must_use]
    pub const fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// Returns `true` once when the program is to open a connection. It reports the outcome as an [event](Bridge::event), or as
    /// [`failed`](Bridge::failed).
    pub fn wants_connection(&mut self) -> bool {
        self.behind.opens()
    }

    /// Returns `true` while there is a connection, or one is being opened. Otherwise the program closes what it has.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.behind.is_up()
    }

    /// Returns `true` while the connection is open: lines of the host may be given with the client.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.behind.is_open()
    }

    /// Returns why the last connection was lost or not opened; empty before that.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.behind.why
    }

    /// Says why the server does not answer, for requests that wait in vain.
    pub fn explain(&mut self, why: &str) {
        self.behind.why = why.into();
    }

    /// Returns `true` if no request of the host waits for its answer.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.held.is_empty() && !self.requests.iter().any(|request| request.is_waiting() || request.is_sent())
    }

    /// Returns the bytes for the host. Send all of them after each call.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        self.out.pending()
    }

    /// Reports that the first `n` bytes of [`pending`](Bridge::pending) were sent.
    pub fn sent(&mut self, n: usize) {
        self.out.sent(n);
    }

    /// Writes the notifications of changes. Returns `true` if there are more: send the pending bytes and call it again.
    pub fn pull(&mut self) -> bool {
        // To describe the server takes 300 instructions, and most messages leave no changes.
        self.server.has_news() && self.server.pull(&self.hello.info(), &mut self.out) == PullStatus::More
    }

    /// Takes one line of the host.
    ///
    /// # Errors
    /// [`FullError::Now`]: nothing has changed; send the pending bytes and call again with the same line. [`FullError::Never`]: the
    /// answer to a broken line does not fit; leave it out.
    pub fn line(&mut self, line: &[u8], link: Link<'_, '_, '_>, now: Millis) -> Result<(), FullError> {
        let mut link = link.filter(|_| self.is_open());
        let mut request = IncomingRequest::empty();
        if request.read(line).is_err() {
            let info = self.hello.info();
            let event = self.server.handle(&ServerOptions::new(&info), line, &mut request, &mut self.out)?;
            if let Some(ServerEvent::Batch { elements }) = event {
                for element in elements.items() {
                    let _ = self.line(element.as_bytes(), link.as_deref_mut(), now);
                }
            }
            return Ok(());
        }
        match request.shape() {
            MessageShape::Response { id } => {
                if let Some((id, response)) = id.and_then(|id| id.u64()).zip(request.envelope.response()) {
                    self.response(id, response, self.server.scope(), link);
                }
                return Ok(());
            }
            MessageShape::Request { .. } if request.method != Method::Ping => {
                if self.host.is_none() {
                    self.host = Some(Host::of(&request));
                }
                self.behind.need();
                // What the server offers decides about each of them.
                if !self.hello.is_known {
                    return self.hold(&request, line, now);
                }
            }
            MessageShape::Notification { method } if method.eq_str("notifications/cancelled") => {
                let named = request.envelope.members.request_id;
                self.held.retain(|(_, line)| {
                    let id = Envelope::parse(line).ok().and_then(|held| held.id);
                    id.zip(named).is_none_or(|(id, named)| id.as_bytes() != named.as_bytes())
                });
            }
            _ => {}
        }
        self.take(&mut request, line, link, now)
    }

    /// Refuses a line of the host that is longer than [`BridgeLimits::message`].
    ///
    /// # Errors
    /// [`FullError::Now`]: send the pending bytes and call again.
    pub fn refuse_too_long(&mut self) -> Result<(), FullError> {
        self.server.refuse_too_long(&mut self.out)
    }

    /// Keeps a request of the host until the server has said what it is.
    fn hold(&mut self, request: &IncomingRequest<'_>, line: &[u8], now: Millis) -> Result<(), FullError> {
        if self.held.len() >= self.limits.in_flight || !self.can_keep(line) {
            return write_error(&mut self.out, Some(request.id), &busy());
        }
        self.held.push((now.saturating_add(self.limits.wait), line.into()));
        Ok(())
    }

    fn can_keep(&self, line: &[u8]) -> bool {
        let held = self.held.iter().map(|held| held.1.len());
        let kept: usize = self.requests.iter().map(|request| request.line.len()).chain(held).sum();
        kept.saturating_add(line.len()) <= self.limits.kept
    }

    fn take<'a>(
        &mut self,
        request: &mut IncomingRequest<'a>,
        line: &'a [u8],
        mut link: Link<'_, '_, '_>,
        now: Millis,
    ) -> Result<(), FullError> {
        let info = self.hello.info();
        let options = ServerOptions::new(&info);
        // The answer to what the host sets is that of the server behind.
        let event = match request.method.is_setting() {
            true => {
                self.server.admit_own(&options, request, &mut self.out)?.map(|token| ServerEvent::Request { token })
            }
            false => self.server.handle_read(&options, request, &mut self.out)?,
        };
        match event {
            Some(ServerEvent::Request { token }) => self.admit(token, request, line, link.as_deref_mut(), now),
            Some(ServerEvent::Cancelled { token }) => self.cancelled(token, request.reason(), link.as_deref_mut(), now),
            Some(ServerEvent::Notification { method, params }) => {
                self.notification(&method.to_string(), params, link.as_deref_mut())
            }
            _ => {}
        }
        if let Some(link) = link {
            self.follow(link, false);
        }
        self.pull();
        Ok(())
    }

    /// Takes a request that the server's engine has admitted.
    fn admit(
        &mut self,
        token: RequestToken,
        request: &IncomingRequest<'_>,
        line: &[u8],
        mut link: Link<'_, '_, '_>,
        now: Millis,
    ) {
        let mut own = HostRequest::new(token, request, now, self.limits.wait);
        let state =
            request.envelope.members.request_state.and_then(|state| state.text()).map(|state| state.to_string());
        // The bridge has rounds of its own only before a server up to 2025-11-25. Later ones make `requestState` themselves, and may
        // be bridges too.
        let round = state.as_deref().and_then(|state| state.strip_prefix(ROUND));
        if let Some(round) = round.filter(|_| !self.hello.is_modern) {
            let at = round.parse().ok().and_then(|round| self.requests.iter().position(|other| other.is_round(round)));
            return match (at, link) {
                (Some(at), Some(link)) => self.come_again(at, token, request, link, now),
                _ => self.fail(token, code::INVALID_PARAMS, move |server, out| {
                    let _ = server.fail(token, &RpcError::invalid_params("The question is over"), out);
                }),
            };
        }
        let keeps = self.can_keep(line);
        // After a sleep the connection may be dead: the request waits for an answer to the check.
        if let Some(link) = &mut link
            && self.behind.is_silent(now, &self.limits)
        {
            self.begin_check(link);
        }
        let mut link = link.filter(|_| self.check.is_none() || !keeps);
        // The round that its host has left for the longest time makes way.
        let oldest =
            self.requests.iter().find(|other| !other.is_waiting() && !other.is_sent()).map(|other| other.front);
        if let Some(oldest) = oldest.filter(|_| self.requests.len() >= self.limits.in_flight) {
            self.cancelled(oldest, None, link.as_deref_mut(), now);
        }
        let refusal = match () {
            () if self.tools.refuses(request) => Some(RpcError::invalid_params("The bridge lets no such tool through")),
            () if self.requests.len() >= self.limits.in_flight || link.is_none() && !keeps => Some(busy()),
            () => None,
        };
        if keeps {
            own.line = line.into();
        }
        if self.journal.is_some() || own.method == Method::Other {
            let host = match self.outputs {
                None => self.host.as_ref().map_or("", Host::name),
                Some(_) => &self.asking,
            };
            own.note_names(request, host);
        }
        self.requests.push(own);
        let at = self.requests.len() - 1;
        match (refusal, link) {
            (Some(refusal), _) => self.end(at, End::Failed(refusal), now),
            (None, Some(link)) => self.send(at, request, link, now),
            (None, None) => {}
        }
    }

    /// Sends a request of the host to the server behind.
    pub(crate) fn send(
        &mut self,
        at: usize,
        request: &IncomingRequest<'_>,
        link: &mut ClientHandle<'_, '_>,
        now: Millis,
    ) {
        let Some(own) = self.requests.get_mut(at) else { return };
        if own.method.is_setting() {
            return self.send_setting(at, request, link, now);
        }
        let (params, given) = (request.envelope.params, request.envelope.meta);
        let mut sent = match own.method {
            Method::Other => Request::raw(&own.name.0, params),
            method => Request::of(method, params, request.envelope.members.meta),
        };
        sent = sent.no_timeout();
        if given.progress_token.is_some() {
            sent = sent.with_progress();
        }
        if own.modern && link.client.is_modern() {
            sent = sent.any_result_type().own_client();
        }
        // Up to 2025-11-25 the level is that of the connection.
        if let Some(level) = given.log_level.and_then(LoggingLevel::read).filter(|_| !link.client.is_modern())
            && self.level != Some(level)
        {
            self.level = Some(level);
            let _ = link.client.set_log_level(level, link.out);
        }
        let sent = link.send(&sent);
        self.was_sent(at, sent, now);
    }

    fn was_sent(&mut self, at: usize, sent: Result<PendingId, SendError>, now: Millis) {
        let Some(own) = self.requests.get_mut(at) else { return };
        match sent {
            Ok(back) => own.sent(back),
            Err(SendError::NotInRevision | SendError::NotOffered) => {
                self.end(at, End::Failed(RpcError::method_not_found()), now);
            }
            Err(error) => {
                let why = format!("The bridge cannot send this: {error}");
                self.end(at, End::Failed(RpcError::internal(&why)), now);
            }
        }
    }

    /// Asks the server whether it is there, if it has nothing else to answer.
    pub(crate) fn begin_check(&mut self, link: &mut ClientHandle<'_, '_>) {
        if self.check.is_some() || self.requests.iter().any(HostRequest::is_sent) {
            return;
        }
        let method = if link.client.is_modern() { Method::Discover } else { Method::Ping };
        // It is over before the requests that wait for it.
        self.check = link.send(&Request::of(method, None, None).timeout(self.limits.wait / 2)).ok();
    }

    /// Passes on what a host sets. A server of 2026-07-28 has no such requests: it agrees to a subscription with the acknowledgement of
    /// a `subscriptions/listen`, and gets the level with each request.
    fn send_setting(&mut self, at: usize, request: &IncomingRequest<'_>, link: &mut ClientHandle<'_, '_>, now: Millis) {
        let Some(own) = self.requests.get(at) else { return };
        let (is_modern, is_shared) = (link.client.is_modern(), self.outputs.is_some());
        let end = match &own.setting {
            Some(Setting::Subscribed(uri, true)) if is_modern => {
                let sent = link.client.listen(&SubscriptionFilter::new().uris(&[uri]));
                return self.was_sent(at, sent, now);
            }
            // Others may want it still: see `follow`.
            Some(Setting::Subscribed(_, false)) if is_modern || is_shared => End::Result(EMPTY),
            &Some(Setting::Level(level)) if is_modern => {
                let _ = link.client.set_log_level(self.common_level(level), link.out);
                End::Result(EMPTY)
            }
            None if is_modern => End::Failed(RpcError::invalid_params("Invalid params: no such level, or no uri")),
            &Some(Setting::Level(level)) if is_shared => {
                let level = self.common_level(level);
                let sent = link.send(&Request::set_level(level).no_timeout());
                return self.was_sent(at, sent, now);
            }
            _ => {
                let sent = link.send(
                    &Request::of(own.method, request.envelope.params, request.envelope.members.meta).no_timeout(),
                );
                return self.was_sent(at, sent, now);
            }
        };
        self.end(at, end, now);
        self.follow(link, false);
    }

    /// Returns the level that all hosts need if one of them wants `level`: their server drops what the others do not want.
    fn common_level(&self, level: LoggingLevel) -> LoggingLevel {
        self.level.filter(|_| self.outputs.is_some()).map_or(level, |others| others.min(level))
    }

    /// Takes the answers of a host of 2026-07-28 to the questions of a round.
    fn come_again(
        &mut self,
        at: usize,
        token: RequestToken,
        request: &IncomingRequest<'_>,
        link: &mut ClientHandle<'_, '_>,
        now: Millis,
    ) {
        let Some(own) = self.requests.get_mut(at) else { return };
        let (asked, more) = own.come_again(token, request);
        for (number, question) in asked.into_iter().enumerate() {
            let responses = request.envelope.members.input_responses;
            let _ = match responses.and_then(|responses| responses.get(&key(number))) {
                Some(answer) => link.reply(question, &ClientResult::raw(answer)),
                None => link.refuse(question, &RpcError::refused()),
            };
        }
        if !more.is_empty() {
            self.require(at, more, now);
        }
    }

    /// Returns the mark and the `requestState` of the next round.
    pub(crate) fn next_round(&mut self) -> (u64, String) {
        self.rounds += 1;
        let mark = (self.mark)(self.rounds);
        (mark, format!("{ROUND}{mark}"))
    }

    /// Takes a request of several hosts, which their server has admitted. `message` is the JSON-RPC message; its `id` does not matter.
    pub fn request(
        &mut self,
        token: RequestToken,
        message: &[u8],
        link: Option<&mut ClientHandle<'_, '_>>,
        now: Millis,
    ) {
        let link = link.filter(|_| self.is_open());
        let mut request = IncomingRequest::empty();
        if request.read(message).is_ok() {
            // Notes the method.
            request.shape();
            self.admit(token, &request, message, link, now);
        }
    }

    /// Sets the level of log messages that one of several hosts of several servers wants.
    pub(crate) fn set_level(&mut self, level: LoggingLevel, link: Link<'_, '_, '_>) {
        let level = self.common_level(level);
        self.level = Some(level);
        if let Some(link) = link.filter(|_| self.is_open()) {
            let _ = link.client.set_log_level(level, link.out);
        }
    }

    /// Sets the URIs that several hosts subscribe to.
    pub fn subscribed<'u>(&mut self, uris: impl Iterator<Item = &'u str>, link: Option<&mut ClientHandle<'_, '_>>) {
        self.wanted.clear();
        self.wanted.extend(uris.map(String::from));
        if let Some(link) = link.filter(|_| self.is_open()) {
            self.follow(link, false);
        }
    }

    /// Returns the next message for several hosts.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outputs.as_mut()?.pop_front()
    }

    /// Reports that a host was asked: the id of the question there, and its connection; `None` if it cannot be asked.
    pub fn asked(
        &mut self,
        request: Option<RequestToken>,
        question: ServerRequestId,
        asked: Option<(u64, Scope)>,
        link: Option<&mut ClientHandle<'_, '_>>,
    ) {
        match (asked, link) {
            (Some((id, scope)), _) => self.is_asked(id, scope, question, request),
            (None, Some(link)) => drop(link.refuse(question, &RpcError::internal(NOT_ASKED))),
            (None, None) => {}
        }
    }

    /// Notes an open question.
    fn is_asked(&mut self, id: u64, scope: Scope, question: ServerRequestId, front: Option<RequestToken>) {
        let until = self.behind.heard().saturating_add(self.limits.question_time);
        self.asked.push(Asked { id, scope, question, front, until });
    }

    /// Refuses an open question that its host does not answer.
    fn leave_open(&mut self, at: usize, link: Link<'_, '_, '_>) {
        let asked = self.asked.remove(at);
        self.take_back(&asked);
        if let Some(link) = link {
            let _ = link.refuse(asked.question, &RpcError::internal("The host has not answered"));
        }
    }

    /// Returns the number of open questions, with those of rounds.
    pub(crate) fn open_questions(&self) -> usize {
        self.asked.len() + self.requests.iter().map(HostRequest::open_questions).sum::<usize>()
    }

    /// Returns `true` if a host has an open question of this id.
    pub(crate) fn has_asked(&self, id: u64, scope: Scope) -> bool {
        self.asked.iter().any(|asked| asked.id == id && asked.scope == scope)
    }

    /// Acts on the host of a request: at once, or as soon as the program has its server.
    pub(crate) fn about(
        &mut self,
        front: Option<RequestToken>,
        act: impl FnOnce(&mut Server<'_>, &mut dyn Out) + Send + 'static,
    ) {
        match &mut self.outputs {
            None => act(&mut self.server, &mut self.out),
            Some(outputs) => outputs.push_back(Output::About(front, Box::new(act))),
        }
    }

    /// Takes a request whose outcome is for the hub.
    fn take_part(&mut self, front: RequestToken) -> Option<Part> {
        let at = self.parts.iter().position(|part| part.token == front)?;
        Some(self.parts.swap_remove(at))
    }

    /// Returns `true` if the server has not answered an earlier list of this member in time, and not since.
    pub(crate) fn owes(&self, member: &str) -> bool {
        self.parts.iter().any(|part| part.is_late && part.list == Some(member))
    }

    /// Returns the requests that are lists of several servers, with the time until which hosts wait for them.
    fn lists(&self) -> impl Iterator<Item = (RequestToken, Millis)> {
        let lists = self.parts.iter().filter(|part| part.list.is_some() && !part.is_late);
        let begun = |part: &Part| self.requests.iter().find(|request| request.front == part.token).map(|r| r.begun);
        lists.filter_map(move |part| Some((part.token, begun(part)?.saturating_add(self.limits.wait))))
    }

    /// Answers a request with an error, by `act`.
    fn fail(
        &mut self,
        front: RequestToken,
        code: i32,
        act: impl FnOnce(&mut Server<'_>, &mut dyn Out) + Send + 'static,
    ) {
        match self.take_part(front) {
            Some(part) if part.is_late => {}
            Some(_) => self.done_parts.push((front, Some(Err((code, Box::new(act)))))),
            None => self.about(Some(front), act),
        }
    }

    /// Answers a request with a result.
    pub(crate) fn respond(&mut self, front: RequestToken, setting: Option<Setting>, result: Raw<'_>) {
        match self.outputs {
            None => respond(front, setting, result, &mut self.server, &mut self.out),
            Some(_) => {
                let result = own(result);
                match self.take_part(front) {
                    Some(part) if part.is_late => self.publish(ServerChange::All),
                    Some(_) => self.done_parts.push((front, Some(Ok(result)))),
                    None => {
                        self.about(Some(front), move |server, out| respond(front, setting, result.raw(), server, out));
                    }
                }
            }
        }
    }

    /// Publishes a change to the hosts.
    pub(crate) fn publish(&mut self, change: ServerChange<'_>) {
        match &mut self.outputs {
            None => self.server.publish(change),
            Some(outputs) => outputs.push_back(Output::Changed(change.into())),
        }
    }

    /// Asks a host up to 2025-11-25. Returns `false` if it cannot be asked.
    pub(crate) fn ask(
        &mut self,
        front: Option<RequestToken>,
        question: ServerRequestId,
        method: &'static str,
        params: Raw<'_>,
    ) -> bool {
        let Some(outputs) = &mut self.outputs else {
            let id = self.server.send_request(method, Some(params), &mut self.out);
            return id.map(|id| self.is_asked(id, self.server.scope(), question, front)).is_ok();
        };
        let visit = params.get("elicitationId").and_then(|id| id.text()).filter(|id| id.raw().len() <= VISIT);
        if let Some((visit, front)) = visit.zip(front) {
            self.visits.truncate(self.limits.questions.saturating_sub(1));
            self.visits.push_front((visit.to_string(), front));
        }
        outputs.push_back(Output::Ask { request: front, question, method, params: OwnedRaw::new(params) });
        true
    }

    /// Notes that a host has cancelled a request, or is gone.
    pub fn cancel(&mut self, token: RequestToken, link: Option<&mut ClientHandle<'_, '_>>, now: Millis) {
        self.cancelled(token, None, link, now);
    }

    fn cancelled(&mut self, token: RequestToken, reason: Option<Text<'_>>, mut link: Link<'_, '_, '_>, now: Millis) {
        // One of several hosts may be gone; the only one answers.
        let is_left = |asked: &Asked| asked.front == Some(token);
        while let Some(at) = self.asked.iter().position(is_left).filter(|_| self.outputs.is_some()) {
            self.leave_open(at, link.as_deref_mut());
        }
        let Some(at) = self.requests.iter().position(|request| request.front == token) else { return };
        let back = self.requests.get(at).and_then(HostRequest::back);
        if let (Some(link), Some(back)) = (link, back) {
            let reason = reason.map(|reason| reason.to_string());
            let _ = link.cancel(back, reason.as_deref());
        }
        self.end(at, End::Cancelled, now);
    }

    /// Takes a response of a host to a question: its `result` or `error`, and its connection.
    pub fn response(
        &mut self,
        id: u64,
        response: Result<Raw<'_>, Raw<'_>>,
        scope: Scope,
        link: Option<&mut ClientHandle<'_, '_>>,
    ) {
        let Some(at) = self.asked.iter().position(|asked| asked.id == id && asked.scope == scope) else { return };
        let question = self.asked.remove(at).question;
        let Some(link) = link.filter(|_| self.is_open()) else { return };
        let _ = match response.map_err(ErrorObject::read) {
            Ok(result) => link.reply(question, &ClientResult::raw(result)),
            Err(error) => {
                let message = error.message.to_string();
                let refusal = RpcError::new(error.code, &message);
                link.refuse(question, &error.data.into_iter().fold(refusal, RpcError::with_data))
            }
        };
    }

    /// Ends a request: answers the host, and writes the journal.
    pub(crate) fn end(&mut self, at: usize, end: End<'_>, now: Millis) {
        if at >= self.requests.len() {
            return;
        }
        let request = self.requests.remove(at);
        let front = request.front;
        let outcome = match end {
            End::Result(result) => {
                if request.method == Method::ToolsList {
                    // One host has no headers.
                    self.tools.learn(result, if self.outputs.is_some() { self.limits.schemas } else { 0 });
                }
                let cut = self.tools.cut(request.method, result);
                let result = cut.as_deref().and_then(|cut| Raw::parse(cut).ok()).unwrap_or(result);
                let older = (!request.modern && self.hello.is_modern).then(|| without_terms(result));
                let result = older.as_deref().and_then(|older| Raw::parse(older).ok()).unwrap_or(result);
                // Only the journal needs it.
                let is_error = || result.get("isError").and_then(|failed| failed.bool()) == Some(true);
                let outcome = if self.journal.is_some() && is_error() { "tool error" } else { "result" };
                if let Some(Setting::Level(level)) = request.setting {
                    self.level = Some(self.common_level(level));
                }
                self.respond(front, request.setting, result);
                Cow::Borrowed(outcome)
            }
            // The code of a resource that does not exist is another one from 2026-07-28 on.
            End::Error(error) if error.is_unknown_resource() && request.modern != self.hello.is_modern => {
                let (data, modern, code) = (error.data.map(own), request.modern, error.code);
                self.fail(front, code, move |server, out| {
                    let revision = if modern { None } else { server.peer.revision() };
                    let uri = data.as_ref().and_then(|data| data.raw().get("uri")?.text()).unwrap_or(Text::EMPTY);
                    let failure = RpcError::unknown_resource(uri, revision.unwrap_or(Revision::LATEST));
                    answered(front, server.fail(front, &failure, out), server, out);
                });
                format!("error {code}").into()
            }
            End::Error(error) => {
                let (code, raw) = (error.code, own(error.raw.unwrap_or(EMPTY)));
                self.fail(front, code, move |server, out| {
                    answered(front, server.fail_raw(front, code, raw.raw(), out), server, out);
                });
                format!("error {code}").into()
            }
            End::Failed(failure) => {
                let (code, words) = (failure.code, failure.message.to_string());
                self.fail(front, code, move |server, out| {
                    answered(front, server.fail(front, &RpcError::new(code, &words), out), server, out);
                });
                format!("error {code}").into()
            }
            End::Cancelled => {
                self.take_part(front);
                "cancelled".into()
            }
        };
        if let Some(journal) = &mut self.journal {
            let (host, method, target) = (&*request.host, &*request.name.0, &*request.name.1);
            let (millis, outcome) = (now.saturating_sub(request.begun), &*outcome);
            let mut kept = IncomingRequest::empty();
            let arguments = kept.read(&request.line).ok().and(kept.envelope.members.arguments);
            journal(&CallRecord { host, method, target, millis, outcome, arguments });
        }
    }

    /// Subscribes behind to what the host has subscribed to, if that is not so already.
    pub(crate) fn follow(&mut self, link: &mut ClientHandle<'_, '_>, fresh: bool) {
        let mut uris: Vec<String> = match self.outputs {
            None => self.server.subscribed_uris().map(Into::into).collect(),
            Some(_) => self.wanted.clone(),
        };
        uris.sort_unstable();
        uris.dedup();
        if !fresh && uris == self.uris {
            return;
        }
        let is_new = |uri: &String| !self.uris.contains(uri);
        if !(fresh || link.client.is_modern() || uris.iter().any(is_new)) {
            // The listen need not have them: the server got the host's own request.
            let mut unsubscribe = |uri: &String| link.send(&Request::unsubscribe(uri).no_timeout());
            return self.uris.retain(|uri| uris.contains(uri) || unsubscribe(uri).is_err());
        }
        self.uris = uris;
        let names: Vec<&str> = self.uris.iter().map(String::as_str).collect();
        let old = self.listen.take();
        self.listen = listen(link, &names);
        self.listening = false;
        if let Some(old) = old {
            let _ = link.cancel(old, None);
        }
    }

    /// Takes a notification of a host, and passes it on to a server up to 2025-11-25. To later ones clients send only cancellations.
    pub fn notification(&mut self, method: &str, params: Option<Raw<'_>>, link: Option<&mut ClientHandle<'_, '_>>) {
        let Some(link) = link.filter(|link| self.is_open() && !link.client.is_modern()) else { return };
        if ["notifications/initialized", "initialized", "notifications/progress"].contains(&method) {
            return;
        }
        let _ = match method {
            "notifications/roots/list_changed" => link.client.roots_changed(link.out),
            _ => link.client.notify(method, params, link.out),
        };
    }

    /// Ends requests that have waited for too long, rounds that the host has left, and the pause before the next connection. Call it at
    /// [`next_deadline`](Bridge::next_deadline).
    pub fn expire(&mut self, mut link: Link<'_, '_, '_>, now: Millis) {
        self.behind.expire(now);
        if self.behind.check_is_due(now, &self.limits)
            && let Some(link) = link.as_deref_mut()
        {
            self.begin_check(link);
        }
        let is_due = |request: &HostRequest| request.deadline().is_some_and(|due| due <= now);
        while let Some(at) = self.requests.iter().position(is_due) {
            match self.requests.get(at).filter(|request| !request.is_waiting()).map(|parked| parked.front) {
                Some(parked) => self.cancelled(parked, None, link.as_deref_mut(), now),
                None => self.end(at, End::Failed(RpcError::internal(&self.missing())), now),
            }
        }
        while let Some(at) = self.asked.iter().position(|asked| asked.until <= now) {
            self.leave_open(at, link.as_deref_mut());
        }
        let late: Vec<_> = self.lists().filter(|list| list.1 <= now).map(|list| list.0).collect();
        for part in self.parts.iter_mut().filter(|part| late.contains(&part.token)) {
            part.is_late = true;
            self.done_parts.push((part.token, None));
        }
        if self.held.iter().any(|held| held.0 <= now) {
            // Answers the host without a server; `list_changed` follows when there is one.
            self.hello = Hello::unknown();
            self.release(link, now);
        }
        self.pull();
    }

    /// Returns the text for a request that has waited in vain.
    fn missing(&self) -> String {
        let seconds = self.limits.wait / 1000;
        match &*self.behind.why {
            "" => format!("The server behind the bridge has not answered for {seconds} s"),
            why => format!("The server behind the bridge is not there, for {seconds} s: {why}"),
        }
    }

    /// Takes the requests of the host that have waited for the first server.
    pub(crate) fn release(&mut self, mut link: Link<'_, '_, '_>, now: Millis) {
        for (_, line) in core::mem::take(&mut self.held) {
            let _ = self.line(&line, link.as_deref_mut(), now);
        }
    }

    /// Returns the time of the next call of [`expire`](Bridge::expire).
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let requests = self.requests.iter().filter_map(HostRequest::deadline);
        let held = self.held.iter().map(|held| held.0);
        let asked = self.asked.iter().map(|asked| asked.until);
        let lists = self.lists().map(|list| list.1);
        requests.chain(held).chain(asked).chain(lists).chain(self.behind.deadline()).min()
    }

    /// Returns the request that the server's question may belong to: the newest that can ask. Those that the host is not asked for
    /// at present come first.
    pub(crate) fn newest_that_asks(&self) -> Option<usize> {
        let methods = [Method::ToolsCall, Method::PromptsGet, Method::ResourcesRead];
        let asks = |request: &HostRequest| methods.contains(&request.method);
        let sent = self.requests.iter().rposition(|request| asks(request) && request.is_sent());
        sent.or_else(|| {
            self.requests.iter().rposition(|request| matches!(request.state(), RequestState::Parked { .. }))
        })
    }
}

mcp_sansio::debug_fields!(impl for Bridge { requests, behind });

/// Subscribes to all that the server offers.
fn listen(link: &mut ClientHandle<'_, '_>, uris: &[&str]) -> Option<PendingId> {
    let offered = link.client.offered;
    let has = |list| offered.has(list);
    let mut filter = SubscriptionFilter::new();
    filter = if has(Cap::ToolsChanged) { filter.tools() } else { filter };
    filter = if has(Cap::PromptsChanged) { filter.prompts() } else { filter };
    filter = if has(Cap::ResourcesChanged) { filter.resources() } else { filter };
    let is_empty = ![Cap::ToolsChanged, Cap::PromptsChanged, Cap::ResourcesChanged].into_iter().any(has);
    let takes_uris = offered.has(Cap::Subscribe) && !uris.is_empty();
    if is_empty && !takes_uris {
        return None;
    }
    link.client.listen(&if takes_uris { filter.uris(uris) } else { filter }).ok()
}

/// Returns the key of an input request of the bridge.
pub(crate) fn key(number: usize) -> String {
    format!("q{number}")
}

fn busy() -> RpcError<'static> {
    RpcError::internal("Overloaded: too many requests wait in the bridge")
}

/// Keeps a value.
pub(crate) fn own(raw: Raw<'_>) -> OwnedRaw {
    OwnedRaw::new(raw)
}

/// The reason for a question that its host does not get.
pub(crate) const NOT_ASKED: &str = "The host cannot be asked now";

pub(crate) fn respond(
    front: RequestToken,
    setting: Option<Setting>,
    result: Raw<'_>,
    server: &mut Server<'_>,
    out: &mut dyn Out,
) {
    let done = match setting.is_none_or(|setting| setting.apply(server)) {
        true => server.respond(front, result, out),
        false => server.fail(front, &RpcError::internal("Overloaded: too many subscriptions"), out),
    };
    answered(front, done, server, out);
}

/// Says so where an answer was too large.
pub(crate) fn answered(
    front: RequestToken,
    answered: Result<(), RespondError>,
    server: &mut Server<'_>,
    out: &mut dyn Out,
) {
    if let Err(RespondError::FullNow | RespondError::FullNever) = answered {
        let why = RpcError::internal("The answer is larger than the bridge may keep for the host");
        let _ = server.fail(front, &why, out);
    }
}

/// The members of results that belong to 2026-07-28 alone.
pub(crate) const TERMS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Writes a result of 2026-07-28 without the members that belong to that revision alone.
fn without_terms(result: Raw<'_>) -> Vec<u8> {
    let is_term = |key: &Text<'_>| TERMS.iter().any(|term| key.eq_str(term));
    written(|object| {
        result.members().filter(|(key, _)| !is_term(key)).for_each(|(key, value)| object.member(key, value));
    })
}
