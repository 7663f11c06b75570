//! Events by webhook to a receiver on this machine, over the HTTP client of the driver.
#![cfg(feature = "tls")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::{Extension, MessageSource, Service};
use mcp_sansio::sink::LineSink;
use mcp_sansio_auth::url::Reach;
use mcp_sansio_blocking::client::{FetchFailed, FetchLimits, FetchRequest, Fetcher};
use mcp_sansio_extensions::events::webhook::{
    DeliveryFailure, HasWebhooks, WebhookDelivery, WebhookLimits, WebhookSecret, Webhooks, complete, methods, turn,
};
use mcp_sansio_extensions::events::{EventOccurrence, EventType, Events, HasEvents, WebhookMethods, emit, extension};
use mcp_sansio_http::client::FailureReason;
use serde_json::{Value, json};

struct Door {
    events: Events<'static>,
    webhooks: Webhooks,
}

impl HasEvents for Door {
    const EVENTS: &'static [EventType<Self>] = &[EventType::new("bell.rung", "Somebody rings the bell")];
    const WEBHOOKS: Option<WebhookMethods<Self>> = Some(methods());

    fn events(&self) -> &Events<'static> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

impl HasWebhooks for Door {
    fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }
    fn webhooks_mut(&mut self) -> &mut Webhooks {
        &mut self.webhooks
    }
}

static EXTENSIONS: [Extension<Door>; 1] = [extension()];
const SERVICE: Service<'static, Door> = Service::new("door", "1.0").extend(&EXTENSIONS);

fn unix_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

fn secret() -> WebhookSecret {
    WebhookSecret::new(&[5; 24]).unwrap()
}

/// Sends a delivery as a server does.
fn post(fetcher: &Fetcher, delivery: &WebhookDelivery) -> Result<(u16, Vec<u8>), DeliveryFailure> {
    let headers = delivery.headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    match fetcher.fetch(&FetchRequest::post(&delivery.url, &delivery.body).headers(&headers)) {
        Ok(response) => Ok((response.status, response.body)),
        Err(FetchFailed::Exchange(FailureReason::TimedOut, _)) => Err(DeliveryFailure::Timeout),
        Err(_) => Err(DeliveryFailure::ConnectionRefused),
    }
}

/// A receiver: verifies, repeats challenges, and passes on the bodies. It sends elsewhere what has the number of a door.
fn receive(mut socket: TcpStream, bodies: &Sender<Value>) {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    let (head, body) = loop {
        let n = socket.read(&mut piece).unwrap();
        request.extend_from_slice(&piece[..n]);
        let text = String::from_utf8(request.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let len = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if len.is_none_or(|len: usize| body.len() >= len) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let header = |name: &str| {
        head.lines().find_map(|line| line.split_once(": ").filter(|(own, _)| own.eq_ignore_ascii_case(name)))
    };
    let [id, time, signature] = ["webhook-id", "webhook-timestamp", "webhook-signature"]
        .map(|name| header(name).map_or("", |(_, value)| value));
    secret().verify([id, time, signature], body.as_bytes(), unix_millis() / 1000).unwrap();
    assert!(header("X-MCP-Subscription-Id").is_some_and(|(_, id)| id.starts_with("sub_")));
    let body: Value = serde_json::from_str(&body).unwrap();
    let answer = json!({ "challenge": body["challenge"] }).to_string();
    let status = if body["data"]["door"] == 3 { "302 Found\r\nLocation: /elsewhere" } else { "200 OK" };
    write!(socket, "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{answer}", answer.len())
        .unwrap();
    bodies.send(body).unwrap();
}

// spec: E091 E103 E104 E105
#[test]
fn a_receiver_on_this_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks", listener.local_addr().unwrap());
    let (sender, bodies) = channel();
    thread::spawn(move || listener.incoming().for_each(|socket| receive(socket.unwrap(), &sender)));

    let limits = WebhookLimits { most: 4, share: 4, shortest: 60_000, longest: 600_000 };
    let webhooks = Webhooks::new(limits, |bytes| bytes.fill(9)).allow_http();
    let mut door = Door { events: Events::new(vec![0; 1024].leak(), 8, 77), webhooks };
    let mut server = Server::growing(MessageLimits::default());
    let now = unix_millis();
    server.now = now;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let delivery = json!({ "mode": "webhook", "url": url, "secret": secret().to_text() });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "events/subscribe",
        "params": { "name": "bell.rung", "delivery": delivery, "_meta": meta } });
    let mut out = LineSink::new(Vec::new());
    let source = MessageSource::LINE.principal(Some("alice"));
    let _ = SERVICE.dispatch_from(&source, &mut door, request.to_string().as_bytes(), &mut server, &mut out).unwrap();

    turn(&SERVICE, &mut door, now, |_, _| Ok(()));
    // An address of this machine is refused, unless the program allows it: no connection is made.
    let limits = FetchLimits::DEFAULT.time(60_000).redirects(0);
    let challenge = door.webhooks.next_delivery(now, now).unwrap();
    let public = Fetcher::new(limits).addresses(|address| Reach::of_address(address) == Reach::Public);
    assert_eq!(post(&public, &challenge), Err(DeliveryFailure::ConnectionRefused));
    let fetcher = Fetcher::new(limits).addresses(|address| address.is_loopback());
    let mut carry = |door: &mut Door, delivery: &WebhookDelivery| {
        let posted = post(&fetcher, delivery);
        let outcome = posted.as_ref().map(|(status, body)| (*status, body.as_slice())).map_err(|failure| *failure);
        door.webhooks.delivered(delivery.number, outcome, now);
        turn(&SERVICE, door, now, |door, token| {
            SERVICE.answer(door, token.as_custom(), &mut server, &mut out, complete).map(drop)
        });
        (bodies.recv().unwrap(), posted.unwrap().0)
    };
    assert_eq!(carry(&mut door, &challenge).0["type"], "verification");
    for number in 2..=3 {
        emit(&mut door, &EventOccurrence::new("bell.rung"), now, &mut |data| data.number("door", number)).unwrap();
    }
    turn(&SERVICE, &mut door, now, |_, _| Ok(()));
    let first = door.webhooks.next_delivery(now, now).unwrap();
    assert_eq!((carry(&mut door, &first).0["data"].clone(), first.url), (json!({ "door": 2 }), url));
    // A redirect is not followed: it is a failure, and tried again later.
    let second = door.webhooks.next_delivery(now, now).unwrap();
    assert_eq!(carry(&mut door, &second), (serde_json::from_slice(&second.body).unwrap(), 302));
    assert!(door.webhooks.next_delivery(now, now).is_none() && bodies.try_recv().is_err());
    let answer: Value = serde_json::from_slice(out.pending()).unwrap();
    assert!(answer["result"]["id"].as_str().unwrap().starts_with("sub_"), "{answer}");
}
