//! Clocks that jump by days, forward and back, as they do when a person or a time server sets them.
use crate::common;

use common::http::*;
use common::*;
use mcp_sansio_http::endpoint::{App, StreamId};

const DAY: u64 = 86_400_000;

/// Random numbers, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// Some milliseconds, or some days, forward or back; never before the beginning.
    fn jump(&mut self, now: u64) -> u64 {
        let far = [100, 90_000, 3 * DAY][self.below(3) as usize];
        let by = self.below(far);
        if self.below(2) == 0 { now.saturating_sub(by) } else { now + by }
    }
}

/// Sets the clock, expires deadlines, and reads the streams. A deadline that was handled must not be due again.
fn set(web: &mut Web, now: u64) {
    web.now = now;
    let Web { endpoint, service, world, .. } = web;
    endpoint.expire(&mut App::new(service, world), now);
    assert!(endpoint.next_deadline().is_none_or(|next| next > now), "what was due is due again");
}

/// Reads every stream that is ready, and keeps those whose answer has not come yet.
fn read(web: &mut Web, open: &mut Vec<StreamId>) -> usize {
    let before = open.len();
    open.retain(|&stream| {
        let pulled = web.pull(stream);
        let answers = pulled.json().iter().filter(|message| message.get("method").is_none()).count();
        assert_eq!(answers, usize::from(pulled.ended), "{pulled:?}");
        // Besides the answer at most a question and its cancellation.
        assert!(pulled.json().len() <= 3, "{pulled:?}");
        !pulled.ended
    });
    before - open.len()
}

/// A client with an open stream keeps its session. Each of its requests is answered once: by its tool, or because the
/// question of the tool was not answered in time.
#[test]
fn each_request_is_answered_once() {
    let mut random = Random(5);
    let mut web = Web::new();
    set(&mut web, 30 * DAY);
    let session = web.open("2025-11-25");
    let _events = web.listen(&session, None).opened();
    let (mut open, mut asked, mut answered) = (Vec::new(), 0, 0);
    for id in 1..=2_000 {
        let now = random.jump(web.now);
        set(&mut web, now);
        answered += read(&mut web, &mut open);
        if open.len() < 4 {
            let (tool, arguments) = match random.below(2) {
                0 => ("later", json!({"tag": id.to_string()})),
                _ => ("roots", json!({})),
            };
            open.push(web.call(&session, id, tool, arguments).opened());
            asked += 1;
        }
        // In the end every call of `later` is answered.
        if random.below(2) == 0 && !web.world.later.is_empty() {
            let (_, token) = web.world.later.remove(0);
            assert_eq!(web.answer(token, "done"), Ok(()));
        }
    }
    while let Some((_, token)) = web.world.later.pop() {
        assert_eq!(web.answer(token, "done"), Ok(()));
    }
    let end = web.now + 30 * DAY;
    set(&mut web, end);
    answered += read(&mut web, &mut open);
    assert_eq!((answered, open.len()), (asked, 0));
    assert!(asked > 200, "only {asked} requests");
}

/// Clients that leave: after the last jump their sessions and streams end; without a jump none ends before its time.
#[test]
fn what_is_left_is_forgotten() {
    let mut random = Random(6);
    let mut web = Web::new();
    set(&mut web, 30 * DAY);
    for id in 0..500 {
        let session = web.open("2025-11-25");
        let stream = web.call(&session, id, "later", json!({"tag": id.to_string()})).opened();
        web.detach(stream);
        // All entries have the same time, so none is too old, wherever the clock was before.
        web.call(&session, 1_000 + id, "count", json!({})).text();
        if random.below(3) > 0 {
            let (_, token) = web.world.later.pop().unwrap();
            let _ = web.answer(token, "done");
        }
        let now = random.jump(web.now);
        set(&mut web, now);
    }
    while let Some((_, token)) = web.world.later.pop() {
        let _ = web.answer(token, "done");
    }
    for _ in 0..3 {
        let now = web.now + 90 * DAY;
        set(&mut web, now);
    }
    assert_eq!(web.endpoint.load(), (0, 0, 0));
    assert_eq!(web.endpoint.next_deadline(), None);
}
