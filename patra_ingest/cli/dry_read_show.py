"""How a look at a source is told: slice by slice, page by page, then one sentence."""

from collections.abc import Iterator
from typing import Any

from patra_ingest.cli.show import print_table, say

_CELL = 24
_WIDE = 48  # for a title
_INSTANT = 20
_MOST_ROWS = 5
_MOST_TRIES = 3

Form = dict[str, Any]


def say_look(look: Form) -> None:
    """Print everything that a look showed."""
    for line in _head(look):
        say(line)
    for number, each in enumerate(look["slices"], 1):
        say("")
        _say_slice(number, each, is_fine=look["works"])
    if look["oddities"]:
        say("")
        say("Worth a look:")
        for sentence in look["oddities"]:
            say(f"  - {_clean(sentence)}")
    say("")
    say(_clean(look["verdict"], 2000))


def _head(look: Form) -> Iterator[str]:
    yield f"{look['source']} / {look['endpoint']}, {look['operation']}"
    yield f"  checks       ✓ compiles, {_many(len(look['warnings']), 'unintended warning')}"
    for warning in look["warnings"]:
        yield f"  warning      {warning}"
    for meant in look["intended"]:
        yield f"  intended     {meant}"
    for plan in look["planned"]:
        yield f"  planned      {plan['window'] or 'ids'} in {_many(plan['slices'], 'slice')}"
        for cut in plan["cuts"]:
            yield f"               {cut}"
    rate = look["rate"]
    whose = f"shared with {rate['shared_with']}" if rate["shared_with"] else "of this read alone"
    yield f"  rate budget  {rate['key']}, {rate['per_second']:g} per second, {whose}"


def _say_slice(number: int, each: Form, is_fine: bool) -> None:
    of = f" of partition {each['partition']}" if each["partition"] else ""
    say(f"Slice {number}{of}: {each['asks']}")
    if each["counted"] is not None:
        say(f"  counted before: {each['counted']} records")
    for page in each["pages"]:
        _say_page(page)
    _say_tries(each["tries"])
    if each["cutInto"]:
        say(f"  too big: {_clean(each['error']['message'])}")
        say(f"  it would be cut into {each['cutInto']} slices; they are read next")
    elif each["error"]:
        held = "; a worker would hold the endpoint" if each["error"]["holds"] else ""
        why = f": {_clean(each['error']['message'])}" if is_fine else ""  # else the verdict says it
        say(f"  stopped by {each['error']['code']}{held}{why}")
    if each["certificate"]:
        proof = each["certificate"]
        landed = f"{_of(proof['promised'])} {proof['landed']} landed"
        say(f"  read to its end: {proof['verdict']}, {landed}")


def _of(promised: int | None) -> str:
    return "no total promised," if promised is None else f"{promised} promised,"


def _say_page(page: Form) -> None:
    kind = {"DETAIL": "records of found ids", "IDS": "records of ids"}.get(page["phase"], "page")
    say(f"  {page['no']}. {kind}, at {_clean(page['position'])}")
    _say_tries(page["tries"])
    for one in page["requests"]:
        say(f"     {one['method']} {_clean(one['url'], 2000)}")
        if one["body"]:
            say(f"     body {_clean(one['body'])}")
        waited = f", after {one['waitedMs']} ms at the gate" if one["waitedMs"] else ""
        say(
            f"     → {one['status']} {_clean(one['contentType'] or 'no content type')},"
            f" {one['bytes']:,} bytes, {one['digest'][:19]}…, {one['ms']} ms{waited}"
        )
    say(f"     {_came(page)}")
    say(f"     {_next(page)}")
    _say_records(page["sample"], page["records"])
    for bad in page["bad"]:
        say(f"     quarantined: {_bad(bad)}")
    if page["quarantined"] > len(page["bad"]):
        say(f"     … and {page['quarantined'] - len(page['bad'])} more in quarantine")
    for one in page["badIds"]:
        say(f"     bad id {_clean(one['id'])}: {_clean(one['reason'])}")


def _say_tries(tries: list[Form]) -> None:
    for one in tries[:_MOST_TRIES]:
        say(f"     try {one['no']} failed: {_clean(one['error'])}")


def _came(page: Form) -> str:
    if page["phase"] == "SEARCH":
        came = f"{_many(page['found'] or 0, 'id')} found"
    elif page["asked"] is not None:
        came = f"{_many(page['asked'], 'id')} asked for, {_many(page['items'], 'item')}"
    else:
        came = _many(page["items"], "item")
    named = {
        "quarantined": "quarantined",
        "outOfWindow": "out of the window",
        "skipped": "skipped",
        "gone": "gone at the source",
    }
    parts = [_many(page["records"], "record")] if page["records"] else []
    parts += [f"{page[key]} {words}" for key, words in named.items() if page[key]]
    total = "no total promised" if page["total"] is None else f"{page['total']} promised in all"
    return f"{came}: {', '.join(parts) or 'nothing to keep'}; {total}"


def _next(page: Form) -> str:
    if page["leftOut"]:
        return f"{_many(page['leftOut'], 'more id')} would be asked for; left out here"
    if page["stopRule"]:
        return f"the last page, by {page['stopRule']}"
    return "more follows" if page["hasNext"] else "nothing follows"


def _say_records(records: list[Form], count: int) -> None:
    if not records:
        return
    from rich.table import Table

    from patra_ingest.executor.read_report import table_columns

    columns = table_columns(records)
    table = Table()
    for name in ("id", "updated", *columns):
        least = _INSTANT if name == "updated" else None
        table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=least)
    for record in records[:_MOST_ROWS]:
        at = record["updated"]
        cells = [_clean(record["id"], _WIDE), at.strftime("%Y-%m-%d %H:%M:%SZ") if at else "—"]
        shown = (_cell(name, record["fields"].get(name)) for name in columns)
        table.add_row(*cells, *("deleted",) if record["deleted"] else shown)
    print_table(table)
    if count > _MOST_ROWS:
        say(f"     … and {count - _MOST_ROWS} more records")


def _cell(name: str, value: Any) -> str:
    most = _WIDE if name == "title" else _CELL
    if value is None:
        return "—"
    if isinstance(value, list):
        shown = ", ".join(_word(one) for one in value[:3])
        return _clean(shown + (", …" if len(value) > 3 else ""), most)
    return _clean(_word(value), most)


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(str(key) for key in value) + "}"
    return str(value)


def _bad(bad: Form) -> str:
    name = f" ({_clean(bad['id'], _CELL)})" if bad["id"] else ""
    found = "nothing" if bad["value"] is None else _clean(bad["value"], 120)
    return (
        f"item {bad['item']}{name} at {_clean(bad['path'])}: {_clean(bad['reason'])}; found {found}"
    )


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def _clean(words: str, most: int = 400) -> str:
    """Return one printable line: what a source said must not move a person's cursor."""
    line = "".join(char if char.isprintable() else " " for char in words)
    return line if len(line) <= most else f"{line[: most - 1]}…"
