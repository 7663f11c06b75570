//! Fronts whose only layer passes all requests on to the hub: an HTTP server for several hosts at once, and lines for one host of
//! several servers.

use std::future::{pending, poll_fn};
use std::io::{self, Write};
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use async_io::Timer;
use blocking::Unblock;
use futures_lite::io::BufReader;
use futures_lite::{AsyncBufReadExt, AsyncRead, AsyncReadExt, FutureExt};
use mcp_sansio::json::Raw;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::protocol::Method;
use mcp_sansio::server::{MessageLimits, Millis, RequestToken, Scope, ServerInfo, is_same_secret};
use mcp_sansio::service::{HandlerError, Layer, LayerRequest, NotificationContext, Receipt, Service};
use mcp_sansio::sink::{GrowingStorage, LineSink};
use mcp_sansio_bridge::{BridgeLimits, Output};
use mcp_sansio_smol::http::{
    Access, App, EndpointConfig, EndpointLimits, HttpEndpoint, HttpServer, HttpServerOptions, RequestHead, Stopper,
    StreamPolicy,
};

use crate::arguments::Arguments;
use crate::resource_server::Guard;
use crate::{GRACE, READ_AHEAD, Shared, lock, stopped, system};

/// Passes requests, notifications and responses of all hosts to the hub.
struct Pass;

impl Layer<Shared> for Pass {
    fn request(
        &self,
        shared: &mut Shared,
        request: &mut LayerRequest<'_, '_>,
    ) -> Result<Option<Receipt>, HandlerError> {
        let (name, params) = (request.method, request.params());
        let method = Method::from_name(&name);
        let scope = request.scope();
        if method == Method::Initialize {
            let info = params.and_then(|params| params.get("clientInfo"));
            info.into_iter().for_each(|info| lock(&shared.hub).host_opens(scope, info));
        }
        if method.is_answered_by_server() && !method.is_setting() {
            return Ok(None);
        }
        lock(&shared.hub).request(request.token(), scope, &name.to_string(), params, request.source.checks)?;
        request.later().1.map(Some)
    }

    fn notification(
        &self,
        shared: &mut Shared,
        notification: &NotificationContext<'_>,
        cancels: Option<RequestToken>,
        _: Millis,
    ) -> bool {
        if cancels.is_none() {
            lock(&shared.hub).notification(&notification.method.to_string(), notification.params);
        }
        true
    }

    fn response(&self, shared: &mut Shared, id: u64, response: Result<Raw<'_>, Raw<'_>>, scope: Scope) {
        lock(&shared.hub).response(id, response, scope);
    }
}

/// Waits until each server has described itself or cannot be reached, but no longer than a request would.
async fn settled(shared: &Shared, limits: &BridgeLimits, stopper: &Stopper) {
    let settled = poll_fn(|_| if lock(&shared.hub).is_settled() { Poll::Ready(()) } else { Poll::Pending });
    let patience = async {
        Timer::after(Duration::from_millis(limits.wait)).await;
    };
    settled.or(patience).or(stopped(stopper)).await;
}

/// Makes a service that passes everything on.
fn passing<'t>(info: ServerInfo<'t>) -> Service<'t, Shared> {
    Service::described(info).layers(&[&Pass]).on_cancel(|shared: &mut Shared, token| lock(&shared.hub).cancel(token))
}

/// Serves the hosts that come over HTTP, until a signal.
pub(crate) async fn serve_hosts(shared: &Shared, arguments: &Arguments, address: &str) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{address}: {error}");
    let server = match address.strip_prefix("unix:") {
        #[cfg(unix)]
        Some(path) => HttpServer::bind_unix(path),
        _ if address.contains(':') => HttpServer::bind(address),
        _ => HttpServer::bind(format!("127.0.0.1:{address}")),
    };
    let server = server.map_err(fault)?;
    let mut names: Vec<&'static str> = arguments.names.iter().map(|name| &*name.clone().leak()).collect();
    let mut config = EndpointConfig::DEFAULT.streams(StreamPolicy::Deferred);
    let (server, guard) = match Guard::new(arguments, &mut config, &mut names)? {
        Some((guard, decided)) => (server.late(decided), Some(guard)),
        None => (server, None),
    };
    let stopper = server.stopper();
    system::at_signal(stopper.clone())?;
    lock(&shared.hub).open(None);
    settled(shared, &arguments.limits, &stopper).await;
    let hello = lock(&shared.hub).hello();
    let service = passing(hello.info());
    match server.local_addr() {
        Ok(bound) => {
            if !(bound.ip().to_canonical().is_loopback() || guard.is_some() || arguments.token.is_some()) {
                eprintln!("mcp-bridge: anybody who reaches {bound} can use the server; --token-file asks for a token");
            }
            eprintln!("mcp-bridge: listens at http://{bound}{}", config.path);
        }
        Err(_) => eprintln!("mcp-bridge: listens at {address}"),
    }
    let token = arguments.token.as_deref();
    let asking = guard.clone();
    let authorize = |head: &RequestHead<'_>| match (&guard, token) {
        (Some(guard), _) => guard.authorize(head),
        (_, Some(token)) if !head.bearer().is_some_and(|given| is_same_secret(given.as_bytes(), token.as_bytes())) => {
            Access::Denied { status: 401, challenge: Some("Bearer") }
        }
        _ => Access::Granted { principal: None },
    };
    let writer = shared.clone();
    let mut uris = Vec::new();
    let server =
        server.options(options(arguments, config.hosts(names.leak()))).authorize(&authorize).grace(GRACE).tick(
            move |app, endpoint, now| {
                write(&writer, app, endpoint, &mut uris);
                // An authorization server that is silent ends no question: then its time does.
                asking.as_ref().filter(|guard| guard.is_asking()).map(|_| now + 1000)
            },
        );
    server.serve(&service, &mut shared.clone()).await.map_err(fault)
}

fn messages(limits: &BridgeLimits) -> MessageLimits {
    MessageLimits { in_flight: limits.in_flight, message: limits.message, ..MessageLimits::default() }
}

/// The limits of the server in front.
fn options(arguments: &Arguments, config: EndpointConfig<'static>) -> HttpServerOptions {
    let (limits, hosts) = (&arguments.limits, arguments.hosts);
    let streams = EndpointLimits::default()
        .sessions(hosts)
        .streams(hosts.saturating_mul(2).saturating_add(limits.in_flight))
        .log(limits.backlog);
    HttpServerOptions::new()
        .config(config)
        .limits(messages(limits))
        .endpoint_limits(streams)
        .connections(hosts.saturating_mul(4).saturating_add(limits.in_flight))
        .output_total(limits.backlog)
}

/// Writes the messages for hosts, and passes their subscriptions to the hub; `uris` are those that it knows.
fn write(shared: &Shared, app: &mut App<'_, Shared>, endpoint: &mut HttpEndpoint, uris: &mut Vec<String>) {
    while let Some(output) = { lock(&shared.hub).next_output() } {
        match output {
            Output::About(Some(request), act) => drop(endpoint.with_stream_of(request, |server, out| act(server, out))),
            Output::Changed(change) => endpoint.publish(change.as_change()),
            Output::Log { request, level, logger, data } => {
                endpoint.log_data(app, request, level, logger.as_deref(), data.raw());
            }
            Output::Ask { request, question, method, params } => {
                let asked = request.and_then(|request| {
                    endpoint.with_stream_of(request, |server, out| {
                        let id = server.send_request(method, Some(params.raw()), out).ok()?;
                        Some((id, server.scope()))
                    })?
                });
                lock(&shared.hub).asked(request, question, asked);
            }
            _ => {}
        }
    }
    // Each use of a client wakes this task again.
    if !endpoint.subscribed_uris().eq(uris.iter()) {
        *uris = endpoint.subscribed_uris().map(String::from).collect();
        lock(&shared.hub).subscribed(uris.iter().map(|uri| &**uri));
    }
}

type Lines = LineServer<'static, LineSink<GrowingStorage>>;

/// Serves one host over stdio, in front of several servers, until it ends or a signal comes.
pub(crate) async fn serve_line(shared: &Shared, limits: &BridgeLimits, stopper: &Stopper) {
    let mut stdin = BufReader::new(Unblock::with_capacity(READ_AHEAD, io::stdin()));
    // The servers are opened as the client that this host is.
    let mut first = Vec::new();
    let most = u64::try_from(limits.message).unwrap_or(u64::MAX);
    let read = async {
        let _ = (&mut stdin).take(most).read_until(b'\n', &mut first).await;
    };
    read.or(stopped(stopper)).await;
    lock(&shared.hub).open(Some(&first));
    settled(shared, limits, stopper).await;
    let hello = lock(&shared.hub).hello();
    let (info, mut state) = (hello.info(), shared.clone());
    let service = passing(info);
    let mut lines = Lines::growing(messages(limits), LineSink::new(GrowingStorage::new(limits.backlog)));
    let (mut given, mut uris, mut end) = (&*first, Vec::new(), None);
    while !lines.is_done() && end.is_none_or(|end| Instant::now() < end) {
        while lines.run(&service, &mut state) == NextStep::Write {
            flush(&mut lines);
        }
        write_lines(shared, &info, &mut lines, &mut uris);
        flush(&mut lines);
        let read = poll_fn(|cx| match () {
            () if lock(&shared.hub).has_output() || lines.is_done() || lines.server.has_news() => Poll::Ready(None),
            () if lines.has_ended() => Poll::Pending,
            () if stopper.count(cx) > 0 => Poll::Ready(Some(Ok(0))),
            () if !given.is_empty() => Pin::new(&mut given).poll_read(cx, lines.space()).map(Some),
            () => Pin::new(&mut stdin).poll_read(cx, lines.space()).map(Some),
        });
        let patience = async {
            match end {
                Some(end) => Timer::at(end).await,
                None => pending().await,
            };
            None
        };
        match read.or(patience).await {
            Some(Ok(n)) if n > 0 => lines.filled(n),
            Some(_) => {
                lines.end_of_input();
                end = Instant::now().checked_add(GRACE);
            }
            None => {}
        }
    }
    flush(&mut lines);
}

/// Writes to the host.
fn flush(lines: &mut Lines) {
    let mut stdout = io::stdout().lock();
    let pending = lines.out.pending();
    if stdout.write_all(pending).and_then(|()| stdout.flush()).is_err() {
        // The host is gone; the end of stdin follows.
        std::process::exit(0);
    }
    let n = pending.len();
    lines.out.sent(n);
}

/// Writes the messages for the only host, and passes its subscriptions to the hub.
fn write_lines(shared: &Shared, info: &ServerInfo<'_>, lines: &mut Lines, uris: &mut Vec<String>) {
    let (server, out) = (&mut lines.server, &mut lines.out);
    while let Some(output) = { lock(&shared.hub).next_output() } {
        match output {
            Output::About(_, act) => act(server, out),
            Output::Changed(change) => server.publish(change.as_change()),
            Output::Log { request, level, logger, data } => {
                // Up to 2025-11-25 the level is that of the connection.
                let request = request.filter(|_| server.peer.revision().is_none());
                let _ = server.log_data(info, request, level, logger.as_deref(), data.raw(), out);
            }
            Output::Ask { request, question, method, params } => {
                let id = server.send_request(method, Some(params.raw()), out).ok();
                lock(&shared.hub).asked(request, question, id.map(|id| (id, server.scope())));
            }
            _ => {}
        }
    }
    if !server.subscribed_uris().eq(uris.iter()) {
        *uris = server.subscribed_uris().map(String::from).collect();
        lock(&shared.hub).subscribed(uris.iter().map(|uri| &**uri));
    }
}
