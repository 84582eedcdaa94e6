use super::*;
use assay_model::workload::Pattern;

fn workload(pattern: Pattern) -> Workload {
    Workload {
        name: "w".to_owned(),
        pattern,
        block_size: Bytes(4096),
        queue_depth: 1,
        jobs: 1,
        read_percent: None,
        engine: Engine::Libaio,
        direct: true,
        durability: Durability::None,
        runtime: Some(Nanos(1_500_000_000)),
        ramp: Some(Nanos(250_000_000)),
    }
}

fn rendered(workload: &Workload) -> String {
    render(workload, Path::new("/srv/a:b/file"), Bytes(1 << 30), 7).unwrap()
}

#[test]
fn a_durable_write() {
    let mut w = workload(Pattern::RandWrite);
    w.durability = Durability::Dsync;
    assert_eq!(
        rendered(&w),
        "[w]\nfilename=/srv/a\\:b/file\nthread=1\nioengine=libaio\ndirect=1\nrw=randwrite\n\
         bs=4096\nsize=1073741824\niodepth=1\nnumjobs=1\ntime_based=1\nruntime=1500ms\n\
         ramp_time=250ms\nrandrepeat=0\nrandseed=7\nrefill_buffers=1\nsync=dsync\ninvalidate=1\n\
         allow_file_create=0\nfallocate=none\nunlink=0\n\
         percentile_list=50:90:95:99:99.9:99.99\nlat_percentiles=1\n"
    );
}

#[test]
fn reads_ask_for_nothing_that_only_writes_need() {
    let mut w = workload(Pattern::RandRead);
    w.durability = Durability::Fsync;
    let text = rendered(&w);
    assert!(!text.contains("fsync") && !text.contains("refill"));
}

#[test]
fn sequential_jobs_share_the_file_without_overlap() {
    let mut w = workload(Pattern::Write);
    w.jobs = 3;
    let text = rendered(&w);
    let share = (1u64 << 30) / 4096 / 3 * 4096;
    assert!(text.contains(&format!("\nsize={share}\n")));
    assert!(text.contains(&format!("\noffset_increment={share}\n")));
    w.pattern = Pattern::RandWrite;
    assert!(!rendered(&w).contains("offset_increment"));
}

#[test]
fn paths_that_fio_would_misread_are_refused() {
    let w = workload(Pattern::Read);
    for bad in [
        "/a\nb",
        "/a#b",
        "/a;b",
        "/a ",
        " a",
        "-",
        "",
        "/a${HOME}",
        "/a$ncpus",
        "/a\\:b",
        "/a\u{7}",
    ] {
        let error = render(&w, Path::new(bad), Bytes(1 << 20), 1).unwrap_err();
        assert!(matches!(error, RenderError::Filename { .. }), "{bad:?}");
        assert!(!error.to_string().contains('\n'));
    }
    let long = format!("/{}", "a:".repeat(3000));
    assert!(layout_job(Path::new(&long), Bytes(1), 1).is_err());
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let size = Bytes(1 << 20);
    let path = Path::new("/f");
    let mut w = workload(Pattern::Write);
    w.engine = Engine::Auto;
    assert!(render(&w, path, size, 1).is_err());
    let mut w = workload(Pattern::Write);
    w.block_size = Bytes(2 << 20);
    assert!(render(&w, path, size, 1).is_err());
    let mut w = workload(Pattern::Write);
    w.runtime = None;
    assert!(render(&w, path, size, 1).is_err());
    let mut w = workload(Pattern::Write);
    w.name = "global".to_owned();
    assert!(render(&w, path, size, 1).is_err());
    let mut w = workload(Pattern::Write);
    (w.engine, w.queue_depth) = (Engine::Psync, 4);
    assert!(render(&w, path, size, 1).is_err());
}

fn nbd(durability: Durability) -> Workload {
    Workload {
        engine: Engine::Nbd,
        durability,
        ..workload(Pattern::RandWrite)
    }
}

#[test]
fn an_export_is_flushed_by_fsync_and_by_nothing_else() {
    let socket = Path::new("nbd.sock");
    let size = Bytes(1 << 20);
    for durability in [Durability::Fsync, Durability::Fdatasync] {
        assert_eq!(
            render_nbd(&nbd(durability), socket, "arm", size, 7).unwrap(),
            "[w]\nuri=nbd+unix:///arm?socket=nbd.sock\nthread=1\nioengine=nbd\nrw=randwrite\n\
             bs=4096\nsize=1048576\niodepth=1\nnumjobs=1\ntime_based=1\nruntime=1500ms\n\
             ramp_time=250ms\nrandrepeat=0\nrandseed=7\nrefill_buffers=1\nfsync=1\n\
             percentile_list=50:90:95:99:99.9:99.99\nlat_percentiles=1\n"
        );
    }
    let error = render_nbd(&nbd(Durability::Dsync), socket, "arm", size, 7).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @r#"workload `w`: fio's nbd engine ignores sync=dsync: say `durability = "fsync"`, a flush after every write"#);
}

#[test]
fn an_export_needs_its_engine_and_a_file_another() {
    let size = Bytes(1 << 20);
    let file = workload(Pattern::Read);
    assert!(render_nbd(&file, Path::new("s"), "arm", size, 1).is_err());
    assert!(render(&nbd(Durability::None), Path::new("/f"), size, 1).is_err());
    let long = "s".repeat(108);
    assert!(render_nbd(&nbd(Durability::None), Path::new(&long), "arm", size, 1).is_err());
}

#[test]
fn no_name_ends_the_uri() {
    let socket = Path::new("/a b,c\n#;&?%/é$ncpus");
    assert_eq!(
        nbd_uri(socket, "x y"),
        "nbd+unix:///x%20y?socket=/a%20b%2Cc%0A%23%3B%26%3F%25/%C3%A9%24ncpus"
    );
}
