//! A user of both clients: opens a protected server and carries out commands. The tests of `tests/auth/real` run it.
//!
//! `auth_client [--smol] [--key PEM] [--tokens FILE] [--revision DATE] URL COMMAND...`, where a command is `list`, `call:TOOL`,
//! `wait:MILLISECONDS` or `logout`. It prints a line for each: `ok` with the result, or `failed` with the error. A line `visit URL`
//! asks the reader of the output to log in there.

use std::env;
use std::error::Error;
use std::fs;
use std::thread;
use std::time::Duration;

use mcp_sansio::client::views::{CallToolResult, ListToolsResult, ViewError};
use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::revision::Revision;
use mcp_sansio_auth::jose::Es256Key;
use mcp_sansio_blocking::client::{
    self as blocking, AuthorizationOptions, ClientError, Ignore, OwnedResult, TokenFile,
};
use mcp_sansio_smol::client as with_smol;
use smol::Timer;
use smol::stream::StreamExt;

#[derive(Default)]
struct Arguments {
    is_smol: bool,
    key: Option<String>,
    tokens: Option<String>,
    revision: Option<Revision>,
    url: String,
    commands: Vec<Command>,
}

enum Command {
    List,
    Call(String),
    Wait(Duration),
    LogOut,
}

impl Arguments {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut read = Arguments::default();
        let mut rest = env::args().skip(1);
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--smol" => read.is_smol = true,
                "--key" => read.key = Some(fs::read_to_string(value()?)?),
                "--tokens" => read.tokens = Some(value()?),
                "--revision" => read.revision = Some(Revision::from_date(&value()?).ok_or("no such revision")?),
                _ if read.url.is_empty() => read.url = argument,
                "list" => read.commands.push(Command::List),
                "logout" => read.commands.push(Command::LogOut),
                _ => match argument.split_once(':') {
                    Some(("call", tool)) => read.commands.push(Command::Call(tool.to_owned())),
                    Some(("wait", time)) => read.commands.push(Command::Wait(Duration::from_millis(time.parse()?))),
                    _ => return Err(format!("no such command: {argument}").into()),
                },
            }
        }
        Ok(read)
    }

    fn login(&self) -> Result<AuthorizationOptions, Box<dyn Error>> {
        let mut login = AuthorizationOptions::new("auth_client").visit(|url| println!("visit {url}"));
        if let Some(pem) = &self.key {
            login = login.dpop_key(Es256Key::from_pkcs8_pem(pem)?);
        }
        if let Some(file) = &self.tokens {
            login = login.tokens(TokenFile::new(file));
        }
        Ok(login)
    }

    /// Returns whether a command needs a connection.
    fn connects(&self) -> bool {
        self.commands.iter().any(|command| matches!(command, Command::List | Command::Call(_)))
    }
}

static PROFILE: ClientInfo<'static> = ClientInfo::new("auth_client", "1.0");

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::read()?;
    match arguments.is_smol {
        false => run_blocking(&arguments),
        true => smol::block_on(run_smol(&arguments)),
    }
}

fn run_blocking(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let server = blocking::Http::new(&arguments.url, &PROFILE)?.authorization(arguments.login()?)?;
    let mut client = blocking::Client::new(server, Ignore);
    if arguments.connects() {
        let opened = match arguments.revision {
            Some(revision) => client.connect_as(revision),
            None => client.connect(),
        };
        show(opened, |hello| Ok(hello.revision().date().to_owned()))?;
    }
    for command in &arguments.commands {
        match command {
            Command::List => show(client.pages(Request::list_tools()).collect(), names)?,
            Command::Call(tool) => show(client.request(&Request::call(tool)), text)?,
            Command::Wait(time) => thread::sleep(*time),
            Command::LogOut => show(arguments.login()?.log_out(&arguments.url), |()| Ok("logout".to_owned()))?,
        }
    }
    client.close();
    Ok(())
}

async fn run_smol(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let server = with_smol::Http::new(&arguments.url, &PROFILE)?.authorization(arguments.login()?)?;
    let (client, driver) = with_smol::Client::new(server, Ignore);
    let driver = smol::spawn(driver);
    if arguments.connects() {
        let opened = match arguments.revision {
            Some(revision) => client.connect_as(revision).await,
            None => client.connect().await,
        };
        show(opened, |hello| Ok(hello.revision().date().to_owned()))?;
    }
    for command in &arguments.commands {
        match command {
            Command::List => show(client.pages(Request::list_tools()).try_collect().await, names)?,
            Command::Call(tool) => show(client.request(Request::call(tool)).await, text)?,
            Command::Wait(time) => drop(Timer::after(*time).await),
            Command::LogOut => show(arguments.login()?.log_out(&arguments.url), |()| Ok("logout".to_owned()))?,
        }
    }
    client.close().await;
    driver.await;
    Ok(())
}

/// Prints the outcome of a command.
fn show<T>(
    outcome: Result<T, ClientError>,
    write: impl FnOnce(T) -> Result<String, ViewError>,
) -> Result<(), ViewError> {
    match outcome {
        Ok(result) => println!("ok {}", write(result)?),
        Err(error) => println!("failed {error}"),
    }
    Ok(())
}

fn names(pages: Vec<OwnedResult>) -> Result<String, ViewError> {
    let mut names = Vec::new();
    for page in &pages {
        for tool in page.view::<ListToolsResult>()?.iter() {
            names.push(tool?.name().to_string());
        }
    }
    Ok(names.join(" "))
}

fn text(answer: OwnedResult) -> Result<String, ViewError> {
    Ok(answer.view::<CallToolResult>()?.text().map_or(String::new(), |text| text.to_string()))
}
