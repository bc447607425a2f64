"""What stands at the declared places of an answer: numbers, flags, ids, the next token. Pure.

Everything that is there but cannot be what was declared is a ValueError with its place.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from patra_ingest.expr.functions import to_text
from patra_ingest.expr.path import compile_path
from patra_ingest.expr.value import compile_value
from patra_ingest.spec.paging import OffsetPaging, Paging, TokenPaging, UrlPaging
from patra_ingest.spec.places import NextPlace, Total
from patra_ingest.transport.messages import Response
from patra_ingest.transport.redact import redact_text

_NUMBER = re.compile(r"\d{1,18}|\d{1,3}(?:,\d{3}){1,5}", re.ASCII)
_LINK = re.compile(r'<([^<>]*)>((?:[^,"]|"(?:[^"\\]|\\.)*")*)')
_LINK_PARAM = re.compile(r';\s*([\w!#$%&*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]+))')
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def find_total(response: Response, tree: Any, total: Total | None) -> int | None:
    """Return how many items the source promises, from the body or a header."""
    if total is None:
        return None
    where, found = _at(response, tree, total.path, total.header)
    return _number(found, f"the total at {where}")


def find_count(tree: Any, where: str) -> int:
    """Return the number that the answer to a counting request has at a path."""
    count = _number(compile_path(where).first(tree), f"the count at {where}")
    if count is None:
        raise ValueError(f"the count at {where} is nothing, not a number from 0 on")
    return count


def find_step(tree: Any, paging: Paging | None) -> int | None:
    """Return how far the source says the offset must move."""
    if not isinstance(paging, OffsetPaging) or paging.step_path is None:
        return None
    return _number(compile_path(paging.step_path).first(tree), f"the step at {paging.step_path}")


def find_more(tree: Any, where: str | None) -> bool | None:
    """Return whether the source says that more pages follow; None when it has no such flag."""
    if where is None:
        return None
    found = compile_path(where).first(tree)
    flag = _FLAGS.get(str(found).strip().lower())
    if flag is None:
        raise ValueError(f"{where} says whether there is more, and holds {shown(found)}")
    return flag


def find_gone(tree: Any, where: str | None) -> tuple[str, ...]:
    """Return the ids that the source reports as deleted, each once."""
    if where is None:
        return ()
    found: list[Any] = []
    for one in compile_path(where).all(tree):
        found += one if isinstance(one, list) else [one]
    ids = (_text(one, where) for one in found if one is not None)
    return tuple(dict.fromkeys(one for one in ids if one))


def find_next(response: Response, tree: Any, items: list[Any], paging: Paging | None) -> str | None:
    """Return the token or the address that leads to the next page, if the answer holds one."""
    match paging:
        case TokenPaging(next_token=place) | UrlPaging(next_url=place):
            where, found = _next_at(response, tree, items, place)
        case _:
            return None
    text = "" if found is None or found is False else _text(found, where)
    if text and place.param is not None:
        return _parameter(text, place.param, where) or None
    return text or None


def needs_last_item(paging: Paging | None) -> bool:
    """Whether the last item of a page says where the next one begins."""
    match paging:
        case TokenPaging(next_token=place) | UrlPaging(next_url=place):
            return place.last_item is not None
        case _:
            return False


def ids_at(tree: Any, where: str) -> list[str] | None:
    """Return the list of ids at a path as texts; None when there is no list."""
    found = compile_path(where).first(tree)
    if not isinstance(found, list):
        return None
    return [_text(one, where) for one in found]


def linked(header: str, relation: str) -> str | None:
    """Return the address that a Link header (RFC 8288) gives for a relation."""
    for address, relations in _links(header):
        if relation.lower() in relations.lower().split():
            return address
    return None


def shown(found: Any) -> str:
    """Return what was found as a message may show it."""
    return "nothing" if found is None else redact_text(f"{found!r:.200}", 120)


def _next_at(response: Response, tree: Any, items: list[Any], place: NextPlace) -> tuple[str, Any]:
    if place.link is not None:
        found = linked(response.headers.get("link", ""), place.link)
        return f"the Link header's {place.link}", found
    if place.last_item is not None:
        last = compile_value(place.last_item).find(items[-1]) if items else None
        return f"{place.last_item} of the last item", last
    return _at(response, tree, place.path, place.header)


def _at(response: Response, tree: Any, where: str | None, header: str | None) -> tuple[str, Any]:
    if header is not None:
        return f"the header {header}", response.headers.get(header.lower())
    assert where is not None  # a place is one or the other
    return where, compile_path(where).first(tree)


def _parameter(address: str, name: str, where: str) -> str:
    """Return a parameter of an address as the source itself would read it."""
    for key, value in parse_qsl(urlsplit(address).query, keep_blank_values=True):
        if key == name:
            return value
    raise ValueError(f"the address at {where} has no parameter {name}: {shown(address)}")


def _links(header: str) -> Iterator[tuple[str, str]]:
    for link in _LINK.finditer(header):
        for name, quoted, bare in _LINK_PARAM.findall(link[2]):
            if name.lower() == "rel":  # a second one does not count
                yield link[1].strip(), quoted or bare
                break


def _number(found: Any, what: str) -> int | None:
    if found is None:
        return None
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return found
    if isinstance(found, float) and found.is_integer() and found >= 0:
        return int(found)
    if isinstance(found, str) and _NUMBER.fullmatch(found.strip()):
        return int(found.replace(",", ""))
    raise ValueError(f"{what} is {shown(found)}, not a number from 0 on")


def _text(found: Any, where: str) -> str:
    if not isinstance(found, str | int | float | datetime) or isinstance(found, bool):
        raise ValueError(f"{where} holds {shown(found)}, and not one value")
    return to_text(found).strip()
