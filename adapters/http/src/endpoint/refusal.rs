//! What is refused before the protocol has looked at it.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::code;
use mcp_sansio::server::{Failure, write_error};
use mcp_sansio::sink::Out;

use super::head::{Content, Response};

/// An error of HTTP, with a JSON-RPC error without id to read.
pub(crate) fn refuse<'r>(body: &mut dyn Out, status: u16, code: i32, message: &str) -> Response<'r> {
    refuse_request(body, status, None, &Failure::new(code, message))
}

/// As [`refuse`], with the id of the request that is refused, if that is known.
pub(crate) fn refuse_request<'r>(
    body: &mut dyn Out,
    status: u16,
    id: Option<Raw<'_>>,
    failure: &Failure<'_>,
) -> Response<'r> {
    let written = write_error(body, id, failure);
    let content = if written.is_ok() { Content::Json } else { Content::None };
    Response::status(status).with(content)
}

pub(crate) fn not_allowed<'r>(body: &mut dyn Out, allow: &'static str) -> Response<'r> {
    let mut response = refuse(body, 405, code::INVALID_REQUEST, "Method not allowed");
    response.allow = Some(allow);
    response
}
