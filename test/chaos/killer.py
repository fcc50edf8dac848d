"""Ends processes of the server at random: kill -9, SIGTERM, SIGINT, and
SIGSTOP for longer than a lease; now and then the whole server."""

import collections
import os
import pathlib
import signal
import subprocess
import threading
import time

Process = collections.namedtuple("Process", "pid kind begun")

KILLS = (
    # weight, kind of process, signal
    (16, "exporter", signal.SIGKILL),
    (16, "exporter", signal.SIGTERM),
    (6, "exporter", signal.SIGINT),
    (8, "exporter", signal.SIGSTOP),
    (4, "launcher", signal.SIGKILL),
    (8, "launcher", signal.SIGTERM),
    (8, "session", signal.SIGKILL),
    (18, "session", signal.SIGTERM),
    (4, "other", signal.SIGKILL),
    (2, "server", "immediate"),
    (2, "server", "fast"))

# What the title of a process begins with, after "postgres: ".
KINDS = (("pg_evidence exporter", "exporter"),
         ("pg_evidence launcher", "launcher"),
         ("checkpointer", "other"), ("background writer", "other"),
         ("walwriter", "other"), ("autovacuum", "other"),
         ("logical replication", "other"), ("startup", "starting"))


class Server:
    """The processes of the server, and its control program."""

    def __init__(self, world):
        self.world = world
        self.become = []
        if os.geteuid() == 0:
            self.become = ["runuser", "-u", world.options.server_user, "--"]

    def control(self, *arguments):
        """True if it worked."""
        done = subprocess.run(
            [*self.become, self.world.bin / "pg_ctl", "-D", self.world.data,
             "-w", "-s", "-t", "120", *arguments],
            check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        return done.returncode == 0

    def is_up(self):
        return subprocess.run(
            [self.world.bin / "pg_isready", "-q"], check=False).returncode == 0

    def make_run(self):
        """Start it unless it runs.

        PostgreSQL stops for good when a process is killed while it recovers,
        and waits for somebody to start it.
        """
        if self.control("status"):
            return
        if not self.control("-l", self.world.data / "server.log", "start"):
            self.world.fault("the server does not start")

    def processes(self):
        """None of them while the server is down."""
        try:
            text = (self.world.data / "postmaster.pid").read_text()
            postmaster = int(text.split()[0])
            path = f"/proc/{postmaster}/task/{postmaster}/children"
            children = pathlib.Path(path).read_text().split()
        except (OSError, ValueError, IndexError):
            return []
        found = []
        for pid in children:
            try:
                title = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
                begun = start_time(pid)
            except OSError:
                continue
            title = title.rstrip("\0").removeprefix("postgres: ").strip()
            kind = next((kind for prefix, kind in KINDS
                         if title.startswith(prefix)), "session")
            found.append(Process(int(pid), kind, begun))
        return found


def start_time(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return int(text.rpartition(")")[2].split()[19])


class Killer(threading.Thread):
    def __init__(self, world, server):
        super().__init__(name="killer", daemon=True)
        self.world = world
        self.server = server
        self.random = world.generator("killer")
        self.stopped = []           # (process, when to let it go on)

    def run(self):
        try:
            self.live()
        except Exception as error:
            self.world.fault(f"the killer ended: {error!r}")
            raise

    def live(self):
        weights = [weight for weight, _, _ in KILLS]
        while not self.world.is_over():
            self.world.wait(self.random.uniform(0.2, 6))
            self.let_go(time.monotonic())
            self.server.make_run()
            _, kind, how = self.random.choices(KILLS, weights)[0]
            delay = self.random.uniform(0, 0.15)
            if self.world.is_over():
                break
            if kind == "server":
                self.restart(how)
            else:
                self.kill(kind, how, delay)
        self.let_go(float("inf"))
        self.server.make_run()

    def restart(self, mode):
        self.let_go(float("inf"))   # or the server would wait for them
        if mode == "fast" and not self.server.is_up():
            # PostgreSQL 15 hangs if it is asked to stop while it recovers.
            mode = "immediate"
        self.world.count(f"server, {mode} restart")
        self.server.control("-m", mode, "stop")
        self.server.make_run()

    def kill(self, kind, how, delay):
        process = self.find(kind)
        if process is None:
            return
        time.sleep(delay)           # not always at its first step
        if not self.send(process, how):
            return
        self.world.count(f"{kind}, {how.name}")
        if how == signal.SIGSTOP:
            lease = 5
            self.stopped.append(
                (process, time.monotonic() + lease +
                 self.random.uniform(-4, 4)))

    def find(self, kind):
        """Exporters come and go: wait a little for one."""
        patience = time.monotonic() + 2
        while time.monotonic() < patience:
            found = [p for p in self.server.processes() if p.kind == kind]
            if found:
                return self.random.choice(found)
            time.sleep(0.005)
        return None

    @staticmethod
    def send(process, how):
        """False if it is gone, perhaps with another one at its number."""
        try:
            if start_time(process.pid) != process.begun:
                return False
            os.kill(process.pid, how)
        except OSError:
            return False
        return True

    def let_go(self, now):
        waiting = []
        for process, when in self.stopped:
            if when <= now:
                self.send(process, signal.SIGCONT)
            else:
                waiting.append((process, when))
        self.stopped = waiting
