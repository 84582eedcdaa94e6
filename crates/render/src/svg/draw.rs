//! SVG elements as text. Coordinates are rounded to a tenth of a pixel, text is escaped.

use crate::html::escape;
use crate::text::clean;
use std::fmt::Write as _;

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// Its first letter stands there.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// A coordinate: one decimal, none when whole; what is not finite becomes 0.
pub fn px(value: f64) -> String {
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
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    /// An empty chart of so many units.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    /// A text; `y` is its baseline.
    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
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

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = write!(
            self.body,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>",
            px(from.0),
            px(from.1),
            px(to.0),
            px(to.1)
        );
    }

    /// A rectangle; a negative length counts as none.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let _ = write!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"/>",
            px(x),
            px(y),
            px(width.max(0.0)),
            px(height.max(0.0))
        );
    }

    /// A filled circle.
    pub fn circle(&mut self, x: f64, y: f64, radius: f64, class: &str) {
        let _ = write!(
            self.body,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{class}\"/>",
            px(x),
            px(y),
            px(radius)
        );
    }

    /// A rectangle that says what it is when it is pointed at.
    pub fn titled(&mut self, at: [f64; 4], class: &str, title: &str) {
        let [x, y, width, height] = at.map(|length| px(length.max(0.0)));
        let _ = write!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\"><title>{}</title></rect>",
            escape(title)
        );
    }

    /// A line through points; a single point becomes a dot.
    pub fn path(&mut self, points: &[(f64, f64)], class: &str) {
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
    pub fn hatch(&mut self, x: f64, y: f64, width: f64, height: f64) {
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
    pub fn finish(self, id: &str, title: &str, description: &str) -> String {
        let (id, w, h) = (escape(id), px(self.width), px(self.height));
        // On a narrow screen a broad chart is scrolled in its box rather than made illegible.
        let class = if self.width > 400.0 {
            " class=\"broad\""
        } else {
            ""
        };
        format!(
            "<svg{class} viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            escape(title),
            escape(description),
            self.body
        )
    }
}

/// A name cut to `most` characters with an ellipsis in its middle, where names differ least.
pub fn shorten(name: &str, most: usize) -> String {
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
