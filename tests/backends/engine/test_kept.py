"""Kept output is private, found in one place, and removed when its time has come."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from backends.engine import kept
from backends.engine.kept import KeptOutput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty folder that stands for /tmp."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def session(parent: Path) -> Iterator[KeptOutput]:
    """Give the kept output of one session."""
    output = KeptOutput()
    yield output
    output.close()


def create(output: KeptOutput, data: bytes = b"data") -> str:
    """Make a kept file and return its path."""
    fd, path = output.create()
    os.write(fd, data)
    os.close(fd)
    return os.fsdecode(path)


def base_of(parent: Path) -> Path:
    return parent / f"remotehands-{os.geteuid()}"


def test_nobody_else_can_read_it(session: KeptOutput, parent: Path) -> None:
    path = create(session)
    assert os.path.dirname(os.path.dirname(path)) == str(base_of(parent))
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    assert base_of(parent).stat().st_mode & 0o777 == 0o700


def test_nothing_is_made_before_it_is_needed_and_nothing_is_left(
    session: KeptOutput, parent: Path
) -> None:
    assert list(parent.iterdir()) == []
    paths = {create(session) for _ in range(3)}
    assert len(paths) == 3
    session.close()
    assert list(parent.iterdir()) == []


def test_two_sessions_do_not_disturb_each_other(session: KeptOutput, parent: Path) -> None:
    other = KeptOutput()
    path = create(session)
    create(other)
    other.close()
    assert os.path.exists(path)
    assert create(session) != path


def test_a_one_shot_session_leaves_its_files(parent: Path) -> None:
    output = KeptOutput(stays=True)
    path = create(output)
    output.close()
    with open(path, "rb") as file:
        assert file.read() == b"data"


@pytest.mark.parametrize("trap", ["symlink", "open folder", "file"])
def test_a_place_that_somebody_has_prepared_is_not_used(parent: Path, trap: str) -> None:
    base, elsewhere = base_of(parent), parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if trap == "symlink":
        base.symlink_to(elsewhere)
    elif trap == "open folder":
        base.mkdir()
        base.chmod(0o777)
    else:
        base.write_text("")
    output = KeptOutput()
    path = create(output)
    assert not path.startswith(f"{base}/")
    assert list(elsewhere.iterdir()) == []
    output.close()
    assert sorted(parent.iterdir()) == sorted([base, elsewhere])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a folder to somebody else")
def test_a_folder_of_somebody_else_is_not_used(parent: Path) -> None:
    base_of(parent).mkdir(mode=0o700)
    os.chown(base_of(parent), 65534, 65534)
    output = KeptOutput()
    assert not create(output).startswith(f"{base_of(parent)}/")
    output.close()


@pytest.mark.parametrize(
    ("age_s", "alive", "remains"),
    [(25 * 3600, False, False), (23 * 3600, False, True), (25 * 3600, True, True)],
)
def test_old_sessions_are_swept_once_nobody_holds_them(
    session: KeptOutput, parent: Path, age_s: int, *, alive: bool, remains: bool
) -> None:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from backends.engine.kept import KeptOutput\n"
        "output = KeptOutput(stays=True)\n"
        "print(output.create()[1].decode(), flush=True); sys.stdin.read()"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(kept.__file__)))
    with subprocess.Popen(
        [sys.executable, "-c", code, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdin is not None
        assert owner.stdout is not None
        path = owner.stdout.readline().decode().strip()
        old = time.time() - age_s
        os.utime(os.path.dirname(path), (old, old))
        if not alive:
            owner.stdin.close()
            owner.wait()
        create(session)
        assert os.path.exists(path) is remains
        owner.kill()


def test_no_writable_place_is_an_os_error(
    session: KeptOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_parents", lambda: [b"/proc/nowhere", b"/dev/null"])
    with pytest.raises(OSError, match=r"Not a directory|No such file"):
        session.create()


def test_kept_output_in_memory_takes_a_share_of_what_a_process_may_take(
    session: KeptOutput, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("4000\n")
    monkeypatch.setattr(kept, "_MEMORY_LIMITS", (str(tmp_path / "none"), str(limit)))
    monkeypatch.setattr(kept, "_is_in_memory", lambda path: True)
    create(session)
    session.claim(600)
    session.claim(400)
    with pytest.raises(OSError, match="used up its share"):
        session.claim(1)
    session.give_back(600)
    session.claim(600)


def test_only_files_in_memory_are_limited(
    session: KeptOutput, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("4000\n")
    monkeypatch.setattr(kept, "_MEMORY_LIMITS", (str(limit),))
    monkeypatch.setattr(kept, "_is_in_memory", lambda path: False)
    create(session)
    session.claim(1 << 30)
    assert kept._memory_for_files() == 1000
    limit.write_text("max\n")
    assert kept._memory_for_files() is None
    limit.write_text("9223372036854771712\n")
    assert kept._memory_for_files() is None


def test_a_file_system_in_memory_is_known(tmp_path: Path) -> None:
    assert kept._is_in_memory(b"/dev/shm/x")
    assert not kept._is_in_memory(b"/proc/self")
    assert not kept._is_in_memory(os.fsencode(tmp_path))
