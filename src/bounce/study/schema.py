"""The schema of a study file, as the scripts that make it.

A new file runs all of them. A file of an earlier format runs those that it lacks, at its first change. A file whose
schema is another one is not a study: a trigger or a view could do anything.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache

APPLICATION = 0x424E4345  # "BNCE", in the header of the file
# Script n brings the tables from version n to n + 1; `optimizer.upgrades` does the optimizer's own documents. A script
# that has been released is never changed.
MIGRATIONS = (
    """
    CREATE TABLE study (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        revision INTEGER NOT NULL,
        created TEXT NOT NULL,
        runner TEXT,
        format TEXT NOT NULL,
        version INTEGER NOT NULL,
        space TEXT NOT NULL,
        options TEXT NOT NULL,
        rng TEXT NOT NULL,
        tells INTEGER NOT NULL,
        head TEXT NOT NULL
    );
    CREATE TABLE trials (
        id INTEGER PRIMARY KEY,
        state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'failed')),
        value REAL,
        error TEXT,
        point TEXT NOT NULL,
        asked TEXT NOT NULL,
        finished TEXT,
        codes TEXT NOT NULL,
        batch INTEGER NOT NULL,
        told INTEGER,
        space INTEGER NOT NULL,
        target_dim INTEGER NOT NULL,
        length_comb REAL NOT NULL,
        length_cont REAL NOT NULL,
        restart INTEGER NOT NULL,
        acquisition REAL,
        seconds_ask REAL NOT NULL,
        seconds_eval REAL
    );
    """,
    """
    CREATE TABLE new_trials (
        id INTEGER PRIMARY KEY,
        state TEXT NOT NULL,
        value REAL,
        error TEXT,
        point TEXT NOT NULL,
        asked TEXT NOT NULL,
        finished TEXT,
        codes TEXT NOT NULL,
        batch INTEGER NOT NULL,
        told INTEGER,
        stage INTEGER NOT NULL,
        target_dim INTEGER NOT NULL,
        radius REAL NOT NULL,
        side REAL NOT NULL,
        restart INTEGER NOT NULL,
        acquisition REAL,
        seconds_ask REAL NOT NULL,
        seconds_eval REAL,
        notes TEXT NOT NULL,
        asked_codes TEXT,
        enqueued INTEGER NOT NULL,
        counted INTEGER NOT NULL,
        was TEXT,
        former_point TEXT
    );
    INSERT INTO new_trials
        SELECT id, state, value, error, point, asked, finished, codes, batch, told, space, target_dim,
               length_comb, length_cont, restart, acquisition, seconds_ask, seconds_eval, '{}', NULL, 0, 0, NULL, NULL
        FROM trials;
    DROP TABLE trials;
    ALTER TABLE new_trials RENAME TO trials;
    CREATE TABLE history (
        id INTEGER PRIMARY KEY,
        time TEXT NOT NULL,
        action TEXT NOT NULL,
        trial INTEGER,
        before TEXT,
        after TEXT,
        reason TEXT
    );
    """,
    """
    ALTER TABLE study ADD COLUMN uuid TEXT NOT NULL DEFAULT '';
    ALTER TABLE study ADD COLUMN trials_digest INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE study ADD COLUMN history_digest INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE study ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE trials ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE trials ADD COLUMN free TEXT;
    ALTER TABLE trials ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE history ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;
    """,
    """
    ALTER TABLE trials ADD COLUMN sem REAL;
    """,
    """
    ALTER TABLE trials ADD COLUMN outcomes TEXT NOT NULL DEFAULT '{}';
    """,
    """
    ALTER TABLE trials ADD COLUMN repeats INTEGER;
    """,
)
DIGESTS = 3  # the first format whose rows have digests


def run(connection: sqlite3.Connection, scripts: Sequence[str]) -> None:
    """Run scripts within a transaction of the caller."""
    for script in scripts:
        for statement in script.split(";"):
            connection.execute(statement)


def found(connection: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    """Return the tables, indexes, views and triggers of a file, each with the statement that made it."""
    return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


@cache
def expected(version: int) -> frozenset[tuple[str, ...]]:
    """Return what `found` returns for a study of a version."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        run(connection, MIGRATIONS[:version])
        return found(connection)
    finally:
        connection.close()
