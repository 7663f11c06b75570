//! URI templates (RFC 6570, the simple forms): `{name}` and `{+name}`.

use crate::json::{DecodeError, Text};

/// Returns whether braces are balanced, do not nest, and have a name in them.
pub(crate) const fn is_valid(template: &str) -> bool {
    let (mut rest, mut variables) = (template.as_bytes(), 0_usize);
    // The length of the name that has begun.
    let mut name: Option<usize> = None;
    while let [byte, behind @ ..] = rest {
        rest = behind;
        name = match (*byte, name) {
            (b'{', None) => {
                if let [b'+', behind @ ..] = rest {
                    rest = behind;
                }
                Some(0)
            }
            (b'}', Some(1..)) => {
                variables += 1;
                None
            }
            (b'{' | b'}', _) => return false,
            (_, Some(length)) => Some(length + 1),
            (_, None) => None,
        };
    }
    name.is_none() && variables > 0
}

/// Returns the value of the variable `name` in `uri`, if it matches `template`.
pub(crate) fn variable<'u>(template: &str, uri: &'u str, name: &str) -> Option<&'u str> {
    let mut found = None;
    walk(template, uri, &mut |variable, value| {
        if variable == name {
            found = Some(value);
        }
    })
    .then_some(found)?
}

/// Returns whether `uri` matches `template`.
pub(crate) fn matches(template: &str, uri: &str) -> bool {
    walk(template, uri, &mut |_, _| {})
}

/// Returns whether `uri` matches `template`. Escapes in the URI need no room: they are decoded on the way.
pub(crate) fn matches_any(template: &str, uri: &Text<'_>) -> bool {
    match uri.plain() {
        Some(uri) => matches(template, uri),
        None => matches_text(template, uri),
    }
}

/// Returns whether a URI with escapes matches `template`. It is decoded on the way and needs no room.
#[cold]
#[inline(never)]
pub(crate) fn matches_text(template: &str, uri: &Text<'_>) -> bool {
    let (mut template, mut uri) = (template, uri.chars());
    while let Some((before, variable, behind)) = next_variable(template) {
        if !strip(&mut uri, before) {
            return false;
        }
        let literal = cut(behind, b'{').map_or(behind, |(literal, _)| literal);
        let any = variable.starts_with('+');
        let mut is_empty = true;
        while literal.is_empty() || !strip(&mut uri.clone(), literal) {
            match uri.next() {
                Some(Ok(c)) if any || c != '/' => is_empty = false,
                None if literal.is_empty() => break,
                _ => return false,
            }
        }
        if is_empty {
            return false;
        }
        template = behind;
    }
    strip(&mut uri, template) && uri.next().is_none()
}

/// Removes `literal` from the front of `uri`. Returns `false` if something else is there.
fn strip(uri: &mut impl Iterator<Item = Result<char, DecodeError>>, literal: &str) -> bool {
    literal.chars().all(|c| uri.next() == Some(Ok(c)))
}

/// Returns whether `template` has a variable of that name.
pub(crate) fn has_variable(template: &str, name: &str) -> bool {
    let mut rest = template;
    while let Some((_, variable, behind)) = next_variable(rest) {
        if variable.strip_prefix('+').unwrap_or(variable) == name {
            return true;
        }
        rest = behind;
    }
    false
}

/// Matches `uri` against `template`, and calls `seen` with each variable and its value. A value ends where the literal text
/// after its variable begins for the first time; the last value may end with the URI.
fn walk<'u>(template: &str, uri: &'u str, seen: &mut dyn FnMut(&str, &'u str)) -> bool {
    let (mut template, mut uri) = (template, uri);
    while let Some((before, variable, behind)) = next_variable(template) {
        let Some(rest) = uri.strip_prefix(before) else { return false };
        let literal = cut(behind, b'{').map_or(behind, |(literal, _)| literal);
        let end = if literal.is_empty() { Some(rest.len()) } else { find(rest, literal) };
        let Some((value, rest)) = end.and_then(|end| rest.split_at_checked(end)) else { return false };
        let (name, any) = variable.strip_prefix('+').map_or((variable, false), |name| (name, true));
        if value.is_empty() || (!any && cut(value, b'/').is_some()) {
            return false;
        }
        seen(name, value);
        (template, uri) = (behind, rest);
    }
    template == uri
}

/// Returns the text before the next variable, the variable, and the text after it.
fn next_variable(template: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = cut(template, b'{')?;
    let (variable, behind) = cut(rest, b'}')?;
    Some((before, variable, behind))
}

/// Cuts at the first `mark`, an ASCII character. `split_once` has larger code, with panics in it.
fn cut(text: &str, mark: u8) -> Option<(&str, &str)> {
    let at = crate::search::find(mark, text.as_bytes())?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Returns the position of `wanted`. `str::find` has larger code, see [`cut`].
fn find(text: &str, wanted: &str) -> Option<usize> {
    (0..text.len()).find(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(wanted)))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;
    use std::string::String;

    #[test]
    fn matching() {
        let proc = "proc://{pid}/status";
        assert_eq!(variable(proc, "proc://17/status", "pid"), Some("17"));
        assert!(matches(proc, "proc://self/status"));
        for wrong in ["proc:///status", "proc://1/2/status", "proc://17/stat", "proc://17/status/", "x"] {
            assert!(!matches(proc, wrong), "{wrong}");
        }
        assert_eq!(variable("file:///{+path}", "file:///a/b", "path"), Some("a/b"));
        assert!(!matches("file:///{path}", "file:///a/b"));
        assert_eq!(variable("t://{a}/{b}", "t://1/2", "b"), Some("2"));
        assert!(has_variable("t://{a}/{+b}", "b") && !has_variable("t://{a}/{+b}", "c"));
    }

    /// Each character as an escape: the same as without.
    #[test]
    fn matching_with_escapes() {
        let templates =
            ["proc://{pid}/status", "file:///{+path}", "file:///{path}", "t://{a}/{b}", "t://{a}{b}", "t://{+a}é/{b}x"];
        let uris = [
            "proc://17/status",
            "proc:///status",
            "proc://1/2/status",
            "proc://17/stat",
            "proc://17/status/",
            "file:///a/b",
            "file:///a",
            "file:///",
            "t://1/2",
            "t://12",
            "t://1/é/2x",
            "t://é/x",
            "t://ééé/2x",
            "",
            "t",
        ];
        for (template, uri) in templates.into_iter().flat_map(|template| uris.map(|uri| (template, uri))) {
            let escaped: String = uri.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let text = Text::from_raw(escaped.as_bytes());
            assert_eq!(matches_text(template, &text), matches(template, uri), "{template} {uri}");
        }
        let long = format!("file:{}", "\\/a".repeat(if cfg!(miri) { 100 } else { 5_000 }));
        assert!(matches_text("file:///{+path}", &Text::from_raw(long.replacen("\\/a", "\\/\\/\\/a", 1).as_bytes())));
        for half in ["file:///\\ud800", "file:///a\\udc00b"] {
            assert!(!matches_text("file:///{+path}", &Text::from_raw(half.as_bytes())));
        }
    }

    #[test]
    fn validity() {
        assert!(is_valid("a://{b}") && is_valid("a://{+b}/{c}"));
        for wrong in ["a://b", "a://{b", "a://b}", "a://{}", "a://{+}", "a://{b{c}}"] {
            assert!(!is_valid(wrong), "{wrong}");
        }
    }
}
