"""Many who speak at once: every message once, each at a place of its own."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from memoranda.messages import Message


@pytest.fixture
def doors(make_engine, backend):
    """Two ways in, as two processes have; one where memory is its own."""
    first = make_engine()
    first.persona("main").stats()
    second = first if backend.name == "sqlite-memory" else make_engine()
    return [engine.persona("main").conversation("thread-1") for engine in (first, second)]


def test_sixteen_who_append_at_once_lose_nothing(doors, mode):
    def speak(number):
        chat = doors[number % 2].handle
        return [chat.append([f"{number}: {n}", f"{number}: {n} and"]) for n in range(4)]

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(speak, range(16)))

    stored = doors[0].messages()
    assert [message.position for message in stored] == list(range(1, 129))
    assert len({message.text for message in stored}) == 128
    for batches in answers:
        for one, two in batches:
            assert two.position == one.position + 1, "a batch stays together"
            assert [stored[one.position - 1], stored[two.position - 1]] == [one, two]
    assert doors[1].record().messages == 128


def test_who_sends_the_same_at_once_finds_it_there(doors, at_once):
    said = [Message(role="user", content=f"line {n}", id=f"m{n}") for n in range(5)]
    answers = at_once([(doors[n % 2], "append", said) for n in range(8)])
    assert all(answer == answers[0] for answer in answers), answers

    answers = at_once([(doors[n % 2], "append", ["one", "two", "three"]) for n in range(8)])
    assert all(answer == answers[0] for answer in answers), answers
    assert [message.position for message in doors[0].messages()] == list(range(1, 9))


def test_who_sends_one_history_again_at_once_doubles_nothing(doors):
    said = [{"role": ("user", "assistant")[n % 2], "content": f"line {n}"} for n in range(6)]
    doors[0].append(said)
    edited = [*said[:4], {"role": "user", "content": "line 4, edited"}]

    def resend(number):
        history = [{**one, "id": f"{number}-{place}"} for place, one in enumerate(edited)]
        return doors[number % 2].handle.append(history, new_ids=True)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(resend, range(8)))
    assert all([message.position for message in answer] == [1, 2, 3, 4, 7] for answer in answers), answers
    assert len(doors[0].messages()) == 7


def test_whoever_appends_while_another_clears_is_there_whole_or_not_at_all(doors, at_once):
    for _ in range(4):
        calls = [(doors[n % 2], "append", [f"{n} one", f"{n} two"]) for n in range(4)]
        answers = at_once([*calls, (doors[1], "clear")])
        assert not [answer for answer in answers if isinstance(answer, Exception)], answers
        left = [message.text for message in doors[0].messages()]
        assert len(left) % 2 == 0 and len(left) + answers[-1].messages == 8
        assert all(one[0] == two[0] for one, two in zip(left[::2], left[1::2], strict=True))
        doors[0].clear()


def test_who_appends_while_the_persona_is_erased_fails_never(make_engine):
    engine = make_engine()
    chat = engine.persona("main").conversation("thread-1")
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            speaking = [pool.submit(chat.handle.append, [f"{n} one", f"{n} two"]) for n in range(8)]
            engine.erase(persona="main")
            assert all(len(answer.result()) == 2 for answer in speaking)
            left = chat.messages()
            assert len(left) % 2 == 0 and [message.position for message in left] == list(range(1, len(left) + 1))
