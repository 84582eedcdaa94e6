//! A derive macro that accepts the attributes of schemars and expands to nothing. `assay-schemas` exports it in builds
//! without schemas.

use proc_macro::TokenStream;

/// Expands to nothing.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn derive_nothing(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
