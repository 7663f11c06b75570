//! Spans of requests.

use mcp_sansio::client::{self, PendingId, RequestError};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::Method;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{Millis, RequestToken};
use mcp_sansio::service::{Layer, LayerRequest, NotificationContext, Outcome};
use mcp_sansio::trace_context::TraceContext;

use super::{Key, Open, Passes, is_tool_error, name_of};

/// A span for each request, until it is answered, with the names of
/// [OpenTelemetry's conventions for MCP](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp). Needs the feature `tracing`.
///
/// A bridge to OpenTelemetry takes the name from `otel.name` and the parent from `traceparent`. Events of a handler are not in the
/// span: a layer stands before and behind the handler, not around its thread.
#[derive(Debug)]
pub struct Spans(Open<tracing::Span>);

impl Spans {
    /// Makes the layer.
    #[must_use]
    pub fn new() -> Self {
        Spans(Open::new())
    }

    /// Begins the span of a request.
    fn begin(
        kind: &str,
        method: &str,
        name: Option<&str>,
        revision: Option<Revision>,
        trace: TraceContext<'_>,
    ) -> tracing::Span {
        use tracing::field::Empty;

        // The URI of a resource is no part of the name: there may be many.
        let (label, target) = match (method, name) {
            ("tools/call", Some(tool)) => (format!("{method} {tool}"), Some("gen_ai.tool.name")),
            ("prompts/get", Some(prompt)) => (format!("{method} {prompt}"), Some("gen_ai.prompt.name")),
            (_, Some(_)) => (method.to_owned(), Some("mcp.resource.uri")),
            (_, None) => (method.to_owned(), None),
        };
        let span = tracing::info_span!(
            "mcp",
            otel.name = label,
            otel.kind = kind,
            mcp.method.name = method,
            mcp.protocol.version = Empty,
            gen_ai.operation.name = Empty,
            gen_ai.tool.name = Empty,
            gen_ai.prompt.name = Empty,
            mcp.resource.uri = Empty,
            traceparent = Empty,
            error.type = Empty,
            rpc.response.status_code = Empty,
            otel.status_code = Empty,
        );
        if let Some(revision) = revision {
            span.record("mcp.protocol.version", revision.date());
        }
        if let (Some(key), Some(name)) = (target, name) {
            span.record(key, name);
        }
        if method == Method::ToolsCall.name() {
            span.record("gen_ai.operation.name", "execute_tool");
        }
        if let Some(parent) = trace.traceparent() {
            span.record("traceparent", tracing::field::display(parent));
        }
        span
    }

    /// Ends the span of a request, with the type of its error and the JSON-RPC code if there are such.
    fn end(&self, key: Key, error: Option<&str>, code: Option<i32>) {
        let (Some((_, span)), Some(error)) = (self.0.remove(key), error) else { return };
        span.record("error.type", error);
        span.record("otel.status_code", "ERROR");
        if let Some(code) = code {
            span.record("rpc.response.status_code", code.to_string().as_str());
        }
    }
}

impl Default for Spans {
    fn default() -> Self {
        Spans::new()
    }
}

impl<S> Layer<S> for Spans {
    fn request(&self, _: &mut S, request: &mut LayerRequest<'_, '_>) -> Passes {
        let (method, name) = (request.method.to_string(), request.name.map(|name| name.to_string()));
        let span = Spans::begin("server", &method, name.as_deref(), Some(request.revision()), request.trace_context());
        self.0.add(Key::Server(request.token()), request.now(), span);
        Ok(None)
    }

    fn outcome(&self, _: &mut S, token: RequestToken, outcome: Outcome, _: Millis) {
        match outcome {
            Outcome::Later => {}
            Outcome::ToolError => self.end(Key::Server(token), Some("tool_error"), None),
            Outcome::Error(code) => self.end(Key::Server(token), Some(&code.to_string()), Some(code)),
            _ => self.end(Key::Server(token), None, None),
        }
    }

    fn notification(&self, _: &mut S, _: &NotificationContext<'_>, cancels: Option<RequestToken>, _: Millis) -> bool {
        cancels.map(|token| self.0.remove(Key::Server(token)));
        true
    }
}

impl client::Layer for Spans {
    fn request(&self, request: &mut client::LayerRequest<'_>) -> bool {
        let name = name_of(request);
        let span = Spans::begin("client", request.method, name.as_deref(), request.revision, request.trace_context());
        self.0.add(Key::Client(request.token), request.now, span);
        true
    }

    fn outcome<'a>(&self, token: PendingId, outcome: &mut Result<Raw<'a>, RequestError<'a>>, _: Millis) {
        match outcome {
            Ok(result) if is_tool_error(*result) => self.end(Key::Client(token), Some("tool_error"), None),
            Ok(_) => self.end(Key::Client(token), None, None),
            Err(RequestError::Error(error)) => {
                self.end(Key::Client(token), Some(&error.code.to_string()), Some(error.code))
            }
            Err(RequestError::Lost(why)) => self.end(Key::Client(token), Some(&format!("{why:?}")), None),
        }
    }

    fn dropped(&self, token: PendingId, _: bool, _: Millis) {
        self.end(Key::Client(token), None, None);
    }
}
