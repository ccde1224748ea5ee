"""A user's program that runs commands somewhere, and what can be seen of them there."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.end_to_end.processes import (
    chain,
    command_lines,
    descendants,
    marked,
    remaining,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("driver.py")
_numbers = itertools.count(1)


class Run:
    """A running driver, its commands, and what it tells.

    Args:
        loop: Its event loop.
        way: What it does when told to go; see driver.py.
        commands: Text with "{m}" for its marker, and how many processes must be seen with that.
        target: Where they run, as a URL.
        look: Returns the command lines of all that runs there.
    """

    def __init__(
        self,
        loop: str,
        way: str,
        commands: dict[str, tuple[str, int]],
        target: str,
        look: Callable[[], list[str]],
    ) -> None:
        self._look = look
        # A number of seconds that no other process on the machine sleeps for.
        self.markers = {
            name: f"8{os.getpid()}.{next(_numbers):04}{index}"
            for index, name in enumerate(commands)
        }
        self.expected = {name: count for name, (_, count) in commands.items()}
        texts = [text.replace("{m}", self.markers[name]) for name, (text, _) in commands.items()]
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER), loop, way, target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
        )
        self.tell(json.dumps(texts))

    def counts(self) -> dict[str, int]:
        """Return how many processes carry each marker."""
        now = self._look()
        return {name: sum(marker in line for line in now) for name, marker in self.markers.items()}

    def see_all(self) -> None:
        """Wait until every process of every command has been there to be killed."""
        most = dict.fromkeys(self.expected, 0)

        def all_seen() -> bool:
            for name, count in self.counts().items():
                most[name] = max(most[name], count)
            return all(most[name] >= count for name, count in self.expected.items())

        assert wait_until(all_seen, 60), most

    def none_left(self) -> bool:
        """Return True once no command's process lives: after 5 s, on a busy machine 15 s."""
        busy = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
        return wait_until(lambda: not any(self.counts().values()), 15 if busy else 5)

    def go(self) -> None:
        """Tell the driver to do what it is there for."""
        self.tell("now")

    def tell(self, line: str) -> None:
        """Send the driver a line."""
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        """Return the driver's next line."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"the driver ended with {self.process.wait(10)}"
        told: dict[str, Any] = json.loads(line)
        return told

    def below(self, name: str) -> list[int]:
        """Return the chain of pids from a command's process up to just below the driver."""
        return chain(marked(self.markers[name])[0].pid, self.process.pid)

    def finish(self) -> None:
        """End the driver and whatever is left, so that a failing test leaves nothing."""
        left = descendants(self.process.pid)
        self.process.kill()
        self.process.communicate()
        for name in self.markers:
            left += marked(self.markers[name])
        for process in remaining(left):
            with suppress(PermissionError):  # another user's; the test has failed already
                os.kill(process.pid, signal.SIGKILL)


@contextmanager
def driving(
    loop: str,
    way: str,
    commands: dict[str, tuple[str, int]],
    target: str = "local:",
    look: Callable[[], list[str]] = command_lines,
) -> Iterator[Run]:
    """Start a driver (see Run) and clean up after it."""
    run = Run(loop, way, commands, target, look)
    try:
        yield run
    finally:
        run.finish()
