//! Tests properties that hold for any set of disks.

use assay_planner::btrfs::{Profile, simulate_filesystem};
use assay_planner::layout::{Context, Disk, place_declustered, rank, search};
use assay_planner::zfs::{Pool, VdevKind, Version, parse_spec};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

fn usable(spec: &str, disks: &[u64], ashift: u32) -> u64 {
    Pool {
        vdevs: parse_spec(spec, disks).unwrap(),
        ashift,
        version: Version::CHECKED,
    }
    .capacity()
    .unwrap()
    .zfs_usable
}

/// Returns an upper bound, for any scheme, of the data on these disks if `survives` of them may fail: the sum of the
/// disks without the largest ones.
fn bound(disks: &[u64], survives: usize) -> u64 {
    let mut sorted = disks.to_vec();
    sorted.sort_unstable();
    sorted[..sorted.len() - survives].iter().sum()
}

/// Generates disks on which every profile has space for its first chunks.
fn disks(least: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(4u64..400, least..9)
        .prop_map(|sizes| sizes.into_iter().map(|s| s * GIB + s * 4096).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn zfs_never_exceeds_the_information_bound(disks in disks(4), ashift in 9u32..=16) {
        for (spec, survives) in [("mirror", disks.len() - 1), ("raidz1", 1), ("raidz2", 2), ("raidz3", 3), ("draid2", 2)] {
            let holds = usable(spec, &disks, ashift);
            prop_assert!(holds <= bound(&disks, survives), "{spec}");
        }
    }

    #[test]
    fn order_of_disks_does_not_matter(disks in disks(4), ashift in 9u32..=16) {
        let mut other = disks.clone();
        other.reverse();
        for spec in ["mirror", "raidz1", "raidz2", "raidz3", "draid1:2d"] {
            prop_assert_eq!(usable(spec, &disks, ashift), usable(spec, &other, ashift));
        }
        let by = |disks: &[u64]| place_declustered(disks, 2, 1).unwrap().data;
        prop_assert_eq!(by(&disks), by(&other));
    }

    #[test]
    fn another_disk_never_holds_less(disks in disks(4), more in 1u64..4_000) {
        let mut grown = disks.clone();
        grown.push(more * GIB);
        for profile in Profile::ALL {
            if profile == Profile::Dup {
                continue;
            }
            let metadata = profile.metadata(disks.len());
            let before = simulate_filesystem(&disks, profile, metadata).unwrap();
            let after = simulate_filesystem(&grown, profile, metadata).unwrap();
            // The allocator is greedy, so the last chunks may be distributed less well.
            prop_assert!(
                after.stored + 2 * before.chunk.max(after.chunk) >= before.stored,
                "{profile}: {} then {}", before.stored, after.stored
            );
        }
        for (data, parity) in [(1, 1), (2, 1), (2, 2)] {
            prop_assert!(
                place_declustered(&grown, data, parity).unwrap().data >= place_declustered(&disks, data, parity).unwrap().data
            );
        }
        let pool = |disks: &[u64]| {
            let spec = format!("{}*single", disks.len());
            usable(&spec, disks, 12)
        };
        prop_assert!(pool(&grown) >= pool(&disks));
    }

    #[test]
    fn btrfs_stays_within_its_bounds(disks in disks(4)) {
        for profile in Profile::ALL {
            if profile == Profile::Dup {
                continue;
            }
            let fs = simulate_filesystem(&disks, profile, profile.metadata(disks.len())).unwrap();
            let survives = profile.survives() as usize;
            prop_assert!(fs.stored <= bound(&disks, survives));
            let total: u64 = disks.iter().sum();
            if profile == Profile::Raid1 {
                prop_assert!(fs.stored <= total / 2);
            }
            for device in &fs.devices {
                prop_assert_eq!(
                    device.size, device.data + device.metadata + device.system + device.unallocated
                );
            }
        }
    }

    #[test]
    fn larger_blocks_never_cost_more_a_byte(parity in 1u64..=3, more in 1u64..12, ashift in 9u32..=16) {
        let kind = VdevKind::Raidz { parity, children: parity + more };
        let share = |block: u64| block as f64 / kind.allocated(block, ashift) as f64;
        for block in [4096u64, 16384, 131_072, 1 << 20] {
            prop_assert!(share(block) <= more as f64 / (parity + more) as f64 + 1e-12);
        }
        prop_assert!(kind.allocated(1 << 20, ashift) <= 8 * kind.allocated(128 << 10, ashift));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_search_obeys_its_own_figures(disks in disks(2)) {
        let offered: Vec<Disk> = disks.iter().map(|&size| Disk { size, price: None }).collect();
        let mut plans = search(&offered, &[], &Context::default()).unwrap().plans;
        let total: u64 = disks.iter().sum();
        for plan in &plans {
            prop_assert!(plan.usable <= total && plan.raw == total, "{}", plan.layout);
            prop_assert!(plan.survives <= plan.survives_at_best, "{}", plan.layout);
            prop_assert!((0.0..=1.0).contains(&plan.loss_per_year), "{}", plan.layout);
            prop_assert!((0.0..=1.0).contains(&plan.unlucky_share), "{}", plan.layout);
            for step in &plan.growth {
                prop_assert!(step.gives <= 64_000 * GIB);
            }
            let drawn: u64 = plan.disks.iter().flatten().map(|s| s.bytes).sum();
            prop_assert!(drawn.abs_diff(total) <= 4096 * disks.len() as u64, "{}", plan.layout);
        }
        let before = plans.len();
        rank(&mut plans, &[], None);
        prop_assert_eq!(plans.len(), before);
    }
}

/// mkfs.btrfs 6.2 on files of these sizes reports "not enough free space to allocate chunk" for raid1c3, and succeeds
/// for raid1.
#[test]
fn what_mkfs_refuses_is_refused() {
    let small = GIB + 4096;
    let disks = [small, small, small, 7 * small];
    let made =
        |profile: Profile| simulate_filesystem(&disks, profile, profile.metadata(disks.len()));
    assert!(made(Profile::Raid1c3).is_err());
    assert!(made(Profile::Raid1).is_ok());
}
