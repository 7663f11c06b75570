//! Responses: finds the request that a response answers, and changes the state of that request.

use super::pending::PendingState;
use super::server_requests::QUESTIONS_MAX;
use super::{
    Client, ClientEvent, InputRequests, PendingId, ProtocolViolation, ServerRequestKind, TransportError, Turn,
    sanitize::printable_line,
};
use crate::json::{JsonKind, Raw, Text};
use crate::protocol::{ClientCapability, Method, code};
use crate::revision::Revision;
use crate::rpc::Envelope;
use crate::sink::Out;

/// The reason why a request has no result.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "the server answers with an error, or there is no answer")]
pub enum RequestError<'a> {
    /// The server answered with an error.
    Error(ErrorObject<'a>),
    /// There is no valid answer.
    Lost(TransportError),
}

impl core::fmt::Display for RequestError<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RequestError::Error(error) => error.fmt(f),
            RequestError::Lost(lost) => lost.fmt(f),
        }
    }
}

/// The `error` object of a JSON-RPC response.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct ErrorObject<'a> {
    /// `code`, see [`code`]; 0 if the server sent none.
    pub code: i32,
    /// `message`, untrusted text of the server; empty if the server sent none. The whole `error` where a server sends a string in
    /// place of an object.
    pub message: Text<'a>,
    /// `data`. The whole `error` if it is neither an object nor a string.
    pub data: Option<Raw<'a>>,
    /// The whole `error`, as the server wrote it; `None` for one that a layer has made.
    pub raw: Option<Raw<'a>>,
}

impl<'a> ErrorObject<'a> {
    /// Reads an `error` object.
    #[must_use]
    pub fn read(error: Raw<'a>) -> Self {
        if let Some(message) = error.text() {
            return ErrorObject { code: 0, message, data: None, raw: Some(error) };
        }
        if error.kind() != JsonKind::Object {
            return ErrorObject { code: 0, message: Text::EMPTY, data: Some(error), raw: Some(error) };
        }
        let [code, message, data] = error.pick(["code", "message", "data"]);
        let code = code.and_then(|code| code.i64()).and_then(|code| i32::try_from(code).ok());
        let message = message.and_then(|message| message.text());
        ErrorObject { code: code.unwrap_or(0), message: message.unwrap_or(Text::EMPTY), data, raw: Some(error) }
    }

    /// Returns `true` if a server of this library says that it has had no `initialize`: it has started again behind a wire that
    /// stayed open, such as a board that was reset. It has not executed the request. Open the connection again:
    /// [`Client::reconnect`].
    #[must_use]
    pub fn is_not_opened(&self) -> bool {
        let starts = |text: &str| text.starts_with("Not opened: ");
        self.code == code::INVALID_PARAMS && self.message.plain().is_some_and(starts)
    }

    /// Returns `true` if the error means that the resource does not exist: -32002, or -32602 with `data.uri`
    /// ([errors](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#error-handling)).
    #[must_use]
    pub fn is_unknown_resource(&self) -> bool {
        self.code == code::RESOURCE_NOT_FOUND
            || self.code == code::INVALID_PARAMS && self.data.is_some_and(|data| data.get("uri").is_some())
    }

    /// Returns the `elicitations` of the error `URLElicitationRequiredError` (2025-11-25).
    pub(crate) fn visits(&self) -> Option<Raw<'a>> {
        let visits = self.data.filter(|_| self.code == code::URL_ELICITATION_REQUIRED)?.get("elicitations")?;
        let whole = visits.items().all(|visit| ServerRequestKind::UrlElicitation.is_well_formed(Some(visit)));
        (whole && (1..=QUESTIONS_MAX).contains(&visits.items().count())).then_some(visits)
    }
}

/// Writes message and code, as far as they are there, on one line without control characters.
/// [`message`](ErrorObject::message) has the text as the server wrote it.
impl core::fmt::Display for ErrorObject<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match (self.message.raw().is_empty(), self.code) {
            (true, 0) => f.write_str("an error without code and message"),
            (true, code) => write!(f, "an error without message ({code})"),
            (false, 0) => write!(f, "{}", printable_line(self.message)),
            (false, code) => write!(f, "{} ({code})", printable_line(self.message)),
        }
    }
}

impl Client<'_> {
    pub(crate) fn response<'a>(
        &mut self,
        exchange: Option<u64>,
        envelope: &Envelope<'a>,
        out: &mut dyn Out,
    ) -> Turn<'a> {
        let awaited = |&id: &u64| self.opening.is_on_wire(id) || self.on_wire(id).is_some();
        let named = envelope.id.and_then(|id| id.u64()).filter(awaited);
        let response = envelope.response();
        let error = response.and_then(Result::err);
        // An error in the HTTP exchange of the request needs no id, nor does one while only the opening waits for
        // a response.
        let meant = named.or_else(|| {
            error?;
            exchange.or_else(|| self.opening_waits().filter(|_| is_nameless(envelope)))
        });
        let Some(id) = meant else { return Ok(Some(unknown(envelope, error))) };
        if self.opening.is_on_wire(id) {
            return self.opening_answered(id, envelope, out);
        }
        let Some(pending) = self.on_wire(id) else { return Ok(Some(unknown(envelope, error))) };
        let token = pending.token;
        if let Some(state) = pending.subscription().filter(|_| !self.is_modern()) {
            self.subscribe_answered(token, state, error.is_none());
            return Ok(None);
        }
        Ok(match response {
            Some(Ok(result)) => self.result(token, result),
            Some(Err(error)) => self.error(token, ErrorObject::read(error)),
            None => self.end(token, Err(RequestError::Lost(TransportError::Invalid))),
        })
    }

    fn result<'a>(&mut self, token: u32, result: Raw<'a>) -> Option<ClientEvent<'a>> {
        let passes = self.pending(token).is_some_and(|pending| pending.options.any_result);
        let typed = self.is_modern() && !passes;
        let kind = if typed { result.get("resultType").map(|kind| kind.text()) } else { None };
        let outcome = match kind {
            _ if result.kind() != JsonKind::Object => Err(TransportError::Invalid),
            None => Ok(result),
            Some(Some(kind)) if kind.eq_str("complete") => Ok(result),
            Some(Some(kind)) if kind.eq_str("input_required") => match self.input_required(token, result) {
                Ok(asked) => return asked.map(ClientEvent::Asked),
                Err(lost) => Err(lost),
            },
            // A type of an extension, which the application knows.
            Some(Some(kind)) if self.info.result_types.iter().any(|known| kind.eq_str(known)) => Ok(result),
            Some(_) => Err(TransportError::ResultType),
        };
        self.end(token, outcome.map_err(RequestError::Lost))
    }

    /// Ends a request. If it is the `tools/list` of a call, the call is sent again instead.
    fn end<'a>(&mut self, token: u32, outcome: Result<Raw<'a>, RequestError<'a>>) -> Option<ClientEvent<'a>> {
        if self.pending(token).is_some_and(|pending| matches!(pending.state(), PendingState::ListingTools { .. })) {
            self.tools_listed(token, outcome.ok());
            return None;
        }
        self.done(token, outcome)
    }

    /// Ends a request with this outcome.
    pub(crate) fn done<'a>(
        &mut self,
        token: u32,
        mut outcome: Result<Raw<'a>, RequestError<'a>>,
    ) -> Option<ClientEvent<'a>> {
        let ended = self.close(token)?;
        self.leave_layers(token, &mut outcome);
        Some(ClientEvent::Done { token: PendingId(token), method: ended.method, retried: ended.rounds > 0, outcome })
    }

    /// Returns whether the server may answer a request with an error that asks for visits of the user first.
    pub(crate) fn takes_visits(&self) -> bool {
        self.revision.is_some_and(Revision::has_url_elicitation_error)
            && self.declared().has(ClientCapability::ElicitUrl)
    }

    fn error<'a>(&mut self, token: u32, error: ErrorObject<'a>) -> Option<ClientEvent<'a>> {
        let (modern, rounds_max) = (self.is_modern(), self.rounds_max);
        let visits = self.takes_visits();
        let pending = self.pending_mut(token)?;
        if error.code == code::HEADER_MISMATCH && pending.method == Method::ToolsCall && modern && pending.list_tools()
        {
            return None;
        }
        let visits = visits && pending.retryable && pending.rounds < rounds_max;
        if let Some(visits) = error.visits().filter(|_| visits) {
            visits.items().for_each(|visit| self.keep_visit(visit));
            let owner = self.next_round(token, visits.items().count());
            let token = Some(PendingId(token));
            return Some(ClientEvent::Asked(InputRequests { token, owner, one: None, list: visits }));
        }
        self.end(token, Err(RequestError::Error(error)))
    }

    /// Starts the next round of a request, which needs `count` inputs, and returns the number of the round. With
    /// none the client sends the request again.
    fn next_round(&mut self, token: u32, count: usize) -> u32 {
        let round = self.next_id();
        self.last_id = round;
        if let Some(pending) = self.pending_mut(token) {
            pending.input_required(round, count as u8);
        }
        round
    }

    /// Takes an `InputRequiredResult`. Returns `None` if it has no `inputRequests`: the client then sends the
    /// request again with the `requestState`.
    fn input_required<'a>(&mut self, token: u32, result: Raw<'a>) -> Result<Option<InputRequests<'a>>, TransportError> {
        let [requests, state] = result.pick(["inputRequests", "requestState"]);
        let members = || requests.iter().flat_map(Raw::members);
        let count = members().count();
        let broken = requests.is_some_and(|requests| requests.kind() != JsonKind::Object)
            || state.is_some_and(|state| state.kind() != JsonKind::String)
            || (count == 0 && state.is_none());
        let pending = self.pending(token).filter(|_| !broken).ok_or(TransportError::Invalid)?;
        if !pending.method.may_ask() || !matches!(pending.state(), PendingState::Sent { .. }) {
            return Err(TransportError::Invalid);
        }
        if pending.rounds >= self.rounds_max {
            return Err(TransportError::TooManyRounds);
        }
        if !pending.retryable || count > QUESTIONS_MAX {
            return Err(TransportError::NoRoom);
        }
        for (index, (key, request)) in members().enumerate() {
            self.input_request(request)?;
            // An answer with a key that two input requests have would be ambiguous.
            if members().take(index).any(|(other, _)| other.same(&key)) {
                return Err(TransportError::Invalid);
            }
        }
        self.keep_input_requests(token, requests, state)?;
        let (owner, token) = (self.next_round(token, count), Some(PendingId(token)));
        Ok(requests.filter(|_| count > 0).map(|list| InputRequests { token, owner, one: None, list }))
    }
}

/// Reports a response without a request. An error without an id answers a message that the server could not read.
/// An error with an id is late, for example the answer to a cancelled request.
fn unknown<'a>(envelope: &Envelope<'_>, error: Option<Raw<'_>>) -> ClientEvent<'a> {
    ClientEvent::Ignored(match error {
        Some(error) if is_nameless(envelope) => ProtocolViolation::Unread { code: ErrorObject::read(error).code },
        _ => ProtocolViolation::UnknownResponse,
    })
}

fn is_nameless(envelope: &Envelope<'_>) -> bool {
    envelope.id.is_none_or(|id| id.kind() == JsonKind::Null)
}
