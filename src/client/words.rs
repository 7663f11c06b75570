//! A server's words, shown to people.

use core::fmt::{self, Display, Formatter, Write};

/// Writes `text` without what would change how a terminal or a log shows the rest: control characters and marks that
/// change the direction of writing become U+FFFD, tabs become spaces. Newlines stay where there may be several `lines`,
/// and become spaces elsewhere.
pub(crate) fn write_clean(f: &mut Formatter<'_>, text: impl Display, lines: bool) -> fmt::Result {
    write!(Clean { to: f, lines }, "{text}")
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
