/* A switch that takes NSH off and puts it on, and steers by service path and index, behind up to two VLAN tags. */
#include <core.p4>
#include <pna.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_QINQ = 0x88a8;
const bit<16> ETHERTYPE_NSH = 0x894f;
const bit<8> NSH_ETHERNET = 8w3;
const bit<32> WORLD = 0;

typedef bit<48> mac_t;
typedef bit<24> path_t;

header ethernet_t {
    mac_t destination;
    mac_t source;
    bit<16> ether_type;
}

header nsh_t {
    bit<2> version;
    bit<1> oam;
    bit<1> unassigned;
    bit<6> ttl;
    bit<6> length;
    bit<4> reserved;
    bit<4> md_type;
    bit<8> next_protocol;
    path_t path;
    bit<8> index;
}

header vlan_t {
    bit<3> priority;
    bit<1> drop_eligible;
    bit<12> id;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> header_length;
    bit<8> service;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header ipv4_options_t {
    varbit<320> options;
}

struct headers_t {
    ethernet_t outer;
    nsh_t nsh;
    ethernet_t ethernet;
    vlan_t[2] vlan;
    ipv4_t ipv4;
    ipv4_options_t ipv4_options;
}

struct metadata_t {
    path_t path;
    bit<8> index;
    bit<1> leaves;
}

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  in pna_main_parser_input_metadata_t istd) {
    state start {
        meta.path = 0;
        meta.index = 0;
        meta.leaves = 0;
        transition select(packet.lookahead<ethernet_t>().ether_type) {
            ETHERTYPE_NSH: parse_outer;
            default: parse_ethernet;
        }
    }
    state parse_outer {
        packet.extract(hdr.outer);
        packet.extract(hdr.nsh);
        transition select(hdr.nsh.version, hdr.nsh.next_protocol) {
            (0, NSH_ETHERNET): parse_labelled;
            (_, _): reject;
        }
    }
    state parse_labelled {
        meta.path = hdr.nsh.path;
        meta.index = hdr.nsh.index;
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_QINQ: parse_vlan;
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_vlan {
        packet.extract(hdr.vlan.next);
        transition select(hdr.vlan.last.ether_type) {
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.header_length) {
            0 .. 4: reject;
            5: accept;
            default: parse_options;
        }
    }
    state parse_options {
        packet.extract(hdr.ipv4_options, ((bit<32>) (hdr.ipv4.header_length - 5)) << 5);
        transition accept;
    }
}

control PreControl(in headers_t hdr, inout metadata_t meta, in pna_pre_input_metadata_t istd,
                   inout pna_pre_output_metadata_t ostd) {
    apply {
    }
}

control MainControl(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd,
                    inout pna_main_output_metadata_t ostd) {
    Counter<bit<64>, bit<16>>(4, PNA_CounterType_t.PACKETS) dropped;

    action forged() {
        dropped.count(16w0);
        drop_packet();
    }
    action unknown_path() {
        dropped.count(16w1);
        drop_packet();
    }
    action enter(path_t path, bit<8> index) {
        meta.path = path;
        meta.index = index;
    }
    action to_world(PortId_t port) {
        meta.leaves = 1;
        send_to_port(port);
    }
    action to_server(PortId_t port) {
        hdr.outer.setValid();
        hdr.outer.destination = hdr.ethernet.destination;
        hdr.outer.source = hdr.ethernet.source;
        hdr.outer.ether_type = ETHERTYPE_NSH;
        hdr.nsh.setValid();
        hdr.nsh.version = 0;
        hdr.nsh.oam = 0;
        hdr.nsh.unassigned = 0;
        hdr.nsh.ttl = 63;
        hdr.nsh.length = 2;
        hdr.nsh.reserved = 0;
        hdr.nsh.md_type = 2;
        hdr.nsh.next_protocol = NSH_ETHERNET;
        hdr.nsh.path = meta.path;
        hdr.nsh.index = meta.index;
        send_to_port(port);
    }

    // Packets from the world enter the first path; those that come back carry theirs.
    table classify {
        key = {
            istd.input_port: exact;
            hdr.nsh.isValid(): exact;
        }
        actions = {
            enter;
            forged;
            NoAction;
        }
        default_action = NoAction();
        const entries = {
            ((PortId_t) WORLD, false): enter(1, 255);
            ((PortId_t) WORLD, true): forged();
        }
        size = 4;
    }

    table steer {
        key = {
            meta.path: exact;
            meta.index: exact;
        }
        actions = {
            to_server;
            @defaultonly unknown_path;
            to_world;
        }
        const default_action = unknown_path();
        size = 256;
    }

    apply {
        if (classify.apply().hit || hdr.nsh.isValid()) {
            steer.apply();
        }
        if (meta.leaves == 1) {
            hdr.outer.setInvalid();
            hdr.nsh.setInvalid();
        }
    }
}

control MainDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, in pna_main_output_metadata_t ostd) {
    apply {
        packet.emit(hdr.outer);
        packet.emit(hdr.nsh);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
    }
}

PNA_NIC(MainParser(), PreControl(), MainControl(), MainDeparser()) main;
