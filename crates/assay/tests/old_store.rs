//! What 0.1 measured is shown, compared, exported, judged again and gone on with, with the figures
//! that 0.1 showed; and what a store of several machines shows.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_host::Live;
use assay_model::{Machine, RunId};
use assay_store::Store;
use common::Home;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn packed(name: &str) -> Vec<u8> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures");
    zstd::decode_all(&std::fs::read(fixtures.join(name)).unwrap()[..]).unwrap()
}

/// A home with the store of 0.1.
fn home() -> Home {
    let home = Home::new();
    let store = packed("store-0.1.db.zst");
    std::fs::write(home.dir.path().join("store.db"), store).unwrap();
    home
}

/// What 0.1 answered.
#[derive(serde::Deserialize)]
struct Answer {
    status: i32,
    said: Value,
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// `f64::powi` does not give the same last bit in every build.
fn same(a: Option<f64>, b: Option<f64>) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return a == b;
    };
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

/// Where `now` lacks something that `then` said, or says something else. New fields are welcome.
fn lost(at: &str, then: &Value, now: &Value, out: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (key, value) in then {
                match now.get(key) {
                    Some(now) => lost(&format!("{at}.{key}"), value, now, out),
                    None => out.push(format!("{at}.{key} is gone")),
                }
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (i, (then, now)) in then.iter().zip(now).enumerate() {
                lost(&format!("{at}[{i}]"), then, now, out);
            }
        }
        (Value::Number(a), Value::Number(b)) if same(a.as_f64(), b.as_f64()) => {}
        _ if then == now => {}
        _ => out.push(format!("{at}: {now} instead of {then}")),
    }
}

/// Words are for people and get better; figures stay. Left are numbers, truths and names.
fn figures(value: &mut Value) {
    const WORDS: [&str; 9] = [
        "evidence", "instead", "seen", "reason", "sentence", "remarks", "why", "cautions", "title",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !WORDS.contains(&key.as_str()));
            fields.values_mut().for_each(figures);
        }
        Value::Array(all) => all.iter_mut().for_each(figures),
        _ => {}
    }
}

#[test]
fn every_figure_is_the_one_that_0_1_showed() {
    let home = home();
    let answers: BTreeMap<String, Answer> =
        serde_json::from_slice(&packed("store-0.1.answers.json.zst")).unwrap();
    assert!(answers.len() > 40);
    let mut wrong = Vec::new();
    for (command, then) in answers {
        let args: Vec<&str> = command.split(' ').collect();
        let ran = home.assay(&args);
        if ran.code != Some(then.status) {
            wrong.push(format!("{command}: status {:?}: {}", ran.code, ran.stderr));
            continue;
        }
        match then.said {
            // Tables for people: the CSV is for programs and stays as it is.
            Value::String(text) if args.contains(&"csv") => {
                // The answers were kept with plain line ends.
                if ran.stdout.replace("\r\n", "\n") != text {
                    wrong.push(format!("{command}: another CSV"));
                }
            }
            Value::String(text) => {
                assert!(!text.is_empty() && !ran.stdout.is_empty(), "{command}");
            }
            mut then => {
                figures(&mut then);
                let mut differences = Vec::new();
                lost("", &then, &json(&ran.stdout), &mut differences);
                let all = differences.iter().take(5);
                wrong.extend(all.map(|one| format!("{command}: {one}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_report_of_it_is_written() {
    let home = home();
    let page = home.dir.path().join("page.html");
    let page = page.to_str().unwrap();
    for args in [
        &["report", "2", "--against", "1", "--html", page][..],
        &["report", "8", "--html", page],
        &["report", "5", "--format", "md"],
        &["stack", "--show", "8", "--html", page],
        &["trial", "--show", "1", "--html", page],
        &["study", "show", "mine", "--html", page],
    ] {
        let ran = home.assay(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    }
    // Nothing of it is known to be of any machine, so no list names one.
    assert!(!home.assay(&["runs"]).stdout.contains("machine"));
}

#[test]
fn an_interrupted_run_of_it_is_gone_on_with() {
    if !common::fio() {
        return;
    }
    let (home, target) = (home(), Home::new().target());
    // /var/tmp was another disk then, and a run does not go on elsewhere: so it is moved here.
    let mut store = Store::open(&home.dir.path().join("store.db")).unwrap();
    let mut run = store.run(RunId(4)).unwrap();
    let mut info = assay_facts::target(&Live, target.path()).unwrap();
    info.size = run.targets[0].size;
    run.targets = vec![info];
    run.plan.targets = vec![run.targets[0].name.clone()];
    store.update_run(&run).unwrap();
    drop(store);
    let before = json(&home.assay(&["export", "4"]).stdout);
    let ran = home.assay(&["run", "--resume", "4", "--quiet"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let after = json(&home.assay(&["export", "4"]).stdout);
    let samples = |document: &Value| document["samples"].as_array().unwrap().clone();
    assert_eq!((samples(&before).len(), samples(&after).len()), (2, 12));
    assert_eq!(samples(&before), samples(&after)[..2]);
    assert_eq!(after["run"]["state"], "complete");
    assert_eq!(after["machine"], Value::Null);
}

/// A store with two runs: 1 of this machine, 2 of another one by export and import.
fn two_machines() -> Option<Home> {
    if assay_facts::machine(&Live).is_none() {
        assay_testing::skipped("machine-id", "this machine has no /etc/machine-id");
        return None;
    }
    let home = home();
    let path = home.dir.path().join("store.db");
    let mut store = Store::open(&path).unwrap().on(assay_facts::machine(&Live));
    for (old, uid) in [(1, '1'), (2, '2')] {
        let mut run = store.run(RunId(old)).unwrap();
        let samples = store.samples(RunId(old)).unwrap();
        run.uid = uid.to_string().repeat(32);
        match uid {
            '1' => {
                store.create_run(&mut run).unwrap();
                for sample in &samples {
                    store.add_sample(run.id, sample).unwrap();
                }
            }
            _ => {
                let other = Machine {
                    id: "b".repeat(32),
                    name: None,
                };
                store.import_run(&run, &samples, Some(&other)).unwrap();
            }
        }
    }
    Some(home)
}

#[test]
fn the_machine_is_shown_where_there_are_two() {
    let Some(home) = two_machines() else { return };
    let here = assay_facts::machine(&Live).unwrap();
    let rows = json(&home.assay(&["runs", "--json"]).stdout)["runs"].clone();
    assert_eq!(rows[0]["machine"]["id"], "b".repeat(32));
    assert_eq!(rows[1]["machine"]["id"], here.id.as_str());
    assert_eq!(rows[1]["machine"]["name"].as_str(), here.name.as_deref());
    assert_eq!(rows[2]["machine"], Value::Null);
    let table = home.assay(&["runs"]).stdout;
    assert!(
        table.contains("bbbbbbbb") && table.contains("unknown"),
        "{table}"
    );
    let newest = home.assay(&["runs", "-n", "1"]).stdout;
    assert!(!newest.contains("bbbbbbbb"), "one machine only: {newest}");

    let both = json(&home.assay(&["compare", "9", "10", "--json"]).stdout);
    assert_eq!(both["environment"][0]["key"], "machine");
    assert_eq!(both["environment"][0]["b"], "bbbbbbbb");
    assert_eq!(both["machines"]["a"]["id"], here.id.as_str());
    // The same comparison of runs of one machine, or of unknown ones, has no such line.
    let old = json(&home.assay(&["compare", "1", "2", "--json"]).stdout);
    assert!(!old["environment"].to_string().contains("bbbbbbbb"));
    assert_ne!(old["environment"][0]["key"], "machine");

    let export = home.assay(&["export", "9"]).stdout;
    assert_eq!(json(&export)["machine"], here.id.as_str());
    let secret = std::fs::read_to_string("/etc/machine-id").unwrap();
    assert!(!export.contains(secret.trim()));
}

#[test]
fn a_run_of_another_machine_is_not_gone_on_with() {
    let Some(home) = two_machines() else { return };
    let before = json(&home.assay(&["export", "10"]).stdout);
    let ran = home.assay(&["run", "--resume", "10", "--quiet"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("bbbbbbbb"), "{}", ran.stderr);
    assert_eq!(json(&home.assay(&["export", "10"]).stdout), before);
}
