#pragma once

#include <doca_dev.h>
#include <doca_mmap.h>

struct doca_ctx;
struct doca_workq;

enum { DOCA_JOB_FLAGS_NONE };
enum { DOCA_WORKQ_RETRIEVE_FLAGS_NONE };

struct doca_job {
	int type;
	int flags;
	struct doca_ctx *ctx;
	union doca_data user_data;
};

struct doca_event {
	int type;
	union doca_data user_data;
	union doca_data result;
};

doca_error_t doca_ctx_dev_add(struct doca_ctx *ctx, struct doca_dev *dev);
doca_error_t doca_ctx_dev_rm(struct doca_ctx *ctx, struct doca_dev *dev);
doca_error_t doca_ctx_start(struct doca_ctx *ctx);
doca_error_t doca_ctx_stop(struct doca_ctx *ctx);
doca_error_t doca_ctx_workq_add(struct doca_ctx *ctx, struct doca_workq *workq);
doca_error_t doca_ctx_workq_rm(struct doca_ctx *ctx, struct doca_workq *workq);

doca_error_t doca_workq_create(uint32_t depth, struct doca_workq **workq);
doca_error_t doca_workq_destroy(struct doca_workq *workq);
doca_error_t doca_workq_submit(struct doca_workq *workq, const struct doca_job *job);
doca_error_t doca_workq_progress_retrieve(struct doca_workq *workq, struct doca_event *event,
					  int flags);
