"""The errors: one root, a default message that says what to do, data in attributes."""

import inspect
import pickle

import pytest

from memoranda import MemorandaError, errors
from memoranda.errors import EmbedderMismatch, InvalidInput, MemoryNotActive, MemoryNotFound, StoreError

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]
PLAIN = [cls for cls in CLASSES if cls not in (EmbedderMismatch, MemoryNotActive)]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_has_the_one_root(cls):
    assert issubclass(cls, MemorandaError)
    assert errors.MemorandaError is MemorandaError
    assert cls.__doc__


@pytest.mark.parametrize("cls", PLAIN, ids=lambda cls: cls.__name__)
def test_the_docstring_is_the_default_message(cls):
    message = str(cls())
    assert message == " ".join(cls.__doc__.split())
    assert message.endswith(".") and "\n" not in message
    assert str(cls("Another message.")) == "Another message."


def test_refused_input_names_field_and_row():
    error = InvalidInput("importance is too high", field="importance", index=3)
    assert (str(error), error.field, error.index) == ("row 3: importance is too high", "importance", 3)
    plain = InvalidInput("no")
    assert (str(plain), plain.field, plain.index) == ("no", None, None)


def test_a_memory_that_is_not_active_says_its_status():
    error = MemoryNotActive("superseded")
    assert error.status == "superseded" and "superseded" in str(error)


def test_a_mismatch_says_what_the_store_was_made_with():
    error = EmbedderMismatch("wordllama@256", "hash/words@512")
    assert (error.stored, error.given) == ("wordllama@256", "hash/words@512")
    assert "vectors made by 'wordllama@256'" in str(error)
    assert "words only" in str(EmbedderMismatch("none", "hash/words@512"))
    assert "memoranda reembed --embedder NAME" in str(error)


def test_failures_of_the_store_can_be_told_from_refusals():
    store = {cls for cls in CLASSES if issubclass(cls, StoreError)}
    assert {cls.__name__ for cls in store} >= {"StoreUnavailable", "StoreBusy", "SchemaMissing", "PermissionMissing"}
    assert not {InvalidInput, MemoryNotFound, MemoryNotActive} & store


def test_errors_cross_a_process_border_with_their_data():
    originals = [
        InvalidInput("too high", field="importance", index=3),
        MemoryNotActive("expired"),
        EmbedderMismatch("a@1", "b@2"),
        MemoryNotFound(),
        StoreError("It failed."),
    ]
    for error in originals:
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)
