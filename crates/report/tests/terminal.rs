//! Tests the terminal and Markdown reports.

mod common;

use assay_model::doubt::{Severity, Validity};
use assay_model::run::RunState;
use assay_render::Style;
use assay_render::text::measure_width;
use assay_report::{markdown, terminal};
use common::{Case, case, plan, plan_toml};

const NARROW: Style = Style {
    color: false,
    width: 80,
};
const WIDE: Style = Style {
    color: false,
    width: 120,
};

fn show(case: &Case, style: Style) -> String {
    let text = terminal::render_run(&case.run, &case.judged, style);
    for line in text.lines() {
        assert!(
            measure_width(line) <= style.width,
            "{} columns: {line}",
            measure_width(line)
        );
        assert_eq!(line.trim_end(), line, "trailing blanks");
    }
    text
}

#[test]
fn quick() {
    insta::assert_snapshot!(show(&common::quick(), NARROW));
    insta::assert_snapshot!("quick_wide", show(&common::quick(), WIDE));
}

#[test]
fn matrix() {
    insta::assert_snapshot!(show(&common::matrix(), NARROW));
    insta::assert_snapshot!("matrix_wide", show(&common::matrix(), WIDE));
}

/// A round at a fiftieth of the rate is mentioned below the grid that contains it, and beside its sample.
#[test]
fn a_round_that_differs_tenfold_is_shown_in_the_table() {
    let mut odd = common::matrix();
    let iops = assay_model::criterion::Metric::all(assay_model::criterion::Quantity::Iops);
    let sample = odd.judged.samples.iter_mut();
    let sample = sample.filter(|one| one.round == 2).nth(3).unwrap();
    let (workload, round) = (sample.workload.clone(), sample.round);
    *sample.figures.get_mut(&iops).unwrap() /= 50.0;
    let named = format!("{workload}, round {round}:");
    assert!(!show(&common::matrix(), WIDE).contains("-fold)"));
    assert!(show(&odd, WIDE).contains(&named));
    assert!(show(&odd, NARROW).contains(&named));
    let verbose = terminal::render_run_verbose(&odd.run, &odd.judged, WIDE);
    let samples = verbose.split("Samples (").nth(1).unwrap();
    assert_eq!(samples.matches("-fold)").count(), 1, "{samples}");
}

#[test]
fn all_void() {
    let case = case(plan("sync"))
        .doubt("tmpfs", Severity::Void, |_| true)
        .want("randwrite-4k-qd1-dsync.p99 <= 2ms");
    insta::assert_snapshot!(show(&case, NARROW));
}

#[test]
fn single_round() {
    let mut plan = plan("device");
    plan.rounds = 1;
    plan.order.retain(|slot| slot.round == 1);
    insta::assert_snapshot!(show(&case(plan), NARROW));
}

#[test]
fn failed_samples() {
    let mut case = case(plan("quick"));
    case.run.state = RunState::Interrupted;
    case.judged.samples.truncate(9);
    for sample in case.judged.samples.iter_mut().take(2) {
        sample.figures.clear();
        sample.validity = Validity::Void;
    }
    insta::assert_snapshot!(show(&case, NARROW));
}

#[test]
fn empty_run() {
    let mut case = case(plan("quick"));
    case.judged.samples.clear();
    case.judged.results.clear();
    case.run.state = RunState::Failed;
    insta::assert_snapshot!(show(&case, NARROW));
}

#[test]
fn comparison() {
    let case = common::quick();
    let text = terminal::render_comparison(&common::compared(&case, 1.03), NARROW);
    assert!(text.lines().all(|line| measure_width(line) <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn every_sample() {
    let text = terminal::render_run_verbose(&common::quick().run, &common::quick().judged, NARROW);
    assert!(text.lines().all(|line| measure_width(line) <= 80), "{text}");
    assert!(text.matches("randread-4k-qd1 ").count() >= 5, "{text}");
}

#[test]
fn markdown_of_quick() {
    let case = common::quick();
    insta::assert_snapshot!(markdown::render_run_markdown(&case.run, &case.judged));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let case = common::matrix();
    let colored = terminal::render_run(
        &case.run,
        &case.judged,
        Style {
            color: true,
            width: 80,
        },
    );
    assert!(colored.contains("\x1b["));
    let mut plain = String::new();
    let mut rest = colored.as_str();
    while let Some(at) = rest.find("\x1b[") {
        plain.push_str(&rest[..at]);
        let end = rest[at..].find('m').unwrap();
        rest = &rest[at + end + 1..];
    }
    plain.push_str(rest);
    let blanks = |text: &str| {
        text.lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(blanks(&plain), blanks(&show(&case, NARROW)));
}

#[test]
fn hostile_names_cannot_move_the_cursor() {
    let mut case = case(plan_toml(
        "name = 'x'\nrounds = 2\n[[workload]]\npattern = 'read'\nblock_size = '4k'\n",
        &["/srv/\u{1b}[2J\u{202e}evil\n"],
    ));
    case.run.plan.title = "a\u{7}b".to_owned();
    case.run.remarks.push("\u{1b}]0;title\u{7}".to_owned());
    let text = show(&case, NARROW);
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    assert!(text.contains("\\u{1b}[2J"), "{text}");
    let text = markdown::render_run_markdown(&case.run, &case.judged);
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
}

#[test]
fn forty_columns_are_enough() {
    for case in [common::quick(), common::matrix()] {
        let text = terminal::render_run(
            &case.run,
            &case.judged,
            Style {
                color: false,
                width: 40,
            },
        );
        assert!(text.contains("IOPS"), "{text}");
    }
}
