//! A server with tasks, for tests of clients. Its tools move its tasks, so nothing depends on time.
#![allow(unreachable_pub, dead_code, reason = "shared by tests of several crates")]

use mcp_sansio::json::Raw;
use mcp_sansio::server::ServerChange;
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio_extensions::tasks::{
    HasTasks, TaskId, TaskOptions, TaskSlot, TaskToken, Tasks, begin, complete, extension,
};

pub struct World {
    tasks: Tasks<'static>,
    /// The tasks in their order.
    begun: Vec<TaskToken>,
}

impl HasTasks for World {
    fn tasks(&self) -> &Tasks<'static> {
        &self.tasks
    }
    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.tasks
    }
}

impl World {
    pub fn new() -> Self {
        let slots: Vec<_> = (0..4).map(|_| TaskSlot::FREE).collect();
        World { tasks: Tasks::new(slots.leak(), vec![0; 4096].leak()), begun: Vec::new() }
    }

    /// Returns a task that has changed: publish [`change`].
    pub fn next_change(&mut self) -> Option<TaskId> {
        self.tasks.next_change()
    }
}

pub fn change(id: &TaskId) -> ServerChange<'_> {
    ServerChange::Topic { member: "taskIds", key: id.as_str() }
}

/// Begins a task.
fn work(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let random = [world.begun.len() as u8; 16];
    let options = TaskOptions::new(random).ttl(600_000).poll_interval(50).message("begun");
    let (token, done) = begin(world, call, &options)?;
    world.begun.push(token);
    Ok(done)
}

/// Completes the last task. Its result says what the answer was.
fn finish(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let token = world.begun[world.begun.len() - 1];
    let said = match world.tasks.answer(token, "sure").map(|answer| answer.accepted()) {
        None => "done",
        Some(true) => "done, surely",
        Some(false) => "done, perhaps",
    };
    let done = complete(&service(), world, token, call.now(), |_, call| call.text(said));
    call.text(if done.is_ok() { "finished" } else { "it had ended" })
}

const SURE: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#);

/// Lets the last task ask.
fn ask(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let token = world.begun[world.begun.len() - 1];
    match world.tasks.ask(token, call.now(), &[InputRequest::elicit("sure", "Really?", SURE)]) {
        Ok(()) => call.text("asked"),
        Err(error) => call.error(format_args!("{error}")),
    }
}

static TOOLS: [Tool<World>; 3] =
    [Tool::new("work", "Begins", work), Tool::new("finish", "Completes", finish), Tool::new("ask", "Asks", ask)];
static EXTENSIONS: [Extension<World>; 1] = [extension()];

pub const fn service() -> Service<'static, World> {
    Service::new("worker", "1").tools(&TOOLS).extend(&EXTENSIONS)
}
