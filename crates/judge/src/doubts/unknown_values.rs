//! Judges jobs with unknown options. A doubt is reported only if it applies for every possible value of these options.
//!
//! The rules judge the job several times: with fio's defaults, with values that cause no doubt, and with each value
//! that decides a rule, one at a time.

use assay_fio::options::{JobOptions, OptionSource};
use assay_model::Doubt;

/// For each option, the values that decide some rule. The option may also be absent.
const VALUES: [(&str, &[&str]); 36] = [
    ("direct", &["0", "1"]),
    ("buffered", &["0", "1"]),
    ("ioengine", &["psync", "libaio", "io_uring", "null"]),
    ("iodepth", &["1", "32"]),
    (
        "rw",
        &["read", "randread", "write", "randwrite", "rw", "randrw"],
    ),
    ("bs", &["4k", "1m"]),
    ("numjobs", &["1", "4"]),
    ("size", &["1m", "4g", "100t", "50%"]),
    ("filesize", &["1m", "100t"]),
    ("io_size", &["1m", "100t"]),
    ("runtime", &["60", "600"]),
    ("time_based", &["", "0"]),
    ("ramp_time", &["10"]),
    ("fsync", &["0", "1"]),
    ("fdatasync", &["0", "1"]),
    ("sync", &["none", "sync"]),
    ("end_fsync", &["0", "1"]),
    ("fsync_on_close", &["1"]),
    ("filename", &["/dev/sdz", "/srv/t", "/srv/a:/srv/b"]),
    ("directory", &["/srv"]),
    ("group_reporting", &["", "0"]),
    ("norandommap", &["", "0"]),
    ("randrepeat", &["0", "1"]),
    ("allrandrepeat", &["0", "1"]),
    ("rate", &["1m"]),
    ("rate_iops", &["100"]),
    ("thinktime", &["1000"]),
    ("refill_buffers", &["", "0"]),
    ("zero_buffers", &["", "0"]),
    ("buffer_compress_percentage", &["0", "50"]),
    ("nrfiles", &["1", "64"]),
    ("io_submit_mode", &["inline", "offload"]),
    ("invalidate", &["0", "1"]),
    ("rwmixread", &["50", "90"]),
    ("offset_increment", &["1g"]),
    ("loops", &["1", "100"]),
];

/// For each option, a value that causes no doubt.
const SOUND: [(&str, &str); 10] = [
    ("direct", "1"),
    ("ioengine", "io_uring"),
    ("iodepth", "1"),
    ("size", "100t"),
    ("runtime", "600"),
    ("time_based", ""),
    ("randrepeat", "0"),
    ("end_fsync", "1"),
    ("refill_buffers", ""),
    ("numjobs", "1"),
];

/// Returns the doubts that apply to a job whatever the values of its unknown options are.
pub(super) fn find_certain_doubts(
    job: &JobOptions,
    judge: impl Fn(&JobOptions) -> Vec<Doubt>,
) -> Vec<Doubt> {
    if job.unknown.is_empty() && !job.open {
        return judge(job);
    }
    let is_unknown = |key: &str| job.unknown.contains(key) || job.open && job.given(key).is_none();
    let with = |world: &JobOptions, key: &str, value: &str| {
        let mut given = world.given.clone();
        given.insert(key.to_owned(), value.to_owned());
        JobOptions::from_given(&job.name, given, OptionSource::Complete).ok()
    };
    let sound = SOUND
        .iter()
        .filter(|(key, _)| is_unknown(key))
        .try_fold(job.clone(), |world, (key, value)| with(&world, key, value));
    let mut certain = judge(job);
    let keep = |certain: &mut Vec<Doubt>, world: &JobOptions| {
        if !certain.is_empty() {
            let found = judge(world);
            certain.retain(|doubt| found.contains(doubt));
        }
    };
    for base in [Some(job.clone()), sound].into_iter().flatten() {
        keep(&mut certain, &base);
        for (key, values) in VALUES.iter().filter(|(key, _)| is_unknown(key)) {
            for value in *values {
                if let Some(world) = with(&base, key, value) {
                    keep(&mut certain, &world);
                }
            }
        }
    }
    certain
}

#[cfg(test)]
mod tests {
    use crate::doubts::judge_options;
    use assay_fio::options::command_line;

    fn codes(text: &str) -> Vec<String> {
        let calls = command_line(text).unwrap();
        let jobs: Vec<_> = calls.into_iter().flat_map(|call| call.jobs).collect();
        let doubts = judge_options(&jobs).into_iter().flatten();
        doubts.map(|doubt| doubt.code).collect()
    }

    #[test]
    fn what_is_unknown_is_not_judged_as_a_default() {
        const SOUND: &str =
            "--name=t --filename=/srv/t --size=8G --time_based --runtime=60 --randrepeat=0";
        for (rest, wanted) in [
            (
                "--rw=randread --bs=4k --ioengine=libaio --iodepth=32 --direct=$D",
                &[][..],
            ),
            (
                "--rw=randread --bs=4k --ioengine=$E --iodepth=32 --direct=1",
                &[],
            ),
            (
                "--rw=randread --bs=4k --iodepth=32 --direct=1",
                &["depth-not-reached"],
            ),
            (
                "--rw=randread --bs=$B --iodepth=32 --direct=1",
                &["depth-not-reached"],
            ),
            (
                "--rw=randread --bs=4k --ioengine=psync --iodepth=$Q --direct=1",
                &[],
            ),
            (
                "--rw=$RW --bs=4k --ioengine=libaio --iodepth=32 --direct=1",
                &[],
            ),
            (
                "--rw=randwrite --bs=4k --ioengine=libaio --iodepth=32 --refill_buffers --fsync=$F",
                &["depth-not-reached"],
            ),
            (
                "--rw=randread --bs=4k --ioengine=libaio --iodepth=32 $MORE",
                &[],
            ),
            (
                "--rw=randread --bs=4k --ioengine=psync --iodepth=32 $MORE --direct=1",
                &[],
            ),
            (
                "--rw=randread --ioengine=libaio --direct=1 --bs=4kib $MORE",
                &["unit-trap"],
            ),
        ] {
            assert_eq!(codes(&format!("fio {SOUND} {rest}")), wanted, "{rest}");
        }
    }
}
