"""What a command's request is answered with, and when."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.backends.engine.processes import Engine, Marked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """Share one engine between tests that leave nothing behind."""
    with Engine() as engine:
        yield engine


def numbers(count: int) -> bytes:
    """Return what `seq count` prints."""
    return b"".join(b"%d\n" % n for n in range(1, count + 1))


# How it ended ----------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["exec", "exec_tail"])
def test_an_exit_code_is_a_result(engine: Engine, op: str) -> None:
    answer = engine.run(b"echo out; echo err >&2; exit 3", op=op)
    printed = answer.output or b"".join(part["data"] for part in answer.parts)
    assert printed == b"out\nerr\n"
    duration_s = answer.result.pop("duration_s")
    assert 0 < duration_s < 10
    assert answer.result == {
        "ended": "exited",
        "exit_code": 3,
        "signal": None,
        "total_bytes": 8,
        "total_lines": 2,
        "kept_path": None,
        "kept_bytes": 0,
        "dropped": None,
        "killed": "none",
        "survivors": [],
        "background": 0,
        "shell": "bash",
    }


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "PIPE"])
def test_a_signal_is_told_as_such(engine: Engine, name: str) -> None:
    answer = engine.run(b"echo before; kill -%s $$; echo after" % name.encode())
    assert answer.output == b"before\n"
    assert (answer["ended"], answer["exit_code"]) == ("signalled", None)
    assert answer["signal"] == getattr(signal, "SIG" + name)


@pytest.mark.parametrize(
    "command", ["cat; echo rc=$?", 'read -p "pw: " x; echo rc=$?', f"{sys.executable} -c 'input()'"]
)
def test_stdin_is_at_its_end(engine: Engine, command: str) -> None:
    began = time.monotonic()
    answer = engine.run(command.encode())
    assert time.monotonic() - began < 5
    assert b"rc=" in answer.output or b"EOFError" in answer.output


@pytest.mark.parametrize("size", [1, 100_000, 10 << 20])
def test_stdin_is_what_was_given(engine: Engine, size: int) -> None:
    answer = engine.run(b"cksum; wc -c", stdin=b"\xff" * size)
    assert answer.output.split()[1] == b"%d" % size


def test_a_program_gets_its_arguments_untouched(engine: Engine) -> None:
    answer = engine.run(argv=[b"printf", b"%s|", b"a  b", b"*", b"$HOME", b"", b"\xff"])
    assert answer.output == b"a  b|*|$HOME||\xff|"


@pytest.mark.parametrize(
    ("name", "code"), [(b"no-such-program", 127), (b"/no/such", 127), (b"/etc/passwd", 126)]
)
def test_a_program_that_cannot_run_ends_as_in_a_shell(
    engine: Engine, name: bytes, code: int
) -> None:
    answer = engine.run(argv=[name])
    assert answer["exit_code"] == code
    assert answer.output.startswith(name + b": ")


def test_defaults_are_as_for_a_fresh_process(engine: Engine) -> None:
    """No signal is ignored or blocked, no descriptor is passed on, no terminal is there."""
    command = b"grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -l; ps -o sid= $$"
    lines = engine.run(command + b"; echo $$; tty").output.split(b"\n")
    blocked, ignored = (int(line.split()[1], 16) for line in lines[:2])
    # glibc's posix_spawn leaves its own two signals, 32 and 33, ignored.
    assert (blocked, ignored & ~0x180000000) == (0, 0)
    assert lines[2] == b"4"  # 0, 1, 2 and the folder that ls reads
    assert lines[3].strip() == lines[4]
    assert lines[5] == b"not a tty"


# The folder and the environment ------------------------------------------------------------


def test_a_folder_that_cannot_be_entered_is_named(engine: Engine, tmp_path: Path) -> None:
    missing, file = bytes(tmp_path / "gone"), tmp_path / "file"
    file.write_text("")
    fault = engine.run(b"echo", cwd=missing).fault
    assert fault[:3] == ["not_found", missing, bytes(tmp_path)]
    assert engine.run(b"echo", cwd=bytes(file)).fault[:2] == ["not_directory", bytes(file)]
    (tmp_path / "gone").mkdir()
    assert engine.run(b"pwd", cwd=missing).output == missing + b"\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_a_folder_without_the_right_to_enter_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    with Engine(user=65534) as engine:
        assert engine.run(b"echo", cwd=bytes(closed)).fault[:2] == ["denied", bytes(closed)]


def test_a_folder_keeps_the_name_it_was_asked_for_by(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    link = bytes(tmp_path / "link")
    assert engine.run(b"pwd", cwd=link).output == link + b"\n"


def test_home_is_expanded_but_named_as_given() -> None:
    with Engine(env={"HOME": "/usr"}) as engine:
        assert engine.run(b"pwd", cwd=b"~/bin").output == b"/usr/bin\n"
        assert engine.run(b"pwd", cwd=b"~/nope").fault[:2] == ["not_found", b"~/nope"]


def test_pagers_and_prompts_are_off_unless_configured(tmp_path: Path) -> None:
    show = b'echo "$TERM|$GIT_PAGER|$GIT_TERMINAL_PROMPT|$OWN"'
    env = {"TERM": "xterm", "OWN": "own", "PATH": os.environ["PATH"]}
    with Engine(env=env) as engine:
        assert engine.run(show).output == b"dumb|cat|0|own\n"
        given = [[b"TERM", b"vt100"], [b"OWN", b"a\xffb"]]
        assert engine.run(show, env=given).output == b"vt100|cat|0|a\xffb\n"
        assert engine.run(show).output == b"dumb|cat|0|own\n"


def test_neither_command_nor_values_stand_in_a_process_list(engine: Engine) -> None:
    lists = b"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"
    command = b": secret-text; " + lists + b" | grep -c 'secret-[tv]'"
    answer = engine.run(command, env=[[b"A", b"secret-value"]])
    assert answer.output == b"0\n"


def test_a_command_sees_nothing_of_how_it_came(engine: Engine) -> None:
    names = engine.run(b"env").output
    assert not re.search(rb"REPLY|eval", names)


# Background processes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "sleep M & echo done",
        "sleep M >/dev/null 2>&1 & echo done",
        "(while :; do echo tick; sleep 0.02; done; sleep M) & sleep M & echo done",
        "setsid sleep M & echo done",
    ],
)
@pytest.mark.parametrize("op", ["exec", "exec_tail"])
def test_a_background_process_does_not_hold_the_answer(command: str, op: str) -> None:
    marked = Marked()
    with Engine() as engine:
        began = time.monotonic()
        answer = engine.run(command.replace("M", marked.text).encode(), op=op)
        assert time.monotonic() - began < 4
        assert (answer["ended"], answer["exit_code"], answer["killed"]) == ("exited", 0, "none")
        assert answer["background"] >= 1
        marked.appear(1)
        assert engine.run(b"echo next").output == b"next\n"
        assert len(marked.pids()) >= 1
        engine.close()
        marked.vanish(0.5)


def test_what_ends_just_after_the_shell_is_no_background(engine: Engine) -> None:
    for _ in range(10):
        answer = engine.run(b"echo a > >(cat; sleep 0.005) 2>&1")
        assert answer["background"] == 0
        answer = engine.run(b"(sleep 0.01; exec >&- 2>&-) & disown; echo hi")
        assert answer["background"] == 0
    assert engine.about()["running"] == 0


def test_late_output_of_a_slow_child_is_waited_for(engine: Engine) -> None:
    assert engine.run(b"(sleep 0.05; echo late) & echo soon").output == b"soon\nlate\n"


def test_background_output_goes_to_the_kept_file() -> None:
    with Engine() as engine:
        command = b"(for i in 1 2 3; do sleep 0.3; echo late$i; done; sleep 0.1) & echo soon"
        answer = engine.run(command, op="exec_tail")
        assert answer["background"] >= 1
        deadline = time.monotonic() + 10
        while engine.about()["running"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with open(answer["kept_path"], "rb") as file:
            assert file.read() == b"soon\nlate1\nlate2\nlate3\n"


def test_a_background_process_gets_no_sigpipe() -> None:
    with Engine(kept_cap=1 << 16) as engine:
        command = b"(head -c 3000000 /dev/zero; echo $? >&2; sleep 0.2; exit 9) & echo soon"
        answer = engine.run(b"exec 2>&1; " + command, op="exec_tail")
        assert answer["ended"] == "exited"
        deadline = time.monotonic() + 10
        while engine.about()["running"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert os.path.getsize(answer["kept_path"]) == 1 << 16


def test_background_processes_may_stay_and_go_on_printing(tmp_path: Path) -> None:
    marked, foreground = Marked(), Marked()
    count = tmp_path / "count"
    loop = f"(while :; do echo x; echo y >> {count}; sleep 0.05; done) &"
    try:
        with Engine(keep_background=True) as engine:
            answer = engine.run(f"{loop} sleep {marked.text} & echo $!".encode())
            assert answer["background"] >= 2
            engine.start(f"sleep {foreground.text}".encode())
            foreground.appear(1)
            engine.close()
            foreground.vanish(0.5)
        size = count.stat().st_size
        deadline = time.monotonic() + 5
        while count.stat().st_size < size + 10:
            assert time.monotonic() < deadline, "it no longer prints"
            time.sleep(0.02)
        assert marked.pids()
    finally:
        for pid in marked.pids():
            os.killpg(os.getpgid(pid), signal.SIGKILL)
    marked.vanish(1)


# Output ------------------------------------------------------------------------------------


def test_output_waits_for_credit(engine: Engine) -> None:
    number = engine.start(b"seq 1 100000; exit 4", credit=10_000)
    received = 0
    while received < len(numbers(100_000)):
        event = engine.until(lambda e: e.get("id") == number and "data" in e and not e.get("seen"))
        event["seen"] = True
        received += len(event["data"])
        engine.say({"credit": number, "bytes": len(event["data"])})
    answer = engine.wait(number)
    assert answer.output == numbers(100_000)
    assert answer["exit_code"] == 4


def test_output_before_the_end_is_owed_however_slow_its_reader_is(engine: Engine) -> None:
    number = engine.start(b"seq 1 5000; sleep 0.1", credit=100)
    time.sleep(1.5)
    engine.say({"credit": number, "bytes": 1 << 20})
    answer = engine.wait(number)
    assert answer.output == numbers(5000)
    assert answer["total_bytes"] == len(answer.output)


def test_a_reader_that_stands_still_can_still_cancel(engine: Engine) -> None:
    number = engine.start(b"yes", credit=100)
    time.sleep(0.2)
    engine.say({"cancel": number})
    answer = engine.wait(number, 5)
    assert (answer["ended"], answer["killed"]) == ("stopped", "killed")
    assert answer.output == b"y\n" * 50


def test_snapshots_are_few_and_the_last_is_whole(engine: Engine) -> None:
    command = b"for i in $(seq 1 300); do echo line$i; sleep 0.002; done"
    answer = engine.run(command, op="exec_tail")
    assert len(answer.parts) <= answer["duration_s"] / 0.1 + 3
    whole = b"".join(b"line%d\n" % n for n in range(1, 301))
    shown = bytearray()
    for part in answer.parts:
        assert len(part["data"]) <= 1000
        assert whole[part["start"] : part["start"] + len(part["data"])] == part["data"]
        assert part["total_bytes"] == part["start"] + len(part["data"])
        assert part["total_lines"] == whole[: part["total_bytes"]].count(b"\n")
        shown[part["start"] :] = part["data"]
    assert answer.parts[-1]["total_bytes"] == len(whole)


def test_the_first_snapshot_comes_at_once(engine: Engine) -> None:
    number = engine.start(b"echo now; sleep 5", op="exec_tail")
    began = time.monotonic()
    event = engine.until(lambda e: e.get("id") == number and "part" in e)
    assert event["part"]["data"] == b"now\n"
    assert time.monotonic() - began < 2
    engine.say({"cancel": number})
    engine.wait(number)


def test_a_large_tail_comes_in_pieces(engine: Engine) -> None:
    answer = engine.run(b"head -c 3000000 /dev/zero", op="exec_tail", tail_bytes=2_000_000)
    assert max(len(part["data"]) for part in answer.parts) <= 1 << 19
    end = answer.parts[-1]
    assert end["start"] + len(end["data"]) == 3_000_000


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"keep_over_bytes": 292, "keep_over_lines": 100}, False),
        ({"keep_over_bytes": 291, "keep_over_lines": 100}, True),
        ({"keep_over_bytes": 292, "keep_over_lines": 99}, True),
        ({"keep_over_bytes": 0, "keep_over_lines": 0}, True),
    ],
)
def test_output_is_kept_beyond_either_limit(
    engine: Engine, limits: dict[str, int], kept: bool
) -> None:
    answer = engine.run(b"seq 1 100", op="exec_tail", tail_bytes=10, **limits)
    assert (answer["kept_path"] is not None) == kept
    assert answer["dropped"] is None
    if kept:
        with open(answer["kept_path"], "rb") as file:
            assert file.read() == numbers(100)
        assert os.stat(answer["kept_path"]).st_mode & 0o777 == 0o600
        assert answer["kept_bytes"] == 292


def test_the_kept_file_ends_at_its_cap() -> None:
    with Engine(kept_cap=10_000) as engine:
        answer = engine.run(b"seq 1 100000", op="exec_tail")
        assert (answer["kept_bytes"], answer["total_bytes"]) == (10_000, len(numbers(100_000)))
        with open(answer["kept_path"], "rb") as file:
            assert file.read() == numbers(100_000)[:10_000]
        engine.close()
        assert not os.path.exists(answer["kept_path"])


def test_a_flood_takes_little_memory_and_starves_nobody(engine: Engine) -> None:
    before = engine.about()["rss"]
    flood = engine.start(b"yes 'a line of output' | head -c 500000000", op="exec_tail")
    slowest = 0.0
    for _ in range(10):
        began = time.monotonic()
        assert engine.run(b"echo hi").output == b"hi\n"
        slowest = max(slowest, time.monotonic() - began)
    answer = engine.wait(flood, 60)
    assert answer["total_bytes"] == 500_000_000
    assert slowest < 2
    assert engine.about()["rss"] - before < 10_000_000
    os.unlink(answer["kept_path"])


def test_two_commands_do_not_wait_for_a_third_that_floods(engine: Engine) -> None:
    number = engine.start(b"yes", op="exec_tail", timeout_s=1.0)
    began = time.monotonic()
    answer = engine.wait(number)
    assert answer["ended"] == "timeout"
    assert time.monotonic() - began < 5
    os.unlink(answer["kept_path"])


# Sizes and numbers -------------------------------------------------------------------------


def test_200_commands_at_once_need_neither_threads_nor_much_time() -> None:
    with Engine() as engine:
        began = time.monotonic()
        running = [engine.start(b"sleep 0.2; echo $((6*7))") for _ in range(200)]
        threads = engine.about()["threads"]
        for number in running:
            assert engine.wait(number).output == b"42\n"
        assert time.monotonic() - began < 8
        assert threads == 1


def test_200_commands_leave_no_descriptor_open() -> None:
    with Engine() as engine:
        for op in ("exec", "exec_tail"):
            engine.run(b"seq 1 5000", op=op)
        before = engine.about()["fds"]
        for number in range(100):
            engine.run(b"echo hi", stdin=b"x")
            engine.run(b"seq 1 5000", op="exec_tail", timeout_s=30)
            if number % 10 == 0:
                engine.run(b"sleep 60", timeout_s=0.01)
                engine.run(b"true", cwd=b"/nowhere")
        assert engine.about()["fds"] <= before + 1


@pytest.mark.parametrize("size", [131_071, 131_072, 10 << 20])
def test_a_command_of_any_size_runs(engine: Engine, size: int) -> None:
    frame = b"x='%s'; echo ${#x}"
    command = frame % (b"y" * (size - len(frame) + 2))
    assert len(command) == size
    assert engine.run(command).output == b"%d\n" % (size - len(frame) + 2)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"command": b"x" * ((10 << 20) + 1)}, "too_large"),
        ({"command": b"cat", "stdin": b"x" * ((10 << 20) + 1)}, "too_large"),
        ({"command": b"echo a\0b"}, "bad_request"),
        ({"command": b"true", "timeout_s": 0.0}, "bad_request"),
        ({"command": b"true", "timeout_s": float("nan")}, "bad_request"),
        ({"command": b"true", "timeout_s": float("inf")}, "bad_request"),
        ({"command": b"true", "cwd": b"relative"}, "path"),
        ({"command": b"true", "cwd": b""}, "path"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_runs(
    engine: Engine, args: dict[str, Any], code: str
) -> None:
    assert engine.run(**args).fault[0] == code


def test_a_time_limit_that_comes_after_the_end_changes_nothing(engine: Engine) -> None:
    answer = engine.run(b"sleep 60 & echo hi; exit 5", timeout_s=0.15)
    assert answer.output == b"hi\n"
    assert (answer["ended"], answer["exit_code"]) in [("exited", 5), ("timeout", None)]


def test_a_request_that_was_cancelled_before_it_began_runs_nothing(tmp_path: Path) -> None:
    with Engine() as engine:
        made = tmp_path / "made"
        numbers = [engine.start(f"sleep 0.2; touch {made}".encode()) for _ in range(20)]
        for number in numbers:
            engine.say({"cancel": number})
        for number in numbers:
            assert engine.wait(number)["ended"] == "stopped"
        assert not made.exists()
        assert engine.about()["running"] == 0


@pytest.mark.parametrize(
    "python",
    [
        path
        for version in ("3.6", "3.7", "3.8", "3.9", "3.10", "3.12", "3.13", "3.14")
        for path in [os.path.expanduser("~/.pyenv/versions")]
        if os.path.isdir(path)
        for path in [
            os.path.join(path, name, "bin/python")
            for name in sorted(os.listdir(path))
            if name.startswith(version + ".")
        ][:1]
    ],
)
def test_it_works_on_every_python_that_is_here(python: str) -> None:
    marked = Marked()
    with Engine(python) as engine:
        assert engine.run(b"echo hi; exit 3").output == b"hi\n"
        assert engine.run(b"cat", stdin=b"in").output == b"in"
        assert engine.run(b"seq 1 5000", op="exec_tail")["kept_bytes"] == 23893
        command = f"setsid sleep {marked.text} & sleep {marked.text}"
        number = engine.start(command.encode())
        marked.appear(2)
        engine.say({"cancel": number})
        assert engine.wait(number)["killed"] == "killed"
        marked.vanish(0.5)
        engine.close()
