"""Result caps: seen before they bite, and cut in a way that reaches the request."""

from collections.abc import Iterator

from patra_ingest.expr.template import compile_template
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.splits import SPLIT_NAMES
from patra_ingest.spec.subject import Subject


def a_cap_can_be_seen(subject: Subject) -> Iterator[Problem]:
    """Without a total, a capped answer looks complete; who asks for ids knows how many."""
    cap, total = subject.shaped.cap, subject.shaped.paging.total
    if cap.max and not (total or (cap.probe and cap.probe.total)) and not subject.by_ids:
        yield Problem("cap.max", "no total tells when it is reached", "declare paging.total")
    if (cap.probe or cap.then) and not cap.max:
        yield Problem("cap.max", "is missing", "say how many results the source serves at most")


def a_probe_asks_something_else(subject: Subject) -> Iterator[Problem]:
    """A probe that asks the same as the first page is no cheaper."""
    probe = subject.shaped.cap.probe
    if probe and not (probe.query or probe.form or probe.body):
        yield Problem("cap.probe", "changes nothing", "say what makes it cheap")


def splits_reach_the_request(subject: Subject) -> Iterator[Problem]:
    """The clause of a second dimension is sent as ${split}."""
    has_split, sends = bool(subject.shaped.cap.then), subject.uses("split")
    if has_split and not sends and not subject.by_ids:
        yield Problem("cap.then", "no template uses ${split}", "add it as a clause of the query")
    if sends and not has_split:
        yield Problem("cap.then", "is missing, but ${split} is used", "declare it")


def splits_parse(subject: Subject) -> Iterator[Problem]:
    """Each clause speaks of the part it stands for, and of nothing else."""
    for number, split in enumerate(subject.shaped.cap.then or ()):
        where = f"cap.then.{number}.clause"
        names = SPLIT_NAMES[split.by]
        try:
            template = compile_template(split.clause)
        except ValueError as error:
            yield Problem(where, str(error), "correct it")
            continue
        if template.names != names:
            listed = " and ".join(f"${{{name}}}" for name in sorted(names))
            yield Problem(where, f"a {split.by} split says {listed}", "use these and no others")


CHECKS = (
    a_cap_can_be_seen,
    a_probe_asks_something_else,
    splits_reach_the_request,
    splits_parse,
)
