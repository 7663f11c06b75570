//! The two threads between a process and Redis: one sends its changes, the other hears those of the others.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::server::ServerChange;
use redis::streams::StreamReadReply;
use redis::{Client, Connection, RedisResult, Value, cmd};

use crate::message::{self, FIRST, FROM, KIND, NUMBER, SECOND};
use crate::news::FleetNews;
use crate::options::FleetOptions;
use crate::outbox::Outbox;
use crate::position::{EntryId, Position, StreamState};

/// The time that a read waits for entries.
const BLOCK: Duration = Duration::from_secs(1);
/// The entries of one read.
const BATCH: usize = 100;
/// The pauses before another connection.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The parts that both threads use.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) client: Client,
    pub(crate) options: FleetOptions,
    /// The name of this process, which no other has.
    pub(crate) name: String,
    pub(crate) outbox: Outbox,
}

impl Member {
    fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(self.options.timeout)?;
        connection.set_read_timeout(Some(BLOCK + self.options.timeout))?;
        connection.set_write_timeout(Some(self.options.timeout))?;
        Ok(connection)
    }
}

/// Sends the changes of this process until the outbox ends, and those that it still has if Redis takes them.
pub(crate) fn send(member: &Arc<Member>) {
    send_all(member);
    member.outbox.leave();
}

fn send_all(member: &Member) {
    let mut connection = None;
    let mut number: u64 = 0;
    while let Some(change) = member.outbox.take() {
        number += 1;
        let mut pause = FIRST_PAUSE;
        loop {
            match append(member, &mut connection, &change.as_change(), number) {
                Ok(()) => break,
                // The other thread says that Redis is away.
                Err(_) => connection = None,
            }
            if member.outbox.pause(pause) {
                return;
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}

fn append(
    member: &Member,
    connection: &mut Option<Connection>,
    change: &ServerChange<'_>,
    number: u64,
) -> RedisResult<()> {
    let connection = match connection {
        Some(connection) => connection,
        none => none.insert(member.connect()?),
    };
    let (kind, first, second) = message::fields(change);
    let options = &member.options;
    cmd("XADD")
        .arg(&options.key)
        .arg(("MAXLEN", "~", options.keep, "*"))
        .arg((FROM, &member.name, NUMBER, number, KIND, kind, FIRST, first, SECOND, second))
        .query(connection)
}

/// Hears the changes of the others until the outbox ends.
pub(crate) fn hear(member: &Arc<Member>, mut tell: impl FnMut(FleetNews)) {
    let mut position = Position::default();
    let mut pause = FIRST_PAUSE;
    let mut alone = false;
    while !member.outbox.has_ended() {
        let error = match follow(member, &mut position, &mut tell, &mut alone, &mut pause) {
            Ok(()) => continue,
            Err(error) => error,
        };
        if !std::mem::replace(&mut alone, true) {
            tell(FleetNews::Alone { reason: error.to_string() });
        }
        if member.outbox.pause(pause) {
            return;
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Connects, and passes on changes until the connection fails or the outbox ends.
fn follow(
    member: &Member,
    position: &mut Position,
    tell: &mut impl FnMut(FleetNews),
    alone: &mut bool,
    pause: &mut Duration,
) -> RedisResult<()> {
    let mut connection = member.connect()?;
    let missed = position.meet(&look(member, &mut connection)?);
    (*alone, *pause) = (false, FIRST_PAUSE);
    tell(FleetNews::Joined);
    if missed {
        tell(FleetNews::Changed(ServerChange::All.into()));
    }
    while !member.outbox.has_ended() {
        let read: Option<StreamReadReply> = cmd("XREAD")
            .arg(("COUNT", BATCH, "BLOCK", BLOCK.as_millis() as u64, "STREAMS"))
            .arg(&member.options.key)
            .arg(position.at().to_string())
            .query(&mut connection)?;
        let entries: Vec<_> = read.into_iter().flat_map(|read| read.keys).flat_map(|key| key.ids).collect();
        if entries.is_empty() {
            continue;
        }
        // Entries before these may have been dropped while this process was busy.
        if position.meet(&look(member, &mut connection)?) {
            tell(FleetNews::Changed(ServerChange::All.into()));
            continue;
        }
        for entry in &entries {
            let text = |field| entry.map.get(field).and_then(|value| redis::from_redis_value_ref::<String>(value).ok());
            let Some(id) = EntryId::read(&entry.id) else { continue };
            let from = text(FROM).unwrap_or_default();
            let number = text(NUMBER).and_then(|number| number.parse().ok()).unwrap_or(0);
            if position.advance(id, &from, number) && from != member.name {
                let [kind, first, second] = [KIND, FIRST, SECOND].map(|field| text(field).unwrap_or_default());
                tell(FleetNews::Changed(message::change(&kind, &first, &second)));
            }
        }
    }
    Ok(())
}

/// Asks for the state of the stream.
fn look(member: &Member, connection: &mut Connection) -> RedisResult<StreamState> {
    let server: String = cmd("INFO").arg("server").query(connection)?;
    let run = server.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap_or_default().trim().to_owned();
    let exists: bool = cmd("EXISTS").arg(&member.options.key).query(connection)?;
    if !exists {
        return Ok(StreamState { run, ..StreamState::default() });
    }
    let stream: HashMap<String, Value> = cmd("XINFO").arg("STREAM").arg(&member.options.key).query(connection)?;
    let text = |field: &str| redis::from_redis_value_ref::<String>(stream.get(field)?).ok();
    let number = |field: &str| text(field).and_then(|text| text.parse().ok()).unwrap_or(0);
    let last = text("last-generated-id").and_then(|id| EntryId::read(&id)).unwrap_or_default();
    Ok(StreamState { run, last, added: number("entries-added"), length: number("length") })
}
