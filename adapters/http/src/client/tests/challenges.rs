//! Authorization, and the caller's own headers.

use super::*;

// spec: A184
#[test]
fn challenges() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        let challenge = "WWW-Authenticate: Basic x\r\nWWW-Authenticate: Bearer scope=\"a\"\r\n";
        bench.send(&modern(1, "tools/call", ""));
        let first = bench.received(0);
        bench.reply(0, &json("401 Unauthorized", challenge, "{}"));
        assert_eq!(bench.told(), ["1 challenge 0 401 Basic x, Bearer scope=\"a\""]);
        assert!(!bench.remote.is_idle());
        bench.wait(100_000);
        bench.remote.set_header("Authorization", "Bearer t").unwrap();
        bench.remote.retry(0);
        bench.turn();
        assert_eq!(bench.received(0), first.replace("identity\r\n", "identity\r\nAuthorization: Bearer t\r\n"));
        bench.reply(0, &json("403 Forbidden", challenge, "{}"));
        assert_eq!(bench.told(), ["1 challenge 0 403 Basic x, Bearer scope=\"a\""]);
        bench.remote.give_up(0);
        bench.remote.give_up(0);
        bench.turn();
        assert_eq!(bench.told(), ["1 GivenUp "]);
        bench.remote.retry(0);
        bench.turn();
        assert!(bench.remote.is_idle() && bench.told().is_empty());
    });
}

/// A challenge has no deadline, for a person may need long. The caller may decide at once, before it asks for more events.
#[test]
fn a_challenge_is_answered_at_once_or_late() {
    for (late, again) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
        bench.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        let first = bench.received(0);
        let answer = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        bench.remote.space(0)[..answer.len()].copy_from_slice(answer.as_bytes());
        bench.remote.filled(0, answer.len());
        let told = bench.remote.next_event();
        assert!(matches!(told, Some(HttpClientEvent::Challenge { slot: 0, status: 401, .. })), "{told:?}");
        if late {
            bench.turn();
        }
        assert_eq!(bench.remote.next_deadline(), None);
        match again {
            true => bench.remote.retry(0),
            false => bench.remote.give_up(0),
        }
        bench.turn();
        if again {
            assert_eq!((bench.received(0), bench.told()), (first, vec![]));
        } else {
            assert_eq!(bench.told(), ["- GivenUp "]);
            assert!(bench.remote.is_idle());
        }
    }
}

/// Also in a session, and with each method. Another origin never gets them, since no redirect leads there.
// spec: A067 A068 A184 A185
#[test]
fn credentials_go_with_each_request() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        bench.remote.set_header("Authorization", "Bearer t").unwrap();
        let has_token = |request: String| request.matches("\r\nAuthorization: Bearer t\r\n").count() == 1;
        let get = open_session(bench, SESSION);
        assert!(has_token(bench.received(get)));
        for message in [legacy(1, "tools/call").as_str(), r#"{"jsonrpc":"2.0","method":"notifications/x"}"#] {
            bench.send(message);
            let slot = bench.find("POST");
            assert!(has_token(bench.received(slot)), "{message}");
            bench.reply(slot, "HTTP/1.1 307 Over there\r\nLocation: http://evil/mcp\r\nContent-Length: 0\r\n\r\n");
            assert!(bench.told().pop().unwrap().contains("Redirect(307)"));
        }
        bench.remote.end_session();
        bench.turn();
        let slot = bench.find("DELETE");
        assert!(has_token(bench.received(slot)));
        assert!(bench.sent.iter().flatten().all(Vec::is_empty), "nothing else was sent");
    });
}

#[test]
fn headers_of_the_callers_own() {
    let mut remote = HttpTransport::growing("http://h", HttpClientConfig::DEFAULT, 1).unwrap();
    for name in ["", "a b", "a:", "é"] {
        assert_eq!(remote.set_header(name, "x"), Err(HeaderError::Name), "{name}");
    }
    for name in ["Host", "content-length", "Mcp-Session-Id", "mcp-param-x"] {
        assert_eq!(remote.set_header(name, "x"), Err(HeaderError::Reserved), "{name}");
    }
    for value in [" a", "a\r\nb: c", "\0", "a\t"] {
        assert_eq!(remote.set_header("X", value), Err(HeaderError::Value), "{value:?}");
    }
    let long = "x".repeat(1 << 16);
    remote.set_header("X", "1").unwrap();
    assert_eq!(remote.set_header("x", &long), Err(HeaderError::Room));
    remote.set_header("x", "2").unwrap();
    remote.set_header("Y", "3").unwrap();
    remote.remove_header("y");
    assert_eq!(remote.origin.headers().collect::<Vec<_>>(), [b"x: 2"]);
}

/// A user takes minutes to log in. The probe does not count as unanswered then either.
#[test]
fn time_stands_still_while_somebody_gives_credentials() {
    use mcp_sansio::client::{ClientEvent as Told, ClientHandle, Request};
    struct Later;
    impl HttpHooks for Later {
        fn challenged(&mut self, _: &ChallengedRequest<'_>, _: &mut HeaderWriter<'_>) -> ChallengeAnswer {
            ChallengeAnswer::Later
        }
    }
    for probes in [true, false] {
        let mut web = web(&PROFILE);
        if probes {
            web.client.connect();
        } else {
            web.handle().send(&Request::list_tools()).unwrap();
        }
        let mut told = Vec::new();
        let mut handler = |event: Told<'_>, _: &mut ClientHandle<'_, '_>| told.push(format!("{event:?}"));
        while web.run(0, &mut handler, &mut Later) {}
        assert_eq!(web.remote.next_action(), Some(SocketAction::Connect(0)));
        web.remote.connected(0);
        let n = web.remote.pending(0).len();
        web.remote.sent(0, n);
        let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        web.remote.space(0)[..answer.len()].copy_from_slice(answer);
        web.remote.filled(0, answer.len());
        while web.run(2_000, &mut handler, &mut Later) {}
        assert_eq!(web.next_deadline(), None);
        while web.run(400_000, &mut handler, &mut Later) {}
        assert!(web.client.awaits(1), "{probes}");
        web.retry(0);
        while web.run(500_000, &mut handler, &mut Later) {}
        // A probe has half of the time.
        assert_eq!(web.next_deadline(), Some(if probes { 502_500 } else { 505_000 }), "it begins again");
        while web.run(505_000, &mut handler, &mut Later) {}
        assert_eq!(told.len(), usize::from(!probes), "{told:?}");
    }
}

/// With any number of challenged exchanges in a row.
// spec: A173
#[test]
fn challenges_are_bounded() {
    use mcp_sansio::client::{ClientEvent as Told, ClientHandle, Request};
    struct Always(u32);
    impl HttpHooks for Always {
        fn challenged(&mut self, _: &ChallengedRequest<'_>, _: &mut HeaderWriter<'_>) -> ChallengeAnswer {
            self.0 += 1;
            ChallengeAnswer::Retry
        }
    }
    let mut web = web(&PROFILE);
    web.handle().send(&Request::list_tools()).unwrap();
    web.handle().send(&Request::list_prompts()).unwrap();
    let (mut hooks, mut failed) = (Always(0), 0);
    let mut handler =
        |event: Told<'_>, _: &mut ClientHandle<'_, '_>| failed += u32::from(matches!(event, Told::Done { .. }));
    for _ in 0..100 {
        while web.run(0, &mut handler, &mut hooks) {}
        while let Some(action) = web.remote.next_action() {
            if let SocketAction::Connect(slot) = action {
                web.remote.connected(slot);
            }
        }
        for slot in 0..2 {
            let n = web.remote.pending(slot).len();
            web.remote.sent(slot, n);
            if n > 0 {
                let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
                web.remote.space(slot)[..answer.len()].copy_from_slice(answer);
                web.remote.filled(slot, answer.len());
            }
        }
    }
    assert_eq!((failed, hooks.0), (2, 2 * u32::from(CHALLENGES)));
}

/// Signs each request with its number, and keeps all requests and challenges.
#[derive(Default)]
struct Signs {
    requests: Vec<String>,
    challenges: Vec<String>,
    accepted: Vec<u32>,
}

impl HttpHooks for Signs {
    fn sending(&mut self, request: &OutgoingRequest<'_>, headers: &mut HeaderWriter<'_>) -> u32 {
        self.requests.push(format!("{} {} {}", request.method, request.url, request.dpop_nonce));
        let n = self.requests.len();
        assert_eq!(headers.set("Mcp-Session-Id", "x"), Err(HeaderError::Reserved));
        assert_eq!(headers.set("DPoP", "a\r\nHost: evil"), Err(HeaderError::Value));
        headers.set("Authorization", "DPoP t").unwrap();
        headers.set("DPoP", &format!("proof-{n}")).unwrap();
        n as u32
    }

    fn challenged(&mut self, challenge: &ChallengedRequest<'_>, _: &mut HeaderWriter<'_>) -> ChallengeAnswer {
        let ChallengedRequest { url, credentials, dpop_nonce, www_authenticate, operation, .. } = challenge;
        self.challenges.push(format!("{url} {credentials} {dpop_nonce} {operation} {www_authenticate}"));
        ChallengeAnswer::Retry
    }

    fn accepted(&mut self, credentials: u32) {
        self.accepted.push(credentials);
    }
}

/// A server that answers each request at once.
struct Signed {
    web: HttpClient<'static>,
    hooks: Signs,
    /// The unanswered requests of each connection.
    come: Vec<String>,
    connected: [bool; 2],
}

impl Signed {
    fn new(url: &str) -> Signed {
        let client = mcp_sansio::client::Client::growing(&PROFILE).timeout(5_000);
        let remote = HttpTransport::growing(url, HttpClientConfig::DEFAULT, 2).unwrap();
        let mut web = HttpClient::growing(client, remote);
        web.sign_heads();
        web.remote.set_header("Authorization", "for all").unwrap();
        Signed { web, hooks: Signs::default(), come: vec![String::new(); 2], connected: [false; 2] }
    }

    fn turn(&mut self) {
        use mcp_sansio::client::{ClientEvent, ClientHandle};
        let mut handler = |_: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {};
        loop {
            while self.web.run(0, &mut handler, &mut self.hooks) {}
            let mut any = false;
            while let Some(action) = self.web.remote.next_action() {
                let (slot, opens) = match action {
                    SocketAction::Connect(slot) => (slot, true),
                    SocketAction::Close(slot) => (slot, false),
                };
                self.connected[slot] = opens;
                if opens {
                    self.web.remote.connected(slot);
                }
                any = true;
            }
            for slot in 0..2 {
                let pending = String::from_utf8(self.web.remote.pending(slot).to_vec()).unwrap();
                self.web.remote.sent(slot, pending.len());
                any |= !pending.is_empty();
                self.come[slot].push_str(&pending);
            }
            if !any {
                return;
            }
        }
    }

    /// Returns the slot whose request begins with `start`, and the request.
    fn request(&mut self, start: &str) -> (usize, String) {
        self.turn();
        let slot = self.come.iter().position(|come| come.starts_with(start));
        let slot = slot.unwrap_or_else(|| panic!("no {start} in {:?}", self.come));
        (slot, core::mem::take(&mut self.come[slot]))
    }

    fn answer(&mut self, slot: usize, answer: &str) {
        self.web.remote.space(slot)[..answer.len()].copy_from_slice(answer.as_bytes());
        self.web.remote.filled(slot, answer.len());
        self.turn();
    }
}

/// Messages that are sent again get new headers, and GET and DELETE get theirs.
#[test]
fn each_request_is_signed() {
    use mcp_sansio::client::Request;
    let mut server = Signed::new("http://h/mcp?x=1");
    server.web.client.connect_as(Revision::V2025_11_25);
    let proofs = |request: &str| {
        assert_eq!(request.matches("\r\nAuthorization: ").count(), 1, "{request}");
        assert!(request.contains("\r\nAuthorization: DPoP t\r\n"), "{request}");
        assert_eq!(request.matches("\r\nDPoP: ").count(), 1, "{request}");
        request.split("\r\nDPoP: proof-").nth(1).unwrap().split("\r\n").next().unwrap().to_string()
    };
    let (slot, request) = server.request("POST /mcp?x=1 ");
    assert_eq!(proofs(&request), "1");
    server.answer(slot, "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"a, b\"\r\nDPoP-Nonce: n1\r\nwww-authenticate: DPoP error=\"use_dpop_nonce\"\r\nContent-Length: 0\r\n\r\n");
    let challenge = "http://h/mcp?x=1 1 n1 initialize Basic realm=\"a, b\", DPoP error=\"use_dpop_nonce\"";
    assert_eq!(server.hooks.challenges, [challenge]);
    let (slot, request) = server.request("POST /mcp?x=1 ");
    assert_eq!(proofs(&request), "2");
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
    server.answer(slot, &json("200 OK", "Mcp-Session-Id: s-1\r\nDPoP-Nonce: n2\r\n", hello));
    let (slot, request) = server.request("POST /mcp?x=1 ");
    assert!(request.contains("notifications/initialized") && proofs(&request) == "3", "{request}");
    server.answer(slot, ACCEPTED);
    let (stream, request) = server.request("GET /mcp?x=1 ");
    assert_eq!(proofs(&request), "4");
    server.answer(stream, "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
    server.web.handle().send(&Request::list_tools()).unwrap();
    let (slot, request) = server.request("POST /mcp?x=1 ");
    assert_eq!(proofs(&request), "5");
    server.answer(slot, &json("200 OK", "", r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#));
    // A kept connection that is gone: the message is sent again over another one.
    server.web.handle().send(&Request::list_tools()).unwrap();
    let (slot, request) = server.request("POST /mcp?x=1 ");
    assert_eq!(proofs(&request), "6");
    server.connected[slot] = false;
    server.web.remote.failed(slot);
    let (slot, request) = server.request("POST /mcp?x=1 ");
    assert_eq!(proofs(&request), "7");
    server.answer(slot, "HTTP/1.1 307 There\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n");
    let (slot, request) = server.request("POST /other ");
    assert_eq!(proofs(&request), "8");
    server.answer(slot, &json("200 OK", "", r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#));
    assert!(server.web.end());
    let (_, request) = server.request("DELETE /mcp?x=1 ");
    assert_eq!(proofs(&request), "9");
    assert_eq!(server.hooks.accepted, [2, 3, 4, 5, 7, 8], "neither the challenged one nor the lost one");
    let all = server.hooks.requests;
    assert_eq!(all[..3], ["POST http://h/mcp?x=1 ", "POST http://h/mcp?x=1 n1", "POST http://h/mcp?x=1 n2"]);
    assert_eq!(all[3], "GET http://h/mcp?x=1 n2");
    assert_eq!(all[7..], ["POST http://h/other n2", "DELETE http://h/mcp?x=1 n2"]);
}

/// Nothing goes out without its headers, also on a connection that is there.
#[test]
fn nothing_goes_out_unsigned() {
    use mcp_sansio::client::Request;
    let mut server = Signed::new("http://h/mcp");
    server.web.client.connect_as(Revision::V2026_07_28);
    server.web.handle().send(&Request::list_tools()).unwrap();
    let (slot, _) = server.request("POST");
    server
        .answer(slot, &json("200 OK", "", r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}"#));
    server.web.handle().send(&Request::list_prompts()).unwrap();
    assert!(server.connected[slot] && server.web.remote.pending(slot).is_empty());
    let (_, request) = server.request("POST");
    assert!(request.contains("\r\nDPoP: proof-2\r\n"), "{request}");
}

/// A cut URL names another resource.
#[test]
fn long_urls_are_whole_or_refused() {
    use mcp_sansio::client::Request;
    let path = "p".repeat(5_000);
    let mut server = Signed::new(&format!("http://h/{path}"));
    server.web.client.connect_as(Revision::V2026_07_28);
    server.web.handle().send(&Request::list_tools()).unwrap();
    let (slot, _) = server.request("POST");
    server.answer(slot, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(server.hooks.challenges, [format!("http://h/{path} 1  tools/list ")]);

    let client = mcp_sansio::client::Client::growing(&PROFILE);
    let remote = HttpTransport::growing(&format!("http://h/{path}"), HttpClientConfig::DEFAULT, 2).unwrap();
    let web = HttpClient::new(client, remote, vec![0; 1024].leak(), vec![0; 1024].leak());
    let mut server = Signed { web, ..Signed::new("http://h") };
    server.web.client.connect_as(Revision::V2026_07_28);
    server.web.handle().send(&Request::list_tools()).unwrap();
    let (slot, _) = server.request("POST");
    server.answer(slot, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
    assert!(server.hooks.challenges.is_empty());
    assert_eq!(server.web.fault().unwrap().why, FailureReason::GivenUp);
}
