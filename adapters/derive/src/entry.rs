//! `#[tool]`, `#[prompt]` and `#[resource]`: entries of tables from functions.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, Ident, Lifetime, LitBool, LitStr, Meta, Result, Token, Type, Visibility, parenthesized,
};

use crate::attributes::comment;
use crate::members::fixed;

/// The table of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Tool,
    Prompt,
    Resource,
}

/// The attributes of an entry.
#[derive(Default)]
struct Options {
    uri: Option<LitStr>,
    name: Option<LitStr>,
    description: Option<LitStr>,
    output: Option<Type>,
    hints: TokenStream,
    /// The calls that set the rest.
    setters: TokenStream,
}

impl Options {
    fn of(entry: Entry, attribute: TokenStream) -> Result<Self> {
        let parse = |input: ParseStream<'_>| {
            let mut found = Options::default();
            if entry == Entry::Resource {
                found.uri = Some(input.parse()?);
                input.parse::<Option<Token![,]>>()?;
            }
            let rest: TokenStream = input.parse()?;
            syn::meta::parser(|meta| found.take(entry, &meta)).parse2(rest)?;
            Ok(found)
        };
        parse.parse2(attribute)
    }

    fn take(&mut self, entry: Entry, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let Some(name) = meta.path.get_ident().cloned() else { return Err(meta.error("no such attribute")) };
        match (name.to_string().as_str(), entry) {
            ("name", _) => self.name = Some(meta.value()?.parse()?),
            ("description", _) => self.description = Some(meta.value()?.parse()?),
            ("output", Entry::Tool) => self.output = Some(meta.value()?.parse()?),
            ("title" | "reserve", _) | ("mime", Entry::Resource) | ("complete", Entry::Prompt | Entry::Resource) => {
                let value: Expr = meta.value()?.parse()?;
                self.setters.extend(quote!(.#name(#value)));
            }
            ("read_only" | "destructive" | "idempotent" | "open_world", Entry::Tool) => {
                let yes = match meta.input.peek(Token![=]) {
                    true => meta.value()?.parse()?,
                    false => LitBool::new(true, name.span()),
                };
                self.hints.extend(quote!(.#name(#yes)));
            }
            _ => {
                return Err(meta.error(match entry {
                    Entry::Tool => {
                        "no such attribute of a tool: `name`, `description`, `title`, `output`, `reserve`, \
                            `read_only`, `destructive`, `idempotent`, `open_world`"
                    }
                    Entry::Prompt => {
                        "no such attribute of a prompt: `name`, `description`, `title`, `complete`, `reserve`"
                    }
                    Entry::Resource => {
                        "no such attribute of a resource: `name`, `description`, `title`, `mime`, `complete`, `reserve`"
                    }
                }));
            }
        }
        Ok(())
    }
}

/// A parameter behind the call.
struct Parameter {
    attributes: Vec<Attribute>,
    pattern: TokenStream,
    ty: Type,
}

impl Parameter {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let mut pattern = TokenStream::new();
        while !input.peek(Token![:]) || input.peek(Token![::]) {
            pattern.extend([input.parse::<TokenTree>()?]);
        }
        input.parse::<Token![:]>()?;
        let ty = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Parameter { attributes, pattern, ty })
    }

    /// Returns the name of a member.
    fn member(&self) -> Result<Ident> {
        let ident = |input: ParseStream<'_>| {
            input.parse::<Option<Token![mut]>>()?;
            input.call(Ident::parse_any)
        };
        ident.parse2(self.pattern.clone()).map_err(|_| {
            Error::new_spanned(
                &self.pattern,
                "a member of the arguments has a name, or one parameter has all: a struct",
            )
        })
    }
}

/// The signature of a function; the body is not parsed.
struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    ident: Ident,
    parameters: Vec<Parameter>,
    /// The tokens behind the parameters.
    rest: TokenStream,
    unsafety: Option<Token![unsafe]>,
}

impl Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        if let Some(token) = input.parse::<Option<Token![async]>>()? {
            return Err(Error::new_spanned(
                token,
                "handlers are not async: answer later by the token of `call.later()`",
            ));
        }
        let unsafety = input.parse::<Option<Token![unsafe]>>()?;
        input.parse::<Token![fn]>()?;
        let ident: Ident = input.parse()?;
        if input.peek(Token![<]) {
            return Err(input.error("a handler is a plain function, without parameters for types"));
        }
        let inside;
        parenthesized!(inside in input);
        let mut parameters = Vec::new();
        while !inside.is_empty() {
            parameters.push(Parameter::parse(&inside)?);
        }
        // The rest is for the compiler.
        let rest = input.parse()?;
        Ok(Function { attributes, visibility, ident, parameters, rest, unsafety })
    }

    /// Returns the function, without the attributes of parameters, which the compiler refuses.
    fn item(&self) -> TokenStream {
        let Function { attributes, visibility, ident, parameters, rest, .. } = self;
        let parameters = parameters.iter().map(|Parameter { attributes, pattern, ty }| {
            let others = attributes.iter().filter(|attribute| !is_ours(attribute));
            quote!(#(#others)* #pattern: #ty)
        });
        quote!(#(#attributes)* #visibility fn #ident(#(#parameters),*) #rest)
    }
}

/// Returns whether an attribute of a parameter describes a member of the arguments.
fn is_ours(attribute: &Attribute) -> bool {
    attribute.path().is_ident("arguments") || attribute.path().is_ident("doc")
}

/// Expands the attribute.
pub(crate) fn expand(entry: Entry, attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::of(entry, attribute)?;
    let function = Function::parse.parse2(item)?;
    let Function { attributes, visibility, ident, parameters, unsafety, .. } = &function;
    if let Some(token) = unsafety {
        return Err(Error::new_spanned(token, "a handler is a safe function"));
    }
    let [Parameter { ty: Type::Reference(state), .. }, call, others @ ..] = parameters.as_slice() else {
        let why = match entry {
            Entry::Tool => "a tool is a `fn(state: &mut State, call: &mut Call<'_>)`, or has its arguments behind them",
            Entry::Prompt => {
                "a prompt is a `fn(state: &mut State, get: &mut GetPrompt<'_>)`, or has its arguments behind them"
            }
            Entry::Resource => {
                "a resource is a `fn(state: &mut State, read: &mut ReadResource<'_>)`, or has its variables behind them"
            }
        };
        return Err(Error::new_spanned(ident, why));
    };
    let state = fixed(&state.elem);
    let bare = ident.unraw();
    let name = options.name.clone().unwrap_or_else(|| LitStr::new(&bare.to_string(), ident.span()));
    let description = match (&options.description, comment(attributes)) {
        (Some(given), _) => Some(given.clone()),
        (None, comment) => comment.map(|text| LitStr::new(&text, ident.span())),
    };
    let described = |what: &str| {
        let why = format!("a {what} needs a description: write a comment with `///`");
        description.clone().ok_or_else(|| Error::new(ident.span(), why))
    };
    let (ty, value) = match entry {
        Entry::Tool => {
            let description = described("tool")?;
            let Read { run, ty, members } = read(ident, call, others)?;
            let input = ty.map(|ty| {
                quote_spanned!(ty.span()=> .input(<#ty as ::mcp_sansio::service::schema::Arguments<'static>>::SCHEMA))
            });
            let output = options.output.map(|ty| {
                let constant = fixed(&ty);
                quote_spanned! {ty.span()=>
                    .output(<#constant as ::mcp_sansio::service::schema::Output>::OUTPUT_SCHEMA)
                }
            });
            let hints = match options.hints {
                none if none.is_empty() => None,
                hints => Some(quote!(.hints(::mcp_sansio::service::ToolAnnotations::new() #hints))),
            };
            let tool = quote!(::mcp_sansio::service::Tool::new(#name, #description, #run) #input #output #hints);
            (quote!(Tool), quote!(#members #tool))
        }
        Entry::Prompt => {
            let description = described("prompt")?;
            let Read { run, ty, members } = read(ident, call, others)?;
            let list = ty.map(|ty| {
                quote_spanned! {ty.span()=>
                    const __ARGUMENTS: ::mcp_sansio::service::schema::TypeSchema =
                        <#ty as ::mcp_sansio::service::schema::Argument<'static>>::ARGUMENT;
                    const __LIST: [::mcp_sansio::service::PromptArgument<'static>; __ARGUMENTS.property_count()] =
                        __ARGUMENTS.prompt_arguments();
                }
            });
            let arguments = list.is_some().then(|| quote!(.arguments(&__LIST)));
            let prompt = quote!(::mcp_sansio::service::Prompt::new(#name, #description, #run) #arguments);
            (quote!(Prompt), quote!(#members #list #prompt))
        }
        Entry::Resource => {
            let Some(uri) = &options.uri else { return Err(Error::new_spanned(ident, "the URI is missing")) };
            let ty = if uri.value().contains('{') { quote!(ResourceTemplate) } else { quote!(Resource) };
            let run = variables(ident, call, others, uri)?;
            let description = description.as_ref().map(|text| quote!(.description(#text)));
            let resource = quote!(::mcp_sansio::service::#ty::new(#uri, #name, #run) #description);
            (ty, resource)
        }
    };
    let setters = options.setters;
    let constant = Ident::new(&bare.to_string().to_uppercase(), ident.span());
    let doc = format!("The entry of [`{bare}`] in a table.");
    let item = function.item();
    Ok(quote! {
        #item

        #[doc = #doc]
        #visibility const #constant: ::mcp_sansio::service::#ty<#state> = { #value #setters };
    })
}

/// The handler of an entry that reads arguments.
struct Read {
    run: TokenStream,
    /// The type of the arguments, with fixed lifetimes.
    ty: Option<TokenStream>,
    /// The definition of that type if the parameters are its members.
    members: Option<TokenStream>,
}

fn read(ident: &Ident, call: &Parameter, others: &[Parameter]) -> Result<Read> {
    match others {
        [] => Ok(Read { run: ident.to_token_stream(), ty: None, members: None }),
        [Parameter { ty, attributes, .. }] if !attributes.iter().any(is_ours) => {
            let run = quote_spanned! {call.ty.span()=> |__state, __call| {
                let __arguments = __call.read_args()?;
                #ident(__state, __call, __arguments)
            }};
            Ok(Read { run, ty: Some(fixed(ty)), members: None })
        }
        all => {
            let names = all.iter().map(Parameter::member).collect::<Result<Vec<_>>>()?;
            let (fields, borrows): (Vec<_>, Vec<_>) = all.iter().map(|parameter| borrowed(&parameter.ty)).unzip();
            let attributes = all.iter().map(|parameter| {
                let ours = parameter.attributes.iter().filter(|attribute| is_member(attribute));
                quote!(#(#ours)*)
            });
            let lifetime = borrows.contains(&true).then(|| quote!(<'message>));
            let members = Some(quote! {
                #[derive(::mcp_sansio::service::Arguments)]
                struct __Members #lifetime { #(#attributes #names: #fields),* }
            });
            let run = quote_spanned! {call.ty.span()=> |__state, __call| {
                let __Members { #(#names),* } = __call.read_args()?;
                #ident(__state, __call, #(#names),*)
            }};
            Ok(Read { run, ty: Some(quote!(__Members)), members })
        }
    }
}

/// Returns the handler of a resource: it reads the variables of the template, which are the other parameters.
fn variables(ident: &Ident, read: &Parameter, others: &[Parameter], uri: &LitStr) -> Result<TokenStream> {
    if others.is_empty() {
        return Ok(ident.to_token_stream());
    }
    let template = uri.value();
    let parts = template.split('{').skip(1).filter_map(|part| part.split('}').next());
    let known: Vec<_> = parts.map(|name| name.trim_start_matches('+')).collect();
    let mut names = Vec::new();
    for parameter in others {
        let name = parameter.member()?;
        if !known.contains(&name.unraw().to_string().as_str()) {
            let why = format!("`{template}` has no variable `{}`", name.unraw());
            return Err(Error::new(name.span(), why));
        }
        names.push(name);
    }
    let texts = names.iter().map(|name| name.unraw().to_string());
    let values = others.iter().zip(texts).map(|(parameter, text)| {
        quote_spanned!(parameter.ty.span()=> __read.var(#text).and_then(::mcp_sansio::service::schema::Variable::read))
    });
    Ok(quote_spanned! {read.ty.span()=> |__state, __read| {
        let (#(::core::option::Option::Some(#names),)*) = (#(#values,)*) else { return __read.not_found() };
        #ident(__state, __read, #(#names),*)
    }})
}

/// Returns whether an attribute of a parameter goes to the field: `#[arguments]` alone only makes it a member.
fn is_member(attribute: &Attribute) -> bool {
    is_ours(attribute) && !matches!(attribute.meta, Meta::Path(_))
}

/// Returns a type whose lifetimes are that of the message, and whether it has some.
fn borrowed(ty: &Type) -> (TokenStream, bool) {
    let mut borrows = false;
    let tokens = borrow(ty.to_token_stream(), &mut borrows);
    (tokens, borrows)
}

fn borrow(tokens: TokenStream, borrows: &mut bool) -> TokenStream {
    let mut replaced = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), borrow(group.stream(), borrows));
                inner.set_span(group.span());
                replaced.extend([TokenTree::Group(inner)]);
            }
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                *borrows = true;
                tokens.next();
                replaced.extend(Lifetime::new("'message", punct.span()).into_token_stream());
            }
            TokenTree::Punct(punct) if punct.as_char() == '&' => {
                replaced.extend([TokenTree::Punct(punct.clone())]);
                if !matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '\'') {
                    *borrows = true;
                    replaced.extend(Lifetime::new("'message", punct.span()).into_token_stream());
                }
            }
            other => replaced.extend([other]),
        }
    }
    replaced
}
