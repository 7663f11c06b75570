//! Who wants to hear of changes: `resources/subscribe` of the legacy revisions and `subscriptions/listen` of
//! 2026-07-28, kept as records in the caller's memory.
//!
//! A change is a mark on a record; [`pull`](super::ServerOf::pull) turns marks into notifications when there is room, so
//! that repeated changes fold into one and publishing can never fail.

use super::notify::{Change, Pull};
use super::request::{Request, object};
use super::{About, Context, Engine, Failure, Scope};
use crate::json::{DecodeError, Raw, Text, object::Object, write};
use crate::protocol::{Feature, Method, meta};
use crate::records::{NoRoom, OVERHEAD, Record};
use crate::rpc::begin;
use crate::rpc::same_id;
use crate::sink::{Full, Kind, Out, Writer, whole};

/// A URI that a legacy client subscribed to. Tag: [`CHANGED`]. Data: the URI.
const URI: u8 = 1;
/// An open listen. Tag: what it wants, what has changed, [`ENDING`], [`ENDED`]. Data: the id of its request.
const LISTEN: u8 = 2;
/// A URI of a listen. Tag: [`CHANGED`]. Data: length of the id, the id, the URI.
const LISTEN_URI: u8 = 3;

const CHANGED: u8 = 1;
/// Behind the bits for what is wanted stand the same bits for what has changed.
const CHANGED_SHIFT: u8 = 3;
const ENDING: u8 = 0x80;
/// The result of an ending listen has gone out, its cancellation has not.
const ENDED: u8 = 0x40;

/// The lists that can change: bit, member of a listen's filter, capability, notification.
const LISTS: [(u8, &str, Feature, &str); 3] = [
    (1, "toolsListChanged", Feature::ToolsChanged, "notifications/tools/list_changed"),
    (2, "promptsListChanged", Feature::PromptsChanged, "notifications/prompts/list_changed"),
    (4, "resourcesListChanged", Feature::ResourcesChanged, "notifications/resources/list_changed"),
];

const UPDATED: &str = "notifications/resources/updated";

/// What a server does that was lent memory for subscriptions. It is reached by this alone, so that it is linked only
/// into programs that lend some.
#[derive(Debug)]
pub(crate) struct Subscribing {
    request: fn(&mut Engine<'_>, &Context<'_>, &Request<'_>, &mut dyn Out) -> Result<(), Full>,
    has_listen: fn(&Engine<'_>, &[u8]) -> bool,
    drop_listen: fn(&mut Engine<'_>, &[u8]),
    drop_scope: fn(&mut Engine<'_>, Scope),
    mark: fn(&mut Engine<'_>, Change<'_>),
    mark_ending: fn(&mut Engine<'_>),
}

impl Subscribing {
    pub(crate) const CODE: Subscribing = Subscribing {
        request: |engine, context, request, out| match request.method() {
            Method::Subscribe => engine.subscribe(context, request, out),
            Method::Unsubscribe => engine.unsubscribe(request, out),
            _ => engine.listen(context, request, out),
        },
        has_listen: |engine, id| engine.subscriptions.iter().any(|record| is_listen(&record, engine.scope, id)),
        drop_listen: |engine, id| engine.forget_listen(id),
        drop_scope: |engine, scope| engine.subscriptions.remove(|record| record.owner == scope.0),
        mark: |engine, change| engine.mark_records(change),
        mark_ending: |engine| {
            engine.set_tags(|record| (record.kind == LISTEN).then_some(record.tag | ENDING));
        },
    };
}

/// Writes what has changed, as far as there is room.
pub(crate) type Teller = fn(&mut Engine<'_>, &About<'_>, &mut dyn Out) -> Result<Pull, Full>;

/// As a server does that has subscriptions.
pub(crate) const TELL_ALL: Teller = |engine, about, out| engine.pull_changes(about, out);
/// As one does that has none.
pub(crate) const TELL_LISTS: Teller = |engine, about, out| engine.pull_lists(about, out).map(|()| Pull::Idle);

impl Engine<'_> {
    /// The requests about subscriptions.
    pub(crate) fn subscribing(
        &mut self,
        context: &Context<'_>,
        request: &Request<'_>,
        why: &mut Failure<'_>,
        out: &mut dyn Out,
    ) -> Option<Result<(), Full>> {
        match self.subscribing {
            Some(code) => Some((code.request)(self, context, request, out)),
            None => why.be(Failure::internal("Overloaded: too many subscriptions").refusing()),
        }
    }

    /// Whether an open listen of the present scope has this id.
    pub(crate) fn has_listen(&self, id: &[u8]) -> bool {
        // Over HTTP each request of 2026-07-28 has a scope of its own, and sessions have no listens.
        !self.over_http
            && self.subscriptions.used() > 0
            && self.subscribing.is_some_and(|code| (code.has_listen)(self, id))
    }

    /// Forgets a listen without a word: its client cancelled it, or its stream is gone.
    pub(crate) fn drop_listen(&mut self, id: &[u8]) {
        if let Some(code) = self.subscribing {
            (code.drop_listen)(self, id);
        }
    }

    /// Forgets all subscriptions of a scope.
    pub(crate) fn drop_subscriptions(&mut self, scope: Scope) {
        if let Some(code) = self.subscribing {
            (code.drop_scope)(self, scope);
        }
    }

    /// Marks what a change concerns.
    pub(crate) fn mark(&mut self, change: Change<'_>) {
        self.peer.note(change);
        self.teller = self.teller.or(Some(TELL_LISTS));
        if let Some(code) = self.subscribing {
            (code.mark)(self, change);
        }
    }

    /// Marks all open listens as to be ended.
    pub(crate) fn mark_ending(&mut self) {
        if let Some(code) = self.subscribing {
            (code.mark_ending)(self);
        }
    }
}

impl Engine<'_> {
    fn subscribe(&mut self, context: &Context<'_>, request: &Request<'_>, out: &mut dyn Out) -> Result<(), Full> {
        let Some(uri) = request.target_uri() else {
            return self.refuse(request, &Failure::invalid_params("Invalid params: uri is missing"), out);
        };
        if !(context.has_resource)(&uri) {
            let revision = self.peer.revision.unwrap_or(crate::revision::Revision::V2024_11_05);
            return self.refuse(request, &Failure::unknown_resource(uri, revision), out);
        }
        let scope = self.scope;
        let known = self.subscriptions.iter().any(|record| is_uri(&record, scope, &uri));
        if !known && self.keep_uri(URI, &[], &uri, &mut self.quota()).is_err() {
            return self.refuse(request, &Failure::internal("Overloaded: too many subscriptions").refusing(), out);
        }
        let answered = self.reply_empty(request, out);
        if answered.is_err() && !known {
            self.subscriptions.remove(|record| is_uri(record, scope, &uri));
        }
        answered
    }

    fn unsubscribe(&mut self, request: &Request<'_>, out: &mut dyn Out) -> Result<(), Full> {
        let Some(uri) = request.target_uri() else {
            return self.refuse(request, &Failure::invalid_params("Invalid params: uri is missing"), out);
        };
        self.reply_empty(request, out)?;
        let scope = self.scope;
        self.subscriptions.remove(|record| is_uri(record, scope, &uri));
        Ok(())
    }

    /// Opens a listen: it is acknowledged with as much of its filter as can be served.
    fn listen(&mut self, context: &Context<'_>, request: &Request<'_>, out: &mut dyn Out) -> Result<(), Full> {
        let Some(filter) = request.members().notifications.and_then(object) else {
            return self.refuse(request, &Failure::invalid_params("Invalid params: notifications is missing"), out);
        };
        let id = request.id().as_bytes();
        let wanted = wanted_lists(filter, context.about);
        // Records of this listen are the last ones, from here on.
        let at = self.subscriptions.used();
        let mut quota = self.quota();
        let kept = quota.take(OVERHEAD + id.len()).and_then(|()| {
            self.subscriptions.push(self.scope.0, LISTEN, wanted, &[id])?;
            match context.about.has(Feature::Subscribe) {
                true => self.keep_uris(context, id, filter, at, &mut quota),
                false => Ok(()),
            }
        });
        // Acknowledged with nothing in it, its client would wait for changes that it is never told of.
        let is_granted = match self.subscriptions.iter_from(at).count() {
            0 => false,
            1 => wanted != 0,
            _ => true,
        };
        if kept.is_err() && !is_granted {
            self.subscriptions.drop_last(at);
            return self.refuse(request, &Failure::internal("Overloaded: too many subscriptions").refusing(), out);
        }
        let acknowledged =
            whole(out, Kind::Notification, |out| self.write_acknowledgement(out, id, wanted)).or_else(|full| {
                // A list of URIs longer than the sink: acknowledged without, which the protocol allows.
                if full == Full::Now || wanted == 0 {
                    return Err(full);
                }
                self.drop_listen_uris(id);
                whole(out, Kind::Notification, |out| self.write_acknowledgement(out, id, wanted))
            });
        if acknowledged.is_err() {
            self.subscriptions.drop_last(at);
        }
        match acknowledged {
            Err(Full::Never) => self.refuse(request, &Failure::too_large().refusing(), out),
            acknowledged => acknowledged,
        }
    }

    fn forget_listen(&mut self, id: &[u8]) {
        self.drop_listen_uris(id);
        let scope = self.scope;
        self.subscriptions.remove(|record| is_listen(record, scope, id));
    }

    /// Whether a scope has subscriptions: over HTTP, whether its listen is open.
    #[must_use]
    pub fn has_subscriptions(&self, scope: Scope) -> bool {
        self.subscriptions.iter().any(|record| record.owner == scope.0)
    }

    fn mark_records(&mut self, change: Change<'_>) {
        if let Change::Resource(uri) = change {
            return self.mark_uri(uri);
        }
        let bit = change.list_bit();
        self.set_tags(|record| {
            let concerned = record.kind == LISTEN && record.tag & bit != 0;
            concerned.then_some(record.tag | bit << CHANGED_SHIFT)
        });
    }

    fn pull_changes(&mut self, about: &About<'_>, out: &mut dyn Out) -> Result<Pull, Full> {
        self.pull_lists(about, out)?;
        let scope = self.scope;
        let mut pull = Pull::Idle;
        // Nothing is due before this.
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
                self.subscriptions.set_tag(at, tag | ENDED);
            } else if kind == LISTEN && tag & ENDING != 0 {
                if !self.over_http {
                    // Over HTTP the stream closes instead.
                    whole(out, Kind::Notification, |out| write_listen_cancelled(out, record.data))?;
                }
                let mut id = super::slot::IdText::EMPTY;
                let _ = id.set(record.data);
                self.forget_listen(id.as_bytes());
                from = 0;
            } else if kind == LISTEN {
                let list = changed_list(tag);
                whole(out, Kind::Notification, |out| write_list_changed(out, list.3, Some(record.data)))?;
                self.subscriptions.set_tag(at, tag & !(list.0 << CHANGED_SHIFT));
            } else {
                match whole(out, Kind::Notification, |out| write_updated(out, &record)) {
                    Err(Full::Now) => return Err(Full::Now),
                    // It goes unsaid: the others behind it must not wait for ever.
                    Err(Full::Never) => pull = Pull::TooSmall,
                    Ok(()) => {}
                }
                self.subscriptions.set_tag(at, 0);
            }
        }
        Ok(pull)
    }

    /// List changes for a legacy client.
    fn pull_lists(&mut self, about: &About<'_>, out: &mut dyn Out) -> Result<(), Full> {
        if self.peer.changed == 0 || !self.peer.initialized {
            return Ok(());
        }
        for (bit, _, feature, method) in LISTS {
            if self.peer.changed & bit != 0 && about.has(feature) {
                whole(out, Kind::Notification, |out| write_list_changed(out, method, None))?;
            }
            self.peer.changed &= !bit;
        }
        Ok(())
    }

    fn mark_uri(&mut self, uri: &str) {
        self.set_tags(|record| {
            let concerned = matches!(record.kind, URI | LISTEN_URI) && split(record).1 == uri.as_bytes();
            concerned.then_some(record.tag | CHANGED)
        });
    }

    fn set_tags(&mut self, tag: impl Fn(&Record<'_>) -> Option<u8>) {
        self.news |= self.subscriptions.retag(tag);
    }

    /// Keeps the URIs of the listen that is at `at` until one does not fit; those from there on are not looked at, and are
    /// left out of the acknowledgement.
    fn keep_uris(
        &mut self,
        context: &Context<'_>,
        id: &[u8],
        filter: Raw<'_>,
        at: usize,
        quota: &mut Quota,
    ) -> Result<(), NoRoom> {
        let Some(uris) = filter.get("resourceSubscriptions") else { return Ok(()) };
        // Each is compared with those kept before, so that the number of those that are looked at is bounded, too.
        let mut left = self.subscription_share.uris;
        for uri in uris.items().filter_map(|uri| uri.text()) {
            left = left.checked_sub(1).ok_or(NoRoom)?;
            let is_same = |record: Record<'_>| {
                let same = core::str::from_utf8(split(&record).1).is_ok_and(|known| uri.is(known));
                same && record.kind == LISTEN_URI
            };
            if (context.has_resource)(&uri) && !self.subscriptions.iter_from(at).any(is_same) {
                // One that is no text is left out: there cannot be such a resource.
                if let Err(DecodeError::Room) = self.keep_uri(LISTEN_URI, id, &uri, quota) {
                    return Err(NoRoom);
                }
            }
        }
        Ok(())
    }

    /// What the present scope may still keep.
    fn quota(&self) -> Quota {
        let mut quota = self.subscription_share;
        for record in self.subscriptions.iter().filter(|record| record.owner == self.scope.0) {
            quota.bytes = quota.bytes.saturating_sub(record.size());
            quota.uris = quota.uris.saturating_sub(usize::from(record.kind != LISTEN));
        }
        quota
    }

    /// Keeps a URI, decoded, so that it can be compared with what is published.
    fn keep_uri(&mut self, kind: u8, id: &[u8], uri: &Text<'_>, quota: &mut Quota) -> Result<(), DecodeError> {
        let ServerParts { scope, scratch, subscriptions } = ServerParts::of(self);
        let decoded = match uri.plain() {
            Some(plain) => plain,
            None => {
                let len = uri.decoded_len().ok_or(DecodeError::Surrogate)?;
                let _ = scratch.reach(len);
                uri.decode(scratch.bytes_mut())?
            }
        };
        let len = [id.len() as u8];
        let head: &[u8] = if kind == LISTEN_URI { &len } else { &[] };
        let size = OVERHEAD + head.len() + id.len() + decoded.len();
        quota.uris = quota.uris.checked_sub(1).ok_or(DecodeError::Room)?;
        let kept =
            quota.take(size).and_then(|()| subscriptions.push(scope.0, kind, 0, &[head, id, decoded.as_bytes()]));
        kept.map_err(|_| DecodeError::Room)
    }

    fn drop_listen_uris(&mut self, id: &[u8]) {
        let scope = self.scope;
        self.subscriptions.remove(|record| is_listen_uri(record, scope, id));
    }

    fn write_acknowledgement(&self, out: &mut Writer<'_>, id: &[u8], wanted: u8) -> Result<(), Full> {
        out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":")?;
        let mut params = Object::open(out);
        write_subscription_id(params.key("_meta"), id)?;
        let mut granted = Object::open(params.key("notifications"));
        for (bit, member, ..) in LISTS {
            if wanted & bit != 0 {
                granted.boolean(member, true)?;
            }
        }
        let scope = self.scope;
        let mut uris = self.subscriptions.iter().filter(|record| is_listen_uri(record, scope, id)).peekable();
        if uris.peek().is_some() {
            let out = granted.key("resourceSubscriptions");
            for (i, record) in uris.enumerate() {
                out.put(if i == 0 { b"[" } else { b"," })?;
                write_uri(out, &record)?;
            }
            out.put(b"]")?;
        }
        granted.close()?;
        params.close()?;
        out.put(b"}")
    }
}

/// What a scope may have of the memory for subscriptions, or still may.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) bytes: usize,
    pub(crate) uris: usize,
}

impl Quota {
    pub(crate) const ALL: Quota = Quota { bytes: usize::MAX, uris: usize::MAX };

    fn take(&mut self, bytes: usize) -> Result<(), NoRoom> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(NoRoom)?;
        Ok(())
    }
}

/// The parts that keeping a URI needs at the same time.
struct ServerParts<'s, 'm> {
    scope: Scope,
    scratch: &'s mut crate::store::Store<'m>,
    subscriptions: &'s mut crate::records::Records<'m>,
}

impl<'s, 'm> ServerParts<'s, 'm> {
    fn of(engine: &'s mut Engine<'m>) -> Self {
        ServerParts { scope: engine.scope, scratch: &mut engine.scratch, subscriptions: &mut engine.subscriptions }
    }
}

/// Which list changes a filter asks for that the server can tell of.
fn wanted_lists(filter: Raw<'_>, about: &About<'_>) -> u8 {
    let asked = |(_, member, feature, _): &(u8, &str, Feature, &str)| {
        about.has(*feature) && filter.get(member).and_then(|wanted| wanted.bool()) == Some(true)
    };
    LISTS.iter().filter(|list| asked(list)).fold(0, |bits, list| bits | list.0)
}

fn is_listen(record: &Record<'_>, scope: Scope, id: &[u8]) -> bool {
    record.kind == LISTEN && record.owner == scope.0 && same_id(record.data, id)
}

fn is_listen_uri(record: &Record<'_>, scope: Scope, id: &[u8]) -> bool {
    record.kind == LISTEN_URI && record.owner == scope.0 && same_id(split(record).0, id)
}

fn is_uri(record: &Record<'_>, scope: Scope, uri: &Text<'_>) -> bool {
    record.kind == URI && record.owner == scope.0 && core::str::from_utf8(record.data).is_ok_and(|known| uri.is(known))
}

fn is_due(record: &Record<'_>) -> bool {
    match record.kind {
        LISTEN => record.tag >> CHANGED_SHIFT != 0,
        _ => record.tag & CHANGED != 0,
    }
}

/// The id (empty if it is not of a listen) and the URI of a record.
fn split<'r>(record: &Record<'r>) -> (&'r [u8], &'r [u8]) {
    if record.kind != LISTEN_URI {
        return (&[], record.data);
    }
    let behind_length = |(len, rest): (&u8, &'r [u8])| rest.split_at_checked(usize::from(*len));
    record.data.split_first().and_then(behind_length).unwrap_or_default()
}

fn changed_list(tag: u8) -> (u8, &'static str, Feature, &'static str) {
    let [first, ..] = LISTS;
    LISTS.into_iter().find(|list| tag >> CHANGED_SHIFT & list.0 != 0).unwrap_or(first)
}

fn write_subscription_id(out: &mut Writer<'_>, id: &[u8]) -> Result<(), Full> {
    let mut object = Object::open(out);
    object.key(meta::SUBSCRIPTION_ID).put(id)?;
    object.close()
}

fn write_list_changed(out: &mut Writer<'_>, method: &str, listen: Option<&[u8]>) -> Result<(), Full> {
    out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"")?;
    out.put(method.as_bytes())?;
    out.put(b"\"")?;
    if let Some(id) = listen {
        out.put(b",\"params\":")?;
        let mut params = Object::open(out);
        write_subscription_id(params.key("_meta"), id)?;
        params.close()?;
    }
    out.put(b"}")
}

fn write_updated(out: &mut Writer<'_>, record: &Record<'_>) -> Result<(), Full> {
    out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"")?;
    out.put(UPDATED.as_bytes())?;
    out.put(b"\",\"params\":")?;
    let mut params = Object::open(out);
    if record.kind == LISTEN_URI {
        write_subscription_id(params.key("_meta"), split(record).0)?;
    }
    write_uri(params.key("uri"), record)?;
    params.close()?;
    out.put(b"}")
}

fn write_uri(out: &mut Writer<'_>, record: &Record<'_>) -> Result<(), Full> {
    write::string(out, core::str::from_utf8(split(record).1).unwrap_or(""))
}

/// The server ends a listen: its result, and behind it the cancellation; deployed clients read a cancellation that
/// comes first as a loss. They are two messages, so that a small sink can take them one after the other.
fn write_listen_result(out: &mut dyn Out, about: &About<'_>, id: &[u8]) -> Result<(), Full> {
    let write = |out: &mut Writer<'_>, signs: bool| {
        begin(out, id, ",\"result\":{\"resultType\":\"complete\",\"_meta\":");
        let mut object = Object::open(out);
        if signs {
            about.write_signature(object.key(meta::SERVER_INFO))?;
        }
        object.key(meta::SUBSCRIPTION_ID).put(id)?;
        object.finish().put(b"}}")
    };
    match whole(out, Kind::Result, |out| write(out, about.signs_results)) {
        Err(Full::Never) => whole(out, Kind::Result, |out| write(out, false)),
        written => written,
    }
}

fn write_listen_cancelled(out: &mut Writer<'_>, id: &[u8]) -> Result<(), Full> {
    out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":")?;
    out.put(id)?;
    out.put(b"}}")
}
