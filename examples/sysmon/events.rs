//! Events: the load rises above a limit, a process ends. The system is looked at each second, while a client subscribes.

use std::time::{SystemTime, UNIX_EPOCH};

use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::server::Millis;
use mcp_sansio_extensions::events::{
    EventOccurrence, EventSubscription, EventType, Events, HasEvents, LeaseSlot, StreamSlot, emit,
};

use crate::{Monitor, system};

/// The time between two looks, and between two polls of a client.
const PERIOD: Millis = 1_000;

/// The most subscriptions of each kind.
const MOST: usize = 64;

/// The occurrences, and the things that subscriptions ask for.
pub(crate) struct News {
    ring: Events<'static>,
    watched: Vec<Watched>,
    /// The subscriptions to the load, and the load at the last look.
    loads: usize,
    load: f64,
    look_at: Millis,
}

/// A process that subscriptions ask for.
struct Watched {
    pid: u32,
    name: String,
    subscriptions: usize,
    ended: bool,
}

/// Returns the time of day, in milliseconds since the beginning of 1970.
fn unix_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl News {
    /// Makes it for a server whose clock began at `epoch`, in milliseconds since the beginning of 1970.
    pub(crate) fn new(epoch: u64) -> Self {
        let memory = |bytes: usize| &mut *vec![0; bytes].leak();
        let mut ring = Events::new(memory(16 << 10), 256, unix_millis())
            .epoch(epoch)
            .streams(vec![StreamSlot::FREE; MOST].leak(), memory(16 << 10), MOST / 4)
            .leases(vec![LeaseSlot::FREE; MOST].leak(), memory(16 << 10), MOST / 4, 10 * PERIOD);
        ring.set_poll_interval(PERIOD);
        News { ring, watched: Vec::new(), loads: 0, load: f64::MAX, look_at: 0 }
    }

    /// Returns the epoch of a clock that begins now.
    pub(crate) fn epoch() -> u64 {
        unix_millis()
    }
}

fn pid(subscription: &EventSubscription<'_>) -> Option<u32> {
    subscription.arguments.get("pid")?.u64()?.try_into().ok()
}

fn number(object: Raw<'_>, member: &str) -> Option<f64> {
    object.get(member)?.as_str().parse().ok()
}

impl HasEvents for Monitor {
    const EVENTS: &'static [EventType<Self>] = &[
        EventType::new("load.high", "The load of the last minute rises above a limit")
            .input_schema(r#"{"type":"object","properties":{"above":{"type":"number","default":1,"description":"The limit"}}}"#)
            .payload_schema(
                r#"{"type":"object","properties":{"one_minute":{"type":"number"},"before":{"type":"number"}},"required":["one_minute","before"]}"#,
            )
            .matches(|_, subscription, data| {
                let above = number(subscription.arguments, "above").unwrap_or(1.0);
                let member = |name| number(data, name).unwrap_or(above);
                member("before") < above && above <= member("one_minute")
            })
            .on_subscribe(|monitor, _| monitor.news.loads += 1, |monitor, _| monitor.news.loads -= 1),
        EventType::new("process.ended", "A process ends, or is not there")
            .input_schema(r#"{"type":"object","properties":{"pid":{"type":"integer","minimum":1}},"required":["pid"]}"#)
            .payload_schema(
                r#"{"type":"object","properties":{"pid":{"type":"integer"},"name":{"type":"string"}},"required":["pid","name"]}"#,
            )
            .check(|_, subscription| match pid(subscription) {
                Some(_) => Ok(()),
                None => Err(RpcError::invalid_params("Invalid params: pid is not the number of a process")),
            })
            .matches(|_, subscription, data| data.get("pid").and_then(|pid| pid.u64()) == pid(subscription).map(u64::from))
            .on_subscribe(watch, leave),
    ];
    const STREAMS: bool = true;
    const LEASES: bool = true;

    fn events(&self) -> &Events<'static> {
        &self.news.ring
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.news.ring
    }
}

fn watch(monitor: &mut Monitor, subscription: &EventSubscription<'_>) {
    let Some(pid) = pid(subscription) else { return };
    match monitor.news.watched.iter_mut().find(|watched| watched.pid == pid) {
        Some(watched) => watched.subscriptions += 1,
        None => {
            let name = system::process(pid).map(|process| process.name).unwrap_or_default();
            monitor.news.watched.push(Watched { pid, name, subscriptions: 1, ended: false });
        }
    }
}

fn leave(monitor: &mut Monitor, subscription: &EventSubscription<'_>) {
    let pid = pid(subscription);
    monitor.news.watched.retain_mut(|watched| {
        watched.subscriptions -= usize::from(Some(watched.pid) == pid);
        watched.subscriptions > 0
    });
}

/// Looks at the system if it is time, and emits. Returns the time of the next look; `None` while no client subscribes.
pub(crate) fn look(monitor: &mut Monitor, now: Millis) -> Option<Millis> {
    if monitor.news.loads == 0 && monitor.news.watched.is_empty() {
        return None;
    }
    if now < monitor.news.look_at {
        return Some(monitor.news.look_at);
    }
    monitor.news.look_at = now + PERIOD;
    let before = monitor.news.load;
    let load = system::load().map_or(before, |load| load.one_minute);
    monitor.news.load = load;
    if monitor.news.loads > 0 && load > before {
        let event = EventOccurrence::new("load.high").timestamp(unix_millis());
        // It is small: the ring always has room for it.
        let _ = emit(monitor, &event, now, &mut |data| {
            for (member, value) in [("one_minute", load), ("before", before)] {
                data.raw_if(member, Raw::parse(value.to_string().as_bytes()).ok());
            }
        });
    }
    let is_over = |pid| system::process(pid).map_or(true, |process| process.state == "zombie");
    let mut ended = Vec::new();
    for watched in monitor.news.watched.iter_mut().filter(|watched| !watched.ended) {
        if is_over(watched.pid) {
            watched.ended = true;
            ended.push((watched.pid, watched.name.clone()));
        }
    }
    for (pid, name) in ended {
        let event = EventOccurrence::new("process.ended").timestamp(unix_millis());
        let _ = emit(monitor, &event, now, &mut |data| {
            data.number("pid", pid.into());
            data.text("name", &name);
        });
    }
    Some(monitor.news.look_at)
}
