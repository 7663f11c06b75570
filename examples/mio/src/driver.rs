//! An HTTP server on mio: one thread, whose sockets tell each event once.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_sansio_host::{HttpServing, HttpSetup};
use mcp_sansio_http::endpoint::App;
use mcp_sansio_http::host::{Broken, HttpSocket, Interest};
use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Token};

/// The tokens that belong to no connection; theirs are their places.
const WOKEN: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);

/// The limit of connections that are accepted in one turn.
const AT_ONCE: usize = 64;

/// Serves until the `stopper` of the setup ends it.
///
/// # Errors
/// If the server cannot wait for events.
pub(crate) fn serve<S>(listener: std::net::TcpListener, setup: HttpSetup<S>, mut app: App<'_, S>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut listener = TcpListener::from_std(listener);
    let poll = mio::Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, mio::Interest::READABLE)?;
    let waker = Waker::from(Arc::new(PollWaker(mio::Waker::new(poll.registry(), WOKEN)?)));
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the system has random bytes");
    Driver {
        poll,
        listener: Some(listener),
        accepts: true,
        serving: setup.serve(false, &mut app, random),
        app,
        again: Rc::default(),
    }
    .run(&waker)
}

/// Wakes the loop, from any thread: late messages have come, or the server is stopped.
struct PollWaker(mio::Waker);

impl Wake for PollWaker {
    fn wake(self: Arc<Self>) {
        // It fails only where the system has no memory for it; the next event wakes the loop then.
        let _ = self.0.wake();
    }
}

struct Driver<'a, S: 'static> {
    poll: mio::Poll,
    /// `None` when the server ends.
    listener: Option<TcpListener>,
    /// There may be connections to accept.
    accepts: bool,
    serving: HttpServing<S, Socket>,
    app: App<'a, S>,
    /// The connections that have more to do at once.
    again: Rc<RefCell<Vec<usize>>>,
}

impl<S> Driver<'_, S> {
    fn run(&mut self, waker: &Waker) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        // The first turn does not wait: it registers what wakes the others.
        let mut wake = Some(0);
        loop {
            let again = self.again.take();
            let wait = self.serving.next(wake.or((!again.is_empty()).then_some(0)));
            let wait = wait.map(|at| Duration::from_millis(at.saturating_sub(self.serving.now())));
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.serving.look_at_clock();
            for slot in again {
                self.serving.serve(slot, &mut self.app);
            }
            for event in &events {
                match event.token() {
                    WOKEN => {}
                    LISTENER => self.accepts = true,
                    Token(slot) => self.serve(slot, event),
                }
            }
            wake = self.serving.turn(&mut self.app, &mut Context::from_waker(waker));
            // After the closed connections have made room.
            if self.accept() {
                wake = Some(0);
            }
            if self.serving.has_ended(&mut self.app, waker, &mut self.listener) {
                return Ok(());
            }
        }
    }

    /// Serves a connection whose socket has an event.
    fn serve(&mut self, slot: usize, event: &Event) {
        let Some(socket) = self.serving.host.socket(slot) else { return };
        socket.is_readable = true;
        socket.has_ended |= event.is_read_closed();
        socket.is_gone |= event.is_write_closed() || event.is_error();
        self.serving.serve(slot, &mut self.app);
        if self.serving.host.socket(slot).is_some_and(|socket| socket.has_left()) {
            self.serving.host.close(slot, &mut self.app, self.serving.now());
        }
    }

    /// Accepts connections. Returns whether there were any.
    fn accept(&mut self) -> bool {
        let mut any = false;
        for _ in 0..AT_ONCE {
            let accepts = self.accepts && self.serving.accepts();
            let Some(listener) = self.listener.as_ref().filter(|_| accepts) else { break };
            match listener.accept() {
                Ok((stream, _)) => {
                    any = true;
                    self.enter(stream);
                }
                Err(error) if self.serving.accept_failed(error.kind()) => {}
                Err(error) => {
                    // The listener reports new connections. It never reports that descriptors are free again.
                    self.accepts = error.kind() != ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        any
    }

    /// Takes a connection. One that cannot be watched leaves its place to the next.
    fn enter(&mut self, mut stream: TcpStream) {
        let slot = self.serving.host.vacant();
        let all = mio::Interest::READABLE | mio::Interest::WRITABLE;
        let registered = self.poll.registry().register(&mut stream, Token(slot), all);
        if registered.and_then(|()| stream.set_nodelay(true)).is_err() {
            return;
        }
        let is_spare = self.serving.spare.has(&stream);
        let again = Rc::clone(&self.again);
        let (is_readable, has_ended, is_gone, interest) = (true, false, false, Interest::Read);
        let socket = Socket { stream, slot, again, is_readable, has_ended, is_gone, interest };
        self.serving.enter(socket, is_spare, &mut self.app);
    }
}

/// The socket of a connection. It is registered for all events, which come once, until it is dropped.
struct Socket {
    stream: TcpStream,
    slot: usize,
    again: Rc<RefCell<Vec<usize>>>,
    /// There may be something to read.
    is_readable: bool,
    /// The peer has ended its side.
    has_ended: bool,
    /// The connection is over, on both sides.
    is_gone: bool,
    interest: Interest,
}

impl Socket {
    /// Returns whether the peer has left while nothing is read: a read would report it.
    const fn has_left(&self) -> bool {
        match self.interest {
            // A client that has ended its side still gets the answer for which it waits.
            Interest::Nothing => self.is_gone,
            Interest::End => self.is_gone || self.has_ended,
            _ => false,
        }
    }
}

/// Reads or writes. Does it again when a signal has interrupted it: no other event would come.
fn retry(mut call: impl FnMut() -> io::Result<usize>) -> Poll<Result<usize, Broken>> {
    loop {
        match call() {
            Ok(n) => return Poll::Ready(Ok(n)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            Err(_) => return Poll::Ready(Err(Broken)),
        }
    }
}

impl HttpSocket for Socket {
    fn is_readable(&mut self) -> bool {
        self.is_readable
    }

    fn waiting(&self) -> usize {
        0 // mio does not tell
    }

    fn read(&mut self, space: &mut [u8]) -> Poll<Result<usize, Broken>> {
        let read = retry(|| self.stream.read(space));
        self.is_readable = read.is_ready();
        read
    }

    fn write(&mut self, bytes: &[u8]) -> Poll<Result<usize, Broken>> {
        retry(|| self.stream.write(bytes))
    }

    fn shut(&mut self) -> Result<(), Broken> {
        self.stream.shutdown(Shutdown::Write).map_err(|_| Broken)
    }

    fn wait_for(&mut self, interest: Interest, again: bool) -> Result<(), Broken> {
        self.interest = interest;
        if again {
            self.again.borrow_mut().push(self.slot);
        }
        Ok(())
    }
}
