//! Targets for what assay reads from a machine, and for its redaction.

use super::seeds::{text_seeds, to_text};
use crate::formats::known;
use crate::{LONGEST, ParserTarget};
use assay_facts::redact::Redacted;
use assay_facts::{
    crypt, image, libvirt, lvm, mdstat, module_parameter, mountinfo, proxmox, qemu, zpool,
    zpool_health,
};
use assay_host::{Host as _, Limits, Recorded};
use assay_http::answer::{Memory, Reader};
use assay_model::secrets;
use assay_protocol::{AgentRequest, FrameDecoder, Reply};
use std::ffi::OsStr;
use std::path::Path;

macro_rules! seeds {
    ($($name:literal),+ $(,)?) => {
        vec![$(include_bytes!(concat!("../../../facts/fixtures/", $name)).to_vec()),+]
    };
}

const CERTIFICATE: &str =
    include_str!("../../../../advice/tls/certificate-ended/quiet/good/etc/ssl/certs/shop.pem");
const PACKAGE: &str = "Package: openssh-server\nStatus: install ok installed\nVersion: 1:9.2p1-2\n";
const CRON: &str = "24 0 8-14 * * root /usr/lib/zfs-linux/scrub; zpool trim tank\n";
const MAPS: &str = "7f71f42f0000-7f71f4303000 r-xp 00003000 fe:00 1 /usr/lib/libssl.so.3 (deleted)\n\
     0::/system.slice/nginx.service\n";
const MOUNTS: &str = "20 1 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
    21 20 0:30 / /srv/a\\040b rw - cifs //u@h/x rw,username=u,password=p,credentials=/root/x\n\
    22 20 0:31 / /o rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/c,workdir=/d\n";
const ARRAYS: &str = "Personalities : [raid1]\nmd1 : active (auto-read-only) raid1 sdd1[2] sdc1[1](F)\n\
    \x20     12502 blocks super 1.2 [2/1] [U_]\n      [==>...]  recovery = 12.6% (3704/29294)\n";
const PARAMETERS: &str =
    "zfs_arc_max=0x200000000 zfs_txg_timeout=\"09\" nested=Y zfs_arc_min = 8G -- x";
const LINE: &str = "BOOT_IMAGE=/vmlinuz root=UUID=0d5e-1f ro quiet mitigations=off ip=10.0.0.2::::box \
    luks.pw=x foo=\"a b\" ds=nocloud;s=http://u:p@h/ rootflags=subvol=@ isolcpus=2-7 -- --token x";

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "secrets-text",
            seeds: text_seeds(&[
                "cannot open http://u:p@h/x?t=1: {\"password\": \"a\\\"b\"} key=1 'token' = 'x'",
                "Authorization: Basic abc\n-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----",
                "invalid type: string \"x\", expected u64 at line 1",
            ]),
            run: |bytes| {
                let once = secrets::withhold_in_text(&to_text(bytes));
                assert_eq!(secrets::withhold_in_text(&once), once, "cleaned twice");
            },
        },
        ParserTarget {
            name: "redact-cmdline",
            seeds: text_seeds(&[LINE]),
            run: |bytes| read_twice("/proc/cmdline", bytes),
        },
        ParserTarget {
            name: "redact-mountinfo",
            seeds: text_seeds(&[MOUNTS]),
            run: |bytes| read_twice("/proc/self/mountinfo", bytes),
        },
        ParserTarget {
            name: "redact-configurations",
            seeds: seeds!(
                "nginx-1.22.1-debian12.conf",
                "dovecot-2.3.19.1-debian12-10-auth.conf",
                "proxmox-from-documentation-100.conf",
                "proxmox-from-documentation-storage.cfg",
            ),
            run: |bytes| {
                for path in [
                    "/etc/nginx/nginx.conf",
                    "/etc/passwd",
                    "/root/.ssh/authorized_keys",
                    "/etc/dovecot/conf.d/10-auth.conf",
                    "/etc/nginx/conf.d/a.conf",
                    "/etc/openvpn/a.conf",
                    "/etc/nut/nut.conf",
                    "/etc/nut/upsmon.conf",
                    "/etc/pam.d/common-session",
                    "/etc/postfix/main.cf",
                    "/etc/postfix/master.cf",
                    "/etc/samba/smb.conf",
                    "/etc/spamassassin/local.cf",
                    "/etc/ssh/ssh_config",
                    "/etc/ssh/sshd_config",
                    "/proc/swaps",
                    "/etc/sysctl.d/a.conf",
                    "/etc/modprobe.d/a.conf",
                    "/etc/fstab",
                    "/etc/pve/qemu-server/100.conf",
                    "/etc/pve/storage.cfg",
                ] {
                    read_twice(path, bytes);
                }
            },
        },
        ParserTarget {
            name: "redact-packages-and-certificates",
            seeds: text_seeds(&[CERTIFICATE, PACKAGE, CRON, MAPS]),
            run: |bytes| {
                for path in [
                    "/etc/cron.d/a",
                    "/etc/crontab",
                    "/etc/dovecot/dovecot.conf",
                    "/etc/os-release",
                    "/etc/ssl/certs/a.pem",
                    "/proc/1/cgroup",
                    "/proc/1/maps",
                    "/proc/stat",
                    "/var/lib/dpkg/status",
                ] {
                    read_twice(path, bytes);
                }
            },
        },
        ParserTarget {
            name: "redact-commands",
            seeds: seeds!(
                "zfs-2.1.11/get-dataset.txt",
                "zfs-2.1.11/status-mirror.txt",
                "zfs-2.1.11/zdb-mirror.txt",
                "dmsetup-1.02.185-table.txt",
                "cryptsetup-2.6.1-luksdump.txt",
                "dumpe2fs-1.47.0.txt",
                "postfix-3.7.11-postqueue.jsonl",
                "smartctl-7.3-ata-qemu.txt",
                "smartctl-7.3-nvme-qemu.txt",
            ),
            run: |bytes| {
                for argv in [
                    &["postqueue", "-j"][..],
                    &["zfs", "get", "all"],
                    &["zfs", "get", "-o", "name,property,value,source", "all"],
                    &["zpool", "status", "tank"],
                    &["smartctl", "-n", "standby", "-H", "-A", "/dev/sda"],
                    &["smartctl", "-n", "standby", "-l", "error", "/dev/sda"],
                    &["zdb", "-C"],
                    &["zdb", "-C", "tank"],
                    &["dmsetup", "table"],
                    &["dmsetup", "table", "--", "a"],
                    &["zfs", "list", "-H", "-o", "name", "-t", "volume"],
                    &["stat", "--file-system", "--format=%S", "--", "/a"],
                    &["cryptsetup", "luksDump", "/dev/a"],
                    &["dumpe2fs", "-h", "/dev/a"],
                    &["xfs_info", "/a"],
                    &["fio", "--version"],
                ] {
                    ask_twice(argv, bytes);
                }
            },
        },
        ParserTarget {
            name: "mountinfo",
            seeds: text_seeds(&[MOUNTS]),
            run: |bytes| {
                if let Ok(mounts) = mountinfo::parse(bytes) {
                    for mount in &mounts {
                        let _ = (mount.all_options(), mount.super_option("upperdir"));
                    }
                    let _ = mountinfo::of(&mounts, Path::new("/srv/a b/c"));
                }
            },
        },
        ParserTarget {
            name: "qemu",
            seeds: seeds!(
                "qemu-7.2-plain-cmdline.txt",
                "qemu-7.2-libvirt-9.0-cmdline.txt",
                "qemu-7.2-controllers-without-id-cmdline.txt",
            ),
            run: |bytes| {
                let line: Vec<u8> = bytes
                    .iter()
                    .map(|b| if *b == b'\n' { 0 } else { *b })
                    .collect();
                let _ = qemu::parse(&qemu::argv(&line));
                let once = qemu::redact(&line, false);
                assert_eq!(
                    to_text(&qemu::redact(&once, false)),
                    to_text(&once),
                    "cleaned twice"
                );
            },
        },
        ParserTarget {
            name: "libvirt",
            seeds: seeds!("libvirt-9.0-domstatus.xml"),
            run: |bytes| {
                let _ = libvirt::parse(&to_text(bytes));
                read_twice("/etc/libvirt/qemu/a.xml", bytes);
                read_twice("/proc/1/fdinfo/3", bytes);
            },
        },
        ParserTarget {
            name: "proxmox",
            seeds: seeds!(
                "proxmox-from-documentation-100.conf",
                "proxmox-from-documentation-storage.cfg"
            ),
            run: |bytes| {
                let stores = proxmox::stores(&to_text(bytes));
                let _ = proxmox::parse(&to_text(bytes), &stores);
            },
        },
        ParserTarget {
            name: "lvm",
            seeds: seeds!(
                "lvm-2.03.16-lvs.json",
                "lvm-2.03.16-vgs.json",
                "lvm-2.03.16-pvs.json"
            ),
            run: |bytes| {
                let _ = lvm::rows(&to_text(bytes));
                ask_twice(&lvm::LVS, bytes);
                ask_twice(&lvm::HEALTH, bytes);
            },
        },
        ParserTarget {
            name: "zpool",
            seeds: seeds!(
                "zfs-2.1.11/status-draid2.txt",
                "zfs-2.1.11/status-raidz1.txt",
                "zfs-2.1.11/zdb-draid2.txt",
                "zfs-2.3.2/properties-draid2.txt",
            ),
            run: |bytes| {
                let input = to_text(bytes);
                let _ = (
                    zpool::vdevs(&input, "tank"),
                    zpool::state(&input),
                    zpool::ashifts(&input),
                );
                let _ = zpool::Ashifts::of_properties(&input);
                let _ = (
                    zpool_health::leaves(&input, "tank"),
                    zpool_health::data_errors(&input),
                    zpool_health::group_errors(&input),
                );
            },
        },
        ParserTarget {
            name: "kernel-text",
            seeds: text_seeds(&[ARRAYS, PARAMETERS]),
            run: |bytes| {
                let input = to_text(bytes);
                let _ = mdstat::arrays(&input);
                for (name, value, _) in module_parameter::arguments(&input) {
                    let kind = module_parameter::type_of("zfs", &name);
                    let kind = kind.unwrap_or(module_parameter::Type::Bits(64));
                    let _ = module_parameter::read(kind, value.as_deref());
                }
            },
        },
        ParserTarget {
            name: "crypt",
            seeds: seeds!(
                "cryptsetup-2.6.1-luksdump.txt",
                "dmsetup-1.02.185-table.txt"
            ),
            run: |bytes| {
                let input = to_text(bytes);
                let words: Vec<&str> = input.split_whitespace().collect();
                let _ = (
                    crypt::pbkdf(&input),
                    crypt::kind(&input),
                    crypt::table(&words),
                );
            },
        },
        ParserTarget {
            name: "image",
            seeds: seeds!(
                "qcow2-overlay-7.2.bin",
                "qcow2-v2-7.2.bin",
                "qcow2-zstd-7.2.bin"
            ),
            run: |bytes| drop(image::header(bytes)),
        },
        ParserTarget {
            name: "guard-formats",
            seeds: formatted_device_seeds(),
            run: formats,
        },
        ParserTarget {
            name: "kstat",
            seeds: seeds!("zfs-2.1.11/arcstats.txt"),
            run: |bytes| {
                let _ = assay_host::kstat::find_counter(&to_text(bytes), "size");
            },
        },
        ParserTarget {
            name: "http-response",
            seeds: text_seeds(&[
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
                "HTTP/1.0 304 Not Modified\r\nConnection: close\r\n\r\n",
            ]),
            run: http,
        },
        ParserTarget {
            name: "wire",
            seeds: frame_seeds(),
            run: |bytes| {
                let mut decoder = FrameDecoder::default();
                for piece in bytes.chunks(7) {
                    decoder.push(piece);
                    for frame in decoder.by_ref() {
                        let _ = (AgentRequest::read(&frame), Reply::read(&frame));
                    }
                }
            },
        },
    ]
}

/// Checks that redacting twice changes nothing, so that a capture of a capture is equal.
fn read_twice(path: &str, bytes: &[u8]) {
    let read = |bytes: Vec<u8>| {
        let host = Recorded::new().file(path, bytes);
        Redacted::new(&host, false)
            .read(Path::new(path))
            .expect("it is there")
    };
    let once = read(bytes.to_vec());
    let again = read(once.clone());
    assert_eq!(to_text(&again), to_text(&once), "{path} read twice");
}

fn ask_twice(argv: &[&str], bytes: &[u8]) {
    let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    let ask = |output: &str| {
        let host = Recorded::new().command(argv, output);
        let answer = Redacted::new(&host, false).run(&words, Limits::default());
        answer.expect("it answers").text()
    };
    let once = ask(&to_text(bytes));
    assert_eq!(ask(&once), once, "{argv:?} asked twice");
}

/// Returns devices that contain signatures of formats, shortened to beginning and end, and a ZFS label.
fn formatted_device_seeds() -> Vec<Vec<u8>> {
    let with = |size: usize, marks: &[(usize, &[u8])]| {
        let mut bytes = vec![0; size];
        for (at, mark) in marks {
            bytes[*at..at + mark.len()].copy_from_slice(mark);
        }
        bytes
    };
    vec![
        with(
            1024,
            &[
                (0, b"QFI\xfb"),
                (257, b"ustar"),
                (510, b"\x55\xaa"),
                (512, b"conectix"),
            ],
        ),
        with(
            2048,
            &[
                (0, b"LUKS\xba\xbe"),
                (0x438, b"\x53\xef"),
                (1536, b"EFI PART"),
            ],
        ),
        with(4096, &[(0x218, b"LVM2 001"), (0x40, b"\x7f\x10\xda\xbe")]),
        with(
            LONGEST,
            &[(0x1000, b"\xfc\x4e\x2b\xa9"), (0x4000, b"SKUL\xba\xbe")],
        ),
        include_bytes!("../../../facts/fixtures/qcow2-v2-7.2.bin").to_vec(),
    ]
}

/// Checks that the detected formats do not depend on how much of a device was read: every format that is found in a
/// part is also found in the whole.
fn formats(bytes: &[u8]) {
    let size = bytes.len() as u64;
    let whole = known(bytes, bytes, size);
    // Bytes that say where the device ends, and how much of each end was read.
    let byte = |at: usize| usize::from(bytes.get(at).copied().unwrap_or_default());
    let (head, tail) = (byte(0) * bytes.len() / 255, byte(1) * bytes.len() / 255);
    let (head, tail) = (&bytes[..head], &bytes[tail..]);
    for found in known(head, tail, size) {
        assert!(whole.contains(&found), "{found} in a part, and not in all");
    }
    // Sizes that lie: what was read came from a device that changed.
    for size in [0, 1, 511, size << 40, u64::MAX] {
        let _ = known(bytes, tail, size);
    }
}

/// Checks the HTTP parser: for any split into pieces, a response ends at the same place with the same body. A response
/// to HEAD has no body, and a head that was seen before has the same meaning.
fn http(bytes: &[u8]) {
    for head_only in [false, true] {
        let mut memory = Memory::default();
        let read = |size: usize, memory: &mut Memory| {
            let mut reader = Reader::default();
            reader.restart(head_only, true);
            for piece in bytes.chunks(size) {
                match reader.feed(piece, memory) {
                    Ok(None) => {}
                    ended => return ended,
                }
            }
            reader.end().map(Some)
        };
        let whole = read(bytes.len().max(1), &mut memory);
        let again = read(bytes.len().max(1), &mut memory);
        assert_eq!(whole, again, "seen before");
        for size in [1, 3, 64] {
            if let (Ok(one), Ok(other)) = (whole, read(size, &mut memory)) {
                assert_eq!(one, other, "whole and in pieces of {size}");
            }
        }
    }
}

/// Returns frames as client and server of a remote run send them.
fn frame_seeds() -> Vec<Vec<u8>> {
    let payloads: [(u8, &[u8]); 4] = [(1, b""), (2, b"\x04\0\0\0echo"), (3, &[0; 64]), (200, b"x")];
    let frame = |(kind, payload): (u8, &[u8])| {
        let payload = payload.to_vec();
        assay_protocol::Frame {
            request: 7,
            kind,
            payload,
        }
        .encode()
    };
    payloads.map(frame).into()
}
