//! Processors as guests see them: one guest for each, measured one after the other before the rest.

use super::settings::{Base, Layers};
use super::wanted::{Of, Wanted, wanted};
use crate::guest::command;
use crate::{Place, StudyError};
use assay_lab::{Guest, Options};
use assay_model::study::{Configuration, Figure, Form, Observation, Study};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Bytes per second of each cipher that was asked for.
type Speeds = BTreeMap<String, f64>;

/// `cryptsetup benchmark` runs each direction for a second; an emulated guest needs its time to
/// begin.
const LIMIT: Duration = Duration::from_secs(120);

/// Boots a guest for each processor and measures all its rounds.
///
/// # Errors
/// QEMU does not know the model, or a guest does not come up.
pub(super) fn measure(
    place: &Place<'_>,
    study: &Study,
    form: &Form,
    layers: &BTreeMap<String, (usize, Layers)>,
) -> Result<BTreeMap<String, Vec<Speeds>>, StudyError> {
    let mut found = BTreeMap::new();
    for one in study.tried(form) {
        let Some((number, layers)) = layers.get(&one.name) else {
            continue;
        };
        if layers.on != Base::Cpu {
            continue;
        }
        let mut ciphers = BTreeSet::new();
        for figure in study.measured() {
            if study.asks(form, one, figure) {
                ciphers.extend(wanted(figure)?.cipher);
            }
        }
        place.go_on()?;
        (place.say)(&format!("booting a guest with {}", one.title()));
        let image = place.image.as_ref().ok_or(StudyError::NoImage)?;
        let mut options = Options::new(&format!("study-{}-cpu{number}", std::process::id()));
        options.memory_mib = 512;
        options.cpus = 1;
        options.accel = place.accel;
        options.cpu_model.clone_from(&layers.cpu);
        let guest = Guest::boot(image, &options, place.guests, place.cancel)?;
        let mut rounds = Vec::new();
        for _ in 0..form.rounds {
            let mut speeds = Speeds::new();
            for cipher in &ciphers {
                speeds.insert(cipher.clone(), encryption(&guest, cipher)?);
            }
            rounds.push(speeds);
        }
        guest.kill()?;
        found.insert(one.name.clone(), rounds);
    }
    Ok(found)
}

/// The figures of one round.
pub(super) fn observed(
    configuration: &Configuration,
    asked: &[(&Figure, Wanted)],
    round: u32,
    all: &[Speeds],
) -> Vec<Observation> {
    let index = round.saturating_sub(1) as usize;
    let figures = asked.iter().filter_map(|(figure, wanted)| {
        let cipher = wanted.cipher.as_ref().filter(|_| wanted.of == Of::Cipher)?;
        let value = *all.get(index)?.get(cipher)?;
        Some(crate::observed(configuration, figure, round, value))
    });
    figures.collect()
}

/// Encrypts in the guest's kernel: `aes-xts-512` is a cipher, its mode and the bits of its key.
fn encryption(guest: &Guest, cipher: &str) -> Result<f64, StudyError> {
    let (name, bits) = cipher.rsplit_once('-').unwrap_or((cipher, "256"));
    let argv = [
        "cryptsetup",
        "benchmark",
        "--cipher",
        name,
        "--key-size",
        bits,
    ];
    let text = command(guest, &argv, LIMIT)?;
    speed(&text, name).ok_or_else(|| StudyError::measure(argv.join(" "), text.trim()))
}

/// Encryption in a line of `cryptsetup benchmark`: algorithm, key, encryption, decryption.
fn speed(text: &str, cipher: &str) -> Option<f64> {
    let mut lines = text.lines().map(str::split_whitespace);
    let mut words = lines.find(|words| words.clone().next() == Some(cipher))?;
    let mebibytes: f64 = words.nth(2)?.parse().ok()?;
    (words.next() == Some("MiB/s")).then_some(mebibytes * f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// cryptsetup 2.6.1 on Debian 12.
    #[test]
    fn the_speed_of_a_cipher_is_read_or_missed() {
        let text = "# Tests are approximate using memory only (no storage IO).\n\
            # Algorithm |       Key |      Encryption |      Decryption\n\
            \u{20}   aes-xts        512b        10.8 MiB/s        11.7 MiB/s\n";
        assert_eq!(speed(text, "aes-xts"), Some(10.8 * 1_048_576.0));
        assert_eq!(speed(text, "serpent-xts"), None);
        // What it prints for a cipher that the kernel has not.
        assert_eq!(speed("    aes-xts  512b   N/A   N/A\n", "aes-xts"), None);
    }
}
