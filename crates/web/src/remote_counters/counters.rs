//! Parses the script's answers strictly, because they come from another machine and are untrusted.

use crate::machine::{TICK, ticks};
use crate::server::{Seen, Threads};
use assay_model::Nanos;
use assay_model::web::ServerMachine;
use std::time::Duration;

/// Counters of a server and its machine at one time.
pub struct Counters {
    busy: u64,
    stolen: u64,
    cpus: u32,
    overflows: u64,
    pub counted: Seen,
}

fn wrong(line: &str) -> String {
    let shown: String = line.escape_debug().take(60).collect();
    format!("it answered `{shown}`, which is no counter")
}

/// Parses the ids of the processes that have a socket open; `None` if there is no such socket.
pub fn holders(lines: &[String]) -> Result<Option<Vec<u32>>, String> {
    let mut found = None;
    for line in lines {
        match line.strip_prefix("holds ").map(str::parse) {
            Some(Ok(pid)) => found.get_or_insert_with(Vec::new).push(pid),
            None if line == "sockets" => {
                found.get_or_insert_default();
            }
            _ => return Err(wrong(line)),
        }
    }
    // A server has several processes per CPU that wait for connections.
    match &found {
        Some(pids) if pids.len() > 4096 => Err("more than 4,096 processes hold its socket".into()),
        _ => Ok(found),
    }
}

/// Parses the time since the boot of the remote machine, at the moment of the reading. The result is the mean of a
/// clock reading before and a clock reading after it.
pub fn up(lines: &[String]) -> Result<Duration, String> {
    let times = lines.iter().filter_map(|line| line.strip_prefix("up "));
    let times = times.map(|text| {
        let seconds: f64 = text.parse().map_err(|_| wrong(text))?;
        // The limit is a hundred years.
        match (0.0..3.2e9).contains(&seconds) {
            true => Ok(Duration::from_secs_f64(seconds)),
            false => Err(wrong(text)),
        }
    });
    match times.collect::<Result<Vec<_>, _>>()?[..] {
        [begin, end] if begin <= end => Ok((begin + end) / 2),
        _ => Err("it does not tell its time".to_owned()),
    }
}

impl Counters {
    pub fn read(lines: &[String]) -> Result<Self, String> {
        let mut machine = None;
        let (mut cpus, mut overflows, mut usage) = (0, 0, None);
        let mut threads = Threads::new();
        let mut name = String::new();
        for line in lines {
            let bad = || wrong(line);
            let (word, rest) = line.split_once(' ').ok_or_else(bad)?;
            let number = |text: &str| text.parse::<u64>().map_err(|_| wrong(line));
            match word {
                "up" | "drops" => {}
                "cpu" => machine = Some(ticks(line).ok_or_else(bad)?),
                "cpus" => cpus = rest.parse().map_err(|_| bad())?,
                "overflows" => overflows = number(rest)?,
                "usage" => usage = Some(number(rest)?.saturating_mul(1000)),
                "name" => name = printable(rest),
                "t" | "ticks" => {
                    let own = |text: &str| text.parse::<u32>().map_err(|_| wrong(line));
                    let words: Vec<&str> = rest.split(' ').collect();
                    let (pid, thread, times) = match (word, &words[..]) {
                        ("t", [pid, thread, cpu, waited]) => {
                            (pid, thread, (number(cpu)?, Some(number(waited)?)))
                        }
                        ("ticks", [pid, thread, cpu]) => match number(cpu)? {
                            // The thread never ran, so it never waited either.
                            0 => (pid, thread, (0, Some(0))),
                            cpu => (pid, thread, (cpu.saturating_mul(TICK), None)),
                        },
                        _ => return Err(bad()),
                    };
                    threads.insert((own(pid)?, own(thread)?), times);
                }
                _ => return Err(bad()),
            }
        }
        let (busy, stolen) = machine.ok_or("it does not tell what its CPUs do")?;
        if !(1..=65_536).contains(&cpus) {
            return Err("it does not tell how many CPUs it has".to_owned());
        }
        let counted = match usage {
            Some(usage) => Seen::Group(usage, String::new()),
            None if threads.is_empty() => {
                return Err(
                    "no CPU time of it can be read: it is gone, or was never there".to_owned(),
                );
            }
            None => Seen::threads(threads, &name),
        };
        Ok(Self {
            busy,
            stolen,
            cpus,
            overflows,
            counted,
        })
    }

    /// Returns the resources that the remote machine used since `then`.
    pub fn machine_since(&self, then: &Self) -> ServerMachine {
        let ticks = |now: u64, then: u64| Nanos(now.saturating_sub(then).saturating_mul(TICK));
        ServerMachine {
            cpus: self.cpus,
            busy: ticks(self.busy, then.busy),
            stolen: ticks(self.stolen, then.stolen),
            listen_overflows: self.overflows.saturating_sub(then.overflows),
        }
    }
}

/// Escapes the name of a process for output.
fn printable(name: &str) -> String {
    let known = |c: char| {
        if c.is_ascii_graphic() || c == ' ' {
            c
        } else {
            '?'
        }
    };
    name.chars().take(15).map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    const GOOD: &str = "up 10.00\ncpu  10 1 5 900 40 2 3 7 0 0\ncpus 2\noverflows 3\ndrops 4\n\
                        t 7 7 5000 60\nticks 7 8 3\nname ngi\u{7}nx\nup 10.02";

    #[test]
    fn counters_are_read_and_nothing_else() {
        let read = Counters::read(&lines(GOOD)).unwrap();
        assert_eq!((read.busy, read.stolen, read.cpus), (21, 7, 2));
        let Seen::Threads(threads, what) = read.counted else {
            panic!()
        };
        assert_eq!(threads[&(7, 7)], (5000, Some(60)));
        assert_eq!(threads[&(7, 8)], (30_000_000, None));
        assert_eq!(what, "ngi?nx");
        assert_eq!(up(&lines(GOOD)).unwrap(), Duration::from_millis(10_010));
        for bad in [
            "t 7",
            "t 7 7",
            "t 7 7 1 2 3",
            "t -1 7 1 2",
            "t 7 7 1 x",
            "ticks 1 2",
            "cpus 0",
            "cpus 9999999999",
            "cpu 1 2",
            "\u{1b}[31m",
            "hello world",
            "usage -1",
            "usage 99999999999999999999999",
        ] {
            assert!(
                Counters::read(&lines(&format!("{GOOD}\n{bad}"))).is_err(),
                "{bad}"
            );
        }
        for bad in [
            "",
            "up 1",
            "up 1\nup x",
            "up NaN\nup NaN",
            "up 5\nup 4",
            "up -1\nup 1",
            "up 1e99\nup 1e99",
        ] {
            assert!(up(&lines(bad)).is_err(), "{bad}");
        }
        assert!(Counters::read(&[]).is_err());
    }

    #[test]
    fn who_holds_a_socket() {
        assert_eq!(holders(&[]), Ok(None));
        assert_eq!(holders(&lines("sockets")), Ok(Some(vec![])));
        assert_eq!(
            holders(&lines("sockets\nholds 5\nholds 6")),
            Ok(Some(vec![5, 6]))
        );
        assert!(holders(&lines("holds x")).is_err() && holders(&lines("rm -rf")).is_err());
    }

    /// Runs the script with each shell and each awk that a remote machine may have. The script must print the process
    /// that has this test's socket open, and the counters of the process.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test runs the script")]
    fn each_shell_and_awk_answers() {
        use std::io::{BufRead as _, BufReader, Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = std::process::id();
        let links = tempfile::tempdir().unwrap();
        let questions = format!(
            "listening 1 {port:04X}\nprocesses 2 {own}\nprocesses 3 1 {own}\ngroup 4 /nowhere\n"
        );
        for pair in assay_testing::servers::shells::shell_awk_pairs() {
            let mut shell = pair.command(links.path()).unwrap();
            shell
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            let mut child = shell.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let mut stdout = BufReader::new(child.stdout.take().unwrap());
            let text = pair.before(links.path()) + super::super::SCRIPT;
            stdin.write_all(text.as_bytes()).unwrap();
            // The shell may read ahead, so send requests only when it is ready.
            let mut text = String::new();
            stdout.read_line(&mut text).unwrap();
            stdin.write_all(questions.as_bytes()).unwrap();
            drop(stdin);
            stdout.read_to_string(&mut text).unwrap();
            let output = child.wait_with_output().unwrap();
            let name = &pair.name;
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
            let answer = |number: u32| -> Vec<String> {
                let (_, rest) = text.split_once(&format!("begin {number}\n")).unwrap();
                let (lines, _) = rest.split_once(&format!("end {number}\n")).unwrap();
                lines.lines().map(str::to_owned).collect()
            };
            assert_eq!(holders(&answer(1)), Ok(Some(vec![own])), "{name}");
            for number in [2, 3] {
                let lines = answer(number);
                assert!(Counters::read(&lines).is_ok(), "{name}: {lines:?}");
                let of_own = format!("t {own} ");
                let ticks = format!("ticks {own} ");
                let counts = |line: &String| line.starts_with(&of_own) || line.starts_with(&ticks);
                assert!(lines.iter().any(counts), "{name}: {lines:?}");
            }
            assert!(up(&answer(4)).is_ok(), "{name}");
        }
    }
}
