//! The user of a client: an application that logs in by a browser which asks nothing.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use mcp_sansio_auth::config::AuthorizationLimits;
use mcp_sansio_auth::jose::Es256Key;
use mcp_sansio_blocking::client::{AuthorizationOptions, FetchLimits, FetchRequest, Fetcher};

/// Returns options that log in at once. A page that leads nowhere ends the login after 10 seconds.
pub fn login() -> AuthorizationOptions {
    let mut limits = AuthorizationLimits::default();
    limits.visit = 10;
    AuthorizationOptions::new("test").visit(browse).config(|config| config.limits(limits))
}

/// Visits a URL as a browser does, in a thread.
pub fn browse(url: &str) {
    let url = url.to_owned();
    thread::spawn(move || {
        if let Some(back) = redirect_of(&url) {
            let _ = Fetcher::new(FetchLimits::DEFAULT).fetch(&FetchRequest::get(&back));
        }
    });
}

/// Returns where a login page sends the browser.
pub fn redirect_of(url: &str) -> Option<String> {
    let fetcher = Fetcher::new(FetchLimits::DEFAULT.redirects(0));
    fetcher.fetch(&FetchRequest::get(url)).ok()?.location
}

/// Returns a key that no other call returns.
pub fn fresh_key() -> Es256Key<'static> {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    Es256Key::from_bytes(&bytes).unwrap()
}
