"""How many steps a regular expression may take at worst, judged by its shape."""

from __future__ import annotations

import math
import re

__all__ = ["worst_case_steps"]

_REPEAT = re.compile(r"[*+?]|\{(\d*)(,?)(\d*)\}")


def worst_case_steps(pattern: str, total: int, longest: int) -> float:
    """Return an upper bound for the steps of a backtracking engine, infinity for exponential ones.

    A search starts at each character. Each unbounded repeat may then try every length up to the
    line's end, and each choice (a bounded repeat, an alternative) every one of its ways. A repeat
    of something that can itself be matched in several ways is taken as unbounded in steps.

    Args:
        pattern: A pattern of Python's `re` that compiles.
        total: Characters to search, in all lines.
        longest: Characters of the longest line.
    """
    scan = _Scan(pattern, float(max(longest, 2)))
    return max(total, 1) * scan.ways()


class _Scan:
    """One pass over a pattern that counts the ways to match at one place."""

    def __init__(self, pattern: str, longest: float) -> None:
        self._pattern = pattern
        self._longest = longest
        self._at = 0

    def ways(self) -> float:
        """Return the product of all choices up to the end or the group's closing parenthesis."""
        ways, branches = 1.0, 1
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char == ")":
                break
            if char == "|":
                branches += 1
                self._at += 1
                continue
            ways *= self._repeated(self._atom(char))
        return ways * branches

    def _atom(self, char: str) -> float:
        """Pass one atom; return in how many ways it can match at one place."""
        if char == "(":
            return self._group()
        if char == "[":
            self._pass_class()
        else:
            self._at += 2 if char == "\\" else 1
        return 1.0

    def _group(self) -> float:
        self._at += 1
        flags = re.compile(r"\?[a-zA-Z-]*[:)]|\?[<=!>]|\?P<\w+>").match(self._pattern, self._at)
        if flags:
            self._at = flags.end()
            if flags[0].endswith(")"):  # flags alone, as "(?i)"
                return 1.0
        ways = self.ways()
        self._at += 1
        return ways

    def _pass_class(self) -> None:
        self._at += 1
        if self._pattern.startswith("^", self._at):
            self._at += 1
        first = self._at
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char == "]" and self._at > first:
                break
            self._at += 2 if char == "\\" else 1
        self._at += 1

    def _repeated(self, ways: float) -> float:
        """Pass the repeat after an atom, if there is one; return the ways of both together."""
        found = _REPEAT.match(self._pattern, self._at)
        if found is None or found[0] == "{}":
            return ways
        self._at = found.end()
        if self._pattern.startswith(("?", "+"), self._at):  # not greedy, possessive
            self._at += 1
        if found[0] == "?":
            return 1.0 + ways
        least, most = self._bounds(found)
        if ways > 1.0 and most > 1:
            return math.inf
        return max(1.0, min(most, self._longest) - least + 1)

    def _bounds(self, found: re.Match[str]) -> tuple[float, float]:
        if found[0] in ("*", "+"):
            return 0.0, math.inf
        least = float(found[1] or 0)
        if not found[2]:
            return least, least
        return least, float(found[3]) if found[3] else math.inf
