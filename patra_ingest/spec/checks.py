"""The checklist a declaration must pass before it becomes a spec: one small function per rule.

Every function looks at the merged values and answers with problems; all are reported at once.
"""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from patra_ingest.expr.path import compile_path
from patra_ingest.expr.template import compile_template
from patra_ingest.model.codes import WatermarkSource
from patra_ingest.model.records import ChangeRule
from patra_ingest.spec.merge import Merged
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.secrets import find_secret_params, find_written_secrets
from patra_ingest.spec.snapshot import StopRule

# What a request template may speak of. `window.last` is the last instant inside the window.
VARIABLES = frozenset(
    {"window.from", "window.to", "window.last", "page.size", "page.offset", "page.number"}
    | {"page.token", "identity.contact"}
)
_MAX_TIMEOUT_MS = 120_000
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


Check = Callable[[Merged, frozenset[str]], Iterator[Problem]]


def find_problems(merged: Merged, params: frozenset[str]) -> list[Problem]:
    """Return every problem of the merged declaration; `params` are the trigger's own names."""
    return [problem for check in CHECKS for problem in check(merged, params)]


def _required_values(merged: Merged, _params: frozenset[str]) -> Iterator[Problem]:
    for path, remedy in (
        ("request.base_url", "give the provenance a base_url"),
        ("request.path", "give the endpoint a path"),
        ("paging.type", "say how the endpoint pages: OFFSET or TOKEN"),
        ("response.items_path", "say where the items are, for example $.message.items"),
        ("response.id_path", "say where an item's id is, for example $.DOI"),
        ("rate.key", "name the rate key this source spends from"),
    ):
        if not merged.find(path):
            yield Problem(path, "is missing", remedy)


def _https_unless_allowed(merged: Merged, _params: frozenset[str]) -> Iterator[Problem]:
    url = urlsplit(merged.find("request.base_url") or "https://declared.elsewhere")
    if url.scheme not in ("http", "https") or not url.hostname:
        yield Problem("request.base_url", f"{url.geturl()!r} is no web address", "use https://…")
    elif url.scheme == "http" and not merged.find("http.allow_insecure_http"):
        yield Problem("request.base_url", "is not HTTPS", "use https or allow_insecure_http: true")
    elif url.scheme == "http" and url.hostname not in _LOOPBACK:
        yield Problem(
            "http.allow_insecure_http", "is meant for this machine only", "use https for a host"
        )


def _no_secret_is_written_down(merged: Merged, params: frozenset[str]) -> Iterator[Problem]:
    yield from find_written_secrets(merged.values["request"])
    yield from find_secret_params(params)


def _timeouts_are_bounded(merged: Merged, _params: frozenset[str]) -> Iterator[Problem]:
    for key in ("connect_timeout_ms", "read_timeout_ms", "total_timeout_ms"):
        value = merged.find(f"http.{key}")
        if not 0 < value <= _MAX_TIMEOUT_MS:
            yield Problem(f"http.{key}", f"{value} ms is out of bounds", "stay within 1–120000 ms")


def _paging_can_end(merged: Merged, _params: frozenset[str]) -> Iterator[Problem]:
    stop = set(merged.find("paging.stop") or ())
    if not stop:
        yield Problem("paging.stop", "lists no rule", "declare what ends the pages")
    if merged.find("paging.type") == "TOKEN" and not merged.find("paging.next_token_path"):
        yield Problem("paging.next_token", "TOKEN paging needs it", "say where the token is")
    if merged.find("paging.type") == "OFFSET" and not stop & {
        StopRule.EMPTY_PAGE,
        StopRule.SHORT_PAGE,
        StopRule.TOTAL_REACHED,
    }:
        yield Problem(
            "paging.stop", "OFFSET pages hand out no token", "use EMPTY_PAGE or SHORT_PAGE"
        )
    if StopRule.TOTAL_REACHED in stop and not merged.find("paging.total_path"):
        yield Problem("paging.total", "TOTAL_REACHED needs it", "say where the total is")
    if not 1 <= merged.find("paging.page_size") <= 10_000:
        yield Problem("paging.page_size", "is out of bounds", "stay within 1–10000")


def _paths_parse(merged: Merged, _params: frozenset[str]) -> Iterator[Problem]:
    paths = {
        path: merged.find(path)
        for path in ("paging.next_token_path", "paging.total_path", "response.items_path")
    }
    paths |= {
        f"response.{key}": merged.find(f"response.{key}")
        for key in ("id_path", "updated_at_path", "deleted_path")
    }
    paths |= {f"fields.{field.name}": field.path for field in merged.find("mapping.fields")}
    for where, path in paths.items():
        if path is None:
            continue
        try:
            compile_path(path)
        except ValueError as error:
            yield Problem(where, str(error), "correct the path")


def _templates_parse(merged: Merged, params: frozenset[str]) -> Iterator[Problem]:
    known = VARIABLES | {f"params.{name}" for name in params}
    templates = {"request.path": merged.find("request.path") or ""}
    for part in ("query", "headers"):
        templates |= {
            f"request.{part}.{name}": text
            for name, text in (merged.find(f"request.{part}") or {}).items()
        }
    for where, text in templates.items():
        try:
            problems = compile_template(text).check(known)
        except ValueError as error:
            problems = [str(error)]
        for reason in problems:
            yield Problem(where, reason, f"known names: {', '.join(sorted(known))}")


def _position_reaches_the_request(merged: Merged, _params: frozenset[str]) -> Iterator[Problem]:
    wanted = {"OFFSET": "page.offset", "TOKEN": "page.token"}.get(merged.find("paging.type"))
    texts = [merged.find("request.path") or "", *(merged.find("request.query") or {}).values()]
    for name in (wanted, "window.from"):
        if name and not any(name in text for text in texts):
            yield Problem("request.query", f"never uses ${{{name}}}", "every page would be page 1")


def _windows_make_sense(merged: Merged, _params: frozenset[str]) -> Iterator[Problem]:
    if merged.find("window.safety_lag") < 0 or merged.find("window.overlap") < 0:
        yield Problem("window.safety_lag", "lag and overlap cannot be negative", "use 0 or more")
    if merged.find("window.max_span") < 1:
        yield Problem("window.max_span", "is shorter than a second", "use for example 1d")
    if merged.find("window.watermark_source") != WatermarkSource.WINDOW_END:
        yield Problem(
            "window.watermark_source", "only WINDOW_END can be checked here", "use WINDOW_END"
        )


def _change_can_be_seen(merged: Merged, _params: frozenset[str]) -> Iterator[Problem]:
    if merged.find("mapping.changed") != ChangeRule.HASH and not merged.find(
        "response.updated_at_path"
    ):
        yield Problem("response.updated_at", "is missing", "declare it, or say changed: HASH")


def _rates_are_positive(merged: Merged, _params: frozenset[str]) -> Iterator[Problem]:
    for key in ("per_second", "burst", "cost"):
        if merged.find(f"rate.{key}") <= 0:
            yield Problem(f"rate.{key}", "must be more than zero", "see the vendor's limits")
    if merged.find("retry.max_attempts") < 1:
        yield Problem("retry.max_attempts", "must be at least 1", "1 means: no retry")


CHECKS: tuple[Check, ...] = (
    _required_values,
    _https_unless_allowed,
    _no_secret_is_written_down,
    _timeouts_are_bounded,
    _paging_can_end,
    _paths_parse,
    _templates_parse,
    _position_reaches_the_request,
    _windows_make_sense,
    _change_can_be_seen,
    _rates_are_positive,
)
