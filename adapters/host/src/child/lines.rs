//! A client on lines: what every transport over a pipe or a stream of bytes decides, without its input and output.

use mcp_sansio::client::{Client, ClientHandle, ClientHandler, ClientInfo, LineClient, TransportError};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::memory::Store;
use mcp_sansio::rpc::Envelope;
use mcp_sansio::server::Millis;

use super::ExitReason;
use super::trace::LineTrace;
use crate::{Backlog, ClientOptions, Direction, IN_FLIGHT, TransportState};

/// The limit of pending bytes: while more are pending, requests wait. The engine's own messages are always taken:
/// they are small, and limited by the requests.
const FULL: usize = 1 << 20;

/// The limit of pending answers, in bytes: while more are pending, nothing is read. It stops a server that sends
/// requests and does not read the answers. Pending requests do not count, however large: a server may have to write
/// before it can read them.
const OWED: usize = 16 << 20;

/// The time to read on after the writer has failed: the server's last messages may explain why.
const LAST_WORDS: Millis = 500;

/// A client on lines. An adapter reads into [`space`](LineSession::space), calls [`run`](LineSession::run), and writes what is
/// [pending](LineSession::pending).
pub struct LineSession<'m, T> {
    client: LineClient<'m, Backlog>,
    /// The number of pending bytes that are answers.
    owed: usize,
    /// The time when the writer failed.
    broke: Option<Millis>,
    /// The ids of requests that the writer has not taken.
    unsent: Vec<u64>,
    now: Millis,
    trace: Option<LineTrace<T>>,
    /// The reason why nothing more comes.
    pub(crate) gone: Option<ExitReason>,
}

impl<'m, T: FnMut(Direction, &[u8])> LineSession<'m, T> {
    /// Makes a client with these times and limits.
    #[must_use]
    pub fn new(info: &'m ClientInfo<'m>, options: &ClientOptions) -> Self {
        let input = LineBuffer::new(Store::growing(options.message));
        LineSession {
            client: LineClient::new(input, options.engine(info, IN_FLIGHT), Backlog::new(usize::MAX)),
            owed: 0,
            broke: None,
            unsent: Vec::new(),
            now: 0,
            trace: None,
            gone: None,
        }
    }

    /// Returns whether reading has to wait until more answers are written.
    pub fn is_owing(&mut self) -> bool {
        self.owed.min(self.pending_len()) >= OWED
    }

    /// Returns whether the messages of the server are to be read.
    pub fn wants_input(&mut self) -> bool {
        self.gone.is_none() && !self.is_owing()
    }

    /// Takes the number of bytes that were read from a stream: 0 at its end, `None` if there was nothing.
    pub fn found(&mut self, read: Option<usize>, now: Millis) {
        let reason = match read {
            Some(0) => ExitReason::Output,
            None if self.last_words().is_some_and(|at| at <= now) => ExitReason::Input,
            _ => return,
        };
        self.gone.get_or_insert(reason);
    }

    /// Notes that the client closes the connection.
    pub fn close(&mut self) {
        self.gone.get_or_insert(ExitReason::Closed);
    }

    /// Returns the reason of the end, if it may be that of `why`.
    pub(crate) fn reason(&self, why: TransportError) -> Option<ExitReason> {
        self.gone.filter(|_| matches!(why, TransportError::Closed | TransportError::Unsent))
    }

    fn pending_len(&mut self) -> usize {
        self.client.out.pending().len()
    }

    /// Returns the space for the next bytes of the server.
    pub fn space(&mut self) -> &mut [u8] {
        self.client.space()
    }

    /// Notes that `n` bytes were read into [`space`](LineSession::space).
    pub fn filled(&mut self, n: usize) {
        if let Some(trace) = &mut self.trace {
            trace.received(self.client.space().get(..n).unwrap_or_default());
        }
        self.client.filled(n);
    }

    /// Handles the bytes that were read, and what is due. If nothing more comes, ends all requests.
    pub fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) {
        self.now = now;
        if let Some(reason) = self.gone {
            // What is pending when the client closes is still written.
            if reason != ExitReason::Closed {
                self.drop_pending();
            }
            for id in std::mem::take(&mut self.unsent) {
                // The opening has an end of its own.
                if self.engine().is_connected() {
                    self.client.client.lost(id, TransportError::Unsent);
                }
            }
            self.client.end_of_input();
        }
        let before = self.pending_len();
        // `NextStep::Write` needs no care here: the sink has no limit, so it is never full.
        let _ = self.client.run(now, handler);
        self.owed = self.owed.min(before) + self.pending_len().saturating_sub(before);
    }

    /// Returns the bytes to write now, if there are any. A trace shows them.
    pub fn pending(&mut self) -> Option<&[u8]> {
        let pending = self.client.out.pending();
        if let Some(trace) = &mut self.trace {
            trace.sent(pending);
        }
        Some(pending).filter(|pending| !pending.is_empty())
    }

    /// Notes that the first `n` of the pending bytes were written.
    pub fn sent(&mut self, n: usize) {
        self.client.out.sent(n);
        if let Some(trace) = &mut self.trace {
            trace.written(n);
        }
    }

    /// Notes that the writer has failed, and drops what is pending. The server may still send its
    /// last words, for a limited time.
    pub fn writer_failed(&mut self) {
        self.broke.get_or_insert(self.now);
        self.drop_pending();
    }

    /// Drops what is pending, and notes the requests in it.
    fn drop_pending(&mut self) {
        let room = IN_FLIGHT.saturating_sub(self.unsent.len());
        self.unsent.extend(self.client.out.whole_lines().filter_map(request_id).take(room));
        let pending = self.pending_len();
        self.sent(pending);
    }

    /// Returns the time to stop reading after the writer has failed.
    pub(crate) fn last_words(&self) -> Option<Millis> {
        self.broke.map(|at| at.saturating_add(LAST_WORDS))
    }

    /// Gives up the probe for `initialize` on another connection. Returns whether it was under way.
    pub(crate) fn give_up_probe(&mut self) -> bool {
        self.client.give_up_probe()
    }

    /// Opens the connection again: the next [`run`](LineSession::run) reports that requests in flight are lost.
    pub fn reconnect(&mut self) {
        self.client.reconnect(TransportError::Closed);
    }

    /// Forgets the server that was there, for another one.
    pub(crate) fn forget_server(&mut self) {
        self.writer_failed();
        (self.broke, self.owed, self.unsent, self.gone) = (None, 0, Vec::new(), None);
    }
}

/// Returns the id of a line, if it is a request.
fn request_id(line: &[u8]) -> Option<u64> {
    let message = Envelope::parse(line).ok()?;
    message.id.filter(|_| message.method.is_some())?.u64()
}

impl<'m, T: FnMut(Direction, &[u8])> TransportState<'m, T> for LineSession<'m, T> {
    fn handle(&mut self) -> ClientHandle<'_, 'm> {
        self.client.handle()
    }

    fn engine(&self) -> &Client<'m> {
        &self.client.client
    }

    fn next_deadline(&self) -> Option<Millis> {
        let last = self.last_words().filter(|_| self.gone.is_none());
        self.engine().next_deadline().into_iter().chain(last).min()
    }

    fn explain(&self, why: TransportError) -> String {
        let text = match self.reason(why) {
            Some(ExitReason::Closed) => "it was closed",
            Some(ExitReason::Input) => "it takes nothing any more",
            Some(ExitReason::Output | ExitReason::Process) => "it closed the connection",
            None => "",
        };
        text.to_owned()
    }

    fn trace(&mut self, trace: T) {
        self.trace = Some(LineTrace::new(trace, self.pending_len()));
    }

    fn is_full(&mut self) -> bool {
        self.broke.is_none() && self.pending_len() >= FULL
    }
}

// Leaves the messages out.
mcp_sansio::debug_fields!(impl<T> for LineSession<'_, T> { owed, broke });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ignore;
    use mcp_sansio::client::{ClientEvent, Request, RequestError};
    use mcp_sansio::json::Raw;
    use mcp_sansio::revision::Revision;
    use mcp_sansio::sink::Sink;

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

    type Tracer = Box<dyn FnMut(Direction, &[u8])>;

    fn session() -> LineSession<'static, Tracer> {
        LineSession::new(&PROFILE, &ClientOptions::DEFAULT)
    }

    fn fill(lines: &mut LineSession<'static, Tracer>, bytes: usize) {
        lines.client.out.put(&vec![b' '; bytes]).unwrap();
    }

    #[test]
    fn requests_wait_while_much_is_pending_and_the_writer_lives() {
        let mut lines = session();
        fill(&mut lines, FULL - 1);
        assert!(!lines.is_full());
        fill(&mut lines, 1);
        assert!(lines.is_full());
        lines.writer_failed();
        fill(&mut lines, FULL);
        assert!(!lines.is_full());
    }

    #[test]
    fn only_pending_answers_are_owed() {
        let mut lines = session();
        lines.handle().client.connect_as(Revision::V2025_11_25);
        lines.run(0, &mut Ignore);
        let asked = lines.pending_len();
        lines.sent(asked);
        lines.owed = 5;
        fill(&mut lines, 3);
        lines.run(0, &mut Ignore);
        assert_eq!(lines.owed, 3, "the others were written");
        let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        lines.space()[..ping.len()].copy_from_slice(ping);
        lines.filled(ping.len());
        lines.run(0, &mut Ignore);
        assert_eq!(lines.pending_len(), lines.owed);
        assert!(lines.owed > 3, "an answer");
        fill(&mut lines, OWED);
        for (owed, is_owing) in [(OWED - 1, false), (OWED, true)] {
            lines.owed = owed;
            assert_eq!(lines.is_owing(), is_owing);
        }
    }

    /// Of two requests the writer has taken all or a part. The rest of the second looks like a request; the others were not sent.
    #[test]
    fn requests_that_were_not_written() {
        let mut lines = session();
        lines.handle().client.connect_as(Revision::V2025_11_25);
        lines.run(0, &mut Ignore);
        let hello = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
"#;
        lines.space()[..hello.len()].copy_from_slice(hello);
        lines.filled(hello.len());
        lines.run(0, &mut Ignore);
        assert!(lines.engine().is_connected());
        let inner = r#"{"jsonrpc":"2.0","id":4,"method":"m"}"#;
        let send = |lines: &mut LineSession<'static, Tracer>| {
            lines
                .handle()
                .send(&Request::raw("x/y", Some(Raw::constant(r#"{"a":{"jsonrpc":"2.0","id":4,"method":"m"}}"#))))
        };
        let tokens = [(); 3].map(|()| send(&mut lines).unwrap());
        let pending = std::str::from_utf8(lines.pending().unwrap()).unwrap();
        let second = pending.match_indices(inner).nth(1).unwrap().0;
        assert!(pending.contains(r#""id":4,"method":"x/y""#), "{pending}");
        lines.sent(second);
        lines.writer_failed();
        // The end comes before another write.
        let tokens = [&tokens[..], &[send(&mut lines).unwrap()]].concat();
        lines.found(Some(0), 0);
        let mut ended = Vec::new();
        lines.run(0, &mut |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
            if let ClientEvent::Done { token, outcome: Err(RequestError::Lost(why)), .. } = event {
                ended.push((token, why));
            }
        });
        let whys = [TransportError::Closed, TransportError::Closed, TransportError::Unsent, TransportError::Unsent];
        assert_eq!(ended, tokens.into_iter().zip(whys).collect::<Vec<_>>());
        assert_eq!(lines.explain(TransportError::Unsent), "it closed the connection");
    }

    /// The first failure of the writer counts. Another writer begins with nothing of the first.
    #[test]
    fn another_writer_begins_anew() {
        let mut lines = session();
        for now in [7, 9] {
            lines.run(now, &mut Ignore);
            fill(&mut lines, 4);
            lines.writer_failed();
            assert_eq!((lines.last_words(), lines.pending()), (Some(7 + LAST_WORDS), None));
        }
        fill(&mut lines, 4);
        lines.owed = 4;
        lines.forget_server();
        assert_eq!((lines.last_words(), lines.owed, lines.pending()), (None, 0, None));
    }
}
