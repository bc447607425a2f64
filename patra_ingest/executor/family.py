"""The last part of a slice that was cut by a second dimension: do all of them make up the whole?"""

from sqlalchemy import Connection

from patra_ingest.errors import RequestRejected
from patra_ingest.executor.leased import Work
from patra_ingest.ledger.families import find_shortfall
from patra_ingest.ledger.plans import lock_plan


def require_family(tx: Connection, work: Work) -> None:
    """Raise when a slice is the last part of a family that holds less than was measured.

    Nothing of the pack can find the rest, so walking again would not help: a person must declare a
    dimension that names everything. The records that came stay.
    """
    if not work.bounds.splits:
        return
    # Two workers that end the last two parts at once would each see the other's as open.
    lock_plan(tx, work.lease.plan_id)
    short = find_shortfall(tx, work.lease.slice_id, work.promise.tolerance)
    if short is not None:
        raise RequestRejected(
            f"the {short.parts} parts that slice {short.parent} was cut into hold {short.landed} of"
            f" its {short.measured} records: cap.then does not name them all; add what is missing"
            " there, then plan the window again"
        )
