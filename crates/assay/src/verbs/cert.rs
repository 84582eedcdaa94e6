//! `assay cert show`: shows the contents of certificates, requests and keys, from files and servers.

use super::pins::{is_server, served_chain};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::{Status, Unreadable};
use anyhow::Context as _;
use assay_host::{Host as _, LiveHost};
use assay_model::{Nanos, SCHEMA_VERSION};
use assay_probe::Starttls;
use assay_probe::certificate::Certificate;
use assay_probe::credential::{Credential, read_credentials};
use assay_probe::tls::Roots;
use assay_render::Style;
use assay_render::text::escape_line;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;
use std::path::Path;

/// Maximum size of a file in bytes.
const LONGEST: u64 = 16 << 20;

const EXAMPLES: &str = "\
Examples:
  assay probe cert show /etc/letsencrypt/live/example.org/fullchain.pem
  assay probe cert show example.org:443                 what a server shows now
  assay probe cert show mail.example.org:25 --starttls smtp
  assay probe cert show ~/.ssh/id_ed25519-cert.pub      principals, key ID and validity
  assay probe cert show next.csr key.pem                do they have the same pin?

Private keys are described and never shown. Signatures in files are not checked. For a server,
assay checks whether this machine trusts the chain. An argument is a file if it contains a `/` or
if a file of this name exists; otherwise it is HOST:PORT.

Exit status: 0 valid, 1 one of them is expired, not valid yet or (of a server) not trusted, 2 no
certificate in it, 3 it cannot be read, or the server does not answer.";

/// Show certificates, requests and keys: names, validity, chain and pins
#[derive(clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Show(ShowArgs),
}

/// Show the contents of certificates, requests and keys
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct ShowArgs {
    /// File in PEM, DER or OpenSSH form, - for standard input, or HOST:PORT
    #[arg(value_name = "FILE|HOST:PORT", required = true)]
    of: Vec<String>,
    /// Start TLS within this protocol
    #[arg(long, value_name = "PROTOCOL",
        value_parser = PossibleValuesParser::new(Starttls::ALL.map(Starttls::name)))]
    starttls: Option<String>,
    /// Wait this long for one answer
    #[arg(long, value_name = "TIME", default_value = "5s")]
    timeout: Nanos,
    /// Stop after this time
    #[arg(long = "budget", value_name = "TIME", default_value = "60s")]
    deadline: Nanos,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Document of `assay cert show`: certificates, requests and keys by source.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document {
    schema: u32,
    sources: Vec<Source>,
}

/// A file or server that contains certificates or keys.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Source {
    /// Name of the source as on the command line.
    of: String,
    /// Reason why this machine does not trust the certificate chain of a server. `None` if it trusts the chain, and for
    /// files.
    distrust: Option<String>,
    /// Whether the server's certificate is valid for the host name; `None` for files.
    for_host: Option<bool>,
    /// The certificates, requests and keys in order.
    items: Vec<Credential>,
}

/// Runs `assay cert show`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let Action::Show(args) = &args.action;
    let now = context::now();
    let mut sources = Vec::new();
    for of in &args.of {
        sources.push(match is_server(of) {
            true => read_server(of, args, now)?,
            false => read_file(of)?,
        });
    }
    let is_good = |source: &Source| {
        source.distrust.is_none()
            && source.for_host != Some(false)
            && source.items.iter().all(|item| is_valid(item, now))
    };
    let good = sources.iter().all(is_good);
    let document = Document {
        schema: SCHEMA_VERSION,
        sources,
    };
    print(&match args.json {
        true => format!("{:#}\n", serde_json::json!(document)),
        false => text(&document.sources, now, context::style(global)),
    })?;
    Ok(match good {
        true => Status::Ok,
        false => Status::Findings,
    })
}

fn read_file(of: &str) -> anyhow::Result<Source> {
    let path = Path::new(of);
    let bytes = match of {
        "-" => crate::input::bytes(path, LONGEST, "certificates, requests or keys")?,
        _ => LiveHost
            .read(path)
            .map_err(|error| Unreadable(error.to_string()))?,
    };
    Ok(Source {
        of: of.to_owned(),
        distrust: None,
        for_host: None,
        items: read_credentials(&bytes).with_context(|| escape_line(of))?,
    })
}

fn read_server(of: &str, args: &ShowArgs, now: Timestamp) -> anyhow::Result<Source> {
    let wait = (args.timeout, args.deadline);
    let (target, chain) = served_chain(of, args.starttls.as_deref(), wait)?;
    let read = chain.iter().map(|der| Certificate::read(der));
    let read: Vec<Certificate> = read
        .collect::<Result<_, _>>()
        .with_context(|| of.to_owned())?;
    let distrust = Roots::of_this_machine().objection(&chain, &read, now);
    Ok(Source {
        of: of.to_owned(),
        distrust: distrust.map(|distrust| distrust.says()),
        for_host: read.first().map(|own| own.is_for(&target.host)),
        items: read
            .into_iter()
            .map(|one| Credential::Certificate(Box::new(one)))
            .collect(),
    })
}

/// Returns whether the item is valid at this time. Items without a validity period are always valid.
fn is_valid(item: &Credential, now: Timestamp) -> bool {
    let (from, until) = validity(item);
    from.is_none_or(|from| from <= now) && until.is_none_or(|until| now <= until)
}

fn validity(item: &Credential) -> (Option<Timestamp>, Option<Timestamp>) {
    match item {
        Credential::Certificate(one) => (Some(one.not_before), Some(one.not_after)),
        Credential::SshCertificate(one) => (one.not_before, one.not_after),
        _ => (None, None),
    }
}

fn text(sources: &[Source], now: Timestamp, style: Style) -> String {
    let mut out = String::new();
    for source in sources {
        out.push_str(&style.bold(&escape_line(&source.of)));
        out.push('\n');
        match (source.for_host, &source.distrust) {
            (None, _) => {}
            (Some(for_host), distrust) => {
                let name = match for_host {
                    true => "the certificate is for this host",
                    false => "the certificate is NOT for this host",
                };
                let trust = match distrust {
                    None => "this machine trusts the chain".to_owned(),
                    Some(why) => format!("this machine does not trust the chain: {why}"),
                };
                out.push_str(&format!("  {name}; {}\n", escape_line(&trust)));
            }
        }
        for item in &source.items {
            let (title, rows) = describe(item, now);
            out.push_str(&format!("\n  {title}\n"));
            for (label, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
                out.push_str(&format!("    {label:<13}{}\n", escape_line(&value)));
            }
        }
        out.push('\n');
    }
    out
}

/// Returns the title and the labelled values of one item. Values may be empty.
fn describe(item: &Credential, now: Timestamp) -> (String, Vec<(&'static str, String)>) {
    let valid = valid_words(item, now);
    match item {
        Credential::Certificate(one) => {
            let title = match (one.is_ca, one.self_signed) {
                (true, true) => "Root certificate",
                (true, false) => "Certificate of an authority",
                (false, true) => "Certificate, self-signed",
                (false, false) => "Certificate",
            };
            let rows = vec![
                ("subject", one.subject.clone()),
                ("issuer", one.issuer.clone()),
                ("names", one.names.join(", ")),
                ("valid", valid),
                ("key", one.key.clone()),
                ("signature", one.signature.clone()),
                ("must-staple", yes(one.must_staple)),
                ("SHA-256", one.fingerprint.clone()),
                ("pin", one.pin.curl()),
            ];
            (title.to_owned(), rows)
        }
        Credential::Request(one) => {
            let rows = vec![
                ("subject", one.subject.clone()),
                ("names", one.names.join(", ")),
                ("key", one.key.clone()),
                ("pin", one.pin.curl()),
            ];
            ("Certificate signing request".to_owned(), rows)
        }
        Credential::Key(one) => {
            let rows = vec![
                ("key", one.key.clone().unwrap_or_default()),
                (
                    "passphrase",
                    if one.private {
                        yes_or_no(one.encrypted)
                    } else {
                        String::new()
                    },
                ),
                (
                    "pin",
                    one.pin.as_ref().map_or_else(String::new, |pin| pin.curl()),
                ),
            ];
            (key_title(one.private).to_owned(), rows)
        }
        Credential::SshCertificate(one) => {
            let rows = vec![
                ("key ID", one.key_id.clone()),
                ("serial", one.serial.to_string()),
                (
                    "principals",
                    match one.principals.is_empty() {
                        true => "all: no name is listed".to_owned(),
                        false => one.principals.join(", "),
                    },
                ),
                ("valid", valid),
                ("options", one.critical_options.join(", ")),
                ("extensions", one.extensions.join(", ")),
                ("key", format!("{} {}", one.key, one.fingerprint)),
                ("signed by", one.authority.clone()),
            ];
            (format!("SSH certificate of a {}", one.of), rows)
        }
        Credential::SshKey(one) => {
            let rows = vec![
                ("key", one.key.clone()),
                ("fingerprint", one.fingerprint.clone()),
                (
                    "passphrase",
                    if one.private {
                        yes_or_no(one.encrypted)
                    } else {
                        String::new()
                    },
                ),
                ("comment", one.comment.clone().unwrap_or_default()),
                ("options", one.options.clone().unwrap_or_default()),
            ];
            (
                format!("SSH {}", key_title(one.private).to_lowercase()),
                rows,
            )
        }
    }
}

fn key_title(private: bool) -> &'static str {
    match private {
        true => "Private key",
        false => "Public key",
    }
}

fn yes(is: bool) -> String {
    if is { "yes".to_owned() } else { String::new() }
}

fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// Formats the validity and the number of remaining days.
fn valid_words(item: &Credential, now: Timestamp) -> String {
    let date = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M UTC").to_string();
    let days = |from: Timestamp, to: Timestamp| (to.as_second() - from.as_second()) / 86_400;
    let (from, until) = validity(item);
    let span = match (from, until) {
        (None, None) => return "always".to_owned(),
        (None, Some(until)) => format!("until {}", date(until)),
        (Some(from), None) => format!("from {}, without an end", date(from)),
        (Some(from), Some(until)) => format!("{} to {}", date(from), date(until)),
    };
    match (from, until) {
        (_, Some(until)) if until < now => format!("{span}: EXPIRED {} days ago", days(until, now)),
        (Some(from), _) if from > now => {
            format!("{span}: NOT VALID YET, in {} days", days(now, from))
        }
        (_, Some(until)) => format!("{span}: {} days left", days(now, until)),
        (_, None) => span,
    }
}
