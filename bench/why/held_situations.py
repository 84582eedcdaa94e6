"""Planted situations in which the kernel holds a program until another one answers (leases, supervisors, pages, automounts),
of shared ports and locks, of names and neighbours, and of a runtime that collects garbage; with healthy twins."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

from plant import PYTHON, Skip
from system_situations import loop_mount

LEASE = "import fcntl, signal, sys, time\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nf = open(sys.argv[1], 'w')\n" \
        "fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)\ntime.sleep(999)"


def compiled(plant, name, source, *options):
    """Compiles a program in C; returns its path."""
    (plant.dir / f"{name}.c").write_text(source)
    try:
        plant.run("cc", "-O1", "-pthread", "-o", plant.dir / name, plant.dir / f"{name}.c", *options)
    except (OSError, subprocess.CalledProcessError):
        raise Skip("no C compiler")
    return plant.dir / name


def lease_kept(plant):
    """A file server keeps the lease of a file (an oplock of Samba) and does not give it back; two programs open the file."""
    path = plant.dir / "file"
    plant.python(LEASE, path)
    time.sleep(0.5)
    for _ in range(2):
        plant.start("cat", path)
    return None, [{"file-lock"}]


SHARED = "import fcntl, sys, time\nf = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_SH); time.sleep(999)"


def readers_keep_writer_out(plant):
    """Three readers hold a shared lock for minutes; the program that writes waits for all of them."""
    path = plant.dir / "lock"
    path.write_text("")
    for _ in range(3):
        plant.python(SHARED, path)
    time.sleep(0.5)
    plant.start("flock", "--exclusive", path, "true")
    return None, [{"file-lock"}]


SHARED_PORT = "import socket, sys\ns = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n" \
              "s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(50)\nwhile True:\n  c, _ = s.accept(); c.recv(9); c.send(b'x'); c.close()"
ASK = "import socket, sys, time\nwhile True:\n  c = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); c.send(b'x'); c.recv(9); c.close(); time.sleep(0.05)"


def worker_of_port_stopped(plant):
    """Four workers share a port (SO_REUSEPORT); one of them is stopped, and each client that meets it waits."""
    workers = [plant.python(SHARED_PORT, 7821) for _ in range(4)]
    time.sleep(0.7)
    workers[1].send_signal(signal.SIGSTOP)
    for _ in range(6):
        plant.python(ASK, 7821)
    time.sleep(2)
    return None, [{"accept-queue", "stopped", "unread-data"}]


# A supervisor is asked about each mkdir of its child; `argv[1]` is the time until it answers, in milliseconds.
SUPERVISOR = r"""
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    int pair[2], wait = atoi(words[1]);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (fork() == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_chmod, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {4, code};
        int listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
        char data[CMSG_SPACE(sizeof(int))] = {0}, one = 'x';
        struct iovec part = {&one, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = data, .msg_controllen = sizeof data};
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (listener < 0) return 1;
        *head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(head), &listener, sizeof(int));
        sendmsg(pair[1], &message, 0);
        close(listener);
        for (;;) { chmod(words[2], 0600); usleep(100000); }
    }
    char data[CMSG_SPACE(sizeof(int))], one;
    struct iovec part = {&one, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = data, .msg_controllen = sizeof data};
    int listener;
    if (recvmsg(pair[0], &message, 0) != 1) return 1;
    memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    for (;;) {
        struct seccomp_notif asked = {0};
        struct seccomp_notif_resp answer = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue;
        usleep(wait * 1000);
        answer.id = asked.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}
"""


def supervised(plant, milliseconds):
    file = plant.dir / "file"
    file.write_text("")
    supervisor = plant.start(compiled(plant, "supervisor", SUPERVISOR), milliseconds, file)
    time.sleep(0.7)
    if supervisor.poll() is not None:
        raise Skip("no supervisors of system calls")


def supervisor_hangs(plant):
    """A container's supervisor is asked about some system calls of its programs (seccomp) and does not answer."""
    supervised(plant, 999000)
    return None, [{"supervisor"}]


# A thread touches pages of memory that another program supplies; `argv[1]` is the time for each page in milliseconds.
PAGES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static char *area;
static const long most = 100000;
static void *touch(void *x) {
    volatile char sum = 0;
    for (long i = 0; i < most; i++) { sum += area[i * 4096]; usleep(20000); }
    return x;
}
int main(int count, char **words) {
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    area = mmap(0, most * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register all = {.range = {(unsigned long)area, most * 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    static char page[4096] __attribute__((aligned(4096)));
    pthread_t thread;
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &all)) return 1;
    pthread_create(&thread, 0, touch, 0);
    for (;;) {
        struct uffd_msg asked;
        if (read(fd, &asked, sizeof asked) != sizeof asked) continue;
        usleep(atoi(words[1]) * 1000);
        struct uffdio_copy copy = {.dst = asked.arg.pagefault.address & ~4095UL, .src = (unsigned long)page, .len = 4096};
        ioctl(fd, UFFDIO_COPY, &copy);
    }
}
"""


def pages_of(plant, milliseconds):
    server = plant.start(compiled(plant, "pages", PAGES), milliseconds)
    time.sleep(0.5)
    if server.poll() is not None:
        raise Skip("no userfaultfd")


def page_server_hangs(plant):
    """A program whose memory another one supplies page by page (as after a live migration) waits for a page."""
    pages_of(plant, 999000)
    return None, [{"page-server"}]


AUTOFS = r"""
import ctypes, os, sys, time
read, write = os.pipe()
libc = ctypes.CDLL(None, use_errno=True)
os.setpgid(0, 0)
options = f'fd={write},pgrp={os.getpgrp()},minproto=5,maxproto=5,indirect'.encode()
if libc.mount(b'autofs', sys.argv[1].encode(), b'autofs', 0, options) != 0: sys.exit(1)
os.close(write)
time.sleep(999)
"""


def automounted(plant):
    if "autofs" not in pathlib.Path("/proc/filesystems").read_text():
        raise Skip("no autofs")
    mount = plant.dir / "far"
    mount.mkdir()
    plant.callback(subprocess.run, ["umount", "-l", str(mount)], check=False)
    daemon = plant.python(AUTOFS, mount)
    time.sleep(0.7)
    if daemon.poll() is not None:
        raise Skip("autofs cannot be mounted")
    return mount


def automount_hangs(plant):
    """The automounter of a server that is gone does not end its mount; three programs wait for it."""
    mount = automounted(plant)
    for _ in range(3):
        plant.start("ls", mount / "server")
    time.sleep(0.5)
    return None, [{"network-share"}]


ANSWER_NOTHING = """
import socket, sys, threading, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 53))
def answer(q, a):
    time.sleep(float(sys.argv[1])); end = q.index(0, 12) + 5
    s.sendto(q[:2] + b'\\x81\\x83\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00' + q[12:end], a)
while True: threading.Thread(target=answer, args=s.recvfrom(512)).start()
"""


def search_list(plant):
    """resolv.conf has five search domains; the name server takes 0.4 s for each, so that a short name takes two seconds."""
    (plant.dir / "resolv.conf").write_text("nameserver 127.0.0.1\nsearch a.example b.example c.example d.example e.example\noptions ndots:3\n")
    plant.python(ANSWER_NOTHING, 0.4)
    code = "import socket, time\nwhile True:\n  try: socket.gethostbyname('db')\n  except OSError: time.sleep(0.1)"
    plant.start("unshare", "-m", "sh", "-c", f"mount --bind {plant.dir}/resolv.conf /etc/resolv.conf && exec {PYTHON} -c \"$0\"", code)
    time.sleep(1)
    return None, [{"name-server"}]


def silent_neighbour(plant):
    """A server of the own network was moved to another address; nothing answers ARP for the old one."""
    for _ in range(2):
        plant.python("import socket, time\nwhile True:\n  s = socket.socket(); s.settimeout(8)\n  try: s.connect(('192.0.2.77', 5432))\n"
                     "  except OSError: pass\n  s.close()")
    time.sleep(1)
    return None, [{"connection-timeouts"}]


MAPPINGS = r"""
#include <pthread.h>
#include <sys/mman.h>
static void *work(void *x) {
    for (;;) {
        char *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (long i = 0; i < 1 << 20; i += 4096) p[i] = 1;
        munmap(p, 1 << 20);
    }
    return x;
}
int main(void) { pthread_t t; for (int i = 0; i < 15; i++) pthread_create(&t, 0, work, 0); work(0); }
"""


def many_mappings(plant):
    """Sixteen threads of one program map memory and give it back, as some allocators do; all take the lock of its mappings."""
    plant.first_group()
    return plant.start(compiled(plant, "mappings", MAPPINGS)).pid, [{"lock-contention"}]


def journal_of_neighbour(plant):
    """A mail queue syncs small files; a service on the same file system, which is asked about, writes one line a second and syncs it."""
    mount, _ = loop_mount(plant, ["mkfs.ext4", "-q", "-J", "size=4"])
    for number in range(3):
        plant.python(f"import os\nwhile True:\n  for i in range(50):\n    f = os.open(f'{mount}/q{number}-{{i}}', os.O_CREAT | os.O_WRONLY); os.write(f, b'x' * 2000); os.fsync(f); os.close(f)\n"
                     f"  for i in range(50): os.unlink(f'{mount}/q{number}-{{i}}')")
    victim = plant.python(f"import os, time\nf = os.open('{mount}/log', os.O_CREAT | os.O_WRONLY | os.O_APPEND)\nwhile True: os.write(f, b'line\\n'); os.fsync(f)")
    time.sleep(0.5)
    return victim.pid, [{"fsync-storm", "slow-flush", "journal", "syncs-of-many", "lock-contention"}]


COLLECTOR = """
import java.net.*;
import java.util.*;
public class Collector {
    static List<byte[]> held = new ArrayList<>();
    public static void main(String[] words) throws Exception {
        int keep = Integer.parseInt(words[0]);
        while (held.size() < keep) held.add(new byte[1024]);
        try (ServerSocket server = new ServerSocket(7823, 100, InetAddress.getByName("127.0.0.1"))) {
            Random random = new Random();
            while (true) try (Socket client = server.accept()) {
                client.getInputStream().read();
                for (int i = 0; i < 4000; i++) held.set(random.nextInt(keep), new byte[1024]);
                client.getOutputStream().write('x');
            }
        }
    }
}
"""


def collecting_server(plant, heap, keep):
    """A server in Java whose live data takes `keep` kB of the heap."""
    if not shutil.which("java"):
        raise Skip("no Java")
    (plant.dir / "Collector.java").write_text(COLLECTOR)
    server = plant.start("java", f"-Xmx{heap}m", "-XX:+UseSerialGC", "-XX:-UseGCOverheadLimit", plant.dir / "Collector.java", keep)
    for _ in range(300):
        time.sleep(0.1)
        if subprocess.run(["sh", "-c", "ss -ltn | grep -q 7823"]).returncode == 0:
            return server
        if server.poll() is not None:
            break
    raise Skip("Java does not start a source file")


def collector_stops(plant):
    """The heap of a server in Java is almost full: it collects garbage most of the time, and twelve clients wait."""
    server = collecting_server(plant, 192, 150_000)
    for _ in range(12):
        plant.python(ASK, 7823)
    time.sleep(1)
    return server.pid, [{"computes", "accept-queue"}]


OWNER = r"""
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    pthread_mutex_t *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(m, &a);
    if (fork() == 0) { pthread_mutex_lock(m); kill(getpid(), SIGKILL); }
    sleep(1);
    for (int i = 0; i < 4; i++) if (fork() == 0) { pthread_mutex_lock(m); return 0; }
    pause();
}
"""


def owner_of_lock_killed(plant):
    """A worker was killed while it held a lock in shared memory; four others wait for it for ever."""
    pool = plant.start(compiled(plant, "owner", OWNER))
    time.sleep(1.7)
    return pool.pid, [{"lock-convoy", "lock-contention"}]


def sync_beside_copy(plant):
    """A copy writes as fast as it can; a small service on the same file system syncs a line, and waits for the data of the copy."""
    mount, _ = loop_mount(plant, ["mkfs.ext4", "-q"], size=600 << 20)
    plant.start("sh", "-c", f"while :; do dd if=/dev/zero of={mount}/copy bs=1M count=400 conv=notrunc; done")
    victim = plant.python(f"import os, time\nf = os.open('{mount}/log', os.O_CREAT | os.O_WRONLY | os.O_APPEND)\nwhile True: os.write(f, b'line\\n'); os.fsync(f); time.sleep(0.05)")
    time.sleep(1)
    return victim.pid, [{"io-hog", "disk-saturated", "slow-flush", "fsync-storm", "journal", "dirty-limit", "syncs-of-many"}]


def silent_client(plant):
    """A client opens a connection to a server with one thread and sends nothing; five others wait behind it."""
    plant.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 7824)); s.listen(50)\nwhile True:\n  c, _ = s.accept(); c.recv(9); c.send(b'x'); c.close()")
    time.sleep(0.5)
    plant.python("import socket, time\nc = socket.create_connection(('127.0.0.1', 7824)); time.sleep(999)")
    time.sleep(0.3)
    for _ in range(5):
        plant.python(ASK, 7824)
    return None, [{"accept-queue"}]


THREAD = "import fcntl, select, sys, threading\ndef work():\n  f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX)\n" \
         "threading.Thread(target=work).start()\nselect.epoll().poll()"


def thread_at_lock(plant):
    """A thread of a quiet daemon waits for a file lock; its first thread waits for events, as always."""
    path = plant.dir / "lock"
    plant.start("flock", path, "sleep", "300")
    time.sleep(0.3)
    plant.python(THREAD, path)
    time.sleep(0.5)
    return None, [{"file-lock"}]


THREAD_WRITES = "import os, select, socket, threading\na, b = socket.socketpair()\n" \
                "if os.fork() == 0:\n  a.close(); select.epoll().poll()\nb.close()\ndef work():\n  while True: a.send(b'x' * 1000)\n" \
                "threading.Thread(target=work).start()\nselect.epoll().poll()"


def thread_at_helper(plant):
    """A thread of a quiet daemon writes to its helper, which hangs; the first thread waits for events, as always."""
    plant.python(THREAD_WRITES)
    time.sleep(0.5)
    return None, [{"slow-reader"}]


PLANTED = [
    lease_kept, readers_keep_writer_out, worker_of_port_stopped, supervisor_hangs, page_server_hangs, automount_hangs,
    search_list, silent_neighbour, many_mappings, journal_of_neighbour, collector_stops, owner_of_lock_killed,
    sync_beside_copy, silent_client, thread_at_lock, thread_at_helper,
]


def leases_of_server(plant):
    """Healthy: a file server holds leases of forty files that nobody else opens."""
    plant.python("import fcntl, sys, time\nall = []\nfor n in range(40):\n  f = open(f'{sys.argv[1]}/{n}', 'w'); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK); all.append(f)\ntime.sleep(999)", plant.dir)
    return None, []


def readers_share_lock(plant):
    """Healthy: eight programs hold a shared lock for as long as they run; a writer takes it once, before them."""
    path = plant.dir / "lock"
    plant.run("flock", path, "true")
    for _ in range(8):
        plant.python(SHARED, path)
    return None, []


def workers_share_port(plant):
    """Healthy: four workers share a port (SO_REUSEPORT), and six clients ask ten times a second."""
    for _ in range(4):
        plant.python(SHARED_PORT, 7822)
    time.sleep(0.7)
    for _ in range(6):
        plant.python(ASK, 7822)
    return None, []


def quick_supervisor(plant):
    """Healthy: a container's supervisor answers each question in a millisecond, ten times a second."""
    supervised(plant, 1)
    return None, []


def quick_pages(plant):
    """Healthy: a program gets its pages from another one, each in a millisecond, forty times a second."""
    pages_of(plant, 1)
    return None, []


def idle_automounter(plant):
    """Healthy: an automounter whose folder nobody enters."""
    automounted(plant)
    return None, []


def roomy_heap(plant):
    """Healthy: a server in Java with a third of its heap in use answers twelve clients."""
    plant.first_group()
    collecting_server(plant, 192, 40_000)
    for _ in range(12):
        plant.python("import socket, time\nwhile True:\n  c = socket.create_connection(('127.0.0.1', 7823)); c.send(b'x'); c.recv(9); c.close(); time.sleep(0.5)")
    time.sleep(2)
    return None, []


def copy_with_one_sync(plant):
    """Healthy: files of 8 MB are copied one a second, each with one sync at its end."""
    path = plant.file("data", 8 << 20)
    plant.start("sh", "-c", f"while :; do cp {path} {plant.dir}/copy && sync {plant.dir}/copy; sleep 1; done")
    return None, []


HEALTHY = [
    leases_of_server, readers_share_lock, workers_share_port, quick_supervisor, quick_pages, idle_automounter, roomy_heap,
    copy_with_one_sync,
]
