"""What a pattern of the dialect is made of, and what can be told from it without matching."""

from backends.engine import characters


class Chars:
    """One character out of a set, or out of all that are not in it."""

    __slots__ = ("names", "negated", "ranges")

    def __init__(self, ranges, names="", negated=False):
        self.ranges = ranges
        self.names = names
        self.negated = negated

    @classmethod
    def literal(cls, char, ignore_case):
        """Return the node for one character."""
        if not ignore_case:
            return cls([(ord(char), ord(char))])
        same = characters.same_but_case(char)
        return cls(characters.normal([(ord(one), ord(one)) for one in same]))

    def all(self):
        """Return the set in full, the named ones included."""
        if not self.names:
            return self.ranges
        ranges = list(self.ranges)
        for name in self.names:
            ranges += characters.named(name)
        return characters.normal(ranges)

    def single(self):
        """Return the one character, in lower case for an ASCII letter in both; None for more."""
        if self.names or self.negated:
            return None
        if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]:
            return chr(self.ranges[0][0])
        if len(self.ranges) == 2 and self.ranges[0][0] + 32 == self.ranges[1][0]:
            (upper, end), (lower, last) = self.ranges
            if upper == end and lower == last and 0x41 <= upper <= 0x5A:
                return chr(lower)
        return None

    def is_folded(self):
        """Return True when `single` is an ASCII letter in both cases."""
        return len(self.ranges) == 2


class Mark:
    """A place between characters: "^", "$", "b" or "B"."""

    __slots__ = ("kind",)

    def __init__(self, kind):
        self.kind = kind


class Sequence:
    """One node after the other."""

    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items


class Choice:
    """One node out of several."""

    __slots__ = ("branches",)

    def __init__(self, branches):
        self.branches = branches


class Repeat:
    """A node `least` to `most` times; `most` is None for no bound."""

    __slots__ = ("item", "lazy", "least", "most")

    def __init__(self, item, least, most, lazy):
        self.item = item
        self.least = least
        self.most = most
        self.lazy = lazy


def longest_run(node):
    """Return (text, folded, whole): the longest text that every match holds.

    `folded` tells that the text stands in lower case for any; `whole` that it is all of `node`.
    """
    runs = [[]]
    whole = _collect_runs(node, runs)
    best = max(runs, key=lambda run: len("".join(char for char, _ in run).encode("utf-8")))
    folded = any(is_folded for _, is_folded in best)
    text = "".join(char.lower() if folded and char < "\x80" else char for char, _ in best)
    return text, folded, whole and len(runs) == 1


def _collect_runs(node, runs):
    if isinstance(node, Chars):
        char = node.single()
        if char is None:
            runs.append([])
            return False
        runs[-1].append((char, node.is_folded()))
        return True
    if isinstance(node, Sequence):
        whole = [_collect_runs(item, runs) for item in node.items]
        return all(whole)
    if isinstance(node, Repeat) and node.least:
        runs.append([])
        _collect_runs(node.item, runs)
    if not isinstance(node, Mark):
        runs.append([])
    return False


def open_repeats(node):
    """Return how many repetitions without a bound there are; nested ones count many times."""
    if isinstance(node, Repeat):
        inner = open_repeats(node.item)
        return 1 + 10 * inner if node.most is None else inner * node.most
    if isinstance(node, (Sequence, Choice)):
        items = node.items if isinstance(node, Sequence) else node.branches
        return sum(open_repeats(item) for item in items)
    return 0


def has_place_after_end(node):
    """Return True when some other place may be asked for where "$" was found already."""
    places = list(_places(node, repeated=False))
    if ("$", True) in places:
        return len(places) > 1
    kinds = [kind for kind, _ in places]
    return "$" in kinds and any(kind != "$" for kind in kinds[kinds.index("$") :])


def _places(node, repeated):
    """Yield (kind, whether it stands in a repetition) of every place, in order."""
    if isinstance(node, Mark):
        yield node.kind, repeated
    elif isinstance(node, Repeat):
        for place in _places(node.item, repeated=True):
            yield place
    elif isinstance(node, (Sequence, Choice)):
        for item in node.items if isinstance(node, Sequence) else node.branches:
            for place in _places(item, repeated):
                yield place
