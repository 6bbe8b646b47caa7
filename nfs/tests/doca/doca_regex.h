#pragma once

#include <doca_buf.h>
#include <doca_ctx.h>
#include <doca_regex_mempool.h>

struct doca_regex;

enum { DOCA_REGEX_JOB_SEARCH = 16 };
enum { DOCA_REGEX_STATUS_SEARCH_FAILED = 1 };

struct doca_regex_match {
	struct doca_regex_match *next;
	uint32_t match_start;
	uint32_t rule_id;
	uint32_t length;
};

struct doca_regex_search_result {
	uint64_t status_flags;
	uint32_t detected_matches;
	uint32_t num_matches;
	struct doca_regex_match *matches;
	struct doca_regex_mempool *matches_mempool;
};

struct doca_regex_job_search {
	struct doca_job base;
	uint16_t rule_group_ids[4];
	const struct doca_buf *buffer;
	struct doca_regex_search_result *result;
	uint8_t allow_batching;
};

doca_error_t doca_regex_create(struct doca_regex **regex);
doca_error_t doca_regex_destroy(struct doca_regex *regex);
struct doca_ctx *doca_regex_as_ctx(struct doca_regex *regex);
doca_error_t doca_regex_get_hardware_supported(const struct doca_devinfo *info);
doca_error_t doca_regex_set_hardware_uncompiled_rules(struct doca_regex *regex, const void *rules,
						      size_t length);
doca_error_t doca_regex_set_workq_matches_memory_pool_size(struct doca_regex *regex, uint32_t size);
