//! Pages: self-contained, without a script or a request, readable in light and dark, on paper and
//! on a narrow screen.

use crate::svg::palette;
use crate::text::clean;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, context};
use serde::Serialize;

/// From the doctype to `</html>`, around what a page has of its own.
const SHELL: &str = include_str!("html/shell.html");
/// Macros that pages share: `table`, `chart`, `tiles`, `remarks`, `doubts`, `environment`.
const PARTS: &str = include_str!("html/parts.html");
const STYLE: &str = include_str!("html/style.css");

/// A chart and what it shows as a table.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// Printed above it.
    pub title: String,
    /// The drawing, which is markup already.
    pub svg: String,
    /// The same figures.
    pub table: Table,
}

/// Columns of text; the first is a row's name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Headings.
    pub head: Vec<String>,
    /// Cells of every row.
    pub rows: Vec<Vec<String>>,
}

/// A whole page. `title` is text; `style` is CSS that only this page needs; `body` is the template
/// between `<body>` and `</body>`, which escapes the `values` it shows and may import from
/// `parts.html`.
#[must_use]
pub fn page(title: &str, style: &str, body: &'static str, values: minijinja::Value) -> String {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    match syntax {
        Ok(syntax) => environment.set_syntax(syntax),
        Err(error) => unreachable!("the syntax is part of the program: {error:#}"),
    }
    environment.add_filter("marked", |text: &str| {
        minijinja::Value::from_safe_string(marked(text))
    });
    let values = context! {
        page_title => clean(title),
        page_style => format!("{}\n{STYLE}\n{style}", palette::css()),
        ..values
    };
    let rendered = environment
        .add_template("parts.html", PARTS)
        .and_then(|()| environment.add_template("body.html", body))
        .and_then(|()| environment.add_template("shell.html", SHELL))
        .and_then(|()| environment.get_template("shell.html")?.render(values));
    match rendered {
        Ok(page) => page,
        Err(error) => unreachable!("the template is part of the program: {error:#}"),
    }
}

/// Escapes for element content and quoted attributes; deceptive characters become visible.
#[must_use]
pub fn escape(text: &str) -> String {
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

/// Text for HTML in which what stands between backticks, as many at the end as at the beginning, is code.
fn marked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let ticks = rest[at..].chars().take_while(|c| *c == '`').count();
        let inside = &rest[at + ticks..];
        let fence = &rest[at..at + ticks];
        let ends = inside.match_indices(fence).find(|(end, _)| {
            let longer = inside[..*end].ends_with('`') || inside[end + ticks..].starts_with('`');
            !longer
        });
        let Some((end, _)) = ends else {
            break;
        };
        out.push_str(&escaped(&rest[..at]));
        out.push_str("<code>");
        out.push_str(&escaped(&inside[..end]));
        out.push_str("</code>");
        rest = &inside[end + ticks..];
    }
    out + &escaped(rest)
}

fn escaped(text: &str) -> String {
    minijinja::HtmlEscape(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_title_is_text_and_the_shell_is_whole() {
        let page = page(
            "<b>\u{202e}",
            "",
            "<p>{{ said }}</p>",
            context! { said => "<i>" },
        );
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
        assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains('\u{202e}'));
        assert!(page.contains("name=\"viewport\"") && page.contains("prefers-color-scheme"));
    }
}
