//! `assay net serve`: runs the server on which clients generate load.

use crate::context::{on_signals, paragraph, print};
use crate::status::Status;
use assay_net::role::Role;
use assay_net::server::NetServer;
use assay_net::server::hub::VerdictWriter;
use assay_net::verdict::PersonVerdict;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Arguments of `assay net serve`.
#[derive(clap::Args)]
pub struct Args {
    /// Listen here, TCP and UDP, on the network to measure
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7443")]
    listen: SocketAddr,
    /// Announce this address to clients, when listening on all addresses
    #[arg(long, value_name = "ADDRESS")]
    reached_at: Option<IpAddr>,
    /// Write the clients' address to this private file, for @FILE
    #[arg(long, value_name = "FILE")]
    client_file: Option<PathBuf>,
    /// Write the controllers' address to this private file
    #[arg(long, value_name = "FILE")]
    controller_file: Option<PathBuf>,
    /// Show no QR code
    #[arg(long)]
    no_qr: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Status> {
    let cancel = on_signals()?;
    let host = match args.reached_at.unwrap_or(args.listen.ip()) {
        all if all.is_unspecified() => anyhow::bail!(
            "--listen {} is every address of this machine: say by which one clients reach it with --reached-at",
            args.listen
        ),
        one => one,
    };
    let server = NetServer::bind(args.listen, &[host.to_string()])?;
    server.write_verdicts_with(VerdictWriter::new(write_verdict));
    let invitations = (server.for_clients(host), server.for_controllers(host));
    let (Some(clients), Some(controllers)) = invitations else {
        anyhow::bail!("{host} cannot stand in an address: name another with --reached-at");
    };
    let (clients, controllers) = (clients.to_string(), controllers.to_string());
    for (file, text) in [
        (&args.client_file, &clients),
        (&args.controller_file, &controllers),
    ] {
        if let Some(file) = file {
            crate::context::write_secret(file, &format!("{text}\n"))?;
        }
    }
    let mut said = format!("listening on {}, TCP and UDP", server.address());
    let others: Vec<String> = server.other_ports().iter().map(u16::to_string).collect();
    said += &format!(
        "; port {} is for more connections of browsers\n\n",
        others.join(", ")
    );
    said += &format!("for clients (and browsers of phones):\n  assay net client '{clients}'\n\n");
    if !args.no_qr {
        said += &qr(&clients);
    }
    said += &format!(
        "for controllers, which start runs:\n  assay net run four --server '{controllers}'\n\n"
    );
    if host == IpAddr::from(Ipv4Addr::LOCALHOST) {
        said += &paragraph(
            "Only this machine can reach it: --listen ADDRESS:7443 with an address of this machine opens it to a \
             network.",
            0,
        );
    }
    print(&said)?;
    server.serve(&|| cancel.is_cancelled())?;
    Ok(Status::Ok)
}

/// Writes the verdict that a device shows after a run. It is the sentence of the report, with local times of day.
fn write_verdict(verdict: &PersonVerdict, roles: &[Role], since_us: i64) -> String {
    let now = crate::context::now();
    let began = now.checked_sub(jiff::SignedDuration::from_micros(since_us));
    let began = began.unwrap_or(now);
    assay_report::net::verdict(verdict, roles, began, &jiff::tz::TimeZone::system())
}

/// Formats a QR code in half blocks, two modules per character line. It is dark on light on any terminal.
fn qr(text: &str) -> String {
    use qrcodegen::{QrCode, QrCodeEcc};
    let Ok(code) = QrCode::encode_text(text, QrCodeEcc::Low) else {
        return String::new();
    };
    const QUIET: i32 = 2;
    let (from, to) = (-QUIET, code.size() + QUIET);
    let mut out = String::new();
    let mut y = from;
    while y < to {
        for x in from..to {
            // Light modules are drawn, so that the code is correct on a dark terminal; scanners
            // accept both.
            out.push(match (code.get_module(x, y), code.get_module(x, y + 1)) {
                (false, false) => '█',
                (false, true) => '▀',
                (true, false) => '▄',
                (true, true) => ' ',
            });
        }
        out.push('\n');
        y += 2;
    }
    out.push('\n');
    out
}
