"""Targets with names: where they are looked for, who wins, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends import targets
from tests.toolkit.cli.commands import toolkit
from toolkit.cli.config import named_targets, url_of
from toolkit.cli.hosts import read_targets


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that one is in, and a configuration folder of the user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "remotehands").mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "project" / "sub")
    return tmp_path / "project"


def test_a_project_names_targets_for_all_its_folders(project: Path) -> None:
    (project / "remotehands.toml").write_text('[targets.web1]\nurl = "ssh://web1/srv"\n')
    assert url_of("web1") == "ssh://web1/srv"
    assert [one.url for one in read_targets(["web1", "local:"]).targets] == [
        "ssh://web1/srv",
        "local:",
    ]


def test_what_is_above_the_project_is_not_its(project: Path) -> None:
    (project.parent / "remotehands.toml").write_text('[targets.web1]\nurl = "ssh://web1"\n')
    assert named_targets() == {}


def test_the_users_names_count_more(project: Path) -> None:
    user = project.parent / "config" / "remotehands" / "config.toml"
    user.write_text('[targets.web1]\nurl = "ssh://mine"\n')
    (project / "remotehands.toml").write_text(
        '[targets.web1]\nurl = "command:evil"\n[targets.web2]\nurl = "ssh://web2"\n'
    )
    assert named_targets() == {"web1": "ssh://mine", "web2": "ssh://web2"}


def test_a_named_range_is_many(project: Path) -> None:
    (project / "remotehands.toml").write_text('[targets.web]\nurl = "ssh://web[1-3]"\n')
    assert len(read_targets(["web"]).targets) == 3


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[targets", "remotehands.toml"),
        ("targets = 3", "tables"),
        ("[targets.web1]", "url is missing"),
        ('[targets.web1]\nurl = "web1"', "no scheme"),
        ('[targets.web1]\nurl = "ssh://a"\nport = 3', "'port' is not known"),
        ('[targets."a:b"]\nurl = "ssh://a"', "colon"),
    ],
)
def test_what_is_wrong_is_told_with_the_file(project: Path, content: str, says: str) -> None:
    (project / "remotehands.toml").write_text(content)
    with pytest.raises(ValueError, match=says):
        url_of("web1")


def test_an_unknown_name_is_told_with_those_that_are_known(project: Path) -> None:
    (project / "remotehands.toml").write_text('[targets.web1]\nurl = "ssh://web1"\n')
    done = toolkit("call", "ls", "--on", "web2", cwd=project)
    assert done.returncode == 2
    assert "web1" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_package_adds_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Found:
        name, value = "cloud", "cloud_package:open"

        @staticmethod
        def load() -> object:
            return lambda *asked: made.append(asked)

    def entry_points(*, group: str, name: str) -> list[type[Found]]:
        assert group == "remotehands.backends"
        return [Found] if name == "cloud" else []

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    targets.open_target("cloud://box", cwd="/x")
    assert made == [("cloud://box", "/x", None, {})]
    with pytest.raises(ValueError, match="no such target"):
        targets.open_target("smoke://box")


@pytest.mark.parametrize("argv", [("--on", "ssh://x/~bob/a"), ("--on", "memory:", "--cwd", "~bob")])
def test_another_users_home_is_refused_in_a_line(tmp_path: Path, argv: tuple[str, ...]) -> None:
    done = toolkit("call", "ls", *argv, cwd=tmp_path)
    assert done.returncode == 2
    assert "~bob" in done.stderr
    assert done.stderr.count("\n") == 1
