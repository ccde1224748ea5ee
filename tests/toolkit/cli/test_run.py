"""`toolkit run`: JSON lines in, result messages out, whatever the lines hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from toolkit import AbortController

RUN = [sys.executable, "-m", "toolkit.cli", "run"]


def run(lines: list[Any], cwd: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    done = subprocess.run(
        [*RUN, "-", *options], cwd=cwd, input=text, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def call(name: str, call_id: str = "1", **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def test_one_message_a_call_in_call_order(tmp_path: Path) -> None:
    code, messages = run(
        [
            call("write", "w", path="a.txt", content="x\n"),
            [call("bash", "slow", command="sleep 0.3; echo slow"), call("read", "r", path="a.txt")],
        ],
        tmp_path,
    )
    assert code == 0
    assert [message["toolCallId"] for message in messages] == ["w", "slow", "r"]
    assert [message["isError"] for message in messages] == [False] * 3


def test_a_malformed_line_is_answered_and_the_rest_still_runs(tmp_path: Path) -> None:
    code, messages = run(
        ["{", "42", '{"id": "x"}', "[" * 100_000, "", call("ls", "after")],
        tmp_path,
    )
    assert code == 0
    assert [message["isError"] for message in messages] == [True] * 4 + [False]
    assert [message["toolCallId"] for message in messages[:2]] == ["line-1", "line-2"]
    assert "line 1" in messages[0]["content"][0]["text"]
    assert messages[-1]["toolCallId"] == "after"


def test_calls_without_an_id_get_one_of_their_own(tmp_path: Path) -> None:
    _, messages = run([[{"name": "ls"}, {"name": "ls"}], {"name": "ls"}], tmp_path)
    ids = [message["toolCallId"] for message in messages]
    assert len(set(ids)) == 3


def test_events_come_as_lines_too(tmp_path: Path) -> None:
    _, events = run([call("ls")], tmp_path, "--events")
    types = [event["type"] for event in events]
    assert types[0] == "tool_execution_start"
    assert types[-2:] == ["message_start", "message_end"]


def test_on_error_cancel_stops_the_siblings(tmp_path: Path) -> None:
    started = time.monotonic()
    _, messages = run(
        [[call("bash", "a", command="sleep 30"), call("bash", "b", command="exit 1")]],
        tmp_path,
        "--on-error",
        "cancel",
    )
    assert messages[0]["errorKind"] == "sibling_failed"
    assert time.monotonic() - started < 20


def test_lines_are_answered_while_the_pipe_stays_open(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*RUN, "-"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(json.dumps(call("bash", str(number), command="echo hi")) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["toolCallId"] == str(number)
        process.stdin.close()
        assert process.wait(20) == 0


def test_an_interrupt_aborts_the_batch_prints_its_messages_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    marker = f"4{os.getpid() % 100000}.71"
    with subprocess.Popen(
        [*RUN, "-"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        batch = [
            call("bash", "a", command=f"echo begun; touch started; setsid sleep {marker}"),
            call("bash", "b", command=f"sleep {marker}"),
        ]
        process.stdin.write(json.dumps(batch) + "\n" + json.dumps(call("ls", "never")) + "\n")
        process.stdin.flush()
        wait_for(lambda: (tmp_path / "started").exists() and sleeping(marker) == 2)
        process.send_signal(signal.SIGINT)
        messages = [json.loads(line) for line in process.stdout]
        assert process.wait(20) == 130
    assert [(message["toolCallId"], message["errorKind"]) for message in messages] == [
        ("a", "aborted"),
        ("b", "aborted"),
    ]
    assert "begun" in messages[0]["content"][0]["text"]
    wait_for(lambda: sleeping(marker) == 0)


def test_an_interrupt_while_waiting_for_a_line_ends_the_run(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*RUN, "-"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(call("ls")) + "\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_a_missing_file_is_a_usage_fault(tmp_path: Path) -> None:
    done = subprocess.run([*RUN, "nope.jsonl"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "nope.jsonl" in done.stderr


def test_a_10_mb_line_is_answered(tmp_path: Path) -> None:
    content = "x" * 10_000_000
    _, messages = run([call("write", path="big.txt", content=content)], tmp_path)
    assert messages[0]["isError"] is False
    assert (tmp_path / "big.txt").stat().st_size == len(content)


def sleeping(marker: str) -> int:
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += argv[:2] == [b"sleep", marker.encode()]
    return found


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def run_with(cwd: Path, stdin: Any, stdout: Any, *options: str, **more: Any) -> tuple[int, bytes]:
    done = subprocess.run(
        [*RUN, "-", *options],
        cwd=cwd,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60,
        **more,
    )
    return done.returncode, done.stderr


def test_no_input_at_all_is_no_line(tmp_path: Path) -> None:
    """epoll refuses /dev/null, which is what CI gives."""
    assert run_with(tmp_path, subprocess.DEVNULL, None) == (0, b"")


def test_closed_streams_are_told_in_a_line(tmp_path: Path) -> None:
    line = json.dumps(call("write", path="made", content=""))
    shell = f"exec '{sys.executable}' -m toolkit.cli run -"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    for redirect, code in (("<&-", 2), (f">&- <<< '{line}'", 1)):
        argv = ["bash", "-c", f"{shell} {redirect}"]
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (code, b"", 1)
        assert b"Bad file descriptor" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_full_disk_behind_the_output_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "in").write_text(
        "".join(json.dumps(call("write", path=f"{n}", content="")) + "\n" for n in range(20))
    )
    with open("/dev/full", "wb") as full, open(tmp_path / "in", "rb") as lines:
        code, error = run_with(tmp_path, lines, full)
    assert (code, error) == (1, b"toolkit: standard output: No space left on device\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "in"]


def test_nothing_more_is_run_once_nobody_reads(tmp_path: Path) -> None:
    """With events too, whose printing happens in a listener."""
    for options in ([], ["--events"]):
        with subprocess.Popen(
            [*RUN, "-", *options],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdin.write(json.dumps(call("ls")).encode() + b"\n")
            process.stdin.flush()
            process.stdout.readline()
            process.stdout.close()
            late = [call("bash", command="touch seen"), call("write", path="late", content="")]
            process.stdin.write("".join(json.dumps(one) + "\n" for one in late).encode())
            process.stdin.close()
            assert process.stderr.read() == b""
            assert process.wait(20) == 1
        assert not (tmp_path / "late").exists()


def test_a_folder_as_file_is_a_usage_fault(tmp_path: Path) -> None:
    done = subprocess.run([*RUN, "."], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "toolkit: .: Is a directory\n")


def test_an_id_of_null_is_none(tmp_path: Path) -> None:
    _, messages = run([{"id": None, "name": "ls"}], tmp_path)
    assert messages[0]["toolCallId"] == "1.1"


def test_json_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*RUN, "-"],
        cwd=tmp_path,
        env=env,
        input=json.dumps(call("write", "é", path="é", content="")).encode(),
        capture_output=True,
        timeout=60,
    )
    assert json.loads(done.stdout.decode())["toolCallId"] == "é"


def test_a_line_without_end_is_refused_and_not_kept() -> None:
    """Only as much of it is held as shows that it is too long; the next line is whole again."""
    from toolkit.cli import run as module

    async def lines() -> list[bytes]:
        reader, writer = os.pipe()
        with anyio.move_on_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.to_thread.run_sync, fill, writer)
                found = [
                    line async for line in module._lines_until(reader, AbortController().signal)
                ]
        os.close(reader)
        return found

    def fill(writer: int) -> None:
        with open(writer, "wb") as pipe:
            pipe.write(b"short\n" + b"x" * 3_000_000 + b"\nlast")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_LINE", 1000)
        found = anyio.run(lines)
        assert [len(line) for line in found] == [5, 1001, 4]
        with pytest.raises(ValueError, match="longer than 1000 bytes"):
            module.parse_line(found[1], 2)
