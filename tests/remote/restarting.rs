//! Servers as scripts whose processes a test tells apart: the same for both adapters.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcp_sansio_host::OwnedResult;

/// Writes a program whose process says its number in each answer, ends at the tool `end`, and hangs at `hang`. It does not start
/// beside an older process of its own.
pub(crate) fn program(folder: &Path) -> PathBuf {
    let program = folder.join("server");
    let script = r#"#!/bin/sh
cd "${0%/*}"
if [ -e running ] && kill -0 "$(cat running)" 2>/dev/null; then exit 9; fi
echo $$ >running
while read -r line; do
    case $line in *'"end"'*) exit 3 ;; *'"hang"'*) exec sleep 60 ;; *'"id"'*) ;; *) continue ;; esac
    id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","capabilities":{"tools":{}},"supportedVersions":["2026-07-28"],"process":'$$'}}'
done
"#;
    // By another process: while this one has the file open, a process that another test starts has it open too, and the kernel
    // runs no file that is open for writing.
    let writer = Command::new("sh").args(["-c", r#"printf %s "$1" >"$0""#]).arg(&program).arg(script).status();
    assert!(writer.unwrap().success());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    program
}

/// Makes a folder for the program of a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("mcp-restart-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the number of the process that gave an answer.
pub(crate) fn process(answer: &OwnedResult) -> u64 {
    answer.raw().get("process").and_then(|process| process.u64()).unwrap()
}

/// Returns `true` while the process with this number runs; one that ended and was not waited for does not.
pub(crate) fn runs(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
