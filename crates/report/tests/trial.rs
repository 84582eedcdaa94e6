//! Tests the reports of a trial: plan, lines, verdict, Markdown, JSON, list.

mod common;

use assay_render::Style;
use assay_render::text::measure_width;
use assay_report::trial::{self, LivePair, TrialPreview};
use common::trials::{self, TrialCase};

const PLAIN: Style = Style {
    color: false,
    width: 80,
};

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

fn show(case: &TrialCase) -> String {
    let text = trial::render_trial_text(&case.view(), PLAIN);
    fits(&text);
    text
}

#[test]
fn every_verdict_is_a_plain_sentence_with_its_evidence() {
    for (name, case) in trials::all() {
        insta::assert_snapshot!(format!("verdict_{name}"), show(&case));
    }
}

#[test]
fn a_plan_can_be_read_by_a_stranger() {
    for (name, case) in trials::all() {
        let before = TrialPreview {
            now: case.slots.first().map(|slot| slot.read_back.as_str()),
            applies: &["SYNTHETIC: qemu-img 7.2 is here".to_owned()],
            forecast: &[
                "SYNTHETIC: pairs of this load differed by 4.1 %, so 10 % takes about 8 \
                pairs, 96 s"
                    .to_owned(),
            ],
            least_pairs: 6,
        };
        let text = trial::render_plan(&case.trial.plan, &before, PLAIN);
        fits(&text);
        insta::assert_snapshot!(format!("plan_{name}"), text);
    }
}

/// The plan before a trial fits 20 lines, whatever its page contains.
#[test]
fn a_plan_is_brief_before_it_is_carried_out() {
    let unknown: Vec<String> = (0..20)
        .map(|n| format!("not known: fact.{n} (a long reason)"))
        .collect();
    for (name, case) in trials::all() {
        let mut plan = case.trial.plan.clone();
        for long in [false, true] {
            if long {
                plan.title = "words ".repeat(100);
                plan.predicts = "words ".repeat(100);
                plan.guards = plan.guards.iter().cycle().take(40).copied().collect();
            }
            let before = TrialPreview {
                now: case.slots.first().map(|slot| slot.read_back.as_str()),
                applies: if long { &unknown } else { &[] },
                forecast: &[],
                least_pairs: 6,
            };
            let text = trial::render_brief_plan(&plan, &before, PLAIN);
            assert!(text.lines().count() <= 20, "{name}: {text}");
            assert!(text.contains("--dry-run"));
            if !long {
                fits(&text);
                insta::assert_snapshot!(format!("brief_{name}"), text);
            }
        }
    }
}

#[test]
fn a_line_for_each_pair() {
    for (name, case) in [
        ("better", trials::better()),
        ("failing", trials::failing()),
        ("worse", trials::worse()),
        ("login", trials::login()),
    ] {
        let plan = &case.trial.plan;
        let mut text = trial::format_live_heading(plan, PLAIN);
        for (i, outcome) in case.pairs.iter().enumerate() {
            let figure = |slot: usize| case.samples[2 * i + slot].figures[&plan.metric];
            let first = plan.first[i];
            let swap = usize::from(first == assay_model::trial::Side::Changed);
            let judgement = trials::judge(&case.trial, &case.pairs[..=i]);
            let live = LivePair {
                pair: i as u32 + 1,
                first,
                now: Some(figure(swap)),
                changed: Some(figure(1 - swap)),
                outcome,
                judgement: &judgement,
                next_look: (!judgement.done).then_some(assay_model::Nanos(24_000_000_000)),
                at_most: assay_model::Nanos(720_000_000_000 - 12_000_000_000 * i as u64),
            };
            text.push('\n');
            text.push_str(&trial::format_live_line(plan, &live, PLAIN));
        }
        fits(&text);
        insta::assert_snapshot!(format!("live_{name}"), text);
    }
}

#[test]
fn markdown_tells_the_same() {
    for (name, case) in [("better", trials::better()), ("unsafe", trials::unsafe_())] {
        insta::assert_snapshot!(
            format!("markdown_{name}"),
            trial::render_trial_markdown(&case.view())
        );
    }
}

#[test]
fn a_list_and_a_campaign() {
    let cases = trials::all();
    let views: Vec<_> = cases.iter().map(|(_, case)| case.view()).collect();
    let text = trial::render_trial_list(&views, PLAIN);
    insta::assert_snapshot!("list", text);
    let text = trial::render_campaign(&views, PLAIN);
    insta::assert_snapshot!("campaign", text);
    assert!(trial::render_trial_list(&[], PLAIN).contains("No trials"));
}

#[test]
fn pages_are_well_formed_and_self_contained() {
    let cases = trials::all();
    for (name, case) in &cases {
        let page = trial::render_trial_page(&case.view());
        common::page::check(&page);
        assert_eq!(
            page,
            trial::render_trial_page(&case.view()),
            "{name} is not deterministic"
        );
        assert!(page.len() < 200_000, "{name}: {} bytes", page.len());
    }
    let views: Vec<_> = cases.iter().map(|(_, case)| case.view()).collect();
    common::page::check(&trial::render_campaign_page(&views));
    common::page::check(&trial::render_campaign_page(&[]));
}

#[test]
fn hostile_names_are_shown_not_obeyed() {
    let case = trials::hostile();
    let page = trial::render_trial_page(&case.view());
    common::page::check(&page);
    for page in [page, trial::render_campaign_page(&[case.view()])] {
        assert!(!page.contains("<script>") && !page.contains('\u{202e}'));
        assert!(page.contains("&lt;script&gt;"));
    }
    for text in [
        trial::render_trial_text(&case.view(), PLAIN),
        trial::render_trial_markdown(&case.view()),
        trial::render_trial_list(&[case.view()], PLAIN),
        trial::render_plan(&case.trial.plan, &TrialPreview::default(), PLAIN),
    ] {
        assert!(!text.contains('\u{202e}'));
    }
    assert!(!trial::render_trial_markdown(&case.view()).contains("<script>"));
}

#[test]
fn json_says_all_that_people_read() {
    for (name, case) in trials::all() {
        let value = trial::trial_to_json(&case.view());
        assert_eq!(value["schema"], assay_model::SCHEMA_VERSION, "{name}");
        assert_eq!(
            value["pairs"].as_array().map(Vec::len),
            Some(case.pairs.len())
        );
        let text = trial::render_trial_text(&case.view(), PLAIN).replace('\n', " ");
        let sentence = value["sentence"].as_str().unwrap();
        assert!(text.starts_with(sentence), "{sentence}\n{text}");
        if let Some(first) = value["pairs"].get(0) {
            assert!(first["now"]["figures"]["iops"].is_number());
            assert!(first["first"] == "now" || first["first"] == "changed");
        }
    }
    let case = trials::login();
    let list = trial::trials_to_json(&[case.view()]);
    assert_eq!(list["trials"][0]["kept"], "kept");
    insta::assert_snapshot!(
        "json_keys",
        keys(&trial::trial_to_json(&case.view()), String::new()).join("\n")
    );
}

/// Returns the structure of a document as paths. Lists are represented by their first item, facts without their keys.
fn keys(value: &serde_json::Value, path: String) -> Vec<String> {
    match value {
        serde_json::Value::Object(map) if !path.ends_with("facts") => map
            .iter()
            .flat_map(|(key, value)| keys(value, format!("{path}.{key}")))
            .collect(),
        serde_json::Value::Array(items) if !items.is_empty() => {
            keys(&items[0], format!("{path}[]"))
        }
        _ => vec![path],
    }
}
