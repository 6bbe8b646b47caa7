"""What core.p4 and pna.p4 declare, as far as programs of the subset may use it.

After the P4-16 core library and the Portable NIC Architecture (PNA) in the variant for DPDK, whose package takes
main parser, pre control, main control and main deparser.
"""

from __future__ import annotations

from dataclasses import dataclass

from placer.metacompiler.p4.checker.rules.types import (
    BOOL,
    ERROR,
    STRING,
    VOID,
    BitsType,
    DistinctType,
    EnumeratedType,
    ExternType,
    FieldsType,
    P4Type,
)

INCLUDES = {"core.p4": "core", "pna.p4": "pna"}

ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)
MATCH_KINDS = ("exact", "ternary", "lpm", "range")

_DISTINCT = {
    "PortId_t": 32,
    "InterfaceId_t": 32,
    "MulticastGroup_t": 32,
    "MirrorSessionId_t": 16,
    "MirrorSlotId_t": 8,
    "ClassOfService_t": 8,
    "PacketLength_t": 16,
    "MulticastInstance_t": 16,
    "Timestamp_t": 64,
    "FlowId_t": 32,
    "ExpireTimeProfileId_t": 8,
    "PassNumber_t": 3,
    "SecurityAssocId_t": 32,
}
DISTINCT = {name: DistinctType(name, BitsType(width)) for name, width in _DISTINCT.items()}
SAME = {name.removesuffix("_t") + "Uint_t": BitsType(width) for name, width in _DISTINCT.items()}

ENUMERATIONS = {
    name: EnumeratedType(name, tuple(members.split()))
    for name, members in {
        "PNA_IdleTimeout_t": "NO_TIMEOUT NOTIFY_CONTROL",
        "PNA_HashAlgorithm_t": "IDENTITY CRC32 CRC32_CUSTOM CRC16 CRC16_CUSTOM ONES_COMPLEMENT16 TOEPLITZ"
        " TARGET_DEFAULT",
        "PNA_CounterType_t": "PACKETS BYTES PACKETS_AND_BYTES",
        "PNA_Direction_t": "NET_TO_HOST HOST_TO_NET",
        "PNA_PacketPath_t": "FROM_NET_PORT FROM_NET_LOOPEDBACK FROM_NET_RECIRCULATED FROM_HOST FROM_HOST_LOOPEDBACK"
        " FROM_HOST_RECIRCULATED",
    }.items()
}

_WHERE_FROM: dict[str, P4Type] = {
    "direction": ENUMERATIONS["PNA_Direction_t"],
    "pass": DISTINCT["PassNumber_t"],
    "loopedback": BOOL,
    "input_port": DISTINCT["PortId_t"],
}
_FIELDS: dict[str, dict[str, P4Type]] = {
    "pna_pre_input_metadata_t": {**_WHERE_FROM, "parser_error": ERROR},
    "pna_pre_output_metadata_t": {
        "decrypt": BOOL,
        "said": DISTINCT["SecurityAssocId_t"],
        "decrypt_start_offset": BitsType(16),
    },
    "pna_main_parser_input_metadata_t": _WHERE_FROM,
    "pna_main_input_metadata_t": {
        **_WHERE_FROM,
        "timestamp": DISTINCT["Timestamp_t"],
        "parser_error": ERROR,
        "class_of_service": DISTINCT["ClassOfService_t"],
    },
    "pna_main_output_metadata_t": {"class_of_service": DISTINCT["ClassOfService_t"]},
}
STRUCTS = {name: FieldsType("struct", name, fields) for name, fields in _FIELDS.items()}

TYPES: dict[str, P4Type] = {
    **DISTINCT,
    **SAME,
    **ENUMERATIONS,
    **STRUCTS,
    "ParserError_t": ERROR,
    "packet_in": ExternType("packet_in"),
    "packet_out": ExternType("packet_out"),
}


@dataclass(frozen=True, slots=True)
class TypeVariable:
    """Stands for a type: of an object (`T` of `Register<T, S>`), or of one call."""

    name: str


SignatureType = P4Type | TypeVariable


@dataclass(frozen=True, slots=True)
class SignatureParameter:
    """A parameter of something the architecture offers.

    Parameters
    ----------
    direction
        `in`, `out`, `inout`, or empty: a value known before any packet comes.
    wants
        `header`, `varbit header`, `words` (whole words of 16 bits), or empty: any value of the type.
    """

    name: str
    type: SignatureType
    direction: str = "in"
    wants: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """A function, method or constructor of the architecture.

    Parameters
    ----------
    types
        Type variables that a call sets, by `<...>` or by its arguments.
    within
        Where it may stand: `parser`, `control`, `action`, `deparser`, `state`; empty: anywhere.
    """

    name: str
    parameters: tuple[SignatureParameter, ...] = ()
    result: SignatureType = VOID
    types: tuple[TypeVariable, ...] = ()
    within: frozenset[str] = frozenset()


T, S, D = TypeVariable("T"), TypeVariable("S"), TypeVariable("D")
_PARSER = frozenset({"parser"})
_MAIN = frozenset({"control", "action"})
_WORD = BitsType(32)


def _in(name: str, kind: SignatureType, wants: str = "") -> SignatureParameter:
    return SignatureParameter(name, kind, "in", wants)


def _known(name: str, kind: SignatureType) -> SignatureParameter:
    return SignatureParameter(name, kind, "")


@dataclass(frozen=True, slots=True)
class ExternDeclaration:
    """An object type of the architecture.

    Parameters
    ----------
    types
        Its type parameters, in order.
    constructors
        None if programs cannot make one.
    """

    types: tuple[TypeVariable, ...]
    constructors: tuple[Signature, ...]
    methods: tuple[Signature, ...]


EXTERNS = {
    "packet_in": ExternDeclaration(
        (),
        (),
        (
            Signature("extract", (SignatureParameter("hdr", T, "out", "header"),), VOID, (T,), _PARSER),
            Signature(
                "extract",
                (
                    SignatureParameter("variableSizeHeader", T, "out", "varbit header"),
                    _in("variableFieldSizeInBits", _WORD),
                ),
                VOID,
                (T,),
                _PARSER,
            ),
            Signature("lookahead", (), T, (T,), _PARSER),
            Signature("advance", (_in("sizeInBits", _WORD),), VOID, (), _PARSER),
            Signature("length", (), _WORD, (), _PARSER),
        ),
    ),
    "packet_out": ExternDeclaration(
        (), (), (Signature("emit", (_in("hdr", T, "emitted"),), VOID, (T,), frozenset({"deparser"})),)
    ),
    "Register": ExternDeclaration(
        (T, S),
        (
            Signature("Register", (_known("size", _WORD),)),
            Signature("Register", (_known("size", _WORD), _known("initial_value", T))),
        ),
        (
            Signature("read", (_in("index", S),), T, (), _MAIN),
            Signature("write", (_in("index", S), _in("value", T)), VOID, (), _MAIN),
        ),
    ),
    "Counter": ExternDeclaration(
        (T, S),
        (Signature("Counter", (_known("n_counters", _WORD), _known("type", ENUMERATIONS["PNA_CounterType_t"]))),),
        (
            Signature("count", (_in("index", S),), VOID, (), _MAIN),
            Signature("count", (_in("index", S), _in("pkt_len", _WORD)), VOID, (), _MAIN),
        ),
    ),
    "Hash": ExternDeclaration(
        (T,),
        (Signature("Hash", (_known("algo", ENUMERATIONS["PNA_HashAlgorithm_t"]),)),),
        (
            Signature("get_hash", (_in("data", D, "data"),), T, (D,), _MAIN),
            Signature("get_hash", (_in("base", S), _in("data", D, "data"), _in("max", S)), T, (S, D), _MAIN),
        ),
    ),
    "InternetChecksum": ExternDeclaration(
        (),
        (Signature("InternetChecksum"),),
        (
            Signature("clear"),
            Signature("add", (_in("data", D, "words"),), VOID, (D,)),
            Signature("subtract", (_in("data", D, "words"),), VOID, (D,)),
            Signature("get", (), BitsType(16)),
            Signature("get_state", (), BitsType(16)),
            Signature("set_state", (_in("checksum_state", BitsType(16)),)),
        ),
    ),
}

FUNCTIONS = (
    Signature("verify", (_in("check", BOOL), _in("toSignal", ERROR)), VOID, (), _PARSER),
    Signature("drop_packet", (), VOID, (), _MAIN),
    Signature("send_to_port", (_in("dest_port", DISTINCT["PortId_t"]),), VOID, (), _MAIN),
    Signature("recirculate", (), VOID, (), _MAIN),
    Signature(
        "add_entry",
        (
            _known("action_name", STRING),
            _in("action_params", T, "data"),
            _in("expire_time_profile_id", DISTINCT["ExpireTimeProfileId_t"]),
        ),
        BOOL,
        (T,),
        frozenset({"action"}),
    ),
    Signature("allocate_flow_id", (), DISTINCT["FlowId_t"], (), _MAIN),
    Signature(
        "set_entry_expire_time",
        (_in("expire_time_profile_id", DISTINCT["ExpireTimeProfileId_t"]),),
        VOID,
        (),
        frozenset({"action"}),
    ),
    Signature("restart_expire_timer", (), VOID, (), frozenset({"action"})),
)
