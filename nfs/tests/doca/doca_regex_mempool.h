#pragma once

struct doca_regex_mempool;

void doca_regex_mempool_put_obj(struct doca_regex_mempool *pool, void *object);
