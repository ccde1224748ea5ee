"""How secrets look: the documented forms of keys and tokens.

Libraries that keep such lists were looked at; the one in Python (detect-secrets) has had no release
for years, and the others are programs. So here are only forms that their makers document and that
nothing else looks like; guesses by randomness would spoil hashes and identifiers.
"""

from __future__ import annotations

import re

__all__ = ["BLOCK_BEGIN", "BLOCK_END", "MOST_CHARS", "SECRET_PATTERNS"]

#: The longest that a pattern takes for one secret; what is longer is redacted in parts.
MOST_CHARS = 4096

_TOKEN = r"[A-Za-z0-9_-]"  # noqa: S105 - a pattern, no token

#: (what it is, pattern); group 1, where there is one, is the secret within it. "^" in front is the
#: beginning of a word of letters and dashes: hostile text has few of those to begin at.
SECRET_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(re.sub(r"^\^", r"(?<![A-Za-z0-9_-])", pattern)))
    for name, pattern in (
        ("AWS access key", r"^(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
        ("Anthropic key", rf"^sk-ant-{_TOKEN}{{20,512}}"),
        ("OpenAI key", rf"^sk-(?:proj-|svcacct-|admin-)?{_TOKEN}{{20,512}}"),
        ("GitHub token", r"^(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"),
        ("GitLab token", rf"^gl(?:pat|ptt|dt|rt|oas)-{_TOKEN}{{20,255}}"),
        ("Slack token", r"^xox[abeoprs]-[A-Za-z0-9-]{10,255}"),
        ("Slack webhook", r"https://hooks\.slack\.com/services/([A-Za-z0-9/]{20,100})"),
        ("Stripe key", r"^[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
        ("Google API key", rf"^AIza{_TOKEN}{{35}}"),
        ("npm token", r"^npm_[A-Za-z0-9]{36}"),
        ("PyPI token", rf"^pypi-AgEI{_TOKEN}{{50,1000}}"),
        ("Hugging Face token", r"^hf_[A-Za-z0-9]{30,64}"),
        ("SendGrid key", rf"^SG\.{_TOKEN}{{22}}\.{_TOKEN}{{43}}"),
        ("JSON web token", rf"^eyJ{_TOKEN}{{8,2000}}\.eyJ{_TOKEN}{{8,2000}}\.{_TOKEN}{{8,1000}}"),
        (
            "password in a URL",
            r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"]{1,100}:([^\s/@'\"]{3,200})@",
        ),
        (
            "Authorization header",
            r"(?i)\bauthorization['\"]?\s{0,4}[:=]\s{0,4}['\"]?[a-z]{3,10} ([\w.~+/=-]{8,4000})",
        ),
    )
)

#: The frame of a private key in PEM's form, whose lines between are the secret.
BLOCK_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
