//! Program 3: `client stdio SERVER FILE` or `client http URL TOKEN`: lists, calls, answers, subscribes, times out.

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use mcp_sansio::client::form::FieldKind;
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::{CallToolResult, ListToolsResult, View};
use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo, Request, SubscriptionFilter, TransportError};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{ClientCapability, LoggingLevel};
use mcp_sansio_blocking::client::{Child, Client, ClientError, ClientHandler, Http, HttpOptions, Transport};
use serde::Deserialize;
use serde_json::{Map, Value, json};

static PROFILE: ClientInfo<'static> = ClientInfo::new("tryout", "0.1").feature(ClientCapability::ElicitForm);

/// Says yes to every yes-or-no question, and prints all else.
fn on_event(event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
    match event {
        ClientEvent::Asked(asked) => {
            for question in asked.questions() {
                let Ok(form) = question.form() else {
                    let _ = handle.refuse(question.id, &RpcError::refused());
                    continue;
                };
                println!("asked: {}", question.message().map(|text| text.to_string()).unwrap_or_default());
                let yes = form.fields().filter(|field| matches!(field.kind(), FieldKind::Boolean));
                let yes: Map<_, _> = yes.map(|field| (field.name.to_string(), Value::Bool(true))).collect();
                let content = Value::from(yes).to_string();
                let content = Raw::parse(content.as_bytes()).expect("serde_json writes JSON");
                let answered = handle.reply(question.id, &ClientResult::accept(content).defaults(form.raw()));
                answered.unwrap_or_else(|error| println!("the answer was not sent: {error}"));
            }
        }
        ClientEvent::Progress { done, total, .. } => println!("progress: {done} of {total:?}"),
        ClientEvent::Log { level, data, .. } => println!("log: {level:?} {data}"),
        ClientEvent::Changed { what, .. } => println!("changed: {what:?}"),
        other => println!("event: {other:?}"),
    }
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "printed")]
struct Note {
    id: i64,
    title: String,
    kind: String,
}

fn list<'m, T: Transport<'m>, H: ClientHandler>(client: &mut Client<'m, T, H>) -> Result<(), Box<dyn Error>> {
    println!("connected: {:?}", client.connect()?);
    for page in client.pages(Request::list_tools()) {
        for tool in page?.view::<ListToolsResult>()?.iter().flatten() {
            println!("tool: {} - {}", tool.name(), tool.description().map(|text| text.to_string()).unwrap_or_default());
        }
    }
    Ok(())
}

fn times_out<'m, T: Transport<'m>, H: ClientHandler>(client: &mut Client<'m, T, H>, request: &Request<'_>) {
    let begun = Instant::now();
    match client.request(request) {
        Err(ClientError::Lost { why: TransportError::TimedOut, .. }) => {
            println!("timed out after {:?}", begun.elapsed())
        }
        other => println!("no time-out: {other:?}"),
    }
}

fn stdio(server: &str, file: &str) -> Result<(), Box<dyn Error>> {
    let mut command = Command::new(server);
    command.arg(file);
    let mut client = Client::new(Child::spawn(command, &PROFILE)?, on_event);
    list(&mut client)?;
    client.set_log_level(LoggingLevel::Info)?;
    let arguments = json!({"title": "milk", "body": "buy some", "kind": "todo", "due": {"date": "2026-12-01"}});
    let added = client.request(&Request::call("add").arguments(&arguments))?;
    let note: Note = added.raw().get("structuredContent").ok_or("no structuredContent")?.deserialize()?;
    println!("added: {note:?}");
    let uri = format!("notes://{}", note.id);
    let uris = [uri.as_str()];
    let listen = client.listen(&SubscriptionFilter::new().resources().uris(&uris))?;
    println!("read: {}", client.request(&Request::read(&uri))?.as_str());
    let removed = client.request(&Request::call("remove").arguments(&json!({"id": note.id})))?;
    println!("removed: {:?}", removed.view::<CallToolResult>()?.structured.map(|it| it.as_str()));
    while client.turn(Duration::from_millis(300))? {}
    client.cancel(listen, None)?;
    let arguments = json!({"path": "lines.txt"});
    times_out(&mut client, &Request::call("import").arguments(&arguments).with_progress().timeout(5_000).total_timeout(350));
    let wrong = client.request(&Request::call("add").arguments(&json!({"title": "milk", "kind": "tod"})))?;
    let wrong = wrong.view::<CallToolResult>()?;
    println!("wrong: {} {:?}", wrong.is_error, wrong.text().map(|text| text.to_string()));
    println!("unknown: {}", client.request(&Request::call("nonsense")).unwrap_err());
    println!("ended: {:?}", client.close());
    Ok(())
}

fn http(url: &str, token: &str) -> Result<(), Box<dyn Error>> {
    match Client::new(Http::new(url, &PROFILE)?, on_event).connect() {
        Ok(_) => println!("let in without a token?"),
        Err(error) => println!("without a token: {error}"),
    }
    let options = HttpOptions::new().header("Authorization", format!("Bearer {token}"));
    let mut client = Client::new(Http::with(url, &PROFILE, options)?, on_event);
    list(&mut client)?;
    let who = client.request(&Request::call("whoami"))?;
    println!("who: {:?}", who.view::<CallToolResult>()?.text().map(|text| text.to_string()));
    let begun = Instant::now();
    let (slow, fast) = (json!({"ms": 600}), json!({"ms": 300}));
    let first = client.send(&Request::call("wait").arguments(&slow).with_progress().with_logs(LoggingLevel::Debug))?;
    let second = client.send(&Request::call("wait").arguments(&fast))?;
    for token in [second, first] {
        println!("{:?}: {}", begun.elapsed(), client.wait(token)?.as_str());
    }
    times_out(&mut client, &Request::call("wait").arguments(&slow).timeout(200));
    client.close();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["stdio", server, file] => stdio(server, file),
        ["http", url, token] => http(url, token),
        _ => Err("usage: client stdio SERVER FILE | client http URL TOKEN".into()),
    }
}
