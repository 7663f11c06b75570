//! Reads `#[arguments(..)]`, comments and names.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::ParseStream;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, LitInt, LitStr, Meta, Path, Result, Token};

/// The derive that reads the attributes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Arguments,
    Form,
    Output,
}

impl Role {
    fn attribute(self) -> &'static str {
        match self {
            Role::Arguments => "arguments",
            Role::Form => "form",
            Role::Output => "output",
        }
    }
}

/// The attributes of a type.
#[derive(Default)]
pub(crate) struct Container {
    pub(crate) deny_unknown: bool,
    pub(crate) rename_all: Option<Case>,
    pub(crate) tag: Option<LitStr>,
}

impl Container {
    pub(crate) fn of(role: Role, attributes: &[Attribute]) -> Result<Self> {
        let mut found = Container::default();
        each(role, attributes, |meta| {
            if role == Role::Arguments && meta.path.is_ident("deny_unknown") {
                found.deny_unknown = true;
            } else if meta.path.is_ident("rename_all") {
                found.rename_all = Some(Case::of(&meta.value()?.parse()?)?);
            } else if role != Role::Form && meta.path.is_ident("tag") {
                found.tag = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error(match role {
                    Role::Arguments => "no such attribute of a type: `deny_unknown`, `rename_all`, `tag`",
                    Role::Form => "no such attribute of a type: `rename_all`",
                    Role::Output => "no such attribute of a type: `rename_all`, `tag`",
                }));
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// A limit of a field, as the call of a method of `TypeSchema`.
struct Setter {
    /// In the order in which the methods check each other.
    rank: u8,
    call: TokenStream,
}

/// The value of a member that is left out.
pub(crate) enum Absent {
    /// The member is required.
    Error,
    /// That of `Default`.
    Default,
    /// This JSON.
    Json(String),
}

/// The attributes of a field or variant.
pub(crate) struct Field {
    pub(crate) rename: Option<LitStr>,
    pub(crate) absent: Absent,
    /// The place of `default`.
    pub(crate) absent_span: Span,
    pub(crate) check: Option<(Path, String)>,
    setters: Vec<Setter>,
}

impl Field {
    pub(crate) fn of(role: Role, attributes: &[Attribute]) -> Result<Self> {
        let mut found = Field {
            rename: None,
            absent: Absent::Error,
            absent_span: Span::call_site(),
            check: None,
            setters: Vec::new(),
        };
        let (mut pattern, mut check) = (None::<LitStr>, None::<Path>);
        each(role, attributes, |meta| found.take(role, &meta, &mut pattern, &mut check))?;
        match (pattern, check) {
            (Some(pattern), Some(check)) => found.check = Some((check, pattern.value())),
            (Some(pattern), None) => {
                let why = "nothing enforces this pattern: add `check = function`, a `fn(&T) -> bool`";
                return Err(Error::new(pattern.span(), why));
            }
            (None, Some(check)) => {
                return Err(Error::new_spanned(check, "add the `pattern` that the function enforces, for the schema"));
            }
            (None, None) => {}
        }
        found.setters.sort_by_key(|setter| setter.rank);
        Ok(found)
    }

    fn take(
        &mut self,
        role: Role,
        meta: &ParseNestedMeta<'_>,
        pattern: &mut Option<LitStr>,
        check: &mut Option<Path>,
    ) -> Result<()> {
        let Some(name) = meta.path.get_ident() else { return Err(meta.error("no such attribute of a field")) };
        let (key, span) = (name.to_string(), name.span());
        match key.as_str() {
            "rename" => self.rename = Some(meta.value()?.parse()?),
            other if role == Role::Output && !matches!(other, "format" | "title") => {
                return Err(meta.error("no such attribute of a field: `rename`, `title`, `format`"));
            }
            "pattern" | "check" | "header" if role == Role::Form => {
                return Err(meta.error("no form has `pattern`, `check` or `header`"));
            }
            "minimum" | "maximum" => {
                let limit = Literal::of(meta.value()?)?;
                let call = limit.limit(name)?;
                self.setters.push(Setter { rank: 0, call });
            }
            "min_length" | "max_length" | "min_items" | "max_items" => {
                let count: LitInt = meta.value()?.parse()?;
                let count = LitInt::new(&format!("{}usize", count.base10_parse::<u32>()?), count.span());
                let rank = u8::from(key.starts_with("max"));
                self.setters.push(Setter { rank, call: quote_spanned!(span=> .#name(#count)) });
            }
            "title" | "format" | "header" => {
                let text: LitStr = meta.value()?.parse()?;
                self.setters.push(Setter { rank: 0, call: quote_spanned!(span=> .#name(#text)) });
            }
            "pattern" => {
                let text: LitStr = meta.value()?.parse()?;
                self.setters.push(Setter { rank: 0, call: quote_spanned!(span=> .pattern(#text)) });
                *pattern = Some(text);
            }
            "check" => *check = Some(meta.value()?.parse()?),
            "default" => {
                self.absent_span = span;
                self.absent = Absent::Default;
                if meta.input.peek(Token![=]) {
                    let (json, call) = Literal::of(meta.value()?)?.default()?;
                    self.absent = Absent::Json(json);
                    self.setters.push(Setter { rank: 2, call });
                }
            }
            _ => {
                let why = "no such attribute of a field: `rename`, `title`, `default`, `minimum`, `maximum`, `min_length`, \
                    `max_length`, `min_items`, `max_items`, `format`, `pattern` with `check`, `header`";
                return Err(meta.error(why));
            }
        }
        Ok(())
    }

    /// Returns the calls of the limits.
    pub(crate) fn setters(&self) -> impl Iterator<Item = &TokenStream> {
        self.setters.iter().map(|setter| &setter.call)
    }

    /// Returns the place of the first limit, if there is one.
    pub(crate) fn first_setter(&self) -> Option<&TokenStream> {
        self.setters().next()
    }
}

/// A literal with its sign.
struct Literal {
    negative: Option<Token![-]>,
    lit: Lit,
}

impl Literal {
    fn of(input: ParseStream<'_>) -> Result<Self> {
        Ok(Literal { negative: input.parse()?, lit: input.parse()? })
    }

    fn sign(&self) -> &'static str {
        if self.negative.is_some() { "-" } else { "" }
    }

    /// Returns the call that sets a limit.
    fn limit(&self, name: &Ident) -> Result<TokenStream> {
        let span = name.span();
        match &self.lit {
            Lit::Int(value) => {
                let number = Lit::new(format!("{}i128", value.base10_digits()).parse()?);
                let sign = self.negative;
                Ok(quote_spanned!(span=> .#name(#sign #number)))
            }
            Lit::Float(value) => {
                let method = Ident::new(&format!("{name}_number"), span);
                let (text, number) = self.float(value.base10_parse()?, value.span())?;
                Ok(quote_spanned!(span=> .#method(#text, #number)))
            }
            other => Err(Error::new(other.span(), "a limit is a number")),
        }
    }

    /// Returns the text of a float in JSON, and its value as an expression.
    fn float(&self, value: f64, span: Span) -> Result<(String, TokenStream)> {
        if !value.is_finite() {
            return Err(Error::new(span, "no `f64` is as large"));
        }
        let (sign, number) = (self.negative, Lit::new(format!("{value:?}f64").parse()?));
        Ok((format!("{}{value:?}", self.sign()), quote_spanned!(span=> #sign #number)))
    }

    /// Returns a default as JSON, and the call that sets it.
    fn default(&self) -> Result<(String, TokenStream)> {
        let span = self.lit.span();
        let signed = |json: &str| format!("{}{json}", self.sign());
        match &self.lit {
            Lit::Int(value) => {
                let json = signed(value.base10_digits());
                let (sign, number) = (self.negative, Lit::new(format!("{}i128", value.base10_digits()).parse()?));
                let call = quote_spanned!(span=> .default_integer(#json, #sign #number));
                Ok((json, call))
            }
            Lit::Float(value) => {
                let (json, number) = self.float(value.base10_parse()?, span)?;
                let call = quote_spanned!(span=> .default_number(#json, #number));
                Ok((json, call))
            }
            Lit::Bool(value) if self.negative.is_none() => {
                let json = value.value.to_string();
                let call = quote_spanned!(span=> .default_boolean(#json));
                Ok((json, call))
            }
            Lit::Str(value) if self.negative.is_none() => {
                let json = json_string(&value.value());
                let call = quote_spanned!(span=> .default_text(#json, #value));
                Ok((json, call))
            }
            other => Err(Error::new(other.span(), "a default is a number, a text, `true` or `false`")),
        }
    }
}

/// Returns a text as JSON.
pub(crate) fn json_string(text: &str) -> String {
    let mut json = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            control @ '\0'..' ' => json.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

/// Passes each attribute of the derive to `take`.
fn each(role: Role, attributes: &[Attribute], mut take: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    let ours = attributes.iter().filter(|attribute| attribute.path().is_ident(role.attribute()));
    ours.into_iter().try_for_each(|attribute| attribute.parse_nested_meta(&mut take))
}

/// Returns the comment of an item: the lines of a paragraph are joined by spaces.
pub(crate) fn comment(attributes: &[Attribute]) -> Option<String> {
    let mut text = String::new();
    let mut paragraph = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let Meta::NameValue(doc) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &doc.value else { continue };
        for line in line.value().split('\n').map(str::trim) {
            if line.is_empty() {
                paragraph = true;
                continue;
            }
            if !text.is_empty() {
                text.push(if paragraph { '\n' } else { ' ' });
            }
            text.push_str(line);
            paragraph = false;
        }
    }
    Some(text).filter(|text| !text.is_empty())
}

/// A way to write names.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Lower,
    Upper,
    Camel,
    Pascal,
    Snake,
    Kebab,
    ScreamingSnake,
}

impl Case {
    fn of(name: &LitStr) -> Result<Self> {
        Ok(match name.value().as_str() {
            "lowercase" => Case::Lower,
            "UPPERCASE" => Case::Upper,
            "camelCase" => Case::Camel,
            "PascalCase" => Case::Pascal,
            "snake_case" => Case::Snake,
            "kebab-case" => Case::Kebab,
            "SCREAMING_SNAKE_CASE" => Case::ScreamingSnake,
            _ => {
                let why = "one of `lowercase`, `UPPERCASE`, `camelCase`, `PascalCase`, `snake_case`, `kebab-case`, \
                    `SCREAMING_SNAKE_CASE`";
                return Err(Error::new(name.span(), why));
            }
        })
    }

    /// Writes `name`, which is in snake case or Pascal case.
    fn write(self, name: &str) -> String {
        let mut words: Vec<String> = Vec::new();
        let mut new = true;
        for character in name.chars() {
            if character == '_' {
                new = true;
                continue;
            }
            match words.last_mut() {
                Some(word) if !new && !character.is_uppercase() => word.push(character),
                _ => words.push(character.to_lowercase().collect()),
            }
            new = false;
        }
        let capital = |word: &String| {
            let mut letters = word.chars();
            letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
        };
        match self {
            Case::Lower => words.concat(),
            Case::Upper => words.concat().to_uppercase(),
            Case::Pascal => words.iter().map(capital).collect(),
            Case::Camel => {
                let mut words = words.iter();
                let first = words.next().cloned().unwrap_or_default();
                words.map(capital).fold(first, |name, word| name + &word)
            }
            Case::Snake => words.join("_"),
            Case::Kebab => words.join("-"),
            Case::ScreamingSnake => words.join("_").to_uppercase(),
        }
    }
}

/// Returns the name of a field or variant.
pub(crate) fn name(ident: &Ident, rename: Option<&LitStr>, case: Option<Case>) -> String {
    match (rename, case) {
        (Some(name), _) => name.value(),
        (None, Some(case)) => case.write(&ident.unraw().to_string()),
        (None, None) => ident.unraw().to_string(),
    }
}

/// Returns an error unless the names differ.
pub(crate) fn unique<'n, T: ToTokens>(names: impl IntoIterator<Item = (&'n str, T)>) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for (name, place) in names {
        if !seen.insert(name) {
            return Err(Error::new_spanned(place, format!("a second `{name}`")));
        }
    }
    Ok(())
}
