//! Measures the performance of different CPU models inside a guest. There is one guest per model. The guests run one
//! after the other, before all other measurements. A configuration without a model uses the main guest.

use super::requirements::{Wanted, parse_requirements};
use super::settings::{Base, Layers};
use crate::guest::run_command;
use crate::{BenchContext, StudyError};
use assay_lab::{Guest, GuestOptions};
use assay_model::study::{Configuration, Figure, Form, Observation, Study};
use std::collections::BTreeMap;
use std::time::Duration;

/// Figures of each round, by name.
pub(super) type Found = Vec<BTreeMap<String, f64>>;

/// Time limit for a command. `cryptsetup benchmark` needs a second for each direction, and starts slowly in an emulated
/// guest.
const LIMIT: Duration = Duration::from_secs(120);

/// Boots a guest for each model and measures all its rounds.
///
/// # Errors
/// QEMU does not know the model, or a guest does not boot.
pub(super) fn measure(
    place: &BenchContext<'_>,
    study: &Study,
    form: &Form,
    layers: &BTreeMap<String, (usize, Layers)>,
) -> Result<BTreeMap<String, Found>, StudyError> {
    let mut found = BTreeMap::new();
    for one in study.tried(form) {
        let Some((number, layers)) = layers.get(&one.name) else {
            continue;
        };
        if layers.on != Base::Cpu || layers.cpu.is_none() {
            continue;
        }
        place.go_on()?;
        (place.say)(&format!("booting a guest with {}", one.title()));
        let image = place.image.as_ref().ok_or(StudyError::NoImage)?;
        let mut options = GuestOptions::new(&format!("study-{}-cpu{number}", std::process::id()));
        options.memory_mib = 512;
        options.cpus = 1;
        options.accel = place.accel;
        options.cpu_model.clone_from(&layers.cpu);
        let guest = Guest::boot(image, &options, place.guests, place.env.cancel)?;
        found.insert(one.name.clone(), run_rounds(&guest, study, form, one)?);
        guest.kill()?;
    }
    Ok(found)
}

/// Measures all rounds of a CPU model in its guest.
///
/// # Errors
/// The guest does not answer.
pub(super) fn run_rounds(
    guest: &Guest,
    study: &Study,
    form: &Form,
    one: &Configuration,
) -> Result<Found, StudyError> {
    let mut rounds = Vec::new();
    for _ in 0..form.rounds {
        let mut values = BTreeMap::new();
        for figure in study.measured() {
            if !study.asks(form, one, figure) {
                continue;
            }
            let wanted = parse_requirements(figure)?;
            let value = match &wanted.cipher {
                Some(cipher) => measure_encryption(guest, cipher)?,
                None => f64::from(u8::from(has_aes(guest)?)),
            };
            values.insert(figure.name.clone(), value);
        }
        rounds.push(values);
    }
    Ok(rounds)
}

/// Measures the figures of one round.
pub(super) fn round_figures(
    configuration: &Configuration,
    asked: &[(&Figure, Wanted)],
    round: u32,
    all: &Found,
) -> Vec<Observation> {
    let index = round.saturating_sub(1) as usize;
    let figures = asked.iter().filter_map(|(figure, _)| {
        let value = *all.get(index)?.get(&figure.name)?;
        Some(crate::to_observation(configuration, figure, round, value))
    });
    figures.collect()
}

/// Returns whether the guest's kernel detects AES instructions (AES-NI on x86).
fn has_aes(guest: &Guest) -> Result<bool, StudyError> {
    let text = run_command(guest, &["cat", "/proc/cpuinfo"], LIMIT)?;
    let mut flags = text.lines().filter(|line| line.starts_with("flags"));
    Ok(flags.any(|line| line.split_whitespace().any(|flag| flag == "aes")))
}

/// Measures encryption in the guest's kernel, in bytes per second. A cipher such as `aes-xts-512` consists of cipher,
/// mode and key size in bits.
fn measure_encryption(guest: &Guest, cipher: &str) -> Result<f64, StudyError> {
    let (name, bits) = cipher.rsplit_once('-').unwrap_or((cipher, "256"));
    let argv = [
        "cryptsetup",
        "benchmark",
        "--cipher",
        name,
        "--key-size",
        bits,
    ];
    let text = run_command(guest, &argv, LIMIT)?;
    parse_speed(&text, name).ok_or_else(|| StudyError::measure(argv.join(" "), text.trim()))
}

/// Parses the encryption rate in a line of `cryptsetup benchmark`. Such a line contains algorithm, key size, encryption
/// rate and decryption rate.
fn parse_speed(text: &str, cipher: &str) -> Option<f64> {
    let mut lines = text.lines().map(str::split_whitespace);
    let mut words = lines.find(|words| words.clone().next() == Some(cipher))?;
    let mebibytes: f64 = words.nth(2)?.parse().ok()?;
    (words.next() == Some("MiB/s")).then_some(mebibytes * f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of cryptsetup 2.6.1 on Debian 12.
    #[test]
    fn the_speed_of_a_cipher_is_read_or_missed() {
        let text = "# Tests are approximate using memory only (no storage IO).\n\
            # Algorithm |       Key |      Encryption |      Decryption\n\
            \u{20}   aes-xts        512b        10.8 MiB/s        11.7 MiB/s\n";
        assert_eq!(parse_speed(text, "aes-xts"), Some(10.8 * 1_048_576.0));
        assert_eq!(parse_speed(text, "serpent-xts"), None);
        // Output for a cipher that the kernel does not support.
        assert_eq!(
            parse_speed("    aes-xts  512b   N/A   N/A\n", "aes-xts"),
            None
        );
    }
}
