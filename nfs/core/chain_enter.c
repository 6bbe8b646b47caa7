#include "core/chain_parts.h"

/* The entry of a service; NULL if there is none. */
static const struct entry *find_entry(const struct chain *chain, uint32_t key)
{
	for (uint32_t slot = entry_slot(key);; slot = (slot + 1) % ENTRY_SLOTS) {
		const uint16_t number = chain->entry_slots[slot];

		if (number == 0)
			return NULL;
		if (likely(chain->entries[number - 1].key == key))
			return &chain->entries[number - 1];
	}
}

/* The stop of a packet from inside, without its service header; NO_STOP for a cause. */
static inline uint16_t entry_of(const struct chain *chain, struct rte_mbuf *mbuf,
				const struct entry **last, enum chain_loss *loss)
{
	struct service service;
	enum nsh_result result = nsh_pop(mbuf, &service);

	if (unlikely(result != NSH_POPPED)) {
		*loss = result == NSH_NONE ? CHAIN_WITHOUT_NSH : CHAIN_INVALID_NSH;
		return result == NSH_NONE ? chain->inside : NO_STOP;
	}
	if (unlikely(!*last || (*last)->key != service_key(service)))
		*last = find_entry(chain, service_key(service));
	if (unlikely(!*last)) {
		*loss = CHAIN_UNKNOWN_PATH;
		return NO_STOP;
	}
	if (likely((*last)->ways.n == 1))
		return (*last)->stops[0];
	return (*last)->stops[way_of(&(*last)->ways, mbuf)];
}

/*
 * Find the stops of a burst, which keeps the packets that may enter. Returns how many; `*stop` is
 * that of all, as nearly always, or NO_STOP, and then each packet has its own.
 */
static uint16_t find_stops(struct chain *chain, unsigned int core, struct rte_mbuf **packets,
			   uint16_t n, uint16_t *stop)
{
	const struct entry *last = NULL;
	uint16_t stops[NF_BURST] = {NO_STOP}, differ = 0, kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		enum chain_loss loss = CHAIN_WITHOUT_NSH;

		stops[kept] = entry_of(chain, packets[i], &last, &loss);
		if (unlikely(stops[kept] == NO_STOP)) {
			chain_lose(chain->cores[core], loss, &packets[i], 1);
			continue;
		}
		differ |= stops[kept] ^ stops[0];
		packets[kept++] = packets[i];
	}
	*stop = differ ? NO_STOP : stops[0];
	for (uint16_t i = 0; differ && i < kept; i++)
		metadata_of(packets[i])->stop = stops[i];
	return kept;
}

void chain_enter(struct chain *chain, struct rte_mbuf **packets, uint16_t n, uint64_t now_us)
{
	const enum nf_side from = packet_from(packets[0]);
	const unsigned int core = chain_entry_core(chain, from);
	uint16_t stop = from == NF_OUTSIDE ? chain->outside : chain->inside;

	if (chain->n_entries > 0 && from == NF_INSIDE)
		n = find_stops(chain, core, packets, n, &stop);
	if (unlikely(stop == NO_STOP))
		chain_run_mixed(chain, core, packets, n, now_us);
	else if (likely(n > 0))
		chain_deliver(chain, core, stop, packets, n, now_us);
	chain_run_backlog(chain, core, now_us);
}

unsigned int chain_entry_core(const struct chain *chain, enum nf_side from)
{
	const uint16_t stop = from == NF_OUTSIDE ? chain->outside : chain->inside;

	/* core 0 sorts packets by their services */
	return stop == NO_STOP ? 0 : chain->places[chain->stops[stop].place]->core;
}
