//! Views of implementations, icons and annotations.

use super::{View, ViewError, array, number, text, view};
use crate::content::Role;
use crate::json::{Raw, Text};

view! {
    /// The `Implementation` of a server: `serverInfo` of `initialize`
    /// ([initialization](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization)),
    /// and of the `_meta` of every result from 2026-07-28 on. It is unverified: show it to people, do not decide
    /// by it.
    ImplementationView {
        must {
            /// Returns `name`.
            name: Text<'a> = "name" as text;
            /// Returns `version`.
            version: Text<'a> = "version" as text;
        }
        may {
            /// Returns `title`, a name for people (from 2025-06-18 on).
            title: Text<'a> = "title" as text;
            /// Returns `description` (from 2025-11-25 on).
            description: Text<'a> = "description" as text;
            /// Returns `websiteUrl` (from 2025-11-25 on).
            #[doc(alias = "websiteUrl")]
            website: Text<'a> = "websiteUrl" as text;
        }
        lists {
            /// Returns `icons` (from 2025-11-25 on).
            icons: IconView = "icons";
        }
    }
}

view! {
    /// An icon (from 2025-11-25 on,
    /// [icons](https://modelcontextprotocol.io/specification/2025-11-25/basic/index#icons)). [`View::of`] fails with
    /// [`ViewError::Value`] if `src` is neither an `https:` nor a `data:` URI: a client must not load other URIs.
    /// Load icons without credentials, and trust neither their type nor their size.
    ///
    /// See [Icons](crate::duties::client#icons).
    IconView {
        must {
            /// Returns `src`: an `https:` or `data:` URI.
            src: Text<'a> = "src" as safe_uri;
        }
        may {
            /// Returns `mimeType`.
            #[doc(alias = "mimeType")]
            mime: Text<'a> = "mimeType" as text;
            /// Returns `theme`: `light` or `dark`.
            theme: Text<'a> = "theme" as text;
            /// Returns `sizes` as JSON; [`sizes`](Self::sizes) reads it.
            raw_sizes: Raw<'a> = "sizes" as array;
        }
    }
}

fn safe_uri<'a>(raw: Raw<'a>, key: &'static str) -> Result<Text<'a>, ViewError> {
    let uri = text(raw, key)?;
    if has_scheme(uri, "https:") || has_scheme(uri, "data:") { Ok(uri) } else { Err(ViewError::Value(key)) }
}

impl<'a> IconView<'a> {
    /// Returns `sizes`, for example `48x48` or `any`.
    pub fn sizes(&self) -> impl Iterator<Item = Text<'a>> + use<'a> {
        self.raw_sizes().into_iter().flat_map(|sizes| sizes.items()).filter_map(|size| size.text())
    }
}

/// Returns `true` if the URI begins with the scheme, in upper or lower case.
pub(crate) fn has_scheme(uri: Text<'_>, scheme: &str) -> bool {
    let mut chars = uri.chars();
    scheme.chars().all(|expected| matches!(chars.next(), Some(Ok(c)) if c.eq_ignore_ascii_case(&expected)))
}

view! {
    /// The `Annotations` of content or a resource: its audience and its priority
    /// ([annotations](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#annotations)).
    AnnotationsView {
        may {
            /// Returns `lastModified`, a time in ISO 8601 (from 2025-06-18 on).
            last_modified: Text<'a> = "lastModified" as text;
            /// Returns `priority`, a number from 0 to 1, as the server wrote it.
            priority: Raw<'a> = "priority" as number;
            /// Returns `audience` as JSON.
            audience: Raw<'a> = "audience" as array;
        }
    }
}

impl<'a> AnnotationsView<'a> {
    /// Returns `true` if `audience` contains the role.
    #[must_use]
    pub fn is_for(&self, role: Role) -> bool {
        let role = if role == Role::User { "user" } else { "assistant" };
        let audience = self.audience();
        audience.is_some_and(|roles| roles.items().any(|found| found.text().is_some_and(|found| found.eq_str(role))))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::{object, part};
    use super::*;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn server_info() {
        let info = ImplementationView::of(raw(
            r#"{"name":"s","version":"1","title":"S","websiteUrl":"https://x","icons":[{"src":"https://x/i.png","sizes":["48x48",7,"any"],"theme":"dark","mimeType":"image/png"}]}"#,
        ))
        .unwrap();
        assert!(info.name().eq_str("s") && info.version().eq_str("1"));
        assert!(info.title().is_some_and(|t| t.eq_str("S")) && info.description().is_none());
        let icon = info.icons().next().unwrap().unwrap();
        assert_eq!(icon.sizes().count(), 2);
        assert!(icon.theme().is_some_and(|t| t.eq_str("dark")) && icon.mime().is_some());
        assert_eq!(ImplementationView::of(raw(r#"{"name":"s"}"#)).unwrap_err(), ViewError::Missing("version"));
    }

    // spec: B023 B025 B026
    #[test]
    fn unsafe_icons_are_refused() {
        for src in ["javascript:alert(1)", "file:///etc/passwd", "http://x/i.png", "ftp://x", "", "https", " https:"] {
            let json = std::format!(r#"{{"src":"{src}"}}"#);
            assert_eq!(IconView::of(raw(&json)).unwrap_err(), ViewError::Value("src"), "{src}");
        }
        for src in ["HTTPS://x", "data:image/png;base64,AA==", r"\u0068ttps:\/\/x"] {
            let json = std::format!(r#"{{"src":"{src}"}}"#);
            assert!(IconView::of(raw(&json)).is_ok(), "{src}");
        }
    }

    #[test]
    fn hints() {
        let hints =
            AnnotationsView::of(raw(r#"{"audience":["user"],"priority":0.5,"lastModified":"2025-01-01"}"#)).unwrap();
        assert!(hints.is_for(Role::User) && !hints.is_for(Role::Assistant));
        assert_eq!(hints.priority().unwrap().as_str(), "0.5");
        let none = AnnotationsView { raw: part(raw(r#"{"annotations":"?"}"#), "annotations", object) };
        assert!(!none.is_for(Role::User) && none.last_modified().is_none());
    }
}
