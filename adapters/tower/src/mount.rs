//! The service: a request becomes a response.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use mcp_sansio::service::Service;
use mcp_sansio_http::endpoint::{App, EndpointResponse, Grant, RequestHead, ResponseBody, STREAM_HEADERS};
use mcp_sansio_http::host::BodyBuffer;
use tower_service::Service as TowerService;

use crate::body::Body;
use crate::handle::Handle;
use crate::keeper::Keeper;
use crate::options::MountOptions;
use crate::request::{self, RequestParts};
use crate::shared::{LateBell, Shared};

/// The future of a response. Dropping it before it is ready gives the request up: nothing of it has run.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// An MCP server as a [`tower_service::Service`] of HTTP requests. Clones share one endpoint and one state.
///
/// Handlers run one after the other, under one lock and on the thread that polls the request: one that takes long, or waits for
/// a disk, returns with [`later`](mcp_sansio::service::RequestContext::later), and a task or a thread answers with a
/// [`LateSender`](crate::LateSender). A handler that panics ends the mount: its streams end, and each later request gets 500.
pub struct Mcp<S: 'static> {
    shared: Arc<Shared<S>>,
    prefix: Arc<str>,
}

impl<S: Send> Mcp<S> {
    /// Makes a server of a service, the state of its handlers, and options.
    pub fn new(service: Service<'static, S>, state: S, options: MountOptions<S>) -> Self {
        let shared = Arc::new_cyclic(|mount| Shared::new(service, state, options, LateBell::waker(Weak::clone(mount))));
        // Messages may be waiting.
        shared.work();
        Mcp { shared, prefix: "".into() }
    }

    /// Returns a clone for a router that takes the beginning of the path away, as `nest_service` of axum does. The paths of
    /// the [options](MountOptions::options) are always whole, as clients know them: `EndpointConfig::DEFAULT.path("/api/mcp")`
    /// for `nest_service("/api", mcp.nested("/api"))`. Older clients get the path to which they post from the server, so set
    /// [`old_path`](mcp_sansio_http::endpoint::EndpointConfig::old_path) and
    /// [`post_path`](mcp_sansio_http::endpoint::EndpointConfig::post_path) too.
    ///
    /// A path outside of the nests is not served: metadata of a protected resource is at `/.well-known/oauth-protected-resource` and
    /// the paths below it. Give them a route with the mount as it was.
    #[must_use]
    pub fn nested(&self, prefix: &str) -> Self {
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        Mcp { shared: Arc::clone(&self.shared), prefix: prefix.into() }
    }

    /// Returns a handle, for answers and changes from outside.
    #[must_use]
    pub fn handle(&self) -> Handle<S> {
        Handle(Arc::downgrade(&self.shared))
    }

    /// Returns a future that does the work of the time, until all clones of the mount are gone: questions, answers and sessions
    /// whose time is over. Spawn it once, as a task. Without it, this is done while a request or an open event stream is
    /// polled, and with the next request: then handlers may learn late that a client has not come back.
    pub fn run(&self) -> impl Future<Output = ()> + Send + 'static {
        let (mount, keeps) = (Arc::downgrade(&self.shared), Keeps(Arc::clone(&self.shared.keeper)));
        poll_fn(move |cx| {
            let Some(shared) = mount.upgrade() else { return Poll::Ready(()) };
            keeps.0.set_run(Some(cx.waker().clone()));
            match shared.turn(Some(cx), |_| ()) {
                Some(()) => Poll::Pending,
                None => Poll::Ready(()),
            }
        })
    }
}

/// The keeper while the future of [`Mcp::run`] is there. After it, a body keeps the time.
struct Keeps(Arc<Keeper>);

impl Drop for Keeps {
    fn drop(&mut self) {
        self.0.set_run(None);
        self.0.waker().into_iter().for_each(Waker::wake);
    }
}

impl<S, B> TowerService<Request<B>> for Mcp<S>
where
    S: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        let (shared, prefix) = (Arc::clone(&self.shared), Arc::clone(&self.prefix));
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            Ok(serve(shared, RequestParts::new(parts, &prefix), body).await.unwrap_or_else(|response| response))
        })
    }
}

/// Serves one request. The response is an error if the head or the body alone decides it.
async fn serve<S: Send, B: http_body::Body>(
    shared: Arc<Shared<S>>,
    parts: RequestParts,
    body: B,
) -> Result<Response<Body>, Response<Body>> {
    if !parts.has_valid_host() {
        return Err(status(StatusCode::BAD_REQUEST));
    }
    let mut waiting = Waiting { shared: &shared, key: None };
    let principal = shared.principal(&parts.head);
    let admitted = poll_fn(|cx| waiting.admit(&parts, principal.as_deref(), cx)).await;
    let grant = admitted?;
    // Only now: the body of a client that is refused is not read.
    let received = request::read(&shared, body).await.map_err(status)?;
    let answered = poll_fn(|cx| waiting.request(&parts, &grant, received.bytes(), cx)).await;
    Ok(answered)
}

/// A request that may have to wait under a key.
struct Waiting<'s, S: Send + 'static> {
    shared: &'s Arc<Shared<S>>,
    key: Option<u64>,
}

impl<S: Send> Waiting<'_, S> {
    /// Checks the head.
    fn admit(
        &mut self,
        parts: &RequestParts,
        principal: Option<&str>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Grant, Response<Body>>> {
        let shared = self.shared;
        let (waker, key) = (cx.waker().clone(), &mut self.key);
        let decided = shared.turn(Some(cx), |server| {
            if *server.closing {
                return Poll::Ready(Err(status(StatusCode::SERVICE_UNAVAILABLE)));
            }
            let authorize = |head: &RequestHead<'_>| shared.decide(&parts.head, principal, head);
            let mut body = BodyBuffer::new(Vec::new());
            let app = App::new(server.service, server.state).authorize(&authorize);
            let admitted = server.endpoint.admit(&app, &parts.head(), &mut body);
            match admitted {
                Ok(Some(grant)) => Poll::Ready(Ok(grant)),
                Err(refusal) => Poll::Ready(Err(respond(&refusal, Body::counted(body.storage, &shared.unsent)))),
                Ok(None) => {
                    let key = *key.get_or_insert_with(|| server.waits.key());
                    server.waits.undecided(key, &waker);
                    Poll::Pending
                }
            }
        });
        decided.unwrap_or_else(|| Poll::Ready(Err(status(StatusCode::INTERNAL_SERVER_ERROR))))
    }

    /// Handles the request, unless the stream of its session has to be read first.
    fn request(
        &mut self,
        parts: &RequestParts,
        grant: &Grant,
        content: &[u8],
        cx: &mut Context<'_>,
    ) -> Poll<Response<Body>> {
        let (shared, key) = (self.shared, &mut self.key);
        let waker = cx.waker().clone();
        let answered = shared.turn(Some(cx), |server| {
            // Under the lock: one answer at most is made beyond the total.
            if *server.closing || shared.is_full() {
                return Poll::Ready(status(StatusCode::SERVICE_UNAVAILABLE));
            }
            let head = parts.head().admitted(grant);
            if let Some(stream) = server.endpoint.must_wait_for(&head) {
                let key = *key.get_or_insert_with(|| server.waits.key());
                if server.waits.post(key, stream, &waker) {
                    return Poll::Pending;
                }
            }
            let mut app = App::new(server.service, server.state);
            let permits;
            if let Some(permit) = &shared.permit {
                permits = move |message: &mcp_sansio_http::endpoint::MessageAccess<'_>| permit(message);
                app = app.permit(&permits);
            }
            let (mut body, mut random) = (BodyBuffer::new(Vec::new()), |bytes: &mut [u8]| (shared.random)(bytes));
            let response = server.endpoint.request(&mut app, &head, content, server.now, &mut random, &mut body);
            Poll::Ready(match response.content {
                ResponseBody::Stream(id) => {
                    server.waits.replace(id);
                    let mut streamed = respond(&response, Body::stream(shared.clone(), id));
                    for (name, value) in STREAM_HEADERS {
                        streamed.headers_mut().append(name, HeaderValue::from_static(value));
                    }
                    streamed
                }
                _ => respond(&response, Body::counted(body.storage, &shared.unsent)),
            })
        });
        answered.unwrap_or_else(|| Poll::Ready(status(StatusCode::INTERNAL_SERVER_ERROR)))
    }
}

impl<S: Send> Drop for Waiting<'_, S> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.shared.submit(Box::new(move |server| server.waits.drop_request(key)));
        }
    }
}

/// Makes a response of what the endpoint says. A header that HTTP cannot have makes it 500.
fn respond(response: &EndpointResponse<'_>, body: Body) -> Response<Body> {
    let mut built = Response::new(body);
    let mut valid = StatusCode::from_u16(response.status).map(|status| *built.status_mut() = status).is_ok();
    response.headers(
        &mut |name, value| match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => drop(built.headers_mut().append(name, value)),
            _ => valid = false,
        },
    );
    if valid { built } else { status(StatusCode::INTERNAL_SERVER_ERROR) }
}

/// Makes a response of a status alone.
fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

impl<S> Clone for Mcp<S> {
    fn clone(&self) -> Self {
        Mcp { shared: Arc::clone(&self.shared), prefix: Arc::clone(&self.prefix) }
    }
}

mcp_sansio::debug_fields!(impl<S> for Mcp<S> { prefix });
