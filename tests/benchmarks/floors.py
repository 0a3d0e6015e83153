"""What the storage itself can do with hand-written code: no history, no duplicates held off, no scopes, no safety.

They are yardsticks: an engine that keeps its promises cannot be faster than these, only close to them.
"""

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
_WORD = re.compile(r"\w+")
_LEGS = 50


class Floor(Protocol):
    """One way of storing texts with vectors and finding them again."""

    name: str

    def add(self, rows: Sequence[tuple[str, Vector]]) -> None:
        """Store rows of one scope in one transaction."""
        ...

    def search(self, words: str, vector: Vector, limit: int) -> list[int]:
        """Return row numbers, best first."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class NumpyFloor:
    """A matrix in memory and one product a search: nothing is kept, and no word is looked at."""

    name = "numpy"

    def __init__(self, dimensions: int) -> None:
        self._values, self._rows = np.empty((1024, dimensions), np.float32), 0

    def add(self, rows: Sequence[tuple[str, Vector]]) -> None:
        """Append."""
        needed = self._rows + len(rows)
        while needed > len(self._values):
            self._values = np.concatenate([self._values, np.empty_like(self._values)])
        self._values[self._rows : needed] = [vector for _, vector in rows]
        self._rows = needed

    def search(self, words: str, vector: Vector, limit: int) -> list[int]:
        """Compare every row."""
        scores = self._values[: self._rows] @ vector
        top = np.argpartition(-scores, min(limit, len(scores) - 1))[:limit]
        return [int(i) for i in top[np.argsort(-scores[top])]]

    def close(self) -> None:
        """Need nothing."""


class SqliteFloor:
    """One file, FTS5 and vectors as blobs: both legs, scores fused, vectors kept in memory after the first search."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self._conn = sqlite3.connect(path, isolation_level=None)
        self._conn.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
            "CREATE TABLE item (n INTEGER PRIMARY KEY, body TEXT NOT NULL, vector BLOB NOT NULL);"
            "CREATE VIRTUAL TABLE words USING fts5(body, content='', tokenize='porter unicode61');"
        )
        self._rows, self._values = 0, np.empty((0, 0), np.float32)

    def add(self, rows: Sequence[tuple[str, Vector]]) -> None:
        """Insert into both tables."""
        start, self._rows = self._rows, self._rows + len(rows)
        self._conn.execute("BEGIN IMMEDIATE")
        numbered = list(enumerate(rows, start + 1))
        self._conn.executemany("INSERT INTO item VALUES (?, ?, ?)", [(n, b, v.tobytes()) for n, (b, v) in numbered])
        self._conn.executemany("INSERT INTO words(rowid, body) VALUES (?, ?)", [(n, b) for n, (b, _) in numbered])
        self._conn.execute("COMMIT")

    def search(self, words: str, vector: Vector, limit: int) -> list[int]:
        """Fuse the two legs."""
        if len(self._values) != self._rows:
            blobs = [row[0] for row in self._conn.execute("SELECT vector FROM item ORDER BY n")]
            self._values = np.frombuffer(b"".join(blobs), np.float32).reshape(len(blobs), -1)
        scores = 0.6 * (self._values @ vector)
        query = " OR ".join(f'"{word}"' for word in _WORD.findall(words.lower()))
        found = self._conn.execute(
            "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ? ORDER BY 2 DESC LIMIT ?", (query, _LEGS)
        ).fetchall()
        for n, score in found:
            scores[n - 1] += 0.4 * score / found[0][1]
        top = np.argpartition(-scores, min(limit, len(scores) - 1))[:limit]
        return [int(i) + 1 for i in top[np.argsort(-scores[top])]]

    def close(self) -> None:
        """Close the file."""
        self._conn.close()


class PostgresFloor:
    """One table, one statement: exact comparison and an OR query, fused; COPY for a batch."""

    name = "postgres"
    _SEARCH = """
        WITH near AS MATERIALIZED (
            SELECT n, 1 - (vector <=> %(vector)s) AS score FROM floor_item ORDER BY vector <=> %(vector)s LIMIT 50
        ), said AS MATERIALIZED (
            SELECT n, ts_rank(words, to_tsquery('english', %(words)s)) AS score FROM floor_item
            WHERE words @@ to_tsquery('english', %(words)s) ORDER BY score DESC LIMIT 50
        )
        SELECT n, 0.6 * coalesce(near.score, 0)
                + 0.4 * coalesce(said.score, 0) / greatest((SELECT max(score) FROM said), 1e-9) AS score
        FROM near FULL JOIN said USING (n) ORDER BY score DESC LIMIT %(limit)s
    """

    def __init__(self, dsn: str, dimensions: int) -> None:
        import psycopg
        from pgvector.psycopg import register_vector

        self._conn: psycopg.Connection[Any] = psycopg.connect(dsn, autocommit=True)
        self._conn.execute("CREATE EXTENSION IF NOT EXISTS vector")
        self._conn.execute("DROP TABLE IF EXISTS floor_item")
        self._conn.execute(
            "CREATE TABLE floor_item (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL, "
            f"vector vector({dimensions:d}) NOT NULL, "
            "words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED)"
        )
        self._conn.execute("CREATE INDEX ON floor_item USING gin (words)")
        register_vector(self._conn)

    def add(self, rows: Sequence[tuple[str, Vector]]) -> None:
        """Insert one row, COPY many."""
        if len(rows) == 1:
            self._conn.execute("INSERT INTO floor_item (body, vector) VALUES (%s, %s)", rows[0], prepare=True)
            return
        statement = "COPY floor_item (body, vector) FROM STDIN WITH (FORMAT BINARY)"
        with self._conn.cursor().copy(statement) as copy:
            copy.set_types(["text", "vector"])
            for row in rows:
                copy.write_row(row)

    def search(self, words: str, vector: Vector, limit: int) -> list[int]:
        """Run the one statement."""
        query = " | ".join(_WORD.findall(words.lower())) or "nothing"
        found = self._conn.execute(self._SEARCH, {"vector": vector, "words": query, "limit": limit}, prepare=True)
        return [row[0] for row in found]

    def close(self) -> None:
        """Drop the table and the connection."""
        self._conn.execute("DROP TABLE floor_item")
        self._conn.close()
