/*
 * Parses packet headers without trusting them, as core/packet.h does: nothing is read beyond the
 * `held` bytes, and headers that exceed them are malformed.
 */
#pragma once

#include "gpu/kernels/task.h"

#define ETHERNET_BYTES 14u
#define VLAN_BYTES 4u
#define IPV4_BYTES 20u
#define UDP_BYTES 8u
#define ICMP_BYTES 8u
#define TCP_BYTES 20u

#define TYPE_IPV4 0x0800u
#define TYPE_VLAN 0x8100u
#define TYPE_QINQ 0x88a8u

#define PROTOCOL_ICMP 1u
#define PROTOCOL_TCP 6u
#define PROTOCOL_UDP 17u

enum view_kind { VIEW_IPV4, VIEW_OTHER, VIEW_MALFORMED };

/*
 * Offsets from the start of the frame. Of a malformed packet `l3` is not 0 if its IPv4 header is
 * valid. `l4` and `payload` are 0 without such a header.
 */
struct view {
	u32 kind;
	u32 l3, header; /* of IPv4, and its bytes */
	u32 total;      /* bytes by the IPv4 header */
	u32 protocol;
	u32 fragment;             /* bool: any part of a datagram */
	u32 non_initial_fragment; /* bool */
	u32 l4, payload, payload_length;
};

/* Offset behind Ethernet and at most two VLAN tags, and the type there; 0 if they exceed `held`. */
DEVICE u32 past_ethernet_header(GLOBAL const u8 *frame, u32 held, u32 *type)
{
	u32 at = ETHERNET_BYTES;

	*type = 0;
	if (held < at)
		return 0;
	*type = bytes16(frame + 12);
	for (u32 tags = 0; tags < 2 && (*type == TYPE_VLAN || *type == TYPE_QINQ); tags++) {
		if (held < at + VLAN_BYTES)
			return 0;
		*type = bytes16(frame + at + 2);
		at += VLAN_BYTES;
	}
	return at;
}

/* Bytes of a layer 4 header with `room` bytes present; 0 if it does not fit. */
DEVICE u32 l4_bytes(GLOBAL const u8 *l4, u32 protocol, u32 room)
{
	u32 length;

	if (protocol == PROTOCOL_UDP)
		return room >= UDP_BYTES ? UDP_BYTES : 0;
	if (protocol == PROTOCOL_ICMP)
		return room >= ICMP_BYTES ? ICMP_BYTES : 0;
	if (room < TCP_BYTES)
		return 0;
	length = (u32)(l4[12] >> 4) * 4;
	return length >= TCP_BYTES && length <= room ? length : 0;
}

DEVICE void view_l4(GLOBAL const u8 *frame, u32 held, struct view *view)
{
	const u32 l4 = view->l3 + view->header, behind = view->total - view->header;
	u32 bytes;

	if (view->non_initial_fragment ||
	    (view->protocol != PROTOCOL_UDP && view->protocol != PROTOCOL_TCP &&
	     view->protocol != PROTOCOL_ICMP))
		return;
	bytes = l4_bytes(frame + l4, view->protocol, held - l4 < behind ? held - l4 : behind);
	if (bytes == 0) {
		view->kind = VIEW_MALFORMED;
		return;
	}
	view->l4 = l4;
	view->payload = l4 + bytes;
	view->payload_length = behind - bytes;
}

DEVICE void view_ipv4(GLOBAL const u8 *frame, u32 length, u32 held, struct view *view)
{
	const u32 l3 = view->l3;
	u32 fragment;

	view->kind = VIEW_MALFORMED;
	view->l3 = 0;
	if (held < l3 + IPV4_BYTES || frame[l3] >> 4 != 4)
		return;
	view->header = (u32)(frame[l3] & 15) * 4;
	view->total = bytes16(frame + l3 + 2);
	if (view->header < IPV4_BYTES || held < l3 + view->header || view->total < view->header ||
	    length < l3 + view->total)
		return;
	fragment = bytes16(frame + l3 + 6);
	view->kind = VIEW_IPV4;
	view->l3 = l3;
	view->protocol = frame[l3 + 9];
	view->fragment = (fragment & 0x3fff) != 0;
	view->non_initial_fragment = (fragment & 0x1fff) != 0;
	view_l4(frame, held, view);
}

DEVICE struct view view_of(GLOBAL const u8 *frame, u32 length, u32 held)
{
	struct view view;
	u32 type;

	view.kind = VIEW_OTHER;
	view.header = view.total = view.protocol = 0;
	view.fragment = view.non_initial_fragment = 0;
	view.l4 = view.payload = view.payload_length = 0;
	view.l3 = past_ethernet_header(frame, held, &type);
	if (view.l3 == 0)
		view.kind = VIEW_MALFORMED;
	else if (type == TYPE_IPV4)
		view_ipv4(frame, length, held, &view);
	return view;
}

/* Whether the IPv4 header is valid, whatever follows. */
DEVICE u32 view_has_ipv4(const struct view *view)
{
	return view->kind == VIEW_IPV4 || (view->kind == VIEW_MALFORMED && view->l3 != 0);
}
