//! The census of vehicles, by make, that are recognised from their Wi-Fi networks: text, Markdown, HTML and JSON. The
//! vehicles are counted in `assay-wifi`.

use assay_model::SCHEMA_VERSION;
use assay_render::html::{ChartTable, render_page};
use assay_render::markdown;
use assay_render::{Style, table};
use assay_wifi::census::{Census, MakeCount};
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

/// JSON document of the number of vehicles by make.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "Document")]
pub struct CensusDocument<'a> {
    schema: u32,
    #[serde(flatten)]
    census: &'a Census,
}

/// Converts the census to JSON.
#[must_use]
pub fn census_to_json(census: &Census) -> Value {
    serde_json::json!(CensusDocument {
        schema: SCHEMA_VERSION,
        census,
    })
}

/// Describes the data of the census, and what the columns mean.
fn describe_census(census: &Census) -> Vec<String> {
    let mut all = vec![format!(
        "{} networks were looked at, {} of them under addresses that devices made up, which name no maker.",
        census.networks, census.local_addresses
    )];
    if !census.registry {
        all.push("Makers could not be looked up: install the package ieee-data, or name the directory of oui.csv with --registry. Only names speak, and makers that a file names itself.".to_owned());
    }
    all.push(
        "both: addresses with the name and the maker of a make. name: with the name, and no maker \
         known. other maker: with the name, and a maker of something else. at least: what may be \
         one vehicle counts once, and names that others use too only with their maker. at most: \
         every address is a vehicle. published: what the blog series counted by name in 30 days at \
         one place."
            .to_owned(),
    );
    if census.unnamed > 0 {
        all.push(format!(
            "{} more have a radio that is built for vehicles, under another name; they are in no row.",
            census.unnamed
        ));
    }
    all
}

fn format_row(counted: &MakeCount) -> Vec<String> {
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

/// Renders the census for a terminal.
#[must_use]
pub fn render_census_text(census: &Census, style: Style) -> String {
    let rows: Vec<Vec<String>> = census.makes.iter().map(format_row).collect();
    let wide = table::render_table(0, SIDES, &HEAD, &rows);
    let room = style.columns();
    let fits = wide.lines().all(|line| line.chars().count() <= room);
    let mut out = String::new();
    match fits {
        true => out.push_str(&wide),
        // In a narrow terminal the columns are printed below each other.
        false => {
            for row in &rows {
                let figures: Vec<String> = HEAD
                    .iter()
                    .zip(row)
                    .skip(1)
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect();
                style.write_paragraph(
                    &mut out,
                    "",
                    2,
                    &format!("{}: {}", row[0], figures.join(", ")),
                );
            }
        }
    }
    for sentence in describe_census(census) {
        out.push('\n');
        style.write_paragraph(&mut out, "", 0, &sentence);
    }
    out
}

/// Renders the census as Markdown.
#[must_use]
pub fn render_census_markdown(census: &Census) -> String {
    let rows: Vec<Vec<String>> = census.makes.iter().map(format_row).collect();
    let cells = rows
        .iter()
        .map(|row| row.iter().map(|cell| markdown::escape_markdown(cell)));
    let mut out = String::from("# Vehicles by make\n\n");
    out.push_str(&markdown::render_table(&HEAD, SIDES, cells));
    for sentence in describe_census(census) {
        out.push('\n');
        out.push_str(&markdown::escape_markdown(&sentence));
        out.push('\n');
    }
    out
}

/// Renders the census as a page.
#[must_use]
pub fn render_census_page(census: &Census) -> String {
    let data = ChartTable {
        head: HEAD.iter().map(|&name| name.to_owned()).collect(),
        rows: census.makes.iter().map(format_row).collect(),
    };
    render_page(
        "Vehicles by make",
        "",
        TEMPLATE,
        context! { data => Serde(data), sentences => describe_census(census) },
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
            let text = render_census_text(&census, style);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            assert!(text.contains("Mercedes-Benz"), "{text}");
        }
        assert_eq!(render_census_markdown(&census).matches("\n| ").count(), 6);
        assert!(render_census_page(&census).contains("Škoda"));
        assert_eq!(
            census_to_json(&census)["makes"].as_array().unwrap().len(),
            5
        );
    }
}
