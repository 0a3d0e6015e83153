"""Identifiers: their order, their alphabet, and what a person may type for one."""

import threading
import time
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from memoranda.ids import new_id, new_ids, new_short_id, parse


def test_an_id_is_a_uuid_of_version_seven_that_tells_its_time():
    before = time.time_ns() // 1_000_000
    found = new_id()
    after = time.time_ns() // 1_000_000
    assert found.version == 7 and found.variant == "specified in RFC 4122"
    assert before <= found.int >> 80 <= after + 1


def test_ids_ascend_and_never_repeat():
    found = [new_id() for _ in range(20_000)]
    assert found == sorted(found) and len(set(found)) == len(found)
    assert [i.hex for i in found] == sorted(i.hex for i in found)  # the order that SQLite sees


def test_ids_that_are_made_together_share_nothing():
    found = [ids for count in (500, 0, 1, 1_499) for ids in new_ids(count)]
    in_order = [i for first, _, later in found for i in (first, later)]
    assert in_order == sorted(in_order) and len(set(in_order)) == 4_000
    assert len({i.int & (1 << 62) - 1 for i in in_order}) == 4_000  # the random bits
    assert all(parse(short) == short for _, short, _ in found) and len({short for _, short, _ in found}) == 2_000


def test_ids_ascend_in_every_thread_and_never_repeat_between_them():
    made: list[list[UUID]] = [[] for _ in range(8)]

    def make(into):
        into.extend(new_id() for _ in range(2_000))

    threads = [threading.Thread(target=make, args=(into,)) for into in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(into == sorted(into) for into in made)
    assert len({i for into in made for i in into}) == 16_000


def test_ids_ascend_when_the_clock_goes_back(monkeypatch):
    first = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    second, third = new_id(), new_id()
    assert first < second < third


def test_short_ids_have_eight_letters_that_nobody_confuses():
    found = {new_short_id() for _ in range(5_000)}
    assert len(found) == 5_000
    assert {len(s) for s in found} == {8}
    assert set("".join(found)) == set("abcdefghijkmnpqrstuvwxyz23456789")


def test_no_short_id_is_mistaken_for_a_uuid():
    for _ in range(200):
        short = new_short_id()
        assert parse(short) == short


@given(st.uuids())
def test_a_uuid_is_read_in_any_spelling(value):
    for text in (
        value,
        str(value),
        str(value).upper(),
        value.hex,
        f" {value} ",
        f"[{value}]",
        f"{{{value}}}",
        value.urn,
    ):
        assert parse(text) == value


@given(st.text(alphabet="abcdefghijkmnpqrstuvwxyz23456789", min_size=8, max_size=8))
def test_a_short_id_is_read_as_it_is_printed(short):
    for text in (short, short.upper(), f"[{short}]", f"  {short}\n"):
        assert parse(text) == short


@given(st.text() | st.integers() | st.none() | st.binary() | st.lists(st.text()))
def test_anything_else_is_none_and_never_an_error(value):
    found = parse(value)
    assert found is None or isinstance(found, (str, UUID))
    if isinstance(found, str):
        assert len(found) == 8 and set(found) <= set("abcdefghijkmnpqrstuvwxyz23456789")


def test_look_alikes_are_no_short_id():
    for text in ("abcdefg1", "abcdefg0", "abcdefgl", "abcdefgo", "abcdefg", "abcdefghi", "abcd efg", ""):
        assert parse(text) is None
