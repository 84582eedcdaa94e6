//! Reports of network tests with several people on one network: terminal, JSON and a page from the same verdicts.

mod compare;
mod compare_page;
mod link_sentences;
mod page;
mod person_sentences;
mod radio;
mod trial;

pub use compare::{Document as Compared, NamedRun, compared, json as compared_json};
pub use compare_page::compared_page;
pub use page::page;
pub use person_sentences::{cause, clients, cross, headline, live};
pub use trial::{TrialDocument, trial_json, trial_page, trial_pair, trial_terminal, trial_verdict};

use assay_model::SCHEMA_VERSION;
use assay_net::result::{Experience, Run, Spread, experience};
use assay_net::role::Role;
use assay_net::verdict::{Grade, PersonVerdict, RoleVerdict};
use assay_render::table::TableColumns;
use assay_render::terminal_style::Style;
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_grouped, format_latency, format_plural};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// A network test with the verdict for each person.
pub struct Net<'a> {
    /// The run as it is stored.
    pub run: &'a Run,
    /// Verdicts for the people, in the order of the run.
    pub judged: &'a [PersonVerdict],
    /// Time zone in which times are printed.
    pub zone: TimeZone,
}

impl Net<'_> {
    /// Formats the time of day that is `us` microseconds after the start.
    fn clock(&self, us: u64) -> String {
        time_of_day(self.run.began, us, &self.zone)
    }

    /// Returns the length of the longest record in seconds.
    fn seconds(&self) -> usize {
        let roles = self.judged.iter().flat_map(|person| &person.roles);
        roles.map(|role| role.seconds.len()).max().unwrap_or(0)
    }

    /// Iterates over the people with their roles and verdicts.
    fn people(&self) -> impl Iterator<Item = (&PersonVerdict, Vec<Role>, Option<&str>)> {
        let people = self.run.plan.people.iter().zip(&self.run.people);
        self.judged
            .iter()
            .zip(people)
            .map(|(judged, (person, taken))| {
                let roles = self.run.plan.roles_of(person).unwrap_or_default();
                (judged, roles, taken.missing.as_deref())
            })
    }
}

/// Results of a network test with several people. A field whose name ends with `us` is a time in microseconds.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    /// Always `net`.
    kind: &'static str,
    /// Number of people with bad, tolerable and good experience.
    experience: Experience,
    /// Time between the start of the first and of the last client; null if unknown.
    spread: Option<Spread>,
    /// Verdicts for the people.
    judged: &'a [PersonVerdict],
    /// The run with all records.
    run: &'a Run,
}

/// Returns one JSON object with the records and the verdicts.
#[must_use]
pub fn json(net: &Net) -> String {
    let value = serde_json::json!(Document {
        schema: SCHEMA_VERSION,
        kind: "net",
        experience: experience(net.judged),
        spread: net.run.spread(),
        judged: net.judged,
        run: net.run,
    });
    format!("{value:#}\n")
}

/// Formats a person and the device, such as `Anna (laptop)`. A device with the same name as the person is left out.
pub(crate) fn name(person: &PersonVerdict) -> String {
    let (who, device) = (escape_line(&person.person), escape_line(&person.client));
    match device.is_empty() || device.to_lowercase() == who.to_lowercase() {
        true => who,
        false => format!("{who} ({device})"),
    }
}

/// Returns the text that a device shows after a run: the grade, and the sentences of the report.
#[must_use]
pub fn verdict(
    person: &PersonVerdict,
    roles: &[Role],
    began: jiff::Timestamp,
    zone: &TimeZone,
) -> String {
    let said = person_sentences::headline(person, roles, None, &|us| time_of_day(began, us, zone));
    format!("{}: {said}", grade_word(person.grade))
}

/// Returns the grade of each person in one line, such as `Anna: good, Ben: bad`.
#[must_use]
pub fn summarize_grades(judged: &[PersonVerdict]) -> String {
    let all = judged.iter().map(|person| {
        let who = escape_line(&person.person);
        format!("{who}: {}", grade_word(person.grade))
    });
    all.collect::<Vec<_>>().join(", ")
}

fn time_of_day(began: jiff::Timestamp, us: u64, zone: &TimeZone) -> String {
    let span = jiff::SignedDuration::from_micros(i64::try_from(us).unwrap_or(0));
    let at = began.checked_add(span).unwrap_or(began);
    at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// Returns the name of a grade for people.
fn grade_word(grade: Grade) -> &'static str {
    match grade {
        Grade::Good => "good",
        Grade::Tolerable => "tolerable",
        Grade::Bad => "bad",
        Grade::Unknown => "not known",
    }
}

fn format_ms(us: Option<u64>) -> String {
    us.map_or_else(|| NONE.to_owned(), |us| format_latency(us as f64 * 1e3))
}

fn format_percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.1 => "<0.1 %".to_owned(),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

fn format_mbit(bit_per_s: f64) -> String {
    format!(
        "{} Mbit/s",
        assay_model::units::format_significant(bit_per_s / 1e6)
    )
}

const HEAD: [&str; 10] = [
    "role",
    "verdict",
    "over goal",
    "lost",
    "p50",
    "p99",
    "p99.9",
    "max",
    "worst second",
    "rate",
];

fn format_cells(net: &Net, role: &RoleVerdict) -> Vec<String> {
    let worst = role.worst.map_or_else(
        || NONE.to_owned(),
        |second| match second.due {
            0 => format!(
                "{} {}",
                net.clock(u64::from(second.at) * 1_000_000),
                format_mbit(second.bytes as f64 * 8.0)
            ),
            due => format!(
                "{} {}/{due}",
                net.clock(u64::from(second.at) * 1_000_000),
                second.over
            ),
        },
    );
    let counted = match role.counted {
        0 => NONE.to_owned(),
        n => format!(
            "{} of {}",
            format_percent(role.share_over().unwrap_or(0.0)),
            format_grouped(n)
        ),
    };
    vec![
        escape_line(&role.role),
        grade_word(role.grade).to_owned(),
        counted,
        role.lost
            .map_or_else(|| NONE.to_owned(), link_sentences::format_loss),
        format_ms(role.latency.p50),
        format_ms(role.latency.p99),
        format_ms(role.latency.p999),
        format_ms(role.latency.max),
        worst,
        role.bit_per_s.map_or_else(|| NONE.to_owned(), format_mbit),
    ]
}

/// Returns the sentences about the whole run.
fn describe_run(net: &Net) -> Vec<String> {
    let of = experience(net.judged);
    let people = |n: usize| format_plural(n as u64, "person", "people");
    let mut out = Vec::new();
    let fine = net.judged.len() - of.bad - of.tolerable - of.unknown;
    out.push(format!(
        "{}: bad for {}, tolerable for {}, good for {}{}.",
        people(net.judged.len()),
        of.bad,
        of.tolerable,
        fine,
        match of.unknown {
            0 => String::new(),
            n => format!(", not known for {n}"),
        }
    ));
    if let Some(spread) = net.run.spread() {
        out.push(format!(
            "All began within {} of each other (the clocks are known to {}).",
            format_latency(spread.spread_us as f64 * 1e3),
            format_latency(spread.error_us as f64 * 1e3)
        ));
    }
    out.extend(link_sentences::describe_congestion(net.run));
    if net.run.aborted {
        out.push("The run was ended early: this is what was measured until then.".to_owned());
    }
    out
}

/// Renders the report for a terminal: a verdict for each person, then the figures.
#[must_use]
pub fn terminal(net: &Net, style: Style) -> String {
    let mut out = String::new();
    let names = net
        .judged
        .iter()
        .map(|p| assay_render::text::measure_width(&name(p)));
    let indent = names.max().unwrap_or(0).min(30) + 2;
    for (person, roles, missing) in net.people() {
        let label = format!("{}  ", name(person));
        let said = person_sentences::headline(person, &roles, missing, &|us| net.clock(us));
        let colour = match person.grade {
            Grade::Good => "32",
            Grade::Tolerable => "33",
            Grade::Bad => "31",
            Grade::Unknown => "2",
        };
        let said = format!("{}: {said}", grade_word(person.grade));
        let mut text = String::new();
        style.write_paragraph(&mut text, &label, indent, &said);
        let word = grade_word(person.grade);
        out.push_str(&text.replacen(word, &style.paint(colour, word), 1));
    }
    out.push('\n');
    write_figures(&mut out, net, style);
    out.push('\n');
    radio::write_table(&mut out, net, style);
    for sentence in describe_run(net) {
        style.write_paragraph(&mut out, "", 0, &sentence);
    }
    out
}

fn write_figures(out: &mut String, net: &Net, style: Style) {
    let mut rows: Vec<Vec<String>> =
        vec![std::iter::once("").chain(HEAD).map(str::to_owned).collect()];
    for person in net.judged {
        for role in &person.roles {
            let name = escape_line(&person.person);
            rows.push(
                std::iter::once(name)
                    .chain(format_cells(net, role))
                    .collect(),
            );
        }
    }
    write_fitting_table(
        out,
        &mut rows,
        "lllrrrrrrrr",
        &["p99.9", "worst second", "max", "rate"],
        style,
    );
}

/// Writes a table without the columns that do not fit. The first column in the list of optional columns is dropped
/// first.
fn write_fitting_table(
    out: &mut String,
    rows: &mut [Vec<String>],
    sides: &str,
    may_go: &[&str],
    style: Style,
) {
    let mut left_out = Vec::new();
    for dropped in may_go {
        if TableColumns::fit(sides, &*rows).width() + 2 <= style.columns() {
            break;
        }
        if let Some(at) = rows[0].iter().position(|cell| cell == dropped) {
            for row in &mut *rows {
                row.remove(at);
            }
            left_out.push(*dropped);
        }
    }
    let columns = TableColumns::fit(sides, &*rows);
    for (at, row) in rows.iter().enumerate() {
        let line = columns.format_row(row);
        let _ = writeln!(out, "  {}", if at == 0 { style.dim(&line) } else { line });
    }
    crate::web::name_left_out(out, &left_out, style);
}

#[cfg(test)]
mod tests;
