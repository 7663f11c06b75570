//! Full sinks, small windows, large content, and cancellation in the middle.
use crate::common;

use common::handlers::{book_text, picture_bytes};
use common::*;
use mcp_sansio::server::MIN_ROOM;

const WINDOWS: [usize; 7] = [MIN_ROOM, MIN_ROOM + 1, 400, 511, 512, 1000, 4096];

/// A burst of messages into a sink with room for one or two replies: all are answered, in order.
#[test]
fn a_full_sink_in_a_burst_loses_no_message() {
    for window in [MIN_ROOM, 400, 512] {
        for gulp in [1, 13, 200] {
            let mut rig: Rig = Rig::with(window).opened("2025-06-18");
            rig.gulp = gulp;
            let mut burst = String::new();
            for id in 1..=60 {
                let line = match id % 3 {
                    0 => request("2025-06-18", id, "ping", json!({})),
                    1 => call("2025-06-18", id, "count", json!({})),
                    _ => request("2025-06-18", id, "unknown/method", json!({})),
                };
                burst += &(line + "\n");
            }
            rig.feed(burst.as_bytes());
            let said = rig.take();
            assert_eq!(said.len(), 60);
            for (line, id) in said.iter().zip(1..) {
                assert_eq!(parse(line)["id"], id);
            }
            assert_eq!(rig.world.effects, 20, "each handler ran once, window {window}, gulp {gulp}");
        }
    }
}

/// A reply that goes out in windows stays in flight until it was sent. Where nothing more may, it is refused and leaves nothing.
#[test]
fn a_large_reply_is_refused_while_too_much_is_in_flight() {
    let instructions: &str = "i".repeat(3_000).leak();
    let service = mcp_sansio::service::Service::new("large", "1").instructions(instructions);
    let mut rig: Rig = Rig::with(600).serving(service);
    let discover = request("2026-07-28", 1, "server/discover", json!({}));
    rig.session.server.set_most_in_flight(0);
    for _ in 0..20 {
        let reply = rig.one(&discover);
        assert_eq!((code(&reply), rig.session.server.in_flight()), (-32603, 0), "{reply}");
    }
    rig.session.server.set_most_in_flight(1);
    assert!(rig.one(&discover).contains(instructions));
}

/// A handler with an effect runs once, for any room in the sink and any output.
#[test]
fn effects_happen_once() {
    for window in [MIN_ROOM, 400, 512, 700, 2000] {
        for size in [0, 10, 100, 200, 250, 300, 600, 1990, 5000] {
            for filling in 0..12 {
                let mut rig: Rig = Rig::with(window).opened("2025-06-18");
                rig.gulp = 40;
                let pings = request("2025-06-18", "fill", "ping", json!({})) + "\n";
                let large = call("2025-06-18", 1, "large", json!({"size": size})) + "\n";
                rig.feed((pings.repeat(filling) + &large + &pings).as_bytes());
                let said = rig.take();
                assert_eq!(said.len(), filling + 2, "window {window}, size {size}: {said:?}");
                let reply = parse(&said[filling]);
                let whole = reply["result"]["content"][0]["text"].as_str().map(str::len) == Some(size);
                assert!(whole || reply["error"]["code"] == -32603, "{reply}");
                assert_eq!(rig.world.effects, 1, "window {window}, size {size}, {filling} before it");
            }
        }
    }
    // With notifications in between, and with an error after the effect.
    for window in [300, 520, 700, 900] {
        let mut rig: Rig = Rig::with(window).opened("2025-06-18");
        rig.gulp = 30;
        let line = request("2025-06-18", 1, "tools/call", json!({"name": "chatty", "_meta": {"progressToken": "p"}}));
        rig.feed(format!("{line}\n").repeat(2).as_bytes());
        let said = rig.take();
        assert_eq!(said.iter().filter(|line| line.contains("\"result\"")).count(), 2, "{said:?}");
        assert_eq!(rig.world.effects, 2);
    }
}

/// A reply that never fits is answered with an error, and the next message is served too.
#[test]
fn never_is_answered() {
    for revision in REVISIONS {
        for window in WINDOWS {
            let mut rig: Rig = Rig::with(window).opened(revision);
            let reply = rig.one(&call(revision, 1, "large", json!({"size": 10_000})));
            assert_eq!(code(&reply), -32603, "window {window}");
            let id = "i".repeat(mcp_sansio::server::ID_MAX - 2);
            for line in [
                request(revision, id.as_str(), "demo/unknown", json!({})),
                call(revision, id.as_str(), "add", json!({"a": "x"})),
                call(revision, id.as_str(), "nothing", json!({})),
                request(revision, id.as_str(), "prompts/get", json!({"name": "media"})),
                request(revision, "i".repeat(500), "tools/list", json!({})),
            ] {
                let reply = rig.one(&line);
                assert!(reply.len() < window);
            }
            // A URI that is too long for the answer.
            let mut rig = rig.unjudged();
            let line = request(
                revision,
                id.as_str(),
                "resources/read",
                json!({"uri": format!("none://{}", "x".repeat(9000))}),
            );
            assert!(code(&rig.one(&line)) < -32000);
            // Before the connection is open, and with a version that is too long for the answer.
            let mut rig: Rig = Rig::with(window);
            assert_eq!(
                code(&rig.one(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string())),
                -32602
            );
            let meta = json!({"io.modelcontextprotocol/protocolVersion": "v".repeat(5000),
                "io.modelcontextprotocol/clientCapabilities": {}});
            let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
            let mut rig = rig.unjudged();
            assert_eq!(code(&rig.one(&line.to_string())), -32022);
        }
    }
}

/// Lists and descriptions through windows smaller than any item.
#[test]
fn lists_through_any_window() {
    for revision in REVISIONS {
        let mut whole: Rig = Rig::new().opened(revision);
        for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
            let line = request(revision, 7, method, json!({}));
            let expected = whole.one(&line);
            for window in (MIN_ROOM..MIN_ROOM + 50).step_by(9).chain(WINDOWS) {
                let mut rig: Rig = Rig::with(window).opened(revision);
                rig.gulp = 1 + window % 97;
                assert_eq!(rig.one(&line), expected, "window {window}");
                assert_eq!(text(&rig.one(&call(revision, 8, "add", json!({"a": 1, "b": 1})))), "2");
            }
        }
    }
    // Lists have pages only if the application wants them.
    for window in [MIN_ROOM, usize::MAX] {
        let mut rig: Rig = Rig::with(window).serving(everything::service().page_size(10)).opened("2025-06-18");
        let (mut cursor, mut names, mut pages) = (None, Vec::new(), 0);
        loop {
            let params = cursor.map_or(json!({}), |cursor: Value| json!({"cursor": cursor}));
            let page = parse(&rig.one(&request("2025-06-18", 1, "tools/list", params)));
            names.extend(page["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()));
            pages += 1;
            match page["result"].get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
        assert_eq!((pages, names.len()), (4, everything::TOOLS.len()));
        assert_eq!(code(&rig.one(&request("2025-06-18", 1, "prompts/list", json!({"cursor": "10"})))), -32602);
    }
}

/// Text and bytes from sources, whole and broken, through each kind of window, with sources of any speed.
#[test]
fn large_content() {
    use data_encoding::BASE64;
    for revision in ["2024-11-05", "2025-11-25", MODERN] {
        for window in WINDOWS {
            for sip in [0, 2, 7] {
                let mut rig: Rig = Rig::with(window).opened(revision);
                rig.world.sip = sip;
                let mut ask = |line: String| parse(&rig.one(&line))["result"].clone();
                let book = ask(call(revision, 1, "book", json!({})));
                assert_eq!(book["content"][0]["text"], book_text().as_str(), "window {window}, sip {sip}");
                assert_eq!(book["isError"], false);
                let torn = ask(call(revision, 2, "torn_book", json!({})));
                assert!(
                    torn["content"][0]["text"]
                        .as_str()
                        .is_some_and(|text| text.len() > 690 && book_text().starts_with(text))
                );
                assert_eq!(torn["isError"], true);
                let picture = ask(call(revision, 3, "picture", json!({})));
                let bytes = BASE64.decode(picture["content"][0]["data"].as_str().unwrap().as_bytes()).unwrap();
                assert_eq!(bytes, picture_bytes());
                let torn = ask(call(revision, 4, "torn_picture", json!({})));
                let bytes = BASE64.decode(torn["content"][0]["data"].as_str().unwrap().as_bytes()).unwrap();
                assert_eq!((bytes.len(), &torn["isError"]), (699, &json!(true)));
                let read = ask(request(revision, 5, "resources/read", json!({"uri": "test://book"})));
                assert_eq!(read["contents"][0]["text"], book_text().as_str());
                let film = ask(request(revision, 6, "resources/read", json!({"uri": "test://film"})));
                assert_eq!(
                    BASE64.decode(film["contents"][0]["blob"].as_str().unwrap().as_bytes()).unwrap(),
                    picture_bytes()
                );
                for uri in ["test://torn", "test://torn-film"] {
                    let torn = ask(request(revision, 7, "resources/read", json!({"uri": uri})));
                    assert_eq!(torn["_meta"]["incomplete"], true, "{torn}");
                }
            }
        }
    }
}

/// A cancelled reply in windows ends early with its JSON closed; the next message is served.
#[test]
fn cancelled_in_the_middle() {
    for revision in REVISIONS {
        for window in [MIN_ROOM, 400, 512] {
            for line in [
                request(revision, 7, "tools/list", json!({})),
                call(revision, 7, "book", json!({})),
                call(revision, 7, "picture", json!({})),
                request(revision, 7, "resources/read", json!({"uri": "test://film"})),
            ] {
                let whole = Rig::new().opened(revision).one(&line).len();
                for gulp in [1, 50, 256] {
                    let mut rig: Rig = Rig::with(window).opened(revision);
                    rig.gulp = gulp;
                    // All lines at once: the cancellation is there before the second window.
                    let add = call(revision, 8, "add", json!({"a": 1, "b": 1}));
                    rig.feed(format!("{line}\n{}\n{add}\n", cancel(7)).as_bytes());
                    let said = rig.take();
                    assert_eq!(said.len(), 2, "{said:?}");
                    assert!(said[0].len() < whole, "it was not cut short: {}", said[0]);
                    assert_eq!(text(&said[1]), "2");
                    assert_eq!(rig.session.server.in_flight(), 0);
                    rig.one(&request(revision, 7, "tools/list", json!({})));
                }
            }
        }
    }
}

/// While a large reply holds the sink, messages that need no room are handled, and the others wait.
#[test]
fn behind_a_large_reply() {
    let mut rig: Rig = Rig::with(300).opened("2025-06-18");
    let burst = [
        call("2025-06-18", 1, "book", json!({})),
        notify("notifications/whatever", json!({})),
        answer(&json!(5), json!({})),
        call("2025-06-18", 2, "count", json!({})),
        request("2025-06-18", 3, "prompts/list", json!({})),
        call("2025-06-18", 4, "count", json!({})),
    ];
    rig.feed((burst.join("\n") + "\n").as_bytes());
    let ids: Vec<_> = rig.take().iter().map(|line| parse(line)["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [1, 2, 3, 4]);
    assert_eq!((rig.world.effects, rig.world.notified.last().map(String::as_str)), (2, Some("notifications/whatever")));
}

/// Batches through small windows: each element once, and the array complete.
#[test]
fn batches_through_any_window() {
    for revision in ["2024-11-05", "2025-03-26"] {
        let elements: Vec<_> = (1..=9)
            .map(|id| match id % 3 {
                0 => call(revision, id, "count", json!({})),
                1 => request(revision, id, "prompts/list", json!({})),
                _ => call(revision, id, "torn_picture", json!({})),
            })
            .chain([
                "5".into(),
                notify("notifications/whatever", json!({})),
                request(revision, "end", "ping", json!({})),
            ])
            .collect();
        let batch = format!("[{}]", elements.join(","));
        let expected = Rig::new().opened(revision).one(&batch);
        for window in WINDOWS {
            for gulp in [1, 60, usize::MAX] {
                let mut rig: Rig = Rig::with(window).opened(revision);
                rig.gulp = gulp;
                assert_eq!(rig.one(&batch), expected, "window {window}, gulp {gulp}");
                assert_eq!(rig.world.effects, 3);
                assert_eq!(rig.world.notified.iter().filter(|m| m.ends_with("whatever")).count(), 1);
                assert_eq!(rig.session.server.in_flight(), 0);
            }
        }
        // A question becomes ready while the array is open: both are completed.
        let batch = [
            call(revision, 1, "restless", json!({})),
            call(revision, 2, "book", json!({})),
            call(revision, 3, "roots", json!({})),
            call(revision, 4, "count", json!({})),
        ]
        .join(",");
        for window in [300, 1100, usize::MAX] {
            let mut rig: Rig = Rig::with(window).opened(revision);
            let said = rig.say(&format!("[{batch}]"));
            assert!(said.iter().any(|line| line.contains("rested")), "{said:?}");
            assert!(said.iter().any(|line| line.contains("roots/list")), "{said:?}");
            assert_eq!(rig.world.effects, 1);
        }
    }
}

/// The array is closed behind the last window, and not in the middle of the reply.
#[test]
fn a_batch_whose_last_reply_is_large() {
    for revision in ["2024-11-05", "2025-03-26"] {
        let batch = format!("[{},{}]", call(revision, 1, "count", json!({})), call(revision, 2, "picture", json!({})));
        let expected = Rig::new().opened(revision).one(&batch);
        assert_eq!(parse(&expected).as_array().map(Vec::len), Some(2));
        for window in WINDOWS {
            for gulp in [1, 60, usize::MAX] {
                let mut rig: Rig = Rig::with(window).opened(revision);
                rig.gulp = gulp;
                assert_eq!(rig.one(&batch), expected, "window {window}, gulp {gulp}");
                assert_eq!((rig.world.effects, rig.session.server.in_flight()), (1, 0));
            }
        }
    }
}

/// Raw newlines may come in over HTTP; they must not go out in a line.
#[test]
fn raw_newlines_never_break_a_line() {
    use mcp_sansio::server::{MessageLimits, Server};
    use mcp_sansio::sink::LineSink;
    let service = everything::service();
    let mut server = Server::growing(MessageLimits { in_flight: 4, ..MessageLimits::default() });
    let mut world = World::default();
    let pretty = |line: String| serde_json::to_string_pretty(&parse(&line)).unwrap().replace('\n', "\r\n");
    let meta = json!({"progressToken": "p\n", "example.com/pass": {"a": [1, {"b": "c\n"}]}});
    for line in [
        request(MODERN, "i\nd", "tools/call", json!({"name": "meta", "_meta": meta})),
        request(MODERN, "i\nd", "tools/call", json!({"name": "chatty", "_meta": meta})),
        request(MODERN, 1, "tools/list", json!({})),
        request(
            MODERN,
            "l\n",
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": ["file:///\n"]}}),
        ),
        request(MODERN, 2, "resources/read", json!({"uri": "none://\n"})),
    ] {
        let mut out = LineSink::new(Vec::new());
        let _ = service.dispatch(&mut world, pretty(line).as_bytes(), &mut server, &mut out).unwrap();
        let said = String::from_utf8(out.into_inner()).unwrap();
        assert!(!said.is_empty() && !said.contains('\r'));
        for line in said.lines() {
            mcp_sansio_test_support::strict_json(line.as_bytes()).unwrap();
        }
    }
}

/// Escaped text in borrowed arguments is decoded, of any length.
#[test]
fn escaped_arguments_are_decoded() {
    for size in [1, 100, 10_000] {
        let text_in = "a\"\u{e9}\u{1f600}\n\\".repeat(size);
        let line = call("2025-06-18", 1, "shout", json!({"text": text_in}));
        let escaped = line.replace('\u{e9}', "\\u00e9").replace('\u{1f600}', "\\ud83d\\ude00");
        for line in [line, escaped] {
            let mut rig = Rig::new().opened("2025-06-18");
            assert_eq!(text(&rig.one(&line)), text_in.to_uppercase());
        }
    }
}
