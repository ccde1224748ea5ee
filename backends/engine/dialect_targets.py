"""How each engine is told of a pattern.

`emit` makes the frame, which is the same everywhere; a target says how sets and places are written.
"""

from backends.engine import characters
from backends.engine.dialect_nodes import Chars, Choice, Mark, Sequence


class CannotSay(Exception):
    """The target has no exact way to write the pattern."""


def emit(node, target, places=()):
    """Return a pattern as text for one target.

    Args:
        node: Root of the pattern.
        target: TEXT, ASCII, RG or ERE.
        places: What is written for a place ("^", "$", "b", "B") instead of the target's own.

    Raises:
        CannotSay: The target has no exact way to write it.
    """
    if isinstance(node, Chars):
        return target.chars(node)
    if isinstance(node, Mark):
        return places[node.kind] if node.kind in places else target.mark(node.kind)
    if isinstance(node, Sequence):
        return "".join(emit(item, target, places) for item in node.items)
    if isinstance(node, Choice):
        return target.group("|".join(emit(branch, target, places) for branch in node.branches))
    item = emit(node.item, target, places)
    if not isinstance(node.item, Chars) or target is _Ere:
        item = target.group(item)
    return item + target.times(node)


class _Text:
    """Python's `re` on text from `decode`."""

    @classmethod
    def chars(cls, node):
        ranges = node.all()
        if node.negated:
            return "[^%s]" % cls.ranges(characters.normal(ranges + characters.NEVER))
        return cls.one_of(ranges)

    @classmethod
    def one_of(cls, ranges):
        if not ranges:
            return "(?!)"
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return cls.char(ranges[0][0])
        return "[%s]" % cls.ranges(ranges)

    @classmethod
    def ranges(cls, ranges):
        return "".join(
            cls.char(first) if first == last else cls.char(first) + "-" + cls.char(last)
            for first, last in ranges
        )

    @staticmethod
    def char(code):
        if code >= 0xA0:
            return chr(code)
        return chr(code) if chr(code).isalnum() else "\\x%02x" % code

    @classmethod
    def mark(cls, kind):
        if kind in "^$":
            return {"^": "^", "$": "\\Z"}[kind]
        word = "[%s]" % cls.ranges(characters.named("w"))
        return _BOUNDARY[kind].replace("W", word)

    @staticmethod
    def group(text):
        return "(?:%s)" % text

    @staticmethod
    def times(node):
        most = "" if node.most is None else node.most
        return "{%d,%s}%s" % (node.least, most, "?" if node.lazy else "")


_BOUNDARY = {"b": "(?:(?<=W)(?!W)|(?<!W)(?=W))", "B": "(?:(?<=W)(?=W)|(?<!W)(?!W))"}


class _Ascii(_Text):
    """Python's `re` on bytes that are all ASCII: what else a set holds cannot occur."""

    @classmethod
    def chars(cls, node):
        ranges = characters.within(node.all(), 0x7F)
        if node.negated:
            return "[^%s]" % cls.ranges(characters.normal([(10, 10), *ranges]))
        return cls.one_of(ranges)

    @classmethod
    def mark(cls, kind):
        # Python's own \B is false in an empty line before 3.14.
        return _BOUNDARY["B"].replace("W", "\\w") if kind == "B" else _ASCII_MARKS[kind]


_ASCII_MARKS = {"^": "^", "$": "\\Z", "b": "\\b"}


class _Rg(_Text):
    """ripgrep, whose lines keep the CR of their ending."""

    @classmethod
    def chars(cls, node):
        names = "".join("\\" + name for name in node.names)
        if node.negated:
            return "[^\\n%s%s]" % (cls.ranges(node.ranges), names)
        if names:
            return "[%s%s]" % (cls.ranges(node.ranges), names)
        return cls.one_of(node.ranges)

    @staticmethod
    def char(code):
        if code >= 0xA0:
            return chr(code)
        return chr(code) if chr(code).isalnum() else "\\x{%x}" % code

    @classmethod
    def mark(cls, kind):
        # Its \B is false beside a byte that is not UTF-8; without it, it only finds more.
        return {"^": "^", "$": "$", "b": "\\b", "B": "(?:)"}[kind]


class _Ere:
    """POSIX extended expressions on bytes."""

    @classmethod
    def chars(cls, node):
        if node.negated or node.names:
            raise CannotSay
        if sum(last - first + 1 for first, last in node.ranges) > 128:
            raise CannotSay
        members = [
            chr(code) for first, last in node.ranges for code in range(first, last + 1) if code
        ]
        narrow = [char for char in members if char < "\x80"]
        wide = [char for char in members if char >= "\x80"]
        if not members:
            raise CannotSay
        if not wide:
            return cls.bracket(narrow)
        if len(members) == 1:
            return wide[0]
        return cls.group("|".join(wide + ([cls.bracket(narrow)] if narrow else [])))

    @staticmethod
    def bracket(members):
        if len(members) == 1:
            return "\\" + members[0] if members[0] in "\\.[*+?{()|^$" else members[0]
        # In a bracket a backslash is itself, and these four are so only in their own places.
        text = "".join(char for char in members if char not in "]^[-")
        return "[%s%s%s%s%s]" % (
            "]" if "]" in members else "",
            text,
            "[" if "[" in members else "",
            "^" if "^" in members and (text or "]" in members or "[" in members) else "",
            "-" if "-" in members else "",
        )

    @staticmethod
    def mark(kind):
        if kind not in "^$":
            raise CannotSay
        return "^" if kind == "^" else "\r?$"

    @staticmethod
    def group(text):
        # What an empty branch means is not defined.
        if not text or text.startswith("|") or text.endswith("|") or "||" in text:
            raise CannotSay
        return "(%s)" % text

    @staticmethod
    def times(node):
        # 255 is the least that every system has to allow.
        if node.least > 255 or (node.most or 0) > 255:
            raise CannotSay
        return "{%d,%s}" % (node.least, "" if node.most is None else node.most)


TEXT = _Text
ASCII = _Ascii
RG = _Rg
ERE = _Ere
