"""The policy as hooks of a runner: one before each call, one after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio.to_thread import run_sync

from toolkit.failures import ToolFailure
from toolkit.hooks import AfterToolCall, BeforeToolCall, Block
from toolkit.policy.acts import Act, Place, acts_of
from toolkit.policy.decisions import Decision, decide
from toolkit.policy.grants import Grant, grant_for
from toolkit.policy.limits import Budget, Limits
from toolkit.policy.preview import preview_call

if TYPE_CHECKING:
    from operations import EditOperations
    from toolkit.policy.audit import AuditLog
    from toolkit.policy.commands import ParsedCommand
    from toolkit.policy.rules import Policy

__all__ = ["Answer", "Ask", "PolicyHook", "Question", "place_of"]


#: Taking more than this apart takes long enough for other calls to notice.
_THREAD_FROM_CHARS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked.

    Attributes:
        context: The call: `context.call`, `context.tool`, `context.arguments`.
        decision: Which rule asks; `decision.asks` are all acts that are asked about.
        command: The command taken apart, for bash.
        preview: For write and edit a unified diff of what would change, or why there is none.
        always: What the answer "always" would allow from now on, in words.
    """

    context: BeforeToolCall
    decision: Decision
    command: ParsedCommand | None
    preview: str | None
    always: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person says.

    Attributes:
        allow: Whether the call may run.
        reason: Why not, for the model.
        always: Do not ask again about `Question.always` while this hook lives.
    """

    allow: bool
    reason: str = ""
    always: bool = False


#: Asks a person; questions come one at a time. When it raises, the answer is no.
Ask = Callable[[Question], Awaitable[Answer]]


def place_of(backend: Any, target: str) -> Place:
    """Return where the tools of an open backend act.

    Args:
        backend: Any backend that is open.
        target: Its URL, for rules over targets.
    """
    facts = backend.facts
    home = "/" if facts is None else facts.home
    return Place(cwd=Place(cwd="/", home=home).canonical(backend.cwd), home=home, target=target)


class PolicyHook:
    """Holds every call against policies; `before` and `after` are hooks for a runner.

    Put `before` behind hooks that change arguments: it judges what it is shown, and what another
    hook makes of a call afterwards is not judged.

    Args:
        policies: Each has a veto: the strictest word counts.
        place: Where the calls act.
        ask: Asks a person; without it, asking means denying.
        operations: Where the files are, for previews; None for no previews.
        limits: Budgets, for as long as this object lives.
        audit: Gets one entry for each decision, and one for each effect if `after` is a hook too.

    Raises:
        ValueError: There is no policy.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        place: Place,
        *,
        ask: Ask | None = None,
        operations: EditOperations | None = None,
        limits: Limits | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        if not policies:
            raise ValueError("policies is empty; without a policy there is nothing to decide by")
        self._policies = tuple(policies)
        self._place = place
        self._ask = ask
        self._operations = operations
        self._budget = Budget(limits or Limits())
        self._audit = audit
        self._grants: list[Grant] = []
        self._asking = anyio.Lock()

    async def before(self, context: BeforeToolCall) -> Block | None:
        """Allow a call (None), or block it with which rule, why, and what would be allowed."""
        tool = context.tool.name
        try:
            acts, command = await self._acts(context)
        except ToolFailure:
            # Such a path cannot be. If the tool may be called at all, it says so itself.
            acts, command = (Act(kind="call", shown=f"call {tool} with a path that is none"),), None
        decision = self._decide(tool, acts)
        if decision.action == "ask":
            async with self._asking:
                decision = self._decide(tool, acts)  # the question before may have answered it
                if decision.action == "ask":
                    return await self._asked(context, decision, command)
        if decision.action == "deny":
            return await self._settled(context, decision, "deny", decision.text(tool))
        return await self._settled(context, decision, "allow", "")

    async def after(self, context: AfterToolCall) -> None:
        """Count what a call has used, and log its effect."""
        self._budget.settle(context)
        if self._audit is not None:
            await self._audit.effect(context)

    async def _acts(self, context: BeforeToolCall) -> tuple[tuple[Act, ...], ParsedCommand | None]:
        look = partial(acts_of, context.tool.name, context.params, self._place)
        command = getattr(context.params, "command", None)
        if isinstance(command, str) and len(command) >= _THREAD_FROM_CHARS:
            return await run_sync(look)
        return look()

    def _decide(self, tool: str, acts: Sequence[Act]) -> Decision:
        def granted(act: Act) -> bool:
            return any(grant.fits(tool, act) for grant in self._grants)

        return decide(self._policies, tool, acts, self._place, granted=granted)

    async def _asked(
        self, context: BeforeToolCall, decision: Decision, command: ParsedCommand | None
    ) -> Block | None:
        tool = context.tool.name
        text = decision.text(tool)
        if self._ask is None:
            text = f"{text} Nobody can be asked here, so it is denied."
            return await self._settled(context, decision, "deny", text)
        grants = [grant_for(tool, act) for act in decision.asks]
        preview = None
        if self._operations is not None:
            preview = await preview_call(tool, context.params, self._operations, self._place.cwd)
        question = Question(
            context=context,
            decision=decision,
            command=command,
            preview=preview,
            always=tuple(dict.fromkeys(grant.describe() for grant in grants)),
        )
        try:
            answer = _checked(await self._ask(question))
        except BaseException as error:
            said = f"denied: the question got no answer ({type(error).__name__}: {error})"
            with anyio.CancelScope(shield=True):
                block = await self._settled(context, decision, "deny", said)
            if isinstance(error, Exception):
                return block
            raise
        if not answer.allow:
            said = f"denied when asked: {answer.reason or 'no reason was given'}"
            return await self._settled(context, decision, "deny", f"{said}. ({text})")
        if answer.always:
            self._grants += grants
        return await self._settled(context, decision, "allow", "allowed when asked")

    async def _settled(
        self, context: BeforeToolCall, decision: Decision, action: str, text: str
    ) -> Block | None:
        if action == "allow":
            refusal = self._budget.refusal(context)
            if refusal is not None:
                action, text = "deny", f"denied: {refusal}"
        if self._audit is not None:
            try:
                await self._audit.decision(context, decision, action, text, self._place.target)
            except OSError as error:
                return Block(reason=f"denied: the audit log cannot be written ({error})")
        if action == "deny":
            return Block(reason=text)
        self._budget.take(context)
        return None


def _checked(answer: object) -> Answer:
    if not isinstance(answer, Answer):
        raise TypeError(f"ask returned {type(answer).__name__}, no Answer")
    return answer
