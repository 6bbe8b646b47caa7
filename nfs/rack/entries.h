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

/*
 * Prepare that the entries of one file become those of another one, which entries_commit() does in
 * one step; what a program keeps, and learns, stays. The same as above if it is false.
 */
bool entries_prepare(const char *old_path, const char *path, struct rte_swx_pipeline *pipeline,
		     struct rte_swx_ctl_pipeline *control);
/* False after printing why: then the entries are as before. */
bool entries_commit(const char *path, struct rte_swx_ctl_pipeline *control);
