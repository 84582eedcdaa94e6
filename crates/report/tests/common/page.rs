//! Checks that every page is well-formed and self-contained, and that its charts have titles and descriptions.

const EMPTY: [&str; 2] = ["meta", "br"];

/// Checks that every element is closed in order, that attributes are quoted and ids unique, and that links lead to a
/// place on the page.
pub fn check(page: &str) {
    let mut open: Vec<String> = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    let mut wanted: Vec<String> = Vec::new();
    let mut rest = page
        .strip_prefix("<!DOCTYPE html>")
        .expect("a doctype first");
    while let Some(at) = rest.find('<') {
        assert!(
            !rest[..at].contains('>') || open.last().is_some_and(|tag| tag == "style"),
            "stray > in {:?}",
            &rest[..at]
        );
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closing tag");
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap().to_owned();
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric()) && !name.is_empty(),
            "tag {tag:?}"
        );
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in {tag:?}");
        for attribute in tag.split(" id=\"").skip(1) {
            let id = attribute.split('"').next().unwrap().to_owned();
            assert!(ids.insert(id.clone()), "id {id} twice");
        }
        for part in tag
            .split("href=\"#")
            .skip(1)
            .chain(tag.split("aria-labelledby=\"").skip(1))
        {
            wanted.extend(
                part.split('"')
                    .next()
                    .unwrap()
                    .split(' ')
                    .map(str::to_owned),
            );
        }
        if name == "style" {
            let close = rest.find("</style>").expect("a style ends");
            rest = &rest[close..];
        }
        if !EMPTY.contains(&name.as_str()) && !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<String>::new());
    for id in wanted {
        assert!(ids.contains(&id), "nothing has the id {id}");
    }
    for banned in [
        "=\"http",
        "url(",
        "@import",
        "<script",
        "<link",
        " src=",
        "javascript:",
        "NaN",
        "Infinity",
    ] {
        let at = page.find(banned);
        assert_eq!(
            at,
            None,
            "{banned}: {:?}",
            at.map(|at| page[at.saturating_sub(200)..]
                .chars()
                .take(260)
                .collect::<String>())
        );
    }
    let charts = page.matches(" role=\"img\"").count();
    assert_eq!(
        page.matches("<title id=").count(),
        charts,
        "every chart has a title"
    );
    assert_eq!(
        page.matches("<desc id=").count(),
        charts,
        "every chart has a description"
    );
    assert_eq!(
        page.matches("<figure>").count(),
        page.matches("<summary>Table</summary>").count()
    );
}

/// Returns the section of a page with this id.
pub fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("<section id=\"{id}\">"))
        .expect("a section");
    rest.split("</section>").next().unwrap_or_default()
}

/// Returns the content of each element whose tag begins with `tag`, such as `p` or `p class="note"`.
pub fn texts<'a>(page: &'a str, tag: &str) -> Vec<&'a str> {
    let name = tag.split(' ').next().unwrap_or_default();
    let (open, close) = (format!("<{tag}"), format!("</{name}>"));
    let parts = page.split(&open).skip(1);
    let own = parts.filter(|part| part.starts_with(['>', ' ']));
    let bodies = own.filter_map(|part| part.split_once('>'));
    bodies
        .map(|(_, body)| body.split(&close).next().unwrap_or_default())
        .collect()
}
