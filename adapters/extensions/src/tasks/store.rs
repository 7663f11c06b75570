//! The table of tasks, and the memory for what belongs to them.

use core::mem::take;

use mcp_sansio::error::{RpcError, write_error};
use mcp_sansio::json::{Object, Raw, Text};
use mcp_sansio::memory::records::{OVERHEAD, Record, Records};
use mcp_sansio::memory::{FixedText, Slots, Store};
use mcp_sansio::protocol::{ClientCapabilities, code};
use mcp_sansio::revision::Revision;
use mcp_sansio::rpc::Envelope;
use mcp_sansio::server::{Millis, RequestToken, RespondError};
use mcp_sansio::service::{Call, CustomRequest, InputError, InputRequest, InputResponse};
use mcp_sansio::sink::{BodyBuffer, MessageHead, Out, whole};

use crate::shared::date::iso_8601;
#[cfg(test)]
use crate::shared::looks;
use crate::tasks::machine::{Session, Stamp, TaskId, TaskSlot, TaskStatus};
use crate::tasks::record_bytes::RecordBytes;
use crate::tasks::waiters::{self, WAITER};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/tasks";

/// The state of a program that has tasks.
pub trait HasTasks: Sized + 'static {
    /// Returns the tasks.
    fn tasks(&self) -> &Tasks<'static>;

    /// Returns the tasks, to change them.
    fn tasks_mut(&mut self) -> &mut Tasks<'static>;

    /// With `true`, clients of 2025-11-25 have tasks too, in the form of that revision: [`extension`](crate::tasks::extension) serves
    /// their methods, and [`begin`](crate::tasks::begin) makes tasks for their calls. The loop around has to resume the
    /// [requests that wait](Tasks::next_resumable). Default: `false`; the code for it is not linked.
    const LEGACY: bool = false;

    /// Returns where the last states of tasks are kept, if several processes serve the same clients: a task that a request names and
    /// the table does not have is looked up there. Default: nowhere; the code for it is not linked.
    #[cfg(feature = "alloc")]
    fn last_states(&self) -> Option<&dyn LastStates> {
        None
    }
}

/// The place where the last states of tasks are kept for the other processes of a server: `mcp_sansio_fleet::FleetTasks`.
#[cfg(feature = "alloc")]
pub trait LastStates {
    /// Keeps the [state](Tasks::last_state) of a task that has changed.
    fn keep(&self, tasks: &Tasks<'_>, id: &str);

    /// Looks up a task that is not in the table, and answers the request later, with [`TaskLookUp::answer`]. It does not wait.
    fn look_up(&self, wanted: TaskLookUp);
}

/// The question for the last state of a task that a request names, and that is not in the table. See [`LastStates::look_up`].
#[cfg(feature = "alloc")]
#[derive(Clone, Debug)]
pub struct TaskLookUp {
    /// The request, to be answered.
    pub token: RequestToken,
    pub(crate) id: TaskId,
    pub(crate) user: Option<alloc::string::String>,
    pub(crate) wanted: crate::tasks::machine::Wanted,
    pub(crate) is_modern: bool,
}

/// The user of a task. Data: the name.
const PRINCIPAL: u8 = 1;
/// The `statusMessage`. Data: the text.
const MESSAGE: u8 = 2;
/// A question to the client. Tag: [`OPEN`] or [`ANSWERED`]. Data: the length of the key, the key, and if it is open the
/// request. The key stays: no other question of the task may have it.
const QUESTION: u8 = 3;
/// An answer. Data: the length of the key, the key, the answer.
const ANSWER: u8 = 4;
/// The response that ends the task: a JSON-RPC message. Empty if there was no room for it. ([`WAITER`] is 6.)
const RESPONSE: u8 = 5;

/// The most open questions of a task, and the longest key in bytes.
pub(crate) const QUESTIONS_MAX: usize = 8;
const KEY_MAX: usize = 64;

/// The longest text of a response that becomes `statusMessage`, in bytes.
const FAILURE_MAX: usize = 256;

const OPEN: u8 = 0;
const ANSWERED: u8 = 1;
/// In the tag of an answer: the code of an error instead of a result.
const REFUSED: u8 = 1;

/// The error for the id of no task, or of a task of another user.
pub(crate) const UNKNOWN: RpcError<'static> = RpcError::invalid_params("There is no such task");

/// The message of the error of a task whose result is larger than the memory.
pub(crate) const TOO_LARGE: &str = "The result is larger than the memory for tasks";

/// A token for a task: small and `Copy`. It is stale when the task is forgotten, and for every other [`Tasks`]: it has four of the
/// random bytes of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskToken {
    pub(crate) slot: u16,
    pub(crate) stamp: Stamp,
}

/// The options of a new task.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct TaskOptions<'o> {
    random: [u8; 16],
    pub(crate) ttl: Option<Millis>,
    poll_interval: Option<Millis>,
    message: Option<&'o str>,
}

impl<'o> TaskOptions<'o> {
    /// Makes options from 16 secure random bytes, which become the `taskId`. They must be new for each task. With
    /// the number of a [process](Tasks::process) 108 of their 128 bits are left.
    pub const fn new(random: [u8; 16]) -> Self {
        TaskOptions { random, ttl: None, poll_interval: None, message: None }
    }

    mcp_sansio::const_setters! {
        /// Sets `ttlMs`, in milliseconds from its creation: the task is kept for this time. Default: `null`, until the program
        /// [forgets](Tasks::forget) it. A client of 2025-11-25 may ask for less.
        #[doc(alias = "ttlMs")]
        ttl(millis: Millis) => ttl = Some(millis);
        /// Sets `pollIntervalMs`: the time between two polls of the client, in milliseconds. Default: absent.
        #[doc(alias = "pollIntervalMs")]
        poll_interval(millis: Millis) => poll_interval = Some(millis);
        /// Sets the first `statusMessage`. Default: absent.
        message(message: &'o str) => message = Some(message);
    }
}

mcp_sansio::error_enum! {
    /// The reason why a task was not changed.
    TaskError {
        /// There is no free slot, the user has its share, or the memory is full.
        NoRoom => "there is no room for the task",
        /// The task has ended, or was forgotten.
        Over => "the task has ended",
        /// Another task has this id, so the bytes were not random; or a question has a key that was used before in this task, or one
        /// that needs escapes in JSON.
        NotNew => "the id or the key was used before",
        /// The client did not declare the capability that a question needs, or its revision does not have the question.
        CannotAsk => "the client cannot be asked",
        /// The answer did not answer.
        Unanswered => "the function did not answer",
    }
}

/// The user, the client and the connection of a new task.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'o> {
    pub(crate) principal: Option<&'o str>,
    pub(crate) revision: Revision,
    pub(crate) client: ClientCapabilities,
    pub(crate) session: Option<Session>,
}

impl<'o> Owner<'o> {
    pub(crate) fn of(call: &'o Call<'_>) -> Self {
        let (principal, client) = (call.principal(), call.client_capabilities());
        Owner { principal, revision: call.revision(), client, session: Some((call.server(), call.scope())) }
    }
}

/// The tasks of a program, in memory that it lends: slots for the tasks, and bytes for results, questions, answers and the
/// names of users. A task without them needs none of the bytes.
#[derive(Debug)]
pub struct Tasks<'m> {
    slots: Slots<'m, TaskSlot>,
    records: Records<'m>,
    share: usize,
    share_bytes: usize,
    epoch: u64,
    /// The slot at which [`next`](Tasks::next) begins.
    next: u16,
    #[cfg(feature = "alloc")]
    pub(crate) process: u32,
}

impl<'m> Tasks<'m> {
    /// Makes an empty table. `slots` is the most tasks, `store` has the bytes.
    #[must_use]
    pub fn new(slots: impl Into<Slots<'m, TaskSlot>>, store: impl Into<Store<'m>>) -> Self {
        let (mut slots, records) = (slots.into(), Records::new(store.into()));
        // What another table has left there.
        slots.iter_mut().filter(|slot: &&mut TaskSlot| slot.is_live()).for_each(TaskSlot::forget);
        Tasks { slots, records, ..Tasks::none() }
    }

    /// Makes a table without memory: each task is refused.
    #[must_use]
    pub const fn none() -> Self {
        Tasks {
            slots: Slots::lent(&mut []),
            records: Records::new(Store::none()),
            share: usize::MAX,
            share_bytes: usize::MAX,
            epoch: 0,
            next: 0,
            #[cfg(feature = "alloc")]
            process: 0,
        }
    }

    /// Makes a table that grows up to limits: the number of tasks, and the bytes of all of them.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn growing(tasks: usize, bytes: usize) -> Self {
        Tasks::new(Slots::growing(tasks), Store::growing(bytes))
    }

    mcp_sansio::setters! {
        /// Sets the share of one user: its most tasks at a time, and the bytes of them with which answers of the client are still
        /// taken. Requests without a user have one share together. Default: no limit.
        #[must_use]
        share(tasks: usize, bytes: usize) => share = tasks, share_bytes = bytes;
        /// Sets the time at which the caller's clock was 0, in milliseconds since the beginning of 1970, for `createdAt` and
        /// `lastUpdatedAt`. Default: 0. A device without the time of day leaves it.
        #[must_use]
        epoch(unix_millis: u64) => epoch = unix_millis;
    }

    /// Returns the number of tasks, with those that have ended.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_live()).count()
    }

    /// Returns the status of a task; `None` if it was forgotten.
    #[must_use]
    pub fn status(&self, token: TaskToken) -> Option<TaskStatus> {
        self.slot(token)?.status()
    }

    /// Returns the `taskId`.
    #[must_use]
    pub fn id(&self, token: TaskToken) -> Option<TaskId> {
        self.slot(token).map(|slot| slot.id)
    }

    /// Creates a task; [`begin`](crate::tasks::begin) does it for handlers.
    ///
    /// # Errors
    /// [`TaskError::NoRoom`], [`TaskError::NotNew`].
    pub(crate) fn create(
        &mut self,
        options: &TaskOptions<'_>,
        owner: &Owner<'_>,
        now: Millis,
    ) -> Result<TaskToken, TaskError> {
        let principal = owner.principal;
        self.expire(now);
        let mut id = TaskId::EMPTY;
        for byte in options.random {
            id.push(&[hex(byte >> 4), hex(byte & 15)]);
        }
        #[cfg(feature = "alloc")]
        if self.process != 0 {
            let mut digits = [0; 32];
            digits.copy_from_slice(id.as_bytes());
            for (place, shift) in digits.iter_mut().zip([16, 12, 8, 4, 0]) {
                *place = hex((self.process >> shift & 15) as u8);
            }
            let _ = id.set(&digits);
        }
        if self.find(id.as_str()).is_some() {
            return Err(TaskError::NotNew);
        }
        self.mark(principal);
        if self.slots.iter().filter(|slot| slot.is_own).count() >= self.share {
            return Err(TaskError::NoRoom);
        }
        let at = self.slots.find_free(|slot| !slot.is_live(), || TaskSlot::FREE).ok_or(TaskError::NoRoom)?;
        let number = u16::try_from(at).map_err(|_| TaskError::NoRoom)?;
        for (kind, text) in [(PRINCIPAL, principal), (MESSAGE, options.message)] {
            if let Some(text) = text
                && self.records.push(number.into(), kind, 0, &[text.as_bytes()]).is_err()
            {
                self.sweep();
                return Err(TaskError::NoRoom);
            }
        }
        let slot = self.slots.get_mut(at).ok_or(TaskError::NoRoom)?;
        (slot.id, slot.revision) = (id, owner.revision);
        (slot.client, slot.session) = (owner.client, owner.session);
        (slot.ttl, slot.poll_interval) = (options.ttl, options.poll_interval);
        let [.., a, b, c, d] = options.random;
        slot.stamp.random = [a, b, c, d];
        slot.create(now);
        // Its state is kept from its beginning.
        #[cfg(feature = "alloc")]
        (slot.changed = self.process != 0);
        Ok(TaskToken { slot: number, stamp: slot.stamp })
    }

    /// Sets `statusMessage`, a text for the user or the model: how far the work is, or why it failed.
    ///
    /// # Errors
    /// [`TaskError::Over`] if the task was forgotten, [`TaskError::NoRoom`] if there is no room for the text; the old one is
    /// gone then.
    pub fn set_message(&mut self, token: TaskToken, now: Millis, message: &str) -> Result<(), TaskError> {
        let slot = self.slot_mut(token).ok_or(TaskError::Over)?;
        (slot.updated, slot.changed) = (now, true);
        let owner = u32::from(token.slot);
        self.records.remove(|record| record.owner == owner && record.kind == MESSAGE);
        self.records.push(owner, MESSAGE, 0, &[message.as_bytes()]).map_err(|_| TaskError::NoRoom)
    }

    /// Changes `ttlMs`: the task is kept for this time from now on. A program calls it when a task has ended, so that only open
    /// tasks need a long time to live.
    ///
    /// # Errors
    /// [`TaskError::Over`] if the task was forgotten.
    pub fn keep_for(&mut self, token: TaskToken, now: Millis, millis: Millis) -> Result<(), TaskError> {
        let slot = self.slot_mut(token).ok_or(TaskError::Over)?;
        (slot.ttl, slot.updated, slot.changed) =
            (Some(now.saturating_sub(slot.created).saturating_add(millis)), now, true);
        Ok(())
    }

    /// Asks the client while the task runs: the task is `input_required` until all its questions are answered. All of
    /// `questions` are asked, or none; at most eight are open at a time. A key has at most 64 bytes. See [`next_answered`](Tasks::next_answered).
    ///
    /// # Errors
    /// [`TaskError::Over`], [`TaskError::CannotAsk`], [`TaskError::NotNew`] for a key that is not new in this task,
    /// [`TaskError::NoRoom`].
    pub fn ask(&mut self, token: TaskToken, now: Millis, questions: &[InputRequest<'_>]) -> Result<(), TaskError> {
        let slot = self.slot(token).filter(|slot| slot.is_open()).ok_or(TaskError::Over)?;
        let (revision, client, owner) = (slot.revision, slot.client, u32::from(token.slot));
        if self.open_questions(owner).count() + questions.len() > QUESTIONS_MAX {
            return Err(TaskError::NoRoom);
        }
        let from = self.records.used();
        for question in questions {
            let asked = self.ask_one(owner, question, revision, client);
            if asked.is_err() {
                self.records.drop_last(from);
                return asked;
            }
        }
        if !questions.is_empty()
            && let Some(slot) = self.slot_mut(token)
        {
            slot.ask(now);
            waiters::wake_newest(&mut self.records, owner);
        }
        Ok(())
    }

    fn ask_one(
        &mut self,
        owner: u32,
        question: &InputRequest<'_>,
        revision: Revision,
        client: ClientCapabilities,
    ) -> Result<(), TaskError> {
        let key = question.key;
        let is_plain = key.len() <= KEY_MAX && key.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
        if !is_plain || self.keyed(owner, QUESTION, key.as_bytes()).is_some() {
            return Err(TaskError::NotNew);
        }
        if !question.can_be_asked(revision, client) {
            return Err(TaskError::CannotAsk);
        }
        let at = self.records.begin(owner, QUESTION, OPEN).map_err(|_| TaskError::NoRoom)?;
        let head = [key.len() as u8];
        self.records.extend(at, &head).map_err(|_| TaskError::NoRoom)?;
        self.records.extend(at, key.as_bytes()).map_err(|_| TaskError::NoRoom)?;
        let mut out = BodyBuffer::new(RecordBytes { records: &mut self.records, at, from: 1 + key.len() });
        whole(&mut out, MessageHead::Result, |out| question.write(out, revision, client)).map_err(|_| TaskError::NoRoom)
    }

    /// Returns a task whose questions are all answered, once: its work can go on.
    pub fn next_answered(&mut self) -> Option<TaskToken> {
        self.next(|slot| take(&mut slot.answered))
    }

    /// Returns the answer to a question. It comes from the client: the program checks it.
    #[must_use]
    pub fn answer(&self, token: TaskToken, key: &str) -> Option<InputResponse<'_>> {
        self.slot(token)?;
        let record = self.keyed(token.slot.into(), ANSWER, key.as_bytes())?;
        let answer = split(record.data).1;
        match record.tag {
            REFUSED => Some(InputResponse::refused(i32::from_le_bytes(answer.try_into().ok()?))),
            _ => Some(InputResponse::new(Raw::parse(answer).ok()?)),
        }
    }

    /// Returns a task that its client has cancelled, once: stop its work.
    pub fn next_cancelled(&mut self) -> Option<TaskToken> {
        self.next(|slot| take(&mut slot.cancelled))
    }

    /// Returns the id of a task that has changed since it was returned before: publish
    /// [`ServerChange::Topic`](mcp_sansio::server::ServerChange::Topic) with the member `taskIds` and this key.
    pub fn next_change(&mut self) -> Option<TaskId> {
        let token = self.next(|slot| take(&mut slot.changed))?;
        self.id(token)
    }

    /// Returns the next task from which `take` takes something: it begins behind the last one that was returned, so a loop over all
    /// of them looks at each slot twice at most.
    fn next(&mut self, take: impl Fn(&mut TaskSlot) -> bool) -> Option<TaskToken> {
        for _ in 0..self.slots() {
            #[cfg(test)]
            looks::add_one();
            let at = if usize::from(self.next) < self.slots() { self.next } else { 0 };
            self.next = at.wrapping_add(1);
            if let Some(slot) = self.slots.get_mut(usize::from(at))
                && slot.is_live()
                && take(slot)
            {
                return Some(TaskToken { slot: at, stamp: slot.stamp });
            }
        }
        None
    }

    /// Returns a `tasks/result` of 2025-11-25 that goes on, because its task has ended or asks the client, once: resume it by
    /// [`Server::wake`](mcp_sansio::server::Server::wake) or the method of this name of the adapter. A request
    /// that was cancelled meanwhile is stale. In a program with several connections, resume it at each: at all others it is
    /// [`RespondError::Stale`]. There are none without [`LEGACY`](HasTasks::LEGACY).
    pub fn next_resumable(&mut self) -> Option<RequestToken> {
        waiters::next_woken(&mut self.records)
    }

    /// Fails a task with a JSON-RPC error.
    ///
    /// # Errors
    /// [`TaskError::Over`].
    pub fn fail(&mut self, token: TaskToken, now: Millis, failure: &RpcError<'_>) -> Result<(), TaskError> {
        self.complete_with(token, now, |_, out| {
            write_error(out, Some(Raw::constant("0")), failure).map_err(RespondError::from)
        })
    }

    /// Cancels a task, as its client does.
    ///
    /// # Errors
    /// [`TaskError::Over`] if it has ended.
    pub fn cancel(&mut self, token: TaskToken, now: Millis) -> Result<(), TaskError> {
        self.slot_mut(token).filter(|slot| slot.is_open()).ok_or(TaskError::Over)?.cancel(now);
        self.drop_questions(token);
        waiters::wake_all(&mut self.records, |owner| owner == u32::from(token.slot));
        Ok(())
    }

    /// Forgets a task: to its client it does not exist any more.
    pub fn forget(&mut self, token: TaskToken) {
        let Some(slot) = self.slot_mut(token) else { return };
        slot.forget();
        self.sweep();
    }

    /// Removes the records of all slots without a task. The requests that were waiting stay, until they are resumed.
    fn sweep(&mut self) {
        #[cfg(test)]
        looks::add_one();
        let is_free = |owner| self.slots.get(owner as usize).is_none_or(|slot| !slot.is_live());
        waiters::wake_all(&mut self.records, is_free);
        self.records.remove(|record| record.kind != WAITER && is_free(record.owner));
    }

    /// Forgets the tasks whose `ttlMs` is over. The methods of the extension, and [`begin`](crate::tasks::begin), call it; with
    /// [requests that wait](Tasks::next_resumable), call it from time to time.
    pub fn expire(&mut self, now: Millis) {
        let is_over = |slot: &&mut TaskSlot| slot.ttl.is_some_and(|ttl| now.saturating_sub(slot.created) >= ttl);
        let over = self.slots.iter_mut().filter(|slot| slot.is_live()).filter(is_over).map(TaskSlot::forget);
        if over.count() > 0 {
            self.sweep();
        }
    }

    /// Ends a task with the response that `respond` writes; without room for it, with an error that needs none.
    pub(crate) fn complete_with(
        &mut self,
        token: TaskToken,
        now: Millis,
        respond: impl FnOnce(Revision, &mut dyn Out) -> Result<(), RespondError>,
    ) -> Result<(), TaskError> {
        let slot = self.slot(token).filter(|slot| slot.is_open()).ok_or(TaskError::Over)?;
        let (revision, owner) = (slot.revision, u32::from(token.slot));
        let from = self.records.used();
        let mut failed = true;
        if let Ok(at) = self.records.begin(owner, RESPONSE, 0) {
            let mut out = BodyBuffer::new(RecordBytes { records: &mut self.records, at, from: 0 });
            let responded = respond(revision, &mut out);
            if responded == Err(RespondError::WrongKind) {
                self.records.drop_last(from);
                return Err(TaskError::Unanswered);
            }
            let written = self.records.get(at).map_or(&b""[..], |record| record.data);
            let response = Envelope::parse(written).ok();
            // In 2025-11-25 a call whose result has `isError` has failed.
            let is_error =
                |result: Raw<'_>| !revision.is_modern() && result.get("isError").and_then(|is| is.bool()) == Some(true);
            failed = response.and_then(|response| response.result).is_none_or(is_error);
        }
        let Some(slot) = self.slot_mut(token) else { return Ok(()) };
        if failed {
            slot.fail(now)
        } else {
            slot.complete(now)
        }
        self.drop_questions(token);
        waiters::wake_all(&mut self.records, |owner| owner == u32::from(token.slot));
        Ok(())
    }

    /// Takes the `inputResponses` of the client. Those of keys that no open question has are ignored.
    pub(crate) fn take_responses(
        &mut self,
        token: TaskToken,
        responses: Raw<'_>,
        now: Millis,
    ) -> Result<(), TaskError> {
        self.slot(token).filter(|slot| slot.is_open()).ok_or(TaskError::Over)?;
        self.take_answers(token, now, |key| responses.get(key).map(InputResponse::new))
    }

    /// Takes the answers that `answer` returns for the keys of the open questions. A question that was not answered stays open.
    pub(crate) fn take_answers<'a>(
        &mut self,
        token: TaskToken,
        now: Millis,
        answer: impl Fn(&str) -> Option<InputResponse<'a>>,
    ) -> Result<(), TaskError> {
        let owner = u32::from(token.slot);
        let mut used = self.used_beside(token);
        // For each of the few open questions, not for each of the many keys that may come.
        let mut unanswered = 0;
        while let Some((at, key)) = self.open_question(owner, unanswered) {
            let code;
            let (tag, answer) = match answer(key.as_str()).map(|answer| answer.result) {
                Some(Ok(result)) => (0, result.as_bytes()),
                Some(Err(InputError::Error(refusal))) => {
                    code = refusal.to_le_bytes();
                    (REFUSED, &code[..])
                }
                _ => {
                    unanswered += 1;
                    continue;
                }
            };
            let parts = [&[key.as_bytes().len() as u8], key.as_bytes(), answer];
            used = used.saturating_add(OVERHEAD + parts.iter().map(|part| part.len()).sum::<usize>());
            if used > self.share_bytes {
                return Err(TaskError::NoRoom);
            }
            self.records.push(owner, ANSWER, tag, &parts).map_err(|_| TaskError::NoRoom)?;
            self.records.set_tag(at, ANSWERED);
            let left = self.open_questions(owner).count();
            if let Some(slot) = self.slot_mut(token) {
                slot.answer(left, now);
            }
        }
        Ok(())
    }

    /// Returns the place and the key of an open question.
    fn open_question(&self, owner: u32, number: usize) -> Option<(usize, FixedText<KEY_MAX>)> {
        let question = self.open_questions(owner).nth(number)?;
        let mut key = FixedText::EMPTY;
        key.push(split(question.data).0);
        Some((question.at(), key))
    }

    /// Returns the open questions of a task: the key, and the object with `method` and `params`.
    pub(crate) fn questions(&self, token: TaskToken) -> impl Iterator<Item = (&str, Raw<'_>)> {
        self.open_questions(token.slot.into()).filter_map(|question| {
            let (key, request) = split(question.data);
            Some((core::str::from_utf8(key).ok()?, Raw::parse(request).ok()?))
        })
    }

    /// Returns the bytes of all tasks of the user of a task.
    fn used_beside(&mut self, token: TaskToken) -> usize {
        let is_user = |record: &Record<'_>| record.owner == u32::from(token.slot) && record.kind == PRINCIPAL;
        let user = self.records.iter().find(is_user).map(|record| record.data);
        mark(&mut self.slots, &self.records, user);
        let is_own = |record: &Record<'_>| self.slots.get(record.owner as usize).is_some_and(|slot| slot.is_own);
        self.records.iter().filter(is_own).map(|record| record.size()).sum()
    }

    /// Marks the tasks of a user, for [`marked`](Tasks::marked).
    pub(crate) fn mark(&mut self, principal: Option<&str>) {
        mark(&mut self.slots, &self.records, principal.map(str::as_bytes));
    }

    /// Returns the task of a slot, if it was marked.
    pub(crate) fn marked(&self, number: usize) -> Option<TaskToken> {
        let slot = self.slots.get(number).filter(|slot| slot.is_own)?;
        Some(TaskToken { slot: u16::try_from(number).ok()?, stamp: slot.stamp })
    }

    fn open_questions(&self, owner: u32) -> impl Iterator<Item = Record<'_>> {
        self.records.iter().filter(move |r| r.owner == owner && r.kind == QUESTION && r.tag == OPEN)
    }

    fn drop_questions(&mut self, token: TaskToken) {
        let owner = u32::from(token.slot);
        self.records.remove(|record| record.owner == owner && matches!(record.kind, QUESTION | ANSWER));
    }

    /// Returns the task that a request names, if it exists for its user. In 2025-11-25 there are only tasks of this revision, and
    /// in later revisions none of them.
    pub(crate) fn named_by(&mut self, request: &CustomRequest<'_>) -> Result<TaskToken, RpcError<'static>> {
        self.expire(request.now());
        let token = self.named(request.params())?;
        let user = request.principal();
        let is_own = match request.revision().is_modern() {
            true => !self.is_legacy(token),
            false => self.is_of(token, user.is_some(), Some((request.server(), request.scope()))),
        };
        if is_own && self.belongs_to(token, user) { Ok(token) } else { Err(UNKNOWN) }
    }

    /// Returns the task of any user with the `taskId` of these params.
    pub(crate) fn named(&self, params: Option<Raw<'_>>) -> Result<TaskToken, RpcError<'static>> {
        let id = params.and_then(|params| params.get("taskId")?.text());
        let id = id.ok_or(RpcError::invalid_params("Invalid params: taskId is missing"))?;
        self.find_text(&id).ok_or(UNKNOWN)
    }

    /// Returns whether a task is one of 2025-11-25, and without users of a connection or session.
    pub(crate) fn is_of(&self, token: TaskToken, has_user: bool, session: Option<Session>) -> bool {
        self.is_legacy(token) && (has_user || self.slot(token).is_some_and(|slot| slot.session == session))
    }

    /// Returns the records, for the requests that wait.
    pub(crate) const fn records_mut(&mut self) -> &mut Records<'m> {
        &mut self.records
    }

    /// Returns the number of slots that are there.
    pub(crate) fn slots(&self) -> usize {
        self.slots.iter().len()
    }

    /// Returns whether a task was created in 2025-11-25.
    pub(crate) fn is_legacy(&self, token: TaskToken) -> bool {
        self.slot(token).is_some_and(|slot| !slot.revision.is_modern())
    }

    /// Returns the task with this id.
    pub(crate) fn find(&self, id: &str) -> Option<TaskToken> {
        self.first(|slot| slot.id.as_str() == id)
    }

    /// Does the same as [`find`](Tasks::find) for a text of a message.
    pub(crate) fn find_text(&self, id: &Text<'_>) -> Option<TaskToken> {
        self.first(|slot| id.eq_str(slot.id.as_str()))
    }

    /// Returns the user of a task.
    #[cfg(feature = "alloc")]
    pub(crate) fn user(&self, token: TaskToken) -> Option<&str> {
        core::str::from_utf8(self.one(token, PRINCIPAL)?.data).ok()
    }

    /// Returns the time to live of a task.
    #[cfg(feature = "alloc")]
    pub(crate) fn ttl(&self, token: TaskToken) -> Option<Millis> {
        self.slot(token)?.ttl
    }

    pub(crate) fn belongs_to(&self, token: TaskToken, principal: Option<&str>) -> bool {
        self.one(token, PRINCIPAL).map(|record| record.data) == principal.map(str::as_bytes)
    }

    /// Writes the members of a `Task`.
    pub(crate) fn write_task(&self, token: TaskToken, task: &mut Object<'_, '_>) {
        let Some(slot) = self.slot(token) else { return task.fail() };
        task.text("taskId", slot.id.as_str());
        task.text("status", slot.status().map_or("", TaskStatus::name));
        let message = self.one(token, MESSAGE).and_then(|record| core::str::from_utf8(record.data).ok());
        task.text_if("statusMessage", message);
        let legacy = !slot.revision.is_modern();
        if legacy && message.is_none() && slot.status() == Some(TaskStatus::Failed) {
            task.raw_if("statusMessage", self.failure(token));
        }
        task.text("createdAt", iso_8601(self.epoch.saturating_add(slot.created)).as_str());
        task.text("lastUpdatedAt", iso_8601(self.epoch.saturating_add(slot.updated)).as_str());
        let (ttl, interval) = if legacy { ("ttl", "pollInterval") } else { ("ttlMs", "pollIntervalMs") };
        match slot.ttl {
            Some(millis) => task.number(ttl, millis),
            None => task.fixed(ttl, "null"),
        }
        if let Some(millis) = slot.poll_interval {
            task.number(interval, millis);
        }
    }

    /// Returns a short text of the response of a task that has failed.
    fn failure(&self, token: TaskToken) -> Option<Raw<'_>> {
        let response = self.response(token)?;
        let text = match response.error {
            Some(error) => error.get("message"),
            None => response.result?.get("content")?.items().next()?.get("text"),
        };
        text.filter(|text| text.text().is_some() && text.as_bytes().len() <= FAILURE_MAX)
    }

    /// Returns the response that has ended a task.
    pub(crate) fn response(&self, token: TaskToken) -> Option<Envelope<'_>> {
        Envelope::parse(self.one(token, RESPONSE)?.data).ok()
    }

    /// Writes the members of a `DetailedTask`: those of a `Task`, and what its status adds.
    pub(crate) fn write_detailed(&self, token: TaskToken, task: &mut Object<'_, '_>) {
        self.write_task(token, task);
        match self.status(token) {
            Some(TaskStatus::InputRequired) => {
                let mut requests = Object::open(task.key("inputRequests"));
                self.questions(token).for_each(|(key, request)| requests.raw(key, request));
                requests.close()
            }
            Some(TaskStatus::Completed | TaskStatus::Failed) => match self.response(token) {
                Some(Envelope { result: Some(result), .. }) => task.raw("result", result),
                Some(Envelope { error: Some(error), .. }) => task.raw("error", error),
                _ => {
                    let mut error = Object::open(task.key("error"));
                    error.key("code").put(b"-32603");
                    const _: () = assert!(code::INTERNAL == -32603);
                    error.text("message", TOO_LARGE);
                    error.close()
                }
            },
            _ => {}
        }
    }

    pub(crate) fn tokens(&self) -> impl Iterator<Item = TaskToken> {
        let live = self.slots.iter().zip(0..).filter(|(slot, _)| slot.is_live());
        live.map(|(slot, number)| TaskToken { slot: number, stamp: slot.stamp })
    }

    /// Returns the first task for which `which` returns `true`.
    fn first(&self, which: impl Fn(&TaskSlot) -> bool) -> Option<TaskToken> {
        self.tokens().find(|token| self.slot(*token).is_some_and(&which))
    }

    fn slot(&self, token: TaskToken) -> Option<&TaskSlot> {
        let slot = self.slots.get(usize::from(token.slot))?;
        (slot.is_live() && slot.stamp == token.stamp).then_some(slot)
    }

    fn slot_mut(&mut self, token: TaskToken) -> Option<&mut TaskSlot> {
        let slot = self.slots.get_mut(usize::from(token.slot))?;
        (slot.is_live() && slot.stamp == token.stamp).then_some(slot)
    }

    /// Returns the record of a kind that a task has once.
    fn one(&self, token: TaskToken, kind: u8) -> Option<Record<'_>> {
        #[cfg(test)]
        looks::add_one();
        self.records.iter().find(|record| record.owner == u32::from(token.slot) && record.kind == kind)
    }

    fn keyed(&self, owner: u32, kind: u8, key: &[u8]) -> Option<Record<'_>> {
        let mut records = self.records.iter();
        records.find(|record| record.owner == owner && record.kind == kind && split(record.data).0 == key)
    }
}

/// Marks the tasks of a user: one walk over the records, not one for each task.
fn mark(slots: &mut Slots<'_, TaskSlot>, records: &Records<'_>, user: Option<&[u8]>) {
    slots.iter_mut().for_each(|slot| slot.is_own = slot.is_live() && user.is_none());
    for record in records.iter().filter(|record| record.kind == PRINCIPAL) {
        if let Some(slot) = slots.get_mut(record.owner as usize) {
            slot.is_own = user == Some(record.data);
        }
    }
}

/// Returns the error response for a task that was not created.
pub(crate) const fn not_created(error: TaskError) -> RpcError<'static> {
    match error {
        TaskError::NoRoom => RpcError::internal("Overloaded: too many tasks"),
        _ => RpcError::internal("The random bytes of a task are not random"),
    }
}

/// Splits the data of a question or an answer: its key, and the rest.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    data.split_first().and_then(|(len, rest)| rest.split_at_checked(usize::from(*len))).unwrap_or_default()
}

const fn hex(digit: u8) -> u8 {
    if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }
}

#[cfg(test)]
mod tests {
    use std::{format, vec, vec::Vec};

    use mcp_sansio::protocol::ClientCapability;

    use super::*;

    /// The work of a request grows with the tasks, not with their square: the tasks of a user were once searched for one by one among the
    /// records, and each task that was over swept the memory by itself.
    #[test]
    fn a_request_walks_over_the_records_a_few_times() {
        for count in [10, 100, 300_u16] {
            let mut slots = Vec::from_iter((0..count).map(|_| TaskSlot::FREE));
            let mut bytes = vec![0; 256 * usize::from(count)];
            let mut tasks = Tasks::new(slots.as_mut_slice(), bytes.as_mut_slice()).share(1, 128);
            looks::take();
            for number in 0..count {
                let user = format!("user {number}");
                let owner = Owner {
                    principal: Some(&user),
                    revision: Revision::LATEST,
                    client: ClientCapabilities::NONE.with(ClientCapability::Roots),
                    session: None,
                };
                let [a, b] = number.to_be_bytes();
                let options = TaskOptions::new([a, b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b]).ttl(5);
                let token = tasks.create(&options, &owner, 0).unwrap();
                assert_eq!(tasks.create(&TaskOptions::new([255; 16]), &owner, 0), Err(TaskError::NoRoom));
                tasks.ask(token, 0, &[InputRequest::roots("r")]).unwrap();
                let answers = |len: usize| format!(r#"{{"r":{{"roots":["{}"]}}}}"#, "x".repeat(len));
                let mut take = |len| tasks.take_responses(token, Raw::parse(answers(len).as_bytes()).unwrap(), 0);
                assert_eq!([take(99), take(1)], [Err(TaskError::NoRoom), Ok(())]);
            }
            tasks.expire(4);
            assert_eq!((tasks.count(), looks::take()), (usize::from(count), 0));
            tasks.expire(5);
            assert_eq!((tasks.count(), tasks.records.used(), looks::take()), (0, 0, 1));
        }
    }

    /// The work of a turn grows with the tasks, not with their square: each of them was once searched from the first task.
    #[test]
    fn a_turn_looks_at_each_task_a_few_times() {
        for count in [10, 100, 300_u16] {
            let mut slots = Vec::from_iter((0..count).map(|_| TaskSlot::FREE));
            let mut bytes = vec![0; 128 * usize::from(count)];
            let mut tasks = Tasks::new(slots.as_mut_slice(), bytes.as_mut_slice());
            let client = ClientCapabilities::NONE.with(ClientCapability::Roots);
            let owner = Owner { principal: None, revision: Revision::LATEST, client, session: None };
            for number in 0..count {
                let [a, b] = number.to_be_bytes();
                let random = [a, b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b];
                let token = tasks.create(&TaskOptions::new(random), &owner, 0).unwrap();
                tasks.ask(token, 0, &[InputRequest::roots("r")]).unwrap();
                let answers = Raw::constant(r#"{"r":{"roots":[]}}"#);
                tasks.take_responses(token, answers, 0).unwrap();
            }
            let tokens: Vec<_> = tasks.tokens().collect();
            looks::take();
            let mut all = [0; 3];
            all[0] = core::iter::from_fn(|| tasks.next_answered()).count();
            tokens.iter().for_each(|token| tasks.cancel(*token, 1).unwrap());
            all[1] = core::iter::from_fn(|| tasks.next_cancelled()).count();
            all[2] = core::iter::from_fn(|| tasks.next_change()).count();
            assert_eq!(all, [usize::from(count); 3]);
            // One that was passed is found too.
            tasks.set_message(tokens[0], 2, "late").unwrap();
            assert!(tasks.next_change().is_some() && tasks.next_change().is_none());
            assert!(looks::take() < 10 * usize::from(count));
        }
    }
}
