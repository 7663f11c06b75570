//! The `_meta.ui` of tools and pages, as constants.

use crate::apps::constant::{Text, is_domain, is_page_uri};

/// Writes a [`ToolMeta`] or a [`ResourceMeta`] while the program is compiled: a `&'static str` for
/// [`Tool::meta`](mcp_sansio::service::Tool::meta) or [`Page::meta`](crate::apps::Page::meta), a JSON object with the member `ui`.
///
/// ```
/// use mcp_sansio_extensions::apps::{ResourceCsp, ResourceMeta, ToolMeta, ToolVisibility, ui_meta};
///
/// const META: &str = ui_meta!(ToolMeta::new("ui://pump/panel").visibility(&[ToolVisibility::App]));
/// assert_eq!(META, r#"{"ui":{"resourceUri":"ui://pump/panel","visibility":["app"]}}"#);
///
/// const MAPS: ResourceCsp = ResourceCsp::new().resource_domains(&["https://tiles.example.com"]);
/// assert_eq!(
///     ui_meta!(ResourceMeta::new().csp(MAPS).prefers_border(false)),
///     r#"{"ui":{"csp":{"resourceDomains":["https://tiles.example.com"]},"prefersBorder":false}}"#
/// );
/// ```
/// A wrong URI does not compile:
/// ```compile_fail,E0080
/// # use mcp_sansio_extensions::apps::{ToolMeta, ui_meta};
/// const META: &str = ui_meta!(ToolMeta::new("https://pump.example.com/panel"));
/// # let _ = META;
/// ```
#[macro_export]
macro_rules! ui_meta {
    ($meta:expr) => {{
        const META: $crate::apps::meta::UiMeta = ($meta).ui();
        const LEN: usize = META.json_len();
        const BYTES: [u8; LEN] = META.json();
        const TEXT: &str = match ::core::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => "{}",
        };
        TEXT
    }};
}
pub use ui_meta;

/// An element of `visibility`: the model or a page, which may call a tool.
#[doc(alias = "McpUiToolVisibility")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the extension has these two")]
pub enum ToolVisibility {
    /// `model`: the host shows the tool to the model.
    Model,
    /// `app`: pages of this server may call the tool.
    App,
}

/// The `_meta.ui` of a tool. See [`ui_meta!`](crate::apps::ui_meta).
#[doc(alias = "McpUiToolMeta")]
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct ToolMeta {
    resource_uri: Option<&'static str>,
    visibility: Option<&'static [ToolVisibility]>,
}

impl ToolMeta {
    /// Makes the `_meta.ui` of a tool whose results the page at `resourceUri` shows. Panics unless the URI begins with `ui://`
    /// and has only characters of URIs; a constant does not compile then.
    #[doc(alias = "resourceUri")]
    pub const fn new(resource_uri: &'static str) -> Self {
        assert!(is_page_uri(resource_uri), "the URI of a page is `ui://` and characters of URIs");
        ToolMeta { resource_uri: Some(resource_uri), visibility: None }
    }

    /// Makes the `_meta.ui` of a tool without a page, for its [`visibility`](ToolMeta::visibility).
    pub const fn without_page() -> Self {
        ToolMeta { resource_uri: None, visibility: None }
    }

    /// Sets `visibility`. Default: absent, which means both. Hosts that know no apps show a tool for pages alone to the model.
    /// Panics if it is empty.
    pub const fn visibility(self, visibility: &'static [ToolVisibility]) -> Self {
        assert!(!visibility.is_empty(), "a tool that neither the model nor a page may call is of no use");
        ToolMeta { visibility: Some(visibility), ..self }
    }

    /// Returns what [`ui_meta!`](crate::apps::ui_meta) writes.
    pub const fn ui(self) -> UiMeta {
        UiMeta(Kind::Tool(self))
    }

    const fn write<const N: usize>(&self, text: Text<N>) -> Text<N> {
        let mut text = text;
        if let Some(uri) = self.resource_uri {
            text = text.text_member(true, "resourceUri", uri);
        }
        if let Some(mut rest) = self.visibility {
            text = text.member(self.resource_uri.is_none(), "visibility");
            let mut before = "[";
            while let [who, behind @ ..] = rest {
                text = text.put(before).put(match who {
                    ToolVisibility::Model => "\"model\"",
                    ToolVisibility::App => "\"app\"",
                });
                (before, rest) = (",", behind);
            }
            text = text.put("]");
        }
        text
    }
}

/// The origins that a page uses: `csp` of its `_meta.ui`. A host blocks all others. Default: none. A list panics on an origin
/// with a space, a quote, a backslash, a comma or a semicolon; a constant does not compile then.
#[doc(alias = "McpUiResourceCsp")]
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct ResourceCsp {
    connect: &'static [&'static str],
    resource: &'static [&'static str],
    frame: &'static [&'static str],
    base_uri: &'static [&'static str],
}

impl ResourceCsp {
    /// Makes a policy without origins.
    pub const fn new() -> Self {
        ResourceCsp { connect: &[], resource: &[], frame: &[], base_uri: &[] }
    }

    mcp_sansio::const_setters! {
        /// Sets `connectDomains`: the origins of `fetch` and web sockets, such as `https://api.example.com`.
        #[doc(alias = "connectDomains")]
        connect_domains(domains: &'static [&'static str]) => connect = checked(domains);
        /// Sets `resourceDomains`: the origins of scripts, styles, images, fonts and media, such as `https://*.example.com`.
        #[doc(alias = "resourceDomains")]
        resource_domains(domains: &'static [&'static str]) => resource = checked(domains);
        /// Sets `frameDomains`: the origins of frames in the page.
        #[doc(alias = "frameDomains")]
        frame_domains(domains: &'static [&'static str]) => frame = checked(domains);
        /// Sets `baseUriDomains`: the origins that the page may have as its base.
        #[doc(alias = "baseUriDomains")]
        base_uri_domains(domains: &'static [&'static str]) => base_uri = checked(domains);
    }

    const fn write<const N: usize>(&self, text: Text<N>) -> Text<N> {
        let mut lists: &[(&str, &[&str])] = &[
            ("connectDomains", self.connect),
            ("resourceDomains", self.resource),
            ("frameDomains", self.frame),
            ("baseUriDomains", self.base_uri),
        ];
        let (mut text, mut is_first) = (text, true);
        while let [(key, domains), behind @ ..] = lists {
            let mut rest = *domains;
            if !rest.is_empty() {
                text = text.member(is_first, key);
                is_first = false;
                let mut before = "[\"";
                while let [domain, behind @ ..] = rest {
                    text = text.put(before).put(domain);
                    (before, rest) = ("\",\"", behind);
                }
                text = text.put("\"]");
            }
            lists = behind;
        }
        text
    }
}

const fn checked(domains: &'static [&'static str]) -> &'static [&'static str] {
    let mut rest = domains;
    while let [domain, behind @ ..] = rest {
        assert!(is_domain(domain), "an origin has no spaces, quotes, commas and semicolons");
        rest = behind;
    }
    domains
}

/// The abilities of the browser that a page asks for: `permissions` of its `_meta.ui`. A host may refuse them. Default: none.
#[doc(alias = "McpUiResourcePermissions")]
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct ResourcePermissions {
    camera: bool,
    microphone: bool,
    geolocation: bool,
    clipboard_write: bool,
}

impl ResourcePermissions {
    /// Asks for nothing.
    pub const fn new() -> Self {
        ResourcePermissions { camera: false, microphone: false, geolocation: false, clipboard_write: false }
    }

    mcp_sansio::const_setters! {
        /// Asks for `camera`.
        camera() => camera = true;
        /// Asks for `microphone`.
        microphone() => microphone = true;
        /// Asks for `geolocation`.
        geolocation() => geolocation = true;
        /// Asks for `clipboardWrite`.
        #[doc(alias = "clipboardWrite")]
        clipboard_write() => clipboard_write = true;
    }

    const fn write<const N: usize>(&self, text: Text<N>) -> Text<N> {
        let mut asked: &[(&str, bool)] = &[
            ("camera", self.camera),
            ("microphone", self.microphone),
            ("geolocation", self.geolocation),
            ("clipboardWrite", self.clipboard_write),
        ];
        let (mut text, mut is_first) = (text, true);
        while let [(key, wanted), behind @ ..] = asked {
            if *wanted {
                text = text.member(is_first, key).put("{}");
                is_first = false;
            }
            asked = behind;
        }
        text
    }
}

/// The `_meta.ui` of a page. See [`ui_meta!`](crate::apps::ui_meta).
#[doc(alias = "McpUiResourceMeta")]
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct ResourceMeta {
    csp: Option<ResourceCsp>,
    permissions: Option<ResourcePermissions>,
    domain: Option<&'static str>,
    prefers_border: Option<bool>,
}

impl ResourceMeta {
    /// Makes a `_meta.ui` without members: the page uses no other origin and no ability of the browser.
    pub const fn new() -> Self {
        ResourceMeta { csp: None, permissions: None, domain: None, prefers_border: None }
    }

    mcp_sansio::const_setters! {
        /// Sets `csp`. Default: absent.
        csp(csp: ResourceCsp) => csp = Some(csp);
        /// Sets `permissions`. Default: absent.
        permissions(permissions: ResourcePermissions) => permissions = Some(permissions);
        /// Sets `prefersBorder`: the host draws a border and a background. Default: absent; each host does as it likes, so a page
        /// should set it.
        #[doc(alias = "prefersBorder")]
        prefers_border(yes: bool) => prefers_border = Some(yes);
    }

    /// Sets `domain`: the origin that the page gets, in the form that the host demands. Default: absent. Panics on a space, a
    /// quote, a backslash, a comma or a semicolon; a constant does not compile then.
    pub const fn domain(self, domain: &'static str) -> Self {
        assert!(is_domain(domain), "a domain has no spaces, quotes, commas and semicolons");
        ResourceMeta { domain: Some(domain), ..self }
    }

    /// Returns what [`ui_meta!`](crate::apps::ui_meta) writes.
    pub const fn ui(self) -> UiMeta {
        UiMeta(Kind::Resource(self))
    }

    const fn write<const N: usize>(&self, text: Text<N>) -> Text<N> {
        let (mut text, mut is_first) = (text, true);
        if let Some(csp) = self.csp {
            text = csp.write(text.member(is_first, "csp").put("{")).put("}");
            is_first = false;
        }
        if let Some(permissions) = self.permissions {
            text = permissions.write(text.member(is_first, "permissions").put("{")).put("}");
            is_first = false;
        }
        if let Some(domain) = self.domain {
            text = text.text_member(is_first, "domain", domain);
            is_first = false;
        }
        if let Some(yes) = self.prefers_border {
            text = text.member(is_first, "prefersBorder").put(if yes { "true" } else { "false" });
        }
        text
    }
}

/// The `_meta.ui` of a tool or a page, for [`ui_meta!`](crate::apps::ui_meta).
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct UiMeta(Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Tool(ToolMeta),
    Resource(ResourceMeta),
}

impl UiMeta {
    /// Returns the length of the JSON object, in bytes.
    #[must_use]
    pub const fn json_len(&self) -> usize {
        self.write::<0>().len
    }

    /// Returns the JSON object. Panics if its length is not `N`.
    #[must_use]
    pub const fn json<const N: usize>(&self) -> [u8; N] {
        let text = self.write::<N>();
        assert!(text.len == N, "the object has another length");
        text.bytes
    }

    const fn write<const N: usize>(&self) -> Text<N> {
        let text = Text::EMPTY.put("{\"ui\":{");
        let text = match &self.0 {
            Kind::Tool(tool) => tool.write(text),
            Kind::Resource(resource) => resource.write(text),
        };
        text.put("}}")
    }
}
