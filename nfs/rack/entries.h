/*
 * Entries of the switch's tables: one line each,
 *
 *     TABLE match 0x0a000001 action forward port H(1)
 *     TABLE match 0x0a000000/0xff000000 priority 2 action forward port H(1)
 *     TABLE default action drop
 *     LEARNER learner-default action learn
 *
 * Behind the name stands what rte_swx_ctl_pipeline_table_entry_read() reads.
 */
#pragma once

#include <stdbool.h>

#include <rte_swx_ctl.h>

/* Add all entries and commit them. False after printing every fault as FILE:LINE. */
bool entries_load(const char *path, struct rte_swx_pipeline *pipeline,
		  struct rte_swx_ctl_pipeline *control);
