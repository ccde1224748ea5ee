"""Who is let in and who is trusted: host keys, our keys, passwords, refusals, jumps."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import asyncssh
import pytest

from backends.ssh import SshBackend
from operations import BackendUnavailable
from tests.backends.ssh.proxy import Wire
from tests.sshd import Sshd, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.anyio


async def refused(backend: SshBackend) -> str:
    """Enter a backend, which must fail, and return why; no task must be left."""
    before = asyncio.all_tasks()
    with anyio.fail_after(60), pytest.raises(BackendUnavailable) as caught:
        async with backend:
            pass
    await eventually_no_more_tasks_than(before)
    return str(caught.value)


async def eventually_no_more_tasks_than(before: set[asyncio.Task[object]]) -> None:
    with anyio.fail_after(10):
        while asyncio.all_tasks() - before:
            await anyio.sleep(0.01)


def fingerprint(file: Path) -> str:
    argv = ["ssh-keygen", "-lf", str(file)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()[1]


async def works(backend: SshBackend) -> str:
    """Enter a backend and return who a command runs as there."""
    output: list[bytes] = []
    async with backend:
        await backend.exec("id -un", cwd="/", on_data=output.append)
    return b"".join(output).decode().strip()


# Host keys


async def test_an_unknown_host_key_is_refused_and_the_told_command_adds_it(sshd: Sshd) -> None:
    known = sshd.folder / "none_known"
    known.unlink(missing_ok=True)
    config = sshd.config()
    said = await refused(SshBackend.connect("box", config=config, known_hosts=str(known)))
    assert f"[127.0.0.1]:{sshd.port} is not known" in said
    assert str(known) in said
    assert fingerprint(sshd.folder / "host_key.pub") in said
    assert not known.exists()
    subprocess.run(["sh", "-c", said.rpartition("add it: ")[2]], check=True)
    assert await works(SshBackend.connect("box", config=config, known_hosts=str(known)))


async def test_a_changed_host_key_is_refused_with_its_line(server: Callable[..., Sshd]) -> None:
    changed = server()
    old = fingerprint(changed.folder / "host_key.pub")
    changed.make_key("host_key")
    changed.stop()
    changed.start()
    config = changed.config()
    said = await refused(SshBackend.connect("box", config=config))
    assert f"{changed.folder}/known_hosts line 2 has ssh-ed25519 {old}" in said
    assert fingerprint(changed.folder / "host_key.pub") in said
    assert "ssh-keygen -R" in said
    subprocess.run(["sh", "-c", said.rpartition("replace it: ")[2]], check=True, timeout=30)
    assert await works(SshBackend.connect("box", config=config))


async def test_a_revoked_host_key_is_refused(sshd: Sshd) -> None:
    file = sshd.know(name="revoked")
    line = file.read_text().splitlines()[1]
    file.write_text(f"{line}\n@revoked {line}\n")
    said = await refused(SshBackend.connect("box", config=sshd.config(), known_hosts=str(file)))
    assert "revoked" in said
    assert f"{file} line 2" in said


async def test_a_host_key_that_is_known_for_the_address_alone_does_not_count(sshd: Sshd) -> None:
    """Else whoever answers for a name could show a key of any other known host."""
    config = sshd.config("Host web1\n  HostName localhost\n")
    said = await refused(SshBackend.connect("web1", config=config))
    assert f"[localhost]:{sshd.port} is not known" in said


async def test_no_file_of_known_hosts_is_no_trust(sshd: Sshd) -> None:
    config = sshd.config("Host *\n  UserKnownHostsFile none\n")
    assert "is not known" in await refused(SshBackend.connect("box", config=config))


async def test_a_host_certificate_counts(server: Callable[..., Sshd]) -> None:
    made = server()
    made.make_key("ca")
    argv = ["ssh-keygen", "-q", "-s", f"{made.folder}/ca", "-I", "h", "-h", "-n", "127.0.0.1"]
    subprocess.run([*argv, f"{made.folder}/host_key.pub"], check=True, timeout=30)
    made.stop()
    made._options = f"HostCertificate {made.folder}/host_key-cert.pub\n"
    made.start()
    ca = (made.folder / "ca.pub").read_text()
    known = made.folder / "known_hosts"
    known.write_text(f"@cert-authority [127.0.0.1]:{made.port} {ca}")
    assert await works(SshBackend.connect("box", config=made.config()))
    made.make_key("ca")
    other = (made.folder / "ca.pub").read_text()
    known.write_text(f"@cert-authority [127.0.0.1]:{made.port} {other}")
    assert "CA that is not known" in await refused(SshBackend.connect("box", config=made.config()))


# Our keys


async def test_a_wrong_key_is_told_with_what_was_tried(sshd: Sshd) -> None:
    key = sshd.make_key("stranger")
    config = sshd.config(f"Host *\n  IdentityFile {key}\n  IdentityFile {sshd.folder}/missing\n")
    Path(config).write_text(
        Path(config).read_text().replace(f"  IdentityFile {sshd.folder}/key\n", "")
    )
    said = await refused(SshBackend.connect("box", config=config))
    assert f"the key {key} ({fingerprint(key)})" in said
    assert "publickey" in said
    assert f"{sshd.folder}/missing (not there)" in said


async def test_a_server_that_wants_no_further_key_is_told(server: Callable[..., Sshd]) -> None:
    made = server("MaxAuthTries 1\n")
    key = made.make_key("stranger")
    said = await refused(
        SshBackend.connect("box", config=made.config(f"Host *\n  IdentityFile {key}\n"))
    )
    assert f"the key {key}" in said
    assert "Too many authentication failures" in said


async def test_a_jump_host_that_forwards_nothing_is_told(server: Callable[..., Sshd]) -> None:
    made = server("AllowTcpForwarding no\n")
    said = await refused(SshBackend.connect("box", via="gate", config=made.config()))
    assert "the jump host does not lead to" in said


async def test_a_server_that_opens_no_session_is_told(server: Callable[..., Sshd]) -> None:
    made = server("MaxSessions 0\n")
    said = await refused(SshBackend.connect("box", config=made.config()))
    assert "opens no session" in said


async def test_an_encrypted_key_asks_or_says_that_it_cannot(server: Callable[..., Sshd]) -> None:
    made = server()
    key = made.make_key("locked", "open sesame")
    (made.folder / "authorized_keys").write_text((made.folder / "locked.pub").read_text())
    config = made.config()
    Path(config).write_text(Path(config).read_text().replace("/key\n", "/locked\n"))
    said = await refused(SshBackend.connect("box", config=config))
    assert f"{key} (encrypted" in said
    asked: list[str] = []

    def answer(file: str) -> str:
        asked.append(file)
        return "open sesame"

    async def wrong(_: str) -> str:
        return "wrong"

    assert await works(SshBackend.connect("box", config=config, passphrase=answer))
    assert asked == [str(key)]
    said = await refused(SshBackend.connect("box", config=config, passphrase=wrong))
    assert "not with this passphrase" in said


async def test_a_key_that_others_can_read_is_not_used(server: Callable[..., Sshd]) -> None:
    made = server()
    (made.folder / "key").chmod(0o644)
    said = await refused(SshBackend.connect("box", config=made.config()))
    assert f"chmod 600 {made.folder}/key" in said


async def test_a_user_certificate_lets_in(server: Callable[..., Sshd]) -> None:
    made = server()
    made.make_key("ca")
    argv = ["ssh-keygen", "-q", "-s", f"{made.folder}/ca", "-I", "u", "-n", made.user]
    subprocess.run([*argv, f"{made.folder}/key.pub"], check=True, timeout=30)
    made.stop()
    (made.folder / "authorized_keys").write_text("")
    made._options = f"TrustedUserCAKeys {made.folder}/ca.pub\n"
    made.start()
    assert await works(SshBackend.connect("box", config=made.config())) == made.user


async def test_the_agent_lets_in_and_only_with_named_keys(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("ssh-agent") is None:
        pytest.skip("ssh-agent is not installed")
    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        while not socket.exists():
            await anyio.sleep(0.01)
        env = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
        other = sshd.make_key("other")
        for key in (other, sshd.folder / "key"):
            subprocess.run(["ssh-add", "-q", str(key)], env=env, check=True, timeout=30)
        # The private key is not there; its public half names it.
        config = sshd.config(
            f"Host *\n  IdentityAgent {socket}\n  IdentitiesOnly yes\n", name="agent_config"
        )
        text = Path(config).read_text()
        Path(config).write_text(text.replace("/key\n", "/key.pub\n"))
        assert await works(SshBackend.connect("box", config=config)) == sshd.user
        Path(config).write_text(text.replace("/key\n", "/other.pub\n"))
        said = await refused(SshBackend.connect("box", config=config))
        assert f"tried: a key of the agent ({fingerprint(other)});" in said
    finally:
        agent.terminate()
        agent.wait(20)
    Path(config).write_text(text.replace("/key\n", "/nothing\n"))
    assert "the agent at" in await refused(SshBackend.connect("box", config=config))


async def test_a_password_comes_from_the_callback(
    server: Callable[..., Sshd], user: Callable[..., str]
) -> None:
    made = server("Match all\n  PasswordAuthentication yes\n  PubkeyAuthentication no\n")
    name = user(password=_crypted("s3cr3t"))
    config = made.config(f"Host *\n  User {name}\n")
    asked: list[str] = []

    def right(whom: str) -> str:
        asked.append(whom)
        return "s3cr3t"

    assert await works(SshBackend.connect("box", config=config, password=right)) == name
    assert asked == [f"{name}@127.0.0.1:{made.port}"]
    said = await refused(SshBackend.connect("box", config=config, password=lambda _: "wr0ng"))
    assert "tried: a password" in said
    assert "wr0ng" not in said
    said = await refused(SshBackend.connect("box", config=config))
    assert "the host takes password" in said
    assert "no password was given" in said


async def test_a_password_answers_a_servers_question_too(tmp_path: Path) -> None:
    """As PAM asks for it (keyboard-interactive)."""
    answers: list[list[str]] = []

    class Asks(asyncssh.SSHServer):
        def kbdint_auth_supported(self) -> bool:
            return True

        def get_kbdint_challenge(self, *_: object) -> Any:
            return "", "", "", [("Password: ", False)]

        def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
            answers.append(list(responses))
            return True

    key = asyncssh.generate_private_key("ssh-ed25519")
    listening = asyncssh.listen("127.0.0.1", 0, server_factory=Asks, server_host_keys=[key])
    async with listening as s:
        line = f"[127.0.0.1]:{s.get_port()} {key.export_public_key().decode()}"
        (tmp_path / "known").write_text(line)
        said = await refused(
            SshBackend.connect(
                f"me@127.0.0.1:{s.get_port()}",
                config=None,
                known_hosts=str(tmp_path / "known"),
                password=lambda _: "s3cr3t",
            )
        )
    assert answers == [["s3cr3t"]]
    assert "opens no session" in said  # it lets in, but does nothing else


def _crypted(password: str) -> str:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    argv = ["openssl", "passwd", "-6", password]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


# What does not become an engine


async def test_a_forced_command_is_told_with_what_it_said(server: Callable[..., Sshd]) -> None:
    made = server("ForceCommand echo This account is closed.; exit 3\n")
    said = await refused(SshBackend.connect("box", config=made.config()))
    assert "exit status 3" in said
    assert "This account is closed." in said
    assert "ForceCommand" in said


async def test_a_shell_that_is_none_is_told(sshd: Sshd, user: Callable[..., str]) -> None:
    name = user("/usr/sbin/nologin")
    said = await refused(SshBackend.connect(f"{name}@box", config=sshd.config()))
    assert "not available" in said


async def test_nothing_listening_and_no_such_host_are_told(sshd: Sshd) -> None:
    config = sshd.config(port=1)
    assert "nothing listens at" in await refused(SshBackend.connect("box", config=config))
    config = sshd.config("Host *\n  HostName no-such-host.invalid\n")
    said = await refused(SshBackend.connect("box", config=config))
    assert "no-such-host.invalid" in said


async def test_what_is_no_ssh_server_is_told(sshd: Sshd) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        config = sshd.config(port=server.sockets[0].getsockname()[1])
        said = await refused(SshBackend.connect("box", config=config))
    assert "127.0.0.1" in said


async def test_a_silent_server_ends_at_the_deadline(sshd: Sshd, wire: Wire) -> None:
    wire.swallows = True
    config = sshd.config("Host *\n  ConnectTimeout 1\n", port=wire.port)
    said = await refused(SshBackend.connect("box", config=config))
    assert "within 1 seconds" in said


async def test_under_trio_it_says_so(sshd: Sshd) -> None:
    code = (
        "import trio, sys\nfrom backends.ssh import SshBackend\n"
        "async def main():\n async with SshBackend.connect('box'): pass\ntrio.run(main)"
    )
    done = await anyio.run_process([sys.executable, "-c", code], check=False)
    assert b"BackendUnavailable: ssh://box: asyncssh" in done.stderr
    assert b"asyncio only" in done.stderr


# Ways there


async def test_two_jumps_in_a_row(sshd: Sshd, server: Callable[..., Sshd]) -> None:
    """Each host's own key is verified, and the way is told."""
    other = server()
    shutil.copy(sshd.folder / "key.pub", other.folder / "authorized_keys")
    known = sshd.folder / "both"
    known.write_text(
        (sshd.folder / "known_hosts").read_text() + (other.folder / "known_hosts").read_text()
    )
    config = sshd.config(
        f"Host two\n  Port {other.port}\nHost three\n  ProxyJump one,two\n"
        f"Host *\n  UserKnownHostsFile {known}\n",
        name="jumps",
    )
    async with SshBackend.connect("three", config=config) as backend:
        assert await backend.exists("/")
        told = (await backend.describe())["ssh"]
        ports = [int(hop.rpartition(":")[2]) for hop in told["via"]]
        assert ports == [sshd.port, other.port]
    async with SshBackend.connect("one", via="two", config=config) as backend:
        assert await backend.exists("/")
    known.write_text((sshd.folder / "known_hosts").read_text())
    said = await refused(SshBackend.connect("three", config=config))
    assert f"[127.0.0.1]:{other.port} is not known" in said


async def test_a_proxy_command_leads_there(sshd: Sshd) -> None:
    code = (
        "import socket,sys,threading,os;print('a warning',file=sys.stderr);"
        "s=socket.create_connection((sys.argv[1],int(sys.argv[2])));"
        "threading.Thread(target=lambda:[os.write(1,d) for d in iter(lambda:s.recv(65536),b'')]"
        " and None or os._exit(0),daemon=True).start();"
        "[s.sendall(d) for d in iter(lambda:os.read(0,65536),b'')]"
    )
    script = sshd.folder / "through.py"
    script.write_text(code)
    command = f"ProxyCommand {sys.executable} {script} %h %p"
    config = sshd.config(f"Host *\n  {command}\n", name="proxied")
    async with SshBackend.connect("box", config=config) as backend:
        assert await backend.exists("/")
        assert runs(f"{script} 127.0.0.1")
    with anyio.fail_after(10):
        while runs(f"{script} 127.0.0.1"):
            await anyio.sleep(0.02)
    config = sshd.config("Host *\n  ProxyCommand no-such-program %h\n", name="proxied")
    said = await refused(SshBackend.connect("box", config=config))
    assert "run it by hand to see what it says: no-such-program 127.0.0.1" in said


async def test_another_user_through_sudo(sshd: Sshd, user: Callable[..., str]) -> None:
    name = user()
    backend = SshBackend.connect("box", config=sshd.config(), become_user=name)
    assert await works(backend) == name
    said = await refused(
        SshBackend.connect(f"{name}@box", config=sshd.config(), become_user="root")
    )
    assert "sudo" in said
    assert "root" in said


async def test_a_connection_that_is_cancelled_leaves_nothing(sshd: Sshd, wire: Wire) -> None:
    """At any moment of it."""
    before = asyncio.all_tasks()
    wire.delay_s = 0.01
    config = sshd.config(port=wire.port)
    sshd.know(wire.port)
    try:
        entered = 0
        for step in range(12):
            with anyio.move_on_after(0.02 * step):
                async with SshBackend.connect("box", config=config):
                    entered += 1
        while wire._writers:
            await anyio.sleep(0.01)
    finally:
        sshd.know()
    await eventually_no_more_tasks_than(before)


class _Silent(asyncssh.SSHServerSession[bytes]):
    """Says nothing, whatever it is to run."""

    def __init__(self, kind: str, ended: list[bool]) -> None:
        self._kind = kind
        self._ended = ended

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def exec_requested(self, command: str) -> bool:
        return self._kind != "runs nothing"

    def subsystem_requested(self, subsystem: str) -> bool:
        return True

    def session_started(self) -> None:
        if self._kind == "ends one" and not self._ended:
            self._ended.append(True)
            self._channel.exit(3)


@pytest.mark.parametrize(
    ("kind", "by", "says"),
    [
        ("says nothing", "argument", "the engine did not answer within 1 seconds"),
        ("says nothing", "configuration", "the engine did not answer within 1 seconds"),
        ("ends one", "argument", "the engine ended with exit status 3"),
        ("runs nothing", "argument", "opens no session for us"),
        ("opens nothing", "argument", "opens no session for us: it does not answer"),
    ],
)
async def test_the_limit_holds_for_all_that_is_tried(
    kind: str, by: str, says: str, tmp_path: Path
) -> None:
    """Whether it is given or configured, and wherever a server that lets us in falls silent."""
    ended: list[bool] = []
    never = asyncio.get_running_loop().create_future()

    class Server(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return False

        def session_requested(self) -> Any:
            return never if kind == "opens nothing" else _Silent(kind, ended)

    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.create_server(
        Server, "127.0.0.1", 0, server_host_keys=[key], encoding=None
    )
    port = server.sockets[0].getsockname()[1]
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
    (tmp_path / "config").write_text("Host *\n  ConnectTimeout 1\n")
    backend = SshBackend.connect(
        f"somebody@127.0.0.1:{port}",
        config=str(tmp_path / "config") if by == "configuration" else None,
        known_hosts=str(tmp_path / "known"),
        connect_timeout_s=1 if by == "argument" else None,
    )
    try:
        # Far more than its due, and less than any single step might take by itself.
        with anyio.fail_after(9), pytest.raises(BackendUnavailable, match=says):
            await backend.__aenter__()
    finally:
        never.cancel()
        server.close()
        await server.wait_closed()
