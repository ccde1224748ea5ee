"""`toolkit call`, as a person or a script meets it: a process, its output and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.targets import TARGETS
from toolkit.cli.call import parse_pairs

ROOT = Path(__file__).parents[3]


def toolkit(
    *argv: str, cwd: Path, stdin: str = "", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolkit.cli", *argv],
        cwd=cwd,
        input=stdin,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_read_prints_what_a_model_would_see(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    done = toolkit("call", "read", "path=a.txt", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwo\n", "")


def test_an_error_result_exits_1_and_says_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "main.py").touch()
    done = toolkit("call", "read", "path=mian.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "mian.py" in done.stdout
    assert "main.py" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_json_output_is_the_whole_message(tmp_path: Path) -> None:
    done = toolkit("call", "bash", "command=exit 3", "--format", "json", cwd=tmp_path)
    message = json.loads(done.stdout)
    assert done.returncode == 1
    assert message["role"] == "toolResult"
    assert message["isError"] is True
    assert message["structuredContent"]["exit_code"] == 3


def test_numbers_and_booleans_are_read_by_the_schema(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a.c\nabc\n")
    done = toolkit("call", "grep", "pattern=a.c", "literal=true", "limit=5", "path=.", cwd=tmp_path)
    assert done.returncode == 0
    assert "a.txt:1: a.c" in done.stdout
    assert "abc" not in done.stdout


def test_a_pair_wins_over_the_object_of_args(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    done = toolkit(
        "call",
        "read",
        "offset=2",
        "--args",
        '{"path": "a.txt", "offset": 1, "limit": 1}',
        cwd=tmp_path,
    )
    assert done.stdout.startswith("two\n")


def test_an_edit_goes_through_a_json_pair(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    edits = json.dumps([{"old_text": "one", "new_text": "two"}])
    done = toolkit("call", "edit", "path=a.txt", f"edits={edits}", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["call", "read", "path"], "KEY=VALUE"),
        (["call", "read", "--args", "{"], "not JSON"),
        (["call", "read", "--args", "[1]"], "JSON object"),
        (["call", "read", "path=a", "--on", "nowhere:"], "local:"),
        (["call", "read", "path=a", "--format", "xml"], "xml"),
        (["call"], "TOOL"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_usage_faults_exit_2_and_say_what_would_be_right(
    argv: list[str], says: str, tmp_path: Path
) -> None:
    done = toolkit(*argv, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_tool_is_an_error_that_lists_the_tools(tmp_path: Path) -> None:
    done = toolkit("call", "Reed", "path=a", cwd=tmp_path)
    assert done.returncode == 1
    assert "read" in done.stdout


def test_cwd_is_where_relative_paths_start(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("below\n")
    done = toolkit("call", "read", "path=a.txt", "--cwd", str(tmp_path / "sub"), cwd=tmp_path)
    assert done.stdout == "below\n"


def test_memory_works_on_a_copy(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("kept\n")
    done = toolkit(
        "call", "write", "path=a.txt", "content=changed", "--on", f"memory:{tmp_path}", cwd=tmp_path
    )
    assert done.returncode == 0
    assert (tmp_path / "a.txt").read_text() == "kept\n"


def test_secrets_of_the_host_do_not_reach_a_command(tmp_path: Path) -> None:
    done = toolkit("call", "bash", "command=env", cwd=tmp_path, env={"X_API_KEY": "s3cr3t-77"})
    assert done.returncode == 0
    assert "PATH=" in done.stdout
    assert "s3cr3t-77" not in done.stdout


def test_pairs_without_a_schema_are_text() -> None:
    assert parse_pairs(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}


def test_help_is_short_and_names_the_commands(tmp_path: Path) -> None:
    done = toolkit("--help", cwd=tmp_path)
    assert done.returncode == 0
    for command in ("call", "run", "check", "demo", "docker"):
        assert command in done.stdout
    assert len(done.stdout.splitlines()) < 40


def test_help_tells_every_kind_of_target(tmp_path: Path) -> None:
    said = " ".join(toolkit("call", "--help", cwd=tmp_path).stdout.split())
    for target in TARGETS.values():
        assert target in said


def test_help_loads_no_backend_and_no_heavy_library() -> None:
    code = (
        "import sys; from toolkit.cli.main import main; sys.argv = ['toolkit', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "light = {'backends', 'backends.targets'}\n"
        "heavy = ('backends', 'rich', 'docker', 'anyio', 'asyncio', 'pydantic')\n"
        "print([name for name in sys.modules if name.startswith(heavy) and name not in light])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_the_kept_output_of_a_call_outlives_it_and_can_be_read(tmp_path: Path) -> None:
    done = toolkit(
        "call", "bash", "command=seq 100000", "--format", "json",
        cwd=tmp_path, env={"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    kept = Path(json.loads(done.stdout)["details"]["kept_path"])
    assert kept.is_relative_to(tmp_path)
    assert kept.stat().st_mode & 0o777 == 0o600
    again = toolkit("call", "read", f"path={kept}", "offset=77777", "limit=1", cwd=tmp_path)
    assert again.stdout.startswith("77777\n")


@pytest.mark.parametrize("argument", ["edits={deep}", "--args={deep}"])
def test_json_nested_too_deeply_is_told_in_words(tmp_path: Path, argument: str) -> None:
    done = toolkit("call", "edit", "path=a", argument.format(deep="[" * 50_000), cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert "nested" in (done.stdout or done.stderr)
    assert "Traceback" not in done.stderr


def test_output_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "toolkit.cli", "call", "ls"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(argv, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1
    assert done.stderr == b"toolkit: standard output: No space left on device\n"


def test_text_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("é\n", encoding="utf-8")
    done = toolkit("call", "read", "path=a", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stdout) == (0, "\\xe9\n")


@pytest.mark.parametrize("argv", [["--help"], ["demo"]])
def test_output_that_nobody_takes_is_no_traceback(tmp_path: Path, argv: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "toolkit.cli", *argv],
            cwd=tmp_path,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(writer)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
