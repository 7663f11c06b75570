//! The listener on this machine to which a browser comes back with the result of an authorization request.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The path of the redirect URI.
const PATH: &str = "/callback";

/// Largest head of a request, in bytes: codes may be long.
const HEAD: usize = 16 << 10;

/// The number of connections that are read at once: browsers open some that they do not use.
const CONNECTIONS: usize = 8;

/// The time that a connection may take to send its request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest wait between two looks at the time.
const SLICE: Duration = Duration::from_millis(200);

/// A listener on 127.0.0.1 ([RFC 8252](https://www.rfc-editor.org/rfc/rfc8252#section-7.3)).
#[derive(Debug)]
pub(crate) struct Loopback {
    listener: TcpListener,
    port: u16,
}

/// The page that the browser shows in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The authorization worked.
    Good,
    /// It failed; the program says why.
    Bad,
    /// The request does not belong to this authorization: wait for another one.
    Foreign,
}

struct Visitor {
    socket: TcpStream,
    head: Vec<u8>,
    until: Instant,
}

impl Loopback {
    /// Opens a listener on `port`, or on any port if that one is taken or 0.
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let bind = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let listener = bind(port).or_else(|error| if port == 0 { Err(error) } else { bind(0) })?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Loopback { listener, port })
    }

    /// Returns the redirect URI.
    pub(crate) fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Closes connections that came before: their redirects belong to an earlier authorization.
    pub(crate) fn drain(&self) {
        while self.listener.accept().is_ok() {}
    }

    /// Waits for redirects until `take` says that one belongs to this authorization, or `goes_on` returns `false`.
    /// `take` gets path and query. Returns `false` if there was none.
    pub(crate) fn wait(
        &self,
        goes_on: &mut dyn FnMut() -> bool,
        take: &mut dyn FnMut(&str) -> Page,
    ) -> io::Result<bool> {
        let mut visitors: Vec<Visitor> = Vec::new();
        while goes_on() {
            self.sleep(&visitors)?;
            if visitors.len() < CONNECTIONS {
                match self.listener.accept() {
                    Ok((socket, _)) if socket.set_nonblocking(true).is_ok() => {
                        visitors.push(Visitor { socket, head: Vec::new(), until: Instant::now() + PATIENCE });
                    }
                    _ => {}
                }
            }
            let mut over = false;
            visitors.retain_mut(|visitor| {
                let keeps = !over && visitor.read() && visitor.until > Instant::now();
                let Some(target) = visitor.target().map(str::to_owned) else { return keeps };
                let page = if target.split('?').next() == Some(PATH) { take(&target) } else { Page::Foreign };
                over = page != Page::Foreign;
                visitor.answer(page);
                false
            });
            if over {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn sleep(&self, visitors: &[Visitor]) -> io::Result<()> {
        let listens = (visitors.len() < CONNECTIONS).then(|| self.listener.as_fd());
        let fds = visitors.iter().map(|visitor| visitor.socket.as_fd()).chain(listens);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut fds, Timespec::try_from(SLICE).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Visitor {
    /// Reads without waiting. Returns `false` if the connection is over or the head too long.
    fn read(&mut self) -> bool {
        let mut space = [0; 4096];
        loop {
            match self.socket.read(&mut space) {
                Ok(0) => return false,
                Ok(n) => self.head.extend_from_slice(&space[..n]),
                // Without a wait there is no signal that interrupts it.
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
            if self.head.len() > HEAD {
                return false;
            }
        }
    }

    /// Returns path and query of a whole GET request.
    fn target(&self) -> Option<&str> {
        self.head.windows(4).any(|end| end == b"\r\n\r\n").then_some(())?;
        let line = self.head.split(|byte| *byte == b'\r').next()?;
        let line = std::str::from_utf8(line).ok()?;
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("GET"), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) => Some(target),
            _ => Some(""),
        }
    }

    fn answer(&mut self, page: Page) {
        let (status, text) = match page {
            Page::Good => ("200 OK", "You are logged in. You can close this window."),
            Page::Bad => {
                ("200 OK", "The login failed. The program that asked for it says why. You can close this window.")
            }
            Page::Foreign => ("404 Not Found", "Nothing waits for this."),
        };
        let body = format!("<!doctype html><meta charset=\"utf-8\"><title>Login</title><p>{text}</p>\n");
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
            body.len()
        );
        // The page is a courtesy; a new socket takes it at once.
        let _ = self.socket.write_all((head + &body).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn visit(uri: &str, target: &str) -> String {
        let mut socket = TcpStream::connect(uri.trim_start_matches("http://").trim_end_matches(PATH)).unwrap();
        write!(socket, "GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn only_the_right_redirect_ends_the_wait() {
        let loopback = Loopback::open(0).unwrap();
        let uri = loopback.redirect_uri();
        let mut early = TcpStream::connect(uri.trim_start_matches("http://").trim_end_matches(PATH)).unwrap();
        early.write_all(b"GET /callback?state=early HTTP/1.1\r\n\r\n").unwrap();
        thread::sleep(Duration::from_millis(50));
        loopback.drain();
        let visitor = thread::spawn(move || {
            // A connection without a request does not hold up the others.
            let place = uri.trim_start_matches("http://").trim_end_matches(PATH);
            let _idle = TcpStream::connect(place).unwrap();
            // Nor does one that is broken off in the middle.
            let mut reset = TcpStream::connect(place).unwrap();
            reset.write_all(b"GET /call").unwrap();
            thread::sleep(Duration::from_millis(50));
            rustix::net::sockopt::set_socket_linger(&reset, Some(Duration::ZERO)).unwrap();
            drop(reset);
            ["/favicon.ico", "/callback?state=other", "/callbackx?state=mine", "/callback?state=mine"]
                .map(|target| visit(&uri, target))
        });
        let mut seen = Vec::new();
        let done = loopback.wait(&mut || true, &mut |target| {
            seen.push(target.to_owned());
            if target.ends_with("=mine") { Page::Good } else { Page::Foreign }
        });
        assert!(done.unwrap());
        assert_eq!(seen, ["/callback?state=other", "/callback?state=mine"]);
        let answers = visitor.join().unwrap();
        assert!(answers[..3].iter().all(|answer| answer.starts_with("HTTP/1.1 404 ")));
        assert!(answers[3].contains("logged in") && !answers[3].contains("mine"));
        drop(early);
        let mut rounds = 3;
        let mut goes_on = || {
            rounds -= 1;
            rounds > 0
        };
        let begun = Instant::now();
        assert!(!loopback.wait(&mut goes_on, &mut |_| Page::Good).unwrap(), "given up");
        assert!(begun.elapsed() >= SLICE, "it does not sleep");
    }

    /// Opens connections until there are `CONNECTIONS` of them, and one more with the redirect; waits for some rounds.
    fn crowd(loopback: &Loopback, rounds: usize, open: impl Fn() -> Option<TcpStream>) -> (bool, TcpStream, Duration) {
        let crowd: Vec<_> = (0..CONNECTIONS).map(|_| open()).collect();
        let mut last = TcpStream::connect(("127.0.0.1", loopback.port)).unwrap();
        last.write_all(b"GET /callback HTTP/1.1\r\n\r\n").unwrap();
        let mut left = rounds;
        let begun = Instant::now();
        let mut goes_on = || {
            left = left.saturating_sub(1);
            left > 0
        };
        let came = loopback.wait(&mut goes_on, &mut |_| Page::Good).unwrap();
        drop(crowd);
        (came, last, begun.elapsed())
    }

    /// Connections without a request take places. Those that are over take none.
    #[test]
    fn so_many_connections_are_read_at_once() {
        let loopback = Loopback::open(0).unwrap();
        let connect = || TcpStream::connect(("127.0.0.1", loopback.port)).unwrap();
        let (came, last, waited) = crowd(&loopback, CONNECTIONS + 3, || Some(connect()));
        assert!(!came, "it has no place");
        assert!(waited >= SLICE, "it does not sleep");
        drop(last);
        loopback.drain();
        let (came, mut last, _) = crowd(&loopback, 1000, || {
            drop(connect());
            None
        });
        assert!(came);
        let mut page = String::new();
        last.read_to_string(&mut page).unwrap();
        assert!(page.contains("logged in"), "{page}");
    }

    #[test]
    fn a_port_that_is_taken_is_not_used() {
        let first = Loopback::open(0).unwrap();
        let second = Loopback::open(first.port).unwrap();
        assert_ne!(first.port, second.port);
    }

    fn visitor(head: &[u8]) -> Visitor {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Visitor { socket, head: head.to_vec(), until: Instant::now() }
    }

    #[test]
    fn only_a_whole_get_has_a_target() {
        for (head, target) in [
            ("GET /callback?a=b HTTP/1.1\r\nHost: x\r\n\r\n", Some("/callback?a=b")),
            ("GET / HTTP/1.0\r\n\r\n", Some("/")),
            ("GET / HTTP/1.1\r\nHost: x\r\n\r", None),
            ("", None),
            ("POST /callback HTTP/1.1\r\n\r\n", Some("")),
            ("GET /callback HTTP/2\r\n\r\n", Some("")),
            ("GET /callback HTTP/1.1 x\r\n\r\n", Some("")),
            ("GET /callback\r\n\r\n", Some("")),
        ] {
            assert_eq!(visitor(head.as_bytes()).target(), target, "{head}");
        }
        assert_eq!(visitor(b"GET /\xff HTTP/1.1\r\n\r\n").target(), None);
    }

    /// The rest of a head may come later, and a head that is too long is not read.
    #[test]
    fn a_head_comes_in_pieces() {
        // Without the end of the line, the head is as long as it may be, and one byte longer.
        let longest = HEAD - "GET /callback?a=".len();
        for (size, is_taken) in [(10, true), (longest, true), (longest + 1, false)] {
            let loopback = Loopback::open(0).unwrap();
            let mut client = TcpStream::connect(("127.0.0.1", loopback.port)).unwrap();
            let filler = "x".repeat(size);
            let mut pieces =
                vec![format!("GET /call"), format!("back?a={filler}"), format!(" HTTP/1.1\r\n\r\n")].into_iter();
            let mut rounds = 20;
            let mut goes_on = || {
                if let Some(piece) = pieces.next() {
                    // The peer may have closed the connection.
                    let _ = client.write_all(piece.as_bytes());
                }
                rounds -= 1;
                rounds > 0
            };
            let mut seen = 0;
            let came = loopback.wait(&mut goes_on, &mut |target| {
                seen += target.len();
                Page::Bad
            });
            assert_eq!(came.unwrap(), is_taken, "{size}");
            assert_eq!(seen, if is_taken { "/callback?a=".len() + size } else { 0 });
            if is_taken {
                let mut page = String::new();
                client.read_to_string(&mut page).unwrap();
                assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("The login failed"), "{page}");
            }
        }
    }
}
