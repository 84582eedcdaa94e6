//! Tests the order of steps, the requested figures, and how a study ends. A substitute with known values replaces the
//! bench; the tests of the command line use the real benches.

use assay_loads::Cancel;
use assay_model::study::{Configuration, Figure, Form, NotTried, Observation, Study};
use assay_studies::{
    Carried, MeasureEvent, Outline, StudyBench, StudyError, Task, execute, plan_steps,
    to_observation,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn study(rounds: u32) -> Study {
    let text = format!(
        r#"
name = "s"
title = "t"
question = "q"
bench = "commands"
source = {{ title = "s", machine = "m" }}
forms.quick = {{ rounds = {rounds}, time = "1s" }}
forms.full = {{ rounds = {rounds}, time = "1s" }}
configuration = [
  {{ name = "a", run = ["true"] }},
  {{ name = "b", run = ["true"], figures = ["lone"] }},
  {{ name = "theirs", published_only = true }},
]
figure = [
  {{ name = "one", better = "lower", together = "pair" }},
  {{ name = "lone", better = "lower" }},
  {{ name = "two", better = "lower", together = "pair" }},
  {{ name = "ratio", better = "lower", derived = {{ kind = "quotient", of = "one", by = "two" }} }},
]
conclusion = []
"#
    );
    assay_studies::catalogue::parse(&text, "s.toml").unwrap()
}

/// Bench that reports the number of the round as the value of each figure. Figures in `broken` fail and figures in
/// `missing` cannot be measured. The user stops the study after `stop` steps.
#[derive(Default)]
struct Fake {
    broken: Option<&'static str>,
    missing: Option<&'static str>,
    stop: Option<usize>,
    asked: Vec<(String, Vec<String>, u32)>,
    cancel: Cancel,
}

impl StudyBench for Fake {
    fn outline(&self, _: &Study, _: &Form) -> Result<Outline, StudyError> {
        Ok(Outline::default())
    }

    fn begin(&mut self, _: &Study, _: &Form) -> Result<Vec<NotTried>, StudyError> {
        let not = self.missing.map(|figure| NotTried {
            configuration: "a".to_owned(),
            figure: Some(figure.to_owned()),
            why: "there is none".to_owned(),
        });
        Ok(not.into_iter().collect())
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        let names: Vec<String> = figures.iter().map(|one| one.name.clone()).collect();
        if self
            .broken
            .is_some_and(|broken| names.iter().any(|name| name == broken))
        {
            return Err(StudyError::measure("it", "broke"));
        }
        self.asked.push((configuration.name.clone(), names, round));
        if self.stop == Some(self.asked.len()) {
            self.cancel.cancel();
        }
        let all = figures.iter();
        Ok(all
            .map(|one| to_observation(configuration, one, round, f64::from(round)))
            .collect())
    }

    fn machine(&self) -> Vec<(String, String)> {
        vec![("what".to_owned(), "a stand-in".to_owned())]
    }
}

struct Came {
    ended: Result<Carried, StudyError>,
    observed: Vec<Observation>,
    failed: Vec<NotTried>,
    fake: Fake,
}

fn run(study: &Study, mut fake: Fake, keep_going: bool, done: &[Observation]) -> Came {
    let (mut observed, mut failed) = (Vec::new(), Vec::new());
    let cancel = fake.cancel.clone();
    let task = Task {
        study,
        form: &study.forms.quick,
        seed: 7,
        keep_going,
        done,
    };
    let ended = execute(&mut fake, &task, &cancel, &mut |event| match event {
        MeasureEvent::Observed(new) => observed.extend_from_slice(new),
        MeasureEvent::Failed(new) => failed.extend_from_slice(new),
        _ => {}
    });
    Came {
        ended,
        observed,
        failed,
        fake,
    }
}

#[test]
fn every_round_has_everything_once_and_figures_that_belong_together_in_one_step() {
    let study = study(4);
    let came = run(&study, Fake::default(), false, &[]);
    assert_eq!(came.ended.unwrap(), Carried::Complete);
    assert_eq!(came.fake.asked.len(), 4 * 3);
    let mut orders = BTreeSet::new();
    for round in came.fake.asked.chunks(3) {
        orders.insert(round.iter().map(|one| (&one.0, &one.1)).collect::<Vec<_>>());
        let mut sorted: Vec<String> = round
            .iter()
            .map(|one| format!("{} {}", one.0, one.1.join("+")))
            .collect();
        sorted.sort();
        assert_eq!(sorted, ["a lone", "a one+two", "b lone"]);
    }
    assert!(
        orders.len() > 1,
        "the order is not thrown anew for each round"
    );
}

#[test]
fn what_cannot_be_tried_is_not_asked_for() {
    let study = study(2);
    let fake = Fake {
        missing: Some("two"),
        ..Fake::default()
    };
    let came = run(&study, fake, false, &[]);
    assert_eq!(came.ended.unwrap(), Carried::Complete);
    assert!(
        came.fake
            .asked
            .iter()
            .all(|(_, figures, _)| !figures.contains(&"two".to_owned()))
    );
    assert!(
        came.fake
            .asked
            .iter()
            .any(|(_, figures, _)| figures == &["one"])
    );
    let fake = Fake {
        missing: Some("lone"),
        ..Fake::default()
    };
    let came = run(&study, fake, false, &[]);
    assert_eq!(came.ended.unwrap(), Carried::Complete);
    assert!(
        came.fake
            .asked
            .iter()
            .all(|(name, figures, _)| name == "b" || figures != &["lone"])
    );
}

#[test]
fn a_failure_ends_the_study_unless_the_rest_shall_go_on() {
    let study = study(3);
    let broken = || Fake {
        broken: Some("one"),
        ..Fake::default()
    };
    let came = run(&study, broken(), false, &[]);
    assert!(came.ended.unwrap_err().to_string().contains("broke"));
    let came = run(&study, broken(), true, &[]);
    assert_eq!(came.ended.unwrap(), Carried::Complete);
    // Both figures of the step are lost once; the step is not repeated.
    let lost: Vec<_> = came
        .failed
        .iter()
        .filter_map(|not| not.figure.as_deref())
        .collect();
    assert_eq!(lost, ["one", "two"]);
    assert_eq!(came.observed.len(), 3 * 2);
}

#[test]
fn what_was_measured_before_an_interruption_is_not_measured_again() {
    let study = study(3);
    let fake = Fake {
        stop: Some(4),
        ..Fake::default()
    };
    let first = run(&study, fake, false, &[]);
    assert_eq!(first.ended.unwrap(), Carried::Interrupted);
    assert_eq!(first.fake.asked.len(), 4);
    let rest = run(&study, Fake::default(), false, &first.observed);
    assert_eq!(rest.ended.unwrap(), Carried::Complete);
    assert_eq!(rest.fake.asked.len(), 9 - 4);
    let whole = run(&study, Fake::default(), false, &[]);
    let both: Vec<_> = [first.fake.asked, rest.fake.asked].concat();
    assert_eq!(both, whole.fake.asked);
}

/// Bench that returns figures which were not requested.
struct Wrong(f64, &'static str);

impl StudyBench for Wrong {
    fn outline(&self, _: &Study, _: &Form) -> Result<Outline, StudyError> {
        Ok(Outline::default())
    }

    fn begin(&mut self, _: &Study, _: &Form) -> Result<Vec<NotTried>, StudyError> {
        Ok(Vec::new())
    }

    fn measure(
        &mut self,
        configuration: &Configuration,
        figures: &[&Figure],
        round: u32,
    ) -> Result<Vec<Observation>, StudyError> {
        let mut one = to_observation(configuration, figures[0], round, self.0);
        self.1.clone_into(&mut one.figure);
        Ok(vec![one])
    }

    fn machine(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

#[test]
fn a_bench_cannot_give_what_was_not_asked_for() {
    let mut study = study(1);
    study.figures.retain(|one| one.name == "lone");
    for (mut bench, right) in [
        (Wrong(1.0, "lone"), true),
        (Wrong(f64::NAN, "lone"), false),
        (Wrong(1.0, "other"), false),
    ] {
        let task = Task {
            study: &study,
            form: &study.forms.quick,
            seed: 1,
            keep_going: false,
            done: &[],
        };
        let ended = execute(&mut bench, &task, &Cancel::default(), &mut |_| {});
        assert_eq!(ended.is_ok(), right, "{ended:?}");
    }
}

proptest! {
    #[test]
    fn the_seed_alone_decides_the_order(seed in any::<u64>(), rounds in 1u32..6) {
        let study = study(rounds);
        let once = plan_steps(&study, &study.forms.quick, seed);
        prop_assert_eq!(&once, &plan_steps(&study, &study.forms.quick, seed));
        prop_assert_eq!(once.len(), 3 * rounds as usize);
        prop_assert!(once.is_sorted_by_key(|step| step.round));
    }
}
