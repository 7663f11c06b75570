//! The connection to the server behind: when it is opened, and opened again.

use alloc::string::String;
use mcp_sansio::server::Millis;

use crate::BridgeLimits;

/// The state of the connection behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BehindState {
    /// The host has sent nothing that needs a server.
    Idle,
    /// The program opens a connection now.
    Wanted,
    Opening,
    Open,
    /// Until the time for the next attempt.
    Resting {
        until: Millis,
    },
}

/// All transitions of a [`BehindState`]: from, to, cause. The diagram in `docs/internals/state-machines.md` shows the same.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Idle", "Wanted", "the host's first request"),
    ("Wanted", "Opening", "the program opens it"),
    ("Opening", "Open", "connected"),
    ("Open", "Open", "connected"),
    ("Open", "Opening", "opened anew on the same wire"),
    ("Opening", "Resting", "lost"),
    ("Open", "Resting", "lost"),
    ("Resting", "Wanted", "time"),
];

mcp_sansio::machine!(BehindState, TRANSITIONS: Idle Wanted Opening Open Resting);

/// The connection behind.
#[derive(Debug)]
pub(crate) struct Behind {
    state: BehindState,
    /// The next pause.
    pause: Millis,
    /// The last attempt has failed.
    failed: bool,
    /// The time of the last sign of the server.
    heard: Millis,
    /// The time of the next check, while the connection is open.
    check: Millis,
    /// The reason of the last loss, for errors.
    pub(crate) why: String,
}

impl Behind {
    pub(crate) const fn new(limits: &BridgeLimits) -> Self {
        Behind {
            state: BehindState::Idle,
            pause: limits.first_pause,
            failed: false,
            heard: 0,
            check: Millis::MAX,
            why: String::new(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == BehindState::Open
    }

    /// Returns `true` while the program has a connection, or makes one.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, BehindState::Open | BehindState::Opening)
    }

    /// Returns `true` if the server could not be reached when it was last tried.
    pub(crate) const fn is_away(&self) -> bool {
        self.failed
    }

    /// Notes that the host needs a server.
    pub(crate) fn need(&mut self) {
        if self.state == BehindState::Idle {
            self.state.enter("the host's first request", BehindState::Wanted);
        }
    }

    /// Ends the pause when its time is over.
    pub(crate) fn expire(&mut self, now: Millis) {
        if matches!(self.state, BehindState::Resting { until } if until <= now) {
            self.state.enter("time", BehindState::Wanted);
        }
    }

    /// Returns the time of the last sign of the server.
    pub(crate) const fn heard(&self) -> Millis {
        self.heard
    }

    /// Notes a sign of the server.
    pub(crate) const fn hear(&mut self, now: Millis) {
        self.heard = now;
    }

    /// Returns `true` if the open connection was silent for so long that it is to be checked.
    pub(crate) fn is_silent(&self, now: Millis, limits: &BridgeLimits) -> bool {
        self.is_open() && now.saturating_sub(self.heard) >= limits.check
    }

    /// Returns `true` if the connection is silent and the time of its check has come. Sets the time of the next check.
    pub(crate) fn check_is_due(&mut self, now: Millis, limits: &BridgeLimits) -> bool {
        let is_silent = self.is_silent(now, limits);
        let is_due = self.is_open() && self.check <= now;
        if is_due {
            self.check = if is_silent { now } else { self.heard }.saturating_add(limits.check);
        }
        is_due && is_silent
    }

    /// Returns `true` once when a connection is to be opened.
    pub(crate) fn opens(&mut self) -> bool {
        let wanted = self.state == BehindState::Wanted;
        if wanted {
            self.state.enter("the program opens it", BehindState::Opening);
        }
        wanted
    }

    pub(crate) fn connected(&mut self, now: Millis, limits: &BridgeLimits) {
        if self.is_up() {
            self.state.enter("connected", BehindState::Open);
            self.check = now.saturating_add(limits.check);
            self.pause = limits.first_pause;
            self.failed = false;
        }
    }

    /// Notes that the server has begun anew, and that the client opens its connection again.
    pub(crate) fn anew(&mut self) {
        if self.is_open() {
            self.state.enter("opened anew on the same wire", BehindState::Opening);
        }
    }

    /// Notes a loss, and when the next attempt is. Returns `false` if it was known.
    pub(crate) fn lost(&mut self, why: String, now: Millis, limits: &BridgeLimits) -> bool {
        if !self.is_up() {
            return false;
        }
        self.failed |= self.state == BehindState::Opening;
        self.state.enter("lost", BehindState::Resting { until: now.saturating_add(self.pause) });
        self.pause = self.pause.saturating_mul(2).min(limits.longest_pause);
        self.why = why;
        true
    }

    pub(crate) const fn deadline(&self) -> Option<Millis> {
        match self.state {
            BehindState::Resting { until } => Some(until),
            BehindState::Open if self.check < Millis::MAX => Some(self.check),
            _ => None,
        }
    }
}
