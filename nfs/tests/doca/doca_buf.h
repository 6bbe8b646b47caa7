#pragma once

#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>

struct doca_buf;

doca_error_t doca_buf_refcount_rm(struct doca_buf *buf, uint16_t *refcount);
doca_error_t doca_buf_get_data(const struct doca_buf *buf, void **data);
doca_error_t doca_buf_get_data_len(const struct doca_buf *buf, size_t *length);
doca_error_t doca_buf_set_data(struct doca_buf *buf, void *data, size_t length);
doca_error_t doca_buf_reset_data_len(struct doca_buf *buf);
