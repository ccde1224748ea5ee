"""Read by the type checker alone: each backend is assigned to each Protocol it promises."""

from __future__ import annotations

from backends.local import EngineBackend, LocalBackend
from backends.memory import MemoryBackend
from backends.remote.backend import RemoteBackend
from backends.remote.channel import Channel
from backends.remote.pipe import PipeChannel
from backends.remote.shell_backend import ShellBackend
from backends.ssh import SshBackend
from backends.ssh.channel import SshChannel
from backends.ssh.sftp_backend import SftpBackend
from operations import (
    BashOperations,
    EditOperations,
    FindOperations,
    GrepOperations,
    ImageDetectingReadOperations,
    LsOperations,
    ReadOperations,
    ReplaceOperations,
    TailBashOperations,
    TargetOperations,
    VersionedReadOperations,
    WindowReadOperations,
    WriteOperations,
)


def backends_keep_every_promise(
    backend: LocalBackend
    | EngineBackend
    | RemoteBackend
    | ShellBackend
    | SshBackend
    | SftpBackend
    | MemoryBackend,
) -> None:
    """Assign one of each to all."""
    _read: ReadOperations = backend
    _lines: WindowReadOperations = backend
    _images: ImageDetectingReadOperations = backend
    _write: WriteOperations = backend
    _replace: ReplaceOperations = backend
    _edit: EditOperations = backend
    _versioned: VersionedReadOperations = backend
    _bash: BashOperations = backend
    _tail: TailBashOperations = backend
    _grep: GrepOperations = backend
    _find: FindOperations = backend
    _ls: LsOperations = backend
    _target: TargetOperations = backend


def channels_keep_theirs(channel: PipeChannel | SshChannel) -> None:
    """Assign a transport's channel to what `remote` asks of it."""
    _channel: Channel = channel
