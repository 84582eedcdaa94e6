//! Compares this crate with `testparm -sv`.

use super::{Dice, ask, read, stdout};
use assay_config::effective::{Effective, Program, ScopeId, Trouble};
use std::collections::BTreeMap;
use std::path::Path;

/// Settings by section. All names are in lower case, as testparm prints them.
type Sections = BTreeMap<String, BTreeMap<String, String>>;

fn testparm(main: &Path) -> Option<Result<Sections, String>> {
    let output = ask(&["testparm", "-sv", "--suppress-prompt", main.to_str()?])?;
    if !output.status.success() {
        return Some(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let mut found = Sections::new();
    let mut section = String::new();
    for line in stdout(&output).lines() {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name.to_lowercase();
            found.entry(section.clone()).or_default();
        } else if let Some((key, value)) = line.split_once('=') {
            let settings = found.entry(section.clone()).or_default();
            settings.insert(key.trim().to_owned(), value.trim().to_lowercase());
        }
    }
    Some(Ok(found))
}

/// Global settings to compare. `OF_SHARES` has the settings of shares, with their defaults.
const SWITCHES: [&str; 2] = ["null passwords", "lanman auth"];
const OF_SHARES: [(&str, &str); 2] = [("guest ok", "no"), ("read only", "yes")];
const NAMES: [&str; 16] = [
    "server signing",
    "Server\t Signing",
    "serversigning",
    "server min protocol",
    "MIN protocol",
    "null passwords",
    "NullPasswords",
    "lanman  auth",
    "guest ok",
    "public",
    "Guest OK",
    "read only",
    "writable",
    "write ok",
    "WriteAble",
    "path",
];

fn pick<'a>(dice: &mut Dice, of: &[&'a str]) -> &'a str {
    dice.one::<&str>(of)
}

fn value_for(name: &str, dice: &mut Dice) -> &'static str {
    let plain = name.to_lowercase().replace([' ', '\t'], "");
    match plain.as_str() {
        "serversigning" => pick(
            dice,
            &[
                "no",
                "False",
                "0",
                "OFF",
                "disabled",
                "auto",
                "enabled",
                "1",
                "yes",
                "if_required",
                "desired",
                "required",
                "mandatory",
                "forced",
                "default",
            ],
        ),
        "serverminprotocol" | "minprotocol" => {
            pick(dice, &["NT1", "core", "lanman1", "SMB2", "smb2_10", "SMB3"])
        }
        "path" => pick(dice, &["/tmp", "/", "/var/tmp"]),
        _ => pick(dice, &["yes", "No", "1", "0", "TRUE", "false", "On", "off"]),
    }
}

fn lines(dice: &mut Dice, includes: &[&str], dir: &Path) -> String {
    let mut out = String::new();
    for _ in 0..dice.below(12) {
        match dice.below(8) {
            0 => out.push_str(pick(
                dice,
                &[
                    "[global]\n",
                    "[Globals]\n",
                    "[a]\n",
                    "[A]\n",
                    "[b c]\n",
                    "[B  C]\n",
                ],
            )),
            1 => out.push_str(pick(
                dice,
                &["# x \\\n", "  ; server signing = no\n", "\n", "   \t\n"],
            )),
            2 if !includes.is_empty() => {
                let name = pick(dice, includes);
                out.push_str(&format!("  include = {}/{name}\n", dir.display()));
            }
            _ => {
                let name = pick(dice, &NAMES);
                let value = value_for(name, dice);
                let equals = pick(dice, &[" = ", "=", "= \\\n   ", " \\\n =", "  =\t"]);
                let end = pick(dice, &["\n", "  \n", "\r\n", "\\\n\n", " \\ \n \n"]);
                out.push_str(&format!(
                    "{}{name}{equals}{value}{end}",
                    pick(dice, &["", "  ", "\t"])
                ));
            }
        }
    }
    out
}

fn is_true(value: &str) -> bool {
    matches!(value.to_lowercase().as_str(), "yes" | "true" | "on" | "1")
}

fn signing(value: &str) -> &'static str {
    match value.to_lowercase().as_str() {
        "no" | "false" | "0" | "off" | "disabled" => "no",
        "yes" | "true" | "1" | "on" | "enabled" | "auto" | "if_required" => "if_required",
        "desired" => "desired",
        "default" => "default",
        _ => "required",
    }
}

fn compare(ours: &Effective, theirs: &Sections, context: &str) -> usize {
    let global = &theirs["global"];
    let said = |scope: ScopeId, key: &str| {
        ours.value(scope, key)
            .map(assay_config::effective::Setting::text)
    };
    let ours_signing =
        said(ScopeId::ROOT, "server signing").map_or("default", |value| signing(&value));
    assert_eq!(ours_signing, global["server signing"], "{context}");
    let oldest = said(ScopeId::ROOT, "server min protocol").unwrap_or_else(|| "smb2_02".to_owned());
    // SMB2 and SMB3 are other names of 2.10 and 3.11, and testparm prints the first name of a dialect.
    let dialect = |name: &str| match name.to_lowercase().as_str() {
        "smb2_10" => "smb2".to_owned(),
        "smb3_11" => "smb3".to_owned(),
        other => other.to_owned(),
    };
    assert_eq!(
        dialect(&oldest),
        dialect(&global["server min protocol"]),
        "{context}"
    );
    for key in SWITCHES {
        let ours = said(ScopeId::ROOT, key).is_some_and(|value| is_true(&value));
        assert_eq!(ours, is_true(&global[key]), "{key}: {context}");
    }
    let mut compared = 4;
    for (id, scope) in ours.scopes().filter(|(id, _)| *id != ScopeId::ROOT) {
        let name = &scope.head[0];
        let share = &theirs[name.as_str()];
        for (key, default) in OF_SHARES {
            // A share does not take a value of [global] that comes after the share. Values equal to [global]
            // are not printed.
            let Some(mine) = ours.value(id, key).filter(|said| said.scope == id) else {
                continue;
            };
            let printed = share
                .get(key)
                .or(global.get(key))
                .map_or(default, String::as_str);
            assert_eq!(
                is_true(&mine.text()),
                is_true(printed),
                "{name} {key}: {context}"
            );
            compared += 1;
        }
        let path = ours.value(id, "path").filter(|said| said.scope == id);
        if let Some(path) = path {
            assert_eq!(path.text(), share["path"], "{name}: {context}");
            compared += 1;
        }
    }
    compared
}

#[test]
fn attack_random_configurations() {
    let mut compared = 0;
    for seed in 0..8 * assay_testing::attack_factor() {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let names = ["inc.conf", "inc2.conf"];
        let mut context = String::new();
        for (at, name) in names.iter().enumerate() {
            let text = lines(&mut dice, &names[at + 1..], dir.path());
            std::fs::write(dir.path().join(name), &text).unwrap();
            context.push_str(&format!("== {name}\n{text}"));
        }
        let main = dir.path().join("smb.conf");
        let text = lines(&mut dice, &names, dir.path()) + &lines(&mut dice, &names, dir.path());
        std::fs::write(&main, &text).unwrap();
        let context = format!("{context}== smb.conf\n{text}");
        let ours = read(Program::Samba, &main);
        assert!(ours.problems.is_empty(), "{:?}\n{context}", ours.problems);
        match testparm(&main) {
            None => return,
            Some(Err(error)) => panic!("{error}\n{context}"),
            Some(Ok(theirs)) => compared += compare(&ours, &theirs, &context),
        }
    }
    println!("samba: {compared} values compared");
    assert!(compared > 0);
    let tried = 8 * assay_testing::attack_factor();
    assay_testing::attacked("random configurations of samba", tried, tried);
}

/// If Samba ignores a file or reads it from another place, this crate reports a problem, because a copied tree may lack
/// the file.
#[test]
fn what_is_not_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let main = dir.path().join("smb.conf");
    std::fs::write(dir.path().join("smb.conf.office"), "server signing = no\n").unwrap();
    for (line, told) in [
        ("include = /nowhere/x.conf", "cannot be read"),
        ("include = registry", "registry"),
        ("include = x.conf", "was started"),
        ("include = @/smb.conf.%m", "each client"),
        ("include = @/%L/x.conf", "each client"),
        ("config file = /etc/samba/other.conf", "instead"),
        ("config backend = registry", "registry"),
        ("guest ok", "neither"),
        ("[open", "`]`"),
    ] {
        let line = line.replace('@', &dir.path().display().to_string());
        std::fs::write(&main, format!("[global]\n{line}\n")).unwrap();
        let all = read(Program::Samba, &main);
        let [problem] = all.problems.as_slice() else {
            panic!("{line}: {:?}", all.problems)
        };
        assert!(
            problem.trouble.to_string().contains(told),
            "{line}: {problem}"
        );
        assert_eq!(problem.place.line, 2, "{line}");
    }
    // No client has a file of its own.
    let text = format!("[global]\ninclude = {}/other.%m\n", dir.path().display());
    std::fs::write(&main, text).unwrap();
    assert!(read(Program::Samba, &main).problems.is_empty());
    // Files that include each other: the reader must end.
    std::fs::write(
        &main,
        format!("include = {0}\ninclude = {0}\n", main.display()),
    )
    .unwrap();
    let all = read(Program::Samba, &main);
    assert!(
        all.problems
            .iter()
            .any(|problem| problem.trouble == Trouble::Endless)
    );
}
