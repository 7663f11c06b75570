//! Trying a service out in memory: no process, no clock, input cut wherever it hurts.
//!
//! ```
//! use mcp_sansio::service::{Call, Outcome, Service, Tool};
//! use mcp_sansio::testing::{Conversation, Cut};
//!
//! fn hello(_: &mut (), call: &mut Call<'_>) -> Outcome {
//!     call.text("hello")
//! }
//! static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello)];
//!
//! let service = Service::new("greeter", "1.0").tools(&TOOLS);
//! for cut in [Cut::Whole, Cut::Bytes, Cut::Random(7)] {
//!     let mut conversation = Conversation::new(&service, ()).cut(cut);
//!     conversation.initialize("2025-06-18");
//!     let replies = conversation.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}"#);
//!     assert!(replies[0].contains(r#""text":"hello""#));
//!     assert!(conversation.finish().is_empty());
//! }
//! ```

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::server::{Change, Limits, Millis, Progress, SendError, Token, Told};
use crate::service::{Call, Outcome, Service};
use crate::session::{Next, Session};
use crate::sink::Lines;

/// How the input reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// Whole lines.
    Whole,
    /// Byte by byte.
    Bytes,
    /// In pieces of so many bytes.
    Pieces(usize),
    /// In pieces of any size, the same ones for the same seed.
    Random(u64),
}

/// A client and a service in one place: say a line, get the lines that come back.
#[derive(Debug)]
pub struct Conversation<'s, S: 'static> {
    service: &'s Service<'s, S>,
    state: S,
    session: Session<'static, Lines<Vec<u8>>, 16>,
    cut: Cut,
    seed: u64,
    now: Millis,
    received: Vec<u8>,
}

/// Turns of the loop after which a session that asks for room again and again counts as spinning.
const TURNS: usize = 100_000;

impl<'s, S> Conversation<'s, S> {
    /// Nothing has been said.
    #[must_use]
    pub fn new(service: &'s Service<'s, S>, state: S) -> Self {
        let session = Session::growing(Limits::default(), Lines::new(Vec::new()));
        Conversation { service, state, session, cut: Cut::Whole, seed: 1, now: 0, received: Vec::new() }
    }

    /// Cuts the input.
    #[must_use]
    pub fn cut(mut self, cut: Cut) -> Self {
        self.cut = cut;
        if let Cut::Random(seed) = cut {
            self.seed = seed | 1;
        }
        self
    }

    /// Opens it as a client of a legacy revision that can be asked everything; the answer to `initialize`, id 1.
    pub fn initialize(&mut self, revision: &str) -> String {
        let answer = self.say(&format!(
            concat!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{}","#,
                r#""capabilities":{{"sampling":{{}},"elicitation":{{"form":{{}},"url":{{}}}},"roots":{{}}}},"#,
                r#""clientInfo":{{"name":"test","version":"1"}}}}}}"#
            ),
            revision
        ));
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer.into_iter().next().unwrap_or_default()
    }

    /// Says one line, without its newline; the lines that come back.
    pub fn say(&mut self, line: &str) -> Vec<String> {
        let bytes = [line.as_bytes(), b"\n"].concat();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            self.work();
            let wanted = self.step(rest.len());
            let space = self.session.space();
            let n = space.len().min(wanted).min(rest.len());
            let (now, later) = rest.split_at_checked(n).unwrap_or((rest, &[]));
            crate::sink::copy(space, now);
            self.session.filled(n);
            rest = later;
        }
        self.work();
        self.take()
    }

    /// Lets time pass; the lines that come because of it.
    pub fn wait(&mut self, millis: Millis) -> Vec<String> {
        self.now += millis;
        self.session.expire(self.now);
        self.work();
        self.take()
    }

    /// Tells that something has changed; the lines that come because of it.
    pub fn publish(&mut self, change: Change<'_>) -> Vec<String> {
        self.session.publish(change);
        self.work();
        self.take()
    }

    /// Answers a call that was put off; the lines that come because of it.
    ///
    /// # Errors
    /// The request was answered or cancelled.
    pub fn answer(
        &mut self,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> Outcome,
    ) -> Result<Vec<String>, SendError> {
        self.session.answer(self.service, &mut self.state, token, answer)?;
        self.work();
        Ok(self.take())
    }

    /// Tells how far a call is that was put off.
    pub fn progress(&mut self, token: Token, progress: Progress<'_>) -> Told {
        self.session.progress(token, progress)
    }

    /// Ends the input; the last lines. What is still put off is answered with an error.
    pub fn finish(&mut self) -> Vec<String> {
        self.session.end_of_input();
        self.work();
        let _ = self.session.abandon();
        self.work();
        self.take()
    }

    /// The state of the handlers.
    pub fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// # Panics
    /// If the session does not come to rest.
    fn work(&mut self) {
        for _ in 0..TURNS {
            let next = self.session.run(self.service, &mut self.state);
            self.received.extend_from_slice(self.session.pending());
            let sent = self.session.pending().len();
            self.session.sent(sent);
            if next == Next::Read {
                return;
            }
        }
        panic!("the session does not come to rest");
    }

    fn take(&mut self) -> Vec<String> {
        let received = core::mem::take(&mut self.received);
        let lines = received.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    /// The size of the next piece.
    fn step(&mut self, left: usize) -> usize {
        match self.cut {
            Cut::Whole => left,
            Cut::Bytes => 1,
            Cut::Pieces(size) => size.max(1),
            Cut::Random(_) => {
                self.seed ^= self.seed << 13;
                self.seed ^= self.seed >> 7;
                self.seed ^= self.seed << 17;
                1 + (self.seed % 64) as usize
            }
        }
    }
}
