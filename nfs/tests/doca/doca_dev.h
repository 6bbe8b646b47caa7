#pragma once

#include <stdint.h>

#include <doca_error.h>

struct doca_dev;
struct doca_devinfo;

doca_error_t doca_devinfo_list_create(struct doca_devinfo ***list, uint32_t *n);
doca_error_t doca_devinfo_list_destroy(struct doca_devinfo **list);
doca_error_t doca_dev_open(struct doca_devinfo *info, struct doca_dev **dev);
doca_error_t doca_dev_close(struct doca_dev *dev);
