//! What the test of remedies goes by for pages about access and for the state of the system.

/// Programs that a remedy may name, with the package of Debian that has each.
pub const PROGRAMS: [(&str, &str); 5] = [
    ("exportfs", "nfs-kernel-server"),
    ("haproxy", "haproxy"),
    ("timedatectl", "systemd"),
    ("vipw", "passwd"),
    ("visudo", "sudo"),
];

const APPLIED: &str = "crates/advice/tests/remedies_applied.rs";
const ON_DISKS: &str = "crates/advice/tests/remedies_on_disks.rs";

/// Remedies that were carried out: page, and the test that did so.
pub const EXECUTED: [(&str, &str); 54] = [
    ("mariadb-tls-1-0", APPLIED),
    ("postgresql-tls-1-0", APPLIED),
    ("account-twin-of-root", APPLIED),
    ("apache-listing", APPLIED),
    ("apache-root-granted", APPLIED),
    ("apache-status-open", APPLIED),
    ("docker-open", APPLIED),
    ("haproxy-socket-open", APPLIED),
    ("haproxy-statistics-open", APPLIED),
    ("haproxy-tls-1-0", APPLIED),
    ("mariadb-remote-without-tls", APPLIED),
    ("mariadb-skip-grant-tables", APPLIED),
    ("network-mount-waits", APPLIED),
    ("nfs-blank-before-options", APPLIED),
    ("nfs-root-kept", APPLIED),
    ("nfs-world-writable", APPLIED),
    ("nginx-alias-traversal", APPLIED),
    ("nginx-autoindex", APPLIED),
    ("nginx-headers-lost", APPLIED),
    ("nginx-php-unguarded", APPLIED),
    ("nginx-redirect-splitting", APPLIED),
    ("nginx-root-system", APPLIED),
    ("nginx-status-open", APPLIED),
    ("nginx-tls-1-0", APPLIED),
    ("nginx-weak-ciphers", APPLIED),
    ("postfix-cleartext-login", APPLIED),
    ("postgresql-autovacuum-off", APPLIED),
    ("postgresql-cleartext-password", APPLIED),
    ("postgresql-trust-local", APPLIED),
    ("postgresql-trust-remote", APPLIED),
    ("postgresql-world-without-tls", APPLIED),
    ("smb-guest-writable", APPLIED),
    ("ssh-agent-to-all", APPLIED),
    ("ssh-host-keys-unchecked", APPLIED),
    ("sshd-gateway-ports", APPLIED),
    ("sshd-log-quiet", APPLIED),
    ("sshd-login-grace-none", APPLIED),
    ("sshd-max-auth-tries", APPLIED),
    ("sshd-user-environment", APPLIED),
    ("sshd-x11-all-addresses", APPLIED),
    ("sudo-without-password", APPLIED),
    ("sysctl-abort-on-overflow", ON_DISKS),
    ("sysctl-echo-broadcasts", ON_DISKS),
    ("sysctl-file-max-small", ON_DISKS),
    ("sysctl-hardlinks-unprotected", ON_DISKS),
    ("sysctl-max-map-count-small", ON_DISKS),
    ("sysctl-no-pmtu-disc", ON_DISKS),
    ("sysctl-panic-on-oom", ON_DISKS),
    ("sysctl-rcvbuf-fixed", ON_DISKS),
    ("sysctl-tw-buckets-few", ON_DISKS),
    ("sysctl-vfs-cache-pressure-zero", ON_DISKS),
    ("sysctl-zone-reclaim", ON_DISKS),
    ("web-server-tls-1-0", APPLIED),
    ("web-server-weak-ciphers", APPLIED),
];

/// Remedies that nobody has carried out in a test. This list may only become shorter.
pub const NOT_EXECUTED: [&str; 8] = [
    "account-old-hash",
    "account-without-password",
    "clock-alone",
    "docker-privileged",
    "docker-socket-inside",
    "reboot-pending",
    "system-file-writable",
    "units-failed",
];
