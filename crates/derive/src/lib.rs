//! The macro behind `sapwood::row`, where it is documented.
#![forbid(unsafe_code)]

mod row;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// See `sapwood::row`.
#[proc_macro_derive(Row, attributes(row))]
pub fn derive_row(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    row::expand(&item).unwrap_or_else(|error| error.to_compile_error()).into()
}
