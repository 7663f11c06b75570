//! Processes of a fleet with a real Redis, which goes away and comes back. Left out where there is no `redis-server`.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use mcp_sansio::server::ServerChange;
use mcp_sansio_fleet::{Fleet, FleetNews, FleetOptions};

/// A Redis of its own, without files, on a port of this machine.
struct Redis {
    child: Option<Child>,
    port: u16,
}

impl Redis {
    /// Returns `None`, with a word, if `redis-server` is missing. In the gate that is a failure.
    fn new() -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("MCP_REDIS_REQUIRED").is_none(), "no redis-server");
            let _ = writeln!(std::io::stderr(), "left out: no redis-server");
            return None;
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut redis = Redis { child: None, port: free.local_addr().unwrap().port() };
        drop(free);
        redis.start();
        Some(redis)
    }

    fn start(&mut self) {
        let port = self.port.to_string();
        let arguments = ["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"];
        let child = Command::new("redis-server").args(arguments).stdout(Stdio::null()).spawn();
        self.child = Some(child.unwrap());
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "Redis does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Starts a process of the fleet, and waits until it has joined.
    fn join(&self, options: FleetOptions) -> (Fleet, Receiver<FleetNews>) {
        let (sender, news) = channel();
        let fleet = Fleet::start(&self.url(), options, move |news| drop(sender.send(news))).unwrap();
        assert_eq!(next(&news), FleetNews::Joined);
        (fleet, news)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

fn next(news: &Receiver<FleetNews>) -> FleetNews {
    news.recv_timeout(Duration::from_secs(20)).expect("there are news")
}

fn changed(change: ServerChange<'_>) -> FleetNews {
    FleetNews::Changed(change.into())
}

fn nothing(news: &Receiver<FleetNews>) {
    assert_eq!(news.recv_timeout(Duration::from_millis(200)), Err(RecvTimeoutError::Timeout));
}

#[test]
fn the_others_hear_each_change_once_and_in_order() {
    let Some(redis) = Redis::new() else { return };
    let (one, news_of_one) = redis.join(FleetOptions::new("notes"));
    let (_two, news_of_two) = redis.join(FleetOptions::new("notes"));
    let (_other, news_of_other) = redis.join(FleetOptions::new("weather"));
    let changes = [
        ServerChange::Tools,
        ServerChange::Resource("notes://1"),
        ServerChange::Resource("notes://\u{1F600}"),
        ServerChange::Topic { member: "taskIds", key: "7" },
        ServerChange::Prompts,
        ServerChange::Resources,
    ];
    for change in changes {
        one.publish_to_others(change);
    }
    for change in changes {
        assert_eq!(next(&news_of_two), changed(change));
    }
    nothing(&news_of_two);
    nothing(&news_of_one);
    nothing(&news_of_other);
}

#[test]
fn without_redis_a_process_goes_on_and_catches_up() {
    let Some(mut redis) = Redis::new() else { return };
    let (one, news_of_one) = redis.join(FleetOptions::new("notes"));
    let (_two, news_of_two) = redis.join(FleetOptions::new("notes"));
    redis.kill();
    for news in [&news_of_one, &news_of_two] {
        assert!(matches!(next(news), FleetNews::Alone { .. }));
    }
    let began = Instant::now();
    for _ in 0..10_000 {
        one.publish_to_others(ServerChange::Resource("notes://1"));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "publishing waits for Redis");
    redis.start();
    // This Redis has forgotten everything, so also what was sent before may be lost.
    for news in [&news_of_one, &news_of_two] {
        assert_eq!(next(news), FleetNews::Joined);
        assert_eq!(next(news), changed(ServerChange::All));
    }
    // The changes that waited (one in the queue, one on its way) are heard too, unless Redis had them before.
    let heard: Vec<_> = std::iter::from_fn(|| news_of_two.recv_timeout(Duration::from_secs(3)).ok()).collect();
    assert!(heard.len() <= 2 && heard.iter().all(|news| *news == changed(ServerChange::Resource("notes://1"))));
    one.publish_to_others(ServerChange::Tools);
    assert_eq!(next(&news_of_two), changed(ServerChange::Tools));
    nothing(&news_of_one);
}

#[test]
fn who_is_too_slow_hears_that_all_may_have_changed() {
    let Some(redis) = Redis::new() else { return };
    let options = FleetOptions::new("notes").keep(1);
    let (one, _news) = redis.join(options.clone());
    let (sender, news) = channel();
    let (free, stopped) = channel::<()>();
    let _slow = Fleet::start(&redis.url(), options, move |news| {
        // The test has ended.
        let _ = sender.send(news.clone());
        if matches!(news, FleetNews::Changed(_)) {
            // Until the test lets it go on.
            let _ = stopped.recv();
        }
    })
    .unwrap();
    assert_eq!(next(&news), FleetNews::Joined);
    one.publish_to_others(ServerChange::Tools);
    assert_eq!(next(&news), changed(ServerChange::Tools));
    // Redis drops entries in blocks, of 100 by default.
    for n in 0..900 {
        one.publish_to_others(ServerChange::Resource(&format!("notes://{n}")));
        while one.waiting() > 100 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    drop(free);
    let heard: Vec<_> = std::iter::from_fn(|| news.recv_timeout(Duration::from_secs(3)).ok()).collect();
    assert!(heard.contains(&changed(ServerChange::All)), "{} changes, and none of them is all", heard.len());
}

#[test]
fn a_url_that_is_none() {
    let error = Fleet::start("http://127.0.0.1/", FleetOptions::new("notes"), |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("this is no URL of Redis"), "{error}");
}
