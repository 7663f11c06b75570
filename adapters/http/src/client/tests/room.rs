//! Too little room: slots, lent storage, heads.

use super::*;

/// Messages that wait for a slot do not stop the deadlines of others.
#[test]
fn time_goes_on_while_all_slots_are_taken() {
    use mcp_sansio::client::{ClientEvent as Told, ClientHandle, Request, SubscriptionFilter};
    let mut web = web(&PROFILE);
    let first = web.handle().send(&Request::list_tools()).unwrap();
    web.handle().send(&Request::list_prompts()).unwrap();
    web.handle().cancel(first, None).unwrap();
    // This message is before the other in the queue.
    let listen = web.client.listen(&SubscriptionFilter::new().tools()).unwrap();
    let mut told = Vec::new();
    let mut handler = |event: Told<'_>, _: &mut ClientHandle<'_, '_>| told.push(format!("{event:?}"));
    while web.run(0, &mut handler, &mut ()) {}
    web.handle().send(&Request::list_resources()).unwrap();
    while web.run(1, &mut handler, &mut ()) {}
    assert!(web.next_deadline().is_some_and(|due| due <= 5_000));
    while web.run(5_001, &mut handler, &mut ()) {}
    assert!(told.iter().any(|told| told.contains("TimedOut")), "{told:?}");
    assert!(web.client.is_open(listen));
}

#[test]
fn nothing_begins_while_it_is_held() {
    let mut remote = HttpTransport::growing("http://h/mcp", HttpClientConfig::DEFAULT, 1).unwrap();
    remote.hold(true);
    assert_eq!(
        (remote.held(), remote.begin(MessageHead::Request(&RequestInfo::new(0, "ping")))),
        (true, Err(FullError::Now))
    );
    remote.hold(false);
    assert_eq!((remote.held(), remote.begin(MessageHead::Request(&RequestInfo::new(0, "ping")))), (false, Ok(())));
}

#[test]
fn limits_of_lent_storage() {
    let (mut texts, mut tools) = ([0; 64], [0; 64]);
    let (mut input, mut message, mut output) = ([0; 64], [0; 48], [0; 2048]);
    let mut slots = [ExchangeSlot::new(&mut input, &mut message, &mut output)];
    let mut remote =
        HttpTransport::new("http://h/mcp", HttpClientConfig::DEFAULT, &mut texts, &mut tools, &mut slots).unwrap();
    assert_eq!(remote.capacity(), 1024);
    let ask = |remote: &mut HttpTransport<'_>, reply: &str| {
        let message = modern(1, "ping", "");
        write(remote, &message).unwrap();
        while let Some(action) = remote.next_action() {
            if let SocketAction::Connect(slot) = action {
                remote.connected(slot);
            }
        }
        let n = remote.pending(0).len();
        remote.sent(0, n);
        let mut rest = reply.as_bytes();
        let mut told = Vec::new();
        loop {
            let space = remote.space(0);
            let n = space.len().min(rest.len());
            space[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            remote.filled(0, n);
            match remote.next_event() {
                Some(HttpClientEvent::Message { bytes, .. }) => told.push(format!("{} bytes", bytes.len())),
                Some(HttpClientEvent::Failed { why, .. }) => told.push(format!("{why:?}")),
                Some(other) => panic!("{other:?}"),
                None if n == 0 => break,
                None => {}
            }
        }
        let _ = remote.next_action();
        told
    };
    let head =
        |length: usize| format!("HTTP/1.1 200 \r\nContent-Type:application/json\r\nContent-Length:{length}\r\n\r\n");
    assert!(head(48).len() > 64);
    assert_eq!(ask(&mut remote, &head(36)), ["TooLarge"], "the head does not fit");
    let head = "HTTP/1.1 200\r\nContent-Type:application/json\r\n\r\n";
    let body = |len: usize| format!("{head}{}{}", result(1), " ".repeat(len - result(1).len()));
    assert_eq!(ask(&mut remote, &body(49)), ["TooLarge"]);
    let events = "HTTP/1.1 200\r\nContent-Type:text/event-stream\r\n\r\n";
    let event = |len: usize| format!("{events}data:{}{}\n\n", result(1), " ".repeat(len - result(1).len()));
    assert_eq!(ask(&mut remote, &event(47)), ["47 bytes"]);
    assert_eq!(ask(&mut remote, &event(48)), ["TooLarge"]);
    assert_eq!(remote.set_header("a", &"x".repeat(40)), Err(HeaderError::Room));
    let large = mcp_sansio::sink::whole(&mut remote, MessageHead::Request(&RequestInfo::new(0, "ping")), |out| {
        out.put(&[b' '; 1025])
    });
    assert_eq!(large, Err(FullError::Never));
    assert!(remote.is_idle());
}

/// Headers that do not fit end the exchanges that need them, and the client does not try again for ever.
#[test]
fn heads_that_do_not_fit() {
    let (mut texts, mut memory) = ([0; 4096], [[0; 1024]; 6]);
    let mut parts = memory.iter_mut();
    let mut slots: [ExchangeSlot<'_>; 2] = core::array::from_fn(|_| {
        let [a, b, c] = core::array::from_fn(|_| parts.next().unwrap());
        ExchangeSlot::new(a, b, c)
    });
    let mut remote =
        HttpTransport::new("http://h", HttpClientConfig::DEFAULT, &mut texts, Store::none(), &mut slots).unwrap();
    remote.set_header("x", &"y".repeat(2000)).unwrap();
    // No message fits beside the room for a head.
    let message = mcp_sansio::sink::whole(&mut remote, MessageHead::Notification, |out| out.put(b"{}"));
    assert_eq!((message, remote.capacity()), (Err(FullError::Never), 0));
    remote.begin(MessageHead::Notification).unwrap();
    remote.end();
    assert!(matches!(
        remote.next_event(),
        Some(HttpClientEvent::Failed { request: None, why: FailureReason::NoRoom, .. })
    ));
    remote.origin.listening = ListenState::Opening;
    assert!(remote.next_event().is_none());
    assert_eq!(remote.listening(), ListenState::No);
}

/// A message may lose its end while it is written, in a slot and in the queue of those that wait for one.
#[test]
fn a_message_is_taken_back_in_part() {
    let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
    let message = modern(1, "ping", "");
    let out = &mut bench.remote;
    let before = out.mark();
    out.begin(MessageHead::Request(&RequestInfo::new(0, "ping"))).unwrap();
    out.put(b"another").unwrap();
    out.roll_back(before);
    assert_eq!(out.mark(), before);
    out.begin(MessageHead::Request(&RequestInfo::new(0, "ping"))).unwrap();
    let (start, end) = message.split_at(20);
    out.put(start.as_bytes()).unwrap();
    let mark = out.mark();
    out.put(b"what goes again").unwrap();
    out.roll_back(mark);
    assert_eq!(out.mark(), mark);
    out.put(end.as_bytes()).unwrap();
    out.end();
    assert_eq!(out.mark(), before);
    bench.turn();
    assert!(bench.received(0).ends_with(&format!("\r\n\r\n{message}")));
    // All slots are taken: it waits in the queue.
    let mut web = web(&PROFILE);
    web.client.connect_as(Revision::V2025_11_25);
    let handle = web.handle();
    for _ in 0..2 {
        mcp_sansio::sink::whole(handle.out, MessageHead::Notification, |out| out.put(b"{}")).unwrap();
    }
    let room = handle.out.room();
    handle.out.begin(MessageHead::Notification).unwrap();
    handle.out.put(start.as_bytes()).unwrap();
    let mark = handle.out.mark();
    handle.out.put(b"what goes again").unwrap();
    handle.out.roll_back(mark);
    assert_eq!(handle.out.mark(), mark);
    handle.out.roll_back(Mark::new(0));
    assert_eq!(handle.out.room(), room);
    handle.out.begin(MessageHead::Notification).unwrap();
    handle.out.put(start.as_bytes()).unwrap();
    handle.out.put(end.as_bytes()).unwrap();
    handle.out.end();
    // An empty sink has mark 0. This one is not empty.
    assert_ne!(handle.out.mark(), Mark::new(0));
    let mut nothing = |_: mcp_sansio::client::ClientEvent<'_>, _: &mut mcp_sansio::client::ClientHandle<'_, '_>| {};
    let mut sent = Vec::new();
    for _ in 0..4 {
        while web.run(0, &mut nothing, &mut ()) {}
        while let Some(action) = web.remote.next_action() {
            if let SocketAction::Connect(slot) = action {
                web.remote.connected(slot);
            }
        }
        for slot in 0..2 {
            let bytes = String::from_utf8(web.remote.pending(slot).to_vec()).unwrap();
            if !bytes.is_empty() {
                web.remote.sent(slot, bytes.len());
                web.remote.space(slot)[..ACCEPTED.len()].copy_from_slice(ACCEPTED.as_bytes());
                web.remote.filled(slot, ACCEPTED.len());
                sent.push(bytes.split_once("\r\n\r\n").unwrap().1.to_string());
            }
        }
    }
    assert_eq!(sent[..3], ["{}", "{}", &message]);
}

/// A request under 2026-07-28 is cancelled by the end of its exchange: no notification goes out.
#[test]
fn a_modern_client_sends_no_notification() {
    use mcp_sansio::client::Request;
    let mut web = web(&PROFILE);
    let token = web.handle().send(&Request::list_tools()).unwrap();
    web.handle().cancel(token, None).unwrap();
    let mut nothing = |event: mcp_sansio::client::ClientEvent<'_>, _: &mut mcp_sansio::client::ClientHandle<'_, '_>| {
        panic!("{event:?}");
    };
    while web.run(0, &mut nothing, &mut ()) {}
    assert!(web.remote.is_idle());
    assert!((0..2).all(|slot| web.remote.pending(slot).is_empty()));
}

/// A request that is larger than the transport takes never fits, whatever waits.
#[test]
fn a_request_that_is_too_large_never_fits() {
    use mcp_sansio::client::{Client, Request, SendError};
    let mut memory = [[0; 2048]; 3];
    let [a, b, c] = memory.each_mut();
    let mut slots = [ExchangeSlot::new(&mut a[..], &mut b[..], &mut c[..])];
    let (mut texts, mut inbox, mut outbox) = ([0; 256], [0; 256], [0; 256]);
    let remote =
        HttpTransport::new("http://h", HttpClientConfig::DEFAULT, &mut texts, Store::none(), &mut slots).unwrap();
    let mut web = HttpClient::new(Client::growing(&PROFILE), remote, &mut inbox[..], &mut outbox[..]);
    web.client.connect_as(Revision::V2026_07_28);
    let long = "x".repeat(2000);
    let sent = web.handle().send(&Request::read(&long));
    assert_eq!(sent.map(drop), Err(SendError::FullNever));
    assert!(web.handle().send(&Request::read("x")).is_ok());
    assert_eq!(web.handle().send(&Request::read("y")).map(drop), Err(SendError::FullNow));
}

/// A header of the caller takes the place of an older one, if there is room for it.
#[test]
fn headers_within_their_room() {
    use mcp_sansio::memory::records::OVERHEAD;
    let url = "http://h";
    let of = |name: &str, value: &str| OVERHEAD + name.len() + 2 + value.len();
    let mut texts = std::vec![0; OVERHEAD + url.len() + of("a", "12") + of("b", "1")];
    let mut slots: [ExchangeSlot<'_>; 0] = [];
    let mut remote =
        HttpTransport::new(url, HttpClientConfig::DEFAULT, &mut texts[..], Store::none(), &mut slots[..]).unwrap();
    assert_eq!(remote.set_header("a", "12"), Ok(()));
    assert_eq!(remote.set_header("b", "12"), Err(HeaderError::Room));
    assert_eq!(remote.set_header("b", "1"), Ok(()));
    assert_eq!(remote.set_header("A", "123"), Err(HeaderError::Room));
    assert_eq!(remote.set_header("A", "34"), Ok(()));
    let headers: Vec<_> = remote.origin.headers().map(|header| String::from_utf8_lossy(header).to_string()).collect();
    assert_eq!(headers, ["b: 1", "A: 34"]);
    remote.remove_header("B");
    assert_eq!(remote.set_header("a", "123"), Ok(()));
}

/// A request that waits for another exchange fails as soon as that has gone on, if its head does not fit then.
#[test]
fn a_held_request_that_does_not_fit_fails_at_once() {
    let (mut texts, mut memory) = ([0; 8192], [[0; 4096]; 9]);
    let mut parts = memory.iter_mut();
    let mut slots: [ExchangeSlot<'_>; 3] = core::array::from_fn(|_| {
        let [a, b, c] = core::array::from_fn(|_| parts.next().unwrap());
        ExchangeSlot::new(&mut a[..], &mut b[..], &mut c[..])
    });
    let mut remote =
        HttpTransport::new("http://h", HttpClientConfig::DEFAULT, &mut texts[..], Store::none(), &mut slots[..])
            .unwrap();
    let send = |remote: &mut HttpTransport<'_>, message: &str| {
        write(remote, message).unwrap();
        let mut connected = 0;
        while let Some(SocketAction::Connect(slot)) = remote.next_action() {
            remote.connected(slot);
            connected += 1;
        }
        for slot in 0..3 {
            let n = remote.pending(slot).len();
            remote.sent(slot, n);
        }
        connected
    };
    let answer = |remote: &mut HttpTransport<'_>, slot: usize, bytes: &str| {
        remote.space(slot)[..bytes.len()].copy_from_slice(bytes.as_bytes());
        remote.filled(slot, bytes.len());
    };
    // A session without a stream of its own, so that both slots are for messages.
    remote.origin.config.listen = false;
    send(&mut remote, &legacy(0, "initialize"));
    answer(&mut remote, 0, &json("200 OK", "", &result(0)));
    assert!(matches!(remote.next_event(), Some(HttpClientEvent::Message { request: Some(0), .. })));
    assert!(remote.next_event().is_none());
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(send(&mut remote, initialized), 0);
    let held = legacy(1, "ping");
    write(&mut remote, &held).unwrap();
    assert!(remote.next_event().is_none() && remote.next_action().is_none());
    remote.set_header("x", &"y".repeat(4000)).unwrap();
    // The head is enough. The rest of the body has not come yet.
    answer(&mut remote, 0, "HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\n");
    assert!(matches!(
        remote.next_event(),
        Some(HttpClientEvent::Failed { request: Some(1), why: FailureReason::NoRoom, .. })
    ));
}
