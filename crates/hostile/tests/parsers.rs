//! Runs every parser on mutated inputs. By default each gets some hundred inputs; `ASSAY_ATTACK` multiplies this
//! number. `ASSAY_TARGET` selects parsers by the start of their names.

use assay_hostile::{LONGEST, all_targets, attack};
use assay_testing::{attack_factor, attacked};

/// Number of executions of each target if `ASSAY_ATTACK` is not set.
const SHORT: u64 = 200;

/// Seeds must not be cut. A cut seed is invalid, and every mutation of it would be refused at its end.
#[test]
fn every_real_input_is_mutated_whole() {
    for target in all_targets() {
        for (number, seed) in target.seeds.iter().enumerate() {
            let length = seed.len();
            assert!(length <= LONGEST, "{} {number}: {length}", target.name);
        }
    }
}

/// Every target of this test must also have a program in `fuzz`.
#[test]
fn every_parser_has_a_program_in_fuzz() {
    let programs = include_str!("../../../fuzz/Cargo.toml");
    for target in all_targets() {
        let path = format!("path = \"fuzz_targets/{}.rs\"", target.name);
        assert!(programs.contains(&path), "fuzz/Cargo.toml: {path}");
    }
}

#[test]
fn attack_parsers_with_mutated_inputs() {
    let factor = attack_factor();
    let chosen = std::env::var("ASSAY_TARGET").unwrap_or_default();
    let targets = all_targets();
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
