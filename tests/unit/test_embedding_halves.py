"""Texts of which some are refused, asked for in halves: all calls together wait no longer than one may."""

import numpy as np
import pytest

from memoranda.errors import EmbedderRefused, EmbedderUnavailable
from memoranda.pipelines.embedding import TextsRefused, in_halves

TEXTS = ["one", "two", "bad", "four"]
VECTOR = np.ones(2, np.float32)


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves on when the test says so."""
    now = [100.0]
    monkeypatch.setattr("memoranda.pipelines.embedding.time.monotonic", lambda: now[0])
    return now


def driven(steps, clock, seconds):
    """Return what the steps return and how long each of their calls may take; one takes `seconds` where it may."""
    limits = []
    try:
        effect = next(steps)
        while True:
            limits.append(effect.limit)
            clock[0] += seconds if effect.limit is None else min(seconds, effect.limit)
            if effect.limit is not None and effect.limit < seconds:
                effect = steps.throw(EmbedderUnavailable("gave no answer in time"))
            elif "bad" in effect.texts:
                effect = steps.throw(EmbedderRefused("no", status=400))
            else:
                effect = steps.send([VECTOR] * len(effect.texts))
    except StopIteration as end:
        return end.value, limits


def test_halves_share_one_deadline(clock):
    (vectors, error), limits = driven(in_halves(TEXTS, "text", 3.0), clock, 0.5)

    assert limits == [3.0, 2.5, 2.0, 1.5, 1.0]
    assert [vector is not None for vector in vectors] == [True, True, False, True]
    assert isinstance(error, TextsRefused)


def test_what_came_before_the_deadline_is_kept(clock):
    (vectors, error), limits = driven(in_halves(TEXTS, "text", 1.25), clock, 0.5)

    assert limits == [1.25, 0.75, 0.25]
    assert [vector is not None for vector in vectors] == [True, True, False, False]
    assert "2 of 4 texts are left" in str(error)


def test_where_nothing_came_before_the_deadline_the_embedder_is_down(clock):
    with pytest.raises(EmbedderUnavailable, match="in time"):
        driven(in_halves(TEXTS, "text", 0.75), clock, 0.5)
    assert clock[0] == 100.75


def test_who_waits_for_nothing_has_no_deadline(clock):
    (vectors, _), limits = driven(in_halves(TEXTS, "text"), clock, 500)

    assert limits == [None] * 5
    assert sum(vector is None for vector in vectors) == 1
