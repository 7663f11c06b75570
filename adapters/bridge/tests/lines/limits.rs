//! Limits of memory.

use crate::rig::Rig;
use mcp_sansio::revision::Revision;
use mcp_sansio_bridge::BridgeLimits;
use serde_json::json;

const OLD: Revision = Revision::V2025_11_25;

#[test]
fn requests_are_counted_and_weighed() {
    for (limits, kept) in [(BridgeLimits::DEFAULT.in_flight(3), 3), (BridgeLimits::DEFAULT.kept(200), 2)] {
        let mut rig = Rig::new(OLD, limits);
        let opening = rig.opening(OLD);
        rig.up();
        rig.answer(opening);
        rig.lose();
        let calls: Vec<_> = (0..5).map(|_| rig.call(false)).collect();
        let refused = calls.iter().filter(|call| !rig.is_waiting(**call)).count();
        assert_eq!(calls.len() - refused, kept, "{:?}", rig.got);
        rig.up();
        assert_eq!(rig.heard.iter().filter(|message| message["method"] == "tools/call").count(), kept);
    }
}

#[test]
fn lines_that_are_too_long() {
    let mut rig = Rig::open(OLD, OLD);
    rig.bridge.refuse_too_long().unwrap();
    let call = rig.call(false);
    assert!(
        rig.got
            .iter()
            .any(|message| message["error"]["message"].as_str().is_some_and(|text| text.contains("too long")))
    );
    assert!(rig.is_waiting(call));
}

#[test]
fn an_answer_that_is_too_large() {
    let mut rig = Rig::new(OLD, BridgeLimits::DEFAULT.backlog(1_000));
    let opening = rig.opening(OLD);
    rig.up();
    rig.answer(opening);
    let call = rig.send("tools/list", json!({}), false);
    let heard = rig.one("tools/list");
    rig.result(&heard, &format!(r#"{{"tools":[],"x":"{}"}}"#, "x".repeat(2_000)));
    assert!(rig.answer(call)["error"]["message"].as_str().unwrap().contains("larger than the bridge"));
}
