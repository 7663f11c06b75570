//! Makes room when there are more clients than sockets.
//!
//! While few sockets are free, each answer is the last one of its connection. When no socket is free, new clients
//! wait, and connections are ended for them: first idle ones, then those that only listen, and those whose clients
//! have stopped reading or writing.

use mcp_sansio::server::Millis;

use crate::Endpoint;
use crate::connection::Connection;
use crate::net::Net;

/// With fewer free sockets than this, connections are not kept for another request: clients come in bursts.
const SPARE: usize = 3;

/// The shortest idle time before a connection is ended: its client may be about to use it.
const IDLE_MILLIS: Millis = 250;

/// The longest wait of a client before another client's event stream is ended for it.
const PATIENCE_MILLIS: Millis = 500;

/// Returns the number of listening sockets.
pub(crate) fn free(connections: &[Option<Connection>], net: &Net) -> usize {
    connections.iter().flatten().filter(|connection| connection.is_waiting(net)).count()
}

/// Returns `true` if connections must not be kept for another request.
pub(crate) fn is_scarce(connections: &[Option<Connection>], net: &Net) -> bool {
    free(connections, net) < SPARE
}

/// Makes room for clients that wait.
pub(crate) struct Room {
    /// The time since which a client has been waiting.
    wanted: Option<Millis>,
}

impl Room {
    pub(crate) const fn new() -> Self {
        Room { wanted: None }
    }

    /// Ends as many connections as clients wait.
    pub(crate) fn make(&mut self, connections: &mut [Option<Connection>], net: &Net, endpoint: &Endpoint, now: Millis) {
        let waiting = net.port.waiting();
        if waiting == 0 {
            self.wanted = None;
            return;
        }
        let since = *self.wanted.get_or_insert(now);
        let soon = connections.iter().flatten().filter(|one| one.is_waiting(net) || one.is_leaving(now)).count();
        for _ in soon..waiting {
            let idle = connections.iter_mut().flatten().filter_map(|one| Some((one.idle_since()?, one)));
            let idle = idle.filter(|(since, _)| now.saturating_sub(*since) >= IDLE_MILLIS);
            if let Some((_, connection)) = idle.min_by_key(|(since, _)| *since) {
                connection.let_go();
                continue;
            }
            if now.saturating_sub(since) < PATIENCE_MILLIS {
                return;
            }
            let quiet = connections.iter_mut().flatten().filter_map(|one| Some((one.quiet_since(endpoint, now)?, one)));
            let Some((_, connection)) = quiet.min_by_key(|(since, _)| *since) else { return };
            connection.cut();
        }
    }
}
