//! A connection over lines in one value: line buffer, client, sink, and the loop between them.

#[cfg(feature = "alloc")]
use super::Profile;
use super::{Client, Engine, Event, Lost, Oddity, Request, SendError, Token};
use super::{QuestionId, reply::Refusal, reply::Reply};
use crate::frame::{Line, LineBuffer};
use crate::json::{Raw, Scanner};
use crate::server::Millis;
use crate::session::Next;
use crate::sink::{Full, Lines, Out, Storage};

/// What an application does about events. Every `FnMut(Event<'_>, &mut Link<'_, '_>)` is one.
pub trait Handler {
    /// Something has happened. Questions are answered through `link`, now or later.
    fn event(&mut self, event: Event<'_>, link: &mut Link<'_, '_>);
}

impl<F: FnMut(Event<'_>, &mut Link<'_, '_>) + ?Sized> Handler for F {
    fn event(&mut self, event: Event<'_>, link: &mut Link<'_, '_>) {
        self(event, link);
    }
}

/// The way back to the server: the client, and the sink that goes with it.
pub struct Link<'l, 'm> {
    /// The client.
    pub client: &'l mut Engine<'m>,
    /// Where its messages go.
    pub out: &'l mut dyn Out,
}

impl Link<'_, '_> {
    /// Sends a request, see [`ClientOf::send`](super::ClientOf::send). Its time begins at the time that was
    /// [told](super::ClientOf::set_now) last.
    ///
    /// # Errors
    /// What [`SendError`] tells.
    pub fn send(&mut self, request: &Request<'_>) -> Result<Token, SendError> {
        self.client.send(request, self.out)
    }

    /// Answers a question, see [`ClientOf::reply`](super::ClientOf::reply).
    ///
    /// # Errors
    /// What [`SendError`] tells.
    pub fn reply(&mut self, question: QuestionId, reply: &Reply<'_>) -> Result<(), SendError> {
        self.client.reply(question, reply, self.out)
    }

    /// Refuses a question, see [`ClientOf::refuse`](super::ClientOf::refuse).
    ///
    /// # Errors
    /// What [`SendError`] tells.
    pub fn refuse(&mut self, question: QuestionId, refusal: &Refusal<'_>) -> Result<(), SendError> {
        self.client.refuse(question, refusal, self.out)
    }

    /// Gives a request or a listen up, see [`ClientOf::cancel`](super::ClientOf::cancel).
    ///
    /// # Errors
    /// What [`SendError`] tells.
    pub fn cancel(&mut self, token: Token, reason: Option<&str>) -> Result<(), SendError> {
        self.client.cancel(token, reason, self.out)
    }

    /// Takes one message, and all messages of a batch from its `done`th on; `done` counts those that were taken.
    ///
    /// # Errors
    /// [`Full::Now`]: make room, then call again with the same message and the same `done`.
    pub fn receive(
        &mut self,
        exchange: Option<u64>,
        message: &[u8],
        done: &mut usize,
        handler: &mut dyn Handler,
    ) -> Result<(), Full> {
        match self.client.receive_on(exchange, message, self.out)? {
            Some(Event::Batch(array)) => self.batch(exchange, array, done, handler),
            Some(event) => {
                handler.event(event, self);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn batch(
        &mut self,
        exchange: Option<u64>,
        array: Raw<'_>,
        done: &mut usize,
        handler: &mut dyn Handler,
    ) -> Result<(), Full> {
        for message in array.items().skip(*done) {
            match self.client.receive_on(exchange, message.as_bytes(), self.out)? {
                // There are no batches in batches.
                Some(Event::Batch(_)) => handler.event(Event::Ignored(Oddity::NoMessage), self),
                Some(event) => handler.event(event, self),
                None => {}
            }
            *done += 1;
        }
        Ok(())
    }

    /// Tells the time, and what the client has to say by itself: [`ClientOf::advance`](super::ClientOf::advance) until
    /// there is no more.
    ///
    /// # Errors
    /// [`Full::Now`]: make room, then call again.
    pub fn advance(&mut self, now: Millis, handler: &mut dyn Handler) -> Result<(), Full> {
        loop {
            match self.client.advance(now, self.out) {
                Ok(Some(event)) => handler.event(event, self),
                Ok(None) => return Ok(()),
                Err(Full::Now) => return Err(Full::Now),
                // What was too large was given up, and is told next.
                Err(Full::Never) => {}
            }
        }
    }
}

impl core::fmt::Debug for Link<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Link").field("client", &self.client).finish_non_exhaustive()
    }
}

/// A client over lines: what stdio and serial lines need. It does no I/O: read into [`space`](Session::space), call
/// [`run`](Session::run), write what is [`pending`](Session::pending), wait until there is something to read or
/// [`next_deadline`](super::ClientOf::next_deadline) has come.
///
/// ```
/// use mcp_sansio::client::{Client, Event, Link, Profile, Session};
/// use mcp_sansio::frame::LineBuffer;
/// use mcp_sansio::sink::{Lines, Slice};
///
/// let profile = Profile::new("demo", "1.0");
/// let (mut input, mut output, mut held) = ([0; 2048], [0; 1024], [0; 512]);
/// let client = Client::<4>::new(&profile).held(&mut held).timeout(10_000);
/// let mut session = Session::new(LineBuffer::new(&mut input), client, Lines::new(Slice::new(&mut output)));
/// session.client().connect();
/// let _ = session.run(0, &mut |event: Event<'_>, _: &mut Link<'_, '_>| println!("{event:?}"));
/// assert!(session.pending().ends_with(b"}\n")); // the probe: write it to the server
/// ```
#[derive(Debug)]
pub struct Session<'m, O, const N: usize> {
    input: LineBuffer<'m>,
    client: Client<'m, N>,
    out: O,
    /// How many messages of the batch at hand were taken.
    done: usize,
    ended: bool,
}

#[cfg(feature = "alloc")]
impl<'m, O: Out, const N: usize> Session<'m, O, N> {
    /// A session whose buffers grow up to limits, with requests that may take a minute.
    #[must_use]
    pub fn growing(profile: &'m Profile<'m>, message_limit: usize, out: O) -> Self {
        Session::new(LineBuffer::new(crate::store::Store::growing(message_limit)), Client::growing(profile), out)
    }
}

impl<'m, O: Out, const N: usize> Session<'m, O, N> {
    /// A session of these parts.
    #[must_use]
    pub const fn new(input: LineBuffer<'m>, client: Client<'m, N>, out: O) -> Self {
        Session { input, client, out, done: 0, ended: false }
    }

    /// Where to read to. Never empty after [`run`](Session::run) said [`Next::Read`].
    pub fn space(&mut self) -> &mut [u8] {
        self.input.space()
    }

    /// Says that `n` bytes were read.
    pub fn filled(&mut self, n: usize) {
        self.input.filled(n);
    }

    /// Says that nothing more will come. What is in flight is lost, once what has come was taken.
    pub fn end_of_input(&mut self) {
        self.ended = true;
    }

    /// Opens a lost connection again, see [`reconnect`](super::ClientOf::reconnect). What has come and was not taken is
    /// dropped; what the sink holds is the caller's to drop.
    pub fn reconnect(&mut self, why: Lost) {
        self.input.clear();
        (self.done, self.ended) = (0, false);
        self.client.reconnect(why);
    }

    /// Tells the time, takes what has come and writes what there is to say. Everything that happens goes to `handler`.
    ///
    /// On [`Next::Write`], what needs no room has been taken all the same: go on reading too, since a server may not read
    /// before what it says is taken.
    pub fn run(&mut self, now: Millis, handler: &mut dyn Handler) -> Next {
        let mut link = Link { client: &mut self.client, out: &mut self.out };
        link.client.set_now(now);
        loop {
            // Once the input has ended, nobody reads what would be written. What finds no room waits, but not what has come
            // and needs none: a server may read nothing before it has said all it has to say.
            let waits = !self.ended && link.advance(now, handler).is_err();
            let taken = match self.input.peek() {
                Some(Line::Message(message)) => link.receive(None, message, &mut self.done, handler),
                Some(Line::TooLong { start }) => {
                    too_long(start, &mut link, handler);
                    Ok(())
                }
                None if self.ended => {
                    last_words(self.input.rest(), &mut link, handler);
                    self.input.clear();
                    self.ended = false;
                    link.client.end_of_input();
                    continue;
                }
                None => return if waits { Next::Write } else { Next::Read },
            };
            if taken == Err(Full::Now) && !self.ended {
                return Next::Write;
            }
            self.input.consume();
            self.done = 0;
        }
    }

    /// The client, to look at.
    pub fn engine(&self) -> &Engine<'m> {
        &self.client
    }

    /// The client.
    pub fn client(&mut self) -> &mut Engine<'m> {
        &mut self.client
    }

    /// The client together with its sink.
    pub fn link(&mut self) -> Link<'_, 'm> {
        Link { client: &mut self.client, out: &mut self.out }
    }

    /// The sink.
    pub fn out(&mut self) -> &mut O {
        &mut self.out
    }
}

impl<S: Storage, const N: usize> Session<'_, Lines<S>, N> {
    /// What is to be sent.
    pub fn pending(&self) -> &[u8] {
        self.out.pending()
    }

    /// Says that the first `n` bytes of it were sent.
    pub fn sent(&mut self, n: usize) {
        self.out.sent(n);
    }
}

/// The end of the input: a last message may lack its newline.
fn last_words(rest: &[u8], link: &mut Link<'_, '_>, handler: &mut dyn Handler) {
    if Raw::parse(rest).is_ok() {
        // What would need room cannot be answered any more.
        let _ = link.receive(None, rest, &mut 0, handler);
    }
}

/// A line that is longer than the buffer. If its beginning tells which request it answers, that one is lost; else it is
/// left to its deadline.
fn too_long(start: &[u8], link: &mut Link<'_, '_>, handler: &mut dyn Handler) {
    if let Some(wire) = id_of(start) {
        link.client.lost(wire, Lost::TooLarge);
    }
    handler.event(Event::Ignored(Oddity::TooLong), link);
}

/// The id at the beginning of a response that is not whole. Requests of the server's have ids of their own, which say
/// nothing of ours: what it is must be known.
fn id_of(start: &[u8]) -> Option<u64> {
    let mut scanner = Scanner::new(start);
    let (mut first, mut id) = (true, None);
    scanner.open().ok()?;
    while let Some(key) = scanner.key(&mut first).ok()? {
        // A message with a method is no answer.
        if key.is("method") {
            return None;
        }
        // Its value is not whole, but it has been named.
        if id.is_some() && (key.is("result") || key.is("error")) {
            return id;
        }
        let value = scanner.value().ok()?;
        if key.is("id") {
            id = Some(value.u64()?);
        }
    }
    None
}
