use super::*;
use proptest::prelude::*;
use serde_json::json;

fn world() -> World {
    let known = |entries: &[(&str, serde_json::Value)]| {
        entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Known::Value(value.clone())))
            .collect::<Vec<_>>()
    };
    let mut facts = known(&[
        ("tool.qemu-img", json!("qemu-img version 7.2.22 (Debian)")),
        ("disk.vda.scheduler", json!("none")),
        ("disk.vda.rotational", json!(false)),
        ("cpu.logical", json!(2)),
        ("big", json!(u64::MAX)),
        ("list", json!(["a", "b"])),
    ]);
    facts.push((
        "secret".into(),
        Known::Unreadable("Permission denied".into()),
    ));
    World {
        facts: Ledger::new("fact", facts),
        parameters: Ledger::new("parameter", known(&[("value", json!("none"))])),
        target: Ledger::new(
            "target",
            known(&[("fstype", json!("ext4")), ("disk", json!("vda"))]),
        ),
        ..World::empty()
    }
}

fn says(source: &str) -> Truth {
    syntax(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    evaluate(source, &world())
}

#[test]
fn true_and_false() {
    for (source, expected) in [
        (r#"facts["disk.vda.scheduler"] == "none""#, true),
        (
            r#"facts["disk." + target.disk + ".scheduler"] != parameters["value"]"#,
            false,
        ),
        (r#"target.fstype in ["ext4", "xfs"]"#, true),
        (r#"version(facts["tool.qemu-img"]) >= version("7.0")"#, true),
        (
            r#"version(facts["tool.qemu-img"]) < version("7.2.22")"#,
            false,
        ),
        (r#"version("1.2") == version("v1.2.0")"#, true),
        (
            r#"facts["cpu.logical"] > 1 && !facts["disk.vda.rotational"]"#,
            true,
        ),
        (r#""absent" in facts"#, false),
        (r#"!("absent" in facts)"#, true),
        (r#"facts["list"].exists(x, x == "b")"#, true),
        (r#"facts["list"].all(x, x == "b")"#, false),
        (r#"facts["tool.qemu-img"].contains("Debian")"#, true),
        // One side decides.
        (r#"facts["absent"] == 1 || facts["cpu.logical"] == 2"#, true),
        (
            r#"facts["absent"] == 1 && facts["cpu.logical"] == 3"#,
            false,
        ),
        (r#"has(target.fstype) && !has(target.free)"#, true),
        (r#"int(parameters.value == "none" ? 1 : 2) == 1"#, true),
    ] {
        let expected = if expected { Truth::True } else { Truth::False };
        assert_eq!(says(source), expected, "{source}");
    }
}

#[test]
fn unknown_is_never_true() {
    for (source, name) in [
        (r#"facts["absent"] == 1"#, "absent"),
        (r#"facts["absent"] != 1"#, "absent"),
        (r#"!(facts["secret"] == 1)"#, "Permission denied"),
        (r#""secret" in facts"#, "Permission denied"),
        (
            r#"facts["absent"] == 1 || facts["cpu.logical"] == 3"#,
            "absent",
        ),
        (
            r#"facts["absent"] == 1 && facts["cpu.logical"] == 2"#,
            "absent",
        ),
        (
            r#"version(facts["disk.vda.scheduler"]) > version("1")"#,
            "no version in `none`",
        ),
        (r#"target.free > 1"#, "free"),
        (r#"facts["list"] > 1"#, "overload"),
    ] {
        match says(source) {
            Truth::Unknown(why) => assert!(why.contains(name), "{source}: {why}"),
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[test]
fn what_was_asked_for_is_known() {
    let world = world();
    let source = r#"facts["disk." + target.disk + ".scheduler"] == "x" || facts["secret"] == 1"#;
    evaluate(source, &world);
    assert_eq!(world.facts.take_asked(), ["disk.vda.scheduler", "secret"]);
    assert_eq!(world.target.take_asked(), ["disk"]);
    assert!(world.facts.take_asked().is_empty());
}

proptest! {
    #[test]
    fn any_text_is_survived(text in any::<String>(), like in "[a-z0-9\\[\\](){}.,?:!&|<>=+*/%'\" -]{0,40}") {
        let _ = syntax(&text);
        if syntax(&like).is_ok() {
            evaluate(&like, &world());
        }
    }
}

#[test]
fn what_is_no_condition() {
    for (source, expected) in [
        ("facts[", "column"),
        ("fact[\"a\"] == 1", "did you mean `facts`?"),
        ("versio(\"1\") == 1", "no function `versio`"),
        ("1 + 1", "int"),
    ] {
        let error = syntax(source).unwrap_err().to_string();
        assert!(error.contains(expected), "{source}: {error}");
    }
}
