//! Tests all formats of the waterfall with figures from a formula.

mod common;

use assay_model::ladder::{Ladder, Level, Rung, RungPlace, Step, Waterfall, Whole};
use assay_model::result::{Estimate, Interval};
use assay_model::{LayerKind, Run};
use assay_render::Style;
use assay_render::text::measure_width;
use assay_report::waterfall::{
    WaterfallView, render_waterfall_markdown, render_waterfall_page, render_waterfall_text,
    waterfall_to_json,
};
use common::page::check;
use common::{Case, case, plan_toml};
use std::collections::BTreeMap;

fn rung(name: &str, layer: &str, parent: Option<usize>, again: Option<usize>) -> Rung {
    Rung {
        name: name.to_owned(),
        parent,
        layer: layer.to_owned(),
        kind: LayerKind::Image,
        place: RungPlace::Host,
        settings: BTreeMap::new(),
        holds: Vec::new(),
        again,
    }
}

fn ladder() -> Ladder {
    let mut rungs = vec![
        rung("file", "file", None, None),
        rung("disk-raw", "virtual disk (virtio-blk)", Some(0), None),
        rung("disk-qcow2", "qcow2", Some(1), None),
        rung("ext4", "ext4", Some(2), None),
        rung("xfs", "xfs", Some(2), None),
        rung("file-again", "file", None, Some(0)),
        rung("ext4-again", "ext4", None, Some(3)),
    ];
    rungs[1].holds = vec!["QEMU and the guest's kernel".to_owned()];
    rungs[1].settings = [("cache".to_owned(), "none".to_owned())].into();
    Ladder {
        target: "/srv/images".to_owned(),
        rungs,
        accel: Some("kvm".to_owned()),
        left_out: vec!["luks: no room".to_owned()],
    }
}

fn estimate(value: f64, half: f64) -> Option<Estimate> {
    Some(Estimate {
        value,
        interval: Some(Interval {
            low: value - half,
            high: value + half,
            confidence: 0.95,
        }),
        rounds: 6,
    })
}

fn fall(workload: &str) -> Waterfall {
    let times = [100e3, 340e3, 342e3, 300e3, 390e3, 101e3, 299e3];
    let step = |from: usize, to: usize, half: f64| {
        let added: f64 = times[to] - times[from];
        Step {
            from,
            to,
            added: estimate(added, half),
            ratio: estimate(times[to] / times[from], 0.1),
            told: added.abs() > half,
            share: (to == 1).then_some(1.21),
        }
    };
    let whole = |top: usize, steps: Vec<usize>, separate: bool| Whole {
        bottom: 0,
        top,
        steps,
        added: estimate(times[top] - times[0], 9e3),
        ratio: estimate(times[top] / times[0], 0.1),
        sum: estimate(times[top] - times[0] + 2e3, 9e3),
        closing: estimate(2e3, 5e3).filter(|_| separate),
        separate,
        first: vec![0],
    };
    Waterfall {
        workload: workload.to_owned(),
        description: "random read, 4 KiB, queue depth 1, direct".to_owned(),
        levels: (0..times.len())
            .map(|rung| Level {
                rung,
                latency: estimate(times[rung], 8e3),
                iops: estimate(1e9 / times[rung], 100.0),
                left_out: 0,
                doubts: Vec::new(),
            })
            .collect(),
        steps: vec![
            step(0, 1, 12e3),
            step(1, 2, 4e3),
            step(2, 3, 6e3),
            step(2, 4, 6e3),
        ],
        wholes: vec![
            whole(3, vec![0, 1, 2], true),
            whole(4, vec![0, 1, 3], false),
        ],
    }
}

fn measured() -> (Case, Run, Vec<Waterfall>) {
    let text = "name = 'stack'\ntitle = 'What each layer of a stack costs'\nrounds = 6\n[[workload]]\npattern = 'randread'\nblock_size = '4k'\n";
    let case = case(plan_toml(text, &["file"]));
    let run = Run {
        ladder: Some(ladder()),
        ..case.run.clone()
    };
    (case, run, vec![fall("randread-4k-qd1")])
}

fn with<T>(
    change: impl Fn(&mut Run, &mut Vec<Waterfall>),
    show: impl Fn(&WaterfallView) -> T,
) -> T {
    let (case, mut run, mut falls) = measured();
    change(&mut run, &mut falls);
    let ladder = run.ladder.clone().unwrap();
    show(&WaterfallView {
        run: &run,
        ladder: &ladder,
        judged: &case.judged,
        samples: &case.samples,
        falls: &falls,
    })
}

fn text(columns: usize, change: impl Fn(&mut Run, &mut Vec<Waterfall>)) -> String {
    let style = Style {
        color: false,
        width: columns,
    };
    let text = with(change, |view| render_waterfall_text(view, style));
    for line in text.lines() {
        assert!(
            measure_width(line) <= columns,
            "{} columns: {line}",
            measure_width(line)
        );
        assert_eq!(line.trim_end(), line, "trailing blanks");
    }
    text
}

#[test]
fn in_a_terminal() {
    insta::assert_snapshot!(text(80, |_, _| {}));
    insta::assert_snapshot!("narrow", text(44, |_, _| {}));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(with(|_, _| {}, render_waterfall_markdown));
}

#[test]
fn as_json() {
    let document = with(|_, _| {}, waterfall_to_json);
    assert_eq!(document["run"]["ladder"]["rungs"][3]["name"], "ext4");
    assert_eq!(
        document["waterfalls"][0]["steps"][0]["added"]["value"],
        240e3
    );
    assert_eq!(document["waterfalls"][0]["wholes"][0]["first"][0], 0);
}

#[test]
fn as_a_page() {
    let page = with(|_, _| {}, render_waterfall_page);
    check(&page);
    for seen in [
        "Look first: virtual disk (virtio-blk)",
        "class=\"open\"",
        "which is noise",
    ] {
        assert!(page.contains(seen), "{seen}");
    }
    let evil = "<script>alert('1')</script>\"'&\u{202e}\u{7}\n";
    let page = with(
        |run, falls| {
            let ladder = run.ladder.as_mut().unwrap();
            ladder.target = evil.to_owned();
            ladder.rungs[1].layer = evil.to_owned();
            ladder.rungs[1].holds = vec![evil.to_owned()];
            ladder.left_out = vec![evil.to_owned()];
            run.remarks = vec![evil.to_owned()];
            falls[0].description = evil.to_owned();
        },
        render_waterfall_page,
    );
    check(&page);
    assert!(!page.contains("<script") && !page.contains('\u{202e}'));
}

/// Returns the lines that a report adds for an unusual input.
fn told(change: impl Fn(&mut Run, &mut Vec<Waterfall>)) -> String {
    let usual = text(200, |_, _| {});
    let usual: Vec<&str> = usual.lines().collect();
    let text = text(200, change);
    let other = text.lines().filter(|line| !usual.contains(line));
    other.map(str::trim_start).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_missing_is_said() {
    insta::assert_snapshot!(told(|_, falls| falls.clear()), @"Nothing was measured.");
    let void = told(|_, falls| {
        let fall = &mut falls[0];
        for level in &mut fall.levels[1..] {
            level.latency = None;
            level.iops = None;
            level.left_out = 6;
        }
        for step in &mut fall.steps {
            (step.added, step.ratio, step.told) = (None, None, false);
        }
        for whole in &mut fall.wholes {
            (whole.added, whole.sum, whole.closing) = (None, None, None);
            whole.first.clear();
        }
    });
    insta::assert_snapshot!(void, @r"
    file                             100 µs        ███████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
    + virtual disk (virtio-blk)         –  –
    + qcow2                           –  –
    + ext4                          –  –
    + xfs                           –  –
    whole       file to ext4: no figure
    look first  unknown: a rung has no figure
    check       the parts cannot be added up: no round has a figure of every rung
    whole       file to xfs: no figure
    not told    virtual disk (virtio-blk): no figure, its samples, or those below it, are void; see Doubts
    not told    qcow2: no figure, its samples, or those below it, are void; see Doubts
    not told    ext4: no figure, its samples, or those below it, are void; see Doubts
    not told    xfs: no figure, its samples, or those below it, are void; see Doubts
    I/Os per s  file 10,000
    ");
    let apart = told(|_, falls| falls[0].wholes[0].closing = estimate(50e3, 5e3));
    insta::assert_snapshot!(apart, @r"
    check       the parts add up to +202 µs, the whole was +200 µs on samples of its own: +50.0 µs ±5.00 µs apart, which is more than noise: something changed between them (a cache, other load), and no
    part is known better than that
    ");
    let both = told(|_, falls| falls[0].wholes[0].first = vec![0, 2]);
    insta::assert_snapshot!(both, @"look first  virtual disk (virtio-blk), +240 µs ±12.0 µs, 121 % of the whole; but ext4 may cost as much, which more rounds would tell (--rounds)");
    // The total of two noisy layers is significant or not, like the layers.
    let whole = |reach: f64| {
        told(move |_, falls| {
            let whole = &mut falls[0].wholes[0];
            whole.first.clear();
            whole.added = estimate(56e6, reach);
        })
    };
    insta::assert_snapshot!(whole(17e6), @r"
    whole       file to ext4: +56.0 ms ±17.0 ms, ×3.00
    look first  not told: the whole costs something, but not which of virtual disk (virtio-blk), qcow2 and ext4 does, which more rounds would tell (--rounds)
    check       the parts add up to +202 µs, the whole was +56.0 ms on samples of its own: +2.00 µs ±5.00 µs apart, which is noise
    ");
    insta::assert_snapshot!(whole(60e6), @r"
    whole       file to ext4: +56.0 ms ±60.0 ms, ×3.00
    look first  nowhere: no layer costs anything that can be told from noise
    check       the parts add up to +202 µs, the whole was +56.0 ms on samples of its own: +2.00 µs ±5.00 µs apart, which is noise
    ");
}
