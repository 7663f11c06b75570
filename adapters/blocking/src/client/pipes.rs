//! The three pipes to a child process. None of them ever blocks.

use std::time::Duration;

use super::process::Process;

#[cfg(unix)]
pub(super) use poll::Pipes;
#[cfg(not(unix))]
pub(super) use threads::Pipes;

/// A function that gets each line of a server's stderr.
pub type OnLine = Box<dyn FnMut(&[u8])>;

/// The use of the text that a server writes to its stderr.
pub type Stderr = mcp_sansio_host::Stderr<OnLine>;

/// Takes the bytes of the pipe.
pub(super) type Log = mcp_sansio_host::StderrLog<OnLine>;

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// There is nothing to read now.
    Nothing,
    Bytes(usize),
    /// The pipe or socket is at its end.
    End,
}

/// The directions to wait for, besides stderr and the end of the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    pub(super) read: bool,
    #[cfg_attr(not(unix), expect(dead_code, reason = "a thread writes to the pipe, and waits by itself"))]
    pub(super) write: bool,
}

/// The limit of bytes that are read from stderr in one turn.
const CHUNK: usize = 16 * 1024;

/// Pipes that do not block, and `poll`, on one thread.
#[cfg(unix)]
mod poll {
    use super::{CHUNK, Duration, Got, Log, Process, Wants};
    use std::fs::File;
    use std::io::{self, ErrorKind, Read, Write};
    use std::os::fd::{AsFd, OwnedFd};
    use std::process::Child;

    use rustix::event::{PollFd, PollFlags, Timespec};

    #[derive(Debug)]
    pub(in super::super) struct Pipes {
        input: Option<File>,
        output: Source,
        errors: Source,
        process_ready: bool,
    }

    /// A pipe to read from.
    #[derive(Debug)]
    struct Source<P = File> {
        pipe: Option<P>,
        /// There may be something to read.
        ready: bool,
    }

    fn ready(fd: impl Into<OwnedFd>) -> io::Result<File> {
        let fd = fd.into();
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(File::from(fd))
    }

    impl Pipes {
        pub(in super::super) fn new(child: &mut Child) -> io::Result<Self> {
            Ok(Pipes {
                input: child.stdin.take().map(ready).transpose()?,
                output: Source { pipe: child.stdout.take().map(ready).transpose()?, ready: false },
                errors: Source { pipe: child.stderr.take().map(ready).transpose()?, ready: false },
                process_ready: false,
            })
        }

        /// Writes as much as the pipe takes.
        pub(in super::super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let Some(input) = &mut self.input else { return Err(ErrorKind::BrokenPipe.into()) };
            match input.write(bytes) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
                done => done,
            }
        }

        pub(in super::super) fn close_input(&mut self) {
            self.input = None;
        }

        /// Reads once, if there may be anything.
        pub(in super::super) fn read(&mut self, space: &mut [u8]) -> Got {
            self.output.read(space)
        }

        /// Returns whether the output may have more than what was read last.
        pub(in super::super) const fn has_more(&self) -> bool {
            self.output.ready
        }

        /// Reads one chunk of stderr. Returns whether there was anything.
        pub(in super::super) fn read_errors(&mut self, log: &mut Log) -> bool {
            if !self.errors.ready {
                return false;
            }
            let mut chunk = [0; CHUNK];
            match self.errors.read(&mut chunk) {
                Got::Bytes(n) => {
                    log.take(&chunk[..n]);
                    return true;
                }
                Got::End => log.end(),
                Got::Nothing => {}
            }
            false
        }

        /// Notes that every pipe may have something to read.
        pub(in super::super) const fn look_again(&mut self) {
            (self.output.ready, self.errors.ready, self.process_ready) = (true, true, true);
        }

        /// Returns whether the process may have ended.
        pub(in super::super) const fn may_have_ended(&self) -> bool {
            self.process_ready
        }

        /// Waits until a pipe is ready, the process ends, or the time is over.
        pub(in super::super) fn wait(&mut self, wants: Wants, process: &Process, at_most: Duration) -> io::Result<()> {
            let output = self.output.pipe.as_ref().filter(|_| wants.read).map(|fd| (fd.as_fd(), PollFlags::IN));
            let errors = self.errors.pipe.as_ref().map(|fd| (fd.as_fd(), PollFlags::IN));
            let watch = process.watch().map(|fd| (fd, PollFlags::IN));
            let input = self.input.as_ref().filter(|_| wants.write).map(|fd| (fd.as_fd(), PollFlags::OUT));
            let wanted = [output, errors, watch, input];
            // In place of a pipe that is not wanted is another one, so the list needs no allocation.
            let mut fds = wanted.iter().flatten().next().map(|&first| {
                wanted.map(|wanted| {
                    let (fd, flags) = wanted.unwrap_or(first);
                    PollFd::from_borrowed_fd(fd, flags)
                })
            });
            let time = Timespec::try_from(at_most.min(process.look_after())).ok();
            let polled = fds.as_mut().map_or(&mut [][..], |fds| &mut fds[..if input.is_some() { 4 } else { 3 }]);
            match rustix::event::poll(polled, time.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_ready =
                |at: usize| wanted[at].is_some() && fds.as_ref().is_some_and(|fds| !fds[at].revents().is_empty());
            let (output, errors) = (is_ready(0), is_ready(1));
            let unwatched = watch.is_none();
            let ended = is_ready(2);
            self.output.ready |= output;
            self.errors.ready |= errors;
            if ended {
                // The process writes nothing more, but the pipes may still hold its last output.
                self.look_again();
            }
            self.process_ready |= unwatched;
            Ok(())
        }
    }

    impl<P: Read> Source<P> {
        fn read(&mut self, space: &mut [u8]) -> Got {
            let Some(pipe) = &mut self.pipe else { return Got::End };
            if !self.ready {
                return Got::Nothing;
            }
            match pipe.read(space) {
                Ok(n) if n > 0 => {
                    // A pipe gives all that it has. What comes later, and its end, wakes the next wait.
                    self.ready = n == space.len();
                    return Got::Bytes(n);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => return Got::Nothing,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.ready = false;
                    return Got::Nothing;
                }
                _ => {}
            }
            *self = Source { pipe: None, ready: false };
            Got::End
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// A pipe whose reads fail.
        struct Failing(ErrorKind);

        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
        }

        /// After a signal there may still be something to read.
        #[test]
        fn errors_of_a_pipe_that_are_its_end_and_others() {
            for (kind, got, ready) in [
                (ErrorKind::Interrupted, Got::Nothing, true),
                (ErrorKind::WouldBlock, Got::Nothing, false),
                (ErrorKind::ConnectionReset, Got::End, false),
            ] {
                let mut source = Source { pipe: Some(Failing(kind)), ready: true };
                assert_eq!((source.read(&mut [0; 4]), source.ready), (got, ready), "{kind:?}");
                assert_eq!(source.pipe.is_none(), got == Got::End, "{kind:?}");
            }
        }
    }
}

/// A thread for each pipe, for systems that cannot wait for pipes. They wake the thread that waits, whichever it is.
#[cfg(any(not(unix), test))]
#[cfg_attr(unix, allow(dead_code, reason = "only tried out here"))]
mod threads {
    use super::{CHUNK, Duration, Got, Log, Process, Wants};
    use std::io::{self, ErrorKind, Read, Write};
    use std::process::Child;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
    use std::thread;

    /// The limit of chunks that wait to be read: a server that writes without end must wait.
    const AHEAD: usize = 16;

    /// The time for a thread to pass on what a process has written before its end.
    const LAST: Duration = Duration::from_millis(50);

    #[derive(Debug)]
    pub(in super::super) struct Pipes {
        input: Option<SyncSender<Vec<u8>>>,
        output: Chunks,
        errors: Chunks,
        /// Each thread sends here when it has done something. The sender is kept, so that a wait does not end when they all have ended.
        wake: (SyncSender<()>, Receiver<()>),
    }

    /// The chunks of a pipe, which another thread reads.
    #[derive(Debug)]
    struct Chunks {
        from: Receiver<Vec<u8>>,
        /// The first chunk, and the number of bytes that were taken from it.
        first: Vec<u8>,
        taken: usize,
        /// The time to wait for the next chunk.
        patience: Duration,
    }

    impl Chunks {
        fn of(pipe: Option<impl Read + Send + 'static>, wake: SyncSender<()>) -> io::Result<Self> {
            let (to, from) = sync_channel(AHEAD);
            thread::Builder::new().spawn(move || {
                if let Some(pipe) = pipe {
                    forward(pipe, &to, &wake);
                }
                drop(to);
                let _ = wake.try_send(());
            })?;
            Ok(Chunks { from, first: Vec::new(), taken: 0, patience: Duration::ZERO })
        }

        /// Returns the bytes that can be taken, some if there are any; `None` at the end of the pipe.
        fn rest(&mut self) -> Option<&[u8]> {
            if self.taken == self.first.len() {
                match self.from.recv_timeout(self.patience) {
                    Ok(chunk) => (self.first, self.taken) = (chunk, 0),
                    Err(RecvTimeoutError::Timeout) => self.patience = Duration::ZERO,
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            }
            self.first.get(self.taken..)
        }

        fn has_bytes(&mut self) -> bool {
            self.rest().is_some_and(|rest| !rest.is_empty())
        }
    }

    /// Passes on the bytes of a pipe, to its end or as long as they are taken.
    fn forward(mut pipe: impl Read, to: &SyncSender<Vec<u8>>, wake: &SyncSender<()>) {
        let mut chunk = vec![0; CHUNK];
        loop {
            match pipe.read(&mut chunk) {
                Ok(n) if n > 0 && to.send(chunk[..n].to_vec()).is_ok() => _ = wake.try_send(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    impl Pipes {
        pub(in super::super) fn new(child: &mut Child) -> io::Result<Self> {
            let (input, chunks) = sync_channel::<Vec<u8>>(1);
            let (wake, woken) = sync_channel(1);
            let (mut pipe, written) = (child.stdin.take(), wake.clone());
            thread::Builder::new().spawn(move || {
                for chunk in chunks {
                    let Some(pipe) = &mut pipe else { return };
                    if pipe.write_all(&chunk).and_then(|()| pipe.flush()).is_err() {
                        return;
                    }
                    let _ = written.try_send(());
                }
            })?;
            let output = Chunks::of(child.stdout.take(), wake.clone())?;
            let errors = Chunks::of(child.stderr.take(), wake.clone())?;
            Ok(Pipes { input: Some(input), output, errors, wake: (wake, woken) })
        }

        pub(in super::super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let Some(input) = &self.input else { return Err(ErrorKind::BrokenPipe.into()) };
            let bytes = &bytes[..bytes.len().min(CHUNK)];
            match input.try_send(bytes.to_vec()) {
                Ok(()) => Ok(bytes.len()),
                Err(TrySendError::Full(_)) => Ok(0),
                Err(TrySendError::Disconnected(_)) => Err(ErrorKind::BrokenPipe.into()),
            }
        }

        pub(in super::super) fn close_input(&mut self) {
            self.input = None;
        }

        pub(in super::super) fn read(&mut self, space: &mut [u8]) -> Got {
            let Some(rest) = self.output.rest() else { return Got::End };
            let n = rest.len().min(space.len());
            space[..n].copy_from_slice(&rest[..n]);
            self.output.taken += n;
            if n > 0 { Got::Bytes(n) } else { Got::Nothing }
        }

        /// Returns whether the output may have more than what was read last.
        pub(in super::super) const fn has_more(&self) -> bool {
            true
        }

        pub(in super::super) fn read_errors(&mut self, log: &mut Log) -> bool {
            let Some(rest) = self.errors.rest() else {
                log.end();
                return false;
            };
            log.take(rest);
            let n = rest.len();
            self.errors.taken += n;
            n > 0
        }

        pub(in super::super) const fn look_again(&mut self) {
            (self.output.patience, self.errors.patience) = (LAST, LAST);
        }

        #[allow(clippy::unused_self, clippy::missing_const_for_fn, reason = "it has to be asked")]
        pub(in super::super) fn may_have_ended(&self) -> bool {
            true
        }

        #[allow(clippy::unnecessary_wraps, reason = "a wait for pipes may fail elsewhere")]
        pub(in super::super) fn wait(&mut self, wants: Wants, process: &Process, at_most: Duration) -> io::Result<()> {
            if !(wants.read && self.output.has_bytes() || self.errors.has_bytes()) {
                let _ = self.wake.1.recv_timeout(at_most.min(process.look_after()));
            }
            Ok(())
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::collections::VecDeque;

        /// A pipe whose reads return these one after the other.
        struct Scripted(VecDeque<io::Result<&'static [u8]>>);

        impl Read for Scripted {
            fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
                self.0.pop_front().unwrap_or(Ok(b""))?.read(space)
            }
        }

        /// A signal ends no pipe, and any other error does.
        #[test]
        fn a_pipe_is_read_to_its_end_or_its_error() {
            let pieces = || [Err(ErrorKind::Interrupted.into()), Ok(&b"one"[..]), Err(ErrorKind::Interrupted.into())];
            for fails in [false, true] {
                let ends = if fails { Err(ErrorKind::ConnectionReset.into()) } else { Ok(&b""[..]) };
                let script = pieces().into_iter().chain([Ok(&b"two"[..]), ends, Ok(&b"three"[..])]).collect();
                let chunks: Vec<_> =
                    Chunks::of(Some(Scripted(script)), sync_channel(1).0).unwrap().from.iter().collect();
                assert_eq!(chunks, [b"one", b"two"]);
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::{Got, Wants};
    use super::{Log, Stderr};
    use crate::client::process::Process;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    /// Starts a program with three pipes.
    fn spawn(program: &str, args: &[&str]) -> Child {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    macro_rules! pipes {
        ($name:ident, $pipes:ty) => {
            /// Both kinds of pipes lose no bytes, and block neither on a server that writes without end nor on one
            /// that does not read.
            #[test]
            fn $name() {
                let script = "head -c 200000; echo done >&2; head -c 100000 /dev/zero >&2; head -c 300000 /dev/zero";
                let mut child = spawn("/bin/sh", &["-c", script]);
                let mut pipes = <$pipes>::new(&mut child).unwrap();
                let mut process = Process::new(child);
                let mut log = Log::new(Stderr::Keep);
                let (mut written, mut read, mut errors) = (0, 0, 0);
                let (mut space, input) = ([0; 5000], vec![b'x'; 400_000]);
                let begun = Instant::now();
                loop {
                    assert!(begun.elapsed() < Duration::from_secs(10));
                    if written < input.len() {
                        // The program closes its stdin, then it ends.
                        written += pipes.write(&input[written..]).unwrap_or(0);
                    }
                    errors += usize::from(pipes.read_errors(&mut log));
                    match pipes.read(&mut space) {
                        Got::Bytes(n) => read += n,
                        Got::End => break,
                        Got::Nothing => {
                            errors += usize::from(pipes.read_errors(&mut log));
                            let wants = Wants { read: true, write: false };
                            pipes.wait(wants, &process, Duration::from_millis(5)).unwrap();
                        }
                    }
                }
                pipes.close_input();
                assert_eq!(read, 500_000);
                assert!(written >= 200_000 && errors > 0);
                assert!(process.wait(Duration::from_secs(5)).is_some());
            }
        };
    }

    pipes!(one_thread, super::poll::Pipes);
    pipes!(a_thread_each, super::threads::Pipes);

    macro_rules! waiting {
        ($name:ident, $pipes:ty) => {
            /// Reads in pieces as large as what was written, and waits only while there is nothing, also in another thread than that
            /// which has made the pipes.
            #[test]
            fn $name() {
                let made = std::thread::spawn(|| {
                    let mut child = spawn("/bin/cat", &[]);
                    (<$pipes>::new(&mut child).unwrap(), child)
                });
                let (mut pipes, child) = made.join().unwrap();
                let mut process = Process::new(child);
                let wants = Wants { read: true, write: false };
                let (short, long) = (Duration::from_millis(50), Duration::from_secs(60));
                for text in [&b"12345678"[..], b"12345678", b"1234"] {
                    assert_eq!(pipes.write(text).unwrap(), text.len());
                    let mut space = [0; 8];
                    let begun = Instant::now();
                    let n = loop {
                        pipes.wait(wants, &process, long).unwrap();
                        if let Got::Bytes(n) = pipes.read(&mut space) {
                            break n;
                        }
                    };
                    assert!(begun.elapsed() < long / 2);
                    assert_eq!(&space[..n], text);
                    assert!(matches!(pipes.read(&mut space), Got::Nothing));
                    let begun = Instant::now();
                    // The first ones may end because the last bytes were written, and others read.
                    (0..3).for_each(|_| pipes.wait(wants, &process, short).unwrap());
                    assert!(begun.elapsed() >= short, "{:?}", begun.elapsed());
                }
                pipes.close_input();
                assert!(process.wait(Duration::from_secs(5)).is_some());
            }
        };
    }

    waiting!(waiting_in_one_thread, super::poll::Pipes);
    waiting!(waiting_for_threads, super::threads::Pipes);

    macro_rules! last_words {
        ($name:ident, $pipes:ty) => {
            /// Bytes written before the end are read after it without a wait, whichever pipe comes first.
            #[test]
            fn $name() {
                for errors_first in [true, false] {
                    let mut child = spawn("/bin/sh", &["-c", "echo 'out of cheese' >&2; echo sorry"]);
                    let mut pipes = <$pipes>::new(&mut child).unwrap();
                    let mut process = Process::new(child);
                    let mut log = Log::new(Stderr::Keep);
                    assert!(process.wait(Duration::from_secs(20)).is_some());
                    pipes.look_again();
                    assert!(pipes.may_have_ended());
                    let (mut space, begun) = ([0; 8], Instant::now());
                    for is_errors in [errors_first, !errors_first] {
                        while if is_errors {
                            !pipes.read_errors(&mut log)
                        } else {
                            pipes.read(&mut space) == Got::Nothing
                        } {
                            // A thread may not have read it yet.
                            assert!(begun.elapsed() < Duration::from_secs(20));
                            std::thread::sleep(Duration::from_millis(2));
                        }
                    }
                    assert_eq!(log.last_words(), "out of cheese");
                    assert_eq!(&space[..6], b"sorry\n");
                }
            }
        };
    }

    last_words!(last_words_in_one_thread, super::poll::Pipes);
    last_words!(last_words_from_a_thread, super::threads::Pipes);

    macro_rules! unread {
        ($name:ident, $pipes:ty) => {
            /// Bytes that were not read yet end every wait for them at once.
            #[test]
            fn $name() {
                let mut child = spawn("/bin/sh", &["-c", "echo 1234567; read line; echo words >&2; read line"]);
                let mut pipes = <$pipes>::new(&mut child).unwrap();
                let mut process = Process::new(child);
                let mut log = Log::new(Stderr::Keep);
                let (wants, long) = (Wants { read: true, write: false }, Duration::from_secs(60));
                let begun = Instant::now();
                for _ in 0..2 {
                    pipes.wait(wants, &process, long).unwrap();
                    assert_eq!(pipes.read(&mut [0; 4]), Got::Bytes(4));
                }
                pipes.write(b"\n").unwrap();
                // The first ones may end because the line was written, and the last bytes read.
                (0..4).for_each(|_| pipes.wait(Wants { read: false, write: false }, &process, long).unwrap());
                assert!(pipes.read_errors(&mut log) && log.last_words() == "words");
                pipes.close_input();
                assert!(process.wait(long).is_some() && begun.elapsed() < long / 2);
            }
        };
    }

    unread!(unread_in_one_thread, super::poll::Pipes);
    unread!(unread_by_threads, super::threads::Pipes);

    macro_rules! no_newline {
        ($name:ident, $pipes:ty) => {
            /// The last line of stderr needs no newline.
            #[test]
            fn $name() {
                let mut child = spawn("/bin/sh", &["-c", "echo 'out of cheese' >&2; printf 'and bread' >&2"]);
                let mut pipes = <$pipes>::new(&mut child).unwrap();
                let process = Process::new(child);
                let lines = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
                let sink = lines.clone();
                let mut log = Log::new(Stderr::Lines(Box::new(move |line| sink.borrow_mut().push(line.to_vec()))));
                let begun = Instant::now();
                while lines.borrow().len() < 2 {
                    assert!(begun.elapsed() < Duration::from_secs(20), "{lines:?}");
                    pipes.wait(Wants { read: false, write: false }, &process, Duration::from_millis(50)).unwrap();
                    pipes.read_errors(&mut log);
                }
                pipes.read_errors(&mut log);
                assert_eq!(*lines.borrow(), [&b"out of cheese"[..], b"and bread"]);
            }
        };
    }

    no_newline!(no_newline_in_one_thread, super::poll::Pipes);
    no_newline!(no_newline_from_a_thread, super::threads::Pipes);

    /// A wait for stderr says nothing about the output, nor about the process.
    #[test]
    fn only_what_is_ready_counts_as_ready() {
        let mut child = spawn("/bin/sh", &["-c", "echo hello; echo words >&2; exec 1>&-; read line; exec sleep 20"]);
        let mut pipes = super::poll::Pipes::new(&mut child).unwrap();
        let mut process = Process::new(child);
        let long = Duration::from_secs(60);
        pipes.wait(Wants { read: false, write: false }, &process, long).unwrap();
        assert!(!pipes.has_more() && !pipes.may_have_ended());
        assert!(pipes.read_errors(&mut Log::new(Stderr::Keep)));
        // The output has ended: it is not waited for any more.
        let wants = Wants { read: true, write: true };
        while pipes.read(&mut [0; 4]) != Got::End {
            pipes.wait(Wants { read: true, write: false }, &process, long).unwrap();
        }
        assert!(!pipes.has_more());
        pipes.wait(wants, &process, long).unwrap();
        assert!(!pipes.has_more() && !pipes.may_have_ended());
        process.kill();
    }

    /// The end of the process ends the wait, also while another process holds its pipes open, on systems that report it.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn one_wait_lasts_until_the_process_ends() {
        let mut child = spawn("/bin/sh", &["-c", "sleep 4 & exec sleep 0.3"]);
        let mut pipes = super::poll::Pipes::new(&mut child).unwrap();
        let mut process = Process::new(child);
        pipes.wait(Wants { read: true, write: false }, &process, Duration::from_secs(60)).unwrap();
        assert!(pipes.may_have_ended() && process.status().is_some(), "the wait has ended before the process");
    }

    /// A read that leaves room has taken all that there was: no second one is made to learn that.
    #[test]
    fn a_pipe_is_not_read_again_for_nothing() {
        let mut child = spawn("/bin/cat", &[]);
        let mut pipes = super::poll::Pipes::new(&mut child).unwrap();
        let process = Process::new(child);
        for (text, may_have_more) in [(&b"1234"[..], false), (b"12345678", true)] {
            pipes.write(text).unwrap();
            let mut space = [0; 8];
            while !matches!(pipes.read(&mut space), Got::Bytes(_)) {
                pipes.wait(Wants { read: true, write: false }, &process, Duration::from_secs(60)).unwrap();
            }
            assert_eq!(pipes.has_more(), may_have_more);
        }
        assert!(matches!(pipes.read(&mut [0; 8]), Got::Nothing) && !pipes.has_more());
        // It may have something, and has not.
        pipes.look_again();
        assert!(pipes.has_more() && matches!(pipes.read(&mut [0; 8]), Got::Nothing) && !pipes.has_more());
        pipes.close_input();
    }
}
