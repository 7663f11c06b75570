//! Our client talks to the example, and to a nested mount, over sockets.

#[path = "../../../tests/remote/ending.rs"]
mod ending;
#[path = "../../../tests/remote/revisions.rs"]
mod revisions;
#[path = "../../../tests/remote/running.rs"]
mod running;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use axum::Router;
use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::service::{Call, Service, Tool};
use mcp_sansio_blocking::client::{Client, Http, Ignore};
use mcp_sansio_tower::{EndpointConfig, HttpServerOptions, Mcp, MountOptions};
use running::{Running, raw};

const PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

fn start() -> (Running, SocketAddr) {
    Running::start(env!("CARGO_BIN_EXE_mcp-sansio-axum-example"))
}

/// A call of the example takes 0.3 s. A client that has sent half of a head, and one that has sent nothing, are there too.
#[test]
fn a_half_closed_call_is_answered_while_the_program_ends() {
    let (mut running, address) = start();
    let _silent = TcpStream::connect(address).unwrap();
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(b"POST /mcp HT").unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut call = TcpStream::connect(address).unwrap();
    let head = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: count";
    write!(call, "POST /mcp HTTP/1.1\r\nHost: {address}\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    call.shutdown(std::net::Shutdown::Write).unwrap();
    ending::is_answered_to_its_end(call, &mut running.0);
}

#[test]
fn axum_serves_clients_of_all_revisions() {
    let (_running, address) = start();
    revisions::are_served(address);
    let page = raw(address, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("see /mcp"), "{page}");
    // Refused before its body has come.
    let refused = raw(address, "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000000\r\n\r\n{");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
}

/// Interrupted, the example ends the streams that are open, and ends.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_with_its_streams() {
    let (mut running, address) = start();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").unwrap();
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    while !line.starts_with("event: endpoint") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    let interrupted = Command::new("kill").args(["-INT", &running.0.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    let until = Instant::now() + Duration::from_secs(10);
    while running.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    // There is nothing left to end.
    running.0 = Command::new("true").spawn().unwrap();
    running.0.wait().unwrap();
}

/// Ctrl-C: the call in flight finishes, and axum returns.
#[test]
fn an_end_in_order() {
    let (mut running, address) = start();
    let begin = |method: &str, name: &str, params: &str| {
        let meta = r#""_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},{meta}}}}}"#);
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(
            socket,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Accept: application/json, text/event-stream\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n\
             Content-Length: {}\r\n\r\n{message}",
            message.len()
        )
        .unwrap();
        let (mut text, mut chunk) = (String::new(), [0; 4096]);
        while !text.contains("data: ") {
            let n = socket.read(&mut chunk).unwrap();
            assert!(n > 0, "{text}");
            text.push_str(std::str::from_utf8(&chunk[..n]).unwrap());
        }
        socket
    };
    // The service declares no changes, so its only long stream is that of a call.
    let mut call = begin("tools/call", "count", r#""name":"count""#);
    let ended = Command::new("kill").args(["-INT", &running.0.id().to_string()]).status().unwrap();
    assert!(ended.success());
    let mut rest = String::new();
    call.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("three") && rest.ends_with("0\r\n\r\n"), "{rest}");
    let until = Instant::now() + Duration::from_secs(4);
    while running.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "axum waits");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Serves an application in threads of its own.
fn serve(app: Router) -> (tokio::runtime::Runtime, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move { axum::serve(listener, app).await });
    (runtime, address)
}

/// A client of 2026-07-28 cancels by closing its connection. Nothing is written meanwhile.
#[test]
fn a_closed_connection_cancels() {
    static WAIT: [Tool<Sender<&str>>; 1] =
        [Tool::new("wait", "Waits", |said: &mut Sender<&str>, call: &mut Call<'_>| {
            said.send("called").unwrap();
            call.later().1
        })];
    let (sender, said) = channel();
    let service = Service::new("waits", "1.0").tools(&WAIT).on_cancel(|said, _| said.send("cancelled").unwrap());
    let mcp = Mcp::new(service, sender, MountOptions::new(tokio::time::sleep));
    let (runtime, address) = serve(Router::new().fallback_service(mcp));
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Name: wait\r\n\
                Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call";
    let mut socket = TcpStream::connect(address).unwrap();
    write!(socket, "{head}\r\nContent-Length: {}\r\n\r\n{message}", message.len()).unwrap();
    assert_eq!(said.recv_timeout(Duration::from_secs(10)), Ok("called"));
    drop(socket);
    assert_eq!(said.recv_timeout(Duration::from_secs(10)), Ok("cancelled"));
    runtime.shutdown_background();
}

static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", |_: &mut (), call: &mut Call<'_>| call.text("hello"))];

/// `nest_service` takes the prefix away; the clients of 2024-11-05 get the whole path back.
#[test]
fn nested_mounts_are_found() {
    let mount = |config: EndpointConfig<'static>| {
        let service = Service::new("nested", "1.0").tools(&TOOLS);
        let options = HttpServerOptions::new().config(config);
        Mcp::new(service, (), MountOptions::new(tokio::time::sleep).options(options))
    };
    let below = |config: EndpointConfig<'static>| {
        config.resource_metadata(Raw::constant(r#"{"resource":"http://localhost/api/mcp"}"#))
    };
    let api = EndpointConfig::DEFAULT.path("/api/mcp").old_path("/api/sse").post_path("/api/messages");
    let api = mount(below(api));
    let own = mount(EndpointConfig::DEFAULT.old_path("/mcp/sse").post_path("/mcp/messages"));
    let app = Router::new()
        .nest_service("/api", api.nested("/api"))
        .nest_service("/mcp", own.nested("/mcp"))
        .route_service("/.well-known/oauth-protected-resource/{*path}", api);

    let (runtime, address) = serve(app);
    for path in ["/api/mcp", "/mcp"] {
        for revision in Revision::ALL {
            let info = PROFILE.revisions(Revisions::NONE.with(revision));
            let mut client = Client::new(Http::new(&format!("http://{address}{path}"), &info).unwrap(), Ignore);
            assert_eq!(client.connect().unwrap().revision(), revision, "{path}");
            assert!(client.request(&Request::call("hello")).unwrap().as_str().contains("hello"));
            client.close();
        }
    }
    let get = |path| raw(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    assert!(get("/.well-known/oauth-protected-resource/api/mcp").contains("\"resource\""));
    assert!(get("/mcp/elsewhere").starts_with("HTTP/1.1 404"));
    runtime.shutdown_background();
}
