//! Changes that are kept, and rolled back later at the user's request.

use crate::attributes::{adorn, attributes};
use crate::driver::{Scenario, everywhere, journal};
use assay_changes::{ChangeError, Foreign, RecoveryOutcome, Switch};
use assay_host::{Host as _, LiveHost};
use assay_model::change::{ConfigKey, ConfigLanguage, Setting};
use std::fs;

/// Several settings of two files are changed in one session, kept, and rolled back.
#[test]
fn attack_kept() {
    const ONE: &str =
        "UseDNS yes\nMatch User git\n UseDNS yes\n # ours\nMatch User bob\n UseDNS no\n";
    everywhere(&Scenario {
        name: "kept::attack_kept",
        tools: false,
        unprivileged: true,
        traced: true,
        prepare: |dir| {
            for (name, text) in [("sshd_config", ONE), ("other.conf", "a = 1\nb = 2\n")] {
                fs::write(dir.join(name), text).unwrap();
                adorn(&dir.join(name));
            }
            fs::copy(dir.join("sshd_config"), dir.join("running")).unwrap();
            None
        },
        look: |dir| {
            let file = |name: &str| {
                let path = dir.join(name);
                let text = fs::read_to_string(&path).unwrap();
                format!("{text}{}", attributes(&path))
            };
            let mut names: Vec<_> = LiveHost.list(dir).unwrap();
            names.retain(|name| name != "journal");
            let running = fs::read_to_string(dir.join("running")).unwrap();
            format!(
                "{names:?}{}{}{running}",
                file("sshd_config"),
                file("other.conf")
            )
        },
        act: |dir, session, host| {
            let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
            let key = |section: &[&str], key: &str| ConfigKey {
                section: section.iter().map(|&one| one.to_owned()).collect(),
                key: key.to_owned(),
            };
            let words = ["cp", "{file}", &path("running")].map(str::to_owned);
            let one = Setting::ConfigKeys {
                file: path("sshd_config"),
                language: ConfigLanguage::Ssh,
                keys: vec![key(&[], "UseDNS"), key(&["Match User git"], "UseDNS")],
                validate: vec!["test".into(), "-s".into(), "{file}".into()],
                reload: words.to_vec(),
            };
            let other = Setting::ConfigKeys {
                file: path("other.conf"),
                language: ConfigLanguage::KeyValue,
                keys: vec![key(&[], "a"), key(&[], "b")],
                validate: Vec::new(),
                reload: Vec::new(),
            };
            let one = Switch::open(session, host, &one)?;
            let other = Switch::open(session, host, &other)?;
            // The journal has the reverse order: the result must not depend on the order.
            assert_eq!(one.original().shown, "yes; yes");
            assert_eq!(other.set(Some(r#"["3",null]"#))?, "3; no line for it");
            one.set(Some("[null,null]"))?;
            let text = fs::read_to_string(dir.join("sshd_config")).unwrap();
            assert_eq!(
                text,
                "Match User git\n # ours\nMatch User bob\n UseDNS no\n"
            );
            for wrong in [None, Some("x"), Some("[null]")] {
                match one.set(wrong) {
                    Err(ChangeError::Refused { .. }) => {}
                    // The fault under test.
                    Err(other) => return Err(other),
                    Ok(set) => panic!("{wrong:?} was set: {set}"),
                }
            }
            one.leave();
            other.leave();
            session.put_by()?;
            let journal = journal(dir);
            let kept = journal.kept()?;
            assert_eq!(kept.len(), 1);
            assert_eq!(journal.pending()?, []);
            let back = journal.take_back_kept(session.uid(), host, Foreign::Leave)?;
            assert_eq!(back.len(), 2, "{back:?}");
            Ok(())
        },
    });
}

/// Values that another program changed after a change was kept stay.
#[test]
fn what_is_kept_is_taken_back_around_what_others_wrote() {
    let place = tempfile::tempdir().unwrap();
    let (dir, host) = (place.path(), LiveHost);
    let file = dir.join("main.cf");
    let setting = Setting::Config {
        file: file.to_str().unwrap().to_owned(),
        language: ConfigLanguage::Postfix,
        section: Vec::new(),
        key: "a".into(),
        validate: Vec::new(),
        reload: Vec::new(),
    };
    let journal = journal(dir);
    let keep = |value: &str| {
        let session = journal.begin("test", "main.cf").unwrap();
        let switch = Switch::open(&session, &host, &setting).unwrap();
        switch.set(Some(value)).unwrap();
        switch.leave();
        session.put_by().unwrap();
        session.uid().to_owned()
    };
    fs::write(&file, "a = 1\n").unwrap();
    let (first, second) = (keep("2"), keep("3"));
    assert_eq!(journal.kept().unwrap().len(), 2);
    fs::write(&file, "a = 3\nb = 1\n").unwrap();
    journal
        .take_back_kept(&second, &host, Foreign::Leave)
        .unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "a = 2\nb = 1\n");
    // Another program changed the same setting.
    fs::write(&file, "a = 7\nb = 1\n").unwrap();
    let back = journal
        .take_back_kept(&first, &host, Foreign::Leave)
        .unwrap();
    assert!(
        matches!(back[0].outcome, RecoveryOutcome::LeftAlone { .. }),
        "{back:?}"
    );
    assert_eq!(journal.pending().unwrap().len(), 1);
    journal.recover(&host, Foreign::Restore).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "a = 1\nb = 1\n");
    for gone in [&*first, "", "../x", "0"] {
        assert!(journal.take_back_kept(gone, &host, Foreign::Leave).is_err());
    }
}
