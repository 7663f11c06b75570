//! The client: one step at a time from a request that was rejected to a token.
//!
//! An [`Authorization`] belongs to one server. A turn of the program around it:
//!
//! 1. Before a message goes out, call [`prepare`](Authorization::prepare), which refreshes a token that ends soon; for
//!    each request that is written, take the headers from [`credentials`](Authorization::credentials).
//! 2. For each answer, call [`answered`](Authorization::answered). For a 401 or 403 call
//!    [`rejected`](Authorization::rejected) instead; it says whether to send again at once, to go through steps, or to
//!    give up. Messages that are rejected meanwhile wait for the same steps.
//! 3. Carry out each [`step`](Authorization::step): a [`FetchStep`] ends in [`fetched`](Authorization::fetched) or
//!    [`fetch_failed`](Authorization::fetch_failed), a visit in [`redirected`](Authorization::redirected),
//!    [`cancel`](Authorization::cancel) or [`expire`](Authorization::expire). After [`Step::Retry`] all messages that wait go out again; after
//!    [`Step::Refused`] they fail.
//! 4. When [`store_changed`](Authorization::store_changed) returns `true`, keep [`store`](Authorization::store).
//!
//! The hooks of an `HttpClient` of mcp-sansio-http, after `HttpClient::sign_heads`, call `prepare` and `credentials` in `sending`,
//! `answered` in `accepted`, and `rejected` in `challenged`; then comes `HttpClient::retry` or `give_up`. Its `Fetch` carries out a
//! fetch.
//!
//! A whole flow, with the answers of both servers written out:
//!
//! ```
//! use mcp_sansio_auth::{
//!     Authorization, AuthorizationConfig, CredentialStore, Environment, Outcome, Rejection, Response, Step,
//! };
//!
//! /// What an HTTP client would fetch.
//! fn answer(url: &str) -> &'static str {
//!     match url {
//!         "https://example.com/.well-known/oauth-protected-resource/mcp" => {
//!             r#"{"resource":"https://example.com/mcp","authorization_servers":["https://as.example"]}"#
//!         }
//!         "https://as.example/.well-known/oauth-authorization-server" => {
//!             r#"{"issuer":"https://as.example","authorization_endpoint":"https://as.example/authorize",
//!                 "token_endpoint":"https://as.example/token","registration_endpoint":"https://as.example/register",
//!                 "code_challenge_methods_supported":["S256"]}"#
//!         }
//!         "https://as.example/register" => r#"{"client_id":"c1"}"#,
//!         _ => r#"{"access_token":"t1","token_type":"Bearer","expires_in":3600}"#,
//!     }
//! }
//!
//! let config = AuthorizationConfig::new("demo", "http://127.0.0.1:8976/callback");
//! let mut flow = Authorization::new(config, "https://example.com/mcp", CredentialStore::new())?;
//! let mut random = |bytes: &mut [u8]| bytes.fill(7); // better: secure random bytes
//! let mut env = Environment::new(1_700_000_000, &mut random);
//!
//! // The server has answered 401.
//! assert_eq!(flow.rejected(&Rejection::new(401, &["Bearer"]), &mut env), Outcome::Wait);
//! loop {
//!     match flow.step() {
//!         Step::Fetch(fetch) => {
//!             let body = answer(&fetch.url);
//!             flow.fetched(&Response::new(200, body.as_bytes()), &mut env);
//!         }
//!         Step::Visit { url } => {
//!             // A browser opens it, and comes back to the redirect URI.
//!             let state = url.split("state=").nth(1).and_then(|rest| rest.split('&').next()).expect("it has a state");
//!             let back = format!("/callback?code=xyz&state={state}");
//!             flow.redirected(&back, &mut env)?;
//!         }
//!         Step::Refused(error) => return Err(error),
//!         _ => break,
//!     }
//! }
//! let credentials = flow.credentials("POST", "https://example.com/mcp", &mut env)?;
//! assert_eq!(credentials.authorization.as_deref(), Some("Bearer t1"));
//! # Ok::<(), mcp_sansio_auth::AuthorizationError>(())
//! ```

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem::take;

use mcp_sansio_http::client::Url;

use crate::client::config::{AuthorizationConfig, GrantType, IdentityProvider, Secret};
use crate::client::demand::Demand;
use crate::client::error::{AuthorizationError, Document, FetchFailure, Mismatch, shown};
use crate::client::metadata::{IntoSome, Members, ResourceMetadata, ServerMetadata, includes, resource_places, unite};
use crate::client::registration::{self, Client};
use crate::client::requests::{
    self, ID_JAG, JWT_BEARER, OFFLINE_ACCESS, is_json, origin_of, proof, refusal, same_origin, seconds, thumbprint,
};
use crate::client::state::{Flow, Origin, State};
use crate::client::steps::{Credentials, Environment, FetchStep, Outcome, Rejection, Response, Step};
use crate::client::store::{CredentialStore, Registration, Token, is_sendable};
use crate::client::well_known::{inserted, origin, server_places};
use crate::form::{decode, fields};
use crate::jose::Signer;
use crate::pkce::{Base64Of32, CodeVerifier};
use crate::time::UnixSeconds;
use crate::url::{acceptable, is_resource_of};

/// Most operations whose step-ups are counted.
const OPERATIONS: usize = 64;
/// Most times in a row that a server may ask for another nonce.
const NONCES: u8 = 3;
/// Seconds after which a token counts as accepted, whether the adapter has reported that or not.
const SETTLED: u64 = 60;

/// The way to a token for one server. The [module](self) shows the program around it.
#[derive(Debug)]
pub struct Authorization {
    config: AuthorizationConfig,
    /// The URL of the server.
    server: String,
    store: CredentialStore,
    store_changed: bool,
    /// Counts the credentials.
    generation: u32,
    origin: Origin,
    /// The token went out since it was obtained.
    is_used: bool,
    state: State,
    flow: Flow,
    /// The request of the state.
    fetch: Option<FetchStep>,
    error: Option<AuthorizationError>,
    /// The newest nonce of the server.
    nonce: Option<String>,
    /// Number of nonces that the server asked for in a row.
    nonces: u8,
    /// The newest nonce of an authorization server, and its origin.
    issuer_nonce: Option<(String, String)>,
    /// Operations and their step-ups.
    step_ups: Vec<(String, u8)>,
}

/// The result of a step: an error ends the flow.
type Next = Result<(), AuthorizationError>;

impl Authorization {
    /// Makes an authorization for the server at `server`, with the registrations and tokens of earlier runs.
    ///
    /// # Errors
    /// [`AuthorizationError::Url`] if the server's URL or the redirect URI is not acceptable: it must be `https`, or `http`
    /// on this machine.
    pub fn new(config: AuthorizationConfig, server: &str, store: CredentialStore) -> Result<Self, AuthorizationError> {
        let check = |member, text: &str| {
            acceptable(text, text).map(|_| ()).map_err(|reason| AuthorizationError::Url { member, reason })
        };
        check("server", server)?;
        if !config.redirect_uri.is_empty() {
            check("redirect_uri", &config.redirect_uri)?;
        }
        Ok(Authorization {
            config,
            server: server.into(),
            generation: u32::from(store.has_token(server)),
            store,
            store_changed: false,
            origin: Origin::Trusted,
            is_used: true,
            state: State::Idle,
            flow: Flow::default(),
            fetch: None,
            error: None,
            nonce: None,
            nonces: 0,
            issuer_nonce: None,
            step_ups: Vec::new(),
        })
    }

    /// Returns registrations and tokens.
    #[must_use]
    pub const fn store(&self) -> &CredentialStore {
        &self.store
    }

    /// Returns whether the [`store`](Self::store) has changed since the last call.
    pub fn store_changed(&mut self) -> bool {
        take(&mut self.store_changed)
    }

    /// Returns whether the current step sends a refresh token, which is good once at many authorization servers. If several
    /// processes have one [`store`](Self::store), lock the place where it stays until the answer is saved, read it, and call
    /// [`adopt`](Self::adopt) before the step.
    #[must_use]
    pub fn is_refreshing(&self) -> bool {
        self.state == State::Refreshing
    }

    /// Takes a store that another process has saved, if this one [is refreshing](Self::is_refreshing) and the store has another
    /// token for the server. The refresh is over then: the next step is [`Step::Retry`]. Returns whether it was taken.
    pub fn adopt(&mut self, store: CredentialStore) -> bool {
        let theirs = store.token(&self.server);
        if !self.is_refreshing() || theirs.is_none() || theirs == self.store.token(&self.server) {
            return false;
        }
        self.store = store;
        self.fetch = None;
        self.generation = self.generation.wrapping_add(1).max(1);
        // It may be old. If the server refuses it, it is refreshed.
        self.origin = Origin::Trusted;
        self.state.enter("token, or the early refresh failed", State::Done);
        true
    }

    /// Returns the credentials for a request to `url`, which must have the origin of the server. Call it for each request
    /// that is written, repeats included: a proof of possession is for one request.
    ///
    /// # Errors
    /// [`AuthorizationError::OtherOrigin`] for another URL, [`AuthorizationError::Sign`] if the key cannot be used.
    pub fn credentials(
        &mut self,
        method: &str,
        url: &str,
        env: &mut Environment<'_>,
    ) -> Result<Credentials, AuthorizationError> {
        let server = Url::parse(&self.server).ok();
        if !server.zip(Url::parse(url).ok()).is_some_and(|(server, url)| server.is_same_origin(&url)) {
            return Err(AuthorizationError::OtherOrigin);
        }
        self.drop_foreign_token(env);
        let Some(token) = self.store.token(&self.server) else {
            return Ok(Credentials { generation: 0, authorization: None, dpop: None });
        };
        let text = token.access_token.expose();
        let (authorization, dpop) = match env.dpop_key.filter(|_| !token.jkt.is_empty()) {
            Some(key) => {
                let proof = proof(method, url, Some(text), self.nonce.as_deref(), key, env)?;
                (alloc::format!("DPoP {text}"), Some(proof))
            }
            None => (alloc::format!("Bearer {text}"), None),
        };
        self.is_used = true;
        Ok(Credentials { generation: self.generation, authorization: Some(authorization), dpop })
    }

    /// Forgets a token that is bound to another key than the present one.
    fn drop_foreign_token(&mut self, env: &Environment<'_>) {
        let is_foreign =
            |token: &&Token| !token.jkt.is_empty() && env.dpop_key.and_then(thumbprint).as_ref() != Some(&token.jkt);
        if self.store.token(&self.server).filter(is_foreign).is_some() {
            self.store.forget(&self.server);
            self.store_changed = true;
        }
    }

    /// Prepares for a message: begins to refresh a token that ends soon. [`Outcome::Wait`] means that there are steps to
    /// carry out first.
    pub fn prepare(&mut self, env: &mut Environment<'_>) -> Outcome {
        if self.state != State::Idle {
            return Outcome::Wait;
        }
        self.drop_foreign_token(env);
        let early = self.config.limits.early;
        let ends_soon = |token: &Token| {
            // Not before half of its lifetime, so never before a clock that was set back is at `obtained_at` again.
            let lifetime = token.expires_at?.checked_sub(token.obtained_at)?;
            Some(env.now >= token.expires_at?.saturating_sub(early.min(lifetime / 2)))
        };
        let is_due = self.is_used && self.store.token(&self.server).and_then(ends_soon) == Some(true);
        if !is_due || !self.refresh(Demand::default(), true, env) {
            return Outcome::Retry;
        }
        Outcome::Wait
    }

    /// Takes note of an answer that is neither 401 nor 403: its credentials were good, and it may have a nonce.
    pub fn answered(&mut self, generation: u32, dpop_nonce: Option<&str>) {
        self.keep_nonce(dpop_nonce);
        if generation != 0 && generation == self.generation {
            self.origin = Origin::Trusted;
            self.nonces = 0;
        }
    }

    fn keep_nonce(&mut self, nonce: Option<&str>) {
        if let Some(nonce) = nonce.filter(|nonce| is_sendable(nonce)) {
            self.nonce = Some(nonce.to_string());
        }
    }

    /// Begins the way to a token because a request was rejected.
    pub fn rejected(&mut self, rejection: &Rejection<'_>, env: &mut Environment<'_>) -> Outcome {
        self.keep_nonce(rejection.dpop_nonce);
        if self.state != State::Idle {
            return Outcome::Wait;
        }
        self.drop_foreign_token(env);
        let demand = match Demand::read(rejection.www_authenticate) {
            Ok(demand) => demand,
            Err(error) => return Outcome::Refused(AuthorizationError::Challenge(error)),
        };
        let token = self.store.token(&self.server);
        let is_current = token.is_some() && rejection.generation == self.generation;
        match rejection.status {
            401 if token.is_some() && !is_current => Outcome::Retry,
            401 if demand.error == "use_dpop_nonce" || demand.error == "invalid_dpop_proof" => {
                if rejection.dpop_nonce.is_none() || self.nonces == NONCES {
                    return Outcome::Refused(AuthorizationError::ProofRejected);
                }
                self.nonces += 1;
                Outcome::Retry
            }
            401 if is_current => self.token_rejected(demand, env),
            401 => self.begin(demand, env),
            403 => self.scopes_missing(demand, rejection, env),
            _ => Outcome::Refused(AuthorizationError::Forbidden),
        }
    }

    /// The server refuses the current token.
    fn token_rejected(&mut self, demand: Demand, env: &mut Environment<'_>) -> Outcome {
        let token = self.store.token(&self.server);
        let is_settled = token.is_some_and(|token| {
            let end = token.expires_at.filter(|end| *end > token.obtained_at);
            env.now > token.obtained_at.saturating_add(SETTLED) || end.is_some_and(|end| env.now >= end)
        });
        let is_unheard = |origin| self.origin == origin && !is_settled;
        if is_unheard(Origin::New) {
            return Outcome::Refused(AuthorizationError::TokenRejected);
        }
        if !is_unheard(Origin::Refreshed) && self.refresh(demand.clone(), false, env) {
            return Outcome::Wait;
        }
        self.begin(demand, env)
    }

    /// The server answered 403.
    fn scopes_missing(&mut self, demand: Demand, rejection: &Rejection<'_>, env: &mut Environment<'_>) -> Outcome {
        if demand.error != "insufficient_scope" || demand.scope.is_empty() {
            return Outcome::Refused(AuthorizationError::Forbidden);
        }
        let scope = self.store.token(&self.server).map_or("", |token| &token.scope);
        if includes(scope, &demand.scope) {
            // The scopes came after this request had gone out, or they were not granted.
            let is_old = rejection.generation != self.generation;
            return if is_old { Outcome::Retry } else { Outcome::Refused(AuthorizationError::ScopesNotGranted) };
        }
        let limit = self.config.limits.step_ups;
        let known = self.step_ups.iter_mut().find(|(operation, _)| operation == rejection.operation);
        match known {
            Some((_, count)) if *count >= limit => return Outcome::Refused(AuthorizationError::TooManyStepUps),
            Some((_, count)) => *count += 1,
            None if limit == 0 => return Outcome::Refused(AuthorizationError::TooManyStepUps),
            None => {
                if self.step_ups.len() == OPERATIONS {
                    self.step_ups.remove(0);
                }
                self.step_ups.push((rejection.operation.to_string(), 1));
            }
        }
        self.begin(demand, env)
    }

    /// Returns the next step. It stays the same until it is answered, except [`Step::Retry`] and [`Step::Refused`], which are
    /// returned once.
    pub fn step(&mut self) -> Step<'_> {
        match self.state {
            State::Idle => Step::Idle,
            State::Visiting => Step::Visit { url: &self.flow.visit },
            State::Done => {
                self.state.enter("seen", State::Idle);
                self.flow = Flow::default();
                Step::Retry
            }
            State::Refused => {
                self.state.enter("seen", State::Idle);
                self.flow = Flow::default();
                Step::Refused(self.error.take().unwrap_or(AuthorizationError::Cancelled))
            }
            _ => self.fetch.as_ref().map_or(Step::Idle, Step::Fetch),
        }
    }

    /// Continues with the answer to the [`FetchStep`] of the current step.
    pub fn fetched(&mut self, response: &Response<'_>, env: &mut Environment<'_>) {
        let Some(fetch) = self.fetch.take() else { return };
        let next = match self.state {
            _ if response.body.len() > self.config.limits.document => {
                return self.not_fetched(FetchFailure::TooLarge, env);
            }
            State::ResourceMetadata | State::ServerMetadata => self.metadata_fetched(&fetch, response, env),
            State::Registering => self.registered(response, env),
            State::Exchanging => self.exchanged(response, env),
            State::Revoking if response.status == 200 => {
                self.state.enter("revoked", State::Done);
                Ok(())
            }
            State::Revoking => Err(refusal(Document::Revocation, response)),
            _ => self.token_fetched(&fetch, response, env),
        };
        self.end_if_wrong(next);
    }

    /// Continues without an answer to the [`FetchStep`] of the current step.
    pub fn fetch_failed(&mut self, failure: FetchFailure, env: &mut Environment<'_>) {
        if self.fetch.take().is_some() {
            self.not_fetched(failure, env);
        }
    }

    fn not_fetched(&mut self, failure: FetchFailure, env: &mut Environment<'_>) {
        let document = self.document();
        let error = AuthorizationError::Unavailable { document, failure };
        let next = match self.state {
            State::ResourceMetadata | State::ServerMetadata => {
                self.flow.is_absent = false;
                self.place_failed(error, env)
            }
            State::Refreshing if self.flow.is_early => {
                self.state.enter("token, or the early refresh failed", State::Done);
                Ok(())
            }
            _ => Err(error),
        };
        self.end_if_wrong(next);
    }

    /// Ends the flow: the person has given up.
    pub fn cancel(&mut self) {
        if !matches!(self.state, State::Idle | State::Done | State::Refused) {
            self.end_if_wrong(Err(AuthorizationError::Cancelled));
        }
    }

    /// Ends a flow in which the person has been away for longer than the
    /// [limit](crate::config::AuthorizationLimits::visit). Returns whether it still waits for the person. Call it now and
    /// then while there is a [`Step::Visit`].
    pub fn expire(&mut self, now: UnixSeconds) -> bool {
        if self.state == State::Visiting && now.saturating_sub(self.flow.begun) > self.config.limits.visit {
            self.end_if_wrong(Err(AuthorizationError::Expired));
        }
        self.state == State::Visiting
    }

    fn end_if_wrong(&mut self, next: Next) {
        if let Err(error) = next {
            self.fetch = None;
            self.error = Some(error);
            self.state.enter("error, or cancelled", State::Refused);
        }
    }

    /// Returns the document that the current state waits for.
    const fn document(&self) -> Document {
        match self.state {
            State::ResourceMetadata => Document::ResourceMetadata,
            State::ServerMetadata => Document::ServerMetadata,
            State::Registering => Document::Registration,
            State::Visiting => Document::Redirect,
            State::Exchanging => Document::TokenExchange,
            State::Revoking => Document::Revocation,
            _ => Document::Token,
        }
    }
}

/// Discovery.
impl Authorization {
    /// Begins a whole flow.
    fn begin(&mut self, demand: Demand, env: &mut Environment<'_>) -> Outcome {
        self.flow = Flow { demands_dpop: self.config.require_dpop || demand.only_dpop, demand, ..Flow::default() };
        // It fails before the first fetch if the URL of the challenge is not acceptable.
        self.discover("401, or more scopes are demanded", env).map_or_else(Outcome::Refused, |()| Outcome::Wait)
    }

    /// Fetches protected resource metadata.
    fn discover(&mut self, cause: &str, env: &mut Environment<'_>) -> Next {
        let server = self.server.clone();
        let challenge = self.flow.demand.resource_metadata.clone();
        if let Some(url) = &challenge {
            let member = "resource_metadata";
            acceptable(url, &server).map_err(|reason| AuthorizationError::Url { member, reason })?;
        }
        let url = Url::parse(&server).map_err(|_| AuthorizationError::OtherOrigin)?;
        self.flow.places = resource_places(challenge, &url);
        self.flow.is_absent = true;
        self.state.enter(cause, State::ResourceMetadata);
        self.next_place(env)
    }

    /// Fetches metadata from the next place.
    fn next_place(&mut self, env: &mut Environment<'_>) -> Next {
        let Some(place) = self.flow.places.pop() else { return self.no_more_places(env) };
        self.flow.redirects = 0;
        self.get(place)
    }

    fn get(&mut self, url: String) -> Next {
        self.send(requests::metadata(url, self.config.protocol_version.as_deref()))
    }

    /// Sets the request of the current state.
    fn send(&mut self, fetch: FetchStep) -> Next {
        if self.flow.fetches > 0 && self.flow.fetches >= self.config.limits.fetches {
            return Err(AuthorizationError::Unavailable { document: self.document(), failure: FetchFailure::TooMany });
        }
        self.flow.fetches += 1;
        self.fetch = Some(FetchStep { limit: self.config.limits.document, ..fetch });
        Ok(())
    }

    /// Metadata, or a redirect to it, or none at this place.
    fn metadata_fetched(&mut self, fetch: &FetchStep, response: &Response<'_>, env: &mut Environment<'_>) -> Next {
        let document = self.document();
        if let 301 | 302 | 303 | 307 | 308 = response.status {
            let target = response.location.and_then(|location| same_origin(&fetch.url, location, &self.server));
            return match target.filter(|_| self.flow.redirects < self.config.limits.redirects) {
                Some(target) => {
                    self.flow.redirects += 1;
                    self.state.enter("redirect, or the next place", self.state);
                    self.get(target)
                }
                None => {
                    self.flow.is_absent = false;
                    let failure = FetchFailure::Redirect;
                    self.place_failed(AuthorizationError::Unavailable { document, failure }, env)
                }
            };
        }
        if response.status != 200 {
            self.flow.is_absent &= (400..500).contains(&response.status);
            let failure = FetchFailure::Status(response.status);
            return self.place_failed(AuthorizationError::Unavailable { document, failure }, env);
        }
        self.flow.is_absent = false;
        if !is_json(response) {
            return self.place_failed(AuthorizationError::Document { document, member: "" }, env);
        }
        if self.state == State::ResourceMetadata {
            match ResourceMetadata::parse(response.body) {
                Ok(metadata) => self.resource_known(metadata, env),
                Err(error) => self.place_failed(error, env),
            }
        } else {
            match ServerMetadata::parse(response.body, &self.server) {
                // In a legacy flow nothing says which issuer to expect.
                Ok(metadata) if self.flow.is_legacy || metadata.issuer == self.flow.issuer => {
                    self.server_known(metadata, env)
                }
                Ok(metadata) => {
                    let which = Mismatch::new(&self.flow.issuer, &metadata.issuer);
                    self.place_failed(AuthorizationError::IssuerMismatch(which), env)
                }
                Err(error) => self.place_failed(error, env),
            }
        }
    }

    fn place_failed(&mut self, error: AuthorizationError, env: &mut Environment<'_>) -> Next {
        // An error about a document says more than one about a place without any.
        let says_more =
            matches!(self.flow.failure, Some(ref known) if !matches!(known, AuthorizationError::Unavailable { .. }));
        if !says_more || !matches!(error, AuthorizationError::Unavailable { .. }) {
            self.flow.failure = Some(error);
        }
        if !self.flow.places.is_empty() {
            self.state.enter("redirect, or the next place", self.state);
        }
        self.next_place(env)
    }

    /// No place has usable metadata. A server that names none may be of 2025-03-26.
    fn no_more_places(&mut self, env: &mut Environment<'_>) -> Next {
        let failure = self.flow.failure.take().unwrap_or(AuthorizationError::Cancelled);
        let is_legacy = self.config.legacy && self.flow.is_absent && self.flow.demand.resource_metadata.is_none();
        if self.state == State::ServerMetadata {
            if !self.flow.is_legacy || !self.flow.is_absent {
                return Err(failure);
            }
            let metadata = ServerMetadata::of_origin(&self.flow.issuer);
            return self.server_known(metadata, env);
        }
        if !is_legacy {
            return Err(failure);
        }
        let server = self.server.clone();
        let url = Url::parse(&server).map_err(|_| AuthorizationError::OtherOrigin)?;
        self.flow.is_legacy = true;
        self.flow.issuer = origin(&url);
        let issuer = self.flow.issuer.clone();
        let issuer = Url::parse(&issuer).map_err(|_| AuthorizationError::OtherOrigin)?;
        self.flow.places = alloc::vec![inserted(&issuer, "oauth-authorization-server")];
        self.state.enter("metadata, or none (2025-03-26)", State::ServerMetadata);
        self.next_place(env)
    }

    /// Protected resource metadata says which authorization server to use.
    fn resource_known(&mut self, metadata: ResourceMetadata, env: &mut Environment<'_>) -> Next {
        if !is_resource_of(&metadata.resource, &self.server) {
            return Err(AuthorizationError::ResourceMismatch(Mismatch::new(&self.server, &metadata.resource)));
        }
        let servers = &metadata.authorization_servers;
        let registered = self.config.registered.as_ref().and_then(|client| client.issuer.as_ref());
        let is_known =
            |issuer: &&String| self.store.registrations().any(|registration| registration.issuer == **issuer);
        let issuer = match registered {
            Some(issuer) => servers.iter().find(|server| *server == issuer).ok_or_else(|| {
                AuthorizationError::OtherIssuer(Mismatch::new(issuer, servers.first().map_or("", String::as_str)))
            })?,
            None => {
                let known = servers.iter().find(is_known);
                known.or(servers.first()).ok_or(AuthorizationError::NoClient)?
            }
        };
        let member = "authorization_servers";
        let url = acceptable(issuer, &self.server).map_err(|reason| AuthorizationError::Url { member, reason })?;
        self.flow.places = server_places(&url);
        self.flow.issuer.clone_from(issuer);
        self.flow.resource = metadata.resource;
        self.flow.scopes_supported = metadata.scopes;
        self.flow.demands_dpop |= metadata.demands_dpop;
        self.flow.is_absent = true;
        self.state.enter("metadata, or none (2025-03-26)", State::ServerMetadata);
        self.next_place(env)
    }

    /// Everything is known of the authorization server: which grant, which client, which scopes.
    fn server_known(&mut self, metadata: ServerMetadata, env: &mut Environment<'_>) -> Next {
        self.flow.metadata = metadata;
        let grant = self.grant_type(env)?;
        self.flow.scope = self.scope_to_ask(&grant);
        self.check_proof_key(env)?;
        if let Some(client) = self.known_client(&grant, env)? {
            self.flow.client = Some(client);
            return self.grant(&grant, env);
        }
        self.register("no client yet")
    }

    /// Chooses the grant in place of [`GrantType::Any`].
    fn grant_type(&self, env: &Environment<'_>) -> Result<GrantType, AuthorizationError> {
        let metadata = &self.flow.metadata;
        let is_confidential =
            self.config.registered.as_ref().is_some_and(|client| client.secret.is_some() || env.client_key.is_some());
        let grant = match &self.config.grant {
            GrantType::Any
                if is_confidential
                    && metadata.supports_grant("client_credentials")
                    && !metadata.supports_grant("authorization_code") =>
            {
                GrantType::ClientCredentials
            }
            GrantType::Any => GrantType::AuthorizationCode,
            grant => grant.clone(),
        };
        let name = match grant {
            GrantType::ClientCredentials => "client_credentials",
            GrantType::EnterpriseManaged(_) | GrantType::WorkloadIdentity(_) => JWT_BEARER,
            GrantType::Any | GrantType::AuthorizationCode => "authorization_code",
        };
        let is_listed = metadata.grant_types.is_none() || metadata.supports_grant(name);
        if is_listed { Ok(grant) } else { Err(AuthorizationError::NoGrant) }
    }

    /// Returns the scopes to ask for: those of the challenge, or else all that the resource has; with those that were
    /// asked for before, and those of the application.
    fn scope_to_ask(&self, grant: &GrantType) -> String {
        let offers = |scope: &str| self.flow.metadata.scopes.iter().any(|offered| offered == scope);
        let mut scope = String::new();
        if let Some(token) = self.store.token(&self.server) {
            let is_kept = |one: &&str| *one != OFFLINE_ACCESS || offers(OFFLINE_ACCESS);
            token.scope.split_ascii_whitespace().filter(is_kept).for_each(|one| unite(&mut scope, one));
        }
        let demanded = &self.flow.demand.scope;
        unite(&mut scope, if demanded.is_empty() { &self.flow.scopes_supported } else { demanded });
        unite(&mut scope, &self.config.scope);
        let asks_offline = *grant == GrantType::AuthorizationCode && self.config.offline_access;
        if asks_offline && !scope.is_empty() && offers(OFFLINE_ACCESS) {
            unite(&mut scope, OFFLINE_ACCESS);
        }
        scope
    }

    /// Checks that there is a key for proofs if they are demanded.
    fn check_proof_key(&self, env: &Environment<'_>) -> Next {
        let algorithms = &self.flow.metadata.dpop_algorithms;
        let fits = |key: &dyn Signer| {
            algorithms.as_ref().is_none_or(|supported| supported.iter().any(|name| name == key.algorithm()))
        };
        match env.dpop_key {
            _ if !self.flow.demands_dpop => Ok(()),
            Some(key) if fits(key) => Ok(()),
            _ => Err(AuthorizationError::NoProofKey),
        }
    }
}

/// Clients.
impl Authorization {
    /// Returns the client if it need not register: registered in advance, by a metadata document, or in an earlier run.
    fn known_client(&mut self, grant: &GrantType, env: &Environment<'_>) -> Result<Option<Client>, AuthorizationError> {
        if matches!(grant, GrantType::WorkloadIdentity(_)) {
            return Ok(Some(Client::NONE));
        }
        let (issuer, has_key) = (self.flow.issuer.clone(), env.client_key.is_some());
        if let Some(registered) = self.config.registered.clone() {
            let client = registration::configured(&registered, &self.flow.metadata, has_key);
            let bound = |known: &&Registration| known.redirect_uri.is_empty() && known.client_id == client.client_id;
            let bound =
                registered.issuer.as_ref().or(self.store.registrations().find(bound).map(|known| &known.issuer));
            match bound {
                Some(bound) if *bound != issuer => {
                    return Err(AuthorizationError::OtherIssuer(Mismatch::new(bound, &issuer)));
                }
                Some(_) => {}
                None => {
                    self.store.set_registration(Registration {
                        issuer,
                        client_id: client.client_id.clone(),
                        // The application keeps the secret.
                        secret: None,
                        secret_expires_at: 0,
                        method: client.method,
                        redirect_uri: String::new(),
                    });
                    self.store_changed = true;
                }
            }
            return Ok(Some(client));
        }
        if let Some(client) = registration::by_metadata_document(&self.config, &self.flow.metadata, has_key)? {
            return Ok(Some(client));
        }
        if *grant != GrantType::AuthorizationCode {
            return Err(AuthorizationError::NoClient);
        }
        let is_good = |known: &&Registration| {
            known.issuer == issuer
                && known.redirect_uri == self.config.redirect_uri
                && (known.secret_expires_at == 0 || known.secret_expires_at > env.now)
        };
        Ok(self.store.registrations().find(is_good).map(client_of))
    }

    /// Registers.
    fn register(&mut self, cause: &str) -> Next {
        let endpoint = self.flow.metadata.registration_endpoint.clone();
        if endpoint.is_empty() || self.config.redirect_uri.is_empty() {
            return Err(AuthorizationError::NoClient);
        }
        let method = registration::method_to_ask(&self.flow.metadata)?;
        let mut scope = String::new();
        if !self.flow.omits_scope {
            // Some servers give a client only the scopes of its registration: a step-up needs more than the first login.
            unite(&mut scope, &self.flow.scope);
            unite(&mut scope, &self.flow.scopes_supported);
        }
        self.flow.omits_scope = scope.is_empty();
        let body = registration::request(&self.config, method, &scope, self.flow.has_other_type);
        self.flow.is_registered = true;
        self.state.enter(cause, State::Registering);
        self.send(requests::registration(endpoint, body))
    }

    fn registered(&mut self, response: &Response<'_>, env: &mut Environment<'_>) -> Next {
        if !matches!(response.status, 200 | 201) {
            let refusal = refusal(Document::Registration, response);
            const CAUSE: &str = "its scopes or its type are refused";
            let error = match &refusal {
                AuthorizationError::Refused { error, .. } => error.as_str(),
                _ => "",
            };
            // Other servers refuse the scopes of resources here, and grant them nevertheless.
            if error == "invalid_client_metadata" && !self.flow.omits_scope {
                self.flow.omits_scope = true;
                return self.register(CAUSE);
            }
            // Or they have other rules about the redirect URIs of an `application_type`.
            if matches!(error, "invalid_client_metadata" | "invalid_redirect_uri") && !self.flow.has_other_type {
                self.flow.has_other_type = true;
                self.flow.failure = Some(refusal);
                return self.register(CAUSE);
            }
            // The refusal of the type that belongs to the redirect URI says more.
            let first = self.flow.failure.take().filter(|_| self.flow.has_other_type);
            return Err(first.unwrap_or(refusal));
        }
        let method = registration::method_to_ask(&self.flow.metadata)?;
        let registration =
            registration::answer(response.body, method, &self.flow.metadata, &self.config, &self.flow.issuer)?;
        self.flow.client = Some(client_of(&registration));
        self.store.set_registration(registration);
        self.store_changed = true;
        self.visit("registered", env)
    }
}

fn client_of(registration: &Registration) -> Client {
    Client {
        client_id: registration.client_id.clone(),
        secret: registration.secret.clone(),
        method: registration.method,
    }
}

/// Grants.
impl Authorization {
    fn grant(&mut self, grant: &GrantType, env: &mut Environment<'_>) -> Next {
        self.flow.grant = match grant {
            GrantType::EnterpriseManaged(provider) => return self.exchange(provider, env),
            GrantType::WorkloadIdentity(assertion) => {
                alloc::vec![("grant_type", Secret::new(JWT_BEARER)), ("assertion", assertion.clone())]
            }
            GrantType::ClientCredentials => alloc::vec![("grant_type", Secret::new("client_credentials"))],
            GrantType::Any | GrantType::AuthorizationCode => return self.visit("authorization code", env),
        };
        self.request("client credentials, or workload identity", State::Requesting, env)
    }

    /// Makes the authorization request
    /// ([authorization code](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization)).
    fn visit(&mut self, cause: &str, env: &mut Environment<'_>) -> Next {
        let metadata = &self.flow.metadata;
        if metadata.authorization_endpoint.is_empty() || self.config.redirect_uri.is_empty() {
            return Err(AuthorizationError::NoGrant);
        }
        let has_pkce = match &metadata.code_challenge_methods {
            Some(methods) => methods.iter().any(|method| method == "S256"),
            None => self.flow.is_legacy,
        };
        if !has_pkce {
            return Err(AuthorizationError::NoPkce);
        }
        let mut random = [[0; 32]; 2];
        random.iter_mut().for_each(|bytes| (env.random)(bytes));
        let [verifier, state] = random;
        let verifier = CodeVerifier::new(&verifier);
        self.flow.state = Base64Of32::new(&state).as_str().to_string();
        let jkt = self.proof_key(env).and_then(thumbprint).unwrap_or_default();
        self.flow.visit = requests::authorization(&self.flow, &self.config.redirect_uri, &verifier, &jkt);
        self.flow.verifier = Some(verifier);
        self.flow.begun = env.now;
        self.state.enter(cause, State::Visiting);
        Ok(())
    }

    /// Continues with the URL to which the browser came back, or the part of it from the path or the query on.
    ///
    /// # Errors
    /// [`AuthorizationError::State`] if it is not the redirect of this flow: late, a second time, or made up. The flow
    /// continues, and this one is ignored. Other errors end the flow; [`step`](Self::step) returns them too.
    pub fn redirected(&mut self, url: &str, env: &mut Environment<'_>) -> Result<(), AuthorizationError> {
        let url = url.split('#').next().unwrap_or_default();
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let find = |name: &str| {
            let mut values = fields(query).filter(|(found, _)| *found == name).map(|(_, value)| value);
            values.next().map(|value| decode(value).filter(|_| values.next().is_none()))
        };
        let state = find("state").flatten();
        if self.state != State::Visiting || state.as_deref() != Some(self.flow.state.as_str()) {
            return Err(AuthorizationError::State);
        }
        let next = if env.now.saturating_sub(self.flow.begun) > self.config.limits.visit {
            Err(AuthorizationError::Expired)
        } else {
            self.answer_of(&find)
        };
        let next = next.and_then(|code| {
            let verifier = self.flow.verifier.take().ok_or(AuthorizationError::State)?;
            self.flow.grant = alloc::vec![
                ("grant_type", Secret::new("authorization_code")),
                ("code", Secret::new(code)),
                ("redirect_uri", Secret::new(self.config.redirect_uri.as_str())),
                ("code_verifier", Secret::new(verifier.as_str())),
            ];
            self.request("the code", State::Requesting, env)
        });
        self.end_if_wrong(next.clone());
        next
    }

    /// Returns the code of a redirect, after `iss` was compared: before that nothing of it is believed
    /// ([RFC 9207](https://www.rfc-editor.org/rfc/rfc9207#section-2.4)). `find` returns `None` for a parameter that is
    /// missing, and `Some(None)` for one that is there twice or cannot be decoded.
    fn answer_of(&self, find: &dyn Fn(&str) -> Option<Option<String>>) -> Result<String, AuthorizationError> {
        let metadata = &self.flow.metadata;
        match find("iss") {
            Some(Some(iss)) if iss == metadata.issuer => {}
            None if !metadata.sends_iss => {}
            iss => {
                let found = iss.flatten().unwrap_or_default();
                return Err(AuthorizationError::Iss(Mismatch::new(&metadata.issuer, &found)));
            }
        }
        if let Some(error) = find("error") {
            let text = |value: Option<String>| value.map_or(String::new(), |value| shown(value.chars()));
            let description = text(find("error_description").flatten());
            return Err(AuthorizationError::Refused { document: Document::Redirect, error: text(error), description });
        }
        find("code").flatten().and_then(IntoSome::into_some).ok_or(AuthorizationError::Redirect)
    }

    /// Asks the identity provider for an assertion
    /// ([RFC 8693](https://www.rfc-editor.org/rfc/rfc8693#section-2.1)).
    fn exchange(&mut self, provider: &IdentityProvider, env: &mut Environment<'_>) -> Next {
        let endpoint = &provider.token_endpoint;
        let member = "token_endpoint";
        acceptable(endpoint, endpoint).map_err(|reason| AuthorizationError::Url { member, reason })?;
        let request = requests::exchange(&self.flow, provider, env)?;
        self.state.enter("enterprise-managed", State::Exchanging);
        self.send(request)
    }

    fn exchanged(&mut self, response: &Response<'_>, env: &mut Environment<'_>) -> Next {
        let document = Document::TokenExchange;
        if response.status != 200 {
            return Err(refusal(document, response));
        }
        let members = Members::parse(document, response.body)?;
        if members.required("issued_token_type")? != ID_JAG {
            return Err(members.wrong("issued_token_type"));
        }
        if !members.required("token_type")?.eq_ignore_ascii_case("N_A") {
            return Err(AuthorizationError::TokenType);
        }
        let assertion = Secret::new(members.required("access_token")?);
        self.flow.grant = alloc::vec![("grant_type", Secret::new(JWT_BEARER)), ("assertion", assertion)];
        self.request("the assertion", State::Requesting, env)
    }
}

/// Tokens.
impl Authorization {
    /// Sends the grant to the token endpoint.
    fn request(&mut self, cause: &str, state: State, env: &mut Environment<'_>) -> Next {
        let endpoint = origin_of(&self.flow.metadata.token_endpoint);
        let nonce = self.issuer_nonce.as_ref().filter(|(origin, _)| *origin == endpoint);
        let proof = self.proof_key(env).map(|key| (key, nonce.map(|(_, nonce)| nonce.as_str())));
        let request = requests::token(&self.flow, proof, env)?;
        self.state.enter(cause, state);
        self.send(request)
    }

    /// Returns the key for proofs, if the token is to be bound.
    fn proof_key<'e>(&self, env: &Environment<'e>) -> Option<&'e dyn Signer> {
        let algorithms = self.flow.metadata.dpop_algorithms.as_deref().unwrap_or_default();
        env.dpop_key.filter(|key| self.flow.demands_dpop || algorithms.iter().any(|name| name == key.algorithm()))
    }

    /// Begins to refresh the token; `false` if it cannot be refreshed.
    fn refresh(&mut self, demand: Demand, is_early: bool, env: &mut Environment<'_>) -> bool {
        let Some(token) = self.store.token(&self.server).cloned() else { return false };
        let is_good = acceptable(&token.token_endpoint, &self.server).is_ok();
        let client = self.client_of_token(&token).filter(|_| is_good);
        let (Some(client), Some(refresh_token)) = (client, token.refresh_token) else { return false };
        self.flow = Flow {
            demands_dpop: !token.jkt.is_empty(),
            demand,
            is_early,
            is_legacy: token.resource.is_empty(),
            resource: token.resource,
            issuer: token.issuer.clone(),
            metadata: ServerMetadata {
                issuer: token.issuer,
                token_endpoint: token.token_endpoint,
                revocation_endpoint: token.revocation_endpoint,
                ..ServerMetadata::default()
            },
            client: Some(client),
            scope: token.scope,
            grant: alloc::vec![("grant_type", Secret::new("refresh_token")), ("refresh_token", refresh_token)],
            ..Flow::default()
        };
        self.request("401, or the token ends soon", State::Refreshing, env).is_ok()
    }

    /// Forgets the token, and revokes it if the authorization server can do that
    /// ([RFC 7009](https://www.rfc-editor.org/rfc/rfc7009)). [`Outcome::Retry`] means that there is no more to do;
    /// [`Outcome::Wait`] that there are steps to carry out first, of which [`Step::Retry`] is the last. If a flow is under way,
    /// carry out its steps and call again.
    pub fn log_out(&mut self, env: &mut Environment<'_>) -> Outcome {
        if self.state != State::Idle {
            return Outcome::Wait;
        }
        let Some(token) = self.store.token(&self.server).cloned() else { return Outcome::Retry };
        self.store.forget(&self.server);
        self.store_changed = true;
        let Some(client) = self.client_of_token(&token) else { return Outcome::Retry };
        if acceptable(&token.revocation_endpoint, &self.server).is_err() {
            return Outcome::Retry;
        }
        let request = match requests::revocation(&token, &client, env) {
            Ok(request) => request,
            Err(error) => return Outcome::Refused(error),
        };
        self.flow = Flow::default();
        self.state.enter("logout", State::Revoking);
        let next = self.send(request);
        self.end_if_wrong(next);
        Outcome::Wait
    }

    /// Returns the client to which a token was given; `None` if the application has another one now.
    fn client_of_token(&self, token: &Token) -> Option<Client> {
        let is_it = |known: &&Registration| known.issuer == token.issuer && known.client_id == token.client_id;
        let known = self.store.registrations().find(is_it);
        let configured = self.config.registered.as_ref().filter(|client| client.client_id == token.client_id);
        let secret = match configured {
            Some(client) if client.issuer.as_ref().is_some_and(|issuer| *issuer != token.issuer) => return None,
            Some(client) => client.secret.clone(),
            None => known.and_then(|known| known.secret.clone()),
        };
        Some(Client { client_id: token.client_id.clone(), secret, method: token.method })
    }

    fn token_fetched(&mut self, fetch: &FetchStep, response: &Response<'_>, env: &mut Environment<'_>) -> Next {
        let nonce = response.dpop_nonce.filter(|nonce| is_sendable(nonce));
        if let Some(nonce) = nonce {
            self.issuer_nonce = Some((origin_of(&fetch.url), nonce.to_string()));
        }
        if response.status == 200 {
            return self.token_come(response, env);
        }
        let refusal = refusal(Document::Token, response);
        let error = match &refusal {
            AuthorizationError::Refused { error, .. } => error.as_str(),
            _ => "",
        };
        if error == "use_dpop_nonce" && nonce.is_some() && self.flow.nonces < NONCES {
            self.flow.nonces += 1;
            return self.request("another nonce", self.state, env);
        }
        if self.state == State::Refreshing {
            return self.refresh_refused(refusal, env);
        }
        // The registration is from an earlier run, and the server does not know it any more.
        let client = self.flow.client.as_ref();
        let is_stored = |known: &Registration| {
            known.issuer == self.flow.issuer
                && !known.redirect_uri.is_empty()
                && client.is_some_and(|client| client.client_id == known.client_id)
        };
        if error == "invalid_client" && !self.flow.is_registered && self.store.registrations().any(is_stored) {
            let issuer = self.flow.issuer.clone();
            self.store.forget_registration(&issuer);
            self.store_changed = true;
            return self.register("the client is not known any more");
        }
        Err(refusal)
    }

    /// The refresh token is no good, or there is no answer now.
    fn refresh_refused(&mut self, refusal: AuthorizationError, env: &mut Environment<'_>) -> Next {
        let is_final = matches!(refusal, AuthorizationError::Refused { .. });
        if let Some(token) = self.store.token_mut(&self.server).filter(|_| is_final) {
            token.refresh_token = None;
            self.store_changed = true;
        }
        if self.flow.is_early {
            // The token may still be good; if it is not, the server says what it wants.
            self.state.enter("token, or the early refresh failed", State::Done);
            return Ok(());
        }
        if !is_final {
            return Err(refusal);
        }
        let demand = take(&mut self.flow.demand);
        self.flow = Flow {
            demands_dpop: self.config.require_dpop || demand.only_dpop,
            demand,
            fetches: self.flow.fetches,
            ..Flow::default()
        };
        self.discover("the refresh token is no good", env)
    }

    /// Reads a token ([RFC 6749, section 5.1](https://www.rfc-editor.org/rfc/rfc6749#section-5.1)).
    fn token_come(&mut self, response: &Response<'_>, env: &mut Environment<'_>) -> Next {
        let members = Members::parse(Document::Token, response.body)?;
        let sendable = |member| match members.text(member) {
            Ok(text) if text.is_empty() || is_sendable(&text) => Ok(text.into_some().map(Secret::new)),
            Ok(_) => Err(members.wrong(member)),
            Err(error) => Err(error),
        };
        let access_token = sendable("access_token")?.ok_or(members.wrong("access_token"))?;
        let kind = members.required("token_type")?;
        let key = self.proof_key(env);
        let jkt = if kind.eq_ignore_ascii_case("DPoP") {
            key.and_then(thumbprint).ok_or(AuthorizationError::TokenType)?
        } else if kind.eq_ignore_ascii_case("Bearer") && !self.flow.demands_dpop {
            String::new()
        } else {
            return Err(AuthorizationError::TokenType);
        };
        let expires_in = match members.get("expires_in") {
            Some(value) => Some(seconds(value).ok_or(members.wrong("expires_in"))?),
            None => None,
        };
        let client = self.flow.client.clone().unwrap_or(Client::NONE);
        let is_refresh = self.state == State::Refreshing;
        let old = self.store.token(&self.server).filter(|_| is_refresh).and_then(|token| token.refresh_token.clone());
        self.store.set_token(Token {
            server: self.server.clone(),
            issuer: self.flow.issuer.clone(),
            resource: self.flow.resource.clone(),
            token_endpoint: self.flow.metadata.token_endpoint.clone(),
            revocation_endpoint: self.flow.metadata.revocation_endpoint.clone(),
            client_id: client.client_id,
            method: client.method,
            access_token,
            jkt,
            refresh_token: sendable("refresh_token")?.or(old),
            obtained_at: env.now,
            expires_at: expires_in.map(|seconds| env.now.saturating_add(seconds)),
            scope: take(&mut self.flow.scope),
        });
        self.store_changed = true;
        self.generation = self.generation.wrapping_add(1).max(1);
        self.origin = if is_refresh { Origin::Refreshed } else { Origin::New };
        self.is_used = false;
        self.state.enter(if is_refresh { "token, or the early refresh failed" } else { "token" }, State::Done);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
