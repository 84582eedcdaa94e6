"""Planted situations in which programs wait for each other: pipes, sockets, locks, files, hung servers."""

import os
import pathlib
import signal
import subprocess
import time

from plant import PYTHON, SPIN, Skip


def slow_pipe(plant):
    """A program writes into a pipe whose reader takes 10 kB ten times a second."""
    plant.start("sh", "-c", f"yes | {PYTHON} -c 'import os, time\nwhile True: os.read(0, 10000); time.sleep(0.1)'")
    return None, [{"slow-reader"}]


def stopped_pipe_reader(plant):
    """The reader of a pipe is stopped."""
    shell = plant.start("sh", "-c", "yes | sed s/y/n/ > /dev/null")
    time.sleep(0.5)
    os.kill(next(pid for pid in children(shell.pid) if comm(pid) == "sed"), signal.SIGSTOP)
    return None, [{"slow-reader", "stopped"}]


def children(pid):
    return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def comm(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def unix_queue_full(plant):
    """A server on a local socket that does not accept; its queue is full."""
    path = plant.dir / "s"
    plant.python(f"import socket, time\ns = socket.socket(socket.AF_UNIX); s.bind({str(path)!r}); s.listen(1); time.sleep(999)")
    time.sleep(0.5)
    for _ in range(4):
        plant.python(f"import socket, time\ns = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); time.sleep(999)")
    return None, [{"local-socket", "local-queue"}]


def log_daemon_hangs(plant):
    """A log daemon that reads no messages."""
    path = plant.dir / "log"
    plant.python(f"import socket, time\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind({str(path)!r}); time.sleep(999)")
    time.sleep(0.5)
    plant.python(f"import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect({str(path)!r})\n"
                 "while True: s.send(b'x' * 200)")
    return None, [{"local-socket"}]


def file_lock(plant):
    """Three jobs wait for a lock that a sleeping one holds."""
    path = plant.dir / "lock"
    plant.start("flock", path, "sleep", "300")
    time.sleep(0.3)
    for _ in range(3):
        plant.start("flock", path, "true")
    return None, [{"file-lock"}]


def record_lock(plant):
    """A database file whose record lock is held."""
    path = plant.dir / "db"
    code = f"import fcntl, time\nf = open({str(path)!r}, 'w'); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(999)"
    for _ in range(2):
        plant.python(code)
        time.sleep(0.3)
    return None, [{"file-lock"}]


def lock_of_server(plant):
    """A program waits for a lock that a server holds as long as it runs."""
    path = plant.dir / "lock"
    plant.python(f"import fcntl, socket\nf = open({str(path)!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX)\n"
                 "s = socket.socket(); s.bind(('127.0.0.1', 7736)); s.listen(9); s.accept()")
    time.sleep(0.5)
    plant.start("flock", path, "true")
    return None, [{"file-lock"}]


CONVOY = r"""
#include <pthread.h>
#include <unistd.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void *work(void *x) { for (;;) { pthread_mutex_lock(&m); usleep(2000); pthread_mutex_unlock(&m); } return x; }
int main(void) { pthread_t t; for (int i = 0; i < 8; i++) pthread_create(&t, 0, work, 0); pause(); }
"""


def lock_convoy(plant):
    """Eight threads take one lock for two milliseconds each."""
    (plant.dir / "c.c").write_text(CONVOY)
    try:
        plant.run("cc", "-O1", "-pthread", "-o", plant.dir / "convoy", plant.dir / "c.c")
    except (OSError, subprocess.CalledProcessError):
        raise Skip("no C compiler")
    plant.start(plant.dir / "convoy")
    return None, [{"lock-convoy"}]


def interpreter_lock(plant):
    """Four threads of an interpreter with one lock."""
    process = plant.python("import threading\ndef f():\n  while True: sum(range(1000))\n"
                           "for _ in range(4): threading.Thread(target=f).start()")
    return process.pid, [{"threads-take-turns", "lock-convoy"}]


def pinned(plant):
    """Four programs that may run on one CPU only."""
    for _ in range(4):
        plant.start("taskset", "-c", "0", PYTHON, "-c", SPIN)
    return None, [{"cpu-affinity", "cpu-saturated", "cpu-hog"}]


def low_priority(plant):
    """A job of low priority on busy CPUs."""
    for _ in range(os.cpu_count()):
        plant.python(SPIN)
    plant.group("cpuacct")
    plant.start("nice", "-n", "19", PYTHON, "-c", SPIN)
    return plant.name, [{"low-priority", "cpu-hog", "cpu-saturated"}]


def short_processes(plant):
    """A script that starts thousands of short programs."""
    plant.start("sh", "-c", "while :; do /bin/true; done")
    return None, [{"short-lived-processes", "fork-storm"}]


def short_processes_of_unit(plant):
    """The same in a unit that is asked about."""
    plant.group("cpuacct")
    plant.start("sh", "-c", "while :; do /bin/true; done")
    return plant.name, [{"short-lived-processes", "fork-storm"}]


def stopped_server(plant):
    """A server that was stopped; two clients wait for it."""
    server = plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7731)); s.listen(50)\n"
                          "while True:\n  c, _ = s.accept(); c.recv(9); c.send(b'x'); c.close()")
    time.sleep(0.5)
    server.send_signal(signal.SIGSTOP)
    for _ in range(2):
        plant.python("import socket\nc = socket.create_connection(('127.0.0.1', 7731)); c.send(b'x'); c.recv(9)")
    return None, [{"accept-queue", "stopped", "unread-data"}]


def stopped_with_connection(plant):
    """A server that is stopped while a client waits for an answer on an old connection."""
    server = plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7732)); s.listen(50)\n"
                          "c, _ = s.accept()\nwhile True: c.sendall(c.recv(9))")
    time.sleep(0.4)
    plant.python("import socket, time\nc = socket.create_connection(('127.0.0.1', 7732))\n"
                 "while True: c.send(b'x' * 5); c.recv(9); time.sleep(0.05)")
    time.sleep(0.4)
    server.send_signal(signal.SIGSTOP)
    return None, [{"unread-data", "stopped"}]


def zero_window(plant):
    """A client that reads 4 kB a second of a stream."""
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7733)); s.listen(5); c, _ = s.accept()\n"
                 "while True: c.sendall(b'x' * 65536)")
    time.sleep(0.4)
    plant.python("import socket, time\nc = socket.create_connection(('127.0.0.1', 7733))\n"
                 "while True: c.recv(4096); time.sleep(1)")
    return None, [{"zero-window", "unread-data", "slow-reader"}]


def silent_peer(plant):
    """A firewall drops the packets of an open connection."""
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7734)); s.listen(5); c, _ = s.accept()\n"
                 "while True: c.recv(99)")
    time.sleep(0.4)
    plant.python("import socket, time\nc = socket.create_connection(('127.0.0.1', 7734))\n"
                 "while True: c.sendall(b'x' * 100); time.sleep(0.1)")
    time.sleep(0.4)
    plant.run("iptables", "-A", "INPUT", "-p", "tcp", "--dport", "7734", "-j", "DROP")
    time.sleep(2)
    return None, [{"unanswered-data"}]


def rate_limit(plant):
    """A token bucket lets 500 kB/s out of an interface."""
    plant.run("tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "4mbit", "burst", "70kb", "latency", "200ms")
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7735)); s.listen(5); c, _ = s.accept()\n"
                 "while True: c.recv(65536)")
    time.sleep(0.4)
    plant.python("import socket\nc = socket.create_connection(('127.0.0.1', 7735))\nwhile True: c.sendall(b'x' * 65536)")
    return None, [{"packet-shaper"}]


def idle_without_files(plant):
    """A server with all files open that waits quietly."""
    plant.python("import resource, time\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nf = []\n"
                 "try:\n  while True: f.append(open('/dev/null'))\nexcept OSError: time.sleep(999)")
    return None, [{"files-exhausted"}]


def full_disk(plant):
    """A file system without space; a program tries to write."""
    mount = tmpfs(plant, "size=2m")
    plant.start("sh", "-c", f"while :; do cat /dev/zero > {mount}/x; sleep 0.2; done")
    return None, [{"file-system-full"}]


def no_inodes(plant):
    """A file system without inodes."""
    mount = tmpfs(plant, "size=8m,nr_inodes=50")
    plant.start("sh", "-c", f"i=0; while :; do i=$((i + 1)); : > {mount}/f$i; sleep 0.02; done")
    time.sleep(1.5)
    return None, [{"inodes-used-up"}]


def tmpfs(plant, options):
    mount = plant.dir / "mnt"
    mount.mkdir()
    plant.run("mount", "-t", "tmpfs", "-o", options, "none", mount)
    plant.callback(subprocess.run, ["umount", "-l", str(mount)], check=False)
    return mount


def throttled_loop(plant):
    """A loop device whose user may read 40 blocks a second."""
    device = plant.loop("disk", 64 << 20)
    number = os.stat(device).st_rdev
    number = f"{os.major(number)}:{os.minor(number)}"
    plant.group("blkio", **{"blkio.throttle.read_iops_device": f"{number} 40", "io.max": f"{number} riops=40"})
    plant.fio(f"--filename={device}", "--rw=randread", "--bs=4k", "--direct=1", "--numjobs=2")
    return None, [{"io-limit"}]


def swap_file(plant):
    """A program larger than its memory; the swap is a file on the disk."""
    path = plant.file("swap", 192 << 20)
    os.chmod(path, 0o600)
    plant.run("mkswap", path)
    plant.run("swapon", path)
    plant.callback(subprocess.run, ["swapoff", str(path)], check=False)
    plant.group("memory", memory__limit_in_bytes=40 << 20, memory__max=40 << 20)
    plant.python("import random\nb = bytearray(120 << 20)\nwhile True:\n  i = random.randrange(len(b)); b[i] = (b[i] + 1) % 256")
    return None, [{"swap-storm", "memory-limit"}]


def journal_storm(plant):
    """Many small files are made and deleted on one file system with syncs of all of it."""
    for _ in range(2):
        plant.start("sh", "-c", f"while :; do for i in 1 2 3 4 5; do : > {plant.dir}/$$-$i; done; sync -f {plant.dir}; done")
    return None, [{"fsync-storm", "slow-flush", "journal", "lock-contention"}]


def frozen_by_freezer(plant):
    """A group that the freezer of version 1 has frozen."""
    group = plant.group("freezer")
    if not (group / "freezer.state").exists():
        raise Skip("no freezer of version 1")
    plant.python(SPIN)
    time.sleep(0.3)
    (group / "freezer.state").write_text("FROZEN")
    plant.callback((group / "freezer.state").write_text, "THAWED")
    return plant.name, [{"frozen"}]


def local_queue(plant):
    """A pool on a local socket whose workers are all busy; its clients do not wait in connect."""
    path = plant.dir / "pool"
    plant.python(f"import socket, time\ns = socket.socket(socket.AF_UNIX); s.bind({str(path)!r}); s.listen(16); time.sleep(999)")
    time.sleep(0.5)
    plant.python(f"""
import socket, time
held = []
for _ in range(12):
    s = socket.socket(socket.AF_UNIX); s.setblocking(False); s.connect({str(path)!r}); held.append(s)
time.sleep(999)
""")
    return None, [{"local-queue"}]


def zombies(plant):
    """A program that does not collect its children."""
    plant.python("import os, time\nfor _ in range(400):\n  if os.fork() == 0: os._exit(0)\ntime.sleep(999)")
    time.sleep(2)
    return None, [{"zombies"}]


def small_victim(plant):
    """A service that needs little, beside programs that take all CPUs."""
    for _ in range(3 * os.cpu_count()):
        plant.start("nice", "-n", "-5", PYTHON, "-c", SPIN)
    plant.group("cpuacct")
    plant.python("import time\nwhile True:\n  sum(range(20000)); time.sleep(0.05)")
    return plant.name, [{"cpu-hog", "cpu-saturated"}]


def deadlock(plant):
    """Two threads of a program wait for each other's lock."""
    (plant.dir / "d.c").write_text(DEADLOCK)
    try:
        plant.run("cc", "-O1", "-pthread", "-o", plant.dir / "deadlock", plant.dir / "d.c")
    except (OSError, subprocess.CalledProcessError):
        raise Skip("no C compiler")
    return plant.start(plant.dir / "deadlock").pid, [{"lock-convoy"}]


DEADLOCK = r"""
#include <pthread.h>
#include <unistd.h>
pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
void *one(void *x) { pthread_mutex_lock(&a); usleep(200000); pthread_mutex_lock(&b); return x; }
void *two(void *x) { pthread_mutex_lock(&b); usleep(200000); pthread_mutex_lock(&a); return x; }
int main(void) { pthread_t t, u; pthread_create(&t, 0, one, 0); pthread_create(&u, 0, two, 0); pthread_join(t, 0); }
"""


FUSE = r"""
import ctypes, os, struct, sys, time
device = os.open('/dev/fuse', os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f'fd={device},rootmode=40000,user_id=0,group_id=0'.encode()
if libc.mount(b'far', sys.argv[1].encode(), b'fuse.far', 0, options) != 0: sys.exit(1)
request = os.read(device, 1 << 17)
_, _, unique = struct.unpack('<IIQ', request[:16])
answer = struct.pack('<IIIIHHIIHHI7I', 7, 31, 65536, 0, 16, 12, 65536, 1, 16, 0, 0, *[0] * 7)
os.write(device, struct.pack('<IiQ', 16 + len(answer), 0, unique) + answer)
os.read(device, 1 << 17)
time.sleep(999)
"""


def hung_mount(plant):
    """A file system whose server has taken a request and answers no more."""
    if not pathlib.Path("/dev/fuse").exists():
        raise Skip("no FUSE")
    mount = plant.dir / "far"
    mount.mkdir()
    plant.callback(subprocess.run, ["umount", "-f", "-l", str(mount)], check=False)
    server = plant.python(FUSE, mount)
    time.sleep(1)
    if server.poll() is not None:
        raise Skip("FUSE cannot be mounted")
    for _ in range(3):
        plant.start("stat", mount / "x")
    time.sleep(0.5)
    return mount


def hung_share(plant):
    """Programs that wait for a file system that hangs."""
    hung_mount(plant)
    return None, [{"network-share"}]


def hung_path(plant):
    """A path on a file system that hangs."""
    return hung_mount(plant), [{"path-hangs"}]


DISK_READER = bytes.fromhex("31C08ED88EC0B80102BB0080B90200BA8000CD13EBF0").ljust(510, b"\0") + b"\x55\xaa"


def guest(plant, name, options=""):
    """A guest that reads its disk as fast as it can, by its firmware."""
    image = plant.dir / f"{name}.raw"
    with open(image, "wb") as out:
        out.write(DISK_READER)
        out.truncate(4 << 20)
    try:
        process = plant.start("qemu-system-x86_64", "-accel", "tcg", "-name", f"guest={name}", "-m", "16", "-display", "none",
                              "-nodefaults", "-drive", f"file={image},format=raw,if=virtio{options}",
                              "-qmp", f"unix:{plant.dir}/{name}.qmp,server=on,wait=off")
    except OSError:
        raise Skip("no QEMU")
    time.sleep(4)
    if process.poll() is not None:
        raise Skip("QEMU does not start")


def throttled_guest(plant):
    """A guest whose disk may do ten requests a second."""
    guest(plant, "db", ",throttling.iops-total=10")
    return "db", [{"guest-disk-limit"}]


def throttled_guest_of_two(plant):
    """Two guests; the disk of one has a limit."""
    guest(plant, "web", ",throttling.iops-total=10")
    guest(plant, "mail")
    return None, [{"guest-disk-limit"}]


def pipe_and_lock(plant):
    """A slow reader, and a held lock."""
    slow_pipe(plant)
    file_lock(plant)
    return None, [{"slow-reader"}, {"file-lock"}]


def disk_full_and_silent_names(plant):
    """A full file system, and a name server that does not answer."""
    from situations import name_server
    full_disk(plant)
    name_server(plant)
    return None, [{"file-system-full"}, {"name-server"}]


PLANTED = [
    slow_pipe, stopped_pipe_reader, unix_queue_full, log_daemon_hangs, file_lock, record_lock, lock_of_server, lock_convoy,
    interpreter_lock, pinned, low_priority, short_processes, short_processes_of_unit, stopped_server,
    stopped_with_connection, zero_window, silent_peer, rate_limit, idle_without_files, full_disk, no_inodes,
    throttled_loop, swap_file, journal_storm, pipe_and_lock, disk_full_and_silent_names,
    frozen_by_freezer, local_queue, zombies, small_victim, deadlock, hung_share, hung_path, throttled_guest, throttled_guest_of_two,
]
