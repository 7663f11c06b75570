//! Panics of handlers, contained by a function of the host: the core itself cannot catch them.

use super::Service;
#[cfg(feature = "alloc")]
use super::context::{HandlerFailure, HandlerRun};
use crate::server::{RpcError, words};
#[cfg(feature = "alloc")]
use crate::sink::{Mark, Out};

/// Runs a function, and returns whether it came to its end: `false` if it panicked.
pub type CatchPanic = fn(&mut dyn FnMut()) -> bool;

/// The answer of a handler that has panicked.
pub(super) const PANICKED: RpcError<'static> = RpcError::internal(words("The handler has panicked"));

impl<S> Service<'_, S> {
    /// Runs a function of the program. Returns `None` if it panicked and panics are contained.
    #[inline(always)]
    pub(crate) fn guard<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        #[cfg(feature = "alloc")]
        if let Some(catch) = self.routes.catch {
            let (mut run, mut done) = (Some(run), None);
            catch(&mut || done = run.take().map(|run| run()));
            return done;
        }
        Some(run())
    }
}

#[cfg(feature = "alloc")]
impl<S> Service<'_, S> {
    /// Contains panics: the request of a handler that panics is answered with error -32603, and the server goes on. Without
    /// it a panic ends the loop of the server, and with it all its clients. Default: not contained.
    ///
    /// All that the handler has written is taken back; changes that it has published are not. The state is as the handler has
    /// left it, perhaps half changed: see that it is sound at each place that may panic. A `Mutex` that was locked is
    /// poisoned. The message of the panic goes to standard error, as always. A program with `panic = "abort"` ends all the
    /// same. Over stdio, progress stays written, and a message above 64 KiB whose text panics leaves a broken line, which clients
    /// skip.
    ///
    /// It catches panics of handlers of requests, also when they run again and when they answer late; of lists, and of the search in
    /// those that come from the state; of sources, whose content breaks off there; of [`on_cancel`](Service::on_cancel) and
    /// [`on_notification`](Service::on_notification). It does not catch those of a list that is sent in windows, after its first
    /// one, nor those in notifications of extensions.
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
        self.with_hooks()
    }

    /// Runs a function of the program beside the handlers, such as the preparation of one that runs again. Returns whether it came
    /// to its end: `false` if it panicked and panics are [contained](Service::contain_panics).
    pub fn contained(&self, run: &mut dyn FnMut()) -> bool {
        self.guard(run).is_some()
    }

    /// Runs a handler that may panic. Then it returns `mark`, where the handler began to write.
    #[inline(never)]
    pub(crate) fn run_guarded<C>(
        &self,
        mark: Mark,
        context: C,
        run: impl FnOnce(C) -> HandlerRun,
    ) -> Result<HandlerRun, Mark> {
        self.guard(|| run(context)).ok_or(mark)
    }
}

/// Runs the handler of a request, whose context is `$context`, by the expression `$run`.
// A macro, and no function: that would copy what a handler returns, 140 bytes of flash (uart-tools).
macro_rules! run_handler {
    ($service:ident, $out:ident, $context:ident, $run:expr) => {
        match () {
            #[cfg(feature = "alloc")]
            () if $service.routes.catch.is_some() => $service
                .run_guarded($context.out.mark(), $context, |$context| $run)
                .unwrap_or_else(|mark| $crate::service::context::HandlerRun::panicked($out, mark)),
            () => $run,
        }
    };
}
pub(crate) use run_handler;

#[cfg(feature = "alloc")]
impl HandlerRun {
    /// Takes back what a handler has written that has panicked. Its request is answered with an error.
    #[cold]
    pub(crate) fn panicked(out: &mut dyn Out, mark: Mark) -> HandlerRun {
        out.roll_back(mark);
        HandlerRun { outcome: Err(HandlerFailure::Fail(PANICKED)), drafted: 0 }
    }
}
