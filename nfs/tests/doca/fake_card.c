#include "tests/doca/fake_card.h"

#include <stdlib.h>
#include <string.h>

#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_mmap.h>

struct fake_card fake_card;
char fake_thing[1];

doca_error_t fake_step(bool allowed, bool *is, bool packet_spec)
{
	if (!allowed || *is == packet_spec) {
		fake_card.wrong++;
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (packet_spec && ++fake_card.steps == fake_card.failing)
		return DOCA_ERROR_NO_MEMORY;
	*is = packet_spec;
	return DOCA_SUCCESS;
}

const char *doca_get_error_string(doca_error_t error)
{
	return error == DOCA_ERROR_NOT_SUPPORTED ? "out of order" : "asked to fail";
}

doca_error_t doca_devinfo_list_create(struct doca_devinfo ***list, uint32_t *n)
{
	static struct doca_devinfo *one[1];

	one[0] = THE(doca_devinfo);
	*list = one;
	*n = 1;
	return fake_step(true, &fake_card.listed, true);
}

doca_error_t doca_devinfo_list_destroy(struct doca_devinfo **list)
{
	(void)list;
	return fake_step(true, &fake_card.listed, false);
}

doca_error_t doca_dev_open(struct doca_devinfo *info, struct doca_dev **dev)
{
	(void)info;
	*dev = THE(doca_dev);
	return fake_step(true, &fake_card.device, true);
}

doca_error_t doca_dev_close(struct doca_dev *dev)
{
	(void)dev;
	return fake_step(!fake_card.has_device && !fake_card.memory, &fake_card.device, false);
}

doca_error_t doca_ctx_dev_add(struct doca_ctx *ctx, struct doca_dev *dev)
{
	(void)ctx, (void)dev;
	return fake_step(fake_card.device && !fake_card.started, &fake_card.has_device, true);
}

doca_error_t doca_ctx_dev_rm(struct doca_ctx *ctx, struct doca_dev *dev)
{
	(void)ctx, (void)dev;
	return fake_step(!fake_card.started, &fake_card.has_device, false);
}

doca_error_t doca_ctx_start(struct doca_ctx *ctx)
{
	(void)ctx;
	return fake_step(fake_card.has_device, &fake_card.started, true);
}

doca_error_t doca_ctx_stop(struct doca_ctx *ctx)
{
	(void)ctx;
	return fake_step(!fake_card.has_queue, &fake_card.started, false);
}

doca_error_t doca_ctx_workq_add(struct doca_ctx *ctx, struct doca_workq *workq)
{
	(void)ctx, (void)workq;
	return fake_step(fake_card.started && fake_card.queue, &fake_card.has_queue, true);
}

doca_error_t doca_ctx_workq_rm(struct doca_ctx *ctx, struct doca_workq *workq)
{
	(void)ctx, (void)workq;
	return fake_step(fake_card.started, &fake_card.has_queue, false);
}

doca_error_t doca_workq_create(uint32_t depth, struct doca_workq **workq)
{
	const doca_error_t status = fake_step(depth >= FAKE_CARD_DEPTH, &fake_card.queue, true);

	if (status == DOCA_SUCCESS)
		*workq = THE(doca_workq);
	return status;
}

doca_error_t doca_workq_destroy(struct doca_workq *workq)
{
	(void)workq;
	return fake_step(!fake_card.has_queue, &fake_card.queue, false);
}

doca_error_t doca_mmap_create(const union doca_data *user_data, struct doca_mmap **mmap)
{
	const doca_error_t status = fake_step(!user_data, &fake_card.memory, true);

	if (status == DOCA_SUCCESS)
		*mmap = THE(doca_mmap);
	return status;
}

doca_error_t doca_mmap_destroy(struct doca_mmap *mmap)
{
	(void)mmap;
	fake_card.memory_has_device = fake_card.memory_started = false;
	return fake_step(fake_card.buffers == 0, &fake_card.memory, false);
}

doca_error_t doca_mmap_dev_add(struct doca_mmap *mmap, struct doca_dev *dev)
{
	(void)mmap, (void)dev;
	return fake_step(fake_card.device, &fake_card.memory_has_device, true);
}

doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *address, size_t length)
{
	(void)mmap;
	memset(address, 0, length);
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_start(struct doca_mmap *mmap)
{
	(void)mmap;
	return fake_step(fake_card.memory, &fake_card.memory_started, true);
}

doca_error_t doca_buf_inventory_create(const union doca_data *user_data, size_t elements,
				       uint32_t extensions, struct doca_buf_inventory **inventory)
{
	const doca_error_t status = fake_step(!user_data && elements > 0 && extensions == 0,
					      &fake_card.inventory, true);

	if (status == DOCA_SUCCESS)
		*inventory = THE(doca_buf_inventory);
	return status;
}

doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *inventory)
{
	(void)inventory;
	fake_card.inventory_started = false;
	return fake_step(fake_card.buffers == 0, &fake_card.inventory, false);
}

doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *inventory)
{
	(void)inventory;
	return fake_step(fake_card.inventory, &fake_card.inventory_started, true);
}

doca_error_t doca_buf_inventory_buf_by_addr(struct doca_buf_inventory *inventory,
					    struct doca_mmap *mmap, void *address, size_t length,
					    struct doca_buf **buf)
{
	bool packet_spec = false;
	const doca_error_t status = fake_step(
		fake_card.inventory_started && fake_card.memory_started, &packet_spec, true);

	(void)inventory, (void)mmap;
	if (status != DOCA_SUCCESS)
		return status;
	*buf = calloc(1, sizeof(**buf));
	(*buf)->data = address;
	(*buf)->room = length;
	fake_card.buffers++;
	return status;
}

doca_error_t doca_buf_refcount_rm(struct doca_buf *buf, uint16_t *refcount)
{
	(void)refcount;
	free(buf);
	fake_card.buffers--;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_data(const struct doca_buf *buf, void **data)
{
	*data = buf->data;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_data_len(const struct doca_buf *buf, size_t *length)
{
	*length = buf->length;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_set_data(struct doca_buf *buf, void *data, size_t length)
{
	buf->data = data;
	buf->length = length;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_reset_data_len(struct doca_buf *buf)
{
	buf->length = 0;
	return DOCA_SUCCESS;
}
