//! Chooses the order in which the layers are measured. Performs no I/O.

use assay_model::ladder::Ladder;
use assay_model::plan::Plan;
use assay_model::shuffle;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

/// Sets the order of the slots: round by round, and workload by workload within a round. All layers are measured in
/// random order, so that compared samples are close in time. All layers of a round use the same offsets and data.
/// Second measurements of a layer use different offsets and data, so that a lower layer cannot answer them from its
/// cache.
pub(super) fn order(plan: &mut Plan, ladder: &Ladder) {
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    let workloads = plan.workloads.len();
    let mut slots = std::mem::take(&mut plan.order);
    for slot in &mut slots {
        let again = ladder.rungs[slot.target].again.is_some();
        let number = u64::from(slot.round) * workloads as u64 + slot.workload as u64;
        slot.seed = plan.seed.wrapping_add(2 * number + u64::from(again)) & i64::MAX as u64;
    }
    for round in 1..=plan.rounds {
        let mut turn: Vec<usize> = (0..workloads).collect();
        shuffle(&mut turn, &mut random);
        for workload in turn {
            let ours =
                |slot: &&assay_model::plan::Slot| slot.round == round && slot.workload == workload;
            let mut block: Vec<_> = slots.iter().filter(ours).copied().collect();
            shuffle(&mut block, &mut random);
            plan.order.extend(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::layer_names::LadderPart;
    use crate::ladder::rungs::{Choice, settle};
    use crate::ladder::sibling_layers::SiblingLayers;
    use assay_lab::Disk;
    use assay_model::plan::{PlanSpec, Settings};
    use assay_model::workload::Engine;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_compared_lies_close_together_and_meets_the_same_offsets() {
        let disk = Disk::scratch("d", 64 << 20);
        let parts: BTreeSet<LadderPart> = LadderPart::ALL.into();
        let (ladder, _) = settle(&Choice {
            target: "/srv",
            parts: &parts,
            disk: &disk,
            ground: &SiblingLayers::default(),
            no_image: None,
            no_guest: None,
            no_loop: Err("needs root".to_owned()),
        });
        let spec = PlanSpec::from_toml(crate::ladder::DEFAULT_PLAN, "stack.toml").unwrap();
        let settings = Settings {
            targets: ladder.rungs.iter().map(|rung| rung.name.clone()).collect(),
            engine: Engine::Libaio,
            seed: 7,
        };
        let mut plan = spec.resolve(&settings).unwrap();
        let all = plan.order.len();
        order(&mut plan, &ladder);
        assert_eq!(plan.order.len(), all);
        let mut orders = BTreeSet::new();
        for block in plan.order.chunks(ladder.rungs.len()) {
            let (round, workload) = (block[0].round, block[0].workload);
            assert!(
                block
                    .iter()
                    .all(|slot| (slot.round, slot.workload) == (round, workload))
            );
            let again = |target: usize| ladder.rungs[target].again.is_some();
            let seeds = |wanted: bool| -> BTreeSet<u64> {
                let ours = block.iter().filter(|slot| again(slot.target) == wanted);
                ours.map(|slot| slot.seed).collect()
            };
            assert_eq!((seeds(true).len(), seeds(false).len()), (1, 1));
            assert_ne!(seeds(true), seeds(false));
            orders.insert(block.iter().map(|slot| slot.target).collect::<Vec<_>>());
        }
        assert!(orders.len() > 10, "every block has an order of its own");
    }
}
