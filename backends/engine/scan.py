"""Find the matching lines of one file, in bounded memory, with Python's own means.

A file is text unless it holds a NUL byte. A byte order mark is dropped; UTF-16 with a mark is read
as text. A line ends at LF; a CR before it belongs to the ending.
"""

import codecs
import itertools

from backends.engine.dialect import decode, is_ascii

#: A file up to this size is looked at in one piece; a longer one block by block.
BLOCK = 4 << 20
#: A line over BLOCK is matched in pieces that share this much: what is longer may be missed there.
_OVERLAP = 1 << 16
#: Lines that turn out not to match, between two calls of `check`.
_CHECK_EVERY = 256
_UTF16 = {
    codecs.BOM_UTF16_LE: codecs.utf_16_le_decode,
    codecs.BOM_UTF16_BE: codecs.utf_16_be_decode,
}


class Line:
    """One matching line.

    Attributes:
        number: 1-based number of the line.
        text: The line without its ending, cut to the wanted length around the match.
        cut: True when it is not the whole line.
    """

    __slots__ = ("cut", "number", "text")

    def __init__(self, number, text, cut):
        self.number = number
        self.text = text
        self.cut = cut

    @classmethod
    def around(cls, number, raw, span, max_chars):
        """Return the Line for the bytes of a line and the span of its match in `decode(raw)`."""
        text = show(raw)
        if len(text) <= max_chars:
            return cls(number, text, False)
        start, end = span
        if len(text) != len(raw):
            # A byte that is not UTF-8 may be shown together with its neighbour.
            prefix = decode(raw)[:start].encode("utf-8", "surrogateescape")
            start, end = len(show(prefix)), len(show(prefix)) + end - start
        room = max(0, max_chars - (end - start))
        first = max(0, min(start - room // 2, len(text) - max_chars))
        return cls(number, text[first : first + max_chars], True)


class Wanted:
    """What a search looks for.

    Args:
        regex: The dialect's Regex.
        max_chars: Most characters of a line that are shown.
        check: Called now and then; it may raise to end the search.
    """

    __slots__ = ("check", "max_chars", "regex")

    def __init__(self, regex, max_chars, check):
        self.regex = regex
        self.max_chars = max_chars
        self.check = check


def show(raw):
    """Return bytes as text in which U+FFFD stands for what is not UTF-8."""
    return raw.decode("utf-8", "replace")


def scan_file(chunks, wanted, limit):
    """Return (lines, binary): the first `limit` matching Lines, and whether the file holds NUL.

    For a binary file every NUL ends a line, and one line that matches is enough: it tells that
    something was left out, and is not to be shown.

    Args:
        chunks: The content, in order.
        wanted: Wanted.
        limit: Most lines, 1 or more.
    """
    wanted.check()
    chunks = iter(chunks)
    first, second = next(chunks, b""), next(chunks, None)
    if second is None and _cannot_match(first, wanted.regex):
        return [], False
    chunks = itertools.chain((first,), () if second is None else (second,), chunks)
    found = []
    number = 1
    binary = False
    for block, shared, whole in _blocks(_as_utf8(chunks)):
        wanted.check()
        binary = binary or b"\0" in block
        if binary:
            found = found[:1] or _scan_lines(block.replace(b"\0", b"\n"), wanted, 1, 1)
            if found:
                break
        elif len(found) < limit:
            if whole and not shared:
                found += _scan_lines(block, wanted, number, limit - len(found))
            elif not found or found[-1].number != number:
                found += _scan_piece(block, shared, whole, wanted, number)
        number += block.count(b"\n")
    return found, binary


def _cannot_match(data, regex):
    """Return True when a look at a whole small file is enough: most files have no match."""
    if data[:2] in _UTF16:
        return False
    if regex.required:
        return regex.required not in (data.lower() if regex.folded else data)
    return b"\0" not in data and is_ascii(data) and not regex.scanner(True).search(data)


def _scan_lines(block, wanted, number, limit):
    """Return at most `limit` matching Lines of a block of whole lines, the first being `number`."""
    found = []
    counted = rejected = 0
    for start, end in _candidates(block, wanted.regex):
        raw = without_ending(block, start, end)
        span = wanted.regex.search(raw)
        if span is None:
            rejected += 1
            if rejected % _CHECK_EVERY == 0:
                wanted.check()
            continue
        number += block.count(b"\n", counted, start)
        counted = start
        found.append(Line.around(number, raw, span, wanted.max_chars))
        if len(found) == limit:
            break
    return found


def without_ending(block, start, end):
    """Return the line between two places, without the CR that belongs to the LF at `end`."""
    if end < len(block) and end > start and block[end - 1] == 13:
        end -= 1
    return block[start:end]


def _candidates(block, regex):
    """Yield (start, end) in bytes of lines, all that match among them, without their LF."""
    if regex.required:
        text = block.lower() if regex.folded else block
        at = text.find(regex.required)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            yield block.rfind(b"\n", 0, at) + 1, end
            at = text.find(regex.required, end + 1)
    elif is_ascii(block):
        for span in _scanned(block, b"\n", regex.scanner(True)):
            yield span
    else:
        text = decode(block)
        byte = char = 0
        for start, end in _scanned(text, "\n", regex.scanner(False)):
            byte += _size(text[char:start])
            length = _size(text[start:end])
            yield byte, byte + length
            byte += length
            char = end


def _size(text):
    return len(text.encode("utf-8", "surrogateescape"))


def _scanned(text, line_feed, scanner):
    at = 0
    while at < len(text):
        match = scanner.search(text, at)
        if match is None:
            return
        end = text.find(line_feed, match.start())
        end = len(text) if end < 0 else end
        start = text.rfind(line_feed, 0, match.start()) + 1
        if start == len(text):
            return  # an empty match behind the last line
        yield start, end
        at = end + 1


def _scan_piece(block, shared, whole, wanted, number):
    """Return the Line, in a list, when a piece of a very long line matches."""
    raw = without_ending(block, 0, len(block) - block.endswith(b"\n"))
    span = wanted.regex.search_piece(raw) if shared else wanted.regex.search(raw)
    if span is None or (not whole and span[1] == len(decode(raw))):
        return []  # a match at the very end may go on, or be a "$": the next piece shares it
    line = Line.around(number, raw, span, wanted.max_chars)
    line.cut = True
    return [line]


def context_of(chunks, wanted, numbers, context):
    """Return {number: (before, after)} of the [number, text] lines near each of `numbers`.

    Lines that match are left out, shown or not.
    """
    near = set()
    for number in numbers:
        near.update(range(number - context, number + context + 1))
    near.difference_update(numbers)
    raws = {}
    number = 1
    for block, shared, _ in _blocks(_as_utf8(chunks)):
        after = number + block.count(b"\n")
        if not shared and not near.isdisjoint(range(number, after + 1)):
            _note_lines(block, number, near, raws)
        number = after
        if number > max(numbers) + context:
            break
    texts = {
        number: show(raw)[: wanted.max_chars]
        for number, raw in raws.items()
        if wanted.regex.search(raw) is None
    }
    return {
        number: (
            [[one, texts[one]] for one in range(number - context, number) if one in texts],
            [[one, texts[one]] for one in range(number + 1, number + context + 1) if one in texts],
        )
        for number in numbers
    }


def _note_lines(block, number, near, raws):
    start = 0
    while start < len(block):
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        if number in near:
            raws[number] = without_ending(block, start, end)
        start = end + 1
        number += 1


def _as_utf8(chunks):
    """Yield the chunks without a byte order mark, UTF-16 turned into UTF-8."""
    chunks = iter(chunks)
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= 3:
            break
    decoder = _UTF16.get(head[:2])
    if decoder is None:
        yield head[3:] if head.startswith(codecs.BOM_UTF8) else head
        for chunk in chunks:
            yield chunk
        return
    rest = head[2:]
    for chunk in chunks:
        text, used = decoder(rest, "replace", False)
        yield text.encode("utf-8", "replace")
        rest = rest[used:] + chunk
    yield decoder(rest, "replace", True)[0].encode("utf-8", "replace")


def _blocks(chunks):
    """Yield (block, shared, whole): runs of whole lines, or pieces of a very long one.

    `shared` is how many of its first bytes were in the piece before; 0 for the beginning of a line.
    `whole` is False when the line goes on in the next piece.
    """
    data = b""
    shared = 0
    for chunk in _joined(chunks):
        data += chunk
        while len(data) >= BLOCK:
            end = (data.find(b"\n", shared) if shared else data.rfind(b"\n")) + 1
            yield data[: end or None], shared, bool(end)
            shared = 0 if end else _OVERLAP
            data = data[end or -_OVERLAP :]
            if shared:
                break
    if shared:
        end = data.find(b"\n", shared) + 1
        yield data[: end or None], shared, True
        data = data[end:] if end else b""
    if data or not shared:
        yield data, 0, True


def _joined(chunks):
    """Yield the chunks joined to BLOCK bytes or more, but for the last."""
    held = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= BLOCK:
            yield b"".join(held)
            held = []
            size = 0
    yield b"".join(held)
