//! Refusals before the protocol sees the message.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::code;
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::server::{RpcError, write_error};
use mcp_sansio::sink::Out;

use super::head::{EndpointResponse, ResponseBody};

/// Answers an HTTP error, with a JSON-RPC error without `id` as its text.
pub(crate) fn refuse(body: &mut dyn Out, status: u16, message: &str) -> EndpointResponse<'static> {
    let code = if status >= 500 { code::INTERNAL } else { code::INVALID_REQUEST };
    refuse_request(body, status, None, &RpcError::new(code, message))
}

/// Does the same as [`refuse`], with the `id` of the refused request if it is known.
pub(crate) fn refuse_request(
    body: &mut dyn Out,
    status: u16,
    id: Option<Raw<'_>>,
    failure: &RpcError<'_>,
) -> EndpointResponse<'static> {
    let written = write_error(body, id, failure);
    let content = if written.is_ok() { ResponseBody::Json } else { ResponseBody::None };
    EndpointResponse::status(status).with(content)
}

pub(crate) fn not_allowed(body: &mut dyn Out, allow: &'static str) -> EndpointResponse<'static> {
    let mut response = refuse(body, 405, "Method not allowed");
    response.allow = Some(allow);
    response
}

/// Refuses a request because the server ends. Its client may find another one at the same address.
pub(crate) fn going_away(envelope: Option<&Envelope<'_>>, body: &mut dyn Out) -> EndpointResponse<'static> {
    let why = RpcError::new(code::INTERNAL, "The server is going away");
    refuse_request(body, 503, envelope.and_then(|envelope| id_of(&envelope.shape())), &why)
}

/// Returns the `id` of a message, if it can be one of a request.
pub(crate) fn id_of<'e>(shape: &MessageShape<'e>) -> Option<Raw<'e>> {
    match *shape {
        MessageShape::Request { id, .. } => Some(id),
        MessageShape::Invalid { id } => id,
        _ => None,
    }
}

/// Refuses a body that is not JSON.
pub(crate) fn no_json(body: &mut dyn Out) -> EndpointResponse<'static> {
    refuse_request(body, 400, None, &RpcError::new(code::PARSE, "Parse error"))
}
