//! Authorization, and headers of the caller's own.

use super::*;

#[test]
fn challenges() {
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        let challenge = "WWW-Authenticate: Basic x\r\nWWW-Authenticate: Bearer scope=\"a\"\r\n";
        bench.send(&modern(1, "tools/call", ""));
        let first = bench.received(0);
        bench.reply(0, &json("401 Unauthorized", challenge, "{}"));
        assert_eq!(bench.told(), ["1 challenge 0 401 Bearer scope=\"a\""]);
        assert!(!bench.remote.is_idle());
        bench.wait(100_000);
        bench.remote.set_header("Authorization", "Bearer t").unwrap();
        bench.remote.retry(0);
        bench.turn();
        assert_eq!(bench.received(0), first.replace("tools/call\r\n", "tools/call\r\nAuthorization: Bearer t\r\n"));
        bench.reply(0, &json("403 Forbidden", challenge, "{}"));
        assert_eq!(bench.told(), ["1 challenge 0 403 Bearer scope=\"a\""]);
        bench.remote.give_up(0);
        bench.remote.give_up(0);
        bench.turn();
        assert_eq!(bench.told(), ["1 GivenUp "]);
        bench.remote.retry(0);
        bench.turn();
        assert!(bench.remote.is_idle() && bench.told().is_empty());
    });
}

#[test]
fn headers_of_the_callers_own() {
    let mut remote: Remote<'_, 1> = Remote::growing("http://h", Config::DEFAULT).unwrap();
    for name in ["", "a b", "a:", "é"] {
        assert_eq!(remote.set_header(name, "x"), Err(BadHeader::Name), "{name}");
    }
    for name in ["Host", "content-length", "Mcp-Session-Id", "mcp-param-x"] {
        assert_eq!(remote.set_header(name, "x"), Err(BadHeader::Reserved), "{name}");
    }
    for value in [" a", "a\r\nb: c", "\0", "a\t"] {
        assert_eq!(remote.set_header("X", value), Err(BadHeader::Value), "{value:?}");
    }
    let long = "x".repeat(1 << 16);
    remote.set_header("X", "1").unwrap();
    assert_eq!(remote.set_header("x", &long), Err(BadHeader::Room));
    remote.set_header("x", "2").unwrap();
    remote.set_header("Y", "3").unwrap();
    remote.remove_header("y");
    assert_eq!(remote.site.headers().collect::<Vec<_>>(), [b"x: 2"]);
}

/// A user takes minutes to log in. Neither does the probe count as unanswered then.
#[test]
fn time_stands_still_while_somebody_gives_credentials() {
    use mcp_sansio::client::{Event as Told, Link, Request};
    struct Later;
    impl Hooks for Later {
        fn challenged(&mut self, _: &Challenge<'_>, _: &mut Headers<'_>) -> Verdict {
            Verdict::Later
        }
    }
    for probes in [true, false] {
        let mut web = web(&PROFILE);
        if probes {
            web.client().connect();
        } else {
            web.link().send(&Request::list_tools()).unwrap();
        }
        let mut told = Vec::new();
        let mut handler = |event: Told<'_>, _: &mut Link<'_, '_>| told.push(format!("{event:?}"));
        while web.run(0, &mut handler, &mut Later) {}
        assert_eq!(web.remote().next_action(), Some(Action::Connect(0)));
        web.remote().connected(0);
        let n = web.remote().pending(0).len();
        web.remote().sent(0, n);
        let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        web.remote().space(0)[..answer.len()].copy_from_slice(answer);
        web.remote().filled(0, answer.len());
        while web.run(4_000, &mut handler, &mut Later) {}
        assert_eq!(web.next_deadline(), None);
        while web.run(400_000, &mut handler, &mut Later) {}
        assert!(web.engine().awaits(1), "{probes}");
        web.retry(0);
        while web.run(500_000, &mut handler, &mut Later) {}
        assert_eq!(web.next_deadline(), Some(505_000), "it begins again");
        while web.run(505_000, &mut handler, &mut Later) {}
        assert_eq!(told.len(), usize::from(!probes), "{told:?}");
    }
}

/// However many are challenged in turn.
#[test]
fn challenges_are_bounded() {
    use mcp_sansio::client::{Event as Told, Link, Request};
    struct Always(u32);
    impl Hooks for Always {
        fn challenged(&mut self, _: &Challenge<'_>, _: &mut Headers<'_>) -> Verdict {
            self.0 += 1;
            Verdict::Retry
        }
    }
    let mut web = web(&PROFILE);
    web.link().send(&Request::list_tools()).unwrap();
    web.link().send(&Request::list_prompts()).unwrap();
    let (mut hooks, mut failed) = (Always(0), 0);
    let mut handler = |event: Told<'_>, _: &mut Link<'_, '_>| failed += u32::from(matches!(event, Told::Done { .. }));
    for _ in 0..100 {
        while web.run(0, &mut handler, &mut hooks) {}
        while let Some(action) = web.remote().next_action() {
            if let Action::Connect(slot) = action {
                web.remote().connected(slot);
            }
        }
        for slot in 0..2 {
            let n = web.remote().pending(slot).len();
            web.remote().sent(slot, n);
            if n > 0 {
                let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
                web.remote().space(slot)[..answer.len()].copy_from_slice(answer);
                web.remote().filled(slot, answer.len());
            }
        }
    }
    assert_eq!((failed, hooks.0), (2, 2 * u32::from(CHALLENGES)));
}
