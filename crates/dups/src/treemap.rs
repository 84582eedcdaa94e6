//! The bytes to gain by folder, as one HTML page without scripts or outside parts.

use crate::group::Groups;
use crate::table::Files;
use crate::tree::{Node, tree};
use std::fmt::Write as _;

/// Size of the drawing, in SVG units.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 720.0;
/// Rectangles narrower than this are left out: nobody could point at them.
const LEAST: f64 = 3.0;
/// Room for a folder's label.
const LABEL: f64 = 14.0;

/// Draws the page. Each copy after the first in its group counts in its own folder; `size` puts bytes
/// into words.
pub fn html(files: &Files, groups: &Groups, size: fn(u64) -> String) -> String {
    let root = tree(files, groups);
    let (path, top) = root.top();
    let mut drawing = Drawing {
        size,
        svg: String::new(),
    };
    drawing.folder(top, &path, [0.0, 0.0, WIDTH, HEIGHT], 0);
    let svg = drawing.svg;
    let title = escape(&crate::name::readable(if path.is_empty() {
        b"/"
    } else {
        &path
    }));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width\"><title>Duplicates in {title}</title>\n\
<style>body{{font:14px system-ui,sans-serif;margin:1.5rem;color:#1c2430;background:#fff}}\
svg{{width:100%;height:auto;font:11px system-ui,sans-serif}}rect{{stroke:#fff;stroke-width:1}}\
text{{pointer-events:none;fill:#10202c}}\
@media(prefers-color-scheme:dark){{body{{color:#e6e9ee;background:#14181d}}rect{{stroke:#14181d}}}}\
</style></head>\n<body><h1>Duplicates in {title}</h1>\n\
<p>{} in copies beyond the first, by folder. Point at a rectangle for its path.</p>\n\
<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Treemap of redundant bytes\">{svg}</svg>\n\
</body></html>\n",
        size(top.bytes)
    )
}

struct Drawing {
    size: fn(u64) -> String,
    svg: String,
}

impl Drawing {
    fn folder(&mut self, node: &Node, path: &[u8], area: [f64; 4], depth: usize) {
        let [x, y, width, height] = area;
        let name = crate::name::readable(path);
        let light = 88 - 7 * depth.min(6);
        let _ = write!(
            self.svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"hsl(205 45% {light}%)\"><title>{}\n{}</title></rect>",
            escape(&name),
            (self.size)(node.bytes)
        );
        let last = name.rsplit('/').next().unwrap_or_default();
        let room = (width / 6.5) as usize;
        let labelled = height > LABEL && room > 3;
        if labelled {
            let text: String = last.chars().take(room).collect();
            let _ = write!(
                self.svg,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 3.0,
                y + 11.0,
                escape(&text)
            );
        }
        let top = if labelled { LABEL } else { 1.0 };
        let inner = [x + 1.0, y + top, width - 2.0, height - top - 1.0];
        self.slice(&node.folders(), node.bytes, path, inner, depth);
    }

    /// Halves the area by weight until one child is left in each part, along the longer side.
    fn slice(
        &mut self,
        children: &[(&[u8], &Node)],
        whole: u64,
        path: &[u8],
        area: [f64; 4],
        depth: usize,
    ) {
        let [x, y, width, height] = area;
        let sum: u64 = children.iter().map(|child| child.1.bytes).sum();
        if width < LEAST || height < LEAST || sum == 0 {
            return;
        }
        // What lies in the folder itself keeps its share of the area, empty.
        let share = sum as f64 / whole.max(sum) as f64;
        let [width, height] = match width > height {
            true => [width * share, height],
            false => [width, height * share],
        };
        if let [(name, node)] = children {
            let path = [path, b"/", name].concat();
            return self.folder(node, &path, [x, y, width, height], depth + 1);
        }
        let mut first = 0;
        let mut cut = 0;
        while cut < children.len() - 1 && (cut == 0 || first * 2 < sum) {
            first += children[cut].1.bytes;
            cut += 1;
        }
        let part = first as f64 / sum as f64;
        let (one, two) = match width > height {
            true => (
                [x, y, width * part, height],
                [x + width * part, y, width * (1.0 - part), height],
            ),
            false => (
                [x, y, width, height * part],
                [x, y + height * part, width, height * (1.0 - part)],
            ),
        };
        self.slice(&children[..cut], first, path, one, depth);
        self.slice(&children[cut..], sum - first, path, two, depth);
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
