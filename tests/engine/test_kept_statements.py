"""What is put, added, read and deleted goes by statements that are built once, and hold nothing of whose it was."""

import pytest
from sqlalchemy import event

from memoranda.nodes import Node
from memoranda.testing import unwrap

USERS = ("ana", "bob")


@pytest.fixture
def database(engine):
    return unwrap(engine)._database


@pytest.fixture
def executed(database):
    """The kept statements that are executed, each with the names of the values it is given."""
    seen = []

    def note(conn, statement, several, one, _):
        if any(statement is kept for kept in database.tables.statements._built.values()):
            seen.append((statement.compile(dialect=conn.dialect), set(one or several[0])))

    event.listen(database._engine, "before_execute", note)
    yield seen
    event.remove(database._engine, "before_execute", note)


def items(persona, user):
    persona.items.put((user, "notes"), f"key of {user}", {"by": user}, texts={"by": f"tea of {user}"}, ttl_minutes=5)
    persona.items.put((user, "notes"), f"key of {user}", {"by": user}, texts={"by": f"cup of {user}"})
    assert persona.items.get((user, "notes"), f"key of {user}").value == {"by": user}
    assert [item.value for item in persona.items.search((user,))] == [{"by": user}]
    persona.items.put((user,), "gone", {})
    persona.items.delete((user,), "gone")


def nodes(persona, user):
    kept = persona.collection(f"collection of {user}")
    kept.add([Node(key=f"key of {user}", content=f"tea of {user}")])
    kept.add([Node(key=f"key of {user}", content=f"cup of {user}")])
    kept.add([Node(key="gone", content="gone")])
    assert kept.delete(["gone"]) == 1
    assert [node.content for node in kept.get()] == [f"cup of {user}"]
    [document] = persona.knowledge.list()
    assert (document.chunks, document.characters) == (1, len("cup of ana"))


@pytest.mark.parametrize("do", [items, nodes])
def test_a_kept_statement_is_everybodys_and_holds_nothing_of_anybodys(engine, database, executed, do):
    forms = []
    for user in USERS:
        do(engine.persona(f"persona of {user}", user=user), user)
        forms.append(set(database.tables.statements._built))
    assert executed and forms[0] == forms[1]
    for statement, names in executed:
        assert {name for name, bind in statement.binds.items() if not bind.unique} <= names
        constants = [bind.value for bind in statement.binds.values() if bind.unique]
        assert not [value for value in constants if any(user in str(value) for user in USERS)]
