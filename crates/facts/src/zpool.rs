//! `zpool status -LP` (zpool-status(8)): the devices of a pool.

/// A line of the tree under `config:`: how far it is indented, and its name.
fn tree(status: &str) -> impl Iterator<Item = (usize, &str)> {
    let config = status
        .lines()
        .skip_while(|line| line.trim() != "config:")
        .skip(1);
    let lines = config.take_while(|line| !line.starts_with("errors:"));
    lines.filter_map(|line| {
        let line = line.strip_prefix('\t').unwrap_or(line);
        let indent = line.len() - line.trim_start_matches(' ').len();
        Some((indent, line.split_whitespace().next()?))
    })
}

/// Full paths of the leaf devices, in the order of the listing. Logs, caches and spares are
/// devices of the pool too.
pub(crate) fn leaves(status: &str) -> Vec<String> {
    tree(status)
        .map(|(_, name)| name)
        .filter(|name| name.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

/// One line a top-level device: `mirror: /dev/sda1 /dev/sdb1`, `logs /dev/nvme0n1p1`.
pub(crate) fn layout(status: &str, pool: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut class = String::new();
    for (indent, name) in tree(status).filter(|(_, name)| *name != "NAME") {
        match indent {
            0 if name == pool => class.clear(),
            0 => class = format!("{name} "),
            2 if name.starts_with('/') => lines.push(format!("{class}{name}")),
            // The number behind the hyphen only counts them.
            2 => lines.push(format!(
                "{class}{}:",
                name.rsplit_once('-').map_or(name, |(kind, _)| kind)
            )),
            _ => {
                if let Some(line) = lines.last_mut() {
                    line.push(' ');
                    line.push_str(name);
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = include_str!("../fixtures/zpool-status-from-documentation.txt");

    #[test]
    fn devices_of_every_class() {
        assert_eq!(
            leaves(STATUS),
            [
                "/dev/sda1",
                "/dev/sdb1",
                "/dev/sdd1",
                "/dev/nvme0n1p1",
                "/dev/sdc1"
            ]
        );
        assert!(leaves("cannot open 'x': no such pool\n").is_empty());
    }

    #[test]
    fn layout_of_every_class() {
        let lines = [
            "mirror: /dev/sda1 /dev/sdb1",
            "/dev/sdd1",
            "logs /dev/nvme0n1p1",
            "spares /dev/sdc1",
        ];
        assert_eq!(layout(STATUS, "tank"), lines);
    }
}
