//! The catalogue of advice: pages loaded, their conditions matched against facts, their trials
//! filled in. Pure: a user's own directory is read through [`assay_host::Host`].
//!
//! An entry is one file, `advice/DOMAIN/ID.md`: TOML front matter between two lines of `+++` and
//! below it a Markdown page in fixed sections. See [`page::parse`] for its form,
//! [`applies`] for the conditions and [`resolve`] for the placeholders.

mod accept;
mod acts_table;
mod applies;
pub mod book;
mod catalogue;
mod check;
mod condition;
mod coverage;
mod debian;
mod findings;
mod nearest_name;
pub mod page;
mod resolve;
mod version;

pub use accept::accept;
pub use applies::{Applicability, Evidence, Missing, Reason, applies};
pub use catalogue::{Catalogue, CatalogueError, UnknownAdvice};
pub use condition::SyntaxError;
pub use findings::{chosen, fails, findings};
pub use page::PageError;
pub use resolve::{
    Aim, ResolveError, aim, is_target_of_load, parameters, placeholder_values_of_load, resolve,
};
