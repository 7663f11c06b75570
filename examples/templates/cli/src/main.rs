//! Counts lines and words of files: on the command line, and with `tally mcp` for the models of an MCP host.
mod mcp;
mod tally;

use std::process::ExitCode;
use std::{env, fs, io};

const USAGE: &str = "usage:
  tally count FILE    counts lines, words and bytes
  tally top FILE      shows the ten most frequent words
  tally mcp FOLDER    serves both as MCP tools over stdio, for the files below FOLDER";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["count", file] => count(file),
        ["top", file] => top(file),
        ["mcp", folder] => mcp::serve(folder),
        _ => Err(io::Error::other(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn count(file: &str) -> io::Result<()> {
    let tally::Counts { lines, words, bytes } = tally::count(&read(file)?);
    println!("{lines} lines, {words} words, {bytes} bytes");
    Ok(())
}

fn top(file: &str) -> io::Result<()> {
    for word in tally::top(&read(file)?, 10) {
        println!("{:7} {}", word.count, word.word);
    }
    Ok(())
}

fn read(file: &str) -> io::Result<String> {
    fs::read_to_string(file).map_err(|error| io::Error::other(format!("{file}: {error}")))
}
