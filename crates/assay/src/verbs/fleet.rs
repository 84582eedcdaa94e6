//! `assay fleet`: works with many machines over plain ssh.

pub(super) mod ask;
mod check;
pub(super) mod facts;
pub(super) mod follow;
mod on_each_machine;

use crate::context::{self, print};
use crate::global::Global;
use crate::machine_source::How;
use crate::status::{Status, Unreadable};
use assay_fleet::{Inventory, InventoryError, Machine, SshSession};
use assay_render::text::escape_line;
use std::collections::BTreeSet;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay fleet list                             which machines there are, and in which groups
  assay fleet check web db1                    check a group and a machine, by finding
  assay fleet check 'web-*' --sudo             names in your ~/.ssh/config, read as root
  assay fleet check all --format prometheus -o /var/lib/node_exporter/assay.prom
                                               for monitoring; also nagios, html, json
  assay fleet facts all --key package.         which machine has which version
  assay fleet run db -- sync /srv              measure on each, one after the other
  assay fleet trial db -- noatime /srv --yes
                                               test advice on each; `assay fleet pool` takes all together
  assay fleet changed                          what changed on them since the last check
  ansible-inventory --list | assay fleet check all --ansible -
  assay fleet check nodes --proxmox root@pve1
                                               the nodes of its cluster; `guests` and pools are groups too

Nothing has to be installed on the machines: the script of `assay facts --script` goes in over
one ssh session for each, a bundle comes back, and all judging is done here. Bundles are kept, and
thinned as they grow old. Without an inventory the machines are those of your ~/.ssh/config.";

const INVENTORY: &str = "\
An inventory, ~/.config/assay/fleet.toml:
  sudo = true                            # for all, by `sudo -n`; machines may say otherwise
  deadline = 60                          # seconds
  [groups]
  web = [\"web1\", \"root@web2.example.org\"]
  db = [\"db-*\"]                          # names in the configuration of ssh
  [machines.web1]
  address = \"root@10.0.0.7\"              # as ssh takes it
  sudo = false";

/// Check, compare, watch and measure many machines over ssh
#[derive(clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{INVENTORY}"))]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the known machines
    List(List),
    /// Compare facts of machines, by value
    Facts(facts::Args),
    /// Check machines and group them by finding
    Check(check::Args),
    /// Measure on each machine in turn, as `assay run --host` does
    Run(on_each_machine::Args),
    /// Test advice on each machine in turn, as `assay trial --host` does
    Trial(on_each_machine::Args),
    /// Find disks slower than their siblings, on each machine
    Disks(on_each_machine::Args),
    /// Store a bundle that a machine sent, from standard input
    #[command(after_help = RECEIVE)]
    Receive {
        /// Name of the machine
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
}

const RECEIVE: &str = "\
For machines that may not be entered. In ~/.ssh/authorized_keys here, in front of the key of web1:
  command=\"assay fleet receive web1\",restrict ssh-ed25519 AAAA…
and on web1, from a timer, with the script of `assay facts --script`:
  sh /usr/local/sbin/collector | ssh -T assay@here

Whatever the machine asks for, it can only leave a bundle under this name. `assay fleet changed` then
tells what changed on it.";

/// The selected machines.
#[derive(clap::Args)]
pub struct Which {
    /// Groups, machines and patterns of names; `all` is every machine
    #[arg(value_name = "GROUP|MACHINE", required = true)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub known: Known,
    #[command(flatten)]
    pub how: How,
    /// No progress on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

/// Source of the inventory.
#[derive(clap::Args, Clone)]
pub struct Known {
    /// Read this inventory [default: $XDG_CONFIG_HOME/assay/fleet.toml]
    #[arg(long, value_name = "FILE", conflicts_with = "ansible")]
    pub inventory: Option<PathBuf>,
    /// Read the output of `ansible-inventory --list`; - is standard input
    #[arg(long, value_name = "FILE")]
    pub ansible: Option<PathBuf>,
    /// Ask this Proxmox VE node for running nodes and guests
    #[arg(long, value_name = "[USER@]NODE", conflicts_with_all = ["inventory", "ansible"])]
    pub proxmox: Option<String>,
}

/// Document of `assay fleet list`: the known machines.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(super) struct Inventoried<'a> {
    schema: u32,
    machines: Vec<Listed<'a>>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Listed<'a> {
    name: &'a str,
    /// Address of the machine for ssh.
    address: &'a str,
    groups: &'a BTreeSet<String>,
}

#[derive(clap::Args)]
struct List {
    /// Groups, machines and patterns of names
    #[arg(value_name = "GROUP|MACHINE", default_value = "all")]
    names: Vec<String>,
    #[command(flatten)]
    known: Known,
    /// Use this ssh configuration instead of your own
    #[arg(long, value_name = "FILE")]
    ssh_config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `assay fleet`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    match &args.action {
        Action::List(args) => list(args),
        Action::Facts(args) => facts::run(args, global),
        Action::Check(args) => check::run(args, global),
        Action::Run(args) => on_each_machine::run("run", args, global),
        Action::Trial(args) => on_each_machine::run("trial", args, global),
        Action::Disks(args) => on_each_machine::run("disks", args, global),
        Action::Receive { machine } => receive(machine, global),
    }
}

impl Known {
    /// Returns whether the command line selects a source of the inventory.
    pub fn is_said(&self) -> bool {
        self.inventory.is_some() || self.ansible.is_some() || self.proxmox.is_some()
    }

    /// Returns the inventory. Also returns whether machines that the inventory does not list are accepted, which is the
    /// case only without an inventory file.
    pub fn open(&self, ssh_config: Option<&std::path::Path>) -> anyhow::Result<(Inventory, bool)> {
        if let Some(file) = &self.ansible {
            return Ok((Inventory::of_ansible(file)?, false));
        }
        if let Some(node) = &self.proxmox {
            let session = SshSession {
                config: ssh_config.map(std::path::Path::to_owned),
                ..SshSession::new(node)
            };
            let all = Inventory::of_proxmox(&session, &mut |_| false);
            return match all {
                Err(InventoryError::Node(error)) => Err(crate::remote::unreached(error)),
                all => Ok((all?, false)),
            };
        }
        let usual = context::own_advice().map(|dir| dir.with_file_name("fleet.toml"));
        let usual = usual.filter(|path| path.exists());
        let file = self.inventory.clone().or(usual);
        let all = Inventory::open(file.as_deref(), ssh_config)?;
        Ok((all, file.is_none()))
    }
}

/// Stores a bundle from standard input under the name `machine`. The sender determines the contents, but not the name
/// or the time.
fn receive(machine: &str, global: &Global) -> anyhow::Result<Status> {
    assay_fleet::session::check_name(machine)?;
    let sent = context::read_bounded(assay_fleet::session::MAX_SENT)?;
    let catalogue = assay_advice::Catalogue::builtin()?;
    let bundle = assay_host::Bundle::read(&sent[..], "what it sent")
        .map_err(|error| Unreadable(error.to_string()))?;
    let judged = ask::judge(&bundle, &catalogue.all());
    let version = env!("CARGO_PKG_VERSION");
    let at = context::now();
    ask::history()?.keep(machine, &sent, at, version, &judged.checked)?;
    let followed = follow::Followed {
        host: machine,
        at,
        way: follow::SurveyMethod::Collector,
        facts: &judged.facts,
        checked: &judged.checked,
    };
    follow::follow(global, std::iter::once(followed));
    Ok(Status::Ok)
}

fn list(args: &List) -> anyhow::Result<Status> {
    let (all, _) = args.known.open(args.ssh_config.as_deref())?;
    let chosen = match args.names.as_slice() {
        [name] if name == "all" => all.all().cloned().collect(),
        names => all.choose(names, false)?,
    };
    if args.json {
        let one = |machine| {
            let machine: &Machine = machine;
            Listed {
                name: &machine.name,
                address: &machine.address,
                groups: &machine.groups,
            }
        };
        let document = serde_json::json!(Inventoried {
            schema: assay_model::SCHEMA_VERSION,
            machines: chosen.iter().map(one).collect(),
        });
        print(&format!("{document:#}\n"))?;
        return Ok(Status::Ok);
    }
    if chosen.is_empty() {
        eprintln!(
            "no machine is known: write an inventory (assay fleet --help shows one), or name one: assay fleet check \
             root@box1"
        );
        return Ok(Status::Ok);
    }
    let rows: Vec<Vec<String>> = chosen
        .iter()
        .map(|machine| {
            let groups: Vec<&str> = machine.groups.iter().map(String::as_str).collect();
            vec![
                escape_line(&machine.name),
                match machine.address == machine.name {
                    true => String::new(),
                    false => escape_line(&machine.address),
                },
                escape_line(&groups.join(", ")),
            ]
        })
        .collect();
    print(&assay_render::table::render_table(
        0,
        "lll",
        &["machine", "address", "groups"],
        &rows,
    ))?;
    Ok(Status::Ok)
}
