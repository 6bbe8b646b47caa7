/*
 * IPRouter on the device: forwards by longest prefix match in a DIR-24-8 table.
 *
 * The result holds the rewritten headers; `detail` is the gate (core/metadata.h). ICMP errors are
 * the host's, by the verdict.
 */
#pragma once

#include "gpu/kernels/packet.h"

enum ip_router_verdict {
	ROUTER_FORWARDED,
	ROUTER_EXPIRED,
	ROUTER_UNROUTABLE,
	ROUTER_MARTIAN,
	ROUTER_MULTICAST,
	ROUTER_LOCAL,
	ROUTER_BAD_CHECKSUM,
	ROUTER_OTHER,
	ROUTER_MALFORMED,
};

/*
 * Tables, in words: a gate for each hop, an entry for each 24 bits of an address, and groups of 256
 * entries for those that need all bits. An entry with ROUTER_GROUP is the number of a group; others
 * are a hop, or one of the four special ones (functions/ip_router/table.h) from ROUTER_TO_ITSELF
 * on.
 */
#define ROUTER_HOPS 256u
#define ROUTER_ENTRIES (1u << 24)
#define ROUTER_ENTRIES_AT ROUTER_HOPS
#define ROUTER_GROUPS_AT (ROUTER_HOPS + ROUTER_ENTRIES)
#define ROUTER_GROUP (1u << 31)
#define ROUTER_TO_ITSELF 0xfffffcu

DEVICE u32 router_lookup(GLOBAL const u32 *words, u32 address)
{
	const u32 entry = words[ROUTER_ENTRIES_AT + (address >> 8)];

	if ((entry & ROUTER_GROUP) == 0)
		return entry;
	return words[ROUTER_GROUPS_AT + (u64)(entry & ~ROUTER_GROUP) * 256 + (address & 255)];
}

/* Whether the words of an IPv4 header add up to 0 modulo 0xffff (RFC 1071). */
DEVICE u32 router_checksum_is_right(GLOBAL const u8 *ip, u32 header)
{
	u32 sum = 0;

	for (u32 at = 0; at < header; at += 2)
		sum += bytes16(ip + at);
	return sum % 0xffff == 0;
}

/* Whether packets from an address may be forwarded: ipv4_is_routed() of core/ipv4.h. */
DEVICE u32 router_is_routed(u32 address)
{
	const u32 first = address >> 24;

	return first != 0 && first != 127 && first < 224 && address >> 16 != 0xa9fe;
}

/* The verdict of a packet that is not looked up; ROUTER_FORWARDED if it is. */
DEVICE u32 router_reject(GLOBAL const u8 *frame, const struct view *view)
{
	if (!view_has_ipv4(view))
		return view->kind == VIEW_OTHER ? ROUTER_OTHER : ROUTER_MALFORMED;
	if (!router_checksum_is_right(frame + view->l3, view->header))
		return ROUTER_BAD_CHECKSUM;
	if (frame[0] & 1)
		return ROUTER_MULTICAST;
	return router_is_routed(bytes32(frame + view->l3 + 12)) ? ROUTER_FORWARDED : ROUTER_MARTIAN;
}

/* The verdict of a packet to a hop that is none. */
DEVICE u32 router_special(u32 hop)
{
	const u32 special = hop - ROUTER_TO_ITSELF;

	if (special == 0)
		return ROUTER_LOCAL;
	if (special == 1)
		return ROUTER_MULTICAST;
	return special == 2 ? ROUTER_MARTIAN : ROUTER_UNROUTABLE;
}

/* Decrement the time to live and update the checksum: ipv4_hop() of core/ipv4.h. */
DEVICE void router_hop(GLOBAL u8 *ip)
{
	u32 sum = ((u32)ip[11] << 8 | ip[10]) + 1;

	sum += sum >= 0xffff;
	ip[8]--;
	ip[10] = (u8)sum;
	ip[11] = (u8)(sum >> 8);
}

/* Write the headers of a forwarded packet: addresses of Ethernet, then what follows, up to `end`.
 */
DEVICE void router_write(GLOBAL u8 *to, GLOBAL const u8 *frame, u32 l3, u32 hop)
{
	to[0] = 2;
	to[1] = to[2] = to[4] = 0;
	to[3] = 1;
	to[5] = (u8)hop;
	to[6] = 2;
	to[7] = to[8] = to[9] = to[10] = 0;
	to[11] = 1;
	for (u32 at = 12; at < l3 + IPV4_BYTES; at++)
		to[at] = frame[at];
	router_hop(to + l3);
}

DEVICE void router_packet(GLOBAL const struct gpu_slot *slot, GLOBAL struct gpu_slot *result,
			  GLOBAL const u32 *words, u32 room)
{
	GLOBAL const u8 *frame = gpu_frame(slot);
	const struct view view = view_of(frame, slot->length, slot->held);
	u32 verdict = router_reject(frame, &view), hop = 0;

	if (verdict == ROUTER_FORWARDED) {
		hop = router_lookup(words, bytes32(frame + view.l3 + 16));
		if (hop >= ROUTER_TO_ITSELF)
			verdict = router_special(hop);
		else if (frame[view.l3 + 8] <= 1)
			verdict = ROUTER_EXPIRED;
		else if (room < view.l3 + IPV4_BYTES)
			verdict = ROUTER_MALFORMED;
	}
	if (verdict != ROUTER_FORWARDED) {
		gpu_result(result, verdict | GPU_FREED, 0, slot->length, 0);
		return;
	}
	router_write((GLOBAL u8 *)result + GPU_FRAME_AT, frame, view.l3, hop);
	gpu_result(result, verdict, words[hop], slot->length, view.l3 + IPV4_BYTES);
}

DEVICE void nf_ip_router(GLOBAL const u8 *in, GLOBAL u8 *out, GLOBAL const u8 *state,
			 const struct gpu_task *task, u32 lane, u32 lanes)
{
	GLOBAL const u32 *words = (GLOBAL const u32 *)(state + task->state_at);

	for (u32 i = lane; i < task->n; i += lanes)
		router_packet(gpu_slot_in(in, task, i), gpu_slot_out(out, task, i), words,
			      GPU_ROOM(task));
}
