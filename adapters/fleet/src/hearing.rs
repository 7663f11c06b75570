//! The thread that hears the other processes.

use mcp_sansio::server::{Millis, ServerChange};
use mcp_sansio_host::{LateSendError, LateSender};
use redis::streams::{StreamId, StreamReadReply};
use redis::{Connection, RedisResult, cmd};

use crate::message::Message;
use crate::options::BLOCK;
use crate::shared::{HEARS, Pauses, Shared};

/// The messages of one read.
const BATCH: usize = 100;
/// Most ended sessions that are read at the start.
const ENDED: usize = 100_000;

/// Hears the others until the fleet or the server ends.
pub(crate) fn hear<S: 'static>(shared: &Shared, late: &LateSender<S>) {
    let mut ear = Ear { shared, late, epoch: None, number: 0 };
    let mut pauses = Pauses::FIRST;
    while !shared.has_ended() {
        let mut joined = || pauses = Pauses::FIRST;
        match ear.follow(&mut joined) {
            Ok(()) => return,
            Err(error) => shared.report(HEARS, Err(error.to_string())),
        }
        if shared.pause(pauses.next()) {
            return;
        }
    }
}

struct Ear<'s, S: 'static> {
    shared: &'s Shared,
    late: &'s LateSender<S>,
    /// The memory of the Redis that was reached last.
    epoch: Option<String>,
    /// The number of the last message that was read.
    number: u64,
}

impl<S: 'static> Ear<'_, S> {
    /// Connects, and passes on what comes. `Ok` when the fleet or the server ends.
    fn follow(&mut self, joined: &mut dyn FnMut()) -> RedisResult<()> {
        let options = &self.shared.options;
        let (mut connection, epoch) = self.shared.connect()?;
        let is_new = self.epoch.as_ref() != Some(&epoch);
        if is_new {
            let number: Option<u64> = cmd("GET").arg(options.key("count")).query(&mut connection)?;
            (self.number, self.epoch) = (number.unwrap_or(0), Some(epoch));
        }
        let ended: Vec<(Vec<u8>, f64)> = cmd("ZRANGE")
            .arg((options.key("ended"), "+inf", "-inf", "BYSCORE", "REV", "LIMIT", 0, ENDED, "WITHSCORES"))
            .query(&mut connection)?;
        let sent = self.end_sessions(&ended).and_then(|()| match is_new {
            // What was published before is not known here.
            true => self.send(|late| late.publish_here(None, ServerChange::All)),
            false => Ok(()),
        });
        if sent.is_err() {
            return Ok(());
        }
        joined();
        self.shared.report(HEARS, Ok(()));
        while !self.shared.has_ended() {
            for entry in self.read(&mut connection)? {
                if self.entry(&entry).is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Ends the sessions that other processes have ended.
    fn end_sessions(&self, ended: &[(Vec<u8>, f64)]) -> Result<(), LateSendError> {
        for (member, until) in ended {
            let Some((run, [b':', session @ ..])) = member.split_at_checked(self.shared.run.len()) else { continue };
            if let Ok(session) = session.try_into()
                && run != self.shared.run.as_bytes()
            {
                let until = *until as Millis;
                self.send(|late| late.end_session_here(session, until))?;
            }
        }
        Ok(())
    }

    /// Waits for messages.
    fn read(&self, connection: &mut Connection) -> RedisResult<Vec<StreamId>> {
        let after = format!("{}-0", self.number);
        let read: Option<StreamReadReply> = cmd("XREAD")
            .arg(("COUNT", BATCH, "BLOCK", BLOCK.as_millis() as u64, "STREAMS", self.shared.options.key("all"), after))
            .query(connection)?;
        Ok(read.into_iter().flat_map(|read| read.keys).flat_map(|key| key.ids).collect())
    }

    /// Passes a message on.
    fn entry(&mut self, entry: &StreamId) -> Result<(), LateSendError> {
        let number = entry.id.split_once('-').and_then(|(number, _)| number.parse().ok()).unwrap_or(self.number);
        if std::mem::replace(&mut self.number, number) + 1 < number {
            // Redis has dropped messages before this one.
            self.send(|late| late.publish_here(None, ServerChange::All))?;
        }
        let field = |name| entry.map.get(name).and_then(|value| redis::from_redis_value_ref::<Vec<u8>>(value).ok());
        let (from, message) = (field("f").unwrap_or_default(), field("m").unwrap_or_default());
        match Message::read(&message).filter(|_| from != self.shared.run.as_bytes()) {
            Some(Message::Change(to, change)) => self.send(|late| late.publish_here(to, change)),
            Some(Message::EndSession(session, until)) => self.send(|late| late.end_session_here(&session, until)),
            None => Ok(()),
        }
    }

    /// Sends something to the server, when there is room for it.
    fn send(&self, send: impl Fn(&LateSender<S>) -> Result<(), LateSendError>) -> Result<(), LateSendError> {
        loop {
            self.late.wait_for_room()?;
            match send(self.late) {
                Err(LateSendError::Full) => {}
                sent => return sent,
            }
        }
    }
}
