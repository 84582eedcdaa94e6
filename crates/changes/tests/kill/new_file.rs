//! A new file in new directories, with the service's check and reload.

use crate::driver::{Scenario, everywhere, journal, rounds};
use assay_changes::{ChangeError, Foreign, Switch};
use assay_host::{Host as _, LiveHost};
use assay_model::change::Setting;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const TEXT: &str = "# made\nworkers = 8\n";

/// Returns all paths below a directory with their modes and texts, except the journal.
fn tree(dir: &Path) -> String {
    let mut all = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for name in LiveHost.list(&dir).unwrap() {
            if name == "journal" {
                continue;
            }
            let path = dir.join(&name);
            let found = fs::symlink_metadata(&path).unwrap();
            let text = match found.is_dir() {
                true => {
                    open.push(path.clone());
                    String::new()
                }
                false => fs::read_to_string(&path).unwrap(),
            };
            let mode = found.permissions().mode();
            all.push(format!("{} {mode:o} {text:?}", path.display()));
        }
    }
    all.sort();
    all.join("\n")
}

fn setting(dir: &Path) -> Setting {
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let words = |words: &[&str]| words.iter().map(|&word| word.into()).collect();
    Setting::NewFile {
        file: path("etc/service.d/more/90-own.conf"),
        validate: words(&["sh", "-c", "! grep -q bad \"$1\"", "sh", "{file}"]),
        // The service "reads" its file, and cannot start with 13 workers.
        reload: words(&[
            "sh",
            "-c",
            "rm -f \"$2\"; ! [ -e \"$1\" ] || { ! grep -q 13 \"$1\" && cp \"$1\" \"$2\"; }",
            "sh",
            &path("etc/service.d/more/90-own.conf"),
            &path("running"),
        ]),
    }
}

fn prepare(dir: &Path) {
    fs::create_dir(dir.join("etc")).unwrap();
    fs::write(dir.join("etc/service.conf"), "include service.d\n").unwrap();
}

#[test]
fn attack_new_file() {
    everywhere(&Scenario {
        name: "new_file::attack_new_file",
        tools: false,
        unprivileged: true,
        traced: true,
        prepare: |dir| {
            prepare(dir);
            None
        },
        look: tree,
        act: |dir, session, host| {
            let switch = Switch::open(session, host, &setting(dir))?;
            for _ in 0..rounds() {
                switch.set(Some(TEXT))?;
                switch.restore()?;
            }
            for text in ["bad\n", "13\n"] {
                match switch.set(Some(text)) {
                    Err(ChangeError::Command { .. }) => {}
                    Err(other) => return Err(other),
                    Ok(read) => panic!("{read}"),
                }
            }
            switch.set(Some(TEXT))?;
            Ok(())
        },
    });
}

#[test]
fn attack_kept_new_file() {
    everywhere(&Scenario {
        name: "new_file::attack_kept_new_file",
        tools: false,
        unprivileged: true,
        traced: true,
        prepare: |dir| {
            prepare(dir);
            None
        },
        look: tree,
        act: |dir, session, host| {
            let switch = Switch::open(session, host, &setting(dir))?;
            switch.set(Some(TEXT))?;
            switch.leave();
            session.put_by()?;
            let journal = journal(dir);
            let back = journal.take_back_kept(session.uid(), host, Foreign::Leave)?;
            assert_eq!(back.len(), 1, "{back:?}");
            Ok(())
        },
    });
}
