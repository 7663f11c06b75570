//! The rules for names of skills, their URIs and the paths of their files.

/// The name of the file that every skill has at its root.
pub const SKILL_MD: &str = "SKILL.md";

/// Returns whether `name` keeps the rules for names of skills: 1 to 64 characters of `a` to `z`, `0` to `9` and single
/// hyphens between them.
///
/// ```
/// use mcp_sansio_extensions::skills::uri::is_name;
/// assert!(is_name("pdf-2") && !is_name("-pdf") && !is_name("pdf--2") && !is_name("PDF") && !is_name(""));
/// ```
#[must_use]
pub const fn is_name(name: &str) -> bool {
    let mut rest = name.as_bytes();
    let (mut after_hyphen, mut valid) = (true, name.len() <= 64);
    while let [byte, behind @ ..] = rest {
        valid &= matches!(byte, b'a'..=b'z' | b'0'..=b'9') || (*byte == b'-' && !after_hyphen);
        after_hyphen = *byte == b'-';
        rest = behind;
    }
    valid && !after_hyphen
}

/// The URI of the `SKILL.md` of a skill, for example `skill://acme/billing/refunds/SKILL.md`.
///
/// It has a scheme, no query and no fragment. No segment is empty, `.` or `..`, also not with percent-encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SkillUri<'a> {
    directory: &'a str,
}

impl<'a> SkillUri<'a> {
    /// Takes a URI apart. `None` if it is not the URI of a `SKILL.md`.
    #[must_use]
    pub fn of(uri: &'a str) -> Option<Self> {
        let directory = uri.strip_suffix(SKILL_MD)?.strip_suffix('/')?;
        let (scheme, rest) = directory.split_once(':')?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        // `file:///path` has an empty authority.
        let rest = match rest.strip_prefix("//") {
            Some(rest) => rest.strip_prefix('/').unwrap_or(rest),
            None => rest,
        };
        (is_scheme && is_path(rest)).then_some(SkillUri { directory })
    }

    /// Returns the URI of the skill's directory, without a slash at the end.
    #[must_use]
    pub const fn directory(&self) -> &'a str {
        self.directory
    }

    /// Returns the last segment of the directory, which must be the name of the skill.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.directory.rsplit(['/', ':']).next().unwrap_or_default()
    }

    /// Returns the path of a file within the directory, with its percent-encoding, for example `references/forms.md`.
    /// `None` if the URI is not within the directory, or its path could lead out of it.
    #[must_use]
    pub fn path_of<'u>(&self, uri: &'u str) -> Option<&'u str> {
        let path = uri.strip_prefix(self.directory)?.strip_prefix('/')?;
        is_path(path).then_some(path)
    }
}

/// Returns whether this is a path of segments that are safe.
fn is_path(path: &str) -> bool {
    path.split('/').all(is_segment)
}

/// Returns whether a segment of a path names something, decoded too, and neither leads up nor has a separator.
fn is_segment(segment: &str) -> bool {
    let mut decoded = decode(segment.as_bytes());
    let dots = decoded.clone().all(|byte| byte == Some(b'.')) && decoded.clone().count() <= 2;
    let unsafe_byte = |byte: Option<u8>| !matches!(byte, Some(b'!'..=b'.' | b'0'..=b'[' | b']'..=b'~' | 0x80.. | b' '));
    let raw = |byte: u8| matches!(byte, b' ' | b'?' | b'#');
    // Zero bytes are dots too: `all` of nothing.
    !dots && !decoded.any(unsafe_byte) && !segment.bytes().any(raw)
}

/// Returns the bytes of a segment without percent-encoding; `None` for a `%` without two hexadecimal digits.
pub(crate) fn decode(segment: &[u8]) -> impl Iterator<Item = Option<u8>> + Clone + '_ {
    let mut rest = segment;
    core::iter::from_fn(move || {
        let (byte, behind) = rest.split_first()?;
        rest = behind;
        if *byte != b'%' {
            return Some(Some(*byte));
        }
        let Some((&[high, low], behind)) = rest.split_first_chunk::<2>() else { return Some(None) };
        rest = behind;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        Some(digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    #[test]
    fn names() {
        let long: String = (0..64).map(|_| 'a').collect();
        for good in ["a", "0", "git-workflow", "a-b-c", long.as_str()] {
            assert!(is_name(good), "{good}");
        }
        let longer = long.clone() + "a";
        for bad in ["", "-", "a-", "-a", "a--b", "A", "a_b", "a.b", "a b", "é", "..", longer.as_str()] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn uris() {
        let parts = |uri| SkillUri::of(uri).map(|uri| (uri.directory(), uri.name()));
        assert_eq!(parts("skill://a/SKILL.md"), Some(("skill://a", "a")));
        assert_eq!(parts("skill://acme/billing/refunds/SKILL.md"), Some(("skill://acme/billing/refunds", "refunds")));
        assert_eq!(parts("file:///srv/a/SKILL.md"), Some(("file:///srv/a", "a")));
        assert_eq!(parts("x:a/SKILL.md"), Some(("x:a", "a")));
        for bad in [
            "SKILL.md",
            "a/SKILL.md",
            "skill://SKILL.md",
            "skill:///SKILL.md",
            "skill://a/skill.md",
            "skill://a/SKILL.md/",
            "skill://a/SKILL.md?x",
            "skill://a/b/../SKILL.md",
            "skill://a/%2e%2E/b/SKILL.md",
            "skill://a//b/SKILL.md",
            "skill://a?b/SKILL.md",
            "skill://a#b/SKILL.md",
            "skill://a\\b/SKILL.md",
            "skill://a b/SKILL.md",
            "skill://a%/SKILL.md",
            "1skill://a/SKILL.md",
            "://a/SKILL.md",
        ] {
            assert_eq!(parts(bad), None, "{bad}");
        }
    }

    #[test]
    fn paths() {
        let skill = SkillUri::of("skill://x/a/SKILL.md").unwrap();
        assert_eq!(skill.path_of("skill://x/a/SKILL.md"), Some("SKILL.md"));
        assert_eq!(skill.path_of("skill://x/a/b/c%20d.md"), Some("b/c%20d.md"));
        assert_eq!(skill.path_of("skill://x/a/...md"), Some("...md"));
        for bad in [
            "skill://x/a",
            "skill://x/a/",
            "skill://x/ab/c",
            "skill://x/b",
            "skill://X/a/b",
            "skill://x/a/../b",
            "skill://x/a/b/..",
            "skill://x/a/%2e%2e/b",
            "skill://x/a/.%2E/b",
            "skill://x/a/./b",
            "skill://x/a/b%2fc",
            "skill://x/a/b%5cc",
            "skill://x/a/b\\c",
            "skill://x/a/b%00",
            "skill://x/a/b\n",
            "skill://x/a/b?c",
            "skill://x/a/b#c",
            "skill://x/a//b",
            "skill://x/a/b%4",
            "skill://x/a/b%zz",
        ] {
            assert_eq!(skill.path_of(bad), None, "{bad}");
        }
    }
}
