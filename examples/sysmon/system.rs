//! Reads the state of the system: parses `/proc` by hand, and calls `statvfs`. This module does not use MCP.

use std::fs;
use std::io::{self, ErrorKind};
use std::time::Duration;

use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Uptime {
    pub(crate) seconds: f64,
    pub(crate) words: String,
}

pub(crate) fn uptime() -> io::Result<Uptime> {
    let seconds = number(fs::read_to_string("/proc/uptime")?.split_whitespace().next())?;
    Ok(Uptime { seconds, words: in_words(seconds as u64) })
}

/// Formats a time in words: `3 days 4 hours 5 minutes`.
fn in_words(seconds: u64) -> String {
    let parts = [("day", seconds / 86_400), ("hour", seconds / 3600 % 24), ("minute", seconds / 60 % 60)];
    let said = |(unit, n): &(&str, u64)| match n {
        0 => None,
        1 => Some(format!("1 {unit}")),
        n => Some(format!("{n} {unit}s")),
    };
    let words: Vec<_> = parts.iter().filter_map(said).collect();
    if words.is_empty() { "less than a minute".into() } else { words.join(" ") }
}

#[derive(Serialize)]
pub(crate) struct Load {
    pub(crate) one_minute: f64,
    pub(crate) five_minutes: f64,
    pub(crate) fifteen_minutes: f64,
    pub(crate) cpus: usize,
    pub(crate) running: u64,
    pub(crate) threads: u64,
}

pub(crate) fn load() -> io::Result<Load> {
    let text = fs::read_to_string("/proc/loadavg")?;
    let mut words = text.split([' ', '/']);
    Ok(Load {
        one_minute: number(words.next())?,
        five_minutes: number(words.next())?,
        fifteen_minutes: number(words.next())?,
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        running: number(words.next())?,
        threads: number(words.next())?,
    })
}

#[derive(Serialize)]
pub(crate) struct Memory {
    pub(crate) total_bytes: u64,
    pub(crate) available_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) cached_bytes: u64,
    pub(crate) swap_total_bytes: u64,
    pub(crate) swap_free_bytes: u64,
    pub(crate) used_percent: f64,
}

pub(crate) fn memory() -> io::Result<Memory> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let bytes = |name: &str| -> io::Result<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib: u64 = number(line.and_then(|line| line.split_whitespace().next()))?;
        Ok(kib * 1024)
    };
    let (total, available) = (bytes("MemTotal")?, bytes("MemAvailable")?);
    Ok(Memory {
        total_bytes: total,
        available_bytes: available,
        free_bytes: bytes("MemFree")?,
        cached_bytes: bytes("Cached")?,
        swap_total_bytes: bytes("SwapTotal")?,
        swap_free_bytes: bytes("SwapFree")?,
        used_percent: percent(total.saturating_sub(available), total),
    })
}

#[derive(Serialize)]
pub(crate) struct Disk {
    pub(crate) path: String,
    pub(crate) total_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) available_bytes: u64,
    pub(crate) used_percent: f64,
}

pub(crate) fn disk(path: &str) -> io::Result<Disk> {
    let disk = rustix::fs::statvfs(path)?;
    let (total, free) = (disk.f_blocks * disk.f_frsize, disk.f_bfree * disk.f_frsize);
    Ok(Disk {
        path: path.into(),
        total_bytes: total,
        free_bytes: free,
        available_bytes: disk.f_bavail * disk.f_frsize,
        used_percent: percent(total.saturating_sub(free), total),
    })
}

#[derive(Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) name: String,
    pub(crate) state: &'static str,
    pub(crate) memory_bytes: u64,
    pub(crate) cpu_seconds: f64,
}

/// Lists all processes, those with the most memory first.
pub(crate) fn processes() -> io::Result<Vec<Process>> {
    // A process that ends meanwhile is left out.
    let mut all: Vec<_> = pids()?.into_iter().filter_map(|pid| process(pid).ok()).collect();
    all.sort_by(|a, b| b.memory_bytes.cmp(&a.memory_bytes).then(a.pid.cmp(&b.pid)));
    Ok(all)
}

pub(crate) fn pids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    pids.sort_unstable();
    Ok(pids)
}

pub(crate) fn process(pid: u32) -> io::Result<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name is in parentheses, and may itself have parentheses.
    let (name, rest) = text.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).ok_or_else(unreadable)?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number_in_manual: usize| number::<u64>(fields.get(number_in_manual - 3).copied());
    let ticks = (field(14)? + field(15)?) as f64;
    Ok(Process {
        pid,
        parent: field(4)? as u32,
        name: name.into(),
        state: state_name(fields.first().copied().unwrap_or("")),
        memory_bytes: field(24)? * rustix::param::page_size() as u64,
        cpu_seconds: ticks / rustix::param::clock_ticks_per_second() as f64,
    })
}

fn state_name(letter: &str) -> &'static str {
    match letter {
        "R" => "running",
        "S" | "I" => "sleeping",
        "D" => "waiting for a device",
        "T" | "t" => "stopped",
        "Z" => "zombie",
        _ => "unknown",
    }
}

/// Reads the status of a process from the kernel. `None` if there is no such process.
pub(crate) fn status(pid: u32) -> io::Result<Option<String>> {
    match fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(text) => Ok(Some(text)),
        // Both errors are possible when a process ends. ESRCH has no name in the standard library.
        Err(error) if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(3) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The busy and idle time of all processors together. Subtract two values to get a load.
#[derive(Clone, Copy)]
pub(crate) struct CpuTimes {
    busy: u64,
    idle: u64,
}

pub(crate) fn cpu_times() -> io::Result<CpuTimes> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().and_then(|line| line.strip_prefix("cpu ")).ok_or_else(unreadable)?;
    let times: Vec<u64> = line.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let idle = times.iter().skip(3).take(2).sum();
    Ok(CpuTimes { busy: times.iter().sum::<u64>() - idle, idle })
}

impl CpuTimes {
    /// The times at the start of the system.
    pub(crate) const START: CpuTimes = CpuTimes { busy: 0, idle: 0 };

    /// Returns the load of the processors since an earlier moment, in percent.
    pub(crate) fn percent_since(self, earlier: CpuTimes) -> f64 {
        let (busy, idle) = (self.busy.saturating_sub(earlier.busy), self.idle.saturating_sub(earlier.idle));
        percent(busy, busy + idle)
    }
}

/// Returns a percentage with one decimal.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 * 1000.0 / whole as f64).round() / 10.0 }
}

pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

fn number<T: std::str::FromStr>(word: Option<&str>) -> io::Result<T> {
    word.and_then(|word| word.parse().ok()).ok_or_else(unreadable)
}

fn unreadable() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "/proc is not what it was")
}
