//! Panics of handlers, contained by a function of the host: the core itself cannot catch them.

use super::Service;
use super::context::HandlerRun;
use super::context::{AskVia, RequestContext};
use super::linked::{CatchPanic, HandlerInput, Route, Target};
use super::requests::Call;
use crate::server::RpcError;
use crate::sink::Mark;

/// The answer of a handler that has panicked.
pub(super) const PANICKED: RpcError<'static> = RpcError::internal("The handler has panicked");

/// Runs a handler with a copy of its context: `$run` is an expression with the context `$inner`.
macro_rules! contained {
    ($catch:expr, $context:ident, |$inner:ident| $run:expr) => {{
        let mark = $context.out.mark();
        let (mut inner, mut ran) = (Some($context.reborrow()), None);
        ($catch)(&mut || ran = inner.take().map(|$inner| $run));
        match ran {
            Some(ran) => ran,
            None => $context.panicked(mark),
        }
    }};
}
pub(crate) use contained;

impl<S> Service<'_, S> {
    /// Contains panics: the request of a handler that panics is answered with error -32603, and the server goes on. Without
    /// it a panic ends the loop of the server, and with it all its clients. Default: not contained.
    ///
    /// All that the handler has written is taken back; changes that it has published are not. The state is as the handler has
    /// left it, perhaps half changed: see that it is sound at each place that may panic. A `Mutex` that was locked is
    /// poisoned. The message of the panic goes to standard error, as always. A program with `panic = "abort"` ends all the
    /// same.
    ///
    /// It catches panics of handlers of requests, also when they run again and when they answer late; of lists, and of the search in
    /// those that come from the state; of sources, whose content breaks off there; of [`on_cancel`](Service::on_cancel) and
    /// [`on_notification`](Service::on_notification). It does not catch those of a list that is sent in windows, after its first one.
    ///
    /// ```
    /// use std::panic::{AssertUnwindSafe, catch_unwind};
    /// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
    ///
    /// fn first(list: &mut Vec<u8>, call: &mut Call<'_>) -> HandlerResult {
    ///     call.text(list[0]) // panics if the list is empty
    /// }
    /// static TOOLS: [Tool<Vec<u8>>; 1] = [Tool::new("first", "Returns the first number", first)];
    /// let service = Service::new("numbers", "1.0")
    ///     .tools(&TOOLS)
    ///     .contain_panics(|run| catch_unwind(AssertUnwindSafe(run)).is_ok());
    /// # let _ = service;
    /// ```
    pub const fn contain_panics(mut self, catch: CatchPanic) -> Self {
        self.routes.catch = Some(catch);
        self
    }

    /// Runs a function of the program beside the handlers, such as the preparation of one that runs again. Returns whether it came
    /// to its end: `false` if it panicked and panics are [contained](Service::contain_panics).
    pub fn contained(&self, run: &mut dyn FnMut()) -> bool {
        self.run_contained(run)
    }

    /// Runs the handler of a request, and contains its panic. Apart from those that are not contained: there the context
    /// would be a copy.
    #[inline(never)]
    pub(crate) fn run_handler<'a>(
        &'a self,
        route: &Route<S>,
        state: &mut S,
        target: &Target<S>,
        input: &HandlerInput<'a>,
        Call { mut handling }: Call<'a>,
    ) -> HandlerRun {
        match self.routes.catch {
            Some(catch) => {
                contained!(catch, handling, |handling| { (route.call)(self, state, target, input, Call { handling }) })
            }
            None => (route.call)(self, state, target, input, Call { handling }),
        }
    }
}

impl RequestContext<'_> {
    /// Returns a context of the same request, for a handler that may not come back.
    pub(crate) fn reborrow(&mut self) -> RequestContext<'_> {
        RequestContext {
            about: self.about,
            out: &mut *self.out,
            slot: &mut *self.slot,
            token: self.token,
            server: self.server,
            params: self.params,
            members: self.members,
            state: self.state,
            scratch: &mut *self.scratch,
            sealing: &mut *self.sealing,
            ask: match &mut self.ask {
                AskVia::Travels { responses, keep, again } => {
                    AskVia::Travels { responses: *responses, keep: &mut **keep, again: *again }
                }
                AskVia::Stays { live, keep, has_slot, next_id } => {
                    AskVia::Stays { live: live.clone(), keep: &mut **keep, has_slot: *has_slot, next_id: *next_id }
                }
                AskVia::Closed => AskVia::Closed,
            },
            seal: self.seal,
            principal: self.principal,
            session_level: self.session_level,
            now: self.now,
            ask_timeout: self.ask_timeout,
            reserve: self.reserve,
            result_meta: self.result_meta,
            #[cfg(feature = "windows")]
            sourced: self.sourced,
            #[cfg(feature = "windows")]
            crowded: self.crowded,
            published: self.published.as_deref_mut(),
            settled: self.settled,
        }
    }

    /// Answers for a handler that has panicked; `mark` is the place where it began to write.
    pub(crate) fn panicked(&mut self, mark: Mark) -> HandlerRun {
        self.out.roll_back(mark);
        let outcome = self.fail(&PANICKED);
        self.ran(outcome)
    }
}
