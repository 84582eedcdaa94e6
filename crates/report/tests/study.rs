//! Tests the reports of a study: plan, list, terminal, Markdown, JSON, page. Every value is synthetic.

mod common;

use assay_model::Nanos;
use assay_model::study::{StudyResult, StudyRun};
use assay_render::Style;
use assay_render::text::measure_width;
use assay_report::study::{self, StudyPreview, StudyView};
use common::page::{check, texts};
use serde_json::{Value, json};

const PLAIN: Style = Style {
    color: false,
    width: 80,
};

fn run() -> StudyRun {
    let observed = |configuration: &str, figure: &str, round: u32, value: f64| json!({ "configuration": configuration, "figure": figure, "round": round, "value": value });
    let mut observations = Vec::new();
    for round in 1..=3 {
        let drift = f64::from(round);
        observations.push(observed("none", "write", round, 41_000_000.0 + drift * 1e5));
        observations.push(observed(
            "writethrough",
            "write",
            round,
            4_100_000.0 + drift * 1e4,
        ));
        observations.push(observed("none", "lost", round, 0.0));
    }
    observations[1]["doubts"] = json!(["too-short"]);
    serde_json::from_value(json!({
        "uid": "0123456789abcdef", "assay_version": "0.1.0",
        "started": "2026-01-02T03:04:05Z", "ended": "2026-01-02T03:09:05Z",
        "study": {
            "name": "synthetic", "title": "SYNTHETIC: cache modes of a disk",
            "question": "Is writethrough slower than none, and does none lose what it acknowledged?",
            "bench": "guest-disks",
            "source": { "title": "An article", "year": 2013, "machine": "eight cores and one SSD" },
            "forms": { "quick": { "rounds": 3 }, "full": { "rounds": 9 } },
            "configuration": [
                { "name": "none", "title": "raw, ext4, none", "figures": null },
                { "name": "writethrough", "title": null, "figures": null },
                { "name": "zvol", "title": "qcow2 on ext4 on a zvol, writeback", "figures": null },
                { "name": "theirs", "title": "their disk", "figures": null, "published_only": true },
            ],
            "figure": [
                { "name": "write", "title": "random write 4 KiB", "unit": "B/s", "better": "higher",
                  "together": null, "derived": null },
                { "name": "lost", "title": "acknowledged records lost", "better": "lower",
                  "exact": true, "together": null, "derived": null },
                { "name": "latency", "title": "mean latency", "unit": "ns", "better": "lower",
                  "together": null, "derived": null },
            ],
            "published": [
                { "configuration": "writethrough", "figure": "write", "value": 200_000.0,
                  "is": "below", "note": "in some cases" },
                { "configuration": "theirs", "figure": "latency", "value": 51_000.0 },
            ],
            "conclusion": [],
        },
        "form": "quick", "machine": { "guest": "emulated (TCG): no /dev/kvm", "fio": "fio-3.33" },
        "seed": 7, "emulated": true, "observations": observations,
        "not_tried": [{ "configuration": "zvol", "figure": null, "why": "this host has no ZFS" }],
        "complete": true,
    }))
    .unwrap()
}

fn result() -> StudyResult {
    let interval = |low: f64, high: f64| json!({ "low": low, "high": high, "confidence": 0.95 });
    let ratio = json!({
        "kind": "ratio", "figure": "write", "of": "writethrough", "to": "none",
        "at_least": null, "at_most": 0.5,
    });
    let claim = |claim: Value, finding: &str, estimate: Value, published: Value, why: &str| {
        json!({
            "claim": claim, "finding": finding, "estimate": estimate, "published": published,
            "published_finding": null, "why": why,
        })
    };
    serde_json::from_value(json!({
        "cells": [
            { "configuration": "none", "figure": "write",
              "estimate": { "value": 41_200_000.0, "interval": interval(40.9e6, 41.5e6), "rounds": 3 },
              "rounds_void": 0, "doubts": {}, "published": null },
            { "configuration": "none", "figure": "lost",
              "estimate": { "value": 0.0, "interval": interval(0.0, 0.0), "rounds": 3 },
              "rounds_void": 0, "doubts": {}, "published": null },
            { "configuration": "writethrough", "figure": "write",
              "estimate": { "value": 4_120_000.0, "interval": interval(4.0e6, 4.2e6), "rounds": 3 },
              "rounds_void": 0, "doubts": { "too-short": 1 },
              "published": { "configuration": "writethrough", "figure": "write",
                             "value": 200_000.0, "is": "below", "note": "in some cases" } },
            { "configuration": "theirs", "figure": "latency", "estimate": null,
              "rounds_void": 0, "doubts": {},
              "published": { "configuration": "theirs", "figure": "latency", "value": 51_000.0 } },
        ],
        "conclusions": [
            { "says": "writethrough writes painfully slowly.", "finding": "supported",
              "published_finding": null, "today": "It is slow on purpose: every write is flushed.",
              "claims": [claim(ratio.clone(), "supported",
                  json!({ "value": 0.1, "interval": interval(0.098, 0.102), "rounds": 3 }), json!(0.08),
                  "the whole interval lies within what is claimed")] },
            { "says": "none loses something.", "finding": "contradicted", "published_finding": "supported",
              "claims": [claim(json!({ "kind": "value", "figure": "lost", "of": "none",
                                       "at_least": 1.0, "at_most": null }), "contradicted",
                  json!({ "value": 0.0, "interval": interval(0.0, 0.0), "rounds": 3 }), Value::Null,
                  "the whole interval lies outside what is claimed")] },
            { "says": "A zvol is best.", "finding": "not-tried", "published_finding": null,
              "claims": [claim(json!({ "kind": "order", "figure": "write",
                                       "best_first": ["zvol", "none"] }), "not-tried",
                  Value::Null, Value::Null, "zvol: this host has no ZFS")] },
            { "says": "It costs next to nothing.", "finding": "unresolved", "published_finding": null,
              "why": "the guest was emulated", "claims": [claim(ratio, "supported",
                  json!({ "value": 0.1, "interval": null, "rounds": 1 }), Value::Null, "one round")] },
        ],
    }))
    .unwrap()
}

fn fits(text: &str) {
    for line in text.lines() {
        assert!(
            measure_width(line) <= 80,
            "{} columns: {line}",
            measure_width(line)
        );
        assert_eq!(line.trim_end(), line, "trailing blanks");
    }
}

fn with_view<T>(act: impl FnOnce(&StudyView) -> T) -> T {
    let (run, result) = (run(), result());
    act(&StudyView {
        run: &run,
        result: &result,
        id: Some(3),
    })
}

#[test]
fn a_study_in_a_terminal() {
    let text = with_view(|view| study::render_study_text(view, PLAIN));
    fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_study_as_markdown() {
    insta::assert_snapshot!(with_view(study::render_study_markdown));
}

#[test]
fn a_plan_and_lists() {
    let run = run();
    let before = StudyPreview {
        name: "quick",
        form: &run.study.forms.quick,
        place: "/srv/\u{202e}x",
        leaves_out: &[],
        makes: &[
            "file systems on loop devices".to_owned(),
            "a guest".to_owned(),
        ],
        steps: 9,
        time: Nanos(400_000_000_000),
        seed: 7,
    };
    let plan = study::render_study_plan(&run.study, &before, PLAIN);
    let runs = with_view(|view| study::render_study_runs(&[*view], PLAIN));
    let catalogue = study::render_catalogue(std::slice::from_ref(&run.study), PLAIN);
    for text in [&plan, &runs, &catalogue] {
        fits(text);
    }
    insta::assert_snapshot!(format!("{plan}\n----\n{runs}\n----\n{catalogue}"));
}

#[test]
fn the_page_is_well_formed_and_says_what_the_terminal_says() {
    let page = with_view(study::render_study_page);
    check(&page);
    assert!(page.len() < 500_000, "{} bytes", page.len());
    for text in [
        "contradicted",
        "this host has no ZFS",
        "too-short",
        "emulated",
        "below 0.2",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

/// A supported claim in a contradicted conclusion keeps its own colour. No CSS rule of the conclusion overrides it.
#[test]
fn a_word_has_the_colour_of_its_own_finding() {
    let page = with_view(study::render_study_page);
    let word = |class: &str, text: &str| format!("<span class=\"word {class}\">{text}</span>");
    assert!(page.contains(&word("missed", "contradicted")), "{page}");
    for class in ["met", "missed", "suspect"] {
        assert!(page.contains(&format!(".word.{class} {{")), "{class}");
        assert!(!page.contains(&format!(".{class} .word")), "{class}");
    }
}

/// A figure of 0 is a dot on the axis, and the page states where the axis begins.
#[test]
fn a_figure_of_zero_is_a_dot_on_an_axis_from_zero() {
    let page = with_view(study::render_study_page);
    let chart = page
        .split("<svg")
        .skip(1)
        .find(|chart| texts(chart, "title")[0].contains("acknowledged records"))
        .unwrap();
    insta::assert_snapshot!(texts(chart, "desc").join("\n"), @"Dot plot of acknowledged records lost on an axis from 0, a row for each configuration: dots are measured here with their intervals, squares are published, arrows at the left edge are 0.");
    assert!(chart.contains("<circle"), "{chart}");
}

#[test]
fn hostile_text_is_shown_as_text() {
    let evil = "<script>alert('1')</script>\"'&\u{202e}\u{7}\n|`*";
    let (mut run, mut result) = (run(), result());
    let first = &mut result.conclusions[0];
    for text in [
        &mut run.study.title,
        &mut run.study.question,
        &mut run.study.name,
        &mut run.form,
        &mut run.study.source.title,
        &mut run.not_tried[0].why,
        &mut run.study.published[0].note,
        &mut first.says,
        &mut first.today,
        &mut first.claims[0].why,
    ] {
        evil.clone_into(text);
    }
    run.study.configurations[0].title = Some(evil.to_owned());
    run.study.figures[0].title = Some(evil.to_owned());
    run.machine.insert(evil.to_owned(), evil.to_owned());
    result.cells[0].doubts.insert(evil.to_owned(), 1);
    let view = StudyView {
        run: &run,
        result: &result,
        id: None,
    };
    let page = study::render_study_page(&view);
    check(&page);
    assert!(!page.contains("<script>alert"));
    for text in [
        study::render_study_text(&view, PLAIN),
        study::render_study_markdown(&view),
    ] {
        assert!(
            !text.contains('\u{202e}') && !text.contains('\u{7}'),
            "{text}"
        );
    }
    assert!(!study::render_study_markdown(&view).contains("<script>"));
}

#[test]
fn the_document_holds_what_was_observed_and_what_it_came_to() {
    let document = with_view(study::study_to_json);
    assert_eq!(document["id"], 3);
    assert_eq!(document["run"]["observations"].as_array().unwrap().len(), 9);
    assert_eq!(
        document["result"]["conclusions"][1]["finding"],
        "contradicted"
    );
}

#[test]
fn curves_and_rankings_stand_in_tables_of_their_own() {
    let figure = |name: &str, of: &str, at: u32| {
        json!({
            "name": name, "title": format!("{of}, {at} clients"), "unit": "req/s", "better": "higher",
            "together": null, "derived": null,
            "curve": { "of": of, "over": "clients", "at": at }, "ranked": name == "c2",
        })
    };
    let mut run = serde_json::to_value(run()).unwrap();
    let mut figures = vec![json!({
        "name": "lone", "title": "a figure by itself", "better": "lower", "together": null, "derived": null,
    })];
    figures.extend([2u32, 10, 1].map(|at| figure(&format!("c{at}"), "requests <per> second", at)));
    figures.extend((1..=40).map(|at| figure(&format!("long{at}"), "other", at)));
    run["study"]["figure"] = figures.into();
    run["study"]["published"] = json!([]);
    let run: StudyRun = serde_json::from_value(run).unwrap();
    let estimate = |value: f64| {
        json!({ "value": value, "rounds": 3,
        "interval": { "low": value * 0.9, "high": value * 1.1, "confidence": 0.95 } })
    };
    let cell = |configuration: &str, figure: &str, value: Option<f64>, void: u32| {
        json!({ "configuration": configuration, "figure": figure, "estimate": value.map(estimate),
                "rounds_void": void, "doubts": {}, "published": null })
    };
    let mut cells = vec![
        cell("none", "c1", Some(123_456.0), 0),
        cell("none", "c2", Some(200_000.0), 0),
        cell("none", "c10", None, 3),
        cell("zvol", "c1", Some(50_000.0), 1),
        cell("none", "lone", Some(7.0), 0),
    ];
    cells[1]["doubts"] = json!({ "foreign-work": 2 });
    cells[3]["published"] = json!({ "configuration": "zvol", "figure": "c1", "value": 777.0 });
    cells.extend((1..=40).map(|at| cell("none", &format!("long{at}"), Some(f64::from(at)), 0)));
    let place = |configuration: &str, apart: Option<bool>| {
        json!({ "configuration": configuration, "estimate": estimate(200_000.0), "apart": apart,
                "published": 1 })
    };
    let result: StudyResult = serde_json::from_value(json!({
        "cells": cells, "conclusions": [],
        "rankings": [{ "figure": "c2",
                       "places": [place("none", Some(false)), place("zvol", None)] }],
    }))
    .unwrap();
    let view = StudyView {
        run: &run,
        result: &result,
        id: None,
    };
    let text = study::render_study_text(&view, PLAIN);
    fits(&text);
    // The points in order, in thousands; void points are marked, and published ones follow below.
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(
        rows.contains(&vec!["raw,", "ext4,", "none", "123", "200?", "void"]),
        "{text}"
    );
    assert!(rows.contains(&vec!["published", "0.777"]), "{text}");
    let legend = text.lines().find(|line| line.trim_start().starts_with('≈'));
    insta::assert_snapshot!(legend.unwrap(), @"  ≈: not told apart from the next");
    let markdown = study::render_study_markdown(&view);
    let mut cells = markdown.split('|').map(str::trim);
    assert!(
        cells.any(|cell| cell == "123,456 req/s ±10 %"),
        "{markdown}"
    );
    assert_eq!(markdown.matches("## Ranked by").count(), 1);
    let page = study::render_study_page(&view);
    check(&page);
    assert!(page.contains("curve-0-here-t") && page.contains("curve-0-published-t"));
    assert!(!page.contains("<per>"));
}
