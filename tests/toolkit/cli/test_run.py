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
