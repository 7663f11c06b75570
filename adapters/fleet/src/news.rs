//! The news of a fleet.

use mcp_sansio::server::OwnedServerChange;

/// News that a process gets from its fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FleetNews {
    /// Another process has published a change, or changes were lost ([`ServerChange::All`](mcp_sansio::server::ServerChange::All)): publish it to the clients of this
    /// process.
    Changed(OwnedServerChange),
    /// Redis has answered: changes go to and fro from now on.
    Joined,
    /// Redis does not answer. The process is alone until [`Joined`](FleetNews::Joined).
    Alone {
        /// The error of the last connection, in one line, for a log.
        reason: String,
    },
}
