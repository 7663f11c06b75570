//! Everything at once.

use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, Tool};

use crate::Device;
use crate::asks::ASK;
use crate::parts::{STREAM, formatted};
use crate::tools::TABLE;

/// The five tools by serde, and one for each further part.
pub static TOOLS: [Tool<Device>; 9] = {
    let [a, b, c, d, e] = TABLE;
    let format = Tool::new("formatted", "Gives the seconds since the start", formatted);
    let tell = Tool::new("tell", "Tells how far it is", tell);
    [a, b, c, d, e, ASK, STREAM, format, tell]
};

fn tell(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    call.progress(Progress::new(1).of(2));
    call.log(LoggingLevel::Info, "half way");
    call.text("done")
}
