//! Tests that reports of any width contain every figure once, and that hostile names are escaped.

use super::*;
use assay_model::Histogram;
use assay_model::result::{Estimate, Interval};
use assay_model::web::result::{Capacity, Limit, Limited, Place};

fn step(target: usize, pace: Pace, connections: u32) -> StepResult {
    let estimate = Estimate {
        value: 12_345.0,
        interval: Some(Interval {
            low: 12_000.0,
            high: 12_700.0,
            confidence: 0.95,
        }),
        rounds: 3,
    };
    StepResult {
        statuses: Vec::new(),
        target,
        connections,
        pace,
        share: pace.rate().map(|_| 0.5),
        rounds: 3,
        rounds_void: 0,
        rate: Some(estimate),
        bytes_per_s: 1e6,
        latency: Percentiles {
            p50: Some(Nanos(81_000)),
            p90: Some(Nanos(120_000)),
            p99: None,
            p999: None,
        },
        service: Percentiles::default(),
        histogram: [(81_000, 500), (120_000, 50)]
            .into_iter()
            .collect::<Histogram>(),
        over_time: (0..2)
            .map(|round| assay_model::web::result::OverTime {
                round,
                rate: 12_345.0,
                points: (0..40u64)
                    .map(|at| assay_model::web::Point {
                        at: Nanos(at * 50_000_000 + 25_000_000),
                        rate: 12_000.0 + at as f64,
                        failures: 0.0,
                        p50: Some(Nanos(80_000 + at * 100)),
                        p90: None,
                        p99: Some(Nanos(120_000)),
                    })
                    .collect(),
            })
            .collect(),
        due: 600,
        failed: 7,
        failures: Vec::new(),
        generators: match connections {
            4 => vec![Given {
                generator: "db<1>".to_owned(),
                rate: 4_321.0,
                share: 0.35,
                cpus: 0.2,
                failed: 3,
            }],
            _ => Vec::new(),
        },
        server_cpus: Some(0.98),
        generator_cpus: 0.31,
        per_cpu_second: Some(estimate),
        per_percent: Some(61.7),
        link: None,
        limit: Limit {
            who: Limited::Server,
            evidence: "<b>nginx</b> was busy".to_owned(),
        },
        doubts: vec![assay_model::Doubt {
            code: "requests-failed".to_owned(),
            severity: assay_model::Severity::Suspect,
            evidence: "7 of 600".to_owned(),
            remedy: "Find out why.".to_owned(),
        }],
    }
}

fn judged() -> Judged {
    let place = |target, apart| Place {
        target,
        value: Estimate {
            value: 5.0,
            interval: None,
            rounds: 1,
        },
        apart,
    };
    Judged {
        steps: vec![
            step(0, Pace::Closed, 1),
            step(0, Pace::Closed, 4),
            step(0, Pace::Constant { per_s: 6000.0 }, 64),
            step(1, Pace::Closed, 1),
        ],
        capacity: vec![
            Some(Capacity {
                connections: 4,
                rate: 12_345.0,
                interval: None,
                rising: false,
            }),
            None,
        ],
        rankings: vec![Ranking {
            by: RankedBy::Efficiency,
            places: vec![place(1, Some(false)), place(0, None)],
        }],
    }
}

fn with<T>(of: impl FnOnce(&Web) -> T) -> T {
    let judged = judged();
    of(&Web {
        urls: &[
            "http://a/<script>".to_owned(),
            "http://b/\u{202e}".to_owned(),
        ],
        remarks: &[vec!["it is a cache".to_owned()], Vec::new()],
        about: vec!["Measured 2026-11-26 18:00 UTC on <b>db1</b>.".to_owned()],
        settings: serde_json::json!({ "seed": 1 }),
        steps: &[],
        judged: &judged,
        interrupted: false,
    })
}

#[test]
fn a_terminal_of_any_width() {
    for width in [40, 80, 100, 160] {
        let text = with(|web| {
            terminal(
                web,
                Style {
                    color: false,
                    width,
                },
            )
        });
        assert!(!text.contains('\u{202e}'));
        insta::assert_snapshot!(format!("terminal-{width}"), text);
    }
}

#[test]
fn json_has_all_and_reads_back() {
    let value: serde_json::Value = serde_json::from_str(&with(json)).unwrap();
    let judged: Judged = serde_json::from_value(value["judged"].clone()).unwrap();
    assert_eq!(judged, super::tests::judged());
    assert_eq!(
        (value["kind"].as_str(), value["settings"]["seed"].as_u64()),
        (Some("web"), Some(1))
    );
}

#[test]
fn figures_of_a_step_that_is_void_are_marked() {
    let void = StepResult {
        rounds: 0,
        rate: None,
        ..step(0, Pace::Closed, 4)
    };
    assert!(format_cells(&void)[2].starts_with('(') && format_cells(&void)[0] == "void");
    assert!(!format_cells(&step(0, Pace::Closed, 4))[2].starts_with('('));
    let judged = Judged {
        steps: vec![void],
        ..judged()
    };
    let shown = with(|web| {
        let web = Web {
            judged: &judged,
            remarks: web.remarks,
            urls: web.urls,
            settings: web.settings.clone(),
            steps: web.steps,
            about: web.about.clone(),
            interrupted: false,
        };
        (
            page(&web),
            terminal(
                &web,
                Style {
                    color: false,
                    width: 80,
                },
            ),
        )
    });
    for text in [shown.0, shown.1] {
        assert!(
            text.contains("(81.0 µs)") && text.contains("do not count"),
            "{text}"
        );
    }
}

/// The table and the page mention a round at a twentieth of the rate. Curves of void steps are marked. A report with
/// only an open loop still contains the remarks on its server.
#[test]
fn odd_rounds_void_curves_and_remarks_are_shown() {
    let mut odd = step(0, Pace::Closed, 4);
    odd.over_time[1].rate /= 20.0;
    let void = StepResult {
        rounds: 0,
        rate: None,
        ..step(0, Pace::Constant { per_s: 6000.0 }, 64)
    };
    let show = |steps: Vec<StepResult>| {
        let judged = Judged { steps, ..judged() };
        with(|web| {
            let web = Web {
                judged: &judged,
                remarks: web.remarks,
                urls: web.urls,
                settings: web.settings.clone(),
                steps: web.steps,
                about: web.about.clone(),
                interrupted: false,
            };
            let style = Style {
                color: false,
                width: 100,
            };
            (page(&web), terminal(&web, style))
        })
    };
    let (drawn, text) = show(vec![odd]);
    assert!(text.contains("round 2: 617 per second"), "{text}");
    assert!(drawn.contains("round 2: 617 per second"));
    assert!(!show(vec![step(0, Pace::Closed, 4)]).1.contains("-fold"));
    let (drawn, _) = show(vec![void]);
    assert!(drawn.matches("(void)</text>").count() >= 2, "{drawn}");
    assert!(drawn.contains("it is a cache"));
}

#[test]
fn the_page_is_whole_and_escapes() {
    let page = with(page);
    assert!(page.trim_end().ends_with("</html>") && page.contains("assay web"));
    assert!(!page.contains("<script>") && !page.contains("<b>nginx") && !page.contains('\u{202e}'));
    assert!(page.contains("&lt;b&gt;nginx") && page.matches("<svg").count() >= 5);
    for said in [
        "it is a cache",
        "What a user of",
        "not told apart",
        "per CPU second",
        "Who gave how much",
        "db&lt;1&gt;",
        "over time",
        "2026-11-26",
        "&lt;b&gt;db1",
    ] {
        assert!(page.contains(said), "{said}");
    }
}
