//! The subscriptions by webhook, and the deliveries that are due.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use mcp_sansio::error::RpcError;
use mcp_sansio::json::{JsonKind, Raw, Text};
use mcp_sansio::server::{Millis, RequestToken, is_same_secret};
use sha2::{Digest, Sha256};

use crate::events::source::{Cursor, EventSubscription, NO_ARGUMENTS};
use crate::events::subscribers::TOO_MANY;
use crate::events::webhook::signature::WebhookSecret;
#[cfg(test)]
use crate::shared::looks;

/// The times between the attempts to deliver, in milliseconds: after the last one it is given up.
const PAUSES: [Millis; 4] = [10_000, 30_000, 120_000, 480_000];

/// Both secrets sign for so long after a change, in milliseconds.
const GRACE: Millis = 300_000;

/// An endpoint may take so long to agree, in milliseconds.
const QUESTION_TIME: Millis = 60_000;

/// The most questions to one host at a time, of which each user has one.
const QUESTIONS: usize = 4;

/// The longest body, in bytes.
pub(crate) const LONGEST_BODY: usize = 256 << 10;

/// Fills bytes with random ones.
type Random = Box<dyn FnMut(&mut [u8]) + Send>;

/// Limits of [`Webhooks`].
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "all limits are the choice of the program")]
pub struct WebhookLimits {
    /// The most subscriptions.
    pub most: usize,
    /// The most of one user.
    pub share: usize,
    /// The shortest lifetime that is granted, in milliseconds.
    pub shortest: Millis,
    /// The longest, which is also granted to those that ask for none, in milliseconds. Subscriptions are not kept over a start of the
    /// program: minutes to an hour.
    pub longest: Millis,
}

/// The kind of failure of a delivery: the client of the subscription hears of it, and of nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeliveryFailure {
    /// There was no connection, or its address is not allowed.
    ConnectionRefused,
    /// The time was over.
    Timeout,
    /// TLS failed.
    Tls,
    /// The status was 400 to 499.
    Http4xx,
    /// Any other status.
    Http5xx,
    /// The endpoint did not repeat the challenge.
    ChallengeFailed,
}

impl DeliveryFailure {
    const fn data(self) -> &'static str {
        match self {
            DeliveryFailure::ConnectionRefused => r#"{"reason":"connection_refused"}"#,
            DeliveryFailure::Timeout => r#"{"reason":"timeout"}"#,
            DeliveryFailure::Tls => r#"{"reason":"tls_error"}"#,
            DeliveryFailure::Http4xx => r#"{"reason":"http_4xx"}"#,
            DeliveryFailure::Http5xx => r#"{"reason":"http_5xx"}"#,
            DeliveryFailure::ChallengeFailed => r#"{"reason":"challenge_failed"}"#,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.data().split('"').nth(3).unwrap_or_default()
    }

    /// Returns the error of `events/subscribe`.
    pub(crate) const fn error(self) -> RpcError<'static> {
        RpcError::new(-32027, "CallbackEndpointError").with_data(Raw::constant(self.data()))
    }
}

/// A POST that is due. Send it within some seconds, follow no redirect, and connect only to a public address, which is looked at for each
/// POST anew; then call [`Webhooks::delivered`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WebhookDelivery {
    /// The number, for [`Webhooks::delivered`].
    pub number: u64,
    /// The address, with `https`.
    pub url: String,
    /// The headers: `Content-Type`, the signature, and the id of the subscription.
    pub headers: [(&'static str, String); 5],
    /// The body.
    pub body: Vec<u8>,
}

/// The state of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookState {
    /// The endpoint is asked whether it wants deliveries; the request waits.
    Verifying(RequestToken),
    /// It has answered, and the request is to be answered.
    Verified(RequestToken, Result<(), DeliveryFailure>),
    Active,
    /// The server has ended it; only the word about it is to be delivered.
    Ended,
}

/// A POST that was not acknowledged yet.
#[derive(Debug)]
pub(crate) struct Pending {
    /// `webhook-id`
    id: String,
    body: Vec<u8>,
    /// The cursor when it is acknowledged or given up.
    then: Cursor,
    attempts: usize,
    at: Millis,
    is_sent: bool,
}

/// A subscription.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) id: String,
    pub(crate) principal: String,
    pub(crate) url: String,
    /// The host of the URL.
    host: String,
    pub(crate) event: u32,
    /// The arguments as they came, and in a form in which equal ones are the same text.
    pub(crate) arguments: Vec<u8>,
    canonical: String,
    secret: WebhookSecret,
    /// The secret before, and until when it signs too.
    old_secret: Option<(WebhookSecret, Millis)>,
    pub(crate) until: Millis,
    /// Everything up to it was acknowledged or given up.
    pub(crate) cursor: Cursor,
    pub(crate) not_before: u64,
    pub(crate) truncated: bool,
    pub(crate) state: HookState,
    pub(crate) pending: Option<Pending>,
    nonce: String,
    pub(crate) look: Millis,
    pub(crate) last_delivery: Option<Millis>,
    pub(crate) last_error: Option<DeliveryFailure>,
    pub(crate) failed_since: Option<Millis>,
}

impl Hook {
    pub(crate) fn subscription(&self) -> EventSubscription<'_> {
        let arguments = Raw::parse(&self.arguments).unwrap_or(NO_ARGUMENTS);
        EventSubscription { arguments, principal: Some(&self.principal) }
    }

    /// Ends the question to its endpoint, if it is not answered yet: its request gets this failure. Returns whether there was one.
    pub(crate) fn give_up(&mut self, failure: DeliveryFailure) -> bool {
        let (HookState::Verifying(token) | HookState::Verified(token, _)) = self.state else { return false };
        (self.state, self.pending) = (HookState::Verified(token, Err(failure)), None);
        true
    }

    /// Returns the time at which it ends, or the question to its endpoint.
    pub(crate) fn end(&self) -> Millis {
        let asked = self.pending.as_ref().filter(|_| matches!(self.state, HookState::Verifying(_)));
        asked.map_or(self.until, |pending| self.until.min(pending.at.saturating_add(QUESTION_TIME)))
    }

    fn is_verified(&self) -> bool {
        matches!(self.state, HookState::Active | HookState::Ended)
    }
}

/// Returns the host of a URL, without its port and in one form; `None` if host or port is malformed. Numbers are an address of IPv4 in
/// the usual form: resolvers take `127.1`, `0x7f000001` and 2130706433 as one too.
fn host(url: &str) -> Option<String> {
    let authority = url.split(['/', '?']).nth(2)?;
    let has_port = |(_, port): &(&str, &str)| !port.ends_with(']');
    let (host, port) = authority.rsplit_once(':').filter(has_port).unwrap_or((authority, "443"));
    port.parse::<u16>().ok().filter(|number| *number > 0 && !port.starts_with('+'))?;
    if let Some(address) = host.strip_prefix('[') {
        return address.strip_suffix(']')?.parse().ok().map(|address: Ipv6Addr| address.to_string());
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
    let has_letter = host.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_lowercase()));
    (is_name && has_letter || host.parse::<Ipv4Addr>().is_ok()).then_some(host)
}

/// A request for a subscription.
pub(crate) struct Subscribe<'s> {
    pub(crate) url: &'s str,
    pub(crate) secret: WebhookSecret,
    pub(crate) event: u32,
    pub(crate) name: &'s str,
    pub(crate) subscription: EventSubscription<'s>,
    pub(crate) until: Millis,
}

/// The subscriptions by webhook of a program. It grows up to its [limits](WebhookLimits), and lives as long as the process: clients subscribe
/// again.
pub struct Webhooks {
    /// By the number of the last delivery of each, or of its beginning.
    pub(crate) hooks: BTreeMap<u64, Hook>,
    /// The deliveries that were due in the last turn, the first one last.
    due: Vec<u64>,
    /// The subscription whose request is being answered.
    pub(crate) answering: u64,
    pub(crate) limits: WebhookLimits,
    random: Random,
    numbers: u64,
    is_http_allowed: bool,
}

impl Webhooks {
    /// Makes an empty table. `random` fills challenges with secure random bytes.
    #[must_use]
    pub fn new(limits: WebhookLimits, random: impl FnMut(&mut [u8]) + Send + 'static) -> Self {
        Webhooks {
            hooks: BTreeMap::new(),
            due: Vec::new(),
            answering: 0,
            limits,
            random: Box::new(random),
            numbers: 0,
            is_http_allowed: false,
        }
    }

    /// Accepts addresses with `http`, for tests on one machine. The extension forbids it.
    #[must_use]
    pub fn allow_http(self) -> Self {
        Webhooks { is_http_allowed: true, ..self }
    }

    /// Returns whether subscriptions may have this URL: `https`, a host, perhaps a port, no user, no fragment, at most 2,048
    /// bytes.
    pub(crate) fn accepts(&self, url: &str) -> bool {
        let has_scheme = url.starts_with("https://") || self.is_http_allowed && url.starts_with("http://");
        let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !b"#\\\"<>^`".contains(&byte));
        has_scheme && is_plain && url.len() <= 2048 && host(url).is_some()
    }

    /// Returns all subscriptions. Call it once in a turn or a request, not for each delivery.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Hook)> + Clone {
        self.hooks.iter().map(|(number, hook)| {
            #[cfg(test)]
            looks::add_one();
            (*number, hook)
        })
    }

    /// Returns the number of the subscription with this key.
    pub(crate) fn find(&self, url: &str, event: u32, subscription: &EventSubscription<'_>) -> Option<u64> {
        let arguments = canonical(subscription.arguments);
        let is_it = |hook: &Hook| {
            hook.state != HookState::Ended
                && Some(hook.principal.as_str()) == subscription.principal
                && (hook.url.as_str(), hook.event) == (url, event)
                && hook.canonical == arguments
        };
        self.all().find(|(_, hook)| is_it(hook)).map(|(number, _)| number)
    }

    /// Checks the limits for a new subscription.
    pub(crate) fn check_room(&self, principal: &str) -> Result<(), RpcError<'static>> {
        let own = self.all().filter(|(_, hook)| hook.principal == principal).count();
        if self.hooks.len() >= self.limits.most || own >= self.limits.share { Err(TOO_MANY) } else { Ok(()) }
    }

    /// Returns whether the host of a URL is being asked for another subscription of this user, or for many of others.
    pub(crate) fn is_asking(&self, url: &str, principal: &str) -> bool {
        let host = host(url).unwrap_or_default();
        let is_asked = |hook: &Hook| !hook.is_verified() && hook.host == host;
        let mut users = self.all().filter(|(_, hook)| is_asked(hook)).map(|(_, hook)| hook.principal.as_str());
        users.clone().count() >= QUESTIONS || users.any(|user| user == principal)
    }

    /// Renews a subscription.
    pub(crate) fn renew(&mut self, number: u64, wanted: &Subscribe<'_>, now: Millis) {
        let Some(hook) = self.hooks.get_mut(&number) else { return };
        hook.until = wanted.until;
        if hook.secret != wanted.secret {
            hook.old_secret = Some((core::mem::replace(&mut hook.secret, wanted.secret), now.saturating_add(GRACE)));
        }
        if let Some(pending) = &mut hook.pending {
            // The client is there: it is tried at once.
            pending.at = now;
        }
    }

    /// Adds a subscription. Returns its number, unless it waits for the answer of its endpoint: the user has no other one with the
    /// same URL.
    pub(crate) fn add(
        &mut self,
        wanted: &Subscribe<'_>,
        (cursor, truncated): (Cursor, bool),
        not_before: u64,
        token: RequestToken,
        now: Millis,
    ) -> Option<u64> {
        let principal = wanted.subscription.principal.unwrap_or_default();
        let is_known =
            self.all().any(|(_, hook)| hook.is_verified() && hook.principal == principal && hook.url == wanted.url);
        let canonical = canonical(wanted.subscription.arguments);
        let digest = Sha256::digest(format!("{principal:?}{:?}{:?}{canonical}", wanted.url, wanted.name));
        let nonce = self.nonce();
        let body = format!(r#"{{"type":"verification","challenge":"{nonce}"}}"#);
        let number = self.insert(Hook {
            id: format!("sub_{}", hex(digest.get(..16).unwrap_or_default())),
            principal: principal.to_string(),
            url: wanted.url.to_string(),
            host: host(wanted.url).unwrap_or_default(),
            event: wanted.event,
            arguments: wanted.subscription.arguments.as_bytes().to_vec(),
            canonical,
            secret: wanted.secret,
            old_secret: None,
            until: wanted.until,
            cursor,
            not_before,
            truncated,
            state: if is_known { HookState::Active } else { HookState::Verifying(token) },
            pending: None,
            look: 0,
            last_delivery: None,
            last_error: None,
            failed_since: None,
            nonce,
        });
        if !is_known {
            self.control(number, "verification", body.into_bytes(), cursor, now);
        }
        is_known.then_some(number)
    }

    fn insert(&mut self, hook: Hook) -> u64 {
        self.numbers += 1;
        self.hooks.insert(self.numbers, hook);
        self.numbers
    }

    /// Returns a new text that cannot be guessed.
    pub(crate) fn nonce(&mut self) -> String {
        let mut bytes = [0; 16];
        (self.random)(&mut bytes);
        hex(&bytes)
    }

    /// Has a control envelope delivered for a subscription.
    pub(crate) fn control(&mut self, number: u64, kind: &str, body: Vec<u8>, then: Cursor, now: Millis) {
        let id = format!("msg_{kind}_{}", self.nonce());
        self.deliver(number, (id, body), then, now);
    }

    /// Has a body delivered for a subscription, which gets a new number.
    pub(crate) fn deliver(&mut self, number: u64, (id, body): (String, Vec<u8>), then: Cursor, now: Millis) {
        if let Some(mut hook) = self.hooks.remove(&number) {
            hook.pending = Some(Pending { id, body, then, attempts: 0, at: now, is_sent: false });
            self.insert(hook);
        }
    }

    /// Returns a delivery that was due in the last [`turn`](super::turn), once: questions to endpoints first, then the one that waits for
    /// longest. `unix_millis` is the time in milliseconds since the beginning of 1970.
    pub fn next_delivery(&mut self, now: Millis, unix_millis: u64) -> Option<WebhookDelivery> {
        let is_there = |number: &u64| self.hooks.get(number).is_some_and(|hook| hook.pending.is_some());
        let number = core::iter::from_fn(|| self.due.pop()).find(is_there)?;
        let hook = self.hooks.get_mut(&number)?;
        let pending = hook.pending.as_mut()?;
        pending.is_sent = true;
        pending.attempts += 1;
        let seconds = unix_millis / 1000;
        let mut signature = hook.secret.sign(&pending.id, seconds, &pending.body);
        if let Some((old, _)) = hook.old_secret.filter(|(_, until)| now < *until) {
            signature = format!("{signature} {}", old.sign(&pending.id, seconds, &pending.body));
        }
        Some(WebhookDelivery {
            number,
            url: hook.url.clone(),
            headers: [
                ("Content-Type", "application/json".into()),
                ("webhook-id", pending.id.clone()),
                ("webhook-timestamp", seconds.to_string()),
                ("webhook-signature", signature),
                ("X-MCP-Subscription-Id", hook.id.clone()),
            ],
            body: pending.body.clone(),
        })
    }

    /// Notes the outcome of a delivery: the HTTP status and the body of the response, or the reason without a response.
    pub fn delivered(&mut self, number: u64, outcome: Result<(u16, &[u8]), DeliveryFailure>, now: Millis) {
        let Some(hook) = self.hooks.get_mut(&number) else { return };
        let Some(mut pending) = hook.pending.take_if(|pending| pending.is_sent) else { return };
        if let HookState::Verifying(token) = hook.state {
            let answered = outcome.and_then(|(status, body)| match Raw::parse(body) {
                Ok(body) if (200..300).contains(&status) && repeats(body, &hook.nonce) => Ok(()),
                _ => Err(DeliveryFailure::ChallengeFailed),
            });
            hook.state = HookState::Verified(token, answered);
            return;
        }
        let (failure, is_final) = match outcome {
            Ok((200..=299, _)) => (None, true),
            // The endpoint does not want this one.
            Ok((410 | 413, _)) => (Some(DeliveryFailure::Http4xx), true),
            Ok((400..=499, _)) => (Some(DeliveryFailure::Http4xx), false),
            Ok(_) => (Some(DeliveryFailure::Http5xx), false),
            Err(failure) => (Some(failure), false),
        };
        hook.last_error = failure;
        match failure {
            None => (hook.last_delivery, hook.failed_since) = (Some(now), None),
            Some(_) => {
                hook.failed_since.get_or_insert(now);
            }
        }
        match PAUSES.get(pending.attempts - 1) {
            Some(pause) if !is_final => {
                (pending.at, pending.is_sent) = (now.saturating_add(*pause), false);
                hook.pending = Some(pending);
            }
            _ if hook.state == HookState::Ended => {
                self.hooks.remove(&number);
            }
            _ => (hook.cursor, hook.look) = (pending.then, 0),
        }
    }

    /// Finds the deliveries that are due. Returns the time of the next delivery, look or end.
    pub(crate) fn find_due(&mut self, now: Millis) -> Option<Millis> {
        let is_due = |pending: &&Pending| !pending.is_sent && pending.at <= now;
        let order = |hook: &Hook| Some((hook.is_verified(), hook.pending.as_ref().filter(is_due)?.at));
        let mut all: Vec<_> = self.all().filter_map(|(number, hook)| Some((order(hook)?, number))).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        self.due = all.into_iter().map(|(_, number)| number).collect();
        let due = |hook: &Hook| match &hook.pending {
            Some(pending) if pending.is_sent => hook.end(),
            Some(pending) => pending.at.min(hook.until),
            None => hook.look.min(hook.until),
        };
        self.all().map(|(_, hook)| due(hook)).min()
    }
}

mcp_sansio::debug_fields!(impl for Webhooks { limits });

/// Compares the challenge of an answer.
fn repeats(body: Raw<'_>, nonce: &str) -> bool {
    let challenge = body.get("challenge").and_then(|challenge| challenge.text()?.plain());
    challenge.is_some_and(|challenge| is_same_secret(challenge.as_bytes(), nonce.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a text that is the same for equal JSON values: members are sorted, and numbers and strings have one form.
fn canonical(value: Raw<'_>) -> String {
    let text = |text: Text<'_>| text.chars().map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>();
    match value.kind() {
        // Not by `Debug` of the whole: it would double the backslashes of what is within, at each level.
        JsonKind::Object => {
            let mut members: Vec<_> = value.members().map(|(key, value)| (text(key), canonical(value))).collect();
            members.sort();
            members.iter().fold(String::from("{"), |all, (key, value)| all + &format!("{key:?}:{value},")) + "}"
        }
        JsonKind::Array => value.items().fold(String::from("["), |all, item| all + &canonical(item) + ",") + "]",
        JsonKind::String => format!("{:?}", value.text().map(text)),
        JsonKind::Number => match (value.u64(), value.i64()) {
            (Some(number), _) => number.to_string(),
            (_, Some(number)) => number.to_string(),
            // `1e300` has as many digits as it is long.
            _ => value.as_str().parse::<f64>().map_or_else(|_| value.as_str().into(), |number| format!("{number:e}")),
        },
        _ => value.as_str().into(),
    }
}
