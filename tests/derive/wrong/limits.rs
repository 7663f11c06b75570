// Limits and defaults that do not fit. `//~` says what the message on its line, or the next one, has.
use mcp_sansio::service::{Arguments, Call, Form, GetPrompt, prompt, HandlerResult, Tool, tool};

#[derive(Arguments)]
#[arguments(rename_all = "lowercase")]
enum Kind {
    Idea,
}

#[derive(Arguments)]
struct Length {
    #[arguments(max_length = 11)] //~ `min_length` and `max_length` are limits of texts
    a: u8,
}

#[derive(Arguments)]
struct Range {
    #[arguments(maximum = 256)] //~ this limit is outside of the limits of the type
    a: u8,
}

#[derive(Arguments)]
struct Text<'a> {
    #[arguments(minimum = 1)] //~ `minimum` and `maximum` are limits of numbers
    a: &'a str,
}

#[derive(Arguments)]
struct Fraction {
    #[arguments(minimum = 0.5)] //~ a limit with a fraction is one of `f64` or `f32`
    a: i64,
}

#[derive(Arguments)]
struct Default {
    #[arguments(minimum = 3, default = 2)] //~ this default is outside of the limits
    a: i64,
}

#[derive(Arguments)]
struct Before {
    #[arguments(default = 2, minimum = 3)] //~ this default is outside of the limits
    a: i64,
}

#[derive(Arguments)]
struct Variant {
    #[arguments(default = "todo")] //~ this default is none of the variants
    kind: Kind,
}

#[derive(Arguments)]
struct Other {
    #[arguments(default = true)] //~ this default is a boolean, and the type is not
    a: i64,
}

#[derive(Arguments)]
struct Room {
    #[arguments(max_items = 3)] //~ the type has no room for so many
    a: heapless::Vec<u8, 2>,
}

//~ a field of a form is a text, a number, a boolean, a choice
#[derive(Form)]
struct Nested {
    a: Vec<u8>,
}

/// Has a number
//~ an argument of a prompt is a text or a choice
#[prompt]
fn number(_: &mut (), get: &mut GetPrompt<'_>, #[arguments] a: u8) -> HandlerResult {
    get.user(i64::from(a))
}

/// Has a header that clients refuse
//~ x-mcp-header: a name for headers
#[tool]
fn header(_: &mut (), call: &mut Call<'_>, #[arguments(header = "a b")] a: u8) -> HandlerResult {
    call.text(i64::from(a))
}

static TOOLS: [Tool<()>; 1] = [HEADER];

fn main() {
    let _ = &TOOLS;
}
