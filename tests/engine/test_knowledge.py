"""Documents become chunks that are found, replaced whole, seen by whom they are for, and gone without a trace."""

import io
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from memoranda import MemoryEngine
from memoranda.documents.chunking import normalise
from memoranda.embedders.hash_words import HashWords
from memoranda.errors import InvalidInput, NotAllowed, NotTheAuthor, UnreadableDocument
from memoranda.policies import ChunkingPolicy, Policies
from memoranda.testing import CountingEmbedder, unwrap
from memoranda.testing.pdfs import pdf

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
SMALL = Policies(chunking=ChunkingPolicy(size=500, overlap=50))


def paragraphs(count, said="The pump number {} is painted green and stands in the cellar."):
    """Return as many paragraphs of more than half a small chunk: each becomes one."""
    return "\n\n".join(f"{said.format(number)} " * 5 for number in range(count))


def rows(engine, *nouns):
    """Return the rows of tables, vectors without their numbers."""

    def read(conn, tables):
        return {noun: [r._mapping for r in conn.execute(select(getattr(tables, noun)))] for noun in nouns}

    return unwrap(engine)._database.read(read)


def counts(engine, *nouns):
    return [len(found) for found in rows(engine, *nouns).values()]


OWN = ("knowledge_documents", "knowledge_chunks", "vectors")


def rebuilt(chunks):
    return "".join(chunk.content[chunk.overlap :] for chunk in chunks)


@dataclass
class PageContent:
    """What one framework calls a document."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Text:
    """What another one does."""

    text: str
    metadata: dict[str, Any] | None = None


# -- taking in


@pytest.mark.behaviour("K01")
def test_a_text_a_file_and_a_folder_are_taken_in(me, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("# Pumps\n\nThe pump is green.")
    (tmp_path / "docs" / "deep" / "b.html").write_text("<title>Lamps</title><p>The lamp is blue.")
    (tmp_path / "docs" / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "docs" / "c.bin").write_bytes(b"\0\1")
    told = []

    [text] = me.knowledge.ingest("note", text="The tap drips.")
    [file] = me.knowledge.ingest("pumps", path="docs/a.md")
    folder = me.knowledge.ingest("docs", path="docs", progress=lambda done, total: told.append((done, total)))

    assert (str(text), str(file)) == ("Ingested note: 1 chunk (embedded)", "Ingested pumps: 1 chunk (embedded)")
    assert [str(answer) for answer in folder] == [
        "Ingested docs/a.md: 1 chunk (embedded)",
        "Left out docs/bad.pdf: is a damaged PDF: open it in a viewer and save it anew",
        "Left out docs/c.bin: is of a type that is not read",
        "Ingested docs/deep/b.html: 1 chunk (embedded)",
    ]
    assert told == [(1, 3), (2, 3), (3, 3)]
    documents = me.knowledge.list()
    assert [(d.source, d.media_type, d.chunks) for d in documents] == [
        ("docs/a.md", "text/markdown", 1),
        ("docs/deep/b.html", "text/html", 1),
        ("note", "text/plain", 1),
        ("pumps", "text/markdown", 1),
    ]
    assert documents[1].metadata == {"title": "Lamps"}
    [chunk] = me.knowledge.get("docs/a.md")
    assert (chunk.content, chunk.headings, chunk.chunk_index) == ("# Pumps\n\nThe pump is green.", ("Pumps",), 0)
    assert "green" not in repr(chunk)


def test_a_folder_without_a_file_that_is_read_is_refused(me, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "c.bin").write_bytes(b"\0\1")
    with pytest.raises(UnreadableDocument, match="'empty' holds no file that is read"):
        me.knowledge.ingest("docs", path=tmp_path / "empty", root=tmp_path)


def test_pages_of_a_pdf_are_told_of_each_chunk(make_engine, tmp_path):
    (tmp_path / "manual.pdf").write_bytes(pdf(["The pump is green. " * 20], None, ["The lamp is blue. " * 20]))
    me = make_engine(preset=SMALL).persona("main")
    me.knowledge.ingest("manual", path="manual.pdf", root=tmp_path, metadata={"team": "support"})

    [document] = me.knowledge.list()
    assert document.metadata == {"pages": 3, "pages_without_text": 1, "team": "support"}
    pages = {chunk.content[chunk.overlap :].split()[1]: chunk.metadata["page"] for chunk in me.knowledge.get("manual")}
    assert pages == {"pump": 1, "lamp": 3}


def test_documents_of_a_framework_are_the_parts_of_one_in_order(make_engine):
    me = make_engine(preset=SMALL).persona("main")
    parts: list[Any] = [
        PageContent(paragraphs(1, "Of pumps {}."), {"origin": "wiki", "page": 0}),
        PageContent("  \n "),
        Text(paragraphs(1, "Of lamps {}."), {"origin": "wiki", "page": 1}),
        Text("The end."),
    ]
    [answer] = me.knowledge.ingest("wiki", documents=iter(parts[:3]), metadata={"team": "ops"})
    chunks = me.knowledge.get("wiki")

    assert rebuilt(chunks) == f"{normalise(parts[0].page_content)}\n\n{normalise(parts[2].text)}"
    assert [chunk.metadata for chunk in chunks[:1]] == [{"origin": "wiki", "page": 0, "team": "ops"}]
    assert me.knowledge.list()[0].metadata == {"origin": "wiki", "team": "ops"}
    assert answer.chunks == len(chunks)
    assert me.knowledge.ingest("wiki", documents=parts)[0].replaced == answer.chunks


def test_html_may_come_as_a_text(me):
    me.knowledge.ingest("page", text="<title>Pumps</title><h1>Green</h1><p>ones", media_type="text/html")
    assert me.knowledge.list()[0].metadata == {"title": "Pumps"}
    assert rebuilt(me.knowledge.get("page")) == "# Green\n\nones"


@pytest.mark.behaviour("K02", "K06")
@settings(max_examples=15)
@given(
    text=st.lists(
        st.sampled_from(
            ["A short one.", "# Heading", "```\ncode\n\nmore\n```", "word " * 90, "x" * 700, "• item\n• two"]
        ),
        min_size=1,
        max_size=12,
    ).map("\n\n".join)
)
def test_the_bodies_of_what_is_stored_rebuild_the_text(text):
    with MemoryEngine("sqlite://", embedder="none", preset=SMALL) as engine:
        knowledge = engine.persona("main").knowledge
        [answer] = knowledge.ingest("any", text=text)
        chunks = knowledge.get("any")
    assert rebuilt(chunks) == normalise(text)
    assert [chunk.chunk_index for chunk in chunks] == list(range(answer.chunks))
    assert all(len(chunk.content) <= 500 + 50 + 2 for chunk in chunks)


@pytest.mark.behaviour("K03", "K07")
def test_all_chunks_of_a_document_go_out_as_one_list(make_engine):
    embedder = CountingEmbedder(HashWords())
    engine = make_engine(embedder=embedder, preset=SMALL)
    me = engine.persona("main")
    me.memories.write("The pump is green.")
    [answer] = me.knowledge.ingest("pumps", text=paragraphs(12))

    assert answer.chunks == 12
    assert [len(call) for call in embedder.calls] == [1, 12]
    assert {row["model"] for row in rows(engine, "vectors")["vectors"]} == {f"{HashWords.name}@{HashWords.dimensions}"}
    assert sorted(row["kind"] for row in rows(engine, "vectors")["vectors"]) == ["knowledge"] * 12 + ["memory"]


@pytest.mark.behaviour("S32")
def test_a_chunk_is_found_by_its_document_its_headings_and_its_words(engine):
    engine.persona("main").knowledge.ingest("handbook", text="# Pumps\n\n" + "The lamp is blue. " * 250)
    first, second = rows(engine, "knowledge_chunks")["knowledge_chunks"]
    assert (second["persona"], second["source"], second["chunk_index"]) == ("main", "handbook", 1)
    assert "handbook" in second["category_terms"] and "handbook" not in second["content_terms"]
    assert "pump" in second["content_terms"] and "Pumps" not in second["content"]
    assert second["length"] == len(f"{second['category_terms']} {second['content_terms']}".split())
    assert first["cells"] == second["cells"] != ""


# -- again


@pytest.mark.behaviour("K04")
def test_taking_a_document_in_again_replaces_its_chunks(make_engine):
    engine = make_engine(preset=SMALL)
    me = engine.persona("main")
    me.knowledge.ingest("other", text="The tap drips.")
    [first] = me.knowledge.ingest("pumps", text=paragraphs(10))
    began = me.knowledge.list()[1]
    [second] = me.knowledge.ingest("pumps", text=paragraphs(3))

    assert (first.replaced, second.replaced, second.chunks) == (0, first.chunks, 3)
    assert len(me.knowledge.get("pumps")) == 3
    assert counts(engine, *OWN) == [2, 4, 4]
    document = me.knowledge.list()[1]
    assert document.created_at == began.created_at < document.updated_at


def test_what_has_not_changed_is_left_alone(make_engine):
    embedder = CountingEmbedder(HashWords())
    engine = make_engine(embedder=embedder)
    me = engine.persona("main")
    me.knowledge.ingest("pumps", text="The pump is green.\r\n", metadata={"team": "ops", "size": 1})
    before = me.knowledge.get("pumps")
    [answer] = me.knowledge.ingest("pumps", text="The pump is green.", metadata={"size": 1, "team": "ops"})

    assert (answer.unchanged, answer.chunks, answer.embedded) == (True, 1, True)
    assert str(answer) == "Unchanged pumps: 1 chunk (embedded)"
    assert me.knowledge.get("pumps") == before and len(embedder.calls) == 1


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"preset": SMALL}, {}),
        ({}, {"metadata": {"team": "ops"}}),
        ({}, {"media_type": "text/markdown"}),
        ({}, {"project": "apollo"}),
        ({"preset": replace(Policies(), redaction=replace(Policies().redaction, enabled=False))}, {}),
    ],
    ids=["chunking", "metadata", "type", "project", "redaction"],
)
def test_what_chunks_depend_on_makes_them_anew(make_engine, options, fields):
    text = f"The key of the pump is {SECRET}."
    engine = make_engine()
    engine.persona("main").knowledge.ingest("pumps", text=text)
    me = engine.persona("main", **options)
    [answer] = me.knowledge.ingest("pumps", text=text, **fields)
    assert (answer.unchanged, answer.replaced) == (False, 1)
    assert me.knowledge.ingest("pumps", text=text, **fields)[0].unchanged


def test_a_document_is_removed_with_all_that_belongs_to_it(make_engine):
    engine = make_engine(preset=SMALL)
    me = engine.persona("main")
    me.knowledge.ingest("pumps", text=paragraphs(3))
    me.knowledge.ingest("taps", text="The tap drips.")
    assert (me.knowledge.delete("pumps"), me.knowledge.delete("pumps")) == (3, 0)
    assert me.knowledge.get("pumps") == []
    assert counts(engine, *OWN) == [1, 1, 1]


# -- whose it is


def test_a_document_is_its_author_s_and_the_members_of_its_project_see_it(engine):
    ana, ben, cyd = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "ben", "cyd"))
    for member in ("ana", "ben"):
        ana.projects.add_member("Apollo", member)
    ana.knowledge.ingest("mine", text="The pump is green.")
    ana.knowledge.ingest("ours", text="The lamp is blue.", project="apollo", audience="project")

    assert [d.source for d in ana.knowledge.list()] == ["mine", "ours"]
    [shared] = ben.knowledge.list()
    assert (shared.source, shared.author, shared.project) == ("ours", "ana", "Apollo")
    assert [c.content for c in ben.knowledge.get("ours")] == ["The lamp is blue."]
    assert ben.knowledge.get("mine") == [] and cyd.knowledge.list() == []
    assert engine.persona("other", tenant="acme", user="ana").knowledge.list() == []
    with pytest.raises(NotTheAuthor, match="removes"):
        ben.knowledge.delete("ours")
    assert cyd.knowledge.delete("ours") == 0
    ben.knowledge.ingest("ours", text="The tap drips.")
    assert [c.content for c in ben.knowledge.get("ours")] == ["The tap drips."]
    assert [c.content for c in ana.knowledge.get("ours")] == ["The lamp is blue."]
    ana.projects.remove_member("Apollo", "ben")
    assert [d.author for d in ben.knowledge.list()] == ["ben"]
    with pytest.raises(NotAllowed, match="member"):
        cyd.knowledge.ingest("theirs", text="The tap drips.", project="apollo", audience="project")
    with pytest.raises(NotAllowed, match="user"):
        engine.persona("main", tenant="acme", preset="ledger").knowledge.ingest("x", text="y")
    assert engine.persona("main", tenant="acme", preset="ledger").knowledge.list() == []


def test_documents_are_listed_by_their_metadata(me):
    me.knowledge.ingest("a", text="One.", metadata={"team": "ops", "size": 1})
    me.knowledge.ingest("b", text="Two.", metadata={"team": "ops", "size": True})
    me.knowledge.ingest("c", text="Three.")
    assert [d.source for d in me.knowledge.list(metadata={"team": "ops"})] == ["a", "b"]
    assert [d.source for d in me.knowledge.list(metadata={"team": "ops", "size": 1})] == ["a"]
    assert [d.source for d in me.knowledge.list(metadata={})] == ["a", "b", "c"]


# -- what is refused, and what is taken out


@pytest.mark.behaviour("K08")
@pytest.mark.parametrize("path", ["../secret.txt", "link.txt", "linked/secret.txt", "/etc/hostname", "nope.txt"])
def test_a_path_that_leads_out_is_refused(me, tmp_path, path):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "in" / "linked").symlink_to(tmp_path)
    with pytest.raises(UnreadableDocument):
        me.knowledge.ingest("x", path=path, root=tmp_path / "in")
    assert me.knowledge.list() == []


@pytest.mark.behaviour("K08")
def test_without_a_root_a_path_lies_in_the_current_folder(me, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    monkeypatch.chdir(tmp_path / "in")
    for path in ("../secret.txt", tmp_path / "secret.txt", ".."):
        with pytest.raises(UnreadableDocument):
            me.knowledge.ingest("x", path=path)


@pytest.mark.behaviour("K09")
def test_a_secret_is_in_no_row_and_goes_to_no_embedder(make_engine, tmp_path):
    embedder = CountingEmbedder(HashWords())
    engine = make_engine(embedder=embedder)
    me = engine.persona("main")
    (tmp_path / "a.md").write_text(f"# Key {SECRET}\n\n" + "Words. " * 420 + f" The key is {SECRET}.")
    me.knowledge.ingest("a", path="a.md", root=tmp_path, metadata={"token": SECRET})
    halves = [
        PageContent("-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + "IBAAKCAQEA" * 8),
        Text("x" * 64 + "\n-----END RSA PRIVATE KEY-----"),
    ]
    me.knowledge.ingest("b", documents=halves)

    held = repr(rows(engine, "knowledge_documents", "knowledge_chunks")) + repr(embedder.texts)
    assert SECRET not in held and SECRET.lower() not in held.lower()
    assert "IBAAKCAQEA" not in held
    assert "[REDACTED" in held
    for call in ({"source": SECRET, "text": "x"}, {"source": "c", "text": "x", "project": SECRET}):
        with pytest.raises(InvalidInput, match="looks like a secret"):
            me.knowledge.ingest(call.pop("source"), **call)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"text": "a", "documents": []},
        {"text": " \n"},
        {"text": 7},
        {"documents": []},
        {"documents": "text"},
        {"documents": Text("one")},
        {"documents": ["text"]},
        {"documents": 7},
        {"documents": [Text("a", {"x": len})]},
        {"text": "a", "root": "."},
        {"path": ""},
        {"path": 7},
        {"path": ".", "root": ""},
        {"path": ".", "media_type": "text/plain"},
        {"text": "a", "media_type": "application/pdf"},
        {"text": "a", "colour": "green"},
        {"text": "a", "metadata": [1]},
        {"text": "a", "metadata": {"x": len}},
        {"text": "a", "audience": "project"},
        {"text": "a", "audience": "everyone"},
        {"text": "a", "project": "--"},
    ],
    ids=str,
)
def test_what_cannot_be_taken_in_is_refused_and_nothing_is_stored(me, given):
    with pytest.raises(InvalidInput):
        me.knowledge.ingest("x", **given)
    assert me.knowledge.list() == []


@pytest.mark.parametrize("source", ["", " ", "a\nb", "a\0", "x" * 501, "\ud800", 7, None])
def test_a_name_that_is_none_is_refused(me, source):
    for verb in (lambda: me.knowledge.ingest(source, text="a"), lambda: me.knowledge.get(source)):
        with pytest.raises(InvalidInput, match="source"):
            verb()


# -- the whole store


@pytest.mark.parametrize("target", [{"user": "ana"}, {"user": "ana", "persona": "main"}, {"persona": "main"}], ids=str)
def test_an_erasure_takes_documents_chunks_and_vectors(engine, target):
    ana, ben = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "ben"))
    ana.knowledge.ingest("pumps", text="The pump is green. " * 300)
    ana.memories.write("The lamp is blue.")
    for kept in (ben, engine.persona("other", tenant="acme", user="ben"), engine.persona("main")):
        kept.knowledge.ingest("taps", text="The tap drips.")
    before = counts(engine, *OWN)
    counted = engine.erase(tenant="acme", dry_run=True, **target)
    assert counts(engine, *OWN) == before
    erased = engine.erase(tenant="acme", **target)

    assert erased.rows == counted.rows
    assert ana.knowledge.list() == []
    left = 3 if "user" in target else 2
    assert counts(engine, *OWN) == [left, left, left]


def test_the_file_holds_nothing_of_an_erased_document(tmp_path, twin):
    engine = twin(MemoryEngine(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hash/words", preset=SMALL))
    ana, ben = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "ben"))
    ana.knowledge.ingest("quagga", text=paragraphs(5, "The quagga {} keeps its xylophone in Ouagadougou."))
    ana.knowledge.ingest("quagga", text=paragraphs(4, "The okapi {} keeps its bassoon in Timbuktu."))
    ben.knowledge.ingest("taps", text=paragraphs(5))
    marks = ("quagga", "xylophone", "okapi", "timbuktu")

    def held():
        data = b"".join(path.read_bytes().lower() for path in tmp_path.iterdir() if path.is_file())
        return [mark for mark in marks if mark.encode() in data]

    assert set(held()) >= {"quagga", "okapi"}
    assert not engine.erase(tenant="acme", user="ana").pending
    assert held() == []
    assert len(ben.knowledge.get("taps")) == 5
    engine.close()


def test_documents_come_back_from_a_file_as_they_were(make_engine, tmp_path, twin):
    start = make_engine(preset=SMALL)
    ana = start.persona("main", tenant="acme", user="ana")
    ana.knowledge.ingest("pumps", text=f"# Pumps\n\n{paragraphs(3)}", metadata={"sizes": {1, 2}})
    file = io.BytesIO()
    start.export_to(file)
    end = twin(MemoryEngine(f"sqlite:///{tmp_path / 'end.db'}", embedder="hash/words"))
    imported = end.import_from(io.BytesIO(file.getvalue()))

    there = end.persona("main", tenant="acme", user="ana")
    assert (there.knowledge.list(), there.knowledge.get("pumps")) == (ana.knowledge.list(), ana.knowledge.get("pumps"))
    assert imported.rows["knowledge_chunks"] == imported.rows["vectors"] == len(ana.knowledge.get("pumps"))
    assert not end.import_from(io.BytesIO(file.getvalue())).rows
    end.erase(tenant="acme", user="ana")
    assert end.import_from(io.BytesIO(file.getvalue())).erased
    assert counts(end, *OWN) == [0, 0, 0]
    end.close()


@pytest.mark.parametrize("same", [True, False], ids=["replaced since", "another of that name"])
def test_a_document_that_is_there_keeps_all_its_chunks(make_engine, tmp_path, twin, same):
    """An old file must neither mix its chunks with the new ones nor fail because of them."""
    start = make_engine(preset=SMALL)
    start.persona("main").knowledge.ingest("pumps", text=paragraphs(5))
    start.persona("main").knowledge.ingest("lamps", text=paragraphs(2))
    file = io.BytesIO()
    start.export_to(file)
    end = twin(MemoryEngine(f"sqlite:///{tmp_path / 'end.db'}", embedder="hash/words", preset=SMALL))
    me = end.persona("main")
    if same:
        end.import_from(io.BytesIO(file.getvalue()))
    taps = paragraphs(3, "The tap number {} drips into the blue bucket under the old stairs.")
    me.knowledge.ingest("pumps", text=taps)
    imported = end.import_from(io.BytesIO(file.getvalue()))

    assert rebuilt(me.knowledge.get("pumps")) == normalise(taps)
    assert rebuilt(me.knowledge.get("lamps")) == normalise(paragraphs(2))
    assert counts(end, *OWN) == [2, 5, 5]
    assert imported.already_there["knowledge_chunks"] == (7 if same else 5)
    end.close()


def test_chunks_are_indexed_anew_in_another_language(make_engine, tmp_path, twin):
    start = make_engine(language="german")
    start.persona("main").knowledge.ingest("pumps", text="# Pumpen\n\nDie Pumpen sind grün.")
    file = io.BytesIO()
    start.export_to(file)
    end = twin(MemoryEngine(f"sqlite:///{tmp_path / 'end.db'}", embedder="hash/words"))
    assert end.import_from(io.BytesIO(file.getvalue())).reindexed == 1
    fresh = twin(MemoryEngine("sqlite://", embedder="hash/words"))
    fresh.persona("main").knowledge.ingest("pumps", text="# Pumpen\n\nDie Pumpen sind grün.")
    names = ("cells", "category_terms", "content_terms", "length")
    one, other = (rows(engine, "knowledge_chunks")["knowledge_chunks"][0] for engine in (end, fresh))
    assert {name: one[name] for name in names} == {name: other[name] for name in names}
    assert json.dumps(one["headings"]) == '["Pumpen"]'
    for engine in (end, fresh):
        engine.close()
