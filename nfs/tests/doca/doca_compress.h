#pragma once

#include <doca_buf.h>
#include <doca_ctx.h>

struct doca_compress;

enum doca_compress_job_types { DOCA_COMPRESS_DEFLATE_JOB, DOCA_DECOMPRESS_DEFLATE_JOB };

struct doca_compress_deflate_job {
	struct doca_job base;
	struct doca_buf *dst_buff;
	const struct doca_buf *src_buff;
	uint64_t *output_chksum;
};

doca_error_t doca_compress_create(struct doca_compress **compress);
doca_error_t doca_compress_destroy(struct doca_compress *compress);
struct doca_ctx *doca_compress_as_ctx(struct doca_compress *compress);
doca_error_t doca_compress_job_get_supported(struct doca_devinfo *info,
					     enum doca_compress_job_types type);
