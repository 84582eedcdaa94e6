//! The page about this server, with the store and the interfaces for programs.

use crate::answer::{Answer, Refusal};
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use minijinja::context;

/// Answers `/about` with the page about this server.
pub(crate) fn show(site: &Site, _: &PageRequest) -> Result<Answer, Refusal> {
    let page = site.render_page(
        "About this server",
        Section::None,
        include_str!("../templates/about.html"),
        context! {
            store => site.store.shown(),
            version => site.options.version,
        },
    );
    Ok(Answer::page(page))
}
