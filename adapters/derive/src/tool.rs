//! `#[tool]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Ident, LitBool, LitStr, Result, Token, Type, Visibility, parenthesized};

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

/// What is needed of a function: the body is not parsed.
struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    ident: Ident,
    parameters: Vec<Type>,
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
        input.parse::<Token![fn]>()?;
        let ident: Ident = input.parse()?;
        if input.peek(Token![<]) {
            return Err(input.error("a tool is a plain function, without parameters for types"));
        }
        let inside;
        parenthesized!(inside in input);
        let mut parameters = Vec::new();
        while !inside.is_empty() {
            inside.call(Attribute::parse_outer)?;
            // The pattern.
            while !inside.peek(Token![:]) || inside.peek(Token![::]) {
                inside.parse::<proc_macro2::TokenTree>()?;
            }
            inside.parse::<Token![:]>()?;
            parameters.push(inside.parse()?);
            inside.parse::<Option<Token![,]>>()?;
        }
        // The rest is for the compiler.
        input.parse::<TokenStream>()?;
        Ok(Function { attributes, visibility, ident, parameters })
    }
}

/// Expands the attribute.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::of(attribute)?;
    let function = Function::parse.parse2(item.clone())?;
    let Function { attributes, visibility, ident, parameters } = &function;
    let [Type::Reference(state), call, arguments @ ..] = parameters.as_slice() else {
        let why = "a tool is a `fn(state: &mut State, call: &mut Call<'_>)`, or has its arguments behind them";
        return Err(Error::new_spanned(ident, why));
    };
    let state = fixed(&state.elem);
    let bare = ident.unraw();
    let name = options.name.unwrap_or_else(|| LitStr::new(&bare.to_string(), ident.span()));
    let description = text_of(attributes, options.description, ident)?;
    let (run, input) = match arguments {
        [] => (ident.to_token_stream(), None),
        [ty] => {
            let constant = fixed(ty);
            let input = quote_spanned! {ty.span()=>
                .input(<#constant as ::mcp_sansio::service::schema::Arguments<'static>>::SCHEMA)
            };
            let run = quote_spanned! {call.span()=> |state, call| {
                let arguments = call.read_args()?;
                #ident(state, call, arguments)
            }};
            (run, Some(input))
        }
        [_, other, ..] => return Err(Error::new_spanned(other, "one parameter has all arguments: a struct")),
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
    Ok(quote! {
        #item

        #[doc = #doc]
        #visibility const #constant: ::mcp_sansio::service::Tool<#state> =
            ::mcp_sansio::service::Tool::new(#name, #description, #run) #input #output #title #hints #reserve;
    })
}

/// The description of a tool.
fn text_of(attributes: &[Attribute], given: Option<LitStr>, place: &Ident) -> Result<LitStr> {
    match (given, comment(attributes)) {
        (Some(given), _) => Ok(given),
        (None, Some(text)) => Ok(LitStr::new(&text, place.span())),
        (None, None) => Err(Error::new(place.span(), "a tool needs a description: write a comment with `///`")),
    }
}
