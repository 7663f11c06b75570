//! The servers in the files of hosts, such as `mcp.json`.

use std::env;

use mcp_sansio::json::{JsonKind, Raw};

/// The way to a server, as the file of a host has it: a program with its arguments, or a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerEntry {
    /// `command` and `args`; empty if there is a URL.
    pub program: Vec<String>,
    /// `url`, `httpUrl` or `serverUrl`; empty if there is a program.
    pub url: String,
    /// `env`
    pub env: Vec<(String, String)>,
    /// `headers`; also the variables that Codex names.
    pub headers: Vec<(String, String)>,
    /// `cwd`
    pub folder: Option<String>,
}

impl ServerEntry {
    /// Reads an entry. `${NAME}` and `${env:NAME}` become the variable; those that are not set stay as they are.
    ///
    /// # Errors
    /// In words: a member of another type, `${input:NAME}`, for which VS Code asks its user, or neither a program nor a URL.
    pub fn read(entry: Raw<'_>) -> Result<Self, String> {
        let member = |key: &str| entry.get(key).filter(|value| value.kind() != JsonKind::Null);
        let text = |key: &str| member(key).map(|value| filled(key, value)).transpose();
        let whole = |key: &str, kind: JsonKind, name: &str| match member(key) {
            Some(value) if value.kind() != kind => Err(format!("{key} is not {name}")),
            found => Ok(found),
        };
        let pairs = |key: &str| -> Result<Vec<(String, String)>, String> {
            let members = whole(key, JsonKind::Object, "an object")?.into_iter().flat_map(|pairs| pairs.members());
            members.map(|(name, value)| Ok((name.to_string(), filled(&format!("{key}.{name}"), value)?))).collect()
        };
        let args = whole("args", JsonKind::Array, "an array")?.into_iter().flat_map(|args| args.items());
        let args: Vec<_> = args.map(|word| filled("a word of args", word)).collect::<Result<_, _>>()?;
        let mut program: Vec<String> = text("command")?.into_iter().collect();
        let mut url = String::new();
        match program.is_empty() {
            true => {
                let given = ["httpUrl", "serverUrl", "url"].into_iter().find_map(|key| text(key).transpose());
                url = given.ok_or("it has neither a program nor a URL")??;
            }
            false => program.extend(args),
        }
        let variable = |name: String| env::var(name).unwrap_or_default();
        let mut headers = [pairs("headers")?, pairs("http_headers")?].concat();
        headers.extend(pairs("env_http_headers")?.into_iter().map(|(name, value)| (name, variable(value))));
        let token = text("bearer_token_env_var")?.map(variable);
        headers.extend(token.map(|token| ("Authorization".into(), format!("Bearer {token}"))));
        Ok(ServerEntry { program, url, env: pairs("env")?, headers, folder: text("cwd")? })
    }
}

/// Returns the text of a member. Replaces `${NAME}` and `${env:NAME}` by the variable, as hosts do.
fn filled(member: &str, value: Raw<'_>) -> Result<String, String> {
    let text = value.text().ok_or_else(|| format!("{member} is not a string"))?.to_string();
    let mut out = String::new();
    let mut rest = &*text;
    while let Some((before, (name, after))) = rest.split_once("${").and_then(|(a, b)| Some((a, b.split_once('}')?))) {
        if name.starts_with("input:") {
            return Err(format!("{member} has ${{{name}}}, for which only VS Code asks: use a variable, ${{NAME}}"));
        }
        out.push_str(before);
        match env::var(name.strip_prefix("env:").unwrap_or(name)) {
            Ok(value) => out.push_str(&value),
            Err(_) => out.extend(["${", name, "}"]),
        }
        rest = after;
    }
    Ok(out + rest)
}

/// Replaces the comments and trailing commas of a file that a person keeps by spaces: JSON is left, and everything keeps its place. A mark of
/// the byte order, which editors of Windows write, is left out.
///
/// ```
/// let text = "\u{feff}{ \"a\": [1, 2,], } // two";
/// assert_eq!(mcp_sansio_host::plain_json(text).trim_end(), "{ \"a\": [1, 2 ]  }");
/// ```
#[must_use]
pub fn plain_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // A comma with nothing but space and comments behind it so far.
    let mut comma = None;
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '"' => string_len(rest),
            '/' if rest.starts_with("//") => rest.find(['\r', '\n']).unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            c => c.len_utf8(),
        };
        let (part, after) = rest.split_at(len);
        rest = after;
        if c == '/' && len > 1 {
            out.extend(std::iter::repeat_n(' ', len));
            continue;
        }
        match c {
            '}' | ']' => comma.take().into_iter().for_each(|at| out.replace_range(at..at + 1, " ")),
            ',' => comma = Some(out.len()),
            c if c.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        out.push_str(part);
    }
    out
}

/// Returns the length of a JSON string at the beginning of a text, with its quotes.
fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| match byte {
        _ if is_escaped => {
            is_escaped = false;
            false
        }
        b'\\' => {
            is_escaped = true;
            false
        }
        byte => byte == b'"',
    });
    end.map_or(text.len(), |end| end + 2)
}
