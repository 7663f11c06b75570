#![cfg(all(feature = "std", feature = "serde"))]
mod common;
use common::*;

#[test]
fn smoke() {
    for revision in REVISIONS {
        let mut rig = Rig::new().opened(revision);
        println!("{:#?}", rig.say(&request(revision, 1, "tools/list", json!({}))));
        for (i, tool) in common::everything::TOOLS.iter().enumerate() {
            let name = format!("{tool:?}");
            let name = name.split('"').nth(1).unwrap();
            println!(
                "{name}: {:#?}",
                rig.say(&call(revision, i + 2, name, json!({"text": "a", "a": 1, "b": 2, "size": 3, "tag":"x"})))
            );
        }
    }
}
