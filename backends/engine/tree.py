"""Find every process below one, and end them so that none can slip away.

A process is known by its pid and the time it started. It counts as found only when its parent was
read to be in the tree at that time, and it is signalled only while that pid still has that start.
"""

import errno
import os
import signal
import time

#: Set in the environment of each command; the second net, for what left the tree.
MARK = b"REMOTEHANDS_COMMAND_ID"

# Python 3.9 and later, on Linux 5.3 and later.
_pidfd_open = getattr(os, "pidfd_open", None)
_pidfd_send_signal = getattr(signal, "pidfd_send_signal", None)
_HAS_CHILDREN = os.path.exists("/proc/%d/task/%d/children" % (os.getpid(), os.getpid()))
_STOPPED = (b"T", b"t")
#: Seconds of freezing before what was found is killed: a walk over thousands takes long.
_FREEZE_S = 0.3
_POLL_S = 0.002


class Process:
    """One process as /proc told it at one moment."""

    __slots__ = ("group", "name", "parent", "pid", "session", "start", "state", "threads")

    def __init__(self, pid, stat):
        # The name is in parentheses and may itself hold any character.
        opening, closing = stat.index(b"("), stat.rindex(b")")
        fields = stat[closing + 2 :].split()
        self.pid = pid
        self.name = stat[opening + 1 : closing].decode("utf-8", "replace")
        self.state = fields[0]
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.threads = int(fields[17])
        self.start = int(fields[19])

    @property
    def alive(self):
        """Tell whether it could still do anything."""
        return self.state not in (b"Z", b"X", b"x")


def look(pid):
    """Return the Process with this pid, or None."""
    stat = _read(b"/proc/%d/stat" % pid, most=4096)
    return Process(pid, stat) if stat else None


class Tree:
    """The processes below `root`, and those that carry `mark`.

    Args:
        root: Pid that stands at the top and is itself never signalled; None for no tree.
        skip: Container of pids that are left alone, with all that is below them.
        mark: Value of MARK in the environment of what belongs to it too; None for no such search.
    """

    def __init__(self, root, skip=(), mark=None):
        self.root = root
        self._skip = skip
        self._mark = mark

    def find(self):
        """Return a map from pid to Process of all that live, parents before children."""
        return {process.pid: process for process in self._walk() if process.alive}

    def kill(self, reap, until):
        """End them all.

        First all are frozen, since what runs can fork faster than it is found, or start again what
        it sees die. A signal to a process group is one step that no fork of a member escapes, so
        a group stands still as soon as one of its members is found.

        Args:
            reap: Called between rounds; collects dead children, and returns True when there
                cannot be anything left.
            until: When to give up, by the monotonic clock.

        Returns:
            The Processes that still live (empty when none does).
        """
        while True:
            for process in self._freeze(min(until, time.monotonic() + _FREEZE_S)):
                if not _send_to_group(process, signal.SIGKILL):
                    send(process, signal.SIGKILL)
            if self._dead(reap, until):
                return []
            if time.monotonic() >= until:
                return list(self.find().values())

    def signal(self, number):
        """Send a signal to each one, and wake those that are stopped so that they see it."""
        for process in self.find().values():
            send(process, number)
            if process.state in _STOPPED:
                send(process, signal.SIGCONT)

    def _freeze(self, until):
        """Stop what can be found within the time; return one process of each group, or more."""
        frozen = {}
        groups = {}
        fresh = True
        while fresh:
            fresh = False
            for process in self._walk():
                if process.alive and frozen.get(process.pid) != process.start:
                    frozen[process.pid] = process.start
                    fresh = True
                    if process.group not in groups and _send_to_group(process, signal.SIGSTOP):
                        groups[process.group] = process
                    else:
                        groups[process.pid, process.start] = process
                        if process.state not in _STOPPED:
                            send(process, signal.SIGSTOP)
                if time.monotonic() >= until:
                    return groups.values()
        return groups.values()

    def _dead(self, reap, until):
        """Wait for the killed to go; return True when nothing is left."""
        patience = min(until, time.monotonic() + 0.05)
        while True:
            if reap():
                return True
            if time.monotonic() >= patience:
                return False
            time.sleep(_POLL_S)

    def _walk(self):
        """Yield each process once, as soon as it is found; the dead too, for their children."""
        found = set()
        if self.root is not None:
            for process in self._descend():
                found.add(process.pid)
                yield process
        if self._mark is not None:
            for process in self._marked(found):
                yield process

    def _descend(self):
        below = _children if _HAS_CHILDREN else _by_parent()
        found = {self.root}
        parents = [(self.root, 0)]
        for parent, threads in parents:
            for pid in below(parent, threads):
                if pid in self._skip or pid in found:
                    continue
                process = look(pid)
                # Its parent may have died since, and given it to one above.
                if process and process.parent in found:
                    found.add(pid)
                    parents.append((pid, process.threads))
                    yield process

    def _marked(self, found):
        wanted = MARK + b"=" + self._mark
        for pid in _pids():
            if pid in found or pid in self._skip or pid in (self.root, os.getpid()):
                continue
            process = look(pid)
            if process and wanted in _read(b"/proc/%d/environ" % pid).split(b"\0"):
                again = look(pid)
                if again and again.start == process.start:
                    yield again


def _send_to_group(process, number):
    """Signal the whole group of a process; return False if that cannot be done safely.

    A command runs in a session that was made for it, so all of a group that one of its processes
    is in belongs to it; and a group's number is not given to another while it has a member.
    """
    if process.group == os.getpgrp():
        return False  # a fork that has not made its session yet
    now = look(process.pid)
    if now is None or now.start != process.start or now.group != process.group:
        return False
    try:
        os.killpg(process.group, number)
    except OSError:
        return False
    return True


def send(process, number):
    """Signal a process if it is still the one that was found; say whether it may have worked."""
    try:
        if _pidfd_open is not None and _pidfd_send_signal is not None:
            return _send_by_pidfd(process, number)
    except OSError as error:
        if error.errno == errno.ESRCH:
            return False
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        # EPERM may come from a sandbox that does not know the call: the plain one will tell.
    return _send_by_pid(process, number)


def _send_by_pidfd(process, number):
    fd = _pidfd_open(process.pid)
    try:
        if not _same(process):
            return False
        _pidfd_send_signal(fd, number)
        return True
    finally:
        os.close(fd)


def _send_by_pid(process, number):
    try:
        if not _same(process):
            return False
        os.kill(process.pid, number)
        if number == signal.SIGSTOP and not _same(process):
            os.kill(process.pid, signal.SIGCONT)
            return False
        return True
    except OSError:
        return False


def _same(process):
    now = look(process.pid)
    return now is not None and now.start == process.start


def _children(pid, threads):
    """Return the children of a process; each of its threads has a list of its own."""
    tasks = [b"%d" % pid]
    if threads != 1:
        try:
            tasks = os.listdir(b"/proc/%d/task" % pid)
        except OSError:
            return []
    pids = []
    for task in tasks:
        pids += _read(b"/proc/%d/task/%s/children" % (pid, task)).split()
    return [int(pid) for pid in pids]


def _by_parent():
    """Return what `_children` is, for a kernel without such lists: one look at everything."""
    table = {}
    for pid in _pids():
        process = look(pid)
        if process:
            table.setdefault(process.parent, []).append(pid)
    return lambda pid, threads: table.get(pid, ())


def _pids():
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _read(path, most=4 << 20):
    """Return at most `most` bytes of a file in /proc, b"" if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = part = os.read(fd, min(most, 1 << 16))
        while part and len(data) < most and most > 4096:
            part = os.read(fd, 1 << 16)
            data += part
        return data
    except OSError:
        return b""
    finally:
        os.close(fd)
