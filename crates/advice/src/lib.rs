//! The catalogue of advice: reads pages, evaluates their conditions on facts, and replaces the placeholders of their
//! trials. Pure: a user's own directory is read through [`assay_host::Host`].
//!
//! A page is a file `advice/DOMAIN/ID.md`. It consists of TOML front matter between two lines `+++`, and of Markdown in
//! fixed sections. See [`page::parse`] for the format, [`applies`] for the conditions and [`resolve`] for the
//! placeholders.

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
