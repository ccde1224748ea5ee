"""`toolkit` on a terminal: rendered and live; elsewhere plain."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toolkit.cli.commands import toolkit
from toolkit.cli.log import EventLog

ROOT = Path(__file__).parents[3]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class OnTerminal:
    """A command whose standard streams are a terminal of the test's own."""

    def __init__(self, *argv: str, cwd: Path, **env: str) -> None:
        ours, theirs = pty.openpty()
        self._fd = ours
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "toolkit.cli", *argv],
            cwd=cwd,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80", **env},
        )
        os.close(theirs)

    def until(self, text: str) -> None:
        """Read until a text has been shown."""
        deadline = time.monotonic() + 60
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            self._read()

    def end(self) -> int:
        """Read to the end; return the exit code."""
        with contextlib.suppress(OSError):
            while self._read():
                pass
        return self.process.wait(60)

    def _read(self) -> bytes:
        data = os.read(self._fd, 4096)
        self.shown += data.decode(errors="replace")
        return data

    def close(self) -> None:
        """End it if it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._fd)


@pytest.fixture
def on_terminal(tmp_path: Path) -> Iterator[object]:
    """Give a function that starts a command on a terminal."""
    started: list[OnTerminal] = []

    def start(*argv: str, **env: str) -> OnTerminal:
        started.append(OnTerminal(*argv, cwd=tmp_path, **env))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_a_file_is_shown_in_colours_with_numbers(tmp_path: Path, on_terminal) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")
    shown = on_terminal("call", "read", "path=a.py")
    assert shown.end() == 0
    plain = ESCAPES.sub("", shown.shown)
    assert "1 def f():" in plain
    assert "2     return 1" in plain
    assert "\x1b[9" in shown.shown


def test_no_color_is_heeded(tmp_path: Path, on_terminal) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")
    shown = on_terminal("call", "read", "path=a.py", NO_COLOR="1")
    assert shown.end() == 0
    assert shown.shown == "def f():\r\n    return 1\r\n"


def test_the_message_format_is_plain_on_a_terminal_too(tmp_path: Path, on_terminal) -> None:
    (tmp_path / "a.py").write_text("def f():\n")
    shown = on_terminal("call", "read", "path=a.py", "--format", "message")
    assert shown.end() == 0
    assert shown.shown == "def f():\r\n"


def test_output_is_live_and_an_interrupt_says_what_it_left(on_terminal) -> None:
    shown = on_terminal("call", "bash", "command=echo first; sleep 60")
    shown.until("first")
    assert re.search(r"[0-9]\.[0-9] s", shown.shown)
    shown.process.send_signal(signal.SIGINT)
    assert shown.end() == 130
    assert "interrupted" in ESCAPES.sub("", shown.shown)


def test_a_batch_is_rendered_with_a_summary(tmp_path: Path, on_terminal) -> None:
    calls = [
        {"name": "bash", "arguments": {"command": "echo out"}},
        {"name": "read", "arguments": {"path": "none.txt"}},
    ]
    (tmp_path / "calls.jsonl").write_text(json.dumps(calls))
    shown = on_terminal("run", "calls.jsonl")
    assert shown.end() == 0
    plain = ESCAPES.sub("", shown.shown)
    assert "$ echo out" in plain
    assert "not found" in plain
    assert "2 calls in" in plain
    assert "toolCallId" not in plain


def test_json_is_json_on_a_terminal_too(tmp_path: Path, on_terminal) -> None:
    (tmp_path / "calls.jsonl").write_text(json.dumps({"name": "ls"}))
    shown = on_terminal("run", "calls.jsonl", "--format", "json")
    assert shown.end() == 0
    assert json.loads(shown.shown)["toolName"] == "ls"


def test_values_come_from_files_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "from.txt").write_text("héllo\n")
    assert toolkit("call", "write", "path=a", "content=@from.txt", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a").read_text() == "héllo\n"
    done = toolkit("call", "write", "path=b", "content=-", cwd=tmp_path, stdin="typed\n")
    assert done.returncode == 0
    assert (tmp_path / "b").read_text() == "typed\n"
    assert toolkit("call", "write", "path=c", "content=@@x", cwd=tmp_path).returncode == 0
    assert (tmp_path / "c").read_text() == "@x"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("write", "path=a", "content=@none"), "content=@@none"),
        (("write", "path=-", "content=-"), "one key only"),
        (("write", "path=a", "content=@bytes"), "not UTF-8"),
    ],
)
def test_values_that_cannot_be_had_are_told(
    tmp_path: Path, argv: tuple[str, ...], says: str
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")
    done = toolkit("call", *argv, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_root_confines_the_command_line_too(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "secret").write_text("s")
    done = toolkit("call", "read", "path=../secret", "--root", "app", cwd=tmp_path)
    assert done.returncode == 1
    assert "root folder" in done.stdout
    refused = toolkit("call", "bash", "command=echo hi", "--root", "app", cwd=tmp_path)
    assert "unconfined" in refused.stdout
    allowed = ("call", "bash", "command=echo hi", "--root", "app", "--unconfined-commands")
    assert toolkit(*allowed, cwd=tmp_path).stdout == "hi\n"


def test_events_are_logged_as_lines_with_their_schema(tmp_path: Path) -> None:
    for _ in range(2):
        assert toolkit("call", "ls", "--log", "log", cwd=tmp_path).returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    types = [line["event"]["type"] for line in lines]
    assert (
        types == ["tool_execution_start", "tool_execution_end", "message_start", "message_end"] * 2
    )
    assert {line["schema"] for line in lines} == {1}
    assert {line["target"] for line in lines} == {"local:"}
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_opened_is_told_before_anything_is_run(tmp_path: Path) -> None:
    argv = ("call", "write", "path=a", "content=x", "--log", "no/log")
    done = toolkit(*argv, cwd=tmp_path)
    assert done.returncode == 2
    assert "no/log" in done.stderr
    assert not (tmp_path / "a").exists()


def test_a_full_disk_loses_the_log_and_no_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    from toolkit import MessageEnd, TextContent, ToolResultMessage

    message = ToolResultMessage(
        tool_call_id="1", tool_name="ls", content=[TextContent(text="x")], timestamp=0
    )
    with EventLog("/dev/full", "local:") as log:
        log.listen(MessageEnd(message))
        log.listen(MessageEnd(message))
    assert capsys.readouterr().err.count("nothing more is logged") == 1


def test_half_a_line_in_the_log_spoils_no_other(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"sch')
    assert toolkit("call", "ls", "--log", "log", cwd=tmp_path).returncode == 0
    first, *lines = (tmp_path / "log").read_text().splitlines()
    assert first == '{"sch'
    assert [json.loads(line)["schema"] for line in lines] == [1] * 4
