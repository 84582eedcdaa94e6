//! The page that compares two runs: the verdicts of each, every role side by side, and both curves on one axis.

use super::compare::{NamedRun, describe_preference, describe_role};
use super::page::of_whole;
use super::page::{NAME, WIDTH};
use super::person_sentences::{cross, headline};
use super::{Net, format_mbit, format_ms, format_percent, grade_word};
use crate::plan::{BarLine, BarPart, PlanSection, render_page_of_verb};
use assay_net::role::{Role, Workload};
use assay_net::verdict::{PersonVerdict, RoleVerdict, Second};
use assay_render::svg::canvas::{Svg, TextAnchor, shorten_name};
use assay_render::text::escape_line;
use assay_render::units::NONE;
use jiff::tz::TimeZone;

/// Renders the comparison as one self-contained page.
#[must_use]
pub fn compared_page(runs: &[NamedRun<'_>; 2], zone: &TimeZone) -> String {
    let judged = runs.each_ref().map(|named| named.run.judged());
    let nets = [0, 1].map(|at| Net {
        run: runs[at].run,
        judged: &judged[at],
        zone: zone.clone(),
    });
    let names = runs.each_ref().map(|named| escape_line(&named.name));
    let intro = [
        describe_preference(runs, &judged),
        format!("A is {}, B is {}.", names[0], names[1]),
    ];
    let sections = [
        build_verdicts_section(&nets),
        build_roles_section(&nets),
        build_curves_section(&nets),
    ];
    render_page_of_verb("assay net", "Two runs beside each other", &intro, &sections)
}

/// A person's results in the first and in the second run.
struct Both<'a> {
    person: [Option<&'a PersonVerdict>; 2],
    roles: [Vec<Role>; 2],
    missing: [Option<&'a str>; 2],
    name: &'a str,
}

fn pair_people<'a>(nets: &'a [Net<'a>; 2]) -> Vec<Both<'a>> {
    let first: Vec<_> = nets[0].people().collect();
    let second: Vec<_> = nets[1].people().collect();
    let names = first
        .iter()
        .chain(&second)
        .map(|(person, ..)| &*person.person);
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    let find = |all: &[(&'a PersonVerdict, Vec<Role>, Option<&'a str>)], name: &str| {
        let found = all.iter().find(|(person, ..)| person.person == name);
        found.map(|(person, roles, missing)| (*person, roles.clone(), *missing))
    };
    seen.into_iter()
        .map(|name| {
            let [one, two] = [find(&first, name), find(&second, name)];
            Both {
                person: [one.as_ref().map(|it| it.0), two.as_ref().map(|it| it.0)],
                missing: [
                    one.as_ref().and_then(|it| it.2),
                    two.as_ref().and_then(|it| it.2),
                ],
                roles: [one, two].map(|it| it.map_or_else(Vec::new, |it| it.1)),
                name,
            }
        })
        .collect()
}

fn build_verdicts_section(nets: &[Net<'_>; 2]) -> PlanSection {
    let rows = pair_people(nets).into_iter().map(|both| {
        let share = |at: usize| {
            let person = both.person[at]?;
            let worst = person
                .roles
                .iter()
                .filter(|role| role.grade == person.grade);
            worst.filter_map(RoleVerdict::share_over).reduce(f64::max)
        };
        let bar = |at: usize, colour, side| -> Vec<BarPart> {
            let part = share(at).map(|share| BarPart {
                colour,
                amount: share,
                says: format!("{side}: {} over the goal", format_percent(share)),
            });
            part.into_iter().collect()
        };
        let told = |at: usize| {
            let Some(person) = both.person[at] else {
                return [NONE.to_owned(), "Not in this run.".to_owned()];
            };
            let said = headline(person, &both.roles[at], both.missing[at], &|us| {
                nets[at].clock(us)
            });
            [grade_word(person.grade).to_owned(), said]
        };
        let [[one, one_said], [two, two_said]] = [told(0), told(1)];
        BarLine {
            label: both.name.to_owned(),
            lanes: vec![bar(0, "copy", "A"), bar(1, "data", "B")],
            cells: vec![one, two, one_said, two_said],
            ..BarLine::default()
        }
    });
    PlanSection {
        heading: "What everybody noticed".to_owned(),
        about: "The bars are the share over the goal of the role that was worst: A above, B below. Shorter is better."
            .to_owned(),
        columns: vec!["person", "A", "B", "what A was like", "what B was like"],
        rows: rows.collect(),
        ..of_whole()
    }
}

/// Returns person, role, and the verdict of each run, for the roles of all people.
fn pair_roles<'a>(nets: &'a [Net<'a>; 2]) -> Vec<(&'a str, Role, [Option<&'a RoleVerdict>; 2])> {
    let mut out: Vec<(&str, Role, [Option<&RoleVerdict>; 2])> = Vec::new();
    for both in pair_people(nets) {
        for at in [0, 1] {
            let verdicts = both.person[at].map_or(&[][..], |person| &person.roles);
            for (role, verdict) in both.roles[at].iter().zip(verdicts) {
                let same = |own: &&mut (&str, Role, [Option<&RoleVerdict>; 2])| {
                    own.0 == both.name && own.1.name == role.name
                };
                match out.iter_mut().find(same) {
                    Some(known) => known.2[at] = Some(verdict),
                    None => {
                        let mut two = [None, None];
                        two[at] = Some(verdict);
                        out.push((both.name, role.clone(), two));
                    }
                }
            }
        }
    }
    out
}

fn build_roles_section(nets: &[Net<'_>; 2]) -> PlanSection {
    let rows = pair_roles(nets).into_iter().map(|(person, role, two)| {
        let told = |verdict: Option<&RoleVerdict>| {
            verdict.map_or_else(|| NONE.to_owned(), |verdict| describe_role(&role, verdict))
        };
        let worst = |verdict: Option<&RoleVerdict>| {
            format_ms(verdict.and_then(|verdict| verdict.latency.p99))
        };
        BarLine {
            label: person.to_owned(),
            cells: vec![
                escape_line(&role.name),
                told(two[0]),
                told(two[1]),
                worst(two[0]),
                worst(two[1]),
                format_ms(role.within_us()),
            ],
            ..BarLine::default()
        }
    });
    PlanSection {
        heading: "Every role".to_owned(),
        about: "What failed or was lost counts as slower than anything: a percentile that falls there is not given."
            .to_owned(),
        columns: vec!["person", "role", "A", "B", "A: p99", "B: p99", "goal"],
        rows: rows.collect(),
        drawing: Some(String::new()),
        ..PlanSection::default()
    }
}

const ROW: f64 = 84.0;

fn is_bulk(role: &Role) -> bool {
    matches!(
        role.workload,
        Workload::Bulk { .. } | Workload::Responsiveness { .. }
    )
}

/// Returns the plotted value of one second of a role: the longest latency in milliseconds, or the rate in Mbit/s.
/// Returns `None` if no event was due in that second.
fn plotted_value(role: &Role, second: &Second) -> Option<f64> {
    match is_bulk(role) {
        true => Some(second.bytes as f64 * 8.0 / 1e6),
        false => (second.due > 0 && second.longest_us > 0).then(|| second.longest_us as f64 / 1e3),
    }
}

fn build_curves_section(nets: &[Net<'_>; 2]) -> PlanSection {
    let all = pair_roles(nets);
    let seconds = nets[0].seconds().max(nets[1].seconds());
    let height = all.len() as f64 * ROW + 20.0;
    let mut svg = Svg::new(WIDTH, height);
    let x = |second: f64| NAME + second / seconds.max(1) as f64 * (WIDTH - NAME);
    for (at, (person, role, two)) in all.iter().enumerate() {
        let (top, bottom) = (at as f64 * ROW + 8.0, (at as f64 + 1.0) * ROW - 8.0);
        let label = shorten_name(&cross(person, &role.name), 17);
        svg.add_text(NAME - 66.0, top + 12.0, TextAnchor::End, "", &label);
        // Void seconds leave a gap; seconds without a due event do not.
        let values = |verdict: Option<&RoleVerdict>| -> Vec<Vec<(f64, f64)>> {
            let seconds = verdict.map_or(&[][..], |verdict| &verdict.seconds);
            let point =
                |second: &Second| Some((f64::from(second.at) + 0.5, plotted_value(role, second)?));
            let parts = seconds.split(|second| second.void);
            parts
                .map(|part| part.iter().filter_map(point).collect())
                .collect()
        };
        let of = [values(two[0]), values(two[1])];
        let goal = role
            .within_us()
            .map(|us| us as f64 / 1e3)
            .filter(|_| !is_bulk(role));
        let most = of.iter().flatten().flatten().map(|(_, value)| *value);
        let most = most.chain(goal).fold(0.0, f64::max).max(1e-6);
        let y = |value: f64| bottom - value / most * (bottom - top);
        svg.add_line((NAME, bottom), (WIDTH, bottom), "gr");
        let says = match is_bulk(role) {
            true => format_mbit(most * 1e6),
            false => format_ms(Some((most * 1e3) as u64)),
        };
        svg.add_text(NAME - 4.0, top + 8.0, TextAnchor::End, "ax n", &says);
        svg.add_text(NAME - 4.0, bottom, TextAnchor::End, "ax n", "0");
        if let Some(goal) = goal {
            svg.add_line((NAME, y(goal)), (WIDTH, y(goal)), "level");
        }
        for (parts, class) in of.iter().zip(["span dash", "line"]) {
            for part in parts {
                let mut points: Vec<(f64, f64)> = part
                    .iter()
                    .map(|(second, value)| (x(*second), y(*value)))
                    .collect();
                // A single second is drawn as a short line.
                if let [(at, level)] = points[..] {
                    points = vec![(at - 3.0, level), (at + 3.0, level)];
                }
                svg.add_path(&points, class);
            }
        }
    }
    for (at, anchor) in [(0, TextAnchor::Start), (seconds, TextAnchor::End)] {
        svg.add_text(
            x(at as f64),
            height - 5.0,
            anchor,
            "ax n",
            &format!("{at} s"),
        );
    }
    PlanSection {
        heading: "Second by second".to_owned(),
        about: "Dashed A, solid B: the longest time of every second, of downloads and uploads what came in it. The dotted \
                line is the goal. Each row has its own scale, from 0 to the longest of both runs. Seconds that do not \
                count leave a gap."
            .to_owned(),
        drawing: Some(svg.finish("curves", "Second by second", "Both runs; the table above has the figures.")),
        ..PlanSection::default()
    }
}
