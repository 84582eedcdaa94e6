//! Parses the summary line of `dd` and the command above it. GNU, BusyBox and BSD print different summaries.

use crate::quantities::{parse_size, split_number};
use crate::{Figures, ImportError, Line, ResultRow, Tool, ToolResult, find_command};
use assay_model::workload::{Durability, Pattern};
use assay_model::{Bytes, Nanos};

const TOOL: Tool = Tool::Dd;
/// Number of lines above the summary in which the command is searched.
const REACH: usize = 12;
/// Device files that are not storage, so that they are not the target of the test.
const NO_STORAGE: [&str; 6] = [
    "/dev/zero",
    "/dev/urandom",
    "/dev/random",
    "/dev/null",
    "/dev/stdin",
    "/dev/stdout",
];

pub(crate) fn parse(lines: &[Line<'_>]) -> Result<Vec<ToolResult>, ImportError> {
    let mut results = Vec::new();
    let mut from = 0;
    for (index, line) in lines.iter().enumerate() {
        let text = line.text.trim();
        let is_summary = text.starts_with(|c: char| c.is_ascii_digit())
            && text.contains(" bytes ")
            && [" copied, ", " transferred in ", " kopiert, "]
                .iter()
                .any(|word| text.contains(word));
        if !is_summary {
            continue;
        }
        let (bytes, seconds) = parse_summary(text)
            .ok_or_else(|| ImportError::new(TOOL, line, "`N bytes (…) copied, T s, RATE`"))?;
        let start = from.max(index.saturating_sub(REACH));
        results.push(build_result(
            bytes,
            seconds,
            find_command(lines, start, index, "dd"),
            text,
        ));
        from = index + 1;
    }
    Ok(results)
}

/// Parses the number of bytes and the seconds in a summary line.
fn parse_summary(text: &str) -> Option<(f64, f64)> {
    let (bytes, rest) = split_number(text)?;
    let words = [" copied, ", " transferred in ", " kopiert, "];
    let after = words
        .iter()
        .find_map(|word| Some(rest.split_once(word)?.1))?;
    let (time, unit) = after.split_once(' ')?;
    let unit = unit.split([',', ' ']).next()?;
    ["s", "sec", "secs", "seconds"]
        .contains(&unit)
        .then_some(())?;
    let seconds = crate::quantities::parse_number(time)?;
    (bytes > 0.0 && seconds > 0.0).then_some((bytes, seconds))
}

fn build_result(bytes: f64, seconds: f64, command: Option<String>, summary: &str) -> ToolResult {
    let mut result = ToolResult::new(TOOL);
    let operand = |key: &str| {
        let words = command.as_deref()?.split_whitespace();
        words
            .rev()
            .find_map(|word| word.strip_prefix(key))
            .map(str::to_owned)
    };
    let (from, to) = (operand("if="), operand("of="));
    let storage = |file: &Option<String>| {
        let file = file.as_deref()?;
        (!NO_STORAGE.contains(&file)).then(|| file.to_owned())
    };
    let piped = command
        .as_deref()
        .is_some_and(|command| command.contains('|'));
    let (pattern, target) = match (storage(&from), storage(&to)) {
        _ if piped => (None, None),
        (_, Some(to)) => (Some(Pattern::Write), Some(to)),
        (Some(from), None) => (Some(Pattern::Read), Some(from)),
        (None, None) => (None, None),
    };
    let Some(pattern) = pattern else {
        let why = match (&command, piped) {
            (None, _) => "the command is missing, which shows what was read and written",
            (_, true) => "the command is part of a pipe",
            _ => "no file or device took part",
        };
        result.others.push(format!("{summary}: {why}"));
        return result;
    };
    let block = operand("bs=")
        .or_else(|| operand(if pattern.reads() { "ibs=" } else { "obs=" }))
        .map_or(Some(Bytes(512)), |size| {
            parse_size(size.trim_end_matches('c'), 1024.0)
        });
    let flags = |key: &str| operand(key).unwrap_or_default();
    let has = |flags: &str, flag: &str| flags.split(',').any(|one| one == flag);
    let flag = flags(if pattern.reads() { "iflag=" } else { "oflag=" });
    result.direct = Some(has(&flag, "direct"));
    let name = match (storage(&from), pattern) {
        (Some(_), Pattern::Write) => "copy",
        (_, Pattern::Write) => "write",
        _ => "read",
    };
    let mut row = ResultRow::new(name, pattern, block);
    if pattern.writes() && (has(&flag, "dsync") || has(&flag, "sync")) {
        row.durability = Durability::Dsync;
    }
    row.runtime = Some(Nanos((seconds * 1e9) as u64));
    let rate = bytes / seconds;
    let row = row.with(Figures {
        bytes: Some(Bytes(bytes as u64)),
        count: block.map(|block| (bytes / block.0.max(1) as f64).round() as u64),
        per_s: block.map(|block| rate / block.0.max(1) as f64),
        ..Figures::of_rate(rate)
    });
    result.file_size = Some(Bytes(bytes as u64));
    result.target = target;
    result.command = command;
    result.rows.push(row);
    result
}

#[cfg(test)]
mod tests {
    use crate::parse_results;
    use assay_model::Bytes;
    use assay_model::workload::Pattern;

    #[test]
    fn summaries_of_gnu_busybox_and_bsd_are_read() {
        for (text, rate) in [
            (
                "# dd if=/dev/zero of=/srv/f bs=1M count=64 oflag=direct\n64+0 records in\n64+0 records out\n\
                 67108864 bytes (67 MB, 64 MiB) copied, 0.061882 s, 1.1 GB/s",
                1084.5e6,
            ),
            (
                "$ dd if=/dev/zero of=/srv/f bs=1M\n67108864 Bytes (67 MB, 64 MiB) kopiert, 0,5 s, 134 MB/s"
                    .replace("Bytes", "bytes")
                    .leak(),
                134.2e6,
            ),
            (
                "/ # dd if=/dev/zero of=f bs=1M count=64\n67108864 bytes (64.0MB) copied, 0.5 seconds, 128.0MB/s",
                134.2e6,
            ),
            (
                "$ sudo dd if=/dev/zero of=/tmp/f bs=1m\n67108864 bytes \
                 transferred in 0.500000 secs (134217728 bytes/sec)",
                134.2e6,
            ),
        ] {
            let results = parse_results(text).unwrap();
            let row = &results[0].rows[0];
            assert_eq!(row.pattern, Pattern::Write, "{text}");
            assert_eq!(row.block_size, Some(Bytes(1 << 20)), "{text}");
            let seen = row.write.as_ref().unwrap().bytes_per_s.unwrap();
            assert!((seen / rate - 1.0).abs() < 0.001, "{seen}");
        }
    }

    #[test]
    fn without_its_command_a_summary_is_no_figure() {
        let summary = "67108864 bytes (67 MB, 64 MiB) copied, 0.5 s, 134 MB/s";
        for above in [
            "64+0 records in",
            "# dd if=/dev/zero bs=1M | openssl enc -aes-256-ctr > /dev/null",
        ] {
            let result = &parse_results(&format!("{above}\n{summary}\n")).unwrap()[0];
            assert!(
                result.rows.is_empty() && result.others.len() == 1,
                "{above}"
            );
        }
        let text = "$ dd if=/srv/f of=/dev/null bs=4k\n67108864 bytes copied, soon";
        assert_eq!(parse_results(text).unwrap_err().line, 2);
    }
}
