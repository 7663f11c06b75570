//! A cache for results with `ttlMs` (from 2026-07-28 on,
//! [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching)).
//!
//! The cache works beside the client: the application calls [`get`](ResponseCache::get) before a request, and
//! [`put`](ResponseCache::put) with the result. The cache reads `ttlMs` and `cacheScope` itself. It keeps no results of
//! older servers, which have neither. One cache is for one server and one revision.
//!
//! The result of a retry, a request with `inputResponses` or `requestState`, depends on more than its key and is
//! not kept. The client sends retries by itself: give `retried` of [`ClientEvent::Done`](super::ClientEvent::Done) to
//! [`CacheKey::retried`]. With the params of a retry in its [`CacheKey`] the cache keeps and finds nothing.
//!
//! ```
//! use mcp_sansio::client::cache::{ResponseCache, CacheKey};
//! use mcp_sansio::json::Raw;
//! use mcp_sansio::protocol::Method;
//! use mcp_sansio::memory::Store;
//!
//! let mut memory = [0; 512];
//! let mut cache = ResponseCache::new(Store::from(&mut memory));
//! let key = CacheKey::new(Method::ToolsList, None);
//!
//! let result = Raw::constant(r#"{"resultType":"complete","tools":[],"ttlMs":300000,"cacheScope":"public"}"#);
//! assert!(cache.put(key, result, 1_000));
//! assert!(cache.get(key, 300_999).is_some());
//! assert!(cache.get(key, 301_000).is_none()); // stale
//! ```

use super::ChangeNotification;
use crate::json::Raw;
use crate::memory::Store;
use crate::memory::records::{OVERHEAD, Record, Records};
use crate::protocol::Method;
use crate::rpc::is_complete;
use crate::time::Millis;

/// The methods whose results may be kept. Their index is the kind of a record.
const CACHEABLE: [Method; 6] = [
    Method::Discover,
    Method::ToolsList,
    Method::PromptsList,
    Method::ResourcesList,
    Method::TemplatesList,
    Method::ResourcesRead,
];

/// The key of a result: method, params, and principal.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct CacheKey<'k> {
    method: Method,
    params: Option<Raw<'k>>,
    principal: &'k [u8],
    retried: bool,
}

impl<'k> CacheKey<'k> {
    /// Returns the key of a method and its params without `_meta`. Other members must match byte for byte:
    /// another order or other white space only costs a request.
    pub const fn new(method: Method, params: Option<Raw<'k>>) -> Self {
        CacheKey { method, params, principal: &[], retried: false }
    }

    crate::const_setters! {
        /// Sets the principal of the request: bytes that differ between authorization contexts, for example a digest
        /// of the access token. The cache keeps a copy, so do not use the token itself. Results with the scope
        /// `private` are found only with the same principal, all others with any.
        principal(principal: &'k [u8]) => principal = principal;
        /// Marks the request as a retry: `retried` of [`ClientEvent::Done`](super::ClientEvent::Done). With `true` the cache
        /// keeps and finds nothing.
        retried(retried: bool) => retried = retried;
    }

    /// Returns the index of the method in [`CACHEABLE`], if the result may be kept.
    fn kind(&self) -> Option<u8> {
        let retry = |params: Raw<'_>| {
            params.members().any(|(key, _)| key.eq_str("inputResponses") || key.eq_str("requestState"))
        };
        if self.retried || self.params.is_some_and(retry) {
            return None;
        }
        kind_of(self.method)
    }

    /// Gives the params without `_meta` to `each`, as the pieces of an object.
    fn pieces(&self, mut each: impl FnMut(&[u8])) {
        let members = self.params.map(|params| params.members());
        let mut before: &[u8] = b"{\"";
        for (key, value) in members.into_iter().flatten().filter(|(key, _)| !key.eq_str("_meta")) {
            each(before);
            each(key.raw());
            each(b"\":");
            each(value.as_bytes());
            before = b",\"";
        }
        each(if before == b"{\"" { b"{}" } else { b"}" });
    }

    /// Returns `true` if an entry has this key.
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

/// A kept result as its record has it.
struct Entry<'r> {
    received: Millis,
    ttl: Millis,
    /// `None` for the scope `public`.
    principal: Option<&'r [u8]>,
    params: &'r [u8],
    result: &'r [u8],
}

/// The bytes before principal, params and result: time of receipt, time to live, and the lengths of the first
/// two.
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

    /// An entry is stale too if the clock goes back.
    fn is_fresh(&self, now: Millis) -> bool {
        now.wrapping_sub(self.received) < self.ttl
    }
}

/// Results in borrowed memory, or in memory that grows up to its limit. New results replace the oldest.
///
/// Keep one cache for each user: see [Caches](crate::duties::client#caches).
#[derive(Debug)]
pub struct ResponseCache<'m> {
    records: Records<'m>,
}

impl<'m> ResponseCache<'m> {
    /// Returns an empty cache in `store`.
    #[must_use]
    pub const fn new(store: Store<'m>) -> Self {
        ResponseCache { records: Records::new(store) }
    }

    /// Returns the result of a key at the time `now` in milliseconds, if it is fresh.
    #[must_use]
    pub fn get(&self, key: CacheKey<'_>, now: Millis) -> Option<Raw<'_>> {
        let kind = key.kind()?;
        let entries =
            self.records.iter().filter(|record| record.kind == kind).filter_map(|record| Entry::read(&record));
        let found = entries.filter(|entry| entry.is_fresh(now) && key.finds(entry)).last()?;
        Some(Raw::trusted(found.result))
    }

    /// Keeps a result that came at the time `now`, in place of an older one. A result without `cacheScope` is
    /// private.
    ///
    /// Returns `false` if it does not keep the result: it has no `ttlMs` above 0 or is not complete, its method
    /// does not allow it, or it is larger than the store.
    pub fn put(&mut self, key: CacheKey<'_>, result: Raw<'_>, now: Millis) -> bool {
        let Some(kind) = key.kind().filter(|_| is_complete(result)) else { return false };
        self.remove(kind, |entry| key.finds(entry));
        let ttl = result.get("ttlMs").and_then(|ttl| ttl.u64()).unwrap_or(0);
        let scope = result.get("cacheScope").and_then(|scope| scope.text());
        let tag = if scope.is_some_and(|scope| scope.eq_str("public")) { PUBLIC } else { PRIVATE };
        ttl > 0 && self.keep(kind, tag, key, result, [now, ttl]).is_some()
    }

    fn keep(&mut self, kind: u8, tag: u8, key: CacheKey<'_>, result: Raw<'_>, times: [Millis; 2]) -> Option<()> {
        let (principal, mut params, result) = (key.principal, 0, result.as_bytes());
        key.pieces(|piece| params += piece.len());
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
        // `make_room` has made the room; without it the cache must not keep half of an entry.
        written.map_err(|_| self.records.drop_last(at)).ok()
    }

    /// Makes room for `size` bytes: removes the stale entries first, then the oldest. Returns `None` and removes
    /// nothing if the store is too small.
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

    /// Removes the results that a [change](super::ClientEvent::Changed) makes stale: those of a list (for resources
    /// those of templates too), or of a resource and of URIs that its URI begins with, because the changed resource
    /// may be a part of them.
    pub fn changed(&mut self, what: &ChangeNotification<'_>) {
        match what {
            ChangeNotification::Tools => self.forget(Method::ToolsList),
            ChangeNotification::Prompts => self.forget(Method::PromptsList),
            ChangeNotification::Resources => {
                self.forget(Method::ResourcesList);
                self.forget(Method::TemplatesList);
            }
            ChangeNotification::Resource(uri) => {
                let Some(kind) = kind_of(Method::ResourcesRead) else { return };
                self.remove(kind, |entry| {
                    let read = Raw::trusted(entry.params).get("uri").and_then(|read| read.text());
                    let mut changed = uri.chars();
                    read.is_none_or(|read| read.chars().all(|c| changed.next() == Some(c)))
                });
            }
        }
    }

    /// Removes all results of a method. Call it when the server does not know a cursor any more (for the list),
    /// or when a call fails because the tool does not exist (for `tools/list`).
    pub fn forget(&mut self, method: Method) {
        if let Some(kind) = kind_of(method) {
            self.remove(kind, |_| true);
        }
    }

    /// Removes all results.
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

    fn text(raw: &str) -> crate::json::Text<'_> {
        crate::json::Text::new(raw.as_bytes(), raw.contains('\\'))
    }

    const PUBLIC_LIST: &str = r#"{"tools":[],"ttlMs":100,"cacheScope":"public"}"#;
    const PRIVATE_LIST: &str = r#"{"tools":[1],"ttlMs":100,"cacheScope":"private"}"#;
    const TOOLS: CacheKey<'_> = CacheKey::new(Method::ToolsList, None);

    fn read<'k>(params: &'k str) -> CacheKey<'k> {
        CacheKey::new(Method::ResourcesRead, Some(raw(params)))
    }

    // spec: B074 S081 S092
    #[test]
    fn fresh_until_the_time_is_over() {
        let mut memory = [0; 512];
        let mut cache = ResponseCache::new(Store::from(&mut memory));
        assert!(cache.put(TOOLS, raw(PUBLIC_LIST), u64::MAX - 10));
        assert_eq!(cache.get(TOOLS, u64::MAX).unwrap().as_str(), PUBLIC_LIST);
        assert!(cache.get(TOOLS, 88).is_some(), "the clock wraps around");
        assert!(cache.get(TOOLS, 89).is_none());
        assert!(cache.get(TOOLS, u64::MAX - 11).is_none(), "the clock went back");
    }

    // spec: S072 S091 S093 S094
    #[test]
    fn what_is_not_kept() {
        let mut memory = [0; 512];
        let mut cache = ResponseCache::new(Store::from(&mut memory));
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
        let call = CacheKey::new(Method::ToolsCall, None);
        assert!(!cache.put(call, raw(PUBLIC_LIST), 0) && cache.get(call, 0).is_none());
        for retry in [r#"{"uri":"a:b","inputResponses":{}}"#, r#"{"uri":"a:b","requestState":"s"}"#] {
            assert!(!cache.put(read(retry), raw(PUBLIC_LIST), 0) && cache.get(read(retry), 0).is_none());
        }
        // The same key, with the client's own mark of a retry.
        assert!(!cache.put(TOOLS.retried(true), raw(PUBLIC_LIST), 0) && cache.get(TOOLS, 0).is_none());
        assert!(cache.put(TOOLS.retried(false), raw(PUBLIC_LIST), 0) && cache.get(TOOLS.retried(true), 0).is_none());
    }

    // spec: S071
    #[test]
    fn the_key_is_method_and_params() {
        let mut memory = [0; 512];
        let mut cache = ResponseCache::new(Store::from(&mut memory));
        assert!(cache.put(read(r#"{"uri":"a:b","_meta":{"progressToken":1}}"#), raw(PUBLIC_LIST), 0));
        assert!(cache.get(read(r#"{"_meta":{"progressToken":2},"uri":"a:b"}"#), 0).is_some());
        for other in [r#"{"uri":"a:c"}"#, r#"{"uri":"a:bb"}"#, r#"{"uri":"a:b","x":1}"#, "{}", r#"{"uri":"a:"}"#] {
            assert!(cache.get(read(other), 0).is_none(), "{other}");
        }
        assert!(cache.get(CacheKey::new(Method::ResourcesList, Some(raw(r#"{"uri":"a:b"}"#))), 0).is_none());
        assert!(cache.put(TOOLS, raw(PUBLIC_LIST), 0));
        assert!(cache.get(CacheKey::new(Method::ToolsList, Some(raw(r#"{"_meta":{}}"#))), 0).is_some());
        assert!(cache.get(CacheKey::new(Method::ToolsList, Some(raw(r#"{"cursor":""}"#))), 0).is_none());
    }

    // spec: S073
    #[test]
    fn private_results_are_for_their_principal() {
        let mut memory = [0; 512];
        let mut cache = ResponseCache::new(Store::from(&mut memory));
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
        let mut cache = ResponseCache::new(Store::from(&mut memory));
        assert!(cache.put(TOOLS, raw(PUBLIC_LIST), 0));
        let used = cache.records.used();
        assert!(cache.put(TOOLS, raw(PUBLIC_LIST), 1));
        assert_eq!(cache.records.used(), used);
        assert!(!cache.put(TOOLS, raw(r#"{"tools":[]}"#), 2));
        assert_eq!(cache.records.used(), 0);
    }

    #[test]
    fn nothing_is_left_when_it_is_cleared() {
        let mut memory = [0; 512];
        let mut cache = ResponseCache::new(Store::from(&mut memory));
        let one = read(r#"{"uri":"a:b"}"#);
        assert!(cache.put(TOOLS, raw(PUBLIC_LIST), 0) && cache.put(one, raw(PUBLIC_LIST), 0));
        cache.clear();
        assert!(cache.get(TOOLS, 0).is_none() && cache.get(one, 0).is_none());
        assert_eq!(cache.records.used(), 0);
    }

    #[test]
    fn the_stale_and_then_the_oldest_make_room() {
        let uris = [r#"{"uri":"a:1"}"#, r#"{"uri":"a:2"}"#, r#"{"uri":"a:3"}"#, r#"{"uri":"a:4"}"#];
        let [one, two, three, four] = uris.map(read);
        let size = OVERHEAD + HEAD + uris[0].len() + PUBLIC_LIST.len();
        let mut memory = std::vec![0; 3 * size];
        let mut cache = ResponseCache::new(Store::from(memory.as_mut_slice()));
        let short = PUBLIC_LIST.replace("100", "010").replace("010", "10 ");
        assert!(cache.put(one, raw(PUBLIC_LIST), 0));
        assert!(cache.put(two, raw(&short), 0));
        assert!(cache.put(three, raw(PUBLIC_LIST), 0));
        assert!(cache.put(four, raw(PUBLIC_LIST), 50));
        let there = |cache: &ResponseCache<'_>| [one, two, three, four].map(|key| cache.get(key, 50).is_some());
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
        let mut cache = ResponseCache::new(Store::from(&mut memory));
        let keys = [
            TOOLS,
            CacheKey::new(Method::PromptsList, None),
            CacheKey::new(Method::ResourcesList, None),
            CacheKey::new(Method::TemplatesList, None),
            read(r#"{"uri":"a:b/c"}"#),
            read(r#"{"uri":"a:x"}"#),
        ];
        let mut left = |what: ChangeNotification<'_>| {
            cache.clear();
            assert!(keys.iter().all(|&key| cache.put(key, raw(PUBLIC_LIST), 0)));
            cache.changed(&what);
            keys.map(|key| cache.get(key, 0).is_some())
        };
        assert_eq!(left(ChangeNotification::Tools), [false, true, true, true, true, true]);
        assert_eq!(left(ChangeNotification::Prompts), [true, false, true, true, true, true]);
        assert_eq!(left(ChangeNotification::Resources), [true, true, false, false, true, true]);
        let mut updated = |uri| left(ChangeNotification::Resource(text(uri)));
        assert_eq!(updated(r"a:b\/c"), [true, true, true, true, false, true]);
        assert_eq!(updated("a:b/c/d"), [true, true, true, true, false, true]);
        assert_eq!(updated("a:b"), [true; 6]);
    }

    #[test]
    fn no_memory_no_cache() {
        let mut cache = ResponseCache::new(Store::none());
        assert!(!cache.put(TOOLS, raw(PUBLIC_LIST), 0) && cache.get(TOOLS, 0).is_none());
    }
}
