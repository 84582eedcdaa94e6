use super::*;
use assay_model::study::{Better, Claim, NotTried, Study};
use proptest::prelude::*;
use serde_json::json;

/// Returns a study with two figures and one figure derived from both, for the configurations `a`, `b` and `bare`.
fn study(claims: &[Claim]) -> Study {
    serde_json::from_value(json!({
        "name": "s", "title": "t", "question": "q", "bench": "commands",
        "source": { "title": "s", "year": null, "machine": "m" },
        "forms": { "quick": { "rounds": 3 }, "full": { "rounds": 3 } },
        "configuration": [
            { "name": "a", "title": null }, { "name": "b", "title": null },
            { "name": "bare", "title": null },
            { "name": "theirs", "title": null, "published_only": true },
        ],
        "figure": [
            { "name": "seq", "title": null, "unit": "B/s", "better": "higher", "together": null, "derived": null },
            { "name": "rand", "title": null, "unit": "B/s", "better": "higher", "together": null, "derived": null },
            { "name": "count", "title": null, "better": "neither", "exact": true, "together": null, "derived": null },
            { "name": "by-count", "title": null, "better": "neither", "together": null,
              "derived": { "kind": "quotient", "of": "seq", "by": "count" } },
            { "name": "weighted", "title": null, "unit": "B/s", "better": "higher", "together": null,
              "derived": { "kind": "weighted", "a": "seq", "b": "rand", "baseline": "bare" } },
        ],
        "published": [
            { "configuration": "a", "figure": "seq", "value": 300.0 },
            { "configuration": "b", "figure": "seq", "value": 100.0 },
            { "configuration": "bare", "figure": "seq", "value": 50.0, "is": "below" },
        ],
        "conclusion": [{ "says": "x", "claim": claims, "needs": null }],
    }))
    .unwrap()
}

fn run(claims: &[Claim], values: &[(&str, &str, &[f64])]) -> StudyRun {
    let mut observations = Vec::new();
    for (configuration, figure, values) in values {
        for (round, value) in (1..).zip(*values) {
            observations.push(Observation {
                configuration: (*configuration).to_owned(),
                figure: (*figure).to_owned(),
                round,
                value: *value,
                doubts: Vec::new(),
                void: false,
            });
        }
    }
    StudyRun {
        uid: String::new(),
        assay_version: String::new(),
        started: "2026-01-01T00:00:00Z".parse().unwrap(),
        ended: None,
        study: study(claims),
        form: "quick".to_owned(),
        machine: BTreeMap::new(),
        seed: 1,
        emulated: false,
        observations,
        not_tried: Vec::new(),
        complete: true,
    }
}

fn ratio(figure: &str, at_least: Option<f64>, at_most: Option<f64>) -> Claim {
    Claim::Ratio {
        figure: figure.to_owned(),
        of: "a".to_owned(),
        to: "b".to_owned(),
        at_least,
        at_most,
    }
}

fn only(run: &StudyRun) -> JudgedConclusion {
    judge_study(run).conclusions.remove(0)
}

#[test]
fn what_disturbs_a_round_falls_out_of_a_ratio() {
    // Each round is ten times slower than the one before; a is always about twice b.
    let values: [(&str, &str, &[f64]); 2] = [
        ("a", "seq", &[2000.0, 201.0, 19.9]),
        ("b", "seq", &[1000.0, 100.0, 10.0]),
    ];
    let judged = only(&run(&[ratio("seq", Some(1.9), Some(2.1))], &values));
    assert_eq!(judged.finding, Support::Supported);
    let claim = &judged.claims[0];
    let interval = claim.estimate.unwrap().interval.unwrap();
    assert!(interval.low > 1.95 && interval.high < 2.05, "{interval:?}");
    // The author's figures 300 and 100 give the ratio 3, which is outside the claimed bounds.
    assert_eq!(claim.published, Some(3.0));
    assert_eq!(judged.published_finding, Some(Support::Contradicted));
}

#[test]
fn findings_follow_from_where_the_interval_lies() {
    let values: [(&str, &str, &[f64]); 2] = [
        ("a", "seq", &[200.0, 220.0, 210.0]),
        ("b", "seq", &[100.0, 100.0, 100.0]),
    ];
    for (claim, finding) in [
        (ratio("seq", Some(1.5), None), Support::Supported),
        (ratio("seq", Some(2.1), None), Support::Unresolved),
        (ratio("seq", Some(3.0), None), Support::Contradicted),
        (ratio("seq", None, Some(1.0)), Support::Contradicted),
        (ratio("rand", None, Some(1.0)), Support::NotTried),
    ] {
        assert_eq!(
            only(&run(std::slice::from_ref(&claim), &values)).finding,
            finding,
            "{claim:?}"
        );
    }
}

#[test]
fn the_weightiest_claim_decides() {
    let values: [(&str, &str, &[f64]); 2] = [
        ("a", "seq", &[200.0, 201.0, 202.0]),
        ("b", "seq", &[100.0, 100.0, 100.0]),
    ];
    let supported = ratio("seq", Some(1.5), None);
    let untried = ratio("rand", Some(1.5), None);
    let contradicted = ratio("seq", None, Some(1.5));
    for (claims, finding) in [
        (vec![supported.clone(), untried.clone()], Support::NotTried),
        (vec![untried, contradicted.clone()], Support::Contradicted),
        (vec![contradicted, supported], Support::Contradicted),
    ] {
        assert_eq!(only(&run(&claims, &values)).finding, finding);
    }
}

#[test]
fn what_is_counted_needs_no_interval() {
    let claim = |at_most| Claim::Value {
        figure: "count".to_owned(),
        of: "a".to_owned(),
        at_least: None,
        at_most: Some(at_most),
    };
    let once: [(&str, &str, &[f64]); 1] = [("a", "count", &[0.0])];
    assert_eq!(only(&run(&[claim(0.0)], &once)).finding, Support::Supported);
    let different: [(&str, &str, &[f64]); 1] = [("a", "count", &[0.0, 3.0])];
    assert_eq!(
        only(&run(&[claim(2.0)], &different)).finding,
        Support::Unresolved
    );
    // A measured figure, unlike a counted one, needs several rounds.
    let once: [(&str, &str, &[f64]); 2] = [("a", "seq", &[9.0]), ("b", "seq", &[1.0])];
    let judged = only(&run(&[ratio("seq", Some(2.0), None)], &once));
    assert_eq!(judged.finding, Support::Unresolved);
    insta::assert_snapshot!(judged.claims[0].why, @"one round has no interval");
}

/// A counted figure is observed only in the first round and applies to all rounds.
#[test]
fn a_figure_derived_from_what_is_counted_and_what_is_measured_has_every_round() {
    let values: [(&str, &str, &[f64]); 2] = [
        ("a", "seq", &[200.0, 220.0, 210.0]),
        ("a", "count", &[10.0]),
    ];
    let result = judge_study(&run(&[], &values));
    let mut cells = result.cells.iter();
    let cell = cells.find(|cell| cell.figure == "by-count").unwrap();
    let estimate = cell.estimate.unwrap();
    assert_eq!((estimate.rounds, estimate.value), (3, 21.0));
}

#[test]
fn void_observations_are_kept_and_nothing_rests_on_them() {
    let values: [(&str, &str, &[f64]); 2] = [
        ("a", "seq", &[200.0, 201.0, 9000.0]),
        ("b", "seq", &[100.0, 100.0, 100.0]),
    ];
    let mut run = run(&[ratio("seq", Some(1.9), Some(2.1))], &values);
    run.observations[2].void = true;
    run.observations[2].doubts = vec!["depth-not-reached".to_owned()];
    let result = judge_study(&run);
    assert_eq!(result.conclusions[0].claims[0].estimate.unwrap().rounds, 2);
    let cell = &result.cells[0];
    assert_eq!((cell.rounds_void, cell.estimate.unwrap().value), (1, 200.5));
    assert_eq!(cell.doubts["depth-not-reached"], 1);
}

#[test]
fn what_needs_kvm_stays_open_in_an_emulated_guest() {
    let values: [(&str, &str, &[f64]); 2] = [
        ("a", "seq", &[200.0, 201.0, 202.0]),
        ("b", "seq", &[100.0, 100.0, 100.0]),
    ];
    let mut run = run(&[ratio("seq", Some(1.5), None)], &values);
    run.study.conclusions[0].needs = Some(Needs::Kvm);
    assert_eq!(only(&run).finding, Support::Supported);
    run.emulated = true;
    let judged = only(&run);
    assert_eq!(judged.finding, Support::Unresolved);
    assert!(judged.why.contains("emulated"), "{}", judged.why);
    assert_eq!(judged.claims[0].finding, Support::Supported);
}

#[test]
fn a_reason_is_given_for_what_was_not_tried() {
    let mut cut = run(&[ratio("seq", Some(1.0), None)], &[]);
    insta::assert_snapshot!(only(&cut).claims[0]
            .why, @"it is not part of the quick form");
    cut.complete = false;
    insta::assert_snapshot!(only(&cut).claims[0].why, @"the study did not get that far");
    cut.not_tried.push(NotTried {
        configuration: "b".to_owned(),
        figure: None,
        why: "no ZFS".to_owned(),
    });
    assert_eq!(only(&cut).claims[0].why, "b: no ZFS");
}

/// The rule of the article, computed by hand. On the bare machine sequential is 500 and random 20, so random is
/// multiplied by 25; a configuration with 400 and 30 gives (400 + 750) ÷ 2.
#[test]
fn weighted_as_the_article_defines_it() {
    let values: [(&str, &str, &[f64]); 4] = [
        ("bare", "seq", &[500.0]),
        ("bare", "rand", &[20.0]),
        ("a", "seq", &[400.0]),
        ("a", "rand", &[30.0]),
    ];
    let result = judge_study(&run(&[], &values));
    let weighted = |name: &str| {
        let mut cells = result.cells.iter();
        let cell = cells.find(|cell| cell.configuration == name && cell.figure == "weighted");
        cell.and_then(|cell| cell.estimate)
            .map(|estimate| estimate.value)
    };
    assert_eq!(weighted("a"), Some(575.0));
    // For the baseline itself both parts equal the sequential figure.
    assert_eq!(weighted("bare"), Some(500.0));
    assert_eq!(weighted("b"), None);
}

#[test]
fn an_order_is_told_where_neighbours_differ() {
    let order = |names: &[&str]| Claim::Order {
        figure: "seq".to_owned(),
        best_first: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let values: [(&str, &str, &[f64]); 3] = [
        ("a", "seq", &[300.0, 301.0, 302.0]),
        ("b", "seq", &[200.0, 210.0, 190.0]),
        ("bare", "seq", &[210.0, 190.0, 205.0]),
    ];
    let finding = |names: &[&str]| only(&run(&[order(names)], &values)).finding;
    assert_eq!(finding(&["a", "b"]), Support::Supported);
    assert_eq!(finding(&["b", "a"]), Support::Contradicted);
    assert_eq!(finding(&["a", "b", "bare"]), Support::Unresolved);
    assert_eq!(finding(&["a", "theirs"]), Support::NotTried);
    let judged = only(&run(&[order(&["b", "a"])], &values));
    assert_eq!(judged.published_finding, Some(Support::Contradicted));
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(
        prop_oneof![4 => 1e-6f64..1e12, 1 => Just(0.0), 1 => -1e6f64..1e6],
        0..6,
    )
}

proptest! {
    #[test]
    fn no_value_panics_and_intervals_hold_what_they_are_about(a in values(), b in values(), bound in 0.01f64..100.0) {
        let run = run(
            &[ratio("seq", Some(bound), None), ratio("weighted", None, Some(bound))],
            &[("a", "seq", &a), ("b", "seq", &b), ("bare", "seq", &a), ("bare", "rand", &b), ("a", "rand", &b)],
        );
        let result = judge_study(&run);
        for cell in &result.cells {
            if let Some(estimate) = cell.estimate {
                prop_assert!(estimate.value.is_finite());
                if let Some(interval) = estimate.interval {
                    prop_assert!(interval.low <= estimate.value && estimate.value <= interval.high, "{estimate:?}");
                }
            }
        }
    }

    #[test]
    fn a_ratio_turned_round_gives_the_opposite(
        a in proptest::collection::vec(1.0f64..1e6, 3..6),
        b in proptest::collection::vec(1.0f64..1e6, 3..6),
        bound in 0.1f64..10.0,
    ) {
        let there = only(&run(&[ratio("seq", Some(bound), None)], &[("a", "seq", &a), ("b", "seq", &b)]));
        let back = only(&run(&[ratio("seq", None, Some(1.0 / bound))], &[("a", "seq", &b), ("b", "seq", &a)]));
        let interval = there.claims[0].estimate.unwrap().interval.unwrap();
        // Within rounding of the bound both answers are correct.
        let near = |end: f64| (end / bound - 1.0).abs() < 1e-9;
        prop_assume!(!near(interval.low) && !near(interval.high));
        prop_assert_eq!(there.finding, back.finding);
    }

    #[test]
    fn a_wider_claim_is_never_contradicted_sooner(
        a in proptest::collection::vec(1.0f64..1e6, 2..6),
        b in proptest::collection::vec(1.0f64..1e6, 2..6),
        low in 0.1f64..10.0,
    ) {
        let data: [(&str, &str, &[f64]); 2] = [("a", "seq", &a), ("b", "seq", &b)];
        let narrow = only(&run(&[ratio("seq", Some(low), None)], &data)).finding;
        let wide = only(&run(&[ratio("seq", Some(low / 2.0), None)], &data)).finding;
        prop_assert!(wide <= narrow, "{wide:?} {narrow:?}");
    }
}

#[test]
fn neighbours_in_a_ranking_are_told_apart_round_by_round() {
    // The rounds differ by a factor of ten; in each, b is twice bare, and a is about b.
    let values: [(&str, &str, &[f64]); 3] = [
        ("a", "seq", &[2100.0, 195.0, 21.0]),
        ("b", "seq", &[2000.0, 200.0, 20.0]),
        ("bare", "seq", &[1000.0, 101.0, 9.9]),
    ];
    let mut run = run(&[], &values);
    assert_eq!(judge_study(&run).rankings, []);
    run.study.figures[0].ranked = true;
    let rankings = judge_study(&run).rankings;
    let places: Vec<_> = rankings[0]
        .places
        .iter()
        .map(|place| (place.configuration.as_str(), place.apart, place.published))
        .collect();
    // The published value of bare is a bound, not a figure.
    assert_eq!(
        places,
        [
            ("a", Some(false), Some(1)),
            ("b", Some(true), Some(2)),
            ("bare", None, None)
        ]
    );
    run.study.figures[0].better = Better::Lower;
    let lower = judge_study(&run).rankings.remove(0).places;
    let names: Vec<_> = lower.iter().map(|place| &place.configuration).collect();
    assert_eq!(names, ["bare", "b", "a"]);
    assert_eq!((lower[0].apart, lower[1].published), (Some(true), Some(1)));
    // A single configuration has no ranking.
    run.observations.retain(|one| one.configuration == "a");
    assert_eq!(judge_study(&run).rankings, []);
}

#[test]
fn the_largest_is_that_of_what_is_there() {
    let values: [(&str, &str, &[f64]); 2] = [("a", "seq", &[1.0, 5.0]), ("a", "rand", &[3.0, 4.0])];
    let mut run = run(&[], &values);
    run.study.figures[4].derived = Some(assay_model::study::Derived::Largest {
        of: ["seq", "rand", "count"].map(str::to_owned).to_vec(),
    });
    let cells = judge_study(&run).cells;
    let largest = cells.iter().find(|cell| cell.figure == "weighted");
    assert_eq!(largest.unwrap().estimate.unwrap().value, 4.0);
}

#[test]
fn what_was_tried_and_is_void_cannot_be_told() {
    let values: [(&str, &str, &[f64]); 2] = [("a", "seq", &[2.0, 2.0]), ("b", "seq", &[1.0, 1.0])];
    let mut run = run(&[ratio("seq", Some(1.5), None)], &values);
    for one in &mut run.observations {
        one.void = one.configuration == "a";
        one.doubts = vec!["generator-full".to_owned()];
    }
    let judged = only(&run);
    assert_eq!(judged.finding, Support::Unresolved);
    assert!(judged.claims[0].why.contains("generator-full"));
    run.observations.retain(|one| one.configuration == "a");
    assert_eq!(only(&run).finding, Support::NotTried);
}

#[test]
fn what_needs_a_generator_of_its_own_stays_open() {
    let values: [(&str, &str, &[f64]); 2] = [
        ("a", "seq", &[200.0, 201.0, 202.0]),
        ("b", "seq", &[100.0, 100.0, 100.0]),
    ];
    let mut run = run(&[ratio("seq", Some(1.5), None)], &values);
    assert_eq!(only(&run).finding, Support::Supported);
    run.study.conclusions[0].needs = Some(Needs::OwnGenerator);
    let judged = only(&run);
    assert_eq!(judged.finding, Support::Unresolved);
    assert!(judged.why.contains("generator"));
}
