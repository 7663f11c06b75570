//! The client's requests in flight: a fixed table, found by the id on the wire.

use super::{Engine, Lost, SendError, Token};
use crate::protocol::Method;
use crate::server::Millis;

use super::request::{Options, Request};

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    /// It is on the wire.
    Sent,
    /// The server wants answers first; they are being collected.
    Asked,
    /// All answers are there, or none was wanted: it goes out again.
    Retry,
    /// The server found the mirrored arguments wrong: tools are being listed, so that the transport learns them.
    Relisting,
    /// It ended without an answer; this will be told.
    Ended(Lost),
    /// A listen that is to be opened.
    Opening,
    /// A listen that is open, and has said so.
    Open,
    /// A listen that was cut off, and is opened again when its time has come.
    Resting,
    /// A listen of the older revisions that is taken back.
    Closing,
}

/// A place for a request in flight. Where to put them is the caller's choice: the const generic of
/// [`Client`](super::Client).
#[derive(Clone, Copy)]
pub struct Flight {
    pub(crate) token: u32,
    /// Its id on the wire; 0 while it is not there.
    pub(crate) wire: u32,
    pub(crate) state: State,
    pub(crate) method: Method,
    /// Its params are kept, so that it can be sent again.
    pub(crate) held: bool,
    /// What was asked are visits to URLs, with an error of 2025-11-25.
    pub(crate) visits: bool,
    pub(crate) relisted: bool,
    pub(crate) options: Options,
    /// The number of this round of questions.
    pub(crate) asking: u32,
    /// Which questions were asked, and answered.
    pub(crate) asked: u16,
    pub(crate) answered: u16,
    pub(crate) rounds: u8,
    /// Which lists a listen is for.
    pub(crate) lists: u8,
    /// The progress that was reported last, as a [sum](super::notice) of its bytes.
    pub(crate) reported: u32,
    pub(crate) deadline: Option<Millis>,
    /// When it ends, whatever happens.
    pub(crate) end: Option<Millis>,
}

impl Flight {
    /// An empty place.
    pub const FREE: Flight = Flight {
        token: 0,
        wire: 0,
        state: State::Free,
        method: Method::Other,
        held: false,
        visits: false,
        relisted: false,
        options: Options { progress: false, level: None, timeout: None, longest: None, patient: false },
        asking: 0,
        asked: 0,
        answered: 0,
        rounds: 0,
        lists: 0,
        reported: 0,
        deadline: None,
        end: None,
    };

    pub(crate) fn is_live(&self) -> bool {
        self.state != State::Free
    }

    /// The time at which it has taken too long, if there is one that counts now.
    pub(crate) fn due(&self, now: Millis) -> Option<Millis> {
        let left = |deadline: &Millis| deadline.wrapping_sub(now) as i64;
        match self.state {
            State::Free | State::Ended(_) | State::Open => None,
            // The user has all the time there is.
            State::Asked => self.end,
            _ => self.deadline.into_iter().chain(self.end).min_by_key(left),
        }
    }
}

impl core::fmt::Debug for Flight {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Flight").field("state", &self.state).field("method", &self.method).finish_non_exhaustive()
    }
}

/// Whether a time has come; clocks may wrap around.
pub(crate) fn has_come(time: Millis, now: Millis) -> bool {
    now.wrapping_sub(time) as i64 >= 0
}

/// So much later; what is longer than half of the clock's round is taken for that.
pub(crate) fn after(now: Millis, time: Option<Millis>) -> Option<Millis> {
    time.map(|time| now.wrapping_add(time.min(i64::MAX as Millis)))
}

impl Engine<'_> {
    /// How many requests and listens are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.taken().iter().filter(|flight| flight.is_live()).count()
    }

    /// Whether a request has not had its outcome yet.
    #[must_use]
    pub fn is_open(&self, token: Token) -> bool {
        self.flight(token.0).is_some_and(|flight| flight.state != State::Closing)
    }

    /// Whether an answer to the request with this id on the wire is waited for.
    #[must_use]
    pub fn awaits(&self, wire: u64) -> bool {
        self.on_wire(wire).is_some() || (!self.opening.is_ready() && self.opening.is_on_wire(wire))
    }

    /// What is asked by the request with this id on the wire.
    #[must_use]
    pub fn method_of(&self, wire: u64) -> Option<Method> {
        self.on_wire(wire).map(|flight| flight.method)
    }

    /// The id that a request has on the wire at present.
    #[must_use]
    pub fn wire_id(&self, token: Token) -> Option<u64> {
        self.flight(token.0).map(|flight| flight.wire.into()).filter(|&wire| wire != 0)
    }

    /// The places that may be taken. All behind them are free, and need not be looked at for each message.
    pub(crate) fn taken(&self) -> &[Flight] {
        self.flights.get(..self.used).unwrap_or(&[])
    }

    /// The same to change them.
    pub(crate) fn taken_mut(&mut self) -> &mut [Flight] {
        self.flights.get_mut(..self.used).unwrap_or(&mut [])
    }

    /// The next id: never 0, and none that is in use. It is taken once it is noted as the last one.
    pub(crate) fn next_wire(&self) -> u32 {
        let mut wire = self.last_wire;
        loop {
            wire = wire.checked_add(1).unwrap_or(1);
            let mut flights = self.taken().iter().filter(|flight| flight.is_live());
            let used = flights.any(|flight| [flight.token, flight.wire, flight.asking].contains(&wire));
            if !used && !self.opening.is_on_wire(wire.into()) {
                return wire;
            }
        }
    }

    pub(crate) fn flight(&self, token: u32) -> Option<&Flight> {
        self.taken().iter().find(|flight| flight.is_live() && flight.token == token)
    }

    pub(crate) fn flight_mut(&mut self, token: u32) -> Option<&mut Flight> {
        self.taken_mut().iter_mut().find(|flight| flight.is_live() && flight.token == token)
    }

    /// The request that has this id on the wire.
    pub(crate) fn on_wire(&self, wire: u64) -> Option<&Flight> {
        let wire = u32::try_from(wire).ok().filter(|&wire| wire != 0)?;
        self.taken().iter().find(|flight| flight.is_live() && flight.wire == wire)
    }

    /// Takes a place. The request has not been written yet.
    pub(crate) fn admit(&mut self, request: &Request<'_>) -> Result<u32, SendError> {
        let (now, usual, longest, wire) = (self.now, self.timeout, self.longest, self.next_wire());
        let mut places = self.flights.iter_mut().enumerate();
        let (place, flight) = places.find(|(_, flight)| !flight.is_live()).ok_or(SendError::Busy)?;
        self.used = self.used.max(place + 1);
        let options = Options { timeout: request.options.timeout.or(usual), ..request.options };
        let options = if options.patient { Options { timeout: None, longest: None, ..options } } else { options };
        *flight = Flight {
            token: wire,
            wire,
            state: State::Sent,
            method: request.method,
            options,
            deadline: after(now, options.timeout),
            end: after(now, options.end(longest)),
            ..Flight::FREE
        };
        self.last_wire = wire;
        Ok(wire)
    }

    /// Ends a request: its outcome is told, or nobody wants it.
    pub(crate) fn close(&mut self, token: u32) {
        if let Some(flight) = self.flight_mut(token) {
            *flight = Flight::FREE;
        }
        while self.taken().last().is_some_and(|flight| !flight.is_live()) {
            self.used -= 1;
        }
        self.drop_held(token);
    }

    /// A request goes back on the wire under a new id, and its time begins again.
    pub(crate) fn note_sent(&mut self, token: u32, wire: u32) {
        let (now, longest) = (self.now, self.longest);
        self.last_wire = wire;
        if let Some(flight) = self.flight_mut(token) {
            flight.wire = wire;
            flight.state = State::Sent;
            flight.deadline = after(now, flight.options.timeout);
            flight.end = flight.end.or(after(now, flight.options.end(longest)));
        }
    }

    /// A request ends without an answer; [`advance`](super::ClientOf::advance) tells it.
    pub(crate) fn lose(&mut self, token: u32, why: Lost) {
        if let Some(flight) = self.flight_mut(token).filter(|flight| !matches!(flight.state, State::Ended(_))) {
            flight.state = State::Ended(why);
            flight.wire = 0;
        }
    }
}
