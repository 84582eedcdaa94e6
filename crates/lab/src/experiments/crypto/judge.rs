//! Judges the comparison of encryption rates. The functions are pure and return findings.

use super::{Comparison, CryptoSide, Model};
use crate::Accel;
use serde::Serialize;

/// A finding about a CPU model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Finding {
    /// Stable name of the finding, in `kebab-case`.
    pub code: &'static str,
    /// CPU model, as the value of `-cpu`.
    pub cpu: String,
    /// Sentence with the measured evidence.
    pub evidence: String,
    /// What the user can do about the finding.
    pub remedy: String,
}

const PASS: &str = "give the guest the host's processor: `-cpu host`, in Proxmox `cpu: host`, in \
    libvirt `<cpu mode='host-passthrough'/>`; or add the flag to the model: `-cpu MODEL,+aes`, in \
    Proxmox the type x86-64-v2-AES";

/// Returns the findings on all models.
#[must_use]
pub fn judge_models(comparison: &Comparison) -> Vec<Finding> {
    let host = &comparison.host;
    let of = |model: &Model| {
        let guest = &model.side;
        let finding = |code, evidence: String, remedy: &str| Finding {
            code,
            cpu: model.cpu.clone(),
            evidence,
            remedy: remedy.to_owned(),
        };
        match (host.has("aes")?, guest.has("aes")?) {
            (true, false) => Some(finding(
                "aes-hidden",
                describe_hidden(comparison, model),
                PASS,
            )),
            (_, true) if !is_accelerated(guest) && !guest.drivers.is_empty() => Some(finding(
                "aes-not-used",
                format!(
                    "the guest's processor has aes, but its kernel encrypts with {}",
                    guest
                        .drivers
                        .values()
                        .cloned()
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
                "`modprobe aesni_intel` in the guest, and look at /proc/crypto again",
            )),
            _ => None,
        }
    };
    comparison.models.iter().filter_map(of).collect()
}

/// Whether the kernel uses the CPU's AES instructions.
fn is_accelerated(side: &CryptoSide) -> bool {
    let mut drivers = side.drivers.values();
    drivers.any(|driver| driver.contains("aesni") || driver.contains("vaes"))
}

fn describe_hidden(comparison: &Comparison, model: &Model) -> String {
    let driver = model.side.drivers.get("xts(aes)");
    let driver = driver.map_or(String::new(), |driver| {
        format!(", so its kernel encrypts with {driver}")
    });
    let cause = find_cause(comparison, model).map_or(String::new(), |other| {
        // An emulated instruction may be slower than code without it.
        let ratio = encryption_ratio(&other.side, &model.side, "cryptsetup", "aes-xts 512")
            .filter(|_| model.accel == Accel::Kvm.name());
        let ratio = ratio.map_or(String::new(), |ratio| {
            format!(", and encrypts aes-xts 512 at {ratio:.1} times the rate")
        });
        let driver = other
            .side
            .drivers
            .get("xts(aes)")
            .map_or("", String::as_str);
        format!(
            "; with {}, which differs by that flag alone, it takes {driver}{ratio}",
            other.cpu
        )
    });
    format!("the host's processor has aes, this model hides it{driver}{cause}")
}

/// Returns a measured model that differs from `model` only in having AES, so that it shows the effect of this flag;
/// `None` if no such model was measured.
fn find_cause<'a>(comparison: &'a Comparison, model: &Model) -> Option<&'a Model> {
    let plain = model.cpu.strip_suffix(",-aes");
    let with = format!("{},+aes", model.cpu);
    comparison.models.iter().find(|other| {
        other.side.has("aes") == Some(true)
            && other.accel == model.accel
            && (Some(other.cpu.as_str()) == plain || other.cpu == with)
    })
}

/// Returns the encryption rate of `one` ÷ the rate of `other`; `None` if a rate is unknown.
#[must_use]
pub fn encryption_ratio(
    one: &CryptoSide,
    other: &CryptoSide,
    tool: &str,
    cipher: &str,
) -> Option<f64> {
    let (one, other) = (one.rate(tool, cipher)?, other.rate(tool, cipher)?);
    Some(one.encrypt / other.encrypt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::crypto::Rate;

    fn side(flags: &[&str], driver: &str, rate: f64) -> CryptoSide {
        let owned = |word: &&str| (*word).to_owned();
        CryptoSide {
            flags: Some(flags.iter().map(owned).collect()),
            drivers: [("xts(aes)".to_owned(), driver.to_owned())].into(),
            rates: vec![Rate {
                tool: "cryptsetup",
                cipher: "aes-xts 512".to_owned(),
                encrypt: rate,
                decrypt: Some(rate),
            }],
            unknown: Vec::new(),
        }
    }

    fn comparison(host: &[&str], models: &[(&str, CryptoSide)]) -> Comparison {
        let model = |(cpu, side): &(&str, CryptoSide)| Model {
            cpu: (*cpu).to_owned(),
            accel: "kvm".to_owned(),
            side: side.clone(),
        };
        Comparison {
            host: side(host, "xts-aes-aesni", 4e9),
            models: models.iter().map(model).collect(),
        }
    }

    const GENERIC: &str = "xts(ecb(aes-generic))";

    #[test]
    fn a_model_that_hides_aes_is_found_with_its_cause() {
        let found = judge_models(&comparison(
            &["aes", "ssse3"],
            &[
                ("Westmere,-aes", side(&["ssse3"], GENERIC, 2e8)),
                ("Westmere", side(&["aes", "ssse3"], "xts-aes-aesni", 3e9)),
            ],
        ));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].code, found[0].cpu.as_str()),
            ("aes-hidden", "Westmere,-aes")
        );
        for words in [GENERIC, "with Westmere,", "15.0 times", "hides it"] {
            assert!(found[0].evidence.contains(words), "{}", found[0].evidence);
        }
        assert!(found[0].remedy.contains("cpu: host"));
    }

    #[test]
    fn rates_of_emulated_guests_prove_nothing() {
        let mut both = comparison(
            &["aes"],
            &[
                ("Westmere,-aes", side(&["ssse3"], GENERIC, 2e7)),
                ("Westmere", side(&["aes", "ssse3"], "xts-aes-aesni", 1e7)),
            ],
        );
        for model in &mut both.models {
            "tcg".clone_into(&mut model.accel);
        }
        let found = judge_models(&both);
        assert!(found[0].evidence.contains("xts-aes-aesni"));
        assert!(!found[0].evidence.contains("times"), "{found:?}");
    }

    /// qemu64 and kvm64 have none of the flags in [`FLAGS`].
    #[test]
    fn a_model_without_any_flag_hides_aes_too() {
        let bare = [("qemu64", side(&[], GENERIC, 2e8))];
        assert_eq!(
            judge_models(&comparison(&["aes"], &bare))[0].code,
            "aes-hidden"
        );
    }

    #[test]
    fn nothing_is_hidden_where_the_host_has_none_or_nothing_is_known() {
        let plain = [("kvm64", side(&["ssse3"], GENERIC, 2e8))];
        assert_eq!(judge_models(&comparison(&["ssse3"], &plain)), []);
        let mut unread = side(&[], GENERIC, 2e8);
        unread.flags = None;
        assert_eq!(
            judge_models(&comparison(&["aes"], &[("kvm64", unread)])),
            []
        );
    }

    #[test]
    fn aes_that_the_kernel_does_not_use_is_found() {
        let unused = [("host", side(&["aes"], GENERIC, 2e8))];
        let found = judge_models(&comparison(&["aes"], &unused));
        assert_eq!(found[0].code, "aes-not-used");
    }
}
