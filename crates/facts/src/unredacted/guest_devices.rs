//! Collects devices of virtual machines other than disks: network cards that QEMU emulates, and displays (VNC, SPICE)
//! that are reachable from the network, monitors, and shares of the whole host by a process of root.
//!
//! Sources are Proxmox, libvirt, running QEMU processes, and systemd units that start QEMU. For units, also collects
//! the processor and the disks as `vm.UNIT`.

use super::lines_of_files::{files, note, read};
use crate::collectors::daemons::lines::at_line;
use crate::collectors::{proxmox_guests, vm};
use crate::gather::{Gather, lossy};
use crate::qemu;
use assay_model::{FactKind, FactPlace};
use roxmltree::{Document, Node};
use std::path::Path;

const LIBVIRT: &str = "/etc/libvirt/qemu";
const LIBVIRT_USER: &str = "/etc/libvirt/qemu.conf";
const UNITS: &str = "/etc/systemd/system";
/// Models of network cards that QEMU emulates register by register, which is slow.
const EMULATED: [&str; 7] = [
    "e1000",
    "e1000e",
    "e1000-82545em",
    "rtl8139",
    "ne2k_pci",
    "ne2k_isa",
    "pcnet",
];
/// Operating systems without a virtio driver (Proxmox's `ostype`).
const OLD_SYSTEMS: [&str; 6] = ["l24", "w2k", "w2k3", "wxp", "wvista", "solaris"];

/// A device with the virtual machine to which it belongs, and the place where it is defined.
struct Device {
    guest: String,
    place: FactPlace,
    what: What,
}

enum What {
    Card(String),
    Screen {
        open: bool,
    },
    /// A control connection of QEMU, or its debugger.
    Monitor {
        open: bool,
    },
    /// A directory of the host in the guest. `None` if it is the root directory, and the user of the sharing process is
    /// unknown.
    Share {
        whole_machine: Option<bool>,
    },
}

pub(super) fn collect(g: &mut Gather<'_>) {
    let mut devices = of_proxmox(g);
    devices.extend(of_libvirt(g));
    devices.extend(of_processes(g));
    devices.extend(of_units(g));
    for (number, device) in devices.into_iter().enumerate() {
        let guest = ("guest", device.guest.into());
        let properties = match device.what {
            What::Card(model) => {
                let emulated = EMULATED.contains(&model.as_str());
                vec![
                    guest,
                    ("emulated", emulated.into()),
                    ("model", model.into()),
                ]
            }
            What::Screen { open } => vec![guest, ("screen_open", open.into())],
            What::Monitor { open } => vec![guest, ("monitor_open", open.into())],
            What::Share {
                whole_machine: Some(whole_machine),
            } => vec![guest, ("whole_machine", whole_machine.into())],
            What::Share {
                whole_machine: None,
            } => {
                let fact = format!("guest_device.{}.whole_machine", number + 1);
                let reason = "the user of the process that shares it is unknown";
                g.facts
                    .unknown(fact, reason, FactKind::Configured, device.place.clone());
                vec![guest]
            }
        };
        note(
            g,
            "guest_device",
            &(number + 1).to_string(),
            &device.place,
            &properties,
        );
    }
}

fn of_proxmox(g: &mut Gather<'_>) -> Vec<Device> {
    let guests = proxmox_guests::directory(g, "qemu-server");
    let mut devices = Vec::new();
    for path in files(g, "guest_device", &guests, ".conf") {
        let name = path.rsplit('/').next().unwrap_or_default();
        let guest = name.trim_end_matches(".conf").to_owned();
        let lines = read(g, "guest_device", &path);
        // Snapshots come after the guest itself, each under a head of its own.
        let own = lines.iter().take_while(|line| !line.text.starts_with('['));
        let own: Vec<(&str, &str, &FactPlace)> = own
            .filter_map(|line| {
                let (key, value) = line.text.split_once(':')?;
                Some((key, value.trim(), &line.place))
            })
            .collect();
        if own
            .iter()
            .any(|(key, value, _)| *key == "ostype" && OLD_SYSTEMS.contains(value))
        {
            continue;
        }
        for (key, value, place) in own {
            // Further arguments of QEMU.
            if key == "args" {
                let argv: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
                // Proxmox VE starts QEMU as root.
                devices.extend(of_arguments(&argv, &guest, place, Some(true)));
                continue;
            }
            let number = key.strip_prefix("net");
            if number.is_none_or(|number| number.parse::<u8>().is_err()) {
                continue;
            }
            // `virtio=MAC` or `model=virtio,macaddr=MAC`.
            let model = value
                .split(',')
                .find_map(|part| part.strip_prefix("model="));
            let first = value.split(['=', ',']).next().unwrap_or_default();
            devices.push(Device {
                guest: guest.clone(),
                place: place.clone(),
                what: What::Card(model.unwrap_or(first).to_owned()),
            });
        }
    }
    devices
}

fn of_libvirt(g: &mut Gather<'_>) -> Vec<Device> {
    let mut devices = Vec::new();
    let root_qemu = libvirt_starts_as_root(g);
    for path in files(g, "guest_device", LIBVIRT, ".xml") {
        let Some(text) = g.read("guest_device", &path) else {
            continue;
        };
        let Ok(document) = Document::parse(&text) else {
            continue;
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        let guest = name.trim_end_matches(".xml").to_owned();
        for node in document.descendants() {
            let inside = |name: &str| node.children().find(|child| child.has_tag_name(name));
            let line = |node: Node<'_, '_>| {
                let row = document.text_pos_at(node.range().start).row;
                at_line(&path, usize::try_from(row).unwrap_or(1))
            };
            if node.has_tag_name("interface") {
                let model = inside("model").filter(|model| model.has_attribute("type"));
                devices.extend(model.map(|model| Device {
                    guest: guest.clone(),
                    place: line(model),
                    what: What::Card(model.attribute("type").unwrap_or_default().to_owned()),
                }));
            } else if node.has_tag_name("filesystem") {
                let source = inside("source").and_then(|source| source.attribute("dir"));
                let writable = inside("readonly").is_none();
                // libvirt starts virtiofsd as root. QEMU itself serves the other shares.
                let kind = inside("driver").and_then(|driver| driver.attribute("type"));
                let root = match kind {
                    Some("virtiofs") => inside("idmap").is_none(),
                    _ => root_qemu,
                };
                devices.extend(source.map(|dir| Device {
                    guest: guest.clone(),
                    place: line(node),
                    what: What::Share {
                        whole_machine: Some(dir == "/" && writable && root),
                    },
                }));
            } else if node.has_tag_name("graphics") {
                let listen = node
                    .attribute("listen")
                    .or_else(|| inside("listen")?.attribute("address"));
                let guarded = node.has_attribute("passwd");
                devices.extend(listen.map(|address| Device {
                    guest: guest.clone(),
                    place: line(node),
                    what: What::Screen {
                        open: is_any_address(address) && !guarded,
                    },
                }));
            }
        }
    }
    devices
}

/// Returns whether libvirt starts QEMU as root. Distributions set another user as the default (qemu.conf, user).
fn libvirt_starts_as_root(g: &mut Gather<'_>) -> bool {
    let lines = read(g, "guest_device", LIBVIRT_USER);
    let user = lines.iter().rev().find_map(|line| {
        let (key, value) = line.text.split_once('=')?;
        (key.trim() == "user").then(|| value.trim().trim_matches('"'))
    });
    user.is_some_and(is_root)
}

fn is_root(user: &str) -> bool {
    ["root", "0", "+0"].contains(&user)
}

fn of_processes(g: &mut Gather<'_>) -> Vec<Device> {
    let mut devices = Vec::new();
    for entry in g.list("guest_device", "/proc") {
        let pid = lossy(&entry);
        let comm = g.host.read_text(Path::new(&format!("/proc/{pid}/comm")));
        if !pid.bytes().all(|byte| byte.is_ascii_digit())
            || !comm.is_ok_and(|comm| qemu::is_qemu(comm.trim()))
        {
            continue;
        }
        let path = format!("/proc/{pid}/cmdline");
        let Ok(line) = g.host.read(Path::new(&path)) else {
            continue;
        };
        let argv = qemu::argv(&line);
        // What libvirt and Proxmox start is in their definitions.
        if argv
            .iter()
            .any(|word| word.contains("/var/lib/libvirt/qemu/") || word == "-id")
        {
            continue;
        }
        let guest = qemu::parse(&argv).name.unwrap_or(pid);
        let root = runs_as_root(g, &path.replace("cmdline", "status"));
        devices.extend(of_arguments(&argv, &guest, &FactPlace::from(path), root));
    }
    devices
}

/// Returns whether a process has the effective user root, by its status file (proc_pid_status(5)).
fn runs_as_root(g: &Gather<'_>, status: &str) -> Option<bool> {
    let text = g.host.read_text(Path::new(status)).ok()?;
    let mut lines = text.lines();
    let user = lines.find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1))?;
    Some(user == "0")
}

/// Returns whether systemd starts the command of a unit as root; `None` if a specifier names the user. The last `User=`
/// of the unit and its drop-ins applies.
fn unit_runs_as_root(g: &mut Gather<'_>, unit: &str) -> Option<bool> {
    let mut all = vec![unit.to_owned()];
    all.extend(files(g, "guest_device", &format!("{unit}.d"), ".conf"));
    let mut root = Some(true);
    for path in all {
        for line in read(g, "guest_device", &path) {
            root = match line.text.trim().split_once('=') {
                Some(("User", user)) if user.contains('%') => None,
                Some(("User", user)) => Some(user.is_empty() || is_root(user)),
                Some(("DynamicUser", "yes" | "true" | "on" | "1")) => Some(false),
                _ => root,
            };
        }
    }
    root
}

/// Returns the devices of guests that systemd units start. Running guests are left out, because their processes are
/// read.
fn of_units(g: &mut Gather<'_>) -> Vec<Device> {
    let mut devices = Vec::new();
    for path in files(g, "guest_device", UNITS, ".service") {
        for line in read(g, "guest_device", &path) {
            let Some(command) = line.text.trim().strip_prefix("ExecStart=") else {
                continue;
            };
            let command = command.trim_start_matches(['-', '@', ':', '+', '!']);
            let argv: Vec<String> = command
                .split_whitespace()
                .map(|word| word.trim_matches(['"', '\'']).to_owned())
                .collect();
            let program = argv
                .first()
                .and_then(|path| path.rsplit('/').next())
                .unwrap_or_default();
            if !qemu::is_qemu(program) || argv.iter().any(|word| word.contains('$')) {
                continue;
            }
            let unit = path
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .trim_end_matches(".service");
            let guest = qemu::parse(&argv).name.unwrap_or_else(|| unit.to_owned());
            if runs(g, &guest) {
                continue;
            }
            vm::note_defined(g, &unit.replace('.', "-"), &guest, &argv, &line.place);
            let root = unit_runs_as_root(g, &path);
            devices.extend(of_arguments(&argv, &guest, &line.place, root));
        }
    }
    devices
}

/// Returns whether a QEMU with this guest name is running.
fn runs(g: &Gather<'_>, guest: &str) -> bool {
    let pids = g.host.list(Path::new("/proc")).unwrap_or_default();
    pids.iter().map(|pid| lossy(pid)).any(|pid| {
        let comm = g.host.read_text(Path::new(&format!("/proc/{pid}/comm")));
        let line = g.host.read(Path::new(&format!("/proc/{pid}/cmdline")));
        comm.is_ok_and(|comm| qemu::is_qemu(comm.trim()))
            && line.is_ok_and(|line| qemu::parse(&qemu::argv(&line)).name.as_deref() == Some(guest))
    })
}

/// Returns the network cards, displays, monitors and shares on a QEMU command line (qemu(1)). `root` is whether QEMU
/// starts as root.
fn of_arguments(
    argv: &[String],
    guest: &str,
    place: &FactPlace,
    root: Option<bool>,
) -> Vec<Device> {
    let device = |what: What| Device {
        guest: guest.to_owned(),
        place: place.clone(),
        what,
    };
    let mut devices = Vec::new();
    let guarded = argv
        .iter()
        .any(|word| word.contains("password") || word.contains("tls-creds"));
    let gives_up_root = argv
        .windows(2)
        .any(|pair| pair[0] == "-runas" || pair[0] == "-run-with" && pair[1].contains("user="));
    let root = match gives_up_root {
        true => Some(false),
        false => root,
    };
    if argv.iter().any(|word| word == "-s") {
        devices.push(device(What::Monitor { open: true }));
    }
    for pair in argv.windows(2) {
        let (option, argument) = (pair[0].trim_start_matches('-'), pair[1].as_str());
        let mut parts = argument.split(',');
        let first = parts.next().unwrap_or_default();
        let model = argument
            .split(',')
            .find_map(|part| part.strip_prefix("model="));
        match option {
            "device" if EMULATED.contains(&first) || first.starts_with("virtio-net") => {
                devices.push(device(What::Card(first.to_owned())));
            }
            "nic" | "net" if first != "none" => {
                devices.extend(model.map(|model| device(What::Card(model.to_owned()))))
            }
            "monitor" | "qmp" | "qmp-pretty" | "gdb" => {
                let address = first
                    .strip_prefix("tcp:")
                    .or(first.strip_prefix("telnet:"))
                    .and_then(|rest| rest.rsplit_once(':'));
                let open = match first.strip_prefix("chardev:") {
                    Some(id) => is_open_socket(argv, id),
                    None => address.is_some_and(|(address, _)| is_any_address(address)),
                };
                devices.push(device(What::Monitor { open }));
            }
            "mon" => {
                let id = option_value(argument, "chardev").unwrap_or(first);
                let open = is_open_socket(argv, id);
                devices.push(device(What::Monitor { open }));
            }
            "spice" => {
                let value = |name: &str| option_value(argument, name);
                let listens = value("port").is_some() && value("unix") != Some("on");
                let unguarded = value("disable-ticketing").is_some_and(|value| value != "off")
                    && value("sasl") != Some("on");
                let open =
                    listens && unguarded && is_any_address(value("addr").unwrap_or_default());
                devices.push(device(What::Screen { open }));
            }
            "virtfs" | "fsdev" if first == "local" => {
                let has = |wanted: &str| argument.split(',').any(|part| part == wanted);
                let writable = !has("readonly") && !has("readonly=on");
                let whole_machine = match has("path=/") && writable {
                    true => root,
                    false => Some(false),
                };
                devices.push(device(What::Share { whole_machine }));
            }
            "vnc" if first != "none" => {
                let address = first.rsplit_once(':').map_or(first, |(address, _)| address);
                let open = !first.starts_with("unix:") && is_any_address(address) && !guarded;
                devices.push(device(What::Screen { open }));
            }
            _ => {}
        }
    }
    devices
}

/// Returns the value of one option of a list such as `id=a,server=on`. A name alone means `on`.
fn option_value<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    list.split(',').find_map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, "on"));
        (key == name).then_some(value)
    })
}

/// Returns whether `-chardev socket` with this id listens on all addresses without TLS.
fn is_open_socket(argv: &[String], id: &str) -> bool {
    argv.windows(2).any(|pair| {
        let value = |name: &str| option_value(&pair[1], name);
        pair[0].trim_start_matches('-') == "chardev"
            && pair[1].starts_with("socket,")
            && value("id") == Some(id)
            && value("port").is_some()
            && value("server").is_some_and(|server| server != "off")
            && value("tls-creds").is_none()
            && is_any_address(value("host").unwrap_or_default())
    })
}

/// Returns whether an address stands for all addresses of the machine.
fn is_any_address(address: &str) -> bool {
    matches!(
        address.trim_matches(['[', ']']),
        "0.0.0.0" | "::" | "*" | ""
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn holds(host: &Recorded) -> Vec<String> {
        let mut g = Gather::new(host);
        collect(&mut g);
        let all = g.facts.map.iter();
        let true_ones = all.filter(|(key, _)| g.facts.get(key) == Some(&true.into()));
        true_ones
            .map(|(key, fact)| format!("{} {}", key.rsplit('.').next().unwrap(), fact.place))
            .collect()
    }

    #[test]
    fn cards_and_screens_of_all_managers() {
        let xml = "<domain>\n<devices>\n<interface>\n<model type='e1000'/>\n</interface>\n\
                   <graphics type='vnc' listen='0.0.0.0'/>\n</devices>\n</domain>\n";
        let host = Recorded::new()
            .file(
                "/etc/pve/qemu-server/100.conf",
                "net0: e1000=AA:BB,bridge=vmbr0\n[snap]\nnet1: e1000=AA:BB\n",
            )
            .file("/etc/libvirt/qemu/web.xml", xml)
            .file("/proc/7/comm", "qemu-system-x86\n")
            .file(
                "/proc/7/cmdline",
                "qemu-system-x86_64\0-name\0a\0-device\0e1000,netdev=n\0-vnc\0:1\0",
            );
        assert_eq!(
            holds(&host),
            [
                "emulated /etc/pve/qemu-server/100.conf:1",
                "emulated /etc/libvirt/qemu/web.xml:4",
                "screen_open /etc/libvirt/qemu/web.xml:6",
                "emulated /proc/7/cmdline",
                "screen_open /proc/7/cmdline",
            ]
        );
    }

    #[test]
    fn monitors_on_sockets() {
        let socket = "-chardev socket,id=m,port=4444";
        for (arguments, open) in [
            (
                format!("{socket},host=0.0.0.0,server=on -mon chardev=m"),
                true,
            ),
            (format!("{socket},server,nowait -mon m,mode=control"), true),
            (format!("{socket},server=on -qmp chardev:m"), true),
            (
                format!("{socket},host=127.0.0.1,server=on -mon chardev=m"),
                false,
            ),
            (format!("{socket},server=off -mon chardev=m"), false),
            (format!("{socket},server=on -serial chardev:m"), false),
            (
                "-chardev socket,id=m,path=/run/m,server=on -mon chardev=m".to_owned(),
                false,
            ),
        ] {
            let unit = format!("ExecStart=/usr/bin/qemu-system-x86_64 {arguments}\n");
            let host = Recorded::new().file("/etc/systemd/system/vm.service", unit);
            let found = holds(&host);
            let any = found.iter().any(|fact| fact.starts_with("monitor_open"));
            assert_eq!(any, open, "{arguments}");
        }
    }

    #[test]
    fn shares_of_the_root_directory() {
        let unit = "/etc/systemd/system/vm.service";
        let start = "ExecStart=/usr/bin/qemu-system-x86_64 -fsdev local,id=a,path=/";
        let domain = |driver: &str| {
            format!("<domain><filesystem>{driver}<source dir='/'/></filesystem></domain>")
        };
        let web = "/etc/libvirt/qemu/web.xml";
        let (plain, virtiofs) = (domain(""), domain("<driver type='virtiofs'/>"));
        let as_root = format!("{start}\n");
        let as_account = format!("{start}\nUser=vm\n");
        let gives_up = format!("{start} -runas vm\n");
        for (files, expected) in [
            (vec![(unit, &*as_root)], 1),
            (vec![(unit, &*as_account)], 0),
            (vec![(unit, &*gives_up)], 0),
            (
                vec![
                    (unit, &*as_root),
                    ("/etc/systemd/system/vm.service.d/a.conf", "User=vm\n"),
                ],
                0,
            ),
            (vec![(web, &*plain)], 0),
            (vec![(web, &*virtiofs)], 1),
            (vec![(web, &*plain), (LIBVIRT_USER, "user = \"root\"\n")], 1),
        ] {
            let mut host = Recorded::new();
            for (path, text) in &files {
                host = host.file(path, *text);
            }
            let found = holds(&host);
            let shares = found
                .iter()
                .filter(|fact| fact.starts_with("whole_machine"));
            assert_eq!(shares.count(), expected, "{files:?}");
        }
    }

    #[test]
    fn near_misses() {
        let xml = "<domain><devices><interface><model type='virtio'/></interface>\
                   <graphics type='vnc' listen='127.0.0.1'/></devices></domain>";
        let host = Recorded::new()
            .file("/etc/pve/qemu-server/100.conf", "net0: virtio=AA:BB\n")
            .file(
                "/etc/pve/qemu-server/101.conf",
                "ostype: wxp\nnet0: e1000=AA:BB\n",
            )
            .file("/etc/libvirt/qemu/web.xml", xml)
            .file("/proc/7/comm", "qemu-system-x86\n")
            .file(
                "/proc/7/cmdline",
                "qemu-system-x86_64\0-vnc\x00127.0.0.1:1\0-nic\0user,model=virtio\0",
            );
        assert_eq!(holds(&host), Vec::<String>::new());
    }
}
