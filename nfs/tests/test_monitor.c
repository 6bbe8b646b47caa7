#include <stdlib.h>
#include <unistd.h>

#include <rte_hash_crc.h>

#include "core/random.h"
#include "functions/monitor/top_talkers.h"
#include "tests/hostile.h"
#include "tests/ipv6.h"
#include "tests/refusal.h"

static const struct packet_spec udp = {.source = RTE_IPV4(10, 0, 0, 1),
				       .destination = RTE_IPV4(100, 64, 0, 7),
				       .source_port = 1000,
				       .destination_port = 53,
				       .payload_length = 18};

/* Packets and bytes are counted by protocol; all pass, as they are. */
RIG_TEST(protocols_are_counted)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ICMP, 50, 50};
	const uint8_t lldp[60] = {[12] = 0x88, [13] = 0xcc};

	rig_make(rig, "Monitor", NULL, 0);
	for (unsigned int i = 0; i < RTE_DIM(protocols); i++) {
		struct packet_spec packet_spec = udp;

		packet_spec.protocol = protocols[i];
		packet_spec.vlan = i == 0 ? 3 : 0;
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		assert_int_equal(rig->out.n, 1);
	}
	rig_offer(rig, ipv6_packet(rig, &(struct ipv6_spec){.payload_length = 18}), 1);
	assert_int_equal(rig->out.n, 1);
	rig_offer(rig, packet_of(rig, lldp, sizeof(lldp)), 1);
	assert_int_equal(rig->out.n, 1);
	assert_counts(rig, {"udp_packets", 2},
		      {"udp_bytes", 14 + 4 + 20 + 8 + 18 + 14 + 40 + 8 + 18},
		      {"tcp_bytes", 14 + 20 + 20 + 18}, {"icmp_bytes", 14 + 20 + 8 + 18},
		      {"rest_packets", 2}, {"rest_bytes", 2 * (14 + 20 + 18)}, {"other", 1},
		      {"other_bytes", 60});
}

#define FLOWS 3000

static struct flow_key flow_of(uint32_t i)
{
	return (struct flow_key){.source = i, .protocol = IPPROTO_UDP};
}

static void count(struct top_talkers *top, uint64_t *bytes, uint32_t flow, uint32_t length)
{
	const struct flow_key key = flow_of(flow);

	top_talkers_count(top, &key, NULL, rte_hash_crc(&key, sizeof(key), 0), length);
	bytes[flow] += length;
}

/* Check what Space-Saving promises: bounds of every count, and a counter for every large flow. */
static void check(const struct top_talkers *top, const uint64_t *bytes)
{
	const struct talker **sorted = top_talkers_sorted(top);
	uint64_t total = 0, counted = 0;
	static bool has_counter[FLOWS];

	assert_non_null(sorted);
	memset(has_counter, 0, sizeof(has_counter));
	for (uint32_t i = 0; i < FLOWS; i++)
		total += bytes[i];
	for (uint32_t i = 0; i < top->n; i++) {
		const uint32_t flow = sorted[i]->flow.source;

		counted += sorted[i]->bytes;
		assert_false(has_counter[flow]);
		has_counter[flow] = true;
		assert_true(sorted[i]->bytes >= bytes[flow]);
		assert_true(sorted[i]->bytes - sorted[i]->error <= bytes[flow]);
		assert_true(sorted[i]->error <= total / top->most);
		assert_true(i == 0 || sorted[i - 1]->bytes >= sorted[i]->bytes);
	}
	assert_int_equal(counted, total);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_true(has_counter[i] || bytes[i] <= total / top->most);
	free(sorted);
}

/* Whatever the order and sizes of packets, and the number of counters, the bounds hold. */
TEST(counts_are_within_their_bounds)
{
	static const uint32_t counters[] = {1, 2, 7, 64, 1000, FLOWS, 2 * FLOWS};
	uint64_t random = 1;

	for (unsigned int i = 0; i < RTE_DIM(counters); i++) {
		uint64_t bytes[FLOWS] = {0};
		struct top_talkers top;

		assert_int_equal(top_talkers_create(&top, "test", counters[i]), 0);
		for (uint32_t packet = 0; packet < 50000; packet++) {
			const uint32_t most = 1 + random_below(&random, FLOWS);
			const uint32_t skewed = 1 + random_below(&random, most);

			count(&top, bytes, random_below(&random, skewed),
			      60 + random_below(&random, 1455));
		}
		check(&top, bytes);
		assert_true((top.replaced == 0) == (counters[i] >= FLOWS));
		top_talkers_destroy(&top);
	}
}

/* With fewer flows than counters every count is exact. */
TEST(few_flows_are_counted_exactly)
{
	uint64_t bytes[FLOWS] = {0}, random = 2;
	const struct talker **sorted;
	struct top_talkers top;

	assert_int_equal(top_talkers_create(&top, "test", 100), 0);
	for (uint32_t packet = 0; packet < 10000; packet++)
		count(&top, bytes, random_below(&random, 100), packet % 100);
	sorted = top_talkers_sorted(&top);
	assert_int_equal(top.n, 100);
	for (uint32_t i = 0; i < top.n; i++) {
		assert_int_equal(sorted[i]->error, 0);
		assert_int_equal(sorted[i]->bytes, bytes[sorted[i]->flow.source]);
	}
	free(sorted);
	top_talkers_destroy(&top);
}

static const char *text_of(const char *path)
{
	static char text[4096];
	FILE *file = fopen(path, "r");
	size_t length;

	assert_non_null(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

/* The report has the flows with the most bytes, and is there once the instance is destroyed. */
RIG_TEST(top_talkers_are_reported)
{
	char folder[] = "/tmp/monitor_XXXXXX", report[64], aside[80];
	const struct nf_setting settings[] = {{"report", .text = report}, {"reported", 2}};

	assert_non_null(mkdtemp(folder));
	snprintf(report, sizeof(report), "%s/top.csv", folder);
	snprintf(aside, sizeof(aside), "%s.part", report);
	rig_make(rig, "Monitor", settings, 2);
	for (uint16_t i = 0; i < 6; i++) {
		struct packet_spec packet_spec = udp;

		packet_spec.source_port = 1 + i % 3;
		packet_spec.payload_length = 100 * packet_spec.source_port;
		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
	}
	assert_int_equal(access(report, F_OK), -1);
	nf_destroy(rig->nf);
	rig->nf = NULL;
	assert_string_equal(text_of(report),
			    "source,destination,protocol,source_port,destination_port,"
			    "bytes_at_least,bytes_at_most,packets_at_least\n"
			    "10.0.0.1,100.64.0.7,17,3,53,684,684,2\n"
			    "10.0.0.1,100.64.0.7,17,2,53,484,484,2\n");
	assert_int_equal(access(aside, F_OK), -1);
	unlink(report);
	rmdir(folder);
}

/* A report that cannot be written is refused at once. */
TEST(unwritable_reports_are_refused)
{
	assert_string_equal(
		refusal("Monitor",
			(struct nf_setting[]){{"report", .text = "/nonexistent/top.csv"}}, 1),
		"Monitor: cannot write /nonexistent/top.csv: No such file or directory\n");
}

/* Hostile packets pass or are freed, with every flow replacing another one. */
RIG_TEST(hostile_packets_are_counted)
{
	rig_make(rig, "Monitor", (struct nf_setting[]){{"talkers", 3}}, 1);
	offer_malformed(rig);
	assert_int_equal(rig_count(rig, "malformed"), 61);
	offer_hostile(rig, NULL, 0, NULL);
	assert_true(rig_count(rig, "replaced") > 1000);
	assert_true(rig_count(rig, "tcp_packets") > 500);
	assert_true(rig_count(rig, "other") > 100);
}
