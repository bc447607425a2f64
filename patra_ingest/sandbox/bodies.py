"""The metadata of each work, as Crossref would write it: about 4 KB of JSON. Pure.

A body is a few words of its own in front of shared fragments, written once per seed and picked
by the work's dice. Joining them costs microseconds, so a million works need no memory.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from random import Random

from patra_ingest.sandbox import vocabulary as words
from patra_ingest.sandbox.notation import date_parts, iso_second, members, stamp
from patra_ingest.sandbox.world import World

_INDEXER = "3.41.2"
# Every fragment ends with a comma; a last member closes the work, and the list goes on or ends.
_NEXT, _LAST = b'"relation":{}},', b'"relation":{}}]'
_WRITTEN_BEFORE = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Fragments:
    """The shared parts of all bodies of one world; each a run of JSON members."""

    venues: tuple[bytes, ...]
    dates: tuple[bytes, ...]
    authors: tuple[bytes, ...]
    references: tuple[bytes, ...]
    abstracts: tuple[bytes, ...]


@dataclass(frozen=True)
class Bodies:
    """Writes the body of any work of `world`."""

    world: World

    @cached_property
    def _fragments(self) -> Fragments:
        rng = Random(self.world.seed)
        return Fragments(
            venues=tuple(members(_venue(rng, n)) for n in range(32)),
            dates=tuple(members(_dates(rng)) for _ in range(64)),
            authors=tuple(members({"author": _authors(rng)}) for _ in range(64)),
            references=tuple(members(_references(rng, n)) for n in range(128)),
            abstracts=tuple(_abstract(rng, n) for n in range(64)),
        )

    @cached_property
    def _head(self) -> Callable[[int], bytes]:
        # Only the heads are worth remembering: at this bound they take about 100 MB.
        return lru_cache(maxsize=131_072)(self._write_head)

    def write(self, works: Iterable[int]) -> list[bytes]:
        """Return the JSON array of `works`, in their order, in pieces still to be joined.

        A page is large: joining it once, together with what surrounds it, is half the work saved.
        """
        pieces = [b"["]
        for index in works:
            pieces += self._pieces(index)
            pieces.append(_NEXT)
        pieces[-1] = _LAST if len(pieces) > 1 else b"[]"
        return pieces

    def _pieces(self, index: int) -> tuple[bytes, ...]:
        dice = self.world.dice(index)
        shared = self._fragments
        return (
            self._head(index),
            shared.venues[dice & 31],
            shared.dates[(dice >> 5) & 63],
            shared.authors[(dice >> 11) & 63],
            shared.abstracts[(dice >> 17) & 63],
            shared.references[(dice >> 23) & 127],
        )

    def _write_head(self, index: int) -> bytes:
        dice = self.world.dice(index)
        doi = self.world.doi(index).replace("/", "\\/")
        second = self.world.indexed_second(index)
        at = iso_second(second)
        year, month, day = int(at[:4]), int(at[5:7]), int(at[8:10])
        # DOIs are case-insensitive: a few works are linked to in capitals.
        linked = doi.upper() if dice >> 61 == 0 else doi
        return (
            f'{{"indexed":{{"date-parts":[[{year},{month},{day}]],"date-time":"{at}",'
            f'"timestamp":{second}000,"version":"{_INDEXER}"}},"DOI":"{doi}",'
            f'"title":["{_title(dice >> 30, index)}"],"is-referenced-by-count":{dice >> 56},'
            f'"URL":"https:\\/\\/doi.org\\/{linked}","score":1.0,{self._notice(index)}'
        ).encode()

    def _notice(self, index: int) -> str:
        # Every 97th work corrects or retracts the work before it.
        if index == 0 or index % 97:
            return ""
        before = index - 1
        kind = "retraction" if index % 2 else "correction"
        second = self.world.indexed_second(before)
        label, source = kind.capitalize(), "retraction-watch" if index % 2 else "publisher"
        doi = self.world.doi(before).replace("/", "\\/")
        return (
            f'"update-to":[{{"DOI":"{doi}","type":"{kind}","label":"{label}",'
            f'"source":"{source}","updated":{{"date-time":"{iso_second(second)}",'
            f'"timestamp":{second}000}}}}],'
        )


def _title(dice: int, index: int) -> str:
    adjective = words.ADJECTIVES[dice % len(words.ADJECTIVES)]
    noun = words.NOUNS[(dice >> 5) % len(words.NOUNS)]
    place = words.PLACES[(dice >> 10) % len(words.PLACES)]
    return f"{adjective} {noun} in {place}: observation {index}"


def _venue(rng: Random, number: int) -> dict[str, object]:
    publisher, member = rng.choice(words.PUBLISHERS)
    subject = rng.choice(words.SUBJECTS)
    issn = f"{rng.randrange(1000, 9999)}-{rng.randrange(1000, 9999)}"
    started = _WRITTEN_BEFORE - timedelta(days=rng.randrange(4000))
    licence = {
        "start": stamp(started),
        "content-version": rng.choice(("vor", "am", "tdm")),
        "delay-in-days": rng.choice((0, 0, 0, 365)),
        "URL": "https://creativecommons.org/licenses/by/4.0/",
    }
    return {
        "publisher": publisher,
        "member": member,
        "prefix": "10.5555",
        "source": "Crossref",
        "type": words.TYPES[number % len(words.TYPES)],
        "language": rng.choice(("en", "en", "en", "de", "zh")),
        "container-title": [f"Journal of {subject}"],
        "short-container-title": [f"J. {subject[:4]}."],
        "ISSN": [issn],
        "issn-type": [{"type": "electronic", "value": issn}],
        "subject": [subject, rng.choice(words.SUBJECTS)],
        "license": [licence] if number % 4 else [],
        "content-domain": {"domain": [], "crossmark-restriction": False},
    }


def _dates(rng: Random) -> dict[str, object]:
    created = _WRITTEN_BEFORE - timedelta(seconds=rng.randrange(10**8, 4 * 10**8))
    deposited = created + timedelta(seconds=rng.randrange(10**8))
    published = date_parts(created, rng.choice((1, 2, 3, 3)))
    first_page = rng.randrange(1, 900)
    return {
        "created": stamp(created),
        "deposited": stamp(deposited),
        "published": published,
        "issued": published,
        "volume": str(rng.randrange(1, 90)),
        "issue": str(rng.randrange(1, 12)),
        "page": f"{first_page}-{first_page + rng.randrange(2, 30)}",
    }


def _authors(rng: Random) -> list[object]:
    return [_author(rng, place) for place in range(rng.randrange(1, 7))]


def _author(rng: Random, place: int) -> dict[str, object]:
    author: dict[str, object] = {
        "given": rng.choice(words.GIVEN),
        "family": rng.choice(words.FAMILY),
        "sequence": "additional" if place else "first",
        "affiliation": [{"name": rng.choice(words.PLACES_OF_WORK)}] if rng.randrange(3) else [],
        "role": [{"role": "author", "vocabulary": "crossref"}],
    }
    if rng.randrange(2):
        digits = f"{rng.randrange(10**7):07d}"
        author["ORCID"] = f"https://orcid.org/0000-0002-{digits[:4]}-{digits[4:]}X"
        author["authenticated-orcid"] = bool(rng.randrange(2))
    return author


def _references(rng: Random, number: int) -> dict[str, object]:
    count = rng.randrange(5, 17)
    cited = [_reference(rng, number, place) for place in range(1, count + 1)]
    # Crossref really sends the count under both names.
    return {"reference-count": count, "references-count": count, "reference": cited}


def _reference(rng: Random, number: int, place: int) -> dict[str, object]:
    key = f"ref{number}-{place}"
    if rng.randrange(3) == 0:
        return {"key": key, "doi-asserted-by": "publisher", "DOI": f"10.5555/OLD.{number}.{place}"}
    return {
        "key": key,
        "author": rng.choice(words.FAMILY),
        "year": str(rng.randrange(1950, 2023)),
        "journal-title": f"Journal of {rng.choice(words.SUBJECTS)}",
        "article-title": f"{rng.choice(words.ADJECTIVES)} {rng.choice(words.NOUNS)}",
        "first-page": str(rng.randrange(1, 900)),
        "volume": str(rng.randrange(1, 90)),
    }


def _abstract(rng: Random, number: int) -> bytes:
    if number % 4 == 0:
        return b""  # a quarter of the works has none
    sentences = " ".join(rng.choice(words.SENTENCES) for _ in range(rng.randrange(4, 9)))
    return members({"abstract": f"<jats:title>Abstract</jats:title><jats:p>{sentences}</jats:p>"})
