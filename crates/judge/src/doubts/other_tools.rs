//! Explains what commands of other tools measure: dd, sysbench, bonnie++, hdparm, iozone, diskspd and CrystalDiskMark.
//! The explanations follow the manuals and contain the defaults that a figure depends on.

use crate::doubts::{
    compressible_data, page_cache_read, page_cache_write, suspect_doubt, too_short, tool_cpu,
    unflushed_write, void_doubt,
};
use assay_model::Doubt;

/// An explained command of another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedCommand {
    /// Name of the tool, such as `sysbench`.
    pub name: &'static str,
    /// Description of the measured property, in a sentence.
    pub measures: String,
    /// Doubts about the figures that the command produces.
    pub doubts: Vec<Doubt>,
    /// The device that the command overwrites; `None` if it overwrites none.
    pub overwrites: Option<String>,
}

const USE_FIO: &str = "`assay run` measures both, each by itself, with the cache left out.";
const NO_CACHE: &str = "Leave the page cache out (direct I/O), or give it several times the RAM.";

/// Whether assay can explain this program.
#[must_use]
pub fn is_tool(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.to_ascii_lowercase();
    TOOLS
        .iter()
        .any(|(known, _)| *known == name.trim_end_matches(".exe"))
}

/// Explains a command that is already split into words; `None` if the tool is unknown.
#[must_use]
pub fn explain_command(words: &[String]) -> Option<ExplainedCommand> {
    let at = words.iter().position(|word| is_tool(word))?;
    let name = words[at].rsplit(['/', '\\']).next()?.to_ascii_lowercase();
    let (_, explain) = TOOLS
        .iter()
        .find(|(known, _)| *known == name.trim_end_matches(".exe"))?;
    explain(&words[at + 1..])
}

type ExplainFn = fn(&[String]) -> Option<ExplainedCommand>;
const TOOLS: [(&str, ExplainFn); 6] = [
    ("dd", explain_dd),
    ("sysbench", explain_sysbench),
    ("bonnie++", explain_bonnie),
    ("hdparm", explain_hdparm),
    ("iozone", explain_iozone),
    ("diskspd", explain_diskspd),
];

/// Explains a pasted text result of CrystalDiskMark; `None` if the text is something else.
#[must_use]
pub fn explain_crystal_disk_mark(text: &str) -> Option<ExplainedCommand> {
    let line = |line: &str| {
        let line = line.trim_start();
        (line.starts_with("SEQ") || line.starts_with("RND")) && line.contains("(Q=")
    };
    (text.contains("CrystalDiskMark") || text.lines().any(line)).then(|| ExplainedCommand {
        name: "CrystalDiskMark",
        measures: "DiskSpd on a file of 1 GiB without the system's cache: four patterns, five times five \
                   seconds each by default, and the best of the five"
            .to_owned(),
        doubts: vec![suspect_doubt(
            too_short::CODE,
            "five seconds on 1 GiB fit into the fast part of an SSD and a controller's cache, and the best \
             of five is shown, not the usual one"
                .to_owned(),
            "Take a larger file and longer runs, and look at their spread; `assay run` shows it.",
        )],
        overwrites: None,
    })
}

fn find_device(path: Option<&str>) -> Option<String> {
    let path = path?;
    let harmless = ["/dev/null", "/dev/zero", "/dev/full", "/dev/stdout"].contains(&path);
    (path.starts_with("/dev/") && !harmless && !path.starts_with("/dev/shm/"))
        .then(|| path.to_owned())
}

fn cached_write_doubt(what: &str) -> Doubt {
    suspect_doubt(
        page_cache_write::CODE,
        format!("{what}: a write returns when it is in RAM"),
        NO_CACHE,
    )
}

fn cached_read_doubt(what: &str) -> Doubt {
    suspect_doubt(
        page_cache_read::CODE,
        format!("{what}: what was read or written before comes from RAM"),
        NO_CACHE,
    )
}

fn explain_dd(words: &[String]) -> Option<ExplainedCommand> {
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
        doubts.push(cached_read_doubt("no iflag=direct"));
    }
    let flushed = has("conv", &["fsync", "fdatasync"]) || has("oflag", &["sync", "dsync"]);
    if writes && !has("oflag", &["direct"]) && !flushed {
        doubts.push(cached_write_doubt("no oflag=direct"));
        doubts.push(suspect_doubt(
            unflushed_write::CODE,
            "no conv=fdatasync: dd ends before the data is on the device".to_owned(),
            "Add conv=fdatasync, so that the rate includes the time to write everything out.",
        ));
    }
    if writes && from.as_deref() == Some("/dev/zero") {
        doubts.push(suspect_doubt(
            compressible_data::CODE,
            "if=/dev/zero writes zeroes, which ZFS, btrfs and some disks do not store".to_owned(),
            "Write data that does not compress, prepared before the clock starts.",
        ));
    }
    if matches!(from.as_deref(), Some("/dev/urandom" | "/dev/random")) {
        doubts.push(suspect_doubt(
            tool_cpu::CODE,
            "the kernel makes the random data while the clock runs: some hundred MB a second of one CPU"
                .to_owned(),
            "Write data prepared before.",
        ));
    }
    Some(ExplainedCommand {
        name: "dd",
        measures: format!(
            "one stream in blocks of {block}, one at a time from {} to {}: no queue, nothing random, and no \
             latencies",
            from.as_deref().unwrap_or("standard input"),
            to.as_deref().unwrap_or("standard output")
        ),
        doubts,
        overwrites: find_device(to.as_deref()),
    })
}

/// Returns the value of `--key=value`.
fn find_long_option<'a>(words: &'a [String], key: &str) -> Option<&'a str> {
    let value = |word: &'a String| {
        word.strip_prefix("--")?
            .strip_prefix(key)?
            .strip_prefix('=')
    };
    words.iter().rev().find_map(value)
}

/// Returns whether the option `--key` is on; `None` if it is not given. If the option occurs several times, the last
/// one counts. For sysbench an option without a value means `on`.
fn find_switch(words: &[String], key: &str) -> Option<bool> {
    let switch = |word: &String| match word.strip_prefix("--")?.strip_prefix(key)? {
        "" => Some(true),
        value => Some(matches!(
            value.strip_prefix('=')?,
            "on" | "true" | "1" | "yes"
        )),
    };
    words.iter().rev().find_map(switch)
}

fn explain_sysbench(words: &[String]) -> Option<ExplainedCommand> {
    if !words.iter().any(|word| word == "fileio")
        && find_long_option(words, "test") != Some("fileio")
    {
        return None;
    }
    let mode = find_long_option(words, "file-test-mode").unwrap_or("none given");
    let flags = find_long_option(words, "file-extra-flags").unwrap_or_default();
    let has = |flag: &str| flags.split(',').any(|one| one == flag);
    let on = |key: &str, default: bool| find_switch(words, key).unwrap_or(default);
    let (reads, writes) = match mode {
        "seqrd" | "rndrd" => (true, false),
        "seqwr" | "seqrewr" | "rndwr" => (false, true),
        _ => (true, true),
    };
    let each = on("file-fsync-all", false);
    let mut doubts = Vec::new();
    if !has("direct") {
        let what = "no --file-extra-flags=direct";
        if reads {
            doubts.push(cached_read_doubt(what));
        }
        // With a flag such as `dsync` each write waits until it is on the disk.
        if writes && !each && !has("sync") && !has("dsync") {
            doubts.push(cached_write_doubt(what));
        }
    }
    let seconds = find_long_option(words, "time")
        .or(find_long_option(words, "max-time"))
        .unwrap_or("10");
    if seconds
        .parse()
        .is_ok_and(|seconds: u64| (1..30).contains(&seconds))
    {
        doubts.push(suspect_doubt(
            too_short::CODE,
            format!("it runs for {seconds} s"),
            "Add --time=60 or more, and repeat it.",
        ));
    }
    Some(ExplainedCommand {
        name: "sysbench",
        measures: format!(
            "{mode} in blocks of {} on {} files of {} in all, {} thread(s){}",
            find_long_option(words, "file-block-size").unwrap_or("16K"),
            find_long_option(words, "file-num").unwrap_or("128"),
            find_long_option(words, "file-total-size").unwrap_or("2G"),
            find_long_option(words, "threads")
                .or(find_long_option(words, "num-threads"))
                .unwrap_or("1"),
            match writes {
                true => describe_sysbench_flushes(words, each, on("file-fsync-end", true)),
                false => String::new(),
            },
        ),
        doubts,
        overwrites: None,
    })
}

/// Describes when sysbench flushes, as observed with strace for version 1.0.20.
fn describe_sysbench_flushes(words: &[String], each: bool, at_end: bool) -> String {
    let call = match find_long_option(words, "file-fsync-mode") {
        Some("fdatasync") => "fdatasync",
        _ => "fsync",
    };
    let freq = find_long_option(words, "file-fsync-freq").unwrap_or("100");
    match (each, freq) {
        (true, _) => {
            format!(", with an {call} after every write that counts as a request of its own")
                .replace("an fdatasync", "a fdatasync")
        }
        (false, "0") if at_end => format!(", with {call} of all files at the end only"),
        (false, "0") => ", without any fsync".to_owned(),
        (false, freq) => format!(
            ", with {call} of all files after every {freq} requests that counts as a request of its own"
        ),
    }
}

fn explain_bonnie(words: &[String]) -> Option<ExplainedCommand> {
    let mut doubts = vec![cached_read_doubt("bonnie++ works through the page cache")];
    if !words.iter().any(|word| word == "-D") {
        doubts.push(cached_write_doubt("no -D (direct I/O)"));
    }
    Some(ExplainedCommand {
        name: "bonnie++",
        measures:
            "one stream by characters and by blocks, a rewrite, seeks by a few processes, and the \
                   creating and deleting of empty files; by characters it is the speed of a CPU"
                .to_owned(),
        doubts,
        overwrites: None,
    })
}

fn explain_hdparm(words: &[String]) -> Option<ExplainedCommand> {
    // Letters may be combined: -tT.
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
        doubts.push(void_doubt(
            page_cache_read::CODE,
            "-T reads from RAM and never from the disk".to_owned(),
            "Leave -T out: it says nothing about storage.",
        ));
    }
    if has('t') {
        doubts.push(suspect_doubt(
            too_short::CODE,
            "-t reads for three seconds at the beginning of the disk, where a turning one is fastest"
                .to_owned(),
            USE_FIO,
        ));
    }
    Some(ExplainedCommand {
        name: "hdparm",
        measures: "one stream of sequential reads: nothing random, no writes, no latencies"
            .to_owned(),
        doubts,
        overwrites: None,
    })
}

fn explain_iozone(words: &[String]) -> Option<ExplainedCommand> {
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let mut doubts = Vec::new();
    if !has("-I") {
        doubts.push(cached_read_doubt("no -I (direct I/O)"));
        if !has("-o") && !has("-e") {
            doubts.push(cached_write_doubt("no -I, -o or -e"));
        }
    }
    // `-g 16G` or `-g16G`.
    let value = |flag: &str| {
        let at = words.iter().position(|word| word.starts_with(flag))?;
        match words[at].strip_prefix(flag) {
            Some("") => words.get(at + 1).map(String::as_str),
            attached => attached,
        }
    };
    // Letters may be combined: -Rac.
    let letters = |word: &String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        letters.len() <= 4 && letters.contains('a') && letters.chars().all(char::is_alphabetic)
    };
    let auto = words.iter().any(letters);
    let sizes = match (value("-s"), auto, value("-g")) {
        (Some(size), _, _) => format!("files of {size}"),
        (None, true, Some(largest)) => format!("files up to {largest} (-g)"),
        (None, true, None) => {
            "-a goes up to 512 MB, which fits into the RAM of most machines".to_owned()
        }
        (None, false, _) => "a file of 512 KB, which fits into any RAM".to_owned(),
    };
    Some(ExplainedCommand {
        name: "iozone",
        measures: format!(
            "one stream for each file size and record size, one request at a time; {sizes}"
        ),
        doubts,
        overwrites: find_device(value("-f")),
    })
}

fn explain_diskspd(words: &[String]) -> Option<ExplainedCommand> {
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
            doubts.push(cached_read_doubt("no -Sh or -Su"));
        }
        if write > 0 {
            doubts.push(cached_write_doubt("no -Sh or -Su"));
        }
    }
    if write > 0 && value("Z").is_none() {
        doubts.push(suspect_doubt(
            compressible_data::CODE,
            "without -Z the same 256 bytes are written again and again".to_owned(),
            "Add -Z1M for random data.",
        ));
    }
    let seconds = value("d").unwrap_or_else(|| "10".to_owned());
    if seconds.parse().is_ok_and(|seconds: u64| seconds < 30) {
        doubts.push(suspect_doubt(
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
    Some(ExplainedCommand {
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
mod tests;
