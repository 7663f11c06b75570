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

/// Judges messages of our engine. See the [crate] for what it asks of them.
///
/// Every check of a message takes place even if one has failed, and the error lists all findings with
/// the message itself. One oracle may serve a whole test program; making another one is cheap, since the
/// schemas are read once in a process.
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
    /// With the official schemas, if they are at [`spec_dir`].
    pub fn new() -> Oracle {
        Oracle::with_schemas_in(&spec_dir())
    }

    /// With the official schemas of `<directory>/<revision>/schema.json`, if there is such a directory.
    pub fn with_schemas_in(directory: &Path) -> Oracle {
        let expect = Expect { server_info: true, is_error: true, unknown_members: false };
        Oracle { schemas: Schemas::open(directory), skipped: AtomicUsize::new(0), expect }
    }

    /// For servers that were told not to name themselves in each modern result.
    pub fn without_server_info(mut self) -> Oracle {
        self.expect.server_info = false;
        self
    }

    /// For handlers that write a tool result as raw JSON, where `isError` is theirs to write.
    pub fn without_is_error(mut self) -> Oracle {
        self.expect.is_error = false;
        self
    }

    /// For handlers that write members which no revision knows (as raw JSON). A member which another
    /// revision knows stays an error.
    pub fn with_unknown_members(mut self) -> Oracle {
        self.expect.unknown_members = true;
        self
    }

    /// Whether messages are judged by the official schemas.
    pub fn schemas_present(&self) -> bool {
        self.schemas.is_some()
    }

    /// How many messages went unjudged by the official schemas, because those were not there.
    pub fn skipped(&self) -> usize {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Judges one line of a server (without its newline) in a session or request of a revision.
    /// `answered` is the method of the request that it answers; for a batch, of each of them.
    pub fn server_sends(&self, revision: &str, answered: Option<&str>, line: &[u8]) -> Result<(), String> {
        self.judge(Side::Server, revision, &|_| answered.map(str::to_owned), line)
    }

    /// Judges one line of a client, as [`server_sends`](Oracle::server_sends) does of a server.
    pub fn client_sends(&self, revision: &str, answered: Option<&str>, line: &[u8]) -> Result<(), String> {
        self.judge(Side::Client, revision, &|_| answered.map(str::to_owned), line)
    }

    /// Like [`server_sends`](Oracle::server_sends), where `method_of` knows the method that was asked
    /// under an id: for batches with answers to different methods, and for whole exchanges.
    pub fn server_answers(
        &self,
        revision: &str,
        method_of: &dyn Fn(&Value) -> Option<String>,
        line: &[u8],
    ) -> Result<(), String> {
        self.judge(Side::Server, revision, method_of, line)
    }

    /// Like [`client_sends`](Oracle::client_sends), where `method_of` knows the method that was asked
    /// under an id.
    pub fn client_answers(
        &self,
        revision: &str,
        method_of: &dyn Fn(&Value) -> Option<String>,
        line: &[u8],
    ) -> Result<(), String> {
        self.judge(Side::Client, revision, method_of, line)
    }

    /// Judges a value by one definition of a revision's official schema and nothing else; it passes
    /// (and is counted as skipped) where the schemas are not there.
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

    /// A message, or the elements of a batch.
    fn line(
        &self,
        sender: Side,
        revision: Revision,
        method_of: &dyn Fn(&Value) -> Option<String>,
        line: &Value,
        found: &mut Vec<String>,
    ) {
        let one = |message: &Value, found: &mut Vec<String>| {
            let answered = method_of(&message["id"]);
            self.message(Context { revision, sender, answered: answered.as_deref() }, message, found);
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

/// Requests and notifications travel in one array, responses in another; a handshake in none.
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
