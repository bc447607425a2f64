"""`python -m bench.first_compile URL SOURCE ENDPOINT`: read and compile once, as a command does.

Prints the milliseconds of the compilation alone: nothing of it has been done in this process.
"""

import sys

from bench.figures import milliseconds
from patra_ingest.ledger.db import open_db
from patra_ingest.model.codes import Operation
from patra_ingest.registry.read import read_declaration
from patra_ingest.spec.compile import compile_spec
from patra_ingest.spec.declaration import Overrides


def main(url: str, source: str, endpoint: str) -> None:
    """Print how long the first compilation of a process takes."""
    db = open_db(url)
    with db.read() as tx:
        now = db.now(tx)
        declaration = read_declaration(tx, source, endpoint, Operation.HARVEST, now)
    db.close()
    print(milliseconds(lambda: compile_spec(declaration, Overrides())))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python -m bench.first_compile URL SOURCE ENDPOINT")
    main(*sys.argv[1:])
