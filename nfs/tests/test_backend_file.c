/* Backends of an LB from a file. */
#include "tests/files.h"
#include "tests/refusal.h"

#define FLOWS 20000

static const struct nf_setting of_file[] = {{"file", .text = "file"}, {"table", 4096}};

/* How many flows go to each of two addresses; others fail the test. */
static void count_flows(struct rig *rig, uint32_t first, uint32_t second, unsigned int counts[2])
{
	counts[0] = counts[1] = 0;
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		const struct packet_spec packet_spec = {.source = RTE_IPV4(10, 0, 0, 0) + flow,
							.destination = RTE_IPV4(192u, 0, 2, 80),
							.source_port = 1000,
							.destination_port = 53,
							.protocol = IPPROTO_UDP};
		uint32_t to;

		rig_offer(rig, packet_from_spec(rig, &packet_spec), 1);
		to = rte_be_to_cpu_32(ipv4_of(rig_sent(rig))->dst_addr);
		assert_true(to == first || to == second);
		counts[to == second]++;
	}
}

/* Flows are shared out by weights. */
FOLDER_TEST(flows_go_to_backends_by_their_weights)
{
	unsigned int counts[2];

	write_file("file", "# backends\n192.0.2.9 3\r\n198.51.100.7   # weight 1\n");
	rig_make(rig, "LB", of_file, 2);
	count_flows(rig, RTE_IPV4(192u, 0, 2, 9), RTE_IPV4(198, 51, 100, 7), counts);
	assert_in_range(counts[0], FLOWS * 7 / 10, FLOWS * 8 / 10);
}

/* All faults are named with file and line, then how a line is written. */
FOLDER_TEST(wrong_backends_are_refused)
{
	(void)rig;
	write_file("file", "192.0.2.0/24\n192.0.2.1 0\n192.0.2.2 1 1\n192.0.2.3\n192.0.2.3 2\nany\n");
	assert_string_equal(refusal("LB", of_file, 2),
			    "file:1: 192.0.2.0/24: not the address of a backend\n"
			    "file:2: 0: a weight is from 1 to 65535\n"
			    "file:3: 1: not expected\n"
			    "file:5: 192.0.2.3: the backend is there already\n"
			    "file:6: any: not the address of a backend\n"
			    "hint: ADDRESS [WEIGHT], as `198.18.0.1 2`\n");
	write_file("file", "# none\n");
	assert_string_equal(refusal("LB", of_file, 2),
			    "file:1: no backends\nhint: ADDRESS [WEIGHT], as `198.18.0.1 2`\n");
	write_file("file", "192.0.2.1 4096\n192.0.2.2\n");
	assert_string_equal(refusal("LB", of_file, 2),
			    "LB: table 4096 has too few entries for weights of 4097 in all\n");
}
