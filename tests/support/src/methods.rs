//! The methods of the protocol: their senders in each revision, and the shapes of their params and results.

use crate::revision::Revision::{self, A, C, D, E};
use crate::shape::Shape;
use crate::shapes::*;

/// One of the two roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    /// A request of a server that E sends inside `inputRequests`.
    Input,
    Notification,
}

pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    client: Span,
    server: Span,
    pub(crate) params: &'static Shape,
    /// The shape of its result, which names the definition; unused for a notification.
    pub(crate) result: &'static Shape,
}

/// The first and the last revision that has it.
type Span = Option<(Revision, Revision)>;

const ALL: Span = Some((A, Revision::NEWEST));
const LEGACY: Span = Some((A, D));
const MODERN: Span = Some((E, Revision::NEWEST));
const NEVER: Span = None;

impl Method {
    /// Returns whether `side` may send it as a message of its own.
    pub(crate) fn sent_by(&self, side: Side, revision: Revision) -> bool {
        let span = if side == Side::Client { self.client } else { self.server };
        span.is_some_and(|(first, last)| first <= revision && revision <= last)
    }
}

pub(crate) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|m| m.name == name)
}

const fn request(name: &'static str, client: Span, params: &'static Shape, result: &'static Shape) -> Method {
    Method { name, kind: Kind::Request, client, server: NEVER, params, result }
}

const fn input(name: &'static str, server: Span, params: &'static Shape, result: &'static Shape) -> Method {
    Method { name, kind: Kind::Input, client: NEVER, server, params, result }
}

const fn notice(name: &'static str, client: Span, server: Span, params: &'static Shape) -> Method {
    Method { name, kind: Kind::Notification, client, server, params, result: &EMPTY_RESULT }
}

/// Without tasks: the project sends none of their methods.
pub(crate) static METHODS: &[Method] = &[
    Method { server: LEGACY, ..request("ping", LEGACY, &NO_PARAMS, &EMPTY_RESULT) },
    request("initialize", LEGACY, &INITIALIZE_PARAMS, &INITIALIZE_RESULT),
    request("server/discover", MODERN, &NO_PARAMS, &DISCOVER_RESULT),
    request("tools/list", ALL, &LIST_PARAMS, &LIST_TOOLS_RESULT),
    request("tools/call", ALL, &CALL_PARAMS, &CALL_TOOL_RESULT),
    request("resources/list", ALL, &LIST_PARAMS, &LIST_RESOURCES_RESULT),
    request("resources/templates/list", ALL, &LIST_PARAMS, &LIST_TEMPLATES_RESULT),
    request("resources/read", ALL, &READ_PARAMS, &READ_RESULT),
    request("resources/subscribe", LEGACY, &URI_PARAMS, &EMPTY_RESULT),
    request("resources/unsubscribe", LEGACY, &URI_PARAMS, &EMPTY_RESULT),
    request("prompts/list", ALL, &LIST_PARAMS, &LIST_PROMPTS_RESULT),
    request("prompts/get", ALL, &CALL_PARAMS, &GET_PROMPT_RESULT),
    request("completion/complete", ALL, &COMPLETE_PARAMS, &COMPLETE_RESULT),
    request("logging/setLevel", LEGACY, &LEVEL_PARAMS, &EMPTY_RESULT),
    request("subscriptions/listen", MODERN, &LISTEN_PARAMS, &LISTEN_RESULT),
    input("sampling/createMessage", LEGACY, &CREATE_MESSAGE_PARAMS, &CREATE_MESSAGE_RESULT),
    input("roots/list", LEGACY, &NO_PARAMS, &LIST_ROOTS_RESULT),
    input("elicitation/create", Some((C, D)), &ELICIT_PARAMS, &ELICIT_RESULT),
    notice("notifications/initialized", LEGACY, NEVER, &NO_PARAMS),
    notice("notifications/cancelled", ALL, ALL, &CANCELLED_PARAMS),
    notice("notifications/progress", LEGACY, ALL, &PROGRESS_PARAMS),
    notice("notifications/message", NEVER, ALL, &MESSAGE_PARAMS),
    notice("notifications/tools/list_changed", NEVER, ALL, &NO_PARAMS),
    notice("notifications/prompts/list_changed", NEVER, ALL, &NO_PARAMS),
    notice("notifications/resources/list_changed", NEVER, ALL, &NO_PARAMS),
    notice("notifications/resources/updated", NEVER, ALL, &URI_PARAMS),
    notice("notifications/roots/list_changed", LEGACY, NEVER, &NO_PARAMS),
    notice("notifications/elicitation/complete", NEVER, Some((D, D)), &ELICITATION_COMPLETE_PARAMS),
    notice("notifications/subscriptions/acknowledged", NEVER, MODERN, &LISTEN_PARAMS),
];
