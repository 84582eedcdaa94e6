//! Builds disk images with the real QEMU and the real fio.
#![allow(clippy::disallowed_methods, reason = "it looks at what was made")]

use crate::bench::{Bench, alive};
use assay_changes::side_by_side::{ArmError, Built, Endpoint, build};
use assay_fio::job;
use assay_host::LiveHost;
use assay_loads::Cancel;
use assay_loads::fio::{Fio, FioEnd, FioRequest};
use assay_model::change::{Aio, Arm, CacheMode, ImageArm, ImageFormat};
use assay_model::workload::{Durability, Engine, Pattern};
use assay_model::{Bytes, Nanos, Workload};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const SIZE: Bytes = Bytes(32 << 20);

fn plain() -> ImageArm {
    ImageArm {
        format: ImageFormat::Qcow2,
        options: [].into(),
        cache: CacheMode::None,
        aio: Aio::Threads,
        luks: false,
        filled: false,
    }
}

fn options<const N: usize>(options: [(&str, &str); N]) -> ImageArm {
    ImageArm {
        options: options
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..plain()
    }
}

fn make<'a>(bench: &'a Bench, arm: &ImageArm) -> Result<Built<'a>, ArmError> {
    let place = bench.place("now", SIZE);
    let arm = Arm::Image(arm.clone());
    build(&LiveHost, &bench.session, &arm, &place, &Cancel::default())
}

fn measure(built: &Built<'_>) -> u64 {
    let fio = Fio::find(&LiveHost, None).unwrap();
    fio.has_engine(&LiveHost, Engine::Nbd).unwrap();
    let Endpoint::Nbd { socket, export } = built.endpoint() else {
        panic!("an image is served over NBD");
    };
    let work = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(socket, work.path().join("nbd.sock")).unwrap();
    let workload = Workload {
        name: "w".to_owned(),
        pattern: Pattern::RandWrite,
        block_size: Bytes(4096),
        queue_depth: 4,
        jobs: 2,
        read_percent: None,
        engine: Engine::Nbd,
        direct: true,
        durability: Durability::Fsync,
        runtime: Some(Nanos(300_000_000)),
        ramp: None,
    };
    let job = job::render_nbd(&workload, Path::new("nbd.sock"), &export, SIZE, 1).unwrap();
    let request = FioRequest {
        job: &job,
        work_dir: work.path(),
        log_every: Nanos(100_000_000),
        block: Bytes(4096),
        limit: Nanos(60_000_000_000),
    };
    let output = fio.run(&request, &Cancel::default()).unwrap();
    assert_eq!(output.ended, FioEnd::Exited(0), "{}", output.stderr);
    let text = String::from_utf8(output.json).unwrap();
    let document = &assay_fio::json::parse(&text).unwrap()[0];
    let writes = document.jobs.iter().filter_map(|job| job.write());
    writes.map(|io| io.count).sum()
}

#[test]
fn two_images_side_by_side_are_measured_by_fio() {
    let bench = Bench::new();
    let arms = [
        options([("cluster_size", "8k")]),
        options([("cluster_size", "2M")]),
    ];
    let [small, large] = [0, 1].map(|index| {
        let arm = Arm::Image(arms[index].clone());
        build(
            &LiveHost,
            &bench.session,
            &arm,
            &bench.place(["now", "changed"][index], SIZE),
            &Cancel::default(),
        )
        .unwrap()
    });
    for _ in 0..2 {
        assert!(measure(&small) > 0);
        assert!(measure(&large) > 0);
    }
    assert!(small.read_back().unwrap().contains("cluster_size=8192,"));
    assert!(large.read_back().unwrap().contains("cluster_size=2097152,"));
    let pids = [&small, &large].map(|built| built.server_pid().unwrap());
    drop((small, large));
    for pid in pids {
        assert!(!alive(pid));
    }
    assert!(bench.nothing_left());
}

#[test]
fn every_cache_mode_and_submission_reads_back_as_asked() {
    let bench = Bench::new();
    for (cache, aio, said) in [
        (
            CacheMode::None,
            Aio::Native,
            "cache.direct=on cache.no-flush=off, open with O_DIRECT, aio=native writethrough=off",
        ),
        (
            CacheMode::None,
            Aio::IoUring,
            "cache.direct=on cache.no-flush=off, open with O_DIRECT, aio=io_uring writethrough=off",
        ),
        (
            CacheMode::Writeback,
            Aio::Threads,
            "cache.direct=off cache.no-flush=off, open without O_DIRECT, aio=threads writethrough=off",
        ),
        (
            CacheMode::Writethrough,
            Aio::Threads,
            "cache.direct=off cache.no-flush=off, open without O_DIRECT, aio=threads writethrough=on",
        ),
        (
            CacheMode::Directsync,
            Aio::Threads,
            "cache.direct=on cache.no-flush=off, open with O_DIRECT, aio=threads writethrough=on",
        ),
        (
            CacheMode::Unsafe,
            Aio::Threads,
            "cache.direct=off cache.no-flush=on, open without O_DIRECT, aio=threads writethrough=off",
        ),
    ] {
        for format in [ImageFormat::Raw, ImageFormat::Qcow2] {
            let arm = ImageArm {
                cache,
                aio,
                format,
                ..plain()
            };
            let built = make(&bench, &arm).unwrap();
            let read = built.read_back().unwrap();
            assert!(read.ends_with(said), "{read}");
            assert_eq!(
                read,
                built.read_back().unwrap(),
                "it does not change by itself"
            );
        }
    }
}

#[test]
fn creation_options_are_in_the_image() {
    let bench = Bench::new();
    let arm = options([("extended_l2", "on"), ("cluster_size", "128k")]);
    let read = make(&bench, &arm).unwrap().read_back().unwrap();
    assert!(
        read.contains("cluster_size=131072") && read.contains("extended_l2=on"),
        "{read}"
    );
    for (mode, least) in [("off", 0), ("metadata", 0), ("falloc", 32), ("full", 32)] {
        let built = make(&bench, &options([("preallocation", mode)])).unwrap();
        let image = bench.arm("now").join("image");
        let found = std::os::unix::fs::MetadataExt::blocks(&image.metadata().unwrap()) / 2048;
        assert_eq!(found >= 32, least == 32, "{mode}: {found} MiB");
        assert!(measure(&built) > 0);
    }
}

#[test]
fn an_encrypted_image_keeps_its_key_to_itself() {
    let bench = Bench::new();
    for format in [ImageFormat::Raw, ImageFormat::Qcow2] {
        let arm = ImageArm {
            format,
            luks: true,
            filled: true,
            ..plain()
        };
        let built = make(&bench, &arm).unwrap();
        let read = built.read_back().unwrap();
        assert!(
            read.contains("luks") && read.contains("cipher_mode=xts"),
            "{read}"
        );
        assert!(!bench.arm("now").join("key").exists());
        assert!(measure(&built) > 0);
    }
}

#[test]
fn a_filled_image_holds_every_byte() {
    let bench = Bench::new();
    let arm = ImageArm {
        filled: true,
        format: ImageFormat::Raw,
        ..plain()
    };
    let built = make(&bench, &arm).unwrap();
    let bytes = std::fs::read(bench.arm("now").join("image")).unwrap();
    assert_eq!(bytes.len() as u64, SIZE.0);
    let empty = bytes
        .chunks(4096)
        .filter(|block| block.iter().all(|byte| *byte == 0));
    assert_eq!(empty.count(), 0);
    drop(built);
}

#[test]
fn hostile_and_long_names_of_directories() {
    let long = "x".repeat(120);
    let bench = Bench::below(&format!(
        "a b,c,,d=e
'\"$(x);#%:é/{long}/{long}"
    ));
    for luks in [false, true] {
        let built = make(&bench, &ImageArm { luks, ..plain() }).unwrap();
        assert!(built.read_back().unwrap().contains("O_DIRECT"));
        assert!(measure(&built) > 0);
    }
    assert!(bench.nothing_left());
}

#[test]
fn what_qemu_does_not_know_is_said_in_its_words() {
    let bench = Bench::new();
    for (arm, said) in [
        (
            options([("no_such_option", "1")]),
            "Invalid parameter 'no_such_option'",
        ),
        (options([("cluster_size", "3")]), "luster size must be"),
        (
            options([("extended_l2", "on"), ("cluster_size", "8k")]),
            "xtended L2",
        ),
        (options([("data_file", "/etc/passwd")]), "assay settles"),
    ] {
        let error = make(&bench, &arm).err().unwrap().to_string();
        assert!(error.contains(said) && !error.contains('\n'), "{error}");
        assert!(bench.nothing_left(), "{error}");
    }
}

#[test]
fn no_room_is_said_before_anything_is_written() {
    let bench = Bench::new();
    let place = bench.place("now", Bytes(1 << 60));
    let error = build(
        &LiveHost,
        &bench.session,
        &Arm::Image(plain()),
        &place,
        &Cancel::default(),
    );
    assert!(matches!(error, Err(ArmError::Space { .. })));
    assert!(bench.nothing_left());
}

#[test]
fn an_interrupted_fill_leaves_nothing() {
    let bench = Bench::new();
    let cancel = Cancel::default();
    cancel.cancel();
    let place = bench.place("now", SIZE);
    let arm = Arm::Image(ImageArm {
        filled: true,
        ..plain()
    });
    assert!(matches!(
        build(&LiveHost, &bench.session, &arm, &place, &cancel),
        Err(ArmError::Cancelled)
    ));
    assert!(bench.nothing_left());
}

#[test]
fn a_second_arm_of_the_same_name_harms_nothing() {
    let bench = Bench::new();
    let built = make(&bench, &plain()).unwrap();
    assert!(matches!(
        make(&bench, &plain()),
        Err(ArmError::Refused { .. })
    ));
    assert!(bench.arm("now").join("image").exists());
    assert!(built.read_back().is_ok());
}

#[test]
fn only_this_user_reads_the_arm() {
    let bench = Bench::new();
    let built = make(&bench, &plain()).unwrap();
    let mode = bench.arm("now").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(built);
}
