//! `#[tool]`.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, Ident, Lifetime, LitBool, LitStr, Meta, Result, Token, Type, Visibility, parenthesized,
};

use crate::attributes::comment;
use crate::members::fixed;

/// The attributes of a tool.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    description: Option<LitStr>,
    title: Option<LitStr>,
    output: Option<Type>,
    reserve: Option<Expr>,
    hints: TokenStream,
}

impl Options {
    fn of(attribute: TokenStream) -> Result<Self> {
        let mut found = Options::default();
        let parser = syn::meta::parser(|meta| {
            let Some(name) = meta.path.get_ident().cloned() else { return Err(meta.error("no such attribute")) };
            match name.to_string().as_str() {
                "name" => found.name = Some(meta.value()?.parse()?),
                "description" => found.description = Some(meta.value()?.parse()?),
                "title" => found.title = Some(meta.value()?.parse()?),
                "output" => found.output = Some(meta.value()?.parse()?),
                "reserve" => found.reserve = Some(meta.value()?.parse()?),
                "read_only" | "destructive" | "idempotent" | "open_world" => {
                    let yes = match meta.input.peek(Token![=]) {
                        true => meta.value()?.parse()?,
                        false => LitBool::new(true, name.span()),
                    };
                    found.hints.extend(quote!(.#name(#yes)));
                }
                _ => {
                    let why = "no such attribute of a tool: `name`, `description`, `title`, `output`, `reserve`, \
                        `read_only`, `destructive`, `idempotent`, `open_world`";
                    return Err(meta.error(why));
                }
            }
            Ok(())
        });
        parser.parse2(attribute)?;
        Ok(found)
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
            return Err(input.error("a tool is a plain function, without parameters for types"));
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
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::of(attribute)?;
    let function = Function::parse.parse2(item)?;
    let Function { attributes, visibility, ident, parameters, unsafety, .. } = &function;
    if let Some(token) = unsafety {
        return Err(Error::new_spanned(token, "a tool is a safe function"));
    }
    let [Parameter { ty: Type::Reference(state), .. }, call, arguments @ ..] = parameters.as_slice() else {
        let why = "a tool is a `fn(state: &mut State, call: &mut Call<'_>)`, or has its arguments behind them";
        return Err(Error::new_spanned(ident, why));
    };
    let state = fixed(&state.elem);
    let bare = ident.unraw();
    let name = options.name.unwrap_or_else(|| LitStr::new(&bare.to_string(), ident.span()));
    let description = text_of(attributes, options.description, ident)?;
    let mut members = None;
    let (run, input) = match arguments {
        [] => (ident.to_token_stream(), None),
        [Parameter { ty, attributes, .. }] if !attributes.iter().any(is_ours) => {
            let constant = fixed(ty);
            let input = quote_spanned! {ty.span()=>
                .input(<#constant as ::mcp_sansio::service::schema::Arguments<'static>>::SCHEMA)
            };
            let run = quote_spanned! {call.ty.span()=> |state, call| {
                let arguments = call.read_args()?;
                #ident(state, call, arguments)
            }};
            (run, Some(input))
        }
        all => {
            let names = all.iter().map(Parameter::member).collect::<Result<Vec<_>>>()?;
            let (fields, borrows): (Vec<_>, Vec<_>) = all.iter().map(|parameter| borrowed(&parameter.ty)).unzip();
            let attributes = all.iter().map(|parameter| {
                let ours = parameter.attributes.iter().filter(|attribute| is_member(attribute));
                quote!(#(#ours)*)
            });
            let lifetime = borrows.contains(&true).then(|| quote!(<'message>));
            members = Some(quote! {
                #[derive(::mcp_sansio::service::Arguments)]
                struct __Members #lifetime { #(#attributes #names: #fields),* }
            });
            let run = quote_spanned! {call.ty.span()=> |state, call| {
                let __Members { #(#names),* } = call.read_args()?;
                #ident(state, call, #(#names),*)
            }};
            (run, Some(quote!(.input(<__Members as ::mcp_sansio::service::schema::Arguments>::SCHEMA))))
        }
    };
    let title = options.title.map(|title| quote!(.title(#title)));
    let output = options.output.map(|ty| {
        let constant = fixed(&ty);
        quote_spanned!(ty.span()=> .output(<#constant as ::mcp_sansio::service::schema::Output>::OUTPUT_SCHEMA))
    });
    let reserve = options.reserve.map(|bytes| quote!(.reserve(#bytes)));
    let hints = match options.hints {
        none if none.is_empty() => None,
        hints => Some(quote!(.hints(::mcp_sansio::service::ToolAnnotations::new() #hints))),
    };
    let constant = Ident::new(&bare.to_string().to_uppercase(), ident.span());
    let doc = format!("The entry of [`{bare}`] in a table of tools.");
    let item = function.item();
    Ok(quote! {
        #item

        #[doc = #doc]
        #visibility const #constant: ::mcp_sansio::service::Tool<#state> = {
            #members
            ::mcp_sansio::service::Tool::new(#name, #description, #run) #input #output #title #hints #reserve
        };
    })
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

/// The description of a tool.
fn text_of(attributes: &[Attribute], given: Option<LitStr>, place: &Ident) -> Result<LitStr> {
    match (given, comment(attributes)) {
        (Some(given), _) => Ok(given),
        (None, Some(text)) => Ok(LitStr::new(&text, place.span())),
        (None, None) => Err(Error::new(place.span(), "a tool needs a description: write a comment with `///`")),
    }
}
