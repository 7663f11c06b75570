//! The server of `events.py`: `conformance-server --port N --events public`. Its tools move it, so that nothing happens by itself.
//! The token of a request is the name of its user. Webhooks go to public addresses, and with `--events loopback` to this machine alone,
//! also without TLS.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::server::Millis;
use mcp_sansio::service::{Call, Extension, HandlerResult, Service, Tool};
use mcp_sansio_auth::url::Reach;
use mcp_sansio_blocking::client::{FetchFailed, FetchLimits, FetchRequest, Fetcher};
use mcp_sansio_blocking::http::{Access, App, Endpoint, HttpServer, RequestHead};
use mcp_sansio_blocking::{LateSender, channel};
use mcp_sansio_extensions::events::webhook::{
    self, DeliveryFailure, HasWebhooks, WebhookDelivery, WebhookLimits, Webhooks,
};
use mcp_sansio_extensions::events::{
    EventOccurrence, EventSubscription, EventType, Events, FORBIDDEN, HasEvents, LIST_CHANGED, StreamSlot,
    WebhookMethods, deliver, emit, end_stream, extension, turn,
};
use mcp_sansio_http::client::FailureReason;

/// The occurrences that are kept.
const KEPT: usize = 8;

/// The most streams and webhooks, and those of one user.
const MOST: usize = 16;
const SHARE: usize = 8;

struct House {
    events: Events<'static>,
    webhooks: Webhooks,
    fetcher: Arc<Fetcher>,
    late: LateSender<House>,
    now: Millis,
    /// Nobody may hear the bell.
    is_shut: bool,
    has_bell: bool,
    /// The event types have changed, which is to be published.
    has_changed: bool,
}

impl HasEvents for House {
    const EVENTS: &'static [EventType<Self>] = &[
        EventType::new("bell.rung", "Somebody rings at a door")
            .input_schema(r#"{"type":"object","properties":{"door":{"type":"integer"}}}"#)
            .payload_schema(r#"{"type":"object","properties":{"door":{"type":"integer"}},"required":["door"]}"#)
            .offered(|house: &House| house.has_bell)
            .check(check)
            .matches(|_, subscription, data| {
                door(subscription.arguments).is_none_or(|wanted| door(data) == Some(wanted))
            }),
        EventType::new("weather.changed", "Has no history, and never happens").source(|_, _, found| {
            found.end("");
            Ok(())
        }),
    ];
    const STREAMS: bool = true;
    const LIST_CHANGED: bool = true;
    const WEBHOOKS: Option<WebhookMethods<Self>> = Some(webhook::methods());

    fn events(&self) -> &Events<'static> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

impl HasWebhooks for House {
    fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }
    fn webhooks_mut(&mut self) -> &mut Webhooks {
        &mut self.webhooks
    }
}

fn door(object: Raw<'_>) -> Option<u64> {
    object.get("door")?.u64()
}

fn check(house: &House, subscription: &EventSubscription<'_>) -> Result<(), RpcError<'static>> {
    match subscription.arguments.get("door") {
        Some(number) if number.u64().is_none() => Err(RpcError::invalid_params("Invalid params: door is no number")),
        _ if house.is_shut => Err(FORBIDDEN),
        _ => Ok(()),
    }
}

fn ring(house: &mut House, call: &mut Call<'_>) -> HandlerResult {
    let (arguments, now) = (call.arguments(), call.now());
    let id = arguments.get("id").and_then(|id| id.text()?.plain()).unwrap_or_default();
    let mut event = EventOccurrence::new("bell.rung").id(id);
    if let Some(age) = arguments.get("age").and_then(|age| age.u64()) {
        event = event.timestamp(unix_millis().saturating_sub(age));
    }
    let door = door(arguments).unwrap_or(1);
    emit(house, &event, now, &mut |data| data.number("door", door)).map_err(|_| "no room")?;
    call.text("rung")
}

static TOOLS: [Tool<House>; 3] = [
    Tool::new("ring", "Rings at the door `door`, as the occurrence `id`, `age` milliseconds ago", ring),
    Tool::new("shut", "Says whether nobody may hear the bell: `now`", |house, call| {
        house.is_shut = call.arguments().get("now").and_then(|now| now.bool()) == Some(true);
        house.events.wake();
        call.text("done")
    }),
    Tool::new("mount", "Says whether there is a bell: `now`", |house, call| {
        house.has_bell = call.arguments().get("now").and_then(|now| now.bool()) == Some(true);
        house.has_changed = true;
        house.events.wake();
        call.text("done")
    }),
];
static EXTENSIONS: [Extension<House>; 1] = [extension()];
static SERVICE: Service<'static, House> =
    Service::new("events", env!("CARGO_PKG_VERSION")).tools(&TOOLS).extend(&EXTENSIONS).on_cancel(end_stream);

fn unix_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Returns the server's user of a request: the name is its token.
fn authorize<'a>(head: &RequestHead<'_>) -> Access<'a> {
    let token = head.text("authorization").and_then(|header| header.strip_prefix("Bearer "));
    match mcp_sansio_blocking::http::Grant::to(token) {
        Ok(grant) => Access::GrantedTo(grant),
        Err(_) => Access::Denied { status: 401, challenge: None },
    }
}

/// Does what is due after each turn.
fn go_on(app: &mut App<'_, House>, endpoint: &mut Endpoint<'_>, now: Millis) -> Option<Millis> {
    app.state.now = now;
    if core::mem::take(&mut app.state.has_changed) {
        endpoint.publish(LIST_CHANGED);
    }
    let service = app.service;
    let streams = turn(app.state, now, |state, token| {
        endpoint.answer(&mut App::new(service, state), token.as_custom(), deliver).map(drop)
    });
    let hooks = webhook::turn(service, app.state, now, |state, token| {
        endpoint.answer(&mut App::new(service, state), token.as_custom(), webhook::complete).map(drop)
    });
    while let Some(delivery) = app.state.webhooks.next_delivery(now, unix_millis()) {
        let (fetcher, late) = (app.state.fetcher.clone(), app.state.late.clone());
        thread::spawn(move || {
            let outcome = post(&fetcher, &delivery);
            // The server may have ended.
            let _ = late.update(move |house| {
                let outcome = outcome.as_ref().map(|(status, body)| (*status, body.as_slice()));
                house.webhooks.delivered(delivery.number, outcome.map_err(|failure| *failure), house.now);
            });
        });
    }
    streams.into_iter().chain(hooks).min()
}

fn post(fetcher: &Fetcher, delivery: &WebhookDelivery) -> Result<(u16, Vec<u8>), DeliveryFailure> {
    let headers = delivery.headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    match fetcher.fetch(&FetchRequest::post(&delivery.url, &delivery.body).headers(&headers)) {
        Ok(response) => Ok((response.status, response.body)),
        Err(FetchFailed::Exchange(FailureReason::TimedOut, _)) => Err(DeliveryFailure::Timeout),
        Err(_) => Err(DeliveryFailure::ConnectionRefused),
    }
}

/// Serves at a port, with webhooks to `reach`.
pub(crate) fn serve(port: u16, reach: &str) -> io::Result<()> {
    let limits = WebhookLimits { most: MOST, share: SHARE, shortest: 60_000, longest: 600_000 };
    let webhooks = Webhooks::new(limits, |bytes| getrandom::fill(bytes).expect("the system has random bytes"));
    let fetcher = Fetcher::new(FetchLimits::DEFAULT.time(5_000).redirects(0));
    let (webhooks, fetcher) = match reach {
        "loopback" => (webhooks.allow_http(), fetcher.addresses(|address| address.is_loopback())),
        _ => (webhooks, fetcher.addresses(|address| Reach::of_address(address) == Reach::Public)),
    };
    let memory = || &mut *vec![0; 4096].leak();
    let mut events =
        Events::new(memory(), KEPT, unix_millis()).streams(vec![StreamSlot::FREE; MOST].leak(), memory(), SHARE);
    events.set_poll_interval(1_000);
    events.set_heartbeat(1_000);
    let (late, receiver) = channel();
    let mut house = House {
        events,
        webhooks,
        fetcher: Arc::new(fetcher),
        late,
        now: 0,
        is_shut: false,
        has_bell: true,
        has_changed: false,
    };
    let server = HttpServer::bind(("127.0.0.1", port))?;
    crate::stop_on_signals(&server)?;
    server.authorize(&authorize).tick(go_on).late(receiver).serve(&SERVICE, &mut house)
}
