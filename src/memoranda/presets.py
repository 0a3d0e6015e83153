"""Presets: named sets of policies. They are chosen when an engine or a persona is opened; rows do not remember them."""

from hashlib import sha256

from memoranda.errors import ConfigurationError
from memoranda.policies import (
    DedupePolicy,
    FloorPolicy,
    Policies,
    PromptPolicy,
    RankingPolicy,
    ReviewPolicy,
    VisibilityPolicy,
    WritePolicy,
)

STANDARD = Policies()
"""The default: exact duplicates are one row, scores are fused with what stands beside a memory, a floor abstains."""

JOURNAL = Policies(
    ranking=RankingPolicy(name="weighted", candidates=50, neighbours=0, match="all"),
    floor=FloorPolicy(enabled=False),
    dedupe=DedupePolicy(name="none"),
    write=WritePolicy(type="episodic", machine_importance=10, machine_confidence=10),
    review=ReviewPolicy(rewrite_confidence=7),
    limit=5,
)
"""A diary of events: every write is a row, and recent days count most."""

LEDGER = Policies(
    visibility=VisibilityPolicy(author="required"),
    ranking=RankingPolicy(name="rrf", candidates=30, neighbours=0),
    floor=FloorPolicy(least=0.0, dense_max="measured"),
    dedupe=DedupePolicy(name="novelty"),
    write=WritePolicy(audience="by_type", track_access=True),
)
"""Facts with authors and projects: nothing decays, corrections supersede, ranks are fused."""

STATEMENTS = Policies(
    visibility=VisibilityPolicy(space="exact", about="required"),
    dedupe=DedupePolicy(name="same"),
    write=WritePolicy(space="declared", machine_importance=10, machine_confidence=10),
    ranking=RankingPolicy(name="overlap", candidates=32, neighbours=0, recent=500),
    floor=FloorPolicy(least=0.0, each=0.0, injected=0.3),
    prompt=PromptPolicy(turn=True),
)
"""Statements about somebody, learned in a space and seen only there."""

PRESETS = {"standard": STANDARD, "journal": JOURNAL, "ledger": LEDGER, "statements": STATEMENTS}


def resolve(preset: str | Policies) -> Policies:
    """Return the policies of a preset's name; policies are passed through.

    Raises:
        ConfigurationError: no preset has this name.
    """
    if isinstance(preset, Policies):
        return preset
    try:
        return PRESETS[preset]
    except (KeyError, TypeError):
        raise ConfigurationError(f"unknown preset {preset!r}: choose one of {', '.join(PRESETS)}") from None


def name_of(policies: Policies) -> str:
    """Return the name of the preset that policies are, else what tells them apart from others."""
    preset = next((name for name, known in PRESETS.items() if known == policies), None)
    return preset or sha256(repr(policies).encode()).hexdigest()
