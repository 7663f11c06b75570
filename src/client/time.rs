//! What the engine does by itself: opening, sending again, giving up what has taken too long.

use super::flight::{Flight, State, has_come};
use super::held::META;
use super::profile::MetaParts;
use super::request::write_request;
use super::{Engine, Event, Failure, Lost};
use crate::json::{Raw, object::Object, write};
use crate::protocol::Method;
use crate::server::Millis;
use crate::sink::{Full, Kind, Out, whole};

/// A step of a request.
type Step<'m> = fn(&mut Engine<'m>, &Flight, &mut dyn Out) -> Result<Option<Event<'static>>, Full>;

impl<'m> Engine<'m> {
    /// Tells the time and writes what the engine itself has to say: the opening, retries with the answers to questions,
    /// listens, cancellations of what has taken too long. Call it until it gives no event, after everything else and
    /// when [`next_deadline`](super::ClientOf::next_deadline) has come.
    ///
    /// # Errors
    /// [`Full::Now`]: send what is pending, then call again. [`Full::Never`]: a message is larger than the sink; what it
    /// belongs to was given up, and will be told.
    pub fn advance(&mut self, now: Millis, out: &mut dyn Out) -> Result<Option<Event<'static>>, Full> {
        self.now = now;
        // Outcomes first: what finds no room for now must not keep them back.
        if let Some(event) = self.each_flight(out, Self::tell_outcome)? {
            return Ok(Some(event));
        }
        let opened = self.advance_opening(out);
        if matches!(opened, Err(Full::Never)) {
            self.opening_fails(Lost::TooLarge);
        }
        if let Some(event) = opened? {
            return Ok(Some(event));
        }
        self.each_flight(out, Self::go_on)
    }

    /// Advances one request after the other, up to the first event.
    fn each_flight(&mut self, out: &mut dyn Out, step: Step<'m>) -> Result<Option<Event<'static>>, Full> {
        let mut next = 0;
        // How many places are taken may change with each step.
        while let Some(flight) = self.taken().get(next).copied() {
            next += 1;
            if !flight.is_live() {
                continue;
            }
            let event = step(self, &flight, out);
            if matches!(event, Err(Full::Never)) {
                self.lose(flight.token, Lost::TooLarge);
            }
            if let Some(event) = event? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// What has ended, or has taken too long.
    fn tell_outcome(&mut self, flight: &Flight, out: &mut dyn Out) -> Result<Option<Event<'static>>, Full> {
        match flight.state {
            State::Ended(why) => Ok(Some(self.tell_lost(flight, why))),
            State::Resting => Ok(None),
            _ if flight.due(self.now).is_some_and(|due| has_come(due, self.now)) => self.overdue(flight, out),
            _ => Ok(None),
        }
    }

    /// What is to be sent.
    fn go_on(&mut self, flight: &Flight, out: &mut dyn Out) -> Result<Option<Event<'static>>, Full> {
        match flight.state {
            State::Retry => self.send_again(flight, out).map(|()| None),
            State::Relisting if flight.wire == 0 => self.send_relist(flight, out).map(|()| None),
            State::Resting if flight.due(self.now).is_some_and(|due| has_come(due, self.now)) => {
                self.rested(flight, out)
            }
            State::Opening | State::Closing => self.advance_listen(flight, out),
            _ => Ok(None),
        }
    }

    fn tell_lost(&mut self, flight: &Flight, why: Lost) -> Event<'static> {
        self.done(flight, Err(Failure::Lost(why)))
    }

    /// A listen has rested long enough.
    fn rested(&mut self, flight: &Flight, out: &mut dyn Out) -> Result<Option<Event<'static>>, Full> {
        let rested = Flight { state: State::Opening, deadline: None, ..*flight };
        if let Some(flight) = self.flight_mut(flight.token) {
            *flight = rested;
        }
        self.advance_listen(&rested, out)
    }

    /// A request has taken too long.
    fn overdue(&mut self, flight: &Flight, out: &mut dyn Out) -> Result<Option<Event<'static>>, Full> {
        if flight.state == State::Closing {
            // Nobody waits for it.
            self.close(flight.token);
            return Ok(None);
        }
        if flight.wire != 0 {
            write_timed_out(flight.wire, out)?;
        }
        Ok(Some(self.tell_lost(flight, Lost::TimedOut)))
    }

    /// Sends a request again, with the answers to what it was asked.
    fn send_again(&mut self, flight: &Flight, out: &mut dyn Out) -> Result<(), Full> {
        let Some(revision) = self.revision() else { return Ok(()) };
        let (wire, profile) = (self.next_wire(), self.profile);
        let meta = MetaParts {
            progress: flight.options.progress.then_some(wire),
            level: flight.options.level.or(self.level),
            own: self.held_of(flight.token, META),
        };
        write_request(out, wire, flight.method.name(), &mut |params: &mut Object<'_, '_>| {
            self.write_held(flight, params)?;
            profile.write_meta(params, revision, meta)
        })?;
        self.note_sent(flight.token, wire);
        Ok(())
    }

    /// A server found the parameters that HTTP mirrors wrong: the tools are listed again, so that the transport learns
    /// which they are, and the call goes out once more.
    pub(crate) fn relist(&mut self, token: u32) {
        if let Some(flight) = self.flight_mut(token) {
            flight.relisted = true;
            flight.wire = 0;
            flight.state = State::Relisting;
        }
    }

    fn send_relist(&mut self, flight: &Flight, out: &mut dyn Out) -> Result<(), Full> {
        let Some(revision) = self.revision() else { return Ok(()) };
        let (wire, profile) = (self.next_wire(), self.profile);
        let cursor = self.held_of(flight.token, super::held::CURSOR);
        write_request(out, wire, Method::ToolsList.name(), &mut |params| {
            params.raw_if("cursor", cursor)?;
            profile.write_meta(params, revision, MetaParts::default())
        })?;
        self.note_sent(flight.token, wire);
        if let Some(flight) = self.flight_mut(flight.token) {
            flight.state = State::Relisting;
        }
        Ok(())
    }

    /// A page of tools was listed for a call: the next one follows, or the call itself.
    pub(crate) fn relisted(&mut self, token: u32, page: Option<Raw<'_>>) {
        let cursor = page.and_then(|page| page.get("nextCursor")).filter(|cursor| cursor.text().is_some());
        self.held.remove(|record| record.owner == token && record.kind == super::held::CURSOR);
        let kept = cursor.is_some_and(|c| self.held.push(token, super::held::CURSOR, 0, &[c.as_bytes()]).is_ok());
        let rounds_max = self.rounds_max;
        let Some(flight) = self.flight_mut(token) else { return };
        flight.wire = 0;
        let more = kept && flight.rounds < rounds_max;
        flight.rounds = if more { flight.rounds + 1 } else { 0 };
        flight.state = if more { State::Relisting } else { State::Retry };
    }

    /// When [`advance`](super::ClientOf::advance) has something to do at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let left = |deadline: &Millis| deadline.wrapping_sub(self.now) as i64;
        let flights = self.taken().iter().filter_map(|flight| flight.due(self.now));
        flights.chain(self.opening.due()).min_by_key(left)
    }
}

/// Tells the server that it took too long.
pub(crate) fn write_timed_out(wire: u32, out: &mut dyn Out) -> Result<(), Full> {
    match write_cancelled(wire, Some("timed out"), out) {
        Err(Full::Now) => Err(Full::Now),
        // Without room for it ever, the server is left to find out by itself.
        Err(Full::Never) | Ok(()) => Ok(()),
    }
}

/// Tells the server that an answer is not wanted any more.
pub(crate) fn write_cancelled(wire: u32, reason: Option<&str>, out: &mut dyn Out) -> Result<(), Full> {
    whole(out, Kind::Notification, |out| {
        out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":")?;
        let mut params = Object::open(out);
        write::unsigned(params.key("requestId"), wire.into())?;
        params.text_if("reason", reason)?;
        params.finish().put(b"}")
    })
}
