//! Documents of servers: protected resource metadata, authorization server metadata, and where they are.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio_http::client::Url;

use crate::client::error::{AuthorizationError, Document, shown};
use crate::client::well_known::{inserted, origin};
use crate::url::acceptable;

/// Most elements of a list that are read.
const ELEMENTS: usize = 256;

/// A JSON object with members that are checked.
#[derive(Clone, Copy)]
pub(crate) struct Members<'a> {
    raw: Raw<'a>,
    document: Document,
}

impl<'a> Members<'a> {
    pub(crate) fn parse(document: Document, body: &'a [u8]) -> Result<Self, AuthorizationError> {
        let raw = Raw::parse(body).ok().filter(|raw| raw.kind() == JsonKind::Object);
        raw.map(|raw| Members { raw, document }).ok_or(AuthorizationError::Document { document, member: "" })
    }

    pub(crate) const fn wrong(&self, member: &'static str) -> AuthorizationError {
        AuthorizationError::Document { document: self.document, member }
    }

    /// Returns a member; one that is `null` counts as missing.
    pub(crate) fn get(&self, member: &str) -> Option<Raw<'a>> {
        self.raw.get(member).filter(|value| value.kind() != JsonKind::Null)
    }

    /// Returns a string, empty if it is missing.
    pub(crate) fn text(&self, member: &'static str) -> Result<String, AuthorizationError> {
        self.get(member).map_or(Ok(String::new()), |value| string(value).ok_or(self.wrong(member)))
    }

    /// Returns a string that must be there.
    pub(crate) fn required(&self, member: &'static str) -> Result<String, AuthorizationError> {
        self.text(member)?.into_some().ok_or(self.wrong(member))
    }

    /// Returns a list of strings; `None` if it is missing.
    pub(crate) fn list(&self, member: &'static str) -> Result<Option<Vec<String>>, AuthorizationError> {
        let Some(list) = self.get(member) else { return Ok(None) };
        let items = || list.items().take(ELEMENTS).map(|item| string(item).ok_or(self.wrong(member)));
        if list.kind() == JsonKind::Array {
            items().collect::<Result<_, _>>().map(Some)
        } else {
            Err(self.wrong(member))
        }
    }

    fn flag(&self, member: &'static str) -> Result<bool, AuthorizationError> {
        self.get(member).map_or(Ok(false), |value| value.bool().ok_or(self.wrong(member)))
    }

    /// Returns the URL of an endpoint of an authorization server for the server at `server`; empty if it is missing.
    fn endpoint(&self, member: &'static str, server: &str) -> Result<String, AuthorizationError> {
        let text = self.text(member)?;
        if !text.is_empty() {
            acceptable(&text, server).map_err(|reason| AuthorizationError::Url { member, reason })?;
        }
        Ok(text)
    }

    /// Returns the error of [RFC 6749, section 5.2](https://www.rfc-editor.org/rfc/rfc6749#section-5.2) that the object
    /// holds.
    pub(crate) fn refusal(&self) -> Option<AuthorizationError> {
        let error = self.get("error")?.text()?;
        let description = self.get("error_description").and_then(|text| text.text());
        Some(AuthorizationError::Refused {
            document: self.document,
            error: shown(error.chars().filter_map(Result::ok)),
            description: description.map_or(String::new(), |text| shown(text.chars().filter_map(Result::ok))),
        })
    }
}

fn string(value: Raw<'_>) -> Option<String> {
    value.text()?.chars().collect::<Result<_, _>>().ok()
}

/// Turns an empty text into `None`.
pub(crate) trait IntoSome: Sized {
    fn into_some(self) -> Option<Self>;
}

impl IntoSome for String {
    fn into_some(self) -> Option<Self> {
        (!self.is_empty()).then_some(self)
    }
}

/// Protected resource metadata ([RFC 9728](https://www.rfc-editor.org/rfc/rfc9728#section-2)), as far as a client uses it.
#[derive(Debug)]
pub(crate) struct ResourceMetadata {
    /// As it was written: it is sent byte for byte.
    pub(crate) resource: String,
    pub(crate) authorization_servers: Vec<String>,
    /// Separated by spaces.
    pub(crate) scopes: String,
    pub(crate) demands_dpop: bool,
}

impl ResourceMetadata {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, AuthorizationError> {
        let members = Members::parse(Document::ResourceMetadata, body)?;
        let scopes = members.list("scopes_supported")?.unwrap_or_default();
        if !scopes.iter().all(|scope| is_scope_token(scope)) {
            return Err(members.wrong("scopes_supported"));
        }
        Ok(ResourceMetadata {
            resource: members.required("resource")?,
            authorization_servers: members
                .list("authorization_servers")?
                .filter(|servers| !servers.is_empty())
                .ok_or(members.wrong("authorization_servers"))?,
            scopes: scopes.join(" "),
            demands_dpop: members.flag("dpop_bound_access_tokens_required")?,
        })
    }
}

/// Authorization server metadata ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414#section-2)), as far as a client uses it.
/// Endpoints that are missing are empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerMetadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) registration_endpoint: String,
    pub(crate) revocation_endpoint: String,
    pub(crate) grant_types: Option<Vec<String>>,
    pub(crate) auth_methods: Option<Vec<String>>,
    pub(crate) code_challenge_methods: Option<Vec<String>>,
    pub(crate) scopes: Vec<String>,
    pub(crate) dpop_algorithms: Option<Vec<String>>,
    pub(crate) takes_metadata_documents: bool,
    pub(crate) sends_iss: bool,
}

impl ServerMetadata {
    /// Reads metadata for a client of the server at `server`.
    pub(crate) fn parse(body: &[u8], server: &str) -> Result<Self, AuthorizationError> {
        let members = Members::parse(Document::ServerMetadata, body)?;
        Ok(ServerMetadata {
            issuer: members.required("issuer")?,
            authorization_endpoint: members.endpoint("authorization_endpoint", server)?,
            token_endpoint: members
                .endpoint("token_endpoint", server)?
                .into_some()
                .ok_or(members.wrong("token_endpoint"))?,
            registration_endpoint: members.endpoint("registration_endpoint", server)?,
            revocation_endpoint: members.endpoint("revocation_endpoint", server)?,
            grant_types: members.list("grant_types_supported")?,
            auth_methods: members.list("token_endpoint_auth_methods_supported")?,
            code_challenge_methods: members.list("code_challenge_methods_supported")?,
            scopes: members.list("scopes_supported")?.unwrap_or_default(),
            dpop_algorithms: members.list("dpop_signing_alg_values_supported")?,
            takes_metadata_documents: members.flag("client_id_metadata_document_supported")?,
            sends_iss: members.flag("authorization_response_iss_parameter_supported")?,
        })
    }

    /// Returns the endpoints that a server of 2025-03-26 without metadata has
    /// ([fallbacks](https://modelcontextprotocol.io/specification/2025-03-26/basic/authorization#fallbacks-for-servers-without-metadata-discovery)).
    pub(crate) fn of_origin(origin: &str) -> Self {
        let at = |path: &str| alloc::format!("{origin}{path}");
        ServerMetadata {
            issuer: origin.to_string(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            ..Self::default()
        }
    }

    /// Returns whether the server supports a grant.
    pub(crate) fn supports_grant(&self, grant: &str) -> bool {
        match &self.grant_types {
            Some(grants) => grants.iter().any(|supported| supported == grant),
            None => grant == "authorization_code",
        }
    }
}

/// Returns the places of protected resource metadata in the order in which they are tried, the last one first: the URL of
/// the challenge, the path of the server, the root
/// ([discovery](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery)).
pub(crate) fn resource_places(challenge: Option<String>, server: &Url<'_>) -> Vec<String> {
    const NAME: &str = "oauth-protected-resource";
    let root = alloc::format!("{}/.well-known/{NAME}", origin(server));
    let path = inserted(server, NAME);
    let mut places = if path == root { Vec::new() } else { alloc::vec![root] };
    places.push(path);
    if let Some(challenge) = challenge {
        places.retain(|place| *place != challenge);
        places.push(challenge);
    }
    places
}

/// Returns whether a text is one scope: `scope-token` of
/// [RFC 6749, section 3.3](https://www.rfc-editor.org/rfc/rfc6749#section-3.3).
pub(crate) fn is_scope_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// Adds the scopes of `more` that are not in `scopes` yet.
pub(crate) fn unite(scopes: &mut String, more: &str) {
    for scope in more.split_ascii_whitespace() {
        if !includes(scopes, scope) {
            if !scopes.is_empty() {
                scopes.push(' ');
            }
            scopes.push_str(scope);
        }
    }
}

/// Returns whether each scope of `some` is in `scopes`.
pub(crate) fn includes(scopes: &str, some: &str) -> bool {
    some.split_ascii_whitespace().all(|one| scopes.split_ascii_whitespace().any(|scope| scope == one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::well_known::server_places;
    use std::format;

    fn places(url: &str, of: fn(&Url<'_>) -> Vec<String>) -> Vec<String> {
        let mut places = of(&Url::parse(url).unwrap());
        places.reverse();
        places
    }

    // spec: A072 A073 A074 A075 A076 A077 A078 A079 A089
    #[test]
    fn places_in_their_order() {
        let of_resource = |url: &Url<'_>| resource_places(None, url);
        assert_eq!(
            places("https://h:1/a/mcp", of_resource),
            [
                "https://h:1/.well-known/oauth-protected-resource/a/mcp",
                "https://h:1/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(places("https://h", of_resource), ["https://h/.well-known/oauth-protected-resource"]);
        assert_eq!(
            places("https://h/mcp", |url| resource_places(Some("https://h/x".into()), url)),
            [
                "https://h/x",
                "https://h/.well-known/oauth-protected-resource/mcp",
                "https://h/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            places("https://as/t", server_places),
            [
                "https://as/.well-known/oauth-authorization-server/t",
                "https://as/.well-known/openid-configuration/t",
                "https://as/t/.well-known/openid-configuration"
            ]
        );
        assert_eq!(places("https://as/t/", server_places), places("https://as/t", server_places));
        for issuer in ["https://as", "https://as/"] {
            assert_eq!(
                places(issuer, server_places),
                ["https://as/.well-known/oauth-authorization-server", "https://as/.well-known/openid-configuration"]
            );
        }
    }

    #[test]
    fn documents_are_checked() {
        let resource = |text: &str| ResourceMetadata::parse(text.as_bytes()).map(|found| found.resource);
        assert_eq!(
            resource(r#"{"resource":"x","authorization_servers":["y"],"scopes_supported":null}"#),
            Ok("x".into())
        );
        for (text, member) in [
            ("[]", ""),
            ("{", ""),
            (r#"{"authorization_servers":["y"]}"#, "resource"),
            (r#"{"resource":1,"authorization_servers":["y"]}"#, "resource"),
            (r#"{"resource":"x"}"#, "authorization_servers"),
            (r#"{"resource":"x","authorization_servers":[]}"#, "authorization_servers"),
            (r#"{"resource":"x","authorization_servers":"y"}"#, "authorization_servers"),
            (r#"{"resource":"x","authorization_servers":[1]}"#, "authorization_servers"),
            (r#"{"resource":"x","authorization_servers":["y"],"scopes_supported":["a b"]}"#, "scopes_supported"),
            (r#"{"resource":"x\ud800","authorization_servers":["y"]}"#, "resource"),
        ] {
            let document = Document::ResourceMetadata;
            assert_eq!(resource(text), Err(AuthorizationError::Document { document, member }), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(resource(&format!(r#"{{"resource":"x","authorization_servers":["y"],"z":{deep}}}"#)).is_err());
    }

    #[test]
    fn endpoints_are_checked() {
        let parse = |endpoint: &str| {
            let text = format!(
                r#"{{"issuer":"https://as","token_endpoint":"https://as/t","authorization_endpoint":"{endpoint}"}}"#
            );
            ServerMetadata::parse(text.as_bytes(), "https://h/mcp").map(|found| found.authorization_endpoint)
        };
        assert_eq!(parse("https://as/a?b=c"), Ok("https://as/a?b=c".into()));
        for endpoint in [
            "javascript:alert(1)",
            "file:///x",
            "http://as/a",
            "https://127.0.0.1/a",
            "https://as/#a",
            "https://as/\\r\\na",
        ] {
            assert!(
                matches!(parse(endpoint), Err(AuthorizationError::Url { member: "authorization_endpoint", .. })),
                "{endpoint}"
            );
        }
    }

    #[test]
    fn scopes_are_united() {
        let mut scopes = String::from("a b");
        unite(&mut scopes, " b  c a d");
        assert_eq!(scopes, "a b c d");
        assert!(includes("a b", "b") && includes("a b", "") && !includes("a bc", "b"));
    }
}
