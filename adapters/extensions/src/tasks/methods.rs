//! The methods and the topic of the extension.

use core::marker::PhantomData;

use mcp_sansio::json::JsonKind;
use mcp_sansio::server::RpcError;
use mcp_sansio::service::{CustomRequest, Extension, ExtensionMethod, HandlerResult, Topic};

use crate::tasks::legacy;
use crate::tasks::machine::Wanted;
use crate::tasks::place::find;
use crate::tasks::store::{HasTasks, ID, TaskError};

/// Returns the extension: `tasks/get`, `tasks/update`, `tasks/cancel`, and `notifications/tasks` for listens with `taskIds`. With
/// [`LEGACY`](HasTasks::LEGACY) also, in 2025-11-25, `tasks/get`, `tasks/result`, `tasks/list`, `tasks/cancel`, and the
/// capability `tasks`.
pub const fn extension<S: HasTasks>() -> Extension<S> {
    Tables::<S>::EXTENSION
}

/// The constant tables, one set for each type of state.
struct Tables<S>(PhantomData<S>);

impl<S: HasTasks> Tables<S> {
    // The handler runs once: the reply must fit into the empty sink.
    const GET: ExtensionMethod<S> = ExtensionMethod::new("tasks/get", get).target("taskId").reserve(usize::MAX);
    const UPDATE: ExtensionMethod<S> = ExtensionMethod::new("tasks/update", update).target("taskId");
    const CANCEL: ExtensionMethod<S> = ExtensionMethod::new("tasks/cancel", cancel).target("taskId");

    const METHODS: &'static [ExtensionMethod<S>] = &[Self::GET, Self::UPDATE, Self::CANCEL];

    const METHODS_OF_BOTH_ERAS: &'static [ExtensionMethod<S>] = &[
        Self::GET.revisions(legacy::AND_LATER),
        Self::UPDATE,
        Self::CANCEL.revisions(legacy::AND_LATER).reserve(usize::MAX),
        ExtensionMethod::new("tasks/result", legacy::result).revisions(legacy::ALONE).reserve(usize::MAX),
        ExtensionMethod::new("tasks/list", legacy::list).revisions(legacy::ALONE).reserve(usize::MAX),
    ];

    const TOPIC: Topic<S> = Topic::new("taskIds", "notifications/tasks", |state: &S, id, params| {
        let tasks = state.tasks();
        // A task that was forgotten has no state to write.
        match tasks.find(id) {
            Some(token) => tasks.write_detailed(token, params),
            None => params.fail(),
        }
    })
    .agrees(|state, id, user| {
        let tasks = state.tasks();
        tasks.find(id).is_some_and(|token| !tasks.is_legacy(token) && tasks.belongs_to(token, user))
    });

    const EXTENSION: Extension<S> = match S::LEGACY {
        false => Extension::new(ID).methods(Self::METHODS).topics(&[Self::TOPIC]),
        true => Extension::new(ID)
            .methods(Self::METHODS_OF_BOTH_ERAS)
            .topics(&[Self::TOPIC])
            .capabilities(legacy::write_capabilities)
            .check_calls(legacy::check_call),
    };
}

fn get<S: HasTasks>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let token = match find(state, request, Wanted::Task) {
        Ok(token) => token,
        Err(done) => return done,
    };
    let tasks = state.tasks();
    request.result_as("complete", &mut |result| match tasks.is_legacy(token) {
        true => tasks.write_task(token, result),
        false => tasks.write_detailed(token, result),
    })
}

fn update<S: HasTasks>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let token = match find(state, request, Wanted::Update) {
        Ok(token) => token,
        Err(done) => return done,
    };
    let responses = request.params().and_then(|params| params.get("inputResponses"));
    let Some(responses) = responses.filter(|responses| responses.kind() == JsonKind::Object) else {
        return Err(RpcError::invalid_params("Invalid params: inputResponses is not an object").into());
    };
    match state.tasks_mut().take_responses(token, responses, request.now()) {
        Err(TaskError::NoRoom) => Err(RpcError::internal("Overloaded: the answers are too large").into()),
        // Keys that no open question has are ignored, also those of a task that has ended.
        _ => request.result_as("complete", &mut |_| {}),
    }
}

fn cancel<S: HasTasks>(state: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let token = match find(state, request, Wanted::Cancel) {
        Ok(token) => token,
        Err(done) => return done,
    };
    // A task that has ended stays as it is.
    let cancelled = state.tasks_mut().cancel(token, request.now());
    if S::LEGACY && !request.revision().is_modern() {
        return legacy::cancelled(state.tasks(), token, cancelled, request);
    }
    request.result_as("complete", &mut |_| {})
}
