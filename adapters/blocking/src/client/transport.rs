//! The transport below a client.

use std::io;
use std::time::Duration;

use mcp_sansio::client::views::ToolView;
use mcp_sansio::client::{Client, ClientHandle, ClientHandler, TransportError};
use mcp_sansio::server::Millis;
use mcp_sansio_host::{ChildExit, ClientError, Direction, ExcludedTool};

/// A function that is called with every message, see [`Client::trace`](super::Client::trace).
pub type Trace = Box<dyn FnMut(Direction, &[u8])>;

/// The transport of a [`Client`](super::Client): [`Child`](super::Child) or `Http`. The client calls
/// [`run`](Transport::run), looks for its outcome, calls [`wait`](Transport::wait), and begins again.
pub trait Transport<'m> {
    /// Returns the engine and its sink.
    fn link(&mut self) -> ClientHandle<'_, 'm>;

    /// Returns the engine.
    fn engine(&self) -> &Client<'m>;

    /// Reads and writes as much as is possible without waiting, and passes events to the handler. Returns `true` if
    /// there may be more: look at the events, then call it again.
    ///
    /// # Errors
    /// If the operating system refuses something. Failures of the server go to the handler as events.
    fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> io::Result<bool>;

    /// Waits until there is work for [`run`](Transport::run), at most this time.
    ///
    /// # Errors
    /// As [`run`](Transport::run).
    fn wait(&mut self, at_most: Duration) -> io::Result<()>;

    /// Returns the latest time of the next [`run`](Transport::run).
    fn next_deadline(&self) -> Option<Millis>;

    /// Returns the facts that the transport knows about a loss in the last [`run`](Transport::run).
    fn explain(&mut self, why: TransportError) -> String;

    /// Returns whether the stream for the server's requests is still being opened. The first request waits for it.
    fn is_settling(&self) -> bool {
        false
    }

    /// Returns `false` if the server's own requests and notifications cannot arrive: over HTTP it may have refused their GET stream.
    fn hears_server(&self) -> bool {
        true
    }

    /// Returns the longest time to wait for that stream.
    fn settle_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns why a tool must be left out of the server's list; `None` if it can be used.
    fn excludes(&self, tool: &ToolView<'_>) -> Option<String> {
        let _ = tool;
        None
    }

    /// Returns the tools that were left out of the server's lists.
    fn excluded(&self) -> Vec<ExcludedTool> {
        Vec::new()
    }

    /// Calls `trace` with every message.
    fn trace(&mut self, trace: Trace);

    /// Begins to open the connection anew. Requests in flight are lost. A process is started again; it is ended before if it
    /// still runs.
    ///
    /// # Errors
    /// [`ClientError::Start`] and [`ClientError::Io`] if there is no other process.
    fn restart(&mut self) -> Result<(), ClientError> {
        self.link().client.connect();
        Ok(())
    }

    /// Closes the connection. Requests in flight are lost. Returns how a process ended, if there was one.
    fn close(&mut self) -> Option<ChildExit>;
}

impl<'m, T: Transport<'m> + ?Sized> Transport<'m> for Box<T> {
    fn link(&mut self) -> ClientHandle<'_, 'm> {
        (**self).link()
    }
    fn engine(&self) -> &Client<'m> {
        (**self).engine()
    }
    fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> io::Result<bool> {
        (**self).run(now, handler)
    }
    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        (**self).wait(at_most)
    }
    fn next_deadline(&self) -> Option<Millis> {
        (**self).next_deadline()
    }
    fn explain(&mut self, why: TransportError) -> String {
        (**self).explain(why)
    }
    fn is_settling(&self) -> bool {
        (**self).is_settling()
    }
    fn hears_server(&self) -> bool {
        (**self).hears_server()
    }
    fn excludes(&self, tool: &ToolView<'_>) -> Option<String> {
        (**self).excludes(tool)
    }
    fn excluded(&self) -> Vec<ExcludedTool> {
        (**self).excluded()
    }
    fn settle_time(&self) -> Duration {
        (**self).settle_time()
    }
    fn trace(&mut self, trace: Trace) {
        (**self).trace(trace);
    }
    fn restart(&mut self) -> Result<(), ClientError> {
        (**self).restart()
    }
    fn close(&mut self) -> Option<ChildExit> {
        (**self).close()
    }
}
