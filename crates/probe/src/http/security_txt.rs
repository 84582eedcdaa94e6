//! Parses `/.well-known/security.txt` (RFC 9116).

use super::Response;
use jiff::Timestamp;
use serde::Serialize;

/// Fields of a security.txt file that the check uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SecurityTxt {
    /// Addresses for reports of vulnerabilities.
    pub contacts: Vec<String>,
    /// Date after which the file is out of date; `None` if the field is missing or is not a date.
    pub expires: Option<Timestamp>,
}

impl SecurityTxt {
    /// Parses a response; returns `None` if the response is not a security.txt. The content must be checked, because
    /// many servers answer every path with their front page.
    pub(super) fn of(answer: &Response) -> Option<Self> {
        let kind = answer.header("content-type").unwrap_or("text/plain");
        if answer.status != 200 || !kind.to_ascii_lowercase().starts_with("text/plain") {
            return None;
        }
        Some(Self::read(&String::from_utf8_lossy(&answer.body)))
    }

    /// Parses the text of a security.txt. Skips lines that are not fields, such as the lines of a signature.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut read = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
                "contact" => read.contacts.push(value.to_owned()),
                "expires" => read.expires = value.parse().ok(),
                _ => {}
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_and_all_else_does_not() {
        let text = "# Contact: not this\r\nContact: mailto:security@example.org\r\n\
                    -----BEGIN PGP SIGNATURE-----\r\nEXPIRES: 2027-01-01T00:00:00.000Z\r\n";
        let read = SecurityTxt::read(text);
        assert_eq!(read.contacts, ["mailto:security@example.org"]);
        assert_eq!(read.expires, Some("2027-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!(SecurityTxt::read("Expires: soon").expires, None);
    }
}
