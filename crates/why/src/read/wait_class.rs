//! Classifies what a task in uninterruptible sleep waits for, from the kernel functions on its stack.

/// Kernel functions and the class of waiting that they indicate. Earlier rows take precedence; within a row, the
/// innermost matching function of the stack is returned.
const CLASSES: [(&str, &[&str]); 18] = [
    (
        "file-scanner",
        &["fanotify_handle_event", "fanotify_get_response"],
    ),
    ("supervisor", &["seccomp_do_user_notification"]),
    ("page-server", &["handle_userfault"]),
    (
        "file-system-frozen",
        &[
            "sb_start_write",
            "sb_start_pagefault",
            "sb_start_intwrite",
            "mnt_want_write",
        ],
    ),
    (
        "swap",
        &[
            "swap_readpage",
            "swap_read_folio",
            "do_swap_page",
            "swapin_readahead",
            "shmem_swapin",
        ],
    ),
    (
        "memory-limit",
        &[
            "mem_cgroup_handle_over_high",
            "try_charge_memcg",
            "mem_cgroup_oom",
            "try_to_free_mem_cgroup",
        ],
    ),
    (
        "reclaim",
        &[
            "shrink_node",
            "shrink_lruvec",
            "try_to_free_pages",
            "throttle_direct_reclaim",
            "reclaim_throttle",
            "__alloc_pages_slowpath",
            "compact_zone",
            "do_page_cache_ra_wait",
        ],
    ),
    (
        "io-limit",
        &[
            "blk_throtl",
            "__blk_throtl_bio",
            "rq_qos_wait",
            "wbt_wait",
            "iolatency",
            "iocg_",
        ],
    ),
    ("dirty-limit", &["balance_dirty_pages"]),
    (
        "flush",
        &[
            "blkdev_issue_flush",
            "jbd2_log_wait_commit",
            "jbd2_complete_transaction",
            "ext4_sync_file",
            "ext4_fsync",
            "xfs_file_fsync",
            "xfs_log_force",
            "btrfs_sync_file",
            "btrfs_sync_log",
            "do_fsync",
            "sync_filesystem",
            "file_write_and_wait_range",
            "generic_write_sync",
            "do_fdatasync",
            "__x64_sys_fsync",
            "__x64_sys_fdatasync",
            "__x64_sys_sync",
            "jbd2_journal_commit_transaction",
            "dio_complete_sync",
        ],
    ),
    (
        "zfs",
        &[
            "txg_wait",
            "zil_commit",
            "zio_wait",
            "dmu_tx_wait",
            "dmu_tx_delay",
            "arc_",
            "cv_wait_common",
            "spl_",
        ],
    ),
    (
        "network-share",
        &[
            "nfs_",
            "nfs4_",
            "rpc_wait",
            "rpc_",
            "cifs_",
            "smb2_",
            "wait_for_response",
            "ceph_",
            "request_wait_answer",
            "fuse_",
            "p9_client",
            "v9fs_",
            "autofs_wait",
        ],
    ),
    (
        "raid",
        &["md_", "raid5_", "raid1_", "raid10_", "wait_barrier"],
    ),
    (
        "disk",
        &[
            "io_schedule",
            "blk_mq_",
            "submit_bio_wait",
            "wait_on_page",
            "folio_wait",
            "filemap_",
            "wait_on_buffer",
            "__wait_on_buffer",
            "dio_",
            "iomap_dio",
            "blk_",
            "bio_wait",
            "bdev_",
            "read_pages",
            "wait_on_bit_io",
            "blkdev_",
            "io_cqring_wait",
            "bt_get",
            "iomap_",
        ],
    ),
    (
        "journal",
        &[
            "jbd2_",
            "start_this_handle",
            "xfs_log",
            "xlog_",
            "btrfs_",
            "wait_transaction_locked",
        ],
    ),
    (
        LOCK,
        &[
            "mutex",
            "rwsem",
            "down_read",
            "down_write",
            "__down",
            "lock_page",
            "d_alloc_parallel",
            "d_wait_lookup",
            "percpu_",
        ],
    ),
    (
        "frozen",
        &[
            "__refrigerator",
            "do_freezer_trap",
            "freezer",
            "ptrace_stop",
            "do_signal_stop",
        ],
    ),
    ("cpu-limit", &["throttle_cfs_rq_work"]),
];

/// Class of waits for a lock of the kernel.
pub(super) const LOCK: &str = "lock";

/// Functions that take a lock of the kernel, and what the lock protects. Newer kernels leave the functions of the lock
/// itself out of a stack, so the innermost function is the one that takes the lock.
const LOCKS: [(&str, &[&str]); 3] = [
    (
        "the memory mappings that all threads of a program share",
        &[
            "lock_mm_and_find_vma",
            "__vma_start_write",
            "vm_mmap_pgoff",
            "__vm_munmap",
            "do_mprotect_pkey",
            "madvise_do_behavior",
            "do_madvise",
            "do_mremap",
            "__do_sys_mremap",
            "__do_sys_brk",
            "__x64_sys_brk",
            "do_user_addr_fault",
            "do_mlock",
            "__mm_populate",
            "dup_mmap",
            "exit_mmap",
        ],
    ),
    (
        "a directory",
        &[
            "path_openat",
            "open_last_lookups",
            "do_unlinkat",
            "do_rmdir",
            "do_renameat2",
            "lock_rename",
            "filename_create",
            "iterate_dir",
            "walk_component",
            "lookup_slow",
        ],
    ),
    (
        "a file",
        &[
            "fdget_pos",
            "__fdget_pos",
            "do_truncate",
            "chmod_common",
            "chown_common",
            "ext4_buffered_write_iter",
            "ext4_file_write_iter",
            "ext4_dio_write_iter",
            "ext4_fallocate",
            "generic_file_write_iter",
            "shmem_file_write_iter",
            "xfs_ilock",
            "btrfs_inode_lock",
        ],
    ),
];

/// Returns what a lock protects that is taken in this function; `None` if the function takes none.
pub(super) fn name_lock(function: &str) -> Option<&'static str> {
    let name = function.split('.').next().unwrap_or_default();
    let known = LOCKS.iter().find(|(_, known)| known.contains(&name));
    known.map(|(protected, _)| *protected)
}

/// Returns the class of waiting and the function that indicates it. `functions` is the stack,
/// innermost first.
pub(super) fn classify_stack<'a>(functions: &[&'a str]) -> (&'static str, &'a str) {
    if let Some(innermost) = functions.first()
        && name_lock(innermost).is_some()
    {
        return (LOCK, innermost);
    }
    for (class, known) in CLASSES {
        let tells = |function: &&&str| known.iter().any(|known| function.contains(known));
        if let Some(function) = functions.iter().find(tells) {
            return (class, function);
        }
    }
    let first = functions.first().copied().unwrap_or_default();
    ("other", first)
}

/// Returns the functions in `/proc/PID/stack`: lines `[<0>] NAME+0x…/0x…`.
pub(super) fn parse_stack(text: &str) -> Vec<&str> {
    let name = |line: &'_ str| -> Option<(usize, usize)> {
        let start = line.find("] ")? + 2;
        let end = line[start..]
            .find(['+', ' '])
            .map_or(line.len(), |end| start + end);
        Some((start, end))
    };
    text.lines()
        .filter_map(|line| name(line).map(|(start, end)| &line[start..end]))
        .take(64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_told_by_the_function_that_says_most() {
        let fsync = "[<0>] io_schedule+0x41/0x70\n[<0>] folio_wait_bit_common+0x1/0x2\n\
                     [<0>] file_write_and_wait_range+0x9f/0xc0\n[<0>] ext4_sync_file+0x8d/0x3a0\n";
        assert_eq!(classify_stack(&parse_stack(fsync)).0, "flush");
        let read = "[<0>] folio_wait_bit_common+0x1/0x2\n[<0>] filemap_read+0x1/0x2\n";
        assert_eq!(classify_stack(&parse_stack(read)).0, "disk");
        assert_eq!(classify_stack(&["rwsem_down_write_slowpath"]).0, "lock");
        // Linux 6.18: threads that map memory, programs that rename files, writers of one file, and a writer whose
        // disk is slow.
        for (stack, class) in [
            (&["__vm_munmap", "__x64_sys_munmap"][..], "lock"),
            (&["do_renameat2", "__x64_sys_rename"], "lock"),
            (&["ext4_buffered_write_iter", "vfs_write"], "lock"),
            (&["btrfs_inode_lock.isra.0", "btrfs_buffered_write"], "lock"),
            (
                &["io_schedule", "folio_wait_bit", "ext4_buffered_write_iter"],
                "disk",
            ),
        ] {
            assert_eq!(classify_stack(stack).0, class, "{stack:?}");
        }
        assert_eq!(
            classify_stack(&["rpc_wait_bit_killable", "nfs_file_fsync"]).0,
            "network-share"
        );
        // stat(2) below the folder of an automounter that does not answer.
        let mounts = ["autofs_wait", "autofs_mount_wait", "autofs_d_manage"];
        assert_eq!(classify_stack(&mounts).0, "network-share");
        assert_eq!(classify_stack(&[]), ("other", ""));
        assert!(parse_stack("damaged\n[<0>] \n").len() <= 1);
    }
}
