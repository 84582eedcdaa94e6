//! The page of a network test: first the verdicts, then the figures of every role, then what all people experienced,
//! second by second on one time axis.

use super::person_sentences::{cross, headline};
use super::{
    HEAD, Net, describe_run, format_cells, format_mbit, format_ms, format_percent, grade_word,
};
use crate::plan::{BarLine, BarPart, PlanSection, render_page_of_verb};
use assay_net::role::{Role, Workload};
use assay_net::verdict::{Grade, RoleVerdict, Second};
use assay_render::svg::canvas::{Svg, TextAnchor, shorten_name};
use assay_render::text::escape_line;
use assay_render::units::NONE;

/// Renders a network test as one self-contained page.
#[must_use]
pub fn page(net: &Net) -> String {
    let mut sections = vec![
        build_verdicts_section(net),
        build_figures_section(net),
        build_timeline_section(net),
    ];
    sections.extend(super::radio::build_section(net));
    let curves = build_latencies_section(net);
    if !curves.rows.is_empty() {
        sections.push(curves);
    }
    sections.push(build_starts_section(net));
    let title = format!(
        "Many people on one network: {}",
        escape_line(&net.run.plan.name)
    );
    render_page_of_verb("assay net", &title, &describe_run(net), &sections)
}

fn grade_colour(grade: Grade) -> &'static str {
    match grade {
        Grade::Good => "spare",
        Grade::Tolerable => "parity",
        Grade::Bad => "special",
        Grade::Unknown => "idle",
    }
}

fn build_verdicts_section(net: &Net) -> PlanSection {
    let rows = net.people().map(|(person, roles, missing)| {
        let said = headline(person, &roles, missing, &|us| net.clock(us));
        let shares = person
            .roles
            .iter()
            .filter(|role| role.grade == person.grade);
        let share = shares
            .filter_map(RoleVerdict::share_over)
            .fold(0.0, f64::max);
        BarLine {
            label: super::name(person),
            lanes: vec![vec![BarPart {
                colour: grade_colour(person.grade),
                amount: share,
                says: format!("{} over the goal", format_percent(share)),
            }]],
            cells: vec![grade_word(person.grade).to_owned(), said],
            ..BarLine::default()
        }
    });
    PlanSection {
        heading: "What everybody noticed".to_owned(),
        about: "The bar is the share over the goal of the role that was worst.".to_owned(),
        columns: vec!["person", "verdict", "what it was like"],
        rows: rows.collect(),
        ..of_whole()
    }
}

/// Creates an empty section whose axis goes from 0 to 100 %.
pub(super) fn of_whole() -> PlanSection {
    PlanSection {
        full: Some(1.0),
        ticks: vec![
            (0.0, "0 %".to_owned()),
            (0.5, "50 %".to_owned()),
            (1.0, "100 %".to_owned()),
        ],
        ..PlanSection::default()
    }
}

fn list_roles<'a>(net: &'a Net) -> impl Iterator<Item = (&'a str, Role, &'a RoleVerdict)> {
    net.people().flat_map(|(person, roles, _)| {
        roles
            .into_iter()
            .zip(&person.roles)
            .map(|(role, verdict)| (&*person.person, role, verdict))
            .collect::<Vec<_>>()
    })
}

fn build_figures_section(net: &Net) -> PlanSection {
    let rows = list_roles(net).map(|(person, role, verdict)| BarLine {
        label: person.to_owned(),
        lanes: vec![],
        cells: {
            let mut cells = format_cells(net, verdict);
            cells.push(format_ms(role.within_us()));
            cells.push(format_ms(verdict.jitter_us));
            cells
        },
        ..BarLine::default()
    });
    PlanSection {
        heading: "Every role".to_owned(),
        about: "What failed or was lost counts as slower than anything: a percentile that falls there is not given, and \
                none for which there was too little. The worst second is the one with most over its goal."
            .to_owned(),
        columns: std::iter::once("person").chain(HEAD).chain(["goal", "jitter"]).collect(),
        rows: rows.collect(),
        drawing: Some(String::new()),
        ..PlanSection::default()
    }
}

/// X coordinate in pixels where the curve names end and the time axis begins.
pub(super) const NAME: f64 = 170.0;
/// Width in pixels of a drawing with curve names on the left.
pub(super) const WIDTH: f64 = 720.0;
/// Width in pixels of a drawing in which each name is above its row, so that it fits on a phone.
pub(super) const SECONDS: f64 = 560.0;
/// Height in pixels of a name above its row.
pub(super) const ABOVE: f64 = 16.0;
const ROW: f64 = 18.0;
/// Maximum length of a name above a row, in characters.
pub(super) const LETTERS: usize = 56;

fn build_timeline_section(net: &Net) -> PlanSection {
    let rows: Vec<(&str, Role, &RoleVerdict)> = list_roles(net).collect();
    let seconds = net.seconds();
    let height = rows.len() as f64 * (ABOVE + ROW) + 20.0;
    let mut svg = Svg::new(SECONDS, height);
    let wide = SECONDS / seconds.max(1) as f64;
    for (at, (person, role, verdict)) in rows.iter().enumerate() {
        let top = at as f64 * (ABOVE + ROW) + ABOVE;
        let label = shorten_name(&cross(person, &role.name), LETTERS);
        svg.add_text(0.0, top - 3.0, TextAnchor::Start, "", &label);
        let most = verdict
            .seconds
            .iter()
            .map(|second| second.bytes)
            .max()
            .unwrap_or(0);
        for second in &verdict.seconds {
            let (class, says) = choose_cell(role, second, most);
            let says = format!("{} {says}", net.clock(u64::from(second.at) * 1_000_000));
            let x = f64::from(second.at) * wide;
            // Worse is drawn higher, so that colour is not the only difference.
            let high = match class {
                "special" => ROW - 3.0,
                "parity" => (ROW - 3.0) * 0.65,
                _ => (ROW - 3.0) * 0.35,
            };
            let at = [x, top + ROW - 2.0 - high, (wide - 0.5).max(0.5), high];
            svg.add_titled_rect(at, &format!("c-{class}"), &says);
        }
    }
    draw_axis(&mut svg, net, seconds, height, (0.0, SECONDS));
    PlanSection {
        heading: "Second by second".to_owned(),
        about: "Everybody on one axis. Low and green: as it should be; higher and yellow: some over the goal; high and \
                red: most of it. Grey does not count, or nothing was due. Of downloads and uploads: against their own \
                best second. Point at a second for its figures."
            .to_owned(),
        drawing: Some(svg.finish("timeline", "Second by second", "Seconds of everybody; the table above has the figures.")),
        ..PlanSection::default()
    }
}

/// Draws the times of day below a drawing. Its x axis covers `seconds`, and extends from pixel `from` to pixel `to`.
pub(super) fn draw_axis(
    svg: &mut Svg,
    net: &Net,
    seconds: usize,
    height: f64,
    (from, to): (f64, f64),
) {
    let wide = (to - from) / seconds.max(1) as f64;
    for at in [0, seconds / 2, seconds] {
        let anchor = match at {
            0 => TextAnchor::Start,
            at if at == seconds => TextAnchor::End,
            _ => TextAnchor::Middle,
        };
        let x = from + at as f64 * wide;
        svg.add_text(
            x,
            height - 5.0,
            anchor,
            "ax n",
            &net.clock(at as u64 * 1_000_000),
        );
    }
}

fn choose_cell(role: &Role, second: &Second, most: u64) -> (&'static str, String) {
    let rate = format_mbit(second.bytes as f64 * 8.0);
    if second.void {
        return ("idle", "does not count".to_owned());
    }
    if matches!(role.workload, Workload::Bulk { .. }) {
        let share = second.bytes as f64 / most.max(1) as f64;
        let class = match share {
            share if share > 0.5 => "spare",
            share if share > 0.1 => "parity",
            _ => "special",
        };
        return (class, rate);
    }
    let says = format!(
        "{} due, {} over, longest {}, {rate}",
        second.due,
        second.over,
        format_ms(Some(second.longest_us))
    );
    let class = match (second.due, second.over) {
        (0, _) => "idle",
        (_, 0) => "spare",
        (due, over) if over * 2 <= due => "parity",
        _ => "special",
    };
    (class, says)
}

/// Builds the bars of the median, the 99th percentile and the maximum on one scale.
fn build_latencies_section(net: &Net) -> PlanSection {
    let rows = list_roles(net).filter_map(|(person, role, verdict)| {
        let p50 = verdict.latency.p50?;
        let bar = |name: &str, us: Option<u64>, colour| {
            us.map(|us| {
                vec![BarPart {
                    colour,
                    amount: us as f64 / 1e3,
                    says: format!("{name} {}", format_ms(Some(us))),
                }]
            })
        };
        let lanes = [
            bar("p50", Some(p50), "data"),
            bar(
                "p99",
                verdict.latency.p99.or(verdict.latency.p90),
                "metadata",
            ),
            bar("max", verdict.latency.max, "parity"),
        ];
        Some(BarLine {
            label: cross(person, &role.name),
            lanes: lanes.into_iter().flatten().collect(),
            cells: vec![
                format_ms(Some(p50)),
                format_ms(verdict.latency.p90),
                format_ms(verdict.latency.p99),
                format_ms(verdict.latency.max),
            ],
            ..BarLine::default()
        })
    });
    PlanSection {
        heading: "How long it took".to_owned(),
        about: "From when it was due until all of it was there: half, 99 % (90 % where there were fewer than 100), and \
                the slowest."
            .to_owned(),
        columns: vec!["who", "p50", "p90", "p99", "max"],
        rows: rows.collect(),
        ..PlanSection::default()
    }
}

fn build_starts_section(net: &Net) -> PlanSection {
    let rows = net.run.people.iter().map(|taken| {
        let start = taken.record.as_ref().map(|record| record.start);
        let congestion = taken.record.as_ref().map(|record| &record.congestion);
        let algorithm =
            |name: Option<&String>| name.map_or_else(|| NONE.to_owned(), |name| escape_line(name));
        let us = |value: Option<i64>| format_ms(value.and_then(|us| u64::try_from(us.abs()).ok()));
        BarLine {
            label: taken.person.clone(),
            cells: vec![
                escape_line(&taken.client),
                algorithm(congestion.and_then(|both| both.server.as_ref())),
                algorithm(congestion.and_then(|both| both.client.as_ref())),
                us(start.map(|start| start.late_us)),
                us(start.map(|start| start.error_us)),
                format_ms(start.map(|start| start.idle_us)),
                us(start.and_then(|start| start.drift_us)),
            ],
            ..BarLine::default()
        }
    });
    PlanSection {
        heading: "Devices and their start".to_owned(),
        about: "No wall clock was asked: the offset to the server's clock is that of the exchange with the smallest \
                round trip, and is off by half of it at most."
            .to_owned(),
        columns: vec![
            "person",
            "device",
            "server sends with",
            "device sends with",
            "began late by",
            "clock known to",
            "idle round trip",
            "moved since",
        ],
        rows: rows.collect(),
        drawing: Some(String::new()),
        ..PlanSection::default()
    }
}
