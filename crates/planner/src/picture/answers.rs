//! What each question shows.

use super::sheet::{Part, Row, Section};
use crate::cache::{CacheAnswer, CacheQuestion};
use crate::capacity::Bill;
use crate::distribute::{Distribution, Rules};
use crate::durability::Estimate;
use crate::size::{binary, vendor};

fn part(colour: &'static str, amount: f64, says: String) -> Part {
    Part {
        colour,
        amount,
        says,
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The bill: after each factor what there was before it, and what it adds.
#[must_use]
pub fn capacity(bill: &Bill) -> Section {
    let first = Row {
        label: "data".into(),
        lanes: vec![vec![part("data", bill.data as f64, vendor(bill.data))]],
        cells: vec!["".into(), vendor(bill.data), "what there is".into()],
        ..Row::default()
    };
    let mut before = bill.data;
    let steps = bill.lines.iter().map(|(factor, total)| {
        let kept = before.min(*total);
        let more = total.abs_diff(before);
        let (colour, word) = match *total >= before {
            true => ("parity", "more"),
            false => ("idle", "less"),
        };
        before = *total;
        let value = format!("{:.4}", factor.value);
        let value = value.trim_end_matches('0').trim_end_matches('.');
        Row {
            label: factor.name.clone(),
            lanes: vec![vec![
                part("data", kept as f64, vendor(kept)),
                part(colour, more as f64, format!("{} {word}", vendor(more))),
            ]],
            cells: vec![format!("× {value}"), vendor(*total), factor.why.clone()],
            ..Row::default()
        }
    });
    Section {
        heading: format!("{} to buy for {}", vendor(bill.total), binary(bill.data)),
        about: "Each factor in turn: what was needed before it, and what it adds. Disks are in \
                vendor units, T = 10^12."
            .into(),
        columns: vec!["step", "factor", "to buy so far", "why"],
        rows: [first].into_iter().chain(steps).collect(),
        notes: vec![format!(
            "{} for each system, {}:1 as a rule of thumb; one TB of disk holds {:.2} TiB of data, \
             before redundancy.",
            vendor(bill.per_system),
            bill.rule_of_thumb,
            bill.tib_per_tb
        )],
        ..Section::default()
    }
}

/// How a write spreads: for each vdev its share of it, the time it was busy, how full it is then.
#[must_use]
pub fn distribution(outcome: &Distribution) -> Section {
    let name = match outcome.rules {
        Rules::FreeSpace => "before 0.7, or without the allocation throttle",
        Rules::Throttle => "0.7 to 2.3",
        Rules::Performance => "2.4",
    };
    let rows = outcome.vdevs.iter().map(|vdev| {
        let lane = |colour, share: f64, what: &str| {
            vec![part(colour, share, format!("{what} {}", percent(share)))]
        };
        Row {
            label: vdev.name.clone(),
            lanes: vec![
                lane("data", vdev.share, "share of the write"),
                lane("parity", vdev.busy, "busy"),
                lane("copy", vdev.full, "full afterwards"),
            ],
            cells: vec![
                percent(vdev.share),
                binary(vdev.bytes),
                percent(vdev.busy),
                percent(vdev.full),
            ],
            ..Row::default()
        }
    });
    Section {
        heading: format!("OpenZFS {name}"),
        about: format!(
            "{}/s, {} of what the vdevs could do together. Upper bar: share of the write; middle: \
             share of the time it was busy; lower: how full it is then.",
            vendor(outcome.speed.max(0.0) as u64),
            percent(outcome.of_possible)
        ),
        columns: vec!["vdev", "share", "bytes", "busy", "full"],
        rows: rows.collect(),
        full: Some(1.0),
        ticks: (0..=4)
            .map(|i| (f64::from(i) / 4.0, format!("{} %", i * 25)))
            .collect(),
        ..Section::default()
    }
}

/// Bytes that caches take or hold, and shares that they serve.
#[must_use]
pub fn caches(question: &CacheQuestion, answer: &CacheAnswer) -> Vec<Section> {
    let sizes = [
        ("memory", question.memory, "idle"),
        ("ARC now", answer.arc.map(|arc| arc.size), "data"),
        ("ARC at most", answer.arc.map(|arc| arc.max), "copy"),
        ("headers of the L2ARC", answer.l2_header_bytes, "special"),
        ("log device, at most", answer.slog_bytes, "spare"),
    ];
    let shares = [
        ("served from memory", answer.arc.map(|arc| arc.hit_ratio)),
        (
            "misses from L2ARC",
            answer.arc.and_then(|arc| arc.l2_hit_ratio),
        ),
        ("working set in ARC", answer.working_set_in_arc),
        ("with the L2ARC", answer.working_set_with_l2),
    ];
    let row = |name: &str, colour, amount: f64, says: String| Row {
        label: name.into(),
        lanes: vec![vec![part(colour, amount, says.clone())]],
        cells: vec![says],
        ..Row::default()
    };
    let sizes = sizes.into_iter().filter_map(|(name, bytes, colour)| {
        bytes.map(|bytes| row(name, colour, bytes as f64, binary(bytes)))
    });
    let shares = shares
        .into_iter()
        .filter_map(|(name, share)| share.map(|share| row(name, "data", share, percent(share))));
    let sections = [
        Section {
            heading: "Memory and devices".into(),
            about: "Bytes that each takes, on one scale.".into(),
            columns: vec!["what", "size"],
            rows: sizes.collect(),
            notes: answer.advice.clone(),
            ..Section::default()
        },
        Section {
            heading: "What is served".into(),
            about: "Shares of 100 %.".into(),
            columns: vec!["what", "share"],
            rows: shares.collect(),
            full: Some(1.0),
            ..Section::default()
        },
    ];
    let drawn = |section: &Section| !section.rows.is_empty() || !section.notes.is_empty();
    sections.into_iter().filter(drawn).collect()
}

/// Probability of loss within a year of one group, of all, and by chance, on a logarithmic scale.
#[must_use]
pub fn durability(one: f64, all: f64, groups: u64, seen: Option<&Estimate>) -> Section {
    let said = |value: f64| match value {
        v if !v.is_finite() => "unknown".to_owned(),
        v if v >= 0.001 => format!("{:.2} %", v * 100.0),
        v if v > 0.0 => format!("{v:.1e}"),
        _ => "0".to_owned(),
    };
    let mut values = vec![one, all];
    values.extend(
        seen.iter()
            .flat_map(|e| [e.loss, e.interval.0, e.interval.1]),
    );
    let least = values
        .into_iter()
        .filter(|v| v.is_finite() && *v > 0.0)
        .fold(0.01, f64::min);
    // Whole decades, one below the smallest figure.
    let decades = 1.0 - least.log10().floor();
    let at = |value: f64| match value {
        v if v.is_finite() && v > 0.0 => (v.log10() + decades).max(0.0),
        _ => 0.0,
    };
    let row = |label: &str, value: f64, interval: Option<(f64, f64)>| Row {
        label: label.into(),
        lanes: vec![vec![part("special", at(value), said(value))]],
        interval: interval.map(|(low, high)| (at(low), at(high))),
        cells: vec![
            said(value),
            interval.map_or(String::new(), |(low, high)| {
                format!("{} to {}", said(low), said(high))
            }),
        ],
        ..Row::default()
    };
    let mut rows = vec![row("chain, one group", one, None)];
    if groups > 1 {
        rows.push(row(&format!("chain, {groups} groups"), all, None));
    }
    if let Some(seen) = seen {
        rows.push(row("simulated, one group", seen.loss, Some(seen.interval)));
    }
    let step = (decades / 8.0).ceil().max(1.0);
    let ticks = (0..=8)
        .map(|i| f64::from(i) * step)
        .filter(|down| *down <= decades)
        .map(|down| {
            let name = match down {
                0.0 => "1".to_owned(),
                _ => format!("1e-{down:.0}"),
            };
            (decades - down, name)
        });
    Section {
        heading: "Loss within a year".into(),
        about: "A logarithmic scale, so that equal steps are equal factors. The line over a bar is the \
                95 % interval of the simulation."
            .into(),
        columns: vec!["by", "probability", "95 % interval"],
        rows,
        full: Some(decades),
        ticks: ticks.collect(),
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{sheet, terminal, tests::stands_alone};

    #[test]
    fn a_bill_with_a_hostile_factor() {
        let mut factors = crate::capacity::default_factors();
        factors[1].name = "<b onload=x>".into();
        let section = capacity(&crate::capacity::bill(1 << 40, &factors).unwrap());
        let page = sheet("bill", &[], &[section]);
        stands_alone(&page);
        assert!(page.contains("&lt;b onload=x&gt;") && page.contains("21.4 TB"));
    }

    #[test]
    fn loss_from_certain_to_impossible() {
        for value in [0.0, 1.0, 1e-300, 0.5, f64::NAN] {
            let seen = Estimate {
                years: 1,
                losses: 0,
                loss: 0.0,
                interval: (0.0, 0.79),
            };
            let section = durability(value, value, 3, Some(&seen));
            let page = sheet("d", &[], std::slice::from_ref(&section));
            stands_alone(&page);
            assert!(!page.contains("NaN") && section.ticks.len() <= 9);
            assert_eq!(terminal(&section, 0).lines().count(), 3);
        }
    }

    #[test]
    fn caches_show_only_what_is_known() {
        let question = CacheQuestion::default();
        assert!(caches(&question, &CacheAnswer::default()).is_empty());
        let answer = CacheAnswer {
            l2_header_bytes: Some(u64::MAX),
            working_set_in_arc: Some(f64::NAN),
            ..CacheAnswer::default()
        };
        stands_alone(&sheet("c", &[], &caches(&question, &answer)));
    }
}
