//! `#[derive(Arguments)]` and `#[derive(Form)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, FieldsNamed, GenericParam, Lifetime, LitStr, Result, Type};

use crate::attributes::{Absent, Container, Role, unique};
use crate::members::{Member, Variants, listed, members, unit_names};

/// Expands the derive.
pub(crate) fn expand(role: Role, input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let container = Container::of(role, &input.attrs)?;
    let target = Target::of(role, &input)?;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => {
                if let Some(tag) = &container.tag {
                    return Err(Error::new(tag.span(), "`tag` is for enums"));
                }
                Ok(target.object(&container, fields)?)
            }
            _ => Err(Error::new_spanned(&input.ident, "arguments have names: a struct with named fields")),
        },
        Data::Enum(_) if role == Role::Form => Err(Error::new_spanned(&input.ident, "a form is a struct")),
        Data::Enum(data) => match &container.tag {
            Some(tag) => target.tagged(&container, tag, data),
            None => target.names(&container, data),
        },
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "a union has no schema")),
    }
}

/// The type for which the traits are implemented.
struct Target<'i> {
    role: Role,
    ident: &'i Ident,
    /// That of the message: the one of the type, or a new one.
    lifetime: Lifetime,
    has_lifetime: bool,
}

impl<'i> Target<'i> {
    fn of(role: Role, input: &'i DeriveInput) -> Result<Self> {
        let mut lifetime = None;
        for parameter in &input.generics.params {
            match parameter {
                GenericParam::Lifetime(first) if lifetime.is_none() => lifetime = Some(first.lifetime.clone()),
                GenericParam::Lifetime(_) => {
                    return Err(Error::new_spanned(parameter, "one lifetime at most: that of the message"));
                }
                _ => return Err(Error::new_spanned(parameter, "a generic type has no constant schema")),
            }
        }
        let has_lifetime = lifetime.is_some();
        let lifetime = lifetime.unwrap_or_else(|| Lifetime::new("'message", Span::call_site()));
        Ok(Target { role, ident: &input.ident, lifetime, has_lifetime })
    }

    /// A struct.
    fn object(&self, container: &Container, fields: &FieldsNamed) -> Result<TokenStream> {
        let members = members(self.role, container, fields)?;
        unique(members.iter().map(|member| (member.name.as_str(), &member.ident)))?;
        let properties = self.properties(&members);
        let closed = container.deny_unknown.then(|| quote!(.closed()));
        let names: Vec<_> = members.iter().map(|member| member.name.as_str()).collect();
        let find = self.find(&names, container);
        let values = (0..members.len()).map(|index| format_ident!("value{index}"));
        let reads = members.iter().enumerate().map(|(index, member)| self.read(member, index));
        let argument = quote!(__mcp::TypeSchema::object(#properties) #closed);
        let read = quote! {
            #find
            let [#(#values),*] = values;
            ::core::option::Option::Some(Self { #(#reads),* })
        };
        Ok(self.implement(&argument, &read, true))
    }

    /// An enum of unit variants.
    fn names(&self, container: &Container, data: &syn::DataEnum) -> Result<TokenStream> {
        let names = unit_names(Role::Arguments, container, self.ident, data)?;
        let expected = listed(&names);
        let idents = data.variants.iter().map(|variant| &variant.ident);
        let index = 0..names.len();
        let argument = quote!(__mcp::TypeSchema::one_of(&[#(#names),*]));
        let read = quote! {
            match reader.variant(value, &[#(#names),*], #expected)? {
                #(#index => ::core::option::Option::Some(Self::#idents),)*
                _ => ::core::option::Option::None,
            }
        };
        Ok(self.implement(&argument, &read, false))
    }

    /// An enum whose objects have a tag.
    fn tagged(&self, container: &Container, tag: &LitStr, data: &syn::DataEnum) -> Result<TokenStream> {
        let variants = Variants::of(Role::Arguments, container, tag.value(), self.ident, data)?;
        let Variants { members, names, union } = &variants;
        let closed = container.deny_unknown.then(|| quote!(.closed()));
        let all = union.names();
        let find = self.find(&all, container);
        let values = (0..all.len()).map(|index| format_ident!("value{index}"));
        let arms = members.iter().enumerate().map(|(index, (ident, members))| {
            let place = |member: &Member| all.iter().position(|name| *name == member.name).unwrap_or_default();
            let reads = members.iter().map(|member| self.read(member, place(member)));
            quote!(#index => ::core::option::Option::Some(Self::#ident { #(#reads),* }),)
        });
        let schemas = members.iter().zip(names).map(|((_, members), name)| {
            let properties = self.properties(members);
            quote!(__mcp::Variant::new(#name, #properties))
        });
        let expected = listed(names);
        let argument = quote!(__mcp::TypeSchema::tagged(#tag, const { &[#(#schemas),*] }) #closed);
        let read = quote! {
            #find
            let [#(#values),*] = values;
            match reader.tag(value0, #tag, &[#(#names),*], #expected)? {
                #(#arms)*
                _ => ::core::option::Option::None,
            }
        };
        Ok(self.implement(&argument, &read, true))
    }

    /// Returns the statements that find the values of the members.
    fn find(&self, names: &[&str], container: &Container) -> TokenStream {
        let (lifetime, count) = (&self.lifetime, names.len());
        let unknown = match container.deny_unknown {
            true => {
                let expected = if names.is_empty() { "none".into() } else { listed(names) };
                quote!(::core::option::Option::Some(#expected))
            }
            false => quote!(::core::option::Option::None),
        };
        quote! {
            let mut values: [::core::option::Option<::mcp_sansio::json::Raw<#lifetime>>; #count] =
                [::core::option::Option::None; #count];
            reader.members(value, &[#(#names),*], &mut values, #unknown)?;
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
        quote_spanned!(ty.span()=> <#ty as __mcp::Argument<#lifetime>>::ARGUMENT)
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
    fn implement(&self, argument: &TokenStream, read: &TokenStream, is_object: bool) -> TokenStream {
        let (ident, lifetime) = (self.ident, &self.lifetime);
        let of = |lifetime: TokenStream| if self.has_lifetime { quote!(#ident<#lifetime>) } else { quote!(#ident) };
        let (own, fixed) = (of(quote!(#lifetime)), of(quote!('static)));
        // The constant without a name checks the schema even if nothing uses it.
        let text = quote! {
            const TEXT: [u8; ARGUMENT.text_len()] = ARGUMENT.text();
            __mcp::schema_text(&TEXT)
        };
        let whole = match is_object {
            true if self.role == Role::Form => quote! {
                #[automatically_derived]
                impl<#lifetime> __mcp::Form<#lifetime> for #own {
                    const FORM: ::mcp_sansio::json::Raw<'static> = ::mcp_sansio::json::Raw::constant({
                        const ARGUMENT: __mcp::TypeSchema = <#fixed as __mcp::Argument<'static>>::ARGUMENT.form();
                        #text
                    });
                }

                const _: ::mcp_sansio::json::Raw<'static> = <#fixed as __mcp::Form<'static>>::FORM;
            },
            false => quote!(const _: __mcp::TypeSchema = <#fixed as __mcp::Argument<'static>>::ARGUMENT;),
            true => quote! {
                #[automatically_derived]
                impl<#lifetime> __mcp::Arguments<#lifetime> for #own {
                    const SCHEMA: &'static str = {
                        const ARGUMENT: __mcp::TypeSchema = <#fixed as __mcp::Argument<'static>>::ARGUMENT;
                        #text
                    };
                }

                const _: &str = <#fixed as __mcp::Arguments<'static>>::SCHEMA;
            },
        };
        // Of all that the traits need there is one name here, so that no type of the user is hidden.
        quote! {
            const _: () = {
                use ::mcp_sansio::service::schema as __mcp;

                #[automatically_derived]
                impl<#lifetime> __mcp::Argument<#lifetime> for #own {
                    const ARGUMENT: __mcp::TypeSchema = #argument;

                    fn read(
                        value: ::mcp_sansio::json::Raw<#lifetime>,
                        _: &__mcp::TypeSchema,
                        reader: &mut __mcp::ArgumentReader<#lifetime>,
                    ) -> ::core::option::Option<Self> {
                        #read
                    }
                }

                #whole
            };
        }
    }
}
