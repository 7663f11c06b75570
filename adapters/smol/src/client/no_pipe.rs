//! In place of a pipe that is read only when it may have something, on systems that are no Unix.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_process::ChildStdout;
use futures_lite::AsyncRead;

/// The stdout of a child process.
#[derive(Debug)]
pub(super) struct OutputPipe(ChildStdout);

impl OutputPipe {
    #[allow(clippy::unnecessary_wraps, reason = "as on Unix")]
    pub(super) const fn new(output: ChildStdout) -> io::Result<Self> {
        Ok(OutputPipe(output))
    }

    #[allow(clippy::needless_pass_by_ref_mut, clippy::unused_self, reason = "as on Unix")]
    pub(super) const fn look_again(&mut self) {}
}

impl AsyncRead for OutputPipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_read(cx, space)
    }
}
