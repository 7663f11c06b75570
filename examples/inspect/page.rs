//! Lays out paragraphs and tables for a terminal. All text on a page is made safe: only the page's own colours
//! reach the terminal.

use crate::text::{Styled, clean, width, wrap};

/// The style of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// A heading.
    Head,
    /// A name that a command accepts.
    Name,
    /// A type.
    Type,
    /// Less important text.
    Dim,
    Good,
    Warn,
    Bad,
}

use Style::{Dim, Plain};

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Plain => "",
            Style::Head => "\x1b[1m",
            Style::Name => "\x1b[36m",
            Style::Type => "\x1b[35m",
            Dim => "\x1b[2m",
            Style::Good => "\x1b[32m",
            Style::Warn => "\x1b[33m",
            Style::Bad => "\x1b[31m",
        }
    }
}

/// The properties of the output: colours and width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) color: bool,
    pub(crate) width: usize,
}

impl Look {
    /// Makes text safe, and adds a style.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        let text = clean(text);
        if self.color && style != Plain { format!("{}{text}\x1b[0m", style.code()) } else { text }
    }
}

/// Pieces of text in their styles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans(Vec<Styled<Style>>);

impl Spans {
    pub(crate) fn of(style: Style, text: impl std::fmt::Display) -> Self {
        Spans::default().and(style, text)
    }

    pub(crate) fn and(mut self, style: Style, text: impl std::fmt::Display) -> Self {
        self.add(style, text);
        self
    }

    pub(crate) fn add(&mut self, style: Style, text: impl std::fmt::Display) {
        self.0.extend(clean(text).chars().map(|c| (c, style)));
    }

    /// Adds text, with `between` before it unless it is the first.
    pub(crate) fn item(&mut self, between: &str, style: Style, text: impl std::fmt::Display) {
        if !self.0.is_empty() {
            self.add(Dim, between);
        }
        self.add(style, text);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends other spans.
    pub(crate) fn join(mut self, more: Spans) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Adds spaces at the start, up to a width in columns.
    pub(crate) fn pad_left(&mut self, width: usize) {
        let pad = width.saturating_sub(self.width());
        self.0.splice(0..0, std::iter::repeat_n((' ', Plain), pad));
    }

    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(c, _)| crate::text::char_width(*c)).sum()
    }
}

/// Rows of cells. The last cell of a row is wrapped; the others stay on one line.
pub(crate) type Rows = Vec<Vec<Spans>>;

/// A page of text.
#[derive(Debug)]
pub(crate) struct Page {
    look: Look,
    text: String,
}

/// The columns between two columns of a table.
const GUTTER: usize = 2;
/// The least width of a table's last column beside the others.
const LAST_COLUMN: usize = 24;

impl Page {
    pub(crate) fn new(look: Look) -> Self {
        Page { look, text: String::new() }
    }

    pub(crate) fn look(&self) -> Look {
        self.look
    }

    /// Returns the text, ready for the terminal.
    pub(crate) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end_matches('\n').len());
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }

    /// Adds an empty line, unless there is one.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a paragraph.
    pub(crate) fn say(&mut self, indent: usize, style: Style, text: impl std::fmt::Display) {
        self.spans(indent, &Spans::of(style, text));
    }

    /// Adds a paragraph in several styles.
    pub(crate) fn spans(&mut self, indent: usize, spans: &Spans) {
        self.hanging(indent, 0, spans);
    }

    /// Adds a paragraph. The lines after the first are indented by `hang` more.
    pub(crate) fn hanging(&mut self, indent: usize, hang: usize, spans: &Spans) {
        let columns = self.columns(indent + hang);
        for (i, line) in wrap(&spans.0, columns).iter().enumerate() {
            self.indent(indent + if i > 0 { hang } else { 0 });
            self.line(line);
        }
    }

    /// Adds text without wrapping it.
    pub(crate) fn verbatim(&mut self, indent: usize, spans: &Spans) {
        for line in spans.0.split(|(c, _)| *c == '\n') {
            self.indent(indent);
            self.line(line);
        }
    }

    /// Adds a table. If it is too wide, the last column goes below the others.
    pub(crate) fn table(&mut self, indent: usize, rows: &Rows) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let room = self.columns(indent);
        let longest = rows.iter().filter_map(|row| row.last()).map(Spans::width).max().unwrap_or(0);
        let cells =
            |column: usize| rows.iter().filter(move |row| column + 1 < row.len()).map(move |row| row[column].width());
        let whole: usize = (0..columns.saturating_sub(1)).filter_map(|column| cells(column).max()).sum();
        // A single long cell must not take the room of all others.
        let cap = match columns {
            _ if whole + GUTTER * (columns.max(1) - 1) + longest <= room => room,
            0..=2 => (room / 3).max(12),
            _ => (room / 2).max(12),
        };
        let fitting = |column: usize| cells(column).filter(|width| *width <= cap).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..columns.saturating_sub(1)).map(fitting).collect();
        widths.iter_mut().filter(|width| **width > 0).for_each(|width| *width += GUTTER);
        let left: usize = widths.iter().sum();
        let below = left + longest.min(LAST_COLUMN).min(room / 2) > room;
        for row in rows {
            self.row(indent, row, &widths, below);
        }
    }

    fn row(&mut self, indent: usize, row: &[Spans], widths: &[usize], below: bool) {
        let Some((last, cells)) = row.split_last() else { return };
        let left: usize = widths.iter().sum();
        let tight = cells.iter().zip(widths).all(|(cell, width)| cell.width() + GUTTER <= *width || cell.is_empty());
        let mut line = Vec::new();
        for (cell, width) in cells.iter().zip(widths) {
            line.extend_from_slice(&cell.0);
            let gutter = if cell.is_empty() { 0 } else { GUTTER };
            let pad = width.saturating_sub(cell.width()).max(gutter);
            line.extend(std::iter::repeat_n((' ', Plain), pad));
        }
        if below || !tight {
            while line.last().is_some_and(|(c, _)| *c == ' ') {
                line.pop();
            }
            self.hanging(indent, 2, &Spans(line));
            self.spans(indent + 4, last);
            return;
        }
        let lines = wrap(&last.0, self.columns(indent + left));
        self.indent(indent);
        line.extend(lines.first().into_iter().flatten());
        self.line(&line);
        for more in lines.iter().skip(1) {
            self.indent(indent + left);
            self.line(more);
        }
    }

    /// Adds a table of short cells. Each column is as wide as its longest cell.
    pub(crate) fn columns_of(&mut self, indent: usize, rows: &Rows) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(Spans::width).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in rows {
            let mut line = Vec::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.extend(cell.0.iter().map(|&(c, style)| (if c == '\n' { ' ' } else { c }, style)));
                line.extend(std::iter::repeat_n((' ', Plain), width.saturating_sub(cell.width()) + GUTTER));
            }
            self.indent(indent);
            self.line(&line);
        }
    }

    fn columns(&self, indent: usize) -> usize {
        self.look.width.saturating_sub(indent).max(16)
    }

    fn indent(&mut self, columns: usize) {
        self.text.extend(std::iter::repeat_n(' ', columns));
    }

    fn line(&mut self, line: &[Styled<Style>]) {
        let end = line.iter().rposition(|(c, _)| *c != ' ').map_or(0, |last| last + 1);
        for run in line[..end].chunk_by(|a, b| a.1 == b.1) {
            let text: String = run.iter().map(|(c, _)| c).collect();
            self.text.push_str(&self.look.paint(run[0].1, &text));
        }
        // Removes the spaces of an empty indented line.
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
    }
}

/// Formats a line with a title, to separate the text that follows.
pub(crate) fn rule(look: Look, title: &str) -> String {
    let title = format!("── {} ", crate::text::one_line(title));
    let rest = look.width.min(80).saturating_sub(width(&title));
    look.paint(Dim, &format!("{title}{}", "─".repeat(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { color: false, width: 40 };

    fn rows(rows: &[&[&str]]) -> Rows {
        rows.iter().map(|row| row.iter().map(|cell| Spans::of(Plain, cell)).collect()).collect()
    }

    fn table(width: usize, cells: &[&[&str]]) -> String {
        let mut page = Page::new(Look { color: false, width });
        page.table(2, &rows(cells));
        page.finish()
    }

    #[test]
    fn tables_fit() {
        let cells: &[&[&str]] =
            &[&["add", "Adds two integers"], &["echo", "Gives a text back, unchanged and whole as it was"]];
        assert_eq!(
            table(40, cells),
            "  add   Adds two integers\n  echo  Gives a text back, unchanged and\n        whole as it was\n"
        );
        assert_eq!(
            table(24, cells),
            "  add   Adds two\n        integers\n  echo  Gives a text\n        back, unchanged\n        and whole as it\n        was\n"
        );
        let three: &[&[&str]] = &[&["name", "string", "required", "Some words"]];
        assert_eq!(table(30, three), "  name  string  required\n      Some words\n");
        let long: &[&[&str]] = &[&["a", "first"], &["a_very_long_name_indeed_it_is", "second"]];
        assert_eq!(table(36, long), "  a  first\n  a_very_long_name_indeed_it_is\n      second\n");
        assert_eq!(table(40, long), format!("  a{:30}first\n  a_very_long_name_indeed_it_is  second\n", ""));
        let three: &[&[&str]] = &[&["a", "", "x"], &["b", "", "y"]];
        assert_eq!(table(40, three), "  a  x\n  b  y\n");
    }

    #[test]
    fn only_own_colors_get_out() {
        let look = Look { color: true, width: 40 };
        let mut page = Page::new(look);
        page.say(2, Style::Name, "a\x1b[2Jb");
        assert_eq!(page.finish(), "  \x1b[36ma␛[2Jb\x1b[0m\n");
        let mut page = Page::new(LOOK);
        page.say(0, Style::Name, "plain");
        page.gap();
        page.gap();
        page.say(0, Style::Bad, "x\n\ny");
        assert_eq!(page.finish(), "plain\n\nx\n\ny\n");
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        for width in 24..60 {
            let text = table(width, &[&["name", "string", "required", "Some words 日本語日本語日本語日本語日本語"]]);
            assert!(text.lines().all(|line| crate::text::width(line) <= width), "{text}");
        }
    }
}
