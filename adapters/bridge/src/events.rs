//! The bridge on the side of the server: the events of the client behind.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use mcp_sansio::client::{
    ChangeNotification, ClientEvent, ClientHandle, InitializeResult, InputRequests, PendingId, ProtocolViolation,
    RequestError, Subscriptions, TransportError,
};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Object, OwnedRaw, Raw, Text};
use mcp_sansio::protocol::{LoggingLevel, ServerCapability as Cap, meta};
use mcp_sansio::server::{IncomingRequest, Millis, RequestToken, ServerChange};

use crate::Bridge;
use crate::bridge::{Asked, EMPTY, End, NOT_ASKED, Output, key, own};
use crate::hello::Hello;
use crate::requests::{HostRequest, Question, RequestState, Setting};
use crate::write::{replaced, written};

/// The reason for a subscription that a server of 2026-07-28 leaves out of its acknowledgement.
const NOT_AGREED: &str = "The server has not agreed to this subscription";

impl Bridge {
    /// Takes an event of the client behind. Its program gives it all of them.
    pub fn event(&mut self, event: ClientEvent<'_>, link: &mut ClientHandle<'_, '_>, now: Millis) {
        self.behind.hear(now);
        match event {
            ClientEvent::Connected(hello) => self.connected(&hello, link, now),
            ClientEvent::Unconnected(why) => self.failed(&why.to_string(), now),
            ClientEvent::Closed => self.failed("the connection has ended", now),
            ClientEvent::Done { token, outcome, .. } => self.done(token, outcome, link, now),
            ClientEvent::Asked(asked) => self.asked_by_server(&asked, link, now),
            ClientEvent::Withdrawn { question, .. } => {
                if let Some(at) = self.asked.iter().position(|asked| asked.question == question) {
                    let asked = self.asked.remove(at);
                    self.take_back(&asked);
                }
            }
            ClientEvent::Progress { token, done, total, message } => self.progress(token, done, total, message),
            ClientEvent::Log { token, level, logger, data } => {
                self.log(token, level.unwrap_or(LoggingLevel::Info), logger, data);
            }
            ClientEvent::Changed { what, .. } => match what {
                ChangeNotification::Tools => self.publish(ServerChange::Tools),
                ChangeNotification::Prompts => self.publish(ServerChange::Prompts),
                ChangeNotification::Resources => self.publish(ServerChange::Resources),
                ChangeNotification::Resource(uri) => self.publish(ServerChange::Resource(&uri.to_string())),
                _ => {}
            },
            ClientEvent::ElicitationComplete { id } => {
                let id = id.to_string();
                let its = self.visits.iter().find(|visit| visit.0 == id).map(|visit| visit.1);
                // After its end there is no way to its host alone.
                let its = its.filter(|its| self.requests.iter().any(|request| request.front == *its));
                self.about(its.or_else(|| self.newest()), move |server, out| {
                    let _ = server.elicitation_complete(&id, out);
                });
            }
            ClientEvent::Notification { method, params } => {
                let (method, params) = (method.to_string(), params.map(own));
                // That of a stream names its request, whose id is another one at the host.
                let own = params.as_ref().and_then(|params| params.raw().get("_meta"));
                let stream = own.and_then(|own| own.get(meta::SUBSCRIPTION_ID)?.u64());
                let wire_id = |request: &HostRequest| link.client.wire_id(request.back()?);
                let front = match stream {
                    Some(_) => self.requests.iter().find(|request| wire_id(request) == stream).map(|found| found.front),
                    None => self.newest(),
                };
                if stream.is_some() && front.is_none() {
                    // The host has cancelled it.
                    return;
                }
                self.about(front, move |server, out| {
                    let params = params.as_ref().map(OwnedRaw::raw);
                    let id = front.filter(|_| stream.is_some()).and_then(|front| server.wire_id(front));
                    let renamed = params.zip(id).map(|(params, id)| renamed(params, id));
                    let params = renamed.as_deref().and_then(|renamed| Raw::parse(renamed).ok()).or(params);
                    let _ = server.notify(&method, params, out);
                });
            }
            ClientEvent::Listening(agreed) => self.acknowledged(&agreed, link, now),
            // The first words of a board, or the half line that its reset has left.
            ClientEvent::Ignored(ProtocolViolation::NoMessage) if self.behind.is_open() => {
                self.noise = true;
                self.begin_check(link);
            }
            _ => {}
        }
        self.pull();
    }

    /// Passes progress on, with the token of the host.
    fn progress(&mut self, of: PendingId, done: Raw<'_>, total: Option<Raw<'_>>, message: Option<Text<'_>>) {
        let request = self.requests.iter().find(|request| request.back() == Some(of));
        let Some((front, Some(token))) = request.map(|request| (request.front, &request.progress)) else { return };
        let params = written(|params| {
            params.raw("progressToken", token.raw());
            params.raw("progress", done);
            params.raw_if("total", total);
            params.text_if("message", message.map(|message| message.to_string()).as_deref());
        });
        self.about(Some(front), move |server, out| {
            let _ = server.notify("notifications/progress", Raw::parse(&params).ok(), out);
        });
    }

    /// Passes a log message on. Over lines it names no request, and belongs to the newest.
    fn log(&mut self, of: Option<PendingId>, level: LoggingLevel, logger: Option<Text<'_>>, data: Raw<'_>) {
        let is_its = |request: &&HostRequest| request.is_sent() && of.is_none_or(|of| request.back() == Some(of));
        let request = self.requests.iter().rev().find(is_its);
        let logger = logger.map(|logger| logger.to_string());
        match &mut self.outputs {
            None => {
                let front = request.filter(|request| request.modern).map(|request| request.front);
                let info = self.hello.info();
                let _ = self.server.log_data(&info, front, level, logger.as_deref(), data, &mut self.out);
            }
            Some(outputs) => {
                let (request, data) = (request.map(|request| request.front), own(data));
                outputs.push_back(Output::Log { request, level, logger, data });
            }
        }
    }

    fn connected(&mut self, hello: &InitializeResult<'_>, link: &mut ClientHandle<'_, '_>, now: Millis) {
        self.behind.connected(now, &self.limits);
        (self.check, self.noise) = (None, false);
        self.hello = Hello::of(hello.result);
        self.follow(link, true);
        // From 2026-07-28 on a server logs for those alone who ask; a host before that asks for nothing.
        let is_old = self.host.as_ref().is_none_or(|host| !host.is_modern());
        let level = self.level.or((is_old && hello.revision.is_modern()).then_some(LoggingLevel::Info));
        if let Some(level) = level.filter(|_| self.hello.offered.has(Cap::Logging)) {
            let _ = link.client.set_log_level(level, link.out);
        }
        // Another server may have come.
        self.publish(ServerChange::All);
        self.release(Some(link), now);
        self.send_waiting(link, now);
    }

    /// Sends the requests that have waited, in their order.
    fn send_waiting(&mut self, link: &mut ClientHandle<'_, '_>, now: Millis) {
        let waiting = self.requests.iter().filter(|request| request.is_waiting());
        for front in waiting.map(|request| request.front).collect::<Vec<_>>() {
            let Some(at) = self.requests.iter().position(|request| request.front == front) else { continue };
            let line = self.requests.get_mut(at).map(|request| core::mem::take(&mut request.line)).unwrap_or_default();
            let mut message = IncomingRequest::empty();
            if message.read(&line).is_ok() {
                self.send(at, &message, link, now);
            }
            if let Some(request) = self.requests.iter_mut().find(|request| request.front == front) {
                request.line = line;
            }
        }
    }

    fn done(
        &mut self,
        token: PendingId,
        outcome: Result<Raw<'_>, RequestError<'_>>,
        link: &mut ClientHandle<'_, '_>,
        now: Millis,
    ) {
        if self.check == Some(token) {
            return self.checked(outcome, link, now);
        }
        if self.listen == Some(token) {
            self.listen = None;
            // The event `Closed` follows the outcomes of all requests, each with its own reason.
            if let Err(RequestError::Lost(why)) = outcome
                && !matches!(why, TransportError::Closed | TransportError::Unsent)
            {
                self.failed(&why.to_string(), now);
            }
            return;
        }
        let Some(at) = self.requests.iter().position(|request| request.back() == Some(token)) else { return };
        match outcome {
            Ok(result) => self.succeeded(at, result, link, now),
            Err(RequestError::Error(error)) if error.is_not_opened() && !link.client.is_modern() => {
                // The board behind the wire was reset. What else was under way may have been executed before.
                self.behind.anew();
                link.client.reconnect(TransportError::Closed);
                self.repeat(at, TransportError::SessionLost, now);
            }
            Err(RequestError::Error(error)) => self.end(at, End::Error(error), now),
            Err(RequestError::Lost(why)) => {
                self.repeat(at, why, now);
                match why {
                    TransportError::Unreachable => self.failed(&why.to_string(), now),
                    TransportError::SessionLost => self.behind.anew(),
                    _ => {}
                }
            }
        }
    }

    /// Takes the outcome of a check, and sends what has waited for it.
    fn checked(&mut self, outcome: Result<Raw<'_>, RequestError<'_>>, link: &mut ClientHandle<'_, '_>, now: Millis) {
        self.check = None;
        match outcome {
            Ok(result) if link.client.is_modern() => {
                let hello = Hello::of(result);
                if !hello.is_same(&self.hello) || core::mem::take(&mut self.noise) {
                    self.hello = hello;
                    self.publish(ServerChange::All);
                }
                // A server that has begun anew does not know the listen, and no answer shows it.
                self.follow(link, true);
            }
            Err(RequestError::Lost(TransportError::SessionLost)) => return self.behind.anew(),
            Err(RequestError::Lost(why)) => return self.failed(&format!("no answer to a check: {why}"), now),
            _ => {}
        }
        self.send_waiting(link, now);
    }

    /// Answers a request with the result of the server, and notes what it has set.
    fn succeeded(&mut self, at: usize, result: Raw<'_>, link: &mut ClientHandle<'_, '_>, now: Millis) {
        let setting = self.requests.get(at).and_then(|request| request.setting.clone());
        self.end(at, End::Result(result), now);
        let Some(setting) = setting else { return };
        if let Setting::Subscribed(uri, on) = setting {
            // Until the program gives the URIs of all hosts.
            if on && self.outputs.is_some() {
                self.wanted.push(uri.clone());
            }
            if !link.client.is_modern() {
                self.uris.retain(|known| *known != uri);
                self.uris.extend(on.then_some(uri));
                self.uris.sort_unstable();
            }
        }
        self.follow(link, false);
    }

    /// Takes the acknowledgement of a listen: that for all changes, or one in the place of a `resources/subscribe`.
    fn acknowledged(&mut self, agreed: &Subscriptions, link: &mut ClientHandle<'_, '_>, now: Millis) {
        if let Some(at) = self.requests.iter().position(|request| request.back() == Some(agreed.token)) {
            match agreed.uris {
                0 => self.end(at, End::Failed(RpcError::invalid_params(NOT_AGREED)), now),
                _ => self.succeeded(at, EMPTY, link, now),
            }
            let _ = link.cancel(agreed.token, None);
        } else if self.listen == Some(agreed.token) && core::mem::replace(&mut self.listening, true) {
            // The client has opened its listen anew: changes may have been missed.
            self.publish(ServerChange::All);
        }
    }

    /// Lets a request wait for the next connection if the server has surely not executed it, else ends it.
    fn repeat(&mut self, at: usize, why: TransportError, now: Millis) {
        let Some(request) = self.requests.get_mut(at) else { return };
        // To set the same twice does no harm.
        let may_repeat = why.is_unsent() || request.setting.is_some();
        if may_repeat && request.is_sent() && !request.line.is_empty() && now < request.until {
            return request.waits_again();
        }
        let may = if why.is_unsent() { "was not executed" } else { "may have been executed" };
        let words = format!("The server behind the bridge was lost; this request {may}: {why}");
        self.end(at, End::Failed(RpcError::internal(&words)), now);
    }

    /// Reports that the connection was lost or could not be opened; the next one is opened after a pause. The
    /// client reports its own losses as events.
    pub fn failed(&mut self, why: &str, now: Millis) {
        if !self.behind.lost(why.into(), now, &self.limits) {
            return;
        }
        while let Some(at) = self.requests.iter().position(|request| !request.is_waiting()) {
            match self.requests.get(at).map(HostRequest::state) {
                // The host has its answer to this round, and gets an error when it sends the next one.
                Some(RequestState::Parked { .. }) => self.end(at, End::Cancelled, now),
                _ => self.repeat(at, TransportError::Closed, now),
            }
        }
        for asked in core::mem::take(&mut self.asked) {
            self.take_back(&asked);
        }
        (self.listen, self.check) = (None, None);
    }

    /// Writes `notifications/cancelled` for a question to a host up to 2025-11-25.
    pub(crate) fn take_back(&mut self, asked: &Asked) {
        let params = format!("{{\"requestId\":{}}}", asked.id);
        self.about(asked.front, move |server, out| {
            if let Ok(params) = Raw::parse(params.as_bytes()) {
                let _ = server.notify("notifications/cancelled", Some(params), out);
            }
        });
    }

    /// Returns the newest request.
    fn newest(&self) -> Option<RequestToken> {
        self.requests.last().map(|request| request.front)
    }

    /// Passes questions of the server on: as requests, or as a round of the request that they belong to.
    fn asked_by_server(&mut self, asked: &InputRequests<'_>, link: &mut ClientHandle<'_, '_>, now: Millis) {
        let own = asked.token.and_then(|token| self.requests.iter().position(|request| request.back() == Some(token)));
        // Up to 2025-11-25 a question over lines does not say whose it is.
        let at = own.or_else(|| self.newest_that_asks());
        let request = at.and_then(|at| self.requests.get(at));
        let front = request.map(|request| request.front);
        let is_modern = request.map_or(self.host.as_ref().is_some_and(crate::Host::is_modern), |one| one.modern);
        let mut round = Vec::new();
        for question in asked.questions() {
            let refusal = match () {
                () if self.open_questions() + round.len() >= self.limits.questions => "Too many questions are open",
                () if is_modern && at.is_none() => "No request is under way that could ask",
                () if is_modern => {
                    round.push(Question { id: question.id, params: OwnedRaw::new(question.params) });
                    continue;
                }
                () if self.ask(front, question.id, question.kind.method(), question.params) => continue,
                () => NOT_ASKED,
            };
            let _ = link.refuse(question.id, &RpcError::internal(refusal));
        }
        let Some(at) = at.filter(|_| !round.is_empty()) else { return };
        let is_parked = self.requests.get(at).is_some_and(|request| !request.is_sent());
        match is_parked {
            false => self.require(at, round, now),
            true => {
                for question in round {
                    if let Some(request) = self.requests.get_mut(at) {
                        request.ask_later(question);
                    }
                }
            }
        }
    }

    /// Answers a request of a host of 2026-07-28 with questions
    /// ([multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)).
    pub(crate) fn require(&mut self, at: usize, questions: Vec<Question>, now: Millis) {
        let (number, state) = self.next_round();
        let result = written(|result| {
            result.fixed("resultType", "\"input_required\"");
            let mut list = Object::open(result.key("inputRequests"));
            for (index, question) in questions.iter().enumerate() {
                let mut one = Object::open(list.key(&key(index)));
                one.text("method", question.id.kind().method());
                one.raw("params", question.params.raw());
                one.close();
            }
            list.close();
            result.text("requestState", &state);
        });
        let Some(request) = self.requests.get_mut(at) else { return };
        let front = request.front;
        let asked = questions.iter().map(|question| question.id).collect();
        request.park(number, now.saturating_add(self.limits.question_time), asked);
        if let Ok(result) = Raw::parse(&result) {
            self.respond(front, None, result);
        }
    }
}

/// Returns the params of a notification with another id of its request.
fn renamed(params: Raw<'_>, id: Raw<'_>) -> Vec<u8> {
    let own = params.get("_meta").unwrap_or(EMPTY);
    let own = replaced(own, meta::SUBSCRIPTION_ID, |own| own.raw(meta::SUBSCRIPTION_ID, id));
    replaced(params, "_meta", |params| params.raw_if("_meta", Raw::parse(&own).ok()))
}
