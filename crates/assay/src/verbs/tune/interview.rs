//! Asks the user on the terminal for the parts of a goal: at most six questions, each with a default.

use super::Args;
use anyhow::{Context as _, bail};
use assay_host::{Host, LiveHost};
use assay_model::target::is_url;
use std::io::{BufRead, IsTerminal as _, Write};
use std::path::Path;

/// How often a question is asked until an invalid answer is an error.
const AGAIN: u32 = 3;

/// Choices for the content of a directory, as (text of the choice, workload that represents the content).
const CONTENTS: [(&str, &str); 4] = [
    (
        "files that are read and now and then written",
        "randrw95-16k-qd4",
    ),
    ("a database", "randrw75-16k-qd8-fdatasync"),
    (
        "mail, logs or an NFS export: small writes that must be safe",
        "randwrite-16k-qd1-fsync",
    ),
    ("virtual disks", "randrw70-4k-qd4-fsync"),
];
/// Choices for what is too slow, as (text of the choice, figure, whether less of the figure is better).
const PAINS: [(&str, &str, bool); 3] = [
    ("now and then something takes very long", "p99", true),
    ("everything takes a little too long", "p50", true),
    ("too little is done per second", "iops", false),
];

/// Returns whether to ask questions: the command line has a target but no goal, and standard input is a terminal.
pub(super) fn is_needed(args: &Args) -> bool {
    let is_placed = args.target.is_some() || args.load.is_some();
    is_placed && args.want.is_empty() && args.goal.is_none() && std::io::stdin().is_terminal()
}

/// Asks the questions on the terminal. Then shows the command line that is equivalent to the answers.
///
/// # Errors
/// The terminal is closed, or answers are invalid several times.
pub(super) fn ask_on_terminal(args: &Args) -> anyhow::Result<Args> {
    let guess = args
        .target
        .as_deref()
        .map_or(0, |target| guess_contents(&LiveHost, target));
    let answers = std::io::stdin().lock();
    let asked = Interview {
        answers,
        out: std::io::stderr(),
    }
    .ask(args, guess)?;
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    eprintln!(
        "The same without questions:\n  {}\n",
        write_line(words, &asked)
    );
    Ok(asked)
}

/// Guesses the content of a directory from the names of its files. Returns an index of [`CONTENTS`].
fn guess_contents(host: &dyn Host, target: &str) -> usize {
    let names = host.list(Path::new(target)).unwrap_or_default();
    let has = |fits: fn(&str) -> bool| names.iter().any(|name| fits(&name.to_string_lossy()));
    match () {
        () if has(|name| name == "PG_VERSION" || name == "ibdata1") => 1,
        () if has(|name| ["cur", "new", "dovecot.index", "Maildir"].contains(&name)) => 2,
        () if has(|name| name.ends_with(".qcow2") || name.ends_with(".raw")) => 3,
        () => 0,
    }
}

struct Interview<R, W> {
    answers: R,
    out: W,
}

impl<R: BufRead, W: Write> Interview<R, W> {
    fn ask(mut self, args: &Args, guess: usize) -> anyhow::Result<Args> {
        let mut asked = args.clone();
        let target = args.target.as_deref().unwrap_or_default();
        let is_directory = args.load.is_none() && !is_url(target);
        let load = match is_directory {
            true => {
                let question = format!("What lies in {}?", target.escape_debug());
                let words: Vec<&str> = CONTENTS.iter().map(|(words, _)| *words).collect();
                format!("{}.", CONTENTS[self.choose(&question, &words, guess)?].1)
            }
            false => String::new(),
        };
        let words: Vec<&str> = PAINS.iter().map(|(words, ..)| *words).collect();
        let usual = usize::from(args.load.is_some());
        let (_, figure, less) = PAINS[self.choose("What hurts?", &words, usual)?];
        let example = match less {
            true => "30ms",
            false => "2000",
        };
        let good =
            format!("Which {figure} would be good, such as {example}? Empty: as good as it gets");
        let want = |answer: &str| match (answer.is_empty(), less) {
            (true, true) => format!("less {load}{figure}"),
            (true, false) => format!("more {load}{figure}"),
            (false, true) => format!("{load}{figure} <= {answer}"),
            (false, false) => format!("{load}{figure} >= {answer}"),
        };
        let is_goal = |answer: &str| want(answer).parse::<assay_tune::Want>().is_ok();
        let answer = self.read(&good, "", is_goal)?;
        let mut add = |option: &str, value: &str| {
            asked.asked.extend([option.to_owned(), value.to_owned()]);
            value.to_owned()
        };
        asked.want = vec![add("--want", &want(&answer))];
        if args.budget.is_none() {
            let is_time = |answer: &str| answer.parse::<assay_model::Nanos>().is_ok();
            let time = self.read("How long may it take?", "1h", is_time)?;
            asked.budget = add("--budget", &time).parse().ok();
        }
        if args.may.is_none() {
            let levels = [
                "settings that a reboot resets",
                "service: also reload and restart services",
            ];
            let level = self.choose("What may be changed?", &levels, 0)?;
            asked.may = Some(add("--may", ["low", "service"][level]));
        }
        if args.while_ok.is_none() {
            let question = "Which command has to succeed all the time? Empty: none";
            let command = self.read(question, "", |line| shell_words::split(line).is_ok())?;
            asked.while_ok = (!command.is_empty()).then(|| add("--while-ok", &command));
        }
        Ok(asked)
    }

    /// Asks the user to select one of several answers by its number. Returns the index of the answer, counted from 0.
    fn choose(&mut self, question: &str, words: &[&str], usual: usize) -> anyhow::Result<usize> {
        let mut text = question.to_owned();
        for (at, word) in words.iter().enumerate() {
            text.push_str(&format!("\n  {} {word}", at + 1));
        }
        let number = |answer: &str| {
            answer
                .parse::<usize>()
                .ok()
                .filter(|n| (1..=words.len()).contains(n))
        };
        let answer = self.read(&text, &(usual + 1).to_string(), |line| {
            number(line).is_some()
        })?;
        Ok(number(&answer).unwrap_or(1) - 1)
    }

    /// Reads answers until one is valid. An empty line selects the default.
    fn read(
        &mut self,
        question: &str,
        usual: &str,
        fits: impl Fn(&str) -> bool,
    ) -> anyhow::Result<String> {
        for _ in 0..AGAIN {
            match usual {
                "" => write!(self.out, "{question}: ")?,
                usual => write!(self.out, "{question} [{usual}] ")?,
            }
            self.out.flush()?;
            let mut line = String::new();
            let read = self.answers.read_line(&mut line);
            if read.context("cannot read the answer")? == 0 {
                bail!("the terminal was closed: say the goal with --want");
            }
            let answer = match line.trim() {
                "" => usual,
                answer => answer,
            };
            if fits(answer) || answer.is_empty() {
                return Ok(answer.to_owned());
            }
            writeln!(self.out, "`{}` does not fit.", answer.escape_debug())?;
        }
        bail!("no answer fits: say the goal with --want, see `assay tune --help`");
    }
}

/// Returns the command line that is equivalent to the answers.
fn write_line(given: impl Iterator<Item = String>, asked: &Args) -> String {
    let words = ["assay".to_owned()].into_iter().chain(given);
    shell_words::join(words.chain(asked.asked.iter().cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn ask(words: &[&str], answers: &str) -> anyhow::Result<(Args, String)> {
        let words = ["tune"].iter().chain(words);
        let args = Line::try_parse_from(words).unwrap().args;
        let mut out = Vec::new();
        let interview = Interview {
            answers: answers.as_bytes(),
            out: &mut out,
        };
        let asked = interview.ask(&args, 2)?;
        Ok((asked, String::from_utf8(out).unwrap()))
    }

    #[test]
    fn six_answers_make_a_goal_and_the_line_that_says_the_same() {
        let (asked, out) = ask(&["/srv"], "\n\n30ms\n2h\n2\ntrue\n").unwrap();
        assert_eq!(asked.want, ["randwrite-16k-qd1-fsync.p99 <= 30ms"]);
        let given = ["tune", "/srv", "--seed", "7"].map(str::to_owned);
        let line = write_line(given.into_iter(), &asked);
        let words = shell_words::split(&line).unwrap();
        let again = Line::try_parse_from(&words[1..]).unwrap().args;
        assert_eq!((again.want, again.seed), (asked.want, Some(7)));
        assert_eq!(
            (again.budget, again.may, again.while_ok),
            (asked.budget, asked.may, asked.while_ok)
        );
        assert_eq!(out.matches('?').count(), 6, "{out}");
    }

    #[test]
    fn empty_answers_take_what_is_usual() {
        let (asked, _) = ask(&["--load", "true"], "\n\n\n\n\n").unwrap();
        assert_eq!(asked.want, ["less p50"]);
        assert_eq!((asked.may.as_deref(), asked.while_ok), (Some("low"), None));
        let (asked, _) = ask(
            &["http://127.0.0.1/", "--budget", "5m", "--may", "none"],
            "3\n500\n\n",
        )
        .unwrap();
        assert_eq!(asked.want, ["iops >= 500"]);
    }

    #[test]
    fn answers_that_fit_nothing_end_it() {
        assert!(ask(&["/srv"], "9\n0\nx\n").is_err());
        assert!(ask(&["/srv"], "1\n1\nsoon\nsoon\nsoon\n").is_err());
        assert!(ask(&["/srv"], "").is_err());
    }
}
