"""What a SQLite file says of an author's rows that are in memory, where they are known by their numbers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, bindparam, literal_column, select

from memoranda.db.dialects.sqlite_lists import list_rows, listed
from memoranda.db.resident import Owner, Rows
from memoranda.db.statements import Selection

if TYPE_CHECKING:
    from memoranda.db.corpora import Corpus
    from memoranda.db.schema import Tables


@dataclass(frozen=True, slots=True)
class SqliteAuthorRows:
    """The `AuthorRows` of a file."""

    tables: "Tables"
    corpus: "Corpus"
    owner: Owner
    rows: Rows

    def refused(self, conn: Connection, chosen: Selection, numbers: Sequence[int]) -> Sequence[int]:
        """Ask for what is not chosen, which is mostly nothing."""
        m = self.corpus.table

        def build() -> Select[Any]:
            asked = list_rows("numbers")
            let_through = select(literal_column("1")).where(m.c.n == asked.c.value, chosen.where(m)).exists()
            return select(asked.c.value).where(~let_through.correlate(asked))

        form, values = chosen.form and ("refused", chosen.form), {**chosen.values, "numbers": json.dumps(numbers)}
        return [row[0] for row in self.tables.statements.rows(conn, form, build, values)]

    def texts(self, conn: Connection, numbers: Sequence[int]) -> list[tuple[str, str, str]]:
        """Read them in one statement."""
        m = self.corpus.table

        def build() -> Select[Any]:
            own = (m.c.tenant == bindparam("tenant"), m.c.persona == bindparam("persona"))
            texts = select(m.c.n, m.c.content, m.c.category_terms, m.c.content_terms)
            return texts.where(*own, m.c.n.in_(listed("numbers")))

        values = {"tenant": self.owner.tenant, "persona": self.owner.persona, "numbers": json.dumps(numbers)}
        rows = self.tables.statements.rows(conn, ("texts of resident rows", self.corpus.kind), build, values)
        found = {row[0]: tuple(row[1:]) for row in rows}
        return [found[number] for number in numbers]
