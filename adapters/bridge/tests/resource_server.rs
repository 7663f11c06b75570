//! Access tokens of hosts, with an authorization server that rotates its key, revokes tokens, and falls silent.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use mcp_sansio_auth::dpop::Proof;
use mcp_sansio_auth::jose::{Es256Key, Jwk, Signer};
use mcp_sansio_auth::pkce::Base64Of32;
use mcp_sansio_auth_tests::{Response, Role, World, browse};
use serde_json::{Value, json};

const RESOURCE: &str = "https://mcp.example/a/mcp";
const METADATA: &str = "https://mcp.example/.well-known/oauth-protected-resource/a/mcp";

/// A bridge in front of a server that is away.
struct Bridge {
    child: Child,
    port: u16,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The answer to a request.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HashMap<String, String>,
    body: String,
}

impl Bridge {
    fn start(world: &World, resource: &str, port: u16, more: &[&str]) -> Self {
        let issuer = world.origin(Role::Issuer);
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-bridge"))
            .args(["--listen", &format!("127.0.0.1:{port}"), "--wait", "0"])
            .args(["--issuer", issuer, "--resource", resource])
            .args(more)
            .arg("tcp:127.0.0.1:1")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut bridge = Bridge { child, port, stderr };
        let line = bridge.says(" listens at http://");
        let address = line.split_once("http://").unwrap().1.split('/').next().unwrap();
        bridge.port = address.rsplit(':').next().unwrap().parse().unwrap();
        bridge
    }

    /// Returns the next line on standard error that has a text.
    fn says(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "it never says {text}");
        }
        line
    }

    fn ask(&self, head: &str, body: &str) -> Answer {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let length = body.len();
        write!(socket, "{head}Host: mcp.example\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Answer { status, headers: lines.filter_map(header).collect(), body: body.into() }
    }

    /// Opens a session with a token.
    fn open(&self, token: &str) -> Answer {
        let info = json!({"name": "h", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        self.post(token, "", &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
    }

    fn post(&self, token: &str, more: &str, body: &Value) -> Answer {
        let accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
        let token = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        self.ask(&format!("POST /a/mcp HTTP/1.1\r\n{accept}{token}{more}"), &body.to_string())
    }
}

impl Answer {
    /// Returns the status, and the error of the challenge with its scopes.
    fn told(&self) -> (u16, String, String) {
        let challenge = self.headers.get("www-authenticate").map_or("", String::as_str);
        let value = |name: &str| challenge.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        (self.status, value("error").unwrap_or("").to_owned(), value(" scope").unwrap_or("").to_owned())
    }
}

fn told(status: u16, error: &str) -> (u16, String, String) {
    (status, error.into(), if status == 200 || status == 503 { String::new() } else { "read tools".into() })
}

const SCOPES: [&str; 4] = ["--scope", "read", "--scope", "tools"];

fn claims(world: &World) -> Value {
    let exp = UNIX_EPOCH.elapsed().unwrap().as_secs() + 600;
    json!({"iss": world.origin(Role::Issuer), "aud": RESOURCE, "sub": "ann", "scope": "tools read", "exp": exp})
}

/// A token of the present key with some claims changed.
fn token(world: &World, changed: Value) -> String {
    let mut claims = claims(world);
    changed.as_object().unwrap().iter().for_each(|(name, value)| claims[name] = value.clone());
    world.state().sign(&claims)
}

#[test]
fn signed_tokens() {
    let world = World::new();
    let bridge = Bridge::start(&world, RESOURCE, 0, &SCOPES);
    let bare = bridge.open("");
    assert_eq!(bare.told(), told(401, ""));
    assert!(bare.headers["www-authenticate"].ends_with(&format!("resource_metadata=\"{METADATA}\"")), "{bare:?}");
    let metadata = bridge.ask("GET /.well-known/oauth-protected-resource/a/mcp HTTP/1.1\r\n", "");
    let metadata: Value = serde_json::from_str(&metadata.body).unwrap();
    assert_eq!(metadata["resource"], RESOURCE);
    assert_eq!(metadata["authorization_servers"], json!([world.origin(Role::Issuer)]));
    assert_eq!(metadata["scopes_supported"], json!(["read", "tools"]));
    let good = bridge.open(&token(&world, json!({})));
    assert_eq!(good.status, 200, "{good:?}");
    let past = UNIX_EPOCH.elapsed().unwrap().as_secs() - 60;
    for (changed, expected) in [
        (json!({"aud": "https://mcp.example/b"}), told(401, "invalid_token")),
        (json!({"exp": past}), told(401, "invalid_token")),
        (json!({"iss": "https://as.example"}), told(401, "invalid_token")),
        (json!({"sub": null}), told(401, "invalid_token")),
        (json!({"scope": "read"}), told(403, "insufficient_scope")),
    ] {
        assert_eq!(bridge.open(&token(&world, changed.clone())).told(), expected, "{changed}");
    }
    assert_eq!(bridge.open("opaque").told(), told(401, "invalid_token"));
    // A session belongs to its user.
    let session = format!("Mcp-Session-Id: {}\r\n", good.headers["mcp-session-id"]);
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    assert_eq!(bridge.post(&token(&world, json!({"scope": "read tools x"})), &session, &ping).status, 200);
    assert_eq!(bridge.post(&token(&world, json!({"sub": "bob"})), &session, &ping).status, 404);
    assert_eq!(world.requests(Role::Issuer, "/jwks").len(), 1, "{:?}", world.story());
}

#[test]
fn keys_are_rotated() {
    let world = World::new();
    let bridge = Bridge::start(&world, RESOURCE, 0, &[]);
    let old = token(&world, json!({}));
    assert_eq!(bridge.open(&old).status, 200);
    let begun = Instant::now();
    world.state().key = 2;
    let new = token(&world, json!({}));
    // Only every few seconds.
    assert_eq!(bridge.open(&new).told().1, "invalid_token");
    assert_eq!(bridge.open(&old).status, 200);
    assert_eq!(world.requests(Role::Issuer, "/jwks").len(), 1);
    // A set that cannot be read changes nothing, even while it is asked for.
    std::thread::sleep(Duration::from_secs(6).saturating_sub(begun.elapsed()));
    world.answer(Role::Issuer, |_, request, _| {
        (request.path() == "/jwks").then(|| Response::new(200, "application/json", "<html>"))
    });
    assert_eq!(bridge.open(&new).told().1, "invalid_token");
    assert_eq!(bridge.open(&old).status, 200);
    world.relent();
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(bridge.open(&new).status, 200);
    assert_eq!(bridge.open(&old).told().1, "invalid_token");
    assert_eq!(world.requests(Role::Issuer, "/jwks").len(), 3);
}

#[test]
fn bound_tokens() {
    let world = World::new();
    let bridge = Bridge::start(&world, RESOURCE, 0, &[]);
    let key = Es256Key::from_bytes(&[9; 32]).unwrap();
    let thumbprint = Jwk::new(key.public_key().unwrap()).unwrap().thumbprint().unwrap();
    let bound = token(&world, json!({"cnf": {"jkt": Base64Of32::new(&thumbprint).as_str()}}));
    let bearer = bridge.open(&bound);
    assert_eq!(bearer.told().1, "invalid_token");
    let nonce = &*bearer.headers["dpop-nonce"];
    let (now, mut space) = (UNIX_EPOCH.elapsed().unwrap().as_secs(), [0; 1024]);
    let ask = |proof: &str| {
        let head =
            format!("GET /a/mcp HTTP/1.1\r\nAccept: text/html\r\nAuthorization: DPoP {bound}\r\nDPoP: {proof}\r\n");
        bridge.ask(&head, "").told()
    };
    let proof = Proof::new("GET", RESOURCE, now, &[1; 16]).access_token(&bound);
    assert_eq!(ask(proof.sign(&key, &mut space).unwrap()).1, "use_dpop_nonce");
    let proof = proof.nonce(nonce).sign(&key, &mut space).unwrap();
    // Admitted: what it asks for is not there.
    assert_eq!(ask(proof).0, 406);
    assert_eq!(ask(proof).1, "invalid_dpop_proof");
}

/// Writes the file of a client.
fn client_file(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("mcp-bridge-{name}-{}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.into_os_string().into_string().unwrap()
}

#[test]
fn tokens_that_only_the_issuer_can_read() {
    let world = World::new();
    world.state().register(Role::Issuer, "bridge", "a secret: 100%");
    let file = client_file("introspects", "bridge\na secret: 100%\n");
    let endpoint = format!("{}/introspect", world.origin(Role::Issuer));
    let mut all = vec!["--introspect", &*endpoint, "--client-file", &*file];
    all.extend(SCOPES);
    let bridge = Bridge::start(&world, RESOURCE, 0, &all);
    let answers = claims(&world);
    world.document(Role::Issuer, "/introspect", move |_, value| {
        let active = value["active"] == true;
        *value = answers.clone();
        value["active"] = json!(!active);
    });
    let asked = || world.requests(Role::Issuer, "/introspect").len();
    assert_eq!(bridge.open("good").status, 200);
    assert_eq!(bridge.open("good").status, 200);
    // Its word holds for a minute.
    assert_eq!(asked(), 1);
    world.relent();
    assert_eq!(bridge.open("bad").told(), told(401, "invalid_token"));
    assert_eq!(bridge.open("bad").told(), told(401, "invalid_token"));
    assert_eq!(asked(), 2);
    assert_eq!(world.violations(), [""; 0]);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn an_authorization_server_is_silent() {
    let world = World::new();
    let token = token(&world, json!({}));
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (file, endpoint) = (client_file("silent", "id\nsecret"), format!("http://{}/", silent.local_addr().unwrap()));
    let mut bridge = Bridge::start(&world, RESOURCE, 0, &["--introspect", &endpoint, "--client-file", &file]);
    let begun = Instant::now();
    assert_eq!(bridge.open(&token).told(), told(503, ""));
    assert!((4..8).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    // The next one does not wait.
    assert_eq!(bridge.open(&token).told(), told(503, ""));
    assert!(begun.elapsed().as_secs() < 8);
    bridge.says("timed out");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn options_that_do_not_belong_together() {
    let (file, issuer, resource) = (client_file("options", "id\nsecret"), "https://as.example", RESOURCE);
    for (options, why) in [
        (&["--issuer", issuer, "--resource", resource][..], "needs --resource and --listen"),
        (&["--listen", "0", "--scope", "read"], "needs --resource"),
        (&["--listen", "0", "--issuer", issuer], "needs --resource"),
        (&["--listen", "0", "--client-file", &file], "--introspect needs"),
        (&["--listen", "0", "--token-file", &file, "--issuer", issuer, "--resource", resource], "without --token-file"),
        (&["--listen", "0", "--issuer", issuer, "--resource", resource, "--introspect", issuer], "needs --client-file"),
        (&["--issuer", "http://as.example"], "it is not https"),
        (&["--resource", "https://mcp.example/mcp?a=b"], "has a query"),
        (&["--client-file", "/dev/null"], "it needs two lines"),
    ] {
        let mut bridge = Command::new(env!("CARGO_BIN_EXE_mcp-bridge"));
        let done = bridge.args(options).arg("tcp:127.0.0.1:1").stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(2) && text.contains(why), "{options:?} {text}");
    }
    std::fs::remove_file(file).unwrap();
}

/// A client, here another bridge, finds its way from the address alone.
#[test]
fn a_client_logs_in() {
    for signs in [true, false] {
        let world = World::new();
        world.state().signs = signs;
        world.state().register(Role::Issuer, "bridge", "secret");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/mcp");
        let (file, endpoint) =
            (client_file("login", "bridge\nsecret"), format!("{}/introspect", world.origin(Role::Issuer)));
        let opaque = ["--introspect", &endpoint, "--client-file", &file];
        let _bridge = Bridge::start(&world, &url, port, if signs { &SCOPES } else { &opaque });
        let config = std::env::temp_dir().join(format!("mcp-bridge-guarded-{}", std::process::id()));
        let mut client = Command::new(env!("CARGO_BIN_EXE_mcp-bridge"))
            .args(["--wait", "60", &url])
            .env("XDG_CONFIG_HOME", &config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = client.stdin.take().unwrap();
        let mut errors = BufReader::new(client.stderr.take().unwrap()).lines().map_while(Result::ok);
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
        writeln!(stdin, "{list}").unwrap();
        browse(errors.find_map(|line| Some(line.split_once("; visit ")?.1.to_owned())).unwrap().as_str());
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines().map_while(Result::ok);
        let answer = lines.find(|line| line.contains(r#""id":2"#)).unwrap();
        // By the bridge that it has logged in to: its own patience is longer.
        assert!(answer.contains("The server behind the bridge is not there, for 0 s"), "{answer}");
        drop(stdin);
        assert!(client.wait().unwrap().success());
        assert_eq!(world.violations(), [""; 0]);
        std::fs::remove_dir_all(&config).unwrap();
        std::fs::remove_file(file).unwrap();
    }
}
