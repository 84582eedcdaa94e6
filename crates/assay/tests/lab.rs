//! Tests `assay lab` with real guests: QEMU boots them, ZFS runs in them, and nothing is left.
//!
//! Without an image the tests are skipped: see `common::guests`.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_host::{Host as _, Limits};
use assay_lab::{Disk, Guest, GuestOptions, GuestRegistry, LabError};
use assay_loads::Cancel;
use common::guests::{image, image_for_long, nothing_left, working_in};
use common::schemas::holds;
use common::{Home, Ran, entries};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_guest_stays_up_serves_commands_and_goes() {
    let Some(_one) = image() else { return };
    let home = Home::new();
    let disks = ["--disk", "128M", "--disk", "128M", "--disk", "128M"];
    let bad = ["--disk", "64M,queues=2,eio=1M+4k,iops=5000,name=bad"];
    let scsi = ["--disk", "16M,bus=virtio-scsi,queues=3,name=many"];
    let disks = [&disks[..], &bad, &scsi].concat();
    let up = home.assay(&[&["lab", "up", "--json"], &disks[..]].concat());
    assert_eq!(up.code, Some(0), "{}", up.stderr);
    holds("lab-up", &up.stdout, &["/disks/0"]);
    let entry: serde_json::Value = serde_json::from_str(&up.stdout).unwrap();
    assert_eq!(entry["disks"][2]["name"], "disk3");

    let run = |words: &[&str]| -> Ran { home.assay(&[&["lab", "run", "--"], words].concat()) };
    // This binary, whatever C library it is linked with.
    let ours = run(&["assay", "--version"]);
    let host = home.assay(&["--version"]);
    assert_eq!(
        (ours.code, ours.stdout),
        (Some(0), host.stdout),
        "{}",
        ours.stderr
    );
    let pool = ["zpool", "create", "tank", "raidz1"];
    let by_serial = ["virtio-disk1", "virtio-disk2", "virtio-disk3"];
    // zpool waits 30 s for udev to see its partitions, which a busy machine can exceed.
    let mut made = run(&[&pool[..], &by_serial[..]].concat());
    for _ in 0..2 {
        if made.code == Some(0) {
            break;
        }
        made = run(&[&pool[..], &["-f"], &by_serial[..]].concat());
    }
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let health = run(&["zpool", "list", "-H", "-o", "health", "tank"]);
    assert_eq!((health.code, health.stdout.as_str()), (Some(0), "ONLINE\n"));

    let both = run(&["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(both.code, Some(7));
    assert!(
        both.stdout == "out\n" && both.stderr.ends_with("err\n"),
        "{}",
        both.stderr
    );
    let none = run(&["assay-no-such-command"]);
    assert_eq!(none.code, Some(2));
    insta::assert_snapshot!(home.refusal(&none), @"assay: assay-no-such-command: command not found in the guest");

    a_bad_disk_and_queues(&run);
    files_go_in_and_out(&home);

    let journal = run(&["systemctl", "restart", "systemd-journald"]);
    assert_eq!(journal.code, Some(0), "{}", journal.stderr);

    let again = home.assay(&["lab", "up"]);
    assert_eq!(again.code, Some(2));
    insta::assert_snapshot!(home.refusal(&again), @"assay: there is a guest lab already: `assay lab down --guest lab`, or choose another name");
    let listed = home.assay(&["lab", "list", "--json"]);
    holds("lab-list", &listed.stdout, &["/guests/0", "/images/0"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["guests"][0]["name"], "lab");

    let down = home.assay(&["lab", "down"]);
    assert_eq!(down.code, Some(0), "{}", down.stderr);
    nothing_left(&home);
    let gone = home.assay(&["lab", "down", "lab"]);
    insta::assert_snapshot!(home.refusal(&gone), @"assay: there is no guest lab; none is running: `assay lab up` starts one");
}

/// Four sectors of 1 KiB return I/O errors, their neighbours do not.
fn a_bad_disk_and_queues(run: &dyn Fn(&[&str]) -> Ran) {
    let script = "d=/dev/disk/by-id/virtio-bad
        look() { dd if=$d of=/dev/null bs=4k count=1 skip=$1 iflag=direct 2>&1; }
        write() { dd if=/dev/zero of=$d bs=4k count=1 seek=$1 oflag=direct 2>&1; }
        look 255 && look 257 && write 255 && write 257 || exit 1
        look 256 | grep -q 'Input/output error' || exit 2
        write 256 | grep -q 'Input/output error' || exit 3
        ls /sys/block/$(basename $(readlink -f $d))/mq | wc -l
        ls /sys/block/$(basename $(readlink -f /dev/disk/by-id/scsi-*many))/mq | wc -l";
    let ran = run(&["sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    // At most as many queues as processors are used (virtblk_map_queues,
    // drivers/block/virtio_blk.c).
    assert!(
        ran.stdout.ends_with("2\n2\n") || ran.stdout.ends_with("2\n3\n"),
        "{}",
        ran.stdout
    );
}

fn files_go_in_and_out(home: &Home) {
    let dir = home.dir.path().join("files");
    std::fs::create_dir(&dir).unwrap();
    let bytes: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
    std::fs::write(dir.join("in:to"), &bytes).unwrap();
    let copy = |from: &str, to: &str| {
        let mut command = home.command(&["lab", "cp", from, to]);
        command.current_dir(&dir);
        common::ended(command)
    };
    let ran = copy("./in:to", "lab:/tmp/");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    std::fs::create_dir(dir.join("back")).unwrap();
    let ran = copy(":/tmp/in:to", "back");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read(dir.join("back/in:to")).unwrap(), bytes);
    let mut said = String::new();
    for (from, to) in [
        ("no", "there"),
        (":/a", ":/b"),
        ("./in:to", "nas:/tmp/"),
        ("./in:to", ":tmp"),
        (":/no/such", "back"),
        ("no", ":/tmp/"),
    ] {
        let ran = copy(from, to);
        assert_eq!(ran.code, Some(2), "{from} {to}: {}", ran.stderr);
        said += &home.refusal(&ran);
    }
    insta::assert_snapshot!(said, @r"
    assay: neither path is in a guest: write a guest's path as :/PATH
    assay: both paths are in a guest: copy there with `assay lab run -- cp`
    assay: there is no guest nas; running: lab
    assay: :tmp: a path in a guest must begin with /
    assay: /no/such: No such file or directory (in the guest)
    assay: no: no such file or directory
    ");
    assert_eq!(entries(&dir.join("back")), ["in:to"]);
}

#[test]
fn a_command_that_takes_all_memory_is_killed_and_nothing_else() {
    let Some(_one) = image_for_long() else { return };
    let home = Home::new();
    let script = "tail /dev/zero; test $? = 137 && systemctl is-active assay-agent";
    let args = ["lab", "run", "--memory", "384M", "--", "sh", "-c", script];
    let ran = home.assay(&args);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "active\n"),
        "{}",
        ran.stderr
    );
    let ran = home.assay(&["lab", "run", "--memory", "384M", "--", "tail", "/dev/zero"]);
    assert_eq!(ran.code, Some(137), "{}", ran.stderr);
    let line = ran.stderr.lines().find(|line| line.contains("--memory"));
    let told = line.unwrap().split(": [").next().unwrap();
    insta::assert_snapshot!(told, @"note: it ran out of memory, give it more with --memory");
    nothing_left(&home);
}

#[test]
fn killed_at_any_moment_it_leaves_nothing() {
    let Some(_one) = image() else { return };
    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    let disk = format!("64M,dir={}", outside.path().display());
    let mut swept = String::new();
    // While QEMU starts, and while the guest boots.
    for moment in [Duration::from_millis(50), Duration::from_secs(4)] {
        let args = ["lab", "run", "--disk", &disk, "--", "sleep", "600"];
        let mut assay = home.command(&args).stderr(Stdio::null()).spawn().unwrap();
        let lab = home.state().join("lab");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !lab.is_dir() || working_in(&lab).is_empty() {
            assert!(Instant::now() < deadline, "QEMU does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(moment);
        assay.kill().unwrap();
        assay.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !working_in(&lab).is_empty() {
            assert!(Instant::now() < deadline, "QEMU outlives assay");
            std::thread::sleep(Duration::from_millis(5));
        }
        let listed = home.assay(&["lab", "list", "--json"]);
        let guests: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!(guests["guests"], serde_json::json!([]));
        swept += &assay_testing::without_figures(&listed.stderr);
        nothing_left(&home);
        assert_eq!(entries(outside.path()), Vec::<String>::new());
    }
    insta::assert_snapshot!(swept, @r"
    removed what was left of guest run-#
    removed what was left of guest run-#
    ");
}

#[test]
fn a_guest_is_a_machine_like_any_other() {
    let Some((image, _one)) = image() else { return };
    let home = Home::new();
    let state = GuestRegistry::open(&home.state()).unwrap();
    let mut options = GuestOptions::new("machine");
    options.disks = vec![
        Disk::parse("64M,bus=nvme,cache=none", "fast").unwrap(),
        Disk::parse("64M,bus=sata,format=qcow2", "slow").unwrap(),
        Disk::parse("64M,bus=virtio-scsi,format=luks,iothread", "secret").unwrap(),
    ];
    let metal = common::Loop::new(32 << 20);
    if let Some(metal) = &metal {
        let text = format!("32M,device={}", metal.device);
        options.disks.push(Disk::parse(&text, "metal").unwrap());
        options.destroy_data = true;
    }
    let mut guest = Guest::boot(&image, &options, &state, &Cancel::default()).unwrap();

    let devices = guest.devices(&["fast", "slow", "secret"]).unwrap();
    assert_eq!(devices[0], Path::new("/dev/nvme0n1"));
    for device in &devices {
        assert_eq!(
            guest.stat(device).unwrap().kind,
            assay_host::FileKind::BlockDevice
        );
        guest.open_exclusive(device).unwrap();
    }
    assert!(
        guest
            .read(Path::new("/no/such/file"))
            .unwrap_err()
            .is_absent()
    );
    assert!(guest.which(OsStr::new("zpool")).is_some());
    assert!(guest.statfs(Path::new("/")).unwrap().total > 1 << 30);

    // Any bytes, in and out.
    let content: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    let path = Path::new("/tmp/name \n with newline");
    guest.push_bytes(&content, path, 0o640).unwrap();
    let back = home.dir.path().join("back");
    guest.pull(path, &back).unwrap();
    assert!(std::fs::read(&back).unwrap() == content);

    let facts = assay_facts::collect(&guest, &assay_facts::CollectOptions::default());
    let system = facts
        .str("os.name")
        .and_then(|name| name.split(" (").next());
    assert_eq!(system, Some("Debian GNU/Linux 12"));

    if let Some(metal) = &metal {
        assert!(!free(metal), "{} is to be held for the guest", metal.device);
        let device = guest.devices(&["metal"]).unwrap().remove(0);
        guest
            .push_bytes(b"through to the metal", &device, 0o600)
            .unwrap();
        let flush = [OsStr::new("sync"), device.as_os_str()];
        guest.run(&flush, Limits::default()).unwrap();
        assert!(metal.content().starts_with(b"through to the metal"));
    }
    disks_come_and_go(&mut guest, home.dir.path());

    let limits = Limits {
        timeout: Duration::from_secs(240),
    };
    // Noise on the console does not hide later output.
    let noise = "head -c 9999 /dev/urandom > /dev/ttyS0";
    guest
        .run(&["sh", "-c", noise].map(OsStr::new), limits)
        .unwrap();

    // A crashed guest reports the reason.
    let panic = ["sh", "-c", "echo c > /proc/sysrq-trigger"].map(OsStr::new);
    let error = guest.run(&panic, limits).unwrap_err();
    assert!(matches!(error, LabError::Gone { .. }), "{error}");
    assert!(error.to_string().contains("Kernel panic"), "{error}");
    drop(guest);
    nothing_left(&home);
    assert!(metal.is_none_or(|metal| free(&metal)));
}

/// Whether no process holds it exclusively.
fn free(device: &common::Loop) -> bool {
    let path = Path::new(&device.device);
    assay_host::LiveHost.open_exclusive(path).is_ok()
}

/// Disks are plugged and unplugged on each bus that supports it.
fn disks_come_and_go(guest: &mut Guest, outside: &Path) {
    let before = entries(guest.dir());
    let far = format!("16M,bus=virtio-scsi,format=qcow2,dir={}", outside.display());
    let texts = [
        "16M",
        "16M,bus=nvme",
        "16M,bus=virtio-scsi,iothread,format=luks",
        &far,
    ];
    let names = ["plug1", "plug2", "plug3", "plug4"];
    for (text, name) in texts.iter().zip(names) {
        guest.plug(&Disk::parse(text, name).unwrap()).unwrap();
    }
    let devices = guest.devices(&names).unwrap();
    assert!(devices[1].starts_with("/dev/") && devices[1] != Path::new("/dev/nvme0n1"));
    let again = guest.plug(&Disk::scratch("plug1", 512)).unwrap_err();
    assert!(again.to_string().contains("already"), "{again}");
    let sata = guest.plug(&Disk::parse("16M,bus=sata", "late").unwrap());
    insta::assert_snapshot!(sata.unwrap_err(), @"disk late: QEMU 7.2 cannot plug sata disks into a running guest: give it at boot, or choose virtio-blk, virtio-scsi or nvme");
    for name in names {
        guest.unplug(name).unwrap();
    }
    assert!(guest.devices(&["plug1"]).is_err());
    assert!(guest.unplug("slow").is_err(), "SATA does not let go");
    // One more disk if this machine can provide a device.
    let gone =
        assay_testing::normalize_output(guest.unplug("plug1").unwrap_err(), &[(", metal", "")]);
    insta::assert_snapshot!(gone, @"disk plug1: the guest has no such disk; it has fast, slow, secret");
    let mut after = entries(guest.dir());
    after.retain(|name| name != "plug.lock");
    after.sort();
    let mut before = before;
    before.sort();
    assert_eq!(before, after);
    assert!(!entries(outside).iter().any(|name| name.contains("plug4")));
}
