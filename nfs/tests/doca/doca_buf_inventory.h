#pragma once

#include <doca_buf.h>
#include <doca_mmap.h>

#define DOCA_BUF_EXTENSION_NONE 0

struct doca_buf_inventory;

doca_error_t doca_buf_inventory_create(const union doca_data *user_data, size_t elements,
				       uint32_t extensions, struct doca_buf_inventory **inventory);
doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *inventory);
doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *inventory);
doca_error_t doca_buf_inventory_buf_by_addr(struct doca_buf_inventory *inventory,
					    struct doca_mmap *mmap, void *address, size_t length,
					    struct doca_buf **buf);
