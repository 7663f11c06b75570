//! Receives the deliveries of webhooks, without I/O.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::client::Request;
use mcp_sansio::client::views::ViewError;
use mcp_sansio::json::{JsonKind, Object, Raw};
use mcp_sansio::server::Millis;
use mcp_sansio::sink::to_vec;

use super::WebhookSecret;
use crate::events::client::{EventError, EventFollower, FollowedEvent, Occurrence, cursor_of};

/// The longest body of a delivery in bytes.
pub const LONGEST_BODY: usize = 256 << 10;

/// The most events that wait to be taken.
const WAITING: usize = 256;

/// The time limit of `events/subscribe` in milliseconds: meanwhile the server asks the receiver.
const SUBSCRIBE_TIME: Millis = 60_000;

/// The parts of an HTTP request that count.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "what the extension says of a request")]
pub struct ReceivedDelivery<'d> {
    /// `webhook-id`, `webhook-timestamp` and `webhook-signature`; empty if the request has none.
    pub headers: [&'d str; 3],
    /// `X-MCP-Subscription-Id`.
    pub subscription: &'d str,
    /// The body, as it came.
    pub body: &'d [u8],
}

impl<'d> ReceivedDelivery<'d> {
    /// Takes the headers by their names, in small letters, and the body.
    pub fn new(header: impl Fn(&str) -> Option<&'d str>, body: &'d [u8]) -> Self {
        let get = |name| header(name).unwrap_or("");
        let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(get);
        ReceivedDelivery { headers, subscription: get("x-mcp-subscription-id"), body }
    }
}

/// The answer to a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body, `application/json`; mostly empty.
    pub body: String,
}

impl WebhookAnswer {
    const fn status(status: u16) -> Self {
        WebhookAnswer { status, body: String::new() }
    }
}

/// `deliveryStatus`: how the server fares with its deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryStatus {
    /// `active`: if `false`, the server had stopped, and goes on because of the request.
    pub active: bool,
    /// `lastDeliveryAt`, as ISO 8601.
    pub last_delivery_at: Option<String>,
    /// `lastError`, such as `timeout`.
    pub last_error: Option<String>,
    /// `failedSince`, as ISO 8601.
    pub failed_since: Option<String>,
    /// `throttled`: deliveries come later.
    pub throttled: bool,
    /// `retryAfterMs`.
    pub retry_after: Option<Millis>,
}

/// Follows one subscription by webhook: an event type with arguments, whose occurrences the server posts to an address.
///
/// 1. Send [`subscribe`](WebhookFollower::subscribe), and give the result to [`subscribed`](WebhookFollower::subscribed). Before the
///    result comes, the server asks at the address.
/// 2. Give each request at the address to [`receive`], take the events of its [`follower`](field@WebhookFollower::follower) and keep them
///    with the cursor, then send the answer: the server does not send again what is answered with 204.
/// 3. At [`refresh_at`](field@WebhookFollower::refresh_at) begin again with 1.
///
/// ```
/// use mcp_sansio::json::Raw;
/// use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent};
/// use mcp_sansio_extensions::events::webhook::{ReceivedDelivery, WebhookFollower, WebhookSecret, receive};
///
/// let secret = WebhookSecret::new(&[7; 32]).unwrap(); // secure random bytes
/// let bell = EventFollower::new("bell.rung").cursor_from(None);
/// let mut hooks = [WebhookFollower::new(bell, "https://example.com/hooks/1", secret)];
/// assert_eq!(hooks[0].subscribe().name, "events/subscribe");
/// hooks[0].subscribed(Raw::constant(r#"{"id":"sub_1","refreshBefore":"2026-07-28T10:00:00Z"}"#), 1_785_231_000_000)?;
///
/// let body = br#"{"eventId":"e1","name":"bell.rung","timestamp":"2026-07-28T09:30:00Z","data":{"door":2}}"#;
/// let signature = secret.sign("e1", 1_785_231_000, body); // made by the server
/// let headers = ["e1", "1785231000", &signature];
/// let delivery = ReceivedDelivery { headers, subscription: "sub_1", body };
/// let (answer, follower) = receive(&mut hooks, &delivery, 1_785_231_001_000);
/// assert_eq!(answer.status, 204);
/// assert!(matches!(follower.unwrap().follower.event(), Some(FollowedEvent::Occurred(_))));
/// # Ok::<(), mcp_sansio::client::views::ViewError>(())
/// ```
#[derive(Debug)]
pub struct WebhookFollower {
    /// Its events and its cursor. If the program cannot keep an occurrence, it [forgets](EventFollower::forget) it and answers with
    /// 503: the server sends it again.
    pub follower: EventFollower,
    url: String,
    secret: WebhookSecret,
    /// The secret before a change, until the server has the new one.
    old_secret: Option<WebhookSecret>,
    /// `null` for no end.
    ttl: Option<Option<Millis>>,
    id: Option<String>,
    /// The server has answered `events/subscribe`.
    is_subscribed: bool,
    /// The time to subscribe again, after half of the lifetime and a second at least, in milliseconds since the beginning of 1970;
    /// `None` if it has no end.
    pub refresh_at: Option<u64>,
    /// `deliveryStatus` of the last result, if it had one.
    pub status: Option<DeliveryStatus>,
    /// The reason why the server has ended the subscription, if it has. After -32023 and -32026 the event type may have changed: list
    /// the types again.
    pub ended: Option<EventError>,
    params: Vec<u8>,
}

impl WebhookFollower {
    /// Follows what `follower` says, with deliveries to this `https` address that are signed with this secret.
    #[must_use]
    pub fn new(follower: EventFollower, url: impl Into<String>, secret: WebhookSecret) -> Self {
        WebhookFollower {
            follower,
            url: url.into(),
            secret,
            old_secret: None,
            ttl: None,
            id: None,
            is_subscribed: false,
            refresh_at: None,
            status: None,
            ended: None,
            params: Vec::new(),
        }
    }

    /// Asks for a lifetime in milliseconds (`ttlMs`); `None` for one without an end. Default: the server's choice.
    #[doc(alias = "ttlMs")]
    #[must_use]
    pub fn ttl(self, millis: Option<Millis>) -> Self {
        WebhookFollower { ttl: Some(millis), ..self }
    }

    /// Changes the secret. Send [`subscribe`](WebhookFollower::subscribe) then. Until its result the old one is good too.
    pub const fn change_secret(&mut self, secret: WebhookSecret) {
        self.old_secret = Some(core::mem::replace(&mut self.secret, secret));
    }

    /// Returns the request that subscribes, and subscribes again.
    pub fn subscribe(&mut self) -> Request<'_> {
        let params = to_vec(|out| {
            let mut params = Object::open(out);
            self.follower.write_subscription(&mut params);
            self.follower.write_position(&mut params);
            let mut delivery = Object::open(params.key("delivery"));
            delivery.text("mode", "webhook");
            delivery.text("url", &self.url);
            delivery.text("secret", &self.secret.to_text());
            delivery.close();
            match self.ttl {
                Some(Some(millis)) => params.number("ttlMs", millis),
                Some(None) => params.fixed("ttlMs", "null"),
                None => {}
            }
            params.close();
        });
        // Memory for any JSON is there.
        self.params = params.unwrap_or_default();
        Request::raw("events/subscribe", Raw::parse(&self.params).ok()).timeout(SUBSCRIBE_TIME)
    }

    /// Returns the request that ends the subscription.
    pub fn unsubscribe(&mut self) -> Request<'_> {
        let params = to_vec(|out| {
            let mut params = Object::open(out);
            self.follower.write_subscription(&mut params);
            let mut delivery = Object::open(params.key("delivery"));
            delivery.text("url", &self.url);
            delivery.close();
            params.close();
        });
        self.params = params.unwrap_or_default();
        Request::raw("events/unsubscribe", Raw::parse(&self.params).ok())
    }

    /// Takes the result of [`subscribe`](WebhookFollower::subscribe). `now` is in milliseconds since the beginning of 1970.
    ///
    /// # Errors
    /// [`ViewError`] if it is no result of `events/subscribe`.
    pub fn subscribed(&mut self, result: Raw<'_>, now: u64) -> Result<(), ViewError> {
        let text = |object: Raw<'_>, name| Some(object.get(name)?.text()?.to_string());
        let id = text(result, "id").ok_or(ViewError::Missing("id"))?;
        self.refresh_at = match result.get("refreshBefore").filter(|end| end.kind() != JsonKind::Null) {
            Some(end) => {
                let end = end.text().and_then(|end| unix_millis(&end.to_string()));
                let left = end.ok_or(ViewError::Missing("refreshBefore"))?.saturating_sub(now);
                // Time is left to try again. Where the clock of the server is behind, the end is over before it begins.
                Some(now.saturating_add((left / 2).max(1_000)))
            }
            None => None,
        };
        self.status = result.get("deliveryStatus").map(|status| {
            let is_true = |name| status.get(name).and_then(|member| member.bool()) == Some(true);
            DeliveryStatus {
                active: is_true("active"),
                last_delivery_at: text(status, "lastDeliveryAt"),
                last_error: text(status, "lastError"),
                failed_since: text(status, "failedSince"),
                throttled: is_true("throttled"),
                retry_after: status.get("retryAfterMs").and_then(|pause| pause.u64()),
            }
        });
        (self.id, self.is_subscribed, self.old_secret, self.ended) = (Some(id), true, None, None);
        self.follower.advanced(result);
        Ok(())
    }

    /// Returns whether a delivery is signed with a secret of the subscription.
    fn verifies(&self, delivery: &ReceivedDelivery<'_>, now: u64) -> bool {
        let mut secrets = core::iter::once(&self.secret).chain(&self.old_secret);
        secrets.any(|secret| secret.verify(delivery.headers, delivery.body, now / 1000).is_ok())
    }

    /// Takes a delivery whose signature is good.
    fn deliver(&mut self, delivery: &ReceivedDelivery<'_>) -> WebhookAnswer {
        let Some(body) = Raw::parse(delivery.body.trim_ascii()).ok().filter(|body| body.kind() == JsonKind::Object)
        else {
            return WebhookAnswer::status(400);
        };
        let kind = body.get("type").map(|kind| kind.text().map(|kind| kind.to_string()).unwrap_or_default());
        if kind.as_deref() == Some("verification") {
            let Some(challenge) = body.get("challenge").filter(|challenge| challenge.kind() == JsonKind::String) else {
                return WebhookAnswer::status(400);
            };
            self.id.get_or_insert_with(|| delivery.subscription.to_string());
            return WebhookAnswer { status: 200, body: format!("{{\"challenge\":{challenge}}}") };
        }
        // The result of `events/subscribe` is not there yet, or the program does not take the events: the server sends it again.
        if !self.is_subscribed || self.follower.is_full() {
            return WebhookAnswer::status(503);
        }
        WebhookAnswer::status(match kind.as_deref() {
            Some("terminated") => {
                // Not by the word about a subscription before this one, which comes again.
                if self.follower.is_new(delivery.headers[0]) {
                    (self.ended, self.refresh_at) = (Some(EventError::of(body.get("error"))), None);
                }
                204
            }
            _ if self.ended.is_some() => 410,
            Some("gap") => {
                if self.follower.is_new(delivery.headers[0]) {
                    self.follower.passed_over(body);
                }
                204
            }
            None if self.follower.delivered(body, delivery.headers[0]) => 204,
            _ => 400,
        })
    }
}

/// Takes a request that has come to the address of subscriptions, with a `POST`: verifies its signature, answers the question whether the
/// address wants deliveries, and gives what it brings to its subscription, which is returned. A request that is not signed by the server
/// changes nothing. `now` is in milliseconds since the beginning of 1970.
pub fn receive<'f>(
    followers: &'f mut [WebhookFollower],
    delivery: &ReceivedDelivery<'_>,
    now: u64,
) -> (WebhookAnswer, Option<&'f mut WebhookFollower>) {
    if delivery.body.len() > LONGEST_BODY {
        return (WebhookAnswer::status(413), None);
    }
    // The first request comes before the subscription has its id.
    let is_of = |follower: &WebhookFollower| follower.id.as_deref().is_none_or(|id| id == delivery.subscription);
    let found = followers.iter_mut().find(|follower| is_of(follower) && follower.verifies(delivery, now));
    match found {
        Some(follower) => (follower.deliver(delivery), Some(follower)),
        None => (WebhookAnswer::status(401), None),
    }
}

impl EventFollower {
    /// Returns whether too many events wait to be taken.
    fn is_full(&self) -> bool {
        self.events.len() >= WAITING
    }

    /// Takes an occurrence with this id. Returns `false` if it is of another event type, or malformed.
    fn delivered(&mut self, body: Raw<'_>, id: &str) -> bool {
        let is_own = Occurrence::of(body).is_some_and(|event| event.name == self.name && event.event_id == id);
        // One that comes again has an older cursor.
        if is_own && self.occurred(body) {
            self.advanced(body);
        }
        is_own
    }

    /// Takes a gap with its new cursor.
    fn passed_over(&mut self, gap: Raw<'_>) {
        self.events.push_back((FollowedEvent::Gap, None));
        self.advanced(gap);
    }

    /// Takes `cursor`, and `truncated` of a message that has it.
    fn advanced(&mut self, message: Raw<'_>) {
        self.gap(message);
        if let cursor @ Some(_) = cursor_of(message) {
            self.moved(cursor);
        }
    }
}

/// Returns a time of ISO 8601, from 1970 to 9999, in milliseconds since the beginning of 1970.
fn unix_millis(text: &str) -> Option<u64> {
    let number = |text: &str, most: u64| text.parse::<u64>().ok().filter(|number| *number <= most);
    let (date, time) = text.split_once(['T', 't'])?;
    let (time, zone) = time.split_at_checked(time.find(['Z', 'z', '+', '-'])?)?;
    let mut date = date.splitn(3, '-');
    let year = number(date.next()?, 9999)?;
    let (month, day) = (number(date.next()?, 12)?.checked_sub(1)?, number(date.next()?, 31)?.checked_sub(1)?);
    // Years begin in March here, so that the day that leap years have is the last one. An era has 400 years.
    let (year, month) = if month < 2 { (year.checked_sub(1)?, month + 10) } else { (year, month - 2) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let mut time = time.splitn(3, ':');
    let minutes = number(time.next()?, 24)? * 60 + number(time.next()?, 59)?;
    let seconds = time.next()?;
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let millis = number(&format!("{fraction}00").chars().take(3).collect::<String>(), 999)?;
    let zone = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        (sign, zone) => {
            let (hours, minutes) = zone.split_once(':')?;
            let minutes = i64::try_from(number(hours, 23)? * 60 + number(minutes, 59)?).ok()?;
            if sign == "+" { minutes } else { -minutes }
        }
    };
    let minutes = (days.checked_sub(719_468)? * 1_440 + minutes).checked_add_signed(-zone)?;
    Some((minutes * 60 + number(seconds, 60)?) * 1_000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::date::iso_8601;

    #[test]
    fn times_of_iso_8601() {
        for millis in [0, 951_782_399_000, 951_782_400_000, 951_868_800_001, 1_785_231_000_120, 253_402_300_799_999] {
            assert_eq!(unix_millis(iso_8601(millis).as_str()), Some(millis), "{}", iso_8601(millis).as_str());
        }
        for (text, millis) in [
            ("2026-07-28T09:30:00Z", 1_785_231_000_000),
            ("2026-07-28t11:30:00.5+02:00", 1_785_231_000_500),
            ("2026-07-28T05:00:00.123456-04:30", 1_785_231_000_123),
        ] {
            assert_eq!(unix_millis(text), Some(millis), "{text}");
        }
        for wrong in [
            "",
            "2026-07-28",
            "2026-07-28T09:30Z",
            "2026-07-28T09:30:00",
            "2026-00-28T09:30:00Z",
            "2026-13-28T09:30:00Z",
            "2026-07-00T09:30:00Z",
            "1969-07-28T09:30:00Z",
            "0000-01-01T00:00:00Z",
            "20260-07-28T09:30:00Z",
            "1970-01-01T00:00:00+01:00",
            "2026-07-28T09:30:00Zx",
            "2026-07-28T09:30:00+1",
            "2026-07-28T09:30:0é0Z",
            "99999999999999999999-07-28T09:30:00Z",
        ] {
            assert_eq!(unix_millis(wrong), None, "{wrong}");
        }
    }
}
