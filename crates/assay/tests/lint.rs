//! Tests `assay lint` as a user runs it.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, ran};
use std::io::Write as _;
use std::process::Stdio;

const CORRECT: &str = "fio --name=t --filename=/srv/t --size=4G --direct=1 --ioengine=libaio \
    --iodepth=16 --rw=randread --bs=4k --time_based --runtime=60 --ramp_time=5 --randrepeat=0";
const WRONG: &str = "fio --filename=test --sync=1 --rw=randread --bs=4k --numjobs=1 --iodepth=4 \
    --group_reporting --name=test --filesize=10G --runtime=300 && rm test";

fn codes(stdout: &str) -> Vec<String> {
    let value: serde_json::Value = serde_json::from_str(stdout).unwrap();
    let doubts = value["doubts"].as_array().unwrap();
    for doubt in doubts {
        for key in ["code", "severity", "evidence", "remedy"] {
            assert!(
                doubt[key].as_str().is_some_and(|text| !text.is_empty()),
                "{key}"
            );
        }
    }
    doubts
        .iter()
        .map(|doubt| doubt["code"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_correct_command_passes_without_a_word() {
    let home = Home::new();
    let out = home.assay(&["lint", CORRECT]);
    assert_eq!(
        (out.code, out.stdout.as_str(), out.stderr.as_str()),
        (Some(0), "", "")
    );
    let out = home.assay(&["lint", CORRECT, "--json"]);
    assert_eq!(out.code, Some(0));
    assert!(codes(&out.stdout).is_empty());
}

#[test]
fn a_published_command_is_doubted() {
    let home = Home::new();
    let out = home.assay(&["lint", "--json", WRONG]);
    assert_eq!(out.code, Some(1), "{}", out.stderr);
    let expected = [
        "depth-not-reached",
        "page-cache-read",
        "no-time-based",
        "sync-on-read",
        "repeated-offsets",
    ];
    assert_eq!(codes(&out.stdout), expected);
    let out = home.assay(&["lint", WRONG]);
    assert_eq!(out.code, Some(1));
    assert!(
        out.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        out.stdout
    );
    for code in expected {
        assert!(out.stdout.contains(code));
    }
}

#[test]
fn scripts_includes_and_other_encodings_are_understood() {
    let home = Home::new();
    let write = |name: &str, bytes: &[u8]| {
        let path = home.dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let script = "E=psync\nfor d in 1 4 64; do\n  fio --name=t --rw=randread --direct=1 --ioengine=$E \\\n    \
                  --iodepth=$d --bs=$1 --size=4G\ndone\n";
    let out = home.assay(&["lint", "--json", &write("s.sh", script.as_bytes())]);
    assert!(
        codes(&out.stdout).contains(&"depth-not-reached".to_owned()),
        "{}",
        out.stderr
    );
    assert!(out.stderr.contains("bs"), "{}", out.stderr);
    write("common.inc", b"ioengine=psync\niodepth=16\n");
    let job = "[global]\ndirect=1\ninclude common.inc\n[t]\nrw=randread\nrandrepeat=0\n";
    let out = home.assay(&["lint", "--json", &write("a.fio", job.as_bytes())]);
    assert_eq!(codes(&out.stdout), ["depth-not-reached"], "{}", out.stderr);
    let wide: Vec<u8> = job
        .replace("include common.inc", "iodepth=16")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let out = home.assay(&["lint", "--json", &write("w.fio", &wide)]);
    assert_eq!(codes(&out.stdout), ["depth-not-reached"], "{}", out.stderr);
    // A file that includes itself does not loop.
    let itself = write("self.fio", b"[t]\ninclude self.fio\n");
    let out = home.assay(&["lint", &itself]);
    assert_eq!(out.code, Some(2), "{}", out.stdout);
}

/// Returns the codes for a script or job file.
fn linted(home: &Home, name: &str, text: &str, more: &[&str]) -> (Vec<String>, String) {
    let path = home.dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let mut words = vec!["lint", "--json"];
    words.extend(more);
    words.push(path.to_str().unwrap());
    let out = home.assay(&words);
    assert!(matches!(out.code, Some(0 | 1)), "{text}: {}", out.stderr);
    (codes(&out.stdout), out.stderr)
}

/// Options of a correct call, and of one whose queue depth is not reached.
const GOOD: &str = "--name=t --filename=/srv/t --size=8G --rw=randread --bs=4k --ioengine=libaio --iodepth=32 \
    --direct=1 --time_based --runtime=60 --randrepeat=0";
const DEEP: &str = "--name=n --filename=/srv/t --rw=randread --bs=4k --size=8G --iodepth=32 --direct=1 \
    --randrepeat=0";

/// A variable may contain several words; unknown values are not judged as defaults.
#[test]
fn options_in_variables() {
    let home = Home::new();
    for text in [
        format!("OPTS=\"{GOOD}\"\nfio $OPTS\n"),
        format!("O=({GOOD})\nfio \"${{O[@]}}\"\n"),
        format!("O=()\nfor o in {GOOD}; do O+=(\"$o\"); done\nfio ${{O[@]}}\n"),
        format!("export FIO_OPTS='{GOOD}'\nsudo fio ${{FIO_OPTS}} --group_reporting\n"),
        "A='--direct=1 --ioengine=libaio'\nB=\"$A --iodepth=16\"\nfio --name=t --rw=randread --bs=4k \
                 --filename=/srv/t --size=8G $B --time_based --runtime=60 --randrepeat=0\n"
            .to_owned(),
        format!("run() {{ fio \"$@\"; }}\nrun {GOOD}\n"),
        format!("{}\n", GOOD.replace("--direct=1", "--direct=$DIRECT")).replacen("--name", "fio --name", 1),
        "fio --name=t --filename=/srv/t --rw=randread $EXTRA\n".to_owned(),
        "fio --name=t --filename=/srv/t --size=8G --rw=randread --bs=4k --ioengine=$ENGINE --iodepth=32 --direct=1 \
         --time_based --runtime=60 --randrepeat=0\n"
            .to_owned(),
        "if [ -b \"$1\" ]; then D=1; else D=0; fi\nfio --name=t --filename=/srv/t --size=8G --rw=randread --bs=4k \
         --iodepth=1 --direct=$UNSET --time_based --runtime=$T --randrepeat=0\n"
            .to_owned(),
    ] {
        let (codes, errors) = linted(&home, "s.sh", &text, &[]);
        assert!(codes.is_empty(), "{text}: {codes:?} {errors}");
    }
    // Every value of a loop and every branch is judged.
    for (text, wanted) in [
        (
            "for d in 1 32; do fio --name=n --filename=/srv/t --rw=randread --bs=4k --size=8G --direct=1 \
          --randrepeat=0 --iodepth=$d; done",
            2,
        ),
        (
            "for e in libaio psync; do for d in 1 8; do fio --name=n --filename=/srv/t --rw=randread --bs=4k \
          --size=8G --direct=1 --randrepeat=0 --ioengine=$e --iodepth=$d; done; done",
            4,
        ),
        (
            "if t; then E=psync; else E=libaio; fi; fio --name=n --filename=/srv/t --rw=randread --bs=4k --size=8G \
          --direct=1 --randrepeat=0 --ioengine=$E --iodepth=8",
            2,
        ),
        (
            "for d in $(seq 1 3); do fio --name=n --filename=/srv/t --rw=randread --bs=4k --size=8G --direct=1 \
          --randrepeat=0 --iodepth=$((d * 8)); done",
            3,
        ),
        (
            "case $1 in a) D=1;; *) D=16;; esac; fio --name=n --filename=/srv/t --rw=randread --bs=4k --size=8G \
          --direct=1 --randrepeat=0 --iodepth=$D",
            2,
        ),
    ] {
        let path = home.dir.path().join("loop.sh");
        std::fs::write(&path, text).unwrap();
        let out = home.assay(&["lint", "--json", path.to_str().unwrap()]);
        let seen: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        let jobs = seen["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), wanted, "{text}");
        let deep =
            |job: &&serde_json::Value| job["doubts"] == serde_json::json!(["depth-not-reached"]);
        let doubted = jobs.iter().filter(deep).count();
        assert!(
            doubted > 0 && (doubted < wanted || wanted == 3),
            "{text}: {seen:#}"
        );
        // Equal doubts of several values are listed once.
        assert!(codes(&out.stdout).len() <= doubted, "{text}");
    }
}

/// The word fio outside of a call is not an error, and calls are found anywhere.
#[test]
fn calls_among_other_words() {
    let home = Home::new();
    for around in [
        "apt-get install -y fio\nCALL",
        "which fio || sudo yum install -y fio\nCALL",
        "command -v fio >/dev/null || { echo 'install fio first'; exit 1; }\nCALL",
        "echo \"fio $(fio --version)\"\nCALL",
        "if [ \"$1\" = 'fio' ]; then\n  CALL\nfi",
        "if [[ $TOOL == fio && -n $X ]]; then CALL; fi",
        "cd fio && git pull && make && cd ..\nCALL",
        "has() { fio --help | grep -q \"$1\"; }\nCALL",
        "kubectl get pods | grep fio\nkubectl exec -it fio-0 -- CALL",
        "kubectl cp fio.sh default/fio:/tmp\nkubectl exec fio -c fio -- sh -c 'CALL'",
        "docker run --rm -v /srv:/srv ubuntu:22.04 CALL",
        "docker run --rm -v /srv:/srv xridge/fio ARGS",
        "out=$(CALL 2>&1 | tee log)",
        "out=`CALL`",
        "CALL | grep IOPS | awk '{print $2}'",
        "sudo -u nobody timeout -k 5 60 nice -n 5 ionice -c 2 -n 0 CALL",
        "LD_PRELOAD=/x.so env A=1 taskset -c 0-3 CALL > out.json 2>&1 &",
        "ssh -p 2222 -o StrictHostKeyChecking=no root@host 'CALL'",
        "ssh host \"sudo CALL --output=x\"",
        "ssh host CALL",
        "bash -c 'CALL'",
        "test() (\n  CALL\n)\ntest",
        "time CALL; killall fio",
        "numactl --cpunodebind=0 --membind=0 CALL",
        "/usr/local/bin/CALL\nrm -f fio.log",
        "$FIO ARGS",
        "cat > run.sh <<'EOF'\n#!/bin/sh\necho fio\nEOF\nCALL",
        "[root@host ~]# CALL",
        "user@host:~$ CALL",
        "# CALL",
        "while read -r dev; do CALL; done < devices",
        "log_must eval \"CALL &\"",
        "ssh_exec \"$node\" \"sudo CALL\"",
        "for i in 1 2 3; do CALL; done",
    ] {
        let call = format!("fio {DEEP}");
        let text = around.replace("CALL", &call).replace("ARGS", DEEP);
        let (codes, errors) = linted(&home, "s.sh", &text, &[]);
        assert_eq!(codes, ["depth-not-reached"], "{text}: {errors}");
    }
    // Job files that a script writes.
    let job =
        "[n]\nfilename=/srv/t\nrw=randread\nbs=4k\nsize=8G\niodepth=32\ndirect=1\nrandrepeat=0\n";
    for around in [
        "cat > /tmp/j.fio <<EOF\nJOB\nEOF\nfio /tmp/j.fio --output-format=json\n",
        "cat <<'EOF' > j.fio\nJOB\nEOF\nsudo fio --output=x j.fio\n",
        "fio - <<EOF\nJOB\nEOF\n",
        "D=32\nT=/tmp/x\ncat > $T.fio <<EOF\nJOB\nEOF\nfio $T.fio\n",
        "echo '[n]' > j.fio\necho 'iodepth=32\ndirect=1\nrandrepeat=0\nrw=randread\nsize=8G\nfilename=/srv/t' >> j.fio\nfio j.fio\n",
        "tee j.fio <<EOF\nJOB\nEOF\nfio j.fio\n",
    ] {
        let (codes, errors) = linted(&home, "s.sh", &around.replace("JOB", job), &[]);
        assert_eq!(codes, ["depth-not-reached"], "{around}: {errors}");
    }
}

#[test]
fn variables_of_job_files() {
    let home = Home::new();
    let job = |line: &str| {
        format!(
            "[global]\nioengine=libaio\niodepth=16\nrw=randread\nsize=4G\nfilename=/srv/t\ntime_based=1\nruntime=60\n\
                 randrepeat=0\n{line}\n[j]\n"
        )
    };
    let cached = ["depth-not-reached", "page-cache-read"];
    for (line, set, wanted) in [
        ("bs=${BS}", &[][..], &cached[..]),
        (
            "bs=${BS}",
            &["--set", "BS=4kib"],
            &["depth-not-reached", "page-cache-read", "unit-trap"],
        ),
        ("numjobs=$ncpus", &[], &cached),
        ("numjobs=$ncpus", &["--set", "ncpus=8"], &cached),
        ("size=$mb_memory*2", &[], &cached),
        (
            "size=$mb_memory*1024*1024*2",
            &["--set", "mb_memory=16384"],
            &cached,
        ),
        ("bs=$pagesize*4", &["--set", "pagesize=4096"], &cached),
        ("direct=${DIRECT}", &[], &[]),
        ("direct=${DIRECT}", &["--set", "DIRECT=1"], &[]),
        ("direct=${DIRECT}", &["--set", "DIRECT=0"], &cached),
        ("direct=1\nrw=${RW}", &[], &[]),
        ("direct=1\nioengine=${ENGINE}", &[], &[]),
        ("direct=1\nruntime=${T}", &[], &[]),
        (
            "direct=1\niodepth=${QD}\nioengine=psync",
            &["--set", "QD=4"],
            &["depth-not-reached"],
        ),
    ] {
        let (found, errors) = linted(&home, "j.fio", &job(line), set);
        let mut found = found;
        found.retain(|code| wanted.contains(&code.as_str()) || code != "small-target");
        assert_eq!(found, wanted, "{line} {set:?}: {errors}");
    }
    // The environment, and variables that a script sets for the call.
    let path = home.dir.path().join("e.fio");
    std::fs::write(&path, job("direct=${DIRECT}")).unwrap();
    let out = home
        .command(&["lint", "--json", path.to_str().unwrap()])
        .env("DIRECT", "0")
        .output()
        .unwrap();
    assert_eq!(codes(&String::from_utf8(out.stdout).unwrap()), cached);
    let script = format!("DIRECT=0 fio {}\n", path.display());
    assert_eq!(linted(&home, "s.sh", &script, &[]).0, cached);
    let script = format!("export DIRECT=1\nfio {}\n", path.display());
    assert!(linted(&home, "s.sh", &script, &[]).0.is_empty());
}

/// The last of `direct` and `buffered` applies; a time option without effect is reported. Compared
/// with fio 3.33.
#[test]
fn options_that_fight() {
    let home = Home::new();
    let rest = "--name=t --filename=/srv/t --size=4G --rw=randread --bs=4k --ioengine=libaio --iodepth=16 --randrepeat=0";
    let time = "--time_based --runtime=60";
    let cached = ["depth-not-reached", "page-cache-read"];
    for (more, wanted) in [
        (format!("{time} --direct=1 --buffered=1"), &cached[..]),
        (format!("{time} --buffered=1 --direct=1"), &[]),
        (format!("{time} --direct=0 --buffered=0"), &[]),
        (format!("{time} --buffered=0 --direct=0"), &cached),
        (format!("{time} --buffered=0"), &[]),
        ("--direct=1 --time_based".to_owned(), &["no-time-based"]),
        ("--direct=1 --time_based=1".to_owned(), &["no-time-based"]),
        (
            "--direct=1 --time_based --runtime=0".to_owned(),
            &["no-time-based"],
        ),
        (
            "--direct=1 --time_based --ramp_time=10".to_owned(),
            &["no-time-based"],
        ),
        ("--direct=1 --ramp_time=60".to_owned(), &["no-time-based"]),
        (
            "--direct=1 --ramp_time=60 --runtime=60 --time_based".to_owned(),
            &[],
        ),
        ("--direct=1".to_owned(), &[]),
    ] {
        let out = home.assay(&["lint", "--json", &format!("fio {rest} {more}")]);
        assert_eq!(codes(&out.stdout), wanted, "{more}: {}", out.stderr);
    }
    let job = "[global]\ndirect=1\nioengine=libaio\niodepth=16\nrw=randread\nsize=4G\nfilename=/srv/t\nrandrepeat=0\n[j]\nbuffered=1\n";
    assert_eq!(linted(&home, "j.fio", job, &[]).0, cached);
}

#[test]
fn other_tools_are_explained() {
    let home = Home::new();
    for words in [
        vec![
            "lint",
            "--json",
            "dd if=/dev/zero of=/srv/t bs=1M count=1024",
        ],
        vec!["lint", "--json", "dd", "if=/dev/zero", "of=/srv/t", "bs=1M"],
    ] {
        let out = home.assay(&words);
        assert_eq!(out.code, Some(1), "{words:?}: {}", out.stderr);
        let expected = ["page-cache-write", "unflushed-write", "compressible-data"];
        assert_eq!(codes(&out.stdout), expected, "{words:?}");
    }
    let out = home.assay(&["lint", "dd if=/dev/zero of=/dev/sdz bs=1M oflag=direct"]);
    assert!(
        out.stdout.lines().next().unwrap().contains("/dev/sdz"),
        "{}",
        out.stdout
    );
    // An invalid call of fio stays an error, whatever surrounds it.
    let out = home.assay(&["lint", "dd if=a of=b; fio --rw=read"]);
    assert_eq!(out.code, Some(2), "{}", out.stdout);
}

#[test]
fn what_overwrites_a_disk_says_so_first() {
    let home = Home::new();
    let right = CORRECT.replace("/srv/t", "/dev/nvme9n1");
    assert_eq!(home.assay(&["lint", &right]).code, Some(0));
    let wrong = right.replace("--rw=randread", "--rw=randwrite --refill_buffers");
    let out = home.assay(&["lint", &wrong]);
    assert_eq!(out.code, Some(1));
    assert!(
        out.stdout.lines().next().unwrap().contains("/dev/nvme9n1"),
        "{}",
        out.stdout
    );
    let out = home.assay(&["lint", "--json", &wrong]);
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(value["overwrites"], serde_json::json!(["/dev/nvme9n1"]));
}

#[test]
fn words_files_and_standard_input() {
    let home = Home::new();
    let out = home.assay(&[
        "lint",
        "fio",
        "--name=t",
        "--rw=randread",
        "--sync=1",
        "--json",
    ]);
    assert!(
        codes(&out.stdout).contains(&"sync-on-read".to_owned()),
        "{}",
        out.stderr
    );
    let file = home.dir.path().join("a b.fio");
    std::fs::write(
        &file,
        "[global]\ndirect=1\n[one]\nrw=randread\niodepth=8\n[two]\nrw=write\nbs=1m\n",
    )
    .unwrap();
    let path = file.to_str().unwrap();
    for words in [
        vec!["lint", "--json", path],
        vec!["lint", "--json", "fio", "--runtime=60", path],
    ] {
        let out = home.assay(&words);
        assert_eq!(
            codes(&out.stdout),
            ["depth-not-reached"],
            "{words:?} {}",
            out.stderr
        );
    }
    let mut child = home
        .command(&["lint", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(WRONG.as_bytes())
        .unwrap();
    let out = ran(child.wait_with_output().unwrap());
    assert_eq!(codes(&out.stdout).len(), 5);
}

#[test]
fn bad_input_is_one_clear_error() {
    let home = Home::new();
    let garbage = home.dir.path().join("garbage");
    std::fs::write(&garbage, [0xff, 0xfe, 0x00]).unwrap();
    let empty = home.dir.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let mut said = String::new();
    for (words, code) in [
        (vec!["lint", ""], 2),
        (vec!["lint", "fio"], 2),
        (vec!["lint", "fio --name='x"], 2),
        (vec!["lint", "ls -la"], 2),
        (vec!["lint", "fio --name=x --runtime=-3"], 2),
        (vec!["lint", "fio --name=x /no/such/job.fio"], 3),
        (vec!["lint", "/no/such/job.fio"], 3),
        (vec!["lint", "/"], 3),
        (vec!["lint", garbage.to_str().unwrap()], 2),
        (vec!["lint", empty.to_str().unwrap()], 2),
    ] {
        let out = home.assay(&words);
        assert_eq!(out.code, Some(code), "{words:?} {}", out.stderr);
        assert_eq!(out.stdout, "");
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
        said += &home.told(&out.stderr);
    }
    insta::assert_snapshot!(said, @r#"
    assay: nothing to lint: expected `fio --name=… --rw=…` or the path of a job file
    assay: the command contains no job: fio needs --name=… or a job file
    assay: a quotation mark is not closed: add the missing ' or "
    assay: the text contains no fio command: expected `fio --name=… --rw=…` or the path of a job file
    assay: runtime=-3: fio expects a time such as 60, 1500ms or 5m, not negative
    assay: cannot read /no/such/job.fio: No such file or directory (os error 2); expected a job file, or a command in quotes
    assay: cannot read /no/such/job.fio: No such file or directory (os error 2); expected a job file, or a command in quotes
    assay: cannot read /: Is a directory (os error 21); expected a job file, or a command in quotes
    assay: cannot read HOME/garbage: it is not text; expected a job file, or a command in quotes
    assay: HOME/empty: it is empty: expected a job file of fio or a command line
    "#);
}
