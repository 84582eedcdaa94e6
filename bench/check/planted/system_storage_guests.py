"""Planted rows: kernel, accounts, containers, storage, guests, power, backups. See `run_planted`."""

from time import time

PVE = "etc/pve/qemu-server/101.conf"
PVEBASE = "agent: 1\nboot: order=scsi0\ncores: 2\nmemory: 2048\nname: web\nostype: l26\nscsihw: virtio-scsi-single\n"
KVM = {"proc/cpuinfo": "flags\t\t: fpu sse2 ssse3 sse4_1 sse4_2 popcnt aes hypervisor\n"}
OLD, NEW = time() - 40 * 86400, time() - 3600
FSTAB = "etc/fstab"
ROOTFS = "UUID=1b2c / ext4 errors=remount-ro 0 1\n"
ROOT_RULE = "root ALL=(ALL:ALL) ALL\n"
INCLUDE = {"etc/sudoers": ROOT_RULE + "@includedir /etc/sudoers.d\n"}
SYSCTL = "etc/sysctl.d/99-x.conf"
PASSWD = "root:x:0:0::/root:/bin/bash\n"
SHADOW = "root:*:19000:0:99999:7:::\n"
BOB = "bob:x:1000:1000::/home/bob:/bin/bash\n"
COMMON = "auth [success=1 default=ignore] pam_unix.so\nauth requisite pam_deny.so\nauth required pam_permit.so\n"
KEYED = {"etc/nginx/nginx.conf": "events {}\nhttp { server { listen 443 ssl; ssl_certificate /etc/ssl/a.pem; "
         "ssl_certificate_key /etc/ssl/private/a.key; } }\n"}
KEY = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"
MD = "Personalities : [raid1]\nmd0 : active raid1 sdb1[1] sda1[0]\n      1046528 blocks super 1.2 [2/2] [UU]\n\n"
UPSMON = "MONITOR a@localhost 1 u p primary\n"
SHUTDOWN = "SHUTDOWNCMD \"/sbin/shutdown -h +0\"\nPOWERDOWNFLAG /etc/killpower\nFINALDELAY 5\n"
UPS = "[a]\n driver = usbhid-ups\n port = auto\n"
RSNAPSHOT = {"etc/rsnapshot.conf": "config_version\t1.2\nsnapshot_root\t/srv/snap/\nretain\tdaily\t7\nbackup\t/etc/\tlocalhost/\n",
             "etc/cron.d/rsnapshot": "0 3 * * * root /usr/bin/rsnapshot daily\n"}
RESTIC = {"etc/systemd/system/restic.service": "[Service]\nEnvironment=RESTIC_REPOSITORY=/srv/restic\n"
          "ExecStart=/usr/bin/restic backup /etc\n", "srv/restic/config": "x"}
BORG = {"etc/borgmatic/config.yaml": "repositories:\n    - path: /srv/borg\nsource_directories:\n    - /etc\n",
        "etc/cron.d/borgmatic": "0 3 * * * root borgmatic\n", "srv/borg/config": ("[repository]\n", 0o600, OLD)}
PBS = {"etc/proxmox-backup/datastore.cfg": "datastore: main\n\tpath /srv/pbs\n", "srv/pbs/.chunks/": NEW}


def pve(text):
    return {PVE: PVEBASE + text, "etc/pve/storage.cfg": "dir: local\n\tpath /var/lib/vz\n\tcontent images\n"}


def libvirt(devices, cpu="<cpu mode='host-passthrough'/>"):
    return {"etc/libvirt/qemu/web.xml": "<domain type='kvm'>\n  <name>web</name>\n  <memory unit='GiB'>2</memory>\n"
            f"  <vcpu>2</vcpu>\n  <os><type arch='x86_64' machine='q35'>hvm</type></os>\n  {cpu}\n"
            f"  <devices>\n{devices}  </devices>\n</domain>\n"}


def disk(bus, more="", cache="none"):
    return (f"    <disk type='file' device='disk'>\n      <driver name='qemu' type='qcow2' cache='{cache}' "
            "discard='unmap'/>\n      <source file='/srv/a.qcow2'/>\n"
            f"      <target dev='vda' bus='{bus}'/>\n{more}    </disk>\n")


def card(model):
    return disk("virtio") + ("    <interface type='bridge'>\n      <source bridge='br0'/>\n"
                             f"      <model type='{model}'/>\n    </interface>\n")


def vnc(address):
    return disk("virtio") + f"    <graphics type='vnc' port='-1' autoport='yes' listen='{address}'/>\n"


def qemu(arguments):
    line = "/usr/bin/qemu-system-x86_64 -m 1024 " + arguments
    return {"proc/4242/comm": "qemu-system-x86\n", "proc/4242/cmdline": line.replace(" ", "\0") + "\0"}


def unit(arguments):
    return {"etc/systemd/system/vm-web.service": f"[Service]\nExecStart=/usr/bin/qemu-system-x86_64 -m 1024 {arguments}\n"}


def sudo(rule):
    return {"etc/sudoers": ROOT_RULE + rule + "\n"}


def users(passwd, shadow):
    return {"etc/passwd": PASSWD + passwd, "etc/shadow": SHADOW + shadow}


def sysctl(name, value):
    return {SYSCTL: f"{name} = {value}\n"}


def compose(text, path="opt/app/docker-compose.yml"):
    return {path: "services:\n  app:\n    image: x\n" + text}


def nut(upsmon, ups=UPS):
    return {"etc/nut/nut.conf": "MODE=standalone\n", "etc/nut/ups.conf": ups, "etc/nut/upsmon.conf": UPSMON + upsmon}


DRIVE = " -drive file=/srv/a.qcow2,if=virtio,cache=none"

ROWS = [
    ("sysctl-syncookies", r"sysctl", sysctl("net.ipv4.tcp_syncookies", 0), sysctl("net.ipv4.tcp_syncookies", 1)),
    ("sysctl-aslr-slash", r"aslr", {"etc/sysctl.conf": "kernel/randomize_va_space = 0\n"}, {"etc/sysctl.conf": "kernel/randomize_va_space = 2\n"}),
    ("sysctl-recycle-minus", r"recycle", {SYSCTL: "-net.ipv4.tcp_tw_recycle = 1\n"}, {SYSCTL: "#net.ipv4.tcp_tw_recycle = 1\n"}),
    ("sysctl-overridden", r"source", {"usr/lib/sysctl.d/60-a.conf": "net.ipv4.conf.all.accept_source_route = 1\n"},
     {"usr/lib/sysctl.d/60-a.conf": "net.ipv4.conf.all.accept_source_route = 1\n",
      "etc/sysctl.d/60-a.conf": "net.ipv4.conf.all.accept_source_route = 0\n"}),
    ("sysctl-panic-oom", r"oom", sysctl("vm.panic_on_oom", 1), sysctl("vm.panic_on_oom", 0)),
    ("sysctl-symlinks", r"links", sysctl("fs.protected_symlinks", 0), sysctl("fs.protected_symlinks", 1)),
    ("sysctl-dumpable", r"dumpable", sysctl("fs.suid_dumpable", 1), sysctl("fs.suid_dumpable", 2)),
    ("sysctl-accept-redirects", r"redirect", sysctl("net.ipv4.conf.all.accept_redirects", 1) | {"proc/sys/net/ipv4/ip_forward": "1\n"},
     sysctl("net.ipv4.conf.all.accept_redirects", 0)),
    ("sysctl-sysrq", r"sysrq", sysctl("kernel.sysrq", 1), sysctl("kernel.sysrq", 176)),
    ("sysctl-overcommit", r"overcommit", sysctl("vm.overcommit_memory", 1) | {"etc/postgresql/15/main/postgresql.conf": "fsync = on\n"},
     sysctl("vm.overcommit_memory", 2)),
    ("sysctl-wrong-ending", r"ignored|file", {"etc/sysctl.d/60-net": "net.core.somaxconn = 4096\n"}, {"etc/sysctl.d/60-net.conf": "net.core.somaxconn = 4096\n"}),
    ("mitigations-grub", r"mitigations", {"etc/default/grub": "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet mitigations=off\"\n"},
     {"etc/default/grub": "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet mitigations=auto\"\n"}),
    ("mitigations-cmdline", r"mitigations", {"proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 mitigations=off\n"},
     {"proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet\n"}),
    ("journald-none", r"journald", {"etc/systemd/journald.conf.d/x.conf": "[Journal]\nStorage=none\n"},
     {"etc/systemd/journald.conf": "[Journal]\nStorage=none\n", "etc/systemd/journald.conf.d/x.conf": "[Journal]\nStorage=persistent\n"}),
    ("apt-noauth", r"apt", {"etc/apt/apt.conf.d/99x": "APT::Get::AllowUnauthenticated \"true\";\n"},
     {"etc/apt/apt.conf.d/99x": "APT::Get::AllowUnauthenticated \"false\";\n"}),
    ("apt-trusted", r"apt", {"etc/apt/sources.list.d/x.list": "deb [arch=amd64 trusted=yes] http://r.example/debian stable main\n"},
     {"etc/apt/sources.list.d/x.list": "deb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] http://r.example/debian stable main\n"}),
    ("apt-trusted-deb822", r"apt", {"etc/apt/sources.list.d/x.sources": "Types: deb\nURIs: http://r.example/debian\nSuites: stable\nComponents: main\nTrusted: yes\n"},
     {"etc/apt/sources.list.d/x.sources": "Types: deb\nURIs: http://r.example/debian\nSuites: stable\nComponents: main\nSigned-By: /usr/share/keyrings/x.gpg\n"}),
    ("sudo-nopasswd-group", r"sudo", {**INCLUDE, "etc/sudoers.d/ops": "%ops ALL=(ALL) NOPASSWD: ALL\n"},
     {**INCLUDE, "etc/sudoers.d/ops": "%ops ALL=(ALL) NOPASSWD: /usr/bin/systemctl restart app.service\n"}),
    ("sudo-star", r"sudo", sudo("bob ALL=(root) /bin/cat /var/log/*"), sudo("bob ALL=(root) /bin/cat /var/log/syslog")),
    ("sudo-all-but", r"sudo", sudo("bob ALL=(ALL) ALL, !/bin/su"), sudo("bob ALL=(root) /usr/bin/apt-get update")),
    ("sudo-vim", r"sudo", sudo("bob ALL=(root) NOPASSWD: /usr/bin/vim /etc/hosts"), sudo("bob ALL=(root) NOPASSWD: sudoedit /etc/hosts")),
    ("sudo-alias", r"sudo", sudo("Cmnd_Alias SHELLS = /bin/bash, /bin/sh\nbob ALL=(root) NOPASSWD: SHELLS"),
     sudo("Cmnd_Alias WEB = /usr/bin/systemctl reload nginx\nbob ALL=(root) NOPASSWD: WEB")),
    ("sudo-env-keep", r"sudo", sudo("Defaults env_keep += \"LD_PRELOAD\""), sudo("Defaults env_keep += \"LANG\"")),
    ("sudo-no-authenticate", r"sudo", sudo("Defaults !authenticate"), sudo("Defaults authenticate")),
    ("sudo-timestamp", r"sudo", sudo("Defaults timestamp_timeout=-1"), sudo("Defaults timestamp_timeout=5")),
    ("sudo-dot-file", r"sudo", {**INCLUDE, "etc/sudoers.d/ops.conf": "bob ALL=(root) /usr/bin/id\n"},
     {**INCLUDE, "etc/sudoers.d/ops": "bob ALL=(root) /usr/bin/id\n"}),
    ("pam-permit", r"pam", {"etc/pam.d/sshd": "auth sufficient pam_permit.so\n@include common-auth\n", "etc/pam.d/common-auth": COMMON},
     {"etc/pam.d/sshd": "@include common-auth\n", "etc/pam.d/common-auth": COMMON}),
    ("account-uid0", r"account|twin", users("toor:x:0:0::/root:/bin/bash\n", "toor:*:1::::::\n"), users(BOB, "bob:*:1::::::\n")),
    ("account-empty", r"account", users(BOB, "bob::19000:0:99999:7:::\n"), users(BOB, "bob:!:19000:0:99999:7:::\n")),
    ("account-empty-passwd", r"account", users("bob::1000:1000::/home/bob:/bin/bash\n", ""), users("svc:*:100:100::/none:/usr/sbin/nologin\n", "")),
    ("account-md5", r"hash", users(BOB, "bob:$1$abcdefgh$JKdM0nKYLCU2xlPYAxYmD1:19000:0:99999:7:::\n"), users(BOB, "bob:$y$j9T$abc$JKdM0nKYLCU2xlPYAxYmD1:19000::::::\n")),
    ("cron-dot-name", r"cron", {"etc/cron.d/backup.sh": "0 3 * * * root /usr/local/bin/backup\n"}, {"etc/cron.d/backup": "0 3 * * * root /usr/local/bin/backup\n"}),
    ("cron-daily-noexec", r"cron", {"etc/cron.daily/backup": "#!/bin/sh\ntar c /srv > /b.tar\n"}, {"etc/cron.daily/backup": ("#!/bin/sh\ntar c /srv > /b.tar\n", 0o755)}),
    ("cron-program-writable", r"writable", {"etc/cron.d/job": "0 3 * * * root /opt/job.sh\n", "opt/job.sh": ("#!/bin/sh\n", 0o777)},
     {"etc/cron.d/job": "0 3 * * * root /opt/job.sh\n", "opt/job.sh": ("#!/bin/sh\n", 0o755)}),
    ("unit-program-writable", r"writable", {"etc/systemd/system/app.service": "[Service]\nExecStart=/opt/app/run --port 80\n", "opt/app/run": ("#!/bin/sh\n", 0o757)},
     {"etc/systemd/system/app.service": "[Service]\nExecStart=/opt/app/run --port 80\n", "opt/app/run": ("#!/bin/sh\n", 0o755)}),
    ("shadow-readable", r"secret|readable|file", {"etc/passwd": PASSWD, "etc/shadow": (SHADOW, 0o644)}, {"etc/passwd": PASSWD, "etc/shadow": (SHADOW, 0o640)}),
    ("key-readable", r"key", {**KEYED, "etc/ssl/private/a.key": (KEY, 0o644)}, {**KEYED, "etc/ssl/private/a.key": (KEY, 0o600)}),
    ("path-dot", r"path", {"etc/profile": "PATH=.:/usr/local/bin:/usr/bin:/bin\nexport PATH\n"}, {"etc/profile": "PATH=/usr/local/bin:/usr/bin:/bin\nexport PATH\n"}),
    ("path-tmp-environment", r"path", {"etc/environment": "PATH=\"/tmp/bin:/usr/bin:/bin\"\n"}, {"etc/environment": "PATH=\"/usr/local/sbin:/usr/bin:/bin\"\n"}),
    ("docker-tcp-json", r"docker", {"etc/docker/daemon.json": "{\"hosts\": [\"unix:///var/run/docker.sock\", \"tcp://0.0.0.0:2375\"]}\n"},
     {"etc/docker/daemon.json": "{\"hosts\": [\"tcp://0.0.0.0:2376\"], \"tlsverify\": true, \"tlscacert\": \"/a\", \"tlscert\": \"/b\", \"tlskey\": \"/c\"}\n"}),
    ("docker-tcp-unit", r"docker", {"etc/systemd/system/docker.service.d/override.conf": "[Service]\nExecStart=\nExecStart=/usr/bin/dockerd -H fd:// -H tcp://0.0.0.0:2375\n"},
     {"etc/systemd/system/docker.service.d/override.conf": "[Service]\nExecStart=\nExecStart=/usr/bin/dockerd -H fd:// -H tcp://127.0.0.1:2375\n"}),
    ("docker-tcp-default", r"docker", {"etc/default/docker": "DOCKER_OPTS=\"-H tcp://0.0.0.0:2375 -H unix:///var/run/docker.sock\"\n"},
     {"etc/default/docker": "DOCKER_OPTS=\"-H unix:///var/run/docker.sock\"\n"}),
    ("docker-insecure", r"docker", {"etc/docker/daemon.json": "{\n  \"insecure-registries\": [\"registry.example.com:5000\"]\n}\n"}, {"etc/docker/daemon.json": "{\n  \"insecure-registries\": [\"127.0.0.0/8\"]\n}\n"}),
    ("docker-iptables", r"docker", {"etc/docker/daemon.json": "{ \"iptables\": false }"}, {"etc/docker/daemon.json": "{ \"iptables\": true }"}),
    ("compose-privileged", r"container", compose("    privileged: true\n", "srv/app/compose.yaml"), compose("    cap_add: [NET_ADMIN]\n", "srv/app/compose.yaml")),
    ("compose-socket-long", r"container", compose("    volumes:\n      - type: bind\n        source: /var/run/docker.sock\n        target: /var/run/docker.sock\n"), compose("    volumes:\n      - ./data:/data\n")),
    ("compose-root-flow", r"container", compose("    volumes: [\"/:/host\"]\n", "home/bob/stack/docker-compose.yml"), compose("    volumes: [\"/srv/data:/data\"]\n", "home/bob/stack/docker-compose.yml")),
    ("unit-docker-privileged", r"container|docker", {"etc/systemd/system/app.service": "[Service]\nExecStart=/usr/bin/docker run --rm --privileged --name app img\n"},
     {"etc/systemd/system/app.service": "[Service]\nExecStart=/usr/bin/docker run --rm --cap-drop ALL --name app img\n"}),
    ("hosts-equiv", r"hosts", {"etc/hosts.equiv": "+\n"}, {"etc/hosts.equiv": "# +\n"}),
    ("telnet-inetd", r"inetd|clear", {"etc/inetd.conf": "telnet stream tcp nowait telnetd /usr/sbin/tcpd /usr/sbin/in.telnetd\n"},
     {"etc/inetd.conf": "#telnet stream tcp nowait telnetd /usr/sbin/tcpd /usr/sbin/in.telnetd\n"}),
    ("telnet-xinetd", r"inetd|clear", {"etc/xinetd.d/telnet": "service telnet\n{\n  disable = no\n  server = /usr/sbin/in.telnetd\n}\n"},
     {"etc/xinetd.d/telnet": "service telnet\n{\n  disable = yes\n  server = /usr/sbin/in.telnetd\n}\n"}),

    ("fstab-nobarrier", r"barrier|option", {FSTAB: ROOTFS + "UUID=2 /srv xfs defaults,nobarrier 0 2\n"}, {FSTAB: ROOTFS + "UUID=2 /srv xfs defaults 0 2\n"}),
    ("fstab-barrier0", r"barrier", {FSTAB: ROOTFS + "UUID=2 /srv ext4 defaults,barrier=0 0 2\n"}, {FSTAB: ROOTFS + "UUID=2 /srv ext4 defaults,barrier=1 0 2\n"}),
    ("fstab-nfs-waits", r"network|mount", {FSTAB: ROOTFS + "nas:/a /mnt/a nfs4 defaults 0 0\n"}, {FSTAB: ROOTFS + "nas:/a /mnt/a nfs4 defaults,nofail,x-systemd.automount 0 0\n"}),
    ("fstab-typo", r"fstab|option", {FSTAB: ROOTFS + "UUID=2 /srv btrfs noatime,compres=zstd 0 0\n"}, {FSTAB: ROOTFS + "UUID=2 /srv btrfs noatime,compress=zstd 0 0\n"}),
    ("fstab-swap-zvol", r"swap", {FSTAB: ROOTFS + "/dev/zvol/rpool/swap none swap sw 0 0\n"}, {FSTAB: ROOTFS + "/dev/sda2 none swap sw 0 0\n"}),
    ("zfs-arc-suffix", r"module|arc", {"etc/modprobe.d/zfs.conf": "options zfs zfs_arc_max=8G\n"}, {"etc/modprobe.d/zfs.conf": "options zfs zfs_arc_max=0x200000000\n"}),
    ("zfs-arc-below-min", r"arc", {"etc/modprobe.d/zfs.conf": "options zfs zfs_arc_min=8589934592 zfs_arc_max=4294967296\n"}, {"etc/modprobe.d/zfs.conf": "options zfs zfs_arc_min=2147483648 zfs_arc_max=4294967296\n"}),
    ("zfs-nocacheflush", r"nocacheflush|flush", {"etc/modprobe.d/zfs.conf": "options zfs \\\n  zfs_nocacheflush=1\n"}, {"etc/modprobe.d/zfs.conf": "# options zfs zfs_nocacheflush=1\n"}),
    ("md-degraded", r"md-degraded", {"proc/mdstat": MD.replace("[2/2] [UU]", "[2/1] [_U]")}, {"proc/mdstat": MD}),
    ("md-nobody", r"md-", {"proc/mdstat": MD, "etc/mdadm/mdadm.conf": "HOMEHOST <system>\n#MAILADDR root\n"}, {"proc/mdstat": MD, "etc/mdadm/mdadm.conf": "MAILADDR root\n"}),
    ("smartd-silent", r"smartd", {"etc/smartd.conf": "DEVICESCAN -a -o on -S on\n"}, {"etc/smartd.conf": "DEVICESCAN -a -m root\n"}),

    ("pve-kvm64", r"cpu|aes", pve("cpu: kvm64\nscsi0: local:101/a.qcow2,size=8G,discard=on,iothread=1\n"), pve("cpu: kvm64,flags=+aes\nscsi0: local:101/a.qcow2,size=8G,discard=on,iothread=1\n")),
    ("pve-unsafe", r"unsafe", pve("cpu: host\nscsi0: local:101/a.qcow2,cache=unsafe,size=8G\n"), pve("cpu: host\nscsi0: local:101/a.qcow2,cache=none,discard=on,size=8G\n")),
    ("pve-e1000", r"card|e1000", pve("cpu: host\nnet0: e1000=BC:24:11:00:00:01,bridge=vmbr0\n"), pve("cpu: host\nnet0: virtio=BC:24:11:00:00:01,bridge=vmbr0\n")),
    ("pve-ide", r"ide", pve("cpu: host\nide0: local:101/a.qcow2,size=8G\n"), pve("cpu: host\nide2: local:iso/d.iso,media=cdrom\n")),
    ("libvirt-kvm64", r"cpu|aes", libvirt(disk("virtio"), "<cpu mode='custom' match='exact'><model fallback='forbid'>kvm64</model></cpu>"),
     libvirt(disk("virtio"), "<cpu mode='custom' match='exact'><model>kvm64</model><feature policy='require' name='aes'/></cpu>")),
    ("libvirt-no-cpu", r"cpu|aes", libvirt(disk("virtio"), ""), libvirt(disk("virtio"), "<cpu mode='host-model'/>")),
    ("libvirt-ide", r"ide", libvirt(disk("ide")), libvirt(disk("sata"))),
    ("libvirt-unsafe", r"unsafe", libvirt(disk("virtio", cache="unsafe")), libvirt(disk("virtio", "      <transient/>\n", cache="unsafe"))),
    ("libvirt-e1000", r"card|e1000", libvirt(card("e1000")), libvirt(card("virtio"))),
    ("libvirt-vnc", r"vnc", {"etc/libvirt/qemu.conf": "vnc_listen = \"0.0.0.0\"\n"}, {"etc/libvirt/qemu.conf": "vnc_listen = \"127.0.0.1\"\n"}),
    ("libvirt-vnc-domain", r"vnc|screen", libvirt(vnc("0.0.0.0")), libvirt(vnc("127.0.0.1"))),
    ("qemu-kvm64", r"cpu|aes", qemu("-name web -enable-kvm -cpu kvm64" + DRIVE), qemu("-name web -enable-kvm -cpu host" + DRIVE)),
    ("qemu-default-cpu", r"cpu|aes", qemu("-name web -accel kvm" + DRIVE), qemu("-name web -accel kvm -cpu qemu64,+aes" + DRIVE)),
    ("qemu-ide", r"ide", qemu("-name web -enable-kvm -cpu host -hda /srv/a.qcow2"), qemu("-name web -enable-kvm -cpu host" + DRIVE)),
    ("qemu-unsafe", r"unsafe", qemu("-name guest=web -enable-kvm -cpu host -drive file=/srv/a.qcow2,if=virtio,cache=unsafe"),
     qemu("-name guest=web -enable-kvm -cpu host -snapshot -drive file=/srv/a.qcow2,if=virtio,cache=unsafe")),
    ("qemu-e1000", r"card|e1000", qemu("-name web -enable-kvm -cpu host -netdev user,id=n0 -device e1000,netdev=n0"),
     qemu("-name web -enable-kvm -cpu host -netdev user,id=n0 -device virtio-net-pci,netdev=n0")),
    ("qemu-vnc", r"vnc|screen", qemu("-name web -enable-kvm -cpu host -vnc 0.0.0.0:1"), qemu("-name web -enable-kvm -cpu host -vnc 127.0.0.1:1")),
    ("qemu-unit-qemu64", r"cpu|aes", unit("-name web -enable-kvm -cpu qemu64" + DRIVE), unit("-name web -enable-kvm -cpu host" + DRIVE)),
    ("qemu-unit-ide", r"ide", unit("-name web \\\n  -enable-kvm -cpu host \\\n  -drive file=/srv/a.qcow2,if=ide"),
     unit("-name web \\\n  -enable-kvm -cpu host \\\n  -drive file=/srv/a.iso,if=ide,media=cdrom" + DRIVE)),
    ("guest-luks-no-aes", r"aes|luks", {"proc/cpuinfo": "flags\t\t: fpu sse2 hypervisor\n", "etc/crypttab": "data UUID=1 none luks\n"}, {**KVM, "etc/crypttab": "data UUID=1 none luks\n"}),
    ("guest-e1000", r"card|e1000", {**KVM, "sys/class/net/ens3/device/uevent": "DRIVER=e1000\nPCI_ID=8086:100E\n"}, {**KVM, "sys/class/net/ens3/device/uevent": "DRIVER=virtio_net\n"}),
    ("guest-clocksource", r"clock", {**KVM, "sys/devices/system/clocksource/clocksource0/current_clocksource": "acpi_pm\n",
                                     "sys/devices/system/clocksource/clocksource0/available_clocksource": "kvm-clock tsc acpi_pm\n"},
     {**KVM, "sys/devices/system/clocksource/clocksource0/current_clocksource": "kvm-clock\n"}),
    ("guest-ide", r"disk", {**KVM, "sys/block/sda/dev": "8:0\n", "sys/block/sda/size": "204800\n", "sys/block/sda/device/model": "QEMU HARDDISK   \n", "sys/block/sda/device/vendor": "ATA     \n"},
     {**KVM, "sys/block/vda/dev": "252:0\n", "sys/block/vda/size": "204800\n"}),

    ("nut-no-shutdown", r"ups", nut(""), nut(SHUTDOWN)),
    ("nut-runtime-short", r"ups", nut(SHUTDOWN, UPS + " ignorelb\n override.battery.runtime.low = 20\n"), nut(SHUTDOWN, UPS + " ignorelb\n override.battery.runtime.low = 600\n")),
    ("nut-finaldelay", r"ups", nut(SHUTDOWN.replace("FINALDELAY 5", "FINALDELAY 600")), nut(SHUTDOWN)),
    ("apcupsd-never", r"apcupsd|ups", {"etc/apcupsd/apcupsd.conf": "UPSCABLE usb\nUPSTYPE usb\nBATTERYLEVEL -1\nMINUTES -1\nTIMEOUT 0\n"}, {"etc/apcupsd/apcupsd.conf": "UPSCABLE usb\nUPSTYPE usb\nBATTERYLEVEL 5\nMINUTES 3\nTIMEOUT 0\n"}),
    ("apcupsd-short", r"apcupsd|ups", {"etc/apcupsd/apcupsd.conf": "UPSCABLE usb\nUPSTYPE usb\nBATTERYLEVEL 1\nMINUTES 0\nTIMEOUT 0\n"}, {"etc/apcupsd/apcupsd.conf": "UPSCABLE usb\nUPSTYPE usb\nBATTERYLEVEL 10\nMINUTES 5\nTIMEOUT 0\n"}),
    ("rsnapshot-old", r"backup|snapshot", {**RSNAPSHOT, "srv/snap/daily.0/": OLD, "srv/snap/daily.1/": OLD - 86400}, {**RSNAPSHOT, "srv/snap/daily.0/": NEW, "srv/snap/daily.1/": NEW - 86400}),
    ("restic-old", r"backup|snapshot", {**RESTIC, "srv/restic/snapshots/aabb": ("x", 0o600, OLD), "srv/restic/snapshots/": OLD},
     {**RESTIC, "srv/restic/snapshots/aabb": ("x", 0o600, NEW), "srv/restic/snapshots/": NEW}),
    ("borg-old", r"backup|snapshot", {**BORG, "srv/borg/index.5": ("x", 0o600, OLD), "srv/borg/": OLD}, {**BORG, "srv/borg/index.5": ("x", 0o600, NEW), "srv/borg/": NEW}),
    ("pbs-old", r"backup|snapshot", {**PBS, "srv/pbs/vm/101/2026-09-01T00:00:00Z/index.json.blob": "x", "srv/pbs/vm/101/": OLD},
     {**PBS, "srv/pbs/vm/101/%NOW%/index.json.blob": "x", "srv/pbs/vm/101/": NEW}),
    ("backup-unscheduled", r"backup", {"etc/sanoid/sanoid.conf": "[tank/data]\n use_template = production\n"},
     {"etc/sanoid/sanoid.conf": "[tank/data]\n use_template = production\n", "etc/systemd/system/timers.target.wants/sanoid.timer": "[Timer]\nOnCalendar=*:0/15\n"}),
]
