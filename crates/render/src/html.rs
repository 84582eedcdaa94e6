//! Builds self-contained HTML pages without scripts and without requests to a server. They are readable in light and
//! dark, on paper and on a narrow screen. Charts are drawn in [`crate::svg`]; the contents of each page are in
//! `assay-report`.

use crate::svg::palette;
use crate::text::escape_line;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, context};
use serde::Serialize;

/// Template of the HTML around the body of a page, from the doctype to `</html>`.
const SHELL: &str = include_str!("html/shell.html");
/// Macros that all pages can use: `table`, `chart`, `tiles`, `remarks`, `doubts`, `environment`.
const PARTS: &str = include_str!("html/parts.html");
const STYLE: &str = include_str!("html/style.css");

/// A chart with the table of its figures.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// Heading that is printed above the chart.
    pub title: String,
    /// Chart as SVG markup.
    pub svg: String,
    /// Figures that the chart shows, for readers who cannot see it.
    pub table: ChartTable,
}

/// A table of text. The first column contains the names of the rows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChartTable {
    /// Headings of the columns.
    pub head: Vec<String>,
    /// Cells of each row.
    pub rows: Vec<Vec<String>>,
}

/// Renders a whole page. `title` is plain text, `style` is CSS that only this page needs, and `body` is the template
/// between `<body>` and `</body>`. The template escapes the `values` that it shows, and can import macros from
/// `parts.html`.
#[must_use]
pub fn render_page(
    title: &str,
    style: &str,
    body: &'static str,
    values: minijinja::Value,
) -> String {
    render_page_of(title, style, body, &[], values)
}

/// Like [`render_page`]. `more` contains the names and texts of further templates that the body includes.
#[must_use]
pub fn render_page_of(
    title: &str,
    style: &str,
    body: &'static str,
    more: &[(&'static str, &'static str)],
    values: minijinja::Value,
) -> String {
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
        minijinja::Value::from_safe_string(mark_up_code(text))
    });
    let values = context! {
        page_title => escape_line(title),
        page_style => format!("{}\n{style}", base_style()),
        ..values
    };
    let mut more = more.iter();
    let rendered = more
        .try_for_each(|(name, text)| environment.add_template(name, text))
        .and_then(|()| environment.add_template("parts.html", PARTS))
        .and_then(|()| environment.add_template("body.html", body))
        .and_then(|()| environment.add_template("shell.html", SHELL))
        .and_then(|()| environment.get_template("shell.html")?.render(values));
    match rendered {
        Ok(page) => page,
        Err(error) => unreachable!("the template is part of the program: {error:#}"),
    }
}

/// The parts of a page from [`render_page`], for a server that adds navigation around the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageParts<'a> {
    /// Title of the page, escaped for HTML.
    pub title: &'a str,
    /// CSS that only this page needs.
    pub style: &'a str,
    /// Content between `<body>` and `</body>`.
    pub body: &'a str,
}

/// Splits a page from [`render_page`] into its parts. Returns `None` for any other text.
#[must_use]
pub fn split_page(page: &str) -> Option<PageParts<'_>> {
    // The title and all foreign text are escaped, so that the first of these tags are those of the shell.
    let (head, rest) = page.split_once("<style>\n")?;
    let (style, rest) = rest.split_once("\n</style>")?;
    let (_, title) = head.split_once("<title>")?;
    let (title, _) = title.split_once("</title>")?;
    let (_, body) = rest.split_once("<body>\n")?;
    let (body, _) = body.rsplit_once("</body>")?;
    let own = style.strip_prefix(base_style().as_str())?;
    Some(PageParts {
        title,
        style: own.trim(),
        body,
    })
}

/// Returns the CSS of every page: the palette, and the styles of all parts.
#[must_use]
pub fn base_style() -> String {
    format!("{}\n{STYLE}", palette::format_css())
}

/// Escapes text for element content and quoted attributes, and makes deceptive characters visible.
#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escape_line(text).chars() {
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

/// Escapes text for HTML, and converts text between backticks to `<code>`. The opening and the closing run of backticks
/// must have the same length.
fn mark_up_code(text: &str) -> String {
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
        out.push_str(&escape_and_mark(&rest[..at]));
        out.push_str("<code>");
        out.push_str(&escape_and_mark(&inside[..end]));
        out.push_str("</code>");
        rest = &inside[end + ticks..];
    }
    out + &escape_and_mark(rest)
}

fn escape_and_mark(text: &str) -> String {
    minijinja::HtmlEscape(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_title_is_text_and_the_shell_is_whole() {
        let page = render_page(
            "<b>\u{202e}",
            "",
            "<p>{{ said }}</p>",
            context! { said => "<i>" },
        );
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
        assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains('\u{202e}'));
        assert!(page.contains("name=\"viewport\"") && page.contains("prefers-color-scheme"));
    }

    #[test]
    fn a_page_is_split_into_what_it_was_made_of() {
        let values = context! { said => "</body><style>" };
        let page = render_page(
            "</title><body>\n",
            "p { color: red }",
            "<p>{{ said }}</p>",
            values,
        );
        let parts = split_page(&page).unwrap();
        assert_eq!(parts.style, "p { color: red }");
        assert_eq!(parts.body.trim(), "<p>&lt;&#x2f;body&gt;&lt;style&gt;</p>");
        assert!(parts.title.starts_with("&lt;"));
        assert_eq!(split_page("<html><body>\n</body></html>"), None);
    }
}
