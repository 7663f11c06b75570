//! Results kept as long as the server allows (2026-07-28, page "Caching").
//!
//! A small piece beside the engine: look here before you ask, and put what comes back. It reads `ttlMs` and `cacheScope`
//! itself; what older servers answer has neither and is never kept. One cache belongs to one server and one revision.
//!
//! What answers a retry, that is a request with `inputResponses` or `requestState`, depends on more than its key and is not
//! kept. The client's engine sends such retries by itself: [`Event::Done`](super::Event::Done) says so with `retried`, which
//! [`Key::retried`] takes. Where [`Key`] is given the params of a retry, nothing is kept and nothing is found either.
//!
//! ```
//! use mcp_sansio::client::cache::{Cache, Key};
//! use mcp_sansio::json::Raw;
//! use mcp_sansio::protocol::Method;
//! use mcp_sansio::store::Store;
//!
//! let mut memory = [0; 512];
//! let mut cache = Cache::new(Store::from(&mut memory));
//! let key = Key::new(Method::ToolsList, None);
//!
//! let result = Raw::constant(r#"{"resultType":"complete","tools":[],"ttlMs":300000,"cacheScope":"public"}"#);
//! assert!(cache.put(key, result, 1_000));
//! assert!(cache.get(key, 300_999).is_some());
//! assert!(cache.get(key, 301_000).is_none()); // stale
//! ```

use super::answer::is_complete;
use crate::json::{Raw, Text};
use crate::protocol::Method;
use crate::records::{OVERHEAD, Record, Records};
use crate::server::Millis;
use crate::store::Store;

/// The methods whose results may be kept; their place is the kind of a record.
const CACHEABLE: [Method; 6] = [
    Method::Discover,
    Method::ToolsList,
    Method::PromptsList,
    Method::ResourcesList,
    Method::TemplatesList,
    Method::ResourcesRead,
];

/// What a result answers: a method, its params, and on whose behalf it was asked.
#[derive(Clone, Copy, Debug)]
pub struct Key<'k> {
    method: Method,
    params: Option<Raw<'k>>,
    principal: &'k [u8],
    retried: bool,
}

impl<'k> Key<'k> {
    /// A method and its params. `_meta` does not count. Other members count as they were written: another order or other
    /// white space is another key, which costs a request and does no harm.
    #[must_use]
    pub const fn new(method: Method, params: Option<Raw<'k>>) -> Self {
        Key { method, params, principal: &[], retried: false }
    }

    /// On whose behalf: anything that is different for every authorization context, such as a digest of the access token
    /// (rather not the token itself: a copy is kept). Results with the scope `private` are found only by the principal
    /// who put them, all others by everyone.
    #[must_use]
    pub const fn principal(self, principal: &'k [u8]) -> Self {
        Key { principal, ..self }
    }

    /// Of a request that was sent again with more than its params say: `retried` of [`Event::Done`](super::Event::Done). If
    /// `true`, nothing is kept and nothing is found.
    #[must_use]
    pub const fn retried(self, retried: bool) -> Self {
        Key { retried, ..self }
    }

    /// The place of the method among [`CACHEABLE`], if its result may be kept at all.
    fn kind(&self) -> Option<u8> {
        let retry =
            |params: Raw<'_>| params.members().any(|(key, _)| key.is("inputResponses") || key.is("requestState"));
        if self.retried || self.params.is_some_and(retry) {
            return None;
        }
        kind_of(self.method)
    }

    /// The params that count, as an object, piece by piece.
    fn pieces(&self, mut each: impl FnMut(&[u8])) {
        let members = self.params.map(|params| params.members());
        let mut before: &[u8] = b"{\"";
        for (key, value) in members.into_iter().flatten().filter(|(key, _)| !key.is("_meta")) {
            each(before);
            each(key.raw());
            each(b"\":");
            each(value.as_bytes());
            before = b",\"";
        }
        each(if before == b"{\"" { b"{}" } else { b"}" });
    }

    fn size(&self) -> usize {
        let mut size = 0;
        self.pieces(|piece| size += piece.len());
        size
    }

    /// Whether an entry answers it.
    fn finds(&self, entry: &Entry<'_>) -> bool {
        if entry.principal.is_some_and(|principal| principal != self.principal) {
            return false;
        }
        let mut rest = Some(entry.params);
        self.pieces(|piece| rest = rest.and_then(|rest| rest.strip_prefix(piece)));
        rest == Some(&[])
    }
}

fn kind_of(method: Method) -> Option<u8> {
    CACHEABLE.iter().position(|&cacheable| cacheable == method).and_then(|place| u8::try_from(place).ok())
}

/// One kept result, as it lies in its record.
struct Entry<'r> {
    received: Millis,
    ttl: Millis,
    /// `None` for the scope `public`.
    principal: Option<&'r [u8]>,
    params: &'r [u8],
    result: &'r [u8],
}

/// Bytes in front of principal, params and result: time of receipt, time to live, lengths of the first two.
const HEAD: usize = 24;

/// The tags of records.
const PRIVATE: u8 = 0;
const PUBLIC: u8 = 1;

impl<'r> Entry<'r> {
    fn read(record: &Record<'r>) -> Option<Self> {
        let (&received, rest) = record.data.split_first_chunk()?;
        let (&ttl, rest) = rest.split_first_chunk()?;
        let (&principal, rest) = rest.split_first_chunk()?;
        let (&params, rest) = rest.split_first_chunk()?;
        let (principal, rest) = rest.split_at_checked(u32::from_le_bytes(principal) as usize)?;
        let (params, result) = rest.split_at_checked(u32::from_le_bytes(params) as usize)?;
        let (received, ttl) = (u64::from_le_bytes(received), u64::from_le_bytes(ttl));
        let principal = Some(principal).filter(|_| record.tag != PUBLIC);
        Some(Entry { received, ttl, principal, params, result })
    }

    /// A clock that went back makes it stale.
    fn is_fresh(&self, now: Millis) -> bool {
        now.wrapping_sub(self.received) < self.ttl
    }
}

/// Results in memory that is lent or grows up to its limit; the oldest make room for new ones.
#[derive(Debug)]
pub struct Cache<'m> {
    records: Records<'m>,
}

impl<'m> Cache<'m> {
    /// An empty cache in `store`.
    #[must_use]
    pub const fn new(store: Store<'m>) -> Self {
        Cache { records: Records::new(store) }
    }

    /// The result for a key, if there is one that is still fresh.
    #[must_use]
    pub fn get(&self, key: Key<'_>, now: Millis) -> Option<Raw<'_>> {
        let kind = key.kind()?;
        let entries =
            self.records.iter().filter(|record| record.kind == kind).filter_map(|record| Entry::read(&record));
        let found = entries.filter(|entry| entry.is_fresh(now) && key.finds(entry)).last()?;
        Some(Raw::trusted(found.result))
    }

    /// Keeps a result that was received at `now`, in place of an older one; whether it is kept. It is not if the server did
    /// not allow it (no `ttlMs`, or none above 0), if it is not complete, if the method's results are not to be kept, or if
    /// it is larger than the store. A result without `cacheScope` is private.
    pub fn put(&mut self, key: Key<'_>, result: Raw<'_>, now: Millis) -> bool {
        let Some(kind) = key.kind().filter(|_| is_complete(result)) else { return false };
        self.remove(kind, |entry| key.finds(entry));
        let ttl = result.get("ttlMs").and_then(|ttl| ttl.u64()).unwrap_or(0);
        let scope = result.get("cacheScope").and_then(|scope| scope.text());
        let tag = if scope.is_some_and(|scope| scope.is("public")) { PUBLIC } else { PRIVATE };
        ttl > 0 && self.keep(kind, tag, key, result, [now, ttl]).is_some()
    }

    fn keep(&mut self, kind: u8, tag: u8, key: Key<'_>, result: Raw<'_>, times: [Millis; 2]) -> Option<()> {
        let (principal, params, result) = (key.principal, key.size(), result.as_bytes());
        let lengths = [u32::try_from(principal.len()).ok()?, u32::try_from(params).ok()?];
        let [now, _] = times;
        self.make_room(OVERHEAD + HEAD + principal.len() + params + result.len(), now)?;
        let at = self.records.begin(0, kind, tag).ok()?;
        let records = &mut self.records;
        let mut written = Ok(());
        let mut write = |bytes: &[u8]| written = written.and_then(|()| records.extend(at, bytes));
        times.iter().for_each(|time| write(&time.to_le_bytes()));
        lengths.iter().for_each(|length| write(&length.to_le_bytes()));
        write(principal);
        key.pieces(&mut write);
        write(result);
        // There was room; if there was not after all, there is no half of an entry.
        written.map_err(|_| self.records.drop_last(at)).ok()
    }

    /// Makes room for so many bytes: what is stale goes first, then the oldest. `None`, and nothing is lost, if there can
    /// never be so many.
    fn make_room(&mut self, size: usize, now: Millis) -> Option<()> {
        let most = self.records.limit().checked_sub(size)?;
        if self.records.used() > most {
            self.records.remove(|record| !Entry::read(record).is_some_and(|entry| entry.is_fresh(now)));
        }
        let mut surplus = self.records.used().saturating_sub(most);
        self.records.remove(|record| {
            let goes = surplus > 0;
            surplus = surplus.saturating_sub(if goes { OVERHEAD + record.data.len() } else { 0 });
            goes
        });
        Some(())
    }

    /// Forgets what a notification makes stale: `notifications/tools/list_changed`, `…/prompts/list_changed`,
    /// `…/resources/list_changed` (templates too), and `notifications/resources/updated` for what was read at that URI or
    /// above it. Others are ignored.
    pub fn notified(&mut self, method: Text<'_>, params: Option<Raw<'_>>) {
        match () {
            () if method.is("notifications/tools/list_changed") => self.forget(Method::ToolsList),
            () if method.is("notifications/prompts/list_changed") => self.forget(Method::PromptsList),
            () if method.is("notifications/resources/list_changed") => {
                self.forget(Method::ResourcesList);
                self.forget(Method::TemplatesList);
            }
            () if method.is("notifications/resources/updated") => {
                match params.and_then(|params| params.get("uri")?.text()) {
                    Some(uri) => self.updated(uri),
                    None => self.forget(Method::ResourcesRead),
                }
            }
            () => {}
        }
    }

    /// Forgets what was read at a URI or above it: what changed may be a part of what was asked for.
    fn updated(&mut self, uri: Text<'_>) {
        let Some(kind) = kind_of(Method::ResourcesRead) else { return };
        self.remove(kind, |entry| {
            let read = Raw::trusted(entry.params).get("uri").and_then(|read| read.text());
            let mut changed = uri.chars();
            read.is_none_or(|read| read.chars().all(|c| changed.next() == Some(c)))
        });
    }

    /// Forgets all results of a method, for everyone: all pages of a list whose cursor the server did not know any more,
    /// or the tools after a call that failed because there is no such tool.
    pub fn forget(&mut self, method: Method) {
        if let Some(kind) = kind_of(method) {
            self.remove(kind, |_| true);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.records.remove(|_| true);
    }

    fn remove(&mut self, kind: u8, which: impl Fn(&Entry<'_>) -> bool) {
        self.records.remove(|record| record.kind == kind && Entry::read(record).is_none_or(|entry| which(&entry)));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    fn text(raw: &str) -> Text<'_> {
        Text::new(raw.as_bytes(), raw.contains('\\'))
    }

    const PUBLIC_LIST: &str = r#"{"tools":[],"ttlMs":100,"cacheScope":"public"}"#;
    const PRIVATE_LIST: &str = r#"{"tools":[1],"ttlMs":100,"cacheScope":"private"}"#;
    const TOOLS: Key<'_> = Key::new(Method::ToolsList, None);

    fn read<'k>(params: &'k str) -> Key<'k> {
        Key::new(Method::ResourcesRead, Some(raw(params)))
    }

    #[test]
    fn fresh_until_the_time_is_over() {
        let mut memory = [0; 512];
        let mut cache = Cache::new(Store::from(&mut memory));
        assert!(cache.put(TOOLS, raw(PUBLIC_LIST), u64::MAX - 10));
        assert_eq!(cache.get(TOOLS, u64::MAX).unwrap().as_str(), PUBLIC_LIST);
        assert!(cache.get(TOOLS, 88).is_some(), "the clock wraps around");
        assert!(cache.get(TOOLS, 89).is_none());
        assert!(cache.get(TOOLS, u64::MAX - 11).is_none(), "the clock went back");
    }

    #[test]
    fn what_is_not_kept() {
        let mut memory = [0; 512];
        let mut cache = Cache::new(Store::from(&mut memory));
        for result in [
            r#"{"tools":[]}"#,
            r#"{"tools":[],"ttlMs":0}"#,
            r#"{"tools":[],"ttlMs":-5}"#,
            r#"{"tools":[],"ttlMs":"100"}"#,
            r#"{"resultType":"input_required","ttlMs":100}"#,
            r#"{"resultType":7,"ttlMs":100}"#,
        ] {
            assert!(!cache.put(TOOLS, raw(result), 0), "{result}");
            assert!(cache.get(TOOLS, 0).is_none(), "{result}");
        }
        let call = Key::new(Method::ToolsCall, None);
        assert!(!cache.put(call, raw(PUBLIC_LIST), 0) && cache.get(call, 0).is_none());
        for retry in [r#"{"uri":"a:b","inputResponses":{}}"#, r#"{"uri":"a:b","requestState":"s"}"#] {
            assert!(!cache.put(read(retry), raw(PUBLIC_LIST), 0) && cache.get(read(retry), 0).is_none());
        }
        // The same key, by what the engine tells of it.
        assert!(!cache.put(TOOLS.retried(true), raw(PUBLIC_LIST), 0) && cache.get(TOOLS, 0).is_none());
        assert!(cache.put(TOOLS.retried(false), raw(PUBLIC_LIST), 0) && cache.get(TOOLS.retried(true), 0).is_none());
    }

    #[test]
    fn the_key_is_method_and_params() {
        let mut memory = [0; 512];
        let mut cache = Cache::new(Store::from(&mut memory));
        assert!(cache.put(read(r#"{"uri":"a:b","_meta":{"progressToken":1}}"#), raw(PUBLIC_LIST), 0));
        assert!(cache.get(read(r#"{"_meta":{"progressToken":2},"uri":"a:b"}"#), 0).is_some());
        for other in [r#"{"uri":"a:c"}"#, r#"{"uri":"a:bb"}"#, r#"{"uri":"a:b","x":1}"#, "{}", r#"{"uri":"a:"}"#] {
            assert!(cache.get(read(other), 0).is_none(), "{other}");
        }
        assert!(cache.get(Key::new(Method::ResourcesList, Some(raw(r#"{"uri":"a:b"}"#))), 0).is_none());
        assert!(cache.put(TOOLS, raw(PUBLIC_LIST), 0));
        assert!(cache.get(Key::new(Method::ToolsList, Some(raw(r#"{"_meta":{}}"#))), 0).is_some());
        assert!(cache.get(Key::new(Method::ToolsList, Some(raw(r#"{"cursor":""}"#))), 0).is_none());
    }

    #[test]
    fn private_results_are_for_their_principal() {
        let mut memory = [0; 512];
        let mut cache = Cache::new(Store::from(&mut memory));
        let (one, two) = (TOOLS.principal(b"one"), TOOLS.principal(b"two"));
        assert!(cache.put(one, raw(PRIVATE_LIST), 0));
        assert!(cache.get(one, 0).is_some());
        assert!(cache.get(two, 0).is_none() && cache.get(TOOLS, 0).is_none());
        assert!(cache.put(two, raw(PUBLIC_LIST), 0));
        assert_eq!(cache.get(TOOLS, 0).unwrap().as_str(), PUBLIC_LIST);
        assert!(cache.put(one, raw(r#"{"ttlMs":5}"#), 0), "no scope");
        assert!(cache.get(TOOLS, 0).is_none(), "an older one that all could see is replaced");
        assert!(cache.get(one, 0).is_some());
    }

    #[test]
    fn a_newer_result_replaces_an_older_one_even_if_it_is_not_kept() {
        let mut memory = [0; 512];
        let mut cache = Cache::new(Store::from(&mut memory));
        assert!(cache.put(TOOLS, raw(PUBLIC_LIST), 0));
        let used = cache.records.used();
        assert!(cache.put(TOOLS, raw(PUBLIC_LIST), 1));
        assert_eq!(cache.records.used(), used);
        assert!(!cache.put(TOOLS, raw(r#"{"tools":[]}"#), 2));
        assert_eq!(cache.records.used(), 0);
    }

    #[test]
    fn the_stale_and_then_the_oldest_make_room() {
        let uris = [r#"{"uri":"a:1"}"#, r#"{"uri":"a:2"}"#, r#"{"uri":"a:3"}"#, r#"{"uri":"a:4"}"#];
        let [one, two, three, four] = uris.map(read);
        let size = OVERHEAD + HEAD + uris[0].len() + PUBLIC_LIST.len();
        let mut memory = std::vec![0; 3 * size];
        let mut cache = Cache::new(Store::from(memory.as_mut_slice()));
        let short = PUBLIC_LIST.replace("100", "010").replace("010", "10 ");
        assert!(cache.put(one, raw(PUBLIC_LIST), 0));
        assert!(cache.put(two, raw(&short), 0));
        assert!(cache.put(three, raw(PUBLIC_LIST), 0));
        assert!(cache.put(four, raw(PUBLIC_LIST), 50));
        let there = |cache: &Cache<'_>| [one, two, three, four].map(|key| cache.get(key, 50).is_some());
        assert_eq!(there(&cache), [true, false, true, true]);
        assert!(cache.put(two, raw(PUBLIC_LIST), 50));
        assert_eq!(there(&cache), [false, true, true, true]);
        let large = format!(r#"{{"ttlMs":9,"x":"{}"}}"#, "x".repeat(3 * size));
        assert!(!cache.put(one, raw(&large), 50));
        assert_eq!(there(&cache), [false, true, true, true], "nothing is lost for what does not fit");
    }

    #[test]
    fn notifications_make_stale() {
        let mut memory = [0; 1024];
        let mut cache = Cache::new(Store::from(&mut memory));
        let keys = [
            TOOLS,
            Key::new(Method::PromptsList, None),
            Key::new(Method::ResourcesList, None),
            Key::new(Method::TemplatesList, None),
            read(r#"{"uri":"a:b/c"}"#),
            read(r#"{"uri":"a:x"}"#),
        ];
        let mut left = |method: &str, params: Option<&str>| {
            cache.clear();
            assert!(keys.iter().all(|&key| cache.put(key, raw(PUBLIC_LIST), 0)));
            cache.notified(text(method), params.map(raw));
            keys.map(|key| cache.get(key, 0).is_some())
        };
        assert_eq!(left("notifications/message", None), [true; 6]);
        assert_eq!(left("notifications/tools/list_changed", None), [false, true, true, true, true, true]);
        assert_eq!(left("notifications/prompts/list_changed", None), [true, false, true, true, true, true]);
        assert_eq!(left("notifications/resources/list_changed", None), [true, true, false, false, true, true]);
        let updated = "notifications/resources/updated";
        assert_eq!(left(updated, Some(r#"{"uri":"a:b\/c"}"#)), [true, true, true, true, false, true]);
        assert_eq!(left(updated, Some(r#"{"uri":"a:b/c/d"}"#)), [true, true, true, true, false, true]);
        assert_eq!(left(updated, Some(r#"{"uri":"a:b"}"#)), [true; 6]);
        assert_eq!(left(updated, None), [true, true, true, true, false, false]);
    }

    #[test]
    fn no_memory_no_cache() {
        let mut cache = Cache::new(Store::none());
        assert!(!cache.put(TOOLS, raw(PUBLIC_LIST), 0) && cache.get(TOOLS, 0).is_none());
    }
}
