//! Checks a request before it reaches a page: method, origin, length, `Host` header and token. Also adds the security
//! headers to every answer.

use crate::answer::{Answer, Refusal};
use crate::query::QueryParameters;
use crate::site::Site;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::Next;
use std::net::IpAddr;
use std::sync::Arc;

/// Maximum length of a path with its query, in bytes.
const MOST_URL_BYTES: usize = 8 << 10;
/// Name of the cookie that replaces the token after the first visit.
const COOKIE: &str = "assay_session";

/// Security headers of every answer. With them, browsers load scripts and styles, and send requests, only from and to
/// this server.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Forms need their `Origin`, which `no-referrer` would hide.
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Checks a request, passes it on, and adds the security headers to the answer.
pub(crate) async fn guard(
    State(site): State<Arc<Site>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let refused = check(&site, &request).err();
    let mut response = match refused {
        Some(Refused::Answer(answer)) => answer.into_response(false),
        Some(Refused::Signed(response)) => *response,
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Answer to a request that does not reach a page function.
enum Refused {
    Answer(Box<Answer>),
    /// The token was correct. The answer is a redirection that sets the session cookie.
    Signed(Box<Response<Body>>),
}

fn check(site: &Site, request: &Request) -> Result<(), Refused> {
    let refuse = |status, title: &str, text: &str| {
        let refusal = Refusal::new(status, title, text);
        Err(Refused::Answer(Box::new(site.refusal_page(&refusal))))
    };
    let is_action =
        *request.method() == Method::POST && request.uri().path().starts_with("/actions/");
    if !is_action && !matches!(*request.method(), Method::GET | Method::HEAD) {
        return refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "Only GET",
            "This server only shows; it changes nothing.",
        );
    }
    if is_action && site.jobs.is_none() {
        return refuse(
            StatusCode::FORBIDDEN,
            "This server only shows",
            "It starts nothing. `assay serve --allow-actions` starts and stops measurements.",
        );
    }
    let url = request.uri();
    let length = url.path_and_query().map_or(0, |text| text.as_str().len());
    if length > MOST_URL_BYTES {
        return refuse(
            StatusCode::URI_TOO_LONG,
            "The address is too long",
            "It has more than 8192 bytes. Use shorter filters.",
        );
    }
    if !is_known_host(site, request.headers()) {
        return refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "Unknown host name",
            "The request names a host that is not this server. Open it by its address, or start `assay serve` with \
             --name NAME.",
        );
    }
    if is_action && !is_same_origin(request.headers()) {
        return refuse(
            StatusCode::FORBIDDEN,
            "From another page",
            "The request does not come from a page of this server, or the browser hides where it comes from.",
        );
    }
    let Some(token) = site.token_hash() else {
        return Ok(());
    };
    if has_session(request.headers(), &session_value(token)) {
        return Ok(());
    }
    let query = QueryParameters::parse(url.query().unwrap_or_default());
    let given = bearer(request.headers());
    if given.is_some_and(|given| blake3::hash(given.as_bytes()) == *token) {
        return Ok(());
    }
    // Browsers keep the token as a cookie; it does not stay in the address.
    if let Some(given) = query.get("token")
        && blake3::hash(given.as_bytes()) == *token
    {
        let rest = query.with("token", None);
        let location = match rest.is_empty() {
            true => url.path().to_owned(),
            false => format!("{}?{rest}", url.path()),
        };
        let mut response = Answer::redirect(location).into_response(false);
        let cookie = format!(
            "{COOKIE}={}; HttpOnly; SameSite=Lax; Path=/",
            session_value(token)
        );
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        return Err(Refused::Signed(Box::new(response)));
    }
    // The page for the token is the only one that others see, with its style.
    if url.path().starts_with("/assets/") {
        return Ok(());
    }
    Err(Refused::Answer(Box::new(
        site.token_page(query.get("token").is_some()),
    )))
}

/// Returns whether `Host` is an IP address, `localhost`, or a name that the user configured. Any other name is refused,
/// because an attacker's host name can resolve to this machine (DNS rebinding).
fn is_known_host(site: &Site, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let name = strip_port(host);
    let address = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok()
        || site
            .names()
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns whether a page of this server sent the form. `Origin` must be the host of the request, and `Sec-Fetch-Site`
/// (which newer browsers send) must be same-origin. Browsers send `Origin` with every POST, and a page cannot change
/// it.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let single = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    };
    let (Some(host), Some(origin)) = (single(&header::HOST), single(&header::ORIGIN)) else {
        return false;
    };
    let origin_host = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    let site = HeaderName::from_static("sec-fetch-site");
    let is_own_site = !headers.contains_key(&site) || single(&site) == Some("same-origin");
    is_own_site && origin_host.is_some_and(|name| name.eq_ignore_ascii_case(host))
}

/// Removes the default port, so that `name:80` becomes `name`. An IPv6 address keeps its brackets.
fn strip_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => {
            match name.starts_with('[') == name.ends_with(']') {
                true => name,
                false => host,
            }
        }
        _ => host,
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    given.strip_prefix("Bearer ").map(str::trim)
}

/// Returns the value of the session cookie. It proves that the visitor had the token, but does not contain the token.
fn session_value(token: &blake3::Hash) -> String {
    blake3::Hash::from(blake3::derive_key(
        "assay serve session 1",
        token.as_bytes(),
    ))
    .to_hex()
    .to_string()
}

fn has_session(headers: &HeaderMap, expected: &str) -> bool {
    let expected = blake3::hash(expected.as_bytes());
    let cookies = headers.get_all(header::COOKIE).iter();
    let texts = cookies.filter_map(|cookies| cookies.to_str().ok());
    texts
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .any(|(name, value)| name == COOKIE && blake3::hash(value.as_bytes()) == expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_stripped() {
        for (host, expected) in [
            ("localhost:7878", "localhost"),
            ("localhost", "localhost"),
            ("[::1]:7878", "[::1]"),
            ("[::1]", "[::1]"),
            ("127.0.0.1:80", "127.0.0.1"),
        ] {
            assert_eq!(strip_port(host), expected);
        }
    }
}
