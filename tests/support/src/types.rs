//! The types of the crate `rust-mcp-schema`: an independent reading of the same schemas, and the one that many Rust
//! peers decode with.
//!
//! Its revisions cannot be built together, so each comes from another major version (see `Cargo.toml`). Unknown
//! members pass, as they do in the crate itself.

use crate::envelope::{Body, Context};
use crate::revision::Revision;
use serde::de::DeserializeOwned;
use serde_json::Value;
use types_2024_11_05::mcp_2024_11_05 as a;
use types_2025_03_26::mcp_2025_03_26 as b;
use types_2025_06_18::mcp_2025_06_18 as c;
use types_2025_11_25::mcp_2025_11_25 as d;
use types_2026_07_28::mcp_2026_07_28 as e;

type Decoder = fn(&Value) -> Result<(), serde_json::Error>;

/// Judges a message by the type of its envelope and by the type of its method or code.
pub(crate) fn check(context: Context<'_>, message: &Value, body: Body<'_>, found: &mut Vec<String>) {
    let revision = context.revision;
    let (kind, decoder, value) = match body {
        Body::Request(method) => ("request", request(revision, method), message),
        Body::Notification(method) => ("notification", notification(revision, method), message),
        Body::Result(result) => ("result", answer(context, result), &message["result"]),
        Body::Error(error) => ("error", error_by_code(revision, &error["code"]), message),
    };
    for (decoder, value) in [(envelope(revision, kind), message), (decoder, value)] {
        if let Some(Err(wrong)) = decoder.map(|decode| decode(value)) {
            found.push(format!("rust-mcp-schema: {wrong}"));
        }
    }
}

fn decode<T: DeserializeOwned>(value: &Value) -> Result<(), serde_json::Error> {
    T::deserialize(value).map(drop)
}

/// `fn name(revision, key) -> Option<Decoder>`: for these revisions (and the modules with their types), the type that
/// decodes each message. A new revision is added to `all` and `modern`, and to `envelope_of_new`.
macro_rules! decoders {
    ($name:ident, all, $rows:tt) => { decoders!($name, [A a, B b, C c, D d, E e], $rows); };
    ($name:ident, legacy, $rows:tt) => { decoders!($name, [A a, B b, C c, D d], $rows); };
    ($name:ident, modern, $rows:tt) => { decoders!($name, [E e], $rows); };
    ($name:ident, [$($revision:ident $module:ident),+], $rows:tt) => {
        fn $name(revision: Revision, key: &str) -> Option<Decoder> {
            match revision {
                $(Revision::$revision => decoders!(@ $module, key, $rows),)+
                #[allow(unreachable_patterns, reason = "some tables are of all revisions")]
                _ => None,
            }
        }
    };
    (@ $module:ident, $key:ident, { $($name:literal => $type:ident,)+ }) => {
        match $key {
            $($name => Some(decode::<$module::$type> as Decoder),)+
            _ => None,
        }
    };
}

fn envelope(revision: Revision, kind: &str) -> Option<Decoder> {
    envelope_of_old(revision, kind).or_else(|| envelope_of_new(revision, kind))
}

decoders!(envelope_of_old, [A a, B b, C c], {
    "request" => JsonrpcRequest,
    "notification" => JsonrpcNotification,
    "result" => JsonrpcResponse,
    "error" => JsonrpcError,
});

decoders!(envelope_of_new, [D d, E e], {
    "request" => JsonrpcRequest,
    "notification" => JsonrpcNotification,
    "result" => JsonrpcResultResponse,
    "error" => JsonrpcErrorResponse,
});

fn request(revision: Revision, method: &str) -> Option<Decoder> {
    request_of_all(revision, method)
        .or_else(|| request_of_legacy(revision, method))
        .or_else(|| request_with_elicitation(revision, method))
        .or_else(|| request_of_modern(revision, method))
}

decoders!(request_of_all, all, {
    "tools/list" => ListToolsRequest,
    "tools/call" => CallToolRequest,
    "resources/list" => ListResourcesRequest,
    "resources/templates/list" => ListResourceTemplatesRequest,
    "resources/read" => ReadResourceRequest,
    "prompts/list" => ListPromptsRequest,
    "prompts/get" => GetPromptRequest,
    "completion/complete" => CompleteRequest,
});

decoders!(request_of_legacy, legacy, {
    "ping" => PingRequest,
    "initialize" => InitializeRequest,
    "resources/subscribe" => SubscribeRequest,
    "resources/unsubscribe" => UnsubscribeRequest,
    "logging/setLevel" => SetLevelRequest,
    "sampling/createMessage" => CreateMessageRequest,
    "roots/list" => ListRootsRequest,
});

decoders!(request_with_elicitation, [C c, D d], {
    "elicitation/create" => ElicitRequest,
});

decoders!(request_of_modern, modern, {
    "server/discover" => DiscoverRequest,
    "subscriptions/listen" => SubscriptionsListenRequest,
});

fn notification(revision: Revision, method: &str) -> Option<Decoder> {
    notification_of_all(revision, method)
        .or_else(|| notification_of_legacy(revision, method))
        .or_else(|| notification_with_elicitation(revision, method))
        .or_else(|| notification_of_modern(revision, method))
}

decoders!(notification_of_all, all, {
    "notifications/cancelled" => CancelledNotification,
    "notifications/progress" => ProgressNotification,
    "notifications/message" => LoggingMessageNotification,
    "notifications/tools/list_changed" => ToolListChangedNotification,
    "notifications/prompts/list_changed" => PromptListChangedNotification,
    "notifications/resources/list_changed" => ResourceListChangedNotification,
    "notifications/resources/updated" => ResourceUpdatedNotification,
});

decoders!(notification_of_legacy, legacy, {
    "notifications/initialized" => InitializedNotification,
    "notifications/roots/list_changed" => RootsListChangedNotification,
});

decoders!(notification_with_elicitation, [D d], {
    "notifications/elicitation/complete" => ElicitationCompleteNotification,
});

decoders!(notification_of_modern, modern, {
    "notifications/subscriptions/acknowledged" => SubscriptionsAcknowledgedNotification,
});

/// Returns the type of a result, by the answered method.
fn answer(context: Context<'_>, result: &Value) -> Option<Decoder> {
    let (revision, method) = (context.revision, context.answered.unwrap_or(""));
    if result["resultType"] == "input_required" && revision.is_modern() {
        return answer_that_asks(revision, "input_required");
    }
    answer_of_all(revision, method)
        .or_else(|| answer_of_legacy(revision, method))
        .or_else(|| answer_with_elicitation(revision, method))
        .or_else(|| answer_of_modern(revision, method))
}

decoders!(answer_of_all, all, {
    "tools/list" => ListToolsResult,
    "tools/call" => CallToolResult,
    "resources/list" => ListResourcesResult,
    "resources/templates/list" => ListResourceTemplatesResult,
    "resources/read" => ReadResourceResult,
    "prompts/list" => ListPromptsResult,
    "prompts/get" => GetPromptResult,
    "completion/complete" => CompleteResult,
});

decoders!(answer_of_legacy, legacy, {
    "ping" => EmptyResult,
    "initialize" => InitializeResult,
    "resources/subscribe" => EmptyResult,
    "resources/unsubscribe" => EmptyResult,
    "logging/setLevel" => EmptyResult,
    "sampling/createMessage" => CreateMessageResult,
    "roots/list" => ListRootsResult,
});

decoders!(answer_with_elicitation, [C c, D d], {
    "elicitation/create" => ElicitResult,
});

decoders!(answer_of_modern, modern, {
    "server/discover" => DiscoverResult,
    "subscriptions/listen" => SubscriptionsListenResult,
});

decoders!(answer_that_asks, modern, {
    "input_required" => InputRequiredResult,
});

fn error_by_code(revision: Revision, code: &Value) -> Option<Decoder> {
    let code = code.as_i64()?.to_string();
    error_with_elicitation(revision, &code).or_else(|| error_of_modern(revision, &code))
}

decoders!(error_with_elicitation, [D d], {
    "-32042" => UrlElicitationRequiredError,
});

decoders!(error_of_modern, modern, {
    "-32020" => HeaderMismatchError,
    "-32021" => MissingRequiredClientCapabilityError,
    "-32022" => UnsupportedProtocolVersionError,
});
