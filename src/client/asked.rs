//! What the server asks: forms, visits, a model's answers, roots; and how it is answered, in the same way in both eras.

use super::answer::QUESTIONS_MAX;
use super::flight::{Flight, State};
use super::held::{ANSWER, Held, QUESTION, VISIT};
use super::reply::{Refusal, Reply};
use super::{Engine, Event, Lost, Oddity, SendError, Token};
use crate::json::{Items, JsonKind, Members, Raw, Text};
use crate::protocol::{ClientFeature, ClientFeatures, code};
use crate::records::Record;
use crate::revision::{Revision, Since};
use crate::rpc::Envelope;
use crate::rpc::begin;
use crate::server;
use crate::sink::{Full, Kind, Out, Writer, part, whole};

/// How many visits are remembered whose end the server has not told.
const VISITS: usize = 64;

/// A question of the server's. `Copy`, and never that of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct QuestionId {
    owner: u32,
    index: u8,
    kind: QuestionKind,
}

impl QuestionId {
    /// What is asked for.
    #[must_use]
    pub const fn kind(self) -> QuestionKind {
        self.kind
    }
}

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum QuestionKind {
    /// A form for the user: `elicitation/create` in form mode. Its params have a `message` and a `requestedSchema`, which
    /// [`Form`](super::form::Form) reads.
    Form,
    /// A page for the user to visit: `elicitation/create` in URL mode. Its params have a `message`, a `url` and mostly an
    /// `elicitationId`.
    Visit,
    /// A model's answer: `sampling/createMessage`. Its params have `messages`, `maxTokens` and more.
    Sampling,
    /// The roots: `roots/list`.
    Roots,
}

impl QuestionKind {
    pub(crate) fn of(method: &Text<'_>, params: Option<Raw<'_>>) -> Option<Self> {
        if method.is("elicitation/create") {
            let mode = params.and_then(|params| params.get("mode")).and_then(|mode| mode.text());
            let visit = mode.is_some_and(|mode| mode.is("url"));
            return Some(if visit { QuestionKind::Visit } else { QuestionKind::Form });
        }
        if method.is("sampling/createMessage") {
            return Some(QuestionKind::Sampling);
        }
        method.is("roots/list").then_some(QuestionKind::Roots)
    }

    /// Whether the client declared that it can be asked this.
    pub(crate) fn is_declared(self, declared: ClientFeatures, revision: Revision, params: Option<Raw<'_>>) -> bool {
        let get = |key| params.and_then(|params| params.get(key)).filter(|value| value.kind() != JsonKind::Null);
        let mode = get("mode");
        // Before there was sampling with tools, these are members that nobody knows.
        let tools = revision.has(Since::SamplingTools) && ["tools", "toolChoice"].iter().any(|key| get(key).is_some());
        declared.has(match self {
            // There are no other modes yet.
            QuestionKind::Form if mode.is_some_and(|mode| !mode.text().is_some_and(|mode| mode.is("form"))) => {
                return false;
            }
            QuestionKind::Form => ClientFeature::ElicitForm,
            QuestionKind::Visit => ClientFeature::ElicitUrl,
            QuestionKind::Roots => ClientFeature::Roots,
            QuestionKind::Sampling if tools => ClientFeature::SamplingTools,
            QuestionKind::Sampling => ClientFeature::Sampling,
        })
    }

    /// Whether the params have what the application will look for.
    pub(crate) fn is_well_formed(self, params: Option<Raw<'_>>) -> bool {
        let get = |key| params.and_then(|params| params.get(key));
        match self {
            QuestionKind::Form => get("requestedSchema").is_some(),
            QuestionKind::Visit => get("url").is_some_and(|url| url.text().is_some()),
            QuestionKind::Sampling => get("messages").is_some_and(super::reply::balanced),
            QuestionKind::Roots => true,
        }
    }

    /// How a server is told that it may not ask this: -32602 for a mode of elicitation (or tools in sampling) that was not
    /// declared beside another one that was; -32601 where nothing of the capability was declared. The specification of
    /// 2025-11-25 has -32602 for a mode, and -32601 for a method that the client does not have.
    fn undeclared(self, declared: ClientFeatures) -> server::Failure<'static> {
        let elicits = declared.has(ClientFeature::ElicitForm) || declared.has(ClientFeature::ElicitUrl);
        match self {
            QuestionKind::Form | QuestionKind::Visit if elicits => {
                server::Failure::invalid_params("The client did not declare this mode of elicitation")
            }
            QuestionKind::Sampling if declared.has(ClientFeature::Sampling) => {
                server::Failure::invalid_params("The client did not declare sampling with tools")
            }
            _ => server::Failure::new(code::METHOD_NOT_FOUND, "The client did not declare this capability"),
        }
    }
}

/// One or more questions that came together.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    token: Option<Token>,
    source: Source<'a>,
}

/// Where the questions are.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// A request of the server's, up to 2025-11-25.
    One(QuestionId, Raw<'a>),
    /// The `inputRequests` of a result of 2026-07-28.
    Inputs(u32, Raw<'a>),
    /// The URLs of an error of 2025-11-25.
    Visits(u32, Raw<'a>),
}

/// One question.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// To [answer](super::ClientOf::reply) it by, now or later.
    pub id: QuestionId,
    /// What is asked for.
    pub kind: QuestionKind,
    /// The question's params, `{}` if it has none.
    pub params: Raw<'a>,
}

impl<'a> Asked<'a> {
    /// The questions of a result, in that round.
    pub(super) fn inputs(token: u32, asking: u32, requests: Raw<'a>) -> Self {
        Asked { token: Some(Token(token)), source: Source::Inputs(asking, requests) }
    }

    /// The visits of an error, in that round.
    pub(super) fn visits(token: u32, asking: u32, visits: Raw<'a>) -> Self {
        Asked { token: Some(Token(token)), source: Source::Visits(asking, visits) }
    }

    /// The request on whose behalf it is asked, where that is known.
    #[must_use]
    pub const fn token(&self) -> Option<Token> {
        self.token
    }

    /// The questions. Each is answered by itself, in any order.
    #[must_use]
    pub fn questions(&self) -> Questions<'a> {
        match self.source {
            Source::One(id, params) => Questions(List::One(Some((id, params)))),
            Source::Inputs(asking, requests) => Questions(List::Inputs(asking, 0, requests.members())),
            Source::Visits(asking, visits) => Questions(List::Visits(asking, 0, visits.items())),
        }
    }
}

/// The questions of an [`Asked`], in their order.
#[derive(Clone, Debug)]
pub struct Questions<'a>(List<'a>);

#[derive(Clone, Debug)]
enum List<'a> {
    One(Option<(QuestionId, Raw<'a>)>),
    Inputs(u32, u8, Members<'a>),
    Visits(u32, u8, Items<'a>),
}

impl<'a> Iterator for Questions<'a> {
    type Item = Question<'a>;

    fn next(&mut self) -> Option<Question<'a>> {
        let (id, params) = match &mut self.0 {
            List::One(one) => one.take()?,
            List::Inputs(owner, index, requests) => {
                let (_, request) = requests.next()?;
                let params = request.get("params");
                let kind = QuestionKind::of(&request.get("method")?.text()?, params)?;
                let id = QuestionId { owner: *owner, index: *index, kind };
                *index += 1;
                (id, params.unwrap_or(Raw::constant("{}")))
            }
            List::Visits(owner, index, visits) => {
                let id = QuestionId { owner: *owner, index: *index, kind: QuestionKind::Visit };
                *index += 1;
                (id, visits.next()?)
            }
        };
        Some(Question { id, kind: id.kind, params })
    }
}

impl Engine<'_> {
    /// A request of the server's: answered here if it can be, refused if it may not be asked, else a question.
    pub(crate) fn request<'a>(
        &mut self,
        exchange: Option<u64>,
        envelope: &Envelope<'a>,
        id: Raw<'a>,
        method: Text<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<Event<'a>>, Full> {
        if self.is_modern() {
            // No answer either: over HTTP there is no way to send one.
            return Ok(Some(Event::Ignored(Oddity::BadRequest)));
        }
        if method.is("ping") {
            respond(out, id, &mut |out| out.put(b"{}"))?;
            return Ok(None);
        }
        let params = envelope.params;
        let revision = self.revision.unwrap_or(Revision::V2024_11_05);
        let (failure, oddity) = match QuestionKind::of(&method, params) {
            None => (server::Failure::method_not_found(), Oddity::BadRequest),
            Some(kind) if !kind.is_declared(self.declared(), revision, params) => {
                (kind.undeclared(self.declared()), Oddity::Undeclared)
            }
            Some(kind) if !kind.is_well_formed(params) => {
                (server::Failure::invalid_params("Invalid params"), Oddity::BadRequest)
            }
            Some(kind) => match self.keep_question(id, kind) {
                Some(question) => {
                    if let Some(visit) = params.filter(|_| kind == QuestionKind::Visit) {
                        self.keep_visit(visit);
                    }
                    let token = exchange.and_then(|wire| self.on_wire(wire)).map(|flight| Token(flight.token));
                    let source = Source::One(question, params.unwrap_or(Raw::constant("{}")));
                    return Ok(Some(Event::Asked(Asked { token, source })));
                }
                None => (server::Failure::internal("No room for another question"), Oddity::NoRoom),
            },
        };
        server::respond_failure(out, Some(id.as_bytes()), &failure)?;
        Ok(Some(Event::Ignored(oddity)))
    }

    /// `None` if there is no room for it, or if the server asks without end while something is in flight.
    fn keep_question(&mut self, id: Raw<'_>, kind: QuestionKind) -> Option<QuestionId> {
        if self.used == 0 {
            self.questions = 0;
        }
        if self.questions >= u16::from(self.rounds_max) * QUESTIONS_MAX as u16 {
            return None;
        }
        let owner = self.next_wire();
        self.held.push(owner, QUESTION, kind as u8, &[id.as_bytes()]).ok()?;
        self.last_wire = owner;
        self.questions += 1;
        Some(QuestionId { owner, index: 0, kind })
    }

    /// Remembers the `elicitationId` of a visit: only of such a one the server may say that it is over. The oldest is
    /// forgotten for the newest; where the store is too small, the end of the visit is not told.
    pub(crate) fn keep_visit(&mut self, visit: Raw<'_>) {
        let Some(id) = visit.get("elicitationId").and_then(|id| id.text()) else { return };
        let visits = || self.held.iter().filter(|record| record.kind == VISIT);
        let oldest = visits().nth(VISITS - 1).and_then(|_| visits().next()).map(|oldest| oldest.owner);
        if let Some(oldest) = oldest {
            self.drop_held(oldest);
        }
        let owner = self.next_wire();
        if self.held.push(owner, VISIT, 0, &[b"\"", id.raw(), b"\""]).is_ok() {
            self.last_wire = owner;
        }
    }

    /// Whether the server has asked for that visit, and not said yet that it is over.
    pub(crate) fn ends_visit(&mut self, id: &Text<'_>) -> bool {
        let same = |record: &Record<'_>| Raw::trusted(record.data).text().is_some_and(|known| known.same(id));
        let mut known = false;
        // Several visits may have the same id.
        while let Some(visit) = self.held.iter().find(|record| record.kind == VISIT && same(record)) {
            self.drop_held(visit.owner);
            known = true;
        }
        known
    }

    /// Answers a question. When all questions of a request are answered, [`advance`](super::ClientOf::advance) sends it
    /// again.
    ///
    /// # Errors
    /// [`SendError::Stale`] if nobody wants the answer any more; [`SendError::NoRoom`] if it does not fit what is held.
    pub fn reply(&mut self, question: QuestionId, reply: &Reply<'_>, out: &mut dyn Out) -> Result<(), SendError> {
        if let Some(token) = self.asking(question) {
            return self.keep_answer(token, question, reply);
        }
        let revision = self.revision.unwrap_or(Revision::V2024_11_05);
        let id = self.question_id(question).ok_or(SendError::Stale)?;
        respond(out, id, &mut |out| reply.write(out, revision))?;
        self.drop_held(question.owner);
        Ok(())
    }

    /// Answers a question with an error. Under 2026-07-28, which has no errors there, a form or a visit is declined, and
    /// of a request that asks for anything else nothing more comes than [`Lost::Refused`].
    ///
    /// # Errors
    /// As [`reply`](super::ClientOf::reply).
    pub fn refuse(&mut self, question: QuestionId, refusal: &Refusal<'_>, out: &mut dyn Out) -> Result<(), SendError> {
        if let Some(token) = self.asking(question) {
            return match question.kind {
                QuestionKind::Form | QuestionKind::Visit => self.keep_answer(token, question, &Reply::decline()),
                _ => {
                    self.lose(token, Lost::Refused);
                    Ok(())
                }
            };
        }
        let id = self.question_id(question).ok_or(SendError::Stale)?;
        let failure = server::Failure::new(refusal.code, refusal.message);
        server::respond_failure(out, Some(id.as_bytes()), &failure)?;
        self.drop_held(question.owner);
        Ok(())
    }

    /// The request in flight that waits for this answer.
    fn asking(&self, question: QuestionId) -> Option<u32> {
        let bit = 1u16.checked_shl(question.index.into()).unwrap_or(0);
        let waits = |flight: &&Flight| flight.state == State::Asked && flight.asking == question.owner;
        let flight = self.taken().iter().find(waits)?;
        (flight.asked & bit != 0 && flight.answered & bit == 0).then_some(flight.token)
    }

    /// The id of a request of the server's.
    fn question_id(&self, question: QuestionId) -> Option<Raw<'_>> {
        let found = self.held.iter().find(|record| record.owner == question.owner && record.kind == QUESTION)?;
        Some(Raw::trusted(found.data))
    }

    fn keep_answer(&mut self, token: u32, question: QuestionId, reply: &Reply<'_>) -> Result<(), SendError> {
        let revision = self.revision.unwrap_or(Revision::V2026_07_28);
        let visits = self.flight(token).is_some_and(|flight| flight.visits);
        if visits && !reply.accepts() {
            self.lose(token, Lost::Refused);
            return Ok(());
        }
        if !visits {
            let mut answer =
                Held::begin(&mut self.held, token, ANSWER, question.index).map_err(|_| SendError::NoRoom)?;
            if part(&mut answer, |out| reply.write(out, revision)).is_err() {
                answer.drop();
                return Err(SendError::NoRoom);
            }
        }
        if let Some(flight) = self.flight_mut(token) {
            flight.answered |= 1u16.checked_shl(question.index.into()).unwrap_or(0);
            if flight.answered == flight.asked {
                flight.state = State::Retry;
            }
        }
        Ok(())
    }

    /// The server does not want the answer to a request of its own any more.
    pub(crate) fn withdrawn(&mut self, id: Raw<'_>) -> Option<QuestionId> {
        let same = |data: &[u8]| crate::rpc::same_id(data, id.as_bytes());
        let found = self.held.iter().find(|record| record.kind == QUESTION && same(record.data))?;
        let question = QuestionId { owner: found.owner, index: 0, kind: kind_of(found.tag) };
        self.drop_held(question.owner);
        Some(question)
    }

    /// The connection is gone: nobody waits for answers to the server's requests.
    pub(crate) fn forget_questions(&mut self) {
        self.held.remove(|record| matches!(record.kind, QUESTION | VISIT));
    }
}

/// The kind that was noted with a question.
fn kind_of(tag: u8) -> QuestionKind {
    const KINDS: [QuestionKind; 3] = [QuestionKind::Form, QuestionKind::Visit, QuestionKind::Sampling];
    KINDS.into_iter().find(|&kind| kind as u8 == tag).unwrap_or(QuestionKind::Roots)
}

/// Writes a response with a result.
fn respond(
    out: &mut dyn Out,
    id: Raw<'_>,
    result: &mut dyn FnMut(&mut Writer<'_>) -> Result<(), Full>,
) -> Result<(), Full> {
    whole(out, Kind::Result, |out| {
        begin(out, id.as_bytes(), ",\"result\":");
        result(out)?;
        out.put(b"}")
    })
}
