//! Finds the directories with the guests of this Proxmox VE node. `/etc/pve/qemu-server` and `/etc/pve/lxc` are
//! symbolic links into `/etc/pve/nodes/NODE` (pmxcfs(8)). Copies of some files lack these links.

use crate::gather::{Gather, lossy};
use std::path::Path;

const NODES: &str = "/etc/pve/nodes";

/// Returns the directory with the guests of this node; `kind` is `qemu-server` or `lxc`. Without the link, the node is
/// the only one in the tree, or the one that `/etc/pve/local` or `/etc/hostname` names.
pub(crate) fn directory(g: &Gather<'_>, kind: &str) -> String {
    let usual = format!("/etc/pve/{kind}");
    if g.host.list(Path::new(&usual)).is_ok() {
        return usual;
    }
    let nodes = g.host.list(Path::new(NODES)).unwrap_or_default();
    let nodes: Vec<String> = nodes.iter().map(|node| lossy(node)).collect();
    let local = g.host.link(Path::new("/etc/pve/local"));
    let local = local.ok().and_then(|target| target.file_name().map(lossy));
    let name = || g.host.read_text(Path::new("/etc/hostname")).ok();
    let own = match nodes.as_slice() {
        [only] => Some(only.clone()),
        _ => local.or_else(|| Some(name()?.trim().split('.').next()?.to_owned())),
    };
    match own.filter(|own| nodes.contains(own)) {
        Some(node) => format!("{NODES}/{node}/{kind}"),
        None => usual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn the_own_node() {
        let at = |host: &Recorded| directory(&Gather::new(host), "qemu-server");
        let host = Recorded::new().file("/etc/pve/nodes/a/qemu-server/100.conf", "");
        assert_eq!(at(&host), "/etc/pve/nodes/a/qemu-server");
        let host = host.file("/etc/pve/nodes/b/qemu-server/101.conf", "");
        assert_eq!(at(&host), "/etc/pve/qemu-server");
        let named = Recorded::new()
            .file("/etc/pve/nodes/a/qemu-server/100.conf", "")
            .file("/etc/pve/nodes/b/qemu-server/101.conf", "")
            .file("/etc/hostname", "b.example.org\n");
        assert_eq!(at(&named), "/etc/pve/nodes/b/qemu-server");
        let host = host.linked("/etc/pve/local", "nodes/a");
        assert_eq!(at(&host), "/etc/pve/nodes/a/qemu-server");
        let host = host.file("/etc/pve/qemu-server/100.conf", "");
        assert_eq!(at(&host), "/etc/pve/qemu-server");
    }
}
