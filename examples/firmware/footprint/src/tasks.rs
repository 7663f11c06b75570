//! A tool that becomes a task.

use board::Static;
use mcp_sansio::json::Raw;
use mcp_sansio::server::ServerChange;
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio_extensions::tasks::{HasTasks, TaskOptions, TaskSlot, TaskToken, Tasks, begin, complete, extension};

use crate::tools::RAW_TABLE;
use crate::{Device, Session};

/// The five tools and one that becomes a task.
pub static TOOLS: [Tool<Device>; 6] = {
    let [a, b, c, d, e] = RAW_TABLE;
    [a, b, c, d, e, Tool::new("flash", "Flashes a firmware, if the user agrees", flash)]
};

/// The extension.
pub static EXTENSIONS: [Extension<Device>; 1] = [extension()];

const SCHEMA: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}"#);

static SLOTS: Static<[TaskSlot; 4]> = Static::new([TaskSlot::FREE; 4]);
static RESULTS: Static<[u8; 1024]> = Static::new([0; 1024]);

/// Four tasks, and 1 KiB for their results.
pub(crate) struct Flashing {
    tasks: Tasks<'static>,
    begun: u8,
    running: Option<TaskToken>,
}

impl Default for Flashing {
    fn default() -> Self {
        let (Some(slots), Some(results)) = (SLOTS.take(), RESULTS.take()) else { board::exit() };
        Flashing { tasks: Tasks::new(slots, results), begun: 0, running: None }
    }
}

impl HasTasks for Device {
    fn tasks(&self) -> &Tasks<'static> {
        &self.flashing.tasks
    }

    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.flashing.tasks
    }
}

fn flash(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    // A program takes random bytes.
    device.flashing.begun += 1;
    let options = TaskOptions::new([device.flashing.begun; 16]).ttl(60_000).poll_interval(1_000);
    let (token, done) = begin(device, call, &options)?;
    device.flashing.running = Some(token);
    Ok(done)
}

/// Does one turn of the loop: continues the work, and publishes changes.
pub(crate) fn work(service: &Service<'static, Device>, device: &mut Device, session: &mut Session) {
    let flashing = &mut device.flashing;
    if let Some(token) = flashing.running.take() {
        let question = InputRequest::elicit("sure", "Write the firmware?", SCHEMA);
        let _ = flashing.tasks.ask(token, 0, &[question]);
    }
    while let Some(token) = device.flashing.tasks.next_answered() {
        let sure = device.flashing.tasks.answer(token, "sure").is_some_and(|answer| answer.accepted());
        let _ = complete(service, device, token, 0, |_, call| call.text(if sure { "written" } else { "left alone" }));
        let _ = device.flashing.tasks.keep_for(token, 0, 10_000);
    }
    while device.flashing.tasks.next_cancelled().is_some() {}
    while let Some(id) = device.flashing.tasks.next_change() {
        session.server.publish(ServerChange::Topic { member: "taskIds", key: id.as_str() });
    }
}
