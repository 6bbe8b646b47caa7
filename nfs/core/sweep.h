/*
 * Spreads the removal of old table entries over bursts: each burst checks a few entries, so that
 * all are checked once per period without a pause.
 */
#pragma once

#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#define SWEEP_MOST 1024u /* most entries checked per burst, however long the last pause was */

struct sweep {
	uint32_t entries, next;
	uint64_t round_us; /* period in which every entry is checked once */
	uint64_t step_us;  /* time per entry */
	uint64_t paid_us;  /* time up to which the due entries were checked */
};

static inline struct sweep sweep_of(uint32_t entries, uint64_t round_us)
{
	return (struct sweep){
		.entries = entries,
		.round_us = RTE_MAX(round_us, 1u),
		.step_us = round_us / entries + 1,
	};
}

/* The number of entries to check now, by calls of `sweep_next`. */
static inline uint32_t sweep_due(struct sweep *sweep, uint64_t now_us)
{
	uint64_t due_us = now_us - sweep->paid_us, checks;

	if (likely(due_us < sweep->step_us))
		return 0;
	due_us = RTE_MIN(due_us, sweep->round_us);
	checks = RTE_MIN(due_us * sweep->entries / sweep->round_us, SWEEP_MOST);
	/* the remainder is carried over */
	sweep->paid_us = now_us - due_us + checks * sweep->round_us / sweep->entries;
	return (uint32_t)checks;
}

/* The next entry to check. */
static inline uint32_t sweep_next(struct sweep *sweep)
{
	const uint32_t entry = sweep->next;

	sweep->next = entry + 1 < sweep->entries ? entry + 1 : 0;
	return entry;
}
