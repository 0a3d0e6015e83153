"""Erasing takes everything that belongs to a target, nothing else, and remembers that it did."""

import threading
from datetime import UTC, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import NullPool, create_engine, select, text

from memoranda.db.queries import erasure
from memoranda.errors import InvalidInput, MemorandaError, MemoryNotFound, StoreError
from memoranda.reports import Erased
from memoranda.testing import unwrap

SAID = "The parcel arrived with a purple zeppelin."


@pytest.fixture
def engine(make_engine, frozen_clock):
    return make_engine(clock=frozen_clock, preset="standard")


def everything(engine):
    """Return the rows of every table that holds somebody's, as sets; vectors without their numbers."""

    def read(conn, tables):
        found = {}
        for table in tables.metadata.sorted_tables:
            if "tenant" in table.c and table is not tables.erasures:
                columns = [c for c in table.c if c.name not in ("vector", "search", "n")]
                found[table.name] = {repr(tuple(row)) for row in conn.execute(select(*columns))}
        return found

    return unwrap(engine)._database.read(read)


def ledger(engine):
    def read(conn, tables):
        e = tables.erasures
        return conn.execute(select(e).order_by(e.c.id)).all()

    return unwrap(engine)._database.read(read)


def total(rows):
    return sum(map(len, rows.values()))


def fill(persona, about="person:zoe"):
    """Write one of everything: a chain with sources, versions, windows and metadata; a project, a space, a count."""
    user = persona.scope.user
    persona.projects.add_member("apollo", user or "somebody")
    fields: dict[str, Any] = {"source": {"type": "manual", "excerpt": "as she said"}, "metadata": {"k": "quokka"}}
    old = persona.memories.write("The parcel is late.", title="Zebra", category="post", about=about, **fields)
    new = persona.memories.supersede(old.id, SAID)
    shared = {"project": "apollo", "audience": "project"} if user else {}
    other = persona.memories.write("The drawer is green.", **shared)
    persona.memories.mark(other.id, "expired")
    return old, new, other


# -- complaints 1 and 14: nothing outside the target


@pytest.mark.behaviour("W11")
@pytest.mark.parametrize("target", ["user", "persona", "about", "memory", "own tenant"])
def test_nothing_outside_the_target_changes(engine, target):
    places = {
        "alice": engine.persona("main", tenant="acme", user="alice"),
        "bob": engine.persona("main", tenant="acme", user="bob"),
        "nobody": engine.persona("main", tenant="acme"),
        "other persona": engine.persona("mainly", tenant="acme", user="alice"),
        "other tenant": engine.persona("main", tenant="acme2", user="alice"),
        "own tenant": engine.persona("main", user="alice"),
        "bare": engine.persona("main"),
    }
    written = {}
    for name, persona in places.items():
        written[name] = fill(persona, about=f"person:{name.replace(' ', '-')}")
    before = everything(engine)
    arguments: dict[str, Any] = {
        "user": {"tenant": "acme", "user": "alice"},
        "persona": {"tenant": "acme", "persona": "main"},
        "about": {"tenant": "acme", "about": "person:alice"},
        "memory": {"tenant": "acme", "persona": "main", "memory": written["alice"][1].short_id, "chain": True},
        "own tenant": {"user": "alice"},
    }[target]

    counted = engine.erase(**arguments, dry_run=True)
    assert everything(engine) == before and not ledger(engine)
    erased = engine.erase(**arguments)
    after = everything(engine)

    assert (counted.memories, counted.rows) == (erased.memories, erased.rows)
    assert erased.rows == total(before) - total(after) > 0
    assert all(after[name] <= before[name] for name in before), "a row that stays was changed"
    touched = {"user": ("alice", "other persona"), "persona": ("alice", "bob", "nobody")}.get(target, (target,))
    touched = ("alice",) if target in ("about", "memory") else touched
    gone = {item.id for name in touched for item in written[name]}
    gone -= {written["alice"][2].id} if target in ("about", "memory") else set()
    assert erased.memories == len(gone)
    for name, persona in places.items():
        ids = {row.id for row in persona.memories.list(include_inactive=True, limit=100)}
        assert ids & {item.id for item in written[name]} == {item.id for item in written[name]} - gone, name


@pytest.mark.behaviour("W11")
def test_erasing_alice_leaves_every_row_of_bob(engine):
    alice, bob = (engine.persona("main", tenant="acme", user=name) for name in ("alice", "bob"))
    fill(alice)
    fill(bob)
    bobs = bob.memories.list(limit=100, include_inactive=True)
    assert len(bobs) == 4  # one of them shared by alice
    erased = engine.erase(tenant="acme", user="alice")
    assert (erased.memories, erased.pending, erased.reason) == (3, False, None)
    assert alice.memories.list(include_inactive=True) == []  # and no project whose rows she sees
    assert alice.projects.members("apollo") == ["bob"]
    assert bob.memories.list(limit=100, include_inactive=True) == [row for row in bobs if row.author == "bob"]


def test_an_erasure_without_the_persona_takes_every_persona_of_the_tenant(engine):
    for persona in ("main", "work"):
        fill(engine.persona(persona, tenant="acme", user="alice"))
        fill(engine.persona(persona, tenant="acme", user="bob"))
    assert engine.erase(tenant="acme", user="alice", persona="work").memories == 3
    assert engine.erase(tenant="acme", user="alice").memories == 3
    assert engine.erase(tenant="acme", about="person:zoe").memories == 4
    assert engine.erase(tenant="acme", persona="main").memories == 1
    assert engine.persona("work", tenant="acme", user="bob").stats().memories == 1


def test_a_second_erasure_of_the_same_says_nothing(engine):
    me = engine.persona("main", user="alice")
    _, new, _ = fill(me)
    for arguments in (
        {"persona": "main", "tenant": "user:alice", "memory": new.id},
        {"user": "alice", "persona": "main"},
        {"tenant": "user:alice", "about": "person:zoe"},
        {"tenant": "user:alice", "persona": "main"},
    ):
        engine.erase(**arguments)
        again = engine.erase(**arguments)
        assert (again.memories, again.rows, again.pending, str(again)) == (0, 0, False, "nothing to erase")
    assert total(everything(engine)) == 0


# -- one memory, and its chain


def test_a_memory_goes_with_all_that_belongs_to_it(engine):
    me = engine.persona("main")
    old, new, _ = fill(me)
    erased = engine.erase(persona="main", memory=new.short_id)
    assert erased.memories == 1 and erased.rows >= 3  # its source and its vector
    assert me.memories.get(new.id) is None
    left = me.memories.get(old.id)
    assert (left.memory.status, left.memory.superseded_by, left.superseded_by) == ("superseded", None, None)
    assert [row.id for row in me.memories.history(old.id)] == [old.id]
    assert not [hit for hit in me.recall("purple zeppelin", include_inactive=True) if "zeppelin" in hit.memory.content]


def test_images_of_other_rows_lose_the_link_too(engine):
    me = engine.persona("main")
    old = me.memories.write("The shop opens at nine.")
    new = me.memories.supersede(old.id, "The shop opens at ten.")
    me.memories.mark(old.id, "expired")  # its image carries the link to the new one
    assert [v.memory.superseded_by for v in me.memories.get(old.id).versions] == [None, new.id]
    engine.erase(persona="main", memory=new.id)
    record = me.memories.get(old.id)
    assert [v.memory.superseded_by for v in record.versions] == [None, None]
    assert record.versions[1].memory.status == "superseded" and record.memory.status == "expired"


def test_a_chain_goes_as_a_whole(engine):
    me = engine.persona("main")
    chain = [me.memories.write("The fee is 10.")]
    for price in (11, 12, 13):
        chain.append(me.memories.supersede(chain[-1].id, f"The fee is {price}."))
    other = me.memories.write("The fee is paid.")
    erased = engine.erase(persona="main", memory=chain[1].id, chain=True)
    assert erased.memories == 4
    assert [row.id for row in me.memories.list(include_inactive=True)] == [other.id]


def test_a_single_user_s_own_tenant_can_be_named(engine):
    me = engine.persona("main", user="alice")
    old, _, _ = fill(me)
    assert engine.erase(persona="main", memory=old.id).memories == 0
    assert engine.erase(tenant="user:alice", persona="main", memory=old.id).memories == 1
    assert engine.erase(tenant="user:alice", persona="main").memories == 2


def test_spaces_and_members_go_with_the_persona(engine):
    me = engine.persona("main", user="alice", preset="statements")
    me.spaces.create("kitchen")
    me.projects.add_member("apollo", "alice")
    me.scoped(space="kitchen").memories.keep("Tea is in the left cupboard.", about="everyone")
    assert engine.erase(tenant="user:alice", persona="main").memories == 1
    assert total(everything(engine)) == 0


def test_what_is_kept_about_a_user_goes_with_the_user(engine, frozen_clock):
    now = frozen_clock()

    def insert(conn, tables):
        for user in ("alice", "bob"):
            axes = {"tenant": "acme", "persona": "main", "user": user, "dimension": "baseline", "content": "in Lisbon"}
            conn.execute(tables.user_model.insert().values(**axes, created_at=now, updated_at=now))
            old = {"version": 1, "confidence": 5, "created_at": now, "replaced_at": now}
            conn.execute(tables.user_model_versions.insert().values(**axes, **old))

    unwrap(engine)._database.run(insert)
    backup = copied(engine)
    assert engine.erase(tenant="acme", user="alice").rows == 2
    left = [row for rows in everything(engine).values() for row in rows]
    assert len(left) == 2 and all("bob" in row for row in left)
    restored(engine, backup)
    assert engine.reapply_erasures() == 2


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"memory": "abcdefgh"},
        {"persona": "main", "memory": "abcdefgh", "user": "alice"},
        {"persona": "main", "user": "alice", "about": "person:zoe"},
        {"persona": "main", "chain": True},
        {"user": "alice", "chain": True},
        {"persona": "main", "memory": "no such id!"},
        {"persona": ""},
        {"user": " "},
        {"about": ""},
        {"persona": "main", "tenant": "user:"},
        {"user": "alice", "tenant": "user:bob"},
        {"persona": "ma\nin"},
    ],
)
def test_what_is_not_one_thing_is_refused(engine, arguments):
    me = engine.persona("main")
    me.memories.write(SAID)
    with pytest.raises(InvalidInput):
        engine.erase(**arguments)
    assert me.stats().memories == 1 and not ledger(engine)


def test_no_handle_of_a_persona_can_erase(engine):
    me = engine.persona("main").handle
    for handle in (me, me.memories, me.projects):
        assert not [name for name in dir(handle) if "eras" in name]


def test_a_table_that_is_declared_later_is_erased_with_its_memories():
    from sqlalchemy import Column, ForeignKeyConstraint, Table, Uuid

    from memoranda.db.dialects.sqlite import SqliteDialect
    from memoranda.db.schema import declare

    tables = declare(SqliteDialect())
    m = tables.memories
    axes = [Column(name, column.type) for name, column in (("tenant", m.c.tenant), ("persona", m.c.persona))]
    later = Table(
        "memoranda_opinions",
        tables.metadata,
        *axes,
        Column("of", Uuid),
        ForeignKeyConstraint(["tenant", "persona", "of"], [m.c.tenant, m.c.persona, m.c.id]),
    )
    queue = Table(
        "memoranda_queue",
        tables.metadata,
        *(Column(c.name, c.type) for c in axes),
        Column("kind", Uuid),
        Column("owner", Uuid),
    )
    target = erasure.Target(kind="about", tenant="", persona=None, subject="person:zoe")
    touched = [table for table, _ in erasure._parts(tables, target, "main", erasure.Locked([uuid4()], {}), None)]
    assert {later, queue, tables.vectors, tables.sources, tables.memory_access} <= set(touched)
    assert touched[-1] is tables.memories


# -- the answer


@pytest.mark.parametrize(
    ("erased", "sentence"),
    [
        (Erased(), "nothing to erase"),
        (Erased(memories=1, rows=1), "erased 1 memory (1 row)"),
        (Erased(memories=1200, rows=4000, dry_run=True), "would erase 1,200 memories (4,000 rows)"),
        (Erased(memories=2, rows=5, elsewhere="backups may"), "erased 2 memories (5 rows); backups may"),
        (
            Erased(memories=2, rows=5, pending=True, reason="why"),
            "erased 2 memories (5 rows); pending: the rows are gone, but traces of them may be left on the disk: why",
        ),
        (
            Erased(finished=0, pending=True, reason="why"),
            "pending: the rows are gone, but traces of them may be left on the disk: why",
        ),
        (Erased(finished=0), "no erasure waits to be finished"),
        (Erased(finished=2), "no trace is left of 2 erasures"),
    ],
)
def test_the_sentence_says_how_much_went_and_what_is_left_to_do(erased, sentence):
    assert str(erased) == sentence


# -- the ledger


def test_the_ledger_names_nobody(engine, frozen_clock):
    alice = engine.persona("diary", user="alice")
    _, new, _ = fill(alice)
    fill(engine.persona("diary", tenant="acme", user="alice"))
    engine.erase(tenant="user:alice", persona="diary", memory=new.id)
    engine.erase(user="alice")
    engine.erase(tenant="acme", about="person:zoe")
    engine.erase(tenant="acme", persona="diary")
    engine.erase(tenant="acme", memory=new.id, persona="other")
    engine.erase(tenant="user:alice", persona="diary")
    entries = ledger(engine)
    assert [(e.tenant, e.persona, e.kind) for e in entries] == [
        ("", "", "memory"),
        ("", "", "user"),
        ("acme", "", "about"),
        ("acme", "", "persona"),
        ("acme", "other", "memory"),
        ("", "", "persona"),
    ]
    assert all(len(e.subject) == 64 and e.finished_at == frozen_clock() == e.erased_at for e in entries)
    assert not [name for name in ("alice", "diary", "zoe") if name in repr(entries)]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "arguments",
    [
        {"tenant": "acme", "user": "alice"},
        {"tenant": "acme", "user": "alice", "persona": "main"},
        {"tenant": "acme", "about": "person:zoe"},
        {"tenant": "acme", "persona": "main"},
        {"tenant": "acme", "persona": "main", "memory": ...},
        {"user": "alice"},
        {"tenant": "user:alice", "persona": "main", "memory": ...},
        {"tenant": "user:alice", "persona": "main"},
    ],
    ids=lambda arguments: "-".join([*arguments, arguments.get("tenant", "")]),
)
def test_what_an_import_brings_back_is_erased_again(engine, frozen_clock, arguments):
    alice = engine.persona("main", tenant=arguments.get("tenant", ""), user="alice")
    bob = engine.persona("main", tenant="acme", user="bob")
    old, _, _ = fill(alice)
    fill(bob, about="person:bob")
    arguments = {name: old.id if value is ... else value for name, value in arguments.items()}
    backup = copied(engine)
    engine.erase(**arguments)
    erased = everything(engine)
    frozen_clock.advance(days=1)
    later = alice.memories.write("Back again.", about="person:zoe")
    with_later = everything(engine)

    restored(engine, backup)
    assert total(everything(engine)) > total(with_later)
    assert engine.reapply_erasures() == sum(len(rows) for _, rows in backup) - total(erased)
    assert everything(engine) == with_later
    assert alice.memories.get(later.id).memory.content == "Back again."
    assert engine.reapply_erasures() == 0


def copied(engine):
    def read(conn, tables):
        return [
            (table, [dict(row) for row in conn.execute(select(*columns_of(table))).mappings()])
            for table in tables.metadata.sorted_tables
            if "tenant" in table.c and table is not tables.erasures
        ]

    return unwrap(engine)._database.read(read)


def columns_of(table):
    return [column for column in table.c if column.name not in ("search", "n")]


def restored(engine, backup):
    def write(conn, tables):
        for table, rows in backup:
            if rows:
                conn.execute(tables.dialect.insert(table).on_conflict_do_nothing(), rows)

    unwrap(engine)._database.run(write)


def test_nothing_is_reapplied_where_nothing_was_erased(engine):
    fill(engine.persona("main", user="alice"))
    before = everything(engine)
    assert engine.reapply_erasures() == 0
    assert everything(engine) == before


# -- what this process remembers


def test_texts_and_vectors_are_forgotten_by_the_process(engine):
    me = engine.persona("main")
    me.memories.write(SAID)
    me.recall("purple zeppelin")
    raw = unwrap(engine)
    cache = raw._space.embedder
    assert cache._seen
    engine.erase(persona="main")
    assert not cache._seen
    assert not getattr(getattr(raw._database.dialect, "vectors", None), "_matrices", None)


def test_memories_written_after_an_erasure_are_found_by_meaning(engine, make_engine, backend, frozen_clock):
    other = engine if backend.name == "sqlite-memory" else make_engine(clock=frozen_clock)
    me, elsewhere = engine.persona("main"), other.persona("main")
    for number in range(5):
        me.memories.write(f"Lisbon number {number} is on the river.")
    assert len(elsewhere.recall("lisbon river", limit=10)) == 5  # the other engine has seen the vectors
    engine.erase(persona="main")
    assert elsewhere.recall("lisbon river").abstained
    new = me.memories.write("Lisbon is on the river.")
    for persona in (me, elsewhere):
        hit = persona.recall("river lisbon")[0]
        assert hit.memory.id == new.id and hit.legs


# -- many at once


@pytest.mark.parametrize("target", ["persona", "user"])
def test_writers_and_readers_go_on_while_a_persona_is_erased(make_engine, mode, backend, target):
    engine = make_engine(preset="ledger")
    me = engine.persona("main", tenant="acme", user="alice")
    kept = engine.persona("main2", tenant="acme", user="bob")
    kept.memories.write_many([f"Bob keeps note {n}." for n in range(20)])
    me.memories.write_many([f"Note {n} is about the harbour of town {n}." for n in range(60)])
    raw, stop, problems, written = unwrap(me), threading.Event(), [], []

    def write(worker):
        n = 0
        while not stop.is_set():
            n += 1
            try:
                done = raw.memories.write(f"Worker {worker} saw ship {worker}-{n} in dock {n * 7}.")
                written.append(done.id)
                raw.recall("harbour ship dock", limit=20)
                raw.memories.supersede(done.id, f"Worker {worker} saw no ship {worker}-{n} in dock {n * 7}.")
            except MemoryNotFound:
                continue
            except MemorandaError as error:
                problems.append(error)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    what: dict[str, Any] = {"persona": "main"} if target == "persona" else {"user": "alice"}
    erased = [engine.erase(tenant="acme", **what) for _ in range(3)]
    stop.set()
    for thread in threads:
        thread.join()
    last = engine.erase(tenant="acme", **what)

    assert not problems, problems
    assert erased[0].memories >= 60 and sum(e.memories for e in (*erased, last)) >= len(set(written))
    assert me.stats().memories == 0 and kept.stats().memories == 20
    orphans = [name for name, rows in everything(engine).items() if any("'main'" in row for row in rows)]
    assert not [name for name in orphans if not name.endswith(("project_members", "spaces"))]


def test_two_erasures_at_once_share_the_rows_between_them(make_engine, mode):
    engine = make_engine()
    me = engine.persona("main", tenant="acme", user="alice")
    me.memories.write_many([f"Note {n}." for n in range(50)])
    raw, barrier, answers = unwrap(engine), threading.Barrier(4), []

    def erase(n):
        barrier.wait()
        answers.append(raw.erase(tenant="acme", user="alice") if n % 2 else raw.erase(tenant="acme", persona="main"))

    threads = [threading.Thread(target=erase, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answer.memories for answer in answers) == 50
    assert me.stats().memories == 0


@pytest.mark.parametrize("backend", ["sqlite-file"], indirect=True)
def test_an_erasure_that_fails_changes_nothing(engine, backend):
    me = engine.persona("main")
    fill(me)
    before = everything(engine)
    full = "CREATE TRIGGER full BEFORE INSERT ON memoranda_erasures BEGIN SELECT RAISE(ABORT, 'full'); END"
    with create_engine(backend.url, poolclass=NullPool).begin() as connection:
        connection.execute(text(full))
    with pytest.raises(StoreError):
        engine.erase(persona="main")
    assert everything(engine) == before


def test_a_planned_correction_keeps_its_window_when_the_successor_is_erased(engine, frozen_clock):
    me = engine.persona("main")
    old = me.memories.write("The fee is 10.")
    change = frozen_clock().astimezone(UTC) + timedelta(days=10)
    new = me.memories.supersede(old.id, "The fee is 12.", valid_from=change)
    engine.erase(persona="main", memory=new.id)
    left = me.memories.get(old.id).memory
    assert (left.status, left.valid_to, left.superseded_by) == ("active", change, None)


def test_what_was_left_to_be_done_in_a_users_conversations_goes_with_the_user(make_engine):
    engine = make_engine(background="external")
    for user in ("ana", "ben"):
        conversation = engine.persona("main", tenant="acme", user=user).conversation("secret plans")
        conversation.append([{"role": "user", "content": SAID, "id": "1"}])
        conversation.pending(["1"])
        assert conversation.end_session()
    assert len(engine.jobs()) == 2
    engine.erase(tenant="acme", user="ana")

    def left(conn, tables):
        return conn.scalars(select(tables.jobs.c.payload).where(tables.jobs.c.kind == "flush")).all()

    assert [payload["user"] for payload in unwrap(engine)._database.read(left)] == ["ben"]
