//! Which tools of the server the host may see and call.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::json::{OwnedRaw, Raw};
use mcp_sansio::protocol::Method;
use mcp_sansio::server::IncomingRequest;

use crate::write::{replaced, written};

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

/// Returns `true` if a schema has the word, or an escape that may be a part of it.
fn may_name_headers(schema: &[u8]) -> bool {
    [&b"x-mcp-header"[..], b"\\u"].into_iter().any(|sign| schema.windows(sign.len()).any(|part| part == sign))
}

fn is_read_only(tool: Raw<'_>) -> bool {
    tool.get("annotations").and_then(|notes| notes.get("readOnlyHint")?.bool()) == Some(true)
}

/// A filter, and what it has seen.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    filter: ToolFilter,
    /// The beginning that names of tools and prompts get for hosts.
    prefix: String,
    /// The tools of the lists so far of which something matters, as the last list with each described it.
    listed: BTreeMap<String, ListedTool>,
    /// The bytes of their schemas, with the names.
    bytes: usize,
}

#[derive(Debug)]
struct ListedTool {
    /// Set if it is read-only, and the filter asks for that.
    is_read_only: bool,
    /// The input schema, if it may name headers.
    schema: Option<OwnedRaw>,
}

/// The most read-only tools that are remembered.
const TOOLS_MAX: usize = 10_000;

impl Tools {
    pub(crate) const fn new(filter: ToolFilter) -> Self {
        Tools { filter, prefix: String::new(), listed: BTreeMap::new(), bytes: 0 }
    }

    pub(crate) fn set_prefix(&mut self, prefix: &str) {
        self.prefix = prefix.into();
    }

    fn is_idle(&self) -> bool {
        self.filter.only.is_empty() && self.filter.deny.is_empty() && !self.filter.read_only
    }

    fn passes(&self, name: &str) -> bool {
        (self.filter.only.is_empty() || has(&self.filter.only, name)) && !has(&self.filter.deny, name)
    }

    /// Returns `true` if the request calls a tool that the host may not use.
    pub(crate) fn refuses(&self, request: &IncomingRequest<'_>) -> bool {
        if request.method != Method::ToolsCall || self.is_idle() {
            return false;
        }
        // Of two names the server might take the other one.
        let names = request
            .envelope
            .params
            .into_iter()
            .flat_map(|params| params.members())
            .filter(|(key, _)| key.eq_str("name"));
        let name = request.envelope.members.name.filter(|_| names.count() == 1).and_then(|name| name.text());
        let name = name.map(|name| format!("{}{name}", self.prefix));
        let known =
            |name: &String| !self.filter.read_only || self.listed.get(name).is_some_and(|tool| tool.is_read_only);
        !name.is_some_and(|name| self.passes(&name) && known(&name))
    }

    /// Notes what a list of tools says: which are read-only, if that matters, and in at most `schemas` bytes the input schemas that may
    /// name headers.
    pub(crate) fn learn(&mut self, result: Raw<'_>, schemas: usize) {
        if schemas == 0 && !self.filter.read_only {
            return;
        }
        for tool in result.get("tools").into_iter().flat_map(|list| list.items()) {
            let Some(name) = tool.get("name").and_then(|name| name.text()) else { continue };
            let name = format!("{}{name}", self.prefix);
            let size = |schema: &OwnedRaw| name.len() + schema.raw().as_bytes().len();
            let old = self.listed.remove(&name).and_then(|tool| tool.schema);
            self.bytes -= old.as_ref().map_or(0, size);
            let schema = tool.get("inputSchema").filter(|schema| schemas > 0 && may_name_headers(schema.as_bytes()));
            let schema = schema.map(OwnedRaw::new).filter(|schema| self.bytes.saturating_add(size(schema)) <= schemas);
            self.bytes += schema.as_ref().map_or(0, size);
            let is_read_only = self.filter.read_only && is_read_only(tool);
            if schema.is_some() || is_read_only && self.listed.len() < TOOLS_MAX {
                self.listed.insert(name, ListedTool { is_read_only, schema });
            }
        }
    }

    /// Returns the schema that was kept of the tool that hosts call so.
    pub(crate) fn schema(&self, name: &str) -> Option<Raw<'_>> {
        self.listed.get(name)?.schema.as_ref().map(OwnedRaw::raw)
    }

    /// Writes a list of tools or prompts as the host may see it, or `None` if it stays as it is: without tools that the host may not
    /// use, and with the prefix.
    pub(crate) fn cut(&self, method: Method, result: Raw<'_>) -> Option<Vec<u8>> {
        let member = match method {
            Method::ToolsList if !self.is_idle() || !self.prefix.is_empty() => "tools",
            Method::PromptsList if !self.prefix.is_empty() => "prompts",
            _ => return None,
        };
        let mut list = Vec::from(b"[");
        for item in result.get(member)?.items() {
            let Some(name) = item.get("name").and_then(|name| name.text()) else { continue };
            let name = format!("{}{name}", self.prefix);
            if member == "tools" && (!self.passes(&name) || self.filter.read_only && !is_read_only(item)) {
                continue;
            }
            if list.len() > 1 {
                list.push(b',');
            }
            match self.prefix.is_empty() {
                true => list.extend_from_slice(item.as_bytes()),
                false => list.extend_from_slice(&replaced(item, "name", |item| item.text("name", &name))),
            }
        }
        list.push(b']');
        let list = Raw::parse(&list).ok()?;
        Some(written(|object| {
            for (key, value) in result.members() {
                object.member(key, if key.eq_str(member) { list } else { value });
            }
        }))
    }
}
