"""Golden transcripts: what `write`, `get`, `supersede` and `mark` answer to JSON on standard input.

A line that begins with $ gives a command its input; what stands below is what it prints. `<name>` is a short id: the
first answer that says it binds it; `= 2` is an exit code. `<uuid>`, `<moment>`, `<iso>` and `<today>` stand for what
changes from run to run, `...` for the rest of an answer.
"""

import re
import shlex

import pytest

BACKENDS = pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)
PATTERNS = {
    "uuid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "moment": r"\d{4}-\d\d-\d\d \d\d:\d\d UTC",
    "iso": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\+00:00",
    "today": r"\d{4}-\d\d-\d\d",
}

A_LIFE = """
$ {"content": "The March release went out on the 12th.", "type": "episodic", "category": "release", "importance": 9, \
"title": "Release", "project": "Apollo", "event_time": "2025-03-12T10:00:00Z", "metadata": {"build": 4}, \
"source": {"type": "user_message", "channel": "chat", "excerpt": "it went out on the 12th"}} | write -
saved [<old>]
$ {"id": "<old>"} | get -
id          <old>  <uuid>
title       Release
text        The March release went out on the 12th.
status      active
type        episodic
category    release
importance  9 of 10
confidence  8 of 10
day         2025-03-12
event time  2025-03-12 10:00 UTC
project     Apollo
metadata    {"build": 4}
stored      <moment>
source      user_message via chat: it went out on the 12th
$ {"id": "<old>", "content": "It went out on the 14th.", "event_time": "2025-03-14"} | supersede -
saved [<new>], superseded [<old>]
$ {"content": "It went out on the 15th."} | supersede <old> - = 2
error: The memory is superseded, not active, so it cannot be replaced: see what became of it with `get`.
$ {"id": "<old>"} | get -
id           <old>  <uuid>
title        Release
text         The March release went out on the 12th.
status       superseded
type         episodic
category     release
importance   9 of 10
confidence   8 of 10
day          2025-03-12
event time   2025-03-12 10:00 UTC
valid to     2025-03-14 00:00 UTC
project      Apollo
metadata     {"build": 4}
stored       <moment>
source       user_message via chat: it went out on the 12th
replaced by  <new>  It went out on the 14th.
changed by   manual
version      1, until supersede on <moment>
$ {"id": "<new>", "as_of": "2025-03-13"} | get - --json
{
  "memory": {
    "id": "<uuid>",
    "short_id": "<old>",
...
$ {"id": "<new>", "status": "retracted"} | mark -
marked [<new>] retracted
$ {"id": "<new>", "status": "expired"} | mark - = 2
error: The memory is retracted, not active, so it cannot be replaced: see what became of it with `get`.
$ {"id": "<new>"} | get -
id          <new>  <uuid>
text        It went out on the 14th.
status      retracted
type        episodic
category    release
importance  9 of 10
confidence  8 of 10
day         2025-03-14
event time  2025-03-14 00:00 UTC
valid to    <moment>
project     Apollo
stored      <moment>
source      manual
replaces    <old>  Release: The March release went out on the 12th.
version     1, until mark on <moment>
$ {"id": "zzzzzzzz"} | get - = 1
(not found)
$ {"id": "zzzzzzzz", "status": "retracted"} | mark - = 1
error: No memory has this id here: it does not exist, or it is outside the scope that asks.
$ {"id": "<old>", "status": "lost"} | mark - = 2
error: status must be one of superseded, retracted, expired
"""

MANY = """
$ ["The lamp is green.", {"content": "The boat is blue.", "category": "boat"}] | write -
stored 2 memories
$ "The lamp is green." | write -
already there [<lamp>]
$ {"content": "The mast is red."} | write - --category boat
saved [<mast>]
$ {"id": "<lamp>", "status": "superseded", "by": "<mast>"} | mark -
marked [<lamp>] superseded
$ {"content": "The mast is red.", "colour": "red"} | write - = 2
error: line 1: colour: is not a field of a memory. Nothing was stored.
"""

AS_JSON = """
$ {"content": "The lamp is green."} | write - --json
{
  "stored": 1,
  "already_there": 0,
  "degraded": null,
  "memories": [
    {
      "id": "<uuid>",
      "short_id": "<lamp>",
      "created": true
    }
  ]
}
$ {"id": "<lamp>", "status": "expired"} | mark - --json
{
  "memory": {
    "id": "<uuid>",
    "short_id": "<lamp>",
    "content": "The lamp is green.",
    "type": "semantic",
    "status": "expired",
    "category": null,
    "title": null,
    "importance": 5,
    "confidence": 8,
    "core": false,
    "day": "<today>",
    "event_time": null,
    "valid_from": null,
    "valid_to": "<iso>",
    "tenant": "",
    "persona": "main",
    "author": "",
    "audience": "private",
    "project": "",
    "space": "",
    "about": "",
    "session": "",
    "position": null,
    "metadata": {},
    "superseded_by": null,
    "created_at": "<iso>",
    "updated_at": "<iso>"
  }
}
$ {"id": "zzzzzzzz", "content": "It is blue."} | supersede - --json = 1
{"error": {"kind": "MemoryNotFound", "message": "No memory has this id here: it does not exist, or it is outside the \
scope that asks.", "exit_code": 1}}
"""


def steps(transcript):
    """Yield input, command, exit code and answer of each step."""
    for step in re.split(r"^\$ ", transcript.strip(), flags=re.MULTILINE)[1:]:
        line, _, answer = step.partition("\n")
        given, _, command = line.rpartition(" | ")
        command, _, code = command.partition(" = ")
        yield given, shlex.split(command), int(code or 0), answer.rstrip()


def pattern(answer, known):
    """Return the expression that an answer must match; names that are not known yet are its groups."""
    seen = set()

    def meant(found):
        name = found[1]
        if name in PATTERNS or name in known:
            return PATTERNS.get(name) or known[name]
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return rf"(?P<{name}>[a-z0-9]{{8}})"

    expression = re.sub(r"<(\w+)>", meant, re.escape(answer))
    return expression.removesuffix(r"\.\.\.") + ".*" if answer.endswith("\n...") else expression


@pytest.mark.behaviour("W16")
@pytest.mark.parametrize("transcript", [A_LIFE, MANY, AS_JSON], ids=["a-life", "many", "as-json"])
@BACKENDS
def test_json_on_standard_input_is_answered_as_ever(memoranda, transcript):
    known: dict[str, str] = {}
    for given, command, code, answer in steps(transcript):
        for name, identifier in known.items():
            given = given.replace(f"<{name}>", identifier)
            command = [word.replace(f"<{name}>", identifier) for word in command]

        result = memoranda(*command, input=given, COLUMNS="200")

        said = "\n".join(line.rstrip() for line in result.output.rstrip().splitlines())
        match = re.fullmatch(pattern(answer, known), said, flags=re.DOTALL)
        assert match, f"{given} | {' '.join(command)}\n{said}\n-- instead of\n{answer}"
        assert result.exit_code == code
        known |= match.groupdict()
