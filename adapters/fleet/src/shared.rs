//! The queue to Redis, and the news: for both threads, the endpoint and the handlers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp_sansio::server::Millis;
use redis::{Client, Connection, RedisResult, cmd};

use crate::message::{ALL, Message};
use crate::options::{BLOCK, FleetOptions};

/// News for the operator's log. The server needs none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FleetNews {
    /// Redis has answered: messages go to and fro from now on.
    Joined,
    /// Redis does not answer, or refuses what is sent. The process is alone until [`Joined`](FleetNews::Joined).
    Alone {
        /// The error, in one line.
        reason: String,
    },
}

/// The answer to a question for a task.
pub(crate) enum Kept {
    /// Redis is away.
    Unknown,
    Nothing,
    State {
        user: Option<String>,
        task: String,
        /// The process that has kept it is gone.
        is_left: bool,
    },
}

/// A command that waits to be sent.
pub(crate) enum Command {
    /// A message for all others.
    Tell(Vec<u8>),
    EndSession([u8; 16], Millis),
    KeepTask {
        id: String,
        user: Option<String>,
        task: String,
        keep: Millis,
    },
    FindTask {
        id: String,
        found: Box<dyn FnOnce(Kept) + Send>,
    },
}

impl Command {
    fn size(&self) -> usize {
        100 + match self {
            Command::Tell(message) => message.len(),
            Command::KeepTask { user, task, .. } => user.as_ref().map_or(0, String::len) + task.len(),
            Command::EndSession(..) | Command::FindTask { .. } => 0,
        }
    }
}

#[derive(Default)]
struct Queue {
    commands: VecDeque<Command>,
    bytes: usize,
    /// Changes were left out.
    has_lost: bool,
    ended: bool,
    /// Everything was sent, or cannot be.
    left: bool,
}

/// The states of both threads, and where changes are reported.
struct Status {
    threads: [Option<Result<(), String>>; 2],
    told: Option<bool>,
    tell: Box<dyn FnMut(FleetNews) + Send>,
}

/// The threads, by their place in [`Status`].
pub(crate) const SENDS: usize = 0;
pub(crate) const HEARS: usize = 1;

/// Most ends of sessions that are said again to a Redis that has forgotten them.
const ENDED: usize = 100_000;

pub(crate) struct Shared {
    client: Client,
    pub(crate) options: FleetOptions,
    /// The name of this process, for as long as it runs.
    pub(crate) run: String,
    queue: Mutex<Queue>,
    changed: Condvar,
    status: Mutex<Status>,
    first: Condvar,
    /// The sessions that this process has ended at the others.
    pub(crate) ended: Mutex<BTreeMap<[u8; 16], Millis>>,
    /// Number of connections that were made.
    connections: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(
        client: Client,
        options: FleetOptions,
        run: String,
        tell: Box<dyn FnMut(FleetNews) + Send>,
    ) -> Self {
        let (queue, changed) = (Mutex::default(), Condvar::new());
        let status = Mutex::new(Status { threads: [None, None], told: None, tell });
        let (first, ended, connections) = (Condvar::new(), Mutex::default(), AtomicU64::new(0));
        Shared { client, options, run, queue, changed, status, first, ended, connections }
    }

    /// Connects. Returns the connection, and the name of the memory of that Redis.
    pub(crate) fn connect(&self) -> RedisResult<(Connection, String)> {
        let mut connection = self.client.get_connection_with_timeout(self.options.timeout)?;
        connection.set_read_timeout(Some(BLOCK + self.options.timeout))?;
        connection.set_write_timeout(Some(self.options.timeout))?;
        // Another name each time: a Redis that has forgotten the one of this process does not get it again.
        let new = format!("{}.{}", self.run, self.connections.fetch_add(1, Ordering::Relaxed));
        let key = self.options.key("epoch");
        let epoch: Option<String> = cmd("SET").arg((key, &new, "NX", "GET")).query(&mut connection)?;
        Ok((connection, epoch.unwrap_or(new)))
    }

    /// Adds a command. Gives it back if there is no room.
    pub(crate) fn push(&self, command: Command) -> Result<(), Command> {
        let mut queue = lock(&self.queue);
        let bytes = queue.bytes + command.size();
        if queue.ended || queue.commands.len() >= self.options.queue || bytes > self.options.queue_bytes {
            return Err(command);
        }
        queue.bytes = bytes;
        queue.commands.push_back(command);
        self.changed.notify_one();
        Ok(())
    }

    /// Adds a change for all others. Without room for it they hear later that all may have changed.
    pub(crate) fn publish(&self, change: &Message<'_>) {
        let message = change.write();
        if let Some(Command::Tell(last)) = lock(&self.queue).commands.back()
            && *last == message
        {
            return;
        }
        if self.push(Command::Tell(message)).is_err() {
            lock(&self.queue).has_lost = true;
        }
    }

    /// Takes the next command, and waits for one. `Err` if all was taken after the end.
    pub(crate) fn next(&self, wait: Duration) -> Result<Option<Command>, ()> {
        let mut queue = lock(&self.queue);
        if queue.commands.is_empty() && !queue.has_lost && !queue.ended {
            queue = self.changed.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(command) = queue.commands.pop_front() {
            queue.bytes -= command.size();
            return Ok(Some(command));
        }
        match std::mem::take(&mut queue.has_lost) {
            true => Ok(Some(Command::Tell(ALL.into()))),
            false if queue.ended => Err(()),
            false => Ok(None),
        }
    }

    /// Takes the questions for tasks out of the queue: Redis is away.
    pub(crate) fn take_questions(&self) -> VecDeque<Command> {
        let mut queue = lock(&self.queue);
        let commands = std::mem::take(&mut queue.commands);
        let (questions, others) = commands.into_iter().partition(|one| matches!(one, Command::FindTask { .. }));
        queue.commands = others;
        queue.bytes = queue.commands.iter().map(Command::size).sum();
        questions
    }

    /// Notes that this process has ended a session at the others.
    pub(crate) fn note_ended(&self, session: [u8; 16], until: Millis) {
        let mut ended = lock(&self.ended);
        if ended.len() >= ENDED {
            // The one that is over first.
            let first = ended.iter().min_by_key(|(_, until)| **until).map(|(session, _)| *session);
            first.map(|session| ended.remove(&session));
        }
        ended.insert(session, until);
    }

    /// Waits for a time, or until the fleet ends. Returns whether it does.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let queue = lock(&self.queue);
        let queue = self.changed.wait_timeout_while(queue, time, |queue| !queue.ended);
        queue.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.queue).ended
    }

    /// Ends the fleet, and waits until what is left was sent.
    pub(crate) fn end(&self) {
        let mut queue = lock(&self.queue);
        queue.ended = true;
        self.changed.notify_all();
        let _ = self.changed.wait_timeout_while(queue, self.options.timeout, |queue| !queue.left);
    }

    /// Notes that nothing more is sent.
    pub(crate) fn leave(&self) {
        lock(&self.queue).left = true;
        self.changed.notify_all();
    }

    /// Notes whether a thread reaches Redis, and reports a change of that.
    pub(crate) fn report(&self, thread: usize, how: Result<(), String>) {
        let mut status = lock(&self.status);
        status.threads[thread] = Some(how);
        let reason = status.threads.iter().flatten().find_map(|how| how.as_ref().err().cloned());
        let is_joined = reason.is_none();
        let is_known = !is_joined || status.threads.iter().all(Option::is_some);
        if is_known && status.told != Some(is_joined) {
            status.told = Some(is_joined);
            (status.tell)(reason.map_or(FleetNews::Joined, |reason| FleetNews::Alone { reason }));
        }
        self.first.notify_all();
    }

    /// Waits for the first report.
    pub(crate) fn wait_told(&self) {
        let status = lock(&self.status);
        let _ = self.first.wait_timeout_while(status, self.options.timeout, |status| status.told.is_none());
    }
}

/// The pause after an error, and the one after that.
pub(crate) struct Pauses(Duration);

impl Pauses {
    pub(crate) const FIRST: Pauses = Pauses(Duration::from_millis(100));

    pub(crate) fn next(&mut self) -> Duration {
        let longer = (2 * self.0).min(Duration::from_secs(2));
        std::mem::replace(&mut self.0, longer)
    }
}

/// The time of the next beat.
pub(crate) fn since(last: Instant, period: Duration) -> Duration {
    period.saturating_sub(last.elapsed())
}
