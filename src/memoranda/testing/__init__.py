"""Shipped fakes for tests of and with Memoranda.

Nothing here needs pytest but the plugin, `memoranda.testing.plugin`. Switch it on with `-p memoranda.testing.plugin` or
with `pytest_plugins = ["memoranda.testing.plugin"]`.
"""

from memoranda.testing.clocks import FrozenClock
from memoranda.testing.embedders import (
    BrokenEmbedder,
    CountingEmbedder,
    DeferredEmbedder,
    FixedEmbedder,
    HashedEmbedder,
)
from memoranda.testing.models import ModelCall, ScriptedModel
from memoranda.testing.network import NetworkClosed, NetworkGuard
from memoranda.testing.rerankers import BrokenReranker, RerankCall, ScriptedReranker
from memoranda.testing.twin import Twin, is_handle, unwrap

__all__ = [
    "BrokenEmbedder",
    "BrokenReranker",
    "CountingEmbedder",
    "DeferredEmbedder",
    "FixedEmbedder",
    "FrozenClock",
    "HashedEmbedder",
    "ModelCall",
    "NetworkClosed",
    "NetworkGuard",
    "RerankCall",
    "ScriptedModel",
    "ScriptedReranker",
    "Twin",
    "is_handle",
    "unwrap",
]
