//! The output of a child process: a pipe that is read only when it may have something.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_io::Async;
use async_process::ChildStdout;
use futures_lite::AsyncRead;

/// The stdout of a child process. After a read that was not full it asks the reactor at once, without another read that
/// would find nothing: of a call over stdio that read, twice, is a sixth of all system calls.
#[derive(Debug)]
pub(super) struct OutputPipe {
    pipe: Async<File>,
    next: Next,
}

/// The next thing to do with the pipe.
#[derive(Clone, Copy, Debug)]
enum Next {
    Read,
    /// The last read took all: the reactor has to look for more.
    Arm,
    /// The reactor looks for more.
    Wait,
}

impl OutputPipe {
    /// Takes the pipe over.
    ///
    /// # Errors
    /// If it cannot be registered with the reactor.
    pub(super) fn new(output: ChildStdout) -> io::Result<Self> {
        let pipe = Async::new(File::from(OwnedFd::try_from(output)?))?;
        Ok(OutputPipe { pipe, next: Next::Read })
    }

    /// Reads next, even if the reactor has not seen anything yet.
    pub(super) const fn look_again(&mut self) {
        self.next = Next::Read;
    }
}

impl AsyncRead for OutputPipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.next {
                Next::Read => match self.pipe.get_ref().read(space) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => self.next = Next::Arm,
                    Ok(n) => {
                        // After the end the reactor has no news.
                        let all = n > 0 && n < space.len();
                        self.next = if all { Next::Arm } else { Next::Read };
                        return Poll::Ready(Ok(n));
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                },
                Next::Arm => {
                    // The first answer may still be about the bytes that were read: the next one is not.
                    let _ = self.pipe.poll_readable(cx)?;
                    self.next = Next::Wait;
                }
                Next::Wait => {
                    ready!(self.pipe.poll_readable(cx))?;
                    self.next = Next::Read;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::process::Stdio;
    use std::task::Waker;

    /// A read that may have left bytes, or has found the end, is not followed by a wait.
    #[test]
    fn the_rest_and_the_end_are_read_at_once() {
        let mut command = async_process::Command::new("/bin/sh");
        let mut child = command.args(["-c", "printf abcdef"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut pipe = OutputPipe::new(child.stdout.take().unwrap()).unwrap();
        let mut space = [0; 3];
        async_io::block_on(async {
            child.status().await.unwrap();
            let n = poll_fn(|cx| Pin::new(&mut pipe).poll_read(cx, &mut space)).await.unwrap();
            assert_eq!(&space[..n], b"abc");
        });
        let mut at_once = |space: &mut [u8]| {
            let polled = Pin::new(&mut pipe).poll_read(&mut Context::from_waker(Waker::noop()), space);
            polled.map(Result::unwrap)
        };
        assert_eq!(at_once(&mut space), Poll::Ready(3));
        assert_eq!(&space, b"def");
        for _ in 0..3 {
            assert_eq!(at_once(&mut space), Poll::Ready(0));
        }
    }

    fn at_once(pipe: &mut OutputPipe, space: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(pipe).poll_read(&mut Context::from_waker(Waker::noop()), space)
    }

    /// Without another read, which would find nothing.
    #[test]
    fn a_read_that_took_all_is_followed_by_a_wait() {
        let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
        let pipe = Async::new(File::from(OwnedFd::from(near))).unwrap();
        let mut pipe = OutputPipe { pipe, next: Next::Read };
        let mut space = [0; 4];
        assert!(at_once(&mut pipe, &mut space).is_pending());
        for (text, waits) in [(&b"abc"[..], true), (b"abcd", false)] {
            pipe.next = Next::Read;
            io::Write::write_all(&mut far, text).unwrap();
            assert!(matches!(at_once(&mut pipe, &mut space), Poll::Ready(Ok(n)) if n == text.len()));
            assert_eq!(matches!(pipe.next, Next::Arm), waits, "{:?}", pipe.next);
        }
    }

    #[test]
    fn a_pipe_that_fails_is_an_error() {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        // A peer that goes without having read resets the connection.
        io::Write::write_all(&mut &near, b"unread").unwrap();
        drop(far);
        let pipe = Async::new(File::from(OwnedFd::from(near))).unwrap();
        let mut pipe = OutputPipe { pipe, next: Next::Read };
        let read = at_once(&mut pipe, &mut [0; 4]);
        assert!(matches!(&read, Poll::Ready(Err(error)) if error.kind() == ErrorKind::ConnectionReset), "{read:?}");
    }
}
