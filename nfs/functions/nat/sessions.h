/*
 * The state of a NAT: mappings of an inside endpoint to an external one, shared by all sessions of
 * that endpoint (RFC 4787, REQ-1), and sessions with their phase and timeouts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_hash.h>

#include "core/packet.h"
#include "core/rewrite.h"
#include "core/sweep.h"

/*
 * Free ports of an external address. The port that was free for longest is taken first, so that a
 * late packet of an old connection does not reach a new one; even and odd ports are kept apart, for
 * RTP and RTCP (RFC 4787, REQ-4).
 */

#define PORTS_FIRST 1024
#define PORTS_HALF ((65536 - PORTS_FIRST) / 2)

struct ports {
	struct {
		uint32_t next, n; /* of the free ones */
		uint16_t free[PORTS_HALF];
	} halves[2];
};

enum nat_protocol { NAT_UDP, NAT_TCP, NAT_ICMP, NAT_PROTOCOLS };

/* Timeouts of silent sessions. */
enum nat_phase {
	PHASE_FREE, /* the slot is free */
	PHASE_UDP,
	PHASE_ICMP,
	PHASE_TCP_TRANSITORY,
	PHASE_TCP_ESTABLISHED,
	PHASES
};

struct mapping {
	struct endpoint inside, outside;
	uint32_t sessions; /* sessions that use it; 0: the slot is free */
	uint32_t first;    /* the newest of them: its index + 1 */
	uint8_t protocol;
	bool forwards; /* it stays without sessions */
};

enum session_mark {
	TCP_ACKED_OUT = 1,
	TCP_ACKED_IN = 2,
	TCP_FIN_OUT = 4,
	TCP_FIN_IN = 8,
	TCP_RESET = 16,
	HAIRPINS = 32, /* to an external address of ours: hairpinned */
};

/* Four to a cache line. */
struct session {
	uint64_t last_us;   /* last refresh: from inside, or TCP from either side */
	rte_be32_t address; /* the mapping's external address and port */
	rte_be16_t port;
	uint8_t phase; /* enum nat_phase */
	uint8_t marks; /* enum session_mark */
};

/* Its neighbours among the sessions of a mapping, newer and older: indices + 1, 0 at an end. */
struct session_link {
	uint32_t newer, older;
};

struct sessions_setup {
	uint32_t most;
	uint32_t first_address, addresses; /* external addresses, in host byte order */
	uint32_t host_ports;               /* most ports of an inside host, of each protocol */
	uint64_t seed;
	uint64_t timeout_us[PHASES];
	uint64_t *aged; /* grows by each session that is removed after its timeout */
};

struct sessions {
	struct rte_hash *table; /* maps a flow key from inside to an index of `sessions` */
	struct session *sessions;
	struct session_link *links; /* indexed like `sessions` */
	struct rte_hash
		*endpoints; /* maps a flow key without destination to an index of `mappings` */
	struct mapping *mappings;
	struct rte_hash *hosts; /* maps an inside address and a protocol to an index of `taken` */
	uint32_t *taken;        /* ports that the host has */
	bool forwards;          /* to any host */
	uint32_t host_ports;
	uint32_t *outside;   /* by protocol, address, port: index of a mapping + 1 */
	struct ports *ports; /* by protocol, address */
	uint32_t first_address, addresses;
	uint64_t timeout_us[PHASES];
	struct sweep sweep;
	uint64_t now_us;
	uint64_t *aged;
};

enum session_failure { NO_PORT = -1, NO_PLACE = -2 };

/* NULL after printing why. */
struct sessions *sessions_create(const struct sessions_setup *setup, int socket);
void sessions_destroy(struct sessions *sessions);

/* UDP, TCP or ICMP; NAT_PROTOCOLS for any other. */
static inline enum nat_protocol nat_protocol(uint8_t protocol)
{
	switch (protocol) {
	case IPPROTO_UDP:
		return NAT_UDP;
	case IPPROTO_TCP:
		return NAT_TCP;
	case IPPROTO_ICMP:
		return NAT_ICMP;
	default:
		return NAT_PROTOCOLS;
	}
}

static inline bool sessions_own(const struct sessions *sessions, rte_be32_t address)
{
	return rte_be_to_cpu_32(address) - sessions->first_address < sessions->addresses;
}

/*
 * The mapping of an external endpoint, whose address must be one of `sessions_own`; or NULL. It may
 * have timed out: see `mapping_live`.
 */
static inline struct mapping *mapping_outside(const struct sessions *sessions,
					      enum nat_protocol protocol, struct endpoint endpoint)
{
	const uint32_t address = rte_be_to_cpu_32(endpoint.address) - sessions->first_address;
	const uint32_t place =
		sessions->outside[(protocol * sessions->addresses + address) * 65536 +
				  rte_be_to_cpu_16(endpoint.port)];

	return place ? &sessions->mappings[place - 1] : NULL;
}

/* Whether an inside host has forwards, all of one external address, which is stored. */
bool sessions_forwarded(const struct sessions *sessions, rte_be32_t host, rte_be32_t *address);

/* The external address of an inside host (RFC 4787, REQ-2): that of its forwards if it has some. */
rte_be32_t sessions_address_of(const struct sessions *sessions, rte_be32_t host);

/*
 * Map an external endpoint, whose address must be one of `sessions_own`, and that of the host's other
 * forwards, for good; false if full.
 */
bool sessions_forward(struct sessions *sessions, uint8_t protocol, struct endpoint outside,
		      struct endpoint inside);

static inline struct endpoint session_outside(const struct session *session)
{
	return (struct endpoint){session->address, session->port};
}

/* The mapping if one of its sessions has not timed out, or it forwards; else it is removed, and NULL. */
struct mapping *mapping_live(struct sessions *sessions, struct mapping *mapping);

static inline bool session_timed_out(const struct sessions *sessions, const struct session *session)
{
	return sessions->now_us - session->last_us >= sessions->timeout_us[session->phase];
}

/* Remove a session that has timed out. */
void session_remove(struct sessions *sessions, uint32_t place);

/* The session of a flow that was found at `place`; -1 if it has timed out, and is removed. */
static inline int32_t session_live(struct sessions *sessions, int32_t place)
{
	/* an earlier packet of the burst may have found that it has timed out */
	if (unlikely(place < 0 || sessions->sessions[place].phase == PHASE_FREE))
		return -1;
	if (likely(!session_timed_out(sessions, &sessions->sessions[place])))
		return place;
	session_remove(sessions, (uint32_t)place);
	return -1;
}

/* The mapping of an inside endpoint; or NULL. It may have timed out. */
struct mapping *mapping_inside(const struct sessions *sessions, uint8_t protocol,
			       struct endpoint endpoint);

/*
 * The session of a flow in the direction from inside; `*started` grows if it is new. Returns its
 * index or an enum session_failure.
 */
int32_t session_start(struct sessions *sessions, const struct flow_key *key, uint64_t *started);

/* Refresh a session after a packet; `tcp_flags` are 0 unless it is TCP. */
void session_seen(struct session *session, bool outward, uint8_t tcp_flags, uint64_t now_us);

/* Begin a burst: remove some of the sessions that have timed out. */
void sessions_age(struct sessions *sessions, uint64_t now_us);
