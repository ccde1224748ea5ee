"""An engine's processes without its files and wire: a child that runs Loop and Commands.

The same file is both ends: imported by tests it starts the child, run as a script it is the child
(which has to work on the oldest Python that the engine promises).
"""

import os
import select
import signal
import struct
import subprocess
import sys
import time
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
_SIZE = struct.Struct(">I")


# The child ---------------------------------------------------------------------------------


class _Request:
    """What the service hands to Commands, as far as Commands may look at it."""

    def __init__(self, tell, number, op, args, credit):
        self.id = number
        self.op = op
        self.args = args
        self.cancelled = False
        self.on_cancel = None
        self.on_credit = None
        self.credit = 1 << 60 if credit is None else credit
        self.unread = 0  # whoever listens here takes each part at once
        self._tell = tell
        self._answered = False

    def part(self, value):
        assert not self._answered
        self._tell({"id": self.id, "part": value})

    def data(self, chunk):
        assert not self._answered
        assert 0 < len(chunk) <= self.credit, (len(chunk), self.credit)
        self.credit -= len(chunk)
        self._tell({"id": self.id, "data": chunk})

    def result(self, value):
        self._end({"id": self.id, "result": value})

    def fault(self, code, *args):
        self._end({"id": self.id, "fault": [code, *args]})

    def _end(self, told):
        assert not self._answered, told
        self._answered = True
        self._tell(told)


class _Child:
    def __init__(self, started, options):
        from backends.engine.commands import Commands
        from backends.engine.loop import Loop

        self.loop = Loop()
        self.started = started
        self.commands = Commands(
            self.loop, started, on_lost=lambda: self.tell({"lost": True}), **options
        )
        self.requests = {}
        self.loop.add_reader(0, self.on_input)

    def tell(self, value):
        from backends.engine import frames

        data = frames.encode_value(value)
        rest = memoryview(_SIZE.pack(len(data)) + data)
        while rest:
            rest = rest[os.write(1, rest) :]

    def on_input(self):
        from backends.engine import frames

        head = os.read(0, 4)
        if not head:
            self.commands.close(self.loop.stop)
            self.loop.remove_reader(0)
            return
        size = _SIZE.unpack(head)[0]
        data = b""
        while len(data) < size:
            data += os.read(0, size - len(data))
        self.handle(frames.decode_value(data))

    def handle(self, value):
        from backends.engine.faults import Fault

        if "start" in value:
            number = value["start"]
            request = _Request(self.tell, number, value["op"], value["args"], value["credit"])
            self.requests[number] = request
            try:
                if value["op"] in ("grep", "find"):
                    self.commands.start_search(request, value["op"])
                else:
                    self.commands.start(request)
            except Fault as fault:
                request.fault(fault.code, *fault.arguments)
        elif "cancel" in value:
            request = self.requests[value["cancel"]]
            request.cancelled = True
            if request.on_cancel:
                request.on_cancel()
        elif "credit" in value:
            request = self.requests[value["credit"]]
            request.credit += value["bytes"]
            request.on_credit()
        elif "close" in value:
            self.commands.close(lambda: self.tell({"closed": True}))
        elif "ask" in value:
            self.tell({"about": self.about()})

    def about(self):
        with open("/proc/self/status") as file:
            status = dict(line.split(":", 1) for line in file)
        return {
            "spawner": self.started.pid,
            "subreaper": self.started.ready()["subreaper"],
            "supervisors": [job.link.pid if job.link else 0 for job in self.commands._jobs],
            "running": self.commands.running,
            "fds": len(os.listdir("/proc/self/fd")),
            "threads": int(status["Threads"]),
            "rss": int(status["VmHWM"].split()[0]) * 1024,
        }


def _serve():
    # As on a target: the engine's package without the one around it, which needs a newer Python.
    package = types.ModuleType("backends")
    package.__path__ = [os.path.join(ROOT, "backends")]
    sys.modules["backends"] = package
    from backends.engine import frames, spawner

    options = frames.decode_value(bytes.fromhex(sys.argv[1]))
    user = options.pop("user", None)
    if user is not None:
        # The standard library may stand where only root can read: load all of it before.
        from backends.engine import commands, loop  # noqa: F401

        os.setuid(user)
    if not options.pop("ctypes", True):
        sys.modules["ctypes"] = None
    child = _Child(spawner.start(), options)
    child.loop.run()


# The test's end ----------------------------------------------------------------------------


class Engine:
    """A running child; `with` ends it and everything below it."""

    def __init__(self, python=sys.executable, env=None, **options):
        sys.path.count(ROOT) or sys.path.insert(0, ROOT)
        from backends.engine import frames

        self._frames = frames
        self._events = []
        self._count = 0
        self.process = subprocess.Popen(
            [python, "-S", "-E", os.path.abspath(__file__), frames.encode_value(options).hex()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
        )
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.process.stdin.close()
        try:
            self.process.wait(15)
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.process.wait()

    def say(self, value):
        data = self._frames.encode_value(value)
        self.process.stdin.write(_SIZE.pack(len(data)) + data)
        self.process.stdin.flush()

    def start(self, command=b"", op="exec", credit=None, **args):
        """Begin a command; return the number that its answers carry."""
        self._count += 1
        given = {"command": command, "cwd": b"/", "env": [], "timeout_s": None, "stdin": b""}
        if op == "exec_tail":
            given.update(tail_bytes=1000, keep_over_bytes=5000, keep_over_lines=1000)
        given.update(args)
        self.say({"start": self._count, "op": op, "args": given, "credit": credit})
        return self._count

    def wait(self, number, timeout_s=30):
        """Return the Answer to a command."""
        ended = self.until(
            lambda e: e.get("id") == number and ("result" in e or "fault" in e), timeout_s
        )
        mine = [event for event in self._events if event.get("id") == number]
        self._events = [event for event in self._events if event.get("id") != number]
        return Answer(mine, ended)

    def run(self, command=b"", timeout=30, **args):
        return self.wait(self.start(command, **args), timeout)

    def until(self, wanted, timeout_s=30):
        """Return the first event that fits."""
        deadline = time.monotonic() + timeout_s
        seen = 0
        while True:
            for event in self._events[seen:]:
                if wanted(event):
                    return event
            seen = len(self._events)
            rest = deadline - time.monotonic()
            if rest <= 0 or not select.select([self.process.stdout], [], [], rest)[0]:
                raise AssertionError(f"nothing that fits within {timeout_s} s")
            self._events.append(self._receive())

    def about(self):
        self._events = [event for event in self._events if "about" not in event]
        self.say({"ask": True})
        return self.until(lambda event: "about" in event)["about"]

    def close(self, timeout_s=10):
        self.say({"close": True})
        self.until(lambda event: "closed" in event, timeout_s)

    def _receive(self):
        size = _SIZE.unpack(self._exactly(4))[0]
        return self._frames.decode_value(self._exactly(size))

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            part = os.read(self.process.stdout.fileno(), size - len(data))
            assert part, "the engine has ended"
            data += part
        return data


class Answer:
    """What came back for one command."""

    def __init__(self, events, ended):
        self.parts = [event["part"] for event in events if "part" in event]
        self.output = b"".join(event["data"] for event in events if "data" in event)
        self.result = ended.get("result")
        self.fault = ended.get("fault")

    def __getitem__(self, name):
        assert self.result is not None, self.fault
        return self.result[name]


class Marked:
    """Count processes by an argument that no other process has."""

    def __init__(self):
        # A duration for `sleep`, so that the marker stands in the argument list.
        seconds, part = 3600 + os.getpid() % 1000, int.from_bytes(os.urandom(2), "big")
        self.text = f"{seconds}.{part:06d}"
        self.bytes = self.text.encode()

    def pids(self):
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/cmdline", "rb") as file:
                        if self.bytes in file.read().split(b"\0"):
                            found.append(int(name))
                except OSError:
                    pass
        return found

    def appear(self, count, timeout_s=20):
        """Prove that they can be seen before it is said that they are gone."""
        deadline = time.monotonic() + timeout_s
        while len(self.pids()) < count:
            assert time.monotonic() < deadline, (len(self.pids()), count)
            time.sleep(0.01)

    def vanish(self, timeout_s=5):
        deadline = time.monotonic() + timeout_s
        while self.pids():
            if time.monotonic() > deadline:
                left = self.pids()
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                raise AssertionError(f"{len(left)} processes live")
            time.sleep(0.01)


if __name__ == "__main__":
    _serve()
