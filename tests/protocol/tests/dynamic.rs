//! Tools, resources, templates and prompts that are not in constant tables: from the state, behind a lock, changing while they
//! are listed.
use crate::common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use mcp_sansio::content::{Annotations, Icon};
use mcp_sansio::json::Text;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{Caching, RequestSlot, Server};
use mcp_sansio::service::{
    Call, Caller, Complete, Dispatched, DynamicList, GetPrompt, HandlerResult, Prompt, PromptArgument, PromptInfo,
    ReadResource, Resource, ResourceInfo, ResourceTemplate, Service, Tool, ToolAnnotations, ToolInfo,
};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_host::{OwnedTool, OwnedTools};

const WRONG: &str = "not listed";

/// Lists a row of the state as each kind of entry. Rows that begin with `!` are wrong.
struct Rows;

impl Rows {
    fn each(rows: &[String], from: usize, with: &mut dyn FnMut(&str, bool) -> bool) {
        let _ = rows.iter().skip(from).all(|row| with(row, row.starts_with('!')));
    }
}

impl DynamicList<Tool<World>> for Rows {
    fn list(&self, world: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        Rows::each(&world.rows, from, &mut |row, wrong| {
            let info = ToolInfo::new(row, "A row").hints(ToolAnnotations::new().read_only(true));
            with(&if wrong { info.input("{") } else { info })
        });
    }

    fn run(&self, key: usize, world: &mut World, call: &mut Call<'_>) -> HandlerResult {
        assert!(call.name().eq_str(&world.rows[key]));
        call.text(format_args!("called {}", world.rows[key]))
    }
}

impl DynamicList<Resource<World>> for Rows {
    fn list(&self, world: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        Rows::each(&world.rows, from, &mut |row, wrong| {
            let uri = format!("{}{row}", if wrong { "" } else { "row://" });
            with(&ResourceInfo::new(&uri, row).mime("text/plain").size(row.len() as u64))
        });
    }

    fn run(&self, key: usize, world: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
        read.mime = Some("text/plain");
        read.caching = Caching::private(7);
        read.text(format_args!("read {}", world.rows[key]))
    }
}

impl DynamicList<ResourceTemplate<World>> for Rows {
    fn list(&self, world: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        Rows::each(&world.rows, from, &mut |row, wrong| {
            let uri = format!("of://{row}/{{part}}{}", if wrong { "{" } else { "" });
            with(&ResourceInfo::new(&uri, row))
        });
    }

    fn run(&self, key: usize, world: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
        let template = format!("of://{}/{{part}}", world.rows[key]);
        let part = read.var_of(&template, "part").expect("it matches");
        assert_eq!(read.var("part"), None);
        read.text(format_args!("{part} of {}", world.rows[key]))
    }

    fn complete(&self, index: usize, world: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
        complete.offer([format!("{}+{}", complete.value, world.rows[index])])
    }
}

impl DynamicList<Prompt<World>> for Rows {
    fn list(&self, world: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&PromptInfo<'_>) -> bool) {
        Rows::each(&world.rows, from, &mut |row, wrong| {
            let title = format!("Title of {row}");
            let arguments = [PromptArgument::required("what").title(&title)];
            let info = PromptInfo::new(row, "A row").arguments(&arguments);
            with(&if wrong { info.meta("[]") } else { info })
        });
    }

    fn run(&self, key: usize, world: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
        assert!(get.name().eq_str(&world.rows[key]));
        get.user(format_args!("{} of {}", get.arg("what").expect("it is required"), world.rows[key]))
    }

    fn complete(&self, key: usize, world: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
        complete.offer([format!("{}-{}", complete.value, world.rows[key])])
    }
}

fn own(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("own")
}

static TOOLS: [Tool<World>; 2] =
    [Tool::new("own", "Own", |_, call| call.text("own")), Tool::new("two", "Hides a row", |_, call| call.text("own"))];
static RESOURCES: [Resource<World>; 1] = [Resource::new("own:1", "own", own)];
static TEMPLATES: [ResourceTemplate<World>; 1] = [ResourceTemplate::new("own://{it}", "own", own)];
static PROMPTS: [Prompt<World>; 1] = [Prompt::new("own", "Own", |_, get| get.user("own"))];

/// The tables are set before and after the others: the order of the builder does not matter.
fn services() -> [Service<'static, World>; 2] {
    let tables = |service: Service<'static, World>| {
        service.tools(&TOOLS).resources(&RESOURCES).templates(&TEMPLATES).prompts(&PROMPTS)
    };
    let rows = |service: Service<'static, World>| {
        service.dynamic_tools(&Rows).dynamic_resources(&Rows).dynamic_templates(&Rows).dynamic_prompts(&Rows)
    };
    let service = || Service::new("rows", "1").feature(ServerCapability::Subscribe);
    [rows(tables(service())), tables(rows(service()))].map(|it| it.feature(ServerCapability::Completions))
}

fn rig(window: usize, service: Service<'static, World>, revision: &str, rows: &[&str]) -> Rig {
    let mut rig: Rig = Rig::with(window).serving(service).opened(revision);
    rig.world.rows = rows.iter().map(|row| (*row).to_owned()).collect();
    rig
}

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "name"),
    ("resources/templates/list", "resourceTemplates", "name"),
    ("prompts/list", "prompts", "name"),
];

/// Returns the names on a page, and its cursor.
fn page(
    rig: &mut Rig,
    revision: &str,
    list: (&str, &str, &str),
    cursor: Option<Value>,
) -> (Vec<String>, Option<Value>) {
    let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
    let reply = parse(&rig.one(&request(revision, 1, list.0, params)));
    let entries = reply["result"][list.1].as_array().unwrap_or_else(|| panic!("no list: {reply}"));
    let names = entries.iter().map(|entry| entry[list.2].as_str().expect("a name").to_owned()).collect();
    (names, reply["result"].get("nextCursor").cloned())
}

fn all(rig: &mut Rig, revision: &str, list: (&str, &str, &str)) -> Vec<String> {
    let (mut names, mut next) = page(rig, revision, list, None);
    while let Some(cursor) = next {
        let (more, after) = page(rig, revision, list, Some(cursor));
        names.extend(more);
        next = after;
    }
    names
}

fn own_of(list: &str) -> &'static [&'static str] {
    if list == "tools/list" { &["own", "two"] } else { &["own"] }
}

// spec: S165
#[test]
fn lists_come_from_the_state() {
    let rows = ["one", "!wrong", "two", "!wrong too", "three"];
    for revision in REVISIONS {
        for (window, order) in [(usize::MAX, 0), (400, 1)] {
            for size in [1, 2, 3, 7, usize::MAX] {
                let service = services().into_iter().nth(order).expect("two");
                let mut rig = rig(window, service.page_size(size), revision, &rows);
                for list in LISTS {
                    let expected = [own_of(list.0), &["one", "two", "three"]].concat();
                    assert_eq!(all(&mut rig, revision, list), expected, "{revision} {list:?} {size}");
                }
                // All rows are wrong, or there are none.
                for rows in [&["!a", "!b"][..], &[]] {
                    rig.world.rows = rows.iter().map(|row| (*row).to_owned()).collect();
                    for list in LISTS {
                        assert_eq!(all(&mut rig, revision, list), own_of(list.0), "{revision} {list:?} {size}");
                    }
                }
            }
        }
    }
}

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
const META: &str = r#"{"example.org/a":1}"#;
const HINTS: ToolAnnotations = ToolAnnotations::new().idempotent(true);
const ICONS: [Icon<'static>; 1] = [Icon::new("https://example.org/i.png")];
const ARGUMENTS: [PromptArgument<'static>; 1] = [PromptArgument::optional("what")];
const ANNOTATIONS: Annotations<'static> = Annotations::new().priority(50);

/// Sets all members that a resource and a template have, in a table or from the state.
macro_rules! all_of {
    ($info:expr) => {
        $info.title("T").description("D").mime("a/b").annotations(ANNOTATIONS).icons(&ICONS).meta(META).reserve(9)
    };
}

struct All;

impl DynamicList<Tool<World>> for All {
    fn list(&self, _: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        let info = ToolInfo::new("it", "It").title("T").input(SCHEMA).output(SCHEMA).hints(HINTS);
        let _ = [info.icons(&ICONS).meta(META).reserve(9)].iter().skip(from).all(with);
    }
    fn run(&self, _: usize, _: &mut World, call: &mut Call<'_>) -> HandlerResult {
        call.text("it")
    }
}

impl DynamicList<Resource<World>> for All {
    fn list(&self, _: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        let info = all_of!(ResourceInfo::new("it://1", "it")).size(5);
        let _ = [info].iter().skip(from).all(with);
    }
    fn run(&self, _: usize, world: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
        read.mime = Some("a/b");
        read.caching = Caching::private(7);
        own(world, read)
    }
}

impl DynamicList<ResourceTemplate<World>> for All {
    fn list(&self, _: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        let _ = [all_of!(ResourceInfo::new("it://{n}", "it"))].iter().skip(from).all(with);
    }
    fn run(&self, _: usize, world: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
        own(world, read)
    }
}

impl DynamicList<Prompt<World>> for All {
    fn list(&self, _: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&PromptInfo<'_>) -> bool) {
        let info = PromptInfo::new("it", "It").title("T").arguments(&ARGUMENTS).icons(&ICONS).meta(META).reserve(9);
        let _ = [info].iter().skip(from).all(with);
    }
    fn run(&self, _: usize, _: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
        get.user("it")
    }
}

/// Descriptions from the state have the members of those in tables, and are made in the same way.
#[test]
fn descriptions_have_all_members() {
    static TOOLS: [Tool<World>; 1] = [Tool::new("it", "It", |_, call| call.text("it"))
        .title("T")
        .input(SCHEMA)
        .output(SCHEMA)
        .hints(HINTS)
        .icons(&ICONS)
        .meta(META)
        .reserve(9)];
    static RESOURCES: [Resource<World>; 1] =
        [all_of!(Resource::new("it://1", "it", own)).size(5).caching(Caching::private(7))];
    static TEMPLATES: [ResourceTemplate<World>; 1] = [all_of!(ResourceTemplate::new("it://{n}", "it", own))];
    static PROMPTS: [Prompt<World>; 1] = [Prompt::new("it", "It", |_, get| get.user("it"))
        .title("T")
        .arguments(&ARGUMENTS)
        .icons(&ICONS)
        .meta(META)
        .reserve(9)];
    let tables =
        || Service::new("all", "1").tools(&TOOLS).resources(&RESOURCES).templates(&TEMPLATES).prompts(&PROMPTS);
    let state = || Service::new("all", "1").dynamic_tools(&All).dynamic_resources(&All);
    let state = || state().dynamic_templates(&All).dynamic_prompts(&All);
    for revision in REVISIONS {
        let [mut one, mut other] = [tables(), state()].map(|service| rig(usize::MAX, service, revision, &[]));
        for (method, ..) in LISTS {
            let ask = request(revision, 1, method, json!({}));
            let reply = one.one(&ask);
            assert_eq!(parse(&reply), parse(&other.one(&ask)), "{revision} {method}");
            assert_eq!(reply.contains("example.org/a"), revision >= "2025-06-18", "{reply}");
        }
        let ask = request(revision, 1, "resources/read", json!({ "uri": "it://1" }));
        assert_eq!(parse(&one.one(&ask)), parse(&other.one(&ask)), "{revision}");
    }
}

#[test]
fn entries_of_the_state_are_used() {
    for revision in REVISIONS {
        for service in services() {
            let mut rig = rig(usize::MAX, service, revision, &["one", "!wrong", "two"]);
            assert_eq!(text(&rig.one(&call(revision, 1, "one", json!({})))), "called one");
            assert_eq!(text(&rig.one(&call(revision, 1, "two", json!({})))), "own", "the table hides it");
            assert_eq!(code(&rig.one(&call(revision, 1, "!wrong", json!({})))), -32602);
            let mut read = |uri: &str| parse(&rig.one(&request(revision, 1, "resources/read", json!({ "uri": uri }))));
            let contents = &read("row://two")["result"];
            assert_eq!(
                contents["contents"][0],
                json!({"uri": "row://two", "mimeType": "text/plain", "text": "read two"})
            );
            assert_eq!(contents.get("ttlMs"), is_modern(revision).then_some(&json!(7)));
            assert_eq!(read("of://two/a%20b")["result"]["contents"][0]["text"], "a%20b of two");
            assert_eq!(read("own:1")["result"]["contents"][0]["text"], "own");
            assert_eq!(read("own://x")["result"]["contents"][0]["text"], "own");
            for unknown in ["row://four", "!wrong", "of://four/x", "of://two/", "of://!wrong/x"] {
                assert!(read(unknown)["error"]["code"].is_i64(), "{unknown}");
            }
            let mut get = |name: &str, arguments: Value| {
                parse(&rig.one(&request(revision, 1, "prompts/get", json!({"name": name, "arguments": arguments}))))
            };
            let got = get("one", json!({"what": "\u{1F600}\n"}));
            assert_eq!(got["result"]["messages"][0]["content"]["text"], "\u{1F600}\n of one");
            assert_eq!(get("own", json!({}))["result"]["messages"][0]["content"]["text"], "own");
            for (name, arguments) in
                [("one", json!({})), ("one", json!({"what": 1})), ("!wrong", json!({"what": ""})), ("four", json!({}))]
            {
                assert_eq!(get(name, arguments)["error"]["code"], -32602, "{name}");
            }
        }
    }
}

#[test]
fn entries_of_the_state_complete() {
    for revision in REVISIONS {
        for service in services() {
            let mut rig = rig(usize::MAX, service, revision, &["one", "!wrong", "two"]);
            let mut complete = |reference: Value, name: &str| {
                let params = json!({"ref": reference, "argument": {"name": name, "value": "a\"b"}});
                let reply = parse(&rig.one(&request(revision, 1, "completion/complete", params)));
                reply["result"]["completion"]["values"].as_array().cloned()
            };
            let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
            let uri = |uri: &str| json!({"type": "ref/resource", "uri": uri});
            assert_eq!(complete(prompt("two"), "what"), Some(vec![json!("a\"b-two")]));
            assert_eq!(complete(uri("of://two/{part}"), "part"), Some(vec![json!("a\"b+two")]));
            for (reference, argument) in [
                (prompt("two"), "other"),
                (uri("of://two/{part}"), "other"),
                (uri("row://two"), "part"),
                (prompt("own"), "what"),
                (uri("own://{it}"), "it"),
            ] {
                assert_eq!(complete(reference.clone(), argument), Some(vec![]), "{reference}");
            }
            for reference in
                [prompt("!wrong"), prompt("four"), uri("of://four/{part}"), uri("row://four"), uri("!wrong")]
            {
                assert_eq!(complete(reference.clone(), "what"), None, "{reference}");
            }
        }
    }
}

#[test]
fn a_resource_of_the_state_is_subscribed_to() {
    for revision in LEGACY {
        let mut rig = rig(usize::MAX, services().into_iter().next().expect("one"), revision, &["one"]);
        let mut subscribe =
            |uri: &str| parse(&rig.one(&request(revision, 1, "resources/subscribe", json!({ "uri": uri }))));
        assert_eq!(subscribe("row://one")["result"], json!({}));
        assert!(subscribe("row://two")["error"]["code"].is_i64());
    }
}

/// A cursor behind the end of a list that has become shorter is that of an empty page. A list that grows goes on.
// spec: S165
#[test]
fn a_list_changes_between_pages() {
    for revision in REVISIONS {
        for list in LISTS {
            let service = services().into_iter().next().expect("one");
            let mut rig = rig(usize::MAX, service.page_size(3), revision, &["a", "b", "c", "d", "e"]);
            let (_, next) = page(&mut rig, revision, list, None);
            rig.world.rows.truncate(1);
            assert_eq!(page(&mut rig, revision, list, next.clone()), (vec![], None), "{revision} {list:?}");
            rig.world.rows = (0..10).map(|n| format!("n{n}")).collect();
            let (names, next) = page(&mut rig, revision, list, next);
            assert_eq!(names.len(), 3, "{revision} {list:?}");
            rig.world.rows.clear();
            assert_eq!(page(&mut rig, revision, list, next), (vec![], None));
            for wrong in [json!("x"), json!("-1"), json!("01"), json!(3), json!("9999999999")] {
                let reply = rig.one(&request(revision, 1, list.0, json!({ "cursor": wrong })));
                assert_eq!(code(&reply), -32602, "{reply}");
            }
        }
    }
}

/// A service with one list from the state: the cursors of its other lists are those of fixed lists, and are checked.
#[test]
fn other_lists_are_fixed() {
    const fn prompt(name: &'static str) -> Prompt<World> {
        Prompt::new(name, "One of five", |_, get| get.user("own"))
    }
    static MANY: [Prompt<World>; 5] = [prompt("p0"), prompt("p1"), prompt("p2"), prompt("p3"), prompt("p4")];
    for revision in REVISIONS {
        let service = Service::new("rows", "1").dynamic_tools(&Rows).prompts(&MANY).page_size(2);
        let mut rig = rig(usize::MAX, service, revision, &["a", "b", "c"]);
        assert_eq!(all(&mut rig, revision, LISTS[3]), ["p0", "p1", "p2", "p3", "p4"]);
        let (_, next) = page(&mut rig, revision, LISTS[3], None);
        let (names, next) = page(&mut rig, revision, LISTS[3], next);
        assert_eq!(names, ["p2", "p3"]);
        let (names, next) = page(&mut rig, revision, LISTS[3], next);
        assert_eq!((names, next), (vec!["p4".to_owned()], None));
        for wrong in ["5", "6", "100"] {
            let reply = rig.one(&request(revision, 1, "prompts/list", json!({ "cursor": wrong })));
            assert_eq!(code(&reply), -32602, "{reply}");
        }
        assert_eq!(all(&mut rig, revision, LISTS[0]), ["a", "b", "c"]);
    }
}

/// Sends a list through a window, and changes the rows after each one. Returns the reply.
fn in_windows(
    window: usize,
    service: &Service<'_, World>,
    world: &mut World,
    change: &mut dyn FnMut(&mut World),
) -> String {
    let mut bytes = vec![0; window];
    let mut out = LineSink::new(SliceStorage::new(&mut bytes));
    let mut slots = [RequestSlot::FREE; 2];
    let mut server = Server::new(&mut slots);
    let list = request(MODERN, 1, "resources/list", json!({}));
    let mut step = service.dispatch(world, list.as_bytes(), &mut server, &mut out).expect("room");
    let mut said = Vec::new();
    loop {
        said.extend_from_slice(out.pending());
        out.clear_pending();
        match step {
            Dispatched::Streaming(token) => {
                change(world);
                step = service.pump(world, token, &mut server, &mut out);
            }
            _ => break,
        }
    }
    String::from_utf8(said).expect("text")
}

trait ClearPending {
    fn clear_pending(&mut self);
}

impl<S: mcp_sansio::sink::Storage> ClearPending for LineSink<S> {
    fn clear_pending(&mut self) {
        let len = self.pending().len();
        self.sent(len);
    }
}

/// Whatever happens to a list between its windows, the reply is JSON.
#[test]
fn a_list_changes_between_windows() {
    let service = services().into_iter().next().expect("one");
    let rows = |count: usize| -> Vec<String> { (0..count).map(|n| format!("row{n}{}", "x".repeat(n % 40))).collect() };
    for window in [300, 333, 512, 1024] {
        let mut seed = window as u64;
        for turn in 0..50 {
            let mut world = World { rows: rows(60), ..World::default() };
            let said = in_windows(window, &service, &mut world, &mut |world| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                match seed >> 61 {
                    0 => world.rows.clear(),
                    1 => world.rows.truncate(5),
                    2 => drop(world.rows.remove(0)),
                    3 => world.rows.iter_mut().for_each(|row| row.insert(0, '!')),
                    4 => world.rows = rows(90),
                    5 => world.rows.iter_mut().for_each(|row| row.push_str("yyy")),
                    _ => {}
                }
            });
            let reply = parse(&said);
            assert_eq!(reply["result"]["resources"][0]["uri"], "own:1", "{turn} {said}");
            assert_eq!(reply["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "rows");
        }
    }
    // What does not fit into an empty window is left out.
    let mut world = World { rows: vec!["a".into(), "b".repeat(600), "c".into()], ..World::default() };
    let reply = parse(&in_windows(512, &service, &mut world, &mut |_| {}));
    let names: Vec<_> = reply["result"]["resources"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["own", "a", "c"]);
}

/// Counts how often it describes a resource.
struct Many(AtomicUsize);

const MANY: usize = 10_000;

impl DynamicList<Resource<World>> for Many {
    fn list(&self, _: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        for n in from..MANY {
            self.0.fetch_add(1, Ordering::Relaxed);
            if !with(&ResourceInfo::new(&format!("many://{n}"), "one of many")) {
                break;
            }
        }
    }

    fn find(&self, _: &World, _: &Caller<'_>, uri: &Text<'_>, with: &mut dyn FnMut(usize, &ResourceInfo<'_>)) {
        let key = uri.plain().and_then(|uri| uri.strip_prefix("many://")?.parse().ok());
        if let Some(key) = key.filter(|key| *key < MANY) {
            with(key, &ResourceInfo::new(&format!("many://{key}"), "one of many"));
        }
    }

    fn run(&self, key: usize, _: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
        read.text(key.to_string().as_str())
    }
}

/// The work for a list grows with its length alone.
#[test]
fn ten_thousand_resources_through_a_kilobyte() {
    let many = Many(AtomicUsize::new(0));
    let service = Service::new("many", "1").dynamic_resources(&many);
    let mut windows = 0;
    let said = in_windows(1024, &service, &mut World::default(), &mut |_| windows += 1);
    let reply = parse(&said);
    let listed = reply["result"]["resources"].as_array().unwrap();
    assert_eq!((listed.len(), &listed[MANY - 1]["uri"]), (MANY, &json!("many://9999")));
    // Once for the entry that is sent, and once more for each that did not fit into the rest of a window.
    let described = many.0.load(Ordering::Relaxed);
    assert!(described <= MANY + 2 * windows + 30, "{described} in {windows} windows");
    many.0.store(0, Ordering::Relaxed);
    let mut rig: Rig = Rig::with(1024)
        .serving(Service::new("many", "1").dynamic_resources(Box::leak(Box::new(Many(AtomicUsize::new(0))))))
        .opened(MODERN);
    let read = parse(&rig.one(&request(MODERN, 1, "resources/read", json!({"uri": "many://9998"}))));
    assert_eq!(read["result"]["contents"][0]["text"], "9998");
}

/// A list behind a lock, which another thread changes all the time.
#[test]
fn a_lock_is_behind_it() {
    struct Locked(Mutex<Vec<String>>);
    impl DynamicList<Tool<World>> for Locked {
        fn list(&self, _: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
            let _ = self.0.lock().unwrap().iter().skip(from).all(|name| with(&ToolInfo::new(name, "")));
        }
        fn run(&self, _: usize, _: &mut World, call: &mut Call<'_>) -> HandlerResult {
            let name = call.name();
            match self.0.lock().unwrap().iter().find(|known| name.eq_str(known)) {
                Some(known) => call.text(known),
                None => call.error(WRONG),
            }
        }
    }
    let locked: &'static Locked = Box::leak(Box::new(Locked(Mutex::new(Vec::new()))));
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let done = done.clone();
        move || {
            for n in (0..).take_while(|_| !done.load(Ordering::Relaxed)) {
                *locked.0.lock().unwrap() = (n % 7..20).map(|n| format!("tool{n}")).collect();
            }
        }
    });
    for window in [300, 1000, usize::MAX] {
        let mut rig: Rig = Rig::with(window).serving(Service::new("locked", "1").dynamic_tools(locked)).opened(MODERN);
        for _ in 0..200 {
            assert!(parse(&rig.one(&request(MODERN, 1, "tools/list", json!({}))))["result"]["tools"].is_array());
            let called = parse(&rig.one(&call(MODERN, 1, "tool9", json!({}))));
            // The list is empty at the very beginning.
            assert!(called["result"]["content"][0]["text"] == "tool9" || called["error"]["code"] == -32602, "{called}");
        }
    }
    done.store(true, Ordering::Relaxed);
    writer.join().unwrap();
}

/// The checks of a transport see the schemas of tools that are not in a table, and those that a layer knows.
#[test]
fn arguments_are_checked() {
    use mcp_sansio::json::Raw;
    use mcp_sansio::server::{RpcError, TransportChecks};
    use mcp_sansio::service::{HandlerError, Layer, LayerRequest, MessageSource, Receipt};

    struct Refuses;
    impl TransportChecks for Refuses {
        fn arguments(&self, schema: Raw<'_>, _: Raw<'_>) -> Result<(), RpcError<'static>> {
            assert!(schema.get("properties").is_some());
            Err(RpcError::new(-32020, "a header differs"))
        }
    }
    struct Knows;
    impl Layer<World> for Knows {
        fn request(&self, _: &mut World, call: &mut LayerRequest<'_, '_>) -> Result<Option<Receipt>, HandlerError> {
            call.source.checks.arguments(Raw::constant(r#"{"properties":{}}"#), call.arguments())?;
            Ok(None)
        }
    }
    let message = call(MODERN, 1, "row", json!({}));
    let source = MessageSource::new(&Refuses);
    let mut world = World { rows: vec!["row".into()], ..World::default() };
    let [service, _] = services();
    let layered = Service::new("other", "1").feature(ServerCapability::Tools).layers(&[&Knows]);
    for service in [service, layered] {
        let mut slots = [RequestSlot::FREE; 2];
        let (mut server, mut out) = (Server::new(&mut slots), LineSink::new(Vec::new()));
        let _ = service.dispatch_from(&source, &mut world, message.as_bytes(), &mut server, &mut out);
        assert_eq!(code(core::str::from_utf8(out.pending()).unwrap().trim()), -32020);
    }
}

/// A read and a prompt that are answered late.
#[test]
fn late_answers() {
    use mcp_sansio_host::testing::Conversation;
    type Tokens = Vec<mcp_sansio::server::RequestToken>;
    struct Late;
    impl DynamicList<Resource<Tokens>> for Late {
        fn list(&self, _: &Tokens, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
            let _ = [ResourceInfo::new("late:1", "late")].iter().skip(from).all(with);
        }
        fn run(&self, _: usize, tokens: &mut Tokens, read: &mut ReadResource<'_>) -> HandlerResult {
            let (token, outcome) = read.later();
            tokens.push(token);
            outcome
        }
    }
    impl DynamicList<Prompt<Tokens>> for Late {
        fn list(&self, _: &Tokens, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&PromptInfo<'_>) -> bool) {
            let _ = [PromptInfo::new("late", "")].iter().skip(from).all(with);
        }
        fn run(&self, _: usize, tokens: &mut Tokens, get: &mut GetPrompt<'_>) -> HandlerResult {
            let (token, outcome) = get.later();
            tokens.push(token);
            outcome
        }
    }
    let service = Service::new("late", "1").dynamic_resources(&Late).dynamic_prompts(&Late);
    for revision in mcp_sansio::revision::Revision::ALL {
        let mut conversation = Conversation::new(&service, Tokens::new());
        conversation.open(revision);
        assert!(conversation.read("late:1").is_pending());
        assert!(conversation.prompt("late", &json!({})).is_pending());
        let [read, prompt] = conversation.state()[..] else { panic!("two") };
        let read = conversation.answer(read.as_read("late:1"), |_, read| read.text("now")).unwrap();
        assert!(read[0].contains(r#""uri":"late:1","text":"now""#), "{read:?}");
        let prompt = conversation.answer(prompt.as_prompt(), |_, get| get.user("now")).unwrap();
        assert!(prompt[0].contains(r#""text":"now""#) && !prompt[0].contains("description"), "{prompt:?}");
    }
}

#[test]
fn owned_tools_have_all_members() {
    use mcp_sansio::client::views::{ListToolsResult, View};
    use mcp_sansio::json::Raw;
    use mcp_sansio::server::Icon;

    let tools: &'static OwnedTools<World> = Box::leak(Box::new(OwnedTools::new()));
    let full = OwnedTool::new("full", "Has it all", |_: &mut World, call: &mut Call<'_>| call.text("full")).unwrap();
    let hints = ToolAnnotations::new().read_only(true).idempotent(false);
    let icons = [Icon::new("https://example.com/i.png").mime("image/png").sizes(&["48x48", "any"]).theme("dark")];
    let full = full.title("Full").hints(hints).icons(&icons).meta(r#"{"a.example/x":1}"#).unwrap().reserve(900);
    assert!(OwnedTool::new("full", "x", |_: &mut World, _| unreachable!()).unwrap().meta("[]").is_err());
    tools.push(full);
    let mut rig: Rig = Rig::new().serving(Service::new("owned", "1").dynamic_tools(tools)).opened("2025-11-25");
    let list = request("2025-11-25", 1, "tools/list", json!({}));
    let mut listed = || parse(&rig.one(&list))["result"].clone();
    let first = listed();
    assert_eq!(
        first["tools"][0],
        json!({"name": "full", "description": "Has it all", "inputSchema": {"type": "object", "properties": {}},
            "title": "Full", "annotations": {"readOnlyHint": true, "idempotentHint": false},
            "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48", "any"], "theme": "dark"}],
            "_meta": {"a.example/x": 1}})
    );
    // A gateway lists the same under another name, and replaces it in one step, while it is served.
    let first = first.to_string();
    let views = ListToolsResult::of(Raw::parse(first.as_bytes()).unwrap()).unwrap();
    let again = views
        .iter()
        .flatten()
        .map(|view| OwnedTool::of("again", &view, |_: &mut World, call: &mut Call<'_>| call.text("again")));
    assert_eq!((tools.replace(|name| name == "full", again), tools.len(), tools.is_empty()), (1, 1, false));
    let mut second = listed();
    assert_eq!(second["tools"][0]["name"].take(), "again");
    let mut first = parse(&first);
    first["tools"][0]["name"].take();
    assert_eq!(first, second);
}

/// A result that is passed on from another server does not name that server.
#[test]
fn a_result_that_is_passed_on() {
    use mcp_sansio::json::Raw;
    const THEIRS: Raw<'static> = Raw::constant(
        r#"{"content":[],"isError":false,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"child","version":"1"},"x":1}}"#,
    );
    const SIGNED: Raw<'static> = Raw::constant(
        r#"{"content":[],"isError":false,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"child","version":"1"}}}"#,
    );
    static TOOLS: [Tool<World>; 2] = [
        Tool::new("theirs", "Passes on", |_, call| call.result(THEIRS)),
        Tool::new("signed", "Passes on", |_, call| call.result(SIGNED)),
    ];
    for revision in REVISIONS {
        let mut rig: Rig = Rig::new().serving(Service::new("gateway", "1").tools(&TOOLS)).opened(revision);
        let mut result = |tool: &str| parse(&rig.one(&call(revision, 1, tool, json!({}))))["result"].clone();
        let (theirs, signed) = (result("theirs"), result("signed"));
        assert_eq!(theirs["_meta"]["x"], 1);
        match is_modern(revision) {
            true => {
                for result in [theirs, signed] {
                    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "gateway");
                }
            }
            false => assert_eq!((theirs["_meta"].clone(), signed.get("_meta")), (json!({"x": 1}), None)),
        }
    }
}
