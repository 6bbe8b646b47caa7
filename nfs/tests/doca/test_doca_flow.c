#include <doca_flow.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_dev.h>

#include "functions/flow_offload/offload.h"
#include "tests/support.h"

/*
 * Two simulated ports that forward by rules, as far as DOCA Flow's users can see; changes are
 * confirmed when polled.
 */

#define FAKE_FLOW_DEPTH 128 /* capacity of its queue, DOCA's default */

struct fake_flow {
	bool rejection;        /* set by the test: rules are rejected at confirmation */
	uint64_t forwarded;    /* set by the test: packets per rule */
	unsigned int inits;    /* starts of DOCA Flow */
	unsigned int ports;    /* started ports */
	unsigned int rules;    /* existing rules of connections */
	unsigned int queued;   /* unconfirmed changes */
	unsigned int rejected; /* rejected because the queue was full */
	unsigned int dangling; /* uses of a rule that does not exist */
};

static struct fake_flow fake_flow;

struct doca_flow_pipe {
	bool of_connections;
};

struct doca_flow_pipe_entry {
	bool of_connection, there;
	void *user_context;
};

struct doca_flow_port {
	struct doca_flow_pipe pipes[3]; /* the root pipe, and one each for TCP and UDP */
	unsigned int n_pipes;
};

static struct change {
	struct doca_flow_pipe_entry *entry;
	enum doca_flow_entry_op op;
} changes[FAKE_FLOW_DEPTH];
static struct doca_flow_pipe_entry entries[4096];
static unsigned int n_entries;
static struct doca_flow_port ports[2];
static doca_flow_entry_process_cb completion;

const char *doca_get_error_string(doca_error_t error)
{
	return error == DOCA_ERROR_AGAIN ? "the queue is full" : "asked to fail";
}

doca_error_t doca_flow_init(const struct doca_flow_cfg *config)
{
	fake_flow.inits++;
	completion = config->cb;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_port_start(const struct doca_flow_port_cfg *config,
				  struct doca_flow_port **port)
{
	*port = &ports[config->port_id];
	(*port)->n_pipes = 0;
	fake_flow.ports++;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_port_stop(struct doca_flow_port *port)
{
	(void)port;
	fake_flow.ports--;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_port_pair(struct doca_flow_port *port, struct doca_flow_port *other)
{
	return port != other ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

/* For both ports. */
void doca_flow_port_pipes_flush(struct doca_flow_port *port)
{
	(void)port;
	n_entries = fake_flow.rules = fake_flow.queued = 0;
}

doca_error_t doca_flow_pipe_create(const struct doca_flow_pipe_cfg *config,
				   const struct doca_flow_fwd *fwd,
				   const struct doca_flow_fwd *miss, struct doca_flow_pipe **pipe)
{
	if (config->port->n_pipes == RTE_DIM(config->port->pipes))
		return DOCA_ERROR_NO_MEMORY;
	*pipe = &config->port->pipes[config->port->n_pipes++];
	(*pipe)->of_connections = fwd && miss;
	return DOCA_SUCCESS;
}

static doca_error_t change(struct doca_flow_pipe_entry *entry, enum doca_flow_entry_op op)
{
	if (fake_flow.queued == FAKE_FLOW_DEPTH) {
		fake_flow.rejected++;
		return DOCA_ERROR_AGAIN;
	}
	changes[fake_flow.queued++] = (struct change){entry, op};
	return DOCA_SUCCESS;
}

static doca_error_t add(struct doca_flow_pipe *pipe, void *user_context,
			struct doca_flow_pipe_entry **entry)
{
	if (n_entries == RTE_DIM(entries))
		return DOCA_ERROR_NO_MEMORY;
	*entry = &entries[n_entries++];
	**entry = (struct doca_flow_pipe_entry){
		.of_connection = pipe->of_connections,
		.there = true,
		.user_context = user_context,
	};
	fake_flow.rules += pipe->of_connections;
	return change(*entry, DOCA_FLOW_ENTRY_OP_ADD);
}

doca_error_t doca_flow_pipe_add_entry(uint16_t queue, struct doca_flow_pipe *pipe,
				      const struct doca_flow_match *match,
				      const struct doca_flow_actions *actions,
				      const struct doca_flow_monitor *monitor,
				      const struct doca_flow_fwd *fwd, uint32_t flags,
				      void *user_context, struct doca_flow_pipe_entry **entry)
{
	(void)queue, (void)match, (void)actions, (void)monitor, (void)fwd, (void)flags;
	return add(pipe, user_context, entry);
}

doca_error_t doca_flow_pipe_control_add_entry(
	uint16_t queue, uint32_t priority, struct doca_flow_pipe *pipe,
	const struct doca_flow_match *match, const struct doca_flow_match *mask,
	const struct doca_flow_actions *actions, const struct doca_flow_actions *actions_mask,
	const struct doca_flow_action_descs *descriptions, const struct doca_flow_monitor *monitor,
	const struct doca_flow_fwd *fwd, void *user_context, struct doca_flow_pipe_entry **entry)
{
	(void)queue, (void)priority, (void)match, (void)mask, (void)actions, (void)actions_mask;
	(void)descriptions, (void)monitor, (void)fwd;
	return add(pipe, user_context, entry);
}

static void remove_entry(struct doca_flow_pipe_entry *entry)
{
	fake_flow.dangling += !entry->there;
	fake_flow.rules -= entry->there && entry->of_connection;
	entry->there = false;
}

doca_error_t doca_flow_pipe_rm_entry(uint16_t queue, uint32_t flags,
				     struct doca_flow_pipe_entry *entry)
{
	(void)queue, (void)flags;
	remove_entry(entry);
	return change(entry, DOCA_FLOW_ENTRY_OP_DEL);
}

doca_error_t doca_flow_entries_process(struct doca_flow_port *port, uint16_t queue,
				       uint64_t timeout_us, uint32_t most)
{
	(void)port, (void)timeout_us;
	for (; fake_flow.queued > 0 && most > 0; most--) {
		const struct change *done = &changes[--fake_flow.queued];
		const bool rejected = fake_flow.rejection && done->op == DOCA_FLOW_ENTRY_OP_ADD;

		if (rejected)
			remove_entry(done->entry);
		completion(done->entry, queue,
			   rejected ? DOCA_FLOW_ENTRY_STATUS_ERROR : DOCA_FLOW_ENTRY_STATUS_SUCCESS,
			   done->op, done->entry->user_context);
	}
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_query_entry(struct doca_flow_pipe_entry *entry,
				   struct doca_flow_query *query)
{
	fake_flow.dangling += !entry->there;
	query->total_pkts = fake_flow.forwarded;
	return DOCA_SUCCESS;
}

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
	int32_t place;

	offload->backend->lookup(offload->state, &key, 1, &place);
	return place >= 0 ? place : offload->backend->insert(offload->state, &key);
}

static bool forwards(const struct flow_offload *offload, int32_t place)
{
	return offload->backend->forward(offload->state, (uint32_t)place, NF_INSIDE);
}

/* Without ports, the cores process all packets. */
TEST(without_ports_the_cores_forward)
{
	struct flow_offload offload = packet_spec(CONNECTIONS);

	assert_string_equal(offload.backend->name, "software");
	assert_int_equal(fake_flow.inits, 0);
	flow_offload_destroy(&offload);
	/* from here on there are two ports */
	assert_int_equal(rte_eal_hotplug_add("vdev", "net_null0", ""), 0);
	assert_int_equal(rte_eal_hotplug_add("vdev", "net_null1", ""), 0);
}

/* A connection is forwarded both ways, is active while its packets count, and can be removed. */
TEST(forwards_both_ways)
{
	struct flow_offload offload = packet_spec(CONNECTIONS);
	const int32_t place = lookup_one(&offload, 1);

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
TEST(one_instance_uses_the_ports)
{
	struct flow_offload first = packet_spec(CONNECTIONS), second = packet_spec(CONNECTIONS),
			    larger;

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
TEST(full_queues_are_polled)
{
	struct flow_offload offload = packet_spec(CONNECTIONS);
	int32_t places[CONNECTIONS / 2];

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
TEST(rejected_rules_are_not_used)
{
	struct flow_offload offload = packet_spec(CONNECTIONS);
	const int32_t place = lookup_one(&offload, 1);

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
