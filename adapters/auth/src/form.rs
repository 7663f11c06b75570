//! `application/x-www-form-urlencoded`, for bodies and queries
//! ([the URL standard](https://url.spec.whatwg.org/#application/x-www-form-urlencoded)).

use mcp_sansio::FullError;
use mcp_sansio::sink::Sink;

/// Writes fields.
///
/// ```
/// use mcp_sansio_auth::form::FormWriter;
/// use mcp_sansio::sink::{LineSink, SliceStorage};
///
/// let mut bytes = [0; 64];
/// let mut out = LineSink::new(SliceStorage::new(&mut bytes));
/// let mut form = FormWriter::new(&mut out);
/// form.field("grant_type", "refresh_token")?;
/// form.field("scope", "a b&c")?;
/// assert_eq!(out.pending(), b"grant_type=refresh_token&scope=a+b%26c");
/// # Ok::<(), mcp_sansio::FullError>(())
/// ```
#[derive(Debug)]
pub struct FormWriter<'o, W: Sink + ?Sized> {
    out: &'o mut W,
    separator: &'static [u8],
}

impl<'o, W: Sink + ?Sized> FormWriter<'o, W> {
    /// Begins a form.
    pub const fn new(out: &'o mut W) -> Self {
        FormWriter { out, separator: b"" }
    }

    /// Writes a field.
    ///
    /// # Errors
    /// [`FullError`] if it does not fit; a part of it may have been written.
    pub fn field(&mut self, name: &str, value: &str) -> Result<(), FullError> {
        self.out.put(core::mem::replace(&mut self.separator, b"&"))?;
        encode(self.out, name)?;
        self.out.put(b"=")?;
        encode(self.out, value)
    }
}

/// Writes a text in the form of names and values: `a b/c` is `a+b%2Fc`.
///
/// # Errors
/// [`FullError`] if it does not fit; a part of it may have been written.
pub fn encode<W: Sink + ?Sized>(out: &mut W, text: &str) -> Result<(), FullError> {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => out.put(&[byte])?,
            b' ' => out.put(b"+")?,
            _ => {
                let digit = |value: u8| if value < 10 { b'0' + value } else { b'A' + value - 10 };
                out.put(&[b'%', digit(byte >> 4), digit(byte & 15)])?;
            }
        }
    }
    Ok(())
}

/// Reads the fields of a form or a query: pairs of a name and a value, both still encoded.
///
/// ```
/// use mcp_sansio_auth::form::{decode, fields};
/// let query = "code=a%2Bb&state=x+y";
/// let found: Vec<_> = fields(query).map(|(name, value)| (decode(name), decode(value))).collect();
/// assert_eq!(found[0].1.as_deref(), Some("a+b"));
/// assert_eq!(found[1].1.as_deref(), Some("x y"));
/// ```
pub fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('&').filter(|field| !field.is_empty()).map(|field| field.split_once('=').unwrap_or((field, "")))
}

/// Decodes a name or a value. `None` if an escape is not `%` with two hexadecimal digits, or the result is not UTF-8.
#[cfg(feature = "client")]
#[must_use]
pub fn decode(text: &str) -> Option<alloc::string::String> {
    let mut decoded = alloc::vec::Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high << 4 | low).ok()?
            }
            byte => byte,
        });
    }
    alloc::string::String::from_utf8(decoded).ok()
}

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;
    use mcp_sansio::sink::LineSink;

    #[test]
    fn everything_is_read_as_it_was_written() {
        let text: std::string::String = (1..0x200).filter_map(char::from_u32).collect();
        let mut out = LineSink::new(std::vec::Vec::new());
        let mut form = FormWriter::new(&mut out);
        form.field("a&b", &text).unwrap();
        form.field("c", "").unwrap();
        let written = std::string::String::from_utf8(out.into_inner()).unwrap();
        assert!(written.bytes().all(|byte| byte.is_ascii_graphic()));
        let read: std::vec::Vec<_> =
            fields(&written).map(|(name, value)| (decode(name).unwrap(), decode(value).unwrap())).collect();
        assert_eq!(read, [("a&b".into(), text), ("c".into(), "".into())]);
    }

    #[test]
    fn bad_escapes_are_refused() {
        for text in ["%", "%4", "%4g", "%zz", "a%", "%ff", "%c3%28"] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode("%41%c3%A9").as_deref(), Some("Aé"));
        assert_eq!(fields("&a&&b=c=d&").collect::<std::vec::Vec<_>>(), [("a", ""), ("b", "c=d")]);
    }
}
