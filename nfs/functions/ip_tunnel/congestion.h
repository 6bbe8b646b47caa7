/* ECN marks of decapsulated packets. */
#pragma once

#include "core/ipv4.h"

/*
 * Copy the ECN mark of the outer header to the inner one (RFC 6040, section 4.2). False if the
 * packet must be freed, because its sender does not support ECN.
 */
static inline bool copy_congestion_mark(struct rte_ipv4_hdr *inner, uint8_t outer)
{
	const uint8_t inner_mark = inner->type_of_service & RTE_IPV4_HDR_ECN_MASK;
	const uint8_t ce = RTE_IPV4_HDR_ECN_CE, ect1 = 1;
	rte_be16_t before, after;

	outer &= RTE_IPV4_HDR_ECN_MASK;
	if (inner_mark == 0)
		return outer != ce;
	if (outer != ce && !(outer == ect1 && inner_mark != ce))
		return true;
	before = rte_cpu_to_be_16(inner->version_ihl << 8 | inner->type_of_service);
	inner->type_of_service = (inner->type_of_service & ~RTE_IPV4_HDR_ECN_MASK) | outer;
	after = rte_cpu_to_be_16(inner->version_ihl << 8 | inner->type_of_service);
	inner->hdr_checksum = checksum_changed(inner->hdr_checksum, before, after);
	return true;
}
