"""The memories that came to a persona after it was searched, which are found among themselves.

A search takes long, so it is made before the transaction that relies on it. Inside, only what came since is looked at.
No clock is trusted to say what that is: the newest ids are remembered, and the number of all rows tells whether every
one that came is among those beyond them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, and_, func, select

from memoranda.db.schema import Tables
from memoranda.drafts import embedded_text
from memoranda.scope import Scope
from memoranda.text import words

_REMEMBERED = 256  # ids: a row of a host whose clock is behind by more than these took is searched for


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a persona held at a moment."""

    rows: int
    newest: frozenset[UUID]


def mark(conn: Connection, tables: Tables, scope: Scope) -> Mark:
    """Take note of what a persona holds now."""
    found = conn.execute(_ids(tables, scope).order_by(tables.memories.c.id.desc()).limit(_REMEMBERED)).all()
    return Mark(rows=found[0].rows if found else 0, newest=frozenset(row.id for row in found))


def since(conn: Connection, tables: Tables, scope: Scope, mark: Mark) -> list[UUID] | None:
    """Return what came to a persona after a mark; None where that cannot be told, as after an import or an erasure."""
    beyond = tables.memories.c.id >= min(mark.newest) if len(mark.newest) == _REMEMBERED else True
    found = conn.execute(_ids(tables, scope).where(beyond)).all()
    came = [row.id for row in found if row.id not in mark.newest]
    return came if (found[0].rows if found else 0) == mark.rows + len(came) else None


def _ids(tables: Tables, scope: Scope) -> Any:
    # The number of rows comes with the ids, in one statement, for both must be of one moment.
    m, all_rows = tables.memories, tables.memories.alias("all_rows")
    counted = select(func.count()).where(all_rows.c.tenant == scope.tenant, all_rows.c.persona == scope.persona)
    return select(m.c.id, counted.scalar_subquery().label("rows")).where(
        m.c.tenant == scope.tenant, m.c.persona == scope.persona
    )


class Newcomers:
    """Rows that came after a search, those of this transaction among them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._ids: list[UUID] = []
        self._words: list[frozenset[str]] = []
        self._vectors: Any = None

    def load(self, conn: Connection, tables: Tables, scope: Scope, ids: Sequence[UUID], model: str | None) -> None:
        """Take in rows of the table."""
        m, v = tables.memories, tables.vectors
        joined = m.outerjoin(
            v,
            and_(
                v.c.tenant == m.c.tenant,
                v.c.persona == m.c.persona,
                v.c.kind == "memory",
                v.c.model == (model or ""),
                v.c.owner == m.c.id,
            ),
        )
        own = (m.c.tenant == scope.tenant, m.c.persona == scope.persona, tables.dialect.ids_in(m.c.id, ids))
        for row in conn.execute(select(m.c.id, m.c.title, m.c.content, v.c.vector).select_from(joined).where(*own)):
            self.add(row.id, embedded_text(row.content, row.title), row.vector)

    def add(self, id: UUID, text: str, vector: Any) -> None:
        """Take in a row, or the new text of one."""
        place = len(self._ids)
        self._ids.append(id)
        self._words.append(words(text))
        if vector is None:
            return
        if self._vectors is None or place >= len(self._vectors):
            grown = np.zeros((2 * place + 16, len(vector)), np.float32)
            if self._vectors is not None:
                grown[: len(self._vectors)] = self._vectors
            self._vectors = grown
        self._vectors[place] = vector / (np.linalg.norm(vector) or 1)

    def near(self, text: str, vector: Any, count: int) -> list[UUID]:
        """Return those that come nearest to a text, by words and by meaning, so many of each."""
        if len(self._ids) <= count:
            return list(self._ids)
        said = words(text)
        shared = [len(said & other) / (len(said | other) or 1) for other in self._words]
        places = {place for place in nlargest(count, range(len(shared)), key=shared.__getitem__) if shared[place]}
        if vector is not None and self._vectors is not None:
            cosines = self._vectors[: len(self._ids)] @ vector
            places.update(np.argsort(-cosines, kind="stable")[:count].tolist())
        return [self._ids[place] for place in sorted(places) if place < len(self._ids)]
