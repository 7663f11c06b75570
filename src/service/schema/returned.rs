//! The values that functions with `#[tool]`, `#[prompt]` and `#[resource]` return, in place of a `HandlerResult`.
//!
//! The macros do not know the types. So they write a method call, and the compiler takes the first of these that fits:
//! one of the type itself, then one of a trait, then one of a trait for a reference.

use core::fmt;

use super::Output;
use crate::content::AnswerText;
use crate::service::context::{HandlerError, HandlerResult, Receipt, RequestContext};
use crate::service::{Call, GetPrompt, ReadResource};

/// An error that a function may return: all that is `Display` is answered as by [`RequestContext::failed`], and a
/// [`HandlerError`] as it is, so that `?` goes with an [`RpcError`](crate::server::RpcError).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no error of a handler",
    label = "implement `core::fmt::Display` for this error: its text is the answer"
)]
pub trait ReturnedError {
    /// Answers.
    fn answer(self, context: &mut RequestContext<'_>) -> HandlerError;
}

impl<E: fmt::Display> ReturnedError for E {
    fn answer(self, context: &mut RequestContext<'_>) -> HandlerError {
        context.failed(format_args!("{self}"))
    }
}

impl ReturnedError for HandlerError {
    fn answer(self, _: &mut RequestContext<'_>) -> HandlerError {
        self
    }
}

/// The value that a function has returned, or a `Result` with one.
#[derive(Debug)]
pub struct Returned<T>(pub T);

impl<T, E> Returned<Result<T, E>> {
    /// Returns the value, or answers with the error.
    ///
    /// # Errors
    /// The function has failed, and the request is answered.
    pub fn value(self, context: &mut RequestContext<'_>) -> Result<T, HandlerError>
    where
        E: ReturnedError,
    {
        self.0.map_err(|error| error.answer(context))
    }
}

/// A value that is no `Result`.
pub trait PlainValue {
    /// The type of the value.
    type Value;

    /// Returns the value.
    ///
    /// # Errors
    /// None.
    fn value(self, context: &mut RequestContext<'_>) -> Result<Self::Value, HandlerError>;
}

impl<T> PlainValue for Returned<T> {
    type Value = T;

    fn value(self, _: &mut RequestContext<'_>) -> Result<T, HandlerError> {
        Ok(self.0)
    }
}

/// A value as an answer: a type that derives [`Output`] becomes structured content; an [`AnswerText`], or what is
/// `Display`, text; `()` a result of a tool without content.
#[derive(Debug)]
pub struct Answered<T>(pub T);

impl<T: Output> Answered<T> {
    /// Answers with structured content.
    ///
    /// # Errors
    /// As [`Call::output`].
    pub fn write(self, call: &mut Call<'_>) -> HandlerResult {
        call.output(&self.0)
    }
}

impl Answered<()> {
    /// Answers without content.
    ///
    /// # Errors
    /// As [`Call::content`].
    pub fn write(self, call: &mut Call<'_>) -> HandlerResult {
        call.content(&[])
    }
}

impl Answered<Receipt> {
    /// Returns the receipt: the function has answered.
    ///
    /// # Errors
    /// None.
    pub fn write<C>(self, _: &mut C) -> HandlerResult {
        Ok(self.0)
    }
}

/// A context that answers with text.
pub trait TextContext {
    /// Answers.
    ///
    /// # Errors
    /// As [`Call::text`].
    fn answer_text(&mut self, text: impl AnswerText) -> HandlerResult;
}

impl TextContext for Call<'_> {
    fn answer_text(&mut self, text: impl AnswerText) -> HandlerResult {
        self.text(text)
    }
}

impl TextContext for ReadResource<'_> {
    fn answer_text(&mut self, text: impl AnswerText) -> HandlerResult {
        self.text(text)
    }
}

impl TextContext for GetPrompt<'_> {
    fn answer_text(&mut self, text: impl AnswerText) -> HandlerResult {
        self.user(text)
    }
}

/// An answer with text that needs no formatting.
pub trait TextAnswer {
    /// Answers with text.
    ///
    /// # Errors
    /// As [`Call::text`].
    fn write(self, context: &mut impl TextContext) -> HandlerResult;
}

impl<T: AnswerText> TextAnswer for Answered<T> {
    fn write(self, context: &mut impl TextContext) -> HandlerResult {
        context.answer_text(self.0)
    }
}

/// An answer with text by `Display`.
pub trait DisplayAnswer {
    /// Answers with text.
    ///
    /// # Errors
    /// As [`Call::text`].
    fn write(&self, context: &mut impl TextContext) -> HandlerResult;
}

impl<T: fmt::Display> DisplayAnswer for Answered<T> {
    fn write(&self, context: &mut impl TextContext) -> HandlerResult {
        context.answer_text(format_args!("{}", self.0))
    }
}

/// The `outputSchema` of a type that a function returns.
#[derive(Debug)]
pub struct OutputOf<T>(core::marker::PhantomData<T>);

impl<T: Output> OutputOf<T> {
    /// The schema.
    pub const SCHEMA: Option<&'static str> = Some(T::OUTPUT_SCHEMA);
}

impl<T: Output, E> OutputOf<Result<T, E>> {
    /// The schema of the value.
    pub const SCHEMA: Option<&'static str> = Some(T::OUTPUT_SCHEMA);
}

/// A type without an `outputSchema`.
pub trait NoOutput {
    /// None.
    const SCHEMA: Option<&'static str> = None;
}

impl<T> NoOutput for OutputOf<T> {}
