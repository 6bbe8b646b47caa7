// A filter: ternary addresses, ranges of ports, entries with priorities.
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

struct metadata_t {
    bool permitted;
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
    Counter<bit<64>, bit<8>>(256, PNA_CounterType_t.PACKETS_AND_BYTES) hits;

    action permit(bit<8> rule) {
        hits.count(rule);
        meta.permitted = true;
    }

    action deny(bit<8> rule) {
        hits.count(rule);
        meta.permitted = false;
    }

    @name("chain0/acl")
    table chain0__acl {
        key = {
            hdr.ipv4.source: ternary @name("source");
            hdr.ipv4.destination: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ports.source: range;
            hdr.ports.destination: range;
        }
        actions = {
            permit;
            deny;
        }
        const default_action = permit(0);
        const entries = {
            (0x0a000000 &&& 0xff000000, _, 6, 0 .. 65535, 80 .. 443): permit(1) @priority(30);
            (0x0a000000 &&& 0xff000000, _, _, 1024 .. 65535, _): deny(2) @priority(20);
            (_, 0xc0a80100 &&& 0xffffff00, 17, _, 53): deny(3) @priority(10);
            (_, _, _, _, _): permit(4) @priority(1);
        }
        size = 64;
    }

    apply {
        meta.permitted = true;
        if (hdr.ipv4.isValid() && hdr.ports.isValid()) {
            chain0__acl.apply();
        }
        if (!meta.permitted) {
            drop_packet();
            exit;
        }
        send_to_port((PortId_t) 1);
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
