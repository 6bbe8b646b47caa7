"""Changes that make an emitted program wrong, and what the checker says of each."""

from collections.abc import Iterator
from typing import NamedTuple

from placer.rack.compiler.p4.emit import p4_text
from tests.placer.rack.compiler.p4.small import SMALL

TEXT = p4_text(SMALL)


class ProgramMutation(NamedTuple):
    """A change to the small program, and words of the fault that it must cause.

    `old`, `new`: what stands in the program, and what replaces it where it stands first.
    """

    what: str
    old: str
    new: str
    says: str

    @property
    def text(self) -> str:
        """The wrong program."""
        assert self.old in TEXT, self.old
        return TEXT.replace(self.old, self.new, 1)


NAMES = r"""
a misspelt header | hdr.ipv4.isValid() | hdr.ipv.isValid() | there is no header ipv
a misspelt field | hdr.ipv4.ttl < 2 | hdr.ipv4.tll < 2 | has no field tll
a misspelt field of the metadata | meta.drop = 1 | meta.dorp = 1 | struct metadata_t has no field dorp
a misspelt field that is looked at ahead | outer_t>().type | outer_t>().tipe | outer_t has no field tipe
a misspelt type | ipv4_t ipv4; | ipv_t ipv4; | there is no type ipv_t
a misspelt argument | meta.port = port; | meta.port = prt; | there is no value prt
a misspelt action of a table |             to; |             too; | there is no action too
a misspelt action of an entry | : to(2) | : too(2) | does not list action too
a misspelt default action | default_action = drop() | default_action = dropp() | dropp
a misspelt register | reasons.read(0) | reason.read(0) | there is no register reason
a misspelt table | route.apply(); | rout.apply(); | there is no table rout
a misspelt state | 0x800: parse_ipv4; | 0x800: parse_ip4; | there is no state parse_ip4
a misspelt match kind | : lpm; | : ipm; | no match kind ipm
a misspelt block | MainDeparser()) main | MainDeparse()) main | expected 'MainDeparser'
a header declared twice | header ethernet_t { | header outer_t { | outer_t is declared already, in line
a field of a header twice | bit<8> ttl; | bit<8> ttl; bit<8> ttl; | has field ttl twice
a field of the headers twice | ipv4_t ipv4; | ipv4_t ipv4; ipv4_t ipv4; | has field ipv4 twice
an action twice | action drop( | action to( | to is declared already
a state twice | state parse_options | state parse_ipv4 | parse_ipv4 is declared already
a parameter twice | to(bit<32> port) | to(bit<32> port, bit<32> port) | has field port twice
an action listed twice |             to; |             to;\n            to; | lists action to twice
a name of the architecture | action drop( | action recirculate( | declared already, by the architecture
a name of every program | table route { | table MainDeparser { | declared already, by every program
a parameter that hides another name | (bit<32> port) | (bit<32> sent) | sent is declared already
an action is missing |     action entered() {\n    }\n |  | there is no action entered
a table instead of an action |             to; |             route; | there is no action route
a register that nothing uses | reasons; | reasons;\n    Register<bit<64>, bit<32>>(1, 0) spare; | never used
an action that nothing uses |     action drop( |     action spare() { }\n    action drop( | spare is never used
a table that nothing applies |                 route.apply();\n |  | route is never used
a type that nothing uses | struct headers_t | header a_t { bit<8> a; }\nstruct headers_t | a_t is never used
metadata that nothing uses | bit<8> drop; | bit<8> drop; bit<8> spare; | field spare of struct metadata_t is never
"""
"""Names that stand for nothing, for two things, or for something else, or that nothing uses.

Here and below: what it is, what stands there, what replaces it, words of the fault. What is no emitted text at all is
refused by the grammar, which `test_check.py` tries by leaving tokens out.
"""

TYPES = r"""
a wider field | bit<16> control_; | bit<24> control_; | expected bit<24>, found bit<16>
a narrower field | bit<48> source;\n    bit<16> type;\n}\n\nheader ipv4 |
    bit<48> source;\n    bit<8> type;\n}\n\nheader ipv4 | found bit<8>
a header of no whole bytes | bit<16> control_; | bit<13> control_; | not a whole number of bytes
a varbit of no whole bytes | varbit<320> | varbit<321> | not a whole number of bytes
two varbits in a header | varbit<320> bytes; | varbit<320> bytes; varbit<8> more; | more than one varbit
a header without fields |     varbit<320> bytes;\n |  | has no fields
a narrower parameter | translate(bit<16> state | translate(bit<8> state | found bit<8>
a number that does not fit a field | meta.drop = 1; | meta.drop = 0x100; | 256 does not fit bit<8>
a number that does not fit a case | 0x800: parse_ipv4 | 0x10800: parse_ipv4 | does not fit bit<16>
a number that does not fit a key | 0xa010000 &&& | 0x10a010000 &&& | does not fit bit<32>
a number that does not fit an action | : to(2) | : to(0x100000002) | does not fit bit<32>
a number that does not fit a cast | (bit<16>) meta.number} | (bit<16>) 0x10000} | 65536 does not fit bit<16>
bits from bool | meta.drop = 1; | meta.drop = hdr.ipv4.isValid(); | expected bit<8>, found bool
bits as a condition | if (meta.drop == 1) | if (meta.drop) | expected bool, found bit<8>
a number as a condition | if (meta.drop == 1) | if (1) | expected bool, found a number
a sum of different widths | - (bit<32>) meta.key | - meta.key | expected bit<32>, found bit<16>
a sum of bool | = meta.key << 2 | = hdr.ipv4.isValid() + 1 | '+' needs bit<N> on its left, found bool
a sum of numbers | = meta.key << 2 | = 1 + 2 | '+' needs bit<N> on its left, found a number
a comparison of different types | meta.drop == 1 | meta.drop == hdr.ipv4.isValid() | found bool
a comparison of different widths | (bit<32>) meta.key == meta.big | meta.key == meta.big | found bit<32>
a cast between kinds | (bit<32>) istd.input_port | (bit<32>) hdr.ipv4.isValid() | cannot cast bool to bit<32>
a port cast to another width | (bit<32>) istd.input_port | (bit<16>) istd.input_port | cannot cast PortId_t
a port without cast | (bit<32>) istd.input_port | istd.input_port | expected bit<32>, found PortId_t
a cast to a port from another width | (PortId_t) meta.port | (PortId_t) meta.key | expected bit<32>
a shift by too much | meta.key << 2 | meta.key << 16 | always 0
a shift by bool | meta.key << 2 | meta.key << hdr.ipv4.isValid() | shifts by bit<N> or a number, found bool
a list too long | {(bit<16>) meta.number} | {(bit<16>) meta.number, 1} | takes 1 arguments, found 2
a list of other types | {(bit<16>) meta.number} | {meta.number} | expected bit<16>, found bit<32>
a member of no header | meta.drop = 1; | meta.drop.x = 1; | there is no value meta.drop.x
a field of bits of no width | bit<8> ttl; | bit<0> ttl; | a width is 1 to
a cast to bits of no width | (bit<16>) meta.number} | (bit<0>) meta.number} | a width is 1 to
a varbit as a value | hdr.outer.type = 1; | hdr.outer.type = hdr.options.bytes; | found varbit<320>
a header as a value | = hdr.ethernet.type | = hdr.ethernet | hdr.ethernet is a header, no value
"""
"""Values of other types or widths than where they stand."""

CALLS = r"""
an argument too few | : to(2) | : to() | takes 1 arguments, found 0
an argument too many | default_action = drop() | default_action = drop(1) | takes 0 arguments, found 1
an index of another type | reasons.read(0) | reasons.read(hdr.ipv4.control_) | expected bit<32>, found bit<16>
a number of another type | reasons.read(0) + 1 | hdr.ipv4.control_ | expected bit<64>, found bit<16>
what the architecture gives is written | meta.port = (bit | istd.input_port = (bit | cannot be written
an argument of an action is written | meta.port = port; | port = 1; | port cannot be written
a table applied in an action | meta.drop = 1; | filter.apply(); | an action applies no tables
an entry added outside an action | meta.drop = 0; |
    add_entry(action_name = "to", action_params = {1}, expire_time_profile_id = (ExpireTimeProfileId_t) 1); |
    add_entry stands only in an action
a register of no size | (2, 0) entered_ | (0, 0) entered_ | has no elements
an index beyond a register | reasons.read(0) | reasons.read(1) | 1 elements, but no 1
a first number that does not fit | (1, 0x400) | (1, 0x10000000000000000) | does not fit bit<64>
metadata that nothing writes |         meta.table_ = 1;\n |  | nothing gives it a value
a name of no parameter | action_params = | params = | expected 'action_params'
a header extracted without its length | , ((bit<32>) (hdr.ipv4.version_words & 0xf) - 5) << 5 |  | has a varbit
a length of another width | ((bit<32>) (hdr.ipv4.version_words | ((bit<16>) (hdr.ipv4.version_words | the length of
a length for a fixed header | extract(hdr.ipv4) | extract(hdr.ipv4, 32) | has no varbit field
"""
"""Calls, registers and what may be written."""

TABLES = r"""
a default that is not listed |             to;\n            drop; |             to; | does not list action drop
no actions |             to;\n            drop;\n |  | has no actions
a default of table entries only | @defaultonly learn | @tableonly learn | expected @defaultonly
an action to learn of the default only | @tableonly translate | @defaultonly translate | expected @tableonly
an annotation where nothing is learnt |             to; |             @tableonly to; | expected no annotation
no annotation where something is learnt | @tableonly translate | translate | found no annotation
a value too few for the keys | (0x5, _) | (0x5) | expected 2 values
a mask of an exact key | : lpm | : exact | takes no mask
any value of an exact key | meta.table_: ternary | meta.table_: exact | needs one value
a mask with a hole | 0xa010000 &&& 0xffff0000 | 0xa000000 &&& 0xff00ff00 | mask of a prefix
a mask that does not fit | &&& 0xffff0000 | &&& 0x1ffff0000 | does not fit bit<32>
a value outside its mask | 0xa010000 &&& 0xffff0000 | 0xa010000 &&& 0xff000000 | outside its mask
two equal entries | 0xa010000 &&& 0xffff0000 | 0xa000000 &&& 0xff000000 | has the same values
a table of no size | size = 64; | size = 0; | size is 1 to
fewer rooms than entries | size = 3; | size = 1; | has 2 entries
a header as a key | hdr.ipv4.source: lpm | hdr.ipv4: lpm | hdr.ipv4 is a header, no value
a port as a key | meta.key: ternary | istd.input_port: ternary | a key cannot be PortId_t
a bool as a key | meta.key: ternary | hdr.ipv4.isValid(): ternary | expected ':'
two prefix keys | meta.key: ternary;\n            meta.table_: ternary; |
    meta.key: lpm;\n            meta.table_: lpm; | more than one key of kind lpm
a table applied twice | route.apply(); | route.apply(); route.apply(); | second time
a table applied in both of two ifs | hdr.ipv4.ttl = hdr | if (meta.drop == 0) { nat.apply(); } hdr.ipv4.ttl = hdr |
    second time
a table applied behind a branch | hdr.ipv4.ttl = hdr | nat.apply(); hdr.ipv4.ttl = hdr | second time
exclusive tables on one path | route.apply(); | route.apply(); filter.apply(); | may reach both
exclusive tables behind each other |             } else {\n                nat |
                }\n            if (hdr.ipv4.ttl > 1) {\n                nat | may reach both
exclusive with no table | "filter", "nat" | "filter", "nat_" | there is no other table nat_
exclusive with itself | "filter", "nat" | "filter", "route" | there is no other table route
a learning table with a prefix | hdr.ipv4.source: exact | hdr.ipv4.source: ternary | must be exact
a learning table without keys |         key = {\n            hdr.ipv4.source: exact;\n        }\n |  | must be exact
a learning table with add_on_miss false | add_on_miss = true | add_on_miss = false | expected 'true'
a table that learns without add_on_miss |             drop;\n |             drop;\n            learn;\n |
    has no add_on_miss
a learning table that never learns | default_action = learn() | default_action = translate(0) | must call add_entry
an action that learns, but is no default | @defaultonly learn;\n        }\n        const default_action = learn(); |
    @tableonly learn;\n @defaultonly entered;\n        }\n        const default_action = entered(); |
    action learn calls add_entry, but is not the default of nat
learning another table's action | "translate" | "to" | does not list action to, which add_entry names
learning an action that is not there | "translate" | "translat" | there is no action translat
a timeout without learning | size = 64; | default_idle_timeout_for_data_plane_added_entries = 1; size = 64; |
    expected 'size'
a name for the control plane |     table filter |     @name("filter") table filter | expected 'mutually_exclusive'
"""
"""Tables: keys, actions, entries, and where they are applied."""

PARSERS = r"""
no state start | state start | state begin | has no state start
a state is removed |
        state parse_options {\n
            packet.extract(hdr.options, ((bit<32>) (hdr.ipv4.version_words & 0xf) - 5) << 5);\n
            transition accept;\n    }\n |
     | there is no state parse_options
a state that is never reached | 0x800: parse_ipv4; | 0x800: accept; | state parse_ipv4 is never reached
two equal cases | (0x6 &&& 0xf, 0x40): parse_options; | (0x6, 0x40): parse_options;\n (0x6, 0x40): accept; |
    has the same values
a case that takes all | (0x6 &&& 0xf, 0x40) | (_, _) | no packet comes behind this case
a value too many for the keys | (0x6 &&& 0xf, 0x40) | (0x6 &&& 0xf, 0x40, 1) | expected 2 values
a case of a bool | select(hdr.ethernet.type) | select(hdr.ethernet.isValid()) | a key of select cannot be bool
a state called accept | state parse_options | state accept | a state of every parser
a packet that is rejected | default: accept; | default: reject; | there is no state reject
a loop over a header | transition parse_ethernet; | transition parse_outer; | extracted twice
a loop that reads nothing | 0x894f: parse_outer; | 0x894f: start; | comes back to itself and reads nothing
a header read before it is extracted | packet.extract(hdr.ipv4);\n |  | nothing extracts it
a header extracted after its use | packet.extract(hdr.ipv4);\n        transition | transition | before it is extracted
a header that one path lacks | transition parse_ethernet; | transition parse_options; | not extracted on every path
a header extracted in two states | packet.extract(hdr.ipv4) | packet.extract(hdr.ethernet) | extracted twice
"""
"""States, transitions, and what is extracted."""

PACKAGE = r"""
no package | PNA_NIC(MainParser(), PreControl(), MainControl(), MainDeparser()) main; |  | expected 'PNA_NIC'
a package of another name | ) main; | ) nic; | expected 'main'
a block too few | PreControl(),  |  | expected 'PreControl'
blocks exchanged | PreControl(), MainControl() | MainControl(), PreControl() | expected 'PreControl'
a control instead of a parser | (MainParser(), | (MainControl(), | expected 'MainParser'
a parameter of another direction | inout headers_t hdr | in headers_t hdr | expected 'inout'
a header that is not emitted |         packet.emit(hdr.options);\n |  | never emitted
a header emitted twice | emit(hdr.options); | emit(hdr.options); packet.emit(hdr.options); | emitted twice
headers emitted in another order | packet.emit(hdr.ipv4);\n        packet.emit(hdr.options); |
    packet.emit(hdr.options);\n        packet.emit(hdr.ipv4); | but extracted before it
a header that is never valid | packet.extract(hdr.ipv4); |  | header ipv4 is emitted, but never valid
a second program | ) main; | ) main;\nstruct a { } | expected the end of the program
"""
"""The package, and what only the whole program shows."""


def _read(table: str) -> Iterator[ProgramMutation]:
    """The mutations of a table; a row goes on in lines that are indented."""
    for row in table.strip("\n").replace(" |\n    ", " | ").replace("\\n\n    ", "\\n").split("\n"):
        yield ProgramMutation(*(field.replace("\\n", "\n") for field in row.split(" | ")))


MUTATIONS = tuple(row for table in (NAMES, TYPES, CALLS, TABLES, PARSERS, PACKAGE) for row in _read(table))
