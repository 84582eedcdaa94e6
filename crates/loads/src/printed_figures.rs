//! Parses figures from the output of a load generator, such as `tps = 812.3`, `Requests/sec:  5120.44` or a JSON
//! document. One parser is enough for pgbench, sysbench, wrk, ab, fio and redis-benchmark, because all of them print
//! names beside numbers.

use assay_model::load::PrintedFigure;
use regex::Regex;
use serde_json::Value;

/// Maximum number of figures that an error message lists.
const LISTED: usize = 24;
/// Maximum length of a figure's name in bytes. Longer text counts as a sentence.
const LONGEST_NAME: usize = 48;

/// A figure from an output: its name, and its value in base units (seconds, bytes, or plain numbers).
pub type NamedFigure = (String, f64);

/// Finds one figure in the output of a run.
///
/// # Errors
/// The output does not contain the figure, or the user's pattern is invalid. The message lists the figures of the
/// output.
pub fn find_figure(wanted: &PrintedFigure, output: &str) -> Result<f64, String> {
    if let Some(pattern) = &wanted.pattern {
        return match_pattern(&wanted.name, pattern, output);
    }
    let found = list_figures(output);
    let name = normalise(&wanted.name);
    let value = found.iter().find(|(known, _)| *known == name);
    match value {
        Some((_, value)) if value.is_finite() && *value > 0.0 => Ok(*value),
        Some((_, value)) => Err(format!(
            "it prints {value} as `{}`, and a ratio needs a number above 0",
            wanted.name
        )),
        None => Err(describe_missing(&wanted.name, &found)),
    }
}

fn describe_missing(name: &str, found: &[NamedFigure]) -> String {
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return format!(
            "it does not print `{name}`: its output contains nothing that looks like a figure"
        );
    }
    let rest = match names.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names[..names.len().min(LISTED)].join("`, `");
    format!("it does not print `{name}`. It prints `{names}`{rest}")
}

/// Compiles the user's pattern.
///
/// # Errors
/// The pattern is not a regular expression, or has no group.
pub fn compile_pattern(pattern: &str) -> Result<Regex, String> {
    let compiled =
        Regex::new(pattern).map_err(|error| format!("cannot read the pattern: {error}"))?;
    match compiled.captures_len() {
        0 | 1 => Err(format!(
            "the pattern `{pattern}` has no group: put the number in parentheses, such as `took ([0-9.]+) s`"
        )),
        _ => Ok(compiled),
    }
}

fn match_pattern(name: &str, pattern: &str, output: &str) -> Result<f64, String> {
    let compiled = compile_pattern(pattern)?;
    let found = compiled
        .captures_iter(output)
        .filter_map(|groups| groups.get(1))
        .last();
    let text =
        found.ok_or_else(|| format!("the pattern of `{name}` matches nothing in its output"))?;
    let number = read_number(text.as_str()).map(|(value, _)| value);
    number.filter(|value| *value > 0.0).ok_or_else(|| {
        let text = text.as_str().escape_debug();
        format!("the pattern of `{name}` matches `{text}`, which is no number above 0")
    })
}

/// Converts a name to lower case, with one hyphen between its words.
#[must_use]
pub fn normalise(name: &str) -> String {
    let words = name.split(|c: char| c.is_whitespace() || matches!(c, '_' | '-'));
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("-")
}

/// Lists the figures of an output in order. If several figures have the same name, only the first is returned.
#[must_use]
pub fn list_figures(output: &str) -> Vec<NamedFigure> {
    let (mut found, mut rest) = (Found::default(), output);
    // Text may stand before and after a document.
    while let Some((start, document, end)) = find_document(rest) {
        read_lines(&rest[..start], &mut found);
        add_fio(&document, &mut found);
        flatten("", &document, &mut found);
        rest = &rest[end..];
    }
    read_lines(rest, &mut found);
    found.0
}

#[derive(Default)]
struct Found(Vec<NamedFigure>);

impl Found {
    fn add(&mut self, name: &str, value: f64) {
        let name = normalise(name.trim_matches(|c: char| !c.is_alphanumeric() && c != '%'));
        let is_name = !name.is_empty() && name.len() <= LONGEST_NAME;
        if is_name && value.is_finite() && !self.0.iter().any(|(known, _)| *known == name) {
            self.0.push((name, value));
        }
    }
}

/// Parses the JSON document at the first brace. Returns the document with its start and end in the text.
fn find_document(text: &str) -> Option<(usize, Value, usize)> {
    let start = text.find('{')?;
    let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let document = documents.next()?.ok().filter(Value::is_object)?;
    Some((start, document, start + documents.byte_offset()))
}

/// Adds the figures from the output of `fio --output-format=json`, summed over the jobs: `read.iops`, `write.bw`,
/// `iops`. The percentiles, in seconds, come from the first job only.
fn add_fio(document: &Value, found: &mut Found) {
    let Some(jobs) = document.get("jobs").and_then(Value::as_array) else {
        return;
    };
    let (mut iops, mut bandwidth) = (0.0, 0.0);
    for side in ["read", "write"] {
        let sum = |key: &str| -> f64 {
            let of = |job: &Value| job[side][key].as_f64().unwrap_or_default();
            jobs.iter().map(of).sum()
        };
        if sum("total_ios") == 0.0 {
            continue;
        }
        iops += sum("iops");
        bandwidth += sum("bw_bytes");
        found.add(&format!("{side}.iops"), sum("iops"));
        found.add(&format!("{side}.bw"), sum("bw_bytes"));
        let latency = &jobs[0][side]["clat_ns"];
        found.add(
            &format!("{side}.mean"),
            latency["mean"].as_f64().unwrap_or(f64::NAN) / 1e9,
        );
        for (percentile, value) in latency["percentile"].as_object().into_iter().flatten() {
            let short = percentile.trim_end_matches('0').trim_end_matches('.');
            found.add(
                &format!("{side}.p{short}"),
                value.as_f64().unwrap_or(f64::NAN) / 1e9,
            );
        }
    }
    if iops > 0.0 {
        found.add("iops", iops);
        found.add("bw", bandwidth);
    }
}

/// Adds every number of a JSON document. Its name is its path, such as `summary.rps` or `steps.0.p99`.
fn flatten(path: &str, value: &Value, found: &mut Found) {
    let below = |key: &str| match path.is_empty() {
        true => key.to_owned(),
        false => format!("{path}.{key}"),
    };
    match value {
        Value::Number(number) => found.add(path, number.as_f64().unwrap_or(f64::NAN)),
        // Such as "900us".
        Value::String(text) => {
            if let Some((number, "" | "/s")) = read_number(text) {
                found.add(path, number);
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                flatten(&below(key), value, found);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                flatten(&below(&at.to_string()), value, found);
            }
        }
        _ => {}
    }
}

fn read_lines(output: &str, found: &mut Found) {
    // The heading above indented lines: "Latency (ms):" of sysbench.
    let (mut heading, mut unit) = (String::new(), 1.0);
    for line in output.split(['\n', '\r']) {
        let text = line.trim();
        if !line.starts_with([' ', '\t']) {
            (heading, unit) = (String::new(), 1.0);
        }
        if let Some(words) = text.strip_suffix(':').filter(|words| !words.contains(':')) {
            let (name, inside) = words.split_once('(').unwrap_or((words, ""));
            heading = normalise(name);
            unit = unit_factor(inside.trim_end_matches(')')).unwrap_or(1.0);
            continue;
        }
        read_line(text, &heading, unit, found);
    }
}

/// Reads the figures of a line: `NAME = VALUE`, `NAME: VALUE`, `NAME   VALUE`, `50%  VALUE`, `"NAME","VALUE"`, and
/// further `NAME=VALUE` and `(VALUE per sec.)` on the same line.
fn read_line(text: &str, heading: &str, unit: f64, found: &mut Found) {
    let Some((name, rest)) = split_name(text) else {
        return;
    };
    let name = name.trim_matches('"').trim();
    let mut named = |name: &str, value: f64| {
        if !heading.is_empty() {
            found.add(&format!("{heading}.{name}"), value);
        }
        found.add(name, value);
    };
    let Some((value, after)) = read_number(rest) else {
        return;
    };
    let is_plain = after.is_empty() || !after.starts_with(|c: char| c.is_alphanumeric());
    let value = if is_plain { value * unit } else { value };
    named(name, value);
    // sysbench: "transactions: 812 (81.17 per sec.)".
    if let Some((number, _)) = after.split_once('(').and_then(|(_, inside)| {
        let (number, words) = read_number(inside)?;
        words
            .trim_start()
            .starts_with("per sec")
            .then_some((number, words))
    }) {
        named(&format!("{name} per sec"), number);
    }
    // redis-benchmark: "SET: 74626.87 requests per second, p50=0.335 msec".
    for part in after.split([',', ' ']).filter(|part| part.contains('=')) {
        if let Some((inner, number)) = part.split_once('=')
            && let Some((_, position)) = after.split_once(part)
            && let Some((value, _)) = read_number(&format!("{number}{position}"))
        {
            named(&format!("{name}.{inner}"), value);
        }
    }
}

/// Splits a line into a name and the rest of the line, which starts with the number.
fn split_name(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix('"') {
        let (name, rest) = rest.split_once("\",")?;
        return Some((name, rest.trim_start_matches('"')));
    }
    let begins_number =
        |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    for (at, c) in text.char_indices() {
        let rest = text[at + c.len_utf8()..].trim_start();
        let is_gap = c.is_whitespace() && text[at..].starts_with("  ") || c == '\t';
        // An address or a time is no figure: "http://host:80/", "12:30:01".
        let is_apart = rest.len() < text.len() - at - c.len_utf8()
            || !text[..at].contains(char::is_whitespace);
        let is_sign = c == '=' || c == ':' && is_apart;
        if (is_gap || is_sign) && begins_number(rest) && has_name(&text[..at]) {
            return Some((&text[..at], rest));
        }
    }
    None
}

/// Returns whether a text may be the name of a figure, because it contains a letter or is a percentile such as `99%`.
fn has_name(text: &str) -> bool {
    text.chars().any(char::is_alphabetic) || text.trim().ends_with('%')
}

/// Parses a number and its unit at the start of a text. Converts times to seconds and sizes to bytes; `k`, `M` and `G`
/// multiply the number. Also returns the rest of the text.
fn read_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let mut end = text
        .find(|c| !digits(c) && !matches!(c, '-' | '+'))
        .unwrap_or(text.len());
    let exponent = text[end..].strip_prefix(['e', 'E']).map(|rest| {
        let sign = usize::from(rest.starts_with(['-', '+']));
        let more = rest[sign..]
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len() - sign);
        (more, 1 + sign + more)
    });
    if let Some((more, length)) = exponent
        && more > 0
    {
        end += length;
    }
    let number = text[..end].trim_end_matches([',', '.']);
    let value: f64 = number.replace(',', "").parse().ok()?;
    let rest = &text[number.len()..];
    let spaced = rest.trim_start_matches([' ', '[']);
    let unit = spaced
        .find(|c: char| !c.is_alphabetic() && c != 'µ')
        .unwrap_or(spaced.len());
    match unit_factor(&spaced[..unit]) {
        Some(factor) => Some((value * factor, &spaced[unit..])),
        None => Some((value, rest)),
    }
}

/// Returns the factor that converts a unit to base units; `None` if the word is not a unit.
fn unit_factor(unit: &str) -> Option<f64> {
    Some(match unit.trim() {
        "ns" | "nsec" => 1e-9,
        "us" | "µs" | "usec" => 1e-6,
        "ms" | "msec" => 1e-3,
        "s" | "sec" | "secs" | "seconds" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "B" | "bytes" => 1.0,
        "kB" | "KB" | "Kbytes" => 1e3,
        "MB" | "Mbytes" => 1e6,
        "GB" | "Gbytes" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
