//! Tests the checks before overwriting on real files and devices that are used in different ways. They are never
//! overwritten, and the reason is reported. Most tests need root and loop devices; without them, the tests report a
//! skip and pass.
#![allow(clippy::disallowed_methods, reason = "prepares real files and devices")]

use assay_facts::overwrite::{device, file};
use assay_host::LiveHost;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SIZE: u64 = 64 << 20;

/// Lock that lets only one test run at a time, because other tests open loop devices for a moment.
static ONE: Mutex<()> = Mutex::new(());

fn one() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        assay_testing::skipped("root", "needs root");
    }
    root
}

fn run(argv: &[&str]) -> Option<String> {
    let out = Command::new(argv[0]).args(&argv[1..]).output().ok()?;
    out.status
        .success()
        .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Creates a directory with a file of zeroes on a real file system, not tmpfs.
fn zeroes() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("image");
    File::create(&path).unwrap().set_len(SIZE).unwrap();
    (dir, path)
}

/// A loop device, detached on drop.
struct Loop(String);

impl Loop {
    fn on(file: &Path) -> Option<Self> {
        let made = run(&["losetup", "--show", "-f", file.to_str().unwrap()]);
        if made.is_none() {
            assay_testing::skipped("loop", "no loop device can be set up here");
        }
        made.map(Self)
    }

    fn path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run(&["losetup", "-d", &self.0]);
    }
}

fn reasons(
    refused: Result<assay_host::held::Held, assay_facts::overwrite::OverwriteRefused>,
) -> String {
    refused.expect_err("must be refused").to_string()
}

fn fine(
    look: impl Fn() -> Result<assay_host::held::Held, assay_facts::overwrite::OverwriteRefused>,
) {
    // udev and other programs hold new devices open for a moment.
    let start = Instant::now();
    loop {
        match look() {
            Ok(_) => return,
            Err(refused)
                if refused
                    .to_string()
                    .contains("what these processes have open") =>
            {
                return eprintln!("partly skipped: {refused}");
            }
            Err(refused) => assert!(start.elapsed() < Duration::from_secs(5), "{refused}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn what_nobody_uses_and_what_is_empty_passes() {
    let _one = one();
    let (_dir, path) = zeroes();
    fine(|| file(&LiveHost, &path, false));
    if !root() {
        return;
    }
    let Some(disk) = Loop::on(&path) else { return };
    fine(|| device(&LiveHost, disk.path(), false));
}

#[test]
fn attack_files_in_use_are_refused() {
    let _one = one();
    if !root() {
        return;
    }
    let mut tried = 0;
    let mut refused = |why: &str, path: &Path, word: &str| {
        tried += 1;
        let said = reasons(file(&LiveHost, path, true));
        assert!(said.contains(word), "{why}: {said}");
    };

    let (dir, path) = zeroes();
    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    refused("a link", &link, "a link");
    fs::hard_link(&path, dir.path().join("other")).unwrap();
    refused("two names", &path, "2 names");
    fs::remove_file(dir.path().join("other")).unwrap();

    let reader = File::open(&path).unwrap();
    refused("open here", &path, "open in process");
    drop(reader);
    let mut cat = holder(&path);
    refused("open there", &path, "open in process");
    cat.kill().unwrap();
    cat.wait().unwrap();

    let mapped = dir.path().join("mapped");
    fs::copy("/bin/sleep", &mapped).unwrap();
    let mut sleep = Command::new(&mapped).arg("60").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    refused("a program that runs", &mapped, "program");
    sleep.kill().unwrap();
    sleep.wait().unwrap();

    if let Some(disk) = Loop::on(&path) {
        let behind = format!("behind {}", disk.0);
        refused("behind a loop device", &path, &behind);
        let renamed = dir.path().join("renamed");
        fs::rename(&path, &renamed).unwrap();
        refused("behind one, and renamed", &renamed, &behind);
        File::create(&path).unwrap().set_len(SIZE).unwrap();
        fine(|| file(&LiveHost, &path, true));
    }
    if run(&["chattr", "+i", path.to_str().unwrap()]).is_some() {
        refused("immutable", &path, "immutable");
        run(&["chattr", "-i", path.to_str().unwrap()]);
        run(&["chattr", "+a", path.to_str().unwrap()]);
        refused("append-only", &path, "immutable");
        run(&["chattr", "-a", path.to_str().unwrap()]);
    }
    let swap = dir.path().join("swap");
    fs::write(&swap, vec![0; 8 << 20]).unwrap();
    let made = run(&["mkswap", swap.to_str().unwrap()]);
    if made.is_some() && run(&["swapon", swap.to_str().unwrap()]).is_some() {
        refused("a swap file", &swap, "swap");
        run(&["swapoff", swap.to_str().unwrap()]);
    } else {
        assay_testing::skipped("swap", "no swap file can be used here");
    }
    assay_testing::attacked("regular files in use", tried, tried);
}

/// Starts a process that keeps the file open.
fn holder(path: &Path) -> Child {
    let mut child = Command::new("sh")
        .args(["-c", "exec 3<\"$1\"; echo; exec sleep 60", "sh"])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
    child
}

/// QEMU has the image open and has locked byte ranges of it.
#[test]
fn attack_an_image_of_qemu_is_refused() {
    let _one = one();
    if !root() {
        return;
    }
    let (dir, path) = zeroes();
    let socket = dir.path().join("socket");
    let started = Command::new("qemu-nbd")
        .args(["-t", "-f", "raw", "-k"])
        .arg(&socket)
        .arg(&path)
        .spawn();
    let Ok(mut nbd) = started else {
        return assay_testing::skipped("qemu-nbd", "it is not installed");
    };
    // The image is opened first and locked then; the socket may exist before either.
    const WORDS: [&str; 2] = ["locked as QEMU", "open in process"];
    let look = || match file(&LiveHost, &path, true) {
        Ok(_) => String::new(),
        refused => reasons(refused),
    };
    let start = Instant::now();
    let mut file_said = look();
    while (!WORDS.iter().all(|word| file_said.contains(word)) || !socket.exists())
        && start.elapsed() < Duration::from_secs(30)
    {
        std::thread::sleep(Duration::from_millis(20));
        file_said = look();
    }
    // The same image through a loop device.
    let device_said = Loop::on(&path).map(|disk| reasons(device(&LiveHost, disk.path(), true)));
    nbd.kill().unwrap();
    nbd.wait().unwrap();
    for word in WORDS {
        assert!(file_said.contains(word), "{file_said}");
    }
    if let Some(said) = &device_said {
        assert!(said.contains("qemu-nbd"), "{said}");
    }
    assay_testing::attacked("image open in QEMU", 2, 2);
}

#[test]
fn attack_devices_in_use_are_refused() {
    let _one = one();
    if !root() {
        return;
    }
    let (dir, path) = zeroes();
    let Some(first) = Loop::on(&path) else { return };
    let Some(second) = Loop::on(&path) else {
        return;
    };
    for (disk, other) in [(&first, &second), (&second, &first)] {
        let refused = device(&LiveHost, disk.path(), true).expect_err("must be refused");
        let both = |reason: &&String| reason.contains(&disk.0) && reason.contains(&other.0);
        let said = refused
            .reasons
            .iter()
            .find(both)
            .expect("a reason that names both");
        let mut known = [(&disk.0, "DISK"), (&other.0, "OTHER")];
        // One name may be a prefix of another.
        known.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let told = assay_testing::normalize_output(said, &known);
        insta::allow_duplicates! {
            insta::assert_snapshot!(told, @"the same file is behind DISK and OTHER");
        }
    }
    let said = reasons(file(&LiveHost, &path, true));
    assert!(
        said.contains(&first.0) && said.contains(&second.0),
        "{said}"
    );
    drop(second);
    let above = Loop::on(first.path()).unwrap();
    let said = reasons(device(&LiveHost, first.path(), true));
    assert!(said.contains(&format!("behind {}", above.0)), "{said}");
    drop(above);

    assert!(run(&["mkfs.ext4", "-q", &first.0]).is_some());
    let point = dir.path().join("point");
    fs::create_dir(&point).unwrap();
    if run(&["mount", &first.0, point.to_str().unwrap()]).is_some() {
        let said = reasons(device(&LiveHost, first.path(), true));
        let by_file = reasons(file(&LiveHost, &path, true));
        run(&["umount", point.to_str().unwrap()]);
        assert!(said.contains("mounted at"), "{said}");
        assert!(
            by_file.contains(&format!("behind {}", first.0)),
            "{by_file}"
        );
    }
    let said = reasons(device(&LiveHost, first.path(), true));
    assert!(said.contains("TYPE=ext4"), "{said}");
    assay_testing::attacked("devices in use", 6, 6);
}

/// The refusal lists content that blkid does not detect. Such content is not overwritten without the second
/// confirmation.
#[test]
fn attack_images_and_archives_are_refused() {
    let _one = one();
    let mut tried = 0;
    let (dir, path) = zeroes();
    let disk = if root() { Loop::on(&path) } else { None };
    let mut look = |what: &str, word: &str| {
        tried += 1;
        let found = match &disk {
            Some(disk) => device(&LiveHost, disk.path(), false),
            None => file(&LiveHost, &path, false),
        };
        let said = reasons(found);
        for word in [word, "--destroy-unknown-data", "hexdump -C -s"] {
            assert!(said.contains(word), "{what}: {said}");
        }
    };
    let clear = || {
        let all = File::options().write(true).open(&path).unwrap();
        all.set_len(0).unwrap();
        all.set_len(SIZE).unwrap();
        let device = disk
            .as_ref()
            .map_or(path.clone(), |disk| disk.path().to_owned());
        let device = File::options().write(true).open(device).unwrap();
        device.write_all_at(&vec![0; SIZE as usize], 0).unwrap();
        device.sync_all().unwrap();
    };
    let put = |bytes: &[u8], at: u64| {
        let device = disk
            .as_ref()
            .map_or(path.clone(), |disk| disk.path().to_owned());
        let device = File::options().write(true).open(device).unwrap();
        device.write_all_at(bytes, at).unwrap();
        device.sync_all().unwrap();
    };
    for (format, word) in [
        ("qcow2", "a qcow image"),
        ("qed", "a QED image"),
        ("vmdk", "a VMDK image"),
        ("vhdx", "a VHDX image"),
        ("vpc", "a VHD image"),
        ("vdi", "a VDI image"),
        ("parallels", "a Parallels image"),
    ] {
        let image = dir.path().join(format);
        if run(&[
            "qemu-img",
            "create",
            "-q",
            "-f",
            format,
            image.to_str().unwrap(),
            "16M",
        ])
        .is_none()
        {
            assay_testing::skipped("qemu-img", format_args!("it makes no {format}"));
            continue;
        }
        clear();
        put(&fs::read(&image).unwrap(), 0);
        look(format, word);
    }
    clear();
    let archive = dir.path().join("tar");
    assert!(run(&["tar", "-cf", archive.to_str().unwrap(), "/etc/passwd"]).is_some());
    put(&fs::read(&archive).unwrap(), 0);
    look("tar", "a tar archive");
    clear();
    let mut random = vec![0; 4 << 20];
    std::io::Read::read_exact(&mut File::open("/dev/urandom").unwrap(), &mut random).unwrap();
    put(&random, 0);
    look("random data at the beginning", "look random");
    clear();
    put(&random, SIZE - random.len() as u64);
    look("random data at the end", "look random");
    clear();
    // The start and the end are empty; more than 256 samples hit about one position in sixteen.
    put(&random, 20 << 20);
    look("random data inside", "look random");
    clear();
    match &disk {
        Some(disk) => fine(|| device(&LiveHost, disk.path(), false)),
        None => fine(|| file(&LiveHost, &path, false)),
    }
    assay_testing::attacked("images and archives on a device", tried, tried);
}

/// The checked node is replaced by another one. The open descriptor still refers to the checked device.
#[test]
fn attack_a_node_that_is_exchanged_leads_nowhere() {
    let _one = one();
    if !root() {
        return;
    }
    let (dir, path) = zeroes();
    let victim_file = dir.path().join("victim");
    File::create(&victim_file).unwrap().set_len(SIZE).unwrap();
    let Some(disk) = Loop::on(&path) else { return };
    let Some(victim) = Loop::on(&victim_file) else {
        return;
    };
    let node = dir.path().join("node");
    let mknod = |of: &Loop| {
        let number = of.0.trim_start_matches("/dev/loop");
        let _ = fs::remove_file(&node);
        run(&["mknod", node.to_str().unwrap(), "b", "7", number])
    };
    let tries = 5 * assay_testing::attack_factor();
    for _ in 0..tries {
        mknod(&disk).unwrap();
        let held = loop {
            match device(&LiveHost, &node, true) {
                Ok(held) => break held,
                Err(refused) if refused.to_string().contains("what these processes") => {
                    return assay_testing::skipped("processes", refused);
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        mknod(&victim).unwrap();
        let again = held.reopen(rustix::fs::OFlags::WRONLY).unwrap();
        again.write_all_at(&[7; 4096], 0).unwrap();
        again.sync_all().unwrap();
        drop((again, held));
        assert_eq!(fs::read(&victim_file).unwrap(), vec![0; SIZE as usize]);
        assert_eq!(fs::read(&path).unwrap()[..4096], [7; 4096]);
    }
    assay_testing::attacked("device nodes exchanged", tries, tries);
}
