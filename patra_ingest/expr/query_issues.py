"""What can be wrong with a query or with a query book, and the refusal that lists all of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from patra_ingest.errors import PlanError

_MAX_LISTED = 20  # in the sentence; `issues` holds all


class Code(StrEnum):
    """Why; `E-` always refuses, `W-` refuses unless the caller is lenient."""

    QUERY_SHAPE = "E-QUERY-SHAPE"
    QUERY_LIMIT = "E-QUERY-LIMIT"
    QUERY_LEN_MAX = "E-QUERY-LEN-MAX"
    QUERY_NEVER = "E-QUERY-NEVER"
    QUERY_EMPTIED = "E-QUERY-EMPTIED"
    QUERY_BRIDGE_DUP = "E-QUERY-BRIDGE-DUP"
    FIELD_NOT_FOUND = "E-FIELD-NOT-FOUND"
    OP_NOT_ALLOWED = "E-OP-NOT-ALLOWED"
    NOT_UNSUPPORTED = "E-NOT-UNSUPPORTED"
    NOT_ALONE = "E-NOT-ALONE"
    MATCH_NOT_ALLOWED = "E-TERM-MATCH"
    CASE_NOT_ALLOWED = "E-TERM-CASE"
    TERM_BLANK = "E-TERM-BLANK"
    TERM_LEN_MIN = "E-TERM-LEN-MIN"
    TERM_LEN_MAX = "E-TERM-LEN-MAX"
    TERM_PATTERN = "E-TERM-PATTERN"
    TERM_TYPE = "E-TERM-TYPE"
    IN_EMPTY = "E-IN-EMPTY"
    IN_SIZE = "E-IN-SIZE"
    RANGE_KIND = "E-RANGE-KIND"
    RANGE_OPEN = "E-RANGE-OPEN"
    RANGE_ORDER = "E-RANGE-ORDER"
    RANGE_MIN = "E-RANGE-MIN"
    RANGE_MAX = "E-RANGE-MAX"
    TOKEN_KIND = "E-TOKEN-KIND"
    TOKEN_PATTERN = "E-TOKEN-PATTERN"
    VALUE_NOT_EXPRESSIBLE = "E-VALUE-NOT-EXPRESSIBLE"
    PARAMS_NESTED = "E-PARAMS-NESTED"
    PARAM_COUNT_LIMIT = "E-PARAM-COUNT-LIMIT"
    PARAM_REQUIRED = "E-PARAM-REQUIRED"
    FN_NOTFOUND = "E-FN-NOTFOUND"
    FN_VALUE = "E-FN-VALUE"
    TRANSFORM_NOTFOUND = "E-TRANSFORM-NOTFOUND"
    TRANSFORM_VALUE = "E-TRANSFORM-VALUE"
    TEMPLATE = "E-TEMPLATE"
    ESCAPE_UNSAFE = "E-ESCAPE-UNSAFE"
    BOOK = "E-BOOK"
    RENDER_RULE_MISSING = "W-RENDER-RULE-MISSING"
    PARAM_MAP_MISSING = "W-PARAM-MAP-MISSING"
    NOT_SKIPPED = "W-NOT-SKIPPED"
    # What a lenient caller hears where E-FN-NOTFOUND, E-TRANSFORM-NOTFOUND or
    # E-PARAM-COUNT-LIMIT would refuse: the clause is let go whole.
    FN_OR_TRANSFORM_NOTFOUND = "W-FN-OR-TRANSFORM-NOTFOUND"
    PARAM_COUNT_SKIPPED = "W-PARAM-COUNT-LIMIT"
    MULTI_REPEAT_NOTSUPPORTED = "W-MULTI-REPEAT-NOTSUPPORTED"


@dataclass(frozen=True)
class QueryIssue:
    """One finding: its code, where in the query or the book, what is wrong, and the remedy."""

    code: Code
    path: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.code} at {self.path or 'query'}: {self.message} ({self.remedy})"


class QueryRefused(PlanError):
    """A query that cannot be asked as it is; `issues` lists every reason."""

    def __init__(self, issues: Sequence[QueryIssue]) -> None:
        listed = "; ".join(str(issue) for issue in issues[:_MAX_LISTED])
        listed += f"; and {len(issues) - _MAX_LISTED} more" if len(issues) > _MAX_LISTED else ""
        super().__init__(f"The query cannot be asked: {listed}.", "Correct it and ask again.")
        self.issues = tuple(issues)


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the remedy for an unknown word: the nearest known one, or all of them."""
    words = sorted(known)
    near = get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(words) or 'none'}"


def shown(value: object) -> str:
    """Write a value for a message, cut to a length people read."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
