//! Authorization as an application meets it: tokens go where they belong and nowhere else, and each refusal has its
//! reason.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::revision::Revision;
use mcp_sansio_auth_tests::{Kept, Response, Role, World, browse, escape, fresh_key, login, redirect_of};
use mcp_sansio_blocking::client::auth::RegisteredClient;
use mcp_sansio_blocking::client::{
    AuthorizationOptions, Client, ClientError, Http, HttpOptions, Ignore, TokenFile, TokenStore,
};
use serde_json::json;

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1.0");

type Mcp = Client<'static, Http<'static>, Ignore>;

/// Makes a client of 2026-07-28, which sends nothing yet.
fn client(world: &World, options: AuthorizationOptions) -> Mcp {
    connected(world, options, Revision::V2026_07_28).unwrap()
}

fn connected(world: &World, options: AuthorizationOptions, revision: Revision) -> Result<Mcp, ClientError> {
    let http = Http::new(&world.url(), &PROFILE)?.authorization(options)?;
    let mut client = Client::new(http, Ignore);
    client.connect_as(revision)?;
    Ok(client)
}

fn list(client: &mut Mcp) -> Result<(), String> {
    client.request(&Request::list_tools()).map(drop).map_err(|error| error.to_string())
}

fn call(client: &mut Mcp, tool: &str) -> Result<(), String> {
    client.request(&Request::call(tool)).map(drop).map_err(|error| error.to_string())
}

/// Logs in and returns the reason of the refusal.
fn refusal(world: &World, options: AuthorizationOptions) -> String {
    list(&mut client(world, options)).unwrap_err()
}

fn count(world: &World, role: Role, path: &str) -> usize {
    world.requests(role, path).len()
}

/// Nothing went where it must not go.
fn is_clean(world: &World) {
    assert_eq!(world.violations(), [""; 0]);
}

// spec: A067 A068 A083 A182 A184 A185
#[test]
fn each_request_has_the_token() {
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let world = World::new();
        let mut client = connected(&world, login(), revision).unwrap();
        list(&mut client).unwrap();
        client.turn(Duration::from_millis(200)).unwrap();
        call(&mut client, "look").unwrap();
        client.close();
        let all = world.requests(Role::Mcp, "/mcp");
        let without = all.iter().filter(|request| request.header("authorization").is_empty()).count();
        assert_eq!(without, 1, "{revision:?}: only the first: {:?}", world.story());
        let has = |method: &str| all.iter().any(|request| request.method == method);
        assert_eq!((has("GET"), has("DELETE")), (!revision.is_modern(), !revision.is_modern()), "{:?}", world.story());
        assert_eq!(count(&world, Role::Issuer, "/authorize"), 1);
        is_clean(&world);
    }
}

#[test]
fn the_next_start_does_not_ask_again() {
    let (world, kept) = (World::new(), Kept::default());
    list(&mut client(&world, login().tokens(kept.clone()))).unwrap();
    let asked = world.story().len();
    list(&mut client(&world, login().tokens(kept.clone()))).unwrap();
    assert_eq!(world.story()[asked..], ["Mcp POST /mcp"]);
    // Without a token that is good, the registration still is.
    world.expire_tokens();
    world.revoke_refresh();
    list(&mut client(&world, login().tokens(kept))).unwrap();
    assert_eq!((count(&world, Role::Issuer, "/authorize"), count(&world, Role::Issuer, "/register")), (2, 1));
    is_clean(&world);
}

// spec: A179
#[test]
fn tokens_stay_on_the_origin() {
    let world = World::new();
    let mut client = client(&world, login());
    list(&mut client).unwrap();
    world.answer(Role::Mcp, |origins, request, _| {
        (request.path() == "/mcp").then(|| Response::redirect(307, &format!("{}/mcp", origins.of(Role::Stranger))))
    });
    list(&mut client).unwrap_err();
    assert_eq!(count(&world, Role::Stranger, "/mcp"), 0);
    is_clean(&world);
}

// spec: A045 A142 A216
#[test]
fn secrets_are_not_shown() {
    let (world, kept) = (World::new(), Kept::default());
    world.state().register(Role::Issuer, "me", "hush-hush");
    let me = RegisteredClient::new("me").secret("hush-hush").issuer(world.origin(Role::Issuer));
    let options = login().tokens(kept).config(|config| config.registered(me));
    let mut shown = format!("{options:?}");
    let http = Http::new(&world.url(), &PROFILE).unwrap().authorization(options).unwrap();
    let mut client = Client::new(http, Ignore);
    let traced = Arc::new(Mutex::new(String::new()));
    let trace = traced.clone();
    client.trace(move |_, message| trace.lock().unwrap().push_str(&String::from_utf8_lossy(message)));
    client.connect_as(Revision::V2026_07_28).unwrap();
    list(&mut client).unwrap();
    shown += &format!("{client:?}");
    shown += &format!("{:?}", client.transport);
    world.answer(Role::Mcp, |_, _, _| Some(Response::new(401, "text/plain", "")));
    shown += &list(&mut client).unwrap_err();
    shown += &traced.lock().unwrap();
    assert!(world.secrets().len() >= 3 && shown.contains("tools/list"));
    for secret in world.secrets() {
        assert!(!shown.contains(&secret), "{secret} in {shown}");
    }
}

/// `state` of another flow, a late redirect, and one that comes twice.
// spec: A211
#[test]
fn only_the_redirect_of_the_flow_counts() {
    let world = World::new();
    let options = login().visit(|url| {
        let url = url.to_owned();
        std::thread::spawn(move || {
            let back = redirect_of(&url).unwrap();
            let (before, rest) = back.split_once("state=").unwrap();
            let after = rest.split_once('&').map_or("", |(_, after)| after);
            let fetcher = mcp_sansio_blocking::client::Fetcher::default();
            let visit = |url: &str| {
                fetcher
                    .fetch(&mcp_sansio_blocking::client::FetchRequest::get(url))
                    .map(|answer| answer.status)
                    .unwrap_or(0)
            };
            assert_eq!(visit(&format!("{before}state=guess&{after}")), 404);
            assert_eq!(visit(&format!("{before}{after}")), 404);
            assert_eq!(visit(&back), 200);
            assert_ne!(visit(&back), 200);
        });
    });
    let mut client = client(&world, options);
    list(&mut client).unwrap();
    assert_eq!(count(&world, Role::Issuer, "/token"), 1);
    is_clean(&world);
}

/// Changes the redirect of the login page.
fn with_redirect(world: &World, change: impl Fn(&str) -> String + Send + 'static) {
    world.answer(Role::Issuer, move |_, request, response| {
        let location = response.headers.iter().find(|(name, _)| name == "Location").map(|(_, value)| value.clone())?;
        (request.path() == "/authorize").then(|| Response::redirect(302, &change(&location)))
    });
}

// spec: A119 A122 A124 A125
#[test]
fn iss_is_compared_before_anything_is_believed() {
    let issuer_of = |location: &str| location.split_once("&iss=").map(|(before, _)| before.to_owned()).unwrap();
    for (change, part) in [
        (Box::new(move |to: &str| issuer_of(to)) as Box<dyn Fn(&str) -> String + Send>, "without"),
        (Box::new(|to: &str| format!("{to}%2F")), "with a slash"),
        (Box::new(move |to: &str| format!("{}&iss=https%3A%2F%2Fevil.example", issuer_of(to))), "another"),
        // The error of a stranger is not shown.
        (
            Box::new(move |to: &str| {
                let (base, _) = to.split_once('?').unwrap();
                let state = to.split_once("state=").unwrap().1.split('&').next().unwrap();
                format!(
                    "{base}?error=access_denied&error_description=call%20the%20bank&state={state}&iss=https%3A%2F%2Fevil.example"
                )
            }),
            "error",
        ),
    ] {
        let world = World::new();
        with_redirect(&world, change);
        let why = refusal(&world, login());
        assert!(why.contains("another authorization server") && !why.contains("bank"), "{part}: {why}");
        assert_eq!(count(&world, Role::Issuer, "/token"), 0, "{part}");
        // The client is of use afterwards.
        world.relent();
        list(&mut client(&world, login())).unwrap();
        is_clean(&world);
    }
}

#[test]
fn errors_of_the_login_are_told() {
    let world = World::new();
    with_redirect(&world, |to| {
        let (base, rest) = to.split_once('?').unwrap();
        let rest = rest.split('&').filter(|pair| !pair.starts_with("code=")).collect::<Vec<_>>().join("&");
        format!("{base}?error=access_denied&error_description=not%20today&{rest}")
    });
    let mut client = client(&world, login());
    let why = list(&mut client).unwrap_err();
    assert!(why.contains("access_denied") && why.contains("not today"), "{why}");
    world.relent();
    list(&mut client).unwrap();
    is_clean(&world);
}

// spec: A003 A025 A080 A081 A082 A193 A194 A195 A196 A199
#[test]
fn documents_must_fit() {
    type Change = fn(&World);
    let cases: [(Change, &str); 8] = [
        (
            |world| world.document(Role::Mcp, PRM, |_, prm| prm["resource"] = json!("https://evil.example/mcp")),
            "resource",
        ),
        (|world| world.document(Role::Issuer, ASM, |_, asm| asm["issuer"] = json!("https://evil.example")), "issuer"),
        (
            |world| {
                world.document(Role::Issuer, ASM, |origins, asm| {
                    asm["issuer"] = json!(format!("{}/", origins.of(Role::Issuer)))
                })
            },
            "issuer",
        ),
        (
            |world| {
                world.document(Role::Issuer, ASM, |_, asm| {
                    drop(asm.as_object_mut().unwrap().remove("code_challenge_methods_supported"))
                })
            },
            "PKCE",
        ),
        (
            |world| {
                world.document(Role::Issuer, ASM, |_, asm| asm["code_challenge_methods_supported"] = json!(["plain"]))
            },
            "PKCE",
        ),
        (
            |world| {
                world.document(Role::Issuer, ASM, |_, asm| asm["token_endpoint"] = json!("http://evil.example/token"))
            },
            "token_endpoint",
        ),
        (
            |world| {
                world.document(Role::Issuer, ASM, |_, asm| asm["authorization_endpoint"] = json!("javascript:alert(1)"))
            },
            "authorization_endpoint",
        ),
        (
            |world| {
                world.document(Role::Issuer, ASM, |_, asm| asm["authorization_endpoint"] = json!("file:///etc/passwd"))
            },
            "authorization_endpoint",
        ),
    ];
    for (number, (change, part)) in cases.into_iter().enumerate() {
        let world = World::new();
        change(&world);
        let why = refusal(&world, login());
        assert!(why.contains(part), "{number}: {why}");
        let asked = count(&world, Role::Issuer, "/authorize") + count(&world, Role::Issuer, "/token");
        assert_eq!(asked, 0, "{number}: {:?}", world.story());
        world.relent();
        list(&mut client(&world, login())).unwrap();
        is_clean(&world);
    }
}

const PRM: &str = "/.well-known/oauth-protected-resource/mcp";
const ASM: &str = "/.well-known/oauth-authorization-server";

/// `resource` of the metadata: the same origin, and a path that leads to the URL.
// spec: A149
#[test]
fn resources_are_compared_by_segments() {
    type Resource = fn(&str) -> String;
    let cases: [(Resource, bool); 9] = [
        (|origin| format!("{origin}/mcp"), true),
        (|origin| origin.to_owned(), true),
        (|origin| format!("{origin}/"), true),
        (|origin| format!("{origin}/mc"), false),
        (|origin| format!("{origin}/mcpx"), false),
        (|origin| format!("{origin}/mcp/deeper"), false),
        (|origin| format!("{origin}/other"), false),
        (|origin| format!("{origin}/mcp#part"), false),
        (|origin| format!("{origin}1/mcp"), false),
    ];
    for (resource, is_good) in cases {
        let world = World::new();
        let resource = resource(world.origin(Role::Mcp));
        let named = resource.clone();
        world.document(Role::Mcp, PRM, move |_, prm| prm["resource"] = json!(named));
        let mut client = client(&world, login());
        let done = list(&mut client);
        let asked = world.requests(Role::Issuer, "/authorize");
        assert_eq!(asked.len(), usize::from(is_good), "{resource}: {done:?}");
        // It is sent as it was written.
        assert!(asked.iter().all(|request| request.param("resource") == resource), "{resource}");
    }
}

#[test]
fn challenges_of_all_forms() {
    for challenge in [
        "Basic realm=\"a, b\", Bearer resource_metadata=\"URL\", scope=\"read\"",
        "Bearer error_description=\"say \\\"please\\\", then wait\", scope=read, RESOURCE_METADATA=\"URL\"",
        "bearer scope=\"read\" , resource_metadata=\"URL\" , unknown=\"x\", Negotiate abc==",
        "DPoP algs=\"ES256\", resource_metadata=\"URL\", Bearer scope=\"read\", resource_metadata=\"URL\"",
        "Bearer scope=\"read\"",
        "",
    ] {
        let world = World::new();
        world.answer(Role::Mcp, move |origins, _, response| {
            let is_refused = response.headers.iter().any(|(name, _)| name == "WWW-Authenticate");
            let challenge = challenge.replace("URL", &format!("{}{PRM}", origins.of(Role::Mcp)));
            let bare = response.clone().without("WWW-Authenticate");
            is_refused.then(|| if challenge.is_empty() { bare } else { bare.with("WWW-Authenticate", &challenge) })
        });
        list(&mut client(&world, login())).unwrap_or_else(|why| panic!("{challenge}: {why}"));
        let asked = world.requests(Role::Issuer, "/authorize");
        assert!(asked[0].param("scope").split(' ').any(|scope| scope == "read"), "{challenge}");
        is_clean(&world);
    }
}

/// The metadata names several authorization servers: the one where the client is known, or else the first.
#[test]
fn several_authorization_servers() {
    let (world, kept) = (World::new(), Kept::default());
    list(&mut client(&world, login().tokens(kept.clone()))).unwrap();
    world.expire_tokens();
    world.revoke_refresh();
    world.document(Role::Mcp, PRM, |origins, prm| {
        prm["authorization_servers"] = json!([origins.of(Role::Other), origins.of(Role::Issuer)]);
    });
    let asked = |world: &World| [Role::Issuer, Role::Other].map(|role| count(world, role, "/authorize"));
    list(&mut client(&world, login())).unwrap();
    assert_eq!(asked(&world), [1, 1], "nobody knows this client");
    list(&mut client(&world, login().tokens(kept))).unwrap();
    assert_eq!(asked(&world), [2, 1], "{:?}", world.story());
    is_clean(&world);
}

/// Two headers with a challenge each.
#[test]
fn challenges_in_several_headers() {
    let world = World::new();
    world.answer(Role::Mcp, |_, _, response| {
        (response.status == 401).then(|| {
            let mut changed = response.clone();
            changed.headers.insert(0, ("WWW-Authenticate".to_owned(), "Basic realm=\"x\"".to_owned()));
            changed
        })
    });
    list(&mut client(&world, login())).unwrap();
    is_clean(&world);
}

#[test]
fn a_good_token_that_is_refused_makes_no_loop() {
    let world = World::new();
    world.answer(Role::Mcp, |origins, request, response| {
        let good = request.path() == "/mcp" && response.status == 200;
        let metadata = format!(
            "Bearer error=\"invalid_token\", error_description=\"it is for another server\", resource_metadata=\"{}{PRM}\"",
            origins.of(Role::Mcp)
        );
        good.then(|| Response::new(401, "text/plain", "").with("WWW-Authenticate", &metadata))
    });
    let why = refusal(&world, login());
    assert!(why.contains("refuses a new token (it is for another server)"), "{why}");
    assert!(count(&world, Role::Issuer, "/authorize") <= 2, "{:?}", world.story());
    // 403 without a reason is no demand for other scopes.
    world.relent();
    world.answer(Role::Mcp, |_, request, response| {
        let good = request.path() == "/mcp" && response.status == 200;
        good.then(|| Response::new(403, "text/plain", "").with("WWW-Authenticate", "Bearer"))
    });
    let before = count(&world, Role::Issuer, "/authorize");
    let why = refusal(&world, login());
    assert!(!why.is_empty());
    assert_eq!(count(&world, Role::Issuer, "/authorize"), before + 1);
}

#[test]
fn expired_tokens_are_refreshed() {
    let (world, kept) = (World::new(), Kept::default());
    let mut client = client(&world, login().tokens(kept.clone()));
    for _ in 0..3 {
        list(&mut client).unwrap();
        world.expire_tokens();
    }
    let grants = |world: &World| -> Vec<String> {
        world.requests(Role::Issuer, "/token").iter().map(|request| request.param("grant_type")).collect()
    };
    assert_eq!(grants(&world), ["authorization_code", "refresh_token", "refresh_token"]);
    assert!(world.requests(Role::Issuer, "/token").iter().all(|request| !request.param("resource").is_empty()));
    // The refresh token was taken back: a person logs in again.
    world.revoke_refresh();
    list(&mut client).unwrap();
    assert_eq!(grants(&world)[3..], ["refresh_token", "authorization_code"]);
    // The new refresh token is kept, since each is good once.
    world.expire_tokens();
    list(&mut self::client(&world, login().tokens(kept))).unwrap();
    assert_eq!(grants(&world)[5..], ["refresh_token"]);
    is_clean(&world);
}

/// Clients of both adapters with one file: one refreshes, the others take its token.
#[test]
fn clients_with_one_file_refresh_once() {
    use mcp_sansio_smol::client::{Client, Http, Ignore};
    let world = World::new();
    let folder = std::env::temp_dir().join(format!("mcp-sansio-one-file-{}", std::process::id()));
    let file = TokenFile::new(folder.join("tokens.json"));
    list(&mut client(&world, login().tokens(file.clone()))).unwrap();
    let begin = std::sync::Barrier::new(6);
    let ready = || begin.wait();
    std::thread::scope(|scope| {
        for number in 0..6 {
            let (world, file) = (&world, file.clone());
            let ready = &ready;
            scope.spawn(move || {
                // All have read the token before it ends.
                if number % 2 == 0 {
                    let mut client = client(world, login().tokens(file));
                    ready();
                    world.expire_tokens();
                    ready();
                    list(&mut client).unwrap();
                } else {
                    smol::block_on(async {
                        let http =
                            Http::new(&world.url(), &PROFILE).unwrap().authorization(login().tokens(file)).unwrap();
                        ready();
                        ready();
                        let (client, driver) = Client::new(http, Ignore);
                        let driver = smol::spawn(driver);
                        client.connect_as(Revision::V2026_07_28).await.unwrap();
                        client.request(Request::list_tools()).await.unwrap();
                        client.close().await;
                        driver.await;
                    });
                }
            });
        }
    });
    let grants =
        world.requests(Role::Issuer, "/token").iter().map(|request| request.param("grant_type")).collect::<Vec<_>>();
    assert_eq!(grants, ["authorization_code", "refresh_token"], "{:?}", world.story());
    is_clean(&world);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tokens_that_end_soon_are_refreshed_before() {
    let world = World::new();
    world.document(Role::Issuer, "/token", |_, token| token["expires_in"] = json!(2));
    let mut client = client(&world, login());
    list(&mut client).unwrap();
    std::thread::sleep(Duration::from_millis(1_200));
    let refused = |world: &World| {
        world.requests(Role::Mcp, "/mcp").iter().filter(|request| request.header("authorization").is_empty()).count()
    };
    list(&mut client).unwrap();
    assert_eq!(refused(&world), 1);
    let token = world.requests(Role::Issuer, "/token");
    assert!(token.iter().any(|request| request.param("grant_type") == "refresh_token"), "{:?}", world.story());
    is_clean(&world);
}

/// A role for tokens that takes its time.
struct Slow(Kept);

impl TokenStore for Slow {
    fn load(&mut self) -> std::io::Result<Option<String>> {
        self.0.load()
    }

    fn save(&mut self, text: &str) -> std::io::Result<()> {
        std::thread::sleep(Duration::from_millis(300));
        self.0.save(text)
    }
}

#[test]
fn a_client_that_is_closed_keeps_tokens_under_way() {
    use mcp_sansio_smol::client::{Client, Http, Ignore};
    let (world, kept) = (World::new(), Kept::default());
    world.document(Role::Issuer, "/token", |_, token| token["expires_in"] = json!(2));
    list(&mut client(&world, login().tokens(kept.clone()))).unwrap();
    world.relent();
    std::thread::sleep(Duration::from_millis(1_200));
    smol::block_on(async {
        let http =
            Http::new(&world.url(), &PROFILE).unwrap().authorization(login().tokens(Slow(kept.clone()))).unwrap();
        let (client, driver) = Client::new(http, Ignore);
        let driver = smol::spawn(driver);
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        // It goes out with the old token, while a thread refreshes that.
        client.request(Request::list_tools()).await.unwrap();
        client.close().await;
        driver.await;
    });
    // The refresh token of before is of no use now.
    world.expire_tokens();
    list(&mut client(&world, login().tokens(kept))).unwrap();
    assert_eq!(count(&world, Role::Issuer, "/authorize"), 1, "{:?}", world.story());
    is_clean(&world);
}

// spec: A169 A171 A172
#[test]
fn more_scopes_are_asked_for_by_operation() {
    let world = World::new();
    for (tool, scope) in [("write", "write"), ("admin", "admin"), ("look", "read")] {
        world.state().tool_scopes.insert(tool.to_owned(), scope.to_owned());
    }
    let mut client = client(&world, login());
    list(&mut client).unwrap();
    call(&mut client, "write").unwrap();
    call(&mut client, "admin").unwrap();
    call(&mut client, "look").unwrap();
    let mut scopes: Vec<Vec<String>> = Vec::new();
    for request in world.requests(Role::Issuer, "/authorize") {
        let mut asked: Vec<_> = request.param("scope").split(' ').map(str::to_owned).collect();
        asked.sort();
        scopes.push(asked);
    }
    assert_eq!(scopes, [vec!["read"], vec!["read", "write"], vec!["admin", "read", "write"]]);
    is_clean(&world);
    // A refresh changes nothing about the scopes; one that gives fewer leads to a step-up where they are missing.
    let world = World::new();
    world.state().tool_scopes.insert("write".to_owned(), "write".to_owned());
    let mut client = self::client(&world, login());
    list(&mut client).unwrap();
    world.expire_tokens();
    list(&mut client).unwrap();
    call(&mut client, "write").unwrap();
    let asked = world.requests(Role::Issuer, "/authorize");
    assert_eq!(asked.len(), 2, "{:?}", world.story());
    assert_eq!(asked[1].param("scope"), "read write");
    is_clean(&world);
}

// spec: A173
#[test]
fn scopes_that_are_never_enough_end() {
    let world = World::new();
    world.state().tool_scopes.insert("write".to_owned(), "write".to_owned());
    world.answer(Role::Issuer, |_, request, response| {
        // The authorization server always grants less.
        (request.path() == "/authorize").then(|| response.clone())
    });
    world.document(Role::Issuer, "/token", |_, token| token["scope"] = json!("read"));
    world.answer(Role::Mcp, |origins, request, _| {
        let body = request.json();
        let challenge = format!(
            "Bearer error=\"insufficient_scope\", scope=\"write\", resource_metadata=\"{}{PRM}\"",
            origins.of(Role::Mcp)
        );
        let is_call = body["method"] == "tools/call" && !request.header("authorization").is_empty();
        is_call.then(|| Response::new(403, "text/plain", "").with("WWW-Authenticate", &challenge))
    });
    let mut client = client(&world, login());
    list(&mut client).unwrap();
    call(&mut client, "write").unwrap_err();
    assert!(count(&world, Role::Issuer, "/authorize") <= 3, "{:?}", world.story());
    // Other operations go on.
    list(&mut client).unwrap();
    is_clean(&world);
}

// spec: A071 A101 A102 A179
#[test]
fn credentials_belong_to_one_issuer() {
    let (world, kept) = (World::new(), Kept::default());
    let mut client = client(&world, login().tokens(kept.clone()));
    list(&mut client).unwrap();
    world.expire_tokens();
    world.revoke_refresh();
    world.state().named_issuer = Some(Role::Other);
    list(&mut client).unwrap();
    assert_eq!(count(&world, Role::Other, "/register"), 1, "{:?}", world.story());
    let ids: Vec<_> =
        world.requests(Role::Other, "/authorize").iter().map(|request| request.param("client_id")).collect();
    assert_eq!(ids, ["client-Other-1"]);
    // And back, after a restart.
    world.expire_tokens();
    world.revoke_refresh();
    world.state().named_issuer = None;
    list(&mut self::client(&world, login().tokens(kept))).unwrap();
    is_clean(&world);
}

// spec: A071 A102 A103
#[test]
fn registered_clients_stay_with_their_issuer() {
    let world = World::new();
    world.state().register(Role::Issuer, "me", "hush-hush");
    let me = || {
        let me = RegisteredClient::new("me").secret("hush-hush").issuer(world.origin(Role::Issuer));
        login().config(|config| config.registered(me))
    };
    list(&mut client(&world, me())).unwrap();
    assert_eq!(count(&world, Role::Issuer, "/register"), 0);
    world.state().named_issuer = Some(Role::Other);
    let why = refusal(&world, me());
    assert!(why.contains("registered at another authorization server"), "{why}");
    assert_eq!(count(&world, Role::Other, "/token") + count(&world, Role::Other, "/authorize"), 0);
    is_clean(&world);
}

// spec: A100
#[test]
fn registrations_may_be_refused_or_changed() {
    let world = World::new();
    world.answer(Role::Issuer, |_, request, _| {
        let error = json!({"error": "invalid_client_metadata", "error_description": "no strangers"});
        (request.path() == "/register").then(|| Response::json(400, &error))
    });
    let why = refusal(&world, login());
    assert!(why.contains("no strangers"), "{why}");
    assert_eq!(count(&world, Role::Issuer, "/authorize"), 0);
    // The answer has another method than the request, and a secret: both count.
    for method in ["client_secret_basic", "client_secret_post"] {
        let world = World::new();
        let answered = world.clone();
        world.document(Role::Issuer, "/register", move |_, client| {
            client["client_secret"] = json!("hush hush:+");
            client["token_endpoint_auth_method"] = json!(method);
            client["client_secret_expires_at"] = json!(0);
        });
        let hardened = answered.clone();
        let options = login().visit(move |url| {
            hardened.state().harden(Role::Issuer, "hush hush:+", method);
            browse(url);
        });
        list(&mut client(&world, options)).unwrap();
        is_clean(&world);
    }
}

#[test]
fn a_person_may_give_up() {
    let world = World::new();
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let mut rounds = 0;
    let options = AuthorizationOptions::new("test")
        .visit(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .wait_while(move || {
            rounds += 1;
            rounds < 4
        });
    let mut client = client(&world, options);
    let why = list(&mut client).unwrap_err();
    assert!(why.contains("cancelled"), "{why}");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    // Without anybody who could visit a page.
    let why = refusal(&world, AuthorizationOptions::new("test"));
    assert!(why.contains("cancelled"), "{why}");
    is_clean(&world);
}

#[test]
fn proofs_of_possession() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let world = World::new();
        world.state().demands_dpop = true;
        world.document(Role::Issuer, ASM, |_, asm| asm["dpop_signing_alg_values_supported"] = json!(["ES256"]));
        let mut client = connected(&world, login().dpop_key(fresh_key()), revision).unwrap();
        list(&mut client).unwrap();
        world.state().nonce = "first".to_owned();
        call(&mut client, "look").unwrap();
        // A nonce of a good answer is used at once.
        let posts =
            |world: &World| world.requests(Role::Mcp, "/mcp").iter().filter(|request| request.method == "POST").count();
        let before = posts(&world);
        list(&mut client).unwrap();
        world.state().nonce = "second".to_owned();
        list(&mut client).unwrap();
        list(&mut client).unwrap();
        assert_eq!(posts(&world), before + 4, "{:?}", world.story());
        client.close();
        is_clean(&world);
    }
    // The server demands a proof, and the token is not bound to a key.
    let world = World::new();
    world.state().demands_dpop = true;
    let why = refusal(&world, login());
    assert!(why.contains("proof"), "{why}");
}

#[test]
fn a_nonce_is_demanded_after_a_login_and_after_a_step_up() {
    let world = World::new();
    world.state().demands_dpop = true;
    world.state().tool_scopes.insert("write".to_owned(), "write".to_owned());
    world.document(Role::Issuer, ASM, |_, asm| asm["dpop_signing_alg_values_supported"] = json!(["ES256"]));
    let (state, visits) = (world.clone(), AtomicU32::new(0));
    let visit = move |url: &str| {
        state.state().nonce = format!("nonce-{}", visits.fetch_add(1, Ordering::Relaxed));
        browse(url);
    };
    let options = login().visit(visit).dpop_key(fresh_key());
    // The first message is challenged four times.
    call(&mut client(&world, options), "write").unwrap();
    assert_eq!(count(&world, Role::Mcp, "/mcp"), 5, "{:?}", world.story());
    is_clean(&world);
}

#[test]
fn token_types_that_were_not_asked_for() {
    for kind in ["mac", "N_A", "DPoP"] {
        let world = World::new();
        world.document(Role::Issuer, "/token", move |_, token| token["token_type"] = json!(kind));
        let why = refusal(&world, login());
        assert!(why.contains("type"), "{kind}: {why}");
        assert_eq!(count(&world, Role::Mcp, "/mcp"), 1, "{kind}");
    }
}

/// A token that would be another header.
#[test]
fn tokens_cannot_add_headers() {
    for token in ["a\r\nHost: evil", "a b", "", "é"] {
        let world = World::new();
        world.document(Role::Issuer, "/token", move |_, body| body["access_token"] = json!(token));
        let why = refusal(&world, login());
        assert!(!why.is_empty());
        assert_eq!(count(&world, Role::Mcp, "/mcp"), 1, "{token:?}");
    }
    // The scope of a challenge goes into a URL, escaped.
    let world = World::new();
    world.answer(Role::Mcp, |_, _, response| {
        (response.status == 401).then(|| {
            response.clone().without("WWW-Authenticate").with("WWW-Authenticate", "Bearer scope=\"read a&state=x#\"")
        })
    });
    let _ = list(&mut client(&world, login()));
    is_clean(&world);
}

#[test]
fn client_credentials_need_no_person() {
    let world = World::new();
    world.state().register(Role::Issuer, "robot", "hush hush:+");
    world.document(Role::Issuer, ASM, |_, asm| asm["grant_types_supported"] = json!(["client_credentials"]));
    let robot = RegisteredClient::new("robot").secret("hush hush:+").issuer(world.origin(Role::Issuer));
    let options = AuthorizationOptions::new("test").config(|config| config.registered(robot));
    list(&mut client(&world, options)).unwrap();
    assert_eq!(count(&world, Role::Issuer, "/authorize") + count(&world, Role::Issuer, "/register"), 0);
    is_clean(&world);
}

#[test]
fn http_elsewhere_gets_no_tokens() {
    let http = Http::with("http://mcp.example/mcp", &PROFILE, HttpOptions::new()).unwrap();
    assert!(matches!(http.authorization(login()), Err(ClientError::Url(_))));
    assert_eq!(escape("a b/é"), "a%20b%2F%C3%A9");
    drop(TokenFile::new("x"));
}

/// Requests that are challenged at the same time share one flow, and one refresh.
#[test]
fn one_flow_for_all_that_wait() {
    use mcp_sansio_smol::client::{Client, Http};
    let world = World::new();
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let options = login().visit(move |url| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100));
        browse(url);
    });
    smol::block_on(async {
        let http = Http::new(&world.url(), &PROFILE).unwrap().authorization(options).unwrap();
        let (client, driver) = Client::new(http, mcp_sansio_smol::client::Ignore);
        let driver = smol::spawn(driver);
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        for round in 0..3 {
            let waits: Vec<_> = (0..4).map(|_| client.request(Request::list_tools())).collect();
            for wait in waits {
                wait.await.unwrap_or_else(|error| panic!("{round}: {error}"));
            }
            world.expire_tokens();
        }
        client.close().await;
        driver.await;
    });
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(count(&world, Role::Issuer, "/token"), 3, "{:?}", world.story());
    is_clean(&world);
}
