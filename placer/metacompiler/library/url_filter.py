"""UrlFilter: drops requests to listed domains and URLs: HTTP/1 by host and path, TLS by the server name."""

from __future__ import annotations

from collections.abc import Mapping

from placer.metacompiler.library.headers import TCP, FrameType, read_headers
from placer.metacompiler.library.nf_model import NF_KINDS, SEED, FrameModel, NfKind, ParameterRange
from placer.metacompiler.library.random_numbers import SplitMix
from placer.metacompiler.library.web_requests import (
    RequestKind,
    WebRequest,
    first_request,
    normal_host,
    normal_path,
)

HOSTS = ("", "", "", "www.", "ads.", "cdn.", "track.", "static.")
NAMES = (
    *("alpha", "banner", "casino", "click", "coupon", "data", "fast", "game", "lucky"),
    *("market", "media", "metric", "online", "pixel", "prize", "search", "shop", "stream"),
)
TOPS = ("com", "com", "com", "net", "org", "info", "example", "co.uk")
SEGMENTS = (
    *("ads", "api", "banners", "click", "download", "img", "js"),
    *("login", "pixel", "promo", "track", "v1", "video", "watch"),
)


class UrlFilterModel:
    """What the UrlFilter does to frames. Each TCP segment is judged by itself; an incomplete request passes."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        self._listed = set[tuple[bytes, tuple[bytes, ...]]]()
        for url in urls:
            host, slash, path = url.encode().partition(b"/")
            self._listed.add((normal_host(host), normal_path(slash + path)))

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        headers = read_headers(packet)
        if headers.type is FrameType.MALFORMED:
            return []
        if headers.protocol != TCP or headers.payload == 0:
            return [packet]
        return [] if self._blocks(packet[headers.payload : headers.end]) else [packet]

    def _blocks(self, segment: bytes) -> bool:
        """Whether one of the requests in a segment is listed."""
        while segment:
            request = first_request(segment)
            if request.kind is RequestKind.NONE:
                return False
            if self._lists(request):
                return True
            segment = request.rest
        return False

    def _lists(self, request: WebRequest) -> bool:
        path = normal_path(request.target)
        return any(self._covers(normal_host(host), path) for host in request.hosts)

    def _covers(self, host: bytes, path: tuple[bytes, ...]) -> bool:
        """Whether the host or a domain above it is listed, with the path or one above it."""
        while host:
            if any((host, path[:depth]) in self._listed for depth in range(len(path) + 1)):
                return True
            host = host.partition(b".")[2]
        return False


class UrlFilterNf(NfKind[tuple[str, ...]]):
    """A block list of domains and URLs."""

    name = "UrlFilter"
    parameters = (ParameterRange("urls", "entries of the list", 0, 1_000_000, 1000), SEED)
    platforms = frozenset(("server",))

    def data(self, parameters: Mapping[str, float]) -> tuple[str, ...]:
        random = SplitMix(int(parameters["seed"]))
        return tuple(next_url(random) for _ in range(int(parameters["urls"])))

    def model(self, parameters: Mapping[str, float], data: tuple[str, ...]) -> FrameModel:
        return UrlFilterModel(data)

    def server_files(self, data: tuple[str, ...]) -> dict[str, str]:
        return {"urls": "".join(f"{url}\n" for url in data)}

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"list": files["urls"]}


def next_url(random: SplitMix) -> str:
    """An entry as `nfs/tables/urls.c` makes it: three of five are domains, others have a path."""
    host, first, second = random.one_of(HOSTS), random.one_of(NAMES), random.one_of(NAMES)
    url = f"{host}{first}-{second}{random.below(1000)}.{random.one_of(TOPS)}"
    depth = 0 if random.below(5) < 3 else 1 + random.below(3)
    for _ in range(depth):
        url += f"/{random.one_of(SEGMENTS)}{random.below(10)}"
    return url


NF_KINDS.register(UrlFilterNf.name)(UrlFilterNf())
