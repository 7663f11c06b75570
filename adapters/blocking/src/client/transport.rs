//! The transport below a client.

use std::io;
use std::time::Duration;

use mcp_sansio::client::ClientHandler;
use mcp_sansio::server::Millis;
use mcp_sansio_host::{ChildExit, ClientError, Direction, TransportState};

/// A function that is called with every message, see [`Client::trace`](super::Client::trace).
pub type Trace = Box<dyn FnMut(Direction, &[u8])>;

/// The transport of a [`Client`](super::Client): [`Child`](super::Child) or `Http`. The client calls
/// [`run`](Transport::run), looks for its outcome, calls [`wait`](Transport::wait), and begins again.
pub trait Transport<'m> {
    /// Returns what it knows.
    fn state(&self) -> &dyn TransportState<'m, Trace>;

    /// Returns what it knows.
    fn state_mut(&mut self) -> &mut dyn TransportState<'m, Trace>;

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

    /// Begins to open the connection again. Requests in flight are lost. A process is started again; it is ended before if it
    /// still runs.
    ///
    /// # Errors
    /// [`ClientError::Start`] and [`ClientError::Io`] if there is no other process.
    fn restart(&mut self) -> Result<(), ClientError> {
        self.state_mut().handle().client.connect();
        Ok(())
    }

    /// Closes the connection. Requests in flight are lost. Returns how a process ended, if there was one.
    fn close(&mut self) -> Option<ChildExit>;
}

impl<'m, T: Transport<'m> + ?Sized> Transport<'m> for Box<T> {
    fn state(&self) -> &dyn TransportState<'m, Trace> {
        (**self).state()
    }
    fn state_mut(&mut self) -> &mut dyn TransportState<'m, Trace> {
        (**self).state_mut()
    }
    fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) -> io::Result<bool> {
        (**self).run(now, handler)
    }
    fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        (**self).wait(at_most)
    }
    fn restart(&mut self) -> Result<(), ClientError> {
        (**self).restart()
    }
    fn close(&mut self) -> Option<ChildExit> {
        (**self).close()
    }
}
