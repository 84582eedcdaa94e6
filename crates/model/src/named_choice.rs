//! Macro for enums whose variants are values of a command-line option.

/// Implements `name()` and `FromStr` for an enum without fields. The error of `FromStr` lists the valid names.
#[macro_export]
macro_rules! named {
    ($kind:ident, $what:literal: $($variant:ident = $name:literal),+) => {
        impl $kind {
            /// Returns the name that the command line uses.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl std::str::FromStr for $kind {
            type Err = String;

            fn from_str(text: &str) -> ::std::result::Result<Self, String> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(format!("no {} {text:?}; there are {}", $what, [$($name),+].join(", "))),
                }
            }
        }
    };
}
