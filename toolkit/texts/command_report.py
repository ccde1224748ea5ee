"""How a command ended, in words for a model and facts for programs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.paths import quote_for_shell
from toolkit.texts.truncate import Truncation, format_size, truncate_tail

if TYPE_CHECKING:
    from operations import ExecResult
    from toolkit.calls import ErrorKind
    from toolkit.texts.output import OutputTail

__all__ = ["CommandReport", "report_command", "report_output"]

# Linux's numbers; where they run is Linux far more often than where this process runs.
_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReport:
    """A finished command, told.

    Attributes:
        text: For the model.
        details: For programs and displays.
        structured: The result for programs.
        error: The kind of error, or None for success.
    """

    text: str
    details: dict[str, Any]
    structured: dict[str, Any]
    error: ErrorKind | None


def report_output(
    tail: OutputTail, *, max_lines: int, max_bytes: int, final: bool
) -> tuple[Truncation, bool]:
    """Return the end of the output within the limits, and whether any of it was left out."""
    cut = truncate_tail(tail.text(final=final), max_lines=max_lines, max_bytes=max_bytes)
    return cut, tail.dropped or cut.truncated_by is not None


def report_command(
    result: ExecResult,
    tail: OutputTail,
    *,
    max_lines: int,
    max_bytes: int,
    timeout_s: float | None,
    abort_reason: str | None,
) -> CommandReport:
    """Tell how a command ended and what it printed last.

    Args:
        result: What the operation returned.
        tail: Its output.
        max_lines: Most lines to show.
        max_bytes: Most bytes of UTF-8 to show.
        timeout_s: The limit that it ran under.
        abort_reason: Why it was aborted, for "stopped".
    """
    cut, left_out = report_output(tail, max_lines=max_lines, max_bytes=max_bytes, final=True)
    status, error = _status(result, timeout_s, abort_reason)
    output = cut.text.removesuffix("\n")
    parts = [output or "(no output)"]
    if left_out:
        parts.append(f"[{_left_out(result, tail, cut)}]")
    parts += [status] if status else []
    if result.background and result.ended in ("exited", "signalled"):
        parts.append(f"[{_background(result.background)}]")
    details = _details(result, tail, timeout_s)
    if left_out:
        details["truncation"] = cut.details() | {
            "truncated_by": cut.truncated_by or "bytes",
            "total_lines": tail.total_lines,
            "total_bytes": tail.total_bytes,
        }
        details["kept_path"] = result.kept_path
        details["kept_bytes"] = result.kept_bytes
        details["dropped"] = result.dropped
    structured = {
        "ended": result.ended,
        "exit_code": _exit_code(result),
        "signal": result.signal,
        "truncated": left_out,
        "kept_path": result.kept_path if left_out else None,
    }
    return CommandReport(
        text="\n\n".join(parts), details=details, structured=structured, error=error
    )


def _status(
    result: ExecResult, timeout_s: float | None, abort_reason: str | None
) -> tuple[str, ErrorKind | None]:
    if result.ended == "exited" and result.exit_code == 0:
        return "", None
    if result.ended == "exited" and result.exit_code is not None:
        return f"Command exited with code {result.exit_code}{_not_found(result)}.", "failed"
    if result.ended == "signalled" and result.signal is not None:
        name = _SIGNALS.get(result.signal, "a signal")
        code = 128 + result.signal
        return (
            f"Command was ended by {name} (signal {result.signal}, exit code {code}).",
            "failed",
        )
    if result.ended == "timeout":
        limit = "its time limit" if timeout_s is None else f"{timeout_s:g} seconds"
        return f"Command timed out after {limit}{_kill(result)}.", "timeout"
    if result.ended == "stopped":
        why = f" ({abort_reason})" if abort_reason and abort_reason != "aborted" else ""
        return f"Command aborted{why}{_kill(result)}.", "aborted"
    return (
        (
            f"How the command ended cannot be known{_kill(result)}; "
            "it may have done all of its work or a part, so look before repeating it."
        ),
        "connection_lost" if result.ended == "lost" else "failed",
    )


def _exit_code(result: ExecResult) -> int | None:
    if result.ended == "signalled" and result.signal is not None:
        return 128 + result.signal
    return result.exit_code


def _kill(result: ExecResult) -> str:
    if result.survivors:
        return f"; these processes of it could not be ended: {', '.join(result.survivors)}"
    if result.killed == "killed":
        return "; all that it had started was ended"
    if result.killed == "unconfirmed":
        return "; whether all that it had started was ended could not be confirmed"
    return ""


def _not_found(result: ExecResult) -> str:
    if result.exit_code != 127 or not result.left_out:
        return ""
    return " (a program was not found; variables of the host are not passed on, see details)"


def _background(count: int) -> str:
    if count == 1:
        return "1 process goes on in the background."
    return f"{count} processes go on in the background."


def _left_out(result: ExecResult, tail: OutputTail, cut: Truncation) -> str:
    total = tail.total_lines
    size = format_size(tail.total_bytes)
    if cut.line_cut or (tail.dropped and total <= 1):
        said = f"Showing the last {format_size(cut.shown_bytes)} of a line"
        said += f"; {total} line{'' if total == 1 else 's'}, {size} in all"
    else:
        said = f"Showing the last {cut.shown_lines} of {total} lines ({size} in all)"
    if result.kept_path is None:
        why = f" ({result.dropped})" if result.dropped else ""
        return f"{said}. The rest was not kept{why}."
    whole = "The whole output is"
    if result.kept_bytes < tail.total_bytes:
        whole = f"The first {format_size(result.kept_bytes)} are"
    return (
        f"{said}. {whole} in {result.kept_path}; see more with read, or with "
        f"grep -n WORD {quote_for_shell(result.kept_path)}."
    )


def _details(result: ExecResult, tail: OutputTail, timeout_s: float | None) -> dict[str, Any]:
    details: dict[str, Any] = {
        "ended": result.ended,
        "exit_code": _exit_code(result),
        "shell": result.shell,
        "total_bytes": tail.total_bytes,
        "total_lines": tail.total_lines,
        "duration_ms": round(result.duration_s * 1000, 3),
        "timeout_s": timeout_s,
    }
    if result.signal is not None:
        details["signal"] = result.signal
        details["signal_name"] = _SIGNALS.get(result.signal)
    if result.killed != "none":
        details["killed"] = result.killed
    if result.survivors:
        details["survivors"] = list(result.survivors)
    if result.background:
        details["background"] = result.background
    if result.exit_code == 127 and result.left_out:
        details["left_out_variables"] = list(result.left_out)
    return details
