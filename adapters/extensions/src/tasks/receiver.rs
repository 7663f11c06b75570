//! Tasks of a client (feature `alloc`): in [2025-11-25] a server may ask for a task, by `task` in the params of
//! `sampling/createMessage` or `elicitation/create`. The client answers at once with a task, and the server fetches the result
//! later.
//!
//! 1. The [`ClientInfo`](mcp_sansio::client::ClientInfo::tasks) declares the capabilities whose requests may be tasks.
//! 2. The handler gives each request of the server to [`Receiver::take`]. It answers those about tasks itself.
//! 3. For a new task it returns a [`TaskToken`]: the program does the work, then calls [`Receiver::complete`] or
//!    [`Receiver::fail`], and [`Receiver::flush`].
//!
//! ```
//! use mcp_sansio::client::result::{ClientResult, CreateMessageResult};
//! use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo, LineClient};
//! use mcp_sansio::error::RpcError;
//! use mcp_sansio::protocol::ClientCapability;
//! use mcp_sansio::service::ContentBlock;
//! use mcp_sansio::sink::LineSink;
//! use mcp_sansio_extensions::tasks::receiver::{Received, Receiver};
//! use mcp_sansio_extensions::tasks::{TaskOptions, Tasks};
//!
//! let info = ClientInfo::new("demo", "1.0").tasks(ClientCapability::Sampling);
//! let mut receiver = Receiver::new(Tasks::growing(16, 65_536));
//! let mut work = Vec::new();
//! let now = 0; // milliseconds of any clock
//! let mut handler = |event: ClientEvent<'_>, link: &mut ClientHandle<'_, '_>| {
//!     let ClientEvent::Asked(asked) = event else { return };
//!     for question in asked.questions() {
//!         let random = [7; 16]; // from a generator of secure random bytes
//!         let options = TaskOptions::new(random).ttl(600_000).poll_interval(1_000);
//!         let _ = match receiver.take(&question, now, &options, link) {
//!             Ok(Received::Task(token)) => Ok(work.push((token, question.params.to_string()))),
//!             Ok(Received::Ordinary) => link.refuse(question.id, &RpcError::refused()), // or the answer
//!             other => other.map(drop),
//!         };
//!     }
//! };
//! # let mut session = LineClient::growing(&info, 1 << 20, LineSink::new(Vec::new()));
//! # session.client.connect_as(mcp_sansio::revision::Revision::V2025_11_25);
//! # let mut say = |session: &mut LineClient<'_, LineSink<Vec<u8>>>, line: &str| {
//! #     let line = line.as_bytes();
//! #     session.space()[..line.len()].copy_from_slice(line);
//! #     session.filled(line.len());
//! #     session.run(0, &mut handler);
//! #     let told = String::from_utf8(session.out.pending().to_vec()).unwrap();
//! #     session.out.sent(told.len());
//! #     told
//! # };
//! # say(&mut session, "");
//! # say(&mut session, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n");
//! # let told = say(&mut session, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[],\"maxTokens\":9,\"task\":{}}}\n");
//! # assert!(told.contains(r#""result":{"task":{"taskId":"0707"#), "{told}");
//!
//! // The loop: the work is done.
//! for (token, _) in work.drain(..) {
//!     let said = CreateMessageResult::new("some-model", ContentBlock::text("42"));
//!     receiver.complete(token, now, &ClientResult::sampled(said))?;
//! }
//! receiver.flush(now, &mut session.handle())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each server has a `Receiver` of its own: all tasks in it belong to this server. They stay when the connection is opened again.
//! A full table refuses the request with error -32603. The table is in memory.
//!
//! [2025-11-25]: https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks

use alloc::string::ToString;
use alloc::vec::Vec;

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{ClientHandle, ErrorObject, SendError, ServerRequest, ServerRequestId, ServerRequestKind};
use mcp_sansio::json::{Object, Raw};
use mcp_sansio::protocol::ClientCapabilities;
use mcp_sansio::revision::Revision;
use mcp_sansio::rpc::Envelope;
use mcp_sansio::server::{Millis, RespondError, RpcError};
use mcp_sansio::sink::{MessageHead, to_vec, whole};

use crate::tasks::legacy;
use crate::tasks::machine::TaskStatus;
use crate::tasks::response::{HAS_ENDED, WAS_CANCELLED};
use crate::tasks::store::{self, Owner, TOO_LARGE, TaskError, TaskOptions, TaskToken, Tasks, UNKNOWN};
use crate::tasks::waiters::WAITERS_MAX;

/// The outcome of a request of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a request is a new task, is about tasks, or has nothing to do with them")]
pub enum Received {
    /// It was about a task: it is answered, or waits for the end of the task.
    Handled,
    /// It has begun a task: do the work, then call [`Receiver::complete`] or [`Receiver::fail`].
    Task(TaskToken),
    /// It has nothing to do with tasks: answer it as always.
    Ordinary,
}

/// The tasks of a client, and the requests `tasks/result` of the server that wait for them. See the [module](self).
#[derive(Debug)]
pub struct Receiver {
    /// The table: [`Tasks::status`], [`Tasks::set_message`], [`Tasks::next_cancelled`], [`Tasks::keep_for`].
    pub tasks: Tasks<'static>,
    /// Oldest first.
    waiting: Vec<(TaskToken, ServerRequestId)>,
}

impl Receiver {
    /// Makes a receiver. `tasks` has the limits: [`Tasks::growing`] takes the most tasks, and the bytes for their results.
    #[must_use]
    pub const fn new(tasks: Tasks<'static>) -> Self {
        Receiver { tasks, waiting: Vec::new() }
    }

    /// Takes a request of the server. With `task` in its params it becomes a task with these options, if the client
    /// [declared](mcp_sansio::client::ClientInfo::tasks) that. The server may ask for a shorter time to live than
    /// [`TaskOptions::ttl`], never for a longer one. `now` is in milliseconds, of the same clock in all calls.
    ///
    /// `tasks/get`, `tasks/list` and `tasks/cancel` are answered at once. `tasks/result` waits until the task has ended. At most
    /// four wait for one task: a fifth takes the place of the oldest, which gets error -32603.
    ///
    /// # Errors
    /// As [`Client::reply`](mcp_sansio::client::Client::reply), when the answer could not be written. No task has begun
    /// then.
    pub fn take(
        &mut self,
        question: &ServerRequest<'_>,
        now: Millis,
        options: &TaskOptions<'_>,
        link: &mut ClientHandle<'_, '_>,
    ) -> Result<Received, SendError> {
        // Requests that wait for a task which has ended make room. A full sink is full for the answer below too.
        let _ = self.flush(now, link);
        let (id, params) = (question.id, Some(question.params));
        let answered = match question.kind {
            ServerRequestKind::GetTask => self.tasks.named(params).map(|token| self.show(id, token, link)),
            ServerRequestKind::ListTasks => {
                self.tasks.mark(None);
                legacy::with_pages(&self.tasks, (true, None), |pages| {
                    let start = pages.start(params)?;
                    Ok(reply(id, &|out: &mut Object<'_, '_>| pages.write(start, pages.most, out), link))
                })
            }
            ServerRequestKind::CancelTask => self.tasks.named(params).and_then(|token| {
                self.tasks.cancel(token, now).map_err(|_| HAS_ENDED)?;
                Ok(self.show(id, token, link))
            }),
            ServerRequestKind::GetTaskPayload => self.tasks.named(params).map(|token| self.wait(id, token, link)),
            _ => match link.client.task_of(question) {
                None => return Ok(Received::Ordinary),
                Some(task) => match self.begin(task, now, options) {
                    Ok(token) => {
                        let write = |out: &mut Object<'_, '_>| legacy::write_created(&self.tasks, token, out);
                        let replied = reply(id, &write, link);
                        if replied.is_err() {
                            self.tasks.forget(token);
                        }
                        return replied.map(|()| Received::Task(token));
                    }
                    Err(error) => Err(error),
                },
            },
        };
        match answered {
            Ok(Err(SendError::FullNever | SendError::NoRoom)) => link.refuse(id, &RpcError::internal(TOO_LARGE))?,
            Ok(done) => done?,
            Err(error) => link.refuse(id, &error)?,
        }
        // The task may have ended just now, or before. A full sink is no error of this request.
        let _ = self.flush(now, link);
        Ok(Received::Handled)
    }

    /// Completes a task with its result. If it is larger than the memory, the task fails with error -32603. Then call
    /// [`flush`](Receiver::flush).
    ///
    /// # Errors
    /// [`TaskError::Over`] if the task has ended or was forgotten: the server has cancelled it, or its time is over.
    pub fn complete(&mut self, token: TaskToken, now: Millis, result: &ClientResult<'_>) -> Result<(), TaskError> {
        self.tasks.complete_with(token, now, |revision, out| {
            let written = whole(out, MessageHead::Result, |out| {
                out.put(br#"{"jsonrpc":"2.0","id":0,"result":"#);
                result.write(out, revision);
                out.put(b"}")
            });
            written.map_err(RespondError::from)
        })
    }

    /// Fails a task with the error that the request would have had. Then call [`flush`](Receiver::flush).
    ///
    /// # Errors
    /// As [`complete`](Receiver::complete).
    pub fn fail(&mut self, token: TaskToken, now: Millis, failure: &RpcError<'_>) -> Result<(), TaskError> {
        self.tasks.fail(token, now, failure)
    }

    /// Forgets the tasks whose time to live is over, and answers each `tasks/result` whose task has ended. Call it after
    /// [`complete`](Receiver::complete) and [`fail`](Receiver::fail), and from time to time.
    ///
    /// # Errors
    /// [`SendError::FullNow`]: the sink is full. Send its bytes, then call again.
    pub fn flush(&mut self, now: Millis, link: &mut ClientHandle<'_, '_>) -> Result<(), SendError> {
        self.tasks.expire(now);
        let mut at = 0;
        while let Some(&(token, id)) = self.waiting.get(at) {
            if self.tasks.status(token).is_some_and(|status| !status.is_terminal()) {
                at += 1;
                continue;
            }
            let sent = match self.send_result(id, token, link) {
                Err(SendError::FullNever | SendError::NoRoom) => link.refuse(id, &RpcError::internal(TOO_LARGE)),
                sent => sent,
            };
            if sent == Err(SendError::FullNow) {
                return sent;
            }
            // With another error the server does not wait any more: it has cancelled the request, or is gone.
            self.waiting.remove(at);
        }
        Ok(())
    }

    /// Creates a task for a request with this `task`.
    fn begin(&mut self, task: Raw<'_>, now: Millis, options: &TaskOptions<'_>) -> Result<TaskToken, RpcError<'static>> {
        let mut options = *options;
        options.ttl = legacy::shorter_ttl(options.ttl, task)?;
        let client = ClientCapabilities::NONE;
        let owner = Owner { principal: None, revision: Revision::V2025_11_25, client, session: None };
        self.tasks.create(&options, &owner, now).map_err(store::not_created)
    }

    /// Answers with a task.
    fn show(&self, id: ServerRequestId, token: TaskToken, link: &mut ClientHandle<'_, '_>) -> Result<(), SendError> {
        reply(id, &|out: &mut Object<'_, '_>| self.tasks.write_task(token, out), link)
    }

    /// Takes a `tasks/result`; [`flush`](Receiver::flush) answers it.
    fn wait(
        &mut self,
        id: ServerRequestId,
        token: TaskToken,
        link: &mut ClientHandle<'_, '_>,
    ) -> Result<(), SendError> {
        let mut own = self.waiting.iter().enumerate().filter(|(_, (waited, _))| *waited == token);
        let oldest = own.next().map(|(at, (_, id))| (at, *id));
        if let Some((at, oldest)) = oldest.filter(|_| own.count() + 1 >= WAITERS_MAX) {
            match link.refuse(oldest, &legacy::TOO_MANY_WAIT) {
                // The server has cancelled it.
                Err(SendError::Stale) => {}
                refused => refused?,
            }
            self.waiting.remove(at);
        }
        self.waiting.push((token, id));
        Ok(())
    }

    /// Answers a `tasks/result` with what the request of the task would have been answered with.
    fn send_result(
        &self,
        id: ServerRequestId,
        token: TaskToken,
        link: &mut ClientHandle<'_, '_>,
    ) -> Result<(), SendError> {
        match (self.tasks.status(token), self.tasks.response(token)) {
            (None, _) => link.refuse(id, &UNKNOWN),
            (Some(TaskStatus::Cancelled), _) => link.refuse(id, &WAS_CANCELLED),
            (_, Some(Envelope { result: Some(result), .. })) => link.reply(id, &ClientResult::raw(result)),
            (_, Some(Envelope { error: Some(error), .. })) => {
                let error = ErrorObject::read(error);
                let message = error.message.to_string();
                let refusal = RpcError::new(error.code, &message);
                link.refuse(id, &error.data.map_or(refusal, |data| refusal.with_data(data)))
            }
            _ => link.refuse(id, &RpcError::internal(TOO_LARGE)),
        }
    }
}

/// Answers with the object that `write` writes.
fn reply(
    id: ServerRequestId,
    write: &dyn Fn(&mut Object<'_, '_>),
    link: &mut ClientHandle<'_, '_>,
) -> Result<(), SendError> {
    let bytes = to_vec(|out| {
        let mut result = Object::open(out);
        write(&mut result);
        result.close()
    })?;
    link.reply(id, &ClientResult::raw(Raw::parse(&bytes).map_err(|_| SendError::FullNever)?))
}
