/*
 * Compresses payloads with a device of DPDK's compressdev: raw DEFLATE, each payload by itself.
 * Only software devices, which run a job when they are polled next.
 */
#include <errno.h>
#include <stdio.h>

#include <rte_compressdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "accelerators/accelerator.h"
#include "core/memory.h"

#define OPERATIONS 64
#define WINDOW_BITS 15
#define MOST_BYTES UINT16_MAX /* of one mbuf */

/*
 * One device per driver, kept until DPDK exits and closes it: DPDK 22.11 can neither create a
 * compressdev again after a release nor close one twice.
 */
struct driver {
	const char *device;
	bool in_use;
};

struct compressor {
	struct driver *driver;
	uint8_t id;
	void *transform;
	struct rte_mempool *mbufs, *pool;
	struct rte_mbuf_ext_shared_info outside; /* mbufs attached to the submitters' buffers */
	struct rte_comp_op *idle[OPERATIONS];
	uint16_t n_idle;
};

static void outside_freed(void *address, void *context)
{
	(void)address, (void)context;
}

static int configure(struct compressor *compressor)
{
	struct rte_compressdev_config config = {
		.socket_id = SOCKET_ID_ANY, .nb_queue_pairs = 1, .max_nb_priv_xforms = 1};
	const struct rte_comp_xform transform = {
		.type = RTE_COMP_COMPRESS,
		.compress = {.algo = RTE_COMP_ALGO_DEFLATE,
			     .deflate.huffman = RTE_COMP_HUFFMAN_DEFAULT,
			     .level = RTE_COMP_LEVEL_PMD_DEFAULT,
			     .chksum = RTE_COMP_CHECKSUM_NONE,
			     .window_size = WINDOW_BITS},
	};
	int error;

	error = rte_compressdev_configure(compressor->id, &config);
	if (error == 0)
		error = rte_compressdev_queue_pair_setup(compressor->id, 0, OPERATIONS,
							 rte_socket_id());
	if (error == 0)
		error = rte_compressdev_start(compressor->id);
	if (error == 0)
		error = rte_compressdev_private_xform_create(compressor->id, &transform,
							     &compressor->transform);
	if (error < 0)
		fprintf(stderr, "%s: cannot be configured: error %d\n", compressor->driver->device,
			error);
	return error;
}

static int make_operations(struct compressor *compressor)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mbuf *mbufs[2 * OPERATIONS];

	snprintf(name, sizeof(name), "%.16s_mbufs", compressor->driver->device);
	compressor->mbufs = rte_pktmbuf_pool_create(name, 2 * OPERATIONS, 0, 0, 0, SOCKET_ID_ANY);
	snprintf(name, sizeof(name), "%.16s_ops", compressor->driver->device);
	compressor->pool = rte_comp_op_pool_create(name, OPERATIONS, 0,
						   sizeof(struct accelerator_job *), SOCKET_ID_ANY);
	if (!compressor->mbufs || !compressor->pool ||
	    rte_pktmbuf_alloc_bulk(compressor->mbufs, mbufs, 2 * OPERATIONS) < 0) {
		fprintf(stderr, "%s: no memory for operations: %s\n", compressor->driver->device,
			rte_strerror(rte_errno));
		return -ENOMEM;
	}
	for (uint16_t i = 0; i < OPERATIONS; i++) {
		struct rte_comp_op *operation = rte_comp_op_alloc(compressor->pool);

		operation->private_xform = compressor->transform;
		operation->op_type = RTE_COMP_OP_STATELESS;
		operation->flush_flag = RTE_COMP_FLUSH_FINAL;
		operation->m_src = mbufs[2 * i];
		operation->m_dst = mbufs[2 * i + 1];
		compressor->idle[compressor->n_idle++] = operation;
	}
	return 0;
}

static void destroy(void *state)
{
	struct compressor *compressor = state;

	for (uint16_t i = 0; i < compressor->n_idle; i++) {
		rte_mbuf_ext_refcnt_set(&compressor->outside, 3);
		rte_pktmbuf_free(compressor->idle[i]->m_src);
		rte_pktmbuf_free(compressor->idle[i]->m_dst);
		rte_comp_op_free(compressor->idle[i]);
	}
	rte_mempool_free(compressor->pool);
	rte_mempool_free(compressor->mbufs);
	if (compressor->transform)
		rte_compressdev_private_xform_free(compressor->id, compressor->transform);
	rte_compressdev_stop(compressor->id);
	compressor->driver->in_use = false;
	nf_free(compressor);
}

/* The driver's device, created at first use. */
static int find_device(const char *device)
{
	int id = rte_compressdev_get_dev_id(device);
	int error;

	if (id >= 0)
		return id;
	error = rte_eal_hotplug_add("vdev", device, "");
	if (error == 0)
		return rte_compressdev_get_dev_id(device);
	fprintf(stderr, "%s: no such device: error %d\n", device, error);
	return error;
}

static void *create(struct driver *driver)
{
	struct compressor *compressor;
	int id;

	if (driver->in_use) {
		fprintf(stderr, "%s: already in use\n", driver->device);
		return NULL;
	}
	/* compress_isal logs each payload that does not shrink */
	rte_log_set_level_pattern("pmd.compress.*", RTE_LOG_CRIT);
	id = find_device(driver->device);
	compressor = id < 0 ? NULL : nf_zalloc(sizeof(*compressor));
	if (!compressor) {
		fprintf(stderr, "%s: no compressor\n", driver->device);
		return NULL;
	}
	driver->in_use = true;
	compressor->driver = driver;
	compressor->id = (uint8_t)id;
	compressor->outside.free_cb = outside_freed;
	if (configure(compressor) < 0 || make_operations(compressor) < 0) {
		destroy(compressor);
		return NULL;
	}
	return compressor;
}

static void *create_isal(void)
{
	static struct driver driver = {.device = "compress_isal"};

	return create(&driver);
}

static void *create_zlib(void)
{
	static struct driver driver = {.device = "compress_zlib"};

	return create(&driver);
}

/* Private data of an operation. */
static struct accelerator_job **job_of(struct rte_comp_op *operation)
{
	return (struct accelerator_job **)(operation + 1);
}

/* Attach external bytes to an mbuf. */
static void put(struct compressor *compressor, struct rte_mbuf *mbuf, void *bytes, uint32_t length)
{
	rte_pktmbuf_attach_extbuf(mbuf, bytes, RTE_BAD_IOVA, (uint16_t)length,
				  &compressor->outside);
	mbuf->data_off = 0;
	mbuf->data_len = (uint16_t)length;
	mbuf->pkt_len = length;
}

static enum backend_status submit(void *state, struct accelerator_job *job)
{
	struct compressor *compressor = state;
	struct rte_comp_op *operation;

	backend_begin(job);
	if (job->length > MOST_BYTES) {
		job->status = -EMSGSIZE;
		return BACKEND_DONE;
	}
	if (compressor->n_idle == 0)
		return BACKEND_FULL;
	operation = compressor->idle[compressor->n_idle - 1];
	put(compressor, operation->m_src, (void *)(uintptr_t)job->input, job->length);
	put(compressor, operation->m_dst, job->output, RTE_MIN(job->room, MOST_BYTES));
	operation->src.offset = 0;
	operation->src.length = job->length;
	operation->dst.offset = 0;
	operation->consumed = operation->produced = 0; /* compress_zlib adds to them */
	operation->status = RTE_COMP_OP_STATUS_NOT_PROCESSED;
	*job_of(operation) = job;
	if (rte_compressdev_enqueue_burst(compressor->id, 0, &operation, 1) == 0)
		return BACKEND_FULL;
	compressor->n_idle--;
	return BACKEND_TAKEN;
}

static void set_result(struct accelerator_job *job, const struct rte_comp_op *operation)
{
	switch (operation->status) {
	case RTE_COMP_OP_STATUS_SUCCESS:
		job->produced = operation->produced;
		job->status = 0;
		break;
	case RTE_COMP_OP_STATUS_OUT_OF_SPACE_TERMINATED:
	case RTE_COMP_OP_STATUS_OUT_OF_SPACE_RECOVERABLE:
		job->status = -ENOSPC;
		break;
	default:
		job->status = -EIO;
	}
}

static uint16_t poll(void *state, struct accelerator_job **jobs, uint16_t n)
{
	struct compressor *compressor = state;
	struct rte_comp_op *operations[OPERATIONS];
	uint16_t done;

	if (compressor->n_idle == OPERATIONS)
		return 0;
	done = rte_compressdev_dequeue_burst(compressor->id, 0, operations, RTE_MIN(n, OPERATIONS));
	for (uint16_t i = 0; i < done; i++) {
		jobs[i] = *job_of(operations[i]);
		set_result(jobs[i], operations[i]);
		compressor->idle[compressor->n_idle++] = operations[i];
	}
	return done;
}

BACKEND(isal, "compress_isal", "ISA-L through compressdev, on the serving core",
	.kind = ACCELERATOR_COMPRESSION, .preference = 30, .create = create_isal, .submit = submit,
	.poll = poll, .destroy = destroy)
BACKEND(zlib, "compress_zlib", "zlib through compressdev, on the serving core",
	.kind = ACCELERATOR_COMPRESSION, .preference = 20, .create = create_zlib, .submit = submit,
	.poll = poll, .destroy = destroy)
