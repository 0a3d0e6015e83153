"""Conversations in a file: they come back as they were, beside others of the same name and in another language."""

import io

import pytest
from sqlalchemy import select, update

from memoranda import MemoryEngine
from memoranda.errors import ModelRefused
from memoranda.messages import Message
from memoranda.testing import ScriptedModel
from memoranda.testing.twin import unwrap

SAID = [
    Message(role="system", content="Be brief."),
    Message(role="user", content="Which boats\0 leave \ud800 today?", id="m1", extra={"raw": b"\0", "minus": -0.0}),
    Message(role="assistant", content="Two of them.", codec="langchain", payload={"z": "\0", "a": 10**30}),
]


@pytest.fixture
def other(twin, tmp_path):
    """Another store, in a file of its own."""
    engine = twin(MemoryEngine(f"sqlite:///{tmp_path / 'other.db'}", embedder="hash/words"))
    yield engine
    engine.close()


def exported(engine):
    stream = io.BytesIO()
    engine.export_to(stream)
    return io.BytesIO(stream.getvalue())


def texts(chat):
    return [message.text for message in chat.messages()]


def test_a_conversation_comes_back_as_it_was(engine, other):
    chat = engine.persona("main", user="ana").conversation("thread-1")
    chat.append(SAID)
    block = chat.system_block()
    other.import_from(exported(engine))

    there = other.persona("main", user="ana").conversation("thread-1")
    assert there.messages() == chat.messages() and there.record() == chat.record()
    assert there.system_block() == block and there.window(100) == chat.window(100)
    assert [message.position for message in there.append("Thanks.")] == [4]
    assert other.persona("main").conversation("thread-1").record() is None


def test_a_newer_file_adds_what_was_said_since(engine, other):
    chat, there = (store.persona("main").conversation("thread-1") for store in (engine, other))
    chat.append(["one", "two"])
    other.import_from(exported(engine))
    chat.append(["three", "four"])

    assert other.import_from(exported(engine)).rows == {"messages": 2}
    assert texts(there) == ["one", "two", "three", "four"]
    assert [message.position for message in there.append("five")] == [5]


def test_what_both_said_since_they_parted_stands_behind_each_other(engine, other):
    chat, there = (store.persona("main").conversation("thread-1") for store in (engine, other))
    chat.append(["one", "two"])
    other.import_from(exported(engine))
    chat.append(["here", Message(role="user", content="said on both sides", id="m1"), "here again"])
    there.append([Message(role="user", content="said on both sides", id="m1"), "there"])

    for _ in range(2):
        other.import_from(exported(engine))
        assert texts(there) == ["one", "two", "said on both sides", "there", "here", "here again"]
    assert [message.position for message in there.append("end")] == [7]


def test_another_conversation_of_the_same_name_stands_beside_it(engine, other):
    chat, there = (store.persona("main").conversation("thread-1") for store in (engine, other))
    chat.append(["one", "two"])
    there.append(["three"])

    for _ in range(2):
        other.import_from(exported(engine))
        assert texts(there) == ["three"]
        [longer, own] = sorted(other.persona("main").conversations.list(), key=lambda record: -record.messages)
        assert own.name == "thread-1" and longer.name.startswith("thread-1 (")
        assert texts(other.persona("main").conversation(longer.name)) == ["one", "two"]


def test_what_was_erased_here_does_not_come_back_with_a_file(engine, other):
    ana, ben = (engine.persona("main", tenant="acme", user=user).conversation("thread-1") for user in ("ana", "ben"))
    for chat in (ana, ben):
        chat.append(["one", "two"])
    other.import_from(exported(engine))
    other.erase(tenant="acme", user="ana")
    there = other.persona("main", tenant="acme", user="ana").conversation("thread-1")
    there.append("back again")

    assert other.import_from(exported(engine)).erased
    assert texts(there) == ["back again"]
    assert len(other.persona("main", tenant="acme", user="ben").conversation("thread-1").messages()) == 2


def test_another_language_indexes_the_words_anew(engine, twin, tmp_path):
    secret = "sk-proj-" + "a1B2c3D4" * 6
    engine.persona("main").conversation("thread-1").append(
        [f"sailing {secret}", {"role": "system", "content": "sailing"}]
    )

    def terms(store):
        def read(conn, tables):
            m = tables.messages
            return conn.execute(select(m.c.content_terms, m.c.length, m.c.cells != "").order_by(m.c.position)).all()

        return unwrap(store)._database.read(read)

    german = twin(MemoryEngine(f"sqlite:///{tmp_path / 'german.db'}", embedder="hash/words", language="german"))
    german.import_from(exported(engine))
    [english, _], [said, system] = terms(engine), terms(german)
    assert " sail " in english.content_terms and " sailing " in said.content_terms and said[2]
    assert said.length == english.length and tuple(system) == ("", 0, False)
    german.close()


def test_what_was_extracted_there_is_what_is_not_extracted_again(twin, tmp_path):
    def store(name, *answers):
        url, model = f"sqlite:///{tmp_path / name}", ScriptedModel(list(answers))
        return twin(MemoryEngine(url, embedder="hash/words", model=model, background="external"))

    with store("here.db", "[]") as engine, store("there.db") as other:
        chat, there = (one.persona("main").conversation("thread-1") for one in (engine, other))
        chat.append(["one", "two"])
        other.import_from(exported(engine))
        chat.append(["here 3", Message(role="user", content="on both sides", id="m1")])
        chat.pending([2, 3, 4])
        assert chat.flush().messages == 3
        there.append(["there 3", "there 4", Message(role="user", content="on both sides", id="m1")])
        assert there.pending([2]).messages == 1

        for _ in range(2):
            other.import_from(exported(engine))
            assert texts(there) == ["one", "two", "there 3", "there 4", "on both sides", "here 3"]
            assert there.record().pending == 0, "it was pending here, and extracted there"
        there.pending([1, 2, 3, 4, 5, 6])
        assert [message.text for message in there.messages() if message.pending] == ["one", "there 3", "there 4"]


def test_what_was_tried_in_vain_there_is_still_to_be_extracted_here(twin, tmp_path):
    def store(name, *answers):
        url, model = f"sqlite:///{tmp_path / name}", ScriptedModel(list(answers))
        return twin(MemoryEngine(url, embedder="hash/words", model=model, background="external"))

    with store("here.db", ModelRefused("declined")) as engine, store("there.db") as other:
        chat, there = (one.persona("main").conversation("thread-1") for one in (engine, other))
        chat.append(["one", "two"])
        other.import_from(exported(engine))
        for one in (chat, there):
            assert one.pending([1, 2]).messages == 2
        assert chat.flush().problem and chat.record().pending == 2
        other.import_from(exported(engine))
        assert there.record().pending == 2


def test_a_review_of_a_file_counts_up_to_what_only_this_store_has(twin, tmp_path):
    nothing = '{"user_model": [], "memories": []}'
    models = [ScriptedModel([nothing] * 2) for _ in range(2)]
    with (
        twin(MemoryEngine(f"sqlite:///{tmp_path / 'here.db'}", embedder="hash/words", model=models[0])) as engine,
        twin(MemoryEngine(f"sqlite:///{tmp_path / 'there.db'}", embedder="hash/words", model=models[1])) as other,
    ):
        chat, there = (one.persona("main").conversation("thread-1") for one in (engine, other))
        chat.append(["one", "two"])
        other.import_from(exported(engine))
        chat.append("here 3")
        chat.review()
        there.append("there 3")
        other.import_from(exported(engine))
        there.review()
        assert "there 3" in models[1].calls[0].text and "user: one" not in models[1].calls[0].text


def test_an_import_looks_at_the_conversations_of_its_own_scopes_alone(engine, other):
    for user in ("ana", "ben"):
        other.persona("main", user=user).conversation("thread-1").append(["one", "two"])
    database = unwrap(other)._database

    def set_back(conn, tables):
        conn.execute(update(tables.conversations).values(last_position=0))

    def places(conn, tables):
        return dict(conn.execute(select(tables.conversations.c.author, tables.conversations.c.last_position)).all())

    database.run(set_back)
    engine.persona("main", user="ana").conversation("thread-2").append("hello")
    other.import_from(exported(engine))
    assert database.read(places)["ben"] == 0
