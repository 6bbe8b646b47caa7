/*
 * ACL on the device: the first filter that matches a packet's addresses, protocol and ports
 * decides, by tuple space search (Srinivasan, Suri and Varghese, 1999).
 *
 * Filters with the same prefix lengths, all with or all without a protocol, are a tuple. A hash of
 * what a tuple's mask leaves of the packet leads to a chain of its filters, lower numbers first.
 * Tuples are in the order of their lowest filter: those behind the best match so far are not
 * searched. `detail` is the number of the filter plus one, 0 without a match. Nothing is rewritten.
 */
#pragma once

#include "gpu/kernels/packet.h"

enum acl_verdict { ACL_PERMITTED, ACL_DENIED, ACL_OTHER, ACL_MALFORMED };

#define ACL_ANY_PROTOCOL 0u
#define ACL_NONE 0xffffffffu

/* Where tables are, in bytes from this head. */
struct acl_head {
	u32 n_tuples, tuples_at;
	u32 buckets, buckets_at; /* a power of two; of each: the first filter of its chain */
	u32 filters_at;
	u32 default_permit;
};

struct acl_tuple {
	u32 source_mask, destination_mask;
	u32 has_protocol;
	u32 lowest; /* filter of this tuple */
};

struct acl_filter_entry {
	u32 source, destination, protocol, tuple;
	u32 source_ports, destination_ports; /* the lower one, and the higher one << 16 */
	u32 permit;
	u32 next; /* of its chain; ACL_NONE */
};

/* The fields of a packet that filters are about; ports are 0 without such. */
struct acl_key {
	u32 source, destination, protocol, source_port, destination_port;
};

DEVICE u32 acl_bucket(u32 tuple, u32 source, u32 destination, u32 protocol)
{
	u32 hash = (source ^ tuple * 0x9e3779b1u) * 0x85ebca6bu;

	hash = (hash ^ hash >> 15 ^ destination) * 0xc2b2ae35u;
	hash = (hash ^ hash >> 13 ^ protocol) * 0x27d4eb2fu;
	return hash ^ hash >> 16;
}

DEVICE u32 acl_has_port(u32 ports, u32 port)
{
	return (ports & 0xffff) <= port && port <= ports >> 16;
}

/* The lowest matching filter of a tuple below `best`, else `best`. */
DEVICE u32 acl_search_tuple(GLOBAL const u8 *state, u32 tuple, const struct acl_key *key, u32 best)
{
	GLOBAL const struct acl_head *head = (GLOBAL const struct acl_head *)state;
	GLOBAL const struct acl_tuple *mask =
		(GLOBAL const struct acl_tuple *)(state + head->tuples_at) + tuple;
	GLOBAL const u32 *buckets = (GLOBAL const u32 *)(state + head->buckets_at);
	GLOBAL const struct acl_filter_entry *filters =
		(GLOBAL const struct acl_filter_entry *)(state + head->filters_at);
	const u32 source = key->source & mask->source_mask;
	const u32 destination = key->destination & mask->destination_mask;
	const u32 protocol = mask->has_protocol ? key->protocol : ACL_ANY_PROTOCOL;
	u32 i = buckets[acl_bucket(tuple, source, destination, protocol) & (head->buckets - 1)];

	for (; i < best; i = filters[i].next)
		if (filters[i].tuple == tuple && filters[i].source == source &&
		    filters[i].destination == destination && filters[i].protocol == protocol &&
		    acl_has_port(filters[i].source_ports, key->source_port) &&
		    acl_has_port(filters[i].destination_ports, key->destination_port))
			return i;
	return best;
}

/* The first filter that matches; ACL_NONE. */
DEVICE u32 acl_search(GLOBAL const u8 *state, const struct acl_key *key)
{
	GLOBAL const struct acl_head *head = (GLOBAL const struct acl_head *)state;
	GLOBAL const struct acl_tuple *tuples =
		(GLOBAL const struct acl_tuple *)(state + head->tuples_at);
	u32 best = ACL_NONE;

	for (u32 tuple = 0; tuple < head->n_tuples && tuples[tuple].lowest < best; tuple++)
		best = acl_search_tuple(state, tuple, key, best);
	return best;
}

DEVICE struct acl_key acl_key_of(GLOBAL const u8 *frame, const struct view *view)
{
	const u32 has_ports = view->l4 != 0 && view->protocol != PROTOCOL_ICMP;
	struct acl_key key;

	key.source = bytes32(frame + view->l3 + 12);
	key.destination = bytes32(frame + view->l3 + 16);
	key.protocol = view->protocol;
	key.source_port = has_ports ? bytes16(frame + view->l4) : 0;
	key.destination_port = has_ports ? bytes16(frame + view->l4 + 2) : 0;
	return key;
}

DEVICE void acl_packet(GLOBAL const struct gpu_slot *slot, GLOBAL struct gpu_slot *result,
		       GLOBAL const u8 *state)
{
	GLOBAL const struct acl_head *head = (GLOBAL const struct acl_head *)state;
	GLOBAL const struct acl_filter_entry *filters =
		(GLOBAL const struct acl_filter_entry *)(state + head->filters_at);
	GLOBAL const u8 *frame = gpu_frame(slot);
	const struct view view = view_of(frame, slot->length, slot->held);
	u32 filter = ACL_NONE, verdict = view.kind == VIEW_OTHER ? ACL_OTHER : ACL_MALFORMED;

	if (view.kind == VIEW_IPV4) {
		const struct acl_key key = acl_key_of(frame, &view);
		u32 permits = head->default_permit;

		filter = acl_search(state, &key);
		if (filter != ACL_NONE)
			permits = filters[filter].permit;
		verdict = permits ? ACL_PERMITTED : ACL_DENIED;
	}
	if (verdict == ACL_DENIED || verdict == ACL_MALFORMED)
		verdict |= GPU_FREED;
	gpu_result(result, verdict, filter + 1, slot->length, 0);
}

DEVICE void nf_acl(GLOBAL const u8 *in, GLOBAL u8 *out, GLOBAL const u8 *state,
		   const struct gpu_task *task, u32 lane, u32 lanes)
{
	for (u32 i = lane; i < task->n; i += lanes)
		acl_packet(gpu_slot_in(in, task, i), gpu_slot_out(out, task, i),
			   state + task->state_at);
}
