// Longest prefix match, new addresses of Ethernet, one hop less, the checksum kept right (RFC 1624).
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
    bit<16> hop;
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
    InternetChecksum() checksum;

    action drop() {
        drop_packet();
    }

    action to_hop(bit<16> hop, PortId_t port) {
        meta.hop = hop;
        send_to_port(port);
    }

    action rewrite() {
        bit<16> before = hdr.ipv4.ttl ++ hdr.ipv4.protocol;
        hdr.ethernet.source = 48w0x020000000001;
        hdr.ethernet.destination = 48w0x020000010000 | (bit<48>) meta.hop;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        checksum.clear();
        checksum.set_state(~hdr.ipv4.checksum);
        checksum.subtract(before);
        checksum.add({hdr.ipv4.ttl, hdr.ipv4.protocol});
        hdr.ipv4.checksum = checksum.get();
    }

    table chain1__routes {
        key = {
            hdr.ipv4.destination: lpm;
        }
        actions = {
            to_hop;
            drop;
        }
        default_action = drop();
        const entries = {
            0x0a000000 &&& 0xff000000: to_hop(1, (PortId_t) 1);
            0x0a010000 &&& 0xffff0000: to_hop(2, (PortId_t) 2);
            0xc0a80001: to_hop(3, (PortId_t) 3);
        }
        size = 1024;
    }

    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
        } else if (chain1__routes.apply().hit) {
            rewrite();
        }
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
