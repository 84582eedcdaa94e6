//! A process is killed at every single call to the machine while it changes real objects and rolls them back. Recovery
//! must restore the original state in all cases, even if recovery is killed at every step.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod attributes;
#[path = "../common/mod.rs"]
mod common;
mod driver;
mod kept;
mod new_file;

use assay_changes::{ChangeError, Made, Switch};
use assay_host::{Host as _, Limits, LiveHost, ProcessId};
use assay_model::change::{ConfigLanguage, Setting};
use attributes::{adorn, attributes};
use common::{LoopDevice, image, processes_with, sh};
use driver::{DIR, Scenario, everywhere, journal, killed, left, recover, rounds};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Sets and restores a value, as a trial does.
fn toggle(switch: &Switch<'_>, value: &str) -> Result<(), ChangeError> {
    for _ in 0..rounds() {
        assert_eq!(switch.set(Some(value))?, value);
        switch.restore()?;
    }
    assert_eq!(switch.set(Some(value))?, value);
    assert_eq!(switch.read()?, value);
    Ok(())
}

#[test]
fn attack_queue() {
    fn device(dir: &Path) -> String {
        fs::read_to_string(dir.join("device")).unwrap()
    }
    everywhere(&Scenario {
        name: "attack_queue",
        tools: false,
        unprivileged: false,
        traced: false,
        prepare: |dir| {
            image(&dir.join("image"));
            let device = LoopDevice::new(&dir.join("image"));
            fs::write(dir.join("device"), &device.0).unwrap();
            let queue = format!("/sys/block/{}/queue", device.name());
            // A scheduler with a setting that differs from its default.
            fs::write(format!("{queue}/scheduler"), "mq-deadline").unwrap();
            fs::write(format!("{queue}/iosched/fifo_batch"), "7").unwrap();
            fs::write(format!("{queue}/nr_requests"), "33").unwrap();
            Some(device)
        },
        look: |dir| {
            let device = device(dir);
            let queue = format!("/sys/block/{}/queue", &device["/dev/".len()..]);
            let names = [
                "scheduler",
                "read_ahead_kb",
                "nr_requests",
                "iosched/fifo_batch",
            ];
            let read = |name: &str| fs::read_to_string(format!("{queue}/{name}"));
            names
                .map(|name| format!("{name}={:?}", read(name).ok()))
                .join("\n")
        },
        act: |dir, session, host| {
            let setting = |attribute: &str| Setting::Queue {
                device: device(dir),
                attribute: attribute.into(),
            };
            let scheduler = Switch::open(session, host, &setting("scheduler"))?;
            assert_eq!(scheduler.set(Some("none"))?, "none");
            let read_ahead = Switch::open(session, host, &setting("read_ahead_kb"))?;
            toggle(&read_ahead, "512")?;
            drop(read_ahead);
            // The kernel rounds down to pages.
            let read_ahead = Switch::open(session, host, &setting("read_ahead_kb"))?;
            match read_ahead.set(Some("1030")) {
                Err(ChangeError::ReadBack { found, .. }) => {
                    assert!(found.parse::<u64>().unwrap() < 1030)
                }
                Err(other) => return Err(other),
                Ok(read) => panic!("{read}"),
            }
            Ok(())
        },
    });
}

#[test]
fn attack_sysctl() {
    everywhere(&Scenario {
        name: "attack_sysctl",
        tools: false,
        unprivileged: false,
        traced: true,
        prepare: |_| None,
        look: |_| {
            let read = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
            format!("{:?} {:?}", read("tcp_rmem"), read("ip_forward"))
        },
        act: |_, session, host| {
            let setting = |key: &str| Setting::Sysctl { key: key.into() };
            let forward = Switch::open(session, host, &setting("net.ipv4.ip_forward"))?;
            toggle(&forward, "1")?;
            let memory = Switch::open(session, host, &setting("net/ipv4/tcp_rmem"))?;
            // Read back with tabs.
            memory.set(Some("4096 65536 1048576"))?;
            Ok(())
        },
    });
}

#[test]
fn attack_config() {
    everywhere(&Scenario {
        name: "attack_config",
        tools: false,
        unprivileged: true,
        traced: true,
        prepare: |dir| {
            fs::write(
                dir.join("service.conf"),
                "# by hand\nworkers = 2 # two\nother = x\n",
            )
            .unwrap();
            fs::copy(dir.join("service.conf"), dir.join("running")).unwrap();
            adorn(&dir.join("service.conf"));
            None
        },
        look: |dir| {
            let mut names: Vec<_> = LiveHost.list(dir).unwrap();
            names.retain(|name| name != "journal");
            let read = |name: &OsStr| fs::read_to_string(dir.join(name)).unwrap();
            let files = names.iter().map(|name| format!("{name:?}: {}", read(name)));
            files
                .chain([attributes(&dir.join("service.conf"))])
                .collect()
        },
        act: |dir, session, host| {
            let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
            let words = |words: &[&str]| {
                words
                    .iter()
                    .map(|&word| word.into())
                    .collect::<Vec<String>>()
            };
            let switch = Switch::open(
                session,
                host,
                &Setting::Config {
                    file: path("service.conf"),
                    language: ConfigLanguage::KeyValue,
                    section: Vec::new(),
                    key: "workers".into(),
                    validate: words(&["sh", "-c", "! grep -q bad \"$1\"", "sh", "{file}"]),
                    // The service "reads" its file, and cannot start with 13 workers.
                    reload: words(&[
                        "sh",
                        "-c",
                        "! grep -q 13 \"$1\" && cp \"$1\" \"$2\"",
                        "sh",
                        &path("service.conf"),
                        &path("running"),
                    ]),
                },
            )?;
            toggle(&switch, "8")?;
            for value in ["bad", "13"] {
                match switch.set(Some(value)) {
                    Err(ChangeError::Command { .. }) => {}
                    Err(other) => return Err(other),
                    Ok(read) => panic!("{read}"),
                }
            }
            switch.set(None)?;
            Ok(())
        },
    });
}

/// File, language, section, key, value to set, contents.
type InFile = (
    &'static str,
    ConfigLanguage,
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
);

/// One setting in a file of each language.
const FILES: [InFile; 8] = [
    (
        "sshd_config",
        ConfigLanguage::Ssh,
        &[],
        "UseDNS",
        "yes",
        "# ours\nUseDNS no # slow\nMatch User bob\n  X11Forwarding no\n",
    ),
    (
        "nginx.conf",
        ConfigLanguage::Nginx,
        &["http"],
        "keepalive_timeout",
        "5",
        "events {}\nhttp {\n  keepalive_timeout 65; # s\n}\n",
    ),
    (
        "mpm.load",
        ConfigLanguage::Apache,
        &[],
        "LoadModule",
        "mpm_event_module /m/event.so",
        "# one of three\nLoadModule mpm_prefork_module /m/prefork.so\n",
    ),
    (
        "main.cf",
        ConfigLanguage::Postfix,
        &[],
        "smtp_host_lookup",
        "native",
        "a = b\nsmtp_host_lookup = dns\n",
    ),
    (
        "dovecot.conf",
        ConfigLanguage::Dovecot,
        &["service imap"],
        "process_limit",
        "7",
        "service imap {\n  process_limit = 1024\n}\n",
    ),
    (
        "nsswitch.conf",
        ConfigLanguage::Nsswitch,
        &[],
        "hosts",
        "files",
        "passwd: files\nhosts:  files dns\n",
    ),
    (
        "workers.conf",
        ConfigLanguage::KeyValue,
        &[],
        "workers",
        "8",
        "workers=2\n",
    ),
    (
        "my.ini",
        ConfigLanguage::Ini,
        &["mysqld"],
        "sync_binlog",
        "0",
        "[client]\nsync_binlog = 3\n[mysqld]\nsync_binlog = 1\n",
    ),
];

#[test]
fn attack_languages() {
    everywhere(&Scenario {
        name: "attack_languages",
        tools: false,
        unprivileged: true,
        traced: false,
        prepare: |dir| {
            for (name, .., text) in FILES {
                fs::write(dir.join(name), text).unwrap();
                adorn(&dir.join(name));
            }
            None
        },
        look: |dir| {
            let told = |name: &str| {
                let text = fs::read_to_string(dir.join(name)).unwrap();
                format!("{name}: {} {text}\n", attributes(&dir.join(name)))
            };
            let count = LiveHost.list(dir).unwrap().len();
            FILES.map(|(name, ..)| told(name)).concat() + &count.to_string()
        },
        act: |dir, session, host| {
            for (name, language, section, key, value, _) in FILES {
                let switch = Switch::open(
                    session,
                    host,
                    &Setting::Config {
                        file: dir.join(name).to_str().unwrap().into(),
                        language,
                        section: section.iter().map(|&word| word.into()).collect(),
                        key: key.into(),
                        validate: Vec::new(),
                        reload: Vec::new(),
                    },
                )?;
                for _ in 1..rounds() {
                    switch.set(Some(value))?;
                    switch.restore()?;
                }
                switch.set(Some(value))?;
                // The last change of each is rolled back with the session.
                std::mem::forget(switch);
            }
            Ok(())
        },
    });
}

/// A tool that answers like `zfs` and stores its properties in files, so that a kill leaves a real state.
const ZFS: &str = r#"#!/bin/sh
store="$ASSAY_TEST_DIR/pool"
case "$1" in
get)
    for name in $(echo "$5" | tr , ' '); do
        case "$name" in
        type) printf 'type\tfilesystem\t-\n' ;;
        *) if [ -e "$store/$name" ]; then printf '%s\t%s\tlocal\n' "$name" "$(cat "$store/$name")"
           else printf '%s\tlz4\tinherited from tank\n' "$name"; fi ;;
        esac
    done ;;
set) printf %s "${2#*=}" >"$store/.new" && mv "$store/.new" "$store/${2%%=*}" ;;
inherit) rm -f "$store/$2" ;;
*) echo "zfs: $*" >&2; exit 2 ;;
esac
"#;

#[test]
fn attack_zfs() {
    everywhere(&Scenario {
        name: "attack_zfs",
        tools: true,
        unprivileged: true,
        traced: false,
        prepare: |dir| {
            for folder in ["bin", "pool"] {
                fs::create_dir(dir.join(folder)).unwrap();
            }
            fs::write(dir.join("bin/zfs"), ZFS).unwrap();
            fs::set_permissions(dir.join("bin/zfs"), fs::Permissions::from_mode(0o755)).unwrap();
            fs::write(dir.join("pool/recordsize"), "16384").unwrap();
            None
        },
        look: |dir| {
            let names = LiveHost.list(&dir.join("pool")).unwrap();
            let read = |name: &OsStr| fs::read_to_string(dir.join("pool").join(name)).unwrap();
            let shown = names.iter().filter(|name| *name != ".new");
            shown
                .map(|name| format!("{name:?}={} ", read(name)))
                .collect()
        },
        act: |_, session, host| {
            let property = |name: &str| Setting::ZfsProperty {
                dataset: "tank/a".into(),
                property: name.into(),
            };
            let inherited = Switch::open(session, host, &property("compression"))?;
            toggle(&inherited, "zstd")?;
            let local = Switch::open(session, host, &property("recordsize"))?;
            toggle(&local, "131072")
        },
    });
}

#[test]
fn attack_mount() {
    everywhere(&Scenario {
        name: "attack_mount",
        tools: false,
        unprivileged: false,
        traced: false,
        prepare: |dir| {
            image(&dir.join("image"));
            let device = LoopDevice::new(&dir.join("image"));
            fs::create_dir(dir.join("a b")).unwrap();
            let mountpoint = dir.join("a b");
            let options = "nosuid,noatime,commit=7";
            sh(&[
                "mount",
                "-o",
                options,
                &device.0,
                mountpoint.to_str().unwrap(),
            ]);
            Some(device)
        },
        look: |_| {
            let table = fs::read_to_string("/proc/self/mounts").unwrap();
            let mut lines = table.lines().filter(|line| line.contains("a\\040b"));
            lines.next().unwrap().to_owned()
        },
        act: |dir, session, host| {
            let switch = Switch::open(
                session,
                host,
                &Setting::MountOption {
                    mountpoint: dir.join("a b").to_str().unwrap().into(),
                    choices: ["relatime", "noatime", ""].map(str::to_owned).to_vec(),
                },
            )?;
            toggle(&switch, "relatime")?;
            assert_eq!(switch.set(Some(""))?, "strictatime");
            Ok(())
        },
    });
}

#[test]
fn attack_commands() {
    everywhere(&Scenario {
        name: "attack_commands",
        tools: false,
        unprivileged: true,
        traced: true,
        prepare: |dir| {
            fs::write(dir.join("value"), "old").unwrap();
            None
        },
        look: |dir| fs::read_to_string(dir.join("value")).unwrap(),
        act: |dir, session, host| {
            let file = dir.join("value").to_str().unwrap().to_owned();
            let words = |words: &[&str]| {
                words
                    .iter()
                    .map(|&word| word.into())
                    .collect::<Vec<String>>()
            };
            // If it is interrupted, the value is neither the old nor the new one.
            let write = "echo half >\"$2\"; printf %s \"$1\" >\"$2\"";
            let switch = Switch::open(
                session,
                host,
                &Setting::Command {
                    read: words(&["cat", &file]),
                    apply: words(&["sh", "-c", write, "sh", "{value}", &file]),
                    undo: words(&["sh", "-c", write, "sh", "{value}", &file]),
                },
            )?;
            toggle(&switch, "new $(value)")
        },
    });
}

#[test]
fn attack_made() {
    everywhere(&Scenario {
        name: "attack_made",
        tools: false,
        unprivileged: false,
        traced: false,
        prepare: |dir| {
            image(&dir.join("template"));
            None
        },
        look: |dir| {
            let text = dir.to_str().unwrap();
            let mut names = LiveHost.list(dir).unwrap();
            names.retain(|name| name != "journal");
            let loops = sh(&["losetup", "--list", "--noheadings", "--output", "BACK-FILE"]);
            let loops = loops.lines().filter(|line| line.contains(text)).count();
            let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
            let mounts = mounts.lines().filter(|line| line.contains(text)).count();
            let spaces = LiveHost.list(Path::new("/run/netns")).unwrap_or_default();
            let tail = format!("{text}/template");
            format!(
                "{names:?} {loops} {mounts} {:?} {}",
                spaces
                    .iter()
                    .filter(|name| name.to_string_lossy().contains("assay-"))
                    .count(),
                processes_with(&tail)
            )
        },
        act: |dir, session, host| {
            let template = dir.join("template");
            let run = |argv: &[&OsStr]| {
                let output = host.run(argv, Limits::default())?;
                assert!(output.success(), "{argv:?}: {}", output.complaint());
                Ok::<_, ChangeError>(())
            };
            let folder = dir.join(session.name("folder"));
            session.made(&Made::Directory(folder.clone()))?;
            run(&["mkdir".as_ref(), folder.as_ref()])?;

            let file = dir.join(session.name("image with a blank"));
            session.made(&Made::File(file.clone()))?;
            run(&["cp".as_ref(), template.as_ref(), file.as_ref()])?;

            let backing = file.clone();
            session.made(&Made::Loop { backing })?;
            run(&["losetup".as_ref(), "--find".as_ref(), file.as_ref()])?;
            let device = sh(&["losetup", "--associated", file.to_str().unwrap()]);
            let device = device.split(':').next().unwrap();

            let mountpoint = folder.join("on it");
            run(&["mkdir".as_ref(), mountpoint.as_ref()])?;
            let mount = session.made(&Made::Mount {
                mountpoint: mountpoint.clone(),
            })?;
            run(&["mount".as_ref(), device.as_ref(), mountpoint.as_ref()])?;

            let name = format!("{}-net", session.tag());
            session.made(&Made::Netns { name: name.clone() })?;
            run(&[
                "ip".as_ref(),
                "netns".as_ref(),
                "add".as_ref(),
                name.as_ref(),
            ])?;

            // This process uses the mount, so it must end before the mount can be unmounted.

            let mut tail = Command::new("tail");
            tail.arg("-f").arg(&template).current_dir(&mountpoint);
            let mut tail = tail.stdout(Stdio::null()).spawn().unwrap();
            let process = ProcessId::of(tail.id()).unwrap();
            let reaper = std::thread::spawn(move || tail.wait());
            session.made(&Made::from(process))?;

            // Some objects are removed in between, the others at the end.
            host.kill(process)?;
            reaper.join().unwrap().unwrap();
            session.unmake(host, mount)
        },
    });
}

/// A user's command is interrupted together with assay. The command must not continue during a recovery.
#[test]
fn in_the_middle_of_a_command() {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|&word| word.into())
            .collect::<Vec<String>>()
    };
    let dir = match std::env::var_os(DIR) {
        Some(dir) if std::env::var_os("ASSAY_TEST_MIDDLE").is_some() => dir,
        _ => {
            let place = tempfile::tempdir().unwrap();
            let file = place.path().join("value");
            fs::write(&file, "old").unwrap();
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "in_the_middle_of_a_command", "--nocapture"])
                .env("ASSAY_TEST_MIDDLE", "1")
                .env(DIR, place.path())
                .stdout(Stdio::null())
                .status();
            assert!(killed(status.unwrap()));
            assert_eq!(fs::read_to_string(&file).unwrap(), "half");
            recover(place.path(), &LiveHost);
            // Enough time for a command that is still running.
            std::thread::sleep(std::time::Duration::from_millis(400));
            assert_eq!(fs::read_to_string(&file).unwrap(), "old");
            assert_eq!(left(place.path()), 0);
            return;
        }
    };
    let dir = Path::new(&dir);
    let file = dir.join("value").to_str().unwrap().to_owned();
    let fatal = "printf half >\"$2\"; kill -9 $PPID; sleep 0.2; printf %s \"$1\" >\"$2\"";
    let session = journal(dir).begin("test", "x").unwrap();
    let setting = Setting::Command {
        read: words(&["cat", &file]),
        apply: words(&["sh", "-c", fatal, "sh", "{value}", &file]),
        undo: words(&[
            "sh",
            "-c",
            "printf %s \"$1\" >\"$2\"",
            "sh",
            "{value}",
            &file,
        ]),
    };
    let switch = Switch::open(&session, &LiveHost, &setting).unwrap();
    switch.set(Some("new")).unwrap();
}
