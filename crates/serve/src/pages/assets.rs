//! Assets of the pages: styles, the script and the icon.

use crate::answer::{Answer, Refusal};
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::ASSETS;

/// Answers `/assets/{name}` with a style, the script or the icon.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    if let Some(asset) = ASSETS.iter().find(|asset| asset.name == request.name) {
        return Ok(Answer::asset(asset.kind, asset.body.clone()));
    }
    match site.styles.find(&request.name) {
        Some(style) => Ok(Answer::asset("text/css; charset=utf-8", style)),
        None => Err(Refusal::missing("There is no such asset.")),
    }
}
