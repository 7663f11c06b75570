//! Several hosts at once: an HTTP server in front, whose only layer passes all requests on.

use std::future::poll_fn;
use std::task::Poll;

use mcp_sansio::json::Object;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, Method};
use mcp_sansio::server::{MessageLimits, Millis, RequestToken, Scope};
use mcp_sansio::service::{HandlerError, Layer, LayerRequest, NotificationContext, Receipt, Service};
use mcp_sansio::sink::{LineSink, MessageHead, whole};
use mcp_sansio_bridge::Output;
use mcp_sansio_smol::http::{
    Access, App, EndpointConfig, EndpointLimits, HttpEndpoint, HttpServer, HttpServerOptions, RequestHead,
};

use crate::arguments::Arguments;
use crate::{Shared, lock};

/// Passes requests, notifications and responses of all hosts to the bridge.
struct Pass;

impl Layer<Shared> for Pass {
    fn request(
        &self,
        shared: &mut Shared,
        request: &mut LayerRequest<'_, '_>,
    ) -> Result<Option<Receipt>, HandlerError> {
        let (name, params) = (request.method(), request.params());
        let method = Method::from_name(&name);
        if method.is_answered_by_server() {
            let level = params.and_then(|params| LoggingLevel::read(params.get("level")?));
            if let (Method::SetLevel, Some(level)) = (method, level) {
                shared.act(|bridge, link| bridge.set_level(level, link));
            }
            return Ok(None);
        }
        let mut line = LineSink::new(Vec::new());
        let written = whole(&mut line, MessageHead::Notification, |out| {
            let mut message = Object::open(out);
            message.fixed("jsonrpc", "\"2.0\"");
            message.fixed("id", "0");
            message.text("method", &name.to_string());
            if let Some(params) = params {
                message.raw("params", params);
            }
            message.close()
        });
        let (token, later) = request.later();
        if written.is_ok() {
            let now = shared.now();
            shared.act(|bridge, link| bridge.request(token, line.pending(), link, now));
        }
        later.map(Some)
    }

    fn notification(
        &self,
        shared: &mut Shared,
        notification: &NotificationContext<'_>,
        cancels: Option<RequestToken>,
        _: Millis,
    ) -> bool {
        if cancels.is_none() {
            shared.act(|bridge, link| bridge.notification(&notification.method, notification.params, link));
        }
        true
    }

    fn response(&self, shared: &mut Shared, id: u64, response: Result<Raw<'_>, Raw<'_>>, scope: Scope) {
        shared.act(|bridge, link| bridge.response(id, response, scope, link));
    }
}

/// Serves the hosts that come over HTTP, for ever.
pub(crate) async fn serve_hosts(shared: &Shared, arguments: &Arguments, address: &str) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{address}: {error}");
    let server = match address.strip_prefix("unix:") {
        #[cfg(unix)]
        Some(path) => HttpServer::bind_unix(path),
        _ if address.contains(':') => HttpServer::bind(address),
        _ => HttpServer::bind(format!("127.0.0.1:{address}")),
    };
    let server = server.map_err(fault)?;
    let known = poll_fn(|_| if lock(&shared.bridge).knows_server() { Poll::Ready(()) } else { Poll::Pending });
    let patience = async {
        async_io::Timer::after(std::time::Duration::from_millis(arguments.limits.wait)).await;
    };
    futures_lite::FutureExt::or(known, patience).await;
    let hello = lock(&shared.bridge).hello();
    let service = Service::described(hello.info()).layers(&[&Pass]).on_cancel(|shared: &mut Shared, token| {
        let now = shared.now();
        shared.act(|bridge, link| bridge.cancel(token, link, now));
    });
    match server.local_addr() {
        Ok(bound) => eprintln!("mcp-bridge: listens at http://{bound}/mcp"),
        Err(_) => eprintln!("mcp-bridge: listens at {address}"),
    }
    let token = arguments.token.as_deref();
    let authorize = move |head: &RequestHead<'_>| match token {
        Some(token) if !head.bearer().is_some_and(|given| is_same(given, token)) => {
            Access::Denied { status: 401, challenge: Some("Bearer") }
        }
        _ => Access::Granted { principal: None },
    };
    let writer = shared.clone();
    let mut uris = Vec::new();
    let server = server.options(options(arguments)).authorize(&authorize).tick(move |app, endpoint, _| {
        write(&writer, app, endpoint, &mut uris);
        None
    });
    server.serve(&service, &mut shared.clone()).await.map_err(fault)
}

/// Compares two secrets in a time that depends on the length alone.
fn is_same(given: &str, secret: &str) -> bool {
    let differing = given.bytes().zip(secret.bytes()).fold(0, |all, (one, other)| all | one ^ other);
    given.len() == secret.len() && differing == 0
}

/// The limits of the server in front.
fn options(arguments: &Arguments) -> HttpServerOptions {
    let (limits, hosts) = (&arguments.limits, arguments.hosts);
    let messages = MessageLimits { in_flight: limits.in_flight, message: limits.message, ..MessageLimits::default() };
    let names: Vec<&'static str> = arguments.names.iter().map(|name| &*name.clone().leak()).collect();
    let config = EndpointConfig::DEFAULT.hosts(names.leak());
    let streams = EndpointLimits {
        sessions: hosts,
        streams: hosts.saturating_mul(2).saturating_add(limits.in_flight),
        log: limits.backlog,
        ..EndpointLimits::default()
    };
    HttpServerOptions::new()
        .config(config)
        .limits(messages)
        .endpoint_limits(streams)
        .connections(hosts.saturating_mul(4).saturating_add(limits.in_flight))
        .output_total(limits.backlog)
}

/// Writes the messages for hosts, and passes their subscriptions to the bridge; `uris` are those that it knows.
fn write(shared: &Shared, app: &mut App<'_, Shared>, endpoint: &mut HttpEndpoint, uris: &mut Vec<String>) {
    while let Some(output) = { lock(&shared.bridge).next_output() } {
        match output {
            Output::About(request, act) => drop(endpoint.with_stream_of(request, |server, out| act(server, out))),
            Output::Changed(change) => endpoint.publish(change.as_change()),
            Output::Log { request, level, logger, data } => {
                endpoint.log_data(app, request, level, logger.as_deref(), data.raw());
            }
            Output::Ask { request, question, method, params } => {
                let asked = endpoint.with_stream_of(request, |server, out| {
                    let id = server.send_request(method, Some(params.raw()), out).ok()?;
                    Some((id, server.scope()))
                });
                shared.act(|bridge, link| bridge.asked(request, question, asked.flatten(), link));
            }
            _ => {}
        }
    }
    // Each use of the client wakes this task again.
    if !endpoint.subscribed_uris().eq(uris.iter()) {
        *uris = endpoint.subscribed_uris().map(String::from).collect();
        shared.act(|bridge, link| bridge.subscribed(uris.iter().map(|uri| &**uri), link));
    }
}
