"""What policies say of a call: the first rule that fits an act, the strictest word on any. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.policy.rules import ACTIONS, MOST_HINTS, Action, Policy, Rule, any_fits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.policy.acts import Act, Place

__all__ = ["Decision", "decide", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to happen to a call, and which act of it decided.

    Attributes:
        action: The strictest of what was said of its acts.
        act: The act that it was said of.
        policy: Whose word it was.
        rule: The rule, or None for the policy's default.
        number: The rule's place in the policy, from 1; 0 for the default.
        asks: All acts on which the word was "ask".
    """

    action: Action
    act: Act
    policy: Policy
    rule: Rule | None = None
    number: int = 0
    asks: tuple[Act, ...] = field(default=())

    @property
    def source(self) -> str:
        """Who decided: "rule 3 of profile careful (deny run of `curl`)"."""
        if self.rule is None:
            return f"the default of {self.policy.name}"
        return f"rule {self.number} of {self.policy.name} ({self.rule.describe()})"

    def text(self, tool: str) -> str:
        """Tell a model: what, which rule, why, and what would be allowed."""
        verb = {"allow": "allows", "ask": "asks about", "deny": "denies"}[self.action]
        parts = [f"{self.source} {verb} this: {self.act.shown}."]
        rule = self.rule
        if rule is not None and rule.reason:
            parts.append(f"Why: {rule.reason}.")
        instead = rule.instead if rule is not None and rule.instead else self._hints(tool)
        parts.append(f"Allowed: {instead}." if instead else f"Nothing of {tool} is allowed.")
        return " ".join(parts)

    def _hints(self, tool: str) -> str:
        allowing = [
            rule.describe().removeprefix("allow ")
            for rule in self.policy.rules
            if rule.action == "allow" and (not rule.tools or any_fits(rule.tools, tool))
        ]
        return "; ".join(allowing[:MOST_HINTS])


def judge(policy: Policy, tool: str, act: Act, place: Place) -> Decision:
    """Return what one policy says of one act."""
    for number, rule in policy.concerning(tool, place.target):
        if rule.fits_act(act, place):
            return Decision(action=rule.action, act=act, policy=policy, rule=rule, number=number)
    return Decision(action=policy.default, act=act, policy=policy)


def decide(
    policies: Sequence[Policy],
    tool: str,
    acts: Sequence[Act],
    place: Place,
    *,
    granted: Callable[[Act], bool] = lambda _: False,
) -> Decision:
    """Return the strictest word of any policy on any act.

    Args:
        policies: At least one; each has a veto.
        tool: The tool that is called.
        acts: At least one.
        place: Where it acts.
        granted: Whether an answer that was given before turns "ask" into "allow" for an act.
    """
    strictest: Decision | None = None
    asks: list[Act] = []
    for act in acts:
        for policy in policies:
            said = judge(policy, tool, act, place)
            if said.action == "ask":
                if granted(act):
                    continue
                asks.append(act)
            if strictest is None or _strictness(said) > _strictness(strictest):
                strictest = said
    if strictest is None:
        return Decision(action="allow", act=acts[0], policy=Policy(name="answers given before"))
    return Decision(
        action=strictest.action,
        act=strictest.act,
        policy=strictest.policy,
        rule=strictest.rule,
        number=strictest.number,
        asks=tuple(dict.fromkeys(asks)),
    )


def _strictness(decision: Decision) -> int:
    return ACTIONS.index(decision.action)
