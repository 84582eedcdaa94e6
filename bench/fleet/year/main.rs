//! A year of hourly looks at many machines, by the code of the store: how large it is, and how long each listing takes, in
//! SQLite and in PostgreSQL. See `bench/fleet/year/run`.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and its arguments"
)]

#[path = "../../../crates/store/tests/common/mod.rs"]
mod common;

use assay_store::{About, Ask, Key, SpanSurvey, SpanValue, Store};
use assay_testing::servers::postgres::Postgres;
use jiff::{SignedDuration, Timestamp};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Facts of a machine, half of them versions of packages.
const FACTS: usize = 800;
const HOURS: u32 = 24 * 365;
/// How often something changes on a machine, in an hour: two times in five days.
const CHANGES: f64 = 0.4 / 24.0;
/// One look in so many of those at which nothing changed is really made, unless it is said: all of them only move the
/// time of the last look.
const MADE: u32 = 50;

fn begin() -> Timestamp {
    Timestamp::from_second(1_767_225_600).expect("a time")
}

fn key(number: usize) -> Key {
    let name = match number % 2 {
        0 => format!("package.lib-number-{number}.version"),
        _ => format!("disk.vd{number}.some.setting"),
    };
    (About::Fact, name)
}

/// Versions are those of all machines, settings those of one.
fn value(number: usize, version: u32, host: usize) -> SpanValue {
    SpanValue::Value(match number % 2 {
        0 => format!("\"1.{version}.4-2+deb12u{}\"", number % 7),
        _ => format!("\"{version} of {}\"", host % 20),
    })
}

struct Machine {
    name: String,
    number: usize,
    seen: BTreeMap<Key, SpanValue>,
    versions: Vec<u32>,
}

impl Machine {
    fn new(number: usize) -> Self {
        let all = (0..FACTS).map(|fact| (key(fact), value(fact, 0, number)));
        Self {
            name: format!("host-{number:04}"),
            number,
            seen: all.collect(),
            versions: vec![0; FACTS],
        }
    }

    /// Five facts become others, as with an upgrade; one time in three a finding comes or goes.
    fn change(&mut self, random: &mut ChaCha8Rng) {
        for _ in 0..5 {
            let fact = random.random_range(0..FACTS);
            self.versions[fact] += 1;
            let new = value(fact, self.versions[fact], self.number);
            self.seen.insert(key(fact), new);
        }
        if random.random_bool(1.0 / 3.0) {
            let finding = (
                About::Finding,
                format!("rule-{}", random.random_range(0..40)),
            );
            if self.seen.remove(&finding).is_none() {
                self.seen
                    .insert(finding, SpanValue::Value("\"medium\"".to_owned()));
            }
        }
    }

    /// One machine is looked at after the other.
    fn look(&self, hour: u32) -> SpanSurvey<'_> {
        let second = i64::from(hour) * 3600 + self.number as i64;
        SpanSurvey {
            host: &self.name,
            at: begin() + SignedDuration::from_secs(second),
            scope: "1",
            seen: self.seen.clone(),
            lost: Vec::new(),
        }
    }
}

/// What was done to fill a store, and what it took.
#[derive(Default)]
struct Filled {
    looks: usize,
    changed: usize,
    /// Looks at which something changed: how many, seconds.
    wrote: (usize, f64),
    /// Looks at which nothing did.
    idle: (usize, f64),
}

fn fill(store: &mut Store, hosts: usize, made: u32) -> Filled {
    let mut random = ChaCha8Rng::seed_from_u64(19);
    let mut machines: Vec<Machine> = (0..hosts).map(Machine::new).collect();
    let mut filled = Filled::default();
    for hour in 0..=HOURS {
        for machine in &mut machines {
            let changes = random.random_bool(CHANGES);
            if changes {
                machine.change(&mut random);
            }
            let skipped = random.random_range(0..made) > 0 && (1..HOURS).contains(&hour);
            if changes || !skipped {
                let look = machine.look(hour);
                let begun = Instant::now();
                let changed = store.look(&look).expect("it is kept");
                let kind = match changed {
                    0 => &mut filled.idle,
                    _ => &mut filled.wrote,
                };
                kind.0 += 1;
                kind.1 += begun.elapsed().as_secs_f64();
                filled.changed += changed;
                filled.looks += 1;
            }
        }
        if hour % 730 == 0 {
            eprintln!("month {} of 12", hour / 730);
        }
    }
    filled
}

fn listings(store: &Store, hosts: usize) {
    let one = [format!("host-{:04}", hosts / 2)];
    let ago = |hours: u32| Some(begin() + SignedDuration::from_hours((HOURS - hours).into()));
    let all = Ask {
        most: 10_000,
        ..Ask::default()
    };
    let group: Vec<String> = (0..hosts / 10)
        .map(|number| format!("host-{:04}", number * 10))
        .collect();
    let key = |key| Ask {
        key: Some(key),
        ..all
    };
    let since = |ask, hours| Ask {
        since: ago(hours),
        ..ask
    };
    let of = |ask, hosts| Ask { hosts, ..ask };
    let page = |ask| Ask { most: 1000, ..ask };
    let (one_key, packages) = ("package.lib-number-40.version", "package.");
    let asks = [
        ("what is so on one machine", of(all, &one)),
        ("what is so on a tenth of them", of(all, &group)),
        ("what is so everywhere", key("")),
        ("what is so everywhere, the newest 1,000", page(key(""))),
        ("one key on all machines", key(one_key)),
        ("all packages of all machines", key(packages)),
        ("a key that nothing has", key("nothing.")),
        ("what changed in a day, all machines", since(all, 24)),
        ("what changed in a week, all machines", since(all, 24 * 7)),
        (
            "packages in a week, all machines",
            since(key(packages), 24 * 7),
        ),
        ("the year, one machine", since(of(all, &one), HOURS)),
        ("the year, a tenth of them", since(of(all, &group), HOURS)),
        ("the year, one key", since(key(one_key), HOURS)),
        ("the year, findings", since(key("rule-"), HOURS)),
        (
            "the year, one package in ten",
            since(key("package.lib-number-1"), HOURS),
        ),
        ("the year, packages", since(key(packages), HOURS)),
        ("the year, everything", since(key(""), HOURS)),
        (
            "the year, everything, the newest 1,000",
            page(since(key(""), HOURS)),
        ),
    ];
    let timed = |name: &str, what: &dyn Fn() -> usize| {
        let mut times: Vec<f64> = (0..5)
            .map(|_| {
                let begun = Instant::now();
                what();
                begun.elapsed().as_secs_f64() * 1000.0
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("| {name} | {} | {:.1} ms |", what(), times[2]);
    };
    println!("| listing | rows | time (median of 5) |\n|---|---|---|");
    timed("all machines", &|| store.hosts().expect("hosts").len());
    for (name, ask) in asks {
        timed(name, &|| store.spans(&ask).expect("rows").len());
    }
    if store.runs().is_ok_and(|runs| !runs.is_empty()) {
        timed("runs", &|| store.runs().expect("runs").len());
    }
}

fn runs(store: &mut Store, count: u64) {
    for number in 0..count {
        let run = common::run(&format!("{number:032x}"));
        let samples: Vec<_> = (0..4).map(|slot| common::sample(slot, 1000.0)).collect();
        store.import_run(&run, &samples, None).expect("it is kept");
    }
}

fn measure(name: &str, path: &Path, hosts: usize, made: u32, size: &dyn Fn() -> String) {
    let mut store = Store::open(path).expect("a store");
    if store.hosts().expect("hosts").is_empty() {
        let filled = fill(&mut store, hosts, made);
        let each = |(count, seconds): (usize, f64)| 1000.0 * seconds / count.max(1) as f64;
        println!(
            "\n{name}: {hosts} machines, {FACTS} facts each; {} looks made of {}, {} changes; {:.0} s: {:.2} ms a look \
             that changes something, {:.2} ms one that does not",
            filled.looks,
            hosts as u64 * u64::from(HOURS + 1),
            filled.changed,
            filled.wrote.1 + filled.idle.1,
            each(filled.wrote),
            each(filled.idle),
        );
        println!("{name}: {}", size());
        runs(&mut store, 10_000);
    }
    listings(&store, hosts);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let hosts = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(500);
    let only = arguments.next();
    let made = arguments
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(MADE);
    if let Some(url) = only.as_deref().filter(|only| only.contains("://")) {
        measure("PostgreSQL", Path::new(url), hosts, made, &|| {
            "as its server says".to_owned()
        });
        return;
    }
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1e6);
    if wanted("sqlite") {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s.db");
        let size = || megabytes(std::fs::metadata(&path).map_or(0, |meta| meta.len()));
        measure("SQLite", &path, hosts, made, &size);
    }
    if wanted("postgres")
        && let Some(server) = Postgres::start()
    {
        let url = server.url("postgres");
        let size = || {
            let sql = "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
                       JOIN pg_namespace n ON n.oid = c.relnamespace
                       WHERE n.nspname = 'assay' AND c.relkind = 'r'";
            megabytes(server.sql("postgres", sql).trim().parse().unwrap_or(0))
        };
        measure("PostgreSQL", &url, hosts, made, &size);
    }
}
