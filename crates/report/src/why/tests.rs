//! Tests an answer with several suspects, one of which has a hostile name, and an answer about a healthy machine.

use super::{
    answer_to_json, bound_answer, read_answer, render_answer_markdown, render_answer_page,
    render_answer_text,
};
use assay_render::Style;
use assay_render::text::measure_width;
use assay_why::{
    Entity, EntityKind, MachineSnapshot, SlownessAnswer, WatchSubject, WatchWindow, judge_window,
};

/// Judges ten seconds of a group at its quota, of unanswered DNS queries, and of a healthy machine.
fn answer(is_slow: bool) -> SlownessAnswer {
    let look = |second: u64| {
        let at = second as f64;
        let mut look = MachineSnapshot {
            at_ms: second * 1000,
            ..MachineSnapshot::default()
        };
        look.set("cpu.count", 2.0);
        look.set("cpu.user_total", 0.4 * at);
        look.set("cpu.idle_total", 1.6 * at);
        if is_slow {
            look.set("dns.open", 0.7);
            let mut group = Entity::new(EntityKind::Group, "/w<b>\u{1b}[2J", "w<b>\u{1b}[2J");
            for (key, rate) in [
                ("periods", 10.0),
                ("throttled", 9.0),
                ("throttled_s", 0.8),
                ("usage", 0.2),
            ] {
                group.set(&format!("cpu.{key}_total"), rate * at);
            }
            group.set("cpu.quota", 0.2);
            look.entities.push(group);
            look.missing.push("/x: \u{202e}denied".to_owned());
        }
        look
    };
    let looks: Vec<MachineSnapshot> = (0..=10).map(look).collect();
    judge_window(
        &WatchWindow::new(&looks, &WatchSubject::Machine),
        &WatchSubject::Machine,
    )
    .unwrap()
}

fn text(answer: &SlownessAnswer, width: usize) -> String {
    render_answer_text(
        answer,
        Style {
            color: false,
            width,
        },
    )
}

#[test]
fn in_a_terminal() {
    insta::assert_snapshot!(text(&answer(true), 80));
}

#[test]
fn nothing_suspicious_is_an_answer() {
    insta::assert_snapshot!(text(&answer(false), 80));
}

#[test]
fn no_line_is_wider_than_the_terminal_but_for_commands() {
    for width in [40, 60, 80, 132] {
        let shown = text(&answer(true), width);
        for line in shown
            .lines()
            .filter(|line| !line.starts_with("  ") || line.starts_with("   "))
        {
            assert!(measure_width(line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn no_form_lets_a_hostile_name_through() {
    let answer = answer(true);
    let page = render_answer_page(&answer);
    assert!(page.contains("<svg") && page.trim_end().ends_with("</html>"));
    let json = answer_to_json(&answer);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["suspects"][0]["id"], "cpu-quota");
    assert!(document["schema"].is_number() && document["curves"].is_object());
    let markdown = render_answer_markdown(&answer);
    for form in [page.as_str(), &json, &markdown, &text(&answer, 80)] {
        assert!(!form.contains(['\u{1b}', '\u{202e}']));
    }
    assert!(!page.contains("w<b>") && !markdown.contains("w<b>"));
}

#[test]
fn a_stored_answer_of_somebody_hostile_is_bounded_in_every_form() {
    let long = format!("<script>\u{1b}[2J\u{202e}{}", "x y".repeat(400_000));
    let suspect = serde_json::json!({
        "id": long, "title": long, "layer": long, "kind": "group", "name": long, "share": 0.8,
        "evidence": [long], "against": [long], "why": long, "next": [long],
    });
    let document = serde_json::json!({
        "subject": { "named": long }, "machine": long, "started_ms": 0, "seconds": 60.0, "looks": 30,
        "waiting": 1.0, "unexplained": 0.2, "classes": [{ "class": long, "tasks": 1.0, "explained": 0.8 }],
        "suspects": vec![suspect; 3], "figures": [[long, long]], "missing": [long],
        "curves": { format!("cpu: {long}"): [[0.0, 1.0], [60.0, 2.0]] }, "own_cpu": null,
    });
    let answer = read_answer(document).unwrap();
    let page = render_answer_page(&answer);
    for form in [
        page.as_str(),
        &answer_to_json(&answer),
        &render_answer_markdown(&answer),
        &text(&answer, 80),
    ] {
        assert!(!form.contains(['\u{1b}', '\u{202e}']));
        assert!(form.len() < 200_000, "{}", form.len());
    }
    assert!(!page.contains("<script>"));
    assert_eq!(
        answer_to_json(&bound_answer(answer.clone())),
        answer_to_json(&answer)
    );
}
