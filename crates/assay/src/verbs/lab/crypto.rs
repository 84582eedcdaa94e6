//! `assay lab crypto`: measures the cost of encryption in a guest, for each CPU model.

use super::documents;
use super::machine::{AccelArg, ZfsArg};
use super::open::Lab;
use crate::context::paragraph;
use crate::context::print;
use crate::status::Status;
use assay_host::LiveHost;
use assay_lab::experiments::crypto::{
    Comparison, CryptoSide, CryptoTrial, Finding, encryption_ratio, judge_models, run,
};
use assay_lab::{Accel, Choice, GuestOptions, choose_accel};
use std::time::Duration;

/// Arguments of `assay lab crypto`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab crypto                           QEMU's and Proxmox' old defaults, one model with and
                                             without aes, and the host's own processor
  assay lab crypto --cpu host                is all well with this one?
  assay lab crypto --cpu Haswell --cpu Haswell,-aes --json

Each model gets a guest of its own. Host and guests run `openssl speed` and, where it is installed,
`cryptsetup benchmark`; /proc/cpuinfo tells the flags and /proc/crypto the driver that the kernel
chose. Where guests are emulated, rates mean little; flags and drivers are what they are.

Exit status: 0 every model shows the guest what the host can do, 1 one hides AES, 2 error,
130 interrupted.")]
pub(super) struct Crypto {
    /// Test this QEMU CPU model (repeatable)
    #[arg(long, value_name = "MODEL")]
    cpu: Vec<String>,
    /// Run each cipher of `openssl speed` for N seconds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Run guests with kvm or tcg [default: detected]
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    accel: Option<AccelArg>,
    /// Build a missing guest image without asking
    #[arg(long)]
    yes: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Default CPU models: QEMU's default, Proxmox's default before 8.0, and Westmere without and with the AES
/// instructions. The CPU model with all features is measured in addition.
const USUAL: [&str; 4] = ["qemu64", "kvm64", "Westmere,-aes", "Westmere"];

pub(super) fn crypto(lab: &Lab, args: &Crypto) -> anyhow::Result<Status> {
    let mut options = GuestOptions::new(&format!("crypto-{}", std::process::id()));
    options.accel = args.accel.map(Accel::from);
    let image = lab.image(ZfsArg::Stable, args.yes)?;
    // Decided once for all guests.
    let choice = match options.accel {
        Some(accel) => Choice { accel, why: None },
        None => choose_accel(&image, &lab.state)?,
    };
    options.accel = Some(choice.accel);
    let best = match choice.accel {
        Accel::Kvm => "host",
        Accel::Tcg => "max",
    };
    let models = match args.cpu.is_empty() {
        true => USUAL.into_iter().chain([best]).map(str::to_owned).collect(),
        false => args.cpu.clone(),
    };
    let trial = CryptoTrial {
        models,
        seconds: args.seconds,
    };
    let text = "this machine, then a guest for each model:";
    let each = usual_time(choice.accel, args.seconds);
    let shown = super::progress::steps(text, trial.models.len() as u64, each);
    let mut comparison = Comparison::default();
    let ended = run(
        &image,
        &options,
        &trial,
        (&LiveHost, &lab.state),
        &lab.cancel,
        &mut comparison,
        &mut || shown.inc(1),
    );
    shown.finish_and_clear();
    if comparison.models.is_empty() {
        ended?;
        return Ok(Status::Ok);
    }
    let found = judge_models(&comparison);
    let note = (choice.accel == Accel::Tcg).then(|| {
        let why = choice.why.as_deref().unwrap_or("--accel tcg");
        format!(
            "the guests are emulated ({why}): their rates say nothing about real ones, and \
             emulated AES instructions may even be slower than code without them; flags and drivers \
             are what they are"
        )
    });
    print(&match args.json {
        true => documents::printed(&documents::Crypto::of(&comparison, &found, note.as_deref()))?,
        false => table(&comparison, &found, note.as_deref()),
    })?;
    // Results before an error are printed too.
    ended?;
    Ok(if found.is_empty() {
        Status::Ok
    } else {
        Status::Findings
    })
}

/// Returns the typical duration for one emulated guest; `None` with KVM. It consists of the boot, `cryptsetup`, and
/// three ciphers of `openssl speed`.
fn usual_time(accel: Accel, seconds: u32) -> Option<Duration> {
    (accel == Accel::Tcg).then(|| Duration::from_secs(70 + 3 * u64::from(seconds)))
}

fn table(comparison: &Comparison, found: &[Finding], note: Option<&str>) -> String {
    let all: Vec<(&str, &CryptoSide)> = std::iter::once(("host", &comparison.host))
        .chain(
            comparison
                .models
                .iter()
                .map(|model| (model.cpu.as_str(), &model.side)),
        )
        .collect();
    let mut text = format!("{:<22} {:<40} driver of xts(aes)\n", "", "flags");
    for (index, (name, side)) in all.iter().enumerate() {
        let driver = side
            .drivers
            .get("xts(aes)")
            .map_or("not set up", String::as_str);
        let flags = match &side.flags {
            None => "not known".to_owned(),
            Some(none) if none.is_empty() => "none of these".to_owned(),
            Some(flags) => flags.join(" "),
        };
        text += &format!("{:<22} {flags:<40} {driver}\n", label(index, name));
    }
    let mut ciphers: Vec<(&str, &str)> = Vec::new();
    for (_, side) in &all {
        for rate in &side.rates {
            let key = (rate.tool, rate.cipher.as_str());
            if !ciphers.contains(&key) {
                ciphers.push(key);
            }
        }
    }
    for (tool, cipher) in ciphers {
        text += &format!("\n{tool} {cipher}\n");
        for (index, (name, side)) in all.iter().enumerate() {
            let Some(rate) = side.rate(tool, cipher) else {
                continue;
            };
            let against = match (
                index,
                encryption_ratio(side, &comparison.host, tool, cipher),
            ) {
                (1.., Some(ratio)) => format!("  {ratio:.3} of the host's"),
                _ => String::new(),
            };
            let mib = |bytes: f64| format!("{:.1} MiB/s", bytes / f64::from(1 << 20));
            let decrypt = rate
                .decrypt
                .map_or(String::new(), |rate| format!(", decrypts {}", mib(rate)));
            text += &format!(
                "  {:<20} {}{decrypt}{against}\n",
                label(index, name),
                mib(rate.encrypt)
            );
        }
    }
    text += "\n";
    for (index, (name, side)) in all.iter().enumerate() {
        for reason in &side.unknown {
            text += &format!(
                "not known of {}: {}\n",
                label(index, name),
                reason.trim_end()
            );
        }
    }
    for (index, finding) in found.iter().enumerate() {
        text += &format!("finding {} on -cpu {}\n", finding.code, finding.cpu);
        text += &paragraph(&finding.evidence, 2);
        // Several models mostly have the same remedy.
        let next = found.get(index + 1);
        if next.is_none_or(|next| next.remedy != finding.remedy) {
            text += &paragraph(&format!("-> {}", finding.remedy), 2);
        }
    }
    if let Some(note) = note {
        text += &paragraph(&format!("note: {note}"), 0);
    }
    text
}

fn label(index: usize, name: &str) -> String {
    match index {
        0 => "this machine".to_owned(),
        _ => format!("-cpu {name}"),
    }
}
