//! The client of the core over its transport, against a server that answers at once.

use super::*;
use mcp_sansio::client::{Client, ClientEvent as Told, ClientHandle, Request, TransportError};

/// A server of 2025-11-25, and the client that uses it.
struct Served {
    web: HttpClient<'static>,
    now: u64,
    told: Vec<String>,
    come: [String; 4],
    /// The answers to the next requests, besides the handshake.
    answers: Vec<String>,
    opened: usize,
}

impl Served {
    fn new() -> Served {
        let remote = HttpTransport::growing("http://h/mcp", HttpClientConfig::DEFAULT, 4).unwrap();
        let mut web = HttpClient::growing(Client::growing(&PROFILE).timeout(5_000), remote);
        web.client.connect_as(Revision::V2025_11_25);
        let mut served =
            Served { web, now: 0, told: Vec::new(), come: Default::default(), answers: Vec::new(), opened: 0 };
        served.turn();
        served
    }

    /// Returns the answer to a request.
    fn answer(&mut self, request: &str) -> String {
        if request.starts_with("GET ") {
            return "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n".to_string();
        }
        if request.contains("\"initialize\"") {
            self.opened += 1;
            let id = request.split("\"id\":").nth(1).unwrap().split([',', '}']).next().unwrap();
            let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            return json("200 OK", &format!("Mcp-Session-Id: s-{}\r\n", self.opened), &body);
        }
        if !request.contains("\"id\"") {
            return ACCEPTED.to_string();
        }
        let id = request.split("\"id\":").nth(1).unwrap().split([',', '}']).next().unwrap().to_string();
        self.answers.remove(0).replace("ID", &id)
    }

    fn turn(&mut self) {
        let now = self.now;
        loop {
            let told = &mut self.told;
            let mut handler = |event: Told<'_>, _: &mut ClientHandle<'_, '_>| told.push(format!("{event:?}"));
            while self.web.run(now, &mut handler, &mut ()) {}
            let mut any = false;
            while let Some(action) = self.web.remote.next_action() {
                if let SocketAction::Connect(slot) = action {
                    self.web.remote.connected(slot);
                }
                any = true;
            }
            for slot in 0..4 {
                let pending = String::from_utf8(self.web.remote.pending(slot).to_vec()).unwrap();
                self.web.remote.sent(slot, pending.len());
                self.come[slot].push_str(&pending);
                if pending.is_empty() {
                    continue;
                }
                any = true;
                let request = core::mem::take(&mut self.come[slot]);
                let answer = self.answer(&request);
                self.web.remote.space(slot)[..answer.len()].copy_from_slice(answer.as_bytes());
                self.web.remote.filled(slot, answer.len());
            }
            if !any {
                return;
            }
        }
    }

    /// Asks for the tools, and gets this answer. Returns `false` if the client does not send it any more.
    fn ask(&mut self, answer: &str) -> bool {
        self.answers.push(answer.to_string());
        self.web.client.now = self.now;
        let sent = self.web.handle().send(&Request::list_tools()).is_ok();
        self.turn();
        sent
    }
}

const GONE: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

fn tools() -> String {
    let body = r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[]}}"#;
    // The id has one digit.
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len() - 1)
}

/// A server that loses each session at once is given up. One that keeps it for a while, or answers in it, is not.
#[test]
fn sessions_that_are_lost_in_a_row() {
    let tools = tools();
    for (gap, answers, opened) in [
        (47_999, vec![GONE; 4], 4),
        (48_000, vec![GONE; 6], 7),
        (1, vec![GONE, GONE, GONE, &tools, GONE, GONE, GONE], 7),
        (1, vec![GONE, GONE, GONE, &tools, GONE, GONE, GONE, GONE], 7),
    ] {
        let mut served = Served::new();
        assert_eq!(served.opened, 1);
        for answer in &answers {
            served.now += gap;
            assert!(served.ask(answer), "{gap}");
        }
        assert_eq!(served.opened, opened, "{gap} {}", answers.len());
        // The last one of too many ended the connection.
        let ends = opened <= answers.iter().filter(|answer| **answer == GONE).count();
        served.now += 1_000;
        assert_eq!(served.ask(&tools), !ends, "{gap}");
    }
}

/// The last failure says what the server has said, and nothing of an earlier one.
#[test]
fn the_last_failure_explains_itself() {
    let failed =
        |status: &str, body: &str| format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut served = Served::new();
    assert!(served.web.fault().is_none() && served.web.explain(TransportError::Broken, "x").is_empty());
    assert!(served.ask(&failed("500 Oh", " at line 1\n")));
    let fault = served.web.fault().unwrap();
    assert_eq!((fault.detail, fault.request.is_some()), (" at line 1\n", true));
    assert!(matches!(fault.why, FailureReason::Status { code: 500, .. }));
    assert_eq!(served.web.explain(TransportError::Status(500), "a socket"), "at line 1");
    assert_eq!(served.web.explain(TransportError::Status(501), "a socket"), "");
    // A challenge that is given up keeps its text.
    let challenge = "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer x\r\nContent-Length: 0\r\n\r\n";
    assert!(served.ask(challenge));
    let fault = served.web.fault().unwrap();
    assert_eq!((fault.why, fault.detail), (FailureReason::GivenUp, "Bearer x"));
    // An empty body has no text.
    assert!(served.ask(&failed("200 OK", "")));
    let fault = served.web.fault().unwrap();
    assert_eq!((fault.why, fault.detail), (FailureReason::Unanswered, ""));
    let explained = served.web.explain(TransportError::Invalid, "a socket");
    assert_eq!(explained, FailureReason::Unanswered.to_string());
    // A long text is cut.
    assert!(served.ask(&failed("500 Oh", &"\u{e9}".repeat(200))));
    assert_eq!(served.web.fault().unwrap().detail, "\u{e9}".repeat(128));
    assert!(served.ask(&failed("500 Oh", &format!("x{}", "\u{e9}".repeat(200)))));
    assert_eq!(served.web.fault().unwrap().detail, format!("x{}", "\u{e9}".repeat(127)));
}
