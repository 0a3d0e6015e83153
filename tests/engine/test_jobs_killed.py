"""A worker that dies at any step of a job loses no row, and leaves none with two vectors."""

import os
import traceback

import pytest
from sqlalchemy import create_engine, text

from memoranda import MemoryEngine
from memoranda.effects import Embed, Runner, Transact
from memoranda.embedders.hash_words import HashWords

DIED, FAILED = 7, 1
STEPS = {
    "in the claim": ("claim", False),
    "after the claim": ("claim", True),
    "after the read": ("missing", True),
    "after the embedding": ("embed", True),
    "in the fill": ("_fill", False),
    "after the fill": ("_fill", True),
}
"""Where a worker dies: at which effect of a job, and whether the transaction was committed before."""


class Mortal(Runner):
    """Ends its process at one effect."""

    death = ("", False)

    def _perform(self, effect):
        name, committed = self.death
        match effect:
            case Transact(fn, args, write) if fn.__name__ == name and not committed:
                effect = Transact(_deadly, (fn, *args), write)
        result = super()._perform(effect)
        if (name == "embed" and isinstance(effect, Embed)) or getattr(effect, "fn", _deadly).__name__ == name:
            os._exit(DIED)
        return result


def _deadly(conn, tables, fn, *args):
    fn(conn, tables, *args)
    os._exit(DIED)


class Noting:
    """Hashed words, in the background; every text that is sent stands in a file afterwards, whatever happens."""

    name, dimensions, distinguishes_purpose, deferred = HashWords.name, HashWords.dimensions, False, True

    def __init__(self, file):
        self.file = file

    def embed(self, texts, purpose):
        with self.file.open("a") as file:
            file.writelines(f"{item}\n" for item in texts)
        return HashWords().embed(texts)

    async def aembed(self, texts, purpose):
        return self.embed(texts, purpose)


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request, tmp_path):
    """A store that outlives a process."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path}/memory.db"


def opened(url, embedder):
    return MemoryEngine(url, embedder=embedder, background="external")


def leases_end(engine):
    engine._database.run(lambda conn, tables: conn.execute(tables.jobs.update().values(lease_until=None)))


def work_and_die(url, embedder, death):
    """Do jobs in a child until it dies; nothing of this process is open then, so nothing of it is shared."""
    child = os.fork()
    if child == 0:
        try:
            engine = MemoryEngine(url, embedder=embedder, background="external")
            engine._runner = mortal = Mortal(engine._database, engine._space)
            mortal.death = death
            engine.drain(timeout=0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(FAILED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.behaviour("W07")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_worker_killed_at_each_step_loses_nothing_and_doubles_nothing(url, tmp_path):
    embedder, texts = Noting(tmp_path / "sent"), [f"Parcel {number} went astray." for number in range(len(STEPS))]
    with opened(url, embedder) as engine:
        engine.setup()
        for item in texts:
            engine.persona("main").memories.write(item)

    codes = {step: work_and_die(url, embedder, death) for step, death in STEPS.items()}
    assert codes == dict.fromkeys(STEPS, DIED)

    with opened(url, embedder) as engine:
        me = engine.persona("main")
        assert me.stats().vectors == 1  # of the one that died last
        leases_end(engine)
        assert engine.drain() == 0
        sent = (tmp_path / "sent").read_text().splitlines()
        assert (engine.jobs(), me.stats().vectors) == ([], len(texts))
        for item in texts:
            hit = me.memories.nearest(item)
            assert (hit.memory.content, hit.confidence) == (item, pytest.approx(1))
    # Two died with vectors in their hands: these texts are embedded again, what was stored is not.
    assert set(sent) == set(texts) and len(sent) == len(texts) + 2

    host = create_engine(url)
    table = "memoranda.vectors" if host.dialect.name == "postgresql" else "memoranda_vectors"
    with host.begin() as connection:
        assert connection.scalar(text(f"select count(*) from {table}")) == len(texts)
    host.dispose()
