//! Runs the power-cut proof with a real QEMU.
#![allow(clippy::disallowed_methods, reason = "it looks at what was made")]

use crate::bench::Bench;
use assay_changes::side_by_side::build;
use assay_host::LiveHost;
use assay_loads::Cancel;
use assay_model::Bytes;
use assay_model::change::{Aio, Arm, CacheMode, ImageArm, ImageFormat};
use assay_model::trial::{DurabilityProof, Side};

fn proof(format: ImageFormat, cache: CacheMode, luks: bool, cluster: &str) -> DurabilityProof {
    let bench = Bench::new();
    let options = match format {
        ImageFormat::Raw => [].into(),
        ImageFormat::Qcow2 => [("cluster_size".to_owned(), cluster.to_owned())].into(),
    };
    let arm = Arm::Image(ImageArm {
        format,
        options,
        cache,
        aio: Aio::Threads,
        luks,
        filled: false,
    });
    let cancel = Cancel::default();
    let place = bench.place("now", Bytes(1 << 20));
    let mut built = build(&LiveHost, &bench.session, &arm, &place, &cancel).unwrap();
    let proof = built.prove_durability(Side::Changed, &cancel).unwrap();
    assert_eq!(proof.side, Side::Changed);
    assert!(proof.acknowledged >= 200);
    drop(built);
    assert!(bench.nothing_left());
    proof
}

#[test]
fn modes_that_keep_their_promise_lose_nothing() {
    for (format, cache) in [
        (ImageFormat::Raw, CacheMode::None),
        (ImageFormat::Qcow2, CacheMode::None),
        (ImageFormat::Qcow2, CacheMode::Writeback),
        (ImageFormat::Raw, CacheMode::Writethrough),
        (ImageFormat::Qcow2, CacheMode::Directsync),
    ] {
        assert_eq!(proof(format, cache, false, "64k").lost, 0, "{cache:?}");
    }
}

#[test]
fn unsafe_loses_everything() {
    for format in [ImageFormat::Raw, ImageFormat::Qcow2] {
        let proof = proof(format, CacheMode::Unsafe, false, "64k");
        assert_eq!(proof.lost, proof.acknowledged);
    }
}

#[test]
fn encryption_and_cluster_size_make_no_difference() {
    for (cache, format, luks, cluster) in [
        (CacheMode::None, ImageFormat::Raw, true, ""),
        (CacheMode::Writeback, ImageFormat::Qcow2, true, "64k"),
        (CacheMode::Writethrough, ImageFormat::Qcow2, false, "8k"),
        (CacheMode::Unsafe, ImageFormat::Qcow2, false, "2M"),
    ] {
        let proof = proof(format, cache, luks, cluster);
        let lost = if cache == CacheMode::Unsafe {
            proof.acknowledged
        } else {
            0
        };
        assert_eq!(proof.lost, lost, "{cache:?} {format:?} {cluster}");
    }
}

#[test]
fn an_interrupted_proof_leaves_the_arm_as_it_was() {
    let bench = Bench::new();
    let arm = Arm::Image(ImageArm {
        format: ImageFormat::Raw,
        options: [].into(),
        cache: CacheMode::None,
        aio: Aio::Threads,
        luks: false,
        filled: false,
    });
    let place = bench.place("now", Bytes(1 << 20));
    let cancel = Cancel::default();
    let mut built = build(&LiveHost, &bench.session, &arm, &place, &cancel).unwrap();
    let interrupted = Cancel::default();
    interrupted.cancel();
    let error = built.prove_durability(Side::Now, &interrupted).unwrap_err();
    assert!(
        matches!(error, assay_changes::side_by_side::ArmError::Cancelled),
        "{error}"
    );
    assert!(!bench.arm("now").join("proof").exists());
    assert!(built.read_back().is_ok());
    assert_eq!(built.prove_durability(Side::Now, &cancel).unwrap().lost, 0);
}
