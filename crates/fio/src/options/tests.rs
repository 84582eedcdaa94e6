use super::*;
use proptest::prelude::*;

fn one(text: &str) -> JobOptions {
    let mut calls = command_line(text).unwrap();
    assert_eq!(calls.len(), 1, "{text}");
    let call = calls.remove(0);
    assert_eq!(call.jobs.len(), 1, "{text}");
    call.jobs.into_iter().next().unwrap()
}

#[test]
fn defaults_are_those_of_fio() {
    let job = one("fio --name=x");
    assert_eq!(job.engine, "psync");
    assert_eq!((job.iodepth, job.numjobs), (1, 1));
    assert!(!job.direct && job.access.reads && !job.access.writes && !job.access.random);
    assert_eq!(job.block_size, (Bytes(4096), Bytes(4096)));
    assert!(job.is_on("randrepeat", true));
}

#[test]
fn a_line_with_everything_around_it() {
    let job = one(
        "root@host:/mnt/x# fio --filename='a b;c' --sync=1 --rw randwrite -bs=8k \\  \n  \
         --name=test –ioengine=libaio --filesize=10G --runtime=300 --time_based \
         --output=o.txt > log 2>&1 && rm test | tee x",
    );
    assert_eq!(job.name, "test");
    assert_eq!(job.given("filename"), Some("a b;c"));
    assert_eq!(job.sync, SyncOption::Sync);
    assert!(job.access.random && job.access.writes);
    assert_eq!(job.block_size.1, Bytes(8192));
    assert_eq!(job.engine, "libaio");
    assert_eq!(job.size, Some(Bytes(10 << 30)));
    assert_eq!(job.runtime, Some(Nanos(300_000_000_000)));
    assert!(job.is_on("time_based", false));
    let calls = command_line("fio –-name=a –bs=4k").unwrap();
    assert_eq!(calls[0].mended.len(), 2);
}

#[test]
fn a_continuation_at_the_end_and_one_that_lost_its_line() {
    assert_eq!(one("fio --name=a --numjobs=16 \\").numjobs, 16);
    assert_eq!(
        one("fio --name=a \\ --numjobs=16 \\ --iodepth=4").iodepth,
        4
    );
}

#[test]
fn several_jobs_calls_and_files() {
    let calls =
        command_line("fio --bs=8k --name=a --rw=read --name=b --rw=write; fio j.fio").unwrap();
    assert_eq!(calls.len(), 2);
    let names: Vec<_> = calls[0].jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(
        calls[0]
            .jobs
            .iter()
            .all(|job| job.block_size.0 == Bytes(8192))
    );
    assert!(calls[0].jobs[1].access.writes && !calls[0].jobs[0].access.writes);
    assert_eq!(calls[1].job_files, ["j.fio"]);
    let global = command_line("--name=global --rw=randrw --name=x").unwrap();
    assert!(global[0].jobs[0].access.mixed());
}

#[test]
fn units_are_swapped_as_fio_does() {
    // Observed with fio 3.33: --bs=VALUE and fio's header.
    for (text, expected) in [
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4kB", 4096),
        ("4ki", 4096),
        ("4096b", 4096),
        ("0x1000", 4096),
        ("4kib", 4000),
        ("4KiB", 4000),
        ("1mib", 1_000_000),
        ("1m", 1 << 20),
        ("1mb", 1 << 20),
    ] {
        assert_eq!(parse_bytes(text, 1024), Some(expected), "{text}");
    }
    assert_eq!(parse_bytes("4kib", 1000), Some(4096));
    assert_eq!(parse_bytes("4k", 1000), Some(4000));
    assert_eq!(unit_trap("4kib", 1024), Some((4000, 4096)));
    assert_eq!(unit_trap("4k", 1024), None);
    assert_eq!(unit_trap("4kib", 1000), None);
    for bad in [
        "",
        "-1",
        "4x",
        "nan",
        "1e5",
        "99999999999999999999999p",
        "k",
    ] {
        assert_eq!(parse_bytes(bad, 1024), None, "{bad}");
    }
}

#[test]
fn block_sizes_by_direction() {
    assert_eq!(
        one("--name=a --bs=4k,8k").block_size,
        (Bytes(4096), Bytes(8192))
    );
    assert_eq!(
        one("--name=a --bs=,8k").block_size,
        (Bytes(4096), Bytes(8192))
    );
    assert_eq!(one("--name=a --bsrange=1k-4k").block_size.0, Bytes(1024));
    assert_eq!(
        one("--name=a --bssplit=64k/50:4k/50").block_size.0,
        Bytes(4096)
    );
}

#[test]
fn job_files() {
    let jobs = job_file(
        "; comment\n[global]\nioengine=libaio\niodepth=16 # sixteen\ntime_based\n\n[a]\nrw=randread\n\
         [global]\ndirect=1\n[b]\nreadwrite=write\nname=c\n",
        "x.fio",
    )
    .unwrap();
    assert_eq!(jobs.len(), 2);
    assert_eq!((jobs[0].name.as_str(), jobs[1].name.as_str()), ("a", "c"));
    assert_eq!(jobs[0].iodepth, 16);
    assert!(!jobs[0].direct && jobs[1].direct && jobs[1].access.writes);
    assert!(jobs[0].is_on("time_based", false));
    for (text, expected) in [
        ("", "x.fio: no job"),
        ("[global]\nbs=4k\n", "x.fio: no job"),
        ("bs=4k\n[a]", "x.fio:1: "),
        ("[a]\ninclude other.fio", "x.fio:2: "),
        ("[a\nbs=4k", "x.fio:1: "),
        ("[a]\nbs=-4k\n", "x.fio:2: bs=-4k"),
    ] {
        let error = job_file(text, "x.fio").unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn bad_command_lines_are_one_clear_error() {
    for (text, expected) in [
        ("", "nothing to read"),
        ("fio", "no job in it"),
        ("fio --rw=read", "no job in it"),
        ("ls -la", "no call of fio"),
        ("fio --name='x", "not closed"),
        ("fio --name=x --rw=sideways", "rw=sideways"),
        ("fio --name=x --runtime=-5", "runtime=-5"),
        ("fio --name=x --iodepth=nan", "iodepth=nan"),
        ("fio --name=x --size=99999999999999999999p", "size=9"),
        ("fio --name=x --direct", "--direct has no value"),
        ("fio --name=x --direct --rw=read", "--direct has no value"),
        ("fio --name=x --direct=maybe", "direct=maybe"),
        ("\u{0}\u{1b}[2J", "no call of fio"),
    ] {
        let error = command_line(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains('\n') && !error.contains('\u{1b}'));
    }
}

#[test]
fn echoed_options_never_fail() {
    let mut job = Worker::default();
    job.fio
        .options
        .insert("rw".to_owned(), "sideways".to_owned());
    job.fio.options.insert("iodepth".to_owned(), "8".to_owned());
    let options = JobOptions::from_result(&job);
    assert_eq!(options.iodepth, 8);
    assert!(options.access.reads);
}

#[test]
fn spelling() {
    assert_eq!(find_meant_option("iodetph"), Some("iodepth"));
    assert_eq!(find_meant_option("time-based"), Some("time_based"));
    assert_eq!(find_meant_option("readwrite"), None);
    assert_eq!(find_meant_option("group_rep"), None, "shortened");
    assert_eq!(find_meant_option("some_engine_option"), None);
    for (alias, name) in ALIASES {
        assert_eq!(
            (find_meant_option(alias), find_meant_option(name)),
            (None, None)
        );
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = command_line(&text);
        let _ = command_line(&format!("fio --name=a {text}"));
        let _ = job_file(&text, "f");
        let _ = job_file(&format!("[a]\n{text}"), "f");
        let _ = parse_bytes(&text, 1024);
        let _ = unit_trap(&text, 1024);
    }

    #[test]
    fn no_value_panics(key in "(rw|bs|bssplit|size|runtime|iodepth|sync|direct|rate)", value in any::<String>()) {
        let given = [(key, value)];
        let _ = JobOptions::from_given("x", given.clone(), OptionSource::Complete);
        let mut job = Worker::default();
        job.fio.options = given.into_iter().collect();
        let _ = JobOptions::from_result(&job);
    }
}

#[test]
fn text_is_a_job_file_or_a_script() {
    assert_eq!(
        read_text("; c\n[a]\nrw=read\n", "f").unwrap()[0].jobs.len(),
        1
    );
    let script = "#!/bin/sh\nset -e\nfio --name=a --rw=read\necho done\n";
    assert_eq!(read_text(script, "f").unwrap()[0].jobs.len(), 1);
    for (text, expected) in [
        ("", "f: it is empty"),
        ("{\"fio version\": 1}", "f: this looks like a result"),
        ("hello", "f: no call of fio"),
    ] {
        let error = read_text(text, "f").unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// fio 3.33 accepts `--time_base=1` as time_based, and rejects `--tim=1` as ambiguous.
#[test]
fn abbreviations_of_a_command_line() {
    let job = one("fio --name=x --rw=randread --time_base=1 --runti=60 --ioengin=libaio --iod=8");
    assert!(job.is_on("time_based", false));
    assert_eq!(job.given("runtime"), Some("60"));
    assert_eq!(job.engine, "libaio");
    assert_eq!(job.given("iodepth"), None, "ambiguous");
    assert_eq!(one("fio --name=x --tim=1").given("time_based"), None);
}
