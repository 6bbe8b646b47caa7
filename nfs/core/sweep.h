/*
 * The pace at which a table is looked through for what has grown old: each burst looks at a few of
 * its entries, so that all are seen once in a while without ever stopping for it.
 */
#ifndef NFS_CORE_SWEEP_H
#define NFS_CORE_SWEEP_H

#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#define SWEEP_MOST 1024u /* entries that one burst looks at, however long there was none */

struct sweep {
	uint32_t entries, next;
	uint64_t round_us; /* in which every entry is seen once */
	uint64_t step_us;  /* in which one is, at least */
	uint64_t paid_us;  /* until when what is due has been looked at */
};

static inline struct sweep sweep_of(uint32_t entries, uint64_t round_us)
{
	return (struct sweep){
		.entries = entries,
		.round_us = RTE_MAX(round_us, 1u),
		.step_us = round_us / entries + 1,
	};
}

/* What has to be looked at now, by calls of `sweep_next`. */
static inline uint32_t sweep_due(struct sweep *sweep, uint64_t now_us)
{
	uint64_t owed = now_us - sweep->paid_us, looks;

	if (likely(owed < sweep->step_us))
		return 0;
	owed = RTE_MIN(owed, sweep->round_us);
	looks = RTE_MIN(owed * sweep->entries / sweep->round_us, SWEEP_MOST);
	/* what is left over, of a look or of many, is owed on */
	sweep->paid_us = now_us - owed + looks * sweep->round_us / sweep->entries;
	return (uint32_t)looks;
}

/* The entry whose turn it is. */
static inline uint32_t sweep_next(struct sweep *sweep)
{
	const uint32_t entry = sweep->next;

	sweep->next = entry + 1 < sweep->entries ? entry + 1 : 0;
	return entry;
}

#endif
