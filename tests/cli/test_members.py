"""Who writes, who shares, and which spaces are open: by commands alone."""

import pytest

BACKENDS = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)
LEDGER = ("--preset", "ledger")
MESSAGE = "error: This preset records who wrote each memory: name the user with --user or MEMORANDA_USER.\n"


@pytest.mark.behaviour("W22")
@BACKENDS
def test_a_ledger_takes_nothing_from_nobody(memoranda, answer):
    answer("db", "upgrade")
    for command, options in (
        (["write", "The lamp is green."], {}),
        (["write", "-"], {"input": '["The lamp is green.", "The lamp is blue."]'}),
        (["keep", "Ana sings.", "--about", "person:Ana"], {}),
    ):
        refused = memoranda(*command, *LEDGER, **options)

        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "name the user with --user or MEMORANDA_USER" in refused.stderr
    for asker in ([], ["--user", "ana"]):
        assert answer("stats", *asker)["memories"] == 0
    assert memoranda("write", "The lamp is green.", *LEDGER, MEMORANDA_USER="ana").exit_code == 0
    assert answer("stats", "--user", "ana")["memories"] == 1


@pytest.mark.behaviour("W22")
@BACKENDS
def test_a_ledger_lets_nobody_change_what_somebody_wrote(memoranda, answer):
    [memory] = answer("write", "The lamp is green.", *LEDGER, "--user", "ana")["memories"]
    name = memory["short_id"]

    for command in (
        ["supersede", name, "It is blue."],
        ["mark", name, "expired"],
        ["undo", name],
        ["delete", name],
        ["forget", name],
        ["keep", "It is blue.", "--about", "everyone", "--id", name],
    ):
        refused = memoranda(*command, *LEDGER)
        assert (refused.exit_code, refused.stdout, refused.stderr) == (2, "", MESSAGE)
    assert answer("stats", "--user", "ana")["by_status"] == {"active": 1}
    assert memoranda("get", name, *LEDGER).exit_code == 1


@BACKENDS
def test_members_of_a_project_read_what_it_shares(memoranda, answer):
    acme = ("--tenant", "acme")
    shared = ("write", "The code word is heron.", "--project", "apollo", "--audience", "project", *acme)
    question = ("recall", "what is the code word?", *acme, "--user", "bob")

    assert memoranda(*shared, "--user", "ana").exit_code == 2
    assert answer("projects", "add", "apollo", "ana", *acme)["added"] is True
    assert memoranda("projects", "add", "apollo", "ana", *acme).stdout == "ana is a member of apollo already\n"
    assert memoranda(*shared, "--user", "ana").exit_code == 0
    assert memoranda(*question).exit_code == 1
    assert memoranda("projects", "add", "apollo", "bob", *acme).stdout == "bob is a member of apollo\n"
    assert memoranda(*question).exit_code == 0

    assert answer("projects", "members", "apollo", *acme) == {"project": "apollo", "members": ["ana", "bob"]}
    assert [line.strip() for line in memoranda("projects", "members", "apollo", *acme).stdout.splitlines()[2:]] == [
        "ana",
        "bob",
    ]
    assert memoranda("projects", "remove", "apollo", "bob", *acme).stdout == "bob is no member of apollo any more\n"
    assert answer("projects", "remove", "apollo", "bob", *acme, code=1)["removed"] is False
    assert memoranda(*question).exit_code == 1


@BACKENDS
def test_a_membership_that_nobody_could_use_is_refused(memoranda, answer):
    answer("db", "upgrade")
    alone = ("--user", "ana")

    for words in (["add", "apollo", "ana"], ["remove", "apollo", "ana"], ["members", "apollo"]):
        assert memoranda("projects", *words).exit_code == 2
    assert memoranda("projects", "add", "apollo", "bob", *alone).exit_code == 2
    assert memoranda("projects", "add", "apollo", "ana", *alone).exit_code == 0
    assert answer("projects", "members", "apollo", *alone)["members"] == ["ana"]


@BACKENDS
def test_statements_are_learned_in_open_spaces_only(memoranda, answer):
    kept = ("keep", "Dinner is at eight.", "--about", "everyone", "--space", "family", "--preset", "statements")

    assert memoranda(*kept).exit_code == 2
    assert memoranda("spaces", "create", "family").stdout == "family is open\n"
    assert answer("spaces", "create", "family") == {"space": "family", "created": False}
    assert memoranda(*kept).exit_code == 0
    assert memoranda("spaces", "archive", "family").stdout == "family is archived\n"
    assert memoranda("spaces", "archive", "family").exit_code == 1
    refused = memoranda("keep", "Lunch is at one.", *kept[2:])
    assert refused.exit_code == 2
    assert refused.stderr == "error: The space 'family' is archived: `memoranda spaces create` opens it again.\n"

    [space] = answer("spaces", "list")["spaces"]
    assert (space["name"], space["archived_at"] is None) == ("family", False)
    assert memoranda("spaces", "list").stdout.splitlines()[2].split()[-1] == "family"
    assert answer("core", "--space", "family", "--preset", "statements", code=1)["memories"] == []
    assert answer("recall", "when is dinner?", "--space", "family", "--preset", "statements")["hits"]
