//! The checks of a resource server, with tokens, key sets and proofs made from the fuzzer's bytes. A signature is the `x` of
//! the key that made it, so that a model can say which tokens are good.

use arbitrary::{Result, Unstructured};
use mcp_sansio::json::Raw;
use mcp_sansio_auth::dpop::{ProofCheck, ProofError, ReplayEntry, ReplayTable};
use mcp_sansio_auth::jose::{Jwk, Jwks, Jws, Verifier};
use mcp_sansio_auth::resource_server::{
    AccessToken, PresentedToken, ResourceServer, TokenError, TokenScheme, TrustedIssuer,
};
use mcp_sansio_http::endpoint::RequestHead;

const RESOURCE: &str = "https://h.example/mcp";
const NOW: u64 = 1_700_000_000;
/// A token and its hash (RFC 9449, section 7.1).
const TOKEN: &str = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
const HASH: &str = "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo";
/// The keys of two issuers.
const KEYS: [&str; 2] = [
    r#"{"keys":[7,{"kty":"EC","crv":"P-256","kid":"one","x":"a1"},{"kty":"EC","crv":"P-256","kid":"two","x":"a2","use":"enc"}]}"#,
    r#"{"keys":[{"kty":"RSA","kid":"one","n":"b0","x":"b0"},{"kty":"EC","crv":"P-256","x":"b1","alg":"ES256"}]}"#,
];
/// Entries of the table of used proofs.
const ENTRIES: usize = 4;

/// Takes `x` of a key for its signature.
struct Named;

impl Verifier for Named {
    fn supports(&self, algorithm: &str) -> bool {
        algorithm == "ES256"
    }
    fn verify(&self, algorithm: &str, key: &Jwk<'_>, _: &[u8], signature: &[u8]) -> bool {
        assert_eq!(algorithm, "ES256");
        assert!(key.fits(algorithm));
        key.text("x").and_then(|x| x.plain()).is_some_and(|x| x.as_bytes() == signature)
    }
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let all = group.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..=group.len() {
            text.push(char::from(DIGITS[(all >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    text
}

fn compact(header: &str, claims: &str, signature: &str) -> String {
    [header, claims, signature].map(|part| base64url(part.as_bytes())).join(".")
}

/// Chooses one of several texts, the first one most of the time, and says whether it is that one.
fn one_of<'t>(u: &mut Unstructured<'_>, texts: &[&'t str]) -> Result<(&'t str, bool)> {
    let text = if u.ratio(4, 5)? { texts[0] } else { *u.choose(texts)? };
    Ok((text, text == texts[0]))
}

fn with_server<R>(act: impl FnOnce(&ResourceServer<'_>) -> R) -> R {
    let [first, second] = KEYS.map(|keys| Jwks::parse(keys.as_bytes()).expect("it is JSON"));
    let issuers = [TrustedIssuer::new("https://a.example", first), TrustedIssuer::new("https://b.example", second)];
    act(&ResourceServer::new(RESOURCE, &issuers, &[&Named]))
}

pub fn run(u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=4)? {
        0 => any_bytes(u.bytes(u.len())?),
        1 => proofs(u)?,
        2 => {
            while !u.is_empty() {
                introspected(u)?;
                presented(u)?;
            }
        }
        _ => {
            while !u.is_empty() {
                token(u)?;
            }
        }
    }
    Ok(())
}

/// Nothing panics, and nothing is accepted that has no good signature.
fn any_bytes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for space in [0, 7, bytes.len() * 3] {
        let mut space = vec![0; space];
        if let Ok(jws) = Jws::parse(&text, &mut space) {
            assert_eq!(text.split('.').count(), 3);
            assert!(jws.header.get("crit").is_none());
            let verifier: &dyn Verifier = &Named;
            assert!(jws.verifier(&[verifier]).is_none() || jws.algorithm == "ES256");
        }
    }
    with_server(|server| {
        let (mut space, mut other) = (vec![0; text.len()], vec![0; text.len()]);
        if let Err(error) = server.check_jwt(&text, NOW, &mut space) {
            let header = server.challenge(error, &["a"]).to_string();
            assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{header}");
        }
        if let Ok(found) = server.check_introspection(bytes, NOW) {
            let _ = (server.require(&found, &["a"]), format!("{found:?}"));
        }
        let mut entries = [ReplayEntry::FREE; ENTRIES];
        let mut table = ReplayTable::new(&mut entries);
        let check = ProofCheck::new("POST", RESOURCE, TOKEN, &[0; 32], NOW);
        assert!(check.check(&text, &[&Named], &mut table, &mut other).is_err(), "no key has this thumbprint");
    });
    let Ok(set) = Jwks::parse(bytes) else { return };
    for key in set.keys() {
        let mut space = [0; 64];
        let _ = (key.thumbprint(), key.is_private(), key.bytes("x", &mut space));
        assert!(!key.fits("ES256") || key.text("crv").is_some_and(|curve| curve.eq_str("P-256")));
    }
}

/// One access token, and a model that says whether it is good.
fn token(u: &mut Unstructured<'_>) -> Result<()> {
    let (typ, _) =
        one_of(u, &["\"at+jwt\"", "\"JWT\"", "\"application/at+jwt\"", "\"logout+jwt\"", "\"dpop+jwt\"", "7"])?;
    let (alg, alg_good) = one_of(u, &["ES256", "none", "HS256", "RS256", "es256", "ES384"])?;
    let (kid, _) = one_of(u, &["one", "two", "three", ""])?;
    let (iss, _) =
        one_of(u, &["https://a.example", "https://b.example", "https://a.example/", "https://evil.example"])?;
    let (aud, aud_good) =
        one_of(u, &["\"https://h.example/mcp\"", "\"https://h.example/mcp/\"", "\"https://h.example\"", "7", "[]"])?;
    let listed = u.ratio(1, 3)?;
    let aud = if listed { format!("[\"x\",{aud}]") } else { aud.to_owned() };
    let (exp, exp_good) = one_of(u, &["1700000100", "1699999971", "1699999970", "0", "\"1700000100\"", "-1", "1e99"])?;
    // It ended less than 30 seconds ago.
    let exp_good = exp_good || exp == "1699999971";
    let (nbf, _) = one_of(u, &["", "1700000030", "1700000031", "\"x\""])?;
    let (signature, _) = one_of(u, &["a1", "a2", "b0", "b1", "", "xx"])?;
    let (crit, crit_good) = one_of(u, &["", ",\"crit\":[]", ",\"crit\":[\"x\"]"])?;
    let kid_member = if kid.is_empty() { String::new() } else { format!(",\"kid\":\"{kid}\"") };
    let header = format!("{{\"typ\":{typ},\"alg\":\"{alg}\"{kid_member}{crit}}}");
    let nbf_member = if nbf.is_empty() { String::new() } else { format!(",\"nbf\":{nbf}") };
    // Without a key the token goes to any bearer; with one, it never does.
    let cnf = *u.choose(&["", "", ",\"cnf\":{\"jkt\":\"x\"}", ",\"cnf\":7"])?;
    let claims =
        format!("{{\"iss\":\"{iss}\",\"aud\":{aud},\"exp\":{exp}{nbf_member}{cnf},\"sub\":\"ann\",\"scope\":\"a b\"}}");
    let token = compact(&header, &claims, signature);
    // The only keys that may sign: `a1` of the first issuer by its name, `b1` of the second, which has no name.
    let signed = match iss {
        "https://a.example" => signature == "a1" && matches!(kid, "one" | ""),
        "https://b.example" => signature == "b1" && kid.is_empty(),
        _ => false,
    };
    let typ_good = matches!(typ, "\"at+jwt\"" | "\"JWT\"" | "\"application/at+jwt\"");
    let nbf_good = matches!(nbf, "" | "1700000030");
    let good = typ_good && alg_good && crit_good && aud_good && exp_good && nbf_good && signed;
    with_server(|server| {
        let mut space = vec![0; if u.ratio(1, 20)? { u.int_in_range(0..=99)? } else { token.len() }];
        let checked = server.check_jwt(&token, NOW, &mut space);
        match checked {
            Ok(found) => {
                assert!(good, "{header} {claims} {signature}");
                assert!(server.require(&found, &["b", "a"]).is_ok());
                assert_eq!(server.require(&found, &["a", "c"]), Err(TokenError::Scope));
                possession(server, &found, &token);
            }
            Err(error) => assert!(!good || space.len() < token.len(), "{error}: {header} {claims} {signature}"),
        }
        Ok(())
    })
}

/// An answer of an introspection endpoint, and a model that says whether it is good.
fn introspected(u: &mut Unstructured<'_>) -> Result<()> {
    let (active, active_good) = one_of(u, &["\"active\":true", "\"active\":false", "\"active\":1", "\"x\":0"])?;
    let (iss, iss_good) = one_of(
        u,
        &[",\"iss\":\"https://a.example\"", ",\"iss\":\"https://b.example\"", "", ",\"iss\":\"x\"", ",\"iss\":7"],
    )?;
    let (aud, aud_good) = one_of(u, &[",\"aud\":\"https://h.example/mcp\"", "", ",\"aud\":[]", ",\"aud\":\"x\""])?;
    let (exp, exp_good) = one_of(u, &["", ",\"exp\":1699999971", ",\"exp\":1699999970", ",\"exp\":\"1700000100\""])?;
    let (nbf, nbf_good) = one_of(u, &["", ",\"nbf\":1700000030", ",\"nbf\":1700000031"])?;
    let asks = u.arbitrary()?;
    let answer = format!("{{{active}{iss}{aud}{exp}{nbf},\"sub\":\"ann\"}}");
    let iss_good = iss_good || iss.is_empty() || iss.contains("//b");
    let aud_good = aud_good || (asks && aud.is_empty());
    let times_good = (exp_good || exp.ends_with('1')) && (nbf_good || nbf.ends_with("30"));
    with_server(|server| {
        let found = server.trust_asked_audience(asks).check_introspection(answer.as_bytes(), NOW);
        assert_eq!(found.is_ok(), active_good && iss_good && aud_good && times_good, "{answer} {:?}", found.err());
        if let Ok(found) = found {
            assert!(found.subject().is_some_and(|name| name.eq_str("ann")) && found.principal().is_some());
        }
    });
    Ok(())
}

/// The headers of a request that presents a token, and a model that says which one it is.
fn presented(u: &mut Unstructured<'_>) -> Result<()> {
    let mut values = Vec::new();
    for _ in 0..*u.choose(&[1, 1, 1, 0, 2])? {
        let scheme = *u.choose(&["Bearer", "bEARER", "DPoP", "dpop", "Basic"])?;
        let len = u.int_in_range(0..=4)?;
        let token = if u.arbitrary()? { b"a-._~+/=Z9" } else { u.bytes(u.len().min(len))? };
        values.push((scheme, token, [scheme.as_bytes(), token].join(&b' ')));
    }
    let query = *u.choose(&[None, None, Some("a=b"), Some("a=b&access_token=x"), Some("xaccess_token=x")])?;
    let mut headers: Vec<(&str, &[u8])> = values.iter().map(|(.., value)| ("authorization", &value[..])).collect();
    headers.extend((0..u.int_in_range(0..=2)?).map(|_| ("dpop", &b" p "[..])));
    let headers = &headers[..];
    let head = RequestHead::new("POST", "/mcp", query, &headers);
    let found = PresentedToken::read(&head).map(|found| (found.scheme, found.token.to_owned()));
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-'..=b'/' | b'_' | b'~' | b'+' | b'=');
    let expected = match (&values[..], query) {
        (_, Some("a=b&access_token=x")) => Err(TokenError::Malformed),
        ([], _) => Err(TokenError::Missing),
        ([(scheme, token, _)], _) => match (str::from_utf8(token).map(str::trim_ascii), *scheme) {
            (Err(_), _) => Err(TokenError::Malformed),
            (_, "Basic") => Err(TokenError::Missing),
            (Ok(token), _) if token.is_empty() || !token.bytes().all(is_good) => Err(TokenError::Malformed),
            (Ok(token), "DPoP" | "dpop") => Ok((TokenScheme::Dpop, token.to_owned())),
            (Ok(token), _) => Ok((TokenScheme::Bearer, token.to_owned())),
        },
        _ => Err(TokenError::Malformed),
    };
    assert_eq!(found, expected, "{values:?} {query:?}");
    Ok(())
}

/// A good token, as it comes in the head of a request.
fn possession(server: &ResourceServer<'_>, found: &AccessToken<'_>, token: &str) {
    let mut entries = [ReplayEntry::FREE; 1];
    let is_bound = found.claims.get("cnf").is_some();
    for (scheme, expected) in [
        ("Bearer", if is_bound { Some(TokenError::Bound) } else { None }),
        ("dpop", Some(if is_bound { TokenError::Bound } else { TokenError::Unbound })),
    ] {
        let value = format!("{scheme} {token}");
        let headers: &[(&str, &[u8])] = &[("authorization", value.as_bytes())];
        let head = RequestHead::new("POST", "/mcp", None, &headers);
        let presented = PresentedToken::read(&head).expect("it is a token");
        assert_eq!(presented.token, token);
        let mut table = ReplayTable::new(&mut entries);
        let checked = server.check_possession(&presented, found, "POST", NOW, &mut table, &mut [0; 64]);
        assert_eq!(checked.err(), expected, "{scheme}");
    }
}

/// Proofs of one key, one after the other: each is good once.
fn proofs(u: &mut Unstructured<'_>) -> Result<()> {
    const KEY: &str = r#"{"kty":"EC","crv":"P-256","x":"k1","y":"k2"}"#;
    let bound = Jwk::new(Raw::constant(KEY)).and_then(|key| key.thumbprint()).expect("the key has all members");
    let mut entries = [ReplayEntry::FREE; ENTRIES];
    let mut table = ReplayTable::new(&mut entries);
    // The model of the table: an id and the last second in which it counts.
    let (mut used, mut last): ([(&str, u64); ENTRIES], usize) = ([("", 0); ENTRIES], 0);
    let mut now = NOW;
    while !u.is_empty() {
        now = now.saturating_add_signed(*u.choose(&[0, 0, 1, 60, 300, -60])?);
        let (typ, typ_good) = one_of(u, &["dpop+jwt", "JWT"])?;
        let (alg, alg_good) = one_of(u, &["ES256", "none", "HS256"])?;
        let (key, key_good) = one_of(
            u,
            &[
                KEY,
                r#"{"kty":"EC","crv":"P-256","x":"k3","y":"k2"}"#,
                r#"{"kty":"EC","crv":"P-256","x":"k1","y":"k2","d":"k4"}"#,
                r#"{"kty":"oct","x":"k1","k":"k1"}"#,
                "\"k1\"",
            ],
        )?;
        let (method, method_good) = one_of(u, &["POST", "GET", "post"])?;
        let (url, url_good) =
            one_of(u, &[RESOURCE, "https://h.example/mcp/", "http://h.example/mcp", "https://evil.example/mcp"])?;
        let (ath, ath_good) = one_of(u, &[HASH, "", "x"])?;
        let (nonce, nonce_good) = one_of(u, &["n", "m", ""])?;
        let id = *u.choose(&["i1", "i2", "i3", "i4", "i5", "i6"])?;
        let issued = now.saturating_add_signed(*u.choose(&[0, 0, 0, 299, -299, 301, -301])?);
        let (signature, signature_good) = one_of(u, &["k1", "k3", ""])?;
        let header = format!("{{\"typ\":\"{typ}\",\"alg\":\"{alg}\",\"jwk\":{key}}}");
        let claims = format!(
            "{{\"jti\":\"{id}\",\"htm\":\"{method}\",\"htu\":\"{url}\",\"iat\":{issued},\"ath\":\"{ath}\",\"nonce\":\"{nonce}\"}}"
        );
        let proof = compact(&header, &claims, signature);
        let good =
            typ_good && alg_good && key_good && method_good && url_good && ath_good && nonce_good && signature_good;
        let good = good && issued.abs_diff(now) <= 300;
        let accepts = |nonce: &str| nonce == "n";
        let check = ProofCheck::new("POST", RESOURCE, TOKEN, &bound, now).nonce(&accepts);
        let mut space = vec![0; proof.len()];
        let found = check.check(&proof, &[&Named], &mut table, &mut space);
        let expected = if !good {
            None
        } else if used.iter().any(|(known, until)| *known == id && *until >= now) {
            Some(Err(ProofError::Replayed))
        } else {
            // The search begins where the last one ended.
            match (last..ENTRIES).chain(0..last).find(|at| used[*at].1 < now) {
                Some(free) => {
                    (used[free], last) = ((id, issued + 300), free);
                    Some(Ok(()))
                }
                None => Some(Err(ProofError::TableFull)),
            }
        };
        match expected {
            None => assert!(found.is_err(), "{header} {claims} {signature}"),
            Some(expected) => assert_eq!(found, expected, "{header} {claims} {signature}"),
        }
    }
    Ok(())
}
