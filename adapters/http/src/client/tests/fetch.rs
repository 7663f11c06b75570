//! One GET or POST to any URL.

use super::*;

const LIMITS: FetchLimits = FetchLimits::DEFAULT.body(100).head(400);

fn begin(request: &FetchRequest<'_>, limits: FetchLimits) -> Fetch<'static> {
    let mut fetch = Fetch::growing(request, limits, 1_000).unwrap();
    assert!(fetch.connects() && !fetch.connects());
    fetch.connected();
    fetch
}

fn sent(fetch: &mut Fetch<'_>) -> String {
    let mut all = Vec::new();
    while !fetch.pending().is_empty() {
        all.extend_from_slice(fetch.pending());
        fetch.sent(fetch.pending().len());
    }
    String::from_utf8(all).unwrap()
}

/// Gives bytes in pieces, as long as they are taken.
fn give(fetch: &mut Fetch<'_>, bytes: &[u8], step: usize) {
    for piece in bytes.chunks(step) {
        let mut rest = piece;
        while !rest.is_empty() && !fetch.space().is_empty() {
            let n = rest.len().min(fetch.space().len());
            fetch.space()[..n].copy_from_slice(&rest[..n]);
            fetch.filled(n);
            rest = &rest[n..];
        }
    }
}

fn get(answer: &str, closes: bool, limits: FetchLimits) -> Vec<Result<(u16, String), FailureReason>> {
    let outcome = |step| {
        let mut fetch = begin(&FetchRequest::get("http://h/a"), limits);
        sent(&mut fetch);
        give(&mut fetch, answer.as_bytes(), step);
        if closes {
            fetch.closed();
        }
        match fetch.response() {
            Some(Ok(response)) => Ok((response.status, String::from_utf8(response.body.to_vec()).unwrap())),
            Some(Err(why)) => Err(why),
            None => Err(FailureReason::Unanswered),
        }
    };
    [1, 2, 3, 7, 50, 10_000].into_iter().map(outcome).collect()
}

#[test]
fn requests() {
    let headers = [("Accept", "application/json"), ("Authorization", "Basic x")];
    let mut fetch = begin(&FetchRequest::get("https://[::1]:8?q#f").headers(&headers), LIMITS);
    assert!(fetch.url().is_secure() && fetch.url().host() == "::1");
    let head = "GET /?q HTTP/1.1\r\nHost: [::1]:8\r\nAccept: application/json\r\nAuthorization: Basic x\r\n";
    let defaults = "Accept-Encoding: identity\r\nUser-Agent: mcp-sansio-http/0.1.0\r\n";
    assert_eq!(sent(&mut fetch), format!("{head}{defaults}Connection: close\r\n\r\n"));
    let own = [("user-agent", "me/1"), ("ACCEPT-ENCODING", "gzip")];
    let mut fetch = begin(&FetchRequest::get("http://h").headers(&own), LIMITS);
    let head = "GET / HTTP/1.1\r\nHost: h\r\nuser-agent: me/1\r\nACCEPT-ENCODING: gzip\r\n";
    assert_eq!(sent(&mut fetch), format!("{head}Connection: close\r\n\r\n"));
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let mut fetch = begin(&FetchRequest::post("http://h", b"a=b&c=d").headers(&headers), LIMITS);
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(sent(&mut fetch), format!("{head}{defaults}Content-Length: 7\r\nConnection: close\r\n\r\na=b&c=d"));
    for (header, error) in [
        (("Content-Length", "1"), HeaderError::Reserved),
        (("HOST", "evil"), HeaderError::Reserved),
        (("a b", "x"), HeaderError::Name),
        (("a", "x\r\nb: c"), HeaderError::Value),
    ] {
        let error = Err(FetchError::Header(error));
        assert_eq!(Fetch::growing(&FetchRequest::get("http://h").headers(&[header]), LIMITS, 0).map(drop), error);
    }
    for url in ["javascript:alert(1)", "file:///etc/passwd", "http://u:p@h/", "http://h/\r\nX: y", "ftp://h", ""] {
        let made = Fetch::growing(&FetchRequest::get(url), LIMITS, 0).map(drop);
        assert!(matches!(made, Err(FetchError::Url(_))), "{url}");
    }
}

#[test]
fn responses() {
    let fine = |status, body: &str| Ok((status, body.to_string()));
    for (answer, closes, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokrubbish", false, fine(200, "ok")),
        ("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\nno", false, fine(400, "no")),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\nx: y\r\n\r\n",
            false,
            fine(200, "abc"),
        ),
        ("HTTP/1.0 200 OK\r\n\r\nall", true, fine(200, "all")),
        ("HTTP/1.1 204 None\r\n\r\n", false, fine(204, "")),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", true, Err(FailureReason::Broken)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na", true, Err(FailureReason::Broken)),
        ("HTTP/1.1 200 OK\r\nContent-Le", true, Err(FailureReason::Reset)),
        ("HTTP/1.1 101 Switching\r\n\r\n", false, Err(FailureReason::NotHttp)),
        ("SSH-2.0-OpenSSH\r\n", false, Err(FailureReason::NotHttp)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", false, Err(FailureReason::TooLarge)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", false, Err(FailureReason::TooLarge)),
    ] {
        for (at, outcome) in get(answer, closes, LIMITS).into_iter().enumerate() {
            assert_eq!(outcome, expected, "{answer:?} {at}");
        }
    }
    // Without a length, the limit holds while the body arrives.
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(101));
    assert!(get(&endless, false, LIMITS).iter().all(|outcome| *outcome == Err(FailureReason::TooLarge)));
    let chunks = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}", "1\r\nx\r\n".repeat(101));
    assert!(get(&chunks, false, LIMITS).iter().all(|outcome| *outcome == Err(FailureReason::TooLarge)));
    let most = format!("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", "x".repeat(100));
    assert!(get(&most, false, LIMITS).iter().all(Result::is_ok));
    let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(400));
    assert!(get(&head, false, LIMITS).iter().all(|outcome| *outcome == Err(FailureReason::TooLarge)));
}

#[test]
fn headers_of_responses() {
    let mut fetch = begin(&FetchRequest::get("http://h/a"), LIMITS);
    sent(&mut fetch);
    let answer = "HTTP/1.1 400 No\r\nDPoP-Nonce:  n \r\nWWW-Authenticate: a\r\nContent-Length: 17\r\nwww-authenticate: b\r\n\r\nDPoP-Nonce: forge";
    give(&mut fetch, answer.as_bytes(), 5);
    let response = fetch.response().unwrap().unwrap();
    assert_eq!(response.headers("dpop-nonce").collect::<Vec<_>>(), ["n"]);
    assert_eq!(response.headers("WWW-Authenticate").collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(response.headers("x").count(), 0);
    assert!(fetch.is_over() && fetch.space().is_empty());
    fetch.failed();
    fetch.expire(u64::MAX);
    assert!(fetch.response().unwrap().is_ok(), "an outcome stays");
}

#[test]
fn redirects_stay_on_the_origin() {
    let answer = |location: &str| format!("HTTP/1.1 302 There\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
    let mut fetch = begin(&FetchRequest::get("http://h/a/b").headers(&[("Authorization", "x")]), LIMITS);
    sent(&mut fetch);
    give(&mut fetch, answer("../c").as_bytes(), 9);
    assert!(fetch.pending().is_empty() && fetch.connects());
    fetch.connected();
    assert!(sent(&mut fetch).starts_with("GET /c HTTP/1.1\r\nHost: h\r\nAuthorization: x\r\n"));
    give(&mut fetch, answer("d?e").as_bytes(), 9);
    assert!(fetch.connects());
    fetch.connected();
    assert!(sent(&mut fetch).starts_with("GET /d?e HTTP/1.1\r\n"));
    for location in
        ["http://10.0.0.1/", "https://h/", "//evil/", "http://h:81/", "file:///etc/passwd", "javascript:x", "", "a b"]
    {
        let all = get(&answer(location), false, LIMITS);
        assert!(all.iter().all(|outcome| *outcome == Err(FailureReason::Redirect(302))), "{location}");
    }
    // As often as the limit says.
    let mut fetch = begin(&FetchRequest::get("http://h/a"), LIMITS.redirects(2));
    for round in 0..3 {
        sent(&mut fetch);
        give(&mut fetch, answer("/a").as_bytes(), 9);
        assert_eq!(fetch.connects(), round < 2);
        fetch.connected();
    }
    assert_eq!(fetch.response().unwrap().unwrap_err(), FailureReason::Redirect(302));
    // The caller wants the redirect.
    let mut fetch = begin(&FetchRequest::get("http://h/a"), LIMITS.redirects(0));
    sent(&mut fetch);
    give(&mut fetch, answer("http://evil/cb?code=1").as_bytes(), 9);
    let response = fetch.response().unwrap().unwrap();
    assert_eq!((response.status, response.headers("location").next()), (302, Some("http://evil/cb?code=1")));
    // A POST follows no redirect.
    let mut fetch = begin(&FetchRequest::post("http://h/token", b"code=1"), LIMITS);
    sent(&mut fetch);
    give(&mut fetch, "HTTP/1.1 307 There\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n".as_bytes(), 9);
    assert_eq!(fetch.response().unwrap().unwrap_err(), FailureReason::Redirect(307));
}

#[test]
fn time_and_connections_end() {
    let mut fetch = begin(&FetchRequest::get("http://h/a"), LIMITS.time(500));
    assert_eq!(fetch.deadline, 1_500);
    sent(&mut fetch);
    give(&mut fetch, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow", 1);
    fetch.expire(1_499);
    assert!(!fetch.is_over());
    fetch.expire(1_500);
    assert_eq!(fetch.response().unwrap().unwrap_err(), FailureReason::TimedOut);
    let mut fetch = Fetch::growing(&FetchRequest::get("http://h/a"), LIMITS, 0).unwrap();
    assert!(fetch.connects());
    fetch.failed();
    assert_eq!(fetch.response().unwrap().unwrap_err(), FailureReason::Refused);
    let mut fetch = begin(&FetchRequest::get("http://h/a"), LIMITS);
    sent(&mut fetch);
    fetch.closed();
    assert_eq!(fetch.response().unwrap().unwrap_err(), FailureReason::Reset);
    // Without an allocator, and with too little of everything.
    let made = |texts, output| {
        let lend = |n: usize| Store::from(vec![0u8; n].leak());
        let request = FetchRequest::post("http://h/a", b"body");
        Fetch::new(&request, LIMITS, 0, [lend(texts), lend(output), lend(64), lend(64)]).map(drop)
    };
    assert_eq!(made(100, 1028), Ok(()));
    assert_eq!((made(10, 1028), made(100, 1027)), (Err(FetchError::Room), Err(FetchError::Room)));
}

#[test]
fn secrets_are_not_shown() {
    let headers = [("Authorization", "secret")];
    let request = FetchRequest::post("http://h/a?code=secret", b"secret").headers(&headers);
    let mut fetch = begin(&request, LIMITS);
    sent(&mut fetch);
    give(&mut fetch, b"HTTP/1.1 200 OK\r\nX: secret\r\nContent-Length: 6\r\n\r\nsecret", 100);
    let shown = format!("{request:?} {fetch:?} {:?}", fetch.response());
    assert!(shown.contains("Done") && !shown.contains("secret"), "{shown}");
}
