//! `#[tool]`, `#[prompt]` and `#[resource]`: entries of tables from functions.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, Ident, Lifetime, LitBool, LitStr, Meta, Result, ReturnType, Token, Type, Visibility,
    parenthesized,
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
    state: Option<Type>,
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
            ("state", _) => self.state = Some(meta.value()?.parse()?),
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
                        "no such attribute of a tool: `name`, `description`, `title`, `output`, `state`, `reserve`, \
                            `read_only`, `destructive`, `idempotent`, `open_world`"
                    }
                    Entry::Prompt => {
                        "no such attribute of a prompt: `name`, `description`, `title`, `complete`, `state`, `reserve`"
                    }
                    Entry::Resource => {
                        "no such attribute of a resource: `name`, `description`, `title`, `mime`, `complete`, `state`, \
                            `reserve`"
                    }
                }));
            }
        }
        Ok(())
    }
}

/// A parameter.
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
    output: ReturnType,
    /// The tokens behind the type that is returned.
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
        let output = input.parse()?;
        // The rest is for the compiler.
        let rest = input.parse()?;
        Ok(Function { attributes, visibility, ident, parameters, output, rest, unsafety })
    }

    /// Returns the function, without the attributes of parameters, which the compiler refuses.
    fn item(&self) -> TokenStream {
        let Function { attributes, visibility, ident, parameters, output, rest, .. } = self;
        let parameters = parameters.iter().map(|Parameter { attributes, pattern, ty }| {
            let others = attributes.iter().filter(|attribute| !is_ours(attribute));
            quote!(#(#others)* #pattern: #ty)
        });
        quote!(#(#attributes)* #visibility fn #ident(#(#parameters),*) #output #rest)
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
    if let Some(token) = function.unsafety {
        return Err(Error::new_spanned(token, "a handler is a safe function"));
    }
    let handler = Handler::of(&function, &options)?;
    let (ty, value) = match entry {
        Entry::Tool => tool(&handler, &options)?,
        Entry::Prompt => prompt(&handler, &options)?,
        Entry::Resource => resource(&handler, &options)?,
    };
    let Function { visibility, ident, .. } = &function;
    let (state, setters, bare) = (&handler.state, &options.setters, ident.unraw());
    let constant = Ident::new(&bare.to_string().to_uppercase(), ident.span());
    let doc = format!("The entry of [`{bare}`] in a table.");
    let item = function.item();
    Ok(quote! {
        #item

        #[doc = #doc]
        #visibility const #constant: ::mcp_sansio::service::#ty<#state> = { #value #setters };
    })
}

/// A function as a handler.
struct Handler<'f> {
    ident: &'f Ident,
    name: LitStr,
    description: Option<LitStr>,
    /// The type of the state.
    state: TokenStream,
    takes_state: bool,
    /// The parameter for the context of the request.
    context: Option<&'f Parameter>,
    /// The other parameters.
    others: &'f [Parameter],
    output: &'f ReturnType,
}

impl<'f> Handler<'f> {
    fn of(function: &'f Function, options: &Options) -> Result<Self> {
        let Function { attributes, ident, parameters, output, .. } = function;
        let (mut others, mut state, mut context) = (parameters.as_slice(), None, None);
        while let [first, rest @ ..] = others {
            let Type::Reference(reference) = &first.ty else { break };
            if reference.mutability.is_none() {
                break;
            }
            let is_context = state.is_some() || named(&reference.elem, &CONTEXTS);
            match (is_context, context) {
                (true, None) => context = Some(first),
                (false, None) => state = Some(fixed(&reference.elem)),
                (_, Some(_)) => {
                    return Err(Error::new_spanned(
                        &first.ty,
                        "the state and the context come first, and no other `&mut`",
                    ));
                }
            }
            others = rest;
        }
        let takes_state = state.is_some();
        let state = match (state, &options.state) {
            (Some(_), Some(ty)) => return Err(Error::new_spanned(ty, "the state is that of the first parameter")),
            (Some(state), None) => state,
            (None, Some(ty)) => ty.to_token_stream(),
            (None, None) => quote!(()),
        };
        let name = options.name.clone().unwrap_or_else(|| LitStr::new(&ident.unraw().to_string(), ident.span()));
        let comment = || comment(attributes).map(|text| LitStr::new(&text, ident.span()));
        let description = options.description.clone().or_else(comment);
        Ok(Handler { ident, name, description, state, takes_state, context, others, output })
    }

    fn described(&self, what: &str) -> Result<&LitStr> {
        let why = format!("a {what} needs a description: write a comment with `///`");
        self.description.as_ref().ok_or_else(|| Error::new(self.ident.span(), why))
    }

    /// Returns the type of the value that the function returns; `None` if it answers by itself, with a `HandlerResult`.
    fn value(&self) -> Option<TokenStream> {
        match self.output {
            ReturnType::Type(_, ty) if named(ty, &["HandlerResult"]) => None,
            ReturnType::Type(_, ty) => Some(ty.to_token_stream()),
            ReturnType::Default => Some(quote!(())),
        }
    }

    /// Returns the function for the table: a closure that runs `before`, and then the function with `arguments`.
    fn run(&self, before: &TokenStream, arguments: &[TokenStream]) -> TokenStream {
        let ident = self.ident;
        let value = self.value();
        if let (true, Some(_), [], None) = (self.takes_state, self.context, self.others, &value) {
            return ident.to_token_stream();
        }
        let state = self.takes_state.then(|| quote!(__state)).into_iter();
        let context = self.context.map(|_| quote!(__context)).into_iter();
        let all = state.chain(context).chain(arguments.iter().cloned());
        let called = quote!(#ident(#(#all),*));
        let body = match (value, self.output) {
            (None, _) => called,
            (Some(_), output) => quote_spanned! {output.span()=> {
                #[allow(unused_imports)]
                use ::mcp_sansio::service::schema::{DisplayAnswer as _, PlainValue as _, TextAnswer as _};
                let __returned = ::mcp_sansio::service::schema::Returned(#called).value(__context)?;
                ::mcp_sansio::service::schema::Answered(__returned).write(__context)
            }},
        };
        let span = self.context.map_or(ident.span(), |context| context.ty.span());
        quote_spanned!(span=> |__state, __context| { #before #body })
    }
}

/// The types of contexts, by which they are known where there is no state before them.
const CONTEXTS: [&str; 3] = ["Call", "GetPrompt", "ReadResource"];

/// The types of members: a single parameter of another type has all arguments.
const MEMBERS: [&str; 18] = [
    "String", "Text", "Raw", "Option", "Vec", "bool", "f32", "f64", "i8", "i16", "i32", "i64", "isize", "u8", "u16",
    "u32", "u64", "usize",
];

/// Returns whether a type is a path that ends in one of these names.
fn named(ty: &Type, names: &[&str]) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}

/// Returns the type and the value of the entry of a tool.
fn tool(handler: &Handler<'_>, options: &Options) -> Result<(TokenStream, TokenStream)> {
    let (name, description) = (&handler.name, handler.described("tool")?);
    let Read { run, ty, members } = read(handler)?;
    let input = ty.map(
        |ty| quote_spanned!(ty.span()=> .input(<#ty as ::mcp_sansio::service::schema::Arguments<'static>>::SCHEMA)),
    );
    let hints = match &options.hints {
        none if none.is_empty() => None,
        hints => Some(quote!(.hints(::mcp_sansio::service::ToolAnnotations::new() #hints))),
    };
    let output = options.output.as_ref().map(|ty| {
        let constant = fixed(ty);
        quote_spanned! {ty.span()=>
            .output(<#constant as ::mcp_sansio::service::schema::Output>::OUTPUT_SCHEMA)
        }
    });
    let mut tool = quote!(::mcp_sansio::service::Tool::new(#name, #description, #run) #input #output #hints);
    if let (None, Some(value)) = (&output, handler.value().filter(|value| !has_impl(value.clone()))) {
        let value = fixed(value);
        tool = quote!({
            #[allow(unused_imports)]
            use ::mcp_sansio::service::schema::NoOutput as _;
            let __tool = #tool;
            match ::mcp_sansio::service::schema::OutputOf::<#value>::SCHEMA {
                ::core::option::Option::Some(__schema) => __tool.output(__schema),
                ::core::option::Option::None => __tool,
            }
        });
    }
    Ok((quote!(Tool), quote!(#members #tool)))
}

/// Returns whether a type has an `impl Trait`, which has no name.
fn has_impl(ty: TokenStream) -> bool {
    ty.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "impl",
        TokenTree::Group(group) => has_impl(group.stream()),
        _ => false,
    })
}

/// Returns the type and the value of the entry of a prompt.
fn prompt(handler: &Handler<'_>, _: &Options) -> Result<(TokenStream, TokenStream)> {
    let (name, description) = (&handler.name, handler.described("prompt")?);
    let Read { run, ty, members } = read(handler)?;
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
    Ok((quote!(Prompt), quote!(#members #list #prompt)))
}

/// Returns the type and the value of the entry of a resource or template.
fn resource(handler: &Handler<'_>, options: &Options) -> Result<(TokenStream, TokenStream)> {
    let Some(uri) = &options.uri else { return Err(Error::new_spanned(handler.ident, "the URI is missing")) };
    let ty = if uri.value().contains('{') { quote!(ResourceTemplate) } else { quote!(Resource) };
    let (name, run) = (&handler.name, variables(handler, uri)?);
    let description = handler.description.as_ref().map(|text| quote!(.description(#text)));
    let resource = quote!(::mcp_sansio::service::#ty::new(#uri, #name, #run) #description);
    Ok((ty, resource))
}

/// The handler of an entry that reads arguments.
struct Read {
    run: TokenStream,
    /// The type of the arguments, with fixed lifetimes.
    ty: Option<TokenStream>,
    /// The definition of that type if the parameters are its members.
    members: Option<TokenStream>,
}

fn read(handler: &Handler<'_>) -> Result<Read> {
    match handler.others {
        [] => Ok(Read { run: handler.run(&TokenStream::new(), &[]), ty: None, members: None }),
        [Parameter { ty, attributes, .. }] if !is_member_type(ty) && !attributes.iter().any(is_ours) => {
            let before = quote_spanned!(ty.span()=> let __arguments = __context.read_args()?;);
            Ok(Read { run: handler.run(&before, &[quote!(__arguments)]), ty: Some(fixed(ty)), members: None })
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
            let before = quote!(let __Members { #(#names),* } = __context.read_args()?;);
            let arguments: Vec<_> = names.iter().map(ToTokens::to_token_stream).collect();
            Ok(Read { run: handler.run(&before, &arguments), ty: Some(quote!(__Members)), members })
        }
    }
}

/// Returns whether a single parameter of this type is a member, and not all arguments.
fn is_member_type(ty: &Type) -> bool {
    matches!(ty, Type::Reference(_) | Type::Array(_)) || named(ty, &MEMBERS)
}

/// Returns the handler of a resource: it reads the variables of the template, which are the other parameters.
fn variables(handler: &Handler<'_>, uri: &LitStr) -> Result<TokenStream> {
    let template = uri.value();
    let parts = template.split('{').skip(1).filter_map(|part| part.split('}').next());
    let known: Vec<_> = parts.map(|name| name.trim_start_matches('+')).collect();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for parameter in handler.others {
        let name = parameter.member()?;
        let text = name.unraw().to_string();
        if !known.contains(&text.as_str()) {
            return Err(Error::new(name.span(), format!("`{template}` has no variable `{text}`")));
        }
        names.push(name.into_token_stream());
        values.push(quote_spanned! {parameter.ty.span()=>
            __context.var(#text).and_then(::mcp_sansio::service::schema::Variable::read)
        });
    }
    let before = match names.as_slice() {
        [] => TokenStream::new(),
        _ => quote! {
            let (#(::core::option::Option::Some(#names),)*) = (#(#values,)*) else { return __context.not_found() };
        },
    };
    Ok(handler.run(&before, &names))
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
