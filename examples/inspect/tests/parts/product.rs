//! The commands that do not use a server but look after it: its schemas, its manifests, the files of hosts, completions, time.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{HELLO, against, example, inspect, made_up, on_a_terminal, run};

/// An empty folder for one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inspect-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tools(id: u8, schemas: &str) -> String {
    let tool =
        format!(r#"{{"name":"t","description":"d","inputSchema":{{"type":"object","properties":{{}}}}{schemas}}}"#);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[{tool}],"ttlMs":0,"cacheScope":"private"}}}}"#
    )
}

fn answer(id: u8, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{result}}}}}"#)
}

#[test]
fn unknown_arguments_are_not_sent() {
    let (code, out, err) = against("calc", &["--trace", "call", "add", "aa=1", "b=2"]);
    assert!(code == 2 && out.is_empty() && !err.contains("tools/call"), "{err}");
    let words = "no member `aa` (did you mean \"a\"?); there are a, b; to send it all the same, write aa:=1\n";
    assert!(err.ends_with(words), "{err}");
    let (code, out, err) = against("calc", &["call", "add", "a=1", "b=2", "c:=3"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "3\n", "the schema has no \"c\"\n"));
}

#[test]
fn dots_reach_into_objects() {
    let input = r#","inputSchema":{"type":"object","properties":{"due":{"type":"object","properties":{"date":{"type":"string"}}}}}"#;
    let list = tools(2, input);
    let answer = answer(3, r#""content":[{"type":"text","text":"ok"}]"#);
    let (code, out, err) = made_up(&[HELLO, &list, &answer], &["--trace", "call", "t", "due.date=2026-01-02"]);
    assert_eq!((code, out.as_str()), (0, "ok\n"), "{err}");
    let err: String = err.split_whitespace().collect();
    assert!(err.contains(r#""arguments":{"due":{"date":"2026-01-02"}}"#), "{err}");
}

#[test]
fn answers_are_compared_with_the_output_schema() {
    let schema = r#","outputSchema":{"type":"object","properties":{"n":{"type":"integer"},"s":{"pattern":"x"}},"required":["n"]}"#;
    let call = |result: &str| made_up(&[HELLO, &answer(2, result), &tools(3, schema)], &["call", "t"]);
    let (code, out, err) = call(r#""content":[],"structuredContent":{"n":"7","s":"x"}"#);
    assert_eq!((code, out.as_str()), (0, "n  7\ns  x\n"));
    assert!(err.starts_with("the answer does not fit the output schema: n: a string, expected integer\n"), "{err}");
    assert!(err.ends_with("not looked at in the output schema: pattern\n"), "{err}");
    let (code, _, err) = call(r#""content":[],"structuredContent":{"n":7,"s":"x"}"#);
    assert_eq!((code, err.as_str()), (0, "not looked at in the output schema: pattern\n"));
    let old = r#","outputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}"#;
    let fits = answer(2, r#""content":[],"structuredContent":{}"#);
    let (code, _, err) = made_up(&[HELLO, &fits, &tools(3, old)], &["call", "t"]);
    let words =
        "the output schema is of the dialect http://json-schema.org/draft-07/schema#; it was taken for 2020-12\n";
    assert_eq!((code, err.as_str()), (0, words));
    // With key=value the list is at hand, and an answer without structured content gets a warning too.
    let list = tools(2, schema);
    let answer = answer(3, r#""content":[{"type":"text","text":"7"}]"#);
    let (_, _, err) = made_up(&[HELLO, &list, &answer], &["call", "t", "x=1"]);
    assert_eq!(err, "the answer has no structuredContent, though the tool has an output schema\n");
    // The examples keep their own schemas.
    for tool in ["uptime", "load", "memory", "processes"] {
        let (code, _, err) = against("sysmon", &["call", tool]);
        assert_eq!((code, err.as_str()), (0, ""), "{tool}");
    }
}

#[test]
fn lint_finds_what_clients_refuse() {
    let (code, out, _) = against("calc", &["lint"]);
    let (good, cost) = out.split_once('\n').unwrap();
    assert_eq!((code, good), (0, "2 tools, nothing that clients are known to refuse"));
    let (_, listed, _) = against("calc", &["--json", "tools"]);
    let bytes = listed.trim().len() - r#"{"tools":[,]}"#.len();
    let words = format!("The list costs a model {bytes} bytes, some {} tokens. Largest: add ", bytes.div_ceil(4));
    assert!(cost.replace('\n', " ").starts_with(&words), "{cost}");
    let list = tools(2, r#","outputSchema":{"type":"object","properties":{"a":{"type":"array"}}}"#);
    let (code, out, _) = made_up(&[HELLO, &list], &["lint"]);
    assert_eq!(code, 1);
    assert!(out.starts_with("t · outputSchema.a  is an array without items: "), "{out}");
    let (code, out, _) = made_up(&[HELLO, &list], &["--json", "lint"]);
    assert!(code == 1 && out.starts_with(r#"{"warnings":[{"tool":"t","place":"outputSchema.a","warning":"#), "{out}");
    assert!(out.contains(r#"],"cost":{"bytes":"#) && out.contains(r#""largest":[{"tool":"t","bytes":"#), "{out}");
}

/// A server that never answers.
const SILENT: [&str; 4] = ["--", "sh", "-c", "cat >/dev/null"];

#[test]
fn the_total_time_ends_everything() {
    let begun = Instant::now();
    let (code, _, err) = run(&[&["--total", "0.5"], &SILENT[..]].concat());
    assert_eq!((code, err.as_str()), (5, "inspect: it took longer than --total allows\n"));
    assert!((Duration::from_millis(500)..Duration::from_secs(10)).contains(&begun.elapsed()));
    // Progress does not begin it again, and the server is asked to stop.
    let (code, _, err) =
        against("sysmon", &["--total", "3", "--trace", "call", "watch", "seconds=20", "interval_ms=200"]);
    assert!(code == 5 && err.contains("progress") && err.contains("notifications/cancelled"), "{code} {err}");
    // A watch has done its work then.
    assert_eq!(against("sysmon", &["--total", "3", "watch"]).0, 0);
}

#[test]
fn a_long_wait_is_told_on_a_terminal() {
    let waits = ("waiting for an answer … ", "");
    let (code, shown) = on_a_terminal(&[&["--total", "4"], &SILENT[..]].concat(), &[waits]);
    assert!(code == 5 && shown.contains("it took longer than --total allows"), "{shown}");
    let (_, _, err) = run(&[&["--total", "2.5"], &SILENT[..]].concat());
    assert!(!err.contains("waiting"), "{err}");
}

#[test]
fn completions() {
    let (code, script, _) = run(&["completions", "bash"]);
    assert_eq!(code, 0);
    let complete = |words: &[&str]| {
        let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let last = words.len() - 1;
        let program =
            format!("{script}\nCOMP_WORDS=({list}); COMP_CWORD={last}; _inspect; printf '%s ' \"${{COMPREPLY[@]}}\"");
        let done = Command::new("bash").args(["--norc", "-c", &program]).stdin(Stdio::null()).output().unwrap();
        assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete(&["inspect", "comp"]), "complete completions");
    assert_eq!(complete(&["inspect", "--time"]), "--timeout");
    assert_eq!(complete(&["inspect", "--json", "ca"]), "call");
    assert_eq!(complete(&["inspect", "--revision", "2026"]), "2026-07-28");
    assert_eq!(complete(&["inspect", "tasks", "f"]), "follow");
    assert!(complete(&["inspect", "tools", "--", "bas"]).split(' ').any(|word| word == "bash"));
    assert_eq!(complete(&["inspect", "call", "pi"]), "");
    // Where the other shells are, they take their scripts.
    for shell in ["zsh", "fish"] {
        let (code, script, _) = run(&["completions", shell]);
        assert!(
            code == 0 && script.contains("tasks") && script.contains("--timeout") | script.contains("-l timeout"),
            "{script}"
        );
        let file = std::env::temp_dir().join(format!("inspect-{shell}-{}", std::process::id()));
        fs::write(&file, script).unwrap();
        if let Ok(done) = Command::new(shell).arg("-n").arg(&file).output() {
            assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        if shell == "fish" {
            let program = format!("source {}; complete -C 'inspect tasks f'", file.display());
            if let Ok(done) = Command::new(shell).args(["--no-config", "-c", &program]).output() {
                assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "follow");
            }
        }
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn manifests_follow_the_server() {
    let folder = Folder::new("manifest");
    let there = folder.0.to_str().unwrap();
    let (code, out, _) = against("calc", &["manifest", "--check", "-o", there]);
    assert!(code == 1 && out.contains("server.json is not there") && folder.names("").is_empty(), "{out}");
    let (code, out, err) = against("calc", &["manifest", "-o", there]);
    assert!(code == 0 && out.contains("server.json written") && err.contains("`author` needs your name"), "{out}{err}");
    assert_eq!(folder.names(""), ["manifest.json", "server.json"]);
    let server = folder.read("server.json");
    assert!(server.contains("\"name\": \"io.github.OWNER/calc\""), "{server}");
    let manifest = folder.read("manifest.json");
    for part in [
        r#""manifest_version": "0.3""#,
        r#""entry_point": "server/calc""#,
        r#""command": "${__dirname}/server/calc""#,
        r#"{"name": "add", "description": "Adds two integers"}"#,
    ] {
        assert!(manifest.contains(part), "{part}: {manifest}");
    }
    let (code, out, _) = against("calc", &["manifest", "--check", "-o", there]);
    assert!(code == 0 && out.matches("is up to date").count() == 2, "{out}");

    // What the author writes stays; what the server says is compared, and brought up to date.
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let mine = manifest.replace("AUTHOR", "me").replace(&version, "\"version\": \"0.0.1\",\n  \"license\":   \"MIT\"");
    let mine = mine.replace("\"name\": \"echo\"", "\"name\": \"gone\"");
    fs::write(folder.path("manifest.json"), &mine).unwrap();
    let (code, out, _) = against("calc", &["manifest", "--check", "-o", there]);
    assert_eq!(code, 1);
    assert!(out.contains("`version` is \"0.0.1\"; the server says"), "{out}");
    assert!(out.contains("`tools`: `echo` is missing, the server has no `gone`"), "{out}");
    assert_eq!(folder.read("manifest.json"), mine);
    assert_eq!(against("calc", &["manifest", "-o", there]).0, 0);
    let new = folder.read("manifest.json");
    assert!(
        new.contains("\"license\":   \"MIT\"") && new.contains("\"name\": \"me\"") && new.contains(&version),
        "{new}"
    );
    assert_eq!(against("calc", &["manifest", "--check", "-o", there]).0, 0);

    // What is not JSON is not touched.
    fs::write(folder.path("server.json"), "{ // mine\n}").unwrap();
    let (code, _, err) = against("calc", &["manifest", "-o", there]);
    assert!(code == 2 && err.contains("is not changed: it is not JSON"), "{err}");
    assert_eq!(folder.read("server.json"), "{ // mine\n}");
}

#[test]
fn a_crate_and_a_bundle_are_packages() {
    let folder = Folder::new("manifest-cargo");
    let there = folder.0.to_str().unwrap();
    let publish = |more: &[&str]| against("calc", &[&["manifest", "--cargo", "--pack", "-o", there], more].concat());
    let (code, _, err) = publish(&[]);
    assert!(code == 2 && err.contains("Cargo.toml: No such file"), "{err}");
    fs::write(folder.path("Cargo.toml"), "[package]\nname = \"my-calc\"\nversion = \"1.2.3\" # mine\n").unwrap();
    fs::write(folder.path("README.md"), "<!-- mcp-name: io.github.me/calc -->\n").unwrap();
    let (code, out, err) = publish(&[]);
    let bundle = format!("calc-{}.mcpb", env!("CARGO_PKG_VERSION"));
    assert!(code == 0 && out.contains(&format!("{bundle} written, SHA-256 ")), "{out}{err}");
    let server = folder
        .read("server.json")
        .replace("io.github.OWNER/calc", "io.github.me/calc")
        .replace("OWNER/REPOSITORY", "me/calc");
    fs::write(folder.path("server.json"), &server).unwrap();
    let cargo =
        r#"{"registryType": "cargo", "identifier": "my-calc", "version": "1.2.3", "transport": {"type": "stdio"}}"#;
    let digest = out.split("SHA-256 ").nth(1).unwrap().split('\n').next().unwrap();
    let flat = server.split_whitespace().collect::<Vec<_>>().join(" ").replace("{ ", "{").replace(" }", "}");
    assert!(flat.contains(cargo) && flat.contains(&format!("\"fileSha256\": \"{digest}\"")), "{flat}");
    // A comment is not on the page of the crate.
    let (code, out, _) = publish(&["--check"]);
    assert!(code == 1 && out.contains("README.md: no line `mcp-name: io.github.me/calc`"), "{out}");
    fs::write(folder.path("README.md"), "# calc\n\nmcp-name: io.github.me/calc\n").unwrap();
    let (code, out, _) = publish(&["--check"]);
    assert!(
        code == 0 && out.contains("README.md shows the name") && out.matches("is up to date").count() == 2,
        "{out}"
    );
    // What others unpack is the program, and may be run.
    let unpacked = folder.path("unpacked");
    let unzip = "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; z.extractall(sys.argv[2]); \
        print([oct(i.external_attr >> 16) for i in z.infolist()])";
    let python = Command::new("python3").args(["-c", unzip]).arg(folder.path(&bundle)).arg(&unpacked).output();
    if let Ok(done) = python {
        assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "['0o100644', '0o100755']", "{done:?}");
        assert_eq!(fs::read(unpacked.join("server/calc")).unwrap(), fs::read(example("calc")).unwrap());
        assert_eq!(fs::read(unpacked.join("manifest.json")).unwrap(), folder.read("manifest.json").as_bytes());
    }
    let (code, _, err) = run(&["manifest", "--pack", "-o", there, "--", "sh", "-c", "cat"]);
    assert!(code == 3 || code == 2, "{err}");
}

/// Runs a command with a home folder of its own.
fn at_home(home: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = inspect(args);
    let command = command.env("HOME", home).env("XDG_CONFIG_HOME", home.join(".config")).env_remove("CODEX_HOME");
    let done = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap_or(-1), text(done.stdout), text(done.stderr))
}

#[cfg(target_os = "linux")]
#[test]
fn install_adds_to_the_files_of_hosts() {
    let folder = Folder::new("install");
    let calc = example("calc");
    let install = |args: &[&str]| at_home(&folder.0, &[&["install"], args, &["--", &calc, "-x"]].concat());
    let (code, out, _) = install(&["sums"]);
    assert!(code == 0 && out.matches(&format!("\"command\": \"{calc}\"")).count() == 7, "{out}");
    assert!(
        out.contains(&format!("config.toml\n[mcp_servers.sums]\ncommand = \"{calc}\"\nargs = [\"-x\"]\n")),
        "{out}"
    );
    assert!(
        out.contains("Claude Desktop: ") && out.contains("Nothing is written") && folder.names("").is_empty(),
        "{out}"
    );
    let (code, _, err) = install(&["sums", "--write"]);
    assert!(code == 2 && err.contains("none of these hosts is here") && folder.names("").is_empty(), "{err}");

    // Two hosts are here, one with a file of its own.
    fs::create_dir_all(folder.path(".cursor")).unwrap();
    fs::create_dir_all(folder.path(".config/Claude")).unwrap();
    let file = ".config/Claude/claude_desktop_config.json";
    let old =
        "{\n\t\"z\" : 1,\n\t\"mcpServers\": {\n\t\t\"b\": {\"command\":\"b\",\"x\":[1,  2]}\n\t},\n\t\"a\": null\n}\n";
    fs::write(folder.path(file), old).unwrap();
    fs::set_permissions(folder.path(file), fs::Permissions::from_mode(0o600)).unwrap();
    let (code, out, _) = install(&["sums", "--write"]);
    assert!(code == 0 && out.contains("the old one is ") && !out.contains("VS Code"), "{out}");
    let new = folder.read(file);
    let (head, tail) = old.split_once("[1,  2]}").unwrap();
    let between = new.strip_prefix(head).and_then(|new| new.strip_suffix(tail)).unwrap();
    assert!(between.starts_with("[1,  2]},\n\t\t\"sums\": {") && between.contains(&calc), "{new}");
    assert_eq!(folder.names(".config/Claude"), ["claude_desktop_config.json", "claude_desktop_config.json.old"]);
    assert_eq!(folder.read(".config/Claude/claude_desktop_config.json.old"), old);
    assert_eq!(fs::metadata(folder.path(file)).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(folder.read(".cursor/mcp.json").starts_with("{\n  \"mcpServers\": {"));
    // Once more changes nothing.
    let (code, out, _) = install(&["sums", "--write"]);
    assert!(code == 0 && out.matches("has it already").count() == 2 && folder.read(file) == new, "{out}");
    assert_eq!(folder.names(".config/Claude").len(), 2);

    // A file that is not understood is left as it is; the others are written.
    let code_file = ".config/Code/User/mcp.json";
    fs::create_dir_all(folder.path(".config/Code/User")).unwrap();
    fs::write(folder.path(code_file), "{\n  // mine\n  \"servers\": [}\n").unwrap();
    let (code, out, err) = install(&["more", "--write"]);
    assert!(
        code == 0 && out.contains("Cursor: ") && err.contains("mcp.json is not changed: it is not JSON"),
        "{out}{err}"
    );
    let (code, _, err) = install(&["more", "vscode", "--write"]);
    assert!(code == 2 && err.contains("is not changed"), "{err}");
    assert_eq!(folder.read(code_file), "{\n  // mine\n  \"servers\": [}\n");
    assert_eq!(folder.names(".config/Code/User"), ["mcp.json"]);
    fs::write(folder.path(code_file), "").unwrap();
    assert_eq!(install(&["more", "vscode", "--write"]).0, 0);
    assert!(folder.read(code_file).contains("\"type\": \"stdio\""));

    let (code, _, err) = install(&["", "cursor", "--write"]);
    assert!(code == 2 && err.contains("the name is empty"), "{err}");
    // A server that does not answer is not installed.
    let (code, ..) = at_home(&folder.0, &["install", "no", "cursor", "--write", "--", "false"]);
    assert!(code == 3 && !folder.read(".cursor/mcp.json").contains("\"no\""));
}

/// The file of each host, as its users have it, and the part that `install sums` adds or changes, with `CALC` for the program.
const FILES: [(&str, &str, &str, &str, &str); 8] = [
    (
        "claude",
        ".config/Claude/claude_desktop_config.json",
        "{\n  \"globalShortcut\": \"\",\n  \"mcpServers\": {}\n}\n",
        "\"mcpServers\": {}",
        "\"mcpServers\": {\n    \"sums\": {\n      \"command\": \"CALC\",\n      \"args\": []\n    }\n  }",
    ),
    (
        "claude-code",
        ".claude.json",
        "{\n  \"numStartups\": 7,\n  \"projects\": {\"/p\":  {\"mcpServers\": {}}}\n}",
        "{}}}",
        "{}}},\n  \"mcpServers\": {\n    \"sums\": {\n      \"type\": \"stdio\",\n      \"command\": \"CALC\",\n      \"args\": []\n    }\n  }",
    ),
    (
        "codex",
        ".codex/config.toml",
        "# mine\nmodel = \"x\"  # the best\n\n[mcp_servers.sums]\nargs = []\ncommand = \"old\" # to change\nstartup_timeout_sec = 20\n\n[tui]\n",
        "\"old\"",
        "\"CALC\"",
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        "{\"mcpServers\":{\"a\":{\"url\":\"u\"}}}",
        "{\"url\":\"u\"}",
        "{\"url\":\"u\"}, \"sums\": {\"command\":\"CALC\",\"args\":[]}",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{\n  \"mcpServers\": {\n    // By hand\n    \"sums\": {\"command\": \"old\", \"args\": [], \"trust\": true}\n  }\n}\n",
        "\"old\"",
        "\"CALC\"",
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "{\n\t\"servers\": {\n\t\t/* none, yet */\n\t},\n\t\"inputs\": [],\n}\n",
        "yet */\n\t}",
        "yet */\n\t  \"sums\": {\n\t    \"type\": \"stdio\",\n\t    \"command\": \"CALC\",\n\t    \"args\": []\n\t  }\n\t}",
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        "{\n  \"mcpServers\": {\n    \"a\": {\"serverUrl\": \"u\", \"disabled\": true}\n  }\n}\n",
        "true}",
        "true},\n    \"sums\": {\n      \"command\": \"CALC\",\n      \"args\": []\n    }",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed settings\n//\n{\n  \"theme\": \"One Dark\", // dark\n  \"vim_mode\": true,\n}\n",
        "true,\n",
        "true,\n  \"context_servers\": {\n    \"sums\": {\n      \"command\": \"CALC\",\n      \"args\": []\n    }\n  },\n",
    ),
];

#[cfg(target_os = "linux")]
#[test]
fn each_host_keeps_its_file_and_is_read() {
    let folder = Folder::new("install-hosts");
    // A long path, so that each entry is laid out on lines of its own.
    let calc = folder.path(&"long".repeat(20)).join("calc");
    fs::create_dir_all(calc.parent().unwrap()).unwrap();
    fs::copy(example("calc"), &calc).unwrap();
    let calc = calc.to_str().unwrap();
    for (host, file, old, part, new) in FILES {
        fs::create_dir_all(folder.path(file).parent().unwrap()).unwrap();
        fs::write(folder.path(file), old).unwrap();
        let (code, out, err) = at_home(&folder.0, &["install", "sums", host, "--write", "--", calc]);
        assert!(code == 0 && out.contains("the old one is "), "{host}: {out}{err}");
        assert_eq!(folder.read(file), old.replacen(part, &new.replace("CALC", calc), 1), "{host}");
        let (code, out, _) = at_home(&folder.0, &["install", "sums", host, "--write", "--", calc]);
        assert!(code == 0 && out.contains("has it already"), "{host}: {out}");
        // What was written starts the server.
        let (code, out, err) = at_home(&folder.0, &["--from", host, "sums", "call", "add", "a=1", "b=2"]);
        assert_eq!((code, out.as_str(), err.as_str()), (0, "3\n", ""), "{host}");
    }
    // From one host to another.
    let (code, out, _) = at_home(&folder.0, &["--from", "zed", "sums", "install", "more", "codex", "--write"]);
    assert!(code == 0 && folder.read(".codex/config.toml").contains("[mcp_servers.more]\ncommand = "), "{out}");
    for (args, words) in [
        (&["--from", "codex"][..], "which server of Codex? it has sums, more"),
        (&["--from", "codex", "sum", "ping"], "has no server \"sum\" (did you mean \"sums\"?); it has sums, more"),
        (&["--from", "cursor", "a", "ping"], "u"),
    ] {
        let (code, _, err) = at_home(&folder.0, args);
        assert!(code == 2 && err.contains(words), "{code} {err}");
    }
}

#[test]
fn skills_of_a_folder() {
    let folder = Folder::new("skills-folder");
    for name in ["refunds", "Bad Name"] {
        fs::create_dir_all(folder.path(name).join("scripts")).unwrap();
        let text = format!("---\nname: {name}\ndescription: How to refund\n---\nDo it.\n");
        fs::write(folder.path(name).join("SKILL.md"), text).unwrap();
        fs::write(folder.path(name).join("scripts/a.sh"), "true\n").unwrap();
    }
    let (code, out, err) = run(&["skills", folder.0.to_str().unwrap()]);
    assert!(code == 1 && err.contains("Bad Name: "), "{err}");
    assert_eq!(out, "refunds  2 files, 61 bytes\n  How to refund\n  skill://refunds/SKILL.md\n");
    let (code, out, err) = run(&["--json", "skills", folder.path("refunds").to_str().unwrap()]);
    assert!(
        code == 0 && err.is_empty() && out.contains(r#""uri":"skill://refunds/scripts/a.sh","digest":"sha256:"#),
        "{out}"
    );
    assert_eq!(run(&["skills", "/does/not/exist"]).0, 2);
}

#[test]
fn the_manual_page_is_one() {
    let (code, page, _) = run(&["man"]);
    assert!(code == 0 && page.starts_with(".TH INSPECT 1") && page.contains(".B \\-\\-from HOST\n"), "{page}");
    let file = std::env::temp_dir().join(format!("inspect-{}.1", std::process::id()));
    fs::write(&file, page).unwrap();
    if let Ok(done) = Command::new("mandoc").args(["-Tlint", "-Werror"]).arg(&file).output() {
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    }
    fs::remove_file(file).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn install_loses_nothing_and_leaves_nothing() {
    let folder = Folder::new("install-files");
    let calc = example("calc");
    let secret = ["--env", "TOKEN=secret"];
    let install = |name: &str| {
        at_home(&folder.0, &[&["install", name, "cursor", "--write"], &secret[..], &["--", &calc]].concat())
    };
    std::thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || assert_eq!(install(&format!("s{n}")).0, 0));
        }
    });
    let file = ".cursor/mcp.json";
    let text = folder.read(file);
    assert!((0..8).all(|n| text.contains(&format!("\"s{n}\": {{"))) && text.matches("secret").count() == 8, "{text}");
    let names = folder.names(".cursor");
    assert_eq!(names.len(), 8, "the file, and a copy for each that came later: {names:?}");
    for name in names {
        let mode = fs::metadata(folder.path(&format!(".cursor/{name}"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }

    // No room for the new text.
    let before = folder.names(".cursor");
    let mut limited = std::process::Command::new("sh");
    let words = ["install", "late", "cursor", "--write", "--", &calc];
    limited.args(["-c", "ulimit -f 1; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_inspect")]).args(words);
    let done = limited.env("HOME", &folder.0).env_remove("XDG_CONFIG_HOME").output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(2) && err.contains("is not changed"), "{err}");
    assert!(folder.names(".cursor") == before && folder.read(file) == text);

    // A link that leads nowhere is not replaced.
    let bare = Folder::new("install-link");
    fs::create_dir_all(bare.path(".cursor")).unwrap();
    std::os::unix::fs::symlink("/does/not/exist.json", bare.path(file)).unwrap();
    let (code, _, err) = at_home(&bare.0, &["install", "x", "cursor", "--write", "--", &calc]);
    assert!(code == 2 && err.contains("is a link to a file that is not there"), "{err}");
    assert!(fs::symlink_metadata(bare.path(file)).unwrap().is_symlink() && bare.names(".cursor") == ["mcp.json"]);
}
