"""Planted situations of limits and locks that have no blocked system call, of groups above the asked one, and of file
systems on loop devices; each with a healthy twin where a wrong accusation is near."""

import os
import pathlib
import pwd
import shutil
import subprocess
import time

import situations
from plant import CGROUP, PYTHON, SPIN, Skip


def sysctl(plant, name, value):
    """Sets a value of the kernel, and sets it back at the end."""
    path = pathlib.Path("/proc/sys") / name.replace(".", "/")
    old = path.read_text()
    plant.callback(path.write_text, old)
    path.write_text(str(value))


def loop_mount(plant, make, options="defaults", size=256 << 20):
    """Makes a file system on a loop device and mounts it; returns the directory and the device."""
    if not shutil.which(make[0]):
        raise Skip(f"no {make[0]}")
    device = plant.loop("disk", size)
    plant.run(*make, device)
    mount = plant.dir / "mnt"
    mount.mkdir()
    plant.run("mount", "-o", options, device, mount)
    plant.callback(subprocess.run, ["umount", "-l", str(mount)], check=False)
    return mount, device


def leaked_connections(plant):
    """A pool leaks its connections to one database until this machine has no port left for another."""
    plant.run("sysctl", "-w", "net.ipv4.ip_local_port_range=41000 41199")
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7801)); s.listen(300)\nheld = []\nwhile True: held.append(s.accept())")
    time.sleep(0.5)
    plant.python("""
import socket, time
held = []
while True:
    try: held.append(socket.create_connection(('127.0.0.1', 7801)))
    except OSError: time.sleep(0.05)
""")
    time.sleep(1)
    return None, [{"ports-used-up"}]


def small_python_server(plant):
    """The web server of Python's library serves one request at a time, each in 0.3 s; thirty clients ask."""
    plant.python("""
import http.server, time
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self): time.sleep(0.3); self.send_response(200); self.end_headers(); self.wfile.write(b'x')
http.server.HTTPServer(('127.0.0.1', 7802), Slow).serve_forever()
""")
    time.sleep(0.7)
    for _ in range(30):
        plant.python("import urllib.request\nwhile True:\n  try: urllib.request.urlopen('http://127.0.0.1:7802/', timeout=60).read()\n  except OSError: pass")
    time.sleep(1)
    return None, [{"accept-queue", "listen-overflow"}]


def watches_of_user(plant):
    """A program watches as many folders as its user may; it cannot watch another."""
    sysctl(plant, "fs.inotify.max_user_watches", 3000)
    nobody = pwd.getpwnam("nobody").pw_uid
    (plant.dir / "tree").mkdir()
    for number in range(3100):
        (plant.dir / "tree" / str(number)).mkdir()
    os.chmod(plant.dir, 0o755)
    plant.python(f"""
import ctypes, os, time
os.setgid(65534); os.setuid({nobody})
libc = ctypes.CDLL(None)
one = libc.inotify_init()
n = 0
while libc.inotify_add_watch(one, b'{plant.dir}/tree/%d' % n, 2) >= 0: n += 1
while True: libc.inotify_add_watch(one, b'{plant.dir}/tree/3099', 2); time.sleep(0.05)
""")
    time.sleep(1)
    return None, [{"inotify-limit"}]


def second_name_server(plant):
    """The first name server of resolv.conf is dead, the second answers: each look-up takes two seconds and succeeds."""
    (plant.dir / "resolv.conf").write_text("nameserver 192.0.2.53\nnameserver 127.0.0.1\noptions timeout:2 attempts:2\n")
    plant.python("""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 53))
while True:
    q, a = s.recvfrom(512)
    end = q.index(0, 12) + 5
    kind = q[end - 4:end - 2]
    answer = b'\\xc0\\x0c\\x00\\x01\\x00\\x01\\x00\\x00\\x00\\x0a\\x00\\x04\\x7f\\x00\\x00\\x01' if kind == b'\\x00\\x01' else b''
    s.sendto(q[:2] + b'\\x81\\x80\\x00\\x01\\x00' + (b'\\x01' if answer else b'\\x00') + b'\\x00\\x00\\x00\\x00' + q[12:end] + answer, a)
""")
    time.sleep(0.4)
    code = "import socket, time\nwhile True:\n  try: socket.gethostbyname('db.example.net')\n  except OSError: time.sleep(0.2)"
    plant.group("cpu")
    plant.start("unshare", "-m", "sh", "-c", f"mount --bind {plant.dir}/resolv.conf /etc/resolv.conf && exec {PYTHON} -c \"$0\"", code)
    time.sleep(1)
    return plant.name, [{"name-server"}]


def ipv6_first(plant):
    """A server's name has an IPv6 address that drops all packets, and is tried first; IPv4 answers at once."""
    plant.run("sysctl", "-w", "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.d0.disable_ipv6=0")
    plant.run("ip", "addr", "add", "2001:db8::1/64", "dev", "d0", "nodad")
    plant.run("ip", "-6", "neigh", "add", "2001:db8::9", "lladdr", "02:00:00:00:00:02", "dev", "d0")
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7803)); s.listen(9)\nwhile True: s.accept()[0].close()")
    time.sleep(0.4)
    for _ in range(2):
        plant.python("""
import socket
while True:
    for family, host in ((socket.AF_INET6, '2001:db8::9'), (socket.AF_INET, '127.0.0.1')):
        s = socket.socket(family); s.settimeout(3)
        try: s.connect((host, 7803)); s.recv(1)
        except OSError: pass
        s.close()
""")
    return None, [{"connection-timeouts"}]


def data_in_journal(plant):
    """ext4 with data=journal writes all data twice; a program syncs each small write."""
    mount, _ = loop_mount(plant, ["mkfs.ext4", "-q", "-J", "size=8"], "data=journal")
    plant.group("cpu")
    plant.python(f"""
import os
f = os.open('{mount}/f', os.O_CREAT | os.O_RDWR)
while True: os.pwrite(f, b'x' * 4096, 0); os.fsync(f)
""")
    return plant.name, [{"fsync-storm", "slow-flush", "journal", "syncs-of-many"}]


def btrfs_syncs(plant):
    """Four programs on btrfs rename a file into place and sync it, as editors and package managers do."""
    mount, _ = loop_mount(plant, ["mkfs.btrfs", "-q"])
    plant.group("cpu")
    for number in range(4):
        plant.python(f"""
import os
while True:
    f = os.open('{mount}/new{number}', os.O_CREAT | os.O_WRONLY); os.write(f, b'x' * 9000); os.fsync(f); os.close(f)
    os.rename('{mount}/new{number}', '{mount}/f{number}')
""")
    return plant.name, [{"fsync-storm", "slow-flush", "syncs-of-many", "journal", "lock-contention"}]


def xfs_small_log(plant):
    """Six programs create and remove files on XFS with the smallest log; each removal is synced."""
    mount, _ = loop_mount(plant, ["mkfs.xfs", "-q"], "wsync", 512 << 20)
    plant.group("cpu")
    for number in range(6):
        plant.python(f"""
import os
os.mkdir('{mount}/{number}')
while True:
    for i in range(50): os.close(os.open(f'{mount}/{number}/{{i}}', os.O_CREAT | os.O_WRONLY))
    for i in range(50): os.unlink(f'{mount}/{number}/{{i}}')
""")
    return plant.name, [{"fsync-storm", "slow-flush", "syncs-of-many", "journal", "lock-contention"}]


SYN_FLOOD = """
import random, socket, struct, sys, time
def sum16(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
target = socket.inet_aton('127.0.0.1')
while True:
    for _ in range(60):
        source = socket.inet_aton('127.%d.%d.%d' % (random.randrange(10, 250), random.randrange(256), random.randrange(1, 255)))
        tcp = struct.pack('!HHIIBBHHH', random.randrange(1024, 65000), 7804, random.randrange(1 << 32), 0, 5 << 4, 2, 1024, 0, 0)
        check = sum16(source + target + struct.pack('!BBH', 0, 6, 20) + tcp)
        tcp = tcp[:16] + struct.pack('!H', check) + tcp[18:]
        head = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 40, 0, 0, 64, 6, 0, source, target)
        raw.sendto(head + tcp, ('127.0.0.1', 0))
    time.sleep(0.05)
"""


def syn_flood(plant):
    """Half-open connections from addresses that never answer fill the queue of a web server."""
    plant.run("iptables", "-A", "INPUT", "-p", "tcp", "--sport", "7804", "-j", "DROP")
    plant.run("sysctl", "-w", "net.ipv4.tcp_syncookies=1")
    plant.python("import socket\ns = socket.socket(); s.bind(('0.0.0.0', 7804)); s.listen(32)\nwhile True: s.accept()[0].close()")
    time.sleep(0.4)
    plant.python(SYN_FLOOD)
    time.sleep(1)
    return None, [{"syn-flood", "listen-overflow"}]


SEMAPHORE = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
class Op(ctypes.Structure): _fields_ = [('num', ctypes.c_ushort), ('op', ctypes.c_short), ('flg', ctypes.c_short)]
one = libc.semget(int(sys.argv[1]), 1, 0o1666)
def change(by): libc.semop(one, ctypes.byref(Op(0, by, 0x1000)), 1)
if sys.argv[2] == 'make': change(1)
while True:
    change(-1); time.sleep(float(sys.argv[3])); change(1)
    if float(sys.argv[4]): time.sleep(float(sys.argv[4]))
"""


def semaphore_users(plant, held, pause, others):
    """Programs that share a semaphore of System V."""
    key = os.getpid() & 0x7FFFFFFF
    plant.callback(subprocess.run, ["ipcrm", "-S", str(key)], check=False, capture_output=True)
    plant.python(SEMAPHORE, key, "make", held, pause)
    time.sleep(0.4)
    all = [plant.python(SEMAPHORE, key, "use", held, pause) for _ in range(others)]
    time.sleep(0.5)
    return all[0]


def semaphore_held(plant):
    """Three workers wait for a semaphore that a fourth one holds for minutes."""
    waiter = semaphore_users(plant, 300, 0, 3)
    return waiter.pid, [{"semaphore"}]


def fifo_without_reader(plant):
    """A job writes its report into a named pipe that no program reads."""
    os.mkfifo(plant.dir / "report")
    plant.start("sh", "-c", f"echo done > {plant.dir}/report")
    time.sleep(0.5)
    return None, [{"fifo-reader", "slow-reader"}]


def quota_of_parent(plant):
    """A slice has a quota; the service in it has none of its own, and is asked about."""
    slice_ = plant.group("cpu", cpu__cfs_quota_us=15000, cpu__cfs_period_us=100000, cpu__max="15000 100000")
    child = slice_ / f"{plant.name}-child"
    child.mkdir()
    plant.callback(plant.remove_group, child)
    plant.groups = [child]
    plant.python(SPIN)
    return child.name, [{"cpu-quota"}]


def memory_limit_of_parent(plant):
    """The memory limit stands at the slice above the service that is asked about."""
    path = plant.file("data", 160 << 20)
    limit = 48 << 20
    slice_ = plant.group("memory", memory__use_hierarchy=1, memory__limit_in_bytes=limit, memory__max=limit)
    child = slice_ / f"{plant.name}-child"
    child.mkdir()
    plant.callback(plant.remove_group, child)
    plant.groups = [child]
    plant.start("sh", "-c", f"while :; do cat {path} >/dev/null; done")
    return child.name, [{"memory-limit"}]


def straced(plant):
    """Somebody has left strace on a server: each system call stops it twice."""
    if not shutil.which("strace"):
        raise Skip("no strace")
    server = plant.python("import os\nf = os.open('/dev/zero', os.O_RDONLY)\nwhile True: os.read(f, 1)")
    time.sleep(0.4)
    plant.start("strace", "-f", "-o", "/dev/null", "-p", server.pid)
    time.sleep(0.7)
    return server.pid, [{"traced", "stopped"}]


def read_only_after_error(plant):
    """A file system has found an error and turned itself read-only; a program fails to write, again and again."""
    mount, device = loop_mount(plant, ["mkfs.ext4", "-q"], "errors=remount-ro")
    trigger = pathlib.Path("/sys/fs/ext4") / os.path.basename(device) / "trigger_fs_error"
    if not trigger.exists():
        raise Skip("no trigger_fs_error")
    trigger.write_text("planted\n")
    plant.python(f"import time\nwhile True:\n  try: open('{mount}/x', 'w').write('x')\n  except OSError: time.sleep(0.1)")
    return None, [{"file-system-errors"}]


def sqlite_busy(plant):
    """A program keeps a write transaction of SQLite open; two others try to write, again and again."""
    path = plant.dir / "db"
    plant.python(f"""
import sqlite3, time
db = sqlite3.connect({str(path)!r}, isolation_level=None)
db.execute('CREATE TABLE t (a)'); db.execute('BEGIN IMMEDIATE'); db.execute('INSERT INTO t VALUES (1)')
time.sleep(999)
""")
    time.sleep(0.7)
    for _ in range(2):
        plant.python(f"import sqlite3\ndb = sqlite3.connect({str(path)!r}, isolation_level=None, timeout=600)\ndb.execute('INSERT INTO t VALUES (2)')")
    time.sleep(0.5)
    return None, [{"file-lock", "lock-polled"}]


def semaphore_of_processes(plant):
    """Four processes of Python share a lock of `multiprocessing`; one holds it and waits for the network."""
    plant.python("""
import multiprocessing, time
def work(lock, first):
    if not first: time.sleep(0.5)
    with lock: time.sleep(999)
lock = multiprocessing.get_context('fork').Lock()
all = [multiprocessing.Process(target=work, args=(lock, n == 0)) for n in range(4)]
for one in all: one.start()
for one in all: one.join()
""")
    time.sleep(1.2)
    return None, [{"lock-contention", "lock-convoy", "semaphore", "user-lock"}]


def parent_quota_and_fifo(plant):
    """The quota of a slice, and a named pipe without a reader."""
    fifo_without_reader(plant)
    quota_of_parent(plant)
    return None, [{"cpu-quota"}, {"fifo-reader"}]


def ipv6_and_ports(plant):
    """An IPv6 address that drops packets, and no port left."""
    ipv6_first(plant)
    leaked_connections(plant)
    return None, [{"connection-timeouts"}, {"ports-used-up"}]


def flood_and_files(plant):
    """Half-open connections, and a program without files to open."""
    syn_flood(plant)
    situations.files_used_up(plant)
    return None, [{"syn-flood", "listen-overflow"}, {"files-exhausted"}]


def read_only_and_names(plant):
    """A file system that turned read-only, and a name server that does not answer."""
    read_only_after_error(plant)
    situations.name_server(plant)
    return None, [{"file-system-errors"}, {"name-server"}]


PLANTED = [
    leaked_connections, small_python_server, watches_of_user, second_name_server, ipv6_first,
    data_in_journal, btrfs_syncs, xfs_small_log, syn_flood, semaphore_held, fifo_without_reader, quota_of_parent,
    memory_limit_of_parent, straced, read_only_after_error, sqlite_busy, semaphore_of_processes,
    parent_quota_and_fifo, ipv6_and_ports, flood_and_files, read_only_and_names,
]


def many_connections(plant):
    """Healthy: 150 connections to one server, far from the limit of ports."""
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7811)); s.listen(300)\nheld = []\nwhile True: held.append(s.accept())")
    time.sleep(0.5)
    plant.python("import socket, time\nheld = [socket.create_connection(('127.0.0.1', 7811)) for _ in range(150)]\ntime.sleep(999)")
    return None, []


def semaphore_shared(plant):
    """Healthy: three programs take a semaphore for two milliseconds each, five times a second."""
    semaphore_users(plant, 0.002, 0.2, 2)
    return None, []


def fifo_with_reader(plant):
    """Healthy: a program waits at a named pipe for commands, and gets one ten times a second."""
    os.mkfifo(plant.dir / "commands")
    plant.start("sh", "-c", f"while :; do cat {plant.dir}/commands > /dev/null; done")
    plant.start("sh", "-c", f"while :; do echo x > {plant.dir}/commands; sleep 0.1; done")
    return None, []


def command_fifo(plant):
    """Healthy: a daemon waits at a named pipe for commands that come seldom, as xinetd or a mail hook does."""
    os.mkfifo(plant.dir / "commands")
    plant.start("sh", "-c", f"while :; do cat {plant.dir}/commands > /dev/null; done")
    return None, []


def read_only_on_purpose(plant):
    """Healthy: an image is mounted read-only, and read."""
    mount, device = loop_mount(plant, ["mkfs.ext4", "-q"])
    (mount / "f").write_bytes(os.urandom(1 << 20))
    plant.run("mount", "-o", "remount,ro", mount)
    plant.python(f"import time\nwhile True: open('{mount}/f', 'rb').read(); time.sleep(0.1)")
    return None, []


def sqlite_readers(plant):
    """Healthy: a program writes a row to SQLite twice a second, and two others read."""
    path = plant.dir / "db"
    plant.python(f"import sqlite3, time\ndb = sqlite3.connect({str(path)!r}, isolation_level=None)\ndb.execute('CREATE TABLE t (a)')\n"
                 "while True: db.execute('INSERT INTO t VALUES (1)'); time.sleep(0.5)")
    time.sleep(0.7)
    for _ in range(2):
        plant.python(f"import sqlite3, time\ndb = sqlite3.connect({str(path)!r}, timeout=60)\nwhile True: db.execute('SELECT count(*) FROM t').fetchall(); time.sleep(0.1)")
    return None, []


def lock_file_of_daemon(plant):
    """Healthy: a daemon holds the lock of its pid file, as it does until it ends."""
    plant.python(f"import fcntl, time\nf = open({str(plant.dir / 'pid')!r}, 'w'); fcntl.lockf(f, fcntl.LOCK_EX)\nwhile True: time.sleep(0.2)")
    return None, []


def slice_with_room(plant):
    """Healthy: a slice with a quota of one CPU, and a service in it that needs a tenth."""
    slice_ = plant.group("cpu", cpu__cfs_quota_us=100000, cpu__cfs_period_us=100000, cpu__max="100000 100000")
    child = slice_ / f"{plant.name}-child"
    child.mkdir()
    plant.callback(plant.remove_group, child)
    plant.groups = [child]
    plant.python("import time\nwhile True:\n  end = time.process_time() + 0.01\n  while time.process_time() < end: pass\n  time.sleep(0.09)")
    return None, []


HEALTHY = [
    many_connections, semaphore_shared, fifo_with_reader, command_fifo, read_only_on_purpose, sqlite_readers,
    lock_file_of_daemon, slice_with_room,
]
