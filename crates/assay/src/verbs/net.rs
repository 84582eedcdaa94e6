//! `assay net`: tests a network with many devices, and gives a verdict for each person.

mod client;
mod compare;
pub mod run;
mod serve;
pub mod trial;

use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use assay_net::client::ServerLink;
use assay_net::invite::Invitation;

const EXAMPLES: &str = "\
Examples:
  assay net serve --listen 192.168.1.5:7443
                                  on a machine with a cable; prints an address for clients and one
                                  for controllers
  assay net client 'https://192.168.1.5:7443/#…'
                                  on every device; the same address in a browser is for phones
  assay net run four --server 'https://192.168.1.5:7443/#…' --html r.html
                                  four people at once: who noticed what
  assay net run --list            plans and roles
  assay net compare a.json b.json which network would people choose?
  assay net trial …               the same in turns, with an error rate: `assay net trial --help`
  assay net run evening.toml      a plan of your own; the server is in ASSAY_NET_SERVER

Nobody is let in without the token in the address, and the certificate has to be the address's.";

/// Measure what each person on a shared network notices under load
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    verb: NetVerb,
}

#[derive(clap::Subcommand)]
enum NetVerb {
    /// Serve as the peer that clients load, and start runs
    Serve(serve::Args),
    /// Join a server as a device and take part in its runs
    Client(client::Args),
    /// Start a run and report what each person noticed
    Run(run::Args),
    /// Compare two runs: which network would people choose?
    Compare(compare::Args),
    /// Test two settings of a network in turn, with a verdict
    Trial(trial::Args),
}

/// Runs `assay net`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    match &args.verb {
        NetVerb::Serve(args) => serve::run(args),
        NetVerb::Client(args) => client::run(args),
        NetVerb::Run(args) => run::run(args, global),
        NetVerb::Compare(args) => compare::run(args, global),
        NetVerb::Trial(args) => trial::run(args, global),
    }
}

/// Parses a server address. The address is read from FILE for `@FILE`, so that other users cannot see the address in
/// the list of processes.
fn link(address: &str) -> anyhow::Result<ServerLink> {
    let text = match address.strip_prefix('@') {
        Some(path) => read(path)?,
        None => address.to_owned(),
    };
    let invitation = Invitation::read(&text).map_err(|why| {
        anyhow::anyhow!("this is not the address of an `assay net` server: {why}")
    })?;
    Ok(ServerLink::new(&invitation)?)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the user named this file on the command line"
)]
fn read(path: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}
