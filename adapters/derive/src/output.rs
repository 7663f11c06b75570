//! `#[derive(Output)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, GenericParam, LitStr, Result, Type};

use crate::attributes::{Container, Role, json_string, unique};
use crate::members::{Member, Variants, fixed, members, unit_names};

/// Expands the derive.
pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let container = Container::of(Role::Output, &input.attrs)?;
    for parameter in &input.generics.params {
        if !matches!(parameter, GenericParam::Lifetime(_)) {
            return Err(Error::new_spanned(parameter, "a generic type has no constant schema"));
        }
    }
    let shape = match (&input.data, &container.tag) {
        (Data::Struct(data), _) => object(&input.ident, &container, &data.fields)?,
        (Data::Enum(data), None) => names(&input.ident, &container, data)?,
        (Data::Enum(data), Some(tag)) => tagged(&input.ident, &container, tag, data)?,
        (Data::Union(_), _) => return Err(Error::new_spanned(&input.ident, "a union has no schema")),
    };
    Ok(implement(&input, &shape))
}

/// The schema of a type, and the body of its writer.
struct Shape {
    schema: TokenStream,
    write: TokenStream,
    is_object: bool,
}

/// A struct.
fn object(ident: &Ident, container: &Container, fields: &Fields) -> Result<Shape> {
    let Fields::Named(fields) = fields else {
        return Err(Error::new_spanned(ident, "an output has names: a struct with named fields"));
    };
    if let Some(tag) = &container.tag {
        return Err(Error::new(tag.span(), "`tag` is for enums"));
    }
    let members = members(Role::Output, container, fields)?;
    unique(members.iter().map(|member| (member.name.as_str(), &member.ident)))?;
    let properties = properties(&members);
    let writes = members.iter().map(|member| {
        let ident = &member.ident;
        write(member, &quote_spanned!(member.ty.span()=> &self.#ident))
    });
    let write = quote! {
        let mut __object = __mcp::ObjectWriter::new(out);
        #(#writes)*
        __object.close()
    };
    Ok(Shape { schema: quote!(__mcp::TypeSchema::object(#properties)), write, is_object: true })
}

/// An enum of unit variants.
fn names(ident: &Ident, container: &Container, data: &DataEnum) -> Result<Shape> {
    let names = unit_names(Role::Output, container, ident, data)?;
    let idents = data.variants.iter().map(|variant| &variant.ident);
    let texts = names.iter().map(|name| json_string(name));
    let write = quote!(::mcp_sansio::sink::Sink::put(out, match self { #(Self::#idents => #texts,)* }.as_bytes()));
    Ok(Shape { schema: quote!(__mcp::TypeSchema::one_of(&[#(#names),*])), write, is_object: false })
}

/// An enum whose objects have a tag.
fn tagged(ident: &Ident, container: &Container, tag: &LitStr, data: &DataEnum) -> Result<Shape> {
    let Variants { members, names, .. } = Variants::of(Role::Output, container, tag.value(), ident, data)?;
    let schemas = members.iter().zip(&names).map(|((_, members), name)| {
        let properties = properties(members);
        quote!(__mcp::Variant::new(#name, #properties))
    });
    let schema = quote!(__mcp::TypeSchema::tagged(#tag, const { &[#(#schemas),*] }));
    let arms = members.iter().zip(&names).map(|((ident, members), name)| {
        let first = format!("{}:{}", json_string(&tag.value()), json_string(name));
        let fields = members.iter().map(|member| &member.ident);
        let writes = members.iter().map(|member| {
            let ident = &member.ident;
            write(member, &quote!(#ident))
        });
        quote!(Self::#ident { #(#fields),* } => {
            __object.literal(#first)?;
            #(#writes)*
        })
    });
    let write = quote! {
        let mut __object = __mcp::ObjectWriter::new(out);
        match self { #(#arms)* }
        __object.close()
    };
    Ok(Shape { schema, write, is_object: true })
}

/// Returns the implementations.
fn implement(input: &DeriveInput, Shape { schema, write, is_object }: &Shape) -> TokenStream {
    let ident = &input.ident;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let constant = fixed(&ty_generics);
    // The constant without a name checks the schema even if nothing uses it.
    let whole = match is_object {
        false => quote!(const _: __mcp::TypeSchema = <#ident #constant as __mcp::OutputValue>::OUTPUT;),
        true => quote! {
            #[automatically_derived]
            impl #impl_generics __mcp::Output for #ident #ty_generics #where_clause {
                const OUTPUT_SCHEMA: &'static str = {
                    const OUTPUT: __mcp::TypeSchema = <#ident #constant as __mcp::OutputValue>::OUTPUT;
                    const TEXT: [u8; OUTPUT.text_len()] = OUTPUT.text();
                    __mcp::schema_text(&TEXT)
                };
            }

            const _: &str = <#ident #constant as __mcp::Output>::OUTPUT_SCHEMA;
        },
    };
    quote! {
        const _: () = {
            use ::mcp_sansio::service::schema as __mcp;

            #[automatically_derived]
            impl #impl_generics __mcp::OutputValue for #ident #ty_generics #where_clause {
                const OUTPUT: __mcp::TypeSchema = #schema;

                fn write(
                    &self,
                    out: &mut dyn ::mcp_sansio::sink::Sink,
                ) -> ::core::result::Result<(), ::mcp_sansio::FullError> {
                    #write
                }
            }

            #whole
        };
    }
}

/// Returns the properties of a schema.
fn properties(members: &[Member]) -> TokenStream {
    let entries = members.iter().map(|member| member.property(&own(&member.ty)));
    quote!(const { &[#(#entries),*] })
}

/// Returns the schema of a type.
fn own(ty: &Type) -> TokenStream {
    quote_spanned!(ty.span()=> <#ty as __mcp::OutputValue>::OUTPUT)
}

/// Returns the statement that writes a member; `value` is a reference to it.
fn write(member: &Member, value: &TokenStream) -> TokenStream {
    let key = format!("{}:", json_string(&member.name));
    if member.is_option {
        return quote_spanned!(member.ty.span()=>
            if let ::core::option::Option::Some(value) = #value {
                __object.member(#key, value)?;
            }
        );
    }
    quote_spanned!(member.ty.span()=> __object.member(#key, #value)?;)
}
