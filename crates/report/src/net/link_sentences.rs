//! Sentences about the path between server and devices: its queue, losses, and congestion control.

use super::{format_mbit, format_ms, format_percent};
use assay_net::queue::{Filler, MeasuredBy, Queue};
use assay_net::result::Run;
use assay_net::role::Direction;
use assay_net::verdict::{LossUnit, Lost, PersonVerdict};
use assay_render::text::escape_line;
use assay_render::units::format_grouped;

/// Minimum fraction of retransmissions that is reported. TCP retransmits a little on every link that it fills.
const SENT_AGAIN: f64 = 0.005;

/// Describes the queue with its evidence: the delay under load and before, its duration, and the
/// flows that filled it.
pub(super) fn describe_queue(queue: &Queue) -> String {
    let by = match queue.measured_by {
        MeasuredBy::Packets => "a packet there and back",
        MeasuredBy::Control => "a small request",
    };
    let mut text = format!(
        "A queue on the way was long for {} of {} seconds: {by} took {} in it and {} before the run, {} more.",
        queue.slow.len(),
        queue.seconds,
        format_ms(Some(queue.loaded_us)),
        format_ms(Some(queue.idle_us)),
        format_ms(Some(queue.added_us()))
    );
    text += &filled_by(&queue.filled_by);
    if let Some(lost) = queue.lost.filter(|lost| *lost > 0.0) {
        text += &format!(
            " It dropped {} of the packets in that time",
            format_percent(lost)
        );
        text += &match queue.lost_otherwise {
            Some(rest) => format!("; at other times {} were lost.", format_percent(rest)),
            None => ".".to_owned(),
        };
    }
    text
}

/// Describes the flows that filled a queue, such as `download` of Ben with 9.1 Mbit/s, 96 % of the traffic in this
/// direction.
fn filled_by(fillers: &[Filler]) -> String {
    let one = |filler: &Filler| {
        format!(
            "`{}` of {} with {} ({})",
            escape_line(&filler.role),
            escape_line(&filler.person),
            format_mbit(filler.bit_per_s),
            format_percent(filler.share)
        )
    };
    match fillers {
        [] => " Nobody in this run moved enough to fill it: somebody else on this network did."
            .to_owned(),
        [first, ..] => format!(
            " It was filled by {} of all that went {} then.",
            fillers.iter().map(one).collect::<Vec<_>>().join(" and "),
            match first.direction {
                Direction::Down => "down",
                Direction::Up => "up",
            }
        ),
    }
}

/// Describes the losses of every role, whatever the grade of the role is; `None` without losses.
pub(super) fn describe_losses(person: &PersonVerdict) -> Option<String> {
    // The sentence about the queue reports its drops.
    let in_queue = |lost: &Lost| {
        let queue = person.queue.as_ref();
        lost.what == LossUnit::Packets
            && queue.is_some_and(|queue| {
                queue.lost.is_some() && queue.lost_otherwise.is_none_or(|share| share == 0.0)
            })
    };
    let told = |lost: &Lost| match lost.what {
        LossUnit::Packets => lost.share > 0.0 && !in_queue(lost),
        LossUnit::Segments => lost.share >= SENT_AGAIN,
    };
    let one = |(role, lost): (&str, Lost)| {
        let (share, of) = (format_percent(lost.share), format_grouped(lost.of));
        match lost.what {
            LossUnit::Packets => format!(
                "{share} of {of} packets of `{}` were lost",
                escape_line(role)
            ),
            LossUnit::Segments => format!(
                "TCP sent {share} of {of} segments of `{}` again",
                escape_line(role)
            ),
        }
    };
    let roles = person.roles.iter();
    let lost = roles.filter_map(|role| Some((&*role.role, role.lost.filter(told)?)));
    let said: Vec<String> = lost.map(one).collect();
    let (first, rest) = said.split_first()?;
    let rest: String = rest.iter().map(|more| format!("; {more}")).collect();
    Some(format!("On the way {first}{rest}."))
}

/// Formats a loss for a table cell.
pub(super) fn format_loss(lost: Lost) -> String {
    match lost.what {
        LossUnit::Packets => format_percent(lost.share),
        LossUnit::Segments => format!("{} again", format_percent(lost.share)),
    }
}

/// Returns the congestion control algorithms of all people, without duplicates.
fn list_algorithms(
    run: &Run,
    of: impl Fn(&assay_net::record::Congestion) -> Option<&String>,
) -> String {
    let records = run.people.iter().filter_map(|taken| taken.record.as_ref());
    let mut names: Vec<String> = records
        .filter_map(|record| of(&record.congestion).map(|name| escape_line(name)))
        .collect();
    names.sort();
    names.dedup();
    match names.is_empty() {
        true => "an unknown algorithm".to_owned(),
        false => names.join(" and "),
    }
}

/// Describes the congestion control at both ends, and the other algorithms that the server supports; `None` for a run
/// of an older server.
pub(super) fn describe_congestion(run: &Run) -> Option<String> {
    let mut records = run.people.iter().filter_map(|taken| taken.record.as_ref());
    if records.all(|record| record.congestion.is_unknown()) {
        return None;
    }
    let server = list_algorithms(run, |both| both.server.as_ref());
    let client = list_algorithms(run, |both| both.client.as_ref());
    let mut text = format!(
        "Congestion control: the server sent with {server}, the devices with {client}. The sender's algorithm decides how \
         full a queue gets."
    );
    let used: Vec<&String> = run
        .people
        .iter()
        .filter_map(|taken| taken.record.as_ref()?.congestion.server.as_ref())
        .collect();
    let other = |name: &&String| ["cubic", "bbr"].contains(&name.as_str()) && !used.contains(name);
    let chosen = !run.plan.congestion.is_empty();
    if let Some(other) = run.congestion.iter().find(other).filter(|_| !chosen) {
        text += &format!(
            " The server also has {}: add `--congestion {},{}` to measure the same with both.",
            escape_line(other),
            used.first().map_or("cubic", |name| name.as_str()),
            escape_line(other)
        );
    }
    let missing = |name: &str| !run.congestion.iter().any(|own| own == name);
    if !run.congestion.is_empty() && missing("bbr") {
        text += " The server's kernel has no bbr (`modprobe tcp_bbr`).";
    }
    Some(text)
}
