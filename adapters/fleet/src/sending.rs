//! The thread that sends, and says once a second that this process is alive.

use std::time::{Duration, Instant};

use redis::{Connection, RedisResult, Value, cmd};

use crate::message::Message;
use crate::options::BEAT;
use crate::shared::{Command, Kept, Pauses, SENDS, Shared, since};

/// Adds a message to the stream with the next number as its id: a number that is missing was lost.
const TELL: &str = "local number = redis.call('INCR', KEYS[1])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[1], number .. '-0', 'f', ARGV[2], 'm', ARGV[3])";

/// Notes that a process is alive. Others that were silent for too long have ended, perhaps before they could send a change: so all
/// may have changed.
const BEAT_SCRIPT: &str = "local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[3], now, ARGV[2])
if redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - ARGV[3]) > 0 then
  local number = redis.call('INCR', KEYS[1])
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[1], number .. '-0', 'f', '', 'm', 'a')
end";

/// Reads the last state of a task, and whether its process is alive.
const FIND: &str = "local kept = redis.call('HMGET', KEYS[1], 'f', 'u', 't')
if not kept[1] then return false end
kept[1] = redis.call('ZSCORE', KEYS[2], kept[1]) and 1 or 0
return kept";

/// Sends until the fleet ends, and then what it still has if Redis takes it.
pub(crate) fn send(shared: &Shared) {
    let mut sender = Sender { shared, connection: None, epoch: None, beat: None };
    let mut pauses = Pauses::FIRST;
    // What could not be sent, and is sent again.
    let mut left = None;
    loop {
        let sent = sender.turn(&mut left);
        let is_over = matches!(sent, Ok(false));
        shared.report(SENDS, sent.as_ref().map(drop).map_err(ToString::to_string));
        if is_over || sent.is_err() && (sender.give_up(&mut left) || shared.pause(pauses.next())) {
            break;
        }
        if sent.is_ok() {
            pauses = Pauses::FIRST;
        }
    }
    shared.leave();
}

struct Sender<'s> {
    shared: &'s Shared,
    connection: Option<Connection>,
    /// The memory of the Redis that was reached last.
    epoch: Option<String>,
    /// The time of the last sign of life.
    beat: Option<Instant>,
}

impl Sender<'_> {
    /// Sends a command, and a sign of life if it is time for it. Returns `false` at the end.
    fn turn(&mut self, left: &mut Option<Command>) -> RedisResult<bool> {
        self.connect()?;
        if self.beat.is_none_or(|beat| since(beat, BEAT).is_zero()) {
            self.script(BEAT_SCRIPT, self.shared.options.silence.as_millis().to_string())?;
            self.beat = Some(Instant::now());
        }
        let command = match left.take() {
            Some(command) => command,
            None => match self.shared.next(self.beat.map_or(Duration::ZERO, |beat| since(beat, BEAT))) {
                Ok(Some(command)) => command,
                Ok(None) => return Ok(true),
                Err(()) => {
                    let key = self.shared.options.key("alive");
                    self.query::<Value>(cmd("ZREM").arg((key, &self.shared.run)))?;
                    return Ok(false);
                }
            },
        };
        match self.run(&command) {
            Ok(None) => {}
            Ok(Some(kept)) => {
                if let Command::FindTask { found, .. } = command {
                    found(kept);
                }
            }
            Err(error) => {
                *left = Some(command);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Connects if the connection was lost. A Redis that has forgotten everything gets the ended sessions again.
    fn connect(&mut self) -> RedisResult<()> {
        if self.connection.is_some() {
            return Ok(());
        }
        let (connection, epoch) = self.shared.connect()?;
        (self.connection, self.beat) = (Some(connection), None);
        if self.epoch.as_ref().is_some_and(|known| *known != epoch) {
            let ended = self.shared.ended.lock().map(|ended| ended.clone()).unwrap_or_default();
            for (session, until) in ended {
                self.note_ended(session, until)?;
            }
        }
        self.epoch = Some(epoch);
        Ok(())
    }

    /// Notes that the connection is lost, and that questions have no answer. Returns whether the fleet ends.
    fn give_up(&mut self, left: &mut Option<Command>) -> bool {
        self.connection = None;
        let question = left.take_if(|left| matches!(left, Command::FindTask { .. }));
        for question in question.into_iter().chain(self.shared.take_questions()) {
            if let Command::FindTask { found, .. } = question {
                found(Kept::Unknown);
            }
        }
        self.shared.has_ended()
    }

    fn run(&mut self, command: &Command) -> RedisResult<Option<Kept>> {
        let options = &self.shared.options;
        match command {
            Command::Tell(message) => self.script(TELL, &message[..])?,
            Command::EndSession(session, until) => {
                self.shared.note_ended(*session, *until);
                self.note_ended(*session, *until)?;
                self.script(TELL, &Message::EndSession(*session, *until).write()[..])?;
            }
            Command::KeepTask { id, user, task, keep } => {
                let key = options.key(&format!("task:{id}"));
                let mut set = cmd("HSET");
                set.arg((&key, "f", &self.shared.run, "t", task));
                if let Some(user) = user {
                    set.arg(("u", user));
                }
                self.query::<Value>(&set)?;
                self.query::<Value>(cmd("PEXPIRE").arg((key, keep)))?;
            }
            Command::FindTask { id, .. } => {
                let keys = (options.key(&format!("task:{id}")), options.key("alive"));
                let kept: Option<(u8, Option<String>, String)> = self.query(cmd("EVAL").arg((FIND, 2)).arg(keys))?;
                return Ok(Some(kept.map_or(Kept::Nothing, |(alive, user, task)| Kept::State {
                    user,
                    task,
                    is_left: alive == 0,
                })));
            }
        }
        Ok(None)
    }

    /// Keeps the end of a session for processes that start later.
    fn note_ended(&mut self, session: [u8; 16], until: u64) -> RedisResult<()> {
        let key = self.shared.options.key("ended");
        let member = [self.shared.run.as_bytes(), b":", &session].concat();
        self.query::<Value>(cmd("ZADD").arg((&key, until)).arg(member))?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_millis() as u64);
        self.query::<Value>(cmd("ZREMRANGEBYSCORE").arg((key, "-inf", now))).map(drop)
    }

    /// Runs a script of the stream with a last argument.
    fn script(&mut self, script: &str, last: impl redis::ToRedisArgs) -> RedisResult<()> {
        let options = &self.shared.options;
        let mut eval = cmd("EVAL");
        eval.arg((script, 3, options.key("count"), options.key("all"), options.key("alive")));
        eval.arg((options.keep, &self.shared.run)).arg(last);
        self.query::<Value>(&eval).map(drop)
    }

    fn query<T: redis::FromRedisValue>(&mut self, command: &redis::Cmd) -> RedisResult<T> {
        match &mut self.connection {
            Some(connection) => command.query(connection),
            None => Err(redis::RedisError::from((redis::ErrorKind::Io, "Redis is away"))),
        }
    }
}
