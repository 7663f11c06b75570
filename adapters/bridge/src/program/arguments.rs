//! The command line.

use mcp_sansio::client::ClientInfo;
use mcp_sansio::revision::{Era, Revisions};
use mcp_sansio_bridge::{BridgeLimits, ToolFilter};

const HELP: &str = "\
mcp-bridge: keeps a host's connection while its MCP server is restarted, unplugged or updated,
and lets hosts and servers of all revisions (2024-11-05 to 2026-07-28) talk to each other.

usage: mcp-bridge [OPTIONS] [--] PROGRAM [ARGS]...
       mcp-bridge [OPTIONS] TARGET

targets:
  http://HOST[:PORT]/PATH   a server over HTTP; https:// if built with the feature tls
  unix:PATH                 a server over HTTP at a Unix socket
  serial:PATH               a board on a serial line (Unix)
  usb:VID:PID[:SERIAL]      the same, found by its USB numbers wherever it is plugged in (Linux)
  tcp:HOST:PORT             a server over lines on a TCP connection

options:
  --listen ADDRESS    serves several hosts over HTTP (Streamable HTTP, HTTP with SSE) instead of one
                      over stdio: PORT on 127.0.0.1, IP:PORT, or unix:PATH
  --host-name NAME    a name besides those of this machine by which hosts may reach it; may come again
  --token-file FILE   lets in hosts alone that send the bearer token in this file
  --hosts N           the most hosts at a time (64)
  --wait SECONDS      how long a request waits for a server that is away (10)
  --only NAME,..      lets these tools through alone; a name may end in *
  --deny NAME,..      leaves these tools out
  --read-only         lets tools through alone that say that they only read
  --journal FILE      adds one line of JSON for each request, without its arguments
  --cache FILE        keeps what the server says about itself, so that a host opens at once
                      while the server is away
  --baud N            the speed of a serial line, in bits per second (115200)
  --era ERA           speaks only that era to the server: modern (2026-07-28) or legacy
  --message BYTES     the most bytes of a message (16777216)
  --backlog BYTES     the most bytes of answers at a time (33554432)
  --in-flight N       the most requests at a time (64)
  --kept BYTES        the most bytes of requests that wait or may be sent again (16777216)
  --questions N       the most open questions to the host (64)
  -h, --help          prints this
  -V, --version       prints the version

Standard error gets one line when the server is lost, and one when it is back.
";

/// The options and the target.
pub(crate) struct Arguments {
    pub(crate) limits: BridgeLimits,
    pub(crate) tools: ToolFilter,
    pub(crate) journal: Option<String>,
    pub(crate) cache: Option<String>,
    pub(crate) listen: Option<String>,
    /// Names that `Host` may have besides those of this machine.
    pub(crate) names: Vec<String>,
    pub(crate) token: Option<String>,
    pub(crate) hosts: usize,
    /// The speed of a serial line, in bits per second.
    pub(crate) baud: u32,
    era: Option<Era>,
    /// The program, or the address.
    pub(crate) target: String,
    /// The arguments of the program; `None` for an address.
    pub(crate) program: Option<Vec<String>>,
}

pub(crate) enum Parsed {
    Run(Box<Arguments>),
    Help(String),
}

/// The beginnings of addresses.
const SCHEMES: [&str; 6] = ["http://", "https://", "unix:", "serial:", "usb:", "tcp:"];

/// Reads the arguments.
pub(crate) fn parse(mut given: impl Iterator<Item = String>) -> Result<Parsed, String> {
    let mut parsed = Arguments {
        limits: BridgeLimits::default(),
        tools: ToolFilter::default(),
        journal: None,
        cache: None,
        listen: None,
        names: Vec::new(),
        token: None,
        hosts: 64,
        baud: 115_200,
        era: None,
        target: String::new(),
        program: None,
    };
    let first = loop {
        let Some(option) = given.next() else { return Err("no server was named; --help shows how".into()) };
        if option == "--" {
            parsed.target = given.next().ok_or("a program must follow --")?;
            parsed.program = Some(given.collect());
            return Ok(Parsed::Run(Box::new(parsed)));
        }
        if !option.starts_with('-') {
            break option;
        }
        let (name, own) =
            option.split_once('=').map_or((&*option, None), |(name, value)| (name, Some(value.to_owned())));
        match name {
            "-h" | "--help" => return Ok(Parsed::Help(HELP.into())),
            "-V" | "--version" => {
                return Ok(Parsed::Help(concat!("mcp-bridge ", env!("CARGO_PKG_VERSION"), "\n").into()));
            }
            "--read-only" => parsed.tools.read_only = true,
            _ => {
                let value = own.or_else(|| given.next()).ok_or_else(|| format!("{name} needs a value"))?;
                parsed.set(name, value)?;
            }
        }
    };
    if !SCHEMES.iter().any(|scheme| first.starts_with(scheme)) {
        parsed.program = Some(given.collect());
    } else if let Some(more) = given.next() {
        return Err(format!("{more:?} follows the address {first}"));
    }
    parsed.target = first;
    Ok(Parsed::Run(Box::new(parsed)))
}

impl Arguments {
    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let wrong = || format!("{name}: {value:?} cannot be used");
        let number = || value.parse::<usize>().map_err(|_| wrong());
        let names = || value.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        match name {
            "--wait" => {
                let seconds = value.parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds));
                self.limits.wait = (seconds.ok_or_else(wrong)? * 1000.0) as u64;
            }
            "--only" => self.tools.only.extend(names()),
            "--deny" => self.tools.deny.extend(names()),
            "--journal" => self.journal = Some(value),
            "--cache" => self.cache = Some(value),
            "--listen" => self.listen = Some(value),
            "--host-name" => self.names.push(value),
            "--hosts" => self.hosts = number()?.max(1),
            "--token-file" => {
                let token = std::fs::read_to_string(&value).map_err(|error| format!("{value}: {error}"))?;
                self.token = Some(token.trim().to_owned()).filter(|token| !token.is_empty());
                self.token.as_ref().ok_or_else(wrong)?;
            }
            "--baud" => self.baud = value.parse().map_err(|_| wrong())?,
            "--era" => {
                self.era = Some(match &*value {
                    "modern" => Era::Modern,
                    "legacy" => Era::Legacy,
                    _ => return Err(wrong()),
                });
            }
            "--message" => self.limits.message = number()?,
            "--backlog" => self.limits.backlog = number()?,
            "--in-flight" => self.limits.in_flight = number()?,
            "--kept" => self.limits.kept = number()?,
            "--questions" => self.limits.questions = number()?,
            _ => return Err(format!("no option {name}; --help shows them")),
        }
        Ok(())
    }

    /// Leaves the revisions of the wanted era.
    pub(crate) fn restrict(&self, info: ClientInfo<'static>) -> ClientInfo<'static> {
        match self.era {
            Some(era) => info.revisions(Revisions::ALL.of(era).fold(Revisions::NONE, Revisions::with)),
            None => info,
        }
    }
}
