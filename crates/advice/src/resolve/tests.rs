use super::fill::{Piece, pieces};
use super::*;
use crate::check::tests::PAGE;
use crate::page;
use assay_model::Bytes;
use assay_model::change::{Change, Setting};
use assay_model::load::Load;
use proptest::prelude::*;

fn advice(from: &str, to: &str) -> Advice {
    let text = PAGE.replacen(from, to, 1);
    page::parse("a/test.md", &text).unwrap()
}

fn given(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

fn info(devices: &[&str], disks: &[&str]) -> TargetInfo {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    TargetInfo {
        name: "/srv".into(),
        kind: assay_model::target::TargetKind::Directory,
        fs_type: Some("ext4".into()),
        mount_point: Some("/srv".into()),
        mount_options: Some("rw,relatime".into()),
        mount_source: Some("/dev/vda2".into()),
        devices: owned(devices),
        disks: owned(disks),
        size: Bytes(0),
        free: None,
    }
}

#[test]
fn defaults_and_what_was_given() {
    let advice = advice("x", "x");
    let none = BTreeMap::new();
    let spec = resolve(&advice, &none, Some("/srv"), None).unwrap();
    let Change::Set {
        setting: Setting::Sysctl { key },
        value,
    } = spec.change
    else {
        panic!("{:?}", spec.change)
    };
    assert_eq!(
        (key.as_str(), value.as_deref()),
        ("vm.swappiness", Some("10"))
    );
    let Load::Command { argv, .. } = spec.load else {
        panic!()
    };
    assert_eq!(argv, ["true", "/srv"]);
    let spec = resolve(&advice, &given("swap", "60"), Some("/srv"), None).unwrap();
    assert!(matches!(spec.change, Change::Set { value: Some(value), .. } if value == "60"));
}

#[test]
fn what_only_the_load_needs_is_no_input_of_a_session() {
    let asked = |text: String| {
        let advice = page::parse("a/test.md", &text).unwrap();
        (
            placeholder_values_of_load(&advice),
            is_target_of_load(&advice),
        )
    };
    let parameters = "[parameters.program]\nabout = \"A program\"\nkind = \"words\"\n\n[trial]";
    let in_load = PAGE.replacen("[trial]", parameters, 1).replacen(
        "\"{target}\"",
        "\"{target}\", \"{program}\"",
        1,
    );
    // A parameter with a default keeps it.
    assert_eq!(asked(in_load.clone()), (given("program", "true"), true));
    let in_change = in_load.replacen("value = \"{swap}\"", "value = \"{swap}{program}\"", 1);
    assert_eq!(asked(in_change), (BTreeMap::new(), true));
    let target_changed = in_load.replacen("\"vm.swappiness\"", "\"a.{target}\"", 1);
    assert_eq!(asked(target_changed), (given("program", "true"), false));
}

#[test]
fn errors_say_what_would_do() {
    let plain = advice("x", "x");
    let none = BTreeMap::new();
    let fails = |advice: &Advice, given: &BTreeMap<String, String>, target, info| {
        resolve(advice, given, target, info)
            .unwrap_err()
            .to_string()
    };
    let text = fails(&plain, &given("swop", "1"), Some("/"), None);
    insta::assert_snapshot!(text, @"`test` has no parameter `swop`; did you mean `swap`?; it has `swap`");
    let text = fails(&plain, &none, None, None);
    insta::assert_snapshot!(text, @"`test` needs a target: a directory in which assay may make scratch files");
    let chosen = advice("default = \"10\"", "choices = [\"8K\", \"64K\"]");
    let text = fails(&chosen, &none, Some("/"), None);
    insta::assert_snapshot!(text, @"`test` needs `--set swap=…`: The value.");
    let text = fails(&chosen, &given("swap", "8k"), Some("/"), None);
    insta::assert_snapshot!(text, @"`8k` is not a value of `swap`: it is one of `8K` and `64K`; did you mean `8K`?");
    let below = advice("\"{target}\"", "\"{device}\"");
    let text = fails(&below, &none, Some("/srv"), None);
    insta::assert_snapshot!(text, @"/srv: what lies under it is not known");
    let two = info(&["sda", "sdb"], &["sda", "sdb"]);
    let text = fails(&below, &none, Some("/srv"), Some(&two));
    insta::assert_snapshot!(text, @"/srv: sda and sdb lie under it: name one block device");
    let mut explained = plain;
    explained.trial = None;
    insta::assert_snapshot!(fails(&explained, &none, None, None), @"`test` cannot be tried: It depends.");
}

#[test]
fn a_placeholder_alone_becomes_a_number() {
    let text = PAGE
        .replacen("default = \"10\"", "default = \"10\"\nkind = \"number\"", 1)
        .replacen("value = \"{swap}\"", "value = \"10\"", 1)
        .replacen("vm.swappiness", "a.{swap}", 1)
        .replacen("metric =", "slot_seconds = \"{swap}\"\nmetric =", 1);
    let number = page::parse("a/test.md", &text).unwrap();
    let spec = resolve(&number, &given("swap", "2.5"), Some("/"), None).unwrap();
    assert_eq!(spec.slot_seconds, 2.5);
    let error = resolve(&number, &given("swap", "x"), Some("/"), None).unwrap_err();
    assert!(error.to_string().contains("number"), "{error}");
    let error = resolve(&number, &given("swap", "-1"), Some("/"), None).unwrap_err();
    assert!(error.to_string().contains("slot_seconds"), "{error}");
}

#[test]
fn a_command_is_one_parameter() {
    let text = PAGE
        .replacen(
            "default = \"10\"",
            "default = \"nginx -t -c {file}\"\nkind = \"words\"",
            1,
        )
        .replacen("value = \"{swap}\"", "value = \"10\"", 1)
        .replacen(
            "[\"true\", \"{target}\"]",
            "[\"env\", \"{swap}\", \"{target}\"]",
            1,
        );
    let advice = page::parse("a/test.md", &text).unwrap();
    let argv = |given: &BTreeMap<String, String>| {
        let spec = resolve(&advice, given, Some("/srv"), None).unwrap();
        match spec.load {
            Load::Command { argv, .. } => argv.join("|"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(argv(&BTreeMap::new()), "env|nginx|-t|-c|{file}|/srv");
    assert_eq!(argv(&given("swap", "a 'b c'")), "env|a|b c|/srv");
    let error = resolve(&advice, &given("swap", "'"), Some("/"), None).unwrap_err();
    assert!(error.to_string().contains("quote"), "{error}");
}

#[test]
fn what_lies_below() {
    let below = advice("\"{target}\"", "\"{mountpoint}:{source}:{device}:{disk}\"");
    for (devices, disks, expected) in [
        (["vda2"], ["vda"], "/srv:/dev/vda2:vda:vda"),
        (["nvme0n1p2"], ["nvme0n1"], "/srv:/dev/vda2:nvme0n1:nvme0n1"),
        (["dm-0"], ["sda"], "/srv:/dev/vda2:dm-0:sda"),
        (["loop0"], ["loop0"], "/srv:/dev/vda2:loop0:loop0"),
        (["sdaa1"], ["sda"], "/srv:/dev/vda2:sdaa1:sda"),
    ] {
        let spec = resolve(
            &below,
            &BTreeMap::new(),
            Some("/srv"),
            Some(&info(&devices, &disks)),
        );
        let Load::Command { argv, .. } = spec.unwrap().load else {
            panic!()
        };
        assert_eq!(argv[1], expected);
    }
}

#[test]
fn some_placeholders_stay_for_later_but_only_where_they_mean_something() {
    let later = advice("\"{target}\"", "\"{host}:{port}\"");
    let spec = resolve(&later, &BTreeMap::new(), Some("/"), None).unwrap();
    assert!(matches!(spec.load, Load::Command { argv, .. } if argv[1] == "{host}:{port}"));
    let text = PAGE.replacen("vm.swappiness\" }", "{host}\" }", 1);
    insta::assert_snapshot!(page::parse("a/test.md", &text).unwrap_err(), @"a/test.md:30: trial.change.setting.key: nothing fills in `{host}`; did you mean `host`?");
}

#[test]
fn braces_around_anything_else_are_text() {
    assert_eq!(
        pieces("a{b}{C}{}{{d}"),
        [
            Piece::Text("a"),
            Piece::Name("b"),
            Piece::Text("{C}{}{"),
            Piece::Name("d")
        ]
    );
}

proptest! {
    #[test]
    fn no_letter_is_lost(text in "[a-z{}A é]{0,40}") {
        let whole: String = pieces(&text)
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.to_owned(),
                Piece::Name(name) => format!("{{{name}}}"),
            })
            .collect();
        prop_assert_eq!(whole, text);
    }
}
