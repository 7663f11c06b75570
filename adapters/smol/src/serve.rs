//! How a service is served: over what, with which limits.

use core::fmt;
#[cfg(unix)]
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use blocking::Unblock;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::server::{Engine, Limits};
use mcp_sansio::service::Service;

use crate::answers::Late;
use crate::connection::Connection;

/// Serves stdin and stdout until stdin ends; then everything that is owed has been written.
///
/// Nothing else may print to stdout. Limits are [`Limits::default`]; see [`Serve`] for others and for late answers.
///
/// # Errors
/// What reading stdin or writing stdout fails with; a client that has gone away is no error.
pub async fn serve_stdio<S>(service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
    Serve::new(service).stdio(state).await
}

/// Serves `reader` and `writer` until `reader` ends; then everything that is owed has been written.
///
/// # Errors
/// What `reader` or `writer` fails with; a client that has gone away is no error.
pub async fn serve<S>(
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    service: &Service<'_, S>,
    state: &mut S,
    limits: Limits,
) -> io::Result<()> {
    Serve::new(service).limits(limits).over(reader, writer, state).await
}

/// A service, and how it is served.
///
/// ```no_run
/// use std::time::Duration;
/// use mcp_sansio::server::Change;
/// use mcp_sansio::service::Service;
/// use mcp_sansio_smol::Serve;
///
/// let service = Service::<u64>::new("clock", "1.0");
/// let served = async {
///     Serve::new(&service)
///         .grace(Duration::from_secs(5))
///         .watch(Duration::from_secs(1), |ticks, server| {
///             *ticks += 1;
///             server.publish(Change::Resource("clock://ticks"));
///         })
///         .stdio(&mut 0)
///         .await
/// };
/// smol::block_on(served)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "call `stdio` or `over`"]
pub struct Serve<'s, 't, S: 'static> {
    pub(crate) service: &'s Service<'t, S>,
    pub(crate) limits: Limits,
    pub(crate) backlog: usize,
    pub(crate) grace: Duration,
    pub(crate) late: Option<Late<S>>,
    pub(crate) watch: Option<Watch<S>>,
}

/// What looks for changes, and how often.
pub(crate) struct Watch<S> {
    pub(crate) period: Duration,
    pub(crate) look: fn(&mut S, &mut Engine<'_>),
}

impl<'s, 't, S> Serve<'s, 't, S> {
    /// `service` with limits that suit a host.
    pub fn new(service: &'s Service<'t, S>) -> Self {
        Serve {
            service,
            limits: Limits::default(),
            backlog: 1 << 20,
            grace: Duration::from_millis(1500),
            late: None,
            watch: None,
        }
    }

    /// How large things may grow that come in.
    pub fn limits(self, limits: Limits) -> Self {
        Serve { limits, ..self }
    }

    /// How many bytes may wait for the writer before nothing more is read; 1 MiB. One message may exceed it.
    pub fn backlog(self, bytes: usize) -> Self {
        Serve { backlog: bytes.max(1), ..self }
    }

    /// How long late answers are waited for when the input has ended; 1.5 seconds, since hosts end by signal what has not
    /// left after two. Meanwhile only answers are written: no progress, log messages or changes.
    pub fn grace(self, grace: Duration) -> Self {
        Serve { grace, ..self }
    }

    /// Where late answers come from, see [`channel`](crate::channel).
    pub fn late(self, late: Late<S>) -> Self {
        Serve { late: Some(late), ..self }
    }

    /// Calls `look` every `period` while somebody is subscribed to something, so that it can
    /// [`publish`](Engine::publish) what has changed.
    pub fn watch(self, period: Duration, look: fn(&mut S, &mut Engine<'_>)) -> Self {
        Serve { watch: Some(Watch { period, look }), ..self }
    }

    /// Serves stdin and stdout until stdin ends.
    ///
    /// # Errors
    /// As [`serve_stdio`].
    pub async fn stdio(self, state: &mut S) -> io::Result<()> {
        let (input, output) = stdio()?;
        self.over(input, output, state).await
    }

    /// Serves `reader` and `writer` until `reader` ends.
    ///
    /// # Errors
    /// As [`serve`].
    pub async fn over(
        self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
        state: &mut S,
    ) -> io::Result<()> {
        let mut connection = Connection::new(self, reader, writer, state);
        match connection.run().await {
            Err(error) if has_gone(error.kind()) => Ok(()),
            done => done,
        }
    }
}

impl<S> fmt::Debug for Serve<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve").field("limits", &self.limits).field("backlog", &self.backlog).finish_non_exhaustive()
    }
}

/// Whether the other end is not there any more: a pipe says the one, a socket with unread bytes the other.
fn has_gone(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// What a pipe carries at once.
const PIPE: usize = 64 * 1024;

/// Stdin and stdout on threads that may block. The descriptors are shared with whoever started the program, so that
/// their modes are not to be changed.
#[cfg(unix)]
fn stdio() -> io::Result<(Unblock<UntilEnd<File>>, Unblock<File>)> {
    use std::os::fd::AsFd;
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Ok((Unblock::with_capacity(PIPE, UntilEnd::new(input)), Unblock::with_capacity(PIPE, output)))
}

#[cfg(not(unix))]
fn stdio() -> io::Result<(Unblock<UntilEnd<io::Stdin>>, Unblock<io::Stdout>)> {
    let input = UntilEnd::new(io::stdin());
    Ok((Unblock::with_capacity(PIPE, input), Unblock::with_capacity(PIPE, io::stdout())))
}

/// A reader that is not read again when it has ended: [`Unblock`] may do that, and a terminal would go on after its
/// Ctrl-D.
struct UntilEnd<R> {
    reader: R,
    ended: bool,
}

impl<R> UntilEnd<R> {
    const fn new(reader: R) -> Self {
        UntilEnd { reader, ended: false }
    }
}

impl<R: Read> Read for UntilEnd<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.ended || bytes.is_empty() {
            return Ok(0);
        }
        let n = self.reader.read(bytes)?;
        self.ended = n == 0;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives each of its parts to one read: as a terminal on which somebody types.
    struct Terminal(std::vec::IntoIter<&'static str>);

    impl Read for Terminal {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let line = self.0.next().expect("nobody types any more").as_bytes();
            bytes[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }

    #[test]
    fn the_end_that_is_typed_on_a_terminal_is_the_end() {
        use futures_lite::AsyncReadExt;
        let typed = Terminal(vec!["one\n", "two\n", "", "three\n"].into_iter());
        let mut text = String::new();
        let mut input = Unblock::with_capacity(PIPE, UntilEnd::new(typed));
        futures_lite::future::block_on(input.read_to_string(&mut text)).unwrap();
        assert_eq!(text, "one\ntwo\n");
    }
}
