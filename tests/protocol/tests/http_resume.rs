//! Event streams that break at one process of a fleet and go on at another.
mod common;

use common::http::*;
use common::{Value, json, notify};
use mcp_sansio::server::{MessageLimits, NotifyStatus, Progress, Server, ServerChange};
use mcp_sansio_http::endpoint::{Access, Endpoint, EndpointConfig, EndpointLimits, SessionSeal, StreamId};
use mcp_sansio_http::fleet::{Arrival, Engine, FleetLimits, MemoryEngine, MemoryHub, ProcessTag, Recipients};
use mcp_sansio_http::seal::HmacSeal;

fn seal() -> SessionSeal<'static> {
    SessionSeal::new(Box::leak(Box::new(HmacSeal::new(&[7; 32])))).lifetime(24 * 3_600_000)
}

struct Process {
    web: Web,
    engine: SharedEngine,
}

/// Processes A, B, C, ..: 0, 1, 2, ..
struct Fleet {
    hub: MemoryHub,
    processes: Vec<Process>,
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

impl Fleet {
    fn of(number: u32) -> Fleet {
        Fleet::with(number, config(), EndpointLimits::default(), FleetLimits::default())
    }

    fn with(number: u32, config: EndpointConfig<'static>, limits: EndpointLimits, fleet: FleetLimits) -> Fleet {
        let hub = MemoryHub::new();
        let process = |tag: u32| {
            let server = Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() });
            let endpoint = Endpoint::growing(config, server, limits).seal_sessions(seal());
            let engine = hub.join(ProcessTag::new(tag));
            let mut web = Web::of(endpoint.join_fleet(engine.tag(), fleet));
            web.dice.0 = tag.into();
            let engine = SharedEngine::new(engine.into());
            web.engine = Some(SharedEngine::clone(&engine));
            Process { web, engine }
        };
        let processes = (1..=number).map(process).collect();
        let mut fleet = Fleet { hub, processes };
        fleet.settle();
        fleet
    }

    fn web(&mut self, process: usize) -> &mut Web {
        &mut self.processes[process].web
    }

    /// Lets all processes meet, until nothing is on its way.
    fn settle(&mut self) {
        for _ in 0..6 {
            for Process { web, engine } in &mut self.processes {
                let meets = (0..1000).take_while(|_| web.meet(&mut *engine.borrow_mut())).count();
                assert!(meets < 1000, "it has work without end");
            }
        }
    }

    /// Lets time pass at all.
    fn wait(&mut self, millis: u64) {
        for _ in 0..millis.div_ceil(1000) {
            self.hub.advance(1000);
            for Process { web, .. } in &mut self.processes {
                web.wait(1000);
            }
            self.settle();
        }
    }

    fn open(&mut self, process: usize, revision: &str) -> String {
        let session = self.web(process).open(revision);
        self.known(&session, revision);
        session
    }

    /// Makes the oracles of all know the revision of a session.
    fn known(&mut self, session: &str, revision: &str) {
        for process in &mut self.processes {
            process.web.sessions.insert(session.to_owned(), revision.to_owned());
        }
    }

    /// Opens the stream of a call that is answered later, with a token for its progress.
    fn later(&mut self, process: usize, session: &str, id: i64) -> StreamId {
        let params = json!({"name": "later", "arguments": {"tag": id.to_string()}, "_meta": {"progressToken": id}});
        let message = common::request("2025-11-25", id, "tools/call", params);
        for other in 0..self.processes.len() {
            self.web(other).hear("2025-11-25", &message);
        }
        self.web(process).say(session, &message).opened()
    }

    fn progress(&mut self, process: usize, id: i64, done: u32) {
        let web = self.web(process);
        let token = web.later(&id.to_string());
        assert_eq!(web.endpoint.progress(token, Progress::new(done)), NotifyStatus::Sent);
    }

    fn answer(&mut self, process: usize, id: i64) {
        let web = self.web(process);
        let token = web.later(&id.to_string());
        web.answer(token, &format!("answer {id}")).unwrap();
    }

    /// Asks for the rest of a stream, as a driver does: again while the response is undecided.
    fn resume(&mut self, process: usize, session: &str, last: &str) -> Reply {
        let mut reply = self.web(process).listen(session, Some(last));
        for _ in 0..4 {
            if !reply.undecided {
                return reply;
            }
            reply.refused(503);
            self.settle();
            reply = self.web(process).listen(session, Some(last));
            if reply.undecided {
                // The process is alive, and may still begin to copy it.
                self.wait(1000);
                reply = self.web(process).listen(session, Some(last));
            }
        }
        reply
    }

    fn pull(&mut self, process: usize, stream: StreamId) -> Pulled {
        let pulled = self.web(process).pull(stream);
        self.settle();
        pulled
    }
}

fn last_id(pulled: &Pulled) -> String {
    pulled.events.iter().rev().find_map(|event| event.id.clone()).expect("an event with an id")
}

/// Returns the numbers of progress notifications, and the text of the answer.
fn told(messages: &[Value]) -> Vec<String> {
    let of = |message: &Value| match message["params"]["progress"].as_u64() {
        Some(progress) => progress.to_string(),
        None if message.get("error").is_some() => format!("error {}", message["error"]["code"]),
        None => message["result"]["content"][0]["text"].as_str().expect("a text").to_owned(),
    };
    messages.iter().map(of).collect()
}

// spec: T007 T048 T049
#[test]
fn a_stream_that_breaks_goes_on_at_another_process() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut fleet = Fleet::of(2);
        let session = fleet.open(A, revision);
        let stream = fleet.later(A, &session, 1);
        fleet.progress(A, 1, 1);
        let first = fleet.pull(A, stream);
        fleet.web(A).detach(stream);
        fleet.progress(A, 1, 2);
        fleet.settle();
        let there = fleet.resume(B, &session, &last_id(&first)).opened();
        assert_eq!(told(&fleet.pull(B, there).json()), ["2"]);
        fleet.progress(A, 1, 3);
        fleet.settle();
        assert_eq!(told(&fleet.pull(B, there).json()), ["3"]);
        fleet.answer(A, 1);
        fleet.settle();
        let rest = fleet.pull(B, there);
        assert_eq!((told(&rest.json()), rest.ended), (vec!["answer 1".to_owned()], true));
        assert_eq!(fleet.web(B).endpoint.load(), (0, 1, 0));
        fleet.wait(61_000);
        assert_eq!(fleet.web(A).endpoint.load(), (0, 1, 0));
    }
}

/// Wherever the connection breaks and the client comes back, it gets each event once, in order, with the same id.
#[test]
fn a_stream_may_break_at_every_event_and_go_on_anywhere() {
    const EVENTS: u32 = 5;
    let (mut seen, mut ids) = (Vec::new(), Vec::new());
    for broken in 0..=EVENTS as usize {
        for route in [[B, B], [B, C], [B, A], [C, B], [A, B]] {
            let mut fleet = Fleet::of(3);
            let session = fleet.open(A, "2025-11-25");
            let stream = fleet.later(A, &session, 1);
            (1..EVENTS).for_each(|done| fleet.progress(A, 1, done));
            let whole = fleet.pull(A, stream);
            fleet.web(A).detach(stream);
            let of = |pulled: &Pulled| pulled.events.iter().map(|event| event.id.clone().unwrap()).collect::<Vec<_>>();
            if ids.is_empty() {
                ids = of(&whole);
            }
            // The priming, four times progress.
            assert_eq!(whole.events.len(), EVENTS as usize);
            let mut last = whole.events[broken.min(EVENTS as usize - 1)].id.clone().unwrap();
            for (step, process) in route.into_iter().enumerate() {
                let stream = fleet.resume(process, &session, &last).opened();
                if step == 1 {
                    fleet.answer(A, 1);
                    fleet.settle();
                }
                // One more than that is lost on its way.
                let pulled = fleet.pull(process, stream);
                let kept =
                    if step == 0 { pulled.events.get(..pulled.events.len().min(1)).unwrap() } else { &pulled.events };
                for event in kept {
                    last = event.id.clone().unwrap();
                    seen.push((broken, route, last.clone(), event.data.clone()));
                }
                if step == 0 {
                    fleet.web(process).detach(stream);
                    fleet.settle();
                } else {
                    assert!(pulled.ended);
                }
            }
        }
    }
    for broken in 0..=EVENTS as usize {
        for route in [[B, B], [B, C], [B, A], [C, B], [A, B]] {
            let of_this = seen.iter().filter(|(at, way, ..)| (*at, *way) == (broken, route));
            let (numbers, texts): (Vec<_>, Vec<_>) =
                of_this.map(|(_, _, id, data)| (id.clone(), told(&[serde_json::from_str(data).unwrap()]))).unzip();
            let mut expected: Vec<_> = (broken.min(4) as u32 + 1..EVENTS).map(|done| vec![done.to_string()]).collect();
            expected.push(vec!["answer 1".to_owned()]);
            assert_eq!(texts, expected, "broken at {broken}, {route:?}");
            let known = &ids[broken.min(4) + 1..];
            assert_eq!(&numbers[..known.len()], known, "broken at {broken}, {route:?}");
        }
    }
}

#[test]
fn what_was_answered_is_there_for_a_while() {
    let mut fleet = Fleet::of(3);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    fleet.answer(A, 1);
    // All is written, but the client does not get it. The process itself has forgotten the stream.
    assert!(fleet.pull(A, stream).ended);
    assert_eq!(fleet.web(A).endpoint.load(), (0, 1, 0));
    for process in [B, C, A, B] {
        let there = fleet.resume(process, &session, &first).opened();
        let rest = fleet.pull(process, there);
        assert_eq!((told(&rest.json()), rest.ended), (vec!["answer 1".to_owned()], true));
    }
    fleet.wait(121_000);
    assert_eq!(fleet.hub.logs(), []);
    for process in [A, B] {
        fleet.resume(process, &session, &first).refused(400);
    }
}

#[test]
fn the_process_is_gone() {
    for answered in [false, true] {
        for early in [false, true] {
            let mut fleet = Fleet::of(2);
            let session = fleet.open(A, "2025-06-18");
            let stream = fleet.later(A, &session, 1);
            fleet.progress(A, 1, 1);
            let first = last_id(&fleet.pull(A, stream));
            fleet.web(A).detach(stream);
            fleet.progress(A, 1, 2);
            if answered {
                fleet.answer(A, 1);
            }
            fleet.settle();
            let one = ProcessTag::new(1);
            if early {
                fleet.hub.kill(one);
                fleet.settle();
            }
            let there = fleet.resume(B, &session, &first).opened();
            fleet.hub.kill(one);
            fleet.settle();
            let rest = fleet.pull(B, there);
            let end = if answered { "answer 1" } else { "error -32603" };
            assert_eq!((told(&rest.json()), rest.ended), (vec!["2".to_owned(), end.to_owned()], true));
            assert_eq!(rest.json()[1]["id"], 1);
            // And once more.
            let again = fleet.resume(B, &session, &first).opened();
            assert_eq!(told(&fleet.pull(B, again).json()), ["2", end]);
        }
    }
}

/// Each request of a batch that has no answer yet gets an error.
#[test]
fn the_process_of_a_batch_is_gone() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-03-26");
    let call = |id: i64, tool: &str| {
        serde_json::from_str(&common::call("2025-03-26", id, tool, json!({"tag": id.to_string()}))).unwrap()
    };
    let batch = Value::Array(vec![call(1, "later"), call(2, "count"), call(3, "later"), call(4, "later")]).to_string();
    fleet.web(B).hear("2025-03-26", &batch);
    let stream = fleet.web(A).say(&session, &batch).opened();
    let first = last_id(&fleet.pull(A, stream));
    fleet.web(A).detach(stream);
    fleet.answer(A, 3);
    fleet.settle();
    fleet.hub.kill(ProcessTag::new(1));
    let there = fleet.resume(B, &session, &first).opened();
    let rest = fleet.pull(B, there);
    let mut answers: Vec<_> =
        rest.json().iter().map(|m| (m["id"].as_i64().unwrap(), m.get("error").is_some())).collect();
    answers.sort_unstable();
    assert_eq!((answers, rest.ended), (vec![(1, true), (3, false), (4, true)], true));
}

#[test]
fn only_for_its_own_session() {
    let mut fleet = Fleet::of(2);
    let (session, other) = (fleet.open(A, "2025-11-25"), fleet.open(B, "2025-11-25"));
    let stream = fleet.later(A, &session, 1);
    fleet.progress(A, 1, 1);
    let first = last_id(&fleet.pull(A, stream));
    fleet.web(A).detach(stream);
    fleet.settle();
    fleet.resume(B, &other, &first).refused(400);
    fleet.resume(A, &other, &first).refused(400);
    let parts: Vec<_> = first.split('-').collect();
    let [slot, number, event, tag] = parts[..] else { panic!("{first}") };
    let with = |slot: &str, number: &str, event: &str, tag: &str| format!("{slot}-{number}-{event}-{tag}");
    for wrong in [
        with("9", number, event, tag),
        with(slot, "99", event, tag),
        with(slot, number, "4294967295", tag),
        with(slot, number, event, "p2"),
        with(slot, number, event, "p99"),
        with(slot, number, event, "p99999999999"),
        with(slot, number, event, "x1"),
        with(slot, number, event, "p"),
        with(slot, number, event, ""),
        with(slot, number, event, "p1-1"),
    ] {
        for process in [A, B] {
            fleet.resume(process, &session, &wrong).refused(400);
        }
    }
    assert_eq!(fleet.web(B).endpoint.load(), (0, 2, 0));
    let there = fleet.resume(B, &session, &first).opened();
    // While it is followed here too.
    fleet.resume(B, &other, &first).refused(400);
    fleet.progress(A, 1, 2);
    fleet.settle();
    assert_eq!(told(&fleet.pull(B, there).json()), ["2"]);
}

#[test]
fn only_for_its_own_principal() {
    let mut fleet = Fleet::of(2);
    for process in [A, B] {
        fleet.web(process).authorize = Box::new(|head| Access::Granted {
            principal: if head.headers.get("authorization") == Some(b"ann") { Some("ann") } else { Some("bob") },
        });
    }
    let ann = ("authorization", "ann");
    let open = common::initialize("2025-11-25", json!({}));
    let reply = fleet.web(A).request("POST", "/mcp", &[JSON, ACCEPT, ann], &open);
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    fleet.known(&session, "2025-11-25");
    let call = common::call("2025-11-25", 1, "later", json!({"tag": "1"}));
    let stream =
        fleet.web(A).request("POST", "/mcp", &[JSON, ACCEPT, ann, ("mcp-session-id", &session)], &call).opened();
    let first = last_id(&fleet.pull(A, stream));
    let mut get = |who: &[(&str, &str)]| {
        let headers = [&[SSE, ("mcp-session-id", session.as_str()), ("last-event-id", first.as_str())], who].concat();
        fleet.web(B).request("GET", "/mcp", &headers, "");
        fleet.settle();
        fleet.web(B).request("GET", "/mcp", &headers, "").status
    };
    assert_eq!((get(&[]), get(&[ann])), (404, 200));
}

#[test]
fn the_engine_is_away() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    fleet.web(A).detach(stream);
    let two = ProcessTag::new(2);
    fleet.hub.cut(two);
    fleet.settle();
    let reply = fleet.resume(B, &session, &first);
    reply.refused(503);
    assert_eq!(reply.header("retry-after"), Some("1"));
    fleet.hub.heal(two);
    fleet.settle();
    let there = fleet.resume(B, &session, &first).opened();
    fleet.progress(A, 1, 1);
    fleet.settle();
    assert_eq!(told(&fleet.pull(B, there).json()), ["1"]);
    // Away while the stream is followed: it ends, and the other process does not count as gone.
    fleet.hub.cut(two);
    fleet.progress(A, 1, 2);
    fleet.settle();
    let cut = fleet.pull(B, there);
    assert!(cut.ended && cut.events.is_empty(), "{cut:?}");
    fleet.hub.heal(two);
    fleet.settle();
    fleet.answer(A, 1);
    let there = fleet.resume(B, &session, &first).opened();
    fleet.settle();
    let rest = fleet.pull(B, there);
    assert_eq!((told(&rest.json()), rest.ended), (vec!["1".to_owned(), "2".to_owned(), "answer 1".to_owned()], true));
}

/// The database is started anew, and has forgotten the copies.
#[test]
fn copies_are_begun_anew() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-11-25");
    let streams = [1, 2].map(|id| fleet.later(A, &session, id));
    let first = streams.map(|stream| last_id(&fleet.pull(A, stream)));
    fleet.progress(A, 1, 1);
    fleet.settle();
    fleet.hub.restart();
    fleet.settle();
    assert_eq!(fleet.hub.logs().iter().filter(|(log, _)| log.starts_with("e:")).count(), 2);
    for (stream, first) in streams.into_iter().zip(&first) {
        fleet.web(A).detach(stream);
        let there = fleet.resume(B, &session, first).opened();
        let id = if stream == streams[0] { 1 } else { 2 };
        fleet.answer(A, id);
        fleet.settle();
        let rest = fleet.pull(B, there);
        let answer = format!("answer {id}");
        let all = if id == 1 { vec!["1".to_owned(), answer] } else { vec![answer] };
        assert_eq!((told(&rest.json()), rest.ended), (all, true));
    }
}

/// An engine that does not say which others are alive.
struct Deaf(MemoryEngine);

impl Engine for Deaf {
    fn tag(&self) -> ProcessTag {
        self.0.tag()
    }
    fn publish(&mut self, to: Recipients, message: &[u8], within: u64) {
        self.0.publish(to, message, within);
    }
    fn take(&mut self) -> Option<Arrival> {
        let tag = self.tag();
        std::iter::from_fn(|| self.0.take()).find(|arrival| !matches!(arrival, Arrival::Joined(of) if *of != tag))
    }
    fn append(&mut self, log: &str, id: Option<u64>, entry: &[u8], keep: u64) {
        self.0.append(log, id, entry, keep);
    }
    fn replace(&mut self, log: &str, entry: &[u8], keep: u64) {
        self.0.replace(log, entry, keep);
    }
    fn read(&mut self, log: &str, after: u64, follow: Option<u64>) {
        self.0.read(log, after, follow);
    }
    fn stop(&mut self, log: &str) {
        self.0.stop(log);
    }
    fn set_waker(&mut self, _: std::sync::Arc<dyn Fn() + Send + Sync>) {}
}

/// A process that has just started takes none for dead that it has not heard yet.
#[test]
fn a_process_that_has_just_joined_waits_for_the_others() {
    let mut fleet = Fleet::of(1);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    fleet.settle();
    fleet.web(A).detach(stream);
    for hears in [false, true] {
        let hub = fleet.hub.clone();
        let server = Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() });
        let endpoint = Endpoint::growing(config(), server, EndpointLimits::default()).seal_sessions(seal());
        let engine = hub.join(ProcessTag::new(2));
        let mut web = Web::of(endpoint.join_fleet(engine.tag(), FleetLimits::default()));
        web.sessions.insert(session.clone(), "2025-11-25".into());
        web.hear("2025-11-25", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
        let mut deaf = Deaf(engine);
        let meet = |web: &mut Web, deaf: &mut Deaf| while web.meet(deaf) {};
        meet(&mut web, &mut deaf);
        for _ in 0..2 {
            // First for what was set in the session, then for the stream.
            assert!(web.listen(&session, Some(&first)).undecided);
            meet(&mut web, &mut deaf);
        }
        let there = web.listen(&session, Some(&first)).opened();
        web.wait(1_499);
        meet(&mut web, &mut deaf);
        assert!(!web.is_ready(there) || !web.pull(there).ended);
        if hears {
            fleet.answer(A, 1);
            fleet.settle();
        } else {
            web.wait(1);
        }
        meet(&mut web, &mut deaf);
        let rest = web.pull(there);
        let code = rest.json()[0]["error"]["code"].as_i64();
        assert_eq!((rest.ended, code), (true, if hears { None } else { Some(-32603) }));
    }
}

/// An engine that says nothing at all: the request is undecided for some seconds at most.
#[test]
fn the_engine_does_not_answer() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    fleet.hub.hold();
    let mut statuses = Vec::new();
    for _ in 0..12 {
        let reply = fleet.web(B).listen(&session, Some(&first));
        statuses.push(reply.undecided);
        fleet.wait(1000);
    }
    assert_eq!(statuses.iter().filter(|undecided| !**undecided).count(), 1, "{statuses:?}");
}

/// What the process that works on a request did not copy, it has itself.
#[test]
fn copies_have_a_share_and_a_total() {
    let limits = FleetLimits { copied_stream: 900, copied: 2000, ..FleetLimits::default() };
    let mut fleet = Fleet::with(2, config(), EndpointLimits::default(), limits);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    (1..12).for_each(|done| fleet.progress(A, 1, done));
    let pulled = fleet.pull(A, stream);
    fleet.web(A).detach(stream);
    // The client comes until the proxy gives it to its own process.
    fleet.resume(B, &session, &first).refused(503);
    fleet.resume(B, &session, &last_id(&pulled)).refused(503);
    let back = fleet.resume(A, &session, &first).opened();
    assert_eq!(fleet.pull(A, back).json().len(), 11);
    fleet.web(A).detach(back);
    // The end is copied all the same. Then there is no better answer than an error.
    fleet.answer(A, 1);
    fleet.settle();
    let there = fleet.resume(B, &session, &last_id(&pulled)).opened();
    let rest = fleet.pull(B, there);
    assert_eq!((told(&rest.json()), rest.ended), (vec!["error -32603".to_owned()], true));
    // The total: copies of four streams find room.
    let firsts: Vec<_> = (2..8)
        .map(|id| {
            let stream = fleet.later(A, &session, id);
            let first = last_id(&fleet.pull(A, stream));
            fleet.web(A).detach(stream);
            first
        })
        .collect();
    let there: Vec<_> = firsts.iter().map(|first| fleet.resume(B, &session, first).status).collect();
    assert_eq!(there, [200, 200, 200, 200, 400, 400]);
    (2..8).for_each(|id| fleet.answer(A, id));
    fleet.wait(121_000);
    let stream = fleet.later(A, &session, 9);
    let first = last_id(&fleet.pull(A, stream));
    fleet.resume(B, &session, &first).opened();
}

#[test]
fn followed_streams_have_a_share_and_a_total() {
    let limits = FleetLimits { followed_share: 2, followed: 3, ..FleetLimits::default() };
    let mut fleet = Fleet::with(2, config(), EndpointLimits::default(), limits);
    let sessions = [fleet.open(A, "2025-11-25"), fleet.open(A, "2025-11-25")];
    let mut firsts = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        for id in 0..3 {
            let id = number as i64 * 3 + id;
            let stream = fleet.later(A, session, id);
            firsts.push((session, last_id(&fleet.pull(A, stream))));
            fleet.web(A).detach(stream);
        }
    }
    let replies: Vec<_> = firsts.iter().map(|(session, first)| fleet.resume(B, session, first)).collect();
    assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [200, 200, 503, 200, 503, 503]);
    // One that is over makes room.
    fleet.answer(A, 0);
    fleet.settle();
    assert!(fleet.pull(B, replies[0].opened()).ended);
    assert_eq!(fleet.resume(B, &sessions[0], &firsts[2].1).status, 200);
    // And one whose client does not come back, after the time to resume.
    fleet.web(B).detach(replies[3].opened());
    fleet.wait(61_000);
    assert_eq!(fleet.resume(B, &sessions[1], &firsts[4].1).status, 200);
}

/// One that is over makes room for one more, not for any number.
#[test]
fn a_share_of_followed_streams_holds_after_one_is_over() {
    let mut fleet = Fleet::with(
        2,
        config(),
        EndpointLimits::default(),
        FleetLimits { followed_share: 2, ..FleetLimits::default() },
    );
    let session = fleet.open(A, "2025-11-25");
    let mut firsts = Vec::new();
    for id in 0..4 {
        let stream = fleet.later(A, &session, id);
        firsts.push(last_id(&fleet.pull(A, stream)));
        fleet.web(A).detach(stream);
    }
    let [one, _] = [0, 1].map(|number| fleet.resume(B, &session, &firsts[number]).opened());
    fleet.answer(A, 0);
    fleet.settle();
    assert!(fleet.pull(B, one).ended);
    assert_eq!([2, 3].map(|number| fleet.resume(B, &session, &firsts[number]).status), [200, 503]);
}

/// Events that a slow reader does not take wait in the engine.
#[test]
fn a_slow_reader_of_a_followed_stream() {
    let limits = EndpointLimits { stream: 600, log: 100_000, ..EndpointLimits::default() };
    let mut fleet = Fleet::with(2, config(), limits, FleetLimits::default());
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    for done in 1..40 {
        fleet.progress(A, 1, done);
        fleet.pull(A, stream);
    }
    fleet.web(A).detach(stream);
    fleet.answer(A, 1);
    fleet.settle();
    let there = fleet.resume(B, &session, &first).opened();
    let mut all = Vec::new();
    for _ in 0..40 {
        let pulled = fleet.pull(B, there);
        all.extend(told(&pulled.json()));
        if pulled.ended {
            break;
        }
    }
    let expected: Vec<_> = (1..40).map(|done| done.to_string()).chain(["answer 1".to_owned()]).collect();
    assert_eq!(all, expected);
}

/// The log of a request that takes long is kept as long as it takes.
#[test]
fn a_request_that_takes_long() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    fleet.wait(1_800_000);
    let there = fleet.resume(B, &session, &first).opened();
    fleet.wait(1_800_000);
    fleet.answer(A, 1);
    fleet.settle();
    let rest = fleet.pull(B, there);
    assert_eq!((told(&rest.json()), rest.ended), (vec!["answer 1".to_owned()], true));
}

#[test]
fn a_session_that_ends_ends_what_it_follows() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    let there = fleet.resume(B, &session, &first).opened();
    let delete = |fleet: &mut Fleet| {
        let status = fleet.web(B).request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status;
        fleet.settle();
        status
    };
    // The answer waits until the other process knows of it.
    assert_eq!([delete(&mut fleet), delete(&mut fleet)], [503, 204]);
    assert!(fleet.web(B).pull(there).ended);
    assert_eq!(fleet.web(B).endpoint.load(), (0, 0, 0));
    // Nor does its log arrive any more.
    fleet.wait(1000);
    let (log, _) = fleet.hub.logs().into_iter().find(|(name, _)| name.starts_with("e:")).expect("a copy");
    fleet.processes[A].engine.borrow_mut().append(&log, None, b"more", 1000);
    assert_eq!(fleet.processes[B].engine.borrow_mut().take(), None);
}

/// A client reads its stream at another process now. The driver gives the old connection up before the endpoint closes it.
#[test]
fn a_connection_that_was_given_up_ends_by_itself() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    fleet.wait(2000);
    let there = fleet.resume(B, &session, &first).opened();
    fleet.settle();
    assert!(fleet.web(A).is_ready(stream), "it is to be closed");
    fleet.web(A).detach(stream);
    assert_eq!(fleet.web(A).endpoint.ready().next(), None);
    fleet.answer(A, 1);
    fleet.settle();
    assert_eq!(told(&fleet.pull(B, there).json()), ["answer 1"]);
}

#[test]
fn a_cancelled_request_gets_no_error() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    fleet.web(A).detach(stream);
    let there = fleet.resume(B, &session, &first).opened();
    let cancel = notify("notifications/cancelled", json!({"requestId": 1}));
    assert_eq!(fleet.web(A).say(&session, &cancel).status, 202);
    fleet.settle();
    let rest = fleet.pull(B, there);
    assert!(rest.ended && rest.json().is_empty(), "{rest:?}");
}

/// A process that drains sends its clients elsewhere.
#[test]
fn draining() {
    let mut fleet = Fleet::of(3);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    let there = fleet.resume(B, &session, &first).opened();
    fleet.web(B).drain();
    assert!(fleet.pull(B, there).ended);
    fleet.resume(B, &session, &first).refused(503);
    let there = fleet.resume(C, &session, &first).opened();
    fleet.web(A).drain();
    fleet.answer(A, 1);
    fleet.settle();
    assert_eq!(told(&fleet.pull(C, there).json()), ["answer 1"]);
}

/// A question that was sent before the stream broke is answered at a third process, as long as the client reads at another one.
#[test]
fn a_question_waits_while_its_client_reads_elsewhere() {
    for elsewhere in [true, false] {
        let mut fleet = Fleet::of(3);
        let session = fleet.open(A, "2025-11-25");
        let message = common::call("2025-11-25", 1, "confirm", json!({}));
        fleet.web(B).hear("2025-11-25", &message);
        let stream = fleet.web(A).say(&session, &message).opened();
        let asked = fleet.pull(A, stream);
        fleet.web(A).detach(stream);
        let last = last_id(&asked);
        let there = elsewhere.then(|| fleet.resume(B, &session, &last).opened());
        fleet.wait(100_000);
        let there = there.unwrap_or_else(|| fleet.resume(B, &session, &last).opened());
        let given = json!({"action": "accept", "content": {"name": "Ada"}});
        let question = asked.json()[0]["id"].clone();
        assert_eq!(fleet.web(C).say(&session, &common::answer(&question, given)).status, 202);
        fleet.settle();
        let text = fleet.pull(B, there).only()["result"]["content"][0]["text"].clone();
        assert_eq!(text == "accepted Ada", elsewhere, "{text}");
    }
}

/// What a client reads elsewhere is not unsent at the process that works on its request.
#[test]
fn events_that_are_read_elsewhere_leave_room() {
    let limits = EndpointLimits { unread: 100, ..EndpointLimits::default() };
    let mut fleet = Fleet::with(2, config(), limits, FleetLimits::default());
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.later(A, &session, 1);
    let first = last_id(&fleet.pull(A, stream));
    fleet.wait(2000);
    // The first process has not noticed that the connection is gone.
    let there = fleet.resume(B, &session, &first).opened();
    let mut all = Vec::new();
    for done in 1..400 {
        fleet.progress(A, 1, done);
        fleet.settle();
        if done % 10 == 0 {
            all.extend(told(&fleet.pull(B, there).json()));
        }
    }
    fleet.answer(A, 1);
    fleet.settle();
    let rest = fleet.pull(B, there);
    all.extend(told(&rest.json()));
    let expected: Vec<_> = (1..400).map(|done| done.to_string()).chain(["answer 1".to_owned()]).collect();
    assert_eq!(all, expected);
    // Its earlier connection ends, and gets nothing more: a client that is there after all comes again.
    assert_eq!(fleet.web(A).endpoint.ready().collect::<Vec<_>>(), [stream]);
    let earlier = fleet.pull(A, stream);
    assert!(earlier.events.is_empty() && earlier.ended);
    assert_eq!(fleet.web(A).endpoint.ready().next(), None);
}

/// What others do not read leaves no room for an entry of a copy: it waits, and is not read all the time.
#[test]
fn a_copy_waits_for_the_readers_of_others() {
    let limits = EndpointLimits { log: 4096, stream: 4096, ..EndpointLimits::default() };
    for goes in [false, true] {
        let mut fleet = Fleet::with(2, config(), limits, FleetLimits::default());
        let session = fleet.open(A, "2025-11-25");
        let stream = fleet.later(A, &session, 1);
        let first = last_id(&fleet.pull(A, stream));
        fleet.web(A).detach(stream);
        let there = fleet.resume(B, &session, &first).opened();
        let other = fleet.open(B, "2025-06-18");
        let slow = fleet.later(B, &other, 2);
        let token = fleet.web(B).later("2");
        let mut count = 0;
        while fleet.web(B).endpoint.progress(token, Progress::new(count)) == NotifyStatus::Sent {
            count += 1;
        }
        let (token, text) = (fleet.web(A).later("1"), "x".repeat(300));
        fleet.web(A).answer(token, &text).unwrap();
        fleet.settle();
        assert_eq!(fleet.pull(B, there).json().len(), 0);
        fleet.settle();
        if goes {
            // The other process has to know of it first.
            for status in [503, 204] {
                let reply = fleet.web(B).request("DELETE", "/mcp", &[("Mcp-Session-Id", &other)], "");
                assert_eq!(reply.status, status);
                fleet.settle();
            }
            let _ = fleet.pull(B, slow);
        } else {
            assert!(fleet.pull(B, slow).json().len() > 20);
        }
        fleet.settle();
        assert_eq!(told(&fleet.pull(B, there).json()), [text]);
    }
}

/// A client that is back at the first process stays there, though the other one has not noticed that it is gone.
#[test]
fn back_at_the_first_process() {
    for later in [0, 1000] {
        let mut fleet = Fleet::of(2);
        let session = fleet.open(A, "2025-11-25");
        let stream = fleet.later(A, &session, 1);
        let first = last_id(&fleet.pull(A, stream));
        fleet.web(A).detach(stream);
        let there = fleet.resume(B, &session, &first).opened();
        fleet.wait(later);
        // The other process may say yet that the client reads there.
        let back = fleet.resume(A, &session, &first).opened();
        fleet.settle();
        fleet.wait(100_000);
        fleet.answer(A, 1);
        fleet.settle();
        assert_eq!(told(&fleet.pull(A, back).json()), ["answer 1"]);
        assert!(fleet.pull(B, there).ended);
        assert_eq!((fleet.web(A).endpoint.load(), fleet.web(B).endpoint.load()), ((0, 1, 0), (0, 1, 0)));
    }
}

fn methods(pulled: &Pulled) -> Vec<String> {
    let mut methods: Vec<_> = pulled.json().iter().map(|m| m["method"].as_str().unwrap().to_owned()).collect();
    methods.sort_unstable();
    methods
}

#[test]
fn the_stream_of_a_session_moves() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-11-25");
    let stream = fleet.web(A).listen(&session, None).opened();
    fleet.web(A).publish(ServerChange::Tools);
    let heard = fleet.pull(A, stream);
    assert_eq!(methods(&heard), ["notifications/tools/list_changed"]);
    fleet.web(A).detach(stream);
    fleet.web(A).publish(ServerChange::Prompts);
    fleet.settle();
    // What it missed there is not known here: all may have changed.
    let there = fleet.resume(B, &session, &last_id(&heard)).opened();
    let lists = ["prompts", "resources", "tools"].map(|list| format!("notifications/{list}/list_changed"));
    assert_eq!(methods(&fleet.pull(B, there)), lists);
    assert_eq!(fleet.web(A).endpoint.load().2, 0);
    fleet.web(A).publish(ServerChange::Tools);
    fleet.settle();
    assert_eq!(methods(&fleet.pull(B, there)), ["notifications/tools/list_changed"]);
    // At the same process nothing is lost.
    let last = {
        fleet.web(B).publish(ServerChange::Prompts);
        last_id(&fleet.pull(B, there))
    };
    fleet.web(B).detach(there);
    let again = fleet.resume(B, &session, &last).opened();
    assert!(fleet.pull(B, again).events.is_empty());
}

#[test]
fn a_session_has_one_stream() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(A, "2025-06-18");
    let first = fleet.web(A).listen(&session, None).opened();
    fleet.pull(A, first);
    // At the same time: one of both goes on.
    let second = fleet.web(B).listen(&session, None).opened();
    fleet.settle();
    assert_eq!((fleet.pull(A, first).ended, fleet.pull(B, second).ended), (true, false));
    fleet.wait(1000);
    let third = fleet.web(A).listen(&session, None).opened();
    fleet.settle();
    assert_eq!((fleet.pull(B, second).ended, fleet.pull(A, third).ended), (true, false));
}

/// A reply in windows is not copied. If it breaks off, its client gets an error instead of silence.
#[test]
fn a_large_reply_that_breaks_off() {
    let limits = EndpointLimits { stream: 1024, ..EndpointLimits::default() };
    let mut fleet = Fleet::with(2, config(), limits, FleetLimits::default());
    let session = fleet.open(A, "2025-11-25");
    let message = common::call("2025-11-25", 1, "book", json!({}));
    fleet.web(B).hear("2025-11-25", &message);
    fleet.web(A).body = 2048;
    let stream = fleet.web(A).say(&session, &message).opened();
    let (_, _) = fleet.web(A).sip(stream, 300);
    let first = fleet.web(A).pulled(stream, false);
    fleet.web(A).detach(stream);
    fleet.settle();
    let there = fleet.resume(B, &session, &last_id(&first)).opened();
    let rest = fleet.pull(B, there);
    assert_eq!((told(&rest.json()), rest.ended), (vec!["error -32603".to_owned()], true));
}

/// A message with a newline would be two lines of an event. It is left out, and its request has no answer from there.
#[test]
fn a_copy_with_a_newline() {
    for newline in ["\n", "\r", ""] {
        let mut fleet = Fleet::of(2);
        let session = fleet.open(A, "2025-11-25");
        let stream = fleet.later(A, &session, 1);
        let first = last_id(&fleet.pull(A, stream));
        fleet.web(A).detach(stream);
        let there = fleet.resume(B, &session, &first).opened();
        let (log, _) = fleet.hub.logs().into_iter().find(|(log, _)| log.starts_with("e:")).unwrap();
        let message = format!(
            r#"{{"jsonrpc":"2.0",{newline}"id":1,"result":{{"content":[{{"type":"text","text":"x"}}],"isError":false}}}}"#
        );
        let mut entry = vec![1, 2, 0, 0, 0, message.len() as u8 + 4, 0, 0, 0, 1];
        entry.extend_from_slice(message.as_bytes());
        entry.extend_from_slice(&[4, 0, 0, 0, 0]);
        fleet.processes[A].engine.borrow_mut().append(&log, Some(2), &entry, 1000);
        fleet.settle();
        let rest = fleet.pull(B, there);
        let expected = if newline.is_empty() { vec!["x".to_owned()] } else { vec![] };
        assert_eq!((told(&rest.json()), rest.ended), (expected, true), "{newline:?}");
    }
}

/// Whatever someone writes into the database, nothing breaks.
#[test]
fn damaged_copies() {
    let mut dice = common::Dice(5);
    for round in 0..300 {
        let mut fleet = Fleet::of(2);
        let session = fleet.open(A, "2025-11-25");
        let stream = fleet.later(A, &session, 1);
        let first = last_id(&fleet.pull(A, stream));
        fleet.web(A).detach(stream);
        let there = fleet.resume(B, &session, &first).opened();
        let (log, _) = fleet.hub.logs().into_iter().find(|(log, _)| log.starts_with("e:")).unwrap();
        let mut entry = vec![1, 2, 0, 0, 0, 6, 0, 0, 0, 1, b'{', b'}', 4, 0, 0, 0, 0];
        for _ in 0..=round % 3 {
            let at = dice.roll(entry.len());
            match dice.roll(3) {
                0 => entry[at] = dice.roll(256) as u8,
                1 => entry.truncate(at),
                _ => entry.insert(at, 255),
            }
            if entry.is_empty() {
                entry.push(1);
            }
        }
        fleet.processes[A].engine.borrow_mut().append(&log, Some(2 + dice.roll(2) as u64), &entry, 1000);
        fleet.settle();
        let mut tap = Tap { bytes: Vec::new(), room: 1 << 20 };
        let web = fleet.web(B);
        let Web { endpoint, service, world, now, .. } = web;
        let _ = endpoint.pull(there, &mut mcp_sansio_http::endpoint::App::new(service, world), *now, &mut tap);
    }
}
