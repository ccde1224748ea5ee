r"""Globs for names: what `find` and the `glob` of `grep` understand. Matching takes linear time.

`*` and `?` stay inside one part of a path, `?` and `[...]` are one character, `**` as a whole part
is any number of parts, `{a,b}` is one of several, and `\` takes the next character as it stands. A
pattern without "/" fits names at any depth; one with "/" is anchored at the folder searched. A
leading "./" is dropped; a "/" at the end asks for folders. Hidden names are like any other.
"""

import re

from backends.engine.faults import Fault
from backends.engine.wildcards import (
    Malformed,
    PathMatcher,
    bracket,
    is_globstar,
    is_literal,
    part_matcher,
    tokenize,
)

MAX_ALTERNATIVES = 1000
MAX_PATTERN = 10000


def compile_glob(pattern):
    """Return the Glob that `pattern` (str) stands for.

    Raises:
        Fault: "invalid_pattern" with the pattern, what is wrong with it, and where.
    """
    try:
        return Glob(pattern)
    except Malformed as malformed:
        shown = pattern[:MAX_PATTERN].encode("utf-8", "replace").decode("utf-8")
        raise Fault("invalid_pattern", shown, malformed.reason, malformed.position)


class Glob:
    """A compiled glob.

    Attributes:
        anchored: True when it fits below the folder searched, not at any depth.
        literal: The one path (bytes) that it can fit, when it has no wildcards, else None.
    """

    def __init__(self, pattern):
        if "\0" in pattern:
            raise Malformed("a name never holds NUL", pattern.index("\0"))
        if len(pattern) > MAX_PATTERN:
            raise Malformed("it is longer than %d characters" % MAX_PATTERN, None)
        body = re.sub(r"\A(?:\./+)+", "", pattern)
        name = re.sub(r"\A(?:\*\*/+)+", "", body)
        if name.rstrip("/") not in ("", "**") and "/" not in name.rstrip("/"):
            body = name  # a name at any depth, which takes no look at the folders above it
        self.anchored = "/" in body.rstrip("/")
        self._folders_only = body.endswith("/")
        alternatives = [_parts(text) for text in _alternatives(body, len(pattern) - len(body))]
        self.literal = None
        if len(alternatives) == 1 and all(is_literal(part) for part in alternatives[0]):
            path = "/".join("".join(part) for part in alternatives[0])
            self.literal = path.encode("utf-8", "surrogateescape")
        if self.anchored:
            self._paths = [PathMatcher(parts, "utf-8") for parts in alternatives]
            self._name_fits = None
            self._fits = _any([path.match for path in self._paths])
        else:
            self._paths = []
            self._name_fits = _any([part_matcher(parts[0], "utf-8") for parts in alternatives])
            self._fits = lambda path: self._name_fits(path[path.rfind(b"/") + 1 :])

    def match(self, path, is_directory):
        """Return True when the glob fits `path` (bytes, relative, without "/" at its end)."""
        return (is_directory or not self._folders_only) and self._fits(path)

    def matching(self, prefix, keys):
        """Return the paths of a run (see `walk.runs`) that the glob fits."""
        folder = keys[-1] if keys[-1].endswith(b"/") else None
        names = keys if folder is None else keys[:-1]
        if self._folders_only:
            found = []
        elif self._name_fits is not None:
            fits = self._name_fits
            found = [prefix + name for name in names if fits(name)]
        else:
            found = [prefix + name for name in names if self._fits(prefix + name)]
        if folder is not None and self._fits(prefix + folder[:-1]):
            found.append(prefix + folder)
        return found

    def may_hold(self, folder):
        """Return False when nothing below `folder` (bytes, relative) can fit."""
        if not self.anchored:
            return True
        names = folder.split(b"/")
        return any(path.may_hold(names) for path in self._paths)


def _any(matchers):
    if len(matchers) == 1:
        return matchers[0]
    return lambda value: any(match(value) for match in matchers)


def _parts(text):
    """Return the parts of one alternative, each a list of tokens."""
    parts = [part for part in tokenize(text) if part and part != ["."]]
    if not parts:
        raise Malformed("it names nothing", None)
    if [".", "."] in parts:
        raise Malformed("it cannot lead out of the folder by ..; give the folder as path", None)
    if len(parts) > 1 and all(is_globstar(part) for part in parts):
        return parts[:1]
    return parts


def _alternatives(text, offset):
    """Return the patterns without braces that `text` stands for; `offset` is its own position."""
    start = _find(text, 0, "{", offset)
    if start is None:
        return [text]
    options = []
    at = start + 1
    depth = 1
    option = at
    while depth:
        at = _find(text, at, "{,}", offset)
        if at is None:
            raise Malformed("the { is not closed; write \\{ for the character", offset + start)
        depth += {"{": 1, ",": 0, "}": -1}[text[at]]
        if depth == 0 or (depth == 1 and text[at] == ","):
            options.append(text[option:at])
            option = at + 1
        at += 1
    if len(options) == 1 and re.match(r"[^.,]+\.\.[^.]+\Z", options[0]):
        raise Malformed("ranges {1..3} are not supported; write {1,2,3} or [1-3]", offset + start)
    heads = [one for each in options for one in _alternatives(each, offset + start + 1)]
    tails = _alternatives(text[at:], offset + at)
    if len(heads) * len(tails) > MAX_ALTERNATIVES:
        raise Malformed("it has more than %d alternatives" % MAX_ALTERNATIVES, offset + start)
    return [text[:start] + head + tail for head in heads for tail in tails]


def _find(text, at, wanted, offset):
    """Return the place of the next of the `wanted` characters outside brackets, or None."""
    while at < len(text):
        char = text[at]
        if char in wanted:
            return at
        if char == "\\":
            at += 2
        elif char == "[":
            try:
                at = bracket(text, at)[1]
            except Malformed as malformed:
                raise Malformed(malformed.reason, offset + malformed.position)
        else:
            at += 1
    return None
