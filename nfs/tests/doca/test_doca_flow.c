#include <rte_dev.h>

#include "functions/flow_offload/offload.h"
#include "tests/doca/fake_flow.h"
#include "tests/support.h"

#define CONNECTIONS 512

static struct flow_offload packet_spec(uint32_t connections)
{
	struct flow_offload offload;

	assert_true(flow_offload_create(&offload, connections, SOCKET_ID_ANY));
	return offload;
}

/* The index of a connection after a lookup of its burst. */
static int32_t lookup_one(const struct flow_offload *offload, uint16_t number)
{
	const struct flow_key key = {.source = RTE_BE32(0x0a000001),
				     .destination = RTE_BE32(0xc0000201),
				     .source_port = number,
				     .destination_port = RTE_BE16(80),
				     .protocol = IPPROTO_TCP};
	const void *keys[] = {&key};
	int32_t place;

	offload->backend->lookup(offload->state, keys, 1, &place);
	return place >= 0 ? place : offload->backend->insert(offload->state, &key);
}

static bool forwards(const struct flow_offload *offload, int32_t place)
{
	return offload->backend->forward(offload->state, (uint32_t)place, NF_INSIDE);
}

/* Without ports, the cores process all packets. */
static void without_ports_the_cores_forward(void **state)
{
	struct flow_offload offload = packet_spec(CONNECTIONS);

	(void)state;
	assert_string_equal(offload.backend->name, "software");
	assert_int_equal(fake_flow.inits, 0);
	flow_offload_destroy(&offload);
	/* from here on there are two ports */
	assert_int_equal(rte_eal_hotplug_add("vdev", "net_null0", ""), 0);
	assert_int_equal(rte_eal_hotplug_add("vdev", "net_null1", ""), 0);
}

/* A connection is forwarded both ways, is active while its packets count, and can be removed. */
static void forwards_both_ways(void **state)
{
	struct flow_offload offload = packet_spec(CONNECTIONS);
	const int32_t place = lookup_one(&offload, 1);

	(void)state;
	assert_string_equal(offload.backend->name, "doca-flow");
	assert_true(forwards(&offload, place));
	assert_int_equal(fake_flow.rules, 2);
	assert_int_equal(lookup_one(&offload, 1), place);
	assert_int_equal(fake_flow.queued, 0);
	fake_flow.forwarded = 7;
	assert_true(offload.backend->active(offload.state, (uint32_t)place));
	assert_false(offload.backend->active(offload.state, (uint32_t)place));
	offload.backend->withdraw(offload.state, (uint32_t)place);
	assert_int_equal(fake_flow.rules, 0);
	flow_offload_destroy(&offload);
	assert_int_equal(fake_flow.dangling, 0);
	assert_int_equal(fake_flow.ports, 0);
}

/* One instance at a time uses the ports, and DOCA Flow starts once, with the first one's size. */
static void one_instance_uses_the_ports(void **state)
{
	struct flow_offload first = packet_spec(CONNECTIONS), second = packet_spec(CONNECTIONS),
			    larger;

	(void)state;
	assert_string_equal(first.backend->name, "doca-flow");
	assert_string_equal(second.backend->name, "software");
	flow_offload_destroy(&second);
	flow_offload_destroy(&first);
	larger = packet_spec(2 * CONNECTIONS);
	assert_string_equal(larger.backend->name, "software");
	flow_offload_destroy(&larger);
	assert_int_equal(fake_flow.inits, 1);
	assert_int_equal(fake_flow.ports, 0);
}

/* More connections than the card's queue holds are added and removed without a burst in between. */
static void full_queues_are_polled(void **state)
{
	struct flow_offload offload = packet_spec(CONNECTIONS);
	int32_t places[CONNECTIONS / 2];

	(void)state;
	for (uint16_t i = 0; i < RTE_DIM(places); i++)
		places[i] = lookup_one(&offload, i);
	for (uint16_t i = 0; i < RTE_DIM(places); i++)
		assert_true(forwards(&offload, places[i]));
	for (uint16_t i = 0; i < RTE_DIM(places); i++)
		offload.backend->withdraw(offload.state, (uint32_t)places[i]);
	assert_int_equal(fake_flow.rules, 0);
	assert_int_equal(fake_flow.rejected, 0);
	flow_offload_destroy(&offload);
}

/* A rule that the card rejects later is neither queried nor removed. */
static void rejected_rules_are_not_used(void **state)
{
	struct flow_offload offload = packet_spec(CONNECTIONS);
	const int32_t place = lookup_one(&offload, 1);

	(void)state;
	assert_true(forwards(&offload, place));
	fake_flow.rejection = true;
	lookup_one(&offload, 1);
	fake_flow.rejection = false;
	assert_int_equal(fake_flow.rules, 0);
	fake_flow.forwarded = 9;
	assert_false(offload.backend->active(offload.state, (uint32_t)place));
	offload.backend->withdraw(offload.state, (uint32_t)place);
	assert_int_equal(fake_flow.dangling, 0);
	flow_offload_destroy(&offload);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_ports_the_cores_forward),
		cmocka_unit_test(forwards_both_ways),
		cmocka_unit_test(one_instance_uses_the_ports),
		cmocka_unit_test(full_queues_are_polled),
		cmocka_unit_test(rejected_rules_are_not_used),
	};

	return argc > 0 ? test_main(argv[0], tests, RTE_DIM(tests)) : 1;
}
