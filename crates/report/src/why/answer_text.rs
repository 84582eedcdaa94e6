//! Sentences that all formats of an answer share, and the Markdown format.

use assay_render::markdown::{escape_markdown, render_table};
use assay_render::text::escape_line;
use assay_why::{HARDLY_WAITING, RankedSuspect, SlownessAnswer, WatchSubject};

/// Maximum number of suspects (possible causes) that a terminal shows in full.
pub(super) const SHOWN: usize = 4;

/// Returns what the question is about, escaped.
#[must_use]
pub fn describe_thing(answer: &SlownessAnswer) -> String {
    match &answer.subject {
        WatchSubject::Machine => match answer.machine.is_empty() {
            true => "this machine".to_owned(),
            false => escape_line(&answer.machine),
        },
        WatchSubject::Process(pid) => format!("process {pid} and those below it"),
        WatchSubject::Group(path) => format!("control group {}", escape_line(path)),
        WatchSubject::Named(name) => format!("{} (by name)", escape_line(name)),
        WatchSubject::Path { path, disks, .. } if disks.is_empty() => escape_line(path),
        WatchSubject::Path { path, disks, .. } => format!(
            "{} (on {})",
            escape_line(path),
            escape_line(&disks.join(", "))
        ),
    }
}

/// Returns the heading of an answer, escaped.
pub(super) fn format_heading(answer: &SlownessAnswer) -> String {
    match answer.suspects.is_empty() {
        true => format!("What {} waits for", describe_thing(answer)),
        false => format!("Why {} is slow", describe_thing(answer)),
    }
}

/// Returns the name of a class of waiting, for people.
pub(super) fn name_class(class: &str) -> &str {
    match class {
        "cpu-queue" => "a free CPU",
        "cpu-limit" => "the end of a CPU quota's period",
        "disk" => "reads and writes of disks",
        "flush" => "syncs to disk",
        "journal" => "a journal",
        "swap" => "pages from swap",
        "reclaim" => "free memory",
        "memory-limit" => "memory below a group's limit",
        "io-limit" => "an I/O limit",
        "dirty-limit" => "writeback of dirty pages",
        "network-share" => "a network file system",
        "file-scanner" => "a program that is asked before files are opened",
        "zfs" => "ZFS",
        "raid" => "a RAID array",
        "lock" => "locks of the kernel",
        "frozen" => "a frozen group",
        "file-system-frozen" => "a frozen file system",
        "name-server" => "answers of a name server",
        "connection" => "connections to be opened",
        "accept-queue" => "a server that accepts connections",
        "slow-reader" => "a program that reads what they write",
        "local-socket" => "a server on a local socket",
        "file-lock" => "locks of files",
        "user-lock" => "locks of programs",
        "database-lock" => "locks of a database",
        "semaphore" => "semaphores",
        "fifo-reader" => "a reader of a named pipe",
        _ => "something else in the kernel",
    }
}

/// Formats a fraction as "82 %"; a fraction below 0.01 as "below 1 %".
pub(super) fn format_part(share: f64) -> String {
    match share {
        share if share > 0.0 && share < 0.01 => "below 1 %".to_owned(),
        share => format!("{:.0} %", share * 100.0),
    }
}

/// Formats the fraction of the waiting time that a suspect accounts for.
pub(super) fn format_suspect_share(suspect: &RankedSuspect) -> String {
    match suspect.share {
        Some(share) => format!("{} of the waiting", format_part(share)),
        None => "not seen as waiting of tasks".to_owned(),
    }
}

/// Summarises the answer in at most three sentences.
#[must_use]
pub fn summarize_answer(answer: &SlownessAnswer) -> Vec<String> {
    let mut lines = Vec::new();
    let seconds = format!("{:.0} s", answer.seconds);
    match answer.suspects.as_slice() {
        [] if answer.waiting < HARDLY_WAITING => {
            lines.push(format!(
                "Nothing here waits: in {seconds} nothing suspicious was seen."
            ));
        }
        [] => lines.push(format!(
            "No suspect: {:.1} tasks waited at a time, for no cause that assay knows.",
            answer.waiting
        )),
        [first, rest @ ..] => {
            lines.push(format!("First suspect: {}.", first.title));
            if let [_, ..] = rest {
                let titles: Vec<&str> = rest.iter().take(2).map(|one| one.title.as_str()).collect();
                lines.push(format!("Also: {}.", titles.join("; ")));
            }
        }
    }
    if answer.waiting >= HARDLY_WAITING {
        let classes: Vec<String> = answer
            .classes
            .iter()
            .take(3)
            .filter(|class| class.tasks >= 0.05 * answer.waiting)
            .map(|class| {
                format!(
                    "{} for {}",
                    format_part(class.tasks / answer.waiting),
                    name_class(&class.class)
                )
            })
            .collect();
        lines.push(format!(
            "{:.1} tasks waited at a time: {}; {} is not explained.",
            answer.waiting,
            classes.join(", "),
            format_part(answer.unexplained)
        ));
    }
    lines
}

/// Renders an answer as Markdown.
#[must_use]
pub fn render_answer_markdown(answer: &SlownessAnswer) -> String {
    let mut out = format!("# {}\n\n", escape_markdown(&format_heading(answer)));
    for line in summarize_answer(answer) {
        out += &format!("- {}\n", escape_markdown(&line));
    }
    for (number, suspect) in answer.suspects.iter().enumerate() {
        out += &format!(
            "\n## {}. {}\n\n{}: {}. {}\n\n",
            number + 1,
            escape_markdown(&suspect.title),
            escape_markdown(&suspect.layer),
            format_suspect_share(suspect),
            escape_markdown(&suspect.why)
        );
        for evidence in &suspect.evidence {
            out += &format!("- {}\n", escape_markdown(evidence));
        }
        for against in &suspect.against {
            out += &format!("- against it: {}\n", escape_markdown(against));
        }
        if !suspect.next.is_empty() {
            out += &format!("\n```sh\n{}\n```\n", suspect.next.join("\n"));
        }
    }
    if !answer.classes.is_empty() {
        out += "\n## Waiting\n\n";
        let rows = answer.classes.iter().map(|class| {
            [
                escape_markdown(name_class(&class.class)),
                format!("{:.2}", class.tasks),
                format_part(class.explained),
            ]
        });
        out += &render_table(&["waiting for", "tasks", "explained"], "lrr", rows);
    }
    out += "\n## Figures\n\n";
    for (name, text) in &answer.figures {
        out += &format!("- {name}: {}\n", escape_markdown(text));
    }
    for missing in &answer.missing {
        out += &format!("- not read: {}\n", escape_markdown(missing));
    }
    out
}
