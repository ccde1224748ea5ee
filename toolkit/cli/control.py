"""What holds calls back on the command line: policies, questions on the terminal, the audit log."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit import Listener, ToolRunner, coding_tools
from toolkit.cli.config import project_file, user_file
from toolkit.cli.session import EXIT_ERROR, EXIT_USAGE, complain
from toolkit.cli.shown import named

if TYPE_CHECKING:
    from toolkit.policy import Answer, AuditLog, PolicyFile, Question, Redactor
    from toolkit.toolset import CodingPlace

__all__ = ["Control", "open_control", "verify_audit"]

POLICY_FILE = "remotehands-policy.toml"


@dataclass(slots=True)
class Control:
    """What every runner of the command line is made with.

    Attributes:
        policy: What the policy files say; None for no policy.
        audit: Gets decisions and effects; None for none.
        redactor: Takes secrets out of what is shown; None without a policy.
        is_asking: Whether a question stands on the terminal at the moment.
    """

    policy: PolicyFile | None = None
    audit: AuditLog | None = None
    redactor: Redactor | None = None
    is_asking: bool = False

    def runner(
        self, backend: CodingPlace, url: str, listeners: Sequence[Listener], **options: Any
    ) -> ToolRunner:
        """Return a runner on a place, held by what was asked for.

        Args:
            backend: The open place.
            url: Its target.
            listeners: Get the events, without secrets if there is a policy.
            options: Of `ToolRunner`.
        """
        tools = coding_tools(backend)
        if self.policy is None or self.redactor is None:
            return ToolRunner(tools, listeners=listeners, **options)
        from toolkit.policy import PolicyHook, place_of

        hook = PolicyHook(
            self.policy.policies,
            place_of(backend, named(url)),
            ask=self._ask if _can_ask() else None,
            operations=backend,
            limits=self.policy.limits,
            audit=self.audit,
        )
        return ToolRunner(
            self.redactor.tools(tools),
            before_tool_call=[hook.before],
            after_tool_call=[self.redactor.after, hook.after],
            listeners=[self.redactor.listener(listener) for listener in listeners],
            **options,
        )

    async def _ask(self, question: Question) -> Answer:
        from backends.docker.threads import run_apart

        self.is_asking = True
        try:
            # An exit does not wait for this thread: an interrupt ends the question.
            return await run_apart(partial(_asked, question))
        finally:
            self.is_asking = False


@contextlib.contextmanager
def open_control(policy: str | None, audit: str | None) -> Iterator[Control]:
    """Give what `--policy` and `--audit` ask for; at the end the audit log's head is told.

    A policy of the user's own (`policy.toml` in the configuration folder) holds where no other is
    named, and one that a project brings (`remotehands-policy.toml`) makes either stricter.

    Args:
        policy: A profile's name, or a file.
        audit: The file of the audit log.

    Raises:
        ValueError: One of them cannot be used; the text says what is wrong.
    """
    chosen = _chosen(policy)
    if chosen is None:
        if audit is not None:
            raise ValueError("--audit logs the decisions of a policy; name one with --policy")
        yield Control()
        return
    from toolkit.policy import AuditError, AuditLog, Redactor

    try:
        redactor = Redactor.of_variables(chosen.redact_env, os.environ)
        log = None if audit is None else AuditLog(audit, redact=redactor.text)
    except AuditError as error:
        raise ValueError(f"--audit {error}") from None
    except OSError as error:
        raise ValueError(f"--audit {audit}: {error.strerror}") from None
    try:
        yield Control(policy=chosen, audit=log, redactor=redactor)
    finally:
        if log is not None:
            log.close()
            told = f"toolkit: audit log {audit}: {log.entries} entries, head {log.head}"
            print(told, file=sys.stderr)


def verify_audit(file: str, head: str | None) -> int:
    """Tell whether an audit log holds.

    Returns:
        0 if it does, 1 if not, 2 if it cannot be read.
    """
    from toolkit.policy import verify

    try:
        found = verify(file, head)
    except OSError as error:
        return complain(f"{file}: {error.strerror}", EXIT_USAGE)
    if found.problem:
        return complain(f"{file}: entry {found.entries + 1}: {found.problem}", EXIT_ERROR)
    print(f"{found.entries} entries hold; head {found.head}")
    if head is None:
        print("Entries that were cut off at the end are seen only with --head.", file=sys.stderr)
    return 0


def _chosen(policy: str | None) -> PolicyFile | None:
    project = project_file(POLICY_FILE)
    user = _user_policy()
    if policy is None and project is None and user is None:
        return None
    try:
        from toolkit.policy import PROFILES, PolicyFile, load_policy_file, tightened
    except ImportError:
        raise ValueError("a policy needs the extra: pip install remotehands[policy]") from None
    others = [] if project is None else [load_policy_file(project, project=True)]
    if policy is None and user is None:
        return PolicyFile(policies=others[0].policies, limits=others[0].limits)
    if policy in PROFILES:
        return tightened(PolicyFile(policies=(PROFILES[policy],)), *others)
    if policy is not None and os.sep not in policy and not Path(policy).exists():
        raise ValueError(f"--policy {policy}: no such file, and no profile ({', '.join(PROFILES)})")
    return tightened(load_policy_file(policy or str(user)), *others)


def _user_policy() -> Path | None:
    path = user_file().with_name("policy.toml")
    return path if path.is_file() else None


def _can_ask() -> bool:
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


_one_at_a_time = threading.Lock()


def _asked(question: Question, read: Callable[[str], str] = input) -> Answer:
    """Ask on the terminal, in a thread; the end of its input is a no."""
    from toolkit.policy import Answer
    from toolkit.rendering import call_view, terminal
    from toolkit.rendering.diffs import diff_view
    from toolkit.rendering.plain import visible

    console = terminal(stderr=True)
    with _one_at_a_time:
        console.print()
        console.print(call_view(question.context.tool.name, question.context.params))
        if question.preview:
            console.print(diff_view(visible(question.preview, keep="\n\t"), max_lines=40))
        console.print(f"{visible(question.decision.text(question.context.tool.name))}", style="dim")
        for grant in question.always:
            console.print(f"always: {visible(grant)}", style="dim")
        while True:
            try:
                said = read("Allow? [y]es, [n]o, [a]lways: ").strip()
            except (EOFError, KeyboardInterrupt):
                return Answer(allow=False, reason="nobody answered")
            if said.lower() in ("y", "yes"):
                return Answer(allow=True)
            if said.lower() in ("a", "always"):
                return Answer(allow=True, always=True)
            if said.lower() in ("n", "no", ""):
                with contextlib.suppress(EOFError, KeyboardInterrupt):
                    return Answer(allow=False, reason=read("Why not, for the model: ").strip())
                return Answer(allow=False)
