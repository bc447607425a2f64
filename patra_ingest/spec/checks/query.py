"""The query book: what it allows can be written, and what it writes is known."""

from collections.abc import Iterator

from patra_ingest.expr.query_book import book_problems
from patra_ingest.spec.problems import Problem
from patra_ingest.spec.subject import Subject


def the_book_is_complete(subject: Subject) -> Iterator[Problem]:
    """A field that may be asked has a rule that writes it, under keys that are mapped."""
    book = subject.declaration.book
    for issue in book_problems(book) if book else ():
        yield Problem(f"expressions.{issue.path}", f"{issue.code}: {issue.message}", issue.remedy)


CHECKS = (the_book_is_complete,)
