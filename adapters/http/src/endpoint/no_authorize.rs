//! In place of decisions that own their texts, without the feature `resource-server`: nothing is asked and added.

use mcp_sansio::sink::Out;

use super::App;
use super::head::{EndpointResponse, Grant, RequestHead};

#[allow(clippy::unused_self, reason = "the same as with the feature")]
impl Grant {
    pub(crate) const fn add_headers(&self, _: &mut EndpointResponse<'_>) {}

    #[allow(clippy::result_large_err, reason = "the same as with the feature")]
    pub(crate) const fn permit<'a, S>(
        &self,
        _: &App<'a, S>,
        _: &RequestHead<'_>,
        _: &[u8],
        _: &mut dyn Out,
    ) -> Result<(), EndpointResponse<'a>> {
        Ok(())
    }
}
