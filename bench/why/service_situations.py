"""Planted situations of services as users run them: databases, web servers, loggers, cron jobs, shares, limits."""

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import time

import blocked_situations
from plant import PYTHON, SPIN, Skip


def resolver_of_daemon(plant):
    """A daemon looks names up; resolv.conf names a server that does not answer."""
    (plant.dir / "resolv.conf").write_text("nameserver 192.0.2.53\noptions timeout:3 attempts:2\n")
    code = "import socket, time\nwhile True:\n  try: socket.getaddrinfo('db.example.net', 5432)\n  except OSError: time.sleep(0.2)"
    plant.group("cpu")
    plant.start("unshare", "-m", "sh", "-c", f"mount --bind {plant.dir}/resolv.conf /etc/resolv.conf && exec {PYTHON} -c \"$0\"", code)
    time.sleep(1)
    return plant.name, [{"name-server"}]


def one_client_not_accepted(plant):
    """A server stands still; one client waits, while another server accepts many connections."""
    plant.python("import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 7751)); s.listen(50); time.sleep(999)")
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7752)); s.listen(50)\nwhile True: s.accept()[0].close()")
    time.sleep(0.5)
    plant.python("import socket, time\nwhile True:\n  socket.create_connection(('127.0.0.1', 7752)).recv(1); time.sleep(0.02)")
    plant.python("import socket\nc = socket.create_connection(('127.0.0.1', 7751)); c.send(b'x'); c.recv(9)")
    return None, [{"accept-queue"}]


def files_used_up_in_accept(plant):
    """A server whose clients stay connected has no file left for the next ones, and tries to accept again and again."""
    plant.python("""
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
s = socket.socket(); s.bind(('127.0.0.1', 7753)); s.listen(100)
held = []
while True:
    try: held.append(s.accept())
    except OSError: time.sleep(0.01)
""")
    time.sleep(0.5)
    plant.python("import socket, time\nheld = [socket.create_connection(('127.0.0.1', 7753)) for _ in range(60)]\ntime.sleep(999)")
    return None, [{"files-exhausted", "accept-queue"}]


def watches_used_up(plant):
    """A user has all inotify instances open that the kernel lets it have; a daemon tries to get another."""
    most = int(pathlib.Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    if most > 1024:
        raise Skip("more inotify instances than a bench should open")
    nobody = pwd.getpwnam("nobody").pw_uid
    plant.python(f"""
import ctypes, os, time
os.setgid(65534); os.setuid({nobody})
libc = ctypes.CDLL(None)
while libc.inotify_init() >= 0: pass
while True: libc.inotify_init(); time.sleep(0.05)
""")
    return None, [{"inotify-limit"}]


def connections_tracked(plant):
    """The firewall's table of connections is full."""
    if not pathlib.Path("/proc/sys/net/netfilter/nf_conntrack_max").exists():
        raise Skip("no conntrack")
    plant.run("iptables", "-A", "INPUT", "-m", "conntrack", "--ctstate", "INVALID", "-j", "DROP")
    most = int(pathlib.Path("/proc/sys/net/netfilter/nf_conntrack_max").read_text())
    if most > 600_000:
        raise Skip("a table of connections that takes long to fill")
    code = f"""
import socket, time
sent = 0
for host in range(1, 250):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((f'127.0.3.{{host}}', 0))
    for port in range(1, 60001):
        if sent > {most}: break
        sent += 1
        try: s.sendto(b'', ('127.0.2.1', port))
        except OSError: pass
n = 0
while True:
    n += 1
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try: s.sendto(b'', ('127.0.5.1', 1000 + n % 50000))
    except OSError: pass
    s.close(); time.sleep(0.005)
"""
    plant.python(code)
    count = pathlib.Path("/proc/sys/net/netfilter/nf_conntrack_count")
    for _ in range(300):
        if int(count.read_text()) >= 0.98 * most:
            return None, [{"conntrack-full"}]
        time.sleep(0.1)
    raise Skip("the table of connections did not fill")


def stopped_with_lock(plant):
    """A job that holds a lock was stopped; three others wait for it."""
    path = plant.dir / "lock"
    holder = plant.start("flock", path, PYTHON, "-c", SPIN)
    time.sleep(0.5)
    os.kill(blocked_situations.children(holder.pid)[0], signal.SIGSTOP)
    os.kill(holder.pid, signal.SIGSTOP)
    for _ in range(3):
        plant.start("flock", path, "true")
    return None, [{"file-lock", "stopped"}]


def slow_copy(plant):
    """A large copy to a slow disk fills the dirty pages that the disk may have; the copy is held back."""
    device = plant.loop("disk", 400 << 20)
    plant.run("mkfs.ext4", "-q", "-O", "^has_journal", device)
    number = os.stat(device).st_rdev
    bdi = pathlib.Path(f"/sys/class/bdi/{os.major(number)}:{os.minor(number)}")
    if not (bdi / "max_ratio_fine").exists():
        raise Skip("no limit of dirty pages for a disk")
    mount = plant.dir / "mnt"
    mount.mkdir()
    plant.run("mount", device, mount)
    plant.callback(subprocess.run, ["umount", "-l", str(mount)], check=False)
    old = {name: (bdi / name).read_text() for name in ("strict_limit", "max_ratio_fine")}
    for name, value in old.items():
        plant.callback((bdi / name).write_text, value)
    (bdi / "strict_limit").write_text("1")
    (bdi / "max_ratio_fine").write_text("1000")
    plant.start("sh", "-c", f"while :; do dd if=/dev/zero of={mount}/copy bs=1M count=300 conv=notrunc; done")
    return None, [{"dirty-limit", "io-hog", "disk-saturated"}]


SLOW_FUSE = r"""
import ctypes, os, struct, sys, time
device = os.open('/dev/fuse', os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f'fd={device},rootmode=40000,user_id=0,group_id=0'.encode()
if libc.mount(b'far', sys.argv[1].encode(), b'fuse.far', 0, options) != 0: sys.exit(1)
while True:
    request = os.read(device, 1 << 17)
    _, code, unique = struct.unpack('<IIQ', request[:16])
    if code == 26:
        body = struct.pack('<IIIIHHIIHHI7I', 7, 31, 65536, 0, 16, 12, 65536, 1, 16, 0, 0, *[0] * 7)
    elif code == 3:
        time.sleep(0.15)
        body = struct.pack('<QII', 0, 0, 0) + struct.pack('<QQQQQQIIIIIIIIII', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
    else:
        time.sleep(0.15)
        os.write(device, struct.pack('<IiQ', 16, -2, unique)); continue
    os.write(device, struct.pack('<IiQ', 16 + len(body), 0, unique) + body)
"""


def slow_share(plant):
    """A file system whose server takes 150 ms for each answer; a program lists files on it."""
    if not pathlib.Path("/dev/fuse").exists():
        raise Skip("no FUSE")
    mount = plant.dir / "far"
    mount.mkdir()
    plant.callback(subprocess.run, ["umount", "-f", "-l", str(mount)], check=False)
    server = plant.python(SLOW_FUSE, mount)
    time.sleep(1)
    if server.poll() is not None:
        raise Skip("FUSE cannot be mounted")
    plant.python("import os, sys\nn = 0\nwhile True:\n  n += 1\n  try: os.stat(f'{sys.argv[1]}/file{n}')\n  except OSError: pass", mount)
    time.sleep(0.5)
    return None, [{"network-share"}]


def runaway_logger(plant):
    """A program logs each step of a loop, a line at a time."""
    plant.python(f"""
import os
log = os.open({str(plant.dir / 'debug.log')!r}, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
n = 0
while True:
    os.write(log, b'2026-01-01 00:00:00 DEBUG step %d of the loop is done, and the next one begins at once\\n' % n); n += 1
    if n % 3_000_000 == 0: os.ftruncate(log, 0)
""")
    return None, [{"log-flood"}]


def jobs_pile_up(plant):
    """A timer starts a job twenty times a second; the jobs hang and never end."""
    plant.start("sh", "-c", "while :; do sleep 300 & sleep 0.05; done")
    time.sleep(1)
    return None, [{"processes-pile-up"}]


def memory_leak(plant):
    """A program keeps all that it gets, 20 MB more each second; its group may have 512 MB."""
    plant.group("memory", memory__limit_in_bytes=512 << 20, memory__max=512 << 20)
    plant.python("import time\nheld = []\nwhile True: held.append(bytearray(b'x' * (2 << 20))); time.sleep(0.1)")
    return None, [{"memory-grows"}]


def pinned_beside_hog(plant):
    """A worker may run on one CPU only, which a program of higher priority fills; the other CPUs are free."""
    cpu = os.cpu_count() - 1
    plant.start("taskset", "-c", str(cpu), "nice", "-n", "-10", PYTHON, "-c", SPIN)
    worker = plant.start("taskset", "-c", str(cpu), PYTHON, "-c", SPIN)
    time.sleep(0.5)
    return worker.pid, [{"cpu-affinity", "cpu-hog", "cpu-saturated"}]


def packet_storm(plant):
    """Small packets arrive as fast as a neighbour can send them; nobody reads them."""
    plant.python("import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 7754)); time.sleep(999)")
    time.sleep(0.7)
    for _ in range(2):
        plant.python("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('127.0.0.1', 7754))\n"
                     "while True: s.send(b'x')")
    return None, [{"udp-full", "softirq-one-cpu", "packet-backlog"}]


def sqlite_commits(plant):
    """A program commits each row to SQLite."""
    plant.group("cpu")
    plant.python(f"""
import sqlite3
db = sqlite3.connect({str(plant.dir / 'db')!r}, isolation_level=None)
db.execute('PRAGMA synchronous=FULL'); db.execute('CREATE TABLE t (a)')
while True: db.execute('INSERT INTO t VALUES (1)')
""")
    return plant.name, [{"fsync-storm", "slow-flush"}]


def postgres(plant):
    """Starts PostgreSQL; returns the words of a client."""
    found = [pathlib.Path(path).parent for path in (shutil.which("initdb"), *pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")) if path]
    if not found or not shutil.which("psql"):
        raise Skip("no PostgreSQL")
    home = plant.dir / "pg"
    home.mkdir()
    os.chmod(plant.dir, 0o755)
    nobody = pwd.getpwnam("nobody")
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    switch = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    try:
        plant.run(*switch, found[0] / "initdb", "-D", home / "data", "-U", "me", "-A", "trust", "--no-sync", "-E", "UTF8")
    except subprocess.CalledProcessError as error:
        raise Skip(f"initdb: {error.stderr.strip()[-200:]}")
    server = plant.start(*switch, found[0] / "postgres", "-D", home / "data", "-k", home, "-c", "listen_addresses=")
    client = ["psql", "-q", "-h", home, "-U", "me", "postgres"]
    for _ in range(100):
        if subprocess.run(list(map(str, [*client, "-c", "select 1"])), capture_output=True).returncode == 0:
            return client, server
        time.sleep(0.1)
    raise Skip("PostgreSQL does not answer")


def postgres_commits(plant):
    """Four clients of PostgreSQL commit single rows."""
    client, server = postgres(plant)
    plant.run(*client, "-c", "create table t (a int)")
    # Beside other programs each of its many short steps would wait for a CPU, and hardly for the disk.
    subprocess.run(["chrt", "--rr", "--pid", "1", str(server.pid)], capture_output=True)
    for _ in range(4):
        plant.start("chrt", "--rr", "1", "sh", "-c", "yes 'insert into t values (1);' | \"$@\"", "sh", *client)
    time.sleep(0.5)
    return server.pid, [{"fsync-storm", "slow-flush", "syncs-of-many"}]


def postgres_row_lock(plant):
    """A transaction that nobody ends holds a row; two clients of PostgreSQL wait for it."""
    client, _ = postgres(plant)
    plant.run(*client, "-c", "create table t (a int); insert into t values (1)")
    plant.start("sh", "-c", "(echo 'begin; update t set a = 2;'; sleep 999) | \"$@\"", "sh", *client)
    time.sleep(1)
    for _ in range(2):
        plant.start(*client, "-c", "update t set a = 3")
    time.sleep(0.5)
    return None, [{"database-lock"}]


def proxy_without_backend(plant):
    """nginx hands requests to a program that accepts none; the queue of the program is full."""
    config = f"""daemon off; master_process off; pid {plant.dir}/pid; error_log stderr; events {{ }}
http {{ access_log off; client_body_temp_path {plant.dir}; proxy_temp_path {plant.dir}; fastcgi_temp_path {plant.dir};
uwsgi_temp_path {plant.dir}; scgi_temp_path {plant.dir};
server {{ listen 127.0.0.1:7755; location / {{ proxy_pass http://127.0.0.1:7756; }} }} }}"""
    (plant.dir / "nginx.conf").write_text(config)
    plant.python("import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 7756)); s.listen(4); time.sleep(999)")
    try:
        server = plant.start("nginx", "-c", plant.dir / "nginx.conf")
    except OSError:
        raise Skip("no nginx")
    time.sleep(1)
    if server.poll() is not None:
        raise Skip("no nginx")
    for _ in range(12):
        plant.python("import urllib.request\nwhile True:\n  try: urllib.request.urlopen('http://127.0.0.1:7755/', timeout=30)\n  except OSError: pass")
    time.sleep(0.5)
    return server.pid, [{"accept-queue", "listen-overflow", "connection-timeouts"}]


def large_packets_lost(plant):
    """A tunnel drops large packets: connections are made, and stand still when they send more than a line."""
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7757)); s.listen(5)\nheld = []\nwhile True: held.append(s.accept()[0])")
    time.sleep(0.4)
    plant.run("iptables", "-A", "INPUT", "-p", "tcp", "--dport", "7757", "-m", "length", "--length", "600:", "-j", "DROP")
    for _ in range(2):
        plant.python("import socket, time\nc = socket.create_connection(('127.0.0.1', 7757)); c.sendall(b'x' * 5000); time.sleep(999)")
    time.sleep(2)
    return None, [{"unanswered-data", "retransmits"}]


def quota_of_bursts(plant):
    """Requests come ten times a second and take eight threads for a moment; the quota is half a CPU."""
    plant.first_group(cpu__cfs_quota_us=50000, cpu__cfs_period_us=100000, cpu__max="50000 100000")
    for _ in range(8):
        plant.python("import time\nwhile True:\n  end = time.process_time() + 0.012\n  while time.process_time() < end: pass\n  time.sleep(0.1)")
    return plant.name, [{"cpu-quota"}]


def traced(plant):
    """A debugger has stopped a server; a client waits for it."""
    if not shutil.which("gdb"):
        raise Skip("no gdb")
    server = plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7758)); s.listen(50)\n"
                          "while True:\n  c, _ = s.accept(); c.recv(9); c.send(b'x'); c.close()")
    time.sleep(0.5)
    plant.start("gdb", "-q", "-nx", "-p", str(server.pid), stdin=subprocess.PIPE)
    time.sleep(2)
    plant.python("import socket\nc = socket.create_connection(('127.0.0.1', 7758)); c.send(b'x'); c.recv(9)")
    return None, [{"stopped", "accept-queue"}]


def processes_of_user(plant):
    """A user has all the processes that RLIMIT_NPROC lets it have; its daemon cannot start another."""
    plant.python("""
import os, resource, time
resource.setrlimit(resource.RLIMIT_NPROC, (20, 20))
os.setgid(64321); os.setuid(64321)
while True:
    try:
        if os.fork() == 0: time.sleep(999)
    except OSError: time.sleep(0.05)
""")
    time.sleep(0.5)
    return None, [{"user-processes"}]


def sync_mount(plant):
    """A file system is mounted with sync; a program writes small pieces and syncs nothing itself."""
    device = plant.loop("disk", 128 << 20)
    plant.run("mkfs.ext4", "-q", device)
    mount = plant.dir / "mnt"
    mount.mkdir()
    plant.run("mount", "-o", "sync", device, mount)
    plant.callback(subprocess.run, ["umount", "-l", str(mount)], check=False)
    for name in "ab":
        plant.python(f"import os\nf = os.open({str(mount / name)!r}, os.O_CREAT | os.O_WRONLY)\nn = 0\n"
                     "while True: n += 1; os.pwrite(f, b'x' * 300, n % 9999 * 300)")
    return None, [{"mount-sync"}]


def container_not_accepting(plant):
    """A server in a network namespace of its own stands still; its client waits there."""
    code = ("import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 7759)); s.listen(9)\n"
            "c = socket.create_connection(('127.0.0.1', 7759)); c.send(b'x'); c.recv(9)")
    plant.start("unshare", "-n", "sh", "-c", f"ip link set lo up; exec {PYTHON} -c \"$0\"", code)
    time.sleep(0.5)
    return None, [{"accept-queue"}]


def commits_and_names(plant):
    """A program commits each row to SQLite, and a daemon waits for a name server."""
    sqlite_commits(plant)
    resolver_of_daemon(plant)
    return None, [{"fsync-storm", "slow-flush"}, {"name-server"}]


def database_and_queue(plant):
    """A row lock in PostgreSQL, and a server that does not accept."""
    postgres_row_lock(plant)
    one_client_not_accepted(plant)
    return None, [{"database-lock"}, {"accept-queue"}]


def stopped_lock_and_share(plant):
    """A stopped job holds a lock, and a share is slow."""
    stopped_with_lock(plant)
    slow_share(plant)
    return None, [{"file-lock", "stopped"}, {"network-share"}]


PLANTED = [
    resolver_of_daemon, one_client_not_accepted, files_used_up_in_accept, watches_used_up, connections_tracked,
    stopped_with_lock, slow_copy, slow_share, runaway_logger, jobs_pile_up, memory_leak, pinned_beside_hog, packet_storm,
    sqlite_commits, postgres_commits, postgres_row_lock, proxy_without_backend, large_packets_lost, quota_of_bursts,
    traced, processes_of_user, sync_mount, container_not_accepting, commits_and_names, database_and_queue, stopped_lock_and_share,
]


def idle_postgres(plant):
    """Healthy: PostgreSQL with open sessions, one of them in a transaction, and a question ten times a second."""
    client, _ = postgres(plant)
    for _ in range(8):
        plant.start("sh", "-c", "(echo 'begin; select 1;'; sleep 999) | \"$@\"", "sh", *client)
    plant.start("sh", "-c", "(while :; do echo 'select 1;'; sleep 0.1; done) | \"$@\"", "sh", *client)
    time.sleep(0.5)
    return None, []


def event_server(plant):
    """Healthy: a server with one thread and 40 clients, each with five requests a second."""
    plant.python("""
import asyncio
async def serve(reader, writer):
    while await reader.read(100): writer.write(b'ok'); await writer.drain()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 7761)
    await server.serve_forever()
asyncio.run(main())
""")
    time.sleep(0.5)
    plant.python("""
import asyncio
async def ask():
    reader, writer = await asyncio.open_connection('127.0.0.1', 7761)
    while True: writer.write(b'x'); await reader.read(10); await asyncio.sleep(0.2)
async def main(): await asyncio.gather(*[ask() for _ in range(40)])
asyncio.run(main())
""")
    return None, []


def quick_resolver(plant):
    """Healthy: a daemon asks a name server twenty times a second, which answers in a millisecond."""
    plant.python("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 53))\n"
                 "while True:\n  d, a = s.recvfrom(512); s.sendto(d, a)")
    time.sleep(0.4)
    plant.python("import socket, time\nwhile True:\n  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)\n"
                 "  s.connect(('127.0.0.1', 53)); s.send(b'x' * 30); s.recv(512); s.close(); time.sleep(0.05)")
    return None, []


def short_locks(plant):
    """Healthy: two jobs take a lock for ten milliseconds each, twice a second."""
    path = plant.dir / "lock"
    for _ in range(2):
        plant.python(f"import fcntl, time\nf = open({str(path)!r}, 'w')\nwhile True:\n"
                     "  fcntl.flock(f, fcntl.LOCK_EX); time.sleep(0.01); fcntl.flock(f, fcntl.LOCK_UN); time.sleep(0.5)")
    return None, []


def log_pipeline(plant):
    """Healthy: a service logs 200 lines a second to a pipe; a program filters them into a file."""
    plant.start("sh", "-c", f"{PYTHON} -uc 'import time\nwhile True: print(\"line\"); time.sleep(0.005)' | "
                f"grep --line-buffered line > {plant.dir}/log")
    return None, []


def bursts_of_clients(plant):
    """Healthy: thirty clients connect at once every second; the server takes them at once."""
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7762)); s.listen(100)\nwhile True: s.accept()[0].close()")
    time.sleep(0.4)
    plant.python("import socket, time\nwhile True:\n  held = [socket.create_connection(('127.0.0.1', 7762)) for _ in range(30)]\n"
                 "  for c in held: c.close()\n  time.sleep(1)")
    return None, []


def growing_and_freed(plant):
    """Healthy: a program fills a buffer of 80 MB, uses it and frees it, again and again."""
    plant.python("import time\nwhile True:\n  held = []\n  for _ in range(20): held.append(bytearray(4 << 20)); time.sleep(0.05)\n  del held; time.sleep(0.5)")
    return None, []


def service_scripts(plant):
    """Healthy: a monitoring agent runs ten small scripts each second."""
    plant.start("sh", "-c", "while :; do for i in 1 2 3 4 5 6 7 8 9 10; do cat /proc/loadavg > /dev/null; done; sleep 1; done")
    return None, []


def file_copies(plant):
    """Healthy: files are copied at 4 MB a second."""
    path = plant.file("data", 64 << 20)
    plant.python(f"import time\na = open({str(path)!r}, 'rb'); b = open({str(plant.dir / 'copy')!r}, 'wb')\nwhile True:\n"
                 "  d = a.read(1 << 18)\n  if not d: a.seek(0); b.seek(0); continue\n  b.write(d); time.sleep(0.06)")
    return None, []


HEALTHY = [
    idle_postgres, event_server, quick_resolver, short_locks, log_pipeline, bursts_of_clients, growing_and_freed,
    service_scripts, file_copies,
]
