"""A tree of processes is found whole, and only what was found is signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from backends.engine import tree
from tests.backends.engine.processes import Marked

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def marked() -> Iterator[Marked]:
    """Give a marker, and kill what carries it in the end."""
    marker = Marked()
    yield marker
    for pid in marker.pids():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def shell(marked: Marked) -> Iterator[subprocess.Popen[bytes]]:
    """Start a shell with two children, one of them in a session of its own."""
    command = f"sleep {marked.text} & setsid sleep {marked.text} & wait"
    with subprocess.Popen(["bash", "-c", command], start_new_session=True) as process:
        marked.appear(2)
        yield process
        process.kill()


@pytest.mark.parametrize("lists", [True, False])
def test_all_descendants_are_found(
    shell: subprocess.Popen[bytes],
    marked: Marked,
    monkeypatch: pytest.MonkeyPatch,
    *,
    lists: bool,
) -> None:
    monkeypatch.setattr(tree, "_HAS_CHILDREN", lists)
    assert set(tree.Tree(shell.pid).find()) == set(marked.pids())
    found = tree.Tree(os.getpid(), skip={shell.pid}).find()
    assert shell.pid not in found
    assert not set(marked.pids()) & set(found)


def test_children_of_other_threads_are_found(marked: Marked) -> None:
    """Each thread has a list of its own in /proc."""
    code = (
        "import subprocess, threading, time\n"
        f"start = lambda: (subprocess.Popen(['sleep', '{marked.text}']), time.sleep(60))\n"
        "threading.Thread(target=start).start()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        marked.appear(1)
        assert set(tree.Tree(process.pid).find()) == set(marked.pids())
        process.kill()


@pytest.mark.parametrize("name", ["a b", ") R 1 1", "(((", "\n"])
def test_a_name_cannot_disguise_a_process(name: str) -> None:
    code = "import sys,time; open('/proc/self/comm','w').write(sys.argv[1]); print(1,flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", code + "; time.sleep(60)", name], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = tree.look(process.pid)
        assert found is not None
        assert (found.name, found.parent) == (name, os.getpid())
        process.kill()


def test_what_carries_the_mark_is_found_without_being_below(marked: Marked) -> None:
    mark = os.urandom(8).hex()
    command = f"(setsid sleep {marked.text} &)"
    env = {**os.environ, "REMOTEHANDS_COMMAND_ID": mark}
    subprocess.run(["bash", "-c", command], env=env, check=True)
    marked.appear(1)
    assert set(tree.Tree(None, mark=mark.encode()).find()) == set(marked.pids())
    assert tree.Tree(None, mark=mark[:-1].encode()).find() == {}


@pytest.mark.parametrize("by_pidfd", [True, False])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_a_pid_that_was_given_to_another_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, number: int, *, by_pidfd: bool
) -> None:
    if not by_pidfd:
        monkeypatch.setattr(tree, "_pidfd_open", None)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        found = tree.look(process.pid)
        assert found is not None
        found.start -= 1  # as if another process had had this pid
        assert tree.send(found, number) is False
        assert tree._send_to_group(found, number) is False
        now = tree.look(process.pid)
        assert now is not None
        assert now.state in (b"S", b"R")
        found.start += 1
        assert tree.send(found, signal.SIGKILL) is True
        assert process.wait(10) == -signal.SIGKILL


def test_our_own_group_is_never_signalled_as_a_whole() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        found = tree.look(process.pid)
        assert found is not None
        assert found.group == os.getpgrp()
        assert tree._send_to_group(found, signal.SIGKILL) is False
        process.kill()


@pytest.mark.parametrize("by_pidfd", [True, False])
def test_killing_leaves_nothing_and_tells_so(
    shell: subprocess.Popen[bytes],
    marked: Marked,
    monkeypatch: pytest.MonkeyPatch,
    *,
    by_pidfd: bool,
) -> None:
    if not by_pidfd:
        monkeypatch.setattr(tree, "_pidfd_open", None)
    below = tree.Tree(shell.pid)
    assert below.kill(lambda: not below.find(), time.monotonic() + 5) == []
    marked.vanish(0.5)


def test_what_cannot_be_killed_in_time_is_named(
    shell: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree.os, "killpg", lambda *_args: None)
    monkeypatch.setattr(tree, "send", lambda *_args: True)
    below = tree.Tree(shell.pid)
    survivors = below.kill(lambda: False, time.monotonic() + 0.2)
    assert [process.name for process in survivors] == ["sleep", "sleep"]


def test_threads_of_ours_do_not_disturb_the_walk() -> None:
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    with subprocess.Popen(["sleep", "60"]) as process:
        assert process.pid in tree.Tree(os.getpid()).find()
        process.kill()
    stop.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_child_in_our_own_group_is_ended_too(marked: Marked, *, stopped: bool) -> None:
    """A fork that has not made its session yet must not be left standing still."""
    with subprocess.Popen(["sleep", marked.text]) as child:
        marked.appear(1)
        if stopped:
            os.kill(child.pid, signal.SIGSTOP)
        found = tree.Tree(os.getpid())
        others = {pid for pid in found.find() if pid != child.pid}
        killing = tree.Tree(os.getpid(), skip=others)
        assert killing.kill(lambda: child.poll() is not None, time.monotonic() + 5) == []
    assert marked.pids() == []
