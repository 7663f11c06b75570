//! Metadata of a protected resource (RFC 9728), which tells clients where to ask for authorization.

use mcp_sansio::Full;
use mcp_sansio::json::Raw;
use mcp_sansio::sink::{Kind, Out};

use super::config::same_path;
use super::head::{Content, Head, Response};
use super::refusal::not_allowed;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

pub(crate) fn is_metadata(path: &str, endpoint: &str) -> bool {
    path.strip_prefix(WELL_KNOWN).is_some_and(|rest| rest.is_empty() || same_path(endpoint, rest))
}

pub(crate) fn serve_metadata<'r>(head: &Head<'_>, metadata: Raw<'_>, body: &mut dyn Out) -> Response<'r> {
    if head.method != "GET" {
        return not_allowed(body, "GET");
    }
    let mut write = || {
        body.begin(Kind::Result)?;
        body.put(metadata.as_bytes())?;
        body.end();
        Ok::<(), Full>(())
    };
    match write() {
        Ok(()) => Response::status(200).with(Content::Json),
        Err(_) => Response::status(500),
    }
}
