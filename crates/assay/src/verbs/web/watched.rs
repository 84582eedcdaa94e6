//! Counts the CPU time of each server, on this machine or on another machine over ssh.

use super::Args;
use anyhow::{anyhow, ensure};
use assay_render::text::escape_line;
use assay_web::{ServerProcesses, Target, There};
use std::sync::Arc;

/// The ssh sessions with the machines of the servers.
pub struct Watch {
    /// Session for each target; `None` if the server of the target is on this machine.
    of: Vec<Option<Arc<There>>>,
}

impl Watch {
    /// Logs in to the machines of `--server-host`.
    pub fn open(args: &Args, stop: &dyn Fn() -> bool) -> anyhow::Result<Self> {
        let (hosts, urls) = (&args.server_hosts, args.urls.len());
        ensure!(
            hosts.len() <= 1 || hosts.len() == urls,
            "--server-host is said {} times for {urls} URLs: say it once for all of them, or once for each, in \
             their order",
            hosts.len()
        );
        let mut known: Vec<(&String, Arc<There>)> = Vec::new();
        let mut of = Vec::new();
        for at in 0..urls {
            let host = match &hosts[..] {
                [one] => Some(one),
                each => each.get(at),
            };
            let Some(host) = host.filter(|host| *host != "-") else {
                of.push(None);
                continue;
            };
            let open = known.iter().find(|(name, _)| *name == host);
            let there = match open {
                Some((_, there)) => Arc::clone(there),
                None => {
                    let session = match args.from.is_empty() {
                        true => args.remote.session(host)?,
                        false => args.remote.how.session(host),
                    };
                    let there = There::open(&session, stop).map_err(crate::remote::unreached)?;
                    known.push((host, Arc::clone(&there)));
                    there
                }
            };
            of.push(Some(there));
        }
        Ok(Self { of })
    }

    /// Returns the processes that listen on the port of each target. For targets on this machine, `here` returns them.
    pub fn servers(
        &self,
        args: &Args,
        ports: &[u16],
        here: impl Fn(usize) -> anyhow::Result<ServerProcesses>,
    ) -> anyhow::Result<Vec<ServerProcesses>> {
        let both = ports.iter().zip(&self.of).enumerate();
        both.map(|(at, (port, there))| match there {
            None => here(at),
            Some(there) => {
                let found = match (&args.server_pid, &args.cgroup) {
                    (Some(pid), _) => there.process(*pid),
                    (_, Some(group)) => there.group(group),
                    _ => there.listening(*port),
                };
                found.map_err(|why| anyhow!("{}: {}", there.name(), escape_line(why.as_str())))
            }
        })
        .collect()
    }

    /// Returns a message for each target whose session with the server's machine has ended.
    pub fn lost(&self) -> Vec<(usize, String)> {
        let each = self.of.iter().enumerate();
        each.filter_map(|(target, there)| {
            let why = there.as_ref()?.gone()?;
            let lost = format!("from some step on the CPU time of the server is not known: {why}");
            Some((target, escape_line(&lost)))
        })
        .collect()
    }
}

/// Returns the processes of a server on this machine.
pub fn here(args: &Args, target: &Target) -> anyhow::Result<ServerProcesses> {
    Ok(match (&args.server_pid, &args.cgroup) {
        (Some(pid), _) => ServerProcesses::process(*pid)?,
        (_, Some(group)) => ServerProcesses::group(group)?,
        _ if target.here => ServerProcesses::listening(&target.addresses[0]),
        _ => ServerProcesses::Unknown(
            "it is on another machine: --server-host reads it there".to_owned(),
        ),
    })
}
