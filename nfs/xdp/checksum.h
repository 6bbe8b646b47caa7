/* Updates Internet checksums when words that they cover change (RFC 1624, equation 3). */
#pragma once

#include "xdp/packet.h"

/* What a 32-bit word that is replaced adds to the complemented sum. */
static __always_inline __u64 word_change(__u32 before, __u32 after)
{
	return (__u64)(__u32)~before + after;
}

/* A checksum after changes, at most 2^16 of word_change(). */
static __always_inline __u16 checksum_after(__u16 checksum, __u64 changes)
{
	__u64 sum = (__u16)~checksum + changes;

	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)~sum;
}

/*
 * Update the checksum of UDP or TCP. UDP's 0 stands for none and stays; where the new one is 0,
 * 0xffff is written (RFC 768).
 */
static __always_inline void change_l4_checksum(const struct headers *headers, __u64 changes)
{
	struct udphdr *udp = headers->l4;
	struct tcphdr *tcp = headers->l4;
	__u16 checksum;

	/* the kernel's verifier no longer knows that a TCP header was found */
	if (headers->ip->protocol == IPPROTO_TCP) {
		if ((const void *)(tcp + 1) <= headers->end)
			tcp->check = checksum_after(tcp->check, changes);
	} else if (udp->check != 0) {
		checksum = checksum_after(udp->check, changes);
		udp->check = checksum ? checksum : 0xffff;
	}
}
