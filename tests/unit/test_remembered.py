"""What a tokenizer remembers of the texts it was asked about."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda.text.remembered import Remembered


class Shouting:
    """Counts how often it has to."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> str:
        self.asked.append(text)
        return text.upper()


def test_a_text_is_asked_about_once() -> None:
    shouting = Shouting()
    remembered = Remembered(shouting, size=10, longest=5)
    assert [remembered["boat"] for _ in range(3)] == ["BOAT"] * 3
    assert shouting.asked == ["boat"]


def test_what_is_long_is_not_kept() -> None:
    shouting = Shouting()
    remembered = Remembered(shouting, size=10, longest=5)
    assert remembered["boats"] == "BOATS" and [remembered["a boat"] for _ in range(2)] == ["A BOAT"] * 2
    assert list(remembered) == ["boats"] and shouting.asked == ["boats", "a boat", "a boat"]


def test_what_is_asked_for_again_outlasts_what_is_not() -> None:
    shouting = Shouting()
    remembered = Remembered(shouting, size=10, longest=5)
    for number in range(100):
        assert (remembered["often"], remembered[str(number)]) == ("OFTEN", str(number))
    assert shouting.asked.count("often") == 1
    assert remembered["0"] == "0" and shouting.asked.count("0") == 2


@given(st.lists(st.text(max_size=3)), st.integers(1, 5))
def test_it_is_never_wrong_and_never_large(texts: list[str], size: int) -> None:
    remembered = Remembered(str.upper, size=size, longest=2)
    assert [remembered[text] for text in texts] == [text.upper() for text in texts]
    assert len(remembered) <= size and len(remembered._older) <= size
