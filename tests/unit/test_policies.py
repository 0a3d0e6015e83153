"""Policies and presets: frozen data, checked where a value cannot work."""

import dataclasses
import inspect

import pytest

from memoranda import policies as module
from memoranda.errors import ConfigurationError
from memoranda.policies import Policies, RankingPolicy, RerankPolicy
from memoranda.presets import PRESETS, resolve

POLICIES = [cls for _, cls in inspect.getmembers(module, dataclasses.is_dataclass)]


@pytest.mark.parametrize("cls", POLICIES, ids=lambda cls: cls.__name__)
def test_a_policy_is_frozen_and_takes_names_only(cls):
    policy = cls()
    first = dataclasses.fields(cls)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(policy, first, None)
    with pytest.raises(TypeError):
        cls("positional")
    assert policy == cls() and hash(policy) == hash(cls())
    assert cls is Policies or cls.__name__.endswith("Policy")


def test_the_standard_preset_is_the_default():
    assert resolve("standard") == Policies()
    assert (Policies().limit, Policies().ranking.name, Policies().dedupe.name) == (8, "standard", "key")
    assert Policies().redaction.enabled and Policies().floor.enabled


def test_what_the_presets_say():
    assert set(PRESETS) == {"standard", "journal", "ledger", "statements"}
    journal, ledger, statements = resolve("journal"), resolve("ledger"), resolve("statements")
    assert (journal.ranking.name, journal.dedupe.name, journal.write.type, journal.limit) == (
        "weighted",
        "none",
        "episodic",
        5,
    )
    assert (ledger.ranking.name, ledger.visibility.author, ledger.write.track_access, ledger.limit) == (
        "rrf",
        "required",
        True,
        8,
    )
    assert (statements.ranking.name, statements.visibility.space, statements.visibility.about) == (
        "overlap",
        "exact",
        "required",
    )
    assert all(preset.redaction.enabled for preset in PRESETS.values())


def test_policies_pass_through_and_an_unknown_name_is_refused():
    own = Policies(limit=3)
    assert resolve(own) is own
    for wrong in ("diary", "", "Standard"):
        with pytest.raises(ConfigurationError, match="journal, ledger, statements"):
            resolve(wrong)


@pytest.mark.parametrize(
    "wrong", [{"name": "best"}, {"candidates": 0}, {"neighbours": -1}, {"neighbours": 3}], ids=lambda w: next(iter(w))
)
def test_a_ranking_that_cannot_work_is_refused(wrong):
    with pytest.raises(ConfigurationError):
        RankingPolicy(**wrong)
    RankingPolicy(candidates=1, neighbours=2)


@pytest.mark.parametrize(
    "wrong", [{"times": 0}, {"least": 0}, {"most": 19}, {"characters": 99}], ids=lambda w: next(iter(w))
)
def test_a_reranking_that_cannot_work_is_refused(wrong):
    with pytest.raises(ConfigurationError):
        RerankPolicy(**wrong)


def test_a_reranker_chooses_from_four_times_as_many_within_bounds():
    assert [RerankPolicy().texts(hits) for hits in (1, 5, 8, 50, 51, 1000)] == [20, 20, 32, 200, 200, 1000]
