//! An MCP server inside a hyper server, which also has a page of its own beside `/mcp`.
//!
//! Run it: `cargo run -p mcp-sansio-hyper-example -- 127.0.0.1:8931`. The same mapping fits other HTTP servers:
//! pass each request to `Endpoint::request`, pull the body of a stream, detach a stream whose body is dropped, and
//! pass the time.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::http::response::Builder;
use hyper::{Request, Response, Version, server::conn::http1, service::service_fn};
use mcp_sansio::server::{MessageLimits, Millis, Progress, RequestToken, Server};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_http::endpoint::{
    self, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, ResponseBody, STREAM_HEADERS, StreamId,
    StreamStatus,
};
use mcp_sansio_http::host;
use smol::{Async, Timer, stream::StreamExt};
use smol_hyper::rt::FuturesIo;

struct Shared(Mutex<Mcp>);

/// The MCP endpoint with its state, behind one lock.
struct Mcp {
    endpoint: Endpoint<'static>,
    service: Service<'static, State>,
    state: State,
    /// The wakers of event streams that have nothing to send.
    waiting: HashMap<StreamId, Waker>,
    started: Instant,
}

/// The state of the handlers: threads answer through it.
struct State(Weak<Shared>);

static TOOLS: [Tool<State>; 1] = [Tool::new("count", "Counts to three, which takes a moment", count)];

fn count(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    smol::spawn(counting(state.0.clone(), token)).detach();
    outcome
}

async fn counting(mcp: Weak<Shared>, token: RequestToken) {
    let Some(mcp) = mcp.upgrade() else { return };
    for n in 1..=3 {
        Timer::after(Duration::from_millis(100)).await;
        mcp.with(|endpoint, _, _| endpoint.progress(token, Progress::new(n).of(3)));
    }
    // An error means that the client is gone.
    let _ = mcp.with(|endpoint, app, _| endpoint.answer(app, token, |_, call| call.text("three")));
}

impl Shared {
    /// Runs `act` with the endpoint, then wakes the streams that have events to send.
    fn with<T>(&self, act: impl FnOnce(&mut Endpoint<'static>, &mut App<'_, State>, Millis) -> T) -> T {
        let mut mcp = self.0.lock().expect("nothing has panicked");
        let Mcp { endpoint, service, state, waiting, started } = &mut *mcp;
        let done = act(endpoint, &mut App::new(service, state), started.elapsed().as_millis() as Millis);
        endpoint.ready().filter_map(|stream| waiting.remove(&stream)).for_each(Waker::wake);
        done
    }
}

/// An event stream as the body of a response.
struct Events(Arc<Shared>, StreamId);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Stored before the pull: an event that arrives in between wakes the stream.
        self.0.0.lock().expect("nothing has panicked").waiting.insert(self.1, cx.waker().clone());
        let mut events = host::BodyBuffer::new(Vec::new());
        let pulled = self.0.with(|endpoint, app, now| endpoint.pull(self.1, app, now, &mut events));
        match (events.into_inner(), pulled) {
            (events, _) if !events.is_empty() => Poll::Ready(Some(Ok(Frame::data(events.into())))),
            (_, StreamStatus::End | StreamStatus::Stale) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.0.0.lock().expect("nothing has panicked").waiting.remove(&self.1);
        self.0.with(|endpoint, app, now| endpoint.detach(self.1, app, now));
    }
}

type Reply = Response<Either<Full<Bytes>, Events>>;

/// Builds a response with its status and headers.
fn begin(response: &endpoint::EndpointResponse<'_>) -> Builder {
    let mut builder = Some(Response::builder().status(response.status));
    response.headers(&mut |name, value| builder = builder.take().map(|builder| builder.header(name, value)));
    builder.unwrap_or_default()
}

fn status(status: u16) -> Result<Reply, hyper::http::Error> {
    Response::builder().status(status).body(Either::Left(Full::default()))
}

async fn handle(mcp: Arc<Shared>, request: Request<Incoming>) -> Result<Reply, hyper::http::Error> {
    if request.uri().path() == "/" {
        return Response::builder().body(Either::Left("This is not all there is: see /mcp\n".into()));
    }
    let (head, body) = request.into_parts();
    let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    // If the target is absolute, its authority replaces `Host`. hyper leaves this to the application.
    let fields: Vec<_> = match head.uri.authority() {
        Some(authority) => {
            let others = headers.filter(|(name, _)| *name != "host");
            others.chain([("host", authority.as_str().as_bytes())]).collect()
        }
        None => headers.collect(),
    };
    let hosts = fields.iter().filter(|(name, _)| *name == "host").count();
    if hosts > 1 || (hosts == 0 && head.version == Version::HTTP_11) {
        return status(400);
    }
    let fields = fields.as_slice();
    let asked = || RequestHead::new(head.method.as_str(), head.uri.path(), head.uri.query(), &fields);
    let mut json = host::BodyBuffer::new(Vec::new());
    // Checked before the body is read. hyper closes the connection if the body is not read.
    let admitted =
        mcp.with(|endpoint, app, _| endpoint.admit(app, &asked(), &mut json).map_err(|refusal| begin(&refusal)));
    let admission = match admitted {
        Ok(admission) => admission,
        Err(builder) => return builder.body(Either::Left(json.into_inner().into())),
    };
    let Ok(body) = Limited::new(body, MessageLimits::default().message).collect().await else { return status(413) };
    let mut random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the system has random bytes");
    let (mut builder, content) = mcp.with(|endpoint, app, now| {
        let asked = asked().admitted(&admission);
        let response = endpoint.request(app, &asked, &body.to_bytes(), now, &mut random, &mut json);
        (begin(&response), response.content)
    });
    let ResponseBody::Stream(stream) = content else { return builder.body(Either::Left(json.into_inner().into())) };
    for (name, value) in STREAM_HEADERS {
        builder = builder.header(name, value);
    }
    builder.body(Either::Right(Events(mcp, stream)))
}

fn main() -> std::io::Result<()> {
    let address: SocketAddr = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).expect("usage: ADDRESS:PORT");
    let mcp = Arc::new_cyclic(|mcp| {
        Shared(Mutex::new(Mcp {
            endpoint: Endpoint::growing(
                EndpointConfig::DEFAULT,
                Server::growing(MessageLimits::default()),
                EndpointLimits::default(),
            ),
            service: Service::new("counter", "1.0").tools(&TOOLS),
            state: State(mcp.clone()),
            waiting: HashMap::new(),
            started: Instant::now(),
        }))
    });
    smol::block_on(async {
        let listener = Async::<TcpListener>::bind(address)?;
        eprintln!("serving at http://{}/mcp", listener.get_ref().local_addr()?);
        let clock = Arc::clone(&mcp);
        let tick = move |_| clock.with(|endpoint, app, now| endpoint.expire(app, now));
        smol::spawn(Timer::interval(Duration::from_secs(1)).for_each(tick)).detach();
        loop {
            let (socket, _) = listener.accept().await?;
            let mcp = Arc::clone(&mcp);
            let service = service_fn(move |request| handle(Arc::clone(&mcp), request));
            let connection = http1::Builder::new().serve_connection(FuturesIo::new(socket), service);
            // An error ends only this connection.
            smol::spawn(async { drop(connection.await) }).detach();
        }
    })
}
