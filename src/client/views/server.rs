//! Who a server is, icons, and hints for whom something is.

use super::{Each, Flaw, View, array, may, must, number, object, text, view};
use crate::json::{Raw, Text};

view! {
    /// Who a server is: `serverInfo` of `initialize`, and of every result's `_meta` from 2026-07-28 on (the specification's
    /// `Implementation`). The server made it up: it is for people to read, not to decide by.
    ServerInfo {
        must {
            /// Its name.
            name: Text<'a> = "name" as text;
            /// Its version.
            version: Text<'a> = "version" as text;
        }
        may {
            /// Its name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// What it is (from 2025-11-25 on).
            description: Text<'a> = "description" as text;
            /// Where more is to be read (from 2025-11-25 on).
            website: Text<'a> = "websiteUrl" as text;
            /// The icons as they stand; [`icons`](Self::icons) reads them.
            raw_icons: Raw<'a> = "icons" as array;
        }
    }
}

impl<'a> ServerInfo<'a> {
    /// Its icons (from 2025-11-25 on).
    #[must_use]
    pub fn icons(&self) -> Each<'a, Icon<'a>> {
        Each::maybe(self.raw_icons())
    }
}

/// An icon (from 2025-11-25 on). One whose `src` is neither an `https:` nor a `data:` URI is a [`Flaw`]: a client must not
/// load it (section "icons" of the overview). Load what is left without credentials, and trust neither its type nor its size.
#[derive(Clone, Copy, Debug)]
pub struct Icon<'a> {
    raw: Raw<'a>,
    src: Text<'a>,
}

impl<'a> View<'a> for Icon<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, Flaw> {
        object(raw).map_err(Flaw::Shape)?;
        let src = must(raw, "src", text)?;
        let safe = has_scheme(src, "https:") || has_scheme(src, "data:");
        if safe { Ok(Icon { raw, src }) } else { Err(Flaw::Value("src")) }
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }

    fn check(&self) -> Result<(), Flaw> {
        may(self.raw, "mimeType", text)?;
        may(self.raw, "theme", text)?;
        may(self.raw, "sizes", array).map(|_| ())
    }
}

impl<'a> Icon<'a> {
    /// Where it is: an `https:` or `data:` URI.
    #[must_use]
    pub const fn src(&self) -> Text<'a> {
        self.src
    }

    /// Its MIME type.
    #[must_use]
    pub fn mime(&self) -> Option<Text<'a>> {
        self.raw.get("mimeType")?.text()
    }

    /// Its sizes, like `48x48`, or `any`.
    pub fn sizes(&self) -> impl Iterator<Item = Text<'a>> + use<'a> {
        let sizes = self.raw.get("sizes").map(|sizes| sizes.items());
        sizes.into_iter().flatten().filter_map(|size| size.text())
    }

    /// `light` or `dark`, if it is for one of them.
    #[must_use]
    pub fn theme(&self) -> Option<Text<'a>> {
        self.raw.get("theme")?.text()
    }
}

/// Whether a URI begins with a scheme, in letters of either case.
pub(crate) fn has_scheme(uri: Text<'_>, scheme: &str) -> bool {
    let mut chars = uri.chars();
    scheme.chars().all(|expected| matches!(chars.next(), Some(Ok(c)) if c.eq_ignore_ascii_case(&expected)))
}

view! {
    /// Hints for whom content or a resource is, and how much it matters (the specification's `Annotations`).
    Hints {
        must {}
        may {
            /// When it changed last, as ISO 8601 (from 2025-06-18 on).
            last_modified: Text<'a> = "lastModified" as text;
            /// How much it matters, a number from 0 to 1, as it stands.
            priority: Raw<'a> = "priority" as number;
            /// The audience as it stands.
            audience: Raw<'a> = "audience" as array;
        }
    }
}

impl<'a> Hints<'a> {
    /// None.
    pub(super) const NONE: Hints<'a> = Hints { raw: Raw::trusted(b"{}") };

    pub(super) fn in_member(raw: Raw<'a>) -> Self {
        raw.get("annotations").and_then(|hints| Hints::of(hints).ok()).unwrap_or(Hints::NONE)
    }

    /// Whether it is said to be for the user.
    #[must_use]
    pub fn for_user(&self) -> bool {
        self.is_for("user")
    }

    /// Whether it is said to be for the model.
    #[must_use]
    pub fn for_assistant(&self) -> bool {
        self.is_for("assistant")
    }

    fn is_for(&self, role: &str) -> bool {
        let audience = self.audience();
        audience.is_some_and(|roles| roles.items().any(|found| found.text().is_some_and(|found| found.is(role))))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn server_info() {
        let info = ServerInfo::of(raw(
            r#"{"name":"s","version":"1","title":"S","websiteUrl":"https://x","icons":[{"src":"https://x/i.png","sizes":["48x48",7,"any"],"theme":"dark","mimeType":"image/png"}]}"#,
        ))
        .unwrap();
        assert!(info.name().is("s") && info.version().is("1"));
        assert!(info.title().is_some_and(|t| t.is("S")) && info.description().is_none());
        let icon = info.icons().next().unwrap().unwrap();
        assert_eq!(icon.sizes().count(), 2);
        assert!(icon.theme().is_some_and(|t| t.is("dark")) && icon.mime().is_some());
        assert_eq!(ServerInfo::of(raw(r#"{"name":"s"}"#)).unwrap_err(), Flaw::Missing("version"));
    }

    #[test]
    fn unsafe_icons_are_refused() {
        for src in ["javascript:alert(1)", "file:///etc/passwd", "http://x/i.png", "ftp://x", "", "https", " https:"] {
            let json = std::format!(r#"{{"src":"{src}"}}"#);
            assert_eq!(Icon::of(raw(&json)).unwrap_err(), Flaw::Value("src"), "{src}");
        }
        for src in ["HTTPS://x", "data:image/png;base64,AA==", r"\u0068ttps:\/\/x"] {
            let json = std::format!(r#"{{"src":"{src}"}}"#);
            assert!(Icon::of(raw(&json)).is_ok(), "{src}");
        }
    }

    #[test]
    fn hints() {
        let hints = Hints::of(raw(r#"{"audience":["user"],"priority":0.5,"lastModified":"2025-01-01"}"#)).unwrap();
        assert!(hints.for_user() && !hints.for_assistant());
        assert_eq!(hints.priority().unwrap().as_str(), "0.5");
        let none = Hints::in_member(raw(r#"{"annotations":"?"}"#));
        assert!(!none.for_user() && none.last_modified().is_none());
    }
}
