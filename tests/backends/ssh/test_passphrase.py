"""A passphrase is asked for on a terminal, if there is one: by a real program on a real one."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sshd import Sshd

ROOT = Path(__file__).parents[3]
ASKED = "Passphrase for key "
CTRL_C = "\x03"
#: How a terminal is told to erase or to hide its cursor.
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def locked(server: Callable[[], Sshd]) -> list[str]:
    """Give a program that enters a server by a key which wants a passphrase."""
    made = server()
    made.make_key("locked", "open sesame")
    shutil.copy(made.folder / "locked.pub", made.folder / "authorized_keys")
    config = Path(made.config())
    config.write_text(config.read_text().replace("/key\n", "/locked\n"))
    target = f"ssh://box?config={quote(str(config))}"
    return [sys.executable, "-m", "toolkit.cli", "call", "bash", "command=echo in", "--on", target]


def on_terminal(argv: list[str], answers: list[str]) -> tuple[int, str]:
    """Run a program on a terminal of its own, answering each question; return what one sees.

    The terminal shows what is typed again at the end.
    """
    if shutil.which("setsid") is None:
        pytest.skip("setsid is not installed")
    ours, its = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *argv], stdin=its, stdout=its, stderr=its, cwd=ROOT
    )
    os.close(its)
    try:
        seen, waiting, deadline = "", list(answers), time.monotonic() + 60
        while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                data = os.read(ours, 1 << 16)
            except OSError:  # nobody has it open any more
                break
            seen += data.decode(errors="replace")
            if seen.count(ASKED) > len(answers) - len(waiting) and waiting:
                answer = waiting.pop(0)
                os.write(ours, (answer if answer == CTRL_C else f"{answer}\n").encode())
        status = process.wait(20)
        assert termios.tcgetattr(ours)[3] & termios.ECHO, "its echo is off"
        return status, seen
    finally:
        os.close(ours)  # which ends whatever still runs on it
        process.kill()
        process.wait(20)


def test_it_is_asked_for_and_not_shown(locked: list[str]) -> None:
    status, seen = on_terminal(locked, ["open sesame"])
    assert (status, seen.count(ASKED)) == (0, 1), seen
    assert "in" in [_CONTROLS.sub("", line).strip() for line in seen.splitlines()]
    assert "sesame" not in seen


def test_a_wrong_one_is_asked_for_again_and_then_told(locked: list[str]) -> None:
    status, seen = on_terminal(locked, ["open barley", "open rye", "open oats"])
    assert (status, seen.count(ASKED)) == (3, 3), seen
    assert "encrypted, and not with this passphrase" in seen


@pytest.mark.parametrize("what", ["call", "check", "many"])
def test_an_interrupt_ends_the_question_and_the_command(what: str, locked: list[str]) -> None:
    """At the first time, without a word of Python's, and however many hosts want the key."""
    if what == "check":
        locked[3:-1] = ["check"]
    elif what == "many":
        locked[-1] = locked[-1].replace("//box", "//box[1-3]")
    status, seen = on_terminal(locked, [CTRL_C])
    assert (status, seen.count(ASKED)) == (130, 1), seen
    assert "Traceback" not in seen


def test_without_a_terminal_nothing_is_asked(locked: list[str]) -> None:
    done = subprocess.run(
        locked, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "neither a passphrase nor a terminal" in done.stderr
