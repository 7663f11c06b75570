//! The HTTP client against the HTTP server, byte by byte and in larger pieces: legacy, modern, and the old transport.
use crate::common;

use common::{World, everything};
use mcp_sansio::json::Raw;
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::server::{MessageLimits as ServerLimits, Server};
use mcp_sansio::service::Service;
use mcp_sansio::sink::{MessageHead, RequestInfo, Writer, whole};
use mcp_sansio_http::client::{
    HttpClientConfig as ClientConfig, HttpClientEvent, HttpTransport, ListenState, SocketAction, TransportKind,
};
use mcp_sansio_http::endpoint::{App, Endpoint, EndpointConfig, EndpointLimits};
use mcp_sansio_http::host::{BodyBuffer, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::ConnectionLimits;

/// A server and a client with a network in memory.
struct Net {
    endpoint: Endpoint<'static>,
    service: Service<'static, World>,
    world: World,
    remote: HttpTransport<'static>,
    links: [Option<HttpConnection<'static>>; 4],
    told: Vec<String>,
    /// The limit of bytes that a connection carries at once.
    cut: usize,
    now: u64,
    seeds: u8,
}

impl Net {
    fn new(url: &str, transport: TransportKind, cut: usize) -> Net {
        Net {
            endpoint: Endpoint::growing(
                EndpointConfig::DEFAULT,
                Server::growing(ServerLimits::default()),
                EndpointLimits::default(),
            ),
            service: everything::service(),
            world: World::default(),
            remote: HttpTransport::growing(url, ClientConfig::DEFAULT.transport(transport), 4).unwrap(),
            links: [const { None }; 4],
            told: Vec::new(),
            cut,
            now: 0,
            seeds: 0,
        }
    }

    fn host(&mut self, at: usize, leave: bool) -> WaitFor {
        let Some(link) = &mut self.links[at] else { return WaitFor::Read };
        let mut app = App::new(&self.service, &mut self.world);
        let mut body = BodyBuffer::new(Vec::new());
        let mut host = ServeContext { endpoint: &mut self.endpoint, app: &mut app, body: &mut body, now: self.now };
        if leave {
            link.leave(&mut host);
            self.links[at] = None;
            return WaitFor::Close;
        }
        let seeds = &mut self.seeds;
        link.serve(&mut host, &mut |bytes| {
            *seeds += 1;
            bytes.fill(*seeds);
        })
    }

    /// Runs until nothing happens any more.
    fn run(&mut self) {
        for _ in 0..1_000_000 {
            let mut any = false;
            while let Some(event) = self.remote.next_event() {
                any = true;
                self.told.push(match event {
                    HttpClientEvent::Message { request, bytes } => {
                        format!("{request:?} {}", String::from_utf8_lossy(bytes))
                    }
                    other => format!("{other:?}"),
                });
            }
            while let Some(action) = self.remote.next_action() {
                any = true;
                match action {
                    SocketAction::Connect(at) => {
                        self.links[at] = Some(HttpConnection::new(
                            vec![0; 8192].leak(),
                            vec![0; 8192].leak(),
                            ConnectionLimits::default(),
                        ));
                        self.remote.connected(at);
                    }
                    SocketAction::Close(at) => drop(self.host(at, true)),
                }
            }
            for at in 0..4 {
                any |= self.carry(at);
            }
            if !any {
                return;
            }
        }
        panic!("it spins");
    }

    /// Carries bytes both ways. Returns whether there were any.
    fn carry(&mut self, at: usize) -> bool {
        let Some(link) = &mut self.links[at] else { return false };
        let up = self.remote.pending(at);
        let space = link.space();
        let n = up.len().min(space.len()).min(self.cut);
        space[..n].copy_from_slice(&up[..n]);
        link.connection.filled(n);
        self.remote.sent(at, n);
        let wait = self.host(at, false);
        let Some(link) = &mut self.links[at] else { return false };
        let space = self.remote.space(at);
        let down = link.connection.pending();
        let m = down.len().min(space.len()).min(self.cut);
        space[..m].copy_from_slice(&down[..m]);
        link.connection.sent(m);
        self.remote.filled(at, m);
        if matches!(wait, WaitFor::Close | WaitFor::Shut)
            && !self.links[at].as_ref().is_some_and(|link| link.connection.has_pending())
        {
            let _ = self.host(at, true);
            self.remote.closed(at);
            return true;
        }
        n + m > 0
    }

    fn send(&mut self, head: MessageHead<'_>, message: &str) {
        whole(&mut self.remote, head, |out| out.put(message.as_bytes())).unwrap();
        self.run();
    }

    /// Sends a request. Returns the messages before its answer, and the answer.
    fn ask(&mut self, message: &str) -> Vec<String> {
        let envelope = Envelope::parse(message.as_bytes()).unwrap();
        let plain =
            |value: Option<Raw<'_>>| value.and_then(|value| value.text()).map_or(String::new(), |t| t.to_string());
        let MessageShape::Request { id, .. } = envelope.shape() else { panic!("no request: {message}") };
        let text = |member: &str, out: &mut Writer<'_>| {
            let value = envelope.params.and_then(|params| params.get(member)).filter(|value| value.text().is_some());
            value.map(|value| out.put(value.as_bytes())).is_some()
        };
        let (method, version) = (plain(envelope.method), plain(envelope.meta.version));
        let head = RequestInfo { id: id.u64().unwrap(), method: &method, version: &version, text: &text };
        self.send(MessageHead::Request(&head), message);
        std::mem::take(&mut self.told)
    }
}

fn legacy(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
}

fn modern(id: u64, method: &str, params: &str) -> String {
    let meta = r#""_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    legacy(id, method, &format!("{params}{meta}"))
}

const CUTS: [usize; 5] = [1, 2, 7, 100, usize::MAX];

fn initialize(revision: &str) -> String {
    let client = r#""capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}"#;
    legacy(0, "initialize", &format!(r#""protocolVersion":"{revision}",{client}"#))
}

// spec: T066 T159 T162
#[test]
fn modern_calls() {
    for cut in CUTS {
        let mut net = Net::new("http://localhost/mcp", TransportKind::Detect, cut);
        let told = net.ask(&modern(1, "tools/list", ""));
        assert!(told.len() == 1 && told[0].starts_with("Some(1) {") && told[0].contains("\"tools\":["), "{told:?}");
        let told = net.ask(&modern(2, "tools/call", r#""name":"echo","arguments":{"text":"é"},"#));
        assert!(told.len() == 1 && told[0].contains("é"), "{told:?}");
        let told = net.ask(&modern(3, "tools/call", r#""name":"chatty","arguments":{},"#));
        assert!(told.len() > 1 && told.iter().all(|told| told.starts_with("Some(3) {")), "{told:?}");
        let told = net.ask(&modern(4, "tools/call", r#""name":"nö","arguments":{},"#));
        assert!(told[0].contains("-32602"), "{told:?}");
        let told = net.ask(&modern(5, "no/such", ""));
        assert!(told[0].starts_with("Some(5) {") && told[0].contains("-32601"), "{told:?}");
        // A stream that stays open until the client closes it, beside others.
        let told = net.ask(&modern(6, "subscriptions/listen", r#""notifications":{"toolsListChanged":true},"#));
        assert!(told[0].contains("subscriptions/acknowledged"), "{told:?}");
        assert_eq!(net.ask(&modern(7, "tools/list", "")).len(), 1);
        assert!(net.remote.abandon(6));
        net.run();
        assert_eq!(net.endpoint.load(), (0, 0, 0));
        assert!(net.told.is_empty() && net.remote.is_idle());
    }
}

#[test]
fn legacy_sessions() {
    for (revision, cut) in
        ["2025-03-26", "2025-06-18", "2025-11-25"].into_iter().flat_map(|revision| CUTS.map(|cut| (revision, cut)))
    {
        let mut net = Net::new("http://localhost/mcp", TransportKind::Detect, cut);
        let told = net.ask(&initialize(revision));
        assert!(told.len() == 1 && told[0].contains(revision), "{told:?}");
        assert!(net.remote.session().is_some());
        net.send(MessageHead::Initialized, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(net.remote.listening(), ListenState::Open);
        let told = net.ask(&legacy(1, "tools/call", r#""name":"chatty","arguments":{},"_meta":{"progressToken":7}"#));
        assert!(told.len() > 1 && told.iter().all(|told| told.starts_with("Some(1) {")), "{told:?}");
        let told = net.ask(&legacy(2, "tools/call", r#""name":"roots","arguments":{}"#));
        assert!(told.len() == 1 && told[0].contains("roots/list"), "{told:?}");
        let asked: serde_json::Value = serde_json::from_str(told[0].split_once(' ').unwrap().1).unwrap();
        net.send(MessageHead::Result, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, asked["id"]));
        assert!(net.told.last().is_some_and(|told| told.starts_with("Some(2) ")), "{:?}", net.told);
        net.told.clear();
        assert!(net.remote.end_session());
        net.run();
        assert_eq!(net.told, ["Ended"]);
        assert_eq!(net.endpoint.load(), (0, 0, 0));
    }
}

// spec: T055
#[test]
fn a_session_that_the_server_forgot() {
    let mut net = Net::new("http://localhost/mcp", TransportKind::Detect, usize::MAX);
    net.ask(&initialize("2025-11-25"));
    net.endpoint =
        Endpoint::growing(EndpointConfig::DEFAULT, Server::growing(ServerLimits::default()), EndpointLimits::default());
    let told = net.ask(&legacy(1, "ping", ""));
    assert_eq!(told, [r#"Failed { request: Some(1), why: SessionLost, detail: "" }"#]);
    assert_eq!(net.ask(&initialize("2025-11-25")).len(), 1);
    assert_eq!(net.ask(&legacy(2, "ping", "")), [r#"Some(2) {"jsonrpc":"2.0","id":2,"result":{}}"#]);
}

#[test]
fn the_old_transport() {
    for cut in CUTS {
        // With `Detect` the server refuses a POST to the URL of the stream, and the client takes the old transport.
        for transport in [TransportKind::Sse, TransportKind::Detect] {
            let mut net = Net::new("http://localhost/sse", transport, cut);
            let told = net.ask(&initialize("2024-11-05"));
            assert!(told.len() == 1 && told[0].contains("2024-11-05"), "{told:?}");
            assert!(net.remote.is_old());
            net.send(MessageHead::Initialized, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            assert_eq!(net.ask(&legacy(2, "ping", "")), [r#"Some(2) {"jsonrpc":"2.0","id":2,"result":{}}"#]);
            net.remote.shut_down();
            net.run();
            assert!(net.remote.is_idle() && net.links.iter().all(Option::is_none));
        }
    }
}
