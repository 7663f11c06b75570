//! Authorization: the identity of the client, from the context that the suites give, and a browser that logs in at once.

use std::thread;

use mcp_sansio::json::Raw;
use mcp_sansio_blocking::client::auth::config::{IdentityProvider, Secret};
use mcp_sansio_blocking::client::auth::jose::Es256Key;
use mcp_sansio_blocking::client::auth::{AuthorizationConfig, GrantType, RegisteredClient};
use mcp_sansio_blocking::client::{AuthorizationOptions, FetchLimits, FetchRequest, Fetcher};

/// The URL at which the suites pretend that this client's metadata is.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// Returns the options that the members of `context` ask for.
pub(crate) fn options(context: &str, speaks_2025_03_26: bool, revision: Option<&str>) -> AuthorizationOptions {
    let context = Raw::parse(context.as_bytes()).unwrap_or(Raw::constant("{}"));
    let member = |name: &str| context.get(name)?.text().map(|text| text.to_string());
    let mut config =
        AuthorizationConfig::new("Conformance client", "").client_metadata_url(METADATA).legacy(speaks_2025_03_26);
    if let Some(revision) = revision {
        config = config.protocol_version(revision);
    }
    if let Some(id) = member("client_id") {
        let mut client = RegisteredClient::new(id);
        if let Some(secret) = member("client_secret") {
            client = client.secret(secret);
        }
        if let Some(issuer) = member("issuer") {
            client = client.issuer(issuer);
        }
        config = config.registered(client);
    }
    if let (Some(endpoint), Some(token)) = (member("idp_token_endpoint"), member("idp_id_token")) {
        let client = RegisteredClient::new(member("idp_client_id").unwrap_or_default());
        let provider = IdentityProvider::new(endpoint, client, Secret::new(token));
        config = config.grant(GrantType::EnterpriseManaged(provider));
    } else if let Some(assertion) = member("valid_jwt") {
        config = config.grant(GrantType::WorkloadIdentity(Secret::new(assertion)));
    }
    let mut options = AuthorizationOptions::of(config).visit(browse).dpop_key(fresh_key());
    if let Some(key) = member("private_key_pem").and_then(|pem| Es256Key::from_pkcs8_pem(&pem).ok()) {
        options = options.client_key(key);
    }
    options
}

fn fresh_key() -> Es256Key<'static> {
    let mut bytes = [0; 32];
    loop {
        getrandom::fill(&mut bytes).expect("the system has random numbers");
        if let Ok(key) = Es256Key::from_bytes(&bytes) {
            return key;
        }
    }
}

/// Does what a browser does with a server that asks nothing: it goes where it is sent.
fn browse(url: &str) {
    let url = url.to_owned();
    thread::spawn(move || {
        let fetcher = Fetcher::new(FetchLimits::DEFAULT.redirects(0));
        let sent = fetcher.fetch(&FetchRequest::get(&url));
        match sent.as_ref().map(|answer| &answer.location) {
            Ok(Some(back)) => {
                if let Err(error) = fetcher.fetch(&FetchRequest::get(back)) {
                    eprintln!("the way back from the login: {error}");
                }
            }
            Ok(None) => eprintln!("the login page sent nobody back: {sent:?}"),
            Err(error) => eprintln!("the login page: {error}"),
        }
    });
}
