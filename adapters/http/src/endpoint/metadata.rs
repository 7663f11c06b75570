//! Metadata of a protected resource (RFC 9728): the URL at which clients ask for authorization.

use mcp_sansio::FullError;
use mcp_sansio::json::Raw;
use mcp_sansio::sink::{MessageHead, Out};

use super::config::same_path;
use super::head::{EndpointResponse, RequestHead, ResponseBody};
use super::refusal::not_allowed;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

pub(crate) fn is_metadata(path: &str, endpoint: &str) -> bool {
    path.strip_prefix(WELL_KNOWN).is_some_and(|rest| rest.is_empty() || same_path(endpoint, rest))
}

pub(crate) fn serve_metadata(
    head: &RequestHead<'_>,
    metadata: Raw<'_>,
    body: &mut dyn Out,
) -> EndpointResponse<'static> {
    if head.method != "GET" {
        return not_allowed(body, "GET");
    }
    let mut write = || {
        body.begin(MessageHead::Result)?;
        body.put(metadata.as_bytes())?;
        body.end();
        Ok::<(), FullError>(())
    };
    match write() {
        Ok(()) => EndpointResponse::status(200).with(ResponseBody::Json),
        Err(_) => EndpointResponse::status(500),
    }
}
