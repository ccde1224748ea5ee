"""The engine's start on a target that has nothing but Python, among files that mean harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backends.engine import frames
from backends.remote import bootstrap
from backends.remote.session import Failed, Finished, HelloReceived, NearSession

PLANTED = ("selectors", "struct", "subprocess", "zlib", "os", "threading", "backends", "engine")


def start(argv: list[str] | str, cwd: Path, **options: object) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        shell=isinstance(argv, str),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )
    assert process.stdin
    process.stdin.write(bootstrap.payload({}))
    process.stdin.flush()
    return process


def ask(process: subprocess.Popen[bytes], operation: str, path: Path) -> Finished | Failed:
    """Wait for the hello, make one request, end the engine, and return the answer."""
    assert process.stdin
    assert process.stdout
    session, asked = NearSession(), False
    while data := os.read(process.stdout.fileno(), 65536):
        for event in session.receive(data):
            if isinstance(event, HelloReceived):
                session.request(operation, {"path": os.fsencode(path)})
                process.stdin.write(session.data_to_send(1 << 20))
                process.stdin.flush()
                asked = True
            elif isinstance(event, Finished | Failed):
                _, errors = process.communicate(timeout=30)
                assert errors == b""
                assert process.returncode == 0
                return event
    _, errors = process.communicate(timeout=30)
    pytest.fail(f"no answer (asked: {asked}); stderr: {errors.decode()}")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A working folder whose modules must never be imported."""
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} was imported from here')")
    return tmp_path


def test_nothing_in_the_working_folder_is_imported(planted: Path) -> None:
    """Neither from there nor by way of the environment."""
    env = {**os.environ, "PYTHONPATH": str(planted), "PYTHONSTARTUP": str(planted / "os.py")}
    process = start(bootstrap.argv(sys.executable), planted, env=env)
    assert ask(process, "exists", planted) == Finished(1, value=True)


def test_the_planted_modules_would_be_seen(planted: Path) -> None:
    """The test above can tell: without isolation they are imported."""
    argv = [part for part in bootstrap.argv(sys.executable) if part != "-I"]
    process = subprocess.run(
        argv, cwd=planted, input=b"", capture_output=True, check=False, timeout=30
    )
    assert b"was imported from here" in process.stderr


def pythons() -> list[str]:
    """Return every Python 3.6 or later that is found here."""
    found = [shutil.which(f"python3.{minor}") for minor in range(6, 20)]
    # What pyenv puts on PATH are scripts that may refuse to choose one.
    real = {str(Path(python).resolve()) for python in found if python and "shims" not in python}
    return sorted(real | {str(p) for p in Path.home().glob(".pyenv/versions/3.*/bin/python3")})


@pytest.mark.parametrize("python", pythons())
def test_every_python_found_runs_the_engine(python: str, tmp_path: Path) -> None:
    process = start(bootstrap.argv(python), tmp_path)
    assert ask(process, "exists", tmp_path) == Finished(1, value=True)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "csh", "tcsh", "ksh"])
def test_any_login_shell_can_carry_the_line(shell: str, planted: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    process = start([program, "-c", bootstrap.shell_line()], planted)
    assert ask(process, "exists", planted) == Finished(1, value=True)


def test_the_shell_line_needs_no_escape() -> None:
    """No login shell gives these a meaning between single quotes, but ' itself."""
    line = bootstrap.shell_line()
    assert "\n" not in line
    assert "\\" not in line
    assert "!" not in line
    assert line.count("'") == 4
    assert "/usr/libexec/platform-python" in line


def test_without_python_the_line_says_so(tmp_path: Path) -> None:
    process = subprocess.run(
        ["/bin/sh", "-c", bootstrap.shell_line()],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert process.returncode == 127
    assert b"no python3" in process.stderr


def test_far_tracebacks_show_source_lines(tmp_path: Path) -> None:
    """What goes wrong inside the engine is told with file, line and text."""
    process = start(bootstrap.argv(sys.executable), tmp_path)
    assert process.stdin
    assert process.stdout
    session, event = NearSession(), None
    while not isinstance(event, Failed):
        for event in session.receive(os.read(process.stdout.fileno(), 65536)):
            if isinstance(event, HelloReceived):
                session.request("exists", {"no path": 1})
                process.stdin.write(session.data_to_send(1 << 20))
                process.stdin.flush()
    process.communicate(timeout=30)
    assert event.code == "internal"
    assert "remotehands:backends/engine/service.py" in event.arguments[0]
    assert 'listing.exists(place, request.args["path"])' in event.arguments[0]
    assert "KeyError" in event.arguments[0]


def test_the_engine_has_a_name_of_its_own(tmp_path: Path) -> None:
    """`pkill python` misses it."""
    process = start(bootstrap.argv(sys.executable), tmp_path)
    assert process.stdout
    assert os.read(process.stdout.fileno(), 65536).startswith(frames.HELLO_MARK)
    assert Path(f"/proc/{process.pid}/comm").read_text() == "remotehands\n"
    process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize("size", [0, 5, 100, 5000])
def test_a_cut_off_start_ends(size: int, tmp_path: Path) -> None:
    """The wire may end within the bootstrap itself."""
    process = subprocess.run(
        bootstrap.argv(sys.executable),
        cwd=tmp_path,
        input=bootstrap.payload({})[:size],
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert process.returncode == 1
    assert process.stdout == b""


def test_the_payload_is_small_and_made_once() -> None:
    first, second = bootstrap.payload({"lease_s": 1.0}), bootstrap.payload({"lease_s": 2.0})
    assert len(first) == len(second)
    assert len(first) < 150_000
    assert bootstrap._sources() is bootstrap._sources()
