"""CSV: a header row and rows of the same width; anything else is an error, never fewer rows."""

import csv
import re
from collections.abc import Sequence
from io import StringIO

from patra_ingest.expr.value import compile_value

_FIRST_NAME = re.compile(r"""\$(?:\.([\w:@-]+)|\[['"]([^'"]+)['"]\])""")

# Abstracts and author lists are longer than the 128 KB that Python allows a field.
csv.field_size_limit(16 * 1024 * 1024)


class HeaderChanged(ValueError):
    """It is CSV, but with other columns than the pack reads."""


def read_rows(text: str, id_paths: Sequence[str], says_html: bool) -> list[dict[str, str]]:
    """Return the rows as mappings by the names of the header.

    Text of another kind is a ValueError; a table with other columns is HeaderChanged.
    """
    if says_html or text.lstrip()[:1] in ("<", "{", "["):
        raise ValueError("it is HTML, XML or JSON")
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        header = next(row for row in reader if row)
        _require_header(header, id_paths)
        return [_row(header, row, reader.line_num) for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error


def _row(header: list[str], row: list[str], line: int) -> dict[str, str]:
    if len(row) != len(header):
        raise ValueError(
            f"the row that ends in line {line} has {len(row)} columns, the header {len(header)}"
        )
    return dict(zip(header, row, strict=True))


def _require_header(header: list[str], id_paths: Sequence[str]) -> None:
    if len(set(header)) < len(header):
        twice = sorted({name for name in header if header.count(name) > 1})
        raise HeaderChanged(
            f"the header has {', '.join(map(repr, twice))} more than once;"
            " nobody can say which column is meant: ask the source for other columns"
        )
    wanted = _id_columns(id_paths)
    if not wanted or not wanted.isdisjoint(header):
        return
    if len(header) == 1:  # a sentence such as “Rate exceeded.” is a header of one column
        raise ValueError(f"its first line is {header[0]!r:.80}, and no header")
    raise HeaderChanged(
        f"no column holds the id ({', '.join(sorted(wanted))}): {header!r:.200};"
        " the source has changed its shape: correct response.id"
    )


def _id_columns(id_paths: Sequence[str]) -> set[str]:
    """Return the columns the id is read from; none when it is read from the row as a whole."""
    found = [_FIRST_NAME.match(path) for path in compile_value(id_paths).paths]
    return {one[1] or one[2] for one in found if one} if all(found) else set()
