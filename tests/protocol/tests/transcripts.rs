//! Golden transcripts: one file for each topic and revision, compared byte by byte, for any cutting of the input and
//! any size of the output window.
use crate::common;

use common::*;
use mcp_sansio_test_support::{Line, Transcript, golden_server};
use std::collections::HashMap;
use std::path::PathBuf;

fn files() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("transcripts");
    let mut files: Vec<_> = REVISIONS
        .iter()
        .flat_map(|revision| std::fs::read_dir(root.join(revision)).expect("a folder for each revision"))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= REVISIONS.len() * 11, "transcripts are missing");
    files
}

fn read(path: &PathBuf) -> Transcript {
    Transcript::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns whether a transcript has actions outside of handlers. They happen between two lines, so it is cut only
/// there.
fn acts(transcript: &Transcript) -> bool {
    transcript.to_server().any(|line| line.contains("notifications/test/"))
}

fn input(transcript: &Transcript) -> Vec<u8> {
    transcript.to_server().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

/// Feeds each message by itself, and judges each line. `UPDATE_GOLDEN=1` writes the files again.
// spec: B006 B008 B010 B012 B014 B016 B040 B056 B066 B067 B068 B070 B071 B072 B102 B103 B105 B106 B120 B143 B145
// spec: B159 B169 C017 C068 C072 S002 S010 S012 S074 T059 T066 T070
#[test]
fn as_written() {
    for path in files() {
        let mut rig = Rig::new();
        golden_server(&path, |line| rig.say(line)).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

/// Feeds the input whole, byte by byte, and cut at each position: run `k` cuts each line after its first `k` bytes,
/// so that each piece ends one line and begins the next.
#[test]
fn however_it_is_cut() {
    for path in files() {
        let transcript = read(&path);
        let (input, expected): (_, Vec<_>) = (input(&transcript), transcript.to_client().collect());
        let separate = acts(&transcript);
        let longest = transcript.to_server().map(str::len).max().unwrap();
        let runs = (1..=longest).map(|at| cut_lines(&input, at));
        for (number, pieces) in [vec![&input[..]], input.chunks(1).collect()].into_iter().chain(runs).enumerate() {
            let mut rig = Rig::new().unjudged();
            for piece in pieces {
                if separate {
                    piece.split_inclusive(|&byte| byte == b'\n').for_each(|part| rig.feed(part));
                } else {
                    rig.feed(piece);
                }
            }
            same(&rig.take(), &expected, &format!("{}, cut number {number}", path.display()));
        }
    }
}

/// Writes each key with escapes only: the answers stay the same, so members are found in any spelling. Handlers
/// return some input unchanged, therefore the comparison is between JSON values.
#[test]
fn keys_with_escapes() {
    let mut keys = 0;
    for path in files() {
        let mut rig = Rig::new();
        for (line, expected) in exchanges(&read(&path)) {
            let escaped = escape_keys(&line);
            keys += usize::from(escaped != line);
            let said: Vec<_> = rig.say(&escaped).iter().map(|line| parse(&shorten(line))).collect();
            let expected: Vec<_> = expected.iter().map(|line| parse(line)).collect();
            assert_eq!(said, expected, "{}, {line}\n{escaped}", path.display());
        }
    }
    assert!(keys > 500, "{keys} messages have keys");
}

/// Replaces the escaped keys that a handler has copied into a text.
fn shorten(line: &str) -> String {
    let letters = (b' '..=b'~').filter(|byte| !b"\"\\".contains(byte));
    letters.fold(line.to_owned(), |line, byte| line.replace(&format!(r"\\u{byte:04x}"), &char::from(byte).to_string()))
}

/// Writes each character of each key as `\u00xx`. A line that is not JSON stays unchanged.
fn escape_keys(line: &str) -> String {
    let Ok(_) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    let (mut escaped, mut rest) = (String::new(), line);
    while let Some((before, behind)) = rest.split_once('"') {
        let mut slashes = false;
        let end = behind.bytes().position(|byte| {
            let ends = byte == b'"' && !slashes;
            slashes = byte == b'\\' && !slashes;
            ends
        });
        let (string, behind) = behind.split_at(end.expect("a string ends"));
        let is_key = behind[1..].trim_start().starts_with(':') && string.is_ascii() && !string.contains('\\');
        escaped.push_str(before);
        escaped.push('"');
        match is_key {
            true => escaped.extend(string.bytes().map(|byte| format!("\\u{byte:04x}"))),
            false => escaped.push_str(string),
        }
        escaped.push('"');
        rest = &behind[1..];
    }
    escaped + rest
}

fn cut_lines(input: &[u8], at: usize) -> Vec<&[u8]> {
    let mut column = 0;
    let cut = move |byte: &u8| {
        column = if *byte == b'\n' { 0 } else { column + 1 };
        column == at
    };
    input.split_inclusive(cut).collect()
}

/// Compares, and shows only the first difference.
fn same<S: AsRef<str>>(said: &[String], expected: &[S], context: &str) {
    let expected: Vec<_> = expected.iter().map(AsRef::as_ref).collect();
    let differs = said.iter().zip(&expected).position(|(said, expected)| said != expected);
    let at = differs.unwrap_or(said.len().min(expected.len()));
    let equal = differs.is_none() && said.len() == expected.len();
    assert!(equal, "{context}\n    said {:?}\nexpected {:?}", said.get(at), expected.get(at));
}

/// A window that holds each single message, drained a few bytes at a time: no message is lost, and the order stays.
#[test]
fn through_a_window_that_drains_slowly() {
    for path in files() {
        let transcript = read(&path);
        let expected: Vec<_> = transcript.to_client().map(str::to_owned).collect();
        let expected = told(&expected);
        for gulp in [1, 7, 100, 4095] {
            let mut rig: Rig = Rig::with(4096);
            rig.gulp = gulp;
            if acts(&transcript) {
                transcript.to_server().for_each(|line| rig.feed(format!("{line}\n").as_bytes()));
            } else {
                rig.feed(&input(&transcript));
            }
            let said = rig.take();
            let said: Vec<_> = told(&said).into_iter().cloned().collect();
            same(&said, &expected, &format!("{}, gulp {gulp}", path.display()));
        }
    }
}

/// Lists, openings and large content fit any window. Other replies that do not fit become a short error, and
/// notifications that would take a reply's room are dropped. Everything else is the same as without a window.
#[test]
fn through_small_windows() {
    for window in [300, 512] {
        for path in files() {
            let transcript = read(&path);
            let mut rig: Rig = Rig::with(window);
            // A question was too large to be sent, so its answer is ignored.
            let mut unasked = false;
            let mut ids = HashMap::new();
            for (line, expected) in exchanges(&transcript) {
                let said = rig.say(&renamed(&line, false, &ids));
                let context = format!("{}, window {window}, {line}\n{said:#?}", path.display());
                assert!(said.iter().all(|line| line.len() < window || is_windowed(line)), "{context}");
                let is_answer = !line.contains("\"method\"");
                unasked &= is_answer;
                // All questions of one `ask` must fit together.
                let questions =
                    expected.iter().filter(|line| is_question(line)).map(|line| line.len() + 1).sum::<usize>();
                let fits = |line: &String| line.len() < window || is_windowed(line);
                // Here their ids may be shorter than in the transcript.
                let asked = questions <= window || said.iter().any(|line| is_question(line));
                if asked && expected.iter().all(fits) && !unasked {
                    note_questions(&said, &expected, &mut ids);
                    let expected: Vec<_> = expected.iter().map(|line| renamed(line, true, &ids)).collect();
                    assert_eq!(told(&said), told(&expected), "{context}");
                } else {
                    unasked |= expected.iter().any(|line| line.contains("\"method\""));
                    let answers = |lines: &[String]| lines.iter().filter(|line| !line.contains("\"method\"")).count();
                    assert!(is_answer || answers(&said) == 1, "{context}");
                }
            }
        }
    }
}

fn is_question(line: &str) -> bool {
    let line = parse(line);
    line.get("id").is_some() && line["method"].is_string()
}

/// Only questions that were sent get an id: one that is too large for the window has none.
fn note_questions(said: &[String], expected: &[String], ids: &mut HashMap<String, String>) {
    for (said, expected) in said.iter().zip(expected) {
        if is_question(said) {
            let (said, expected) = (parse(said), parse(expected));
            ids.insert(format!("\"id\":{},", expected["id"]), format!("\"id\":{},", said["id"]));
        }
    }
}

/// Returns a question, or the answer to one, with its id in this run.
fn renamed(line: &str, is_question: bool, ids: &HashMap<String, String>) -> String {
    match ids.iter().find(|(from, _)| line.contains("\"method\"") == is_question && line.contains(*from)) {
        Some((from, to)) => line.replacen(from, to, 1),
        None => line.to_owned(),
    }
}

fn is_windowed(line: &str) -> bool {
    let value = parse(line);
    let result = &value["result"];
    let lists = ["tools", "resources", "resourceTemplates", "prompts", "protocolVersion", "supportedVersions"];
    let large = result.pointer("/contents/0").or(result.pointer("/content/0")).is_some_and(|content| {
        ["text", "blob", "data"].iter().any(|key| content[key].as_str().is_some_and(|text| text.len() > 600))
    });
    value.is_array() || large || lists.iter().any(|key| result.get(key).is_some())
}

/// Removes the lines that may be dropped.
fn told(lines: &[String]) -> Vec<&String> {
    let optional = ["notifications/progress", "notifications/message"];
    lines.iter().filter(|line| !optional.iter().any(|method| line.contains(method))).collect()
}

/// Returns each input line with its output lines.
fn exchanges(transcript: &Transcript) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for line in &transcript.lines {
        match line {
            Line::ToServer(line) => all.push((line.clone(), Vec::new())),
            Line::ToClient(line) => all.last_mut().unwrap().1.push(line.clone()),
            Line::Comment(_) => {}
        }
    }
    all
}
