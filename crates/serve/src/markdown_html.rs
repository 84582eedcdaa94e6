//! Converts the text of advice pages to HTML. Raw HTML in a page is shown as text. Links lead to pages of this site or
//! to `https`.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Renders Markdown. Headings are at least one level deeper than in the source file.
pub(crate) fn render_markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES;
    let events = Parser::new_ext(text, options).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
            level: lower(level),
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        }),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lower(level))),
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            id,
            ..
        }) => Event::Start(Tag::Link {
            link_type,
            dest_url: choose_destination(&dest_url).into(),
            title: CowStr::Borrowed(""),
            id,
        }),
        // No page of the catalogue has pictures; one of the user's would be asked for elsewhere.
        Event::Start(Tag::Image { .. }) => Event::Text(CowStr::Borrowed("")),
        Event::End(TagEnd::Image) => Event::Text(CowStr::Borrowed("")),
        other => other,
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    out
}

fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 | HeadingLevel::H2 => HeadingLevel::H3,
        _ => HeadingLevel::H4,
    }
}

/// Returns the URL on this site for a hyperlink in the book. `../web/nginx-gzip.md` becomes the page of that advice.
/// Other chapters of the book are not part of this site.
fn choose_destination(url: &str) -> String {
    if url.starts_with("https://") || url.starts_with("http://") {
        return url.to_owned();
    }
    let stem = url
        .rsplit('/')
        .next()
        .and_then(|name| name.strip_suffix(".md"));
    match stem {
        Some(stem) => format!("/advice/{}", crate::query::encode_segment(stem)),
        None => "/advice".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_scripts_are_text() {
        let page = "# A\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) <b>b</b> ![p](https://e.org/p.png)\n\n\
                    [other](../web/gzip.md)";
        let html = render_markdown(page);
        assert!(
            !html.contains("<script") && !html.contains("javascript:") && !html.contains("<b>"),
            "{html}"
        );
        assert!(
            !html.contains("<img")
                && html.contains("href=\"/advice/gzip\"")
                && html.contains("<h3>"),
            "{html}"
        );
    }
}
