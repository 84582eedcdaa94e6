//! Judges HTTP headers. Each remark contains its primary source.

use super::{Links, Report, Response, cookies};
use crate::remark::Severity::{Danger, Note, Weak};
use crate::remark::{Remark, ranked};
use jiff::Timestamp;

/// Names of the headers that are judged.
pub(super) const JUDGED: [&str; 10] = [
    "strict-transport-security",
    "content-security-policy",
    "content-security-policy-report-only",
    "public-key-pins",
    "public-key-pins-report-only",
    "expect-ct",
    "server",
    "x-powered-by",
    "x-aspnet-version",
    "location",
];

/// Minimum `max-age` of HSTS, in seconds: 180 days. This value protects a visitor who returns at least twice a year.
/// (The preload list of browsers requires a year.)
const HALF_A_YEAR: u64 = 180 * 24 * 3600;

pub(super) fn judge(report: &Report, page: &Response, now: Timestamp) -> Vec<Remark> {
    let mut out = Vec::new();
    pins(page, &mut out);
    if report.https {
        hsts(page, &mut out);
    } else if !redirects(page) {
        out.push(Remark::new(
            "http-plain",
            Weak,
            format!(
                "pages come without TLS (status {}), and nothing leads to https",
                page.status
            ),
            "RFC 9325 section 3.2; RFC 6797 section 7.2",
            "redirect every path to https with status 301",
        ));
    }
    if page.header("expect-ct").is_some() {
        out.push(Remark::new(
            "http-expect-ct",
            Note,
            "Expect-CT is sent, which no browser reads any more",
            "RFC 9163; Mozilla, MDN on Expect-CT (gone since Chrome 107)",
            "remove the header",
        ));
    }
    for name in ["server", "x-powered-by", "x-aspnet-version"] {
        if let Some(value) = page.header(name).filter(|value| has_version(value)) {
            out.push(Remark::new(
                "http-version",
                Note,
                format!("{name} tells a version, `{}`", shortened(value)),
                "RFC 9110 section 10.2.4",
                "nginx: server_tokens off; Apache: ServerTokens Prod; PHP: expose_php = Off. It hides \
                 nothing from who tries, and updates protect more",
            ));
        }
    }
    policy(page, &mut out);
    cookies::judge(&report.cookies, report.https, &mut out);
    security_txt(report, now, &mut out);
    links(report, &mut out);
    ranked(out)
}

/// Checks whether a page that runs scripts has a Content-Security-Policy that restricts them.
fn policy(page: &Response, out: &mut Vec<Remark>) {
    const SOURCE: &str = "W3C, Content Security Policy Level 3";
    let kind = page.header("content-type").unwrap_or_default();
    let is_page = kind
        .trim_start()
        .to_ascii_lowercase()
        .starts_with("text/html");
    if !(200..300).contains(&page.status) || !is_page {
        return;
    }
    let mut policies = page
        .headers
        .iter()
        .filter(|(name, _)| name == "content-security-policy")
        .map(|(_, value)| value.as_str())
        .peekable();
    if policies.peek().is_none() {
        let only = match page.header("content-security-policy-report-only") {
            Some(_) => "Content-Security-Policy is only reported on, not enforced",
            None => "no Content-Security-Policy",
        };
        out.push(Remark::new(
            "http-no-csp",
            Note,
            format!("{only}: a script that gets into the page runs with all its rights"),
            SOURCE,
            "send `Content-Security-Policy: default-src 'self'; object-src 'none'; base-uri 'self'`, first as \
             Content-Security-Policy-Report-Only",
        ));
    } else if policies.all(allows_any_script) {
        out.push(Remark::new(
            "http-weak-csp",
            Note,
            "Content-Security-Policy lets scripts in the page itself run ('unsafe-inline', or from anywhere), which is \
             what it should keep out",
            SOURCE,
            "allow scripts by 'nonce-…' or 'sha256-…' in script-src",
        ));
    }
}

/// Returns whether a policy lets injected scripts run. It does if no directive limits scripts, or if `'unsafe-inline'`
/// is allowed without a nonce or hash. Browsers ignore `'unsafe-inline'` if the directive also contains a nonce or
/// hash.
fn allows_any_script(policy: &str) -> bool {
    let directive = |name: &str| {
        policy.split(';').find_map(|directive| {
            let mut words = directive.split_whitespace();
            let own = words.next()?.eq_ignore_ascii_case(name);
            own.then(|| words.map(str::to_ascii_lowercase).collect::<Vec<_>>())
        })
    };
    let Some(sources) = directive("script-src").or_else(|| directive("default-src")) else {
        return true;
    };
    let starts = |prefix: &str| sources.iter().any(|source| source.starts_with(prefix));
    let named = starts("'nonce-") || starts("'sha256-") || starts("'sha384-") || starts("'sha512-");
    let inline = starts("'unsafe-inline'") && !named && !starts("'strict-dynamic'");
    let anywhere = ["*", "https:", "http:", "data:"];
    let anywhere = sources.iter().any(|source| anywhere.contains(&&**source));
    inline || (anywhere && !starts("'strict-dynamic'"))
}

fn pins(page: &Response, out: &mut Vec<Remark>) {
    let sent = ["public-key-pins", "public-key-pins-report-only"];
    if let Some((name, value)) = sent.iter().find_map(|name| Some((*name, page.header(name)?)))
        // Servers remove pins with max-age=0.
        && max_age(value) != Some(0)
    {
        out.push(Remark::new(
            "http-hpkp",
            Danger,
            format!(
                "{name} is sent: browsers stopped to obey it in 2019 and 2020, so it protects nobody, and \
                 locks out whatever still does when keys change"
            ),
            "RFC 7469; Mozilla, Intent to unship HPKP (2019), on Chrome 72 and Firefox 72",
            "send `Public-Key-Pins: max-age=0` for as long as the old max-age, then nothing",
        ));
    }
}

fn hsts(page: &Response, out: &mut Vec<Remark>) {
    const SOURCE: &str = "RFC 6797; RFC 9325 section 3.2";
    match page.header("strict-transport-security").map(max_age) {
        None => out.push(Remark::new(
            "http-no-hsts",
            Note,
            "no Strict-Transport-Security: the first request of each visit can be led to plain HTTP",
            SOURCE,
            "send `Strict-Transport-Security: max-age=31536000` once every page works with https",
        )),
        Some(None) => out.push(Remark::new(
            "http-broken-hsts",
            Weak,
            "Strict-Transport-Security has no max-age that can be read, so browsers ignore it",
            SOURCE,
            "send `Strict-Transport-Security: max-age=31536000`",
        )),
        Some(Some(seconds)) if seconds < HALF_A_YEAR => out.push(Remark::new(
            "http-short-hsts",
            Note,
            format!("Strict-Transport-Security is forgotten after {} days", seconds / 86400),
            SOURCE,
            "raise max-age to a year",
        )),
        Some(Some(_)) => {}
    }
}

/// Parses the value of the directive `max-age`, which may be quoted.
fn max_age(value: &str) -> Option<u64> {
    value.split(';').find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        let is_it = name.trim().eq_ignore_ascii_case("max-age");
        is_it.then(|| value.trim().trim_matches('"').parse().ok())?
    })
}

fn redirects(page: &Response) -> bool {
    let to = page.header("location").unwrap_or_default();
    (300..400).contains(&page.status) && to.to_ascii_lowercase().starts_with("https://")
}

fn has_version(value: &str) -> bool {
    let digit_after = |mark| {
        let mut rest = value.split(mark).skip(1);
        rest.any(|part: &str| part.starts_with(|c: char| c.is_ascii_digit()))
    };
    digit_after('/') || digit_after(' ')
}

fn shortened(value: &str) -> String {
    value.chars().take(60).collect()
}

fn security_txt(report: &Report, now: Timestamp, out: &mut Vec<Remark>) {
    const SOURCE: &str = "RFC 9116 sections 2.5.3 and 2.5.5";
    let Some(file) = &report.security_txt else {
        return;
    };
    let says = match (file.contacts.is_empty(), file.expires) {
        (true, _) => "security.txt names no contact".to_owned(),
        (_, None) => "security.txt does not say until when it counts (Expires)".to_owned(),
        (_, Some(end)) if end < now => {
            format!(
                "security.txt counts no more since {}",
                end.strftime("%Y-%m-%d")
            )
        }
        _ => return,
    };
    out.push(Remark::new(
        "http-security-txt",
        Weak,
        says,
        SOURCE,
        "write Contact and Expires into it, and renew it once a year",
    ));
}

fn links(report: &Report, out: &mut Vec<Remark>) {
    match &report.links {
        Some(Links::Enumerable) => out.push(Remark::new(
            "http-enumerable",
            Danger,
            "the object is given without a login, and so is the next number: anybody can fetch them all",
            "CWE-639",
            "ask for a login and whether the object is the user's; 128 random bits in the link are the \
             least",
        )),
        Some(Links::Open { .. }) => out.push(Remark::new(
            "http-open-link",
            Weak,
            "anybody who has the link can fetch the object without a login",
            "CWE-639",
            "ask for a login, unless the link is meant for everybody",
        )),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives() {
        assert_eq!(
            max_age("max-age=31536000; includeSubDomains"),
            Some(31_536_000)
        );
        assert_eq!(max_age("includeSubDomains; Max-Age=\"60\""), Some(60));
        assert_eq!(max_age("pin-sha256=\"a=\"; max-age=5"), Some(5));
        assert_eq!(max_age("max-age=soon"), None);
    }

    #[test]
    fn policies_that_let_injected_scripts_run() {
        for weak in [
            "img-src 'self'",
            "default-src 'self' 'unsafe-inline'",
            "Default-Src *",
            "default-src 'none'; script-src 'self' https:",
        ] {
            assert!(allows_any_script(weak), "{weak}");
        }
        for good in [
            "default-src 'self'",
            "script-src 'nonce-abc' 'unsafe-inline'",
            "script-src 'strict-dynamic' 'sha256-abc' https: 'unsafe-inline'",
            "default-src *; script-src 'none'",
        ] {
            assert!(!allows_any_script(good), "{good}");
        }
    }

    #[test]
    fn versions_are_numbers() {
        assert!(has_version("nginx/1.22.1"));
        assert!(has_version("PHP 8.2"));
        assert!(!has_version("nginx"));
        assert!(!has_version("Apache/unknown"));
    }
}
