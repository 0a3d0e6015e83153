"""Conversations of other programs are stored as they were had, once, and each of them whole."""

import io
import json
from datetime import UTC, datetime

import pytest

from memoranda.errors import InvalidInput
from memoranda.testing.exports import Conversation, exported
from memoranda.transcripts import TranscriptReader


def take_in(me, data, **options):
    """Store the conversations of a file, and return the reader."""
    reader = TranscriptReader(io.BytesIO(data), **options)
    for transcript in reader:
        me.conversation(transcript.name).append(transcript.messages)
    return reader


def story(number):
    """Return a conversation with an edit, a call of a tool, an image, a null and an unknown content type."""
    talk = Conversation(f"Talk {number}", f"talk-{number}")
    asked = talk.say("user", f"Where is gauge {number}?")
    talk.say("assistant", "I do not know.")
    talk.say("assistant", content={"content_type": "code", "text": '{"n": 1}'}, recipient="map.look", parent=asked)
    talk.say("tool", content={"content_type": "execution_output", "text": f"bridge {number}"}, name="map.look")
    talk.node(None)
    talk.say("assistant", content={"content_type": "hologram"})
    image = {"content_type": "image_asset_pointer", "asset_pointer": f"file-service://{number}"}
    talk.say("assistant", content={"content_type": "multimodal_text", "parts": [image, f"Under bridge {number}."]})
    return talk


def test_an_export_is_stored_without_loss_and_once(me):
    data = exported(*map(story, range(30)))
    reader = take_in(me, data)
    assert reader.skipped.counts == {
        "messages of branches that were edited away": 30,
        "messages with content of the type 'hologram'": 30,
        "entries that are no message": 30,
    }
    assert sorted(record.name for record in me.conversations.list()) == sorted(f"talk-{n}" for n in range(30))

    messages = me.conversation("talk-7").messages()
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert [message.position for message in messages] == [1, 2, 3, 4]
    assert messages[1].tool_calls[0].name == "map.look" and messages[1].tool_calls[0].arguments == {"n": 1}
    assert messages[2].tool_call_id == messages[1].tool_calls[0].id
    assert messages[3].content[0] == {"type": "image_asset_pointer", "asset_pointer": "file-service://7"}
    assert messages[3].text == "Under bridge 7."
    assert messages[0].created_at == datetime(2025, 1, 13, 9, 1, tzinfo=UTC)

    take_in(me, data)
    assert me.conversation("talk-7").messages() == messages


def test_thousands_of_messages_are_taken_in_whole(me):
    talk = Conversation("Long", "long")
    for number in range(2_000):
        talk.say("assistant" if number % 2 else "user", f"gauge {number}")
        if number % 500 == 0:
            talk.node(None)
    reader = take_in(me, exported(talk))
    assert reader.skipped.counts == {"entries that are no message": 4}
    messages = me.conversation("long").messages()
    assert [message.text for message in messages] == [f"gauge {number}" for number in range(2_000)]
    assert me.conversation("long").window(100)[-1] == messages[-1]


def test_what_was_said_since_is_added(me):
    talk = story(1)
    take_in(me, exported(talk))
    talk.say("user", "Thank you.")
    take_in(me, exported(talk))
    assert [message.text for message in me.conversation("talk-1").messages()][-2:] == ["Under bridge 1.", "Thank you."]
    assert me.conversation("talk-1").record().messages == 5


def test_a_log_without_ids_is_stored_once_and_goes_on(me):
    log = "Ana: Hello\nBot: Hello\nAna: ok\nBot: ok\n"
    for data in (log, log, log + "Ana: Bye\n"):
        take_in(me, data.encode(), name="kitchen")
    messages = me.conversation("kitchen").messages()
    assert [(m.role, m.name, m.content) for m in messages] == [
        ("user", "Ana", "Hello"),
        ("assistant", "Bot", "Hello"),
        ("user", "Ana", "ok"),
        ("assistant", "Bot", "ok"),
        ("user", "Ana", "Bye"),
    ]


def test_a_conversation_that_cannot_be_stored_leaves_nothing_behind(me):
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    messages = [{"role": "user", "content": "one"}, {"role": "user", "content": "two", "deep": deep}]
    reader = TranscriptReader(io.BytesIO(json.dumps({"id": "t", "messages": messages}).encode()))
    [transcript] = reader
    with pytest.raises(InvalidInput):
        me.conversation(transcript.name).append(transcript.messages)
    assert me.conversation("t").messages() == []


def test_an_import_is_seen_by_nobody_else(engine):
    ana, bob = (engine.persona("main", tenant="acme", user=user) for user in ("ana", "bob"))
    take_in(ana, exported(story(1)))
    assert bob.conversations.list() == [] and bob.conversation("talk-1").messages() == []
