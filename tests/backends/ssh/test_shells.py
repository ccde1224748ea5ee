"""Whatever shell a user has, and whatever its files print, tools see only what they asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backends.ssh import SshBackend
from tests.backends.ssh.lone_shell import without_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sshd import Sshd

pytestmark = pytest.mark.anyio

NOISE = "echo Welcome; echo a warning 1>&2; sleep 0.3\n"
FISH = "if status is-login; set -gx FROM_PROFILE yes; end\n"
PROFILE = "FROM_PROFILE=yes; export FROM_PROFILE\n"
SHELLS = {
    "bash": {".bashrc": NOISE, ".profile": PROFILE},
    "dash": {".profile": f"echo Welcome; {PROFILE}"},
    "fish": {".config/fish/config.fish": NOISE + FISH},
    "tcsh": {".tcshrc": "echo Welcome; sleep 0.3\n", ".profile": PROFILE},
}


async def said(backend: SshBackend, command: str, **options: object) -> str:
    output: list[bytes] = []
    await backend.exec(command, cwd="/", on_data=output.append, **options)  # type: ignore[arg-type]
    return b"".join(output).decode()


@pytest.mark.parametrize("shell", SHELLS)
async def test_any_login_shell(shell: str, sshd: Sshd, user: Callable[..., str]) -> None:
    name = user(shell, rc=SHELLS[shell])
    async with SshBackend.connect(f"{name}@box", config=sshd.config()) as backend:
        assert backend.facts is not None
        assert backend.cwd == backend.facts.home
        path = f'{backend.cwd}/it\'s a "file"!'
        await backend.write_file(path, b"\0\r\n")
        assert await backend.read_file(path) == b"\0\r\n"
        assert await said(backend, "id -un; echo ~") == f"{name}\n{backend.cwd}\n"
        assert await said(backend, 'echo "${FROM_PROFILE-none}"') == "none\n"
        channel = await backend.open_program(["printf", "%s", "it's\n! \\ 'so'"])
        data = b""
        while chunk := await channel.receive():
            data += chunk
        await channel.close()
        assert data.endswith(b"it's\n! \\ 'so'")


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_login_environment_on_request(
    shell: str, sshd: Sshd, user: Callable[..., str]
) -> None:
    name = user(shell, rc=SHELLS[shell])
    backend = SshBackend.connect(f"{name}@box", config=sshd.config(), login_env=True)
    async with backend:
        assert await said(backend, 'echo "${FROM_PROFILE-none}"') == "yes\n"


async def test_a_banner_and_a_message_of_the_day_are_not_output(
    server: Callable[..., Sshd],
) -> None:
    made = server("Banner /etc/passwd\nPrintMotd yes\n")
    async with SshBackend.connect("box", config=made.config()) as backend:
        assert await said(backend, "echo x") == "x\n"


async def test_values_reach_commands_and_no_list_of_processes(sshd: Sshd) -> None:
    """The server accepts no variable; and no command line holds one."""
    value = "b'ar $x\n\"end"
    backend = SshBackend.connect("box", config=sshd.config(), env={"FOO": value})
    async with backend:
        assert await said(backend, 'printf %s "$FOO"') == value
        listing = "cat /proc/[0-9]*/cmdline 2>/dev/null"
        listed = await said(backend, listing, env={"KEY": "s3cr3t-77"})
        assert "s3cr3t-77" not in listed


async def test_two_names_of_one_host_are_one_machine(sshd: Sshd) -> None:
    known = sshd.folder / "two_names"
    line = (sshd.folder / "known_hosts").read_text()
    known.write_text(line + line.replace("127.0.0.1", "localhost"))
    config = sshd.config("Host other\n  HostName localhost\n", name="names")
    first = SshBackend.connect("box", config=config, known_hosts=str(known))
    second = SshBackend.connect("other", config=config, known_hosts=str(known))
    async with first, second:
        assert first.facts
        assert second.facts
        assert first.facts.machine_id == second.facts.machine_id


@pytest.mark.parametrize("far", ["python", "sh alone"])
async def test_umask_locale_and_temporary_folder_are_the_targets(
    far: str, server: Callable[[str], Sshd], tmp_path: Path
) -> None:
    made = server("" if far == "python" else without_python(tmp_path / "bin"))
    home = made.folder / "home"
    (home / "temporary").mkdir()
    (home / ".bashrc").write_text(
        "umask 027; export LC_ALL=C.UTF-8 TMPDIR=$HOME/temporary; cd /usr\n"
    )
    async with SshBackend.connect("box", config=made.config()) as backend:
        assert backend.cwd == str(home)
        await backend.write_file(f"{home}/written", b"")
        words = f"umask; echo $LC_ALL $TMPDIR; pwd; touch {home}/touched"
        assert await said(backend, words) == f"0027\nC.UTF-8 {home}/temporary\n/\n"
        modes = [(home / name).stat().st_mode & 0o777 for name in ("written", "touched")]
        assert modes == [0o640, 0o640]
        kept = await backend.exec_tail(
            "seq 100",
            cwd="/",
            on_snapshot=lambda _: None,
            tail_bytes=10,
            keep_over_bytes=10,
            keep_over_lines=10,
        )
        assert str(kept.kept_path).startswith(f"{home}/temporary/")
    assert not Path(str(kept.kept_path)).exists()
    assert list((home / "temporary").iterdir()) == []
