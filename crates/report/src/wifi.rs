//! Vehicles that send networks, by make: for people (text, Markdown, HTML) and for programs (JSON).

use assay_model::SCHEMA_VERSION;
use assay_render::html::{Table, page};
use assay_render::markdown;
use assay_render::{Style, table};
use assay_wifi::census::{Census, Counted};
use minijinja::context;
use minijinja::value::Serde;
use serde_json::Value;

const HEAD: [&str; 7] = [
    "make",
    "both",
    "name",
    "other maker",
    "at least",
    "at most",
    "published",
];
const SIDES: &str = "lrrrrrr";
const TEMPLATE: &str = include_str!("wifi/page.html");

/// Vehicles by make.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    census: &'a Census,
}

/// The document for programs.
#[must_use]
pub fn json(census: &Census) -> Value {
    serde_json::json!(Document {
        schema: SCHEMA_VERSION,
        census,
    })
}

/// What was looked at, and what the columns mean.
fn sentences(census: &Census) -> Vec<String> {
    let mut all = vec![format!(
        "{} networks were looked at, {} of them under addresses that devices made up, which name no maker.",
        census.networks, census.local_addresses
    )];
    if !census.registry {
        all.push("Makers could not be looked up: install the package ieee-data, or name the directory of oui.csv with --registry. Only names speak, and makers that a file names itself.".to_owned());
    }
    all.push(
        "both: addresses with the name and the maker of a make. name: with the name, and no maker known. other maker: with the name, and a maker of something else. at least: what may be one vehicle counts once, and names that others use too only with their maker. at most: every address is a vehicle. published: what the blog series counted by name in 30 days at one place.".to_owned(),
    );
    if census.unnamed > 0 {
        all.push(format!(
            "{} more have a radio that is built for vehicles, under another name; they are in no row.",
            census.unnamed
        ));
    }
    all
}

fn row(counted: &Counted) -> Vec<String> {
    let figures = [
        counted.both,
        counted.name_only,
        counted.other_maker,
        counted.at_least,
        counted.at_most,
        counted.published,
    ];
    let mut row = vec![counted.make.to_owned()];
    row.extend(figures.iter().map(usize::to_string));
    row
}

/// The whole text.
#[must_use]
pub fn terminal(census: &Census, style: Style) -> String {
    let rows: Vec<Vec<String>> = census.makes.iter().map(row).collect();
    let wide = table::table(0, SIDES, &HEAD, &rows);
    let room = style.columns();
    let fits = wide.lines().all(|line| line.chars().count() <= room);
    let mut out = String::new();
    match fits {
        true => out.push_str(&wide),
        // One below the other where the columns have no room.
        false => {
            for row in &rows {
                let figures: Vec<String> = HEAD
                    .iter()
                    .zip(row)
                    .skip(1)
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect();
                style.paragraph(
                    &mut out,
                    "",
                    2,
                    &format!("{}: {}", row[0], figures.join(", ")),
                );
            }
        }
    }
    for sentence in sentences(census) {
        out.push('\n');
        style.paragraph(&mut out, "", 0, &sentence);
    }
    out
}

/// The same as Markdown.
#[must_use]
pub fn markdown(census: &Census) -> String {
    let rows: Vec<Vec<String>> = census.makes.iter().map(row).collect();
    let cells = rows
        .iter()
        .map(|row| row.iter().map(|cell| markdown::plain(cell)));
    let mut out = String::from("# Vehicles by make\n\n");
    out.push_str(&markdown::table(&HEAD, SIDES, cells));
    for sentence in sentences(census) {
        out.push('\n');
        out.push_str(&markdown::plain(&sentence));
        out.push('\n');
    }
    out
}

/// The same as a page.
#[must_use]
pub fn html(census: &Census) -> String {
    let data = Table {
        head: HEAD.iter().map(|&name| name.to_owned()).collect(),
        rows: census.makes.iter().map(row).collect(),
    };
    page(
        "Vehicles by make",
        "",
        TEMPLATE,
        context! { data => Serde(data), sentences => sentences(census) },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_wifi::registry::Registry;

    #[test]
    fn every_form_tells_the_same_and_fits() {
        let census = assay_wifi::census::census(&[], &Registry::default());
        for width in [80, 40] {
            let style = Style {
                width,
                color: false,
            };
            let text = terminal(&census, style);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            assert!(text.contains("Mercedes-Benz"), "{text}");
        }
        assert_eq!(markdown(&census).matches("\n| ").count(), 6);
        assert!(html(&census).contains("Škoda"));
        assert_eq!(json(&census)["makes"].as_array().unwrap().len(), 5);
    }
}
