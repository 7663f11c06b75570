//! The thread that hears: messages for all, messages for this process, and entries of the logs that are followed.

use std::collections::HashMap;
use std::time::Instant;

use mcp_sansio_http::fleet::{Arrival, ProcessTag};
use redis::streams::{StreamId, StreamRangeReply, StreamReadReply};
use redis::{Connection, ErrorKind, RedisError, RedisResult, Value, cmd, pipe};

use crate::entry::{EntryId, FROM, JOINED, LEFT, MESSAGE, NUMBER, field, sender, text};
use crate::inbox::Reading;
use crate::member::Member;
use crate::news::FleetNews;
use crate::options::BLOCK;
use crate::position::{Position, Step, StreamState};
use crate::sending::{FIRST_PAUSE, LONGEST_PAUSE};

/// The entries of one read of each stream.
const BATCH: usize = 100;
/// The last entries that show which processes are alive.
const RECENT: usize = 1_000;
/// The processes whose life is watched.
const PROCESSES: usize = 4_096;

/// Hears the others until the outbox ends.
pub(crate) fn hear(member: &Member, mut tell: impl FnMut(FleetNews)) {
    let mut ear = Ear {
        member,
        position: Position::default(),
        mailbox: Mailbox::default(),
        heard: HashMap::new(),
        watched: Instant::now(),
        has_joined: false,
    };
    let mut pause = FIRST_PAUSE;
    let mut alone = false;
    while !member.outbox.has_ended() {
        let mut joined = || {
            (alone, pause) = (false, FIRST_PAUSE);
            tell(FleetNews::Joined);
        };
        let Err(error) = ear.follow(&mut joined) else { continue };
        if !std::mem::replace(&mut alone, true) {
            ear.heard.clear();
            member.inbox.push(Arrival::Left(member.tag));
            tell(FleetNews::Alone { reason: error.to_string() });
        }
        if member.outbox.pause(pause) {
            return;
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

struct Ear<'m> {
    member: &'m Member,
    /// The place in the messages for all.
    position: Position,
    mailbox: Mailbox,
    /// The other processes, and when each was heard last.
    heard: HashMap<ProcessTag, Instant>,
    /// The time of the last look at these.
    watched: Instant,
    has_joined: bool,
}

/// The place in the messages for this process.
#[derive(Default)]
struct Mailbox {
    at: EntryId,
    /// The last number of each process.
    numbers: HashMap<String, u64>,
}

impl Ear<'_> {
    /// Connects, and passes on what comes until the connection fails or the outbox ends.
    fn follow(&mut self, joined: &mut dyn FnMut()) -> RedisResult<()> {
        let member = self.member;
        let mut connection = member.connect()?;
        let is_first = !std::mem::replace(&mut self.has_joined, true);
        // Of the changes before the first time, clients that are there already know nothing.
        let missed = self.position.meet(&self.look(&mut connection)?) || is_first;
        self.watched = Instant::now();
        self.meet_others(&mut connection)?;
        if last_of(&member.options.to(member.tag.number()), &mut connection)? < self.mailbox.at {
            // Redis was started anew.
            self.mailbox.at = EntryId::default();
        }
        self.announce(&mut connection)?;
        member.outbox.note_refused(None);
        member.outbox.note_reached();
        joined();
        member.inbox.push(Arrival::Joined(member.tag));
        if missed {
            member.inbox.push(Arrival::Lost);
        }
        while !member.outbox.has_ended() {
            if let Some(answer) = member.outbox.refused() {
                // The others do not hear of this process any more.
                return Err(RedisError::from((ErrorKind::Client, "Redis refuses what is sent", answer)));
            }
            let logs = member.inbox.followed(Instant::now());
            let read = self.read(&logs, &mut connection)?;
            let mut is_full = false;
            for (key, entries) in &read {
                is_full |= *key == Source::All && entries.len() == BATCH;
                entries.iter().for_each(|entry| self.entry(*key, &logs, entry));
            }
            if !is_full {
                self.watch();
            } else if self.position.meet(&self.look(&mut connection)?) {
                // Entries after these were dropped while this process was busy.
                member.inbox.push(Arrival::Lost);
            }
        }
        Ok(())
    }

    /// Waits for entries of all streams that this process reads.
    fn read(
        &self,
        logs: &[(String, Reading)],
        connection: &mut Connection,
    ) -> RedisResult<Vec<(Source, Vec<StreamId>)>> {
        let options = &self.member.options;
        let (all, own) = (options.all(), options.to(self.member.tag.number()));
        let names: Vec<String> = logs.iter().map(|(log, _)| options.log(log)).collect();
        let soonest = logs.iter().filter_map(|(_, reading)| reading.until).min();
        let block = soonest.map_or(BLOCK, |until| BLOCK.min(until.saturating_duration_since(Instant::now())));
        let mut read = cmd("XREAD");
        // 0 would be for ever.
        read.arg(("COUNT", BATCH, "BLOCK", (block.as_millis() as u64).max(1), "STREAMS", &all, &own)).arg(&names);
        read.arg((self.position.at().to_string(), self.mailbox.at.to_string()));
        for (_, reading) in logs {
            read.arg(reading.after.to_string());
        }
        let read: Option<StreamReadReply> = read.query(connection)?;
        let source = |key: &str| match key {
            _ if key == all => Some(Source::All),
            _ if key == own => Some(Source::Own),
            _ => names.iter().position(|name| name == key).map(Source::Log),
        };
        let keys = read.into_iter().flat_map(|read| read.keys);
        Ok(keys.filter_map(|stream| Some((source(&stream.key)?, stream.ids))).collect())
    }

    /// Handles an entry.
    fn entry(&mut self, source: Source, logs: &[(String, Reading)], entry: &StreamId) {
        let Some(id) = EntryId::read(&entry.id) else { return };
        let inbox = &self.member.inbox;
        if let Source::Log(at) = source {
            let Some((log, _)) = logs.get(at) else { return };
            // It may have been stopped meanwhile.
            let Some(reading) = inbox.reading(log) else { return };
            inbox.go_on(log, Some(Reading { after: id, ..reading }));
            if let Some(entry) = field(entry, MESSAGE) {
                inbox.push(Arrival::Entry { log: log.clone(), id: id.to_log(), entry });
            }
            return;
        }
        let name = text(entry, FROM).unwrap_or_default();
        if source == Source::All && entry.map.contains_key(JOINED) {
            self.position.pass(id);
            if let Some(from) = sender(&name).filter(|_| name != self.member.name) {
                self.note(from);
                self.member.outbox.ask();
            }
            return;
        }
        let number = text(entry, NUMBER).and_then(|number| number.parse().ok()).unwrap_or(0);
        let message = field(entry, MESSAGE);
        let from = sender(&name).filter(|_| name != self.member.name);
        let step = match source {
            Source::Own => self.mailbox.advance(id, &name, number),
            _ if message.is_none() => match self.position.beat(id, &name, number) {
                true => Step::Gap,
                false => Step::Again,
            },
            _ => self.position.advance(id, &name, number),
        };
        let Some(from) = from else { return };
        self.note(from);
        if step == Step::Gap {
            self.member.inbox.push(Arrival::Lost);
        }
        match message.filter(|_| step != Step::Again) {
            Some(message) => self.member.inbox.push(Arrival::Message { from, message }),
            None if entry.map.contains_key(LEFT) => self.lose(from),
            None => {}
        }
    }

    /// Notes that a process is alive.
    fn note(&mut self, process: ProcessTag) {
        let is_known = self.heard.contains_key(&process);
        if is_known || self.heard.len() < PROCESSES {
            self.heard.insert(process, Instant::now());
        }
        if !is_known {
            self.member.inbox.push(Arrival::Joined(process));
        }
    }

    fn lose(&mut self, process: ProcessTag) {
        if self.heard.remove(&process).is_some() {
            self.member.inbox.push(Arrival::Left(process));
        }
    }

    /// Reports processes that were not heard for too long.
    fn watch(&mut self) {
        let silence = self.member.options.silence;
        if std::mem::replace(&mut self.watched, Instant::now()).elapsed() > 2 * BLOCK {
            // This process itself stood still, and what the others said is not read yet.
            self.heard.values_mut().for_each(|at| *at = Instant::now());
        }
        let silent: Vec<_> =
            self.heard.iter().filter(|(_, at)| at.elapsed() >= silence).map(|(process, _)| *process).collect();
        silent.into_iter().for_each(|process| self.lose(process));
    }

    /// Announces this process to the others: each that is alive answers with a sign of life. An error if Redis refuses that.
    fn announce(&self, connection: &mut Connection) -> RedisResult<()> {
        let options = &self.member.options;
        let mut add = cmd("XADD");
        add.arg(options.all()).arg(("MAXLEN", "~", options.keep, "*", FROM, &self.member.name, JOINED)).arg("");
        add.query::<Value>(connection).map(drop)
    }

    /// Finds the processes that have said something lately.
    fn meet_others(&mut self, connection: &mut Connection) -> RedisResult<()> {
        let member = self.member;
        let ((seconds, _), recent): ((u64, u64), StreamRangeReply) = pipe()
            .cmd("TIME")
            .cmd("XREVRANGE")
            .arg((member.options.all(), "+", "-", "COUNT", RECENT))
            .query(connection)?;
        let oldest = (seconds * 1_000).saturating_sub(member.options.silence.as_millis() as u64);
        let mut gone = Vec::new();
        for entry in &recent.ids {
            let is_recent = EntryId::read(&entry.id).is_some_and(|id| id.0 >= oldest);
            let from = text(entry, FROM).filter(|name| is_recent && *name != member.name);
            let Some(from) = from.as_deref().and_then(sender) else { continue };
            // The last entry of each counts.
            if entry.map.contains_key(LEFT) {
                gone.push(from);
            } else if !gone.contains(&from) {
                self.note(from);
            }
        }
        Ok(())
    }

    /// Asks for the state of the messages for all.
    fn look(&self, connection: &mut Connection) -> RedisResult<StreamState> {
        let key = self.member.options.all();
        let (server, exists): (String, bool) =
            pipe().cmd("INFO").arg("server").cmd("EXISTS").arg(&key).query(connection)?;
        let run = server.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap_or_default().trim().to_owned();
        if !exists {
            return Ok(StreamState { run, ..StreamState::default() });
        }
        let stream: HashMap<String, Value> = cmd("XINFO").arg(("STREAM", &key)).query(connection)?;
        let text = |field: &str| redis::from_redis_value_ref::<String>(stream.get(field)?).ok();
        let number = |field: &str| text(field).and_then(|text| text.parse().ok()).unwrap_or(0);
        let last = text("last-generated-id").and_then(|id| EntryId::read(&id)).unwrap_or_default();
        Ok(StreamState { run, last, added: number("entries-added"), length: number("length") })
    }
}

impl Mailbox {
    /// Takes the next entry.
    fn advance(&mut self, id: EntryId, from: &str, number: u64) -> Step {
        self.at = id;
        if self.numbers.len() >= PROCESSES {
            self.numbers.clear();
        }
        let last = self.numbers.insert(from.to_owned(), number);
        if last.is_some_and(|last| number <= last) { Step::Again } else { Step::New }
    }
}

/// The stream of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    All,
    Own,
    /// The log at this place of those that are followed.
    Log(usize),
}

/// Returns the last entry of a stream.
fn last_of(key: &str, connection: &mut Connection) -> RedisResult<EntryId> {
    let last: StreamRangeReply = cmd("XREVRANGE").arg((key, "+", "-", "COUNT", 1)).query(connection)?;
    Ok(last.ids.first().and_then(|entry| EntryId::read(&entry.id)).unwrap_or_default())
}
