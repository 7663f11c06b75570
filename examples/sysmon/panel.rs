//! The panel: one tool for all figures at a glance, and the page that a host with apps shows beside its results.

use std::time::{Duration, Instant};
use std::{fs, io};

use mcp_sansio::service::{Call, Extension, HandlerResult, Resource, Tool, ToolAnnotations};
use mcp_sansio_extensions::apps::{Page, ResourceMeta, ToolMeta, can_show, ui_meta};
use serde::Serialize;

use crate::Monitor;
use crate::system::{self, CpuTimes};

static PANEL: Page = Page::new("ui://sysmon/panel", "panel", include_str!("panel.html"))
    .meta(ui_meta!(ResourceMeta::new().prefers_border(true)));

pub(crate) const TOOL: Tool<Monitor> = Tool::new(
    "overview",
    "Processors, memory, load and disk at a glance. Where the host can show it, the user gets a live panel beside it.",
    overview,
)
.title("Overview")
.hints(ToolAnnotations::new().read_only(true).open_world(false))
.meta(ui_meta!(ToolMeta::new(PANEL.uri)));

pub(crate) const RESOURCE: Resource<Monitor> =
    PANEL.resource(|_, read| PANEL.read(read)).title("Panel").description("The live panel of the tool overview");

pub(crate) static EXTENSIONS: [Extension<Monitor>; 2] =
    [mcp_sansio_extensions::apps::extension(), mcp_sansio_extensions::events::extension()];

/// The shortest time over which the load of the processors is measured: shorter ones say little.
const LEAST: Duration = Duration::from_millis(500);

/// The load of the processors between two looks at them.
pub(crate) struct CpuLoad {
    /// The last look, and the load up to it.
    last: Option<(Instant, CpuTimes, f64)>,
}

impl CpuLoad {
    pub(crate) const fn new() -> Self {
        CpuLoad { last: None }
    }

    /// Returns the load since the last look in percent; at the first look, since the start of the system.
    fn percent(&mut self) -> io::Result<f64> {
        let now = Instant::now();
        let earlier = match self.last {
            Some((at, _, percent)) if now.duration_since(at) < LEAST => return Ok(percent),
            Some((_, times, _)) => times,
            None => CpuTimes::START,
        };
        let times = system::cpu_times()?;
        let percent = times.percent_since(earlier);
        self.last = Some((now, times, percent));
        Ok(percent)
    }
}

#[derive(Serialize)]
struct Overview {
    host: String,
    up: String,
    cpu_percent: f64,
    cpus: usize,
    load: [f64; 3],
    threads: u64,
    memory_percent: f64,
    memory_used_bytes: u64,
    memory_total_bytes: u64,
    disk_percent: f64,
    disk_used_bytes: u64,
    disk_total_bytes: u64,
}

fn look(cpu: &mut CpuLoad) -> io::Result<Overview> {
    let (load, memory, disk) = (system::load()?, system::memory()?, system::disk("/")?);
    Ok(Overview {
        host: fs::read_to_string("/proc/sys/kernel/hostname")?.trim().into(),
        up: system::uptime()?.words,
        cpu_percent: cpu.percent()?,
        cpus: load.cpus,
        load: [load.one_minute, load.five_minutes, load.fifteen_minutes],
        threads: load.threads,
        memory_percent: memory.used_percent,
        memory_used_bytes: memory.total_bytes.saturating_sub(memory.available_bytes),
        memory_total_bytes: memory.total_bytes,
        disk_percent: disk.used_percent,
        disk_used_bytes: disk.total_bytes.saturating_sub(disk.free_bytes),
        disk_total_bytes: disk.total_bytes,
    })
}

fn overview(monitor: &mut Monitor, call: &mut Call<'_>) -> HandlerResult {
    let seen = match look(&mut monitor.cpu) {
        Ok(seen) => seen,
        Err(error) => return call.error(format_args!("The system does not tell: {error}")),
    };
    if can_show(call) {
        return call.json(&seen);
    }
    let Overview { host, up, cpu_percent, cpus, load: [one, five, fifteen], .. } = &seen;
    let (memory, disk) = (seen.memory_percent, seen.disk_percent);
    call.text(format_args!(
        "{host}, up for {up}: {cpus} processors {cpu_percent} % busy, load {one}, {five}, {fifteen} over 1, 5, 15 \
         minutes, memory {memory} % used, disk / {disk} % full"
    ))
}
