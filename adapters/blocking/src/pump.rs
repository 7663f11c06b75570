//! A reader and a writer as one socket: two threads copy the bytes, so that readers and writers of any kind can be waited
//! for.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// The size of one copy, in bytes.
const CHUNK: usize = 16 * 1024;

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct Pump(Receiver<()>);

impl Pump {
    /// Begins to copy, and returns the socket. The writer is dropped after the socket was closed and its bytes were
    /// written. The reader is dropped at its end, or when it has bytes after the socket was closed.
    pub(crate) fn start(
        mut reader: impl Read + Send + 'static,
        mut writer: impl Write + Send + 'static,
    ) -> io::Result<(UnixStream, Pump)> {
        let (ours, theirs) = UnixStream::pair()?;
        let (mut sends, mut takes) = (theirs.try_clone()?, theirs);
        let (done, written) = channel();
        let thread = |name: &str| thread::Builder::new().name(name.to_owned());
        thread("http-write").spawn(move || {
            // It fails when the peer takes no more bytes: the reading side learns the same from its end.
            if copy(&mut takes, &mut writer).is_err() {
                let _ = takes.shutdown(Shutdown::Both);
            }
            drop(writer);
            let _ = done.send(());
        })?;
        thread("http-read").spawn(move || {
            let _ = copy(&mut reader, &mut sends);
            let _ = sends.shutdown(Shutdown::Write);
        })?;
        Ok((ours, Pump(written)))
    }

    /// Waits until all bytes are written, or the writer has failed. Close the socket first.
    pub(crate) fn finish(self, at_most: Duration) {
        let _ = self.0.recv_timeout(at_most);
    }
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                to.write_all(&chunk[..n])?;
                to.flush()?;
            }
            // A serial port reports a time without bytes like this.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A serial port between two bytes, a signal, and then an error that is one.
    struct Port(Vec<io::Result<&'static [u8]>>);

    impl Read for Port {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            self.0.remove(0)?.read(space)
        }
    }

    #[test]
    fn pauses_and_signals_are_no_errors() {
        let pauses =
            || vec![Err(ErrorKind::TimedOut.into()), Ok(&b"a"[..]), Err(ErrorKind::Interrupted.into()), Ok(b"b")];
        for (last, outcome) in [(Ok(&b""[..]), Ok(())), (Err(ErrorKind::BrokenPipe.into()), Err(ErrorKind::BrokenPipe))]
        {
            let mut written = Vec::new();
            let mut reads = pauses();
            reads.push(last);
            assert_eq!(copy(&mut Port(reads), &mut written).map_err(|error| error.kind()), outcome);
            assert_eq!(written, b"ab");
        }
    }

    /// The writer may have a buffer of its own, and the peer waits for what is in it.
    #[test]
    fn each_piece_is_flushed() {
        struct Flushing(Vec<u8>, Vec<usize>);
        impl Write for Flushing {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                self.1.push(self.0.len());
                if self.0.len() > 2 { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
            }
        }
        let mut writer = Flushing(Vec::new(), Vec::new());
        let mut reader = Port(vec![Ok(b"a"), Ok(b"b"), Ok(b"c"), Ok(b"d"), Ok(b"")]);
        assert_eq!(copy(&mut reader, &mut writer).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!((&*writer.0, &*writer.1), (&b"abc"[..], &[1, 2, 3][..]));
    }
}
