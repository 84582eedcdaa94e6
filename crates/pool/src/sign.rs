//! Encodes a bundle as JSON, which a user can read before sharing it. The last line is the signature.

use crate::bundle::{Bundle, FORMAT};
use crate::check::{self, BundleFault};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// Maximum size of a bundle in bytes.
pub const LONGEST: usize = 8 << 20;

const LABEL: &str = "signed-with-ed25519 ";

/// Secret key with which an owner signs bundles.
pub struct OwnerKey {
    pair: Ed25519KeyPair,
    seed: [u8; 32],
}

impl OwnerKey {
    /// Creates a key from 32 random bytes.
    ///
    /// # Errors
    /// The cryptographic library rejects the bytes.
    pub fn of(seed: [u8; 32]) -> Result<Self, BundleError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| BundleError::Key)?;
        Ok(Self { pair, seed })
    }

    /// Returns the public key in hexadecimal, by which the owner is known.
    #[must_use]
    pub fn owner(&self) -> String {
        encode_hex(self.pair.public_key().as_ref())
    }

    /// Derives an id from a text. Nobody without this key can find out the text from the id.
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

    /// Encodes and signs a bundle of this owner.
    ///
    /// # Errors
    /// [`read`] would reject the bundle.
    pub fn write(&self, bundle: &Bundle) -> Result<Vec<u8>, BundleError> {
        let body = format!("{:#}\n", serde_json::to_value(bundle)?);
        check::parse_body(body.as_bytes())?;
        let signature = encode_hex(self.pair.sign(&signed_message(body.as_bytes())).as_ref());
        let bytes = format!("{body}{LABEL}{} {signature}\n", self.owner()).into_bytes();
        read(&bytes)?;
        Ok(bytes)
    }
}

/// Reason why a bundle is rejected.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The bundle exceeds [`LONGEST`].
    #[error("it is longer than {} MiB: no bundle of a pool is", LONGEST >> 20)]
    Long,
    /// The bytes are not a bundle, or are truncated.
    #[error(
        "its last line is not `{LABEL}OWNER SIGNATURE`: it is no bundle of `assay fleet pool export`, or it was cut off"
    )]
    Unsigned,
    /// The bundle was changed after it was signed.
    #[error(
        "the signature does not fit: it was changed after it was signed, so ask its owner for it again"
    )]
    Signature,
    /// The bundle was signed with a key that is not the key of its owner.
    #[error("it is signed by {signer} and speaks for {owner}: only an owner speaks for themselves")]
    Foreign {
        /// Public key with which the bundle was signed.
        signer: String,
        /// Public key of the owner, as the bundle contains it.
        owner: String,
    },
    /// The cryptographic library rejected the seed of a key.
    #[error("the key cannot be used")]
    Key,
    /// The JSON does not have the format of a bundle.
    #[error("{0}; a newer assay may have written it")]
    Form(#[from] serde_json::Error),
    /// A value or name in the bundle is not plausible.
    #[error(transparent)]
    Fault(#[from] BundleFault),
}

/// Parses a bundle. Checks first the signature, then the format, then whether the values are plausible.
///
/// # Errors
/// The first failed check.
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

/// Splits the bytes of a bundle into body, signer and signature.
fn split_parts(bytes: &[u8]) -> Option<(&[u8], &str, &str)> {
    let line_end = bytes.strip_suffix(b"\n")?;
    let body_end = line_end.iter().rposition(|byte| *byte == b'\n')? + 1;
    let line = std::str::from_utf8(line_end.get(body_end..)?).ok()?;
    let (signer, signature) = line.strip_prefix(LABEL)?.split_once(' ')?;
    Some((&bytes[..body_end], signer, signature))
}

/// Returns the message that is signed. The message contains the purpose of the signature, so that the signature is
/// invalid in another context.
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
