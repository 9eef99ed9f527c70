//! The derive macro of rows.

use proc_macro2::TokenStream as Tokens;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident};

pub(crate) fn expand(item: &DeriveInput) -> syn::Result<Tokens> {
    let named = match &item.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => Some(&named.named),
            Fields::Unnamed(_) | Fields::Unit => None,
        },
        Data::Enum(_) | Data::Union(_) => None,
    };
    let Some(named) = named else {
        let message = "a row is a struct with named fields: they are its columns";
        return Err(Error::new(item.ident.span(), message));
    };
    if named.is_empty() {
        return Err(Error::new(item.ident.span(), "a row has at least one field"));
    }
    if !item.generics.params.is_empty() {
        let message = "a row has no type parameters: its columns have one type each";
        return Err(Error::new(item.generics.span(), message));
    }
    if let Some(attribute) = item.attrs.iter().find(|attribute| attribute.path().is_ident("row")) {
        return Err(Error::new(attribute.span(), "`#[row(key)]` stands on fields"));
    }
    let name = &item.ident;
    let (mut described, mut values, mut read) = (vec![], vec![], vec![]);
    let (mut key, mut parts) = (vec![], vec![]);
    for field in named {
        let ident = field.ident.as_ref().expect("it is named");
        let (kind, text) = (&field.ty, unraw(&ident.to_string()));
        let as_field = quote_spanned!(kind.span()=> <#kind as ::sapwood::row::RowField>);
        described.push(quote!((#text, #as_field::kind(), #as_field::NULLABLE)));
        values.push(quote!(#as_field::to_value(&self.#ident)));
        read.push(quote!(#ident: ::sapwood::row::field(#text, &mut values)?));
        if is_key(field)? {
            key.push(text);
            parts.push((quote!(#as_field), ident));
        }
    }
    let (key_type, key_values) = key_of(&parts);
    Ok(quote! {
        impl ::sapwood::row::Row for #name {
            type Key<'k> = #key_type;

            #key_values

            fn schema() -> ::sapwood::schema::Schema {
                ::sapwood::row::schema_of(&[#(#described),*], &[#(#key),*])
            }

            fn to_values(&self) -> ::std::vec::Vec<::sapwood::schema::Value<'_>> {
                ::std::vec![#(#values),*]
            }

            fn from_values<'a>(
                values: impl ::core::iter::IntoIterator<Item = ::sapwood::schema::Value<'a>>,
            ) -> ::sapwood::schema::Result<Self> {
                let mut values = ::core::iter::IntoIterator::into_iter(values);
                ::core::result::Result::Ok(Self { #(#read),* })
            }
        }
    })
}

/// The type of a key, and the function that has its values.
fn key_of(parts: &[(Tokens, &Ident)]) -> (Tokens, Tokens) {
    let (types, names): (Vec<_>, Vec<_>) = parts.iter().cloned().unzip();
    let (key_type, pattern, values) = match &types[..] {
        // The number of the row.
        [] => (quote!(u64), quote!(number), quote!(::sapwood::schema::Value::from(number))),
        [field] => (quote!(#field::InKey<'k>), quote!(field), quote!(#field::key_value(field))),
        _ => (
            quote!((#(#types::InKey<'k>),*)),
            quote!((#(#names),*)),
            quote!(#(#types::key_value(#names)),*),
        ),
    };
    let key_values = quote! {
        fn key_values<'k>(
            #pattern: Self::Key<'k>,
        ) -> ::std::vec::Vec<::sapwood::schema::Value<'k>> {
            ::std::vec![#values]
        }
    };
    (key_type, key_values)
}

/// Whether a field is marked as one of the key.
fn is_key(field: &Field) -> syn::Result<bool> {
    let mut is_key = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("row")) {
        attribute.parse_nested_meta(|meta| match meta.path.is_ident("key") {
            true => {
                is_key = true;
                Ok(())
            }
            false => Err(meta.error("`#[row(key)]` is the only mark of a field")),
        })?;
    }
    Ok(is_key)
}

/// The name of a field, without the mark of a name that is a keyword.
fn unraw(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> syn::Result<String> {
        let item: DeriveInput = syn::parse_str(text).expect("an item");
        expand(&item).map(|tokens| tokens.to_string())
    }

    #[test]
    fn fields_that_are_marked_make_the_key() {
        let text = expanded("struct A { #[row(key)] r#type: u8, n: u32, #[row(key)] b: bool }");
        let text = text.expect("a row");
        assert!(text.contains("& [\"type\" , \"b\"]"), "{text}");
    }

    #[test]
    fn items_of_another_form_are_refused() {
        for (text, says) in [
            ("struct A(u8);", "named fields"),
            ("enum A { B }", "named fields"),
            ("struct A {}", "at least one field"),
            ("struct A<T> { a: T }", "no type parameters"),
            ("#[row(key)] struct A { a: u8 }", "stands on fields"),
            ("struct A { #[row(keys)] a: u8 }", "the only mark"),
        ] {
            let refused = expanded(text).expect_err(text).to_string();
            assert!(refused.contains(says), "{text}: {refused}");
        }
    }
}
