//! Forms of elicitation as types.

use super::Argument;
use super::reader::WRONG;
use crate::json::Raw;
use crate::service::context::{HandlerError, RequestContext};
use crate::service::input_request::InputRequest;

/// A form for the user ([elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation)) and its
/// answer as a type. `#[derive(Form)]` implements it for structs with named fields: texts, numbers, booleans, enums of unit
/// variants, and `Vec` or `heapless::Vec` of such enums (clients from 2025-11-25 on).
///
/// The attributes of a field are those of [`Arguments`](super::Arguments) without `pattern`, `check` and `header`, as
/// `#[form(..)]`; `title` is its label, `default` what the form shows at first, and the value of a member that the client
/// leaves out. Take [`Text`](crate::json::Text) or an owned text rather than `&str`: the scratch has room for the escapes of
/// the arguments alone.
///
/// ```
/// use mcp_sansio::service::{Call, Form, HandlerResult, tool};
///
/// #[derive(Form)]
/// struct Confirm {
///     #[form(title = "Sure?")]
///     sure: bool,
///     /// How many backups to keep
///     #[form(default = 2, maximum = 9)]
///     backups: u8,
/// }
///
/// /// Sets the counter to 0, if the user agrees
/// #[tool(destructive)]
/// fn reset(count: &mut u64, call: &mut Call<'_>) -> HandlerResult {
///     // The handler runs twice: the first run asks, and ends at the `?`.
///     match call.form("confirm", "Set the counter to 0?")? {
///         Some(Confirm { sure: true, backups }) => {
///             *count = 0;
///             call.text(&["The counter is 0, backups: ".into(), i64::from(backups).into()])
///         }
///         _ => call.text("The counter stays"),
///     }
/// }
/// # let _ = RESET;
/// ```
#[diagnostic::on_unimplemented(message = "`{Self}` is no form", label = "derive `Form` for this struct")]
pub trait Form<'a>: Argument<'a> {
    /// The `requestedSchema`, for [`InputRequest::elicit`].
    const FORM: Raw<'static>;
}

impl<'a> RequestContext<'a> {
    /// Asks the user with a form, and returns the answer in the second run of the handler: `None` if the user declined or
    /// closed the form, or there was no answer. As [`ask`](RequestContext::ask), without state; `key` names the question.
    ///
    /// # Errors
    /// Return it with `?`. In the first run the question is asked then, or the client cannot be asked, as with
    /// [`ask`](RequestContext::ask). In the second run the client's answer does not fit the form.
    pub fn form<T: Form<'a>>(&mut self, key: &str, message: &str) -> Result<Option<T>, HandlerError> {
        let Some(answer) = self.answer(key) else {
            // The question that is asked counts, not the error that is returned.
            return Err(self.ask(&[InputRequest::elicit(key, message, T::FORM)], b"").err().unwrap_or(WRONG));
        };
        if !answer.accepted() {
            return Ok(None);
        }
        // A client may leave out the content of a form whose fields are all optional.
        let content = answer.content().unwrap_or(Raw::constant("{}"));
        self.read_value(content, "Invalid answer of the client: ").map(Some)
    }
}
