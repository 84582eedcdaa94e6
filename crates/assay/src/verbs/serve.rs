//! `assay serve`: the store as pages in a browser.

use crate::context;
use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use assay_host::LiveHost;
use assay_model::{Facts, TargetInfo};
use assay_serve::{Server, SiteOptions};
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
  assay lab demo --serve                 the same with a made-up fleet
  curl http://127.0.0.1:7878/api/v1/runs the documents of --json
  curl http://127.0.0.1:7878/metrics     gauges for Prometheus

Nothing is changed: the server only reads the store, and what `assay fleet check` kept of
machines. It speaks HTTP without TLS; for others put a proxy with TLS before it, or use ssh.

Exit status: 0 ended by Ctrl-C, 2 error (port in use, no token).";

/// Show the store in a browser
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Listen on this address and port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Read the token that visitors need from this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Accept requests for this host name (repeatable)
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    own: super::advice::Own,
}

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let store = context::store_path(global)?;
    let options = SiteOptions {
        store: store.clone(),
        history: context::state_dir()?.join("fleet"),
        accept: context::own_advice().map(|dir| dir.with_file_name("accept.toml")),
        pool: Some(pool_dir(&store)),
        catalogue: super::advice::catalogue(&args.own)?,
        read_facts: Box::new(read_facts),
        token: args.token_file.as_deref().map(read_token).transpose()?,
        names: args.names.clone(),
        version: env!("CARGO_PKG_VERSION"),
        notice: None,
    };
    serve_until_signal(args.listen, options)
}

/// Returns the directory of shared trials, which lies beside the store.
fn pool_dir(store: &Path) -> PathBuf {
    let mut dir = store.as_os_str().to_owned();
    dir.push(".pool");
    dir.into()
}

/// Serves a site until the user ends it.
pub(super) fn serve_until_signal(
    listen: SocketAddr,
    options: SiteOptions,
) -> anyhow::Result<Status> {
    let cancel = context::on_signals()?;
    let server = Server::bind(listen, options)?;
    let address = server
        .local_addr()
        .context("cannot read the address of the socket")?;
    eprintln!("assay is on http://{address}/ (Ctrl-C ends it)");
    server.run(move || cancel.is_cancelled())?;
    Ok(Status::Ok)
}

/// Reads the first line of a file as the token.
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
