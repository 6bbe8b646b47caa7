/* What of IPSec its kernel for GPUs (gpu/state/ipsec.c) shares: the settings as they are used. */
#pragma once

#include "core/nf.h"
#include "functions/ipsec/cipher.h"

#define IPSEC_TTL 64 /* of the outer header */

struct ipsec_settings {
	struct ipsec_keys keys;
	uint32_t spi;           /* of packets from inside; of those from outside: one more */
	uint32_t seed;          /* upper bits of initialization vectors */
	bool tunnel;            /* else transport mode */
	uint32_t ends[2];       /* outer addresses by side, in host byte order */
	enum nf_side encrypted; /* packets that come from here are encrypted */
};

/* False after printing what is wrong. */
bool ipsec_settings_of(const struct nf *nf, struct ipsec_settings *settings);

/*
 * The initialization vector of the packet with a number: its direction, the seed, and the number,
 * so that none repeats with a key.
 */
static inline uint64_t ipsec_iv(const struct ipsec_settings *settings, enum nf_side from,
				uint32_t sequence)
{
	return (uint64_t)from << 63 | (uint64_t)settings->seed << 32 | sequence;
}
