"""Regular expressions that end in time: what can backtrack without bound is refused when compiled.

A repetition inside a repetition, or a choice inside one, can take exponential time. The time of
what is left is a power of the text's length: the more repetitions, the shorter the text must be.
"""

import re
from dataclasses import dataclass

MAX_PATTERN = 200
# How long a text may be when its length enters the worst case to the power of 0, 1, 2 …
_LONGEST = (1_000_000, 1_000_000, 10_000, 1_000, 200)
_MAX_CHOICES = (12, 12, 8, 4, 1)  # each `?` and `|` may double the time, which halves the length
_ALWAYS = 200  # characters any accepted pattern may be tried on: an id, a date, an address

_TOKEN = re.compile(
    r"(?P<reference>\\[1-9]|\(\?P=|\(\?\()|(?P<escape>\\.)"
    r"|(?P<set>\[\^?\]?(?:[^\]\\]|\\.)*\])"
    r"|(?P<open>\((?:\?(?:[:=!>]|<[=!]|P<\w+>))?)|(?P<close>\))|(?P<choice>\|)"
    r"|(?P<repeat>[*+]|\{\d*,?\d*\})[?+]?|(?P<maybe>\?[?+]?)|(?P<plain>.)",
    re.DOTALL,
)


@dataclass
class _Group:
    """What a group, or the whole pattern, holds so far."""

    repeats: int = 0
    choices: int = 0

    def add(self, other: "_Group") -> None:
        self.repeats += other.repeats
        self.choices += other.choices


@dataclass(frozen=True)
class SafeRegex:
    """A pattern with one group, and the longest text it may be tried on."""

    pattern: re.Pattern[str]
    longest: int

    def first_group(self, text: str) -> str | None:
        """Return what the first group found, or None; raise ValueError for too long a text."""
        if len(text) > self.longest:
            raise ValueError(
                f"{len(text)} characters are more than the {self.longest} that"
                f" {self.pattern.pattern!r} may be tried on: {text!r:.80}"
            )
        found = self.pattern.search(text)
        return found[1] if found else None


def safe_regex(text: str, needs_group: bool = True) -> SafeRegex:
    """Compile a pattern; raise ValueError when it is wrong, too long, or may run without end."""
    if len(text) > MAX_PATTERN:
        raise ValueError(f"a pattern of {len(text)} characters is longer than {MAX_PATTERN}")
    try:
        pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    if needs_group and pattern.groups == 0:
        raise ValueError(f"{text!r} has no (group) to say which part is wanted")
    found = _counted(text)
    is_anchored = text.startswith(("^", r"\A")) and "|" not in text
    power = found.repeats + (0 if is_anchored else 1)
    if power >= len(_LONGEST) or found.choices > _MAX_CHOICES[power]:
        raise ValueError(f"{text!r} has too many repetitions or choices to end in time")
    return SafeRegex(pattern, max(_LONGEST[power] >> found.choices, _ALWAYS))


def _counted(text: str) -> _Group:
    """Count what makes a pattern slow; raise ValueError for what makes it endless."""
    groups = [_Group()]
    closed: _Group | None = None  # the group that ends right before the token
    for token in _TOKEN.finditer(text):
        before, closed = closed, None
        match token.lastgroup:
            case "open":
                groups.append(_Group())
            case "close" if len(groups) > 1:
                closed = groups.pop()
                groups[-1].add(closed)
            case "choice" | "maybe":
                groups[-1].choices += 1
            case "repeat":
                _require_simple(text, token.start(), before)
                groups[-1].repeats += not re.fullmatch(r"\{\d+\}\??", token[0])
            case "reference":
                raise ValueError(f"{text!r}: the reference at {token.start()} is not allowed")
    return groups[0]


def _require_simple(text: str, at: int, repeated: _Group | None) -> None:
    if repeated is not None and (repeated.repeats or repeated.choices):
        raise ValueError(
            f"{text!r}: the repetition at {at} repeats a group that itself repeats or chooses,"
            " which can run without end"
        )
