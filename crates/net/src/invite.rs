//! An invitation: one URL with everything that a client needs to find and enter a server,
//! `https://HOST:PORT/#TOKEN.FINGERPRINT`. As a QR code, a camera can read it. Browsers never send the part after `#`.

use assay_http::Url;
use data_encoding::BASE64URL_NOPAD;
use std::fmt;

/// Length of a token in bytes.
pub const TOKEN: usize = 16;

/// Secret that the server requires from every client or controller.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub [u8; TOKEN]);

impl Token {
    /// Compares the token with a client's token in constant time, so that the duration reveals nothing about the token.
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

/// Hides the secret in debug output.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// An invitation to a server, for a client or a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Address of the server: scheme, host and port.
    pub url: Url,
    /// Token that the server requires.
    pub token: Token,
    /// SHA-256 of the server's certificate, which a client compares with the certificate in the TLS handshake.
    pub fingerprint: [u8; 32],
}

impl Invitation {
    /// Parses an invitation.
    ///
    /// # Errors
    /// The reason why the text is not an invitation, for users.
    pub fn read(text: &str) -> Result<Self, String> {
        let how =
            "it is the line that `assay net serve` prints: https://HOST:PORT/#TOKEN.FINGERPRINT";
        let (url, secret) = text
            .trim()
            .split_once('#')
            .ok_or_else(|| format!("the token after # is missing; {how}"))?;
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
