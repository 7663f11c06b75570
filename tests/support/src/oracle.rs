use crate::envelope::{self, Body, Context};
use crate::json::strict_json;
use crate::methods::Side;
use crate::revision::Revision;
use crate::rules::{self, Expect};
use crate::schema::{Schemas, spec_dir};
use crate::{exceptions, types};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Judges messages of our engine. The [crate] lists its checks.
///
/// It runs every check of a message even if one has failed, and the error lists all findings with the message.
/// One oracle may serve a whole test program. A second one is cheap, because a process reads the schemas once.
pub struct Oracle {
    schemas: Option<Arc<Schemas>>,
    skipped: AtomicUsize,
    expect: Expect,
}

impl Default for Oracle {
    fn default() -> Self {
        Oracle::new()
    }
}

impl Oracle {
    /// Makes an oracle with the official schemas, if they are at [`spec_dir`].
    pub fn new() -> Oracle {
        Oracle::with_schemas_in(&spec_dir())
    }

    /// Makes an oracle with the official schemas at `<directory>/<revision>/schema.json`, if the directory
    /// exists.
    pub fn with_schemas_in(directory: &Path) -> Oracle {
        let expect = Expect { server_info: true, is_error: true, unknown_members: false };
        Oracle { schemas: Schemas::open(directory), skipped: AtomicUsize::new(0), expect }
    }

    /// Accepts modern results without the server's name.
    pub fn without_server_info(mut self) -> Oracle {
        self.expect.server_info = false;
        self
    }

    /// Accepts a tool result without `isError`, for handlers that write it as raw JSON.
    pub fn without_is_error(mut self) -> Oracle {
        self.expect.is_error = false;
        self
    }

    /// Accepts members that no revision has, for handlers that write them as raw JSON. A member of another revision
    /// stays an error.
    pub fn with_unknown_members(mut self) -> Oracle {
        self.expect.unknown_members = true;
        self
    }

    /// Returns whether the official schemas are there.
    pub fn schemas_present(&self) -> bool {
        self.schemas.is_some()
    }

    /// Returns how many messages were not judged by the official schemas, because these are missing.
    pub fn skipped(&self) -> usize {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Judges one line of a server (without its newline) in a session or request of a revision. `answered` is
    /// the method of the request that it answers; in a batch, of each one.
    pub fn server_sends(&self, revision: &str, answered: Option<&str>, line: &[u8]) -> Result<(), String> {
        self.judge(Side::Server, revision, &|_| answered.map(str::to_owned), line)
    }

    /// Judges one line of a client, like [`server_sends`](Oracle::server_sends).
    pub fn client_sends(&self, revision: &str, answered: Option<&str>, line: &[u8]) -> Result<(), String> {
        self.judge(Side::Client, revision, &|_| answered.map(str::to_owned), line)
    }

    /// Like [`server_sends`](Oracle::server_sends), with the method of each request id from `method_of`: for batches
    /// with answers to different methods, and for whole exchanges.
    pub fn server_answers(
        &self,
        revision: &str,
        method_of: &dyn Fn(&Value) -> Option<String>,
        line: &[u8],
    ) -> Result<(), String> {
        self.judge(Side::Server, revision, method_of, line)
    }

    /// Like [`client_sends`](Oracle::client_sends), with the method of each request id from `method_of`.
    pub fn client_answers(
        &self,
        revision: &str,
        method_of: &dyn Fn(&Value) -> Option<String>,
        line: &[u8],
    ) -> Result<(), String> {
        self.judge(Side::Client, revision, method_of, line)
    }

    /// Judges a value by one definition of the official schema of a revision, and by nothing else. Without the
    /// schemas it passes and is counted as skipped.
    pub fn definition(&self, revision: &str, definition: &str, value: &Value) -> Result<(), String> {
        let revision = Revision::parse(revision)?;
        self.schemas().map_or(Ok(()), |schemas| schemas.validate(revision, definition, value))
    }

    fn judge(
        &self,
        sender: Side,
        revision: &str,
        method_of: &dyn Fn(&Value) -> Option<String>,
        line: &[u8],
    ) -> Result<(), String> {
        let mut found = Vec::new();
        match (Revision::parse(revision), strict_json(line)) {
            (Ok(revision), Ok(message)) => self.line(sender, revision, method_of, &message, &mut found),
            (revision, message) => found.extend([revision.err(), message.err()].into_iter().flatten()),
        }
        if found.is_empty() { Ok(()) } else { Err(report(sender, revision, line, &found)) }
    }

    /// Judges a message, or the elements of a batch.
    fn line(
        &self,
        sender: Side,
        revision: Revision,
        method_of: &dyn Fn(&Value) -> Option<String>,
        line: &Value,
        found: &mut Vec<String>,
    ) {
        let one = |message: &Value, found: &mut Vec<String>| {
            let (answered, cancelled) = (method_of(&message["id"]), method_of(&message["params"]["requestId"]));
            let (answered, cancelled) = (answered.as_deref(), cancelled.as_deref());
            self.message(Context { revision, sender, answered, cancelled }, message, found);
        };
        match line {
            Value::Array(elements) => {
                check_batch(revision, elements, found);
                elements.iter().for_each(|element| one(element, found));
            }
            message => one(message, found),
        }
    }

    fn message(&self, context: Context<'_>, message: &Value, found: &mut Vec<String>) {
        let body = match envelope::sort(message) {
            Ok(body) => body,
            Err(wrong) => return found.push(wrong),
        };
        envelope::check(context, message, body, found);
        rules::check(context, self.expect, message, body, found);
        let rewritten = exceptions::for_schema(context, message, body);
        if let Some(schemas) = self.schemas() {
            schemas.check(context, &rewritten, body, found);
        }
        types::check(context, &exceptions::for_types(context, rewritten), body, found);
    }

    fn schemas(&self) -> Option<&Schemas> {
        if self.schemas.is_none() {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        self.schemas.as_deref()
    }
}

/// Checks a batch: requests and notifications are in one array, responses in another, and a handshake is in
/// none.
fn check_batch(revision: Revision, elements: &[Value], found: &mut Vec<String>) {
    if !revision.has_batches() {
        found.push(format!("a batch in {}", revision.name()));
    }
    if elements.is_empty() {
        found.push("an empty batch".into());
    }
    let bodies: Vec<Body<'_>> = elements.iter().filter_map(|e| envelope::sort(e).ok()).collect();
    let responses = bodies.iter().filter(|b| b.is_response()).count();
    if responses != 0 && responses != bodies.len() {
        found.push("a batch of both responses and others".into());
    }
    if bodies.iter().any(|b| matches!(b, Body::Request("initialize"))) {
        found.push("initialize in a batch".into());
    }
}

fn report(sender: Side, revision: &str, line: &[u8], found: &[String]) -> String {
    let text = String::from_utf8_lossy(line);
    let start: String = text.chars().take(4000).collect();
    format!("a message of a {sender:?} in {revision} is wrong:\n  - {}\n  in {start}", found.join("\n  - "))
}
