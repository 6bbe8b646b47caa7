#pragma once

#include <stddef.h>

#include <doca_dev.h>

struct doca_mmap;
union doca_data {
	void *ptr;
	uint64_t u64;
};

doca_error_t doca_mmap_create(const union doca_data *user_data, struct doca_mmap **mmap);
doca_error_t doca_mmap_destroy(struct doca_mmap *mmap);
doca_error_t doca_mmap_start(struct doca_mmap *mmap);
doca_error_t doca_mmap_dev_add(struct doca_mmap *mmap, struct doca_dev *dev);
doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *address, size_t length);
