//! Defines the options that every verb accepts: the store, and colours.

use clap::ValueEnum;
use std::path::PathBuf;

/// Options of all verbs.
#[derive(clap::Args, Clone)]
pub struct Global {
    /// Use this store: FILE or URL [default: $XDG_DATA_HOME/assay/assay.db]
    #[arg(
        long,
        global = true,
        // Shown after the options of the verb.
        display_order = 900,
        value_name = "FILE|URL",
        env = "ASSAY_STORE",
        hide_env_values = true
    )]
    pub store: Option<PathBuf>,
    /// Use colours: auto, always or never; NO_COLOR is respected
    #[arg(long, global = true, display_order = 901, value_enum, default_value_t = Color::Auto, value_name = "WHEN", hide_possible_values = true)]
    pub color: Color,
}

/// When to use colours.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
