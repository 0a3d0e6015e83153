"""Run a command beside PgBouncer in transaction mode, in front of the server of `MEMORANDA_TEST_POSTGRES_URL`.

`with_pgbouncer.py COMMAND ...` sets `MEMORANDA_TEST_PGBOUNCER_URL` for the command. The pooler listens on a Unix socket
in a folder of its own and is stopped at the end. It refuses to be root: started by root it runs as `nobody`.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

PORT = 6432
CONFIGURATION = """\
[databases]
* = host={host} port={port} user={user}

[pgbouncer]
listen_addr =
listen_port = {listen}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
max_client_conn = 400
default_pool_size = 8
# Each test worker has a database of its own; few server connections, so that clients really share them.
ignore_startup_parameters = extra_float_digits
"""


def main(command: list[str]) -> int:
    server = make_url(os.environ["MEMORANDA_TEST_POSTGRES_URL"])
    binary = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"]))
    if binary is None:
        sys.exit("pgbouncer is not installed")
    account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer-", dir="/tmp"))
    try:
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(
            CONFIGURATION.format(
                folder=folder,
                listen=PORT,
                host=server.query.get("host") or server.host or "127.0.0.1",
                port=server.port or 5432,
                user=server.username or "postgres",
            )
        )
        options: dict[str, Any] = {}
        if account:
            os.chown(folder, account.pw_uid, account.pw_gid)
            folder.chmod(0o755)
            options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        with (folder / "log").open("wb") as log:
            null = subprocess.DEVNULL
            pooler = subprocess.Popen([binary, str(configuration)], stdin=null, stdout=log, stderr=log, **options)
        try:
            deadline = time.monotonic() + 20
            while not (folder / f".s.PGSQL.{PORT}").exists():
                if pooler.poll() is not None or time.monotonic() > deadline:
                    sys.exit("pgbouncer did not start:\n" + (folder / "log").read_text(errors="replace"))
                time.sleep(0.05)
            url = f"postgresql+psycopg://postgres@/postgres?host={folder}&port={PORT}"
            environment = os.environ | {"MEMORANDA_TEST_PGBOUNCER_URL": url}
            return subprocess.run(command, env=environment, check=False).returncode
        finally:
            pooler.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                pooler.wait(10)
            if pooler.poll() is None:
                pooler.kill()
                pooler.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
