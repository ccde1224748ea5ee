"""The bash tool, on mocks that have only what it needs."""

from __future__ import annotations

import math

import anyio
import pytest

from operations import (
    ExecResult,
    OperationUnsupported,
    OutputSnapshot,
    PathNotDirectory,
    PathNotFound,
    TargetFacts,
)
from toolkit.abort import AbortController
from toolkit.tools.bash import create_bash_tool, create_bash_tool_definition

pytestmark = pytest.mark.anyio

DONE = ExecResult(ended="exited", exit_code=0)


class Shell:
    """The smallest place to run commands on: it prints chunks and ends as it is told."""

    def __init__(self, *chunks: bytes, result: ExecResult | Exception = DONE) -> None:
        self.chunks = chunks
        self.result = result
        self.asked: dict = {}

    async def exec(self, command, *, cwd, on_data, timeout_s=None, env=None, stop=None):
        self.asked = {"command": command, "cwd": cwd, "timeout_s": timeout_s, "env": env}
        for chunk in self.chunks:
            on_data(chunk)
            await anyio.lowlevel.checkpoint()
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class TailShell(Shell):
    """A place that keeps the output and sends snapshots of its tail."""

    async def exec_tail(
        self,
        command,
        *,
        cwd,
        on_snapshot,
        tail_bytes,
        keep_over_bytes,
        keep_over_lines,
        timeout_s=None,
        env=None,
        stop=None,
        argv=None,
        stdin=b"",
    ):
        self.asked = {"command": command, "cwd": cwd, "timeout_s": timeout_s, "env": env}
        self.keep = (tail_bytes, keep_over_bytes, keep_over_lines)
        total = lines = 0
        for chunk in self.chunks:
            total += len(chunk)
            lines += chunk.count(b"\n")
            data = chunk[-tail_bytes:]
            on_snapshot(
                OutputSnapshot(
                    data=data, start=total - len(data), total_bytes=total, total_lines=lines
                )
            )
            await anyio.lowlevel.checkpoint()
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def bash(shell, **options):
    return create_bash_tool("/w", operations=shell, **options)


@pytest.mark.parametrize("place", [Shell, TailShell])
async def test_output_is_shown_without_its_last_newline(run, place):
    shell = place(b"one\n", b"two\n")
    message = await run(bash(shell, env={"A": "b"}), command="x")
    assert (message.text, message.is_error) == ("one\ntwo", False)
    assert shell.asked == {"command": "x", "cwd": "/w", "timeout_s": 120.0, "env": {"A": "b"}}
    assert message.structured_content["exit_code"] == 0
    assert (message.details["total_bytes"], message.details["total_lines"]) == (8, 2)


async def test_no_output_is_said(run):
    assert (await run(bash(Shell()), command="true")).text == "(no output)"
    assert (await run(bash(Shell(b"\x1b[0m")), command="x")).text == "(no output)"


@pytest.mark.parametrize(
    ("result", "says", "kind"),
    [
        (ExecResult(ended="exited", exit_code=3), "Command exited with code 3.", "failed"),
        (
            ExecResult(ended="signalled", signal=9),
            "Command was ended by SIGKILL (signal 9, exit code 137).",
            "failed",
        ),
        (
            ExecResult(ended="signalled", signal=15),
            "Command was ended by SIGTERM (signal 15, exit code 143).",
            "failed",
        ),
        (
            ExecResult(ended="signalled", signal=40),
            "Command was ended by a signal (signal 40, exit code 168).",
            "failed",
        ),
        (
            ExecResult(ended="timeout", killed="killed"),
            "Command timed out after 2.5 seconds; all that it had started was ended.",
            "timeout",
        ),
        (ExecResult(ended="timeout", killed="unconfirmed"), "could not be confirmed", "timeout"),
        (
            ExecResult(ended="timeout", killed="unconfirmed", survivors=("sleep", "x")),
            "could not be ended: sleep, x",
            "timeout",
        ),
        (
            ExecResult(ended="stopped", killed="killed"),
            "Command aborted; all that it had started was ended.",
            "aborted",
        ),
        (ExecResult(ended="lost"), "How the command ended cannot be known", "connection_lost"),
        (
            ExecResult(ended="exited", exit_code=None),
            "How the command ended cannot be known",
            "failed",
        ),
    ],
)
async def test_every_end_but_zero_is_an_error_that_keeps_the_output(run, result, says, kind):
    """B11, B24, B79."""
    message = await run(bash(Shell(b"before\n", result=result)), command="x", timeout=2.5)
    assert message.is_error
    assert message.error_kind == kind
    assert message.text.startswith("before\n\n")
    assert says in message.text
    assert message.details["ended"] == result.ended
    assert message.structured_content["ended"] == result.ended


async def test_a_signal_is_128_more_for_programs(run):
    message = await run(bash(Shell(result=ExecResult(ended="signalled", signal=9))), command="x")
    assert message.details["exit_code"] == 137
    assert message.details["signal_name"] == "SIGKILL"


async def test_a_background_process_is_said(run):
    message = await run(
        bash(Shell(b"hi\n", result=ExecResult(ended="exited", exit_code=0, background=1))),
        command="x",
    )
    assert message.text == "hi\n\n[1 process goes on in the background.]"
    assert not message.is_error


async def test_on_127_the_names_that_were_left_out_are_in_the_details(run):
    result = ExecResult(ended="exited", exit_code=127, left_out=("NVM_DIR", "X_API_KEY"))
    message = await run(bash(Shell(result=result)), command="x")
    assert message.details["left_out_variables"] == ["NVM_DIR", "X_API_KEY"]
    assert "X_API_KEY" not in message.text


@pytest.mark.parametrize("place", [Shell, TailShell])
async def test_long_output_is_cut_to_its_tail_and_says_where_the_rest_is(run, place):
    chunks = [b"".join(b"line %d\n" % n for n in range(k, k + 500)) for k in range(0, 5000, 500)]
    result = ExecResult(ended="exited", exit_code=0, kept_path="/tmp/kept/1", kept_bytes=10**6)
    message = await run(bash(place(*chunks, result=result)), command="x")
    lines = message.text.split("\n")
    assert lines[0] == "line 3000"
    assert lines[1999] == "line 4999"
    assert "Showing the last 2000 of 5000 lines (47.7 KB in all)" in message.text
    assert "The whole output is in /tmp/kept/1" in message.text
    assert message.details["truncation"]["total_lines"] == 5000
    assert message.details["kept_path"] == "/tmp/kept/1"


@pytest.mark.parametrize("place", [Shell, TailShell])
@pytest.mark.parametrize("size", [60_000, 250_000])
async def test_one_long_line_shows_its_end(run, place, size):
    """B14."""
    message = await run(bash(place(b"x" * size + b"END-MARKER\n")), command="x")
    body, _, notice = message.text.partition("\n\n")
    assert body.endswith("END-MARKER")
    assert 50_000 < len(body) <= 51_200
    assert "of a line; 1 line," in notice
    assert "The rest was not kept." in notice


async def test_exactly_the_limit_is_not_cut(run):
    """B96."""
    for count, cut in ((1999, False), (2000, False), (2001, True)):
        message = await run(bash(Shell(b"x\n" * count)), command="x")
        assert ("truncation" in message.details) is cut
    for size, cut in ((51_199, False), (51_200, False), (51_201, True)):
        message = await run(bash(Shell(b"y" * size + b"\n")), command="x")
        assert ("truncation" in message.details) is cut


async def test_a_kept_file_is_told_only_when_something_was_left_out(run):
    result = ExecResult(ended="exited", exit_code=0, kept_path="/tmp/k", kept_bytes=40_000)
    message = await run(bash(TailShell(b"z" * 40_000 + b"\n", result=result)), command="x")
    assert "/tmp/k" not in message.text


async def test_capped_and_dropped_output_is_said(run):
    result = ExecResult(ended="exited", exit_code=0, kept_path="/tmp/k", kept_bytes=1024)
    message = await run(bash(Shell(b"x\n" * 3000, result=result)), command="x")
    assert "The first 1.0 KB are in /tmp/k" in message.text
    result = ExecResult(ended="exited", exit_code=0, dropped="no writable folder")
    message = await run(bash(Shell(b"x\n" * 3000, result=result)), command="x")
    assert "The rest was not kept (no writable folder)." in message.text


async def test_the_rest_is_kept_whatever_the_bytes_become_when_shown():
    shell = TailShell()
    tool = bash(shell)
    await tool.execute("1", tool.parameters(command="x"), AbortController().signal, lambda _: None)
    tail_bytes, keep_over_bytes, keep_over_lines = shell.keep
    assert tail_bytes >= 51_200
    assert keep_over_bytes * len("\ufffd".encode()) <= 51_200
    assert keep_over_lines == 2000


async def test_characters_may_be_split_between_chunks(run):
    """B16."""
    assert (await run(bash(Shell(b"\xe2", b"\x89", b"\xa4\n")), command="x")).text == "≤"
    assert (await run(bash(Shell(b"ok \xe2\x89")), command="x")).text == "ok \ufffd"


async def test_terminal_codes_do_not_reach_the_model(run):
    """B103."""
    raw = b"p 1%\rp 50%\rp 100%\n\x1b[31mred\x1b[0m \x1b[?25l\x1b]0;t\x07ok\r\n\x00z\n"
    assert (await run(bash(Shell(raw)), command="x")).text == "p 100%\nred ok\nz"


@pytest.mark.parametrize("place", [Shell, TailShell])
async def test_updates_come_at_once_and_then_in_time_and_before_the_end(place):
    class Paused(place):
        async def exec(self, command, *, on_data, **_):
            on_data(b"first\n")
            on_data(b"second\n")
            with anyio.fail_after(5):
                await seen.wait()
            on_data(b"last\n")
            return DONE

        async def exec_tail(self, command, *, on_snapshot, **_):
            on_snapshot(OutputSnapshot(data=b"first\n", start=0, total_bytes=6, total_lines=1))
            on_snapshot(OutputSnapshot(data=b"second\n", start=6, total_bytes=13, total_lines=2))
            on_snapshot(OutputSnapshot(data=b"last\n", start=13, total_bytes=18, total_lines=3))
            return DONE

    seen = anyio.Event()
    texts = []

    def on_update(result):
        texts.append(result.content[0].text)
        if "second" in texts[-1]:
            seen.set()

    tool = bash(Paused())
    await tool.execute("1", tool.parameters(command="x"), AbortController().signal, on_update)
    assert texts[0] == "first\n"
    assert texts[-1] == "first\nsecond\nlast\n"


async def test_a_flood_of_chunks_makes_few_updates():
    """B27."""
    shell = Shell(*[b"y\n" * 1000] * 2000)
    updates = []
    tool = bash(shell)
    start = anyio.current_time()
    await tool.execute(
        "1", tool.parameters(command="yes"), AbortController().signal, updates.append
    )
    assert len(updates) <= (anyio.current_time() - start) / 0.1 + 2


@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan, "soon", True])
async def test_a_timeout_that_is_none_is_refused_before_anything_runs(run, timeout):
    shell = Shell()
    message = await run(bash(shell), command="x", timeout=timeout)
    assert message.error_kind == "invalid_arguments"
    assert shell.asked == {}


@pytest.mark.parametrize(
    ("options", "asked", "used"),
    [
        ({}, None, 120.0),
        ({}, 5, 5),
        ({"default_timeout_s": None}, None, None),
        ({"default_timeout_s": None, "max_timeout_s": 60}, None, 60),
        ({"default_timeout_s": 120, "max_timeout_s": 60}, None, 60),
        ({"default_timeout_s": 10, "max_timeout_s": 60}, 60, 60),
    ],
)
async def test_default_and_maximum(run, options, asked, used):
    shell = Shell()
    await run(bash(shell, **options), command="x", **({} if asked is None else {"timeout": asked}))
    assert shell.asked["timeout_s"] == used


async def test_beyond_the_maximum_is_an_error_that_names_it(run):
    shell = Shell()
    message = await run(bash(shell, max_timeout_s=60), command="x", timeout=61)
    assert message.text == "timeout 61 is over the maximum of 60 seconds; nothing was run"
    assert shell.asked == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [("default_timeout_s", 0), ("max_timeout_s", math.inf), ("max_timeout_s", -1)],
)
def test_limits_are_checked_at_creation(name, value):
    with pytest.raises(ValueError, match=name):
        bash(Shell(), **{name: value})


@pytest.mark.parametrize(
    ("command", "says", "kind"),
    [
        ("", "empty", "invalid_arguments"),
        (" \n", "empty", "invalid_arguments"),
        ("a\x00b", "NUL", "invalid_arguments"),
        ("x" * (10 * 1024 * 1024 + 1), "over the limit of 10485760 bytes", "too_large"),
    ],
)
async def test_what_is_no_command_is_refused(run, command, says, kind):
    shell = Shell()
    message = await run(bash(shell), command=command)
    assert says in message.text
    assert message.error_kind == kind
    assert shell.asked == {}


@pytest.mark.parametrize("place", [Shell, TailShell])
@pytest.mark.parametrize(
    ("error", "says", "kind"),
    [
        (PathNotFound("/w"), "the working folder /w: no such folder", "not_found"),
        (PathNotDirectory("/w"), "the working folder /w: is a file, not a folder", "failed"),
        (
            OperationUnsupported("exec", "there is no shell"),
            "exec is not supported here: there is no shell",
            "unsupported",
        ),
    ],
)
async def test_a_missing_working_folder_is_named(run, place, error, says, kind):
    """B76."""
    message = await run(bash(place(result=error)), command="x")
    assert (message.text, message.error_kind) == (says, kind)


async def test_the_stop_signal_is_handed_on_and_its_reason_told():
    controller = AbortController()

    class Stopping(Shell):
        async def exec(self, command, *, on_data, stop, **_):
            on_data(b"half\n")
            controller.abort("the user pressed stop")
            await stop.wait()
            return ExecResult(ended="stopped", killed="killed")

    tool = bash(Stopping())
    result = await tool.execute(
        "1", tool.parameters(command="x"), controller.signal, lambda _: None
    )
    assert result.is_error
    assert result.error_kind == "aborted"
    text = result.content[0].text
    assert text.startswith("half\n\nCommand aborted (the user pressed stop)")


def test_the_description_names_the_shell_where_it_is_known():
    class Known(Shell):
        facts = TargetFacts(home="/h", machine_id="m", platform="linux", shell="sh")

    definition = create_bash_tool_definition("/w", operations=Known(), default_timeout_s=None)
    assert "with sh in the working folder, with no time limit" in definition.description
    assert (
        "bash (sh where there is none)"
        in create_bash_tool_definition("/w", operations=Shell()).description
    )


@pytest.mark.parametrize("place", [Shell, TailShell])
@pytest.mark.parametrize(
    ("chunks", "lines"),
    [([b"a"], 1), ([b"a\n"], 1), ([b"a\n", b"b"], 2), ([b"x\n" * 3000, b"end"], 3001), ([], 0)],
)
async def test_a_last_line_without_an_ending_is_counted(run, place, chunks, lines):
    """Programs and the model are told one number, also where the beginning is gone."""
    message = await run(bash(place(*chunks)), command="x")
    assert message.details["total_lines"] == lines
    if lines > 2000:
        assert message.details["truncation"]["total_lines"] == lines
        assert f"of {lines} lines" in message.text


async def test_a_command_just_over_the_limit_is_told_in_bytes(run):
    """One that reads 10.0 MB in both places would teach nothing."""
    message = await run(bash(Shell()), command="x" * (10 * 1024 * 1024 + 1))
    assert "10485761 bytes is over the limit of 10485760 bytes" in message.text
