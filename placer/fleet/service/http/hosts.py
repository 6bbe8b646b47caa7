"""Names under which the service is asked: a page of another site cannot use it in the browser of a user.

Without tokens, every client that connects is trusted, and the browser of a trusted user runs pages of anybody. A page
of another site sends its own name as `Origin`. A page whose name its owner points to 127.0.0.1 (DNS rebinding) has the
same origin as the service, but sends its name as `Host`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.types import Scope

from profiles import InputError

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
DEFAULT_PORTS = {"http": 80, "https": 443}
LONGEST_SHOWN = 100


class Hosts:
    """Which `Host` and `Origin` are accepted.

    `listen`, `port`: the address listened on. `scheme`: `http` or `https`. `names`: further names, of `read_names`.
    """

    def __init__(self, listen: str, port: int, scheme: str = "http", names: Iterable[str] = ()) -> None:
        self._everywhere = listen in ALL_ADDRESSES
        local = [*LOOPBACK_NAMES] if self._everywhere else [*LOOPBACK_NAMES, _bracketed(listen).lower()]
        with_port = [f"{name}:{port}" for name in local]
        if port == DEFAULT_PORTS[scheme]:  # which clients leave out
            with_port += local
        self._exact = frozenset(name.encode() for name in [*with_port, *names])
        self._with_any_port = frozenset(
            name.encode() for name in [*names, *(local if self._everywhere else ())] if not _has_port(name)
        )

    def fault(self, scope: Scope, host: bytes, origin: bytes | None) -> tuple[int, str] | None:
        """Why a request is refused, as status and message; None if it is not."""
        if host not in self._exact and not self._knows(scope, host.lower()):
            shown = host.decode("latin-1")[:LONGEST_SHOWN]
            return 421, f"Host: '{shown}' is not a name of this service; start it with --host NAME to add one"
        # a proxy with TLS in front passes on the origin https
        if origin is not None and origin.lower() not in (b"https://" + host.lower(), _origin(scope, host)):
            return 403, "Origin: pages of other sites are not answered"
        return None

    def _knows(self, scope: Scope, host: bytes) -> bool:
        name = host.rpartition(b":")[0] if _has_port(host.decode("latin-1")) else host
        if host in self._exact or name in self._with_any_port:
            return True
        address = scope.get("server")
        return self._everywhere and address is not None and name == _bracketed(address[0]).encode()


def read_names(given: Iterable[str]) -> tuple[str, ...]:
    """Names for `Hosts`, each with a port or for any. Raises InputError when one is no name."""
    names = tuple(name.lower() for name in given)
    for name in names:
        if not re.fullmatch(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", name):
            raise InputError.of(
                "--host", f"'{name}' is not a host", hint="as in placer.example, or placer.example:8443"
            )
    return names


def _origin(scope: Scope, host: bytes) -> bytes:
    return f"{scope['scheme']}://".encode() + host.lower()


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address and not address.startswith("[") else address


def _has_port(name: str) -> bool:
    return re.search(r":[0-9]+$", name) is not None
