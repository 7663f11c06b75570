//! The messages of the benchmarks. Messages of a kind differ only in two places of ten digits: the id, and a
//! number in the echoed text.

#[cfg(feature = "calls")]
pub mod calls;
pub mod counting;
#[cfg(feature = "calls")]
pub mod floor_calls;
#[cfg(feature = "http")]
pub mod load;
#[cfg(feature = "http")]
pub mod web;

/// Returns the processor time of all threads of a process, in nanoseconds.
pub fn processor_time(process: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let time = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        stat.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
    };
    threads.map(time).sum()
}

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ping`
    Ping,
    /// `tools/list`
    List,
    /// `tools/call` of `echo` with 32 bytes.
    Echo32,
    /// The same under 2026-07-28.
    Modern32,
    /// 4 KiB of plain text.
    Plain4k,
    /// 64 KiB of plain text.
    Plain64k,
    /// 64 KiB with an escape every 64 bytes.
    Escaped64k,
    /// 1 MiB of plain text.
    Plain1m,
    /// 4 KiB of plain text under 2026-07-28.
    Modern4k,
    /// 64 KiB of plain text under 2026-07-28.
    Modern64k,
    /// 1 MiB of plain text under 2026-07-28.
    Modern1m,
}

const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;

/// The messages that open a connection before 2026-07-28; they get one answer.
pub const OPENING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);

/// Returns the text of message `n` of a kind, with the escapes of JSON; empty if the kind has no text.
pub fn text(kind: Kind, n: u64) -> String {
    let size = match kind {
        Kind::Ping | Kind::List => return String::new(),
        Kind::Echo32 | Kind::Modern32 => 32,
        Kind::Plain4k | Kind::Modern4k => 4 << 10,
        Kind::Plain64k | Kind::Escaped64k | Kind::Modern64k => 64 << 10,
        Kind::Plain1m | Kind::Modern1m => 1 << 20,
    };
    let mut text = format!("{n:010}");
    match kind {
        Kind::Escaped64k => {
            text.push_str(&"x".repeat(54));
            while text.len() < size {
                text.push_str("\\n");
                text.push_str(&"y".repeat(62));
            }
        }
        _ => text.push_str(&"x".repeat(size - text.len())),
    }
    text
}

/// Returns the id of message `n`, which has ten digits.
pub fn id(n: u64) -> u64 {
    1_000_000_000 + n
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 11] = [
        Kind::Ping,
        Kind::List,
        Kind::Echo32,
        Kind::Modern32,
        Kind::Plain4k,
        Kind::Plain64k,
        Kind::Escaped64k,
        Kind::Plain1m,
        Kind::Modern4k,
        Kind::Modern64k,
        Kind::Modern1m,
    ];

    /// Returns whether it is of 2026-07-28.
    pub const fn is_modern(self) -> bool {
        matches!(self, Kind::Modern32 | Kind::Modern4k | Kind::Modern64k | Kind::Modern1m)
    }

    /// Returns its name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ping => "ping",
            Kind::List => "list",
            Kind::Echo32 => "echo32",
            Kind::Modern32 => "modern32",
            Kind::Plain4k => "plain4k",
            Kind::Plain64k => "plain64k",
            Kind::Escaped64k => "escaped64k",
            Kind::Plain1m => "plain1m",
            Kind::Modern4k => "modern4k",
            Kind::Modern64k => "modern64k",
            Kind::Modern1m => "modern1m",
        }
    }

    /// Returns the kind with this name.
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or_else(|| panic!("no kind {name}"))
    }

    /// Returns message `n` of this kind, with its newline.
    pub fn line(self, n: u64) -> String {
        let id = id(n);
        match self {
            Kind::Ping => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"),
            Kind::List => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n"),
            _ => {
                let (text, meta) = (text(self, n), if self.is_modern() { META } else { "" });
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"{text}\"}}{meta}}}}}\n"
                )
            }
        }
    }
}
