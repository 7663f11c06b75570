//! Asks the user the server's questions on the terminal.

use std::collections::BTreeSet;

use mcp_sansio::client::form::{Field, FieldKind, Form, FormError};
use mcp_sansio::client::views::{PromptMessageView, View};
use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio_host::schema::{SchemaLimits, check};
use url::Url;

use crate::json::{Members, array, compact, quote};
use crate::page::{Look, Page, Rows, Spans, Style, rule};
use crate::show;
use crate::text::one_line;

use Style::{Bad, Dim, Head, Name, Plain, Warn};

/// A place to ask the user.
pub(crate) trait Console {
    /// Shows a text.
    fn say(&mut self, text: &str);
    /// Waits for a line. Returns `None` at Ctrl-D or Ctrl-C.
    fn line(&mut self, prompt: &str) -> Option<String>;
}

/// The answer of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Yes, with the filled-in form as JSON, or with the answer to a sampling request.
    Yes(String),
    /// The answer to a sampling request, cut to `maxTokens`.
    Cut(String),
    No,
    /// The question was closed without an answer.
    Cancel,
}

/// The word to type for "no".
const NO: &str = ":no";

/// Asks the user on a console.
pub(crate) struct Asker<'c> {
    pub(crate) console: &'c mut dyn Console,
    pub(crate) look: Look,
}

/// A value, or the answer that ended the question early.
type Asked<T> = Result<T, Said>;

impl Asker<'_> {
    /// Asks the user to fill in a form.
    pub(crate) fn form(&mut self, server: &str, params: Raw<'_>) -> Said {
        self.title(&format!("{server} asks"));
        self.text(params, "message");
        let form = match params.get("requestedSchema").map(Form::of) {
            Some(Ok(form)) => form,
            _ => return self.not_shown("The form is invalid", params),
        };
        let mut names = BTreeSet::new();
        if let Some(field) = form.fields().find(|field| !names.insert(field.name.to_string())) {
            return self.not_shown(&format!("It has the field {} twice", label(field)), params);
        }
        // What is not asked for is not agreed to.
        if let Some(name) = unknown(form) {
            return self.not_shown(&format!("It wants {name}, and has no such field"), params);
        }
        if let Some(odd) = form.fields().find(|field| field.is_required() && is_odd(*field)) {
            return self.not_shown(&format!("It wants {}, of a type that forms cannot have", label(odd)), params);
        }
        let shows_all = form.fields().all(|field| !is_odd(field)) && has_fields_only(form.raw());
        if !shows_all {
            self.say(Warn, "Not all of this form can be asked field by field. This is its schema:");
            self.schema(form.raw());
        }
        let filled = loop {
            match self.fill(form) {
                Ok(filled) if shows_all && form.fields().count() < 2 => break Ok(filled),
                Ok(filled) if !shows_all && !self.fits(form, &filled) => {}
                Ok(filled) => match self.confirm(&filled) {
                    Ok(true) => break Ok(filled),
                    Ok(false) => {}
                    Err(said) => break Err(said),
                },
                Err(said) => break Err(said),
            }
        };
        self.over(filled.map_or_else(|said| said, Said::Yes))
    }

    /// Closes a form that the user cannot answer, and shows it.
    fn not_shown(&mut self, why: &str, params: Raw<'_>) -> Said {
        self.say(Bad, &format!("{why}, so this is cancelled."));
        if let Some(schema) = params.get("requestedSchema") {
            self.schema(schema);
        }
        self.over(Said::Cancel)
    }

    fn schema(&mut self, schema: Raw<'_>) {
        let mut page = Page::new(self.look);
        page.verbatim(2, &Spans::of(Dim, crate::json::pretty(schema, self.look.width.saturating_sub(2))));
        self.console.say(&page.finish());
    }

    /// Compares a filled-in form with all of its schema, and shows what does not fit.
    fn fits(&mut self, form: Form<'_>, filled: &str) -> bool {
        let Ok(content) = Raw::parse(filled.as_bytes()) else { return false };
        let report = check(form.raw(), content, &SchemaLimits::DEFAULT);
        report.mismatches.iter().for_each(|wrong| self.say(Warn, &format!("{wrong}. Once more, please.")));
        report.fits()
    }

    fn fill(&mut self, form: Form<'_>) -> Asked<String> {
        let mut content = Members::default();
        if form.fields().next().is_none() {
            self.say(Dim, "Enter agrees, :no declines, Ctrl-D cancels.");
            return loop {
                match self.read("Agree? ")?.trim().to_lowercase().as_str() {
                    "" | "y" | "yes" => break Ok(content.finish()),
                    "n" | "no" => break Err(Said::No),
                    _ => self.say(Warn, "y agrees, n declines."),
                }
            };
        }
        let has_default = form.fields().any(|field| field.default().is_some_and(|value| field.check(value).is_ok()));
        let enter = if has_default { "Enter takes the default, " } else { "" };
        self.say(Dim, &format!("{enter}:no declines, Ctrl-D cancels."));
        for field in form.fields() {
            if let Some(value) = self.field(field)? {
                content.add(&field.name.to_string(), &value);
            }
        }
        Ok(content.finish())
    }

    /// Asks for consent to send the form. `false` means that the user wants to fill it in again.
    fn confirm(&mut self, filled: &str) -> Asked<bool> {
        let mut page = Page::new(self.look);
        page.gap();
        let filled = Raw::parse(filled.as_bytes()).unwrap_or(Raw::constant("{}"));
        crate::json::show(&mut page, 2, filled);
        self.console.say(&format!("\n{}", page.finish()));
        loop {
            let answer = self.read("Send this? [Y/n] ")?;
            match answer.to_lowercase().as_str() {
                "" | "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => self.say(Warn, "y sends it, n fills it in again, :no declines."),
            }
        }
    }

    /// Asks for one field, and returns its value as JSON. `None` if the user left it out.
    fn field(&mut self, field: Field<'_>) -> Asked<Option<String>> {
        let default = field.default().filter(|value| field.check(*value).is_ok());
        self.introduce(field, default);
        let prompt = prompt(field, default);
        loop {
            let line = self.read(&prompt)?;
            let value = match line.trim() {
                "" => match default {
                    Some(default) => return Ok(Some(compact(default))),
                    None if !field.is_required() => return Ok(None),
                    None => {
                        self.say(Warn, "This is required.");
                        continue;
                    }
                },
                line => read_value(field, line),
            };
            let checked = value.and_then(|json| match Raw::parse(json.as_bytes()).map(|raw| field.check(raw)) {
                Ok(Ok(())) => Ok(json),
                // The whole form is checked at its end.
                Ok(Err(FormError::Kind)) => Ok(json),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("not a value".into()),
            });
            match checked {
                Ok(json) => return Ok(Some(json)),
                Err(wrong) => self.say(Warn, &format!("{wrong}. Once more, please.")),
            }
        }
    }

    fn introduce(&mut self, field: Field<'_>, default: Option<Raw<'_>>) {
        let mut page = Page::new(self.look);
        let mut head = Spans::of(Head, label(field));
        if field.is_required() {
            head.add(Warn, " required");
        }
        hints(field.kind()).into_iter().for_each(|hint| head.item(" · ", Dim, hint));
        page.spans(2, &head);
        if let Some(description) = field.description() {
            page.say(2, Plain, description);
        }
        if let FieldKind::One | FieldKind::Many { .. } = field.kind() {
            page.table(4, &choice_rows(field, default));
        }
        self.console.say(&format!("\n{}", page.finish()));
    }

    /// Asks for consent to visit a page. The program does not open the page.
    pub(crate) fn visit(&mut self, server: &str, params: Raw<'_>) -> Said {
        self.title(&format!("{server} wants you to visit a page"));
        self.text(params, "message");
        let text = params.get("url").and_then(|url| url.text()).map(|url| url.to_string()).unwrap_or_default();
        let mut page = Page::new(self.look);
        page.gap();
        page.verbatim(2, &Spans::of(Name, one_line(&text)));
        page.gap();
        let Some(address) = WebAddress::parse(&text) else {
            page.say(2, Bad, "This is no http or https address that can be shown safely, so this is declined.");
            self.console.say(&format!("\n{}\n", page.finish()));
            return self.over(Said::No);
        };
        let host = one_line(&address.host);
        page.spans(2, &Spans::of(Plain, "It is on ").and(Head, host).and(Plain, ". Nothing is opened for you."));
        address.warnings.iter().for_each(|warning| page.say(2, Bad, *warning));
        self.console.say(&format!("\n{}\n", page.finish()));
        let said = loop {
            match self.read("Agreed, and opened by yourself? [y/n, Ctrl-D cancels] ") {
                Ok(answer) => match answer.to_lowercase().as_str() {
                    "y" | "yes" => break Said::Yes(String::new()),
                    "n" | "no" => break Said::No,
                    _ => {}
                },
                Err(said) => break said,
            }
        };
        self.over(said)
    }

    /// Asks the user to answer in place of a model.
    pub(crate) fn sampling(&mut self, server: &str, params: Raw<'_>) -> Said {
        self.title(&format!("{server} wants a model's answer"));
        let mut page = Page::new(self.look);
        if let Some(system) = params.get("systemPrompt").and_then(|text| text.text()) {
            page.say(0, Head, "system");
            page.say(2, Plain, system);
        }
        for message in params.get("messages").into_iter().flat_map(|messages| messages.items()) {
            match PromptMessageView::of(message) {
                Ok(message) => show::message(&mut page, 0, message),
                // The user must see everything that a model would see, invalid messages too.
                Err(_) => {
                    page.say(0, Warn, "A message that the protocol does not know:");
                    crate::json::show(&mut page, 2, message);
                }
            }
        }
        page.gap();
        let tokens = params.get("maxTokens").map_or_else(String::new, |n| format!(" of at most {} tokens", n.as_str()));
        let max = params.get("maxTokens").and_then(|n| usize::try_from(n.u64()?).ok());
        page.say(0, Dim, format_args!("Type an answer{tokens}; end it with an empty line. :no refuses, Ctrl-D too."));
        self.console.say(&page.finish());
        let mut answer: Vec<String> = Vec::new();
        let said = loop {
            match self.read("> ") {
                Ok(line) if line.is_empty() && answer.is_empty() => {}
                Ok(line) if line.is_empty() => break self.limit(answer.join("\n"), max),
                Ok(line) => answer.push(line),
                Err(said) => break said,
            }
        };
        self.over(said)
    }

    /// Cuts an answer with more words than `max` tokens. Words are a lower bound: each is one token or more, so an answer that
    /// is not cut may still be too long for the server's model.
    fn limit(&mut self, answer: String, max: Option<usize>) -> Said {
        let Some(max) = max.filter(|max| answer.split_whitespace().count() > *max) else { return Said::Yes(answer) };
        let mut words = 0;
        let mut was_space = true;
        let mut is_word = |c: char| {
            words += usize::from(was_space && !c.is_whitespace());
            was_space = c.is_whitespace();
            words <= max
        };
        let cut: String = answer.chars().take_while(|c| is_word(*c)).collect();
        self.say(Warn, &format!("Only the first {max} words are sent: each is at least one token."));
        Said::Cut(cut.trim_end().into())
    }

    fn title(&mut self, title: &str) {
        self.console.say(&format!("\n{}\n", rule(self.look, title)));
    }

    fn text(&mut self, params: Raw<'_>, key: &str) {
        if let Some(text) = params.get(key).and_then(|text| text.text()) {
            let mut page = Page::new(self.look);
            page.say(0, Plain, text.to_string().trim());
            self.console.say(&page.finish());
        }
    }

    fn say(&mut self, style: Style, text: &str) {
        let text = self.look.paint(style, text);
        self.console.say(&format!("{text}\n"));
    }

    fn read(&mut self, prompt: &str) -> Asked<String> {
        let prompt = self.look.paint(Head, prompt);
        match self.console.line(&prompt) {
            Some(line) if line.trim() == NO => Err(Said::No),
            Some(line) => Ok(line),
            None => Err(Said::Cancel),
        }
    }

    fn over(&mut self, said: Said) -> Said {
        let word = match said {
            Said::Yes(_) | Said::Cut(_) => "answered",
            Said::No => "declined",
            Said::Cancel => "cancelled",
        };
        self.console.say(&format!("{}\n\n", rule(self.look, word)));
        said
    }
}

/// Returns the name of a field for the user: one that can be seen.
fn label(field: Field<'_>) -> String {
    let shown = [field.label(), field.name].map(one_line).into_iter().find(|text| !text.is_empty());
    shown.unwrap_or_else(|| quote(&field.name.to_string()))
}

/// Returns `true` for a field that has no kind of the protocol.
fn is_odd(field: Field<'_>) -> bool {
    matches!(field.kind(), FieldKind::Other)
}

/// Returns a name that the form requires, and that no field has.
fn unknown(form: Form<'_>) -> Option<String> {
    let names = form.raw().get("required").into_iter().flat_map(|names| names.items());
    let is_field = |name: &Raw<'_>| name.text().is_some_and(|name| form.fields().any(|field| field.name.same(&name)));
    names.into_iter().find(|name| !is_field(name)).map(compact)
}

/// Returns `true` if the schema of a form says no more than its fields do.
fn has_fields_only(schema: Raw<'_>) -> bool {
    const FIELDS: [&str; 8] =
        ["$schema", "$id", "title", "description", "type", "properties", "required", "additionalProperties"];
    schema.members().all(|(key, _)| FIELDS.iter().any(|known| key.eq_str(known)))
}

/// Describes the constraints of a field.
fn hints(kind: FieldKind<'_>) -> Vec<String> {
    let range = |min: Option<String>, max: Option<String>, unit: &str| match (min, max) {
        (Some(min), Some(max)) => vec![format!("{min} to {max}{unit}")],
        (Some(min), None) => vec![format!("at least {min}{unit}")],
        (None, Some(max)) => vec![format!("at most {max}{unit}")],
        (None, None) => vec![],
    };
    let number = |value: Option<Raw<'_>>| value.map(compact);
    let count = |value: Option<u64>| value.map(|value| value.to_string());
    match kind {
        FieldKind::Text { format, min, max } => {
            let mut hints: Vec<String> = format.iter().map(|format| format.to_string()).collect();
            hints.extend(range(count(min), count(max), " characters"));
            hints
        }
        FieldKind::Integer { min, max } => {
            [vec!["a whole number".into()], range(number(min), number(max), "")].concat()
        }
        FieldKind::Number { min, max } => [vec!["a number".into()], range(number(min), number(max), "")].concat(),
        FieldKind::Many { min, max } => [vec!["any of these".into()], range(count(min), count(max), "")].concat(),
        FieldKind::Other => vec!["as JSON".into()],
        _ => vec![],
    }
}

fn choice_rows(field: Field<'_>, default: Option<Raw<'_>>) -> Rows {
    let default = |value: mcp_sansio::json::Text<'_>| {
        let same = |raw: Raw<'_>| raw.text().is_some_and(|text| text.same(&value));
        default.is_some_and(|default| same(default) || default.items().any(same))
    };
    let rows = field.choices().enumerate().map(|(i, (value, label))| {
        let mut label = Spans::of(Plain, one_line(label));
        if default(value) {
            label.add(Dim, " (default)");
        }
        vec![Spans::of(Name, format_args!("{}", i + 1)), label]
    });
    rows.collect()
}

fn prompt(field: Field<'_>, default: Option<Raw<'_>>) -> String {
    let choices = match field.kind() {
        FieldKind::One => format!("1-{}", field.choices().count()),
        FieldKind::Many { .. } => format!("numbers from 1-{}, with commas", field.choices().count()),
        FieldKind::Boolean => "y/n".into(),
        FieldKind::Other => "JSON".into(),
        _ => String::new(),
    };
    let default = match (default, field.kind()) {
        (Some(_), FieldKind::One | FieldKind::Many { .. }) => "Enter: default".into(),
        (Some(value), FieldKind::Boolean) => format!("Enter: {}", if value.bool() == Some(true) { "y" } else { "n" }),
        (Some(value), _) => {
            format!(
                "Enter: {}",
                value.text().map_or_else(|| compact(value), |text| crate::text::cut(&one_line(text), 40))
            )
        }
        (None, _) if !field.is_required() => "Enter: leave out".into(),
        (None, _) => String::new(),
    };
    let hints: Vec<_> = [choices, default].into_iter().filter(|hint| !hint.is_empty()).collect();
    if hints.is_empty() { "  > ".into() } else { format!("  [{}] > ", hints.join("; ")) }
}

/// Converts the typed line to JSON.
fn read_value(field: Field<'_>, line: &str) -> Result<String, String> {
    match field.kind() {
        FieldKind::Integer { .. } | FieldKind::Number { .. } => match Raw::parse(line.as_bytes()) {
            Ok(raw) if raw.kind() == JsonKind::Number => Ok(compact(raw)),
            _ => Err("That is no number".into()),
        },
        FieldKind::Boolean => match line.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok("true".into()),
            "n" | "no" | "false" => Ok("false".into()),
            _ => Err("That is neither y nor n".into()),
        },
        FieldKind::One => choose(field, line),
        FieldKind::Many { .. } => {
            let chosen: Result<Vec<_>, _> = line
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(|part| choose(field, part))
                .collect();
            Ok(array(&chosen?))
        }
        FieldKind::Other => Raw::parse(line.as_bytes()).map(compact).map_err(|_| "That is no JSON".into()),
        _ => Ok(quote(line)),
    }
}

/// Finds a choice by its number, its value or its title.
fn choose(field: Field<'_>, typed: &str) -> Result<String, String> {
    let named = field.choices().find(|(value, label)| value.eq_str(typed) || label.eq_str(typed));
    let numbered = || field.choices().nth(typed.parse::<usize>().ok()?.checked_sub(1)?);
    let (value, _) = named.or_else(numbered).ok_or_else(|| format!("{typed:?} is not one of them"))?;
    Ok(quote(&value.to_string()))
}

/// The target of a URL, parsed like a browser does.
struct WebAddress {
    /// The host as the browser looks it up: in lower case, and names in other alphabets in Punycode.
    host: String,
    warnings: Vec<&'static str>,
}

impl WebAddress {
    /// Returns `None` for every text that is not an `http` or `https` URL with a host, and for each URL that hides
    /// the host from a reader: without `//` after the scheme, with `\\`, with blanks or control characters.
    fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let authority = text.get(url.scheme().len()..)?.strip_prefix("://")?;
        let is_hidden = |c: char| c == '\\' || c.is_whitespace() || c.is_control();
        if authority.starts_with('/') || text.contains(is_hidden) {
            return None;
        }
        let host = url.host_str().filter(|host| !host.is_empty())?.to_owned();
        let written = authority.split(['/', '?', '#']).next().unwrap_or_default();
        let mut warnings = Vec::new();
        if host.split('.').any(|label| label.starts_with("xn--")) {
            warnings.push("The name has letters that may look like others: compare it with care.");
        }
        if written.contains('%') {
            warnings.push("The name is written in code: it reads otherwise than it leads.");
        }
        if written.contains('@') {
            warnings.push("What stands before the @ is not where it leads.");
        }
        if url.scheme() != "https" {
            warnings.push("It is not https: what you enter there can be read on the way.");
        }
        Some(WebAddress { host, warnings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines to type, and the text that was shown.
    struct Script(Vec<&'static str>, String);

    impl Console for Script {
        fn say(&mut self, text: &str) {
            self.1.push_str(text);
        }
        fn line(&mut self, prompt: &str) -> Option<String> {
            self.1.push_str(prompt);
            let line = if self.0.is_empty() { None } else { Some(self.0.remove(0).to_owned()) };
            self.1.push_str(line.as_deref().unwrap_or("^D"));
            self.1.push('\n');
            line
        }
    }

    fn ask(typed: &[&'static str], ask: impl FnOnce(&mut Asker<'_>) -> Said) -> (Said, String) {
        let mut script = Script(typed.to_vec(), String::new());
        let said = ask(&mut Asker { console: &mut script, look: Look { color: false, width: 60 } });
        assert_eq!(script.0, [""; 0], "not everything was asked: {}", script.1);
        (said, script.1)
    }

    const FORM: &str = r#"{"message":"Who are you?","requestedSchema":{"type":"object","properties":{
        "mail":{"type":"string","format":"email","title":"Your address"},
        "age":{"type":"integer","minimum":18,"maximum":120},
        "news":{"type":"boolean","default":false,"description":"Once a month"},
        "color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"g"},
        "days":{"type":"array","items":{"type":"string","enum":["mon","tue","wed"]},"minItems":1}
    },"required":["mail","days"]}}"#;

    fn form(typed: &[&'static str]) -> (Said, String) {
        ask(typed, |asker| asker.form("demo", Raw::parse(FORM.as_bytes()).unwrap()))
    }

    #[test]
    fn a_form_is_filled_in() {
        let (said, shown) = form(&["", "nobody", "a@b.example", "", "", "Red", "3,mon", ""]);
        let content = r#"{"mail":"a@b.example","news":false,"color":"r","days":["wed","mon"]}"#;
        assert_eq!(said, Said::Yes(content.into()));
        let expected = "
── demo asks ───────────────────────────────────────────────
Who are you?
Enter takes the default, :no declines, Ctrl-D cancels.

  Your address required · email
  > 
This is required.
  > nobody
";
        assert!(shown.starts_with(expected), "{shown}");
        for piece in [
            "  age · a whole number · 18 to 120\n  [Enter: leave out] > \n",
            "  news\n  Once a month\n  [y/n; Enter: n] > \n",
            "    1  Red\n    2  Green (default)\n  [1-2; Enter: default] > Red\n",
            "  days required · any of these · at least 1\n    1  mon\n    2  tue\n    3  wed\n  [numbers from 1-3, with commas] > 3,mon\n",
            "Send this? [Y/n] \n── answered ──",
        ] {
            assert!(shown.contains(piece), "{piece:?} is not in {shown}");
        }
    }

    #[test]
    fn a_form_is_declined_cancelled_corrected() {
        assert_eq!(form(&[":no"]).0, Said::No);
        assert_eq!(form(&["a@b.example", "17", "121", "x"]).0, Said::Cancel);
        let twice = ["a@b.example", "", "", "", "1", "n", "c@d.example", "20", "y", "1", "tue", "y"];
        let content = r#"{"mail":"c@d.example","age":20,"news":true,"color":"r","days":["tue"]}"#;
        assert_eq!(form(&twice).0, Said::Yes(content.into()));
        let empty = Raw::constant(r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}"#);
        assert_eq!(ask(&[""], |asker| asker.form("demo", empty)).0, Said::Yes("{}".into()));
        assert_eq!(ask(&[], |asker| asker.form("demo", empty)).0, Said::Cancel);
        assert_eq!(ask(&["what?", "No"], |asker| asker.form("demo", empty)).0, Said::No);
    }

    /// Asks with the schema of a form.
    fn with(schema: &str, typed: &[&'static str]) -> (Said, String) {
        let params = format!(r#"{{"message":"?","requestedSchema":{schema}}}"#);
        ask(typed, |asker| asker.form("demo", Raw::parse(params.as_bytes()).unwrap()))
    }

    #[test]
    fn what_is_no_field_is_shown_as_it_is() {
        for field in [
            r#"{"type": ["boolean", "null"]}"#,
            r#"{"type": "object", "properties": {"a": {}}}"#,
            r##"{"$ref": "#/$defs/x"}"##,
            r#"{"title": ""}"#,
            r#"{"enum": [1, 2]}"#,
            r#"{"anyOf": [{"type": "null"}]}"#,
            "{}",
            "true",
        ] {
            let schema = format!(r#"{{"properties":{{"o":{field}}}}}"#);
            // Nothing is sent without a word of the user.
            let (said, shown) = with(&schema, &[]);
            assert_eq!(said, Said::Cancel, "{schema}");
            assert!(shown.contains(&format!("\"o\": {field}")), "{shown}");
            assert_eq!(with(&schema, &["", ":no"]).0, Said::No);
            assert_eq!(with(&schema, &["", "y"]).0, Said::Yes("{}".into()));
            let required = format!(r#"{{"properties":{{"o":{field}}},"required":["o"]}}"#);
            let (said, shown) = with(&required, &[]);
            assert_eq!(said, Said::Cancel, "{required}");
            assert!(shown.contains("so this is cancelled.") && shown.contains(field), "{shown}");
        }
        let nested = r##"{"properties":{"o":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"object","required":["a"]}}}"##;
        let (said, shown) = with(nested, &["word", "{\"b\": 1}", "{ \"a\": [1] }", ""]);
        assert_eq!(said, Said::Yes(r#"{"o":{"a":[1]}}"#.into()));
        assert!(
            shown.contains("no JSON") && shown.contains("o: no member `a`") && shown.contains("as JSON"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_beside_the_fields_is_shown_too() {
        for schema in [
            r#"{"type": "object", "properties": {}, "allOf": [{"properties": {"pay": {"const": true}}}]}"#,
            r#"{"properties": {"a": {"type": "boolean"}}, "dependentRequired": {"a": ["b"]}}"#,
        ] {
            let (said, shown) = with(schema, &[]);
            assert_eq!(said, Said::Cancel, "{schema}");
            let words: String = shown.split_whitespace().collect();
            assert!(words.contains(&schema.replace(' ', "")), "{shown}");
        }
        for schema in [
            r#"{"properties":{},"required":["zz"]}"#,
            r#"{"properties":{"a":{"type":"boolean"},"\u0061":{"type":"string"}}}"#,
            r#"{"properties":{"a":{"type":"boolean"}},"required":["a",""]}"#,
            r#"{"type":"object"}"#,
            r#"{"type":["object"],"properties":{}}"#,
            r#"{"properties":[]}"#,
            "[]",
            "\"\"",
        ] {
            let (said, shown) = with(schema, &[]);
            assert_eq!(said, Said::Cancel, "{schema}");
            assert!(shown.contains("so this is cancelled."), "{shown}");
        }
        // A title that cannot be seen is no name.
        for title in ["", " ", "\\u2028"] {
            let shown = with(&format!(r#"{{"properties":{{"wipe":{{"type":"boolean","title":"{title}"}}}}}}"#), &[]).1;
            assert!(shown.contains("\n  wipe\n"), "{shown}");
        }
    }

    #[test]
    fn a_page_is_agreed_to() {
        let params =
            Raw::constant(r#"{"message":"Log in","url":"https://good.example@evil.example/","elicitationId":"1"}"#);
        let (said, shown) = ask(&["what?", "y"], |asker| asker.visit("demo", params));
        assert_eq!(said, Said::Yes(String::new()));
        assert!(shown.contains("https://good.example@evil.example/\n\n  It is on evil.example."), "{shown}");
        assert!(shown.contains("What stands before the @ is not where it leads."), "{shown}");
        assert_eq!(ask(&["n"], |asker| asker.visit("demo", params)).0, Said::No);
        assert_eq!(ask(&[], |asker| asker.visit("demo", params)).0, Said::Cancel);
        let plain = Raw::constant(r#"{"url":"http://xn--80ak6aa92e.com/"}"#);
        let shown = ask(&["n"], |asker| asker.visit("demo", plain)).1;
        assert!(shown.contains("letters that may look like others") && shown.contains("not https"), "{shown}");
    }

    #[test]
    fn hosts_are_those_that_a_browser_goes_to() {
        let plain = |url: &str, typed: &[&'static str]| {
            let params = format!(r#"{{"message":"Log in","url":{}}}"#, quote(url));
            ask(typed, |asker| asker.visit("demo", Raw::parse(params.as_bytes()).unwrap()))
        };
        // A browser goes to evil.example, or nowhere; a reader sees another name.
        for url in [
            "https:evil.example/x?u=https://good.example/",
            "https:\\\\evil.example/://good.example",
            "javascript:alert(1)//https://good.example",
            "https:/evil.example/a",
            "https:///evil.example/://good.example",
            "https://evil.example\\@good.example/",
            "https://good.example\t.evil.example/",
            " https://good.example/",
            "https://",
            "file:///etc/passwd",
            "good.example",
            "",
        ] {
            let (said, shown) = plain(url, &[]);
            assert_eq!(said, Said::No, "{url}");
            assert!(shown.contains("no http or https address") && !shown.contains("It is on"), "{shown}");
        }
        let (said, shown) = plain("HTTPS://good.example/", &["y"]);
        assert_eq!(said, Said::Yes(String::new()));
        assert!(shown.contains("It is on good.example.") && !shown.contains("not https"), "{shown}");
        for url in ["https://XN--80ak6aa92e.com/login", "https://%78n--80ak6aa92e.com/", "https://аррӏе.com/"] {
            let shown = plain(url, &["y"]).1;
            assert!(shown.contains("It is on xn--80ak6aa92e.com") && shown.contains("look like others"), "{shown}");
        }
        assert!(plain("https://%65vil.example/", &["n"]).1.contains("It is on evil.example."));
        assert!(plain("https://%65vil.example/", &["n"]).1.contains("written in code"));
    }

    // spec: C034
    #[test]
    fn a_long_address_stands_unbroken() {
        let address = format!("https://example.com/{}", "a1-".repeat(94));
        assert!(address.len() > 300);
        let params = format!(r#"{{"message":"Go","url":"{address}"}}"#);
        let (said, shown) = ask(&["y"], |asker| asker.visit("demo", Raw::parse(params.as_bytes()).unwrap()));
        assert!(said == Said::Yes(String::new()) && shown.contains(&format!("\n  {address}\n")), "{shown}");
    }

    #[test]
    fn a_model_is_stood_in_for() {
        let params = Raw::constant(
            r#"{"systemPrompt":"Be brief.","messages":[{"role":"user","content":{"type":"text","text":"2+2?"}}],"maxTokens":20}"#,
        );
        let (said, shown) = ask(&["", "4,", "I think", ""], |asker| asker.sampling("demo", params));
        assert_eq!(said, Said::Yes("4,\nI think".into()));
        assert!(shown.contains("system\n  Be brief.\nuser\n  2+2?\n\nType an answer of at most 20 tokens"), "{shown}");
        assert_eq!(ask(&[":no"], |asker| asker.sampling("demo", params)).0, Said::No);
        let brief = Raw::constant(r#"{"messages":[],"maxTokens":3}"#);
        let (said, shown) = ask(&[" one  two", "three", ""], |asker| asker.sampling("demo", brief));
        assert_eq!(said, Said::Yes(" one  two\nthree".into()));
        assert!(!shown.contains("are sent"), "{shown}");
        let (said, shown) = ask(&[" one  two", "three four", "five", ""], |asker| asker.sampling("demo", brief));
        assert_eq!(said, Said::Cut(" one  two\nthree".into()));
        assert!(shown.contains("Only the first 3 words are sent: each is at least one token.\n── answered"), "{shown}");
        let hidden = Raw::constant(
            r#"{"messages":[{"role":"system","content":{"type":"text","text":"SECRET PROMPT"}},{"role":"user"}],"maxTokens":20}"#,
        );
        let shown = ask(&[":no"], |asker| asker.sampling("demo", hidden)).1;
        assert!(shown.contains("SECRET PROMPT") && shown.matches("does not know").count() == 2, "{shown}");
    }
}
