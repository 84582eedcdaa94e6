//! Classifies what a task in uninterruptible sleep waits for, from the kernel functions on its stack.

/// Kernel functions and the class of waiting that they indicate. Earlier rows take precedence; within a row, the
/// innermost matching function of the stack is returned.
const CLASSES: [(&str, &[&str]); 16] = [
    (
        "file-scanner",
        &["fanotify_handle_event", "fanotify_get_response"],
    ),
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
        "lock",
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

/// Returns the class of waiting and the function that indicates it. `functions` is the stack,
/// innermost first.
pub(super) fn classify_stack<'a>(functions: &[&'a str]) -> (&'static str, &'a str) {
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
        assert_eq!(
            classify_stack(&["rpc_wait_bit_killable", "nfs_file_fsync"]).0,
            "network-share"
        );
        assert_eq!(classify_stack(&[]), ("other", ""));
        assert!(parse_stack("damaged\n[<0>] \n").len() <= 1);
    }
}
