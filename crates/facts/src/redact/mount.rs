//! Redacts mounts: keeps harmless options and sources. Options of network file systems may contain passwords, and a
//! password with a comma looks like two options.

use crate::harmless::LEFT_OUT;
use assay_model::secrets::{WITHHELD, is_path, is_plain};

/// Replaces a mount option that is not known to be harmless.
const UNKNOWN: &str = "(option withheld)";

/// Options without a value (mount(8), and the manual page of each file system).
pub(crate) const FLAGS: &str = "
ro rw suid nosuid dev nodev exec noexec sync async dirsync atime noatime diratime nodiratime relatime norelatime
strictatime nostrictatime lazytime nolazytime mand nomand symfollow nosymfollow iversion noiversion i_version
remount defaults silent loud seclabel posixacl noposixacl
acl noacl user_xattr nouser_xattr barrier nobarrier discard nodiscard delalloc nodelalloc dioread_lock
dioread_nolock auto_da_alloc noauto_da_alloc journal_checksum nojournal_checksum journal_async_commit
block_validity noblock_validity quota noquota usrquota grpquota prjquota nogrpid grpid bsddf minixdf debug
init_itable noinit_itable norecovery noload dax nodax nouid32 mblk_io_submit nomblk_io_submit inlinecrypt
no_prefetch_block_bitmaps prefetch_block_bitmaps abort test_dummy_encryption data_err=ignore warn_on_error
delaylog nodelaylog irixsgid osyncisdsync osyncisosync inode_cache noinode_cache
attr2 noattr2 inode32 inode64 ikeep noikeep largeio nolargeio nouuid filestreams wsync swalloc gquota pquota uquota
gqnoenforce pqnoenforce uqnoenforce qnoenforce lifetime
autodefrag noautodefrag ssd nossd ssd_spread nossd_spread space_cache nospace_cache datacow nodatacow datasum
nodatasum compress compress-force flushoncommit noflushoncommit treelog notreelog clear_cache degraded
skip_balance enospc_debug noenospc_debug user_subvol_rm_allowed usebackuproot recovery rescan_uuid_tree
background_gc disable_roll_forward disable_ext_identify inline_data noinline_data inline_dentry noinline_dentry
inline_xattr noinline_xattr inline_xattr_size flush_merge noflush_merge extent_cache noextent_cache heap no_heap
data_flush lazytime checkpoint_merge nocheckpoint_merge gc_merge nogc_merge atgc fastboot reserve_root
hard soft softerr softreval intr nointr tcp udp rdma ac noac cto nocto lock nolock rdirplus nordirplus resvport
noresvport sharecache nosharecache fsc nofsc posix migration nomigration bg fg
serverino noserverino mapposix nomapposix mapchars nomapchars posixpaths noposixpaths unix nounix brl nobrl
forceuid noforceuid forcegid noforcegid multiuser strictcache forcedirectio persistenthandles
nopersistenthandles resilienthandles seal sign perm noperm nostrictsync strictsync sfu nosfu mfsymlinks cifsacl
nocase nohandlecache nodelete noblocksend noautotune rootfs witness nosparse
allow_other allow_root default_permissions auto_unmount big_writes
xattr noxattr casesensitive caseinsensitive casemixed
cpu cpuacct cpuset blkio memory devices freezer net_cls net_prio perf_event hugetlb pids rdma misc clone_children
nsdelegate memory_recursiveprot memory_localevents favordynmods memory_hugetlb_accounting all none
userxattr volatile novolatile default_permissions noswap huge newinstance
utf8 quiet showexec dotsOK flush sys_immutable tz=UTC nojoliet norock uni_xlate nonumtail
loose fscache dirstat nodirstat rbytes norbytes dcache nodcache noshare wsize nocrc
prjjquota journal_flush_disabled direct indirect";

/// Options whose value is a number or a word.
pub(crate) const VALUES: &str = "
size nr_blocks nr_inodes mode uid gid huge mpol rootmode user_id group_id max_read blksize fd pgrp timeout minproto
maxproto pipe_ino ptmxmode max
vers nfsvers minorversion rsize wsize bsize namlen proto timeo retrans retry sec local_lock nconnect
max_connect lookupcache acregmin acregmax acdirmin acdirmax actimeo mountproto mountvers write clientport_range
cache dir_mode file_mode closetimeo echo_interval max_credits iocharset codepage reparse symlink handletimeout
snapshot compression_level esize rasize rsize caps_max caps_wanted_delay_min caps_wanted_delay_max congestion_kb
commit errors stripe data data_err journal_ioprio resuid resgid sb max_batch_time min_batch_time jqfmt dax
inode_readahead_blks init_itable barrier max_dir_size_kb mb_optimize_scan fc_debug_max_replay
logbufs logbsize ihashsize sunit swidth allocsize biosize
subvolid compress compress-force space_cache thread_pool max_inline metadata_ratio discard fatal_errors ratio
rescue check_int_print_mask
background_gc active_logs alloc_mode fsync_mode compress_algorithm compress_log_size compress_mode checkpoint
inline_xattr_size reserve_root resuid whint_mode discard_unit memory lookup_mode io_bits iostat
redirect_dir index xino metacopy nfs_export verity uuid
trans access msize version afid cachetag dfltuid dfltgid
fmask dmask umask shortname allow_utime blocksize map session
data_replicas metadata_replicas compression background_compression erasure_code metadata_checksum data_checksum
str_hash degraded journal_flush_delay journal_reclaim_delay
nls nls_name prealloc zone_names context_switches xattr dnode_limit";

/// Options whose value is one or several local paths.
const PATHS: [&str; 7] = [
    "lowerdir", "upperdir", "workdir", "subvol", "logdev", "rtdev", "device",
];

/// Keeps harmless mount options. Of other options, keeps only the name, and only if it looks like the name of an
/// option.
#[must_use]
pub fn mount_options(options: &str) -> String {
    options
        .split(',')
        .map(clean_option)
        .collect::<Vec<_>>()
        .join(",")
}

fn contains_name(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

fn clean_option(option: &str) -> String {
    let Some((name, value)) = option.split_once('=') else {
        let known = option.is_empty() || contains_name(FLAGS, option);
        return if known { option } else { UNKNOWN }.to_owned();
    };
    let harmless = (contains_name(VALUES, name) && is_plain(value))
        || (PATHS.contains(&name) && (is_path(value) || is_plain(value)))
        // Named hierarchies of control groups.
        || (name == "name" && matches!(value, "systemd" | "elogind" | "unified"));
    if harmless {
        return option.to_owned();
    }
    let lower = |c: char| c.is_ascii_lowercase() || "_-".contains(c);
    let named = !name.is_empty() && name.len() <= 24 && name.chars().all(lower);
    match named {
        true => format!("{name}={WITHHELD}"),
        false => UNKNOWN.to_owned(),
    }
}

/// Keeps a mount source that is a device, a dataset or a kernel name. For a network file system, keeps the path and
/// drops the server.
#[must_use]
pub fn mount_source(fs_type: &str, source: &str) -> String {
    let path = |path: &str| is_path(path).then(|| path.to_owned());
    match fs_type {
        _ if source.is_empty() => String::new(),
        "nfs" | "nfs4" | "fuse.sshfs" | "ceph" | "fuse.glusterfs" => source
            .rsplit_once(":/")
            .and_then(|(_, rest)| path(&format!("/{rest}")))
            .map_or_else(|| LEFT_OUT.to_owned(), |path| format!("{LEFT_OUT}:{path}")),
        "cifs" | "smb3" => source
            .trim_start_matches('/')
            .split_once('/')
            .and_then(|(_, share)| path(&format!("/{share}")))
            .map_or_else(|| LEFT_OUT.to_owned(), |path| format!("//{LEFT_OUT}{path}")),
        // The name of a dataset may contain blanks.
        "zfs" if !source.contains([':', '@', '?', '=']) || source.starts_with('/') => {
            source.to_owned()
        }
        _ if is_path(source) && !source.contains('@') => source.to_owned(),
        // A tag that the hypervisor assigned.
        "9p" | "virtiofs" if is_plain(source) && !source.contains([':', '/', '%']) => {
            source.to_owned()
        }
        // The source of a mount without a device may be any word; for FUSE it may be a bucket, a
        // user or an address.
        _ if contains_name(NAMES, source) || fs_type == source => source.to_owned(),
        _ if fs_type.strip_prefix("fuse.") == Some(source) => source.to_owned(),
        _ => LEFT_OUT.to_owned(),
    }
}

/// Sources that the mount table shows for file systems without a device.
pub(crate) const NAMES: &str = "
none tmpfs overlay shm proc sysfs udev dev devtmpfs devpts run tmp rootfs cgroup cgroup2 systemd-1 mqueue
hugetlbfs hugetlb debugfs tracefs securityfs pstore bpf efivarfs configfs fusectl binfmt_misc binder ramfs
sunrpc nfsd lxcfs portal gvfsd-fuse nsfs cgmfs keyctl composefs autofs unionfs";

/// Escapes blanks as mount tables do (`\040`).
pub(crate) fn escape_blanks(text: &str) -> String {
    text.replace(' ', "\\040")
}

/// Redacts a line of `mountinfo`: keeps only what becomes facts.
pub(super) fn line(line: &str) -> String {
    // Replaces a malformed line.
    const BROKEN: &str = "(line withheld)";
    if line.is_empty() {
        return String::new();
    }
    let Some((head, tail)) = line.split_once(" - ") else {
        return BROKEN.to_owned();
    };
    // Fields must not contain blanks, so blanks are escaped.
    let escape = |text: String| escape_blanks(&text);
    let head: Vec<&str> = head.split(' ').collect();
    let tail: Vec<&str> = tail.splitn(3, ' ').collect();
    let ([id, parent, dev, root, point, options, rest @ ..], [fs_type, source, own]) =
        (head.as_slice(), tail.as_slice())
    else {
        return BROKEN.to_owned();
    };
    let plain = [id, parent, dev].iter().all(|word| is_plain(word));
    let shared = rest.iter().all(|word| is_plain(word));
    if !plain || !shared || !is_plain(fs_type) {
        return BROKEN.to_owned();
    }
    let mut words = vec![(*id).to_owned(), (*parent).to_owned(), (*dev).to_owned()];
    words.push((*root).to_owned());
    words.push((*point).to_owned());
    words.push(escape(mount_options(options)));
    words.extend(rest.iter().map(|word| (*word).to_owned()));
    let (source, own) = (
        escape(mount_source(fs_type, source)),
        escape(mount_options(own)),
    );
    format!("{} - {fs_type} {source} {own}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_left_out_and_devices_are_not() {
        for (kind, source, expected) in [
            (
                "nfs4",
                "files.example.org:/export/a",
                "(left out):/export/a",
            ),
            ("nfs4", "[fe80::1]:/export", "(left out):/export"),
            ("cifs", "//files/share/x", "//(left out)/share/x"),
            ("ext4", "/dev/vda", "/dev/vda"),
            ("zfs", "tank/my data", "tank/my data"),
            ("overlay", "overlay", "overlay"),
            ("tmpfs", "tmpfs", "tmpfs"),
            ("tmpfs", "Canary", "(left out)"),
            ("bcachefs", "/dev/sda:/dev/sdb", "/dev/sda:/dev/sdb"),
            ("fuse.s3fs", "Canary", "(left out)"),
            ("fuse", "https://u:Canary@h/dav", "(left out)"),
            ("davfs", "https://u:Canary@h/dav", "(left out)"),
        ] {
            assert_eq!(mount_source(kind, source), expected);
            assert_eq!(mount_source(kind, expected), expected);
        }
    }

    #[test]
    fn options_that_are_known_stay_and_passwords_do_not() {
        for options in [
            "rw,relatime,errors=remount-ro,stripe=32",
            "rw,noatime,attr2,inode64,logbufs=8,logbsize=32k,noquota",
            "rw,ssd,discard=async,space_cache=v2,subvolid=256,subvol=/@home,compress=zstd:1",
            "rw,lowerdir=/a/b:/c,upperdir=/d,workdir=/e",
            "rw,vers=4.2,rsize=1048576,hard,proto=tcp,timeo=600,sec=sys,local_lock=none",
            "rw,cpu,cpuacct",
            "rw,xattr,name=systemd",
        ] {
            assert_eq!(mount_options(options), options);
        }
        for (given, expected) in [
            (
                "rw,addr=10.0.0.1,sec=sys",
                "rw,addr=(value withheld),sec=sys",
            ),
            (
                "rw,username=bob,password=a,Canary,credentials=/root/x",
                "rw,username=(value withheld),password=(value withheld),(option withheld),credentials=(value withheld)",
            ),
            (
                "secret=Canary,name=admin",
                "secret=(value withheld),name=(value withheld)",
            ),
            ("vers=http://u:p@h", "vers=(value withheld)"),
        ] {
            assert_eq!(mount_options(given), expected);
            assert_eq!(mount_options(expected), expected);
        }
    }

    #[test]
    fn a_line_keeps_no_server() {
        let given = "30 1 0:30 / /srv rw - nfs4 files.example.org:/a rw,addr=10.0.0.1";
        let once = line(given);
        assert_eq!(
            once,
            "30 1 0:30 / /srv rw - nfs4 (left\\040out):/a rw,addr=(value\\040withheld)"
        );
        assert_eq!(line(&once), once);
        assert_eq!(line("password=Canary"), "(line withheld)");
    }
}
