//! An SVG canvas for the charts in the sibling modules. It writes elements as text, rounds coordinates to a tenth of a
//! pixel, and escapes text.

use crate::html::escape_html;
use crate::text::escape_line;
use std::fmt::Write as _;

/// Point of a text that is placed at its coordinate.
#[derive(Clone, Copy)]
pub enum TextAnchor {
    /// The start of the text is at the coordinate.
    Start,
    /// The middle of the text is at the coordinate.
    Middle,
    /// The end of the text is at the coordinate.
    End,
}

/// Formats a coordinate with one decimal, or without decimals if it is whole. A value that is not finite becomes 0.
pub fn format_pixels(value: f64) -> String {
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

/// A chart to which elements are added.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
    has_links: bool,
}

impl Svg {
    /// Creates an empty chart of this size in pixels.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
            has_links: false,
        }
    }

    /// Adds a text whose baseline is at `y`.
    pub fn add_text(&mut self, x: f64, y: f64, anchor: TextAnchor, class: &str, text: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "",
            TextAnchor::Middle => " text-anchor=\"middle\"",
            TextAnchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() {
            String::new()
        } else {
            format!(" class=\"{class}\"")
        };
        let _ = write!(
            self.body,
            "<text x=\"{}\" y=\"{}\"{anchor}{class}>{}</text>",
            format_pixels(x),
            format_pixels(y),
            escape_html(text)
        );
    }

    /// Adds a straight line.
    pub fn add_line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = write!(
            self.body,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>",
            format_pixels(from.0),
            format_pixels(from.1),
            format_pixels(to.0),
            format_pixels(to.1)
        );
    }

    /// Adds a rectangle. A negative length counts as 0.
    pub fn add_rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let _ = write!(
            self.body,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"/>",
            format_pixels(x),
            format_pixels(y),
            format_pixels(width.max(0.0)),
            format_pixels(height.max(0.0))
        );
    }

    /// Adds a filled circle.
    pub fn add_circle(&mut self, x: f64, y: f64, radius: f64, class: &str) {
        let _ = write!(
            self.body,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{class}\"/>",
            format_pixels(x),
            format_pixels(y),
            format_pixels(radius)
        );
    }

    /// Adds a rectangle `[x, y, width, height]` with a tooltip.
    pub fn add_titled_rect(&mut self, at: [f64; 4], class: &str, title: &str) {
        let [x, y, width, height] = at.map(|length| format_pixels(length.max(0.0)));
        let _ = write!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
             class=\"{class}\"><title>{}</title></rect>",
            escape_html(title)
        );
    }

    /// Opens a hyperlink around all elements that are added until [`Self::close_link`].
    pub fn open_link(&mut self, href: &str) {
        self.has_links = true;
        let _ = write!(self.body, "<a href=\"{}\">", escape_html(href));
    }

    /// Closes the hyperlink that [`Self::open_link`] opened.
    pub fn close_link(&mut self) {
        self.body.push_str("</a>");
    }

    /// Adds a line through points. A single point becomes a dot.
    pub fn add_path(&mut self, points: &[(f64, f64)], class: &str) {
        match points {
            [] => {}
            [(x, y)] => self.add_circle(*x, *y, 1.5, &format!("dot {class}")),
            points => {
                let mut data = String::new();
                for (i, (x, y)) in points.iter().enumerate() {
                    let _ = write!(
                        data,
                        "{}{} {}",
                        if i == 0 { "M" } else { "L" },
                        format_pixels(*x),
                        format_pixels(*y)
                    );
                }
                let _ = write!(self.body, "<path d=\"{data}\" class=\"{class}\"/>");
            }
        }
    }

    /// Adds diagonal hatching over a rectangle, as a mark that does not depend on colour.
    pub fn add_hatching(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let mut data = String::new();
        let mut at = 8.0;
        while at < width + height {
            let from = (x + (at - height).max(0.0), y + at.min(height));
            let to = (x + at.min(width), y + (at - width).max(0.0));
            let _ = write!(
                data,
                "M{} {}L{} {}",
                format_pixels(from.0),
                format_pixels(from.1),
                format_pixels(to.0),
                format_pixels(to.1)
            );
            at += 8.0;
        }
        let _ = write!(self.body, "<path d=\"{data}\" class=\"hatch\"/>");
    }

    /// Finishes the chart and returns its markup. `id` must be unique on the page.
    pub fn finish(self, id: &str, title: &str, description: &str) -> String {
        let (id, w, h) = (
            escape_html(id),
            format_pixels(self.width),
            format_pixels(self.height),
        );
        // On a narrow screen a broad chart scrolls in its box and stays legible.
        let class = if self.width > 400.0 {
            " class=\"broad\""
        } else {
            ""
        };
        // An image has no links to follow; a group has.
        let role = if self.has_links { "group" } else { "img" };
        format!(
            "<svg{class} viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"{role}\" \
             aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            escape_html(title),
            escape_html(description),
            self.body
        )
    }
}

/// Shortens a name to `most` characters. Puts an ellipsis in the middle, where names differ least.
pub fn shorten_name(name: &str, most: usize) -> String {
    let chars: Vec<char> = escape_line(name).chars().collect();
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
        assert_eq!(format_pixels(1.04), "1");
        assert_eq!(format_pixels(-0.01), "0");
        assert_eq!(format_pixels(f64::NAN), "0");
        assert_eq!(format_pixels(12.36), "12.4");
    }

    #[test]
    fn names_keep_both_ends() {
        assert_eq!(shorten_name("randwrite-4k-qd1", 20), "randwrite-4k-qd1");
        assert_eq!(shorten_name("abcdefghijk", 7), "abc…ijk");
    }

    #[test]
    fn hostile_text_is_text() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.add_text(0.0, 0.0, TextAnchor::Start, "", "<script>\u{202e}");
        let text = svg.finish("\"x", "</title><b>", "&");
        assert!(!text.contains("<script>") && !text.contains("<b>") && !text.contains('\u{202e}'));
        assert!(text.contains("&quot;x-t"));
    }
}
