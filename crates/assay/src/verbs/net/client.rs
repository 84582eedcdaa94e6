//! `assay net client`: joins a server as a device.

use crate::context::on_signals;
use crate::status::Status;
use assay_net::client::{self, ClientEvent};
use assay_render::text::escape_line;

/// Arguments of `assay net client`.
#[derive(clap::Args)]
pub struct Args {
    /// Address for clients that `assay net serve` printed, or @FILE
    #[arg(
        value_name = "SERVER",
        env = "ASSAY_NET_SERVER",
        hide_env_values = true
    )]
    server: String,
    /// Name this device [default: its host name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// End after N runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Show no messages
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Status> {
    let link = super::link(&args.server)?;
    let cancel = on_signals()?;
    let host = || {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    };
    let name = args.name.clone().unwrap_or_else(host);
    let agent = format!("assay {}", env!("CARGO_PKG_VERSION"));
    let mut lost = false;
    let mut tell = |event: ClientEvent<'_>| {
        if args.quiet {
            return;
        }
        match event {
            ClientEvent::Joined(name) => {
                lost = false;
                eprintln!("joined as {}; waiting for a run", escape_line(name));
            }
            ClientEvent::Begins(order) => {
                let roles: Vec<String> = order
                    .roles
                    .iter()
                    .map(|role| escape_line(&role.about))
                    .collect();
                eprintln!("{}: {}", escape_line(&order.person), roles.join("; "));
            }
            ClientEvent::Delivered(_) => eprintln!("delivered; waiting for the verdict"),
            ClientEvent::Verdict(verdict) => eprintln!("{}", escape_line(&verdict.text)),
            // Printed once, not every second.
            ClientEvent::Lost(error) if !lost => {
                lost = true;
                eprintln!("the server is out of reach ({error}); trying again for a minute");
            }
            ClientEvent::Lost(_) => {}
        }
    };
    let stop = || cancel.is_cancelled();
    client::run(&link, &name, &agent, args.runs, &stop, &mut tell)?;
    Ok(match stop() {
        true => Status::Interrupted,
        false => Status::Ok,
    })
}
