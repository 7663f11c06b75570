//! Tools that a host may not use.

use crate::rig::Rig;
use mcp_sansio::revision::Revision;
use mcp_sansio_bridge::{Bridge, BridgeLimits, ToolFilter};
use serde_json::json;

const OLD: Revision = Revision::V2025_11_25;

fn filtered(filter: ToolFilter) -> Rig {
    let mut rig = Rig::of(OLD, Bridge::new(BridgeLimits::default()).tools(filter));
    let opening = rig.opening(OLD);
    rig.up();
    rig.answer(opening);
    rig.heard.clear();
    rig
}

/// A server may take the first of two names where the bridge looks at the last one.
#[test]
fn a_name_that_comes_twice() {
    let mut rig = filtered(ToolFilter { deny: vec!["rm".into()], ..ToolFilter::default() });
    for params in [r#"{"name":"rm","name":"ls"}"#, r#"{"name":"ls","n\u0061me":"rm"}"#, r#"{"name":"rm"}"#, "{}"] {
        rig.last += 1;
        rig.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{params}}}"#, rig.last));
        assert_eq!((&rig.answer(rig.last)["error"]["code"], rig.heard.len()), (&json!(-32602), 0), "{params}");
    }
    rig.send("tools/call", json!({"name": "ls"}), false);
    rig.one("tools/call");
}

/// A server changes the hint of a tool, or another server has come.
#[test]
fn a_tool_that_does_not_only_read_any_more() {
    let mut rig = filtered(ToolFilter { read_only: true, ..ToolFilter::default() });
    for reads in [true, false] {
        rig.send("tools/list", json!({}), false);
        let heard = rig.one("tools/list");
        rig.result(&heard, &format!(r#"{{"tools":[{{"name":"t","annotations":{{"readOnlyHint":{reads}}}}}]}}"#));
        let call = rig.call(false);
        assert_eq!(rig.is_waiting(call), reads);
        rig.heard.clear();
    }
}
