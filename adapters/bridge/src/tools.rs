//! Which tools of the server the host may see and call.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::json::{Object, Raw};
use mcp_sansio::protocol::Method;
use mcp_sansio::server::IncomingRequest;
use mcp_sansio::sink::{LineSink, MessageHead, whole};

/// Lets a part of the tools through. The others are left out of lists, and calls of them are refused.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "three switches")]
pub struct ToolFilter {
    /// If there are any: these tools alone. A name that ends in `*` stands for all that begin so.
    pub only: Vec<String>,
    /// Not these tools.
    pub deny: Vec<String>,
    /// Only tools with `annotations.readOnlyHint`, which is the server's word. A call needs a list first that showed the tool.
    pub read_only: bool,
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known.strip_suffix('*').map_or(known == name, |start| name.starts_with(start)))
}

/// A filter, and what it has seen.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    filter: ToolFilter,
    /// The read-only tools of the lists so far, if they matter.
    read_only: Vec<String>,
}

/// The most read-only tools that are remembered.
const TOOLS_MAX: usize = 10_000;

impl Tools {
    pub(crate) const fn new(filter: ToolFilter) -> Self {
        Tools { filter, read_only: Vec::new() }
    }

    fn is_idle(&self) -> bool {
        self.filter.only.is_empty() && self.filter.deny.is_empty() && !self.filter.read_only
    }

    fn passes(&self, name: &str) -> bool {
        (self.filter.only.is_empty() || has(&self.filter.only, name)) && !has(&self.filter.deny, name)
    }

    /// Returns `true` if the request calls a tool that the host may not use.
    pub(crate) fn refuses(&self, request: &IncomingRequest<'_>) -> bool {
        if request.method() != Method::ToolsCall || self.is_idle() {
            return false;
        }
        let name = request.members().name.and_then(|name| name.text()).map(|name| name.to_string());
        let known = |name: &String| !self.filter.read_only || self.read_only.contains(name);
        !name.is_some_and(|name| self.passes(&name) && known(&name))
    }

    /// Writes a `ListToolsResult` without the tools that the host may not use; `None` if it stays as it is.
    pub(crate) fn cut(&mut self, method: Method, result: Raw<'_>) -> Option<Vec<u8>> {
        if method != Method::ToolsList || self.is_idle() {
            return None;
        }
        let tools = result.get("tools")?;
        let mut list = Vec::from(b"[");
        for tool in tools.items() {
            let Some(name) = tool.get("name").and_then(|name| name.text()).map(|name| name.to_string()) else {
                continue;
            };
            let hint = tool.get("annotations").and_then(|notes| notes.get("readOnlyHint")?.bool()) == Some(true);
            if !self.passes(&name) || self.filter.read_only && !hint {
                continue;
            }
            if list.len() > 1 {
                list.push(b',');
            }
            list.extend_from_slice(tool.as_bytes());
            if self.filter.read_only && !self.read_only.contains(&name) && self.read_only.len() < TOOLS_MAX {
                self.read_only.push(name);
            }
        }
        list.push(b']');
        let list = Raw::parse(&list).ok()?;
        let mut out = LineSink::new(Vec::new());
        whole(&mut out, MessageHead::Result, |out| {
            let mut object = Object::open(out);
            for (key, value) in result.members() {
                object.member(key, if key.eq_str("tools") { list } else { value });
            }
            object.close()
        })
        .ok()?;
        Some(out.into_inner())
    }
}
