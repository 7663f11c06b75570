//! Messages from the view of the transport: the needs of an outgoing one, the request that an incoming one
//! answers.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::code;
use mcp_sansio::revision::Revision;
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::server::Millis;
use mcp_sansio::sink::MessageHead;

/// The purpose of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Posts a request.
    Request,
    /// Posts a notification or a response.
    OneWay,
    /// Opens the stream of a legacy session (GET).
    Listen,
    /// Opens the stream of HTTP with SSE of 2024-11-05 (GET).
    SseStream,
    /// Ends the legacy session (DELETE).
    EndSession,
}

/// Methods that concern the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// `initialize`.
    Initialize,
    /// `notifications/initialized`.
    Initialized,
    /// `tools/list`; `true` for the first page.
    Tools(bool),
    /// `subscriptions/listen`.
    Listen,
    Other,
}

/// The facts of an exchange's message, and its tries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) purpose: Purpose,
    /// The `id` of the request.
    pub(crate) request: Option<u64>,
    pub(crate) topic: Topic,
    /// The revision that the message names, from 2026-07-28 on.
    pub(crate) revision: Option<Revision>,
    /// The message may be sent twice without harm.
    pub(crate) idempotent: bool,
    /// The message is posted to the endpoint of HTTP with SSE.
    pub(crate) sse: bool,
    /// The stream is resumed by GET.
    pub(crate) resume: bool,
    /// The message was sent again because the server had closed a kept connection.
    pub(crate) retried: bool,
    /// Number of redirects followed.
    pub(crate) redirects: u8,
    /// Number of failed tries to resume the stream.
    pub(crate) tries: u8,
    /// Number of pauses in a row without a message of the stream between them.
    pub(crate) pauses: u8,
    /// Number of challenges since the server last accepted.
    pub(crate) challenges: u8,
    /// A stream was open.
    pub(crate) was_open: bool,
    /// The time since which the stream is open.
    pub(crate) opened: Option<Millis>,
}

/// Methods that change nothing on the server, besides all lists.
const SAFE: [&str; 5] = ["ping", "server/discover", "resources/read", "prompts/get", "completion/complete"];

impl Task {
    pub(crate) const NONE: Task = Task {
        purpose: Purpose::OneWay,
        request: None,
        topic: Topic::Other,
        revision: None,
        idempotent: false,
        sse: false,
        resume: false,
        retried: false,
        redirects: 0,
        tries: 0,
        pauses: 0,
        challenges: 0,
        was_open: false,
        opened: None,
    };

    /// Makes the facts of an outgoing message from its head.
    pub(crate) fn of(head: MessageHead<'_>) -> Task {
        // A server acts once on a notification that comes twice, and ignores the second of two responses.
        let task = Task { idempotent: true, ..Task::NONE };
        match head {
            MessageHead::Request(request) => Task {
                purpose: Purpose::Request,
                request: Some(request.id),
                topic: match request.method {
                    "initialize" => Topic::Initialize,
                    "tools/list" => Topic::Tools(!request.has_text("cursor")),
                    "subscriptions/listen" => Topic::Listen,
                    _ => Topic::Other,
                },
                revision: Revision::from_date(request.version),
                idempotent: request.method.ends_with("/list") || SAFE.contains(&request.method),
                ..task
            },
            MessageHead::Initialized => Task { topic: Topic::Initialized, ..task },
            _ => task,
        }
    }

    /// Returns `true` if the message is of 2026-07-28.
    pub(crate) const fn is_modern(&self) -> bool {
        self.revision.is_some()
    }

    /// Returns `true` if it is sent by POST.
    pub(crate) const fn posts(&self) -> bool {
        matches!(self.purpose, Purpose::Request | Purpose::OneWay) && !self.resume
    }

    /// Returns `true` if its stream is for changes, so that no deadline of a request ends it.
    pub(crate) fn is_for_changes(&self) -> bool {
        self.purpose == Purpose::Listen || self.topic == Topic::Listen
    }

    /// Returns `true` if it belongs to the legacy session.
    pub(crate) fn in_session(&self) -> bool {
        !self.is_modern() && self.topic != Topic::Initialize && self.purpose != Purpose::SseStream
    }
}

/// The class of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    NotJson,
    /// A response: with the id of one of the client's requests, or without id; `true` for an error.
    Response(Option<u64>, bool),
    /// Any other message. An array may also contain the awaited response.
    Other,
}

impl Class {
    /// Classifies a message of a stream on which `request` is to be answered. `batches` allows arrays.
    pub(crate) fn of(bytes: &[u8], request: Option<u64>, batches: bool) -> Class {
        if let Ok(envelope) = Envelope::parse(bytes) {
            return match envelope.shape() {
                // Proxies and other APIs answer with an `error` of their own, which is neither JSON-RPC's nor has an id.
                MessageShape::Response { id: None } if !envelope.jsonrpc => Class::Other,
                MessageShape::Response { id } => Class::Response(id.and_then(|id| id.u64()), envelope.error.is_some()),
                _ => Class::Other,
            };
        }
        let Some(items) = Raw::parse(bytes).ok().filter(|raw| raw.as_bytes().starts_with(b"[")) else {
            return Class::NotJson;
        };
        // A batch must not contain a batch.
        let mut objects = items.items().filter(|item| item.as_bytes().starts_with(b"{"));
        let answers =
            |item: Raw<'_>| matches!(Class::of(item.as_bytes(), None, false), Class::Response(id, _) if id == request);
        let found = batches && request.is_some() && objects.any(answers);
        if found { Class::Response(request, false) } else { Class::Other }
    }
}

/// Returns `true` if an error's code is one that only servers of 2026-07-28 use, or means an unknown method.
pub(crate) fn is_modern_error(body: &[u8]) -> bool {
    let error = Envelope::parse(body).ok().and_then(|envelope| envelope.error);
    let code = error.and_then(|error| error.get("code")).and_then(|code| code.i64());
    let modern = [code::HEADER_MISMATCH, code::MISSING_CAPABILITY, code::UNSUPPORTED_VERSION, code::METHOD_NOT_FOUND];
    code.is_some_and(|code| modern.iter().any(|known| i64::from(*known) == code))
}
