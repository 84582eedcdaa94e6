//! Parses the cookies that a page sets, without their values, and checks their attributes (RFC 6265).

use super::Response;
use crate::remark::Remark;
use crate::remark::Severity::{Note, Weak};
use serde::Serialize;

/// A cookie and its attributes, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Cookie {
    /// Name of the cookie.
    pub name: String,
    /// Whether the cookie has the attribute `Secure`: browsers then send it only over TLS.
    pub secure: bool,
    /// Whether the cookie has the attribute `HttpOnly`: scripts then cannot read it.
    pub http_only: bool,
    /// Attribute `SameSite`, which sets whether browsers send the cookie with requests from other sites; `None` if the
    /// attribute is absent.
    pub same_site: Option<SameSite>,
    /// Whether the attributes meet the requirements of the name's prefix (`__Host-`, `__Secure-`). True for a name
    /// without a prefix.
    #[serde(skip)]
    #[schemars(skip)]
    keeps_prefix: bool,
}

/// Values of the attribute `SameSite` (RFC 6265bis section 4.1.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SameSite {
    /// Browsers do not send the cookie with any request from another site.
    Strict,
    /// Browsers send the cookie from another site only when the user follows a link.
    Lax,
    /// Browsers send the cookie with every request from other sites.
    None,
}

/// Maximum number of cookies of a page that are checked. For comparison: browsers keep 180 cookies per site.
const MOST: usize = 180;

impl Cookie {
    /// Returns the cookies of a response.
    pub(super) fn all(page: &Response) -> Vec<Self> {
        let headers = page.headers.iter().filter(|(name, _)| name == "set-cookie");
        let cookies = headers.filter_map(|(_, value)| Self::parse(value));
        cookies.take(MOST).collect()
    }

    /// Parses `NAME=VALUE; ATTRIBUTE; …` (RFC 6265 section 5.2). Returns `None` if the name is missing or the
    /// header deletes the cookie.
    fn parse(header: &str) -> Option<Self> {
        let mut parts = header.split(';');
        let (name, _) = parts.next()?.split_once('=')?;
        let name = name.trim();
        let mut cookie = Self {
            name: name.to_owned(),
            secure: false,
            http_only: false,
            same_site: None,
            keeps_prefix: true,
        };
        let (mut root, mut domain) = (false, false);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
                "secure" => cookie.secure = true,
                "httponly" => cookie.http_only = true,
                "path" => root = value == "/",
                "domain" => domain = !value.is_empty(),
                "max-age" if value.starts_with(['0', '-']) => return None,
                "samesite" => {
                    cookie.same_site = match value.to_ascii_lowercase().as_str() {
                        "strict" => Some(SameSite::Strict),
                        "lax" => Some(SameSite::Lax),
                        "none" => Some(SameSite::None),
                        _ => None,
                    };
                }
                _ => {}
            }
        }
        // Browsers compare prefixes without regard to case (RFC 6265bis section 5.7).
        let prefix = |text: &str| {
            let own = name.get(..text.len());
            own.is_some_and(|own| own.eq_ignore_ascii_case(text))
        };
        if prefix("__host-") {
            cookie.keeps_prefix = cookie.secure && root && !domain;
        } else if prefix("__secure-") {
            cookie.keeps_prefix = cookie.secure;
        }
        (!name.is_empty()).then_some(cookie)
    }
}

/// Formats the names of the first cookies and the number of further cookies; `None` if there are no cookies.
fn named<'a>(cookies: impl Iterator<Item = &'a Cookie>) -> Option<String> {
    let names: Vec<&str> = cookies.map(|cookie| cookie.name.as_str()).collect();
    let some: Vec<String> = names
        .iter()
        .take(4)
        .map(|name| format!("`{}`", name.chars().take(40).collect::<String>()))
        .collect();
    match names.len() {
        0 => None,
        count if count > some.len() => Some(format!(
            "{} and {} more",
            some.join(", "),
            count - some.len()
        )),
        _ => Some(some.join(", ")),
    }
}

pub(super) fn judge(cookies: &[Cookie], https: bool, out: &mut Vec<Remark>) {
    const SOURCE: &str = "RFC 6265 sections 4.1.2 and 8.3; OWASP, Session Management Cheat Sheet";
    let of = |wanted: &dyn Fn(&Cookie) -> bool| named(cookies.iter().filter(|one| wanted(one)));
    if https && let Some(names) = of(&|cookie| !cookie.secure) {
        out.push(Remark::new(
            "http-cookie-secure",
            Weak,
            format!("{names}: set without Secure, so browsers send it over plain HTTP as well, where others read it"),
            SOURCE,
            "add `; Secure` to Set-Cookie",
        ));
    }
    // Browsers ignore the attribute Secure over plain HTTP, and drop the cookie.
    if !https && let Some(names) = of(&|_| true) {
        out.push(Remark::new(
            "http-cookie-plain",
            Weak,
            format!(
                "{names}: set over plain HTTP, where everybody on the way reads and changes it"
            ),
            SOURCE,
            match cookies.iter().all(|cookie| cookie.secure) {
                true => "serve the page over https alone",
                false => "serve the page over https alone, and add `; Secure` to Set-Cookie",
            },
        ));
    }
    if let Some(names) = of(&|cookie| !cookie.http_only) {
        out.push(Remark::new(
            "http-cookie-httponly",
            Note,
            format!("{names}: set without HttpOnly, so a script that gets into the page reads it"),
            SOURCE,
            "add `; HttpOnly` to Set-Cookie, unless scripts of the page need it (CSRF tokens do)",
        ));
    }
    if let Some(names) = of(&|cookie| cookie.same_site.is_none()) {
        out.push(Remark::new(
            "http-cookie-samesite",
            Note,
            format!("{names}: set without SameSite: Firefox and Safari send it with requests that other sites make"),
            "RFC 6265bis section 4.1.2.7; MDN on Set-Cookie",
            "add `; SameSite=Lax` to Set-Cookie",
        ));
    }
    let refused = |cookie: &Cookie| cookie.same_site == Some(SameSite::None) && !cookie.secure;
    if https && let Some(names) = of(&refused) {
        out.push(Remark::new(
            "http-cookie-refused",
            Weak,
            format!("{names}: SameSite=None without Secure, which browsers refuse: the cookie is never stored"),
            "RFC 6265bis section 5.7",
            "add `; Secure` to Set-Cookie",
        ));
    }
    // Over plain HTTP, browsers refuse every cookie with a prefix.
    let broken = |cookie: &Cookie| !cookie.keeps_prefix;
    if let Some(names) = of(&broken) {
        out.push(Remark::new(
            "http-cookie-prefix",
            Weak,
            format!(
                "{names}: the attributes contradict the prefix of the name, so browsers refuse the cookie and never \
                 store it"
            ),
            "RFC 6265bis sections 4.1.3 and 5.7",
            "`__Host-` needs `; Secure; Path=/` and no Domain, `__Secure-` needs `; Secure`",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_cookies() {
        let read = |header: &str| Cookie::parse(header).unwrap();
        let good = read("__Host-id=s3cret; Path=/; SECURE; HttpOnly; samesite=strict");
        assert_eq!(
            (&*good.name, good.secure, good.http_only, good.same_site),
            ("__Host-id", true, true, Some(SameSite::Strict))
        );
        for (header, kept) in [
            ("__Host-id=1; Secure; Path=/", true),
            ("__Host-id=1; Secure; Path=/; Domain=", true),
            ("__Host-id=1; Secure; Path=/; Domain=example.org", false),
            ("__Host-id=1; Secure; Path=/app", false),
            ("__host-id=1; Path=/", false),
            ("__Secure-id=1; Secure; Path=/app; Domain=example.org", true),
            ("__Secure-id=1; HttpOnly", false),
            ("__Hosting=1", true),
            ("ä=1", true),
        ] {
            assert_eq!(read(header).keeps_prefix, kept, "{header}");
        }
        // A value that looks like an attribute, and an unknown attribute.
        let bare = read("secure=httponly; SameSite=sometimes; Partitioned");
        assert!(!bare.secure && !bare.http_only && bare.same_site.is_none());
        assert_eq!(Cookie::parse("no value"), None);
        assert_eq!(Cookie::parse("=x"), None);
        assert_eq!(Cookie::parse("old=; Max-Age=0"), None);
    }

    #[test]
    fn values_are_secret() {
        let page = Response {
            status: 200,
            headers: vec![("set-cookie".to_owned(), "id=s3cret; Secure".to_owned())],
            body: Vec::new(),
        };
        let cookies = Cookie::all(&page);
        let mut out = Vec::new();
        judge(&cookies, true, &mut out);
        let ids: Vec<&str> = out.iter().map(|one| one.id).collect();
        assert_eq!(ids, ["http-cookie-httponly", "http-cookie-samesite"]);
        assert!(!format!("{cookies:?}{out:?}").contains("s3cret"));
        // A remedy does not ask for what is set already.
        out.clear();
        judge(&cookies, false, &mut out);
        assert_eq!(out[0].id, "http-cookie-plain");
        assert!(!out[0].remedy.contains("Secure"), "{out:?}");
    }
}
