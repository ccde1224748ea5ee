"""Sets of characters that a regular expression may name, the same on every Python and beside rg.

A set is a sorted list of (first, last) code points that do not touch. The tables are written out,
because those built into Python differ by version, and from ripgrep's.
"""

#: The last code point that has an upper and a lower case.
_LAST_CASED = 0x1E943
_LAST = 0x10FFFF
#: A line never holds LF, and no text holds these; lone surrogates stand for bytes that are not
#: UTF-8, and nothing in a pattern matches those.
NEVER = [(0x0A, 0x0A), (0xD800, 0xDFFF)]

# Unicode 15.0, as ripgrep 14 has it: alphabetic characters, marks, decimal digits, connectors and
# joiners. Each word is the distance from the end of the range before, and, after "+", the length.
_WORD = (
    "30+9 8+19 5 2+19 30 b 5 6+16 2+1e 2+1c9 5+b f+4 8 2 12+74 2+1 3+3 2 7 2+2 2 2+13 2+52 2+8a "
    "2+ac 2+25 3 7+28 9+2c 2 2+1 2+1 2 9+1a 5+3 1e+a 6+49 5+65 2+7 3+9 2+12 3 11+3a 3+64 f+35 5 "
    "3 3+2d 13+1b 5+a 6+17 2+5 a+49 2+80 3+9 2+12 2+7 3+1 3+15 2+6 2 4+3 3+8 3+1 3+3 9 5+1 2+4 "
    "3+b b 2 3+2 2+5 5+1 3+15 2+6 2+1 2+1 2+1 3 2+4 5+1 3+2 4 8+3 2 8+f c+2 2+8 2+2 2+15 2+6 "
    "2+1 2+4 3+9 2+2 2+2 3 10+3 3+9 a+6 2+2 2+7 3+1 3+15 2+6 2+1 2+4 3+8 3+1 3+2 8+2 5+1 2+4 "
    "3+9 2 11+1 2+5 4+2 2+3 4+1 2 2+1 4+1 4+2 4+b 5+4 4+2 2+3 3 7 f+9 11+c 2+2 2+16 2+f 3+8 2+2 "
    "2+3 8+1 2+2 3 3+3 3+9 11+3 2+7 2+2 2+16 2+9 2+4 3+8 2+2 2+3 8+1 7+1 2+3 3+9 2+2 d+c 2+2 "
    "2+32 2+2 2+4 6+3 8+4 3+9 b+5 2+2 2+11 4+17 2+8 2 3+6 4 5+5 2 2+7 7+9 3+1 e+39 6+e 2+9 28+1 "
    "2 2+4 2+17 2 2+16 3+4 2 2+6 2+9 3+3 21 18+1 7+9 c 2 2 5+9 2+23 5+13 2+11 2+23 a 3a+49 7+4d "
    "3+25 2 6 3+2a 2+14c 2+3 3+6 2 2+3 3+28 2+3 3+20 2+3 3+6 2 2+3 3+e 2+38 2+3 3+42 3+2 21+f "
    "11+55 3+5 4+26b 3+10 2+19 6+4a 4+a 8+15 a+15 c+13 d+c 2+2 2+1 d+53 4 5+1 3+9 22+2 2+a 7+58 "
    "8+2a 6+45 b+1e 2+b 5+b b+27 3+4 c+2b 5+19 7+9 27+1b 5+3e 2+1c 3+a 7+9 e 9+1e 32+4c 4+9 "
    "12+8 d+73 d+37 9+9 4+30 3+8 8+2a 3+2 11+2 2+26 6+215 3+5 3+25 3+5 3+7 2 2 2 2+1e 3+34 2+6 "
    "2 4+2 2+6 4+3 3+5 5+c 6+2 2+6 10+1 32+1 14 1d e 11+c 34+20 12 5 3+9 2 4+4 7 2 2 2+3 2+a "
    "3+3 6+4 5 12+28 32e+33 717+e4 7+8 d+25 2 6 3+37 8 10+17 a+6 2+6 2+6 2+6 2+6 2+6 2+6 2+6 "
    "2+1f 30 1d6+2 1a+e 2+4 3+4 5+55 3+1 3+2 2+59 2+3 6+2a 2+5d 12+1f 31+f 201+19bf 41+568c "
    "44+2d 3+10c 4+1b 15+32 2+9 2+72 26+8 3+66 3+3f 6+1 2 2+4 19+35 5 14+33 d+45 b+9 7+17 4 "
    "2+30 3+23 d+1c 4+40 f+a 7+1e 2+36 a+d 3+9 7+16 4+48 19+2 3+f 3+4 b+5 3+5 3+5 a+6 2+6 2+2a "
    "2+d 7+7a 2+1 3+9 7+2ba3 d+16 5+30 2105+16d 3+69 27+6 d+4 6+b 2+c 2+4 2 2+1 2+1 2+6b 22+16a "
    "13+3f 3+35 29+b 5+f 11+f 4+1 19+2 21+4 2+86 14+9 8+19 5 2+19 c+58 4+5 3+5 3+5 3+2 24+b "
    "2+19 2+12 2+1 2+e 3+d 23+7a 46+34 89 83+1c 4+30 10 20+1f e+1d 6+2a 6+1d 3+23 5+7 2+4 2b+9d "
    "3+9 7+23 5+23 5+27 9+33 d+a 2+e 2+6 2+1 2+a 2+e 2+6 2+1 44+136 a+15 b+7 19+5 2+29 2+8 46+5 "
    "3 2+2b 2+1 4 3+16 b+16 a+1e 42+12 2+1 b+15 b+19 47+37 7+1 41+3 2+1 6+7 2+2 2+1c 3+2 5 "
    "21+1c 4+1c 24+7 2+1d 1a+35 b+15 b+12 e+11 6f+48 38+32 e+32 e+27 9+9 147+29 2+1 4+1 4c+1f b "
    "9+20 20+15 2b+14 1c+16 a+46 20+f a+3b 8 e+18 8+9 7+34 2+9 5+3 9+23 3 a+44 5+3 2+c 2 24+11 "
    "2+24 7+3 3f+6 2 2+3 2+e 2+9 8+3a 6+9 7+3 2+7 3+1 3+15 2+6 2+1 2+4 2+9 3+1 3+2 3 7 6+6 3+6 "
    "4+4 8c+4a 6+9 5+3 1f+45 2 9+9 a7+35 3+8 18+5 23+40 4 c+9 27+38 8+9 37+1a 3+e 5+9 7+6 ba+3a "
    "66+49 16+7 3 3+7 2+1 2+1d 2+1 3+8 d+9 47+7 3+2d 3+7 2+1 1c+3e 9 9+49 4 13+48 108+8 2+2c "
    "2+8 10+9 19+1d 3+15 2+d 4a+6 2+1 2+2b 4 2+1 2+8 9+9 7+5 2+1 2+24 2+1 2+5 8+9 137+16 a+10 "
    "2+28 4+4 e+9 57 50+399 67+6e 12+c3 a4d+60 10+42f 11+15 fab+246 21ba+238 8+1e 2+9 7+4e 2+9 "
    "7+1d 3+4 c+36 a+3 d+9 a+14 6+12 2b1+3f 81+4a 5+38 8+10 41+1 2+1 c+1 f+17f7 9+4d5 2b+8 "
    "22e8+3 2+6 2+1 2+122 10 1e+2 3 f+3 9+18b 905+6a 6+c 4+8 8+9 4+1 1262+2d 3+16 21f+4 4+5 9+7 "
    "3+6 1f+3 95+2 1bc+54 2+46 2+1 3 3+1 3+3 2+b 2 2+6 2+40 2+3 3+7 2+6 2+1b 2+3 2+4 2 4+6 "
    "2+153 3+18 2+18 2+1e 2+18 2+1e 2+18 2+1e 2+18 2+1e 2+18 2+7 3+31 201+36 5+31 9 f 17+4 2+e "
    "451+1e 7+5 d6+6 2+10 3+6 2+1 2+4 6+3d 22 71+2c 4+d 3+9 5 142+1e 12+39 1d7+29 2e7+6 2+3 2+1 "
    "2+e 2+c4 c+6 2a+4b 5+9 4a7+3 2+1a 2+1 2 3 2+9 2+3 2 2 7 5 2 2 2+2 2+1 2 3 2 2 2 2 2+1 2 "
    "3+3 2+6 2+3 2+3 2 2+9 2+10 6+2 2+4 2+10 275+19 7+19 7+19 a67+9 407+a6df 21+1039 7+dd "
    "3+1681 f+1d30 c20+21d 5e3+134a 6+105f add51+ef "
)
_DIGIT = (
    "30+9 627+9 87+9 c7+9 19d+9 77+9 77+9 77+9 77+9 77+9 77+9 77+9 77+9 77+9 61+9 77+9 47+9 "
    "117+9 47+9 747+9 27+9 12d+9 81+9 a7+9 7+9 b7+9 57+9 87+9 7+9 89c7+9 2a7+9 27+9 c7+9 17+9 "
    "57+9 197+9 5317+9 587+9 887+9 32d+9 81+9 3d+9 91+9 117+9 157+9 77+9 177+9 67+9 67+9 1a7+9 "
    "67+9 2f7+9 f7+9 47+9 1a7+9 4b07+9 57+9 87+9 6c75+31 941+9 1a7+9 1f7+9 457+9 1297+9 "
)
_SPACE = "9 2+2 13 65 1b 15e0 980+a 1e+1 6 30 fa1"

# Characters that are the same but for case, where lower() and upper() do not tell all of them.
_SAME = (
    "Kk\u212a Ss\u017f \xb5\u039c\u03bc \xc5\xe5\u212b \xdf\u1e9e \u0131 \u01c4\u01c5\u01c6 "
    "\u01c7\u01c8\u01c9 \u01ca\u01cb\u01cc \u01f1\u01f2\u01f3 \u0345\u0399\u03b9\u1fbe "
    "\u0392\u03b2\u03d0 \u0395\u03b5\u03f5 \u0398\u03b8\u03d1\u03f4 \u039a\u03ba\u03f0 "
    "\u03a0\u03c0\u03d6 \u03a1\u03c1\u03f1 \u03a3\u03c2\u03c3 \u03a6\u03c6\u03d5 "
    "\u03a9\u03c9\u2126 \u0412\u0432\u1c80 \u0414\u0434\u1c81 \u041e\u043e\u1c82 "
    "\u0421\u0441\u1c83 \u0422\u0442\u1c84\u1c85 \u042a\u044a\u1c86 \u0462\u0463\u1c87 "
    "\u1c88\ua64a\ua64b \u1e60\u1e61\u1e9b \u1fb3\u1fbc \u1fc3\u1fcc \u1ff3\u1ffc "
)


def _unpack(text):
    ranges = []
    end = 0
    for word in text.split():
        distance, _, length = word.partition("+")
        start = end + int(distance, 16)
        end = start + int(length or "0", 16)
        ranges.append((start, end))
    return ranges


def _same_table():
    table = {}
    for group in _SAME.split():
        for char in group:
            table[char] = group
    # Greek letters with iota subscript: eight small ones, then their eight capitals.
    for first in (0x1F80, 0x1F90, 0x1FA0):
        for code in range(first, first + 8):
            table[chr(code)] = table[chr(code + 8)] = chr(code) + chr(code + 8)
    return table


_EXCEPTIONS = _same_table()
_cache = {}


def named(name):
    """Return the set that "w", "d", "s" or its complement "W", "D", "S" stands for."""
    if name not in _cache:
        if name.isupper():
            _cache[name] = complement(named(name.lower()))
        else:
            _cache[name] = _unpack({"w": _WORD, "d": _DIGIT, "s": _SPACE}[name])
    return _cache[name]


def same_but_case(char):
    """Return the characters that are `char` but for case (Unicode's simple folding), sorted."""
    if char in _EXCEPTIONS:
        return sorted(_EXCEPTIONS[char])
    found = {char}
    for other in (char.lower(), char.upper()):
        if len(other) == 1 and other not in _EXCEPTIONS:
            found.add(other)
            found.update(back for back in (other.lower(), other.upper()) if len(back) == 1)
    return sorted(found.difference(_EXCEPTIONS))


def fold(ranges):
    """Return the set with every character's other cases added."""
    more = list(ranges)
    for first, last in ranges:
        for code in range(first, min(last, _LAST_CASED) + 1):
            more.extend((ord(char), ord(char)) for char in same_but_case(chr(code)))
    return normal(more)


def normal(ranges):
    """Return the set that `ranges`, in any order and overlapping, stand for."""
    merged = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def complement(ranges):
    """Return all characters that are not in the set and can stand in a line."""
    result = []
    start = 0
    for first, last in normal(list(ranges) + NEVER):
        if first > start:
            result.append((start, first - 1))
        start = last + 1
    if start <= _LAST:
        result.append((start, _LAST))
    return result


def within(ranges, last):
    """Return the part of the set that is at or below the code point `last`."""
    return [(low, min(high, last)) for low, high in ranges if low <= last]


def without(ranges, codes):
    """Return the set less some code points."""
    for code in codes:
        ranges = [
            part
            for first, last in ranges
            for part in ((first, min(last, code - 1)), (max(first, code + 1), last))
            if part[0] <= part[1]
        ]
        ranges = normal(ranges)
    return ranges
