//! A page that a host shows beside the results of a tool.

use mcp_sansio::json::Raw;
use mcp_sansio::service::{Call, Extension, HandlerResult, Resource, Tool};
use mcp_sansio_extensions::apps::{Page, ResourceMeta, ToolMeta, can_show, ui_meta};

use crate::Device;
use crate::tools::RAW_TABLE;

/// The room for replies has 512 bytes, and there are no windows.
const HTML: &str = "<!doctype html><title>LED</title><p id=led>";

static PAGE: Page = Page::new("ui://board/led", "led", HTML).meta(ui_meta!(ResourceMeta::new().prefers_border(true)));

/// The five tools and one with a page.
pub static TOOLS: [Tool<Device>; 6] = {
    let [a, b, c, d, e] = RAW_TABLE;
    [a, b, c, d, e, Tool::new("show_led", "Shows the LED", show).meta(ui_meta!(ToolMeta::new(PAGE.uri)))]
};

/// The page.
pub static RESOURCES: [Resource<Device>; 1] = [PAGE.resource(|_, read| PAGE.read(read))];

/// The extension.
pub static EXTENSIONS: [Extension<Device>; 1] = [mcp_sansio_extensions::apps::extension()];

fn show(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    if can_show(call) {
        return call.json_raw(Raw::constant(if device.led { r#"{"on":true}"# } else { r#"{"on":false}"# }));
    }
    call.text(if device.led { "The LED is on" } else { "The LED is off" })
}
