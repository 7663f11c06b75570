//! Looks at any MCP server from the command line.

mod json;
mod page;
mod schema;
mod text;

fn main() {}
