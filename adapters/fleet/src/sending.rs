//! The thread that sends: messages, entries of logs, and a sign of life once a second. It also reads what a log has.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mcp_sansio_http::fleet::Arrival;
use redis::streams::StreamRangeReply;
use redis::{Connection, Pipeline, RedisError, RedisResult, Value, cmd, pipe};

use crate::entry::{EntryId, FROM, LEFT, MESSAGE, NUMBER, field};
use crate::inbox::Reading;
use crate::member::Member;
use crate::options::BEAT;
use crate::outbox::{Command, Taken};

/// The pauses before another connection.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(100);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The entries of one read of a log.
const ENTRIES: usize = 100;
/// The shortest time between two signs of life.
const SOON: Duration = Duration::from_millis(50);
/// The time for which Redis keeps the messages for a process after the last of them.
const MAILBOX: u64 = 600_000;

/// Sends until the outbox ends, and then what it still has if Redis takes it.
pub(crate) fn send(member: &Member) {
    let (batch, next_beat) = (VecDeque::new(), Instant::now());
    let mut sender = Sender { member, connection: None, batch, told: 0, next_beat, last_beat: None, is_refused: false };
    sender.run();
    member.outbox.leave();
}

/// Returns whether Redis cannot store anything now, but may later: it has no memory or disk for it, is loading, or is a replica.
pub(crate) fn is_refusal(error: &RedisError) -> bool {
    const CODES: [&str; 7] = ["OOM", "MISCONF", "LOADING", "READONLY", "NOREPLICAS", "MASTERDOWN", "BUSY"];
    error.code().is_some_and(|code| CODES.contains(&code))
}

/// Returns the connection, which it makes if it was lost.
fn connected<'c>(connection: &'c mut Option<Connection>, member: &Member) -> RedisResult<&'c mut Connection> {
    match connection {
        Some(connection) => Ok(connection),
        none => Ok(none.insert(member.connect()?)),
    }
}

struct Sender<'m> {
    member: &'m Member,
    connection: Option<Connection>,
    /// The commands that are being sent. They are sent again if the connection was lost.
    batch: VecDeque<Command>,
    /// The number of the last message for all that was sent or left out.
    told: u64,
    next_beat: Instant,
    last_beat: Option<Instant>,
    /// Redis has refused the last batch.
    is_refused: bool,
}

impl Sender<'_> {
    fn run(&mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let wait = match self.batch.is_empty() {
                true => self.next_beat.saturating_duration_since(Instant::now()),
                false => Duration::ZERO,
            };
            let taken = self.member.outbox.take(wait, &mut self.batch);
            let ended = taken.ended;
            if taken.is_asked {
                // At once, if the last sign is not of this moment.
                self.next_beat = self.next_beat.min(self.last_beat.map_or_else(Instant::now, |last| last + SOON));
            }
            let sent = self.send_batch(&taken);
            // The other thread says that Redis is away, or refuses what is sent.
            let answer = sent.as_ref().err().filter(|error| is_refusal(error)).map(ToString::to_string);
            if answer.is_some() || self.is_refused && sent.is_ok() {
                self.is_refused = answer.is_some();
                self.member.outbox.note_refused(answer);
            }
            match sent {
                Ok(()) if ended => return,
                Ok(()) => pause = FIRST_PAUSE,
                Err(_) => {
                    self.connection = None;
                    self.give_up_reads();
                    if ended || self.member.outbox.pause_until_reached(pause) {
                        return;
                    }
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Sends the batch in one write, with a sign of life if it is time for it, or the last one.
    fn send_batch(&mut self, taken: &Taken) -> RedisResult<()> {
        let now = Instant::now();
        let mut pipe = pipe();
        let mut told = self.told;
        for command in &self.batch {
            if let Command::Tell { number, .. } = command {
                told = *number;
            }
            if !command.is_late(now) {
                self.add(&mut pipe, command);
            }
        }
        let told = taken.told.unwrap_or(told);
        if now >= self.next_beat || taken.ended {
            self.tell(&mut pipe, told, if taken.ended { LEFT } else { "" }, b"");
        }
        if !pipe.is_empty() {
            let connection = connected(&mut self.connection, self.member)?;
            // An entry with an id that the log has already is refused: it was sent before.
            let answers: Vec<RedisResult<Value>> = pipe.ignore_errors().query(connection)?;
            // What could not be stored is sent again, as if the connection were lost, until its time is over.
            if let Some(Err(refusal)) = answers.into_iter().find(|answer| answer.as_ref().is_err_and(is_refusal)) {
                return Err(refusal);
            }
            if now >= self.next_beat {
                (self.last_beat, self.next_beat) = (Some(now), now + BEAT);
            }
        }
        self.told = told;
        self.batch.retain(|command| matches!(command, Command::Read { .. }));
        while let Some(command) = self.batch.front() {
            if let Command::Read { log } = command {
                let log = log.clone();
                self.read(&log)?;
            }
            self.batch.pop_front();
        }
        Ok(())
    }

    fn add(&self, pipe: &mut Pipeline, command: &Command) {
        let options = &self.member.options;
        match command {
            Command::Tell { number, message, .. } => self.tell(pipe, *number, MESSAGE, message),
            Command::Send { to, number, message, .. } => {
                let key = options.to(to.number());
                let add = pipe.cmd("XADD").arg(&key).arg(("MAXLEN", "~", options.keep, "*"));
                add.arg((FROM, &self.member.name, NUMBER, number, MESSAGE)).arg(&message[..]);
                pipe.cmd("PEXPIRE").arg((&key, MAILBOX)).ignore();
            }
            Command::Append { log, id, entry, keep, alone } => {
                let key = options.log(log);
                let id = id.map_or("*".to_owned(), |id| EntryId::of_log(id).to_string());
                let add = pipe.cmd("XADD").arg(&key);
                if *alone {
                    add.arg(("MAXLEN", 1));
                }
                add.arg((id, MESSAGE)).arg(&entry[..]);
                // Its time is only ever made longer.
                pipe.cmd("PEXPIRE").arg((&key, *keep, "NX")).ignore();
                pipe.cmd("PEXPIRE").arg((&key, *keep, "GT")).ignore();
            }
            Command::Read { .. } => {}
        }
    }

    /// Adds an entry for all.
    fn tell(&self, pipe: &mut Pipeline, number: u64, name: &str, message: &[u8]) {
        let options = &self.member.options;
        let add = pipe.cmd("XADD").arg(options.all()).arg(("MAXLEN", "~", options.keep, "*"));
        add.arg((FROM, &self.member.name, NUMBER, number));
        if !name.is_empty() {
            add.arg(name).arg(message);
        }
    }

    /// Gives all entries that a log has. If it is followed, the other thread goes on.
    fn read(&mut self, log: &str) -> RedisResult<()> {
        let member = self.member;
        while let Some(reading) = member.inbox.reading(log) {
            let connection = connected(&mut self.connection, member)?;
            let read = cmd("XRANGE")
                .arg((member.options.log(log), format!("({}", reading.after), "+", "COUNT", ENTRIES))
                .query::<StreamRangeReply>(connection)?;
            let mut after = reading.after;
            for entry in &read.ids {
                after = EntryId::read(&entry.id).unwrap_or(after);
                let arrival = field(entry, MESSAGE);
                let arrival = arrival.map(|entry| Arrival::Entry { log: log.into(), id: after.to_log(), entry });
                arrival.into_iter().for_each(|arrival| member.inbox.push(arrival));
            }
            let is_whole = read.ids.len() < ENTRIES;
            let next = Reading { after, follows: is_whole && reading.until.is_some(), ..reading };
            member.inbox.go_on(log, Some(next).filter(|_| !is_whole || next.follows));
            if is_whole {
                member.inbox.push(Arrival::CaughtUp { log: log.into() });
                if next.follows {
                    // Ends the wait of the other thread, which knows the new list of logs then.
                    let key = member.options.to(member.tag.number());
                    let wake = cmd("XADD")
                        .arg((key, "MAXLEN", "~", member.options.keep, "*", FROM, &member.name))
                        .query::<Value>(connection);
                    wake?;
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ends the reads of the batch: Redis is away.
    fn give_up_reads(&mut self) {
        let member = self.member;
        self.batch.retain(|command| {
            if let Command::Read { log } = command {
                member.inbox.go_on(log, None);
                member.inbox.push(Arrival::ReadOver { log: log.clone() });
            }
            !matches!(command, Command::Read { .. })
        });
    }
}
