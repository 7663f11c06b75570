//! The official JSON schemas: one document for each revision.

use crate::envelope::{Body, Context};
use crate::methods;
use crate::revision::Revision;
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once};

/// Returns the directory of the specification: `MCP_SPEC_DIR`, or `../shared/spec` beside the workspace.
pub fn spec_dir() -> PathBuf {
    match std::env::var_os("MCP_SPEC_DIR") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec"),
    }
}

/// The five schemas, with the definitions that were compiled so far.
pub(crate) struct Schemas {
    documents: HashMap<Revision, Value>,
    compiled: Mutex<HashMap<(Revision, String), Arc<Validator>>>,
}

impl Schemas {
    /// Returns the schemas in a directory, read once in a process; `None`, with a line on stderr, where they are
    /// missing.
    pub(crate) fn open(directory: &Path) -> Option<Arc<Schemas>> {
        static OPENED: Mutex<Vec<(PathBuf, Arc<Schemas>)>> = Mutex::new(Vec::new());
        static SAID: Once = Once::new();
        if !directory.is_dir() {
            require(directory);
            SAID.call_once(|| say_skipped(directory));
            return None;
        }
        let mut opened = OPENED.lock().expect("no test panics while it reads schemas");
        if let Some((_, schemas)) = opened.iter().find(|(path, _)| path == directory) {
            return Some(schemas.clone());
        }
        let schemas = Arc::new(Schemas::read(directory));
        opened.push((directory.to_owned(), schemas.clone()));
        Some(schemas)
    }

    fn read(directory: &Path) -> Schemas {
        let document = |revision: Revision| {
            let path = directory.join(revision.name()).join("schema.json");
            let text = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            (revision, serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        };
        Schemas { documents: Revision::ALL.into_iter().map(document).collect(), compiled: Mutex::default() }
    }

    /// Judges a message by the definition of its envelope and by the most specific definitions.
    pub(crate) fn check(&self, context: Context<'_>, message: &Value, body: Body<'_>, found: &mut Vec<String>) {
        let envelope = (envelope(context.revision, body), message);
        for (definition, value) in std::iter::once(envelope).chain(self.specific(context, message, body)) {
            found.extend(self.validate(context.revision, definition, value).err());
        }
    }

    /// Returns the definitions that a message must fit, each with the part of the message.
    fn specific<'m>(&'m self, context: Context<'_>, message: &'m Value, body: Body<'_>) -> Vec<(&'m str, &'m Value)> {
        let revision = context.revision;
        match body {
            Body::Request(method) | Body::Notification(method) => {
                self.by_method(revision, method).map(|name| (name, message)).into_iter().collect()
            }
            Body::Result(_) => vec![(result_definition(context, &message["result"]), &message["result"])],
            Body::Error(_) => {
                let error = &message["error"];
                let whole = self.by_code(revision, &error["code"], "/properties/error/allOf/1");
                let inner = self.by_code(revision, &error["code"], "");
                whole.map(|name| (name, message)).into_iter().chain(inner.map(|name| (name, error))).collect()
            }
        }
    }

    /// Judges a value by one definition.
    pub(crate) fn validate(&self, revision: Revision, definition: &str, value: &Value) -> Result<(), String> {
        let wrong: Vec<_> =
            self.validator(revision, definition).iter_errors(value).take(3).map(|e| one_line(&e)).collect();
        if wrong.is_empty() { Ok(()) } else { Err(format!("schema {definition}: {}", wrong.join("; "))) }
    }

    /// Returns the definitions of a revision's schema.
    pub(crate) fn definitions(&self, revision: Revision) -> &Map<String, Value> {
        let document = &self.documents[&revision];
        document
            .get("$defs")
            .or(document.get("definitions"))
            .and_then(Value::as_object)
            .expect("a schema has definitions")
    }

    fn validator(&self, revision: Revision, definition: &str) -> Arc<Validator> {
        let mut compiled = self.compiled.lock().expect("no test panics while it compiles a schema");
        let key = (revision, definition.to_owned());
        compiled.entry(key).or_insert_with(|| Arc::new(self.compile(revision, definition))).clone()
    }

    /// Compiles the whole document, starting at one definition.
    fn compile(&self, revision: Revision, definition: &str) -> Validator {
        assert!(self.definitions(revision).contains_key(definition), "{} has no {definition}", revision.name());
        let mut document = self.documents[&revision].clone();
        let place = if document.get("$defs").is_some() { "$defs" } else { "definitions" };
        document["$ref"] = json!(format!("#/{place}/{definition}"));
        jsonschema::options()
            .should_validate_formats(true)
            .with_format("byte", |text| data_encoding::BASE64.decode(text.as_bytes()).is_ok())
            .build(&document)
            .expect("an official schema compiles")
    }

    /// Returns the definition of a request or notification.
    fn by_method(&self, revision: Revision, method: &str) -> Option<&str> {
        let is_it = |(name, schema): &(&String, &Value)| {
            schema["properties"]["method"]["const"] == method && *name != "ClientNotification"
        };
        self.definitions(revision).iter().find(is_it).map(|(name, _)| name.as_str())
    }

    /// Returns the definition of the error (or of a message with it) that fixes its code at `place`.
    fn by_code(&self, revision: Revision, code: &Value, place: &str) -> Option<&str> {
        let place = format!("{place}/properties/code/const");
        self.definitions(revision).iter().find(|(_, s)| s.pointer(&place) == Some(code)).map(|(name, _)| name.as_str())
    }
}

/// Checks that the schemas are there if they are required.
///
/// # Panics
/// If `MCP_SPEC_REQUIRED` is 1, as the gate sets it, and `directory` is where the specification should be.
pub(crate) fn require(directory: &Path) {
    let required = std::env::var_os("MCP_SPEC_REQUIRED").is_some_and(|value| value == "1");
    assert!(
        !required || directory != spec_dir(),
        "no schemas at {}, and MCP_SPEC_REQUIRED is 1 (set MCP_SPEC_DIR)",
        directory.display()
    );
}

/// Writes to stderr directly: the test harness hides the output of a test that passes.
fn say_skipped(directory: &Path) {
    let _ = writeln!(io::stderr(), "skipped: no schemas at {} (set MCP_SPEC_DIR)", directory.display());
}

fn envelope(revision: Revision, body: Body<'_>) -> &'static str {
    match body {
        Body::Request(_) => "JSONRPCRequest",
        Body::Notification(_) => "JSONRPCNotification",
        Body::Result(_) if revision <= Revision::C => "JSONRPCResponse",
        Body::Result(_) => "JSONRPCResultResponse",
        Body::Error(_) if revision <= Revision::C => "JSONRPCError",
        Body::Error(_) => "JSONRPCErrorResponse",
    }
}

fn result_definition(context: Context<'_>, result: &Value) -> &'static str {
    if context.revision.is_modern() && result["resultType"] == "input_required" {
        return "InputRequiredResult";
    }
    let other = if context.sender == methods::Side::Client { methods::Side::Server } else { methods::Side::Client };
    let asked = context.answered.and_then(methods::find).filter(|m| m.sent_by(other, context.revision));
    asked.map_or("Result", |method| method.result.name)
}

fn one_line(error: &jsonschema::ValidationError<'_>) -> String {
    let text: String = error.to_string().chars().take(300).collect();
    format!("at {:?}: {text}", error.instance_path().as_str())
}
