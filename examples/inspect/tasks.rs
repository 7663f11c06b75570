//! Tasks: follows the one that a call has become, and the commands for tasks whose ids are known.

use mcp_sansio::client::views::{CallToolResult, View, ViewError};
use mcp_sansio::client::{ErrorObject, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{Method, ServerCapability};
use mcp_sansio::revision::Revision;
use mcp_sansio_blocking::client::{OwnedResult, ServerHello};
use mcp_sansio_extensions::tasks::TaskStatus;
use mcp_sansio_extensions::tasks::client::{DetailedTask, FollowLimits, TaskEnd, TaskFollower, TaskHandle};

use crate::commands::{Done, Run, Trouble};
use crate::json::{array, compact, quote};
use crate::page::{Page, Spans, Style};
use crate::show;
use crate::text::one_line;

/// The action of `inspect tasks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    Follow,
    Cancel,
}

impl Action {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "get" => Some(Action::Get),
            "follow" => Some(Action::Follow),
            "cancel" => Some(Action::Cancel),
            _ => None,
        }
    }
}

impl Run<'_, '_> {
    /// Returns the result of a call. If the call became a task, follows that first.
    pub(crate) fn finished(&mut self, answer: OwnedResult) -> Result<OwnedResult, Trouble> {
        let Some(handle) = TaskHandle::of(answer.raw())? else { return Ok(answer) };
        let words = format!("The server answers later: task {}", one_line(&handle.id));
        self.around.live.borrow_mut().note(Style::Dim, &words);
        self.follow(|limits| TaskFollower::new(handle, limits))
    }

    /// Returns whether a tool can be called as a task only: `execution.taskSupport` is `required` (2025-11-25).
    pub(crate) fn needs_task(&mut self, name: &str) -> Result<bool, Trouble> {
        let hello = self.session.client().server();
        let takes_tasks = |hello: &ServerHello| {
            let requests = hello.capabilities().and_then(|all| all.get("tasks")?.get("requests"));
            hello.revision() == Revision::V2025_11_25
                && requests.and_then(|requests| requests.get("tools")?.get("call")).is_some()
        };
        if !hello.is_some_and(takes_tasks) {
            return Ok(false);
        }
        let pages = self.list("tools", ServerCapability::Tools)?;
        let is_meant =
            |tool: &Raw<'_>| tool.get("name").and_then(|found| found.text()).is_some_and(|found| found.eq_str(name));
        let tool =
            pages.iter().filter_map(|page| page.raw().get("tools")).flat_map(|tools| tools.items()).find(is_meant);
        let support = tool.and_then(|tool| tool.get("execution")?.get("taskSupport")?.text());
        Ok(support.is_some_and(|support| support.eq_str("required")))
    }

    fn follow(&mut self, begin: impl FnOnce(FollowLimits) -> TaskFollower) -> Result<OwnedResult, Trouble> {
        let mut limits = FollowLimits::DEFAULT;
        if let Some(time) = self.options.timeout {
            limits = limits.total_timeout(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        }
        match self.session.follow(begin(limits))? {
            (TaskEnd::Completed(result), _) => Ok(OwnedResult::new(Method::ToolsCall, result.raw())),
            (end, interrupted) => Err(Trouble::Task { end, interrupted }),
        }
    }

    /// Lists the tasks of the server, which is possible in 2025-11-25 only.
    pub(crate) fn list_tasks(&mut self) -> Done {
        let hello = self.session.client().server();
        if hello.is_none_or(|hello| hello.revision().is_modern()) {
            let words =
                "a server of this revision has no list of tasks; give the id of one, as in inspect tasks get ID";
            return Err(Trouble::Usage(words.into()));
        }
        let may_list = hello.and_then(|hello| hello.capabilities()?.get("tasks")?.get("list")).is_some();
        let pages = if may_list { self.session.list(Request::raw("tasks/list", None))? } else { Vec::new() };
        let tasks = pages.iter().filter_map(|page| page.raw().get("tasks")).flat_map(|tasks| tasks.items());
        self.show_tasks(&tasks.collect::<Vec<_>>())
    }

    /// Shows tasks, cancels them, or follows one to its result.
    pub(crate) fn tasks(&mut self, action: Action, ids: &[String]) -> Done {
        if let (Action::Follow, [id]) = (action, ids) {
            let revision = self.session.client().engine().revision().unwrap_or(Revision::LATEST);
            let answer = self.follow(|limits| TaskFollower::resume(TaskHandle::new(id.as_str(), revision), limits))?;
            return self.show_call(&answer);
        }
        let mut answers = Vec::new();
        for id in ids {
            let params = format!("{{\"taskId\":{}}}", quote(id));
            let params = Raw::parse(params.as_bytes()).map_err(|fault| Trouble::Usage(fault.to_string()))?;
            if action == Action::Cancel {
                let answer = self.session.request(&Request::raw("tasks/cancel", Some(params)))?;
                // In 2025-11-25 it is the task, which the server need not keep.
                if DetailedTask::of(answer.raw()).is_ok() {
                    answers.push(answer);
                    continue;
                }
            }
            answers.push(self.session.request(&Request::raw("tasks/get", Some(params)))?);
        }
        self.show_tasks(&answers.iter().map(OwnedResult::raw).collect::<Vec<_>>())
    }

    fn show_tasks(&self, tasks: &[Raw<'_>]) -> Done {
        if self.options.json {
            let tasks: Vec<String> = tasks.iter().map(|task| compact(*task)).collect();
            return self.print_json(&format!("{{\"tasks\":{}}}", array(&tasks)));
        }
        let mut page = self.page();
        for task in tasks {
            page.gap();
            show_task(&mut page, DetailedTask::of(*task)?)?;
        }
        self.nothing_if_empty(page, tasks.is_empty(), "tasks")
    }
}

fn show_task(page: &mut Page, task: DetailedTask<'_>) -> Result<(), ViewError> {
    let style = match task.status {
        TaskStatus::Working => Style::Plain,
        TaskStatus::InputRequired => Style::Warn,
        TaskStatus::Completed => Style::Good,
        TaskStatus::Failed | TaskStatus::Cancelled => Style::Bad,
    };
    page.spans(0, &Spans::of(Style::Name, one_line(task.id)).and(style, format_args!("  {}", task.status.name())));
    if let Some(message) = task.status_message() {
        page.say(2, Style::Plain, one_line(message));
    }
    for (words, time) in [("created", task.created_at()), ("updated", task.last_updated_at())] {
        time.into_iter().for_each(|time| page.say(2, Style::Dim, format_args!("{words} {}", one_line(time))));
    }
    for (words, time) in [("is kept for", task.ttl()), ("poll every", task.poll_interval())] {
        time.into_iter().for_each(|time| page.say(2, Style::Dim, format_args!("{words} {} s", time as f64 / 1e3)));
    }
    for (key, request) in task.input_requests().iter().flat_map(Raw::members) {
        let message = request.get("params").and_then(|params| params.get("message")?.text());
        let message = message.map_or_else(String::new, |message| format!(": {}", one_line(message)));
        page.say(2, Style::Warn, format_args!("asks {}{message}", one_line(key)));
    }
    if let Some(result) = task.result() {
        show::call(page, CallToolResult::of(result)?);
    }
    if let Some(error) = task.error() {
        page.say(2, Style::Bad, ErrorObject::read(error));
    }
    Ok(())
}
