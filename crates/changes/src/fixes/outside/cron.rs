//! cron: writes a file to /etc/cron.d, which both Debian's cron and cronie read. The file starts a check every minute
//! and at boot.

use super::{OutsideError, Places, WatchedChange, write_file};
use crate::fixes::program::find_processes;
use assay_host::HostMut;
use std::path::Path;

const DIR: &str = "/etc/cron.d";

/// Checks whether a cron runs that reads /etc/cron.d.
pub(super) fn check_running(host: &dyn HostMut) -> Result<(), String> {
    if !host.exists(Path::new(DIR)).unwrap_or(false) {
        return Err(format!("there is no {DIR}"));
    }
    let reads_it = |process: &Path| {
        // The cron of busybox has the same name and does not read the directory.
        let program = host.link(&process.join("exe")).unwrap_or_default();
        !program.to_string_lossy().contains("busybox")
    };
    let all = ["cron", "crond"]
        .into_iter()
        .flat_map(|name| find_processes(host, name));
    match all.into_iter().any(|process| reads_it(&process)) {
        true => Ok(()),
        false => Err(format!("no cron runs that reads {DIR}")),
    }
}

pub(super) fn cron_file(order: &WatchedChange) -> String {
    format!("{DIR}/{}", order.name())
}

pub(super) fn write_cron_file(order: &WatchedChange, places: &Places) -> Result<(), OutsideError> {
    let path = places.at(&cron_file(order));
    write_file(&path, crontab_text(order).as_bytes(), 0o644).map_err(OutsideError::file(&path))
}

fn crontab_text(order: &WatchedChange) -> String {
    let (session, command) = (&order.session, order.command());
    format!(
        "# Made by assay: undoes change {session} unless it is confirmed; it goes with the change.\n\
         SHELL=/bin/sh\n\
         PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         @reboot root {command} >/dev/null 2>&1\n\
         * * * * * root {command} >/dev/null 2>&1\n"
    )
}
