//! Variables of a pasted shell script, as far as the text itself tells them.
//!
//! Nothing is executed. What is assigned in the text or gone through by a `for` is filled in; an
//! option whose value stays unknown is left out, and a note says so.

use std::collections::BTreeMap;

/// A value that the text does not tell, in the words that go on. No option of fio begins so.
pub(super) const UNKNOWN: char = '\u{1a}';
/// Values of fio's own that look like variables (`fio_keywords`, options.c) and stay as they are.
const KEYWORDS: [&str; 4] = ["pagesize", "mb_memory", "ncpus", "jobname"];
/// More than this many values of a loop are not looked at.
const LONGEST_LOOP: u64 = 4096;

/// Fills in variables. What was taken for them is told in `notes`.
pub(super) fn fill(text: &str, notes: &mut Vec<String>) -> String {
    if !text.contains(['$', '`']) {
        return text.to_owned();
    }
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut out = String::with_capacity(text.len());
    for line in commands(text) {
        let filled = expand(line, &known);
        assignments(&filled, &mut known, notes);
        out.push_str(&filled);
    }
    out
}

/// The text cut behind each line break and each `;` that stands in no quotes.
fn commands(text: &str) -> Vec<&str> {
    let (mut out, mut from, mut quote) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, ';' | '\n') => {
                out.push(&text[from..=at]);
                from = at + 1;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    out.push(&text[from..]);
    out
}

/// Values that a line assigns: `NAME=VALUE` where a command begins, and loops.
fn assignments(line: &str, known: &mut BTreeMap<String, String>, notes: &mut Vec<String>) {
    for command in line.split([';', '&', '|', '\n']) {
        let mut words = command.split_whitespace().peekable();
        while words.next_if(|word| is_before_assignment(word)).is_some() {}
        if words.peek() == Some(&"for") {
            words.next();
            let name = words.next().unwrap_or_default();
            if words.next() == Some("in") && is_name(name) {
                let values: Vec<String> = words.flat_map(braces).collect();
                if let Some(value) = representative(&values) {
                    if values.len() > 1 {
                        notes.push(format!(
                            "`{}` goes through {} values; looked at with {}",
                            name.escape_debug(),
                            values.len(),
                            value.escape_debug()
                        ));
                    }
                    known.insert(name.to_owned(), value);
                }
            }
            continue;
        }
        for word in words {
            let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) else {
                break;
            };
            let value = value.trim_matches(['"', '\'']);
            known.insert(name.to_owned(), value.to_owned());
        }
    }
}

fn is_before_assignment(word: &str) -> bool {
    matches!(
        word,
        "export"
            | "local"
            | "readonly"
            | "declare"
            | "do"
            | "then"
            | "{"
            | "$"
            | "#"
            | "sudo"
            | "env"
    )
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `{1..4}` and `{a,b}` alone in a word; any other word is itself.
fn braces(word: &str) -> Vec<String> {
    let Some(inner) = word
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    else {
        return vec![word.trim_matches(['"', '\'']).to_owned()];
    };
    if let Some((from, to)) = inner.split_once("..")
        && let (Ok(from), Ok(to)) = (from.parse::<u64>(), to.parse::<u64>())
    {
        let (low, high) = (from.min(to), from.max(to));
        return (low..=high.min(low.saturating_add(LONGEST_LOOP)))
            .map(|value| value.to_string())
            .collect();
    }
    inner.split(',').map(str::to_owned).collect()
}

/// The value of a loop that asks for most: the largest number, else the last word.
fn representative(values: &[String]) -> Option<String> {
    let known = || values.iter().filter(|value| !value.contains(UNKNOWN));
    let number = |text: &String| super::bytes(text, 1024);
    let largest = known()
        .filter(|value| number(value).is_some())
        .max_by_key(|value| number(value));
    largest.or_else(|| known().next_back()).cloned()
}

/// The line with its variables filled in; not inside single quotes.
fn expand(line: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(line.len());
    let mut single = false;
    let mut double = false;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '\\' if !single => {
                out.push(c);
                if let Some((_, next)) = chars.next() {
                    out.push(next);
                }
                continue;
            }
            '$' | '`' if !single => {
                let rest = &line[at..];
                if let Some((length, value)) = variable(rest, known) {
                    out.push_str(&value);
                    while chars.next_if(|(next, _)| *next < at + length).is_some() {}
                    continue;
                }
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Length of the variable or substitution that `text` begins with, and its value; none when it is
/// only a sign, such as a prompt.
fn variable(text: &str, known: &BTreeMap<String, String>) -> Option<(usize, String)> {
    let unknown = UNKNOWN.to_string();
    let until = |open: usize, close: char| {
        let length = text[open..].find(close)?;
        Some(open + length + close.len_utf8())
    };
    if text.starts_with('`') {
        return Some((until(1, '`')?, unknown));
    }
    if let Some(arithmetic) = text.strip_prefix("$((") {
        let end = arithmetic.find("))")?;
        return Some((3 + end + 2, unknown));
    }
    if text.starts_with("$(") {
        return Some((until(2, ')')?, unknown));
    }
    if let Some(rest) = text.strip_prefix("${") {
        let end = rest.find('}')?;
        let inner = &rest[..end];
        let split = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, how) = inner.split_at(split.unwrap_or(inner.len()));
        let default = how.strip_prefix(":-").or_else(|| how.strip_prefix('-'));
        let value = match known.get(name) {
            Some(value) if how.is_empty() || default.is_some() => value.clone(),
            _ => default.map_or(unknown, str::to_owned),
        };
        return Some((2 + end + 1, value));
    }
    let name: String = text[1..]
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    if name.is_empty() {
        // `$1` is a name of digits above; `$@`, `$*` and the like.
        let special = text[1..].starts_with(['@', '*', '#', '?', '$', '!']);
        return special.then_some((2, unknown));
    }
    let keyword = KEYWORDS.contains(&name.as_str()) && !known.contains_key(&name);
    (!keyword).then(|| (1 + name.len(), known.get(&name).cloned().unwrap_or(unknown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> (String, usize) {
        let mut notes = Vec::new();
        (fill(text, &mut notes), notes.len())
    }

    #[test]
    fn what_the_text_tells_is_filled_in() {
        let script = "SIZE=4G\nexport D=\"/srv/x\"\nfor d in 1 4 64 16; do\n fio --iodepth=$d --size=${SIZE} \
                      --filename=\"$D\"/f --bs=${BS:-4k}\ndone\n";
        let (text, notes) = filled(script);
        assert!(
            text.contains("--iodepth=64 --size=4G --filename=\"/srv/x\"/f --bs=4k"),
            "{text}"
        );
        assert_eq!(notes, 1);
        let (text, _) = filled("for i in {1..8}; do fio --numjobs=$i; done");
        assert!(text.contains("--numjobs=8"), "{text}");
    }

    #[test]
    fn what_it_does_not_tell_stays_unknown() {
        for text in [
            "--size=$1",
            "--size=${X}",
            "--size=$(nproc)",
            "--size=`nproc`",
            "--size=$((2*4))",
        ] {
            assert_eq!(filled(text).0, format!("--size={UNKNOWN}"), "{text}");
        }
        for text in [
            "--name='$x'",
            "--filename=$jobname",
            "a\\$b",
            "user@host:~$ fio",
            "cost $ 5",
        ] {
            assert_eq!(filled(text).0, text);
        }
    }

    #[test]
    fn broken_ones_do_no_harm() {
        for text in [
            "$", "${", "$(", "`", "$((", "${}", "for in", "for x in", "=", "'$", "é$é",
        ] {
            let _ = filled(text);
        }
    }
}
