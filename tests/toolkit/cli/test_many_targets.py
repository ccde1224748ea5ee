"""`toolkit call` and `toolkit run` on many targets, as a person or a script meets them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from backends.memory import MemoryBackend
from tests.toolkit.cli.commands import TOOLKIT, on_terminal, toolkit, wait_for
from toolkit import coding_tools
from toolkit.cli.hosts import labels
from toolkit.cli.main import app

ROOT = Path(__file__).parents[3]
UNREACHABLE = "command:sh -c 'echo the cable is out >&2; exit 7'"


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Give a folder with three folders, and a file with them as targets."""
    lines = ["# three"]
    for name in ("a", "b", "long-name"):
        (tmp_path / name).mkdir()
        lines += [f"memory:{tmp_path / name}", ""]
        (tmp_path / name / "who").write_text(f"{name}\nsecond\tcolumn\n")
    (tmp_path / "hosts").write_text("\n".join(lines))
    return tmp_path


def named(folders: Path) -> dict[str, str]:
    """Return what the targets of the file are called."""
    names = ("a", "b", "long-name")
    return dict(zip(names, labels([f"memory:{folders / name}" for name in names]), strict=True))


def test_each_line_begins_with_its_target_and_nothing_in_it_acts(folders: Path) -> None:
    (folders / "b" / "who").write_text("\x07bell\rover\u202e\n\nlast\n")
    done = toolkit("call", "read", "path=who", "--on", "@hosts", cwd=folders)
    names = named(folders)
    names = {name: label.ljust(max(map(len, names.values()))) for name, label in names.items()}
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == sorted(
        [
            f"{names['a']} | a",
            f"{names['a']} | second  column",
            f"{names['b']} | \\x07bell\\rover\\u202e",
            f"{names['b']} |",
            f"{names['b']} | last",
            f"{names['long-name']} | long-name",
            f"{names['long-name']} | second  column",
        ]
    )
    assert done.stderr == "toolkit: 3 done\n"


def test_one_target_by_itself_is_as_ever(folders: Path) -> None:
    done = toolkit("call", "read", "path=who", "--on", f"memory:{folders}/a", cwd=folders)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\nsecond\tcolumn\n", "")


def test_json_has_the_target_and_the_message_in_each_line(folders: Path) -> None:
    done = toolkit(
        "call", "read", "path=who", "--on", "@hosts", "--on", UNREACHABLE, "--format", "json",
        cwd=folders,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(set(line) == {"target", "message"} for line in lines)
    said = {line["target"]: line["message"] for line in lines}
    assert said[f"memory:{folders}/a"]["content"][0]["text"].startswith("a\n")
    assert said[UNREACHABLE]["errorKind"] == "unavailable"
    assert "the cable is out" in said[UNREACHABLE]["content"][0]["text"]
    assert len(lines) == 4


def test_the_exit_code_and_the_summary_tell_who_failed(folders: Path) -> None:
    (folders / "b" / "who").unlink()
    failed = toolkit("call", "read", "path=who", "--on", "@hosts", cwd=folders)
    assert failed.returncode == 1
    assert failed.stderr == f"toolkit: 2 done; 1 failed ({named(folders)['b']})\n"
    worse = toolkit("call", "read", "path=who", "--on", "@hosts", "--on", UNREACHABLE, cwd=folders)
    assert worse.returncode == 3
    assert f"2 done; 1 failed ({named(folders)['b']}); 1 unreachable (command:" in worse.stderr


def test_cwd_is_that_of_every_target(folders: Path) -> None:
    for name in ("a", "b"):
        (folders / name / "sub").mkdir()
    argv = [f"--on=command:env -C {folders}/{name}" for name in ("a", "b")]
    done = toolkit("call", "bash", "command=pwd", *argv, "--cwd", f"{folders}/a/sub", cwd=folders)
    assert [line.partition(" | ")[2] for line in done.stdout.splitlines()] == [
        f"{folders}/a/sub"
    ] * 2


def test_a_target_named_twice_is_worked_on_once_and_told(folders: Path) -> None:
    target = f"local:{folders}/a"
    done = toolkit(
        "call", "bash", "command=echo x >>log", "--on", target, "--on", target, cwd=folders
    )
    assert (folders / "a" / "log").read_text() == "x\n"
    assert f"named more than once, worked on once: {target}" in done.stderr


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["call", "ls", "--on", "@nope"], "@nope: No such file or directory"),
        (["call", "ls", "--on", "ssh://web[9-1]"], "write [1-9]"),
        (["call", "ls", "--on", "@hosts", "--on", "nonsense:"], "no such target"),
        (["call", "ls", "--on", "@bad"], "bad, line 2: 'local:x': the folder must be absolute"),
        (["call", "ls", "path", "--on", "@hosts"], "KEY=VALUE"),
        (["call", "ls", "--on", "@hosts", "--forks", "0"], "Invalid value for '--forks'"),
        (["run", "nope.jsonl", "--on", "@hosts"], "nope.jsonl: No such file"),
        (["run", "empty", "--on", "@hosts"], "there is no call in it"),
        (["run", "calls", "--on", "@hosts"], "calls, line 2: not JSON"),
    ],
)
def test_what_is_malformed_is_told_before_anything_runs(
    argv: list[str], says: str, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders / "bad").write_text("local:\nlocal:x\n")
    (folders / "empty").write_text("\n")
    (folders / "calls").write_text('{"name": "write", "arguments": {"path": "x"}}\n{\n')
    monkeypatch.chdir(folders)
    monkeypatch.setattr("anyio.run", None)
    done = CliRunner().invoke(app, argv)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_script_is_read_once_and_run_on_each(folders: Path) -> None:
    script = [
        {"id": "w", "name": "write", "arguments": {"path": "made", "content": "x"}},
        [{"id": "r", "name": "read", "arguments": {"path": "made"}}, {"id": "l", "name": "ls"}],
    ]
    done = subprocess.run(
        [*TOOLKIT, "run", "-", "--on", "@hosts", "--on", UNREACHABLE, "--forks", "2"],
        cwd=folders,
        input="".join(json.dumps(line) + "\n" for line in script),
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    by_target: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        by_target.setdefault(line["target"], []).append(line["message"])
    assert len(by_target) == 4
    for target, messages in by_target.items():
        assert [message["toolCallId"] for message in messages] == ["w", "r", "l"]
        assert all(message["isError"] == (target == UNREACHABLE) for message in messages)
    assert done.returncode == 3
    assert "3 done; 1 unreachable" in done.stderr


def test_events_carry_their_target(folders: Path) -> None:
    (folders / "calls").write_text('{"id": "1", "name": "ls"}\n')
    done = toolkit("run", "calls", "--on", "@hosts", "--on", UNREACHABLE, "--events", cwd=folders)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ends = [line["target"] for line in lines if line["event"]["type"] == "message_end"]
    assert len(ends) == len(set(ends)) == 4
    started = [line for line in lines if line["event"]["type"] == "tool_execution_start"]
    assert len(started) == 3


def sleeps(marker: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^sleep {marker}$"], capture_output=True).returncode == 0


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_and_each_has_its_answer(stop: signal.Signals, folders: Path) -> None:
    marker = f"6{os.getpid()}.{int(stop)}"
    command = f"echo begun; touch started; setsid sleep {marker}"
    argv = ["call", "bash", f"command={command}", "--forks", "2", "--format", "json"]
    for name in ("a", "b", "long-name"):
        argv += ["--on", f"local:{folders / name}"]
    with subprocess.Popen(
        [*TOOLKIT, *argv], cwd=folders, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: all((folders / name / "started").exists() for name in ("a", "b")))
        process.send_signal(stop)
        out, error = process.communicate(timeout=30)
    said = {json.loads(line)["target"]: json.loads(line)["message"] for line in out.splitlines()}
    assert process.returncode == 130
    for name in ("a", "b"):
        assert said[f"local:{folders / name}"]["errorKind"] == "aborted"
        assert said[f"local:{folders / name}"]["content"][0]["text"].startswith("begun")
    assert said[f"local:{folders}/long-name"]["errorKind"] == "not_started"
    assert "3 stopped" in error
    assert not sleeps(marker)


def test_a_reader_that_stops_does_not_stop_the_targets(folders: Path) -> None:
    """As a pager that nobody scrolls, behind a pipe of 64 KiB."""
    command = "command=head -c 45000 /dev/zero | tr '\\0' x; touch ran"
    targets = [folders / name for name in ("a", "b", "long-name")]
    argv = ["call", "bash", command, "--forks", "1", *(f"--on=local:{at}" for at in targets)]
    with subprocess.Popen(
        [*TOOLKIT, *argv], cwd=folders, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_for(lambda: all((target / "ran").exists() for target in targets))
        out, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (0, b"toolkit: 3 done\n")
    assert out.count(b"x") == 3 * 45_000


def test_nothing_more_is_run_once_nobody_reads(folders: Path) -> None:
    command = "command=echo here; touch ran; [ -e slow ] && sleep 30; true"
    argv = ["call", "bash", command, "--forks", "1"]
    for name in ("a", "b", "long-name"):
        argv += ["--on", f"local:{folders / name}"]
    (folders / "b" / "slow").touch()
    with subprocess.Popen(
        [*TOOLKIT, *argv], cwd=folders, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(20) == 1
    assert not (folders / "long-name" / "ran").exists()


def test_a_terminal_shows_a_table_and_then_the_results_in_order(folders: Path) -> None:
    (folders / "long-name" / "who").unlink()
    code, said = on_terminal("call", "read", "path=who", "--on", "@hosts", cwd=folders)
    assert code == 1
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said).replace("\r\n", "\n")
    table, summary = plain.split("toolkit: ")
    results = re.findall(r"^(\S+) +\| (.*)$", table, re.MULTILINE)
    assert [name for name, _ in results] == [
        named(folders)[at] for at in ("a", "a", "b", "b", "long-name")
    ]
    assert re.search(r"^\S+ +done +\d+\.\d s +second +column *$", table, re.MULTILINE)
    assert re.search(r"^\S+ +failed ", table, re.MULTILINE)
    assert "2 done" in table
    assert summary.startswith("2 done; 1 failed")


def test_a_large_fleet_fits_on_the_terminal(folders: Path) -> None:
    lines = []
    for number in range(40):
        (folders / f"d{number}").mkdir()
        lines.append(f"memory:{folders}/d{number}")
    (folders / "hosts").write_text("\n".join(lines))
    code, said = on_terminal("call", "ls", "--on", "@hosts", cwd=folders)
    assert code == 0
    assert "40 done" in said
    first = re.split(r"\d+ (?:waiting|running|connecting|done)", said)[0]
    assert first.count("\n") < 12


def test_the_help_lists_the_keys_of_each_tool(tmp_path: Path) -> None:
    said = toolkit("call", "--help", cwd=tmp_path).stdout
    for tool in coding_tools(MemoryBackend()):
        (line,) = re.findall(rf"^    {tool.name} +(.*)$", said, re.MULTILINE)
        told = [re.sub(r"[\[\]]|=.*", "", word) for word in line.partition("='")[0].split()]
        fields = tool.parameters.model_fields
        assert told == list(fields)
        needed = [word for word in line.partition("='")[0].split() if not word.startswith("[")]
        assert needed == [name for name, field in fields.items() if field.is_required()]
