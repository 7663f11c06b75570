//! Lists of tools whose arguments go into headers, from a server that may send anything.

use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio_http::client::params::{check, leave_out};
use serde_json::Value;

use crate::form::is_simple;

/// Reads a response. `None` if the model cannot judge it.
pub(crate) fn run(data: &[u8]) -> Option<()> {
    let mut left = data.to_vec();
    let count = leave_out(&mut left);
    assert_eq!(left.len(), data.len());
    if count == 0 {
        assert!(left == data, "a byte has changed, and no tool was left out");
    }
    let raw = Raw::parse(data).ok()?;
    let now = Raw::parse(&left).unwrap_or_else(|error| panic!("{error:?} in {:?}", String::from_utf8_lossy(&left)));
    is_simple(raw).then_some(())?;
    let tools = raw.get("result")?.get("tools").filter(|tools| tools.kind() == JsonKind::Array)?;
    let mut expected: Value = serde_json::from_str(raw.as_str()).ok()?;
    let all = expected["result"]["tools"].as_array_mut()?;
    let wrong: Vec<_> =
        tools.items().map(|tool| tool.get("inputSchema").is_some_and(|schema| check(schema).is_err())).collect();
    let mut is_wrong = wrong.iter();
    all.retain(|_| !is_wrong.next().expect("as many"));
    let found: Value = serde_json::from_str(now.as_str()).expect("JSON");
    if count > 0 {
        assert_eq!(found, expected);
        assert_eq!(count, wrong.iter().filter(|wrong| **wrong).count());
    } else if raw.get("jsonrpc").is_some_and(|version| version.as_str() == "\"2.0\"") && raw.get("error").is_none() {
        assert!(!wrong.contains(&true), "a wrong tool is left in {}", raw.as_str());
    }
    Some(())
}
