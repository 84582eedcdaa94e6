//! The bytes of a bundle: its JSON as people read it before they agree, and a last line that signs it.

use crate::bundle::{Bundle, FORMAT};
use crate::check::{self, BundleFault};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// Most bytes of a bundle.
pub const LONGEST: usize = 8 << 20;

const LABEL: &str = "signed-with-ed25519 ";

/// The key of an owner.
pub struct OwnerKey {
    pair: Ed25519KeyPair,
    seed: [u8; 32],
}

impl OwnerKey {
    /// The key of 32 random bytes.
    ///
    /// # Errors
    /// The library does not take them.
    pub fn of(seed: [u8; 32]) -> Result<Self, BundleError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| BundleError::Key)?;
        Ok(Self { pair, seed })
    }

    /// The public key in hexadecimal digits: the name of the owner.
    #[must_use]
    pub fn owner(&self) -> String {
        encode_hex(self.pair.public_key().as_ref())
    }

    /// A name that only this key leads to: nobody else can tell what it was made of.
    #[must_use]
    pub fn name(&self, of: &str, text: &str) -> String {
        let key = blake3::derive_key("assay pool, names of machines and trials, 1", &self.seed);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher
            .update(of.as_bytes())
            .update(&[0])
            .update(text.as_bytes());
        encode_hex(&hasher.finalize().as_bytes()[..16])
    }

    /// The bytes of a bundle of this owner.
    ///
    /// # Errors
    /// What would not be taken by [`read`] is not written.
    pub fn write(&self, bundle: &Bundle) -> Result<Vec<u8>, BundleError> {
        let body = format!("{:#}\n", serde_json::to_value(bundle)?);
        check::parse_body(body.as_bytes())?;
        let signature = encode_hex(self.pair.sign(&signed_message(body.as_bytes())).as_ref());
        let bytes = format!("{body}{LABEL}{} {signature}\n", self.owner()).into_bytes();
        read(&bytes)?;
        Ok(bytes)
    }
}

/// Why bytes are no bundle that can be taken.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Too long.
    #[error("it is longer than {} MiB: no bundle of a pool is", LONGEST >> 20)]
    Long,
    /// Not a bundle, or cut off.
    #[error(
        "its last line is not `{LABEL}OWNER SIGNATURE`: it is no bundle of `assay pool export`, or it was cut off"
    )]
    Unsigned,
    /// Changed after it was signed.
    #[error(
        "the signature does not fit: it was changed after it was signed, so ask its owner for it again"
    )]
    Signature,
    /// Signed by somebody else.
    #[error("it is signed by {signer} and speaks for {owner}: only an owner speaks for themselves")]
    Foreign {
        /// Who signed.
        signer: String,
        /// Who is named in it.
        owner: String,
    },
    /// The seed of a key was not taken.
    #[error("the key cannot be used")]
    Key,
    /// Not JSON of this form.
    #[error("{0}; a newer assay may have written it")]
    Form(#[from] serde_json::Error),
    /// A figure or name out of bounds.
    #[error(transparent)]
    Fault(#[from] BundleFault),
}

/// Reads a bundle: its signature first, then its form, then whether its figures can be true.
///
/// # Errors
/// The first of these that does not hold.
pub fn read(bytes: &[u8]) -> Result<Bundle, BundleError> {
    if bytes.len() > LONGEST {
        return Err(BundleError::Long);
    }
    let (body, signer, signature) = split_parts(bytes).ok_or(BundleError::Unsigned)?;
    let (key, signature) = (
        bytes_of(signer).ok_or(BundleError::Unsigned)?,
        bytes_of(signature).ok_or(BundleError::Unsigned)?,
    );
    UnparsedPublicKey::new(&ED25519, key)
        .verify(&signed_message(body), &signature)
        .map_err(|_| BundleError::Signature)?;
    let bundle = check::parse_body(body)?;
    match bundle.owner == signer {
        true => Ok(bundle),
        false => Err(BundleError::Foreign {
            signer: signer.to_owned(),
            owner: bundle.owner,
        }),
    }
}

/// Body, signer, signature.
fn split_parts(bytes: &[u8]) -> Option<(&[u8], &str, &str)> {
    let line_end = bytes.strip_suffix(b"\n")?;
    let body_end = line_end.iter().rposition(|byte| *byte == b'\n')? + 1;
    let line = std::str::from_utf8(line_end.get(body_end..)?).ok()?;
    let (signer, signature) = line.strip_prefix(LABEL)?.split_once(' ')?;
    Some((&bytes[..body_end], signer, signature))
}

/// What is signed says what it is, so that no signature of this key means something else elsewhere.
fn signed_message(body: &[u8]) -> Vec<u8> {
    [FORMAT.as_bytes(), &[0], body].concat()
}

pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let plain = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    if !digits.bytes().all(plain) || !digits.len().is_multiple_of(2) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}
