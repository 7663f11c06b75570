//! A mount, polled by hand: all revisions, cancellation, back pressure, limits, wakes, the time.

mod common;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::*;
use futures_lite::future::block_on;
use http::{Request, StatusCode, Version};
use http_body::{Body as _, Frame, SizeHint};
use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, Progress, ServerChange};
use mcp_sansio::service::Call;
use mcp_sansio_tower::{Access, Body, EndpointConfig, EndpointLimits, Handle, HttpServerOptions, LateSendError, Mcp};
use serde_json::json;

#[test]
fn it_goes_where_tower_and_axum_want_it() {
    fn takes<T: Clone + Send + Sync + 'static>() {}
    takes::<Mcp<State>>();
    takes::<Handle<State>>();
    fn sends<T: Send>() {}
    sends::<Body>();
    sends::<mcp_sansio_tower::ResponseFuture>();
}

#[test]
fn all_revisions_and_transports() {
    let web = Web::new();
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = web.open(revision);
        let answer = web.send(in_session(&session, &tool(1, "echo", json!({"text": revision}))));
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert_eq!(text_of(&json_of(answer)), revision);
        let gone = builder("DELETE", "/mcp").header("Mcp-Session-Id", &session).body(Default::default()).unwrap();
        assert_eq!(web.send(gone).status(), StatusCode::NO_CONTENT);
        let after = web.send(in_session(&session, &tool(2, "echo", json!({}))));
        assert_eq!(after.status(), StatusCode::NOT_FOUND);
    }
    let answer = web.modern("tools/call", json!({"name": "echo", "arguments": {"text": "new"}}));
    assert_eq!(text_of(&json_of(answer)), "new");
    for path in ["/sse", "/mcp"] {
        let (mut stream, to) = web.open_old(path);
        assert!(to.starts_with("/messages?session="));
        assert_eq!(web.send(post(&to, &tool(1, "echo", json!({"text": "old"})))).status(), StatusCode::ACCEPTED);
        assert_eq!(text_of(&event(&mut stream)), "old");
    }
    assert_eq!(web.send(get("/elsewhere")).status(), StatusCode::NOT_FOUND);
    assert_eq!(web.seen.lock().unwrap().calls, 6);
}

#[test]
fn metadata_is_served_at_its_own_path() {
    const METADATA: &str = r#"{"resource":"https://localhost/mcp"}"#;
    let config = EndpointConfig::DEFAULT.resource_metadata(Raw::constant(METADATA));
    let web = Web::over(HttpServerOptions::new().config(config));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        assert_eq!(all(web.send(get(path)).into_body()), METADATA);
    }
}

#[test]
fn a_nested_mount_knows_its_whole_paths() {
    let config = EndpointConfig::DEFAULT.path("/api/mcp").old_path("/api/sse").post_path("/api/messages");
    let mut web = Web::over(HttpServerOptions::new().config(config));
    assert_eq!(web.send(post("/mcp", &initialize("2025-11-25"))).status(), StatusCode::NOT_FOUND);
    for prefix in ["/api", "/api/"] {
        web.mcp = web.mcp.nested(prefix);
        assert_eq!(web.send(post("/mcp", &initialize("2025-11-25"))).status(), StatusCode::OK);
        // The router has taken `/api` away; the client gets the whole path.
        let mut stream = web.send(get("/sse")).into_body();
        let begin = next(&mut stream).unwrap();
        let to = std::str::from_utf8(&begin).unwrap().strip_prefix("event: endpoint\ndata: /api").unwrap().trim_end();
        assert_eq!(web.send(post(to, &initialize("2024-11-05"))).status(), StatusCode::ACCEPTED);
    }
    // `nest_service("/mcp", ..)` of axum leaves a slash.
    let mut web = Web::new();
    web.mcp = web.mcp.nested("/mcp");
    assert_eq!(web.send(post("/", &initialize("2025-11-25"))).status(), StatusCode::OK);
}

#[test]
fn two_clients_get_their_own_answers() {
    let web = Web::new();
    let [first, second] = ["2025-06-18", "2025-11-25"].map(|revision| web.open(revision));
    let mut streams: Vec<_> = [&first, &second]
        .iter()
        .map(|session| web.send(in_session(session, &tool(7, "later", json!({})))).into_body())
        .collect();
    let tokens = web.seen.lock().unwrap().tokens.clone();
    let counts: [Arc<Count>; 2] = Default::default();
    // 2025-11-25 begins with an event id.
    assert!(poll(&mut streams[1], &counts[1]).is_ready());
    for (stream, count) in streams.iter_mut().zip(&counts) {
        assert!(poll(stream, count).is_pending());
    }
    web.late.answer(tokens[1], |_, call| call.text("second")).unwrap();
    assert_eq!((counts[0].get(), counts[1].get()), (0, 1));
    web.late.answer(tokens[0], |_, call| call.text("first")).unwrap();
    assert_eq!((counts[0].get(), counts[1].get()), (1, 1));
    for (stream, text) in streams.into_iter().zip(["first", "second"]) {
        let answer = &events(&all(stream))[0];
        assert_eq!((answer["id"].as_u64(), text_of(answer)), (Some(7), text));
    }
}

#[test]
fn late_work_wakes_once_and_ends_the_stream() {
    let web = Web::new();
    let mut stream = web.modern("tools/call", json!({"name": "later"})).into_body();
    let (count, late) = (Arc::<Count>::default(), web.late.clone());
    assert!(poll(&mut stream, &count).is_pending());
    let token = web.seen.lock().unwrap().tokens[0];
    thread::spawn(move || {
        late.progress(token, Progress::new(1).of(2).message("half")).unwrap();
        late.progress(token, Progress::new(2).of(2)).unwrap();
        late.answer(token, |_, call| call.text("done")).unwrap();
    })
    .join()
    .unwrap();
    // The body waits for one wake, and gets one.
    assert_eq!(count.get(), 1);
    let seen = events(&all(stream));
    assert_eq!(
        seen.iter().map(|event| event["params"]["progress"].as_u64()).collect::<Vec<_>>(),
        [Some(1), Some(2), None]
    );
    assert_eq!(seen[0]["params"]["message"], "half");
    assert_eq!(text_of(&seen[2]), "done");
}

#[test]
fn an_answer_of_the_wrong_kind_is_an_error() {
    let web = Web::new();
    let stream = web.modern("tools/call", json!({"name": "later"})).into_body();
    let token = web.seen.lock().unwrap().tokens[0];
    web.late.answer(token.as_read("test://a"), |_, _| panic!("does not run")).unwrap();
    assert_eq!(events(&all(stream))[0]["error"]["code"], -32603);
}

#[test]
fn what_is_dropped_is_given_up() {
    let web = Web::new();
    // A future that was not polled has done nothing, and one that waits for its body has not either.
    drop(web.call(modern("tools/call", json!({"name": "echo"}))));
    let (parts, _) = modern("tools/call", json!({"name": "echo"})).into_parts();
    let mut waits = web.call(Request::from_parts(parts, Frames::pending()));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(waits);
    assert_eq!(web.seen.lock().unwrap().calls, 0);

    // Under 2026-07-28 the end of the body cancels, read or not.
    for read in [false, true] {
        let mut stream = web.modern("tools/call", json!({"name": "later"})).into_body();
        if read {
            assert!(poll(&mut stream, &Arc::default()).is_pending());
        }
        drop(stream);
    }
    assert_eq!(web.seen.lock().unwrap().cancelled, 2);
    // After its end it does not.
    let stream = web.modern("tools/call", json!({"name": "later"})).into_body();
    let token = *web.seen.lock().unwrap().tokens.last().unwrap();
    web.late.answer(token, |_, call| call.text("done")).unwrap();
    all(stream);
    assert_eq!(web.seen.lock().unwrap().cancelled, 2);
}

#[test]
fn an_older_client_comes_back_for_its_answer() {
    let web = Web::new();
    let session = web.open("2025-11-25");
    let ask = || web.send(in_session(&session, &tool(1, "later", json!({})))).into_body();
    let resume = |id: &str| {
        let request = builder("GET", "/mcp").header("Mcp-Session-Id", &session).header("Last-Event-ID", id);
        web.send(request.body(Default::default()).unwrap()).into_body()
    };
    let id_of = |stream: &mut Body| {
        let begin = next(stream).unwrap();
        let id = std::str::from_utf8(&begin).unwrap().lines().find_map(|line| line.strip_prefix("id: "));
        id.unwrap().to_owned()
    };
    let mut stream = ask();
    let id = id_of(&mut stream);
    drop(stream);
    assert_eq!(web.seen.lock().unwrap().cancelled, 0);
    let token = web.seen.lock().unwrap().tokens[0];
    web.late.answer(token, |_, call| call.text("kept")).unwrap();
    assert_eq!(text_of(&event(&mut resume(&id))), "kept");

    // It comes back while its first connection seems to be there: that one is woken, and ends.
    let (mut stream, count) = (ask(), Arc::<Count>::default());
    let id = id_of(&mut stream);
    assert!(poll(&mut stream, &count).is_pending());
    let mut again = resume(&id);
    assert_eq!(count.get(), 1);
    assert!(matches!(poll(&mut stream, &count), Poll::Ready(None)));
    let token = web.seen.lock().unwrap().tokens[1];
    web.late.answer(token, |_, call| call.text("once more")).unwrap();
    assert_eq!(text_of(&event(&mut again)), "once more");
}

#[test]
fn a_stream_is_pulled_only_when_it_is_polled() {
    let limits = EndpointLimits::default().stream(10_000);
    let config = EndpointConfig::DEFAULT.turn(2048);
    let web = Web::over(HttpServerOptions::new().endpoint_limits(limits).config(config));
    let mut stream = web.modern("tools/call", json!({"name": "later"})).into_body();
    let token = web.seen.lock().unwrap().tokens[0];
    for n in 1..=100 {
        web.late.progress(token, Progress::new(n).message(&"x".repeat(200))).unwrap();
    }
    // There is no room for the answer until the client reads; it waits, and its handler has not run.
    let seen = Arc::clone(&web.seen);
    let answer = move |_: &mut State, call: &mut Call<'_>| {
        seen.lock().unwrap().calls += 1;
        call.text("done")
    };
    web.late.answer(token, answer).unwrap();
    web.modern("tools/call", json!({"name": "later"}));
    assert_eq!(web.seen.lock().unwrap().calls, 0);
    let (mut text, mut frames) = (String::new(), 0);
    while let Some(bytes) = next(&mut stream) {
        assert!(bytes.len() <= 2048);
        frames += 1;
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    let events = events(&text);
    // What did not fit is not there.
    assert!(frames > 3 && events.len() > 10 && events.len() < 100, "{frames} {}", events.len());
    assert_eq!(text_of(events.last().unwrap()), "done");
    assert_eq!(web.seen.lock().unwrap().calls, 1);
}

#[test]
fn a_large_answer_comes_in_pieces() {
    let limits = EndpointLimits::default().stream(100_000);
    let config = EndpointConfig::DEFAULT.streams(mcp_sansio_tower::StreamPolicy::Preferred);
    let web = Web::over(HttpServerOptions::new().endpoint_limits(limits).config(config));
    let mut request = modern("tools/call", json!({"name": "large"}));
    request.headers_mut().insert("Accept", "text/event-stream, application/json;q=0.1".parse().unwrap());
    let text = all(web.send(request).into_body());
    assert_eq!(text_of(&events(&text)[0]).len(), 640_000);
}

/// The log of all streams is full of what one client does not read.
#[test]
fn a_stream_without_room_waits_for_the_others() {
    let limits = EndpointLimits::default().log(8_000).stream(8_000);
    let web = Web::over(HttpServerOptions::new().endpoint_limits(limits));
    let mut new = web.modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).into_body();
    let count = Arc::<Count>::default();
    while poll(&mut new, &count).is_ready() {}
    let unread = web.modern("tools/call", json!({"name": "later"})).into_body();
    let token = web.seen.lock().unwrap().tokens[0];
    for (n, len) in (1..=200).zip([200; 100].into_iter().chain([1; 100])) {
        web.late.progress(token, Progress::new(n).message(&"x".repeat(len))).unwrap();
    }
    web.late.publish(ServerChange::Tools).unwrap();
    assert_eq!(count.get(), 1);
    // It does not wake itself; the turns of others do.
    assert!(poll(&mut new, &count).is_pending());
    assert_eq!(count.get(), 1);
    drop(unread);
    assert_eq!(count.get(), 2);
    assert_eq!(event(&mut new)["method"], "notifications/tools/list_changed");
}

/// A body with frames of its own.
struct Frames {
    frames: VecDeque<Result<&'static [u8], ()>>,
    length: Option<u64>,
    ends: bool,
    /// The number of times that it is not ready.
    wakes: u32,
}

impl Frames {
    fn of(frames: impl Into<VecDeque<Result<&'static [u8], ()>>>) -> Self {
        Frames { frames: frames.into(), length: None, ends: true, wakes: 0 }
    }

    fn pending() -> Self {
        Frames { frames: VecDeque::new(), length: None, ends: false, wakes: 0 }
    }
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = ();

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ()>>> {
        if self.wakes > 0 {
            self.wakes -= 1;
            return Poll::Pending;
        }
        match self.frames.pop_front() {
            Some(frame) => Poll::Ready(Some(frame.map(|bytes| Frame::data(Bytes::from_static(bytes))))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A body that must not be read.
struct Unread;

impl http_body::Body for Unread {
    type Data = Bytes;
    type Error = ();
    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ()>>> {
        panic!("the body was read")
    }
}

#[test]
fn bodies_have_limits() {
    static HALF: [u8; 60] = [b' '; 60];
    let limits = MessageLimits { message: 100, ..MessageLimits::default() };
    let wire = mcp_sansio_http::http1::ConnectionLimits::DEFAULT.body_time(5_000);
    let web = Web::over(HttpServerOptions::new().limits(limits).input_total(150).wire_limits(wire));
    let ask = |body| web.call(builder("POST", "/mcp").body(body).unwrap());
    let status = |body| block_on(ask(body)).unwrap().status();
    // By the length that it says, and by what comes.
    assert_eq!(status(Frames { length: Some(101), ..Frames::pending() }), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(status(Frames::of([Ok(&HALF[..]), Ok(&HALF[..])])), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(status(Frames::of([Ok(&HALF[..]), Ok(&HALF[..40])])), StatusCode::BAD_REQUEST); // no JSON
    assert_eq!(status(Frames::of([Ok(&HALF[..]), Err(())])), StatusCode::BAD_REQUEST);

    // All together. What is dropped is given back.
    let cx = &mut Context::from_waker(Waker::noop());
    let mut slow: Vec<_> =
        (0..2).map(|_| ask(Frames { frames: [Ok(&HALF[..])].into(), ..Frames::pending() })).collect();
    assert!(slow.iter_mut().all(|slow| slow.as_mut().poll(cx).is_pending()));
    let response = block_on(ask(Frames::of([Ok(&HALF[..])]))).unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
    slow.pop();
    assert_eq!(status(Frames::of([Ok(&HALF[..])])), StatusCode::BAD_REQUEST);

    // And they may not take for ever.
    web.time.pass(5_000);
    let Poll::Ready(Ok(response)) = slow[0].as_mut().poll(cx) else { panic!("it waits") };
    assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
}

#[test]
fn unsent_answers_have_a_total() {
    const TEXT: usize = 100_000;
    let web = Web::over(HttpServerOptions::new().output_total(2 * TEXT));
    let ask = || web.modern("tools/call", json!({"name": "echo", "arguments": {"text": "x".repeat(TEXT)}}));
    // Two answers are more than the total, but the second one began below it.
    let mut unread: Vec<_> = (0..2).map(|_| ask().into_body()).collect();
    for _ in 0..2 {
        let refused = ask();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "1");
    }
    assert_eq!(web.seen.lock().unwrap().calls, 2);
    unread.pop();
    let mut answer = ask();
    assert_eq!(answer.status(), StatusCode::OK);

    // The server around the mount gets it piece by piece, and the length from the start.
    let body = answer.body_mut();
    let length = body.size_hint().exact().unwrap() as usize;
    let mut pieces = Vec::new();
    while let Some(piece) = next(body) {
        assert!(piece.len() <= 64 << 10, "{}", piece.len());
        assert_eq!(body.is_end_stream(), pieces.iter().map(Bytes::len).sum::<usize>() + piece.len() == length);
        pieces.push(piece);
    }
    assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), length);
    assert!(length > TEXT && pieces.len() > 1);
    // What it has not written yet is counted too.
    drop(answer);
    assert_eq!(ask().status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(pieces);
    assert_eq!(ask().status(), StatusCode::OK);
    drop(unread);
    assert_eq!(ask().status(), StatusCode::OK);
}

#[test]
fn the_head_is_judged_before_the_body_is_read() {
    let web = Web::with(|options| {
        options.authorize(|parts, head| match head.text("authorization") {
            Some("Bearer good") if parts.extensions.get::<u8>().is_none() => Access::Granted { principal: None },
            _ => Access::Denied { status: 401, challenge: Some("Bearer") },
        })
    });
    let status = |request: http::request::Builder| {
        let response = block_on(web.call(request.body(Unread).unwrap())).unwrap();
        (response.status().as_u16(), response.headers().get("www-authenticate").is_some())
    };
    let good = |path| builder("POST", path).header("Authorization", "Bearer good");
    assert_eq!(status(builder("POST", "/mcp")), (401, true));
    assert_eq!(status(good("/mcp").extension(1_u8)), (401, true));
    assert_eq!(status(good("/mcp").header("Origin", "https://example.org")), (403, false));
    assert_eq!(status(good("/elsewhere")), (404, false));
    assert_eq!(status(good("http://example.org/mcp")), (403, false));
    assert_eq!(status(good("/mcp").method("PUT")), (405, false));
    // There is one host.
    assert_eq!(status(good("/mcp").header("Host", "localhost")), (400, false));
    assert_eq!(status(Request::post("/mcp")), (400, false));
    let read = |request: http::request::Builder| {
        let body = initialize("2025-11-25").to_string();
        web.send(request.body(body.into()).unwrap()).status().as_u16()
    };
    assert_eq!(read(good("/mcp")), 200);
    // The authority of the target replaces `Host`; HTTP/2 has only that.
    let absolute = Request::post("http://localhost/mcp").header("Authorization", "Bearer good");
    let absolute = absolute.header("Content-Type", "application/json").header("Accept", "*/*");
    assert_eq!(read(absolute.version(Version::HTTP_2)), 200);
    assert_eq!(read(good("http://localhost/mcp")), 200);
    let other =
        Request::post("http://localhost/mcp").header("Authorization", "Bearer good").header("Host", "example.org");
    assert_eq!(read(other.header("Content-Type", "application/json").header("Accept", "*/*")), 200);
}

#[test]
fn principals_come_from_the_extensions() {
    #[derive(Clone)]
    struct User(&'static str);
    let web = Web::with(|options| options.principal(|head| Some(head.extensions.get::<User>()?.0.into())));
    let by = |user, mut request: Request<_>| {
        request.extensions_mut().insert(User(user));
        web.send(request)
    };
    let opened = by("ann", post("/mcp", &initialize("2025-11-25")));
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let call = || in_session(&session, &tool(1, "echo", json!({})));
    assert_eq!(by("ann", call()).status(), StatusCode::OK);
    assert_eq!(by("bob", call()).status(), StatusCode::NOT_FOUND);
    assert_eq!(web.send(call()).status(), StatusCode::NOT_FOUND);
    assert_eq!(web.seen.lock().unwrap().principals, [Some("ann".to_owned())]);
}

#[test]
fn a_question_is_answered() {
    let web = Web::new();
    let session = web.open("2025-11-25");
    let mut stream = web.send(in_session(&session, &tool(1, "ask", json!({})))).into_body();
    let question = event(&mut stream);
    assert_eq!(question["method"], "elicitation/create");
    let count = Arc::<Count>::default();
    assert!(poll(&mut stream, &count).is_pending());
    let reply =
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"sure": true}}});
    assert_eq!(web.send(in_session(&session, &reply)).status(), StatusCode::ACCEPTED);
    assert_eq!(count.get(), 1);
    assert_eq!(text_of(&event(&mut stream)), "yes");
    assert!(next(&mut stream).is_none());

    let asked = json_of(web.modern("tools/call", json!({"name": "ask"})));
    assert_eq!(asked["result"]["resultType"], "input_required");
    let answers = json!({"sure": {"action": "decline"}});
    let answered = web.modern("tools/call", json!({"name": "ask", "inputResponses": answers}));
    assert_eq!(text_of(&json_of(answered)), "no");
}

#[test]
fn changes_are_published_from_everywhere() {
    let web = Web::new();
    let session = web.open("2025-11-25");
    let request = builder("GET", "/mcp").header("Mcp-Session-Id", &session).body(Default::default()).unwrap();
    let mut old = web.send(request).into_body();
    let mut new = web.modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).into_body();
    assert_eq!(event(&mut new)["method"], "notifications/subscriptions/acknowledged");
    let counts: [Arc<Count>; 2] = Default::default();
    let settle = |streams: [&mut Body; 2]| {
        for (stream, count) in streams.into_iter().zip(&counts) {
            while poll(stream, count).is_ready() {}
        }
    };
    settle([&mut old, &mut new]);
    let publish: [&dyn Fn(); 4] = [
        &|| web.late.publish(ServerChange::Tools).unwrap(),
        &|| {
            let handle = web.mcp.handle();
            thread::spawn(move || handle.with(|endpoint, _, _| endpoint.publish(ServerChange::Tools))).join().unwrap();
        },
        // A handler publishes under the lock.
        &|| assert_eq!(web.modern("tools/call", json!({"name": "change"})).status(), StatusCode::OK),
        &|| assert_eq!(web.modern("tools/call", json!({"name": "publish"})).status(), StatusCode::OK),
    ];
    for (times, publish) in publish.iter().enumerate() {
        publish();
        assert_eq!(counts.each_ref().map(|count| count.get()), [times + 1; 2]);
        assert_eq!(event(&mut old)["method"], "notifications/tools/list_changed");
        assert_eq!(event(&mut new)["method"], "notifications/tools/list_changed");
        settle([&mut old, &mut new]);
    }
}

#[test]
fn a_tick_publishes_what_handlers_note() {
    let mut published = 0;
    let web = Web::with(|options| {
        options.tick(move |app, endpoint, now| {
            let calls = app.state.seen.lock().unwrap().calls;
            if calls > published {
                published = calls;
                endpoint.publish(ServerChange::Tools);
            }
            Some(now + 100)
        })
    });
    let mut new = web.modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).into_body();
    let count = Arc::<Count>::default();
    while poll(&mut new, &count).is_ready() {}
    web.modern("tools/call", json!({"name": "echo"}));
    assert_eq!(count.get(), 1);
    assert_eq!(event(&mut new)["method"], "notifications/tools/list_changed");
    // At the time that it wants, too.
    assert!(poll(&mut new, &count).is_pending());
    web.seen.lock().unwrap().calls += 1;
    web.time.pass(99);
    assert_eq!(count.get(), 1);
    web.time.pass(1);
    assert!(count.get() > 1);
    assert_eq!(event(&mut new)["method"], "notifications/tools/list_changed");
}

/// Only a task of the runtime may set the timer: what has to be done earlier wakes one.
#[test]
fn work_from_outside_sets_the_timer() {
    let wanted = Arc::new(AtomicU64::new(0));
    let tick_at = Arc::clone(&wanted);
    let web =
        Web::with(|options| options.tick(move |_, _, _| Some(tick_at.load(Ordering::SeqCst)).filter(|at| *at > 0)));
    let mut stream = web.modern("tools/call", json!({"name": "later"})).into_body();
    let count = Arc::<Count>::default();
    assert!(poll(&mut stream, &count).is_pending());
    let wants = Arc::clone(&wanted);
    web.mcp.handle().with(move |_, _, now| wants.store(now + 100, Ordering::SeqCst));
    assert_eq!(count.get(), 1);
    assert!(poll(&mut stream, &count).is_pending());
    web.time.pass(100);
    assert_eq!(count.get(), 2);
}

#[test]
fn requests_wait_for_the_stream_of_their_session() {
    let web = Web::new();
    let (mut stream, to) = web.open_old("/sse");
    let echo = |id: u64, text: &str| post(&to, &tool(id, "echo", json!({"text": text})));
    assert_eq!(web.send(echo(1, "first")).status(), StatusCode::ACCEPTED);
    let count = Arc::<Count>::default();
    let waker = Waker::from(Arc::clone(&count));
    let cx = &mut Context::from_waker(&waker);
    let mut second = web.call(echo(2, "second"));
    let dropped = &mut web.call(echo(3, "dropped"));
    assert!(second.as_mut().poll(cx).is_pending() && dropped.as_mut().poll(cx).is_pending());
    *dropped = web.call(get("/mcp"));
    assert_eq!((web.seen.lock().unwrap().calls, count.get()), (1, 0));
    assert_eq!(text_of(&event(&mut stream)), "first");
    assert_eq!(count.get(), 1);
    assert!(second.as_mut().poll(cx).is_ready());
    assert_eq!(text_of(&event(&mut stream)), "second");

    // Its end is an end of waiting too.
    assert_eq!(web.send(echo(4, "fourth")).status(), StatusCode::ACCEPTED);
    let mut last = web.call(echo(5, "fifth"));
    assert!(last.as_mut().poll(cx).is_pending());
    drop(stream);
    assert_eq!(count.get(), 2);
    let Poll::Ready(Ok(response)) = last.as_mut().poll(cx) else { panic!("it waits") };
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[test]
fn the_time_passes_without_a_task() {
    let web = Web::new();
    let open = || web.modern("tools/call", json!({"name": "later"})).into_body();
    let mut streams = [open(), open(), open()];
    let counts: [Arc<Count>; 3] = Default::default();
    for (stream, count) in streams.iter_mut().zip(&counts) {
        assert!(poll(stream, count).is_pending());
    }
    // One of them keeps the time, and wakes the others.
    web.time.pass(15_000);
    let comments = |streams: &mut [Body], counts: &[Arc<Count>]| {
        let mut comments = 0;
        for _ in 0..3 {
            for (stream, count) in streams.iter_mut().zip(counts) {
                if let Poll::Ready(Some(bytes)) = poll(stream, count) {
                    assert_eq!(bytes, ":\n\n");
                    comments += 1;
                }
            }
        }
        comments
    };
    assert_eq!(counts.iter().filter(|count| count.get() > 0).count(), 1);
    assert_eq!(comments(&mut streams, &counts), 3);

    // The keeper goes, woken or not: another one takes over.
    let [first, second, third] = streams;
    drop(first);
    let before = counts.each_ref().map(|count| count.get());
    web.time.pass(15_000);
    let woken = |counts: &[Arc<Count>; 3]| {
        counts.iter().zip(before).map(|(count, before)| count.get() > before).collect::<Vec<_>>()
    };
    assert_eq!(woken(&counts), [false, true, false]);
    drop(second);
    assert!(woken(&counts)[2]);
    assert_eq!(comments(&mut [third], &counts[2..]), 1);
}

#[test]
fn run_does_the_work_of_the_time_without_streams() {
    let web = Web::new();
    let session = web.open("2025-11-25");
    let mut stream = web.send(in_session(&session, &tool(1, "ask", json!({})))).into_body();
    let begin = next(&mut stream).unwrap();
    assert!(!begin.is_empty());
    let count = Arc::<Count>::default();
    let waker = Waker::from(Arc::clone(&count));
    let cx = &mut Context::from_waker(&waker);
    let mut run = Box::pin(web.mcp.run());
    assert!(run.as_mut().poll(cx).is_pending());
    while poll(&mut stream, &Arc::default()).is_ready() {}
    drop(stream);
    assert_eq!(web.seen.lock().unwrap().calls, 1);
    // The client does not come back: its question is over, and the handler learns it.
    for _ in 0..4 {
        web.time.pass(60_000);
        assert!(run.as_mut().poll(cx).is_pending());
    }
    assert!(count.get() > 0);
    assert_eq!(web.seen.lock().unwrap().calls, 2);
    let woken = count.get();
    drop(web);
    assert_eq!(count.get(), woken + 1);
    assert!(run.as_mut().poll(cx).is_ready());
}

#[test]
fn a_body_keeps_the_time_when_run_is_dropped() {
    let web = Web::new();
    let mut stream = web.modern("tools/call", json!({"name": "later"})).into_body();
    let counts: [Arc<Count>; 2] = Default::default();
    let waker = Waker::from(Arc::clone(&counts[0]));
    let mut run = Box::pin(web.mcp.run());
    assert!(run.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(poll(&mut stream, &counts[1]).is_pending());
    web.time.pass(15_000);
    assert_eq!(counts.each_ref().map(|count| count.get()), [1, 0]);
    // Dropped with the work undone.
    drop(run);
    assert_eq!(counts[1].get(), 1);
    assert!(matches!(poll(&mut stream, &counts[1]), Poll::Ready(Some(comment)) if comment == ":\n\n"));
    assert!(poll(&mut stream, &counts[1]).is_pending());
    web.time.pass(15_000);
    assert_eq!(counts[1].get(), 2);
}

#[test]
fn a_shutdown_ends_streams_and_refuses() {
    let web = Web::new();
    let mut stream = web.modern("tools/call", json!({"name": "later"})).into_body();
    let count = Arc::<Count>::default();
    assert!(poll(&mut stream, &count).is_pending());
    let cx = &mut Context::from_waker(Waker::noop());
    // One whose head has come, and its body not.
    let (parts, _) = modern("tools/call", json!({"name": "later"})).into_parts();
    let frames = Frames { wakes: 1, ..Frames::of([Ok(&b"{}"[..])]) };
    let mut slow = web.call(Request::from_parts(parts, frames));
    assert!(slow.as_mut().poll(cx).is_pending());
    web.mcp.handle().shut_down();
    assert_eq!(count.get(), 1);
    let Poll::Ready(Ok(response)) = slow.as_mut().poll(cx) else { panic!("it waits") };
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let text = all(stream);
    assert!(text.contains("going away"), "{text}");
    assert_eq!(web.modern("tools/list", json!({})).status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// Calls in flight have the time of the grace; all else ends at once.
#[test]
fn an_end_in_order() {
    let web = Web::new();
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut listen = web.modern("subscriptions/listen", filter).into_body();
    let mut calls: Vec<_> = (0..2).map(|_| web.modern("tools/call", json!({"name": "later"})).into_body()).collect();
    let tokens = web.seen.lock().unwrap().tokens.clone();
    let counts = [(); 3].map(|()| Arc::<Count>::default());
    assert_eq!(event(&mut listen)["method"], "notifications/subscriptions/acknowledged");
    assert!(poll(&mut listen, &counts[2]).is_pending());
    for (call, count) in calls.iter_mut().zip(&counts) {
        assert!(poll(call, count).is_pending());
    }
    let mut stop = std::pin::pin!(web.mcp.handle().stop(Duration::from_secs(5)));
    // Before it is polled.
    assert_eq!(counts[2].get(), 1);
    assert!(all(listen).contains("result"));
    assert_eq!(web.modern("tools/list", json!({})).status(), StatusCode::SERVICE_UNAVAILABLE);
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(stop.as_mut().poll(cx).is_pending());
    web.late.answer(tokens[0], |_, call| call.text("in time")).unwrap();
    assert!(all(calls.remove(0)).contains("in time"));
    web.time.pass(4_999);
    assert!(stop.as_mut().poll(cx).is_pending());
    web.time.pass(1);
    assert!(stop.as_mut().poll(cx).is_ready());
    assert!(all(calls.remove(0)).contains("going away"));
}

#[test]
fn a_stop_ends_with_the_last_request() {
    let web = Web::new();
    let call = web.modern("tools/call", json!({"name": "later"})).into_body();
    let token = web.seen.lock().unwrap().tokens[0];
    let mut stop = std::pin::pin!(web.mcp.handle().stop(Duration::from_secs(5)));
    let cx = &mut Context::from_waker(Waker::noop());
    web.time.pass(100);
    assert!(stop.as_mut().poll(cx).is_pending());
    web.late.answer(token, |_, call| call.text("in time")).unwrap();
    assert!(all(call).contains("in time"));
    web.time.pass(20);
    assert!(stop.as_mut().poll(cx).is_ready());
}

#[test]
fn a_panic_ends_the_mount_and_hangs_nobody() {
    let web = Web::new();
    let mut stream = web.modern("tools/call", json!({"name": "later"})).into_body();
    let count = Arc::<Count>::default();
    assert!(poll(&mut stream, &count).is_pending());
    let call = web.call(modern("tools/call", json!({"name": "panic"})));
    assert!(thread::spawn(move || block_on(call).is_ok()).join().is_err());
    assert_eq!(count.get(), 1);
    assert!(matches!(poll(&mut stream, &count), Poll::Ready(None)));
    assert_eq!(web.modern("tools/list", json!({})).status(), StatusCode::INTERNAL_SERVER_ERROR);
    let _ = web.late.publish(ServerChange::Tools);
    assert_eq!(web.late.publish(ServerChange::Tools), Err(LateSendError::Ended));
}

/// Threads read streams while others answer them: each stream gets its answer, with whatever interleaving.
#[test]
fn no_wake_is_lost() {
    let web = Arc::new(Web::new());
    let until = Instant::now() + Duration::from_secs(30);
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let web = Arc::clone(&web);
            thread::spawn(move || {
                for _ in 0..100 {
                    let stream = web.modern("tools/call", json!({"name": "later"})).into_body();
                    assert!(all(stream).contains("done"));
                }
            })
        })
        .collect();
    let mut answered = 0;
    while answered < 300 {
        assert!(Instant::now() < until, "only {answered} calls");
        for token in std::mem::take(&mut web.seen.lock().unwrap().tokens) {
            answered += 1;
            web.late.progress(token, Progress::new(1)).unwrap();
            web.late.answer(token, |_, call| call.text("done")).unwrap();
        }
        thread::yield_now();
    }
    for reader in readers {
        while !reader.is_finished() {
            assert!(Instant::now() < until, "a reader hangs");
            thread::sleep(Duration::from_millis(1));
        }
        reader.join().unwrap();
    }
    let (sender, load) = std::sync::mpsc::channel();
    web.mcp.handle().with(move |endpoint, _, _| sender.send(endpoint.load()).unwrap());
    assert_eq!(load.recv().unwrap(), (0, 0, 0));
}
