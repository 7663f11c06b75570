//! The command line.

use mcp_sansio::client::ClientInfo;
use mcp_sansio::json::Raw;
use mcp_sansio::revision::{Era, Revisions};
use mcp_sansio_bridge::{BridgeLimits, ToolFilter};
use mcp_sansio_host::{ServerEntry, plain_json};

use crate::resource_server::{self, GuardOptions};

const HELP: &str = "\
mcp-bridge: keeps a host's connection while its MCP server is restarted, unplugged or updated,
and lets hosts and servers of all revisions (2024-11-05 to 2026-07-28) talk to each other.

usage: mcp-bridge [OPTIONS] [--] PROGRAM [ARGS]...
       mcp-bridge [OPTIONS] TARGET
       mcp-bridge [OPTIONS] --config FILE

targets:
  http://HOST[:PORT]/PATH   a server over HTTP; https:// and logins with the feature tls
  unix:PATH                 a server over HTTP at a Unix socket
  serial:PATH               a board on a serial line (Unix)
  usb:VID:PID[:SERIAL]      the same, found by its USB numbers wherever it is plugged in (Linux)
  tcp:HOST:PORT             a server over lines on a TCP connection

options:
  --config FILE       the servers of a file like mcp.json, all at once: a tool t of the server s is s_t
  --header NAME:VALUE sends this with each request to the URL; may come again
  --listen ADDRESS    serves several hosts over HTTP (Streamable HTTP, HTTP with SSE) instead of one
                      over stdio: PORT on 127.0.0.1, IP:PORT, or unix:PATH
  --host-name NAME    a name besides those of this machine by which hosts may reach it; may come again
  --token-file FILE   lets in hosts alone that send the bearer token in this file
  --hosts N           the most hosts at a time (64)
  --wait SECONDS      how long a request waits for a server that is away (10)
  --check SECONDS     the silence after which a quiet wire is checked; a URL's stream may be silent twice
                      as long (30)
  --only NAME,..      lets these tools through alone; a name may end in *
  --deny NAME,..      leaves these tools out
  --read-only         lets tools through alone that say that they only read
  --journal FILE      adds one line of JSON for each request: time, host, method, tool, duration, outcome
  --journal-arguments the lines have the arguments of calls too
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

/// The way to a server.
#[derive(Default)]
pub(crate) struct Target {
    /// Its name, if there are several.
    pub(crate) name: String,
    /// The program, or the address.
    pub(crate) place: String,
    /// The arguments of the program; `None` for an address.
    pub(crate) program: Option<Vec<String>>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) folder: Option<String>,
}

impl Target {
    /// Returns what people call it.
    pub(crate) fn label(&self) -> &str {
        if self.name.is_empty() { &self.place } else { &self.name }
    }

    /// Returns `true` if its wire may go dead, or its server begin anew, without a sign.
    pub(crate) fn is_silent(&self) -> bool {
        self.program.is_none() && ["serial:", "usb:", "tcp:"].iter().any(|wire| self.place.starts_with(wire))
    }

    fn address(place: String) -> Result<Self, String> {
        match SCHEMES.iter().any(|scheme| place.starts_with(scheme)) {
            true => Ok(Target { place, ..Target::default() }),
            false => Err(format!("{place:?} is no address; --help shows them")),
        }
    }

    /// Reads an entry of a file of servers.
    fn read(name: &str, entry: Raw<'_>) -> Result<Self, String> {
        let found = ServerEntry::read(entry).map_err(|why| format!("{name}: {why}"))?;
        let mut words = found.program.into_iter();
        let target = match words.next() {
            Some(place) => Target { place, program: Some(words.collect()), ..Target::default() },
            None => Target::address(found.url).map_err(|why| format!("{name}: {why}"))?,
        };
        Ok(Target { name: name.into(), env: found.env, headers: found.headers, folder: found.folder, ..target })
    }
}

/// Reads the servers of a file, but for those that say that they are `disabled`.
fn config(path: &str) -> Result<Vec<Target>, String> {
    let text = plain_json(&std::fs::read_to_string(path).map_err(|error| error.to_string())?);
    let root = Raw::parse(text.as_bytes()).map_err(|fault| format!("it is not JSON: {fault}"))?;
    let servers = ["mcpServers", "servers", "context_servers"].into_iter().filter_map(|member| root.get(member));
    // An empty one hides no other.
    let servers = servers.map(|servers| servers.members()).find(|servers| servers.clone().next().is_some());
    let servers = servers.ok_or("it has no server in mcpServers, servers or context_servers")?;
    let enabled = servers.filter(|(_, entry)| entry.get("disabled").and_then(|is| is.bool()) != Some(true));
    enabled.map(|(name, entry)| Target::read(&name.to_string(), entry)).collect()
}

/// The options and the servers.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) limits: BridgeLimits,
    pub(crate) tools: ToolFilter,
    pub(crate) journal: Option<String>,
    pub(crate) journals_arguments: bool,
    pub(crate) cache: Option<String>,
    pub(crate) listen: Option<String>,
    /// Names that `Host` may have besides those of this machine.
    pub(crate) names: Vec<String>,
    pub(crate) token: Option<String>,
    pub(crate) guard: GuardOptions,
    pub(crate) hosts: usize,
    /// The speed of a serial line, in bits per second.
    pub(crate) baud: u32,
    era: Option<Era>,
    /// The headers for a URL.
    headers: Vec<(String, String)>,
    /// The servers; those of a file have names.
    pub(crate) targets: Vec<Target>,
}

pub(crate) enum Parsed {
    Run(Box<Arguments>),
    Help(String),
}

/// The beginnings of addresses.
const SCHEMES: [&str; 6] = ["http://", "https://", "unix:", "serial:", "usb:", "tcp:"];

/// Reads the arguments.
pub(crate) fn parse(mut given: impl Iterator<Item = String>) -> Result<Parsed, String> {
    let mut parsed = Arguments { hosts: 64, baud: 115_200, ..Arguments::default() };
    let target = loop {
        let Some(option) = given.next() else { break None };
        if option == "--" {
            let place = given.next().ok_or("a program must follow --")?;
            break Some(Target { place, program: Some(given.collect()), ..Target::default() });
        }
        if !option.starts_with('-') {
            break Some(match Target::address(option.clone()) {
                Ok(target) => match given.next() {
                    Some(more) => return Err(format!("{more:?} follows the address {option}")),
                    None => target,
                },
                Err(_) => Target { place: option, program: Some(given.collect()), ..Target::default() },
            });
        }
        let (name, own) =
            option.split_once('=').map_or((&*option, None), |(name, value)| (name, Some(value.to_owned())));
        match name {
            "-h" | "--help" => return Ok(Parsed::Help([HELP, resource_server::HELP].concat())),
            "-V" | "--version" => {
                return Ok(Parsed::Help(concat!("mcp-bridge ", env!("CARGO_PKG_VERSION"), "\n").into()));
            }
            "--read-only" => parsed.tools.read_only = true,
            "--journal-arguments" => parsed.journals_arguments = true,
            _ => {
                let value = own.or_else(|| given.next()).ok_or_else(|| format!("{name} needs a value"))?;
                parsed.set(name, value)?;
            }
        }
    };
    match (target, parsed.targets.is_empty()) {
        (Some(target), true) => parsed.targets.push(Target { headers: std::mem::take(&mut parsed.headers), ..target }),
        (None, true) => return Err("no server was named; --help shows how".into()),
        (Some(_), false) => return Err("there are two servers: one on the command line, and those of --config".into()),
        (None, false) if !parsed.headers.is_empty() => {
            return Err("--header is for one URL; the file has headers".into());
        }
        (None, false) => {}
    }
    parsed.guard.check(parsed.listen.is_some() && parsed.token.is_none())?;
    Ok(Parsed::Run(Box::new(parsed)))
}

impl Arguments {
    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let wrong = || format!("{name}: {value:?} cannot be used");
        let number = || value.parse::<usize>().map_err(|_| wrong());
        let names = || value.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        // Whole seconds: to read others takes the program 16 KB.
        let millis = || value.parse::<u32>().map(|seconds| 1000 * u64::from(seconds)).map_err(|_| wrong());
        match name {
            "--wait" => self.limits.wait = millis()?,
            "--check" => self.limits.check = millis()?.max(1),
            "--only" => self.tools.only.extend(names()),
            "--deny" => self.tools.deny.extend(names()),
            "--config" => {
                self.targets = config(&value).map_err(|why| format!("{value}: {why}"))?;
                if self.targets.is_empty() {
                    return Err(format!("{value} has no server"));
                }
            }
            "--header" => {
                let (name, value) = value.split_once(':').ok_or_else(wrong)?;
                self.headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
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
            _ if self.guard.set(name, &value)? => {}
            _ => return Err(format!("no option {name}; --help shows them")),
        }
        Ok(())
    }

    /// Returns `true` if the servers have names.
    pub(crate) fn is_hub(&self) -> bool {
        self.targets.iter().any(|target| !target.name.is_empty())
    }

    /// Leaves the revisions of the wanted era.
    pub(crate) fn restrict(&self, info: ClientInfo<'static>) -> ClientInfo<'static> {
        match self.era {
            Some(era) => info.revisions(Revisions::ALL.of(era).fold(Revisions::NONE, Revisions::with)),
            None => info,
        }
    }
}
