//! The names of the extension, its declaration by both sides, and the check of a client.

use mcp_sansio::json::Raw;
use mcp_sansio::service::{Extension, RequestContext};

/// The identifier of the extension in `capabilities.extensions`.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The `mimeType` of a page.
pub const MIME: &str = "text/html;profile=mcp-app";
/// The `capabilities.extensions` of a client that shows pages, for
/// [`ClientInfo::extensions`](mcp_sansio::client::ClientInfo::extensions).
pub const CLIENT_EXTENSIONS: Raw<'static> =
    Raw::constant(r#"{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}"#);

/// Returns the extension for [`Service::extend`](mcp_sansio::service::Service::extend). The server declares it with the
/// settings `{}`.
pub const fn extension<S>() -> Extension<S> {
    Extension::new(EXTENSION).accepts(|settings| {
        let types = settings.get("mimeTypes");
        types.is_some_and(|types| types.items().any(|mime| mime.text().is_some_and(|mime| mime.eq_str(MIME))))
    })
}

/// Returns whether the client shows pages: it declares the extension with [`MIME`] among its `mimeTypes`, in the request or,
/// up to 2025-11-25, in `initialize`. It is known in late answers too. Always `false` if the service does not have the
/// [`extension`] among the first eight of its table.
#[must_use]
pub fn can_show(context: &RequestContext<'_>) -> bool {
    context.client_supports(EXTENSION)
}
