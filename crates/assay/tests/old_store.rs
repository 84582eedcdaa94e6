//! Reads records of 0.1: its measurements are shown, compared, exported, judged again and continued with the same
//! figures; and a store of several machines is shown.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_host::LiveHost;
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

/// Creates a home with the store of 0.1.
fn home() -> Home {
    let home = Home::new();
    let store = packed("store-0.1.db.zst");
    std::fs::write(home.dir.path().join("store.db"), store).unwrap();
    home
}

/// Recorded output of 0.1.
#[derive(serde::Deserialize)]
struct Answer {
    status: i32,
    said: Value,
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// `f64::powi` may differ in the last bit between builds.
fn same(a: Option<f64>, b: Option<f64>) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return a == b;
    };
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

/// Finds values that `now` lacks or changed compared with `then`. New fields are permitted.
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

/// Values that are derived on read follow the current rules: a table row was a ratio of medians,
/// and is now the centre of the pairs' ratios.
fn derived(value: &mut Value) {
    if let Some(rows) = value.get_mut("figures").and_then(Value::as_object_mut) {
        for row in rows.values_mut().filter_map(Value::as_object_mut) {
            row.remove("ratio");
        }
    }
    let guards = value.pointer_mut("/judgement/guards");
    for guard in guards.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(guard) = guard.as_object_mut() {
            guard.remove("worsening");
        }
    }
}

/// The factor of a layer was that of the means of all rounds; it is that of the printed times, of the rounds that both
/// layers have.
fn without_factors(value: &mut Value) {
    let all = value.get_mut("waterfalls").and_then(Value::as_array_mut);
    for waterfall in all.into_iter().flatten() {
        for list in ["steps", "wholes"] {
            let steps = waterfall.get_mut(list).and_then(Value::as_array_mut);
            for step in steps.into_iter().flatten().filter_map(Value::as_object_mut) {
                step.remove("ratio");
            }
        }
    }
}

/// Schema 2 counts operations by kind: records of 0.1 are converted to it, with the same numbers.
fn of_today(value: &mut Value) {
    if let Some(document) = value.as_object_mut() {
        document.remove("schema");
    }
    let samples = value.get_mut("samples").and_then(Value::as_array_mut);
    for sample in samples.into_iter().flatten() {
        if sample.get("jobs").is_some() {
            let read: assay_model::Sample = serde_json::from_value(sample.clone()).unwrap();
            assert_eq!(read.workers.len(), sample["jobs"].as_array().unwrap().len());
            *sample = serde_json::to_value(read).unwrap();
        }
    }
}

/// Doubts that 0.1 did not have, and that are added on read.
const LATER: [&str; 1] = ["small-target"];

/// Removes these doubts: a sample with only such doubts was valid.
fn without_later_doubts(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let doubts = fields.get_mut("doubts").and_then(Value::as_array_mut);
            if let Some(doubts) = doubts.filter(|doubts| !doubts.is_empty()) {
                doubts.retain(|doubt| {
                    let code = doubt.get("code").unwrap_or(doubt).as_str();
                    !LATER.iter().any(|later| code == Some(later))
                });
                if doubts.is_empty() && fields.contains_key("validity") {
                    fields.insert("validity".to_owned(), "valid".into());
                }
            }
            fields.values_mut().for_each(without_later_doubts);
        }
        Value::Array(all) => all.iter_mut().for_each(without_later_doubts),
        _ => {}
    }
}

/// Keeps only numbers, booleans and names; sentences for people may change.
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
            // Tables are for people; CSV is for programs and stays equal.
            Value::String(text) if args.contains(&"csv") => {
                // The outputs were stored with plain line ends.
                let now = LATER
                    .iter()
                    .fold(ran.stdout.replace("\r\n", "\n"), |now, later| {
                        now.replace(&format!("suspect,{later},"), "valid,,")
                    });
                if now != text {
                    wrong.push(format!("{command}: another CSV"));
                }
            }
            Value::String(text) => {
                assert!(!text.is_empty() && !ran.stdout.is_empty(), "{command}");
            }
            mut then => {
                of_today(&mut then);
                figures(&mut then);
                match command.split(' ').next() {
                    Some("trial") => derived(&mut then),
                    Some("stack") => without_factors(&mut then),
                    _ => {}
                }
                let mut differences = Vec::new();
                let mut now = json(&ran.stdout);
                without_later_doubts(&mut now);
                lost("", &then, &now, &mut differences);
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
    // None of its runs has a known machine, so lists have no such column.
    assert!(!home.assay(&["runs"]).stdout.contains("machine"));
}

#[test]
fn an_interrupted_run_of_it_is_gone_on_with() {
    if !common::fio() {
        return;
    }
    let (home, target) = (home(), Home::new().target());
    // /var/tmp was another disk then, and a run is not continued elsewhere: so its target is
    // changed.
    let mut store = Store::open(&home.dir.path().join("store.db")).unwrap();
    let mut run = store.run(RunId(4)).unwrap();
    let mut info = assay_facts::target(&LiveHost, target.path()).unwrap();
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

/// An index of duplicates from 0.1.
#[test]
fn an_index_says_what_it_said() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dups/tests/fixtures");
    let read = |name: &str| std::fs::read(fixtures.join(name)).unwrap();
    let home = Home::new();
    let index = home.dir.path().join("dups.db");
    let packed = read("index-0.1.db.zst");
    std::fs::write(&index, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    let ran = home.assay(&[
        "dups",
        "report",
        "--json",
        "--index",
        index.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let then: Value = serde_json::from_slice(&read("index-0.1.report.json")).unwrap();
    let mut differences = Vec::new();
    lost("", &then, &json(&ran.stdout), &mut differences);
    assert!(differences.is_empty(), "{differences:?}");
}

/// A journal of a killed 0.1: its content is reported and never skipped.
#[test]
fn a_journal_is_understood() {
    use std::os::unix::fs::DirBuilderExt as _;
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../changes/tests/fixtures/journal-0.1-killed.jsonl"),
    )
    .unwrap();
    let home = Home::new();
    let session = home.state().join("journal/sessions/assay-c07de044c66afa3c");
    let mut private = std::fs::DirBuilder::new();
    private
        .recursive(true)
        .mode(0o700)
        .create(&session)
        .unwrap();
    // From an earlier boot: a mount option from then is no longer in effect.
    let boot = "1f1d65d1-6500-4f6c-989c-385b069582c4";
    assert!(text.contains(boot));
    let text = text.replace(boot, "00000000-6500-4f6c-989c-385b069582c4");
    std::fs::write(session.join("journal"), text).unwrap();
    let ran = home.assay(&["trial", "--recover", "--json"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let recovered = json(&ran.stdout)["recovered"].clone();
    assert_eq!(recovered[0]["target"], "/var/tmp");
    assert_eq!(recovered[0]["remains"], false);
    let again = json(&home.assay(&["trial", "--recover", "--json"]).stdout);
    assert_eq!(again["recovered"], serde_json::json!([]));
}

/// Creates a store with two runs: 1 of this machine, 2 of another one by export and import.
fn two_machines() -> Option<Home> {
    if assay_facts::machine(&LiveHost).is_none() {
        assay_testing::skipped("machine-id", "this machine has no /etc/machine-id");
        return None;
    }
    let home = home();
    let path = home.dir.path().join("store.db");
    let mut store = Store::open(&path)
        .unwrap()
        .on(assay_facts::machine(&LiveHost));
    for (old, uid) in [(1, '1'), (4, '2')] {
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
    let here = assay_facts::machine(&LiveHost).unwrap();
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
    // A comparison of runs of one machine, or of unknown ones, has no such line.
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
    // Without a name a run of another machine is not selected, even if it is the newest.
    let newest = home.assay(&["run", "--resume", "--quiet", "--fio", "/nonexistent"]);
    assert_eq!(newest.code, Some(2));
    assert!(!newest.stderr.contains("bbbbbbbb"), "{}", newest.stderr);
}

/// Returns the rows of all tables below a folder as JSON, by the advice in the name of their
/// folder.
fn rows(dir: &Path) -> Vec<(String, Value)> {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let mut rows = Vec::new();
    for advice in std::fs::read_dir(dir).unwrap() {
        let advice = advice.unwrap();
        let name = advice.file_name().into_string().unwrap();
        for file in std::fs::read_dir(advice.path()).unwrap() {
            let file = std::fs::File::open(file.unwrap().path()).unwrap();
            let reader = SerializedFileReader::new(file).unwrap();
            for row in reader.get_row_iter(None).unwrap() {
                let cells = row
                    .unwrap()
                    .get_column_iter()
                    .map(|(name, field)| {
                        let text = field.to_string();
                        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                        (name.clone(), value)
                    })
                    .collect::<serde_json::Map<_, _>>();
                rows.push((name.clone(), Value::Object(cells)));
            }
        }
    }
    rows
}

/// All figures and verdicts, read by another library.
#[test]
fn the_whole_store_as_parquet() {
    let home = home();
    let store = home.dir.path().join("store.db");
    let to = home.dir.path().join("tables");
    let args = ["export", "--format", "parquet", "-o", to.to_str().unwrap()];
    let ran = home.assay(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let store = Store::open_existing(&store).unwrap().unwrap();
    let trials = store.trials().unwrap();
    assert!(!trials.is_empty());
    let verdicts = rows(&to.join("verdicts"));
    assert_eq!(verdicts.len(), trials.len());
    for trial in &trials {
        let slots = store.slots(trial.id).unwrap();
        let (_, judged) = assay_judge::trial::judge_trial(trial, &slots);
        let told = verdicts.iter().find(|one| one.1["record"] == *trial.uid);
        let (advice, told) = told.unwrap();
        assert_eq!(*advice, format!("advice={}", trial.plan.advice));
        assert_eq!(
            told["verdict"],
            serde_json::to_value(judged.verdict).unwrap()
        );
        assert_eq!(told["ratio"].as_f64(), judged.ratio);
    }
    let samples = rows(&to.join("samples"));
    let mut expected = 0;
    for row in store.runs().unwrap() {
        let (run, parts) = (store.run(row.id).unwrap(), store.samples(row.id).unwrap());
        for (part, one) in parts
            .iter()
            .zip(assay_judge::judge_run(&run, &parts).samples)
        {
            expected += one.figures.len().max(1);
            for (metric, value) in one.figures {
                let is_it = |(advice, told): &&(String, Value)| {
                    advice == "advice=__HIVE_DEFAULT_PARTITION__"
                        && told["record"] == *run.uid
                        && told["slot"] == part.slot
                        && told["metric"] == metric.to_string()
                };
                let told = samples.iter().find(is_it).unwrap();
                assert_eq!(told.1["value"].as_f64(), Some(value), "{metric}");
            }
        }
    }
    let of_trials = samples.iter().filter(|one| one.1["kind"] == "trial");
    assert!(
        of_trials
            .clone()
            .all(|one| one.1["pair"].is_u64() && one.1["side"].is_string())
    );
    assert_eq!(samples.len() - of_trials.count(), expected);
    // The tables of the store in SQL, row by row.
    for table in &assay_store::tables::TABLES {
        let path = to.join(format!("{}.parquet", table.name));
        let file = std::fs::File::open(&path).unwrap();
        let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
        let schema = parquet::file::reader::FileReader::metadata(&reader).file_metadata();
        let names: Vec<&str> = schema
            .schema_descr()
            .columns()
            .iter()
            .map(|one| one.name())
            .collect();
        let wanted: Vec<&str> = table.columns.iter().map(|one| one.name).collect();
        assert_eq!(names, wanted);
        let runs = store.runs().unwrap().into_iter().map(|run| run.uid);
        let trials = store.trials().unwrap().into_iter().map(|trial| trial.uid);
        let in_sql = runs
            .chain(trials)
            .map(|uid| store.table_rows(table, &uid).unwrap().len());
        assert_eq!(
            usize::try_from(schema.num_rows()).unwrap(),
            in_sql.sum::<usize>(),
            "{}",
            table.name
        );
    }
    // Existing folders are refused.
    let again = home.assay(&args);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("already"), "{}", again.stderr);
}
