//! The macros behind `sapwood::record` and `sapwood::row`, where they are documented.
#![forbid(unsafe_code)]

mod row;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Fields, ItemStruct, parse_macro_input};

/// See `sapwood::record`.
#[proc_macro_attribute]
pub fn record(arguments: TokenStream, item: TokenStream) -> TokenStream {
    if let Some(argument) = arguments.into_iter().next() {
        let message = "`#[record]` takes no arguments";
        return Error::new(argument.span().into(), message).to_compile_error().into();
    }
    let item = parse_macro_input!(item as ItemStruct);
    expand(&item).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// See `sapwood::row`.
#[proc_macro_derive(Row, attributes(row))]
pub fn derive_row(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    row::expand(&item).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(item: &ItemStruct) -> syn::Result<Tokens> {
    let Fields::Named(fields) = &item.fields else {
        let message = "a record has named fields: queries ask for them by name";
        return Err(Error::new(item.fields.span(), message));
    };
    if fields.named.is_empty() {
        return Err(Error::new(item.ident.span(), "a record has at least one field"));
    }
    if !item.generics.params.is_empty() {
        let message = "a record has no type parameters: its bytes have one layout";
        return Err(Error::new(item.generics.span(), message));
    }
    if let Some(repr) = item.attrs.iter().find(|attribute| attribute.path().is_ident("repr")) {
        let message =
            "`#[record]` lays the fields out in their order, without gaps: no `repr` is needed";
        return Err(Error::new(repr.span(), message));
    }
    let name = &item.ident;
    let described = fields.named.iter().map(|field| {
        let ident = field.ident.as_ref();
        let (kind, text) = (&field.ty, ident.map(|ident| unraw(&ident.to_string())));
        quote! {
            (
                #text,
                ::core::mem::offset_of!(#name, #ident),
                <#kind as ::sapwood::record::FieldType>::READ,
            )
        }
    });
    // The compiler complains in the order of items: about the types of fields first, then about what
    // else a struct with such fields cannot be.
    let checked = fields.named.iter().map(|field| {
        let kind = &field.ty;
        quote_spanned!(kind.span()=> ::sapwood::record::IsField<#kind>)
    });
    Ok(quote! {
        const _: () = {
            struct _Fields(#(#checked),*);
        };

        #[derive(
            ::core::clone::Clone,
            ::core::marker::Copy,
            ::sapwood::record::zerocopy::FromBytes,
            ::sapwood::record::zerocopy::IntoBytes,
            ::sapwood::record::zerocopy::Immutable,
            ::sapwood::record::zerocopy::KnownLayout,
            ::sapwood::record::zerocopy::Unaligned,
        )]
        #[repr(C)]
        #[zerocopy(crate = "::sapwood::record::zerocopy")]
        #item

        impl ::sapwood::record::Record for #name {
            const FIELDS: &'static [(&'static str, usize, ::sapwood::record::FieldRead)] =
                &[#(#described),*];
        }
    })
}

/// The name of a field, without the mark of a name that is a keyword.
fn unraw(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        let item: ItemStruct = syn::parse_str(text).expect("a struct");
        expand(&item).expect("it has the form of a record").to_string()
    }

    #[test]
    fn types_of_fields_are_checked_before_all_else() {
        let text = expanded("struct Wide { name: String, flights: u32 }");
        let of = |kind: &str| text.find(&format!("IsField < {kind} >")).expect("it is checked");
        let derives = text.find("derive").expect("the traits of `zerocopy` are derived");
        assert!(of("String") < of("u32") && of("u32") < derives, "{text}");
    }

    #[test]
    fn structs_of_another_form_are_refused() {
        for (text, says) in [
            ("struct A(u8);", "named fields"),
            ("struct A {}", "at least one field"),
            ("struct A<T> { a: T }", "no type parameters"),
            ("#[repr(C)] struct A { a: u8 }", "no `repr` is needed"),
        ] {
            let item: ItemStruct = syn::parse_str(text).expect("a struct");
            let refused = expand(&item).expect_err(text).to_string();
            assert!(refused.contains(says), "{text}: {refused}");
        }
    }
}
