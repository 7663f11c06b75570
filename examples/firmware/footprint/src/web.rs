//! A client over HTTP that calls a tool again and again. The port is its only connection.

use mcp_sansio::client::views::{CallToolResult, View};
use mcp_sansio::client::{Client, ClientEvent, ClientHandle, ClientInfo, PendingRequest, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::memory::Store;
use mcp_sansio_http::client::{
    ExchangeSlot, HttpClient, HttpClientConfig, HttpHooks, HttpTransport, SocketAction, TransportKind,
};

use crate::{Port, Static};

/// The server's URL.
pub const URL: &str = "http://server.example/mcp?unit=7";

/// The room for the headers `Authorization` and `DPoP`.
const CREDENTIALS: usize = if cfg!(feature = "auth") { 1024 } else { 0 };

struct Memory {
    /// The URL and the nonce of the server.
    texts: [u8; 128],
    /// The head of an answer.
    input: [u8; 512],
    /// The longest message that is received.
    message: [u8; 512],
    /// The longest message that is sent, with its head.
    output: [u8; 1536 + CREDENTIALS],
    inbox: [u8; 512 + CREDENTIALS],
    outbox: [u8; 256],
    held: [u8; 128],
}

static MEMORY: Static<Memory> = Static::new(Memory {
    texts: [0; 128],
    input: [0; 512],
    message: [0; 512],
    output: [0; 1536 + CREDENTIALS],
    inbox: [0; 512 + CREDENTIALS],
    outbox: [0; 256],
    held: [0; 128],
});
static SLOTS: Static<[PendingRequest; 2]> = Static::new([PendingRequest::FREE; 2]);

static PROFILE: ClientInfo<'static> = ClientInfo::new("footprint", "1.0");

// No other URL than this one is asked, so proofs can be made for it.
const CONFIG: HttpClientConfig =
    HttpClientConfig::DEFAULT.transport(TransportKind::Streamable).listen(false).redirects(0);

const ARGUMENTS: Raw<'static> = Raw::constant(r#"{"a":40,"b":2}"#);

/// Runs the client until the input ends.
pub fn ask(hooks: &mut dyn HttpHooks) {
    let (Some(memory), Some(slots)) = (MEMORY.take(), SLOTS.take()) else { return };
    let Memory { texts, input, message, output, inbox, outbox, held } = memory;
    let client = Client::new(&PROFILE, slots).held(held).timeout(10_000);
    let mut connection = [ExchangeSlot::new(&mut input[..], &mut message[..], &mut output[..])];
    let Ok(remote) = HttpTransport::new(URL, CONFIG, &mut texts[..], Store::none(), &mut connection[..]) else {
        return;
    };
    let mut web = HttpClient::new(client, remote, &mut inbox[..], &mut outbox[..]);
    if cfg!(feature = "auth") {
        web.sign_heads();
    }
    web.client.connect();
    let mut port = Port::open();
    let mut right = 0;
    loop {
        // There is no clock here. With a clock, pass its time to `run`.
        port.timed(|| {
            let mut on_event =
                |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| call(event, handle, &mut right);
            while web.run(0, &mut on_event, hooks) {}
        });
        if let Some(action) = web.remote.next_action() {
            if let SocketAction::Connect(slot) = action {
                web.remote.connected(slot);
            }
            continue;
        }
        while !web.remote.pending(0).is_empty() {
            let sent = port.write(web.remote.pending(0));
            web.remote.sent(0, sent);
        }
        let (space, mut spare) = (web.remote.space(0), [0; 4]);
        // Without a connection there is no space. The end of the input must be found all the same.
        let Some(count) = port.read(if space.is_empty() { &mut spare } else { space }) else { break };
        web.remote.filled(0, count);
    }
    core::hint::black_box(right);
    port.close();
}

fn call(event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>, right: &mut u32) {
    match event {
        ClientEvent::Connected(_) => {}
        ClientEvent::Done { outcome: Ok(result), .. } => {
            let text = CallToolResult::of(result).ok().and_then(|result| result.text());
            *right += u32::from(text.is_some_and(|text| text.eq_str("42")));
        }
        _ => return,
    }
    let _ = handle.send(&Request::call("add").arguments(&ARGUMENTS));
}
