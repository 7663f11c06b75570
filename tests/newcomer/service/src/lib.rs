//! The notes as a service, for any loop. It does no I/O but that of the file.

use std::fmt::Display;
use std::time::Duration;

use mcp_sansio::json::Text;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{Progress, RpcError, ServerChange};
use mcp_sansio::service::{
    Arguments, Call, Caller, Complete, DynamicList, Form, GetPrompt, HandlerError, HandlerResult, Output, Prompt,
    ReadResource, Resource, ResourceInfo, ResourceTemplate, Service, Tool, prompt, resource, tool,
};
use mcp_sansio_host::{LateSender, Work};
use notes_db::{Db, Due, Error as DbError, Kind, Note};

pub struct Notes {
    db: Db,
    imports: Work<Notes>,
}

impl Notes {
    pub fn open(file: &str, late: LateSender<Notes>) -> Result<Self, String> {
        let db = Db::open(file).map_err(|error| format!("{file}: {error}"))?;
        Ok(Notes { db, imports: Work::new(late, 4) })
    }
}

const ALL: &str = "notes://all";

fn changed(call: &mut Call<'_>) {
    call.publish(ServerChange::Resources);
    call.publish(ServerChange::Resource(ALL));
}

fn unreadable(_: impl Display) -> HandlerError {
    RpcError::internal("The notes cannot be read").into()
}

/// Adds a note
#[tool(title = "Add a note", destructive = false, open_world = false)]
fn add(
    notes: &mut Notes,
    call: &mut Call<'_>,
    title: String,
    body: String,
    kind: Kind,
    #[arguments(default)] tags: Vec<String>,
    due: Option<Due>,
) -> Result<Note, DbError> {
    let note = notes.db.add(Note { id: 0, title, body, kind, tags, due })?;
    call.log(LoggingLevel::Info, format_args!("note {} was added", note.id));
    changed(call);
    Ok(note)
}

#[derive(Output)]
struct Found {
    total: usize,
    notes: Vec<Note>,
}

/// Finds notes by words, kind and tags
#[tool(title = "Search notes", read_only, open_world = false)]
fn search(
    notes: &mut Notes,
    /// Words in title or body
    query: Option<String>,
    kind: Option<Kind>,
    /// All of them
    #[arguments(default)]
    tags: Vec<String>,
    #[arguments(default = 20, minimum = 1)] limit: usize,
) -> Result<Found, DbError> {
    let all = notes.db.search(query.as_deref(), kind, &tags)?;
    Ok(Found { total: all.len(), notes: all.into_iter().take(limit).collect() })
}

#[derive(Form)]
struct Confirm {
    #[form(title = "Remove it?")]
    sure: bool,
}

#[derive(Output)]
struct Removed {
    removed: bool,
}

/// Removes a note, after asking the user
#[tool(title = "Remove a note", output = Removed, destructive, idempotent, open_world = false)]
fn remove(notes: &mut Notes, call: &mut Call<'_>, #[arguments] id: i64) -> HandlerResult {
    let note = call.ok(notes.db.get(id))?.ok_or_else(|| call.failed(format_args!("There is no note {id}")))?;
    let sure = call.form("sure", &format!("Remove note {id}, {:?}?", note.title))?;
    if !matches!(sure, Some(Confirm { sure: true })) {
        return call.output(&Removed { removed: false });
    }
    changed(call);
    call.publish(ServerChange::Resource(&format!("notes://{id}")));
    let removed = call.ok(notes.db.remove(id))?;
    call.output(&Removed { removed })
}

#[derive(Output)]
struct Imported {
    imported: u64,
}

/// Makes a note of each line of a text file
#[tool(title = "Import notes", output = Imported)]
fn import(notes: &mut Notes, call: &mut Call<'_>, path: String, kind: Option<Kind>) -> HandlerResult {
    let text = std::fs::read_to_string(&path).map_err(|error| call.failed(format_args!("{path}: {error}")))?;
    let file = notes.db.file();
    let importing = notes.imports.thread(move |job| -> Result<u64, String> {
        let db = Db::open(&file).map_err(|error| error.to_string())?;
        let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
        let total = lines.len() as u64;
        for (done, line) in (1..).zip(lines) {
            if job.is_cancelled() {
                let _ = job.late.publish(ServerChange::Resources); // some lines are notes nevertheless
                return Ok(done - 1);
            }
            db.import(line, kind.unwrap_or(Kind::Idea)).map_err(|error| error.to_string())?;
            std::thread::sleep(Duration::from_millis(100)); // so that there is something to watch
            job.progress(Progress::new(done).of(total));
        }
        Ok(total)
    });
    importing.then(call, |_, call, result| {
        changed(call);
        let imported = call.ok(result)?;
        call.output(&Imported { imported })
    })
}

/// Titles of all notes
#[resource("notes://all", name = "all notes", mime = "application/json")]
fn titles(notes: &mut Notes, read: &mut ReadResource<'_>) -> HandlerResult {
    let all = notes.db.all().map_err(unreadable)?;
    read.json(&all.iter().map(|note| (note.id, &note.title)).collect::<Vec<_>>())
}

/// One note
#[resource("notes://{id}", name = "note", mime = "application/json", complete = complete_id)]
fn one(notes: &mut Notes, read: &mut ReadResource<'_>, id: i64) -> HandlerResult {
    match notes.db.get(id).map_err(unreadable)? {
        Some(note) => read.json(&note),
        None => read.not_found(),
    }
}

/// Each note, as a resource with its title. The key is its id. A list that cannot be read is empty.
struct Each;

fn with_note(id: i64, title: &str, with: impl FnOnce(&ResourceInfo<'_>) -> bool) -> bool {
    let uri = format!("notes://{id}");
    with(&ResourceInfo::new(&uri, title).mime("application/json"))
}

impl DynamicList<Resource<Notes>> for Each {
    fn list(&self, notes: &Notes, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        let _ = notes.db.titles(from, |id, title| with_note(id, title, &mut *with));
    }

    fn find(&self, notes: &Notes, _: &Caller<'_>, uri: &Text<'_>, with: &mut dyn FnMut(usize, &ResourceInfo<'_>)) {
        let id = uri.plain().and_then(|uri| uri.strip_prefix("notes://")?.parse().ok());
        if let Some(note) = id.and_then(|id| notes.db.get(id).ok()?) {
            with_note(note.id, &note.title, |info| {
                with(note.id as usize, info);
                false
            });
        }
    }

    fn run(&self, id: usize, notes: &mut Notes, read: &mut ReadResource<'_>) -> HandlerResult {
        read.mime = Some("application/json");
        one(notes, read, id as i64)
    }
}

fn complete_id(notes: &mut Notes, complete: &mut Complete<'_>) -> HandlerResult {
    complete.matching(notes.db.all().map_err(unreadable)?.iter().map(|note| note.id.to_string()))
}

#[derive(Arguments, Clone, Copy, Debug)]
#[arguments(rename_all = "lowercase")]
enum Style {
    Brief,
    Detailed,
}

/// Reviews the notes of a tag
#[prompt(title = "Review notes", complete = complete_review)]
fn review(
    notes: &mut Notes,
    get: &mut GetPrompt<'_>,
    /// Whose notes
    tag: String,
    /// How
    style: Option<Style>,
) -> HandlerResult {
    let style = style.unwrap_or(Style::Brief);
    let found = notes.db.search(None, None, std::slice::from_ref(&tag)).map_err(unreadable)?;
    let list: String = found.iter().map(|note| format!("- {}: {}\n", note.title, note.body)).collect();
    get.user(format_args!("Give a {style:?} review of my notes on {tag}:\n{list}"))
}

fn complete_review(notes: &mut Notes, complete: &mut Complete<'_>) -> HandlerResult {
    match complete.argument.plain() {
        Some("tag") => complete.matching(notes.db.tags().map_err(unreadable)?),
        _ => complete.matching(["brief", "detailed"]),
    }
}

static TOOLS: &[Tool<Notes>] = &[ADD, SEARCH, REMOVE, IMPORT];
static RESOURCES: &[Resource<Notes>] = &[TITLES];
static TEMPLATES: &[ResourceTemplate<Notes>] = &[ONE];
static PROMPTS: &[Prompt<Notes>] = &[REVIEW];

pub const SERVICE: Service<'static, Notes> = Service::new("notes", env!("CARGO_PKG_VERSION"))
    .title("Notes")
    .instructions("Search before you add. Removing asks the user.")
    .tools(TOOLS)
    .resources(RESOURCES)
    .dynamic_resources(&Each)
    .templates(TEMPLATES)
    .prompts(PROMPTS)
    .feature(ServerCapability::Subscribe)
    .feature(ServerCapability::ResourcesChanged)
    .feature(ServerCapability::Logging)
    .on_cancel(|notes, token| notes.imports.cancel(token));
