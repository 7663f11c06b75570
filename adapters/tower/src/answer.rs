//! Answers of requests that were put off.

use mcp_sansio::server::{RequestToken, RespondError, RpcError};
use mcp_sansio::service::{Call, Complete, CustomRequest, GetPrompt, HandlerResult, ReadResource};
use mcp_sansio_http::endpoint::{App, Endpoint};

/// The function that answers a request that was put off.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
pub(crate) enum Answer<S> {
    Call(Box<dyn FnOnce(&mut S, &mut Call<'_>) -> HandlerResult + Send>),
    Read(String, Box<dyn FnOnce(&mut S, &mut ReadResource<'_>) -> HandlerResult + Send>),
    Prompt(Box<dyn FnOnce(&mut S, &mut GetPrompt<'_>) -> HandlerResult + Send>),
    Complete(String, Box<dyn FnOnce(&mut S, &mut Complete<'_>) -> HandlerResult + Send>),
    Other(Box<dyn FnOnce(&mut S, &mut CustomRequest<'_>) -> HandlerResult + Send>),
    Resume(Box<dyn FnOnce(&mut S) + Send>),
}

/// The error for a request that was answered as a request of another kind: its client must not wait for ever.
const WRONG_KIND: RpcError<'static> = RpcError::internal("The handler's answer is of another kind than the request");

/// An answer that waits for room on the stream of its request.
pub(crate) struct Late<S> {
    pub(crate) token: RequestToken,
    pub(crate) answer: Answer<S>,
}

impl<S> Late<S> {
    /// Answers the request if its stream has room for half of its capacity; otherwise returns the answer. A client that does
    /// not read delays only its own answers.
    pub(crate) fn tell(self, endpoint: &mut Endpoint<'static>, app: &mut App<'_, S>) -> Option<Self> {
        let Late { token, answer } = self;
        if endpoint.with_stream_of(token, |_, out| out.room() < out.capacity() / 2) == Some(true) {
            return Some(Late { token, answer });
        }
        let answered = match answer {
            Answer::Call(answer) => endpoint.answer(app, token, answer),
            Answer::Read(uri, answer) => endpoint.answer_read(app, token, &uri, answer),
            Answer::Prompt(answer) => endpoint.answer_prompt(app, token, answer),
            Answer::Complete(value, answer) => endpoint.answer_complete(app, token, &value, answer),
            Answer::Other(answer) => endpoint.answer_other(app, token, answer),
            // The handler runs at once, so the state must be prepared before.
            Answer::Resume(prepare) if endpoint.is_suspended(token) => {
                prepare(app.state);
                endpoint.resume(app, token)
            }
            Answer::Resume(_) => Err(RespondError::WrongKind),
        };
        let failure = match answered {
            Ok(()) | Err(RespondError::Stale) => return None,
            Err(RespondError::WrongKind) => WRONG_KIND,
            Err(_) => RpcError::internal("The answer is too large"),
        };
        // The request may be over already; then there is nothing to fail.
        let _ = endpoint.with_stream_of(token, |server, out| server.fail(token, &failure, out));
        None
    }
}
