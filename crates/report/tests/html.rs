//! Tests the HTML report: well-formed, self-contained, escaped, small, and correct for any figures.

mod common;

use assay_model::criterion::{Metric, Quantity};
use assay_model::result::Interval;
use assay_model::{FactKind, Histogram};
use common::page::{check, section, texts};
use common::{Case, case, plan, plan_toml};

fn page(case: &Case) -> String {
    assay_report::html::render_run_page(&case.run, &case.judged, &case.samples, None, &case.jobs)
}

#[test]
fn pages_are_well_formed_and_self_contained() {
    for case in [common::quick(), common::matrix()] {
        check(&page(&case));
        let comparison = common::compared(&case, 1.1);
        let against = Some((&case.run, &case.judged, &comparison));
        check(&assay_report::html::render_run_page(
            &case.run,
            &case.judged,
            &case.samples,
            against,
            &case.jobs,
        ));
    }
}

#[test]
fn a_matrix_stays_under_a_megabyte() {
    let case = common::matrix();
    assert_eq!(
        (case.judged.results.len(), case.judged.samples.len()),
        (48, 240)
    );
    let size = page(&case).len();
    assert!(size < 1_000_000, "{size} bytes");
}

#[test]
fn the_same_run_gives_the_same_page() {
    assert_eq!(page(&common::matrix()), page(&common::matrix()));
}

#[test]
fn hostile_text_is_shown_as_text() {
    let evil = "/srv/<script>alert('1')</script>\"'&\u{202e}\u{7}\n";
    let mut case = case(plan_toml(
        "name = 'x'\nrounds = 2\n[[grid]]\npattern = ['read']\nblock_size = ['4k', '8k']\nqueue_depth = [1, 2]\n",
        &[evil, "/other"],
    ));
    case.run.plan.name = evil.to_owned();
    case.run.plan.title = evil.to_owned();
    case.run.remarks.push(evil.to_owned());
    case.run.uid = evil.to_owned();
    case.run
        .facts
        .known(format!("disk.{evil}.model"), evil, FactKind::Runtime, evil);
    case.jobs.push((evil.to_owned(), evil.to_owned()));
    for result in &mut case.judged.results {
        result.workload = format!("{evil}{}", result.workload);
        result.limit.evidence = evil.to_owned();
        result.steadiness.reason = evil.to_owned();
        result.description = evil.to_owned();
    }
    let page = page(&case.doubt(evil, assay_model::Severity::Suspect, |_| true));
    check(&page);
    assert!(!page.contains("<script") && !page.contains(['\u{202e}', '\u{7}']));
    assert!(page.contains("&lt;script&gt;"), "shown, not dropped");
}

#[test]
fn nothing_measured_still_makes_a_page() {
    let mut case = case(plan("quick"));
    case.judged.results.clear();
    case.judged.samples.clear();
    case.samples.clear();
    case.run.targets.clear();
    case.run.facts.map.clear();
    case.jobs.clear();
    let page = page(&case);
    check(&page);
    insta::assert_snapshot!(texts(section(&page, "figures"), "p").join("\n"), @"Nothing was measured.");
}

#[test]
fn odd_figures_never_break_a_page() {
    let odd = [
        0.0,
        -1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e-300,
        1e300,
        f64::MAX,
        5e-324,
    ];
    for plan_name in ["quick", "matrix"] {
        for value in odd {
            let mut case = case(plan(plan_name));
            for result in &mut case.judged.results {
                for estimate in result.estimates.values_mut() {
                    estimate.value = value;
                    estimate.interval = Some(Interval {
                        low: -value,
                        high: value,
                        confidence: 0.95,
                    });
                }
                for (_, points) in &mut result.series {
                    points
                        .iter_mut()
                        .flat_map(|point| point.rates.values_mut())
                        .for_each(|rate| rate.bytes_per_s = value);
                }
            }
            for sample in &mut case.judged.samples {
                sample.figures.insert(Metric::all(Quantity::Iops), value);
            }
            check(&page(&case));
        }
    }
}

#[test]
fn single_points_and_extreme_latencies_make_a_page() {
    for bins in [
        vec![(0u64, 1u64)],
        vec![(u64::MAX, u64::MAX)],
        vec![(1, u64::MAX), (2, u64::MAX)],
        vec![(5, 1)],
    ] {
        let mut case = case(plan("quick"));
        for result in &mut case.judged.results {
            result.latency = bins.iter().copied().collect::<Histogram>();
            result
                .series
                .iter_mut()
                .for_each(|(_, points)| points.truncate(1));
        }
        check(&page(&case));
    }
}

#[test]
fn five_hundred_workloads_make_a_page_of_reasonable_size() {
    let mut text = "name = 'many'\nrounds = 2\n".to_owned();
    for i in 0..500 {
        text.push_str(&format!(
            "[[workload]]\nname = 'w{i}'\npattern = 'randread'\nblock_size = '4k'\n"
        ));
    }
    let case = case(plan_toml(&text, &["/srv/synthetic"]));
    let page = page(&case);
    check(&page);
    let notes = texts(section(&page, "figures"), "p class=\"note\"");
    insta::assert_snapshot!(notes.join("\n"), @r"
    Charts show the first 64 of 500 workloads; the table of figures has all.
    A dot is the figure over all rounds, the bar its interval, thin strokes the single rounds; a hollow dot is suspect. Logarithmic axes.
    ");
    assert!(page.len() < 3_000_000, "{}", page.len());
}

#[test]
fn doubtful_figures_are_marked_by_more_than_colour() {
    let page = page(&common::matrix());
    assert!(page.contains("class=\"hatch\"") && page.contains(">void<"));
    assert!(page.contains("class=\"hollow\"") && page.contains(" ?</text>"));
}
