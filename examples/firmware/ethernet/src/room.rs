//! More clients than sockets: who makes way.
//!
//! While few sockets are free, each answer is the last one of its connection. When none is left, whoever wants to connect
//! waits, and idle connections are ended for them, then those that only listen, or whose clients do not go on.

use mcp_sansio::server::Millis;

use crate::Endpoint;
use crate::connection::Connection;
use crate::net::Net;

/// Where fewer sockets than this are free, connections are not kept for another request: clients come in bursts.
const SPARE: usize = 3;

/// How long a connection is left alone at least: its client may be about to use it.
const IDLE_MILLIS: Millis = 250;

/// How long somebody waits for a socket before another one's event stream is ended.
const PATIENCE_MILLIS: Millis = 500;

/// Sockets that wait for somebody to connect.
pub(crate) fn free(connections: &[Option<Connection>], net: &Net) -> usize {
    connections.iter().flatten().filter(|connection| connection.is_waiting(net)).count()
}

/// Whether connections are not to be kept for another request.
pub(crate) fn is_scarce(connections: &[Option<Connection>], net: &Net) -> bool {
    free(connections, net) < SPARE
}

/// Sees to it that whoever wants to connect can.
pub(crate) struct Room {
    /// Since when somebody has been waiting.
    wanted: Option<Millis>,
}

impl Room {
    pub(crate) const fn new() -> Self {
        Room { wanted: None }
    }

    /// Ends as many connections as there are clients that wait.
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
