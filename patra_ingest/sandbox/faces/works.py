"""As Crossref: `/works`, whose cursor never ends, stays the same (2), or dies (10).

In a living world works are added here; they neither change nor go.
"""

from dataclasses import replace

from patra_ingest.sandbox.answers import Answer, answer_page, answer_refusal, next_cursor
from patra_ingest.sandbox.bodies import Bodies
from patra_ingest.sandbox.faces.stage import Stage
from patra_ingest.sandbox.queries import Query, Refusal, read_query
from patra_ingest.sandbox.tokens import write_token


def answer_works(bodies: Bodies, stage: Stage, query_string: str) -> Answer:
    """Answer a page of works, or say why not."""
    query = read_query(stage.world, query_string, stage.newest)
    if isinstance(query, Refusal):
        return answer_refusal(query)
    if query.cursor and stage.is_dead(query.cursor):
        text = "Cursor specified but it has expired"
        return answer_refusal(Refusal(404, "cursor-invalid", query.cursor, text))
    if query.cursor and "same-cursor" in stage.habits:
        return _scroll(bodies, stage, query)
    token = next_cursor(query)
    if token and "dying-token" in stage.habits:
        stage.memory.hand_out(token, stage.now)
    return answer_page(bodies, query, token)


def _scroll(bodies: Bodies, stage: Stage, query: Query) -> Answer:
    """Answer the next page of a walk that the server itself remembers, under one cursor."""
    scrolls = stage.memory.scrolls
    if query.cursor == "*":
        scrolls.append(0)
    number = len(scrolls) - 1 if query.cursor == "*" else query.position
    if number >= len(scrolls):
        text = "Cursor specified but it is invalid"
        return answer_refusal(Refusal(404, "cursor-invalid", str(query.cursor), text))
    here = replace(query, position=scrolls[number])
    scrolls[number] += len(here.page)
    return answer_page(bodies, here, write_token(number, query.scope))
