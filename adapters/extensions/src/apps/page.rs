//! A page, and the resource that serves it.

use mcp_sansio::json::Raw;
use mcp_sansio::service::{HandlerResult, ReadResource, Resource};

use crate::apps::capability::MIME;
use crate::apps::constant::{is_html, is_page_uri};

/// A page that hosts show: an HTML document at a `ui://` URI, with its scripts and styles in it.
///
/// ```
/// use mcp_sansio::service::Resource;
/// use mcp_sansio_extensions::apps::Page;
///
/// static PANEL: Page = Page::new("ui://pump/panel", "panel", "<!doctype html><title>Pump</title>");
/// static RESOURCES: [Resource<()>; 1] = [PANEL.resource(|_, read| PANEL.read(read))];
/// # let _ = &RESOURCES;
/// ```
/// With the feature `windows` of `mcp-sansio` a page may be larger than the output of the server:
/// ```
/// # use mcp_sansio::service::Resource;
/// # use mcp_sansio_extensions::apps::Page;
/// # static PANEL: Page = Page::new("ui://pump/panel", "panel", "<!doctype html><title>Pump</title>");
/// static RESOURCES: [Resource<()>; 1] =
///     [PANEL.resource(|_, read| PANEL.read(read)).source(|_, _, at, to| Ok(PANEL.copy(at, to)))];
/// # let _ = &RESOURCES;
/// ```
/// A page that is not one does not compile:
/// ```compile_fail,E0080
/// # use mcp_sansio_extensions::apps::Page;
/// static PANEL: Page = Page::new("pump://panel", "panel", "<!doctype html><title>Pump</title>");
/// # let _ = &PANEL;
/// ```
#[derive(Debug)]
#[must_use]
pub struct Page {
    /// The URI.
    pub uri: &'static str,
    name: &'static str,
    /// The HTML.
    pub html: &'static str,
    meta: Option<(&'static str, Raw<'static>)>,
}

impl Page {
    /// Makes a page with its URI, its name in `resources/list` and its HTML. Panics unless the URI begins with `ui://` and has
    /// only characters of URIs, and the HTML begins with `<!doctype html`; a constant does not compile then.
    pub const fn new(uri: &'static str, name: &'static str, html: &'static str) -> Self {
        assert!(is_page_uri(uri), "the URI of a page is `ui://` and characters of URIs");
        assert!(is_html(html), "a page begins with `<!doctype html`");
        Page { uri, name, html, meta: None }
    }

    /// Sets the `_meta`, which [`ui_meta!`](crate::apps::ui_meta) writes from a [`ResourceMeta`](crate::apps::ResourceMeta). It is in the
    /// contents and in the entry of `resources/list`; written from 2025-06-18 on. Default: absent. Panics if it is not JSON.
    pub const fn meta(self, meta: &'static str) -> Self {
        Page { meta: Some((meta, Raw::constant(meta))), ..self }
    }

    /// Returns the resource. Its handler answers by [`read`](Page::read).
    pub const fn resource<S>(&self, read: fn(&mut S, &mut ReadResource<'_>) -> HandlerResult) -> Resource<S> {
        let resource = Resource::new(self.uri, self.name, read).mime(MIME);
        match self.meta {
            Some((meta, _)) => resource.meta(meta),
            None => resource,
        }
    }

    /// Answers a [`resources/read`](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#reading-resources)
    /// with the page. With the feature `windows` of `mcp-sansio`, a page larger than the output is sent from the
    /// [source](mcp_sansio::service::Resource::source) of the resource, which [copies](Page::copy) it.
    ///
    /// # Errors
    /// As [`ReadResource::text`].
    pub fn read(&self, read: &mut ReadResource<'_>) -> HandlerResult {
        if let Some((_, meta)) = self.meta {
            read.contents_meta = Some(meta);
        }
        let sent = read.text(self.html);
        // It is larger than the room; nothing was written.
        mcp_sansio::with_windows! { let sent = sent.or_else(|_| read.stream_text(0)); }
        sent
    }

    /// Copies bytes of the page from the position `at` on, and returns their number: 0 at the end.
    pub fn copy(&self, at: u32, to: &mut [u8]) -> usize {
        let rest = usize::try_from(at).ok().and_then(|at| self.html.as_bytes().get(at..)).unwrap_or_default();
        let piece = rest.get(..to.len()).unwrap_or(rest);
        if let Some(place) = to.get_mut(..piece.len()) {
            place.copy_from_slice(piece);
        }
        piece.len()
    }
}
