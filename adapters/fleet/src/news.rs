//! The news of a fleet, for the operator's log.

/// News that a process gets from its fleet. The server needs none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FleetNews {
    /// Redis has answered: messages go to and fro from now on.
    Joined,
    /// Redis does not answer, or refuses what is sent. The process is alone until [`Joined`](FleetNews::Joined).
    Alone {
        /// The error of the last connection, or the answer of Redis, in one line.
        reason: String,
    },
}
