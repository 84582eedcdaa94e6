//! Parses the trace of a shell: which lines took long, and what made the shell run them. Performs no I/O.

use super::{LineTrigger, StartupLine};
use crate::LoginPart;
use assay_model::Nanos;

/// Maximum number of reported lines.
const SHOWN: usize = 5;
/// Minimum duration of a reported line.
const SHORTEST: Nanos = Nanos(50_000_000);
/// Minimum duration of the short lines of a file together.
const SHORTEST_OF_FILE: Nanos = Nanos(150_000_000);
/// Markers in the trace: what runs from here on.
const MARKERS: [(&str, LineTrigger); 3] = [
    (": assay-logout", LineTrigger::LogoutFile),
    (": assay-prompt-command", LineTrigger::PromptCommand),
    (": assay-prompt-string", LineTrigger::PromptString),
];
/// Programs that show a terminal of their own, and end when their user ends them.
const TERMINALS: [&str; 7] = [
    "tmux", "screen", "zellij", "byobu", "dtach", "abduco", "mosh",
];

/// A line of the trace.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TracedLine {
    /// Start in seconds since 1970.
    pub at: f64,
    /// Position as `FILE:LINE`.
    place: String,
    /// The whole command. It may contain secrets.
    text: String,
}

impl TracedLine {
    /// Parses a line of the trace. For each nesting level, bash repeats the first character of the prefix (`+`). Output
    /// without a line feed, as of `clear`, stands before it.
    pub fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once("+assay-line ")?;
        let mut words = rest.splitn(3, ' ');
        let at: f64 = words.next()?.replace(',', ".").parse().ok()?;
        Some(Self {
            at,
            place: words.next()?.to_owned(),
            text: words.next().unwrap_or_default().trim().to_owned(),
        })
    }

    /// Returns the end of the last line.
    pub fn end(at: f64) -> Self {
        Self {
            at,
            place: String::new(),
            text: String::new(),
        }
    }

    /// Returns whether the line replaces the shell, or starts a program that has the terminal until its user ends it.
    pub fn replaces_shell(&self) -> bool {
        let mut words = self.text.split_whitespace();
        let Some(first) = words.next() else {
            return false;
        };
        first == "exec" && words.next().is_some() || TERMINALS.contains(&base_name(first))
    }

    /// Returns the first word of the command; for `exec` also the name of the program.
    fn command(&self) -> String {
        let mut words = self.text.split_whitespace();
        // An assignment may contain a secret.
        let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
        let first = name(words.next().unwrap_or_default());
        match words.next() {
            Some(program) if first == "exec" && !program.starts_with('-') => {
                format!("exec {}", name(base_name(program)))
            }
            _ => first,
        }
    }

    /// Returns whether assay itself wrote the line, or the line stands in a variable or trap and not in a file.
    fn has_no_file(&self) -> bool {
        let starts = [":", "environment:", "zsh:"];
        starts.iter().any(|start| self.place.starts_with(start))
    }
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// A line that makes the shell run commands later.
struct Hook<'a> {
    trigger: LineTrigger,
    line: &'a TracedLine,
}

impl<'a> Hook<'a> {
    fn parse(line: &'a TracedLine) -> Option<Self> {
        let text = &line.text;
        let assigns = |name: &str| {
            text.split_once(name).is_some_and(|(before, after)| {
                let is_start = before.is_empty() || before.ends_with([' ', '\'']);
                is_start && after.starts_with(['=', '+', '['])
            })
        };
        let trigger = match () {
            () if line.has_no_file() => return None,
            () if assigns("PROMPT_COMMAND") => LineTrigger::PromptCommand,
            () if assigns("PS1") || assigns("PROMPT") => LineTrigger::PromptString,
            () if text.starts_with("trap ") && text.ends_with(" DEBUG") => LineTrigger::DebugTrap,
            () => return None,
        };
        Some(Self { trigger, line })
    }

    /// Returns whether the hook contains this command: as text, or its first word if the arguments were expanded.
    fn contains(&self, command: &str, whole: bool) -> bool {
        let word = match whole {
            true => command,
            false => command.split_whitespace().next().unwrap_or(command),
        };
        !word.is_empty() && self.line.text.contains(word)
    }
}

/// Finds the hook that runs a command: the newest one of this kind that contains the command.
fn find_hook<'a>(
    hooks: &'a [Hook<'a>],
    trigger: LineTrigger,
    command: &str,
) -> Option<&'a Hook<'a>> {
    let of_kind = || {
        let all = hooks.iter().rev();
        all.filter(move |hook| hook.trigger == trigger)
    };
    let by = |whole| of_kind().find(|hook| hook.contains(command, whole));
    by(true).or_else(|| by(false)).or_else(|| of_kind().next())
}

/// Returns the slowest lines. If a loop executes a line several times, the times are added up.
pub(super) fn find_longest_lines(traced: &[TracedLine], part: &LoginPart) -> Vec<StartupLine> {
    let mut lines: Vec<StartupLine> = Vec::new();
    let mut hooks: Vec<Hook> = Vec::new();
    let mut trigger = LineTrigger::StartUpFile;
    for (line, next) in traced.iter().zip(traced.iter().skip(1)) {
        let took = Nanos::from_secs_f64((next.at - line.at).max(0.0));
        if let Some((_, next)) = MARKERS.iter().find(|(marker, _)| line.text == *marker) {
            trigger = *next;
            continue;
        }
        let is_logout = trigger == LineTrigger::LogoutFile;
        // The end of the trace follows the last line of each kind.
        let is_last = next.place.is_empty();
        let trap = hooks
            .iter()
            .rev()
            .find(|hook| hook.trigger == LineTrigger::DebugTrap && hook.contains(&line.text, true));
        let (place, trigger) = match trap {
            Some(trap) => (trap.line.place.clone(), LineTrigger::DebugTrap),
            None if is_last && line.replaces_shell() => {
                (line.place.clone(), LineTrigger::ReplacedShell)
            }
            None if !line.has_no_file() => (line.place.clone(), trigger),
            None if matches!(
                trigger,
                LineTrigger::PromptCommand | LineTrigger::PromptString
            ) =>
            {
                let hook = find_hook(&hooks, trigger, &line.text);
                let place = hook.map_or("the environment", |hook| &hook.line.place);
                (place.to_owned(), trigger)
            }
            None => continue,
        };
        hooks.extend(Hook::parse(line));
        // The start-up files are read for the logout files only, and may set the trap.
        if *part == LoginPart::Logout && !is_logout {
            continue;
        }
        let command = line.command();
        let same = |other: &&mut StartupLine| {
            other.place == place && other.command == command && other.trigger == trigger
        };
        match lines.iter_mut().find(same) {
            Some(line) => line.took.0 += took.0,
            None => lines.push(StartupLine {
                place,
                command,
                took,
                part: part.clone(),
                trigger,
            }),
        }
    }
    let (mut long, short): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| line.took >= SHORTEST);
    long.extend(sum_by_file(short, traced));
    long.sort_by_key(|line| std::cmp::Reverse(line.took));
    long.truncate(SHOWN);
    long
}

/// Adds up the short lines of each file: a script of completions has thousands. The time that tracing costs is left
/// out: a quarter of all lines takes no longer than a line whose command takes no time.
fn sum_by_file(short: Vec<StartupLine>, traced: &[TracedLine]) -> Vec<StartupLine> {
    let mut steps: Vec<f64> = traced
        .iter()
        .zip(traced.iter().skip(1))
        .map(|(one, next)| (next.at - one.at).max(0.0))
        .collect();
    steps.sort_by(f64::total_cmp);
    let cost = Nanos::from_secs_f64(steps.get(steps.len() / 4).copied().unwrap_or(0.0));
    let runs_of = |file: &str| {
        let is_in = |line: &&TracedLine| file_of(&line.place) == file;
        traced.iter().filter(is_in).count() as u64
    };
    let mut files: Vec<StartupLine> = Vec::new();
    for line in short {
        let file = file_of(&line.place).to_owned();
        let same = |other: &&mut StartupLine| other.place == file && other.trigger == line.trigger;
        match files.iter_mut().find(same) {
            Some(sum) => sum.took.0 += line.took.0,
            None => files.push(StartupLine {
                place: file,
                command: String::new(),
                ..line
            }),
        }
    }
    for sum in &mut files {
        let traced = cost.0.saturating_mul(runs_of(&sum.place));
        sum.took.0 = sum.took.0.saturating_sub(traced);
    }
    files.retain(|sum| sum.took >= SHORTEST_OF_FILE && sum.place.starts_with('/'));
    files
}

fn file_of(place: &str) -> &str {
    place.rsplit_once(':').map_or(place, |(file, _)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(trace: &[&str]) -> Vec<TracedLine> {
        trace
            .iter()
            .filter_map(|line| TracedLine::parse(line))
            .collect()
    }

    #[test]
    fn the_line_that_waits_is_named_without_what_it_says() {
        // bash 5.2.
        let traced = parse(&[
            "+assay-line 1700000000.000100 :0 [ -r /etc/profile ]",
            "++assay-line 1700000000.100000 /etc/profile:4 id -u",
            "\u{1b}[H\u{1b}[2J++assay-line 1700000000.110000 /home/u/.bashrc:7 export TOKEN=hunter2",
            "++assay-line 1700000000.120000 /home/u/.bashrc:12 lockfile -60 /home/u/.tool.lock",
            "something else",
            "+assay-line 1700000060.120000 :0 : assay-end",
        ]);
        assert_eq!(traced.len(), 5);
        let found = find_longest_lines(&traced, &LoginPart::Prompt);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "/home/u/.bashrc:12");
        assert_eq!(found[0].command, "lockfile");
        assert!((found[0].took.as_secs_f64() - 60.0).abs() < 1e-3);
        assert!(!format!("{found:?}").contains("hunter2"));
    }

    #[test]
    fn a_line_that_runs_in_a_loop_is_one_line() {
        let line = |at: f64, place: &str, text: &str| TracedLine {
            at,
            place: place.to_owned(),
            text: text.to_owned(),
        };
        let mut all: Vec<TracedLine> = (0..20)
            .flat_map(|turn| {
                let at = f64::from(turn) * 0.04;
                [
                    line(at, "/h/.bashrc:3", "test -e x"),
                    line(at + 0.001, "/h/.bashrc:4", "git status"),
                ]
            })
            .collect();
        all.push(line(0.8, ":0", ": assay-end"));
        let found = find_longest_lines(&all, &LoginPart::Session);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&found[0].place[..], &found[0].part),
            ("/h/.bashrc:4", &LoginPart::Session)
        );
        assert!(found[0].took >= Nanos(700_000_000));
    }

    #[test]
    fn what_runs_at_each_prompt_stands_where_it_was_set() {
        // bash 5.2, with whole seconds.
        let found = find_longest_lines(
            &parse(&[
                "++assay-line 1.0 /h/rc:5 PROMPT_COMMAND='sleep 3'",
                "++assay-line 1.0 /h/rc:6 PROMPT_COMMAND+=(my_prompt)",
                "++assay-line 1.0 /h/rc:7 export 'PS1=\\u $(sleep $N)\\$ '",
                "++assay-line 1.0 /h/rc:7 PS1='\\u $(sleep $N)\\$ '",
                "++assay-line 1.0 /h/rc:8 trap 'nap 1' DEBUG",
                "+++assay-line 1.0 /h/rc:9 nap 1",
                "++assay-line 2.0 /h/rc:9 alias a=b",
                "+assay-line 2.0 :1 assay_p",
                "+assay-line 2.0 environment:1 : assay-prompt-command",
                "+assay-line 2.0 environment:1 eval 'sleep 3'",
                "++assay-line 2.0 environment:1 sleep 3",
                "+assay-line 5.0 environment:1 eval my_prompt",
                "++assay-line 5.0 environment:1 my_prompt",
                "++assay-line 5.0 /h/rc:3 sleep 2",
                "+assay-line 7.0 environment:1 : assay-prompt-string",
                "+++assay-line 7.0 environment:1 sleep 15",
                "++assay-line 22.0 :1 nap 1",
                "+assay-line 23.0 :1 : assay-end",
            ]),
            &LoginPart::Prompt,
        );
        let all: Vec<_> = found
            .iter()
            .map(|line| (&line.place[..], line.trigger, line.took.0 / 1_000_000_000))
            .collect();
        assert_eq!(
            all,
            [
                ("/h/rc:7", LineTrigger::PromptString, 15),
                ("/h/rc:5", LineTrigger::PromptCommand, 3),
                ("/h/rc:8", LineTrigger::DebugTrap, 2),
                ("/h/rc:3", LineTrigger::PromptCommand, 2),
            ]
        );
    }

    #[test]
    fn a_program_in_place_of_the_shell_is_named_without_its_arguments() {
        let mut traced =
            parse(&["++assay-line 1.0 /h/.bashrc:2 exec /usr/bin/zsh --token hunter2"]);
        assert!(traced[0].replaces_shell());
        traced.push(TracedLine::end(91.0));
        let found = find_longest_lines(&traced, &LoginPart::Prompt);
        assert_eq!(found[0].command, "exec zsh");
        assert_eq!(found[0].trigger, LineTrigger::ReplacedShell);
        assert!(!parse(&["+assay-line 1.0 /h/.bashrc:2 exec"])[0].replaces_shell());
    }

    #[test]
    fn short_lines_of_a_file_are_counted_together() {
        let mut lines: Vec<String> = (0..400)
            .map(|n| {
                let at = f64::from(n) / 1000.0;
                format!("++assay-line {at:.4} /h/done.sh:{n} complete -F f{n} c")
            })
            .collect();
        // Tracing costs a tenth of a millisecond.
        lines.extend((0..400).map(|n| {
            let at = 0.4 + f64::from(n) / 10_000.0;
            format!("++assay-line {at:.4} /h/.bashrc:{n} alias a{n}=b")
        }));
        lines.push("+assay-line 0.44 :1 : assay-end".to_owned());
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let found = find_longest_lines(&parse(&lines), &LoginPart::Prompt);
        let all: Vec<_> = found
            .iter()
            .map(|line| (&line.place[..], &line.command[..], line.took.0 / 10_000_000))
            .collect();
        assert_eq!(all, [("/h/done.sh", "", 36)]);
    }
}
