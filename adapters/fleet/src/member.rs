//! The parts that both threads and the engine use.

use mcp_sansio_http::fleet::ProcessTag;
use redis::{Client, Connection, RedisResult};

use crate::inbox::Inbox;
use crate::options::{BLOCK, FleetOptions};
use crate::outbox::Outbox;

/// A process of the fleet.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) client: Client,
    pub(crate) options: FleetOptions,
    pub(crate) tag: ProcessTag,
    /// The tag and random digits: no other process has it, not even one with the same tag.
    pub(crate) name: String,
    pub(crate) outbox: Outbox,
    pub(crate) inbox: Inbox,
}

impl Member {
    pub(crate) fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(self.options.timeout)?;
        connection.set_read_timeout(Some(BLOCK + self.options.timeout))?;
        connection.set_write_timeout(Some(self.options.timeout))?;
        Ok(connection)
    }
}
