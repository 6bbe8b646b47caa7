/* Checks of entries that DPDK 22.11 does not make: it truncates numbers, and replaces twins. */
#pragma once

#include <rte_swx_ctl.h>

#include "rack/text.h"

struct entry_check {
	struct text *text;
	struct rte_swx_pipeline *pipeline;
	void *seen; /* tree of what entries of all tables match */
};

/*
 * Report values wider than their field, masks where none may be or that leave bits of the value
 * out, and entries that match the same as an earlier one. `table` is the number of the table; for
 * a default entry only the arguments are looked at.
 */
void entry_check(struct entry_check *check, const struct line *line, uint32_t table);
void entry_check_free(struct entry_check *check);
