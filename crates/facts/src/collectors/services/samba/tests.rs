use super::*;
use crate::Redacted;
use assay_host::Recorded;
use assay_model::{FactValue, Facts};

fn facts(host: &Recorded) -> Facts {
    let host = Redacted::new(host, false);
    let mut g = Gather::new(&host);
    collect(&mut g);
    g.facts
}

fn of(text: &str) -> Facts {
    facts(&Recorded::new().file(MAIN, text))
}

fn whole_unknown(found: &Facts) -> Option<&str> {
    match &found.map.get("samba")?.value {
        FactValue::Unknown(why) => Some(why),
        FactValue::Known(_) => None,
    }
}

#[test]
fn settings_are_read_as_samba_reads_them() {
    let signing = "samba.server_signing";
    for (text, value, line) in [
        ("[global]\nserver  signing=0\n", "0", 2),
        ("server signing = disabled\n", "disabled", 1),
        ("[GLOBALS]\n\tSERVER\tSigning = \\\n   Off  \n", "off", 2),
        (
            "[global]\r\n# a \\\r\nserver sig\\\r\nning = no\r\n",
            "no",
            3,
        ),
        (
            "[homes]\nguest ok = no\n[global]\nserver signing = dis\\\nabled\n",
            "disabled",
            4,
        ),
        (
            "[global]\nserver signing = auto\nserver signing = False\n",
            "false",
            3,
        ),
        (
            "[global]\nserver role = standalone server\nserver signing = if_required",
            "if_required",
            3,
        ),
    ] {
        let found = of(text);
        assert_eq!(found.str(signing), Some(value), "{text}");
        assert_eq!(found.map[signing].place.line(), Some(line), "{text}");
        assert_eq!(whole_unknown(&found), None, "{text}");
    }
    // Lines of a share and comments do not count; a word that Samba does not define is unknown.
    for text in [
        "[a]\nserver signing = no\n",
        "[global]\n; server signing = no\n",
    ] {
        assert!(!of(text).map.contains_key(signing), "{text}");
    }
    let found = of("[global]\nserver signing = hunter2\n");
    assert!(found.get(signing).is_none() && found.map.contains_key(signing));
}

#[test]
fn included_files_are_followed_or_unknown() {
    let extra = "/etc/samba/extra.conf";
    let host = Recorded::new()
        .file(MAIN, "[global]\ninclude = /etc/samba/extra.conf\n")
        .file(extra, "server signing = disabled\n");
    let found = facts(&host);
    assert_eq!(found.str("samba.server_signing"), Some("disabled"));
    assert_eq!(
        found.map["samba.server_signing"].place.to_string(),
        "/etc/samba/extra.conf:1"
    );
    assert!(whole_unknown(&facts(&host.denied(extra))).is_some());
    for line in [
        "include = /etc/samba/none.conf",
        "include = /home/alice/x.conf",
        "include = registry",
        "INCLUDE=registry",
        "include = x.conf",
        "include = /etc/samba/%m/x.conf",
        "include = /etc/samba/smb.conf.%m",
        "config file = /etc/samba/other.conf",
        "config backend = registry",
        "config backend = \\\n registry",
        "include = /etc/samba/a b.conf",
    ] {
        let text = format!("[global]\nserver signing = no\n{line}\n");
        let host = Recorded::new()
            .file(MAIN, &*text)
            .file("/etc/samba/smb.conf.office", "server signing = yes\n");
        let found = facts(&host);
        assert!(whole_unknown(&found).is_some(), "{line}");
        let place = &found.map["samba"].place;
        assert_eq!(place.line(), Some(3), "{line}");
    }
    let found = of("[global]\ninclude = /etc/samba/smb.conf.%m\nregistry shares = yes\n");
    assert_eq!(whole_unknown(&found), None);
    assert!(found.get("samba.share").is_none() && found.map.contains_key("samba.share"));
}

#[test]
fn roles_are_told_apart() {
    for (lines, role) in [
        ("", "standalone"),
        ("server role = auto", "standalone"),
        ("server role = Standalone  Server", "standalone"),
        ("server role = member server", "member"),
        ("security = ADS", "member"),
        ("security = user\ndomain logons = yes", "dc"),
        ("server role = active directory domain controller", "dc"),
        ("server role = classic primary domain controller", "dc"),
        ("server role = dc", "dc"),
        ("domain logons = 1\nserver role = standalone", "standalone"),
    ] {
        let found = of(&format!("[global]\n{lines}\n"));
        assert_eq!(found.str("samba.role"), Some(role), "{lines}");
    }
    let hidden = of("[global]\ninclude = registry\n");
    assert!(!hidden.map.contains_key("samba.role"));
}

#[test]
fn shares_of_guests_have_no_names() {
    let found = of(
        "[global]\nguest account = root\nmap to guest = Bad User\n[hr salaries]\npath = /\npublic = true\n\
         writable=yes\nforce user = root\n[alice]\npath = /home/alice\nforce user = alice\n[homes]\nwide links = yes\n\
         [off]\npath=/etc\navailable = no\n",
    );
    let share = |property: &str| {
        found
            .get(&format!("samba.share.share-1.{property}"))
            .cloned()
    };
    assert_eq!(share("path"), Some("/".into()));
    for property in ["guest", "writable", "as_root"] {
        assert_eq!(share(property), Some(true.into()), "{property}");
    }
    assert_eq!(found.str("samba.share.share-2.path"), Some("elsewhere"));
    assert_eq!(
        found.get("samba.share.share-2.as_root"),
        Some(&false.into())
    );
    assert!(
        !found
            .map
            .keys()
            .any(|key| key.starts_with("samba.share.share-3"))
    );
    for fact in ["guests", "guest_is_root", "wide_links"] {
        assert_eq!(
            found.get(&format!("samba.{fact}")),
            Some(&true.into()),
            "{fact}"
        );
    }
    let told = format!("{:?}", found.map);
    assert!(
        !told.contains("alice") && !told.contains("salaries"),
        "{told}"
    );
}

#[test]
fn versions_decide_where_nothing_is_said() {
    let with = |version: &str| {
        let status = format!("Package: samba\nStatus: install ok installed\nVersion: {version}\n");
        let host = Recorded::new()
            .file(MAIN, "[global]\n")
            .file(packages::STATUS, &*status);
        let found = facts(&host);
        let flag = |fact: &str| found.get(fact).and_then(serde_json::Value::as_bool);
        (
            flag("samba.seals_by_default"),
            flag("samba.smb_1_by_default"),
        )
    };
    for (version, seals, smb_1) in [
        ("2:4.17.12+dfsg-0+deb12u4", true, false),
        ("2:4.17.3+dfsg-1", false, false),
        ("2:4.16.8", true, false),
        ("2:4.15.5~dfsg-0ubuntu5", false, false),
        ("2:4.13.13+dfsg-1~deb11u6", false, false),
        ("2:4.9.5+dfsg-5", false, true),
        ("2:4.22.1+dfsg-1", true, false),
    ] {
        assert_eq!(with(version), (Some(seals), Some(smb_1)), "{version}");
    }
    let found = of("[global]\n");
    assert!(
        found.get("samba.seals_by_default").is_none()
            && found.map.contains_key("samba.seals_by_default")
    );
}

#[test]
fn what_is_kept_names_nobody_and_stays_the_same() {
    let text = "[global]\n  workgroup = SECRET\n passdb backend = ldapsam:ldap://hunter2\n server \\\n signing = 0\n\
                [salaries]\n comment = x\n path = /srv/salaries\n force user = bob\n copy = salaries\n[SALARIES ]\n\
                guest ok = yes\ninclude = /etc/samba/%m.conf\ninclude = /etc/a b\n[print$]\n[open\nread only = hunter2";
    let kept = redact(text.as_bytes());
    assert_eq!(redact(&kept), kept);
    let kept = String::from_utf8(kept).unwrap();
    assert_eq!(kept.lines().count(), text.lines().count());
    for secret in ["SECRET", "hunter2", "alari", "bob", "comment"] {
        assert!(!kept.contains(secret), "{secret}: {kept}");
    }
    insta::assert_snapshot!(kept);
}
