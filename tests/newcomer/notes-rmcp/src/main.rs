//! Program 1 once more, on rmcp: `notes-rmcp FILE`.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use notes_db::{Db, Due, Kind, Note};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{
    ErrorData, Json, Peer, RoleServer, ServerHandler, ServiceExt, elicit_safe, prompt, prompt_handler, prompt_router,
    tool, tool_handler, tool_router, transport::stdio,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct Notes {
    db: Arc<Mutex<Db>>,
    subscribed: Arc<Mutex<HashSet<String>>>,
}

const ALL: &str = "notes://all";

#[derive(Deserialize, JsonSchema)]
struct Add {
    title: String,
    body: String,
    kind: Kind,
    #[serde(default)]
    tags: Vec<String>,
    due: Option<Due>,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// Words in title or body
    query: Option<String>,
    kind: Option<Kind>,
    /// All of them
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default = "twenty")]
    #[schemars(range(min = 1))]
    limit: usize,
}

fn twenty() -> usize {
    20
}

#[derive(Serialize, JsonSchema)]
struct Found {
    total: usize,
    notes: Vec<Note>,
}

#[derive(Deserialize, JsonSchema)]
struct Remove {
    id: i64,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Confirm {
    #[schemars(title = "Remove it?")]
    sure: bool,
}
elicit_safe!(Confirm);

#[derive(Serialize, JsonSchema)]
struct Removed {
    removed: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Import {
    path: String,
    kind: Option<Kind>,
}

#[derive(Serialize, JsonSchema)]
struct Imported {
    imported: usize,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Style {
    #[default]
    Brief,
    Detailed,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Review {
    /// Whose notes
    tag: String,
    /// How
    style: Option<Style>,
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn internal(error: impl Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl Notes {
    fn db(&self) -> MutexGuard<'_, Db> {
        self.db.lock().unwrap()
    }

    async fn changed(&self, peer: &Peer<RoleServer>, uri: &str) {
        let _ = peer.notify_resource_list_changed().await;
        for uri in [ALL, uri] {
            if self.subscribed.lock().unwrap().contains(uri) {
                let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
            }
        }
    }
}

#[tool_router]
impl Notes {
    /// Adds a note
    #[tool(annotations(title = "Add a note", destructive_hint = false, open_world_hint = false))]
    #[allow(deprecated, reason = "log messages")]
    async fn add(
        &self,
        Parameters(Add { title, body, kind, tags, due }): Parameters<Add>,
        peer: Peer<RoleServer>,
    ) -> Result<Json<Note>, String> {
        let note = self.db().add(Note { id: 0, title, body, kind, tags, due }).map_err(text)?;
        let message = format!("note {} was added", note.id);
        let log = LoggingMessageNotificationParam::new(LoggingLevel::Info, message.into());
        let _ = peer.notify_logging_message(log).await;
        self.changed(&peer, "").await;
        Ok(Json(note))
    }

    /// Finds notes by words, kind and tags
    #[tool(annotations(title = "Search notes", read_only_hint = true, open_world_hint = false))]
    async fn search(
        &self,
        Parameters(Search { query, kind, tags, limit }): Parameters<Search>,
    ) -> Result<Json<Found>, String> {
        let all = self.db().search(query.as_deref(), kind, &tags).map_err(text)?;
        Ok(Json(Found { total: all.len(), notes: all.into_iter().take(limit).collect() }))
    }

    /// Removes a note, after asking the user
    #[tool(annotations(
        title = "Remove a note",
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    async fn remove(
        &self,
        Parameters(Remove { id }): Parameters<Remove>,
        peer: Peer<RoleServer>,
    ) -> Result<Json<Removed>, String> {
        let note = self.db().get(id).map_err(text)?.ok_or_else(|| format!("There is no note {id}"))?;
        let sure = peer.elicit::<Confirm>(format!("Remove note {id}, {:?}?", note.title)).await;
        match sure {
            Ok(Some(Confirm { sure: true })) => {}
            Err(error @ rmcp::service::ElicitationError::Service(_)) => return Err(text(error)),
            _ => return Ok(Json(Removed { removed: false })),
        }
        let removed = self.db().remove(id).map_err(text)?;
        self.changed(&peer, &format!("notes://{id}")).await;
        Ok(Json(Removed { removed }))
    }

    /// Makes a note of each line of a text file
    #[tool(annotations(title = "Import notes"))]
    async fn import(
        &self,
        Parameters(Import { path, kind }): Parameters<Import>,
        context: RequestContext<RoleServer>,
    ) -> Result<Json<Imported>, String> {
        let file = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let lines: Vec<_> = file.lines().filter(|line| !line.is_empty()).collect();
        let mut imported = 0;
        for line in &lines {
            if context.ct.is_cancelled() {
                break;
            }
            self.db().import(line, kind.unwrap_or(Kind::Idea)).map_err(text)?;
            imported += 1;
            tokio::time::sleep(Duration::from_millis(100)).await; // so that there is something to watch
            if let Some(token) = context.meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, imported as f64).with_total(lines.len() as f64);
                let _ = context.peer.notify_progress(progress).await;
            }
        }
        self.changed(&context.peer, "").await;
        Ok(Json(Imported { imported }))
    }
}

#[prompt_router]
impl Notes {
    /// Reviews the notes of a tag
    #[prompt(title = "Review notes")]
    async fn review(
        &self,
        Parameters(Review { tag, style }): Parameters<Review>,
    ) -> Result<Vec<PromptMessage>, ErrorData> {
        let style = style.unwrap_or_default();
        let found = self.db().search(None, None, std::slice::from_ref(&tag)).map_err(internal)?;
        let list: String = found.iter().map(|note| format!("- {}: {}\n", note.title, note.body)).collect();
        let message = format!("Give a {style:?} review of my notes on {tag}:\n{list}");
        Ok(vec![PromptMessage::new_text(Role::User, message)])
    }
}

#[tool_handler]
#[prompt_handler]
#[allow(deprecated, reason = "log messages, and subscriptions before 2026-07-28")]
impl ServerHandler for Notes {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("notes", env!("CARGO_PKG_VERSION")).with_title("Notes"))
            .with_instructions("Search before you add. Removing asks the user.")
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = Resource::new(ALL, "all notes").with_description("Titles of all notes");
        Ok(ListResourcesResult::with_all_items(vec![all.with_mime_type("application/json")]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let one = ResourceTemplate::new("notes://{id}", "note").with_description("One note");
        Ok(ListResourceTemplatesResult::with_all_items(vec![one.with_mime_type("application/json")]))
    }

    async fn read_resource(
        &self,
        ReadResourceRequestParams { uri, .. }: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let not_found = || ErrorData::resource_not_found("There is no such note", None);
        let json = if uri == ALL {
            let all = self.db().all().map_err(internal)?;
            serde_json::to_string(&all.iter().map(|note| (note.id, &note.title)).collect::<Vec<_>>())
        } else {
            let id = uri.strip_prefix("notes://").and_then(|id| id.parse().ok()).ok_or_else(not_found)?;
            serde_json::to_string(&self.db().get(id).map_err(internal)?.ok_or_else(not_found)?)
        };
        let contents = ResourceContents::text(json.map_err(internal)?, uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        CompleteRequestParams { r#ref, argument, .. }: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = match (r#ref, &*argument.name) {
            (Reference::Prompt(_), "tag") => self.db().tags().map_err(internal)?,
            (Reference::Prompt(_), "style") => vec!["brief".into(), "detailed".into()],
            (Reference::Resource(_), "id") => {
                self.db().all().map_err(internal)?.iter().map(|note| note.id.to_string()).collect()
            }
            _ => vec![],
        };
        let values = values.into_iter().filter(|value| value.starts_with(&argument.value)).take(100).collect();
        Ok(CompleteResult::new(CompletionInfo::with_all_values(values).map_err(internal)?))
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap().insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap().remove(&request.uri);
        Ok(())
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let file = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("usage: notes-rmcp FILE"))?;
    let notes = Notes { db: Arc::new(Mutex::new(Db::open(&file)?)), subscribed: Default::default() };
    notes.serve(stdio()).await?.waiting().await?;
    Ok(())
}
