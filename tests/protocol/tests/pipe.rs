//! One-shot pipes: each prefix of a session gets exactly its answers, and a clean end.
use crate::common;
use crate::programs;

use common::*;
use mcp_sansio::server::MessageLimits;
use std::io::Read;
use std::process::{Command, Stdio};

/// A reader that gives a limited number of bytes at once.
struct Sips<'r>(&'r [u8], usize);

impl Read for Sips<'_> {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.len().min(self.1).min(space.len());
        space[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

fn serve(input: &[u8], sip: usize) -> Vec<String> {
    let (mut output, mut world) = (Vec::new(), World::default());
    let service = everything::service();
    mcp_sansio_blocking::serve(Sips(input, sip), &mut output, &service, &mut world, MessageLimits::default()).unwrap();
    let output = String::from_utf8(output).unwrap();
    assert!(output.is_empty() || output.ends_with('\n'));
    // A listen is acknowledged or not, depending on when the end of the input is read.
    output.lines().filter(|line| !line.contains("subscriptions/acknowledged")).map(str::to_owned).collect()
}

fn session() -> Vec<String> {
    let mut lines = vec![initialize("2025-11-25", all_capabilities("2025-11-25"))];
    lines.push(notify("notifications/initialized", json!({})));
    lines.push(request("2025-11-25", 1, "tools/list", json!({})));
    lines.push("nonsense".into());
    lines.push(call("2025-11-25", 2, "echo", json!({"text": "h\u{e9}llo"})));
    lines.push(String::new());
    lines.push(call("2025-11-25", 3, "count", json!({})));
    lines.push(call("2025-11-25", 4, "confirm", json!({})));
    lines.push(request("2025-11-25", 5, "resources/subscribe", json!({"uri": "test://text"})));
    lines.push(call("2025-11-25", 6, "later", json!({})));
    lines.push(request(MODERN, 7, "subscriptions/listen", json!({"notifications": {}})));
    lines.push(call(MODERN, 8, "add", json!({"a": 1, "b": 2})));
    lines
}

/// Returns the number of answers to these lines: at once, and at the end of the input.
fn owed(lines: &[String]) -> usize {
    let at_once = |line: &&String| line.contains("\"id\"") && !line.contains("later") || line.as_str() == "nonsense";
    let at_the_end: usize = lines
        .iter()
        .map(|line| match line {
            line if line.contains("\"confirm\"") || line.contains("\"later\"") => 1,
            _ => 0,
        })
        .sum();
    lines.iter().filter(at_once).count() + at_the_end
}

#[test]
fn every_prefix() {
    let lines = session();
    let input = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect::<Vec<_>>();
    for end in (0..=input.len()).filter(|end| end % 5 == 0 || input.get(*end) == Some(&b'\n') || *end == input.len()) {
        let prefix = &input[..end];
        let mut whole = prefix.iter().filter(|byte| **byte == b'\n').count();
        // A last line without its newline counts if it is complete.
        if input.get(end) == Some(&b'\n') && lines[whole] != "nonsense" {
            whole += 1;
        }
        // After the end of the input only answers are written: no question of the last line.
        let is_last = input.get(end) == Some(&b'\n');
        let unasked = is_last && lines[whole - 1].contains("\"confirm\"");
        let said = serve(prefix, usize::MAX);
        assert_eq!(said.len(), owed(&lines[..whole]) - usize::from(unasked), "prefix of {end} bytes: {said:#?}");
        assert_eq!(said, serve(prefix, 1 + end % 13));
    }
}

/// The same with the example `calc` as a child process, whose stdin is closed after the prefix.
// spec: T059 T070 T087
#[test]
fn calc_as_a_process() {
    programs::build(&["calc"]);
    let calc = programs::example("calc");
    let run = |input: &str| {
        let mut child = Command::new(&calc).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{:?}", output.status);
        let output = String::from_utf8(output.stdout).unwrap();
        assert!(output.lines().all(|line| parse(line)["jsonrpc"] == "2.0"), "{output}");
        output
    };
    assert_eq!(run(""), "");
    let lines = [
        initialize("2025-06-18", json!({})),
        notify("notifications/initialized", json!({})),
        call("2025-06-18", 1, "add", json!({"a": 1, "b": 2})),
        call("2025-06-18", 2, "echo", json!({"text": "a \"b\""})),
    ];
    for count in 0..=lines.len() {
        let input: String = lines[..count].iter().map(|line| format!("{line}\n")).collect();
        let owed = count.saturating_sub(usize::from(count > 1));
        assert_eq!(run(&input).lines().count(), owed);
        assert_eq!(run(input.trim_end()).lines().count(), owed, "without the last newline");
        assert_eq!(run(&(input + "{\"jsonrpc\":\"2.0\",\"id\":9")).lines().count(), owed, "with a line cut off");
    }
}
