use super::*;

fn settings() -> Settings {
    Settings {
        targets: vec!["/srv".to_owned()],
        engine: Engine::Libaio,
        seed: 7,
    }
}

fn error(text: &str) -> String {
    match PlanSpec::from_toml(text, "my.toml") {
        Err(error) => error.to_string(),
        Ok(spec) => spec.resolve(&settings()).unwrap_err().to_string(),
    }
}

#[test]
fn every_builtin_plan_resolves_and_bears_its_own_name() {
    for (name, text) in BUILTIN {
        let spec = PlanSpec::from_toml(text, name).unwrap();
        assert_eq!(spec.name, name);
        assert!(!spec.title.is_empty());
        let plan = spec.resolve(&settings()).unwrap();
        assert!(
            plan.rounds >= 5,
            "{name}: SNIA steady state needs five rounds"
        );
    }
}

#[test]
fn the_printed_plan_is_the_same_plan() {
    for (name, text) in BUILTIN {
        let plan = PlanSpec::from_toml(text, name)
            .unwrap()
            .resolve(&settings())
            .unwrap();
        let other = Settings {
            targets: vec![],
            engine: Engine::IoUring,
            seed: 99,
        };
        let again = PlanSpec::from_toml(&plan.to_toml(), "printed")
            .unwrap()
            .resolve(&other)
            .unwrap();
        assert_eq!(again, plan);
    }
}

#[test]
fn each_round_holds_every_workload_on_every_target_once() {
    let mut two = settings();
    two.targets.push("/tmp".to_owned());
    let plan = builtin_plan("matrix").unwrap().resolve(&two).unwrap();
    assert_eq!(plan.workloads.len(), 48);
    for round in 1..=plan.rounds {
        let mut seen: Vec<_> = plan
            .order
            .iter()
            .filter(|s| s.round == round)
            .map(|s| (s.workload, s.target))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 96);
    }
    let first: Vec<_> = plan.order[..96].iter().map(|s| s.workload).collect();
    let second: Vec<_> = plan.order[96..192].iter().map(|s| s.workload).collect();
    assert_ne!(first, second, "rounds are shuffled");
    let seeds: std::collections::BTreeSet<_> = plan.order.iter().map(|s| s.seed).collect();
    assert_eq!(
        seeds.len(),
        plan.order.len(),
        "no sample repeats another's offsets"
    );
}

#[test]
fn errors_name_the_line_the_key_and_the_nearest_known_one() {
    let text = "name = \"x\"\n[[workload]]\npattern = \"randread\"\nblok_size = \"4k\"\n";
    assert_eq!(
        error(text),
        "my.toml:4: unknown key `blok_size`: did you mean `block_size`?"
    );
    let text = "name = \"x\"\n[[workload]]\npattern = \"randraed\"\nblock_size = \"4k\"\n";
    assert_eq!(
        error(text),
        "my.toml:3: unknown value `randraed`: did you mean `randread`?"
    );
    let text = "name = \"x\"\n[[workload]]\npattern = \"randread\"\nblock_size = \"4q\"\n";
    insta::assert_snapshot!(error(text), @"my.toml:4: `4q` is not a size; give a size such as 4k, 64KiB, 1.5M or 2GB (k and KiB are 2^10, kB is 10^3) or a number of bytes");
    assert!(error("name = ").starts_with("my.toml:1:"));
}

#[test]
fn plans_that_cannot_work_say_why() {
    let job = "[[workload]]\npattern = \"randread\"\nblock_size = \"4k\"\n";
    for (text, hint) in [
        ("name=\"x\"".to_owned(), "no workload"),
        (format!("name=\"x\"\nrounds=0\n{job}"), "rounds"),
        (format!("name=\"x\"\n{job}{job}"), "two workloads"),
        (format!("name=\"x\"\n{job}name=\"a b\""), "letters"),
        (
            format!("name=\"x\"\n{job}engine=\"psync\"\nqueue_depth=4"),
            "one I/O at a time",
        ),
        (
            format!("name=\"x\"\n{job}durability=\"fsync\""),
            "only reads",
        ),
        (
            format!("name=\"x\"\nfile_size=\"1k\"\n{job}"),
            "larger than",
        ),
        (
            format!("name=\"x\"\nwant=[\"y.iops > 1\"]\n{job}"),
            "names no workload",
        ),
        (format!("name=\"x\"\n{job}runtime=\"1ms\""), "too short"),
    ] {
        assert!(error(&text).contains(hint), "{text}: {}", error(&text));
    }
}

const LOADS: &str = r#"
name = "x"
[[workload]]
load = { kind = "command", argv = ["sort", "{path}/a b"] }
runtime = "2s"
[[workload]]
name = "page"
load = { kind = "http", url = "http://localhost/", connections = 4, keep_alive = true }
[[workload]]
load = { kind = "null" }
[[workload]]
pattern = "randread"
block_size = "4k"
[[workload]]
load = { kind = "fio", workload = { name = "old", pattern = "read", block_size = "1m" } }
"#;

#[test]
fn a_plan_names_any_load_and_survives_being_printed_and_stored() {
    let plan = PlanSpec::from_toml(LOADS, "x").unwrap();
    let plan = plan.resolve(&settings()).unwrap();
    let names: Vec<_> = plan.workloads.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["command", "page", "null", "randread-4k-qd1", "old"]);
    let times = |at: usize| (plan.workloads[at].runtime, plan.workloads[at].ramp);
    assert_eq!(times(0), (Nanos(2_000_000_000), DEFAULT_RAMP));
    assert_eq!(times(1), (DEFAULT_RUNTIME, DEFAULT_RAMP));
    let fio = plan.workloads[4].fio().unwrap();
    assert_eq!(
        (fio.engine, fio.runtime),
        (Engine::Libaio, Some(DEFAULT_RUNTIME))
    );
    let again = PlanSpec::from_toml(&plan.to_toml(), "printed").unwrap();
    assert_eq!(again.resolve(&settings()).unwrap(), plan);
    let stored = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
}

#[test]
fn a_workload_of_fio_is_stored_as_0_1_stored_it() {
    let old = r#"{"name":"w","pattern":"randrw","block_size":4096,"queue_depth":1,"jobs":1,
        "read_percent":75,"engine":"io_uring","direct":true,"durability":"none",
        "runtime":1000000000,"ramp":0}"#;
    let planned: Planned = serde_json::from_str(old).unwrap();
    assert_eq!(planned.fio().unwrap().read_percent, Some(75));
    let (old, new): (serde_json::Value, serde_json::Value) = (
        serde_json::from_str(old).unwrap(),
        serde_json::to_value(&planned).unwrap(),
    );
    assert_eq!(old, new);
}

#[test]
fn a_load_that_does_not_go_together_says_why() {
    let command = r#"load = { kind = "command", argv = ["true"] }"#;
    for (workload, hint) in [
        (format!("{command}\npattern = \"read\""), "leave out"),
        (format!("{command}\nqueue_depth = 1"), "leave out"),
        ("pattern = \"read\"".to_owned(), "`block_size` is missing"),
        ("block_size = \"4k\"".to_owned(), "`pattern` is missing"),
        (
            "load = { kind = \"attributes\", files = 3, size = 20 }".to_owned(),
            "assay's own",
        ),
        (
            "load = { kind = \"fio\", size = \"1g\", workload = { name = \"a\", pattern = \"read\", block_size = \"4k\" } }"
                .to_owned(),
            "file_size",
        ),
        ("load = { kind = \"comand\", argv = [] }".to_owned(), "did you mean `command`"),
    ] {
        let text = format!("name = \"x\"\n[[workload]]\n{workload}\n");
        assert!(error(&text).contains(hint), "{text}: {}", error(&text));
    }
}
