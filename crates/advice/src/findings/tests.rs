use super::*;
use crate::check::tests::PAGE;
use crate::page;

fn check(table: &str) -> Advice {
    let text = PAGE.replacen("+++\n## Claim", &format!("{table}\n+++\n## Claim"), 1);
    page::parse("a/b.md", &text).unwrap_or_else(|error| panic!("{error}"))
}

const TABLE: &str = r#"
[check]
about = ["vm.*.disk.*"]
applies = 'parent.memory > 0'
violated = 'this.cache == "unsafe" && facts["kernel.release"] != ""'
severity = "high"
say = { title = "{name}: {cache} {parent.memory} {facts.kernel.release} {else}", text = "t" }
remedy = { steps = ["s {cache}"], undo = ["u"] }
"#;

fn facts() -> Facts {
    let mut facts = Facts::default();
    let runtime = FactKind::Runtime;
    facts.known("kernel.release", "6.1", runtime, "/proc/x");
    for (guest, disk, cache) in [
        ("1", "a.b", "unsafe"),
        ("1", "c", "none"),
        ("2", "d", "unsafe"),
    ] {
        let key = format!("vm.{guest}.disk.{disk}.cache");
        facts.known(
            key,
            cache,
            FactKind::Configured,
            Place::from_text("/etc/vm:3"),
        );
        facts.about(&Subject::new(["vm", guest, "disk", disk]));
    }
    facts.known("vm.1.memory", 4, runtime, "/proc/x");
    facts.about(&Subject::new(["vm", "1"]));
    facts
}

#[test]
fn subjects_are_held_against_the_page_one_by_one() {
    let page = check(TABLE);
    let checked = findings([&page], &facts());
    let [one] = checked.findings.as_slice() else {
        panic!("{checked:#?}")
    };
    // The other guest says nothing of its memory: the page does not apply to it.
    assert_eq!(one.subject.to_string(), "vm.1.disk.a.b");
    assert_eq!(one.title, "1 disk a.b: unsafe 4 6.1 {else}");
    assert_eq!(one.places[0].line(), Some(3));
    assert_eq!(checked.rules[0].applied, 2);
    assert_eq!(one.fingerprint(), "b@vm.1.disk.a.b");
}

#[test]
fn what_could_not_be_read_is_unknown_and_what_is_not_there_is_not() {
    let page = check(TABLE);
    let mut facts = facts();
    facts.map.remove("kernel.release");
    assert!(findings([&page], &facts).findings.is_empty());
    facts.unknown("kernel.release", "denied", FactKind::Runtime, "/proc/x");
    let checked = findings([&page], &facts);
    assert_eq!(checked.findings.len(), 1);
    assert_eq!(checked.findings[0].certainty, Certainty::Unknown);
    // Where the guests cannot be listed, there may be one.
    let mut facts = Facts::default();
    facts.unknown("vm", "denied", FactKind::Runtime, "/proc");
    let checked = findings([&page], &facts);
    assert_eq!((checked.findings.len(), checked.has_unknown()), (1, true));
    assert!(!fails(&checked, Severity::Info));
}

#[test]
fn a_table_that_is_not_whole_is_refused() {
    let message = |from: &str, to: &str| {
        let table = TABLE.replacen(from, to, 1);
        assert_ne!(table, TABLE);
        let text = PAGE.replacen("+++\n## Claim", &format!("{table}\n+++\n## Claim"), 1);
        page::parse("a/b.md", &text).unwrap_err().to_string()
    };
    insta::assert_snapshot!(message("vm.*.disk.*", "vm.disk"), @"a/b.md:34: `vm.disk` names no subjects: write the kind and a star, such as `zfs.dataset.*`");
    insta::assert_snapshot!(message("this.cache", "that.cache"), @r#"a/b.md:36: condition `that.cache == "unsafe" && facts["kernel.release"] != ""`: `that` is not known here; conditions look into `facts`, `parameters`, `target`, `trial`, `this`, `kinds` and `parent`"#);
    assert!(message("remedy =", "# ").contains("not_actionable"));
    insta::assert_snapshot!(message("undo = [\"u\"]", "undo = []"), @"a/b.md:39: a remedy has at least one step, and says how it is taken back");
    assert!(message("severity = \"high\"", "severity = \"big\"").contains("critical"));
}
