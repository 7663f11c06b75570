//! The items of `resource_server.rs` where the bridge cannot check access tokens.

use mcp_sansio_smol::LateReceiver;
use mcp_sansio_smol::http::{Access, EndpointConfig, RequestHead};

use crate::Shared;
use crate::arguments::Arguments;

pub(crate) const HELP: &str = "";

#[derive(Default)]
pub(crate) struct GuardOptions {}

#[allow(clippy::unnecessary_wraps, clippy::unused_self, reason = "as the other one")]
impl GuardOptions {
    pub(crate) fn set(&mut self, _: &str, _: &str) -> Result<bool, String> {
        Ok(false)
    }

    pub(crate) fn check(&self, _: bool) -> Result<(), String> {
        Ok(())
    }
}

#[derive(Clone)]
pub(crate) enum Guard {}

#[allow(clippy::unnecessary_wraps, reason = "as the other one")]
impl Guard {
    pub(crate) fn new(
        _: &Arguments,
        _: &mut EndpointConfig<'static>,
        _: &mut Vec<&'static str>,
    ) -> Result<Option<(Self, LateReceiver<Shared>)>, String> {
        Ok(None)
    }

    pub(crate) fn authorize(&self, _: &RequestHead<'_>) -> Access<'static> {
        match *self {}
    }

    pub(crate) fn is_asking(&self) -> bool {
        match *self {}
    }
}
