//! How a request is admitted: era, version, capabilities, in the order that the protocol demands; and the requests
//! that the engine answers itself.

use super::request::{Request, Terms, object};
use super::{About, Engine, Failure, Large, OVERLOADED, Taken, WINDOWS, What, WriteReply};
use crate::json::{Text, object::Object};
use crate::protocol::{ClientFeatures, Level, Method, meta};
use crate::revision::{Era, Revision, Revisions};
use crate::rpc::{begin, is_id};
use crate::sink::{Full, Kind, Out, Writer, whole};
use crate::small::SMALL;

/// What the engine needs to know of the server around it, for one message.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Context<'c> {
    /// What the server says of itself.
    pub about: &'c About<'c>,
    /// Checks that a transport makes in between, see [`Gate`].
    pub gate: &'c dyn Gate,
    /// Whether there is such a resource, for subscribing to it.
    pub has_resource: &'c dyn Fn(&Text<'_>) -> bool,
}

impl<'c> Context<'c> {
    /// No checks in between; any resource may be subscribed to.
    #[must_use]
    pub const fn new(about: &'c About<'c>) -> Self {
        Context { about, gate: &(), has_resource: &|_| true }
    }

    /// With a transport's checks.
    #[must_use]
    pub const fn with_gate(self, gate: &'c dyn Gate) -> Self {
        Context { gate, ..self }
    }
}

impl core::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Context").field("about", self.about).finish_non_exhaustive()
    }
}

/// Checks of a transport that repeats parts of a request outside of it, as the headers of HTTP do. They are called
/// at the places that the protocol's order of checks gives them.
pub trait Gate {
    /// Whether the transport says that the request is of the stateless era.
    fn is_modern(&self) -> bool {
        false
    }

    /// The request's version is `version`: does the transport say the same?
    fn version(&self, version: &Text<'_>) -> Result<(), Failure<'static>> {
        let _ = version;
        Ok(())
    }

    /// The request's method is `method`, what it names is `target`: does the transport say the same?
    fn routing(&self, method: &Text<'_>, target: Option<&Text<'_>>) -> Result<(), Failure<'static>> {
        let _ = (method, target);
        Ok(())
    }

    /// The tool's input schema, and the arguments it is called with: does the transport say the same?
    fn arguments(&self, schema: crate::json::Raw<'_>, arguments: crate::json::Raw<'_>) -> Result<(), Failure<'static>> {
        let _ = (schema, arguments);
        Ok(())
    }
}

impl Gate for () {}

/// Neither in a request's `_meta` nor in `logging/setLevel`.
const NO_LEVEL: &str = "Invalid params: no such log level";

/// Before anything was opened, a known method tells both ways in.
const EITHER_WAY: &str = "Not opened: send initialize first (up to 2025-11-25), or put \
    io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities into _meta (2026-07-28)";

/// What a request came to; `None` if it is refused, for the reason that was put into its place.
type Served<'a> = Option<Result<Option<Taken<'a>>, Full>>;

/// What only the legacy revisions need. It is reached by this alone, so that it is linked only where one is served.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
#[derive(Debug)]
pub(crate) struct Legacy {
    initialize: for<'a> fn(&mut Engine<'_>, &Context<'_>, &Request<'a>, &mut Failure<'a>, &mut dyn Out) -> Served<'a>,
    set_level: for<'a> fn(&mut Engine<'_>, &Request<'a>, &mut Failure<'a>, &mut dyn Out) -> Served<'a>,
}

impl Legacy {
    pub(crate) const CODE: Legacy = Legacy {
        initialize: |engine, context, request, why, out| engine.initialize(context, request, why, out),
        set_level: |engine, request, why, out| engine.set_level(request, why, out),
    };
}

/// What only the stateless revisions need, as [`Legacy`].
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
#[derive(Debug)]
pub(crate) struct Modern {
    terms: for<'a> fn(&Context<'_>, &Request<'a>, &mut Failure<'a>) -> Option<Terms>,
    discover:
        for<'a> fn(&mut Engine<'_>, &Context<'_>, &Request<'a>, &Terms, &mut Failure<'a>, &mut dyn Out) -> Served<'a>,
}

impl Modern {
    pub(crate) const CODE: Modern = Modern {
        terms: modern_terms,
        discover: |engine, context, request, terms, why, out| {
            engine.whole_or_streamed(context, request, terms, write_discovered, why, out)
        },
    };

    /// Where no legacy revision is served: `initialize` is answered with the revisions there are.
    pub(crate) const ALONE: Modern = Modern {
        terms: |context, request, why| {
            if request.method == Method::Initialize && !request.envelope.meta.is_modern() {
                let asked = request.members().protocol_version.and_then(|version| version.text());
                return why.be(Failure::no_handshake(asked, context.about.revisions));
            }
            modern_terms(context, request, why)
        },
        ..Modern::CODE
    };
}

impl Engine<'_> {
    pub(crate) fn request<'a>(
        &mut self,
        context: &Context<'_>,
        request: &Request<'a>,
        out: &mut dyn Out,
    ) -> Result<Option<Taken<'a>>, Full> {
        let mut why = Failure::NONE;
        let served = self.serve(context, request, &mut why, out);
        served.unwrap_or_else(|| self.refuse(request, &why, out).map(|()| None))
    }

    fn serve<'a>(
        &mut self,
        context: &Context<'_>,
        request: &Request<'a>,
        why: &mut Failure<'a>,
        out: &mut dyn Out,
    ) -> Served<'a> {
        if request.id.as_bytes().len() > super::ID_MAX {
            return why.be(Failure::invalid_request("Invalid request: the id is too long").refusing());
        }
        // Not in the middle of what is written to the client before.
        if request.method == Method::Initialize
            && self.peer.revision.is_some()
            && !out.held()
            && let Some(reopen) = self.reopen
        {
            reopen(self);
        }
        let Some(terms) = self.terms(context, request, why) else {
            why.refuses = true;
            return None;
        };
        let terms = self.check(context, request, terms, why)?;
        let event = match request.method {
            Method::Initialize => match context.about.legacy {
                Some(legacy) => return (legacy.initialize)(self, context, request, why, out),
                None => Ok(None),
            },
            Method::Discover => match context.about.modern {
                Some(modern) => return (modern.discover)(self, context, request, &terms, why, out),
                None => Ok(None),
            },
            Method::Ping => self.reply_empty(request, out).map(|()| None),
            Method::SetLevel => match context.about.legacy {
                Some(legacy) => (legacy.set_level)(self, request, why, out)?,
                None => Ok(None),
            },
            Method::Subscribe | Method::Unsubscribe | Method::Listen => {
                self.subscribing(context, request, why, out)?.map(|()| None)
            }
            _ => Ok(Some(Taken::Request { token: self.admit(request, &terms, why)? })),
        };
        if event.is_ok() && self.peer.revision.is_some() && request.method != Method::Ping {
            // Clients that never say `initialized` are as good as those that do.
            self.peer.initialized = true;
        }
        Some(event)
    }

    /// Under which revision a request is served.
    fn terms<'a>(&self, context: &Context<'_>, request: &Request<'a>, why: &mut Failure<'a>) -> Option<Terms> {
        // Where no stateless revision is served, its `_meta` means nothing, and nothing may look as if it did: clients
        // take -32022 for a sign of that era. Where no other one is served, everything is measured by it.
        let serves_modern = context.about.modern.is_some();
        let alone = context.about.legacy.is_none();
        if alone || request.envelope.meta.is_modern() || context.gate.is_modern() {
            match context.about.modern {
                // Where room does not count it is called without the detour.
                Some(_) if !SMALL && !alone => return modern_terms(context, request, why),
                Some(modern) => return (modern.terms)(context, request, why),
                None => {}
            }
        }
        let terms = |revision| Terms { revision, client: self.peer.client, level: None };
        match (self.peer.revision, request.method) {
            (Some(_), Method::Initialize) if self.reopen.is_none() => {
                why.be_request("Invalid request: already initialized")
            }
            (Some(revision), Method::Other) => Some(terms(revision)),
            (Some(revision), method) if method.is_of(Era::Legacy) => Some(terms(revision)),
            (None, Method::Initialize | Method::Ping) => Some(terms(Revision::V2024_11_05)),
            (None, Method::Other) | (Some(_), _) => why.be_method(),
            (None, method) if !serves_modern && !method.is_of(Era::Legacy) => why.be_method(),
            (None, _) => why.be_params(EITHER_WAY),
        }
    }

    /// What any request must fulfil, after its terms are known.
    fn check<'a>(
        &self,
        context: &Context<'_>,
        request: &Request<'a>,
        terms: Terms,
        why: &mut Failure<'a>,
    ) -> Option<Terms> {
        if request.method.gate(terms.revision).is_some_and(|feature| !context.about.has(feature)) {
            return why.be_method();
        }
        // `null` as well: JSON-RPC leaves `params` out or structures them, and most other servers do not answer it.
        if request.params().is_some_and(|params| object(params).is_none()) {
            return why.be_params("Invalid params: not an object");
        }
        if request.envelope.meta.progress_token.is_some_and(|token| !is_id(token)) {
            return why.be_params("Invalid params: progressToken is neither a string nor an integer");
        }
        let level = request.envelope.meta.log_level.filter(|_| terms.revision.is_modern());
        let terms = match level {
            None => terms,
            Some(level) => {
                let level = Level::read(level).or_else(|| why.be_params(NO_LEVEL))?;
                Terms { level: Some(level), ..terms }
            }
        };
        let id = request.id.as_bytes();
        if self.find(id).is_some() || self.has_listen(id) {
            return why.be_request("Invalid request: the id is in use");
        }
        Some(terms)
    }

    fn initialize<'a>(
        &mut self,
        context: &Context<'_>,
        request: &Request<'a>,
        why: &mut Failure<'a>,
        out: &mut dyn Out,
    ) -> Served<'a> {
        let members = request.members();
        let (version, capabilities) = (members.protocol_version.and_then(|v| v.text()), members.capabilities);
        let client = members.client_info.and_then(object);
        // What is within them is the client's: capabilities that are no objects count as none, and a name or version that
        // is missing does no harm here. Other servers refuse both.
        let (Some(version), Some(capabilities), Some(client)) = (version, capabilities.and_then(object), client) else {
            return why.be_params("Invalid params: initialize needs protocolVersion, capabilities and clientInfo");
        };
        let asked = Revision::ALL.into_iter().find(|revision| version.is(revision.date()));
        let Some(revision) = context.about.revisions.negotiate(asked) else {
            // Only the stateless revisions are served here.
            return why.be_method();
        };
        let terms = Terms { revision, client: ClientFeatures::NONE, level: None };
        let written = self.whole_or_streamed(context, request, &terms, write_initialized, why, out)?;
        Some(written.map(|streaming| {
            self.peer.revision = Some(revision);
            self.peer.client = ClientFeatures::read(capabilities);
            Some(streaming.unwrap_or(Taken::Opened { revision, client: Some(client) }))
        }))
    }

    /// Writes a reply that is always the same: at once if it fits, else in windows.
    fn whole_or_streamed<'a>(
        &mut self,
        context: &Context<'_>,
        request: &Request<'a>,
        terms: &Terms,
        write: WriteReply,
        why: &mut Failure<'a>,
        out: &mut dyn Out,
    ) -> Served<'a> {
        match whole(out, Kind::Result, |out| write(context.about, request.id.as_bytes(), terms.revision, out)) {
            Err(Full::Never) if WINDOWS => {}
            Err(Full::Never) => return why.be(Failure::too_large()),
            done => return Some(done.map(|()| None)),
        }
        let token = self.admit(request, terms, why)?;
        if self.is_crowded() {
            self.close(token);
            return why.be(OVERLOADED);
        }
        let begun = self.begin_large(token, Large::of(What::Reply(write)), out);
        Some(begun.map(|()| Some(Taken::Streaming { token })))
    }

    fn set_level<'a>(&mut self, request: &Request<'a>, why: &mut Failure<'a>, out: &mut dyn Out) -> Served<'a> {
        let level = request.members().level.and_then(Level::read);
        let level = level.or_else(|| why.be_params(NO_LEVEL))?;
        Some(self.reply_empty(request, out).map(|()| {
            self.peer.level = level;
            None
        }))
    }

    /// Exactly `{}`: clients of the legacy revisions accept nothing else.
    pub(crate) fn reply_empty(&self, request: &Request<'_>, out: &mut dyn Out) -> Result<(), Full> {
        whole(out, Kind::Result, |out| {
            begin(out, request.id.as_bytes(), ",\"result\":{}}");
            Ok(())
        })
    }
}

/// The checks of 2026-07-28, in their order.
fn modern_terms<'a>(context: &Context<'_>, request: &Request<'a>, why: &mut Failure<'a>) -> Option<Terms> {
    let given = &request.envelope.meta;
    let Some(version) = given.version.and_then(|version| version.text_of(request.envelope.members.plain)) else {
        return why.be_params("Invalid params: _meta io.modelcontextprotocol/protocolVersion is missing");
    };
    let Some(capabilities) = given.capabilities.and_then(object) else {
        return why.be_params("Invalid params: _meta io.modelcontextprotocol/clientCapabilities is missing");
    };
    if given.client_info.is_some_and(|client| object(client).is_none()) {
        return why.be_params("Invalid params: _meta io.modelcontextprotocol/clientInfo is no object");
    }
    why.unless(context.gate.version(&version))?;
    let revision = served(&version, context.about.revisions, why)?;
    why.unless(context.gate.routing(&request.name, target(request).as_ref()))?;
    if request.method != Method::Other && !request.method.is_of(Era::Modern) {
        return why.be_method();
    }
    Some(Terms { revision, client: ClientFeatures::read(capabilities), level: None })
}

/// The revision of that name, if it is served without a handshake.
fn served<'a>(version: &Text<'a>, revisions: Revisions, why: &mut Failure<'a>) -> Option<Revision> {
    let known = revisions.of(Era::Modern).find(|revision| version.is(revision.date()));
    known.or_else(|| why.be(Failure::unsupported_version(*version, revisions)))
}

/// What a request names, as transports repeat it: only what is a string.
fn target<'a>(request: &Request<'a>) -> Option<Text<'a>> {
    let members = request.members();
    members.target(request.method)?.text_of(members.plain)
}

pub(crate) fn write_initialized(
    about: &About<'_>,
    id: &[u8],
    revision: Revision,
    out: &mut Writer<'_>,
) -> Result<(), Full> {
    begin(out, id, ",\"result\":");
    let mut result = Object::open(out);
    result.text("protocolVersion", revision.date())?;
    about.write_capabilities(result.key("capabilities"), revision)?;
    about.write_implementation(result.key("serverInfo"), revision)?;
    result.text_if("instructions", about.instructions)?;
    result.close()?;
    out.put(b"}")
}

pub(crate) fn write_discovered(
    about: &About<'_>,
    id: &[u8],
    revision: Revision,
    out: &mut Writer<'_>,
) -> Result<(), Full> {
    begin(out, id, ",\"result\":");
    let mut result = Object::open(out);
    result.fixed("resultType", "\"complete\"")?;
    super::failure::write_revisions(result.key("supportedVersions"), about.revisions)?;
    about.write_capabilities(result.key("capabilities"), revision)?;
    result.text_if("instructions", about.instructions)?;
    about.caching.write(&mut result)?;
    let mut meta_object = Object::open(result.key("_meta"));
    about.write_implementation(meta_object.key(meta::SERVER_INFO), revision)?;
    meta_object.close()?;
    result.close()?;
    out.put(b"}")
}
