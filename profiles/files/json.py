"""JSON files that people write: their content, and the line of each value."""

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from profiles import Fault, InputError
from profiles.validation import faults_of

Model = TypeVar("Model", bound=BaseModel)

MOST_DIGITS = 300  # of a whole number; more are no double
Place = tuple[str | int, ...]  # keys and list indices that lead to a value

BLANK_TEXT = re.compile(r"[ \t\n\r]*")


def read_model(path: Path, model: type[Model], faults: list[Fault]) -> Model | None:
    """The model that a JSON file holds; None where it holds none, and then what is wrong is added to `faults`."""
    try:
        return model.model_validate_json(path.read_bytes())
    except ValidationError as error:
        faults += faults_of(error, str(path))
    except OSError as error:
        faults.append(Fault(str(path), None, None, f"cannot be read: {error.strerror}"))
    return None


def parse_json(text: str, file: str, line: int | None = None) -> object:
    """The content of JSON text; faults name `file`. `line`: where all of the text is one line of a file: its number.
    Raises `InputError` it is not JSON, holds NaN or an infinity, or names a key twice."""
    try:
        return json.loads(text, parse_int=_whole, parse_constant=_not_finite, object_pairs_hook=_keys_once)
    except RecursionError:
        raise InputError.of(file, "is nested too deeply", line=line) from None
    except json.JSONDecodeError as error:
        place = f"column {error.colno}"
        raise InputError.of(file, f"is not JSON: {error.msg}", line=line or error.lineno, column=place) from None
    except _NamedTwiceError as error:
        second = line or _line_of_second(text)
        raise InputError.of(
            file, "is named twice", line=second, column=error.args[0], hint="keep one of the two"
        ) from None
    except ValueError as error:  # NaN, or a number of hundreds of digits
        found = re.search(r"\b(NaN|Infinity)\b", text)
        at = line or (text.count("\n", 0, found.start()) + 1 if found else None)
        raise InputError.of(file, str(error), line=at) from None


def lines_of(text: str) -> dict[Place, int]:
    """The line of each value of JSON text that `parse_json` takes, by the keys and indices that lead to it."""
    lines: dict[Place, int] = {}
    _walk(text, 0, (), lines, json.JSONDecoder())
    return lines


def fault_at(file: str, lines: dict[Place, int], place: Place, message: str, hint: str | None = None) -> Fault:
    """A fault at a value; where a file lacks the value, at the innermost one around it."""
    found = next((lines[place[:size]] for size in range(len(place), -1, -1) if place[:size] in lines), None)
    return Fault(file, found, ".".join(map(str, place)) or None, message, hint)


class _NamedTwiceError(ValueError):
    """An object has a key twice."""


def _keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise _NamedTwiceError(key)
        content[key] = value
    return content


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number has more than {MOST_DIGITS} digits: {text[:10]}...")
    return int(text)


def _not_finite(name: str) -> float:
    raise ValueError(f"{name} is not a finite number")


def _line_of_second(text: str) -> int:
    """The line of the first value whose key its object already has."""
    try:
        lines_of(text)
    except _NamedTwiceError as error:
        return int(error.args[1])
    raise AssertionError("no key is named twice")


def _walk(text: str, at: int, place: Place, lines: dict[Place, int], decoder: json.JSONDecoder) -> int:
    """Note the lines of a value and of all in it; returns where it ends."""
    at = _past_blank(text, at)
    if place in lines:
        raise _NamedTwiceError(place[-1], text.count("\n", 0, at) + 1)
    lines[place] = text.count("\n", 0, at) + 1
    if text[at] not in "{[":
        return decoder.raw_decode(text, at)[1]
    closing = {"{": "}", "[": "]"}[text[at]]
    at, number = _past_blank(text, at + 1), 0
    while text[at] != closing:
        key: str | int = number
        if closing == "}":
            key, at = scanstring(text, at + 1)
            at = _past_blank(text, at) + 1  # the colon
        at = _past_blank(text, _walk(text, at, (*place, key), lines, decoder))
        at = _past_blank(text, at + 1) if text[at] == "," else at
        number += 1
    return at + 1


def _past_blank(text: str, at: int) -> int:
    found = BLANK_TEXT.match(text, at)
    assert found is not None
    return found.end()
