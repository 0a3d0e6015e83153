"""A guard that closes the network: only Unix sockets and the loopback addresses stay reachable.

It listens to the interpreter's audit events, which every Python socket raises whichever way it was reached. Sockets
that C libraries open by themselves (libpq) are not seen.
"""

import ipaddress
import sys
from types import TracebackType
from typing import Any


class NetworkClosed(OSError):
    """A test reached for the network. Use a fake, a recording or a server on the loopback address."""


class NetworkGuard:
    """While entered, refuse connections that leave the machine and remember their hosts in `attempts`."""

    def __init__(self) -> None:
        self.attempts: list[str] = []

    def __enter__(self) -> "NetworkGuard":
        global _hooked
        if not _hooked:  # audit hooks cannot be removed: one for the process, quiet while no guard is entered
            sys.addaudithook(_audit)
            _hooked = True
        _entered.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _entered.remove(self)


_entered: list[NetworkGuard] = []
_hooked = False
# event -> where its arguments hold the host or the address
_WATCHED = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyaddr": 0,
    "socket.gethostbyname": 0,
    "socket.getnameinfo": 0,
}


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _entered or event not in _WATCHED:
        return
    host = args[_WATCHED[event]]
    if isinstance(host, tuple):  # (host, port, ...) of the internet families; a Unix socket has a path
        host = host[0]
    elif not event.startswith("socket.get"):
        return
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    if host and not is_local(str(host)):
        _entered[-1].attempts.append(str(host))
        raise NetworkClosed(f"the network is closed in tests: connection to {host} refused")


def is_local(host: str) -> bool:
    """Tell whether a host name or address means this machine's loopback."""
    name = host.partition("%")[0].strip("[]")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name.lower() == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback or address.is_unspecified
