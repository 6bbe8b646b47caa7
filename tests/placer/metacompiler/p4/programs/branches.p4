// A branch by hash, two NFs side by side, and a merge behind both.
#include <core.p4>
#include <pna.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

header ipv4_t {
    bit<8> version_words;
    bit<8> service;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header ports_t {
    bit<16> source;
    bit<16> destination;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ports_t ports;
}

typedef bit<8> branch_t;
const branch_t LEFT = 1;
const branch_t RIGHT = 2;

struct metadata_t {
    branch_t branch;
    bit<16> hash;
    bit<1> again;
}

parser MainParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    in pna_main_parser_input_metadata_t istd)
{
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version_words == 0x45, error.ParserInvalidArgument);
        transition select(hdr.ipv4.fragment & 0x1fff, hdr.ipv4.protocol) {
            (0, 6): parse_ports;
            (0, 17): parse_ports;
            default: accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control PreControl(
    in headers_t hdr,
    inout metadata_t meta,
    in pna_pre_input_metadata_t istd,
    inout pna_pre_output_metadata_t ostd)
{
    apply { }
}

control MainControl(
    inout headers_t hdr,
    inout metadata_t meta,
    in pna_main_input_metadata_t istd,
    inout pna_main_output_metadata_t ostd)
{
    Hash<bit<16>>(PNA_HashAlgorithm_t.CRC16) hasher;
    Register<bit<32>, bit<8>>(256) entered;

    action count(in bit<8> index) {
        entered.write(index, entered.read(index) + 1);
    }

    action choose(branch_t branch) {
        meta.branch = branch;
    }

    action mark(bit<6> service) {
        hdr.ipv4.service[7:2] = service;
    }

    action drop() {
        drop_packet();
    }

    // chain3/match
    @pragma stage 0
    table chain3__match {
        key = {
            meta.hash: range;
        }
        actions = {
            choose;
        }
        const default_action = choose(RIGHT);
        const entries = {
            0 .. 21844: choose(LEFT);
            21845 .. 65535: choose(RIGHT);
        }
    }

    // chain3/left
    @mutually_exclusive("chain3__right")
    table chain3__left {
        key = {
            hdr.ipv4.source: exact;
        }
        actions = {
            mark;
            drop;
        }
        default_action = drop();
        size = 16;
    }

    // chain3/right
    table chain3__right {
        key = {
            hdr.ipv4.destination: exact;
        }
        actions = {
            mark;
            drop;
        }
        default_action = mark(6w0x2e);
        size = 16;
    }

    // chain3/merge, behind both
    table chain3__merge {
        key = {
            hdr.ipv4.service & 0xfc: exact;
            meta.again: exact;
        }
        actions = {
            drop;
            NoAction;
        }
        default_action = NoAction();
        const entries = {
            (8, 0): drop();
        }
        size = 4;
    }

    apply {
        bit<16> ports = 0;
        if (hdr.ports.isValid()) {
            ports = hdr.ports.source ^ hdr.ports.destination;
        }
        if (hdr.ipv4.isValid()) {
            meta.again = istd.direction == PNA_Direction_t.HOST_TO_NET ? 1w1 : 1w0;
            meta.hash = hasher.get_hash({hdr.ipv4.source, hdr.ipv4.destination, ports, hdr.ipv4.protocol});
            chain3__match.apply();
            if (meta.branch == LEFT) {
                count(0);
                chain3__left.apply();
            } else {
                count(1);
                chain3__right.apply();
            }
            if (meta.branch == 1 || meta.branch == 2) {
                chain3__merge.apply();
            }
        }
        send_to_port((PortId_t) (bit<32>) meta.hash[7:0]);
    }
}

control MainDeparser(
    packet_out packet,
    in headers_t hdr,
    in metadata_t meta,
    in pna_main_output_metadata_t ostd)
{
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

PNA_NIC(MainParser(), PreControl(), MainControl(), MainDeparser()) main;
