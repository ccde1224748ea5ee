"""`toolkit check`: what a target offers, for people and for programs, and whatever it answers."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations import ExecResult, TargetFacts
from tests.toolkit.cli.commands import TOOLKIT, is_alive, place_with, program, toolkit, wait_for
from toolkit.cli.report import Report, as_json
from toolkit.cli.report_text import as_text
from toolkit.cli.survey import Survey, survey
from toolkit.cli.weaker import weaknesses

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = ["local:", "engine:", "command:sh -c"]
#: Title, colour, a C1 introducer, right-to-left override.
NASTY = "\x1b]0;owned\x07\x1b[31mred\x9b1m\u202e"
FACTS = TargetFacts(home="/root", machine_id="m", platform="linux", shell="bash")


def checked(target: str, cwd: Path, *options: str, **env: str) -> dict[str, Any]:
    done = toolkit("check", target, "--format", "json", *options, cwd=cwd, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def words(told: dict[str, Any]) -> list[str]:
    return [weakness["promise"] for weakness in told["weaker"]]


def report(found: Survey, facts: TargetFacts = FACTS, about: Any = None) -> Report:
    return Report(
        target="command:x",
        cwd="/work",
        facts=facts,
        found=found,
        unasked=None,
        about=about or {},
        connect_ms=1.0,
        pings_ms=[1.0],
    )


# What it tells


@pytest.mark.parametrize("target", HERE)
def test_this_machine_is_told_alike_however_it_is_reached(target: str, tmp_path: Path) -> None:
    told = checked(target, tmp_path, "--cwd", str(tmp_path))
    assert (told["target"], told["reachable"], told["kind"]) == (target, True, "engine")
    assert told["user"]["uid"] == os.getuid()
    assert told["folder"] == {"path": str(tmp_path), "state": "writable"}
    assert told["system"]["kernel"] == os.uname().release
    assert told["temporary"]["free_bytes"] > 0
    assert told["python"]["version"].startswith("3.")
    assert told["latency"]["round_trips"] > 0
    assert told["answered_whole"] is True
    assert told["unasked"] is None


def test_the_keys_of_the_json_stay(tmp_path: Path) -> None:
    told = checked("memory:", tmp_path)
    assert sorted(told) == [
        "about", "answered_whole", "capabilities", "folder", "kept", "kill_promise",
        "kind", "latency", "programs", "python", "reachable", "sh", "shell", "system", "target",
        "temporary", "unasked", "user", "weaker",
    ]  # fmt: skip
    assert (told["kind"], told["kill_promise"], words(told)) == ("memory", "none", ["commands"])


@pytest.mark.parametrize("target", ["memory:", *HERE])
def test_people_get_a_short_page_without_colours_in_a_pipe(target: str, tmp_path: Path) -> None:
    done = toolkit("check", target, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == target
    assert "weaker here" in done.stdout.lower()
    assert "latency" in done.stdout
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) < 40


def test_a_terminal_gets_styles_unless_no_color_is_set(tmp_path: Path) -> None:
    def on_terminal(**env: str) -> bytes:
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [*TOOLKIT, "check", "memory:"], cwd=tmp_path, stdout=theirs, env={**os.environ, **env}
        ) as process:
            os.close(theirs)
            seen = bytearray()
            try:
                while data := os.read(ours, 4096):
                    seen += data
            except OSError:  # how Linux tells that nobody is at the other end
                pass
            os.close(ours)
            assert process.wait(30) == 0
        return bytes(seen)

    assert b"\x1b[" in on_terminal(NO_COLOR="")
    assert b"\x1b" not in on_terminal(NO_COLOR="1")


@pytest.mark.parametrize("name", ["nope", "file"])
def test_a_working_folder_that_is_none_is_weaker(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = checked("local:", tmp_path, "--cwd", str(tmp_path / name))
    assert told["folder"]["state"] == {"nope": "missing", "file": "file"}[name]
    assert "working folder" in words(told)


def test_each_weakness_says_what_would_mend_it() -> None:
    """One of each kind of target, as its facts and its survey would tell."""
    lanes = frozenset({"shell_fallback"})
    alone: dict[str, Any] = {"versions": {}, "kept": survey_of(b"").kept, "whole": True}
    sh = TargetFacts(home="/", machine_id="m", platform="linux", shell="sh", capabilities=lanes)
    found = {
        "no python": weaknesses(sh, Survey(**alone, sh="/bin/busybox"), "/work"),
        "no ctypes": weaknesses(FACTS, Survey(**alone, ctypes=False), "/work"),
        "no answer": weaknesses(FACTS, None, "/work"),
        "full": weaknesses(FACTS, Survey(**alone, temp="/tmp", temp_free=1 << 20), "/work"),
    }
    promises = {name: [weak.promise for weak in weaker] for name, weaker in found.items()}
    assert promises == {
        "no python": ["kill", "kept output", "shell", "search"],
        "no ctypes": ["kill", "search speed"],
        "no answer": ["kill", "search speed", "survey"],
        "full": ["kill", "search speed", "kept output"],
    }
    assert "ctypes" in found["no ctypes"][0].reason
    assert "busybox" in found["no python"][2].reason
    assert all(weak.remedy for weaker in found.values() for weak in weaker)
    whole = TargetFacts(
        home="/", machine_id="m", platform="linux", shell="bash",
        capabilities=frozenset({"rg", "subreaper"}),
    )  # fmt: skip
    assert weaknesses(whole, Survey(**alone), "/work") == []


# Exit codes


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("nonsense", 2, "neither a target"),
        ("docker:x", 2, "container is missing"),
        ("command:false", 3, "gave no shell"),
        ("command:/no/such/program", 3, "/no/such/program"),
    ],
)
def test_a_target_that_cannot_be_used_is_told_in_a_line(
    target: str, code: int, said: str, tmp_path: Path
) -> None:
    done = toolkit("check", target, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert said in done.stderr
    done = toolkit("check", target, "--format", "json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (done.returncode, told["reachable"], told["target"]) == (code, False, target)
    assert said in told["error"]


def test_a_target_that_is_lost_meanwhile_is_unreachable(tmp_path: Path) -> None:
    target = place_with(tmp_path, bash=f"kill -9 $(cat '{tmp_path}/engine')")
    done = toolkit("check", target, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)


# Kept outputs


def test_kept_outputs_are_counted_and_removed_but_those_that_somebody_holds(
    tmp_path: Path,
) -> None:
    """The user has a number of its own, so that nothing of anybody else's can be meant."""
    target = place_with(tmp_path, id='[ "$1" = -u ] && echo 987654321')
    kept = tmp_path / "remotehands-987654321"
    for session, size in (("left", 1000), ("held", 234)):
        (kept / session).mkdir(parents=True)
        (kept / session / "output-1.log").write_bytes(b"x" * size)
    (kept / "link").symlink_to(tmp_path / "bin")
    told = checked(target, tmp_path, TMPDIR=str(tmp_path))
    assert told["kept"] == {"folders": [str(kept)], "files": 2, "bytes": 1234, "removed": 0}
    holder = os.open(kept / "held", os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    told = checked(target, tmp_path, "--remove-kept", TMPDIR=str(tmp_path))
    os.close(holder)
    assert told["kept"] == {"folders": [str(kept)], "files": 1, "bytes": 234, "removed": 1}
    assert sorted(path.name for path in kept.iterdir()) == ["held", "link"]
    assert (tmp_path / "bin" / "id").exists()
    (kept / "link").unlink()
    done = toolkit("check", target, "--remove-kept", cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    assert "no output of commands; 1 removed" in done.stdout
    assert not kept.exists()


def test_a_folder_of_kept_outputs_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    target = place_with(tmp_path, id='[ "$1" = -u ] && echo 987654321')
    (tmp_path / "other" / "session").mkdir(parents=True)
    (tmp_path / "other" / "session" / "output-1.log").touch()
    (tmp_path / "remotehands-987654321").symlink_to(tmp_path / "other")
    told = checked(target, tmp_path, "--remove-kept", TMPDIR=str(tmp_path))
    assert told["kept"]["files"] == 0
    assert (tmp_path / "other" / "session" / "output-1.log").exists()


# A target that means harm


def test_what_a_target_says_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    nasty = f"printf '%s 1.2.3' '{NASTY}'"
    target = place_with(tmp_path, uname=nasty, git=nasty, id=nasty, readlink=nasty)
    for options in ([], ["--format", "json"]):
        done = toolkit("check", target, *options, cwd=tmp_path)
        assert done.returncode == 0
        assert_harmless(done.stdout + done.stderr)
    assert "owned" in done.stdout


def test_a_reason_that_a_target_words_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    liar = program(tmp_path / "liar", f"printf '%s' '{NASTY}' >&2; exit 1")
    for options in ([], ["--format", "json"]):
        done = toolkit("check", f"command:{liar}", *options, cwd=tmp_path)
        assert done.returncode == 3
        assert_harmless(done.stdout + done.stderr)
        assert "red" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "answer",
    [
        "exec cat /dev/zero",
        f"exec yes '{NASTY}'",
        "head -c 30000 /dev/urandom",
        "printf 'uid=%s\\0cwd=great\\0temp_free=-1\\0kept_files=1e9\\0end=1\\0' \"$(seq 9999)\"",
        "exit 3",
    ],
    ids=["zeros", "flood", "noise", "nonsense", "nothing"],
)
def test_a_shell_that_answers_nonsense_is_told_so_and_no_more(answer: str, tmp_path: Path) -> None:
    done = toolkit("check", place_with(tmp_path, bash=answer), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert_harmless(done.stdout)
    assert len(done.stdout) < 10_000
    if "end=1" not in answer:
        assert "did not say all" in done.stdout


@given(st.lists(st.tuples(st.sampled_from([*Survey.__slots__, "kept_in", "end"]), st.binary())))
def test_any_answer_is_taken_apart_and_shown(fields: list[tuple[str, bytes]]) -> None:
    found = survey_of(b"".join(b"%s=%s\0" % (name.encode(), value) for name, value in fields))
    whole = report(found, about={"container": {"name": NASTY, "user": None, "x": [NASTY]}})
    assert_harmless("\n".join([*as_text(whole), json.dumps(as_json(whole))]))


def assert_harmless(text: str) -> None:
    assert all(char.isprintable() for char in text.replace("\n", ""))


def survey_of(answer: bytes) -> Survey:
    """Return what is made of an answer."""

    class Place:
        async def exec(
            self, command: str, *, on_data: Callable[[bytes], None], **_: Any
        ) -> ExecResult:
            on_data(answer)
            return ExecResult(ended="exited", exit_code=0)

    return anyio.run(lambda: survey(Place(), "/work", remove_kept=False))


# Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("while_connecting", [True, False])
def test_an_interrupt_ends_it_and_leaves_nothing(
    number: int, while_connecting: bool, tmp_path: Path
) -> None:
    hang = f"echo $$ >'{tmp_path}/pid'; exec sleep 300"
    if while_connecting:
        target = f"command:{program(tmp_path / 'hang', hang)}"
    else:
        target = place_with(tmp_path, bash=hang)
    with subprocess.Popen(
        [*TOOLKIT, "check", target],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        pid_file = tmp_path / "pid"
        wait_for(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr) == (130, "", "")
    wait_for(lambda: not is_alive(int(pid_file.read_text())))
