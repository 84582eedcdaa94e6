//! What the command of another tool really measures: dd, sysbench, bonnie++, hdparm, iozone, diskspd and
//! CrystalDiskMark. From their manuals; the defaults are named where a figure rests on them.

use crate::doubts::{
    compressible_data, page_cache_read, page_cache_write, suspect, too_short, tool_cpu,
    unflushed_write, void,
};
use assay_model::Doubt;

/// A command of another tool, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherTool {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in a sentence.
    pub measures: String,
    /// Why that may not be what is wanted.
    pub doubts: Vec<Doubt>,
    /// The device that it writes over.
    pub overwrites: Option<String>,
}

const USE_FIO: &str = "`assay run` measures both, each by itself, with the cache left out.";
const NO_CACHE: &str = "Leave the page cache out (direct I/O), or give it several times the RAM.";

/// Explains a command that is already split into words; none when it is no known tool.
#[must_use]
pub fn other_tool(words: &[String]) -> Option<OtherTool> {
    let at = words.iter().position(|word| {
        let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
        let name = name.to_ascii_lowercase();
        TOOLS
            .iter()
            .any(|(known, _)| *known == name.trim_end_matches(".exe"))
    })?;
    let name = words[at].rsplit(['/', '\\']).next()?.to_ascii_lowercase();
    let (_, explain) = TOOLS
        .iter()
        .find(|(known, _)| *known == name.trim_end_matches(".exe"))?;
    explain(&words[at + 1..])
}

type Explain = fn(&[String]) -> Option<OtherTool>;
const TOOLS: [(&str, Explain); 6] = [
    ("dd", dd),
    ("sysbench", sysbench),
    ("bonnie++", bonnie),
    ("hdparm", hdparm),
    ("iozone", iozone),
    ("diskspd", diskspd),
];

/// Explains a result of CrystalDiskMark, which people paste as text; none when it is none.
#[must_use]
pub fn crystal_disk_mark(text: &str) -> Option<OtherTool> {
    let line = |line: &str| {
        let line = line.trim_start();
        (line.starts_with("SEQ") || line.starts_with("RND")) && line.contains("(Q=")
    };
    (text.contains("CrystalDiskMark") || text.lines().any(line)).then(|| OtherTool {
        name: "CrystalDiskMark",
        measures: "DiskSpd on a file of 1 GiB without the system's cache: four patterns, five times five \
                   seconds each by default, and the best of the five"
            .to_owned(),
        doubts: vec![suspect(
            too_short::CODE,
            "five seconds on 1 GiB fit into the fast part of an SSD and a controller's cache, and the best \
             of five is shown, not the usual one"
                .to_owned(),
            "Take a larger file and longer runs, and look at their spread; `assay run` shows it.",
        )],
        overwrites: None,
    })
}

fn device(path: Option<&str>) -> Option<String> {
    let path = path?;
    let harmless = ["/dev/null", "/dev/zero", "/dev/full", "/dev/stdout"].contains(&path);
    (path.starts_with("/dev/") && !harmless && !path.starts_with("/dev/shm/"))
        .then(|| path.to_owned())
}

fn cached_write(what: &str) -> Doubt {
    suspect(
        page_cache_write::CODE,
        format!("{what}: a write returns when it is in RAM"),
        NO_CACHE,
    )
}

fn cached_read(what: &str) -> Doubt {
    suspect(
        page_cache_read::CODE,
        format!("{what}: what was read or written before comes from RAM"),
        NO_CACHE,
    )
}

fn dd(words: &[String]) -> Option<OtherTool> {
    let operand = |key: &str| {
        let with = |word: &String| {
            let (name, value) = word.split_once('=')?;
            (name == key).then(|| value.to_owned())
        };
        words.iter().rev().find_map(with)
    };
    let (from, to) = (operand("if"), operand("of"));
    let has = |key: &str, wanted: &[&str]| {
        operand(key).is_some_and(|value| value.split(',').any(|one| wanted.contains(&one)))
    };
    let writes = to.as_deref().is_some_and(|to| to != "/dev/null");
    let made = matches!(
        from.as_deref(),
        Some("/dev/zero" | "/dev/urandom" | "/dev/random")
    );
    let reads = from.is_some() && !made;
    let block = operand("bs").unwrap_or_else(|| "512".to_owned());
    let mut doubts = Vec::new();
    if reads && !has("iflag", &["direct"]) {
        doubts.push(cached_read("no iflag=direct"));
    }
    let flushed = has("conv", &["fsync", "fdatasync"]) || has("oflag", &["sync", "dsync"]);
    if writes && !has("oflag", &["direct"]) && !flushed {
        doubts.push(cached_write("no oflag=direct"));
        doubts.push(suspect(
            unflushed_write::CODE,
            "no conv=fdatasync: dd ends before the data is on the device".to_owned(),
            "Add conv=fdatasync, so that the rate includes the time to write everything out.",
        ));
    }
    if writes && from.as_deref() == Some("/dev/zero") {
        doubts.push(suspect(
            compressible_data::CODE,
            "if=/dev/zero writes zeroes, which ZFS, btrfs and some disks do not store".to_owned(),
            "Write data that does not compress, prepared before the clock starts.",
        ));
    }
    if matches!(from.as_deref(), Some("/dev/urandom" | "/dev/random")) {
        doubts.push(suspect(
            tool_cpu::CODE,
            "the kernel makes the random data while the clock runs: some hundred MB a second of one CPU"
                .to_owned(),
            "Write data prepared before.",
        ));
    }
    Some(OtherTool {
        name: "dd",
        measures: format!(
            "one stream in blocks of {block}, one at a time from {} to {}: no queue, nothing random, and no \
             latencies",
            from.as_deref().unwrap_or("standard input"),
            to.as_deref().unwrap_or("standard output")
        ),
        doubts,
        overwrites: device(to.as_deref()),
    })
}

/// The value of `--key=value`.
fn long<'a>(words: &'a [String], key: &str) -> Option<&'a str> {
    let value = |word: &'a String| {
        word.strip_prefix("--")?
            .strip_prefix(key)?
            .strip_prefix('=')
    };
    words.iter().rev().find_map(value)
}

fn sysbench(words: &[String]) -> Option<OtherTool> {
    if !words.iter().any(|word| word == "fileio") && long(words, "test") != Some("fileio") {
        return None;
    }
    let mode = long(words, "file-test-mode").unwrap_or("none given");
    let direct = long(words, "file-extra-flags").is_some_and(|flags| flags.contains("direct"));
    let mut doubts = Vec::new();
    if !direct {
        let what = "no --file-extra-flags=direct";
        if !matches!(mode, "seqwr" | "seqrewr" | "rndwr") {
            doubts.push(cached_read(what));
        }
        if !matches!(mode, "seqrd" | "rndrd") {
            doubts.push(cached_write(what));
        }
    }
    let seconds = long(words, "time")
        .or(long(words, "max-time"))
        .unwrap_or("10");
    if seconds
        .parse()
        .is_ok_and(|seconds: u64| (1..30).contains(&seconds))
    {
        doubts.push(suspect(
            too_short::CODE,
            format!("it runs for {seconds} s"),
            "Add --time=60 or more, and repeat it.",
        ));
    }
    Some(OtherTool {
        name: "sysbench",
        measures: format!(
            "{mode} in blocks of {} on {} files of {} in all, {} thread(s), with an fsync of all files after \
             every {} requests that counts as a request of its own",
            long(words, "file-block-size").unwrap_or("16K"),
            long(words, "file-num").unwrap_or("128"),
            long(words, "file-total-size").unwrap_or("2G"),
            long(words, "threads")
                .or(long(words, "num-threads"))
                .unwrap_or("1"),
            long(words, "file-fsync-freq").unwrap_or("100"),
        ),
        doubts,
        overwrites: None,
    })
}

fn bonnie(words: &[String]) -> Option<OtherTool> {
    let mut doubts = vec![cached_read("bonnie++ works through the page cache")];
    if !words.iter().any(|word| word == "-D") {
        doubts.push(cached_write("no -D (direct I/O)"));
    }
    Some(OtherTool {
        name: "bonnie++",
        measures:
            "one stream by characters and by blocks, a rewrite, seeks by a few processes, and the \
                   creating and deleting of empty files; by characters it is the speed of a CPU"
                .to_owned(),
        doubts,
        overwrites: None,
    })
}

fn hdparm(words: &[String]) -> Option<OtherTool> {
    // Letters may stand together: -tT.
    let has = |letter: char| {
        let one = |word: &String| {
            let letters = word.strip_prefix('-').unwrap_or_default();
            !letters.starts_with('-') && letters.contains(letter)
        };
        words.iter().any(one)
    };
    if !has('t') && !has('T') {
        return None;
    }
    let mut doubts = Vec::new();
    if has('T') {
        doubts.push(void(
            page_cache_read::CODE,
            "-T reads from RAM and never from the disk".to_owned(),
            "Leave -T out: it says nothing about storage.",
        ));
    }
    if has('t') {
        doubts.push(suspect(
            too_short::CODE,
            "-t reads for three seconds at the beginning of the disk, where a turning one is fastest"
                .to_owned(),
            USE_FIO,
        ));
    }
    Some(OtherTool {
        name: "hdparm",
        measures: "one stream of sequential reads: nothing random, no writes, no latencies"
            .to_owned(),
        doubts,
        overwrites: None,
    })
}

fn iozone(words: &[String]) -> Option<OtherTool> {
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let mut doubts = Vec::new();
    if !has("-I") {
        doubts.push(cached_read("no -I (direct I/O)"));
        if !has("-o") && !has("-e") {
            doubts.push(cached_write("no -I, -o or -e"));
        }
    }
    let after = words.iter().position(|word| word == "-f");
    let file = after.and_then(|at| words.get(at + 1)).map(String::as_str);
    Some(OtherTool {
        name: "iozone",
        measures:
            "one stream for each file size and record size, one request at a time; -a goes up to \
                   512 MB, which fits into the RAM of most machines"
                .to_owned(),
        doubts,
        overwrites: device(file),
    })
}

fn diskspd(words: &[String]) -> Option<OtherTool> {
    let value = |flag: &str| {
        let one = |word: &String| {
            let rest = word.strip_prefix('-').or(word.strip_prefix('/'))?;
            rest.strip_prefix(flag).map(str::to_owned)
        };
        words.iter().rev().find_map(one)
    };
    let uncached = value("S").is_some_and(|flags| flags.contains(['h', 'u']));
    let write: u32 = value("w").and_then(|share| share.parse().ok()).unwrap_or(0);
    let mut doubts = Vec::new();
    if !uncached {
        if write < 100 {
            doubts.push(cached_read("no -Sh or -Su"));
        }
        if write > 0 {
            doubts.push(cached_write("no -Sh or -Su"));
        }
    }
    if write > 0 && value("Z").is_none() {
        doubts.push(suspect(
            compressible_data::CODE,
            "without -Z the same 256 bytes are written again and again".to_owned(),
            "Add -Z1M for random data.",
        ));
    }
    let seconds = value("d").unwrap_or_else(|| "10".to_owned());
    if seconds.parse().is_ok_and(|seconds: u64| seconds < 30) {
        doubts.push(suspect(
            too_short::CODE,
            format!("it runs for {seconds} s"),
            "Add -d60 or more with a warm-up (-W10), and repeat it.",
        ));
    }
    let target = words
        .iter()
        .rev()
        .find(|word| !word.starts_with(['-', '/']));
    // `#1` is a whole disk, `C:` a whole volume.
    let raw = target.filter(|name| name.starts_with('#') || name.ends_with(':'));
    Some(OtherTool {
        name: "diskspd",
        measures: format!(
            "{write} % writes in blocks of {}, {} outstanding for each of {} thread(s), {}",
            value("b").unwrap_or_else(|| "64K".to_owned()),
            value("o").unwrap_or_else(|| "2".to_owned()),
            value("t").unwrap_or_else(|| "1".to_owned()),
            match value("r") {
                Some(_) => "random",
                None => "sequential",
            }
        ),
        doubts,
        overwrites: raw.filter(|_| write > 0).cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(text: &str) -> OtherTool {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        other_tool(&words).unwrap_or_else(|| panic!("{text}"))
    }

    fn codes(text: &str) -> Vec<String> {
        explained(text)
            .doubts
            .into_iter()
            .map(|doubt| doubt.code)
            .collect()
    }

    #[test]
    fn commands_of_other_tools_are_explained() {
        for (text, wanted) in [
            (
                "sudo dd if=/dev/zero of=/srv/t bs=1M count=1024",
                &[
                    page_cache_write::CODE,
                    unflushed_write::CODE,
                    compressible_data::CODE,
                ][..],
            ),
            (
                "dd if=/srv/data of=/srv/t bs=1M iflag=direct oflag=direct",
                &[],
            ),
            ("dd if=/srv/t of=/dev/null bs=1M", &[page_cache_read::CODE]),
            ("dd if=/dev/urandom of=t conv=fdatasync", &[tool_cpu::CODE]),
            (
                "sysbench fileio --file-test-mode=rndrw run",
                &[
                    page_cache_read::CODE,
                    page_cache_write::CODE,
                    too_short::CODE,
                ],
            ),
            (
                "sysbench fileio --file-test-mode=rndrd --file-extra-flags=direct --time=60 run",
                &[],
            ),
            (
                "bonnie++ -d /srv -s 16g",
                &[page_cache_read::CODE, page_cache_write::CODE],
            ),
            (
                "hdparm -tT /dev/sda",
                &[page_cache_read::CODE, too_short::CODE],
            ),
            (
                "iozone -a",
                &[page_cache_read::CODE, page_cache_write::CODE],
            ),
            ("iozone -I -s 8g -r 4k", &[]),
            (
                "diskspd.exe -b4K -w100 -d10 c:\\t.dat",
                &[
                    page_cache_write::CODE,
                    compressible_data::CODE,
                    too_short::CODE,
                ],
            ),
            ("diskspd -b4K -r -o32 -t4 -Sh -d60 c:\\t.dat", &[]),
        ] {
            assert_eq!(codes(text), wanted, "{text}");
        }
        let none = |text: &str| {
            other_tool(
                &text
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        };
        for text in ["sysbench cpu run", "hdparm -I /dev/sda", "ls -l", ""] {
            assert_eq!(none(text), None, "{text}");
        }
    }

    #[test]
    fn what_overwrites_a_device_is_named() {
        assert_eq!(
            explained("dd if=/dev/zero of=/dev/sdb bs=1M")
                .overwrites
                .as_deref(),
            Some("/dev/sdb")
        );
        assert_eq!(
            explained("diskspd -w50 #1").overwrites.as_deref(),
            Some("#1")
        );
        for text in [
            "dd if=/dev/sdb of=/dev/null",
            "diskspd #1",
            "hdparm -t /dev/sda",
        ] {
            assert_eq!(explained(text).overwrites, None, "{text}");
        }
    }

    #[test]
    fn crystal_disk_mark_is_known_by_its_lines() {
        assert!(crystal_disk_mark("  SEQ    1MiB (Q=  8, T= 1):  3500.1 MB/s").is_some());
        assert!(crystal_disk_mark("CrystalDiskMark 8.0.4 x64").is_some());
        assert!(crystal_disk_mark("fio --name=SEQ").is_none());
    }
}
