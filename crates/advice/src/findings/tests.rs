use super::*;
use crate::check::tests::PAGE;
use crate::page;
use assay_model::FactKind;

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
            FactPlace::from_text("/etc/vm:3"),
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
    // The other guest has no memory setting: the page does not apply to it.
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
    // If guests cannot be listed, there may be one.
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
    insta::assert_snapshot!(message("undo = [\"u\"]", "undo = []"), @"a/b.md:39: a remedy has at least one step, and says how it is reverted");
    assert!(message("severity = \"high\"", "severity = \"big\"").contains("critical"));
}

/// Returns the facts of a machine with the known setting `vm.1.cache` and the unreadable key `unread`.
fn part_of_it(unread: &str) -> Facts {
    let mut facts = Facts::default();
    let said = FactKind::Configured;
    facts.unknown(
        unread,
        "denied",
        said,
        FactPlace::from_text("/etc/vm.conf:2"),
    );
    facts.known(
        "vm.1.cache",
        "unsafe",
        said,
        FactPlace::from_text("/etc/vm.conf:3"),
    );
    facts.about(&Subject::new(["vm", "1"]));
    facts
}

fn of_subject(violated: &str) -> Advice {
    let table = TABLE
        .replace("vm.*.disk.*", "vm.*")
        .replace("applies = 'parent.memory > 0'\n", "")
        .replace(
            r#"this.cache == "unsafe" && facts["kernel.release"] != """#,
            violated,
        );
    check(&table)
}

fn of_machine(violated: &str) -> Advice {
    let table = TABLE
        .replace(
            "about = [\"vm.*.disk.*\"]\napplies = 'parent.memory > 0'\n",
            "",
        )
        .replace(
            r#"this.cache == "unsafe" && facts["kernel.release"] != """#,
            violated,
        );
    check(&table)
}

/// Returns the certainty and the places of the only finding; `None` if there is no finding.
fn judged(page: &Advice, facts: &Facts) -> Option<(Certainty, Vec<String>)> {
    let checked = findings([page], facts);
    assert!(checked.findings.len() <= 1, "{checked:#?}");
    let one = checked.findings.into_iter().next()?;
    let places = one.places.iter().map(FactPlace::to_string).collect();
    Some((one.certainty, places))
}

#[test]
fn what_may_stand_in_an_unread_file_is_unknown() {
    let unknown = |page: &Advice, facts: &Facts| {
        let judged = judged(page, facts);
        assert_eq!(
            judged,
            Some((Certainty::Unknown, vec!["/etc/vm.conf:2".to_owned()]))
        );
    };
    // A property of a subject: absent, tested for existence, compared, or required.
    for violated in [
        r#"this.sync == "off""#,
        r#"!has(this.sync)"#,
        r#"!("sync" in this) || this.sync == "off""#,
        r#"has(this.sync) && this.sync == "off""#,
        r#"!has(this.sync) || this.cache == "none""#,
        r#"kinds.sync == "configured""#,
    ] {
        unknown(&of_subject(violated), &part_of_it("vm.1"));
    }
    // A property of the machine, one and two levels below the unreadable source.
    for violated in [
        r#"facts["vm.sync"] == "off""#,
        r#"!("vm.sync" in facts)"#,
        r#""vm.1.sync" in facts && facts["vm.1.sync"] == "off""#,
        r#"!("vm.1.sync" in facts) || facts["vm.1.cache"] == "none""#,
    ] {
        unknown(&of_machine(violated), &part_of_it("vm"));
    }
    // A known value still decides, and so does one of another program.
    let violated = Some((Certainty::Violated, vec!["/etc/vm.conf:3".to_owned()]));
    let page = of_subject(r#"!has(this.sync) || this.cache == "unsafe""#);
    assert_eq!(judged(&page, &part_of_it("vm.1")), violated);
    let page = of_machine(r#"facts["vm.1.cache"] == "unsafe" && !("other.x" in facts)"#);
    assert_eq!(judged(&page, &part_of_it("vm")), violated);
    let page = of_machine(r#"facts["vmx.sync"] == "off""#);
    assert_eq!(judged(&page, &part_of_it("vm")), None);
}

#[test]
fn the_line_that_decides_is_marked() {
    let mut facts = Facts::default();
    let mut told = |key: &str, value: &str, line: usize| {
        let place = FactPlace::from_text(&format!("/etc/db.conf:{line}"));
        facts.known(key, value, FactKind::Configured, place);
    };
    told("db.commit", "1", 1);
    told("db.twice", "off", 2);
    told("db.role", "auto", 3);
    let built_in = FactPlace::from("the manual");
    facts.known("db.sync", "off", FactKind::Default, built_in);
    let marked = |violated: &str, at: &str| {
        let mut page = of_machine(violated);
        let check = page.check.as_mut().unwrap();
        check.say.at = (!at.is_empty()).then(|| at.to_owned());
        check.remedy.as_mut().unwrap().steps = vec!["{at} {at.file}".to_owned()];
        let checked = findings([&page], &facts);
        let [one] = checked.findings.as_slice() else {
            panic!("{violated}: {checked:#?}")
        };
        let Fix::Steps(remedy) = &one.fix else {
            panic!()
        };
        remedy.steps[0].clone()
    };
    let says = |key: &str, value: &str| format!(r#"facts["db.{key}"] == "{value}""#);
    let right_or_wrong = format!(
        r#"facts["db.commit"] in ["0", "2"] || {}"#,
        says("twice", "off")
    );
    assert_eq!(marked(&right_or_wrong, ""), "/etc/db.conf:2 /etc/db.conf");
    let role_first = format!("{} && {}", says("role", "auto"), says("twice", "off"));
    assert_eq!(marked(&role_first, ""), "/etc/db.conf:3 /etc/db.conf");
    assert_eq!(
        marked(&role_first, "facts.db.twice"),
        "/etc/db.conf:2 /etc/db.conf"
    );
    let there = format!(r#"facts["db.commit"] != "" && {}"#, says("twice", "off"));
    assert_eq!(marked(&there, ""), "/etc/db.conf:2 /etc/db.conf");
    // A default decides: there is no line to mark.
    let default = format!(r#"facts["db.commit"] == "0" || {}"#, says("sync", "off"));
    assert_eq!(marked(&default, ""), "the manual its configuration");
}
