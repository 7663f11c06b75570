//! `#[derive(Arguments)]`, `#[derive(Form)]` and `#[derive(Output)]`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, GenericParam, Lifetime, LitStr, Result, Type};

use crate::attributes::{Absent, Container, Role, json_string, unique};
use crate::members::{Member, Variants, fixed, listed, members, unit_names};

/// Expands the derive.
pub(crate) fn expand(role: Role, input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let container = Container::of(role, &input.attrs)?;
    let target = Target::of(role, &input)?;
    let shape = match (&input.data, &container.tag) {
        (Data::Struct(data), _) => target.object(&container, &data.fields)?,
        (Data::Enum(_), _) if role == Role::Form => {
            return Err(Error::new_spanned(&input.ident, "a form is a struct"));
        }
        (Data::Enum(data), None) => target.names(&container, data)?,
        (Data::Enum(data), Some(tag)) => target.tagged(&container, tag, data)?,
        (Data::Union(_), _) => return Err(Error::new_spanned(&input.ident, "a union has no schema")),
    };
    Ok(target.implement(&shape))
}

/// The schema of a type, and the body of the function that reads or writes it.
struct Shape {
    schema: TokenStream,
    body: TokenStream,
    is_object: bool,
}

/// The type for which the traits are implemented.
struct Target<'i> {
    role: Role,
    input: &'i DeriveInput,
    /// That of the message: the one of the type, or a new one.
    lifetime: Lifetime,
}

impl<'i> Target<'i> {
    fn of(role: Role, input: &'i DeriveInput) -> Result<Self> {
        let mut lifetime = None;
        for parameter in &input.generics.params {
            match parameter {
                GenericParam::Lifetime(first) if lifetime.is_none() => lifetime = Some(first.lifetime.clone()),
                GenericParam::Lifetime(_) if role == Role::Output => {}
                GenericParam::Lifetime(_) => {
                    return Err(Error::new_spanned(parameter, "one lifetime at most: that of the message"));
                }
                _ => return Err(Error::new_spanned(parameter, "a generic type has no constant schema")),
            }
        }
        let lifetime = lifetime.unwrap_or_else(|| Lifetime::new("'message", Span::call_site()));
        Ok(Target { role, input, lifetime })
    }

    /// A struct.
    fn object(&self, container: &Container, fields: &Fields) -> Result<Shape> {
        let Fields::Named(fields) = fields else {
            return Err(Error::new_spanned(
                &self.input.ident,
                match self.role {
                    Role::Arguments | Role::Form => "arguments have names: a struct with named fields",
                    Role::Output => "an output has names: a struct with named fields",
                },
            ));
        };
        if let Some(tag) = &container.tag {
            return Err(Error::new(tag.span(), "`tag` is for enums"));
        }
        let members = members(self.role, container, fields)?;
        unique(members.iter().map(|member| (member.name.as_str(), &member.ident)))?;
        let properties = self.properties(&members);
        let closed = container.deny_unknown.then(|| quote!(.closed()));
        let body = match self.role {
            Role::Output => {
                let writes = members.iter().map(|member| {
                    let ident = &member.ident;
                    write(member, &quote_spanned!(member.ty.span()=> &self.#ident))
                });
                quote! {
                    let mut __object = __mcp::ObjectWriter::new(out);
                    #(#writes)*
                    __object.close()
                }
            }
            Role::Arguments | Role::Form => {
                let names: Vec<_> = members.iter().map(|member| member.name.as_str()).collect();
                let find = self.find(&names, container);
                let reads = members.iter().enumerate().map(|(index, member)| self.read(member, index));
                quote! {
                    #find
                    ::core::option::Option::Some(Self { #(#reads),* })
                }
            }
        };
        Ok(Shape { schema: quote!(__mcp::TypeSchema::object(#properties) #closed), body, is_object: true })
    }

    /// An enum of unit variants.
    fn names(&self, container: &Container, data: &DataEnum) -> Result<Shape> {
        let names = unit_names(self.role, container, &self.input.ident, data)?;
        let idents = data.variants.iter().map(|variant| &variant.ident);
        let body = if self.role == Role::Output {
            let texts = names.iter().map(|name| json_string(name));
            quote!(::mcp_sansio::sink::Sink::put(out, match self { #(Self::#idents => #texts,)* }.as_bytes()))
        } else {
            let (expected, index) = (listed(&names), 0..names.len());
            quote! {
                match reader.variant(value, &[#(#names),*], #expected)? {
                    #(#index => ::core::option::Option::Some(Self::#idents),)*
                    _ => ::core::option::Option::None,
                }
            }
        };
        Ok(Shape { schema: quote!(__mcp::TypeSchema::one_of(&[#(#names),*])), body, is_object: false })
    }

    /// An enum whose objects have a tag.
    fn tagged(&self, container: &Container, tag: &LitStr, data: &DataEnum) -> Result<Shape> {
        let variants = Variants::of(self.role, container, tag.value(), &self.input.ident, data)?;
        let schemas = variants.members.iter().zip(&variants.names).map(|((_, members), name)| {
            let properties = self.properties(members);
            quote!(__mcp::Variant::new(#name, #properties))
        });
        let closed = container.deny_unknown.then(|| quote!(.closed()));
        let schema = quote!(__mcp::TypeSchema::tagged(#tag, const { &[#(#schemas),*] }) #closed);
        let body = match self.role {
            Role::Output => write_tagged(tag, &variants),
            Role::Arguments | Role::Form => self.read_tagged(container, tag, &variants),
        };
        Ok(Shape { schema, body, is_object: true })
    }

    /// Returns the body that reads an object with a tag.
    fn read_tagged(&self, container: &Container, tag: &LitStr, variants: &Variants<'_>) -> TokenStream {
        let Variants { members, names, union } = variants;
        let all = union.names();
        let find = self.find(&all, container);
        let arms = members.iter().enumerate().map(|(index, (ident, members))| {
            let place = |member: &Member| all.iter().position(|name| *name == member.name).unwrap_or_default();
            let reads = members.iter().map(|member| self.read(member, place(member)));
            quote!(#index => ::core::option::Option::Some(Self::#ident { #(#reads),* }),)
        });
        let expected = listed(names);
        quote! {
            #find
            match reader.tag(value0, #tag, &[#(#names),*], #expected)? {
                #(#arms)*
                _ => ::core::option::Option::None,
            }
        }
    }

    /// Returns the statements that find the values of the members: `value0` and so on.
    fn find(&self, names: &[&str], container: &Container) -> TokenStream {
        let (lifetime, count) = (&self.lifetime, names.len());
        let unknown = match container.deny_unknown {
            true => {
                let expected = if names.is_empty() { "none".into() } else { listed(names) };
                quote!(::core::option::Option::Some(#expected))
            }
            false => quote!(::core::option::Option::None),
        };
        let found = (0..count).map(|index| format_ident!("value{index}"));
        quote! {
            let mut values: [::core::option::Option<::mcp_sansio::json::Raw<#lifetime>>; #count] =
                [::core::option::Option::None; #count];
            reader.members(value, &[#(#names),*], &mut values, #unknown)?;
            let [#(#found),*] = values;
        }
    }

    /// Returns the properties of a schema.
    fn properties(&self, members: &[Member]) -> TokenStream {
        let entries = members.iter().map(|member| member.property(&self.own(&member.ty)));
        quote!(const { &[#(#entries),*] })
    }

    /// Returns the schema of a type.
    fn own(&self, ty: &Type) -> TokenStream {
        let lifetime = &self.lifetime;
        match self.role {
            Role::Output => quote_spanned!(ty.span()=> <#ty as __mcp::OutputValue>::OUTPUT),
            _ => quote_spanned!(ty.span()=> <#ty as __mcp::Argument<#lifetime>>::ARGUMENT),
        }
    }

    /// Returns the field of a struct expression: its name, and the value at `index`.
    fn read(&self, member: &Member, index: usize) -> TokenStream {
        let Member { ident, name, attributes, ty, is_option, .. } = member;
        let schema = member.schema(&self.own(ty));
        let value = format_ident!("value{index}");
        let method = match (&attributes.absent, is_option) {
            (Absent::Error, false) => quote!(required::<#ty>),
            (Absent::Json(_), _) => quote!(or::<#ty>),
            _ => quote!(optional::<#ty>),
        };
        let json = match &attributes.absent {
            Absent::Json(json) => Some(quote!(, const { ::mcp_sansio::json::Raw::constant(#json) })),
            _ => None,
        };
        let mut read = quote!(reader.#method(#value, #name, &const { #schema } #json)?);
        let maybe = *is_option || matches!(attributes.absent, Absent::Default);
        if let Some((check, pattern)) = &attributes.check {
            let checked = quote_spanned!(check.span()=> {
                let is_match = #check(&field);
                reader.matched(field, is_match, #name, #pattern)?
            });
            read = if maybe {
                quote!(match #read {
                    ::core::option::Option::Some(field) => ::core::option::Option::Some(#checked),
                    none => none,
                })
            } else {
                quote!({ let field = #read; #checked })
            };
        }
        if maybe && !is_option {
            read = quote!(#read.unwrap_or_default());
        }
        quote!(#ident: #read)
    }

    /// Returns the implementations.
    fn implement(&self, Shape { schema, body, is_object }: &Shape) -> TokenStream {
        let (ident, lifetime) = (&self.input.ident, &self.lifetime);
        let (parameters, arguments, bounds) = self.input.generics.split_for_impl();
        let constant = fixed(&arguments);
        let (generics, value) = match self.role {
            Role::Output => (quote!(#parameters), quote!(<#ident #constant as __mcp::OutputValue>::OUTPUT)),
            _ => (quote!(<#lifetime>), quote!(<#ident #constant as __mcp::Argument<'static>>::ARGUMENT)),
        };
        let member = match self.role {
            Role::Output => quote! {
                impl #generics __mcp::OutputValue for #ident #arguments #bounds {
                    const OUTPUT: __mcp::TypeSchema = #schema;
                    fn write(
                        &self,
                        out: &mut dyn ::mcp_sansio::sink::Sink,
                    ) -> ::core::result::Result<(), ::mcp_sansio::FullError> {
                        #body
                    }
                }
            },
            _ => quote! {
                impl #generics __mcp::Argument<#lifetime> for #ident #arguments {
                    const ARGUMENT: __mcp::TypeSchema = #schema;
                    fn read(
                        value: ::mcp_sansio::json::Raw<#lifetime>,
                        _: &__mcp::TypeSchema,
                        reader: &mut __mcp::ArgumentReader<#lifetime>,
                    ) -> ::core::option::Option<Self> {
                        #body
                    }
                }
            },
        };
        let text = |form: Option<TokenStream>| {
            quote! {{
                const SCHEMA: __mcp::TypeSchema = #value #form;
                const TEXT: [u8; SCHEMA.text_len()] = SCHEMA.text();
                __mcp::schema_text(&TEXT)
            }}
        };
        let (of, name, ty, text) = match self.role {
            Role::Arguments => (quote!(Arguments<#lifetime>), quote!(SCHEMA), quote!(&'static str), text(None)),
            Role::Output => (quote!(Output), quote!(OUTPUT_SCHEMA), quote!(&'static str), text(None)),
            Role::Form => {
                let text = text(Some(quote!(.form())));
                let raw = quote!(::mcp_sansio::json::Raw::constant(#text));
                (quote!(Form<#lifetime>), quote!(FORM), quote!(::mcp_sansio::json::Raw<'static>), raw)
            }
        };
        let of_constant = fixed(&of);
        // The constant without a name checks the schema even if nothing uses it.
        let whole = match is_object {
            true => quote! {
                #[automatically_derived]
                impl #generics __mcp::#of for #ident #arguments #bounds {
                    const #name: #ty = #text;
                }
                const _: #ty = <#ident #constant as __mcp::#of_constant>::#name;
            },
            false => quote!(const _: __mcp::TypeSchema = #value;),
        };
        // Of all that the traits need there is one name here, so that no type of the user is hidden.
        quote! {
            const _: () = {
                use ::mcp_sansio::service::schema as __mcp;
                #[automatically_derived]
                #member
                #whole
            };
        }
    }
}

/// Returns the body that writes an object with a tag.
fn write_tagged(tag: &LitStr, variants: &Variants<'_>) -> TokenStream {
    let arms = variants.members.iter().zip(&variants.names).map(|((ident, members), name)| {
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
    quote! {
        let mut __object = __mcp::ObjectWriter::new(out);
        match self { #(#arms)* }
        __object.close()
    }
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
