//! Subscriptions to changes: `resources/subscribe` of the [legacy
//! revisions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions) and
//! `subscriptions/listen` of
//! [2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions). They are
//! records in memory that the caller lends.
//!
//! 1. [`publish`](Server::publish) marks the records that a change concerns. It cannot fail, and repeated changes become
//!    one notification.
//! 2. [`pull`](Server::pull) writes a notification for each marked record, as far as the sink has room.

use super::around::watched;
use super::notify::{PullStatus, ServerChange};
use super::request::{IncomingRequest, object};
#[allow(unused_imports, reason = "the methods of a trait object need no import")]
use super::topics::{TOPICS, Topics as _, TopicsRef};
use super::{RpcError, Scope, Server, ServerInfo, ServerOptions, words};
use crate::json::object::{Object, array};
use crate::json::{DecodeError, JsonKind, Raw, Text};
use crate::machine;
use crate::memory::records::{NoRoomError, OVERHEAD, Record};
use crate::protocol::{LISTS, Method, ServerCapability, meta};
use crate::revision::Revision;
use crate::rpc::{begin, begin_notification, same_id};
use crate::sink::{FullError, MessageHead, Out, Writer, whole};

/// A URI that a legacy client subscribed to. Tag: [`CHANGED`]. Data: the URI.
const URI: u8 = 1;
/// An open listen. Tag: the lists it wants, the lists that changed, [`ENDING`], [`ENDED`]. Data: the id of its
/// request.
const LISTEN: u8 = 2;
/// A URI of a listen. Tag: [`CHANGED`]. Data: the length of the id, the id, the URI.
const LISTEN_URI: u8 = 3;
/// A key of a topic of a listen. Tag: [`CHANGED`]. Data: the length of the id, the id, the length of the member, the
/// member, the key.
const LISTEN_TOPIC: u8 = 4;

const CHANGED: u8 = 1;
/// The bits of the lists that changed are those of the wanted lists, shifted by this.
const CHANGED_SHIFT: u8 = 3;
const ENDING: u8 = 0x80;
/// The result of an ending listen was written, its cancellation was not.
const ENDED: u8 = 0x40;

/// Every change of a listen's state, which its tag holds: from, to, cause.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Quiet", "Changed", "publish"),
    ("Changed", "Changed", "publish"),
    ("Ending", "Ending", "publish"),
    ("Ended", "Ended", "publish"),
    ("Changed", "Changed", "pull"),
    ("Changed", "Quiet", "pull"),
    ("Quiet", "Ending", "end"),
    ("Changed", "Ending", "end"),
    ("Ending", "Ending", "end"),
    ("Ended", "Ended", "end"),
    ("Ending", "Ended", "pull"),
];

/// The state of a listen.
#[derive(Clone, Copy)]
enum ListenState {
    Quiet,
    Changed,
    Ending,
    Ended,
}

machine!(ListenState, TRANSITIONS: Quiet Changed Ending Ended);

impl ListenState {
    /// Returns the state that the tag of a listen holds.
    const fn of(tag: u8) -> Self {
        match tag {
            tag if tag & ENDED != 0 => ListenState::Ended,
            tag if tag & ENDING != 0 => ListenState::Ending,
            tag if tag >> CHANGED_SHIFT != 0 => ListenState::Changed,
            _ => ListenState::Quiet,
        }
    }
}

/// Returns the next tag of a listen, see [`TRANSITIONS`].
fn change_listen(cause: &str, tag: u8, next: u8) -> u8 {
    ListenState::of(tag).enter(cause, ListenState::of(next));
    next
}

/// The error for a subscription that the memory or the share has no room for.
pub(crate) const TOO_MANY_SUBSCRIPTIONS: RpcError<'static> =
    RpcError::internal(words("Overloaded: too many subscriptions")).refusing();

/// A change of the records of subscriptions.
pub(crate) enum RecordChange<'c> {
    /// Marks the records that a published change concerns.
    Publish(ServerChange<'c>),
    /// The same for the records of one scope.
    PublishIn(Scope, ServerChange<'c>),
    /// Marks all listens as ending.
    End,
    /// Removes a listen: its client has cancelled it, or its stream is closed.
    DropListen(&'c [u8]),
    /// Removes everything of a scope.
    DropScope(Scope),
}

/// The functions of a server with memory for subscriptions. Programs without such memory do not link them.
#[derive(Debug)]
pub(crate) struct SubscriptionVtable {
    pub(crate) request:
        fn(&mut Server<'_>, &ServerOptions<'_>, &IncomingRequest<'_>, &mut dyn Out) -> Result<(), FullError>,
    has_listen: fn(&Server<'_>, &[u8]) -> bool,
    change: fn(&mut Server<'_>, RecordChange<'_>),
}

impl SubscriptionVtable {
    pub(crate) const VTABLE: SubscriptionVtable = SubscriptionVtable {
        request: |server, context, request, out| match (request.method, request.target_uri()) {
            (Method::Listen, _) => server.listen(context, request, out),
            (_, None) => {
                server.refuse(request, &RpcError::invalid_params(words("Invalid params: uri is missing")), out)
            }
            (Method::Subscribe, Some(uri)) => server.subscribe(context, request, uri, out),
            (_, Some(uri)) => {
                server.reply_empty(request, out)?;
                let scope = server.scope;
                server.subscriptions.remove(|record| is_uri(record, scope, &uri));
                Ok(())
            }
        },
        has_listen: |server, id| server.subscriptions.iter().any(|record| is_listen(&record, server.scope, id)),
        change: |server, change| server.change_records(change),
    };
}

/// Writes the notifications of changes, as far as the sink has room.
pub(crate) type NewsWriter =
    fn(&mut Server<'_>, &ServerInfo<'_>, TopicsRef<'_>, &mut dyn Out) -> Result<PullStatus, FullError>;

/// The writer of a server with memory for subscriptions.
pub(crate) const WRITE_ALL: NewsWriter = |server, about, topics, out| {
    let from = server.sends();
    watched(about.around, from, out, |out| server.write_changes(about, topics, out)).unwrap_or(Ok(PullStatus::Idle))
};
/// The writer of a server without such memory.
pub(crate) const WRITE_LISTS: NewsWriter = |server, about, _, out| {
    let from = server.sends();
    let written = watched(about.around, from, out, |out| server.write_list_changes(about, out));
    written.unwrap_or(Ok(())).map(|()| PullStatus::Idle)
};

impl Server<'_> {
    /// Publishes a change: [`pull`](Server::pull) writes the notifications. This only sets marks: it cannot fail, and
    /// repeated changes become one notification.
    pub fn publish(&mut self, change: ServerChange<'_>) {
        self.peer.record(change);
        self.write_news = self.write_news.or(Some(WRITE_LISTS));
        self.change_subscriptions(RecordChange::Publish(change));
    }

    /// Publishes a change to the subscriptions of one scope, for a transport with several clients: one that no other client
    /// can see.
    pub fn publish_in(&mut self, scope: Scope, change: ServerChange<'_>) {
        self.write_news = self.write_news.or(Some(WRITE_LISTS));
        self.change_subscriptions(RecordChange::PublishIn(scope, change));
    }

    /// Notes the changes that a handler has published. Over HTTP they concern other sessions too: there the endpoint
    /// [takes](Server::take_published) them.
    #[cfg(feature = "alloc")]
    pub(crate) fn note_published(&mut self) {
        if !self.published.is_empty() && !self.over_http {
            core::mem::take(&mut self.published).each(|change| self.publish(change));
        }
    }

    /// Calls `note` with each change that handlers have [published](crate::service::RequestContext::publish) since the
    /// last call, for a transport with several clients. On a line stream, and without the feature `alloc`, there are
    /// none: the server notes them itself.
    pub fn take_published(&mut self, note: impl FnMut(&mut Self, ServerChange<'_>)) {
        #[cfg(feature = "alloc")]
        if !self.published.is_empty() {
            let mut note = note;
            core::mem::take(&mut self.published).each(|change| note(self, change));
        }
        #[cfg(not(feature = "alloc"))]
        drop(note);
    }

    /// Ends all listens. The next [`pull`](Server::pull) writes their results.
    pub fn end_listens(&mut self) {
        self.change_subscriptions(RecordChange::End);
    }

    /// Returns whether a scope has subscriptions. Over HTTP: whether its listen is open.
    #[must_use]
    pub fn has_subscriptions(&self, scope: Scope) -> bool {
        self.subscriptions.iter().any(|record| record.owner == scope.0)
    }

    /// Returns the URI of each subscription to a resource: of `resources/subscribe`, and of each `subscriptions/listen`. One that
    /// several have comes several times.
    pub fn subscribed_uris(&self) -> impl Iterator<Item = &str> {
        let uris = self.subscriptions.iter().filter(|record| record.kind != LISTEN && !is_topic(record));
        uris.filter_map(|record| core::str::from_utf8(split(&record).1).ok())
    }

    /// Notes that the client of the present scope has subscribed to a resource (`on`) or unsubscribed, for a program that answers
    /// `resources/subscribe` and `resources/unsubscribe` [itself](Server::admit_own). Returns `false` if there is no room.
    pub fn set_subscribed(&mut self, uri: &str, on: bool) -> bool {
        let (scope, uri) = (self.scope, Text::new(uri.as_bytes(), false));
        let is_known = |record: Record<'_>| is_uri(&record, scope, &uri);
        if !on {
            self.subscriptions.remove(|record| is_known(*record));
            return true;
        }
        self.subscriptions.iter().any(is_known) || self.keep_uri(URI, &[], &uri, &mut self.quota()).is_ok()
    }

    /// Returns whether an open listen of the present scope has this id.
    pub(crate) fn has_listen(&self, id: &[u8]) -> bool {
        // Over HTTP each request of 2026-07-28 has a scope of its own, and sessions have no listens.
        !self.over_http
            && self.subscriptions.used() > 0
            && self.subscribing.is_some_and(|code| (code.has_listen)(self, id))
    }

    /// Changes the records, in a server with memory for them.
    pub(crate) fn change_subscriptions(&mut self, change: RecordChange<'_>) {
        if let Some(code) = self.subscribing {
            (code.change)(self, change);
        }
    }
}

impl Server<'_> {
    fn subscribe(
        &mut self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'_>,
        uri: Text<'_>,
        out: &mut dyn Out,
    ) -> Result<(), FullError> {
        if !(context.has_resource)(&uri) {
            let revision = self.peer.revision().unwrap_or(Revision::BEFORE_OPENING);
            return self.refuse(request, &RpcError::unknown_resource(uri, revision), out);
        }
        let scope = self.scope;
        let known = self.subscriptions.iter().any(|record| is_uri(&record, scope, &uri));
        if !known && self.keep_uri(URI, &[], &uri, &mut self.quota()).is_err() {
            return self.refuse(request, &TOO_MANY_SUBSCRIPTIONS, out);
        }
        let answered = self.reply_empty(request, out);
        if answered.is_err() && !known {
            self.subscriptions.remove(|record| is_uri(record, scope, &uri));
        }
        answered
    }

    /// Opens a listen. The acknowledgement names the part of the filter that the server can serve.
    fn listen(
        &mut self,
        context: &ServerOptions<'_>,
        request: &IncomingRequest<'_>,
        out: &mut dyn Out,
    ) -> Result<(), FullError> {
        let Some(filter) = request.envelope.members.notifications.and_then(object) else {
            let failure = RpcError::invalid_params(words("Invalid params: notifications is missing"));
            return self.refuse(request, &failure, out);
        };
        if let Err(failure) = check_topics(context.topics, filter) {
            return self.refuse(request, &failure, out);
        }
        let (scope, id) = (self.scope, request.id.as_bytes());
        let wants = |member| filter.get(member).and_then(|wanted| wanted.bool()) == Some(true);
        let wanted = LISTS.iter().filter(|list| context.about.has(list.2) && wants(list.1));
        let wanted = wanted.fold(0, |bits, list| bits | list.0);
        // The records of this listen are the last ones, from here on.
        let at = self.subscriptions.used();
        let mut quota = self.quota();
        let kept = quota.take(OVERHEAD + id.len()).and_then(|()| {
            self.subscriptions.push(scope.0, LISTEN, wanted, &[id])?;
            match context.about.has(ServerCapability::Subscribe) {
                true => self.keep_uris(context, id, filter, at, &mut quota),
                false => Ok(()),
            }
        });
        let kept = kept.and_then(|()| self.keep_topics(context.topics, id, filter, at, &mut quota));
        // With an empty acknowledgement the client would wait in vain.
        let is_granted = match self.subscriptions.iter_from(at).count() {
            0 => false,
            1 => wanted != 0,
            _ => true,
        };
        if kept.is_err() && !is_granted {
            self.subscriptions.drop_last(at);
            return self.refuse(request, &TOO_MANY_SUBSCRIPTIONS, out);
        }
        let mut acknowledged =
            whole(out, MessageHead::Notification, |out| self.write_acknowledgement(out, id, wanted, context.topics));
        if acknowledged == Err(FullError::Never) && wanted != 0 {
            // The list of URIs is longer than the sink. The protocol allows to leave them out.
            self.subscriptions.remove(|record| is_part_of_listen(record, scope, id));
            acknowledged = whole(out, MessageHead::Notification, |out| {
                self.write_acknowledgement(out, id, wanted, context.topics)
            });
        }
        if acknowledged.is_err() {
            self.subscriptions.drop_last(at);
        }
        match acknowledged {
            Err(FullError::Never) => self.refuse(request, &RpcError::too_large().refusing(), out),
            acknowledged => acknowledged,
        }
    }

    fn change_records(&mut self, change: RecordChange<'_>) {
        let scope = self.scope;
        match change {
            RecordChange::Publish(change) => self.set_tags(|record| change_record(record, change)),
            RecordChange::PublishIn(scope, change) => {
                self.set_tags(|record| if record.owner == scope.0 { change_record(record, change) } else { None })
            }
            RecordChange::End => self.set_tags(|record| {
                (record.kind == LISTEN).then(|| change_listen("end", record.tag, record.tag | ENDING))
            }),
            RecordChange::DropListen(id) => {
                self.subscriptions
                    .remove(|record| is_listen(record, scope, id) || is_part_of_listen(record, scope, id));
            }
            RecordChange::DropScope(scope) => self.subscriptions.remove(|record| record.owner == scope.0),
        }
    }

    fn set_tags(&mut self, tag: impl Fn(&Record<'_>) -> Option<u8>) {
        self.news |= self.subscriptions.retag(tag);
    }

    fn write_changes(
        &mut self,
        about: &ServerInfo<'_>,
        topics: TopicsRef<'_>,
        out: &mut dyn Out,
    ) -> Result<PullStatus, FullError> {
        self.write_list_changes(about, out)?;
        let scope = self.scope;
        let mut status = PullStatus::Idle;
        // No record before this one is due.
        let mut from = 0;
        while self.news {
            let due = self.subscriptions.iter_from(from).find(|record| record.owner == scope.0 && is_due(record));
            let Some(record) = due else {
                self.news = self.subscriptions.iter().any(|record| is_due(&record));
                break;
            };
            let (at, kind, tag) = (record.at(), record.kind, record.tag);
            from = at;
            if kind == LISTEN && tag & ENDING != 0 && tag & ENDED == 0 {
                write_listen_result(out, about, record.data)?;
                self.subscriptions.set_tag(at, change_listen("pull", tag, tag | ENDED));
            } else if kind == LISTEN && tag & ENDING != 0 {
                if !self.over_http {
                    // Over HTTP the stream closes instead.
                    whole(out, MessageHead::Notification, |out| write_cancelled(out, record.data))?;
                }
                let mut id = super::IdText::EMPTY;
                let _ = id.set(record.data);
                // Its parts follow it, so no record before this position moves.
                self.change_records(RecordChange::DropListen(id.as_bytes()));
            } else if kind == LISTEN {
                let [first, ..] = LISTS;
                let list = LISTS.into_iter().find(|list| tag >> CHANGED_SHIFT & list.0 != 0).unwrap_or(first);
                whole(out, MessageHead::Notification, |out| write_list_changed(out, list.3, Some(record.data)))?;
                self.subscriptions.set_tag(at, change_listen("pull", tag, tag & !(list.0 << CHANGED_SHIFT)));
            } else {
                match whole(out, MessageHead::Notification, |out| write_updated(out, &record, topics)) {
                    Err(FullError::Now) => return Err(FullError::Now),
                    // Drops a record that never fits, so that later ones are sent.
                    Err(FullError::Never) => status = PullStatus::TooSmall,
                    Ok(()) => {}
                }
                self.subscriptions.set_tag(at, 0);
            }
        }
        Ok(status)
    }

    /// Writes the list changes for a legacy client.
    fn write_list_changes(&mut self, about: &ServerInfo<'_>, out: &mut dyn Out) -> Result<(), FullError> {
        if self.peer.changed == 0 || !self.peer.is_initialized() {
            return Ok(());
        }
        for (bit, _, feature, method) in LISTS {
            if self.peer.changed & bit != 0 && about.has(feature) {
                whole(out, MessageHead::Notification, |out| write_list_changed(out, method, None))?;
            }
            self.peer.changed &= !bit;
        }
        Ok(())
    }

    /// Keeps the URIs of the listen whose record is at `at`, up to the first one without room. The acknowledgement
    /// leaves out the others.
    fn keep_uris(
        &mut self,
        context: &ServerOptions<'_>,
        id: &[u8],
        filter: Raw<'_>,
        at: usize,
        quota: &mut Quota,
    ) -> Result<(), NoRoomError> {
        let Some(uris) = filter.get("resourceSubscriptions") else { return Ok(()) };
        // Each is compared with those before it, so also the number of repeated ones has a limit.
        let mut left = self.subscription_share.uris;
        for uri in uris.items().filter_map(|uri| uri.text()) {
            left = left.checked_sub(1).ok_or(NoRoomError)?;
            let is_same = |record: Record<'_>| {
                let same = core::str::from_utf8(split(&record).1).is_ok_and(|known| uri.eq_str(known));
                same && record.kind == LISTEN_URI
            };
            if (context.has_resource)(&uri) && !self.subscriptions.iter_from(at).any(is_same) {
                // A URI with a lone surrogate is left out: no resource has it.
                if let Err(DecodeError::Room) = self.keep_uri(LISTEN_URI, id, &uri, quota) {
                    return Err(NoRoomError);
                }
            }
        }
        Ok(())
    }

    /// Returns how much more the present scope may keep.
    fn quota(&self) -> Quota {
        let mut quota = self.subscription_share;
        for record in self.subscriptions.iter().filter(|record| record.owner == self.scope.0) {
            quota.bytes = quota.bytes.saturating_sub(record.size());
            quota.uris = quota.uris.saturating_sub(usize::from(record.kind != LISTEN));
        }
        quota
    }

    /// Keeps a URI, decoded: [`publish`](Server::publish) compares it with its own.
    fn keep_uri(&mut self, kind: u8, id: &[u8], uri: &Text<'_>, quota: &mut Quota) -> Result<(), DecodeError> {
        let decoded = match uri.plain() {
            Some(plain) => plain,
            None => {
                let len = uri.decoded_len().ok_or(DecodeError::Surrogate)?;
                let _ = self.scratch.reach(len);
                uri.decode(self.scratch.bytes_mut())?
            }
        };
        let len = [id.len() as u8];
        let head: &[u8] = if kind == LISTEN_URI { &len } else { &[] };
        let size = OVERHEAD + head.len() + id.len() + decoded.len();
        quota.uris = quota.uris.checked_sub(1).ok_or(DecodeError::Room)?;
        let parts = [head, id, decoded.as_bytes()];
        let kept = quota.take(size).and_then(|()| self.subscriptions.push(self.scope.0, kind, 0, &parts));
        kept.map_err(|_| DecodeError::Room)
    }

    fn write_acknowledgement(&self, out: &mut Writer<'_>, id: &[u8], wanted: u8, topics: TopicsRef<'_>) {
        begin_notification(out, "notifications/subscriptions/acknowledged", ",\"params\":");
        let mut params = Object::open(out);
        write_subscription_id(params.key("_meta"), id);
        let mut granted = Object::open(params.key("notifications"));
        for (bit, member, ..) in LISTS {
            if wanted & bit != 0 {
                granted.boolean(member, true);
            }
        }
        let scope = self.scope;
        let is_uri = |record: &Record<'_>| is_part_of_listen(record, scope, id) && !is_topic(record);
        let mut uris = self.subscriptions.iter().filter(is_uri).peekable();
        if uris.peek().is_some() {
            array(granted.key("resourceSubscriptions"), uris, |out, record| write_uri(out, &record));
        }
        self.write_topics(&mut granted, id, topics);
        granted.close();
        params.finish().put(b"}")
    }
}

/// The bytes and the number of URIs of subscriptions that a scope may keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) bytes: usize,
    pub(crate) uris: usize,
}

impl Quota {
    pub(crate) const ALL: Quota = Quota { bytes: usize::MAX, uris: usize::MAX };

    fn take(&mut self, bytes: usize) -> Result<(), NoRoomError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(NoRoomError)?;
        Ok(())
    }
}

/// Returns the tag of a record after a change, if it concerns the record.
fn change_record(record: &Record<'_>, change: ServerChange<'_>) -> Option<u8> {
    match change {
        ServerChange::Resource(uri) => {
            let is_uri = record.kind != LISTEN && !is_topic(record);
            let is_changed = is_uri && split(record).1 == uri.as_bytes();
            is_changed.then_some(record.tag | CHANGED)
        }
        #[cfg(feature = "extensions")]
        ServerChange::Topic { member, key } => {
            let is_changed = is_topic(record) && split_topic(record) == (member.as_bytes(), key.as_bytes());
            is_changed.then_some(record.tag | CHANGED)
        }
        #[cfg(feature = "alloc")]
        ServerChange::All if record.kind != LISTEN => Some(record.tag | CHANGED),
        change if record.kind == LISTEN => change_lists(record.tag, change.list_bit()),
        _ => None,
    }
}

/// Returns the tag of a listen after a change of these lists, if it wants one of them.
fn change_lists(tag: u8, lists: u8) -> Option<u8> {
    let wanted = tag & lists;
    (wanted != 0).then(|| change_listen("publish", tag, tag | wanted << CHANGED_SHIFT))
}

fn is_listen(record: &Record<'_>, scope: Scope, id: &[u8]) -> bool {
    record.kind == LISTEN && record.owner == scope.0 && same_id(record.data, id)
}

/// Returns whether a record is a URI or a topic of the listen with this id.
fn is_part_of_listen(record: &Record<'_>, scope: Scope, id: &[u8]) -> bool {
    (record.kind == LISTEN_URI || is_topic(record)) && record.owner == scope.0 && same_id(split(record).0, id)
}

fn is_topic(record: &Record<'_>) -> bool {
    TOPICS && record.kind == LISTEN_TOPIC
}

fn is_uri(record: &Record<'_>, scope: Scope, uri: &Text<'_>) -> bool {
    record.kind == URI
        && record.owner == scope.0
        && core::str::from_utf8(record.data).is_ok_and(|known| uri.eq_str(known))
}

fn is_due(record: &Record<'_>) -> bool {
    match record.kind {
        LISTEN => record.tag >> CHANGED_SHIFT != 0,
        _ => record.tag & CHANGED != 0,
    }
}

/// Returns the id (empty for a record that is not of a listen) and the URI or the topic of a record.
fn split<'r>(record: &Record<'r>) -> (&'r [u8], &'r [u8]) {
    if record.kind != LISTEN_URI && !is_topic(record) {
        return (&[], record.data);
    }
    let behind_length = |(len, rest): (&u8, &'r [u8])| rest.split_at_checked(usize::from(*len));
    record.data.split_first().and_then(behind_length).unwrap_or_default()
}

pub(crate) fn write_subscription_id(out: &mut Writer<'_>, id: &[u8]) {
    let mut object = Object::open(out);
    object.key(meta::SUBSCRIPTION_ID).put(id);
    object.close()
}

fn write_list_changed(out: &mut Writer<'_>, method: &str, listen: Option<&[u8]>) {
    begin_notification(out, method, "");
    if let Some(id) = listen {
        out.put(b",\"params\":");
        let mut params = Object::open(out);
        write_subscription_id(params.key("_meta"), id);
        params.close();
    }
    out.put(b"}")
}

fn write_updated(out: &mut Writer<'_>, record: &Record<'_>, topics: TopicsRef<'_>) {
    if is_topic(record) {
        return write_topic_news(out, record, topics);
    }
    begin_notification(out, "notifications/resources/updated", ",\"params\":");
    let mut params = Object::open(out);
    if record.kind == LISTEN_URI {
        write_subscription_id(params.key("_meta"), split(record).0);
    }
    write_uri(params.key("uri"), record);
    params.finish().put(b"}")
}

fn write_uri(out: &mut Writer<'_>, record: &Record<'_>) {
    out.string(core::str::from_utf8(split(record).1).unwrap_or(""))
}

/// Writes the result of a listen that the server ends. The cancellation follows as a message of its own: some clients
/// take a cancellation that comes first for a loss, and a small sink takes one after the other.
pub(crate) fn write_listen_result(out: &mut dyn Out, about: &ServerInfo<'_>, id: &[u8]) -> Result<(), FullError> {
    let write = |out: &mut Writer<'_>, signs: bool| {
        begin(out, id, ",\"result\":{\"resultType\":\"complete\",\"_meta\":");
        let mut object = Object::open(out);
        if signs {
            about.write_signature(object.key(meta::SERVER_INFO));
        }
        object.key(meta::SUBSCRIPTION_ID).put(id);
        object.finish().put(b"}}")
    };
    match whole(out, MessageHead::Result, |out| write(out, about.signs_results)) {
        Err(FullError::Never) => whole(out, MessageHead::Result, |out| write(out, false)),
        written => written,
    }
}

/// Writes `notifications/cancelled` for the request with this id.
pub(crate) fn write_cancelled(out: &mut Writer<'_>, id: &[u8]) {
    begin_notification(out, "notifications/cancelled", ",\"params\":{\"requestId\":");
    out.put(id);
    out.put(b"}}")
}

/// Returns the member and the key of a topic.
fn split_topic<'r>(record: &Record<'r>) -> (&'r [u8], &'r [u8]) {
    let behind_length = |(len, rest): (&u8, &'r [u8])| rest.split_at_checked(usize::from(*len));
    split(record).1.split_first().and_then(behind_length).unwrap_or_default()
}

/// Checks that the client declared the extension of each topic that it selects.
fn check_topics(topics: TopicsRef<'_>, filter: Raw<'_>) -> Result<(), RpcError<'static>> {
    let mut members = (0..).map_while(|index| Some((index, topics.member(index)?)));
    members.try_for_each(|(index, member)| if filter.get(member).is_some() { topics.check(index) } else { Ok(()) })
}

/// Writes the notification of a topic.
fn write_topic_news(out: &mut Writer<'_>, record: &Record<'_>, topics: TopicsRef<'_>) {
    let text = |bytes| core::str::from_utf8(bytes).unwrap_or("");
    let (member, key) = split_topic(record);
    let (member, key) = (text(member), text(key));
    // The service has changed meanwhile: the notification is left out.
    let Some(method) = topics.method(member) else { return out.fail(FullError::Never) };
    begin_notification(out, method, ",\"params\":");
    let mut params = Object::open(out);
    write_subscription_id(params.key("_meta"), split(record).0);
    topics.write(member, key, &mut params);
    params.finish().put(b"}")
}

impl Server<'_> {
    /// Keeps the keys of topics that the extensions agree to, up to the first one without room.
    fn keep_topics(
        &mut self,
        topics: TopicsRef<'_>,
        id: &[u8],
        filter: Raw<'_>,
        at: usize,
        quota: &mut Quota,
    ) -> Result<(), NoRoomError> {
        let mut left = self.subscription_share.uris;
        for (index, member) in (0..).map_while(|index| Some((index, topics.member(index)?))) {
            let Some(selected) = filter.get(member) else { continue };
            if selected.bool() == Some(true) && topics.agrees(index, "") {
                self.keep_topic(id, member, "", quota)?;
            }
            if selected.kind() != JsonKind::Array {
                continue;
            }
            for key in selected.items().filter_map(|key| key.text()) {
                // Each is compared with those before it, so also the number of repeated ones has a limit.
                left = left.checked_sub(1).ok_or(NoRoomError)?;
                let is_same = |record: Record<'_>| {
                    let (topic, known) = split_topic(&record);
                    let same = core::str::from_utf8(known).is_ok_and(|known| key.eq_str(known));
                    same && is_topic(&record) && topic == member.as_bytes()
                };
                if self.subscriptions.iter_from(at).any(is_same) {
                    continue;
                }
                // No extension has a key with escapes that is longer than the scratch, or with a lone surrogate.
                let mut scratch = core::mem::replace(&mut self.scratch, crate::memory::Store::none());
                let _ = scratch.reach(key.decoded_len().unwrap_or(0).min(scratch.limit()));
                let decoded = match key.plain() {
                    Some(plain) => Some(plain),
                    None => key.decode(scratch.bytes_mut()).ok(),
                };
                let kept = match decoded.filter(|key| !key.is_empty() && topics.agrees(index, key)) {
                    Some(key) => self.keep_topic(id, member, key, quota),
                    None => Ok(()),
                };
                self.scratch = scratch;
                kept?;
            }
        }
        Ok(())
    }

    fn keep_topic(&mut self, id: &[u8], member: &str, key: &str, quota: &mut Quota) -> Result<(), NoRoomError> {
        let (id_len, member_len) = ([id.len() as u8], [member.len() as u8]);
        let parts: [&[u8]; 5] = [&id_len, id, &member_len, member.as_bytes(), key.as_bytes()];
        quota.uris = quota.uris.checked_sub(1).ok_or(NoRoomError)?;
        quota.take(OVERHEAD + parts.iter().map(|part| part.len()).sum::<usize>())?;
        self.subscriptions.push(self.scope.0, LISTEN_TOPIC, 0, &parts)
    }

    /// Writes the topics that were granted into an acknowledgement.
    fn write_topics(&self, granted: &mut Object<'_, '_>, id: &[u8], topics: TopicsRef<'_>) {
        let scope = self.scope;
        for member in (0..).map_while(|index| topics.member(index)) {
            let is_own = |record: &Record<'_>| {
                let of_listen = is_topic(record) && record.owner == scope.0 && same_id(split(record).0, id);
                of_listen && split_topic(record).0 == member.as_bytes()
            };
            let mut keys = self.subscriptions.iter().filter(is_own).map(|record| split_topic(&record).1).peekable();
            match keys.peek() {
                None => {}
                Some([]) => granted.boolean(member, true),
                Some(_) => {
                    array(granted.key(member), keys, |out, key| out.string(core::str::from_utf8(key).unwrap_or("")))
                }
            }
        }
    }
}
