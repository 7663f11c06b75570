//! Golden transcripts and cuts.

use mcp_sansio_test_support::{Line, Transcript, cuts, golden_client, golden_server};
use std::fs;
use std::path::PathBuf;

const TEXT: &str = "# A ping.\n\n> ping\n< pong\n# Not answered.\n> note\n> two\n< a\n< b\n";

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

fn server(line: &str) -> Vec<String> {
    match line {
        "ping" => vec!["pong".into()],
        "two" => vec!["a".into(), "b".into()],
        _ => vec![],
    }
}

#[test]
fn a_transcript_reads_and_writes() {
    let transcript = Transcript::parse(TEXT).unwrap();
    assert_eq!(transcript.lines[0], Line::Comment("A ping.".into()));
    assert_eq!(transcript.to_server().collect::<Vec<_>>(), ["ping", "note", "two"]);
    assert_eq!(transcript.to_client().collect::<Vec<_>>(), ["pong", "a", "b"]);
    assert_eq!(transcript.to_string(), TEXT);
    assert_eq!(Transcript::parse("> a\nb\n"), Err("line 2: b".into()));
}

#[test]
fn a_server_is_compared() {
    let path = file("server.jsonl", TEXT);
    assert_eq!(golden_server(&path, server), Ok(()));
    let wrong = golden_server(&path, |line| if line == "two" { vec!["a".into(), "c".into()] } else { server(line) });
    let wrong = wrong.unwrap_err();
    assert!(wrong.contains("expected: < b\n  actual: < c"), "{wrong}");
    let silent = golden_server(&path, |line| if line == "two" { vec!["a".into()] } else { server(line) }).unwrap_err();
    assert!(silent.contains("actual: (nothing more)"), "{silent}");
    let chatty = golden_server(&path, |line| if line == "note" { vec!["!".into()] } else { server(line) }).unwrap_err();
    assert!(chatty.contains("expected: > two\n  actual: < !"), "{chatty}");
    assert!(golden_server("/nowhere/x.jsonl", server).unwrap_err().contains("/nowhere"));
}

#[test]
fn a_client_speaks_first() {
    let path = file("client.jsonl", "# Opening.\n> hello\n< welcome\n> thanks\n< bye\n");
    let client = |line: &str| if line == "welcome" { vec!["thanks".into()] } else { vec![] };
    assert_eq!(golden_client(&path, vec!["hello".into()], client), Ok(()));
    assert!(golden_client(&path, vec![], client).unwrap_err().contains("expected: > hello"));
    let alone = file("alone.jsonl", "# Says one thing.\n> hello\n");
    assert_eq!(golden_client(&alone, vec!["hello".into()], client), Ok(()));
}

#[test]
fn cuts_are_whole_bytes_and_halves() {
    let all: Vec<Vec<&[u8]>> = cuts(b"abc").collect();
    assert_eq!(all, [vec![&b"abc"[..]], vec![b"a", b"b", b"c"], vec![b"a", b"bc"], vec![b"ab", b"c"]]);
    for cut in cuts("é\n{}".as_bytes()) {
        assert_eq!(cut.concat(), "é\n{}".as_bytes());
    }
    assert_eq!(cuts(b"").count(), 2);
}
