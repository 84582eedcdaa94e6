//! Classifies what a task in interruptible sleep waits for, if the kernel function shows that the task cannot wake by
//! itself. Most such sleeps are idleness, for example a server that waits for a request, or a timer; these have no
//! class. Uninterruptible sleep is in `wait_class`.

/// Kernel functions as `/proc/PID/wchan` shows them, and the class of waiting. Names must be equal, except for a
/// compiler suffix after a `.`.
const CLASSES: [(&str, &[&str]); 10] = [
    (
        "slow-reader",
        &[
            "pipe_write",
            "anon_pipe_write",
            "fifo_pipe_write",
            "pipe_wait_writable",
            "sock_alloc_send_pskb",
            "sock_wait_for_wmem",
            "sk_stream_wait_memory",
            "do_msgsnd",
            "n_tty_write",
        ],
    ),
    ("local-socket", &["unix_wait_for_peer"]),
    (
        "file-lock",
        &[
            "locks_lock_inode_wait",
            "flock_lock_inode_wait",
            "posix_lock_inode_wait",
            "fcntl_setlk",
            "do_lock_file_wait",
            "__break_lease",
        ],
    ),
    (
        "network-share",
        &[
            "request_wait_answer",
            "fuse_get_req",
            "fuse_dev_do_write",
            "p9_client_rpc",
            "p9_virtio_request",
            "rpc_wait_bit_killable",
            "wait_for_response",
        ],
    ),
    ("supervisor", &["seccomp_do_user_notification"]),
    ("page-server", &["handle_userfault"]),
    (SEMAPHORE, &["do_semtimedop", "__do_semtimedop"]),
    // The other end of a named pipe: a reader may be idle, a writer is not.
    (OPEN, &["wait_for_partner"]),
    // Terminals and POSIX queues, for reading and for writing: the system call decides.
    (WRITE, &["wait_woken", "wq_sleep"]),
    // Lock or queue: the arguments of the system call decide.
    (
        FUTEX,
        &[
            "futex_wait",
            "futex_do_wait",
            "futex_wait_queue",
            "futex_wait_queue_me",
            "__futex_wait",
        ],
    ),
];

/// The class of waits for a semaphore of System V. It may be a lock, or the wait of an idle worker.
pub(super) const SEMAPHORE: &str = "semaphore";

/// The class of sleeps in open(2) of a named pipe.
pub(super) const OPEN: &str = "open";

/// Class of all sleeps in a futex.
pub(super) const FUTEX: &str = "futex";

/// The class of sleeps that are waits for a reader if the task writes.
pub(super) const WRITE: &str = "write";

/// Numbers of write, writev, sendto, sendmsg and mq_timedsend.
#[cfg(target_arch = "x86_64")]
const WRITES: [u32; 5] = [1, 20, 44, 46, 242];
/// The same on newer architectures, which share a table of system calls.
#[cfg(not(target_arch = "x86_64"))]
const WRITES: [u32; 5] = [64, 66, 206, 211, 182];

/// Functions in which a task sleeps until a time that it chose.
const TIMERS: [&str; 3] = ["hrtimer_nanosleep", "do_nanosleep", "common_nsleep"];

/// Functions in which a server waits for the next connection.
const ACCEPTS: [&str; 4] = [
    "inet_csk_accept",
    "unix_accept",
    "skb_wait_for_more_packets",
    "__skb_wait_for_more_packets",
];

/// Functions in which a program waits for events that it watches with epoll.
const EPOLLS: [&str; 2] = ["ep_poll", "do_epoll_wait"];

/// Functions in which a program waits for events with poll or select.
const POLLS: [&str; 4] = [
    "do_poll",
    "do_select",
    "do_sys_poll",
    "poll_schedule_timeout",
];

/// Returns whether a task waits for events with epoll.
pub(super) fn is_epoll(wchan: &str) -> bool {
    EPOLLS.contains(&strip_suffix(wchan))
}

/// Returns whether a task waits for events of sockets and files, with epoll, poll or select.
pub(super) fn waits_for_events(wchan: &str) -> bool {
    is_epoll(wchan) || POLLS.contains(&strip_suffix(wchan))
}

/// Returns the name of a function without the compiler's suffix (`.constprop.0`).
fn strip_suffix(wchan: &str) -> &str {
    wchan.split('.').next().unwrap_or_default()
}

/// Returns whether a task waits for the next connection.
pub(super) fn is_accept(wchan: &str) -> bool {
    ACCEPTS.contains(&strip_suffix(wchan))
}

/// Returns the class of a sleep; `None` if it may be idleness.
pub(super) fn classify_sleep(wchan: &str) -> Option<&'static str> {
    let name = strip_suffix(wchan);
    let known = CLASSES.iter().find(|(_, known)| known.contains(&name));
    known.map(|(class, _)| *class)
}

/// Describes for people what a sleeping task waits for, including idleness.
pub(super) fn describe_sleep(wchan: &str) -> String {
    const PLACES: [(&str, &[&str]); 7] = [
        (
            "input of a pipe",
            &[
                "pipe_read",
                "anon_pipe_read",
                "fifo_pipe_read",
                "pipe_wait_readable",
            ],
        ),
        ("new connections", &ACCEPTS),
        (
            "data of a connection",
            &[
                "sk_wait_data",
                "wait_woken",
                "tcp_recvmsg",
                "unix_stream_read_generic",
                "unix_stream_data_wait",
            ],
        ),
        (
            "the end of a child",
            &["do_wait", "kernel_wait4", "do_wait4"],
        ),
        ("a time", &TIMERS),
        (
            "another thread",
            &[
                "futex_wait",
                "futex_do_wait",
                "futex_wait_queue",
                "futex_wait_queue_me",
            ],
        ),
        (
            "a signal",
            &[
                "do_sigtimedwait",
                "sigsuspend",
                "do_nanosleep_restart",
                "ptrace_stop",
            ],
        ),
    ];
    if waits_for_events(wchan) {
        return "events of sockets and files".to_owned();
    }
    let name = strip_suffix(wchan);
    let known = PLACES.iter().find(|(_, known)| known.contains(&name));
    match (known, name) {
        (Some((place, _)), _) => (*place).to_owned(),
        (None, "" | "0") => "something that only root may see".to_owned(),
        (None, name) => name.to_owned(),
    }
}

/// Returns whether a task sleeps until a time that it chose.
pub(super) fn is_timer(wchan: &str) -> bool {
    TIMERS.contains(&strip_suffix(wchan))
}

/// Returns the address of the lock for which a futex call waits, from `/proc/PID/syscall`; `None` if the call does not
/// wait for a contended lock.
///
/// glibc, musl and Rust mark a lock with waiters with the value 2 and wait for exactly this value (`FUTEX_WAIT`, or
/// `FUTEX_WAIT_BITSET` without a time); condition variables wait for other values.
pub(super) fn parse_contended_lock(syscall: &str) -> Option<u64> {
    let mut words = syscall.split_ascii_whitespace().skip(1);
    let mut next = || {
        let word = words.next()?;
        u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
    };
    let (address, operation, value) = (next()?, next()?, next()?);
    // FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME say nothing about the kind of waiting.
    let operation = operation & 0x7f;
    let is_wait = operation == 0 || operation == 9;
    let is_marked = value == 2;
    (is_wait && is_marked && address != 0).then_some(address)
}

/// Whether a task waits for others: its sleep has a class, and is neither a lock of its program nor a wait for input.
/// `read_call` reads its `/proc/PID/syscall`.
pub(super) fn waits_for_others(wchan: &str, read_call: impl FnOnce() -> Option<String>) -> bool {
    match classify_sleep(wchan) {
        None | Some(FUTEX | SEMAPHORE) => false,
        Some(OPEN) => read_call().is_some_and(|call| opens_to_write(&call)),
        Some(WRITE) => read_call().is_some_and(|call| is_write(&call)),
        Some(_) => true,
    }
}

/// Whether a task in `/proc/PID/syscall` writes.
pub(super) fn is_write(syscall: &str) -> bool {
    let number = syscall.split_ascii_whitespace().next();
    number
        .and_then(|number| number.parse().ok())
        .is_some_and(|number: u32| WRITES.contains(&number))
}

/// Numbers of open and openat, and the position of the argument with the flags.
#[cfg(target_arch = "x86_64")]
const OPENS: [(u32, usize); 2] = [(2, 2), (257, 3)];
/// The same on newer architectures: openat.
#[cfg(not(target_arch = "x86_64"))]
const OPENS: [(u32, usize); 1] = [(56, 3)];

/// Whether a task in `/proc/PID/syscall` opens a file for writing only.
pub(super) fn opens_to_write(syscall: &str) -> bool {
    let words: Vec<&str> = syscall.split_ascii_whitespace().collect();
    let number = words.first().and_then(|word| word.parse().ok());
    let Some((_, at)) = OPENS.iter().find(|(call, _)| Some(*call) == number) else {
        return false;
    };
    let flags = words.get(*at).map(|word| word.trim_start_matches("0x"));
    let flags = flags.and_then(|word| u64::from_str_radix(word, 16).ok());
    flags.is_some_and(|flags| flags & 3 == 1)
}

/// Returns the file descriptor of a system call in `/proc/PID/syscall`, which is its first argument.
pub(super) fn parse_descriptor(syscall: &str) -> Option<u32> {
    let word = syscall.split_ascii_whitespace().nth(1)?;
    let number = u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()?;
    u32::try_from(number)
        .ok()
        .filter(|number| *number < 1 << 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_writer_waits_and_an_idle_server_does_not() {
        assert_eq!(classify_sleep("anon_pipe_write"), Some("slow-reader"));
        assert_eq!(
            classify_sleep("locks_lock_inode_wait.part.0"),
            Some("file-lock")
        );
        assert_eq!(
            classify_sleep("seccomp_do_user_notification.isra.0"),
            Some("supervisor")
        );
        assert_eq!(classify_sleep("handle_userfault"), Some("page-server"));
        for idle in [
            "ep_poll",
            "do_epoll_wait",
            "do_wait",
            "inet_csk_accept",
            "pipe_read",
            "0",
            "",
        ] {
            assert_eq!(classify_sleep(idle), None, "{idle}");
        }
        assert!(is_timer("hrtimer_nanosleep") && !is_timer("ep_poll"));
        assert!(is_epoll("do_epoll_wait") && !is_epoll("poll_schedule_timeout.constprop.0"));
        assert!(
            waits_for_events("poll_schedule_timeout.constprop.0") && !waits_for_events("do_wait")
        );
    }

    #[test]
    fn a_mutex_is_told_from_a_condition_variable() {
        let mutex = "202 0x7f0010 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f9e";
        assert_eq!(parse_contended_lock(mutex), Some(0x7f_0010));
        let condition = "202 0x7f0010 0x189 0x10 0x0 0x0 0xffffffff 0x7ffe 0x7f9e";
        assert_eq!(parse_contended_lock(condition), None);
        // A parked thread of Rust waits for -1.
        let parked = "202 0x7f0010 0x89 0xffffffff 0x0 0x0 0xffffffff 0x7ffe 0x7f9e";
        assert_eq!(parse_contended_lock(parked), None);
        assert_eq!(parse_contended_lock("running"), None);
        assert_eq!(parse_descriptor("1 0x4 0x7f 0x10 0x0"), Some(4));
        assert_eq!(parse_descriptor("running"), None);
    }

    #[test]
    fn who_waits_for_a_reader_of_a_named_pipe_is_told_from_who_waits_for_a_writer() {
        let open = |flags: &str| {
            let (call, _) = OPENS[OPENS.len() - 1];
            format!("{call} 0xffffff9c 0x5644 {flags} 0x1b6 0x0 0x0 0x7ffe 0x7f9e")
        };
        let waits = |flags: &str| waits_for_others("wait_for_partner", || Some(open(flags)));
        assert!(waits("0x241") && waits("0x1") && !waits("0x0") && !waits("0x80000"));
        assert!(!opens_to_write("running") && !opens_to_write(""));
        assert!(!waits_for_others("do_semtimedop", || None));
    }

    #[test]
    fn who_writes_to_a_terminal_that_nobody_reads_is_told_from_who_reads_it() {
        let write = Some(format!("{} 0x1 0x5644 0x2000", WRITES[0]));
        let read = Some("999 0x0 0x5644 0x2000".to_owned());
        assert!(waits_for_others("wait_woken", || write.clone()));
        assert!(!waits_for_others("wait_woken", || read.clone()));
        assert!(waits_for_others("pipe_write", || None) && !waits_for_others("ep_poll", || None));
    }
}
