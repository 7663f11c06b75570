//! Processes of a fleet with a real Redis, which goes away and comes back. Left out where there is no `redis-server`.

mod common;

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::Redis;
use mcp_sansio_fleet::{Fleet, FleetNews, FleetOptions};
use mcp_sansio_http::fleet::{Arrival, Engine, ProcessTag, Recipients};

trait Join {
    fn join(&self, options: FleetOptions) -> Process;
    fn processes<const N: usize>(&self, options: &FleetOptions) -> [Process; N];
}

impl Join for Redis {
    /// Starts a process of the fleet, and waits until it has joined.
    fn join(&self, options: FleetOptions) -> Process {
        let (sender, news) = channel();
        let mut fleet = Fleet::start(&self.url(), options, move |news| drop(sender.send(news))).unwrap();
        let (wake, woken) = channel();
        fleet.set_waker(std::sync::Arc::new(move || _ = wake.send(())));
        let mut process = Process { fleet, news, woken };
        assert_eq!(process.news.recv_timeout(WAIT).unwrap(), FleetNews::Joined);
        let own = process.fleet.tag();
        process.skip_to(&Arrival::Joined(own));
        assert_eq!(process.next(), Arrival::Lost);
        process
    }

    /// Starts processes that know each other.
    fn processes<const N: usize>(&self, options: &FleetOptions) -> [Process; N] {
        let mut all = [(); N].map(|()| self.join(options.clone()));
        // Those that came before hear of each that joins; one that joins has met those before it.
        let tags: Vec<_> = all.iter().map(|process| process.fleet.tag()).collect();
        for (at, process) in all.iter_mut().enumerate() {
            let mut later: Vec<_> = tags[at + 1..].iter().map(|tag| Arrival::Joined(*tag)).collect();
            while !later.is_empty() {
                let heard = process.next();
                later.retain(|arrival| *arrival != heard);
            }
        }
        all
    }
}

const WAIT: Duration = Duration::from_secs(20);

/// A process, whose waker is heard.
struct Process {
    fleet: Fleet,
    news: Receiver<FleetNews>,
    woken: Receiver<()>,
}

impl Process {
    fn take_within(&mut self, wait: Duration) -> Option<Arrival> {
        let end = Instant::now() + wait;
        loop {
            if let Some(arrival) = self.fleet.take() {
                return Some(arrival);
            }
            self.woken.recv_timeout(end.saturating_duration_since(Instant::now())).ok()?;
        }
    }

    fn next(&mut self) -> Arrival {
        self.take_within(WAIT).expect("there is an arrival")
    }

    fn skip_to(&mut self, arrival: &Arrival) {
        while self.next() != *arrival {}
    }

    fn nothing(&mut self) {
        assert_eq!(self.take_within(Duration::from_millis(200)), None);
    }

    /// Waits until Redis has what was sent before.
    fn sent(&self) {
        let end = Instant::now() + WAIT;
        while self.fleet.waiting() > 0 {
            assert!(Instant::now() < end, "{} are waiting", self.fleet.waiting());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn tell(&mut self, message: &[u8]) {
        self.fleet.publish(Recipients::Others, message, u64::MAX);
    }
}

fn message(from: ProcessTag, message: &[u8]) -> Arrival {
    Arrival::Message { from, message: message.into() }
}

fn options() -> FleetOptions {
    FleetOptions::new("notes")
}

#[test]
fn the_others_hear_each_message_once_and_in_order() {
    let Some(redis) = Redis::new() else { return };
    let [mut one, mut two, mut three] = redis.processes(&options());
    let mut other = redis.join(FleetOptions::new("weather"));
    let (tag, to) = (one.fleet.tag(), two.fleet.tag());
    for n in 0..250_u8 {
        one.tell(&[n, 0, 255]);
    }
    one.fleet.publish(Recipients::One(to), b"for two", 1_000);
    one.fleet.publish(Recipients::One(ProcessTag::new(to.number() ^ 1)), b"for none", 1_000);
    for n in 0..250 {
        assert_eq!(three.next(), message(tag, &[n, 0, 255]));
    }
    let heard: Vec<_> = (0..251).map(|_| two.next()).collect();
    // The order is that of each stream.
    assert_eq!(heard.iter().filter(|arrival| **arrival == message(tag, b"for two")).count(), 1);
    let all = heard.into_iter().filter(|arrival| *arrival != message(tag, b"for two"));
    assert!(all.eq((0..250).map(|n| message(tag, &[n, 0, 255]))));
    [&mut one, &mut two, &mut three, &mut other].into_iter().for_each(Process::nothing);
}

#[test]
fn a_log_is_read_and_followed_at_another_process() {
    let Some(redis) = Redis::new() else { return };
    let [mut one, mut two] = redis.processes(&options());
    let entry = |id, entry: &[u8]| Arrival::Entry { log: "e:1".into(), id, entry: entry.into() };
    let [caught_up, over] = [Arrival::CaughtUp { log: "e:1".into() }, Arrival::ReadOver { log: "e:1".into() }];
    for id in [1, 2, 2, 3] {
        one.fleet.append("e:1", Some(id), &[id as u8], 60_000);
    }
    one.sent();
    std::thread::sleep(Duration::from_millis(100));
    two.fleet.read("e:1", 1, Some(3_000));
    assert_eq!([two.next(), two.next(), two.next()], [entry(2, &[2]), entry(3, &[3]), caught_up.clone()]);
    let began = Instant::now();
    one.fleet.append("e:1", Some(4), b"later", 60_000);
    assert_eq!(two.next(), entry(4, b"later"));
    assert!(began.elapsed() < Duration::from_millis(800), "{:?}", began.elapsed());
    assert_eq!(two.next(), over);
    assert!(began.elapsed() < Duration::from_secs(5));
    // Once, and one that is not there; more entries than one read gives.
    for n in 5..305 {
        one.fleet.append("e:1", Some(n), b"x", 60_000);
    }
    one.sent();
    std::thread::sleep(Duration::from_millis(100));
    two.fleet.read("e:1", 4, None);
    for n in 5..305 {
        assert_eq!(two.next(), entry(n, b"x"));
    }
    assert_eq!(two.next(), caught_up);
    two.fleet.read("none", 0, None);
    assert_eq!(two.next(), Arrival::CaughtUp { log: "none".into() });
    // A log without ids of its own: several processes append, and it is followed until it is stopped.
    two.fleet.read("s:1", 0, Some(60_000));
    assert_eq!(two.next(), Arrival::CaughtUp { log: "s:1".into() });
    one.fleet.append("s:1", None, b"a", 60_000);
    let Arrival::Entry { id: first, .. } = two.next() else { panic!("no entry") };
    two.fleet.append("s:1", None, b"b", 60_000);
    let Arrival::Entry { id: second, .. } = two.next() else { panic!("no entry") };
    assert!(first < second);
    two.fleet.stop("s:1");
    one.fleet.append("s:1", None, b"c", 60_000);
    two.nothing();
    two.fleet.read("s:1", first, None);
    let again = [two.next(), two.next()].map(|arrival| match arrival {
        Arrival::Entry { id, entry, .. } => (id, entry),
        other => panic!("{other:?}"),
    });
    assert_eq!((again[0].clone(), again[1].1.clone()), ((second, b"b".to_vec()), b"c".to_vec()));
}

#[test]
fn a_log_is_kept_for_its_time() {
    let Some(redis) = Redis::new() else { return };
    let mut one = redis.join(options());
    one.fleet.append("a", None, b"x", 300);
    one.fleet.append("b", None, b"x", 60_000);
    // Not shorter than before.
    one.fleet.append("b", None, b"x", 300);
    std::thread::sleep(Duration::from_millis(900));
    one.fleet.read("a", 0, None);
    assert_eq!(one.next(), Arrival::CaughtUp { log: "a".into() });
    one.fleet.read("b", 0, None);
    assert!(matches!(one.next(), Arrival::Entry { .. }));
}

#[test]
fn without_redis_a_process_goes_on_and_catches_up() {
    let Some(mut redis) = Redis::new() else { return };
    let [mut one, mut two] = redis.processes(&options());
    let (tag, other) = (one.fleet.tag(), two.fleet.tag());
    redis.kill();
    for process in [&mut one, &mut two] {
        assert!(matches!(process.news.recv_timeout(WAIT), Ok(FleetNews::Alone { .. })));
        let own = process.fleet.tag();
        assert_eq!(process.next(), Arrival::Left(own));
    }
    let began = Instant::now();
    one.tell(b"waits");
    one.fleet.publish(Recipients::Others, b"too late", 1);
    one.fleet.read("log", 0, None);
    for _ in 0..20_000 {
        one.fleet.append("log", None, b"", 60_000);
    }
    assert!(began.elapsed() < Duration::from_secs(5), "it waits for Redis");
    assert!(one.fleet.waiting() < 20_000, "the queue has no limit");
    assert_eq!(one.next(), Arrival::ReadOver { log: "log".into() });
    redis.start();
    for (process, there) in [(&mut one, other), (&mut two, tag)] {
        assert_eq!(process.news.recv_timeout(WAIT), Ok(FleetNews::Joined));
        let own = process.fleet.tag();
        let mut heard = Vec::new();
        // This Redis has forgotten everything, so what was sent before may be lost too.
        while ![Arrival::Joined(own), Arrival::Lost, Arrival::Joined(there)].iter().all(|one| heard.contains(one)) {
            heard.push(process.next());
        }
        let is_late = |arrival: &Arrival| *arrival == message(tag, b"too late");
        assert!(!heard.iter().any(is_late), "{heard:?}");
    }
    // The queue is full until the thread that sends has come back too.
    one.sent();
    one.tell(b"again");
    two.skip_to(&message(tag, b"again"));
    one.nothing();
}

#[test]
fn a_process_that_ends_has_left() {
    let Some(redis) = Redis::new() else { return };
    let [one, mut two] = redis.processes(&options().silence(Duration::from_secs(2)));
    let tag = one.fleet.tag();
    drop(one);
    assert_eq!(two.next(), Arrival::Left(tag));
    // Another one that comes later knows only those that are there.
    let mut three = redis.join(options());
    assert_eq!(two.next(), Arrival::Joined(three.fleet.tag()));
    three.nothing();
}

/// A process that has just started asks who is there, and does not wait for the next second.
#[test]
fn a_process_that_joins_hears_the_others_at_once() {
    let Some(redis) = Redis::new() else { return };
    let [mut one, two] = redis.processes(&options());
    let tag = two.fleet.tag();
    let mut hears = || {
        // The last sign of life of the second is behind these, and is not read at the start.
        for _ in 0..1_100 {
            one.tell(b"");
        }
        one.sent();
        std::thread::sleep(Duration::from_millis(50));
        let mut three = redis.join(options());
        std::iter::from_fn(|| three.take_within(Duration::from_millis(150))).any(|heard| heard == Arrival::Joined(tag))
    };
    // A machine may be busy for a moment. By chance, with a sign of life each second, this goes well once in ten runs.
    for round in 0..4 {
        assert!((0..5).any(|_| hears()), "round {round}");
    }
}

/// Redis has no memory for what is sent: the process says so, and sends it when there is some.
#[test]
fn what_redis_refuses_is_sent_later() {
    let Some(redis) = Redis::new() else { return };
    let [mut one, mut two] = redis.processes(&options());
    let (tag, own) = (one.fleet.tag(), two.fleet.tag());
    redis.set("maxmemory", "1");
    one.tell(b"waits");
    one.fleet.publish(Recipients::One(own), b"waits too", 60_000);
    one.fleet.publish(Recipients::One(own), b"too late", 100);
    one.fleet.append("log", Some(1), b"x", 60_000);
    let Ok(FleetNews::Alone { reason }) = one.news.recv_timeout(WAIT) else { panic!("nothing is said") };
    assert!(reason.contains("maxmemory"), "{reason}");
    one.skip_to(&Arrival::Left(tag));
    redis.set("maxmemory", "0");
    assert_eq!(one.news.recv_timeout(WAIT), Ok(FleetNews::Joined));
    let mut wanted = vec![message(tag, b"waits"), message(tag, b"waits too")];
    while !wanted.is_empty() {
        let heard = two.next();
        assert_ne!(heard, message(tag, b"too late"));
        wanted.retain(|arrival| *arrival != heard);
    }
    two.fleet.read("log", 0, None);
    two.skip_to(&Arrival::Entry { log: "log".into(), id: 1, entry: b"x".to_vec() });
}

#[test]
fn a_process_that_is_too_slow_hears_of_its_loss() {
    let Some(redis) = Redis::new() else { return };
    let [mut one, mut slow] = redis.processes(&options().keep(1).queue(100));
    // Nothing is taken meanwhile. Redis drops entries in blocks, of 100 by default.
    for n in 0..900_u32 {
        one.tell(&n.to_be_bytes());
        while one.fleet.waiting() > 50 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    let heard: Vec<_> = std::iter::from_fn(|| slow.take_within(Duration::from_secs(3))).collect();
    assert!(heard.contains(&Arrival::Lost), "{} arrivals, and none of them is a loss", heard.len());
}

/// A message that had no room is missed by the others, at the latest after the next sign of life.
#[test]
fn a_message_without_room_is_a_loss() {
    let Some(redis) = Redis::new() else { return };
    let [mut one, mut two] = redis.processes(&options().queue_bytes(1_000));
    one.tell(b"small");
    one.tell(&[0; 2_000]);
    let tag = one.fleet.tag();
    assert_eq!([two.next(), two.next()], [message(tag, b"small"), Arrival::Lost]);
}

#[test]
fn a_url_that_is_none() {
    let error = Fleet::start("http://127.0.0.1/", options(), |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("this is no URL of Redis"), "{error}");
}
