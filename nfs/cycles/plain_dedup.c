#include <string.h>

#include <rte_hash.h>

#include "core/memory.h"
#include "core/packet.h"
#include "cycles/peer.h"
#include "functions/dedup/siphash.h"

#define PAYLOAD_AT                                                                                 \
	(sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))
#define CACHED 4096 /* as by the function's defaults */
#define DEPTH 8
#define REFERENCE 30 /* bytes of a payload that refers to another one */

/* Whole payloads by their hash. */
struct cache {
	struct rte_hash *places;
	struct rte_mempool *spare;
	struct siphash_key key;
	uint32_t newest;
	uint64_t hashes[CACHED];
	uint8_t generations[CACHED];
	uint8_t bytes[CACHED][2048];
};

static void *create(void)
{
	const struct rte_hash_parameters parameters = {.name = "plain_dedup",
						       .entries = 2 * CACHED,
						       .key_len = sizeof(uint64_t),
						       .socket_id = SOCKET_ID_ANY};
	struct cache *cache = nf_zalloc(sizeof(*cache));

	if (!cache)
		return NULL;
	cache->places = rte_hash_create(&parameters);
	cache->spare = rte_pktmbuf_pool_create("plain_dedup", 8191, 256, 0,
					       RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return cache->places && cache->spare ? cache : NULL;
}

/* A packet whose payload is the hash of the original. */
static struct rte_mbuf *reference(struct cache *cache, struct rte_mbuf *packet, uint64_t hash)
{
	struct rte_mbuf *made = rte_pktmbuf_alloc(cache->spare);
	uint8_t *to = rte_pktmbuf_mtod(made, uint8_t *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(to + sizeof(struct rte_ether_hdr));

	made->data_len = made->pkt_len = PAYLOAD_AT + REFERENCE;
	memcpy(to, rte_pktmbuf_mtod(packet, uint8_t *), PAYLOAD_AT);
	memset(to + PAYLOAD_AT, 0, REFERENCE);
	memcpy(to + PAYLOAD_AT, &hash, sizeof(hash));
	ip->total_length = rte_cpu_to_be_16(PAYLOAD_AT + REFERENCE - sizeof(struct rte_ether_hdr));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	rte_pktmbuf_free(packet);
	return made;
}

static void store(struct cache *cache, const uint8_t *payload, uint16_t length, uint64_t hash,
		  uint8_t generation)
{
	const uint32_t place = ++cache->newest % CACHED;
	void *known;

	if (rte_hash_lookup_data(cache->places, &cache->hashes[place], &known) >= 0 &&
	    (uint32_t)(uintptr_t)known == place)
		rte_hash_del_key(cache->places, &cache->hashes[place]);
	cache->hashes[place] = hash;
	cache->generations[place] = generation;
	memcpy(cache->bytes[place], payload, length);
	rte_hash_add_key_data(cache->places, &hash, (void *)(uintptr_t)place);
}

static void process(void *of, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	struct cache *cache = of;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *payload =
			rte_pktmbuf_mtod_offset(packets[i], const uint8_t *, PAYLOAD_AT);
		const uint16_t length = rte_pktmbuf_data_len(packets[i]) - PAYLOAD_AT;
		const uint64_t hash = siphash(&cache->key, payload, length);
		uint8_t generation = 0;
		void *place;

		if (rte_hash_lookup_data(cache->places, &hash, &place) >= 0 &&
		    cache->generations[(uintptr_t)place] < DEPTH)
			generation = cache->generations[(uintptr_t)place] + 1;
		store(cache, payload, length, hash, generation);
		nf_send(out, generation > 0 ? reference(cache, packets[i], hash) : packets[i]);
	}
}

static void destroy(void *of)
{
	struct cache *cache = of;

	rte_hash_free(cache->places);
	rte_mempool_free(cache->spare);
	nf_free(cache);
}

PLAIN_PEER("Dedup", "SipHash of each payload, rte_hash_lookup, copy into the cache: finds only "
	   "whole payloads, as in this traffic")
