//! What the official conformance suites ask for, the same as on the host.

use board::{Adc, Led};
use mcp_sansio::server::Millis;
use mcp_sansio_conformance_fixture::Fixture;
pub(crate) use mcp_sansio_conformance_fixture::SERVICE;

use crate::{App, Endpoint};

pub(crate) type State = Fixture;

/// The state at the start.
pub(crate) fn state(_: Led, _: Adc, _: Millis) -> State {
    Fixture::new()
}

/// What is due, between two turns of the network.
pub(crate) fn go_on(app: &mut App<'_>, endpoint: &mut Endpoint, now: Millis) {
    let _ = mcp_sansio_conformance_fixture::go_on(app, endpoint, now);
}
