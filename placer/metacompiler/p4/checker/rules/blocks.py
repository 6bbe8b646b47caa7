"""The package of pna.p4: the parser and the controls that it wants."""

from __future__ import annotations

from dataclasses import dataclass

from placer.metacompiler.p4.checker.rules.architecture import STRUCTS, TYPES, SignatureParameter, TypeVariable

PACKAGE = "PNA_NIC"

_HEADERS, _METADATA = TypeVariable("MH"), TypeVariable("MM")
_PRE_HEADERS, _PRE_METADATA = TypeVariable("PH"), TypeVariable("PM")


@dataclass(frozen=True, slots=True)
class PackageBlock:
    """A parser or control that the package wants."""

    name: str
    word: str
    role: str
    parameters: tuple[SignatureParameter, ...]


BLOCKS = (
    PackageBlock(
        "main_parser",
        "parser",
        "parser",
        (
            SignatureParameter("pkt", TYPES["packet_in"], ""),
            SignatureParameter("main_hdr", _HEADERS, "out"),
            SignatureParameter("main_user_meta", _METADATA, "inout"),
            SignatureParameter("istd", STRUCTS["pna_main_parser_input_metadata_t"], "in"),
        ),
    ),
    PackageBlock(
        "pre_control",
        "control",
        "control",
        (
            SignatureParameter("pre_hdr", _PRE_HEADERS, "in"),
            SignatureParameter("pre_user_meta", _PRE_METADATA, "inout"),
            SignatureParameter("istd", STRUCTS["pna_pre_input_metadata_t"], "in"),
            SignatureParameter("ostd", STRUCTS["pna_pre_output_metadata_t"], "inout"),
        ),
    ),
    PackageBlock(
        "main_control",
        "control",
        "control",
        (
            SignatureParameter("main_hdr", _HEADERS, "inout"),
            SignatureParameter("main_user_meta", _METADATA, "inout"),
            SignatureParameter("istd", STRUCTS["pna_main_input_metadata_t"], "in"),
            SignatureParameter("ostd", STRUCTS["pna_main_output_metadata_t"], "inout"),
        ),
    ),
    PackageBlock(
        "main_deparser",
        "control",
        "deparser",
        (
            SignatureParameter("pkt", TYPES["packet_out"], ""),
            SignatureParameter("main_hdr", _HEADERS, "in"),
            SignatureParameter("main_user_meta", _METADATA, "in"),
            SignatureParameter("ostd", STRUCTS["pna_main_output_metadata_t"], "in"),
        ),
    ),
)
