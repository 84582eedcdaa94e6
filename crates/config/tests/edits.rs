//! Properties that edits of any text must have: a set value is read back, all other bytes remain, and removing the
//! setting restores the previous text.

use assay_config::{ConfError, find_includes, get, remove, set};
use assay_model::change::ConfigLanguage::{
    self, Dovecot, Ini, KeyValue, Nginx, Nsswitch, Postfix, Ssh,
};
use proptest::prelude::*;

const ALL: [ConfigLanguage; 7] = [Ssh, Nginx, Postfix, Dovecot, Nsswitch, KeyValue, Ini];

type Hard = (
    ConfigLanguage,
    &'static [u8],
    &'static [&'static [&'static str]],
);

/// Texts with the difficult parts of each language, and sections to edit.
const HARD: [Hard; 7] = [
    (
        Ssh,
        include_bytes!("../fixtures/hard.sshd_config"),
        &[&[], &["Match User bob"], &["match address 192.0.2.0/24"]],
    ),
    (
        Nginx,
        include_bytes!("../fixtures/hard.nginx.conf"),
        &[
            &[],
            &["events"],
            &["http"],
            &["http", "server[2]", "location = /a"],
            &["http", "server[server_name=b.example]"],
        ],
    ),
    (Postfix, include_bytes!("../fixtures/hard.main.cf"), &[&[]]),
    (
        Dovecot,
        include_bytes!("../fixtures/hard.dovecot.conf"),
        &[
            &[],
            &["passdb[driver=sql]"],
            &["passdb[2]"],
            &["service auth", "unix_listener auth-userdb"],
            &["namespace inbox"],
        ],
    ),
    (
        Nsswitch,
        include_bytes!("../fixtures/hard.nsswitch.conf"),
        &[&[]],
    ),
    (
        KeyValue,
        include_bytes!("../fixtures/hard.sysctl.conf"),
        &[&[]],
    ),
    (
        Ini,
        include_bytes!("../fixtures/hard.ini"),
        &[&[], &["one"], &["two words"]],
    ),
];

fn names(section: &[&str]) -> Vec<String> {
    section.iter().map(|&name| name.to_owned()).collect()
}

/// Generates values. If a language cannot express a value, it must be rejected and the text must remain unchanged.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9_./:,-]{1,20}",
        "[a-z0-9]{1,6}( [a-z0-9\"'$#;{}\\\\=]{1,6}){0,3}",
        "[ -~]{0,24}",
        "\\PC{0,12}",
    ]
}

proptest! {
    #[test]
    fn set_then_get_then_gone(which in 0usize..7, part in 0usize..5, value in values()) {
        let (language, text, sections) = HARD[which];
        let section = names(sections[part % sections.len()]);
        let key = "zz_new_key";
        prop_assert_eq!(get(language, text, &section, key).unwrap(), None);
        let new = match set(language, text, &section, key, &value) {
            Ok(new) => new,
            Err(ConfError::Value { .. }) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let found = get(language, &new, &section, key).unwrap().unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let plain = |text: &str| text.replace(['"', '\'', '\\'], "");
        prop_assert_eq!(words(&plain(&found.value)), words(&plain(&value)));
        // Writing the value that was read changes nothing.
        prop_assert_eq!(set(language, &new, &section, key, &found.value).unwrap(), new.clone());
        // All other bytes stay, and removing an inserted line restores the text to the byte.
        prop_assert_eq!(remove(language, &new, &section, key).unwrap(), text);
    }

    #[test]
    fn an_existing_line_changes_alone(which in 0usize..7, value in "[a-z0-9]{1,9}") {
        let (language, text, _) = HARD[which];
        let (section, key, line) = EXISTING[which];
        let section = names(section);
        let before = get(language, text, &section, key).unwrap().unwrap();
        prop_assert_eq!(before.line, line);
        let new = set(language, text, &section, key, &value).unwrap();
        prop_assert_eq!(&get(language, &new, &section, key).unwrap().unwrap().value, &value);
        let lines = |text: &[u8]| -> Vec<Vec<u8>> {
            text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
        };
        for (at, (old, new)) in lines(text).iter().zip(&lines(&new)).enumerate() {
            prop_assert!(old == new || at + 1 == line, "line {}", at + 1);
        }
        // Setting the old value restores the text, quotes and spacing included.
        prop_assert_eq!(set(language, &new, &section, key, &before.value).unwrap(), text);
    }

    #[test]
    fn garbage_never_panics(
        which in 0usize..7,
        text in prop::collection::vec(
            prop::sample::select(b"ab={}[]#;\"'\\ \t\r\n!<$\xff\0:".to_vec()), 0..120),
        key in "[ab={}#; \\[\\]]{0,6}|!include b|a\\[b\\]|a\\[b=a\\]",
        value in "[ -~]{0,8}",
    ) {
        let language = ALL[which];
        let _ = find_includes(language, &text);
        for section in [&[][..], &["a".to_owned()], &["a[b=a]".to_owned()]] {
            let before = get(language, &text, section, &key);
            if let Ok(new) = set(language, &text, section, &key, &value) {
                prop_assert!(get(language, &new, section, &key).unwrap().is_some());
            }
            if let Ok(new) = remove(language, &text, section, &key) {
                prop_assert_eq!(get(language, &new, section, &key).unwrap(), None);
                if let Ok(None) = before {
                    prop_assert_eq!(new, text.clone());
                }
            }
        }
    }

    #[test]
    fn damaged_real_files_never_panic(which in 0usize..7, at in 0usize..4000, byte in any::<u8>()) {
        let (language, text, sections) = HARD[which];
        let mut text = text.to_vec();
        let at = at % text.len();
        text[at] = byte;
        for text in [&text[..], &text[..at]] {
            for section in sections {
                let _ = get(language, text, &names(section), "a");
                let _ = set(language, text, &names(section), "a", "b");
            }
        }
    }
}

/// A key of each difficult text, with its section and line.
const EXISTING: [(&[&str], &str, usize); 7] = [
    (&[], "GSSAPIAuthentication", 6),
    (&["http", "server[1]"], "server_name", 18),
    (&[], "smtpd_banner", 7),
    (&["passdb[driver=sql]"], "args", 17),
    (&[], "hosts", 4),
    (&[], "vm.swappiness", 5),
    (&["two words"], "path", 11),
];

fn value(language: ConfigLanguage, section: &[&str], key: &str) -> Option<String> {
    let (_, text, _) = HARD.iter().find(|(l, ..)| *l == language).unwrap();
    let found = get(language, text, &names(section), key).unwrap();
    found.map(|found| found.value)
}

#[test]
fn ssh_quoting_and_blocks() {
    assert_eq!(
        value(Ssh, &[], "usedns").as_deref(),
        Some("no"),
        "the first one wins"
    );
    assert_eq!(
        value(Ssh, &[], "Banner").as_deref(),
        Some("\"/etc/my banner\"")
    );
    assert_eq!(value(Ssh, &[], "AllowUsers").as_deref(), Some("ann bob"));
    assert_eq!(
        value(Ssh, &["Match User bob"], "X11Forwarding").as_deref(),
        Some("no")
    );
    let two = get(Ssh, HARD[0].1, &names(&["Match"]), "X11Forwarding");
    assert!(matches!(two, Err(ConfError::Ambiguous { ref lines, .. }) if lines == &[13, 17]));
    assert_eq!(
        value(Ssh, &["Match[2]"], "X11Forwarding").as_deref(),
        Some("yes")
    );
}

#[test]
fn nginx_words() {
    assert_eq!(value(Nginx, &[], "worker_processes").as_deref(), Some("2"));
    assert_eq!(
        value(Nginx, &["http"], "add_header X-B").as_deref(),
        Some("2")
    );
    assert_eq!(
        value(Nginx, &["http"], "log_format main").as_deref(),
        Some(r#"'$remote_addr; "$request" {' '$status}'"#)
    );
    assert_eq!(
        value(Nginx, &["http", "map"], "default").as_deref(),
        Some("a")
    );
    let located = ["http", "server[3]", "location ~ ^/[0-9]+$"];
    assert_eq!(value(Nginx, &located, "return").as_deref(), Some("404"));
    let lua: &[u8] = b"http { content_by_lua_block { x = '}' -- }\n } a b; }";
    assert_eq!(
        get(Nginx, lua, &names(&["http"]), "a")
            .unwrap()
            .unwrap()
            .value,
        "b"
    );
}

#[test]
fn postfix_lines_that_go_on() {
    assert_eq!(
        value(Postfix, &[], "mydestination").as_deref(),
        Some("$myhostname, localhost.$mydomain")
    );
    assert_eq!(value(Postfix, &[], "relay_domains").as_deref(), Some(""));
    assert_eq!(
        value(Postfix, &[], "biff").as_deref(),
        Some("no"),
        "the last one wins"
    );
    // A comment inside a value stays.
    let text = HARD[2].1;
    let new = set(Postfix, text, &[], "mydestination", "localhost").unwrap();
    let part = b"mydestination = localhost\n# a comment inside\nsmtpd_banner";
    assert!(new.windows(part.len()).any(|window| window == part));
    let gone = remove(Postfix, text, &[], "smtpd_recipient_restrictions").unwrap();
    assert_eq!(
        get(Postfix, &gone, &[], "smtpd_recipient_restrictions").unwrap(),
        None
    );
    assert!(gone.windows(10).any(|window| window == b"# between\n"));
}

#[test]
fn dovecot_values() {
    assert_eq!(value(Dovecot, &[], "protocols").as_deref(), Some("imap"));
    assert_eq!(
        value(Dovecot, &[], "mail_location").as_deref(),
        Some("maildir:~/Mail # not a comment")
    );
    assert_eq!(
        value(Dovecot, &[], "auth_mechanisms").as_deref(),
        Some("plain external login")
    );
    assert_eq!(
        value(Dovecot, &["namespace inbox"], "inbox").as_deref(),
        Some("yes"),
        "two blocks are one"
    );
    assert_eq!(
        value(
            Dovecot,
            &["namespace inbox", "mailbox Sent Messages"],
            "special_use"
        )
        .as_deref(),
        Some("\\Sent")
    );
    assert_eq!(
        get(
            Dovecot,
            b"plugin {\na = 1\n}\nplugin {\na = 2\n}\n",
            &names(&["plugin"]),
            "a"
        )
        .unwrap()
        .unwrap()
        .value,
        "2",
        "lists without a name are one"
    );
    assert_eq!(
        value(Dovecot, &[], "passdb[driver=ldap]").as_deref(),
        Some("off")
    );
    assert_eq!(
        value(Dovecot, &[], "passdb[driver]").as_deref(),
        Some("pam sql")
    );
    let found = get(Dovecot, HARD[3].1, &[], "protocols").unwrap().unwrap();
    assert_eq!(found.rivals.len(), 2);
}

#[test]
fn the_rest_of_a_line_may_be_a_value() {
    let text = b"ForceCommand echo \"a\"  # b\nUseDNS no # c\n";
    let found = get(Ssh, text, &[], "forcecommand").unwrap().unwrap();
    assert_eq!(found.value, "echo \"a\"  # b");
    let new = set(Ssh, text, &[], "ForceCommand", "/bin/x").unwrap();
    assert_eq!(new, b"ForceCommand /bin/x\nUseDNS no # c\n");
    assert_eq!(
        set(Ssh, &new, &[], "ForceCommand", &found.value).unwrap(),
        text
    );
}

#[test]
fn the_rest() {
    assert_eq!(value(Nsswitch, &[], "group").as_deref(), Some("files"));
    assert_eq!(
        value(Nsswitch, &[], "hosts").as_deref(),
        Some("files mdns4_minimal [NOTFOUND=return] dns")
    );
    assert_eq!(
        value(KeyValue, &[], "vm.dirty_ratio").as_deref(),
        Some("30")
    );
    assert_eq!(value(Ini, &["one"], "key").as_deref(), Some("last"));
    assert_eq!(value(Ini, &[], "top").as_deref(), Some("1"));
}

#[test]
fn broken_files_are_refused_with_their_line() {
    for (language, text, line, what) in [
        (Nginx, "a b;\nhttp {\n", 2, "not closed"),
        (Nginx, "a b;\n}\n", 2, "without"),
        (Nginx, "a \"b\n\n;", 1, "quote"),
        (Nginx, "\na b", 2, "missing"),
        (Dovecot, "passdb {\n", 1, "not closed"),
        (Dovecot, "\n}\n", 2, "without"),
        (Dovecot, "\n\nnonsense\n", 3, "neither"),
        (Dovecot, "a = b \\\n# c\nd = e\n", 2, "backslash"),
        (Dovecot, "a b c {\n}\n", 1, "after the name of the section"),
        (Dovecot, "a b{\n}\n", 1, "after the name of the section"),
        (Dovecot, "a \"{\n}\n", 1, "after the name of the section"),
        (
            Dovecot,
            "a \"b\" c {\n}\n",
            1,
            "after the name of the section",
        ),
        (Ssh, "UseDNS\"yes\"", 1, "quote"),
        (Postfix, "a = b\nnonsense\n", 2, "without"),
        (Ssh, "Port 22\nBanner \"x\n", 2, "quote"),
    ] {
        let error = set(language, text.as_bytes(), &[], "x", "y").unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with(&format!("line {line}: ")) && message.contains(what),
            "{message}"
        );
    }
    for (language, value) in [
        (Ssh, ""),
        (Ssh, "\"a"),
        (Nginx, "a; b"),
        (Nginx, "a # b"),
        (Nginx, "a\\"),
        (Postfix, " a"),
        (KeyValue, "a\nb"),
        (Nsswitch, "a # b"),
    ] {
        let error = set(language, b"", &[], "x", value).unwrap_err();
        assert!(
            matches!(error, ConfError::Value { .. }),
            "{language:?} {value}: {error}"
        );
    }
    for (language, key) in [
        (Ssh, "a b"),
        (Postfix, "a=b"),
        (Nginx, "a;b"),
        (Dovecot, "#a"),
        (Ini, ";a"),
    ] {
        let error = set(language, b"", &[], key, "y").unwrap_err();
        assert!(
            matches!(error, ConfError::Key { .. } | ConfError::Value { .. }),
            "{language:?} {key}: {error}"
        );
    }
}

/// Examples of Postfix have comments between the name and its value.
#[test]
fn comments_before_a_value_are_not_written_again() {
    for (text, expected) in [
        ("a =\n# c\n  d\nb = x\n", "a =\n# c\n  7\nb = x\n"),
        (
            "a =\n\n# c\n\n    d\n    # e\n    f\n",
            "a =\n\n# c\n\n    7\n    # e\n",
        ),
        ("a = d\n# c\n  f\n", "a = 7\n# c\n"),
    ] {
        let once = set(Postfix, text.as_bytes(), &[], "a", "7").unwrap();
        assert_eq!(String::from_utf8_lossy(&once), expected);
        assert_eq!(set(Postfix, &once, &[], "a", "7").unwrap(), once);
    }
}

/// hostapd and vsftpd take a blank beside the sign for a part of the name or of the value.
#[test]
fn a_new_line_is_written_like_the_others() {
    for (language, section, text, expected) in [
        (KeyValue, vec![], "a=1\n# c\nb=\n", "a=1\n# c\nb=\nx=2\n"),
        (KeyValue, vec![], "a = 1\n", "a = 1\nx = 2\n"),
        (KeyValue, vec![], "a=1\nb =2\n", "a=1\nb =2\nx = 2\n"),
        (KeyValue, vec![], "", "x = 2\n"),
        (
            Ini,
            vec!["s"],
            "[r]\na=1\n[s]\nb=1\n",
            "[r]\na=1\n[s]\nb=1\nx=2\n",
        ),
        (
            Ini,
            vec!["s"],
            "[r]\na = 1\n[s]\nb=1\n",
            "[r]\na = 1\n[s]\nb=1\nx = 2\n",
        ),
    ] {
        let section: Vec<String> = section.into_iter().map(str::to_owned).collect();
        let new = set(language, text.as_bytes(), &section, "x", "2").unwrap();
        assert_eq!(String::from_utf8_lossy(&new), expected);
    }
}
