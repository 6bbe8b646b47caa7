#include "tests/hostile.h"

static const struct packet_spec udp = {.source = RTE_IPV4(10, 0, 0, 1),
				       .destination = RTE_IPV4(192, 0, 2, 1)};

static struct rte_mbuf *to_port(struct rig *rig, uint16_t port, uint8_t protocol)
{
	struct packet_spec packet_spec = udp;

	packet_spec.protocol = protocol;
	packet_spec.destination_port = port;
	return packet_from_spec(rig, &packet_spec);
}

/* UDP and TCP packets to the port are counted, and every packet passes. */
RIG_TEST(counts_packets_to_the_port)
{
	struct rte_mbuf *burst[] = {to_port(rig, 443, IPPROTO_TCP), to_port(rig, 443, IPPROTO_UDP),
				    to_port(rig, 53, IPPROTO_UDP), to_port(rig, 0, IPPROTO_GRE)};

	RIG_MAKE(rig, "PortCounter", {"port", 443});
	rig_offer_burst(rig, burst, 4, 1);
	assert_int_equal(rig->out.n, 4);
	assert_counts(rig, {"matched", 2}, {"other", 2});
}

/* Malformed packets are freed and counted. */
RIG_TEST(frees_malformed_packets)
{
	rig_make(rig, "PortCounter", NULL, 0);
	offer_malformed(rig);
	assert_int_equal(rig->out.n, 0);
	assert_true(rig_count(rig, "malformed") > 0);
}

/* Random and mutated packets neither crash it nor leak. */
RIG_TEST(survives_hostile_packets)
{
	rig_make(rig, "PortCounter", NULL, 0);
	offer_hostile(rig, &udp.destination, 1, NULL);
}
