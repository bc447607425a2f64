"""The two whitelists of a query book: functions of a render rule, transforms of a parameter.

A function adds to the placeholders of a rule or replaces one; a transform turns the values of one
parameter into the values that are sent. Both raise ValueError for what they cannot do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from patra_ingest.expr.query_bounds import bound_text, read_bound
from patra_ingest.model.codes import RangeKind

Places = Mapping[str, str | None]
Transform = Callable[[Sequence[str]], list[str]]

_DATE_TYPES = {
    "entrez_date": "edat",
    "publication_date": "pdat",
    "modification_date": "mdat",
    "create_date": "crdt",
    "mesh_date": "mhda",
}


@dataclass(frozen=True)
class RuleFunction:
    """What a rule's function gives: the names of its placeholders, and how they are found."""

    gives: frozenset[str]
    apply: Callable[[str, Places], Places]


def _date_type(field: str) -> str:
    if field not in _DATE_TYPES:
        raise ValueError(
            f"PubMed has no date type for {field}; write it in the rule, such as datetype: mdat"
        )
    return _DATE_TYPES[field]


def _day_before(text: str) -> str:
    day = read_bound(RangeKind.DATE, text)
    if not isinstance(day, date) or day == date.min:
        raise ValueError(f"{text!r} has no day before")
    return bound_text(day - timedelta(days=1))


def _last_day(_field: str, places: Places) -> Places:
    end = places.get("to")
    return {"to": None if end is None else _day_before(end)}


def _pubmed_days(field: str, places: Places) -> Places:
    days = {**places, **_last_day(field, places)}
    return {name: (days.get(name) or "").replace("-", "/") or None for name in ("from", "to")}


def _filter_join(values: Sequence[str]) -> list[str]:
    seen: set[str] = set()
    for value in values:
        names = {clause.partition(":")[0] for clause in value.split(",")}
        if twice := sorted(seen & names):
            # The same name twice means OR at the source, where the query said AND.
            raise ValueError(
                f"two conditions use the filter {twice[0]}, which would join them by OR"
            )
        seen |= names
    return [",".join(values)]


RULE_FUNCTIONS: Mapping[str, RuleFunction] = {
    "PUBMED_DATETYPE": RuleFunction(
        frozenset({"datetype"}), lambda field, _places: {"datetype": _date_type(field)}
    ),
    "TO_EXCLUSIVE_MINUS_1D": RuleFunction(frozenset({"to"}), _last_day),
    # As PubMed writes days: 2023/12/30, the last one counted in.
    "PUBMED_DAYS": RuleFunction(frozenset({"from", "to"}), _pubmed_days),
}

TRANSFORMS: Mapping[str, Transform] = {
    "IDENTITY": list,
    "TO_EXCLUSIVE_MINUS_1D": lambda values: [_day_before(value) for value in values],
    "PUBMED_DATETYPE": lambda values: [_date_type(value) for value in values],
    "LIST_JOIN": lambda values: [",".join(values)],
    "FILTER_JOIN": _filter_join,
}
