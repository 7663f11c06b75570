//! Serves a service over stdio or any reader and writer.

#[cfg(unix)]
use std::fs::File;
use std::io::{self, Read};

use blocking::Unblock;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::service::Service;

use crate::connection::Connection;

/// Serves stdin and stdout ([stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio))
/// until stdin ends and every answer is written.
///
/// Nothing else may print to stdout. The limits are the defaults of [`MessageLimits`](mcp_sansio::server::MessageLimits); see
/// [`Serve`] for others and for late answers.
///
/// # Errors
/// If stdin cannot be read or stdout cannot be written. It is no error if the client closes its end.
pub async fn serve_stdio<S>(service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
    Serve::new(service).stdio(state).await
}

mcp_sansio_host::line_server! {
    /// A service with the settings to serve it.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use mcp_sansio::server::ServerChange;
    /// use mcp_sansio::service::Service;
    /// use mcp_sansio_smol::Serve;
    ///
    /// let service = Service::<u64>::new("clock", "1.0");
    /// let served = async {
    ///     Serve::new(&service)
    ///         .grace(Duration::from_secs(5))
    ///         .watch(Duration::from_secs(1), |ticks, server| {
    ///             *ticks += 1;
    ///             server.publish(ServerChange::Resource("clock://ticks"));
    ///         })
    ///         .stdio(&mut 0)
    ///         .await
    /// };
    /// smol::block_on(served)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
}

impl<S> Serve<'_, '_, S> {
    /// Sets the limit of bytes that wait for the writer; beyond it nothing is read. Default: 1 MiB. One message may
    /// exceed it.
    pub fn backlog(mut self, bytes: usize) -> Self {
        self.serving.backlog = bytes.max(1);
        self
    }

    /// Serves stdin and stdout, as [`serve_stdio`] does.
    ///
    /// # Errors
    /// As [`serve_stdio`].
    pub async fn stdio(self, state: &mut S) -> io::Result<()> {
        let (input, output) = stdio()?;
        self.over(input, output, state).await
    }

    /// Serves `reader` and `writer` until `reader` ends and every answer is written.
    ///
    /// # Errors
    /// If `reader` or `writer` fails. It is no error if the client closes its end.
    pub async fn over(
        self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
        state: &mut S,
    ) -> io::Result<()> {
        let mut connection = Connection::new(self.service, self.serving, reader, writer, state);
        match connection.run().await {
            Err(error) if has_gone(error.kind()) => Ok(()),
            done => done,
        }
    }
}

/// Returns whether the other end was closed: pipes report the first error, sockets with unread bytes the second.
fn has_gone(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// The capacity of a pipe on Linux, in bytes.
const PIPE: usize = 64 * 1024;

/// Returns stdin and stdout on threads that may block. The parent process shares the descriptors, so their modes must
/// not be changed.
#[cfg(unix)]
pub(crate) fn stdio() -> io::Result<(Unblock<UntilEnd<File>>, Unblock<File>)> {
    use std::os::fd::AsFd;
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Ok((Unblock::with_capacity(PIPE, UntilEnd::new(input)), Unblock::with_capacity(PIPE, output)))
}

#[cfg(not(unix))]
pub(crate) fn stdio() -> io::Result<(Unblock<UntilEnd<io::Stdin>>, Unblock<io::Stdout>)> {
    let input = UntilEnd::new(io::stdin());
    Ok((Unblock::with_capacity(PIPE, input), Unblock::with_capacity(PIPE, io::stdout())))
}

/// A reader that is not read after its end. [`Unblock`] may read again, and a terminal would continue after Ctrl-D.
pub(crate) struct UntilEnd<R> {
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

    /// Gives one part to each read, like a terminal with typed lines.
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

    /// A read without room is no end, and nothing is read after the end.
    #[test]
    fn only_a_read_that_finds_nothing_is_the_end() {
        let mut input = UntilEnd::new(Terminal(vec!["one", "two", "", "three"].into_iter()));
        let mut bytes = [0; 8];
        assert_eq!(input.read(&mut []).unwrap(), 0);
        for n in [3, 3, 0, 0] {
            assert_eq!(input.read(&mut bytes).unwrap(), n);
        }
        assert_eq!(&bytes[..3], b"two");
    }
}
