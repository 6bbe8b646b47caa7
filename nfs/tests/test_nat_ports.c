#include "tests/nat_rig.h"

/* All endpoints of a host have one external address, and ports keep their parity. */
RIG_TEST(hosts_keep_one_address_and_parity)
{
	struct packet_spec packet_spec = udp;
	uint32_t address;
	bool used[16] = {0};

	rig_make(rig, "NAT", NULL, 0);
	address = offered(rig, &packet_spec, 1).source;
	for (uint16_t port = 1; port < 500; port++) {
		struct ends left;

		packet_spec.source_port = port;
		left = offered(rig, &packet_spec, 1);
		assert_int_equal(left.source, address);
		assert_int_equal(left.source_port & 1, port & 1);
	}
	for (uint32_t i = 0; i < 500; i++) {
		packet_spec.source = host + i;
		used[offered(rig, &packet_spec, 1).source - outside] = true;
	}
	for (size_t i = 0; i < RTE_DIM(used); i++)
		assert_true(used[i]);
}

/* No two endpoints share an external port; without a free port no mapping is made. */
RIG_TEST(ports_are_not_shared)
{
	static bool used[65536];
	struct packet_spec packet_spec = udp;

	RIG_MAKE(rig, "NAT", {"addresses", 1}, {"sessions", 1 << 17});
	for (uint32_t i = 0; i < 64512; i++) {
		uint16_t port;

		packet_spec.source = host + i;
		packet_spec.source_port = (uint16_t)(i / 3);
		port = offered(rig, &packet_spec, 1).source_port;
		assert_false(used[port]);
		used[port] = true;
	}
	for (uint32_t i = 1; i <= 200000; i++) { /* more than there are ports or entries */
		packet_spec.source = host - i;
		rig_frees(rig, packet_from_spec(rig, &packet_spec), 1);
	}
	assert_counts(rig, {"exhausted", 200000}, {"full", 0});
	packet_spec.protocol = IPPROTO_TCP; /* which has its own */
	offered(rig, &packet_spec, 1);
}

/* A host gets so many ports of each protocol, and another one when a mapping has ended. */
RIG_TEST(a_host_leaves_ports_to_others)
{
	struct packet_spec packet_spec = udp, other = udp;

	RIG_MAKE(rig, "NAT", {"addresses", 1}, {"host_ports", 3}, {"sessions", 64});
	for (uint16_t i = 0; i < 5; i++) {
		packet_spec.source_port = i;
		rig_offer(rig, packet_from_spec(rig, &packet_spec), SECOND);
		assert_int_equal(rig->out.n, i < 3);
	}
	assert_int_equal(rig_count(rig, "exhausted"), 2);
	packet_spec.source_port = 2; /* has its port already */
	packet_spec.destination = server + 1;
	offered(rig, &packet_spec, 2 * SECOND);
	packet_spec.protocol = IPPROTO_TCP;
	offered(rig, &packet_spec, 2 * SECOND);
	other.source = host + 1;
	offered(rig, &other, 2 * SECOND);
	packet_spec = udp;
	packet_spec.source_port = 7;
	for (uint64_t s = 3; s < 301; s++)
		rig_offer_burst(rig, NULL, 0, s * SECOND);
	rig_offer_burst(rig, NULL, 0, 460 * SECOND);
	offered(rig, &packet_spec, 461 * SECOND);
}

/* With a full table, packets of new sessions are freed and counted. */
RIG_TEST(full_table_frees_new_sessions)
{
	struct packet_spec packet_spec = udp;

	RIG_MAKE(rig, "NAT", {"sessions", 16});
	for (uint32_t i = 0; i < 200; i++) {
		packet_spec.destination = server + i;
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	}
	assert_true(rig_count(rig, "full") > 100);
	assert_int_equal(rig_count(rig, "full") + rig_count(rig, "outward"), 200);
}

/* Removed sessions free their ports: in turn more endpoints are served than there are ports. */
RIG_TEST(removed_sessions_free_their_ports)
{
	struct packet_spec packet_spec = udp;
	uint64_t now = SECOND;

	RIG_MAKE(rig, "NAT", {"addresses", 1}, {"sessions", 512}, {"udp_s", 1}, {"icmp_s", 1},
		 {"transitory_s", 1}, {"established_s", 1});
	for (uint32_t i = 0; i < 100000; i++) {
		packet_spec.source_port = (uint16_t)i;
		packet_spec.source = host + i;
		offered(rig, &packet_spec, now += SECOND / 100);
	}
	assert_int_equal(rig_count(rig, "exhausted") + rig_count(rig, "full"), 0);
	assert_true(rig_count(rig, "aged") > 99000);
}
