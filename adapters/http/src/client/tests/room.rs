//! Too little room: slots, lent storage, heads.

use super::*;

/// Messages that wait for a slot do not stop the deadlines of others.
#[test]
fn time_goes_on_while_all_slots_are_taken() {
    use mcp_sansio::client::{ClientEvent as Told, ClientHandle, Request, SubscriptionFilter};
    let mut web = web(&PROFILE);
    let first = web.link().send(&Request::list_tools()).unwrap();
    web.link().send(&Request::list_prompts()).unwrap();
    web.link().cancel(first, None).unwrap();
    // This message is before the other in the queue.
    let listen = web.client().listen(&SubscriptionFilter::new().tools()).unwrap();
    let mut told = Vec::new();
    let mut handler = |event: Told<'_>, _: &mut ClientHandle<'_, '_>| told.push(format!("{event:?}"));
    while web.run(0, &mut handler, &mut ()) {}
    web.link().send(&Request::list_resources()).unwrap();
    while web.run(1, &mut handler, &mut ()) {}
    assert!(web.next_deadline().is_some_and(|due| due <= 5_000));
    while web.run(5_001, &mut handler, &mut ()) {}
    assert!(told.iter().any(|told| told.contains("TimedOut")), "{told:?}");
    assert!(web.engine().is_open(listen));
}

#[test]
fn nothing_begins_while_it_is_held() {
    let mut remote = HttpTransport::growing("http://h/mcp", HttpClientConfig::DEFAULT, 1).unwrap();
    remote.hold(true);
    assert_eq!((remote.held(), remote.begin(MessageKind::Request)), (true, Err(FullError::Now)));
    remote.hold(false);
    assert_eq!((remote.held(), remote.begin(MessageKind::Request)), (false, Ok(())));
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
        mcp_sansio::sink::whole(remote, MessageKind::Request, |out| out.put(message.as_bytes())).unwrap();
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
    let large = mcp_sansio::sink::whole(&mut remote, MessageKind::Request, |out| out.put(&[b' '; 1025]));
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
    let message = mcp_sansio::sink::whole(&mut remote, MessageKind::Notification, |out| out.put(b"{}"));
    assert_eq!((message, remote.capacity()), (Err(FullError::Never), 0));
    remote.begin(MessageKind::Notification).unwrap();
    remote.end();
    assert!(matches!(
        remote.next_event(),
        Some(HttpClientEvent::Failed { request: None, why: FailureReason::NoRoom, .. })
    ));
    remote.origin.listening = ListenState::Opening;
    assert!(remote.next_event().is_none());
    assert_eq!(remote.listening(), ListenState::No);
}
