"""Which lines differ between two texts, as the hunks of a unified diff."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

__all__ = ["hunks"]

_CONTEXT = 3
#: A block without anchors that takes more insertions and deletions is replaced as a whole.
_MOST_EDITS = 256
#: Texts made to be slow could nest without an end.
_DEPTH = 12
#: First and last line (0-based, exclusive) of a block on the old and on the new side.
Block = tuple[int, int, int, int]


def hunks(old: bytes, new: bytes) -> Iterator[bytes]:
    """Yield the hunks that turn one text into the other, with three lines of context.

    Lines end at LF only. What is found is right but need not be the shortest; it takes about the
    time of sorting, whatever the texts.
    """
    old_lines, new_lines = _lines(old), _lines(new)
    for blocks in _grouped(_blocks(old_lines, new_lines)):
        start = max(blocks[0][0] - _CONTEXT, 0)
        end = min(blocks[-1][1] + _CONTEXT, len(old_lines))
        new_start = blocks[0][2] - (blocks[0][0] - start)
        new_end = blocks[-1][3] + (end - blocks[-1][1])
        yield b"@@ -%s +%s @@\n" % (_range(start, end), _range(new_start, new_end))
        at = start
        for first, last, new_first, new_last in blocks:
            yield from _marked(b" ", old_lines[at:first])
            yield from _marked(b"-", old_lines[first:last])
            yield from _marked(b"+", new_lines[new_first:new_last])
            at = last
        yield from _marked(b" ", old_lines[at:end])


def _lines(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _range(start: int, end: int) -> bytes:
    # Of no line, the one before is named.
    count = end - start
    first = start + 1 if count else start
    return b"%d" % first if count == 1 else b"%d,%d" % (first, count)


def _marked(mark: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield mark + line
        if not line.endswith(b"\n"):
            yield b"\n\\ No newline at end of file\n"


def _grouped(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield runs of blocks whose contexts touch."""
    group: list[Block] = []
    for block in blocks:
        if group and block[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _blocks(old: Sequence[bytes], new: Sequence[bytes]) -> list[Block]:
    """Return the blocks that differ, in order.

    Lines that both have exactly once hold the two texts together (a patience diff).
    """
    found: list[Block] = []
    waiting = [((0, len(old), 0, len(new)), 0)]
    while waiting:
        block, depth = waiting.pop()
        a, b, c, d = block = _trimmed(old, new, block)
        if a == b or c == d:
            if a != b or c != d:
                found.append(block)
            continue
        anchors = _anchors(old, new, block) if depth < _DEPTH else []
        if anchors:
            ends = [(a - 1, c - 1), *anchors, (b, d)]
            gaps = [(i + 1, k, j + 1, m) for (i, j), (k, m) in pairwise(ends)]
            waiting.extend((gap, depth + 1) for gap in reversed(gaps))
        else:
            found.extend(_edits(old, new, block))
    return found


def _trimmed(old: Sequence[bytes], new: Sequence[bytes], block: Block) -> Block:
    """Return a block without the lines that are equal at its two ends."""
    a, b, c, d = block
    while a < b and c < d and old[a] == new[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
    return a, b, c, d


def _edits(old: Sequence[bytes], new: Sequence[bytes], block: Block) -> list[Block]:
    """Return a shortest way from one side of a block to the other (Myers), if it is short."""
    a, b, c, d = block
    rows, columns = b - a, d - c
    # How far each diagonal has come with so many edits, and with how many it was before.
    furthest = {1: 0}
    before = []
    for count in range(min(rows + columns, _MOST_EDITS) + 1):
        before.append(furthest.copy())
        for k in range(-count, count + 1, 2):
            x = _step(furthest, k, count)
            y = x - k
            while x < rows and y < columns and old[a + x] == new[c + y]:
                x, y = x + 1, y + 1
            furthest[k] = x
            if x >= rows and y >= columns:
                return _traced(before, block)
    return [block]


def _step(furthest: dict[int, int], k: int, count: int) -> int:
    """Return where a diagonal begins after one more edit: an insertion or a deletion."""
    if k == -count or (k != count and furthest[k - 1] < furthest[k + 1]):
        return furthest[k + 1]
    return furthest[k - 1] + 1


def _traced(before: Sequence[dict[int, int]], block: Block) -> list[Block]:
    """Return the edits on the way back from the end, joined where they touch."""
    a, b, c, d = block
    x, y = b - a, d - c
    found: list[Block] = []
    for count in range(len(before) - 1, 0, -1):
        k = x - y
        furthest = before[count]
        inserted = k == -count or (k != count and furthest[k - 1] < furthest[k + 1])
        k += 1 if inserted else -1
        old_x = furthest[k]
        old_y = old_x - k
        end_x, end_y = (old_x, old_y + 1) if inserted else (old_x + 1, old_y)
        edit = (a + old_x, a + end_x, c + old_y, c + end_y)
        if found and (found[-1][0], found[-1][2]) == (edit[1], edit[3]):
            last = found.pop()
            edit = (edit[0], last[1], edit[2], last[3])
        found.append(edit)
        x, y = old_x, old_y
    return found[::-1]


def _anchors(old: Sequence[bytes], new: Sequence[bytes], block: Block) -> list[tuple[int, int]]:
    """Return pairs of equal lines, each once in the block on either side, in order on both."""
    a, b, c, d = block
    in_old, in_new = _once(old, a, b), _once(new, c, d)
    pairs = [(i, in_new[line]) for line, i in in_old.items() if line in in_new]
    return _rising(sorted(pairs))


def _once(lines: Sequence[bytes], start: int, end: int) -> dict[bytes, int]:
    seen: dict[bytes, int] = {}
    twice = set()
    for at in range(start, end):
        line = lines[at]
        if line in seen:
            twice.add(line)
        seen[line] = at
    for line in twice:
        del seen[line]
    return seen


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest run of pairs in which the second parts rise (patience sorting)."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, (_, second) in enumerate(pairs):
        pile = bisect_left(tops, second)
        before.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [second]
        ends[pile : pile + 1] = [at]
    run = []
    at = ends[-1] if ends else -1
    while at >= 0:
        run.append(pairs[at])
        at = before[at]
    return run[::-1]
