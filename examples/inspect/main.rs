//! Looks at any MCP server from the command line.

mod args;
mod arguments;
mod ask;
mod json;
mod page;
mod schema;
mod show;
mod text;

fn main() {}
