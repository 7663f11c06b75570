//! The five tools over HTTP for clients with an access token: each request is checked before its body is read.

use core::cell::RefCell;

use mcp_sansio::sink::SliceStorage;
use mcp_sansio_auth::UnixSeconds;
use mcp_sansio_auth::dpop::{ProofError, ReplayEntry, ReplayTable};
use mcp_sansio_auth::jose::{Jwks, Verifier};
use mcp_sansio_auth::resource_server::{PresentedToken, ResourceMetadata, ResourceServer, TokenError, TrustedIssuer};
use mcp_sansio_http::endpoint::{Access, App, Endpoint, EndpointConfig, Grant, Refusal, RequestHead, Session, Stream};
use mcp_sansio_http::host::{BodyBuffer, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::ConnectionLimits;

use crate::tools::RAW;
use crate::{Device, Port, Static};

const RESOURCE: &str = "http://board.example/mcp";
const METADATA_URL: &str = "http://board.example/.well-known/oauth-protected-resource/mcp";
const ISSUER: &str = "https://as.example";
/// The keys of the issuer. A real board has them from production, or fetches them.
const KEYS: &[u8] = br#"{"keys":[{"crv":"P-256","kty":"EC","x":"cTX6T9k6Cdzpi79oG0v89Q58DWNU5ir7C_8qNClheGU","y":"7UwfAt25Aj7lalV-UV1qncZsEfIglg3llDNN9Yh3ZyQ"}]}"#;
const SCOPES: [&str; 1] = ["tools"];

/// The time. A real board has a clock, or asks for the time (SNTP).
const NOW: UnixSeconds = 1_700_000_000;

struct Memory {
    /// The longest request: a token has some 500 bytes, a proof some 650.
    input: [u8; 3072],
    /// A refusal has the challenge in its head.
    output: [u8; 1536],
    body: [u8; 512],
    scratch: [u8; 64],
    log: [u8; 1024],
    metadata: [u8; 256],
    /// A token and a proof, decoded.
    token: [u8; 512],
    proof: [u8; 640],
    /// Requests with proofs in ten minutes.
    proofs: [ReplayEntry; 64],
}

/// The memory for the checks of one request, and the proofs that were used.
struct Desk {
    token: &'static mut [u8],
    proof: &'static mut [u8],
    proofs: ReplayTable<'static>,
}

static MEMORY: Static<Memory> = Static::new(Memory {
    input: [0; 3072],
    output: [0; 1536],
    body: [0; 512],
    scratch: [0; 64],
    log: [0; 1024],
    metadata: [0; 256],
    token: [0; 512],
    proof: [0; 640],
    proofs: [ReplayEntry::FREE; 64],
});
static SESSIONS: Static<[Session; 2]> = Static::new([Session::FREE; 2]);
static STREAMS: Static<[Stream; 2]> = Static::new([Stream::FREE; 2]);

const LIMITS: ConnectionLimits = ConnectionLimits::DEFAULT.line(256).head(2048).body(1024);

/// Runs the server until the input ends.
pub fn serve(verifier: &dyn Verifier) {
    let Some(memory) = MEMORY.take() else { return };
    let Memory { input, output, body, scratch, log, metadata, token, proof, proofs } = memory;
    let (Some(sessions), Some(streams)) = (SESSIONS.take(), STREAMS.take()) else { return };
    let written = ResourceMetadata::new(RESOURCE, &[ISSUER]).scopes(&SCOPES).write(&mut metadata[..]);
    let (Ok(metadata), Ok(keys)) = (written, Jwks::parse(KEYS)) else { return };
    let (issuers, verifiers) = ([TrustedIssuer::new(ISSUER, keys)], [verifier]);
    let rules = ResourceServer::new(RESOURCE, &issuers, &verifiers).metadata_url(METADATA_URL);
    let desk = RefCell::new(Desk { token, proof, proofs: ReplayTable::new(&mut proofs[..]) });
    let authorize = |head: &RequestHead<'_>| authorize(head, &rules, &desk);

    let config = EndpointConfig::DEFAULT.resource_metadata(metadata);
    let server = crate::server().scratch(scratch);
    let mut endpoint = Endpoint::new(config, server, &mut sessions[..], &mut streams[..], &mut log[..]);
    let mut http = HttpConnection::<20>::new(&mut input[..], &mut output[..], LIMITS);
    let mut body = BodyBuffer::new(SliceStorage::new(body));
    let mut device = Device::default();
    let mut app = App::new(&RAW, &mut device).authorize(&authorize);
    let mut port = Port::open();
    while let Some(count) = port.read(http.space()) {
        http.connection.filled(count);
        let mut wait = WaitFor::Read;
        port.timed(|| {
            let mut host = ServeContext { endpoint: &mut endpoint, app: &mut app, body: &mut body, now: 0 };
            wait = http.serve(&mut host, &mut |bytes| bytes.fill(7));
        });
        while http.connection.has_pending() {
            let sent = port.write(http.connection.pending());
            http.connection.sent(sent);
        }
        if wait == WaitFor::Close {
            http.leave(&mut ServeContext { endpoint: &mut endpoint, app: &mut app, body: &mut body, now: 0 });
            http.reset();
        }
    }
    port.close();
}

/// Decides about a request by its head.
fn authorize<'a>(head: &RequestHead<'_>, rules: &ResourceServer<'_>, desk: &RefCell<Desk>) -> Access<'a> {
    let error = match check(head, rules, desk) {
        Ok(grant) => return Access::GrantedTo(grant),
        Err(error) => error,
    };
    let refusal = Refusal::new(error.status()).header("WWW-Authenticate", rules.challenge(error, &SCOPES));
    refusal.map_or(Access::Denied { status: error.status(), challenge: None }, Access::RefusedWith)
}

fn check(head: &RequestHead<'_>, rules: &ResourceServer<'_>, desk: &RefCell<Desk>) -> Result<Grant, TokenError> {
    let mut desk = desk.try_borrow_mut().map_err(|_| ProofError::TableFull)?;
    let Desk { token, proof, proofs } = &mut *desk;
    let presented = PresentedToken::read(head)?;
    let token = rules.check_jwt(presented.token, NOW, token)?;
    rules.check_possession(&presented, &token, head.method, NOW, proofs, proof)?;
    rules.require(&token, &SCOPES)?;
    let principal = token.principal().ok_or(TokenError::Claims)?;
    Grant::to(Some(principal.as_str())).map_err(|_| TokenError::Claims)
}
