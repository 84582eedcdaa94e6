//! Tests a domain that libvirt started, with `virt-qemu-run` in a temporary directory.
#![allow(clippy::disallowed_methods, reason = "tests start the real program")]

use assay_host::{LiveHost, Root};
use assay_model::stack::LayerKind::{Guest, Image, VirtualDisk};
use assay_stack::{StackTarget, discover};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends the domain together with its program when the value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

fn domain(dir: &str, name: &str) -> String {
    format!(
        "<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
         <iothreads>1</iothreads><os><type arch='x86_64' machine='q35'>hvm</type></os>
         <cpu mode='custom'><model>qemu64</model></cpu><devices>
         <emulator>/usr/bin/qemu-system-x86_64</emulator>
         <disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='writethrough'
         iothread='1'/><source file='{dir}/disk.qcow2'/><target dev='vda' bus='virtio'/>
         <iotune><read_bytes_sec>104857600</read_bytes_sec><total_iops_sec>500</total_iops_sec></iotune></disk>
         <disk type='file' device='cdrom'><target dev='sdc' bus='sata'/><readonly/></disk>
         <memballoon model='none'/></devices></domain>"
    )
}

/// Returns the limits of a process that a capture with this state of the domain contains.
fn limited(status: &str, name: &str, cmdline: &[u8], pid: u32) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [
        (format!("proc/{pid}/comm"), &b"qemu-system-x86\n"[..]),
        (format!("proc/{pid}/cmdline"), cmdline),
        (format!("run/libvirt/qemu/{name}.xml"), status.as_bytes()),
    ] {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = Root::open(dir.path()).unwrap();
    let stack = discover(&root, &StackTarget::Guest(name.to_owned())).unwrap();
    let disk = stack
        .layers
        .iter()
        .find(|layer| layer.kind == VirtualDisk)?;
    let hints = assay_stack::collect_hints(&stack);
    let told = disk.get("throttled").map(str::to_owned);
    assert_eq!(
        told.is_some(),
        hints.iter().any(|hint| hint.because.contains("throttled"))
    );
    told
}

#[test]
fn a_domain_by_its_name() {
    let root = rustix::process::geteuid().is_root();
    if !root || Command::new("virt-qemu-run").arg("-h").output().is_err() {
        return assay_testing::skipped(
            "libvirt",
            "needs root and virt-qemu-run (libvirt-daemon-driver-qemu)",
        );
    }
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().to_str().unwrap();
    let name = format!("assay-{}", std::process::id());
    std::fs::create_dir_all(temporary.path().join("root/etc")).unwrap();
    let settings = "user = \"root\"\ngroup = \"root\"\nsecurity_driver = \"none\"\n\
        cgroup_controllers = [ ]\nnamespaces = [ ]\nremember_owner = 0\nstdio_handler = \"file\"\n";
    std::fs::write(temporary.path().join("root/etc/qemu.conf"), settings).unwrap();
    std::fs::write(temporary.path().join("domain.xml"), domain(dir, &name)).unwrap();
    let image = format!("{dir}/disk.qcow2");
    let made = Command::new("qemu-img")
        .args(["create", "-q", "-f", "qcow2", &image, "64M"])
        .status();
    assert!(made.unwrap().success());
    let log = temporary.path().join("log");
    // libvirt tries KVM first, which may exist and not work: it is hidden here.
    let script = "[ ! -e /dev/kvm ] || mount --bind /dev/null /dev/kvm; exec virt-qemu-run \"$@\"";
    let child = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .args(["-r", &format!("{dir}/root"), &format!("{dir}/domain.xml")])
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let deadline = Instant::now() + Duration::from_secs(240);
    let stack = loop {
        match discover(&LiveHost, &StackTarget::Guest(name.clone())) {
            // Its disk is opened shortly after the process starts.
            Ok(stack)
                if stack
                    .layers
                    .iter()
                    .any(|layer| layer.get("o_direct").is_some()) =>
            {
                break stack;
            }
            _ => {}
        }
        if let Ok(Some(status)) = running.0.try_wait() {
            // A machine without the users or services that libvirt needs.
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            return assay_testing::skipped(
                "libvirt",
                format_args!("virt-qemu-run ended with {status}: {said}"),
            );
        }
        assert!(
            Instant::now() < deadline,
            "{}",
            std::fs::read_to_string(&log).unwrap()
        );
        std::thread::sleep(Duration::from_millis(200));
    };
    // libvirt keeps limits here instead of in /run/libvirt, and sets them through QEMU's monitor.
    let status = temporary.path().join(format!("root/run/qemu/{name}.xml"));
    let status = std::fs::read_to_string(status).unwrap();
    let domain = assay_facts::libvirt::parse(&status).unwrap();
    let limits = "100 MiB/s read, 500 IOPS in all";
    assert_eq!(domain.disks[0].limits.to_string(), limits);
    let pid = domain.pid.unwrap();
    let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let told = |pid| limited(&status, &name, &cmdline, pid);
    assert_eq!(told(pid).as_deref(), Some(limits));

    // The state of another process does not apply to this one.
    assert_eq!(told(pid + 1), None);
    assert_eq!(stack.layers[0].kind, Guest);
    assert_eq!(stack.layers[0].name, name);
    assert_eq!(stack.layers[0].get("accel"), Some("tcg"));
    assert_eq!(stack.layers[0].below.len(), 1);
    let layer = |kind| {
        stack
            .layers
            .iter()
            .find(|layer| layer.kind == kind)
            .unwrap()
    };
    let disk = layer(VirtualDisk);
    assert_eq!(disk.get("cache"), Some("writethrough"));
    assert_eq!(disk.get("bus"), Some("virtio-blk"));
    assert_eq!(disk.get("iothread"), Some("yes"));
    assert_eq!(disk.get("o_direct"), Some("no"));
    let format = layer(Image);
    assert_eq!(
        (format.name.as_str(), format.bytes("size")),
        ("qcow2", Some(64 << 20))
    );
}
