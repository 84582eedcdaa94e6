//! Choices that have a name on the command line.

/// Gives a choice without fields its names: `name()`, and `FromStr` whose error says which there are.
#[macro_export]
macro_rules! named {
    ($kind:ident, $what:literal: $($variant:ident = $name:literal),+) => {
        impl $kind {
            /// As the command line names it.
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
