//! A tool that asks the user.

use mcp_sansio::json::Raw;
use mcp_sansio::service::{Call, HandlerResult, InputRequest, Tool};

use crate::Device;
use crate::tools::RAW_TABLE;

/// The five tools and one that asks.
pub static ASKS: [Tool<Device>; 6] = {
    let [a, b, c, d, e] = RAW_TABLE;
    [a, b, c, d, e, ASK]
};

pub(crate) const ASK: Tool<Device> = Tool::new("erase", "Erases the flash, if the user agrees", erase);
const SCHEMA: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}"#);

fn erase(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("sure") else {
        return call.ask(&[InputRequest::elicit("sure", "Erase everything?", SCHEMA)], b"");
    };
    call.text(if answer.accepted() { "erased" } else { "left alone" })
}
