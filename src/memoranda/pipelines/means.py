"""What a process can do in the background: by which embedder and model, and under which policies."""

from typing import TYPE_CHECKING

from memoranda import presets
from memoranda.db.queries import jobs
from memoranda.db.queries.jobs import Means

if TYPE_CHECKING:
    from memoranda.pipelines.context import Context


def means_of(context: "Context") -> Means:
    """Return the means of an engine.

    Without a key, or without the policies a job was left under, it would give up what another process can do.
    """
    embeds, asks = context.space.configured, context.model.configured
    there = {jobs.EMBED: embeds, jobs.SCRUB: True, jobs.FLUSH: asks, jobs.REVIEW: asks}
    known = dict.fromkeys((*presets.PRESETS, presets.name_of(context.policies)))
    return Means(kinds=[kind for kind in jobs.KINDS if there[kind]], policies=list(known))
