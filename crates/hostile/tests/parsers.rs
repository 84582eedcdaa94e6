//! Every parser over mutated inputs: some hundred each, or as many times more as `ASSAY_ATTACK` says;
//! `ASSAY_TARGET` chooses some by the start of their names.

use assay_hostile::{all, attack};

/// Executions of each target when nothing is said.
const SHORT: u64 = 200;

#[test]
fn no_parser_panics_or_hangs() {
    let factor = std::env::var("ASSAY_ATTACK").ok();
    let factor: u64 = factor.and_then(|text| text.parse().ok()).unwrap_or(1);
    let chosen = std::env::var("ASSAY_TARGET").unwrap_or_default();
    let targets = all();
    let (mut tried, mut held) = (0, 0);
    let mut broken = Vec::new();
    for target in targets
        .iter()
        .filter(|target| target.name.starts_with(&chosen))
    {
        assert!(
            !target.seeds.is_empty(),
            "{} has no real input",
            target.name
        );
        let executions = SHORT * factor;
        tried += executions;
        match attack(target, executions) {
            Ok(()) => held += executions,
            Err(failure) => broken.push(format!(
                "{}: {}",
                failure.target,
                failure.input.escape_ascii()
            )),
        }
        if factor > 1 {
            println!("{}: {executions}", target.name);
        }
    }
    println!("attack: parsers: tried {tried}, held {held}");
    assert!(broken.is_empty(), "{broken:#?}");
}
