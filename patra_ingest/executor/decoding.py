"""A response body becomes items, a total and the next token; or an error, never zero items."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from patra_ingest.errors import EndpointHalted, TransientError
from patra_ingest.executor.triage import sample
from patra_ingest.expr.path import Path, compile_path
from patra_ingest.spec.paging import TokenPaging
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.transport.messages import Response


@dataclass(frozen=True)
class Decoded:
    """What one page holds."""

    items: list[Any]
    total: int | None
    next_token: str | None


def decode(response: Response, spec: SpecSnapshot) -> Decoded:
    """Read a JSON page. A body that is no JSON is asked for again; one without items halts."""
    try:
        tree = orjson.loads(response.body)
    except orjson.JSONDecodeError as error:
        kind = response.headers.get("content-type", "no content type")
        raise TransientError(
            f"{response.url} answered {response.status} with {kind} that is not JSON"
            f" ({error.msg}): {sample(response.body)}"
        ) from error
    items = _items(tree, spec)
    if items is None:
        raise EndpointHalted(
            f"{response.url}: there is no list at {' or '.join(spec.response.items)};"
            f" the source has changed its shape: {sample(response.body)}"
        )
    token = None
    if isinstance(spec.paging, TokenPaging) and spec.paging.next_token.path:
        found = path(spec.paging.next_token.path).first(tree)
        token = None if found is None else str(found)
    return Decoded(items, _total(tree, spec), token)


def _items(tree: Any, spec: SpecSnapshot) -> list[Any] | None:
    """Return the items of every declared place; a path that ends in `[*]` names them one by one."""
    found: list[Any] = []
    for where in spec.response.items:
        if where.endswith("[*]"):
            items = path(where.removesuffix("[*]")).first(tree)
        else:
            items = path(where).first(tree)
        if not isinstance(items, list):
            return None
        found.extend(items)
    return found


def _total(tree: Any, spec: SpecSnapshot) -> int | None:
    if spec.paging.total_path is None:
        return None
    found = path(spec.paging.total_path).first(tree)
    try:
        return None if found is None else int(found)
    except (TypeError, ValueError):
        raise EndpointHalted(
            f"the total at {spec.paging.total_path} is {found!r}, not a number"
        ) from None


@lru_cache(maxsize=4096)
def path(text: str) -> Path:
    """Return the compiled path; each text is compiled once per process."""
    return compile_path(text)
