//! Tests the pages of the planner: complete, self-contained, and correct for extreme figures.

mod common;

use assay_planner::cache::{CacheAnswer, CacheQuestion};
use assay_planner::capacity::{Coverage, Forecast, Trend, compute_bill, default_factors};
use assay_planner::clones::{Graph, parse_zfs_get, report};
use assay_planner::durability::LossEstimate;
use assay_report::plan::{
    BarLine, BarPart, PlanSection, build_cache_sections, build_capacity_section,
    build_durability_section, build_growth_section, build_lineage_section, format_section,
    render_planner_page,
};
use common::page::{check, texts};

fn part(amount: f64) -> BarPart {
    BarPart {
        colour: "data",
        amount,
        says: "<x>".into(),
    }
}

#[test]
fn nothing_and_nonsense_still_make_a_page() {
    let rows = [f64::NAN, f64::INFINITY, -1.0, 0.0, f64::MAX, f64::MAX]
        .map(|value| BarLine {
            label: "<script>\u{1b}\u{202e}\"&".repeat(20),
            lanes: vec![vec![part(value), part(value)]],
            cells: vec!["</td>".into()],
            ..BarLine::default()
        })
        .to_vec();
    let section = PlanSection {
        heading: "</svg>".into(),
        columns: vec!["a", "b"],
        rows,
        ..PlanSection::default()
    };
    let page = render_planner_page(
        "<h1>",
        &["<p>".into()],
        &[section.clone(), PlanSection::default()],
    );

    for bad in ["NaN", "inf", "\u{1b}", "\u{202e}"] {
        assert!(!page.contains(bad), "{bad}");
    }
    for columns in [1, 40, 60, 80, 200] {
        for line in format_section(&section, 0, columns).lines() {
            let most = columns.clamp(40, 80);
            assert!(
                line.chars().count() <= most && !line.contains('\u{1b}'),
                "{line}"
            );
        }
    }
    assert_eq!(format_section(&PlanSection::default(), 0, 80), "");
}

#[test]
fn a_bill_with_a_hostile_factor() {
    let mut factors = default_factors();
    factors[1].name = "<b onload=x>".into();
    let section = build_capacity_section(&compute_bill(1 << 40, &factors).unwrap());
    let page = render_planner_page("bill", &[], &[section]);
    check(&page);
    assert!(page.contains("&lt;b onload=x&gt;") && page.contains("21.4 TB"));
}

#[test]
fn loss_from_certain_to_impossible() {
    for value in [0.0, 1.0, 1e-300, 0.5, f64::NAN] {
        let seen = LossEstimate {
            years: 1,
            losses: 0,
            loss: 0.0,
            interval: (0.0, 0.79),
        };
        let section = build_durability_section(value, value, 3, Some(&seen));
        let page = render_planner_page("d", &[], std::slice::from_ref(&section));
        check(&page);
        assert!(!page.contains("NaN") && section.ticks.len() <= 9);
        assert_eq!(format_section(&section, 0, 80).lines().count(), 3);
    }
}

#[test]
fn caches_show_only_what_is_known() {
    let question = CacheQuestion::default();
    assert!(build_cache_sections(&question, &CacheAnswer::default()).is_empty());
    let answer = CacheAnswer {
        l2_header_bytes: Some(u64::MAX),
        working_set_in_arc: Some(f64::NAN),
        ..CacheAnswer::default()
    };
    check(&render_planner_page(
        "c",
        &[],
        &build_cache_sections(&question, &answer),
    ));
}

#[test]
fn growing_shrinking_and_absurd_lines() {
    for (per_day, at, days) in [
        (1e9, 0, 300.0),
        (-1e9, 1_700_000_000, 1.0),
        (1e300, i64::MAX, 1e12),
        (f64::NAN, i64::MIN, 0.0),
    ] {
        let trend = Trend {
            per_day,
            interval: (per_day * 0.5, per_day * 2.0),
            now: 1e12,
            at,
            points: 9,
            days,
            coverage: Coverage { held: 9, tried: 10 },
            spread: 1.0,
        };
        let forecast = |share, when| Forecast {
            share,
            already: false,
            when,
            earliest: when.map(|time| time - 86_400),
            latest: None,
        };
        let dates = match at {
            0 => vec![forecast(0.8, Some(86_400_000)), forecast(0.9, None)],
            _ => Vec::new(),
        };
        let section = build_growth_section(&trend, Some(2 << 40), &dates, |t| format!("<{t}>"));
        let page = render_planner_page("g", &[], &[section]);
        check(&page);
        assert!(!page.contains("NaN") && !page.contains("inf"), "{per_day}");
        let full = texts(&page, "th")
            .into_iter()
            .any(|text| text == "80 % full");
        assert_eq!(full, at == 0, "{page}");
    }
}

#[test]
fn hostile_names_and_many_nodes() {
    let mut text = String::new();
    let mut add = |name: &str, origin: Option<&str>| {
        text += &format!("{name}\tused\t10\n{name}\treferenced\t100\n{name}\twritten\t4\n");
        if let Some(origin) = origin {
            text += &format!("{name}\torigin\t{origin}\n");
        }
    };
    add("p/<script>\"", None);
    add("p/<script>\"@1", None);
    for i in 0..50 {
        add(&format!("p/c{i}"), Some("p/<script>\"@1"));
    }
    let graph = Graph::new(parse_zfs_get("x", &text).unwrap()).unwrap();
    let found = report(&graph, None).unwrap();
    let section = build_lineage_section(&graph, &found, None, 12);
    assert_eq!(section.rows.len(), 12);
    assert_eq!(section.rows[2].cells[2..], ["96 B", "4 B"]);
    assert!(section.notes[1].starts_with("40 more") && section.notes[1].contains("400 B"));
    check(&render_planner_page("c", &[], &[section]));
    let one = build_lineage_section(&graph, &found, Some("p/c1"), 12);
    assert_eq!(one.rows.len(), 1);
}
