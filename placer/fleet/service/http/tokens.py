"""Bearer tokens: who may ask, decide, and administer. The file holds only hashes of them.

    [[token]]
    name = "orchestrator"
    sha256 = "..."
    scopes = ["ask", "decide"]
    weight = 2

    [[owner]]
    name = "edge-team"
    max_instances = 200

A token has 256 random bits, so that a plain hash of it cannot be reversed by trying.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from placer.fleet.event_shapes import Name
from profiles import Fault, InputError
from profiles.files.toml import line_of, read_toml
from profiles.validation import word_fault

ASK, DECIDE, ADMIN = SCOPES = ("ask", "decide", "admin")
"""`ask` reads; `decide` also sends events of tenants and measurements; `admin` also those of NICs."""

INCLUDED_SCOPES = {ASK: {ASK}, DECIDE: {ASK, DECIDE}, ADMIN: {ASK, DECIDE, ADMIN}}
TOKEN_TABLE, OWNER_TABLE = "token", "owner"
MOST_OWNED = 10**9  # the largest limit of a quota


class TokenTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=256)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scopes: Annotated[list[Literal["ask", "decide", "admin"]], Field(min_length=1)]
    weight: Annotated[FiniteFloat, Field(ge=0.01, le=100)] = 1.0
    owners: Annotated[list[Name], Field(min_length=1)] | None = None


Limit = Annotated[int, Field(ge=0, le=MOST_OWNED)]


class OwnerTable(BaseModel):
    """Most instances that an owner may have, placed, queued and reserved, and most cores that they may take."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Name
    max_instances: Limit | None = None
    max_cores: Limit | None = None

    @model_validator(mode="after")
    def limit_something(self) -> Self:
        if self.max_instances is None and self.max_cores is None:
            raise ValueError("limits nothing: give max_instances or max_cores")
        return self


@dataclass(frozen=True)
class AccessToken:
    """The name of a token, None for everybody's, its scopes, and its weight among requests that wait.

    `owners`: whose instances alone it may place, change and remove; None for all, also those without owner.
    """

    name: str | None
    scopes: frozenset[str]
    weight: float = 1.0
    owners: frozenset[str] | None = None

    @property
    def administers(self) -> bool:
        """Whether it may change NICs."""
        return ADMIN in self.scopes


EVERYBODY = AccessToken(None, frozenset(SCOPES))


@dataclass(frozen=True)
class Tokens:
    """Tokens by their hash; `everybody` where none is needed. `quotas`: what owners may have, by name."""

    by_hash: Mapping[str, AccessToken]
    everybody: bool = False
    quotas: Mapping[str, OwnerTable] = field(default_factory=dict)

    def find(self, authorization: str | None) -> AccessToken | None:
        """The token of an `Authorization` header; None where it names no known one.

        It is `Bearer TOKEN`, or `Basic` with the token as the password, which kube-scheduler sends for an extender
        whose address is `https://any:TOKEN@host`.
        """
        if self.everybody:
            return EVERYBODY
        scheme, _, value = (authorization or "").partition(" ")
        token = value.strip()
        if scheme.lower() == "basic":
            token = _password(token)
        elif scheme.lower() != "bearer":
            return None
        return self.by_hash.get(_hash(token))


OPEN_TO_ALL = Tokens({}, everybody=True)


def read_tokens(path: Path) -> Tokens:
    """The tokens of a file, and the quotas of owners. Raises InputError with every fault of the file."""
    text, document = read_toml(path)
    faults: list[Fault] = []
    if not document.get(TOKEN_TABLE):
        hint = "make one: placer serve --new-token NAME"
        faults.append(Fault(str(path), None, TOKEN_TABLE, "there is no [[token]] table", hint))
    found: dict[str, AccessToken] = {}
    for number, token in _read_tables(path, text, document, TOKEN_TABLE, TokenTable, faults):
        if token.sha256 in found:
            line = line_of(text, TOKEN_TABLE, number, "sha256")
            faults.append(Fault(str(path), line, "sha256", f"is the token of {found[token.sha256].name}, too"))
        scopes = frozenset().union(*(INCLUDED_SCOPES[scope] for scope in token.scopes))
        owners = None if token.owners is None else frozenset(token.owners)
        found[token.sha256] = AccessToken(token.name, scopes, token.weight, owners)
    quotas: dict[str, OwnerTable] = {}
    for number, owner in _read_tables(path, text, document, OWNER_TABLE, OwnerTable, faults):
        if owner.name in quotas:
            line = line_of(text, OWNER_TABLE, number, "name")
            faults.append(Fault(str(path), line, "name", f"'{owner.name}' has a quota already"))
        quotas[owner.name] = owner
    faults += [
        Fault(str(path), None, key, "unknown key", "a token file holds [[token]] and [[owner]]")
        for key in {*document} - {TOKEN_TABLE, OWNER_TABLE}
    ]
    if faults:
        raise InputError(faults)
    return Tokens(found, quotas=quotas)


_Table = TypeVar("_Table", TokenTable, OwnerTable)


def _read_tables(
    path: Path, text: str, document: Mapping[str, Any], name: str, shape: type[_Table], faults: list[Fault]
) -> Iterator[tuple[int, _Table]]:
    """The tables of a name that make sense, with their numbers from 1 on; what is wrong with others is in `faults`."""
    tables = document.get(name, [])
    if not isinstance(tables, list):
        faults.append(
            Fault(str(path), line_of(text, name, 1, name), name, f"is not a list of tables: write [[{name}]]")
        )
        return
    for number, table in enumerate(tables, start=1):
        try:
            read = shape.model_validate(table)
        except ValidationError as error:
            for wrong in error.errors():
                key = str(wrong["loc"][0]) if wrong["loc"] else name
                faults.append(Fault(str(path), line_of(text, name, number, key), key, word_fault(wrong)))
        else:
            yield number, read


def new_token(name: str, scopes: Iterable[str]) -> tuple[str, str]:
    """A new token, and the `[[token]]` table for it. Raises InputError when the name or a scope is not one."""
    wanted = list(dict.fromkeys(scopes))
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown or not wanted:
        raise InputError.of("--scopes", f"'{','.join(unknown)}' is no scope", hint=f"of {', '.join(SCOPES)}")
    if not name.isprintable() or not name.strip() or '"' in name or "\\" in name:
        raise InputError.of("--new-token", f"{name!r} is not a name")
    token = secrets.token_urlsafe(32)
    listed = ", ".join(f'"{scope}"' for scope in wanted)
    return token, f'[[token]]\nname = "{name}"\nsha256 = "{_hash(token)}"\nscopes = [{listed}]\n'


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _password(credentials: str) -> str:
    try:
        return base64.b64decode(credentials, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
