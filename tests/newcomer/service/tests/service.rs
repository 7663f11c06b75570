//! Program 6: tests of the notes, in memory.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp_sansio::revision::Revision;
use mcp_sansio_host::testing::{Conversation, Delivery, Reply, assert_snapshot};
use mcp_sansio_host::{LateReceiver, channel};
use notes_service::{Notes, SERVICE};
use serde_json::{Value, json};

static FILES: AtomicU32 = AtomicU32::new(0);

/// Opens empty notes; what imports say comes out of the channel.
fn open(revision: Revision, cut: Delivery) -> (Conversation<'static, Notes>, LateReceiver<Notes>) {
    let file = format!("{}/{}.db", env!("CARGO_TARGET_TMPDIR"), FILES.fetch_add(1, Ordering::Relaxed));
    let _ = std::fs::remove_file(&file);
    let (late, receiver) = channel();
    let notes = Notes::open(&file, late).unwrap();
    let mut conversation = Conversation::new(const { &SERVICE }, notes).cut(cut);
    conversation.open(revision);
    (conversation, receiver)
}

#[test]
fn adds_and_finds() {
    for cut in [Delivery::Whole, Delivery::Bytes, Delivery::Random(3)] {
        let mut notes = open(Revision::V2026_07_28, cut).0;
        let due = json!({"date": "2026-01-01", "remind_days": 3});
        let added = notes.call("add", &json!({"title": "t", "body": "b", "kind": "todo", "due": due}));
        assert_eq!(added.structured().deserialize::<Value>().unwrap()["due"], due);
        assert_eq!(notes.call("search", &json!({"kind": "todo"})).structured().deserialize::<Value>().unwrap()["total"], 1);
        assert!(notes.read("notes://1").text().contains(r#""remind_days":3"#));
        let wrong = notes.call("add", &json!({"title": "t", "body": "b", "kind": "tod"}));
        assert!(wrong.is_error() && wrong.text().contains("expected one of `idea`, `todo`, `journal`"));
    }
}

#[test]
fn asks_before_it_removes() {
    for (sure, left) in [(false, 1), (true, 0)] {
        let mut notes = open(Revision::V2025_11_25, Delivery::Whole).0;
        notes.call("add", &json!({"title": "t", "body": "b", "kind": "idea"}));
        let asked: Value = serde_json::from_str(&notes.call("remove", &json!({"id": 1})).requests[0]).unwrap();
        assert_eq!(asked["params"]["message"], "Remove note 1, \"t\"?");
        let result = json!({"action": "accept", "content": {"sure": sure}});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        let done = Reply::of(notes.say(&answer.to_string()));
        assert_eq!(done.structured().deserialize::<Value>().unwrap(), json!({"removed": sure}));
        assert_eq!(notes.call("search", &json!({})).structured().deserialize::<Value>().unwrap()["total"], left);
    }
}

#[test]
fn imports_with_progress() {
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/lines.txt");
    std::fs::write(file, "one\ntwo\n").unwrap();
    let (mut notes, mut late) = open(Revision::V2025_06_18, Delivery::Whole);
    assert!(notes.call("import", &json!({"path": file})).is_pending());
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("\"result\"")) {
        lines.extend(notes.hear(&mut late, Duration::from_secs(5)));
    }
    let done = Reply::of(lines);
    assert_eq!(done.structured().deserialize::<Value>().unwrap(), json!({"imported": 2}));
    assert_eq!(done.notifications.iter().filter(|line| line.contains("\"progress\"")).count(), 2, "{done}");
}

#[test]
fn lists_each_note() {
    for revision in Revision::ALL {
        let mut notes = open(revision, Delivery::Whole).0;
        let listed = |notes: &mut Conversation<'static, Notes>| {
            let result = notes.request("resources/list", &json!({})).result().to_string();
            let list = serde_json::from_str::<Value>(&result).unwrap()["resources"].take();
            list.as_array()
                .unwrap()
                .iter()
                .map(|it| format!("{} {}", it["uri"], it["name"]))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(listed(&mut notes), r#""notes://all" "all notes""#);
        notes.call("add", &json!({"title": "milk \"and\" bread", "body": "b", "kind": "todo"}));
        notes.call("add", &json!({"title": "t", "body": "b", "kind": "todo"}));
        let expected = "\"notes://all\" \"all notes\"\n\"notes://1\" \"milk \\\"and\\\" bread\"\n\"notes://2\" \"t\"";
        assert_eq!(listed(&mut notes), expected);
        assert!(notes.read("notes://1").text().contains(r#""title":"milk \"and\" bread""#));
    }
}

/// Shows in a diff what clients will notice. `UPDATE_SNAPSHOTS=1` writes it.
#[test]
fn what_clients_see() {
    let notes = open(Revision::V2026_07_28, Delivery::Whole).0.snapshot();
    assert_snapshot(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/service.snapshot"), &notes);
}
