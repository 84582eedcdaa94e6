//! Serialises names for `#[serde(with = …)]`: valid UTF-8 as a string, any other name as `{"hex": "…"}`.

use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Raw { hex: String },
}

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => to.serialize_str(text),
        Err(_) => Name::Raw {
            hex: crate::name::encode_hex(bytes),
        }
        .serialize(to),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    match Name::deserialize(from)? {
        Name::Text(text) => Ok(text.into_bytes()),
        Name::Raw { hex } => (0..hex.len())
            .step_by(2)
            .map(|at| {
                hex.get(at..at + 2)
                    .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                    .ok_or_else(|| serde::de::Error::custom("not hexadecimal"))
            })
            .collect(),
    }
}
