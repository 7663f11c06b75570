//! System calls that a signal interrupted.

use std::io::{self, ErrorKind};
use std::task::Poll;

/// Polls again while a signal interrupts the system call (`EINTR`): it has read or written nothing. `async-io` passes
/// this error on.
pub(crate) fn retry<T>(mut poll: impl FnMut() -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
    loop {
        match poll() {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
            polled => return polled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_interruptions_are_tried_again() {
        let mut outcomes = [Err(ErrorKind::Interrupted.into()), Err(ErrorKind::Interrupted.into()), Ok(7)].into_iter();
        assert!(matches!(retry(|| Poll::Ready(outcomes.next().unwrap())), Poll::Ready(Ok(7))));
        let mut outcomes = [Err(ErrorKind::BrokenPipe.into()), Ok(7)].into_iter();
        assert!(matches!(retry(|| Poll::Ready(outcomes.next().unwrap())), Poll::Ready(Err(_))));
        assert!(retry(|| Poll::<io::Result<()>>::Pending).is_pending());
    }
}
