//! The caller of a message, and the demands of an entry on it: lists that differ by caller.
//!
//! A program without such entries is linked without this code: builder methods reach it through the field `hooks` of [`Service`].

use core::cell::Cell;

use crate::json::Raw;
use crate::protocol::{ClientCapabilities, meta};
use crate::revision::Revision;
use crate::server::{RequestSlot, Scope, Server, ServerId, TransportChecks};

/// The client that asks, for a [`Visibility`] and for lists that are made at run time. Take the user from
/// [`principal`](Caller::principal) and [`scopes`](Caller::scopes) only: the client says the rest of itself.
///
/// A list whose functions have called a method of it depends on the caller: its `cacheScope` is `private` then.
#[derive(Clone, Copy)]
pub struct Caller<'c> {
    principal: Option<&'c str>,
    scopes: u64,
    server: ServerId,
    scope: Scope,
    client: ClientCapabilities,
    meta: Option<Raw<'c>>,
    revision: Revision,
    /// A method was called.
    asked: Option<&'c Cell<bool>>,
}

impl<'c> Caller<'c> {
    /// For programs whose entries are the same for all: nothing looks at it.
    pub(crate) const NOBODY: Caller<'static> = Caller {
        principal: None,
        scopes: 0,
        server: ServerId::NONE,
        scope: Scope(0),
        client: ClientCapabilities::NONE,
        meta: None,
        revision: Revision::BEFORE_OPENING,
        asked: None,
    };

    /// Returns the caller of a message that the server has not admitted yet.
    pub(crate) fn new(origin: &MessageSource<'c>, meta: Option<Raw<'c>>, server: &Server<'_>) -> Self {
        let peer = &server.peer;
        Caller {
            principal: origin.principal,
            scopes: server.caller_scopes,
            server: server.id(),
            scope: server.scope(),
            client: peer.capabilities,
            meta,
            revision: peer.revision().unwrap_or(Revision::LATEST),
            asked: None,
        }
    }

    /// Returns the caller of a request that was admitted before, and has been allowed what it does.
    pub(crate) fn admitted(
        principal: Option<&'c str>,
        meta: Option<Raw<'c>>,
        server: ServerId,
        slot: &RequestSlot,
    ) -> Self {
        Caller { principal, scopes: u64::MAX, server, meta, ..Caller::NOBODY }.of(slot)
    }

    /// Adds what the server has noted of its request.
    pub(crate) const fn of(self, slot: &RequestSlot) -> Self {
        Caller { scope: slot.scope, client: slot.client, revision: slot.revision, ..self }
    }

    /// Notes in `asked` that a method was called.
    pub(crate) const fn noting<'n>(self, asked: &'n Cell<bool>) -> Caller<'n>
    where
        'c: 'n,
    {
        Caller { asked: Some(asked), ..self }
    }

    /// Returns whether it came over a line, where all clients are the same user.
    pub(crate) fn is_of_line(&self) -> bool {
        self.principal.is_none() && self.scopes == u64::MAX
    }

    fn note(&self) {
        if let Some(asked) = self.asked {
            asked.set(true);
        }
    }

    /// Returns the authenticated user, if the transport knows one.
    #[must_use]
    pub fn principal(&self) -> Option<&'c str> {
        self.note();
        self.principal
    }

    /// Returns the scopes that the user has granted, one bit each in an order of the application's
    /// ([`Server::caller_scopes`]). On a line, and in a handler that runs again, all.
    #[must_use]
    pub fn scopes(&self) -> u64 {
        self.note();
        self.scopes
    }

    /// Returns the server, see [`RequestContext::server`](super::RequestContext::server).
    #[must_use]
    pub fn server(&self) -> ServerId {
        self.note();
        self.server
    }

    /// Returns the session, see [`RequestContext::scope`](super::RequestContext::scope).
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.note();
        self.scope
    }

    /// Returns the capabilities that the client declared; none without the feature `ask`.
    #[must_use]
    pub fn client(&self) -> ClientCapabilities {
        self.note();
        self.client
    }

    /// Returns `clientInfo` of the request (2026-07-28), as the client says it. Up to 2025-11-25 it is in `initialize`, and `None`
    /// here.
    #[doc(alias = "clientInfo")]
    #[must_use]
    pub fn client_info(&self) -> Option<Raw<'c>> {
        self.note();
        self.meta?.get(meta::CLIENT_INFO)
    }

    /// Returns the protocol revision of the request.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.note();
        self.revision
    }
}

impl core::fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Caller { principal, scopes, scope, revision, .. } = self;
        let mut shown = f.debug_struct("Caller");
        shown.field("principal", principal).field("scopes", scopes).field("scope", scope).field("revision", revision);
        shown.finish_non_exhaustive()
    }
}

/// The demands of an entry of a constant table on its caller: [`Tool::visible`](super::Tool::visible) and its like.
///
/// A caller that an entry is *hidden* from does not see it in a list, and gets the answer of a name that does not exist when it
/// calls, reads, gets, completes or subscribes to it. An entry that *challenges* is in the list of everybody; a caller without
/// its scopes is refused when it uses it, over HTTP with 403 and a challenge by which it can get them.
///
/// ```
/// use mcp_sansio::service::{Call, HandlerResult, Service, Tool, Visibility};
///
/// struct Site {
///     owner: &'static str,
/// }
/// /// The bits of the scopes, in the order of the application's.
/// const WRITE: u64 = 1 << 1;
///
/// fn show(_: &mut Site, call: &mut Call<'_>) -> HandlerResult {
///     call.text("here it is")
/// }
/// static TOOLS: [Tool<Site>; 4] = [
///     Tool::new("show", "Shows it", show),
///     Tool::new("change", "Changes it", show).visible(&Visibility::scopes(WRITE)),
///     Tool::new("publish", "Publishes it", show).visible(&Visibility::challenge(WRITE)),
///     Tool::new("sell", "Sells it", show).visible(&Visibility::when(|site, caller| caller.principal() == Some(site.owner))),
/// ];
/// let service = Service::new("site", "1.0").tools(&TOOLS);
/// # let _ = service;
/// ```
#[must_use]
pub struct Visibility<S: 'static> {
    pub(crate) scopes: u64,
    pub(crate) challenges: bool,
    when: Option<fn(&S, &Caller<'_>) -> bool>,
}

impl<S> Visibility<S> {
    /// Hides the entry from callers without all of these [scopes](Caller::scopes).
    pub const fn scopes(bits: u64) -> Self {
        Visibility { scopes: bits, challenges: false, when: None }
    }

    /// Shows the entry to all callers, and refuses its use to those without all of these [scopes](Caller::scopes). Over HTTP
    /// the application answers first, see `App::permit` of `mcp-sansio-http`; else it is error -32600.
    pub const fn challenge(bits: u64) -> Self {
        Visibility { scopes: bits, challenges: true, when: None }
    }

    /// Hides the entry from callers for which the function returns `false`. It must not block.
    pub const fn when(visible: fn(&S, &Caller<'_>) -> bool) -> Self {
        Visibility { scopes: 0, challenges: false, when: Some(visible) }
    }

    /// Hides the entry also from callers for which the function returns `false`.
    pub const fn and(self, visible: fn(&S, &Caller<'_>) -> bool) -> Self {
        Visibility { when: Some(visible), ..self }
    }

    /// Returns whether the caller has its scopes.
    pub(crate) fn has_scopes(&self, caller: &Caller<'_>) -> bool {
        self.scopes == 0 || self.scopes & !caller.scopes() == 0
    }

    /// Returns whether it shows the entry to the caller.
    pub(crate) fn shows(&self, state: &S, caller: &Caller<'_>) -> bool {
        (self.challenges || self.has_scopes(caller)) && self.when.is_none_or(|visible| visible(state, caller))
    }
}

impl<S> core::fmt::Debug for Visibility<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Visibility { scopes, challenges, .. } = self;
        f.debug_struct("Visibility").field("scopes", scopes).field("challenges", challenges).finish_non_exhaustive()
    }
}

/// Returns whether an entry without or with a visibility is shown.
pub(crate) fn is_shown<S>(visibility: Option<&Visibility<S>>, state: &S, caller: &Caller<'_>) -> bool {
    visibility.is_none_or(|visibility| visibility.shows(state, caller))
}

/// The source of a message: the knowledge of its transport.
#[derive(Clone, Copy)]
#[non_exhaustive]
#[must_use]
pub struct MessageSource<'o> {
    /// The checks of the transport.
    pub checks: &'o dyn TransportChecks,
    /// The authenticated user.
    pub principal: Option<&'o str>,
    /// The caller of the message, if there are entries that differ by caller.
    caller: Option<&'o Caller<'o>>,
}

impl<'o> MessageSource<'o> {
    /// A line: there are no checks and no user.
    pub const LINE: MessageSource<'static> = MessageSource::new(&());

    /// Makes the source of messages of a transport with checks.
    pub const fn new(checks: &'o dyn TransportChecks) -> Self {
        MessageSource { checks, principal: None, caller: None }
    }

    /// Sets the authenticated user, if the transport knows one.
    pub const fn principal(self, principal: Option<&'o str>) -> Self {
        MessageSource { principal, ..self }
    }

    pub(crate) const fn of<'c>(&self, caller: &'c Caller<'c>) -> MessageSource<'c>
    where
        'o: 'c,
    {
        MessageSource { caller: Some(caller), ..*self }
    }

    /// Returns the caller, for entries that differ by caller.
    pub(crate) fn caller(&self) -> &Caller<'o> {
        self.caller.unwrap_or(&Caller::NOBODY)
    }
}

crate::debug_fields!(impl for MessageSource<'_> { principal });
