"""All codes of the dictionary as one value, so that checking a code costs no query."""

import difflib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import Connection, text

from patra_ingest.clock import Clock
from patra_ingest.errors import UnknownName
from patra_ingest.registry.dictionary import read_dictionary

_LISTED = 12  # a longer list hides what one looks for
_LONGEST_CODE = 128  # a column cannot hold more


@dataclass(frozen=True)
class CodeList:
    """The codes of one type; `aliases` leads from each foreign code, in capitals, to ours."""

    codes: tuple[str, ...]
    disabled: frozenset[str]
    aliases: Mapping[str, str]
    default: str | None


@dataclass(frozen=True)
class CodeBook:
    """Every type of the dictionary with its codes, as they were at one moment."""

    types: Mapping[str, CodeList]

    def canonical(self, type_code: str, code: str) -> str:
        """Return the code itself, or the one it is an alias of; case does not matter.

        UnknownName when there is none or when it must not be chosen.
        """
        known = self._type(type_code)
        found = _find(known, code)
        if found is None:
            raise _unknown(f"The dictionary {type_code} has no code", code, known.codes)
        if found in known.disabled:
            raise UnknownName(
                f"The code {found} of the dictionary {type_code} is disabled.",
                _choices(code, known.codes),
            )
        return found

    def has(self, type_code: str, code: str) -> bool:
        """Say whether `canonical` would find the code."""
        known = self.types.get(type_code)
        return known is not None and _find(known, code) in known.codes

    def codes(self, type_code: str) -> tuple[str, ...]:
        """Return the codes that may be chosen, in display order."""
        return self._type(type_code).codes

    def default(self, type_code: str) -> str | None:
        """Return the code that is meant when nothing is said; None when there is no such."""
        return self._type(type_code).default

    def _type(self, type_code: str) -> CodeList:
        if type_code not in self.types:
            raise _unknown("There is no dictionary", type_code, sorted(self.types))
        return self.types[type_code]


def _find(known: CodeList, code: str) -> str | None:
    capitals = code.upper()
    if capitals in known.codes or capitals in known.disabled:
        return capitals
    return known.aliases.get(capitals)


def _unknown(what: str, name: str, known: Iterable[str]) -> UnknownName:
    return UnknownName(f"{what} {name[:_LONGEST_CODE]!r}.", _choices(name, tuple(known)))


def _choices(name: str, known: tuple[str, ...]) -> str:
    alike = {code.upper(): code for code in known}
    near = difflib.get_close_matches(name[:_LONGEST_CODE].upper(), alike, n=1)
    meant = [f"Did you mean {alike[near[0]]}?"] if near else []
    if len(known) > _LISTED:
        return " ".join([*meant, "See the view v_sys_dict_item_enabled for those there are."])
    return " ".join([*meant, f"Known: {', '.join(known) or 'none'}."])


_ALL = text("""
    SELECT t.type_code, i.item_code, i.enabled, i.is_default, a.external_code
      FROM sys_dict_type t
      LEFT JOIN sys_dict_item i ON i.type_id = t.id AND i.deleted = 0
      LEFT JOIN sys_dict_item_alias a ON a.item_id = i.id AND a.deleted = 0
     WHERE t.deleted = 0
     ORDER BY t.type_code, i.display_order, i.id, a.id
""")


def read_code_book(tx: Connection) -> CodeBook:
    """Read the whole dictionary in one query."""
    types: dict[str, list[Any]] = {}
    for row in tx.execute(_ALL):
        types.setdefault(row.type_code, []).append(row)
    return CodeBook({type_code: _code_list(rows) for type_code, rows in types.items()})


def _code_list(rows: list[Any]) -> CodeList:
    items = {row.item_code: row for row in rows if row.item_code is not None}
    enabled = tuple(code for code, item in items.items() if item.enabled)
    aliases: dict[str, str] = {}
    for row in rows:
        if row.external_code is not None:  # said twice: the first item in display order is meant
            aliases.setdefault(row.external_code.upper(), row.item_code)
    default = next((code for code in enabled if items[code].is_default), None)
    return CodeList(enabled, frozenset(items.keys() - {*enabled}), aliases, default)


@cache
def builtin_code_book() -> CodeBook:
    """Return the codes of `dictionary.yaml` alone: what every ledger has, without asking one."""
    return CodeBook({code: _declared_list(entry) for code, entry in read_dictionary().items()})


def _declared_list(entry: Mapping[str, Any]) -> CodeList:
    disabled = frozenset(entry.get("disabled", ()))
    said = [pair for names in entry.get("aliases", {}).values() for pair in names.items()]
    return CodeList(
        codes=tuple(item for item in entry["items"] if item not in disabled),
        disabled=disabled,
        aliases={external.upper(): item for external, item in reversed(said)},
        default=entry["default"],
    )


class CachedCodeBook:
    """The code book of each ledger, asked for once per `ttl`; threads may share it.

    A change in the dictionary is seen at most `ttl` later.
    """

    def __init__(self, ttl: timedelta, clock: Clock) -> None:
        self._ttl = ttl.total_seconds()
        self._clock = clock
        self._turn = threading.Lock()
        self._read: dict[str, tuple[float, CodeBook]] = {}

    def get(self, tx: Connection) -> CodeBook:
        """Return the code book of the ledger that `tx` is connected to."""
        ledger = str(tx.engine.url)  # without its password
        with self._turn:  # whoever comes while it is read waits for it instead of asking too
            read_at, book = self._read.get(ledger, (0.0, None))
            if book is None or self._clock.monotonic() - read_at >= self._ttl:
                book = read_code_book(tx)
                self._read[ledger] = (self._clock.monotonic(), book)
            return book
