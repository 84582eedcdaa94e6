//! Remedies of pages about the system, packages, guests and storage; `main` executes them.

use crate::Remedy;

pub(crate) const REMEDIES: &[Remedy] = &[
    (
        "libvirt-vnc-open",
        "all",
        "etc/libvirt/qemu.conf",
        &[("0.0.0.0", "127.0.0.1")],
    ),
    (
        "libvirt-confinement-off",
        "none",
        "etc/libvirt/qemu.conf",
        &[("security_driver = \"none\"\n", "")],
    ),
    (
        "apt-unauthenticated",
        "get",
        "etc/apt/apt.conf.d/99own",
        &[("APT::Get::AllowUnauthenticated \"true\";\n", "")],
    ),
    (
        "apt-peer-unverified",
        "peer",
        "etc/apt/apt.conf.d/99own",
        &[("Acquire::https::Verify-Peer \"false\";\n", "")],
    ),
    (
        "apt-upgrades-off",
        "off",
        "etc/apt/apt.conf.d/20auto-upgrades",
        &[("Unattended-Upgrade \"0\"", "Unattended-Upgrade \"1\"")],
    ),
    (
        "apt-trusted-source",
        "line",
        "etc/apt/sources.list",
        &[("[trusted=yes]", "[signed-by=/etc/apt/keyrings/own.gpg]")],
    ),
    (
        "apt-no-security-source",
        "main",
        "etc/apt/sources.list",
        &[(
            "bookworm-updates main\n",
            "bookworm-updates main\ndeb http://deb.debian.org/debian-security bookworm-security main\n",
        )],
    ),
    (
        "hostapd-open",
        "open",
        "etc/hostapd/hostapd.conf",
        &[(
            "channel=6\n",
            "channel=6\nwpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\nwpa_passphrase=aLongOne123\n",
        )],
    ),
    (
        "hostapd-tkip",
        "mixed",
        "etc/hostapd/hostapd.conf",
        &[("wpa=3", "wpa=2"), ("wpa_pairwise=TKIP\n", "")],
    ),
    (
        "hostapd-wep",
        "wep",
        "etc/hostapd/hostapd.conf",
        &[(
            "wep_default_key=0\nwep_key0=123456789a\n",
            "wpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\n",
        )],
    ),
    (
        "hostapd-wps",
        "pin",
        "etc/hostapd/hostapd.conf",
        &[("wps_state=2", "wps_state=0"), ("ap_pin=12345670\n", "")],
    ),
    (
        "hostapd-frames-unprotected",
        "sae",
        "etc/hostapd/hostapd.conf",
        &[("wpa_key_mgmt=SAE\n", "wpa_key_mgmt=SAE\nieee80211w=2\n")],
    ),
    (
        "journald-stores-nothing",
        "none",
        "etc/systemd/journald.conf",
        &[("Storage=none", "Storage=auto")],
    ),
    (
        "login-old-hash",
        "md5",
        "etc/login.defs",
        &[("METHOD MD5", "METHOD YESCRYPT")],
    ),
    (
        "pam-old-hash",
        "md5",
        "etc/pam.d/common-password",
        &[("obscure md5", "obscure yescrypt")],
    ),
    (
        "pam-admits-everybody",
        "sufficient",
        "etc/pam.d/sshd",
        &[("auth sufficient pam_permit.so\n", "")],
    ),
    (
        "pam-module-missing",
        "tally2",
        "etc/pam.d/sshd",
        &[("auth required pam_tally2.so deny=5\n", "")],
    ),
    (
        "sudo-loads-foreign-code",
        "preload",
        "etc/sudoers",
        &[("Defaults env_keep += \"LD_PRELOAD\"\n", "")],
    ),
    (
        "sudo-ticket-forever",
        "forever",
        "etc/sudoers",
        &[("Defaults timestamp_timeout=-1\n", "")],
    ),
    (
        "sudo-all-but-some",
        "all",
        "etc/sudoers",
        &[("ALL, !/bin/su, !/bin/bash", "/usr/bin/rsync")],
    ),
    (
        "sudo-for-everybody",
        "all",
        "etc/sudoers",
        &[("\nALL ALL", "\n%sudo ALL")],
    ),
    (
        "sudo-shell-without-password",
        "vim",
        "etc/sudoers",
        &[("/usr/bin/vim", "sudoedit /etc/motd")],
    ),
    (
        "sudo-star-in-arguments",
        "cat",
        "etc/sudoers",
        &[("/var/log/*", "/var/log/syslog")],
    ),
    (
        "docker-insecure-registry",
        "network",
        "etc/docker/daemon.json",
        &[("\"registry.example.org:5000\"", "")],
    ),
    (
        "docker-iptables-off",
        "off",
        "etc/docker/daemon.json",
        &[("\"iptables\": false", "\"iptables\": true")],
    ),
    (
        "docker-seccomp-off",
        "off",
        "etc/docker/daemon.json",
        &[("  \"seccomp-profile\": \"unconfined\"\n", "")],
    ),
    (
        "container-file-privileged",
        "compose",
        "opt/app/docker-compose.yml",
        &[("    privileged: true\n", "")],
    ),
    (
        "container-file-socket",
        "compose",
        "opt/app/docker-compose.yml",
        &[(
            "/var/run/docker.sock:/var/run/docker.sock:ro",
            "./data:/data",
        )],
    ),
    (
        "container-file-root-disk",
        "compose",
        "opt/app/docker-compose.yml",
        &[("/:/host", "/:/host:ro")],
    ),
    (
        "path-has-foreign-directory",
        "dot",
        "etc/profile",
        &[("PATH=.:", "PATH=")],
    ),
    (
        "md-nobody-told",
        "none",
        "etc/mdadm/mdadm.conf",
        &[("HOMEHOST", "MAILADDR root\nHOMEHOST")],
    ),
    (
        "md-check-off",
        "off",
        "etc/default/mdadm",
        &[("=false", "=true")],
    ),
    (
        "smartd-tells-nobody",
        "scan",
        "etc/smartd.conf",
        &[("standby\n", "standby -m root\n")],
    ),
    (
        "hosts-equiv-trusts-all",
        "plus",
        "etc/hosts.equiv",
        &[("+\n", "")],
    ),
    (
        "inetd-login-in-the-clear",
        "inetd",
        "etc/inetd.conf",
        &[("telnet stream", "#telnet stream")],
    ),
    (
        "apcupsd-never-shuts-down",
        "off",
        "etc/apcupsd/apcupsd.conf",
        &[
            ("BATTERYLEVEL -1", "BATTERYLEVEL 5"),
            ("MINUTES -1", "MINUTES 3"),
        ],
    ),
    (
        "openssl-limits-lowered",
        "protocol",
        "etc/ssl/openssl.cnf",
        &[("MinProtocol = TLSv1\n", "")],
    ),
];
