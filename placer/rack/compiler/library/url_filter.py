"""UrlFilter: drops requests to listed domains and URLs: HTTP/1 by host and path, TLS by the server name."""

import re
from collections.abc import Mapping
from typing import Any

from placer.rack.compiler.library.given_data import DataParameter, GivenData
from placer.rack.compiler.library.nf_kind import NF_KINDS, SEED_PARAMETER, NfKind, ParameterRange, SplitMix
from profiles.faults import Fault, InputError
from profiles.files.table_lines import text_lines

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

LONGEST_HOST, LONGEST_LABEL, LONGEST_PATH, MOST_SEGMENTS = 253, 63, 4096, 16
MOST_URLS = 1_000_000
URL_FORM = "one domain or URL a line, as example.org/ads"
SCHEME = re.compile(r"https?://", re.IGNORECASE)
COMMENT = re.compile(r"(?:^|(?<=[ \t\v\f\r]))#.*")
NAME_CHARACTERS = re.compile(r"[A-Za-z0-9._-]*")
PATH_CHARACTERS = re.compile(r"[!-~]*")


class UrlFilterNf(NfKind[tuple[str, ...]]):
    """A block list of domains and URLs."""

    name = "UrlFilter"
    parameters = (ParameterRange("urls", "entries of the list", 0, MOST_URLS, 1000), SEED_PARAMETER)
    own = (DataParameter("urls", "a file of domains and URLs", lambda given: read_urls(given)),)
    empty_means = "every request passes"
    platforms = frozenset(("server",))

    def data(self, parameters: Mapping[str, float]) -> tuple[str, ...]:
        random = SplitMix(int(parameters["seed"]))
        return tuple(next_url(random) for _ in range(int(parameters["urls"])))

    def data_of(self, parameters: Mapping[str, float], own: Mapping[str, Any]) -> tuple[str, ...]:
        urls: tuple[str, ...] = own["urls"]
        return urls

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


def read_urls(given: GivenData) -> tuple[str, ...]:
    """The entries of a file, in the format of `nfs/functions/url_filter/list.c`. Raises InputError with every fault."""
    source, faults, urls = given.file(), list[Fault](), list[str]()
    for number, line in text_lines(source.content, str(source.path), faults):
        entry = COMMENT.sub("", line).strip(" \t\v\f\r")
        if not entry:
            continue
        if fault := url_fault(entry):
            column = f"column {line.index(entry) + 1}"
            faults.append(Fault(str(source.path), number, column, fault, URL_FORM))
        elif len(urls) == MOST_URLS:
            faults.append(Fault(str(source.path), number, None, f"more than {MOST_URLS:,} entries", URL_FORM))
            break
        urls.append(entry)
    if faults:
        raise InputError(faults)
    return tuple(urls)


def url_fault(entry: str) -> str | None:
    """Why an entry is refused; None if it is not."""
    scheme = SCHEME.match(entry)
    host, slash, path = entry[scheme.end() if scheme else 0 :].partition("/")
    return _host_fault(host.removesuffix(".")) or _path_fault(slash + path)


def _host_fault(host: str) -> str | None:
    if not host or len(host) > LONGEST_HOST:
        return f"the host is longer than {LONGEST_HOST} characters" if host else "no host"
    if "*" in host:
        return "a wildcard: a domain covers its subdomains by itself"
    if re.search(r"[:@[]", host):
        return "a user, a port or IPv6: only host names and IPv4 are matched"
    if not NAME_CHARACTERS.fullmatch(host):
        return "the host has a character that names cannot have"
    if max(map(len, host.split("."))) > LONGEST_LABEL:
        return f"a label of the host is longer than {LONGEST_LABEL} characters"
    return "an empty label in the host" if host.startswith(".") or ".." in host else None


def _path_fault(path: str) -> str | None:
    if re.search(r"[?#]", path):
        return "a query or fragment: only paths are matched"
    if not PATH_CHARACTERS.fullmatch(path):
        return "the path has a character that URLs cannot have"
    if len(path) > LONGEST_PATH:
        return f"the path is longer than {LONGEST_PATH} characters"
    return f"the path has more than {MOST_SEGMENTS} segments" if path.count("/") > MOST_SEGMENTS else None


NF_KINDS.register(UrlFilterNf.name)(UrlFilterNf())
