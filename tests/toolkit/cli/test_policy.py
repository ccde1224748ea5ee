"""`--policy` and `--audit`: calls that are held back, asked about and logged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.toolkit.cli.commands import on_terminal, toolkit

pytest.importorskip("tree_sitter", reason="the extra `policy` is not installed")

DENY_ALL = 'default = "deny"\ndescription = "nothing"\n'


@pytest.fixture(autouse=True)
def _no_file_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "remotehands").mkdir(parents=True)
    (tmp_path / "here" / ".git").mkdir(parents=True)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A work tree."""
    return tmp_path / "here"


def test_a_profile_denies_and_says_what_would_be_allowed(here: Path) -> None:
    argv = ("call", "bash", "command=rm -rf build", "--policy", "read-only")
    done = toolkit(*argv, cwd=here)
    assert done.returncode == 1
    assert "read-only" in done.stdout
    assert "Allowed" in done.stdout
    assert toolkit("call", "ls", "--policy", "read-only", cwd=here).returncode == 0


def test_where_nobody_can_be_asked_asking_is_denying(here: Path) -> None:
    done = toolkit("call", "write", "path=a", "content=x", "--policy", "careful", cwd=here)
    assert done.returncode == 1
    assert "Nobody can be asked" in done.stdout
    assert not (here / "a").exists()


def test_on_a_terminal_the_change_is_shown_and_asked_about(here: Path) -> None:
    (here / "a").write_text("old line\n")
    argv = ("call", "write", "path=a", "content=new line\n", "--policy", "careful")
    code, shown = on_terminal(*argv, cwd=here, types={"Allow?": "y\n"})
    assert code == 0
    assert "old" in shown
    assert (here / "a").read_text() == "new line\n"


def test_a_no_goes_to_the_model_with_its_reason(here: Path) -> None:
    argv = ("call", "write", "path=a", "content=x", "--policy", "careful")
    code, shown = on_terminal(
        *argv, cwd=here, types={"Allow?": "n\n", "Why not": "use src instead\n"}
    )
    assert code == 1
    assert shown.count("use src instead") == 2  # as it was typed, and in the result
    assert not (here / "a").exists()


def test_always_is_asked_once(here: Path) -> None:
    calls = [
        {"name": "write", "arguments": {"path": "a", "content": content}} for content in ("1", "2")
    ]
    (here / "calls").write_text("\n".join(map(json.dumps, calls)))
    argv = ("run", "calls", "--policy", "careful")
    code, shown = on_terminal(*argv, cwd=here, types={"Allow?": "a\n"})
    assert code == 0
    assert shown.count("Allow?") == 1
    assert (here / "a").read_text() == "2"


def test_the_users_file_holds_unasked_and_a_projects_only_tightens(here: Path) -> None:
    user = here.parent / "config" / "remotehands" / "policy.toml"
    project = here / "remotehands-policy.toml"
    assert toolkit("call", "ls", cwd=here).returncode == 0
    user.write_text(DENY_ALL)
    assert toolkit("call", "ls", cwd=here).returncode == 1
    project.write_text('default = "allow"\n')
    assert toolkit("call", "ls", cwd=here).returncode == 1
    user.unlink()
    assert toolkit("call", "ls", cwd=here).returncode == 0
    project.write_text(DENY_ALL)
    assert toolkit("call", "ls", "--policy", "trusted", cwd=here).returncode == 1


def test_an_audit_log_shows_what_was_changed_and_with_its_head_what_was_cut(here: Path) -> None:
    audited = ("--policy", "read-only", "--audit", "log")
    assert toolkit("call", "ls", *audited, cwd=here).returncode == 0
    last = toolkit("call", "write", "path=a", "content=x", *audited, cwd=here)
    head = last.stderr.split()[-1]
    assert toolkit("audit", "verify", "log", "--head", head, cwd=here).returncode == 0
    lines = (here / "log").read_text().splitlines(keepends=True)
    (here / "log").write_text("".join(lines[:-1]))
    assert toolkit("audit", "verify", "log", cwd=here).returncode == 0
    cut = toolkit("audit", "verify", "log", "--head", head, cwd=here)
    assert cut.returncode == 1
    assert "cut off" in cut.stderr
    (here / "log").write_text("".join([lines[0].replace("allow", "deny"), *lines[1:]]))
    assert toolkit("audit", "verify", "log", cwd=here).returncode == 1


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--policy", "nonsense"), "no such file, and no profile"),
        (("--audit", "log"), "--policy"),
        (("--policy", "trusted", "--audit", "no/log"), "no/log"),
        (("--policy", "./bad.toml"), "bad.toml"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_runs(
    here: Path, argv: tuple[str, ...], says: str
) -> None:
    (here / "bad.toml").write_text("default = 3\n")
    done = toolkit("call", "write", "path=a", "content=x", *argv, cwd=here)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (here / "a").exists()
