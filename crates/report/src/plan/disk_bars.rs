//! Bars of disks as text. Bars as SVG are in `layout`.

use super::{content_name, join_equal_disks, list_contents};
use assay_model::size::Convention::Decimal;
use assay_planner::layout::{Content, Segment};
use std::fmt::Write as _;

/// Number of columns before a bar.
const LEAD: usize = 17;
const LONGEST: usize = 56;
/// Maximum number of rows. Additional disks are only counted.
const MOST: usize = 24;

fn content_mark(content: Content) -> char {
    match content {
        Content::Data => '█',
        Content::Copy => '▓',
        Content::Parity => '▒',
        Content::Metadata => '≡',
        Content::Spare => '○',
        Content::Special => '◆',
        Content::Idle => '·',
    }
}

/// Draws one bar for each disk, `columns` wide for the largest disk. Equal neighbouring disks share a line.
#[must_use]
pub fn draw_bars(disks: &[Vec<Segment>], columns: usize) -> String {
    let longest = columns.max(40).saturating_sub(LEAD).min(LONGEST);
    let rows = join_equal_disks(disks);
    let largest = rows.iter().map(|row| row.size).max().unwrap_or(1).max(1);
    let mut text = String::new();
    for row in rows.iter().take(MOST) {
        let length = ((row.size as f64 / largest as f64 * longest as f64).round() as usize).max(1);
        let mut bar = String::new();
        let (mut drawn, mut bytes) = (0, 0u64);
        for segment in row.segments {
            bytes += segment.bytes;
            let end = (bytes as f64 / row.size.max(1) as f64 * length as f64).round() as usize;
            // A small part stays visible, unless its bar has no column left.
            let end = end
                .max(drawn + usize::from(segment.bytes > row.size / 200))
                .min(length);
            bar.extend(std::iter::repeat_n(
                content_mark(segment.content),
                end - drawn,
            ));
            drawn = end;
        }
        let count = match row.times {
            1 => String::new(),
            times => format!("{times}× "),
        };
        let label = format!("{count}{}", Decimal.show(row.size));
        let _ = writeln!(text, "  {label:>13}  {bar}");
    }
    if rows.len() > MOST {
        let _ = writeln!(text, "  and {} more", rows.len() - MOST);
    }
    text
}

/// Formats the legend of the marks that a chart contains.
#[must_use]
pub fn format_legend(disks: &[Vec<Segment>]) -> String {
    let words: Vec<String> = list_contents(disks.iter())
        .into_iter()
        .map(|content| format!("{} {}", content_mark(content), content_name(content)))
        .collect();
    words.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_80_columns() {
        let part = |content, bytes| Segment { content, bytes };
        let disks = vec![
            vec![part(Content::Data, 4_000_000_000_000)],
            vec![
                part(Content::Copy, 1_900_000_000_000),
                part(Content::Idle, 100_000_000_000),
            ],
            vec![part(Content::Parity, 1), part(Content::Idle, 1)],
            vec![part(Content::Parity, 1), part(Content::Idle, 1)],
        ];
        let text = draw_bars(&disks, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
        assert_eq!(text.lines().count(), 3);
        insta::assert_snapshot!(text, @r"
          4 TB  ████████████████████████████████████████████████████████
          2 TB  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓·
        2× 2 B  ▒
        ");
        insta::assert_snapshot!(format_legend(&disks), @"█ data  ▓ copy  ▒ parity  · idle");
    }

    #[test]
    fn five_unequal_disks() {
        let disks: Vec<assay_planner::layout::Disk> = [4_000, 2_000, 2_000, 1_000, 750]
            .map(|gb| assay_planner::layout::Disk {
                size: gb * 1_000_000_000,
                price: None,
            })
            .to_vec();
        let context = assay_planner::layout::Context::default();
        let mut text = String::new();
        for spec in [
            "raidz1",
            "2*mirror:2+spare",
            "draid1:2d:1s",
            "btrfs-raid1",
            "stripes:3+1",
        ] {
            let layout =
                assay_planner::layout::Layout::parse(spec, &disks, None, &context).unwrap();
            let plan = assay_planner::layout::describe(&layout, &disks, &context).unwrap();
            text += &format!(
                "{spec}: {} bytes\n{}\n",
                plan.usable,
                draw_bars(&plan.disks, 80)
            );
        }
        insta::assert_snapshot!(text);
    }
}
