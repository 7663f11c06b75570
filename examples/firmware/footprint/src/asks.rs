//! What asks.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::Level;
use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, Outcome, Question, Tool};

use crate::Device;
use crate::parts::{STREAM, formatted};
use crate::tools::{RAW_TABLE, TABLE};

/// The five tools and one that asks.
pub static ASKS: [Tool<Device>; 6] = {
    let [a, b, c, d, e] = RAW_TABLE;
    [a, b, c, d, e, ASK]
};

/// The five tools by serde, and all there is.
pub static ALL: [Tool<Device>; 9] = {
    let [a, b, c, d, e] = TABLE;
    let format = Tool::new("formatted", "Gives the seconds since the start", formatted);
    let tell = Tool::new("tell", "Tells how far it is", tell);
    [a, b, c, d, e, ASK, STREAM, format, tell]
};

const ASK: Tool<Device> = Tool::new("erase", "Erases the flash, if the user agrees", erase);
const SCHEMA: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}"#);

fn erase(_: &mut Device, call: &mut Call<'_>) -> Outcome {
    let Some(answer) = call.answer("sure") else {
        return call.ask(&[Question::elicit("sure", "Erase everything?", SCHEMA)], b"");
    };
    call.text(if answer.accepted() { "erased" } else { "left alone" })
}

fn tell(_: &mut Device, call: &mut Call<'_>) -> Outcome {
    call.progress(Progress::new(1).of(2));
    call.log(Level::Info, "half way");
    call.text("done")
}
