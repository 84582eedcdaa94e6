//! `assay plan capacity`.

use super::read;
use super::show::{print_json, write_page};
use crate::context::print;
use crate::context::{columns, wrap};
use crate::status::Status;
use anyhow::bail;
use assay_model::size::Convention::Binary;
use assay_planner::PlanError;
use assay_planner::capacity::{
    Bill, Forecast, Policy, Retention, SNAPSHOT_COLUMNS, Trend, bill, churn, default_factors, held,
    outlook, parse_history, parse_sanoid, parse_snapshots, series,
};
use assay_report::plan as picture;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay plan capacity 1TiB                              21.45 TB, 8:1 a system
  assay plan capacity 600GiB --factor growth=1.5 --factor backup=1 --factor hotspare=1
  assay plan capacity 1TiB --exact-units
  assay plan capacity --history used.txt --size 8TiB    when 80 % and 90 % are reached
  assay plan capacity --snapshots snaps.txt --size 8TiB
  assay plan capacity --pool tank                       measured here, from its snapshots
  assay plan capacity 1TiB --sanoid /etc/sanoid/sanoid.conf --churn 0.5%

A history has a date and a size on each line: `2026-01-31 1.5TiB`. Snapshots are recorded with
`zfs list -Hp -t snapshot -o name,creation,used,referenced,written`.

Sizes: 4T and 4TB are 4·10¹² bytes, as disks are sold; 4TiB is 4·2⁴⁰.";

/// Work out how much to buy, how it grows, and when it is full
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Data there is today
    #[arg(value_name = "DATA", value_parser = read::size)]
    data: Option<u64>,
    /// Replace a factor: units, free, growth, snapshots, redundancy, backup, hotspare, or a new one
    #[arg(long, value_name = "NAME=VALUE")]
    factor: Vec<String>,
    /// Take 1.0995 instead of 1.1 for a TiB in TB
    #[arg(long)]
    exact_units: bool,
    /// Years that the purchase has to last, for growth from facts
    #[arg(long, default_value_t = 5.0, value_name = "N")]
    years: f64,
    /// Bytes in use over time, recorded
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Snapshots, recorded
    #[arg(long, value_name = "FILE", conflicts_with = "history")]
    snapshots: Option<PathBuf>,
    /// Read the snapshots of this pool or dataset on this machine
    #[arg(long, value_name = "POOL", conflicts_with_all = ["history", "snapshots"])]
    pool: Option<String>,
    /// Usable space, for the dates
    #[arg(long, value_name = "SIZE", value_parser = read::size)]
    size: Option<u64>,
    /// Retention policies to simulate
    #[arg(long, value_name = "FILE")]
    sanoid: Option<PathBuf>,
    /// Share of the data rewritten a day [default: measured, else what makes a third]
    #[arg(long, value_name = "SHARE", value_parser = read::share)]
    churn: Option<f64>,
    /// Write a page with pictures: no script, no request
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON; sizes in bytes, times in seconds since 1970
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Simulated {
    dataset: String,
    policy: Policy,
    #[serde(flatten)]
    outcome: Retention,
}

#[derive(Serialize, Default)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    bill: Option<Bill>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trend: Option<Trend>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forecasts: Vec<Forecast>,
    #[serde(skip_serializing_if = "Option::is_none")]
    churn_per_day: Option<f64>,
    churn_measured: bool,
    /// What snapshots hold beside the data, by their own figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by_snapshots: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retention: Vec<Simulated>,
}

/// Runs the question.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    if !(args.years.is_finite() && (0.0..=100.0).contains(&args.years)) {
        return Err(PlanError::value("years", "must be 0 to 100").into());
    }
    let mut answer = Answer::default();
    let mut size = args.size;
    let mut now = args.data;
    let mut points = Vec::new();
    let mut measured = None;
    // Without what snapshots hold, and with it.
    let (mut data, mut used) = (None, None);
    if let Some(path) = &args.history {
        points = parse_history(
            &path.display().to_string().escape_debug().to_string(),
            &read::file(path)?,
        )?;
    } else if args.snapshots.is_some() || args.pool.is_some() {
        let (source, text) = match (&args.snapshots, &args.pool) {
            (Some(path), _) => (path.display().to_string(), read::file(path)?),
            (None, Some(pool)) => {
                if pool.starts_with('-') {
                    bail!(PlanError::value("pool", "a name cannot begin with -"));
                }
                let argv = [
                    "zfs",
                    "list",
                    "-Hp",
                    "-r",
                    "-t",
                    "snapshot",
                    "-o",
                    SNAPSHOT_COLUMNS,
                    pool,
                ];
                let text = read::command(&argv)?;
                let shown = read::command(&["zfs", "list", "-Hp", "-o", "used,available", pool])?;
                let mut shown = shown.split_whitespace().map(|n| n.parse::<u64>().ok());
                used = shown.next().flatten();
                let available = shown.next().flatten();
                size = size.or(used
                    .zip(available)
                    .map(|(used, left)| used.saturating_add(left)));
                ("zfs list -t snapshot".to_owned(), text)
            }
            (None, None) => unreachable!("one of them was given"),
        };
        let snapshots = parse_snapshots(&source.escape_debug().to_string(), &text)?;
        measured = churn(&snapshots);
        points = series(&snapshots);
        data = points.last().map(|point| point.used);
        // What they held at other times is not known: it is taken as it is now. On this machine the
        // whole is known, with what was written since the last snapshot.
        let held = held(&snapshots);
        answer.held_by_snapshots = Some(held);
        let beside = used.map_or(held, |used| used.saturating_sub(data.unwrap_or(0)));
        for point in &mut points {
            point.used = point.used.saturating_add(beside);
        }
    }
    let mut factors = default_factors();
    if !points.is_empty() {
        let ahead = outlook(&points)?;
        let found = ahead.trend;
        let data = data.map_or(found.now, |data| data as f64).max(1.0);
        now = now.or(Some(data as u64));
        if let Some(size) = size {
            answer.forecasts = [0.8, 0.9].map(|share| ahead.forecast(size, share)).to_vec();
        }
        let grown = (data + found.per_day * 365.25 * args.years) / data;
        if let Some(factor) = factors.iter_mut().find(|f| f.name == "growth") {
            factor.value = grown.clamp(1.0, 1000.0);
            factor.why = format!(
                "measured: {}{} a day over {:.0} days, carried on for {} years",
                if found.per_day < 0.0 { "-" } else { "" },
                Binary.show(found.per_day.abs() as u64),
                found.days,
                args.years
            );
        }
        answer.trend = Some(found);
    }
    let policies: BTreeMap<String, Policy> = match &args.sanoid {
        Some(path) => parse_sanoid(
            &path.display().to_string().escape_debug().to_string(),
            &read::file(path)?,
        )?,
        None => BTreeMap::from([(
            "30 hourly, 30 daily, 3 monthly".to_owned(),
            Policy::CALCULATOR,
        )]),
    };
    answer.churn_measured = args.churn.is_none() && measured.is_some();
    let rate = args
        .churn
        .or(measured)
        .or(Policy::CALCULATOR.churn_for(0.3));
    if let Some(rate) = rate {
        answer.churn_per_day = Some(rate);
        for (dataset, policy) in policies {
            let outcome = policy.simulate(rate)?;
            answer.retention.push(Simulated {
                dataset,
                policy,
                outcome,
            });
        }
        let worst = answer
            .retention
            .iter()
            .map(|r| r.outcome.share)
            .fold(0.0, f64::max);
        let simulated = args.sanoid.is_some() || args.churn.is_some();
        let held = answer.held_by_snapshots.zip(now).filter(|_| !simulated);
        if let Some(factor) = factors.iter_mut().find(|f| f.name == "snapshots") {
            if let Some((held, data)) = held {
                factor.value = (1.0 + held as f64 / data.max(1) as f64).clamp(1.0, 1000.0);
                factor.why = format!("measured: they hold {} now", Binary.show(held));
            } else if simulated || measured.is_some() {
                factor.value = 1.0 + worst;
                factor.why = format!(
                    "simulated: {:.2} % of the data rewritten a day",
                    rate * 100.0
                );
            }
        }
    }
    if args.exact_units
        && let Some(factor) = factors.iter_mut().find(|f| f.name == "units")
    {
        factor.value = (1u64 << 40) as f64 / 1e12;
        factor.why = "a TiB is 1.0995 TB as disks are sold".into();
    }
    for text in &args.factor {
        let (name, value) = text
            .split_once('=')
            .and_then(|(name, value)| Some((name.trim(), value.trim().parse::<f64>().ok()?)))
            .ok_or_else(|| {
                PlanError::value(
                    format!("factor `{}`", text.escape_debug()),
                    "write NAME=VALUE, such as growth=1.5",
                )
            })?;
        match factors.iter_mut().find(|factor| factor.name == name) {
            Some(factor) => {
                factor.value = value;
                factor.why = "given".into();
            }
            None => factors.push(assay_planner::capacity::Factor {
                name: name.to_owned(),
                value,
                why: "given".into(),
                systems: false,
            }),
        }
    }
    match now {
        Some(data) => answer.bill = Some(bill(data, &factors)?),
        None if args.sanoid.is_none() => {
            return Err(PlanError::value(
                "no data",
                "say how much there is (1TiB), or how it grew with --history, --snapshots or --pool",
            )
            .into());
        }
        None => {}
    }
    let drawn = answer.bill.as_ref().map(picture::capacity).into_iter();
    let growth = answer
        .trend
        .as_ref()
        .map(|trend| picture::growth(trend, size, &answer.forecasts, date));
    let sections: Vec<_> = drawn.chain(growth).collect();
    write_page(
        args.html.as_deref(),
        "Capacity",
        &snapshots(&answer),
        &sections,
    )?;
    match args.json {
        true => print_json("capacity", &answer)?,
        false => print(&render(&answer, size))?,
    }
    Ok(Status::Ok)
}

/// Vendor terabytes with two decimals, as the bill of the article has them.
fn terabytes(bytes: u64) -> String {
    format!("{:.2} TB", bytes as f64 / 1e12)
}

fn date(time: i64) -> String {
    match Timestamp::from_second(time) {
        Ok(time) => time.strftime("%Y-%m-%d").to_string(),
        Err(_) => "beyond all calendars".into(),
    }
}

fn render(answer: &Answer, size: Option<u64>) -> String {
    let mut text = String::new();
    if let Some(bill) = &answer.bill {
        let _ = writeln!(
            text,
            "{:<32} {:>12}",
            format!("{} of data", Binary.show(bill.data)),
            ""
        );
        for (factor, total) in &bill.lines {
            let name: String = factor.name.escape_debug().to_string();
            let _ = writeln!(
                text,
                "  × {:<7} {name:<12} {:>10}   {}",
                format!("{:.4}", factor.value)
                    .trim_end_matches('0')
                    .trim_end_matches('.'),
                terabytes(*total),
                wrap(&factor.why, 38).trim_start()
            );
        }
        let _ = write!(
            text,
            "\n{}",
            picture::terminal(&picture::capacity(bill), 1, columns())
        );
        let _ = writeln!(
            text,
            "\n  to buy for all systems       {} ({:.2} TB for each TiB)\n  to buy for each system       {} \
             (rule of thumb {}:1)\n  one TB of disk holds         {:.2} TiB of data, before redundancy\n\n  \
             --factor NAME=VALUE replaces any of them.",
            terabytes(bill.total),
            bill.factor,
            terabytes(bill.per_system),
            bill.rule_of_thumb,
            bill.tib_per_tb
        );
    }
    if let Some(trend) = &answer.trend {
        let signed = |value: f64| {
            format!(
                "{}{}",
                if value < 0.0 { "-" } else { "" },
                Binary.show(value.abs() as u64)
            )
        };
        let line = format!(
            "Growth {} a day (95 %: {} to {}), from {} points over {:.0} days; {} on {}.",
            signed(trend.per_day),
            signed(trend.interval.0),
            signed(trend.interval.1),
            trend.points,
            trend.days,
            Binary.show(trend.now.max(0.0) as u64),
            date(trend.at)
        );
        let _ = writeln!(text, "\n{}", wrap(&line, 0));
        if size.is_none() {
            text.push_str("Give --size to see when it is full.\n");
        }
    }
    if let (Some(trend), Some(size)) = (&answer.trend, size) {
        for forecast in &answer.forecasts {
            let _ = writeln!(text, "{}", wrap(&reached(forecast, trend, size), 2));
        }
        let _ = writeln!(text, "{}", wrap(&walked(trend), 0));
    }
    for (i, line) in snapshots(answer).iter().enumerate() {
        let indent = if i == 0 { 0 } else { 2 };
        let start = if i == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{start}{}", wrap(line, indent));
    }
    text
}

/// When a share is full, in a sentence.
fn reached(forecast: &Forecast, trend: &Trend, size: u64) -> String {
    let share = forecast.share * 100.0;
    if forecast.already {
        let now = trend.now / size.max(1) as f64 * 100.0;
        return format!(
            "{share:.0} % full already: {now:.0} % on {}",
            date(trend.at)
        );
    }
    let when = |time: Option<i64>| time.map_or("perhaps never".to_owned(), date);
    match (forecast.when, forecast.earliest) {
        (None, None) => format!(
            "{share:.0} % full: not within {:.0} days, ten times this history",
            trend.days * 10.0
        ),
        (None, Some(earliest)) => format!(
            "{share:.0} % full perhaps never, at the earliest on {} (95 %)",
            date(earliest)
        ),
        (Some(_), _) => format!(
            "{share:.0} % full on {} (95 %: {} to {})",
            when(forecast.when),
            when(forecast.earliest),
            when(forecast.latest)
        ),
    }
}

/// How far such dates are to be believed, by the history itself.
fn walked(trend: &Trend) -> String {
    let seen = trend.coverage;
    match seen.tried {
        0..6 => "The history is too short to try such dates on itself.".to_owned(),
        tried => format!(
            "Said at earlier days of this history, {} of {tried} such dates held ({:.0} %).",
            seen.held,
            seen.held as f64 / tried as f64 * 100.0
        ),
    }
}

/// What snapshots hold, a sentence for each policy.
fn snapshots(answer: &Answer) -> Vec<String> {
    let Some(rate) = answer.churn_per_day else {
        return Vec::new();
    };
    let measured = if answer.churn_measured {
        " (measured)"
    } else {
        ""
    };
    let mut lines = Vec::new();
    if let Some(held) = answer.held_by_snapshots {
        lines.push(format!(
            "Snapshots hold {} beside the data now; growth is that of the data, with that much added.",
            Binary.show(held)
        ));
    }
    lines.push(format!(
        "Snapshots, with {:.2} % of the data rewritten a day{measured}:",
        rate * 100.0
    ));
    lines.extend(answer.retention.iter().map(|policy| {
        format!(
            "{}: {} snapshots over {:.0} days hold {:.0} % of the data",
            policy.dataset.escape_debug(),
            policy.outcome.snapshots,
            policy.outcome.days,
            policy.outcome.share * 100.0
        )
    }));
    lines
}
