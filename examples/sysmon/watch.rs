//! A slow tool: it watches the processors from a task, and answers after a given time.

use std::io;
use std::time::{Duration, Instant};

use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, Tool, ToolAnnotations};
use mcp_sansio_smol::Job;
use serde::{Deserialize, Serialize};
use smol::Timer;

use crate::system::{self, CpuTimes};
use crate::{Monitor, tools};

pub(crate) const TOOL: Tool<Monitor> = Tool::new(
    "watch",
    "Watches processors and memory for some seconds and sums up what it saw. It reports progress, logs each look at \
     level debug, and can be cancelled.",
    watch,
)
.title("Watch the system")
.hints(ToolAnnotations::new().read_only(true).open_world(false))
.input(
    r#"{
        "type": "object",
        "properties": {
            "seconds": {"type": "integer", "minimum": 1, "maximum": 3600, "description": "How long to watch"},
            "interval_ms": {"type": "integer", "minimum": 50, "default": 1000, "description": "Between two looks"}
        },
        "required": ["seconds"]
    }"#,
)
.output(
    r#"{
        "type": "object",
        "properties": {
            "seconds": {"type": "number", "description": "How long it watched"},
            "looks": {"type": "integer"},
            "cpu_percent_average": {"type": "number"},
            "cpu_percent_highest": {"type": "number"},
            "memory_available_lowest_bytes": {"type": "integer"}
        },
        "required": ["seconds", "looks", "cpu_percent_average", "cpu_percent_highest",
            "memory_available_lowest_bytes"]
    }"#,
);

#[derive(Deserialize)]
struct WatchArgs {
    seconds: u64,
    interval_ms: Option<u64>,
}

fn watch(monitor: &mut Monitor, call: &mut Call<'_>) -> HandlerResult {
    let WatchArgs { seconds, interval_ms } = call.args()?;
    let interval = interval_ms.unwrap_or(1000);
    if !(1..=3600).contains(&seconds) || interval < 50 {
        return call.error("seconds must be from 1 to 3600, and interval_ms at least 50");
    }
    let plan = Plan { length: Duration::from_secs(seconds), interval: Duration::from_millis(interval) };
    let watching = monitor.watches.future(move |job| look_and_tell(job, plan));
    watching.then(call, |_, call, summary| tools::reply(call, summary))
}

struct Plan {
    length: Duration,
    interval: Duration,
}

/// The result of watching.
#[derive(Serialize)]
struct Summary {
    seconds: f64,
    looks: u64,
    cpu_percent_average: f64,
    cpu_percent_highest: f64,
    memory_available_lowest_bytes: u64,
}

async fn look_and_tell(job: Job<Monitor>, plan: Plan) -> io::Result<Summary> {
    let begun = Instant::now();
    let first = system::cpu_times()?;
    let mut last = first;
    let mut seen = Summary {
        seconds: 0.0,
        looks: 0,
        cpu_percent_average: 0.0,
        cpu_percent_highest: 0.0,
        memory_available_lowest_bytes: u64::MAX,
    };
    while begun.elapsed() < plan.length {
        Timer::after(plan.interval.min(plan.length.saturating_sub(begun.elapsed()))).await;
        let said = seen.look(&mut last)?;
        let done = begun.elapsed().min(plan.length).as_millis() as u64;
        let progress = Progress::new(done).of(plan.length.as_millis() as u64).message(&said);
        job.log(LoggingLevel::Debug, said.as_str());
        job.progress(progress);
    }
    seen.cpu_percent_average = last.percent_since(first);
    seen.seconds = system::seconds(begun.elapsed());
    Ok(seen)
}

impl Summary {
    /// Takes the next sample, and returns a text about it.
    fn look(&mut self, last: &mut CpuTimes) -> io::Result<String> {
        let (times, memory) = (system::cpu_times()?, system::memory()?);
        let cpu = times.percent_since(*last);
        *last = times;
        self.looks += 1;
        self.cpu_percent_highest = self.cpu_percent_highest.max(cpu);
        self.memory_available_lowest_bytes = self.memory_available_lowest_bytes.min(memory.available_bytes);
        Ok(format!("processors {cpu} % busy, memory {} % used", memory.used_percent))
    }
}
