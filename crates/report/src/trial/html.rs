//! A trial as one HTML file.

use super::View;
use crate::svg::draw::escape;
use crate::terminal::Style;

/// The page.
#[must_use]
pub fn html(view: &View) -> String {
    page(&super::terminal(view, PLAIN))
}

/// One page for the trials of a campaign.
#[must_use]
pub fn campaign(views: &[View]) -> String {
    page(&super::list::campaign(views, PLAIN))
}

const PLAIN: Style = Style {
    color: false,
    width: 100,
};

fn page(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>assay trial</title></head>\
         <body><pre>{}</pre></body></html>\n",
        lines.join("\n")
    )
}
