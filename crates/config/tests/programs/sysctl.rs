//! Compares the order of the files with `systemd-analyze cat-config`, and the values with `sysctl --dry-run`.

use super::{ask, read, stdout};
use assay_config::effective::{Program, ScopeId};
use std::path::PathBuf;

fn write(root: &std::path::Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => std::fs::write(path, text).unwrap(),
        }
    }
}

fn cat_config(root: &std::path::Path, name: &str) -> Option<Vec<PathBuf>> {
    let root_option = format!("--root={}", root.display());
    let output = ask(&["systemd-analyze", "cat-config", &root_option, name])?;
    let says = stdout(&output);
    let plain = says.lines().filter_map(|line| line.strip_prefix("# /"));
    Some(
        plain
            .map(|path| PathBuf::from(format!("/{path}")))
            .collect(),
    )
}

#[test]
fn sysctl_d() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(
        root,
        &[
            ("usr/lib/sysctl.d/10-a.conf", "vm.swappiness=1\n"),
            ("usr/lib/sysctl.d/50-b.conf", "vm.dirty_ratio=2\n"),
            ("etc/sysctl.d/50-b.conf", "vm.dirty_ratio = 3 \n;x=y\n"),
            ("run/sysctl.d/50-b.conf", "vm.dirty_ratio=4\n"),
            ("run/sysctl.d/60-c.conf", "-vm/swappiness=5\n"),
            ("usr/lib/sysctl.d/70-d.conf", "vm.swappiness=6\n"),
            ("etc/sysctl.d/70-d.conf", "-> /dev/null"),
            ("etc/sysctl.d/no.txt", "vm.swappiness=7\n"),
            (
                "usr/local/lib/sysctl.d/55-e.conf",
                "net/ipv4/conf/eth0.1/rp_filter = 1\r\n",
            ),
        ],
    );
    let main = root.join("etc/sysctl.conf");
    let ours = read(Program::Sysctl, &main);
    assert!(ours.problems.is_empty(), "{:?}", ours.problems);
    let said = |key: &str| {
        let said = ours.value(ScopeId::ROOT, key).unwrap();
        (
            said.text(),
            said.place.path.strip_prefix(root).unwrap().to_owned(),
            said.place.line,
        )
    };
    assert_eq!(
        said("vm.swappiness"),
        ("5".into(), "run/sysctl.d/60-c.conf".into(), 1)
    );
    assert_eq!(
        said("vm/dirty_ratio"),
        ("3".into(), "etc/sysctl.d/50-b.conf".into(), 1)
    );
    assert_eq!(said("net.ipv4.conf.eth0/1.rp_filter").0, "1");
    assert_eq!(ours.overridden(ScopeId::ROOT, "vm.swappiness").len(), 1);
    // The masked file is read too, as an empty file.
    let mine: Vec<PathBuf> = ours.files.clone();
    let Some(theirs) = cat_config(root, "sysctl.d") else {
        return;
    };
    let mine: Vec<PathBuf> = mine.into_iter().filter(|path| !path.is_symlink()).collect();
    let theirs: Vec<PathBuf> = theirs
        .into_iter()
        .filter(|path| !path.is_symlink())
        .collect();
    assert_eq!(mine, theirs);
}

#[test]
fn systemd() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(
        root,
        &[
            (
                "etc/systemd/system.conf",
                "[Manager]\n#LogLevel=info\nLogLevel=err\nX=\n",
            ),
            (
                "usr/lib/systemd/system.conf.d/20-b.conf",
                "[Manager]\nLogLevel=debug\n",
            ),
            (
                "etc/systemd/system.conf.d/10-a.conf",
                "[Manager]\nLogLevel=crit\nX=1\n[Other]\nX=2\n",
            ),
            (
                "run/systemd/system.conf.d/20-b.conf",
                "[Manager]\nLogLevel=emerg\n",
            ),
        ],
    );
    let ours = read(Program::Systemd, &root.join("etc/systemd/system.conf"));
    let manager = ours.find(&["Manager"])[0];
    assert_eq!(ours.value(manager, "LogLevel").unwrap().text(), "emerg");
    assert_eq!(ours.value(manager, "X").unwrap().text(), "1");
    assert_eq!(ours.overridden(manager, "LogLevel").len(), 2);
    let Some(theirs) = cat_config(root, "systemd/system.conf") else {
        return;
    };
    assert_eq!(ours.files, theirs);
}

#[test]
fn lines_of_sysctl() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("etc/sysctl.conf");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = "# a\n  vm.swappiness  =  10 \n;vm.dirty_ratio=1\nvm/dirty_ratio=20\n\n\
                -vm.overcommit_memory = 1\nkernel.core_pattern = |/a b=c %p\nvm.swappiness=30";
    std::fs::write(&file, text).unwrap();
    let Some(output) = ask(&["sysctl", "--dry-run", "--load", file.to_str().unwrap()]) else {
        return;
    };
    let ours = read(Program::Sysctl, &file);
    let says = stdout(&output);
    let theirs: std::collections::BTreeMap<&str, &str> = says
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .collect();
    assert_eq!(theirs.len(), 4, "{says}");
    for (key, value) in theirs {
        assert_eq!(
            ours.value(ScopeId::ROOT, key).unwrap().text(),
            value,
            "{key}"
        );
    }
}
