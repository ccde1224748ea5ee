"""A command behaves as it does under `bash -c` or `sh -c`, and is handed over on a descriptor."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from backends.engine import shell
from backends.engine.shell import COMMAND_FD, Shell
from tests.backends.engine.processes import Engine

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "nothing": "",
    "a comment": "# only",
    "a leading dash": "-x",
    "several lines": "true\necho $LINENO\n(exit 5)",
    "leading newlines": "\n\necho $LINENO",
    "no such command": "true\nno-such-command",
    "name and arguments": 'echo "$0 $# $-"',
    "descriptors": "test -e /proc/self/fd/9; echo $?",
    "heredoc": "cat <<'EOF'\na $x \\\nEOF",
    "heredoc on the first line": "cat <<EOF; echo b\na\nEOF\n",
    "trailing backslash": "echo a\\\n",
    "trailing newlines": "echo a\n\n\n",
    "exit": "exit 7; echo b",
    "killed": "kill -TERM $$",
    "errexit": "set -e; false; echo b",
    "nounset": "set -u; echo a; echo $nope; echo b",
    "stdin": "read x; echo got=$x",
    "exit trap": "trap 'echo bye' EXIT; (exit 3)",
    "background": "sleep 0.01 & wait; echo $?",
    "quotes": """echo "a'b" 'c"d' \\$x `echo e` $(echo f)""",
}
BASH_ONLY = {
    "return": "return 3; echo after",
    "pipe status": "false | true; echo ${PIPESTATUS[@]}",
    "source": "set -u; echo ${BASH_SOURCE-none}",
    "unfinished heredoc": "cat <<'EOF'\na",
    "arrays": "a=(1 2); declare b=2; echo ${a[1]} $b",
}
SHELLS = [name for name in ("bash", "dash", "sh") if shutil.which(name)]


def handed_over(path: str, command: bytes, **options: object) -> tuple[int, bytes]:
    """Run a command as the engine does."""
    given = Shell(path.encode())
    fd = shell.descriptor_with(given.text(command))
    try:
        process = subprocess.run(
            given.argv(),
            executable=path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            close_fds=False,
            preexec_fn=lambda: os.dup2(fd, COMMAND_FD),
            check=False,
            **options,  # type: ignore[call-overload]
        )
    finally:
        os.close(fd)
    return process.returncode, process.stdout


def plain(path: str, command: str) -> tuple[int, bytes]:
    """Run a command as an argument, which is what all is measured by."""
    name = os.path.basename(path)
    process = subprocess.run(
        [name, "-c", command],
        executable=path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return process.returncode, process.stdout


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("case", COMMANDS)
def test_a_command_means_what_it_means_after_dash_c(name: str, case: str) -> None:
    path = shutil.which(name)
    assert path is not None
    command = COMMANDS[case] if name == "bash" or case != "a leading dash" else "true"
    if case == "a leading dash" and name == "bash":
        assert handed_over(path, b"-x")[0] == 127
        return
    code, output = handed_over(path, command.encode())
    expected = plain(path, command)
    assert (code, output.replace(b" /proc/self/fd/9:", b"")) == expected


@pytest.mark.parametrize("case", BASH_ONLY)
def test_bash_in_all_its_ways(case: str) -> None:
    path = shutil.which("bash")
    assert path is not None
    command = BASH_ONLY[case]
    assert handed_over(path, command.encode()) == plain(path, command)


@pytest.mark.parametrize("name", SHELLS)
def test_a_syntax_error_is_exit_2_and_tells_the_line(name: str) -> None:
    path = shutil.which(name)
    assert path is not None
    code, output = handed_over(path, b"echo hi\nif then")
    assert code == 2
    assert output.startswith(b"hi\n")
    assert b"2:" in output
    assert b"then" in output


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_bytes_that_are_not_utf8_pass(locale: str) -> None:
    path = shutil.which("bash")
    assert path is not None
    data = bytes(range(0x80, 0x100)) + "é€😀".encode()
    env = {"LC_ALL": locale, "PATH": os.environ["PATH"]}
    assert handed_over(path, b"printf '%s' '" + data + b"'", env=env) == (0, data)


def test_no_startup_file_is_read_even_under_ssh(tmp_path: Path) -> None:
    path = shutil.which("bash")
    assert path is not None
    (tmp_path / ".bashrc").write_text("echo noise\n")
    env = {"HOME": str(tmp_path), "SSH_CLIENT": "::1 1 22", "PATH": os.environ["PATH"]}
    assert handed_over(path, b"echo hi", env=env) == (0, b"hi\n")


@pytest.mark.parametrize("name", [name for name in SHELLS if name != "bash"])
def test_a_configured_shell_is_used_and_named(name: str) -> None:
    path = shutil.which(name)
    assert path is not None
    with Engine(shell=path.encode()) as engine:
        answer = engine.run(b"echo $0; sleep 0; exit 3")
        assert answer.output == name.encode() + b"\n"
        assert (answer["exit_code"], answer["shell"]) == (3, name)
        text = b"x='%s'; echo ${#x}" % (b"y" * 200_000)
        assert engine.run(text).output == b"200000\n"


def test_a_machine_without_a_shell_says_so(tmp_path: Path) -> None:
    with Engine(shell=bytes(tmp_path / "gone")) as engine:
        assert engine.run(b"true").fault[:2] == ["unsupported", "exec"]
        assert engine.run(argv=[b"echo", b"hi"]).output == b"hi\n"


def test_input_without_memory_files_goes_to_one_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    fd = shell.descriptor_with(b"x" * 100_000)
    try:
        assert list(tmp_path.iterdir()) == []
        assert os.fstat(fd).st_mode & 0o777 == 0o600
        assert os.read(fd, 200_000) == b"x" * 100_000
    finally:
        os.close(fd)
