/*
 * The MTU of the path between the ends of an IPSec tunnel, as ICMP errors about its packets say (RFC
 * 4301, section 8.2). Errors are not authentic: believed are those that quote a recent packet, and no
 * MTU below 576, which every host takes: where one says less, routers may fragment instead.
 */
#pragma once

#include "core/packet.h"
#include "functions/ipsec/ipsec.h"

#define PATH_MTU_LEAST 576
#define PATH_MTU_HELD_US 600000000ull /* until larger packets are tried again (RFC 1191, 6.3) */
#define PATH_MTU_SECONDS 8

struct path_mtu {
	uint16_t mtu;      /* 0: not known */
	bool below;        /* an error said less than PATH_MTU_LEAST */
	uint64_t until_us; /* both hold */
	uint64_t begun[PATH_MTU_SECONDS]; /* packets that had arrived when a second began */
	uint64_t next_us;                 /* when the next second begins */
	uint32_t second;                  /* the last one, in `begun` */
};

/* Begin a burst, before which `arrived` packets have arrived. */
static inline void path_mtu_begin(struct path_mtu *path, uint64_t arrived, uint64_t now_us)
{
	if (likely(now_us < path->next_us))
		return;
	path->next_us = now_us + 1000000;
	path->second = (path->second + 1) % PATH_MTU_SECONDS;
	path->begun[path->second] = arrived;
}

/*
 * Whether a packet to the end that encrypts is an error that one of its packets, of which `arrived`
 * is the number of the last one, is too big; also notes the MTU.
 */
bool path_mtu_learn(struct path_mtu *path, struct rte_mbuf *mbuf, const struct packet *packet,
		    const struct ipsec_settings *settings, uint64_t arrived, uint64_t now_us);

/* Whether routers may fragment what the tunnel sends, whatever is in it. */
static inline bool path_mtu_fragments(const struct path_mtu *path, uint64_t now_us)
{
	return unlikely(path->below) && now_us < path->until_us;
}

/* The longest packet that the tunnel takes without its fragmentation, bytes. */
static inline uint16_t path_mtu_inner(const struct path_mtu *path, uint64_t now_us)
{
	const uint16_t added = 20 + 8 + IPSEC_IV + IPSEC_ICV; /* header, SPI and number */

	if (likely(path->mtu == 0 || now_us >= path->until_us))
		return UINT16_MAX;
	return (uint16_t)(RTE_ALIGN_FLOOR(path->mtu - added, 4) - sizeof(struct rte_esp_tail));
}
