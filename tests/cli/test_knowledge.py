"""Documents by commands alone: taken in, listed, shown and removed."""

import pytest

from memoranda.testing.pdfs import pdf

BACKENDS = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "pumps.md").write_text("# Pumps\n\nThe pump is green.")
    (folder / "deep" / "taps.txt").write_text("The tap drips.")
    (folder / "manual.pdf").write_bytes(pdf(["The lamp is blue."]))
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    return folder


@pytest.mark.behaviour("K01")
@BACKENDS
def test_a_folder_is_taken_in_listed_shown_and_removed(memoranda, answer, docs):
    answer("db", "upgrade")
    left_out = "Left out handbook/bad.pdf: is a damaged PDF: open it in a viewer and save it anew\n"
    first = memoranda("knowledge", "ingest", "handbook", "docs")
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout == f"{left_out}3 documents ingested (3 chunks), 0 unchanged, 1 left out\n"
    (docs / "pumps.md").write_text("# Pumps\n\nThe pump is red.")
    again = memoranda("knowledge", "ingest", "handbook", "docs")
    assert again.stdout == f"{left_out}1 document ingested (1 chunk), 2 unchanged, 1 left out\n"

    names = ["handbook/deep/taps.txt", "handbook/manual.pdf", "handbook/pumps.md"]
    assert [document["source"] for document in answer("knowledge", "list")["documents"]] == names
    lines = memoranda("knowledge", "list").stdout.splitlines()
    assert [line.split()[-1] for line in lines[2:]] == names
    assert memoranda("knowledge", "show", "handbook/pumps.md").stdout == "#0  Pumps\n# Pumps\n\nThe pump is red.\n\n"
    [chunk] = answer("knowledge", "show", "handbook/manual.pdf")["chunks"]
    assert (chunk["content"], chunk["metadata"]) == ("The lamp is blue.", {"page": 1, "pages": 1})

    removed = memoranda("knowledge", "delete", "handbook/pumps.md")
    assert (removed.exit_code, removed.stdout) == (0, "removed handbook/pumps.md: 1 chunk\n")
    assert answer("knowledge", "delete", "handbook/pumps.md", code=1)["chunks"] == 0
    assert answer("knowledge", "show", "handbook/pumps.md", code=1)["chunks"] == []
    assert memoranda("knowledge", "show", "handbook/pumps.md").stdout == "(no such document)\n"


def test_a_single_document_is_answered_in_a_sentence(run, docs):
    words = ("knowledge", "ingest", "manual", str(docs / "manual.pdf"), "--metadata", '{"team": "support"}')
    assert run(*words).stdout == "Ingested manual: 1 chunk (embedded)\n"
    assert run(*words).stdout == "Unchanged manual: 1 chunk (embedded)\n"
    assert run("knowledge", "list", "--metadata", '{"team": "support"}').exit_code == 0
    none = run("knowledge", "list", "--metadata", '{"team": "sales"}')
    assert (none.exit_code, none.stdout) == (1, "(no documents)\n")


def test_a_text_comes_on_standard_input(run):
    page = run("knowledge", "ingest", "page", "-", "--type", "text/html", input="<h1>Pumps</h1><p>The pump is green.")
    assert page.stdout == "Ingested page: 1 chunk (embedded)\n"
    assert "# Pumps\n\nThe pump is green." in run("knowledge", "show", "page").stdout
    for given in ("", b"\xff\xfe\xfa"):
        assert run("knowledge", "ingest", "page", "-", input=given).exit_code == 2


def test_without_an_embedder_it_says_so(run):
    words = ("knowledge", "ingest", "page", "-", "--embedder", "none")
    assert run(*words, input="The pump is green.").stdout == "Ingested page: 1 chunk (text only)\n"


@pytest.mark.behaviour("K08")
def test_what_cannot_be_taken_in_is_refused(run, docs):
    for words, said in (
        (["x", "nope.pdf"], "'nope.pdf' does not exist"),
        (["x", "docs/bad.pdf"], "is a damaged PDF"),
        (["x", "../docs/pumps.md", "--root", "docs"], "leads out of the folder"),
        (["x", str(docs / "pumps.md"), "--root", "docs/deep"], "leads out of the folder"),
        (["x", "docs", "--metadata", "[1]"], "metadata must be a JSON object"),
        (["x", "docs", "--audience", "project"], "needs a project"),
        (["x", "docs", "--type", "text/plain"], "media_type goes with"),
        ([" ", "docs"], "source must be a name"),
    ):
        refused = run("knowledge", "ingest", *words)
        assert (refused.exit_code, refused.stdout) == (2, "") and said in refused.stderr, words
    assert run("knowledge", "ingest", "x", "pumps.md", "--root", "docs").exit_code == 0


def test_a_folder_of_which_nothing_can_be_read_is_refused(run, tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.pdf").write_bytes(b"%PDF-1.4 nothing")
    assert run("knowledge", "ingest", "x", "bad").exit_code == 2
    assert run("knowledge", "list").exit_code in (1, 3)
