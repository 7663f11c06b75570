//! Serves lines, with answers and changes from other threads.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::service::Service;
use mcp_sansio_host::LineServing;

use crate::{WriterOut, read};

/// The number of pieces of input that wait; the reader waits for room.
const PIECES: usize = 64;
/// The most bytes of a piece of input.
const PIECE: usize = 16 * 1024;

/// The connection, without the type of its writer.
type Lines<'w> = LineServer<'static, WriterOut<Box<dyn Write + 'w>>>;

/// An event that the loop has waited for.
enum Event {
    Input(Vec<u8>),
    End,
    Failed(io::Error),
    /// Late messages have come, or the server is stopped.
    Woken,
}

/// Wakes the loop, from any thread.
struct ChannelWaker(SyncSender<Event>);

impl Wake for ChannelWaker {
    fn wake(self: Arc<Self>) {
        // If the channel is full, the loop is awake.
        let _ = self.0.try_send(Event::Woken);
    }
}

mcp_sansio_host::line_server! {
    /// A service with the settings to serve it over lines, with answers and changes of other threads. ([`serve`](crate::serve)
    /// and [`serve_stdio`](crate::serve_stdio) do without the thread and the channel that this needs.)
    ///
    /// ```
    /// use std::thread;
    /// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
    /// use mcp_sansio_blocking::{LateSender, Serve, channel};
    ///
    /// struct Kitchen {
    ///     late: LateSender<Kitchen>,
    ///     cups: u32,
    /// }
    ///
    /// fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
    ///     let (token, outcome) = call.later();
    ///     let late = kitchen.late.clone();
    ///     thread::spawn(move || {
    ///         // What takes long is done here.
    ///         late.answer(token, |kitchen, call| {
    ///             kitchen.cups += 1;
    ///             call.text(format_args!("cup {}", kitchen.cups))
    ///         })
    ///     });
    ///     outcome
    /// }
    /// static TOOLS: [Tool<Kitchen>; 1] = [Tool::new("brew", "Brews coffee", brew)];
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let service = Service::new("kitchen", "1.0").tools(&TOOLS);
    /// let (late, receiver) = channel();
    /// let mut kitchen = Kitchen { late, cups: 0 };
    /// # let input = std::io::Cursor::new(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"brew","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
    /// # let mut output = Vec::new();
    /// // With stdin and stdout: `.stdio(&mut kitchen)`.
    /// Serve::new(&service).late(receiver).over(input, &mut output, &mut kitchen)?;
    /// # assert!(String::from_utf8(output).unwrap().contains("cup 1"));
    /// # Ok(())
    /// # }
    /// ```
}

impl<S> Serve<'_, '_, S> {
    /// Serves stdin and stdout ([stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio))
    /// until stdin ends and every answer is written. Nothing else may print to stdout.
    ///
    /// # Errors
    /// If stdin cannot be read or stdout cannot be written. It is no error if the client closes its end.
    pub fn stdio(self, state: &mut S) -> io::Result<()> {
        let (input, output) = crate::stdio()?;
        self.over(input, output, state)
    }

    /// Serves `reader` and `writer` until `reader` ends and every answer is written. A thread reads; after an error of
    /// `writer` it stays until the next input comes.
    ///
    /// # Errors
    /// If `reader` or `writer` fails, or no thread can be started. It is no error if the client closes its end.
    pub fn over(self, reader: impl Read + Send + 'static, writer: impl Write, state: &mut S) -> io::Result<()> {
        let (sender, events) = sync_channel(PIECES);
        let waker = Waker::from(Arc::new(ChannelWaker(sender.clone())));
        thread::Builder::new().name("mcp-input".into()).spawn(move || forward(reader, &sender))?;
        let writer: Box<dyn Write + '_> = Box::new(writer);
        let lines = LineServer::growing(self.serving.limits, WriterOut::new(writer));
        Loop { service: self.service, state, lines, events, serving: self.serving, waker }.run()
    }
}

/// Passes on the input, until it ends or the server has ended.
fn forward(mut reader: impl Read, events: &SyncSender<Event>) {
    let mut piece = vec![0; PIECE];
    loop {
        let event = match read(&mut reader, &mut piece) {
            Ok(0) => Event::End,
            Ok(n) => Event::Input(piece.get(..n).unwrap_or_default().to_vec()),
            Err(error) => Event::Failed(error),
        };
        let is_last = !matches!(event, Event::Input(_));
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

/// The loop of a connection.
struct Loop<'l, 't, 'w, S: 'static> {
    service: &'l Service<'t, S>,
    state: &'l mut S,
    lines: Lines<'w>,
    events: Receiver<Event>,
    serving: LineServing<S>,
    waker: Waker,
}

impl<S> Loop<'_, '_, '_, S> {
    fn run(mut self) -> io::Result<()> {
        loop {
            self.serving.stop(&mut self.lines, &Context::from_waker(&self.waker));
            let more = self.work();
            self.lines.out.flush();
            let is_over = self.serving.is_abandoned() || self.serving.is_ending() && self.lines.is_done();
            if self.lines.out.failed() || is_over {
                break;
            }
            let next = match self.wait() {
                _ if more => self.events.recv_timeout(Duration::ZERO),
                Some(wait) => self.events.recv_timeout(wait),
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(Event::Input(bytes)) if !self.serving.is_ending() => self.feed(&bytes),
                Ok(Event::Failed(error)) => return Err(error),
                Ok(Event::End) => self.serving.end_input(&mut self.lines),
                // What comes after a stop is not read.
                Ok(Event::Input(_)) => {}
                // The loop has a sender itself.
                Ok(Event::Woken) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        let _ = self.lines.abandon();
        self.lines.out.flush();
        self.lines.out.result()
    }

    /// Does all that can be done now. Returns whether more late messages wait.
    fn work(&mut self) -> bool {
        self.serving.turn(&mut self.lines, self.state);
        if self.serving.is_ending() {
            // A client that has closed its side only waits for its answers, and some fail on any other message.
            self.lines.out.only_answers();
        }
        while self.lines.run(self.service, self.state) == NextStep::Write {}
        let mut more = false;
        if let Some(late) = &mut self.serving.late {
            late.give(&mut self.lines, self.service, self.state);
            while self.lines.run(self.service, self.state) == NextStep::Write {}
            more = late.poll_ready(&mut Context::from_waker(&self.waker)).is_ready();
        }
        self.serving.tick(self.service, &mut self.lines, self.state);
        more
    }

    fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.lines.space();
            let n = space.len().min(bytes.len());
            let (now, later) = bytes.split_at(n);
            if let Some(space) = space.get_mut(..n) {
                space.copy_from_slice(now);
            }
            self.lines.filled(n);
            bytes = later;
            while self.lines.run(self.service, self.state) == NextStep::Write {}
        }
    }

    /// Returns the time to the next deadline.
    fn wait(&mut self) -> Option<Duration> {
        let next = self.serving.next_deadline(&mut self.lines);
        next.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    use mcp_sansio::server::MessageLimits;
    use mcp_sansio::service::{InputRequest, Tool};

    static TOOLS: [Tool<()>; 2] = [
        Tool::new("later", "Is never answered", |(), call| call.later().1),
        Tool::new("ask", "Asks for the roots", |(), call| call.ask(&[InputRequest::roots("roots")], b"")),
    ];

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"test","version":"1"}}}"#;

    fn call(tool: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
    }

    /// Runs a test with a loop that has got these lines, and with the sender of its events. Returns the lines that were written.
    fn with_loop(
        lines: &[&str],
        grace: Duration,
        test: impl FnOnce(Loop<'_, '_, '_, ()>, SyncSender<Event>),
    ) -> Vec<String> {
        let (service, mut written) = (Service::new("test", "1").tools(&TOOLS), Vec::new());
        let (sender, events) = sync_channel(PIECES);
        let limits = MessageLimits { ask_timeout: 60_000, ..MessageLimits::default() };
        let mut serving = Loop {
            service: &service,
            state: &mut (),
            lines: LineServer::growing(limits, WriterOut::new(Box::new(&mut written) as Box<dyn Write + '_>)),
            events,
            serving: LineServing::new(),
            waker: Waker::from(Arc::new(ChannelWaker(sender.clone()))),
        };
        serving.serving.grace = grace;
        serving.feed((lines.join("\n") + "\n").as_bytes());
        test(serving, sender);
        String::from_utf8(written).unwrap().lines().map(String::from).collect()
    }

    /// Else a client that closes its side late would hold up a server that was stopped.
    #[test]
    fn an_end_of_the_input_after_a_stop_gives_no_further_time() {
        let grace = Duration::from_millis(20);
        let lines = with_loop(&[INITIALIZE, &call("later")], grace, |mut serving, events| {
            serving.serving.end_input(&mut serving.lines);
            let end = serving.serving.next_deadline(&mut serving.lines).unwrap();
            serving.serving.grace = Duration::from_secs(3600);
            serving.serving.end_input(&mut serving.lines);
            assert_eq!(serving.serving.next_deadline(&mut serving.lines), Some(end));
            events.send(Event::End).unwrap();
            serving.run().unwrap();
        });
        assert!(lines.len() == 2 && lines[1].contains(r#""id":1,"error""#), "{lines:?}");
    }

    #[test]
    fn a_loop_waits_until_its_next_deadline() {
        with_loop(&[INITIALIZE], Duration::ZERO, |mut serving, _| {
            assert_eq!(serving.wait(), None);
            serving.feed((call("ask") + "\n").as_bytes());
            let (half, whole) = (Duration::from_secs(30), Duration::from_secs(60));
            assert!(serving.wait().is_some_and(|time| time > half && time <= whole), "{:?}", serving.wait());
        });
    }

    /// A reader with pieces; it must not be read after its end.
    struct Pieces(Vec<io::Result<&'static [u8]>>);

    impl Read for Pieces {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            self.0.remove(0)?.read(space)
        }
    }

    #[test]
    fn the_input_is_read_up_to_its_end_or_its_error() {
        for last in [Ok(&b""[..]), Err(ErrorKind::ConnectionReset)] {
            let (sender, events) = sync_channel(PIECES);
            forward(Pieces(vec![Ok(b"a"), Ok(b"b"), last.map_err(io::Error::from)]), &sender);
            drop(sender);
            let seen: Vec<_> = events.iter().collect();
            assert!(matches!(&seen[..2], [Event::Input(a), Event::Input(b)] if a == b"a" && b == b"b"));
            assert!(match &seen[2..] {
                [Event::End] => last.is_ok(),
                [Event::Failed(error)] => last == Err(error.kind()),
                _ => false,
            });
        }
    }

    #[test]
    fn nothing_is_read_for_a_server_that_has_ended() {
        let (sender, events) = sync_channel(PIECES);
        drop(events);
        forward(Pieces(vec![Ok(b"a")]), &sender);
    }
}
