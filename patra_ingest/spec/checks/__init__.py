"""The checklist a declaration must pass before it becomes a spec: one small function per rule.

Every function looks at one endpoint and answers with problems; all are reported at once, each with
its place in the pack. A function names `group.key`; the place follows from where it was said.
"""

from collections.abc import Callable, Iterator

from patra_ingest.spec.checks import (
    auth,
    cap,
    detail,
    limits,
    paging,
    planning,
    query,
    request,
    response,
    templates,
    window,
)
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject

Check = Callable[[Subject], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (
    *request.CHECKS,
    *templates.CHECKS,
    *paging.CHECKS,
    *window.CHECKS,
    *cap.CHECKS,
    *response.CHECKS,
    *detail.CHECKS,
    *auth.CHECKS,
    *limits.CHECKS,
    *planning.CHECKS,
    *query.CHECKS,
)


def find_problems(subject: Subject) -> list[Problem]:
    """Return every problem of an endpoint, and of the detail endpoint it uses."""
    found = [
        Problem(subject.merged.place(problem.path), problem.reason, problem.remedy)
        for check in CHECKS
        for problem in check(subject)
    ]
    return found + (find_problems(subject.detail) if subject.detail else [])
