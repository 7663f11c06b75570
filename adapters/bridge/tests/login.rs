//! A server that demands a login: the host's request waits while a person visits the page that standard error shows.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use mcp_sansio_auth_tests::{Role, World, browse};

/// Runs the bridge until a call is answered. Returns the answer, and the pages that were to be visited.
fn call(world: &World, config: &std::path::Path) -> (String, Vec<String>) {
    let mut bridge = Command::new(env!("CARGO_BIN_EXE_mcp-bridge"))
        .args(["--wait", "60", &world.url()])
        .env("XDG_CONFIG_HOME", config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = bridge.stdin.take().unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines();
    let errors = BufReader::new(bridge.stderr.take().unwrap()).lines();
    let visited = std::thread::spawn(move || {
        let pages = errors.map_while(Result::ok).filter_map(|line| Some(line.split_once("; visit ")?.1.to_owned()));
        pages.inspect(|page| browse(page)).collect::<Vec<_>>()
    });
    let info = r#"{"name":"h","version":"1"}"#;
    let open = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{info}}}}}"#
    );
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let opened = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    writeln!(stdin, "{open}\n{opened}\n{list}").unwrap();
    let answer = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(r#""id":2"#))).unwrap().unwrap();
    drop(stdin);
    assert!(bridge.wait().unwrap().success());
    (answer, visited.join().unwrap())
}

#[test]
fn a_person_logs_in_once() {
    let world = World::new();
    let config = std::env::temp_dir().join(format!("mcp-bridge-login-{}", std::process::id()));
    let (answer, pages) = call(&world, &config);
    assert!(answer.contains(r#""tools":["#) && pages.len() == 1, "{answer} {pages:?}");
    // The tokens are where those of `inspect` are.
    assert_eq!(std::fs::read_dir(config.join("mcp-sansio-inspect")).unwrap().count(), 1);
    let (answer, pages) = call(&world, &config);
    assert!(answer.contains(r#""tools":["#) && pages.is_empty(), "{answer} {pages:?}");
    assert_eq!(world.requests(Role::Issuer, "/token").len(), 1, "{:?}", world.story());
    std::fs::remove_dir_all(&config).unwrap();
}
