//! `assay probe pins`: prints pins of public keys in the usual formats.

use crate::context::{self, print};
use crate::global::Global;
use crate::status::{Status, Unreadable};
use crate::verbs::probe::{at, seed, unreadable};
use anyhow::Context as _;
use assay_host::{Host as _, LiveHost};
use assay_model::{Nanos, SCHEMA_VERSION};
use assay_probe::pins::{HPKP, Pin, Pinned, of_file};
use assay_probe::tls::{Question, Roots, certificates};
use assay_probe::{Patience, Starttls, Target, Visit};
use assay_render::Style;
use assay_render::text::escape_line;
use clap::builder::PossibleValuesParser;
use std::path::Path;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  assay probe pins /etc/letsencrypt/live/example.org/cert.pem
  assay probe pins next.csr backup.key           pins of keys that are not in use yet
  assay probe pins example.org:443               what a server shows now
  assay probe pins mail.example.org:25 --starttls smtp
  openssl pkey -in key.pem -pubout | assay probe pins -

A pin is the SHA-256 of a public key, the same for the certificate, the request and the key.
Private keys are read for their public part and never shown. A file is named with a `/` or by a
name that is there; everything else is HOST:PORT.

Exit status: 0 done, 2 nothing to pin in it, 3 it cannot be read, or the server does not answer.";

/// Print public-key pins of certificates, CSRs, keys and servers
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// PEM or DER file, - for standard input, or HOST:PORT
    #[arg(value_name = "FILE|HOST:PORT", required = true)]
    of: Vec<String>,
    /// Set the host name in the DNS record of a file's key
    #[arg(long)]
    host: Option<String>,
    /// Start TLS within this protocol
    #[arg(long, value_name = "PROTOCOL",
        value_parser = PossibleValuesParser::new(Starttls::ALL.map(Starttls::name)))]
    starttls: Option<String>,
    /// Wait this long for one answer
    #[arg(long, value_name = "TIME", default_value = "5s")]
    timeout: Nanos,
    /// Stop after this time
    #[arg(
        long = "budget",
        alias = "deadline",
        value_name = "TIME",
        default_value = "60s"
    )]
    deadline: Nanos,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A public key with its pin and its source.
struct Found {
    of: String,
    pinned: Pinned,
    host: Option<(String, u16)>,
}

/// Runs `assay probe pins`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let host = match &args.host {
        Some(host) => Some(Target::parse(host, 443)?),
        None => None,
    };
    let mut all = Vec::new();
    for of in &args.of {
        all.extend(look(of, args, host.as_ref())?);
    }
    let style = context::style(global);
    print(&match args.json {
        true => json(&all),
        false => text(&all, style),
    })?;
    Ok(Status::Ok)
}

fn look(of: &str, args: &Args, host: Option<&Target>) -> anyhow::Result<Vec<Found>> {
    let path = Path::new(of);
    if is_server(of) {
        return server(of, args);
    }
    let bytes = match of {
        "-" => crate::input::bytes(path, 16 << 20, "certificates, requests or keys")?,
        _ => LiveHost
            .read(path)
            .map_err(|error| Unreadable(error.to_string()))?,
    };
    let found = of_file(&bytes).with_context(|| escape_line(of))?;
    let found = found.into_iter().map(|pinned| Found {
        of: of.to_owned(),
        pinned,
        host: host.map(|target| (target.host.clone(), target.port)),
    });
    Ok(found.collect())
}

fn server(of: &str, args: &Args) -> anyhow::Result<Vec<Found>> {
    let wait = (args.timeout, args.deadline);
    let (target, chain) = served_chain(of, args.starttls.as_deref(), wait)?;
    let mut all = Vec::new();
    for (place, der) in chain.iter().enumerate() {
        for pinned in of_file(der).with_context(|| of.to_owned())? {
            all.push(Found {
                of: of.to_owned(),
                pinned,
                // Only the first key is the server's own, which the DNS record is about.
                host: (place == 0).then(|| (target.host.clone(), target.port)),
            });
        }
    }
    Ok(all)
}

/// Returns the certificates of a server in DER. The first is the server's own. `wait` contains the time limits of one
/// response and of the whole exchange.
pub(super) fn served_chain(
    of: &str,
    starttls: Option<&str>,
    wait: (Nanos, Nanos),
) -> anyhow::Result<(Target, Vec<Vec<u8>>)> {
    anyhow::ensure!(
        of.contains(':'),
        "{}: no such file. Write a server as HOST:PORT.",
        escape_line(of)
    );
    let starttls =
        starttls.and_then(|name| Starttls::ALL.into_iter().find(|one| one.name() == name));
    let target = Target::parse(of, 443)?;
    let patience = Patience {
        answer: Duration::from(wait.0),
        total: Duration::from(wait.1),
    };
    let visit = Visit::begin(&target, patience, seed()?).map_err(|error| unreadable(&error))?;
    let question = Question {
        starttls,
        name: None,
        roots: &Roots::these(&[]),
        now: context::now(),
    };
    let chain = certificates(&visit, &question).map_err(|error| at(&target, &error))?;
    Ok((target, chain))
}

/// Returns whether the argument is a server, that is neither a path nor an existing file.
pub(super) fn is_server(of: &str) -> bool {
    of != "-" && !of.contains('/') && LiveHost.stat(Path::new(of)).is_err()
}

/// Document of `assay probe pins`: pins of public keys.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Document<'a> {
    schema: u32,
    pins: Vec<Shown<'a>>,
}
/// A pin in its common formats.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Shown<'a> {
    /// Kind of the source: `certificate`, `request`, `private key` or `public key`.
    of: &'a str,
    /// `certificate`, `request`, `private key` or `public key`.
    kind: &'static str,
    /// Subject of the certificate or request; `None` if there is none.
    subject: Option<&'a str>,
    /// Algorithm and size of the key.
    key: &'a str,
    pin: &'a Pin,
    /// TLSA record for DNS; `None` if the host name is unknown.
    tlsa: Option<String>,
    curl: String,
    android: String,
    ios: String,
}

fn json(all: &[Found]) -> String {
    let pins = all.iter().map(|Found { of, pinned, host }| Shown {
        of,
        kind: pinned.kind,
        subject: pinned.subject.as_deref(),
        key: &pinned.key,
        pin: &pinned.pin,
        tlsa: host
            .as_ref()
            .map(|(host, port)| pinned.pin.tlsa(*port, host)),
        curl: pinned.pin.curl(),
        android: pinned.pin.android(),
        ios: pinned.pin.ios(),
    });
    let document = Document {
        schema: SCHEMA_VERSION,
        pins: pins.collect(),
    };
    format!("{:#}\n", serde_json::json!(document))
}

/// Formats pins as text. The lines are never wrapped, so that users can copy the pins.
fn text(all: &[Found], style: Style) -> String {
    let mut out = String::new();
    for found in all {
        let subject = found
            .pinned
            .subject
            .as_deref()
            .map(|subject| format!(" of {}", escape_line(subject)));
        let title = format!(
            "{}: {}{}, {}",
            escape_line(&found.of),
            found.pinned.kind,
            subject.unwrap_or_default(),
            found.pinned.key
        );
        out.push_str(&style.bold(&title));
        out.push('\n');
        let (host, port) = found.host.clone().unwrap_or(("HOST".to_owned(), 443));
        for (label, form) in [
            ("DANE", found.pinned.pin.tlsa(port, &host)),
            (
                "curl",
                format!("--pinnedpubkey '{}'", found.pinned.pin.curl()),
            ),
            ("Android", found.pinned.pin.android()),
            ("iOS", found.pinned.pin.ios()),
        ] {
            out.push_str(&format!("  {label:<9}{form}\n"));
        }
        out.push('\n');
    }
    let where_to = "DANE: RFC 6698 and RFC 7671, needs DNSSEC. Android: pin-set in \
        network_security_config.xml. iOS: NSAppTransportSecurity, NSPinnedDomains, \
        NSPinnedLeafIdentities. Always pin a second key that is kept apart, or a lost key locks \
        everybody out.";
    style.write_paragraph(&mut out, "", 0, where_to);
    style.write_paragraph(&mut out, "", 0, HPKP);
    out
}
