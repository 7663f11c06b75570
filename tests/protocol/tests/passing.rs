//! What a server without a service needs that passes messages on: it changes as little as it can.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::rpc::MessageShape;
use mcp_sansio::server::{
    IncomingRequest, MessageLimits, RespondError, Server, ServerEvent, ServerInfo, ServerOptions,
};
use mcp_sansio::sink::LineSink;

const OPENING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

#[derive(Default)]
struct Front {
    out: LineSink<Vec<u8>>,
    /// Settings are not the server's to answer.
    passes: bool,
}

impl Front {
    /// Reads a message, looks at it, and gives it to the server unless it is a response.
    fn say<'a>(
        &mut self,
        server: &mut Server<'_>,
        line: &'a str,
        request: &mut IncomingRequest<'a>,
    ) -> Option<ServerEvent<'a>> {
        let info = ServerInfo::new("front", "1").feature(ServerCapability::Tools).feature(ServerCapability::Subscribe);
        let info = info.feature(ServerCapability::Logging);
        let options = ServerOptions::new(&info);
        request.read(line.as_bytes()).unwrap();
        match request.shape() {
            MessageShape::Response { .. } => None,
            _ if self.passes && request.method.is_setting() => {
                let token = server.admit_own(&options, request, &mut self.out).unwrap()?;
                Some(ServerEvent::Request { token })
            }
            _ => server.handle_read(&options, request, &mut self.out).unwrap(),
        }
    }

    fn said(&mut self) -> String {
        let said = String::from_utf8(self.out.pending().to_vec()).unwrap();
        self.out.sent(said.len());
        said
    }
}

#[test]
fn requests_of_any_method_and_their_responses() {
    let (mut server, mut front) = (Server::growing(MessageLimits::default()), Front::default());
    let params = Some(Raw::constant(r#"{"b":1.0,"a":[ ]}"#));
    assert_eq!(server.send_request("x/y", params, &mut front.out), Err(RespondError::NotInitialized));
    let mut request = IncomingRequest::empty();
    front.say(&mut server, OPENING, &mut request);
    front.said();
    let id = server.send_request("x/y", params, &mut front.out).unwrap();
    assert_eq!(
        front.said(),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"x/y\",\"params\":{{\"b\":1.0,\"a\":[ ]}}}}\n")
    );
    let response = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    assert!(front.say(&mut server, &response, &mut request).is_none());
    assert_eq!(request.envelope.result.map(|result| result.as_str()), Some("{}"));
    assert_eq!(server.send_request("x/y", None, &mut front.out), Ok(id + 1));
    server.notify("n", None, &mut front.out).unwrap();
    assert!(front.said().ends_with("{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n"));
}

#[test]
fn errors_as_they_are() {
    let (mut server, mut front) = (Server::growing(MessageLimits::default()), Front::default());
    let mut request = IncomingRequest::empty();
    front.say(&mut server, OPENING, &mut request);
    front.said();
    let call = r#"{"jsonrpc":"2.0","id":"a\u0062","method":"tools/call","params":{"name":"x"}}"#;
    let Some(ServerEvent::Request { token }) = front.say(&mut server, call, &mut request) else { panic!() };
    let error = Raw::constant(r#"{"message":"\u00e9","code":-1,"extra":{}}"#);
    server.fail_raw(token, -1, error, &mut front.out).unwrap();
    assert_eq!(front.said(), format!("{{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0062\",\"error\":{error}}}\n"));
    assert_eq!(server.fail_raw(token, -1, error, &mut front.out), Err(RespondError::Stale));
}

#[test]
fn the_resources_of_all_subscriptions() {
    let (mut server, mut front) = (Server::growing(MessageLimits::default()), Front::default());
    let mut request = IncomingRequest::empty();
    let listen = r#"{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["r://b","r://c"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    front.say(&mut server, listen, &mut request);
    front.say(&mut server, OPENING, &mut request);
    front.say(
        &mut server,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"r://a"}}"#,
        &mut request,
    );
    let mut uris: Vec<_> = server.subscribed_uris().collect();
    uris.sort_unstable();
    assert_eq!(uris, ["r://a", "r://b", "r://c"], "{}", front.said());
}

/// What the client sets counts when the program says so, and the answer is the program's.
#[test]
fn settings_that_the_program_answers() {
    let (mut server, mut front) =
        (Server::growing(MessageLimits::default()), Front { passes: true, ..Front::default() });
    let mut request = IncomingRequest::empty();
    let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"r://a"}}"#;
    assert!(front.say(&mut server, subscribe, &mut request).is_none());
    assert!(front.said().contains("Not opened"));
    front.say(&mut server, OPENING, &mut request);
    front.said();
    let Some(ServerEvent::Request { token }) = front.say(&mut server, subscribe, &mut request) else { panic!() };
    assert!(server.peer.is_initialized() && server.subscribed_uris().next().is_none());
    assert!(front.say(&mut server, subscribe, &mut request).is_none());
    assert!(front.said().contains("the id is in use"));
    assert!(server.set_subscribed("r://a", true) && server.set_subscribed("r://a", true));
    server.respond(token, Raw::constant(r#"{"_meta":{"x":1.0}}"#), &mut front.out).unwrap();
    assert_eq!(front.said(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"_meta\":{\"x\":1.0}}}\n");
    assert_eq!(server.subscribed_uris().collect::<Vec<_>>(), ["r://a"]);
    let level = r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"of another protocol"}}"#;
    let Some(ServerEvent::Request { token }) = front.say(&mut server, level, &mut request) else { panic!() };
    server.fail_raw(token, -1, Raw::constant(r#"{"code":-1,"message":"no"}"#), &mut front.out).unwrap();
    assert_eq!(server.peer.log_level, LoggingLevel::Info);
    server.peer.log_level = LoggingLevel::Debug;
    assert_eq!(server.peer.log_level, LoggingLevel::Debug);
    assert!(server.set_subscribed("r://a", false) && server.subscribed_uris().next().is_none());
    let mut small = Server::new(mcp_sansio::memory::Slots::growing(1));
    assert!(!small.set_subscribed("r://a", true));
}
