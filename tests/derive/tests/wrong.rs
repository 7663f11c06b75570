//! Mistakes in the use of the macros do not compile, and each message is at the line of the user.
//!
//! The files in `wrong` are compiled by the cargo that runs this test. A comment `//~ text` expects a message with this
//! text whose first place is on its line, or on the next one if it is alone; each message needs such a comment.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::process::Command;

/// A message of the compiler: the line and the text.
type Message = (u64, String);

#[test]
fn errors_are_at_the_line_of_the_user() {
    let mut faults = Vec::new();
    for file in ["macros", "types", "limits"] {
        let messages = messages(file);
        let text = std::fs::read_to_string(format!("{}/wrong/{file}.rs", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut found: Vec<Message> =
            messages.into_iter().filter(|(of, _)| *of == format!("{file}.rs")).map(|(_, message)| message).collect();
        let mut marked = Vec::new();
        for (line, (code, expected)) in
            (1..).zip(text.lines()).filter_map(|(n, line)| Some((n, line.split_once("//~ ")?)))
        {
            let line = line + u64::from(code.trim().is_empty());
            marked.push(line);
            match found.iter().position(|(at, text)| *at == line && text.contains(expected)) {
                Some(index) => drop(found.remove(index)),
                None => faults.push(format!("{file}.rs:{line}: no message \"{expected}\"")),
            }
        }
        // The same mistake again, seen from other parts of what the macros make.
        found.retain(|(line, _)| !marked.contains(line));
        faults.extend(found.iter().map(|(line, text)| format!("{file}.rs:{line}: \"{text}\" was not expected")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Compiles a file of `wrong` and returns the messages, each with the name of its file.
fn messages(file: &str) -> Vec<(String, Message)> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["rustc", "--quiet", "--message-format", "json", "--bin", "wrong"]);
    // The folder of the programs that cargo builds now, so that the crates are not built again.
    command.arg("--target-dir").arg(std::env::current_exe().unwrap().ancestors().nth(3).unwrap());
    command.args(["--", "--cfg", &format!("wrong=\"{file}\"")]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{file}.rs compiles");
    String::from_utf8(output.stdout).unwrap().lines().filter_map(message).collect()
}

/// Reads an error of the compiler: the name of the file, and the message.
fn message(line: &str) -> Option<(String, Message)> {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    let message = &value["message"];
    if message["level"] != "error" {
        return None;
    }
    let span = message["spans"].as_array()?.iter().find(|span| span["is_primary"] == true)?;
    let file = span["file_name"].as_str()?.rsplit('/').next()?.to_owned();
    Some((file, (span["line_start"].as_u64()?, message["message"].as_str()?.to_owned())))
}
