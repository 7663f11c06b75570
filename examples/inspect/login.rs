//! Reaching a server at a URL, and logging in where it demands authorization: who this client is, the browser, the file of tokens.
//! `login_other.rs` is for systems where only programs can be reached.

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::thread;

use mcp_sansio::client::ClientInfo;
use mcp_sansio_blocking::client::auth::RegisteredClient;
use mcp_sansio_blocking::client::auth::url::acceptable;
use mcp_sansio_blocking::client::{AuthorizationOptions, ClientError, ClientOptions, Http, HttpOptions, TokenFile};

use crate::args::Options;
use crate::live;
use crate::terminal::Stop;
use crate::text;

/// The port for the redirect, unless another program has it: some authorization servers accept only the port that was
/// registered.
const PORT: u16 = 8976;

/// Creates the connection to a URL, and sends nothing.
pub(crate) fn reach<'m>(
    url: &str,
    settings: &Options,
    limits: ClientOptions,
    profile: &'m ClientInfo<'m>,
    stop: &Stop,
) -> Result<Http<'m>, ClientError> {
    let mut http = HttpOptions::new().options(limits);
    for (name, value) in &settings.headers {
        http = http.header(name, value);
    }
    let http = Http::with(url, profile, http)?;
    match options(url, settings, stop)? {
        Some(login) => http.authorization(login),
        None => Ok(http),
    }
}

/// Returns the options of authorization for a server, or `None` if it gets no tokens: it is reached over plain HTTP, or
/// `--header` has credentials.
fn options(url: &str, options: &Options, stop: &Stop) -> Result<Option<AuthorizationOptions>, ClientError> {
    let has_header = options.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if has_header || acceptable(url, url).is_err() {
        return Ok(None);
    }
    let (opens, stop) = (!options.no_browser, stop.clone());
    let mut login = AuthorizationOptions::new("inspect (mcp-sansio)")
        .port(PORT)
        .visit(move |url| visit(url, opens))
        .wait_while(move || !stop.is_set());
    if let Some(file) = TokenFile::for_server(url) {
        login = login.tokens(file).not_saved(|error| {
            live::write(&format!("The login is not saved: {}\n", text::clean(error.to_string())));
        });
    }
    if let Some(id) = &options.client_id {
        let mut client = RegisteredClient::new(id);
        if let Some(name) = &options.client_secret_env {
            let secret = env::var(name);
            let secret = secret.map_err(|error| ClientError::Url(format!("--client-secret-env {name}: {error}")))?;
            client = client.secret(secret);
        }
        login = login.config(|config| config.registered(client));
    }
    if let Some(url) = &options.client_metadata {
        login = login.config(|config| config.client_metadata_url(url));
    }
    if let Some(scope) = &options.scope {
        login = login.config(|config| config.scope(scope));
    }
    Ok(Some(login))
}

/// Returns `true` if there are tokens for a server.
pub(crate) fn is_known(url: &str) -> bool {
    TokenFile::for_server(url).is_some_and(|file| file.path().exists())
}

/// Revokes the token of a server, and forgets the login. Returns whether there was one.
pub(crate) fn logout(url: &str, settings: &Options, stop: &Stop) -> io::Result<bool> {
    let Some(file) = TokenFile::for_server(url).filter(|file| file.path().exists()) else { return Ok(false) };
    let revoked = match options(url, settings, stop) {
        Ok(Some(login)) => login.log_out(url),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    // The authorization server may be away, or the file unreadable: the login is forgotten in any case.
    if let Err(error) = revoked {
        live::write(&format!("The token is not revoked: {}\n", text::clean(error.to_string())));
    }
    file.remove()
}

/// Shows a URL, and opens it in a browser if `opens` says so.
fn visit(url: &str, opens: bool) {
    let shown = text::clean(url);
    live::write(&format!("The server demands a login. Visit this page to go on; Ctrl-C gives up:\n  {shown}\n"));
    if opens && let Some((program, args)) = browser(url) {
        let mut browser = Command::new(program);
        browser.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The page is printed: without a browser here, the user opens it in another one.
        if let Ok(mut child) = browser.spawn() {
            thread::spawn(move || child.wait());
        }
    }
}

/// Returns the program that opens a URL, with its arguments: the first that `BROWSER` names, else the system's. No shell
/// reads the URL.
fn browser(url: &str) -> Option<(OsString, Vec<String>)> {
    let named = env::var("BROWSER").unwrap_or_default();
    let named = named.split(':').find(|words| !words.trim().is_empty());
    let system = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut words = named.unwrap_or(system).split_whitespace();
    let program = words.next()?.into();
    let mut args: Vec<String> = words.map(|word| word.replace("%s", url)).collect();
    if !args.iter().any(|arg| arg.contains(url)) {
        args.push(url.to_owned());
    }
    Some((program, args))
}
