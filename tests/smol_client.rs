//! The smol client against the examples, over stdio and HTTP.
#![cfg(target_os = "linux")]

#[path = "remote/programs.rs"]
mod programs;

use std::collections::HashSet;
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::ListToolsResult;
use mcp_sansio::client::{ClientInfo, Request, SubscriptionFilter};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_smol::client::{
    Child, ChildExit, Client, Http, OwnedEvent, StopSignal, SubscriptionEvent, Transport, events,
};
use smol::stream::StreamExt;
use smol::{Timer, future};

fn info(revision: Revision) -> &'static ClientInfo<'static> {
    let info = ClientInfo::new("test", "1").feature(ClientCapability::ElicitForm);
    Box::leak(Box::new(info.revisions(Revisions::NONE.with(revision))))
}

async fn bounded<T>(future: impl Future<Output = T>) -> T {
    future::or(future, async {
        Timer::after(Duration::from_secs(30)).await;
        panic!("it hangs")
    })
    .await
}

/// Uses each item of sysmon, over one connection.
async fn tour(transport: impl Transport + 'static, revision: Revision) -> Option<ChildExit> {
    let (handler, mut told) = events(1_000);
    let (client, driver) = Client::new(transport, handler);
    let driver = smol::spawn(driver);
    assert_eq!(client.connect().await.unwrap().revision(), revision);

    let mut names = HashSet::new();
    let mut pages = client.pages(Request::list_tools());
    let mut count = 0;
    while let Some(page) = pages.next().await {
        let page = page.unwrap();
        names.extend(page.view::<ListToolsResult<'_>>().unwrap().iter().map(|tool| tool.unwrap().name().to_string()));
        count += 1;
    }
    assert!(count > 1 && names.contains("kill_hint"), "{count} pages: {names:?}");

    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let client = client.clone();
            smol::spawn(async move {
                let tool = ["memory", "load", "uptime"][number % 3];
                client.request(Request::call(tool)).await.map(|answer| answer.as_str().contains("content"))
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap());
    }

    let mut changes = client.listen(&SubscriptionFilter::new().uris(&["sys://load", "sys://memory"])).unwrap();
    assert!(matches!(changes.next().await, Some(Ok(SubscriptionEvent::Listening(listening))) if listening.uris == 2));
    client.request(Request::read("sys://memory")).await.unwrap();
    assert!(matches!(changes.next().await, Some(Ok(SubscriptionEvent::Resource(uri))) if uri.starts_with("sys://")));
    drop(changes);

    if revision >= Revision::V2025_06_18 {
        let pid = serde_json::json!({ "pid": std::process::id() });
        let hint = smol::spawn(client.request(Request::call("kill_hint").arguments(&pid)));
        let question = loop {
            if let OwnedEvent::Asked(question) = told.next().await.unwrap() {
                break question;
            }
        };
        assert!(question.params().get("requestedSchema").is_some());
        client.reply(question.id, &ClientResult::accept(Raw::constant(r#"{"goal":"pause"}"#))).unwrap();
        let answer = hint.await.unwrap();
        assert!(answer.as_str().contains("kill -STOP"), "{answer:?}");
    }
    let ended = client.close().await;
    driver.await;
    ended
}

#[test]
fn sysmon_over_stdio() {
    let tours = Revision::ALL.map(|revision| {
        let mut command = Command::new(programs::example("sysmon"));
        command.args(["--page-size", "2"]);
        let child = Child::spawn(command, info(revision)).unwrap();
        smol::spawn(bounded(tour(child, revision)))
    });
    for tour in tours {
        let ended = smol::block_on(tour).unwrap();
        assert_eq!((ended.after, ended.status.unwrap().success()), (StopSignal::StdinClosed, true));
    }
}

#[test]
fn sysmon_over_http() {
    let mut command = Command::new(programs::example("sysmon"));
    command.args(["--page-size", "2", "--http", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut server = KilledAtEnd(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = &line[line.find("http://").unwrap()..];
    let tours = Revision::ALL.map(|revision| {
        let http = Http::new(url.trim(), info(revision)).unwrap();
        smol::spawn(bounded(tour(http, revision)))
    });
    for tour in tours {
        assert_eq!(smol::block_on(tour), None);
    }
}

struct KilledAtEnd(std::process::Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn calc_adds_for_many() {
    let child = Child::spawn(Command::new(programs::example("calc")), info(Revision::V2026_07_28)).unwrap();
    let (client, driver) = Client::new(child, mcp_sansio_smol::client::Ignore);
    smol::block_on(bounded(async {
        smol::spawn(driver).detach();
        client.connect().await.unwrap();
        let tasks: Vec<_> = (0..1_000)
            .map(|number: u64| {
                let client = client.clone();
                smol::spawn(async move {
                    let numbers = serde_json::json!({ "a": number, "b": 1 });
                    let answer = client.request(Request::call("add").arguments(&numbers)).await.unwrap();
                    assert!(answer.as_str().contains(&format!("\"{}\"", number + 1)), "{answer:?}");
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        client.close().await;
    }));
}
