//! Program 2: tools that wait, over HTTP on smol: `smolhttp ADDRESS [TOKEN]`.

use std::io;
use std::time::Duration;

use async_signal::{Signal, Signals};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, Service, tool};
use mcp_sansio_smol::http::{Access, EndpointConfig, HttpServer, HttpServerOptions, RequestHead};
use mcp_sansio_smol::{Work, channel};
use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::net::TcpStream;
use smol::stream::StreamExt;

struct State {
    work: Work<State>,
}

/// Waits, and tells how far it is
#[tool]
fn wait(
    state: &mut State,
    call: &mut Call<'_>,
    ms: u64,
    #[arguments(default = 5, minimum = 1)] steps: u64,
) -> HandlerResult {
    let waiting = state.work.future(move |job| async move {
        for step in 1..=steps {
            smol::Timer::after(Duration::from_millis(ms / steps)).await;
            job.progress(Progress::new(step).of(steps).message("waiting"));
            job.log(LoggingLevel::Debug, format!("step {step}"));
        }
        io::Result::Ok(format!("waited {ms} ms"))
    });
    waiting.answer(call)
}

/// Fetches a page of this machine
#[tool]
fn fetch(state: &mut State, call: &mut Call<'_>, port: u16, path: String) -> HandlerResult {
    let fetching = state.work.future(move |_| async move {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        io::Result::Ok(text)
    });
    fetching.answer(call)
}

/// Who you are
#[tool]
fn whoami(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let principal = call.principal().unwrap_or("nobody");
    call.text(principal)
}

const METADATA: Raw<'static> = Raw::constant(
    r#"{"resource":"http://localhost:8940/mcp","authorization_servers":["http://localhost:9000"],"bearer_methods_supported":["header"]}"#,
);
const CHALLENGE: &str =
    r#"Bearer resource_metadata="http://localhost:8940/.well-known/oauth-protected-resource/mcp", scope="notes""#;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or("127.0.0.1:8940".into());
    let secret = args.next();
    let authorize = |head: &RequestHead<'_>| match (&secret, head.bearer()) {
        (None, _) => Access::Granted { principal: None },
        (Some(secret), Some(given)) if given == secret => Access::Granted { principal: Some("alice") },
        _ => Access::Denied { status: 401, challenge: Some(CHALLENGE) },
    };
    let service = Service::new("smolhttp", "0.1.0")
        .tools(const { &[WAIT, FETCH, WHOAMI] })
        .feature(ServerCapability::Logging)
        .on_cancel(|state: &mut State, token| state.work.cancel(token));
    let options = HttpServerOptions::new().config(EndpointConfig::DEFAULT.resource_metadata(METADATA));
    smol::block_on(async {
        let (late, receiver) = channel();
        let mut state = State { work: Work::new(late, 100).spawner(|future| smol::spawn(future).detach()) };
        let server = HttpServer::bind(&*address)?.late(receiver).options(options).authorize(&authorize);
        let stopper = server.stopper();
        let mut signals = Signals::new([Signal::Int, Signal::Term])?;
        let stop = async move {
            while signals.next().await.is_some() {
                stopper.stop(); // the first lets calls finish
            }
        };
        smol::spawn(stop).detach();
        eprintln!("serving at http://{}/mcp", server.local_addr()?);
        server.serve(&service, &mut state).await
    })
}
