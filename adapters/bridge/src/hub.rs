//! Several servers behind one front: who gets a request, and how their lists become one.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem::take;

use mcp_sansio::client::ServerRequestId;
use mcp_sansio::error::RpcError;
use mcp_sansio::json::{OwnedRaw, Raw, Text};
use mcp_sansio::protocol::{LoggingLevel, Method, code};
use mcp_sansio::server::{Millis, RequestToken, Scope, Server, TransportChecks};
use mcp_sansio::sink::Out;

use crate::bridge::{EMPTY, Link, Part, PartOutcome, TERMS, answered, own, respond};
use crate::requests::Setting;
use crate::write::{replaced, written};
use crate::{Bridge, Hello, Host, Output};

/// The lists: method, and the member of the result.
const LISTS: [(&str, &str); 5] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("tasks/list", "tasks"),
];

/// The errors of a server that does not know what a request is about.
const UNKNOWN: [i32; 3] = [code::METHOD_NOT_FOUND, code::INVALID_PARAMS, code::RESOURCE_NOT_FOUND];

/// The most bytes of URIs whose server is remembered.
const URIS_MAX: usize = 1 << 20;

type Call = dyn FnOnce(&mut Bridge, Link<'_, '_, '_>, Millis) + Send;

/// A call of a server's bridge, with its client: see [`Hub::next_work`].
pub struct Work(Box<Call>);

impl Work {
    /// Calls the bridge of the server. `link` is its client, if its connection is open.
    pub fn run(self, bridge: &mut Bridge, link: Link<'_, '_, '_>, now: Millis) {
        (self.0)(bridge, link, now);
    }
}

mcp_sansio::debug_fields!(impl for Work {});

/// One server behind the hub.
struct HubServer {
    name: String,
    /// The beginning that its names get for hosts.
    prefix: String,
    bridge: Bridge,
    work: VecDeque<Work>,
}

/// A request of a host that more than one server gets.
struct Divided {
    token: RequestToken,
    parts: Parts,
}

enum Parts {
    /// All of them, for their parts of a list.
    List { member: &'static str, parts: Vec<(usize, Option<PartOutcome>)> },
    /// One after the other, until one knows what it is about.
    Search { at: usize, rest: VecDeque<usize>, message: Vec<u8>, setting: Option<Setting> },
}

/// Several servers behind one front, each with a [`Bridge`] of its own. The front is the program's, as for
/// [`Bridge::for_hosts`]: it gives the hub each admitted request, and takes the messages for hosts from
/// [`next_output`](Hub::next_output) and the work of each server from [`next_work`](Hub::next_work).
///
/// - Tools and prompts have the name of their server in front: `name_tool`. Resources keep their URIs.
/// - A list has the pages of all servers; those that cannot be reached, or do not answer within [`BridgeLimits::wait`](crate::BridgeLimits::wait),
///   are left out until they do, when the list changes.
/// - A resource is read from the server that has listed it. What no list has shown goes to one server after the other.
pub struct Hub {
    servers: Vec<HubServer>,
    /// The messages for hosts, and the server that each comes from.
    outputs: VecDeque<(usize, Output)>,
    divided: Vec<Divided>,
    /// The server of the last output.
    last: usize,
    /// The resources of the lists so far, and their servers.
    owners: BTreeMap<String, usize>,
    /// The bytes of `owners`.
    uris: usize,
    /// The names of hosts by their connections, the newest first.
    hosts: VecDeque<(Scope, String)>,
    /// The name of the host whose request comes.
    asking: String,
}

/// The most hosts whose names are remembered, and the most characters of each.
const HOSTS: (usize, usize) = (1000, 100);

impl Hub {
    /// Makes a hub of servers with their names. One server may be nameless: its names stay as they are.
    ///
    /// # Errors
    /// Two names that could make one of two tools: `a` with the tool `b_c`, `a_b` with the tool `c`.
    pub fn new(servers: impl IntoIterator<Item = (String, Bridge)>) -> Result<Self, String> {
        let servers: Vec<_> = servers.into_iter().map(|(name, bridge)| HubServer::new(name, bridge)).collect();
        for (at, one) in servers.iter().enumerate() {
            let clash = |(other, server): &(usize, &HubServer)| *other != at && server.prefix.starts_with(&one.prefix);
            if let Some((_, other)) = servers.iter().enumerate().find(clash) {
                return Err(format!(
                    "the servers {:?} and {:?} may have tools of the same name, {}NAME and {}NAME: rename one",
                    one.name, other.name, one.prefix, other.prefix
                ));
            }
        }
        let (outputs, divided, hosts, asking) = Default::default();
        Ok(Hub { servers, outputs, divided, last: 0, owners: BTreeMap::new(), uris: 0, hosts, asking })
    }

    /// Returns the number of servers.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a hub without servers is of no use")]
    pub const fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns the bridge of a server.
    ///
    /// # Panics
    /// If there is no server of this number.
    #[allow(clippy::indexing_slicing, reason = "as slices do")]
    pub fn bridge(&mut self, at: usize) -> &mut Bridge {
        &mut self.servers[at].bridge
    }

    /// Opens the connections to all servers, for the host of this first message, or for several hosts.
    pub fn open(&mut self, first: Option<&[u8]>) {
        let host = first.and_then(Host::read);
        self.servers.iter_mut().for_each(|server| server.bridge.open(host.clone()));
    }

    /// Returns `true` if each server has described itself, or could not be reached.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.servers.iter().all(|server| server.bridge.knows_server() || server.bridge.behind.is_away())
    }

    /// Returns the description of all servers together, for hosts. One that is not known may have all capabilities.
    #[must_use]
    pub fn hello(&self) -> Hello {
        match &*self.servers {
            [only] if only.prefix.is_empty() => only.bridge.hello(),
            all => Hello::joined(all.iter().map(|server| (&*server.name, server.bridge.hello()))),
        }
    }

    /// Notes the name of a host for journals: the `clientInfo` of its `initialize`, and its connection.
    pub fn host_opens(&mut self, scope: Scope, client_info: Raw<'_>) {
        let name = client_info.get("name").and_then(|name| name.text()).map(|name| name.to_string());
        self.hosts.retain(|host| host.0 != scope);
        self.hosts.truncate(HOSTS.0 - 1);
        self.hosts.push_front((scope, name.unwrap_or_default().chars().take(HOSTS.1).collect()));
    }

    /// Takes a request of a host, which the program's server has admitted: on the connection `scope`, with the
    /// [`checks`](TransportChecks) of its transport.
    ///
    /// # Errors
    /// That of the checks, for the answer: they know the arguments of a tool, which a list has shown, otherwise.
    pub fn request(
        &mut self,
        token: RequestToken,
        scope: Scope,
        method: &str,
        params: Option<Raw<'_>>,
        checks: &dyn TransportChecks,
    ) -> Result<(), RpcError<'static>> {
        if method == Method::ToolsCall.name()
            && let Some(params) = params
            && let Some(name) = params.get("name").and_then(|name| name.text()).map(|name| name.to_string())
            && let Some(schema) = self.servers.iter().find_map(|server| server.bridge.tools.schema(&name))
        {
            checks.arguments(schema, params.get("arguments").unwrap_or(EMPTY))?;
        }
        let host = self.hosts.iter().find(|host| host.0 == scope);
        self.asking = host.map(|host| host.1.clone()).unwrap_or_default();
        self.take(token, method, params);
        Ok(())
    }

    fn take(&mut self, token: RequestToken, method: &str, params: Option<Raw<'_>>) {
        if self.servers.iter().any(|server| server.prefix.is_empty()) {
            return self.send(0, token, message(method, params), None);
        }
        let params = params.unwrap_or(EMPTY);
        if let Some((_, member)) = LISTS.iter().find(|list| list.0 == method) {
            return self.list(token, method, member, params);
        }
        if method == Method::SetLevel.name() {
            return self.set_level(token, params);
        }
        let reference = params.get("ref").filter(|_| method == "completion/complete");
        let prompt = reference
            .filter(|of| of.get("type").and_then(|kind| kind.text()).is_some_and(|kind| kind.eq_str("ref/prompt")));
        let holder = match method {
            "tools/call" | "prompts/get" => Some(params),
            _ => prompt,
        };
        let Some(holder) = holder else {
            let uri = reference.unwrap_or(params).get("uri").and_then(|uri| uri.text()).map(|uri| uri.to_string());
            let subscribes = [Method::Subscribe, Method::Unsubscribe].into_iter().find(|one| one.name() == method);
            let setting = subscribes.and_then(|method| Setting::of(method, None, params.get("uri")));
            return self.search(token, message(method, Some(params)), uri.as_deref(), setting);
        };
        let name = holder.get("name").and_then(|name| name.text()).map(|name| name.to_string()).unwrap_or_default();
        let found =
            self.servers.iter().enumerate().find_map(|(at, server)| Some((at, name.strip_prefix(&*server.prefix)?)));
        let Some((at, own)) = found else {
            let words = format!("No server of the bridge has {name:?}");
            return self.say(0, token, move |server, out| {
                answered(token, server.fail(token, &RpcError::invalid_params(&words), out), server, out);
            });
        };
        let mut renamed = replaced(holder, "name", |holder| holder.text("name", own));
        if prompt.is_some() {
            renamed = replaced(params, "ref", |params| params.raw_if("ref", Raw::parse(&renamed).ok()));
        }
        self.send(at, token, message(method, Raw::parse(&renamed).ok()), None);
    }

    /// Gives a request to a server, or a part of it.
    fn send(&mut self, at: usize, token: RequestToken, message: Vec<u8>, part: Option<Part>) {
        let asking = self.asking.clone();
        self.tell(at, move |bridge, link, now| {
            bridge.asking = asking;
            bridge.parts.extend(part);
            bridge.request(token, &message, link, now);
        });
    }

    fn tell(&mut self, at: usize, work: impl FnOnce(&mut Bridge, Link<'_, '_, '_>, Millis) + Send + 'static) {
        if let Some(server) = self.servers.get_mut(at) {
            server.work.push_back(Work(Box::new(work)));
        }
    }

    /// Acts on the host of a request.
    fn say(
        &mut self,
        at: usize,
        token: RequestToken,
        act: impl FnOnce(&mut Server<'_>, &mut dyn Out) + Send + 'static,
    ) {
        self.outputs.push_back((at, Output::About(Some(token), Box::new(act))));
    }

    /// Asks all servers that are there for their parts of a list, but those that still owe an earlier one. The cursor has the cursors of all of them: an array, `null` for
    /// those that have no more.
    fn list(&mut self, token: RequestToken, method: &str, member: &'static str, params: Raw<'_>) {
        let cursor = params.get("cursor").and_then(|cursor| cursor.text()).map(|cursor| cursor.to_string());
        let cursors = cursor.as_ref().map(|cursor| Raw::parse(cursor.as_bytes()).ok());
        let mut parts = Vec::new();
        for at in 0..self.servers.len() {
            let own = cursors.map(|cursors| cursors?.items().nth(at)?.text().map(|own| own.to_string()));
            let cannot = |server: &HubServer| server.bridge.behind.is_away() || server.bridge.owes(member);
            // It has said all, or cannot say anything.
            if own == Some(None) || self.servers.get(at).is_none_or(cannot) {
                continue;
            }
            let params = replaced(params, "cursor", |params| params.text_if("cursor", own.flatten().as_deref()));
            self.send(at, token, message(method, Raw::parse(&params).ok()), Some(Part::new(token, Some(member))));
            parts.push((at, None));
        }
        if cursor.is_some() && parts.is_empty() {
            return self.say(0, token, move |server, out| {
                answered(token, server.fail(token, &RpcError::invalid_params("No such cursor"), out), server, out);
            });
        }
        self.go_on(token, Parts::List { member, parts });
    }

    /// Looks for the server that knows what a request is about: that of the URI, if a list has shown it; else all, those that are
    /// away last.
    fn search(&mut self, token: RequestToken, message: Vec<u8>, uri: Option<&str>, setting: Option<Setting>) {
        if let Some(at) = uri.and_then(|uri| self.owners.get(uri)) {
            return self.send(*at, token, message, None);
        }
        let mut rest: VecDeque<_> = (0..self.servers.len()).collect();
        rest.make_contiguous()
            .sort_by_key(|at| self.servers.get(*at).is_some_and(|server| server.bridge.behind.is_away()));
        if let Some(at) = rest.pop_front() {
            self.send(at, token, message.clone(), Some(Part::new(token, None)));
            self.divided.push(Divided { token, parts: Parts::Search { at, rest, message, setting } });
        }
    }

    /// Takes the outcome of a request at one of several servers; `None` if the server is away or late.
    fn part(&mut self, from: usize, token: RequestToken, outcome: Option<PartOutcome>) {
        let Some(found) = self.divided.iter().position(|divided| divided.token == token) else { return };
        match self.divided.swap_remove(found).parts {
            Parts::List { member, mut parts } => {
                if let Some(part) = parts.iter_mut().find(|part| part.0 == from) {
                    part.1 = outcome.or_else(|| Some(Ok(own(EMPTY))));
                }
                self.go_on(token, Parts::List { member, parts });
            }
            Parts::Search { mut rest, message, setting, .. } => match outcome {
                Some(Ok(result)) => {
                    if let Some(Setting::Subscribed(uri, _)) = &setting {
                        self.own(from, uri.clone());
                    }
                    self.say(from, token, move |server, out| respond(token, setting, result.raw(), server, out));
                }
                Some(Err((code, act))) if rest.is_empty() || !UNKNOWN.contains(&code) => {
                    self.outputs.push_back((from, Output::About(Some(token), act)));
                }
                _ => {
                    if let Some(at) = rest.pop_front() {
                        self.send(at, token, message.clone(), Some(Part::new(token, None)));
                        self.divided.push(Divided { token, parts: Parts::Search { at, rest, message, setting } });
                    }
                }
            },
        }
    }

    /// Answers a list if all parts are there, or waits for the others.
    fn go_on(&mut self, token: RequestToken, parts: Parts) {
        let Parts::List { member, parts } = parts else { return };
        if parts.iter().any(|part| part.1.is_none()) {
            return self.divided.push(Divided { token, parts: Parts::List { member, parts } });
        }
        let (mut results, mut failure) = (Vec::new(), None);
        for (at, outcome) in parts {
            match outcome {
                Some(Ok(result)) => results.push((at, result)),
                Some(Err((_, act))) => failure = failure.or(Some((at, act))),
                None => {}
            }
        }
        // What one of them cannot do, the others can.
        if let Some((at, act)) = failure.filter(|_| results.is_empty()) {
            return self.outputs.push_back((at, Output::About(Some(token), act)));
        }
        if member == "resources" {
            results.iter().for_each(|(at, result)| self.remember(*at, result.raw()));
        }
        let list = joined(member, self.servers.len(), &results);
        self.say(0, token, move |server, out| {
            respond(token, None, Raw::parse(&list).unwrap_or(EMPTY), server, out);
        });
    }

    /// Notes whose the resources of a list are. If two servers have the same one, it is the first one's.
    fn remember(&mut self, at: usize, result: Raw<'_>) {
        for resource in result.get("resources").into_iter().flat_map(|list| list.items()) {
            self.own(at, resource.get("uri").and_then(|uri| uri.text()).map(|uri| uri.to_string()).unwrap_or_default());
        }
    }

    fn own(&mut self, at: usize, uri: String) {
        let is_first = self.owners.get(&uri).is_none_or(|owner| *owner > at);
        if is_first && self.uris.saturating_add(uri.len()) <= URIS_MAX {
            self.uris += uri.len();
            self.owners.insert(uri, at);
        }
    }

    /// Takes what the bridges have for hosts, and goes on without servers that have gone.
    fn settle(&mut self) {
        for at in 0..self.servers.len() {
            let Some(server) = self.servers.get_mut(at) else { continue };
            while let Some(output) = server.bridge.next_output() {
                self.outputs.push_back((at, output));
            }
            let (parts, is_away) = (take(&mut server.bridge.done_parts), server.bridge.behind.is_away());
            for (token, outcome) in parts {
                self.part(at, token, outcome);
            }
            let waits = |divided: &&Divided| match &divided.parts {
                Parts::List { parts, .. } => parts.iter().any(|part| part.0 == at && part.1.is_none()),
                Parts::Search { at: now, rest, .. } => *now == at && !rest.is_empty(),
            };
            let tokens = self.divided.iter().filter(|_| is_away).filter(waits).map(|divided| divided.token);
            for token in tokens.collect::<Vec<_>>() {
                self.tell(at, move |bridge, link, now| bridge.cancel(token, link, now));
                self.part(at, token, None);
            }
        }
    }

    /// Returns the next call of a server's bridge: run it with [`bridge`](Hub::bridge), and the client of that server if its
    /// connection is open.
    pub fn next_work(&mut self) -> Option<(usize, Work)> {
        self.settle();
        self.servers.iter_mut().enumerate().find_map(|(at, server)| Some((at, server.work.pop_front()?)))
    }

    /// Returns the next message for a host.
    pub fn next_output(&mut self) -> Option<Output> {
        self.settle();
        let (at, output) = self.outputs.pop_front()?;
        self.last = at;
        Some(output)
    }

    /// Returns `true` if there is a message for a host.
    pub fn has_output(&mut self) -> bool {
        self.settle();
        !self.outputs.is_empty()
    }

    /// Reports that a host was asked the question of the last [output](Hub::next_output), see [`Bridge::asked`].
    pub fn asked(&mut self, request: Option<RequestToken>, question: ServerRequestId, asked: Option<(u64, Scope)>) {
        match self.servers.get_mut(self.last).filter(|_| asked.is_some()) {
            // At once: the answer may be there already.
            Some(server) => server.bridge.asked(request, question, asked, None),
            None => self.tell(self.last, move |bridge, link, _| bridge.asked(request, question, None, link)),
        }
    }

    /// Takes a notification of a host, for all servers.
    pub fn notification(&mut self, method: &str, params: Option<Raw<'_>>) {
        for at in 0..self.servers.len() {
            let (method, params) = (method.to_string(), params.map(own));
            self.tell(at, move |bridge, link, _| {
                bridge.notification(&method, params.as_ref().map(OwnedRaw::raw), link);
            });
        }
    }

    /// Takes a response of a host to a question, for the server that has asked: its `result` or `error`, and its connection.
    pub fn response(&mut self, id: u64, response: Result<Raw<'_>, Raw<'_>>, scope: Scope) {
        let asks = |server: &HubServer| server.bridge.has_asked(id, scope);
        let Some(at) = self.servers.iter().position(asks) else { return };
        let response = response.map(own).map_err(own);
        self.tell(at, move |bridge, link, _| {
            bridge.response(id, response.as_ref().map(OwnedRaw::raw).map_err(OwnedRaw::raw), scope, link);
        });
    }

    /// Notes that a host has cancelled a request, or is gone.
    pub fn cancel(&mut self, token: RequestToken) {
        self.divided.retain(|divided| divided.token != token);
        for at in 0..self.servers.len() {
            self.tell(at, move |bridge, link, now| bridge.cancel(token, link, now));
        }
    }

    /// Sets the level of log messages that a host wants, at all servers; their answers may differ, so the hub gives its own.
    fn set_level(&mut self, token: RequestToken, params: Raw<'_>) {
        let Some(level) = params.get("level").and_then(LoggingLevel::read) else {
            return self.say(0, token, move |server, out| {
                answered(token, server.fail(token, &RpcError::invalid_params("No such log level"), out), server, out);
            });
        };
        for at in 0..self.servers.len() {
            self.tell(at, move |bridge, link, _| bridge.set_level(level, link));
        }
        self.say(0, token, move |server, out| respond(token, Some(Setting::Level(level)), EMPTY, server, out));
    }

    /// Sets the URIs that the hosts subscribe to. Those that no list has shown are subscribed to at all servers.
    pub fn subscribed<'u>(&mut self, uris: impl Iterator<Item = &'u str> + Clone) {
        for at in 0..self.servers.len() {
            let its = uris.clone().filter(|uri| self.owners.get(*uri).is_none_or(|owner| *owner == at));
            let its: Vec<String> = its.map(String::from).collect();
            self.tell(at, move |bridge, link, _| bridge.subscribed(its.iter().map(String::as_str), link));
        }
    }
}

impl core::fmt::Debug for Hub {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let bridges: Vec<_> = self.servers.iter().map(|server| (&server.name, &server.bridge)).collect();
        f.debug_struct("Hub").field("servers", &bridges).field("divided", &self.divided.len()).finish_non_exhaustive()
    }
}

impl HubServer {
    /// Makes the prefix of the characters that hosts allow in names of tools.
    fn new(name: String, mut bridge: Bridge) -> Self {
        let safe = |char: char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' };
        let mut prefix: String = name.chars().map(safe).collect();
        if !prefix.is_empty() {
            prefix.push('_');
        }
        bridge.tools.set_prefix(&prefix);
        HubServer { name, prefix, bridge, work: VecDeque::new() }
    }
}

/// Writes a request. Its id does not matter.
fn message(method: &str, params: Option<Raw<'_>>) -> Vec<u8> {
    written(|message| {
        message.fixed("jsonrpc", "\"2.0\"");
        message.fixed("id", "0");
        message.text("method", method);
        message.raw_if("params", params);
    })
}

/// Writes the lists of several servers as one. Other members are those of the first one.
fn joined(member: &str, servers: usize, results: &[(usize, OwnedRaw)]) -> Vec<u8> {
    let (mut list, mut cursors, mut has_more) = (Vec::from(b"["), Vec::from(b"["), false);
    for at in 0..servers {
        let result = results.iter().find(|result| result.0 == at).map(|result| result.1.raw());
        for item in result.and_then(|result| result.get(member)).into_iter().flat_map(|list| list.items()) {
            if list.len() > 1 {
                list.push(b',');
            }
            list.extend_from_slice(item.as_bytes());
        }
        let cursor = result.and_then(|result| result.get("nextCursor")).filter(|cursor| cursor.text().is_some());
        has_more |= cursor.is_some();
        if at > 0 {
            cursors.push(b',');
        }
        cursors.extend_from_slice(cursor.map_or(b"null", |cursor| cursor.as_bytes()));
    }
    list.push(b']');
    cursors.push(b']');
    let is_own = |key: &Text<'_>| TERMS.iter().chain(&["nextCursor", member]).any(|own| key.eq_str(own));
    written(|result| {
        for (key, value) in results.first().into_iter().flat_map(|first| first.1.raw().members()) {
            if !is_own(&key) {
                result.member(key, value);
            }
        }
        result.raw_if(member, Raw::parse(&list).ok());
        result.text_if("nextCursor", core::str::from_utf8(&cursors).ok().filter(|_| has_more));
    })
}
