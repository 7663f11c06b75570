//! What is kept so that it can be sent again: params of requests, questions' keys, the server's state, answers, URIs.

use super::Engine;
use super::flight::Flight;
use super::request::Request;
use crate::json::{Raw, object::Object};
use crate::records::Records;
use crate::revision::Revision;
use crate::sink::{Full, Kind, Mark, Out, Sink, part};

/// The kinds of records. Owner is the token of the request, or the number of the question.
pub(crate) const PARAMS: u8 = 1;
pub(crate) const META: u8 = 2;
pub(crate) const STATE: u8 = 3;
/// Of a question under 2026-07-28; the tag is its index.
pub(crate) const KEY: u8 = 4;
/// The tag is the question's index.
pub(crate) const ANSWER: u8 = 5;
/// The id of a question up to 2025-11-25; the tag is its kind.
pub(crate) const QUESTION: u8 = 6;
/// A resource that is listened to; the tag says how far that is.
pub(crate) const URI: u8 = 7;
/// The `elicitationId` of a visit that the server asked for.
pub(crate) const VISIT: u8 = 9;
/// Where the next page of tools begins, while they are listed for a call.
pub(crate) const CURSOR: u8 = 8;

/// A sink at the end of the last record.
pub(crate) struct Held<'h, 'm> {
    records: &'h mut Records<'m>,
    at: usize,
    len: usize,
}

impl<'h, 'm> Held<'h, 'm> {
    /// Begins a record.
    pub(crate) fn begin(records: &'h mut Records<'m>, owner: u32, kind: u8, tag: u8) -> Result<Self, Full> {
        let at = records.begin(owner, kind, tag).map_err(|_| Full::Never)?;
        Ok(Held { records, at, len: 0 })
    }

    /// Takes it back.
    pub(crate) fn drop(self) {
        self.records.drop_last(self.at);
    }
}

impl Sink for Held<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.records.extend(self.at, bytes).map_err(|_| Full::Never)?;
        self.len += bytes.len();
        Ok(())
    }

    fn room(&self) -> usize {
        self.records.limit().saturating_sub(self.records.used())
    }
}

/// There are no messages in it: what writes values can write them here.
impl Out for Held<'_, '_> {
    fn begin(&mut self, _: Kind) -> Result<(), Full> {
        Ok(())
    }

    fn end(&mut self) {}

    fn mark(&self) -> Mark {
        Mark::new(self.len)
    }

    fn roll_back(&mut self, mark: Mark) {
        self.len = mark.at();
        self.records.shorten(self.at, self.len);
    }

    fn hold(&mut self, _: bool) {}

    fn held(&self) -> bool {
        false
    }

    fn capacity(&self) -> usize {
        self.records.limit()
    }
}

impl Engine<'_> {
    /// Keeps what a request needs to be sent again, if the server may ask back for it. Where the store is too small it
    /// goes out all the same; only a question for it then ends it.
    pub(crate) fn hold(&mut self, token: u32, request: &Request<'_>, revision: Revision) -> Result<(), Full> {
        let asks_back = revision.is_modern() || revision.has_url_elicitation_error();
        if !request.method.may_ask() || !asks_back || self.held.limit() == 0 {
            return Ok(());
        }
        let used = self.held.used();
        let kept = self.hold_parts(token, request, revision);
        match kept {
            Ok(()) => {
                if let Some(flight) = self.flight_mut(token) {
                    flight.held = true;
                }
            }
            Err(_) => self.held.drop_last(used),
        }
        Ok(())
    }

    fn hold_parts(&mut self, token: u32, request: &Request<'_>, revision: Revision) -> Result<(), Full> {
        let mut params = Held::begin(&mut self.held, token, PARAMS, 0)?;
        part(&mut params, |out| {
            let mut object = Object::open(out);
            request.write_members(&mut object, revision)?;
            object.close()
        })?;
        match request.own_meta() {
            Some(meta) => {
                self.held.push(token, META, 0, &[meta.as_bytes()]).map_err(|_| Full::Never)?;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Forgets what is held of a request, a question or a visit.
    pub(crate) fn drop_held(&mut self, owner: u32) {
        self.held.remove(|record| record.owner == owner);
    }

    /// What was kept of a request, of one kind.
    pub(crate) fn held_of(&self, token: u32, kind: u8) -> Option<Raw<'_>> {
        let found = self.held.iter().find(|record| record.owner == token && record.kind == kind)?;
        Some(Raw::trusted(found.data))
    }

    /// Writes the members of a request's params that were kept, the answers to its questions and the server's state.
    pub(crate) fn write_held(&self, flight: &Flight, params: &mut Object<'_, '_>) -> Result<(), Full> {
        if let Some(members) = self.held_of(flight.token, PARAMS) {
            params.spread(members)?;
        }
        if flight.visits {
            return Ok(());
        }
        if flight.asked != 0 {
            let mut responses = Object::open(params.key("inputResponses"));
            for index in (0..16).filter(|index| flight.asked & 1 << index != 0) {
                let part = |kind| {
                    let mut records = self.held.iter();
                    records.find(|r| r.owner == flight.token && r.kind == kind && r.tag == index).map(|r| r.data)
                };
                let (Some(key), Some(answer)) = (part(KEY), part(ANSWER)) else { continue };
                if let Some(key) = Raw::trusted(key).text() {
                    responses.member(key, Raw::trusted(answer))?;
                }
            }
            responses.close()?;
        }
        params.raw_if("requestState", self.held_of(flight.token, STATE))
    }
}
