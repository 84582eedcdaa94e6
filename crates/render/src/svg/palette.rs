//! Colours of the charts. The sequential palette has only one hue and orders values by lightness, so that it suits
//! every kind of colour blindness. Line colours differ in lightness and in hue.

use std::fmt::Write as _;

/// Number of steps of the sequential palette.
pub const STEPS: usize = 9;

/// A colour in sRGB: red, green, blue.
type Rgb = [u8; 3];

/// Colours of the sequential palette for light pages, from low to high.
const LIGHT: [Rgb; STEPS] = [
    [0xee, 0xf4, 0xf6],
    [0xd9, 0xe8, 0xee],
    [0xbe, 0xd9, 0xe4],
    [0x9d, 0xc6, 0xd7],
    [0x77, 0xb0, 0xc7],
    [0x4e, 0x98, 0xb4],
    [0x24, 0x73, 0x92],
    [0x13, 0x57, 0x76],
    [0x0a, 0x3b, 0x57],
];
/// Colours of the sequential palette for dark pages, from low to high.
const DARK: [Rgb; STEPS] = [
    [0x17, 0x25, 0x2d],
    [0x1a, 0x33, 0x3f],
    [0x1d, 0x43, 0x53],
    [0x21, 0x54, 0x69],
    [0x28, 0x67, 0x80],
    [0x4d, 0x94, 0xae],
    [0x71, 0xae, 0xc4],
    [0x98, 0xc7, 0xd8],
    [0xc5, 0xe1, 0xeb],
];
/// Text colours for cells, of which the one with more contrast is used.
const INKS: [Rgb; 2] = [[0x0b, 0x1a, 0x22], [0xff, 0xff, 0xff]];
/// Background colours of light and of dark pages.
const PAGES: [Rgb; 2] = [[0xff, 0xff, 0xff], [0x13, 0x18, 0x1c]];
/// Number of line colours, which differ in hue and in lightness. With dashes and dots, three times as many lines can be
/// distinguished.
const LINES: usize = 8;
/// Line colours for light pages.
const LINES_LIGHT: [Rgb; LINES] = [
    [0xb0, 0x72, 0x0a],
    [0x1f, 0x8a, 0x7e],
    [0x2a, 0x66, 0xb0],
    [0x4a, 0x2a, 0x80],
    [0xc0, 0x39, 0x2b],
    [0x5c, 0x7a, 0x12],
    [0xb8, 0x3d, 0x8c],
    [0x3f, 0x46, 0x4d],
];
/// Line colours for dark pages.
const LINES_DARK: [Rgb; LINES] = [
    [0xf0, 0xc0, 0x55],
    [0x52, 0xc4, 0xb0],
    [0x72, 0xa9, 0xee],
    [0xc0, 0xa6, 0xf5],
    [0xff, 0x8a, 0x7a],
    [0xb4, 0xd4, 0x5e],
    [0xf2, 0x8f, 0xcf],
    [0xd0, 0xd7, 0xdd],
];
/// CSS classes for lines of the same colour: solid, dashed, dotted.
const PATTERNS: [&str; 3] = ["", " dash", " dot"];

/// Computes the relative luminance, 0–1 (WCAG 2.2, "relative luminance").
fn compute_luminance(color: Rgb) -> f64 {
    let linear = |channel: u8| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.04045 {
            c / 12.92
        } else {
            ((c + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * linear(color[0]) + 0.7152 * linear(color[1]) + 0.0722 * linear(color[2])
}

/// Computes the contrast ratio, 1–21 (WCAG 2.2, "contrast ratio").
fn compute_contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (compute_luminance(a) + 0.05, compute_luminance(b) + 0.05);
    a.max(b) / a.min(b)
}

fn choose_ink(on: Rgb) -> Rgb {
    match compute_contrast(on, INKS[0]) >= compute_contrast(on, INKS[1]) {
        true => INKS[0],
        false => INKS[1],
    }
}

fn format_hex(color: Rgb) -> String {
    format!("#{:02x}{:02x}{:02x}", color[0], color[1], color[2])
}

/// Returns the index of the palette colour for a position on the scale, 0–1.
#[must_use]
pub fn choose_color_step(share: f64) -> usize {
    let share = if share.is_nan() {
        0.0
    } else {
        share.clamp(0.0, 1.0)
    };
    ((share * STEPS as f64) as usize).min(STEPS - 1)
}

/// Returns the CSS class of the n-th line of a chart. The colours repeat with dashes, then with dots.
#[must_use]
pub fn line_class(n: usize) -> String {
    let pattern = PATTERNS[n / LINES % PATTERNS.len()];
    format!("{}{pattern}", colour_class(n))
}

/// Returns the CSS class of other elements that have the colour of the n-th line, such as its label and its end point.
#[must_use]
pub fn colour_class(n: usize) -> String {
    format!("l{}", n % LINES)
}

fn format_css_variables(steps: [Rgb; STEPS], lines: [Rgb; LINES]) -> String {
    let mut css = String::new();
    for (i, color) in steps.into_iter().enumerate() {
        let _ = write!(
            css,
            "--q{i}:{};--i{i}:{};",
            format_hex(color),
            format_hex(choose_ink(color))
        );
    }
    for (i, color) in lines.into_iter().enumerate() {
        let _ = write!(css, "--l{i}:{};", format_hex(color));
    }
    css
}

/// Formats the palette as CSS. It defines variables for light, dark and print, and the classes that use them: `q0`…
/// (fill of a cell), `i0`… (text in a cell), `l0`… (line, and text beside the line).
#[must_use]
pub fn format_css() -> String {
    let light = format!(
        "--page:{};{}",
        format_hex(PAGES[0]),
        format_css_variables(LIGHT, LINES_LIGHT)
    );
    let dark = format!(
        "--page:{};{}",
        format_hex(PAGES[1]),
        format_css_variables(DARK, LINES_DARK)
    );
    let mut css = format!(
        ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    );
    for i in 0..STEPS {
        let _ = write!(css, ".q{i}{{fill:var(--q{i})}}.i{i}{{fill:var(--i{i})}}");
    }
    for i in 0..LINES_LIGHT.len() {
        let _ = write!(
            css,
            "path.l{i}{{stroke:var(--l{i})}}text.l{i},circle.l{i}{{fill:var(--l{i})}}"
        );
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_on_every_cell_can_be_read() {
        for color in LIGHT.into_iter().chain(DARK) {
            let ratio = compute_contrast(color, choose_ink(color));
            assert!(ratio >= 4.5, "{}: {ratio:.2}", format_hex(color));
        }
    }

    #[test]
    fn lines_and_their_labels_stand_out_from_the_page() {
        for (lines, page) in [(LINES_LIGHT, PAGES[0]), (LINES_DARK, PAGES[1])] {
            for color in lines {
                let ratio = compute_contrast(color, page);
                assert!(ratio >= 3.5, "{}: {ratio:.2}", format_hex(color));
            }
        }
    }

    #[test]
    fn two_dozen_lines_are_told_apart() {
        let all: std::collections::BTreeSet<String> = (0..24).map(line_class).collect();
        assert_eq!(all.len(), 24);
        assert_eq!(line_class(9), "l1 dash");
    }

    #[test]
    fn lightness_alone_carries_the_order() {
        assert!(
            LIGHT
                .windows(2)
                .all(|pair| compute_luminance(pair[0]) > compute_luminance(pair[1]))
        );
        assert!(
            DARK.windows(2)
                .all(|pair| compute_luminance(pair[0]) < compute_luminance(pair[1]))
        );
    }

    #[test]
    fn steps_cover_the_scale() {
        assert_eq!(
            (
                choose_color_step(0.0),
                choose_color_step(1.0),
                choose_color_step(f64::NAN)
            ),
            (0, STEPS - 1, 0)
        );
    }
}
