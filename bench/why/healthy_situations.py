"""Machines without a fault: nothing may be suspected."""

import os
import subprocess
import time

from plant import PYTHON, Skip


def idle_server(plant):
    """Healthy: a server that waits for requests."""
    plant.group("cpuacct")
    plant.python("import socket; s = socket.socket(); s.bind(('127.0.0.1', 7720)); s.listen(); s.accept()")
    return plant.name, []


def light_server(plant):
    """Healthy: a server with a few requests a second."""
    plant.group("cpuacct")
    plant.start("chrt", "--rr", "1", PYTHON, "-c", """
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1', 7721)); s.listen(50)
while True:
    c, _ = s.accept(); c.recv(100); c.sendall(b'ok'); c.close()
""")
    time.sleep(0.4)
    plant.start("chrt", "--rr", "1", PYTHON, "-c", """
import socket, time
while True:
    c = socket.create_connection(('127.0.0.1', 7721)); c.sendall(b'x'); c.recv(10); c.close(); time.sleep(0.1)
""")
    return plant.name, []


def timer(plant):
    """Healthy: a program that wakes up ten times a second."""
    plant.group("cpuacct")
    plant.start("chrt", "--rr", "1", PYTHON, "-c", "import time\nwhile True: time.sleep(0.1)")
    return plant.name, []


def quota_unused(plant):
    """Healthy: a quota that is never reached."""
    plant.group("cpu", cpu__cfs_quota_us=50000, cpu__cfs_period_us=100000, cpu__max="50000 100000")
    plant.start("nice", "-n", "-20", PYTHON, "-c", "import time\nwhile True: time.sleep(0.1)")
    return plant.name, []


def memory_below_limit(plant):
    """Healthy: a program well below its memory limit."""
    plant.group("memory", memory__limit_in_bytes=256 << 20, memory__max=256 << 20)
    plant.python("import time; b = bytearray(60 << 20); time.sleep(999)")
    return plant.name, []


def cached_reads(plant):
    """Healthy: reads of a file that is in the page cache."""
    path = plant.file("data", 16 << 20)
    plant.group("cpuacct")
    plant.start("chrt", "--rr", "1", PYTHON, "-c", f"""
import time
while True:
    open({str(path)!r}, 'rb').read(); time.sleep(0.2)
""")
    return plant.name, []


def seldom_writes(plant):
    """Healthy: a log that is written once a second."""
    plant.group("cpuacct")
    plant.start("chrt", "--rr", "1", PYTHON, "-c", f"""
import time
f = open({str(plant.dir / 'log')!r}, 'a')
while True: f.write('x' * 100); f.flush(); time.sleep(1)
""")
    return plant.name, []


def many_sockets(plant):
    """Healthy: a server with two hundred quiet connections."""
    plant.group("cpuacct")
    plant.python("""
import socket, time
s = socket.socket(); s.bind(('127.0.0.1', 7722)); s.listen(300)
held = []
for _ in range(200): held.append(socket.create_connection(('127.0.0.1', 7722))); held.append(s.accept()[0])
time.sleep(999)
""")
    return plant.name, []


def many_files(plant):
    """Healthy: a program with half of its files open."""
    plant.group("cpuacct")
    plant.python("""
import resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
files = [open('/dev/null') for _ in range(120)]
time.sleep(999)
""")
    return plant.name, []


def sleeping_processes(plant):
    """Healthy: three hundred processes that sleep."""
    plant.group("cpuacct")
    plant.start("sh", "-c", "for i in $(seq 300); do sleep 300 & done; wait")
    return plant.name, []


def compilation(plant):
    """Healthy: a compiler on one CPU after the other, as many at once as there are CPUs but one."""
    source = plant.dir / "x.c"
    source.write_text("#include <stdio.h>\n" + "".join(f"int f{i}(int a) {{ return a * {i} + {i % 7}; }}\n" for i in range(3000)))
    for number in range(max(1, os.cpu_count() - 1)):
        plant.start("sh", "-c", f"while :; do cc -O2 -c -o {plant.dir}/{number}.o {source} || exit; done")
    return None, []


def nice_backup(plant):
    """Healthy: a backup of low priority reads and packs while nothing else is wanted."""
    data = plant.dir / "data"
    data.mkdir()
    for number in range(8):
        (data / str(number)).write_bytes(os.urandom(4 << 20))
    plant.start("nice", "-n", "19", "sh", "-c", f"while :; do tar cf - {data} | gzip -1 > {plant.dir}/backup.gz; done")
    return None, []


def web_server(plant):
    """Healthy: nginx answers one client as fast as it can."""
    config = f"""daemon off; master_process off; pid {plant.dir}/pid; error_log stderr; events {{ }}
http {{ access_log off; client_body_temp_path {plant.dir}; proxy_temp_path {plant.dir}; fastcgi_temp_path {plant.dir};
uwsgi_temp_path {plant.dir}; scgi_temp_path {plant.dir}; server {{ listen 127.0.0.1:7741; location / {{ return 200 ok; }} }} }}"""
    (plant.dir / "nginx.conf").write_text(config)
    server = plant.start("nginx", "-c", plant.dir / "nginx.conf")
    time.sleep(1)
    if server.poll() is not None:
        raise Skip("no nginx")
    plant.start(PYTHON, "-c", """
import http.client
c = http.client.HTTPConnection('127.0.0.1', 7741)
while True: c.request('GET', '/'); c.getresponse().read()
""")
    return server.pid, []


def pipeline(plant):
    """Healthy: a pipeline whose last program computes all the time."""
    plant.start("sh", "-c", "cat /dev/zero | gzip -1 > /dev/null")
    return None, []


def thread_pool(plant):
    """Healthy: twenty threads that wait for work and get some."""
    plant.python("""
import queue, threading, time
q = queue.Queue()
def work():
    while True: q.get(); sum(range(100))
for _ in range(20): threading.Thread(target=work, daemon=True).start()
while True: q.put(1); time.sleep(0.005)
""")
    return None, []


def stopped_editor(plant):
    """Healthy: a program in the background that the user stopped."""
    process = plant.start("sleep", "300")
    os.kill(process.pid, 19)
    return None, []


def steady_syncs(plant):
    """Healthy: a program that syncs a small file twice a second."""
    plant.group("cpuacct")
    plant.python(f"""
import os, time
f = os.open({str(plant.dir / 'f')!r}, os.O_CREAT | os.O_WRONLY)
while True: os.pwrite(f, b'x' * 100, 0); os.fdatasync(f); time.sleep(0.5)
""")
    return plant.name, []


def file_transfer(plant):
    """Healthy: a transfer over the loopback interface at full speed."""
    plant.python("""
import socket
s = socket.socket(); s.bind(('127.0.0.1', 7742)); s.listen(5); c, _ = s.accept()
b = bytearray(1 << 20)
while True: c.recv_into(b)
""")
    time.sleep(0.4)
    plant.python("""
import socket, time
c = socket.create_connection(('127.0.0.1', 7742)); b = b'x' * (1 << 18)
while True: c.sendall(b); time.sleep(0.001)
""")
    return None, []


POOL = """
import fcntl, os, select, socket, sys, time
s = socket.socket(); s.bind(('127.0.0.1', 7743)); s.listen(9)
for _ in range(4):
    if os.fork() == 0:
        log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        lock = open(sys.argv[1], 'w'); fcntl.flock(lock, fcntl.LOCK_EX)
        if sys.argv[2] == 'accept': s.accept()
        if sys.argv[2] == 'select': select.select([s], [], [])
        if sys.argv[2] == 'epoll': e = select.epoll(); e.register(s); e.poll()
        os._exit(0)
time.sleep(999)
"""


def pool_in_accept(plant):
    """Healthy: a pool of servers; the one that has the lock waits in accept."""
    plant.python(POOL, plant.dir / "lock", "accept")
    return None, []


def pool_in_select(plant):
    """Healthy: a pool of servers; the one that has the lock waits in select."""
    plant.python(POOL, plant.dir / "lock", "select")
    return None, []


def pool_in_container(plant):
    """Healthy: a pool of servers in another network namespace; the one that has the lock waits with epoll."""
    plant.start("unshare", "-n", "sh", "-c", f"ip link set lo up; exec {PYTHON} -c \"$0\" {plant.dir}/lock epoll", POOL)
    return None, []


HEALTHY = [
    idle_server, light_server, timer, quota_unused, memory_below_limit, cached_reads, seldom_writes, many_sockets,
    many_files, sleeping_processes, compilation, nice_backup, web_server, pipeline, thread_pool,
    stopped_editor, steady_syncs, file_transfer, pool_in_accept, pool_in_select, pool_in_container,
]
