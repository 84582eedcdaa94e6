//! The pages of the site. Each page has its own module, and its template in `templates/`. A page function receives the
//! request and returns the page.

pub(crate) mod about;
pub(crate) mod actions;
pub(crate) mod advice;
pub(crate) mod assets;
pub(crate) mod catalogue;
pub(crate) mod duplicates;
pub(crate) mod figures;
pub(crate) mod machine;
pub(crate) mod machines;
pub(crate) mod observations;
pub(crate) mod overview;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod trial;
pub(crate) mod trials;
pub(crate) mod tuning;

mod accepted_findings;
mod attention;
mod figure_chart;
mod figure_views;
mod machine_row;
mod run_row;
mod trial_row;

use crate::query::{QueryParameters, encode_segment};
use assay_render::text::{escape_line, shorten_line};
use jiff::Timestamp;
use serde::Serialize;

/// Maximum number of characters of a foreign name that a page shows. The whole name is in its tooltip and on its own
/// page.
const MOST_NAME: usize = 80;

/// Maximum number of bytes of a name in a hyperlink, because servers refuse very long URLs.
const MOST_LINKED: usize = 600;

/// A hyperlink, with its text and its address.
#[derive(Clone, Debug, Serialize)]
struct LinkView {
    text: String,
    href: String,
}

/// A point in time, in several formats.
#[derive(Clone, Debug, Serialize)]
struct TimeView {
    /// Time relative to now, such as `3 h ago`.
    ago: String,
    /// Exact time for users.
    exact: String,
    /// Exact time for programs (ISO 8601).
    iso: String,
}

impl TimeView {
    fn new(at: Timestamp) -> Self {
        Self {
            ago: format_ago(Timestamp::now().duration_since(at).as_secs()),
            exact: assay_render::units::format_timestamp(at),
            iso: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }
    }
}

fn format_ago(seconds: i64) -> String {
    match seconds {
        ..0 => "in the future".to_owned(),
        0..60 => "just now".to_owned(),
        60..7_200 => format!("{} min ago", seconds / 60),
        7_200..172_800 => format!("{} h ago", seconds / 3_600),
        172_800..7_776_000 => format!("{} days ago", seconds / 86_400),
        _ => format!("{} months ago", seconds / 2_629_800),
    }
}

/// Escapes a foreign name, and shortens it so that it fits into a table cell.
fn short_name(name: &str) -> String {
    shorten_line(name, MOST_NAME)
}

/// Returns the link to a machine.
fn machine_link(name: &str) -> LinkView {
    LinkView {
        text: short_name(name),
        href: match name.len() > MOST_LINKED {
            true => "/machines".to_owned(),
            false => format!("/machines/{}", encode_segment(name)),
        },
    }
}

/// Returns the HTML id of the finding of a rule, as far as the id depends on the rule.
fn finding_anchor(rule: &str) -> String {
    let start: String = rule.chars().take(MOST_NAME).collect();
    encode_segment(&start)
}

/// Joins values for a tooltip or a table cell, as in `a, b and 3 more`.
fn join_some(names: &[String], most: usize) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(most)
        .map(|name| short_name(name))
        .collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Number of rows that one page of a list shows.
const ROWS: usize = 100;

/// Position in a long list, with hyperlinks to its other pages.
#[derive(Clone, Debug, Serialize)]
struct PagerView {
    from: usize,
    to: usize,
    all: usize,
    before: Option<String>,
    after: Option<String>,
}

impl PagerView {
    /// Returns the rows of the requested page, and the hyperlinks to the other pages.
    fn cut<'a, T>(rows: &'a [T], query: &QueryParameters) -> (&'a [T], Self) {
        let last = rows.len().div_ceil(ROWS).max(1);
        let page = query.page().min(last);
        let from = (page - 1) * ROWS;
        let to = (from + ROWS).min(rows.len());
        let link = |page: usize| format!("?{}", query.with("page", Some(&page.to_string())));
        let view = Self {
            from: (from + 1).min(rows.len()),
            to,
            all: rows.len(),
            before: (page > 1).then(|| link(page - 1)),
            after: (page < last).then(|| link(page + 1)),
        };
        (&rows[from..to], view)
    }
}

/// An option that a filter offers.
#[derive(Clone, Debug, Serialize)]
struct OptionView {
    value: String,
    text: String,
    chosen: bool,
}

/// Maximum number of options that a filter offers. A longer list would not be usable.
const MOST_OPTIONS: usize = 300;

/// Builds the options of a filter from the values that occur, in their order.
fn filter_options<'a>(
    values: impl Iterator<Item = &'a str>,
    chosen: Option<&str>,
) -> Vec<OptionView> {
    // A value that could deceive, or is too long for an address, is no choice; lists show it all the same.
    let values = values.filter(|value| value.len() <= MOST_LINKED && escape_line(value) == *value);
    let values: std::collections::BTreeSet<&str> = values.collect();
    values
        .into_iter()
        .take(MOST_OPTIONS)
        .map(|value| OptionView {
            value: value.to_owned(),
            text: short_name(value),
            chosen: chosen == Some(value),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_beyond_the_end_is_the_last() {
        let rows: Vec<usize> = (0..250).collect();
        let query = QueryParameters::parse("page=9&plan=x");
        let (cut, view) = PagerView::cut(&rows, &query);
        assert_eq!((cut.first(), cut.last()), (Some(&200), Some(&249)));
        assert_eq!((view.from, view.to, view.all), (201, 250, 250));
        assert_eq!(view.before.as_deref(), Some("?plan=x&page=2"));
        assert_eq!(view.after, None);
        let (cut, view) = PagerView::cut(&rows[..0], &query);
        assert_eq!((cut.len(), view.from, view.to), (0, 0, 0));
    }

    #[test]
    fn long_names_are_cut_and_shown_harmless() {
        let name = format!("\u{202e}{}", "x".repeat(1_000_000));
        let short = short_name(&name);
        assert_eq!(short.chars().count(), MOST_NAME);
        assert!(!short.contains('\u{202e}'));
    }
}
