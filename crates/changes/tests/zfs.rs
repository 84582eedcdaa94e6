//! ZFS properties on a machine in memory that answers like `zfs` of OpenZFS 2.1. The lines have the format of `zfs get
//! -Hp -o property,value,source`, with the same names of sources and the same error messages.

mod common;

use assay_changes::{ChangeError, ChangeSession, Foreign, Journal, Switch, ValueOrigin, fixes};
use assay_host::{CommandOutput, Recorded};
use assay_model::change::Setting;
use common::{Twist, Twisted};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A pool `tank` with a file system `a` and a volume `vol`.
struct Zfs {
    /// Value and source of each dataset's properties.
    properties: Mutex<BTreeMap<(String, String), (String, String)>>,
    /// Commands that changed something.
    log: Mutex<Vec<String>>,
}

impl Zfs {
    fn new() -> Twisted<Self> {
        let mut properties = BTreeMap::new();
        for (dataset, property, value, source) in [
            ("tank/a", "type", "filesystem", "-"),
            ("tank/a", "compression", "lz4", "inherited from tank"),
            ("tank/a", "recordsize", "131072", "default"),
            ("tank/a", "atime", "off", "local"),
            ("tank/a", "sync", "standard", "default"),
            ("tank/a", "primarycache", "metadata", "received"),
            ("tank/a", "exec", "off", "temporary"),
            ("tank/a", "used", "98304", "-"),
            ("tank/vol", "type", "volume", "-"),
            ("tank/vol", "volblocksize", "8192", "default"),
            ("tank/vol", "volsize", "1073741824", "local"),
            ("tank/vol", "atime", "-", "-"),
        ] {
            let key = (dataset.to_owned(), property.to_owned());
            properties.insert(key, (value.to_owned(), source.to_owned()));
        }
        Twisted::new(Self {
            properties: Mutex::new(properties),
            log: Mutex::default(),
        })
    }

    fn zfs(&self, words: &[&str]) -> CommandOutput {
        let fail = |text: String| CommandOutput {
            status: 1,
            stderr: text.into_bytes(),
            ..CommandOutput::default()
        };
        let mut properties = self.properties.lock().unwrap();
        let mut put = |dataset: &str, property: &str, value: &str, source: &str| {
            let key = (dataset.to_owned(), property.to_owned());
            properties.insert(key, (value.to_owned(), source.to_owned()));
            CommandOutput::default()
        };
        if words[0] != "get" {
            self.log.lock().unwrap().push(words.join(" "));
        }
        match words {
            ["get", "-Hp", "-o", "property,value,source", names, dataset] => {
                let mut text = String::new();
                for name in names.split(',') {
                    let key = ((*dataset).to_owned(), name.to_owned());
                    match properties.get(&key) {
                        Some((value, source)) => text += &format!("{name}\t{value}\t{source}\n"),
                        None if *dataset == "tank/none" => {
                            return fail(format!(
                                "cannot open '{dataset}': dataset does not exist\n"
                            ));
                        }
                        None => {
                            return fail(format!("bad property list: invalid property '{name}'\n"));
                        }
                    }
                }
                CommandOutput {
                    stdout: text.into_bytes(),
                    ..CommandOutput::default()
                }
            }
            ["set", "compression=bogus", dataset] => fail(format!(
                "cannot set property for '{dataset}': 'compression' must be one of 'on | off | lz4'\n"
            )),
            // The module accepts the setting without an effect.
            ["set", "sync=always", _] => CommandOutput::default(),
            ["set", pair, dataset] => {
                let (name, value) = pair.split_once('=').unwrap();
                let value = if value == "1M" { "1048576" } else { value };
                put(dataset, name, value, "local")
            }
            ["inherit", "-S", "primarycache", dataset] => {
                put(dataset, "primarycache", "metadata", "received")
            }
            ["inherit", "compression", dataset] => {
                put(dataset, "compression", "lz4", "inherited from tank")
            }
            ["inherit", "sync", dataset] => put(dataset, "sync", "standard", "default"),
            ["inherit", "recordsize", dataset] => put(dataset, "recordsize", "131072", "default"),
            other => panic!("{other:?}"),
        }
    }
}

/// Answers to commands, as `zfs` would give them.
impl Twist for Zfs {
    fn run(&self, argv: &[&str]) -> CommandOutput {
        assert_eq!(argv[0], "zfs");
        self.zfs(&argv[1..])
    }
}

fn property(dataset: &str, property: &str) -> Setting {
    Setting::ZfsProperty {
        dataset: dataset.into(),
        property: property.into(),
    }
}

/// Sets a value and ends the session. Returns the commands that changed something.
fn commands(name: &str, value: Option<&str>, reads: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let host = Zfs::new();
    let before = host.twist.properties.lock().unwrap().clone();
    let session = journal.begin("trial", "tank/a").unwrap();
    let switch = Switch::open(&session, &host, &property("tank/a", name)).unwrap();
    assert_eq!(switch.set(value).unwrap(), reads);
    drop(switch);
    assert_eq!(session.close(&host).unwrap(), []);
    assert_eq!(*host.twist.properties.lock().unwrap(), before);
    host.twist.log.into_inner().unwrap()
}

#[test]
fn each_source_is_restored_in_its_own_way() {
    assert_eq!(
        commands("compression", Some("zstd-3"), "zstd-3"),
        [
            "set compression=zstd-3 tank/a",
            "inherit compression tank/a"
        ]
    );
    assert_eq!(
        commands("recordsize", Some("1M"), "1048576"),
        ["set recordsize=1M tank/a", "inherit recordsize tank/a"]
    );
    assert_eq!(
        commands("atime", Some("on"), "on"),
        ["set atime=on tank/a", "set atime=off tank/a"]
    );
    assert_eq!(
        commands("primarycache", Some("all"), "all"),
        [
            "set primarycache=all tank/a",
            "inherit -S primarycache tank/a"
        ]
    );
    // Setting the inherited value is still a change: later changes of the parent no longer apply.
    assert_eq!(
        commands("compression", Some("lz4"), "lz4"),
        ["set compression=lz4 tank/a", "inherit compression tank/a"]
    );
}

#[test]
fn what_cannot_be_changed_is_refused_before_anything_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let host = Zfs::new();
    let session = journal.begin("trial", "tank").unwrap();
    for (dataset, name, reason) in [
        (
            "tank/vol",
            "volblocksize",
            "settled when the volume was created",
        ),
        ("tank/vol", "atime", "a volume has no such property"),
        ("tank/vol", "volsize", "destroys data"),
        ("tank/a", "used", "is read-only in ZFS"),
        ("tank/a", "exec", "for this mount alone"),
        ("tank/a", "bogus", "invalid property 'bogus'"),
        ("tank/none", "compression", "dataset does not exist"),
        (
            "tank/a@snap",
            "compression",
            "not the name of a file system",
        ),
        ("-r", "compression", "not the name of a file system"),
        ("tank/a", "-r", "not the name of a property"),
    ] {
        let told = Switch::open(&session, &host, &property(dataset, name))
            .err()
            .unwrap();
        assert!(told.to_string().contains(reason), "{told}");
    }
    assert!(host.twist.log.lock().unwrap().is_empty());
}

#[test]
fn a_refused_value_and_one_without_effect_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let host = Zfs::new();
    let session = journal.begin("trial", "tank").unwrap();
    let compression = Switch::open(&session, &host, &property("tank/a", "compression")).unwrap();
    assert_eq!(compression.original().origin, ValueOrigin::Absent);
    assert_eq!(compression.original().shown, "lz4 (inherited from tank)");
    let told = compression.set(Some("bogus")).unwrap_err().to_string();
    insta::assert_snapshot!(told, @"compression of tank/a: zfs set compression=bogus tank/a: exit status 1: cannot set property for 'tank/a': 'compression' must be one of 'on | off | lz4'");
    let sync = Switch::open(&session, &host, &property("tank/a", "sync")).unwrap();
    let told = sync.set(Some("always")).unwrap_err();
    assert!(matches!(told, ChangeError::NoEffect { .. }), "{told}");
    assert_eq!(
        sync.set(Some("disabled")).unwrap(),
        "disabled",
        "it may be measured"
    );
}

#[test]
fn sync_disabled_is_never_kept() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let host = Zfs::new();
    let session = journal.begin("trial", "tank").unwrap();
    let sync = Switch::open(&session, &host, &property("tank/a", "sync")).unwrap();
    insta::assert_snapshot!(sync.keep(Some("disabled")).unwrap_err(), @"sync of tank/a: disabled is never kept: writes that were acknowledged as durable would be lost in a power cut");
    assert!(host.twist.log.lock().unwrap().is_empty());
    let atime = Switch::open(&session, &host, &property("tank/a", "atime")).unwrap();
    atime.keep(Some("on")).unwrap();
    assert_eq!(session.close(&host).unwrap(), []);
    assert_eq!(*host.twist.log.lock().unwrap(), ["set atime=on tank/a"]);
    assert_eq!(journal.recover(&host, Foreign::Leave).unwrap(), []);
}

/// The pool as the facts and the setting read it.
struct Pool(Zfs);

impl Twist for Pool {
    fn run(&self, argv: &[&str]) -> CommandOutput {
        let answer = |stdout: String| CommandOutput {
            stdout: stdout.into_bytes(),
            ..CommandOutput::default()
        };
        match argv {
            ["zpool", "get", "-Hp", ..] => answer("tank\thealth\tONLINE\t-\n".to_owned()),
            ["zfs", "get", "-Hp", "-t", ..] => {
                let all = self.0.properties.lock().unwrap();
                let lines = all.iter().map(|((dataset, property), (value, source))| {
                    format!("{dataset}\t{property}\t{value}\t{source}\n")
                });
                answer(lines.collect())
            }
            ["zfs", rest @ ..] if rest != ["version"] => self.0.zfs(rest),
            _ => CommandOutput {
                status: 1,
                ..CommandOutput::default()
            },
        }
    }
}

/// A fix sets the property where it was set, and its undo restores the value.
#[test]
fn a_fix_of_a_property_is_kept_and_undone() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    // Only programs that answered are installed.
    let rest = Recorded::new()
        .command(&["zpool"], "")
        .command(&["zfs"], "");
    let host = Twisted {
        twist: Pool(Zfs::new().twist),
        rest,
    };
    let sync = ("tank/a".to_owned(), "sync".to_owned());
    let put = |value: &str| {
        let local = (value.to_owned(), "local".to_owned());
        let mut all = host.twist.0.properties.lock().unwrap();
        all.insert(sync.clone(), local)
    };
    put("disabled");
    let catalogue = assay_advice::Catalogue::builtin().unwrap();
    let (pages, page) = (catalogue.all(), catalogue.get("zfs-sync-disabled").unwrap());
    let planned = fixes::plan(&host, &pages, page).unwrap();
    let [change] = &planned.properties[..] else {
        panic!("{:?}", planned.properties)
    };
    let words = [
        &change.dataset,
        &change.property,
        &change.before,
        &change.after,
    ];
    assert_eq!(words, ["tank/a", "sync", "disabled", "standard"]);
    let carry_out = || {
        let stand_by = |_: &str| panic!("nobody is locked out");
        let outside = |_: &ChangeSession| panic!("nobody is locked out");
        let mut wish = fixes::Wish {
            host: &host,
            journal: &journal,
            pages: &pages,
            stand_by: &stand_by,
            outside: &outside,
            confirm: &mut |_, _| panic!("nobody is locked out"),
            cancelled: &|| false,
        };
        fixes::carry_out(&planned, &mut wish)
    };
    let Ok(fixes::FixOutcome::Kept(uid)) = carry_out() else {
        panic!("it is not kept")
    };
    let taken = journal.take_back_kept(&uid, &host, Foreign::Leave).unwrap();
    assert_eq!(taken.len(), 1);
    let log = host.twist.0.log.lock().unwrap().clone();
    assert_eq!(
        log,
        ["set sync=standard tank/a", "set sync=disabled tank/a"]
    );
    // Somebody else set it since the plan was made.
    put("always");
    assert!(matches!(
        carry_out(),
        Err(fixes::FixError::Meanwhile { .. })
    ));
}
