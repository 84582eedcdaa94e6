//! Measures how fast encryption is in guests with different CPU models, and compares the guests with the host.
//!
//! Host and guests are examined in the same way: CPU flags, selected kernel drivers, and rates of `openssl speed` and
//! `cryptsetup benchmark`.

mod judge;
mod parse;

pub use judge::{Finding, encryption_ratio, judge_models};

use crate::Guest;
use crate::GuestOptions;
use crate::GuestRegistry;
use crate::Image;
use crate::LabError;
use assay_host::{Host, HostError, Limits};
use assay_loads::Cancel;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// CPU flags that matter for encryption, as named in /proc/cpuinfo.
pub const FLAGS: [&str; 6] = ["aes", "vaes", "pclmulqdq", "vpclmulqdq", "ssse3", "avx2"];
/// Ciphers that `openssl speed -evp` measures, with 16 KiB blocks in one thread.
const OPENSSL: [&str; 3] = ["aes-256-gcm", "aes-256-xts", "chacha20-poly1305"];
/// Ciphers and key sizes in bits that `cryptsetup benchmark` measures; they run in the kernel. XTS splits the key in
/// two, so 512 bits mean AES-256.
const CRYPTSETUP: [(&str, &str); 6] = [
    ("aes-cbc", "128"),
    ("aes-cbc", "256"),
    ("aes-xts", "256"),
    ("aes-xts", "512"),
    ("serpent-xts", "512"),
    ("twofish-xts", "512"),
];
/// Algorithms whose kernel driver is examined, as named in /proc/crypto.
const ALGORITHMS: [&str; 2] = ["xts(aes)", "cbc(aes)"];

/// Rate of one cipher, measured by one tool.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Rate {
    /// Name of the tool: `openssl` or `cryptsetup`.
    pub tool: &'static str,
    /// Cipher and key size, in the tool's notation.
    pub cipher: String,
    /// Encryption rate in bytes per second; for `openssl`, per second of CPU time.
    pub encrypt: f64,
    /// Decryption rate in bytes per second, if the tool reports it separately.
    pub decrypt: Option<f64>,
}

/// Results for the host or one guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "Side")]
pub struct CryptoSide {
    /// Flags of [`FLAGS`] that the CPU has; `None` if they could not be read.
    pub flags: Option<Vec<String>>,
    /// Preferred kernel driver of each available algorithm.
    pub drivers: BTreeMap<String, String>,
    /// Rates that were measured.
    pub rates: Vec<Rate>,
    /// Checks that failed, with reasons.
    pub unknown: Vec<String>,
}

impl CryptoSide {
    /// Returns whether the CPU has this flag; `None` if unknown.
    #[must_use]
    pub fn has(&self, flag: &str) -> Option<bool> {
        let flags = self.flags.as_ref()?;
        Some(flags.iter().any(|have| have == flag))
    }

    /// Returns a rate by tool and cipher.
    #[must_use]
    pub fn rate(&self, tool: &str, cipher: &str) -> Option<&Rate> {
        let mut rates = self.rates.iter();
        rates.find(|rate| rate.tool == tool && rate.cipher == cipher)
    }
}

/// Results for one guest's CPU model.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Model {
    /// CPU model, as the value of `-cpu`.
    pub cpu: String,
    /// Accelerator of the guest: `kvm` or `tcg`.
    pub accel: String,
    /// Results in the guest.
    pub side: CryptoSide,
}

/// Results of the host and of all guests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Results on the host.
    pub host: CryptoSide,
    /// Results of the guests, in the requested order.
    pub models: Vec<Model>,
}

/// What the experiment measures, and for how long.
#[derive(Clone, Debug)]
pub struct CryptoTrial {
    /// CPU models for `-cpu`, one guest each.
    pub models: Vec<String>,
    /// Duration in seconds for which `openssl speed` measures each cipher.
    pub seconds: u32,
}

/// Measures the host, then one guest after the other. Adds each result to `comparison` immediately, so that it is kept
/// if a later step fails, and calls `told`.
///
/// # Errors
/// As [`Guest::boot`], or QEMU does not know a model.
pub fn run(
    image: &Image,
    options: &GuestOptions,
    trial: &CryptoTrial,
    place: (&dyn Host, &GuestRegistry),
    cancel: &Cancel,
    comparison: &mut Comparison,
    told: &mut dyn FnMut(),
) -> Result<(), LabError> {
    let (host, state) = place;
    comparison.host = measure(host, trial.seconds, cancel)?;
    for cpu in &trial.models {
        let mut options = options.clone();
        options.cpu_model = Some(cpu.clone());
        let guest = Guest::boot(image, &options, state, cancel)?;
        comparison.models.push(Model {
            cpu: cpu.clone(),
            accel: guest.accel().accel.name().to_owned(),
            side: measure(&guest, trial.seconds, cancel)?,
        });
        guest.kill()?;
        told();
    }
    Ok(())
}

/// Measures everything on one machine, host or guest.
fn measure(host: &dyn Host, seconds: u32, cancel: &Cancel) -> Result<CryptoSide, LabError> {
    let mut side = CryptoSide::default();
    match host.read(Path::new("/proc/cpuinfo")) {
        Ok(text) => {
            side.flags = parse::parse_flags(&String::from_utf8_lossy(&text));
            if side.flags.is_none() {
                let reason = "/proc/cpuinfo names no flags of the processor";
                side.unknown.push(reason.to_owned());
            }
        }
        Err(error) => side.unknown.push(error.to_string()),
    }
    for cipher in OPENSSL {
        let seconds = seconds.to_string();
        let argv = [
            "openssl", "speed", "-mr", "-seconds", &seconds, "-bytes", "16384", "-evp", cipher,
        ];
        let found = ask(host, &argv, cancel, parse::parse_openssl)?;
        let rate = |bytes| Rate {
            tool: "openssl",
            cipher: cipher.to_owned(),
            encrypt: bytes,
            decrypt: None,
        };
        side.take(&format!("openssl {cipher}"), found.map(rate));
    }
    for (cipher, bits) in CRYPTSETUP {
        let argv = [
            "cryptsetup",
            "benchmark",
            "--cipher",
            cipher,
            "--key-size",
            bits,
        ];
        let found = ask(host, &argv, cancel, parse::parse_cryptsetup)?;
        let rate = |(encrypt, decrypt)| Rate {
            tool: "cryptsetup",
            cipher: format!("{cipher} {bits}"),
            encrypt,
            decrypt: Some(decrypt),
        };
        let found = found.map(rate);
        let absent = matches!(&found, Err(reason) if reason.ends_with("command not found"));
        side.take(&format!("cryptsetup {cipher} {bits}"), found);
        if absent {
            break;
        }
    }
    match host.read(Path::new("/proc/crypto")) {
        Ok(text) => {
            side.drivers = parse::parse_drivers(&String::from_utf8_lossy(&text), &ALGORITHMS)
        }
        Err(error) => side.unknown.push(error.to_string()),
    }
    Ok(side)
}

impl CryptoSide {
    fn take(&mut self, what: &str, found: Result<Rate, String>) {
        match found {
            Ok(rate) => self.rates.push(rate),
            Err(reason) => self.unknown.push(format!("{what}: {reason}")),
        }
    }
}

/// Runs a tool and parses its output. If the tool fails, the check is recorded as unknown. An interruption is an error.
fn ask<T>(
    host: &dyn Host,
    argv: &[&str],
    cancel: &Cancel,
    read: fn(&str) -> Option<T>,
) -> Result<Result<T, String>, LabError> {
    if cancel.is_cancelled() {
        return Err(LabError::Interrupted);
    }
    let words: Vec<_> = argv.iter().map(OsStr::new).collect();
    let limits = Limits {
        timeout: Duration::from_secs(180),
    };
    let output = match host.run(&words, limits) {
        Ok(output) => output,
        Err(_) if cancel.is_cancelled() => return Err(LabError::Interrupted),
        Err(HostError::NoCommand { name }) => return Ok(Err(format!("{name}: command not found"))),
        Err(error) => return Ok(Err(error.to_string())),
    };
    if !output.success() {
        return Ok(Err(output.complaint()));
    }
    let text = output.text();
    Ok(read(&text).ok_or_else(|| format!("no figure in what {} says: {text:?}", argv[0])))
}
