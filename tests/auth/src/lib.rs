//! A protected MCP server and its authorization servers, in one process, all strict: the MCP server demands a token on
//! each request, the authorization servers check each parameter, and each of them notes what it should never get. A test
//! changes one answer with [`World::answer`] and looks at the outcome, the requests and the [`violations`](World::violations).

mod client;
mod http;
mod issuer;
mod resource;
mod user;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use client::{Adapter, AnyClient, Kept};
pub use http::{Request, Response, escape, form};
pub use issuer::Token;
use serde_json::Value;
pub use user::{browse, fresh_key, login, redirect_of};

/// A server of the mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The MCP server.
    Mcp,
    /// Its authorization server.
    Issuer,
    /// Another authorization server.
    Other,
    /// A server that has nothing to do with the others.
    Stranger,
}

/// A request that a server got.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The server.
    pub role: Role,
    /// The request.
    pub request: Request,
}

type Rule = Box<dyn Fn(&Origins, &Request, &Response) -> Option<Response> + Send>;

/// The origins of all servers.
#[derive(Clone, Debug, Default)]
pub struct Origins(HashMap<Role, String>);

impl Origins {
    /// Returns the origin of a server.
    pub fn of(&self, role: Role) -> &str {
        &self.0[&role]
    }
}

/// Everything that the servers know.
#[derive(Default)]
pub struct State {
    seen: Vec<Seen>,
    violations: Vec<String>,
    rules: Vec<(Role, Rule)>,
    issuers: HashMap<Role, issuer::Issuer>,
    /// Secrets that must never be in a URL: tokens, verifiers, client secrets.
    secrets: Vec<String>,
    /// Values that must be new each time: states, challenges, proof ids.
    once: Vec<String>,
    /// The scope that the MCP server demands of every request.
    pub base_scope: String,
    /// Scopes that tools demand besides.
    pub tool_scopes: HashMap<String, String>,
    /// The authorization server that the protected resource metadata names.
    pub named_issuer: Option<Role>,
    /// The nonce that the MCP server demands in proofs; empty for none.
    pub nonce: String,
    /// The MCP server takes only bound tokens.
    pub demands_dpop: bool,
    /// The time for which a token is good.
    pub lifetime: Option<Duration>,
    /// Access tokens are signed; else only their issuer can read them.
    pub signs: bool,
    /// The number of the key that signs them.
    pub key: u8,
    sessions: u32,
}

/// The servers. They end with the process.
#[derive(Clone)]
pub struct World {
    state: Arc<Mutex<State>>,
    origins: Origins,
}

impl World {
    /// Starts all servers.
    pub fn new() -> Self {
        let state = Arc::new(Mutex::new(State { base_scope: "read".to_owned(), ..State::default() }));
        let mut origins = Origins::default();
        let mut listeners = Vec::new();
        for role in [Role::Mcp, Role::Issuer, Role::Other, Role::Stranger] {
            let (listener, origin) = http::listen();
            listeners.push((role, listener));
            origins.0.insert(role, origin);
        }
        let world = World { state, origins };
        for (role, listener) in listeners {
            let world = world.clone();
            http::serve(listener, move |request| world.handle(role, request));
        }
        world
    }

    /// Returns the URL of the MCP server.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.origins.of(Role::Mcp))
    }

    /// Returns the origin of a server; for authorization servers it is the issuer.
    pub fn origin(&self, role: Role) -> &str {
        self.origins.of(role)
    }

    /// Returns what the servers know.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `rule` replace answers of a server: it gets the answer that the server would give.
    pub fn answer(
        &self,
        role: Role,
        rule: impl Fn(&Origins, &Request, &Response) -> Option<Response> + Send + 'static,
    ) {
        self.state().rules.push((role, Box::new(rule)));
    }

    /// Lets `change` change the JSON object that a server answers at a path.
    pub fn document(&self, role: Role, path: &str, change: impl Fn(&Origins, &mut Value) + Send + 'static) {
        let path = path.to_owned();
        self.answer(role, move |origins, request, response| {
            if request.path() != path || !(200..300).contains(&response.status) {
                return None;
            }
            let mut value = serde_json::from_slice(&response.body).ok()?;
            change(origins, &mut value);
            Some(Response::json(response.status, &value))
        });
    }

    /// Takes back all rules.
    pub fn relent(&self) {
        self.state().rules.clear();
    }

    /// Returns the requests that a server got at a path.
    pub fn requests(&self, role: Role, path: &str) -> Vec<Request> {
        let state = self.state();
        let of = |seen: &&Seen| seen.role == role && seen.request.path() == path;
        state.seen.iter().filter(of).map(|seen| seen.request.clone()).collect()
    }

    /// Returns all requests so far, as `Role METHOD path`.
    pub fn story(&self) -> Vec<String> {
        let line = |seen: &Seen| format!("{:?} {} {}", seen.role, seen.request.method, seen.request.path());
        self.state().seen.iter().map(line).collect()
    }

    /// Returns what the client did and must never do.
    pub fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    /// Makes all tokens that are out invalid.
    pub fn expire_tokens(&self) {
        for issuer in self.state().issuers.values_mut() {
            issuer.tokens.values_mut().for_each(|token| token.until = Some(Instant::now()));
        }
    }

    /// Makes all refresh tokens that are out invalid.
    pub fn revoke_refresh(&self) {
        self.state().issuers.values_mut().for_each(|issuer| issuer.refresh.clear());
    }

    /// Returns all access tokens, refresh tokens, codes, verifiers and client secrets.
    pub fn secrets(&self) -> Vec<String> {
        self.state().secrets.clone()
    }

    fn handle(&self, role: Role, request: &Request) -> Response {
        let mut state = self.state();
        state.seen.push(Seen { role, request: request.clone() });
        self.watch(&mut state, role, request);
        let response = match role {
            Role::Mcp => resource::answer(&mut state, &self.origins, request),
            Role::Issuer | Role::Other => issuer::answer(&mut state, &self.origins, role, request),
            Role::Stranger => Response::new(200, "text/plain", "hello"),
        };
        let rules = std::mem::take(&mut state.rules);
        let of_role = rules.iter().filter(|(at, _)| *at == role);
        let changed = of_role.filter_map(|(_, rule)| rule(&self.origins, request, &response)).next_back();
        state.rules = rules;
        changed.unwrap_or(response)
    }

    /// Notes what no server must get.
    fn watch(&self, state: &mut State, role: Role, request: &Request) {
        let credentials = request.headers("authorization").count() + request.headers("dpop").count();
        let is_token_request = request.path() == "/token" || request.path() == "/introspect";
        let is_mcp = role == Role::Mcp && request.path() == "/mcp";
        if credentials > 0 && !is_mcp && !is_token_request {
            state.violations.push(format!("credentials went to {role:?} {}", request.path()));
        }
        let text = format!("{} {}", request.target, request.headers("referer").collect::<String>());
        // A code goes through the browser, in a URL.
        if state.secrets.iter().any(|secret| text.contains(secret.as_str())) {
            state.violations.push(format!("a secret is in the URL {role:?} {}", request.path()));
        }
        let tokens = state.issuers.values().flat_map(|issuer| issuer.tokens.keys());
        let all = format!("{:?} {}", request, String::from_utf8_lossy(&request.body));
        if role != Role::Mcp
            && request.path() != "/introspect"
            && tokens.into_iter().any(|token| all.contains(token.as_str()))
        {
            state.violations.push(format!("an access token went to {role:?} {}", request.path()));
        }
    }
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}

impl State {
    /// Notes a value that must be new. Returns whether it is.
    fn is_new(&mut self, value: &str) -> bool {
        let is_new = !value.is_empty() && !self.once.iter().any(|old| old == value);
        self.once.push(value.to_owned());
        is_new
    }

    fn violation(&mut self, text: &str) {
        self.violations.push(text.to_owned());
    }
}
