//! Servers that attack the client: each test ends in an error that names the reason, nothing goes where it must not go, and
//! the same client logs in afterwards. All run with the clients of both adapters.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::client::Request;
use mcp_sansio_auth_tests::{Adapter, AnyClient, Kept, Response, Role, World, browse, fresh_key, login, redirect_of};
use mcp_sansio_blocking::client::{FetchLimits, FetchRequest, Fetcher, HttpOptions, TokenStore, rustls};
use serde_json::{Value, json};

#[path = "../../remote/secured.rs"]
mod secured;

const PRM: &str = "/.well-known/oauth-protected-resource/mcp";
const ASM: &str = "/.well-known/oauth-authorization-server";

/// The documents of a login: where they come from, and how errors call them.
const DOCUMENTS: [(Role, &str, &str); 4] = [
    (Role::Mcp, PRM, "protected resource metadata"),
    (Role::Issuer, ASM, "authorization server metadata"),
    (Role::Issuer, "/register", "registration"),
    (Role::Issuer, "/token", "token"),
];

/// Lets a server answer a path in another way.
fn set(world: &World, role: Role, path: &'static str, answer: Response) {
    world.answer(role, move |_, request, _| (request.path() == path).then(|| answer.clone()));
}

/// The client is refused for a reason with these words, and logs in once the servers are good again.
fn refused(world: &World, client: &mut AnyClient, words: &str) {
    let why = client.list().unwrap_err();
    assert!(why.contains(words), "{why}: {:?}", world.story());
    world.relent();
    client.list().unwrap_or_else(|error| panic!("after {why}: {error}"));
    assert_eq!(world.violations(), [""; 0]);
}

/// Runs a case with a client of each adapter, and a world of its own.
fn with_both(case: impl Fn(&World, &mut AnyClient)) {
    for adapter in Adapter::ALL {
        let world = World::new();
        case(&world, &mut adapter.client(&world, login()));
    }
}

fn count(world: &World, role: Role, path: &str) -> usize {
    world.requests(role, path).len()
}

#[test]
fn documents_without_end() {
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let endless = || Response { endless: true, ..Response::new(200, "application/json", vec![b' '; 65_536]) };
    let answers = [
        endless(),
        endless().with("Content-Length", "104857600"),
        Response::new(200, "application/json", deep),
        Response::new(200, "application/json", format!("{{\"resource\":{}", "[".repeat(10_000))),
        Response::new(200, "application/json", vec![b' '; 65_537]),
    ];
    for (role, path, name) in DOCUMENTS {
        for answer in &answers {
            with_both(|world, client| {
                set(world, role, path, answer.clone());
                refused(world, client, name);
            });
        }
    }
}

#[test]
fn documents_of_another_kind() {
    let json = |body: &str| Response::new(200, "application/json", body);
    for (role, path, name) in DOCUMENTS {
        for answer in [json("[]"), json("{}"), json(""), json("null"), json("{\"a\":1}x"), json("\u{feff}{}")] {
            with_both(|world, client| {
                set(world, role, path, answer.clone());
                refused(world, client, name);
            });
        }
    }
    // A page of HTML is no metadata, whatever it holds.
    for (role, path, name) in &DOCUMENTS[..2] {
        with_both(|world, client| {
            world.answer(*role, move |_, request, response| {
                (request.path() == *path).then(|| Response::new(200, "text/html", response.body.clone()))
            });
            refused(world, client, name);
        });
    }
}

#[test]
fn redirects_to_other_places() {
    let elsewhere: [fn(&str) -> String; 6] = [
        |stranger| format!("{stranger}/x"),
        |stranger| stranger.replace("http:", ""),
        |_| "https://10.0.0.1/x".to_owned(),
        |_| "http://169.254.169.254/latest/meta-data".to_owned(),
        |_| "file:///etc/passwd".to_owned(),
        |_| "javascript:alert(1)".to_owned(),
    ];
    for (role, path, name) in DOCUMENTS {
        for (number, target) in elsewhere.into_iter().enumerate() {
            with_both(|world, client| {
                let status = if number % 2 == 0 { 307 } else { 302 };
                set(world, role, path, Response::redirect(status, &target(world.origin(Role::Stranger))));
                refused(world, client, name);
                assert!(world.story().iter().all(|line| !line.starts_with("Stranger")), "{:?}", world.story());
            });
        }
    }
}

#[test]
fn redirects_without_end() {
    for (role, path, name) in &DOCUMENTS[..2] {
        with_both(|world, client| {
            set(world, *role, path, Response::redirect(302, path));
            refused(world, client, name);
            assert!(count(world, *role, path) < 10, "{:?}", world.story());
        });
    }
}

/// A name that stands for an address to which requests must not go: the client looks at the addresses before it connects.
#[test]
fn names_that_lead_into_private_networks() {
    for adapter in Adapter::ALL {
        let world = World::new();
        world.document(Role::Mcp, PRM, |origins, prm| {
            let named = origins.of(Role::Issuer).replace("127.0.0.1", "localhost");
            prm["authorization_servers"] = json!([named]);
        });
        let closed = Arc::new(AtomicBool::new(true));
        let is_closed = closed.clone();
        let asked = Arc::new(AtomicU32::new(0));
        let counted = asked.clone();
        let fetcher = Fetcher::new(FetchLimits::DEFAULT.redirects(0)).addresses(move |address| {
            // The first question is about the metadata of the server itself.
            let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            assert!(address.is_loopback());
            first || !is_closed.load(Ordering::Relaxed)
        });
        let mut client = adapter.client(&world, login().fetcher(fetcher));
        let why = client.list().unwrap_err();
        assert!(why.contains("the URL leads into a private network"), "{why}");
        assert_eq!(world.requests(Role::Issuer, ASM).len(), 0);
        closed.store(false, Ordering::Relaxed);
        world.relent();
        client.list().unwrap();
    }
}

#[test]
fn urls_that_are_no_places() {
    let urls =
        ["javascript:alert(1)", "file:///etc/passwd", "http://evil.example/x", "//evil.example", "data:,x", "x y"];
    for url in urls {
        with_both(|world, client| {
            world.document(Role::Mcp, PRM, move |_, prm| prm["authorization_servers"] = json!([url]));
            refused(world, client, "authorization_servers");
        });
        with_both(|world, client| {
            world.answer(Role::Mcp, move |_, request, response| {
                let challenge = format!("Bearer resource_metadata=\"{url}\"");
                let is_refused = request.path() == "/mcp" && response.status == 401;
                is_refused.then(|| response.clone().without("WWW-Authenticate").with("WWW-Authenticate", &challenge))
            });
            refused(world, client, "resource_metadata");
        });
        for member in ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"] {
            with_both(|world, client| {
                world.document(Role::Issuer, ASM, move |_, asm| asm[member] = json!(url));
                refused(world, client, member);
            });
        }
    }
}

#[test]
fn registrations_that_change_the_way_to_authenticate() {
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 6] = [
        (|client| client["token_endpoint_auth_method"] = json!("private_key_jwt"), "can authenticate"),
        (|client| client["token_endpoint_auth_method"] = json!("tls_client_auth"), "can authenticate"),
        (|client| client["token_endpoint_auth_method"] = json!("client_secret_basic"), "`client_secret`"),
        (|client| client["token_endpoint_auth_method"] = json!(["none"]), "`token_endpoint_auth_method`"),
        (|client| client["redirect_uris"] = json!(["https://evil.example/callback"]), "`redirect_uris`"),
        (|client| client["client_id"] = json!(""), "`client_id`"),
    ];
    for (change, words) in changes {
        with_both(|world, client| {
            world.document(Role::Issuer, "/register", move |_, client| change(client));
            let before = count(world, Role::Issuer, "/authorize");
            let why = client.list().unwrap_err();
            assert!(why.contains(words), "{why}");
            assert_eq!(count(world, Role::Issuer, "/authorize"), before);
            world.relent();
            client.list().unwrap();
        });
    }
}

/// A secret of a registration that has ended is not used any more.
#[test]
fn secrets_that_have_ended() {
    for adapter in Adapter::ALL {
        let (world, kept) = (World::new(), Kept::default());
        world.document(Role::Issuer, "/register", |_, client| {
            client["client_secret"] = json!("hush hush");
            client["client_secret_expires_at"] = json!(1);
            client["token_endpoint_auth_method"] = json!("client_secret_post");
        });
        let hardened = world.clone();
        let options = move |kept: Kept| {
            let hardened = hardened.clone();
            login().port(0).tokens(kept).visit(move |url| {
                hardened.state().harden(Role::Issuer, "hush hush", "client_secret_post");
                browse(url);
            })
        };
        let mut client = adapter.client(&world, options(kept));
        client.list().unwrap();
        world.expire_tokens();
        world.revoke_refresh();
        client.list().unwrap();
        assert_eq!(count(&world, Role::Issuer, "/register"), 2, "{:?}", world.story());
    }
}

#[test]
fn tokens_of_another_type() {
    for kind in ["mac", "N_A", "DPoP", "Bearer DPoP", "urn:ietf:params:oauth:token-type:jwt"] {
        with_both(|world, client| {
            world.document(Role::Issuer, "/token", move |_, token| token["token_type"] = json!(kind));
            refused(world, client, "type that was not asked for");
        });
    }
    // A token that is not bound, where a bound one is demanded: it never goes out.
    for adapter in Adapter::ALL {
        let world = World::new();
        world.state().demands_dpop = true;
        world.document(Role::Issuer, ASM, |_, asm| asm["dpop_signing_alg_values_supported"] = json!(["ES256"]));
        world.document(Role::Issuer, "/token", |_, token| token["token_type"] = json!("Bearer"));
        let mut client = adapter.client(&world, login().dpop_key(fresh_key()));
        refused(&world, &mut client, "type that was not asked for");
    }
}

/// The redirect of an earlier login, one without `state`, one that comes twice, and one after the login.
#[test]
fn redirects_of_the_browser_that_are_not_this_one() {
    for adapter in Adapter::ALL {
        let world = World::new();
        let earlier = Arc::new(Mutex::new(None::<String>));
        let threads = Arc::new(Mutex::new(Vec::new()));
        let (before, started) = (earlier.clone(), threads.clone());
        let options = login().visit(move |url| {
            let (url, before) = (url.to_owned(), before.clone());
            started.lock().unwrap().push(std::thread::spawn(move || {
                let visit_for = |url: &str, time| {
                    let fetcher = Fetcher::new(FetchLimits::DEFAULT.time(time));
                    fetcher.fetch(&FetchRequest::get(url)).map_or(0, |answer| answer.status)
                };
                let visit = |url: &str| visit_for(url, 20_000);
                let back = redirect_of(&url).unwrap();
                if let Some(old) = before.lock().unwrap().as_deref() {
                    assert_eq!(visit(old), 404, "the redirect of another login");
                }
                let (path, query) = back.split_once('?').unwrap();
                let without: Vec<_> = query.split('&').filter(|pair| !pair.starts_with("state=")).collect();
                assert_eq!(visit(&format!("{path}?{}", without.join("&"))), 404, "without a state");
                assert_eq!(visit(&format!("{path}?{}&state=", without.join("&"))), 404, "with an empty state");
                assert_eq!(visit(&back), 200);
                assert_ne!(visit_for(&back, 300), 200, "for the second time");
                *before.lock().unwrap() = Some(back);
            }));
        });
        let mut client = adapter.client(&world, options);
        for _ in 0..2 {
            client.list().unwrap();
            threads.lock().unwrap().drain(..).for_each(|thread| thread.join().unwrap());
            world.expire_tokens();
            world.revoke_refresh();
        }
        assert_eq!(count(&world, Role::Issuer, "/token"), 2 + 1, "two codes, and a refresh that is refused");
        assert_eq!(world.violations(), [""; 0]);
    }
}

#[test]
fn texts_that_would_be_headers() {
    for (member, text) in [
        ("access_token", "a\r\nHost: evil"),
        ("access_token", "a\nX: y"),
        ("access_token", "a b"),
        ("access_token", "a\u{7f}"),
        ("access_token", "é"),
        ("refresh_token", "a\r\nX: y"),
    ] {
        with_both(|world, client| {
            world.document(Role::Issuer, "/token", move |_, body| body[member] = json!(text));
            refused(world, client, &format!("`{member}`"));
        });
    }
    // The parts of a header that is base64, and those of a form, can be any text.
    for adapter in Adapter::ALL {
        let world = World::new();
        let secret = "hush\r\nX: y\u{1f}é";
        let registering = world.clone();
        world.state().register(Role::Issuer, "me\r\nX: y", secret);
        let me = mcp_sansio_blocking::client::auth::RegisteredClient::new("me\r\nX: y").secret(secret);
        let mut client = adapter.client(&world, login().config(|config| config.registered(me)));
        client.list().unwrap();
        assert_eq!(registering.violations(), [""; 0]);
    }
    for scope in ["read\r\nX: y", "a\"b", "a\\b", "é"] {
        with_both(|world, client| {
            world.state().base_scope = String::new();
            world.document(Role::Mcp, PRM, move |_, prm| prm["scopes_supported"] = json!([scope]));
            let why = client.list().unwrap_err();
            assert!(why.contains("`scopes_supported`"), "{why}");
            assert_eq!(count(world, Role::Issuer, "/authorize"), 0);
        });
    }
    // Texts of a server that a person sees.
    with_both(|world, client| {
        let hostile = "\u{1b}[2Jcall\r\n the\u{202e} bank";
        let refusal = json!({"error": "invalid_request", "error_description": hostile});
        set(world, Role::Issuer, "/token", Response::json(400, &refusal));
        let why = client.list().unwrap_err();
        assert!(why.contains("invalid_request") && why.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{why:?}");
    });
}

/// Times of a stored token and of an answer that do not fit the clock.
#[test]
fn clocks_that_step() {
    let far = 4_000_000_000_u64;
    for adapter in Adapter::ALL {
        // Set back by decades since the token came, and set forward; the token is good each time.
        for (obtained, expires) in [(far, far + 3_600), (far, 1), (1, 3_600), (0, u64::MAX)] {
            let (world, kept) = (World::new(), Kept::default());
            adapter.client(&world, login().tokens(kept.clone())).list().unwrap();
            let text = kept.0.lock().unwrap().clone().unwrap();
            let mut store: Value = serde_json::from_str(&text).unwrap();
            store["tokens"][0]["obtained_at"] = json!(obtained);
            store["tokens"][0]["expires_at"] = json!(expires);
            *kept.0.lock().unwrap() = Some(store.to_string());
            let mut client = adapter.client(&world, login().tokens(kept.clone()));
            client.list().unwrap();
            if expires == 3_600 {
                // The smol client refreshes beside the request: waits until the new token was accepted.
                let used = |world: &World| {
                    world.requests(Role::Mcp, "/mcp").last().unwrap().header("authorization").to_owned()
                };
                let first = world.requests(Role::Mcp, "/mcp")[1].header("authorization").to_owned();
                while used(&world) == first {
                    std::thread::sleep(Duration::from_millis(20));
                    client.list().unwrap();
                }
            }
            // And once more after it was refused.
            world.expire_tokens();
            client.list().unwrap();
            assert_eq!(count(&world, Role::Issuer, "/authorize"), 1, "{obtained}: {:?}", world.story());
            assert!(count(&world, Role::Issuer, "/token") <= 3, "{obtained}: {:?}", world.story());
            assert_eq!(world.violations(), [""; 0]);
        }
        for expires_in in [json!(0), json!(u64::MAX), json!("1")] {
            let world = World::new();
            world.document(Role::Issuer, "/token", move |_, token| token["expires_in"] = expires_in.clone());
            let mut client = adapter.client(&world, login());
            for _ in 0..3 {
                client.list().unwrap();
            }
            assert!(count(&world, Role::Issuer, "/token") <= 4, "{:?}", world.story());
            assert_eq!(world.violations(), [""; 0]);
        }
        for expires_in in [json!(-1), json!(1e30), json!("soon"), json!([])] {
            let world = World::new();
            world.document(Role::Issuer, "/token", move |_, token| token["expires_in"] = expires_in.clone());
            refused(&world, &mut adapter.client(&world, login()), "`expires_in`");
        }
    }
}

/// The server refuses each proof, since its clock is another one: the client ends, and does not try without end.
#[test]
fn proofs_that_the_server_never_accepts() {
    for adapter in Adapter::ALL {
        for challenge in ["DPoP error=\"invalid_dpop_proof\"", "DPoP error=\"use_dpop_nonce\""] {
            let world = World::new();
            world.state().demands_dpop = true;
            world.document(Role::Issuer, ASM, |_, asm| asm["dpop_signing_alg_values_supported"] = json!(["ES256"]));
            let mut client = adapter.client(&world, login().dpop_key(fresh_key()));
            client.list().unwrap();
            world.answer(Role::Mcp, move |_, request, _| {
                let answer = Response::new(401, "text/plain", "").with("WWW-Authenticate", challenge);
                (request.path() == "/mcp").then(|| answer.with("DPoP-Nonce", "again"))
            });
            let before = world.story().len();
            client.list().unwrap_err();
            assert!(world.story().len() <= before + 5, "{:?}", &world.story()[before..]);
            world.relent();
            client.list().unwrap();
        }
    }
}

/// A role for tokens that can be closed.
#[derive(Clone, Default)]
struct Closable {
    kept: Kept,
    is_closed: Arc<AtomicBool>,
}

impl TokenStore for Closable {
    fn load(&mut self) -> std::io::Result<Option<String>> {
        self.kept.load()
    }

    fn save(&mut self, text: &str) -> std::io::Result<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            Err(std::io::Error::other("disk full"))
        } else {
            self.kept.save(text)
        }
    }
}

#[test]
fn a_place_for_tokens_that_cannot_be_written() {
    for adapter in Adapter::ALL {
        let (world, role) = (World::new(), Closable::default());
        role.is_closed.store(true, Ordering::Relaxed);
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = told.clone();
        let options = login().tokens(role.clone()).not_saved(move |error| tell.lock().unwrap().push(error.to_string()));
        let mut client = adapter.client(&world, options);
        // The login goes through, and the application knows that the next start will ask again.
        client.list().unwrap();
        client.list().unwrap();
        assert!(!told.lock().unwrap().is_empty() && told.lock().unwrap().iter().all(|error| error == "disk full"));
        assert_eq!(*role.kept.0.lock().unwrap(), None);
        // The next refresh saves all that was not saved.
        role.is_closed.store(false, Ordering::Relaxed);
        let count = told.lock().unwrap().len();
        world.expire_tokens();
        client.list().unwrap();
        assert_eq!(told.lock().unwrap().len(), count);
        let text = role.kept.0.lock().unwrap().clone().unwrap();
        assert!(text.contains("client-Issuer-1") && text.contains("access-"), "{text}");
        assert_eq!(world.violations(), [""; 0]);
    }
}

/// The token is forgotten, also if the authorization server does not revoke it; the registration stays.
#[test]
fn a_logout_forgets_the_token_and_says_what_failed() {
    for (status, is_revoked) in [(200, true), (503, false)] {
        let (world, kept) = (World::new(), Kept::default());
        let mut client = Adapter::Blocking.client(&world, login().tokens(kept.clone()));
        client.list().unwrap();
        drop(client);
        if !is_revoked {
            set(&world, Role::Issuer, "/revoke", Response::new(status, "text/plain", ""));
        }
        let done = login().tokens(kept.clone()).log_out(&world.url());
        assert_eq!(done.is_ok(), is_revoked, "{done:?}");
        assert!(done.err().is_none_or(|error| error.to_string().contains("503")));
        assert_eq!(count(&world, Role::Issuer, "/revoke"), 1, "{:?}", world.story());
        let text = kept.0.lock().unwrap().clone().unwrap();
        assert!(text.contains("client-Issuer-1") && !text.contains("access-"), "{text}");
        // There is nothing to revoke any more, and the next start asks again.
        login().tokens(kept.clone()).log_out(&world.url()).unwrap();
        assert_eq!(count(&world, Role::Issuer, "/revoke"), 1);
        Adapter::Blocking.client(&world, login().tokens(kept)).list().unwrap();
        assert_eq!((count(&world, Role::Issuer, "/authorize"), count(&world, Role::Issuer, "/register")), (2, 1));
        assert_eq!(world.violations(), [""; 0]);
    }
}

/// A token that stays in its role after a logout is an error, whether it was revoked or not.
#[test]
fn a_logout_that_cannot_be_saved_is_an_error() {
    for is_revocable in [true, false] {
        let (world, role) = (World::new(), Closable::default());
        if !is_revocable {
            world.document(Role::Issuer, ASM, |_, asm| {
                asm.as_object_mut().unwrap().remove("revocation_endpoint");
            });
        }
        let mut client = Adapter::Blocking.client(&world, login().tokens(role.clone()));
        client.list().unwrap();
        drop(client);
        role.is_closed.store(true, Ordering::Relaxed);
        let error = login().tokens(role.clone()).log_out(&world.url()).unwrap_err();
        assert_eq!(error.to_string(), "disk full");
        assert_eq!(count(&world, Role::Issuer, "/revoke"), usize::from(is_revocable));
        assert_eq!(world.violations(), [""; 0]);
    }
}

/// The TLS configuration of the client is used for its authorization server too.
#[test]
fn the_tls_configuration_counts_for_the_authorization_server() {
    use secured::{CERTIFICATE, secured, trusting};
    for adapter in Adapter::ALL {
        for (certificate, is_good) in [(Some(CERTIFICATE), true), (None, false)] {
            let world = World::new();
            let inner = world.origin(Role::Issuer).strip_prefix("http://").unwrap().parse().unwrap();
            let secure = format!("https://localhost:{}", secured(inner).port());
            let issuer = secure.clone();
            world.document(Role::Mcp, PRM, move |_, prm| prm["authorization_servers"] = json!([issuer]));
            world.document(Role::Issuer, ASM, move |_, asm| {
                asm["issuer"] = json!(secure);
                asm["token_endpoint"] = json!(format!("{secure}/token"));
                asm["registration_endpoint"] = json!(format!("{secure}/register"));
                asm["authorization_response_iss_parameter_supported"] = json!(false);
            });
            // The login page itself is reached without TLS.
            world.answer(Role::Issuer, |_, request, response| {
                let back = response.headers.iter().find(|(name, _)| name == "Location").map(|(_, value)| value)?;
                let (back, _) = back.split_once("&iss=")?;
                (request.path() == "/authorize").then(|| Response::redirect(302, back))
            });
            let http = HttpOptions::new().tls(trusting(certificate));
            let done = adapter.client_with(&world, http, login()).list();
            assert_eq!(done.is_ok(), is_good, "{adapter:?}: {done:?}");
            assert_eq!(world.violations(), [""; 0]);
        }
    }
}

/// A request is given up during the login: the others go on, and so does the client.
#[test]
fn a_request_that_is_cancelled_during_the_login() {
    let world = World::new();
    let options = login().visit(|url| {
        std::thread::sleep(Duration::from_millis(100));
        browse(url);
    });
    let AnyClient::Smol(client) = Adapter::Smol.client(&world, options) else { unreachable!() };
    smol::block_on(async {
        let (first, second) = (client.request(Request::list_tools()), client.request(Request::list_tools()));
        smol::Timer::after(Duration::from_millis(50)).await;
        drop(first);
        second.await.unwrap();
        client.request(Request::list_tools()).await.unwrap();
    });
    assert_eq!(count(&world, Role::Issuer, "/token"), 1);
    assert_eq!(world.violations(), [""; 0]);
}
