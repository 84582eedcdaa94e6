//! SVG elements as text. Coordinates are rounded to a tenth of a pixel, text is escaped.

use crate::text::clean;
use std::fmt::Write as _;

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Escapes for element content and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate: one decimal, none when whole; what is not finite becomes 0.
pub(super) fn px(value: f64) -> String {
    let tenths = if value.is_finite() {
        (value * 10.0).round()
    } else {
        0.0
    };
    match tenths {
        0.0 => "0".to_owned(),
        t if t % 10.0 == 0.0 => format!("{:.0}", t / 10.0),
        t => format!("{:.1}", t / 10.0),
    }
}

/// A chart under construction.
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() {
            String::new()
        } else {
            format!(" class=\"{class}\"")
        };
        let _ = write!(
            self.body,
            "<text x=\"{}\" y=\"{}\"{anchor}{class}>{}</text>",
            px(x),
            px(y),
            escape(text)
        );
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = write!(
            self.body,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>",
            px(from.0),
            px(from.1),
            px(to.0),
            px(to.1)
        );
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let _ = write!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"/>",
            px(x),
            px(y),
            px(width.max(0.0)),
            px(height.max(0.0))
        );
    }

    pub(super) fn circle(&mut self, x: f64, y: f64, radius: f64, class: &str) {
        let _ = write!(
            self.body,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{class}\"/>",
            px(x),
            px(y),
            px(radius)
        );
    }

    /// A line through points; a single point becomes a dot.
    pub(super) fn path(&mut self, points: &[(f64, f64)], class: &str) {
        match points {
            [] => {}
            [(x, y)] => self.circle(*x, *y, 1.5, &format!("dot {class}")),
            points => {
                let mut data = String::new();
                for (i, (x, y)) in points.iter().enumerate() {
                    let _ = write!(
                        data,
                        "{}{} {}",
                        if i == 0 { "M" } else { "L" },
                        px(*x),
                        px(*y)
                    );
                }
                let _ = write!(self.body, "<path d=\"{data}\" class=\"{class}\"/>");
            }
        }
    }

    /// Diagonal hatching over a rectangle: a mark that does not need colour.
    pub(super) fn hatch(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let mut data = String::new();
        let mut at = 8.0;
        while at < width + height {
            let from = (x + (at - height).max(0.0), y + at.min(height));
            let to = (x + at.min(width), y + (at - width).max(0.0));
            let _ = write!(
                data,
                "M{} {}L{} {}",
                px(from.0),
                px(from.1),
                px(to.0),
                px(to.1)
            );
            at += 8.0;
        }
        let _ = write!(self.body, "<path d=\"{data}\" class=\"hatch\"/>");
    }

    /// The whole chart. `id` must be unique on the page.
    pub(super) fn finish(self, id: &str, title: &str, description: &str) -> String {
        let (id, w, h) = (escape(id), px(self.width), px(self.height));
        format!(
            "<svg viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            escape(title),
            escape(description),
            self.body
        )
    }
}

/// A name cut to `most` characters with an ellipsis in its middle, where names differ least.
pub(super) fn shorten(name: &str, most: usize) -> String {
    let chars: Vec<char> = clean(name).chars().collect();
    if chars.len() <= most.max(3) {
        return chars.into_iter().collect();
    }
    let tail = (most.max(3) - 1) / 2;
    let head = most.max(3) - 1 - tail;
    let (start, end) = (&chars[..head], &chars[chars.len() - tail..]);
    start.iter().chain(&['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_finite() {
        assert_eq!(px(1.04), "1");
        assert_eq!(px(-0.01), "0");
        assert_eq!(px(f64::NAN), "0");
        assert_eq!(px(12.36), "12.4");
    }

    #[test]
    fn names_keep_both_ends() {
        assert_eq!(shorten("randwrite-4k-qd1", 20), "randwrite-4k-qd1");
        assert_eq!(shorten("abcdefghijk", 7), "abc…ijk");
    }

    #[test]
    fn hostile_text_is_text() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(0.0, 0.0, Anchor::Start, "", "<script>\u{202e}");
        let text = svg.finish("\"x", "</title><b>", "&");
        assert!(!text.contains("<script>") && !text.contains("<b>") && !text.contains('\u{202e}'));
        assert!(text.contains("&quot;x-t"));
    }
}
