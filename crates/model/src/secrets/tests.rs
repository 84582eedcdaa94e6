use super::*;
use proptest::prelude::*;

#[test]
fn names_of_secrets() {
    for name in [
        "password",
        "db.api_key",
        "luks.pw",
        "cipassword",
        "http_pass",
        "http_s3_keyid",
        "X-Auth-Token",
        "AWS_SECRET_ACCESS_KEY",
        "key-secret",
        "SAS",
    ] {
        assert!(names_a_secret(name), "{name}");
    }
    for name in [
        "iommu.passthrough",
        "keyboard",
        "zfs_arc_max",
        "author",
        "spec_store_bypass_disable",
        "compress",
    ] {
        assert!(!names_a_secret(name), "{name}");
    }
}

#[test]
fn secrets_in_text_are_left_out_and_the_rest_stays() {
    for (given, expected) in [
        (
            "cannot open nbd://u:p@ss@files:10809/x: refused",
            "cannot open nbd://(value withheld)@files:10809/x: refused",
        ),
        (
            "https://h/p?X-Amz-Signature=abc&y=1 failed",
            "https://h/p?(value withheld) failed",
        ),
        (
            "http://u:p?q@h/x?t=1",
            "http://(value withheld)@h/x?(value withheld)",
        ),
        (
            "/etc/passwd: Permission denied",
            "/etc/passwd: Permission denied",
        ),
        ("passwd: hunter2", "passwd: (value withheld)"),
        (
            "nbd+unix:///x?socket=/run/a/s",
            "nbd+unix:///x?socket=/run/a/s",
        ),
        (
            "mount: username=bob,password=a,b failed",
            "mount: username=bob,password=(value withheld) failed",
        ),
        (
            "2 | api_key = \"a\\\"b\" # x",
            "2 | api_key = \"(value withheld)\" # x",
        ),
        (
            "{\"password\": \"hunter2\", \"size\": \"4k\"}",
            "{\"password\": \"(value withheld)\", \"size\": \"4k\"}",
        ),
        (
            "Authorization: Basic YWxhZGRpbg==",
            "Authorization: (value withheld)",
        ),
        ("unknown key: depth", "unknown key: depth"),
        (
            "invalid type: string \"a \\\"b\", expected u64",
            "invalid type: string \"(value withheld)\", expected u64",
        ),
        ("rw=randread bs=4k", "rw=randread bs=4k"),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nxyz\n-----END RSA PRIVATE KEY----- b",
            "a (value withheld) b",
        ),
    ] {
        assert_eq!(withhold_in_text(given), expected);
        assert_eq!(withhold_in_text(expected), expected);
    }
}

#[test]
fn strings_of_documents_are_cleaned() {
    let mut document = serde_json::json!({
        "options": { "bs": "4k", "uri": "http://a:p2@h/x?t=p3" },
        "list": ["password=p4", 5],
    });
    json(&mut document);
    assert_eq!(
        document,
        serde_json::json!({
            "options": {
                "bs": "4k",
                "uri": "http://(value withheld)@h/x?(value withheld)",
            },
            "list": ["password=(value withheld)", 5],
        })
    );
}

proptest! {
    #[test]
    fn cleaning_twice_changes_nothing(
        given in "([a-z:/@?#= \"'\\\\\n-]|password|://|(value withheld)|key=|\\PC){0,40}"
    ) {
        let once = withhold_in_text(&given);
        prop_assert_eq!(withhold_in_text(&once), once);
    }

    #[test]
    fn a_secret_under_its_name_is_gone(
        before in "[a-z ]{0,8}",
        name in "(password|api_key|db\\.secret|luks\\.pw)",
        secret in "[A-Z0-9/+]{8,20}",
        separator in "(=| = |=\"|='|\": \")",
    ) {
        let given = match separator.as_str() {
            "\": \"" => format!("{before} \"{name}{separator}{secret}\""),
            "=\"" => format!("{before} {name}{separator}{secret}\""),
            "='" => format!("{before} {name}{separator}{secret}'"),
            _ => format!("{before} {name}{separator}{secret}"),
        };
        let clean = withhold_in_text(&given);
        prop_assert!(!clean.contains(&secret), "{} -> {}", given, clean);
    }
}

#[test]
fn what_is_left_of_a_key_makes_no_other_one() {
    let nested = "-----BEGIN A-----BEGIN PRIVATE KEY-----x-----END -----BEGIN PRIVATE KEY---END";
    let clean = withhold_in_text(nested);
    assert_eq!(withhold_in_text(&clean), clean);
    let deep = "-----BEGIN A".repeat(40) + &"-----BEGIN PRIVATE KEY-----x-----END -----".repeat(40);
    let clean = withhold_in_text(&deep);
    assert_eq!(withhold_in_text(&clean), clean);
    assert!(!clean.contains('x'), "{clean}");
}
