//! Skills by rmcp: `interop-rmcp-skills server FOLDER` serves a folder over stdio; `interop-rmcp-skills client PROGRAM
//! [ARGUMENTS]` reads all skills of a server over stdio, verifies each file, and prints what it has read as JSON.

use std::error::Error;
use std::process::Stdio;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rmcp::handler::server::skill_catalog::SkillCatalog;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, ServerHandler, ServiceExt};
use serde_json::{Value, json};

struct Folder(SkillCatalog);

impl ServerHandler for Folder {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_resources().enable_skills_with_directory_read().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("skills-rmcp", "1"))
    }

    async fn list_skills(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        Ok(self.0.list_skills())
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.0.get_skill(&request.uri)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.0.resources()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.0.read_resource(&request.uri).map(Into::into);
        read.ok_or_else(|| ErrorData::resource_not_found(request.uri, None))
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.0.read_resource_directory(&request.uri)
    }
}

struct Host;

impl ClientHandler for Host {}

async fn read_all(program: &str, arguments: &[String]) -> Result<Value, Box<dyn Error>> {
    let mut command = tokio::process::Command::new(program);
    let mut server = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let pipes = (server.stdout.take().ok_or("no stdout")?, server.stdin.take().ok_or("no stdin")?);
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = Host.serve_with_lifecycle(pipes, mode).await?;
    let mut skills = Vec::new();
    for skill in client.list_all_skills().await? {
        let same = client.get_skill(GetSkillRequestParams::new(skill.uri.clone())).await?.skill == skill;
        let SkillResources::Files(files) = &skill.resources else { return Err("no files".into()) };
        let mut read = Vec::new();
        for file in files {
            let answer = client.read_resource(ReadResourceRequestParams::new(file.uri.clone())).await?;
            let bytes = match answer.contents.first() {
                Some(ResourceContents::TextResourceContents { text, .. }) => text.clone().into_bytes(),
                Some(ResourceContents::BlobResourceContents { blob, .. }) => BASE64_STANDARD.decode(blob)?,
                _ => return Err("no contents".into()),
            };
            file.verify(&bytes)?;
            read.push(json!({"uri": file.uri, "bytes": BASE64_STANDARD.encode(bytes)}));
        }
        let directory = skill.uri.trim_end_matches("/SKILL.md");
        let children = client.read_resource_directory(ReadResourceDirectoryRequestParams::new(directory)).await?;
        let children: Vec<_> = children.resources.iter().map(|child| (&child.uri, child.is_directory())).collect();
        let children = json!(children);
        skills.push(json!({"uri": skill.uri, "frontmatter": skill.frontmatter, "same": same, "files": read, "children": children}));
    }
    let unknown = client.get_skill(GetSkillRequestParams::new("skill://none/SKILL.md")).await;
    let unknown = unknown.err().map(|error| error.to_string());
    client.cancel().await?;
    Ok(json!({"skills": skills, "unknown": unknown}))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [mode, folder] if mode == "server" => {
            Folder(SkillCatalog::from_dir(folder)?).serve(rmcp::transport::stdio()).await?.waiting().await?;
        }
        [mode, program, arguments @ ..] if mode == "client" => println!("{}", read_all(program, arguments).await?),
        _ => {
            return Err("usage: server FOLDER, or client PROGRAM [ARGUMENTS]".into());
        }
    }
    Ok(())
}
