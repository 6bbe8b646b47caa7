/*
 * What is known of a packet besides its bytes: where it came from, where it goes, and its headers.
 *
 * It lies in a dynamic field of the mbuf. Who receives a packet calls metadata_begin(), who makes a
 * packet from another one metadata_inherit(); a buffer from a pool still has what it had before.
 */
#pragma once

#include <assert.h>

#include "core/packet.h"

/* The two sides of a function or chain. */
enum nf_side { NF_INSIDE = 0, NF_OUTSIDE = 1 };

/*
 * Where a packet leaves a function: forward, to the side that it did not come from; back, to the
 * side that it came from; or by a numbered gate, NF_BRANCH + k, of a function with several outputs.
 */
enum nf_gate { NF_FORWARD = 0, NF_BACK = 1, NF_BRANCH = 2 };

/* Most numbered gates of a function. */
#define NF_MOST_BRANCHES 64

struct metadata {
	uint32_t number; /* of the received packet, counted by its source */
	uint32_t begun;  /* when its source made it, if it says so: TSC / 256, or us */
	union {
		struct {
			uint16_t stop; /* where it is in a chain; see core/chain.h */
			uint8_t from;  /* enum nf_side */
			uint8_t gate;  /* enum nf_gate */
		};
		uint32_t way; /* the three as one: packets with equal ones leave together */
	};
	/* The data to which `headers` belong; 0, 0: not parsed yet. */
	uint16_t data_off, data_len;
	struct packet headers;
	uint8_t turns; /* how often it was sent back */
};

static_assert(sizeof(struct metadata) <= sizeof(((struct rte_mbuf *)NULL)->dynfield1),
	      "the metadata must fit the dynamic fields of an mbuf");

/*
 * Reserve the dynamic field, once EAL runs; every function and source of packets does. 0, or a
 * negative errno after printing why.
 */
int metadata_register(void);

static inline struct metadata *metadata_of(struct rte_mbuf *mbuf)
{
	return (struct metadata *)mbuf->dynfield1;
}

static inline const struct metadata *metadata_of_const(const struct rte_mbuf *mbuf)
{
	return (const struct metadata *)mbuf->dynfield1;
}

/* A received packet, which goes forward unless a function says otherwise. */
static inline void metadata_begin(struct rte_mbuf *mbuf, enum nf_side from, uint32_t number)
{
	struct metadata *metadata = metadata_of(mbuf);

	metadata->number = number;
	metadata->stop = 0;
	metadata->from = (uint8_t)from;
	metadata->gate = NF_FORWARD;
	metadata->turns = 0;
	metadata->data_off = 0;
	metadata->data_len = 0;
}

/* The time that `begun` has the lower bits of: at most an hour before now. */
static inline uint64_t metadata_time_us(const struct rte_mbuf *mbuf, uint64_t now_us)
{
	return now_us - ((uint32_t)now_us - metadata_of_const(mbuf)->begun);
}

/* A packet made from `of`, such as a fragment of it or an answer to it; its headers are others. */
static inline void metadata_inherit(struct rte_mbuf *mbuf, const struct rte_mbuf *of)
{
	struct metadata *metadata = metadata_of(mbuf);

	*metadata = *metadata_of_const(of);
	metadata->data_off = 0;
	metadata->data_len = 0;
}

static inline enum nf_side packet_from(const struct rte_mbuf *mbuf)
{
	return (enum nf_side)metadata_of_const(mbuf)->from;
}

/* Let a packet leave to a side. */
static inline void packet_send_to(struct rte_mbuf *mbuf, enum nf_side side)
{
	struct metadata *metadata = metadata_of(mbuf);

	metadata->gate = side == metadata->from ? NF_BACK : NF_FORWARD;
}

/* Let a packet leave by a numbered gate. */
static inline void packet_branch(struct rte_mbuf *mbuf, unsigned int branch)
{
	metadata_of(mbuf)->gate = (uint8_t)(NF_BRANCH + branch);
}

/* Send a packet back to where it, or the packet it was made from, came from. */
static inline void packet_send_back(struct rte_mbuf *mbuf)
{
	metadata_of(mbuf)->gate = NF_BACK;
}

/*
 * The headers of a packet, parsed once for all functions of a chain. A function that changes where
 * headers are, or their lengths, calls packet_changed().
 */
static inline struct packet packet_headers(struct rte_mbuf *mbuf)
{
	struct metadata *metadata = metadata_of(mbuf);

	if (metadata->data_len != rte_pktmbuf_data_len(mbuf) || metadata->data_len == 0 ||
	    metadata->data_off != mbuf->data_off) {
		metadata->headers = packet_parse(mbuf);
		metadata->data_off = mbuf->data_off;
		metadata->data_len = rte_pktmbuf_data_len(mbuf);
	}
	return metadata->headers;
}

/* The same, also behind the extension headers of IPv6. */
static inline struct packet packet_ip_headers(struct rte_mbuf *mbuf)
{
	return packet_behind_extensions(mbuf, packet_headers(mbuf));
}

static inline void packet_changed(struct rte_mbuf *mbuf)
{
	metadata_of(mbuf)->data_len = 0;
}
