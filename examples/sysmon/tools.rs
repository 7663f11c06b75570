//! The tools that answer at once, and one that asks the user first.

use std::io;

use mcp_sansio::json::Raw;
use mcp_sansio::service::{Call, HandlerResult, InputRequest, Tool, ToolAnnotations};
use serde::{Deserialize, Serialize};

use crate::system::{self, Process};
use crate::{Monitor, panel, watch};

/// The tools only read, and only on this machine.
const LOOKS: ToolAnnotations = ToolAnnotations::new().read_only(true).open_world(false);

pub(crate) static TOOLS: [Tool<Monitor>; 8] = [
    Tool::new("uptime", "How long the system has been running.", uptime).title("Uptime").hints(LOOKS).output(
        r#"{
                "type": "object",
                "properties": {
                    "seconds": {"type": "number", "minimum": 0},
                    "words": {"type": "string", "description": "The same for people"}
                },
                "required": ["seconds", "words"]
            }"#,
    ),
    Tool::new(
        "load",
        "How many threads run or wait to run, averaged over one, five and fifteen minutes. More than the number of \
         processors means that work is queueing.",
        load,
    )
    .title("Load averages")
    .hints(LOOKS)
    .output(
        r#"{
            "type": "object",
            "properties": {
                "one_minute": {"type": "number"},
                "five_minutes": {"type": "number"},
                "fifteen_minutes": {"type": "number"},
                "cpus": {"type": "integer", "description": "Processors that can be used"},
                "running": {"type": "integer", "description": "Threads that run or could run now"},
                "threads": {"type": "integer", "description": "Threads there are"}
            },
            "required": ["one_minute", "five_minutes", "fifteen_minutes", "cpus", "running", "threads"]
        }"#,
    ),
    Tool::new("memory", "Memory and swap. What programs can still have is available_bytes, not free_bytes.", memory)
        .title("Memory")
        .hints(LOOKS)
        .output(
            r#"{
                "type": "object",
                "properties": {
                    "total_bytes": {"type": "integer"},
                    "available_bytes": {"type": "integer", "description": "Without swapping"},
                    "free_bytes": {"type": "integer", "description": "Used for nothing at all"},
                    "cached_bytes": {"type": "integer"},
                    "swap_total_bytes": {"type": "integer"},
                    "swap_free_bytes": {"type": "integer"},
                    "used_percent": {"type": "number", "minimum": 0, "maximum": 100}
                },
                "required": ["total_bytes", "available_bytes", "free_bytes", "cached_bytes", "swap_total_bytes",
                    "swap_free_bytes", "used_percent"]
            }"#,
        ),
    Tool::new("disk", "How full the file system is that holds a path.", disk)
        .title("Disk space")
        .hints(LOOKS)
        .input(
            r#"{
                "type": "object",
                "properties": {"path": {"type": "string", "description": "A file or folder, like / or /home"}},
                "required": ["path"]
            }"#,
        )
        .output(
            r#"{
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "total_bytes": {"type": "integer"},
                    "free_bytes": {"type": "integer"},
                    "available_bytes": {"type": "integer", "description": "To users other than root"},
                    "used_percent": {"type": "number", "minimum": 0, "maximum": 100}
                },
                "required": ["path", "total_bytes", "free_bytes", "available_bytes", "used_percent"]
            }"#,
        ),
    Tool::new(
        "processes",
        "The processes that hold the most memory, largest first, and what they have used.",
        processes,
    )
    .title("Processes")
    .hints(LOOKS)
    .input(
        r#"{
                "type": "object",
                "properties": {
                    "limit": {"type": "integer", "minimum": 1, "default": 10, "description": "How many to list"}
                }
            }"#,
    )
    .output(
        r#"{
                "type": "object",
                "properties": {
                    "total": {"type": "integer", "description": "Processes there are"},
                    "processes": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "pid": {"type": "integer"},
                                "parent": {"type": "integer"},
                                "name": {"type": "string"},
                                "state": {"type": "string"},
                                "memory_bytes": {"type": "integer"},
                                "cpu_seconds": {"type": "number"}
                            },
                            "required": ["pid", "parent", "name", "state", "memory_bytes", "cpu_seconds"]
                        }
                    }
                },
                "required": ["total", "processes"]
            }"#,
    ),
    watch::TOOL,
    panel::TOOL,
    Tool::new(
        "kill_hint",
        "Says how to end, pause or reload a process, after asking the user which of these it shall be. It sends no \
         signal itself.",
        kill_hint,
    )
    .title("How to end a process")
    .hints(LOOKS)
    .input(
        r#"{
            "type": "object",
            "properties": {"pid": {"type": "integer", "minimum": 1}},
            "required": ["pid"]
        }"#,
    ),
];

fn uptime(_: &mut Monitor, call: &mut Call<'_>) -> HandlerResult {
    reply(call, system::uptime())
}

fn load(_: &mut Monitor, call: &mut Call<'_>) -> HandlerResult {
    reply(call, system::load())
}

fn memory(_: &mut Monitor, call: &mut Call<'_>) -> HandlerResult {
    reply(call, system::memory())
}

#[derive(Deserialize)]
struct DiskArgs<'a> {
    path: &'a str,
}

fn disk(_: &mut Monitor, call: &mut Call<'_>) -> HandlerResult {
    let DiskArgs { path } = call.args()?;
    let disk = system::disk(path).map_err(|error| call.failed(format_args!("Cannot look at {path}: {error}")))?;
    call.json(&disk)
}

#[derive(Deserialize)]
struct ProcessesArgs {
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Processes {
    total: usize,
    processes: Vec<Process>,
}

fn processes(_: &mut Monitor, call: &mut Call<'_>) -> HandlerResult {
    let limit = call.args::<ProcessesArgs>()?.limit.unwrap_or(10);
    let listed = system::processes().map(|mut processes| {
        let total = processes.len();
        processes.truncate(limit);
        Processes { total, processes }
    });
    reply(call, listed)
}

/// Answers with structured content, or with an error text.
pub(crate) fn reply<T: Serialize>(call: &mut Call<'_>, value: io::Result<T>) -> HandlerResult {
    let value = value.map_err(|error| call.failed(format_args!("The system does not tell: {error}")))?;
    call.json(&value)
}

#[derive(Deserialize)]
struct KillHintArgs {
    pid: u32,
}

/// The `requestedSchema` of the question to the user.
const GOAL: Raw<'static> = Raw::constant(concat!(
    r#"{"type":"object","required":["goal"],"properties":{"goal":{"#,
    r#""type":"string","title":"What shall become of it?","enum":["end","end by force","pause","reload"]}}}"#
));

/// Runs twice: the first run asks; the second run, from the beginning, has the answer.
fn kill_hint(_: &mut Monitor, call: &mut Call<'_>) -> HandlerResult {
    let KillHintArgs { pid } = call.args()?;
    let Ok(Process { name, .. }) = system::process(pid) else {
        return call.error(format_args!("There is no process {pid}"));
    };
    let Some(answer) = call.answer("goal") else {
        let question = format!("Process {pid} is {name}. What do you want to do with it?");
        return call.ask(&[InputRequest::elicit("goal", &question, GOAL)], b"");
    };
    if !answer.accepted() {
        return call.text(format_args!("Process {pid} ({name}) is left alone."));
    }
    let Some(goal) = answer.value("goal").and_then(|goal| goal.text()) else {
        return call.error("The form came back without a goal");
    };
    const HINTS: [(&str, &str, &str); 4] = [
        ("end", "TERM", "it is asked to end, and can clean up before it does"),
        ("end by force", "KILL", "it ends at once and can save nothing; try TERM before"),
        ("pause", "STOP", "it sleeps until `kill -CONT` wakes it"),
        ("reload", "HUP", "daemons read their configuration again; other programs end"),
    ];
    // The client need not follow the schema: the answer may have any value.
    let Some((_, signal, why)) = HINTS.into_iter().find(|hint| goal.eq_str(hint.0)) else {
        return call.error(format_args!("\"{goal}\" was not among the goals to choose from"));
    };
    call.text(format_args!("kill -{signal} {pid}    # {name}: {why}"))
}
