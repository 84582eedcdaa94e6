//! Checks whether everybody can fetch objects (invoices, pictures, reports) without a login, by incrementing a number
//! in the URL (CWE-639).
//!
//! The check runs only if the service has a consent file. It starts with the path of one of the user's own objects. For
//! the object with the next number, only the status is read.

use super::Response;
use crate::error::ProbeError;
use serde::Serialize;

/// Path of the file with which the operator of a service permits the check.
pub const CONSENT: &str = "/.well-known/assay-consent";

/// Result of the link check, if it was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Links {
    /// The service has no valid consent file, so no object was requested.
    NoConsent {
        /// Description of the response to the request for the consent file.
        why: String,
    },
    /// The user's object cannot be fetched without a login, because the status is not 200.
    Guarded {
        /// HTTP status of the request for the object.
        status: u16,
    },
    /// Everybody who knows the link can fetch the object. The object with the next number cannot be fetched.
    Open {
        /// HTTP status of the request with the next number.
        next: u16,
    },
    /// Everybody can fetch the object, and also the object with the next number.
    Enumerable,
}

/// Requests the user's object and the object with the next number. `get` fetches a path, and reads at most the given
/// number of body bytes.
pub(super) fn ask(
    path: &str,
    get: impl Fn(&str, usize) -> Result<Response, ProbeError>,
) -> Result<Links, ProbeError> {
    let wrong = |what: &str| ProbeError::foreign("a path of an object", what);
    let clean = |byte: u8| byte.is_ascii_graphic();
    if !path.starts_with('/') || !path.bytes().all(clean) {
        return Err(wrong("it begins with `/` and has no spaces"));
    }
    let next = next(path).ok_or_else(|| wrong("there is no number in it to count up"))?;
    let consent = get(CONSENT, 4096)?;
    if consent.status != 200 || !consent.body.starts_with(b"assay") {
        return Ok(Links::NoConsent {
            why: format!(
                "the service does not consent: {CONSENT} answers {}, not a text that begins with `assay`",
                consent.status
            ),
        });
    }
    let own = get(path, 0)?;
    if own.status != 200 {
        return Ok(Links::Guarded { status: own.status });
    }
    Ok(match get(&next, 0)?.status {
        200 => Links::Enumerable,
        status => Links::Open { next: status },
    })
}

/// Increments the last number in a path; `None` if the path contains no number.
fn next(path: &str) -> Option<String> {
    let end = path.rfind(|c: char| c.is_ascii_digit())? + 1;
    let before = path[..end].trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &path[before.len()..end];
    let number: u64 = digits.parse().ok()?;
    let width = digits.len();
    Some(format!(
        "{before}{:0width$}{}",
        number.checked_add(1)?,
        &path[end..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn the_last_number_is_counted_up() {
        let up = |path: &str| next(path);
        assert_eq!(up("/invoice/41"), Some("/invoice/42".to_owned()));
        assert_eq!(up("/v2/0099.pdf"), Some("/v2/0100.pdf".to_owned()));
        assert_eq!(up("/about"), None);
        assert_eq!(up("/18446744073709551615"), None);
    }

    #[test]
    fn nothing_is_asked_for_without_consent() {
        let asked = RefCell::new(Vec::new());
        let get = |path: &str, _| {
            asked.borrow_mut().push(path.to_owned());
            Ok(Response {
                status: 200,
                headers: Vec::new(),
                body: b"<html>".to_vec(),
            })
        };
        assert!(matches!(ask("/a/1", get), Ok(Links::NoConsent { .. })));
        assert_eq!(*asked.borrow(), [CONSENT]);
        assert!(ask("/a/1 HTTP/1.1\r\nX: y", get).is_err());
        assert_eq!(asked.borrow().len(), 1);
    }

    #[test]
    fn the_status_decides() {
        let service = |own: u16, next: u16| {
            ask("/a/1", |path, _| {
                Ok(Response {
                    status: match path {
                        "/a/1" => own,
                        "/a/2" => next,
                        _ => 200,
                    },
                    headers: Vec::new(),
                    body: b"assay may test this service\n".to_vec(),
                })
            })
            .unwrap()
        };
        assert_eq!(service(403, 200), Links::Guarded { status: 403 });
        assert_eq!(service(200, 404), Links::Open { next: 404 });
        assert_eq!(service(200, 200), Links::Enumerable);
    }
}
