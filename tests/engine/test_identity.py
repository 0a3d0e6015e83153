"""Who may read, who may change and who may publish: the rules of authors and projects, by every verb there is."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from memoranda import MemoryEngine
from memoranda.errors import (
    InvalidInput,
    MemorandaError,
    MemoryNotFound,
    NotAllowed,
    NotTheAuthor,
    StoreUnavailable,
)
from memoranda.testing import BrokenEmbedder

TYPES = ("preference", "semantic", "episodic", "prospective", "procedural", "summary")
MISSING = ("abcdefgh", str(UUID(int=7 << 76)))
NOBODY_CHOOSES = ("author", "_identity", "user", "tenant", "persona", "member", "id", "short_id", "status", "space")


@pytest.fixture
def ledger(make_engine, frozen_clock):
    return make_engine(preset="ledger", clock=frozen_clock)


@pytest.fixture
def ana(ledger):
    return ledger.persona("main", tenant="acme", user="ana")


@pytest.fixture
def bob(ledger):
    return ledger.persona("main", tenant="acme", user="bob")


def ids(found):
    return {getattr(item, "memory", item).id for item in found if item is not None}


def everything(me):
    return me.memories.list(limit=1000, include_inactive=True)


# -- the truth table, by every verb


@dataclass(frozen=True)
class Line:
    reader: str | None
    author: str | None
    audience: str
    member: bool
    readable: bool


TABLE = [
    Line(None, "ana", "private", False, False),
    Line(None, "ana", "project", False, False),
    Line(None, None, "private", False, False),
    Line("ana", "ana", "private", False, True),
    Line("ana", "ana", "project", True, True),
    Line("ana", "ana", "project", False, True),  # the membership was lost
    Line("bob", "ana", "private", True, False),
    Line("bob", None, "private", True, False),
    Line("bob", "ana", "project", True, True),
    Line("bob", "ana", "project", False, False),
]

READS: dict[str, Any] = {
    "recall": lambda me, row: me.recall(row.content),
    "recall what held": lambda me, row: me.recall(row.content, as_of=row.created_at),
    "recall everything": lambda me, row: me.recall(row.content, include_inactive=True),
    "get": lambda me, row: [me.memories.get(row.id)],
    "get by short id": lambda me, row: [me.memories.get(row.short_id)],
    "get what held": lambda me, row: [me.memories.get(row.id, as_of=row.created_at)],
    "history": lambda me, row: me.memories.history(row.id),
    "history by short id": lambda me, row: me.memories.history(row.short_id),
    "list": lambda me, row: me.memories.list(),
    "list what held": lambda me, row: me.memories.list(as_of=row.created_at),
    "list everything": lambda me, row: everything(me),
    "nearest": lambda me, row: [me.memories.nearest(row.content)],
    "core": lambda me, row: me.memories.core(),
    "relevant": lambda me, row: me.memories.relevant(row.content),
}
CHANGES: dict[str, Any] = {
    "supersede": lambda me, id: me.memories.supersede(id, "No lamp was lit."),
    "mark": lambda me, id: me.memories.mark(id, "expired"),
    "delete": lambda me, id: me.memories.delete(id),
    "forget": lambda me, id: me.memories.forget(id),
    "keep": lambda me, id: me.memories.keep("No lamp was lit.", id=id, about="everyone"),
    "undo": lambda me, id: me.memories.undo(id),
}


def staged(engine, line, tenant, text, **fields):
    """Write a row as a line of the table says, and return the reader, the author and the row."""
    author = engine.persona("main", tenant=tenant, user=line.author, preset="ledger" if line.author else "standard")
    reader = engine.persona("main", tenant=tenant, user=line.reader)
    if line.author:
        author.projects.add_member("apollo", line.author)
    row = author.memories.write(text, project="apollo", audience=line.audience, **fields).memory
    if line.reader and line.member:
        author.projects.add_member("apollo", line.reader)
    elif line.reader:
        author.projects.remove_member("apollo", line.reader)
    return reader, author, row


def refusal(line) -> type[MemorandaError] | None:
    """Return how a change is refused; None when it is made."""
    if line.reader is None:
        return NotAllowed
    if not line.readable:
        return MemoryNotFound
    return None if line.reader == line.author else NotTheAuthor


@pytest.mark.behaviour("A02", "A03", "A04", "S13")
def test_every_read_verb_follows_the_truth_table(ledger):
    for number, line in enumerate(TABLE):
        for core in (False, True):
            reader, _, row = staged(ledger, line, f"{number} {core}", "A lamp was lit on the hill.", core=core)
            for name, read in READS.items():
                left_out = core if name == "relevant" else not core if name == "core" else False
                expected = {row.id} if line.readable and not left_out else set()
                assert ids(read(reader, row)) == expected, (line, name, core)
            stats = reader.stats()
            assert (stats.memories, stats.vectors) == (line.readable, line.readable), line


@pytest.mark.behaviour("A02", "A03", "A04", "W21")
def test_every_change_verb_follows_the_truth_table(ledger):
    for number, line in enumerate(TABLE):
        if line.reader == line.author == "ana" and line.audience == "project" and not line.member:
            continue  # what is left to an author outside the project has a test of its own
        for name, change in CHANGES.items():
            reader, author, row = staged(ledger, line, f"{number} {name}", "A lamp was lit on the hill.")
            if name == "undo":
                row = author.memories.mark(row.id, "expired")
            before = author.memories.get(row.id)
            error = refusal(line)
            if error is None:
                change(reader, row.short_id)
                assert author.memories.get(row.id).memory != row, (line, name)
                continue
            for id in (row.id, row.short_id):
                with pytest.raises(error):
                    change(reader, id)
            assert author.memories.get(row.id) == before, (line, name)
            assert ids(everything(author)) == {row.id}, (line, name)


@pytest.mark.behaviour("A02", "W21")
def test_an_author_who_left_the_project_may_take_back_what_is_shared_but_share_nothing_more(ana, bob):
    for user in ("ana", "bob"):
        ana.projects.add_member("apollo", user)
    texts = ("The quay is shut.", "The crane is hired.", "The barge is late.", "The buoy is red.")
    shared = [ana.memories.write(text, project="apollo").memory for text in texts]
    ana.projects.remove_member("apollo", "ana")
    for audience in ({}, {"audience": "project"}):
        with pytest.raises(NotAllowed, match="member"):
            ana.memories.supersede(shared[0].id, "The quay is open again.", **audience)
    assert ana.memories.get(shared[0].id).memory == shared[0]
    new = ana.memories.supersede(shared[0].id, "The quay is open again.", audience="private").memory
    ana.memories.mark(shared[1].id, "expired")
    ana.memories.forget(shared[2].id)
    assert ids(bob.memories.list()) == {shared[3].id}
    assert ids(ana.memories.list()) == {shared[3].id, new.id}
    ana.memories.delete(shared[3].id)
    assert bob.memories.list() == [] and bob.memories.get(new.id) is None


# -- what may not be seen answers as what does not exist


@pytest.mark.behaviour("W34", "W21")
@pytest.mark.parametrize("preset", ["standard", "ledger", "statements"])
def test_what_may_not_be_seen_answers_as_what_does_not_exist(make_engine, preset):
    engine = make_engine(preset=preset)
    ana = engine.persona("main", tenant="acme", user="ana")
    ana.spaces.create("lab")
    about_bob = ana.scoped(space="lab", people=["bob"])
    hidden = about_bob.memories.write("Bob keeps bees on the roof.", about="person:bob").memory
    askers = [
        engine.persona("main", tenant="acme", user="cleo").scoped(space="lab", people=["bob"]),
        engine.persona("other", tenant="acme", user="ana"),
        engine.persona("main", tenant="globex", user="ana").scoped(people=["bob"]),
        ana.scoped(space="lab", people=["ana"]),
        ana.scoped(people=["bob"]),
    ]
    for asker in askers:
        verbs: list[Any] = [
            *CHANGES.values(),
            lambda me, id: me.memories.get(id),
            lambda me, id: me.memories.get(id, as_of=hidden.created_at),
            lambda me, id: me.memories.history(id),
            lambda me, id: me.memories.list(before=id),
        ]
        for verb in verbs:
            assert len({answer(verb, asker, id) for id in (hidden.id, hidden.short_id, *MISSING)}) == 1
    assert about_bob.memories.get(hidden.id).memory == hidden
    assert about_bob.memories.get(hidden.id).versions == ()


def answer(verb, me, id):
    try:
        return repr(verb(me, id))
    except MemorandaError as error:
        return f"{type(error).__name__}: {error} {sorted(vars(error).items())}"


@pytest.mark.parametrize("preset", ["standard", "journal", "ledger", "statements"])
def test_no_write_tells_what_others_have_written(make_engine, preset):
    engine = make_engine(preset=preset)
    ana, cleo = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "cleo"))
    said = "The spare key lies under the third flowerpot."
    first = ana.memories.write(said, about="everyone")
    kept = ana.memories.keep("The cellar key hangs behind the kitchen door.", about="everyone")
    for text in (said, "The cellar key hangs behind the kitchen door.", f"{said} now"):
        written = cleo.memories.write(text, about="everyone")
        assert written.created or written.was == said  # her own, from the first turn
        assert written.id not in (first.id, kept.memory.id)
    again = cleo.memories.keep(said, about="everyone")
    assert again.memory.author == "cleo" and again.memory.id != first.id
    assert ana.memories.get(first.id).memory == first.memory
    assert ana.memories.get(kept.memory.id).memory == kept.memory


# -- who writes


@pytest.mark.behaviour("A01", "S18")
def test_the_user_of_the_scope_is_the_author_of_everything_written(ana):
    first = ana.memories.write("The tide table hangs in the hall.")
    kept = ana.memories.keep("Bob rows on Sundays.", about="person:bob")
    many = ana.memories.write_many(["Oars are in the shed.", {"content": "Ropes are in the loft."}])
    new = ana.memories.supersede(first.id, "The tide table hangs in the kitchen.")
    assert {memory.author for memory in everything(ana)} == {"ana"}
    assert ids(everything(ana)) == ids([first, kept, *many, new])
    [version] = ana.memories.get(first.id).versions
    assert version.changed_by == "ana"


@pytest.mark.behaviour("A01")
def test_a_user_that_cannot_be_one_is_refused_before_anything_happens(ledger):
    for wrong in ("", "  ", "a\nb", "a\x00b", "x" * 201, 5):
        try:
            persona = ledger.persona("main", tenant="acme", user=wrong)
        except InvalidInput as error:
            assert error.field == "user"
        else:
            with pytest.raises(NotAllowed):
                persona.memories.write("A lamp was lit.")
    assert everything(ledger.persona("main", tenant="acme", preset="standard")) == []


@pytest.mark.behaviour("A07")
def test_the_writer_is_never_chosen_by_an_argument(ana, bob):
    row = ana.memories.write("The gate is locked at ten.").memory
    calls: list[Any] = [
        lambda chosen: ana.memories.write_many([{"content": "The gate is open.", **chosen}]),
        lambda chosen: ana.memories.write("The gate is open.", source=chosen),
        lambda chosen: ana.recall("gate", **chosen),
        lambda chosen: ana.memories.list(**chosen),
        lambda chosen: ana.memories.write("The gate is open.", **chosen),
        lambda chosen: ana.memories.supersede(row.id, "The gate is open.", **chosen),
        lambda chosen: ana.memories.keep("The gate is open.", about="everyone", **chosen),
    ]
    for name in NOBODY_CHOOSES:
        for call in calls[:4] if name == "id" else calls:  # `supersede` and `keep` name a memory by its id
            with pytest.raises(InvalidInput) as error:
                call({name: "bob"})
            assert name in str(error.value)
    assert everything(ana) == [row] and everything(bob) == []


@pytest.mark.behaviour("A07")
def test_what_metadata_sources_and_subjects_say_of_a_writer_means_nothing(ana, bob):
    claims: dict[str, Any] = {name: "bob" for name in NOBODY_CHOOSES}
    written = ana.memories.write(
        "The gate is locked at ten.",
        metadata=claims,
        source={"actor": "bob", "session": "bob", "channel": "bob", "excerpt": "author: bob"},
        about="person:bob",
        title="bob",
        category="bob",
        session="bob",
    ).memory
    assert (written.author, written.tenant, written.persona) == ("ana", "acme", "main")
    assert (written.status, written.space, written.metadata) == ("active", "", claims)
    assert bob.memories.get(written.id) is None and everything(bob) == []
    assert ids(ana.memories.list()) == {written.id}
    own = bob.memories.write("The gate squeaks.", metadata={"author": "ana", "_identity": "ana"}).memory
    assert own.author == "bob" and ana.memories.get(own.id) is None


@pytest.mark.behaviour("A07")
def test_a_narrower_scope_keeps_its_user(ana):
    for axes in ({"space": "bob"}, {"agent": "bob"}, {"thread": "bob"}, {"people": ["bob"]}, {"project": "bob"}):
        scoped = ana.scoped(**axes)
        assert (scoped.scope.user, scoped.scope.tenant, scoped.scope.persona) == ("ana", "acme", "main")
    for axis in ("user", "author", "tenant", "persona", "_identity"):
        with pytest.raises(TypeError):
            ana.scoped(**{axis: "bob"})


@pytest.mark.behaviour("W22")
def test_nothing_is_written_or_changed_without_a_user_where_authors_are_recorded(ledger):
    nobody = ledger.persona("main")
    lax = ledger.persona("main", preset="standard")
    row = lax.memories.write("The well is dry.").memory
    gone = lax.memories.mark(lax.memories.write("The pump is new.").id, "expired")
    calls: list[Any] = [
        lambda: nobody.memories.write("A lamp was lit."),
        lambda: nobody.memories.write_many(["A lamp was lit."]),
        lambda: nobody.memories.keep("A lamp was lit.", about="everyone"),
        *(lambda change=change: change(nobody, row.id) for name, change in CHANGES.items() if name != "undo"),
        lambda: nobody.memories.undo(gone.id),
        lambda: nobody.memories.undo("abcdefgh"),
    ]
    for call in calls:
        with pytest.raises(NotAllowed, match="MEMORANDA_USER"):
            call()
    assert everything(lax) == [gone, row]
    assert everything(nobody) == [] and nobody.stats().memories == 0


# -- what is shared when nobody says


@pytest.mark.behaviour("W23")
def test_who_sees_a_memory_follows_from_its_type_and_project(ana):
    ana.projects.add_member("apollo", "ana")
    seen = {}
    for kind in TYPES:
        for project in (None, "apollo"):
            fields = {"project": project} if project else {}
            memory = ana.memories.write(f"A note on {kind} {project}.", type=kind, **fields).memory
            seen[kind, project] = memory.audience
            tagged = ana.scoped(project=project) if project else ana
            by_scope = tagged.memories.write(f"A scoped note on {kind} {project}.", type=kind).memory
            assert (by_scope.audience, by_scope.project) == (memory.audience, project or "")
    shared = {(kind, "apollo") for kind in TYPES if kind != "preference"}
    assert seen == {key: "project" if key in shared else "private" for key in seen} and len(seen) == 12


@pytest.mark.behaviour("W24")
def test_an_audience_that_is_named_holds_and_an_unknown_one_is_refused(ana):
    ana.projects.add_member("apollo", "ana")
    for kind in TYPES:
        for audience in ("private", "project"):
            memory = ana.memories.write(f"A {audience} note on {kind}.", type=kind, project="apollo", audience=audience)
            assert memory.memory.audience == audience
    before = everything(ana)
    for wrong in ("public", "Private", "PROJECT", "project ", "everyone", "team", "", None, 1, ["project"]):
        for call in (
            lambda wrong=wrong: ana.memories.write("A lamp was lit.", project="apollo", audience=wrong),
            lambda wrong=wrong: ana.memories.write_many(["Fine.", {"content": "A lamp was lit.", "audience": wrong}]),
            lambda wrong=wrong: ana.memories.keep("A lamp was lit.", about="everyone", audience=wrong),
            lambda wrong=wrong: ana.memories.supersede(before[0].id, "A lamp was lit.", audience=wrong),
        ):
            with pytest.raises(InvalidInput) as error:
                call()
            assert error.value.field == "audience"
    assert everything(ana) == before


@pytest.mark.behaviour("W25", "A05")
def test_only_a_member_publishes(ana, bob):
    ana.projects.add_member("apollo", "bob")
    own = ana.memories.write("The hull is sound.").memory
    calls: list[Any] = [
        lambda: ana.memories.write("The mast is cracked.", project="apollo"),
        lambda: ana.memories.write("The mast is cracked.", project="apollo", audience="project", type="preference"),
        lambda: ana.scoped(project="apollo").memories.write("The mast is cracked."),
        lambda: ana.memories.write_many(["The keel is oak.", {"content": "The mast is cracked.", "project": "apollo"}]),
        lambda: ana.memories.keep("The mast is cracked.", about="everyone", project="apollo"),
        lambda: ana.memories.supersede(own.id, "The mast is cracked.", project="apollo", audience="project"),
    ]
    for call in calls:
        with pytest.raises(NotAllowed, match=r"member.*'apollo'"):
            call()
    assert everything(ana) == [own] and everything(bob) == []
    private = ana.memories.write("The mast is cracked.", project="apollo", audience="private").memory
    assert (private.project, private.audience) == ("apollo", "private")
    ana.projects.add_member("apollo", "ana")
    shared = ana.memories.write("The rudder sticks.", project="apollo").memory
    assert shared.audience == "project" and ids(bob.memories.list()) == {shared.id}


# -- membership is given and taken


@pytest.mark.behaviour("A05", "A11")
def test_membership_gives_and_takes_the_rows_of_a_project_at_once(ana, bob):
    ana.projects.add_member("apollo", "ana")
    old = ana.memories.write("The mooring is at berth four.", project="apollo", core=True).memory
    new = ana.memories.supersede(old.id, "The mooring is at berth nine.").memory
    ana.memories.write("The mooring costs ninety a week.", project="apollo", audience="private")
    ana.memories.write("The winch is greased on Mondays.", project="zeus", audience="private")

    def found():
        once = {name: ids(read(bob, row)) for name, read in READS.items() for row in (old, new)}
        return set().union(*once.values()), bob.stats().memories

    assert found() == (set(), 0)
    for _ in range(2):
        assert ana.projects.add_member("apollo", "bob") is True
        assert found() == ({old.id, new.id}, 2)
        assert [memory.id for memory in bob.memories.history(new.id)] == [old.id, new.id]
        assert ana.projects.remove_member("apollo", "bob") is True
        assert found() == (set(), 0)
    ana.projects.add_member("zeus", "bob")
    assert found() == (set(), 0)


@pytest.mark.behaviour("A10", "S21")
def test_counting_what_was_recalled_never_costs_an_answer(ana, bob):
    for user in ("ana", "bob"):
        ana.projects.add_member("apollo", user)
    row = ana.memories.write("The mooring is at berth four.", project="apollo").memory
    for reader, lost in ((ana, None), (bob, None), (ana, "ana"), (ana, "bob")):
        if lost:
            ana.projects.remove_member("apollo", lost)
        answer = reader.recall("Where is the mooring?")
        assert (ids(answer), answer.degraded) == ({row.id}, None)
    assert ana.memories.get(row.id).access_count == 4
    assert not bob.recall("Where is the mooring?") and ana.memories.get(row.id).access_count == 4


# -- none is not the same as unreachable


@pytest.fixture(params=["file", "server"])
def unreachable(request, tmp_path, twin):
    """A store that cannot be opened: a folder in place of the file, a port where no server listens."""
    url = f"sqlite:///{tmp_path}" if request.param == "file" else "postgresql://nobody:secret@127.0.0.1:9/none"
    engine = twin(MemoryEngine(url, embedder="hash/words", timeout=2))
    yield engine.persona("main", user="ana")
    engine.close()


@pytest.mark.behaviour("O04")
def test_a_store_that_cannot_be_reached_never_looks_empty(unreachable, frozen_clock):
    me, now = unreachable, frozen_clock()
    calls: list[Any] = [
        lambda: me.recall("lamp"),
        lambda: me.memories.get("abcdefgh"),
        lambda: me.memories.get("abcdefgh", as_of=now),
        lambda: me.memories.history("abcdefgh"),
        lambda: me.memories.list(),
        lambda: me.memories.core(),
        lambda: me.memories.nearest("lamp"),
        lambda: me.stats(),
        lambda: me.projects.members("apollo"),
        lambda: me.spaces.list(),
        *(lambda change=change: change(me, "abcdefgh") for change in CHANGES.values()),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable) as error:
            call()
        assert "secret" not in str(error.value)
    injected = me.memories.relevant("lamp")  # it fails no turn, and says what it is
    assert (len(injected), injected.abstained) == (0, True)
    assert injected.degraded and "could not be looked up" in injected.reason


@pytest.mark.behaviour("O04", "R36")
def test_none_is_said_as_none_and_an_embedder_that_is_down_is_named(make_engine, backend):
    me = make_engine().persona("main", user="ana")
    assert (me.memories.get("abcdefgh"), me.memories.nearest("lamp"), me.stats().memories) == (None, None, 0)
    assert me.memories.history("abcdefgh") == me.memories.list() == me.memories.core() == me.spaces.list() == []
    for empty in (me.recall("lamp"), me.memories.relevant("lamp")):
        assert empty.abstained and not empty.degraded and "nothing is stored" in empty.reason
    if backend.name != "sqlite-memory":
        broken = make_engine(embedder=BrokenEmbedder(name="hash/words", dimensions=512)).persona("main", user="ana")
        for answer in (broken.recall("lamp"), broken.memories.relevant("lamp")):
            assert answer.abstained and "hash/words" in answer.degraded
