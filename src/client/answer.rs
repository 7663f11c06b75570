//! Responses: which request they answer, and what becomes of it.

use super::flight::{Flight, State};
use super::held::{ANSWER, KEY, STATE};
use super::{Asked, Engine, Event, Lost, Oddity, QuestionKind, Token, words};
use crate::json::{JsonKind, Raw, Text};
use crate::protocol::{ClientFeature, Method, code};
use crate::revision::Revision;
use crate::rpc::Envelope;
use crate::sink::{Full, Out};

/// Why a request has no result.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Failure<'a> {
    /// The server answered with an error.
    Error(RpcError<'a>),
    /// There was no answer that counts.
    Lost(Lost),
}

impl core::fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Failure::Error(error) => error.fmt(f),
            Failure::Lost(lost) => lost.fmt(f),
        }
    }
}

/// An error of JSON-RPC, as the server sent it.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct RpcError<'a> {
    /// Its code, see [`code`]; 0 if it has none.
    pub code: i32,
    /// What it says to people; empty if it says nothing.
    pub message: Text<'a>,
    /// What else it says.
    pub data: Option<Raw<'a>>,
}

impl<'a> RpcError<'a> {
    /// Reads an `error` object.
    #[must_use]
    pub fn read(error: Raw<'a>) -> Self {
        let code = error.get("code").and_then(|code| code.i64()).and_then(|code| i32::try_from(code).ok());
        let message = error.get("message").and_then(|message| message.text());
        RpcError { code: code.unwrap_or(0), message: message.unwrap_or(Text::from_raw(b"")), data: error.get("data") }
    }

    /// Whether it says that there is no such resource, as any revision does.
    #[must_use]
    pub fn is_unknown_resource(&self) -> bool {
        self.code == code::RESOURCE_NOT_FOUND
            || self.code == code::INVALID_PARAMS && self.data.is_some_and(|data| data.get("uri").is_some())
    }

    /// What must be visited first (2025-11-25): an array of elicitations in URL mode.
    pub(crate) fn visits(&self) -> Option<Raw<'a>> {
        let visits = self.data.filter(|_| self.code == code::URL_ELICITATION_REQUIRED)?.get("elicitations")?;
        let whole = visits.items().all(|visit| QuestionKind::Visit.is_well_formed(Some(visit)));
        (whole && (1..=QUESTIONS_MAX).contains(&visits.items().count())).then_some(visits)
    }
}

/// Without control characters, on one line. [`message`](RpcError::message) is as the server wrote it.
impl core::fmt::Display for RpcError<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        words::write_clean(f, self.message, false)?;
        write!(f, " ({})", self.code)
    }
}

/// How much can be asked at once.
pub(crate) const QUESTIONS_MAX: usize = 16;

impl Engine<'_> {
    pub(crate) fn response<'a>(
        &mut self,
        exchange: Option<u64>,
        envelope: &Envelope<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<Event<'a>>, Full> {
        let named = envelope.id.and_then(|id| id.u64()).filter(|&wire| self.is_waited_for(wire));
        let error = envelope.error.filter(|_| envelope.result.is_none());
        // An error in the request's own exchange, or while nothing else is under way, needs no id.
        let meant = named.or_else(|| error.and(exchange)).or_else(|| error.and(self.opening_waits_alone(envelope)));
        let Some(wire) = meant else { return Ok(Some(unknown(envelope))) };
        if self.opening.is_on_wire(wire) {
            return self.opening_answered(wire, envelope, out);
        }
        let Some(flight) = self.on_wire(wire).copied() else { return Ok(Some(unknown(envelope))) };
        if matches!(flight.state, State::Opening | State::Closing) && !self.is_modern() {
            return Ok(self.listen_answered(flight.token, error.is_none()));
        }
        Ok(match (envelope.result, error) {
            (Some(result), None) if envelope.error.is_none() => self.result(&flight, result),
            (None, Some(error)) => self.error(&flight, RpcError::read(error)),
            _ => self.end(&flight, Err(Failure::Lost(Lost::Invalid))),
        })
    }

    fn is_waited_for(&self, wire: u64) -> bool {
        self.opening.is_on_wire(wire) || self.on_wire(wire).is_some()
    }

    /// An error without an id, while an answer to the opening is waited for: it is meant.
    fn opening_waits_alone(&self, envelope: &Envelope<'_>) -> Option<u64> {
        self.opening_waits().filter(|_| is_nameless(envelope))
    }

    fn result<'a>(&mut self, flight: &Flight, result: Raw<'a>) -> Option<Event<'a>> {
        if result.kind() != JsonKind::Object {
            return self.end(flight, Err(Failure::Lost(Lost::Invalid)));
        }
        let kind = result.get("resultType").filter(|_| self.is_modern());
        let Some(kind) = kind else { return self.end(flight, Ok(result)) };
        match kind.text() {
            Some(kind) if kind.is("complete") => self.end(flight, Ok(result)),
            Some(kind) if kind.is("input_required") => match self.input_required(flight, result) {
                Ok(asked) => asked.map(Event::Asked),
                Err(lost) => self.end(flight, Err(Failure::Lost(lost))),
            },
            // Perhaps one of an extension's: only the application knows.
            Some(_) if self.profile.has_extensions() => self.end(flight, Ok(result)),
            _ => self.end(flight, Err(Failure::Lost(Lost::Invalid))),
        }
    }

    /// The outcome of a request; of tools that are listed for another one, a reason to send that again.
    fn end<'a>(&mut self, flight: &Flight, outcome: Result<Raw<'a>, Failure<'a>>) -> Option<Event<'a>> {
        if flight.state == State::Relisting {
            self.relisted(flight.token, outcome.ok());
            return None;
        }
        Some(self.done(flight, outcome))
    }

    /// A request ends with this outcome.
    pub(crate) fn done<'a>(&mut self, flight: &Flight, outcome: Result<Raw<'a>, Failure<'a>>) -> Event<'a> {
        self.close(flight.token);
        Event::Done { token: Token(flight.token), method: flight.method, retried: flight.rounds > 0, outcome }
    }

    fn error<'a>(&mut self, flight: &Flight, error: RpcError<'a>) -> Option<Event<'a>> {
        let mirrors = error.code == code::HEADER_MISMATCH && flight.method == Method::ToolsCall;
        if mirrors && flight.held && !flight.relisted && self.is_modern() {
            self.relist(flight.token);
            return None;
        }
        let visits = error.visits().filter(|_| self.may_visit(flight));
        if let Some(visits) = visits {
            return Some(Event::Asked(self.visits_required(flight, visits)));
        }
        self.end(flight, Err(Failure::Error(error)))
    }

    fn may_visit(&self, flight: &Flight) -> bool {
        self.revision.is_some_and(Revision::has_url_elicitation_error)
            && self.declared().has(ClientFeature::ElicitUrl)
            && flight.held
            && flight.rounds < self.rounds_max
    }

    fn visits_required<'a>(&mut self, flight: &Flight, visits: Raw<'a>) -> Asked<'a> {
        if let Some(flight) = self.flight_mut(flight.token) {
            flight.visits = true;
        }
        visits.items().for_each(|visit| self.keep_visit(visit));
        let asking = self.ask(flight.token, visits.items().count());
        Asked::visits(flight.token, asking, visits)
    }

    /// A request is asked so many questions, or none: then it goes out again. The number of the round.
    fn ask(&mut self, token: u32, count: usize) -> u32 {
        let asking = self.next_wire();
        self.last_wire = asking;
        if let Some(flight) = self.flight_mut(token) {
            flight.ask(asking, count);
        }
        asking
    }

    /// Takes note of what the server wants to know before it answers. `None`: nothing, it merely wants to be asked again.
    fn input_required<'a>(&mut self, flight: &Flight, result: Raw<'a>) -> Result<Option<Asked<'a>>, Lost> {
        let (requests, state) = (result.get("inputRequests"), result.get("requestState"));
        let count = requests.map_or(0, |requests| requests.members().count());
        let broken = requests.is_some_and(|requests| requests.kind() != JsonKind::Object)
            || state.is_some_and(|state| state.kind() != JsonKind::String)
            || (count == 0 && state.is_none());
        if broken || !flight.method.may_ask() || flight.state == State::Relisting {
            return Err(Lost::Invalid);
        }
        if flight.rounds >= self.rounds_max {
            return Err(Lost::TooManyRounds);
        }
        if !flight.held || count > QUESTIONS_MAX {
            return Err(Lost::NoRoom);
        }
        for (index, (key, request)) in requests.iter().flat_map(Raw::members).enumerate() {
            self.may_be_asked(request)?;
            // An answer could not say which of them it is for.
            if requests.iter().flat_map(Raw::members).take(index).any(|(other, _)| other.same(&key)) {
                return Err(Lost::Invalid);
            }
        }
        self.keep_questions(flight.token, requests, state)?;
        let asking = self.ask(flight.token, count);
        Ok(requests.filter(|_| count > 0).map(|requests| Asked::inputs(flight.token, asking, requests)))
    }

    fn may_be_asked(&self, request: Raw<'_>) -> Result<(), Lost> {
        let method = request.get("method").and_then(|method| method.text()).ok_or(Lost::Invalid)?;
        let params = request.get("params");
        let kind = QuestionKind::of(&method, params).ok_or(Lost::Invalid)?;
        if !kind.is_declared(self.declared(), Revision::V2026_07_28, params) {
            return Err(Lost::Undeclared);
        }
        if kind.is_well_formed(params) { Ok(()) } else { Err(Lost::Invalid) }
    }

    fn keep_questions(&mut self, token: u32, requests: Option<Raw<'_>>, state: Option<Raw<'_>>) -> Result<(), Lost> {
        self.held.remove(|record| record.owner == token && matches!(record.kind, KEY | ANSWER | STATE));
        if let Some(state) = state {
            self.held.push(token, STATE, 0, &[state.as_bytes()]).map_err(|_| Lost::NoRoom)?;
        }
        for (index, (key, _)) in requests.iter().flat_map(Raw::members).enumerate() {
            self.held.push(token, KEY, index as u8, &[b"\"", key.raw(), b"\""]).map_err(|_| Lost::NoRoom)?;
        }
        Ok(())
    }
}

impl Flight {
    fn ask(&mut self, asking: u32, count: usize) {
        self.wire = 0;
        // Its time stands still, and begins again when it goes out again.
        self.deadline = None;
        if self.options.longest.is_none() {
            self.end = None;
        }
        self.asking = asking;
        self.asked = (1u32 << count).wrapping_sub(1) as u16;
        self.answered = 0;
        self.rounds += 1;
        self.state = if count == 0 { State::Retry } else { State::Asked };
    }
}

/// Whether a result is of the type `complete`, as one without `resultType` is.
pub(crate) fn is_complete(result: Raw<'_>) -> bool {
    let kind = result.get("resultType");
    kind.is_none_or(|kind| kind.text().is_some_and(|kind| kind.is("complete")))
}

/// A response to nothing. Only an error without an id tells of a message that the server could not read: one with an id is
/// late, as when a server answers what was cancelled.
fn unknown<'a>(envelope: &Envelope<'_>) -> Event<'a> {
    Event::Ignored(match envelope.error {
        Some(error) if is_nameless(envelope) => Oddity::Unread { code: RpcError::read(error).code },
        _ => Oddity::UnknownResponse,
    })
}

fn is_nameless(envelope: &Envelope<'_>) -> bool {
    envelope.id.is_none_or(|id| id.kind() == JsonKind::Null)
}
