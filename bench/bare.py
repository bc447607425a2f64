"""The least that harvests: fetch, parse, upsert. `python -m bench.bare URL WHERE` runs it.

It runs in a process of its own, with nothing loaded but what it needs, as a script of somebody's
would: beside our modules Python's collector alone makes it half as slow again.
"""

import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import orjson
import pymysql

PAGE = 100


def bare_loop(url, upsert):
    """Fetch, parse, upsert one page after the other: no ledger, no proof, no resume."""
    count = 0
    with httpx.Client(trust_env=False) as client:
        cursor = "*"
        while True:
            page = client.get(f"{url}/works", params={"rows": PAGE, "cursor": cursor})
            message = orjson.loads(page.content)["message"]
            items = message["items"]
            upsert([(i["DOI"], i["indexed"]["date-time"], orjson.dumps(i).decode()) for i in items])
            count += len(items)
            if len(items) < PAGE:
                return count
            cursor = message["next-cursor"]


def bare_sqlite(url, folder):
    """Run the bare loop into a SQLite file of its own."""
    db = sqlite3.connect(folder / f"bare-{uuid4().hex}.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    db.execute("CREATE TABLE r (id TEXT PRIMARY KEY, updated TEXT, payload TEXT)")
    sql = "INSERT INTO r VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET payload = excluded.payload"

    def upsert(rows):
        db.execute("BEGIN")
        db.executemany(sql, rows)
        db.execute("COMMIT")

    return bare_loop(url, upsert)


def bare_mysql(url, mysql_url):
    """Run the bare loop into a MySQL table of its own."""
    parsed = urlsplit(mysql_url)
    db = pymysql.connect(
        host=parsed.hostname,
        port=parsed.port,
        user=parsed.username,
        password=parsed.password or "",
        database=parsed.path[1:],
        charset="utf8mb4",
    )
    with db, db.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS bare")
        cursor.execute(
            "CREATE TABLE bare (id VARCHAR(512) COLLATE utf8mb4_bin PRIMARY KEY,"
            " updated VARCHAR(40), payload JSON)"
        )
        sql = (
            "INSERT INTO bare VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE payload = VALUES(payload)"
        )

        def upsert(rows):
            cursor.executemany(sql, rows)
            db.commit()

        return bare_loop(url, upsert)


def run_bare(url, where):
    """Run the loop in a process of its own; return its seconds, and those of the processor."""
    command = [sys.executable, "-m", "bench.bare", url, str(where)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [float(word) for word in run.stdout.split()]


def main(url, where):
    """Harvest twice, the second time warm, and print how long that took."""
    for _ in range(2):
        began, worked = time.perf_counter(), time.process_time()
        if where.startswith("mysql"):
            bare_mysql(url, where)
        else:
            bare_sqlite(url, Path(where))
        taken = time.perf_counter() - began, time.process_time() - worked
    print(*taken)


if __name__ == "__main__":
    main(*sys.argv[1:])
