"""Chat stores: ordered, atomic, and with archived messages kept."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from llama_index.memory.memoranda import MemorandaChatStore, MemorandaSyncChatStore, MemoryBlock

ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED


def said(*texts):
    return [ChatMessage(role="assistant" if n % 2 else "user", content=text) for n, text in enumerate(texts)]


def contents(messages):
    return [message.content for message in messages]


@pytest.fixture
def loop():
    """The loop of the main thread: LlamaIndex's sync verbs would make one, and not close it."""
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield
        asyncio.set_event_loop(None)


async def test_messages_are_active_or_archived_and_kept_in_order(ana):
    store = MemorandaChatStore(persona=ana)
    await store.add_messages("s", [])
    assert await store.get_keys() == [] and await store.get_messages("s") == []
    await store.add_messages("s", said("a", "b", "c", "d"))
    assert contents(await store.archive_oldest_messages("s", 2)) == ["a", "b"]
    assert contents(await store.get_messages("s")) == ["c", "d"]
    assert contents(await store.get_messages("s", ARCHIVED)) == ["a", "b"]
    assert contents(await store.get_messages("s", None, limit=2, offset=1)) == ["b", "c"]
    await store.add_message("s", said("e")[0], ARCHIVED)
    assert contents(await store.get_messages("s")) == ["c", "d"] and await store.count_messages("s", None) == 5
    await store.set_messages("s", said("c", "x"))
    assert contents(await store.get_messages("s", None)) == ["a", "b", "c", "e", "x"], "archived messages stay"
    assert contents(await store.delete_oldest_messages("s", 1)) == ["c"]
    place = ana.conversation("s").messages()[0].position
    assert (await store.delete_message("s", place)).content == "a" and await store.delete_message("s", place) is None
    await store.delete_messages("s", ACTIVE)
    assert contents(await store.get_messages("s", None)) == ["b", "e"]
    await store.set_messages("s", said("f"), ARCHIVED)
    assert await store.get_messages("s") == [] and await store.get_keys() == ["s"]
    await store.delete_messages("s")
    assert await store.count_messages("s", None) == 0 and await store.get_keys() == []


@pytest.mark.skipif(
    "chat_store" not in Memory.from_defaults.__code__.co_varnames, reason="not applicable: Memory takes no store here"
)
def test_the_stock_memory_works_on_it_from_loops_and_threads(ana, loop):
    store = MemorandaChatStore(persona=ana)
    # What leaves the history is in the conversation already: the block adds nothing to it.
    blocks = [MemoryBlock(persona=ana)]
    memory = Memory.from_defaults(session_id="s", token_limit=60, chat_store=store, memory_blocks=blocks)
    memory.put_messages(said("a " * 20, "b", "c " * 20, "d"))
    assert contents(memory.get())[0] == "c " * 20
    assert len(memory.get_all()) == 4 and ana.conversation("s").record().pending == 2
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: asyncio.run(store.add_message("t", said(f"{n}")[0])), range(8)))
    assert sorted(contents(asyncio.run(store.get_messages("t")))) == [str(n) for n in range(8)]


def test_what_is_set_with_other_fields_is_another_message(ana, call):
    message, other = (ChatMessage(role="user", content="a", additional_kwargs={"n": n}) for n in (1, 2))
    store, place = MemorandaSyncChatStore(persona=ana), ana.conversation("s")
    call(store, "set_messages", "s", [message])
    there = place.messages()
    call(store, "set_messages", "s", [message])
    assert place.messages() == there
    call(store, "set_messages", "s", [other])
    assert call(store, "get_messages", "s") == [other]
    asyncio.run(MemorandaChatStore(persona=ana).set_messages("s", [message]))
    assert call(store, "get_messages", "s") == [message]


def test_the_older_buffers_work_on_the_sync_store(ana, call):
    store = MemorandaSyncChatStore(persona=ana)
    buffer = ChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key="s", chat_history=said("a", "b"))
    call(buffer, "put", said("c")[0])
    assert contents(call(buffer, "get_all")) == ["a", "b", "c"]
    assert call(store, "get_keys") == ["s"]
    assert call(store, "delete_last_message", "s").content == "c"
    assert call(store, "delete_message", "s", 0).content == "a" and call(store, "delete_message", "s", 7) is None
    call(store, "set_messages", "s", said("x", "y"))
    assert contents(call(store, "delete_messages", "s")) == ["x", "y"] and call(store, "delete_messages", "s") is None
    assert call(store, "get_keys") == []
