//! What a client says of itself: who it is, what it can be asked for, which revisions it speaks.

use crate::json::{Raw, Text, object::Object, write};
use crate::protocol::{ClientFeature, ClientFeatures, Level, meta};
use crate::revision::{Revision, Revisions, Since};
use crate::server::{Icon, Icons};
use crate::sink::{Full, Writer};

/// What a client says of itself; `clientInfo` and `capabilities` of the protocol.
///
/// ```
/// use mcp_sansio::client::Profile;
/// use mcp_sansio::protocol::ClientFeature;
///
/// static EDITOR: Profile<'static> = Profile::new("editor", "2.1")
///     .title("The Editor")
///     .feature(ClientFeature::ElicitForm)
///     .feature(ClientFeature::Roots);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Profile<'t> {
    name: &'t str,
    version: &'t str,
    title: Option<&'t str>,
    description: Option<&'t str>,
    website: Option<&'t str>,
    icons: Icons<'t>,
    pub(crate) features: ClientFeatures,
    roots_changed: bool,
    experimental: Option<Raw<'t>>,
    extensions: Option<Raw<'t>>,
    pub(crate) revisions: Revisions,
}

impl<'t> Profile<'t> {
    /// A client of that name and version, which can be asked for nothing, in all revisions.
    #[must_use]
    pub const fn new(name: &'t str, version: &'t str) -> Self {
        Profile {
            name,
            version,
            title: None,
            description: None,
            website: None,
            icons: Icons::NONE,
            features: ClientFeatures::NONE,
            roots_changed: false,
            experimental: None,
            extensions: None,
            revisions: Revisions::ALL,
        }
    }

    /// A name for people (from 2025-06-18 on).
    #[must_use]
    pub const fn title(self, title: &'t str) -> Self {
        Profile { title: Some(title), ..self }
    }

    /// What it is, in a sentence (from 2025-11-25 on).
    #[must_use]
    pub const fn description(self, description: &'t str) -> Self {
        Profile { description: Some(description), ..self }
    }

    /// Where to read more (from 2025-11-25 on).
    #[must_use]
    pub const fn website(self, url: &'t str) -> Self {
        Profile { website: Some(url), ..self }
    }

    /// Its icons (from 2025-11-25 on).
    #[must_use]
    pub const fn icons(self, icons: &'t [Icon<'t>]) -> Self {
        Profile { icons: Icons::new(icons), ..self }
    }

    /// What it can be asked for: the application must then answer [`Event::Asked`](super::Event::Asked). Everything else
    /// is refused for it.
    #[must_use]
    pub const fn feature(self, feature: ClientFeature) -> Self {
        Profile { features: self.features.with(feature), ..self }
    }

    /// It tells when its roots change, with [`roots_changed`](super::ClientOf::roots_changed).
    #[must_use]
    pub const fn roots_changed(self) -> Self {
        let features = self.features.with(ClientFeature::Roots);
        Profile { roots_changed: true, features, ..self }
    }

    /// Experimental capabilities, an object as it stands.
    #[must_use]
    pub const fn experimental(self, object: Raw<'t>) -> Self {
        Profile { experimental: Some(object), ..self }
    }

    /// Extensions and their settings, an object as it stands (from 2026-07-28 on). A result whose `resultType` is none of
    /// the protocol's is given to the application as it stands then; without extensions it is [`Lost::Invalid`].
    ///
    /// [`Lost::Invalid`]: super::Lost::Invalid
    #[must_use]
    pub const fn extensions(self, object: Raw<'t>) -> Self {
        Profile { extensions: Some(object), ..self }
    }

    /// The revisions it speaks; a single one pins it.
    #[must_use]
    pub const fn revisions(self, revisions: Revisions) -> Self {
        Profile { revisions, ..self }
    }

    /// Whether it declares something.
    #[must_use]
    pub const fn has(&self, feature: ClientFeature) -> bool {
        self.features.has(feature)
    }

    pub(crate) const fn has_extensions(&self) -> bool {
        self.extensions.is_some()
    }

    /// Whether it tells when its roots change.
    pub(crate) const fn tells_roots(&self) -> bool {
        self.roots_changed
    }

    /// What a server of that revision is told that it can ask for.
    pub(crate) fn declared(&self, revision: Revision) -> ClientFeatures {
        let known = |feature| match feature {
            ClientFeature::ElicitForm => revision.has(Since::Elicitation),
            ClientFeature::ElicitUrl => revision.has(Since::ElicitationMode),
            ClientFeature::SamplingTools => revision.has(Since::SamplingTools),
            ClientFeature::SamplingContext => revision.has(Since::SamplingContextGated),
            ClientFeature::Sampling | ClientFeature::Roots => true,
        };
        // Sampling with tools is sampling.
        let has =
            |feature| self.has(feature) || feature == ClientFeature::Sampling && self.has(ClientFeature::SamplingTools);
        let declared = ClientFeature::ALL.into_iter().filter(|&feature| has(feature) && known(feature));
        declared.fold(ClientFeatures::NONE, ClientFeatures::with)
    }

    /// Writes the `clientInfo` object.
    pub(crate) fn write_info(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let mut object = Object::open(out);
        object.text("name", self.name)?;
        if revision.has(Since::Title) {
            object.text_if("title", self.title)?;
        }
        object.text("version", self.version)?;
        if revision.has(Since::ImplementationDetails) {
            object.text_if("description", self.description)?;
            object.text_if("websiteUrl", self.website)?;
        }
        self.icons.write(&mut object, revision)?;
        object.close()
    }

    /// Writes the `capabilities` object, with what the revision knows of it.
    pub(crate) fn write_capabilities(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let mut object = Object::open(out);
        object.raw_if("experimental", self.experimental)?;
        if revision.has(Since::Extensions) {
            object.raw_if("extensions", self.extensions)?;
        }
        if self.has(ClientFeature::Roots) {
            // Under 2026-07-28 there is nothing that could tell it.
            let changed = self.roots_changed && !revision.is_modern();
            object.fixed("roots", if changed { r#"{"listChanged":true}"# } else { "{}" })?;
        }
        if self.has(ClientFeature::Sampling) || self.has(ClientFeature::SamplingTools) {
            self.write_sampling(object.key("sampling"), revision)?;
        }
        if revision.has(Since::Elicitation) {
            self.write_elicitation(&mut object, revision)?;
        }
        object.close()
    }

    fn write_sampling(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let mut sampling = Object::open(out);
        if revision.has(Since::SamplingTools) && self.has(ClientFeature::SamplingTools) {
            sampling.fixed("tools", "{}")?;
        }
        if revision.has(Since::SamplingContextGated) && self.has(ClientFeature::SamplingContext) {
            sampling.fixed("context", "{}")?;
        }
        sampling.close()
    }

    fn write_elicitation(&self, capabilities: &mut Object<'_, '_>, revision: Revision) -> Result<(), Full> {
        let (form, url) = (self.has(ClientFeature::ElicitForm), self.has(ClientFeature::ElicitUrl));
        match (form, url) {
            (true, _) if !revision.has(Since::ElicitationMode) => capabilities.fixed("elicitation", "{}"),
            (false, true) if !revision.has(Since::ElicitationMode) => Ok(()),
            (true, true) => capabilities.fixed("elicitation", r#"{"form":{},"url":{}}"#),
            (true, false) => capabilities.fixed("elicitation", r#"{"form":{}}"#),
            (false, true) => capabilities.fixed("elicitation", r#"{"url":{}}"#),
            (false, false) => Ok(()),
        }
    }
}

/// What a request's `_meta` says besides what the protocol puts there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MetaParts<'r> {
    /// The id that is also its progress token, if it wants progress.
    pub(crate) progress: Option<u32>,
    /// The least severe log messages it wants, under 2026-07-28.
    pub(crate) level: Option<Level>,
    /// The application's own members.
    pub(crate) own: Option<Raw<'r>>,
}

impl MetaParts<'_> {
    /// Whether the engine itself writes the member of that key.
    fn writes(&self, key: &Text<'_>, revision: Revision) -> bool {
        let modern = [meta::VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES].iter().any(|own| key.is(own));
        (revision.is_modern() && (modern || self.level.is_some() && key.is(meta::LOG_LEVEL)))
            || self.progress.is_some() && key.is("progressToken")
    }
}

impl Profile<'_> {
    /// Writes the `_meta` member of a request's params, if it has anything to say.
    pub(crate) fn write_meta(
        &self,
        params: &mut Object<'_, '_>,
        revision: Revision,
        parts: MetaParts<'_>,
    ) -> Result<(), Full> {
        if !revision.is_modern() && parts.progress.is_none() && parts.own.is_none() {
            return Ok(());
        }
        let mut object = Object::open(params.key("_meta"));
        if revision.is_modern() {
            object.text(meta::VERSION, revision.date())?;
            self.write_info(object.key(meta::CLIENT_INFO), revision)?;
            self.write_capabilities(object.key(meta::CLIENT_CAPABILITIES), revision)?;
            if let Some(level) = parts.level {
                object.text(meta::LOG_LEVEL, level.name())?;
            }
        }
        if let Some(token) = parts.progress {
            write::unsigned(object.key("progressToken"), token.into())?;
        }
        for (key, value) in parts.own.iter().flat_map(Raw::members) {
            if !parts.writes(&key, revision) {
                object.member(key, value)?;
            }
        }
        object.close()
    }
}
