"""What the bash tool needs of a place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from operations.values import ExecResult, OutputSnapshot, StopSignal

__all__ = ["BashOperations", "TailBashOperations"]


class BashOperations(Protocol):
    """Run shell commands."""

    async def exec(
        self,
        command: str,
        *,
        cwd: str,
        on_data: Callable[[bytes], None],
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        stop: StopSignal | None = None,
    ) -> ExecResult:
        """Run `command` with the target's bash (sh where there is none) and wait for its end.

        The shell runs with `-c` semantics: not login, not interactive, without a terminal, in a
        session of its own, stdin at end of file. stdout and stderr are one pipe, so their order
        is true. An exit status is data, never an exception.

        Returns when the shell has exited and its pipe has been closed by all, or has been silent
        for 100 ms, or 1 s has passed. What the command left running goes on (see
        `ExecResult.background`) until the backend closes.

        When the time is over or `stop` fires, every process that the command started is ended
        (TERM, a short grace, KILL) and the result tells what it had printed and how the kill
        went. Cancelling the awaiting task does the same under a shield of at most 5 s, then the
        cancellation goes on.

        Args:
            command: Any text without NUL, up to 10 MiB of UTF-8; it reaches the shell on a
                descriptor and stands in no process list.
            cwd: Absolute POSIX path, or one that begins with `~`, of the working folder.
            on_data: Called with each run of raw output bytes in order, on the caller's event
                loop. It must return quickly and not raise.
            timeout_s: Seconds, above 0 and finite; None for no limit.
            env: Variables set on top of the target's own; no value appears in a process list.
            stop: Ends the command early when it fires.

        Raises:
            PathNotFound: `cwd` does not exist.
            PathNotDirectory: `cwd` is not a folder.
            PathDenied: `cwd` may not be entered.
            TooLarge: `command` is over 10 MiB.
            OperationUnsupported: The target has no shell.
            BackendUnavailable: The target cannot be reached; nothing ran.
            ConnectionLost: The connection ended; the command may have run. It is not run again.
        """
        ...


@runtime_checkable
class TailBashOperations(Protocol):
    """Run shell commands whose output stays on the target; only its tail travels."""

    async def exec_tail(
        self,
        command: str,
        *,
        cwd: str,
        on_snapshot: Callable[[OutputSnapshot], None],
        tail_bytes: int,
        keep_over_bytes: int,
        keep_over_lines: int,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        stop: StopSignal | None = None,
        argv: Sequence[str] | None = None,
        stdin: bytes = b"",
    ) -> ExecResult:
        """Run `command` as `BashOperations.exec` does, sending snapshots of the output's tail.

        Snapshots come at most every 100 ms, the first as soon as there is output, the last before
        the result; each holds what is new since the one before, cut to its last `tail_bytes`.
        Output over `keep_over_bytes` bytes or `keep_over_lines` lines is also written whole (up
        to the backend's cap of 1 GiB) to a file on the target, mode 0600, named in the result.

        Args:
            command: As for `exec`.
            cwd: As for `exec`.
            on_snapshot: Called on the caller's event loop; must return quickly and not raise.
            tail_bytes: Most bytes of one snapshot, 1 or more.
            keep_over_bytes: Output up to this size needs no kept file.
            keep_over_lines: Output up to this many lines needs no kept file.
            timeout_s: As for `exec`.
            env: As for `exec`.
            stop: As for `exec`.
            argv: Run this program instead of a shell with `command` (which is then ignored).
            stdin: What the command reads, before end of file; at most 10 MiB.

        Raises:
            OperationError: As `BashOperations.exec`.
        """
        ...
