//! Processes with a real Redis, which goes away and comes back. Left out where there is no `redis-server`.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::Redis;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{Millis, OwnedServerChange, RequestToken, RespondError, Server as McpServer, ServerChange};
use mcp_sansio::service::Service;
use mcp_sansio::sink::Out;
use mcp_sansio_fleet::{FleetNews, FleetOptions, RedisFleet};
use mcp_sansio_host::{LateReceiver, LateTarget, LogMessage, channel_of};
use mcp_sansio_http::endpoint::Fleet;

const WAIT: Duration = Duration::from_secs(20);
const SESSION: [u8; 16] = *b"0123456789abcdef";
/// In the year 2200.
const UNTIL: Millis = 7_258_118_400_000;

/// A message to a server.
#[derive(Debug, PartialEq)]
enum Heard {
    Change(OwnedServerChange),
    ChangeTo(String, OwnedServerChange),
    End([u8; 16], Millis),
}

#[derive(Default)]
struct Server(Vec<Heard>);

impl LateTarget<()> for Server {
    fn with_request<R>(&mut self, _: RequestToken, _: impl FnOnce(&mut McpServer<'_>, &mut dyn Out) -> R) -> Option<R> {
        None
    }
    fn resume(&mut self, _: &Service<'_, ()>, (): &mut (), _: RequestToken) -> Result<(), RespondError> {
        Err(RespondError::Stale)
    }
    fn log(&mut self, _: &Service<'_, ()>, (): &mut (), _: Option<RequestToken>, _: LoggingLevel, _: &LogMessage) {}
    fn publish(&mut self, change: ServerChange<'_>, to: Option<&str>, is_here: bool) {
        assert!(is_here, "it would be told again");
        self.0.push(match to {
            Some(principal) => Heard::ChangeTo(principal.to_owned(), change.into()),
            None => Heard::Change(change.into()),
        });
    }
    fn end_session_here(&mut self, _: &Service<'_, ()>, (): &mut (), session: &[u8; 16], until: Millis) {
        self.0.push(Heard::End(*session, until));
    }
}

struct Process {
    fleet: RedisFleet,
    link: &'static mut dyn Fleet,
    news: Receiver<FleetNews>,
    receiver: LateReceiver<()>,
    server: Server,
}

impl Process {
    /// Starts a process, and waits until it has joined.
    fn join(redis: &Redis, options: FleetOptions) -> Process {
        let (late, receiver) = channel_of(4);
        let (sender, news) = channel();
        let tell = move |news| drop(sender.send(news));
        let fleet = RedisFleet::start(&redis.url(), options, &late, tell).unwrap();
        let process = Process { link: fleet.link(), fleet, news, receiver, server: Server::default() };
        assert_eq!(process.news.recv_timeout(WAIT).unwrap(), FleetNews::Joined);
        process
    }

    /// Joins, and hears that all may have changed before.
    fn new(redis: &Redis, options: &FleetOptions) -> Process {
        let mut process = Process::join(redis, options.clone());
        assert_eq!(process.next(), change(ServerChange::All));
        process
    }

    fn within(&mut self, wait: Duration) -> Option<Heard> {
        let begun = Instant::now();
        loop {
            self.receiver.give(&mut self.server, &Service::new("test", "1"), &mut ());
            if !self.server.0.is_empty() {
                return Some(self.server.0.remove(0));
            }
            let left = wait.checked_sub(begun.elapsed())?;
            self.receiver.wait(left);
        }
    }

    fn next(&mut self) -> Heard {
        self.within(WAIT).expect("something is heard")
    }

    fn nothing(&mut self) {
        assert_eq!(self.within(Duration::from_millis(300)), None);
    }

    fn skip_to(&mut self, wanted: &Heard) {
        while self.next() != *wanted {}
    }
}

fn change(change: ServerChange<'_>) -> Heard {
    Heard::Change(change.into())
}

fn options() -> FleetOptions {
    FleetOptions::new("test")
}

#[test]
fn each_change_is_heard_once_by_all_others() {
    let Some(redis) = Redis::new() else { return };
    let options = options();
    let [mut a, mut b, mut c] = [(); 3].map(|()| Process::new(&redis, &options));
    let changes = [ServerChange::Tools, ServerChange::Resource("notes://1"), ServerChange::Tools];
    for one in changes {
        a.link.publish(None, one);
    }
    for heard in [&mut b, &mut c] {
        for one in changes {
            assert_eq!(heard.next(), change(one));
        }
        heard.nothing();
    }
    a.link.publish(Some("ann"), ServerChange::Prompts);
    for heard in [&mut b, &mut c] {
        assert_eq!(heard.next(), Heard::ChangeTo("ann".into(), ServerChange::Prompts.into()));
    }
    a.nothing();
    // A process sends its changes before it leaves, and the others do not count that as a loss.
    b.link.publish(None, ServerChange::Prompts);
    drop(b);
    assert_eq!((a.next(), c.next()), (change(ServerChange::Prompts), change(ServerChange::Prompts)));
    std::thread::sleep(Duration::from_millis(4500));
    a.nothing();
}

#[test]
fn sessions_end_at_all_also_at_those_that_start_later() {
    let Some(redis) = Redis::new() else { return };
    let options = options();
    let [mut a, mut b] = [(); 2].map(|()| Process::new(&redis, &options));
    a.link.end_session(&SESSION, UNTIL);
    assert_eq!(b.next(), Heard::End(SESSION, UNTIL));
    a.nothing();
    let mut c = Process::join(&redis, options);
    assert_eq!((c.next(), c.next()), (Heard::End(SESSION, UNTIL), change(ServerChange::All)));
}

/// A change that was published meanwhile arrives, and all may have missed something.
#[test]
fn redis_is_started_anew_and_has_forgotten_everything() {
    let Some(mut redis) = Redis::new() else { return };
    let options = options();
    let [mut a, mut b] = [(); 2].map(|()| Process::new(&redis, &options));
    a.link.end_session(&SESSION, UNTIL);
    assert_eq!(b.next(), Heard::End(SESSION, UNTIL));
    redis.kill();
    for process in [&a, &b] {
        assert!(matches!(process.news.recv_timeout(WAIT).unwrap(), FleetNews::Alone { .. }));
    }
    a.link.publish(None, ServerChange::Prompts);
    redis.start();
    for process in [&mut a, &mut b] {
        assert_eq!(process.news.recv_timeout(WAIT).unwrap(), FleetNews::Joined);
        process.skip_to(&change(ServerChange::All));
    }
    a.link.publish(None, ServerChange::Tools);
    b.skip_to(&change(ServerChange::Tools));
    // The session is said to have ended again.
    let mut c = Process::join(&redis, options);
    assert_eq!(c.next(), Heard::End(SESSION, UNTIL));
}

/// One that is alone names the memory of Redis itself, both times.
#[test]
fn the_only_process_finds_out_that_redis_was_started_anew() {
    let Some(mut redis) = Redis::new() else { return };
    let mut a = Process::new(&redis, &options());
    let before = messages(&redis);
    for uri in ["1", "2", "3"] {
        a.link.publish(None, ServerChange::Resource(uri));
    }
    // What was not sent yet would be sent to the new one.
    let end = Instant::now() + WAIT;
    while messages(&redis) < before + 3 {
        assert!(Instant::now() < end, "the changes are sent");
        std::thread::sleep(Duration::from_millis(10));
    }
    redis.kill();
    assert!(matches!(a.news.recv_timeout(WAIT).unwrap(), FleetNews::Alone { .. }));
    redis.start();
    assert_eq!(a.news.recv_timeout(WAIT).unwrap(), FleetNews::Joined);
    assert_eq!(a.next(), change(ServerChange::All));
    // It hears from the beginning of the new numbers.
    let mut b = Process::new(&redis, &options());
    b.link.publish(None, ServerChange::Tools);
    assert_eq!(a.next(), change(ServerChange::Tools));
    b.nothing();
}

/// Returns how many messages Redis has numbered.
fn messages(redis: &Redis) -> u64 {
    let mut link = TcpStream::connect(redis.url().trim_start_matches("redis://").trim_end_matches('/')).unwrap();
    link.write_all(b"GET mcp:test:count\r\n").unwrap();
    let (mut reply, mut piece) = (Vec::new(), [0; 64]);
    // `$-1` for none, or a length and the digits, each in a line.
    while !reply.starts_with(b"$-1") && reply.iter().filter(|byte| **byte == b'\n').count() < 2 {
        let n = link.read(&mut piece).unwrap();
        assert!(n > 0, "Redis answers");
        reply.extend_from_slice(&piece[..n]);
    }
    std::str::from_utf8(&reply).unwrap().lines().nth(1).map_or(0, |digits| digits.parse().unwrap())
}

/// It may have been killed before it could send a change.
#[test]
fn a_process_that_is_silent_may_have_published() {
    let Some(redis) = Redis::new() else { return };
    let options = options();
    let [mut a, mut b] = [(); 2].map(|()| Process::new(&redis, &options));
    let mut link = TcpStream::connect(redis.url().trim_start_matches("redis://").trim_end_matches('/')).unwrap();
    write!(link, "ZADD mcp:test:alive 1 killed\r\n").unwrap();
    assert_eq!((a.next(), b.next()), (change(ServerChange::All), change(ServerChange::All)));
    a.nothing();
    b.nothing();
}

#[test]
fn too_many_changes_become_one() {
    let Some(mut redis) = Redis::new() else { return };
    let options = options().queue(2);
    let [a, mut b] = [(); 2].map(|()| Process::new(&redis, &options));
    redis.kill();
    assert!(matches!(a.news.recv_timeout(WAIT).unwrap(), FleetNews::Alone { .. }));
    for uri in ["1", "2", "3", "4", "5", "6"] {
        a.link.publish(None, ServerChange::Resource(uri));
    }
    redis.start();
    // Not all of them arrive, but that all may have changed, behind the last.
    let mut heard = Vec::new();
    while let Some(one) = b.within(Duration::from_secs(4)) {
        heard.push(one);
    }
    assert!(heard.len() < 6 && heard.last() == Some(&change(ServerChange::All)), "{heard:?}");
}

#[test]
fn a_process_that_is_too_slow_hears_of_its_loss() {
    let Some(redis) = Redis::new() else { return };
    let options = options().keep(1);
    let [a, mut b] = [(); 2].map(|()| Process::new(&redis, &options));
    for number in 0..1_000 {
        a.link.publish(None, ServerChange::Resource(&number.to_string()));
    }
    // Meanwhile it takes nothing.
    std::thread::sleep(Duration::from_secs(1));
    b.skip_to(&change(ServerChange::All));
    b.skip_to(&change(ServerChange::Resource("999")));
    drop(a.fleet);
}

/// Redis is there, and has no memory for what is sent.
#[test]
fn what_redis_refuses_is_sent_later() {
    let Some(redis) = Redis::new() else { return };
    let options = options();
    let [a, mut b] = [(); 2].map(|()| Process::new(&redis, &options));
    redis.set("maxmemory", "1");
    assert!(matches!(a.news.recv_timeout(WAIT).unwrap(), FleetNews::Alone { .. }));
    a.link.publish(None, ServerChange::Tools);
    b.nothing();
    redis.set("maxmemory", "0");
    assert_eq!(a.news.recv_timeout(WAIT).unwrap(), FleetNews::Joined);
    b.skip_to(&change(ServerChange::Tools));
}
