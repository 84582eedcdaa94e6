//! Command lines, as a person types them or copies them from a page.

use super::shell::UNKNOWN;
use super::{JobOptions, OptionsError, Source, canonical, is_flag};
use assay_model::secrets;

/// Options of fio itself that take a value in the next word (`fio --help`, 3.33).
const OWN_WITH_VALUE: [&str; 22] = [
    "output",
    "output-format",
    "terse-version",
    "debug",
    "eta",
    "eta-newline",
    "status-interval",
    "section",
    "alloc-size",
    "max-jobs",
    "server",
    "daemonize",
    "client",
    "remote-config",
    "idle-prof",
    "inflate-log",
    "trigger-file",
    "trigger-timeout",
    "trigger",
    "trigger-remote",
    "aux-path",
    "profile",
];
/// Options of fio itself without a value.
const OWN: [&str; 11] = [
    "parse-only",
    "merge-blktrace-only",
    "bandwidth-log",
    "minimal",
    "append-terse",
    "version",
    "help",
    "cpuclock-test",
    "showcmd",
    "readonly",
    "warnings-fatal",
];

/// One call of fio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Invocation {
    /// The jobs it names, in order.
    pub jobs: Vec<JobOptions>,
    /// The job files it names.
    pub job_files: Vec<String>,
    /// What had to be mended before it could be read, such as a dash that a web page changed.
    pub mended: Vec<String>,
}

/// Reads every call of fio in `text`: with or without the first word, a prompt before it, line
/// continuations, other commands before and after, redirections.
///
/// # Errors
/// Unbalanced quotes, no call of fio, no job, a value that fio would refuse.
pub fn command_line(text: &str) -> Result<Vec<Invocation>, OptionsError> {
    let mut mended = Vec::new();
    let text = mend(text, &mut mended);
    let text = super::shell::fill(&text, &mut mended);
    let mut found = Vec::new();
    for segment in segments(&text) {
        let words = shell_words::split(&segment).map_err(|_| {
            OptionsError::new("a quotation mark is not closed: add the missing ' or \"")
        })?;
        // A continuation that lost its line break leaves an escaped blank before the next word.
        let words: Vec<String> = words
            .iter()
            .map(|word| word.trim().to_owned())
            .filter(|word| !word.is_empty() && word != "\\")
            .collect();
        if let Some(arguments) = arguments(&words) {
            found.push(invocation(arguments, &mut mended)?);
        }
    }
    let Some(first) = found.first_mut() else {
        let what = if text.trim().is_empty() {
            "nothing to read"
        } else {
            "no call of fio in it"
        };
        return Err(OptionsError::new(format!(
            "{what}: expected `fio --name=… --rw=…` or the path of a job file"
        )));
    };
    first.mended = mended;
    Ok(found)
}

/// The words of every command in `text`, of whatever program; what cannot be split is left out.
#[must_use]
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let mut mended = Vec::new();
    let text = mend(text, &mut mended);
    let text = super::shell::fill(&text, &mut mended);
    let words = |segment: &String| shell_words::split(segment).ok();
    let told = |words: Vec<String>| words.iter().map(|word| told(word)).collect();
    segments(&text).iter().filter_map(words).map(told).collect()
}

/// Reads one call of fio that a shell has already split into words.
///
/// # Errors
/// As [`command_line`].
pub fn command_words(words: &[String]) -> Result<Invocation, OptionsError> {
    let mut mended = Vec::new();
    let arguments = arguments(words)
        .ok_or_else(|| OptionsError::new("no call of fio in it: expected `fio --name=… --rw=…`"))?;
    let mut call = invocation(arguments, &mut mended)?;
    call.mended = mended;
    Ok(call)
}

/// A word whose unknown parts are shown as such.
fn told(word: &str) -> String {
    let shown = word.replace(UNKNOWN, "$…");
    secrets::text(&shown).escape_debug().to_string()
}

/// Undoes what web pages and word processors do to a command line.
fn mend(text: &str, mended: &mut Vec<String>) -> String {
    let mut out = text.replace("\r\n", "\n");
    for (from, to) in [('“', '"'), ('”', '"'), ('‘', '\''), ('’', '\'')] {
        if out.contains(from) {
            mended.push(format!("read `{from}` as `{to}`"));
            out = out.replace(from, &to.to_string());
        }
    }
    out = out.replace('\u{a0}', " ");
    // Blanks behind a continuation.
    let mut joined = String::with_capacity(out.len());
    for line in out.split_inclusive('\n') {
        match line.trim_end().strip_suffix('\\') {
            Some(body) if !body.ends_with('\\') => {
                joined.push_str(body);
                joined.push(' ');
            }
            _ => joined.push_str(line),
        }
    }
    joined
}

/// The commands of a shell line, redirections left out. Operators inside quotes do not count.
fn segments(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quote: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let current = out.last_mut().expect("never empty");
        match (quote, c) {
            (_, '\\') if quote != Some('\'') => {
                current.push(c);
                current.extend(chars.next());
            }
            (Some(open), c) => {
                current.push(c);
                if c == open {
                    quote = None;
                }
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                current.push(c);
            }
            (None, '>' | '<') => {
                redirection(current, &mut chars);
            }
            (None, '&') if chars.peek() == Some(&'>') => {
                chars.next();
                redirection(current, &mut chars);
            }
            (None, ';' | '|' | '&' | '\n') => out.push(String::new()),
            (None, c) => current.push(c),
        }
    }
    out
}

/// Drops a redirection: the descriptor before it, the operator, the word behind it.
fn redirection(current: &mut String, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let kept = current.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if current[..kept].ends_with(char::is_whitespace) {
        current.truncate(kept);
    }
    while chars
        .next_if(|c| matches!(c, '>' | '<' | '&' | '|'))
        .is_some()
    {}
    while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    while chars
        .next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&'))
        .is_some()
    {}
    current.push(' ');
}

/// What follows the word `fio`, when this is a call of fio; everything when it begins with an
/// option.
fn arguments(words: &[String]) -> Option<&[String]> {
    if words.first().is_some_and(|word| dash(word).is_some()) {
        return Some(words);
    }
    let is_fio = |word: &String| word.rsplit('/').next() == Some("fio");
    // `sudo fio`, `# fio`, `user@host:~$ fio`, `taskset -c 1 fio`.
    let at = words.iter().position(is_fio)?;
    Some(&words[at + 1..])
}

/// The name behind the dashes of an option, also behind typographic ones.
fn dash(word: &str) -> Option<(&str, bool)> {
    let dashes = ['-', '–', '—', '−', '‐', '‑'];
    let rest = word.trim_start_matches(dashes);
    let mended = word[..word.len() - rest.len()].contains(&dashes[1..]);
    let first = rest.chars().next()?;
    (rest.len() < word.len() && first.is_ascii_alphabetic()).then_some((rest, mended))
}

fn invocation(words: &[String], mended: &mut Vec<String>) -> Result<Invocation, OptionsError> {
    let mut result = Invocation::default();
    let mut global: Vec<(String, String)> = Vec::new();
    let mut job: Option<(String, Vec<(String, String)>)> = None;
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some((rest, pasted)) = dash(word) else {
            match word.contains(UNKNOWN) {
                true => mended.push(format!(
                    "`{}` is not told by the text and left out",
                    told(word)
                )),
                false => result.job_files.push(word.clone()),
            }
            continue;
        };
        let (key, value) = match rest.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (rest, None),
        };
        if pasted {
            mended.push(format!(
                "read `{}` as `--{}`",
                secrets::text(word).escape_debug(),
                secrets::text(rest).escape_debug()
            ));
        }
        if OWN.contains(&key) {
            continue;
        }
        if OWN_WITH_VALUE.contains(&key) {
            if value.is_none() {
                words.next();
            }
            continue;
        }
        let key = canonical(key);
        let value = match value {
            Some(value) => value,
            None if is_flag(&key) => String::new(),
            None => words
                .next_if(|next| dash(next).is_none())
                .cloned()
                .ok_or_else(|| {
                    OptionsError::new(format!("--{} has no value", key.escape_debug()))
                })?,
        };
        let value = match value.contains(UNKNOWN) {
            false => value,
            // Names are only shown.
            true if key == "name" => told(&value),
            true => {
                mended.push(format!(
                    "the value of {} is not told by the text; judged without it",
                    key.escape_debug()
                ));
                continue;
            }
        };
        if key == "name" {
            finish(job.take(), &mut global, &mut result)?;
            job = Some((value, Vec::new()));
        } else if let Some((_, options)) = job.as_mut() {
            options.push((key, value));
        } else {
            // Before the first --name an option holds for all jobs.
            global.push((key, value));
        }
    }
    finish(job, &mut global, &mut result)?;
    if result.jobs.is_empty() && result.job_files.is_empty() {
        return Err(OptionsError::new(
            "no job in it: fio needs --name=… for a job on the command line, or a job file",
        ));
    }
    Ok(result)
}

fn finish(
    job: Option<(String, Vec<(String, String)>)>,
    global: &mut Vec<(String, String)>,
    result: &mut Invocation,
) -> Result<(), OptionsError> {
    let Some((name, options)) = job else {
        return Ok(());
    };
    if name.starts_with("global") {
        global.extend(options);
        return Ok(());
    }
    let all = global.iter().cloned().chain(options);
    let job = JobOptions::from_given(&name, all, Source::Complete)?;
    result.jobs.push(job);
    Ok(())
}
