//! What a server says of itself: name, capabilities, instructions, and which revisions it serves.

use super::opening::{Legacy, Modern};
use crate::json::write::{escape, is_plain};
use crate::json::{Raw, Text, object::Object};
use crate::protocol::{Feature, Features, meta};
use crate::revision::{Era, Revision, Revisions, Since};
use crate::sink::{Full, Writer};
use crate::small::SMALL;

/// How long a client may keep a list, a resource or the description of the server (2026-07-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Caching {
    /// Milliseconds; 0 means not at all.
    pub ttl_ms: u64,
    /// Whether a cache may serve it to other users.
    pub public: bool,
}

impl Caching {
    /// Not at all, for nobody else: the default.
    pub const NONE: Caching = Caching { ttl_ms: 0, public: false };

    /// For this user only, so many milliseconds.
    #[must_use]
    pub const fn private(ttl_ms: u64) -> Self {
        Caching { ttl_ms, public: false }
    }

    /// For any user, so many milliseconds.
    #[must_use]
    pub const fn public(ttl_ms: u64) -> Self {
        Caching { ttl_ms, public: true }
    }

    /// Whether a member of a result says how long it may be kept.
    pub(crate) fn is_hint(key: &Text<'_>) -> bool {
        key.is("ttlMs") || key.is("cacheScope")
    }

    /// What a result says of it, as far as that is valid; the rest as it is here.
    pub(crate) fn or_of(self, result: Raw<'_>) -> Self {
        let ttl_ms = result.get("ttlMs").and_then(|ttl| ttl.u64()).unwrap_or(self.ttl_ms);
        let public = match result.get("cacheScope").and_then(|scope| scope.text()) {
            Some(scope) if scope.is("public") => true,
            Some(scope) if scope.is("private") => false,
            _ => self.public,
        };
        Caching { ttl_ms, public }
    }

    pub(crate) fn write(self, object: &mut Object<'_, '_>) -> Result<(), Full> {
        object.number("ttlMs", self.ttl_ms)?;
        object.fixed("cacheScope", if self.public { "\"public\"" } else { "\"private\"" })
    }
}

/// An icon (2025-11-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon<'t> {
    /// Where it is: an `https:` or `data:` URI.
    pub src: &'t str,
    /// Its MIME type.
    pub mime: Option<&'t str>,
    /// Its sizes, like `48x48`; `any` for a scalable one.
    pub sizes: &'t [&'t str],
    /// `light` or `dark`, if it is for one of them.
    pub theme: Option<&'t str>,
}

impl<'t> Icon<'t> {
    /// An icon at `src`.
    #[must_use]
    pub const fn new(src: &'t str) -> Self {
        Icon { src, mime: None, sizes: &[], theme: None }
    }

    /// With its MIME type.
    #[must_use]
    pub const fn mime(self, mime: &'t str) -> Self {
        Icon { mime: Some(mime), ..self }
    }

    /// With its sizes.
    #[must_use]
    pub const fn sizes(self, sizes: &'t [&'t str]) -> Self {
        Icon { sizes, ..self }
    }

    /// For a `light` or a `dark` theme.
    #[must_use]
    pub const fn theme(self, theme: &'t str) -> Self {
        Icon { theme: Some(theme), ..self }
    }

    fn write(&self, out: &mut Writer<'_>) -> Result<(), Full> {
        let mut object = Object::open(out);
        object.text("src", self.src)?;
        object.text_if("mimeType", self.mime)?;
        if !self.sizes.is_empty() {
            write_texts(object.key("sizes"), self.sizes)?;
        }
        object.text_if("theme", self.theme)?;
        object.close()
    }
}

/// The icons of something. A program that has none is linked without what writes them.
#[derive(Clone, Copy, Debug)]
pub struct Icons<'t>(Option<(&'t [Icon<'t>], WriteIcons)>);

type WriteIcons = fn(&mut Writer<'_>, &[Icon<'_>]) -> Result<(), Full>;

impl<'t> Icons<'t> {
    /// No icons.
    pub const NONE: Icons<'static> = Icons(None);

    /// These icons.
    #[must_use]
    pub const fn new(icons: &'t [Icon<'t>]) -> Self {
        if icons.is_empty() { Icons(None) } else { Icons(Some((icons, write_icons))) }
    }

    pub(crate) fn write(self, object: &mut Object<'_, '_>, revision: Revision) -> Result<(), Full> {
        match self.0.filter(|_| revision.has(Since::Icons)) {
            Some((icons, write)) => write(object.key("icons"), icons),
            None => Ok(()),
        }
    }
}

fn write_icons(out: &mut Writer<'_>, icons: &[Icon<'_>]) -> Result<(), Full> {
    for (i, icon) in icons.iter().enumerate() {
        out.put(if i == 0 { b"[" } else { b"," })?;
        icon.write(out)?;
    }
    out.put(b"]")
}

pub(crate) fn write_texts(out: &mut Writer<'_>, texts: &[&str]) -> Result<(), Full> {
    out.put(b"[")?;
    for (i, text) in texts.iter().enumerate() {
        if i > 0 {
            out.put(b",")?;
        }
        crate::json::write::string(out, text)?;
    }
    out.put(b"]")
}

/// What a server says of itself. Made by `Service` from its tables, or by hand for those who dispatch themselves.
#[derive(Clone, Copy, Debug)]
pub struct About<'t> {
    pub(crate) name: &'t str,
    pub(crate) version: &'t str,
    pub(crate) title: Option<&'t str>,
    pub(crate) description: Option<&'t str>,
    pub(crate) website: Option<&'t str>,
    pub(crate) icons: Icons<'t>,
    pub(crate) instructions: Option<&'t str>,
    pub(crate) features: Features,
    pub(crate) experimental: Option<Raw<'t>>,
    pub(crate) extensions: Option<Raw<'t>>,
    pub(crate) caching: Caching,
    pub(crate) revisions: Revisions,
    /// What the eras need, each if a revision of it is served.
    pub(crate) legacy: Option<&'static Legacy>,
    pub(crate) modern: Option<&'static Modern>,
    pub(crate) signs_results: bool,
    /// Name and version need no escapes.
    plain: bool,
    /// What writes what only some servers tell of themselves, and of what they can: others are linked without.
    details: Option<WritePart>,
    capabilities: Option<WritePart>,
}

/// Writes some members.
type WritePart = fn(&About<'_>, &mut Object<'_, '_>, Revision) -> Result<(), Full>;

impl<'t> About<'t> {
    /// A server of that name and version, with no capabilities, in all revisions.
    #[must_use]
    pub const fn new(name: &'t str, version: &'t str) -> Self {
        About {
            name,
            version,
            title: None,
            description: None,
            website: None,
            icons: Icons::NONE,
            instructions: None,
            features: Features::NONE,
            experimental: None,
            extensions: None,
            caching: Caching::NONE,
            revisions: Revisions::ALL,
            legacy: Some(&Legacy::CODE),
            modern: Some(&Modern::CODE),
            signs_results: true,
            plain: is_plain(name) && is_plain(version),
            details: None,
            capabilities: None,
        }
    }

    /// A name for people.
    #[must_use]
    pub const fn title(self, title: &'t str) -> Self {
        About { title: Some(title), details: Some(write_details), ..self }
    }

    /// One sentence on what it is.
    #[must_use]
    pub const fn description(self, description: &'t str) -> Self {
        About { description: Some(description), details: Some(write_details), ..self }
    }

    /// Where to read more.
    #[must_use]
    pub const fn website(self, url: &'t str) -> Self {
        About { website: Some(url), details: Some(write_details), ..self }
    }

    /// Its icons.
    #[must_use]
    pub const fn icons(self, icons: &'t [Icon<'t>]) -> Self {
        About { icons: Icons::new(icons), details: Some(write_details), ..self }
    }

    /// How a model should use it.
    #[must_use]
    pub const fn instructions(self, text: &'t str) -> Self {
        About { instructions: Some(text), ..self }
    }

    /// One more capability.
    #[must_use]
    pub const fn feature(self, feature: Feature) -> Self {
        let capabilities = match feature {
            Feature::Tools | Feature::ToolsChanged => self.capabilities,
            _ => Some(write_capabilities as WritePart),
        };
        About { features: self.features.with(feature), capabilities, ..self }
    }

    /// The `experimental` capabilities, an object as it stands.
    #[must_use]
    pub const fn experimental(self, object: Raw<'t>) -> Self {
        About { experimental: Some(object), capabilities: Some(write_capabilities), ..self }
    }

    /// The `extensions` capability, an object as it stands (2026-07-28).
    #[must_use]
    pub const fn extensions(self, object: Raw<'t>) -> Self {
        About { extensions: Some(object), capabilities: Some(write_capabilities), ..self }
    }

    /// How long clients may keep lists, resources and this description (2026-07-28).
    #[must_use]
    pub const fn caching(self, caching: Caching) -> Self {
        About { caching, ..self }
    }

    /// The revisions it serves.
    #[must_use]
    pub const fn served(&self) -> Revisions {
        self.revisions
    }

    /// Serves these revisions. Where 2026-07-28 is the only one, there is no handshake: `initialize` is answered with
    /// -32022, whose `data.supported` names the revisions, and other requests without `_meta` with -32602.
    #[must_use]
    pub const fn revisions(self, revisions: Revisions) -> Self {
        let (legacy, modern) = match (revisions.has_era(Era::Legacy), revisions.has_era(Era::Modern)) {
            (true, true) => (Some(&Legacy::CODE), Some(&Modern::CODE)),
            (true, false) => (Some(&Legacy::CODE), None),
            (false, true) => (None, Some(&Modern::ALONE)),
            (false, false) => (None, None),
        };
        About { revisions, legacy, modern, ..self }
    }

    /// Leaves name and version out of the results of 2026-07-28, where they SHOULD be.
    #[must_use]
    pub const fn unsigned(self) -> Self {
        About { signs_results: false, ..self }
    }

    /// Whether a capability is declared.
    #[must_use]
    pub const fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    pub(crate) fn write_implementation(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let mut object = Object::open(out);
        object.text("name", self.name)?;
        object.text("version", self.version)?;
        if let Some(write) = self.details {
            write(self, &mut object, revision)?;
        }
        object.close()
    }

    /// The short form that signs each result of 2026-07-28.
    pub(crate) fn write_signature(&self, out: &mut Writer<'_>) -> Result<(), Full> {
        let mut object = Object::open(out);
        object.text("name", self.name)?;
        object.text("version", self.version)?;
        object.close()
    }

    /// What stands between the first and the last quote of the signature's values.
    fn write_names(&self, out: &mut Writer<'_>) -> Result<(), Full> {
        let write = |out: &mut Writer<'_>, text: &str| match self.plain {
            true => out.put(text.as_bytes()),
            false => escape(out, text),
        };
        write(out, self.name)?;
        out.put(b"\",\"version\":\"")?;
        write(out, self.version)
    }

    /// The end of a result with its `_meta`, which is nothing but the signature: in few pieces, since every result of
    /// 2026-07-28 has it.
    pub(crate) fn sign(&self, mut result: Object<'_, '_>) -> Result<(), Full> {
        if SMALL {
            let mut object = Object::open(result.key("_meta"));
            self.write_signature(object.key(meta::SERVER_INFO))?;
            return object.close_with(b"}}}");
        }
        let out = result.literal(",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"");
        self.write_names(out)?;
        out.put(b"\"}}}}")
    }

    pub(crate) fn write_capabilities(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let mut object = Object::open(out);
        if let Some(write) = self.capabilities {
            write(self, &mut object, revision)?;
        }
        if self.has(Feature::Tools) {
            object.fixed("tools", changed(self.has(Feature::ToolsChanged)))?;
        }
        object.close()
    }

    const fn resources(&self) -> &'static str {
        match (self.has(Feature::Subscribe), self.has(Feature::ResourcesChanged)) {
            (true, true) => r#"{"subscribe":true,"listChanged":true}"#,
            (true, false) => r#"{"subscribe":true}"#,
            (false, true) => r#"{"listChanged":true}"#,
            (false, false) => "{}",
        }
    }
}

fn write_details(about: &About<'_>, object: &mut Object<'_, '_>, revision: Revision) -> Result<(), Full> {
    if revision.has(Since::Title) {
        object.text_if("title", about.title)?;
    }
    if revision.has(Since::ImplementationDetails) {
        object.text_if("description", about.description)?;
        object.text_if("websiteUrl", about.website)?;
    }
    about.icons.write(object, revision)
}

fn write_capabilities(about: &About<'_>, object: &mut Object<'_, '_>, revision: Revision) -> Result<(), Full> {
    if revision.has(Since::CompletionsCapability) && about.has(Feature::Completions) {
        object.fixed("completions", "{}")?;
    }
    object.raw_if("experimental", about.experimental)?;
    if revision.has(Since::Extensions) {
        object.raw_if("extensions", about.extensions)?;
    }
    if about.has(Feature::Logging) {
        object.fixed("logging", "{}")?;
    }
    if about.has(Feature::Prompts) {
        object.fixed("prompts", changed(about.has(Feature::PromptsChanged)))?;
    }
    if about.has(Feature::Resources) {
        object.fixed("resources", about.resources())?;
    }
    Ok(())
}

const fn changed(declared: bool) -> &'static str {
    if declared { r#"{"listChanged":true}"# } else { "{}" }
}
