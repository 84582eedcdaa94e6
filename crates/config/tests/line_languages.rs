//! Properties that languages with one statement per line must have for any text: a set value is read back, all other
//! bytes remain, removing the setting restores the previous text, and hostile text causes no panic.

use assay_config::{ConfError, find_includes, get, remove, section_at_line, set, setting_at_line};
use assay_model::change::ConfigLanguage::{
    self, Fstab, Modprobe, Mysql, PostfixServices, Postgresql, Shell, Sysctl, Words,
};
use proptest::prelude::*;

struct Case {
    language: ConfigLanguage,
    text: &'static [u8],
    section: &'static [&'static str],
    /// A key that occurs in the text.
    known: &'static str,
    /// A key that does not occur in the text. Empty if no line can be added in this language.
    fresh: &'static str,
}

const CASES: [Case; 8] = [
    Case {
        language: Words,
        text: b"# a\nglobal\n\tbind :443 ssl # tls\r\n  bind :80\nlong \\\n  b c\nDefaults x\xff\nlast 1",
        section: &[],
        known: "bind :443",
        fresh: "zz new",
    },
    Case {
        language: Shell,
        text: b"#!/bin/sh\nexport A='x y' # c\n  B=1 run\nC=\"a b\"\nD=\"$(id)\"\nif [ x = \"\xff\" ]; then A=z; fi\n",
        section: &[],
        known: "C",
        fresh: "ZZ",
    },
    Case {
        language: Postgresql,
        text: b"# fsync\nfsync off # why\ninclude 'x'\nssl_ciphers = 'a''b'\nodd = 'a\\'\nport=1\r\n\xff",
        section: &[],
        known: "ssl_ciphers",
        fresh: "zz_new",
    },
    Case {
        language: Mysql,
        text: b"[client]\nport=1\n[mysqld]\nskip-grant-tables # x\nname = 'a b' # c\n!include /x\n[other]\n\xff = 2\n",
        section: &["mysqld"],
        known: "name",
        fresh: "zz-new",
    },
    Case {
        language: Sysctl,
        text: b"; c\n-net/ipv4/tcp_sack = 0\nvm.swappiness=1\n\xff=2\nnet.ipv4.conf.eth0/1.x = 1\n",
        section: &[],
        known: "net.ipv4.tcp_sack",
        fresh: "zz.new",
    },
    Case {
        language: Fstab,
        text: b"# /srv\nUUID=1 / ext4 defaults 0 1\n/dev/b\t/srv\txfs\tnobarrier 0 2\nx none swap sw\nbad\n\xff",
        section: &[],
        known: "/srv",
        fresh: "",
    },
    Case {
        language: Modprobe,
        text: b"# options a b=1\noptions zfs a=1 b=2\noptions x \\\n y=1\nblacklist \xff\noptions zfs c=3\n",
        section: &[],
        known: "zfs b",
        fresh: "zz new",
    },
    Case {
        language: PostfixServices,
        text: b"smtp inet n - y - - smtpd -o a=1\n# c\nsub inet n - y - - smtpd\n  -o a=2\n  -o b={\xff}\n",
        section: &["sub inet"],
        known: "a",
        fresh: "zz_new",
    },
];

fn names(section: &[&str]) -> Vec<String> {
    section.iter().map(|&name| name.to_owned()).collect()
}

proptest! {
    #[test]
    fn a_known_line_changes_alone(which in 0usize..8, value in "[a-z0-9]{1,9}") {
        let Case { language, text, section, known, .. } = CASES[which];
        let section = names(section);
        let before = get(language, text, &section, known).unwrap().unwrap();
        let new = set(language, text, &section, known, &value).unwrap();
        let after = get(language, &new, &section, known).unwrap().unwrap();
        prop_assert_eq!((&after.value, after.line), (&value, before.line));
        let lines = |text: &[u8]| -> Vec<Vec<u8>> {
            text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
        };
        prop_assert_eq!(lines(text).len(), lines(&new).len());
        for (at, (old, new)) in lines(text).iter().zip(&lines(&new)).enumerate() {
            prop_assert!(old == new || at + 1 == before.line, "line {}", at + 1);
        }
        prop_assert_eq!(set(language, &new, &section, known, &before.value).unwrap(), text);
        // The line leads back to the setting.
        let found = setting_at_line(language, text, before.line, known).unwrap().unwrap();
        prop_assert_eq!(get(language, text, &found.section, &found.key).unwrap().unwrap(), before);
    }

    #[test]
    fn a_new_line_goes_without_a_trace(
        which in 0usize..8,
        value in prop_oneof!["[a-z0-9_./:,-]{1,20}", "[ -~]{0,24}", "\\PC{0,12}"],
    ) {
        let Case { language, text, section, fresh, .. } = CASES[which];
        let section = names(section);
        let new = match set(language, text, &section, fresh, &value) {
            Ok(new) => new,
            Err(ConfError::Value { .. } | ConfError::Key { .. }) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let found = get(language, &new, &section, fresh).unwrap().unwrap();
        prop_assert_eq!(&found.value, &value);
        prop_assert_eq!(remove(language, &new, &section, fresh).unwrap(), text);
    }

    #[test]
    fn hostile_text_causes_no_panic(
        which in 0usize..8,
        text in prop::collection::vec(
            prop::sample::select(b"ab={}[]#;\"'\\ \t\r\n!-o$\xff\0".to_vec()), 0..160),
        key in "[ab={}#; \\[\\]]{0,6}|a b|options a",
        value in "[ -~]{0,8}",
        line in 0usize..6,
    ) {
        let language = CASES[which].language;
        let _ = find_includes(language, &text);
        let _ = section_at_line(language, &text, line);
        for key in [&*key, "*"] {
            if let Ok(Some(found)) = setting_at_line(language, &text, line, key) {
                let _ = get(language, &text, &found.section, &found.key);
            }
        }
        for section in [&[][..], &["a".to_owned()]] {
            if let Ok(new) = set(language, &text, section, &key, &value) {
                prop_assert!(get(language, &new, section, &key).unwrap().is_some());
            }
            if let Ok(new) = remove(language, &text, section, &key) {
                prop_assert_eq!(get(language, &new, section, &key).unwrap(), None);
            }
        }
    }
}
