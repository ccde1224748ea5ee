"""The three import packages: what they load, what is in the wheel, whom they refuse."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python(code: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=60
    )


def test_import_toolkit_loads_no_backend_and_no_heavy_library() -> None:
    done = python(
        "import sys, toolkit; heavy = {'backends', 'asyncssh', 'docker', 'rich', 'typer', 'PIL',"
        " 'json_repair', 'charset_normalizer', 'asyncio.subprocess'} & set(sys.modules); "
        "print(sorted(heavy))"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_project_with_its_own_operations_folder_gets_an_error_naming_both(tmp_path: Path) -> None:
    (tmp_path / "operations").mkdir()
    (tmp_path / "operations" / "__init__.py").write_text("")
    done = python("import toolkit", cwd=tmp_path)
    assert "ImportError" in done.stderr
    assert str(tmp_path / "operations") in done.stderr
    assert str(ROOT) in done.stderr


def test_a_project_with_its_own_backends_folder_gets_an_error_naming_both(tmp_path: Path) -> None:
    (tmp_path / "backends").mkdir()
    (tmp_path / "backends" / "__init__.py").write_text("")
    done = python("import toolkit.cli.session", cwd=tmp_path)
    assert "ImportError" in done.stderr
    assert str(tmp_path / "backends") in done.stderr
    assert str(ROOT) in done.stderr


def test_the_wheel_holds_the_packages_and_no_tests(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {"toolkit", "operations", "backends"} <= tops
    assert all(top.startswith(("toolkit", "operations", "backends", "remotehands")) for top in tops)
    assert "toolkit/cli/demo_project/shop/pricing.py" in names
    assert "toolkit/cli/demo_project/tests/test_pricing.py" in names
    assert "backends/engine/serve.py" in names
