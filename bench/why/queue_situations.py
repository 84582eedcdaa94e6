"""Planted situations of queues between programs, of shares of CPUs, and of programs that ask before a file is opened."""

import os
import shutil
import time

from plant import PYTHON, SPIN, Skip

# mq_open, mq_timedsend and mq_timedreceive are in no module of Python.
MQ = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
class Attr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ('flags', 'most', 'size', 'now', 'a', 'b', 'c', 'd')]
def open_queue(name):
    attr = Attr(0, 4, 64)
    queue = libc.mq_open(name.encode(), os.O_RDWR | os.O_CREAT, 0o600, ctypes.byref(attr))
    if queue < 0: sys.exit(1)
    return queue
queue = open_queue(sys.argv[1])
"""
MQ_SEND = "\nwhile True:\n  libc.mq_send(queue, b'job', 3, 0)\n  time.sleep(float(sys.argv[2]))"
MQ_TAKE = "\nb = ctypes.create_string_buffer(64)\nwhile True:\n  libc.mq_receive(queue, b, 64, None)\n  time.sleep(float(sys.argv[2]))"

SYSV = """
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.msgget(int(sys.argv[1]), 0o1600)
b = ctypes.create_string_buffer(8 + 4096)
b[0] = 1
"""
SYSV_SEND = "\nwhile True:\n  libc.msgsnd(queue, b, 4096, 0)\n  time.sleep(float(sys.argv[2]))"
SYSV_TAKE = "\nwhile True:\n  libc.msgrcv(queue, b, 4096, 0, 0)\n  time.sleep(float(sys.argv[2]))"


def message_queue(plant, send_pause, take_pause, senders=2):
    """POSIX queue between programs; removed at the end."""
    name = f"/{plant.name}"
    plant.callback(lambda: os.path.exists(f"/dev/mqueue{name}") and os.unlink(f"/dev/mqueue{name}"))
    taker = plant.python(MQ + MQ_TAKE, name, take_pause)
    time.sleep(0.5)
    if taker.poll() is not None:
        raise Skip("no POSIX queues")
    for _ in range(senders):
        plant.python(MQ + MQ_SEND, name, send_pause)


def system_queue(plant, send_pause, take_pause, senders=2):
    """Queue of System V between programs; it ends with the IPC namespace of its programs."""
    key = 0x6173 + os.getpid() % 1000
    code = f"import subprocess, sys\nk, s, t, p = {str(key)!r}, {str(send_pause)!r}, {str(take_pause)!r}, sys.executable\n"
    code += f"take, send = {SYSV + SYSV_TAKE!r}, {SYSV + SYSV_SEND!r}\n"
    code += f"all = [subprocess.Popen([p, '-c', take, k, t])] + [subprocess.Popen([p, '-c', send, k, s]) for _ in range({senders})]\n"
    code += "for one in all: one.wait()"
    plant.start("unshare", "--ipc", PYTHON, "-c", code)


def slow_queue(plant):
    """A worker takes a job a second from a POSIX queue; two programs wait for room in it."""
    message_queue(plant, 0, 1)
    return None, [{"slow-reader"}]


def slow_system_queue(plant):
    """A worker takes a job a second from a queue of System V; two programs wait for room in it."""
    system_queue(plant, 0, 1)
    return None, [{"slow-reader"}]


def silent_terminal(plant):
    """A program prints to a terminal whose window hangs."""
    plant.python("import pty, os, time\npid, fd = pty.fork()\nif pid == 0: os.execvp('yes', ['yes'])\ntime.sleep(999)")
    return None, [{"slow-reader"}]


def stopped_pair(plant):
    """A program writes into a local socket; the helper at the other end hangs."""
    plant.python("import os, socket, time\na, b = socket.socketpair()\nif os.fork() == 0:\n  a.close(); time.sleep(999)\n"
                 "b.close()\nwhile True: a.send(b'x' * 1000)")
    return None, [{"slow-reader"}]


SCANNER = r"""
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
group = libc.fanotify_init(0x4, os.O_RDONLY)
if group < 0: sys.exit(1)
mark = libc.fanotify_mark
mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
if mark(group, 0x1 | 0x10, 0x10000, -100, sys.argv[1].encode()) != 0: sys.exit(1)
time.sleep(999)
"""


def scanner_hangs(plant):
    """A virus scanner is asked before each file is opened, and answers no more."""
    mount = plant.dir / "mnt"
    mount.mkdir()
    plant.run("mount", "-t", "tmpfs", "none", mount)
    plant.callback(lambda: os.system(f"umount -l {mount}"))
    (mount / "x").write_text("x")
    scanner = plant.python(SCANNER, mount)
    time.sleep(0.7)
    if scanner.poll() is not None:
        raise Skip("no fanotify with permission events")
    for _ in range(3):
        plant.start("cat", mount / "x")
    return None, [{"file-scanner"}]


def low_weight(plant):
    """A service with the least weight beside programs that compute on all CPUs."""
    for _ in range(os.cpu_count()):
        plant.python(SPIN)
    plant.group("cpu", cpu__shares=2, cpu__weight=1)
    plant.python(SPIN)
    return plant.name, [{"cpu-hog", "cpu-saturated", "low-priority"}]


def one_cpu_of_set(plant):
    """A service with four threads whose control group has one CPU."""
    plant.group("cpuset", cpuset__cpus=0, cpuset__mems=0)
    for _ in range(4):
        plant.python(SPIN)
    return plant.name, [{"cpu-affinity", "cpu-saturated", "cpu-hog"}]


def real_time_hog(plant):
    """A program of real-time priority computes on the CPU on which a service may run."""
    plant.start("taskset", "-c", "0", "chrt", "-f", "50", PYTHON, "-c", SPIN)
    victim = plant.start("taskset", "-c", "0", PYTHON, "-c", SPIN)
    return victim.pid, [{"cpu-hog", "cpu-affinity", "cpu-saturated"}]


def one_thread_serves(plant):
    """A server with one thread computes 20 ms for each request; forty clients want more than it can do."""
    plant.first_group()
    server = plant.python("import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 7765)); s.listen(100)\nwhile True:\n"
                          "  c, _ = s.accept(); c.recv(9); end = time.process_time() + 0.02\n"
                          "  while time.process_time() < end: pass\n  c.send(b'x'); c.close()")
    time.sleep(0.5)
    plant.python("import socket, threading\ndef ask():\n  while True:\n    c = socket.create_connection(('127.0.0.1', 7765))\n"
                 "    c.send(b'x'); c.recv(9); c.close()\nfor _ in range(40): threading.Thread(target=ask).start()")
    return server.pid, [{"computes", "accept-queue"}]


def worker_waits_for_backend(plant):
    """The only worker of a server waits for a backend that takes 2 s; the clients of the server wait."""
    plant.python("import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 7766)); s.listen(9)\n"
                 "while True:\n  c, _ = s.accept(); c.recv(9); time.sleep(2); c.send(b'x'); c.close()")
    time.sleep(0.4)
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7767)); s.listen(100)\nwhile True:\n"
                 "  c, _ = s.accept(); c.recv(9); b = socket.create_connection(('127.0.0.1', 7766)); b.send(b'x'); b.recv(9); c.send(b'x'); c.close()")
    time.sleep(0.4)
    plant.python("import socket, threading\ndef ask():\n  while True:\n    c = socket.create_connection(('127.0.0.1', 7767))\n"
                 "    c.send(b'x'); c.recv(9); c.close()\nfor _ in range(6): threading.Thread(target=ask).start()")
    return None, [{"accept-queue"}]


def queue_and_terminal(plant):
    """A queue whose worker is slow, and a file system without space."""
    system_queue(plant, 0, 1)
    mount = plant.dir / "mnt"
    mount.mkdir()
    plant.run("mount", "-t", "tmpfs", "-o", "size=2m", "none", mount)
    plant.callback(lambda: os.system(f"umount -l {mount}"))
    plant.start("sh", "-c", f"while :; do cat /dev/zero > {mount}/x; sleep 0.2; done")
    return None, [{"slow-reader"}, {"file-system-full"}]


def busy_queues(plant):
    """Healthy: fifty jobs a second pass through a POSIX queue and one of System V; the workers wait for jobs."""
    message_queue(plant, 0.02, 0, senders=1)
    system_queue(plant, 0.02, 0, senders=1)
    return None, []


def long_polling(plant):
    """Healthy: thirty clients wait for events of a server, which come every two seconds."""
    plant.python("""
import asyncio
waiting = []
async def serve(reader, writer):
    while await reader.read(100):
        event = asyncio.Event(); waiting.append(event); await event.wait(); writer.write(b'event'); await writer.drain()
async def main():
    await asyncio.start_server(serve, '127.0.0.1', 7768)
    while True:
        await asyncio.sleep(2)
        while waiting: waiting.pop().set()
asyncio.run(main())
""")
    time.sleep(0.5)
    plant.python("import socket, threading\ndef ask():\n  c = socket.create_connection(('127.0.0.1', 7768))\n"
                 "  while True: c.send(b'x'); c.recv(99)\nfor _ in range(30): threading.Thread(target=ask).start()")
    return None, []


def proxied_site(plant):
    """Healthy: nginx hands forty requests a second to gunicorn, whose two workers take 5 ms for each."""
    if not shutil.which("gunicorn") or not shutil.which("nginx"):
        raise Skip("no nginx or gunicorn")
    (plant.dir / "site.py").write_text("import time\ndef app(e, start):\n  time.sleep(0.005); start('200 OK', [('Content-Length', '2')])\n  return [b'ok']\n")
    plant.start("gunicorn", "-w", "2", "-b", "127.0.0.1:7769", "site:app", cwd=plant.dir)
    (plant.dir / "nginx.conf").write_text(
        f"pid {plant.dir}/pid; error_log stderr; daemon off; events {{}}\nhttp {{ access_log off; client_body_temp_path {plant.dir}/a; "
        f"proxy_temp_path {plant.dir}/b; fastcgi_temp_path {plant.dir}/c; uwsgi_temp_path {plant.dir}/d; scgi_temp_path {plant.dir}/e; "
        "server { listen 127.0.0.1:7770; location / { proxy_pass http://127.0.0.1:7769; } } }")
    plant.start("nginx", "-c", plant.dir / "nginx.conf", "-p", plant.dir)
    time.sleep(1.5)
    plant.python("import time, urllib.request\nwhile True:\n  urllib.request.urlopen('http://127.0.0.1:7770/').read(); time.sleep(0.02)")
    return None, []


def leaky_bucket_writer(plant):
    """Healthy: a backup is limited to 2 MB/s on purpose by the program that reads its pipe (as pv -L does)."""
    code = "import os, time\nwhile True:\n  end = time.time() + 0.1; n = 0\n  while n < 200000: n += len(os.read(0, 65536))\n  time.sleep(max(0, end - time.time()))"
    plant.start("sh", "-c", f"{PYTHON} -c 'import os, time\nwhile True: os.write(1, bytes(18000)); time.sleep(0.01)' | {PYTHON} -c '{code}'")
    return None, []


PLANTED = [
    slow_queue, slow_system_queue, silent_terminal, stopped_pair, scanner_hangs, low_weight, one_cpu_of_set, real_time_hog,
    one_thread_serves, worker_waits_for_backend, queue_and_terminal,
]
HEALTHY = [busy_queues, long_polling, proxied_site, leaky_bucket_writer]
