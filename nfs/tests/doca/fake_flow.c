#include "tests/doca/fake_flow.h"

#include <stdlib.h>

#include <rte_common.h>

struct fake_flow fake_flow;

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
