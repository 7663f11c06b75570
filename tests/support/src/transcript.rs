use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// `# ` and a comment; an empty line is an empty comment.
    Comment(String),
    /// `> ` and a message from client to server.
    ToServer(String),
    /// `< ` and a message from server to client.
    ToClient(String),
}

/// A golden transcript: an exchange in a text file.
///
/// ```text
/// # A ping is answered at once.
/// > {"jsonrpc":"2.0","id":1,"method":"ping"}
/// < {"jsonrpc":"2.0","id":1,"result":{}}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The lines in the order of the file.
    pub lines: Vec<Line>,
}

impl Transcript {
    /// Reads a transcript. Every line must begin with one of the three marks, or be empty.
    pub fn parse(text: &str) -> Result<Transcript, String> {
        let lines = text.lines().enumerate().map(|(n, line)| parse_line(line).ok_or(format!("line {}: {line}", n + 1)));
        Ok(Transcript { lines: lines.collect::<Result<_, _>>()? })
    }

    /// Returns the messages to the server, in order.
    pub fn to_server(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|l| if let Line::ToServer(m) = l { Some(m.as_str()) } else { None })
    }

    /// Returns the messages to the client, in order.
    pub fn to_client(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|l| if let Line::ToClient(m) = l { Some(m.as_str()) } else { None })
    }

    /// Returns the exchange with the inputs of this one: comments and inputs stay, the outputs are those of `engine`,
    /// each directly after its input.
    fn replay(&self, role: Role, opening: Vec<String>, mut engine: impl FnMut(&str) -> Vec<String>) -> Transcript {
        let mut lines = Vec::new();
        let mut opening = Some(opening);
        for line in &self.lines {
            if !matches!(line, Line::Comment(_)) {
                lines.extend(opening.take().into_iter().flatten().map(|o| role.output(o)));
            }
            match role.input(line) {
                Some(input) => {
                    lines.push(line.clone());
                    lines.extend(engine(input).into_iter().map(|o| role.output(o)));
                }
                None if matches!(line, Line::Comment(_)) => lines.push(line.clone()),
                None => {}
            }
        }
        lines.extend(opening.into_iter().flatten().map(|o| role.output(o)));
        Transcript { lines }
    }

    /// Returns the exchange without its comments.
    fn messages(&self) -> Vec<&Line> {
        self.lines.iter().filter(|l| !matches!(l, Line::Comment(_))).collect()
    }
}

impl std::fmt::Display for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{}", written(line)))
    }
}

/// Feeds each `> ` line of a golden transcript to a server, and compares its output with the `< ` lines. With
/// `UPDATE_GOLDEN=1` in the environment, it writes the file again instead.
pub fn golden_server(path: impl AsRef<Path>, server: impl FnMut(&str) -> Vec<String>) -> Result<(), String> {
    golden(path.as_ref(), Role::Server, Vec::new(), server, updating())
}

/// Feeds each `< ` line to a client, and compares as [`golden_server`] does. `opening` is its output before the first
/// input.
pub fn golden_client(
    path: impl AsRef<Path>,
    opening: Vec<String>,
    client: impl FnMut(&str) -> Vec<String>,
) -> Result<(), String> {
    golden(path.as_ref(), Role::Client, opening, client, updating())
}

fn updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some_and(|v| v == "1")
}

fn golden(
    path: &Path,
    role: Role,
    opening: Vec<String>,
    engine: impl FnMut(&str) -> Vec<String>,
    update: bool,
) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let golden = Transcript::parse(&text).map_err(|e| format!("{}: no transcript at {e}", path.display()))?;
    let actual = golden.replay(role, opening, engine);
    if golden.messages() == actual.messages() {
        return Ok(());
    }
    if update {
        return fs::write(path, actual.to_string()).map_err(|e| format!("{}: {e}", path.display()));
    }
    Err(format!("{} (UPDATE_GOLDEN=1 rewrites it):\n{}", path.display(), difference(&golden, &actual)))
}

/// The side under test.
#[derive(Clone, Copy)]
enum Role {
    Server,
    Client,
}

impl Role {
    fn input(self, line: &Line) -> Option<&str> {
        match (self, line) {
            (Role::Server, Line::ToServer(m)) | (Role::Client, Line::ToClient(m)) => Some(m),
            _ => None,
        }
    }

    fn output(self, message: String) -> Line {
        match self {
            Role::Server => Line::ToClient(message),
            Role::Client => Line::ToServer(message),
        }
    }
}

fn parse_line(line: &str) -> Option<Line> {
    match (line.get(..2), line) {
        (Some("> "), _) => Some(Line::ToServer(line[2..].into())),
        (Some("< "), _) => Some(Line::ToClient(line[2..].into())),
        (Some("# "), _) => Some(Line::Comment(line[2..].into())),
        (_, "" | "#") => Some(Line::Comment(String::new())),
        _ => None,
    }
}

fn written(line: &Line) -> String {
    match line {
        Line::Comment(words) if words.is_empty() => String::new(),
        Line::Comment(words) => format!("# {words}"),
        Line::ToServer(message) => format!("> {message}"),
        Line::ToClient(message) => format!("< {message}"),
    }
}

/// Describes the first difference of two exchanges, with the lines before it.
fn difference(golden: &Transcript, actual: &Transcript) -> String {
    let (golden, actual) = (golden.messages(), actual.messages());
    let same = golden.iter().zip(&actual).take_while(|(g, a)| g == a).count();
    let mut text = String::new();
    for line in &golden[same.saturating_sub(2)..same] {
        let _ = writeln!(text, "  {}", written(line));
    }
    let shown = |line: Option<&&Line>| line.map_or("(nothing more)".into(), |l| written(l));
    let _ = write!(text, "expected: {}\n  actual: {}", shown(golden.get(same)), shown(actual.get(same)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_keeps_comments_and_inputs() {
        let path = std::env::temp_dir().join(format!("mcp-golden-{}.jsonl", std::process::id()));
        fs::write(&path, "# One.\n> a\n< old\n\n# Two.\n> b\n< gone\n").unwrap();
        let server = |line: &str| if line == "a" { vec!["new".into(), "more".into()] } else { vec![] };
        golden(&path, Role::Server, vec![], server, false).unwrap_err();
        golden(&path, Role::Server, vec![], server, true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "# One.\n> a\n< new\n< more\n\n# Two.\n> b\n");
        golden(&path, Role::Server, vec![], server, false).unwrap();
        fs::remove_file(&path).unwrap();
    }
}
