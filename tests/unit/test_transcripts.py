"""Conversations from elsewhere: what a file holds is read, what cannot be read is counted, nothing is guessed."""

import gzip
import io
import json
import zipfile
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput, UnreadableDocument
from memoranda.testing.exports import Conversation, exported
from memoranda.transcripts import TranscriptReader, opened


def read(data, **options):
    """Return the conversations of a file by name, and the reader."""
    reader = TranscriptReader(io.BytesIO(data.encode() if isinstance(data, str) else data), **options)
    return {transcript.name: transcript for transcript in reader}, reader


def only(data, **options):
    """Return the messages of the one conversation, and what was skipped."""
    found, reader = read(data, **options)
    [transcript] = found.values()
    return transcript.messages, dict(reader.skipped.counts)


def said(messages):
    return [(message.role, message.content) for message in messages]


# -- ChatGPT


def test_the_path_to_the_current_node_is_the_conversation():
    talk = Conversation("Tea")
    first = talk.say("user", "Is there tea?")
    talk.say("assistant", "No.")
    again = talk.say("assistant", "Yes, green tea.", parent=first)  # regenerated
    talk.say("user", "And milk?", parent=again)
    talk.say("user", "And sugar?", parent=again)  # edited
    found, reader = read(exported(talk))

    transcript = found[talk.id]
    assert transcript.title == "Tea"
    assert said(transcript.messages) == [
        ("user", "Is there tea?"),
        ("assistant", "Yes, green tea."),
        ("user", "And sugar?"),
    ]
    assert reader.skipped.counts == {"messages of branches that were edited away": 2}
    assert reader.skipped.places == [(talk.id, "messages of branches that were edited away", 2)]
    times = [message.created_at for message in transcript.messages]
    assert times == sorted(times) and times[0] == datetime(2025, 1, 13, 9, 1, tzinfo=UTC)
    assert len({message.id for message in transcript.messages}) == 3


def test_calls_of_tools_stay_with_their_results():
    talk = Conversation()
    talk.say("user", "What is the weather in Ghent?")
    talk.say("assistant", content={"content_type": "code", "text": '{"city": "Ghent"}'}, recipient="weather.get")
    talk.say("tool", content={"content_type": "execution_output", "text": "12 degrees"}, name="weather.get")
    talk.say("assistant", content={"content_type": "code", "text": "print(6 * 7)"}, recipient="python")
    talk.say("tool", content={"content_type": "execution_output", "text": "42"}, name="python")
    talk.say("assistant", "12 degrees.", metadata={"model_slug": "gpt-4o"})
    messages, skipped = only(exported(talk))

    assert skipped == {}
    calls = [message.tool_calls[0] for message in messages if message.tool_calls]
    assert [(call.name, call.arguments) for call in calls] == [
        ("weather.get", {"city": "Ghent"}),
        ("python", "print(6 * 7)"),
    ]
    results = [message for message in messages if message.role == "tool"]
    assert [(r.tool_call_id, r.content, r.name) for r in results] == [
        (calls[0].id, "12 degrees", "weather.get"),
        (calls[1].id, "42", "python"),
    ]
    assert messages[-1].extra == {"model": "gpt-4o"}


def test_images_and_sounds_are_parts():
    talk = Conversation()
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-7", "width": 640}
    talk.say("user", content={"content_type": "multimodal_text", "parts": [image, "What is this?"]})
    heard = {"content_type": "audio_transcription", "text": "A heron.", "direction": "out"}
    talk.say("assistant", content={"content_type": "multimodal_text", "parts": [heard]})
    messages, skipped = only(exported(talk))

    assert messages[0].content == (
        {"type": "image_asset_pointer", "asset_pointer": "file-service://file-7", "width": 640},
        {"type": "text", "text": "What is this?"},
    )
    assert messages[0].text == "What is this?"
    assert messages[1].content == "A heron."
    assert skipped == {}


def test_what_is_no_message_is_counted_by_reason():
    talk = Conversation()
    talk.say("system", "")
    talk.say("system", "You are hidden.", metadata={"is_visually_hidden_from_conversation": True})
    talk.say("user", content={"content_type": "user_editable_context", "user_profile": "I am Ana."})
    talk.node(None)
    talk.node("nonsense")
    talk.say("user", "Hello?")
    talk.say("assistant", content={"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]})
    talk.say("assistant", content={"content_type": "hologram", "beam": 1})
    talk.say("critic", "Meh.")
    talk.say("assistant", None, content=None)
    talk.say("assistant", "Hello.")
    messages, skipped = only(exported(talk))

    assert said(messages) == [("user", "Hello?"), ("assistant", "Hello.")]
    assert skipped == {
        "hidden messages": 2,
        "entries that are no message": 3,
        "empty messages": 1,
        "steps of a model's thinking": 1,
        "messages with content of the type 'hologram'": 1,
        "messages of the role 'critic'": 1,
    }


def test_numbers_and_types_that_make_no_sense_end_no_file():
    odd, plain = Conversation("odd", "odd"), Conversation("plain", "plain")
    first = odd.say("user", "Hello?")
    odd.nodes[first]["message"]["create_time"] = 10**400
    odd.say("assistant", content={"content_type": ["text"], "parts": ["Hm."]})
    plain.say("user", "And I?")
    found, reader = read(exported(odd.export(current_node="gone"), plain))
    assert said(found["odd"].messages) == [("user", "Hello?")] and said(found["plain"].messages) == [("user", "And I?")]
    assert len(reader.skipped.counts) == 1


def test_damaged_trees_are_read_as_far_as_they_go():
    lost, turning, empty = Conversation("lost", "lost"), Conversation("turning", "turning"), Conversation("no", "no")
    lost.say("user", "Where am I?")
    turning.say("user", "Round")
    turning.nodes[turning.root]["parent"] = turning.current
    found, reader = read(
        exported(lost.export(current_node="gone"), turning, empty, {"mapping": 7}, {}, {"mapping": {}, "id": "x"})
    )

    assert said(found["lost"].messages) == [("user", "Where am I?")]
    assert said(found["turning"].messages) == [("user", "Round")]
    assert reader.skipped.counts == {"conversations without a message": 2, "values that are no conversation": 2}


@st.composite
def trees(draw):
    """Draw a tree with branches and odd nodes, and what stands on the path to its current node."""
    talk = Conversation()
    texts: dict[str, str | None] = {}
    for number in range(draw(st.integers(1, 12))):
        parent = draw(st.sampled_from([talk.root, *texts])) if draw(st.booleans()) else ""
        kind = draw(st.sampled_from(["text", "null", "empty", "unknown"]))
        if kind == "null":
            key = talk.node(None, parent=parent)
        elif kind == "unknown":
            key = talk.say("user", content={"content_type": f"new-{number}"}, parent=parent)
        else:
            key = talk.say(
                draw(st.sampled_from(["user", "assistant"])), "" if kind == "empty" else f"{number}", parent=parent
            )
        texts[key] = f"{number}" if kind == "text" else None
    key, path = talk.current, []
    while key:
        path.append(texts.get(key))
        key = talk.nodes[key]["parent"]
    return talk, [text for text in reversed(path) if text]


@given(trees())
def test_exactly_the_texts_on_the_path_are_read(drawn):
    talk, expected = drawn
    found, _ = read(exported(talk))
    got = [message.content for transcript in found.values() for message in transcript.messages]
    assert got == expected


def test_a_file_that_was_cut_off_gives_the_conversations_before_the_cut():
    talks = [Conversation(f"talk {number}", f"talk-{number}") for number in range(3)]
    for talk in talks:
        talk.say("user", "Hello")
    whole = exported(*talks)
    for cut in range(len(whole) // 3 + 200, len(whole) - 1, 97):
        found, reader = read(whole[:cut])
        assert [said(transcript.messages) for transcript in found.values()] == [[("user", "Hello")]] * len(found)
        assert 1 <= len(found) < 3 or whole[cut:].strip() == b"]"
        assert "the rest of the file, which cannot be read" in reader.skipped.counts


# -- messages as OpenAI has them

MESSAGES = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "u"}}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "it"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a heron"},
    {"role": "assistant", "content": "A heron.", "created_at": "2025-03-12T09:30:00"},
]


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(MESSAGES),
        json.dumps({"messages": MESSAGES}),
        json.dumps({"messages": MESSAGES}, indent=2),
        json.dumps([{"messages": MESSAGES}], indent=2),
        "\ufeff" + "\n".join(map(json.dumps, MESSAGES)),
        "\n\n" + "\n\n".join(json.dumps(message, indent=1) for message in MESSAGES),
    ],
    ids=["array", "object", "pretty", "list of objects", "JSONL", "values"],
)
def test_messages_are_read_in_every_shape(data):
    messages, skipped = only(data, name="thread-7", zone=ZoneInfo("Europe/Lisbon"))

    assert [message.role for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert messages[1].text == "Hi" and len(messages[1].content) == 2
    assert messages[2].tool_calls[0].arguments == {"at": "it"}
    assert messages[3].tool_call_id == "c1"
    assert messages[4].created_at == datetime(2025, 3, 12, 9, 30, tzinfo=ZoneInfo("Europe/Lisbon"))
    assert skipped == {}


def test_many_conversations_have_names_of_their_own():
    item = {"messages": [{"role": "user", "content": "Hi"}]}
    items = [item, {**item, "id": "t-1"}, {**item, "title": "Tea"}, {**item, "title": "Tea"}, item]
    found, _ = read("\n".join(map(json.dumps, items)), name="file")
    assert list(found) == ["file", "t-1", "Tea", "Tea-4", "file-5"]


def test_lines_that_cannot_be_read_are_named_and_the_others_are_read():
    lines = [
        '{"role": "user", "content": "one"}',
        '{"role": "user", "content": ',
        '{"role": "narrator", "content": "two"}',
        '"text"',
        "{}",
        '{"role": "user", "content": {"a": 1}}',
        '{"role": "assistant", "content": ""}',
        '{"role": "assistant", "content": "three", "created_at": "yesterday"}',
    ]
    messages, skipped = only("\n".join(lines))
    assert said(messages) == [("user", "one"), ("assistant", "three")]
    assert skipped == {
        "values that are no conversation": 2,
        "lines that are no JSON": 1,
        "messages whose role cannot be used": 1,
        "messages whose content cannot be used": 1,
        "empty messages": 1,
    }
    _, reader = read("\n".join(lines))
    assert ("line 2", "lines that are no JSON", 1) in reader.skipped.places


@given(st.lists(st.text(max_size=60), min_size=1, max_size=4), st.sampled_from([None, 1]))
def test_long_and_strange_texts_come_through_the_stream(texts, indent):
    data = json.dumps([{"role": "user", "content": f"x{text}"} for text in texts], indent=indent)
    messages, _ = only(data)
    assert [message.content for message in messages] == [f"x{text}" for text in texts]


def test_a_value_longer_than_a_block_is_read_whole():
    texts = ["a" * 700_000, "b", "é" * 300_000]
    messages, _ = only(json.dumps([{"role": "user", "content": text} for text in texts], ensure_ascii=False))
    assert [message.content for message in messages] == texts


# -- logs


def test_a_log_is_read_with_the_first_speaker_as_the_user():
    messages, skipped = only("Ana: Is the oven on?\nBot: It is.\n\nNote: it is hot.\nAna: Thanks: see you.\nBot: Bye.")
    assert [(m.role, m.name, m.content) for m in messages] == [
        ("user", "Ana", "Is the oven on?"),
        ("assistant", "Bot", "It is.\n\nNote: it is hot."),
        ("user", "Ana", "Thanks: see you."),
        ("assistant", "Bot", "Bye."),
    ]
    assert skipped == {}


def test_the_user_can_be_named():
    log = "Bot: Welcome.\nAna Maria: Hi.\nhttp://example.com: no name"
    messages, _ = only(log, user="ana maria")
    assert [m.role for m in messages] == ["assistant", "user"]
    with pytest.raises(InvalidInput, match="Bot, Ana Maria"):
        read(log, user="Bo")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2025-03-12 09:30 Ana: Hi", datetime(2025, 3, 12, 9, 30)),
        ("[2025-03-12T09:30:15] Ana: Hi", datetime(2025, 3, 12, 9, 30, 15)),
        ("2025-03-12T09:30:15Z Ana: Hi", datetime(2025, 3, 12, 9, 30, 15, tzinfo=UTC)),
        ("13/03/2025, 09:30 - Ana: Hi", datetime(2025, 3, 13, 9, 30)),
        ("[13.03.25, 21:05:09] Ana: Hi", datetime(2025, 3, 13, 21, 5, 9)),
        ("3/13/25, 9:30 PM - Ana: Hi", datetime(2025, 3, 13, 21, 30)),
        ("2025-03-12 9:30 am Ana: Hi", datetime(2025, 3, 12, 9, 30)),
        ("2025-03-12 09:30 +00:00 Ana: Hi", datetime(2025, 3, 12, 9, 30, tzinfo=UTC)),
        ("[09:30] Ana: Hi", None),
        ("Ana: Hi", None),
    ],
)
def test_times_are_read_where_they_are_plain(line, expected):
    zone = ZoneInfo("Europe/Lisbon")
    messages, _ = only(f"{line}\nBot: Hello", zone=zone)
    expected = expected and (expected if expected.tzinfo else expected.replace(tzinfo=zone))
    assert (messages[0].content, messages[0].created_at) == ("Hi", expected)


@pytest.mark.parametrize("name", ["Amy", "Pma", "Zoe", "Utc Uwe", "Tom", "+49 170 123"])
def test_no_name_begins_with_the_end_of_a_time(name):
    for stamp in ("10:30 ", "2025-03-12 10:30 ", "2025-03-12 ", ""):
        messages, _ = only(f"{stamp}{name}: Hi\nBot: Hello")
        assert messages[0].name == name


@pytest.mark.parametrize("line", [" " * 100_000 + "x", "[" + "\t" * 100_000, "2025-03-12" + " ," * 50_000 + "x"])
def test_a_long_line_of_nothing_holds_nobody_up(line):
    messages, _ = only(f"Ana: Hi\n{line}\nBot: Hello")
    assert [message.name for message in messages] == ["Ana", "Bot"]


def test_a_day_that_can_be_read_in_two_ways_is_not_guessed():
    messages, skipped = only("03/04/2025, 09:30 - Ana: Hi\n03/04/2025, 09:31 - Bot: Hello")
    assert [message.created_at for message in messages] == [None, None]
    assert list(skipped.values()) == [2]


@pytest.mark.parametrize(
    "data", ["", "   \n", "once upon a time\nthere was a heron", b"\x00\x01\x02", b"Ana: \xff\xfe"]
)
def test_what_is_no_conversation_is_refused(data):
    with pytest.raises(UnreadableDocument):
        read(data)


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text):
    with suppress(UnreadableDocument):
        read(text)


KEYS = st.sampled_from(["mapping", "messages", "role", "content", "message", "author", "parts", "parent", "n"])


@settings(max_examples=40)
@given(st.recursive(st.text(max_size=3), lambda x: st.dictionaries(KEYS, x | st.lists(x, max_size=2)), max_leaves=12))
def test_no_json_breaks_the_reader(value):
    with suppress(UnreadableDocument):
        read(json.dumps([value]))


# -- files


def test_packed_files_are_opened(tmp_path):
    talk = Conversation()
    talk.say("user", "Hello")
    data = exported(talk)
    plain, packed, archive = tmp_path / "a.json", tmp_path / "a.json.gz", tmp_path / "export.zip"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("user.json", "{}")
        file.writestr("conversations.json", data)
    for path in (plain, packed, archive):
        with opened(path) as (stream, size):
            assert size == len(data)
            assert [len(transcript.messages) for transcript in TranscriptReader(stream)] == [1]

    packed.write_bytes(gzip.compress(data)[:-20])
    with opened(packed) as (stream, _), pytest.raises(UnreadableDocument, match="damaged"):
        list(TranscriptReader(stream))
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("user.json", "{}")
    with pytest.raises(UnreadableDocument, match=r"conversations\.json"), opened(archive):
        pass
    with pytest.raises(UnreadableDocument), opened(tmp_path / "none"):
        pass
