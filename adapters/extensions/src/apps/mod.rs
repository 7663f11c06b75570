//! Apps over the Model Context Protocol: the extension
//! [`io.modelcontextprotocol/ui`](https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx),
//! for servers. No I/O, no allocator: everything is a constant.
//!
//! A tool names a page, a resource with a `ui://` URI. A host that knows apps shows the page in a sandbox, gives it the
//! results of the tool, and calls tools for it. Other hosts show the text of the results.
//!
//! - [`ToolMeta`] and [`ResourceMeta`], by [`ui_meta!`]: the `_meta.ui` of a tool and of a page. What breaks a rule does not
//!   compile.
//! - [`Page`]: a page and the resource that serves it.
//! - [`can_show`]: does this client show pages?
//!
//! ```
//! use mcp_sansio::service::{Call, Extension, HandlerResult, Resource, Service, Tool};
//! use mcp_sansio_extensions::apps::{Page, ResourceMeta, ToolMeta, ui_meta};
//!
//! // Better: include_str!("panel.html")
//! static PANEL: Page = Page::new("ui://pump/panel", "panel", "<!doctype html><title>Pump</title>")
//!     .meta(ui_meta!(ResourceMeta::new().prefers_border(true)));
//!
//! fn pressure(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
//!     match mcp_sansio_extensions::apps::can_show(call) {
//!         true => call.json_raw(mcp_sansio::json::Raw::constant(r#"{"bar":2.5}"#)), // for the page
//!         false => call.text("The pressure is 2.5 bar"),
//!     }
//! }
//!
//! static TOOLS: [Tool<()>; 1] = [Tool::new("pressure", "Measures the pressure", pressure)
//!     .meta(ui_meta!(ToolMeta::new(PANEL.uri)))];
//! static RESOURCES: [Resource<()>; 1] = [PANEL.resource(|_, read| PANEL.read(read))];
//! static EXTENSIONS: [Extension<()>; 1] = [mcp_sansio_extensions::apps::extension()];
//! const SERVICE: Service<'static, ()> =
//!     Service::new("pump", "1.0").tools(&TOOLS).resources(&RESOURCES).extend(&EXTENSIONS);
//! # let _ = SERVICE;
//! ```

pub mod capability;
mod constant;
pub mod meta;
pub mod page;

pub use capability::{CLIENT_EXTENSIONS, EXTENSION, MIME, can_show, extension};
pub use meta::{ResourceCsp, ResourceMeta, ResourcePermissions, ToolMeta, ToolVisibility, UiMeta, ui_meta};
pub use page::Page;

/// The programs of the page about apps are tests too.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/apps.md")]
struct AppsDocument;
