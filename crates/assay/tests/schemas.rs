//! The published schemas equal those of the binary, and the output of verbs matches them.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;
mod serving;

use common::Home;
use common::schemas::{holds, json, published};
use serving::{Ends, Serving};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

fn files(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_published_schemas_are_what_the_binary_writes() {
    let dir = tempfile::tempdir().unwrap();
    let ran = Home::new().assay(&["dev", "schemas", text(dir.path())]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (written, published) = (files(dir.path()), files(&published()));
    let differs: Vec<_> = written
        .iter()
        .chain(&published)
        .filter(|(name, _)| written.get(*name) != published.get(*name))
        .map(|(name, _)| name)
        .collect();
    assert!(
        differs.is_empty(),
        "{differs:?} differ: `assay dev schemas docs/src/schemas` writes them"
    );
}

/// A store of 0.1 has runs of every kind: measured, imported, interrupted, of ladders.
#[test]
fn what_is_shown_of_a_store() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures");
    let packed = fs::read(fixtures.join("store-0.1.db.zst")).unwrap();
    let home = Home::new();
    let store = zstd::decode_all(&packed[..]).unwrap();
    fs::write(home.dir.path().join("store.db"), store).unwrap();
    let said = |args: &[&str]| {
        let ran = home.assay(args);
        // 1: a criterion was missed then.
        assert!(matches!(ran.code, Some(0 | 1)), "{args:?}: {}", ran.stderr);
        ran.stdout
    };
    let runs = said(&["runs", "--json"]);
    holds("runs", &runs, &["/runs/0"]);
    let runs = json(&runs);
    let runs = runs["runs"].as_array().unwrap();
    assert!(runs.len() > 5);
    for run in runs {
        let shown = said(&["show", &run["id"].to_string(), "--json"]);
        holds(
            "run",
            &shown,
            &["/run/plan", "/results/0", "/results/0/limit"],
        );
    }
    let shown = said(&["show", "1", "--json"]);
    holds(
        "run",
        &shown,
        &["/samples/0", "/run/targets/0", "/results/0/metrics/p99"],
    );
    let both = said(&["compare", "1", "2", "--json"]);
    holds("compare", &both, &["/machines", "/rows/0", "/rows/0/a"]);
    holds(
        "study",
        &said(&["study", "show", "mine", "--json"]),
        &["/run", "/result"],
    );
    holds(
        "study-runs",
        &said(&["study", "--list", "--json"]),
        &["/runs/0"],
    );
    let ladder = said(&["stack", "--show", "8", "--json"]);
    holds("stack-measure", &ladder, &["/waterfalls/0", "/run/ladder"]);
    let list = said(&["trial", "--list", "--json"]);
    holds("trial-list", &list, &["/trials/0"]);
    let trials = json(&list);
    for trial in trials["trials"].as_array().unwrap() {
        let shown = said(&["trial", "--show", &trial["id"].to_string(), "--json"]);
        holds("trial", &shown, &["/trial/plan", "/judgement", "/pairs/0"]);
    }
}

#[test]
fn what_a_run_prints() {
    if !common::fio() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let short = [
        "--size",
        "16M",
        "--rounds",
        "2",
        "--runtime",
        "200ms",
        "--ramp",
        "100ms",
    ];
    let want = ["--want", "randread-4k-qd1.p99 <= 100s", "--json"];
    let args = [
        &["run", "quick", text(target.path())],
        &short[..],
        &want[..],
    ]
    .concat();
    let ran = home.assay(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let parts = ["/samples/0/outcome", "/criteria/0", "/results/0/steadiness"];
    holds("run", &ran.stdout, &parts);
}

/// A user page: a file contains the duration of the load.
#[test]
fn what_a_trial_prints() {
    let home = Home::new();
    let (set, page) = (home.dir.path().join("set"), home.dir.path().join("nap.md"));
    fs::write(&set, "0.2").unwrap();
    let file = text(&set);
    let own = format!(
        r#"+++
title = "Nap"
statement = "Nap less."
predicts = "Faster."
[source]
who = "A colleague"
claimed = "It is faster."
[literature]
standing = "confirmed"
text = "sleep(1)"
references = ["sleep(1)"]
[risk]
level = "low"
text = "None."
[trial]
target = "address"
default_target = "here"
metric = "p50"
slot_seconds = 0.1
washout_seconds = 0.0
[trial.change]
kind = "set"
value = "0.01"
setting = {{ kind = "command", read = ["cat", "{file}"], apply = ["sh", "-c", "printf %s \"$1\" > {file}", "sh", "{{value}}"], undo = ["sh", "-c", "printf %s \"$1\" > {file}", "sh", "{{value}}"] }}
[trial.load]
kind = "command"
argv = ["sh", "-c", "sleep $(cat {file})"]
+++
## Claim
Faster.
## Why it may help
Less sleep.
## When it does not apply
Never.
## How we test
The load.
## Undo
The old value.
## Sources
sleep(1)
"#
    );
    fs::write(&page, own).unwrap();
    let ran = home.assay(&["trial", text(&page), "--yes", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let parts = [
        "/pairs/0",
        "/pairs/0/now",
        "/figures/p50",
        "/trial/plan/change",
    ];
    holds("trial", &ran.stdout, &parts);
    let ran = home.assay(&["trial", "--recover", "--json"]);
    holds("trial-recover", &ran.stdout, &[]);
}

#[test]
fn what_is_said_of_a_machine() {
    let home = Home::new();
    let said = |args: &[&str]| home.assay(args).stdout;
    holds("version", &said(&["version", "--json"]), &[]);
    holds(
        "facts",
        &said(&["facts", "--json"]),
        &["/facts/memory.total"],
    );
    let advice = said(&["advice", "--target", text(home.dir.path()), "--json"]);
    holds(
        "advice",
        &advice,
        &["/advice/0", "/advice/0/literature", "/advice/0/here"],
    );
    holds("check", &said(&["check", "--json"]), &["/rules/0"]);
    let pem = Path::new(env!("CARGO_MANIFEST_DIR")).join("../probe/fixtures/cert.pem");
    let pins = said(&["pins", text(&pem), "--host", "example.org:25", "--json"]);
    holds("pins", &pins, &["/pins/0", "/pins/0/pin"]);
    let certificates = said(&["cert", "show", text(&pem), "--json"]);
    holds(
        "cert",
        &certificates,
        &["/sources/0/items/0/certificate/pin"],
    );
    let stack = said(&["stack", text(home.dir.path()), "--json"]);
    holds("stack", &stack, &["/layers/0"]);
    let why = said(&["why", "--for", "1s", "--json"]);
    holds("why", &why, &[]);
    holds(
        "study-list",
        &said(&["study", "--json"]),
        &["/studies/0/source"],
    );
    for command in [
        "fio --name=t --rw=randread --iodepth=32 --bs=4k",
        "dd if=/dev/zero of=/dev/sdz bs=1M",
    ] {
        holds("lint", &said(&["lint", "--json", command]), &["/doubts/0"]);
    }
}

#[test]
fn what_is_planned() {
    let home = Home::new();
    let lineage = home.dir.path().join("lineage");
    fs::write(
        &lineage,
        "p/gold\tused\t10GiB\np/gold\treferenced\t10GiB\np/gold\twritten\t0\n\
         p/gold@v1\tused\t0\np/gold@v1\treferenced\t10GiB\np/gold@v1\twritten\t10GiB\n\
         p/vm\tused\t3GiB\np/vm\treferenced\t11GiB\np/vm\twritten\t3GiB\np/vm\torigin\tp/gold@v1\n",
    )
    .unwrap();
    let clones = ["--from", text(&lineage), "--destroy", "p/gold@v1"];
    let questions: [(&str, &[&str]); 9] = [
        ("layout", &["4T", "2T", "2T", "1T", "750G"]),
        (
            "layout",
            &["6x4T@95", "--years", "5", "--watts", "7", "--kwh", "0.35"],
        ),
        (
            "layout",
            &[
                "--only",
                "raidz2:6",
                "6x4T",
                "--special",
                "400G",
                "--special",
                "400G",
            ],
        ),
        (
            "layout",
            &[
                "--only",
                "btrfs-raid1",
                "--metadata",
                "raid1",
                "4T",
                "2T",
                "1T",
            ],
        ),
        ("capacity", &["1TiB"]),
        ("distribute", &["2T@80%", "2T", "--write", "500G"]),
        ("clones", &clones),
        (
            "cache",
            &["--memory", "64GiB", "--l2arc", "480G", "--block", "16KiB"],
        ),
        (
            "durability",
            &["--disks", "8", "--survives", "2", "--simulate", "1000"],
        ),
    ];
    for (question, args) in questions {
        let args = [&["plan", question], args, &["--json"][..]].concat();
        let ran = home.assay(&args);
        assert!(matches!(ran.code, Some(0 | 1)), "{args:?}: {}", ran.stderr);
        holds(&format!("plan-{question}"), &ran.stdout, &[]);
    }
}

/// With names that are not UTF-8, hard links, and a file that disappears: `dups` writes its output
/// in parts, not from the type of the schema.
#[test]
fn what_a_scan_for_duplicates_prints() {
    let home = Home::new();
    let target = home.target();
    let at = |name: &[u8]| target.path().join(std::ffi::OsStr::from_bytes(name));
    for name in [&b"a"[..], b"b", b"odd\xff"] {
        fs::write(at(name), vec![7; 100_000]).unwrap();
    }
    fs::hard_link(at(b"a"), at(b"a again")).unwrap();
    std::os::unix::fs::symlink("a", at(b"link")).unwrap();
    let index = home.dir.path().join("index.db");
    let args = ["--index", text(&index), "--json"];
    let scan = [&["dups", "scan", text(target.path())], &args[..]].concat();
    let ran = home.assay(&scan);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = json(&ran.stdout);
    assert!(document["groups"][0]["links"].is_object(), "{document}");
    assert!(document["groups"][0]["bytes"].is_object(), "{document}");
    holds("dups", &ran.stdout, &["/groups/0", "/summary", "/cost"]);
    let ran = home.assay(&[&["dups", "report"], &args[..]].concat());
    holds("dups", &ran.stdout, &["/groups/0"]);
}

/// All queries of the index, and actions on files with their undo.
#[test]
fn what_is_said_and_done_about_duplicates() {
    let home = Home::new();
    let target = home.target();
    let at = |name: &[u8]| target.path().join(std::ffi::OsStr::from_bytes(name));
    for dir in [&b"one"[..], b"two", b"three"] {
        fs::create_dir(at(dir)).unwrap();
        for name in [&b"a"[..], b"odd\xff"] {
            let content = vec![name[0]; 100_000];
            fs::write(at(&[dir, b"/", name].concat()), content).unwrap();
        }
    }
    fs::write(at(b"three/more"), vec![9; 50_000]).unwrap();
    let (index, other) = (home.dir.path().join("a.db"), home.dir.path().join("b.db"));
    let dups = |index: &Path, args: &[&std::ffi::OsStr]| {
        let begin = ["dups", "--index", text(index), "--json"].map(std::ffi::OsStr::new);
        home.assay(&[&begin[..], args].concat())
    };
    let said = |args: &[&str]| {
        let args: Vec<&std::ffi::OsStr> = args.iter().map(std::ffi::OsStr::new).collect();
        let ran = dups(&index, &args);
        assert!(matches!(ran.code, Some(0 | 1)), "{args:?}: {}", ran.stderr);
        ran.stdout
    };
    let root = text(target.path());
    let [one, two, three] = ["one", "two", "three"].map(|name| format!("{root}/{name}"));
    said(&["scan", root]);
    holds(
        "dups-file",
        &said(&["file", &format!("{one}/a")]),
        &["/copies/0"],
    );
    holds("dups-list", &said(&["ls", &three]), &["/files/0"]);
    holds("dups-list", &said(&["uniques", root]), &["/files/0"]);
    let dirs = said(&["dirs"]);
    holds(
        "dups-dirs",
        &dirs,
        &["/same/0", "/same/0/folders/0", "/overlapping/0"],
    );
    fs::write(at(b"two/a"), vec![b'b'; 100_000]).unwrap();
    holds("dups-validate", &said(&["validate"]), &["/problems/0"]);
    fs::write(at(b"two/a"), vec![b'a'; 100_000]).unwrap();
    said(&["scan", root]);
    // As on another machine.
    let args = ["scan", "--hash-all", &one].map(std::ffi::OsStr::new);
    assert_eq!(dups(&other, &args).code, Some(0));
    let elsewhere = format!("box={}", text(&other));
    let merged = home.dir.path().join("merged.db");
    let here = format!("here={}", text(&index));
    let args = ["merge", &here, &elsewhere].map(std::ffi::OsStr::new);
    let ran = dups(&merged, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    holds("dups-merge", &ran.stdout, &["/merged/0"]);
    let to = |name: &str| home.dir.path().join(name);
    let offer = said(&["offer", "--machine", "a", text(&to("a.offer"))]);
    holds("dups-offer", &offer, &[]);
    let collided = said(&["collide", text(&to("a.offer")), "--to", text(&to("wanted"))]);
    holds("dups-collide", &collided, &["/machines/0"]);
    let exported = said(&["export", "--machine", "a", text(&to("hashes"))]);
    holds("dups-export", &exported, &["/exported/0"]);
    let across = said(&["across", text(&to("hashes"))]);
    holds("dups-across", &across, &["/machines/0", "/largest/0"]);
    let moved = format!("{root}/away");
    let plan = said(&["act", "--move", &moved, &one, &two]);
    holds(
        "dups-act-plan",
        &plan,
        &["/steps/0", "/steps/0/keep", "/steps/0/to"],
    );
    let done = said(&[
        "act",
        "--hardlink",
        "--apply",
        &one,
        &two,
        "--protect",
        &two,
    ]);
    holds("dups-act", &done, &[]);
    let runs = said(&["undo"]);
    holds("dups-runs", &runs, &["/runs/0"]);
    let run = json(&runs)["runs"][0]["run"].as_str().unwrap().to_owned();
    holds("dups-undo", &said(&["undo", &run]), &[]);
    holds("dups-forget", &said(&["forget", &two]), &["/forgotten/0"]);
}

#[test]
fn what_a_campaign_and_a_list_of_guests_print() {
    let home = Home::new();
    holds(
        "lab-list",
        &home.assay(&["lab", "list", "--json"]).stdout,
        &[],
    );
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures");
    let packed = fs::read(fixtures.join("store-0.1.db.zst")).unwrap();
    let store = zstd::decode_all(&packed[..]).unwrap();
    fs::write(home.dir.path().join("store.db"), store).unwrap();
    let export = home.dir.path().join("export.json");
    let exported = home.assay(&["export", "1"]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    fs::write(&export, exported.stdout).unwrap();
    let ran = home.assay(&["import", "--json", "--no-store", text(&export)]);
    holds("import", &ran.stdout, &["/files/0/report"]);
}

#[test]
fn what_a_load_on_a_web_server_prints() {
    if let Some(lacking) = assay_testing::servers::find_missing(&["nginx"], false) {
        assay_testing::skipped("nginx", format_args!("lacks {lacking}"));
        return;
    }
    let nginx = assay_testing::servers::nginx::Nginx::start("").unwrap();
    nginx.file("page", 1000).unwrap();
    let home = Home::new();
    let url = nginx.url("/page");
    let short = [
        "--concurrency",
        "1,2",
        "--at",
        "50",
        "--seconds",
        "300ms",
        "--washout=100ms",
    ];
    let ran = home.assay(&[&["web", &url, "--json"], &short[..]].concat());
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    holds(
        "web",
        &ran.stdout,
        &["/steps/0", "/judged", "/judged/steps/0"],
    );
    // The measurement is a run too.
    let shown = home.assay(&["show", "last", "--json"]);
    holds("run", &shown.stdout, &["/samples/0"]);
}

#[test]
fn what_people_on_a_network_noticed() {
    let serving = Serving::here();
    let _clients = ["anna", "ben"].map(|name| Ends(serving.client(name).spawn().unwrap()));
    let plan = serving.plan(
        "name = 'two'\nseconds = 2\n[[person]]\nname = 'Ben'\nclient = 'ben'\nroles = ['gaming', 'upload', 'browsing']\n\
         [[person]]\nname = 'Anna'\nclient = 'anna'\nroles = ['voip']\n",
    );
    let ran = serving.controller(&[&plan, "--json"]);
    holds(
        "net",
        &ran.stdout,
        &["/judged/0", "/run/people/0", "/experience"],
    );
    let file = serving.file("one.json");
    fs::write(&file, &ran.stdout).unwrap();
    let ran = serving
        .home
        .assay(&["net", "compare", text(&file), text(&file), "--json"]);
    holds("net-compare", &ran.stdout, &["/judged/0/0"]);
}
