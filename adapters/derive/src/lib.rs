//! The macros of `mcp-sansio`: types as schemas, and tables from functions. Use them through the feature `derive` of
//! `mcp-sansio`, whose module `service::schema` describes the traits behind them:
//!
//! ```toml
//! mcp-sansio = { version = "0.1", features = ["derive"] }
//! ```

mod attributes;
mod entry;
mod members;
mod types;

use proc_macro::TokenStream;

/// Implements `Arguments` and `Argument`: the `inputSchema` of a tool as a constant, and its reader.
///
/// For structs with named fields, enums of unit variants, and enums with `#[arguments(tag = "..")]`. The attributes are
/// described at the trait `mcp_sansio::service::Arguments`.
#[proc_macro_derive(Arguments, attributes(arguments))]
pub fn derive_arguments(input: TokenStream) -> TokenStream {
    expanded(types::expand(attributes::Role::Arguments, input.into()))
}

/// Implements `Form` and `Argument`: the schema of a form for the user as a constant, and its answer as the type.
///
/// For structs with named fields. The attributes are described at the trait `mcp_sansio::service::Form`.
#[proc_macro_derive(Form, attributes(form))]
pub fn derive_form(input: TokenStream) -> TokenStream {
    expanded(types::expand(attributes::Role::Form, input.into()))
}

/// Implements `Output` and `OutputValue`: the `outputSchema` of a tool as a constant, and its writer.
///
/// For structs with named fields, enums of unit variants, and enums with `#[output(tag = "..")]`. The attributes are
/// described at the trait `mcp_sansio::service::Output`.
#[proc_macro_derive(Output, attributes(output))]
pub fn derive_output(input: TokenStream) -> TokenStream {
    expanded(types::expand(attributes::Role::Output, input.into()))
}

/// Makes the entry of a table from a function: for `fn add` the constant `ADD`, a `Tool`.
///
/// ```text
/// /// Adds two integers
/// #[tool(title = "Addition", read_only)]
/// fn add(state: &mut State, call: &mut Call<'_>, Add { a, b }: Add) -> HandlerResult {
///     call.text(a + b)
/// }
/// static TOOLS: [Tool<State>; 1] = [ADD];
/// ```
///
/// The name is that of the function, and the description is its comment with `///`. A parameter behind the state and the call
/// has all arguments: a type that derives `Arguments`. Several parameters, or one that is a text, a number, a list, or has
/// `#[arguments(..)]` or a comment, are members of the arguments themselves, with the attributes of fields:
///
/// ```text
/// /// Adds two integers
/// #[tool]
/// fn add(state: &mut State, call: &mut Call<'_>, a: i64, #[arguments(default = 1)] b: i64) -> HandlerResult {
///     call.text(a + b)
/// }
/// ```
///
/// A function without such a parameter is a tool without arguments. The function stays as it is.
///
/// State and call may be left out, and the function may return a value in place of a `HandlerResult`: a text, what is
/// `Display`, a type that derives `Output`, `()`, or a `Result` of these with an error that is `Display`:
///
/// ```text
/// /// Divides two numbers
/// #[tool]
/// fn div(a: f64, b: f64) -> Result<f64, MathError> {
///     if b == 0.0 { Err(MathError::ByZero) } else { Ok(a / b) }
/// }
/// ```
///
/// The error is a result with `isError`, which the model reads; a `HandlerError` is answered as it is. A type that derives
/// `Output` becomes the `outputSchema` and structured content. Without a parameter for the state it is a `Tool<()>`, or what
/// `state` says.
///
/// | `#[tool(..)]` | |
/// |---|---|
/// | `name = ".."` | the name of the tool |
/// | `description = ".."` | the description, in place of the comment |
/// | `title = ".."` | a name for people |
/// | `output = Type` | the `outputSchema` of a type that derives `Output`, for a function that answers by itself |
/// | `state = Type` | the state of the service, for a function without a parameter for it |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | the annotations: alone for `true`, or `= false` |
/// | `reserve = 1024` | the room that is kept for the reply, in bytes |
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand_entry(entry::Entry::Tool, attribute, item)
}

/// Makes the entry of a table from a function: for `fn review` the constant `REVIEW`, a `Prompt`.
///
/// ```text
/// /// Reviews code
/// #[prompt(title = "Code review")]
/// fn review(
///     state: &mut State,
///     get: &mut GetPrompt<'_>,
///     /// The programming language
///     language: Text<'_>,
///     focus: Option<Text<'_>>,
/// ) -> HandlerResult {
///     get.user(..)
/// }
/// ```
///
/// As with [`macro@tool`], one parameter behind the context has all arguments, or several are the arguments. They are texts
/// or enums of unit variants: the protocol has no others. It may return text in place of a `HandlerResult`, which is a message
/// of the user; an error is one of JSON-RPC.
///
/// | `#[prompt(..)]` | |
/// |---|---|
/// | `name`, `description`, `title`, `reserve` | as with [`macro@tool`] |
/// | `complete = function` | the function that completes arguments |
/// | `state = Type` | as with [`macro@tool`] |
#[proc_macro_attribute]
pub fn prompt(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand_entry(entry::Entry::Prompt, attribute, item)
}

/// Makes the entry of a table from a function: for `fn city` the constant `CITY`, a `ResourceTemplate`, or a `Resource` if the
/// URI has no variables.
///
/// ```text
/// /// The weather of a day
/// #[resource("weather://{city}/{day}", mime = "text/plain")]
/// fn weather(state: &mut State, read: &mut ReadResource<'_>, city: &str, day: u8) -> HandlerResult {
///     read.text(..)
/// }
/// ```
///
/// The parameters behind the context are variables of the template: `&str`, as in the URI (`%20` stays `%20`), or integers. A
/// URI with another text in place of an integer has no resource: the answer is that of `read.not_found()`. A function may
/// return text in place of a `HandlerResult`; an error is one of JSON-RPC.
///
/// | `#[resource("..", ..)]` | |
/// |---|---|
/// | `name`, `description`, `title`, `reserve` | as with [`macro@tool`]; a description is not needed |
/// | `mime = ".."` | the `mimeType` |
/// | `complete = function` | the function that completes variables |
/// | `state = Type` | as with [`macro@tool`] |
#[proc_macro_attribute]
pub fn resource(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand_entry(entry::Entry::Resource, attribute, item)
}

fn expand_entry(entry: entry::Entry, attribute: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    let result = entry::expand(entry, attribute.into(), item.clone());
    // The function stays even if the attribute is wrong: so there is one error and not one for each use.
    result
        .unwrap_or_else(|error| {
            let error = error.into_compile_error();
            quote::quote!(#item #error)
        })
        .into()
}

fn expanded(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(syn::Error::into_compile_error).into()
}
