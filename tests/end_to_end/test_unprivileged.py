"""Run what is about permissions as an ordinary user, when the tests themselves run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="this user is no superuser: they ran already"),
    pytest.mark.timeout(1800),
]

ROOT = Path(__file__).parents[2]
NOBODY = 65534
_SHIPPED = ("toolkit", "operations", "backends", "tests", "pyproject.toml")


def as_nobody(
    argv: list[str], cwd: Path, home: Path, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a program as the user nobody, with a home of its own."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": os.pathsep.join([str(cwd), sysconfig.get_paths()["purelib"]]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
        "LANG": "C.UTF-8",
        **{name: value for name, value in os.environ.items() if name.startswith("REMOTEHANDS_")},
        "REMOTEHANDS_TEST_TARGETS": "local,engine,memory",  # others have users of their own
    }
    return subprocess.run(
        argv,
        cwd=cwd,
        env=environment,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        umask=0o022,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=seconds,
    )


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of nobody's, that nobody can reach (pytest's own is closed to others)."""
    folder = Path(tempfile.mkdtemp(prefix="unprivileged-"))
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=False)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def interpreter(home: Path) -> str:
    """This interpreter, or another of its version when this one is closed to others."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for program in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        try:
            told = as_nobody([program, "-c", "import pytest, anyio, pydantic"], home, home, 60)
        except OSError:
            continue
        if told.returncode == 0:
            return program
    pytest.skip(f"no {version} with the dependencies is open to other users")


@pytest.fixture
def checkout(home: Path, interpreter: str) -> Path:
    """Where nobody finds the code: the checkout, or a copy when that is closed to others."""
    probe = [interpreter, "-c", "import toolkit, operations, backends, tests.conformance.places"]
    try:
        if as_nobody(probe, ROOT, home, 60).returncode == 0:
            return ROOT
    except PermissionError:
        pass  # the folder itself cannot be entered
    copy = home / "checkout"
    copy.mkdir()
    for name in _SHIPPED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name)
        else:
            shutil.copy(source, copy / name)
    for path in [copy, *copy.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    return copy


def test_permissions_hold_for_an_ordinary_user(
    home: Path, interpreter: str, checkout: Path
) -> None:
    """Every test that is marked unprivileged passes as nobody; none of them is skipped."""
    argv = [
        interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
        "-m", "unprivileged", f"--basetemp={home / 'pytest'}", "tests/conformance",
        "tests/end_to_end",
    ]  # fmt: skip
    result = as_nobody(argv, checkout, home, 1700)
    tail = result.stdout[-6000:]
    assert result.returncode == 0, tail
    summary = result.stdout.strip().rsplit("\n", 1)[-1]
    assert " passed" in summary
    assert " skipped" not in summary, tail
