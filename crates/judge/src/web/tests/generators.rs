//! Tests the judgement of steps of several generators.

use super::*;

/// Returns a step of three generators with equal load.
fn of_three() -> Step {
    let whole = closed();
    let part = |generator: &str| Part {
        generator: generator.to_owned(),
        connections: 10,
        pace: Pace::Closed,
        clock: Some(Offset {
            offset_us: 5_000_000,
            error_us: 300,
        }),
        late_us: 120,
        lost: None,
        measured: whole.measured.clone(),
        link: whole.link.clone(),
        machine: whole.machine.clone(),
    };
    let parts: Vec<Part> = ["a", "b", "c"].into_iter().map(part).collect();
    Step {
        connections: 30,
        measured: Measured::together(parts.iter().map(|part| &part.measured)),
        server: Err("elsewhere".to_owned()),
        link: Err("of each".to_owned()),
        machine: MachineUse::default(),
        parts,
        ..whole
    }
}

#[test]
fn several_generators_are_one_load_and_each_is_judged_for_itself() {
    let step = of_three();
    assert!(codes(&step).is_empty(), "{:?}", doubts(&step));
    let judged = judge(&[step.clone(), step.clone()], 1);
    let result = &judged.steps[0];
    assert_eq!((result.rounds, result.rounds_void), (2, 0));
    assert!((result.rate.unwrap().value - 30_000.0).abs() < 1e-6);
    let names: Vec<&str> = result
        .generators
        .iter()
        .map(|one| one.generator.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    for one in &result.generators {
        assert!((one.rate - 10_000.0).abs() < 1e-6 && (one.share - 1.0 / 3.0).abs() < 1e-9);
    }

    // One full generator limits all, although the three together are not full.
    let mut full = step.clone();
    full.parts[1].measured.cpu = Nanos(2 * S);
    let found = doubts(&full);
    assert_eq!(
        codes(&full),
        [("generator-full".to_owned(), Severity::Void)]
    );
    assert!(found[0].evidence.starts_with("b: "), "{found:?}");
    let limited = limit(&full);
    assert_eq!(limited.who, Limited::Generator);
    assert!(limited.evidence.starts_with("b: "), "{limited:?}");
    full.parts[2].measured.cpu = Nanos(2 * S);
    let both = &doubts(&full)[0].evidence;
    insta::assert_snapshot!(both, @"b: the generator's threads (it has 1) were on a CPU for 100 % of the time and waited for one for 0 %; c: the generator's threads (it has 1) were on a CPU for 100 % of the time and waited for one for 0 %");

    let mut lost = step.clone();
    lost.parts[0].lost = Some("killed\u{1b}[2J".to_owned());
    assert_eq!(
        codes(&lost),
        [("generator-lost".to_owned(), Severity::Void)]
    );
    let said = &doubts(&lost)[0].evidence;
    assert!(
        said.contains("a: killed") && !said.contains('\u{1b}'),
        "{said}"
    );

    // 5 % of 2 s are 100 ms, which the clock difference alone may cause.
    let mut apart = step;
    apart.parts[2].clock.as_mut().unwrap().error_us = 99_000;
    assert!(codes(&apart).is_empty(), "{:?}", doubts(&apart));
    apart.parts[2].late_us = 2_000;
    assert_eq!(codes(&apart), [("not-together".to_owned(), Severity::Void)]);
}
