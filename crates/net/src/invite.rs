//! What a client needs to find a server and to be let in, as one address that also a camera can read:
//! `https://HOST:PORT/#TOKEN.FINGERPRINT`. Browsers never send what stands behind `#`.

use assay_http::Url;
use data_encoding::BASE64URL_NOPAD;
use std::fmt;

/// Bytes of a token.
pub const TOKEN: usize = 16;

/// The server lets in everybody who shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub [u8; TOKEN]);

impl Token {
    /// From what a client sent. Compared in constant time.
    #[must_use]
    pub fn is(&self, shown: &str) -> bool {
        let Ok(shown) = BASE64URL_NOPAD.decode(shown.as_bytes()) else {
            return false;
        };
        let pairs = self.0.iter().zip(&shown);
        shown.len() == TOKEN && pairs.fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64URL_NOPAD.encode(&self.0))
    }
}

/// A secret is not for logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// An address with everything that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Scheme, host and port.
    pub url: Url,
    /// What lets in.
    pub token: Token,
    /// SHA-256 of the server's certificate.
    pub fingerprint: [u8; 32],
}

impl Invitation {
    /// Reads one.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub fn read(text: &str) -> Result<Self, String> {
        let how =
            "it is the line that `assay net serve` prints: https://HOST:PORT/#TOKEN.FINGERPRINT";
        let (url, secret) = text
            .trim()
            .split_once('#')
            .ok_or_else(|| format!("nothing stands behind #; {how}"))?;
        let url = Url::parse(url).map_err(|why| format!("{why}; {how}"))?;
        if !url.is_tls() {
            return Err(format!("it does not begin with https://; {how}"));
        }
        let (token, fingerprint) = secret
            .split_once('.')
            .ok_or_else(|| format!("there is no fingerprint behind the token; {how}"))?;
        let bytes = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).ok();
        let token = bytes(token).and_then(|bytes| bytes.try_into().ok());
        let fingerprint = bytes(fingerprint).and_then(|bytes| bytes.try_into().ok());
        match (token, fingerprint) {
            (Some(token), Some(fingerprint)) => Ok(Self {
                url,
                token: Token(token),
                fingerprint,
            }),
            (None, _) => Err(format!("the token is not whole; {how}")),
            (_, None) => Err(format!("the fingerprint is not whole; {how}")),
        }
    }
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fingerprint = BASE64URL_NOPAD.encode(&self.fingerprint);
        write!(f, "{}#{}.{fingerprint}", self.url, self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_is_read_as_it_is_written() {
        let invitation = Invitation {
            url: Url::parse("https://[::1]:7443/").unwrap(),
            token: Token([7; TOKEN]),
            fingerprint: [200; 32],
        };
        let text = invitation.to_string();
        assert_eq!(Invitation::read(&text).unwrap(), invitation);
        assert!(invitation.token.is(&invitation.token.to_string()));
        assert!(!format!("{invitation:?}").contains(&invitation.token.to_string()));
        for cut in 0..text.len() {
            let read = Invitation::read(&text[..cut]);
            assert!(read.is_err(), "{cut}");
        }
    }

    #[test]
    fn no_other_token_is_taken() {
        let token = Token([1; TOKEN]);
        for shown in ["", "AA", "AQEBAQEBAQEBAQEBAQEBAQ==", "ä", &"A".repeat(1000)] {
            assert!(!token.is(shown), "{shown}");
        }
        assert!(!token.is(&Token([2; TOKEN]).to_string()));
    }
}
