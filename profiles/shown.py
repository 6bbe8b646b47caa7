"""How what holds much is shown in a Python session or a notebook: its fields, each in a few words."""

from collections.abc import Collection, Mapping, Set
from html import escape

LONGEST_TEXT = 2_000  # characters of a whole object
LONGEST_FIELD = 120
FEW_ITEMS = 3  # collections with more items are shown by their number


class Shown:
    """A base of dataclasses (with `repr=False`) and of pydantic models that hold much. `repr` of an evaluation of 500
    arrivals would otherwise have a million characters."""

    __slots__ = ()

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_in_short(value)}" for name, value in self._fields().items())
        return _cut(f"{type(self).__name__}({fields})", LONGEST_TEXT)

    __str__ = __repr__  # pydantic's own lists all fields

    def _repr_html_(self) -> str:
        """A table with a row per field, as notebooks show it."""
        rows = (
            f"<tr><th>{escape(name)}</th><td>{escape(_in_short(value))}</td></tr>"
            for name, value in self._fields().items()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{''.join(rows)}</table>"

    def _fields(self) -> dict[str, object]:
        names: Mapping[str, object] = getattr(type(self), "__dataclass_fields__", None) or type(self).model_fields  # type: ignore[attr-defined]
        return {name: getattr(self, name) for name in names}


def _in_short(value: object) -> str:
    """A value in at most `LONGEST_FIELD` characters."""
    kind = type(value).__name__
    if hasattr(value, "shape"):
        return f"<{kind} of shape {value.shape}>"
    if isinstance(value, (Mapping, Set, list, tuple)) and len(value) > FEW_ITEMS:
        return f"<{kind} of {len(value):,}>"
    return _cut(" ".join(_format_value(value).split()), LONGEST_FIELD)


def _format_value(value: object) -> str:
    """A value as Python writes it, items of a collection in short."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_in_short(item)}' for key, item in value.items())}}}"
    if type(value) in (list, tuple) and isinstance(value, Collection):
        items = ", ".join(map(_in_short, value))
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    return repr(value)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"
