//! The frame of every page, which consists of head, navigation and assets. Bodies come from templates of this crate or
//! from the reports of `assay-report`.

use crate::site::Site;
use assay_render::html::{
    PageParts, base_style, escape_html, render_page, render_page_of, split_page,
};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Section of the site to which a page belongs. The navigation marks this section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Machines,
    Runs,
    Trials,
    Tuning,
    Observations,
    Catalogue,
    Plan,
    Duplicates,
    Measure,
    /// No section, for error pages and the page about the server.
    None,
    /// The form for the token, which has no navigation.
    Closed,
}

const NAVIGATION: [(Section, &str, &str); 9] = [
    (Section::Overview, "/", "Overview"),
    (Section::Machines, "/machines", "Machines"),
    (Section::Runs, "/runs", "Runs"),
    (Section::Trials, "/trials", "Trials"),
    (Section::Tuning, "/tuning", "Tuning"),
    (Section::Observations, "/observations", "Observations"),
    (Section::Catalogue, "/advice", "Catalogue"),
    (Section::Plan, "/plan", "Plan"),
    (Section::Duplicates, "/duplicates", "Duplicates"),
];

/// Templates that several pages include.
const PARTIALS: [(&str, &str); 6] = [
    (
        "machine_table.html",
        include_str!("templates/machine_table.html"),
    ),
    ("run_table.html", include_str!("templates/run_table.html")),
    (
        "trial_table.html",
        include_str!("templates/trial_table.html"),
    ),
    (
        "observation_table.html",
        include_str!("templates/observation_table.html"),
    ),
    ("pager.html", include_str!("templates/pager.html")),
    ("filter.html", include_str!("templates/filter.html")),
];

/// An asset that is compiled into the program.
pub(crate) struct Asset {
    /// Name of the asset, which contains the hash of its content.
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

impl Asset {
    fn new(stem: &str, ending: &str, kind: &'static str, body: String) -> Self {
        let hash = blake3::hash(body.as_bytes()).to_hex();
        Self {
            name: format!("{stem}-{}.{ending}", &hash[..12]),
            kind,
            body,
        }
    }
}

const CSS: &str = "text/css; charset=utf-8";

/// Assets of every page: style of reports, style of this site, script, and icon.
pub(crate) static ASSETS: LazyLock<[Asset; 4]> = LazyLock::new(|| {
    let own = |text: &str| text.to_owned();
    [
        Asset::new("assay", "css", CSS, base_style()),
        Asset::new("site", "css", CSS, own(include_str!("assets/site.css"))),
        Asset::new(
            "site",
            "js",
            "text/javascript; charset=utf-8",
            own(include_str!("assets/site.js")),
        ),
        Asset::new(
            "icon",
            "svg",
            "image/svg+xml",
            own(include_str!("assets/icon.svg")),
        ),
    ]
});

/// CSS of the different kinds of reports, by asset name. The CSS is compiled into assay, so there is at most one for
/// each kind of report.
#[derive(Debug, Default)]
pub(crate) struct StyleRegistry(Mutex<HashMap<String, String>>);

/// Maximum number of styles. It is much larger than the number of kinds of reports.
const MOST_STYLES: usize = 64;

impl StyleRegistry {
    /// Registers a style and returns the name of its asset.
    fn enter(&self, style: &str) -> String {
        let asset = Asset::new("page", "css", CSS, style.to_owned());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST_STYLES {
            known.entry(asset.name.clone()).or_insert(asset.body);
        }
        asset.name
    }

    /// Returns the style with this asset name.
    pub(crate) fn find(&self, name: &str) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).cloned()
    }
}

/// Removes the skip link at the start of a report, because the frame already has a skip link.
fn drop_skip_link(body: &str) -> &str {
    match body.trim_start().strip_prefix("<a class=\"skip\"") {
        Some(rest) => rest.split_once("</a>").map_or(body, |(_, rest)| rest),
        None => body,
    }
}

impl Site {
    /// Renders a template of this crate. Like reports, it can use the macros of `parts.html`.
    pub(crate) fn render_page(
        &self,
        title: &str,
        section: Section,
        template: &'static str,
        values: minijinja::Value,
    ) -> String {
        let page = render_page_of(title, "", template, &PARTIALS, values);
        self.frame_with_toolbar(&page, section, "")
    }

    /// Renders the toolbar above the report of a run or trial.
    pub(crate) fn render_toolbar(&self, values: minijinja::Value) -> String {
        let page = render_page("", "", include_str!("templates/toolbar.html"), values);
        split_page(&page).map_or_else(String::new, |parts| parts.body.to_owned())
    }

    /// Adds the frame and a toolbar to a page of `assay-report`.
    pub(crate) fn frame_with_toolbar(&self, page: &str, section: Section, toolbar: &str) -> String {
        match split_page(page) {
            Some(parts) => self.frame(&parts, section, toolbar),
            None => unreachable!("the page comes from the shell of all pages"),
        }
    }

    fn frame(&self, parts: &PageParts<'_>, section: Section, toolbar: &str) -> String {
        let [base, own, script, icon] = &*ASSETS;
        let mut out = String::with_capacity(parts.body.len() + 4096);
        let _ = write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} · assay</title>\n\
             <link rel=\"icon\" href=\"/assets/{}\">\n<link rel=\"stylesheet\" href=\"/assets/{}\">\n",
            parts.title, icon.name, base.name
        );
        if !parts.style.is_empty() {
            let name = self.styles.enter(parts.style);
            let _ = writeln!(out, "<link rel=\"stylesheet\" href=\"/assets/{name}\">");
        }
        let _ = write!(
            out,
            "<link rel=\"stylesheet\" href=\"/assets/{}\">\n<script src=\"/assets/{}\" defer></script>\n</head>\n\
             <body>\n<a class=\"skip\" href=\"#content\">Skip to the content</a>\n",
            own.name, script.name
        );
        out.push_str(&self.navigation(section));
        out.push_str(toolbar);
        // The first `<main>` is the one of the template: foreign text is escaped. A report has a link of its own
        // that skips its head; here the one above does.
        let body = drop_skip_link(parts.body).replacen(
            "<main>",
            "<main id=\"content\" tabindex=\"-1\">",
            1,
        );
        out.push_str(&body);
        out.push_str("</body>\n</html>\n");
        out
    }

    fn navigation(&self, section: Section) -> String {
        let mut out = String::from(
            "<div class=\"site\">\n<nav class=\"main\" aria-label=\"Site\"><a class=\"brand\" href=\"/\">\
             <span class=\"glyph\" aria-hidden=\"true\"></span>assay</a>\n",
        );
        if section == Section::Closed {
            out.push_str("</nav>\n");
        } else {
            out.push_str("<ul>");
            for (this, path, name) in NAVIGATION {
                let current = match this == section {
                    true => " aria-current=\"page\"",
                    false => "",
                };
                let _ = write!(out, "<li><a href=\"{path}\"{current}>{name}</a></li>");
            }
            if self.jobs.is_some() {
                let current = match section == Section::Measure {
                    true => " aria-current=\"page\"",
                    false => "",
                };
                let _ = write!(out, "<li><a href=\"/actions\"{current}>Measure</a></li>");
            }
            out.push_str(
                "</ul></nav>\n<form class=\"find\" role=\"search\" action=\"/advice\" method=\"get\">\
                 <input type=\"search\" name=\"q\" placeholder=\"Search advice\" aria-label=\"Search the catalogue\">\
                 </form>\n",
            );
        }
        out.push_str("</div>\n");
        if let Some(notice) = self
            .options
            .notice
            .as_ref()
            .filter(|_| section != Section::Closed)
        {
            let _ = writeln!(
                out,
                "<aside class=\"notice\" aria-label=\"Notice\">{}</aside>",
                escape_html(notice)
            );
        }
        out
    }
}
