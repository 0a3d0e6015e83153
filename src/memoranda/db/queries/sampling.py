"""A sample of a scope's memories, the same at every call as long as nothing is stored."""

from sqlalchemy import Connection, select

from memoranda.db.queries.visibility import holding, visible
from memoranda.db.schema import Tables
from memoranda.drafts import Setting, embedded_text
from memoranda.filters import Filters
from memoranda.ranking.calibration import LEAST_WORDS, Row


def sample(conn: Connection, tables: Tables, setting: Setting, size: int) -> list[Row]:
    """Return up to `size` of the memories that hold now, from the oldest to the newest at equal distances."""
    m, scope = tables.memories, setting.scope
    wanted = (
        visible(tables, scope, setting.policies.visibility),
        holding(m, Filters(), setting.now),
        m.c.length >= LEAST_WORDS,
    )
    ids = list(conn.scalars(select(m.c.id).where(*wanted).order_by(m.c.id)))
    count = min(size, len(ids))
    chosen = [ids[place * len(ids) // count] for place in range(count)]
    found = conn.execute(
        select(m.c.id, m.c.title, m.c.content, m.c.content_terms, m.c.session, m.c.position)
        .where(m.c.tenant == scope.tenant, m.c.persona == scope.persona, tables.dialect.ids_in(m.c.id, chosen))
        .order_by(m.c.id)
    )
    return [
        Row(
            id=row.id,
            text=embedded_text(row.content, row.title),
            terms=frozenset(row.content_terms.split()),
            session=row.session,
            position=row.position,
        )
        for row in found
    ]
