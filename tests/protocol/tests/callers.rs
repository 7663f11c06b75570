//! Lists that differ by caller: what a caller does not see does not exist for it.
use crate::common;

use common::{MODERN, REVISIONS, Value, initialize, is_modern, json, parse, request};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{Caching, MessageLimits, Server, ServerChange};
use mcp_sansio::service::{
    Call, Caller, Complete, DynamicList, GetPrompt, HandlerResult, MessageSource, Prompt, PromptArgument, PromptInfo,
    ReadResource, Resource, ResourceInfo, ResourceTemplate, Service, Tool, ToolInfo, Visibility,
};
use mcp_sansio::sink::LineSink;
use mcp_sansio_http::endpoint::{Access, RequestHead};

/// The user who owns the hidden things.
type Owner = &'static str;

const WRITE: u64 = 1 << 1;
const OWNED: Visibility<Owner> = Visibility::when(|owner, caller| caller.principal() == Some(*owner));
const WRITTEN: Visibility<Owner> = Visibility::scopes(WRITE);
const CHALLENGED: Visibility<Owner> = Visibility::challenge(WRITE);

fn run(_: &mut Owner, call: &mut Call<'_>) -> HandlerResult {
    call.text("ran")
}

fn read(_: &mut Owner, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("contents")
}

fn get(_: &mut Owner, get: &mut GetPrompt<'_>) -> HandlerResult {
    get.user("prompt")
}

fn complete(_: &mut Owner, complete: &mut Complete<'_>) -> HandlerResult {
    complete.offer(["all"])
}

static TOOLS: [Tool<Owner>; 4] = [
    Tool::new("open", "For all", run),
    Tool::new("owned", "For its owner", run).visible(&OWNED),
    Tool::new("write", "With a scope", run).visible(&WRITTEN),
    Tool::new("challenge", "In each list, with a scope", run).visible(&CHALLENGED),
];
static RESOURCES: [Resource<Owner>; 2] = [
    Resource::new("x://open", "open", read),
    Resource::new("x://owned", "owned", read).caching(Caching::public(1)).visible(&OWNED),
];
static TEMPLATES: [ResourceTemplate<Owner>; 1] =
    [ResourceTemplate::new("y://{it}", "owned", read).complete(complete).visible(&OWNED)];
static PROMPTS: [Prompt<Owner>; 1] = [Prompt::new("owned", "For its owner", get)
    .arguments(&[PromptArgument::optional("it")])
    .complete(complete)
    .visible(&OWNED)];

fn service() -> Service<'static, Owner> {
    Service::new("site", "1")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .templates(&TEMPLATES)
        .prompts(&PROMPTS)
        .feature(ServerCapability::Subscribe)
        .caching(Caching::public(5))
}

/// Returns the answer to a request, as a client of the revision and this user gets it.
fn ask<S>(service: &Service<'_, S>, state: &mut S, revision: &str, user: (&str, u64), line: &str) -> Value {
    let mut server = Server::growing(MessageLimits::default());
    let mut out = LineSink::new(Vec::new());
    server.caller_scopes = user.1;
    let source = MessageSource::new(&()).principal(Some(user.0));
    if !is_modern(revision) {
        let opening = initialize(revision, json!({}));
        let _ = service.dispatch_from(&source, state, opening.as_bytes(), &mut server, &mut out).unwrap();
        out.sent(out.pending().len());
    }
    let _ = service.dispatch_from(&source, state, line.as_bytes(), &mut server, &mut out).unwrap();
    parse(core::str::from_utf8(out.pending()).unwrap().lines().next().unwrap())
}

/// Returns the names or URIs in a list.
fn names(result: &Value, list: &str, name: &str) -> Vec<String> {
    let entries = result["result"][list].as_array().unwrap_or_else(|| panic!("{result}"));
    entries.iter().map(|entry| entry[name].as_str().unwrap().to_owned()).collect()
}

const ANN: (&str, u64) = ("ann", 1);
const BOB: (&str, u64) = ("bob", 1);
const WRITER: (&str, u64) = ("bob", 1 | WRITE);

#[test]
fn each_caller_has_its_lists() {
    let service = service();
    for revision in REVISIONS {
        let list = |user, method: &str, list: &str, name: &str| {
            names(&ask(&service, &mut "ann", revision, user, &request(revision, 1, method, json!({}))), list, name)
        };
        let tools = |user| list(user, "tools/list", "tools", "name");
        assert_eq!(tools(BOB), ["open", "challenge"], "{revision}");
        assert_eq!(tools(ANN), ["open", "owned", "challenge"], "{revision}");
        assert_eq!(tools(WRITER), ["open", "write", "challenge"], "{revision}");
        assert_eq!(list(BOB, "resources/list", "resources", "uri"), ["x://open"]);
        assert_eq!(list(ANN, "resources/list", "resources", "uri"), ["x://open", "x://owned"]);
        assert_eq!(list(BOB, "resources/templates/list", "resourceTemplates", "uriTemplate"), [""; 0]);
        assert_eq!(list(ANN, "resources/templates/list", "resourceTemplates", "uriTemplate"), ["y://{it}"]);
        assert_eq!(list(BOB, "prompts/list", "prompts", "name"), [""; 0]);
        assert_eq!(list(ANN, "prompts/list", "prompts", "name"), ["owned"]);
    }
}

/// The requests that name something hidden, and the same of a name that nobody has.
fn hidden_and_unknown() -> Vec<(&'static str, Value, Value)> {
    let of_prompt =
        |name: &str| json!({"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "it", "value": ""}});
    let of_uri =
        |uri: &str| json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "it", "value": ""}});
    vec![
        ("tools/call", json!({"name": "owned", "arguments": {}}), json!({"name": "never", "arguments": {}})),
        ("tools/call", json!({"name": "write", "arguments": {}}), json!({"name": "never", "arguments": {}})),
        ("resources/read", json!({"uri": "x://owned"}), json!({"uri": "x://never"})),
        ("resources/read", json!({"uri": "y://one"}), json!({"uri": "z://one"})),
        ("resources/subscribe", json!({"uri": "x://owned"}), json!({"uri": "x://never"})),
        ("prompts/get", json!({"name": "owned"}), json!({"name": "never"})),
        ("completion/complete", of_prompt("owned"), of_prompt("never")),
        ("completion/complete", of_uri("y://{it}"), of_uri("z://{it}")),
        ("completion/complete", of_uri("x://owned"), of_uri("x://never")),
    ]
}

#[test]
fn what_is_hidden_does_not_exist() {
    let service = service();
    for revision in REVISIONS {
        for (method, hidden, unknown) in hidden_and_unknown() {
            if is_modern(revision) && method == "resources/subscribe" {
                continue;
            }
            let answer = |params: &Value| {
                let mut answer =
                    ask(&service, &mut "ann", revision, BOB, &request(revision, 1, method, params.clone()));
                if let Some(data) = answer["error"].as_object_mut() {
                    data.remove("data");
                }
                answer
            };
            let seen = answer(&hidden);
            assert!(seen["error"]["code"].is_i64(), "{revision} {method} {seen}");
            assert_eq!(seen, answer(&unknown), "{revision} {method} {hidden}");
            // Its owner, who has all scopes, can use it.
            let mine = ask(&service, &mut "ann", revision, ("ann", u64::MAX), &request(revision, 1, method, hidden));
            assert!(mine["result"].is_object(), "{revision} {method} {mine}");
        }
    }
}

#[test]
fn a_name_with_escapes_hides_nothing() {
    let service = service();
    let call = request(MODERN, 1, "tools/call", json!({"name": "owned", "arguments": {}}));
    for name in [r#""\u006fwned""#, r#""owne\u0064""#] {
        let seen = ask(&service, &mut "ann", MODERN, BOB, &call.replace("\"owned\"", name));
        assert_eq!(seen["error"]["message"], "Unknown tool", "{seen}");
    }
    // The type counts, not another member of the reference.
    let reference = json!({"type": "ref/resource", "uri": "y://{it}", "name": "never"});
    let params = json!({"ref": reference, "argument": {"name": "it", "value": ""}});
    let seen = ask(&service, &mut "ann", MODERN, BOB, &request(MODERN, 1, "completion/complete", params));
    assert!(seen["error"]["code"].is_i64(), "{seen}");
}

#[test]
fn a_challenge_is_an_error_where_nobody_challenges() {
    let call = request(MODERN, 1, "tools/call", json!({"name": "challenge", "arguments": {}}));
    let seen = ask(&service(), &mut "ann", MODERN, BOB, &call);
    assert_eq!(seen["error"]["code"], -32600, "{seen}");
    assert!(ask(&service(), &mut "ann", MODERN, WRITER, &call)["result"].is_object());
    let text = |json: &'static str| Raw::constant(json).text().unwrap();
    let needed = |method, name| service().challenged_scopes(&text(method), Some(&text(name)));
    assert_eq!(needed(r#""tools/call""#, r#""challenge""#), WRITE);
    assert_eq!((needed(r#""tools/call""#, r#""write""#), needed(r#""prompts/get""#, r#""challenge""#)), (0, 0));
}

#[test]
fn a_list_by_caller_is_private() {
    let scope = |service: &Service<'_, Owner>, method: &str, params: Value| {
        let seen = ask(service, &mut "ann", MODERN, ("ann", u64::MAX), &request(MODERN, 1, method, params));
        (seen["result"]["ttlMs"].clone(), seen["result"]["cacheScope"].clone())
    };
    let hides = service();
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        assert_eq!(scope(&hides, method, json!({})), (json!(5), json!("private")), "{method}");
    }
    assert_eq!(scope(&hides, "resources/read", json!({"uri": "x://open"})), (json!(5), json!("public")));
    assert_eq!(scope(&hides, "resources/read", json!({"uri": "x://owned"})), (json!(1), json!("private")));
    static OPEN: [Resource<Owner>; 1] = [Resource::new("x://open", "open", read)];
    let open = Service::new("site", "1").resources(&OPEN).tools(&TOOLS).caching(Caching::public(5));
    assert_eq!(scope(&open, "resources/list", json!({})), (json!(5), json!("public")));
    let dynamic = Service::new("site", "1").dynamic_tools(&Mine).dynamic_resources(&Ours).caching(Caching::public(5));
    assert_eq!(scope(&dynamic, "tools/list", json!({})), (json!(5), json!("private")));
    assert_eq!(scope(&dynamic, "resources/list", json!({})), (json!(5), json!("public")));
}

/// A tool of each user, with its name.
struct Mine;

impl DynamicList<Tool<Owner>> for Mine {
    fn list(&self, _: &Owner, caller: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        let _ = caller.principal().into_iter().skip(from).all(|user| with(&ToolInfo::new(user, "Of the user")));
    }

    fn run(&self, _: usize, _: &mut Owner, call: &mut Call<'_>) -> HandlerResult {
        call.text("ran")
    }
}

/// A resource that all see.
struct Ours;

impl DynamicList<Resource<Owner>> for Ours {
    fn list(&self, _: &Owner, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        let _ = ["z://ours"].iter().skip(from).all(|uri| with(&ResourceInfo::new(uri, "ours")));
    }

    fn run(&self, _: usize, _: &mut Owner, read: &mut ReadResource<'_>) -> HandlerResult {
        read.text("contents")
    }
}

/// A prompt for clients of one name and of one revision.
struct Known;

impl DynamicList<Prompt<Owner>> for Known {
    fn list(&self, _: &Owner, caller: &Caller<'_>, from: usize, with: &mut dyn FnMut(&PromptInfo<'_>) -> bool) {
        let is_known =
            caller.client_info().and_then(|info| info.get("name")?.text()).is_some_and(|it| it.eq_str("known"));
        let name = if is_known { "known" } else { caller.revision().date() };
        let _ = [name].iter().skip(from).all(|name| with(&PromptInfo::new(name, "It")));
    }

    fn run(&self, _: usize, _: &mut Owner, get: &mut GetPrompt<'_>) -> HandlerResult {
        get.user("prompt")
    }
}

#[test]
fn lists_that_are_made_at_run_time_get_the_caller() {
    let service = Service::new("site", "1").dynamic_tools(&Mine).dynamic_prompts(&Known);
    for revision in REVISIONS {
        let say = |user, method: &str, params: Value| {
            ask(&service, &mut "ann", revision, user, &request(revision, 1, method, params))
        };
        assert_eq!(names(&say(ANN, "tools/list", json!({})), "tools", "name"), ["ann"]);
        assert_eq!(names(&say(BOB, "tools/list", json!({})), "tools", "name"), ["bob"]);
        assert!(say(ANN, "tools/call", json!({"name": "ann", "arguments": {}}))["result"].is_object());
        assert_eq!(say(ANN, "tools/call", json!({"name": "bob", "arguments": {}}))["error"]["code"], -32602);
        assert_eq!(names(&say(ANN, "prompts/list", json!({})), "prompts", "name"), [revision]);
    }
    let mut named: Value = parse(&request(MODERN, 1, "prompts/list", json!({})));
    named["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "known", "version": "1"});
    let seen = ask(&service, &mut "ann", MODERN, BOB, &named.to_string());
    assert_eq!(names(&seen, "prompts", "name"), ["known"]);
}

/// Hidden entries count for a page, so that a cursor means the same for all.
// spec: S087 S088
#[test]
fn pages_by_caller() {
    let service = service().page_size(1);
    let mut seen = Vec::new();
    let mut params = json!({});
    loop {
        let page = ask(&service, &mut "ann", MODERN, BOB, &request(MODERN, 1, "tools/list", params));
        assert_eq!(page["result"]["cacheScope"], "private", "{page}");
        seen.extend(names(&page, "tools", "name"));
        let Some(cursor) = page["result"]["nextCursor"].as_str() else { break };
        params = json!({"cursor": cursor});
    }
    assert_eq!(seen, ["open", "challenge"]);
}

/// A change for one user reaches the sessions and listens of that user.
#[test]
fn a_change_for_one_user() {
    let mut web = common::http::Web::new();
    let user = |name: &'static str| Box::new(move |_: &RequestHead<'_>| Access::Granted { principal: Some(name) });
    let filter = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let mut opened = Vec::new();
    for name in ["ann", "bob"] {
        web.authorize = user(name);
        let listen = web.modern(1, "subscriptions/listen", filter.clone()).opened();
        let session = web.open("2025-11-25");
        let stream = web.listen(&session, None).opened();
        assert_eq!(web.pull(listen).json().len(), 1, "the acknowledgement");
        let _ = web.pull(stream);
        opened.push((listen, stream));
    }
    let methods = |messages: Vec<Value>| -> Vec<String> {
        messages.iter().filter_map(|message| Some(message["method"].as_str()?.to_owned())).collect()
    };
    web.endpoint.publish_to("bob", ServerChange::Tools);
    let (ann, bob) = (opened[0], opened[1]);
    for stream in [ann.0, ann.1] {
        assert_eq!(methods(web.pull(stream).json()), [""; 0]);
    }
    for stream in [bob.0, bob.1] {
        assert_eq!(methods(web.pull(stream).json()), ["notifications/tools/list_changed"]);
    }
    web.publish(ServerChange::Prompts);
    for stream in [ann.0, ann.1, bob.0, bob.1] {
        assert_eq!(methods(web.pull(stream).json()), ["notifications/prompts/list_changed"]);
    }
}
