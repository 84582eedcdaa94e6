//! Tests the reports with a stack that has branches, a layer shared by two others, a cycle and a hostile name.

use super::{
    StackView, render_stack_markdown, render_stack_page, render_stack_text, stack_to_json,
};
use assay_model::stack::{Hint, Layer, LayerKind, Stack};
use assay_render::Style;
use assay_render::text::measure_width;
use proptest::prelude::*;

fn layer(kind: LayerKind, name: &str, settings: &[(&str, &str)], below: &[usize]) -> Layer {
    let mut layer = Layer::new(kind, name);
    for (key, value) in settings {
        layer
            .settings
            .insert((*key).to_owned(), (*value).to_owned());
    }
    layer.below = below.to_vec();
    layer
}

fn stack() -> Stack {
    let mirror = [("class", "data"), ("kind", "mirror"), ("ashift", "9")];
    let disk = [("physical_block_size", "4k"), ("write_cache", "write back")];
    let mut layers = vec![
        layer(LayerKind::Path, "/srv/z\u{202e}<b>", &[], &[1]),
        layer(
            LayerKind::Zvol,
            "tank/vol",
            &[
                ("volblocksize", "8k"),
                ("sync", "standard"),
                ("compression", "off"),
            ],
            &[2],
        ),
        layer(LayerKind::Pool, "tank", &[("capacity", "11")], &[3, 6]),
        layer(LayerKind::Vdev, "mirror-0", &mirror, &[4, 5]),
        layer(LayerKind::Disk, "sda", &disk, &[7]),
        layer(LayerKind::Disk, "sdb", &disk, &[7]),
        layer(LayerKind::Vdev, "log", &[("class", "log")], &[4]),
        layer(LayerKind::Link, "sata", &[], &[]),
    ];
    layers[5]
        .unknown
        .push("its scheduler: not allowed".to_owned());
    layers[4]
        .unknown
        .push("its scheduler: not allowed".to_owned());
    Stack {
        target: "/srv/z\u{202e}<b>".to_owned(),
        layers,
    }
}

fn hints() -> Vec<Hint> {
    vec![Hint {
        layer: 3,
        text: "its blocks are smaller than those of sda".to_owned(),
        because: "ashift 9, physical_block_size 4k".to_owned(),
        page: "zfs-ashift-small".to_owned(),
        source: "zpoolprops(7), ashift".to_owned(),
    }]
}

fn next() -> Vec<(String, String)> {
    let line = |command: &str, what: &str| (command.to_owned(), what.to_owned());
    vec![line(
        "assay stack --measure /srv/z",
        "what each of these layers costs",
    )]
}

fn drawn(columns: usize) -> String {
    let (stack, hints, next) = (stack(), hints(), next());
    let view = StackView {
        stack: &stack,
        hints: &hints,
        next: &next,
    };
    let style = Style {
        color: false,
        width: columns,
    };
    render_stack_text(&view, style)
}

#[test]
fn in_a_wide_terminal() {
    insta::assert_snapshot!(drawn(100));
}

#[test]
fn in_a_narrow_terminal() {
    insta::assert_snapshot!(drawn(44));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [40, 60, 80, 132] {
        for line in drawn(columns).lines() {
            assert!(measure_width(line) <= columns, "{columns}: {line}");
        }
    }
}

#[test]
fn other_forms() {
    let (stack, hints) = (stack(), hints());
    let view = StackView {
        stack: &stack,
        hints: &hints,
        next: &[],
    };
    insta::assert_snapshot!(render_stack_markdown(&view));
    let document: serde_json::Value = serde_json::from_str(&stack_to_json(&view)).unwrap();
    assert_eq!(document["layers"][3]["settings"]["ashift"], "9");
    assert_eq!(document["hints"][0]["layer"], 3);
    let page = render_stack_page(&view);
    assert!(page.contains("<svg") && page.contains("physical_block_size 4k"));
    assert!(!page.contains("<b>") && !page.contains('\u{202e}'));
}

proptest! {
    #[test]
    fn no_graph_makes_it_panic_or_hang(
        below in proptest::collection::vec(proptest::collection::vec(0usize..12, 0..4), 0..10),
        columns in 0usize..120,
    ) {
        let layers = below.iter().map(|below| layer(LayerKind::Disk, "数据\n", &[("a", "b")], below));
        let stack = Stack { target: "t".to_owned(), layers: layers.collect() };
        let view = StackView { stack: &stack, hints: &hints(), next: &[] };
        let _ = render_stack_text(&view, Style { color: true, width: columns });
        let _ = (render_stack_markdown(&view), stack_to_json(&view), render_stack_page(&view));
    }
}
