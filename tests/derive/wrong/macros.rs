// Mistakes that the macros find. `//~` says what the message on its line, or the next one, has.
use mcp_sansio::service::{Arguments, Call, Form, GetPrompt, HandlerResult, Output, ReadResource, prompt, resource, tool};

#[derive(Arguments)]
struct Tuple(u8); //~ arguments have names: a struct with named fields

#[derive(Arguments)]
//~ a generic type has no constant schema
struct Generic<T> {
    value: T,
}

#[derive(Arguments)]
//~ one lifetime at most: that of the message
struct Two<'a, 'b> {
    a: &'a str,
    b: &'b str,
}

#[derive(Arguments)]
enum Shape {
    Circle { radius: u8 }, //~ a variant with fields needs `#[arguments(tag = "..")]` on the enum
}

#[derive(Arguments)]
enum Empty {} //~ an enum without variants has no value

#[derive(Arguments)]
struct Members {
    #[arguments(rename = "b")]
    a: u8,
    b: u8, //~ a second `b`
}

#[derive(Arguments)]
struct Unknown {
    #[arguments(minimun = 1)] //~ no such attribute of a field
    a: u8,
}

#[derive(Arguments)]
#[arguments(rename_all = "Title Case")] //~ one of `lowercase`, `UPPERCASE`
struct Case {
    a: u8,
}

#[derive(Arguments)]
struct Patterns<'a> {
    #[arguments(pattern = "^a$")] //~ nothing enforces this pattern: add `check = function`
    a: &'a str,
}

#[derive(Arguments)]
struct Default<'a> {
    #[arguments(default = "x")] //~ an `Option` that is left out is `None`: no default
    a: Option<&'a str>,
}

#[derive(Arguments)]
#[arguments(tag = "kind")]
enum Tagged {
    One { size: u8 },
    Two { size: u16 }, //~ `size` is another type or has other limits above
    Three(u8),
}

#[derive(Output)]
struct Report {
    #[output(minimum = 1)] //~ no such attribute of a field: `rename`, `title`, `format`
    a: u8,
}

#[tool]
//~ a tool needs a description: write a comment with `///`
fn silent(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    call.text("")
}

/// Has a third context
#[tool]
fn third(_: &mut (), call: &mut Call<'_>, _: &mut u8) -> HandlerResult { //~ the state and the context come first
    call.text("")
}

/// Has two states
#[tool(state = u8)] //~ the state is that of the first parameter
fn states(_: &mut ()) -> u8 {
    0
}

/// Waits
#[tool]
//~ handlers are not async
async fn waits(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    call.text("")
}

/// Has a wrong attribute
#[tool(readonly)] //~ no such attribute of a tool
fn attribute(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    call.text("")
}

/// Has members without names
#[tool]
//~ a member of the arguments has a name
fn nameless(_: &mut (), call: &mut Call<'_>, a: u8, (b, c): (u8, u8)) -> HandlerResult {
    call.text(i64::from(a + b + c))
}

#[prompt]
//~ a prompt needs a description
fn undescribed(_: &mut (), get: &mut GetPrompt<'_>) -> HandlerResult {
    get.user("")
}

#[resource("city://{name}")]
//~ `city://{name}` has no variable `nme`
fn city(_: &mut (), read: &mut ReadResource<'_>, nme: &str) -> HandlerResult {
    read.text(nme)
}

fn main() {}
