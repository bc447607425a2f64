"""A walk whose token is kept as a cursor, for sources that can be scanned on with it (opt-in).

The token is evidence of how far the scan is: it does not decide what is planned. Several slices of
one endpoint share it, and the last one wins.
"""

from dataclasses import replace

from patra_ingest.cursor.advance import CursorManager, Evidence
from patra_ingest.executor.leased import Place, Work
from patra_ingest.model.lineage import BatchId
from patra_ingest.model.namespace import Namespace
from patra_ingest.spec.paging import TokenPaging

CURSOR_KEY = "page_token"


def token_namespace(work: Work) -> Namespace | None:
    """Return whose token a walk moves; None unless its pack wants it kept."""
    paging = work.plan.spec.paging
    if not isinstance(paging, TokenPaging) or not paging.keep_token or work.bounds.ids:
        return None
    return replace(work.plan.namespace, cursor_key=CURSOR_KEY)


def keep_token(cursors: CursorManager, work: Work, batch: BatchId, place: Place | None) -> None:
    """Keep the token that a committed batch has brought: that of the place that follows."""
    namespace = token_namespace(work)
    if namespace is not None and place is not None and place.page.token:
        evidence = Evidence(work.lineage(batch), work.expr_hash, work.bounds.window)
        cursors.keep_token(namespace, place.page.token, evidence)


def forget_token(cursors: CursorManager, work: Work, dead: str | None) -> None:
    """Write down that a kept token has died, and go back to the last good one."""
    namespace = token_namespace(work)
    if namespace is not None and dead:
        evidence = Evidence(work.lineage(None), work.expr_hash, work.bounds.window)
        cursors.compensate(namespace, dead, evidence)
