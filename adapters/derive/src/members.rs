//! The members of objects and the variants of enums, for both derives.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Error, Fields, FieldsNamed, GenericArgument, PathArguments, Result, Type};

use crate::attributes::{Absent, Container, Field, Role, comment, name, unique};

/// A member of an object.
pub(crate) struct Member {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) attributes: Field,
    /// The type without `Option`.
    pub(crate) ty: Type,
    pub(crate) is_option: bool,
    pub(crate) description: Option<String>,
}

impl Member {
    /// Returns the schema of the member, as an expression; `own` is that of its type.
    pub(crate) fn schema(&self, own: &TokenStream) -> TokenStream {
        let description = self.description.as_ref().map(|text| quote!(.description(#text)));
        let setters = self.attributes.setters();
        quote!(#own #description #(#setters)*)
    }

    /// Returns the entry of the member in a schema.
    pub(crate) fn property(&self, own: &TokenStream) -> TokenStream {
        let (name, schema) = (&self.name, self.schema(own));
        let required = !self.is_option && matches!(self.attributes.absent, Absent::Error);
        quote!(__mcp::Property::new(#name, #schema, #required))
    }
}

/// The members of all variants of a tagged object, which have one schema for one name.
pub(crate) struct Union(Vec<(String, String)>);

impl Union {
    /// Begins with the tag.
    pub(crate) fn new(tag: String) -> Self {
        Union(vec![(tag, String::new())])
    }

    /// Adds the members of a variant.
    pub(crate) fn add(&mut self, members: &[Member]) -> Result<()> {
        unique(members.iter().map(|member| (member.name.as_str(), &member.ident)))?;
        for member in members {
            let schema = member.schema(&member.ty.to_token_stream()).to_string();
            match self.0.iter().find(|(name, _)| *name == member.name) {
                None => self.0.push((member.name.clone(), schema)),
                Some((_, other)) if *other == schema => {}
                Some((name, _)) => {
                    let why = format!("`{name}` is another type or has other limits above: the schema is flat");
                    return Err(Error::new_spanned(&member.ident, why));
                }
            }
        }
        Ok(())
    }

    /// Returns the names.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }
}

/// Returns the attributes of a variant: its name alone.
pub(crate) fn variant_attributes(role: Role, attributes: &[syn::Attribute]) -> Result<Field> {
    let found = Field::of(role, attributes)?;
    if let Some(setter) = found.first_setter() {
        return Err(Error::new_spanned(setter, "a variant has `rename` alone"));
    }
    Ok(found)
}

/// Reads the fields of a struct or variant.
pub(crate) fn members(role: Role, container: &Container, fields: &FieldsNamed) -> Result<Vec<Member>> {
    let mut found = Vec::new();
    for field in &fields.named {
        let Some(ident) = field.ident.clone() else { continue };
        let attributes = Field::of(role, &field.attrs)?;
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
pub(crate) fn listed<T: AsRef<str>>(names: &[T]) -> String {
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

/// The variants of a tagged object.
pub(crate) struct Variants<'i> {
    /// Their idents and members.
    pub(crate) members: Vec<(&'i Ident, Vec<Member>)>,
    pub(crate) names: Vec<String>,
    pub(crate) union: Union,
}

impl<'i> Variants<'i> {
    pub(crate) fn of(
        role: Role,
        container: &Container,
        tag: String,
        ident: &Ident,
        data: &'i syn::DataEnum,
    ) -> Result<Self> {
        let (mut found, mut names, mut union) = (Vec::new(), Vec::new(), Union::new(tag));
        for variant in &data.variants {
            let attributes = variant_attributes(role, &variant.attrs)?;
            names.push(name(&variant.ident, attributes.rename.as_ref(), container.rename_all));
            let members = match &variant.fields {
                Fields::Named(fields) => members(role, &Container::default(), fields)?,
                Fields::Unit => Vec::new(),
                Fields::Unnamed(fields) => {
                    return Err(Error::new_spanned(fields, "the members of a variant have names: `{ .. }`"));
                }
            };
            union.add(&members)?;
            found.push((&variant.ident, members));
        }
        some_and_unique(&names, ident, data)?;
        Ok(Variants { members: found, names, union })
    }
}

/// Returns the names of unit variants.
pub(crate) fn unit_names(
    role: Role,
    container: &Container,
    ident: &Ident,
    data: &syn::DataEnum,
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            let why = match role {
                Role::Arguments | Role::Form => "a variant with fields needs `#[arguments(tag = \"..\")]` on the enum",
                Role::Output => "a variant with fields needs `#[output(tag = \"..\")]` on the enum",
            };
            return Err(Error::new_spanned(variant, why));
        }
        let attributes = variant_attributes(role, &variant.attrs)?;
        names.push(name(&variant.ident, attributes.rename.as_ref(), container.rename_all));
    }
    some_and_unique(&names, ident, data)?;
    Ok(names)
}

fn some_and_unique(names: &[String], ident: &Ident, data: &syn::DataEnum) -> Result<()> {
    if names.is_empty() {
        return Err(Error::new_spanned(ident, "an enum without variants has no value"));
    }
    unique(names.iter().map(String::as_str).zip(&data.variants))
}
