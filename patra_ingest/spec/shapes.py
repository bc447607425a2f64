"""Merged values in their kinds: each group fits its part of the language, or says why not.

A Registry row was checked when its pack was applied; a trigger's values come from a person.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from patra_ingest.model.codes import AuthType
from patra_ingest.model.secrets import is_secret_name
from patra_ingest.spec import parts, policies
from patra_ingest.spec.declaration import PARTS
from patra_ingest.spec.merge import Merged
from patra_ingest.spec.planning import PlanningPart
from patra_ingest.spec.platform import safety_lag, stop_rules
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.words import Word

_TAGS = {"str", "int", "[key]", "NUMBER", "VALUE", "PREFIX"} | {kind.value for kind in AuthType}
_REFER = "refer to the secret, as env:NAME or file:PATH"
_NO_VALUE = "see docs/sources.md for what may stand here"
_REFERENCES = frozenset(
    {"secret", "username", "password", "client_id", "client_secret", "refresh_token"}
)
_A_KIND = re.compile(r"(function-|constrained-|tuple\[|dict\[|list\[|lax-or-strict|nullable)")


@dataclass(frozen=True)
class Shaped:
    """The merged declaration, typed: what the checks look at and the snapshot is made of."""

    endpoint: parts.EndpointWords
    request: parts.RequestPart
    names: parts.ParamNames
    http: policies.HttpPart
    auth: policies.AuthPart
    paging: parts.PagingPart
    window: parts.WindowPart
    cap: parts.CapPart
    response: parts.ResponsePart
    detail: parts.DetailPart
    batching: policies.BatchingPart
    retry: policies.RetryPart
    rate: policies.RatePart
    planning: PlanningPart


def shape(merged: Merged) -> Shaped | list[Problem]:
    """Return the typed declaration, or a problem for every key or value that does not fit."""
    shaped: dict[str, Any] = {}
    problems: list[Problem] = []
    for group, values in merged.values.items():
        part = PARTS.get(group)
        if part is None:
            problems.append(_no_group(group))
            continue
        try:
            shaped[group] = part.model_validate(values)
        except ValidationError as error:
            problems.extend(_wrong(group, part, error))
    return problems or _with_defaults(merged, Shaped(**shaped))


def _with_defaults(merged: Merged, shaped: Shaped) -> Shaped:
    """Fill the defaults that depend on other values."""
    changes: dict[str, Word] = {}
    if shaped.paging.stop is None and (stop := stop_rules(dict(shaped.paging))):
        changes["paging"] = shaped.paging.model_copy(update={"stop": stop})
        merged.origins["paging.stop"] = "platform"
    if shaped.window.safety_lag is None:
        lag = safety_lag(dict(shaped.window))
        changes["window"] = shaped.window.model_copy(update={"safety_lag": lag})
        merged.origins["window.safety_lag"] = "platform"
    interval, unsaid = shaped.rate.min_interval, merged.origins.get("rate.per_second") == "platform"
    if interval is not None and unsaid:  # the interval alone says how fast
        speed = 1 / interval.total_seconds()
        changes["rate"] = shaped.rate.model_copy(update={"per_second": speed})
    return Shaped(**{**vars(shaped), **changes})


def _no_group(group: str) -> Problem:
    near = difflib.get_close_matches(group, PARTS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known groups: {', '.join(PARTS)}"
    return Problem(group, "is not a known group", hint)


def _wrong(group: str, part: type[Word], error: ValidationError) -> Iterator[Problem]:
    seen = set()
    for detail in error.errors(include_url=False):
        problem = problem_of(detail, group, part)
        if problem.path not in seen:  # a value that fits none of several kinds is one problem
            seen.add(problem.path)
            yield problem


def problem_of(detail: Mapping[str, Any], prefix: str, part: type[Word]) -> Problem:
    """Turn one complaint of a model into a problem with its path, reason and remedy."""
    steps = written_steps(detail["loc"])
    path = ".".join([prefix, *(str(step) for step in steps)]).strip(".")
    if detail["type"] == "extra_forbidden":
        known = sorted((known_keys(part) if len(steps) == 1 else all_keys()) - {str(steps[-1])})
        cutoff = 0.5 if len(steps) == 1 else 0.75  # deep keys are looked for in all the language
        near = difflib.get_close_matches(str(steps[-1]), known, n=1, cutoff=cutoff)
        listed = f"known keys: {', '.join(known)}" if len(steps) == 1 else "remove it"
        remedy = f"did you mean {near[0]}?" if near else listed
        return Problem(path, "is not a known key", remedy)
    message = str(detail["msg"]).removeprefix("Value error, ")
    if _may_be_secret(steps):
        # Our own messages name the value they refuse; those of the models do not.
        remedy = _NO_VALUE if detail["type"] == "value_error" else message
        referred = str(steps[-1]) in _REFERENCES
        return Problem(path, "does not fit", _REFER if referred else remedy)
    if isinstance(detail.get("input"), Mapping | list | tuple):  # it may hold anything
        return Problem(path, "does not fit", message)
    shown = repr(detail.get("input"))
    shown = shown if len(shown) <= 60 else shown[:57] + "…"
    return Problem(path, f"{shown} does not fit", message)


def _may_be_secret(steps: Sequence[str | int]) -> bool:
    names = [step for step in steps if isinstance(step, str)]
    return "credentials" in names or any(is_secret_name(name, True) for name in names)


def written_steps(location: Sequence[str | int]) -> list[str | int]:
    """Return the steps of a place that a person wrote; the rest are the kinds a model tried."""
    kinds = {kind.__name__ for kind in _kinds(Word)} | _TAGS
    return [
        step
        for step in location
        if isinstance(step, int) or not (step in kinds or _A_KIND.match(step))
    ]


def _kinds(part: type[Word]) -> list[type[Word]]:
    return [part, *(below for kind in part.__subclasses__() for below in _kinds(kind))]


def known_keys(part: type[Word]) -> set[str]:
    """Return the keys of a part of the language."""
    return {field.alias or name for name, field in part.model_fields.items()}


def all_keys(part: type[Word] = Word) -> set[str]:
    """Return every key of the language, for a key that stands deeper in a part."""
    below = (all_keys(kind) for kind in part.__subclasses__())
    return known_keys(part).union(*below)
