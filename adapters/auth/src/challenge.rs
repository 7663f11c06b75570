//! The header `WWW-Authenticate`: challenges of [RFC 9110, section 11.6.1](https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1),
//! with the parameters of [RFC 6750](https://www.rfc-editor.org/rfc/rfc6750#section-3) and
//! [RFC 9728](https://www.rfc-editor.org/rfc/rfc9728#section-5.1).
//!
//! ```
//! use mcp_sansio_auth::challenge::challenges;
//!
//! let header = r#"Basic realm="a, b", Bearer error="invalid_token", resource_metadata="https://h/meta""#;
//! let bearer = challenges(header).filter_map(Result::ok).find(|challenge| challenge.is("bearer")).expect("it is there");
//! assert_eq!(bearer.parameter("Error").and_then(|value| value.plain()), Some("invalid_token"));
//! assert_eq!(bearer.parameter("resource_metadata").map(|value| value.to_string()).as_deref(), Some("https://h/meta"));
//! assert!(bearer.parameter("scope").is_none());
//! ```

use core::fmt::{self, Write};

use mcp_sansio_http::http1::is_token;

/// Most parameters of one challenge.
pub const PARAMETERS: usize = 32;

/// One challenge: a scheme with its parameters. It borrows the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge<'h> {
    /// The scheme as it was written: `Bearer`, `DPoP`.
    pub scheme: &'h str,
    /// The value in place of parameters (`token68`). Default: empty.
    pub token68: &'h str,
    /// From the first parameter to the last.
    parameters: &'h str,
}

mcp_sansio::error_enum! {
    /// The reason why a header is not a list of challenges.
    ChallengeError {
        /// A scheme, a name or a value is missing, or has a character that it must not have.
        Syntax => "WWW-Authenticate is not a list of challenges",
        /// A quoted string has no end.
        Quote => "a quoted string in WWW-Authenticate has no end",
        /// A parameter is there twice.
        Duplicate => "a parameter is in a challenge of WWW-Authenticate twice",
        /// A challenge has more than [`PARAMETERS`] parameters.
        TooMany => "a challenge of WWW-Authenticate has too many parameters",
    }
}

impl<'h> Challenge<'h> {
    /// Returns whether it has this scheme. Case does not count.
    #[must_use]
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Returns the parameters in their order: names and values.
    pub fn parameters(&self) -> impl Iterator<Item = (&'h str, ParameterValue<'h>)> + use<'h> {
        parameters(self.parameters)
    }

    /// Returns the value of the parameter `name`. Case does not count.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<ParameterValue<'h>> {
        self.parameters().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// The value of a parameter: a token, or a quoted string with its escapes. Its [`Display`](fmt::Display) is the text
/// without quotes and escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterValue<'h> {
    /// Without the quotes.
    raw: &'h str,
}

impl<'h> ParameterValue<'h> {
    /// Returns the text if it has no escapes.
    #[must_use]
    pub fn plain(&self) -> Option<&'h str> {
        (!self.raw.contains('\\')).then_some(self.raw)
    }

    /// Returns the characters without escapes.
    pub fn chars(&self) -> impl Iterator<Item = char> + 'h {
        let mut chars = self.raw.chars();
        core::iter::from_fn(move || match chars.next() {
            Some('\\') => chars.next(),
            char => char,
        })
    }
}

impl fmt::Display for ParameterValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|char| f.write_char(char))
    }
}

/// Reads the parameters in front of a text.
fn parameters(mut text: &str) -> impl Iterator<Item = (&str, ParameterValue<'_>)> {
    core::iter::from_fn(move || {
        let (name, value, rest) = parameter(skip_list(text)).ok()??;
        text = rest;
        Some((name, value))
    })
}

/// Reads the challenges of one header; the first error is the last item. A response may have several such headers: each is read by
/// itself.
///
/// Values that should be quoted, because they have a `:` or a `/`, are read without quotes too: some servers send URLs
/// so.
pub fn challenges(header: &str) -> impl Iterator<Item = Result<Challenge<'_>, ChallengeError>> {
    let mut rest = header;
    core::iter::from_fn(move || {
        let text = skip_list(rest);
        if text.is_empty() {
            return None;
        }
        let found = challenge(text);
        rest = found.map_or("", |(_, behind)| behind);
        Some(found.map(|(challenge, _)| challenge))
    })
}

/// Reads one challenge. Returns the text after it.
fn challenge(text: &str) -> Result<(Challenge<'_>, &str), ChallengeError> {
    let (scheme, behind) = text.split_at(run(text, is_token));
    if scheme.is_empty() {
        return Err(ChallengeError::Syntax);
    }
    let mut challenge = Challenge { scheme, parameters: "", token68: "" };
    let first = skip_space(behind);
    if first.is_empty() || first.starts_with(',') {
        return Ok((challenge, first));
    }
    if first.len() == behind.len() {
        return Err(ChallengeError::Syntax);
    }
    let (token68, after) = first.split_at(token68_len(first));
    if !token68.is_empty() && matches!(skip_space(after).bytes().next(), None | Some(b',')) {
        challenge.token68 = token68;
        return Ok((challenge, skip_space(after)));
    }
    let mut rest = first;
    for number in 0.. {
        let Some((name, _, after)) = parameter(skip_list(rest))? else { break };
        if number == PARAMETERS {
            return Err(ChallengeError::TooMany);
        }
        let before = first.get(..first.len() - rest.len()).unwrap_or_default();
        if parameters(before).any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
            return Err(ChallengeError::Duplicate);
        }
        rest = skip_space(after);
        challenge.parameters = first.get(..first.len() - after.len()).unwrap_or_default();
        if !rest.is_empty() && !rest.starts_with(',') {
            return Err(ChallengeError::Syntax);
        }
    }
    if challenge.parameters.is_empty() { Err(ChallengeError::Syntax) } else { Ok((challenge, rest)) }
}

/// A name, its value, and the text after it.
type Parameter<'h> = (&'h str, ParameterValue<'h>, &'h str);

/// Reads one parameter; `None` if the text begins with something else: the next challenge, or nothing.
fn parameter(text: &str) -> Result<Option<Parameter<'_>>, ChallengeError> {
    let (name, behind) = text.split_at(run(text, is_token));
    let Some(value) = skip_space(behind).strip_prefix('=').map(skip_space).filter(|_| !name.is_empty()) else {
        return Ok(None);
    };
    let Some(quoted) = value.strip_prefix('"') else {
        let (raw, rest) = value.split_at(run(value, is_unquoted));
        return if raw.is_empty() {
            Err(ChallengeError::Syntax)
        } else {
            Ok(Some((name, ParameterValue { raw }, rest)))
        };
    };
    let (mut end, mut escaped) = (None, false);
    for (at, byte) in quoted.bytes().enumerate() {
        match byte {
            0..=8 | 10..=31 | 127 => return Err(ChallengeError::Syntax),
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                end = Some(at);
                break;
            }
            _ => {}
        }
    }
    let (raw, rest) = end.and_then(|end| quoted.split_at_checked(end)).ok_or(ChallengeError::Quote)?;
    Ok(Some((name, ParameterValue { raw }, rest.get(1..).unwrap_or_default())))
}

/// Returns the number of bytes in front for which `is_part` is true.
fn run(text: &str, is_part: fn(u8) -> bool) -> usize {
    text.bytes().take_while(|&byte| is_part(byte)).count()
}

fn token68_len(text: &str) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
    let digits = text.bytes().take_while(|&byte| is_digit(byte)).count();
    digits + text.bytes().skip(digits).take_while(|&byte| byte == b'=').count()
}

const fn is_unquoted(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b',' | b'"' | b'\\')
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

fn skip_list(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', ','])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// Each challenge as `scheme|token68|name=value|...`.
    fn read(header: &str) -> Result<Vec<String>, ChallengeError> {
        let show = |challenge: Challenge<'_>| {
            let mut text = challenge.scheme.to_string();
            if !challenge.token68.is_empty() {
                text.push('|');
                text.push_str(challenge.token68);
            }
            for (name, value) in challenge.parameters() {
                text.push_str(&std::format!("|{name}={value}"));
            }
            text
        };
        challenges(header).map(|found| found.map(show)).collect()
    }

    #[test]
    fn headers_are_read() {
        for (header, expected) in [
            ("", &[][..]),
            (" , ,", &[]),
            ("Bearer", &["Bearer"]),
            ("Bearer, DPoP algs=\"ES256\"", &["Bearer", "DPoP|algs=ES256"]),
            ("Basic realm=\"x\", Bearer a=b", &["Basic|realm=x", "Bearer|a=b"]),
            ("Bearer a = b , c\t=\"d\" ,, e=f", &["Bearer|a=b|c=d|e=f"]),
            ("Negotiate oRQwEq/+A==, Bearer scope=\"a b\"", &["Negotiate|oRQwEq/+A==", "Bearer|scope=a b"]),
            ("Negotiate abc", &["Negotiate|abc"]),
            (
                r#"Bearer error_description="say \"no, no\" \\", scope=x"#,
                &["Bearer|error_description=say \"no, no\" \\|scope=x"],
            ),
            ("Bearer a=\"\", b=c, DPoP", &["Bearer|a=|b=c", "DPoP"]),
            (
                "Bearer resource_metadata=https://h:1/x?y=z, scope=\"Bearer x=y\"",
                &["Bearer|resource_metadata=https://h:1/x?y=z|scope=Bearer x=y"],
            ),
            ("DPoP a=b,Bearer a=c,dpop a=d", &["DPoP|a=b", "Bearer|a=c", "dpop|a=d"]),
        ] {
            assert_eq!(
                read(header).as_deref(),
                Ok(expected.iter().map(|one| one.to_string()).collect::<Vec<_>>()).as_deref(),
                "{header}"
            );
        }
    }

    #[test]
    fn bad_headers_are_errors() {
        for (header, error) in [
            ("=x", ChallengeError::Syntax),
            ("\"Bearer\"", ChallengeError::Syntax),
            ("Bearer a=b, c=", ChallengeError::Syntax),
            ("Bearer a= , b=c", ChallengeError::Syntax),
            ("Bearer a=b c=d", ChallengeError::Syntax),
            ("Bearer a=\"b\" c", ChallengeError::Syntax),
            ("Bearer a=\"b\r\nX: y\"", ChallengeError::Syntax),
            ("Bearer=x", ChallengeError::Syntax),
            ("Bearer a=\"b", ChallengeError::Quote),
            ("Bearer a=\"b\\\"", ChallengeError::Quote),
            ("Bearer scope=a, Scope=b", ChallengeError::Duplicate),
            ("Bearer scope=\"a\", x=y, scope=\"b\"", ChallengeError::Duplicate),
        ] {
            assert_eq!(read(header), Err(error), "{header}");
        }
        let many = |count: usize| {
            let list: Vec<_> = (0..count).map(|n| std::format!("p{n}=x")).collect();
            read(&std::format!("Bearer {}", list.join(",")))
        };
        assert_eq!(many(PARAMETERS + 1), Err(ChallengeError::TooMany));
        assert!(many(PARAMETERS).is_ok());
    }
}
