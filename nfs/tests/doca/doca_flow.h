#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <doca_error.h>

struct doca_flow_action_descs;
struct doca_flow_pipe;
struct doca_flow_pipe_entry;
struct doca_flow_port;

enum { DOCA_FLOW_NO_WAIT };
enum { DOCA_FLOW_MONITOR_COUNT = 4 };
enum { DOCA_FLOW_RSS_IPV4 = 1 };
enum {
	DOCA_FLOW_MATCH_TCP_FLAG_FIN = 1,
	DOCA_FLOW_MATCH_TCP_FLAG_SYN = 2,
	DOCA_FLOW_MATCH_TCP_FLAG_RST = 4,
};
enum doca_flow_entry_op { DOCA_FLOW_ENTRY_OP_ADD, DOCA_FLOW_ENTRY_OP_DEL };
enum doca_flow_entry_status {
	DOCA_FLOW_ENTRY_STATUS_IN_PROCESS,
	DOCA_FLOW_ENTRY_STATUS_SUCCESS,
	DOCA_FLOW_ENTRY_STATUS_ERROR,
};
enum doca_flow_fwd_type { DOCA_FLOW_FWD_RSS = 1, DOCA_FLOW_FWD_PORT, DOCA_FLOW_FWD_PIPE };
enum doca_flow_l3_type { DOCA_FLOW_L3_TYPE_IP4 = 1 };
enum doca_flow_l4_type_ext { DOCA_FLOW_L4_TYPE_EXT_TCP = 1, DOCA_FLOW_L4_TYPE_EXT_UDP };
enum doca_flow_pipe_type { DOCA_FLOW_PIPE_BASIC, DOCA_FLOW_PIPE_CONTROL };
enum doca_flow_port_type { DOCA_FLOW_PORT_DPDK_BY_ID };

typedef void (*doca_flow_entry_process_cb)(struct doca_flow_pipe_entry *entry, uint16_t queue,
					   enum doca_flow_entry_status status,
					   enum doca_flow_entry_op op, void *user_context);

struct doca_flow_cfg {
	uint16_t queues;
	struct {
		uint32_t nb_counters;
	} resource;
	const char *mode_args;
	uint32_t queue_depth;
	doca_flow_entry_process_cb cb;
};

struct doca_flow_port_cfg {
	uint16_t port_id;
	enum doca_flow_port_type type;
	const char *devargs;
};

struct doca_flow_l4_port {
	uint16_t src_port, dst_port;
};

struct doca_flow_match {
	struct {
		enum doca_flow_l3_type l3_type;
		struct {
			uint32_t src_ip, dst_ip;
		} ip4;
		enum doca_flow_l4_type_ext l4_type_ext;
		union {
			struct {
				struct doca_flow_l4_port l4_port;
			} udp;
			struct {
				struct doca_flow_l4_port l4_port;
				uint8_t flags;
			} tcp;
		};
	} outer;
};

struct doca_flow_actions {
	uint8_t action_idx;
};

struct doca_flow_monitor {
	uint8_t flags;
};

struct doca_flow_fwd {
	enum doca_flow_fwd_type type;
	union {
		struct {
			uint32_t rss_outer_flags;
			uint16_t *rss_queues;
			int num_of_queues;
		};
		uint16_t port_id;
		struct doca_flow_pipe *next_pipe;
	};
};

struct doca_flow_pipe_cfg {
	struct {
		const char *name;
		enum doca_flow_pipe_type type;
		bool is_root;
		uint32_t nb_flows;
		uint8_t nb_actions;
	} attr;
	struct doca_flow_port *port;
	struct doca_flow_match *match;
	struct doca_flow_actions **actions;
	struct doca_flow_monitor *monitor;
};

struct doca_flow_query {
	uint64_t total_bytes, total_pkts;
};

doca_error_t doca_flow_init(const struct doca_flow_cfg *config);
void doca_flow_destroy(void);
doca_error_t doca_flow_port_start(const struct doca_flow_port_cfg *config,
				  struct doca_flow_port **port);
doca_error_t doca_flow_port_stop(struct doca_flow_port *port);
doca_error_t doca_flow_port_pair(struct doca_flow_port *port, struct doca_flow_port *other);
void doca_flow_port_pipes_flush(struct doca_flow_port *port);
doca_error_t doca_flow_pipe_create(const struct doca_flow_pipe_cfg *config,
				   const struct doca_flow_fwd *fwd,
				   const struct doca_flow_fwd *miss, struct doca_flow_pipe **pipe);
doca_error_t doca_flow_pipe_add_entry(uint16_t queue, struct doca_flow_pipe *pipe,
				      const struct doca_flow_match *match,
				      const struct doca_flow_actions *actions,
				      const struct doca_flow_monitor *monitor,
				      const struct doca_flow_fwd *fwd, uint32_t flags,
				      void *user_context, struct doca_flow_pipe_entry **entry);
doca_error_t doca_flow_pipe_control_add_entry(
	uint16_t queue, uint32_t priority, struct doca_flow_pipe *pipe,
	const struct doca_flow_match *match, const struct doca_flow_match *mask,
	const struct doca_flow_actions *actions, const struct doca_flow_actions *actions_mask,
	const struct doca_flow_action_descs *descriptions, const struct doca_flow_monitor *monitor,
	const struct doca_flow_fwd *fwd, void *user_context, struct doca_flow_pipe_entry **entry);
doca_error_t doca_flow_pipe_rm_entry(uint16_t queue, uint32_t flags,
				     struct doca_flow_pipe_entry *entry);
doca_error_t doca_flow_entries_process(struct doca_flow_port *port, uint16_t queue,
				       uint64_t timeout_us, uint32_t most);
doca_error_t doca_flow_query_entry(struct doca_flow_pipe_entry *entry,
				   struct doca_flow_query *query);
