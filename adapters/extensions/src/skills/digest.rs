//! SHA-256 digests of files.

use core::fmt;

/// The beginning of a digest in an entry.
const PREFIX: &str = "sha256:";

/// A SHA-256 digest. Its text is `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Reads the text of a digest. `None` if it is anything else, also with upper-case digits.
    ///
    /// ```
    /// use mcp_sansio_extensions::skills::Digest;
    /// let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    /// assert_eq!(Digest::parse(text).expect("a digest").to_string(), text);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (digits, rest) = text.strip_prefix(PREFIX)?.as_bytes().as_chunks::<2>();
        let mut digest = [0; 32];
        if digits.len() != digest.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in digest.iter_mut().zip(digits) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Digest(digest))
    }

    /// Computes the digest of bytes.
    #[cfg(feature = "skills-client")]
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Digest(sha2::Sha256::digest(bytes).into())
    }
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn texts() {
        let text = "sha256:".to_string() + &"0f".repeat(32);
        assert_eq!(Digest::parse(&text), Some(Digest([15; 32])));
        assert_eq!(Digest([15; 32]).to_string(), text);
        for bad in [
            "",
            "sha256:",
            &text.to_uppercase(),
            &text.replace("0f", "0F"),
            text.strip_prefix("sha256:").unwrap(),
            &text.replace("sha256", "sha512"),
            &(text.clone() + "0"),
            &(text.clone() + "0f"),
            text.strip_suffix('f').unwrap(),
            &text.replacen('f', "g", 1),
        ] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
    }
}
