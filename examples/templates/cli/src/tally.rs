//! The tool itself, for the command line and for MCP.
use std::cmp::Reverse;
use std::collections::HashMap;

use mcp_sansio::service::Output;

#[derive(Output)]
pub struct Counts {
    pub lines: usize,
    pub words: usize,
    pub bytes: usize,
}

/// A word in small letters, and how often it is there.
#[derive(Output)]
pub struct Word {
    pub word: String,
    pub count: usize,
}

pub fn count(text: &str) -> Counts {
    Counts { lines: text.lines().count(), words: words(text).count(), bytes: text.len() }
}

/// The `most` most frequent words, the most frequent first.
pub fn top(text: &str, most: usize) -> Vec<Word> {
    let mut counts = HashMap::new();
    for word in words(text) {
        *counts.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    let mut list: Vec<Word> = counts.into_iter().map(|(word, count)| Word { word, count }).collect();
    list.sort_by(|a, b| (Reverse(a.count), &a.word).cmp(&(Reverse(b.count), &b.word)));
    list.truncate(most);
    list
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty())
}
