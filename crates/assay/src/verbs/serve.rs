//! `assay serve`: shows the store in a browser.

mod install;

use crate::context;
use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use assay_host::LiveHost;
use assay_model::{Facts, TargetInfo};
use assay_serve::{ActionOptions, Server, SiteOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay serve                            on http://127.0.0.1:7878/, for this machine only
  assay serve --listen 127.0.0.1:9000    on another port
  ssh -L 7878:127.0.0.1:7878 root@box1 assay serve
                                         the store of another machine, in the browser here
  assay serve --listen 0.0.0.0:7878 --token-file /etc/assay/token
                                         for others as well, who need the token
  assay serve install                    a service of systemd, started by the first visitor
  assay serve --allow-actions            start and stop trials, runs and tuning in the browser
  assay lab demo --serve                 the same with a made-up fleet
  curl http://127.0.0.1:7878/api/v1/runs the documents of --json
  curl http://127.0.0.1:7878/metrics     gauges for Prometheus

Nothing is changed: the server only reads the store, and what `assay fleet check` kept of
machines. With --allow-actions it starts this assay itself, with the safeguards of the command
line, and records that in serve/actions.jsonl below the state directory. It speaks HTTP
without TLS; for others put a proxy with TLS before it, or use ssh.

Exit status: 0 ended by Ctrl-C, 2 error (port in use, no token).";

/// Show the store in a browser
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    service: Option<ServiceVerb>,
    /// Listen on this address and port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Read the token that visitors need from this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Let visitors with the token start and stop measurements
    #[arg(long)]
    allow_actions: bool,
    /// Accept requests for this host name (repeatable)
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    own: super::advice::Own,
}

#[derive(clap::Subcommand)]
enum ServiceVerb {
    Install(install::Install),
    Remove(install::Remove),
}

/// Runs `assay serve`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    match &args.service {
        Some(ServiceVerb::Install(install)) => return install.run(global),
        Some(ServiceVerb::Remove(remove)) => return remove.run(),
        None => {}
    }
    let store = context::store_path(global)?;
    let (token, is_made) = match &args.token_file {
        Some(path) => (Some(read_token(path)?), false),
        // Without a token every user of this machine could start commands as this one.
        None if args.allow_actions => (Some(context::random_uid()?), true),
        None => (None, false),
    };
    let shown_token = token.clone().filter(|_| is_made);
    let options = SiteOptions {
        store: store.clone(),
        history: context::state_dir()?.join("fleet"),
        accept: super::check::usual_accept_file(),
        duplicates: find_duplicates(),
        pool: Some(super::pool::pool_dir(store.clone())),
        catalogue: super::advice::catalogue(&args.own)?,
        read_facts: Box::new(read_facts),
        token,
        names: args.names.clone(),
        version: env!("CARGO_PKG_VERSION"),
        machine: assay_facts::machine(&LiveHost).map(|machine| machine.shown().to_owned()),
        actions: args
            .allow_actions
            .then(|| describe_actions(args, &store))
            .transpose()?,
        notice: None,
    };
    serve_until_signal(args.listen, options, shown_token.as_deref())
}

/// Returns what visitors with the token may start: this program with the store and the advice of this server.
fn describe_actions(args: &Args, store: &Path) -> anyhow::Result<ActionOptions> {
    Ok(ActionOptions {
        program: std::env::current_exe().context("cannot find the program file of assay")?,
        store: store.to_owned(),
        advice_dir: args.own.advice_dir.clone(),
        log: context::state_dir()?.join("serve/actions.jsonl"),
    })
}

/// Returns the path of the index of `assay dups`. The file need not exist.
fn find_duplicates() -> Option<PathBuf> {
    let named = std::env::var_os("ASSAY_DUPS_INDEX").map(PathBuf::from);
    named.or_else(|| super::dups::usual_index().ok())
}

/// Serves a site until the user ends the process.
pub(super) fn serve_until_signal(
    listen: SocketAddr,
    options: SiteOptions,
    token: Option<&str>,
) -> anyhow::Result<Status> {
    let cancel = context::on_signals()?;
    let mut passed = listenfd::ListenFd::from_env();
    // A socket of systemd is there already: its unit names the address.
    let server = match passed.take_tcp_listener(0) {
        Ok(Some(listener)) => Server::on(listener, options)?,
        Ok(None) => Server::bind(listen, options)?,
        Err(error) => return Err(error).context("the socket that systemd passed is no TCP socket"),
    };
    let address = server
        .local_addr()
        .context("cannot read the address of the socket")?;
    let query = token.map_or(String::new(), |token| format!("?token={token}"));
    eprintln!("assay is on http://{address}/{query} (Ctrl-C ends it)");
    server.run(move || cancel.is_cancelled())?;
    Ok(Status::Ok)
}

/// Reads the token from the first line of a file.
fn read_token(path: &Path) -> anyhow::Result<String> {
    use assay_host::Host as _;
    let text = LiveHost
        .read_text(path)
        .with_context(|| format!("cannot read the token from {}", path.display()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    anyhow::ensure!(
        !token.is_empty(),
        "cannot use {}: its first line is empty. Write a token into it: openssl rand -hex 16",
        path.display()
    );
    Ok(token.to_owned())
}

/// Reads the facts of this machine, and of the file system of the current directory.
pub(super) fn read_facts() -> (Facts, Option<TargetInfo>) {
    let found = std::env::current_dir()
        .ok()
        .and_then(|path| assay_facts::survey_at(&LiveHost, &path).ok());
    match found {
        Some((survey, target)) => (survey.facts, Some(target)),
        None => (assay_facts::survey(&LiveHost, &[]).facts, None),
    }
}
