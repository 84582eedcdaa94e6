//! Every parser over mutated inputs: some hundred each, or as many times more as `ASSAY_ATTACK` says;
//! `ASSAY_TARGET` chooses some by the start of their names.

use assay_hostile::{all, attack};
use assay_testing::{attacked, factor};

/// Executions of each target when nothing is said.
const SHORT: u64 = 200;

#[test]
fn attack_parsers_with_mutated_inputs() {
    let factor = factor();
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
    for input in &broken {
        eprintln!("{input}");
    }
    attacked("parsers", tried, held);
}
