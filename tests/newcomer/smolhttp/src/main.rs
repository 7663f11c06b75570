//! Program 2: tools that wait, over HTTP on smol: `smolhttp ADDRESS [TOKEN]`.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use async_signal::{Signal, Signals};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{Progress, RequestToken};
use mcp_sansio::service::{Call, HandlerResult, Service, tool};
use mcp_sansio_smol::http::{Access, EndpointConfig, HttpServer, HttpServerOptions, RequestHead};
use mcp_sansio_smol::{LateSender, channel};
use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::net::TcpStream;
use smol::stream::StreamExt;

struct State {
    late: LateSender<State>,
    /// Dropping one ends it.
    tasks: HashMap<RequestToken, smol::Task<()>>,
}

impl State {
    /// Answers a call with what comes of `work`.
    fn work<F>(&mut self, call: &mut Call<'_>, work: impl FnOnce(LateSender<State>, RequestToken) -> F) -> HandlerResult
    where
        F: Future<Output = io::Result<String>> + Send + 'static,
    {
        let (token, outcome) = call.later();
        let (late, work) = (self.late.clone(), work(self.late.clone(), token));
        let task = async move {
            let result = work.await;
            let answer = move |state: &mut State, call: &mut Call<'_>| {
                state.tasks.remove(&token);
                let text = call.ok(result)?;
                call.text(text)
            };
            let _ = late.answer(token, answer).await; // an error: the server has ended
        };
        self.tasks.insert(token, smol::spawn(task));
        outcome
    }
}

/// Waits, and tells how far it is
#[tool]
fn wait(
    state: &mut State,
    call: &mut Call<'_>,
    ms: u64,
    #[arguments(default = 5, minimum = 1)] steps: u64,
) -> HandlerResult {
    state.work(call, move |late, token| async move {
        for step in 1..=steps {
            smol::Timer::after(Duration::from_millis(ms / steps)).await;
            let _ = late.progress(token, Progress::new(step).of(steps).message("waiting")).await;
            let _ = late.log(token, LoggingLevel::Debug, format!("step {step}")).await;
        }
        Ok(format!("waited {ms} ms"))
    })
}

/// Fetches a page of this machine
#[tool]
fn fetch(state: &mut State, call: &mut Call<'_>, port: u16, path: String) -> HandlerResult {
    state.work(call, move |_, _| async move {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    })
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
    let secret = args.next().map(|secret| format!("Bearer {secret}"));
    let authorize = |head: &RequestHead<'_>| match (&secret, head.headers.get("authorization")) {
        (None, _) => Access::Granted { principal: None },
        (Some(secret), Some(given)) if given == secret.as_bytes() => Access::Granted { principal: Some("alice") },
        _ => Access::Denied { status: 401, challenge: Some(CHALLENGE) },
    };
    let service = Service::new("smolhttp", "0.1.0")
        .tools(const { &[WAIT, FETCH, WHOAMI] })
        .feature(ServerCapability::Logging)
        .on_cancel(|state: &mut State, token| drop(state.tasks.remove(&token)));
    let options = HttpServerOptions::new().config(EndpointConfig::DEFAULT.resource_metadata(METADATA));
    smol::block_on(async {
        let (late, receiver) = channel();
        let mut state = State { late, tasks: HashMap::new() };
        let server = HttpServer::bind(&*address)?.late(receiver).options(options).authorize(&authorize);
        let stopper = server.stopper();
        let mut signals = Signals::new([Signal::Int, Signal::Term])?;
        let stop = async move {
            signals.next().await;
            stopper.stop();
        };
        smol::spawn(stop).detach();
        eprintln!("serving at http://{}/mcp", server.local_addr()?);
        server.serve(&service, &mut state).await
    })
}
