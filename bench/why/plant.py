"""What a situation starts and makes, undone at the end."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PYTHON = sys.executable
CGROUP = pathlib.Path("/sys/fs/cgroup")
SPIN = "while True: pass"


class Skip(Exception):
    """This machine cannot show the situation."""


def descendants(above):
    """Numbers of the processes below one."""
    parents = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            stat = pathlib.Path(f"/proc/{int(entry)}/stat").read_text()
            parents[int(entry)] = int(stat.rsplit(")", 1)[1].split()[1])
    found, new = set(), {above}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return found


class Plant(contextlib.ExitStack):
    """What a situation started, undone at the end."""

    def __init__(self, name):
        super().__init__()
        self.name = f"why-{name}-{os.getpid()}"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="assay-why-", dir=os.environ.get("ASSAY_WHY_DIR")))
        self.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.groups = []

    def run(self, *argv, **more):
        """Runs a command to its end."""
        return subprocess.run(list(map(str, argv)), check=True, capture_output=True, text=True, **more).stdout

    def start(self, *argv, **more):
        """Starts a program in the groups made so far; it is killed at the end."""
        groups = list(self.groups)

        def enter():
            os.setpgid(0, 0)
            for group in groups:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        process = subprocess.Popen(list(map(str, argv)), preexec_fn=enter, **{**quiet, **more})
        self.callback(self.kill, process)
        return process

    def python(self, code, *argv):
        return self.start(PYTHON, "-c", code, *argv)

    @staticmethod
    def kill(process):
        """Kills a program and all below it; those that left its process group as well."""
        # A program that starts others faster than they are found starts none while it is stopped.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)
        for pid in [*descendants(process.pid), process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)

    def group(self, controller, **settings):
        """Makes a control group of the plant's name; settings as {file: value}, `__` in a name is a dot."""
        unified = (CGROUP / "cgroup.controllers").exists()
        if unified:
            root = CGROUP
            wanted = {"cpu": "cpu", "memory": "memory", "blkio": "io", "pids": "pids"}.get(controller)
            if wanted:
                (root / "cgroup.subtree_control").write_text(f"+{wanted}")
        else:
            root = CGROUP / controller
        if not root.is_dir():
            raise Skip(f"no controller {controller}")
        path = root / self.name
        path.mkdir(exist_ok=True)
        self.callback(self.remove_group, path)
        for name, value in settings.items():
            file = path / name.replace("__", ".")
            if file.exists():
                file.write_text(str(value))
        if path not in self.groups:
            self.groups.append(path)
        return path

    def first_group(self, **settings):
        """Like group("cpu"); its programs get CPUs before all others, which would hide the situation."""
        return self.group("cpu", cpu__shares=262144, cpu__weight=10000, **settings)

    @staticmethod
    def remove_group(path):
        """Kills what is left in a group, and removes it when the last zombie is gone."""
        for _ in range(100):
            with contextlib.suppress(OSError, ValueError):
                for pid in (path / "cgroup.procs").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            with contextlib.suppress(OSError):
                path.rmdir()
            if not path.exists():
                return
            time.sleep(0.1)

    def file(self, name, size):
        path = self.dir / name
        with open(path, "wb") as out:
            block = os.urandom(1 << 20)
            for _ in range(size >> 20):
                out.write(block)
        with open(path, "rb") as written:
            os.fsync(written.fileno())
            # Its pages would be charged to this process, and never leave the cache.
            os.posix_fadvise(written.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return path

    def loop(self, name, size):
        """A loop device over a sparse file."""
        path = self.dir / name
        with open(path, "wb") as out:
            out.truncate(size)
        device = self.run("losetup", "--find", "--show", path).strip()
        self.callback(subprocess.run, ["losetup", "--detach", device], check=False)
        return device

    def fio(self, *options):
        if not shutil.which("fio"):
            raise Skip("no fio")
        return self.start("fio", "--name=x", "--time_based", "--runtime=300", *options)


def disk_number(path):
    device = os.stat(path).st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def remove_left_groups():
    """Removes groups of runs that ended without doing so: their process is gone, and nothing is in them."""
    for path in CGROUP.glob("**/why-*-*"):
        pid = path.name.rpartition("-")[2]
        if path.is_dir() and pid.isdigit() and not pathlib.Path(f"/proc/{pid}").exists():
            with contextlib.suppress(OSError):
                path.rmdir()
