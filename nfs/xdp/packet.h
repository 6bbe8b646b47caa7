/*
 * Reads packets in XDP programs, as core/packet.h does in the servers: all platforms agree on what
 * is IPv4, which ports a packet has, and what is malformed.
 *
 * No loop, no call: the SmartNIC takes neither (Lemur, appendix A.3).
 */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define TAG_BYTES 4
#define VLAN_MASK 0xfff
#define ICMP_BYTES 8
#define NOT_WHOLE 0x3fff /* the flag MF, and the offset of fragments */
#define OFFSET_MASK 0x1fff

enum packet_type { PACKET_MALFORMED, PACKET_OTHER, PACKET_ARP, PACKET_IPV6, PACKET_IPV4 };

/*
 * Headers of a packet. Pointers hold until the packet's head moves. `l4` and `payload` are NULL
 * without such a header: other protocols than UDP, TCP and ICMP, and fragments but the first.
 */
struct headers {
	enum packet_type type;
	bool tagged;
	__u16 vlan; /* of the outer tag */
	struct iphdr *ip;
	void *l4;
	void *payload;
	const void *end; /* of the frame */
	__u32 payload_length; /* by the IPv4 header, without the frame's padding */
	bool fragment;        /* any part of a datagram, including the first */
};

static __always_inline void *packet_begin(const struct xdp_md *ctx)
{
	return (void *)(long)ctx->data;
}

static __always_inline void *packet_end(const struct xdp_md *ctx)
{
	return (void *)(long)ctx->data_end;
}

static __always_inline bool is_tag(__be16 type)
{
	return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

static __always_inline bool has_ports(const struct headers *headers)
{
	return headers->l4 &&
	       (headers->ip->protocol == IPPROTO_UDP || headers->ip->protocol == IPPROTO_TCP);
}

/* Length of the layer 4 header with `room` bytes for it and its payload; 0 if it does not fit. */
static __always_inline __u32 l4_length(__u8 protocol, const void *l4, __u32 room, const void *end)
{
	const struct tcphdr *tcp = l4;
	__u32 length;

	if (l4 + ICMP_BYTES > end || room < ICMP_BYTES)
		return 0;
	if (protocol != IPPROTO_TCP)
		return ICMP_BYTES; /* UDP's header is as long */
	if ((const void *)(tcp + 1) > end || room < sizeof(*tcp))
		return 0;
	length = (((const __u8 *)l4)[12] >> 4) * 4;
	return length >= sizeof(*tcp) && length <= room ? length : 0;
}

static __always_inline void read_l4(struct headers *headers, __u32 header, __u32 room,
				    const void *end)
{
	const __u8 protocol = headers->ip->protocol;
	void *l4 = (void *)headers->ip + header;
	__u32 length;

	if (headers->ip->frag_off & bpf_htons(OFFSET_MASK))
		return;
	if (protocol != IPPROTO_UDP && protocol != IPPROTO_TCP && protocol != IPPROTO_ICMP)
		return;
	length = l4_length(protocol, l4, room, end);
	if (length == 0) {
		headers->type = PACKET_MALFORMED;
		return;
	}
	headers->l4 = l4;
	headers->payload = l4 + length;
	headers->payload_length = room - length;
}

static __always_inline void read_ipv4(struct headers *headers, struct iphdr *ip, const void *end)
{
	__u32 header, total;
	__u8 first;

	headers->type = PACKET_MALFORMED;
	if ((void *)(ip + 1) > end)
		return;
	first = *(__u8 *)ip;
	header = (first & 0xf) * 4;
	total = bpf_ntohs(ip->tot_len);
	if (first >> 4 != 4 || header < sizeof(*ip) || (void *)ip + header > end ||
	    total < header || end - (void *)ip < total)
		return;
	headers->type = PACKET_IPV4;
	headers->ip = ip;
	headers->fragment = ip->frag_off & bpf_htons(NOT_WHOLE);
	read_l4(headers, header, total - header, end);
}

/* Find the headers, behind up to two VLAN tags. */
static __always_inline struct headers read_headers(const struct xdp_md *ctx)
{
	void *l3 = packet_begin(ctx) + ETH_HLEN, *end = packet_end(ctx);
	struct headers headers = {.type = PACKET_MALFORMED, .end = end};
	__be16 type;

	if (l3 > end)
		return headers;
	type = *(__be16 *)(l3 - sizeof(type));
	if (is_tag(type)) {
		l3 += TAG_BYTES;
		if (l3 > end)
			return headers;
		headers.tagged = true;
		headers.vlan = bpf_ntohs(*(__be16 *)(l3 - TAG_BYTES)) & VLAN_MASK;
		type = *(__be16 *)(l3 - sizeof(type));
		if (is_tag(type)) {
			l3 += TAG_BYTES;
			if (l3 > end)
				return headers;
			type = *(__be16 *)(l3 - sizeof(type));
		}
	}
	headers.type = type == bpf_htons(ETH_P_ARP)    ? PACKET_ARP
		       : type == bpf_htons(ETH_P_IPV6) ? PACKET_IPV6
						       : PACKET_OTHER;
	if (type == bpf_htons(ETH_P_IP))
		read_ipv4(&headers, l3, end);
	return headers;
}

/* Copy the two MAC addresses in front of a packet; source and destination may overlap. */
static __always_inline void copy_addresses(void *to, const void *from)
{
	const __u32 *words = from;
	const __u32 first = words[0], second = words[1], third = words[2];
	__u32 *copies = to;

	copies[0] = first;
	copies[1] = second;
	copies[2] = third;
}
