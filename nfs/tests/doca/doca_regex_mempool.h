#ifndef NFS_TESTS_DOCA_REGEX_MEMPOOL_H
#define NFS_TESTS_DOCA_REGEX_MEMPOOL_H

struct doca_regex_mempool;

void doca_regex_mempool_put_obj(struct doca_regex_mempool *pool, void *object);

#endif
