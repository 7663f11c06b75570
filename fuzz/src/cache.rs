//! A cache of results beside a model: what it gives is what was kept last for that key, fresh, and not of another principal.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use mcp_sansio::client::ChangeNotification;
use mcp_sansio::client::cache::{CacheKey, ResponseCache};
use mcp_sansio::json::Raw;
use mcp_sansio::memory::Store;
use mcp_sansio::protocol::Method;

const METHODS: [Method; 6] = [
    Method::ToolsList,
    Method::PromptsList,
    Method::ResourcesList,
    Method::TemplatesList,
    Method::ResourcesRead,
    Method::ToolsCall,
];
const PARAMS: [Option<&str>; 7] = [
    None,
    Some("{}"),
    Some(r#"{"uri":"a:b"}"#),
    Some(r#"{"uri":"a:b","_meta":{"x":1}}"#),
    Some(r#"{"uri":"a:b/c"}"#),
    Some(r#"{"_meta":{},"cursor":"2"}"#),
    Some(r#"{"uri":"a:b","requestState":"s"}"#),
];
const PRINCIPALS: [&[u8]; 3] = [b"", b"ann", b"bob"];

/// A result that may be in the cache: its text, the time until it is fresh, and its principal.
type Kept = (String, u64, Option<usize>);

/// The parts of a key that count: the method, params without `_meta`, principal.
fn part(params: Option<&str>) -> &str {
    match params {
        None | Some("{}") => "{}",
        Some(text) if text.contains("_meta") && text.contains("uri") => r#"{"uri":"a:b"}"#,
        Some(text) if text.contains("cursor") => "cursor",
        Some(text) => text,
    }
}

pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut memory = vec![0; u.int_in_range(0..=600)?];
    let mut cache = ResponseCache::new(Store::from(&mut memory[..]));
    let mut kept: BTreeMap<(usize, &str, usize), Kept> = BTreeMap::new();
    let (mut now, mut number) = (1_000_u64, 0);
    while !u.is_empty() {
        let (method, params, who) =
            (u.choose_index(METHODS.len())?, *u.choose(&PARAMS)?, u.choose_index(PRINCIPALS.len())?);
        let retried = u.ratio(1, 8)?;
        let raw = params.map(|text| Raw::parse(text.as_bytes()).expect("JSON"));
        let key = CacheKey::new(METHODS[method], raw).principal(PRINCIPALS[who]).retried(retried);
        let is_kept = method < 5 && !retried && !params.is_some_and(|text| text.contains("requestState"));
        match u.int_in_range(0..=6)? {
            0..=2 => {
                number += 1;
                let ttl = u.int_in_range(0..=300_u64)?;
                let scope = *u.choose(&["", r#","cacheScope":"public""#, r#","cacheScope":"private""#])?;
                let long = "x".repeat(u.int_in_range(0..=120)?);
                let text = format!(r#"{{"resultType":"complete","n":{number},"x":"{long}","ttlMs":{ttl}{scope}}}"#);
                let result = Raw::parse(text.as_bytes()).expect("JSON");
                let put = cache.put(key, result, now);
                assert!(!put || (is_kept && ttl > 0), "what may not be kept is");
                if is_kept {
                    // An older one that this key finds is gone, whether there was room or not.
                    kept.retain(|(a, b, _), (_, _, of)| {
                        !(*a == method && *b == part(params) && of.is_none_or(|of| of == who))
                    });
                }
                if put {
                    assert_eq!(cache.get(key, now).map(|found| found.as_str()), Some(text.as_str()));
                    let of = (!scope.contains("public")).then_some(who);
                    kept.insert((method, part(params), who), (text, now + ttl, of));
                }
            }
            3 => now += u.int_in_range(0..=200)?,
            4 => {
                let gone = match u.int_in_range(0..=5)? {
                    4 => {
                        cache.changed(&ChangeNotification::Prompts);
                        1..2
                    }
                    5 => {
                        // A change of a part is one of the whole.
                        let uri = *u.choose(&["a:b", "a:b/c", "a:", "x"])?;
                        let text = format!("\"{uri}\"");
                        let text = Raw::parse(text.as_bytes()).ok().and_then(|text| text.text());
                        cache.changed(&ChangeNotification::Resource(text.expect("a string")));
                        let is_of = |params: &str| {
                            serde_json::from_str::<serde_json::Value>(params)
                                .is_ok_and(|params| params["uri"].as_str().is_some_and(|read| !uri.starts_with(read)))
                        };
                        kept.retain(|(method, params, _), _| {
                            METHODS[*method] != Method::ResourcesRead || is_of(params)
                        });
                        0..0
                    }
                    0 => {
                        cache.changed(&ChangeNotification::Tools);
                        0..1
                    }
                    1 => {
                        cache.changed(&ChangeNotification::Resources);
                        2..4
                    }
                    2 => {
                        cache.forget(METHODS[method]);
                        method..method + 1
                    }
                    _ => {
                        cache.clear();
                        0..METHODS.len()
                    }
                };
                kept.retain(|(method, ..), _| !gone.contains(method));
            }
            _ => {
                if let Some(found) = cache.get(key, now) {
                    let known = kept.iter().any(|((a, b, _), (text, until, of))| {
                        *a == method
                            && *b == part(params)
                            && text == found.as_str()
                            && now < *until
                            && of.is_none_or(|of| of == who)
                    });
                    assert!(is_kept && known, "{} was not kept for this key", found.as_str());
                }
            }
        }
    }
    Ok(())
}
