"""What `toolkit` offers, what importing it costs, and whose `operations` it takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import toolkit

LISTED = Path(__file__).with_name("public_names.txt").read_text().split()
HEAVY = ["backends", "asyncssh", "docker", "rich", "typer", "json_repair", "PIL", "trio"]


def run(code: str, *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    root = str(Path(toolkit.__file__).parents[1])
    code = f"import sys; sys.path.append({root!r})\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=False
    )


def test_the_public_names_are_the_listed_ones():
    """An addition is a choice, made in two places."""
    assert sorted(toolkit.__all__) == LISTED


@pytest.mark.parametrize("name", LISTED)
def test_every_public_name_is_there(name):
    """Lazily, but really."""
    assert getattr(toolkit, name) is not None
    assert name in dir(toolkit)


def test_other_names_are_attribute_errors():
    """As in any module."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        toolkit.nonsense  # noqa: B018


def test_importing_loads_no_backend_and_no_terminal_library():
    """Nor anything else that only some calls need; not even when all names are used."""
    used = "; ".join(f"toolkit.{name}" for name in LISTED)
    loaded = f"print([name for name in {HEAVY!r} if name in sys.modules])"
    done = run(f"import toolkit; {used}; {loaded}")
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_stranger_s_operations_package_is_refused_by_name(tmp_path):
    """A project may have a folder of that name in front of ours on the path."""
    stranger = tmp_path / "operations"
    stranger.mkdir()
    (stranger / "__init__.py").write_text("")
    done = run("import toolkit", cwd=tmp_path)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError")
    assert str(stranger / "__init__.py") in last
    assert toolkit.__file__ in last


def test_a_stranger_s_folder_without_init_does_no_harm(tmp_path):
    """A regular package further behind on the path wins against it."""
    (tmp_path / "operations").mkdir()
    assert run("import toolkit", cwd=tmp_path).returncode == 0
