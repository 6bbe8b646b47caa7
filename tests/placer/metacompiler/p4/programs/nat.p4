// Source NAT: flows are learnt by the table itself when their first packet misses.
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
    bit<32> address;
    bit<16> port;
    bool changed;
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
    const bit<32> FIRST_ADDRESS = 32w0xcb007101;
    const bit<16> FIRST_PORT = 1024;
    Register<bit<32>, bit<1>>(1, 32w0) next_port;

    action translate(bit<32> address, bit<16> port) {
        hdr.ipv4.source = address;
        hdr.ports.source = port;
        meta.changed = true;
        restart_expire_timer();
    }

    action learn() {
        bit<32> number = next_port.read(0);
        next_port.write(0, number + 1);
        meta.address = FIRST_ADDRESS + (number >> 15);
        meta.port = FIRST_PORT + (bit<16>) (number[14:0]);
        bool added = add_entry(action_name = "translate",
                               action_params = {meta.address, meta.port},
                               expire_time_profile_id = (ExpireTimeProfileId_t) 1);
        if (added) {
            hdr.ipv4.source = meta.address;
            hdr.ports.source = meta.port;
        } else {
            drop_packet();
        }
        meta.changed = added;
    }

    table chain2__nat {
        key = {
            hdr.ipv4.source: exact;
            hdr.ports.source: exact;
            hdr.ipv4.protocol: exact;
        }
        actions = {
            @tableonly translate;
            @defaultonly learn;
        }
        add_on_miss = true;
        idle_timeout_with_auto_delete = true;
        default_idle_timeout_for_data_plane_added_entries = 1;
        const default_action = learn();
        size = 65536;
    }

    apply {
        meta.changed = false;
        send_to_port((PortId_t) 0);
        if (hdr.ports.isValid()) {
            chain2__nat.apply();
            if (!meta.changed) {
                drop_packet();
                return;
            }
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
