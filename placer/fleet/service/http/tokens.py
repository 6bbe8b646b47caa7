"""Bearer tokens: who may ask, decide, and administer. The file holds only hashes of them.

    [[token]]
    name = "orchestrator"
    sha256 = "..."
    scopes = ["ask", "decide"]
    weight = 2

A token has 256 random bits, so that a plain hash of it cannot be reversed by trying.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from profiles import Fault, InputError
from profiles.files.toml import line_of, read_toml
from profiles.validation import word_fault

ASK, DECIDE, ADMIN = SCOPES = ("ask", "decide", "admin")
"""`ask` reads; `decide` also sends events of tenants and measurements; `admin` also those of NICs."""

INCLUDED_SCOPES = {ASK: {ASK}, DECIDE: {ASK, DECIDE}, ADMIN: {ASK, DECIDE, ADMIN}}
TOKEN_TABLE = "token"  # noqa: S105 - the name of a table in a file


class TokenTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=256)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scopes: Annotated[list[Literal["ask", "decide", "admin"]], Field(min_length=1)]
    weight: Annotated[FiniteFloat, Field(ge=0.01, le=100)] = 1.0


@dataclass(frozen=True)
class AccessToken:
    """The name of a token, None for everybody's, its scopes, and its weight among requests that wait."""

    name: str | None
    scopes: frozenset[str]
    weight: float = 1.0

    @property
    def administers(self) -> bool:
        """Whether it may change NICs."""
        return ADMIN in self.scopes


EVERYBODY = AccessToken(None, frozenset(SCOPES))


@dataclass(frozen=True)
class Tokens:
    """Tokens by their hash; `everybody` where none is needed."""

    by_hash: Mapping[str, AccessToken]
    everybody: bool = False

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
    """The tokens of a file. Raises InputError with every fault of the file."""
    text, document = read_toml(path)
    tables = document.get(TOKEN_TABLE, [])
    if not isinstance(tables, list) or not tables:
        raise InputError.of(str(path), "no [[token]] table", hint="make one: placer serve --new-token NAME")
    faults: list[Fault] = []
    found: dict[str, AccessToken] = {}
    for number, table in enumerate(tables, start=1):
        try:
            read = TokenTable.model_validate(table)
        except ValidationError as error:
            for wrong in error.errors():
                key = str(wrong["loc"][0]) if wrong["loc"] else TOKEN_TABLE
                faults.append(Fault(str(path), line_of(text, TOKEN_TABLE, number, key), key, word_fault(wrong)))
            continue
        if read.sha256 in found:
            line = line_of(text, TOKEN_TABLE, number, "sha256")
            faults.append(Fault(str(path), line, "sha256", f"is the token of {found[read.sha256].name}, too"))
        scopes = frozenset().union(*(INCLUDED_SCOPES[scope] for scope in read.scopes))
        found[read.sha256] = AccessToken(read.name, scopes, read.weight)
    faults += [
        Fault(str(path), None, key, "unknown key", "a token file holds [[token]]")
        for key in {*document} - {TOKEN_TABLE}
    ]
    if faults:
        raise InputError(faults)
    return Tokens(found)


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
