#include "core/flow_table.h"
#include "core/random.h"
#include "tests/hostile.h"
#include "tests/udp.h"

static struct rte_mbuf *of_flow(struct rig *rig, uint32_t flow)
{
	struct packet_spec packet_spec = udp;

	packet_spec.source += flow;
	return packet_from_spec(rig, &packet_spec);
}

/* Packets of a flow are counted with their bytes, and sent on. */
RIG_TEST(counts_packets_and_bytes)
{
	rig_make(rig, "FlowStats", NULL, 0);
	for (int i = 0; i < 3; i++) {
		rig_offer(rig, of_flow(rig, 0), 1);
		assert_int_equal(rig->out.n, 1);
	}
	assert_counts(rig, {"packets", 3}, {"bytes", 3 * (14 + 20 + 8 + 8)}, {"started", 1});
}

/* Two packets of a new flow in one burst start one flow. */
RIG_TEST(one_new_flow_in_a_burst)
{
	struct rte_mbuf *burst[] = {of_flow(rig, 7), of_flow(rig, 7), of_flow(rig, 8)};

	rig_make(rig, "FlowStats", NULL, 0);
	rig_offer_burst(rig, burst, 3, 1);
	assert_counts(rig, {"started", 2}, {"packets", 3});
}

/* A flow that is silent for the timeout is removed, and starts again later. */
RIG_TEST(silent_flows_are_removed)
{
	RIG_MAKE(rig, "FlowStats", {"flows", 64}, {"timeout_s", 10});
	rig_offer(rig, of_flow(rig, 0), SECOND);
	for (uint64_t s = 2; s < 30; s++)
		rig_offer(rig, of_flow(rig, 1), s * SECOND);
	assert_int_equal(rig_count(rig, "aged"), 1);
	rig_offer(rig, of_flow(rig, 0), 30 * SECOND);
	assert_int_equal(rig_count(rig, "started"), 3);
}

/* A timeout holds however few packets there are: no packet came between, so no sweep either. */
RIG_TEST(a_packet_after_the_timeout_starts_a_flow)
{
	struct rte_mbuf *burst[] = {of_flow(rig, 0), of_flow(rig, 0)};

	rig_make(rig, "FlowStats", NULL, 0);
	rig_offer(rig, of_flow(rig, 0), SECOND);
	rig_offer(rig, of_flow(rig, 0), 60 * SECOND);
	assert_int_equal(rig_count(rig, "started"), 1);
	rig_offer_burst(rig, burst, 2, 120 * SECOND);
	assert_counts(rig, {"started", 2}, {"aged", 1}, {"packets", 4});
}

/* A full table lets packets of further flows pass, and counts them. */
RIG_TEST(full_table_lets_packets_pass)
{
	RIG_MAKE(rig, "FlowStats", {"flows", 8});
	for (uint32_t flow = 0; flow < 200; flow++) {
		rig_offer(rig, of_flow(rig, flow), 1);
		assert_int_equal(rig->out.n, 1);
	}
	assert_counts(rig, {"packets", 8}, {"untracked", 192});
}

#define FLOWS 60

/*
 * For bursts of random flows with pauses, a flow starts exactly when it has been silent for the
 * timeout, and all flows age in the end.
 */
RIG_TEST(random_flows_start_and_age_as_in_an_array)
{
	uint64_t last[FLOWS] = {0}, now_us = SECOND, started = 0, random = 1;

	RIG_MAKE(rig, "FlowStats", {"flows", FLOWS}, {"timeout_s", 1});
	for (int i = 0; i < 20000; i++) {
		const uint16_t n = (uint16_t)random_below(&random, NF_BURST);
		struct rte_mbuf *burst[NF_BURST];

		now_us += random_below(&random, 8) ? random_below(&random, SECOND / 10) : SECOND;
		for (uint16_t packet = 0; packet < n; packet++) {
			const uint32_t flow = random_below(&random, FLOWS);

			burst[packet] = of_flow(rig, flow);
			started += last[flow] == 0 || now_us - last[flow] >= SECOND;
			last[flow] = now_us;
		}
		rig_offer_burst(rig, burst, n, now_us);
		assert_int_equal(rig_count(rig, "started"), started);
	}
	for (int burst = 0; burst < 40; burst++)
		rig_offer_burst(rig, NULL, 0, now_us += SECOND / 10);
	assert_counts(rig, {"aged", started}, {"untracked", 0});
}

/* A flow other than `flow` for which `flow` is guessed: slot and tag are the same. */
static uint32_t confused_with(const struct rig *rig, uint32_t flow)
{
	const struct flow_table *table = rig->nf->state;
	struct flow_key key = {.destination = rte_cpu_to_be_32(udp.destination),
			       .source_port = rte_cpu_to_be_16(udp.source_port),
			       .destination_port = rte_cpu_to_be_16(udp.destination_port),
			       .protocol = IPPROTO_UDP};
	uint32_t hashes[2], other = flow;

	do {
		key.source = rte_cpu_to_be_32(udp.source + other);
		hashes[other++ != flow] = flow_index_hash(&table->index, &key);
	} while (other == flow + 1 || !flow_index_tagged(hashes[0], hashes[1]) ||
		 ((hashes[0] ^ hashes[1]) & table->index.mask) != 0);
	return other - 1;
}

/* Flows with the same slot and tag are distinguished when they start, go on, and have aged. */
RIG_TEST(similar_flows_are_distinguished)
{
	uint32_t flows[2] = {0};

	RIG_MAKE(rig, "FlowStats", {"flows", 8});
	flows[1] = confused_with(rig, 0);
	for (int i = 0; i < 4; i++)
		rig_offer(rig, of_flow(rig, flows[i % 2]), SECOND);
	assert_int_equal(rig_count(rig, "started"), 2);
	rig_offer(rig, of_flow(rig, flows[0]), 60 * SECOND);
	rig_offer(rig, of_flow(rig, flows[1]), 61 * SECOND);
	assert_counts(rig, {"started", 3}, {"packets", 6});
}

/* Tagged packets are counted by their IPv4 header; other than IPv4 passes uncounted. */
RIG_TEST(tagged_packets_are_counted)
{
	struct packet_spec tagged = udp;
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};

	tagged.vlan = 5;
	rig_make(rig, "FlowStats", NULL, 0);
	rig_offer(rig, packet_from_spec(rig, &tagged), 1);
	rig_offer(rig, packet_of(rig, arp, sizeof(arp)), 1);
	assert_int_equal(rig->out.n, 1);
	assert_counts(rig, {"packets", 1}, {"other", 1});
}

/* Malformed packets are neither sent nor counted as a flow. */
RIG_TEST(malformed_packets_are_freed)
{
	rig_make(rig, "FlowStats", NULL, 0);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "packets"), 0);
	assert_int_equal(rig->out.n, 0);
}

/* No malformed packet is sent. */
static void check_not_malformed(struct rte_mbuf *passed)
{
	assert_int_not_equal(packet_parse(passed).type, PACKET_MALFORMED);
}

/* Each hostile packet belongs to a flow, passes unchanged, or is freed. */
RIG_TEST(hostile_packets_are_counted_once)
{
	const uint32_t addresses[] = {udp.source, udp.destination};
	static const char *counters[] = {"packets", "untracked", "other", "malformed"};
	uint64_t counted = 0;

	rig_make(rig, "FlowStats", NULL, 0);
	offer_hostile(rig, addresses, RTE_DIM(addresses), check_not_malformed);
	for (size_t i = 0; i < RTE_DIM(counters); i++)
		counted += rig_count(rig, counters[i]);
	assert_in_range(counted, HOSTILE_PACKETS, HOSTILE_PACKETS + NF_BURST - 1);
	assert_true(rig_count(rig, "started") > 500);
}
