//! Logins to servers over HTTP that demand them. `no_login.rs` is for a bridge without TLS.

use mcp_sansio_smol::client::auth::url::acceptable;
use mcp_sansio_smol::client::{AuthorizationOptions, Http, TokenFile};

use crate::arguments::Target;
use crate::{Shared, lock};

/// The port for the redirect, that of `inspect`: some authorization servers accept only the port that was registered.
const PORT: u16 = 8976;

/// Lets a person log in where the server demands it. A server gets no tokens over plain HTTP, and none beside those of a header.
pub(crate) fn with_login(http: Http, shared: &Shared, at: usize, server: &Target) -> Result<Http, String> {
    let url = &*server.place;
    let has_header = server.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if has_header || acceptable(url, url).is_err() {
        return Ok(http);
    }
    let (hub, label) = (shared.hub.clone(), server.label().to_owned());
    let mut login = AuthorizationOptions::new("mcp-bridge (mcp-sansio)").port(PORT).visit(move |url| {
        let url: String = url.chars().filter(|char| !char.is_control()).collect();
        eprintln!("mcp-bridge: {label} demands a login; visit {url}");
        lock(&hub).bridge(at).explain(&format!("it demands a login; visit {url}"));
    });
    if let Some(file) = TokenFile::for_server(url) {
        login = login.tokens(file).not_saved(|error| eprintln!("mcp-bridge: the login is not saved: {error}"));
    }
    http.authorization(login).map_err(|error| error.to_string())
}
