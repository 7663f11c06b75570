//! The resources and a prompt: two resources with updates, the status of each process, and a prompt with real data.

use std::fmt::Write;
use std::io;

use mcp_sansio::server::{RpcError, ServerChange};
use mcp_sansio::service::{
    Complete, GetPrompt, HandlerResult, Prompt, PromptArgument, ReadResource, Resource, ResourceTemplate,
};
use serde::Serialize;

use crate::{Monitor, panel, system};

const LOAD: &str = "sys://load";
const MEMORY: &str = "sys://memory";

pub(crate) static RESOURCES: [Resource<Monitor>; 3] = [
    Resource::new(LOAD, "load", |_, read| reply(read, system::load()))
        .title("Load averages")
        .description("As the tool load. Subscribers hear of it every second")
        .mime("application/json"),
    Resource::new(MEMORY, "memory", |_, read| reply(read, system::memory()))
        .title("Memory")
        .description("As the tool memory. Subscribers hear of it every second")
        .mime("application/json"),
    panel::RESOURCE,
];

pub(crate) static TEMPLATES: [ResourceTemplate<Monitor>; 1] =
    [ResourceTemplate::new("proc://{pid}/status", "process status", status)
        .title("Status of a process")
        .description("What /proc/PID/status says: name, state, parent, users, memory, threads, signals")
        .mime("text/plain")
        .complete(complete_pid)];

pub(crate) static PROMPTS: [Prompt<Monitor>; 1] =
    [Prompt::new("diagnose", "Finds out why the system does not do what it should", diagnose)
        .title("Diagnose a problem")
        .arguments(&[PromptArgument::required("symptom")
            .title("Symptom")
            .description("What is wrong, in your words: the disk is slow, the fan is loud")])];

/// The resources that change every second. Updates are published while a client is subscribed.
pub(crate) const CHANGING: [ServerChange<'static>; 2] = [ServerChange::Resource(LOAD), ServerChange::Resource(MEMORY)];

fn reply<T: Serialize>(read: &mut ReadResource<'_>, value: io::Result<T>) -> HandlerResult {
    let text = value.map(|value| serde_json::to_string(&value));
    match text {
        Ok(Ok(text)) => read.text(&text),
        _ => Err(RpcError::internal("The system does not tell").into()),
    }
}

fn status(_: &mut Monitor, read: &mut ReadResource<'_>) -> HandlerResult {
    let Some(pid) = read.var("pid").and_then(|pid| pid.parse().ok()) else { return read.not_found() };
    match system::status(pid) {
        Ok(Some(text)) => read.text(&text),
        Ok(None) => read.not_found(),
        Err(_) => Err(RpcError::internal("The status cannot be read").into()),
    }
}

fn complete_pid(_: &mut Monitor, complete: &mut Complete<'_>) -> HandlerResult {
    let pids = system::pids().unwrap_or_default();
    complete.matching(pids.iter().map(u32::to_string))
}

fn diagnose(_: &mut Monitor, get: &mut GetPrompt<'_>) -> HandlerResult {
    let symptom = get.arg("symptom").map(|text| text.chars().map(|c| c.unwrap_or('\u{fffd}')).collect::<String>());
    let facts = facts().map_err(|_| RpcError::internal("The system does not tell"))?;
    get.user(format_args!(
        "On this machine: {}\n\nThe system as it is now:\n{facts}\n\
         Say what the cause may be, beginning with the likeliest. Check before you conclude: the tools of this server \
         give newer and more figures (watch shows how they develop). Suggest nothing that loses data without saying so.",
        symptom.unwrap_or_default()
    ))
}

/// Formats the facts that a person would check first.
fn facts() -> io::Result<String> {
    let (uptime, load, memory, disk) = (system::uptime()?, system::load()?, system::memory()?, system::disk("/")?);
    let mut text = format!("- up for {}\n", uptime.words);
    let _ = writeln!(
        text,
        "- load {}, {}, {} over 1, 5, 15 minutes; {} processors",
        load.one_minute, load.five_minutes, load.fifteen_minutes, load.cpus
    );
    let _ = writeln!(text, "- memory: {} % used, {} available", memory.used_percent, mib(memory.available_bytes));
    let _ = writeln!(text, "- swap: {} of {} free", mib(memory.swap_free_bytes), mib(memory.swap_total_bytes));
    let _ = writeln!(text, "- disk /: {} % used, {} available", disk.used_percent, mib(disk.available_bytes));
    let _ = writeln!(text, "- the largest processes:");
    for process in system::processes()?.iter().take(5) {
        let _ = writeln!(
            text,
            "  - {} (pid {}): {}, {} s of processor time, {}",
            process.name,
            process.pid,
            mib(process.memory_bytes),
            process.cpu_seconds,
            process.state
        );
    }
    Ok(text)
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
