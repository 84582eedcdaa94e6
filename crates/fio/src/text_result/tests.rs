//! Results that fio 3.33 printed. The results of fio 2 were written by hand in the format of those releases.

use super::*;

const MIX: &str = include_str!("../../fixtures/fio-3.33-mix.txt");
const FDATASYNC: &str = include_str!("../../fixtures/fio-3.33-fdatasync.txt");
const GROUP: &str = include_str!("../../fixtures/fio-3.33-group.txt");
const FIO_2: &str = include_str!("../../fixtures/handmade-fio-2.2.10.txt");

fn only_job(text: &str) -> (FioDocument, Worker) {
    let documents = parse_text(text).unwrap();
    let [document] = documents.as_slice() else {
        panic!("{}", documents.len());
    };
    let [job] = document.jobs.as_slice() else {
        panic!("{}", document.jobs.len());
    };
    (document.clone(), job.clone())
}

#[test]
fn a_mix_has_both_directions_with_percentiles() {
    let (document, job) = only_job(MIX);
    assert_eq!(document.version(), Some((3, 33)));
    assert!(document.local_time && document.timestamp_ms.is_some());
    assert_eq!(document.disks[0].name, "vda");
    let options = &job.fio.options;
    assert_eq!((&*options["rw"], &*options["bs"]), ("randrw", "4096"));
    assert_eq!(
        (&*options["ioengine"], &*options["iodepth"]),
        ("libaio", "8")
    );
    assert!(job.fio.open, "the text contains no command");
    let (read, write) = (job.read().unwrap(), job.write().unwrap());
    assert_eq!((read.count, write.count), (56_859, 24_341));
    assert_eq!(read.clat.percentile(99.0), Some(1_663_000));
    assert_eq!((read.clat.min, read.clat.max), (671, 6_734_600));
    assert!((read.per_s - 56_859.0 / 2.003).abs() < 1e-6);
    assert!(job.fio.iodepth_level["8"] > 99.0);
    assert!((job.sys_cpu - 34.47).abs() < 1e-9);
}

#[test]
fn flushes_and_groups_are_read() {
    let (_, job) = only_job(FDATASYNC);
    let flushes = job.flush().unwrap();
    assert_eq!(flushes.count, 4096, "from the shares of depths");
    assert_eq!(flushes.lat.percentile(99.0), Some(7_242_000));
    assert_eq!(job.write().unwrap().clat.percentile(50.0), Some(13_000));
    let (_, job) = only_job(GROUP);
    assert_eq!(job.fio.options["numjobs"], "3");
    assert!(job.fio.options.contains_key("group_reporting"));
    assert_eq!(job.fio.options["bs"], "16384");
}

#[test]
fn fio_2_counts_in_powers_of_1024_and_microseconds() {
    let (document, job) = only_job(FIO_2);
    assert_eq!(document.version(), Some((2, 2)));
    let (read, write) = (job.read().unwrap(), job.write().unwrap());
    assert_eq!(read.clat.percentile(50.0), Some(27_000_000));
    assert_eq!(write.clat.percentile(50.0), Some(81_000));
    let size = read.bytes.0 / read.count;
    assert!((4000..4200).contains(&size), "{size}");
    assert_eq!(job.fio.options["numjobs"], "30");
}

#[test]
fn a_command_before_the_result_completes_the_options() {
    let command = "root@vm:~# fio --name=mix --filename=/srv/t --size=32M --bs=4k \\\n  --rw=randrw \
                   --ioengine=libaio --iodepth=8 --direct=1 --time_based --runtime=2\n";
    let (_, job) = only_job(&format!("Some text.\n\n{command}{MIX}"));
    assert!(!job.fio.open);
    assert_eq!(job.fio.options["direct"], "1");
    assert_eq!(job.fio.options["filename"], "/srv/t");
    // The command of another job, or one with unknown words, completes nothing.
    for other in ["$ fio --name=other --direct=1", "$ fio --name=mix $OPTIONS"] {
        assert!(only_job(&format!("{other}\n{MIX}")).1.fio.open, "{other}");
    }
}

#[test]
fn several_runs_and_quoted_lines_are_read() {
    let quoted: String = MIX.lines().map(|line| format!("> {line}\n")).collect();
    let text = format!("{MIX}\nAnd with another disk:\n{GROUP}\n{quoted}");
    let documents = parse_text(&text).unwrap();
    let names: Vec<&str> = documents
        .iter()
        .map(|one| one.jobs[0].name.as_str())
        .collect();
    assert_eq!(names, ["mix", "gr", "mix"]);
    assert_eq!(documents[0].jobs[0].read(), documents[2].jobs[0].read());
    assert!(!is_text_result("fio-3.33\nStarting 1 process\n"));
}

#[test]
fn an_unreadable_line_is_named() {
    for (from, to) in [
        ("BW=111MiB/s", "BW=fast"),
        ("slat (usec): min=3", "slat (usec): min=x"),
        ("1.00th=[   50]", "1.00th=[ ??]"),
        ("issued rwts: total=56859", "issued rwts: total=lots"),
        ("bs=(R) 4096B-4096B", "bs=(R) 4096B"),
        ("jobs=1", "jobs=one"),
    ] {
        let text = MIX.replacen(from, to, 1);
        let error = parse_text(&text).unwrap_err();
        let place = text.lines().position(|line| line.contains(to)).unwrap();
        assert_eq!(error.line, place + 1, "{to}: {error}");
    }
}

#[test]
fn a_title_without_figures_is_no_result() {
    let cut: String = MIX
        .lines()
        .take(6)
        .map(|line| format!("{line}\n"))
        .collect();
    let (title, _) = cut.split_once("  read:").unwrap();
    let error = parse_text(title).unwrap_err();
    assert_eq!(error.line, 5, "{error}");
}

/// The text contains a command at a Windows prompt, and jobs without lines of CPU times and latencies.
#[test]
fn a_command_of_windows_completes_the_options() {
    let text = "I:\\>fio --name=read --iodepth=1 --rw=read --bs=8k --direct=1 --size=1g --thread=1\n\
                read: (g=0): rw=read, bs=(R) 8192B-8192B, (W) 8192B-8192B, (T) 8192B-8192B, \
                ioengine=windowsaio, iodepth=1\n\
                fio-3.29\nStarting 1 thread\n\n\
                read: (groupid=0, jobs=1): err= 0: pid=8364: Tue Apr 5 18:48:09 2022\n  \
                read: IOPS=1545, BW=12.1MiB/s (12.7MB/s)(1024MiB/84835msec)\n   \
                iops        : min= 1392, max= 1661, avg=1545.14, stdev=56.37, samples=84\n";
    let (_, job) = only_job(text);
    assert!(!job.fio.open);
    assert_eq!(job.fio.options["direct"], "1");
    assert_eq!(job.fio.options["ioengine"], "windowsaio");
    let continued = text.replace(" --rw=read", " ^\n  --rw=read");
    assert!(!only_job(&continued).1.fio.open);
}
