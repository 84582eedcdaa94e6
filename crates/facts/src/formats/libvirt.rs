//! Parses a libvirt domain in XML (formatdomain of libvirt). The sources are the output of `virsh dumpxml`, and the
//! files in /etc/libvirt/qemu and /run/libvirt/qemu.

use crate::limits::Limits;
use crate::proxmox::processor::WITHOUT_AES;
use crate::qemu::{self, Storage, VirtualDisk};
use assay_model::secrets::withhold_value;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

/// Command that prints the XML of a domain without changing it. The name of the domain is appended.
pub const DUMP: [&str; 6] = [
    "virsh",
    "--readonly",
    "--connect",
    "qemu:///system",
    "dumpxml",
    "--",
];

/// Maximum number of lines of a domain definition; a longer one is rejected.
const MOST_LINES: usize = 100_000;

/// A libvirt domain. A file in /etc contains its configuration, a file in /run its running state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// Name of the domain, as in `virsh list`.
    pub name: String,
    /// Process number of the domain's QEMU; `None` if the file does not contain it.
    pub pid: Option<u32>,
    /// `machine`, `cpu` and `accel`. Also `aes` if the definition requires the CPU's AES instructions by name.
    pub settings: BTreeMap<String, String>,
    /// Disks of the domain, without CD and floppy drives.
    pub disks: Vec<VirtualDisk>,
    /// For each disk in order, the line number of its `driver` element. Without such an element, the line number of the
    /// disk.
    pub lines: Vec<usize>,
    /// Line number of the model of the processor, or of the `cpu` element.
    pub cpu_line: Option<usize>,
}

/// Parses a domain definition. Drops serial numbers, addresses and host names.
///
/// # Errors
/// The text is not XML, or not a domain.
pub fn parse(xml: &str) -> Result<Domain, String> {
    let document = Document::parse(xml).map_err(|error| format!("not XML: {error}"))?;
    let root = document.root_element();
    let domain = match root.tag_name().name() {
        "domain" => root,
        // The state file of a running domain contains the domain.
        "domstatus" => child(root, "domain").ok_or("a domstatus without a domain")?,
        other => return Err(format!("`{other}` is no domain of libvirt")),
    };
    let text = |node: Option<Node<'_, '_>>| {
        let text = node.and_then(|node| node.text()).unwrap_or_default();
        text.trim().to_owned()
    };
    let mut found = Domain {
        name: text(child(domain, "name")),
        pid: root.attribute("pid").and_then(|pid| pid.parse().ok()),
        ..Domain::default()
    };
    if let Some(kind) = domain.attribute("type") {
        let accel = if kind == "qemu" { "tcg" } else { kind };
        set(&mut found.settings, "accel", accel);
    }
    let kind = child(domain, "os").and_then(|os| child(os, "type"));
    if let Some(machine) = kind.and_then(|kind| kind.attribute("machine")) {
        set(&mut found.settings, "machine", machine);
    }
    if let Some(cpu) = child(domain, "cpu") {
        let model = text(child(cpu, "model"));
        let name = match cpu.attribute("mode") {
            Some(mode @ ("host-passthrough" | "host-model" | "maximum")) => mode,
            _ => &model,
        };
        set(&mut found.settings, "cpu", name);
        let said = child(cpu, "model").unwrap_or(cpu);
        found.cpu_line = usize::try_from(document.text_pos_at(said.range().start).row).ok();
        let given = cpu.children().any(|feature| {
            feature.attribute("name") == Some("aes")
                && matches!(
                    feature.attribute("policy"),
                    None | Some("require" | "force")
                )
        });
        let taken = cpu.children().any(|feature| {
            feature.attribute("name") == Some("aes")
                && matches!(feature.attribute("policy"), Some("disable" | "forbid"))
        });
        if given {
            set(&mut found.settings, "aes", "yes");
        } else if taken || WITHOUT_AES.contains(&name) {
            set(&mut found.settings, "aes", "no");
        }
    } else if kind.and_then(|kind| kind.attribute("arch")) == Some("x86_64")
        && domain.attribute("type") == Some("kvm")
    {
        // What QEMU takes for a machine of this kind when nothing is said.
        set(&mut found.settings, "cpu", qemu::DEFAULT_CPU);
    }
    let devices: Vec<Node<'_, '_>> = child(domain, "devices")
        .into_iter()
        .flat_map(|devices| devices.children())
        .collect();
    let disks = devices.iter().filter(|node| {
        let device = node.attribute("device").unwrap_or("disk");
        node.has_tag_name("disk") && matches!(device, "disk" | "lun")
    });
    let disks: Vec<Node<'_, '_>> = disks.copied().collect();
    found.disks = disks.iter().map(|node| disk(*node, &devices)).collect();
    let line = |node: &Node<'_, '_>| {
        let node = child(*node, "driver").unwrap_or(*node);
        let at = document.text_pos_at(node.range().start).row;
        usize::try_from(at).unwrap_or(0)
    };
    found.lines = disks.iter().map(line).collect();
    Ok(found)
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn set(settings: &mut BTreeMap<String, String>, key: &str, value: &str) {
    settings.insert(key.to_owned(), value.to_owned());
}

fn disk(node: Node<'_, '_>, devices: &[Node<'_, '_>]) -> VirtualDisk {
    let attribute = |of: &str, name: &str| child(node, of).and_then(|node| node.attribute(name));
    let bus = match attribute("target", "bus").unwrap_or("unknown") {
        "virtio" => "virtio-blk".to_owned(),
        "scsi" => find_scsi_controller(node, devices),
        other => other.to_owned(),
    };
    let mut settings = BTreeMap::new();
    // Without `cache` libvirt passes no cache mode, so QEMU's default writeback applies.
    let mode = attribute("driver", "cache").filter(|mode| *mode != "default");
    let mode = mode.unwrap_or("writeback");
    set(&mut settings, "cache", mode);
    let on = |on: bool| if on { "on" } else { "off" };
    let direct = matches!(mode, "none" | "directsync");
    let write_cache = !matches!(mode, "writethrough" | "directsync");
    set(&mut settings, "direct", on(direct));
    set(&mut settings, "no_flush", on(mode == "unsafe"));
    set(&mut settings, "write_cache", on(write_cache));
    for (name, key, default) in [
        ("io", "aio", "threads"),
        ("discard", "discard", "ignore"),
        ("detect_zeroes", "detect_zeroes", ""),
        ("queues", "queues", ""),
        ("error_policy", "werror", ""),
    ] {
        let value = attribute("driver", name).unwrap_or(default);
        if !value.is_empty() {
            set(&mut settings, key, value);
        }
    }
    let own = attribute("driver", "iothread").is_some()
        || child(node, "driver").is_some_and(|driver| child(driver, "iothreads").is_some());
    let thread = own || (bus == "virtio-scsi" && controller(node, devices, "iothread"));
    set(&mut settings, "iothread", if thread { "yes" } else { "no" });
    for (name, key) in [
        ("logical_block_size", "logical_block_size"),
        ("physical_block_size", "physical_block_size"),
    ] {
        if let Some(value) = attribute("blockio", name) {
            set(&mut settings, key, value);
        }
    }
    let tune = child(node, "iotune");
    let limits = Limits::of_libvirt(|name| Some(child(tune?, name)?.text()?.to_owned()));
    limits.tell(&mut settings);
    if child(node, "readonly").is_some() {
        set(&mut settings, "read_only", "yes");
    }
    // Writes are discarded when the guest stops.
    if child(node, "transient").is_some() {
        set(&mut settings, "transient", "yes");
    }
    let source = child(node, "source");
    let path = ["file", "dev"]
        .iter()
        .find_map(|name| source?.attribute(*name));
    let storage = match (path, source) {
        (Some(path), _) => Storage::File(path.into()),
        (None, Some(source)) => {
            let kind = node.attribute("type").unwrap_or("unknown");
            let protocol = source.attribute("protocol").unwrap_or(kind);
            Storage::Elsewhere(protocol.to_owned())
        }
        (None, None) => Storage::Nothing,
    };
    let encrypted = source.is_some_and(|source| child(source, "encryption").is_some());
    let format = attribute("driver", "type").unwrap_or("raw");
    let formats = encrypted.then_some("luks").into_iter();
    let format = Some(format).filter(|format| !(encrypted && *format == "raw"));
    VirtualDisk {
        id: attribute("target", "dev").unwrap_or("disk").to_owned(),
        bus,
        settings,
        formats: formats.chain(format).map(str::to_owned).collect(),
        limits,
        storage,
    }
}

/// Returns the controller of a SCSI disk: virtio-scsi, or the configured model.
fn find_scsi_controller(node: Node<'_, '_>, devices: &[Node<'_, '_>]) -> String {
    let model = scsi_controller(node, devices).and_then(|node| node.attribute("model"));
    match model {
        Some("virtio-scsi" | "virtio-transitional" | "virtio-non-transitional") => "virtio-scsi",
        Some(model) => model,
        None => "scsi",
    }
    .to_owned()
}

fn controller(node: Node<'_, '_>, devices: &[Node<'_, '_>], setting: &str) -> bool {
    let found = scsi_controller(node, devices).and_then(|node| child(node, "driver"));
    found.is_some_and(|driver| driver.attribute(setting).is_some())
}

fn scsi_controller<'a, 'i>(node: Node<'a, 'i>, devices: &[Node<'a, 'i>]) -> Option<Node<'a, 'i>> {
    let index = child(node, "address").and_then(|address| address.attribute("controller"));
    let index = index.unwrap_or("0");
    devices.iter().copied().find(|node| {
        node.has_tag_name("controller")
            && node.attribute("type") == Some("scsi")
            && node.attribute("index").unwrap_or("0") == index
    })
}

/// Redacts a domain's XML to the elements that become facts. Returns an empty text if the XML is not a domain. With
/// `identity`, keeps the names of the domain and of its images.
pub(crate) fn redact(xml: &str, identity: bool) -> String {
    // The XML is written from the parsed values, so no other content can pass.
    let Ok(domain) = parse(xml) else {
        return String::new();
    };
    let escape = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('\'', "&apos;")
    };
    let get = |map: &BTreeMap<String, String>, key: &str| {
        escape(map.get(key).map_or("", |text| withhold_value(text)))
    };
    let first_disk = domain.lines.iter().min().copied().unwrap_or(usize::MAX);
    let above = domain.cpu_line.filter(|line| *line <= first_disk);
    let above = above.map_or(0, |line| line.saturating_sub(1).min(MOST_LINES));
    let mut out = format!(
        "<domain type='{}'><name>{}</name>\
         <os><type machine='{}'>hvm</type></os>{}<cpu><model>{}</model>{}</cpu><devices>",
        get(&domain.settings, "accel"),
        match identity {
            true => escape(&domain.name),
            false => crate::harmless::LEFT_OUT.to_owned(),
        },
        get(&domain.settings, "machine"),
        // The line number of the processor does not change.
        "\n".repeat(above),
        get(&domain.settings, "cpu"),
        match domain.settings.get("aes").map(String::as_str) {
            Some("yes") => "<feature policy='require' name='aes'/>",
            Some(_) => "<feature policy='disable' name='aes'/>",
            None => "",
        },
    );
    let mut models = Vec::new();
    for (disk, line) in domain.disks.iter().zip(&domain.lines) {
        // Removed content leaves empty lines, so line numbers do not change.
        let written = out.matches('\n').count() + 1;
        out += &"\n".repeat(line.saturating_sub(written).min(MOST_LINES));
        let (kind, source) = match &disk.storage {
            Storage::File(path) => {
                let path = qemu::redact_file(&path.to_string_lossy(), identity);
                ("file", format!("<source file='{}'/>", escape(&path)))
            }
            Storage::Elsewhere(protocol) => (
                "network",
                format!("<source protocol='{}'/>", escape(withhold_value(protocol))),
            ),
            Storage::Nothing => ("file", String::new()),
        };
        let driver: String = [
            ("cache", "cache"),
            ("io", "aio"),
            ("discard", "discard"),
            ("detect_zeroes", "detect_zeroes"),
            ("queues", "queues"),
            ("error_policy", "werror"),
        ]
        .iter()
        .filter(|(_, key)| disk.settings.contains_key(*key))
        .map(|(name, key)| format!(" {name}='{}'", get(&disk.settings, key)))
        .collect();
        let thread = match get(&disk.settings, "iothread").as_str() {
            "yes" => " iothread='1'",
            _ => "",
        };
        let format = disk
            .formats
            .last()
            .map_or("raw", |format| withhold_value(format));
        let bus = match disk.bus.as_str() {
            "virtio-blk" => "virtio",
            bus @ ("sata" | "ide" | "usb" | "nvme" | "sd") => bus,
            model => {
                models.push(withhold_value(model).to_owned());
                "scsi"
            }
        };
        let address = match bus {
            "scsi" => format!("<address controller='{}'/>", models.len() - 1),
            _ => String::new(),
        };
        out += &format!(
            "<disk type='{kind}'><driver type='{}'{driver}{thread}/>{source}<target dev='{}' bus='{bus}'/>{address}{}{}{}</disk>",
            escape(format),
            escape(withhold_value(&disk.id)),
            match disk.limits.is_empty() {
                true => String::new(),
                false => format!("<iotune>{}</iotune>", disk.limits.to_libvirt()),
            },
            match disk.settings.contains_key("read_only") {
                true => "<readonly/>",
                false => "",
            },
            match disk.settings.contains_key("transient") {
                true => "<transient/>",
                false => "",
            },
        );
    }
    for (index, model) in models.iter().enumerate() {
        out += &format!(
            "<controller type='scsi' index='{index}' model='{}'/>",
            escape(model)
        );
    }
    out += "</devices></domain>";
    match domain.pid {
        Some(pid) => format!("<domstatus pid='{pid}'>{out}</domstatus>\n"),
        None => out + "\n",
    }
}
