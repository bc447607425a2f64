"""The pages of docs/sources: one per source, and the list of them. Pure; from the packs alone."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from patra_ingest.cli import source_words as words
from patra_ingest.model.codes import Operation
from patra_ingest.registry.catalogue import EndpointSheet, Sheet
from patra_ingest.spec.places import ErrorRule, FieldSpec
from patra_ingest.spec.snapshot import SpecSnapshot
from patra_ingest.spec.words import Downgrade

_MADE = "<!-- Made from the pack by `make sources`; change the pack, not this page. -->"
_PACKS = "../../patra_ingest/packs"
_DAY = timedelta(days=1)
_SOME_DAY = date(2026, 11, 1)
_GRADED = re.compile(r"\[[DSOCK]\]")
_LEGEND = (
    "[D] says the source's own documentation, [S] its code; [O] was observed, [C] is what a client"
    " does, [K] is not verified."
)
Rows = list[tuple[str, str | None]]


def index_page(sheets: Sequence[Sheet]) -> str:
    """Return the list of the built-in sources."""
    rows = [
        "| source | endpoints | sees a record | rate | credential | looked at |",
        "|---|---|---|---|---|---|",
    ]
    for sheet in sheets:
        evidence = sheet.pack.provenance.evidence
        cells = (
            f"[{sheet.pack.provenance.name}]({sheet.code}.md) `{sheet.code}`",
            "<br>".join(_offer(one) for one in sheet.endpoints),
            fresh(sheet),
            rate(sheet),
            needs(sheet),
            evidence.date if evidence else "—",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(
        [
            "# Sources",
            "",
            _MADE,
            "",
            "What can be harvested out of the box. `patra sources` prints this list, also with the"
            " sources that you have applied yourself.",
            "A page for each says what is asked, how fast, and what comes back."
            " [Writing a pack](../sources.md) adds another one.",
            "",
            "HARVEST brings what is new, BACKFILL the past; UPDATE asks again for records that are"
            " there.",
            "",
            *rows,
            "",
        ]
    )


def fresh(sheet: Sheet) -> str:
    """Say how late a source is seen, by its first endpoint with a window."""
    windows = [one.by_window.window for one in sheet.endpoints if one.by_window]
    lags = dict.fromkeys(words.span(window.safety_lag) for window in windows)
    return ", ".join(f"after {lag}" for lag in lags) or "when asked for"


def rate(sheet: Sheet) -> str:
    """Say how fast a source is asked, without any credential."""
    specs = [one.spec for one in sheet.endpoints if one.spec]
    return "; ".join(dict.fromkeys(words.rate_words(spec.rate) for spec in specs))


def needs(sheet: Sheet) -> str:
    """Say whether a credential is needed."""
    found = sheet.credentials
    if not found:
        return "none"
    kind = "required" if any(required for _, required in found.values()) else "optional"
    places = ", ".join(words.secret_words(own) for own, _ in found.values())
    return f"{kind}: {places}"


def _offer(one: EndpointSheet) -> str:
    return f"`{one.name}`: {', '.join(one.operations) or 'details only'}"


def source_page(sheet: Sheet) -> str:
    """Return the page of one source."""
    who = sheet.pack.provenance
    lines = [f"# {who.name}", "", _MADE, ""]
    if sheet.comments.intro:
        lines += [sheet.comments.intro, ""]
    lines += _table(
        [
            ("in commands", f"`{who.code}`"),
            ("address", f"<{who.base_url}>"),
            ("documentation", f"<{who.docs_url}>" if who.docs_url else None),
            ("time zone of its dates", who.timezone),
            ("last looked at", words.evidence_words(who.evidence)),
            ("pack", f"[{who.code}.yaml]({_PACKS}/{who.code}.yaml)"),
        ]
    )
    lines += ["", "## Run it", "", *_commands(sheet), ""]
    lines += _credentials(sheet)
    known: dict[str, str] = {}
    for one in sheet.endpoints:
        lines += _endpoint(sheet, one, known)
    notes = [
        (place, note)
        for place, note in sheet.comments.below()
        if place.partition(".")[0] != "endpoints"
    ]
    if notes:
        lines += ["## Notes", "", *_said(notes), ""]
    if any(_GRADED.search(note) for note in sheet.comments.notes.values()):
        lines += [_LEGEND, ""]
    return "\n".join(lines)


def _commands(sheet: Sheet) -> Iterator[str]:
    yield "```"
    if any("identity.contact" in f"{one.spec}" for one in sheet.endpoints):
        yield "export PATRA_CONTACT=…  # your mail address, which the source is told"
    harvested = [one for one in sheet.endpoints if one.by_window]
    for one in harvested[:1]:
        window = _example(sheet, one)
        yield f"patra test-read {sheet.code} --endpoint {one.name} {window}  # nothing is kept"
    for one in harvested:
        op = "" if Operation.HARVEST in one.operations else " --op BACKFILL"
        yield f"patra run {sheet.code} --endpoint {one.name}{op} {_example(sheet, one)}"
    for one in sheet.endpoints:
        if Operation.UPDATE in one.operations:
            yield f"patra run {sheet.code} --endpoint {one.name} --op UPDATE"
    yield "```"


def _example(sheet: Sheet, one: EndpointSheet) -> str:
    """Return a day that was settled when the source was last looked at."""
    evidence = sheet.pack.provenance.evidence
    looked = date.fromisoformat(evidence.date) if evidence else _SOME_DAY
    lag = one.by_window.window.safety_lag if one.by_window else timedelta(0)
    first = looked - timedelta(days=lag.days)
    return f"--from {first} --to {first + _DAY}"


def _credentials(sheet: Sheet) -> list[str]:
    if not sheet.credentials:
        return ["## Credentials", "", "None is needed, and none is known.", ""]
    lines = ["## Credentials", "", "| name | kind | taken from | with it |", "|---|---|---|---|"]
    for name, (own, required) in sheet.credentials.items():
        kind = f"{own.type}, {'required' if required else 'optional'}"
        cells = (f"`{name}`", kind, words.secret_words(own), words.unlock_words(own))
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _endpoint(sheet: Sheet, one: EndpointSheet, known: dict[str, str]) -> Iterator[str]:
    """Yield the part of one endpoint; `known` are tables that were shown, and for which one."""
    about = sheet.comments.at("endpoints", one.name)
    yield f"## `{one.name}`" + (f": {about}" if about else "")
    yield ""
    spec = one.spec
    if spec is None:
        yield f"It does not compile: {'; '.join(one.problems)}."
        yield ""
        return
    yield from _table(_facts(sheet, one, spec))
    yield ""
    if spec.fields and spec.detail is None:
        yield from _once("Fields", "\n".join(_fields(spec.fields)), one.name, known)
    if spec.errors:
        yield from _once("Errors", "\n".join(_errors(spec.errors)), one.name, known)
    lacks = [warning for warning in spec.warnings if not warning.startswith(Downgrade.ANONYMOUS)]
    if lacks:
        yield "What it cannot give, and what is done about it:"
        yield ""
        yield from (f"- {_plain(warning)}" for warning in lacks)
        yield ""
    notes = list(sheet.comments.below("endpoints", one.name))
    if notes:
        yield from ("What its author noted:", "", *_said(notes), "")


def _facts(sheet: Sheet, one: EndpointSheet, spec: SpecSnapshot) -> Rows:
    by_window = one.by_window
    said = one.part
    rows: Rows = [
        ("operations", ", ".join(one.operations) or "none of its own: a search asks it for ids"),
        (
            "asked",
            f"{spec.request.method} {_path(spec)}, answers in {spec.response.format}",
        ),
    ]
    if by_window is not None:
        delay = said.window.publication_delay if said.window else None
        rows += [
            ("filtered by", words.window_words(by_window.window)),
            ("seen", words.fresh_words(by_window.window, delay)),
            ("slices", f"of {words.span(by_window.window.max_span)} at most"),
            ("pages", words.paging_words(by_window, said.paging or sheet.pack.paging)),
            ("total", words.total_words(by_window)),
            ("results", words.cap_words(by_window.cap)),
        ]
    if by_window is None or Operation.UPDATE in one.operations:
        by_ids = one.specs.get(Operation.UPDATE, spec)
        rows.append(("ids", f"{by_ids.batching.ids_per_request:,} in one request"))
    if spec.detail is not None:
        detail = spec.detail
        missing = words.MISSING[detail.reconcile.missing]
        rows.append(
            ("records", f"from `{detail.endpoint}`, {detail.batch:,} ids in one request; {missing}")
        )
    else:
        rows += [
            ("id", _paths(spec.response.id)),
            ("update time", _paths(spec.response.updated_at)),
            ("a change is", words.CHANGES[spec.changed]),
        ]
    rows += [
        ("partitions", ", ".join(f"`{name}`" for name in spec.partitions) or None),
        ("rate", f"{words.rate_words(spec.rate)} (budget `{spec.rate.key}`)"),
        ("the source allows", words.vendor_words(said.rate or sheet.pack.rate)),
        ("large jobs", words.courtesy_words(spec.planning.courtesy)),
        ("schedule", _schedule(one)),
    ]
    return rows


def _once(what: str, table: str, name: str, known: dict[str, str]) -> Iterator[str]:
    """Yield a table, or where it stands already."""
    first = known.setdefault(table, name)
    yield table if first == name else f"{what}: as for `{first}`."
    yield ""


def _errors(rules: Sequence[ErrorRule]) -> Iterator[str]:
    yield from ("| when an answer has | then |", "|---|---|")
    for rule in rules:
        note = f" ({rule.note})" if rule.note else ""
        yield f"| {words.when_words(rule.when)} | {words.ACTIONS[rule.do]}{note} |"


def _path(spec: SpecSnapshot) -> str:
    return words.code(spec.request.path) if spec.request.path else "the address itself"


def _schedule(one: EndpointSheet) -> str | None:
    own = [f"{each}: `{part.cron}` (UTC)" for each, part in one.part.schedule.items()]
    return ", ".join(own) or None


def _fields(fields: Sequence[FieldSpec]) -> Iterator[str]:
    yield from ("| field | found at |", "|---|---|")
    for field in fields:
        paths = (field.path,) if isinstance(field.path, str) else field.path
        must = " (required)" if field.required else ""
        yield f"| `{field.name}`{must} | {_paths(paths)} |"


def _paths(paths: Sequence[str] | None) -> str | None:
    return None if paths is None else ", else ".join(words.code(path) for path in paths)


def _said(notes: Sequence[tuple[str, str]]) -> Iterator[str]:
    return (f"- `{place}`: {note}" for place, note in notes)


def _plain(warning: str) -> str:
    name, _, sentence = warning.partition(": ")
    return f"{sentence} (`{name}`)"


def _table(rows: Rows) -> Iterator[str]:
    yield from ("| | |", "|---|---|")
    yield from (f"| {name} | {value} |" for name, value in rows if value)
