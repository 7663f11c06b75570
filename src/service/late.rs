//! Late answers: a request that was put off is answered by its token.

use core::marker::PhantomData;
use core::ops::DerefMut;

use super::Service;
use super::contain::run_handler;
use super::context::{HandlerFailure, HandlerResult, RequestContext};
use super::requests::{Call, Complete, CustomRequest, GetPrompt, ReadResource};
use super::router::Dispatched;
use crate::json::Text;
use crate::protocol::Method;
use crate::server::{RequestToken, RespondError, Server};
use crate::sink::Out;

/// A request that was put off, for [`Service::answer`] and the methods of the same name of connections and adapters.
///
/// The [`RequestToken`] itself stands for a `tools/call`. Other requests are made from their token by
/// [`as_read`](RequestToken::as_read), [`as_prompt`](RequestToken::as_prompt),
/// [`as_completion`](RequestToken::as_completion) and [`as_custom`](RequestToken::as_custom).
///
/// ```
/// use mcp_sansio::line_server::LineServer;
/// use mcp_sansio::server::{RequestToken, RespondError};
/// use mcp_sansio::service::Service;
/// use mcp_sansio::sink::Out;
///
/// /// Answers a tool and a resource that have waited for the same forecast.
/// fn forecast<O: Out>(
///     service: &Service<'_, u32>,
///     forecasts: &mut u32,
///     session: &mut LineServer<'_, O>,
///     (called, read): (RequestToken, RequestToken),
/// ) -> Result<(), RespondError> {
///     session.answer(service, forecasts, called, |forecasts, call| {
///         *forecasts += 1;
///         call.text("sunny")
///     })?;
///     session.answer(service, forecasts, read.as_read("weather://tomorrow"), |_, read| read.text("sunny"))
/// }
/// ```
pub trait LateRequest: sealed::Sealed {
    /// The context of the answer. It has no arguments, and cannot [`ask`](RequestContext::ask).
    type Context<'h>: DerefMut<Target = RequestContext<'h>>;

    /// The method of the request.
    const METHOD: Method;

    /// Returns the token of the request.
    fn token(&self) -> RequestToken;

    /// Returns the URI or the value that the context of the answer has.
    #[doc(hidden)]
    fn about(&self) -> &str {
        ""
    }

    #[doc(hidden)]
    fn context<'h, S>(service: &Service<'_, S>, handling: RequestContext<'h>, about: &'h str) -> Self::Context<'h>;
}

mod sealed {
    pub trait Sealed {}
}

/// A request other than a `tools/call` that was put off: a [`LateRequest`]. `C` is the context of its answer.
#[derive(Debug)]
pub struct Late<C, T> {
    token: RequestToken,
    about: T,
    context: PhantomData<fn() -> C>,
}

impl RequestToken {
    /// Answers a `resources/read`. `uri` is the one in [`ReadResource::uri`].
    pub const fn as_read<T: AsRef<str>>(&self, uri: T) -> Late<ReadResource<'static>, T> {
        Late { token: *self, about: uri, context: PhantomData }
    }

    /// Answers a `prompts/get`.
    pub const fn as_prompt(&self) -> Late<GetPrompt<'static>, &'static str> {
        Late { token: *self, about: "", context: PhantomData }
    }

    /// Answers a `completion/complete`. `value` is the one in [`Complete::value`], for [`Complete::matching`].
    pub const fn as_completion<T: AsRef<str>>(&self, value: T) -> Late<Complete<'static>, T> {
        Late { token: *self, about: value, context: PhantomData }
    }

    /// Answers a request with a method of your own.
    pub const fn as_custom(&self) -> Late<CustomRequest<'static>, &'static str> {
        Late { token: *self, about: "", context: PhantomData }
    }
}

impl sealed::Sealed for RequestToken {}

impl LateRequest for RequestToken {
    type Context<'h> = Call<'h>;
    const METHOD: Method = Method::ToolsCall;

    fn token(&self) -> RequestToken {
        *self
    }

    fn context<'h, S>(_: &Service<'_, S>, handling: RequestContext<'h>, _: &'h str) -> Call<'h> {
        Call { handling }
    }
}

impl<C, T> sealed::Sealed for Late<C, T> {}

macro_rules! late {
    ($method:ident => $context:ident, |$service:pat_param, $handling:ident, $about:pat_param| $make:expr) => {
        impl<T: AsRef<str>> LateRequest for Late<$context<'static>, T> {
            type Context<'h> = $context<'h>;
            const METHOD: Method = Method::$method;

            fn token(&self) -> RequestToken {
                self.token
            }

            fn about(&self) -> &str {
                self.about.as_ref()
            }

            fn context<'h, S>(
                $service: &Service<'_, S>,
                $handling: RequestContext<'h>,
                $about: &'h str,
            ) -> $context<'h> {
                $make
            }
        }
    };
}
late!(ResourcesRead => ReadResource, |service, handling, uri| {
    let index = usize::from(handling.slot.handler);
    service.reading(handling, index, uri)
});
late!(PromptsGet => GetPrompt, |service, handling, _| {
    let prompt = service.prompts.get(usize::from(handling.slot.handler));
    GetPrompt { handling, description: prompt.map_or("", |prompt| prompt.info.description) }
});
late!(Complete => Complete, |_, handling, value| {
    Complete { handling, argument: Text::from_raw(b""), value, context: None }
});
late!(Other => CustomRequest, |_, handling, _| CustomRequest::new(handling, Text::from_raw(b"")));

impl<S> Service<'_, S> {
    /// Answers a request that was put off: a `tools/call` by its token, others by [`RequestToken::as_read`] and its like.
    /// `answer` gets a context without arguments, which cannot ask: see [`suspend`](RequestContext::suspend). If the answer
    /// does not fit, the request stays open, and can be answered again.
    ///
    /// # Errors
    /// [`RespondError::Stale`] if the request was answered or cancelled; [`RespondError::WrongKind`] if its method is
    /// another one: then `answer` has not run; the others if the answer does not fit.
    pub fn answer<R: LateRequest>(
        &self,
        state: &mut S,
        request: R,
        server: &mut Server<'_>,
        out: &mut dyn Out,
        answer: impl FnOnce(&mut S, &mut R::Context<'_>) -> HandlerResult,
    ) -> Result<Dispatched, RespondError> {
        let Some(watch) = self.hooks.and_then(|hooks| hooks.watch) else {
            return self.answer_now(state, request, server, out, answer);
        };
        let (token, mut given, mut done) = (request.token(), Some((request, answer)), Err(RespondError::Stale));
        watch(self, state, token, server, out, &mut |state, server, out| {
            if let Some((request, answer)) = given.take() {
                done = self.answer_now(state, request, server, out, answer);
            }
        });
        done
    }

    fn answer_now<R: LateRequest>(
        &self,
        state: &mut S,
        request: R,
        server: &mut Server<'_>,
        out: &mut dyn Out,
        answer: impl FnOnce(&mut S, &mut R::Context<'_>) -> HandlerResult,
    ) -> Result<Dispatched, RespondError> {
        let token = request.token();
        let slot = server.slot(token).filter(|slot| slot.is_open()).ok_or(RespondError::Stale)?;
        if slot.method != R::METHOD {
            return Err(RespondError::WrongKind);
        }
        if out.held() {
            return Err(RespondError::FullNow);
        }
        #[cfg(feature = "windows")]
        let sourced = self.source(slot.method, usize::from(slot.handler)).is_some();
        let empty = out.mark().at() == 0;
        let Some((handling, _)) = self.context(server, token, 0, &mut *out) else {
            return Err(RespondError::Stale);
        };
        #[cfg(feature = "windows")]
        let handling = RequestContext { sourced, ..handling };
        let handling = RequestContext { result_meta: self.layers_meta(), ..handling };
        let ran = run_handler!(self, out, handling, {
            let mut context = R::context(self, handling, request.about());
            let outcome = answer(state, &mut context);
            context.ran(outcome)
        });
        match ran.outcome {
            Err(HandlerFailure::TooLarge) => Err(if empty { RespondError::FullNever } else { RespondError::FullNow }),
            _ => self.settle(state, token, ran, server, out).map_err(RespondError::from),
        }
    }
}
