//! A client of 2025-11-25 that answers questions of its server later: `later TOOL ARGUMENTS COMMAND...` starts the server COMMAND,
//! calls the tool, and prints the text of the result. Meanwhile the server may ask for a sampling or for a form, as a task. The
//! answer is there when the server has asked for the state of the task once; a real program waits for its user, or its model.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_sansio::client::result::{ClientResult, CreateMessageResult};
use mcp_sansio::client::{ClientEvent, ClientHandle, ClientHandler, ClientInfo, Request, SendError, ServerRequestKind};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::server::Millis;
use mcp_sansio::service::ContentBlock;
use mcp_sansio_blocking::client::{Child, Client};
use mcp_sansio_extensions::tasks::receiver::{Received, Receiver};
use mcp_sansio_extensions::tasks::{TaskOptions, TaskToken, Tasks};

/// The most tasks, with those that have ended and are kept for the server.
const TASKS: usize = 16;

/// The bytes for their results.
const BYTES: usize = 64 * 1024;

struct Host {
    receiver: Receiver,
    /// The tasks that have begun, and the kinds of their questions.
    jobs: Vec<(TaskToken, ServerRequestKind)>,
    /// The server has asked for the state of a task.
    is_polled: bool,
    started: Instant,
    random: File,
}

impl Host {
    fn new() -> Result<Self, Box<dyn Error>> {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
        Ok(Host {
            receiver: Receiver::new(Tasks::growing(TASKS, BYTES).epoch(epoch)),
            jobs: Vec::new(),
            is_polled: false,
            started: Instant::now(),
            random: File::open("/dev/urandom")?,
        })
    }

    fn now(&self) -> Millis {
        self.started.elapsed().as_millis() as Millis
    }

    /// Answers the questions that became tasks.
    fn work(&mut self, handle: &mut ClientHandle<'_, '_>) -> Result<(), SendError> {
        let now = self.now();
        if std::mem::take(&mut self.is_polled) {
            for (token, kind) in self.jobs.drain(..) {
                // The server may have cancelled the task.
                let _ = self.receiver.complete(token, now, &answer(kind));
            }
        }
        self.receiver.flush(now, handle)
    }
}

fn answer(kind: ServerRequestKind) -> ClientResult<'static> {
    match kind {
        ServerRequestKind::Sampling => {
            ClientResult::sampled(CreateMessageResult::new("example", ContentBlock::text("forty-two")))
        }
        _ => ClientResult::accept(Raw::constant(r#"{"name":"Ada","favoriteColor":"Blue"}"#)),
    }
}

impl ClientHandler for Host {
    fn event(&mut self, event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
        let ClientEvent::Asked(asked) = event else { return };
        for question in asked.questions() {
            let mut random = [0; 16];
            self.random.read_exact(&mut random).expect("random bytes");
            let options = TaskOptions::new(random).ttl(600_000).poll_interval(1_000);
            self.is_polled |= question.kind == ServerRequestKind::GetTask;
            let done = match self.receiver.take(&question, self.now(), &options, handle) {
                Ok(Received::Task(token)) => {
                    self.jobs.push((token, question.kind));
                    Ok(())
                }
                Ok(Received::Ordinary) => handle.reply(question.id, &answer(question.kind)),
                Ok(Received::Handled) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                eprintln!("later: a request of the server has no answer: {error}");
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(tool), Some(arguments), Some(program)) = (words.next(), words.next(), words.next()) else {
        return Err("usage: later TOOL ARGUMENTS COMMAND...".into());
    };
    let mut command = Command::new(program);
    command.args(words);
    let info = ClientInfo::new("later", "1.0").tasks(ClientCapability::Sampling).tasks(ClientCapability::ElicitForm);
    let mut client = Client::new(Child::spawn(command, &info)?, Host::new()?);
    client.connect()?;
    let arguments: serde_json::Value = serde_json::from_str(&arguments)?;
    let token = client.send(&Request::call(&tool).arguments(&arguments))?;
    let result = loop {
        if let Some(outcome) = client.poll(token) {
            break outcome?;
        }
        client.turn(Duration::from_secs(1))?;
        let (host, mut handle) = client.handler_and_handle();
        host.work(&mut handle)?;
    };
    for block in result.raw().get("content").iter().flat_map(Raw::items) {
        println!("{}", block.get("text").and_then(|text| text.text()).ok_or("a block without text")?);
    }
    client.close();
    Ok(())
}
