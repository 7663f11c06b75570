//! Admits requests: era, version and capabilities in the order that the protocol demands. Answers `initialize`,
//! `server/discover`, `ping` and `logging/setLevel`.

use super::request::{IncomingRequest, Negotiated, object};
use super::server_info::{Legacy, Logging, Modern, Served};
use super::subscriptions::TOO_MANY_SUBSCRIPTIONS;
use super::{
    OVERLOADED, RequestToken, RpcError, Server, ServerEvent, ServerInfo, ServerOptions, StreamBody, StreamedReply,
    WINDOWS, WriteReply, words,
};
use crate::json::object::Object;
use crate::protocol::{ClientCapabilities, LoggingLevel, Method, meta};
use crate::revision::{Era, Revision};
use crate::rpc::{begin, is_id};
use crate::sink::{FullError, MessageHead, Out, Writer, whole};

/// The error for a wrong level, in the `_meta` of a request and in `logging/setLevel`.
const NO_LEVEL: &str = "Invalid params: no such log level";

/// The error for a known method before `initialize`. It names both ways to open a connection.
const EITHER_WAY: &str = "Not opened: send initialize first (up to 2025-11-25), or put \
    io.modelcontextprotocol/protocolVersion and /clientCapabilities into _meta (2026-07-28)";

// A refusal is written to `why`, and `None` is returned. A `Result` takes 300 bytes of flash more (uart, tools only): each
// caller would copy the 32 bytes of the error.

impl Legacy {
    pub(crate) const VTABLE: Legacy =
        Legacy { initialize: |server, context, request, why, out| server.initialize(context, request, why, out) };
}

impl Logging {
    pub(crate) const VTABLE: Logging = Logging {
        set_level: |server, request, why, out| {
            let level = request.envelope.members.level.and_then(LoggingLevel::read);
            let level = level.or_else(|| why.fail_params(NO_LEVEL))?;
            Some(server.reply_empty(request, out).map(|()| {
                server.peer.log_level = level;
                None
            }))
        },
        level: |level, why| LoggingLevel::read(level).or_else(|| why.fail_params(NO_LEVEL)),
    };
}

impl Modern {
    pub(crate) const VTABLE: Modern = Modern {
        terms: modern_terms,
        discover: |server, context, request, terms, why, out| {
            server.whole_or_streamed(context, request, terms, write_discovered, why, out)
        },
    };

    /// The same for a server of these revisions alone: the error for `initialize` names the revisions that it serves.
    pub(crate) const ALONE: Modern = Modern {
        terms: |context, request, why| {
            if request.method == Method::Initialize && !request.envelope.meta.is_modern() {
                let asked = request.envelope.members.protocol_version.and_then(|version| version.text());
                return why.set(RpcError::no_handshake(asked, context.about.revisions));
            }
            modern_terms(context, request, why)
        },
        ..Modern::VTABLE
    };
}

impl Server<'_> {
    /// Serves a request, or refuses it.
    pub(crate) fn request<'a>(
        &mut self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<ServerEvent<'a>>, FullError> {
        let mut why = RpcError::NONE;
        let served = self.serve(context, request, &mut why, out);
        served.unwrap_or_else(|| self.refuse(request, &why, out).map(|()| None))
    }

    fn serve<'a>(
        &mut self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'a>,
        why: &mut RpcError<'a>,
        out: &mut dyn Out,
    ) -> Served<'a> {
        // Not while a reply to the client before goes out in windows.
        if request.method == Method::Initialize
            && self.peer.revision().is_some()
            && !out.held()
            && let Some(reopen) = self.reopen
        {
            reopen(self, None);
        }
        let terms = self.checked_terms(context, request, why, out)?;
        let about = context.about;
        let event = match request.method {
            Method::Initialize => {
                return (about.legacy.or_else(|| why.fail_method())?.initialize)(self, context, request, why, out);
            }
            Method::Discover => {
                return (about.modern.or_else(|| why.fail_method())?.discover)(
                    self, context, request, &terms, why, out,
                );
            }
            Method::Ping => return Some(self.reply_empty(request, out).map(|()| None)),
            Method::SetLevel => (about.logging.or_else(|| why.fail_method())?.set_level)(self, request, why, out)?,
            Method::Subscribe | Method::Unsubscribe | Method::Listen => {
                let code = self.subscribing.or_else(|| why.set(TOO_MANY_SUBSCRIPTIONS))?;
                (code.request)(self, context, request, out).map(|()| None)
            }
            _ => Ok(Some(ServerEvent::Request { token: self.admit(request, &terms, why)? })),
        };
        if event.is_ok() {
            self.peer.mark_initialized();
        }
        Some(event)
    }

    /// Admits a request that the server would answer itself, for a program that answers it with [`respond`](Server::respond) or
    /// [`fail`](Server::fail): one that passes [`Method::is_setting`] on. Its effect comes by
    /// [`set_subscribed`](Server::set_subscribed) and [`Peer::log_level`](super::Peer::log_level). Returns `None` if the request was
    /// refused.
    ///
    /// # Errors
    /// [`FullError::Now`]: nothing has changed. Send the pending bytes and call again with the same message.
    /// [`FullError::Never`]: the sink is too small for the refusal.
    pub fn admit_own(
        &mut self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'_>,
        out: &mut dyn Out,
    ) -> Result<Option<RequestToken>, FullError> {
        let mut why = RpcError::NONE;
        let terms = self.checked_terms(context, request, &mut why, out);
        let Some(token) = terms.and_then(|terms| self.admit(request, &terms, &mut why)) else {
            return self.refuse(request, &why, out).map(|()| None);
        };
        if request.method.is_setting() {
            self.peer.mark_initialized();
        }
        Ok(Some(token))
    }

    /// Returns the terms of a request; `None` if it is refused.
    fn checked_terms<'a>(
        &mut self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'a>,
        why: &mut RpcError<'a>,
        out: &dyn Out,
    ) -> Option<Negotiated> {
        let id = request.id.as_bytes();
        if id.len() > super::ID_MAX {
            return why.set(RpcError::invalid_request(words("Invalid request: the id is too long")).refusing());
        }
        let Some(mut terms) = self.terms(context, request, why) else {
            why.refuses = true;
            return None;
        };
        self.check(context, request, &mut terms, why)?;
        if self.find(id).is_some() || self.has_listen(id) {
            // Not while a reply to the client before goes out in windows.
            let is_freed = !out.held() && self.reopen.is_some_and(|reopen| reopen(self, Some(id)));
            is_freed.then_some(()).or_else(|| why.fail_request("Invalid request: the id is in use"))?;
        }
        Some(terms)
    }

    /// Returns the revision that a request is served under.
    fn terms<'a>(
        &self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'a>,
        why: &mut RpcError<'a>,
    ) -> Option<Negotiated> {
        // A server without 2026-07-28 ignores the `_meta` of that revision and never answers -32022: clients take
        // that code for a sign that the server knows it. A server of 2026-07-28 alone checks every request by its
        // rules.
        let alone = context.about.legacy.is_none();
        let by_itself = alone || request.envelope.meta.is_modern() || context.checks.is_modern();
        if let Some(modern) = context.about.modern.filter(|_| by_itself) {
            return (modern.terms)(context, request, why);
        }
        let is_legacy = request.method.is_of(Era::Legacy);
        let revision = match (self.peer.revision(), request.method) {
            (Some(_), Method::Initialize) if self.reopen.is_none() => {
                return why.fail_request("Invalid request: already initialized");
            }
            (Some(revision), method) if is_legacy || method == Method::Other => revision,
            (None, Method::Initialize | Method::Ping) => Revision::BEFORE_OPENING,
            (None, method) if method != Method::Other && (is_legacy || context.about.modern.is_some()) => {
                return why.fail_params(EITHER_WAY);
            }
            _ => return why.fail_method(),
        };
        Some(Negotiated { revision, client: self.peer.capabilities, level: None })
    }

    /// Checks a request whose revision is known, by the rules for all methods. Sets the level of its log messages.
    fn check(
        &self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'_>,
        terms: &mut Negotiated,
        why: &mut RpcError<'_>,
    ) -> Option<()> {
        let meta = &request.envelope.meta;
        if request.method.gate(terms.revision).is_some_and(|feature| !context.about.has(feature)) {
            return why.fail_method();
        }
        // Also `null`: JSON-RPC omits `params` or structures them.
        if request.envelope.params.is_some_and(|params| object(params).is_none()) {
            return why.fail_params("Invalid params: not an object");
        }
        if meta.progress_token.is_some_and(|token| !is_id(token)) {
            return why.fail_params("Invalid params: progressToken is neither a string nor an integer");
        }
        // A server that does not log ignores the level, as it does unknown members.
        if let Some((level, logging)) = meta.log_level.zip(context.about.logging).filter(|_| terms.revision.is_modern())
        {
            terms.level = Some((logging.level)(level, why)?);
        }
        Some(())
    }

    fn initialize<'a>(
        &mut self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'a>,
        why: &mut RpcError<'a>,
        out: &mut dyn Out,
    ) -> Served<'a> {
        let members = &request.envelope.members;
        let (version, capabilities) = (members.protocol_version.and_then(|v| v.text()), members.capabilities);
        let client = members.client_info.and_then(object);
        // The members inside are not checked: a capability that is not an object counts as absent, and a missing name
        // or version does no harm. Other servers refuse both.
        let (Some(version), Some(capabilities), Some(client)) = (version, capabilities.and_then(object), client) else {
            return why.fail_params("Invalid params: initialize needs protocolVersion, capabilities and clientInfo");
        };
        let asked = Revision::ALL.into_iter().find(|revision| version.eq_str(revision.date()));
        let revision = context.about.revisions.negotiate(asked).or_else(|| why.fail_method())?;
        let terms = Negotiated { revision, client: ClientCapabilities::NONE, level: None };
        let written = self.whole_or_streamed(context, request, &terms, write_initialized, why, out)?;
        Some(written.map(|streaming| {
            self.peer.open(revision, context.about.read_client(capabilities));
            Some(streaming.unwrap_or(ServerEvent::Opened { revision, client: Some(client) }))
        }))
    }

    /// Writes a reply that is always the same: at once if it fits, else in windows.
    fn whole_or_streamed<'a>(
        &mut self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'a>,
        terms: &Negotiated,
        write: WriteReply,
        why: &mut RpcError<'a>,
        out: &mut dyn Out,
    ) -> Served<'a> {
        match whole(out, MessageHead::Result, |out| write(context.about, request.id.as_bytes(), terms.revision, out)) {
            Err(FullError::Never) if WINDOWS => {}
            Err(FullError::Never) => return why.set(RpcError::too_large()),
            done => return Some(done.map(|()| None)),
        }
        let token = self.admit(request, terms, why)?;
        if self.is_crowded() {
            self.forget(token);
            return why.set(OVERLOADED);
        }
        let begun = self.begin_large(token, StreamedReply::of(StreamBody::Reply(write)), out);
        Some(begun.map(|()| Some(ServerEvent::Streaming { token })))
    }

    /// Answers with exactly `{}`: clients of the legacy revisions accept nothing else.
    pub(crate) fn reply_empty(&self, request: &IncomingRequest<'_>, out: &mut dyn Out) -> Result<(), FullError> {
        whole(out, MessageHead::Result, |out| {
            begin(out, request.id.as_bytes(), ",\"result\":{}}");
        })
    }
}

/// Makes the [checks of 2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning), in
/// their order.
fn modern_terms<'a>(
    context: &ServerOptions<'_>,
    request: &IncomingRequest<'a>,
    why: &mut RpcError<'a>,
) -> Option<Negotiated> {
    let (given, members, revisions) = (&request.envelope.meta, &request.envelope.members, context.about.revisions);
    let Some(version) = given.version.and_then(|version| version.text_of(members.plain)) else {
        return why.fail_params("Invalid params: _meta io.modelcontextprotocol/protocolVersion is missing");
    };
    let Some(capabilities) = given.capabilities.and_then(object) else {
        return why.fail_params("Invalid params: _meta io.modelcontextprotocol/clientCapabilities is missing");
    };
    if given.client_info.is_some_and(|client| object(client).is_none()) {
        return why.fail_params("Invalid params: _meta io.modelcontextprotocol/clientInfo is no object");
    }
    why.ok_or_set(context.checks.version(&version))?;
    let served = revisions.of(Era::Modern).find(|revision| version.eq_str(revision.date()));
    let revision = served.or_else(|| why.set(RpcError::unsupported_version(version, revisions)))?;
    let target = members.target(request.method).and_then(|target| target.text_of(members.plain));
    why.ok_or_set(context.checks.routing(&request.name, target.as_ref()))?;
    if request.method != Method::Other && !request.method.is_of(Era::Modern) {
        return why.fail_method();
    }
    Some(Negotiated { revision, client: context.about.read_client(capabilities), level: None })
}

fn write_initialized(about: &ServerInfo<'_>, id: &[u8], revision: Revision, out: &mut Writer<'_>) {
    begin(out, id, ",\"result\":");
    let mut result = Object::open(out);
    result.text("protocolVersion", revision.date());
    about.write_capabilities(result.key("capabilities"), revision);
    about.write_implementation(result.key("serverInfo"), revision);
    result.text_if("instructions", about.instructions);
    result.close();
    out.put(b"}")
}

fn write_discovered(about: &ServerInfo<'_>, id: &[u8], revision: Revision, out: &mut Writer<'_>) {
    begin(out, id, ",\"result\":");
    let mut result = Object::open(out);
    result.fixed("resultType", "\"complete\"");
    crate::error::write_revisions(result.key("supportedVersions"), about.revisions);
    about.write_capabilities(result.key("capabilities"), revision);
    result.text_if("instructions", about.instructions);
    about.caching.write(&mut result);
    let mut meta_object = Object::open(result.key("_meta"));
    about.write_implementation(meta_object.key(meta::SERVER_INFO), revision);
    meta_object.close();
    result.close();
    out.put(b"}")
}
