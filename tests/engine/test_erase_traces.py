"""After an erasure no trace is left: not in the file, its log, its index of words, or the planner's samples."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import NullPool, create_engine, event, make_url, text

from memoranda import MemoryEngine
from memoranda.embedders.hash_words import HashWords
from memoranda.policies import JobPolicy
from memoranda.testing import unwrap
from memoranda.text import Tokenizer

SECRETS = {
    "content": "The quagga keeps its xylophone in Ouagadougou.",
    "again": "The quagga keeps its bassoon in Timbuktu.",
    "title": "Zymurgy",
    "category": "marsupial",
    "session": "standup-kakapo",
    "excerpt": "she mentioned the okapi",
    "channel": "semaphore",
    "metadata": "narwhal",
    "about": "person:persephone",
    "user": "algernon",
    "project": "skunkworks",
}


def fill(persona, number=0):
    """Write, supersede, mark and delete memories that hold every secret, so that old page images lie about."""
    persona.projects.add_member(SECRETS["project"], SECRETS["user"])
    suffix = f" Number {number}." if number else ""
    old = persona.memories.write(
        SECRETS["content"] + suffix,
        title=SECRETS["title"],
        category=SECRETS["category"],
        session=SECRETS["session"],
        about=SECRETS["about"],
        project=SECRETS["project"],
        metadata={SECRETS["metadata"]: [SECRETS["metadata"]]},
        source={"type": "manual", "excerpt": SECRETS["excerpt"], "channel": SECRETS["channel"]},
    )
    new = persona.memories.supersede(old.id, SECRETS["again"] + suffix, session=SECRETS["session"])
    persona.memories.mark(old.id, "expired")
    persona.recall("where is the xylophone of the quagga?")
    persona.memories.delete(new.id)


def marks():
    """Return what must not be found: words, names, encoded terms and vectors."""
    words = {word for said in SECRETS.values() for word in said.lower().replace(".", "").split() if len(word) > 5}
    encoded = {term for said in SECRETS.values() for term in Tokenizer("english").query_terms(said) if len(term) > 5}
    found = {item.encode() for item in (*words, *encoded)} - {b"person"}  # a column is called persona
    for said in (SECRETS["content"], SECRETS["again"]):
        [vector] = HashWords().embed([said], "text")
        raw = np.asarray(vector, "<f4")
        nonzero = np.flatnonzero(raw)
        found.add(raw[nonzero[0] : nonzero[0] + 8].tobytes())
    return found


def traces(folder):
    data = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
    sought = marks()
    held = {name: (found, found.lower()) for name, found in data.items()}
    return {(name, mark) for name, (found, lower) in held.items() for mark in sought if mark in lower or mark in found}


def others(persona, count=40):
    persona.memories.write_many([f"Bob waters plant {n} on day {n}." for n in range(count)])


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'memory.db'}"


def open_engine(target, **options):
    return MemoryEngine(target, embedder="hash/words", **options)


def callers(url, *pragmas):
    """Return an engine as a host may make it: what is deleted is not overwritten by SQLite."""
    engine = create_engine(url, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def prepare(connection, _):
        for pragma in ("secure_delete = OFF", *pragmas):
            connection.execute(f"PRAGMA {pragma}").close()

    return engine


@pytest.mark.parametrize("target", [{"user": SECRETS["user"]}, {"persona": "main"}], ids=["user", "persona"])
@pytest.mark.parametrize("tenant", ["acme", ""], ids=["tenant", "own tenant"])
def test_the_file_and_its_log_hold_nothing_of_it(url, tmp_path, twin, target, tenant):
    engine = twin(open_engine(url))
    me, bob = (engine.persona("main", tenant=tenant, user=user) for user in (SECRETS["user"], "bob"))
    for number in range(5):
        fill(me, number)
    others(engine.persona("main2", tenant=tenant, user="bob") if "persona" in target else bob)
    assert len({mark for _, mark in traces(tmp_path)}) > 15
    where = tenant if tenant or "user" in target else f"user:{SECRETS['user']}"
    erased = engine.erase(tenant=where, **target)
    assert (erased.memories, erased.pending) == (10, False)
    assert not traces(tmp_path)
    engine.close()
    assert not traces(tmp_path)


@pytest.mark.parametrize(
    "pragmas",
    [
        ("journal_mode = WAL",),
        ("journal_mode = DELETE",),
        ("journal_mode = PERSIST",),
        ("journal_mode = WAL", "auto_vacuum = INCREMENTAL", "foreign_keys = OFF"),
    ],
    ids=lambda pragmas: pragmas[-1],
)
def test_nor_does_the_file_of_a_caller_s_own_engine(url, tmp_path, twin, pragmas):
    host = callers(url, *pragmas)
    engine = twin(open_engine(host))
    me = engine.persona("main", tenant="acme", user=SECRETS["user"])
    others(engine.persona("main", tenant="acme", user="bob"))
    for number in range(5):
        fill(me, number)
    others(engine.persona("main", tenant="acme", user="bob"), 60)
    assert not engine.erase(tenant="acme", user=SECRETS["user"]).pending
    assert not traces(tmp_path)
    engine.close()
    with host.connect() as connection:
        assert connection.scalar(text("PRAGMA integrity_check")) == "ok"
        assert connection.scalar(text("SELECT count(*) FROM memoranda_memories")) == 60
        connection.execute(
            text("INSERT INTO memoranda_memories_fts(memoranda_memories_fts) VALUES ('integrity-check')")
        )


def test_deleting_alone_would_leave_traces_there(url, tmp_path):
    host = callers(url, "journal_mode = WAL")
    with open_engine(host) as engine:
        fill(engine.persona("main", tenant="acme", user=SECRETS["user"]))
        with host.begin() as connection:
            for table in ("sources", "vectors", "memory_versions", "memories", "project_members"):
                connection.execute(text(f"DELETE FROM memoranda_{table}"))
        assert traces(tmp_path)


def test_one_memory_among_many_leaves_nothing_either(url, tmp_path, twin):
    engine = twin(open_engine(callers(url, "journal_mode = WAL")))
    me = engine.persona("main")
    others(me)
    written = me.memories.write("The heliotrope ukulele is out of tune.")
    others(engine.persona("main", tenant="acme"), 300)
    changed = me.memories.supersede(written.id, "The heliotrope ukulele is in tune.")
    assert engine.erase(persona="main", memory=changed.id, chain=True).memories == 2
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"ukulele" not in held and b"ukulel" not in held and b"heliotrop" not in held
    assert len(me.recall("bob waters plant", limit=100)) == 40


def test_a_store_in_memory_has_nothing_to_finish(twin):
    engine = twin(open_engine("sqlite://"))
    fill(engine.persona("main", user=SECRETS["user"]))
    erased = engine.erase(user=SECRETS["user"])
    assert (erased.memories, erased.pending, erased.elsewhere) == (2, False, None)
    assert (engine.finish_erasures().finished, engine.finish_erasures().pending) == (0, False)
    engine.close()


# -- somebody reads the file as it was

READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM memoranda_memories").fetchone()
print("reading", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def reader(tmp_path):
    """Start another process that reads the file in a transaction until it is told to stop."""
    started: list[subprocess.Popen[str]] = []

    def start():
        command = [sys.executable, "-c", READER, str(tmp_path / "memory.db")]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout and process.stdout.readline() == "reading\n"

        def stop():
            process.communicate("")

        return stop

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_reader_in_another_process_makes_it_pending_until_finished(url, tmp_path, twin, reader):
    engine = twin(open_engine(url))
    me = engine.persona("main", tenant="acme", user=SECRETS["user"])
    fill(me)
    stop = reader()
    erased = engine.erase(tenant="acme", user=SECRETS["user"])
    assert erased.pending and erased.memories == 2
    assert "another connection reads" in str(erased) and "memoranda erase --finish" in str(erased)
    assert me.stats().memories == 0
    assert engine.finish_erasures().pending
    others(me)  # the store is in use meanwhile
    stop()
    finished = engine.finish_erasures()
    assert (finished.finished, finished.pending) == (1, False)
    assert str(finished) == "no trace is left of 1 erasure"
    assert not {mark for _, mark in traces(tmp_path)} - {SECRETS["user"].encode()}  # who wrote again since
    assert engine.finish_erasures().finished == 0
    engine.close()


def test_the_next_erasure_finishes_an_earlier_one(url, tmp_path, twin, reader):
    engine = twin(open_engine(url))
    fill(engine.persona("main", user=SECRETS["user"]))
    engine.persona("other").memories.write("The lamp is green.")
    stop = reader()
    assert engine.erase(user=SECRETS["user"]).pending
    stop()
    assert not engine.erase(persona="other").pending
    assert not traces(tmp_path)
    engine.close()


def test_erasing_more_of_the_same_does_not_lose_sight_of_what_is_pending(url, tmp_path, twin, reader):
    engine = twin(open_engine(callers(url, "journal_mode = WAL")))
    written = engine.persona("main").memories.write(SECRETS["content"])
    stop = reader()
    assert engine.erase(persona="main", memory=written.id).pending
    assert engine.erase(persona="main").pending  # nothing more to erase, and the earlier one is part of it
    stop()
    assert engine.finish_erasures().finished == 1
    assert not traces(tmp_path)
    engine.close()


def test_a_job_finishes_it_when_the_reader_has_gone(url, tmp_path, twin, reader):
    engine = twin(open_engine(url, background="external"))
    fill(engine.persona("main", user=SECRETS["user"]))
    stop = reader()
    assert engine.erase(user=SECRETS["user"]).pending
    [job] = engine.jobs()
    assert (job.kind, job.tenant, job.persona) == ("scrub", "", "")
    assert engine.drain() == 1  # it waits: the reader is still there
    stop()
    assert engine.finish_erasures().finished == 1
    assert not traces(tmp_path)
    engine.close()


def test_a_worker_finishes_it(url, tmp_path, twin, reader):
    engine = twin(
        MemoryEngine(url, embedder="hash/words", background="external", job_policy=JobPolicy(delay_seconds=0))
    )
    fill(engine.persona("main", user=SECRETS["user"]))
    stop = reader()
    assert engine.erase(user=SECRETS["user"]).pending
    stop()
    assert engine.drain() == 0
    assert engine.jobs() == [] and not traces(tmp_path)
    engine.close()


@pytest.mark.parametrize("when", ["closed", "opened"])
def test_an_engine_finishes_it_when_it_is_closed_or_opened(url, tmp_path, twin, reader, when):
    engine = twin(open_engine(url))
    fill(engine.persona("main", user=SECRETS["user"]))
    stop = reader()
    assert engine.erase(user=SECRETS["user"]).pending
    if when == "closed":
        stop()
        engine.close()
    else:
        engine.close()
        stop()
        assert traces(tmp_path)
        engine = twin(open_engine(url))
        engine.persona("main").recall("anything")
    assert not traces(tmp_path)
    engine.close()


def test_closing_neither_raises_nor_makes_a_file(url, tmp_path, twin):
    engine = twin(open_engine(url))
    engine.close()
    assert not list(tmp_path.iterdir())
    engine = twin(open_engine(url))
    engine.persona("main").memories.write("Lisbon")
    for path in tmp_path.iterdir():
        path.unlink()
    engine.close()
    engine.close()
    assert not list(tmp_path.iterdir())


# -- killed in the middle

KILLED = """
import os, signal, sqlite3, sys
from memoranda import MemoryEngine
engine = MemoryEngine(sys.argv[1], embedder="hash/words")
if len(sys.argv) > 3:  # what a reader forbids is what has not been done yet
    connection = sqlite3.connect(sys.argv[3], isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM memoranda_memories").fetchone()
print("erasing", flush=True)
engine.erase(user=sys.argv[2])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_after_the_rows_went_it_is_finished_on_the_next_open(url, tmp_path):
    with open_engine(url) as engine:
        fill(engine.persona("main", user=SECRETS["user"]))
    command = [sys.executable, "-c", KILLED, url, SECRETS["user"], str(tmp_path / "memory.db")]
    killed = subprocess.run(command, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert traces(tmp_path)
    with open_engine(url) as engine:
        assert engine.persona("main", user=SECRETS["user"]).stats().memories == 0
        assert not traces(tmp_path)


def test_killed_at_any_moment_it_is_either_not_begun_or_can_be_finished(url, tmp_path):
    outcomes = set()
    for delay in (0.0, 0.02, 0.1, 0.4):
        with open_engine(url) as engine:
            me = engine.persona("main", user=SECRETS["user"])
            me.memories.write_many([f"{SECRETS['content']} Number {n} at {delay}." for n in range(200)])
            before = me.stats().memories
        command = [sys.executable, "-c", KILLED, url, SECRETS["user"]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout and process.stdout.readline() == "erasing\n"
            time.sleep(delay)
            process.kill()
        with open_engine(url) as engine:
            left = engine.persona("main", user=SECRETS["user"]).stats().memories
            assert left in (0, before)
            outcomes.add(left)
            if not left:
                assert not {mark for _, mark in traces(tmp_path)}
    with open_engine(url) as engine:
        engine.erase(user=SECRETS["user"])
        assert not traces(tmp_path)
    assert sqlite3.connect(tmp_path / "memory.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)


# -- a busy store


def test_writers_and_readers_of_the_same_engine_do_not_stand_in_the_way(url, tmp_path, mode, twin):
    engine = twin(open_engine(url))
    fill(engine.persona("main", user=SECRETS["user"]))
    bob, stop, problems = unwrap(engine).persona("main", user="bob"), threading.Event(), []

    def work(worker):
        n = 0
        try:
            while not stop.is_set():
                n += 1
                bob.memories.write(f"Bob waters plant {worker}-{n}.")
                bob.recall("which plant is dry?")
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    erased = engine.erase(user=SECRETS["user"])
    stop.set()
    for thread in threads:
        thread.join()
    assert not problems and erased.memories == 2
    assert not engine.finish_erasures().pending
    assert not traces(tmp_path)
    assert os.path.getsize(tmp_path / "memory.db")
    engine.close()


# -- Postgres: rows are gone, tables vacuumed, samples taken anew


@pytest.fixture
def postgres(postgres_url, twin):
    engine = twin(MemoryEngine(postgres_url, embedder="hash/words"))
    yield engine
    engine.close()


@pytest.fixture
def host(postgres_url):
    engine = create_engine(postgres_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


def sampled(host):
    """Return what the planner's samples say, by table."""
    samples = "select tablename, string_agg(pg_stats::text, ' ') from pg_stats"
    query = f"{samples} where schemaname = 'memoranda' group by tablename"
    with host.connect() as connection:
        return {table: said.lower() for table, said in connection.execute(text(query))}


def dead(host):
    """Return what VACUUM says of rows that it removes, or may not remove yet: nothing when there are none."""
    said: list[str] = []
    with host.connect() as connection:
        driver: Any = connection.connection.driver_connection
        driver.add_notice_handler(lambda notice: said.append(notice.message_primary))
        for table in ("memories", "memory_versions", "sources", "vectors"):
            connection.execute(text(f"vacuum (verbose) memoranda.{table}"))
    counts = re.findall(r"tuples: (\d+) removed, \d+ remain, (\d+) are dead", " ".join(said))
    assert len(counts) >= 4
    return [count for count in counts if count != ("0", "0")]


@pytest.mark.parametrize("emptied", [False, True])
def test_postgres_is_vacuumed_and_its_samples_are_taken_anew(postgres, host, emptied):
    me = postgres.persona("main", tenant="acme", user=SECRETS["user"])
    for number in range(8):
        fill(me, number)
    if not emptied:
        others(postgres.persona("main", tenant="acme", user="bob"))
    with host.connect() as connection:
        connection.execute(text("analyze"))
    before = " ".join(sampled(host).values())
    assert SECRETS["user"] in before and "quagga" in before
    erased = postgres.erase(tenant="acme", user=SECRETS["user"])
    assert (erased.memories, erased.pending) == (16, False)
    assert "write-ahead log" in str(erased) and "VACUUM FULL" in str(erased)
    assert not dead(host)
    left = {
        table
        for table, said in sampled(host).items()
        if any(mark.isascii() and mark.decode() in said for mark in marks())
    }
    forgets = (host.dialect.server_version_info or (0,)) >= (18,)
    assert not left if forgets else "memory_versions" in left
    assert all(table in str(erased) for table in left)
    if not emptied:
        assert not left & {"memories", "sources", "vectors"}


def test_two_who_finish_at_once_do_not_stand_in_each_other_s_way(postgres, host):
    fill(postgres.persona("main", user=SECRETS["user"]))
    with host.connect() as connection:
        reading: Any = connection.execution_options(isolation_level="REPEATABLE READ")
        reading.execute(text("select count(*) from memoranda.memories"))
        assert postgres.erase(user=SECRETS["user"]).pending
        reading.rollback()
    with ThreadPoolExecutor(4) as pool:
        finished = [asked.result() for asked in [pool.submit(unwrap(postgres).finish_erasures) for _ in range(4)]]
    assert not any(one.pending for one in finished)


def test_an_older_transaction_on_the_server_makes_it_pending(postgres, host):
    fill(postgres.persona("main", user=SECRETS["user"]))
    with host.connect() as connection:
        reading: Any = connection.execution_options(isolation_level="REPEATABLE READ")
        reading.execute(text("select count(*) from memoranda.memories"))
        erased = postgres.erase(user=SECRETS["user"])
        assert erased.pending and "a transaction that began before" in str(erased)
        reading.rollback()
    finished = postgres.finish_erasures()
    assert (finished.finished, finished.pending) == (1, False)
    assert "write-ahead log" in str(finished)


def test_a_missing_right_to_vacuum_is_named_with_its_remedy(postgres_url, host, twin):
    role = f"eraser_{uuid4().hex}"  # roles are the whole server's
    with host.connect() as connection:
        connection.execute(text(f"create role {role} login"))
        connection.execute(text(f"grant usage on schema memoranda to {role}"))
        connection.execute(text(f"grant select, insert, update, delete on all tables in schema memoranda to {role}"))
    url = make_url(postgres_url).set(username=role, password=None).render_as_string(hide_password=False)
    engine = twin(MemoryEngine(url, embedder="hash/words"))
    try:
        fill(engine.persona("main", user=SECRETS["user"]))
        erased = engine.erase(user=SECRETS["user"])
        assert erased.pending and erased.memories == 2
        assert "may not VACUUM " in str(erased) and "erasures" in str(erased) and "GRANT MAINTAIN" in str(erased)
        owner = twin(MemoryEngine(postgres_url, embedder="hash/words"))
        assert owner.finish_erasures().finished == 1
        owner.close()
    finally:
        engine.close()
        with host.connect() as connection:
            connection.execute(text(f"drop owned by {role}"))
            connection.execute(text(f"drop role {role}"))
