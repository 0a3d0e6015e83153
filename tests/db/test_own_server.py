"""The shipped throw-away Postgres: what a killed server or a killed run leaves behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import NullPool, create_engine, text

from memoranda.testing.postgres import PostgresServer


def ended(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def within(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_server_that_was_killed_is_not_taken_for_a_running_one(own_postgres):
    host = create_engine(own_postgres.url(), poolclass=NullPool)
    killed = own_postgres.pid
    os.kill(killed, signal.SIGKILL)
    assert within(10, lambda: own_postgres.pid is None)
    assert (own_postgres.folder / "data" / "postmaster.pid").exists()
    time.sleep(0.5)  # its children notice and go

    own_postgres.start()
    assert own_postgres.pid not in (None, killed)
    with host.connect() as connection:
        assert connection.scalar(text("select 1")) == 1


def test_a_number_that_another_process_has_by_now_is_not_ended(tmp_path):
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    data = tmp_path / "data"
    data.mkdir()
    (data / "postmaster.pid").write_text(f"{bystander.pid}\n{data}\n0\n5432\n{tmp_path}\n\n1\nready   \n")
    server = PostgresServer(tmp_path)

    assert server.pid is None
    server.stop()

    assert bystander.poll() is None
    assert not (data / "postmaster.pid").exists()
    bystander.kill()
    bystander.wait()


RUN = """
import os, signal
from memoranda.testing.postgres import PostgresServer, new_folder
server = PostgresServer(new_folder())
server.start(guardian=os.getpid())
server.restart()
print(server.pid, server.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_is_killed_leaves_neither_server_nor_folder_after_a_restart():
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, folder = done.stdout.split()

    assert within(30, lambda: not Path(folder).exists() and ended(int(pid)))
