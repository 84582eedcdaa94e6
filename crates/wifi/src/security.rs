//! Security settings of a network, that is authentication and encryption.

use std::collections::BTreeSet;

/// Method by which clients authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A shared password with the handshake of WPA2.
    Psk,
    /// A shared password with the handshake of WPA3.
    Sae,
    /// A personal account of each user (802.1X).
    Eap,
    /// No authentication, but encryption (Enhanced Open).
    Owe,
    /// A method that assay does not know.
    Other,
}

/// Whether management frames are protected (802.11w).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pmf {
    /// The protection is disabled.
    Off,
    /// The protection is optional for clients.
    Capable,
    /// Clients must use the protection.
    Required,
}

/// Security settings of a received or configured network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    /// Whether WEP is offered.
    pub wep: bool,
    /// Whether the original WPA is offered.
    pub wpa1: bool,
    /// Whether WPA2 or WPA3 is offered.
    pub rsn: bool,
    /// Whether the cipher TKIP is offered to clients.
    pub tkip: bool,
    /// Authentication methods that are offered; empty for open networks and WEP.
    pub keys: BTreeSet<Key>,
    /// Whether fast transition (802.11r) is offered; `None` if unknown.
    pub ft: Option<bool>,
    /// Protection of management frames; `None` if unknown.
    pub pmf: Option<Pmf>,
}

impl Security {
    /// Returns whether anybody can join and read the traffic of other clients.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.wep && !self.wpa1 && !self.rsn && self.keys.is_empty()
    }

    /// Returns whether joining requires a secret, such as a password.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.wep || self.keys.iter().any(|key| *key != Key::Owe)
    }

    /// Returns whether the network uses WPA2 or WPA3 with a secret.
    #[must_use]
    pub fn is_modern(&self) -> bool {
        self.rsn && self.is_protected()
    }

    /// Returns whether clients need protected management frames, because the network offers WPA3 or Enhanced Open.
    #[must_use]
    pub fn needs_protected_frames(&self) -> bool {
        let modern = |key: &Key| matches!(key, Key::Sae | Key::Owe);
        self.rsn && self.keys.iter().any(modern)
    }

    /// Formats the settings, as in `WPA2 PSK`, `WPA2/WPA3 PSK SAE` or `open`.
    #[must_use]
    pub fn name(&self) -> String {
        if self.is_open() {
            return "open".to_owned();
        }
        if self.wep {
            return "WEP".to_owned();
        }
        let has = |key| self.keys.contains(&key);
        let new = has(Key::Sae) || has(Key::Owe);
        let old = has(Key::Psk) || has(Key::Eap) || has(Key::Other);
        let mut versions = Vec::new();
        if self.wpa1 {
            versions.push("WPA1");
        }
        if self.rsn && (old || !new) {
            versions.push("WPA2");
        }
        if self.rsn && new {
            versions.push("WPA3");
        }
        let mut words = vec![versions.join("/")];
        words.extend(self.keys.iter().filter_map(|key| {
            let word = match key {
                Key::Psk => "PSK",
                Key::Sae => "SAE",
                Key::Eap => "802.1X",
                Key::Owe => "OWE",
                Key::Other => return None,
            };
            Some(word.to_owned())
        }));
        words.join(" ")
    }

    /// Parses the notations of Wi-Fi lists, such as `[WPA2-PSK-CCMP][ESS]`, `WPA2,AES-CCM,PSK` or `None`. Returns
    /// `None` if no word of the text is known.
    #[must_use]
    pub fn from_words(text: &str) -> Option<Self> {
        let mut found = Self::default();
        let mut known = false;
        let upper = text.to_ascii_uppercase();
        for word in upper.split(|c: char| !c.is_ascii_alphanumeric() && c != '.') {
            known |= found.word(word);
        }
        if found.wpa1 || found.rsn {
            // Some lists write WEP for every encrypted network.
            found.wep = false;
            if found.keys.is_empty() {
                let key = match upper.contains("WPA3") {
                    true => Key::Sae,
                    false => Key::Other,
                };
                found.keys.insert(key);
            }
        }
        known.then_some(found)
    }

    fn word(&mut self, word: &str) -> bool {
        let mut key = |key| {
            self.keys.insert(key);
        };
        match word {
            "WEP" | "WEP40" | "WEP104" => self.wep = true,
            "WPA" | "WPA1" => self.wpa1 = true,
            "WPA2" | "WPA3" | "RSN" => self.rsn = true,
            "PSK" | "PERSONAL" => key(Key::Psk),
            "SAE" => key(Key::Sae),
            "EAP" | "ENTERPRISE" | "MGT" | "802.1X" | "8021X" => key(Key::Eap),
            "OWE" => {
                key(Key::Owe);
                self.rsn = true;
            }
            "TKIP" => self.tkip = true,
            "FT" => self.ft = Some(true),
            "MFPC" => self.pmf = self.pmf.max(Some(Pmf::Capable)),
            "MFPR" => self.pmf = Some(Pmf::Required),
            "NONE" | "OPEN" | "OPN" | "ESS" => {}
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_many_programs_are_read() {
        for (words, name) in [
            ("[WPA2-PSK-CCMP][ESS]", "WPA2 PSK"),
            (
                "[WPA-PSK-TKIP+CCMP][WPA2-PSK-TKIP+CCMP][ESS][WPS]",
                "WPA1/WPA2 PSK",
            ),
            ("[RSN-PSK+SAE-CCMP][MFPC][ESS]", "WPA2/WPA3 PSK SAE"),
            ("[RSN-EAP/SHA256+FT/EAP-CCMP]", "WPA2 802.1X"),
            ("[RSN-OWE_TRANSITION-CCMP][ESS]", "WPA3 OWE"),
            ("[ESS]", "open"),
            ("[WEP][ESS]", "WEP"),
            ("WPA3,AES-CCM,SAE", "WPA3 SAE"),
            ("WPA2,WEP,AES-CCM,PSK", "WPA2 PSK"),
            ("None", "open"),
            ("WPA2-Personal", "WPA2 PSK"),
            ("WPA3", "WPA3 SAE"),
        ] {
            let found = Security::from_words(words).unwrap();
            assert_eq!(found.name(), name, "{words}");
        }
        assert_eq!(Security::from_words(""), None);
        assert_eq!(Security::from_words("?"), None);
        let owe = Security::from_words("[RSN-OWE-CCMP]").unwrap();
        assert!(!owe.is_open() && !owe.is_protected());
        let ft = Security::from_words("[WPA2-PSK+FT/PSK-CCMP][MFPR]").unwrap();
        assert_eq!((ft.ft, ft.pmf), (Some(true), Some(Pmf::Required)));
    }
}
