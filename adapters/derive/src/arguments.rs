//! `#[derive(Arguments)]`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Fields, FieldsNamed, GenericArgument, GenericParam, Ident, Lifetime, LitStr,
    PathArguments, Result, Type,
};

use crate::attributes::{Absent, Container, Field, comment, name, unique};

/// Expands the derive.
pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let container = Container::of(&input.attrs)?;
    let target = Target::of(&input)?;
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
        Data::Enum(data) if container.tag.is_some() => target.tagged(&container, data),
        Data::Enum(data) => target.names(&container, data),
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "a union has no schema")),
    }
}

/// The type for which the traits are implemented.
struct Target<'i> {
    ident: &'i Ident,
    /// That of the message: the one of the type, or a new one.
    lifetime: Lifetime,
    has_lifetime: bool,
}

/// A member of an object.
struct Member {
    ident: Ident,
    name: String,
    attributes: Field,
    /// The type without `Option`.
    ty: Type,
    is_option: bool,
    description: Option<String>,
}

impl<'i> Target<'i> {
    fn of(input: &'i DeriveInput) -> Result<Self> {
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
        Ok(Target { ident: &input.ident, lifetime, has_lifetime })
    }

    /// A struct.
    fn object(&self, container: &Container, fields: &FieldsNamed) -> Result<TokenStream> {
        let members = members(container, fields)?;
        unique(members.iter().map(|member| (member.name.as_str(), &member.ident)))?;
        let properties = self.properties(&members);
        let closed = container.deny_unknown.then(|| quote!(.closed()));
        let names: Vec<_> = members.iter().map(|member| member.name.as_str()).collect();
        let find = self.find(&names, container);
        let values = (0..members.len()).map(|index| format_ident!("value{index}"));
        let reads = members.iter().enumerate().map(|(index, member)| self.read(member, index));
        let argument = quote!(TypeSchema::object(#properties) #closed);
        let read = quote! {
            #find
            let [#(#values),*] = values;
            ::core::option::Option::Some(Self { #(#reads),* })
        };
        Ok(self.implement(&argument, &read, true))
    }

    /// An enum of unit variants.
    fn names(&self, container: &Container, data: &syn::DataEnum) -> Result<TokenStream> {
        let mut names = Vec::new();
        for variant in &data.variants {
            if !matches!(variant.fields, Fields::Unit) {
                let why = "a variant with fields needs `#[arguments(tag = \"..\")]` on the enum";
                return Err(Error::new_spanned(variant, why));
            }
            let attributes = variant_attributes(&variant.attrs)?;
            names.push(name(&variant.ident, attributes.rename.as_ref(), container.rename_all));
        }
        if names.is_empty() {
            return Err(Error::new_spanned(self.ident, "an enum without variants has no value"));
        }
        unique(names.iter().map(String::as_str).zip(&data.variants))?;
        let expected = listed(&names);
        let idents = data.variants.iter().map(|variant| &variant.ident);
        let index = 0..names.len();
        let argument = quote!(TypeSchema::one_of(&[#(#names),*]));
        let read = quote! {
            match reader.variant(value, &[#(#names),*], #expected)? {
                #(#index => ::core::option::Option::Some(Self::#idents),)*
                _ => ::core::option::Option::None,
            }
        };
        Ok(self.implement(&argument, &read, false))
    }

    /// An enum whose objects have a tag.
    fn tagged(&self, container: &Container, data: &syn::DataEnum) -> Result<TokenStream> {
        let Some(tag) = &container.tag else { return Err(Error::new_spanned(self.ident, "`tag` is missing")) };
        let (mut variants, mut names) = (Vec::new(), Vec::new());
        let mut all: Vec<(String, String)> = vec![(tag.value(), String::new())];
        for variant in &data.variants {
            let attributes = variant_attributes(&variant.attrs)?;
            names.push(name(&variant.ident, attributes.rename.as_ref(), container.rename_all));
            let members = match &variant.fields {
                Fields::Named(fields) => members(&Container::default(), fields)?,
                Fields::Unit => Vec::new(),
                Fields::Unnamed(fields) => {
                    return Err(Error::new_spanned(fields, "the members of a variant have names: `{ .. }`"));
                }
            };
            unique(members.iter().map(|member| (member.name.as_str(), &member.ident)))?;
            for member in &members {
                let schema = self.schema(member).to_string();
                match all.iter().find(|(name, _)| *name == member.name) {
                    None => all.push((member.name.clone(), schema)),
                    Some((_, other)) if *other == schema => {}
                    Some((name, _)) => {
                        let why = format!("`{name}` is another type or has other limits above: the schema is flat");
                        return Err(Error::new_spanned(&member.ident, why));
                    }
                }
            }
            variants.push((&variant.ident, members));
        }
        if names.is_empty() {
            return Err(Error::new_spanned(self.ident, "an enum without variants has no value"));
        }
        unique(names.iter().map(String::as_str).zip(&data.variants))?;
        let closed = container.deny_unknown.then(|| quote!(.closed()));
        let all: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        let find = self.find(&all, container);
        let values = (0..all.len()).map(|index| format_ident!("value{index}"));
        let arms = variants.iter().enumerate().map(|(index, (ident, members))| {
            let place = |member: &Member| all.iter().position(|name| *name == member.name).unwrap_or_default();
            let reads = members.iter().map(|member| self.read(member, place(member)));
            quote!(#index => ::core::option::Option::Some(Self::#ident { #(#reads),* }),)
        });
        let schemas = variants.iter().zip(&names).map(|((_, members), name)| {
            let properties = self.properties(members);
            quote!(Variant::new(#name, #properties))
        });
        let expected = listed(&names);
        let argument = quote!(TypeSchema::tagged(#tag, const { &[#(#schemas),*] }) #closed);
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
        let entries = members.iter().map(|member| {
            let (name, schema) = (&member.name, self.schema(member));
            let required = !member.is_option && matches!(member.attributes.absent, Absent::Error);
            quote!(Property::new(#name, #schema, #required))
        });
        quote!(const { &[#(#entries),*] })
    }

    /// Returns the schema of a member, as an expression.
    fn schema(&self, member: &Member) -> TokenStream {
        let (lifetime, ty) = (&self.lifetime, &member.ty);
        let description = member.description.as_ref().map(|text| quote!(.description(#text)));
        let setters = member.attributes.setters();
        let own = quote_spanned!(ty.span()=> <#ty as Argument<#lifetime>>::ARGUMENT);
        quote!(#own #description #(#setters)*)
    }

    /// Returns the field of a struct expression: its name, and the value at `index`.
    fn read(&self, member: &Member, index: usize) -> TokenStream {
        let Member { ident, name, attributes, ty, is_option, .. } = member;
        let schema = self.schema(member);
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
        // The constants without a name check the schema even if nothing uses it.
        let whole = match is_object {
            false => quote!(const _: TypeSchema = <#fixed as Argument<'static>>::ARGUMENT;),
            true => quote! {
                const ARGUMENT: TypeSchema = <#fixed as Argument<'static>>::ARGUMENT;
                const TEXT: [u8; ARGUMENT.text_len()] = ARGUMENT.text();

                #[automatically_derived]
                impl<#lifetime> Arguments<#lifetime> for #own {
                    const SCHEMA: &'static str = schema_text(&TEXT);
                }
            },
        };
        quote! {
            const _: () = {
                use ::mcp_sansio::service::schema::{
                    Argument, ArgumentReader, Arguments, Property, TypeSchema, Variant, schema_text,
                };

                #[automatically_derived]
                impl<#lifetime> Argument<#lifetime> for #own {
                    const ARGUMENT: TypeSchema = #argument;

                    fn read(
                        value: ::mcp_sansio::json::Raw<#lifetime>,
                        _: &TypeSchema,
                        reader: &mut ArgumentReader<#lifetime>,
                    ) -> ::core::option::Option<Self> {
                        #read
                    }
                }

                #whole
            };
        }
    }
}

/// Returns the attributes of a variant: its name alone.
fn variant_attributes(attributes: &[syn::Attribute]) -> Result<Field> {
    let found = Field::of(attributes)?;
    if let Some(setter) = found.first_setter() {
        return Err(Error::new_spanned(setter, "a variant has `rename` alone"));
    }
    Ok(found)
}

/// Reads the fields of a struct or variant.
fn members(container: &Container, fields: &FieldsNamed) -> Result<Vec<Member>> {
    let mut found = Vec::new();
    for field in &fields.named {
        let Some(ident) = field.ident.clone() else { continue };
        let attributes = Field::of(&field.attrs)?;
        let inner = optional(&field.ty);
        let is_option = inner.is_some();
        if is_option && !matches!(attributes.absent, Absent::Error) {
            return Err(Error::new(attributes.absent_span, "an `Option` that is left out is `None`: no default"));
        }
        found.push(Member {
            name: name(&ident, attributes.rename.as_ref(), container.rename_all),
            description: comment(&field.attrs),
            ty: inner.unwrap_or(&field.ty).clone(),
            is_option,
            attributes,
            ident,
        });
    }
    Ok(found)
}

/// Returns `T` of `Option<T>`.
fn optional(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

/// Returns names for people.
fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    quoted.join(", ")
}

/// Returns `tokens` with `'static` in place of each lifetime.
pub(crate) fn fixed(tokens: impl ToTokens) -> TokenStream {
    let mut after_tick = false;
    let replaced = tokens.into_token_stream().into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut inner = proc_macro2::Group::new(group.delimiter(), fixed(group.stream()));
            inner.set_span(group.span());
            TokenTree::Group(inner)
        }
        TokenTree::Punct(punct) => {
            after_tick = punct.as_char() == '\'';
            TokenTree::Punct(punct)
        }
        TokenTree::Ident(ident) if std::mem::take(&mut after_tick) => {
            TokenTree::Ident(Ident::new("static", ident.span()))
        }
        other => other,
    });
    replaced.collect()
}

/// The description of a tool.
pub(crate) fn text_of(attributes: &[syn::Attribute], given: Option<LitStr>, place: &Ident) -> Result<LitStr> {
    match (given, comment(attributes)) {
        (Some(given), _) => Ok(given),
        (None, Some(text)) => Ok(LitStr::new(&text, place.span())),
        (None, None) => Err(Error::new(place.span(), "a tool needs a description: write a comment with `///`")),
    }
}
