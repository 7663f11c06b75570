// Types without a schema. `//~` says what the message on its line, or the next one, has.
use mcp_sansio::service::{Arguments, Call, HandlerResult, Output, ReadResource, resource, tool};

struct Own;

#[derive(Arguments)]
struct Members {
    own: Own,                //~ `Own` has no schema as an argument
    nested: Vec<Own>,        //~ `Own` has no schema as an argument
    option: Vec<Option<u8>>, //~ `Option<u8>` has no schema as an argument
    wide: u128,              //~ `u128` has no schema as an argument
}

#[derive(Output)]
struct Report {
    own: Own, //~ `Own` has no schema as an output
}

/// Takes a struct that is no type for arguments
#[tool]
//~ `Own` is no type for the arguments of a tool
fn plain(_: &mut (), call: &mut Call<'_>, _: Own) -> HandlerResult {
    call.text("")
}

/// Returns what is no text
#[tool]
fn returns() -> Own { //~ the method `write` exists for struct `Answered<Own>`
    Own
}

/// Fails with what is no text
#[tool]
fn fails() -> Result<u8, Own> { //~ `Own` is no error of a handler
    Err(Own)
}

#[resource("city://{name}")]
//~ `f64` is no variable of a URI template
fn city(_: &mut (), read: &mut ReadResource<'_>, name: f64) -> HandlerResult {
    read.text(format_args!("{name}"))
}

fn main() {}
