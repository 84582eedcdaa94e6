"""Planted situations: each makes one fault, or several, with the real kernel, and names the pages that are right.

A situation is a function that gets a `Plant` and returns what to ask `assay why` about (None: the machine) and the
right pages: a list of sets, one set for each cause, any page of a set counts. No set: nothing may be suspected.
"""

import os
import pathlib
import signal
import subprocess
import time

from plant import PYTHON, SPIN, Skip, disk_number


def quota(plant):
    """A quota of a fifth of a CPU."""
    plant.group("cpu", cpu__cfs_quota_us=20000, cpu__cfs_period_us=100000, cpu__max="20000 100000")
    plant.python(SPIN)
    return plant.name, [{"cpu-quota"}]


def quota_of_several(plant):
    """Four programs share a quota of a tenth of a CPU."""
    plant.group("cpu", cpu__cfs_quota_us=10000, cpu__cfs_period_us=100000, cpu__max="10000 100000")
    for _ in range(4):
        plant.python(SPIN)
    return plant.name, [{"cpu-quota"}]


def run_queue(plant):
    """Many programs that compute on few CPUs."""
    plant.group("cpu")
    for _ in range(3 * os.cpu_count()):
        plant.python(SPIN)
    return plant.name, [{"cpu-saturated", "cpu-hog"}]


def cpu_hogs(plant):
    """One program with high priority takes every CPU from a worker."""
    for _ in range(os.cpu_count()):
        plant.start("nice", "-n", "-15", PYTHON, "-c", SPIN)
    plant.group("cpuacct")
    plant.python(SPIN)
    return plant.name, [{"cpu-hog"}]


def computes(plant):
    """A process that computes and waits for nothing."""
    process = plant.start("chrt", "--rr", "1", PYTHON, "-c", SPIN)
    return process.pid, [{"computes"}]


def stopped(plant):
    """A process that was stopped."""
    process = plant.python(SPIN)
    time.sleep(0.3)
    process.send_signal(signal.SIGSTOP)
    return process.pid, [{"stopped"}]


def frozen(plant):
    """A frozen control group."""
    group = plant.group("unified")
    if not (group / "cgroup.freeze").exists():
        raise Skip("no cgroup.freeze")
    plant.python(SPIN)
    time.sleep(0.3)
    (group / "cgroup.freeze").write_text("1")
    plant.callback((group / "cgroup.freeze").write_text, "0")
    return plant.name, [{"frozen"}]


def cache_at_limit(plant):
    """A file that does not fit into the memory of its group is read again and again."""
    path = plant.file("data", 160 << 20)
    limit = 48 << 20
    plant.group("memory", memory__limit_in_bytes=limit, memory__max=limit)
    plant.group("cpu")
    plant.start("sh", "-c", f"while :; do cat {path} >/dev/null; done")
    return plant.name, [{"memory-limit"}]


def heap_at_limit(plant):
    """Memory and page cache of one program compete below a limit."""
    path = plant.file("data", 120 << 20)
    limit = 64 << 20
    plant.group("memory", memory__limit_in_bytes=limit, memory__max=limit)
    plant.python(f"""
b = bytearray(40 << 20)
while True:
    with open({str(path)!r}, 'rb') as f:
        while f.read(1 << 20): pass
    for i in range(0, len(b), 4096): b[i] = 1
""")
    return plant.name, [{"memory-limit"}]


def killed_at_limit(plant):
    """A program that is killed at the memory limit, again and again."""
    limit = 48 << 20
    plant.group("memory", memory__limit_in_bytes=limit, memory__max=limit)
    plant.start("sh", "-c", f"while :; do {PYTHON} -c 'b = bytearray(300 << 20)'; sleep 0.2; done")
    return plant.name, [{"out-of-memory"}]


def sync_storm(plant):
    """Small writes, each with fsync."""
    plant.group("cpu")
    plant.fio(f"--directory={plant.dir}", "--rw=randwrite", "--bs=4k", "--size=32m", "--fsync=1", "--numjobs=2")
    return plant.name, [{"fsync-storm", "slow-flush"}]


def sync_by_shell(plant):
    """A script that writes small files and syncs each; where a sync costs nothing, it starts processes most of the time."""
    plant.first_group()
    code = f"i=0; while :; do i=$(( (i + 1) % 50 )); dd if=/dev/zero of={plant.dir}/f$i bs=4k count=1 conv=fsync; done"
    plant.start("sh", "-c", code)
    return plant.name, [{"fsync-storm", "slow-flush", "short-lived-processes"}]


def disk_full_of_reads(plant):
    """Random reads, more than the disk answers at once."""
    plant.file("x.0.0", 256 << 20)
    plant.group("cpu")
    plant.fio(f"--filename={plant.dir}/x.0.0", "--rw=randread", "--bs=1m", "--direct=1", "--numjobs=8")
    return plant.name, [{"disk-saturated", "io-hog"}]


def io_limit_of_writes(plant):
    """A limit of 2 MB/s on writes."""
    number = disk_number(plant.dir)
    plant.group("blkio", **{"blkio.throttle.write_bps_device": f"{number} 2097152", "io.max": f"{number} wbps=2097152"})
    plant.fio(f"--directory={plant.dir}", "--rw=write", "--bs=64k", "--size=64m", "--direct=1")
    return plant.name, [{"io-limit"}]


def io_limit_of_reads(plant):
    """A limit of 50 reads per second."""
    path = plant.file("data", 64 << 20)
    number = disk_number(plant.dir)
    plant.group("blkio", **{"blkio.throttle.read_iops_device": f"{number} 50", "io.max": f"{number} riops=50"})
    plant.fio(f"--filename={path}", "--rw=randread", "--bs=4k", "--size=64m", "--direct=1", "--numjobs=4")
    return plant.name, [{"io-limit"}]


def discards(plant):
    """A disk that is discarded over and over."""
    device = plant.loop("disk", 256 << 20)
    plant.group("cpu")
    code = f"while :; do dd if=/dev/urandom of={device} bs=1M count=32 oflag=direct; blkdiscard {device}; done"
    plant.start("sh", "-c", code)
    code = "\n".join([
        "import fcntl, os, struct, sys",
        "f = os.open(sys.argv[1], os.O_RDWR)",
        "while True:",
        "    for i in range(0, 256 << 20, 65536): fcntl.ioctl(f, 0x1277, struct.pack('QQ', i, 65536))",
    ])
    for _ in range(2):
        plant.python(code, device)
    return None, [{"discard-storm"}]


def files_used_up(plant):
    """A server that has all the files open that it may."""
    plant.group("cpu")
    plant.python("""
import resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = []
while True:
    try: files.append(open('/dev/null'))
    except OSError: time.sleep(0.01)
""")
    return plant.name, [{"files-exhausted"}]


def tasks_used_up(plant):
    """A group that may start no more processes."""
    group = plant.group("pids")
    (group / "pids.max").write_text("8")
    plant.start("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 300 & done; while :; do (:) ; sleep 0.1; done")
    plant.start("sh", "-c", "while :; do sleep 0.05; done")
    return plant.name, [{"tasks-limit"}]


def accept_queue(plant):
    """A server that does not accept; its queue is long enough."""
    listener(plant, backlog=100, clients=20)
    return None, [{"accept-queue"}]


def accept_overflow(plant):
    """A server that does not accept; its queue is short."""
    listener(plant, backlog=2, clients=20)
    return None, [{"listen-overflow", "accept-queue"}]


def listener(plant, backlog, clients):
    plant.group("cpu")
    plant.python(f"""
import socket, time
s = socket.socket(); s.bind(('127.0.0.1', 7711)); s.listen({backlog}); time.sleep(999)
""")
    time.sleep(0.5)
    plant.python(f"""
import socket, time
held = []
while True:
    for _ in range({clients}):
        c = socket.socket(); c.setblocking(False); c.connect_ex(('127.0.0.1', 7711)); held.append(c)
    time.sleep(3)
    if {backlog} > 50: time.sleep(999)
""")


def name_server(plant):
    """A name server that does not answer."""
    plant.group("cpu")
    for _ in range(2):
        plant.python("""
import socket
while True:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
    s.connect(('192.0.2.53', 53))
    try: s.send(b'x' * 30); s.recv(512)
    except OSError: pass
    s.close()
""")
    return None, [{"name-server"}]


def no_answer(plant):
    """Connections to a machine that does not answer."""
    plant.group("cpu")
    for _ in range(2):
        plant.python("""
import socket
while True:
    s = socket.socket(); s.settimeout(4)
    try: s.connect(('192.0.2.9', 5432))
    except OSError: pass
    s.close()
""")
    return None, [{"connection-timeouts"}]


def lost_packets(plant):
    """A twentieth of the packets is lost."""
    plant.run("iptables", "-A", "INPUT", "-p", "tcp", "-m", "statistic", "--mode", "random", "--probability", "0.05",
              "-j", "DROP")
    stream(plant)
    return None, [{"retransmits"}]


def few_lost_packets(plant):
    """Two packets of a hundred are lost."""
    plant.run("iptables", "-A", "INPUT", "-p", "tcp", "-m", "statistic", "--mode", "random", "--probability", "0.02",
              "-j", "DROP")
    stream(plant)
    return None, [{"retransmits"}]


def stream(plant):
    plant.python("""
import socket, threading
s = socket.socket(); s.bind(('127.0.0.1', 7712)); s.listen(5)
def read(c):
    while c.recv(1 << 16): pass
while True: threading.Thread(target=read, args=(s.accept()[0],)).start()
""")
    time.sleep(0.5)
    for _ in range(3):
        plant.python("""
import socket, time
c = socket.create_connection(('127.0.0.1', 7712))
while True: c.sendall(b'x' * 20000); time.sleep(0.01)
""")


def datagrams_dropped(plant):
    """A receiver of datagrams that is too slow."""
    plant.group("cpu")
    plant.python("""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 7713))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
while True: s.recv(2000); time.sleep(0.1)
""")
    time.sleep(0.5)
    plant.python("""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True: s.sendto(b'x' * 1000, ('127.0.0.1', 7713)); time.sleep(0.005)
""")
    return None, [{"udp-full"}]


def ports_used_up(plant):
    """Connections that are opened and closed until no port is left."""
    plant.run("sysctl", "-w", "net.ipv4.ip_local_port_range=40000 40199")
    plant.group("cpu")
    plant.python("""
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', 7714)); s.listen(50)
while True:
    try:
        c = socket.create_connection(('127.0.0.1', 7714)); a, _ = s.accept(); c.close(); a.close()
    except OSError: time.sleep(0.05)
""")
    time.sleep(1)
    return None, [{"ports-used-up"}]


def frozen_file_system(plant):
    """A file system that a snapshot tool has frozen."""
    device = plant.loop("disk", 64 << 20)
    plant.run("mkfs.ext4", "-q", device)
    mount = plant.dir / "mnt"
    mount.mkdir()
    plant.run("mount", device, mount)
    plant.callback(subprocess.run, ["umount", "-l", str(mount)], check=False)
    plant.run("fsfreeze", "-f", mount)
    plant.callback(subprocess.run, ["fsfreeze", "-u", str(mount)], check=False)
    plant.group("cpu")
    for number in range(3):
        plant.start("sh", "-c", f"echo x > {mount}/f{number}")
    return plant.name, [{"file-system-frozen"}]


def one_directory(plant):
    """Many processes change the same directory and sync it."""
    plant.group("cpu")
    for number in range(8):
        plant.python(f"""
import os
d = os.open({str(plant.dir)!r}, os.O_RDONLY)
while True:
    for i in range(20):
        os.close(os.open(f'f{number}-{{i}}', os.O_CREAT | os.O_WRONLY, dir_fd=d)); os.fsync(d)
    for i in range(20): os.unlink(f'f{number}-{{i}}', dir_fd=d)
""")
    return plant.name, [{"fsync-storm", "slow-flush", "syncs-of-many", "lock-contention", "journal"}]


def noisy_reader(plant):
    """A backup reads in large blocks while a small program wants a few of its own."""
    big = plant.file("big", 256 << 20)
    small = plant.file("small", 32 << 20)
    plant.fio(f"--filename={big}", "--rw=read", "--bs=1m", "--direct=1", "--numjobs=6", "--ioengine=libaio", "--iodepth=8")
    plant.group("cpu")
    plant.fio(f"--filename={small}", "--rw=randread", "--bs=4k", "--direct=1")
    return plant.name, [{"io-hog", "disk-saturated"}]


def swapping(plant):
    """A program that is larger than its memory, with swap on compressed memory."""
    number = int(pathlib.Path("/sys/class/zram-control/hot_add").read_text())
    device, sysfs = f"/dev/zram{number}", pathlib.Path(f"/sys/block/zram{number}")
    plant.callback(lambda: pathlib.Path("/sys/class/zram-control/hot_remove").write_text(str(number)))
    (sysfs / "disksize").write_text("256M")
    plant.run("mkswap", device)
    plant.run("swapon", device)
    plant.callback(subprocess.run, ["swapoff", device], check=False)
    limit = 48 << 20
    plant.group("memory", memory__limit_in_bytes=limit, memory__max=limit)
    plant.python("""
b = bytearray(120 << 20)
while True:
    for i in range(0, len(b), 4096): b[i] = (b[i] + 1) % 256
""")
    return plant.name, [{"swap-storm"}, {"memory-limit"}]


def quota_and_files(plant):
    """A quota, and no more files to open."""
    quota(plant)
    files_used_up(plant)
    return plant.name, [{"cpu-quota"}, {"files-exhausted"}]


def sync_and_memory(plant):
    """Syncs, and a cache that is too small."""
    cache_at_limit(plant)
    plant.groups = [group for group in plant.groups if group.parent.name != "memory"] or plant.groups
    sync_storm(plant)
    return plant.name, [{"fsync-storm", "slow-flush"}, {"memory-limit"}]


def names_and_connections(plant):
    """A name server and a database that do not answer."""
    name_server(plant)
    no_answer(plant)
    return None, [{"name-server"}, {"connection-timeouts"}]


def overflow_and_quota(plant):
    """An accept queue that overflows, and a quota."""
    accept_overflow(plant)
    quota(plant)
    return plant.name, [{"listen-overflow", "accept-queue"}, {"cpu-quota"}]


def limit_and_quota(plant):
    """An I/O limit and a CPU quota."""
    io_limit_of_reads(plant)
    quota(plant)
    return plant.name, [{"io-limit"}, {"cpu-quota"}]


def loss_and_names(plant):
    """Lost packets, and a name server that does not answer."""
    lost_packets(plant)
    name_server(plant)
    return None, [{"retransmits"}, {"name-server"}]


def datagrams_and_files(plant):
    """Dropped datagrams, and no more files to open."""
    datagrams_dropped(plant)
    files_used_up(plant)
    return plant.name, [{"udp-full"}, {"files-exhausted"}]


def tasks_and_memory(plant):
    """No more processes, and a cache that is too small."""
    cache_at_limit(plant)
    plant.groups = []
    tasks_used_up(plant)
    return plant.name, [{"tasks-limit"}, {"memory-limit"}]


PLANTED = [
    quota, quota_of_several, run_queue, cpu_hogs, computes, stopped, frozen, cache_at_limit, heap_at_limit,
    killed_at_limit, sync_storm, sync_by_shell, disk_full_of_reads, io_limit_of_writes, io_limit_of_reads, discards,
    files_used_up, tasks_used_up, accept_queue, accept_overflow, name_server, no_answer, lost_packets, few_lost_packets,
    datagrams_dropped, ports_used_up, frozen_file_system, one_directory, noisy_reader, swapping,
    quota_and_files, sync_and_memory, names_and_connections, overflow_and_quota, limit_and_quota, loss_and_names,
    datagrams_and_files, tasks_and_memory,
]
