"""Responses: every path can be read, and what decides about a record is there."""

import re
from collections.abc import Iterator

from patra_ingest.expr.path import compile_path
from patra_ingest.expr.safe_regex import safe_regex
from patra_ingest.expr.value import compile_value
from patra_ingest.expr.xml_tree import read_xml
from patra_ingest.model.records import ChangeRule
from patra_ingest.spec.freeze import paths_of
from patra_ingest.spec.places import When
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject
from patra_ingest.spec.words import Action, BodyFormat, ValueText

_NO_XML = read_xml(b"<nothing/>", {})
_PREFIXED = re.compile(r"[.@\[\s]([A-Za-z_][\w-]*):[A-Za-z_]")
_QUOTED = re.compile(r"(?<!\[)'[^']*'|(?<!\[)\"[^\"]*\"")


def paths_parse(subject: Subject) -> Iterator[Problem]:
    """Every path is read once, here, and not for the first time in a harvest."""
    for where, path in _plain_paths(subject):
        try:
            compiled = compile_path(path)
            if subject.shaped.response.format == BodyFormat.XML:
                compiled.nodes(_NO_XML)
        except ValueError as error:
            yield Problem(where, str(error), "correct the path")
            continue
        if not path.startswith("$"):
            yield Problem(where, f"{path!r:.60} does not begin with $", f"write $.{path}"[:60])
    for where, value in _values(subject):
        try:
            expression = compile_value(paths_of(value))
            if subject.shaped.response.format == BodyFormat.XML:
                expression.find(_NO_XML)
        except ValueError as error:
            yield Problem(where, str(error), "correct the path or its functions")


def _plain_paths(subject: Subject) -> Iterator[tuple[str, str]]:
    response, paging, window = (
        subject.shaped.response,
        subject.shaped.paging,
        subject.shaped.window,
    )
    named = {
        "paging.next_token": paging.next_token and paging.next_token.path,
        "paging.next_url": paging.next_url and paging.next_url.path,
        "paging.total": paging.total and paging.total.path,
        "paging.has_more": paging.has_more,
        "cap.probe.total": subject.shaped.cap.probe and subject.shaped.cap.probe.total,
        "paging.step_path": paging.step_path,
        "window.server_date": window.server_date and window.server_date.path,
        "window.release": window.release and window.release.path,
        "window.freshness": window.freshness and window.freshness.path,
        "response.items_order": response.items_order,
        "response.tombstones": response.tombstones,
        "response.deleted": response.deleted if isinstance(response.deleted, str) else None,
        "rate.cost_path": subject.shaped.rate.cost_path,
    }
    yield from ((where, path) for where, path in named.items() if path)
    yield from ((f"response.require.{n}", path) for n, path in enumerate(response.require or ()))
    yield from ((f"response.items.{n}", p) for n, p in enumerate(paths_of(response.items or ())))
    for number, expectation in enumerate(response.expect or ()):
        yield f"response.expect.{number}.path", expectation.path
    yield from ((where, when.path) for where, when in conditions(subject) if when.path)


def _values(subject: Subject) -> Iterator[tuple[str, ValueText]]:
    response = subject.shaped.response
    for key in ("id", "asked", "version", "updated_at"):
        if (said := getattr(response, key)) is not None:
            yield f"response.{key}", said
    for field in subject.shaped.endpoint.fields or ():
        yield f"endpoint.fields.{field.name}", field.path
    last = subject.shaped.paging.next_token and subject.shaped.paging.next_token.last_item
    if last:
        yield "paging.next_token.last_item", last


def conditions(subject: Subject) -> Iterator[tuple[str, When]]:
    """Yield every condition of the endpoint with its place."""
    response = subject.shaped.response
    for key in ("deleted", "retracted", "skip", "usable"):
        said = getattr(response, key)
        if isinstance(said, When):
            yield f"response.{key}", said
    for number, rule in enumerate(subject.shaped.endpoint.errors or ()):
        yield f"endpoint.errors.{number}.when", rule.when


def conditions_parse(subject: Subject) -> Iterator[Problem]:
    """What a condition must match is a regular expression."""
    expected = subject.shaped.response.expect or ()
    patterns = [(f"response.expect.{n}", e.matches) for n, e in enumerate(expected)]
    patterns += [(where, when.matches) for where, when in conditions(subject)]
    for where, pattern in patterns:
        try:
            safe_regex(pattern or "", needs_group=False)
        except ValueError as error:
            yield Problem(f"{where}.matches", str(error), "correct the pattern")


def items_are_judged_by_what_they_hold(subject: Subject) -> Iterator[Problem]:
    """A condition on an item cannot look at a status or a header."""
    for where, when in conditions(subject):
        if where.startswith("response.") and (when.status or when.header or when.text):
            yield Problem(where, "looks at more than the item", "use a path of the item")


def prefixes_are_declared(subject: Subject) -> Iterator[Problem]:
    """A prefix in an XML path stands for a namespace that the pack names."""
    response = subject.shaped.response
    known = response.namespaces or {}
    if response.format != BodyFormat.XML:
        if known:
            yield Problem("response.namespaces", "are for XML", "remove them")
        return
    uris = list(known.values())
    for uri in sorted({uri for uri in uris if uris.count(uri) > 1}):
        yield Problem("response.namespaces", f"{uri} has two prefixes", "keep one of them")
    texts = [(where, path) for where, path in _plain_paths(subject)]
    texts += [(where, path) for where, value in _values(subject) for path in paths_of(value)]
    for where, path in texts:
        for prefix in sorted(set(_PREFIXED.findall(_QUOTED.sub("''", path))) - known.keys()):
            yield Problem(
                where, f"{prefix}: is no declared namespace", "add it to response.namespaces"
            )


def a_group_belongs_to_one_id(subject: Subject) -> Iterator[Problem]:
    """Whose items they are is known only where one id is asked for at a time."""
    response = subject.shaped.response
    if not response.grouped:
        return
    where = "response.grouped"
    if not subject.by_ids:
        yield Problem(
            where, "a window is not the id of anything", "use it with operations: [UPDATE]"
        )
    if (subject.shaped.batching.ids_per_request or 0) != 1:
        yield Problem(where, "needs one id per request", "say batching.ids_per_request: 1")
    if response.format == BodyFormat.XML:
        yield Problem(where, "is not possible with XML", "remove it")
    if response.single or response.items_order:
        other = "single" if response.single else "items_order"
        yield Problem(where, f"contradicts {other}", "keep one of them")


def a_change_can_be_seen(subject: Subject) -> Iterator[Problem]:
    """Newer wins only where there is a time; else the content hash must decide."""
    hands_over = subject.declaration.detail is not None
    by_time = subject.shaped.endpoint.changed != ChangeRule.HASH
    if by_time and not subject.shaped.response.updated_at and not hands_over:
        yield Problem("response.updated_at", "is missing", "declare it, or say changed: HASH")
    if subject.shaped.response.client_window and not subject.shaped.response.updated_at:
        yield Problem("response.client_window", "needs updated_at to compare", "declare it")


def fields_are_told_apart(subject: Subject) -> Iterator[Problem]:
    """Two fields of one name would be one."""
    names = [field.name for field in subject.shaped.endpoint.fields or ()]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Problem(f"endpoint.fields.{name}", "is there twice", "choose another name")


def _has_oauth(subject: Subject) -> bool:
    return any(named.credential.type == "OAUTH2" for named in subject.declaration.credentials)


def error_rules_make_sense(subject: Subject) -> Iterator[Problem]:
    """An action is only worth declaring where it can be done."""
    for number, rule in enumerate(subject.shaped.endpoint.errors or ()):
        where = f"endpoint.errors.{number}.do"
        if rule.wait is not None and rule.do not in (Action.RETRY, Action.THROTTLE):
            yield Problem(f"endpoint.errors.{number}.wait", f"{rule.do} does not wait", "remove it")
        if rule.do == Action.GONE and not subject.by_ids:
            yield Problem(where, "GONE is about ids, which a window does not have", "use EMPTY")
        if rule.do == Action.RENEW_TOKEN and not _has_oauth(subject):
            yield Problem(where, "there is no OAUTH2 credential to renew", "declare one")
        if rule.do == Action.SHRINK_PAGE and not subject.sends_page_size():
            yield Problem(where, "no page size is sent", "name it in paging.size_param")


CHECKS = (
    paths_parse,
    conditions_parse,
    items_are_judged_by_what_they_hold,
    prefixes_are_declared,
    a_group_belongs_to_one_id,
    a_change_can_be_seen,
    fields_are_told_apart,
    error_rules_make_sense,
)
