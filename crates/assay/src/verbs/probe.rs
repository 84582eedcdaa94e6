//! `assay probe`: inspects a host over the network.

mod text;

use crate::context::{self, print};
use crate::global::Global;
use crate::status::{Status, Unreadable};
use anyhow::Context as _;
use assay_model::{Nanos, SCHEMA_VERSION};
use assay_probe::tls::Roots;
use assay_probe::{Patience, ProbeError, Remark, Severity, Starttls, Target, Visit};
use assay_probe::{dtls, http, smb, ssh, tls};
use clap::builder::PossibleValuesParser;
use clap::{Args as Arguments, Subcommand};
use serde::Serialize;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  assay probe tls example.org              versions, suites, groups, certificates, Heartbleed
  assay probe tls mail.example.org --starttls smtp
  assay probe tls 192.0.2.7:8443 --name internal.example.org
  assay probe dtls vpn.example.org:4433    Heartbleed over UDP
  assay probe ssh example.org:2222         what is offered, host keys
  assay probe smb nas.example.org          dialects, signing
  assay probe http https://example.org     headers, security.txt
  assay probe tls example.org --json | jq '.tls.remarks[].id'

Only what you name is asked, by at most two connections at once. Nobody logs in, nothing is
written, and no memory of the server is read: Heartbleed is shown by a heartbeat that asks for
nothing. What does not come out in time is `unknown`, never fine.

Exit status: 0 nothing that matters, 1 something weak or dangerous, 2 error, 3 no answer, or
something could not be found out.";

/// Inspect a host from outside: TLS, SSH, SMB, HTTP, pins
#[derive(Arguments)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    how: How,
}

#[derive(Arguments)]
struct How {
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
    /// Wait this long for one answer
    #[arg(long, global = true, value_name = "TIME", default_value = "5s")]
    timeout: Nanos,
    /// Stop after this time
    #[arg(
        long = "budget",
        alias = "deadline",
        global = true,
        value_name = "TIME",
        default_value = "60s"
    )]
    deadline: Nanos,
}

#[derive(Subcommand)]
enum What {
    /// Inspect TLS: versions, suites, groups, certificates, Heartbleed
    Tls(Tls),
    /// Test for Heartbleed over UDP
    Dtls {
        /// Host and port
        #[arg(value_name = "HOST:PORT")]
        host: String,
    },
    /// Inspect SSH: algorithms, host keys and their sizes
    Ssh {
        /// Host, and port if it is not 22
        #[arg(value_name = "HOST[:PORT]")]
        host: String,
    },
    /// Inspect SMB: dialects and signing
    Smb {
        /// Host, and port if it is not 445
        #[arg(value_name = "HOST[:PORT]")]
        host: String,
    },
    /// Inspect HTTP: headers, security.txt, objects open to anybody
    Http(Http),
}

#[derive(Arguments)]
struct Tls {
    /// Host, and port if it is not 443 (or that of --starttls)
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// Start TLS within this protocol
    #[arg(long, value_name = "PROTOCOL",
        value_parser = PossibleValuesParser::new(Starttls::ALL.map(Starttls::name)))]
    starttls: Option<String>,
    /// Ask for this name instead of HOST
    #[arg(long)]
    name: Option<String>,
}

#[derive(Arguments)]
struct Http {
    /// http://HOST[:PORT] or https://HOST[:PORT] [default: https]
    #[arg(value_name = "URL")]
    url: String,
    /// Send this name (SNI, Host header) instead of the host's
    #[arg(long)]
    name: Option<String>,
    /// Test whether strangers can read your numbered object at PATH
    #[arg(long, value_name = "PATH")]
    link: Option<String>,
}

/// Runs `assay probe`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let style = context::style(global);
    let how = &args.how;
    match &args.what {
        What::Tls(asked) => {
            let report = scan_tls(asked, how)?;
            let shown = || text::tls(&report, style);
            finish(
                Probed::Tls(&report),
                &report.remarks,
                &report.unknown,
                how,
                shown,
            )
        }
        What::Dtls { host } => {
            anyhow::ensure!(
                host.rsplit(':')
                    .next()
                    .is_some_and(|port| port.parse::<u16>().is_ok()),
                "DTLS has no port of its own: write HOST:PORT"
            );
            let target = Target::parse(host, 0)?;
            let address = *target
                .resolve(how.limits().answer)
                .map_err(|error| unreadable(&error))?
                .first()
                .context("no address")?;
            let visit = Visit::at(&target, address, how.limits(), seed()?);
            let report = dtls::scan(&visit).map_err(|error| at(&target, &error))?;
            let shown = || text::dtls(&report, style);
            finish(
                Probed::Dtls(&report),
                &report.remarks,
                &report.unknown,
                how,
                shown,
            )
        }
        What::Ssh { host } => {
            let visit = how.visit(&Target::parse(host, 22)?)?;
            let report = ssh::scan(&visit).map_err(|error| at(&visit.place().target, &error))?;
            let shown = || text::ssh(&report, style);
            finish(
                Probed::Ssh(&report),
                &report.remarks,
                &report.unknown,
                how,
                shown,
            )
        }
        What::Smb { host } => {
            let visit = how.visit(&Target::parse(host, 445)?)?;
            let report = smb::scan(&visit).map_err(|error| at(&visit.place().target, &error))?;
            let shown = || text::smb(&report, style);
            finish(
                Probed::Smb(&report),
                &report.remarks,
                &report.unknown,
                how,
                shown,
            )
        }
        What::Http(asked) => {
            let report = scan_http(asked, how)?;
            let shown = || text::http(&report, style);
            finish(
                Probed::Http(&report),
                &report.remarks,
                &report.unknown,
                how,
                shown,
            )
        }
    }
}

fn scan_tls(asked: &Tls, how: &How) -> anyhow::Result<tls::Report> {
    let named = asked.starttls.as_deref();
    let starttls = named.and_then(|name| Starttls::ALL.into_iter().find(|one| one.name() == name));
    let target = Target::parse(&asked.host, starttls.map_or(443, Starttls::port))?;
    if let Some(name) = &asked.name {
        Target::parse(name, 443)?;
    }
    let visit = how.visit(&target)?;
    let question = tls::Question {
        starttls,
        name: asked.name.as_deref(),
        roots: &Roots::of_this_machine(),
        now: context::now(),
    };
    let report = tls::scan(&visit, &question);
    if !report.is_tls() {
        let why = report.unknown.first().cloned().unwrap_or_default();
        return Err(Unreadable(format!("{target}: TLS did not come about: {why}")).into());
    }
    Ok(report)
}

fn scan_http(asked: &Http, how: &How) -> anyhow::Result<http::Report> {
    let (https, rest) = match asked.url.split_once("://") {
        Some(("http", rest)) => (false, rest),
        Some(("https", rest)) => (true, rest),
        Some((other, _)) => anyhow::bail!("`{other}` is not http or https"),
        None => (true, asked.url.as_str()),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let target = Target::parse(rest, if https { 443 } else { 80 })?;
    if let Some(name) = &asked.name {
        Target::parse(name, 443)?;
    }
    let visit = how.visit(&target)?;
    let question = http::Question {
        https,
        name: asked.name.as_deref(),
        link: asked.link.as_deref(),
        now: context::now(),
    };
    http::scan(&visit, &question).map_err(|error| at(&target, &error))
}

impl How {
    fn limits(&self) -> Patience {
        Patience {
            answer: Duration::from_nanos(self.timeout.0),
            total: Duration::from_nanos(self.deadline.0),
        }
    }

    fn visit(&self, target: &Target) -> anyhow::Result<Visit> {
        Visit::begin(target, self.limits(), seed()?).map_err(|error| unreadable(&error))
    }
}

/// Returns the seed of the random values in handshakes.
pub fn seed() -> anyhow::Result<[u8; 32]> {
    let mut seed = [0; 32];
    seed.copy_from_slice(context::random_uid()?.as_bytes());
    Ok(seed)
}

/// Converts an error to one that gives exit status 3.
pub fn unreadable(error: &ProbeError) -> anyhow::Error {
    Unreadable(error.to_string()).into()
}

/// Like [`unreadable`], but the message begins with the host.
pub fn at(target: &Target, error: &ProbeError) -> anyhow::Error {
    match error {
        ProbeError::Connect { .. } => unreadable(error),
        _ => Unreadable(format!("{target}: {error}")).into(),
    }
}

/// Document of `assay probe`: results of the probe of one host.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    probed: Probed<'a>,
}

/// Results for each kind of probe.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Probed<'a> {
    Tls(&'a tls::Report),
    Dtls(&'a dtls::Report),
    Ssh(&'a ssh::Report),
    Smb(&'a smb::Report),
    Http(&'a http::Report),
}

/// Prints the results and returns the exit status.
fn finish(
    probed: Probed<'_>,
    remarks: &[Remark],
    unknown: &[String],
    how: &How,
    shown: impl FnOnce() -> String,
) -> anyhow::Result<Status> {
    print(&match how.json {
        true => format!(
            "{:#}\n",
            serde_json::to_value(Document {
                schema: SCHEMA_VERSION,
                probed
            })?
        ),
        false => shown(),
    })?;
    let matters = remarks.iter().any(|one| one.severity > Severity::Note);
    Ok(match (matters, unknown.is_empty()) {
        (true, _) => Status::Findings,
        (false, false) => Status::Unreadable,
        (false, true) => Status::Ok,
    })
}
