//! Text of a peer, safe to show to people.

use core::fmt::{self, Display, Formatter, Write};

/// Returns the text of a peer for people, on one line: newlines and tabs become spaces. Control characters, and
/// characters that change the direction of writing, become U+FFFD: they change how a terminal or a log shows other
/// text.
///
/// ```
/// use mcp_sansio::client::printable_line;
/// assert_eq!(printable_line("red:\u{1b}[31m\tand\nmore").to_string(), "red:\u{fffd}[31m and more");
/// ```
pub const fn printable_line<T: Display>(text: T) -> impl Display {
    Printable { text, lines: false }
}

/// Returns the text of a peer for people as [`printable_line`], but newlines stay.
pub const fn printable_lines<T: Display>(text: T) -> impl Display {
    Printable { text, lines: true }
}

struct Printable<T> {
    text: T,
    lines: bool,
}

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Clean { to: f, lines: self.lines }, "{}", self.text)
    }
}

struct Clean<'c, 'f> {
    to: &'c mut Formatter<'f>,
    lines: bool,
}

impl Write for Clean<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| match c {
            '\n' if self.lines => self.to.write_char(c),
            '\r' if self.lines => Ok(()),
            '\n' | '\r' | '\t' => self.to.write_char(' '),
            c if is_hidden(c) => self.to.write_char(char::REPLACEMENT_CHARACTER),
            c => self.to.write_char(c),
        })
    }
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
