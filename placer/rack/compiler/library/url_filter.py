"""UrlFilter: drops requests to listed domains and URLs: HTTP/1 by host and path, TLS by the server name."""

from collections.abc import Mapping

from placer.rack.compiler.library.nf_kind import NF_KINDS, SEED_PARAMETER, NfKind, ParameterRange, SplitMix

HOST_PREFIXES = ("", "", "", "www.", "ads.", "cdn.", "track.", "static.")
HOST_NAMES = (
    *("alpha", "banner", "casino", "click", "coupon", "data", "fast", "game", "lucky"),
    *("market", "media", "metric", "online", "pixel", "prize", "search", "shop", "stream"),
)
TOP_DOMAINS = ("com", "com", "com", "net", "org", "info", "example", "co.uk")
PATH_SEGMENTS = (
    *("ads", "api", "banners", "click", "download", "img", "js"),
    *("login", "pixel", "promo", "track", "v1", "video", "watch"),
)


class UrlFilterNf(NfKind[tuple[str, ...]]):
    """A block list of domains and URLs."""

    name = "UrlFilter"
    parameters = (ParameterRange("urls", "entries of the list", 0, 1_000_000, 1000), SEED_PARAMETER)
    platforms = frozenset(("server",))

    def data(self, parameters: Mapping[str, float]) -> tuple[str, ...]:
        random = SplitMix(int(parameters["seed"]))
        return tuple(next_url(random) for _ in range(int(parameters["urls"])))

    def server_files(self, data: tuple[str, ...]) -> dict[str, str]:
        return {"urls": "".join(f"{url}\n" for url in data)}

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"list": files["urls"]}


def next_url(random: SplitMix) -> str:
    """An entry as `nfs/tables/urls.c` makes it: three of five are domains, others have a path."""
    host, first, second = random.one_of(HOST_PREFIXES), random.one_of(HOST_NAMES), random.one_of(HOST_NAMES)
    url = f"{host}{first}-{second}{random.below(1000)}.{random.one_of(TOP_DOMAINS)}"
    depth = 0 if random.below(5) < 3 else 1 + random.below(3)
    for _ in range(depth):
        url += f"/{random.one_of(PATH_SEGMENTS)}{random.below(10)}"
    return url


NF_KINDS.register(UrlFilterNf.name)(UrlFilterNf())
