//! Events of the devices' radios: a sentence for each person, a table, and a drawing on the time axis of the page.

use super::page::{ABOVE, LETTERS, SECONDS, draw_axis};
use super::{Net, format_mbit, write_fitting_table};
use crate::plan::{BarLine, PlanSection};
use assay_net::air::{Air, AirVerdict, WEAK};
use assay_net::cause::Cause;
use assay_render::svg::canvas::{Svg, TextAnchor, shorten_name};
use assay_render::terminal_style::Style;
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_latency};
use assay_wifi::channel::{Band, Channel};

/// Formats a signal strength in dBm.
pub(super) fn format_dbm(signal: i32) -> String {
    match signal {
        0.. => format!("{signal} dBm"),
        _ => format!("−{} dBm", signal.unsigned_abs()),
    }
}

fn format_channel(channel: Option<Channel>) -> String {
    channel.map_or_else(
        || "an unknown channel".to_owned(),
        |channel| channel.to_string(),
    )
}

/// Formats a change of channel.
pub(super) fn format_channel_change(from: Option<Channel>, to: Option<Channel>) -> String {
    match (from, to) {
        (Some(one), Some(two)) if one == two => format!("on {one}, to another access point"),
        (from, to) => format!("from {} to {}", format_channel(from), format_channel(to)),
    }
}

/// Describes unusual radio events of a person that are not mentioned as causes.
pub(super) fn describe_radio(
    air: &AirVerdict,
    causes: &[&Cause],
    clock: &dyn Fn(u64) -> String,
) -> Option<String> {
    let told = |kind: fn(&Cause) -> bool| causes.iter().any(|cause| kind(cause));
    let mut said = Vec::new();
    if let Some(weakest) = air.weakest.filter(|weakest| weakest.dbm < WEAK)
        && !told(|cause| matches!(cause, Cause::Signal { .. }))
    {
        said.push(format!(
            "the signal fell to {} at {}",
            format_dbm(weakest.dbm),
            clock(weakest.at_us)
        ));
    }
    let one = told(|cause| matches!(cause, Cause::Roam { .. }));
    match (&*air.roams, one) {
        ([], _) | ([_], true) => {}
        ([roam], false) => said.push(format!(
            "it roamed at {} {}",
            clock(roam.to_us),
            format_channel_change(roam.from, roam.to)
        )),
        ([first, ..], _) => said.push(format!(
            "it roamed {} times, first at {} {}",
            air.roams.len(),
            clock(first.to_us),
            format_channel_change(first.from, first.to)
        )),
    }
    let longest = air
        .away
        .iter()
        .max_by_key(|(from, to)| to.saturating_sub(*from));
    if let Some((from, to)) = longest
        && !told(|cause| matches!(cause, Cause::Away { .. }))
    {
        let long = format_latency(to.saturating_sub(*from) as f64 * 1e3);
        said.push(format!(
            "it was with no access point from {} on, for {long}",
            clock(*from)
        ));
    }
    let (first, rest) = said.split_first()?;
    let rest: String = rest.iter().map(|more| format!("; {more}")).collect();
    let mut letters = first.chars();
    let capital: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    Some(format!("{capital}{}{rest}.", letters.as_str()))
}

const COLUMNS: [&str; 7] = [
    "device",
    "mostly on",
    "signal",
    "weakest",
    "radio down",
    "radio up",
    "roams",
];

fn format_cells(net: &Net, air: &AirVerdict) -> Vec<String> {
    let none = || NONE.to_owned();
    let rate = |rate: Option<u64>| rate.map_or_else(none, |rate| format_mbit(rate as f64));
    vec![
        air.channel.map_or_else(none, |channel| channel.to_string()),
        air.signal.map_or_else(none, format_dbm),
        air.weakest.map_or_else(none, |weakest| {
            format!(
                "{} at {}",
                format_dbm(weakest.dbm),
                net.clock(weakest.at_us)
            )
        }),
        rate(air.down_bit_per_s),
        rate(air.up_bit_per_s),
        air.roams.len().to_string(),
    ]
}

fn list_radios<'a>(net: &'a Net) -> impl Iterator<Item = (&'a str, &'a AirVerdict, &'a Air)> {
    let people = net.judged.iter().zip(&net.run.people);
    people.filter_map(|(judged, taken)| {
        let air = taken.record.as_ref()?.air.as_ref()?;
        Some((&*judged.person, judged.air.as_ref()?, air))
    })
}

/// Writes the table of radios for a terminal; empty if no device reported its radio.
pub(super) fn write_table(out: &mut String, net: &Net, style: Style) {
    let mut rows: Vec<Vec<String>> = vec![COLUMNS.map(str::to_owned).to_vec()];
    rows.extend(list_radios(net).map(|(person, judged, _)| {
        std::iter::once(escape_line(person))
            .chain(format_cells(net, judged))
            .collect()
    }));
    if rows.len() > 1 {
        write_fitting_table(
            out,
            &mut rows,
            "llrrrrr",
            &["radio up", "radio down", "roams"],
            style,
        );
        out.push('\n');
    }
}

const ROW: f64 = 46.0;
/// Signal strengths in dBm at the ends of the scale.
const SCALE: (f64, f64) = (-90.0, -30.0);

/// Builds the section about radios for the page; `None` if no device reported its radio.
pub(super) fn build_section(net: &Net) -> Option<PlanSection> {
    let all: Vec<_> = list_radios(net).collect();
    let rows: Vec<BarLine> = all
        .iter()
        .map(|(person, judged, air)| {
            let mut points: Vec<String> = air
                .points
                .iter()
                .map(|point| escape_line(&point.address))
                .collect();
            points.dedup();
            let mut cells = format_cells(net, judged);
            cells.push(points.join(", "));
            BarLine {
                label: (*person).to_owned(),
                cells,
                ..BarLine::default()
            }
        })
        .collect();
    (!rows.is_empty()).then(|| PlanSection {
        heading: "The radios".to_owned(),
        about: "On the axis of the seconds above: how strong each device heard its access point, from −90 dBm below to \
                −30 dBm on top, green down to −70 dBm and yellow below; red and full where it was with none. The strip \
                under it is the band: violet 2.4 GHz, blue 5 GHz, light blue 6 GHz. A dashed line is a roam. The second \
                half of every address is hidden."
            .to_owned(),
        columns: COLUMNS.into_iter().chain(["access points"]).collect(),
        rows,
        drawing: Some(draw_radios(net, &all)),
        ..PlanSection::default()
    })
}

fn draw_radios(net: &Net, all: &[(&str, &AirVerdict, &Air)]) -> String {
    let height = all.len() as f64 * (ABOVE + ROW) + 20.0;
    let mut svg = Svg::new(SECONDS, height);
    let seconds = net.seconds();
    let wide = SECONDS / seconds.max(1) as f64;
    let x = |us: u64| us as f64 / 1e6 * wide;
    for (at, (person, judged, air)) in all.iter().enumerate() {
        let top = at as f64 * (ABOVE + ROW) + ABOVE;
        let label = shorten_name(&escape_line(person), LETTERS);
        svg.add_text(0.0, top - 3.0, TextAnchor::Start, "", &label);
        let bottom = top + ROW - 10.0;
        let full = bottom - top - 4.0;
        for (at, sample) in air.samples.iter().enumerate() {
            let next = air
                .samples
                .get(at + 1)
                .map_or(sample.at.saturating_add(1_000_000), |next| next.at);
            let (from, to) = (x(sample.at), x(next).min(SECONDS));
            let says = match sample.point {
                None => "with no access point".to_owned(),
                Some(_) => format!(
                    "{}, {}, down {}, up {}",
                    format_channel(sample.channel),
                    sample.signal.map_or_else(|| NONE.to_owned(), format_dbm),
                    sample
                        .down_bit_per_s
                        .map_or_else(|| NONE.to_owned(), |rate| format_mbit(rate as f64)),
                    sample
                        .up_bit_per_s
                        .map_or_else(|| NONE.to_owned(), |rate| format_mbit(rate as f64)),
                ),
            };
            let says = format!("{} {says}", net.clock(sample.at));
            let (class, high) = match (sample.point, sample.signal) {
                (None, _) => ("special", full),
                (_, None) => ("idle", 3.0),
                (_, Some(signal)) => {
                    let share = (f64::from(signal) - SCALE.0) / (SCALE.1 - SCALE.0);
                    let class = if signal < WEAK { "parity" } else { "spare" };
                    (class, 3.0 + share.clamp(0.0, 1.0) * (full - 3.0))
                }
            };
            let width = (to - from - 0.5).max(0.5);
            svg.add_titled_rect(
                [from, bottom - high, width, high],
                &format!("c-{class}"),
                &says,
            );
            if let Some(channel) = sample.channel {
                let band = match channel.band {
                    Band::Two => "c-metadata",
                    Band::Five => "c-data",
                    Band::Six => "c-copy",
                };
                svg.add_titled_rect(
                    [from, bottom + 1.0, to - from, 4.0],
                    band,
                    &channel.to_string(),
                );
            }
        }
        for roam in &judged.roams {
            let x = x(roam.to_us);
            svg.add_line((x, top + 2.0), (x, bottom + 5.0), "level");
            let says = format!(
                "{} roamed {}",
                net.clock(roam.to_us),
                format_channel_change(roam.from, roam.to)
            );
            svg.add_titled_rect([x - 2.0, top, 4.0, 5.0], "c-special", &says);
        }
    }
    draw_axis(&mut svg, net, seconds, height, (0.0, SECONDS));
    svg.finish(
        "radios",
        "The radios",
        "Signal, bands and roams; the table has the figures.",
    )
}
