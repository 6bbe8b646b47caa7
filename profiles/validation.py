"""What is wrong with a value that people wrote, in plain words instead of those of the validation library."""

from pydantic_core import ErrorDetails, ValidationError

from profiles.faults import Fault

LONGEST_TEXT = 80

FAULT_WORDS = {
    "extra_forbidden": "unknown key",
    "missing": "is missing",
    "greater_than": "{input} is not above {gt}",
    "greater_than_equal": "{input} is below {ge}",
    "less_than": "{input} is not below {lt}",
    "less_than_equal": "{input} is above {le}",
    "finite_number": "{input} is not a finite number",
    "int_parsing_size": "the number is too large",
    "bool_type": "{input!r} is not true or false",
    "float_type": "{input!r} is not a number",
    "float_parsing": "{input!r} is not a number",
    "int_type": "{input!r} is not a whole number",
    "int_parsing": "{input!r} is not a whole number",
    "int_from_float": "{input} is not a whole number",
    "string_type": "{input!r} is not text",
    "string_too_short": "is empty",
    "string_too_long": "is longer than {max_length} characters",
    "string_pattern_mismatch": "{input!r} is not of the form {pattern}",
    "string_unicode": "is not UTF-8",
    "literal_error": "{input!r} is not one of {expected}",
    "union_tag_invalid": "{tag!r} is not one of {expected_tags}",
    "union_tag_not_found": "is missing its {discriminator}",
    "model_type": "{input!r} is not an object",
    "model_attributes_type": "{input!r} is not an object",
    "dict_type": "{input!r} is not an object",
    "list_type": "{input!r} is not a list",
    "json_invalid": "is not JSON: {error}",
    "tuple_type": "{input!r} is not a list",
    "too_short": "is too short: there must be at least {min_length}",
    "too_long": "is too long: there may be at most {max_length}",
}
"""What is wrong with a value, by pydantic's name of it."""


def faults_of(error: ValidationError, file: str, line: int | None = None) -> list[Fault]:
    """A fault for each wrong value, by the keys that lead to it."""
    return [
        Fault(file, line, ".".join(map(str, wrong["loc"])) or None, word_fault(wrong))
        for wrong in error.errors(include_url=False)
    ]


def word_fault(wrong: ErrorDetails) -> str:
    """What is wrong with a value, in words for the author of the file."""
    known = FAULT_WORDS.get(wrong["type"])
    if known is None:
        return wrong["msg"].removeprefix("Value error, ")
    return known.format(input=_Shortened(wrong["input"]), **wrong.get("ctx", {}))


class _Shortened:
    """A value as it is printed in messages: at most `LONGEST_TEXT` characters."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return _shorten(repr(self.value))

    def __str__(self) -> str:
        return _shorten(str(self.value))


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
