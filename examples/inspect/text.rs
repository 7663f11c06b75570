//! Makes text from others safe to show, measures its width, and wraps it.

use std::fmt::{Display, Write};

/// Makes text safe: it cannot move the cursor, change colours, or change its order. Control characters become
/// visible symbols or their numbers. Newlines stay, tabs become spaces.
pub(crate) fn clean(text: impl Display) -> String {
    let text = text.to_string();
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\t' => out.push_str("    "),
            '\0'..='\x1f' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('?')),
            '\x7f' => out.push('\u{2421}'),
            c if is_hidden(c) => {
                let _ = write!(out, "<U+{:04X}>", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Makes text safe like [`clean`], on one line.
pub(crate) fn one_line(text: impl Display) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes a name of a server safe for a file. It is written as [`clean`] shows it, on one line, so that no file looks like another
/// one in a list.
pub(crate) fn file_name(name: &str) -> String {
    let part = |c: char| match clean(c) {
        shown if shown == "\n" => format!("<U+{:04X}>", u32::from(c)),
        shown => shown,
    };
    name.chars().map(part).collect()
}

/// Invisible characters that change how other text is shown, or that hide text: C1 controls, directions, invisible letters, fillers.
pub(crate) const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the number of columns of a character on a terminal.
pub(crate) const fn char_width(c: char) -> usize {
    match c {
        ' '..='~' => 1,
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5bd}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{93c}'
        | '\u{94d}'
        | '\u{e31}'
        | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{200c}'
        | '\u{200d}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{231a}'
        | '\u{231b}'
        | '\u{23e9}'..='\u{23ec}'
        | '\u{2614}'
        | '\u{2615}'
        | '\u{2648}'..='\u{2653}'
        | '\u{26a1}'
        | '\u{26d4}'
        | '\u{2705}'
        | '\u{270a}'
        | '\u{270b}'
        | '\u{2728}'
        | '\u{274c}'
        | '\u{2753}'..='\u{2757}'
        | '\u{2795}'..='\u{2797}'
        | '\u{2b50}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Returns the number of columns of text on one line.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Shortens a line to a number of columns. The last column is a mark if text was removed.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.into();
    }
    let mut used = 1;
    let kept = text.chars().take_while(|&c| {
        used += char_width(c);
        used <= columns
    });
    let mut kept: String = kept.collect();
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// A character with its style.
pub(crate) type Styled<S> = (char, S);

/// Wraps clean text to lines of at most `columns`, and breaks words if needed. The next lines of an indented or
/// bulleted line are indented too.
pub(crate) fn wrap<S: Copy>(text: &[Styled<S>], columns: usize) -> Vec<Vec<Styled<S>>> {
    let mut lines = Vec::new();
    for paragraph in text.split(|(c, _)| *c == '\n') {
        wrap_paragraph(paragraph, columns.max(4), &mut lines);
    }
    while lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

fn wrap_paragraph<S: Copy>(text: &[Styled<S>], columns: usize, lines: &mut Vec<Vec<Styled<S>>>) {
    let is_space = |(c, _): &Styled<S>| *c == ' ';
    let hang = hanging(text).min(columns / 2);
    let (mut line, mut used) = (Vec::new(), 0);
    let mut rest = text;
    while !rest.is_empty() {
        let spaces = rest.iter().take_while(|c| is_space(c)).count();
        let word = rest[spaces..].iter().take_while(|c| !is_space(c)).count();
        let (space, word) = rest[..spaces + word].split_at(spaces);
        rest = &rest[space.len() + word.len()..];
        let needed: usize = word.iter().map(|(c, _)| char_width(*c)).sum();
        if used > hang && used + space.len() + needed > columns {
            break_line(&mut line, &mut used, hang, lines, word);
        } else if !word.is_empty() {
            let space = &space[..space.len().min(columns.saturating_sub(used + 1))];
            line.extend_from_slice(space);
            used += space.len();
        }
        for &(c, style) in word {
            if used + char_width(c) > columns {
                break_line(&mut line, &mut used, hang, lines, word);
            }
            line.push((c, style));
            used += char_width(c);
        }
    }
    lines.push(line);
}

fn break_line<S: Copy>(
    line: &mut Vec<Styled<S>>,
    used: &mut usize,
    hang: usize,
    lines: &mut Vec<Vec<Styled<S>>>,
    like: &[Styled<S>],
) {
    lines.push(std::mem::take(line));
    if let Some((_, style)) = like.first() {
        line.extend(std::iter::repeat_n((' ', *style), hang));
    }
    *used = line.len();
}

/// Returns the indentation of the lines after the first.
fn hanging<S>(text: &[Styled<S>]) -> usize {
    let spaces = text.iter().take_while(|(c, _)| *c == ' ').count();
    let bullet = matches!(text.get(spaces..), Some([('-' | '*' | '•', _), (' ', _), ..]));
    spaces + if bullet { 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let styled: Vec<_> = text.chars().map(|c| (c, ())).collect();
        wrap(&styled, columns).iter().map(|line| line.iter().map(|(c, ())| c).collect()).collect()
    }

    #[test]
    fn nothing_dangerous_is_left() {
        assert_eq!(clean("a\x1b[31mred\x07\r\nb\rc\td"), "a␛[31mred␇\nb␍c    d");
        assert_eq!(clean("x\u{9b}31m\u{7f}\u{202e}y\u{2028}z"), "x<U+009B>31m␡<U+202E>y\nz");
        for c in (0..=0x11_0000).filter_map(char::from_u32) {
            let clean = clean(c);
            assert!(!clean.chars().any(|c| c != '\n' && (c.is_control() || is_hidden(c))), "{c:?}");
        }
        assert_eq!(one_line(" a\n\n  b\t c "), "a b c");
        assert_eq!(file_name("a/ b\u{202e}txt.exe\u{2028}ü👩\u{200d}💻"), "a/ b<U+202E>txt.exe<U+2028>ü👩\u{200d}💻");
        for hidden in
            ["\n", "\r\n", "\t", "\u{7f}", "\u{85}", "\u{2029}", "\u{200b}", "\u{feff}", "\u{e0041}", "\u{3164}"]
        {
            let name = file_name(hidden);
            assert!(!name.chars().any(|c| c.is_control() || is_hidden(c) || c == '\u{2029}'), "{name:?}");
        }
    }

    #[test]
    fn widths() {
        assert_eq!((width("abc"), width("日本"), width("e\u{301}"), width("🦀")), (3, 4, 1, 2));
        assert_eq!(cut("hello world", 8), "hello w…");
        assert_eq!(cut("hello world", 7), "hello…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("hello", 5), "hello");
    }

    #[test]
    fn lines() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("one\n\ntwo\n", 8), ["one", "", "two"]);
        assert_eq!(wrapped("- one two three\n  four five", 8), ["- one", "  two", "  three", "  four", "  five"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("日本語日本語", 5), ["日本", "語日", "本語"]);
        assert_eq!(wrapped("a  b", 10), ["a  b"]);
        for columns in 0..12 {
            for line in wrapped("  * some wörds and averyveryverylongone 日本語   end ", columns) {
                assert!(width(&line) <= columns.max(4), "{line:?} in {columns}");
            }
        }
    }
}
